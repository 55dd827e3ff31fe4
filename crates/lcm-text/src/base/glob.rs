//! Matches names of sessions and models with patterns of the configuration.
//!
//! Input: a pattern and a name. `*` matches any number of characters except colons, and `**`
//! matches any number of any characters; the number may be 0. Any other character matches itself.
//! A pattern must match the whole name. The time is at most proportional to the product of the
//! lengths of pattern and name.

use alloc::vec::Vec;

#[derive(Clone, Copy, Eq, PartialEq)]
enum GlobToken {
    /// `**`.
    Any,
    /// `*`.
    Segment,
    Byte(u8),
}

/// Returns whether the pattern matches the whole name.
///
/// ```
/// use lcm_text::base::glob;
///
/// assert!(glob::matches("agent:*", "agent:build"));
/// assert!(!glob::matches("agent:*", "agent:build:1"));
/// assert!(glob::matches("agent:**", "agent:build:1"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    let tokens = parse_tokens(pattern);
    // `reachable[i]`: whether the tokens before token `i` match the bytes of the name read so far.
    // The last entry is for all tokens.
    let mut reachable: Vec<bool> = Vec::with_capacity(tokens.len() + 1);
    reachable.push(true);
    reachable.resize(tokens.len() + 1, false);
    skip_wildcards(&tokens, &mut reachable);
    for byte in name.bytes() {
        let mut entered = false;
        for (state, token) in reachable.iter_mut().zip(&tokens) {
            let was_reachable = *state;
            let stays = *token == GlobToken::Any || (*token == GlobToken::Segment && byte != b':');
            *state = entered || (was_reachable && stays);
            entered = was_reachable && *token == GlobToken::Byte(byte);
        }
        if let Some(last) = reachable.last_mut() {
            *last = entered;
        }
        skip_wildcards(&tokens, &mut reachable);
    }
    reachable.last().is_some_and(|last| *last)
}

fn parse_tokens(pattern: &str) -> Vec<GlobToken> {
    let mut tokens: Vec<GlobToken> = Vec::with_capacity(pattern.len());
    for byte in pattern.bytes() {
        match tokens.last_mut() {
            Some(last) if byte == b'*' && *last == GlobToken::Segment => *last = GlobToken::Any,
            _ if byte == b'*' => tokens.push(GlobToken::Segment),
            _ => tokens.push(GlobToken::Byte(byte)),
        }
    }
    tokens
}

/// Marks the states that become reachable when wildcards match the empty text.
fn skip_wildcards(tokens: &[GlobToken], reachable: &mut [bool]) {
    let mut entered = false;
    for (state, token) in reachable.iter_mut().zip(tokens) {
        *state |= entered;
        entered = *state && !matches!(token, GlobToken::Byte(_));
    }
    if let Some(last) = reachable.last_mut() {
        *last |= entered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stays_within_a_segment() {
        for (pattern, name, expected) in [
            ("agent:*:cron:**", "agent:main:cron:job:run:1", true),
            ("agent:*:cron:**", "agent:main:chat", false),
            ("agent:*:cron:**", "agent:a:b:cron:x", false),
            ("agent:*", "agent:a:b", false),
            ("agent:*", "agent:a", true),
            ("agent:*", "agent:", true),
            ("agent:*", "my agent:a", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("**", "a:b:c", true),
            ("***", "a:b", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("**:x:*", "x:x:x:y", true),
            ("*\u{e9}", "caf\u{e9}", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    /// Goal: no pattern is slow. Method: a pattern and a name for which a backtracking matcher
    /// takes 2^100 steps.
    #[test]
    fn many_wildcards_take_the_product_of_the_lengths() {
        let pattern = "*a**".repeat(100) + "b";
        assert!(!matches(&pattern, &"a".repeat(512)));
        assert!(matches(&pattern, &("a".repeat(511) + "b")));
    }
}
