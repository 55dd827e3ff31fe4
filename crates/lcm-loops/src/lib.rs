#![no_std]
#![forbid(unsafe_code)]
//! The inner loops of the engine: where an append spends most of its time.
//!
//! In: texts, or the blocks of search segments. Out: the tokens of JSON, the terms of a text,
//! postings, blocks. A crate of its own because the guest is built for size and this part of it for
//! speed. Not here: what any of it means and what is read and written; that is `lcm-core`.

extern crate alloc;

mod bit_codes;
pub mod char_fold;
pub mod cjk;
pub mod folded_text;
pub mod int;
pub mod json_scanner;
pub mod json_string;
pub mod lengths;
pub mod posting_block;
pub mod posting_collector;
pub mod posting_list;
pub mod posting_merge;
pub mod radix_sort;
pub mod stemmer;
pub mod substring;
pub mod term_tokenizer;
