//! From chosen items to the array that is returned.
//!
//! In the `lcm` dialect, messages that came in it go out byte for byte, and a summary is a user
//! message with its element; the dialects of the providers are [`dialect`]'s matter. Leading system
//! messages are returned beside the array in all of them.

use super::RenderCache;
use crate::storage::pack::PlacedMessage;
use crate::storage::summary_items;
use alloc::{borrow::Cow, rc::Rc, string::String, vec::Vec};

use crate::storage::{
    context::{ContextItem, SummaryItem},
    pack::StoredMessage,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, json, tokens},
    message::{self, ParsedMessage, Part, Role},
    types::api::Dialect,
};

use super::{
    Assembly,
    dialect::{self, EntryOrigin, EntryText, RenderEntry, RenderNote},
    element_hashes::ElementHasher,
    explain::ContextPiece,
    final_check,
    render_cache::ProviderArray,
    select::ContextChoice,
};

/// Bytes that an array may have more than the last one before it is copied.
const SPARE_CAPACITY_BYTES: usize = 32 << 10;

/// A rendered context.
#[derive(Debug, Default)]
pub(super) struct RenderedContext {
    pub(super) messages_json: String,
    pub(super) system: Option<String>,
    pub(super) tokens: u64,
    pub(super) summaries: u32,
    /// Each element with its hash and tokens, for comparison with an earlier assembly.
    pub(super) elements: Vec<ContextElement>,
    /// The hash of all elements, see [`super::prefix`].
    pub(super) chain_hash: [u8; 32],
    /// What there is for a provider; empty in the dialect `lcm`.
    entries: Vec<RenderEntry>,
    /// What they became.
    array: ProviderArray,
    hasher: ElementHasher,
    /// Whether nothing but system messages was added.
    is_leading: bool,
    /// What the check of the array found, if it did.
    refusal: Option<String>,
}

/// What one message or summary became in one message of the array.
#[derive(Debug)]
pub(super) struct ContextElement {
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

impl ContextElement {
    /// One of a message or summary that has no entry.
    const fn without_entry(
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
    reader: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    context: &Assembly<'_>,
    choice: &ContextChoice,
    dialect: Dialect,
) -> Result<RenderedContext> {
    let marking = ElementHasher::new(Rc::clone(&cache.marks), context.history.keys.key_prefix());
    // About as many bytes as last time: growing step by step would copy all of it several times.
    let mut messages_json = String::with_capacity(marking.previous_bytes() + SPARE_CAPACITY_BYTES);
    messages_json.push('[');
    let mut out = RenderedContext {
        messages_json,
        hasher: marking,
        is_leading: true,
        ..RenderedContext::default()
    };
    for (index, item) in context.items.iter().enumerate() {
        match item {
            ContextItem::Summary(summary) if choice.has_summary(index) => {
                out.is_leading = false;
                out.add_summary(reader, cache, context, (index, summary), dialect)?;
            }
            ContextItem::Summary(_) => out.is_leading = false,
            // What a new session left behind was before its beginning.
            ContextItem::Withdrawn { .. } => {}
            ContextItem::Run(run) => {
                let within = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
                let mut next = run.seq_first;
                for range in choice.ranges.iter().filter(|range| within(range.seq_first)) {
                    // A system message behind something that is not shown leads nothing.
                    out.is_leading &= range.seq_first == next;
                    next = range.seq_last + 1;
                    let range = (range.seq_first, range.seq_last);
                    out.add_messages(reader, context, (index, range), dialect)?;
                }
                out.is_leading &= next > run.seq_last;
            }
        }
    }
    for (seq, live) in (context.history.head.messages + 1..).zip(context.pending) {
        let ParsedMessage { role, parts, tokens, .. } = &live.message;
        let place = (context.items.len(), seq);
        out.is_leading &= *role == Role::System;
        if out.is_leading {
            out.push_system_message(place, &live.raw, parts, *tokens);
        } else if dialect == Dialect::Lcm {
            out.push_json(&live.raw);
            let hash = out.hasher.hash_text(&live.raw);
            out.push_element(place, hash, u64::from(*tokens));
        } else {
            let origin = EntryOrigin::Message { dialect, role: *role };
            let text = EntryText::Own(live.raw.as_str().into(), parts.as_slice().into());
            out.entries.push(RenderEntry { index: place.0, seq, origin, text });
        }
    }
    out.chain_hash = out.hasher.hash_chain(&mut out.elements.iter().map(|element| element.hash));
    if dialect != Dialect::Lcm {
        let entries = core::mem::take(&mut out.entries);
        out.adopt_array(cache.arrays.render(dialect, entries));
    }
    out.messages_json.push(']');
    let bytes = out.messages_json.len();
    cache.marks = core::mem::take(&mut out.hasher).finish(bytes);
    Ok(out)
}

impl RenderedContext {
    /// Adds a summary, or the brief that is in its place.
    fn add_summary(
        &mut self,
        reader: &mut StoreSession<'_>,
        cache: &RenderCache,
        context: &Assembly<'_>,
        (index, summary): (usize, &SummaryItem),
        dialect: Dialect,
    ) -> Result<()> {
        self.summaries += 1;
        if dialect == Dialect::Lcm && self.push_known_summary(summary, index) {
            return Ok(());
        }
        let origin = EntryOrigin::Summary(summary.id, summary.bytes);
        if dialect != Dialect::Lcm
            && let Some(entry) = cache.arrays.find_summary(origin)
        {
            self.entries.push(RenderEntry { index, seq: summary.seq_first, ..entry });
            return Ok(());
        }
        let raw = match context.focus.filter(|focus| focus.index == index) {
            Some(focus) => focus.element.clone(),
            None => {
                let item = [ContextItem::Summary(*summary)];
                let records = summary_items::read_summaries(reader, context.history, &item)?;
                let form = context.render_summary;
                records
                    .first()
                    .map(|record| record.render_element(summary.id, form))
                    .unwrap_or_default()
            }
        };
        if dialect == Dialect::Lcm {
            self.push_summary(summary, index, &raw);
        } else {
            let (seq, text) = (summary.seq_first, EntryText::Own(raw.into(), [].into()));
            self.entries.push(RenderEntry { index, seq, origin, text });
        }
        Ok(())
    }

    /// Adds consecutive messages of the run at this index.
    fn add_messages(
        &mut self,
        reader: &mut StoreSession<'_>,
        context: &Assembly<'_>,
        (index, (from, to)): (usize, (u64, u64)),
        dialect: Dialect,
    ) -> Result<()> {
        let history = context.history;
        let messages = history.read_messages(reader, from, to)?;
        history.prefetch_texts(reader, &messages)?;
        for PlacedMessage { seq, dialect: shape, stored, .. } in messages {
            let is_whole = context.full_outputs.contains_seq(seq);
            let (raw, parts, tokens) = if is_whole {
                (history.read_text(reader, &stored)?, &*stored.parts, stored.message_tokens())
            } else {
                (
                    history.read_rendered_text(reader, &stored)?,
                    stored.rendered_content().1,
                    stored.tokens,
                )
            };
            let (role, place) = (stored.role, (index, seq));
            self.is_leading &= role == Role::System;
            if self.is_leading {
                self.push_system_message(place, &raw, parts, tokens);
            } else if dialect == Dialect::Lcm {
                self.push_message(
                    place,
                    shape,
                    (!is_whole).then_some(&stored),
                    (role, &raw, tokens),
                );
            } else {
                let text = match raw {
                    Cow::Borrowed(_) if !is_whole => EntryText::Stored(Rc::clone(&stored)),
                    raw => EntryText::Own(raw.into(), parts.into()),
                };
                let origin = EntryOrigin::Message { dialect: shape, role };
                self.entries.push(RenderEntry { index, seq, origin, text });
            }
        }
        Ok(())
    }

    /// Writes a summary that the last assembly wrote, too, if it did.
    fn push_known_summary(&mut self, summary: &SummaryItem, index: usize) -> bool {
        let known = self.hasher.find_summary(summary.id, summary.bytes);
        let Some((json, hash, tokens)) = known else { return false };
        self.push_json(&json);
        self.push_element((index, summary.seq_first), hash, tokens);
        true
    }

    /// Writes a summary from its element.
    fn push_summary(&mut self, summary: &SummaryItem, index: usize, element: &str) {
        let mut json = String::with_capacity(element.len() + element.len() / 8);
        json.push_str("{\"role\":\"user\",\"content\":");
        json::write_string(&mut json, element);
        json.push('}');
        let tokens = u64::from(tokens::estimate(element));
        self.push_json(&json);
        let hash = self.hasher.hash_summary(summary.id, summary.bytes, &json, tokens);
        self.push_element((index, summary.seq_first), hash, tokens);
    }

    /// Writes a message that came in this shape; `stored`: the record whose text it is.
    fn push_message(
        &mut self,
        place: (usize, u64),
        dialect: Dialect,
        stored: Option<&Rc<StoredMessage>>,
        (role, raw, tokens): (Role, &str, u32),
    ) {
        if dialect == Dialect::Lcm {
            self.push_json(raw);
            let hash = match stored {
                Some(stored) => self.hasher.hash_message(stored, raw),
                None => self.hasher.hash_text(raw),
            };
            return self.push_element(place, hash, u64::from(tokens));
        }
        let json = dialect::from_provider(dialect, role, raw);
        let tokens = tokens::tokens_from_quarters(message::quarter_tokens(Dialect::Lcm, &json));
        self.push_json(&json);
        let hash = self.hasher.hash_text(&json);
        self.push_element(place, hash, u64::from(tokens));
    }

    /// Writes an element.
    fn push_json(&mut self, json: &str) {
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(json);
    }

    /// Takes an array for a provider.
    fn adopt_array(&mut self, mut array: ProviderArray) {
        self.chain_hash = array.extend_chain(self.chain_hash);
        self.elements.reserve(array.elements.len());
        for element in &array.elements {
            if let Some(entry) = array.entries.get(element.entry) {
                self.tokens += element.tokens;
                self.elements.push(ContextElement {
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
    pub(super) fn into_cached_json(self, cache: &mut RenderCache) -> String {
        if self.refusal.is_none() && !self.array.entries.is_empty() {
            cache.arrays.store_array(self.array);
        }
        self.messages_json
    }

    /// Marks the messages behind which a cache may end, for a provider that asks for marks, and
    /// takes all other marks away. They are no part of what is compared or counted.
    pub(super) fn write_cache_marks(&mut self, dialect: Dialect, breakpoints: &[u32]) {
        if dialect != Dialect::Anthropic || self.refusal.is_some() || self.array.json.is_empty() {
            return;
        }
        let mut out = String::with_capacity(self.messages_json.len() + 256);
        for at in 0..self.array.starts.len() {
            out.push(if at == 0 { '[' } else { ',' });
            let Some(message) = self.array.message_json(at) else { continue };
            dialect::push_with_cache_control(
                &mut out,
                message,
                breakpoints.contains(&int::to_u32(at)),
            );
        }
        out.push(']');
        self.messages_json = out;
    }

    /// Counts what was pushed last.
    fn push_element(&mut self, place: (usize, u64), hash: [u8; 32], tokens: u64) {
        let message = self.elements.iter().rev().find_map(|element| element.message);
        let message = Some(message.map_or(0, |last| last + 1));
        self.tokens += tokens;
        self.elements.push(ContextElement::without_entry(hash, tokens, place, message));
    }

    fn push_system_message(&mut self, place: (usize, u64), raw: &str, parts: &[Part], tokens: u32) {
        let text = join_system_text(raw, parts);
        let (hash, tokens) = (self.hasher.hash_text(&text), u64::from(tokens));
        self.tokens += tokens;
        self.elements.push(ContextElement::without_entry(hash, tokens, place, None));
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.system = Some(text),
        }
    }

    /// Tokens of what those places of the context became that fit.
    pub(super) fn count_tokens_of(&self, fits: &dyn Fn((usize, u64)) -> bool) -> u64 {
        let elements = self.elements.iter().filter(|element| fits(element.place));
        elements.map(|element| element.tokens).sum()
    }

    /// What was done to a piece of the context; empty: nothing.
    pub(super) fn describe_notes(&self, piece: &ContextPiece) -> String {
        let array = &self.array;
        array.notes.format_counts(&|at| {
            array
                .entries
                .get(at)
                .is_some_and(|entry| piece.contains_place((entry.index, entry.seq)))
        })
    }

    /// What could not stay as it was, one line each.
    pub(super) fn list_warnings(&self) -> Vec<String> {
        let mut out = self.array.notes.format_warnings(&self.array.entries);
        out.extend(self.refusal.clone());
        out
    }

    /// Writes the array for a provider, all of which the provider takes.
    pub(super) fn close_array(&mut self, dialect: Dialect) {
        if dialect == Dialect::Lcm || self.array.json.is_empty() {
            return;
        }
        self.messages_json = String::with_capacity(self.array.json.len() + 2);
        self.messages_json.push('[');
        self.messages_json.push_str(&self.array.json);
        self.messages_json.push(']');
        if !self.array.is_accepted(dialect) {
            self.remove_refused(dialect);
        }
    }

    /// Leaves out what the provider would refuse, which is a defect of the rendering, and says so.
    fn remove_refused(&mut self, dialect: Dialect) {
        let Some(kept) = final_check::check_array(dialect, &self.messages_json) else { return };
        let gone = |element: &ContextElement| {
            kept.removed_indexes.binary_search(&element.message?).ok().and(element.entry)
        };
        for entry in self.elements.iter().filter_map(gone) {
            self.array.notes.add_note(entry, RenderNote::Invalid);
        }
        self.elements.retain(|element| gone(element).is_none());
        for element in &mut self.elements {
            let before = |at| kept.removed_indexes.partition_point(|gone| *gone < at);
            element.message = element.message.map(|at| at - before(at));
        }
        self.chain_hash =
            super::prefix::chain_all(&mut self.elements.iter().map(|element| element.hash));
        self.tokens = self.elements.iter().map(|element| element.tokens).sum();
        let is_summary = |element: &&ContextElement| {
            let entry = element.entry.and_then(|entry| self.array.entries.get(entry));
            entry.is_some_and(|entry| matches!(entry.origin, EntryOrigin::Summary(..)))
        };
        let summaries = self.elements.iter().filter(is_summary).count();
        self.summaries = u32::try_from(summaries).unwrap_or(u32::MAX);
        self.messages_json = kept.messages_json;
        self.refusal = Some(kept.warning);
    }
}

/// The text of a system message.
fn join_system_text(raw: &str, parts: &[Part]) -> String {
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
            let text = EntryText::Own("".into(), [].into());
            RenderEntry { index: 0, seq, origin, text }
        };
        let message = |role| EntryOrigin::Message { dialect: Dialect::OpenaiChat, role };
        let mut rendered = RenderedContext { summaries: 1, ..RenderedContext::default() };
        rendered.array.json = alloc::format!("{},{},{call}", user("summary"), user("q"));
        rendered.array.starts = Vec::from([0]);
        rendered.array.entries = Vec::from([
            entry(1, EntryOrigin::Summary([0; 8], 0)),
            entry(9, message(Role::User)),
            entry(10, message(Role::Assistant)),
        ]);
        for (at, tokens) in [(0, 5), (1, 7), (2, 11)] {
            rendered.push_element((0, at), [0; 32], tokens);
            rendered.elements.last_mut().unwrap().entry = Some(usize::try_from(at).unwrap());
        }
        rendered.close_array(Dialect::OpenaiChat);
        assert_eq!(rendered.messages_json, alloc::format!("[{},{}]", user("summary"), user("q")));
        assert_eq!((rendered.tokens, rendered.summaries, rendered.elements.len()), (12, 1, 2));
        let warnings = rendered.list_warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("invalid-context: messages[2]: no result of the calls"));
        assert!(warnings[0].ends_with("; 1 messages left out"), "{warnings:?}");
        assert_eq!(rendered.array.notes.format_counts(&|at| at == 2), "invalid-context 1");
    }
}
