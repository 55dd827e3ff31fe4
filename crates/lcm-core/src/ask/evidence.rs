//! The evidence for a question: a choice of passages within a token cap.
//!
//! In: a search text, and named summaries. Out: passages by source and offset, without their texts,
//! and the share of tokens of each conversation. [`crate::ask`] uses this module. Hits come from
//! [`grep::grep_uncharged`], texts from [`super::passage`].

use crate::search::grep::{self, OwnSearches};
use alloc::{borrow::Cow, string::String, vec::Vec};
use core::cmp::Reverse;

use crate::{
    search::text_query::{self, TextQuery},
    storage::{
        call::Call,
        head::LoadedHead,
        history::MessageHistory,
        read_scope::ReadLimits,
        records::{
            question::{ConversationShare, EvidencePassage, EvidenceSource},
            system_slot::parse_system_id,
        },
        store_session::StoreSession,
        summary::{self, Summary, SummarySources},
        withdrawn_mark,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, JsonFields, JsonWriter},
        sort, time,
        time_offsets::TimeOffsets,
        tokens,
    },
    types::api::Timestamp,
};

use super::passage::{self, PassageRequest};

/// Maximum number of conversations that give evidence for one question.
const SHARES_MAX: usize = 3;
/// Maximum number of conversations that a question lists, because the commit of the question links
/// each of them.
const LISTED_MAX: usize = 64;
/// Maximum number of hits of the search.
const HITS_MAX: u64 = 100;
/// Maximum tokens of one passage: a long message shows the surroundings of its best match.
const PASSAGE_TOKENS_MAX: u32 = 500;
/// If fewer tokens than this are left, no further passage is taken.
const PASSAGE_TOKENS_MIN: u32 = 40;
/// Number of best messages of a conversation whose neighbours are taken: an answer often follows
/// its question.
const MESSAGES_WITH_NEIGHBOURS_MAX: usize = 4;
/// Maximum number of messages of a named summary that are read in order. Messages without text cost
/// no tokens, and a summary may cover a hundred thousand messages.
const NAMED_MESSAGES_MAX: usize = 256;
/// Maximum number of summaries among the hits of a conversation, because a summary may repeat a
/// message.
const SUMMARIES_MAX: usize = 2;

/// A named summary, with its conversation.
pub(super) struct NamedSummary {
    pub(super) conversation: String,
    pub(super) id: [u8; 8],
    pub(super) record: Summary,
}

impl NamedSummary {
    /// Returns the conversation, and the first and last seq that the summary covers.
    fn seq_range(&self) -> (&str, u64, u64) {
        (&self.conversation, self.record.seq_first, self.record.seq_last)
    }
}

/// A request for evidence.
pub(super) struct EvidenceRequest<'a> {
    pub(super) call: Call<'a>,
    pub(super) search_text: &'a str,
    /// Whether the search text is a query, in which `+`, `-` and filters apply.
    pub(super) is_query: bool,
    pub(super) named: &'a [NamedSummary],
    /// Whether the search covers only the seqs of named summaries.
    pub(super) is_within_named: bool,
    /// Maximum tokens of all passages together.
    pub(super) tokens_max: u32,
    /// Whether the search covers every conversation of the store.
    pub(super) all_conversations: bool,
    /// Whether the search covers the conversation without its family.
    pub(super) only: bool,
    /// Limits of the reads.
    pub(super) within: ReadLimits<'a>,
}

impl EvidenceRequest<'_> {
    /// Builds the search pattern: a query as it is, a question without conditions.
    fn build_pattern(&self) -> Cow<'_, str> {
        match self.is_query {
            true => Cow::Borrowed(self.search_text),
            false => Cow::Owned(text_query::strip_conditions(self.search_text)),
        }
    }
}

/// Evidence for a question.
#[derive(Default)]
pub(super) struct Evidence {
    /// Known shares, then the shares of further conversations, best first; conversations that were
    /// left out come last.
    pub(super) shares: Vec<ConversationShare>,
    /// New passages by conversation, best first, then by position in the conversation.
    pub(super) passages: Vec<EvidencePassage>,
    /// Tokens of these passages.
    pub(super) tokens: u32,
    /// Whether a limit left out a conversation or a passage.
    pub(super) truncated: bool,
}

/// A conversation with its hits, best first.
struct ConversationBucket {
    conversation: String,
    /// Indexes of its summaries in [`EvidenceRequest::named`].
    named: Vec<usize>,
    hits: Vec<EvidenceSource>,
    /// Rank of the best hit among all hits, from 0; greatest number: no hit.
    best_rank: usize,
    /// Time of the newest hit or named summary.
    newest: Timestamp,
}

/// Gathers evidence. `known` has the shares and passages of earlier evidence: the shares keep their
/// indexes and get tokens added, and the passages are not taken again.
///
/// # Errors
///
/// `not-found`: a conversation does not exist; `denied`: the grant has no tokens left; errors of
/// the store.
pub(super) fn gather_evidence(
    session: &mut StoreSession<'_>,
    wanted: &EvidenceRequest<'_>,
    known: (&[ConversationShare], &[EvidencePassage]),
) -> Result<Evidence> {
    let mut buckets = group_hits_by_conversation(session, wanted)?;
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
        let mut selection = PassageSelection {
            offsets: &wanted.call.config.time_offsets,
            share: int::to_u32(at),
            query: &query,
            tokens_left: tokens_max.saturating_add(spare),
            known_passages: known.1,
            taken: Vec::new(),
            truncated: false,
        };
        wanted.call.with_conversation(&bucket.conversation, |call| {
            selection.select_passages(session, call, wanted, bucket)
        })?;
        let PassageSelection { tokens_left: left, mut taken, truncated, .. } = selection;
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
    for bucket in left_out.iter().take(LISTED_MAX.saturating_sub(evidence.shares.len())) {
        find_or_add_share(&mut evidence.shares, bucket, 0);
    }
    Ok(evidence)
}

/// Splits tokens into at most `among` shares of at least 1 token. The shares are equal, but the
/// first shares have 1 token more if there is a remainder.
pub(super) fn split_tokens(tokens: u32, among: u32) -> Vec<u32> {
    let among = among.min(tokens);
    let rest = tokens.checked_rem(among).unwrap_or(0);
    let each = tokens.checked_div(among).unwrap_or(0);
    (0..among).map(|number| each + u32::from(number < rest)).collect()
}

/// Returns the index of a bucket's share, which is added if missing. The counts and `tokens_max` of
/// the share become at least those of the bucket.
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

/// Groups named summaries and hits by conversation. Conversations with more named summaries come
/// first, then those with a better hit, then newer ones.
fn group_hits_by_conversation(
    session: &mut StoreSession<'_>,
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
    let hits = search_hits(session, wanted)?;
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

/// Searches and returns at most [`HITS_MAX`] hits, best first.
fn search_hits(
    session: &mut StoreSession<'_>,
    wanted: &EvidenceRequest<'_>,
) -> Result<Vec<EvidenceHit>> {
    let mut query = JsonWriter::new_object();
    query.add_flag("all_conversations", wanted.all_conversations);
    query.add_number("limit", HITS_MAX);
    query.add_text("mode", "full-text");
    query.add_flag("only", wanted.only);
    query.add_text("pattern", &wanted.build_pattern());
    let query = query.end_object();
    let parts: Vec<(&str, u64, u64)> = wanted.named.iter().map(NamedSummary::seq_range).collect();
    let searched = wanted.is_within_named.then_some(parts.as_slice());
    let within = ReadLimits { searched_ranges: searched, ..wanted.within };
    let own_searches = OwnSearches::Last;
    let found = grep::grep_uncharged(session, wanted.call, &query, within, own_searches)
        .map_err(|error| Error::new(error.code, error.message.replace("`pattern`", "`query`")))?
        .json;
    let mut fields = JsonFields::parse_argument("matches", &found)?;
    let mut hits = Vec::new();
    for one in fields.take_list("matches") {
        let mut fields = JsonFields::new(&found, json::list_members(&found, one.span));
        let conversation = fields.take_text("conversation");
        let id = fields.take_text("id");
        let what = match fields.take_optional_u64("seq") {
            Some(seq) => EvidenceSource::Message(seq),
            // System messages are instructions, not evidence.
            None if parse_system_id(&id).is_some() => continue,
            None => EvidenceSource::Summary(summary::parse_summary_id(&id)?),
        };
        let time = fields.take_optional_text("created_at").and_then(|text| time::parse(&text));
        let time = time.unwrap_or(time::UNDATED);
        hits.push(EvidenceHit { conversation, source: what, time });
    }
    Ok(hits)
}

/// A passage with its position in the conversation and its tokens.
type SelectedPassage = ((u64, EvidenceSource), EvidencePassage, u32);

/// Selection of the passages of one conversation.
struct PassageSelection<'k> {
    /// Offsets of local time.
    offsets: &'k TimeOffsets,
    /// Index of the conversation's share.
    share: u32,
    query: &'k TextQuery,
    tokens_left: u32,
    known_passages: &'k [EvidencePassage],
    taken: Vec<SelectedPassage>,
    truncated: bool,
}

impl PassageSelection<'_> {
    /// Takes passages while tokens are left: named summaries, hits, neighbours of hits, then the
    /// sources of named summaries.
    fn select_passages(
        &mut self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        wanted: &EvidenceRequest<'_>,
        bucket: &ConversationBucket,
    ) -> Result<()> {
        let loaded = LoadedHead::open_existing(session, call)?;
        let history = MessageHistory::new(call, &loaded.head);
        for number in &bucket.named {
            if let Some(named) = wanted.named.get(*number) {
                self.take_passage(session, &history, EvidenceSource::Summary(named.id))?;
            }
        }
        let (mut summaries, mut messages) = (0, Vec::new());
        for hit in &bucket.hits {
            match hit {
                EvidenceSource::Summary(_) if summaries == SUMMARIES_MAX => continue,
                EvidenceSource::Summary(_) => summaries += 1,
                EvidenceSource::Message(seq) => messages.push(*seq),
            }
            self.take_passage(session, &history, *hit)?;
        }
        for seq in messages.into_iter().take(MESSAGES_WITH_NEIGHBOURS_MAX) {
            // For a message that was not set aside, the neighbours are also messages that were not
            // set aside: after a question comes the current answer, not an earlier answer that was
            // set aside.
            let line = withdrawn_mark::read_withdrawals(session, &history)?;
            let near = match line.position_of(seq) {
                Some(position) => [line.seq_at(position + 1), line.seq_at(position - 1)],
                None => [seq + 1, seq - 1],
            };
            for near in near {
                let is_stored = (1..=loaded.head.messages).contains(&near);
                if is_stored && wanted.within.covers_range(call.keys, near, near) {
                    self.take_passage(session, &history, EvidenceSource::Message(near))?;
                }
            }
        }
        self.take_sources_of_named(session, &history, wanted, bucket)
    }

    /// For each named summary, takes the summaries that it was made of, then the messages that it
    /// covers, while tokens are left.
    fn take_sources_of_named(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        wanted: &EvidenceRequest<'_>,
        bucket: &ConversationBucket,
    ) -> Result<()> {
        for number in &bucket.named {
            let Some(named) = wanted.named.get(*number) else { continue };
            for source in named.record.source_refs() {
                self.take_passage(session, history, EvidenceSource::Summary(source.id))?;
            }
            let ranges = match &named.record.sources {
                SummarySources::Messages { span, .. } => span.list_ranges(),
                SummarySources::Summaries(_) => {
                    let (_, first, last) = named.seq_range();
                    alloc::vec![(first, last)]
                }
            };
            let seqs = ranges.into_iter().flat_map(|(first, last)| first..=last);
            for seq in seqs.take(NAMED_MESSAGES_MAX) {
                if self.is_full() {
                    self.truncated = true;
                    return Ok(());
                }
                self.take_passage(session, history, EvidenceSource::Message(seq))?;
            }
        }
        Ok(())
    }

    /// Returns whether too few tokens are left for another passage.
    fn is_full(&self) -> bool {
        self.tokens_left < PASSAGE_TOKENS_MIN
    }

    /// Takes the best passage of a source, cut to the tokens left. Skips a source that is known,
    /// has no text or does not fit.
    fn take_passage(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        what: EvidenceSource,
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
        let mark = match what {
            EvidenceSource::Message(seq) => withdrawn_mark::find_mark(session, history, seq)?,
            EvidenceSource::Summary(_)
                if withdrawn_mark::read_withdrawals(session, history)?.ranges.is_empty() =>
            {
                None
            }
            EvidenceSource::Summary(id) => {
                match session.read_record(&Summary::key(history.keys, id))? {
                    Some(record) => withdrawn_mark::find_summary_mark(session, history, &record)?,
                    None => None,
                }
            }
        };
        let wanted = PassageRequest { source: what, mark, offsets: self.offsets };
        let Some(whole) = passage::read_passage_source(session, history, wanted)? else {
            return Ok(());
        };
        let tokens_max = PASSAGE_TOKENS_MAX.min(self.tokens_left);
        let at = whole.find_best_offset(self.query, tokens_max);
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
            mark,
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
