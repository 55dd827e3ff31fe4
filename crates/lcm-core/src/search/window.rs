//! A window of time: from a time on and to before another.

use lcm_text::types::api::Timestamp;

/// Half open: what happened at `since` is in it, at `before` no more. Absent: no bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) since: Option<Timestamp>,
    pub(crate) before: Option<Timestamp>,
}

impl Window {
    /// Whether every time is in it.
    pub(crate) const fn is_everything(&self) -> bool {
        self.since.is_none() && self.before.is_none()
    }

    /// Whether a time is in it.
    pub(crate) fn holds(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since)
            && self.before.is_none_or(|before| time < before)
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
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
    fn case_69_the_first_time_counts_and_the_last_does_not() {
        let window = Window { since: Some(10), before: Some(20) };
        assert!(!window.holds(9) && window.holds(10) && window.holds(19) && !window.holds(20));
        let both = window.and(&Window { since: Some(12), before: None });
        assert_eq!((both.since, both.before), (Some(12), Some(20)));
        assert!(Window::default().is_everything() && Window::default().holds(0));
    }
}
