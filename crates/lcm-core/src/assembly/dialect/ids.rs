//! What parts of an array have in common with others: ids, and what follows from their neighbours.
//!
//! A part of an array can be rendered without the rest when no id of it is elsewhere, and its first
//! entry is the same whatever its neighbours are. Ids are told apart by a hash: two that agree by
//! chance cost time and change nothing.

use alloc::vec::Vec;

use super::normalize::{BlockBody, Turn, TurnBlock};
use lcm_text::{
    base::json,
    message::{JsonObject, Role},
};

/// FNV-1a, 64 bits.
fn hash_id(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The ids of calls, results and items, each with the index of its entry.
pub(super) fn collect_ids(turns: &[Turn<'_>], out: &mut Vec<(u64, usize)>) {
    for turn in turns {
        let mut add = |id: &str| out.push((hash_id(id), turn.entry));
        for block in &turn.blocks {
            match &block.body {
                BlockBody::Call(call) => {
                    call.given_id.iter().for_each(|id| add(id));
                    if !call.id.is_empty() {
                        add(&call.id);
                    }
                }
                BlockBody::Answer(answer) => answer.given_id.iter().for_each(|id| add(id)),
                BlockBody::ServerTool { id, .. } => add(id),
                _ => {}
            }
        }
        if let Some(raw) = turn.native.filter(|_| turn.is_item) {
            let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
            for key in ["id", "approval_request_id"] {
                item.get_string(key).iter().for_each(|id| add(&json::text(raw, *id)));
            }
        }
    }
}

/// Whether the first entry needs nothing of what is before it and gives nothing to it: no result
/// without an id, which belongs to the newest call, and no thought, which belongs to what follows.
pub(super) fn is_independent(turns: &[Turn<'_>]) -> bool {
    let calls = |turn: &Turn<'_>, block: &TurnBlock<'_>| match &block.body {
        BlockBody::Call(_) if turn.role == Role::Assistant => Some(true),
        BlockBody::Answer(answer) if answer.given_id.is_none() => Some(false),
        _ => None,
    };
    let first_calls =
        turns.iter().find_map(|turn| turn.blocks.iter().find_map(|block| calls(turn, block)));
    let is_whole = |turn: &Turn<'_>| {
        let is_thought = |block: &TurnBlock<'_>| matches!(block.body, BlockBody::Thought);
        !turn.blocks.is_empty() && !turn.blocks.iter().any(is_thought)
    };
    first_calls.unwrap_or(true) && turns.first().is_some_and(is_whole)
}
