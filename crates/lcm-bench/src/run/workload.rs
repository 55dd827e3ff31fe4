//! Input of every engine of a run: one conversation of one size, and its queries.

use std::path::Path;

use serde_json::{Value, json};

use super::queries::Queries;
use crate::{
    failure::{Result, context, failure},
    generate::{Needle, generate},
};

/// Measurements of one kind of assembly.
const ASSEMBLIES: usize = 20;
/// Kinds of assembly: warm and cold, before and after compaction.
const ASSEMBLY_KINDS: usize = 4;
/// Messages that are needed beyond those of the conversation.
const EXTRA: usize = ASSEMBLIES * ASSEMBLY_KINDS;
/// Codes that are looked for.
const NEEDLES: usize = 50;

/// A conversation and what is done with it.
pub(super) struct Workload {
    /// The messages that are taken in at first.
    pub(super) lines: Vec<String>,
    /// The messages that follow.
    pub(super) extra: Vec<String>,
    /// What is searched for.
    pub(super) queries: Queries,
    /// Codes that each stand in one message.
    pub(super) needles: Vec<Needle>,
    /// Measurements of one kind of assembly.
    pub(super) assemblies: usize,
    /// The model, as the protocol names it.
    pub(super) summarizer: Value,
}

impl Workload {
    /// The conversation of a seed with `messages` messages, and `queries` queries of each kind.
    pub(super) fn new(seed: u32, messages: u32, queries: usize) -> Self {
        let size = usize::try_from(messages).unwrap_or(usize::MAX);
        let extra = EXTRA;
        let all = messages.saturating_add(u32::try_from(extra).unwrap_or(u32::MAX));
        let mut lines = Vec::new();
        let (meta, _) = generate(seed, all, &mut |line| lines.push(line.to_owned()));
        let extra = lines.split_off(size.min(lines.len()));
        let step = (meta.needles.len() / NEEDLES).max(1);
        Self {
            queries: Queries::derive(&lines, queries),
            lines,
            extra,
            needles: meta.needles.into_iter().step_by(step).collect(),
            assemblies: ASSEMBLIES,
            summarizer: json!({"kind": "offline"}),
        }
    }

    /// The conversation of a file, one message per line. Its last messages follow the others.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has too few messages.
    pub(super) fn read(path: &Path, queries: usize) -> Result<Self> {
        let named = format!("reading `{}`", path.display());
        let text = std::fs::read_to_string(path).map_err(context(named.clone()))?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() <= EXTRA {
            return failure(format!("{named}: at least {} messages are needed", EXTRA + 1));
        }
        let extra = lines.split_off(lines.len() - EXTRA);
        Ok(Self {
            queries: Queries::derive(&lines, queries),
            lines,
            extra,
            needles: Vec::new(),
            assemblies: ASSEMBLIES,
            summarizer: json!({"kind": "offline"}),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_that_follow_are_enough_and_go_on() {
        let workload = Workload::new(42, 300, 5);
        assert_eq!((workload.lines.len(), workload.extra.len()), (300, 80));
        assert!(workload.extra[0].starts_with(r#"{"id":"m0000301""#));
    }
}
