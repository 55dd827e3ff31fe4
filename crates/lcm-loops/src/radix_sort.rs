//! Sorts numbers in ascending order.
//!
//! Long lists are sorted byte by byte, and a byte that is 0 in all numbers needs no pass. Numbers
//! of documents have many such bytes.

use alloc::vec::Vec;

use crate::int;

/// Most numbers that are sorted by insertion.
const FEW_MAX: usize = 48;

/// Sorts numbers in ascending order: up to 48 by insertion, more byte by byte from the lowest byte.
#[inline(never)]
pub fn sort_numbers(numbers: &mut Vec<u64>) {
    if numbers.len() <= FEW_MAX {
        return insertion_sort(numbers);
    }
    let all = numbers.iter().fold(0, |all, number| all | number);
    let mut other = alloc::vec![0; numbers.len()];
    for shift in (0..64).step_by(8) {
        if (all >> shift) & 0xFF == 0 {
            continue;
        }
        let mut starts = [0usize; 256];
        let digit = |number: u64| int::to_usize((number >> shift) & 0xFF);
        for number in numbers.iter() {
            if let Some(start) = starts.get_mut(digit(*number)) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        for number in numbers.iter() {
            if let Some(start) = starts.get_mut(digit(*number))
                && let Some(slot) = other.get_mut(*start)
            {
                *slot = *number;
                *start += 1;
            }
        }
        core::mem::swap(numbers, &mut other);
    }
}

fn insertion_sort(numbers: &mut [u64]) {
    for last in 1..numbers.len() {
        let mut at = last;
        while let Some([left, right]) = numbers.get_mut(at - 1..=at)
            && left > right
        {
            core::mem::swap(left, right);
            if at == 1 {
                break;
            }
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_sorted() {
        let mut state = 7u64;
        for count in [0, 1, 2, 3, 47, 48, 49, 255, 3_000] {
            let mut list = Vec::new();
            for at in 0..count {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                list.push(state >> (at % 64));
            }
            let mut expected = list.clone();
            expected.sort_unstable();
            sort_numbers(&mut list);
            assert_eq!(list, expected);
        }
    }
}
