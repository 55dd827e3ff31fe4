//! The version of the built-in prompts, and the beginnings of the lines that mark their parts.

/// Version of the built-in prompts. The version is part of a task's identity; raise it with every
/// change that may change answers.
pub const PROMPT_VERSION: u32 = 3;

pub(super) const LENGTH_PREFIX: &str = "Length: at most ";
pub(super) const SIZE_PREFIX: &str = "Material: about ";
pub(super) const TOKENS_SUFFIX: &str = " tokens.";
pub(super) const OPEN_PREFIX: &str = "<source";

/// Returns whether a line of `text` begins like a line that the prompt writes around the source.
pub(super) fn has_reserved_line(text: &str) -> bool {
    let ours = [LENGTH_PREFIX, SIZE_PREFIX, OPEN_PREFIX];
    text.lines().any(|line| ours.iter().any(|prefix| line.starts_with(prefix)))
}
