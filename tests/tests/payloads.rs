#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Large payloads through the whole engine: a range equals the same range of the text, and a
//! context does not read its payloads. Payloads survive sealing, export and a store that loses
//! records.

use lcm_core::ErrorCode;
use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};

/// Bytes of one piece of a staged text.
const PIECE_BYTES: usize = 150_000;

fn host() -> Host {
    let config = Json::object([("large_payload_tokens_min", 1_000_u64.into())]);
    Host::new(Some(config), StoreMode::Plain).unwrap()
}

/// Creates a text with every kind of character that JSON escapes, with long and short lines.
fn text(random: &mut Random, bytes: usize) -> String {
    const WORDS: [&str; 10] = [
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
    ];
    let mut out = String::new();
    while out.len() < bytes {
        let few = random.between(0, 3) == 0;
        let count = if few { random.between(0, 3_999) } else { random.between(0, 7) };
        let word = random.pick(&WORDS);
        (0..=count).for_each(|_| out.push_str(word));
    }
    out
}

fn literal(text: &str) -> String {
    let mut out = String::new();
    lcm_text::base::json::write_string(&mut out, text);
    // Some writers escape more characters than JSON requires.
    out.replace('w', "\\u0077")
}

fn append(host: &mut Host, raw: &str) {
    let message: Json = if raw.len() > PIECE_BYTES {
        let upload = lcm_testing::digest::text_sha256(raw);
        let mut offset = 0;
        while offset < raw.len() {
            let end = raw.floor_char_boundary(offset + PIECE_BYTES);
            let args = Json::object([
                ("upload", upload.as_str().into()),
                ("offset", u64::try_from(offset).unwrap().into()),
                ("text", raw[offset..end].into()),
            ]);
            host.ask("ingest.stage", &args).unwrap();
            offset = end;
        }
        format!("@upload {upload}").into()
    } else {
        raw.into()
    };
    let args = Json::object([
        ("messages", Json::Array(vec![message])),
        ("options", Json::object([("append_mode", "new".into())])),
    ]);
    assert_eq!(host.ask("ingest.append", &args).unwrap().field("ingested").unwrap(), &1_u64.into());
}

fn result(output: &str) -> String {
    format!(
        "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"7\",\
         \"name\":\"cat\",\"output\":{}}}]}}",
        literal(output)
    )
}

fn context(host: &mut Host) -> String {
    let args = Json::object([("budget", 1_000_000_u64.into())]);
    let assembled = host.ask("context.assemble", &args).unwrap();
    assembled.field("messages_json").unwrap().as_str().unwrap().into()
}

/// Returns the ids of payloads that a context names.
fn ids(context: &str) -> Vec<String> {
    let found = context.match_indices("[LCM Tool Output: ");
    found.map(|(at, label)| context[at + label.len()..][..21].to_owned()).collect()
}

fn describe(host: &mut Host, id: &str, options: &str) -> Json {
    let args = Json::object([("id", id.into()), ("options_json", options.into())]);
    let answer = host.ask("recall.describe", &args).unwrap();
    Json::parse(answer.as_str().unwrap()).unwrap()
}

fn number(json: &Json, key: &str) -> usize {
    json.field(key).unwrap().to_string().parse().unwrap()
}

fn content(json: &Json) -> &str {
    json.field("content").unwrap().as_str().unwrap()
}

/// Goal: any range equals the same range of the decoded text, in one pack or in chunks. Method:
/// random texts of 10 KB to 3 MB and random ranges of bytes and lines, compared with slices.
#[test]
fn any_range_of_a_payload_is_what_the_text_has_there() {
    let mut random = Random::new(11);
    for bytes in [10_000, 60_000, 200_000, 900_000, 3_000_000] {
        let text = text(&mut random, bytes);
        let mut host = host();
        append(&mut host, &result(&text));
        let context = context(&mut host);
        assert!(context.len() < 8_000, "{}", context.len());
        let id = &ids(&context)[0];
        let all = describe(&mut host, id, "{\"include_content\":false}");
        assert_eq!(number(&all, "bytes"), text.len());
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(number(&all, "lines"), lines.len());
        for round in 0..60 {
            let most = 1_024 << random.between(0, 7);
            let below = |random: &mut Random, most: usize| {
                usize::try_from(random.between(0, u64::try_from(most).unwrap())).unwrap()
            };
            if round % 2 == 0 {
                let (from, to) = (below(&mut random, text.len()), below(&mut random, text.len()));
                let (from, to) = (from.min(to), from.max(to));
                let options =
                    format!("{{\"start_byte\":{from},\"end_byte\":{to},\"bytes_max\":{most}}}");
                let got = describe(&mut host, id, &options);
                let start = text.floor_char_boundary(from);
                let end = text.floor_char_boundary(to).min(text.floor_char_boundary(start + most));
                assert_eq!(content(&got), &text[start..end.max(start)], "{options}");
                assert_eq!((number(&got, "start_byte"), number(&got, "end_byte")), (start, end));
            } else {
                let from = 1 + below(&mut random, lines.len());
                let to = from + below(&mut random, 50);
                let options =
                    format!("{{\"start_line\":{from},\"end_line\":{to},\"bytes_max\":{most}}}");
                let got = describe(&mut host, id, &options);
                let wanted = lines.get(from - 1..to.min(lines.len())).unwrap_or(&[]).concat();
                let end = wanted.floor_char_boundary(most);
                assert_eq!(content(&got), &wanted[..end], "{options}");
                let truncated = Json::Bool(end < wanted.len());
                assert_eq!(got.field("truncated").unwrap(), &truncated, "{options}");
            }
        }
    }
}

#[test]
fn an_invalid_range_is_refused() {
    let mut random = Random::new(12);
    let mut host = host();
    append(&mut host, &result(&text(&mut random, 20_000)));
    let id = ids(&context(&mut host)).remove(0);
    for (options, why) in [
        ("{\"start_line\":3,\"end_line\":2}", "`end_line`"),
        ("{\"end_line\":0}", "`end_line`"),
        ("{\"start_byte\":3,\"end_byte\":2}", "`end_byte`"),
        ("{\"bytes_max\":1023}", "must be from 1024 to 512000"),
        ("{\"bytes_max\":512001}", "must be from 1024 to 512000"),
    ] {
        let args = Json::object([("id", id.as_str().into()), ("options_json", options.into())]);
        let error = host.ask("recall.describe", &args).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput, "{options}");
        assert!(error.message.contains(why), "{options}: {error}");
    }
    let empty = describe(&mut host, &id, "{\"start_byte\":3,\"end_byte\":3}");
    assert_eq!((content(&empty), number(&empty, "start_byte")), ("", 3));
    for bound in [1_024, 512_000] {
        describe(&mut host, &id, &format!("{{\"bytes_max\":{bound}}}"));
    }
}

/// Goal: a message with more payloads than a commit has writes can be appended.
#[test]
fn a_message_of_very_many_payloads_comes_in() {
    let mut host = host();
    let output = literal(&"row\n".repeat(1_100));
    let part = |number: u32| {
        format!("{{\"type\":\"tool_result\",\"call_id\":\"{number}\",\"output\":{output}}}")
    };
    let parts: Vec<String> = (0..400).map(part).collect();
    let raw = format!("{{\"role\":\"tool\",\"parts\":[{}]}}", parts.join(","));
    append(&mut host, &raw);
    let args = Json::object([
        ("seq_first", 1_u64.into()),
        ("seq_last", 1_u64.into()),
        ("bytes_max", 1_u64.into()),
    ]);
    let back = host.ask("recall.messages", &args).unwrap();
    assert!(back.elements()[0].as_str() == Some(raw.as_str()));
    let context = context(&mut host);
    assert_eq!(ids(&context).len(), 64);
    let check = host.ask("admin.check", &Json::object([])).unwrap();
    assert!(check.as_str().unwrap().contains("\"ok\":true"), "{check}");
}

/// Goal: pages that continue at `end_byte` give the whole payload.
#[test]
fn a_payload_can_be_read_page_by_page() {
    let mut random = Random::new(5);
    let text = text(&mut random, 1_500_000);
    let mut host = host();
    append(&mut host, &result(&text));
    let id = ids(&context(&mut host)).remove(0);
    let mut read = String::new();
    loop {
        let options = format!("{{\"start_byte\":{},\"bytes_max\":300000}}", read.len());
        let page = describe(&mut host, &id, &options);
        read.push_str(content(&page));
        if page.field("truncated").unwrap() == &Json::Bool(false) {
            break;
        }
    }
    assert!(read == text, "{} bytes of {}", read.len(), text.len());
}

#[test]
fn a_context_does_not_read_what_it_does_not_show() {
    let mut random = Random::new(6);
    let mut host = host();
    append(&mut host, &result(&text(&mut random, 5_000_000)));
    append(&mut host, "{\"role\":\"user\",\"content\":\"what is it?\"}");
    host.restart().unwrap();
    context(&mut host);
    let counts = host.store.counts();
    assert!(counts.reads() <= 5, "{counts:?}");
}

/// Goal: compaction and sealing do not change payloads, and `check` finds a lost payload.
#[test]
fn payloads_survive_compaction_and_sealing() {
    let mut random = Random::new(7);
    let mut host = host();
    let mut texts = Vec::new();
    for turn in 0..40 {
        append(&mut host, &format!("{{\"role\":\"user\",\"content\":\"turn {turn}\"}}"));
        let bytes = if turn % 10 == 0 { 400_000 } else { 20_000 };
        let text = text(&mut random, bytes);
        append(&mut host, &result(&text));
        texts.push(text);
    }
    let ids = ids(&context(&mut host));
    assert_eq!(ids.len(), texts.len());
    let args = Json::object([
        ("budget", 3_000_u64.into()),
        ("options", Json::object([("force", Json::Bool(true))])),
    ]);
    drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    host.restart().unwrap();
    for (id, text) in ids.iter().zip(&texts) {
        let got = describe(&mut host, id, "{\"bytes_max\":500000}");
        assert!(content(&got) == text, "{id}");
    }
    let check = host.ask("admin.check", &Json::object([])).unwrap();
    let check = Json::parse(check.as_str().unwrap()).unwrap();
    assert_eq!(check.field("ok").unwrap(), &Json::Bool(true), "{check}");
    // `check` finds a lost record of a payload.
    let entries = host.store.entries_mut();
    let file = entries.keys().find(|key| key.contains("/f")).cloned().unwrap();
    entries.remove(&file);
    host.restart().unwrap();
    let check = host.ask("admin.check", &Json::object([])).unwrap();
    assert!(check.as_str().unwrap().contains(&file), "{check}");
}
