//! Neighbours: the messages before and after a hit.
//!
//! Input: hits and their rendered JSON. Output: the members `neighbours_before` and
//! `neighbours_after` in the JSON of each hit that is a message, with the beginning of each
//! neighbour. Messages outside the ranges that may be found are omitted. Elsewhere: finding and
//! rendering the hits (`execute`, `render_hits`).

use crate::storage::pack::PlacedMessage;
use alloc::{string::String, vec::Vec};
use core::iter;

use super::{hits::GrepHit, render_hits::RenderedHit, searched_conversation::SearchedConversation};
use crate::{
    search::{corpus::Corpus, fields::each_field, snippet},
    storage::{
        history::MessageHistory, pack::RawText, records::grants, store_session::StoreSession,
        withdrawn_mark,
    },
};
use lcm_text::base::{error::Result, json::JsonWriter, sort, tokens};

/// Most characters shown of one neighbour; the passage of a hit has up to 200.
const NEIGHBOUR_CHARACTERS_MAX: usize = 80;
/// Bytes of neighbours in one query after which the remaining hits get no neighbours.
const NEIGHBOUR_BYTES_MAX: u64 = 4 << 20;
/// Most hits whose neighbours are read together.
const HITS_PER_STEP: usize = 16;

/// Adds up to `count` neighbours on each side to the JSON of each hit that is a message. `rows`
/// must have the row of each hit at the same index. Returns whether the byte limit left some hits
/// without neighbours.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(super) fn add_neighbours(
    session: &mut StoreSession<'_>,
    conversations: &[SearchedConversation],
    hits: &[GrepHit],
    rows: &mut [RenderedHit],
    count: u64,
) -> Result<bool> {
    let mut left = if count == 0 { 0 } else { NEIGHBOUR_BYTES_MAX };
    let mut is_limited = false;
    for (number, conversation) in conversations.iter().enumerate() {
        let is_message_here = |(_, hit): &(usize, &GrepHit)| {
            hit.conversation_number == number && hit.corpus == Corpus::Messages && count > 0
        };
        let found = hits.iter().enumerate().filter(is_message_here);
        let found: Vec<(usize, u64)> = found.map(|(at, hit)| (at, hit.document)).collect();
        conversation.enter_conversation(session);
        for found in found.chunks(HITS_PER_STEP) {
            if left == 0 {
                is_limited = true;
                break;
            }
            left = left.saturating_sub(add_neighbours_of_hits(
                session,
                conversation,
                found,
                rows,
                count,
            )?);
        }
    }
    Ok(is_limited)
}

/// Adds the neighbours of some hits of one conversation, each given as index of its row and seq.
/// Returns the bytes of the distinct neighbours.
fn add_neighbours_of_hits(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    found: &[(usize, u64)],
    rows: &mut [RenderedHit],
    count: u64,
) -> Result<u64> {
    let neighbour_seqs = |seq: u64| {
        let last = conversation.loaded.head.messages.min(seq.saturating_add(count));
        let around = seq.saturating_sub(count).max(1)..=last;
        let is_shown = |other: &u64| {
            *other != seq && grants::is_within(conversation.spans.as_deref(), *other, *other)
        };
        around.filter(is_shown).collect::<Vec<u64>>()
    };
    let mut seqs: Vec<u64> = found.iter().flat_map(|(_, seq)| neighbour_seqs(*seq)).collect();
    sort::sort_and_dedup_numbers(&mut seqs);
    let history = conversation.message_history();
    let placed = history.read_messages_at(session, &seqs)?;
    let mut rendered: Vec<RenderedHit> = Vec::with_capacity(placed.len());
    for placed in &placed {
        rendered.push(render_neighbour(session, &history, placed)?);
    }
    for (at, seq) in found {
        let Some(row) = rows.get_mut(*at) else { continue };
        let [mut before, mut after] = [JsonWriter::new_array(), JsonWriter::new_array()];
        for neighbour in neighbour_seqs(*seq) {
            let Some(rendered) =
                seqs.binary_search(&neighbour).ok().and_then(|at| rendered.get(at))
            else {
                continue;
            };
            let side = if neighbour < *seq { &mut before } else { &mut after };
            side.push_json(&rendered.json);
            row.tokens = row.tokens.saturating_add(rendered.tokens);
        }
        let mut object = JsonWriter::new_object();
        object.add_array("neighbours_after", after);
        object.add_array("neighbours_before", before);
        object.append_members(JsonWriter::from_open_text(
            row.json.strip_suffix('}').unwrap_or_default(),
        ));
        row.json = object.end_object();
    }
    Ok(placed.iter().map(|placed| placed.stored.rendered_content().0.bytes()).sum())
}

/// Renders a neighbour with the beginning of its first text. A large payload appears as its
/// reference. A message stored in chunks has an empty snippet, because reading the chunks costs too
/// much.
fn render_neighbour(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
) -> Result<RenderedHit> {
    let (raw, parts) = placed.stored.rendered_content();
    let mut text = String::new();
    if let RawText::Inline(raw) = raw {
        each_field(raw, parts, &mut |_, field| {
            if text.is_empty() {
                text = snippet::build_short_snippet(
                    &field,
                    0,
                    NEIGHBOUR_CHARACTERS_MAX,
                    &mut iter::empty(),
                )
                .text;
            }
        });
    }
    let mut w = JsonWriter::new_object();
    w.add_message_time("created_at", placed.stored.time);
    w.add_text("id", &history.keys.message_id(placed.seq));
    w.add_text("role", placed.stored.role.as_str());
    w.add_number("seq", placed.seq);
    w.add_text("snippet", &text);
    withdrawn_mark::add_mark(session, history, placed.seq, &mut w)?;
    Ok(RenderedHit { json: w.end_object(), tokens: tokens::estimate(&text) })
}
