//! Scope of a read: the limits of the caller's grant, and the conversation that has an id.
//!
//! In: a text with an id, as a caller copied it, and a grant or none. Out: the id, the conversation
//! that has the id, and the limits of the read. [`crate::recall`] and [`crate::agent_tools`] read
//! within this scope. Grants themselves are in [`crate::storage::records::grants`].

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        json::JsonWriter,
        tokens,
    },
    message::large_payload,
};

use crate::storage::{
    call::Call,
    codec::is_tombstone,
    conversation_list,
    head::LoadedHead,
    keys::ConversationKeys,
    records::{
        grants::{self, GrantAccess},
        system_slot,
    },
    session::list_other_members,
    store_session::StoreSession,
    summary::{self, Summary},
};

/// A parsed id of a summary, message or file.
pub(crate) enum ResolvedId {
    Summary([u8; 8]),
    /// The seq of the message.
    Message(u64),
    /// The id of a large payload.
    File([u8; 8]),
    /// The id of a version of the system messages.
    System([u8; 8]),
}

/// The limits of a read: grant, tokens of stored text in the answer, and ranges of messages.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadLimits<'a> {
    /// The grant that limits the read; `None`: everything may be read.
    pub(crate) permit: Option<&'a GrantAccess>,
    /// Most tokens of stored text in the answer, which then has a member `grant`. `None`: there is
    /// no grant, or the caller cuts the text itself.
    pub(crate) tokens_max: Option<u32>,
    /// The only ranges to search: conversation, first and last seq; `None`: the query sets the
    /// range.
    pub(crate) searched_ranges: Option<&'a [(&'a str, u64, u64)]>,
}

impl<'a> ReadLimits<'a> {
    /// Returns the limits of a grant; without a grant there are none.
    pub(crate) fn from_permit(permit: Option<&'a GrantAccess>) -> Self {
        Self { permit, tokens_max: permit.map(GrantAccess::tokens_left), searched_ranges: None }
    }

    /// Returns whether the grant covers the messages `first` to `last`, in one of its ranges;
    /// always true without a grant.
    pub(crate) fn covers_range(self, keys: &ConversationKeys, first: u64, last: u64) -> bool {
        let spans = self.permit.and_then(|permit| permit.covered_spans(keys));
        grants::is_within(spans.as_deref(), first, last)
    }

    /// Returns the error `denied` if the grant has no tokens left. Callers check coverage first, so
    /// that an error of coverage takes precedence.
    pub(crate) fn ensure_tokens_left(self) -> Result<()> {
        self.permit.map_or(Ok(()), GrantAccess::ensure_tokens_left)
    }

    /// Returns the tokens left of the grant; `u32::MAX` without a grant.
    pub(crate) fn tokens_left(self) -> u32 {
        self.permit.map_or(u32::MAX, GrantAccess::tokens_left)
    }

    /// Returns the longest beginning of `text` within `tokens_max`; the whole text without a limit.
    pub(crate) fn truncate_text(self, text: &str) -> &str {
        self.tokens_max.map_or(text, |tokens_max| tokens::truncate_to_tokens(text, tokens_max))
    }

    /// Adds the member `grant` to an answer: the tokens that the answer charges, the tokens left
    /// after the charge, and whether text was cut. Adds nothing without a grant or without
    /// `tokens_max`.
    pub(crate) fn write_grant_note(self, tokens: u32, truncated: bool, to: &mut JsonWriter) {
        if let (Some(permit), Some(_)) = (self.permit, self.tokens_max) {
            let left = permit.tokens_left().saturating_sub(tokens);
            to.add_object("grant", permit.build_note(tokens, left, truncated));
        }
    }
}

/// The answer of a read, with the tokens to charge to a grant.
pub(crate) struct RecallAnswer {
    pub(crate) json: String,
    /// Tokens of the stored text in the answer: summaries, messages, passages and files. Ids, times
    /// and sizes cost nothing.
    pub(crate) tokens: u32,
    /// The first entry that did not fit an expansion; `None`: all entries fitted.
    pub(crate) omitted: Option<OmittedEntry>,
    /// For each match of a search by regular expression, the cursor of a search that begins at this
    /// match; empty for other reads.
    pub(crate) cursors: Vec<String>,
}

/// The first summary or message that did not fit an expansion.
pub(crate) struct OmittedEntry {
    pub(crate) id: String,
    pub(crate) tokens: u64,
    /// Id of the entry before, which this answer or an earlier answer shows; `None`: no entry
    /// precedes.
    pub(crate) previous_id: Option<String>,
}

impl RecallAnswer {
    pub(crate) fn new(answer: JsonWriter, tokens: u32) -> Self {
        Self { json: answer.end_object(), tokens, omitted: None, cursors: Vec::new() }
    }
}

/// Charges the grant of the caller, then returns the JSON of an answer.
pub(crate) fn charge_answer(
    session: &mut StoreSession<'_>,
    answer: RecallAnswer,
    permit: Option<GrantAccess>,
) -> Result<String> {
    if let Some(permit) = permit {
        permit.commit_charge(session, answer.tokens)?;
    }
    Ok(answer.json)
}

/// An id to find in the conversation of a call, or in another conversation.
#[derive(Clone, Copy)]
pub(crate) struct IdLookup<'a> {
    /// Text that contains the id, as the caller copied it.
    pub(crate) id: &'a str,
    /// Grant whose conversations are searched; `None`: the family of the conversation is searched.
    pub(crate) permit: Option<&'a GrantAccess>,
    /// Whether all conversations of the store are searched after the family; ignored with a grant.
    pub(crate) all_conversations: bool,
}

/// Calls `ask` for the conversation of the call and, while the result is `not-found`, for other
/// conversations that may have the id. Returns the first result that is not `not-found`.
///
/// The other conversations are those that the grant covers; without a grant, the family, newest
/// member first, then with `all_conversations` all others of the store. Each costs one key of a
/// `get-many`.
///
/// # Errors
///
/// - `not-found`: no conversation has the id.
/// - `denied`: no conversation has the id, and the grant covers only some summaries.
/// - Errors of `ask` and of the store.
pub(crate) fn find_in_family<T>(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    lookup: IdLookup<'_>,
    ask: &dyn Fn(&mut StoreSession<'_>, Call<'_>) -> Result<T>,
) -> Result<T> {
    let IdLookup { id, permit, all_conversations } = lookup;
    let is_unknown =
        |answer: &Result<T>| answer.as_ref().is_err_and(|error| error.code == ErrorCode::NotFound);
    let answer = ask(session, call);
    if !is_unknown(&answer) {
        return answer;
    }
    let mut others = match permit {
        Some(permit) => permit.list_conversations(session)?,
        None => {
            let loaded = LoadedHead::open(session, call)?;
            if !all_conversations {
                loaded.ensure_exists()?;
            }
            let head = loaded.head;
            let members = match head.family {
                Some(family) => list_other_members(session, family, call.conversation)?,
                None => Vec::new(),
            };
            members.into_iter().map(|member| member.conversation).collect()
        }
    };
    if all_conversations && permit.is_none() {
        let family = others.len();
        let names = conversation_list::list_all_conversations(session)?;
        let is_further = |name: &String| !others.iter().take(family).any(|known| known == name);
        let further: Vec<String> = names.into_iter().filter(is_further).collect();
        others.extend(further);
    }
    others.retain(|other| other != call.conversation);
    for member in find_conversations_with_id(session, others, id)? {
        let other = call.with_conversation(&member, |call| ask(session, call));
        if !is_unknown(&other) {
            return other;
        }
    }
    permit.and_then(GrantAccess::uncovered_error).map_or(answer, Err)
}

/// Returns those of `others` that have the summary, the file or the version of the system messages,
/// or to which the message id belongs.
///
/// For a message id, a returned conversation may lack the message: only its head is read, and a
/// message id holds just three bytes of the conversation's hash.
pub(crate) fn find_conversations_with_id(
    session: &mut StoreSession<'_>,
    others: Vec<String>,
    id: &str,
) -> Result<Vec<String>> {
    let mut members = Vec::new();
    let mut wanted = Vec::new();
    for member in others {
        let keys = ConversationKeys::new(&member)?;
        let key = match resolve_id(&keys, id) {
            Ok(ResolvedId::Message(_)) => keys.head_key(),
            Ok(ResolvedId::Summary(id)) => keys.summary_key(id),
            Ok(ResolvedId::File(id)) => keys.payload_key(id),
            Ok(ResolvedId::System(id)) => keys.system_version_key(id),
            Err(_) => continue,
        };
        members.push(member);
        wanted.push(key);
    }
    let found = session.read_uncached(&wanted)?;
    let is_record = |value: &Option<Vec<u8>>| value.as_ref().is_some_and(|v| !is_tombstone(v));
    let known = members.into_iter().zip(found).filter(|(_, value)| is_record(value));
    Ok(known.map(|(member, _)| member).collect())
}

/// Finds the id in a text that a caller copied, which may have other text around the id.
///
/// # Errors
///
/// `not-found`: the text has no id, a malformed id, or a message id of another conversation;
/// `invalid-input`: the id is a filler, which repeats `0` or a character that is no hex digit, such
/// as `sum_xxxx`.
pub(crate) fn resolve_id(keys: &ConversationKeys, text: &str) -> Result<ResolvedId> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let id = text
        .split(|c: char| !is_word(c))
        .find(|word| ["sum_", "msg_", "file_", "sys_"].iter().any(|kind| word.starts_with(kind)))
        .ok_or_else(|| {
            Error::not_found(format_args!(
                "`{text}` has no id of a summary, message, file or system messages"
            ))
        })?;
    let (kind, digits) = id.split_once('_').unwrap_or((id, ""));
    let fills_in = |byte: u8| byte == b'0' || !byte.is_ascii_hexdigit();
    let first = digits.bytes().next().filter(|first| fills_in(*first));
    if digits.len() > 1 && digits.bytes().all(|byte| Some(byte) == first) {
        // One filler character, repeated: `msg_0000000000000000`, `sum_xxxx`.
        return Err(Error::invalid_input(format_args!(
            "`{id}` is a placeholder, not an id; the answers of a search have ids, which are \
             `{kind}_` and 16 hex digits"
        )));
    }
    if id.starts_with("file_") {
        return large_payload::parse_name(id).map(ResolvedId::File).ok_or_else(|| {
            Error::not_found(format_args!(
                "`{id}` must be `file_` and 16 hex digits, the id of a file"
            ))
        });
    }
    if id.starts_with("sys_") {
        return system_slot::parse_system_id(id).map(ResolvedId::System).ok_or_else(|| {
            Error::not_found(format_args!(
                "`{id}` must be `sys_` and 16 hex digits, the id of system messages"
            ))
        });
    }
    if id.starts_with("msg_") {
        return keys.parse_message_id(id).map(ResolvedId::Message).ok_or_else(|| {
            Error::not_found(format_args!("there is no message `{id}` in this conversation"))
        });
    }
    summary::parse_summary_id(id).map(ResolvedId::Summary)
}

/// Reads a summary of the call's conversation by id.
///
/// # Errors
///
/// `not-found`: the conversation has no such summary, or the grant does not cover the summary;
/// `corrupt` or `unsupported`: the record cannot be decoded; errors of the store.
pub(crate) fn read_summary(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: [u8; 8],
    within: ReadLimits<'_>,
) -> Result<Summary> {
    let record = session.read_record(&Summary::key(call.keys, id))?;
    let name = summary::format_summary_id(id);
    let unknown = || {
        Error::not_found(format_args!(
            "there is no summary `{name}` in this conversation; ids belong to one conversation"
        ))
    };
    let record = record.ok_or_else(unknown)?;
    if !within.covers_range(call.keys, record.seq_first, record.seq_last) {
        return Err(unknown());
    }
    Ok(record)
}

/// Finds the summary whose id is in `text`, in the conversation, in its family or, with a grant, in
/// the conversations of the grant. Returns the conversation, the id and the record.
///
/// # Errors
///
/// - `not-found`: no conversation has the summary.
/// - `denied`: no conversation has the summary, and the grant covers only some summaries.
/// - `invalid-input`: the id is a filler, or the id of a message or file.
/// - Errors of the store.
pub(crate) fn find_summary_in_family(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    text: &str,
    within: ReadLimits<'_>,
) -> Result<(String, [u8; 8], Summary)> {
    let lookup = IdLookup { id: text, permit: within.permit, all_conversations: false };
    find_in_family(session, call, lookup, &|session, call| {
        let ResolvedId::Summary(id) = resolve_id(call.keys, text)? else {
            return Err(Error::invalid_input(format_args!(
                "`summary_ids` must name summaries, got `{text}`"
            )));
        };
        let record = read_summary(session, call, id, within)?;
        Ok((call.conversation.into(), id, record))
    })
}
