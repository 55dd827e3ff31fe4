//! Scores in whole numbers: the weight of a term, what a document gets for it, the best of many.
//!
//! BM25 with the constants of the measurements this search was designed with, in fixed point of 16
//! fractional bits, so that every host orders alike. Not here: what is a hit.

use alloc::{collections::BinaryHeap, vec::Vec};

/// Fractional bits of a score.
const FRACTION_BITS: u32 = 16;
/// Fractional bits of a mean length.
const MEAN_BITS: u32 = 8;
/// Natural logarithm of 2.
const LN_2: u64 = 45_426;
/// BM25's k1 = 0.6 and b = 0.4, as they occur in its formula: k1 + 1, k1 (1 - b) and k1 b.
const K1_PLUS_1: u64 = 104_858;
const K1_FIXED: u64 = 23_593;
const K1_LENGTH: u64 = 15_729;
/// Milliseconds of 1,000 hours, by which a hit's weight halves in the order `hybrid`.
const HALF_LIFE_MS: u64 = 3_600_000_000;

/// Logarithm to base 2 of a number from 1, with 16 fractional bits, rounded down.
fn log2(number: u64) -> u64 {
    let whole = number.max(1).ilog2();
    // The number as 1.x with 31 fractional bits; squaring it doubles the logarithm.
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

/// Weight of a term that `holding` of `documents` documents hold:
/// ln(1 + (N - df + 0.5) / (df + 0.5)).
pub(crate) fn weight(documents: u64, holding: u64) -> u64 {
    let holding = holding.min(documents);
    let ratio = log2(2 * documents + 2).saturating_sub(log2(2 * holding + 1));
    (ratio * LN_2) >> FRACTION_BITS
}

/// Mean length of documents, at least one, with 8 fractional bits.
pub(crate) fn mean_length(documents: u64, length_total: u64) -> u64 {
    let mean = (u128::from(length_total) << MEAN_BITS) / u128::from(documents.max(1));
    u64::try_from(mean).unwrap_or(u64::MAX).max(1 << MEAN_BITS)
}

/// The part of BM25's denominator that depends on the length of a document alone.
pub(crate) fn norm(length: u32, mean_length: u64) -> u64 {
    K1_FIXED + (u64::from(length) << MEAN_BITS) * K1_LENGTH / mean_length.max(1)
}

/// What a document of this norm gets for a term of this weight that it holds `count` times.
pub(crate) fn score(weight: u64, count: u32, norm: u64) -> u64 {
    let count = u64::from(count);
    weight * K1_PLUS_1 * count / ((count << FRACTION_BITS) + norm)
}

/// The score of a hit of this age, for the order `hybrid`: half of it after 1,000 hours.
pub(crate) fn aged(score: u64, age_ms: u64) -> u64 {
    let age_ms = age_ms.min(1 << 52);
    let aged = u128::from(score) * u128::from(HALF_LIFE_MS) / u128::from(HALF_LIFE_MS + age_ms);
    u64::try_from(aged).unwrap_or(u64::MAX)
}

/// A score in thousandths, as it is shown.
pub(crate) const fn thousandths(score: u64) -> u64 {
    (score * 1_000) >> FRACTION_BITS
}

/// The greatest of many, greatest first.
pub(crate) fn greatest(
    items: &mut dyn Iterator<Item = (u64, u64)>,
    limit: usize,
) -> Vec<(u64, u64)> {
    // The least first: complements.
    let turned = |(rank, number): (u64, u64)| (!rank, !number);
    let mut heap: BinaryHeap<(u64, u64)> = BinaryHeap::with_capacity(limit + 1);
    for item in items.map(turned) {
        if heap.len() < limit {
            heap.push(item);
        } else if heap.peek().is_some_and(|least| item < *least) {
            heap.pop();
            heap.push(item);
        }
    }
    let mut out = Vec::with_capacity(heap.len());
    while let Some(item) = heap.pop() {
        out.push(turned(item));
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
            assert!((log2(number) as f64 - exact).abs() < 2.0, "{number}");
        }
    }

    #[test]
    fn scores_are_those_of_floats() {
        for documents in [1u64, 10, 588, 100_000, 1 << 33] {
            for holding in [0, 1, documents / 2, documents] {
                let (n, df) = (documents as f64, holding as f64);
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                let fixed = weight(documents, holding);
                assert!((fixed as f64 / 65_536.0 - idf).abs() < 0.0001, "{documents} {holding}");
                for (count, length) in [(1u32, 1u32), (3, 40), (50, 3_000), (1_024, 1 << 24)] {
                    let total = documents * 37;
                    let tf = f64::from(count);
                    let exact = idf * 1.6 * tf
                        / (tf + 0.6 * (0.6 + 0.4 * f64::from(length) * n / total as f64));
                    let norm = norm(length, mean_length(documents, total));
                    let fixed = score(fixed, count, norm) as f64 / 65_536.0;
                    assert!((fixed - exact).abs() < 0.003 + exact * 0.002, "{fixed} {exact}");
                }
            }
        }
    }

    #[test]
    fn case_68_hybrid_weighs_age() {
        let hour = 3_600_000;
        let (ten, six) = (10 << FRACTION_BITS, 6 << FRACTION_BITS);
        assert_eq!(thousandths(aged(ten, 1_000 * hour)), 5_000);
        assert_eq!(thousandths(aged(six, 0)), 6_000);
        assert_eq!(aged(u64::MAX >> 20, u64::MAX) >> 30, 0);
    }

    #[test]
    fn the_greatest_come_first() {
        let mut pairs = (0..1_000u64).map(|number| (number * 7_919 % 1_000, number));
        let ranks = greatest(&mut pairs, 3).into_iter().map(|(rank, _)| rank);
        assert_eq!(ranks.collect::<Vec<_>>(), [999, 998, 997]);
        let two = [(7, 1), (7, 2)];
        assert_eq!(greatest(&mut two.into_iter(), 3), [(7, 2), (7, 1)]);
        assert_eq!(greatest(&mut two.into_iter(), 0), []);
    }
}
