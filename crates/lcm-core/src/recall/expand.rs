//! Expand: from a summary to its sources, and on to the original messages.
//!
//! The walk is depth first in the order of the conversation. A page ends when it holds enough, and
//! `next` says after how many entries; walking past them again costs summaries only.

use alloc::{format, string::String, vec::Vec};

use crate::{
    codec,
    error::{Error, Result},
    head::Loaded,
    history::History,
    json::Writer,
    keys::Keys,
    limits,
    reader::Reader,
    summary::{self, Sources, Summary},
};

use super::{Named, describe::row};

/// Messages that are read at a time.
const MESSAGES_PER_READ: u64 = 64;
/// First characters of a cursor.
const CURSOR_VERSION: &str = "e1:";

struct Options {
    /// How many levels of sources; 0: none. Absent: one, or with `messages` as many as there are,
    /// because whoever wants messages does not want to know how deep they lie.
    depth: Option<u32>,
    messages: bool,
    /// Most tokens of the whole answer; absent: everything, page by page.
    token_cap: Option<u64>,
    after: Option<String>,
}

/// Expands a summary, or gives back a message, as JSON.
///
/// # Errors
///
/// `not-found`, `invalid-input`, `unsupported`; errors of the store.
pub(crate) fn expand(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
) -> Result<String> {
    let keys = Keys::new(conversation)?;
    super::ungranted(grant)?;
    let options = options(options_json)?;
    let named = super::named(&keys, id)?;
    let skip = match options.after.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix(CURSOR_VERSION)
            .and_then(|count| count.parse().ok())
            .ok_or_else(|| Error::invalid("after: not a cursor of this engine"))?,
    };
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let history = History { keys: &keys, head: &loaded.head };
    let mut walk = Walk::new(options, skip);
    let name = match named {
        Named::Message(seq) => {
            if seq == 0 || seq > loaded.head.messages {
                return Err(Error::not_found(format_args!("there is no message {seq}")));
            }
            walk.message_range(reader, &history, seq, seq)?;
            keys.message_name(seq)
        }
        Named::Summary(id) => {
            let record = super::summary(reader, &keys, id)?;
            walk.sources(reader, &history, record)?;
            summary::name(id)
        }
        Named::File(_) => {
            return Err(Error::invalid("id: a file has no sources; describe gives its content"));
        }
    };
    Ok(walk.answer(&name))
}

fn options(options_json: &str) -> Result<Options> {
    let mut fields = super::options(options_json)?;
    let options = Options {
        depth: fields.small_or_none("depth"),
        messages: fields.flag("messages"),
        token_cap: fields.number_or_none("token_cap"),
        after: fields.text_or_none("after"),
    };
    fields.end(super::OPTIONS)?;
    Ok(options)
}

struct Walk {
    options: Options,
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
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum End {
    Page,
    TokenCap,
}

impl Walk {
    fn new(options: Options, skip: u64) -> Self {
        let depth = options.depth.unwrap_or(if options.messages { u32::MAX } else { 1 });
        Self {
            options,
            depth,
            skip,
            seen: 0,
            summaries: Writer::array(),
            messages: Writer::array(),
            tokens: 0,
            bytes: 0,
            ended: None,
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
    fn takes(&mut self, tokens: u64, bytes: usize) -> bool {
        let over = self.options.token_cap.is_some_and(|cap| self.tokens + tokens > cap);
        if over {
            self.ended = Some(End::TokenCap);
            return false;
        }
        if !self.is_empty() && self.bytes + bytes > limits::PAGE_BYTES_MAX {
            self.ended = Some(End::Page);
            return false;
        }
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
        if !self.takes(u64::from(record.tokens), record.text.len()) {
            return false;
        }
        let mut row = Writer::object();
        row.number("depth", record.depth.into());
        row.text("id", &summary::name(record.id()));
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
        while from <= seq_last {
            let to = seq_last.min(from + MESSAGES_PER_READ - 1);
            for placed in history.messages(reader, from, to)? {
                let (bytes, row) = row(reader, history, &placed)?;
                if !self.takes(u64::from(placed.stored.message_tokens()), bytes) {
                    return Ok(());
                }
                self.messages.push_object(row);
            }
            from = to + 1;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.summaries.is_empty() && self.messages.is_empty()
    }

    fn answer(self, id: &str) -> String {
        // A cap that lets nothing through would come to the same place again and again.
        let more = self.ended.is_some() && !self.is_empty();
        let next = more.then(|| format!("{CURSOR_VERSION}{}", self.seen));
        let mut answer = Writer::object();
        answer.text("id", id);
        answer.array_at("messages", self.messages);
        answer.text_or_null("next", next.as_deref());
        answer.array_at("summaries", self.summaries);
        answer.number("tokens", self.tokens);
        answer.flag("truncated", self.ended.is_some());
        answer.end_object()
    }
}
