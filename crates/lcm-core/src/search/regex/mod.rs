//! Regular expressions: whether and where one matches in a text, in time linear in the text.
//!
//! A lazily built automaton does the work and reads each byte once. Where it cannot go on (a
//! Unicode word boundary beside a byte that is not ASCII, or an expression that needs ever new
//! states) a simulation of the same expression answers instead, slower but linear too. What all
//! texts together may cost is bounded: what is beyond the bound is not looked at, and the
//! expression says so. Not here: which texts are read.

mod char_classes;
mod translate;

use alloc::boxed::Box;
use core::ops::Range;

use regex_automata::{
    Anchored, Input, MatchKind,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson::{
        self, NFA, WhichCaptures,
        pikevm::{self, PikeVM},
    },
};
use regex_syntax::{
    ast::{self, parse::ParserBuilder},
    hir::{Hir, HirKind, Look},
};

use self::translate::translate_ast;
use super::gram_query::GramQuery;
use lcm_text::base::error::{Error, Result};

/// Most bytes of an expression.
pub(crate) const PATTERN_BYTES_MAX: usize = 10_000;
/// Most bytes of a compiled expression; `\w` with all letters of the world takes 30 KiB.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes of one from which on it is not compiled once more without its word boundaries.
const RELAXED_BYTES_MAX: usize = 128 << 10;
/// Groups that may stand in each other, so that no stack of a host is too small.
const NESTING_MAX: u32 = 100;
/// Memory of the automaton; when it is full the automaton begins anew. Building one state costs as
/// much as reading a thousand bytes, so this bounds what an expression costs that needs ever new
/// ones; the largest of the others has a few hundred of them.
const STATES_BYTES_MAX: usize = 128 << 10;
/// Places from which on there is less memory, because each state takes longer to build.
const STATE_PLACES: usize = 64;
/// Fresh starts after which it has to prove worth building, and the bytes of text that each of its
/// states must have served, with one more for each place in the expression. The regex crate has 3
/// and 10 and goes on longer, because there nobody waits for an answer.
const FRESH_STARTS_MIN: usize = 1;
const BYTES_PER_STATE_MIN: usize = 10;
/// Steps of one query, so that it takes less than a tenth of a second however long the conversation
/// is.
const STEPS_MAX: u64 = 12 << 20;
/// Steps of a byte that is read, inflated and matched.
const READ_STEPS: u64 = 4;
/// Steps of a byte in the simulation, and for each place it may be at in the expression.
const SIMULATED_STEPS: u64 = 24;
const PLACE_STEPS: u64 = 6;
/// Places of which each further one takes twice the steps.
const PLACES_FEW: u64 = 64;

/// A compiled regular expression with the memory that matching needs.
pub(crate) struct Regex {
    hir: Hir,
    forward: LazyDfa,
    /// The same without its word boundaries, which read texts of any script: what it does not match
    /// needs no simulation. Built when that is first needed; `None` in it: it cannot be.
    relaxed: Option<Option<LazyDfa>>,
    /// Finds where a match begins; built when the first match is to be shown.
    backward: Option<LazyDfa>,
    simulation: Option<Box<NfaSimulation>>,
    /// Steps of a byte in the simulation, and those that are left.
    simulated_steps: u64,
    steps_left: u64,
    is_refused: bool,
}

struct LazyDfa {
    dfa: DFA,
    cache: Cache,
}

struct NfaSimulation {
    vm: PikeVM,
    cache: pikevm::Cache,
}

impl Regex {
    /// Compiles an expression. Matching minds case unless it says `(?i)`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: over 10,000 bytes, or over 1 MiB when compiled; `invalid-input`: it is no
    /// expression, with the position.
    pub(crate) fn compile(pattern: &str) -> Result<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let length = pattern.len();
            return Err(Error::limit_exceeded(format_args!(
                "pattern: an expression of {length} bytes is over the bound of {PATTERN_BYTES_MAX}"
            )));
        }
        let ast = ParserBuilder::new()
            .nest_limit(NESTING_MAX)
            .build()
            .parse(pattern)
            .map_err(|error| syntax_error(&error))?;
        let hir = translate_ast(&ast)?;
        let forward = LazyDfa::build(&hir, false, count_places(&hir))?;
        let places = count_places(&hir);
        // Of many places the memory of a processor does not hold all.
        let many = places.saturating_add(places.saturating_sub(PLACES_FEW));
        Ok(Self {
            simulated_steps: many.saturating_mul(PLACE_STEPS).saturating_add(SIMULATED_STEPS),
            hir,
            forward,
            relaxed: None,
            backward: None,
            simulation: None,
            steps_left: STEPS_MAX,
            is_refused: false,
        })
    }

    /// Begins to find in texts that are known to match.
    pub(crate) fn reset_budget(&mut self) {
        self.steps_left = STEPS_MAX;
    }

    /// Whether the steps of the query are used up.
    pub(crate) const fn is_budget_spent(&self) -> bool {
        self.steps_left == 0
    }

    /// Whether a text was left out because it would have cost more than was left.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Takes the steps of a text in the simulation; `false`: there are not as many.
    fn spend_simulation(&mut self, text: &str) -> bool {
        let steps = lcm_text::base::int::to_u64(text.len()).saturating_mul(self.simulated_steps);
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(0);
        left.is_some()
    }

    /// What a text must hold to match.
    pub(crate) fn build_gram_query(&self) -> GramQuery {
        GramQuery::from_hir(&self.hir)
    }

    /// Whether it matches anywhere in the text. `false`, too, if that would cost more than is left:
    /// see [`Regex::is_refused`].
    pub(crate) fn is_match(&mut self, text: &str) -> bool {
        let steps = lcm_text::base::int::to_u64(text.len()).saturating_mul(READ_STEPS);
        self.steps_left = self.steps_left.saturating_sub(steps);
        let input = Input::new(text).earliest(true);
        match self.forward.dfa.try_search_fwd(&mut self.forward.cache, &input) {
            Ok(found) => found.is_some(),
            Err(_) if !self.may_match(text) => false,
            Err(_) if !self.spend_simulation(text) => {
                self.is_refused = true;
                false
            }
            Err(_) => {
                let Some(NfaSimulation { vm, cache }) = self.ensure_simulation() else {
                    return false;
                };
                let Some(found) = vm.find(cache, input) else { return false };
                // What is behind the match was not read.
                let unread = lcm_text::base::int::to_u64(text.len() - found.end());
                self.steps_left += unread.saturating_mul(self.simulated_steps);
                true
            }
        }
    }

    /// Whether the expression without its word boundaries matches in the text, or cannot tell.
    fn may_match(&mut self, text: &str) -> bool {
        if self.forward.dfa.get_nfa().memory_usage() > RELAXED_BYTES_MAX {
            return true;
        }
        let hir = &self.hir;
        let relaxed = self.relaxed.get_or_insert_with(|| {
            LazyDfa::build(&strip_word_boundaries(hir), false, count_places(hir)).ok()
        });
        let Some(LazyDfa { dfa, cache }) = relaxed else { return true };
        let found = dfa.try_search_fwd(cache, &Input::new(text).earliest(true));
        found.map_or(true, |found| found.is_some())
    }

    /// The first match in the text, as a range of bytes on character boundaries; the beginning of
    /// the text if that would cost more than is left.
    pub(crate) fn find(&mut self, text: &str) -> Option<Range<usize>> {
        self.is_refused = false;
        let found = self.find_from(text, 0);
        if self.is_refused { Some(0..0) } else { found }
    }

    /// The first match that begins at a place of the text or behind it, seen with what stands
    /// before. `None`, too, if that would cost more than is left: see [`Regex::is_refused`].
    pub(crate) fn find_from(&mut self, text: &str, from: usize) -> Option<Range<usize>> {
        match self.find_with_dfa(text, from) {
            Some(found) => found,
            None if !self.may_match(text) => None,
            None if !self.spend_simulation(text.get(from..).unwrap_or_default()) => {
                self.is_refused = true;
                None
            }
            None => {
                let NfaSimulation { vm, cache } = self.ensure_simulation()?;
                let input = Input::new(text).range(from..);
                vm.find(cache, input).map(|found| found.range())
            }
        }
    }

    /// As [`Regex::find_from`]; `None`: the automata cannot tell.
    fn find_with_dfa(&mut self, text: &str, from: usize) -> Option<Option<Range<usize>>> {
        let LazyDfa { dfa, cache } = &mut self.forward;
        let Some(end) = dfa.try_search_fwd(cache, &Input::new(text).range(from..)).ok()? else {
            return Some(None);
        };
        if self.backward.is_none() {
            self.backward = LazyDfa::build(&self.hir, true, count_places(&self.hir)).ok();
        }
        let LazyDfa { dfa, cache } = self.backward.as_mut()?;
        let input = Input::new(text).range(from..end.offset()).anchored(Anchored::Yes);
        let start = dfa.try_search_rev(cache, &input).ok()??;
        Some(Some(start.offset()..end.offset()))
    }

    fn ensure_simulation(&mut self) -> Option<&mut NfaSimulation> {
        if self.simulation.is_none() {
            // The automaton was built from the same expression, so this cannot fail.
            let vm = PikeVM::new_from_nfa(self.forward.dfa.get_nfa().clone()).ok()?;
            let cache = vm.create_cache();
            self.simulation = Some(Box::new(NfaSimulation { vm, cache }));
        }
        self.simulation.as_deref_mut()
    }
}

impl LazyDfa {
    fn build(hir: &Hir, backward: bool, places: u64) -> Result<Self> {
        let bytes_per_state =
            lcm_text::base::int::to_usize(places).saturating_add(BYTES_PER_STATE_MIN);
        let config = thompson::Config::new()
            .reverse(backward)
            .which_captures(if backward { WhichCaptures::None } else { WhichCaptures::Implicit })
            .nfa_size_limit(Some(COMPILED_BYTES_MAX));
        let nfa: NFA = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(hir)
            .map_err(|error| compile_error(&error))?;
        // Backward the longest match is the leftmost start.
        let kind = if backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = DFA::config()
            .match_kind(kind)
            .unicode_word_boundary(true)
            .cache_capacity(STATES_BYTES_MAX / (1 + bytes_per_state / STATE_PLACES))
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(FRESH_STARTS_MIN))
            .minimum_bytes_per_state(Some(bytes_per_state));
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| {
            Error::limit_exceeded(format_args!("pattern: too large to compile: {error}"))
        })?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }
}

/// An expression that matches wherever this one does, without its word boundaries.
fn strip_word_boundaries(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(look) if look.as_repr() >= Look::WordAscii.as_repr() => Hir::empty(),
        HirKind::Capture(capture) => strip_word_boundaries(&capture.sub),
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(strip_word_boundaries(&repetition.sub)))
        }
        HirKind::Concat(list) => Hir::concat(list.iter().map(strip_word_boundaries).collect()),
        HirKind::Alternation(list) => {
            Hir::alternation(list.iter().map(strip_word_boundaries).collect())
        }
        _ => hir.clone(),
    }
}

/// Places of an expression that a simulation may be at together: its characters and classes, with
/// all copies of what is repeated.
fn count_places(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => lcm_text::base::int::to_u64(literal.0.len()),
        HirKind::Class(_) => 1,
        HirKind::Capture(capture) => count_places(&capture.sub),
        HirKind::Repetition(repetition) => {
            let copies = repetition.max.unwrap_or(repetition.min).max(1);
            count_places(&repetition.sub).saturating_mul(u64::from(copies))
        }
        HirKind::Concat(list) | HirKind::Alternation(list) => {
            list.iter().map(count_places).fold(0, u64::saturating_add)
        }
    }
}

fn compile_error(error: &thompson::BuildError) -> Error {
    match error.size_limit() {
        Some(limit) => Error::limit_exceeded(format_args!(
            "pattern: compiled, the expression is over the bound of {limit} bytes"
        )),
        None => Error::invalid_input(format_args!("pattern: {error}")),
    }
}

fn syntax_error(error: &ast::Error) -> Error {
    let (what, at) = (error.kind(), error.span().start.offset);
    Error::invalid_input(format_args!("pattern: no regular expression: {what} at byte {at}"))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod translate_tests;
