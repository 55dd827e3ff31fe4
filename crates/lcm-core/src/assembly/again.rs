//! Arrays for providers that were rendered before, kept to be gone on with.
//!
//! In: the chosen messages and summaries in order. Out: the array, as if nothing had been kept. Two
//! assemblies of a conversation share nearly all of their beginning; what they share is cut at the
//! last place where nothing before it depends on what follows, and only the rest is rendered.
//! Whatever rendering goes by is compared, so that what is kept need not be believed.

use alloc::{string::String, vec::Vec};

use super::{
    dialect::{self, Entry, Notes, Origin},
    marks, prefix,
};
use crate::{
    api::Dialect,
    json::{self, Value},
    message, order, validate,
};

/// Bytes of arrays that are kept: what a budget of a million tokens holds.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Places where an array is tried to be cut.
const CUTS_MAX: usize = 3;
/// Arrays that are kept: until one fits the budget, an assembly may render several.
const KEPT_MAX: usize = 6;

/// The arrays of the last assemblies of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Renderings {
    /// Key root of the conversation.
    root: String,
    /// The one used last stands last.
    list: Vec<Rendering>,
    /// How many of the last are of this assembly.
    own: usize,
}

/// One array for a provider.
#[derive(Debug, Default)]
pub(super) struct Rendering {
    dialect: Option<Dialect>,
    pub(super) entries: Vec<Entry>,
    /// The messages with commas between, without the brackets.
    pub(super) json: String,
    /// Where each message begins in it.
    pub(super) starts: Vec<usize>,
    pub(super) elements: Vec<Element>,
    pub(super) notes: Notes,
    /// Hashes of ids, each with the index of its entry.
    ids: Vec<(u64, usize)>,
    /// Where the first mark for a cache is; past the end: there is none.
    marked: usize,
    /// What was before the elements, and the hash of all up to each of them.
    chain_start: [u8; 32],
    chain: Vec<[u8; 32]>,
    /// Messages of the beginning that the provider takes, whatever follows.
    accepted: usize,
}

/// What one entry became in one message.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) hash: [u8; 32],
    pub(super) tokens: u64,
    /// Index of the entry.
    pub(super) entry: usize,
    /// Index of the message.
    pub(super) message: usize,
}

/// Where an array can be cut: the first of these that are not kept.
#[derive(Clone, Copy)]
struct Cut {
    entry: usize,
    message: usize,
    element: usize,
}

impl Renderings {
    /// Begins an assembly of a conversation.
    pub(super) fn begin(&mut self, root: &str) {
        if self.root != root {
            (self.root, self.list) = (root.into(), Vec::new());
        }
        self.own = 0;
    }

    /// A summary that was rendered, by its id and the size of its record.
    pub(super) fn summary(&self, origin: Origin) -> Option<Entry> {
        // The summaries are the first, or nearly.
        let all = self.list.iter().rev().flat_map(|kept| &kept.entries);
        all.into_iter().find(|entry| entry.origin == origin).cloned()
    }

    /// Renders entries, and takes what was kept of them.
    pub(super) fn render(&mut self, dialect: Dialect, entries: Vec<Entry>) -> Rendering {
        let others = self.list.len().saturating_sub(self.own);
        let mut best: Option<(usize, usize)> = None;
        for (at, kept) in self.list.iter().enumerate().take(others) {
            let common = kept.common(dialect, &entries);
            if common * 2 > entries.len() && best.is_none_or(|(_, most)| common > most) {
                best = Some((at, common));
            }
        }
        if let Some((at, common)) = best {
            let mut kept = self.list.remove(at);
            if kept.go_on(dialect, &entries, common) {
                kept.entries = entries;
                return kept;
            }
        }
        let mut rendering = Rendering { dialect: Some(dialect), ..Rendering::default() };
        rendering.push(dialect::render(dialect, &entries, false), 0);
        rendering.entries = entries;
        rendering
    }

    /// Keeps an array that was rendered in this assembly.
    pub(super) fn keep(&mut self, rendering: Rendering) {
        self.list.push(rendering);
        self.own += 1;
        let bytes = |list: &[Rendering]| list.iter().map(|kept| kept.json.len()).sum::<usize>();
        while self.list.len() > KEPT_MAX || bytes(&self.list) > KEPT_BYTES_MAX {
            self.list.remove(0);
        }
        self.own = self.own.min(self.list.len());
    }
}

impl Rendering {
    /// How many of the first entries are those of this array.
    fn common(&self, dialect: Dialect, entries: &[Entry]) -> usize {
        if self.dialect != Some(dialect) {
            return 0;
        }
        self.entries.iter().zip(entries).take_while(|(one, other)| one.is_same(other)).count()
    }

    /// Becomes the array of these entries, of which the first are its own; `false`: it has to be
    /// rendered anew.
    fn go_on(&mut self, dialect: Dialect, entries: &[Entry], common: usize) -> bool {
        if common == entries.len() && common == self.entries.len() {
            return true;
        }
        let mut common = common;
        for _ in 0..CUTS_MAX {
            let Some(cut) = self.cut(common) else { return false };
            let rest = entries.get(cut.entry..).unwrap_or_default();
            let output = dialect::render(dialect, rest, true);
            if self.fits(dialect, cut, &output) {
                self.replace(cut, output);
                return true;
            }
            common = cut.entry;
        }
        false
    }

    /// Whether what entries became without those before a cut is what they become with them.
    fn fits(&self, dialect: Dialect, cut: Cut, output: &dialect::Output) -> bool {
        let merges = || {
            let last = self.message(cut.message - 1).map(role).unwrap_or_default();
            let is_same = output.json.starts_with(last);
            is_same && (dialect == Dialect::Anthropic || last.contains("\"model\""))
        };
        !output.json.is_empty()
            && output.stands_alone
            // A provider counts its marks from the newest on.
            && self.marked >= self.end(cut)
            && !self.shares_ids(cut, &output.ids)
            && !(matches!(dialect, Dialect::Anthropic | Dialect::Gemini) && merges())
    }

    /// Where what is kept ends.
    fn end(&self, cut: Cut) -> usize {
        self.starts.get(cut.message).map_or(self.json.len(), |start| start - 1)
    }

    /// Puts this behind what is kept.
    fn replace(&mut self, cut: Cut, output: dialect::Output) {
        self.json.truncate(self.end(cut));
        self.starts.truncate(cut.message);
        self.elements.truncate(cut.element);
        self.chain.truncate(cut.element);
        self.notes.retain_before(cut.entry);
        self.ids.retain(|(_, entry)| *entry < cut.entry);
        self.accepted = self.accepted.min(cut.message);
        self.push(output, cut.entry);
    }

    /// The last place up to which this array stays if its first `common` entries do: behind a
    /// message whose entries and all before them are in no later one.
    fn cut(&self, common: usize) -> Option<Cut> {
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
            if begins
                && greatest < least
                && least < common
                && !self.entries.get(greatest).is_some_and(is_reasoning)
            {
                return Some(Cut { entry: least, message: element.message, element: at });
            }
        }
        None
    }

    /// Whether what is kept and what follows have an id in common.
    fn shares_ids(&self, cut: Cut, rest: &[(u64, usize)]) -> bool {
        let mut ids: Vec<u64> = rest.iter().map(|(id, _)| *id).collect();
        order::distinct_numbers(&mut ids);
        let mut kept = self.ids.iter().filter(|(_, entry)| *entry < cut.entry);
        kept.any(|(id, _)| ids.binary_search(id).is_ok())
    }

    /// The JSON of a message.
    fn message(&self, at: usize) -> Option<&str> {
        let end = self.starts.get(at + 1).map_or(self.json.len(), |next| next - 1);
        self.json.get(*self.starts.get(at)?..end)
    }

    /// Adds what entries from this index on became.
    fn push(&mut self, output: dialect::Output, entry: usize) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        let (start, message) = (self.json.len(), self.starts.len());
        if self.marked >= start {
            self.marked = output.json.find("cache_control").map_or(usize::MAX, |at| at + start);
        }
        if start == 0 {
            self.json = output.json;
        } else {
            self.json.push_str(&output.json);
        }
        self.starts.extend(output.starts.iter().map(|at| at + start));
        self.elements.extend(output.elements.iter().map(|element| Element {
            hash: marks::hash(&element.text),
            tokens: element.tokens,
            entry: element.entry + entry,
            message: element.message + message,
        }));
        self.notes.extend(output.notes, entry);
        self.ids.extend(output.ids.iter().map(|(id, at)| (*id, at + entry)));
    }

    /// The hash of all elements behind those of this hash, see [`prefix`].
    pub(super) fn chain(&mut self, start: [u8; 32]) -> [u8; 32] {
        if self.chain_start != start {
            (self.chain_start, self.chain) = (start, Vec::new());
        }
        let mut last = self.chain.last().copied().unwrap_or(start);
        for element in self.elements.iter().skip(self.chain.len()) {
            last = prefix::chained(&last, &element.hash);
            self.chain.push(last);
        }
        last
    }

    /// Whether the provider takes what is new of the array, as it takes the rest.
    pub(super) fn is_accepted(&mut self, dialect: Dialect) -> bool {
        let from = self.accepted;
        if from == self.starts.len() {
            return true;
        }
        let last = from.checked_sub(1).and_then(|last| self.message(last));
        let start = self.starts.get(from).copied().unwrap_or_default();
        let rest = alloc::format!("[{}]", self.json.get(start..).unwrap_or_default());
        let messages: Vec<Value> = json::elements(&rest, json::Span::between(0, rest.len()));
        if validate::check_behind(dialect, last, &rest, &messages).list.is_empty() {
            self.accepted = self.starts.len();
            return true;
        }
        false
    }
}

/// What a message begins with, where that is its role.
fn role(message: &str) -> &str {
    message.split_once('[').map_or(message, |(role, _)| role)
}

/// Whether it must stand before what it led to.
fn is_reasoning(entry: &Entry) -> bool {
    let is_item = matches!(entry.origin, Origin::Message { dialect: Dialect::OpenaiResponses, .. });
    is_item && message::item_kind(entry.raw()) == "reasoning"
}
