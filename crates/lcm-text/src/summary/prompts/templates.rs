//! The task paragraph of a prompt, by depth, and the operator's paragraph that replaces it.
//!
//! Input: a name, or purpose, depth and level. Output: the paragraph and the version of the prompt.
//! Length, source, footer and the sentences on trust cannot be replaced.

use crate::base::hash;
use alloc::{format, string::String, vec::Vec};

use super::markers::{LENGTH_PREFIX, OPEN_PREFIX, PROMPT_VERSION, SIZE_PREFIX, has_reserved_line};
use crate::types::model::{Level, Purpose};

/// Most bytes of an operator's paragraph.
pub const OVERRIDE_BYTES_MAX: usize = 8 << 10;

/// Bit of a prompt version that marks an operator's text. The other bits are then a hash.
const OVERRIDE_BIT: u32 = 1 << 31;

const LEAF: &str = "\
Task: condense this segment of a conversation so that the work can go on from your text.
Keep what the person asked for, in their terms, and whether it is settled; decisions and the \
reasons for them; constraints and preferences; facts, values and identifiers that may be needed \
again; errors, what caused them and how they were solved, or that they were not; what is being \
worked on and what comes next. Say who said or decided something where it matters.
List file operations: each path with what happened to it (read, created, changed, deleted, renamed) \
and whether that succeeded. If there were none, write: No file operations.
Of a state that changed within the segment give the last one, and of a value or decision that was \
replaced that it was.
Say each thing once; drop greetings, repetition and output that has no bearing on the rest.";

const LEAF_AGGRESSIVE: &str = "\
Task: condense this segment of a conversation to its durable facts.
Keep only what stays true and useful later: decisions in force, constraints, open requests, results, \
unsolved errors, and the exact paths, identifiers and values they depend on. No narrative, no \
reasoning that led nowhere, no steps whose result is already stated.
List changed files with their paths and state. If there were none, write: No file operations.";

const SESSION: &str = "\
Task: merge these summaries of consecutive parts of one session into one.
Keep decisions with their reasons, and where a later one replaced an earlier one, the later one and \
that it did; what is completed, what is in progress, what is blocked and by what; what failed and \
still does; open requests; exact paths, identifiers, values and commands that are still referred to.
Where two summaries disagree, the later one counts.
Drop what is said again unchanged, dead ends, states that were passed through, and how tools were \
operated.
Order by time and give the hour or half hour at which things happened.";

const PHASE: &str = "\
Task: turn these summaries of sessions into the account of one phase of the work.
Keep the decisions still in effect and how they came to be; completed work and its outcome; \
failures that still stand; constraints; open questions; the state at the end, with the exact names \
and identifiers that lead back to it.
Where two summaries disagree, the later one counts.
Drop session-level detail, intermediate attempts and anything superseded, unless the reason still \
binds.
Order by time, with dates and the approximate time of day.";

const DURABLE: &str = "\
Task: distil these summaries into what must be known for as long as the work goes on.
Keep key decisions and their reasons, what was accomplished, what was given up and why, standing \
constraints and preferences, how people, systems and parts relate, and lessons learned, with the \
exact names that identify them. Where two summaries disagree, the later one counts.
Drop operational detail of every kind.
Give a brief timeline by date or range of dates.";

/// The task paragraph of a prompt, which an operator can replace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PromptTemplate {
    /// For messages.
    Leaf,
    /// For messages, at any level but `Normal`.
    LeafAggressive,
    /// For summaries of depth 1, made from leaves.
    Session,
    /// For summaries of depth 2.
    Phase,
    /// For summaries of depth 3 and more.
    Durable,
}

impl PromptTemplate {
    /// All templates, by depth.
    pub const ALL: [Self; 5] =
        [Self::Leaf, Self::LeafAggressive, Self::Session, Self::Phase, Self::Durable];

    /// Returns the template for a request.
    #[must_use]
    pub const fn for_request(purpose: Purpose, depth: u32, level: Level) -> Self {
        match (purpose, depth, level) {
            (Purpose::Leaf, _, Level::Normal) => Self::Leaf,
            (Purpose::Leaf, ..) => Self::LeafAggressive,
            (_, 0 | 1, _) => Self::Session,
            (_, 2, _) => Self::Phase,
            _ => Self::Durable,
        }
    }

    /// Returns purpose, depth and level of a request that uses this template.
    #[must_use]
    pub const fn example_request(self) -> (Purpose, u32, Level) {
        match self {
            Self::Leaf => (Purpose::Leaf, 0, Level::Normal),
            Self::LeafAggressive => (Purpose::Leaf, 0, Level::Aggressive),
            Self::Session => (Purpose::Condensed, 1, Level::Normal),
            Self::Phase => (Purpose::Condensed, 2, Level::Normal),
            Self::Durable => (Purpose::Condensed, 3, Level::Normal),
        }
    }

    /// Returns the name of the template in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::LeafAggressive => "leaf-aggressive",
            Self::Session => "session",
            Self::Phase => "phase",
            Self::Durable => "durable",
        }
    }

    /// Returns the template with this name; `None`: no template has the name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wording| wording.as_str() == name)
    }

    /// Returns the built-in paragraph.
    #[must_use]
    pub const fn built_in_text(self) -> &'static str {
        match self {
            Self::Leaf => LEAF,
            Self::LeafAggressive => LEAF_AGGRESSIVE,
            Self::Session => SESSION,
            Self::Phase => PHASE,
            Self::Durable => DURABLE,
        }
    }

    /// Returns the operator's paragraph for this template; `None`: `overrides` has none.
    #[must_use]
    pub fn override_text(self, overrides: &[(Self, String)]) -> Option<&str> {
        let own = overrides.iter().find(|(wording, _)| *wording == self);
        own.map(|(_, text)| text.as_str())
    }

    /// Returns the version of the prompt: [`PROMPT_VERSION`], or for an operator's text a hash of
    /// this version and the text that is at least 2,147,483,648.
    #[must_use]
    pub fn version(self, overrides: &[(Self, String)]) -> u32 {
        let Some(own) = self.override_text(overrides) else { return PROMPT_VERSION };
        let hash =
            hash::hash_fields(&[b"lcm prompt", &PROMPT_VERSION.to_be_bytes(), own.as_bytes()]);
        u32::from_be_bytes(hash::hash_prefix(&hash)) | OVERRIDE_BIT
    }
}

/// Parses pairs of a template's name and the operator's paragraph. A blank paragraph is left out.
///
/// # Errors
///
/// The broken rule, as the end of a message: an unknown name, a text over the limit, or a line that
/// begins like a line around the source.
pub(crate) fn parse_overrides(
    texts: Vec<(String, String)>,
) -> core::result::Result<Vec<(PromptTemplate, String)>, String> {
    let mut out = Vec::new();
    for (name, text) in texts {
        let Some(wording) = PromptTemplate::from_name(&name) else {
            return Err(format!("an object with texts for {}, not `{name}`", list_names()));
        };
        let own = text.trim();
        if own.len() > OVERRIDE_BYTES_MAX {
            return Err(format!("texts of at most {OVERRIDE_BYTES_MAX} bytes; `{name}` is longer"));
        }
        if has_reserved_line(own) {
            return Err(format!(
                "texts without a line that begins with `{}`, `{}` or `{}`; `{name}` has one",
                LENGTH_PREFIX.trim(),
                SIZE_PREFIX.trim(),
                OPEN_PREFIX.trim(),
            ));
        }
        if !own.is_empty() {
            out.push((wording, own.into()));
        }
    }
    Ok(out)
}

/// Lists the names of all templates for an error message.
fn list_names() -> String {
    PromptTemplate::ALL.map(|wording| format!("`{}`", wording.as_str())).join(", ")
}
