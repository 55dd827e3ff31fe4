//! Full text: which documents fit a query, and how well.
//!
//! In: a query and one corpus of documents of one conversation. Out, in two steps so that several
//! conversations can be ranked as one: what the index says ([`gather`]), and scores
//! ([`Gathered::rank`]). Everything is in flat ascending lists; nothing is allocated per posting.
//! Not here: order, limit and snippets.

use alloc::{string::String, vec::Vec};

use super::{
    Corpus, Index, Postings,
    direct::Direct,
    query::{Filter, Item, Presence, Property, TextQuery},
    rank::{self, Layout, Places, Ranking},
    score,
    sessions::{self, Sessions},
    window::Window,
};
use crate::storage::{history::History, store_session::Reader};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, json, sort,
    },
    message::Role,
    types::api::Timestamp,
};

/// Postings that words which may be there have together in one corpus; of more the most frequent
/// words are left out, which say least. Three of the thirty most frequent words of a conversation
/// of 100,000 messages have about so many.
const POSTINGS_MAX: usize = 64_000;
/// Documents of terms whose positions are read, of all phrases of a query together, and as how many
/// finding the list of one term counts.
const PLACED_MAX: usize = 35_000;
const PLACED_MIN: usize = 7_000;
/// Messages that are read to compare their speaker with a name that has no words.
const SPEAKERS_READ_MAX: usize = 4_096;

/// What one corpus of a conversation says to a query.
pub(crate) struct Gathered {
    corpus: Corpus,
    /// Postings of each item of the query, of each of its terms, and where sessions begin.
    items: Vec<Postings>,
    terms: Vec<Postings>,
    sessions: Sessions,
    direct: Direct,
    pub(crate) statistics: Statistics,
    /// Words were left out.
    pub(crate) is_cut: bool,
}

/// What weights depend on; sums over conversations are the statistics of all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) documents: u64,
    pub(crate) length_total: u64,
    pub(crate) sessions: u64,
    /// Of each item: the documents that hold it, their sessions, and the documents that hold it as
    /// typed.
    pub(crate) holding: Vec<[u64; 3]>,
    /// Of each name: the documents that such a speaker said, and their sessions.
    pub(crate) spoken: Vec<[u64; 2]>,
}

impl Statistics {
    /// Adds those of further documents.
    pub(crate) fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.length_total += other.length_total;
        self.sessions += other.sessions;
        self.holding.resize(other.holding.len(), [0; 3]);
        let sums = self.holding.iter_mut().flatten();
        sums.zip(other.holding.iter().flatten()).for_each(|(sum, more)| *sum += more);
        self.spoken.resize(other.spoken.len(), [0; 2]);
        let sums = self.spoken.iter_mut().flatten();
        sums.zip(other.spoken.iter().flatten()).for_each(|(sum, more)| *sum += more);
    }
}

/// Documents that fit, ascending, each with its score.
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    pub(crate) documents: Vec<u64>,
    pub(crate) scores: Vec<u64>,
}

/// Reads what the index says to a query.
///
/// # Errors
///
/// As [`Index::postings`].
pub(crate) fn gather(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    index: &mut Index,
    corpus: Corpus,
    query: &TextQuery,
) -> Result<Gathered> {
    let direct = match corpus {
        Corpus::Messages => Direct::read(reader, history, index, query)?,
        Corpus::Summaries => Direct::default(),
    };
    let mut terms = index.postings(reader, corpus, &query.terms)?;
    for (postings, more) in terms.iter_mut().zip(&direct.postings) {
        if !more.documents.is_empty() {
            *postings = united(postings, more, |first, second| first.max(second));
        }
    }
    let mut items = Vec::with_capacity(query.items.len());
    let is_alone = query.items.len() == 1;
    let mut placing = Placing { terms: &query.terms, left: PLACED_MAX, is_alone, is_cut: false };
    for item in &query.items {
        items.push(held(reader, index, corpus, &direct, item, &terms, &mut placing)?);
    }
    let is_cut = leave_out(query, &mut items) || placing.is_cut;
    let lengths = direct.entries.iter().map(|entry| u64::from(entry.length)).sum::<u64>();
    let documents = match corpus {
        Corpus::Messages => history.head.messages,
        Corpus::Summaries => index.documents(corpus),
    };
    let sessions = match corpus {
        Corpus::Messages => Sessions::Begin(documents_of(&terms, Some(&0)).to_vec()),
        Corpus::Summaries => Sessions::Alone,
    };
    let count = |documents: &[u64]| {
        [int::to_u64(documents.len()), sessions::distinct(&sessions.of(documents))]
    };
    let holding = query.items.iter().zip(&items).map(|(item, postings)| {
        let [documents, sessions] = count(&postings.documents);
        let typed = match item.forms.is_empty() {
            true => 0,
            false => int::to_u64(documents_of(&terms, item.terms.first()).len()),
        };
        [documents, sessions, typed]
    });
    let statistics = Statistics {
        documents,
        length_total: index.length_total(corpus) + lengths,
        sessions: sessions.count(documents),
        holding: holding.collect(),
        spoken: query.names.iter().map(|name| count(documents_of(&terms, Some(name)))).collect(),
    };
    Ok(Gathered { corpus, items, terms, sessions, direct, statistics, is_cut })
}

/// Empties the postings of the most frequent items that may be there, as far as all have too many;
/// whether there were such.
fn leave_out(query: &TextQuery, items: &mut [Postings]) -> bool {
    let numbered = items.iter().zip(&query.items).enumerate();
    let may = numbered.filter(|(_, (_, item))| item.presence == Presence::May);
    let mut sizes: Vec<(usize, usize)> =
        may.map(|(number, (postings, _))| (postings.documents.len(), number)).collect();
    sort::sort(&mut sizes);
    let (mut sum, mut is_cut) = (0, false);
    for (place, (size, number)) in sizes.into_iter().enumerate() {
        sum += size;
        if sum > POSTINGS_MAX && place > 0 {
            is_cut = true;
            items.get_mut(number).into_iter().for_each(|postings| *postings = Postings::default());
        }
    }
    is_cut
}

/// The documents of a term by its number.
fn documents_of<'t>(terms: &'t [Postings], number: Option<&usize>) -> &'t [u64] {
    let postings = number.and_then(|number| terms.get(*number));
    postings.map_or(&[], |postings| postings.documents.as_slice())
}

/// What is still to be read of positions.
struct Placing<'q> {
    /// The terms of the query.
    terms: &'q [Vec<u8>],
    left: usize,
    /// There is one item.
    is_alone: bool,
    is_cut: bool,
}

impl Placing<'_> {
    /// The places of an item's terms in its order, those of the fewest documents first, as far as
    /// their positions may be read. Where the others stand in a document is not looked at.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the item must not be there, so that documents would be missed.
    fn takes(&mut self, item: &Item, terms: &[Postings]) -> Result<Vec<usize>> {
        let size = |(term, _): &(Vec<u8>, u32)| {
            let number = self.terms.iter().position(|known| known == term);
            documents_of(terms, number.as_ref()).len().max(PLACED_MIN)
        };
        let mut sizes: Vec<(usize, usize)> =
            item.order.iter().enumerate().map(|(place, entry)| (size(entry), place)).collect();
        sort::sort(&mut sizes);
        let mut out = Vec::new();
        for (size, place) in sizes {
            let Some(left) = self.left.checked_sub(size) else { break };
            self.left = left;
            out.push(place);
        }
        if out.len() < item.order.len() {
            self.is_cut = true;
            if item.presence == Presence::MustNot {
                return Err(Error::limit(
                    "pattern: phrases of so many frequent words that must not be there; fewer or \
                     rarer words can be looked for",
                ));
            }
        }
        Ok(out)
    }
}

/// The documents that hold an item, and how often.
fn held(
    reader: &mut Reader<'_>,
    index: &mut Index,
    corpus: Corpus,
    direct: &Direct,
    item: &Item,
    terms: &[Postings],
    placing: &mut Placing<'_>,
) -> Result<Postings> {
    if !item.forms.is_empty() {
        let forms = item.forms.iter().filter_map(|number| terms.get(*number));
        return Ok(forms.fold(Postings::default(), |all, form| united(&all, form, |a, b| a + b)));
    }
    let mut of_terms = item.terms.iter().filter_map(|number| terms.get(*number));
    let Some(first) = of_terms.next() else { return Ok(Postings::default()) };
    if item.order.is_empty() {
        return Ok(first.clone());
    }
    if placing.left < PLACED_MIN && item.presence == Presence::May && !placing.is_alone {
        placing.is_cut = true;
        return Ok(Postings::default());
    }
    let mut documents = first.documents.clone();
    for other in of_terms {
        keep_common(&mut documents, &other.documents);
    }
    let places = match documents.is_empty() {
        true => Vec::new(),
        false => placing.takes(item, terms)?,
    };
    if places.is_empty() && item.presence == Presence::May && !placing.is_alone {
        return Ok(Postings::default());
    }
    // Where the phrase would begin, for each document, as far as its terms were looked at.
    let mut starts: Option<Vec<Vec<u32>>> = None;
    for (term, distance) in places.into_iter().filter_map(|place| item.order.get(place)) {
        if documents.is_empty() {
            break;
        }
        let found = positions(reader, index, corpus, direct, term, &documents)?;
        let begins = found.into_iter().map(|positions| {
            let begin =
                positions.into_iter().filter_map(|position| position.checked_sub(*distance));
            begin.collect::<Vec<u32>>()
        });
        let mut both: Vec<Vec<u32>> = match starts {
            None => begins.collect(),
            Some(starts) => {
                let both = starts.into_iter().zip(begins);
                both.map(|(mut known, more)| {
                    known.retain(|start| more.binary_search(start).is_ok());
                    known
                })
                .collect()
            }
        };
        let mut left = both.iter();
        documents.retain(|_| left.next().is_some_and(|starts| !starts.is_empty()));
        both.retain(|starts| !starts.is_empty());
        starts = Some(both);
    }
    let starts = starts.unwrap_or_else(|| alloc::vec![alloc::vec![0]; documents.len()]);
    let counts = starts.iter().map(|starts| int::to_u32(starts.len())).collect();
    Ok(Postings { documents, counts })
}

/// Positions of a term in these documents, in segments or not.
fn positions(
    reader: &mut Reader<'_>,
    index: &mut Index,
    corpus: Corpus,
    direct: &Direct,
    term: &[u8],
    documents: &[u64],
) -> Result<Vec<Vec<u32>>> {
    let stored: Vec<u64> =
        documents.iter().copied().filter(|document| direct.find(*document).is_none()).collect();
    let mut found = index.positions(reader, corpus, term, &stored)?.into_iter();
    let of = |document: &u64| match direct.find(*document) {
        Some(_) => direct.positions(term, *document).to_vec(),
        None => found.next().unwrap_or_default(),
    };
    Ok(documents.iter().map(of).collect())
}

impl Gathered {
    /// The documents that fit, with their scores by the statistics of all that are searched.
    ///
    /// # Errors
    ///
    /// As [`Index::postings`].
    pub(crate) fn rank(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        index: &mut Index,
        query: &TextQuery,
        window: &Window,
        statistics: &Statistics,
        with_neighbours: bool,
    ) -> Result<Ranked> {
        let mut documents = self.candidates(history, index, query);
        if with_neighbours && query.is_question() {
            documents = self.sessions.with_neighbours(&documents, self.statistics.documents);
        }
        if !window.is_everything() {
            let times = self.times(reader, index, &documents)?;
            keep(&mut documents, &times, |time| window.holds(*time));
        }
        self.filter(reader, history, index, query, &mut documents)?;
        if !query.asks_for_text() {
            let scores = alloc::vec![0; documents.len()];
            return Ok(Ranked { documents, scores });
        }
        let scores = self.scores(reader, index, query, &documents, statistics)?;
        Ok(Ranked { documents, scores })
    }

    /// Keeps of some documents (ascending) those that the query would let be hits if they had one
    /// of its words.
    ///
    /// # Errors
    ///
    /// As [`Gathered::rank`].
    pub(crate) fn admit(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        index: &mut Index,
        query: &TextQuery,
        window: &Window,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        for (item, postings) in query.items.iter().zip(&self.items) {
            match item.presence {
                Presence::Must => keep_common(documents, &postings.documents),
                Presence::MustNot => drop_common(documents, &postings.documents),
                Presence::May => {}
            }
        }
        if !window.is_everything() {
            let times = self.times(reader, index, documents)?;
            keep(documents, &times, |time| window.holds(*time));
        }
        self.filter(reader, history, index, query, documents)
    }

    /// What these documents are worth.
    fn scores(
        &self,
        reader: &mut Reader<'_>,
        index: &mut Index,
        query: &TextQuery,
        documents: &[u64],
        statistics: &Statistics,
    ) -> Result<Vec<u64>> {
        let are_messages = self.corpus == Corpus::Messages;
        let all = statistics.documents;
        let mean = score::mean_length(all, statistics.length_total, are_messages);
        let ranked = self.layout(reader, index, documents)?;
        let mut ranking = Ranking::new(documents, &ranked, mean);
        let asks = documents_of(&self.terms, Some(&1));
        let has_spoken = |name: &usize| statistics.spoken.get(*name).is_some_and(|n| n[0] > 0);
        for ((item, postings), holding) in
            query.items.iter().zip(&self.items).zip(&statistics.holding)
        {
            if item.presence == Presence::MustNot || postings.documents.is_empty() {
                continue;
            }
            let [any, sessions, typed] = *holding;
            let weights = [(all, any), (statistics.sessions, sessions), (all, typed)]
                .map(|(of, holding)| score::weight(of, holding));
            let [any, sessions, typed] =
                rank::weights(weights, item.name.as_ref().is_some_and(has_spoken));
            let apart;
            let layout = if postings.documents == documents {
                &ranked
            } else {
                apart = self.layout(reader, index, &postings.documents)?;
                &apart
            };
            let places = Places { postings, layout };
            ranking.add_session(&places, sessions);
            let as_typed = item.terms.first().filter(|_| !item.forms.is_empty());
            match as_typed.and_then(|term| self.terms.get(*term)) {
                None => ranking.add_term(&places, asks, &[any]),
                // A word that stands in one form only.
                Some(same) if same == postings => ranking.add_term(&places, asks, &[any, typed]),
                Some(postings) => {
                    ranking.add_term(&places, asks, &[any]);
                    let layout = &self.layout(reader, index, &postings.documents)?;
                    ranking.add_term(&Places { postings, layout }, asks, &[typed]);
                }
            }
        }
        let names = (0..query.names.len()).filter(has_spoken).count();
        for (name, [documents, sessions]) in query.names.iter().zip(&statistics.spoken) {
            let spoken = documents_of(&self.terms, Some(name));
            let weights =
                [score::weight(all, *documents), score::weight(statistics.sessions, *sessions)];
            ranking.add_speaker(spoken, &self.sessions.of(spoken), weights, names);
        }
        if let Some(date) = query.date.filter(|_| are_messages && query.is_question()) {
            ranking.add_date(&self.times(reader, index, documents)?, date);
        }
        ranking.take_asking(documents_of(&self.terms, Some(&2)), &ranked.lengths);
        Ok(ranking.scores)
    }

    /// How long some documents (ascending) are, and of which sessions.
    fn layout(
        &self,
        reader: &mut Reader<'_>,
        index: &mut Index,
        documents: &[u64],
    ) -> Result<Layout> {
        let lengths = self.column(
            documents,
            |entry| entry.length,
            |stored| index.lengths(reader, self.corpus, stored),
        )?;
        Ok(Layout { lengths, sessions: self.sessions.of(documents) })
    }

    /// The documents that the items of a query leave.
    fn candidates(&self, history: &History<'_>, index: &Index, query: &TextQuery) -> Vec<u64> {
        let of = |presence: Presence| {
            let items = query.items.iter().zip(&self.items);
            items.filter(move |(item, _)| item.presence == presence).map(|(_, found)| found)
        };
        let mut must = of(Presence::Must);
        let mut documents = match must.next() {
            Some(first) => {
                let mut documents = first.documents.clone();
                must.for_each(|other| keep_common(&mut documents, &other.documents));
                documents
            }
            None if query.asks_for_text() => {
                let mut any: Vec<&[u64]> =
                    of(Presence::May).map(|item| item.documents.as_slice()).collect();
                // Short lists first: what is merged often stays short.
                sort::sort_by(&mut any, &mut |left, right| left.len().cmp(&right.len()));
                any.into_iter().fold(Vec::new(), merged)
            }
            None => match self.corpus {
                Corpus::Messages => (1..=history.head.messages).collect(),
                Corpus::Summaries => (1..=index.documents(self.corpus)).collect(),
            },
        };
        for without in of(Presence::MustNot) {
            drop_common(&mut documents, &without.documents);
        }
        documents
    }

    /// Applies the filters: those of one kind are alternatives, kinds add up.
    fn filter(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        index: &mut Index,
        query: &TextQuery,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        if query.filters.is_empty() {
            return Ok(());
        }
        if self.corpus == Corpus::Summaries {
            // A summary has no speaker, tool or role.
            documents.clear();
            return Ok(());
        }
        self.filter_tools(query, documents);
        let has = |kind: fn(&Property) -> bool| query.filters.iter().any(|f| kind(&f.property));
        if has(|property| matches!(property, Property::Role(_))) {
            let roles =
                self.column(documents, |entry| entry.role, |stored| index.roles(reader, stored))?;
            keep(documents, &roles, |role| passes(&query.filters, *role));
        }
        self.filter_speakers(reader, history, query, documents)
    }

    /// Who has all words of a name is one of that name.
    fn filter_speakers(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        query: &TextQuery,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        for negated in [false, true] {
            let (mut named, mut read, mut is_asked) = (Vec::new(), None, false);
            for filter in query.filters.iter().filter(|filter| filter.negated == negated) {
                let Property::Speaker { name, words } = &filter.property else { continue };
                is_asked = true;
                let spoken = match words.split_first() {
                    Some((first, rest)) => {
                        let mut spoken = documents_of(&self.terms, Some(first)).to_vec();
                        rest.iter().for_each(|word| {
                            keep_common(&mut spoken, documents_of(&self.terms, Some(word)));
                        });
                        spoken
                    }
                    None => {
                        if read.is_none() {
                            read = Some(speakers(reader, history, documents)?);
                        }
                        let mut spoken = documents.clone();
                        let speakers = read.as_deref().unwrap_or_default();
                        keep(&mut spoken, speakers, |speaker| speaker.as_ref() == Some(name));
                        spoken
                    }
                };
                named = merged(named, &spoken);
            }
            match negated {
                _ if !is_asked => {}
                true => drop_common(documents, &named),
                false => keep_common(documents, &named),
            }
        }
        Ok(())
    }

    fn filter_tools(&self, query: &TextQuery, documents: &mut Vec<u64>) {
        let of = |number: usize| documents_of(&self.terms, Some(&number));
        let named = |negated: bool| {
            query.filters.iter().filter(move |filter| filter.negated == negated).filter_map(
                |filter| match filter.property {
                    Property::Tool(term) => Some(term),
                    _ => None,
                },
            )
        };
        if named(false).next().is_some() {
            let any = named(false).fold(Vec::new(), |all, term| merged(all, of(term)));
            keep_common(documents, &any);
        }
        named(true).for_each(|term| drop_common(documents, of(term)));
    }

    /// Times of these documents.
    ///
    /// # Errors
    ///
    /// As [`Index::postings`].
    pub(crate) fn times(
        &self,
        reader: &mut Reader<'_>,
        index: &mut Index,
        documents: &[u64],
    ) -> Result<Vec<Timestamp>> {
        self.column(
            documents,
            |entry| entry.time,
            |stored| index.times(reader, self.corpus, stored),
        )
    }

    /// A property of these documents: of those in segments as the index says.
    fn column<T>(
        &self,
        documents: &[u64],
        of_direct: impl Fn(&super::direct::Entry) -> T,
        of_stored: impl FnOnce(&[u64]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        if self.direct.entries.is_empty() {
            return of_stored(documents);
        }
        let is_stored = |document: &u64| self.direct.find(*document).is_none();
        let stored: Vec<u64> = documents.iter().copied().filter(is_stored).collect();
        let mut values = of_stored(&stored)?.into_iter();
        let value = |document: &u64| match self.direct.find(*document) {
            Some(entry) => Some(of_direct(entry)),
            None => values.next(),
        };
        Ok(documents.iter().filter_map(value).collect())
    }
}

/// Whether a role passes the filters of roles.
fn passes(filters: &[Filter], role: Role) -> bool {
    let is_it = |filter: &Filter| match &filter.property {
        Property::Role(wanted) => Some(*wanted == role),
        _ => None,
    };
    let mut wanted = filters.iter().filter(|filter| !filter.negated).filter_map(is_it).peekable();
    let is_wanted = wanted.peek().is_none() || wanted.any(|equal| equal);
    let mut unwanted = filters.iter().filter(|filter| filter.negated).filter_map(is_it);
    is_wanted && !unwanted.any(|equal| equal)
}

/// The `speaker` of each of these messages, in lower case. This reads the messages themselves.
fn speakers(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    seqs: &[u64],
) -> Result<Vec<Option<String>>> {
    if seqs.len() > SPEAKERS_READ_MAX {
        return Err(Error::limit(format_args!(
            "pattern: a speaker's name without words is compared with at most {SPEAKERS_READ_MAX} \
             messages; words, since: or before: leave fewer"
        )));
    }
    let mut out = Vec::with_capacity(seqs.len());
    let ranges: Vec<(u64, u64)> = seqs.iter().map(|seq| (*seq, *seq)).collect();
    history.each_of(reader, &ranges, &mut |_, message| {
        let members = json::object(message.text)?;
        let speaker = json::member(&members, message.text, "speaker");
        out.push(speaker.map(|member| json::text(message.text, member.value).to_lowercase()));
        Ok(())
    })?;
    Ok(out)
}

/// Keeps the documents whose value is wanted.
fn keep<T>(documents: &mut Vec<u64>, values: &[T], is_wanted: impl Fn(&T) -> bool) {
    let mut values = values.iter();
    documents.retain(|_| values.next().is_some_and(&is_wanted));
}

/// Keeps what is in the other list, too. Both are ascending.
fn keep_common(documents: &mut Vec<u64>, other: &[u64]) {
    let mut other = other.iter().peekable();
    documents.retain(|document| {
        while other.next_if(|next| **next < *document).is_some() {}
        other.peek() == Some(&document)
    });
}

/// Drops what is in the other list, too. Both are ascending.
fn drop_common(documents: &mut Vec<u64>, other: &[u64]) {
    let mut other = other.iter().peekable();
    documents.retain(|document| {
        while other.next_if(|next| **next < *document).is_some() {}
        other.peek() != Some(&document)
    });
}

/// What is in either list, ascending.
fn merged(left: Vec<u64>, right: &[u64]) -> Vec<u64> {
    if left.is_empty() {
        return right.to_vec();
    }
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut right = right.iter().copied().peekable();
    for document in left {
        while let Some(next) = right.next_if(|next| *next < document) {
            out.push(next);
        }
        right.next_if_eq(&document);
        out.push(document);
    }
    out.extend(right);
    out
}

/// Postings of both lists.
fn united(left: &Postings, right: &Postings, same: impl Fn(u32, u32) -> u32) -> Postings {
    if left.documents.is_empty() {
        return right.clone();
    }
    let mut out = Postings::default();
    let rows = |list: &Postings| {
        let rows = list.documents.iter().copied().zip(list.counts.iter().copied());
        rows.collect::<Vec<(u64, u32)>>()
    };
    let mut more = rows(right).into_iter().peekable();
    let mut push = |(document, count): (u64, u32)| {
        out.documents.push(document);
        out.counts.push(count);
    };
    for (document, count) in rows(left) {
        while let Some(row) = more.next_if(|(next, _)| *next < document) {
            push(row);
        }
        let count = match more.next_if(|(next, _)| *next == document) {
            Some((_, other)) => same(count, other),
            None => count,
        };
        push((document, count));
    }
    more.for_each(push);
    out
}
