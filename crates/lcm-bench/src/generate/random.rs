//! The random numbers of a workload: Mulberry32, as the format `lcm-workload/1` requires.
//!
//! In: a seed. Out: a sequence that is the same everywhere. `libm` computes powers and
//! exponentials, because the libraries of machines differ in the last digit.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u32,
}

impl Random {
    /// Starts the sequence of this seed.
    pub(crate) const fn new(seed: u32) -> Self {
        Self { state: seed }
    }

    fn bits(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x6D2B_79F5);
        let seed = self.state;
        let mixed = (seed ^ (seed >> 15)).wrapping_mul(seed | 1);
        let mixed = mixed.wrapping_add((mixed ^ (mixed >> 7)).wrapping_mul(mixed | 61)) ^ mixed;
        mixed ^ (mixed >> 14)
    }

    /// A number from 0 up to, not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(self.bits()) / 4_294_967_296.0
    }

    /// Draws `true` with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A whole number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let scaled = (u64::from(self.bits()) * u64::from(bound)) >> 32;
        u32::try_from(scaled).unwrap_or(u32::MAX)
    }

    /// Draws one of `choices`; an empty text if there are no choices.
    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let count = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        let index = usize::try_from(self.below(count)).unwrap_or(usize::MAX);
        choices.get(index).copied().unwrap_or_default()
    }

    /// Draws a nearly normal number with mean 0 and standard deviation 1, as the sum of six uniform
    /// numbers.
    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.unit()).sum();
        (sum - 3.0) / 0.5_f64.sqrt()
    }

    /// Draws a log-normal number of tokens with this median, at least 6.
    pub(crate) fn length_tokens(&mut self, median: f64, deviation: f64) -> u64 {
        whole((median * libm::exp(deviation * self.normal()) + 0.5).floor()).max(6)
    }
}

/// Converts a float to a whole number, rounded down; a negative number becomes 0.
#[expect(clippy::as_conversions, reason = "there is no other way; it saturates")]
pub(crate) const fn whole(value: f64) -> u64 {
    value as u64
}
