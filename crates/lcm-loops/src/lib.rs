#![no_std]
#![forbid(unsafe_code)]
//! The inner loops of the engine, in which an append spends most of its time.
//!
//! Input: texts, or the blocks of search segments. Output: JSON tokens, search terms, postings,
//! blocks. The loops are a separate crate, so that a build can optimise them otherwise than the
//! rest. `lcm-text` and `lcm-core` decide which texts and blocks are read and written.

extern crate alloc;

mod bit_codes;
pub mod char_fold;
pub mod cjk;
pub mod folded_text;
pub mod int;
pub mod json_scanner;
pub mod json_string;
pub mod lengths;
pub mod lower_case;
pub mod posting_block;
pub mod posting_collector;
pub mod posting_list;
pub mod posting_merge;
pub mod radix_sort;
pub mod stemmer;
pub mod substring;
pub mod term_tokenizer;
