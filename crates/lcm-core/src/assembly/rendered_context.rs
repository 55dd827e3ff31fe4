//! A rendered context: the messages, and the element that each selected entry became.
//!
//! In: elements one by one, or a provider array. Out: the JSON array and its tokens. An array for a
//! provider passes a final check; messages that the provider would refuse are removed.

use alloc::{string::String, vec::Vec};

use super::{
    dialect::{self, EntryOrigin, RenderNote},
    element_chain, final_check,
    input::ItemPlace,
    pieces::ContextPiece,
    provider_array::ProviderArray,
    render_cache::RenderCache,
};
use lcm_text::{base::int, types::api::Dialect};

/// A rendered context.
#[derive(Debug)]
pub(super) struct RenderedContext {
    pub(super) dialect: Dialect,
    pub(super) messages_json: String,
    /// Texts of the leading system messages, joined by blank lines; `None`: no such message.
    pub(super) system: Option<String>,
    pub(super) tokens: u64,
    /// Number of summaries in the context, the focus brief included.
    pub(super) summaries: u32,
    /// The elements, which are compared with an earlier assembly.
    pub(super) elements: Vec<ContextElement>,
    /// Hash chain over all elements.
    pub(super) chain_hash: [u8; 32],
    /// The array for a provider; empty in the dialect `lcm`.
    array: ProviderArray,
    /// Warning of the final check; `None`: the check removed no message.
    refusal: Option<String>,
}

/// An element of a context: the part of one message of the array that comes from one entry.
#[derive(Debug)]
pub(super) struct ContextElement {
    pub(super) hash: [u8; 32],
    pub(super) tokens: u64,
    pub(super) place: ItemPlace,
    /// Index of its message in the array; `None`: a system message, which is not in the array.
    pub(super) message: Option<usize>,
    /// Index of its entry in the provider array; `None`: a system message, or the dialect is `lcm`.
    entry: Option<usize>,
    /// Whether the element is a placeholder turn that the provider requires.
    pub(super) is_synthetic: bool,
}

impl RenderedContext {
    /// Creates an empty context with an open array. `capacity`: expected bytes of the array.
    pub(super) fn new(dialect: Dialect, capacity: usize) -> Self {
        let mut messages_json = String::with_capacity(capacity);
        messages_json.push('[');
        Self {
            dialect,
            messages_json,
            system: None,
            tokens: 0,
            summaries: 0,
            elements: Vec::new(),
            chain_hash: element_chain::CHAIN_START,
            array: ProviderArray::default(),
            refusal: None,
        }
    }

    /// Appends the JSON of a message.
    pub(super) fn push_json(&mut self, json: &str) {
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(json);
    }

    /// Appends the element of the message whose JSON was appended last.
    pub(super) fn push_element(&mut self, place: ItemPlace, hash: [u8; 32], tokens: u64) {
        let message = self.elements.iter().rev().find_map(|element| element.message);
        let message = Some(message.map_or(0, |last| last + 1));
        self.add_element(place, hash, tokens, message);
    }

    /// Appends the text of a leading system message, which is not in the array, and its element.
    pub(super) fn push_system_text(
        &mut self,
        place: ItemPlace,
        text: &str,
        hash: [u8; 32],
        tokens: u64,
    ) {
        self.add_element(place, hash, tokens, None);
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(text);
            }
            None => self.system = Some(text.into()),
        }
    }

    fn add_element(
        &mut self,
        place: ItemPlace,
        hash: [u8; 32],
        tokens: u64,
        message: Option<usize>,
    ) {
        self.tokens += tokens;
        let (entry, is_synthetic) = (None, false);
        self.elements.push(ContextElement { hash, tokens, place, message, entry, is_synthetic });
    }

    /// Takes an array for a provider, with its elements, tokens and hash chain.
    pub(super) fn adopt_array(&mut self, mut array: ProviderArray) {
        self.chain_hash = array.extend_chain(self.chain_hash);
        self.elements.reserve(array.elements.len());
        for element in &array.elements {
            if let Some(entry) = array.entries.get(element.entry) {
                self.tokens += element.tokens;
                self.elements.push(ContextElement {
                    hash: element.hash,
                    tokens: element.tokens,
                    place: ItemPlace { index: entry.index, seq: entry.seq },
                    message: Some(element.message),
                    entry: Some(element.entry),
                    is_synthetic: element.is_synthetic,
                });
            }
        }
        self.array = array;
    }

    /// Returns the JSON. Caches the array of a provider unless the final check removed messages.
    pub(super) fn into_cached_json(self, cache: &mut RenderCache) -> String {
        if self.refusal.is_none() && !self.array.entries.is_empty() {
            cache.arrays.store_array(self.array);
        }
        self.messages_json
    }

    /// Writes a cache mark on each message of the array whose index is in `breakpoints`, and
    /// removes all other cache marks.
    ///
    /// Does nothing in a dialect other than `anthropic`, or if the final check removed messages.
    /// Hashes and tokens of the elements stay unchanged.
    pub(super) fn write_cache_marks(&mut self, breakpoints: &[u32]) {
        let has_marks = self.dialect == Dialect::Anthropic;
        if !has_marks || self.refusal.is_some() || self.array.json.is_empty() {
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

    /// Counts the tokens of the elements at the places that `includes` accepts.
    pub(super) fn count_tokens_of(&self, includes: &dyn Fn(ItemPlace) -> bool) -> u64 {
        let elements = self.elements.iter().filter(|element| includes(element.place));
        elements.map(|element| element.tokens).sum()
    }

    /// Formats the notes on the entries of a piece, with counts; empty without notes.
    pub(super) fn describe_notes(&self, piece: &ContextPiece) -> String {
        let array = &self.array;
        array.notes.format_counts(&|at| {
            array.entries.get(at).is_some_and(|entry| {
                piece.contains_place(ItemPlace { index: entry.index, seq: entry.seq })
            })
        })
    }

    /// Lists the warnings about changes that rendering made, then the warning of the final check.
    pub(super) fn list_warnings(&self) -> Vec<String> {
        let mut out = self.array.notes.format_warnings(&self.array.entries);
        out.extend(self.refusal.clone());
        out
    }

    /// Writes the array for a provider, without messages that the provider would refuse. Does
    /// nothing in the dialect `lcm`.
    pub(super) fn close_array(&mut self) {
        if self.dialect == Dialect::Lcm || self.array.json.is_empty() {
            return;
        }
        self.messages_json = String::with_capacity(self.array.json.len() + 2);
        self.messages_json.push('[');
        self.messages_json.push_str(&self.array.json);
        self.messages_json.push(']');
        if !self.array.is_accepted(self.dialect) {
            self.remove_refused();
        }
    }

    /// Removes the messages that the provider would refuse, and adds a warning. Only a defect of
    /// rendering causes such messages.
    fn remove_refused(&mut self) {
        let Some(accepted) = final_check::check_array(self.dialect, &self.messages_json) else {
            return;
        };
        let removed_entry = |element: &ContextElement| {
            accepted.removed_indexes.binary_search(&element.message?).ok().and(element.entry)
        };
        for entry in self.elements.iter().filter_map(removed_entry) {
            self.array.notes.add_note(entry, RenderNote::Invalid);
        }
        self.elements.retain(|element| removed_entry(element).is_none());
        for element in &mut self.elements {
            let before = |at| accepted.removed_indexes.partition_point(|removed| *removed < at);
            element.message = element.message.map(|at| at - before(at));
        }
        self.chain_hash =
            element_chain::chain_hashes(&mut self.elements.iter().map(|element| element.hash));
        self.tokens = self.elements.iter().map(|element| element.tokens).sum();
        let is_summary = |element: &&ContextElement| {
            let entry = element.entry.and_then(|entry| self.array.entries.get(entry));
            entry.is_some_and(|entry| matches!(entry.origin, EntryOrigin::Summary(..)))
        };
        let summaries = self.elements.iter().filter(is_summary).count();
        self.summaries = u32::try_from(summaries).unwrap_or(u32::MAX);
        self.messages_json = accepted.messages_json;
        self.refusal = Some(accepted.warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::dialect::{EntryText, RenderEntry};
    use lcm_text::message::Role;

    /// Method: a context of a summary and a call without a result, as only a defect renders it.
    #[test]
    fn messages_that_a_provider_would_refuse_are_removed() {
        let user = |text: &str| alloc::format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
        let call = "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\
                    \"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}";
        let entry = |seq, origin| {
            let text = EntryText::Own("".into(), [].into());
            RenderEntry { index: 0, seq, origin, text }
        };
        let message = |role| EntryOrigin::Message { dialect: Dialect::OpenaiChat, role };
        let mut rendered = RenderedContext::new(Dialect::OpenaiChat, 0);
        rendered.summaries = 1;
        rendered.array.json = alloc::format!("{},{},{call}", user("summary"), user("q"));
        rendered.array.starts = Vec::from([0]);
        rendered.array.entries = Vec::from([
            entry(1, EntryOrigin::Summary([0; 8], 0)),
            entry(9, message(Role::User)),
            entry(10, message(Role::Assistant)),
        ]);
        for (at, tokens) in [(0, 5), (1, 7), (2, 11)] {
            rendered.push_element(ItemPlace { index: 0, seq: at }, [0; 32], tokens);
            rendered.elements.last_mut().unwrap().entry = Some(usize::try_from(at).unwrap());
        }
        rendered.close_array();
        assert_eq!(rendered.messages_json, alloc::format!("[{},{}]", user("summary"), user("q")));
        assert_eq!((rendered.tokens, rendered.summaries, rendered.elements.len()), (12, 1, 2));
        let warnings = rendered.list_warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("invalid-context: messages[2]: no result of the calls"));
        assert!(warnings[0].ends_with("; 1 messages left out"), "{warnings:?}");
        assert_eq!(rendered.array.notes.format_counts(&|at| at == 2), "invalid-context 1");
    }
}
