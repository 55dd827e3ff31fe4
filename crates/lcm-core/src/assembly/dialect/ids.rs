//! Independence of the parts of an array: shared ids, and entries that depend on their neighbours.
//!
//! A part can be rendered without the rest if it shares no id with the rest, and its first entry
//! does not depend on its neighbours. Ids are compared by hash: a collision costs a cut, never a
//! wrong array.

use alloc::vec::Vec;

use super::normalize::{BlockBody, Turn, TurnBlock};
use lcm_text::{
    base::json,
    message::{JsonObject, Role},
};

/// Returns the 64-bit FNV-1a hash of an id.
fn hash_id(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Collects the hashes of the ids of calls, results and items, each with the index of its entry.
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

/// Returns whether the first entry and the entries before it are independent of each other.
///
/// A result without an id belongs to the newest call before it. Thinking belongs to the next block.
pub(super) fn is_independent(turns: &[Turn<'_>]) -> bool {
    let event = |turn: &Turn<'_>, block: &TurnBlock<'_>| match &block.body {
        BlockBody::Call(_) if turn.role == Role::Assistant => Some(true),
        BlockBody::Answer(answer) if answer.given_id.is_none() => Some(false),
        _ => None,
    };
    let starts_with_call =
        turns.iter().find_map(|turn| turn.blocks.iter().find_map(|block| event(turn, block)));
    let is_whole = |turn: &Turn<'_>| {
        let is_thought = |block: &TurnBlock<'_>| matches!(block.body, BlockBody::Thought);
        !turn.blocks.is_empty() && !turn.blocks.iter().any(is_thought)
    };
    starts_with_call.unwrap_or(true) && turns.first().is_some_and(is_whole)
}
