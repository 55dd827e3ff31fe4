//! Whether the end of an array can be rendered without its beginning.
//!
//! In: the turns of some entries. Out: the hashes of all their ids, and whether the first entries
//! depend on entries before. [`super::render`] returns both; the cache of arrays cuts an array only
//! if the two parts share no id. A collision of hashes prevents a cut, and never makes an array
//! wrong.

use alloc::vec::Vec;

use super::normalize::{BlockBody, Turn, TurnBlock, caller_id};
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

/// Appends the hashes of the ids of calls, results and items, each with the index of its entry.
pub(super) fn collect_ids(turns: &[Turn<'_>], out: &mut Vec<(u64, usize)>) {
    for turn in turns {
        let mut add = |id: &str| out.push((hash_id(id), turn.entry));
        for block in &turn.blocks {
            match &block.body {
                BlockBody::Call(call) => {
                    block.native.and_then(caller_id).iter().for_each(|id| add(id));
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
            for key in ["id", "call_id", "approval_request_id"] {
                item.get_string(key).iter().for_each(|id| add(&json::text(raw, *id)));
            }
        }
    }
}

/// Returns whether the turns can be rendered without the turns before them, apart from shared ids.
///
/// False in three cases:
///
/// - There are no turns.
/// - A result without an id precedes the first call: its call may be in an earlier turn.
/// - The first turn has thinking, an approval or no blocks: the turn may depend on its neighbours.
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
        !turn.blocks.is_empty() && turn.approvals.is_empty() && !turn.blocks.iter().any(is_thought)
    };
    starts_with_call.unwrap_or(true) && turns.first().is_some_and(is_whole)
}
