//! Renders the selected excerpts in the order of the source, and the footer.
//!
//! Input: a source and a [`Selection`]. Output: the text of the summary. The footer is the last
//! line, `Expand for details about:` and names.

use alloc::{string::String, vec::Vec};

use super::{
    analysis::{Excerpt, SourceAnalysis},
    segmentation::line_quarters,
    selection::{Selection, separator_between},
    term_scanner::TermClass,
    terms::SourceTerm,
};
use crate::{
    base::{sort, tokens::TokenMeter},
    summary::transcript::{EXPAND_PREFIX, MARK},
};

/// The footer's entry if it has no other: no omitted name and no entry of an earlier footer was
/// added.
const NAMELESS: &str = "the full text";
/// Most entries of earlier footers that are considered.
const LEADS_MAX: usize = 512;
/// Most bytes of a name in the footer.
const NAME_MAX: usize = 60;

/// Renders the selected excerpts, each line with a line break; empty if no excerpt is selected.
pub(super) fn render_body(material: &SourceAnalysis<'_>, selection: &Selection<'_, '_>) -> String {
    let mut out = String::new();
    let mut last: Option<&Excerpt<'_>> = None;
    let mut last_day = None;
    for piece in selection.chosen_excerpts() {
        match last {
            Some(left) if left.line == piece.line => {
                out.push_str(separator_between(material, left, piece));
            }
            Some(_) => out.push('\n'),
            None => {}
        }
        let opens = last.is_none_or(|left| left.block != piece.block);
        if let Some(block) = material.blocks.get(piece.block).filter(|_| opens)
            && block.has_header()
        {
            let is_timed = !block.time.is_empty();
            let dated = is_timed && selection.is_dated() && last_day != Some(block.day);
            if is_timed {
                last_day = Some(block.day);
            }
            let date = if dated { block.date } else { "" };
            push_header(&mut out, &[date, block.time, block.role]);
        }
        // Behind another piece of its line, a piece begins no line.
        if piece.is_marked && last.is_none_or(|left| left.line != piece.line) {
            out.push(MARK);
        }
        out.push_str(piece.text);
        last = Some(piece);
    }
    if last.is_some() {
        out.push('\n');
    }
    out
}

fn push_header(out: &mut String, words: &[&str]) {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    out.push('[');
    out.push_str(&words.join(" "));
    out.push_str("] ");
}

/// Appends the footer, which names omitted details, in at most `room` quarter tokens; nothing if no
/// entry fits. `leads` are the entries of earlier footers.
pub(super) fn append_footer(
    out: &mut String,
    material: &SourceAnalysis<'_>,
    selection: &Selection<'_, '_>,
    leads: &[&str],
    room: u32,
) {
    let mut meter = TokenMeter::default();
    meter.push_text(EXPAND_PREFIX);
    let mut line = String::from(EXPAND_PREFIX);
    // The cost is checked first, because the search in the text is slower.
    let mut push = |line: &mut String, name: &str, is_new: &dyn Fn(&str) -> bool| {
        let separator = if line.len() == EXPAND_PREFIX.len() { " " } else { ", " };
        let mut longer = meter.clone();
        longer.push_text(separator);
        longer.push_text(name);
        if longer.quarter_tokens() <= u64::from(room) && is_new(line) {
            meter = longer;
            line.push_str(separator);
            line.push_str(name);
        }
    };
    // A name is left out if the text has it, for example as part of a longer term.
    for name in list_omitted_names(material, selection) {
        push(&mut line, name, &|_| !out.contains(name));
    }
    for lead in leads.iter().take(LEADS_MAX).filter(|lead| **lead != NAMELESS) {
        push(&mut line, lead, &|line| !out.contains(*lead) && !line.contains(*lead));
    }
    if line.len() == EXPAND_PREFIX.len() {
        push(&mut line, NAMELESS, &|_| true);
    }
    if line.len() > EXPAND_PREFIX.len() {
        out.push_str(&line);
    }
}

/// Estimates the quarter tokens that the footer needs, at most `limit`; the limit must fit a footer
/// without names.
pub(super) fn estimate_footer_size(
    material: &SourceAnalysis<'_>,
    selection: &Selection<'_, '_>,
    leads: &[&str],
    limit: u32,
) -> u32 {
    let nameless = line_quarters(EXPAND_PREFIX) + line_quarters(NAMELESS);
    list_omitted_names(material, selection)
        .into_iter()
        .chain(leads.iter().take(LEADS_MAX).copied())
        .map(|name| line_quarters(name).saturating_add(2))
        .fold(line_quarters(EXPAND_PREFIX), u32::saturating_add)
        .max(nameless)
        .min(limit)
}

fn is_listable(term: &SourceTerm<'_>) -> bool {
    term.is_name() && term.text.len() <= NAME_MAX && term.text.chars().count() >= 3
}

/// Lists the names that are in the source but not in the selection: identifiers first, then the
/// most frequent, then the earliest.
fn list_omitted_names<'a>(
    material: &SourceAnalysis<'a>,
    selection: &Selection<'_, 'a>,
) -> Vec<&'a str> {
    let mut names: Vec<(bool, u32, usize, &'a str)> = material
        .terms
        .iter()
        .enumerate()
        .filter(|(number, term)| is_listable(term) && !selection.covers_term(*number))
        .map(|(number, term)| {
            (term.class == TermClass::Name, u32::MAX - term.count, number, term.text)
        })
        .collect();
    sort::sort(&mut names);
    names.into_iter().map(|(_, _, _, text)| text).collect()
}
