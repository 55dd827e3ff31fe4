//! `lcm_expand_query`: an answer to a question, which a model writes from what was said.
//!
//! In: the arguments of a model, then the answers of the one that was asked. Out: a request, or
//! text. Not here: evidence and citations ([`crate::ask`]).

use alloc::{format, string::String};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    CLOSING_TOKENS, TOKENS_MAX, ToolInvocation, id_arguments, mistake_answer, next_call_line,
    to_one_line,
};
use crate::{
    ask::{self, AskStep},
    storage::store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{JsonFields, JsonWriter},
        tokens,
    },
    config::Config,
    types::{
        api::{Timestamp, ToolAnswer, ToolOutcome},
        model::CompletionResult,
    },
};

/// The tool.
const TOOL_NAME: &str = "lcm_expand_query";
/// Stands between the continuation of a question and its conversation.
const CONVERSATION_SEPARATOR: char = '@';

/// Arguments and what they are called in a question.
const QUESTION_ARGUMENTS: [(&str, &str); 7] = [
    ("prompt", "question"),
    ("query", "query"),
    ("summaryIds", "summary_ids"),
    ("maxTokens", "answer_tokens_max"),
    ("tokenCap", "tokens_max"),
    ("timeoutMs", "deadline_ms"),
    ("allConversations", "all_conversations"),
];

/// Begins to answer a question.
///
/// # Errors
///
/// As [`ask::plan`].
pub(super) fn ask(reader: &mut StoreSession<'_>, call: &ToolInvocation<'_>) -> Result<ToolOutcome> {
    let place = &call.target_conversation;
    let step = ask::plan(reader, call.config, place, &build_question(call), call.now)?;
    build_outcome(step, place, call.conversation)
}

/// Goes on with a question.
///
/// # Errors
///
/// As [`ask::apply`].
pub(super) fn resume(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    continuation: &str,
    answers: &[CompletionResult],
    now: Timestamp,
) -> Result<ToolOutcome> {
    let (continuation, place) = continuation
        .split_once(CONVERSATION_SEPARATOR)
        .ok_or_else(|| Error::invalid_input("continuation: none of a tool"))?;
    build_outcome(
        ask::apply(reader, config, place, continuation, answers, now)?,
        place,
        conversation,
    )
}

/// The question of a call.
fn build_question(call: &ToolInvocation<'_>) -> String {
    let mut question = JsonWriter::new_object();
    call.arguments.copy_into(&QUESTION_ARGUMENTS, &mut question);
    question.add_flag("only", call.is_single_conversation());
    question.end_object()
}

/// What is told of a step of a question of the conversation `place`, in a call of `conversation`.
///
/// # Errors
///
/// `invalid-input`: its document cannot be read, which would be a mistake of the engine.
fn build_outcome(step: AskStep, place: &str, conversation: &str) -> Result<ToolOutcome> {
    let mut fields = JsonFields::parse_argument("document", &step.document)?;
    if !step.requests.is_empty() {
        let continuation = format!("{}{CONVERSATION_SEPARATOR}{place}", step.continuation);
        let (requests, deadline_ms) = (step.requests, fields.take_u64("deadline_ms"));
        return Ok(ToolOutcome::NeedsCompletions { requests, continuation, deadline_ms });
    }
    let status = fields.take_text("status");
    Ok(ToolOutcome::Done(match status.as_str() {
        "answered" | "uncited" => text_answer(format_answer(&mut fields, conversation)),
        "not-found" => {
            text_answer(no_answer_text("The passages that were found do not hold the answer."))
        }
        "no-evidence" if fields.take_flag("truncated") => text_answer(format!(
            "{BACKGROUND_LINE}\nWhat was found does not fit into the tokens that may be read.\nNext: \
             the same question with a greater tokenCap, or lcm_grep\n"
        )),
        "no-evidence" => text_answer(no_answer_text("Nothing was found for the question.")),
        "busy" => mistake_answer(
            TOOL_NAME,
            &format!(
                "another question of this conversation is being answered, at most until {}; use \
                 lcm_grep meanwhile",
                fields.take_text("expires_at")
            ),
        ),
        _ => mistake_answer(
            TOOL_NAME,
            &format!("the model gave no answer ({status}); use lcm_grep and lcm_describe"),
        ),
    }))
}

fn text_answer(text: String) -> ToolAnswer {
    ToolAnswer { text, is_error: false }
}

/// The answer, after what it rests on.
fn format_answer(fields: &mut JsonFields<'_>, conversation: &str) -> String {
    let cited = fields.take_texts("cited_ids");
    let places = fields.take_texts("cited_conversations");
    let elsewhere = places.first().filter(|place| *place != conversation);
    let rejected = fields.take_texts("rejected_ids");
    let conversations = fields.take_texts("source_conversations");
    let mut out = format!("{BACKGROUND_LINE}\n");
    match cited.first() {
        Some(id) => {
            out.push_str(&format!("Cited: {}\n", cited.join(", ")));
            let arguments = id_arguments(id, elsewhere.map(String::as_str));
            out.push_str(&next_call_line(arguments, "gives the words of the first"));
        }
        None => out.push_str("Cited: nothing that was read; look it up before you rely on it\n"),
    }
    if !rejected.is_empty() {
        out.push_str(&format!("Named, but not read: {}\n", rejected.join(", ")));
    }
    if conversations.len() > 1 {
        out.push_str(&format!("Read in: {}\n", to_one_line(&conversations.join(", "))));
    }
    if fields.take_flag("truncated") {
        out.push_str("Not all that was found was read, or the answer was cut.\n");
    }
    out.push_str("What a model answers from what was read:\n");
    let answer = fields.take_text("answer");
    let left = TOKENS_MAX.saturating_sub(tokens::estimate(&out));
    let cut = tokens::truncate_to_tokens(&answer, left);
    out.push_str(cut);
    if cut.len() < answer.len() {
        out = tokens::truncate_to_tokens(&out, TOKENS_MAX - CLOSING_TOKENS).into();
        out.push_str("\n[cut: ask with a smaller maxTokens]");
    }
    out
}

fn no_answer_text(line: &str) -> String {
    format!("{BACKGROUND_LINE}\n{line}\nNext: lcm_grep with fewer or other words\n")
}
