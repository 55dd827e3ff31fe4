//! Rendering of selected messages and summaries in the dialects of providers and frameworks.
//!
//! In: the selected messages and summaries, in order. Out: the JSON array, the elements that each
//! entry became, and notes on the changes. Three steps: every entry becomes turns of blocks
//! ([`normalize`]), tool calls are paired with results ([`pair_tool_calls`]), and the dialect
//! writes the turns. No step reads the store.

mod anthropic;
mod approvals;
mod array_writer;
mod file_content;
mod frameworks;
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
    render_entry::{ArrayPart, EntryOrigin, EntryText, RenderEntry},
    render_notes::{RenderNote, RenderNotes},
    render_output::{OutputElement, RenderOutput},
};
use lcm_text::types::api::Dialect;

/// Renders entries for a provider. The caller has taken leading system messages out.
pub(super) fn render(dialect: Dialect, entries: &[RenderEntry], part: ArrayPart) -> RenderOutput {
    let mut notes = RenderNotes::default();
    let mut turns = normalize::normalize_entries(dialect, entries);
    let mut ids = Vec::new();
    ids::collect_ids(&turns, &mut ids);
    let is_independent = ids::is_independent(&turns);
    approvals::keep_last_approvals(dialect, entries, &mut turns);
    let pairs = pair_tool_calls::pair_calls(dialect, &mut turns, &mut notes);
    // Pairing gives some calls new ids.
    ids::collect_ids(&turns, &mut ids);
    let writer = match dialect {
        Dialect::Anthropic => anthropic::write(&turns, part, &mut notes),
        Dialect::OpenaiResponses => openai_responses::write(&turns, &mut notes),
        Dialect::Gemini => gemini::write(&turns, part, &mut notes),
        // The dialect `lcm` needs no rendering: no caller passes it.
        Dialect::OpenaiChat | Dialect::Lcm => openai_chat::write(&turns, &mut notes),
        Dialect::AiSdk | Dialect::Openclaw | Dialect::Langchain | Dialect::OpenaiAgents => {
            frameworks::write(dialect, &turns, &mut notes)
        }
    };
    let array_writer::ArrayWriter { json, starts, elements, .. } = writer;
    RenderOutput { json, starts, elements, notes, ids, pairs, is_independent }
}
