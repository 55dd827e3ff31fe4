//! Ranking: scores documents by their terms and by the terms of neighbouring messages.
//!
//! Input: documents, postings of the query items, sessions and feature terms. Output: scores with
//! 16 fractional bits. `docs/ranking.md` has the formula, the origin of its constants, and
//! measurements. Elsewhere: selecting documents, and reading the index (`full_text`).

use alloc::vec::Vec;

use super::{
    index_reader::Postings,
    query_dates::QueryDate,
    score::{self, ONE},
    sessions::NEIGHBOURS,
};
use lcm_text::types::api::Timestamp;

/// Most occurrences of a term in one document that count, for the score of the document and of its
/// neighbours.
const COUNT_MAX: u32 = 2;
/// Weights of an occurrence for the messages one and two after the message with the term.
const BEHIND: [u64; 2] = [ONE * 15 / 100, ONE * 15 / 100];
/// Weights of an occurrence for the messages one and two before the message with the term.
const BEFORE: [u64; 2] = [ONE * 10 / 100, ONE * 10 / 100];
/// Extra weight of an occurrence for the next message, if the message with the term has a question
/// mark: the next message probably answers.
const ANSWER: u64 = ONE * 40 / 100;
/// Length of a message in positions above which its occurrences count less for its neighbours. A
/// long message says less about its neighbours.
const NEIGHBOUR_LENGTH: u64 = 30;
/// Length of a message in positions above which its question mark counts less.
const QUESTION_LENGTH: u64 = 15;
/// Greatest penalty of a message that ends with a question mark: such a message asks and does not
/// tell.
const QUESTION_PENALTY: u64 = ONE * 80 / 100;
/// Share of the weight of the typed form that is added where a word occurs as typed.
const EXACT: u64 = ONE * 20 / 100;
/// Factor for the weights of a word that is also the name of a speaker.
const NAME_AS_WORD: u64 = ONE * 50 / 100;
/// Factor for the weight of a typed identifier in the documents that have it, whatever their
/// length: a long listing with the identifier comes before short texts with its parts.
const IDENTIFIER: u64 = ONE * 4;
/// Factor for the weight of a word anywhere in the session.
const SESSION: u64 = ONE * 40 / 100;
/// Factor for the weight of a speaker name, for messages of the speaker.
const SPEAKER: u64 = ONE * 130 / 100;
/// Factor for the weight of a speaker name, for sessions in which the speaker speaks.
const SPEAKS_IN_SESSION: u64 = ONE * 2;
/// Factor for the score of a time by the date that the question mentions.
const DATE: u64 = ONE * 6;

/// Lengths (in positions) and session numbers of documents, in the order of the documents.
pub(super) struct DocumentLayout {
    pub(super) lengths: Vec<u32>,
    pub(super) sessions: Vec<u64>,
}

/// Documents with the scores collected so far.
pub(super) struct Ranker<'a> {
    documents: &'a [u64],
    /// Session number of each document.
    sessions: &'a [u64],
    pub(super) scores: Vec<u64>,
    /// Mean length that document lengths are compared with, with 8 fractional bits.
    mean_length: u64,
}

/// Postings of a term, with lengths and sessions of their documents.
pub(super) struct TermPostings<'a> {
    pub(super) postings: &'a Postings,
    pub(super) layout: &'a DocumentLayout,
}

impl<'a> Ranker<'a> {
    /// Creates a ranker in which every score is 0.
    pub(super) fn new(documents: &'a [u64], layout: &'a DocumentLayout, mean_length: u64) -> Self {
        let scores = alloc::vec![0; documents.len()];
        Self { documents, sessions: &layout.sessions, scores, mean_length }
    }

    /// Adds the score of a term to documents with the term and to their neighbours in the session,
    /// once for each weight.
    ///
    /// `questions` lists the documents with a question mark, ascending.
    pub(super) fn add_term(&mut self, term: &TermPostings<'_>, questions: &[u64], weights: &[u64]) {
        let mut found = alloc::vec![0u64; self.documents.len()];
        let mut questions = questions.iter().peekable();
        let mut from = 0;
        let rows = term.postings.documents.iter().zip(&term.postings.counts);
        let beside = term.layout.lengths.iter().zip(&term.layout.sessions);
        for ((document, count), (length, session)) in rows.zip(beside) {
            while questions.next_if(|next| *next < document).is_some() {}
            let answer = match questions.peek() == Some(&document) {
                true => score::scale_by_length(ANSWER, *length, QUESTION_LENGTH),
                false => 0,
            };
            let count = u64::from((*count).min(COUNT_MAX));
            let own = score::normalize_frequency(count, *length, self.mean_length);
            let other = score::scale_by_length(count * ONE, *length, NEIGHBOUR_LENGTH);
            while self.documents.get(from).is_some_and(|first| first + NEIGHBOURS < *document) {
                from += 1;
            }
            let documents = self.documents.get(from..).unwrap_or_default();
            let sessions = self.sessions.get(from..).unwrap_or_default();
            let near = documents.iter().take_while(|at| **at <= document + NEIGHBOURS);
            let near = near.zip(sessions).zip(found.get_mut(from..).unwrap_or_default());
            for ((at, of), found) in near {
                if of != session {
                    continue;
                }
                *found += match at.checked_sub(*document) {
                    Some(0) => own,
                    Some(1) => score::mul_fixed(BEHIND[0] + answer, other),
                    Some(_) => score::mul_fixed(BEHIND[1], other),
                    None if at + 1 == *document => score::mul_fixed(BEFORE[0], other),
                    None => score::mul_fixed(BEFORE[1], other),
                };
            }
        }
        for (score, found) in self.scores.iter_mut().zip(found).filter(|(_, found)| *found > 0) {
            *score +=
                weights.iter().map(|weight| score::saturate_score(*weight, found)).sum::<u64>();
        }
    }

    /// Adds the session score of a term to all documents of the sessions in which the term occurs.
    pub(super) fn add_session(&mut self, term: &TermPostings<'_>, weight: u64) {
        let counts = term.postings.counts.iter().copied();
        let rows: Vec<(u64, u32)> = term.layout.sessions.iter().copied().zip(counts).collect();
        let mut sums = rows.chunk_by(|left, right| left.0 == right.0).map(|of_session| {
            let sum = of_session.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
            let number = of_session.first().map_or(0, |(session, _)| *session);
            (number, score::mul_fixed(weight, SESSION) * sum / (sum + 1))
        });
        let mut current = sums.next();
        for (score, session) in self.scores.iter_mut().zip(self.sessions) {
            while current.is_some_and(|(number, _)| number < *session) {
                current = sums.next();
            }
            *score += current.filter(|(number, _)| number == session).map_or(0, |(_, sum)| sum);
        }
    }

    /// Adds the score of a named speaker to the messages of the speaker (`spoken`), and to all
    /// messages of the sessions in which the speaker speaks (`in_sessions`).
    ///
    /// Both lists ascend. `weights`: for messages and for sessions. `names`: number of words of the
    /// query that are names of speakers.
    pub(super) fn add_speaker(
        &mut self,
        spoken: &[u64],
        in_sessions: &[u64],
        weights: [u64; 2],
        names: usize,
    ) {
        if spoken.is_empty() {
            return;
        }
        let [own, session] = weights;
        // A message has one speaker, so it can match only one of several names: each counts half.
        let own = score::mul_fixed(own, SPEAKER) >> u32::from(names > 1);
        add_to_listed(&mut self.scores, self.documents, spoken, own);
        let session = score::mul_fixed(session, SPEAKS_IN_SESSION);
        add_to_listed(&mut self.scores, self.sessions, in_sessions, session);
    }

    /// Adds the score of a mentioned date. `times` are the times of the documents.
    pub(super) fn add_date(&mut self, times: &[Timestamp], date: QueryDate) {
        for (score, time) in self.scores.iter_mut().zip(times) {
            *score += score::mul_fixed(DATE, date.score_time(*time));
        }
    }

    /// Adds the weight of a typed identifier to the scores of the documents `listed` (ascending).
    pub(super) fn add_identifier(&mut self, listed: &[u64], weight: u64) {
        let points = score::mul_fixed(weight, IDENTIFIER);
        add_to_listed(&mut self.scores, self.documents, listed, points);
    }

    /// Subtracts the penalty from the scores of the documents `ends_asking` (ascending), which end
    /// with a question mark. The penalty is smaller for long documents, and no score falls below 0.
    /// `lengths` are the lengths of all documents in positions.
    pub(super) fn penalize_questions(&mut self, ends_asking: &[u64], lengths: &[u32]) {
        let mut ends = ends_asking.iter().peekable();
        let rows = self.scores.iter_mut().zip(self.documents).zip(lengths);
        for ((score, document), length) in rows {
            while ends.next_if(|next| *next < document).is_some() {}
            if ends.peek() == Some(&document) {
                let less = score::scale_by_length(QUESTION_PENALTY, *length, QUESTION_LENGTH);
                *score = score.saturating_sub(less);
            }
        }
    }
}

/// Scales the weights of a word: in any form, for its session, and as typed.
///
/// The weight as typed is multiplied by [`EXACT`], and all weights of a name by [`NAME_AS_WORD`].
pub(super) fn scale_weights([any, sessions, typed]: [u64; 3], is_name: bool) -> [u64; 3] {
    let typed = score::mul_fixed(typed, EXACT);
    let factor = if is_name { NAME_AS_WORD } else { ONE };
    [any, sessions, typed].map(|weight| score::mul_fixed(weight, factor))
}

/// Adds `points` to the score of each of `numbers` that is also in `listed`. Both lists ascend.
fn add_to_listed(scores: &mut [u64], numbers: &[u64], listed: &[u64], points: u64) {
    let mut listed = listed.iter().peekable();
    for (score, number) in scores.iter_mut().zip(numbers) {
        while listed.next_if(|next| *next < number).is_some() {}
        if listed.peek() == Some(&number) {
            *score += points;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sessions::SessionBounds, *};

    fn layout(sessions: &SessionBounds, documents: &[u64], length: u32) -> DocumentLayout {
        let lengths = alloc::vec![length; documents.len()];
        DocumentLayout { lengths, sessions: sessions.session_numbers(documents) }
    }

    /// Returns the scores of `documents` for a term of weight 1 that occurs once in each document
    /// of `at`.
    fn scores(
        documents: &[u64],
        at: &[u64],
        starts: &[u64],
        asks: &[u64],
        length: u32,
    ) -> Vec<u64> {
        let sessions = SessionBounds::Starts(starts.to_vec());
        let postings = Postings { documents: at.to_vec(), counts: alloc::vec![1; at.len()] };
        let places = TermPostings { postings: &postings, layout: &layout(&sessions, at, length) };
        let ranked = layout(&sessions, documents, length);
        let mut ranking = Ranker::new(documents, &ranked, 10 << 8);
        ranking.add_term(&places, asks, &[ONE]);
        ranking.scores
    }

    #[test]
    fn what_stands_beside_a_word_counts_less_than_what_holds_it() {
        let [far, two_before, before, own, behind, two_behind, other] =
            <[u64; 7]>::try_from(scores(&[1, 2, 3, 4, 5, 6, 7], &[4], &[1], &[], 10)).unwrap();
        assert!(own > behind && behind == two_behind && behind > before);
        assert!(before == two_before && before > 0 && far == 0 && other == 0);
    }

    #[test]
    fn the_message_behind_a_question_counts_most_beside_it() {
        let plain = scores(&[4, 5, 6], &[4], &[1], &[], 10);
        let asked = scores(&[4, 5, 6], &[4], &[1], &[4], 10);
        assert!(asked[1] > 2 * plain[1]);
        assert_eq!((asked[0], asked[2]), (plain[0], plain[2]));
    }

    #[test]
    fn no_neighbour_is_of_another_session() {
        assert_eq!(scores(&[3, 4, 5], &[4], &[1, 4, 5], &[4], 10)[0], 0);
        assert_eq!(scores(&[3, 4, 5], &[4], &[1, 4, 5], &[4], 10)[2], 0);
    }

    #[test]
    fn long_messages_say_little_of_those_beside_them() {
        let short = scores(&[4, 5, 6], &[4], &[1], &[4], 15);
        let long = scores(&[4, 5, 6], &[4], &[1], &[4], 600);
        assert!(long[1] * 10 < short[1] && long[2] * 10 < short[2], "{short:?} {long:?}");
    }

    #[test]
    fn documents_that_are_left_out_get_nothing_and_pass_nothing_on_twice() {
        let all = scores(&[3, 4, 5, 6], &[3, 4, 6], &[1], &[], 10);
        let some = scores(&[3, 6], &[3, 4, 6], &[1], &[], 10);
        assert_eq!([all[0], all[3]], [some[0], some[1]]);
    }

    #[test]
    fn a_speaker_who_is_named_counts_and_so_does_their_session() {
        let sessions = SessionBounds::Starts(alloc::vec![1, 3]);
        let score_speaker = |names| {
            let ranked = layout(&sessions, &[1, 2, 3], 5);
            let mut ranking = Ranker::new(&[1, 2, 3], &ranked, 1 << 8);
            ranking.add_speaker(&[2], &sessions.session_numbers(&[2]), [ONE, ONE], names);
            ranking.scores
        };
        assert_eq!(score_speaker(1), [SPEAKS_IN_SESSION, SPEAKS_IN_SESSION + SPEAKER, 0]);
        assert_eq!(score_speaker(2)[1], SPEAKS_IN_SESSION + SPEAKER / 2);
    }

    #[test]
    fn words_anywhere_in_a_session_count_a_little() {
        let sessions = SessionBounds::Starts(alloc::vec![1, 4, 6]);
        let postings = Postings { documents: alloc::vec![1, 6], counts: alloc::vec![1, 3] };
        let places = TermPostings { postings: &postings, layout: &layout(&sessions, &[1, 6], 5) };
        let ranked = layout(&sessions, &[3, 4, 9], 5);
        let mut ranking = Ranker::new(&[3, 4, 9], &ranked, 1 << 8);
        ranking.add_session(&places, ONE);
        assert_eq!(ranking.scores, [SESSION / 2, 0, SESSION * 3 / 4]);
    }

    #[test]
    fn a_message_that_only_asks_has_a_lower_score() {
        let sessions = SessionBounds::Starts(alloc::vec![1]);
        let ranked = layout(&sessions, &[1, 2, 3], 5);
        let mut ranking = Ranker::new(&[1, 2, 3], &ranked, 1 << 8);
        ranking.scores = alloc::vec![ONE; 3];
        ranking.penalize_questions(&[2, 3], &[5, 5, 150]);
        assert_eq!(ranking.scores, [ONE, ONE - QUESTION_PENALTY, ONE - QUESTION_PENALTY / 10]);
    }
}
