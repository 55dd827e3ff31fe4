//! The clock of a record: how much time has passed, whatever the clocks of the hosts say.
//!
//! In: the stored clock and the `now` of a call. Out: a [`ClockReading`], by which deadlines are
//! set and compared. A host's clock may jump ahead and back. *Ticks* are milliseconds that never
//! run backwards: if `now` steps back, the ticks continue from their last stored value. So a
//! deadline in ticks that has passed never lies ahead again, and no deadline waits for a clock that
//! was wrong. Times that are only shown are the `now` of the call.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use crate::storage::codec::SoundRecord;
use lcm_text::{base::time, types::api::Timestamp};

/// Greatest step back, in milliseconds, that counts as a difference between the clocks of two
/// hosts. The ticks then stand still until `now` has caught up.
pub(crate) const STEP_BACK_MS_MAX: u64 = 5 * 60 * 1_000;
/// Greatest value of the ticks; at this value every deadline has passed.
pub(crate) const TICKS_MAX: u64 = 1 << 59;

/// The clock as a commit stored it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Clock {
    /// `now` of the newest commit, unless that `now` was before this time by at most five minutes:
    /// such a commit leaves this time as it was. In milliseconds since 1970.
    pub(crate) time: Timestamp,
    /// Ticks at `time` minus `time`: the sum of all steps back of more than five minutes, at most
    /// [`TICKS_MAX`].
    pub(crate) ahead: u64,
}

impl SoundRecord for Clock {
    fn is_sound(&self) -> bool {
        self.time <= time::MS_MAX && self.ahead <= TICKS_MAX
    }
}

/// A clock at the `now` of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    /// Milliseconds by which deadlines are set and compared; never less than at any earlier commit.
    pub(crate) ticks: u64,
    /// The clock to store with a commit of the call.
    pub(crate) clock: Clock,
    /// Milliseconds by which `now` is before the stored clock, if they are more than
    /// [`STEP_BACK_MS_MAX`]; else 0.
    pub(crate) step_back_ms: u64,
}

impl Clock {
    /// Reads the clock at `now`.
    pub(crate) fn read_at(self, now: Timestamp) -> ClockReading {
        let back_ms = self.time.saturating_sub(now);
        if back_ms > STEP_BACK_MS_MAX {
            let ahead = self.ahead.saturating_add(back_ms).min(TICKS_MAX);
            return ClockReading::new(Self { time: now, ahead }, back_ms);
        }
        ClockReading::new(Self { time: self.time.max(now), ahead: self.ahead }, 0)
    }

    /// Returns a deadline in ticks as a time of the hosts' clock, at most [`time::MS_MAX`].
    pub(crate) fn to_time(self, ticks: u64) -> Timestamp {
        ticks.saturating_sub(self.ahead).min(time::MS_MAX)
    }
}

impl ClockReading {
    fn new(clock: Clock, step_back_ms: u64) -> Self {
        let ticks = clock.time.saturating_add(clock.ahead).min(TICKS_MAX);
        Self { ticks, clock, step_back_ms }
    }

    /// Returns the deadline after `duration_ms`.
    pub(crate) fn deadline_after(&self, duration_ms: u64) -> u64 {
        self.ticks.saturating_add(duration_ms).min(TICKS_MAX)
    }

    /// Returns whether a deadline is ahead.
    ///
    /// Ticks stand still from a step back to the commit that stores the step. In between every
    /// deadline counts as passed, so that nothing waits for a commit.
    pub(crate) const fn is_ahead(&self, deadline: u64) -> bool {
        self.step_back_ms == 0 && self.ticks < deadline
    }

    /// Returns this reading for a call that is certain to store the clock.
    #[must_use]
    pub(crate) const fn as_stored(self) -> Self {
        Self { step_back_ms: 0, ..self }
    }

    /// Returns the warning about the step back; `None`: `now` did not step back.
    pub(crate) fn step_back_warning(&self) -> Option<String> {
        let before = self.clock.time.saturating_add(self.step_back_ms).min(time::MS_MAX);
        (self.step_back_ms > 0).then(|| {
            format!(
                "clock-stepped-back: `now` is {}, the stored time was {}; the time is stored as \
                 given, what has ended stays ended, and what is still to end keeps the time that \
                 it had left",
                time::iso_millis(self.clock.time),
                time::iso_millis(before)
            )
        })
    }
}

/// Returns whether a pause from `from` to `until` holds at `now`, all of them times of hosts'
/// clocks. A pause that begins more than five minutes ahead was set by a clock that was wrong, and
/// holds no more.
pub(crate) const fn is_within_pause(now: Timestamp, from: Timestamp, until: Timestamp) -> bool {
    from <= now.saturating_add(STEP_BACK_MS_MAX) && now < until
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;
    const YEAR_MS: u64 = 365 * 24 * 60 * MINUTE_MS;

    #[test]
    fn ticks_are_the_time_as_long_as_no_clock_steps_back() {
        let clock = Clock::default().read_at(1_000).clock;
        let later = clock.read_at(1_000 + YEAR_MS);
        assert_eq!((later.ticks, later.clock.ahead, later.step_back_ms), (1_000 + YEAR_MS, 0, 0));
        assert_eq!(later.step_back_warning(), None);
    }

    /// Goal: two hosts whose clocks differ a little do not make time pass faster. Method: they take
    /// turns.
    #[test]
    fn a_small_step_back_waits() {
        let mut clock = Clock::default().read_at(YEAR_MS).clock;
        for _ in 0..100 {
            clock = clock.read_at(YEAR_MS - 5 * MINUTE_MS).clock;
            clock = clock.read_at(YEAR_MS).clock;
        }
        assert_eq!(clock, Clock { time: YEAR_MS, ahead: 0 });
        let stepped = clock.read_at(YEAR_MS - 5 * MINUTE_MS - 1);
        assert_eq!(stepped.step_back_ms, 5 * MINUTE_MS + 1);
        assert_eq!(stepped.ticks, YEAR_MS);
    }

    #[test]
    fn what_is_left_of_a_deadline_is_left_after_the_step_back() {
        let honest = Clock::default().read_at(MINUTE_MS);
        let old = honest.deadline_after(MINUTE_MS);
        let ahead = honest.clock.read_at(YEAR_MS);
        assert!(!ahead.is_ahead(old));
        let new = ahead.deadline_after(MINUTE_MS);
        let back = ahead.clock.read_at(2 * MINUTE_MS);
        assert!(!back.is_ahead(new) && back.step_back_warning().is_some());
        let stored = back.clock;
        assert_eq!(stored.to_time(new), 3 * MINUTE_MS);
        assert!(stored.read_at(3 * MINUTE_MS - 1).is_ahead(new));
        assert!(!stored.read_at(3 * MINUTE_MS).is_ahead(new));
        assert!(!stored.read_at(2 * MINUTE_MS).is_ahead(old));
    }

    #[test]
    fn no_number_of_jumps_revives_a_deadline() {
        let mut clock = Clock::default();
        let deadline = clock.read_at(5).deadline_after(1);
        for _ in 0..10_000 {
            clock = clock.read_at(time::MS_MAX).clock;
            clock = clock.read_at(0).clock;
            assert!(clock.is_sound());
            assert!(!clock.read_at(0).is_ahead(deadline));
            if clock.ahead >= TICKS_MAX {
                assert!(!clock.read_at(7).is_ahead(clock.read_at(7).deadline_after(9)));
                return;
            }
            assert_eq!(clock.to_time(clock.read_at(7).deadline_after(0)), 7);
        }
        panic!("the ticks never reach their bound");
    }

    #[test]
    fn a_pause_of_a_clock_that_was_wrong_holds_no_more() {
        assert!(is_within_pause(10, 10, 20) && !is_within_pause(20, 10, 20));
        assert!(is_within_pause(10, 10 + STEP_BACK_MS_MAX, YEAR_MS));
        assert!(!is_within_pause(10, 11 + STEP_BACK_MS_MAX, YEAR_MS));
    }
}
