//! The rules of the Gemini API.

use alloc::{string::String, vec::Vec};

use super::Findings;
use crate::{
    base::json::{self, Kind, Value},
    message::{Object, below, provider_limits},
    types::api::Dialect,
};

/// Id (or nothing) and name of a call or a response.
type Names = (String, String);

/// Checks contents; `before`: the one that stands before them.
pub(super) fn check(raw: &str, messages: &[Value], before: Option<&str>, findings: &mut Findings) {
    // Calls that the next content must answer, and whether the last content was the model's.
    let mut open: Vec<Names> = Vec::new();
    let mut after_model = true;
    if let Some(raw) = before
        && let Ok(members) = json::object(raw)
    {
        let content = Object::new(raw, members);
        after_model = content.text("role") == "model";
        open = check_parts(raw, &content, after_model, findings).0;
    }
    for (at, value) in messages.iter().enumerate() {
        findings.at = at;
        let content = Object::of(raw, *value);
        findings.expect(content.is_some(), format_args!("no object"));
        let Some(content) = content else { continue };
        for member in &content.members {
            let key = json::text(raw, member.key);
            findings.expect(matches!(&*key, "role" | "parts"), format_args!("member `{key}`"));
        }
        let role = content.text("role");
        let is_model = role == "model";
        let is_role = matches!(&*role, "user" | "model" | "function")
            || json::member(&content.members, raw, "role").is_none();
        findings.expect(is_role, format_args!("role `{role}`"));
        let may_be_model = at > 0 || before.is_some();
        let wrong = format_args!("the first content is not the user's");
        findings.expect(may_be_model || !is_model, wrong);
        let (calls, results) = check_parts(raw, &content, is_model, findings);
        check_results(&open, results, findings);
        findings.expect(
            calls.is_empty() || !after_model,
            format_args!("calls that do not follow a user's content"),
        );
        open = calls;
        after_model = is_model;
    }
    findings.expect(open.is_empty(), format_args!("calls without a result: {open:?}"));
    let is_empty = messages.is_empty();
    findings.expect(!after_model || is_empty, format_args!("the last content is the model's"));
}

/// Checks the parts of a content and hands out its calls and responses.
fn check_parts(
    raw: &str,
    content: &Object<'_>,
    is_model: bool,
    findings: &mut Findings,
) -> (Vec<Names>, Vec<Names>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let parts = content.list("parts");
    findings.expect(!parts.is_empty(), format_args!("no parts"));
    for value in &parts {
        let Some(part) = Object::of(raw, *value) else {
            findings.expect(false, format_args!("a part that is no object"));
            continue;
        };
        if let Some(call) = below(&part, "functionCall", "function_call") {
            findings.expect(is_model, format_args!("a user's function call"));
            let args = call.field("args").is_none_or(|args| args.kind == Kind::Object);
            findings.expect(args, format_args!("arguments that are no object"));
            calls.push(names(&call, findings));
        } else if let Some(result) = below(&part, "functionResponse", "function_response") {
            findings.expect(!is_model, format_args!("a model's function response"));
            let says = result.object("response").is_some();
            findings.expect(says, format_args!("a response that is no object"));
            results.push(names(&result, findings));
        } else {
            check_part(raw, &part, findings);
        }
        let is_single = !provider_limits::is_double(&part);
        findings.expect(is_single, format_args!("a part of two kinds"));
    }
    (calls, results)
}

fn names(object: &Object<'_>, findings: &mut Findings) -> Names {
    let (id, name) = (object.text("id"), object.text("name"));
    let fits = !name.is_empty() && provider_limits::name(Dialect::Gemini, &name) == name;
    findings.expect(fits, format_args!("tool name `{name}`"));
    (id.into_owned(), name.into_owned())
}

fn check_part(raw: &str, part: &Object<'_>, findings: &mut Findings) {
    let holds = !provider_limits::is_about(raw, part);
    findings.expect(holds, format_args!("a part of nothing"));
    let has = |object: &Object<'_>, camel, snake| {
        !object.text(camel).is_empty() || !object.text(snake).is_empty()
    };
    if part.any("text").is_some() {
        let says = has(part, "text", "text") || has(part, "thoughtSignature", "thought_signature");
        findings.expect(says, format_args!("blank text"));
    }
    if part.any("inlineData").or_else(|| part.any("inline_data")).is_some() {
        let stands = below(part, "inlineData", "inline_data")
            .is_some_and(|data| has(&data, "mimeType", "mime_type") && has(&data, "data", "data"));
        findings.expect(stands, format_args!("data without a type or bytes"));
    }
    if part.any("fileData").or_else(|| part.any("file_data")).is_some() {
        let stands = below(part, "fileData", "file_data")
            .is_some_and(|data| has(&data, "fileUri", "file_uri"));
        findings.expect(stands, format_args!("a file without its address"));
    }
}

/// Each call of the last content is answered once: by its id if it has one, else by its name.
fn check_results(open: &[Names], results: Vec<Names>, findings: &mut Findings) {
    let same = open.len() == results.len();
    // Where responses are missing, the content with the calls is at fault.
    let fault = findings.at.saturating_sub(usize::from(open.len() > results.len()));
    findings.expect_of(
        &[fault],
        same,
        format_args!("{} responses to {} calls of the content before", results.len(), open.len()),
    );
    let mut left: Vec<&Names> = open.iter().collect();
    for result in &results {
        match left.iter().position(|call| **call == *result) {
            Some(at) => {
                left.remove(at);
            }
            None => findings.expect(!same, format_args!("response of no open call `{}`", result.1)),
        }
    }
}
