//! Sorts numbers.
//!
//! A radix sort by bytes, because keys and documents differ in few bytes.

use alloc::vec::Vec;

use crate::int;

/// LIMIT: fewer numbers are sorted by insertion.
const FEW_MAX: usize = 48;

/// Sorts numbers: few by insertion, more by bytes from the lowest.
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
