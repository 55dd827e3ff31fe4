//! Where a search in files ends and continues, and texts that are costly to search.

use super::{
    BYTES_MAX, ErrorCode, Host, Json, Random, append, ask, literal, naive_matches, number,
    number_of, places, query, result, shelf, text_of,
};

/// Returns the byte of a file that a cursor names.
pub(crate) fn byte_of(cursor: &str) -> usize {
    let (start, _) = cursor.rsplit_once('-').unwrap();
    start.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Returns the answers to a query and to its continuations, until an answer names no continuation.
pub(crate) fn pages(host: &mut Host, pattern: &str, mode: &str) -> Vec<Json> {
    let mut answers: Vec<Json> = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let limit = ("limit", 200_u64.into());
        let asked = match &next {
            None => query(pattern, mode, [limit]),
            Some(cursor) => query(pattern, mode, [limit, ("cursor", cursor.as_str().into())]),
        };
        host.store.begin_call();
        let answer = ask(host, asked).unwrap();
        let read = host.store.counts().bytes_read;
        assert!(read < 2 * BYTES_MAX, "{read}");
        let before = next.take();
        next = answer.field("cursor").unwrap().as_str().map(str::to_owned);
        let is_limited = number_of(&answer, "scan-limited");
        assert_eq!(is_limited, next.is_some());
        answers.push(answer);
        if next.is_none() {
            return answers;
        }
        assert!(next != before && answers.len() < 100, "{next:?}");
    }
}

/// Goal: a search that ends early continues where it ended, until each file was searched once. This
/// is so even if many messages have one time, one message has several files, and many messages have
/// one file. Method: some megabytes of files; all answers together are compared with a search of
/// the texts.
#[test]
fn an_answer_leads_on_until_each_file_was_looked_through_once() {
    let mut random = Random::new(24);
    let mut host = super::host();
    let mut file = |number: u64| {
        let mut lines = vec![format!("leaf of {number}"); 20_000];
        for part in 0..3 {
            let at = usize::try_from(part * 6_000 + random.between(0, 5_000)).unwrap();
            lines[at] = format!("needle of {number}");
        }
        lines.join("\n")
    };
    let mut expected = Vec::new();
    let mut expect = |number: u64, text: &str| {
        let found = naive_matches(text, "needle of");
        expected.extend(found.into_iter().map(|(line, byte)| (number, line, byte)));
    };
    for message in 0..12 {
        let parts: Vec<String> = (0..=message % 4)
            .map(|part| {
                let number = message * 10 + part;
                let text = file(number);
                expect(number, &text);
                format!(
                    "{{\"type\":\"tool_result\",\"call_id\":\"{number}\",\"name\":\"cat\",\
                     \"output\":{}}}",
                    literal(&text)
                )
            })
            .collect();
        append(&mut host, &format!("{{\"role\":\"tool\",\"parts\":[{}]}}", parts.join(",")));
    }
    let same = format!("needle of 777\n{}", "hay and hay\n".repeat(400));
    expect(777, &same);
    for number in 0..1_000 {
        let raw = result(&same).replacen("entry ", &format!("entry {number} "), 1);
        append(&mut host, &raw);
    }
    expected.sort_unstable();
    for (pattern, mode) in [("needle of \\d+", "regex"), ("needle", "full-text")] {
        let answers = pages(&mut host, pattern, mode);
        let mut found = Vec::new();
        for one in answers.iter().flat_map(|answer| answer.list("matches")) {
            let snippet = one.text("snippet");
            let shown = snippet.split("needle of ").nth(1).unwrap();
            let number = shown.split(' ').next().unwrap().parse::<u64>().unwrap();
            found.push((number, self::number(one, "line"), self::number(one, "byte")));
        }
        found.sort_unstable();
        assert_eq!(found, expected, "{mode} in {} answers", answers.len());
        assert!(answers.len() > 2, "{}", answers.len());
    }
}

/// Goal: a match at the place where one answer ends and the next begins is found once. Method:
/// lines of one length, so that this place does not move; two words are on lines beside it.
#[test]
fn what_stands_where_an_answer_ends_is_found_once() {
    const LINE: usize = 20;
    let with = |places: &[(usize, &str)]| {
        let mut lines = vec!["nothing of it here\r\n".to_owned(); 400_000];
        places.iter().for_each(|(at, word)| lines[*at] = format!("{word:18}\r\n"));
        let mut host = super::host();
        append(&mut host, &result(&lines.concat()));
        host
    };
    let mut host = with(&[]);
    for (pattern, mode, passages) in
        [("+alpha +beta", "full-text", 1), ("\"alpha beta\"", "full-text", 1), ("beta", "regex", 1)]
    {
        let first = ask(&mut host, query(pattern, mode, [])).unwrap();
        let border = byte_of(first.field("cursor").unwrap().as_str().unwrap()) / LINE;
        for near in border - 4..border + 4 {
            let mut host = with(&[(near, "alpha"), (near + 1, "beta")]);
            let answers = pages(&mut host, pattern, mode);
            let found: Vec<(usize, usize)> = answers.iter().flat_map(places).collect();
            assert_eq!(found.len(), passages, "{pattern} at {near} of {border}: {found:?}");
            let line = if mode == "regex" { near + 2 } else { near + 1 };
            assert_eq!(found[0], (line, (line - 1) * LINE), "{pattern} at {near} of {border}");
        }
    }
}

/// Goal: a word is found at any place of a long line, with any separator between words. Method:
/// lines with their own word at every offset around the length at which a line counts as several.
#[test]
fn a_word_of_a_long_line_is_found_wherever_it_stands() {
    let own = |number: u32, is_cjk: bool| match is_cjk {
        true => [0x6000 + number, 0x7000 + number]
            .iter()
            .map(|code| char::from_u32(*code).unwrap())
            .collect::<String>(),
        false => format!("w{number}w"),
    };
    for filler in ["a,b;", "ab_cd.", "/ab", "\u{4e00}\u{4e8c}", "x\u{3000}y", "\"\\"] {
        let is_cjk = filler.starts_with('\u{4e00}');
        let between = if filler == "a,b;" { "" } else { "_" };
        let mut lines = Vec::new();
        for number in 0..300u32 {
            let before = filler.repeat(220 / filler.len());
            let nudge = "z".repeat(usize::try_from(number % 50).unwrap());
            let between = if is_cjk { "" } else { between };
            let word = own(number, is_cjk);
            lines.push(format!("{before}{nudge},{filler}{between}{word},{}", filler.repeat(90)));
        }
        let text = lines.join("\n");
        let mut host = super::host();
        append(&mut host, &result(&text));
        for number in 0..300u32 {
            let word = own(number, is_cjk);
            let answer = ask(&mut host, query(&word, "full-text", [])).unwrap();
            let found: Vec<usize> = places(&answer).iter().map(|(line, _)| *line).collect();
            let line = usize::try_from(number + 1).unwrap();
            assert_eq!(found, [line], "{word} beside {filler}");
        }
    }
}

#[test]
fn words_of_structured_outputs_are_found_beside_escapes() {
    let mut host = super::host();
    let log = "hay\nand\thay\n".repeat(2_000);
    let output = format!("{{\"log\":{},\"ok\":true}}", literal(&format!("{log}needle\n{log}")));
    let raw = format!(
        "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"7\",\
         \"name\":\"cat\",\"output\":{output}}}]}}"
    );
    append(&mut host, &raw);
    let answer = ask(&mut host, query("needle", "full-text", [])).unwrap();
    assert_eq!(places(&answer), [(1, output.find("needle").unwrap())]);
    let answer = ask(&mut host, query("nneedle", "full-text", [])).unwrap();
    assert_eq!(places(&answer), []);
}

/// Goal: a search of hostile texts ends, and each omission is announced. Method: a message that
/// names more files than a search looks up, and lines that only a simulation of the expression can
/// read.
#[test]
fn hostile_texts_end_and_nothing_is_passed_over_in_silence() {
    let mut host = super::host();
    let file = "a needle\n".repeat(1_000);
    let mut random = Random::new(25);
    let names = |random: &mut Random, count: u32| -> String {
        (0..count).map(|_| format!("file_{:016x} ", random.between(0, u64::MAX - 1))).collect()
    };
    for count in [20, 600] {
        let raw = format!(
            "{{\"role\":\"user\",\"parts\":[{}{{\"type\":\"file\",\"name\":\"a\",\"text\":{}}}]}}",
            (0..count / 20)
                .map(|_| format!(
                    "{{\"type\":\"text\",\"text\":{}}},",
                    literal(&names(&mut random, 20))
                ))
                .collect::<String>(),
            literal(&format!("{count} {file}"))
        );
        append(&mut host, &raw);
        let answer = ask(&mut host, query("^\\d+ a needle", "regex", [])).unwrap();
        // The second file is not found, and the answer says so.
        assert_eq!(number(&answer, "total"), 1, "{count}");
        assert_eq!(number_of(&answer, "file-limited"), count == 600, "{count}");
    }
    let mut host = super::host();
    let line = "\u{e9}a b\u{e9} x".repeat(30_000);
    append(&mut host, &result(&format!("{line} nee dle\n").repeat(6)));
    let answers = pages(&mut host, "\\bnee\\b (dle|dlf)\\b", "regex");
    let found: Vec<(usize, usize)> = answers.iter().flat_map(places).collect();
    let each = line.len() + " nee dle\n".len();
    let expected: Vec<(usize, usize)> =
        (0..6).map(|at| (at + 1, at * each + line.len() + 1)).collect();
    assert_eq!(found, expected);
    let refused = ask(&mut host, query("\\b(\\w{1,60} ?){50}q?x", "regex", []));
    assert!(
        refused.as_ref().map_or_else(|error| error.code == ErrorCode::LimitExceeded, |_| true),
        "{refused:?}"
    );
}

/// Goal: an error names what is wrong with a cursor or start. Method: one example of each error.
#[test]
fn where_to_begin_must_be_in_the_search() {
    let mut host = super::host();
    shelf(&mut host, "c", 2);
    let all = ask(&mut host, query("common", "full-text", [])).unwrap();
    let id = text_of(&all, 1, "id").to_owned();
    let code = |host: &mut Host, more: [(&str, Json); 2]| {
        ask(host, query("common", "full-text", more)).map_err(|error| error.code)
    };
    let none = || ("all_conversations", Json::Bool(false));
    // A cursor must come from an answer to the same query; an id is no cursor.
    let unknown = ["file_0123456789abcdef", "msg_0000000000000001", "-", ""];
    for cursor in unknown.into_iter().chain([id.as_str()]) {
        let made = code(&mut host, [("cursor", cursor.into()), none()]);
        assert_eq!(made, Err(ErrorCode::InvalidInput), "{cursor}");
    }
    let alone = code(&mut host, [("start_byte", 7_u64.into()), none()]);
    assert_eq!(alone, Err(ErrorCode::InvalidInput));
    let ids = || Json::Array(vec![id.as_str().into()]);
    let beyond = [("file_ids", ids()), ("start_byte", u64::MAX.into())];
    assert_eq!(number(&code(&mut host, beyond).unwrap(), "total"), 0);
    let elsewhere = Json::object([
        ("pattern", "x".into()),
        ("scope", "messages".into()),
        ("cursor", id.as_str().into()),
    ]);
    assert_eq!(ask(&mut host, elsewhere).unwrap_err().code, ErrorCode::InvalidInput);
}
