//! Tests of the query parser: the items and filters of typed texts, and the limits.

use alloc::format;

use super::*;

/// Returns the items of a query as texts: `+`, `-` or nothing, the terms joined by `&`, then the
/// order.
fn items(text: &str) -> Vec<String> {
    let query = TextQuery::parse(text);
    let lossy = |term: &[u8]| String::from_utf8_lossy(term).into_owned();
    let show = |item: &QueryItem| {
        let sign = match item.presence {
            Presence::Should => "",
            Presence::Must => "+",
            Presence::MustNot => "-",
        };
        let terms: Vec<String> = item.terms.iter().map(|n| lossy(&query.terms[*n])).collect();
        let order: Vec<String> =
            item.order.iter().map(|(term, at)| format!("{}{at}", lossy(term))).collect();
        format!("{sign}{} {}", terms.join("&"), order.join(",")).trim_end().into()
    };
    // A word may also have an item for its camel-case identifier. Such an item is left out here.
    let typed: Vec<String> = query.items.iter().map(show).collect();
    let is_name = |text: &String| {
        let word = text.strip_prefix('i').map(|name| format!("w{name}"));
        word.is_some_and(|word| typed.contains(&word))
    };
    typed.iter().filter(|text| !is_name(text)).cloned().collect()
}

#[test]
fn nothing_typed_is_an_operator() {
    assert_eq!(
        items(r#"sub-agent OR "exact phrase" x:y"#),
        [
            "isub-agent",
            "wsub",
            "wsub&wagent wsub0,wagent1",
            "wagent",
            "wor",
            "wexact&wphrase wexact0,wphrase1",
            "ix:y",
            "wx",
            "wy"
        ]
    );
}

#[test]
fn signs_and_quotes_have_a_meaning_at_the_beginning_of_a_word() {
    assert_eq!(items("+must -not maybe"), ["wmaybe", "+wmust", "-wnot"]);
    assert_eq!(items("x+y c-z"), ["wx", "wy", "ic-z", "wc", "wc&wz wc0,wz1", "wz"]);
    assert_eq!(items("--json -- - + ++ -"), ["wjson"]);
    assert_eq!(
        items(r#"+"two words" -"not so""#),
        ["+wtwo&wwords wtwo0,wwords1", "-wnot&wso wnot0,wso1"]
    );
    assert_eq!(items("+foo_bar"), ["+wfoo&wbar wfoo0,wbar1"]);
    assert_eq!(items("\"open quote"), ["wopen", "wquote"]);
    assert_eq!(items(r#"say "" "x""#), ["wsay", "wx"]);
    assert_eq!(items(r#""to be or to be""#), ["wto&wbe&wor wto0,wbe1,wor2,wto3,wbe4"]);
    assert_eq!(items("same same SAME"), ["wsame"]);
    assert_eq!(items("mainloop main2loop"), ["wmainloop", "wmain2loop"]);
}

#[test]
fn words_that_say_nothing_are_left_out_beside_others() {
    assert_eq!(items("what did the cat do"), ["wcat"]);
    assert_eq!(items("who is the"), ["wis", "wthe", "wwho"]);
    assert_eq!(items("the -cat"), ["wthe", "-wcat"]);
    assert_eq!(items("\"the cat\" +the"), ["wthe&wcat wthe0,wcat1", "+wthe"]);
    assert!(STOP_WORDS.split(' ').is_sorted() && !STOP_WORDS.contains("  "));
}

#[test]
fn a_word_counts_in_its_forms_and_may_be_a_name() {
    let query = TextQuery::parse("running runs");
    let [item, _] = query.items.as_slice() else { panic!("{:?}", query.items) };
    let forms: Vec<&[u8]> = item.forms.iter().map(|n| query.terms[*n].as_slice()).collect();
    assert_eq!(forms, [&b"wrunning"[..], b"srun", b"wrun", b"wrune"]);
    assert_eq!(
        item.name.map(|name| query.terms[query.names[name]].as_slice()),
        Some(&b"prunning"[..])
    );
    assert_eq!(items("+running \"cats\""), ["wcats", "+wrunning"]);
    let query = TextQuery::parse("+running \"cats\"");
    assert!(!query.terms.iter().any(|term| term.first() == Some(&STEM)));
}

#[test]
fn several_words_without_conditions_are_a_question() {
    for text in ["where does the cat sleep", "cat mouse?", "the cat \"two words\""] {
        assert!(TextQuery::parse(text).is_question(), "{text}");
    }
    for text in [
        "cat?",
        "the cat",
        "cat mouse",
        "the cat +mouse",
        "the cat mouse -dog",
        "the cat mouse role:user",
        "the x-y",
    ] {
        assert!(!TextQuery::parse(text).is_question(), "{text}");
    }
}

#[test]
fn short_runs_of_cjk_stand_as_they_are() {
    assert_eq!(items("\u{8fc1}"), ["c\u{8fc1}"]);
    assert_eq!(items("\u{8fc1}\u{79fb}"), ["c\u{8fc1}\u{79fb}"]);
    let three = "c\u{8fc1}\u{79fb}&c\u{79fb}\u{8ba1} c\u{8fc1}0,c\u{79fb}1,c\u{8ba1}2";
    assert_eq!(items("\u{8fc1}\u{79fb}\u{8ba1}"), [three]);
    assert_eq!(items("\u{8fc1}\u{79fb}\u{8ba1} \u{8fc1}"), [three, "c\u{8fc1}"]);
    // A run over the limit counts as a sentence: each pair of characters is an item.
    assert_eq!(
        items("\u{4e00}\u{4e8c}\u{4e09}\u{56db}\u{4e94}"),
        ["c\u{4e00}\u{4e8c}", "c\u{4e8c}\u{4e09}", "c\u{4e09}\u{56db}", "c\u{56db}\u{4e94}"]
    );
    assert_eq!(items("\"\u{4e00}\u{4e8c}\u{4e09}\u{56db}\u{4e94}\"").len(), 1);
    let parts = "wv&w2 wv0,w21";
    assert_eq!(items("v2\u{8fc1}\u{79fb}ok"), ["wv2", parts, "c\u{8fc1}\u{79fb}", "wok"]);
}

#[test]
fn filters_with_a_value_that_fits_are_no_text() {
    let query = TextQuery::parse(
        "role:User tool:list_dir -tool:bash speaker:\"Jane Doe\" since:2026-01-02 \
         before:2026-01-03T04:05:06Z word",
    );
    assert_eq!(query.items.len(), 1);
    let tools: Vec<bool> = query
        .filters
        .iter()
        .filter(|filter| matches!(filter.property, FilterProperty::Tool(_)))
        .map(|filter| filter.is_negated)
        .collect();
    assert_eq!(tools, [false, true]);
    let speaks = query.filters.iter().find_map(|filter| match &filter.property {
        FilterProperty::Speaker { name, words } => Some((name.as_str(), words)),
        _ => None,
    });
    let (name, words) = speaks.unwrap();
    assert_eq!(name, "jane doe");
    let words: Vec<&[u8]> = words.iter().map(|word| query.terms[*word].as_slice()).collect();
    assert_eq!(words, [b"pjane", b"pdoe".as_slice()]);
    assert!(query.terms.iter().any(|term| term == b"nlist_dir"));
    assert_eq!(query.window.since, time::parse("2026-01-02"));
    assert_eq!(query.window.before, time::parse("2026-01-03T04:05:06Z"));

    for text in ["tool:", "speaker: x"] {
        let query = TextQuery::parse(text);
        assert!(query.filters.is_empty() && query.window.is_unbounded(), "{text}");
        assert!(!query.items.is_empty() && query.wrong_filter.is_none(), "{text}");
    }
    for text in ["role:nobody", "since:yesterday", "before:2020", "-since:2026-01-02"] {
        let wrong = TextQuery::parse(text).wrong_filter.unwrap();
        assert_eq!(&*wrong, text.trim_start_matches('-'));
    }
}

#[test]
fn a_word_with_a_dash_is_excluded_unless_it_is_a_flag() {
    let (_, flags) = TextQuery::for_flags("rm -rf x -a.b -\"q r\" -role:user --long").unwrap();
    assert_eq!(flags, ["-rf", "-a.b"]);
    let query = TextQuery::parse_at("rm -rf -gone NOT -rf", 0, &["-rf"]);
    assert_eq!(query.readings, ["excluded: gone", "excluded: -rf", "flag: -rf"]);
    assert_eq!(items("NOT NULL not x NOT"), ["wnull", "wx"]);
    assert_eq!(items("a NOT  \"b c\""), ["wa", "-wb&wc wb0,wc1"]);
}

#[test]
fn hostile_queries_are_bounded() {
    let many: Vec<String> = (0..10_000).map(|n| format!("w{n}")).collect();
    for text in [
        many.join(" "),
        many.join("-"),
        format!("\"{}\"", many.join(" ")),
        "\"".repeat(100_000),
        "x".repeat(100_000),
        "+".repeat(100_000),
        "\u{6570}".repeat(30_000),
        "tool:a ".repeat(10_000),
        "since:".repeat(10_000),
        "-\" ".repeat(30_000),
    ] {
        let query = TextQuery::parse(&text);
        assert!(query.terms.len() <= TERMS_MAX, "{}", query.terms.len());
        assert!(query.items.len() <= 2 * TERMS_MAX, "{}", query.items.len());
        assert!(query.filters.len() <= 2 * TERMS_MAX, "{}", query.filters.len());
        assert!(!query.items.is_empty() || text.len() > 100);
    }
    assert!(TextQuery::parse(&many.join(" ")).is_cut);
    assert!(TextQuery::parse("...!?").is_empty());
}

#[test]
fn conditions_stand_before_all_words() {
    let words: Vec<String> = (0..10_000).map(|n| format!("w{n}")).collect();
    let text = format!("{} -gone +kept tool:read role:user before:2026-01-02", words.join(" "));
    assert!(text.len() > TEXT_BYTES_MAX);
    let query = TextQuery::parse(&text);
    assert!(query.is_cut && !query.has_dropped_conditions);
    assert_eq!(query.filters.len(), 2);
    assert!(query.window.before.is_some());
    let of = |presence| query.items.iter().filter(|item| item.presence == presence).count();
    assert_eq!((of(Presence::Must), of(Presence::MustNot)), (1, 1));
    assert!(TextQuery::parse(&words.join(" +")).has_dropped_conditions);
    assert_eq!(strip_syntax("+a -b --c \"d e\" role:x"), "a b c  d e  role x ");
}

#[test]
fn expressions_are_told_from_text() {
    for text in
        ["foo|bar", "a.*b", "^start", "end$", r"\bword", "[a-z]x", "[ab]+", "(?i)x", r"a\.b"]
    {
        assert!(looks_like_regex(text), "{text}");
    }
    for text in [
        "\"foo|bar\"",
        "ls | wc",
        "what is this?",
        "see [1] and [2]",
        "costs 5 $",
        "a.b",
        "x = y[0]",
        "C:\\temp",
        "really..?",
        "||",
        "[todo]",
        "^",
        "$",
        "",
    ] {
        assert!(!looks_like_regex(text), "{text}");
    }
}
