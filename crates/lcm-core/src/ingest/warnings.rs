//! Warnings of a receipt about new messages that the engine did not understand in full.
//!
//! In: the new messages of a batch. Out: a line for each kind of problem, with the first 5 seqs.
//! The messages are stored all the same, because a later engine may understand them. The commit of
//! an append uses this module.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    message::ParsedMessage,
    types::api::{Dialect, ReadDialect},
};

use super::{
    batch::AppendCandidate,
    new_messages::{AppendDecision, NewCandidate},
};

/// Most seqs that a line names.
const SEQS_MAX: usize = 5;

/// Adds a line for each kind of problem; `seq_first` is the seq of the first new message.
pub(super) fn add_warnings(
    dialect: ReadDialect,
    candidates: &[AppendCandidate<'_>],
    seq_first: u64,
    decided: &mut AppendDecision,
) {
    let describe_count = |applies: &dyn Fn(&ParsedMessage) -> bool| {
        let mut seqs = String::new();
        let mut count = 0;
        for (NewCandidate { index, .. }, seq) in decided.new_messages.iter().zip(seq_first..) {
            if !candidates.get(*index).is_some_and(|candidate| applies(&candidate.message)) {
                continue;
            }
            if count < SEQS_MAX {
                seqs.push_str(if count == 0 { "" } else { ", " });
                seqs.push_str(&format!("{seq}"));
            }
            count += 1;
        }
        let more = if count > SEQS_MAX { ", ..." } else { "" };
        let total = decided.new_messages.len();
        (count > 0).then(|| format!("{count} of {total} messages (seq {seqs}{more})"))
    };
    let mut lines = Vec::new();
    let looks = [None].into_iter().chain(Dialect::ALL.map(Some));
    for looks_like in looks {
        let applies = |message: &ParsedMessage| {
            message.dialect_mismatch.is_some_and(|mismatch| mismatch.looks_like == looks_like)
        };
        let Some(count) = describe_count(&applies) else { continue };
        let advice = match looks_like {
            Some(look) => format!("they look like `{}`: give `dialect`", look.as_str()),
            None => "no model is shown the other parts".into(),
        };
        let dialect = dialect.as_str();
        lines.push(format!(
            "parts-not-understood: {count} are not understood in full as `{dialect}`; {advice}"
        ));
    }
    lines.extend(describe_count(&|message| message.has_invalid_timestamp).map(|count| {
        format!(
            "timestamp-not-understood: {count} have a `timestamp` that is neither ISO 8601 nor \
             seconds or milliseconds since 1970; they count as messages without one"
        )
    }));
    decided.warnings.extend(lines);
}
