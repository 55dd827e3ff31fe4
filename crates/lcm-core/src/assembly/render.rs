//! Renders the selected items as the array of messages that is returned.
//!
//! In: the selection and the live messages. Out: a [`RenderedContext`]. In the dialect `lcm`, a
//! message that came in `lcm` is written byte for byte, or as its placeholder. Any other message is
//! converted, and a summary becomes a user message that holds its element. The dialects of the
//! providers are in [`dialect`]. The leading system messages are returned separately from the
//! array.

use alloc::{borrow::Cow, rc::Rc, string::String, vec::Vec};

use super::{
    dialect::{self, EntryOrigin, EntryText, RenderEntry},
    element_hashes::ElementHasher,
    input::{AssemblyInput, ItemPlace, SYSTEM_INDEX},
    pending::PendingMessage,
    render_cache::RenderCache,
    rendered_context::RenderedContext,
    select::ContextChoice,
};
use crate::storage::{
    context::{ContextItem, MessageRun, SummaryItem},
    pack::{PlacedMessage, StoredMessage},
    store_session::StoreSession,
    summary, summary_items,
};
use lcm_text::{
    base::{error::Result, json, tokens},
    message::{self, ParsedMessage, Role},
    types::api::Dialect,
};

/// Bytes that an array may grow from one assembly to the next before its buffer is reallocated.
const SPARE_CAPACITY_BYTES: usize = 32 << 10;

/// Renders the selected items and the live messages.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn render(
    session: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    input: &AssemblyInput<'_>,
    choice: &ContextChoice,
    dialect: Dialect,
) -> Result<RenderedContext> {
    let hasher = ElementHasher::new(Rc::clone(&cache.hashes), input.call.keys.key_prefix());
    // The array of the last assembly has about the same size: one allocation instead of many.
    let capacity = hasher.previous_bytes() + SPARE_CAPACITY_BYTES;
    let mut renderer = ContextRenderer {
        input,
        out: RenderedContext::new(dialect, capacity),
        entries: Vec::new(),
        hasher,
    };
    renderer.push_system_messages();
    for (index, item) in input.items.iter().enumerate() {
        match item {
            ContextItem::Summary(summary) if choice.has_summary(index) => {
                renderer.add_summary(session, cache, index, summary)?;
            }
            ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => {}
            ContextItem::Run(run) => renderer.add_run(session, choice, index, run)?,
        }
    }
    for (seq, live) in (input.history.head.messages + 1..).zip(input.pending) {
        renderer.add_live_message(ItemPlace { index: input.items.len(), seq }, live);
    }
    Ok(renderer.finish(cache))
}

/// The content of a message to write.
struct MessageContent<'a> {
    raw: &'a str,
    role: Role,
    tokens: u32,
}

/// A renderer of one context.
struct ContextRenderer<'a> {
    input: &'a AssemblyInput<'a>,
    out: RenderedContext,
    /// Entries of the array for a provider; empty in the dialect `lcm`.
    entries: Vec<RenderEntry>,
    hasher: ElementHasher,
}

impl ContextRenderer<'_> {
    fn is_lcm(&self) -> bool {
        self.out.dialect == Dialect::Lcm
    }

    /// Adds the summary at an index, or the focus brief in its place.
    fn add_summary(
        &mut self,
        session: &mut StoreSession<'_>,
        cache: &RenderCache,
        index: usize,
        summary: &SummaryItem,
    ) -> Result<()> {
        self.out.summaries += 1;
        let place = ItemPlace { index, seq: summary.seq_first };
        if self.is_lcm() && self.push_known_summary(place, summary) {
            return Ok(());
        }
        let origin = EntryOrigin::Summary(summary.id, summary.bytes);
        if !self.is_lcm()
            && let Some(entry) = cache.arrays.find_summary(origin)
        {
            self.entries.push(RenderEntry { index, seq: place.seq, ..entry });
            return Ok(());
        }
        let element = match self.input.focus.filter(|focus| focus.index == index) {
            Some(focus) => focus.element.clone(),
            None => {
                let item = [ContextItem::Summary(*summary)];
                let records = summary_items::read_summaries(session, self.input.history, &item)?;
                let config = self.input.call.config;
                let (markup, offsets) = (summary::choose_markup(config), &config.time_offsets);
                records
                    .first()
                    .map(|record| record.render_element(summary.id, offsets, markup))
                    .unwrap_or_default()
            }
        };
        if self.is_lcm() {
            self.push_summary(place, summary, &element);
        } else {
            let text = EntryText::Own(element.into(), [].into());
            self.entries.push(RenderEntry { index, seq: place.seq, origin, text });
        }
        Ok(())
    }

    /// Adds the selected messages of the run at an index.
    fn add_run(
        &mut self,
        session: &mut StoreSession<'_>,
        choice: &ContextChoice,
        index: usize,
        run: &MessageRun,
    ) -> Result<()> {
        let is_in_run = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
        for range in choice.ranges.iter().filter(|range| is_in_run(range.seq_first)) {
            let history = self.input.history;
            let messages = history.read_messages(session, range.seq_first, range.seq_last)?;
            history.prefetch_texts(session, &messages)?;
            for message in messages {
                self.add_message(session, index, message)?;
            }
        }
        Ok(())
    }

    /// Adds a stored message of the run at an index.
    fn add_message(
        &mut self,
        session: &mut StoreSession<'_>,
        index: usize,
        message: PlacedMessage,
    ) -> Result<()> {
        let PlacedMessage { seq, dialect, stored, .. } = message;
        let history = self.input.history;
        let is_full = self.input.full_outputs.contains_seq(seq);
        let (raw, parts, tokens) = if is_full {
            (history.read_text(session, &stored)?, &*stored.parts, stored.message_tokens())
        } else {
            let raw = history.read_rendered_text(session, &stored)?;
            (raw, stored.rendered_content().1, stored.tokens)
        };
        let (role, place) = (stored.role, ItemPlace { index, seq });
        if self.is_lcm() {
            let content = MessageContent { raw: &raw, role, tokens };
            let record = (!is_full).then_some(&stored);
            self.push_message(place, dialect, &content, record);
        } else {
            let text = match raw {
                Cow::Borrowed(_) if !is_full => EntryText::Stored(Rc::clone(&stored)),
                raw => EntryText::Own(raw.into(), parts.into()),
            };
            let origin = EntryOrigin::Message { dialect, role };
            self.entries.push(RenderEntry { index, seq, origin, text });
        }
        Ok(())
    }

    /// Adds a live message.
    fn add_live_message(&mut self, place: ItemPlace, live: &PendingMessage) {
        let ParsedMessage { role, parts, tokens, .. } = &live.message;
        if self.is_lcm() {
            self.out.push_json(&live.raw);
            let hash = self.hasher.hash_text(&live.raw);
            self.out.push_element(place, hash, u64::from(*tokens));
        } else {
            let origin = EntryOrigin::Message { dialect: self.out.dialect, role: *role };
            let text = EntryText::Own(live.raw.as_str().into(), parts.as_slice().into());
            self.entries.push(RenderEntry { index: place.index, seq: place.seq, origin, text });
        }
    }

    /// Appends a summary that the last assembly rendered; `false`: the last assembly did not.
    fn push_known_summary(&mut self, place: ItemPlace, summary: &SummaryItem) -> bool {
        let known = self.hasher.find_summary(summary.id, summary.bytes);
        let Some((json, hash, tokens)) = known else { return false };
        self.out.push_json(&json);
        self.out.push_element(place, hash, tokens);
        true
    }

    /// Appends a summary as a user message that holds its element.
    fn push_summary(&mut self, place: ItemPlace, summary: &SummaryItem, element: &str) {
        let mut json = String::with_capacity(element.len() + element.len() / 8);
        json.push_str("{\"role\":\"user\",\"content\":");
        json::write_string(&mut json, element);
        json.push('}');
        let tokens = u64::from(tokens::estimate(element));
        self.out.push_json(&json);
        let hash = self.hasher.hash_summary(summary.id, summary.bytes, &json, tokens);
        self.out.push_element(place, hash, tokens);
    }

    /// Appends a message to an array in the dialect `lcm`. `dialect`: the dialect that the message
    /// came in. `record`: its stored record; `None`: a large tool output is shown in full.
    fn push_message(
        &mut self,
        place: ItemPlace,
        dialect: Dialect,
        content: &MessageContent<'_>,
        record: Option<&Rc<StoredMessage>>,
    ) {
        let MessageContent { raw, role, tokens, .. } = *content;
        if dialect == Dialect::Lcm {
            self.out.push_json(raw);
            let hash = match record {
                Some(record) => self.hasher.hash_message(record, raw),
                None => self.hasher.hash_text(raw),
            };
            return self.out.push_element(place, hash, u64::from(tokens));
        }
        let json = dialect::from_provider(dialect, role, raw);
        let tokens = tokens::tokens_from_quarters(message::quarter_tokens(Dialect::Lcm, &json));
        self.out.push_json(&json);
        let hash = self.hasher.hash_text(&json);
        self.out.push_element(place, hash, u64::from(tokens));
    }

    /// Appends the texts of the system messages, which are not in the array.
    fn push_system_messages(&mut self) {
        for (seq, message) in (1..).zip(&self.input.system.messages) {
            let hash = self.hasher.hash_text(&message.text);
            let place = ItemPlace { index: SYSTEM_INDEX, seq };
            self.out.push_system_text(place, &message.text, hash, u64::from(message.tokens));
        }
    }

    /// Renders the entries, closes the array, and caches the hashes.
    fn finish(self, cache: &mut RenderCache) -> RenderedContext {
        let Self { mut out, entries, mut hasher, .. } = self;
        out.chain_hash = hasher.hash_chain(&mut out.elements.iter().map(|element| element.hash));
        if out.dialect != Dialect::Lcm {
            out.adopt_array(cache.arrays.render(out.dialect, entries));
        }
        out.messages_json.push(']');
        cache.hashes = hasher.finish(out.messages_json.len());
        out
    }
}
