//! The one engine of a component instance, and how a call gets hold of it.
//!
//! In: a closure that needs the engine. Out: its result, or `conflict` when the engine is not
//! there. No borrow is held while the closure runs, so an import may be re-entered or unwound
//! without a trap; the instance then answers every further call with that error.

use alloc::boxed::Box;
use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use lcm_core::Engine;

use crate::bindings::lcm::engine::types::{Error, ErrorCode};

static ENGINE: Slot = Slot::new();

/// Runs `call` with the engine of this instance and puts the engine back afterwards.
///
/// # Errors
///
/// - `conflict`: another call of this instance has the engine, or one did and never returned.
/// - whatever `call` answers.
pub(crate) fn with_engine<T>(
    call: impl FnOnce(&mut Engine) -> lcm_core::Result<T>,
) -> Result<T, Error> {
    ENGINE.with(call)
}

/// A place for one engine, which is made when it is first asked for.
struct Slot {
    /// The engine from `Box::into_raw`; null: a call has it, or it was not made yet.
    engine: AtomicPtr<Engine>,
    /// Whether it was made.
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

    // Apart from `with`, of which there is one for every exported function.
    #[inline(never)]
    fn take(&self) -> Result<Box<Engine>, Error> {
        if !self.made.swap(true, Ordering::AcqRel) {
            return Ok(Box::new(Engine::new()));
        }
        let engine = self.engine.swap(ptr::null_mut(), Ordering::AcqRel);
        if engine.is_null() {
            let message = "the instance is busy or broken".into();
            return Err(Error { code: ErrorCode::Conflict, message });
        }
        // SAFETY: only `put_back` stores here, from `Box::into_raw`, and the swap above left null
        // behind, so nobody else takes this pointer. A component instance has one thread.
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

    /// A call inside a call finds no engine; the outer one is not disturbed.
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

    /// What unwinds through a call leaves no half-used engine behind.
    #[test]
    fn an_instance_whose_call_unwound_answers_conflict() {
        let slot = Slot::new();
        let unwound = std::panic::catch_unwind(|| slot.with::<()>(|_| panic!("host exception")));
        assert!(unwound.is_err());
        let error = slot.with(|_| Ok(())).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(error.message, "the instance is busy or broken");
    }

    /// What a call did to the engine is there for the next one.
    #[test]
    fn the_engine_is_the_same_in_every_call() {
        let slot = Slot::new();
        let address = |engine: &mut Engine| Ok(ptr::from_mut(engine).addr());
        assert_eq!(slot.with(address).unwrap(), slot.with(address).unwrap());
    }
}
