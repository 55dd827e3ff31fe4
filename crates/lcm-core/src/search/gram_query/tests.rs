//! Tests of gram queries: a gram query never excludes a text in which its expression matches.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
};

use proptest::prelude::*;

use super::{super::regex::Regex, *};

fn of(pattern: &str) -> GramQuery {
    Regex::compile(pattern).unwrap().build_gram_query()
}

fn shown(query: &GramQuery) -> String {
    let list = |list: &[GramQuery], word: &str| {
        let members: Vec<String> = list.iter().map(shown).collect();
        format!("({})", members.join(word))
    };
    match query {
        GramQuery::Gram(gram) => String::from_utf8_lossy(gram).into_owned(),
        GramQuery::And(members) => list(members, "&"),
        GramQuery::Or(members) => list(members, "|"),
    }
}

fn grams_of(text: &str) -> BTreeSet<[u8; 3]> {
    let lower = text.to_ascii_lowercase();
    lower.as_bytes().windows(3).map(|gram| gram.try_into().unwrap()).collect()
}

fn holds(query: &GramQuery, grams: &BTreeSet<[u8; 3]>) -> bool {
    match query {
        GramQuery::Gram(gram) => grams.contains(gram),
        GramQuery::And(list) => list.iter().all(|query| holds(query, grams)),
        GramQuery::Or(list) => list.iter().any(|query| holds(query, grams)),
    }
}

#[test]
fn expressions_ask_for_what_they_cannot_do_without() {
    for (pattern, expected) in [
        ("Abcd", "(abc&bcd)"),
        ("ab", "()"),
        ("a.c", "()"),
        ("abc.*def", "(abc&def)"),
        ("abc|def", "(abc|def)"),
        ("abc|d", "()"),
        ("(?i)abc", "abc"),
        ("x(abc)+y", "(abc&bcy&xab)"),
        ("a[bc]d", "(abd|acd)"),
        ("ab(c|d)ef", "((abc&bce&cef)|(abd&bde&def))"),
        ("ab?c{3}", "((abc&bcc&ccc)|(acc&ccc))"),
        (r"fn \w+\(", "fn "),
        (r"fn_\w+\(\);", "(();&fn_)"),
        (r"^abc$", "abc"),
        ("(abc)?", "()"),
        ("[^a]bcd", "bcd"),
        ("", "()"),
    ] {
        assert_eq!(shown(&of(pattern)), expected, "{pattern}");
    }
}

#[test]
fn units_are_joined_by_and_and_or() {
    let units: BTreeMap<[u8; 3], Vec<u64>> =
        [(*b"abc", vec![1, 3, 5, 9]), (*b"def", vec![3, 4, 9]), (*b"xyz", vec![2, 9])].into();
    let of_gram = |gram: [u8; 3]| units.get(&gram).map_or(&[][..], Vec::as_slice);
    let find = |pattern: &str| of(pattern).select_units(&of_gram);
    assert_eq!(find("abc"), Some(vec![1, 3, 5, 9]));
    assert_eq!(find("abc.*def"), Some(vec![3, 9]));
    assert_eq!(find("def|xyz"), Some(vec![2, 3, 4, 9]));
    assert_eq!(find("abc.*(def|xyz)"), Some(vec![3, 9]));
    assert_eq!(find("nothing"), Some(vec![]));
    assert_eq!(find("a.c"), None);
    assert_eq!(find("[a&&b]"), Some(vec![]));
}

#[test]
fn large_expressions_stay_bounded() {
    let words: Vec<String> = (0..1400).map(|n| format!("w{n:05}")).collect();
    let many = words.join("|");
    for pattern in [
        &many,
        &"abc.".repeat(2_400),
        &"(a|bc)".repeat(1_600),
        &format!("{}abc{}", "(".repeat(90), "{4})".repeat(90)),
        &"x".repeat(10_000),
        &"[a-h]".repeat(2_000),
    ] {
        // `Regex::compile` would refuse some of these patterns as too large, so their syntax is
        // parsed directly.
        let hir = regex_syntax::parse(pattern).unwrap();
        assert!(GramQuery::from_hir(&hir).list_grams().len() <= GRAMS_MAX, "{pattern}");
    }
}

/// A strategy of expressions over few characters, so that they match often.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abcK]{1,4}".prop_map(String::from),
        1 => Just(String::from("[ab]")),
        1 => Just(String::from("[^a]")),
        1 => Just(String::from(".")),
        1 => Just(String::from(r"\b")),
        1 => Just(String::from("\u{e9}")),
        1 => Just(String::from(r"\w")),
        1 => Just(String::from("(?i:k\u{e9})")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|list| list.concat()),
            2 => prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|list| format!("({})", list.join("|"))),
            1 => (inner.clone(), prop_oneof![
                Just("*"), Just("+"), Just("?"), Just("{2}"), Just("{2,}"), Just("{0,3}"),
                Just("{5}"), Just("+?"),
            ]).prop_map(|(inner, times)| format!("(?:{inner}){times}")),
            1 => inner.prop_map(|inner| format!("(?i:{inner})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Goal: every unit with a match is selected, and the matches equal those of the regex crate.
    #[test]
    fn a_text_with_a_match_fulfils_the_condition(
        pattern in expression(),
        texts in prop::collection::vec("[abcdkK\u{e9}\u{c9}\u{212a} ]{0,40}", 1..12),
    ) {
        let mut regex = Regex::compile(&pattern).unwrap();
        let reference = ::regex::Regex::new(&pattern).unwrap();
        let query = regex.build_gram_query();
        for text in &texts {
            let expected = reference.find(text).map(|found| found.range());
            prop_assert_eq!(regex.is_match(text), expected.is_some());
            prop_assert_eq!(regex.find(text), expected.clone());
            if expected.is_some() {
                prop_assert!(holds(&query, &grams_of(text)), "{} in {text:?}", shown(&query));
            }
        }
    }
}
