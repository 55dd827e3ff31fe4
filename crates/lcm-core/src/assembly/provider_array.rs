//! One rendered array for a provider, which can be cut and extended.
//!
//! In: the rendered output of entries. Out: the JSON array, with a hash and tokens for each
//! element. [`super::render_cache`] keeps arrays and extends them. A cut keeps the messages before
//! it and removes the messages behind it. A cut is possible where no kept message depends on a
//! removed message: calls, ids, roles and cache marks are checked.

use alloc::{string::String, vec::Vec};

use super::{
    dialect::{self, ArrayPart, EntryOrigin, RenderEntry, RenderNote, RenderNotes},
    element_chain, element_hashes,
};
use lcm_text::{
    base::{
        json::{self, JsonValue},
        sort,
    },
    message::{Role, validate},
    types::api::Dialect,
};

/// Maximum number of cuts that are tried to extend an array. Each try renders the entries behind
/// the cut; after a few tries, rendering all entries once is cheaper.
const CUTS_MAX: usize = 3;

/// A rendered array for a provider.
#[derive(Debug, Default)]
pub(super) struct ProviderArray {
    /// Key prefix of its conversation.
    key_prefix: String,
    dialect: Option<Dialect>,
    pub(super) entries: Vec<RenderEntry>,
    /// The messages, separated by commas, without the brackets.
    pub(super) json: String,
    /// Byte offset of each message in `json`.
    pub(super) starts: Vec<usize>,
    pub(super) elements: Vec<ArrayElement>,
    pub(super) notes: RenderNotes,
    /// Hashes of the ids of calls, results and items, each with the index of its entry.
    ids: Vec<(u64, usize)>,
    /// Index of the entry of a call and of its result, where the two differ.
    pairs: Vec<(usize, usize)>,
    /// Byte offset in `json` of the first message that came with a cache mark; `usize::MAX`: no
    /// message did.
    first_cache_mark: usize,
    /// Hash chain over the elements of the context before the array.
    chain_start: [u8; 32],
    /// Hash chain up to and including each element; may be shorter than `elements` until
    /// [`Self::extend_chain`] is called.
    chain: Vec<[u8; 32]>,
    /// How many messages from the start passed validation.
    accepted_messages: usize,
}

/// An element of a provider array: the part of one message that comes from one entry.
#[derive(Debug)]
pub(super) struct ArrayElement {
    pub(super) hash: [u8; 32],
    pub(super) tokens: u64,
    /// Index of the entry.
    pub(super) entry: usize,
    /// Index of the message.
    pub(super) message: usize,
    /// Whether the element is a placeholder turn that the provider requires.
    pub(super) is_synthetic: bool,
}

/// A cut of an array: the indexes of the first entry, message and element that are removed.
#[derive(Clone, Copy)]
pub(super) struct ArrayCut {
    pub(super) entry: usize,
    message: usize,
    element: usize,
}

impl ProviderArray {
    /// Creates an empty array.
    pub(super) fn new(key_prefix: &str, dialect: Dialect) -> Self {
        Self { key_prefix: key_prefix.into(), dialect: Some(dialect), ..Self::default() }
    }

    /// Returns whether the array is of the conversation with this key prefix.
    pub(super) fn has_key_prefix(&self, key_prefix: &str) -> bool {
        self.key_prefix == key_prefix
    }

    /// Counts the entries at the start that equal those of this array; 0 in another dialect.
    pub(super) fn count_equal_entries(&self, dialect: Dialect, entries: &[RenderEntry]) -> usize {
        if self.dialect != Some(dialect) {
            return 0;
        }
        self.entries.iter().zip(entries).take_while(|(one, other)| one.is_same(other)).count()
    }

    /// Cuts the array and appends the rest of `entries`, of which the first `equal` are entries of
    /// this array. After `true`, the caller sets the field `entries`. `false`: no cut that was
    /// tried is possible, and the array is unchanged.
    pub(super) fn extend_to(
        &mut self,
        dialect: Dialect,
        entries: &[RenderEntry],
        mut equal: usize,
    ) -> bool {
        if equal == entries.len() && equal == self.entries.len() {
            return true;
        }
        for _ in 0..CUTS_MAX {
            let Some(cut) = self.find_cut(equal) else { return false };
            let rest = entries.get(cut.entry..).unwrap_or_default();
            let output = dialect::render(dialect, rest, ArrayPart::Rest);
            if self.can_append(dialect, cut, rest, &output) {
                self.replace_after(cut, output);
                return true;
            }
            equal = cut.entry;
        }
        false
    }

    /// Returns whether `output` may follow the part before a cut. It was rendered from `rest`, the
    /// entries behind the cut, alone and must equal their output in the whole array.
    fn can_append(
        &self,
        dialect: Dialect,
        cut: ArrayCut,
        rest: &[RenderEntry],
        output: &dialect::RenderOutput,
    ) -> bool {
        let merges = || {
            let last = self.message_json(cut.message - 1).map(role_prefix).unwrap_or_default();
            let is_same = output.json.starts_with(last);
            is_same && (dialect == Dialect::Anthropic || last.contains("\"model\""))
        };
        !output.json.is_empty()
            && output.is_independent
            // Only the newest cache marks are kept: whether a mark stays depends on later messages.
            && self.first_cache_mark >= self.end_offset(cut)
            && self.has_whole_pairs(cut)
            && !self.splits_message(cut, rest, output)
            && !(dialect == Dialect::OpenaiResponses && self.has_lost_reasoning(cut))
            && !self.has_shared_ids(cut, &output.ids)
            && !(matches!(dialect, Dialect::Anthropic | Dialect::Gemini) && merges())
    }

    /// Returns the byte offset in `json` at which the part before a cut ends.
    fn end_offset(&self, cut: ArrayCut) -> usize {
        self.starts.get(cut.message).map_or(self.json.len(), |start| start - 1)
    }

    /// Replaces everything behind a cut by rendered output.
    fn replace_after(&mut self, cut: ArrayCut, output: dialect::RenderOutput) {
        self.json.truncate(self.end_offset(cut));
        self.starts.truncate(cut.message);
        self.elements.truncate(cut.element);
        self.chain.truncate(cut.element);
        self.notes.retain_before(cut.entry);
        self.ids.retain(|(_, entry)| *entry < cut.entry);
        self.pairs.retain(|(call, _)| *call < cut.entry);
        self.accepted_messages = self.accepted_messages.min(cut.message);
        self.append_output(output, cut.entry);
    }

    /// Returns the last cut that keeps fewer than `equal` entries; `None`: there is no cut. A cut
    /// is at the start of a message, and no entry has elements on both sides.
    pub(super) fn find_cut(&self, equal: usize) -> Option<ArrayCut> {
        // For each element, the greatest entry index of the elements before.
        let mut before = Vec::with_capacity(self.elements.len());
        let mut greatest = 0;
        for element in &self.elements {
            before.push(greatest);
            greatest = greatest.max(element.entry);
        }
        let mut least = usize::MAX;
        for (at, element) in self.elements.iter().enumerate().rev() {
            least = least.min(element.entry);
            let greatest = before.get(at).copied().unwrap_or_default();
            let begins = at > 0
                && self.elements.get(at - 1).is_some_and(|last| last.message < element.message);
            if begins && greatest < least && least < equal {
                return Some(ArrayCut { entry: least, message: element.message, element: at });
            }
        }
        None
    }

    /// Returns whether reasoning of `openai-responses` before a cut was omitted. Items behind the
    /// cut may then lose their ids.
    fn has_lost_reasoning(&self, cut: ArrayCut) -> bool {
        let is_own = |at: usize| {
            let origin = self.entries.get(at).map(|entry| entry.origin);
            matches!(origin, Some(EntryOrigin::Message { dialect: Dialect::OpenaiResponses, .. }))
        };
        self.notes.has_note(RenderNote::ReasoningLeftOut, &|at| at < cut.entry && is_own(at))
    }

    /// Returns whether the model speaks on both sides of a cut. That is one message: calls without
    /// ids, results that are missing and thinking depend on the other side. An entry that is not
    /// written divides nothing, and a result without its call becomes a message of the model.
    fn splits_message(
        &self,
        cut: ArrayCut,
        rest: &[RenderEntry],
        output: &dialect::RenderOutput,
    ) -> bool {
        let role = |entry: &RenderEntry| match entry.origin {
            EntryOrigin::Message { role, .. } => Some(role),
            _ => None,
        };
        let is_orphan = |notes: &RenderNotes, from: usize, to: usize| {
            notes.has_note(RenderNote::OrphanResult, &|at| (from..=to).contains(&at))
        };
        let last = cut.element.checked_sub(1).and_then(|at| self.elements.get(at));
        let (from, to) = (last.map_or(0, |last| last.entry), cut.entry.saturating_sub(1));
        let before = self.entries.get(from..=to).unwrap_or_default();
        let first = output.elements.first().map_or(0, |first| first.entry);
        let behind = rest.get(..=first).unwrap_or_default();
        let is_open = before.iter().any(|entry| role(entry) == Some(Role::Assistant));
        let goes_on =
            |entry: &RenderEntry| matches!(role(entry), Some(Role::Assistant | Role::Tool));
        (is_open || is_orphan(&self.notes, from, to))
            && (behind.iter().any(goes_on) || is_orphan(&output.notes, 0, first))
    }

    /// Returns whether every call is on the same side of a cut as its result.
    fn has_whole_pairs(&self, cut: ArrayCut) -> bool {
        self.pairs.iter().all(|(call, answer)| (*call < cut.entry) == (*answer < cut.entry))
    }

    /// Returns whether the part before a cut shares an id with the removed part or with `rest`, the
    /// ids of the output to append.
    fn has_shared_ids(&self, cut: ArrayCut, rest: &[(u64, usize)]) -> bool {
        let removed = self.ids.iter().filter(|(_, entry)| *entry >= cut.entry);
        let mut ids: Vec<u64> = rest.iter().chain(removed).map(|(id, _)| *id).collect();
        sort::sort_and_dedup_numbers(&mut ids);
        let mut kept = self.ids.iter().filter(|(_, entry)| *entry < cut.entry);
        kept.any(|(id, _)| ids.binary_search(id).is_ok())
    }

    /// Returns the JSON of the message at an index; `None`: the array has no such message.
    pub(super) fn message_json(&self, at: usize) -> Option<&str> {
        let end = self.starts.get(at + 1).map_or(self.json.len(), |next| next - 1);
        self.json.get(*self.starts.get(at)?..end)
    }

    /// Appends the output of the entries from index `entry` on.
    pub(super) fn append_output(&mut self, output: dialect::RenderOutput, entry: usize) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        let (start, message) = (self.json.len(), self.starts.len());
        if self.first_cache_mark >= start {
            // Stripped marks count, too: the text of an element still has them.
            let has_mark =
                |element: &&dialect::OutputElement| element.text.contains("cache_control");
            let first = output.elements.iter().find(has_mark);
            let at = first.and_then(|element| output.starts.get(element.message));
            self.first_cache_mark = at.map_or(usize::MAX, |at| at + start);
        }
        if start == 0 {
            self.json = output.json;
        } else {
            self.json.push_str(&output.json);
        }
        self.starts.extend(output.starts.iter().map(|at| at + start));
        self.elements.extend(output.elements.iter().map(|element| ArrayElement {
            hash: element_hashes::hash_element(&element.text),
            tokens: element.tokens,
            entry: element.entry + entry,
            message: element.message + message,
            is_synthetic: element.is_synthetic,
        }));
        self.notes.extend(output.notes, entry);
        self.ids.extend(output.ids.iter().map(|(id, at)| (*id, at + entry)));
        self.pairs.extend(output.pairs.iter().map(|(call, at)| (call + entry, at + entry)));
    }

    /// Returns the hash chain over the elements before the array, which is `start`, and all
    /// elements of the array.
    pub(super) fn extend_chain(&mut self, start: [u8; 32]) -> [u8; 32] {
        if self.chain_start != start {
            (self.chain_start, self.chain) = (start, Vec::new());
        }
        let mut last = self.chain.last().copied().unwrap_or(start);
        for element in self.elements.iter().skip(self.chain.len()) {
            last = element_chain::append_hash(&last, &element.hash);
            self.chain.push(last);
        }
        last
    }

    /// Validates the messages that did not yet pass validation; `false`: the provider would refuse
    /// the array.
    pub(super) fn is_accepted(&mut self, dialect: Dialect) -> bool {
        let from = self.accepted_messages;
        if from == self.starts.len() {
            return true;
        }
        let last = from.checked_sub(1).and_then(|last| self.message_json(last));
        let start = self.starts.get(from).copied().unwrap_or_default();
        let rest = alloc::format!("[{}]", self.json.get(start..).unwrap_or_default());
        let messages: Vec<JsonValue> =
            json::list_elements(&rest, json::ByteSpan::from_range(0, rest.len()));
        if validate::check_after(dialect, last, &rest, &messages).list.is_empty() {
            self.accepted_messages = self.starts.len();
            return true;
        }
        false
    }
}

/// Returns the beginning of a message before the first `[`, which starts its list of blocks.
fn role_prefix(message: &str) -> &str {
    message.split_once('[').map_or(message, |(role, _)| role)
}
