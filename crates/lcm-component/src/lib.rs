//! The WebAssembly guest: `lcm-core` behind the functions of `wit/`.
//!
//! In: calls in the component's types. Out: the engine's answers in the component's types.
//! [`exports`] forwards each function, [`imports`] adapts the host's store and model, [`convert`]
//! translates values. Nothing is decided here: every rule stands in `lcm-core`.

// Elsewhere the standard library is there for the tests.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

mod convert;
mod exports;
mod imports;
mod instance;
#[cfg(target_arch = "wasm32")]
mod runtime;

/// What `wit-bindgen` generates from `wit/`.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    clippy::restriction,
    reason = "generated; the prose of every item stands in wit/"
)]
mod bindings {
    // Borrowed where a type is only ever an argument of an import: guards and puts are lowered
    // from the engine's own bytes instead of from a copy.
    wit_bindgen::generate!({
        path: "../../wit",
        world: "engine",
        ownership: Borrowing { duplicate_if_necessary: false },
    });

    use super::exports::Component;

    export!(Component);
}
