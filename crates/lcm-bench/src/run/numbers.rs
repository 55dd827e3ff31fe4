//! Statistics of measurements.

/// Returns the least value that at least `percent` % of the values do not exceed; `None`: there are
/// no values.
pub(super) fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns the middle value, or the mean of the two middle values; `None`: no values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied()?;
    if sorted.len() % 2 == 1 {
        return Some(middle);
    }
    sorted.get(sorted.len() / 2 - 1).map(|before| f64::midpoint(*before, middle))
}

/// Returns the largest value; `None`: no values.
pub(super) fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// Returns the mean of the last tenth of the values, divided by the mean of the first tenth.
/// `None`: fewer than 20 values, or a first tenth of zeros.
pub(super) fn last_to_first_tenth(values: &[f64]) -> Option<f64> {
    let tenth = values.len() / 10;
    if tenth < 2 {
        return None;
    }
    let sum = |part: Option<&[f64]>| part.map(|part| part.iter().sum::<f64>());
    let first = sum(values.get(..tenth))?;
    let last = sum(values.get(values.len() - tenth..))?;
    (first > 0.0).then(|| last / first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 95), Some(190.0));
        assert_eq!(percentile(&values, 50), Some(100.0));
        assert_eq!(percentile(&[7.0], 95), Some(7.0));
        assert_eq!(percentile(&[], 95), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn tenths_are_compared_by_their_means() {
        let values: Vec<f64> = (0..20).map(|index| if index < 18 { 2.0 } else { 3.0 }).collect();
        assert_eq!(last_to_first_tenth(&values), Some(1.5));
        assert_eq!(last_to_first_tenth(&values[..19]), None);
    }
}
