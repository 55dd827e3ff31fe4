//! What the standard library would provide: an allocator, and what a panic does.
//!
//! In: allocations and panics of every crate in the component. Out: memory, and a trap. Without the
//! standard library no text of a panic is built or kept, which makes the component a good deal
//! smaller; a host could not have seen that text anyway.

use core::panic::PanicInfo;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn trap(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
