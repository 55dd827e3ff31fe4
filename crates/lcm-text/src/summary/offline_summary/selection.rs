//! Selects excerpts for a summary: first requests, errors and outcomes, each within a share of the
//! budget; then the excerpts that cover most new terms for their cost.
//!
//! Input: a [`SourceAnalysis`] and a budget in quarter tokens. Output: a [`Selection`] to render.

use alloc::{collections::BinaryHeap, vec::Vec};

use super::{
    analysis::{Excerpt, SourceAnalysis},
    cues,
    segmentation::line_quarters,
    transcript_parser::{Speaker, TranscriptBlock},
};
use crate::base::{int, sort, tokens::TokenMeter};

/// Separates pieces of one line between which text was left out.
pub(super) const GAP: &str = " ... ";
/// Length of [`GAP`] in quarter tokens.
const GAP_QUARTERS: u32 = 10;

/// Share of the budget for requests of users, in percent.
const REQUESTS_PERCENT: u32 = 22;
/// Share of the budget for errors, in percent.
const ERRORS_PERCENT: u32 = 15;
/// Share of the budget for outcomes, in percent: once for the assistant and once for tools, because
/// tool results outnumber the assistant's conclusions.
const OUTCOMES_PERCENT: u32 = 6;

/// Additional gain of an excerpt in which a program reports an error.
const REPORT_GAIN: u32 = 40;
/// Additional gain of any other excerpt with an error word.
const ERROR_GAIN: u32 = 12;

/// Quarter tokens of a date and the space after it.
const DATE_QUARTERS: u32 = 30;

/// The selected excerpts and their cost in quarter tokens.
#[derive(Debug)]
pub(super) struct Selection<'m, 'a> {
    material: &'m SourceAnalysis<'a>,
    /// Indexes of the selected excerpts, ascending.
    chosen: Vec<u64>,
    /// For each excerpt, whether the excerpt is selected.
    is_chosen: Vec<bool>,
    /// Cost of each block's header, without the date.
    headers: Vec<u32>,
    /// For each term, whether a selected excerpt has the term.
    covered_terms: Vec<bool>,
    /// For each line, whether an excerpt of the line is selected.
    lines: Vec<bool>,
    /// For each block, whether an excerpt of the block is selected.
    blocks: Vec<bool>,
    /// For each day, whether an excerpt of the day is selected.
    days: Vec<bool>,
    /// Digit shapes of the selected excerpts with errors, ascending.
    chosen_error_shapes: Vec<u64>,
    /// Cost of the selected excerpts as rendered, in quarter tokens.
    used_quarters: u32,
}

impl<'m, 'a> Selection<'m, 'a> {
    /// Selects excerpts whose rendered text costs at most `budget` quarter tokens.
    pub(super) fn new(material: &'m SourceAnalysis<'a>, budget: u32) -> Self {
        let days = material.blocks.last().map_or(0, |block| block.day.saturating_add(1));
        let days = usize::try_from(days).unwrap_or(usize::MAX);
        let mut this = Self {
            material,
            chosen: Vec::new(),
            is_chosen: alloc::vec![false; material.excerpts.len()],
            headers: material.blocks.iter().map(header_cost).collect(),
            covered_terms: alloc::vec![false; material.terms.len()],
            lines: alloc::vec![false; material.lines.len()],
            blocks: alloc::vec![false; material.blocks.len()],
            days: alloc::vec![false; days],
            chosen_error_shapes: Vec::new(),
            used_quarters: 0,
        };
        let share = |percent: u32| budget / 100 * percent + budget % 100 * percent / 100;
        let reserves = [
            (this.find_request_excerpts(), REQUESTS_PERCENT),
            (this.find_error_excerpts(), ERRORS_PERCENT),
            (this.find_outcome_excerpts(Speaker::Assistant), OUTCOMES_PERCENT),
            (this.find_outcome_excerpts(Speaker::Tool), OUTCOMES_PERCENT),
        ];
        for (candidates, percent) in reserves {
            let limit = this.used_quarters.saturating_add(share(percent));
            this.fill_greedily(candidates, limit.min(budget));
        }
        this.extend_to_budget(budget);
        this
    }

    /// Selects more excerpts, up to a larger budget.
    pub(super) fn extend_to_budget(&mut self, budget: u32) {
        self.fill_greedily((0..self.material.excerpts.len()).collect(), budget);
    }

    /// Returns the selected excerpts in the order of the source.
    pub(super) fn chosen_excerpts(&self) -> impl Iterator<Item = &'m Excerpt<'a>> {
        self.chosen.iter().filter_map(|number| self.material.excerpts.get(int::to_usize(*number)))
    }

    fn contains_excerpt(&self, piece: usize) -> bool {
        self.is_chosen.get(piece).copied().unwrap_or(false)
    }

    /// Returns whether a selected excerpt has the term.
    pub(super) fn covers_term(&self, term: usize) -> bool {
        self.covered_terms.get(term).copied().unwrap_or(false)
    }

    /// Returns whether dates are rendered before times.
    pub(super) fn is_dated(&self) -> bool {
        self.days.len() > 1
    }

    /// Selects the candidates with the greatest gain for their cost that fit `limit`; on a tie, the
    /// earlier candidate.
    fn fill_greedily(&mut self, candidates: Vec<usize>, limit: u32) {
        let fits = |this: &Self, piece: usize| {
            // An excerpt between two selected excerpts can save the gap between them.
            let room = limit.saturating_sub(this.used_quarters).saturating_add(GAP_QUARTERS);
            this.material.excerpts.get(piece).is_some_and(|piece| piece.quarter_tokens <= room)
        };
        let candidates = candidates.into_iter().filter(|piece| fits(self, *piece));
        let entries: Vec<_> = candidates.filter_map(|piece| self.score_candidate(piece)).collect();
        let mut heap: BinaryHeap<(u64, u64)> = BinaryHeap::from(entries);
        while let Some((score, place)) = heap.pop() {
            let piece = decode_tie_break(place);
            if !fits(self, piece) {
                continue;
            }
            // Earlier selections may have lowered the score of this excerpt.
            let Some(now) = self.score_candidate(piece) else { continue };
            if now.0 < score && heap.peek().is_some_and(|next| *next > now) {
                heap.push(now);
            } else {
                self.choose_within(piece, limit);
            }
        }
    }

    /// Returns score and tie break of an excerpt; `None`: the excerpt is selected or has no gain.
    fn score_candidate(&self, number: usize) -> Option<(u64, u64)> {
        let piece =
            self.material.excerpts.get(number).filter(|_| !self.contains_excerpt(number))?;
        let mut gain = self.compute_gain(piece);
        let mut cost = self.compute_cost(number, piece);
        if let Some(record) = self.find_missing_record(number, piece) {
            gain = gain.saturating_add(self.compute_gain(record));
            cost = cost.saturating_add(self.compute_cost(piece.record, record));
        }
        let score = u64::from(gain).saturating_mul(4096) / u64::from(cost.max(1));
        (gain > 0).then_some((score, encode_tie_break(number)))
    }

    /// Returns the excerpt in which the record of `piece` begins; `None`: the record begins in
    /// `piece`, or this excerpt is selected.
    fn find_missing_record(&self, number: usize, piece: &Excerpt<'a>) -> Option<&'m Excerpt<'a>> {
        let missing = piece.record != number && !self.contains_excerpt(piece.record);
        if missing { self.material.excerpts.get(piece.record) } else { None }
    }

    fn choose_within(&mut self, number: usize, limit: u32) {
        let Some(piece) = self.material.excerpts.get(number) else { return };
        let mut cost = self.compute_cost(number, piece);
        let record = self.find_missing_record(number, piece);
        if let Some(record) = record {
            let extra = self.compute_cost(piece.record, record).saturating_add(GAP_QUARTERS);
            cost = cost.saturating_add(extra);
        }
        if self.used_quarters.saturating_add(cost) > limit {
            return;
        }
        if let Some(record) = record {
            self.add_chosen(piece.record, record);
        }
        self.add_chosen(number, piece);
    }

    fn add_chosen(&mut self, number: usize, piece: &Excerpt<'a>) {
        self.used_quarters = self.used_quarters.saturating_add(self.compute_cost(number, piece));
        insert_sorted(&mut self.chosen, int::to_u64(number));
        set_flag(&mut self.is_chosen, number);
        set_flag(&mut self.lines, piece.line);
        set_flag(&mut self.blocks, piece.block);
        if let Some(block) = self.material.blocks.get(piece.block) {
            set_flag(&mut self.days, usize::try_from(block.day).unwrap_or(usize::MAX));
        }
        for found in self.material.term_uses_of(piece) {
            set_flag(&mut self.covered_terms, usize::try_from(found.term).unwrap_or(usize::MAX));
        }
        if piece.cues & cues::ERROR != 0 {
            insert_sorted(&mut self.chosen_error_shapes, piece.digit_shape);
        }
    }

    /// Returns the gain of an excerpt: the value of the terms that it would newly cover, weighted
    /// by speaker and cues.
    fn compute_gain(&self, piece: &Excerpt<'a>) -> u32 {
        let mut sum = 0_u32;
        for found in self.material.term_uses_of(piece) {
            let covered = usize::try_from(found.term).is_ok_and(|term| self.covers_term(term));
            sum = sum.saturating_add(if covered { 0 } else { found.value });
        }
        let voice = match piece.speaker {
            Speaker::User => 6,
            Speaker::Assistant => 5,
            Speaker::Tool | Speaker::Other => 4,
        };
        sum = sum.saturating_mul(voice) / 4;
        let is = |cue: u32| piece.cues & cue != 0;
        if is(cues::ERROR) && self.chosen_error_shapes.binary_search(&piece.digit_shape).is_err() {
            // The first error report of a digit shape has a gain even without a new term.
            let (report, word) = (REPORT_GAIN, if sum > 0 { ERROR_GAIN } else { 0 });
            sum = sum.saturating_add(if is(cues::REPORT) { report } else { word });
        }
        if sum > 0 {
            sum = sum
                .saturating_add(if is(cues::OUTCOME) { 6 } else { 0 })
                .saturating_add(if is(cues::DECISION) { 3 } else { 0 })
                .saturating_add(if is(cues::REQUEST) && piece.speaker == Speaker::User {
                    4
                } else {
                    0
                });
        }
        if is(cues::COURTESY) && !piece.is_substantial { sum / 4 } else { sum }
    }

    /// Returns the quarter tokens that an excerpt would add to the text.
    fn compute_cost(&self, number: usize, piece: &Excerpt<'a>) -> u32 {
        let mut cost = piece.quarter_tokens;
        if self.lines.get(piece.line).copied().unwrap_or(false) {
            let number = int::to_u64(number);
            let (before, after) =
                self.chosen.split_at(self.chosen.partition_point(|other| *other < number));
            let before = self.find_on_same_line(piece, before.last());
            let after = self.find_on_same_line(piece, after.iter().find(|other| **other != number));
            let between = |left, right| self.separator_cost(left, right);
            cost = cost.saturating_add(before.map_or(0, |left| between(left, piece)));
            cost = cost.saturating_add(after.map_or(0, |right| between(piece, right)));
            if let (Some(left), Some(right)) = (before, after) {
                cost = cost.saturating_sub(between(left, right));
            }
            return cost;
        }
        if !self.blocks.get(piece.block).copied().unwrap_or(true)
            && let Some(block) =
                self.material.blocks.get(piece.block).filter(|block| block.has_header())
        {
            cost = cost.saturating_add(self.headers.get(piece.block).copied().unwrap_or(0));
            let day = usize::try_from(block.day).unwrap_or(usize::MAX);
            if self.is_dated() && !self.days.get(day).copied().unwrap_or(true) {
                cost = cost.saturating_add(DATE_QUARTERS);
            }
        }
        cost
    }

    /// Returns the other excerpt; `None`: it is on another line, or `other` is `None`.
    fn find_on_same_line(
        &self,
        piece: &Excerpt<'a>,
        other: Option<&u64>,
    ) -> Option<&'m Excerpt<'a>> {
        let other = self.material.excerpts.get(int::to_usize(*other?))?;
        (other.line == piece.line).then_some(other)
    }

    fn separator_cost(&self, left: &Excerpt<'a>, right: &Excerpt<'a>) -> u32 {
        line_quarters(separator_between(self.material, left, right))
    }

    /// Returns one excerpt for each user message: the excerpt with the greatest gain for its cost.
    fn find_request_excerpts(&self) -> Vec<usize> {
        let mut best: Vec<(usize, (u64, u64))> = Vec::new();
        for (number, piece) in self.material.excerpts.iter().enumerate() {
            if piece.speaker != Speaker::User {
                continue;
            }
            let Some(entry) = self.score_candidate(number) else { continue };
            match best.last_mut() {
                Some((block, top)) if *block == piece.block => *top = (*top).max(entry),
                _ => best.push((piece.block, entry)),
            }
        }
        best.into_iter().map(|(_, (_, place))| decode_tie_break(place)).collect()
    }

    /// Returns the first excerpt with an error of each digit shape, in the order of the source.
    fn find_error_excerpts(&self) -> Vec<usize> {
        let is_error = |piece: &Excerpt<'a>| piece.cues & cues::ERROR != 0;
        let pieces = self.material.excerpts.iter().zip(0u64..);
        let errors = pieces.filter(|(piece, _)| is_error(piece));
        let mut errors: Vec<(u64, u64)> =
            errors.map(|(piece, at)| (piece.digit_shape, at)).collect();
        sort::sort(&mut errors);
        errors.dedup_by_key(|(shape, _)| *shape);
        let mut firsts: Vec<u64> = errors.into_iter().map(|(_, at)| at).collect();
        sort::sort_numbers(&mut firsts);
        firsts.into_iter().map(int::to_usize).collect()
    }

    /// Returns the last excerpt of each turn of the assistant, or of each tool result. Calls and
    /// courtesies are left out.
    fn find_outcome_excerpts(&self, of: Speaker) -> Vec<usize> {
        let mut last: Vec<(Speaker, usize, usize)> = Vec::new();
        for (number, piece) in self.material.excerpts.iter().enumerate() {
            let call = piece.text.starts_with("tool call ");
            let idle = piece.cues & cues::COURTESY != 0 && !piece.is_substantial;
            if piece.speaker == Speaker::Other || call || idle {
                continue;
            }
            match last.last_mut() {
                // A new block continues a turn of the assistant, but begins a new tool result.
                Some((voice, block, at)) if *voice == piece.speaker => {
                    if *voice == Speaker::Tool && *block != piece.block {
                        last.push((piece.speaker, piece.block, number));
                    } else {
                        (*block, *at) = (piece.block, number);
                    }
                }
                _ => last.push((piece.speaker, piece.block, number)),
            }
        }
        last.retain(|(voice, _, _)| *voice == of);
        last.into_iter().map(|(_, _, number)| number).collect()
    }
}

/// Returns the separator of two selected pieces of one line: the text between the pieces if it is
/// blank, else [`GAP`].
pub(super) fn separator_between<'a>(
    material: &SourceAnalysis<'a>,
    left: &Excerpt<'a>,
    right: &Excerpt<'a>,
) -> &'a str {
    material
        .lines
        .get(left.line)
        .and_then(|line| line.text.get(left.range.end..right.range.start))
        .filter(|between| between.trim().is_empty())
        .unwrap_or(GAP)
}

/// Returns the cost of a block's header without the date.
fn header_cost(block: &TranscriptBlock<'_>) -> u32 {
    let mut meter = TokenMeter::default();
    meter.push_text("[00:00");
    if !block.role.is_empty() {
        meter.push_text(" ");
        meter.push_text(block.role);
    }
    meter.push_text("] ");
    int::saturate_tokens(meter.quarter_tokens())
}

/// Encodes an index so that the earlier excerpt has the greater key; [`decode_tie_break`] returns
/// the index.
fn encode_tie_break(number: usize) -> u64 {
    u64::MAX - int::to_u64(number)
}

fn decode_tie_break(place: u64) -> usize {
    int::to_usize(u64::MAX - place)
}

/// Inserts a number into an ascending list unless the list has the number.
fn insert_sorted(list: &mut Vec<u64>, number: u64) {
    if let Err(place) = list.binary_search(&number) {
        list.insert(place, number);
    }
}

fn set_flag(flags: &mut [bool], at: usize) {
    if let Some(flag) = flags.get_mut(at) {
        *flag = true;
    }
}
