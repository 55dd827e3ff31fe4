//! Comparison of a context with an earlier one: the stable prefix, what broke it, and cache
//! breakpoints.
//!
//! A provider's prompt cache serves the prefix that two prompts share. In: a rendered context and
//! the token of an earlier context. Out: tokens of the stable prefix; the item that broke the
//! prefix, with the reason; the messages on which a cache mark is useful; and a new token. The
//! token holds all data that the next comparison needs, so the engine stores nothing.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use lcm_text::base::hash;

use super::{
    input::AssemblyInput,
    rendered_context::{ContextElement, RenderedContext},
};
use lcm_text::{
    base::{int, sort},
    types::api::{Dialect, PrefixReport},
};

/// Characters of one element's hash in a token: 36 bits. Two different elements have equal hashes
/// once in 69 thousand million, and a token stays small compared with its context.
const HASH_CHARACTERS: usize = 6;
/// First characters of a token: the version of its format.
const TOKEN_VERSION: &str = "p4.";
/// Follows the dialect in the token of a context that ends with a placeholder turn.
const SYNTHETIC_END: &str = "-";

/// The hashes of elements in a token: the first characters of each, without separators.
#[derive(Clone, Copy)]
struct TokenHashes<'a>(&'a str);

impl<'a> TokenHashes<'a> {
    /// Returns the hash of the element at an index; `None`: the token has no such element.
    fn hash_at(self, index: usize) -> Option<&'a str> {
        let from = index.checked_mul(HASH_CHARACTERS)?;
        self.0.get(from..from + HASH_CHARACTERS)
    }

    /// Returns whether an element at `index` or behind has the hash `hash`.
    fn has_hash_from(self, index: usize, hash: &str) -> bool {
        (index..).map_while(|at| self.hash_at(at)).any(|known| known == hash)
    }
}

/// The token of an earlier context.
struct PreviousToken<'a> {
    /// Letter of the dialect.
    dialect: &'a str,
    /// Whether the last element is a placeholder turn, which the next message replaces.
    ends_synthetic: bool,
    /// Number of summaries that the conversation had made.
    summaries: u64,
    budget: &'a str,
    /// Id of the focus brief; empty without one.
    focus: &'a str,
    hashes: TokenHashes<'a>,
}

impl<'a> PreviousToken<'a> {
    /// Parses a token; `None`: no token of this version and conversation.
    fn read(token: &'a str, conversation: &str) -> Option<Self> {
        let mut parts = token.strip_prefix(TOKEN_VERSION)?.splitn(6, '.');
        let mut next = || parts.next();
        if next()? != conversation {
            return None;
        }
        let dialect = next()?;
        Some(Self {
            dialect: dialect.trim_end_matches(SYNTHETIC_END),
            ends_synthetic: dialect.ends_with(SYNTHETIC_END),
            summaries: next()?.parse().ok()?,
            budget: next()?,
            focus: next()?,
            hashes: TokenHashes(next()?),
        })
    }
}

/// Returns the letter of a dialect in a token.
const fn dialect_letter(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Lcm => "l",
        Dialect::Anthropic => "a",
        Dialect::OpenaiChat => "c",
        Dialect::OpenaiResponses => "r",
        Dialect::Gemini => "g",
        Dialect::AiSdk => "s",
        Dialect::Openclaw => "p",
        Dialect::Langchain => "n",
        Dialect::OpenaiAgents => "o",
    }
}

impl AssemblyInput<'_> {
    /// Compares a rendered context with the context of the token `previous`. Without a token of
    /// this conversation, the report has no `stable_tokens` and no item that broke the prefix.
    pub(super) fn compare_prefix(
        &self,
        rendered: &RenderedContext,
        previous: Option<&str>,
    ) -> PrefixReport {
        let elements = &rendered.elements;
        let dialect = dialect_letter(rendered.dialect);
        let mut hashes = String::with_capacity(elements.len() * HASH_CHARACTERS + 4);
        for element in elements {
            hash::push_base64url(&mut hashes, &element.hash, HASH_CHARACTERS);
        }
        let new = TokenHashes(&hashes);
        let root = hash::hash_fields(&[b"lcm token", self.call.keys.key_prefix().as_bytes()]);
        let mut conversation = String::new();
        hash::push_base64url(&mut conversation, &root, HASH_CHARACTERS);
        let old = previous.and_then(|token| PreviousToken::read(token, &conversation));
        let is_equal = |at: &usize| {
            old.as_ref().is_some_and(|old| {
                old.dialect == dialect
                    && old.hashes.hash_at(*at).is_some_and(|hash| new.hash_at(*at) == Some(hash))
            })
        };
        let equal = (0..elements.len()).take_while(is_equal).count();
        let stable: u64 = elements.iter().take(equal).map(|element| element.tokens).sum();
        let broken = old.as_ref().and_then(|old| self.find_break(rendered, equal, old, new));
        let (broken_by, broken_why) = broken.unzip();
        let (budget, focus) = (self.policy.budget, self.focus_name());
        let summaries = self.history.head.summaries;
        let end =
            if elements.last().is_some_and(|last| last.is_synthetic) { SYNTHETIC_END } else { "" };
        PrefixReport {
            stable_tokens: old.map(|_| int::saturate_tokens(stable)),
            broken_by,
            broken_why,
            breakpoints: self.find_breakpoints(elements, equal),
            sha256: hash::hex(&rendered.chain_hash),
            token: format!(
                "{TOKEN_VERSION}{conversation}.{dialect}{end}.{summaries}.{budget}.{focus}.{hashes}"
            ),
        }
    }

    /// Returns the id of the item that broke the prefix, and why. `None`: elements were only
    /// appended, or replace only the placeholder turn at the end of the earlier context. `equal`:
    /// number of equal elements at the start.
    fn find_break(
        &self,
        rendered: &RenderedContext,
        equal: usize,
        old: &PreviousToken<'_>,
        new: TokenHashes<'_>,
    ) -> Option<(String, String)> {
        // Elements behind the end of the earlier context are appended and break nothing.
        let hash = old.hashes.hash_at(equal)?;
        if old.ends_synthetic && old.hashes.hash_at(equal + 1).is_none() {
            return None;
        }
        let elements = &rendered.elements;
        // An opening placeholder turn exists because of the element after it, so that element broke
        // the prefix.
        let at = elements.iter().skip(equal).position(|element| !element.is_synthetic);
        let at = equal + at.unwrap_or(0);
        let place = elements.get(at)?.place;
        let is_old = new.hash_at(at).is_some_and(|hash| old.hashes.has_hash_from(equal, hash));
        let is_new_summary = self.is_summary(place.index) && !is_old;
        let why = match () {
            () if old.dialect != dialect_letter(rendered.dialect) => "dialect",
            () if old.focus != self.focus_name() => "focus",
            () if is_new_summary && old.summaries < self.history.head.summaries => "compaction",
            () if old.budget != self.policy.budget.to_string() => "budget",
            // An earlier item left the context, or returned to it.
            () if is_old || new.has_hash_from(equal, hash) => "eviction",
            () => "edit",
        };
        Some((self.item_name(place), why.into()))
    }

    /// Finds the indexes of at most three messages on which a cache mark is useful, ascending.
    ///
    /// - The message with the last summary, because summaries change less often than messages.
    /// - The last message of the stable prefix: a provider looks for a cached prefix only a few
    ///   blocks back from a breakpoint.
    /// - The last message of all.
    fn find_breakpoints(&self, elements: &[ContextElement], equal: usize) -> Vec<u32> {
        let last = elements.iter().rev().find_map(|element| element.message);
        let of_summaries =
            elements.iter().rev().find(|element| self.is_summary(element.place.index));
        // A message of which only the first elements are equal does not belong to the prefix.
        let begun = elements.get(equal).and_then(|element| element.message);
        let of_equal = match begun {
            _ if equal == 0 => None,
            Some(begun) => begun.checked_sub(1),
            None => last,
        };
        let all = [of_summaries.and_then(|element| element.message), of_equal, last];
        let mut all = all.into_iter().flatten().map(int::to_u64).collect();
        sort::sort_and_dedup_numbers(&mut all);
        all.into_iter().map(|message| int::to_u32(int::to_usize(message))).collect()
    }
}
