//! Orders the functions of a module so that gzip compresses it best.
//!
//! In: a core module. Out: the module with names whose order is that of similar functions, for
//! `wasm-opt --reorder-functions-by-name`. gzip finds repetitions in the last 32 KiB only, and the
//! instances of a generic function, or functions of one pattern, are far apart in a module.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
};

use anyhow::Result;
use wasmparser::{Operator, Parser, Payload, TypeRef};

use crate::function_moves::{Pieces, improve_order};

/// Length in bytes of the pieces by which functions are compared. With lengths of 5, 6 and 8, the
/// compressed sizes differ by only a thousandth.
const PIECE: usize = 6;
/// Largest number of functions with the same piece. A piece that more functions have is ignored,
/// because it does not show which functions are similar.
const SHARERS_MAX: usize = 200;
/// Bytes of already placed functions with which the next function is compared: about as many as
/// gzip can refer to.
const WINDOW: usize = 30_000;

/// Numbers of the most called functions that come first: a call of one of the first 128 functions
/// needs a byte less. Which number is best differs with each module, by up to a thousandth of the
/// compressed size, so all are tried.
pub(crate) const CALLED_FIRST: [usize; 12] = [30, 40, 45, 50, 55, 60, 65, 70, 80, 90, 100, 120];

/// Returns the module with one name per function: its place in the order, in digits. The
/// `called_first` most called functions come first.
///
/// # Errors
///
/// When the module cannot be parsed.
pub(crate) fn name_by_order(module: &[u8], called_first: usize) -> Result<Vec<u8>> {
    let (imported, order) = order_module(module, called_first)?;
    Ok(with_names(module, imported, order))
}

/// Returns the number of imported functions and the order of the others.
fn order_module(module: &[u8], called_first: usize) -> Result<(u32, Vec<usize>)> {
    let Functions { imported, bodies, calls } = Functions::parse(module)?;
    let mut called: Vec<(usize, usize)> = (0..bodies.len())
        .map(|function| {
            (calls.get(&(imported + to_index(function))).copied().unwrap_or(0), function)
        })
        .collect();
    called.sort_by_key(|(count, function)| (Reverse(*count), *function));
    let called = called.into_iter().map(|(_, function)| function).take(called_first).collect();
    Ok((imported, order_functions(&bodies, called)))
}

/// Returns the module with names for a better order than that of [`name_by_order`]: single
/// functions have moved, but not the first `called_first`. `ordered` is the module in the order of
/// [`name_by_order`], because the numbers in calls depend on it.
///
/// # Errors
///
/// When a module cannot be parsed.
pub(crate) fn name_by_moves(module: &[u8], ordered: &[u8], called_first: usize) -> Result<Vec<u8>> {
    let (imported, order) = order_module(module, called_first)?;
    let Functions { bodies, .. } = Functions::parse(ordered)?;
    let Ordering { pieces: of, sharers, .. } = Ordering::find_pieces(&bodies);
    let pieces = Pieces { of: &of, sharers: &sharers };
    let moved = improve_order(&bodies, (0..bodies.len()).collect(), called_first, pieces);
    let order = moved.into_iter().filter_map(|place| order.get(place).copied()).collect();
    Ok(with_names(module, imported, order))
}

/// The functions of a module.
struct Functions<'a> {
    imported: u32,
    bodies: Vec<&'a [u8]>,
    /// How often each function is called.
    calls: BTreeMap<u32, usize>,
}

impl<'a> Functions<'a> {
    fn parse(module: &'a [u8]) -> Result<Self> {
        let mut functions = Self { imported: 0, bodies: Vec::new(), calls: BTreeMap::new() };
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let is_function = matches!(import?.ty, TypeRef::Func(_));
                        functions.imported += u32::from(is_function);
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        if let Operator::Call { function_index } = operator? {
                            *functions.calls.entry(function_index).or_default() += 1;
                        }
                    }
                    functions.bodies.push(body.as_bytes());
                }
                _ => {}
            }
        }
        Ok(functions)
    }
}

/// Returns the module with the places of its functions as their names.
fn with_names(module: &[u8], imported: u32, order: Vec<usize>) -> Vec<u8> {
    let mut named: Vec<(u32, usize)> = order
        .into_iter()
        .enumerate()
        .map(|(place, function)| (imported + to_index(function), place))
        .collect();
    named.sort_unstable();
    let mut names = Vec::new();
    push_number(&mut names, to_index(named.len()));
    for (index, place) in named {
        push_number(&mut names, index);
        push_text(&mut names, &format!("{place:06}"));
    }
    let mut section = Vec::new();
    push_text(&mut section, "name");
    // Subsection 1 of the name section holds the names of functions.
    section.push(1);
    push_number(&mut section, to_index(names.len()));
    section.extend(names);
    let mut named = module.to_vec();
    named.push(0);
    push_number(&mut named, to_index(section.len()));
    named.extend(section);
    named
}

/// Appends a number as LEB128: in groups of seven bits, the lowest first.
fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_number(bytes, to_index(text.len()));
    bytes.extend(text.as_bytes());
}

/// Returns a number of a module, which has less than 4 GiB.
fn to_index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the indices of the functions in the new order. After `first`, the next function is
/// always the one that shares most pieces with the window, relative to its length.
fn order_functions(bodies: &[&[u8]], first: Vec<usize>) -> Vec<usize> {
    let mut ordering = Ordering::find_pieces(bodies);
    for function in first {
        ordering.place_function(function);
    }
    while let Some(function) = ordering.find_next() {
        ordering.place_function(function);
    }
    ordering.order
}

/// The functions that have a place, and how similar each other function is to the window: the last
/// placed functions, up to [`WINDOW`] bytes.
struct Ordering<'a> {
    bodies: &'a [&'a [u8]],
    /// For each function, the pieces that it shares with other functions: indices of `sharers`.
    pieces: Vec<Vec<usize>>,
    /// For each piece, the functions that have it.
    sharers: Vec<Vec<usize>>,
    /// For each piece, the number of functions in the window that have it.
    in_window: Vec<usize>,
    /// For each function, the weight of its pieces that are in the window; `None`: the function
    /// already has a place.
    scores: Vec<Option<u128>>,
    window: VecDeque<usize>,
    order: Vec<usize>,
}

#[expect(clippy::indexing_slicing, reason = "functions and pieces are places in the lists")]
impl<'a> Ordering<'a> {
    fn find_pieces(bodies: &'a [&'a [u8]]) -> Self {
        let mut found: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (function, body) in bodies.iter().enumerate() {
            for piece in body.windows(PIECE) {
                let sharers = found.entry(piece).or_default();
                if sharers.last() != Some(&function) {
                    sharers.push(function);
                }
            }
        }
        let sharers: Vec<Vec<usize>> =
            found.into_values().filter(|all| (2..=SHARERS_MAX).contains(&all.len())).collect();
        let mut pieces = vec![Vec::new(); bodies.len()];
        for (piece, functions) in sharers.iter().enumerate() {
            for function in functions {
                pieces[*function].push(piece);
            }
        }
        Self {
            bodies,
            pieces,
            in_window: vec![0; sharers.len()],
            sharers,
            scores: vec![Some(0); bodies.len()],
            window: VecDeque::new(),
            order: Vec::new(),
        }
    }

    /// Gives a function the next place, and takes the oldest functions out of a window that has
    /// become too long.
    fn place_function(&mut self, function: usize) {
        self.scores[function] = None;
        self.order.push(function);
        self.window.push_back(function);
        for piece in self.pieces[function].clone() {
            self.in_window[piece] += 1;
            if self.in_window[piece] == 1 {
                self.change_scores(piece, true);
            }
        }
        let length = |window: &VecDeque<usize>| -> usize {
            window.iter().map(|function| self.bodies[*function].len()).sum()
        };
        let mut beyond = length(&self.window).saturating_sub(WINDOW);
        while beyond > 0 && self.window.len() > 1 {
            let Some(first) = self.window.pop_front() else { break };
            beyond = beyond.saturating_sub(self.bodies[first].len());
            for piece in self.pieces[first].clone() {
                self.in_window[piece] -= 1;
                if self.in_window[piece] == 0 {
                    self.change_scores(piece, false);
                }
            }
        }
    }

    fn change_scores(&mut self, piece: usize, is_added: bool) {
        let sharers = &self.sharers[piece];
        let weight = u128::from(1024 / (sharers.len().ilog2() + 1));
        for function in sharers {
            if let Some(score) = &mut self.scores[*function] {
                *score = if is_added { *score + weight } else { *score - weight };
            }
        }
    }

    /// Returns the function with the greatest quotient of its score and its length to the power of
    /// 3/4; among equals the first. `None`: all functions have a place.
    fn find_next(&self) -> Option<usize> {
        let mut best: Option<(u128, usize)> = None;
        for (function, score) in self.scores.iter().enumerate() {
            let Some(score) = score else { continue };
            let length = u128::try_from(self.bodies[function].len()).unwrap_or(u128::MAX).max(1);
            let rank = score.pow(4) * 1024 / length.pow(3);
            if best.is_none_or(|(known, _)| rank > known) {
                best = Some((rank, function));
            }
        }
        best.map(|(_, function)| function)
    }
}

#[cfg(test)]
mod tests {
    use super::{name_by_moves, name_by_order, order_functions};

    /// Returns bytes that no other kind has.
    fn build_body(kind: u8, length: usize) -> Vec<u8> {
        (0..length).map(|at| kind.wrapping_mul(41) ^ at.to_le_bytes()[0].wrapping_mul(7)).collect()
    }

    #[test]
    fn similar_functions_follow_each_other_after_the_given_ones() {
        let bodies = [
            build_body(1, 90),
            build_body(2, 60),
            build_body(1, 80),
            build_body(2, 70),
            build_body(3, 40),
        ];
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        assert_eq!(order_functions(&bodies, vec![1]), [1, 3, 0, 2, 4]);
        assert_eq!(order_functions(&bodies, Vec::new()), [0, 2, 1, 3, 4]);
        assert!(order_functions(&[], Vec::new()).is_empty());
    }

    #[test]
    fn a_module_gets_a_name_for_every_function_and_keeps_its_sections() {
        // Three functions of type 0, of which the second calls the third.
        let module = [
            b"\0asm\x01\0\0\0".as_slice(),
            &[1, 4, 1, 0x60, 0, 0],
            &[3, 4, 3, 0, 0, 0],
            &[10, 12, 3, 2, 0, 0x0b, 4, 0, 0x10, 2, 0x0b, 2, 0, 0x0b],
        ]
        .concat();
        let named = name_by_order(&module, 60).unwrap();
        let section = named.strip_prefix(module.as_slice()).unwrap();
        let mut expected = b"\0\x20\x04name\x01\x19\x03".to_vec();
        expected.extend(b"\x00\x06000001\x01\x06000002\x02\x06000000");
        assert_eq!(section, expected);
        assert!(name_by_order(b"no module", 60).is_err());
        // Functions without similar ones keep the places of the order.
        assert_eq!(name_by_moves(&module, &module, 60).unwrap(), named);
        assert!(name_by_moves(&module, b"no module", 60).is_err());
    }
}
