//! A task: one summary to be made, encoded as a token.
//!
//! `plan` returns the token as the id of a request, and `apply` gets it back, so the engine keeps
//! no state. The token has the place and hash of the sources, the level and attempt, the token
//! limits, the prompt version and the scope of the model's breaker.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::{
    context::ContextItem,
    message_span::MessageSpan,
    summary::{SourceRef, StoredLevel, SummaryIdentity},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        limits,
    },
    summary::prompts::PromptTemplate,
    types::model::{CompletionErrorCode, Level, Purpose},
};

/// First field of a token; changes with the format.
const TOKEN_VERSION: &str = "1";
/// Maximum bytes of a token.
const TOKEN_BYTES_MAX: usize = 200;
/// Maximum bytes of a breaker scope.
const SCOPE_BYTES_MAX: usize = 28;
/// Least tokens of the sources that a request shows; with fewer, a summary would be a guess.
const SHOWN_TOKENS_MIN: u32 = 250;
/// Breaker scope if the configuration names no model.
const SCOPE_DEFAULT: &str = "default";

/// The place of a task's sources in the context.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SourceSpan {
    /// The messages of a leaf, by first and last seq.
    Messages { seq_first: u64, seq_last: u64 },
    /// The items of a condensed summary: ids of the first and last summary, and number of items,
    /// with the bridges and withdrawn ranges between them.
    Items { first: [u8; 8], last: [u8; 8], count: u32 },
    /// The newest sources of the provisional summary `id`, which is made again.
    Remake { id: [u8; 8] },
}

/// A task: one summary to be made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SummaryTask {
    pub(crate) span: SourceSpan,
    /// Depth of the summary.
    pub(crate) depth: u32,
    /// Hash over the sources.
    pub(crate) sources_hash: [u8; 16],
    pub(crate) level: Level,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// Tokens of the summary that the request asks for.
    pub(crate) tokens_target: u32,
    /// Tokens of the summary that a request at the aggressive level asks for.
    pub(crate) tokens_target_aggressive: u32,
    /// Tokens above which an accepted answer is cut.
    pub(crate) tokens_cap: u32,
    /// Maximum tokens of a fallback.
    pub(crate) fallback_tokens_max: u32,
    /// Tokens of a part of a message above which the model sees only the head and tail of the part.
    pub(crate) part_tokens_max: u32,
    /// Most tokens of the sources that the request shows; 0: all of them.
    pub(crate) shown_tokens_max: u32,
    /// Version of the prompt of the request, see [`PromptTemplate::version`].
    pub(crate) prompt_version: u32,
    /// Scope of the breaker of the model, see [`build_breaker_scope`].
    pub(crate) breaker_scope: String,
}

impl SummaryTask {
    /// Returns the purpose of the completion.
    pub(crate) fn completion_purpose(&self) -> Purpose {
        match self.span {
            SourceSpan::Messages { .. } => Purpose::Leaf,
            SourceSpan::Remake { .. } if self.depth == 0 => Purpose::Leaf,
            SourceSpan::Items { .. } | SourceSpan::Remake { .. } => Purpose::Condensed,
        }
    }

    /// Returns the provisional summary that is made again; `None`: the task is no remake.
    pub(crate) fn replaced_id(&self) -> Option<[u8; 8]> {
        match self.span {
            SourceSpan::Remake { id } => Some(id),
            SourceSpan::Messages { .. } | SourceSpan::Items { .. } => None,
        }
    }

    /// Returns how many tokens of the sources, whose text has `tokens`, the next request shows to a
    /// model for which the request was too long: a quarter of what it was shown. `None`: the last
    /// attempt was made, or a quarter says too little.
    pub(crate) fn find_smaller_source(&self, tokens: u32) -> Option<u32> {
        let shown = if self.shown_tokens_max == 0 { tokens } else { self.shown_tokens_max };
        let is_last = self.attempt >= limits::ATTEMPTS_MAX;
        Some(shown / 4).filter(|less| !is_last && *less >= SHOWN_TOKENS_MIN)
    }

    /// Returns whether a failure with this code concerns the sources, so that the model would fail
    /// again: the sources are too long, or in a remake the provider's policy refuses them.
    pub(crate) fn is_refused_by(&self, code: CompletionErrorCode) -> bool {
        match code {
            CompletionErrorCode::ContextTooLong => true,
            CompletionErrorCode::Policy => self.replaced_id().is_some(),
            _ => false,
        }
    }

    /// Returns the inputs of the id of a summary that the task makes at this level.
    pub(crate) fn identify_summary(&self, level: StoredLevel) -> SummaryIdentity<'_> {
        SummaryIdentity {
            task: &self.sources_hash,
            prompt_version: self.prompt_version,
            level,
            replaces: self.replaced_id(),
        }
    }

    /// Returns the template of the prompt.
    pub(crate) fn prompt_template(&self) -> PromptTemplate {
        PromptTemplate::for_request(self.completion_purpose(), self.depth, self.level)
    }

    /// Writes the task as a token.
    pub(crate) fn encode(&self) -> String {
        let span = match self.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                format!("l:{seq_first:x}:{seq_last:x}:0")
            }
            SourceSpan::Items { first, last, count } => {
                format!("c:{}:{}:{count}", hash::hex(&first), hash::hex(&last))
            }
            SourceSpan::Remake { id } => format!("r:{}::0", hash::hex(&id)),
        };
        let level = match self.level {
            Level::Normal => "n",
            Level::Aggressive => "a",
            Level::Fallback => "f",
        };
        format!(
            "{TOKEN_VERSION}:{span}:{}:{}:{level}:{}:{}:{}:{}:{}:{}:{}:{}:{};",
            self.depth,
            hash::hex(&self.sources_hash),
            self.attempt,
            self.tokens_target,
            self.tokens_target_aggressive,
            self.tokens_cap,
            self.fallback_tokens_max,
            self.part_tokens_max,
            self.shown_tokens_max,
            self.prompt_version,
            self.breaker_scope,
        )
    }

    /// Parses a token.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the engine did not make the token.
    pub(crate) fn parse(token: &str) -> Result<Self> {
        let refused = || {
            Error::invalid_input("`request_id` must be the id of a request that `plan` returned")
        };
        // The last character shows that the token is complete.
        let complete = token.strip_suffix(';').ok_or_else(refused)?;
        let fields: Vec<&str> = complete.splitn(17, ':').collect();
        let [version, kind, first, last, count, depth, sources, level, rest @ ..] =
            fields.as_slice()
        else {
            return Err(refused());
        };
        let [attempt, target, aggressive, cap, fallback, part, shown, prompt_version, scope] = rest
        else {
            return Err(refused());
        };
        if *version != TOKEN_VERSION || token.len() > TOKEN_BYTES_MAX || !token.is_ascii() {
            return Err(refused());
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| refused());
        let seq = |text: &str| u64::from_str_radix(text, 16).map_err(|_| refused());
        let span = match *kind {
            "l" => {
                let (seq_first, seq_last) = (seq(first)?, seq(last)?);
                if seq_first == 0 || seq_last < seq_first {
                    return Err(refused());
                }
                SourceSpan::Messages { seq_first, seq_last }
            }
            "c" => SourceSpan::Items {
                first: parse_hex_bytes(first).ok_or_else(refused)?,
                last: parse_hex_bytes(last).ok_or_else(refused)?,
                count: number(count)?,
            },
            "r" => SourceSpan::Remake { id: parse_hex_bytes(first).ok_or_else(refused)? },
            _ => return Err(refused()),
        };
        let level = match *level {
            "n" => Level::Normal,
            "a" => Level::Aggressive,
            _ => return Err(refused()),
        };
        let task = Self {
            span,
            depth: number(depth)?,
            sources_hash: parse_hex_bytes(sources).ok_or_else(refused)?,
            level,
            attempt: number(attempt)?,
            tokens_target: number(target)?,
            tokens_target_aggressive: number(aggressive)?,
            tokens_cap: number(cap)?,
            fallback_tokens_max: number(fallback)?,
            part_tokens_max: number(part)?,
            shown_tokens_max: number(shown)?,
            prompt_version: number(prompt_version)?,
            breaker_scope: (*scope).into(),
        };
        let has_one_item = matches!(task.span, SourceSpan::Items { count: 0 | 1, .. });
        let has_no_tokens = task.tokens_cap == 0 || task.tokens_target == 0;
        let is_attempt = (1..=limits::ATTEMPTS_MAX).contains(&task.attempt);
        if has_one_item || has_no_tokens || !is_attempt || !is_scope(scope) {
            return Err(refused());
        }
        Ok(task)
    }
}

fn parse_hex_bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    hash::decode_hex(hex).filter(|bytes| bytes.len() == N).map(|bytes| hash::hash_prefix(&bytes))
}

fn is_scope(scope: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-:@+".contains(&byte);
    !scope.is_empty() && scope.len() <= SCOPE_BYTES_MAX && scope.bytes().all(fits)
}

/// Builds the breaker scope of a model name: the name, or a hash if the name is too long or has
/// other characters; `None`: the host chooses the model.
pub(crate) fn build_breaker_scope(model: Option<&str>) -> String {
    match model {
        None => SCOPE_DEFAULT.into(),
        Some(model) if is_scope(model) => model.into(),
        Some(model) => {
            format!(
                "sha/{}",
                hash::encode_base64url(&hash::hash_fields(&[b"lcm scope", model.as_bytes()]), 22)
            )
        }
    }
}

/// Hashes the sources of a leaf: first and last seq, the running hash after the last message, and
/// the gaps.
pub(crate) fn hash_messages(span: &MessageSpan, frontier: &[u8; 16]) -> [u8; 16] {
    let (first, last) = (span.seq_first.to_be_bytes(), span.seq_last.to_be_bytes());
    let gaps = span.gaps.iter().flat_map(|(first, last)| [first.to_be_bytes(), last.to_be_bytes()]);
    let gaps: Vec<[u8; 8]> = gaps.collect();
    let mut fields: Vec<&[u8]> = Vec::from([b"lcm leaf".as_slice(), &first, &last, frontier]);
    fields.extend(gaps.iter().map(<[u8; 8]>::as_slice));
    hash::hash_prefix(&hash::hash_fields(&fields))
}

/// Hashes the items of a condensed summary.
///
/// Of runs and withdrawn ranges, only the seqs are hashed, because stored messages cannot change.
pub(crate) fn hash_items(items: &[ContextItem]) -> [u8; 16] {
    let mut fields: Vec<u8> = Vec::new();
    for item in items {
        match item {
            ContextItem::Summary(summary) => {
                fields.push(1);
                fields.extend_from_slice(&summary.id);
            }
            ContextItem::Run(run) => {
                fields.push(0);
                fields.extend_from_slice(&run.seq_first.to_be_bytes());
                fields.extend_from_slice(&run.seq_last.to_be_bytes());
            }
            ContextItem::Withdrawn { seq_first, seq_last } => {
                fields.push(2);
                fields.extend_from_slice(&seq_first.to_be_bytes());
                fields.extend_from_slice(&seq_last.to_be_bytes());
            }
        }
    }
    hash::hash_prefix(&hash::hash_fields(&[b"lcm condensed", &fields]))
}

/// Hashes the sources of a condensed summary that is made again.
pub(crate) fn hash_sources(sources: &[SourceRef]) -> [u8; 16] {
    let ids: Vec<u8> = sources.iter().flat_map(|source| source.id).collect();
    hash::hash_prefix(&hash::hash_fields(&[b"lcm remake", &ids]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> SummaryTask {
        SummaryTask {
            span: SourceSpan::Items { first: [1; 8], last: [255; 8], count: 128 },
            depth: 4_294_967_295,
            sources_hash: [255; 16],
            level: Level::Aggressive,
            attempt: 3,
            tokens_target: u32::MAX,
            tokens_target_aggressive: u32::MAX,
            tokens_cap: u32::MAX,
            fallback_tokens_max: u32::MAX,
            part_tokens_max: u32::MAX,
            shown_tokens_max: 2_500,
            prompt_version: u32::MAX,
            breaker_scope: "x".repeat(SCOPE_BYTES_MAX),
        }
    }

    #[test]
    fn a_token_says_everything_in_200_bytes() {
        let task = task();
        let token = task.encode();
        assert!(token.is_ascii() && token.len() <= 200, "{}", token.len());
        assert_eq!(SummaryTask::parse(&token).unwrap(), task);
        let span = SourceSpan::Messages { seq_first: 1, seq_last: u64::MAX };
        let leaf = SummaryTask { span, ..task };
        assert!(leaf.encode().len() <= 200);
        assert_eq!(SummaryTask::parse(&leaf.encode()).unwrap(), leaf);
        let remake = SummaryTask { span: SourceSpan::Remake { id: [7; 8] }, ..leaf };
        assert!(remake.encode().len() <= 200);
        assert_eq!(SummaryTask::parse(&remake.encode()).unwrap(), remake);
    }

    #[test]
    fn a_foreign_token_is_refused() {
        let token = task().encode();
        for end in 0..token.len() {
            let cut = token.get(..end).unwrap();
            assert!(SummaryTask::parse(cut).is_err(), "{cut}");
        }
        for foreign in ["", "x", "1:l:0:5:0:0:00:n:1:1:1:1:1:default", "2:l:1:5:0"] {
            assert!(SummaryTask::parse(foreign).is_err(), "{foreign}");
        }
    }

    #[test]
    fn scopes_are_printable_and_short() {
        assert_eq!(build_breaker_scope(None), "default");
        assert_eq!(build_breaker_scope(Some("a/b:1")), "a/b:1");
        assert!(is_scope(&build_breaker_scope(Some("with space"))));
        assert!(is_scope(&build_breaker_scope(Some(&"x".repeat(500)))));
    }
}
