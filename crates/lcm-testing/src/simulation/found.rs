//! Invariant 11: a search by words or by expression finds every stored match and nothing else.
//!
//! In: a host, a conversation and the reference list. Out: the first wrong search. The reference is
//! a scan of the raw messages; the workload numbers the messages, so that both kinds of search have
//! the same few matches.

use crate::{
    host::Host,
    json::Json,
    simulation::{invariants::Verdict, reference::Reference},
};

/// Text before the number of a message in the message's text.
const LABEL: &str = "number ";
/// Most hits of one answer.
const LIMIT_MAX: u64 = 200;

/// Checks invariant 11 for the newest message and an older message.
///
/// # Errors
///
/// The first search whose hits are not those of the scan.
pub fn every_message_is_found(
    host: &mut Host,
    conversation: &str,
    reference: &Reference,
) -> Verdict {
    let count = reference.messages().len();
    let labels = [count.checked_sub(1), count.checked_mul(7).map(|sum| sum / 13)];
    let numbers = labels.into_iter().flatten().filter_map(|at| number_of(reference, at));
    for number in numbers {
        let expected = numbered(reference, &number);
        for (mode, pattern) in [
            ("full-text", format!("\"{LABEL}{number}\"")),
            ("regex", format!("{LABEL}{number}\\b")),
        ] {
            let found = search(host, conversation, mode, &pattern)?;
            if found != expected {
                return Err(format!("{mode} {pattern} finds {found:?}, there is {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Returns the number in the text of the message at index `at`; `None`: the text has no number.
fn number_of(reference: &Reference, at: usize) -> Option<String> {
    let (_, rest) = reference.messages().get(at)?.raw.split_once(LABEL)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// Returns the seqs of the messages whose text has this number, by a scan of the reference list.
fn numbered(reference: &Reference, number: &str) -> Vec<u64> {
    let label = format!("{LABEL}{number}");
    let bears = |raw: &str| {
        raw.match_indices(&label)
            .any(|(at, _)| !raw[at + label.len()..].starts_with(|next: char| next.is_ascii_digit()))
    };
    let messages = reference.messages().iter().enumerate();
    messages.filter(|(_, message)| bears(&message.raw)).map(|(index, _)| index as u64 + 1).collect()
}

/// Returns the seqs of the messages that a search finds, ascending.
fn search(
    host: &mut Host,
    conversation: &str,
    mode: &str,
    pattern: &str,
) -> Result<Vec<u64>, String> {
    let query = Json::object([
        ("pattern", pattern.into()),
        ("mode", mode.into()),
        ("scope", "messages".into()),
        ("limit", LIMIT_MAX.into()),
    ]);
    let args = Json::object([("conversation", conversation.into()), ("query_json", query)]);
    let answer = host.ask("recall.grep", &args).map_err(|error| format!("recall.grep: {error}"))?;
    let answer = Json::parse(answer.as_str().unwrap_or_default())?;
    let matches = answer.field("matches").map(Json::elements).unwrap_or_default();
    let seqs: Option<Vec<u64>> =
        matches.iter().map(|found| found.field("seq").and_then(Json::as_u64)).collect();
    let mut seqs = seqs.ok_or_else(|| format!("a hit without `seq` in {answer}"))?;
    seqs.sort_unstable();
    Ok(seqs)
}
