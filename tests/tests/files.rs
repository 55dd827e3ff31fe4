#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Search in the texts of large payloads, compared with a naive search of the same texts.

#[path = "files/again.rs"]
mod again;
#[path = "files/going_on.rs"]
mod going_on;

use std::collections::BTreeSet;

use lcm_core::ErrorCode;
use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};

/// Bytes of one piece of a staged text.
const PIECE_BYTES: usize = 150_000;
/// Characters of a passage; the next match of a line is searched for behind the passage.
const PASSAGE_BYTES: usize = 200;
/// Largest number of passages of one file.
const PASSAGES: usize = 10;
/// Bytes of payloads that one query may read, including the rest of a chunk that it began.
const BYTES_MAX: u64 = 3 << 20;

fn host() -> Host {
    let config = Json::object([("large_payload_tokens_min", 1_000_u64.into())]);
    Host::new(Some(config), StoreMode::Plain).unwrap()
}

fn literal(text: &str) -> String {
    let mut out = String::new();
    lcm_text::base::json::write_string(&mut out, text);
    // Some writers escape more characters than JSON requires.
    out.replace('w', "\\u0077")
}

fn result(output: &str) -> String {
    format!(
        "{{\"id\":\"entry \\\"{}\\\"\",\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\
         \"call_id\":\"7\",\"name\":\"cat\",\"output\":{}}}]}}",
        lcm_testing::digest::text_sha256(output),
        literal(output)
    )
}

/// Appends a message to a conversation, in pieces when it is long.
fn append_to(host: &mut Host, conversation: &str, raw: &str) {
    let mut message: Json = raw.into();
    if raw.len() > PIECE_BYTES {
        let upload = lcm_testing::digest::text_sha256(raw);
        let mut offset = 0;
        while offset < raw.len() {
            let end = raw.floor_char_boundary(offset + PIECE_BYTES);
            let args = Json::object([
                ("conversation", conversation.into()),
                ("upload", upload.as_str().into()),
                ("offset", u64::try_from(offset).unwrap().into()),
                ("text", raw[offset..end].into()),
            ]);
            host.ask("ingest.stage", &args).unwrap();
            offset = end;
        }
        message = format!("@upload {upload}").into();
    }
    let args = Json::object([
        ("conversation", conversation.into()),
        ("messages", Json::Array(vec![message])),
        ("options", Json::object([("append_mode", "new".into())])),
    ]);
    assert_eq!(host.ask("ingest.append", &args).unwrap().field("ingested").unwrap(), &1_u64.into());
}

fn append(host: &mut Host, raw: &str) {
    append_to(host, "c", raw);
}

fn ask(host: &mut Host, query: Json) -> Result<Json, lcm_core::Error> {
    let args = Json::object([("conversation", "c".into()), ("query_json", query)]);
    let answer = host.ask("recall.grep", &args)?;
    Ok(Json::of(answer.as_str().unwrap()))
}

/// Returns a query of files with further members.
fn query<const N: usize>(pattern: &str, mode: &str, more: [(&str, Json); N]) -> Json {
    let mut members = vec![
        ("pattern".to_owned(), pattern.into()),
        ("mode".to_owned(), mode.into()),
        ("scope".to_owned(), "files".into()),
    ];
    members.extend(more.map(|(key, value)| (key.to_owned(), value)));
    Json::Object(members.into_iter().collect())
}

fn number(json: &Json, key: &str) -> usize {
    json.number(key).try_into().unwrap()
}

/// Returns line and byte of each match.
fn places(answer: &Json) -> Vec<(usize, usize)> {
    answer.list("matches").iter().map(|one| (number(one, "line"), number(one, "byte"))).collect()
}

/// Returns the lines of a text without line ends, each with its offset in bytes.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let mut out = Vec::new();
    for line in text.split_inclusive('\n') {
        let shown = line.strip_suffix('\n').unwrap_or(line);
        out.push((at, shown.strip_suffix('\r').unwrap_or(shown)));
        at += line.len();
    }
    out
}

/// Returns the matches of an expression by a naive search: all matches, at most one per passage.
fn naive_matches(text: &str, pattern: &str) -> Vec<(usize, usize)> {
    let regex = regex::Regex::new(pattern).unwrap();
    let mut out = Vec::new();
    for (number, (at, line)) in lines(text).into_iter().enumerate() {
        let mut from = 0;
        while let Some(found) = regex.find_at(line, from) {
            out.push((number + 1, at + found.start()));
            from = found.end().max(found.start() + PASSAGE_BYTES);
            if from > line.len() {
                break;
            }
            from = line.ceil_char_boundary(from);
        }
    }
    out
}

/// Returns a text with every kind of character that JSON escapes, long lines and many short lines.
fn random_text(random: &mut Random, bytes: usize) -> String {
    const WORDS: [&str; 12] = [
        "word ",
        "\n",
        "\"",
        "\\",
        "\t",
        "\u{4f60}\u{597d}",
        "\u{1f600}",
        "\u{1}",
        "\r\n",
        "longer ",
        "x = 17;\r\n",
        "Caf\u{e9} ",
    ];
    let mut out = String::new();
    while out.len() < bytes {
        let few = random.between(0, 9) == 0;
        let count = if few { random.between(0, 3_999) } else { random.between(0, 7) };
        let word = random.pick(&WORDS);
        (0..=count).for_each(|_| out.push_str(word));
        if random.between(0, 40) == 0 {
            out.push_str(&format!("n{}", random.between(0, 99)));
        }
    }
    out
}

/// Goal: an expression finds the same matches, with line and byte, as a search of the lines of the
/// text, for any text. Method: random texts in packs and in chunks and generated expressions,
/// compared with a naive search.
#[test]
fn an_expression_finds_what_a_naive_search_of_the_lines_finds() {
    let mut random = Random::new(21);
    let mut found = 0;
    for bytes in [6_000, 60_000, 400_000, 1_500_000] {
        let text = random_text(&mut random, bytes);
        let mut host = host();
        append(&mut host, &result(&text));
        for round in 0..120 {
            let number = random.between(0, 99);
            let pattern = match round % 12 {
                0 => format!("n{number}\\b"),
                1 => format!("^n{number}"),
                2 => format!("n{number}$"),
                3 => format!("n{number}.*word"),
                4 => format!("(?i)LONGER n{number}"),
                5 => format!("\u{597d}n{number}|\u{1f600}n{number}"),
                6 => format!("[\"\\\\]n{number}[^0-9]"),
                7 => format!("n{number}x = \\d+;$"),
                8 => "^$".to_owned(),
                9 => format!("caf\u{e9} n{number}|Caf\u{e9} n{number}"),
                10 => format!("\\bn{number}\\s+"),
                _ => format!("\\w+\\s*n{}{{1,2}}", number % 10),
            };
            let answer = ask(&mut host, query(&pattern, "regex", [])).unwrap();
            let naive = naive_matches(&text, &pattern);
            let first = &naive[..naive.len().min(PASSAGES)];
            assert_eq!(places(&answer), first, "{pattern} in {} bytes", text.len());
            assert_eq!(number_of(&answer, "file-limited"), naive.len() > PASSAGES, "{pattern}");
            found += first.len();
        }
    }
    assert!(found > 300, "{found}");
}

fn number_of(answer: &Json, note: &str) -> bool {
    answer.list("notes").iter().any(|one| one.as_str() == Some(note))
}

/// Returns the result of a naive search for words: the lines that begin a passage of three lines,
/// each with the score of the passage.
fn naive_passages(text: &str, may: &[&str], must: &[&str], not: &[&str]) -> Vec<(usize, usize)> {
    let held: Vec<BTreeSet<&str>> =
        lines(text).into_iter().map(|(_, line)| line.split(' ').collect()).collect();
    let all: Vec<&str> = may.iter().chain(must).copied().collect();
    let is_out = |line: &BTreeSet<&str>| not.iter().any(|word| line.contains(word));
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (number, line) in held.iter().enumerate() {
        let own = all.iter().filter(|word| line.contains(**word)).count();
        if own == 0 || is_out(line) {
            continue;
        }
        let together: BTreeSet<&str> = held[number..]
            .iter()
            .take(3)
            .take_while(|line| !is_out(line))
            .flatten()
            .copied()
            .collect();
        if !must.iter().all(|word| together.contains(word)) {
            continue;
        }
        let count = all.iter().filter(|word| together.contains(**word)).count();
        let score = count * 256 + own;
        match out.last_mut() {
            Some(newest) if number + 1 - newest.0 < 3 => {
                if score > newest.1 {
                    *newest = (number + 1, score);
                }
            }
            _ => out.push((number + 1, score)),
        }
    }
    out.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    out
}

/// Goal: a search for words returns the best passages first, and respects words that must or must
/// not be there. Method: random lines of few words and random queries; a naive search gives the
/// expected result.
#[test]
fn words_find_the_passages_that_a_naive_search_ranks_first() {
    let mut random = Random::new(22);
    let mut text = String::new();
    for _ in 0..9_000 {
        let count = random.between(1, 9);
        let words: Vec<String> =
            (0..count).map(|_| format!("q{}", random.between(1, 400))).collect();
        text.push_str(&words.join(" "));
        text.push_str(if random.between(0, 3) == 0 { "\r\n" } else { "\n" });
    }
    let mut host = host();
    append(&mut host, &result(&text));
    for _ in 0..150 {
        let mut words: Vec<String> =
            (0..6).map(|_| format!("q{}", random.between(1, 400))).collect();
        words.dedup();
        let kinds: Vec<u64> = words.iter().map(|_| random.between(0, 4)).collect();
        let of = |kind: &[u64]| -> Vec<&str> {
            let chosen = words.iter().zip(&kinds).filter(|(_, of)| kind.contains(of));
            chosen.map(|(word, _)| word.as_str()).collect()
        };
        let (may, must, not) = (of(&[0, 1, 2]), of(&[3]), of(&[4]));
        let apart: BTreeSet<&String> = words.iter().collect();
        if may.len() + must.len() == 0 || apart.len() < words.len() {
            continue;
        }
        let signs = ["", "", "", "+", "-"];
        let typed: Vec<String> = words
            .iter()
            .zip(&kinds)
            .map(|(word, kind)| format!("{}{word}", signs[usize::try_from(*kind).unwrap()]))
            .collect();
        let pattern = typed.join(" ");
        let answer = ask(&mut host, query(&pattern, "full-text", [])).unwrap();
        let naive = naive_passages(&text, &may, &must, &not);
        let found: Vec<usize> = places(&answer).iter().map(|(line, _)| *line).collect();
        let wanted: Vec<usize> = naive.iter().take(PASSAGES).map(|(line, _)| *line).collect();
        assert_eq!(found, wanted, "{pattern}");
        assert_eq!(number_of(&answer, "file-limited"), naive.len() > PASSAGES, "{pattern}");
        for (one, (_, score)) in answer.list("matches").iter().zip(&naive) {
            let (count, own) = (score / 256, score % 256);
            assert_eq!(number(one, "score"), count * 1_000 + own * 1_000 / 256, "{pattern}");
        }
    }
}

#[test]
fn a_phrase_is_found_over_the_end_of_a_line_and_not_apart() {
    let mut host = host();
    let filler = "nothing of it here\n".repeat(400);
    let text =
        format!("{filler}the blue\nheron walks\n{filler}heron of blue\n{filler}blue heron\n");
    append(&mut host, &result(&text));
    let answer = ask(&mut host, query("\"blue heron\"", "full-text", [])).unwrap();
    let found: Vec<usize> = places(&answer).iter().map(|(line, _)| *line).collect();
    assert_eq!(found, [401, 401 + 2 + 400 + 1 + 400]);
    let snippet = text_of(&answer, 0, "snippet");
    assert!(snippet.contains("blue heron walks"), "{snippet}");
    // A word matches all its grammatical forms.
    let answer = ask(&mut host, query("walked heron", "full-text", [])).unwrap();
    assert_eq!(places(&answer)[0].0, 402);
    for (typed, line) in [("bringing", "what she brought"), ("begins", "begun so"), ("fly", "flew")]
    {
        append(&mut host, &result(&format!("{filler}{line}\n{filler}{typed}\n{filler}")));
        let answer = ask(&mut host, query(typed, "full-text", [])).unwrap();
        assert_eq!(places(&answer).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [401, 802]);
    }
    let answer = ask(&mut host, query("-heron", "full-text", [])).unwrap();
    assert_eq!((number(&answer, "total"), places(&answer).len()), (0, 0));
}

fn text_of(answer: &Json, at: usize, key: &str) -> String {
    answer.list("matches")[at].text(key)
}

/// Goal: a query reads a bounded part of a payload of megabytes, and says where it stopped. Further
/// queries continue there until the whole payload was searched, with right line numbers.
#[test]
fn a_payload_of_megabytes_is_looked_through_part_by_part() {
    let mut random = Random::new(23);
    let mut text = random_text(&mut random, 9_000_000);
    // One line alone has more than a query reads.
    text.push_str(&"\u{e9}1 ".repeat(1_200_000));
    text.push_str("the last needle77 ");
    for pattern in ["n42[^0-9]", "needle77"] {
        let mut host = host();
        append(&mut host, &result(&text));
        let naive = naive_matches(&text, pattern);
        let (mut found, mut rounds, mut from) = (Vec::new(), 0, None);
        let first = ask(&mut host, query("word", "regex", [("limit", 1_u64.into())])).unwrap();
        let id = text_of(&first, 0, "id");
        loop {
            let ids = Json::Array(vec![id.as_str().into()]);
            let start = from.unwrap_or(0_u64);
            host.store.begin_call();
            let asked = [("file_ids", ids), ("start_byte", start.into())];
            let answer = ask(&mut host, query(pattern, "regex", asked)).unwrap();
            let read = host.store.counts().bytes_read;
            assert!(read < 2 * BYTES_MAX, "{read}");
            found.extend(places(&answer));
            rounds += 1;
            assert!(rounds < 100);
            if number_of(&answer, "file-limited") {
                // Continues after the last match.
                let (_, byte) = found.last().copied().unwrap();
                from = Some(u64::try_from(byte).unwrap() + 1);
                continue;
            }
            let limited = number_of(&answer, "scan-limited");
            assert_eq!(answer.field("truncated").unwrap(), &Json::Bool(limited));
            let Some(cursor) = answer.field("cursor").unwrap().as_str() else { break };
            assert!(cursor.starts_with(&id));
            let next = u64::try_from(going_on::byte_of(cursor)).unwrap();
            assert!(next > start);
            from = Some(next);
        }
        assert!(rounds > 3 && !naive.is_empty(), "{rounds}");
        assert_eq!(found, naive, "{pattern}");
    }
}

/// Appends `count` files among short messages. Each file has its own word, with its number from 0.
fn shelf(host: &mut Host, conversation: &str, count: usize) {
    for number in 0..count {
        let said = format!("{{\"role\":\"user\",\"content\":\"book{number} is said\"}}");
        append_to(host, conversation, &said);
        let filler = format!("{conversation} leaf\n").repeat(900 + number);
        let text = format!("{filler}here is book{number} common\n{filler}");
        append_to(host, conversation, &result(&text));
    }
}

/// Returns the numbers of the files that match.
fn books(answer: &Json) -> Vec<usize> {
    let book = |one: &Json| one.text("snippet").split("book").nth(1).unwrap()[..].to_owned();
    let number = |rest: String| rest.split(' ').next().unwrap().parse().unwrap();
    answer.list("matches").iter().map(|one| number(book(one))).collect()
}

/// Goal: files are found in every state of their messages: in no segment of the index yet, in one,
/// merged, sealed and compacted. The newest is first, and a message that only has the word is not
/// found.
#[test]
fn files_of_all_ages_are_found_the_newest_first() {
    let mut host = host();
    shelf(&mut host, "c", 130);
    let all: Vec<usize> = (80..130).rev().collect();
    for round in 0..3 {
        let asked = query("book\\d+ common", "regex", [("limit", 50_u64.into())]);
        let answer = ask(&mut host, asked).unwrap();
        assert_eq!(books(&answer), all, "{round}");
        assert_eq!(number(&answer, "total"), 130);
        for number in [0, 17, 129] {
            let answers = going_on::pages(&mut host, &format!("book{number}"), "full-text");
            assert_eq!(answers.iter().flat_map(books).collect::<Vec<_>>(), [number]);
            let one = answers.iter().find_map(|answer| answer.list("matches").first()).unwrap();
            assert_eq!(one.text("role"), "tool");
            assert_eq!(self::number(one, "seq"), 2 * number + 2);
            assert_eq!(self::number(one, "line"), 901 + number);
            assert!(one.text("entry_id").starts_with("entry \""), "{one}");
        }
        match round {
            0 => {
                let options = Json::object([("force", Json::Bool(true))]);
                let args = Json::object([("budget", 3_000_u64.into()), ("options", options)]);
                drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
            }
            _ => host.restart().unwrap(),
        }
    }
    let check = host.ask("admin.check", &Json::object([])).unwrap();
    let check = Json::of(check.as_str().unwrap());
    assert_eq!(check.field("ok").unwrap(), &Json::Bool(true), "{check}");
}

#[test]
fn a_filter_and_a_window_of_time_say_which_files() {
    let mut host = host();
    let file = "a common word\n".repeat(1_000);
    for (number, speaker) in ["Ann", "Ben"].iter().enumerate() {
        let raw = format!(
            "{{\"role\":\"user\",\"speaker\":\"{speaker}\",\"timestamp\":\
             \"2026-01-0{}T00:00:00.000Z\",\"content\":{}}}",
            number + 1,
            literal(&format!("{speaker} {file}"))
        );
        append(&mut host, &raw);
    }
    let mut seqs = |pattern: &str, more: [(&str, Json); 1]| -> Vec<usize> {
        let answer = ask(&mut host, query(pattern, "full-text", more)).unwrap();
        let mut seqs: Vec<usize> =
            answer.list("matches").iter().map(|one| number(one, "seq")).collect();
        seqs.dedup();
        seqs.sort_unstable();
        seqs.dedup();
        seqs
    };
    let none = || [("all_conversations", Json::Bool(false))];
    assert_eq!(seqs("common", none()), [1, 2]);
    assert_eq!(seqs("common speaker:ann", none()), [1]);
    assert_eq!(seqs("common role:tool", none()), [0; 0]);
    assert_eq!(seqs("common", [("since", "2026-01-02".into())]), [2]);
    assert_eq!(seqs("common before:2026-01-02", none()), [1]);
    assert_eq!(seqs("common", [("file_ids", Json::Array(Vec::new()))]), [0; 0]);
}

fn granted(host: &mut Host, grant: &str, query: Json) -> Result<Json, lcm_core::Error> {
    granted_in(host, "c", grant, query)
}

fn granted_in(
    host: &mut Host,
    conversation: &str,
    grant: &str,
    query: Json,
) -> Result<Json, lcm_core::Error> {
    let args = Json::object([
        ("conversation", conversation.into()),
        ("query_json", query),
        ("grant", grant.into()),
    ]);
    let answer = host.ask("recall.grep", &args)?;
    Ok(Json::of(answer.as_str().unwrap()))
}

fn grant(host: &mut Host, limits: &str) -> String {
    let limits = Json::of(limits);
    let args = Json::object([("conversation", "c".into()), ("grant_json", limits)]);
    let made = host.ask("recall.grant", &args).unwrap();
    Json::of(made.as_str().unwrap()).text("id")
}

/// Goal: a search with a grant finds only files of messages that the grant covers, says nothing of
/// other files, and charges exactly the tokens of the passages.
#[test]
fn a_grant_covers_the_files_of_its_messages() {
    let small = |key: &'static str, value: u64| (key, Json::from(value));
    let config = Json::object([
        small("large_payload_tokens_min", 1_000),
        small("leaf_chunk_tokens_max", 1_000),
        small("fresh_tail_messages_max", 4),
    ]);
    let mut host = Host::new(Some(config), StoreMode::Plain).unwrap();
    shelf(&mut host, "c", 30);
    shelf(&mut host, "d", 2);
    let options = Json::object([("force", Json::Bool(true)), ("mode", "incremental".into())]);
    let args = Json::object([("budget", 30_000_u64.into()), ("options", options)]);
    drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    let args = Json::object([("kind", "summaries".into()), ("conversation", "c".into())]);
    let page = host.ask("admin.listing", &args).unwrap();
    let page = Json::of(page.as_str().unwrap());
    let leaf = &page.list("items")[0];
    let (first, last) = (number(leaf, "seq_first"), number(leaf, "seq_last"));
    assert!(last < 60, "{leaf}");
    let covered: Vec<usize> =
        (0..30).rev().filter(|book| (first..=last).contains(&(2 * book + 2))).collect();
    assert!(!covered.is_empty() && covered.len() < 30, "{covered:?}");
    let of_leaf = grant(&mut host, &format!("{{\"summary_ids\":[\"{}\"]}}", leaf.text("id")));
    let asked = || query("book\\d+", "regex", []);
    let answer = granted(&mut host, &of_leaf, asked()).unwrap();
    assert_eq!(books(&answer), covered);
    let spent: u32 = answer
        .list("matches")
        .iter()
        .map(|one| lcm_text::base::tokens::estimate(&one.text("snippet")))
        .sum();
    let note = answer.field("grant").unwrap();
    assert_eq!(number(note, "tokens"), usize::try_from(spent).unwrap(), "{note}");
    // A file that the grant does not cover is treated as if it did not exist.
    let newest = ask(&mut host, asked()).unwrap();
    let id = newest.list("matches")[0].text("id");
    let named = || query("book", "regex", [("file_ids", Json::Array(vec![id.as_str().into()]))]);
    assert_eq!(granted(&mut host, &of_leaf, named()).unwrap_err().code, ErrorCode::NotFound);
    let of_d = grant(&mut host, "{\"conversations\":[\"d\"],\"tokens_max\":8}");
    let answer = granted_in(&mut host, "d", &of_d, asked()).unwrap();
    assert_eq!(books(&answer), [1]);
    assert_eq!((number(&answer, "total"), answer.field("truncated")), (2, Some(&Json::Bool(true))));
    let refused = granted_in(&mut host, "d", &of_d, named()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
}

/// Goal: a model gets matches within the bound of an answer, with the call that reads the text
/// around a match.
#[test]
fn the_tool_leads_from_a_match_to_its_surroundings() {
    let mut host = host();
    let filler = "nothing of it here\n".repeat(4_000);
    let text = format!("{filler}the needle is here\n{filler}{}", "a needle\n".repeat(90));
    for extra in 0..30 {
        append(&mut host, &result(&format!("{text}{extra}")));
    }
    let mut tool = |name: &str, arguments: &str| {
        let args = Json::object([
            ("conversation", "c".into()),
            ("name", name.into()),
            ("arguments_json", Json::of(arguments)),
        ]);
        let outcome = host.ask("tools.call", &args).unwrap();
        outcome.field("done").unwrap().field("text").unwrap().as_str().unwrap().to_owned()
    };
    let found = tool("lcm_grep", "{\"pattern\":\"needle\",\"scope\":\"files\"}");
    assert!(lcm_text::base::tokens::estimate(&found) <= 1_500, "{found}");
    assert!(found.contains("file-limited") && found.contains("scan-limited"), "{found}");
    assert!(found.contains(" line 4001 byte 76004 cat: "), "{found}");
    let call = found.lines().find_map(|line| line.strip_prefix("Next: lcm_describe ")).unwrap();
    let arguments = &call[..=call.rfind('}').unwrap()];
    let around = tool("lcm_describe", arguments);
    assert!(around.contains("needle"), "{arguments} {around}");
    assert!(lcm_text::base::tokens::estimate(&around) <= 2_000, "{around}");
    let rest = found
        .split("is searched with ")
        .nth(1)
        .unwrap_or_else(|| panic!("{}", &found[..900]))
        .split([';', '\n'])
        .next()
        .unwrap();
    let more = format!("{{\"pattern\":\"needle\",\"scope\":\"files\",{rest}}}");
    assert!(tool("lcm_grep", &more).contains("Matches: "), "{more}");
}
