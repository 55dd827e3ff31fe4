//! Expand: from a summary to its sources, and on to the original messages.
//!
//! In: an id, how deep, how many tokens. Out: a page of summaries and messages in their order. Not
//! here: choosing the cheapest of several summaries, which is for a model (`tools/expand`).
//!
//! The walk is depth first in the order of the conversation. A page ends when it holds enough, and
//! `next` says after how many entries; walking past them again costs summaries only.

use crate::storage::read_scope;
use crate::storage::read_scope::{Answer, LeftOut, Named, Within};
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    codec,
    head::Loaded,
    history::History,
    keys::Keys,
    records::grants::Permit,
    store_session::Reader,
    summary::{self, Sources, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::Writer,
        limits, tokens,
    },
    types::api::Timestamp,
};

use super::describe::row;

/// Messages that are read at a time.
const MESSAGES_PER_READ: u64 = 64;
/// First characters of a cursor.
const CURSOR_VERSION: &str = "e1:";

#[derive(Clone, Default)]
pub(crate) struct Expansion {
    /// How many levels of sources; 0: none. Absent: one, or with `messages` as many as there are,
    /// because whoever wants messages does not want to know how deep they lie.
    pub(crate) depth: Option<u32>,
    /// Whether messages are listed, too.
    pub(crate) messages: bool,
    /// Most tokens of the whole answer; absent: everything, page by page.
    pub(crate) token_cap: Option<u64>,
    pub(crate) after: Option<String>,
    /// Ids that the caller has shown: they are passed over.
    pub(crate) shown: Vec<String>,
    /// Id of a message or summary below the one that is expanded: with all before it, it is passed
    /// over.
    pub(crate) behind: Option<String>,
}

/// Expands a summary, or gives back a message, as JSON, and charges the grant for the texts in it.
///
/// # Errors
///
/// `not-found`, `invalid-input`, `denied`, `conflict` (with a grant); errors of the store.
pub(crate) fn expand(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let permit = Permit::for_call(reader, conversation, grant, now)?;
    let within = Within::of(permit.as_ref());
    let answer =
        read_scope::in_family(reader, conversation, id, within.permit, false, &|reader, other| {
            let keys = Keys::new(other)?;
            let options = options(options_json)?;
            expand_in(reader, &keys, other, id, options, within)
        })?;
    read_scope::handed_out(reader, answer, permit)
}

/// As [`expand`], with the tokens that are still to be charged.
///
/// # Errors
///
/// As [`expand`].
pub(crate) fn expanded(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    asked: &Expansion,
    within: Within<'_>,
) -> Result<Answer> {
    read_scope::in_family(reader, conversation, id, within.permit, false, &|reader, other| {
        let keys = Keys::new(other)?;
        expand_in(reader, &keys, other, id, asked.clone(), within)
    })
}

fn expand_in(
    reader: &mut Reader<'_>,
    keys: &Keys,
    conversation: &str,
    id: &str,
    options: Expansion,
    within: Within<'_>,
) -> Result<Answer> {
    let named = read_scope::named(keys, id)?;
    let skip = match options.after.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix(CURSOR_VERSION)
            .and_then(|count| count.parse().ok())
            .ok_or_else(|| Error::invalid("after: not a cursor of this engine"))?,
    };
    let loaded = Loaded::of_existing(reader, keys, conversation)?;
    let history = History { keys, head: &loaded.head };
    let mut walk = Walk::new(options, skip, within);
    let name = match named {
        Named::Message(seq) => {
            if seq == 0 || seq > loaded.head.messages || !within.covers(keys, seq, seq) {
                return Err(Error::not_found(format_args!("there is no message {seq}")));
            }
            within.must_have_left()?;
            walk.message_range(reader, &history, seq, seq)?;
            keys.message_name(seq)
        }
        Named::Summary(id) => {
            let record = read_scope::summary(reader, keys, id, within)?;
            within.must_have_left()?;
            walk.sources(reader, &history, record)?;
            if let Some(behind) = &walk.options.behind {
                return Err(Error::not_found(format_args!(
                    "`{behind}` is not among what is shown below `{}`",
                    summary::name(id)
                )));
            }
            summary::name(id)
        }
        Named::File(_) => {
            return Err(Error::invalid("id: a file has no sources; describe gives its content"));
        }
    };
    Ok(walk.answer(&name, within))
}

fn options(options_json: &str) -> Result<Expansion> {
    let mut fields = super::options(options_json)?;
    let options = Expansion {
        depth: fields.small_or_none("depth"),
        messages: fields.flag("messages"),
        token_cap: fields.number_or_none("token_cap"),
        after: fields.text_or_none("after"),
        ..Expansion::default()
    };
    fields.end(super::OPTIONS)?;
    Ok(options)
}

struct Walk {
    options: Expansion,
    /// Whether a grant is charged: for the texts as they are, whatever they cost in a context.
    is_charged: bool,
    depth: u32,
    /// Entries of earlier pages that are still to be passed over.
    skip: u64,
    /// Entries seen, passed over or listed.
    seen: u64,
    /// Arrays of what is listed.
    summaries: Writer,
    messages: Writer,
    tokens: u64,
    bytes: usize,
    /// The token cap or the page was reached.
    ended: Option<End>,
    /// Id of the last entry that was listed, or that the caller has shown.
    last: Option<String>,
    left_out: Option<LeftOut>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum End {
    Page,
    TokenCap,
}

impl Walk {
    fn new(mut options: Expansion, skip: u64, within: Within<'_>) -> Self {
        let mut depth = options.depth.unwrap_or(if options.messages { u32::MAX } else { 1 });
        if let Some(permit) = within.permit {
            depth = depth.min(permit.depth_max());
            let left = u64::from(permit.left());
            options.token_cap = Some(options.token_cap.map_or(left, |cap| cap.min(left)));
        }
        Self {
            options,
            is_charged: within.permit.is_some(),
            depth,
            skip,
            seen: 0,
            summaries: Writer::array(),
            messages: Writer::array(),
            tokens: 0,
            bytes: 0,
            ended: None,
            last: None,
            left_out: None,
        }
    }

    /// Walks the sources of a summary with an explicit stack: a DAG may be deep.
    fn sources(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        root: Summary,
    ) -> Result<()> {
        let mut stack = alloc::vec![(root, 0u32)];
        let mut first = true;
        while let Some((record, level)) = stack.pop() {
            if !first && !self.summary(&record) {
                return Ok(());
            }
            first = false;
            if level >= self.depth {
                continue;
            }
            match &record.sources {
                Sources::Messages { seq_first, seq_last, .. } if self.options.messages => {
                    self.message_range(reader, history, *seq_first, *seq_last)?;
                }
                Sources::Messages { .. } => {}
                Sources::Summaries(list) => {
                    let wanted: Vec<(String, u32)> = list
                        .iter()
                        .map(|source| (history.keys.summary(source.id), source.bytes))
                        .collect();
                    let values = reader.immutable(&wanted)?;
                    for ((key, _), value) in wanted.iter().zip(values).rev() {
                        stack.push((codec::decode(key, &value)?, level + 1));
                    }
                }
            }
            if self.ended.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the entry belongs on this page; counts it if so.
    fn takes(&mut self, id: &str, tokens: u32, text: &str) -> bool {
        let tokens = u64::from(if self.is_charged { tokens::estimate(text) } else { tokens });
        let bytes = text.len();
        let over = self.options.token_cap.is_some_and(|cap| self.tokens + tokens > cap);
        let is_full = !self.is_empty() && self.bytes + bytes > limits::PAGE_BYTES_MAX;
        if over || is_full {
            let behind = self.last.take();
            self.left_out = Some(LeftOut { id: id.into(), tokens, behind });
            self.ended = Some(if over { End::TokenCap } else { End::Page });
            return false;
        }
        self.last = Some(id.into());
        self.seen += 1;
        self.tokens += tokens;
        self.bytes += bytes;
        true
    }

    /// Lists a summary; `false`: the walk has ended.
    fn summary(&mut self, record: &Summary) -> bool {
        if self.seen < self.skip {
            self.seen += 1;
            return true;
        }
        let id = summary::name(record.id());
        if let Some(behind) = &self.options.behind {
            if *behind == id {
                self.last = self.options.behind.take();
            }
            return true;
        }
        if self.options.shown.contains(&id) {
            self.last = Some(id);
            return true;
        }
        if !self.takes(&id, record.tokens, &record.text) {
            return false;
        }
        let mut row = Writer::object();
        row.number("depth", record.depth.into());
        row.text("id", &id);
        row.text("kind", record.kind());
        row.number("seq_first", record.seq_first);
        row.number("seq_last", record.seq_last);
        row.text("text", &record.text);
        row.number("tokens", record.tokens.into());
        self.summaries.push_object(row);
        true
    }

    fn message_range(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        seq_first: u64,
        seq_last: u64,
    ) -> Result<()> {
        // Messages of earlier pages are passed over without being read.
        let passed = (self.skip.saturating_sub(self.seen)).min(seq_last + 1 - seq_first);
        self.seen += passed;
        let mut from = seq_first + passed;
        if let Some(behind) = &self.options.behind {
            let seq = history.keys.message_seq(behind);
            let Some(seq) = seq.filter(|seq| (from..=seq_last).contains(seq)) else {
                return Ok(());
            };
            self.last = self.options.behind.take();
            from = seq + 1;
        }
        while from <= seq_last {
            let to = seq_last.min(from + MESSAGES_PER_READ - 1);
            for placed in history.messages(reader, from, to)? {
                let id = history.keys.message_name(placed.seq);
                if self.options.shown.contains(&id) {
                    self.last = Some(id);
                    continue;
                }
                let raw = history.text(reader, &placed.stored)?;
                if !self.takes(&id, placed.stored.message_tokens(), &raw) {
                    return Ok(());
                }
                let row = row(history, &placed, &raw, &raw, Writer::object());
                self.messages.push_object(row);
            }
            from = to + 1;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.summaries.is_empty() && self.messages.is_empty()
    }

    fn answer(self, id: &str, within: Within<'_>) -> Answer {
        // A cap that lets nothing through would come to the same place again and again: what did
        // not fit says which one would do.
        let more = self.ended.is_some() && !self.is_empty();
        let next = more.then(|| format!("{CURSOR_VERSION}{}", self.seen));
        let tokens = int::tokens_u32(self.tokens);
        let mut answer = Writer::object();
        // No text is cut here: what does not fit is left out.
        let left = within.permit.map(|permit| u64::from(permit.left()));
        let is_cut = self.ended == Some(End::TokenCap) && self.options.token_cap == left;
        within.note(tokens, is_cut, &mut answer);
        answer.text("id", id);
        // Of a page it is just what comes next.
        match self.left_out.as_ref().filter(|_| self.ended == Some(End::TokenCap)) {
            Some(LeftOut { id, tokens, .. }) => {
                let mut least = Writer::object();
                least.text("id", id);
                least.number("tokens", *tokens);
                answer.object_at("left_out", least);
            }
            None => answer.null("left_out"),
        }
        answer.array_at("messages", self.messages);
        answer.text_or_null("next", next.as_deref());
        answer.array_at("summaries", self.summaries);
        answer.number("tokens", self.tokens);
        answer.flag("truncated", self.ended.is_some());
        Answer { left_out: self.left_out, ..Answer::new(answer, tokens) }
    }
}
