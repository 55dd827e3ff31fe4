//! Splits a source into excerpts, the pieces of text to select from, with their terms and cues.
//!
//! Input: a parsed source. Output: a [`SourceAnalysis`] for the selection.

use alloc::vec::Vec;
use core::ops::Range;

use super::{
    cues,
    segmentation::{self, LineSegment, line_quarters},
    term_hash::fnv_hash,
    term_scanner::TermClass,
    terms::{ExcerptPosition, TermTable, TermUse},
    transcript_parser::{ParsedTranscript, Speaker, TranscriptBlock, TranscriptLine},
};
use crate::summary::transcript::{self, LineKind};

/// Least number of messages of a source in which the rarity of a term is counted by messages; in a
/// shorter source, rarity is counted by excerpts.
const MESSAGES_MIN: usize = 4;
/// Fewest characters of an excerpt that is kept, whatever its quarter tokens.
const CHARACTERS_MIN: usize = 8;
/// Quarter tokens of the mark before a text that begins like a line of the engine.
pub(super) const MARK_QUARTERS: u32 = 5;
/// Fewest quarter tokens of an excerpt that is kept, whatever its characters.
const QUARTERS_MIN: u32 = 40;

/// A piece of one source line that may be quoted.
#[derive(Clone, Debug)]
pub(super) struct Excerpt<'a> {
    /// The text to quote.
    pub(super) text: &'a str,
    /// Byte range in its line.
    pub(super) range: Range<usize>,
    /// Index of its line.
    pub(super) line: usize,
    /// Index of its block.
    pub(super) block: usize,
    /// Speaker of the line.
    pub(super) speaker: Speaker,
    /// Whether the text begins like a line of the engine and is quoted behind a mark.
    pub(super) is_marked: bool,
    /// Length in quarter tokens, of the mark too.
    pub(super) quarter_tokens: u32,
    /// Cues of its words.
    pub(super) cues: u32,
    /// For an excerpt with the cue of an error: [`hash_digit_shape`] of its text; else 0.
    pub(super) digit_shape: u64,
    /// Whether it has an identifier, a number or a name.
    pub(super) is_substantial: bool,
    /// Its terms, as a range of [`SourceAnalysis::term_uses`].
    pub(super) term_uses: Range<usize>,
    /// Index of the excerpt in which the innermost JSON object around its beginning opens, or of
    /// its line's first excerpt if none is open there. Its own index if that excerpt was removed,
    /// or its line is short or no JSON.
    pub(super) record: usize,
}

/// A source split into excerpts.
#[derive(Debug)]
pub(super) struct SourceAnalysis<'a> {
    /// Messages in order.
    pub(super) blocks: Vec<TranscriptBlock<'a>>,
    /// Lines in order.
    pub(super) lines: Vec<TranscriptLine<'a>>,
    /// Excerpts in order.
    pub(super) excerpts: Vec<Excerpt<'a>>,
    /// Terms of all excerpts, concatenated.
    pub(super) term_uses: Vec<TermUse>,
    /// All distinct terms.
    pub(super) terms: TermTable<'a>,
}

impl<'a> SourceAnalysis<'a> {
    /// Splits the lines of a source into excerpts and collects their terms.
    pub(super) fn new(source: ParsedTranscript<'a>) -> Self {
        let ParsedTranscript { blocks, lines, .. } = source;
        let mut pieces = filter_usable(split_lines(&lines), blocks.len());
        let mut uses = Vec::new();
        let mut terms = TermTable::new();
        let by_message = blocks.len() >= MESSAGES_MIN;
        for (number, piece) in pieces.iter_mut().enumerate() {
            let start = uses.len();
            let unit = saturate_to_u32(if by_message { piece.block } else { number });
            let position = ExcerptPosition { piece: saturate_to_u32(number), unit };
            let words = terms.add_excerpt(piece.text, position, &mut uses);
            piece.term_uses = start..uses.len();
            piece.is_substantial = uses.iter().skip(start).any(|found| {
                matches!(found.class, TermClass::Identifier | TermClass::Number | TermClass::Name)
            });
            piece.cues = cues::classify_cues(words, piece.text);
            if piece.cues & cues::ERROR != 0 {
                piece.digit_shape = hash_digit_shape(piece.text);
            }
        }
        for found in &mut uses {
            found.value = terms.coverage_value(found);
        }
        Self { blocks, lines, excerpts: pieces, term_uses: uses, terms }
    }

    /// Returns the terms of an excerpt.
    pub(super) fn term_uses_of(&self, piece: &Excerpt<'a>) -> &[TermUse] {
        self.term_uses.get(piece.term_uses.clone()).unwrap_or(&[])
    }
}

/// Returns whether a text would begin a line like a line of the engine.
pub(super) fn is_frame(text: &str) -> bool {
    transcript::find_frame(text, LineKind::Content).is_some()
}

fn saturate_to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn split_lines<'a>(lines: &[TranscriptLine<'a>]) -> Vec<Excerpt<'a>> {
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let first = all.len();
        for LineSegment { range, record } in segmentation::segment_line(line.text) {
            let text = line.text.get(range.clone()).unwrap_or("");
            // A label of the engine begins its line.
            let is_marked = !(line.is_label && range.start == 0) && is_frame(text);
            all.push(Excerpt {
                text,
                range,
                line: number,
                block: line.block,
                speaker: line.speaker,
                is_marked,
                quarter_tokens: line_quarters(text).saturating_add(if is_marked {
                    MARK_QUARTERS
                } else {
                    0
                }),
                cues: 0,
                digit_shape: 0,
                is_substantial: false,
                term_uses: 0..0,
                record: first + record,
            });
        }
    }
    all
}

/// Removes excerpts that are too short to be understood alone; each block keeps its longest
/// excerpt.
fn filter_usable(all: Vec<Excerpt<'_>>, blocks: usize) -> Vec<Excerpt<'_>> {
    let stands_alone = |piece: &Excerpt<'_>| {
        piece.quarter_tokens >= QUARTERS_MIN || piece.text.chars().nth(CHARACTERS_MIN - 1).is_some()
    };
    // For each block, quarter tokens and index of the longest excerpt.
    let mut longest: Vec<Option<(u32, usize)>> = alloc::vec![None; blocks];
    for (number, piece) in all.iter().enumerate() {
        if let Some(best) = longest.get_mut(piece.block)
            && best.is_none_or(|(length, _)| piece.quarter_tokens > length)
        {
            *best = Some((piece.quarter_tokens, number));
        }
    }
    let is_longest = |number: usize, piece: &Excerpt<'_>| {
        longest.get(piece.block).is_some_and(|best| best.is_some_and(|(_, at)| at == number))
    };
    // Records refer to excerpts by index, so the indexes are adjusted.
    let mut moved: Vec<Option<usize>> = Vec::with_capacity(all.len());
    let mut kept: Vec<Excerpt<'_>> = Vec::new();
    for (number, mut piece) in all.into_iter().enumerate() {
        if !stands_alone(&piece) && !is_longest(number, &piece) {
            moved.push(None);
            continue;
        }
        let here = kept.len();
        moved.push(Some(here));
        piece.record = moved.get(piece.record).copied().flatten().unwrap_or(here);
        kept.push(piece);
    }
    kept
}

/// Returns a hash that is equal for texts that differ only in digits, also in how many digits a
/// number has.
fn hash_digit_shape(text: &str) -> u64 {
    let fold = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    let mut folded: Vec<u8> = text.bytes().map(fold).collect();
    folded.dedup_by(|next, last| *next == b'0' && *last == b'0');
    fnv_hash(&folded)
}
