//! What may be wrong with messages that were stored all the same, as warnings of a receipt.
//!
//! In: what is new of a batch. Out: a line for each kind of doubt, with the first seqs. Nothing is
//! refused for it: what an engine of today does not understand is kept for one that does.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{message::ParsedMessage, types::api::Dialect};

use super::{AppendDecision, batch::AppendCandidate};

/// Seqs that a line names.
const SEQS_MAX: usize = 5;

/// What a message that is not understood can look like; `None`: that cannot be told.
const LOOKALIKE_DIALECTS: [Option<Dialect>; 6] = [
    None,
    Some(Dialect::Lcm),
    Some(Dialect::Anthropic),
    Some(Dialect::OpenaiChat),
    Some(Dialect::OpenaiResponses),
    Some(Dialect::Gemini),
];

/// Adds a line for each kind of doubt about the new messages, the first of which is `seq_first`.
pub(super) fn add_warnings(
    dialect: Dialect,
    candidates: &[AppendCandidate<'_>],
    seq_first: u64,
    decided: &mut AppendDecision,
) {
    let counted = |is_it: &dyn Fn(&ParsedMessage) -> bool| {
        let mut seqs = String::new();
        let mut count = 0;
        for ((index, _), seq) in decided.new_messages.iter().zip(seq_first..) {
            if !candidates.get(*index).is_some_and(|one| is_it(&one.message)) {
                continue;
            }
            if count < SEQS_MAX {
                seqs.push_str(if count == 0 { "" } else { ", " });
                seqs.push_str(&format!("{seq}"));
            }
            count += 1;
        }
        let more = if count > SEQS_MAX { ", ..." } else { "" };
        let of = decided.new_messages.len();
        (count > 0).then(|| format!("{count} of {of} messages (seq {seqs}{more})"))
    };
    let mut lines = Vec::new();
    for look in LOOKALIKE_DIALECTS {
        let is_it = |message: &ParsedMessage| {
            message.dialect_mismatch.is_some_and(|it| it.looks_like == look)
        };
        let Some(count) = counted(&is_it) else { continue };
        let advice = match look {
            Some(look) => format!("they look like `{}`: give `dialect`", look.as_str()),
            None => "what was not reaches no model".into(),
        };
        let dialect = dialect.as_str();
        lines.push(format!(
            "parts-not-understood: {count} are not understood in full as `{dialect}`; {advice}"
        ));
    }
    lines.extend(counted(&|message| message.has_invalid_timestamp).map(|count| {
        format!(
            "timestamp-not-understood: {count} have a `timestamp` that is neither ISO 8601 nor \
             milliseconds; the time of the call stands for it"
        )
    }));
    decided.warnings.extend(lines);
}
