//! Neighbours: the messages beside one that was found, as far as a query asks for them.
//!
//! In: hits with what is shown of them. Out: of each message also `before` and `after`, with the
//! beginnings of what the messages there say. Those that a grant does not cover are left out. Not
//! here: what was found.

use crate::storage::pack::Placed;
use alloc::{string::String, vec::Vec};
use core::iter;

use super::{Place, find::Hit, show::Shown};
use crate::{
    search::{Corpus, each_field, snippet},
    storage::{history::History, pack::Raw, records::grants, store_session::Reader},
};
use lcm_text::base::{
    error::{Error, Result},
    json::{Fields, Writer},
    sort, tokens,
};

/// Most neighbours on each side of a message.
pub(crate) const NEIGHBOURS_MAX: u64 = 3;
/// Most characters that are shown of one, so that six of them cost about as much as what was found.
const CHARACTERS_MAX: usize = 80;
/// Bytes of neighbours after which no more are read, and hits whose neighbours are read together.
const BYTES_MAX: u64 = 4 << 20;
const HITS_PER_STEP: usize = 16;

/// How many neighbours on each side a query asks for.
///
/// # Errors
///
/// `invalid-input`: over 3.
pub(super) fn asked(fields: &mut Fields<'_>) -> Result<u64> {
    let count = fields.number_or_none("neighbours").unwrap_or(0);
    if count > NEIGHBOURS_MAX {
        return Err(Error::invalid(format_args!(
            "neighbours: {count} is not from 0 to {NEIGHBOURS_MAX}"
        )));
    }
    Ok(count)
}

/// Adds so many neighbours on each side to what is shown of the messages among the hits; whether
/// some have none because too much would have been read.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn add(
    reader: &mut Reader<'_>,
    places: &[Place],
    hits: &[Hit],
    rows: &mut [Shown],
    count: u64,
) -> Result<bool> {
    let mut left = if count == 0 { 0 } else { BYTES_MAX };
    let mut is_limited = false;
    for (number, place) in places.iter().enumerate() {
        let of_place = |(_, hit): &(usize, &Hit)| {
            hit.place == number && hit.corpus == Corpus::Messages && count > 0
        };
        let found = hits.iter().enumerate().filter(of_place);
        let found: Vec<(usize, u64)> = found.map(|(at, hit)| (at, hit.document)).collect();
        place.enter(reader);
        for found in found.chunks(HITS_PER_STEP) {
            if left == 0 {
                is_limited = true;
                break;
            }
            left = left.saturating_sub(of_some(reader, place, found, rows, count)?);
        }
    }
    Ok(is_limited)
}

/// Adds the neighbours of some hits of a conversation, each the number of its row and its seq;
/// returns how many bytes these have.
fn of_some(
    reader: &mut Reader<'_>,
    place: &Place,
    found: &[(usize, u64)],
    rows: &mut [Shown],
    count: u64,
) -> Result<u64> {
    let beside = |seq: u64| {
        let last = place.loaded.head.messages.min(seq.saturating_add(count));
        let around = seq.saturating_sub(count).max(1)..=last;
        let is_shown =
            |one: &u64| *one != seq && grants::is_within(place.spans.as_deref(), *one, *one);
        around.filter(is_shown).collect::<Vec<u64>>()
    };
    let mut seqs: Vec<u64> = found.iter().flat_map(|(_, seq)| beside(*seq)).collect();
    sort::distinct_numbers(&mut seqs);
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let placed = history.scattered(reader, &seqs)?;
    let shown: Vec<Shown> = placed.iter().map(|placed| neighbour(&history, placed)).collect();
    for (at, seq) in found {
        let Some(row) = rows.get_mut(*at) else { continue };
        let [mut before, mut after] = [Writer::array(), Writer::array()];
        for one in beside(*seq) {
            let Some(shown) = seqs.binary_search(&one).ok().and_then(|at| shown.get(at)) else {
                continue;
            };
            let side = if one < *seq { &mut before } else { &mut after };
            side.push_json(&shown.json);
            row.tokens = row.tokens.saturating_add(shown.tokens);
        }
        let mut with_them = Writer::object();
        with_them.array_at("after", after);
        with_them.array_at("before", before);
        with_them.append(Writer::on(row.json.strip_suffix('}').unwrap_or_default()));
        row.json = with_them.end_object();
    }
    Ok(placed.iter().map(|placed| placed.stored.shown().0.bytes()).sum())
}

/// What is shown of a neighbour: of a large payload the reference, and nothing of a text that is
/// in chunks all the same, which is not worth reading.
fn neighbour(history: &History<'_>, placed: &Placed) -> Shown {
    let (raw, parts) = placed.stored.shown();
    let mut text = String::new();
    if let Raw::Inline(raw) = raw {
        each_field(raw, parts, &mut |_, field| {
            if text.is_empty() {
                text = snippet::shortened(&field, 0, CHARACTERS_MAX, &mut iter::empty()).text;
            }
        });
    }
    let mut w = Writer::object();
    w.time("created_at", placed.stored.time);
    w.text("id", &history.keys.message_name(placed.seq));
    w.text("role", placed.stored.role.as_str());
    w.number("seq", placed.seq);
    w.text("snippet", &text);
    Shown { json: w.end_object(), tokens: tokens::estimate(&text) }
}
