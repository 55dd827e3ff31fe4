//! Estimates how many bits deflate needs for bytes that follow others.
//!
//! In: the bytes before, one function after the other. Out: the cost of the next function. The
//! parse is that of gzip (the longest match, taken later if the next byte has a longer one), with
//! fixed costs of the symbols, so that a function can be measured without its block.

/// Bytes to which deflate can refer back.
pub(crate) const REACH: usize = 32_768;
/// Costs are counted in parts of a bit.
const PARTS: u64 = 16;
/// Shortest and longest match.
const MATCH: [usize; 2] = [3, 258];
/// Earlier places that are compared for each byte.
const PROBES: usize = 16;
/// The hash table has two to the power of this many places.
const HASH_BITS: u32 = 15;

/// The costs of literals, of matches by their length, and of distances by their code.
pub(crate) struct Costs {
    literals: Vec<u64>,
    lengths: Vec<u64>,
    distances: Vec<u64>,
}

/// How often each symbol occurs: 256 literals and 29 lengths, and 30 distances.
#[derive(Clone)]
struct Counts {
    symbols: Vec<u64>,
    distances: Vec<u64>,
}

/// Returns the code of a length or distance, less its least value, and its extra bits. Each power
/// of two has `2^steps` codes.
fn encode_value(value: usize, steps: u32) -> (usize, u32) {
    let bits = value.max(1).ilog2();
    if bits <= steps {
        return (value, 0);
    }
    let extra = bits - steps;
    let code = usize::try_from(extra).unwrap_or(0) << steps;
    (code + (value >> extra), extra)
}

fn encode_length(length: usize) -> (usize, u32) {
    let [shortest, longest] = MATCH;
    if length == longest { (28, 0) } else { encode_value(length - shortest, 2) }
}

fn encode_distance(distance: usize) -> (usize, u32) {
    encode_value(distance - 1, 1)
}

/// Returns the parts of a bit that a symbol needs which occurs `count` times among `total`.
fn measure_symbol(count: u64, total: u64) -> u64 {
    let ratio = (total << 16) / count.max(1);
    let bits = ratio.max(1).ilog2();
    let fraction = (ratio << 4 >> bits) & (PARTS - 1);
    (u64::from(bits) * PARTS + fraction).saturating_sub(16 * PARTS).max(PARTS)
}

#[expect(clippy::indexing_slicing, reason = "symbols are places in the tables")]
impl Costs {
    /// Returns the costs of the symbols of all functions in this order.
    pub(crate) fn learn<'a>(functions: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let even = Counts { symbols: vec![1; 285], distances: vec![1; 30] };
        let mut costs = Self::from_counts(&even);
        for _ in 0..2 {
            let mut counts = even.clone();
            let mut window = Window::default();
            for function in functions.clone() {
                window.append_function(function, &costs, Some(&mut counts));
            }
            costs = Self::from_counts(&counts);
        }
        costs
    }

    fn from_counts(counts: &Counts) -> Self {
        let totals = [counts.symbols.iter().sum(), counts.distances.iter().sum()];
        let [symbols, distances]: [u64; 2] = totals;
        let [shortest, longest] = MATCH;
        Self {
            literals: counts
                .symbols
                .iter()
                .take(256)
                .map(|it| measure_symbol(*it, symbols))
                .collect(),
            lengths: (0..=longest)
                .map(|length| {
                    let (code, extra) = encode_length(length.max(shortest));
                    measure_symbol(counts.symbols[256 + code], symbols) + PARTS * u64::from(extra)
                })
                .collect(),
            distances: (0..30_usize)
                .map(|code| {
                    let extra = u64::try_from(code / 2).unwrap_or(0).saturating_sub(1);
                    measure_symbol(counts.distances[code], distances) + PARTS * extra
                })
                .collect(),
        }
    }
}

/// The bytes before the next function, and where each three of them occur.
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// For each hash of three bytes, the end of the chain: one more than the last place.
    last: Vec<usize>,
    /// For each place, one more than the place before in its chain.
    before: Vec<usize>,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: Vec::new(), last: vec![0; 1 << HASH_BITS], before: Vec::new() }
    }
}

#[expect(clippy::indexing_slicing, reason = "places are below the number of bytes")]
impl Window {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.before.clear();
        self.last.fill(0);
    }

    /// Appends a function without measuring it.
    pub(crate) fn push_function(&mut self, function: &[u8]) {
        let start = self.extend_bytes(function);
        for place in start..self.bytes.len() {
            self.insert_place(place);
        }
    }

    /// Appends a function and returns its cost.
    pub(crate) fn measure_function(&mut self, function: &[u8], costs: &Costs) -> u64 {
        self.append_function(function, costs, None)
    }

    fn extend_bytes(&mut self, function: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend(function);
        self.before.resize(self.bytes.len(), 0);
        start
    }

    fn append_function(
        &mut self,
        function: &[u8],
        costs: &Costs,
        mut counts: Option<&mut Counts>,
    ) -> u64 {
        let mut at = self.extend_bytes(function);
        let (mut total, mut inserted) = (0, at);
        let mut known = None;
        while at < self.bytes.len() {
            let (length, distance) =
                known.take().unwrap_or_else(|| self.find_match(at, &mut inserted, MATCH[0] - 1));
            let is_match = length > MATCH[0] || (length == MATCH[0] && distance <= 8192);
            if is_match && length < 128 {
                let later = self.find_match(at + 1, &mut inserted, length);
                known = (later.0 > length).then_some(later);
            }
            if is_match && known.is_none() {
                let code = encode_distance(distance).0;
                total += costs.lengths[length] + costs.distances[code];
                if let Some(counts) = &mut counts {
                    counts.symbols[256 + encode_length(length).0] += 1;
                    counts.distances[code] += 1;
                }
                at += length;
            } else {
                let literal = usize::from(self.bytes[at]);
                total += costs.literals[literal];
                if let Some(counts) = &mut counts {
                    counts.symbols[literal] += 1;
                }
                at += 1;
            }
        }
        for place in inserted..self.bytes.len() {
            self.insert_place(place);
        }
        total
    }

    fn hash_bytes(&self, place: usize) -> Option<usize> {
        let three = self.bytes.get(place..place + 3)?;
        let number = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        usize::try_from(number.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)).ok()
    }

    fn insert_place(&mut self, place: usize) {
        if let Some(hash) = self.hash_bytes(place) {
            self.before[place] = self.last[hash];
            self.last[hash] = place + 1;
        }
    }

    /// Returns the length and distance of the longest match that is longer than `least`, or zeros;
    /// the places before are inserted first.
    fn find_match(&mut self, at: usize, inserted: &mut usize, least: usize) -> (usize, usize) {
        while *inserted < at {
            self.insert_place(*inserted);
            *inserted += 1;
        }
        let (mut length, mut distance) = (least, 0);
        let longest = (self.bytes.len() - at).min(MATCH[1]);
        let Some(hash) = self.hash_bytes(at).filter(|_| length < longest) else { return (0, 0) };
        let mut next = self.last[hash];
        for _ in 0..PROBES {
            if next == 0 || at + 1 - next > REACH {
                break;
            }
            let earlier = next - 1;
            if self.bytes[earlier + length] == self.bytes[at + length] {
                let pairs = self.bytes[earlier..].iter().zip(&self.bytes[at..at + longest]);
                let same = pairs.take_while(|(one, other)| one == other).count();
                if same > length {
                    (length, distance) = (same, at - earlier);
                    if same == longest {
                        break;
                    }
                }
            }
            next = self.before[earlier];
        }
        if distance == 0 { (0, 0) } else { (length, distance) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Costs, Window, encode_distance, encode_length};

    #[test]
    fn codes_are_those_of_deflate() {
        assert_eq!(
            [3, 10, 11, 12, 13, 257, 258].map(encode_length),
            [(0, 0), (7, 0), (8, 1), (8, 1), (9, 1), (27, 5), (28, 0)]
        );
        assert_eq!(
            [1, 4, 5, 6, 7, 24_577, 32_768].map(encode_distance),
            [(0, 0), (3, 0), (4, 1), (4, 1), (5, 1), (29, 13), (29, 13)]
        );
    }

    #[test]
    fn a_repeated_function_costs_less_within_reach() {
        let function: Vec<u8> = (0..=255).collect();
        let other = vec![7; super::REACH];
        let costs = Costs::learn([function.as_slice(), &function, &other].into_iter());
        let mut window = Window::default();
        let alone = window.measure_function(&function, &costs);
        let again = window.measure_function(&function, &costs);
        assert!(again * 20 < alone, "{again} {alone}");
        window.push_function(&other);
        assert_eq!(window.measure_function(&function, &costs), alone);
        window.clear();
        assert_eq!(window.measure_function(&function, &costs), alone);
    }
}
