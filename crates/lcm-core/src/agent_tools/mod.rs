//! The tools that an agent's model calls, all named `lcm_`.
//!
//! In: a name and arguments as a model wrote them. Out: text for the model, bounded in tokens, that
//! says what was cut and which call goes on. Whatever a model may have done wrong is an answer and
//! no error. Nothing stored stands before the engine's own lines in an answer, and only the last
//! block of one has more than a line of it, so that no stored text can pass for them. Not here:
//! how anything is found or read ([`crate::recall`]).

mod arguments;
mod ask;
mod budget;
mod definitions;
mod describe;
mod expand;
mod grep;
#[cfg(test)]
mod tests;

use alloc::{format, string::String};

use crate::storage::{
    keys::ConversationKeys, read_scope::ReadLimits, records::grants::GrantAccess,
    store_session::StoreSession,
};
use arguments::ToolArguments;
use definitions::{BUDGET, DESCRIBE, EXPAND, EXPAND_QUERY, GREP};
pub(crate) use definitions::{build_definitions, build_instructions};
use lcm_text::{
    base::{
        error::{ErrorCode, Result},
        json::JsonWriter,
        tokens,
    },
    config::Config,
    types::{
        api::{Timestamp, ToolAnswer, ToolOutcome},
        model::CompletionResult,
    },
};

/// Tokens of an answer, but for the content of a file, which has a bound of its own. An answer is
/// paid in every later turn; 2,000 hold a summary of the usual target.
const TOKENS_MAX: u32 = 2_000;
/// Tokens kept free for the lines that say what was cut and which call goes on.
const CLOSING_TOKENS: u32 = 100;
/// Tokens of an error, which may quote what the model wrote.
const ERROR_TOKENS_MAX: u32 = 200;
/// A call of a tool.
struct ToolInvocation<'a> {
    conversation: &'a str,
    arguments: ToolArguments,
    /// What the caller may read; `None`: everything.
    permit: Option<GrantAccess>,
    /// The conversation that is read.
    target_conversation: String,
    config: &'a Config,
    now: Timestamp,
}

impl ToolInvocation<'_> {
    /// What may be read. Texts are cut by the tools.
    fn read_bounds(&self) -> ReadLimits<'_> {
        ReadLimits { permit: self.permit.as_ref(), tokens_max: None, searched_ranges: None }
    }

    /// Whether one conversation alone is searched: who names one means it without its family,
    /// unless every one is asked for.
    fn is_single_conversation(&self) -> bool {
        let is_named = self.arguments.get_text("conversationId").is_some();
        is_named && !self.arguments.is_set("allConversations")
    }

    /// Tokens of stored text that the answer may have.
    fn tokens_left(&self) -> u32 {
        self.read_bounds().tokens_left()
    }
}

/// What a tool says.
struct ToolReply {
    text: String,
    /// Of the stored text in it, for which a grant is charged.
    tokens: u32,
}

/// A tool's answer to a call.
type ToolHandler = fn(&mut StoreSession<'_>, &ToolInvocation<'_>) -> Result<ToolReply>;

/// Answers a call.
///
/// # Errors
///
/// `invalid-input`: the conversation is no id; `conflict`: another call on the grant was faster;
/// errors of the store, and `corrupt`.
pub(crate) fn call_tool(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    name: &str,
    arguments_json: &str,
    caller: Option<&str>,
    now: Timestamp,
) -> Result<ToolOutcome> {
    ConversationKeys::new(conversation)?;
    let (tool, answers): (_, Option<ToolHandler>) = match name {
        "lcm_grep" => (&GREP, Some(grep::grep)),
        "lcm_describe" => (&DESCRIBE, Some(describe::describe)),
        "lcm_expand" if caller.is_some() => (&EXPAND, Some(expand::expand)),
        "lcm_expand" => {
            let line = "needs a grant, which you do not have; use lcm_expand_query, or \
                        lcm_describe for the sources of an id";
            return Ok(ToolOutcome::Done(mistake_answer(name, line)));
        }
        "lcm_expand_query" if caller.is_none() => (&EXPAND_QUERY, None),
        "lcm_expand_query" => {
            let line = "is for the main agent; read with lcm_expand";
            return Ok(ToolOutcome::Done(mistake_answer(name, line)));
        }
        "lcm_budget" if caller.is_none() => (&BUDGET, Some(budget::report_budget)),
        "lcm_budget" => {
            let line = "is for the main agent; every answer says what is left of the grant";
            return Ok(ToolOutcome::Done(mistake_answer(name, line)));
        }
        _ => {
            let line = "there is no such tool; use lcm_grep, lcm_describe, lcm_expand_query or \
                        lcm_budget";
            return Ok(ToolOutcome::Done(mistake_answer(name, line)));
        }
    };
    let answered = tool.read_arguments(arguments_json).and_then(|arguments| {
        let (permit, place) = resolve_access(reader, conversation, &arguments, caller, now)?;
        let call = ToolInvocation {
            conversation,
            arguments,
            permit,
            target_conversation: place,
            config,
            now,
        };
        let Some(answers) = answers else { return ask::ask(reader, &call) };
        let mut told = answers(reader, &call)?;
        if let Some(permit) = call.permit {
            told.text.insert_str(
                told.text.find('\n').map_or(0, |at| at + 1),
                &format_charge(&permit, &told),
            );
            permit.commit_charge(reader, told.tokens)?;
        }
        Ok(ToolOutcome::Done(ToolAnswer { text: told.text, is_error: false }))
    });
    into_outcome(name, answered)
}

/// Goes on with a call that needed a model.
///
/// # Errors
///
/// `invalid-input`: the conversation is no id, the continuation is none, or there is not one answer
/// for each request; errors of the store, and `corrupt`.
pub(crate) fn resume_call(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    continuation: &str,
    answers: &[CompletionResult],
    now: Timestamp,
) -> Result<ToolOutcome> {
    ConversationKeys::new(conversation)?;
    ask::resume(reader, config, conversation, continuation, answers, now)
}

/// What a model may have done wrong is an answer.
fn into_outcome(name: &str, answered: Result<ToolOutcome>) -> Result<ToolOutcome> {
    let error = match answered {
        Ok(outcome) => return Ok(outcome),
        Err(error) => error,
    };
    match error.code {
        ErrorCode::NotFound => {
            let hint = "use an id that lcm_grep or a summary shows, with conversationId when it \
                        is of another conversation";
            Ok(ToolOutcome::Done(mistake_answer(name, &format!("{}; {hint}", error.message))))
        }
        ErrorCode::InvalidInput
        | ErrorCode::LimitExceeded
        | ErrorCode::Unsupported
        | ErrorCode::Denied => Ok(ToolOutcome::Done(mistake_answer(name, &error.message))),
        _ => Err(error),
    }
}

/// What the caller may read, and the conversation that it reads: the one it names, else the one of
/// the call, or when its grant does not cover that, the first that it covers.
///
/// # Errors
///
/// `denied`: the grant; `invalid-input`: an id; errors of the store.
fn resolve_access(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    arguments: &ToolArguments,
    caller: Option<&str>,
    now: Timestamp,
) -> Result<(Option<GrantAccess>, String)> {
    let named = arguments.get_text("conversationId");
    let place = String::from(named.unwrap_or(conversation));
    let Some(caller) = caller else { return Ok((None, place)) };
    let permit = GrantAccess::from_grant(reader, conversation, caller, now)?;
    if named.is_some() {
        permit.ensure_covers(reader, &place)?;
        return Ok((Some(permit), place));
    }
    let covered = permit.list_conversations(reader)?;
    let place = covered.iter().find(|one| **one == place).or(covered.first()).cloned();
    Ok((Some(permit), place.unwrap_or_default()))
}

/// The line that says what an answer takes of the grant.
fn format_charge(permit: &GrantAccess, told: &ToolReply) -> String {
    let left = permit.tokens_left().saturating_sub(told.tokens);
    format!("Tokens: {} for this, {left} left\n", told.tokens)
}

/// An answer that says what the model did wrong, in one line.
fn mistake_answer(name: &str, message: &str) -> ToolAnswer {
    let line = to_one_line(&format!("{name}: {message}"));
    ToolAnswer { text: tokens::truncate_to_tokens(&line, ERROR_TOKENS_MAX).into(), is_error: true }
}

/// A text as it can stand in a line.
fn to_one_line(text: &str) -> String {
    // The two separators end a line, too, and are no control characters.
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if is_break(c) { ' ' } else { c }).collect()
}

/// Arguments that name an id, for the line that says which call goes on.
fn id_arguments(id: &str, conversation: Option<&str>) -> JsonWriter {
    let mut arguments = JsonWriter::new_object();
    arguments.add_text("id", id);
    if let Some(conversation) = conversation {
        arguments.add_text("conversationId", conversation);
    }
    arguments
}

/// The line that says which call goes on.
fn next_call_line(arguments: JsonWriter, what_for: &str) -> String {
    format!("Next: lcm_describe {} {what_for}\n", arguments.end_object())
}
