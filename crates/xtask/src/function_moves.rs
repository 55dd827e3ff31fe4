//! Moves single functions of an order to places where deflate needs fewer bits.
//!
//! In: the functions and an order of similar functions. Out: a better order. A move changes only
//! the costs of the function and of those that follow its old or new place within the reach of
//! deflate, so these are measured (`deflate_cost`), and only moves that save bits are made.

use crate::deflate_cost::{Costs, REACH, Window};

/// Rounds, in each of which every function is tried at other places once. The later rounds save
/// little.
const ROUNDS: usize = 6;
/// Places that are tried for a function in a round.
const TRIED: usize = 8;
/// Functions between two places that are tried. It differs between rounds, so that they try others.
const APART: [usize; 4] = [12, 3, 30, 6];
/// Distances in bytes, and how much more a piece saves when it is within each of them.
const SAVED: [(usize, i64); 4] = [(1000, 8), (4000, 16), (12_000, 16), (30_000, 60)];
/// Bytes that the choice of the tried places does not tell apart.
const GRAIN: usize = 16;
/// Number of pieces that a function must share with the moved one to be measured again.
const SHARED_MIN: u32 = 4;

/// The pieces of functions, as [`crate::function_order`] finds them.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    /// For each function, the pieces that it shares with others.
    pub(crate) of: &'a [Vec<usize>],
    /// For each piece, the functions that have it.
    pub(crate) sharers: &'a [Vec<usize>],
}

/// Returns a better order, in which the first `fixed` functions have not moved.
pub(crate) fn improve_order(
    functions: &[&[u8]],
    order: Vec<usize>,
    fixed: usize,
    pieces: Pieces<'_>,
) -> Vec<usize> {
    let costs = Costs::learn(order.iter().filter_map(|function| functions.get(*function).copied()));
    let known = vec![0; functions.len()];
    let window = Window::default();
    let mut moves = Moves { functions, pieces, fixed, order, costs, known, window, apart: 0 };
    // Numbers that look like chance, from a generator of 64 bits.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for apart in APART.into_iter().cycle().take(ROUNDS) {
        moves.apart = apart;
        moves.measure_all();
        let mut turns = moves.order.get(fixed..).unwrap_or_default().to_vec();
        turns.sort_by_cached_key(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        });
        for function in turns {
            moves.improve_one(function);
        }
    }
    moves.order
}

struct Moves<'a> {
    functions: &'a [&'a [u8]],
    pieces: Pieces<'a>,
    fixed: usize,
    order: Vec<usize>,
    costs: Costs,
    /// The cost of each function at its place.
    known: Vec<u64>,
    window: Window,
    /// Functions between two places that are tried.
    apart: usize,
}

#[expect(clippy::indexing_slicing, reason = "functions and pieces are places in the lists")]
impl Moves<'_> {
    fn measure_all(&mut self) {
        self.window.clear();
        for function in &self.order {
            let bytes = self.functions[*function];
            self.known[*function] = self.window.measure_function(bytes, &self.costs);
        }
    }

    /// Moves the function to the best of the tried places if that saves bits.
    fn improve_one(&mut self, function: usize) {
        let Some(old) = self.order.iter().position(|other| *other == function) else { return };
        let shared = self.count_shared(function);
        let mut others = self.order.clone();
        others.remove(old);
        let places = self.choose_places(function, &others, old);
        let removed = self.measure_after(&others[..old], &others[old..], None, &shared);
        let before = self.sum_known(&removed) + self.known[function];
        let kept: Vec<(usize, u64)> =
            removed.iter().map(|(other, _)| (*other, self.known[*other])).collect();
        self.remember_costs(&removed);
        let after_removal: u64 = removed.iter().map(|(_, cost)| cost).sum();
        let mut best = None;
        // Only as much as the removal saves may be lost.
        let mut least = i128::from(before) - i128::from(after_removal);
        for place in places {
            let (ahead, behind) = others.split_at(place);
            let measured = self.measure_after(ahead, behind, Some(function), &shared);
            let known = self.sum_known(&measured[1..]);
            let sum: u64 = measured.iter().map(|(_, cost)| cost).sum();
            let change = i128::from(sum) - i128::from(known);
            if change < least {
                least = change;
                best = Some((place, measured));
            }
        }
        if let Some((place, measured)) = best {
            self.remember_costs(&measured);
            others.insert(place, function);
            self.order = others;
        } else {
            self.remember_costs(&kept);
        }
    }

    fn sum_known(&self, measured: &[(usize, u64)]) -> u64 {
        measured.iter().map(|(function, _)| self.known[*function]).sum()
    }

    fn remember_costs(&mut self, measured: &[(usize, u64)]) {
        for (function, cost) in measured {
            self.known[*function] = *cost;
        }
    }

    /// Returns how many pieces each function shares with this one.
    fn count_shared(&self, function: usize) -> Vec<u32> {
        let mut shared = vec![0; self.functions.len()];
        for piece in &self.pieces.of[function] {
            for other in &self.pieces.sharers[*piece] {
                shared[*other] += 1;
            }
        }
        shared[function] = 0;
        shared
    }

    /// Estimates for each place between the other functions how much this function would save, and
    /// would let the functions after it save.
    fn estimate_savings(&self, function: usize, others: &[usize]) -> Vec<i64> {
        let mut starts = vec![0; self.functions.len()];
        let mut places = Vec::new();
        let mut end = 0;
        for other in others {
            starts[*other] = end;
            places.push(end);
            end += self.functions[*other].len();
        }
        places.push(end);
        let mut changes = vec![0; end / GRAIN + 3];
        let mut add = |from: usize, to: usize, value: i64| {
            changes[from.min(end) / GRAIN + 1] += value;
            changes[to.min(end) / GRAIN + 1] -= value;
        };
        for piece in &self.pieces.of[function] {
            let sharers = &self.pieces.sharers[*piece];
            let weight = 256 / i64::from(sharers.len().ilog2() + 1);
            let others = sharers.iter().filter(|other| **other != function);
            let mut found: Vec<usize> = others.map(|other| starts[*other]).collect();
            found.sort_unstable();
            for (within, value) in SAVED.map(|(within, value)| (within, value * weight)) {
                let (Some(first), Some(last)) = (found.first(), found.last()) else { continue };
                add(first.saturating_sub(within), *first, value);
                for pair in found.windows(2) {
                    let [one, other] = [pair[0], pair[1]];
                    add(one, other.min(one + within), value);
                    // A piece within reach of another already saves what it can.
                    if other - one > within {
                        add(one.max(other - within), other, value);
                    }
                }
                add(*last, last + within, value);
            }
        }
        let sums: Vec<i64> = changes
            .iter()
            .scan(0, |sum, change| {
                *sum += change;
                Some(*sum)
            })
            .collect();
        places.into_iter().map(|place| sums[place / GRAIN]).collect()
    }

    /// Returns the places between the other functions at which the function may save most.
    fn choose_places(&self, function: usize, others: &[usize], old: usize) -> Vec<usize> {
        let values = self.estimate_savings(function, others);
        let mut ranked: Vec<usize> = (self.fixed..values.len()).collect();
        ranked.sort_unstable_by_key(|place| (std::cmp::Reverse(values[*place]), *place));
        let mut chosen: Vec<usize> = Vec::new();
        for place in ranked {
            let is_new = chosen.iter().all(|other| other.abs_diff(place) > self.apart);
            if place != old && is_new {
                chosen.push(place);
                if chosen.len() == TRIED {
                    break;
                }
            }
        }
        chosen
    }

    /// Measures `inserted` after the functions of `ahead`, and then those of `behind` within reach
    /// that share enough pieces with the moved function.
    fn measure_after(
        &mut self,
        ahead: &[usize],
        behind: &[usize],
        inserted: Option<usize>,
        shared: &[u32],
    ) -> Vec<(usize, u64)> {
        let mut bytes = 0;
        let reached = ahead.iter().rev().take_while(|function| {
            let is_near = bytes < REACH;
            bytes += self.functions[**function].len();
            is_near
        });
        let start = ahead.len() - reached.count();
        self.window.clear();
        for function in &ahead[start..] {
            self.window.push_function(self.functions[*function]);
        }
        let mut measured = Vec::new();
        if let Some(function) = inserted {
            measured.push((
                function,
                self.window.measure_function(self.functions[function], &self.costs),
            ));
        }
        let mut bytes = 0;
        for function in behind {
            let body = self.functions[*function];
            if shared[*function] >= SHARED_MIN {
                measured.push((*function, self.window.measure_function(body, &self.costs)));
            } else {
                self.window.push_function(body);
            }
            bytes += body.len();
            if bytes > REACH {
                break;
            }
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::{Pieces, improve_order};

    /// Returns bytes that no other kind has.
    fn build_body(kind: u8, length: usize) -> Vec<u8> {
        let mut state = u32::from(kind) + 1;
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect()
    }

    #[test]
    fn a_function_moves_into_the_reach_of_a_similar_one() {
        let bodies: Vec<Vec<u8>> = [(1, 400), (2, 40_000), (1, 390)]
            .into_iter()
            .map(|(kind, length)| build_body(kind, length))
            .collect();
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        // The first and the last function share a hundred pieces.
        let of = [(0..100).collect(), Vec::new(), (0..100).collect()];
        let sharers = vec![vec![0, 2]; 100];
        let pieces = Pieces { of: &of, sharers: &sharers };
        assert_eq!(improve_order(&bodies, vec![0, 1, 2], 1, pieces), [0, 2, 1]);
        // A fixed function keeps its place.
        assert_eq!(improve_order(&bodies, vec![0, 1, 2], 3, pieces), [0, 1, 2]);
        assert!(improve_order(&[], Vec::new(), 0, Pieces { of: &[], sharers: &[] }).is_empty());
    }
}
