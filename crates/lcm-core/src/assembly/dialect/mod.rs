//! Renders what was chosen in the dialects of the providers.
//!
//! In: the chosen messages and summaries in order. Out: the JSON array, what each of them became in
//! it, and notes on what could not stay as it was. The steps: every entry becomes a turn of blocks
//! ([`normalize`]), calls and results find each other ([`pair_tool_calls`]), and the
//! dialect writes the turns down.
//! What is chosen is decided before; nothing here reads the store.

mod anthropic;
mod array_writer;
mod file_content;
mod gemini;
mod ids;
mod lcm;
mod normalize;
mod openai_chat;
mod openai_responses;
mod pair_tool_calls;
mod render_entry;
mod render_notes;
mod render_output;
mod role_alternation;
mod tool_output;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

pub(super) use self::{
    anthropic::push_with_cache_control,
    lcm::from_provider,
    render_entry::{EntryOrigin, EntryText, RenderEntry},
    render_notes::{RenderNote, RenderNotes},
    render_output::{OutputElement, RenderOutput},
};
use lcm_text::types::api::Dialect;

/// Renders entries; those that stand beside the array are not among them. `begun`: others were
/// rendered before them.
pub(super) fn render(dialect: Dialect, entries: &[RenderEntry], begun: bool) -> RenderOutput {
    let mut notes = RenderNotes::default();
    let mut turns = normalize::normalize_entries(dialect, entries);
    let mut ids = Vec::new();
    ids::collect_ids(&turns, &mut ids);
    let stands_alone = ids::is_independent(&turns);
    let pairs = pair_tool_calls::pair_calls(dialect, &mut turns, &mut notes);
    // Those that pairing made up, too.
    ids::collect_ids(&turns, &mut ids);
    let sink = match dialect {
        Dialect::Anthropic => anthropic::write(&turns, begun, &mut notes),
        Dialect::OpenaiResponses => openai_responses::write(&turns, &mut notes),
        Dialect::Gemini => gemini::write(&turns, entries, begun, &mut notes),
        // Messages for `lcm` are written as they are and never come here.
        Dialect::OpenaiChat | Dialect::Lcm => openai_chat::write(&turns, &mut notes),
    };
    let array_writer::ArrayWriter { json, starts, elements, .. } = sink;
    RenderOutput { json, starts, elements, notes, ids, pairs, is_independent: stands_alone }
}
