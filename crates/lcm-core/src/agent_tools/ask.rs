//! `lcm_expand_query`: an answer to a question, which a model writes from stored messages.
//!
//! In: the arguments of the calling model, then the answers to the completion requests. Out:
//! completion requests, or the text of the answer. Not here: evidence and citations
//! ([`crate::ask`]).

use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    invocation::{CLOSING_TOKENS, TOKENS_MAX, ToolInvocation, name_elsewhere},
    reply_lines::{
        build_id_arguments, build_mistake_answer, format_next_call, rename_fields, to_one_line,
    },
};
use crate::{
    ask::{self, AskStep},
    storage::{
        call::Call, head::LoadedHead, session::list_other_members, store_session::StoreSession,
        withdrawn_mark,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, JsonFields, JsonWriter},
        tokens,
    },
    types::{
        api::{ToolAnswer, ToolOutcome, ToolScope},
        model::CompletionResult,
    },
};

/// Name of the tool.
const TOOL_NAME: &str = "lcm_expand_query";
/// Separator in the continuation of a tool call: the continuation of the question, then its
/// conversation.
const CONVERSATION_SEPARATOR: char = '@';

/// Names of arguments, each with the name of its field in a question.
const QUESTION_ARGUMENTS: [(&str, &str); 7] = [
    ("prompt", "question"),
    ("query", "query"),
    ("summaryIds", "summary_ids"),
    ("maxTokens", "answer_tokens_max"),
    ("tokenCap", "tokens_max"),
    ("timeoutMs", "deadline_ms"),
    ("allConversations", "all_conversations"),
];

/// Plans a question: the first step of the call.
///
/// # Errors
///
/// The errors of [`ask::plan`], with the names of the tool's arguments.
pub(super) fn ask(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolOutcome> {
    let target = invocation.target;
    let step = ask::plan(session, target, &build_question(invocation))
        .map_err(|error| rename_fields(error, &QUESTION_ARGUMENTS))?;
    let asker =
        QuestionAsker { conversation: invocation.call.conversation, scope: invocation.scope };
    build_outcome(step, target.conversation, asker)
}

/// Resumes a question with the answers of the model.
///
/// # Errors
///
/// The errors of [`ask::apply`]; `not-found`: the question belongs to a conversation outside of the
/// scope; the error is the same as if that conversation did not exist.
pub(super) fn resume(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    continuation: &str,
    answers: &[CompletionResult],
    scope: ToolScope,
) -> Result<ToolOutcome> {
    let (continuation, target) =
        continuation.split_once(CONVERSATION_SEPARATOR).ok_or_else(|| {
            Error::invalid_input(
                "`continuation` must be the one that a tool call returned, unchanged",
            )
        })?;
    if scope == ToolScope::Conversation {
        ensure_within_family(session, call, target)?;
    }
    let step = call
        .with_conversation(target, |target| ask::apply(session, target, continuation, answers))?;
    build_outcome(step, target, QuestionAsker { conversation: call.conversation, scope })
}

/// Refuses a conversation that is neither the conversation of the call nor of its family.
fn ensure_within_family(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    target: &str,
) -> Result<()> {
    if target == call.conversation {
        return Ok(());
    }
    let family = LoadedHead::open(session, call)?.head.family;
    let members = match family {
        Some(family) => list_other_members(session, family, call.conversation)?,
        None => Vec::new(),
    };
    match members.iter().any(|member| member.conversation == target) {
        true => Ok(()),
        false => Err(LoadedHead::missing_error(target)),
    }
}

/// Builds the question of a call as JSON.
fn build_question(invocation: &ToolInvocation<'_>) -> String {
    let mut question = JsonWriter::new_object();
    invocation.arguments.copy_into(&QUESTION_ARGUMENTS, &mut question);
    question.add_flag("only", invocation.is_single_conversation());
    question.end_object()
}

/// The caller who asks a question.
#[derive(Clone, Copy)]
struct QuestionAsker<'a> {
    conversation: &'a str,
    scope: ToolScope,
}

/// Builds the outcome of a step of a question about `target`.
///
/// # Errors
///
/// `invalid-input`: the document of the step is unreadable, which would be a bug of the engine.
fn build_outcome(step: AskStep, target: &str, asker: QuestionAsker<'_>) -> Result<ToolOutcome> {
    let mut fields = JsonFields::parse_argument("document", &step.document)?;
    if !step.requests.is_empty() {
        let continuation = format!("{}{CONVERSATION_SEPARATOR}{target}", step.continuation);
        let (requests, deadline_ms) = (step.requests, fields.take_u64("deadline_ms"));
        return Ok(ToolOutcome::NeedsCompletions { requests, continuation, deadline_ms });
    }
    let status = fields.take_text("status");
    Ok(ToolOutcome::Done(match status.as_str() {
        "answered" | "uncited" => {
            build_text_answer(format_answer(&step.document, &mut fields, asker))
        }
        "not-found" => build_text_answer(format_no_answer(
            "The passages that were found do not hold the answer.",
        )),
        "no-evidence" if fields.take_flag("truncated") => build_text_answer(format!(
            "{BACKGROUND_LINE}\nWhat was found does not fit into the tokens that may be read.\nNext: \
             the same question with a greater tokenCap, or lcm_grep\n"
        )),
        "no-evidence" => build_text_answer(format_no_answer("Nothing was found for the question.")),
        "busy" => build_mistake_answer(
            TOOL_NAME,
            &format!(
                "another question of this conversation is being answered, at most until {}; use \
                 lcm_grep meanwhile",
                fields.take_text("expires_at")
            ),
        ),
        _ => build_mistake_answer(
            TOOL_NAME,
            &format!("the model gave no answer ({status}); use lcm_grep and lcm_describe"),
        ),
    }))
}

/// Builds an answer that is not an error.
fn build_text_answer(text: String) -> ToolAnswer {
    ToolAnswer { text, is_error: false }
}

/// Formats the citations and notes, then the answer.
fn format_answer(document: &str, fields: &mut JsonFields<'_>, asker: QuestionAsker<'_>) -> String {
    let cited = fields.take_texts("cited_ids");
    let cited_in = fields.take_texts("cited_conversations");
    let elsewhere = cited_in
        .first()
        .and_then(|cited_in| name_elsewhere(asker.scope, asker.conversation, cited_in));
    let rejected = fields.take_texts("rejected_ids");
    let conversations = fields.take_texts("source_conversations");
    let mut out = format!("{BACKGROUND_LINE}\n");
    match cited.first() {
        Some(id) => {
            let mut names = cited.clone();
            for row in fields.take_optional_list("withdrawn_ids") {
                let mut row = JsonFields::new(document, json::list_members(document, row.span));
                let id = row.take_text("id");
                let note = withdrawn_mark::take_note(&mut row);
                names.iter_mut().filter(|name| **name == id).for_each(|name| name.push_str(&note));
            }
            out.push_str(&format!("Cited: {}\n", names.join(", ")));
            let arguments = build_id_arguments(id, elsewhere);
            out.push_str(&format_next_call(arguments, "gives the words of the first"));
        }
        None => out.push_str(
            "Cited: no passage that was read; look the answer up before you rely on it\n",
        ),
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
    out.push_str("Answer from what was read:\n");
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

/// Formats the reply of a question without an answer.
fn format_no_answer(line: &str) -> String {
    format!("{BACKGROUND_LINE}\n{line}\nNext: lcm_grep with fewer or other words\n")
}
