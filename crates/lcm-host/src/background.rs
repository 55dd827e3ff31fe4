//! Runs blocking work on a separate thread, for programs that must not block.
//!
//! In: a closure that calls a handle or a conversation. Out: [`Running`], a future of the closure's
//! result for any executor.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread,
};

use crate::{clock::Cancel, conversation::Conversation, lcm::Lcm};

/// State of the work of a [`Running`].
enum State<T> {
    /// The work runs. The waker wakes the task that polled the future; `None`: not polled yet.
    Runs(Option<Waker>),
    /// The work ended with its result, or with the payload of a panic.
    Ended(Result<T, Box<dyn Any + Send>>),
    /// The future has returned the result.
    Taken,
}

/// A future of the result of running work. Dropping the future sets the [`Cancel`] of the work: a
/// running call of the component ends normally, and stored changes stay.
#[must_use = "dropping the future stops the work"]
pub struct Running<T> {
    state: Arc<Mutex<State<T>>>,
    cancel: Cancel,
}

impl<T> std::fmt::Debug for Running<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Lcm {
    /// Runs `work` on a separate thread. `work` should pass the [`Cancel`] to the methods that it
    /// calls, so that dropping the future stops the work.
    ///
    /// The work begins at once, not at the first poll. If the work panics, the task that awaits the
    /// future panics, too.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Wake}, thread};
    /// # struct Unpark(thread::Thread);
    /// # impl Wake for Unpark { fn wake(self: Arc<Self>) { self.0.unpark() } }
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let waker = Arc::new(Unpark(thread::current())).into();
    /// #     let mut future = pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
    /// #             Poll::Ready(value) => return value,
    /// #             Poll::Pending => thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// use lcm_host::{Lcm, Result};
    ///
    /// async fn digest(lcm: &Lcm) -> Result<String> {
    ///     lcm.background(|lcm, cancel| lcm.digest_all(false, cancel)).await
    /// }
    ///
    /// let lcm = Lcm::open("memory:", include_bytes!("../../../dist/lcm.wasm"))?;
    /// assert_eq!(block_on(digest(&lcm))?.len(), 64);
    /// # Ok::<(), lcm_host::Error>(())
    /// ```
    pub fn background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, &Cancel) -> T + Send + 'static,
    ) -> Running<T> {
        let lcm = self.clone();
        run(Cancel::default(), move |cancel| work(&lcm, cancel))
    }
}

impl Conversation {
    /// Runs `work` on a separate thread: `chat.background(move |chat| chat.turn(&messages)).await`.
    /// Dropping the future stops the work; the flag that [`Conversation::cancel`] set does not.
    pub fn background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Running<T> {
        let cancel = Cancel::default();
        let conversation = self.clone().cancel(cancel.clone());
        run(cancel, move |_| work(&conversation))
    }
}

fn run<T: Send + 'static>(
    cancel: Cancel,
    work: impl FnOnce(&Cancel) -> T + Send + 'static,
) -> Running<T> {
    let state = Arc::new(Mutex::new(State::Runs(None)));
    let running = Running { state: Arc::clone(&state), cancel: cancel.clone() };
    thread::spawn(move || {
        let work = std::panic::AssertUnwindSafe(|| work(&cancel));
        let ended = State::Ended(std::panic::catch_unwind(work));
        let before = std::mem::replace(&mut *lock(&state), ended);
        if let State::Runs(Some(waker)) = before {
            waker.wake();
        }
    });
    running
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Future for Running<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Ended(Ok(value)) => Poll::Ready(value),
            State::Ended(Err(panic)) => std::panic::resume_unwind(panic),
            State::Runs(_) => {
                *state = State::Runs(Some(context.waker().clone()));
                Poll::Pending
            }
            // The future was polled after its end, which executors do not do.
            State::Taken => Poll::Pending,
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
