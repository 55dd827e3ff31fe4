//! The WebAssembly guest: `lcm-core` behind the functions of `wit/`.
//!
//! In: calls in the component's types. Out: the engine's answers in the component's types.
//! [`exports`] forwards each function, [`imports`] adapts the host's store and model, [`convert`]
//! converts values. This crate decides nothing: all rules are in `lcm-core` and the crates it uses.

// On other targets the tests use the standard library.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

mod convert;
mod exports;
mod imports;
mod instance;
#[cfg(target_arch = "wasm32")]
mod runtime;

/// Bindings that `wit-bindgen` generates from `wit/`.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    clippy::restriction,
    reason = "generated; the files of wit/ describe every item"
)]
mod bindings {
    // With `ownership`, types that only occur as arguments of imports hold references. So guards
    // and puts refer to the engine's bytes, without a copy in the component.
    wit_bindgen::generate!({
        path: "../../wit",
        world: "engine",
        ownership: Borrowing { duplicate_if_necessary: false },
    });

    use super::exports::Component;

    export!(Component);
}
