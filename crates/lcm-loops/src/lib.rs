#![no_std]
#![forbid(unsafe_code)]
//! The inner loops of the engine: where an append spends most of its time.
//!
//! In: texts, or the blocks of search segments. Out: the tokens of JSON, the terms of a text,
//! postings, blocks. A crate of its own because the guest is built for size and this part of it for
//! speed. Not here: what any of it means and what is read and written; that is `lcm-core`.

extern crate alloc;

mod bits;
pub mod block;
pub mod cjk;
pub mod collect;
pub mod find;
pub mod fold;
pub mod lengths;
pub mod letters;
pub mod list;
pub mod literal;
pub mod merge;
pub mod num;
pub mod scan;
pub mod sort;
pub mod stem;
pub mod walk;
