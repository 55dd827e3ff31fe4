//! The simulator: makes a random life, a history of a few conversations, from a seed, and checks
//! invariants after every step.
//!
//! In: a seed and the kinds of faults. Out: the first step with a violation, if any. The same seed
//! gives the same life on every machine. [`reference`] has the expected messages, [`workload`]
//! makes messages, [`actor`] makes steps, [`invariants`] checks the conversation.

pub mod actor;
mod driver;
pub mod found;
pub mod invariants;
pub mod random;
pub mod reference;
pub mod workload;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{host::StoreMode, plant::Plant, simulation::actor::Actor};

/// What may happen in a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of steps of one life.
    pub steps: u32,
    /// A planted bug in the layers around the engine.
    pub plant: Plant,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps: 40, plant: Plant::None }
    }
}

/// The circumstances of one life; the seed determines the random steps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Conduct {
    /// Whether operations of the store fail now and then.
    pub faults: bool,
    /// How the store answers.
    pub mode: StoreMode,
    /// Whether every call gets a new instance.
    pub cold: bool,
}

/// A seed whose life violated an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// Number of the step, from 0, with its name and the conduct of the life.
    pub step: String,
    /// Text about the violation.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "seed {}, {}: {}\n  LCM_SEED={} cargo test --release -p lcm-tests --test simulation \
             one_seed -- --nocapture",
            self.seed, self.step, self.why, self.seed
        )
    }
}

/// Counts over the life of a seed, for the report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Figures {
    /// Messages stored.
    pub messages: u64,
    /// Summaries committed.
    pub summaries: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Conflicts that happened.
    pub conflicts: u64,
}

/// Leads the life of one seed. A life without planted failures and bugs is led a second time with
/// another [`Conduct`], because the same calls must leave the same bytes.
///
/// # Errors
///
/// The first violation.
pub fn run_seed(seed: u64, settings: &Settings) -> Result<Figures, Failure> {
    let faults = seed % 2 == 1;
    let (figures, digest) = live(seed, settings, Conduct { faults, ..Conduct::default() })?;
    if faults || settings.plant != Plant::None {
        return Ok(figures);
    }
    let other = if seed.is_multiple_of(4) {
        Conduct { mode: StoreMode::WouldBlock, ..Conduct::default() }
    } else {
        Conduct { cold: true, ..Conduct::default() }
    };
    let (_, other_digest) = live(seed, settings, other)?;
    same_calls_same_bytes(seed, other, &digest, &other_digest)?;
    Ok(figures)
}

/// Checks invariant 7: the same calls and completions leave the same store bytes.
fn same_calls_same_bytes(
    seed: u64,
    other: Conduct,
    digest: &str,
    other_digest: &str,
) -> Result<(), Failure> {
    if digest == other_digest {
        return Ok(());
    }
    Err(Failure {
        seed,
        step: "at the end".to_owned(),
        why: format!("the store is {digest}, and {other_digest} with {other:?}"),
    })
}

fn live(seed: u64, settings: &Settings, conduct: Conduct) -> Result<(Figures, String), Failure> {
    let mut step = "at the start".to_owned();
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let mut actor = Actor::new(seed, settings.plant, conduct);
        for number in 0..settings.steps {
            actor.act(&mut |what| step = format!("step {number} ({what})"))?;
        }
        actor.finish(&mut |what| step = what.to_owned())
    }));
    let why = match lived {
        Ok(Ok(figures)) => return Ok(figures),
        Ok(Err(why)) => why,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .map_or_else(|| "panicked".to_owned(), |text| format!("panicked: {text}"))
        }
    };
    Err(Failure { seed, step: format!("{step}, {conduct:?}"), why })
}
