//! Half-open window of time, by which a search limits its matches.

use lcm_text::{base::time, types::api::Timestamp};

/// Times from `since` (included) to `before` (excluded). `None`: no bound on that side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeWindow {
    pub(crate) since: Option<Timestamp>,
    pub(crate) before: Option<Timestamp>,
}

impl TimeWindow {
    /// Returns whether the window contains every time.
    pub(crate) const fn is_unbounded(&self) -> bool {
        self.since.is_none() && self.before.is_none()
    }

    /// Returns whether the window contains a time. A bounded window contains no undated message.
    pub(crate) fn contains(&self, time: Timestamp) -> bool {
        self.is_unbounded()
            || (time != time::UNDATED
                && self.since.is_none_or(|since| time >= since)
                && self.before.is_none_or(|before| time < before))
    }

    /// Returns the window of the times that are in both windows.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let later = self.since.max(other.since);
        let earlier = match (self.before, other.before) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        Self { since: later, before: earlier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_counts_and_the_last_does_not() {
        let window = TimeWindow { since: Some(10), before: Some(20) };
        assert!(
            !window.contains(9)
                && window.contains(10)
                && window.contains(19)
                && !window.contains(20)
        );
        let both = window.intersection(&TimeWindow { since: Some(12), before: None });
        assert_eq!((both.since, both.before), (Some(12), Some(20)));
        assert!(TimeWindow::default().is_unbounded() && TimeWindow::default().contains(0));
        let until = TimeWindow { since: None, before: Some(20) };
        assert!(until.contains(1) && !until.contains(time::UNDATED));
    }
}
