//! What a read may see: the grant of its caller, and the conversation that knows an id.
//!
//! In: an id as a caller copied it, and a grant or none. Out: the record that the id names, from the
//! conversation or another one of its family, and what limits the read. Not here: what a grant is
//! ([`crate::storage::records::grants`]).

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        json::Writer,
        tokens,
    },
    message::large_payload,
};

use crate::storage::{
    codec,
    head::Loaded,
    keys::{self, Keys},
    records::grants::{self, Permit},
    store_session::Reader,
    summary::{self, Summary},
};

/// What an id names.
pub(crate) enum Named {
    Summary([u8; 8]),
    Message(u64),
    File([u8; 8]),
}

/// What limits a read: the grant of the caller, and how many tokens of text an answer may have.
#[derive(Clone, Copy, Default)]
pub(crate) struct Within<'a> {
    /// `None`: everything may be read.
    pub(crate) permit: Option<&'a Permit>,
    /// Cuts texts and says so in the member `grant`; `None`: the caller cuts.
    pub(crate) tokens_max: Option<u32>,
    /// What alone is searched: first and last seq in a conversation; `None`: what the query says.
    pub(crate) searched: Option<&'a [(&'a str, u64, u64)]>,
}

impl<'a> Within<'a> {
    /// What a grant allows.
    pub(crate) fn of(permit: Option<&'a Permit>) -> Self {
        Self { permit, tokens_max: permit.map(Permit::left), searched: None }
    }

    /// Whether seqs of a conversation are covered.
    pub(crate) fn covers(self, keys: &Keys, first: u64, last: u64) -> bool {
        let spans = self.permit.and_then(|permit| permit.spans(keys));
        grants::is_within(spans.as_deref(), first, last)
    }

    /// Refuses a grant on which everything was read. Who reads nothing that is covered hears of
    /// that first.
    pub(crate) fn must_have_left(self) -> Result<()> {
        self.permit.map_or(Ok(()), Permit::must_have_left)
    }

    /// Tokens of stored text that may be read.
    pub(crate) fn left(self) -> u32 {
        self.permit.map_or(u32::MAX, Permit::left)
    }

    /// As much of a text as may be read.
    pub(crate) fn shown(self, text: &str) -> &str {
        self.tokens_max.map_or(text, |tokens_max| tokens::truncate(text, tokens_max))
    }

    /// Adds what an answer takes of the grant.
    pub(crate) fn note(self, tokens: u32, truncated: bool, to: &mut Writer) {
        if let (Some(permit), Some(_)) = (self.permit, self.tokens_max) {
            let left = permit.left().saturating_sub(tokens);
            to.object_at("grant", permit.note(tokens, left, truncated));
        }
    }
}

/// An answer, and the tokens of stored text in it: of summaries, messages, passages and files. Ids,
/// times and sizes cost nothing, so that a caller can see what a step costs before it takes it.
pub(crate) struct Answer {
    pub(crate) json: String,
    pub(crate) tokens: u32,
    /// Of an expansion what it left out.
    pub(crate) left_out: Option<LeftOut>,
    /// Of an answer to an expression that is one of several, what goes on at each match.
    pub(crate) starts: Vec<String>,
}

/// What did not fit an expansion.
pub(crate) struct LeftOut {
    /// Of the first summary or message.
    pub(crate) id: String,
    pub(crate) tokens: u64,
    /// Id of the one before it that was shown, now or as the caller says.
    pub(crate) behind: Option<String>,
}

impl Answer {
    pub(crate) fn new(answer: Writer, tokens: u32) -> Self {
        Self { json: answer.end_object(), tokens, left_out: None, starts: Vec::new() }
    }
}

/// Hands out an answer once the grant of its caller is charged for it.
pub(crate) fn handed_out(
    reader: &mut Reader<'_>,
    answer: Answer,
    permit: Option<Permit>,
) -> Result<String> {
    if let Some(permit) = permit {
        permit.spend(reader, answer.tokens)?;
    }
    Ok(answer.json)
}

/// What `ask` answers of a conversation, or when that does not know the id, of another one that
/// does: with a grant of those that it covers, else of the newest of its family, and with `all` of
/// the store.
///
/// However many conversations there are, each costs one key of a `get-many`.
///
/// # Errors
///
/// Those of `ask`; `not-found`: none of them knows the id; `denied`: likewise, when the grant
/// covers some summaries only.
pub(crate) fn in_family<T>(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    permit: Option<&Permit>,
    all: bool,
    ask: &dyn Fn(&mut Reader<'_>, &str) -> Result<T>,
) -> Result<T> {
    let is_unknown =
        |answer: &Result<T>| answer.as_ref().is_err_and(|error| error.code == ErrorCode::NotFound);
    let answer = ask(reader, conversation);
    if !is_unknown(&answer) {
        return answer;
    }
    let mut others = match permit {
        Some(permit) => permit.conversations(reader)?,
        None => {
            let head = Loaded::of(reader, &Keys::new(conversation)?, conversation)?.head;
            let members = match head.family {
                Some(family) => session::others(reader, family, conversation)?,
                None => Vec::new(),
            };
            members.into_iter().map(|member| member.conversation).collect()
        }
    };
    if all && permit.is_none() {
        let family = others.len();
        let names = every_conversation(reader)?;
        let is_further = |name: &String| !others.iter().take(family).any(|known| known == name);
        let further: Vec<String> = names.into_iter().filter(is_further).collect();
        others.extend(further);
    }
    others.retain(|other| other != conversation);
    for member in holders(reader, others, id)? {
        let other = ask(reader, &member);
        if !is_unknown(&other) {
            return other;
        }
    }
    permit.and_then(Permit::uncovered).map_or(answer, Err)
}

/// The ids of all conversations of the store, in order.
pub(crate) fn every_conversation(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    reader.scan(keys::NAMES, keys::NAMES_END, &mut |key, value| {
        let (_, name): (String, String) = crate::storage::codec::decode(key, value)?;
        names.push(name);
        Ok(())
    })?;
    lcm_text::base::sort::sort(&mut names);
    Ok(names)
}

/// The conversations that know the id. The name of a message has only three bytes of its
/// conversation, so that some may turn out not to.
pub(crate) fn holders(
    reader: &mut Reader<'_>,
    others: Vec<String>,
    id: &str,
) -> Result<Vec<String>> {
    let mut members = Vec::new();
    let mut wanted = Vec::new();
    for member in others {
        let keys = Keys::new(&member)?;
        let key = match named(&keys, id) {
            Ok(Named::Message(_)) => keys.head(),
            Ok(Named::Summary(id)) => keys.summary(id),
            Ok(Named::File(id)) => keys.file(id),
            Err(_) => continue,
        };
        members.push(member);
        wanted.push(key);
    }
    let found = reader.fresh(&wanted)?;
    let known = members.into_iter().zip(found).filter(|(_, value)| value.is_some());
    Ok(known.map(|(member, _)| member).collect())
}

/// Finds the id in what was copied: the bare id, or text around it.
///
/// # Errors
///
/// `not-found`: no id, or one of another conversation; `invalid-input`: a placeholder.
pub(crate) fn named(keys: &Keys, text: &str) -> Result<Named> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let id = text
        .split(|c: char| !is_word(c))
        .find(|word| ["sum_", "msg_", "file_"].iter().any(|kind| word.starts_with(kind)))
        .ok_or_else(|| {
            Error::not_found(format_args!("`{text}` holds no id of a summary, message or file"))
        })?;
    let (kind, digits) = id.split_once('_').unwrap_or((id, ""));
    let fills_in = |byte: u8| byte == b'0' || !byte.is_ascii_hexdigit();
    let first = digits.bytes().next().filter(|first| fills_in(*first));
    if digits.len() > 1 && digits.bytes().all(|byte| Some(byte) == first) {
        // `msg_0000000000000000`, `sum_xxxx`.
        return Err(Error::invalid(format_args!(
            "`{id}` is a placeholder, not an id; the answers of a search have ids, which are \
             `{kind}_` and 16 hex digits"
        )));
    }
    if id.starts_with("file_") {
        return large_payload::parse_name(id).map(Named::File).ok_or_else(|| {
            Error::not_found(format_args!("`{id}` is no id of a file: 16 hex digits"))
        });
    }
    if id.starts_with("msg_") {
        return keys.message_seq(id).map(Named::Message).ok_or_else(|| {
            Error::not_found(format_args!("there is no message `{id}` in this conversation"))
        });
    }
    summary::parse_name(id).map(Named::Summary)
}

/// Reads a summary by id.
///
/// # Errors
///
/// `not-found`: there is none of this id in the conversation, or none that may be read.
pub(crate) fn summary(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    within: Within<'_>,
) -> Result<Summary> {
    let key = keys.summary(id);
    let value = reader.fresh_one(&key)?;
    let name = summary::name(id);
    let unknown = || {
        Error::not_found(format_args!(
            "there is no summary `{name}` in this conversation; ids belong to one conversation"
        ))
    };
    let record: Summary = codec::decode(&key, &value.ok_or_else(unknown)?)?;
    if !within.covers(keys, record.seq_first, record.seq_last) {
        return Err(unknown());
    }
    Ok(record)
}

/// The summary whose id is in a text, with the conversation of the family, or of the grant, that
/// has it.
///
/// # Errors
///
/// `not-found`: none has it; `denied`: likewise, with a grant for some summaries; `invalid-input`:
/// a placeholder; errors of the store.
pub(crate) fn summary_in_family(
    reader: &mut Reader<'_>,
    conversation: &str,
    text: &str,
    within: Within<'_>,
) -> Result<(String, [u8; 8], Summary)> {
    in_family(reader, conversation, text, within.permit, false, &|reader, place| {
        let keys = Keys::new(place)?;
        let Named::Summary(id) = named(&keys, text)? else {
            return Err(Error::invalid(format_args!("summaries: `{text}` is no id of a summary")));
        };
        let record = summary(reader, &keys, id, within)?;
        Ok((place.into(), id, record))
    })
}
