//! Chooses pieces: reserves for requests, errors and outcomes first, then whatever covers most of
//! the terms that are not covered yet for what it costs.

use alloc::{collections::BinaryHeap, vec::Vec};

use super::{
    cues,
    material::{Material, Piece},
    parse::{Block, Voice},
    pieces::quarters,
};
use crate::base::{int, sort};

/// Stands between pieces of one line that are not neighbours.
pub(super) const GAP: &str = " ... ";
/// Length of [`GAP`] in quarter tokens.
const GAP_QUARTERS: u32 = 5;

/// Shares of the budget for what must not be crowded out, in percent.
const REQUESTS_PERCENT: u32 = 22;
const ERRORS_PERCENT: u32 = 15;
/// Once for the assistant, once for tools: there are many more results than conclusions.
const OUTCOMES_PERCENT: u32 = 6;

/// What an error adds to the gain of its piece: one that a program reports, and a word about one.
const REPORT_GAIN: u32 = 40;
const ERROR_GAIN: u32 = 12;

/// Length of a date and the space after it.
const DATE_QUARTERS: u32 = 11;

/// What is chosen, and what it costs, to the quarter token.
#[derive(Debug)]
pub(super) struct Selection<'m, 'a> {
    material: &'m Material<'a>,
    /// Chosen pieces, and by piece whether it is one of them.
    chosen: Vec<u64>,
    is_chosen: Vec<bool>,
    /// By block: what its header costs, without the date.
    headers: Vec<u32>,
    /// By term.
    covered: Vec<bool>,
    /// By line, block and day: whether something of it is chosen.
    lines: Vec<bool>,
    blocks: Vec<bool>,
    days: Vec<bool>,
    /// Shapes of the error lines that are chosen.
    shapes: Vec<u64>,
    used: u32,
}

impl<'m, 'a> Selection<'m, 'a> {
    /// Chooses pieces whose text, as `render` writes it, costs at most `budget` quarter tokens.
    pub(super) fn new(material: &'m Material<'a>, budget: u32) -> Self {
        let days = material.blocks.last().map_or(0, |block| block.day.saturating_add(1));
        let days = usize::try_from(days).unwrap_or(usize::MAX);
        let mut this = Self {
            material,
            chosen: Vec::new(),
            is_chosen: alloc::vec![false; material.pieces.len()],
            headers: material.blocks.iter().map(header_cost).collect(),
            covered: alloc::vec![false; material.terms.len()],
            lines: alloc::vec![false; material.lines.len()],
            blocks: alloc::vec![false; material.blocks.len()],
            days: alloc::vec![false; days],
            shapes: Vec::new(),
            used: 0,
        };
        let share = |percent: u32| budget / 100 * percent + budget % 100 * percent / 100;
        let reserves = [
            (this.requests(), REQUESTS_PERCENT),
            (this.errors(), ERRORS_PERCENT),
            (this.outcomes(Voice::Assistant), OUTCOMES_PERCENT),
            (this.outcomes(Voice::Tool), OUTCOMES_PERCENT),
        ];
        for (candidates, percent) in reserves {
            let limit = this.used.saturating_add(share(percent));
            this.fill(candidates, limit.min(budget));
        }
        this.extend(budget);
        this
    }

    /// Chooses further pieces, up to a larger budget.
    pub(super) fn extend(&mut self, budget: u32) {
        self.fill((0..self.material.pieces.len()).collect(), budget);
    }

    /// The chosen pieces, in the order of the source.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &'m Piece<'a>> {
        self.chosen.iter().filter_map(|number| self.material.pieces.get(int::to_usize(*number)))
    }

    fn has(&self, piece: usize) -> bool {
        self.is_chosen.get(piece).copied().unwrap_or(false)
    }

    /// Whether a term stands in a chosen piece.
    pub(super) fn covers(&self, term: usize) -> bool {
        self.covered.get(term).copied().unwrap_or(false)
    }

    /// Whether dates are written before times.
    pub(super) fn is_dated(&self) -> bool {
        self.days.len() > 1
    }

    /// Takes the candidates with the best gain for their cost while they fit, ties to the earlier.
    fn fill(&mut self, candidates: Vec<usize>, limit: u32) {
        let fits = |this: &Self, piece: usize| {
            // A piece that joins two chosen ones saves the gap between them.
            let room = limit.saturating_sub(this.used).saturating_add(GAP_QUARTERS);
            this.material.pieces.get(piece).is_some_and(|piece| piece.quarters <= room)
        };
        let candidates = candidates.into_iter().filter(|piece| fits(self, *piece));
        let entries: Vec<_> = candidates.filter_map(|piece| self.entry(piece)).collect();
        let mut heap: BinaryHeap<(u64, u64)> = BinaryHeap::from(entries);
        while let Some((score, place)) = heap.pop() {
            let piece = at(place);
            if !fits(self, piece) {
                continue;
            }
            // Others were taken since: the piece may be worth less than it was.
            let Some(now) = self.entry(piece) else { continue };
            if now.0 < score && heap.peek().is_some_and(|next| *next > now) {
                heap.push(now);
            } else {
                self.take_within(piece, limit);
            }
        }
    }

    /// Score and [`place`] of a piece that is not chosen.
    fn entry(&self, number: usize) -> Option<(u64, u64)> {
        let piece = self.material.pieces.get(number).filter(|_| !self.has(number))?;
        let mut gain = self.gain(piece);
        let mut cost = self.cost(number, piece);
        if let Some(record) = self.missing_record(number, piece) {
            gain = gain.saturating_add(self.gain(record));
            cost = cost.saturating_add(self.cost(piece.record, record));
        }
        let score = u64::from(gain).saturating_mul(4096) / u64::from(cost.max(1));
        (gain > 0).then_some((score, place(number)))
    }

    /// The piece that says what the values of this one belong to, if it is not chosen yet.
    fn missing_record(&self, number: usize, piece: &Piece<'a>) -> Option<&'m Piece<'a>> {
        let missing = piece.record != number && !self.has(piece.record);
        if missing { self.material.pieces.get(piece.record) } else { None }
    }

    fn take_within(&mut self, number: usize, limit: u32) {
        let Some(piece) = self.material.pieces.get(number) else { return };
        let mut cost = self.cost(number, piece);
        let record = self.missing_record(number, piece);
        if let Some(record) = record {
            let extra = self.cost(piece.record, record).saturating_add(GAP_QUARTERS);
            cost = cost.saturating_add(extra);
        }
        if self.used.saturating_add(cost) > limit {
            return;
        }
        if let Some(record) = record {
            self.take(piece.record, record);
        }
        self.take(number, piece);
    }

    fn take(&mut self, number: usize, piece: &Piece<'a>) {
        self.used = self.used.saturating_add(self.cost(number, piece));
        insert(&mut self.chosen, int::to_u64(number));
        set(&mut self.is_chosen, number);
        set(&mut self.lines, piece.line);
        set(&mut self.blocks, piece.block);
        if let Some(block) = self.material.blocks.get(piece.block) {
            set(&mut self.days, usize::try_from(block.day).unwrap_or(usize::MAX));
        }
        for found in self.material.uses_of(piece) {
            set(&mut self.covered, usize::try_from(found.term).unwrap_or(usize::MAX));
        }
        if piece.cues & cues::ERROR != 0 {
            insert(&mut self.shapes, piece.shape);
        }
    }

    /// What a piece would add to what is covered.
    fn gain(&self, piece: &Piece<'a>) -> u32 {
        let mut sum = 0_u32;
        for found in self.material.uses_of(piece) {
            let covered = usize::try_from(found.term).is_ok_and(|term| self.covers(term));
            sum = sum.saturating_add(if covered { 0 } else { found.value });
        }
        let voice = match piece.voice {
            Voice::User => 6,
            Voice::Assistant => 5,
            Voice::Tool | Voice::Other => 4,
        };
        sum = sum.saturating_mul(voice) / 4;
        let is = |cue: u16| piece.cues & cue != 0;
        if is(cues::ERROR) && self.shapes.binary_search(&piece.shape).is_err() {
            // A report is worth keeping even if it names nothing rare.
            let (report, word) = (REPORT_GAIN, if sum > 0 { ERROR_GAIN } else { 0 });
            sum = sum.saturating_add(if is(cues::REPORT) { report } else { word });
        }
        if sum > 0 {
            sum = sum
                .saturating_add(if is(cues::OUTCOME) { 6 } else { 0 })
                .saturating_add(if is(cues::DECISION) { 3 } else { 0 })
                .saturating_add(if is(cues::REQUEST) && piece.voice == Voice::User {
                    4
                } else {
                    0
                });
        }
        if is(cues::COURTESY) && !piece.is_substantial { sum / 4 } else { sum }
    }

    /// What a piece would add to the text, in quarter tokens.
    fn cost(&self, number: usize, piece: &Piece<'a>) -> u32 {
        let mut cost = piece.quarters;
        if self.lines.get(piece.line).copied().unwrap_or(false) {
            let number = int::to_u64(number);
            let (before, after) =
                self.chosen.split_at(self.chosen.partition_point(|other| *other < number));
            let before = self.same_line(piece, before.last());
            let after = self.same_line(piece, after.iter().find(|other| **other != number));
            let between = |left, right| self.between(left, right);
            cost = cost.saturating_add(before.map_or(0, |left| between(left, piece)));
            cost = cost.saturating_add(after.map_or(0, |right| between(piece, right)));
            if let (Some(left), Some(right)) = (before, after) {
                cost = cost.saturating_sub(between(left, right));
            }
            return cost;
        }
        cost = cost.saturating_add(1);
        if !self.blocks.get(piece.block).copied().unwrap_or(true)
            && let Some(block) =
                self.material.blocks.get(piece.block).filter(|b| !b.time.is_empty())
        {
            cost = cost.saturating_add(self.headers.get(piece.block).copied().unwrap_or(0));
            let day = usize::try_from(block.day).unwrap_or(usize::MAX);
            if self.is_dated() && !self.days.get(day).copied().unwrap_or(true) {
                cost = cost.saturating_add(DATE_QUARTERS);
            }
        }
        cost
    }

    /// The other piece, if it is of the same line.
    fn same_line(&self, piece: &Piece<'a>, other: Option<&u64>) -> Option<&'m Piece<'a>> {
        let other = self.material.pieces.get(int::to_usize(*other?))?;
        (other.line == piece.line).then_some(other)
    }

    fn between(&self, left: &Piece<'a>, right: &Piece<'a>) -> u32 {
        quarters(separator(self.material, left, right))
    }

    /// One piece of each message of the user: the one that says most for its length.
    fn requests(&self) -> Vec<usize> {
        let mut best: Vec<(usize, (u64, u64))> = Vec::new();
        for (number, piece) in self.material.pieces.iter().enumerate() {
            if piece.voice != Voice::User {
                continue;
            }
            let Some(entry) = self.entry(number) else { continue };
            match best.last_mut() {
                Some((block, top)) if *block == piece.block => *top = (*top).max(entry),
                _ => best.push((piece.block, entry)),
            }
        }
        best.into_iter().map(|(_, (_, place))| at(place)).collect()
    }

    /// The first error line of each shape.
    fn errors(&self) -> Vec<usize> {
        let is_error = |piece: &Piece<'a>| piece.cues & cues::ERROR != 0;
        let pieces = self.material.pieces.iter().zip(0u64..);
        let errors = pieces.filter(|(piece, _)| is_error(piece));
        let mut errors: Vec<(u64, u64)> = errors.map(|(piece, at)| (piece.shape, at)).collect();
        sort::sort(&mut errors);
        errors.dedup_by_key(|(shape, _)| *shape);
        let mut firsts: Vec<u64> = errors.into_iter().map(|(_, at)| at).collect();
        sort::numbers(&mut firsts);
        firsts.into_iter().map(int::to_usize).collect()
    }

    /// The last piece of each turn of the assistant, or of each tool result.
    fn outcomes(&self, of: Voice) -> Vec<usize> {
        let mut last: Vec<(Voice, usize, usize)> = Vec::new();
        for (number, piece) in self.material.pieces.iter().enumerate() {
            let call = piece.text.starts_with("tool call ");
            let idle = piece.cues & cues::COURTESY != 0 && !piece.is_substantial;
            if piece.voice == Voice::Other || call || idle {
                continue;
            }
            match last.last_mut() {
                // Calls and results in between do not end a turn, a new result ends the last one.
                Some((voice, block, at)) if *voice == piece.voice => {
                    if *voice == Voice::Tool && *block != piece.block {
                        last.push((piece.voice, piece.block, number));
                    } else {
                        (*block, *at) = (piece.block, number);
                    }
                }
                _ => last.push((piece.voice, piece.block, number)),
            }
        }
        last.retain(|(voice, _, _)| *voice == of);
        last.into_iter().map(|(_, _, number)| number).collect()
    }
}

/// What stands between two chosen pieces of one line: what is there if that is blank, else a gap.
pub(super) fn separator<'a>(
    material: &Material<'a>,
    left: &Piece<'a>,
    right: &Piece<'a>,
) -> &'a str {
    material
        .lines
        .get(left.line)
        .and_then(|line| line.text.get(left.range.end..right.range.start))
        .filter(|between| between.trim().is_empty())
        .unwrap_or(GAP)
}

/// What the header of a block costs, without the date.
fn header_cost(block: &Block<'_>) -> u32 {
    quarters("[00:00] ") + quarters(block.role) + u32::from(!block.role.is_empty())
}

/// What orders the numbers of pieces so that the earlier one is the greater; [`at`] goes back.
fn place(number: usize) -> u64 {
    u64::MAX - int::to_u64(number)
}

fn at(place: u64) -> usize {
    int::to_usize(u64::MAX - place)
}

/// Adds a number to an ascending list, once.
fn insert(list: &mut Vec<u64>, number: u64) {
    if let Err(place) = list.binary_search(&number) {
        list.insert(place, number);
    }
}

fn set(flags: &mut [bool], at: usize) {
    if let Some(flag) = flags.get_mut(at) {
        *flag = true;
    }
}
