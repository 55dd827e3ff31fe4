//! The engine of a component instance, lent to one call at a time.
//!
//! In: a closure that needs the engine. Out: its result, or `conflict` while another call has the
//! engine. A call from inside an import gets `conflict` and does not trap. After a call that never
//! returned the engine, such as an unwound call, every later call of the instance gets `conflict`.

use alloc::boxed::Box;
use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use lcm_core::Engine;

use crate::bindings::lcm::engine::types::{Error, ErrorCode};

static ENGINE: Slot = Slot::new();

/// Message of the `conflict` of a call without an engine.
const BUSY: &str = "another call of this instance is running or never returned; repeat this call \
                    after that call, or in a new instance";

/// Runs `call` with the engine of this instance, then puts the engine back.
///
/// # Errors
///
/// - `conflict`: another call of this instance has the engine, or never returned the engine.
/// - Errors of `call`.
pub(crate) fn with_engine<T>(
    call: impl FnOnce(&mut Engine) -> lcm_core::Result<T>,
) -> Result<T, Error> {
    ENGINE.with(call)
}

/// A slot for one engine, which the first call creates.
struct Slot {
    /// The engine from `Box::into_raw`; null: a call has the engine, or no call was made yet.
    engine: AtomicPtr<Engine>,
    /// Whether a call created the engine.
    made: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        Self { engine: AtomicPtr::new(ptr::null_mut()), made: AtomicBool::new(false) }
    }

    fn with<T>(&self, call: impl FnOnce(&mut Engine) -> lcm_core::Result<T>) -> Result<T, Error> {
        let mut engine = self.take()?;
        let result = call(&mut engine);
        self.put_back(engine);
        result.map_err(Error::from)
    }

    // Separate from `with`, which the compiler copies for every exported function.
    #[inline(never)]
    fn take(&self) -> Result<Box<Engine>, Error> {
        if !self.made.swap(true, Ordering::AcqRel) {
            return Ok(Box::new(Engine::new()));
        }
        let engine = self.engine.swap(ptr::null_mut(), Ordering::AcqRel);
        if engine.is_null() {
            let message = BUSY.into();
            return Err(Error { code: ErrorCode::Conflict, message });
        }
        // SAFETY: only `put_back` stores a pointer, from `Box::into_raw`, and the swap above left
        // null, so no other call has this pointer. A component instance has one thread.
        #[expect(unsafe_code, reason = "a cell in a static, without the standard library")]
        Ok(unsafe { Box::from_raw(engine) })
    }

    #[inline(never)]
    fn put_back(&self, engine: Box<Engine>) {
        self.engine.store(Box::into_raw(engine), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A nested call finds no engine; the outer call continues.
    #[test]
    fn a_reentered_instance_answers_conflict_and_recovers() {
        let slot = Slot::new();
        let outer = slot.with(|_| {
            let inner = slot.with(|_| Ok(1));
            assert_eq!(inner.unwrap_err().code, ErrorCode::Conflict);
            Ok(2)
        });
        assert_eq!(outer.unwrap(), 2);
        assert_eq!(slot.with(|_| Ok(3)).unwrap(), 3);
    }

    /// An unwound call does not return its engine.
    #[test]
    fn an_instance_whose_call_unwound_answers_conflict() {
        let slot = Slot::new();
        let unwound = std::panic::catch_unwind(|| slot.with::<()>(|_| panic!("host exception")));
        assert!(unwound.is_err());
        let error = slot.with(|_| Ok(())).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(error.message, BUSY);
    }

    /// The next call sees the changes of a call.
    #[test]
    fn the_engine_is_the_same_in_every_call() {
        let slot = Slot::new();
        let address = |engine: &mut Engine| Ok(ptr::from_mut(engine).addr());
        assert_eq!(slot.with(address).unwrap(), slot.with(address).unwrap());
    }
}
