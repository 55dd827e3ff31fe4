//! The evidence for a question: which passages of which conversations, within a cap of tokens.
//!
//! In: what is sought, and summaries that were named. Out: passages with where they stand, so that
//! the same text is made of them again, and by conversation what was used and what was left out.
//! Hits come from [`grep::searched`]; their text from [`super::passage`]. Not here: what a model
//! is asked of them.

use crate::search::grep;
use alloc::{borrow::Cow, string::String, vec::Vec};
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::{
    search::query::{self, TextQuery},
    storage::read_scope::Within,
    storage::{
        head::Loaded, history::History, keys::Keys, store_session::Reader, summary::Summary,
    },
};
use lcm_text::{
    base::{
        error::Result,
        int,
        json::{self, Fields, Writer},
        sort, time, tokens,
    },
    types::api::Timestamp,
};

use super::passage;

/// Conversations that evidence is taken from (behaviour reference, 6.7).
const SHARES_MAX: usize = 3;
/// Hits that are looked at.
const HITS_MAX: u64 = 100;
/// Tokens of one passage: a long message shows what is around its best place.
const PASSAGE_TOKENS_MAX: u32 = 500;
/// Tokens below which nothing more is begun.
const PASSAGE_TOKENS_MIN: u32 = 40;
/// Best messages whose neighbours are shown, too: the answer often follows the question.
const NEIGHBOURS_OF: usize = 4;
/// Messages of a named summary that are read in their order when tokens are left: those that say
/// nothing cost none, and a summary may stand for a hundred thousand.
const REST_MESSAGES_MAX: usize = 256;
/// Summaries among the hits; each may say again what a message says.
const SUMMARIES_MAX: usize = 2;

/// What a passage is of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) enum What {
    Message(u64),
    Summary([u8; 8]),
}

/// A passage.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Passage {
    /// Number of its conversation among the shares.
    pub(super) share: u32,
    pub(super) what: What,
    /// Where in the text of the whole it begins, in bytes.
    pub(super) at: u64,
    pub(super) tokens_max: u32,
}

impl Passage {
    /// The place of its conversation among the shares.
    pub(super) fn place(&self) -> usize {
        int::to_usize(self.share.into())
    }
}

/// What was taken from one conversation.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Share {
    pub(super) conversation: String,
    /// Hits and named summaries.
    pub(super) candidates: u32,
    /// Of them summaries that were named.
    pub(super) named: u32,
    /// Tokens it may have; 0: it was left out.
    pub(super) tokens_max: u32,
    /// Tokens of its passages.
    pub(super) tokens: u32,
}

/// A summary that was named, with its conversation.
pub(super) struct Named {
    pub(super) conversation: String,
    pub(super) id: [u8; 8],
    pub(super) record: Summary,
}

impl Named {
    /// What it stands for: first and last seq in its conversation.
    fn part(&self) -> (&str, u64, u64) {
        (&self.conversation, self.record.seq_first, self.record.seq_last)
    }
}

/// What evidence is gathered for.
pub(super) struct Wanted<'a> {
    pub(super) conversation: &'a str,
    pub(super) sought: &'a str,
    /// Whether it was written as a query, in which signs and filters mean something.
    pub(super) is_query: bool,
    pub(super) named: &'a [Named],
    /// Whether only what named summaries stand for counts.
    pub(super) is_within_named: bool,
    pub(super) tokens_max: u32,
    pub(super) all: bool,
    pub(super) only: bool,
    /// What may be read.
    pub(super) within: Within<'a>,
    pub(super) now: Timestamp,
}

impl Wanted<'_> {
    fn pattern(&self) -> Cow<'_, str> {
        match self.is_query {
            true => Cow::Borrowed(self.sought),
            false => Cow::Owned(query::without_conditions(self.sought)),
        }
    }
}

/// What was gathered.
#[derive(Default)]
pub(super) struct Evidence {
    /// The best first; those without passages last.
    pub(super) shares: Vec<Share>,
    /// In the order of the shares, and in each in that of the conversation.
    pub(super) passages: Vec<Passage>,
    pub(super) tokens: u32,
    /// Whether something that was found was left out, for the cap.
    pub(super) truncated: bool,
}

/// A conversation with what was found in it, the best first.
struct Bucket {
    conversation: String,
    named: Vec<usize>,
    hits: Vec<What>,
    best: usize,
    newest: Timestamp,
}

/// Gathers evidence; `known` is left out, and its shares keep their numbers.
///
/// # Errors
///
/// `not-found`: the conversation; `denied`: the grant has no tokens left; errors of the store.
pub(super) fn gather(
    reader: &mut Reader<'_>,
    wanted: &Wanted<'_>,
    known: (&[Share], &[Passage]),
) -> Result<Evidence> {
    let mut buckets = buckets(reader, wanted)?;
    let mut evidence = Evidence::default();
    for share in known.0 {
        evidence.shares.push(Share { tokens_max: 0, ..share.clone() });
    }
    let used = buckets.len().min(SHARES_MAX);
    let left_out = buckets.split_off(used);
    evidence.truncated = !left_out.is_empty();
    let query = TextQuery::parse(&wanted.pattern());
    let mut spare = 0;
    for (bucket, tokens_max) in buckets.iter().zip(split(wanted.tokens_max, int::to_u32(used))) {
        let at = share_of(&mut evidence.shares, bucket, tokens_max);
        let mut filling = Filling {
            share: int::to_u32(at),
            left: tokens_max.saturating_add(spare),
            known: known.1,
            taken: Vec::new(),
            truncated: false,
        };
        filling.fill(reader, wanted, &query, bucket)?;
        let Filling { left, mut taken, truncated, .. } = filling;
        spare = left;
        sort::sort_by(&mut taken, &mut |a, b| a.0.cmp(&b.0));
        let spent = taken.iter().map(|(.., tokens)| *tokens).sum::<u32>();
        if let Some(share) = evidence.shares.get_mut(at) {
            share.tokens = share.tokens.saturating_add(spent);
        }
        evidence.tokens = evidence.tokens.saturating_add(spent);
        evidence.truncated |= truncated;
        evidence.passages.extend(taken.into_iter().map(|(_, passage, _)| passage));
    }
    for bucket in &left_out {
        share_of(&mut evidence.shares, bucket, 0);
    }
    Ok(evidence)
}

/// Tokens for so many, which differ by at most one, the first having more; of nobody less than one.
///
/// (Behaviour reference, 6.7.)
pub(super) fn split(tokens: u32, among: u32) -> Vec<u32> {
    let among = among.min(tokens);
    let rest = tokens.checked_rem(among).unwrap_or(0);
    let each = tokens.checked_div(among).unwrap_or(0);
    (0..among).map(|number| each + u32::from(number < rest)).collect()
}

/// The number of a bucket's share, which is made if it is not there.
fn share_of(shares: &mut Vec<Share>, bucket: &Bucket, tokens_max: u32) -> usize {
    let candidates = int::to_u32(bucket.hits.len() + bucket.named.len());
    let named = int::to_u32(bucket.named.len());
    let at = shares.iter().position(|share| share.conversation == bucket.conversation);
    let at = at.unwrap_or_else(|| {
        let conversation = bucket.conversation.clone();
        shares.push(Share { conversation, candidates: 0, named: 0, tokens_max: 0, tokens: 0 });
        shares.len() - 1
    });
    if let Some(share) = shares.get_mut(at) {
        share.candidates = share.candidates.max(candidates);
        share.named = share.named.max(named);
        share.tokens_max = share.tokens_max.max(tokens_max);
    }
    at
}

/// What was found, by conversation: those with most named summaries first, then those with the best
/// hit, then the newest.
fn buckets(reader: &mut Reader<'_>, wanted: &Wanted<'_>) -> Result<Vec<Bucket>> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut at = |conversation: &str| -> usize {
        let found = buckets.iter().position(|bucket| bucket.conversation == conversation);
        found.unwrap_or_else(|| {
            buckets.push(Bucket {
                conversation: conversation.into(),
                named: Vec::new(),
                hits: Vec::new(),
                best: usize::MAX,
                newest: 0,
            });
            buckets.len() - 1
        })
    };
    let named: Vec<usize> = wanted.named.iter().map(|named| at(&named.conversation)).collect();
    let hits = hits(reader, wanted)?;
    let places: Vec<usize> = hits.iter().map(|hit| at(&hit.conversation)).collect();
    for (number, (place, named)) in named.into_iter().zip(wanted.named).enumerate() {
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.named.push(number);
            bucket.newest = bucket.newest.max(named.record.latest_at);
        }
    }
    for (rank, (place, hit)) in places.into_iter().zip(hits).enumerate() {
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.hits.push(hit.what);
            bucket.best = bucket.best.min(rank);
            bucket.newest = bucket.newest.max(hit.time);
        }
    }
    sort::sort_by(&mut buckets, &mut |a, b| {
        let key = |one: &Bucket| (Reverse(one.named.len()), one.best, Reverse(one.newest));
        key(a).cmp(&key(b)).then_with(|| a.conversation.cmp(&b.conversation))
    });
    Ok(buckets)
}

/// A hit of the search.
struct Hit {
    conversation: String,
    what: What,
    time: Timestamp,
}

/// The hits, the best first.
fn hits(reader: &mut Reader<'_>, wanted: &Wanted<'_>) -> Result<Vec<Hit>> {
    let mut query = Writer::object();
    query.flag("all", wanted.all);
    query.number("limit", HITS_MAX);
    query.text("mode", "full-text");
    query.flag("only", wanted.only);
    query.text("pattern", &wanted.pattern());
    let query = query.end_object();
    let parts: Vec<(&str, u64, u64)> = wanted.named.iter().map(Named::part).collect();
    let searched = wanted.is_within_named.then_some(parts.as_slice());
    let (conversation, within) = (wanted.conversation, Within { searched, ..wanted.within });
    let found = grep::searched(reader, conversation, &query, within, wanted.now)?.json;
    let mut fields = Fields::of_argument("matches", &found)?;
    let mut hits = Vec::new();
    for one in fields.list("matches") {
        let mut fields = Fields::new(&found, json::members(&found, one.span));
        let conversation = fields.text("conversation");
        let what = match fields.number_or_none("seq") {
            Some(seq) => What::Message(seq),
            None => What::Summary(crate::storage::summary::parse_name(&fields.text("id"))?),
        };
        let time = time::parse(&fields.text("created_at")).unwrap_or(0);
        hits.push(Hit { conversation, what, time });
    }
    Ok(hits)
}

/// A passage with its place in the conversation and its tokens.
type Taken = ((u64, What), Passage, u32);

/// One conversation's passages while they are chosen.
struct Filling<'k> {
    share: u32,
    left: u32,
    known: &'k [Passage],
    taken: Vec<Taken>,
    truncated: bool,
}

impl Filling<'_> {
    fn fill(
        &mut self,
        reader: &mut Reader<'_>,
        wanted: &Wanted<'_>,
        query: &TextQuery,
        bucket: &Bucket,
    ) -> Result<()> {
        let keys = Keys::new(&bucket.conversation)?;
        let loaded = Loaded::of_existing(reader, &keys, &bucket.conversation)?;
        reader.enter(&keys, loaded.head.revision, loaded.bytes.as_deref());
        let history = History { keys: &keys, head: &loaded.head };
        for number in &bucket.named {
            if let Some(named) = wanted.named.get(*number) {
                self.take(reader, &history, What::Summary(named.id), query)?;
            }
        }
        let (mut summaries, mut messages) = (0, Vec::new());
        for hit in &bucket.hits {
            match hit {
                What::Summary(_) if summaries == SUMMARIES_MAX => continue,
                What::Summary(_) => summaries += 1,
                What::Message(seq) => messages.push(*seq),
            }
            self.take(reader, &history, *hit, query)?;
        }
        for seq in messages.into_iter().take(NEIGHBOURS_OF) {
            for near in [seq.saturating_add(1), seq.saturating_sub(1)] {
                let is_stored = (1..=loaded.head.messages).contains(&near);
                if is_stored && wanted.within.covers(&keys, near, near) {
                    self.take(reader, &history, What::Message(near), query)?;
                }
            }
        }
        self.rest(reader, wanted, query, bucket, &history)
    }

    /// What is left for the messages of named summaries in their order.
    fn rest(
        &mut self,
        reader: &mut Reader<'_>,
        wanted: &Wanted<'_>,
        query: &TextQuery,
        bucket: &Bucket,
        history: &History<'_>,
    ) -> Result<()> {
        for number in &bucket.named {
            let Some(named) = wanted.named.get(*number) else { continue };
            for source in named.record.source_refs() {
                self.take(reader, history, What::Summary(source.id), query)?;
            }
            let (_, first, last) = named.part();
            for seq in (first..=last).take(REST_MESSAGES_MAX) {
                if self.is_full() {
                    self.truncated = true;
                    return Ok(());
                }
                self.take(reader, history, What::Message(seq), query)?;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.left < PASSAGE_TOKENS_MIN
    }

    /// Takes a passage that is not there yet, cut to what is left.
    fn take(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        what: What,
        query: &TextQuery,
    ) -> Result<()> {
        let mut passages = self.taken.iter().map(|(_, passage, _)| passage).chain(self.known);
        if passages.any(|passage| passage.share == self.share && passage.what == what) {
            return Ok(());
        }
        if self.is_full() {
            self.truncated = true;
            return Ok(());
        }
        let Some(whole) = passage::whole(reader, history, what)? else { return Ok(()) };
        let tokens_max = PASSAGE_TOKENS_MAX.min(self.left);
        let at = whole.best(query, tokens_max);
        let text = whole.text(at, tokens_max);
        let tokens = tokens::estimate(&text);
        if tokens > self.left {
            self.truncated = true;
            return Ok(());
        }
        self.left -= tokens;
        let passage = Passage { share: self.share, what, at: int::to_u64(at), tokens_max };
        self.taken.push(((whole.seq, what), passage, tokens));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_75_tokens_are_split_evenly_and_the_first_have_more() {
        assert_eq!(split(10, 3), [4, 3, 3]);
        assert_eq!(split(2, 5), [1, 1]);
        assert_eq!(split(4_000, 1), [4_000]);
        assert!(split(0, 3).is_empty() && split(7, 0).is_empty());
    }
}
