//! Cache of rendered provider arrays, extended incrementally.
//!
//! In: the selected messages and summaries, in order. Out: the array, equal to one rendered without
//! a cache. Two assemblies of a conversation share most of their beginning. A cached array is cut
//! at a place where no message before the cut depends on a message behind the cut, and only the
//! messages behind the cut are rendered. Every input of rendering is compared, so that a stale
//! entry cannot change a result.

use alloc::{rc::Rc, string::String, vec::Vec};

use super::{
    dialect::{self, ArrayPart, EntryOrigin, RenderEntry},
    element_hashes::ElementHashes,
    provider_array::ProviderArray,
};
use lcm_text::types::api::Dialect;

/// Maximum bytes of all cached arrays together: about a budget of a million tokens.
const ARRAYS_BYTES_MAX: usize = 4 << 20;
/// Maximum number of cached arrays, of all conversations together. One assembly may render several
/// arrays until an array fits the budget.
const CACHED_ARRAYS_MAX: usize = 8;

/// Cache that one assembly leaves for the next: element hashes and rendered provider arrays.
#[derive(Debug, Default)]
pub(crate) struct RenderCache {
    /// Generation of the read cache when the entries were made.
    generation: u64,
    /// Element hashes of the last assembly of any conversation.
    pub(super) hashes: Rc<ElementHashes>,
    pub(super) arrays: RenderedArrays,
}

impl RenderCache {
    /// Empties the cache if it has another generation: the read cache was cleared, because the
    /// store had an older or different state than expected.
    pub(super) fn drop_stale(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
    }
}

/// Arrays of the last assemblies for providers.
#[derive(Debug, Default)]
pub(super) struct RenderedArrays {
    /// Key prefix of the conversation that is assembled.
    key_prefix: String,
    /// The arrays, oldest use first.
    arrays: Vec<ProviderArray>,
    /// How many arrays at the end of `arrays` were rendered in this assembly.
    current_count: usize,
}

impl RenderedArrays {
    /// Sets the conversation to assemble. All cached arrays stay, also of other conversations, and
    /// count as arrays of earlier assemblies.
    pub(super) fn begin_assembly(&mut self, key_prefix: &str) {
        (self.key_prefix, self.current_count) = (key_prefix.into(), 0);
    }

    /// Returns the cached entry of a summary of this conversation; `None`: not cached. `origin`: id
    /// and record size of the summary.
    pub(super) fn find_summary(&self, origin: EntryOrigin) -> Option<RenderEntry> {
        let own = self.arrays.iter().rev().filter(|array| array.has_key_prefix(&self.key_prefix));
        // Summaries are among the first entries.
        own.flat_map(|array| &array.entries).find(|entry| entry.origin == origin).cloned()
    }

    /// Renders entries. If arrays of earlier assemblies share more than half of the entries, tries
    /// to extend the array that shares most. This array leaves the cache, even if it cannot be
    /// extended.
    pub(super) fn render(&mut self, dialect: Dialect, entries: Vec<RenderEntry>) -> ProviderArray {
        let earlier = self.arrays.len().saturating_sub(self.current_count);
        let mut best: Option<(usize, usize)> = None;
        for (at, array) in self.arrays.iter().enumerate().take(earlier) {
            if !array.has_key_prefix(&self.key_prefix) {
                continue;
            }
            let equal = array.count_equal_entries(dialect, &entries);
            if equal * 2 > entries.len() && best.is_none_or(|(_, most)| equal > most) {
                best = Some((at, equal));
            }
        }
        if let Some((at, equal)) = best {
            let mut array = self.arrays.remove(at);
            if array.extend_to(dialect, &entries, equal) {
                array.entries = entries;
                return array;
            }
        }
        let mut array = ProviderArray::new(&self.key_prefix, dialect);
        array.append_output(dialect::render(dialect, &entries, ArrayPart::Whole), 0);
        array.entries = entries;
        array
    }

    /// Stores an array that was rendered in this assembly, and removes the oldest arrays over the
    /// limits.
    pub(super) fn store_array(&mut self, array: ProviderArray) {
        self.arrays.push(array);
        self.current_count += 1;
        let bytes =
            |list: &[ProviderArray]| list.iter().map(|array| array.json.len()).sum::<usize>();
        while self.arrays.len() > CACHED_ARRAYS_MAX || bytes(&self.arrays) > ARRAYS_BYTES_MAX {
            self.arrays.remove(0);
        }
        self.current_count = self.current_count.min(self.arrays.len());
    }
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

    /// Renders the first messages, then all, and checks that both ways give the same array; returns
    /// whether the second time extended the first array.
    fn is_extended(dialect: Dialect, raws: &[String], first: usize) -> bool {
        let all = entries(dialect, raws);
        let mut known = RenderedArrays::default();
        let mut kept = known.render(dialect, all[..first].to_vec());
        kept.is_accepted(dialect);
        kept.extend_chain([7; 32]);
        let is_extended = kept.extend_to(dialect, &all, first);
        known.arrays.push(kept);
        if is_extended {
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
        is_extended
    }

    fn text_message(role: &str, text: &str) -> String {
        format!(r#"{{"role":"{role}","content":"{text}"}}"#)
    }

    /// Returns the messages of an agent at work: a question, then calls with their results.
    fn agent_messages(calls: usize) -> Vec<String> {
        let mut out = Vec::from([text_message("user", "q")]);
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

    /// Goal: only new messages are rendered, also between calls and results.
    #[test]
    fn a_rendered_array_is_extended() {
        let raws = agent_messages(20);
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

    /// Goal: a result far behind its call prevents a cut between the two.
    #[test]
    fn entries_with_a_common_id_are_rendered_together() {
        let mut raws = agent_messages(12);
        let late = raws.remove(4);
        raws.push(late);
        raws.push(text_message("user", "q"));
        let all = entries(Dialect::Lcm, &raws);
        for dialect in PROVIDERS {
            let first = raws.len() - 2;
            let mut kept = RenderedArrays::default().render(dialect, all[..first].to_vec());
            assert!(!kept.extend_to(dialect, &all, first), "{dialect:?}");
        }
    }

    /// Goal: a call whose result disappears, as a live result does, gets the placeholder result.
    /// Method: results with and without an id, behind one or two calls, in every dialect; another
    /// message replaces the last result.
    #[test]
    fn a_call_whose_result_disappears_gets_a_placeholder() {
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
            cases.push([call(id), text_message("assistant", "w"), result(call_id)].to_vec());
            cases.push([call(id), result(call_id)].to_vec());
        }
        for dialect in PROVIDERS {
            for case in &cases {
                let with: Vec<String> =
                    agent_messages(6).into_iter().chain(case.iter().cloned()).collect();
                let mut without = with.clone();
                without.pop();
                without.push(text_message("user", "z"));
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

    /// Goal: the limit of cache marks holds over the whole array, not over its new messages.
    #[test]
    fn cache_marks_are_counted_over_the_array() {
        let marked = |number: usize| {
            let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
            format!(
                r#"{{"role":"{role}","content":[{{"type":"text","text":"t{number}",
                    "cache_control":{{"type":"ephemeral"}}}}]}}"#
            )
        };
        let raws: Vec<String> = (0..9).map(marked).collect();
        assert!(!is_extended(Dialect::Anthropic, &raws, 7));
        let few: Vec<String> =
            (0..9)
                .map(|at| {
                    if at < 7 {
                        text_message(["user", "assistant"][at % 2], "t")
                    } else {
                        marked(at)
                    }
                })
                .collect();
        assert!(is_extended(Dialect::Anthropic, &few, 8));
    }

    /// Goal: an open server tool call is omitted once a message follows it. Then no output may
    /// remain behind the cut.
    #[test]
    fn an_omitted_call_leaves_no_output_behind_the_cut() {
        let mut raws = Vec::from([
            text_message("user", "q"),
            text_message("assistant", "a"),
            text_message("user", "r"),
        ]);
        raws.push(
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1",
                "name":"web_search","input":{}}]}"#
                .into(),
        );
        raws.push(r#"{"role":"user","content":[]}"#.into());
        is_extended(Dialect::Anthropic, &raws, 4);
    }
}
