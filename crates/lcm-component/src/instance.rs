//! The one engine of a component instance, and how a call gets hold of it.
//!
//! In: a closure that needs the engine. Out: its result, or `conflict` when the engine is not
//! there. No borrow is held while the closure runs, so an import may be re-entered or unwound
//! without a trap; the instance then answers every further call with that error.

use std::cell::Cell;

use lcm_core::Engine;

use crate::bindings::lcm::engine::types::{Error, ErrorCode};

thread_local! {
    static ENGINE: Cell<Option<Engine>> = Cell::new(Some(Engine::new()));
}

/// Runs `call` with the engine of this instance and puts the engine back afterwards.
///
/// # Errors
///
/// - `conflict`: another call of this instance has the engine, or one did and never returned.
/// - whatever `call` answers.
pub(crate) fn with_engine<T>(
    call: impl FnOnce(&mut Engine) -> lcm_core::Result<T>,
) -> Result<T, Error> {
    let Some(mut engine) = ENGINE.take() else {
        let message = "the instance is busy or broken".into();
        return Err(Error { code: ErrorCode::Conflict, message });
    };
    let result = call(&mut engine);
    ENGINE.set(Some(engine));
    result.map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call inside a call finds no engine; the outer one is not disturbed.
    #[test]
    fn a_reentered_instance_answers_conflict_and_recovers() {
        let outer = with_engine(|_| {
            let inner = with_engine(|_| Ok(1));
            assert_eq!(inner.unwrap_err().code, ErrorCode::Conflict);
            Ok(2)
        });
        assert_eq!(outer.unwrap(), 2);
        assert_eq!(with_engine(|_| Ok(3)).unwrap(), 3);
    }

    /// What unwinds through a call leaves no half-used engine behind.
    #[test]
    fn an_instance_whose_call_unwound_answers_conflict() {
        let unwound = std::panic::catch_unwind(|| with_engine::<()>(|_| panic!("host exception")));
        assert!(unwound.is_err());
        let error = with_engine(|_| Ok(())).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(error.message, "the instance is busy or broken");
    }
}
