//! Arrays for providers that were rendered before, kept to be gone on with.
//!
//! In: the chosen messages and summaries in order. Out: the array, as if nothing had been kept. Two
//! assemblies of a conversation share nearly all of their beginning; what they share is cut at the
//! last place where nothing before it depends on what follows, and only the rest is rendered.
//! Whatever rendering goes by is compared, so that what is kept need not be believed.

use alloc::{string::String, vec::Vec};

use super::{
    dialect::{self, EntryOrigin, RenderEntry, RenderNote, RenderNotes},
    element_hashes, prefix,
};
use lcm_text::{
    base::{
        json::{self, JsonValue},
        sort,
    },
    message::validate,
    types::api::Dialect,
};

/// Bytes of arrays that are kept: what a budget of a million tokens holds.
const ARRAYS_BYTES_MAX: usize = 4 << 20;
/// Places where an array is tried to be cut. Each renders what is behind it once more, so that
/// after a few it is cheaper to render all.
const CUTS_MAX: usize = 3;
/// Arrays that are kept, of one conversation or several: until one fits the budget, an assembly may
/// render more than one.
const CACHED_ARRAYS_MAX: usize = 8;

/// The arrays of the last assemblies.
#[derive(Debug, Default)]
pub(crate) struct RenderedArrays {
    /// Key root of the conversation that is assembled.
    root: String,
    /// The one used last stands last.
    arrays: Vec<ProviderArray>,
    /// How many of the last are of this assembly.
    current_count: usize,
}

/// One array for a provider.
#[derive(Debug, Default)]
pub(super) struct ProviderArray {
    /// Key root of its conversation.
    root: String,
    dialect: Option<Dialect>,
    pub(super) entries: Vec<RenderEntry>,
    /// The messages with commas between, without the brackets.
    pub(super) json: String,
    /// Where each message begins in it.
    pub(super) starts: Vec<usize>,
    pub(super) elements: Vec<ArrayElement>,
    pub(super) notes: RenderNotes,
    /// Hashes of ids, each with the index of its entry.
    ids: Vec<(u64, usize)>,
    /// Entries of a call and of its answer, where they differ.
    pairs: Vec<(usize, usize)>,
    /// Where the first mark for a cache is; past the end: there is none.
    first_cache_mark: usize,
    /// What was before the elements, and the hash of all up to each of them.
    chain_start: [u8; 32],
    chain: Vec<[u8; 32]>,
    /// Messages of the beginning that the provider takes, whatever follows.
    accepted_messages: usize,
}

/// What one entry became in one message.
#[derive(Debug)]
pub(super) struct ArrayElement {
    pub(super) hash: [u8; 32],
    pub(super) tokens: u64,
    /// Index of the entry.
    pub(super) entry: usize,
    /// Index of the message.
    pub(super) message: usize,
    /// Whether it is a turn that nobody said.
    pub(super) is_synthetic: bool,
}

/// Where an array can be cut: the first of these that are not kept.
#[derive(Clone, Copy)]
struct ArrayCut {
    entry: usize,
    message: usize,
    element: usize,
}

impl RenderedArrays {
    /// Begins an assembly of a conversation.
    pub(super) fn begin_assembly(&mut self, root: &str) {
        (self.root, self.current_count) = (root.into(), 0);
    }

    /// A summary that was rendered, by its id and the size of its record.
    pub(super) fn find_summary(&self, origin: EntryOrigin) -> Option<RenderEntry> {
        let own = self.arrays.iter().rev().filter(|kept| kept.root == self.root);
        // The summaries are the first, or nearly.
        own.flat_map(|kept| &kept.entries).find(|entry| entry.origin == origin).cloned()
    }

    /// Renders entries, and takes what was kept of them.
    pub(super) fn render(&mut self, dialect: Dialect, entries: Vec<RenderEntry>) -> ProviderArray {
        let others = self.arrays.len().saturating_sub(self.current_count);
        let mut best: Option<(usize, usize)> = None;
        for (at, kept) in self.arrays.iter().enumerate().take(others) {
            if kept.root != self.root {
                continue;
            }
            let equal = kept.count_equal_entries(dialect, &entries);
            if equal * 2 > entries.len() && best.is_none_or(|(_, most)| equal > most) {
                best = Some((at, equal));
            }
        }
        if let Some((at, equal)) = best {
            let mut kept = self.arrays.remove(at);
            if kept.extend_to(dialect, &entries, equal) {
                kept.entries = entries;
                return kept;
            }
        }
        let mut rendering = ProviderArray {
            root: self.root.clone(),
            dialect: Some(dialect),
            ..ProviderArray::default()
        };
        rendering.append_output(dialect::render(dialect, &entries, false), 0);
        rendering.entries = entries;
        rendering
    }

    /// Keeps an array that was rendered in this assembly.
    pub(super) fn store_array(&mut self, rendering: ProviderArray) {
        self.arrays.push(rendering);
        self.current_count += 1;
        let bytes = |list: &[ProviderArray]| list.iter().map(|kept| kept.json.len()).sum::<usize>();
        while self.arrays.len() > CACHED_ARRAYS_MAX || bytes(&self.arrays) > ARRAYS_BYTES_MAX {
            self.arrays.remove(0);
        }
        self.current_count = self.current_count.min(self.arrays.len());
    }
}

impl ProviderArray {
    /// How many of the first entries are those of this array.
    fn count_equal_entries(&self, dialect: Dialect, entries: &[RenderEntry]) -> usize {
        if self.dialect != Some(dialect) {
            return 0;
        }
        self.entries.iter().zip(entries).take_while(|(one, other)| one.is_same(other)).count()
    }

    /// Becomes the array of these entries, of which the first are its own; `false`: it has to be
    /// rendered anew.
    fn extend_to(&mut self, dialect: Dialect, entries: &[RenderEntry], mut equal: usize) -> bool {
        if equal == entries.len() && equal == self.entries.len() {
            return true;
        }
        for _ in 0..CUTS_MAX {
            let Some(cut) = self.find_cut(equal) else { return false };
            let rest = entries.get(cut.entry..).unwrap_or_default();
            let output = dialect::render(dialect, rest, true);
            if self.can_append(dialect, cut, &output) {
                self.replace_after(cut, output);
                return true;
            }
            equal = cut.entry;
        }
        false
    }

    /// Whether what entries became without those before a cut is what they become with them.
    fn can_append(&self, dialect: Dialect, cut: ArrayCut, output: &dialect::RenderOutput) -> bool {
        let merges = || {
            let last = self.message_json(cut.message - 1).map(role_prefix).unwrap_or_default();
            let is_same = output.json.starts_with(last);
            is_same && (dialect == Dialect::Anthropic || last.contains("\"model\""))
        };
        !output.json.is_empty()
            && output.is_independent
            // A provider counts its marks from the newest on.
            && self.first_cache_mark >= self.end_offset(cut)
            && self.has_whole_pairs(cut)
            && !(dialect == Dialect::OpenaiResponses && self.has_lost_reasoning(cut))
            && !self.has_shared_ids(cut, &output.ids)
            && !(matches!(dialect, Dialect::Anthropic | Dialect::Gemini) && merges())
    }

    /// Where what is kept ends.
    fn end_offset(&self, cut: ArrayCut) -> usize {
        self.starts.get(cut.message).map_or(self.json.len(), |start| start - 1)
    }

    /// Puts this behind what is kept.
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

    /// The last place up to which this array stays if its first `equal` entries do: behind a
    /// message whose entries and all before them are in no later one.
    fn find_cut(&self, equal: usize) -> Option<ArrayCut> {
        // The greatest entry before each element.
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

    /// Whether an item of reasoning before a cut was left out: what follows it goes without its id.
    fn has_lost_reasoning(&self, cut: ArrayCut) -> bool {
        let is_own = |at: usize| {
            let origin = self.entries.get(at).map(|entry| entry.origin);
            matches!(origin, Some(EntryOrigin::Message { dialect: Dialect::OpenaiResponses, .. }))
        };
        self.notes.has_note(RenderNote::ReasoningLeftOut, &|at| at < cut.entry && is_own(at))
    }

    /// Whether each call is on the same side of a cut as its answer: one that stayed alone would
    /// have none, for what goes may not come again.
    fn has_whole_pairs(&self, cut: ArrayCut) -> bool {
        self.pairs.iter().all(|(call, answer)| (*call < cut.entry) == (*answer < cut.entry))
    }

    /// Whether what is kept has an id in common with what follows, or had with what goes.
    fn has_shared_ids(&self, cut: ArrayCut, rest: &[(u64, usize)]) -> bool {
        let goes = self.ids.iter().filter(|(_, entry)| *entry >= cut.entry);
        let mut ids: Vec<u64> = rest.iter().chain(goes).map(|(id, _)| *id).collect();
        sort::sort_and_dedup_numbers(&mut ids);
        let mut kept = self.ids.iter().filter(|(_, entry)| *entry < cut.entry);
        kept.any(|(id, _)| ids.binary_search(id).is_ok())
    }

    /// The JSON of a message.
    pub(super) fn message_json(&self, at: usize) -> Option<&str> {
        let end = self.starts.get(at + 1).map_or(self.json.len(), |next| next - 1);
        self.json.get(*self.starts.get(at)?..end)
    }

    /// Adds what entries from this index on became.
    fn append_output(&mut self, output: dialect::RenderOutput, entry: usize) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        let (start, message) = (self.json.len(), self.starts.len());
        if self.first_cache_mark >= start {
            // Also those that an array with more and newer ones has no room for.
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

    /// The hash of all elements behind those of this hash, see [`prefix`].
    pub(super) fn extend_chain(&mut self, start: [u8; 32]) -> [u8; 32] {
        if self.chain_start != start {
            (self.chain_start, self.chain) = (start, Vec::new());
        }
        let mut last = self.chain.last().copied().unwrap_or(start);
        for element in self.elements.iter().skip(self.chain.len()) {
            last = prefix::chain_next(&last, &element.hash);
            self.chain.push(last);
        }
        last
    }

    /// Whether the provider takes what is new of the array, as it takes the rest.
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

/// What a message begins with, where that is its role.
fn role_prefix(message: &str) -> &str {
    message.split_once('[').map_or(message, |(role, _)| role)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use lcm_text::message::parse;

    fn entry(seq: u64, dialect: Dialect, raw: &str) -> RenderEntry {
        let message = parse(dialect, raw).unwrap();
        let origin = EntryOrigin::Message { dialect, role: message.role };
        let text = dialect::EntryText::Own(raw.into(), message.parts.into());
        RenderEntry { index: 0, seq, origin, text }
    }

    fn entries(dialect: Dialect, raws: &[String]) -> Vec<RenderEntry> {
        (1..).zip(raws).map(|(seq, raw)| entry(seq, dialect, raw)).collect()
    }

    /// Renders the first messages, then all; whether the second time went on with the first, which
    /// changes nothing.
    fn goes_on(dialect: Dialect, raws: &[String], first: usize) -> bool {
        let all = entries(dialect, raws);
        let mut known = RenderedArrays::default();
        let mut kept = known.render(dialect, all[..first].to_vec());
        kept.is_accepted(dialect);
        kept.extend_chain([7; 32]);
        let went_on = kept.extend_to(dialect, &all, first);
        known.arrays.push(kept);
        if went_on {
            known.arrays[0].entries = all.clone();
        }
        let mut again = known.render(dialect, all.clone());
        let mut fresh = RenderedArrays::default().render(dialect, all);
        assert_eq!(again.json, fresh.json, "{dialect:?}");
        assert_eq!(again.extend_chain([7; 32]), fresh.extend_chain([7; 32]));
        assert_eq!(again.starts, fresh.starts);
        assert_eq!(
            again.notes.format_warnings(&again.entries),
            fresh.notes.format_warnings(&fresh.entries)
        );
        assert_eq!(again.is_accepted(dialect), fresh.is_accepted(dialect));
        went_on
    }

    fn said(role: &str, text: &str) -> String {
        format!(r#"{{"role":"{role}","content":"{text}"}}"#)
    }

    /// An agent at work: a question, then calls with their results.
    fn work(calls: usize) -> Vec<String> {
        let mut out = Vec::from([said("user", "q")]);
        for number in 0..calls {
            out.push(format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_call","id":"call_{number:016}",
                    "name":"n","input":{{}}}}]}}"#
            ));
            out.push(format!(
                r#"{{"role":"tool","content":[{{"type":"tool_result","output":"r{number}",
                    "call_id":"call_{number:016}"}}]}}"#
            ));
        }
        out
    }

    const PROVIDERS: [Dialect; 4] =
        [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Gemini];

    /// Goal: what an agent adds is all that is rendered, also in the middle of its work.
    #[test]
    fn what_was_rendered_is_gone_on_with() {
        let raws = work(20);
        for dialect in PROVIDERS {
            for first in 5..raws.len() {
                let all = entries(Dialect::Lcm, &raws);
                let mut kept = RenderedArrays::default().render(dialect, all[..first].to_vec());
                let cut = kept.find_cut(first).unwrap();
                assert!(cut.entry + 3 >= first, "{dialect:?}: {} of {first}", cut.entry);
                assert!(kept.extend_to(dialect, &all, first), "{dialect:?} {first}");
                let fresh = RenderedArrays::default().render(dialect, all);
                assert_eq!(kept.json, fresh.json);
            }
        }
    }

    /// Goal: a result far behind its call changes the array there.
    #[test]
    fn what_has_an_id_in_common_is_rendered_together() {
        let mut raws = work(12);
        let late = raws.remove(4);
        raws.push(late);
        raws.push(said("user", "q"));
        let all = entries(Dialect::Lcm, &raws);
        for dialect in PROVIDERS {
            let first = raws.len() - 2;
            let mut kept = RenderedArrays::default().render(dialect, all[..first].to_vec());
            assert!(!kept.extend_to(dialect, &all, first), "{dialect:?}");
        }
    }

    /// Goal: a result that goes again, as a live one does, leaves its call with the mark that there
    /// is none, wherever it stood. Method: results with and without an id, one or two calls before
    /// them, in every dialect; another message takes the place of the last result.
    #[test]
    fn a_result_that_goes_leaves_its_call_answered() {
        let call = |id: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_call",{id}"name":"n","input":{{}}}}]}}"#
            )
        };
        let result = |id: &str| {
            format!(r#"{{"role":"tool","content":[{{"type":"tool_result",{id}"output":"late"}}]}}"#)
        };
        let named = (r#""id":"call-1","#, r#""call_id":"call-1","#);
        let other = (r#""id":"call-2","#, r#""call_id":"call-2","#);
        let two = [call(named.0), call(other.0), result(other.1), result(named.1)].to_vec();
        let mut cases = Vec::from([two]);
        for (id, call_id) in [named, ("", "")] {
            cases.push([call(id), said("assistant", "w"), result(call_id)].to_vec());
            cases.push([call(id), result(call_id)].to_vec());
        }
        for dialect in PROVIDERS {
            for case in &cases {
                let with: Vec<String> = work(6).into_iter().chain(case.iter().cloned()).collect();
                let mut without = with.clone();
                without.pop();
                without.push(said("user", "z"));
                let mut known = RenderedArrays::default();
                let mut kept = known.render(dialect, entries(Dialect::Lcm, &with));
                assert!(kept.is_accepted(dialect));
                known.arrays.push(kept);
                let mut again = known.render(dialect, entries(Dialect::Lcm, &without));
                let fresh =
                    RenderedArrays::default().render(dialect, entries(Dialect::Lcm, &without));
                assert_eq!(again.json, fresh.json, "{dialect:?}");
                assert!(again.is_accepted(dialect));
            }
        }
    }

    /// Goal: the newest marks for a cache stay, which is no matter of the newest messages alone.
    #[test]
    fn marks_for_a_cache_are_counted_over_all() {
        let marked = |number: usize| {
            let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
            format!(
                r#"{{"role":"{role}","content":[{{"type":"text","text":"t{number}",
                    "cache_control":{{"type":"ephemeral"}}}}]}}"#
            )
        };
        let raws: Vec<String> = (0..9).map(marked).collect();
        assert!(!goes_on(Dialect::Anthropic, &raws, 7));
        let few: Vec<String> = (0..9)
            .map(|at| if at < 7 { said(["user", "assistant"][at % 2], "t") } else { marked(at) })
            .collect();
        assert!(goes_on(Dialect::Anthropic, &few, 8));
    }

    /// Goal: a call that the provider still has to answer goes when something stands behind it,
    /// and then nothing may be left behind the cut.
    #[test]
    fn what_goes_leaves_nothing_behind() {
        let mut raws = Vec::from([said("user", "q"), said("assistant", "a"), said("user", "r")]);
        raws.push(
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1",
                "name":"web_search","input":{}}]}"#
                .into(),
        );
        raws.push(r#"{"role":"user","content":[]}"#.into());
        goes_on(Dialect::Anthropic, &raws, 4);
    }
}
