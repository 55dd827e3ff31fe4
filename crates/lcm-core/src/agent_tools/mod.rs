//! The tools that an agent's model calls, all named `lcm_`.
//!
//! In: a name and the arguments of a model. Out: text for the model, bounded in tokens. If the text
//! is cut, it says so and names the next call. Instead of a text, `lcm_expand_query` returns
//! requests to a model, whose answers resume the call. A mistake of the calling model is an answer,
//! not an error. Not here: search ([`crate::search::grep`]) and reading ([`crate::recall`]).
//!
//! The engine's own lines precede the stored text of an answer. Stored text is on one line, except
//! in the last block of an answer. So no stored text can look like a line of the engine.

mod arguments;
mod ask;
mod budget;
mod definitions;
mod describe;
mod expand;
mod grep;
mod invocation;
mod reply_lines;
#[cfg(test)]
mod tests;

use alloc::{format, string::String};

use crate::storage::{call::Call, records::grants::GrantAccess, store_session::StoreSession};
use arguments::ToolArguments;
use definitions::{BUDGET, DESCRIBE, EXPAND, EXPAND_QUERY, GREP};
pub(crate) use definitions::{build_definitions, build_instructions};
use invocation::{ToolInvocation, ToolReply};
use lcm_text::{
    base::error::{ErrorCode, Result},
    types::{
        api::{ToolAnswer, ToolOutcome, ToolRequest, ToolScope},
        model::CompletionResult,
    },
};
use reply_lines::{build_mistake_answer, rename_fields};

/// A function that runs a tool.
type ToolHandler = fn(&mut StoreSession<'_>, &ToolInvocation<'_>) -> Result<ToolReply>;

/// Runs a tool call. `request.grant`: the grant of the calling agent; `None`: the main agent.
///
/// Without a grant and without the scope of the store, the tools read the conversation of the call
/// and its family. For these tools no other conversation exists: names and ids of other
/// conversations get the answers of unknown names and ids.
///
/// # Errors
///
/// `conflict`: another call committed first; `corrupt`: a record or the index is damaged; errors of
/// the store. Errors that the model may have caused are answers.
pub(crate) fn call_tool(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    request: ToolRequest<'_>,
) -> Result<ToolOutcome> {
    let ToolRequest { name, arguments_json, grant: caller, scope } = request;
    let (tool, handler): (_, Option<ToolHandler>) = match name {
        "lcm_grep" => (&GREP, Some(grep::grep)),
        "lcm_describe" => (&DESCRIBE, Some(describe::describe)),
        "lcm_expand" if caller.is_some() => (&EXPAND, Some(expand::expand)),
        "lcm_expand" => {
            let line = "needs a grant, which you do not have; use lcm_expand_query, or \
                        lcm_describe for the sources of an id";
            return Ok(ToolOutcome::Done(build_mistake_answer(name, line)));
        }
        "lcm_expand_query" if caller.is_none() => (&EXPAND_QUERY, None),
        "lcm_expand_query" => {
            let line = "is for the main agent; read with lcm_expand";
            return Ok(ToolOutcome::Done(build_mistake_answer(name, line)));
        }
        "lcm_budget" if caller.is_none() => (&BUDGET, Some(budget::report_budget)),
        "lcm_budget" => {
            let line = "is for the main agent; every answer says what is left of the grant";
            return Ok(ToolOutcome::Done(build_mistake_answer(name, line)));
        }
        _ => {
            let line = "there is no such tool; use lcm_grep, lcm_describe, lcm_expand_query or \
                        lcm_budget";
            return Ok(ToolOutcome::Done(build_mistake_answer(name, line)));
        }
    };
    let answered = tool.read_arguments(arguments_json, scope).and_then(|arguments| {
        let (permit, target) = resolve_access(session, call, &arguments, caller)?;
        let Some(handler) = handler else {
            return call.with_conversation(&target, |target| {
                ask::ask(
                    session,
                    &ToolInvocation { call, target, arguments: &arguments, permit: None, scope },
                )
            });
        };
        let mut reply = call.with_conversation(&target, |target| {
            let permit = permit.as_ref();
            handler(session, &ToolInvocation { call, target, arguments: &arguments, permit, scope })
        })?;
        if let Some(permit) = permit {
            reply.text.insert_str(
                reply.text.find('\n').map_or(0, |at| at + 1),
                &format_charge(&permit, &reply),
            );
            permit.commit_charge(session, reply.tokens)?;
        }
        Ok(ToolOutcome::Done(ToolAnswer { text: reply.text, is_error: false }))
    });
    into_outcome(name, scope, answered)
}

/// Resumes a tool call with the answers to its completion requests.
///
/// # Errors
///
/// - `invalid-input`: the conversation id or the continuation is malformed, or `answers` has not
///   exactly one answer.
/// - `not-found`: the question does not exist any more, or its conversation is outside of the
///   scope.
/// - `denied`: the grant of the question is no longer valid.
/// - `conflict`: another call answered first.
/// - `corrupt`: a record is damaged.
/// - `unsupported`: a record has a newer format.
/// - Errors of the store.
pub(crate) fn resume_call(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    continuation: &str,
    answers: &[CompletionResult],
    scope: ToolScope,
) -> Result<ToolOutcome> {
    ask::resume(session, call, continuation, answers, scope)
}

/// Turns an error that the model may have caused into an answer.
fn into_outcome(
    name: &str,
    scope: ToolScope,
    answered: Result<ToolOutcome>,
) -> Result<ToolOutcome> {
    let error = match answered {
        Ok(outcome) => return Ok(outcome),
        Err(error) => rename_fields(error, &[("conversationId", "conversation")]),
    };
    match error.code {
        ErrorCode::NotFound => {
            let hint = match scope {
                ToolScope::Conversation => "use an id that lcm_grep or a summary shows",
                ToolScope::Store => {
                    "use an id that lcm_grep or a summary shows, with conversationId when it is of \
                     another conversation"
                }
            };
            Ok(ToolOutcome::Done(build_mistake_answer(name, &format!("{}; {hint}", error.message))))
        }
        ErrorCode::InvalidInput
        | ErrorCode::LimitExceeded
        | ErrorCode::Unsupported
        | ErrorCode::Denied => Ok(ToolOutcome::Done(build_mistake_answer(name, &error.message))),
        _ => Err(error),
    }
}

/// Resolves the caller's access and the conversation that the call reads.
///
/// The call reads the named conversation, else its own conversation. If the grant does not cover
/// its own conversation, the call reads the first covered conversation.
///
/// # Errors
///
/// `denied`: the grant is unknown, revoked or expired, or does not cover the named conversation;
/// `invalid-input`: a text that must name a conversation is not a valid conversation id; errors of
/// the store.
fn resolve_access(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    arguments: &ToolArguments,
    caller: Option<&str>,
) -> Result<(Option<GrantAccess>, String)> {
    let named = arguments.get_text("conversationId");
    let target = String::from(named.unwrap_or(call.conversation));
    let Some(caller) = caller else { return Ok((None, target)) };
    let permit = GrantAccess::from_grant(session, call.conversation, caller, call.now)?;
    if named.is_some() {
        permit.ensure_covers(session, &target)?;
        return Ok((Some(permit), target));
    }
    let covered = permit.list_conversations(session)?;
    let target = covered.iter().find(|one| **one == target).or(covered.first()).cloned();
    Ok((Some(permit), target.unwrap_or_default()))
}

/// Formats the line with the tokens charged to the grant and the tokens left.
fn format_charge(permit: &GrantAccess, reply: &ToolReply) -> String {
    let left = permit.tokens_left().saturating_sub(reply.tokens);
    format!("Tokens: {} for this, {left} left\n", reply.tokens)
}
