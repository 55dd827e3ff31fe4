//! How much of a context is equal to an earlier one, why no more is, and where a cache may end.
//!
//! A provider's prompt cache serves the beginning that two prompts share. In: a rendered context
//! and the token of an earlier one. Out: tokens of the equal beginning, what ended it and why, and
//! the messages behind which the next prompt can be equal, too. A token has all that is compared,
//! so that nothing is stored.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use lcm_text::base::hash;

use super::{
    Assembly,
    render::{ContextElement, RenderedContext},
};
use crate::storage::context::ContextItem;
use lcm_text::{
    base::int,
    types::api::{Dialect, PrefixReport},
};

/// What a chain of no elements is.
pub(super) const CHAIN_START: [u8; 32] = [0; 32];
/// Characters of one element's hash in a token: 36 bits, so that another element at the same place
/// counts as equal once in 69 thousand million, and a token is a small part of what it is about.
const HASH_CHARACTERS: usize = 6;
/// First characters of a token.
const TOKEN_VERSION: &str = "p4.";
/// Stands behind the dialect of an assembly that ends with a turn that nobody said.
const SYNTHETIC_END: &str = "-";

/// The hash of elements after one more. Whoever has the hash of a context needs that of the next
/// element only.
pub(super) fn chain_next(before: &[u8; 32], element: &[u8; 32]) -> [u8; 32] {
    hash::hash_fields(&[b"lcm assembly", before, element])
}

/// The hash of elements, one after another.
pub(super) fn chain_all(hashes: &mut dyn Iterator<Item = [u8; 32]>) -> [u8; 32] {
    hashes.fold(CHAIN_START, |before, hash| chain_next(&before, &hash))
}

/// What is remembered of elements: the beginnings of their hashes without anything between.
#[derive(Clone, Copy)]
struct TokenHashes<'a>(&'a str);

impl<'a> TokenHashes<'a> {
    /// That of the element at this index.
    fn hash_at(self, index: usize) -> Option<&'a str> {
        let from = index.checked_mul(HASH_CHARACTERS)?;
        self.0.get(from..from + HASH_CHARACTERS)
    }

    /// Whether an element from this index on has this mark.
    fn has_hash_after(self, index: usize, mark: &str) -> bool {
        (index..).map_while(|at| self.hash_at(at)).any(|known| known == mark)
    }
}

/// What a token says.
struct PreviousToken<'a> {
    /// Its dialect, in one character.
    dialect: &'a str,
    /// Whether its last element is a turn that nobody said, which gives way to the next message.
    ends_synthetic: bool,
    /// How many summaries were ever made.
    summaries: u64,
    budget: &'a str,
    /// Id of the focus brief; empty: there was none.
    focus: &'a str,
    hashes: TokenHashes<'a>,
}

impl<'a> PreviousToken<'a> {
    /// Reads a token; `None`: it is none of this conversation.
    fn read(token: &'a str, conversation: &str) -> Option<Self> {
        let mut parts = token.strip_prefix(TOKEN_VERSION)?.splitn(6, '.');
        let mut next = || parts.next();
        if next()? != conversation {
            return None;
        }
        let form = next()?;
        Some(Self {
            dialect: form.trim_end_matches(SYNTHETIC_END),
            ends_synthetic: form.ends_with(SYNTHETIC_END),
            summaries: next()?.parse().ok()?,
            budget: next()?,
            focus: next()?,
            hashes: TokenHashes(next()?),
        })
    }
}

/// The character of a dialect in a token.
const fn dialect_letter(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Lcm => "l",
        Dialect::Anthropic => "a",
        Dialect::OpenaiChat => "c",
        Dialect::OpenaiResponses => "r",
        Dialect::Gemini => "g",
    }
}

impl Assembly<'_> {
    /// What is equal to the assembly that `previous` names.
    pub(super) fn compare_prefix(
        &self,
        rendered: &RenderedContext,
        dialect: Dialect,
        previous: Option<&str>,
    ) -> PrefixReport {
        let elements = &rendered.elements;
        let mut marks = String::with_capacity(elements.len() * HASH_CHARACTERS + 4);
        for element in elements {
            hash::push_base64url(&mut marks, &element.hash, HASH_CHARACTERS);
        }
        let new = TokenHashes(&marks);
        let root = hash::hash_fields(&[b"lcm token", self.history.keys.key_prefix().as_bytes()]);
        let mut conversation = String::new();
        hash::push_base64url(&mut conversation, &root, HASH_CHARACTERS);
        let old = previous.and_then(|token| PreviousToken::read(token, &conversation));
        let is_equal = |at: &usize| {
            old.as_ref().is_some_and(|old| {
                old.dialect == dialect_letter(dialect)
                    && old.hashes.hash_at(*at).is_some_and(|o| new.hash_at(*at) == Some(o))
            })
        };
        let equal = (0..elements.len()).take_while(is_equal).count();
        let stable: u64 = elements.iter().take(equal).map(|element| element.tokens).sum();
        let broken =
            old.as_ref().and_then(|old| self.find_break(rendered, dialect, equal, old, new));
        let (broken_by, broken_why) = broken.unzip();
        let (budget, focus) = (self.policy.budget, self.focus_name());
        let made = self.history.head.summaries;
        let closed =
            if elements.last().is_some_and(|last| last.is_synthetic) { SYNTHETIC_END } else { "" };
        let form = dialect_letter(dialect);
        PrefixReport {
            stable_tokens: old.map(|_| int::saturate_tokens(stable)),
            broken_by,
            broken_why,
            breakpoints: find_breakpoints(elements, self.items, equal),
            sha256: hash::hex(&rendered.chain_hash),
            token: format!(
                "{TOKEN_VERSION}{conversation}.{form}{closed}.{made}.{budget}.{focus}.{marks}"
            ),
        }
    }

    /// The item at which an assembly is no longer equal to an earlier one, and why.
    fn find_break(
        &self,
        rendered: &RenderedContext,
        dialect: Dialect,
        equal: usize,
        old: &PreviousToken<'_>,
        new: TokenHashes<'_>,
    ) -> Option<(String, String)> {
        // What follows the end of the earlier assembly is new and breaks nothing.
        let mark = old.hashes.hash_at(equal)?;
        if old.ends_synthetic && old.hashes.hash_at(equal + 1).is_none() {
            return None;
        }
        let elements = &rendered.elements;
        // A turn that nobody said is there because of what stands behind it.
        let at = elements.iter().skip(equal).position(|element| !element.is_synthetic);
        let at = equal + at.unwrap_or(0);
        let (index, seq) = elements.get(at)?.place;
        let is_old = new.hash_at(at).is_some_and(|mark| old.hashes.has_hash_after(equal, mark));
        let is_new = is_summary(self.items, index) && !is_old;
        let why = match () {
            () if old.dialect != dialect_letter(dialect) => "dialect",
            () if old.focus != self.focus_name() => "focus",
            () if is_new && old.summaries < self.history.head.summaries => "compaction",
            () if old.budget != self.policy.budget.to_string() => "budget",
            // Something before it is gone, or has come back.
            () if is_old || new.has_hash_after(equal, mark) => "eviction",
            () => "edit",
        };
        Some((self.item_name(index, seq), why.into()))
    }
}

fn is_summary(items: &[ContextItem], index: usize) -> bool {
    matches!(items.get(index), Some(ContextItem::Summary(_)))
}

/// Indexes of the messages behind which a cache may end, ascending: the last one of the summaries,
/// which changes only with them; the last one of the equal beginning, because a provider looks for
/// what it has only a few blocks back from a breakpoint; and the last one of all.
fn find_breakpoints(elements: &[ContextElement], items: &[ContextItem], equal: usize) -> Vec<u32> {
    let last = elements.iter().rev().find_map(|element| element.message);
    let of_summaries = elements.iter().rev().find(|element| is_summary(items, element.place.0));
    // A message of which a part is new is not equal.
    let begun = elements.get(equal).and_then(|element| element.message);
    let of_equal = match begun {
        _ if equal == 0 => None,
        Some(begun) => begun.checked_sub(1),
        None => last,
    };
    let mut out: Vec<u32> = Vec::new();
    let mut all = [of_summaries.and_then(|element| element.message), of_equal, last];
    all.sort_unstable();
    for at in all.into_iter().flatten().map(int::to_u32) {
        if out.last() != Some(&at) {
            out.push(at);
        }
    }
    out
}
