//! The clock that a task reads, and the flag with which a caller stops a task.
//!
//! Options have a [`Clock`]; methods that may take long have a parameter [`Cancel`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The source of the time that a task passes to each call of the component.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// A fixed time, in milliseconds since the Unix epoch.
    Fixed(u64),
    /// The system clock.
    System,
}

impl Clock {
    /// Returns the time in milliseconds since the Unix epoch; 0 if the system clock is before the
    /// epoch.
    #[must_use]
    pub fn now_ms(self) -> u64 {
        match self {
            Self::Fixed(now) => now,
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .and_then(|elapsed| u64::try_from(elapsed.as_millis()).ok())
                .unwrap_or(0),
        }
    }
}

/// A flag with which a caller stops long work: between two calls of the component, or while a model
/// works that looks at the flag. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// Time from which the work stops without a set flag; `None`: no time limit.
    deadline: Option<Instant>,
}

impl Cancel {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Returns whether the flag is set, or the deadline of [`Cancel::within`] has passed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::SeqCst) || self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// Returns the same flag with a time limit for a part of the work; an earlier deadline stays.
    #[must_use]
    pub fn within(&self, duration: Duration) -> Self {
        let own = Instant::now().checked_add(duration);
        let deadline = self.deadline.into_iter().chain(own).min();
        Self { flag: Arc::clone(&self.flag), deadline }
    }

    /// Fails if [`Cancel::is_cancelled`].
    ///
    /// # Errors
    ///
    /// `cancelled`: the work should stop.
    pub fn check(&self) -> crate::Result<()> {
        if self.is_cancelled() { Err(crate::Error::cancelled()) } else { Ok(()) }
    }

    /// Waits for `duration`, and returns early if the work should stop.
    pub fn sleep(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while !self.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }
}
