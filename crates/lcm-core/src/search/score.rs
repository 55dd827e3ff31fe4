//! Arithmetic of scores: term weights, term scores, and selection of the best.
//!
//! Input: counts, lengths and ages. Output: integers with 16 fractional bits, so that every host
//! computes the same order. `docs/ranking.md` has the formula.
//! Elsewhere: combining the parts (`ranking`), selecting documents (`full_text`).

use alloc::{collections::BinaryHeap, vec::Vec};

/// Fractional bits of a score.
const FRACTION_BITS: u32 = 16;
/// Fractional bits of a mean length.
const MEAN_BITS: u32 = 8;
/// Natural logarithm of 2, with 16 fractional bits.
const LN_2: u64 = 45_426;
/// The number 1, with 16 fractional bits.
pub(crate) const ONE: u64 = 1 << FRACTION_BITS;
/// BM25 parameter k1 = 0.6: how fast further occurrences saturate.
const K1: u64 = ONE * 6 / 10;
/// BM25 parameter b = 0.7: how much the length of a document counts.
const B: u64 = ONE * 7 / 10;
/// Greatest mean length that messages are compared with: 30 positions, with 8 fractional bits. A
/// greater mean would raise the scores of short messages among long ones too far.
const MEAN_LENGTH_MAX: u64 = 30 << MEAN_BITS;
/// Milliseconds of 1,000 hours, after which the score of a hit is halved in the order `hybrid`.
pub(crate) const HALF_LIFE_MS: u64 = 3_600_000_000;

/// Computes the base-2 logarithm of a number with 16 fractional bits, to within two units of the
/// last bit. The number 0 counts as 1.
fn fixed_log2(number: u64) -> u64 {
    let whole = number.max(1).ilog2();
    // The number as 1.x with 31 fractional bits; squaring doubles its logarithm.
    let shifted = u128::from(number.max(1)) << 31 >> whole;
    let mut mantissa = u64::try_from(shifted).unwrap_or(1 << 31);
    let mut log = u64::from(whole);
    for _ in 0..FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> 31;
        log <<= 1;
        if mantissa >= 1 << 32 {
            mantissa >>= 1;
            log |= 1;
        }
    }
    log
}

/// Computes the inverse document frequency ln(1 + (N - df + 0.5) / (df + 0.5)). N is `documents`,
/// and df is `holding`, but at most N.
pub(crate) fn compute_idf(documents: u64, holding: u64) -> u64 {
    let holding = holding.min(documents);
    let ratio = fixed_log2(2 * documents + 2).saturating_sub(fixed_log2(2 * holding + 1));
    (ratio * LN_2) >> FRACTION_BITS
}

/// Computes the mean length of documents in positions, with 8 fractional bits: at least 1 position,
/// for messages at most 30.
pub(crate) fn compute_mean_length(documents: u64, length_total: u64, are_messages: bool) -> u64 {
    let mean = (u128::from(length_total) << MEAN_BITS) / u128::from(documents.max(1));
    let mean = u64::try_from(mean).unwrap_or(u64::MAX).max(1 << MEAN_BITS);
    if are_messages { mean.min(MEAN_LENGTH_MAX) } else { mean }
}

/// Multiplies two numbers with 16 fractional bits.
pub(crate) const fn mul_fixed(left: u64, right: u64) -> u64 {
    (left * right) >> FRACTION_BITS
}

/// Divides a number of occurrences by 1 - b + b * length / mean length, as BM25 does. `mean_length`
/// has 8 fractional bits.
pub(crate) fn normalize_frequency(count: u64, length: u32, mean_length: u64) -> u64 {
    let long = (u64::from(length) << MEAN_BITS) * B / mean_length.max(1);
    (count << (2 * FRACTION_BITS)) / (ONE - B + long)
}

/// Multiplies a number by `length_max / length` if `length` exceeds `length_max`.
pub(crate) fn scale_by_length(number: u64, length: u32, length_max: u64) -> u64 {
    number * length_max / u64::from(length).max(length_max)
}

/// Computes the score of a term: weight * (k1 + 1) * count / (count + k1), as BM25 does. `counted`
/// is the normalised number of occurrences.
pub(crate) fn saturate_score(weight: u64, counted: u64) -> u64 {
    mul_fixed(weight * counted / (counted + K1), ONE + K1)
}

/// Reduces a score by the age of the hit, for the order `hybrid`: a half is left after 1,000 hours,
/// a third after 2,000.
pub(crate) fn decay_by_age(score: u64, age_ms: u64) -> u64 {
    let age_ms = age_ms.min(1 << 52);
    let aged = u128::from(score) * u128::from(HALF_LIFE_MS) / u128::from(HALF_LIFE_MS + age_ms);
    u64::try_from(aged).unwrap_or(u64::MAX)
}

/// Converts a score to thousandths, rounded down, for answers.
pub(crate) const fn to_thousandths(score: u64) -> u64 {
    (score * 1_000) >> FRACTION_BITS
}

/// Selects the greatest items, at most `limit`, greatest first. An item is a rank with a number; of
/// equal ranks, the greater number is first.
pub(crate) fn select_top(
    items: &mut dyn Iterator<Item = (u64, u64)>,
    limit: usize,
) -> Vec<(u64, u64)> {
    // The heap holds complements, so that the least of the selected items is on top.
    let complement = |(rank, number): (u64, u64)| (!rank, !number);
    let mut heap: BinaryHeap<(u64, u64)> = BinaryHeap::with_capacity(limit + 1);
    for item in items.map(complement) {
        if heap.len() < limit {
            heap.push(item);
        } else if heap.peek().is_some_and(|least| item < *least) {
            heap.pop();
            heap.push(item);
        }
    }
    let mut out = Vec::with_capacity(heap.len());
    while let Some(item) = heap.pop() {
        out.push(complement(item));
    }
    out.reverse();
    out
}

#[cfg(test)]
#[expect(clippy::as_conversions, reason = "numbers of a test are small")]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_floats() {
        for number in (1..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 1]) {
            let exact = (number as f64).log2() * 65_536.0;
            assert!((fixed_log2(number) as f64 - exact).abs() < 2.0, "{number}");
        }
    }

    #[test]
    fn scores_are_those_of_floats() {
        for documents in [1u64, 10, 588, 100_000, 1 << 33] {
            for holding in [0, 1, documents / 2, documents] {
                let (n, df) = (documents as f64, holding as f64);
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                let fixed = compute_idf(documents, holding);
                assert!((fixed as f64 / 65_536.0 - idf).abs() < 0.0001, "{documents} {holding}");
                for (count, length) in [(1u64, 1u32), (2, 40), (2, 3_000), (1, 1 << 24)] {
                    for (mean, are_messages) in [(37.0, false), (30.0, true)] {
                        let length_total = documents * 37;
                        let long = 0.3 + 0.7 * f64::from(length) / mean;
                        let found = count as f64 / long;
                        let exact = idf * 1.6 * found / (found + 0.6);
                        let mean = compute_mean_length(documents, length_total, are_messages);
                        let fixed = saturate_score(fixed, normalize_frequency(count, length, mean))
                            as f64
                            / 65_536.0;
                        assert!((fixed - exact).abs() < 0.003 + exact * 0.002, "{fixed} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_long_counts_less_in_proportion() {
        assert_eq!(scale_by_length(ONE, 30, 30), ONE);
        assert_eq!(scale_by_length(ONE, 60, 30), ONE / 2);
        assert_eq!(scale_by_length(ONE, 0, 30), ONE);
    }

    #[test]
    fn hybrid_weighs_age() {
        let hour = 3_600_000;
        let (ten, six) = (10 << FRACTION_BITS, 6 << FRACTION_BITS);
        assert_eq!(to_thousandths(decay_by_age(ten, 1_000 * hour)), 5_000);
        assert_eq!(to_thousandths(decay_by_age(six, 0)), 6_000);
        assert_eq!(decay_by_age(u64::MAX >> 20, u64::MAX) >> 30, 0);
    }

    #[test]
    fn the_greatest_come_first() {
        let mut pairs = (0..1_000u64).map(|number| (number * 7_919 % 1_000, number));
        let ranks = select_top(&mut pairs, 3).into_iter().map(|(rank, _)| rank);
        assert_eq!(ranks.collect::<Vec<_>>(), [999, 998, 997]);
        let two = [(7, 1), (7, 2)];
        assert_eq!(select_top(&mut two.into_iter(), 3), [(7, 2), (7, 1)]);
        assert_eq!(select_top(&mut two.into_iter(), 0), []);
    }
}
