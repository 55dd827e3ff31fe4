//! A call of a tool, and the reply of the tool.
//!
//! [`super::call_tool`] builds the call from the parsed arguments and the access of the caller. The
//! module of the tool reads the call and returns the reply.

use alloc::string::String;

use super::arguments::ToolArguments;
use crate::storage::{call::Call, read_scope::ReadLimits, records::grants::GrantAccess};
use lcm_text::types::api::ToolScope;

/// Maximum tokens of an answer, without the content of a file and the texts of `lcm_expand`, which
/// have bounds of their own.
///
/// Every later turn of the agent pays for the answer again. 2,000 tokens hold a summary of the
/// usual target.
pub(super) const TOKENS_MAX: u32 = 2_000;
/// Tokens reserved for the lines that report a cut and name the next call.
pub(super) const CLOSING_TOKENS: u32 = 100;

/// A call of a tool.
pub(super) struct ToolInvocation<'a> {
    /// The call on the conversation of the caller.
    pub(super) call: Call<'a>,
    /// The same call on the conversation that the tool reads, which may be the caller's.
    pub(super) target: Call<'a>,
    pub(super) arguments: &'a ToolArguments,
    /// Access by the caller's grant; `None`: the caller has no grant, and only `scope` limits it.
    pub(super) permit: Option<&'a GrantAccess>,
    /// The conversations that the tool may read.
    pub(super) scope: ToolScope,
}

impl<'a> ToolInvocation<'a> {
    /// Returns the limits of the reads: the grant. The tools cut texts themselves.
    pub(super) fn read_limits(&self) -> ReadLimits<'a> {
        ReadLimits { permit: self.permit, tokens_max: None, searched_ranges: None }
    }

    /// Returns whether the call searches one conversation without its family.
    ///
    /// A caller who names a conversation means this conversation alone, unless the caller asks for
    /// all conversations.
    pub(super) fn is_single_conversation(&self) -> bool {
        let is_named = self.arguments.get_text("conversationId").is_some();
        is_named && !self.arguments.is_set("allConversations")
    }

    /// Returns the conversation that the arguments of a next call name for an id of `conversation`;
    /// `None`: the next call finds the id without the name of the conversation.
    pub(super) fn named_elsewhere<'s>(&self, conversation: &'s str) -> Option<&'s str> {
        name_elsewhere(self.scope, self.call.conversation, conversation)
    }

    /// Returns the maximum tokens of stored text in the answer: the tokens left of the grant, or
    /// `u32::MAX` without a grant.
    pub(super) fn tokens_left(&self) -> u32 {
        self.read_limits().tokens_left()
    }
}

/// Returns `conversation` if a caller in `here` must name it to find its ids. `None`:
/// `conversation` is `here`, or the scope is one conversation.
///
/// In the scope of one conversation the tools find the ids of the family, or of the grant, without
/// the name of a conversation.
pub(super) fn name_elsewhere<'s>(
    scope: ToolScope,
    here: &str,
    conversation: &'s str,
) -> Option<&'s str> {
    Some(conversation).filter(|other| scope == ToolScope::Store && *other != here)
}

/// Reply of a tool.
pub(super) struct ToolReply {
    pub(super) text: String,
    /// Tokens of the stored text in the reply, which are charged to a grant.
    pub(super) tokens: u32,
}
