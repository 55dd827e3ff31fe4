//! Results of a search, and the answer as JSON.
//!
//! Input: rendered rows, counts, cursors and the limits of the read. Output: the answer of a grep
//! call.

use alloc::{string::String, vec::Vec};

use super::render_hits::RenderedHit;
use crate::storage::read_scope::{ReadLimits, RecallAnswer};
use lcm_text::base::{int, json::JsonWriter};

/// Results of a search before they become JSON.
#[derive(Default)]
pub(super) struct GrepResults {
    /// Rendered hits in order, at most `limit`.
    pub(super) rows: Vec<RenderedHit>,
    /// Number of matches, including those without a row; on a page of a longer scan, only the
    /// matches of the page.
    pub(super) total: u64,
    /// Whether a file has more passages than the ten that were kept, or a message may name more
    /// files than were searched.
    pub(super) has_more: bool,
    /// Whether the query was ignored in part: it has too many words, or too many documents contain
    /// some of its words.
    pub(super) is_cut: bool,
    /// Cursor at which the next page begins; `None`: no page follows.
    pub(super) next_cursor: Option<String>,
    /// For a page of a longer scan over messages and summaries: the cursor of each row. Empty for
    /// any other answer.
    pub(super) cursors: Vec<String>,
}

/// Renders the results as JSON, with the first rows whose tokens together fit `limits.tokens_max`.
pub(super) fn render_results(
    results: GrepResults,
    limits: ReadLimits<'_>,
    mut notes: Vec<&str>,
) -> RecallAnswer {
    let GrepResults { rows, mut total, has_more, is_cut, mut next_cursor, cursors } = results;
    let row_count = int::to_u64(rows.len());
    let (mut matches, mut tokens, mut count) = (JsonWriter::new_array(), 0u32, 0u64);
    let tokens_max = limits.tokens_max.unwrap_or(u32::MAX);
    for row in rows {
        let tokens_after = tokens.saturating_add(row.tokens);
        if tokens_after > tokens_max {
            break;
        }
        tokens = tokens_after;
        count += 1;
        matches.push_json(&row.json);
    }
    if let Some(cursor) = cursors.get(int::to_usize(count)) {
        // The next page begins with the first row that did not fit.
        (total, next_cursor) = (count, Some(cursor.clone()));
    }
    if is_cut && !notes.contains(&"terms-limited") {
        notes.push("terms-limited");
    }
    if next_cursor.is_some() {
        notes.push("scan-limited");
    }
    if has_more {
        notes.push("file-limited");
    }
    let mut answer = JsonWriter::new_object();
    limits.write_grant_note(tokens, row_count > count, &mut answer);
    answer.add_optional_text("cursor", next_cursor.as_deref());
    answer.add_array("matches", matches);
    answer.add_texts("notes", &notes);
    answer.add_number("total", total);
    answer.add_flag("truncated", total > count || has_more || next_cursor.is_some());
    RecallAnswer { cursors, ..RecallAnswer::new(answer, tokens) }
}
