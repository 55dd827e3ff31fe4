//! Passages of a long text, found while the text streams by.
//!
//! Input: pieces of the text in order, and a query. Output: at most ten passages with line and
//! byte: the first matches of a regular expression, or the best passages for words. If the search
//! stops at a limit, the result has the byte at which to continue. Memory does not grow with the
//! text, because long lines are searched in parts. Used by the search in files
//! (`grep::file_search`), which also reads the text.

mod finder;
mod passage_list;
mod text_lines;
mod word_matcher;

pub(crate) use finder::{PassageFinder, PassageQuery, PassageStart};
pub(crate) use passage_list::TextPassage;
pub(crate) use word_matcher::WordMatcher;
