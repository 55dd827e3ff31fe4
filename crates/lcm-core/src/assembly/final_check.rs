//! Final check of a provider array: messages that the provider would refuse are removed.
//!
//! In: a rendered array. Out: `None` if the provider accepts all messages. Otherwise rendering has
//! a defect, and the output is the messages that the provider accepts.
//!
//! First only the faulty messages are removed. If the provider would still refuse the rest, whole
//! turns with faulty messages are removed until the rest passes. A turn starts with a user message
//! without tool results: calls and their results stay together.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    base::json::{self, ByteSpan, JsonValue},
    message::{JsonObject, get_object_either, validate},
    types::api::Dialect,
};

/// The part of an array that the provider accepts.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct AcceptedArray {
    pub(super) messages_json: String,
    /// Indexes of the removed messages, ascending.
    pub(super) removed_indexes: Vec<usize>,
    /// Text with the first finding and the number of removed messages.
    pub(super) warning: String,
}

/// Checks an array; `None`: the provider accepts all messages.
pub(super) fn check_array(dialect: Dialect, messages_json: &str) -> Option<AcceptedArray> {
    let messages = json::list_elements(messages_json, ByteSpan::from_range(0, messages_json.len()));
    let findings = validate::check(dialect, messages_json, &messages);
    let first = findings.list.first()?;
    let turns = number_turns(messages_json, &messages);
    let mut left: Vec<usize> = (0..messages.len()).collect();
    let find_faulty = |left: &[usize]| -> Vec<usize> {
        let kept: Vec<JsonValue> =
            left.iter().filter_map(|at| messages.get(*at)).copied().collect();
        let at_fault = validate::check(dialect, messages_json, &kept).messages;
        at_fault.iter().filter_map(|at| left.get(*at)).copied().collect()
    };
    let mut faulty = findings.messages;
    while !left.is_empty() && !faulty.is_empty() {
        let others: Vec<usize> = left.iter().filter(|at| !faulty.contains(at)).copied().collect();
        if !others.is_empty() && find_faulty(&others).is_empty() {
            left = others;
            break;
        }
        let refused: Vec<Option<&usize>> = faulty.iter().map(|at| turns.get(*at)).collect();
        left.retain(|at| !refused.contains(&turns.get(*at)));
        faulty = find_faulty(&left);
    }
    let texts: Vec<&str> = left
        .iter()
        .filter_map(|at| messages.get(*at))
        .map(|value| json::slice_span(messages_json, value.span))
        .collect();
    let removed_indexes: Vec<usize> =
        (0..messages.len()).filter(|at| left.binary_search(at).is_err()).collect();
    let warning = format!("invalid-context: {first}; {} messages left out", removed_indexes.len());
    Some(AcceptedArray {
        messages_json: format!("[{}]", texts.join(",")),
        removed_indexes,
        warning,
    })
}

/// Numbers the turn of each message, from 0.
fn number_turns(raw: &str, messages: &[JsonValue]) -> Vec<usize> {
    let mut turn = 0;
    let mut out = Vec::new();
    for (at, value) in messages.iter().enumerate() {
        turn += usize::from(at > 0 && is_turn_start(raw, *value));
        out.push(turn);
    }
    out
}

/// Returns whether a message is a user message without tool results.
fn is_turn_start(raw: &str, value: JsonValue) -> bool {
    let Some(message) = JsonObject::from_value(raw, value) else { return false };
    let is_answer = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|block| {
            block.get_text("type") == "tool_result"
                || get_object_either(&block, "functionResponse", "function_response").is_some()
        })
    };
    // Gemini treats a content without a role as the user's.
    let is_user = message.get_text("role") == "user"
        || (message.get_value("role").is_none() && message.get_value("parts").is_some());
    let blocks = || message.get_list("content").into_iter().chain(message.get_list("parts"));
    is_user && !blocks().any(|block| is_answer(&block))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts which messages are left of an array, by index, and the beginning of the warning.
    fn assert_left(dialect: Dialect, messages: &[&str], left: &[usize], first: &str) {
        let array = |of: &[&str]| format!("[{}]", of.join(","));
        let found = check_array(dialect, &array(messages)).unwrap();
        let kept: Vec<&str> = left.iter().map(|at| messages[*at]).collect();
        assert_eq!(found.messages_json, array(&kept));
        let gone: Vec<usize> = (0..messages.len()).filter(|at| !left.contains(at)).collect();
        assert_eq!(found.removed_indexes, gone);
        let end = format!("; {} messages left out", gone.len());
        assert!(found.warning.starts_with(&format!("invalid-context: {first}")), "{found:?}");
        assert!(found.warning.ends_with(&end), "{found:?}");
        // The rest passes the check unchanged.
        if !kept.is_empty() {
            assert_eq!(check_array(dialect, &found.messages_json), None);
        }
    }

    const USER: &str = r#"{"role":"user","content":"q"}"#;
    const SAYS: &str = r#"{"role":"assistant","content":"a"}"#;

    #[test]
    fn a_valid_array_is_unchanged() {
        let array = format!("[{USER},{SAYS},{USER}]");
        for dialect in [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses] {
            assert_eq!(check_array(dialect, &array), None);
        }
    }

    #[test]
    fn a_turn_with_an_unanswered_call_is_removed_and_the_others_stay() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"n",
            "input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1",
            "content":"r"}]}"#;
        let both = &[USER, call, result, SAYS, USER, SAYS, USER];
        assert_eq!(check_array(Dialect::Anthropic, &format!("[{}]", both.join(","))), None);
        // The call without a result is faulty, not the message that reveals it.
        let broken = &[USER, SAYS, USER, call, USER, SAYS, USER];
        assert_left(Dialect::Anthropic, broken, &[0, 1, 2, 4, 5, 6], "messages[4]: no result");
        let broken = &[USER, SAYS, USER, SAYS, result, SAYS, USER];
        assert_left(
            Dialect::Anthropic,
            broken,
            &[0, 1, 2, 3, 5, 6],
            "messages[4]: result of no open",
        );
        assert_left(Dialect::Anthropic, &[USER, SAYS], &[0], "messages[1]: the last message");
    }

    #[test]
    fn a_call_and_its_result_are_removed_together() {
        let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1",
            "type":"function","function":{"name":"a b","arguments":"{}"}}]}"#;
        let result = r#"{"role":"tool","tool_call_id":"c1","content":"r"}"#;
        let broken = &[USER, SAYS, USER, call, result, SAYS, USER];
        assert_left(Dialect::OpenaiChat, broken, &[0, 1, 6], "messages[3]: tool name `a b`");
        let call = r#"{"type":"function_call","call_id":"c1","name":"a b","arguments":"{}"}"#;
        let result = r#"{"type":"function_call_output","call_id":"c1","output":"r"}"#;
        let broken = &[USER, call, SAYS, result, USER, SAYS];
        assert_left(Dialect::OpenaiResponses, broken, &[4, 5], "messages[1]: tool name `a b`");
    }

    #[test]
    fn an_array_without_a_valid_message_becomes_empty() {
        assert_left(Dialect::Anthropic, &[SAYS], &[], "messages[0]: the last message");
        let lone = r#"{"role":"user","content":"\ud800"}"#;
        assert_left(Dialect::OpenaiChat, &[lone], &[], "messages[0]: half a surrogate pair");
        let half = r#"{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}"#;
        assert_left(
            Dialect::Gemini,
            &[half, r#"{"parts":[{"text":"q"}]}"#],
            &[1],
            "messages[0]: 1 resp",
        );
    }
}
