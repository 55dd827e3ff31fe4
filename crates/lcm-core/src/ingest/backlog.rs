//! What a host may ask of a plan beside what is missing: no more than a bounded part of it, of a
//! forked session only the newest, and whether the transcript is still the same session.
//!
//! In: what is missing, and what the host remembers of the last plan, its checkpoint. Out: a part
//! of it, and the next checkpoint, which moves on only when everything before it is stored.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    base::{
        int,
        json::{self, JsonFields, JsonWriter},
    },
    config::Config,
};

/// Entries of a bounded plan at least, and one in how many stored messages it may be otherwise, as
/// in the reference system.
const BACKLOG_ENTRIES_MIN: u64 = 50;
const BACKLOG_DIVISOR: u64 = 5;
/// Tokens that the first import of a forked session takes at least, or three in ten of a leaf's
/// chunk, as in the reference system; and a chunk where none is configured.
const BOOTSTRAP_TOKENS_MIN: u64 = 6_000;
const LEAF_CHUNK_TOKENS_DEFAULT: u32 = 20_000;

/// What a host asks for.
#[derive(Debug, Default)]
pub(super) struct BacklogOptions {
    /// At most a part of what is missing, oldest first.
    is_bounded: bool,
    /// The session began as a copy of another one.
    is_forked: bool,
    /// The id that the session has of itself.
    epoch: Option<String>,
    /// The checkpoint as it was given, and the epoch in it.
    checkpoint: Option<String>,
    previous_epoch: Option<String>,
}

/// A plan within its bounds.
#[derive(Debug, Default)]
pub(super) struct BoundedBacklog {
    /// Why nothing may be stored although something is missing.
    pub(super) blocked_reason: Option<&'static str>,
    /// Whether more is missing than the plan says.
    pub(super) has_more: bool,
    /// Of how many entries a forked session takes only the newest.
    pub(super) fork_entries: Option<u64>,
}

impl BacklogOptions {
    /// Takes the fields of a transcript that ask for bounds.
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Self {
        let checkpoint =
            fields.take_any("checkpoint").filter(|(_, kind)| *kind == json::JsonKind::Object);
        let checkpoint = checkpoint.map(|(text, _)| text.into_owned());
        let epoch_before = checkpoint.as_deref().and_then(|text| {
            let members = json::parse_object(text).ok()?;
            let epoch = json::find_member(&members, text, "epoch")?;
            let is_text = epoch.kind == json::JsonKind::String;
            is_text.then(|| json::text(text, epoch.value).into_owned())
        });
        Self {
            is_bounded: fields.take_flag("bounded"),
            is_forked: fields.take_flag("forked"),
            epoch: fields.take_optional_text("epoch"),
            checkpoint,
            previous_epoch: epoch_before,
        }
    }

    /// Cuts the list of missing entries, of which `tokens` are the tokens.
    pub(super) fn limit_missing(
        &self,
        config: &Config,
        missing: &mut Vec<usize>,
        tokens: &dyn Fn(usize) -> u64,
        overlap: &OverlapSummary,
    ) -> BoundedBacklog {
        let OverlapSummary { stored, found_by: by, first_stored } = *overlap;
        let mut bounded = BoundedBacklog::default();
        if let Some(first) = first_stored.filter(|_| self.is_forked) {
            // What the first import left out stays out: it is in the conversation forked from.
            missing.retain(|index| *index > first);
        }
        let count = int::to_u64(missing.len());
        if self.is_forked && stored == 0 {
            let costs: Vec<u64> = missing.iter().map(|index| tokens(*index)).collect();
            let kept = count_newest_fitting(&costs, bootstrap_tokens_max(config));
            missing.drain(..missing.len() - kept);
            bounded.fork_entries = (int::to_u64(kept) < count).then_some(count);
        }
        let most = backlog_entries_max(stored);
        if self.is_bounded && stored > 0 && int::to_u64(missing.len()) > most {
            if by == "none" {
                // Nothing says that these are new: a replay of this size would double everything.
                bounded.blocked_reason = Some("import-cap");
                missing.clear();
            } else {
                bounded.has_more = true;
                missing.truncate(int::to_usize(most));
            }
        }
        bounded
    }

    /// Whether the session is the one of the checkpoint; `None`: there is no checkpoint.
    fn epoch_status(&self) -> Option<&'static str> {
        self.checkpoint.as_ref()?;
        Some(compare_epochs(self.previous_epoch.as_deref(), self.epoch.as_deref()))
    }

    /// Writes what became of the bounds. `last`: the entry id and hash of the last entry, when
    /// everything up to it is stored.
    pub(super) fn write_plan(
        &self,
        plan: &mut JsonWriter,
        bounded: &BoundedBacklog,
        last: Option<LastEntry<'_>>,
    ) {
        plan.add_optional_text("blocked", bounded.blocked_reason);
        match last {
            Some(LastEntry { entry_id, hash, entries }) => {
                let mut next = JsonWriter::new_object();
                next.add_optional_text("entry_id", entry_id);
                next.add_text("hash", hash);
                next.add_number("entries", entries);
                next.add_optional_text("epoch", self.epoch.as_deref());
                plan.add_object("checkpoint", next);
            }
            None => plan.add_json("checkpoint", self.checkpoint.as_deref().unwrap_or("null")),
        }
        plan.add_optional_text("epoch", self.epoch_status());
        if let Some(entries) = bounded.fork_entries {
            plan.add_number("fork_entries", entries);
        }
        plan.add_flag("more", bounded.has_more);
    }

    /// What the plan has to say beside that.
    pub(super) fn build_warning(&self, bounded: &BoundedBacklog) -> Option<String> {
        if bounded.blocked_reason.is_some() {
            return Some(String::from(
                "import-cap: the transcript does not go on where the stored messages end, and has \
                 too many others for a bounded plan",
            ));
        }
        let entries = bounded.fork_entries?;
        Some(format!("fork-bounded: only the newest of {entries} entries are taken over"))
    }
}

/// How a transcript and the stored messages overlap.
pub(super) struct OverlapSummary {
    /// Number of stored messages.
    pub(super) stored: u64,
    /// How the overlap was found.
    pub(super) found_by: &'static str,
    /// Index of the first entry that is stored.
    pub(super) first_stored: Option<usize>,
}

/// The last entry of a transcript.
pub(super) struct LastEntry<'a> {
    pub(super) entry_id: Option<&'a str>,
    pub(super) hash: &'a str,
    pub(super) entries: u64,
}

/// Whether two sessions are the same by the ids that they have of themselves.
fn compare_epochs(before: Option<&str>, now: Option<&str>) -> &'static str {
    match (before, now) {
        (Some(before), Some(now)) if before == now => "same",
        (Some(_), Some(_)) => "rollover",
        _ => "undeclared",
    }
}

/// How many entries one bounded plan takes when so many messages are stored.
fn backlog_entries_max(stored: u64) -> u64 {
    (stored / BACKLOG_DIVISOR).max(BACKLOG_ENTRIES_MIN)
}

/// Tokens that the first import of a forked session takes.
fn bootstrap_tokens_max(config: &Config) -> u64 {
    if let Some(tokens) = config.bootstrap_tokens_max {
        return u64::from(tokens);
    }
    let chunk = u64::from(config.leaf_chunk_tokens_max.unwrap_or(LEAF_CHUNK_TOKENS_DEFAULT));
    (chunk * 3 / 10).max(BOOTSTRAP_TOKENS_MIN)
}

/// How many of the newest fit; none when the newest alone does not.
fn count_newest_fitting(tokens: &[u64], tokens_max: u64) -> usize {
    let fits = |sum: &mut u64, tokens: &u64| {
        *sum = sum.saturating_add(*tokens);
        (*sum <= tokens_max).then_some(())
    };
    tokens.iter().rev().scan(0, fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_plan_is_a_fifth_of_what_is_stored_or_50() {
        let caps = [0, 100, 250, 251, 1_000].map(backlog_entries_max);
        assert_eq!(caps, [50, 50, 50, 50, 200]);
    }

    #[test]
    fn a_session_is_the_same_by_its_id() {
        assert_eq!(compare_epochs(Some("x"), Some("x")), "same");
        assert_eq!(compare_epochs(Some("x"), Some("y")), "rollover");
        assert_eq!(compare_epochs(None, Some("y")), "undeclared");
    }

    #[test]
    fn a_forked_session_takes_the_newest_that_fit() {
        let mut config = Config::default();
        assert_eq!(bootstrap_tokens_max(&config), 6_000);
        config.leaf_chunk_tokens_max = Some(20_000);
        assert_eq!(bootstrap_tokens_max(&config), 6_000);
        config.leaf_chunk_tokens_max = Some(40_000);
        assert_eq!(bootstrap_tokens_max(&config), 12_000);
        config.bootstrap_tokens_max = Some(7);
        assert_eq!(bootstrap_tokens_max(&config), 7);
        assert_eq!(count_newest_fitting(&[2_000, 3_000, 2_500], 6_000), 2);
        assert_eq!(count_newest_fitting(&[100, 7_000], 6_000), 0);
        assert_eq!(count_newest_fitting(&[], 6_000), 0);
    }
}
