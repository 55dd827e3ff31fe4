//! Expand: from a summary to its sources, and on to the original messages.
//!
//! In: an id, a depth and a token cap. Out: a page of summaries and messages, both in the order of
//! the conversation. Not here: choosing the cheapest of several summaries
//! ([`crate::agent_tools`]).
//!
//! The walk is depth first in the order of the conversation. The cursor of a page is the number of
//! entries up to the end of the page. The cursor is bound to the id, the depth, the listing of
//! messages and the coverage of the grant. The next page walks past these entries and reads only
//! their summaries.

use crate::storage::read_scope::{
    self, IdLookup, OmittedEntry, ReadLimits, RecallAnswer, ResolvedId,
};
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    call::Call,
    cursor_binding::CursorBinding,
    head::LoadedHead,
    history::MessageHistory,
    records::grants::GrantAccess,
    store_session::StoreSession,
    summary::{self, Summary, SummarySources},
    withdrawn_mark,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::JsonWriter,
    limits, tokens,
};

use super::{
    describe::render_message_row,
    options::{OPTIONS_ARGUMENT, parse_options},
};

/// Messages that are read at a time.
const MESSAGES_PER_READ: u64 = 64;
/// First characters of a cursor: the version of its format.
const CURSOR_VERSION: &str = "e1:";

/// Options of an expansion.
#[derive(Clone, Default)]
pub(crate) struct ExpandOptions {
    /// Levels of sources to list; a grant may allow fewer. Absent: one level, or all levels with
    /// `include_messages`, because a caller who wants messages does not know their depth.
    pub(crate) depth_max: Option<u32>,
    /// Whether the answer lists the messages below summaries, too.
    pub(crate) include_messages: bool,
    /// Maximum tokens of texts in the answer; absent: only the bytes of a page and the tokens left
    /// of the grant limit the answer.
    pub(crate) tokens_max: Option<u64>,
    /// Cursor of the page before; absent: the first page.
    pub(crate) cursor: Option<String>,
    /// Ids that the caller has shown already; the answer does not list them again.
    pub(crate) shown_ids: Vec<String>,
    /// Id of a message or summary below the expanded summary. The walk skips all entries up to and
    /// including this entry. Absent: the walk skips no entry for this reason.
    pub(crate) resume_after_id: Option<String>,
}

/// Expands a summary, or returns a message, as JSON, and charges the grant for the texts.
///
/// # Errors
///
/// - `not-found`: no summary or message that the call may read has the id.
/// - `invalid-input`: the id or an option is malformed, or the cursor belongs to another expansion.
/// - `denied`: the conversation is being deleted; or the grant is unknown, revoked or expired, does
///   not cover the conversation, or has too few tokens left.
/// - `conflict`: another call changed the grant.
/// - errors of the store.
pub(crate) fn expand(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
) -> Result<String> {
    let permit = GrantAccess::for_call(session, call, grant)?;
    let within = ReadLimits::from_permit(permit.as_ref());
    let options = parse_expand_options(options_json)?;
    let answer = expand_uncharged(session, call, id, &options, within)?;
    read_scope::charge_answer(session, answer, permit)
}

/// Expands like [`expand`], but returns the tokens to charge instead of charging them.
///
/// # Errors
///
/// The errors of [`expand`], except those of loading and charging the grant.
pub(crate) fn expand_uncharged(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: &str,
    asked: &ExpandOptions,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let lookup = IdLookup { id, permit: within.permit, all_conversations: false };
    read_scope::find_in_family(session, call, lookup, &|session, call| {
        expand_in_conversation(session, call, id, asked.clone(), within)
    })
}

/// Expands an id of the conversation of the call.
fn expand_in_conversation(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: &str,
    options: ExpandOptions,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let keys = call.keys;
    let named = read_scope::resolve_id(keys, id)?;
    let loaded = LoadedHead::open_existing(session, call)?;
    let history = MessageHistory::new(call, &loaded.head);
    let mut walk = ExpandWalk::new(options, within);
    let name = match named {
        ResolvedId::Message(seq) => {
            if seq == 0 || seq > loaded.head.messages || !within.covers_range(keys, seq, seq) {
                let id = keys.message_id(seq);
                return Err(Error::not_found(format_args!("there is no message `{id}`")));
            }
            within.ensure_tokens_left()?;
            let name = keys.message_id(seq);
            walk.open_cursor(&name, within)?;
            walk.list_message_range(session, &history, seq, seq)?;
            name
        }
        ResolvedId::Summary(id) => {
            let record = read_scope::read_summary(session, call, id, within)?;
            within.ensure_tokens_left()?;
            let name = summary::format_summary_id(id);
            walk.open_cursor(&name, within)?;
            walk.walk_sources(session, &history, record)?;
            if let Some(behind) = &walk.options.resume_after_id {
                return Err(Error::not_found(format_args!(
                    "`after` must be an entry that this call lists below `{name}`, got `{behind}`; \
                     repeat the arguments of the previous call"
                )));
            }
            name
        }
        ResolvedId::File(_) | ResolvedId::System(_) => {
            return Err(Error::invalid_input(
                "`id` must name a summary or a message; `describe` returns the content of a file \
                 and of system messages",
            ));
        }
    };
    Ok(walk.render_answer(&name, within))
}

fn parse_expand_options(options_json: &str) -> Result<ExpandOptions> {
    let mut fields = parse_options(options_json)?;
    let options = ExpandOptions {
        depth_max: fields.take_optional_u32("depth_max"),
        include_messages: fields.take_flag("include_messages"),
        tokens_max: fields.take_optional_u64("tokens_max"),
        cursor: fields.take_optional_text("cursor"),
        ..ExpandOptions::default()
    };
    fields.finish(OPTIONS_ARGUMENT)?;
    Ok(options)
}

/// Depth-first walk over the sources of a summary.
struct ExpandWalk {
    options: ExpandOptions,
    /// Whether a grant is charged. Then the tokens of the listed texts are counted, else the stored
    /// tokens of the entries.
    is_charged: bool,
    /// Levels of sources to list.
    depth: u32,
    /// Number of the entries of earlier pages, which the walk skips.
    skip: u64,
    /// Number of entries that earlier pages listed or this page lists. Entries skipped for
    /// `shown_ids` or `resume_after_id` do not count.
    seen: u64,
    /// Array of the listed summaries.
    summaries: JsonWriter,
    /// Array of the listed messages.
    messages: JsonWriter,
    /// Tokens of the listed entries.
    tokens: u64,
    /// Bytes of the texts of the listed entries.
    bytes: usize,
    /// The bound that ended the walk; `None`: no bound did.
    end: Option<ExpandEnd>,
    /// Id of the last entry that was listed, that the caller has shown, or that the walk resumed
    /// after. `None`: there is no such entry.
    last_id: Option<String>,
    /// First entry that did not fit; `None`: all fitted.
    omitted: Option<OmittedEntry>,
}

/// The bound that ended a walk.
#[derive(Clone, Copy, Eq, PartialEq)]
enum ExpandEnd {
    /// The bytes of a page.
    Page,
    /// The tokens of the options or of the grant.
    TokenCap,
}

impl ExpandWalk {
    fn new(mut options: ExpandOptions, within: ReadLimits<'_>) -> Self {
        let mut depth =
            options.depth_max.unwrap_or(if options.include_messages { u32::MAX } else { 1 });
        if let Some(permit) = within.permit {
            depth = depth.min(permit.depth_max());
            let left = u64::from(permit.tokens_left());
            options.tokens_max = Some(options.tokens_max.map_or(left, |cap| cap.min(left)));
        }
        Self {
            options,
            is_charged: within.permit.is_some(),
            depth,
            skip: 0,
            seen: 0,
            summaries: JsonWriter::new_array(),
            messages: JsonWriter::new_array(),
            tokens: 0,
            bytes: 0,
            end: None,
            last_id: None,
            omitted: None,
        }
    }

    /// Reads the number of entries to skip from the cursor of an expansion of `id`.
    fn open_cursor(&mut self, id: &str, within: ReadLimits<'_>) -> Result<()> {
        let Some(cursor) = self.options.cursor.take() else { return Ok(()) };
        let binding = self.bind_cursor(id, within);
        let count = binding.open_cursor(&cursor)?.strip_prefix(CURSOR_VERSION);
        let count = count.and_then(|count| count.parse().ok());
        self.skip = count.ok_or_else(|| binding.foreign_error(&cursor))?;
        Ok(())
    }

    /// Binds a cursor to everything that decides which entries the walk counts.
    fn bind_cursor(&self, id: &str, within: ReadLimits<'_>) -> CursorBinding {
        let messages = [u8::from(self.options.include_messages)];
        let fields: [&[u8]; 3] = [id.as_bytes(), &self.depth.to_be_bytes(), &messages];
        CursorBinding::new(&fields, within.permit, "`id`, `depth_max` and `include_messages`")
    }

    /// Walks the sources of a summary, with an explicit stack because the graph may be deep.
    fn walk_sources(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        root: Summary,
    ) -> Result<()> {
        let mut stack = alloc::vec![(root, 0u32)];
        let mut first = true;
        while let Some((record, level)) = stack.pop() {
            if !first && !self.list_summary(session, history, &record)? {
                return Ok(());
            }
            first = false;
            if level >= self.depth {
                continue;
            }
            match &record.sources {
                SummarySources::Messages { span, .. } if self.options.include_messages => {
                    for (seq_first, seq_last) in span.list_ranges() {
                        if self.end.is_none() {
                            self.list_message_range(session, history, seq_first, seq_last)?;
                        }
                    }
                }
                SummarySources::Messages { .. } => {}
                SummarySources::Summaries(list) => {
                    let wanted: Vec<_> = list
                        .iter()
                        .map(|source| (Summary::key(history.keys, source.id), source.bytes))
                        .collect();
                    let records = session.read_immutable_records(&wanted)?;
                    stack.extend(records.into_iter().rev().map(|record| (record, level + 1)));
                }
            }
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts an entry if it fits; `false`: the entry does not fit, and the walk has ended.
    fn take_entry(&mut self, id: &str, tokens: u32, text: &str) -> bool {
        let tokens = u64::from(if self.is_charged { tokens::estimate(text) } else { tokens });
        let bytes = text.len();
        let over = self.options.tokens_max.is_some_and(|cap| self.tokens + tokens > cap);
        let is_full = !self.is_empty() && self.bytes + bytes > limits::PAGE_BYTES_MAX;
        if over || is_full {
            let behind = self.last_id.take();
            self.omitted = Some(OmittedEntry { id: id.into(), tokens, previous_id: behind });
            self.end = Some(if over { ExpandEnd::TokenCap } else { ExpandEnd::Page });
            return false;
        }
        self.last_id = Some(id.into());
        self.seen += 1;
        self.tokens += tokens;
        self.bytes += bytes;
        true
    }

    /// Lists a summary, unless the walk skips the summary; `false`: the summary does not fit, and
    /// the walk has ended.
    fn list_summary(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        record: &Summary,
    ) -> Result<bool> {
        if self.seen < self.skip {
            self.seen += 1;
            return Ok(true);
        }
        let id = summary::format_summary_id(record.id());
        if let Some(behind) = &self.options.resume_after_id {
            if *behind == id {
                self.last_id = self.options.resume_after_id.take();
            }
            return Ok(true);
        }
        if self.options.shown_ids.contains(&id) {
            self.last_id = Some(id);
            return Ok(true);
        }
        if !self.take_entry(&id, record.tokens, &record.text) {
            return Ok(false);
        }
        let mut row = JsonWriter::new_object();
        row.add_number("depth", record.depth.into());
        row.add_text("id", &id);
        row.add_text("kind", record.kind());
        row.add_number("seq_first", record.seq_first);
        row.add_number("seq_last", record.seq_last);
        row.add_text("text", &record.text);
        row.add_number("tokens", record.tokens.into());
        withdrawn_mark::add_summary_mark(session, history, record, &mut row)?;
        self.summaries.push_object(row);
        Ok(true)
    }

    /// Lists the messages of a range until a message does not fit, without the messages that the
    /// walk skips.
    fn list_message_range(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        seq_first: u64,
        seq_last: u64,
    ) -> Result<()> {
        // The walk skips messages of earlier pages without reading them.
        let passed = (self.skip.saturating_sub(self.seen)).min(seq_last + 1 - seq_first);
        self.seen += passed;
        let mut from = seq_first + passed;
        if let Some(behind) = &self.options.resume_after_id {
            let seq = history.keys.parse_message_id(behind);
            let Some(seq) = seq.filter(|seq| (from..=seq_last).contains(seq)) else {
                return Ok(());
            };
            self.last_id = self.options.resume_after_id.take();
            from = seq + 1;
        }
        while from <= seq_last {
            let to = seq_last.min(from + MESSAGES_PER_READ - 1);
            for placed in history.read_messages(session, from, to)? {
                let id = history.keys.message_id(placed.seq);
                if self.options.shown_ids.contains(&id) {
                    self.last_id = Some(id);
                    continue;
                }
                let raw = history.read_text(session, &placed.stored)?;
                if !self.take_entry(&id, placed.stored.message_tokens(), &raw) {
                    return Ok(());
                }
                let note = JsonWriter::new_object();
                let mut row = render_message_row(history, &placed, &raw, &raw, note);
                withdrawn_mark::add_mark(session, history, placed.seq, &mut row)?;
                self.messages.push_object(row);
            }
            from = to + 1;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.summaries.is_empty() && self.messages.is_empty()
    }

    fn render_answer(self, id: &str, within: ReadLimits<'_>) -> RecallAnswer {
        // With a token cap below the first entry, the call would return the same cursor again and
        // again. So it returns no cursor, and `left_out` names the tokens that the entry needs.
        let more = self.end.is_some() && !self.is_empty();
        let binding = self.bind_cursor(id, within);
        let next = more.then(|| binding.seal_cursor(&format!("{CURSOR_VERSION}{}", self.seen)));
        let tokens = int::saturate_tokens(self.tokens);
        let mut answer = JsonWriter::new_object();
        // An expansion never cuts a text: it leaves out entries that do not fit.
        let left = within.permit.map(|permit| u64::from(permit.tokens_left()));
        let is_cut = self.end == Some(ExpandEnd::TokenCap) && self.options.tokens_max == left;
        within.write_grant_note(tokens, is_cut, &mut answer);
        answer.add_optional_text("cursor", next.as_deref());
        answer.add_text("id", id);
        // At the end of a page nothing is left out: the next page begins with the entry.
        match self.omitted.as_ref().filter(|_| self.end == Some(ExpandEnd::TokenCap)) {
            Some(OmittedEntry { id, tokens, .. }) => {
                let mut least = JsonWriter::new_object();
                least.add_text("id", id);
                least.add_number("tokens", *tokens);
                answer.add_object("left_out", least);
            }
            None => answer.add_null("left_out"),
        }
        answer.add_array("messages", self.messages);
        answer.add_array("summaries", self.summaries);
        answer.add_number("tokens", self.tokens);
        answer.add_flag("truncated", self.end.is_some());
        RecallAnswer { omitted: self.omitted, ..RecallAnswer::new(answer, tokens) }
    }
}
