//! Regular expressions with matching time linear in the text, and with a step budget.
//!
//! A lazily built automaton reads the text once to find the end of a match, and backward to find
//! its start. The automaton gives up at a non-ASCII byte if the expression has a Unicode word
//! boundary, and with too many states. Then a slower simulation of the same expression answers,
//! also in linear time. A text that exceeds the step budget of the query is refused. Elsewhere:
//! selecting and reading the texts.

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
/// Most bytes of a compiled expression; `\w` with all letters of Unicode takes about 30 KiB.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Compiled size in bytes above which no version without word boundaries is built.
const RELAXED_BYTES_MAX: usize = 128 << 10;
/// Deepest nesting of an expression, so that no host overflows its stack.
const NESTING_MAX: u32 = 100;
/// Bytes for the states of an automaton of few places. When the memory is full, all states are
/// dropped and built again. A new state costs as much as reading a thousand bytes. Ordinary
/// expressions need a few hundred states.
const STATES_BYTES_MAX: usize = 128 << 10;
/// Places (literal bytes and classes) by which the memory of an automaton shrinks one step: to a
/// half, a third and so on. States of more places take longer to build.
const STATE_PLACES: usize = 64;
/// Times that all states may be dropped before the automaton must be useful. Fewer than in the
/// regex crate, because a caller waits.
const FRESH_STARTS_MIN: usize = 1;
/// Bytes of text that an automaton must read for each state to be useful, plus one for each place.
const BYTES_PER_STATE_MIN: usize = 10;
/// Most steps of one query: less than a tenth of a second, however long the conversation is.
const STEPS_MAX: u64 = 12 << 20;
/// Steps for reading, inflating and matching one byte.
const READ_STEPS: u64 = 4;
/// Steps for one byte in the simulation.
const SIMULATED_STEPS: u64 = 24;
/// Further steps for one byte in the simulation, for each place of the expression.
const PLACE_STEPS: u64 = 6;
/// Number of places above which each further place costs twice [`PLACE_STEPS`].
const PLACES_FEW: u64 = 64;

/// Compiled regular expression with its caches and step budget.
pub(crate) struct Regex {
    hir: Hir,
    forward: LazyDfa,
    /// Automaton of the expression without word boundaries, for texts of any script. A text without
    /// a match here needs no simulation. Built on first use; the inner `None`: building failed.
    relaxed: Option<Option<LazyDfa>>,
    /// Automaton that finds the start of a match. `None`: not built yet, or too large to build.
    backward: Option<LazyDfa>,
    /// Simulation for texts at which the automata give up. `None`: not built yet.
    simulation: Option<Box<NfaSimulation>>,
    /// Steps for one byte in the simulation.
    simulated_steps: u64,
    /// Steps that the query may still spend.
    steps_left: u64,
    is_refused: bool,
}

/// Automaton that is built while it reads, with the cache of its states.
struct LazyDfa {
    dfa: DFA,
    cache: Cache,
}

/// Simulation of an expression, with its cache.
struct NfaSimulation {
    vm: PikeVM,
    cache: pikevm::Cache,
}

impl Regex {
    /// Compiles an expression. Matching is case-sensitive unless the expression has `(?i)`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: over 10,000 bytes, or over 1 MiB compiled; `invalid-input`: a syntax
    /// error, with its position, or syntax that is not offered.
    pub(crate) fn compile(pattern: &str) -> Result<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let length = pattern.len();
            return Err(Error::limit_exceeded(format_args!(
                "`pattern` must have at most {PATTERN_BYTES_MAX} bytes, got {length}"
            )));
        }
        let ast = ParserBuilder::new()
            .nest_limit(NESTING_MAX)
            .build()
            .parse(pattern)
            .map_err(|error| syntax_error(&error))?;
        let hir = translate_ast(&ast)?;
        let forward = LazyDfa::build(&hir, Direction::Forward, count_places(&hir))?;
        let places = count_places(&hir);
        // Many places exceed the cache of a processor, so their steps take longer.
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

    /// Restores the full step budget, for texts that are known to match.
    pub(crate) fn reset_budget(&mut self) {
        self.steps_left = STEPS_MAX;
    }

    /// Returns whether the step budget is spent.
    pub(crate) const fn is_budget_spent(&self) -> bool {
        self.steps_left == 0
    }

    /// Returns whether a text was refused, because matching it would exceed the step budget. Only
    /// [`Regex::find`] resets the flag.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Spends the steps of simulating a text. Returns `false` if too few are left, and then spends
    /// them all.
    fn spend_simulation(&mut self, text: &str) -> bool {
        let steps = lcm_text::base::int::to_u64(text.len()).saturating_mul(self.simulated_steps);
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Builds the condition over grams that every matching text fulfils.
    pub(crate) fn build_gram_query(&self) -> GramQuery {
        GramQuery::from_hir(&self.hir)
    }

    /// Returns whether the expression matches in a text. Also `false` if the text exceeds the
    /// budget: see [`Regex::is_refused`].
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
                // The simulation stopped at the end of the match: give back the steps of the text
                // behind it.
                let unread = lcm_text::base::int::to_u64(text.len() - found.end());
                self.steps_left += unread.saturating_mul(self.simulated_steps);
                true
            }
        }
    }

    /// Returns whether the expression without word boundaries matches; `true` if its automaton is
    /// too large or cannot decide.
    fn may_match(&mut self, text: &str) -> bool {
        if self.forward.dfa.get_nfa().memory_usage() > RELAXED_BYTES_MAX {
            return true;
        }
        let hir = &self.hir;
        let relaxed = self.relaxed.get_or_insert_with(|| {
            LazyDfa::build(&strip_word_boundaries(hir), Direction::Forward, count_places(hir)).ok()
        });
        let Some(LazyDfa { dfa, cache }) = relaxed else { return true };
        let found = dfa.try_search_fwd(cache, &Input::new(text).earliest(true));
        found.map_or(true, |found| found.is_some())
    }

    /// Returns the first match as a byte range on character boundaries; `None`: no match. If the
    /// text exceeds the budget, returns `0..0`.
    pub(crate) fn find(&mut self, text: &str) -> Option<Range<usize>> {
        self.is_refused = false;
        let found = self.find_from(text, 0);
        if self.is_refused { Some(0..0) } else { found }
    }

    /// Returns the first match that begins at `from` or later; text before `from` is context.
    /// `None`: no match, or the text exceeds the budget (see [`Regex::is_refused`]).
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

    /// Searches like [`Regex::find_from`] with the automata alone. `None`: the automata cannot
    /// decide; `Some(None)`: no match.
    fn find_with_dfa(&mut self, text: &str, from: usize) -> Option<Option<Range<usize>>> {
        let LazyDfa { dfa, cache } = &mut self.forward;
        let Some(end) = dfa.try_search_fwd(cache, &Input::new(text).range(from..)).ok()? else {
            return Some(None);
        };
        if self.backward.is_none() {
            self.backward =
                LazyDfa::build(&self.hir, Direction::Backward, count_places(&self.hir)).ok();
        }
        let LazyDfa { dfa, cache } = self.backward.as_mut()?;
        let input = Input::new(text).range(from..end.offset()).anchored(Anchored::Yes);
        let start = dfa.try_search_rev(cache, &input).ok()??;
        Some(Some(start.offset()..end.offset()))
    }

    fn ensure_simulation(&mut self) -> Option<&mut NfaSimulation> {
        if self.simulation.is_none() {
            // Cannot fail: the automaton uses the same compiled form.
            let vm = PikeVM::new_from_nfa(self.forward.dfa.get_nfa().clone()).ok()?;
            let cache = vm.create_cache();
            self.simulation = Some(Box::new(NfaSimulation { vm, cache }));
        }
        self.simulation.as_deref_mut()
    }
}

/// Direction in which an automaton reads a text.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

impl LazyDfa {
    fn build(hir: &Hir, direction: Direction, places: u64) -> Result<Self> {
        let backward = direction == Direction::Backward;
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
        // Backward, the longest match gives the leftmost start.
        let kind = if backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = DFA::config()
            .match_kind(kind)
            .unicode_word_boundary(true)
            .cache_capacity(STATES_BYTES_MAX / (1 + bytes_per_state / STATE_PLACES))
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(FRESH_STARTS_MIN))
            .minimum_bytes_per_state(Some(bytes_per_state));
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| {
            Error::limit_exceeded(format_args!("`pattern` must be smaller to compile: {error}"))
        })?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }
}

/// Removes word boundaries. The result matches every text that the original matches.
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

/// Counts the places of an expression: bytes of literals, and classes. A repetition counts its part
/// as often as its maximum, or without a maximum its minimum, at least once.
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
            "`pattern` must have at most {limit} bytes when compiled"
        )),
        None => Error::invalid_input(format_args!("`pattern` must compile: {error}")),
    }
}

fn syntax_error(error: &ast::Error) -> Error {
    let (what, at) = (error.kind(), error.span().start.offset);
    Error::invalid_input(format_args!(
        "`pattern` must be a valid regular expression: {what} at byte {at}"
    ))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod translate_tests;
