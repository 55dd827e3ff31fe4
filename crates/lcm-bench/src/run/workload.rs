//! Input of every engine of a run: one conversation of one size, and its queries.

use std::path::Path;

use serde_json::{Value, json};

use super::queries::Queries;
use crate::{
    failure::{Result, context, failure},
    generate::{Needle, generate},
};

/// Number of measurements of each kind of assembly.
const ASSEMBLIES: usize = 20;
/// Number of kinds of assembly: warm and cold, before and after compaction.
const ASSEMBLY_KINDS: usize = 4;
/// Number of further messages: before each measured assembly one message is appended.
const EXTRA: usize = ASSEMBLIES * ASSEMBLY_KINDS;
/// About the number of codes to search for.
const NEEDLES: usize = 50;

/// A conversation, and the operations to measure on it.
pub(super) struct Workload {
    /// The messages to store first, one JSON line each.
    pub(super) lines: Vec<String>,
    /// The messages to append between measurements.
    pub(super) extra: Vec<String>,
    /// The queries of the searches.
    pub(super) queries: Queries,
    /// Codes to search for, each in one message.
    pub(super) needles: Vec<Needle>,
    /// Number of measurements of each kind of assembly.
    pub(super) assemblies: usize,
    /// The summariser, as a JSON value of the protocol.
    pub(super) summarizer: Value,
}

impl Workload {
    /// Generates the conversation of a seed, with `messages` messages and at most `queries` queries
    /// of each kind.
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

    /// Reads a conversation from a file with one message per line. The last 80 messages are those
    /// to append between measurements.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has fewer than 81 messages.
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
