//! The allocator and the panic handler, in place of the standard library.
//!
//! In: allocations and panics of every crate in the component. Out: memory, and a trap. Without the
//! standard library the component has no panic messages, which saves size; a host could not read
//! these messages.

use core::panic::PanicInfo;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn trap(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
