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
    search::text_query::{self, TextQuery},
    storage::read_scope::ReadLimits,
    storage::{
        head::LoadedHead, history::MessageHistory, keys::ConversationKeys,
        store_session::StoreSession, summary::Summary,
    },
};
use lcm_text::{
    base::{
        error::Result,
        int,
        json::{self, JsonFields, JsonWriter},
        sort, time, tokens,
    },
    types::api::Timestamp,
};

use super::passage;

/// Most conversations that give evidence for one question.
const SHARES_MAX: usize = 3;
/// Hits that are looked at.
const HITS_MAX: u64 = 100;
/// Tokens of one passage: a long message shows what is around its best place.
const PASSAGE_TOKENS_MAX: u32 = 500;
/// Tokens below which nothing more is begun.
const PASSAGE_TOKENS_MIN: u32 = 40;
/// Best messages whose neighbours are shown, too: the answer often follows the question.
const MESSAGES_WITH_NEIGHBOURS_MAX: usize = 4;
/// Messages of a named summary that are read in their order when tokens are left: those that say
/// nothing cost none, and a summary may stand for a hundred thousand.
const NAMED_MESSAGES_MAX: usize = 256;
/// Summaries among the hits; each may say again what a message says.
const SUMMARIES_MAX: usize = 2;

/// What a passage is of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) enum EvidenceSource {
    Message(u64),
    Summary([u8; 8]),
}

/// A passage.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct EvidencePassage {
    /// Number of its conversation among the shares.
    pub(super) share: u32,
    pub(super) source: EvidenceSource,
    /// Where in the text of the whole it begins, in bytes.
    pub(super) offset: u64,
    pub(super) tokens_max: u32,
}

impl EvidencePassage {
    /// The place of its conversation among the shares.
    pub(super) fn share_index(&self) -> usize {
        int::to_usize(self.share.into())
    }
}

/// What was taken from one conversation.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ConversationShare {
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
pub(super) struct NamedSummary {
    pub(super) conversation: String,
    pub(super) id: [u8; 8],
    pub(super) record: Summary,
}

impl NamedSummary {
    /// What it stands for: first and last seq in its conversation.
    fn seq_range(&self) -> (&str, u64, u64) {
        (&self.conversation, self.record.seq_first, self.record.seq_last)
    }
}

/// What evidence is gathered for.
pub(super) struct EvidenceRequest<'a> {
    pub(super) conversation: &'a str,
    pub(super) search_text: &'a str,
    /// Whether it was written as a query, in which signs and filters mean something.
    pub(super) is_query: bool,
    pub(super) named: &'a [NamedSummary],
    /// Whether only what named summaries stand for counts.
    pub(super) is_within_named: bool,
    pub(super) tokens_max: u32,
    pub(super) all: bool,
    pub(super) only: bool,
    /// What may be read.
    pub(super) within: ReadLimits<'a>,
    pub(super) now: Timestamp,
}

impl EvidenceRequest<'_> {
    fn build_pattern(&self) -> Cow<'_, str> {
        match self.is_query {
            true => Cow::Borrowed(self.search_text),
            false => Cow::Owned(text_query::strip_conditions(self.search_text)),
        }
    }
}

/// What was gathered.
#[derive(Default)]
pub(super) struct Evidence {
    /// The best first; those without passages last.
    pub(super) shares: Vec<ConversationShare>,
    /// In the order of the shares, and in each in that of the conversation.
    pub(super) passages: Vec<EvidencePassage>,
    pub(super) tokens: u32,
    /// Whether something that was found was left out, for the cap.
    pub(super) truncated: bool,
}

/// A conversation with what was found in it, the best first.
struct ConversationBucket {
    conversation: String,
    named: Vec<usize>,
    hits: Vec<EvidenceSource>,
    best_rank: usize,
    newest: Timestamp,
}

/// Gathers evidence; `known` is left out, and its shares keep their numbers.
///
/// # Errors
///
/// `not-found`: the conversation; `denied`: the grant has no tokens left; errors of the store.
pub(super) fn gather_evidence(
    reader: &mut StoreSession<'_>,
    wanted: &EvidenceRequest<'_>,
    known: (&[ConversationShare], &[EvidencePassage]),
) -> Result<Evidence> {
    let mut buckets = group_hits_by_conversation(reader, wanted)?;
    let mut evidence = Evidence::default();
    for share in known.0 {
        evidence.shares.push(ConversationShare { tokens_max: 0, ..share.clone() });
    }
    let used = buckets.len().min(SHARES_MAX);
    let left_out = buckets.split_off(used);
    evidence.truncated = !left_out.is_empty();
    let query = TextQuery::parse(&wanted.build_pattern());
    let mut spare = 0;
    for (bucket, tokens_max) in
        buckets.iter().zip(split_tokens(wanted.tokens_max, int::to_u32(used)))
    {
        let at = find_or_add_share(&mut evidence.shares, bucket, tokens_max);
        let mut filling = PassageSelection {
            share: int::to_u32(at),
            tokens_left: tokens_max.saturating_add(spare),
            known_passages: known.1,
            taken: Vec::new(),
            truncated: false,
        };
        filling.select_passages(reader, wanted, &query, bucket)?;
        let PassageSelection { tokens_left: left, mut taken, truncated, .. } = filling;
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
        find_or_add_share(&mut evidence.shares, bucket, 0);
    }
    Ok(evidence)
}

/// Splits tokens into equal shares: at least one token each, and the first shares take the rest.
pub(super) fn split_tokens(tokens: u32, among: u32) -> Vec<u32> {
    let among = among.min(tokens);
    let rest = tokens.checked_rem(among).unwrap_or(0);
    let each = tokens.checked_div(among).unwrap_or(0);
    (0..among).map(|number| each + u32::from(number < rest)).collect()
}

/// The number of a bucket's share, which is made if it is not there.
fn find_or_add_share(
    shares: &mut Vec<ConversationShare>,
    bucket: &ConversationBucket,
    tokens_max: u32,
) -> usize {
    let candidates = int::to_u32(bucket.hits.len() + bucket.named.len());
    let named = int::to_u32(bucket.named.len());
    let at = shares.iter().position(|share| share.conversation == bucket.conversation);
    let at = at.unwrap_or_else(|| {
        let conversation = bucket.conversation.clone();
        shares.push(ConversationShare {
            conversation,
            candidates: 0,
            named: 0,
            tokens_max: 0,
            tokens: 0,
        });
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
fn group_hits_by_conversation(
    reader: &mut StoreSession<'_>,
    wanted: &EvidenceRequest<'_>,
) -> Result<Vec<ConversationBucket>> {
    let mut buckets: Vec<ConversationBucket> = Vec::new();
    let mut at = |conversation: &str| -> usize {
        let found = buckets.iter().position(|bucket| bucket.conversation == conversation);
        found.unwrap_or_else(|| {
            buckets.push(ConversationBucket {
                conversation: conversation.into(),
                named: Vec::new(),
                hits: Vec::new(),
                best_rank: usize::MAX,
                newest: 0,
            });
            buckets.len() - 1
        })
    };
    let named: Vec<usize> = wanted.named.iter().map(|named| at(&named.conversation)).collect();
    let hits = search_hits(reader, wanted)?;
    let places: Vec<usize> = hits.iter().map(|hit| at(&hit.conversation)).collect();
    for (number, (place, named)) in named.into_iter().zip(wanted.named).enumerate() {
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.named.push(number);
            bucket.newest = bucket.newest.max(named.record.latest_at);
        }
    }
    for (rank, (place, hit)) in places.into_iter().zip(hits).enumerate() {
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.hits.push(hit.source);
            bucket.best_rank = bucket.best_rank.min(rank);
            bucket.newest = bucket.newest.max(hit.time);
        }
    }
    sort::sort_by(&mut buckets, &mut |a, b| {
        let key = |one: &ConversationBucket| {
            (Reverse(one.named.len()), one.best_rank, Reverse(one.newest))
        };
        key(a).cmp(&key(b)).then_with(|| a.conversation.cmp(&b.conversation))
    });
    Ok(buckets)
}

/// A hit of the search.
struct EvidenceHit {
    conversation: String,
    source: EvidenceSource,
    time: Timestamp,
}

/// The hits, the best first.
fn search_hits(
    reader: &mut StoreSession<'_>,
    wanted: &EvidenceRequest<'_>,
) -> Result<Vec<EvidenceHit>> {
    let mut query = JsonWriter::new_object();
    query.add_flag("all_conversations", wanted.all);
    query.add_number("limit", HITS_MAX);
    query.add_text("mode", "full-text");
    query.add_flag("only", wanted.only);
    query.add_text("pattern", &wanted.build_pattern());
    let query = query.end_object();
    let parts: Vec<(&str, u64, u64)> = wanted.named.iter().map(NamedSummary::seq_range).collect();
    let searched = wanted.is_within_named.then_some(parts.as_slice());
    let (conversation, within) =
        (wanted.conversation, ReadLimits { searched_ranges: searched, ..wanted.within });
    let found = grep::grep_uncharged(reader, conversation, &query, within, wanted.now)?.json;
    let mut fields = JsonFields::parse_argument("matches", &found)?;
    let mut hits = Vec::new();
    for one in fields.take_list("matches") {
        let mut fields = JsonFields::new(&found, json::list_members(&found, one.span));
        let conversation = fields.take_text("conversation");
        let what = match fields.take_optional_u64("seq") {
            Some(seq) => EvidenceSource::Message(seq),
            None => EvidenceSource::Summary(crate::storage::summary::parse_summary_id(
                &fields.take_text("id"),
            )?),
        };
        let time = time::parse(&fields.take_text("created_at")).unwrap_or(0);
        hits.push(EvidenceHit { conversation, source: what, time });
    }
    Ok(hits)
}

/// A passage with its place in the conversation and its tokens.
type SelectedPassage = ((u64, EvidenceSource), EvidencePassage, u32);

/// One conversation's passages while they are chosen.
struct PassageSelection<'k> {
    share: u32,
    tokens_left: u32,
    known_passages: &'k [EvidencePassage],
    taken: Vec<SelectedPassage>,
    truncated: bool,
}

impl PassageSelection<'_> {
    fn select_passages(
        &mut self,
        reader: &mut StoreSession<'_>,
        wanted: &EvidenceRequest<'_>,
        query: &TextQuery,
        bucket: &ConversationBucket,
    ) -> Result<()> {
        let keys = ConversationKeys::new(&bucket.conversation)?;
        let loaded = LoadedHead::load_existing(reader, &keys, &bucket.conversation)?;
        reader.bind_head(&keys, loaded.head.revision, loaded.bytes.as_deref());
        let history = MessageHistory { keys: &keys, head: &loaded.head };
        for number in &bucket.named {
            if let Some(named) = wanted.named.get(*number) {
                self.take_passage(reader, &history, EvidenceSource::Summary(named.id), query)?;
            }
        }
        let (mut summaries, mut messages) = (0, Vec::new());
        for hit in &bucket.hits {
            match hit {
                EvidenceSource::Summary(_) if summaries == SUMMARIES_MAX => continue,
                EvidenceSource::Summary(_) => summaries += 1,
                EvidenceSource::Message(seq) => messages.push(*seq),
            }
            self.take_passage(reader, &history, *hit, query)?;
        }
        for seq in messages.into_iter().take(MESSAGES_WITH_NEIGHBOURS_MAX) {
            for near in [seq.saturating_add(1), seq.saturating_sub(1)] {
                let is_stored = (1..=loaded.head.messages).contains(&near);
                if is_stored && wanted.within.covers_range(&keys, near, near) {
                    self.take_passage(reader, &history, EvidenceSource::Message(near), query)?;
                }
            }
        }
        self.take_sources_of_named(reader, wanted, query, bucket, &history)
    }

    /// What is left for the messages of named summaries in their order.
    fn take_sources_of_named(
        &mut self,
        reader: &mut StoreSession<'_>,
        wanted: &EvidenceRequest<'_>,
        query: &TextQuery,
        bucket: &ConversationBucket,
        history: &MessageHistory<'_>,
    ) -> Result<()> {
        for number in &bucket.named {
            let Some(named) = wanted.named.get(*number) else { continue };
            for source in named.record.source_refs() {
                self.take_passage(reader, history, EvidenceSource::Summary(source.id), query)?;
            }
            let (_, first, last) = named.seq_range();
            for seq in (first..=last).take(NAMED_MESSAGES_MAX) {
                if self.is_full() {
                    self.truncated = true;
                    return Ok(());
                }
                self.take_passage(reader, history, EvidenceSource::Message(seq), query)?;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.tokens_left < PASSAGE_TOKENS_MIN
    }

    /// Takes a passage that is not there yet, cut to what is left.
    fn take_passage(
        &mut self,
        reader: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        what: EvidenceSource,
        query: &TextQuery,
    ) -> Result<()> {
        let mut passages =
            self.taken.iter().map(|(_, passage, _)| passage).chain(self.known_passages);
        if passages.any(|passage| passage.share == self.share && passage.source == what) {
            return Ok(());
        }
        if self.is_full() {
            self.truncated = true;
            return Ok(());
        }
        let Some(whole) = passage::read_passage_source(reader, history, what)? else {
            return Ok(());
        };
        let tokens_max = PASSAGE_TOKENS_MAX.min(self.tokens_left);
        let at = whole.find_best_offset(query, tokens_max);
        let text = whole.render_passage(at, tokens_max);
        let tokens = tokens::estimate(&text);
        if tokens > self.tokens_left {
            self.truncated = true;
            return Ok(());
        }
        self.tokens_left -= tokens;
        let passage = EvidencePassage {
            share: self.share,
            source: what,
            offset: int::to_u64(at),
            tokens_max,
        };
        self.taken.push(((whole.seq, what), passage, tokens));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_split_evenly_and_the_first_have_more() {
        assert_eq!(split_tokens(10, 3), [4, 3, 3]);
        assert_eq!(split_tokens(2, 5), [1, 1]);
        assert_eq!(split_tokens(4_000, 1), [4_000]);
        assert!(split_tokens(0, 3).is_empty() && split_tokens(7, 0).is_empty());
    }
}
