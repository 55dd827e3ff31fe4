//! Tests of regular expressions: limits, and matches of the simulation where the automaton gives
//! up.

use super::*;
use lcm_text::base::error::ErrorCode;

fn refused(pattern: &str) -> Error {
    Regex::compile(pattern).err().unwrap_or_else(|| panic!("`{pattern}` compiles"))
}

#[test]
fn nested_quantifiers_are_answered_in_linear_time() {
    let mut regex = Regex::compile("(a+)+b").unwrap();
    assert!(!regex.is_match(&"a".repeat(100_000)));
    assert!(regex.is_match(&("a".repeat(100_000) + "b")));
    assert_eq!(regex.find("xaab"), Some(1..4));
}

#[test]
fn what_is_no_expression_names_its_position() {
    let error = refused("ab[");
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert!(error.message.ends_with("unclosed character class at byte 2"), "{}", error.message);
    for bad in ["(", "*", "a{2,1}", r"\p{Nonsense}", r"(?<n", &"(".repeat(101)] {
        assert_eq!(refused(bad).code, ErrorCode::InvalidInput, "{bad}");
    }
    assert!(!refused(&"(".repeat(5000)).message.contains('\n'));
}

#[test]
fn what_is_too_large_is_over_a_limit() {
    assert!(Regex::compile(&"a".repeat(PATTERN_BYTES_MAX)).is_ok());
    let error = refused(&"a".repeat(PATTERN_BYTES_MAX + 1));
    assert_eq!(error.code, ErrorCode::LimitExceeded);
    assert!(error.message.contains("10000"), "{}", error.message);
    for large in [r"\w{1000}", "(?:(?:a{100}){100}){100}"] {
        assert_eq!(refused(large).code, ErrorCode::LimitExceeded, "{large}");
    }
}

/// Goal: a match is found also where the automaton gives up. Method: word boundaries beside
/// characters that are not ASCII, and an expression with exponentially many states.
#[test]
fn what_the_automaton_cannot_answer_is_answered() {
    let mut regex = Regex::compile(r"\bna\u{ef}ve\b").unwrap();
    assert_eq!(regex.find("\u{fc}ber na\u{ef}ve \u{fc}"), Some(6..12));
    assert!(regex.is_match("a na\u{ef}ve \u{fc}"));
    assert!(!regex.is_match("na\u{ef}ve\u{e9}"));
    assert!(regex.simulation.is_some());
    let mut regex = Regex::compile("[ab]*a[ab]{30}c").unwrap();
    let mut text = alloc::string::String::new();
    let mut state = 1u32;
    for _ in 0..50_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push(if state >> 31 == 0 { 'a' } else { 'b' });
    }
    assert!(!regex.is_match(&text));
    assert!(regex.simulation.is_some(), "the automaton should have given up");
    let end = text.len();
    regex.reset_budget();
    text.insert(end - 31, 'a');
    text.push('c');
    assert_eq!(regex.find(&text).map(|found| found.end), Some(text.len()));
}

#[test]
fn empty_matches_do_not_split_characters() {
    let mut regex = Regex::compile("x*").unwrap();
    assert_eq!(regex.find("\u{e9}x"), Some(0..0));
    let mut regex = Regex::compile(r"\B").unwrap();
    assert!(!regex.is_match("\u{e9}"));
}

/// Goal: the step budget bounds the cost of every expression. Method: an expression with hundreds
/// of places that needs the simulation, and an expression that reads each byte once.
#[test]
fn what_would_cost_too_much_is_refused_and_says_so() {
    let mut regex = Regex::compile("(?s)[a-e].{900}[QZ]").unwrap();
    let text = "abcde fghij ".repeat(4_000);
    assert!(!regex.is_match(&text) && regex.is_refused() && regex.is_budget_spent());
    regex.reset_budget();
    assert_eq!(regex.find(&(text + "Q")), Some(0..0), "its beginning is shown");
    let mut regex = Regex::compile("xyz").unwrap();
    let text = "a".repeat(2 << 20);
    assert!(!regex.is_match(&text) && !regex.is_budget_spent());
    assert!(!regex.is_match(&text) && regex.is_budget_spent() && !regex.is_refused());
    assert!(regex.is_match("xyz"), "bytes are read beyond it, and the scan stops");
}
