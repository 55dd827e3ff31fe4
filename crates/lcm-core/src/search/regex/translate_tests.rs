//! Tests of the translation: its result equals the result of the crate `regex_syntax`.

use alloc::{format, string::String, vec, vec::Vec};

use proptest::prelude::*;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use super::*;

fn ours(pattern: &str) -> Result<Hir> {
    let ast = ParserBuilder::new()
        .nest_limit(NESTING_MAX)
        .build()
        .parse(pattern)
        .map_err(|error| syntax_error(&error))?;
    translate_ast(&ast)
}

fn theirs(pattern: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().nest_limit(NESTING_MAX).build().parse(pattern).ok()
}

/// Returns the expression with each class of bytes replaced by the class of the same ASCII
/// characters.
fn in_characters(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Class(Class::Bytes(class)) => {
            Hir::class(Class::Unicode(class.to_unicode_class().unwrap()))
        }
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(in_characters(&repetition.sub)))
        }
        HirKind::Capture(capture) => {
            let mut capture = capture.clone();
            capture.sub = in_characters(&capture.sub).into();
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(in_characters).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(in_characters).collect()),
        _ => hir.clone(),
    }
}

fn assert_same(pattern: &str) {
    let ours = ours(pattern);
    match (&ours, &theirs(pattern)) {
        (Ok(ours), Some(theirs)) => {
            assert_eq!(in_characters(ours), in_characters(theirs), "{pattern}");
        }
        (Err(error), None) => assert_eq!(error.code, crate::ErrorCode::InvalidInput, "{pattern}"),
        (ours, theirs) => panic!("{pattern}: ours {ours:?}, theirs {theirs:?}"),
    }
}

fn class_of(pattern: &str) -> ClassUnicode {
    match theirs(pattern).unwrap().kind() {
        HirKind::Class(Class::Unicode(class)) => class.clone(),
        other => panic!("{pattern} is {other:?}"),
    }
}

#[test]
fn classes_hold_what_unicode_says() {
    let mut classes = char_classes::CharClasses::default();
    for (kind, pattern) in [
        (regex_syntax::ast::ClassPerlKind::Digit, r"\d"),
        (regex_syntax::ast::ClassPerlKind::Space, r"\s"),
        (regex_syntax::ast::ClassPerlKind::Word, r"\w"),
    ] {
        assert_eq!(classes.perl_class(&kind, false), class_of(pattern), "{pattern}");
    }
}

/// Goal: each character matches exactly the characters that, by Unicode, differ from it only in
/// case.
#[test]
fn case_folding_is_that_of_unicode() {
    let mut classes = char_classes::CharClasses::default();
    let of = |char| ClassUnicode::new([ClassUnicodeRange::new(char, char)]);
    let mut cased = 0;
    for char in '\0'..='\u{2ffff}' {
        let mut theirs = of(char);
        theirs.try_case_fold_simple().unwrap();
        cased += u32::from(theirs != of(char));
        assert_eq!(classes.fold_class(of(char), false), theirs, "U+{:X}", u32::from(char));
    }
    assert!(cased > 2800, "{cased}");
}

#[test]
fn every_construct_means_what_it_means_there() {
    for pattern in [
        "",
        "abc",
        "a|b|",
        "(?i)stra\u{df}e|\u{3c3}\u{3ac}|k",
        "(?i-u)k\u{e9}[a-c]",
        "(?i)[^x]",
        "(?i)[a-z&&[^aeiou]]",
        "(?i)[k--K]",
        "[a-c~~b-d]",
        r"[\w--\d]",
        r"[^\W\d_]+",
        r"[[:alpha:][:^digit:]]",
        r"(?-u)[[:punct:]]\d\s\w",
        r"(?-u)\xff",
        r"(?-u)[^a]",
        r"(?-u)\W",
        r"(?-u).",
        "(?-u)[\u{e9}]",
        r"\xff",
        r"(?s).(?R).(?-s).(?m)^$(?-m)^$(?mR)^$",
        r"\A\z\b\B\b{start}\b{end}\b{start-half}\b{end-half}\<\>",
        r"(?-u)\b\B\b{start}\b{end}\b{start-half}\b{end-half}",
        "a?b*c+d{2}e{2,}f{2,5}g??h*?(?U)i+j+?",
        "(a(?i)b(?-i:c)d)e(?P<name>f)(?:g)",
        "((?i))a",
        r"[a\]\-\x41\u{263a}-\u{263c}]",
        "[]a]",
        "[z-a]",
        "(?x) a b # note",
        r"(\w+)\s+(\d{4}-\d\d)",
    ] {
        assert_same(pattern);
    }
}

#[test]
fn properties_are_refused() {
    for pattern in [r"\p{Greek}", r"\pL", r"[\P{Lu}a]"] {
        let error = ours(pattern).unwrap_err();
        assert_eq!(error.code, crate::ErrorCode::InvalidInput, "{pattern}");
        assert!(error.message.contains("is not offered"), "{}", error.message);
    }
}

fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<&'static str> = vec![
        "a",
        "K",
        "\u{e9}",
        "\u{3a3}",
        "\u{4f60}",
        ".",
        "|",
        "(",
        ")",
        "(?:",
        "(?i)",
        "(?-i)",
        "(?i:",
        "(?s)",
        "(?m)",
        "(?R)",
        "(?U)",
        "(?-u)",
        "(?u)",
        "*",
        "+?",
        "?",
        "{2,3}",
        "{2}",
        "[",
        "[^",
        "]",
        "-",
        "&&",
        "--",
        "~~",
        r"\d",
        r"\W",
        r"\s",
        r"\w",
        r"\S",
        "[:alpha:]",
        "[:^space:]",
        r"\b",
        r"\B",
        "^",
        "$",
        r"\x7f",
        r"\xff",
        r"\-",
        "0",
        "z",
        " ",
    ];
    prop::sample::select(pieces).prop_map(String::from)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_means_what_it_means_there(pieces in prop::collection::vec(piece(), 0..14)) {
        assert_same(&pieces.concat());
    }

    #[test]
    fn any_class_means_what_it_means_there(pieces in prop::collection::vec(piece(), 1..10)) {
        for flags in ["", "(?i)", "(?-u)", "(?i-u)"] {
            assert_same(&format!("{flags}[{}]", pieces.concat()));
        }
    }
}
