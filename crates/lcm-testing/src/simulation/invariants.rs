//! The invariants of a conversation, one function each; the module `found` has invariant 11, about
//! search.
//!
//! In: a host, a conversation and the reference list. Out: the first violation, as one line. The
//! functions use only public calls, so they apply to every host. Invariants 5 to 8 concern calls
//! and are checked at the calls (see [`crate::simulation::actor`]).

use std::collections::BTreeMap;

use lcm_core::ErrorCode;

use crate::{
    host::Host,
    json::Json,
    simulation::{found::every_message_is_found, reference::Reference},
};

/// The reasons that a plan or an outcome may have; the reason may also be empty.
pub const REASONS: [&str; 15] = [
    "below-threshold",
    "reached-target",
    "no-eligible-chunk",
    "no-progress",
    "tail-over-target",
    "pass-limit",
    "round-limit",
    "completion-limit",
    "spend-limit",
    "breaker-open",
    "model-auth",
    "model-policy",
    "model-unavailable",
    "cancelled",
    "conflict",
];

/// Result of a check: success, or one line about the first violation.
pub type Verdict = Result<(), String>;

/// A budget that every context of the simulation fits.
const BUDGET_LARGE: u64 = 4_000_000;

/// One item of the stored context.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// Id: `sum_...` or `msg_...`.
    pub id: String,
    /// Kind, such as `message`, `leaf` or `condensed`.
    pub kind: String,
    /// Whether the returned context contains the item.
    pub included: bool,
    /// Tokens of the item.
    pub tokens: u64,
    /// Seq of the first message that the item covers.
    pub seq_first: u64,
    /// Seq of the last message that the item covers.
    pub seq_last: u64,
}

/// Summaries that were checked before: their depths by id. Summaries never change, so they are not
/// checked again.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    depths: BTreeMap<String, u64>,
}

fn number(value: &Json, key: &str) -> Result<u64, String> {
    value.field(key).and_then(Json::as_u64).ok_or_else(|| format!("no number `{key}` in {value}"))
}

fn text(value: &Json, key: &str) -> Result<String, String> {
    let text = value.field(key).and_then(Json::as_str).map(str::to_owned);
    text.ok_or_else(|| format!("no text `{key}` in {value}"))
}

/// Calls a function that returns JSON text, and parses the text.
fn ask_json(host: &mut Host, name: &str, args: &Json) -> Result<Json, String> {
    let answer = host.ask(name, args).map_err(|error| format!("{name}: {error}"))?;
    Json::parse(answer.as_str().unwrap_or_default()).map_err(|why| format!("{name}: {why}"))
}

/// Assembles a context in the dialect `lcm`, with `explain`, so that the result lists all items.
pub fn assemble(host: &mut Host, conversation: &str, budget: u64) -> Result<Json, String> {
    assemble_in(host, conversation, budget, "lcm")
}

fn assemble_in(
    host: &mut Host,
    conversation: &str,
    budget: u64,
    dialect: &str,
) -> Result<Json, String> {
    // The budget selects the policy, so that every policy is used. The prompt has words of the
    // messages.
    let policy = ["layered", "chronological", "prompt-aware"][(budget % 3) as usize];
    let options = Json::object([
        ("explain", true.into()),
        ("policy", policy.into()),
        ("prompt", "what was said of the test and the file?".into()),
    ]);
    let args = Json::object([
        ("dialect", dialect.into()),
        ("conversation", conversation.into()),
        ("budget", budget.into()),
        ("options", options),
    ]);
    host.ask("context.assemble", &args).map_err(|error| format!("context.assemble: {error}"))
}

/// Reads the items of an assembled context.
pub fn items(assembled: &Json) -> Result<Vec<Item>, String> {
    let list = assembled.field("items").map(Json::elements).unwrap_or_default();
    list.iter()
        .map(|item| {
            Ok(Item {
                id: text(item, "id")?,
                kind: text(item, "kind")?,
                included: item.field("included") == Some(&Json::Bool(true)),
                tokens: number(item, "tokens")?,
                seq_first: number(item, "seq_first")?,
                seq_last: number(item, "seq_last")?,
            })
        })
        .collect()
}

/// Checks invariant 1: `messages` returns every stored message byte for byte, and no other message.
pub fn messages_are_kept_verbatim(
    host: &mut Host,
    conversation: &str,
    reference: &Reference,
) -> Verdict {
    let mut next = 1;
    while next <= reference.len() {
        let args = Json::object([
            ("conversation", conversation.into()),
            ("seq_first", next.into()),
            ("seq_last", reference.len().into()),
        ]);
        let page = host.ask("recall.messages", &args).map_err(|error| error.to_string())?;
        if page.elements().is_empty() {
            return Err(format!("message {next} of {} is not returned", reference.len()));
        }
        for raw in page.elements() {
            let stored = &reference.messages()[(next - 1) as usize].raw;
            if raw.as_str() != Some(stored) {
                return Err(format!("message {next} is {raw}, was {stored:?}"));
            }
            next += 1;
        }
    }
    let beyond = Json::object([
        ("conversation", conversation.into()),
        ("seq_first", next.into()),
        ("seq_last", (next + 1000).into()),
    ]);
    match host.ask("recall.messages", &beyond) {
        Ok(page) if page.elements().is_empty() => Ok(()),
        Ok(page) => Err(format!("{} messages too many", page.elements().len())),
        Err(error) if error.code == ErrorCode::NotFound && reference.is_empty() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks invariant 2: the items cover the seqs from 1 to `messages`, in order, without gap or
/// overlap.
pub fn context_items_partition_the_sequence(items: &[Item], messages: u64) -> Verdict {
    let mut next = 1;
    for item in items {
        if item.seq_first != next || item.seq_last < item.seq_first {
            return Err(format!("after message {} comes item {item:?}", next - 1));
        }
        if (item.kind == "message") != item.id.starts_with("msg_") {
            return Err(format!("kind and id differ: {item:?}"));
        }
        next = item.seq_last + 1;
    }
    if next != messages + 1 {
        return Err(format!("the context ends with message {}, stored are {messages}", next - 1));
    }
    Ok(())
}

/// Checks invariant 3: a leaf has messages, and a condensed summary at least two sources. The depth
/// is 0, or one more than the greatest depth of the sources. Sources and derived summaries name
/// each other.
pub fn summaries_have_sources(
    host: &mut Host,
    conversation: &str,
    items: &[Item],
    seen: &mut Seen,
) -> Verdict {
    for item in items.iter().filter(|item| item.kind != "message") {
        let described = summary_has_sources(host, conversation, &item.id, None, seen)?;
        let span = (number(&described, "seq_first")?, number(&described, "seq_last")?);
        if span != (item.seq_first, item.seq_last) || text(&described, "kind")? != item.kind {
            return Err(format!("{item:?} describes itself as {span:?} {}", item.kind));
        }
    }
    Ok(())
}

fn describe(host: &mut Host, conversation: &str, id: &str) -> Result<Json, String> {
    let args = Json::object([("conversation", conversation.into()), ("id", id.into())]);
    ask_json(host, "recall.describe", &args)
}

fn summary_has_sources(
    host: &mut Host,
    conversation: &str,
    id: &str,
    derived: Option<&str>,
    seen: &mut Seen,
) -> Result<Json, String> {
    let described = describe(host, conversation, id)?;
    let list = |key: &str| described.field(key).map(Json::elements).unwrap_or_default();
    if let Some(derived) = derived
        && !list("derived_ids").iter().any(|other| names(other, derived))
        && !is_made_again(host, conversation, list("derived_ids"), derived)?
    {
        return Err(format!("`{id}` does not know that `{derived}` was derived from it"));
    }
    let depth = number(&described, "depth")?;
    if seen.depths.get(id) == Some(&depth) {
        return Ok(described);
    }
    let sources = list("source_ids").to_vec();
    if depth == 0 {
        if list("message_ids").is_empty() || !sources.is_empty() {
            return Err(format!("leaf `{id}` has no messages, or has sources"));
        }
    } else {
        if sources.len() < 2 {
            return Err(format!("condensed `{id}` has {} sources", sources.len()));
        }
        let (mut deepest, mut next) = (0, number(&described, "seq_first")?);
        for source in &sources {
            let source = source_id(source)?;
            let older = summary_has_sources(host, conversation, &source, Some(id), seen)?;
            deepest = deepest.max(number(&older, "depth")?);
            if number(&older, "seq_first")? != next {
                return Err(format!("sources of `{id}` leave a gap before `{source}`"));
            }
            next = number(&older, "seq_last")? + 1;
        }
        if depth != deepest + 1 || next != number(&described, "seq_last")? + 1 {
            return Err(format!("`{id}` has depth {depth} over {deepest}, ends at {next}"));
        }
    }
    seen.depths.insert(id.to_owned(), depth);
    Ok(described)
}

/// Returns whether the first summary of `newer` replaced `older`, directly or over several remakes.
/// A source names only the newest remake of its derived summary.
fn is_made_again(
    host: &mut Host,
    conversation: &str,
    newer: &[Json],
    older: &str,
) -> Result<bool, String> {
    let mut at = newer.first().map(source_id).transpose()?;
    while let Some(id) = at {
        if id == older {
            return Ok(true);
        }
        let described = describe(host, conversation, &id)?;
        at = described.field("replaces").and_then(Json::as_str).map(str::to_owned);
    }
    Ok(false)
}

/// Returns the id in a reference to a summary: the reference is the id, or an object with a member
/// `id`.
fn source_id(source: &Json) -> Result<String, String> {
    match source {
        Json::String(id) => Ok(id.clone()),
        other => text(other, "id"),
    }
}

fn names(reference: &Json, id: &str) -> bool {
    source_id(reference).is_ok_and(|other| other == id)
}

/// Checks invariant 4: the expansion of every summary in the context returns every message that the
/// summary covers, byte for byte.
pub fn every_message_is_reachable(
    host: &mut Host,
    conversation: &str,
    items: &[Item],
    reference: &Reference,
) -> Verdict {
    for item in items.iter().filter(|item| item.kind != "message") {
        let mut next = item.seq_first;
        let mut after: Option<Json> = None;
        loop {
            let mut options = vec![
                ("depth_max".to_owned(), Json::Number(100)),
                ("include_messages".to_owned(), Json::Bool(true)),
            ];
            options.extend(after.take().map(|cursor| ("cursor".to_owned(), cursor)));
            let args = Json::object([
                ("conversation", conversation.into()),
                ("id", item.id.as_str().into()),
                ("options_json", Json::Object(options)),
            ]);
            let page = ask_json(host, "recall.expand", &args)?;
            for message in page.field("messages").map(Json::elements).unwrap_or_default() {
                let seq = number(message, "seq")?;
                if seq != next || seq > item.seq_last {
                    return Err(format!("expanding `{}` gives message {seq}, not {next}", item.id));
                }
                let stored = &reference.messages()[(seq - 1) as usize].raw;
                if text(message, "raw")? != *stored {
                    return Err(format!("expanding `{}` changes message {seq}", item.id));
                }
                next += 1;
            }
            match page.field("cursor") {
                None | Some(Json::Null) => break,
                Some(cursor) => after = Some(cursor.clone()),
            }
        }
        if next != item.seq_last + 1 {
            return Err(format!("expanding `{}` ends before message {next}", item.id));
        }
    }
    Ok(())
}

/// Checks invariant 5: a pass that does not shrink the context is not committed, unless the pass
/// makes a provisional summary again. `again`: the outcome is of a repeated call, whose summary an
/// earlier call committed, so the tokens must be unchanged.
pub fn a_pass_shrinks_the_context(outcome: &Json, again: bool) -> Verdict {
    let (before, after) = (number(outcome, "tokens_before")?, number(outcome, "tokens_after")?);
    let committed = outcome.field("applied").and_then(Json::as_str) == Some("committed");
    let is_remake = outcome.field("replaces").and_then(Json::as_str).is_some();
    let sound = match committed && !again {
        true => after < before || is_remake,
        false => after == before,
    };
    if sound { Ok(()) } else { Err(format!("{before} tokens became {after}: {outcome}")) }
}

/// Checks a part of invariant 6: the reason of a result is one of [`REASONS`], or empty.
pub fn reasons_are_listed(result: &Json) -> Verdict {
    let reason = text(result, "reason")?;
    if reason.is_empty() || REASONS.contains(&reason.as_str()) {
        return Ok(());
    }
    Err(format!("reason `{reason}` is not listed: {result}"))
}

/// Checks the visible part of invariant 8: `check` of the engine has no findings.
pub fn the_store_checks_out(host: &mut Host, conversation: &str) -> Verdict {
    let args = Json::object([("conversation", conversation.into())]);
    let report = ask_json(host, "admin.check", &args)?;
    if report.field("ok") == Some(&Json::Bool(true)) {
        return Ok(());
    }
    Err(format!("check: {report}"))
}

/// Checks invariant 9: the context fits its budget, or has the warning `tail-over-budget` and
/// contains only messages, with at most one gap: the fresh tail and a pinned message.
pub fn the_context_fits_its_budget(assembled: &Json, budget: u64) -> Verdict {
    let tokens = number(assembled, "tokens")?;
    let warnings = assembled.field("warnings").map(Json::elements).unwrap_or_default();
    let excused = warnings
        .iter()
        .any(|warning| warning.as_str().is_some_and(|text| text.contains("tail-over-budget")));
    if tokens > budget && !excused {
        return Err(format!("{tokens} tokens for a budget of {budget}, and no warning"));
    }
    if tokens > budget {
        let left: Vec<Item> = items(assembled)?.into_iter().filter(|item| item.included).collect();
        // At most one gap is allowed: the gap between the pinned message and the fresh tail.
        let parted = left.windows(2).filter(|two| two[0].seq_last + 1 != two[1].seq_first).count();
        if left.iter().any(|item| item.kind != "message") || parted > 1 {
            return Err(format!("{tokens} tokens for a budget of {budget}, of {left:?}"));
        }
    }
    let included: u64 =
        items(assembled)?.iter().filter(|item| item.included).map(|item| item.tokens).sum();
    if included != tokens {
        return Err(format!("the items cost {included} tokens, the result says {tokens}"));
    }
    Ok(())
}

/// Checks invariant 10 for the dialect `lcm`: a context has a tool call together with its results
/// or not at all, and has as many messages as its included items.
pub fn the_transcript_is_valid(
    host: &mut Host,
    assembled: &Json,
    reference: &Reference,
) -> Verdict {
    let items = items(assembled)?;
    let raw: Vec<&Item> = items.iter().filter(|item| item.kind == "message").collect();
    let included =
        |seq: u64| raw.iter().find(|item| (item.seq_first..=item.seq_last).contains(&seq));
    for item in raw.iter().filter(|item| item.included) {
        for edge in [item.seq_first, item.seq_last] {
            let (first, last) = reference.group(edge);
            let whole = (first..=last).all(|seq| included(seq).is_some_and(|other| other.included));
            if !whole {
                return Err(format!("messages {first} to {last} are one unit, {item:?} cuts it"));
            }
        }
    }
    let messages = text(assembled, "messages_json")?;
    let returned = array_length(&messages).ok_or("the context is no JSON array")?;
    let wanted: u64 = items
        .iter()
        .filter(|item| item.included)
        .map(|item| if item.kind == "message" { item.seq_last - item.seq_first + 1 } else { 1 })
        .sum();
    let leading = leading_system_messages(&items, reference);
    if returned + leading != wanted as usize {
        return Err(format!("{returned} messages and {leading} beside them for {wanted} items"));
    }
    let args = Json::object([("messages_json", messages.into())]);
    match host.ask("context.validate", &args) {
        // `validate` has no rules for the dialect `lcm`.
        Err(error) if error.code == ErrorCode::Unsupported => Ok(()),
        Err(error) => Err(format!("context.validate: {error}")),
        Ok(Json::String(findings)) if findings == "[]" => Ok(()),
        Ok(findings) => Err(format!("context.validate finds {findings}")),
    }
}

/// Checks invariant 10 for dialects of providers: an assembled context fits its budget, and
/// `validate` accepts the messages.
pub fn providers_accept_it(host: &mut Host, conversation: &str, budget: u64) -> Verdict {
    for dialect in ["anthropic", "openai-chat"] {
        let assembled = assemble_in(host, conversation, budget, dialect)?;
        the_context_fits_its_budget(&assembled, budget)
            .map_err(|error| format!("{dialect}: {error}"))?;
        let messages = text(&assembled, "messages_json")?;
        if messages == "[]" {
            // The context has only system messages, or messages without content.
            continue;
        }
        let args = Json::object([("dialect", dialect.into()), ("messages_json", messages.into())]);
        match host.ask("context.validate", &args) {
            Ok(Json::String(findings)) if findings == "[]" => {}
            other => return Err(format!("context.validate of {dialect}: {other:?}")),
        }
    }
    Ok(())
}

/// Counts the system messages with which the context begins. Withdrawn items are skipped; any other
/// item ends the count.
fn leading_system_messages(items: &[Item], reference: &Reference) -> usize {
    let of_session = items.iter().filter(|item| item.kind != "withdrawn");
    of_session
        .take_while(|item| item.included)
        .flat_map(|item| match item.kind.as_str() {
            "message" => (item.seq_first..=item.seq_last).map(Some).collect(),
            _ => vec![None],
        })
        .take_while(|seq| {
            let raw = seq.map(|seq| &reference.messages()[(seq - 1) as usize].raw);
            raw.is_some_and(|raw| raw.starts_with("{\"role\":\"system\""))
        })
        .count()
}

/// Counts the elements of a JSON array; `None`: the text is no array, or its brackets do not match.
///
/// [`Json`] cannot parse these arrays, because it refuses lone surrogates and deep nesting, which
/// messages may have.
fn array_length(text: &str) -> Option<usize> {
    let (mut depth, mut commas, mut filled) = (0_u32, 0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                filled = true;
                while let Some(inner) = bytes.next().filter(|inner| *inner != b'"') {
                    if inner == b'\\' {
                        bytes.next()?;
                    }
                }
            }
            b'[' | b'{' => {
                filled |= depth > 0;
                depth += 1;
            }
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => commas += 1,
            _ => filled |= depth == 1 && !byte.is_ascii_whitespace(),
        }
    }
    let array = text.starts_with('[') && text.ends_with(']') && depth == 0;
    array.then_some(if filled { commas + 1 } else { 0 })
}

/// Checks all invariants of one conversation that hold between two calls. Summaries in `seen` are
/// not checked again.
pub fn all(
    host: &mut Host,
    conversation: &str,
    reference: &Reference,
    seen: &mut Seen,
    budget: u64,
) -> Verdict {
    messages_are_kept_verbatim(host, conversation, reference)?;
    if reference.is_empty() {
        return Ok(());
    }
    let whole = assemble(host, conversation, BUDGET_LARGE)?;
    let stored = items(&whole)?;
    context_items_partition_the_sequence(&stored, reference.len())?;
    if let Some(left_out) = stored.iter().find(|item| !item.included) {
        return Err(format!("left out of a budget of {BUDGET_LARGE}: {left_out:?}"));
    }
    the_transcript_is_valid(host, &whole, reference)?;
    let fitted = assemble(host, conversation, budget)?;
    context_items_partition_the_sequence(&items(&fitted)?, reference.len())?;
    the_context_fits_its_budget(&fitted, budget)?;
    the_transcript_is_valid(host, &fitted, reference)?;
    providers_accept_it(host, conversation, budget)?;
    let fresh: Vec<Item> =
        stored.into_iter().filter(|item| !seen.depths.contains_key(&item.id)).collect();
    every_message_is_reachable(host, conversation, &fresh, reference)?;
    summaries_have_sources(host, conversation, &fresh, seen)?;
    every_message_is_found(host, conversation, reference)?;
    the_store_checks_out(host, conversation)
}

/// Checks all invariants as [`all`] does, with all summaries of the context.
pub fn all_again(
    host: &mut Host,
    conversation: &str,
    reference: &Reference,
    budget: u64,
) -> Verdict {
    all(host, conversation, reference, &mut Seen::default(), budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_whatever_is_in_them() {
        assert_eq!(array_length("[]"), Some(0));
        assert_eq!(array_length("[{}]"), Some(1));
        assert_eq!(array_length(r#"[{"a":"],\"[\\","b":[1,2]},"x,y",3]"#), Some(3));
        assert_eq!(array_length(r#"["\ud83d"]"#), Some(1));
        assert_eq!(array_length("[[]"), None);
        assert_eq!(array_length("{}"), None);
    }
}
