//! Measures of the workspace's code and the description of its interface, shared by the program
//! `xtask` and the gates of the tests.
//!
//! In: the files of a checkout. Out: figures and findings. The build steps are in the program.

pub mod interface;
pub mod structure;
