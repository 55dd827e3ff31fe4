//! Files are looked through one after another, until one query has read enough.
//!
//! In: the messages that have payloads, in order. Out: passages, and where to go on. Not here:
//! which messages these are.

use crate::storage::pack::Placed;
use alloc::{string::String, vec::Vec};

use super::{super::Answered, Holder, Start};
use crate::{
    search::{
        grep::{Place, too_costly},
        passages::{Begin, Passage, Passages, Wanted},
    },
    storage::{codec, file_range, history::History, store_session::Reader},
};
use lcm_text::{
    base::{error::Result, int, sort},
    message::large_payload::{self, File, Mark},
};

/// Bytes of payloads, as they are written, that one query looks through: as many as those of
/// messages for an expression.
const BYTES_MAX: u64 = 3 << 20;
/// Bytes that looking for the payloads of a message and reading a record count as.
const MESSAGE_BYTES: u64 = 4 << 10;
const RECORD_BYTES: u64 = 1 << 10;
/// Messages whose payloads are looked up together, and records that are read together.
const MESSAGES_PER_STEP: usize = 16;
const RECORDS_PER_READ: usize = 64;
/// Bytes before the one to begin at that are read with it, as far as a mark allows: what a match
/// is seen with.
const SEEN_BYTES: u64 = 1 << 10;

/// A passage of a file.
pub(super) struct Hit {
    pub(super) place: usize,
    pub(super) placed: Placed,
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) name: Option<String>,
    pub(super) passage: Passage,
    pub(super) rank: u64,
}

/// Looks through files until one query has read enough.
pub(super) struct Scan<'q> {
    wanted: Wanted<'q>,
    /// The files that were named.
    named: Option<Vec<[u8; 8]>>,
    /// Where to begin, until the search is there.
    start: Option<Start>,
    /// The messages that fit, in order, and how many of them earlier searches looked through.
    holders: &'q [Holder],
    begin: usize,
    /// All that fit, by conversation and seq, ascending.
    fitting: Vec<(usize, u64)>,
    /// Of conversations whose earlier messages had to be known, what these name.
    known: Vec<usize>,
    named_before: Vec<(usize, u64, [u8; 8])>,
    /// Files whose newest message does not fit and that were looked through.
    seen: Vec<(usize, [u8; 8])>,
    /// Bytes that may still be read.
    left: u64,
    /// No file was looked through yet, so that the first one may take all that a query may.
    is_first: bool,
    pub(super) hits: Vec<Hit>,
}

/// A message with the ids of its payloads.
struct Step<'p> {
    holder: Holder,
    placed: &'p Placed,
    ids: Vec<[u8; 8]>,
}

impl<'q> Scan<'q> {
    pub(super) fn new(
        wanted: Wanted<'q>,
        named: Option<Vec<[u8; 8]>>,
        start: Option<Start>,
        holders: &'q [Holder],
        begin: usize,
    ) -> Self {
        let mut fitting: Vec<(usize, u64)> =
            holders.iter().map(|one| (one.place, one.seq)).collect();
        sort::sort(&mut fitting);
        Self {
            wanted,
            named,
            start,
            holders,
            begin,
            fitting,
            known: Vec::new(),
            named_before: Vec::new(),
            seen: Vec::new(),
            left: BYTES_MAX,
            is_first: true,
            hits: Vec::new(),
        }
    }

    /// Looks through the files of the messages from the beginning on, and says in the answer where
    /// it ended.
    pub(super) fn run(
        &mut self,
        reader: &mut Reader<'_>,
        places: &[Place],
        answered: &mut Answered,
    ) -> Result<()> {
        let mut holders = self.holders.get(self.begin..).unwrap_or_default();
        let mut is_begun = false;
        while let Some(first) = holders.first() {
            let Some(place) = places.get(first.place) else { break };
            if self.left == 0 && is_begun {
                let id = place.keys.message_name(first.seq);
                answered.unscanned_from = Some((id, 0));
                return Ok(());
            }
            is_begun = true;
            place.enter(reader);
            let history = History { keys: &place.keys, head: &place.loaded.head };
            let count = holders.iter().take_while(|one| one.place == first.place).count();
            let now = holders.get(..count.min(MESSAGES_PER_STEP)).unwrap_or_default();
            let mut seqs: Vec<u64> = now.iter().map(|one| one.seq).collect();
            sort::numbers(&mut seqs);
            let placed = history.scattered(reader, &seqs)?;
            let steps = self.steps(reader, &history, now, &placed, answered)?;
            holders = holders.get(steps.len().max(1)..).unwrap_or_default();
            if self.files(reader, &history, &steps, answered)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The ids that the first of these messages show, at least of one.
    fn steps<'p>(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        holders: &[Holder],
        placed: &'p [Placed],
        answered: &mut Answered,
    ) -> Result<Vec<Step<'p>>> {
        let mut steps = Vec::new();
        for holder in holders {
            if self.left == 0 && !steps.is_empty() {
                break;
            }
            let at = placed.binary_search_by_key(&holder.seq, |placed| placed.seq).ok();
            let Some(placed) = at.and_then(|at| placed.get(at)) else { break };
            let shown = history.shown(reader, &placed.stored)?;
            let mut ids = large_payload::ids_in(&shown);
            // There may be more in it.
            answered.more |= ids.len() == large_payload::IDS_MAX;
            if let Some(named) = &self.named {
                ids.retain(|id| named.contains(id));
            }
            let cost = MESSAGE_BYTES + int::to_u64(shown.len() + ids.len());
            self.left = self.left.saturating_sub(cost);
            steps.push(Step { holder: *holder, placed, ids });
        }
        Ok(steps)
    }

    /// Looks through the files of these messages; `true`: the search has ended.
    fn files(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        steps: &[Step<'_>],
        answered: &mut Answered,
    ) -> Result<bool> {
        let ids = |step: &Step<'_>| step.ids.clone();
        let all: Vec<[u8; 8]> = steps.iter().flat_map(ids).collect();
        let mut files = Vec::new();
        for ids in all.chunks(RECORDS_PER_READ) {
            let keys: Vec<String> = ids.iter().map(|id| history.keys.file(*id)).collect();
            for (key, value) in keys.iter().zip(reader.fresh(&keys)?) {
                files.push(value.map(|value| codec::decode::<File>(key, &value)).transpose()?);
            }
        }
        let mut files = files.into_iter();
        for step in steps {
            for (id, file) in step.ids.iter().zip(files.by_ref()) {
                let Some(file) = file else { continue };
                if !self.is_shown_by(reader, history, &step.holder, *id, &file)? {
                    continue;
                }
                let Some(from) = self.begins(&step.holder, *id) else { continue };
                let (next, more) = self.file(reader, history, step, *id, &file, from)?;
                answered.more |= more;
                if let Some(byte) = next {
                    answered.unscanned_from = Some((large_payload::name(*id), byte));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a message is the newest of those that fit that has the file.
    ///
    /// Its record names the newest of all, so that others are only looked at where that one does
    /// not fit: is not covered, or too new.
    fn is_shown_by(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        holder: &Holder,
        id: [u8; 8],
        file: &File,
    ) -> Result<bool> {
        file_range::must_be_known(reader, history, id, file)?;
        if file.seq <= holder.seq
            || self.fitting.binary_search(&(holder.place, file.seq)).is_ok()
            || !file_range::has(reader, history, holder.seq, id)?
        {
            return Ok(file.seq == holder.seq);
        }
        if !self.known.contains(&holder.place) {
            self.known.push(holder.place);
            let earlier = self.holders.get(..self.begin).unwrap_or_default();
            let of_place = earlier.iter().rev().filter(|one| one.place == holder.place);
            let seqs: Vec<u64> = of_place.map(|one| one.seq).collect();
            file_range::each_mention(reader, history, &seqs, &mut |seq, ids| {
                self.named_before.extend(ids.into_iter().map(|id| (holder.place, seq, id)));
            })?;
        }
        let one = (holder.place, id);
        if self.seen.contains(&one) {
            return Ok(false);
        }
        self.seen.push(one);
        for (_, seq, _) in self.named_before.iter().filter(|named| (named.0, named.2) == one) {
            if file_range::has(reader, history, *seq, id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The byte from which on a file is to be searched; `None`: it comes before the beginning.
    fn begins(&mut self, holder: &Holder, id: [u8; 8]) -> Option<u64> {
        let Some(start) = self.start else { return Some(0) };
        let is_there = (start.place, start.seq) == (holder.place, holder.seq);
        if is_there && start.id.is_some_and(|known| known != id) {
            return None;
        }
        self.start = None;
        Some(if is_there { start.byte } else { 0 })
    }

    /// Looks through a file from a byte on; returns where in it to go on, if it was not looked
    /// through, and whether it has more passages than count.
    fn file(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        step: &Step<'_>,
        id: [u8; 8],
        file: &File,
        search: u64,
    ) -> Result<(Option<u64>, bool)> {
        let may = if self.is_first { BYTES_MAX } else { self.left };
        if may == 0 {
            return Ok((Some(search), false));
        }
        let is_before = |mark: &&Mark| u64::from(mark.bytes) + SEEN_BYTES <= search;
        let marks = file.place.marks.iter().take_while(is_before);
        let mark = marks.last().copied().unwrap_or_default();
        let start = u64::from(file.place.start);
        let from = start + u64::from(mark.at);
        let end = start + u64::from(file.place.length);
        let to = end.min(from + may);
        // Its record says where it stands in the newest message, whose text is read.
        for placed in history.scattered(reader, &[file.seq])? {
            history.fetch_range(reader, &placed.stored.raw, (from, to))?;
        }
        let begin = Begin {
            byte: u64::from(mark.bytes),
            line_ends: u64::from(mark.line_ends),
            search,
            is_json: !file.place.is_text,
        };
        let mut passages = Passages::new(&mut self.wanted, begin);
        let (read, is_complete) =
            file_range::each_text(reader, history, file, mark, may, &mut |text| {
                passages.take(text)
            })?;
        let ended = passages.end(is_complete);
        if let Wanted::Regex(regex) = &self.wanted
            && regex.is_refused()
            && self.is_first
            && ended.passages.is_empty()
            && ended.next == Some(search)
        {
            return Err(too_costly());
        }
        self.left = self.left.saturating_sub(read + RECORD_BYTES);
        self.is_first = false;
        let kind = file.kind.as_str();
        self.hits.extend(ended.passages.into_iter().map(|passage| {
            let (place, placed) = (step.holder.place, step.placed.clone());
            let (id, name) = (large_payload::name(id), file.name.clone());
            Hit { place, placed, id, kind, name, passage, rank: 0 }
        }));
        Ok((ended.next, ended.more))
    }
}
