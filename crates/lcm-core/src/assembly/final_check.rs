//! The last check before an array leaves: what the provider would refuse does not go out.
//!
//! In: a rendered array. Out: nothing, as long as the rendering has no defect; else the messages
//! that the provider takes. Without those at fault it may take the rest; else they go by turns, a
//! user's message that returns nothing with all that follows up to the next, because calls and
//! results stand together there. Turns of messages at fault are left out until there is no finding,
//! in the end all.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    base::json::{self, ByteSpan, JsonValue},
    message::{JsonObject, get_object_either, validate},
    types::api::Dialect,
};

/// What is left of an array.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct AcceptedArray {
    pub(super) messages_json: String,
    /// Indexes of the messages that are no longer in it, in order.
    pub(super) removed_indexes: Vec<usize>,
    /// What was found, and how much is gone.
    pub(super) warning: String,
}

/// Checks an array; `None`: the provider takes all of it.
pub(super) fn check_array(dialect: Dialect, messages_json: &str) -> Option<AcceptedArray> {
    let messages = json::list_elements(messages_json, ByteSpan::from_range(0, messages_json.len()));
    let findings = validate::check(dialect, messages_json, &messages);
    let first = findings.list.first()?;
    let turns = number_turns(messages_json, &messages);
    let mut left: Vec<usize> = (0..messages.len()).collect();
    let faults = |left: &[usize]| -> Vec<usize> {
        let kept: Vec<JsonValue> =
            left.iter().filter_map(|at| messages.get(*at)).copied().collect();
        let at_fault = validate::check(dialect, messages_json, &kept).messages;
        at_fault.iter().filter_map(|at| left.get(*at)).copied().collect()
    };
    let mut fault = findings.messages;
    while !left.is_empty() && !fault.is_empty() {
        let others: Vec<usize> = left.iter().filter(|at| !fault.contains(at)).copied().collect();
        if !others.is_empty() && faults(&others).is_empty() {
            left = others;
            break;
        }
        let refused: Vec<Option<&usize>> = fault.iter().map(|at| turns.get(*at)).collect();
        left.retain(|at| !refused.contains(&turns.get(*at)));
        fault = faults(&left);
    }
    let texts: Vec<&str> = left
        .iter()
        .filter_map(|at| messages.get(*at))
        .map(|value| json::slice_span(messages_json, value.span))
        .collect();
    let left_out: Vec<usize> =
        (0..messages.len()).filter(|at| left.binary_search(at).is_err()).collect();
    let warning = format!("invalid-context: {first}; {} messages left out", left_out.len());
    Some(AcceptedArray {
        messages_json: format!("[{}]", texts.join(",")),
        removed_indexes: left_out,
        warning,
    })
}

/// The turn of each message, counted from 0.
fn number_turns(raw: &str, messages: &[JsonValue]) -> Vec<usize> {
    let mut turn = 0;
    let mut out = Vec::new();
    for (at, value) in messages.iter().enumerate() {
        turn += usize::from(at > 0 && is_turn_start(raw, *value));
        out.push(turn);
    }
    out
}

/// Whether a user speaks, and returns nothing.
fn is_turn_start(raw: &str, value: JsonValue) -> bool {
    let Some(message) = JsonObject::from_value(raw, value) else { return false };
    let is_answer = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|block| {
            block.get_text("type") == "tool_result"
                || get_object_either(&block, "functionResponse", "function_response").is_some()
        })
    };
    // A content of Gemini without a role is the user's.
    let is_user = message.get_text("role") == "user"
        || (message.get_value("role").is_none() && message.get_value("parts").is_some());
    let blocks = || message.get_list("content").into_iter().chain(message.get_list("parts"));
    is_user && !blocks().any(|block| is_answer(&block))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is left of an array of these messages, by their indexes.
    fn left_of(dialect: Dialect, messages: &[&str], left: &[usize], first: &str) {
        let array = |of: &[&str]| format!("[{}]", of.join(","));
        let found = check_array(dialect, &array(messages)).unwrap();
        let kept: Vec<&str> = left.iter().map(|at| messages[*at]).collect();
        assert_eq!(found.messages_json, array(&kept));
        let gone: Vec<usize> = (0..messages.len()).filter(|at| !left.contains(at)).collect();
        assert_eq!(found.removed_indexes, gone);
        let end = format!("; {} messages left out", gone.len());
        assert!(found.warning.starts_with(&format!("invalid-context: {first}")), "{found:?}");
        assert!(found.warning.ends_with(&end), "{found:?}");
        // What is left is taken as it is.
        if !kept.is_empty() {
            assert_eq!(check_array(dialect, &found.messages_json), None);
        }
    }

    const USER: &str = r#"{"role":"user","content":"q"}"#;
    const SAYS: &str = r#"{"role":"assistant","content":"a"}"#;

    #[test]
    fn what_a_provider_takes_is_left_alone() {
        let array = format!("[{USER},{SAYS},{USER}]");
        for dialect in [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses] {
            assert_eq!(check_array(dialect, &array), None);
        }
    }

    #[test]
    fn a_turn_with_a_call_that_nobody_answers_goes_and_the_others_stay() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"n",
            "input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1",
            "content":"r"}]}"#;
        let both = &[USER, call, result, SAYS, USER, SAYS, USER];
        assert_eq!(check_array(Dialect::Anthropic, &format!("[{}]", both.join(","))), None);
        // A call without its result is at fault, not the message where that shows.
        let broken = &[USER, SAYS, USER, call, USER, SAYS, USER];
        left_of(Dialect::Anthropic, broken, &[0, 1, 2, 4, 5, 6], "messages[4]: no result");
        let broken = &[USER, SAYS, USER, SAYS, result, SAYS, USER];
        left_of(Dialect::Anthropic, broken, &[0, 1, 2, 3, 5, 6], "messages[4]: result of no open");
        left_of(Dialect::Anthropic, &[USER, SAYS], &[0], "messages[1]: the last message");
    }

    #[test]
    fn a_call_and_its_result_go_together() {
        let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1",
            "type":"function","function":{"name":"a b","arguments":"{}"}}]}"#;
        let result = r#"{"role":"tool","tool_call_id":"c1","content":"r"}"#;
        let broken = &[USER, SAYS, USER, call, result, SAYS, USER];
        left_of(Dialect::OpenaiChat, broken, &[0, 1, 6], "messages[3]: tool name `a b`");
        let call = r#"{"type":"function_call","call_id":"c1","name":"a b","arguments":"{}"}"#;
        let result = r#"{"type":"function_call_output","call_id":"c1","output":"r"}"#;
        let broken = &[USER, call, SAYS, result, USER, SAYS];
        left_of(Dialect::OpenaiResponses, broken, &[4, 5], "messages[1]: tool name `a b`");
    }

    #[test]
    fn when_nothing_is_accepted_nothing_is_left() {
        left_of(Dialect::Anthropic, &[SAYS], &[], "messages[0]: the last message");
        let lone = r#"{"role":"user","content":"\ud800"}"#;
        left_of(Dialect::OpenaiChat, &[lone], &[], "messages[0]: half a surrogate pair");
        let half = r#"{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}"#;
        left_of(
            Dialect::Gemini,
            &[half, r#"{"parts":[{"text":"q"}]}"#],
            &[1],
            "messages[0]: 1 resp",
        );
    }
}
