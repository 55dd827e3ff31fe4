//! The allocator and the panic handler, in place of the standard library.
//!
//! In: allocations and panics of every crate in the component. Out: memory for an allocation, a
//! trap for a panic. A trap has no message: messages would make the component larger, and no host
//! could read them.

use core::panic::PanicInfo;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn trap(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
