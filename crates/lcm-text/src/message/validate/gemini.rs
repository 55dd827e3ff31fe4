//! Rules of the Gemini API.
//!
//! In: an array of contents. Out: a finding for each broken rule.

use alloc::{string::String, vec::Vec};

use crate::{
    base::json::{self, JsonKind, JsonValue},
    message::{
        blocks::JsonObject, gemini::get_object_either, provider_limits,
        validate::findings::Findings,
    },
    types::api::Dialect,
};

/// Id and name of a call or of a response; the id is empty if the call or response has no id.
type CallName = (String, String);

/// Checks an array of contents; `before` is the accepted content before the array, if any.
pub(super) fn check(
    raw: &str,
    messages: &[JsonValue],
    before: Option<&str>,
    findings: &mut Findings,
) {
    // `open` lists the calls that the next content must answer.
    let mut open: Vec<CallName> = Vec::new();
    let mut after_model = true;
    if let Some(raw) = before
        && let Ok(members) = json::parse_object(raw)
    {
        let content = JsonObject::new(raw, members);
        after_model = content.get_text("role") == "model";
        open = check_parts(raw, &content, after_model, findings).0;
    }
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let content = JsonObject::from_value(raw, *value);
        findings.report_unless(content.is_some(), format_args!("not a JSON object"));
        let Some(content) = content else { continue };
        for member in &content.members {
            let key = json::text(raw, member.key);
            findings.report_unless(
                matches!(&*key, "role" | "parts"),
                format_args!("member `{key}` is unknown to the provider"),
            );
        }
        let role = content.get_text("role");
        let is_model = role == "model";
        let is_role = matches!(&*role, "user" | "model")
            || json::find_member(&content.members, raw, "role").is_none();
        findings.report_unless(is_role, format_args!("role `{role}` is unknown to the provider"));
        let has_previous = at > 0 || before.is_some();
        let wrong = format_args!("the first content is not the user's");
        findings.report_unless(has_previous || !is_model, wrong);
        let (calls, results) = check_parts(raw, &content, is_model, findings);
        check_results(&open, results, findings);
        findings.report_unless(
            calls.is_empty() || !after_model,
            format_args!("calls that do not follow a user's content"),
        );
        open = calls;
        after_model = is_model;
    }
    let names: Vec<&str> = open.iter().map(|(_, name)| name.as_str()).collect();
    let wrong = format_args!("calls without a result: `{}`", names.join("`, `"));
    findings.report_unless(open.is_empty(), wrong);
    let is_empty = messages.is_empty();
    findings
        .report_unless(!after_model || is_empty, format_args!("the last content is the model's"));
}

/// Checks the parts of a content; returns its calls and its responses.
fn check_parts(
    raw: &str,
    content: &JsonObject<'_>,
    is_model: bool,
    findings: &mut Findings,
) -> (Vec<CallName>, Vec<CallName>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let parts = content.get_list("parts");
    findings.report_unless(!parts.is_empty(), format_args!("no parts"));
    for value in &parts {
        let Some(part) = JsonObject::from_value(raw, *value) else {
            findings.report_unless(false, format_args!("a part that is no object"));
            continue;
        };
        if let Some(call) = get_object_either(&part, "functionCall", "function_call") {
            findings.report_unless(is_model, format_args!("a user's function call"));
            let args = call.get_field("args").is_none_or(|args| args.kind == JsonKind::Object);
            findings.report_unless(args, format_args!("arguments that are no object"));
            calls.push(read_call_name(&call, findings));
        } else if let Some(result) =
            get_object_either(&part, "functionResponse", "function_response")
        {
            findings.report_unless(!is_model, format_args!("a model's function response"));
            let is_object = result.get_object("response").is_some();
            findings.report_unless(is_object, format_args!("a response that is no object"));
            results.push(read_call_name(&result, findings));
        } else {
            check_part(raw, &part, findings);
        }
        findings.report_stripped(Dialect::Gemini, json::slice_span(raw, value.span));
        let is_single = provider_limits::count_part_kinds(&part) <= 1;
        findings.report_unless(is_single, format_args!("a part with two kinds of data"));
    }
    (calls, results)
}

/// Reads id and name of a call or of a response, and checks the name.
fn read_call_name(object: &JsonObject<'_>, findings: &mut Findings) -> CallName {
    let (id, name) = (object.get_text("id"), object.get_text("name"));
    let fits =
        !name.is_empty() && provider_limits::sanitize_tool_name(Dialect::Gemini, &name) == name;
    findings
        .report_unless(fits, format_args!("tool name `{name}` is not accepted by the provider"));
    (id.into_owned(), name.into_owned())
}

/// Checks a part that is neither a call nor a response.
fn check_part(raw: &str, part: &JsonObject<'_>, findings: &mut Findings) {
    let has_data = !provider_limits::has_only_metadata(raw, part);
    findings.report_unless(has_data, format_args!("a part without data"));
    let has = |object: &JsonObject<'_>, camel, snake| {
        !object.get_text(camel).is_empty() || !object.get_text(snake).is_empty()
    };
    if part.get_value("text").is_some() {
        let has_text =
            has(part, "text", "text") || has(part, "thoughtSignature", "thought_signature");
        findings.report_unless(has_text, format_args!("blank text"));
    }
    if part.get_value("inlineData").or_else(|| part.get_value("inline_data")).is_some() {
        let is_valid = get_object_either(part, "inlineData", "inline_data")
            .is_some_and(|data| has(&data, "mimeType", "mime_type") && has(&data, "data", "data"));
        findings.report_unless(is_valid, format_args!("data without a type or bytes"));
    }
    if part.get_value("fileData").or_else(|| part.get_value("file_data")).is_some() {
        let is_valid = get_object_either(part, "fileData", "file_data")
            .is_some_and(|data| has(&data, "fileUri", "file_uri"));
        findings.report_unless(is_valid, format_args!("a file without its address"));
    }
}

/// Checks that each call in `open`, the calls of the previous content, has one response with the
/// same id and name.
fn check_results(open: &[CallName], results: Vec<CallName>, findings: &mut Findings) {
    let is_same_count = open.len() == results.len();
    // If responses are missing, the content with the calls is to blame.
    let fault = findings.message_index.saturating_sub(usize::from(open.len() > results.len()));
    findings.report_messages_unless(
        &[fault],
        is_same_count,
        format_args!("{} responses to {} calls of the content before", results.len(), open.len()),
    );
    let mut left: Vec<&CallName> = open.iter().collect();
    for result in &results {
        match left.iter().position(|call| **call == *result) {
            Some(at) => {
                left.remove(at);
            }
            None => findings.report_unless(
                !is_same_count,
                format_args!("response of no open call `{}`", result.1),
            ),
        }
    }
}
