//! Grams: all three-byte sequences of a text, for searches with regular expressions.
//!
//! The index lists for each gram its *units*, blocks of 64 messages. In grams, ASCII letters are
//! lower-cased. Elsewhere: collecting grams ([`lcm_loops::posting_collector`]).

/// Number of messages in one unit.
pub(crate) const UNIT_MESSAGES: u64 = 64;

/// Calls `each` with every gram of a text, repeated grams included. Tests compare the collector
/// with this function.
#[cfg(test)]
pub(crate) fn each_gram(text: &str, each: &mut dyn FnMut([u8; 3])) {
    for window in text.as_bytes().windows(3) {
        if let [a, b, c] = window {
            each([a.to_ascii_lowercase(), b.to_ascii_lowercase(), c.to_ascii_lowercase()]);
        }
    }
}

/// Returns the unit that contains a message; the first unit is 0.
pub(crate) const fn unit_of_message(seq: u64) -> u64 {
    seq.saturating_sub(1) / UNIT_MESSAGES
}

/// Returns the first and the last seq of a unit. The newest unit may have fewer messages stored.
pub(crate) const fn messages_of_unit(unit: u64) -> (u64, u64) {
    (unit * UNIT_MESSAGES + 1, (unit + 1) * UNIT_MESSAGES)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn grams_are_bytes_in_lower_case() {
        let mut found = Vec::new();
        each_gram("aBC\u{c9}", &mut |gram| found.push(gram));
        assert_eq!(found, [*b"abc", [b'b', b'c', 0xc3], [b'c', 0xc3, 0x89]]);
        each_gram("ab", &mut |_| panic!("no gram"));
    }

    #[test]
    fn units_are_64_messages() {
        for unit in [0, 1, 7] {
            let (first, last) = messages_of_unit(unit);
            assert_eq!((unit_of_message(first), unit_of_message(last)), (unit, unit));
            assert_eq!(unit_of_message(last + 1), unit + 1);
        }
        assert_eq!(messages_of_unit(0), (1, 64));
    }
}
