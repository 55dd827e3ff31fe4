//! Holds nothing: the tests stand beside it.
