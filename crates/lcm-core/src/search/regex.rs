//! Regular expressions: whether and where one matches in a text, in time linear in the text.
//!
//! A lazily built automaton does the work and reads each byte once. Where it cannot go on (a
//! Unicode word boundary beside a byte that is not ASCII, or an expression that needs ever new
//! states) a simulation of the same expression answers instead, slower but linear too, so that
//! every answer is complete. Not here: which texts are read.

mod classes;
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
    hir::Hir,
};

use self::translate::translate;
use super::gram_query::GramQuery;
use crate::error::{Error, Result};

/// Most bytes of an expression.
pub(crate) const PATTERN_BYTES_MAX: usize = 10_000;
/// Most bytes of a compiled expression; `\w` with all letters of the world takes 30 KiB.
const COMPILED_BYTES_MAX: usize = 2 << 20;
/// Groups that may stand in each other, so that no stack of a host is too small.
const NESTING_MAX: u32 = 100;
/// Memory of the automaton; when it is full the automaton begins anew.
const STATES_BYTES_MAX: usize = 4 << 20;
/// Fresh starts after which it has to prove worth building, and the bytes of text that each of its
/// states must have served: the measures of the regex crate.
const FRESH_STARTS_MIN: usize = 3;
const BYTES_PER_STATE_MIN: usize = 10;

/// A compiled regular expression with the memory that matching needs.
pub(crate) struct Regex {
    hir: Hir,
    forward: Automaton,
    /// Finds where a match begins; built when the first match is to be shown.
    backward: Option<Automaton>,
    simulation: Option<Box<Simulation>>,
}

struct Automaton {
    dfa: DFA,
    cache: Cache,
}

struct Simulation {
    vm: PikeVM,
    cache: pikevm::Cache,
}

impl Regex {
    /// Compiles an expression. Matching minds case unless it says `(?i)`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: over 10,000 bytes, or over 2 MiB when compiled; `invalid-input`: it is no
    /// expression, with the position.
    pub(crate) fn compile(pattern: &str) -> Result<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let length = pattern.len();
            return Err(Error::limit(format_args!(
                "pattern: an expression of {length} bytes is over the bound of {PATTERN_BYTES_MAX}"
            )));
        }
        let ast = ParserBuilder::new()
            .nest_limit(NESTING_MAX)
            .build()
            .parse(pattern)
            .map_err(|error| not_an_expression(&error))?;
        let hir = translate(&ast)?;
        let forward = Automaton::build(&hir, false)?;
        Ok(Self { hir, forward, backward: None, simulation: None })
    }

    /// What a text must hold to match.
    pub(crate) fn grams(&self) -> GramQuery {
        GramQuery::of(&self.hir)
    }

    /// Whether it matches anywhere in the text.
    pub(crate) fn is_match(&mut self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        match self.forward.dfa.try_search_fwd(&mut self.forward.cache, &input) {
            Ok(found) => found.is_some(),
            Err(_) => match self.simulation() {
                Some(Simulation { vm, cache }) => vm.is_match(cache, input),
                None => false,
            },
        }
    }

    /// The first match in the text, as a range of bytes on character boundaries.
    pub(crate) fn find(&mut self, text: &str) -> Option<Range<usize>> {
        match self.find_quickly(text) {
            Some(found) => found,
            None => {
                let Simulation { vm, cache } = self.simulation()?;
                vm.find(cache, text).map(|found| found.range())
            }
        }
    }

    /// As [`Regex::find`]; `None`: the automata cannot tell.
    fn find_quickly(&mut self, text: &str) -> Option<Option<Range<usize>>> {
        let Automaton { dfa, cache } = &mut self.forward;
        let Some(end) = dfa.try_search_fwd(cache, &Input::new(text)).ok()? else {
            return Some(None);
        };
        if self.backward.is_none() {
            self.backward = Automaton::build(&self.hir, true).ok();
        }
        let Automaton { dfa, cache } = self.backward.as_mut()?;
        let input = Input::new(text).range(..end.offset()).anchored(Anchored::Yes);
        let start = dfa.try_search_rev(cache, &input).ok()??;
        Some(Some(start.offset()..end.offset()))
    }

    fn simulation(&mut self) -> Option<&mut Simulation> {
        if self.simulation.is_none() {
            // The automaton was built from the same expression, so this cannot fail.
            let vm = PikeVM::new_from_nfa(self.forward.dfa.get_nfa().clone()).ok()?;
            let cache = vm.create_cache();
            self.simulation = Some(Box::new(Simulation { vm, cache }));
        }
        self.simulation.as_deref_mut()
    }
}

impl Automaton {
    fn build(hir: &Hir, backward: bool) -> Result<Self> {
        let config = thompson::Config::new()
            .reverse(backward)
            .which_captures(if backward { WhichCaptures::None } else { WhichCaptures::Implicit })
            .nfa_size_limit(Some(COMPILED_BYTES_MAX));
        let nfa: NFA = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(hir)
            .map_err(|error| not_compiled(&error))?;
        // Backward the longest match is the leftmost start.
        let kind = if backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = DFA::config()
            .match_kind(kind)
            .unicode_word_boundary(true)
            .cache_capacity(STATES_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(FRESH_STARTS_MIN))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN));
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| {
            Error::limit(format_args!("pattern: too large to compile: {error}"))
        })?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }
}

fn not_compiled(error: &thompson::BuildError) -> Error {
    match error.size_limit() {
        Some(limit) => Error::limit(format_args!(
            "pattern: compiled, the expression is over the bound of {limit} bytes"
        )),
        None => Error::invalid(format_args!("pattern: {error}")),
    }
}

fn not_an_expression(error: &ast::Error) -> Error {
    let (what, at) = (error.kind(), error.span().start.offset);
    Error::invalid(format_args!("pattern: no regular expression: {what} at byte {at}"))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod translate_tests;
