//! From chosen items to the array that is returned.
//!
//! In the `lcm` dialect, messages that came in it go out byte for byte, and a summary is a user
//! message with its element; the dialects of the providers are [`dialect`]'s matter. Leading system
//! messages are returned beside the array in all of them.

use super::RenderCache;
use crate::storage::pack::Placed;
use crate::storage::summary_items;
use alloc::{borrow::Cow, rc::Rc, string::String, vec::Vec};

use crate::storage::{
    context::{Item, SummaryItem},
    pack::Stored,
    store_session::Reader,
};
use lcm_text::{
    base::{error::Result, int, json, tokens},
    message::{self, Message, Part, Role},
    types::api::Dialect,
};

use super::{
    Assembly, accepted,
    again::Rendering,
    choose::Choice,
    dialect::{self, Entry, Note, Origin, Text},
    explain::Piece,
    marks::Marking,
};

/// Bytes that an array may have more than the last one before it is copied.
const CAPACITY_SPARED: usize = 32 << 10;

/// A rendered context.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) messages_json: String,
    pub(super) system: Option<String>,
    pub(super) tokens: u64,
    pub(super) summaries: u32,
    /// Each element with its hash and tokens, for comparison with an earlier assembly.
    pub(super) elements: Vec<Element>,
    /// The hash of all elements, see [`super::prefix`].
    pub(super) chain: [u8; 32],
    /// What there is for a provider; empty in the dialect `lcm`.
    entries: Vec<Entry>,
    /// What they became.
    array: Rendering,
    marking: Marking,
    /// Whether nothing but system messages was added.
    leading: bool,
    /// What the check of the array found, if it did.
    refused: Option<String>,
}

/// What one message or summary became in one message of the array.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) hash: [u8; 32],
    pub(super) tokens: u64,
    /// Index of the item, and the first seq it stands for.
    pub(super) place: (usize, u64),
    /// Index of its message; `None`: it stands beside the array.
    pub(super) message: Option<usize>,
    /// Index of its entry, in the dialects of the providers.
    entry: Option<usize>,
    /// Whether it is a turn that nobody said and the provider asks for.
    pub(super) is_synthetic: bool,
}

impl Element {
    /// One of a message or summary that has no entry.
    const fn said(
        hash: [u8; 32],
        tokens: u64,
        place: (usize, u64),
        message: Option<usize>,
    ) -> Self {
        Self { hash, tokens, place, message, entry: None, is_synthetic: false }
    }
}

/// Renders what was chosen.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn render(
    reader: &mut Reader<'_>,
    cache: &mut RenderCache,
    context: &Assembly<'_>,
    choice: &Choice,
    dialect: Dialect,
) -> Result<Rendered> {
    let marking = Marking::new(Rc::clone(&cache.marks), context.history.keys.root());
    // About as many bytes as last time: growing step by step would copy all of it several times.
    let mut messages_json = String::with_capacity(marking.bytes() + CAPACITY_SPARED);
    messages_json.push('[');
    let mut out = Rendered { messages_json, marking, leading: true, ..Rendered::default() };
    for (index, item) in context.items.iter().enumerate() {
        match item {
            Item::Summary(summary) if choice.has_summary(index) => {
                out.leading = false;
                out.add_summary(reader, cache, context, (index, summary), dialect)?;
            }
            Item::Summary(_) => out.leading = false,
            // What a new session left behind was before its beginning.
            Item::Withdrawn { .. } => {}
            Item::Run(run) => {
                let within = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
                let mut next = run.seq_first;
                for range in choice.ranges.iter().filter(|range| within(range.seq_first)) {
                    // A system message behind something that is not shown leads nothing.
                    out.leading &= range.seq_first == next;
                    next = range.seq_last + 1;
                    let range = (range.seq_first, range.seq_last);
                    out.add_messages(reader, context, (index, range), dialect)?;
                }
                out.leading &= next > run.seq_last;
            }
        }
    }
    for (seq, live) in (context.history.head.messages + 1..).zip(context.live) {
        let Message { role, parts, tokens, .. } = &live.message;
        let place = (context.items.len(), seq);
        out.leading &= *role == Role::System;
        if out.leading {
            out.system_message(place, &live.raw, parts, *tokens);
        } else if dialect == Dialect::Lcm {
            out.push(&live.raw);
            let hash = out.marking.text(&live.raw);
            out.element(place, hash, u64::from(*tokens));
        } else {
            let origin = Origin::Message { dialect, role: *role };
            let text = Text::Own(live.raw.as_str().into(), parts.as_slice().into());
            out.entries.push(Entry { index: place.0, seq, origin, text });
        }
    }
    out.chain = out.marking.chain(&mut out.elements.iter().map(|element| element.hash));
    if dialect != Dialect::Lcm {
        let entries = core::mem::take(&mut out.entries);
        out.finish(cache.renderings.render(dialect, entries));
    }
    out.messages_json.push(']');
    let bytes = out.messages_json.len();
    cache.marks = core::mem::take(&mut out.marking).finish(bytes);
    Ok(out)
}

impl Rendered {
    /// Adds a summary, or the brief that is in its place.
    fn add_summary(
        &mut self,
        reader: &mut Reader<'_>,
        cache: &RenderCache,
        context: &Assembly<'_>,
        (index, summary): (usize, &SummaryItem),
        dialect: Dialect,
    ) -> Result<()> {
        self.summaries += 1;
        if dialect == Dialect::Lcm && self.repeat(summary, index) {
            return Ok(());
        }
        let origin = Origin::Summary(summary.id, summary.bytes);
        if dialect != Dialect::Lcm
            && let Some(entry) = cache.renderings.summary(origin)
        {
            self.entries.push(Entry { index, seq: summary.seq_first, ..entry });
            return Ok(());
        }
        let raw = match context.focus.filter(|focus| focus.index == index) {
            Some(focus) => focus.element.clone(),
            None => {
                let item = [Item::Summary(*summary)];
                let records = summary_items::read_summaries(reader, context.history, &item)?;
                let form = context.form;
                records.first().map(|record| record.element(summary.id, form)).unwrap_or_default()
            }
        };
        if dialect == Dialect::Lcm {
            self.summary(summary, index, &raw);
        } else {
            let (seq, text) = (summary.seq_first, Text::Own(raw.into(), [].into()));
            self.entries.push(Entry { index, seq, origin, text });
        }
        Ok(())
    }

    /// Adds consecutive messages of the run at this index.
    fn add_messages(
        &mut self,
        reader: &mut Reader<'_>,
        context: &Assembly<'_>,
        (index, (from, to)): (usize, (u64, u64)),
        dialect: Dialect,
    ) -> Result<()> {
        let history = context.history;
        let messages = history.messages(reader, from, to)?;
        history.fetch_texts(reader, &messages)?;
        for Placed { seq, dialect: shape, stored, .. } in messages {
            let is_whole = context.whole.has(seq);
            let (raw, parts, tokens) = if is_whole {
                (history.text(reader, &stored)?, &*stored.parts, stored.message_tokens())
            } else {
                (history.shown(reader, &stored)?, stored.shown().1, stored.tokens)
            };
            let (role, place) = (stored.role, (index, seq));
            self.leading &= role == Role::System;
            if self.leading {
                self.system_message(place, &raw, parts, tokens);
            } else if dialect == Dialect::Lcm {
                self.message(place, shape, (!is_whole).then_some(&stored), (role, &raw, tokens));
            } else {
                let text = match raw {
                    Cow::Borrowed(_) if !is_whole => Text::Stored(Rc::clone(&stored)),
                    raw => Text::Own(raw.into(), parts.into()),
                };
                let origin = Origin::Message { dialect: shape, role };
                self.entries.push(Entry { index, seq, origin, text });
            }
        }
        Ok(())
    }

    /// Writes a summary that the last assembly wrote, too, if it did.
    fn repeat(&mut self, summary: &SummaryItem, index: usize) -> bool {
        let known = self.marking.known_summary(summary.id, summary.bytes);
        let Some((json, hash, tokens)) = known else { return false };
        self.push(&json);
        self.element((index, summary.seq_first), hash, tokens);
        true
    }

    /// Writes a summary from its element.
    fn summary(&mut self, summary: &SummaryItem, index: usize, element: &str) {
        let mut json = String::with_capacity(element.len() + element.len() / 8);
        json.push_str("{\"role\":\"user\",\"content\":");
        json::write_string(&mut json, element);
        json.push('}');
        let tokens = u64::from(tokens::estimate(element));
        self.push(&json);
        let hash = self.marking.summary(summary.id, summary.bytes, &json, tokens);
        self.element((index, summary.seq_first), hash, tokens);
    }

    /// Writes a message that came in this shape; `stored`: the record whose text it is.
    fn message(
        &mut self,
        place: (usize, u64),
        dialect: Dialect,
        stored: Option<&Rc<Stored>>,
        (role, raw, tokens): (Role, &str, u32),
    ) {
        if dialect == Dialect::Lcm {
            self.push(raw);
            let hash = match stored {
                Some(stored) => self.marking.message(stored, raw),
                None => self.marking.text(raw),
            };
            return self.element(place, hash, u64::from(tokens));
        }
        let json = dialect::from_provider(dialect, role, raw);
        let tokens = tokens::from_quarters(message::quarters(Dialect::Lcm, &json));
        self.push(&json);
        let hash = self.marking.text(&json);
        self.element(place, hash, u64::from(tokens));
    }

    /// Writes an element.
    fn push(&mut self, json: &str) {
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(json);
    }

    /// Takes an array for a provider.
    fn finish(&mut self, mut array: Rendering) {
        self.chain = array.chain(self.chain);
        self.elements.reserve(array.elements.len());
        for element in &array.elements {
            if let Some(entry) = array.entries.get(element.entry) {
                self.tokens += element.tokens;
                self.elements.push(Element {
                    hash: element.hash,
                    tokens: element.tokens,
                    place: (entry.index, entry.seq),
                    message: Some(element.message),
                    entry: Some(element.entry),
                    is_synthetic: element.is_synthetic,
                });
            }
        }
        self.array = array;
    }

    /// Leaves the array for the next assembly, unless it was refused, and hands out its JSON.
    pub(super) fn keep(self, cache: &mut RenderCache) -> String {
        if self.refused.is_none() && !self.array.entries.is_empty() {
            cache.renderings.keep(self.array);
        }
        self.messages_json
    }

    /// Marks the messages behind which a cache may end, for a provider that asks for marks, and
    /// takes all other marks away. They are no part of what is compared or counted.
    pub(super) fn mark_caches(&mut self, dialect: Dialect, breakpoints: &[u32]) {
        if dialect != Dialect::Anthropic || self.refused.is_some() || self.array.json.is_empty() {
            return;
        }
        let mut out = String::with_capacity(self.messages_json.len() + 256);
        for at in 0..self.array.starts.len() {
            out.push(if at == 0 { '[' } else { ',' });
            let Some(message) = self.array.message(at) else { continue };
            dialect::push_marked(&mut out, message, breakpoints.contains(&int::to_u32(at)));
        }
        out.push(']');
        self.messages_json = out;
    }

    /// Counts what was pushed last.
    fn element(&mut self, place: (usize, u64), hash: [u8; 32], tokens: u64) {
        let message = self.elements.iter().rev().find_map(|element| element.message);
        let message = Some(message.map_or(0, |last| last + 1));
        self.tokens += tokens;
        self.elements.push(Element::said(hash, tokens, place, message));
    }

    fn system_message(&mut self, place: (usize, u64), raw: &str, parts: &[Part], tokens: u32) {
        let text = system_text(raw, parts);
        let (hash, tokens) = (self.marking.text(&text), u64::from(tokens));
        self.tokens += tokens;
        self.elements.push(Element::said(hash, tokens, place, None));
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.system = Some(text),
        }
    }

    /// Tokens of what those places of the context became that fit.
    pub(super) fn tokens_of(&self, fits: &dyn Fn((usize, u64)) -> bool) -> u64 {
        let elements = self.elements.iter().filter(|element| fits(element.place));
        elements.map(|element| element.tokens).sum()
    }

    /// What was done to a piece of the context; empty: nothing.
    pub(super) fn done_to(&self, piece: &Piece) -> String {
        let array = &self.array;
        array.notes.counts(&|at| {
            array.entries.get(at).is_some_and(|entry| piece.holds((entry.index, entry.seq)))
        })
    }

    /// What could not stay as it was, one line each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut out = self.array.notes.warnings(&self.array.entries);
        out.extend(self.refused.clone());
        out
    }

    /// Writes the array for a provider, all of which the provider takes.
    pub(super) fn close(&mut self, dialect: Dialect) {
        if dialect == Dialect::Lcm || self.array.json.is_empty() {
            return;
        }
        self.messages_json = String::with_capacity(self.array.json.len() + 2);
        self.messages_json.push('[');
        self.messages_json.push_str(&self.array.json);
        self.messages_json.push(']');
        if !self.array.is_accepted(dialect) {
            self.leave_out(dialect);
        }
    }

    /// Leaves out what the provider would refuse, which is a defect of the rendering, and says so.
    fn leave_out(&mut self, dialect: Dialect) {
        let Some(kept) = accepted::accepted(dialect, &self.messages_json) else { return };
        let gone = |element: &Element| {
            kept.left_out.binary_search(&element.message?).ok().and(element.entry)
        };
        for entry in self.elements.iter().filter_map(gone) {
            self.array.notes.add(entry, Note::Invalid);
        }
        self.elements.retain(|element| gone(element).is_none());
        for element in &mut self.elements {
            let before = |at| kept.left_out.partition_point(|gone| *gone < at);
            element.message = element.message.map(|at| at - before(at));
        }
        self.chain = super::prefix::chain(&mut self.elements.iter().map(|element| element.hash));
        self.tokens = self.elements.iter().map(|element| element.tokens).sum();
        let is_summary = |element: &&Element| {
            let entry = element.entry.and_then(|entry| self.array.entries.get(entry));
            entry.is_some_and(|entry| matches!(entry.origin, Origin::Summary(..)))
        };
        let summaries = self.elements.iter().filter(is_summary).count();
        self.summaries = u32::try_from(summaries).unwrap_or(u32::MAX);
        self.messages_json = kept.messages_json;
        self.refused = Some(kept.warning);
    }
}

/// The text of a system message.
fn system_text(raw: &str, parts: &[Part]) -> String {
    let texts: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(json::text(raw, *text)),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::types::api::Dialect;

    /// A context of a summary and a call that nobody answers, as only a defect would render it.
    #[test]
    fn what_a_provider_would_refuse_does_not_go_out() {
        let user = |text: &str| alloc::format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
        let call = "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\
                    \"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}";
        let entry = |seq, origin| {
            let text = Text::Own("".into(), [].into());
            Entry { index: 0, seq, origin, text }
        };
        let message = |role| Origin::Message { dialect: Dialect::OpenaiChat, role };
        let mut rendered = Rendered { summaries: 1, ..Rendered::default() };
        rendered.array.json = alloc::format!("{},{},{call}", user("summary"), user("q"));
        rendered.array.starts = Vec::from([0]);
        rendered.array.entries = Vec::from([
            entry(1, Origin::Summary([0; 8], 0)),
            entry(9, message(Role::User)),
            entry(10, message(Role::Assistant)),
        ]);
        for (at, tokens) in [(0, 5), (1, 7), (2, 11)] {
            rendered.element((0, at), [0; 32], tokens);
            rendered.elements.last_mut().unwrap().entry = Some(usize::try_from(at).unwrap());
        }
        rendered.close(Dialect::OpenaiChat);
        assert_eq!(rendered.messages_json, alloc::format!("[{},{}]", user("summary"), user("q")));
        assert_eq!((rendered.tokens, rendered.summaries, rendered.elements.len()), (12, 1, 2));
        let warnings = rendered.warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("invalid-context: messages[2]: no result of the calls"));
        assert!(warnings[0].ends_with("; 1 messages left out"), "{warnings:?}");
        assert_eq!(rendered.array.notes.counts(&|at| at == 2), "invalid-context 1");
    }
}
