//! Passages of a long text, found while the text streams by.
//!
//! Input: pieces of the text in order. Output: at most ten passages with line and
//! byte: the first matches of a regular expression, or the best passages for words. Only a line or
//! two are buffered, so the text may have any length. If the search stops early, the result says at
//! which byte to continue, so that no match is lost or found twice. Elsewhere: reading the text;
//! scoring words ([`word_matcher`]).

mod finder;
mod passage_list;
mod text_lines;
mod word_matcher;

pub(crate) use finder::{PassageFinder, PassageQuery, PassageStart};
pub(crate) use passage_list::TextPassage;
pub(crate) use word_matcher::WordMatcher;
