#![expect(clippy::string_slice, clippy::unwrap_used, reason = "a panic is the finding")]
//! Damaged input for every parser of text from outside. The input is accepted and comes back byte
//! for byte, or it is refused with a clear error and nothing is written.
//!
//! Each parser gets 1,000 rounds, each reader of session files 10,000; the rounds are the same in
//! every run. `LCM_FUZZ_SECONDS=600 cargo test --release -p lcm-tests --test fuzz` gives each ten
//! minutes; the printed `LCM_SEED` repeats a finding.

#[path = "fuzz/session_files.rs"]
mod session_files;

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use lcm_testing::{Host, Json, host::StoreMode, mutate::mutate, simulation::random::Random};

/// Smallest number of rounds of each parser.
const ROUNDS: u64 = 1_000;

const DIALECTS: [&str; 5] = ["lcm", "anthropic", "openai-chat", "openai-responses", "gemini"];

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Runs rounds until the time is over. If a round panics, its seed is printed.
fn rounds(name: &str, round: impl FnMut(&mut Random)) {
    rounds_of(name, ROUNDS, round);
}

/// As [`rounds`], with at least `least` rounds.
fn rounds_of(name: &str, least: u64, mut round: impl FnMut(&mut Random)) {
    let time = Duration::from_secs(number("LCM_FUZZ_SECONDS", 0));
    let only = env::var("LCM_SEED").ok();
    let (start, mut seed) = (Instant::now(), number("LCM_SEED", 0));
    let first = seed;
    let goes_on = |done: u64| match only {
        Some(_) => done < 1,
        None => done < least || start.elapsed() < time,
    };
    while goes_on(seed - first) {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            round(&mut Random::new(seed));
        }));
        if let Err(panic) = result {
            eprintln!("repeat with LCM_SEED={seed} cargo test -p lcm-tests --test fuzz {name}");
            std::panic::resume_unwind(panic);
        }
        seed += 1;
    }
    println!("{name}: {} rounds", seed - first);
    assert!(seed > first);
}

/// Returns the messages of the golden vectors in a dialect.
fn seeds(dialect: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let vector = Json::parse(&fs::read_to_string(path).unwrap()).unwrap();
                collect(&vector, dialect, &mut found);
            }
        }
    }
    found.sort();
    found.retain(|message| message.len() < 8_000 && message.starts_with('{'));
    assert!(found.len() > 3, "{dialect}: {} seeds", found.len());
    found
}

fn collect(vector: &Json, dialect: &str, found: &mut Vec<String>) {
    for step in vector.field("steps").map(Json::elements).unwrap_or_default() {
        let Some(args) = step.field("args") else { continue };
        let of = args.field("dialect").and_then(Json::as_str).unwrap_or("lcm");
        if of != dialect {
            continue;
        }
        for message in args.field("messages").map(Json::elements).unwrap_or_default() {
            if message.field("$generate").is_none() {
                found.push(message.as_str().map_or_else(|| message.compact(), str::to_owned));
            }
        }
    }
}

fn host() -> Host {
    let config = Json::object([("large_payload_tokens_min", 1_000_u64.into())]);
    Host::new(Some(config), StoreMode::Plain).unwrap()
}

/// Appends a message; returns whether it was accepted. Checks that a refusal is an input error and
/// writes nothing.
fn append(host: &mut Host, dialect: &str, message: &str) -> bool {
    let before = host.store.digest();
    let args = Json::object([
        ("dialect", dialect.into()),
        ("messages", Json::Array(vec![message.into()])),
        ("options", Json::object([("append_mode", "new".into())])),
    ]);
    match host.call("ingest.append", &args).unwrap() {
        Ok(receipt) => receipt.field("ingested").unwrap() == &1_u64.into(),
        Err(error) => {
            let code = error.code.as_str();
            assert!(matches!(code, "invalid-input" | "limit-exceeded"), "{code}: {message}");
            assert!(error.message.contains("messages[0]"), "{}", error.message);
            assert!(!error.message.contains('\n'), "{}", error.message);
            assert_eq!(host.store.digest(), before, "a refused message was written");
            false
        }
    }
}

fn fuzz_dialect(dialect: &str) {
    let seeds = seeds(dialect);
    rounds(&dialect.replace('-', "_"), |random| {
        let mut host = host();
        // No provider accepts an empty array.
        let first = match dialect {
            "gemini" => "{\"role\":\"user\",\"parts\":[{\"text\":\"hello\"}]}",
            _ => "{\"role\":\"user\",\"content\":\"hello\"}",
        };
        assert!(append(&mut host, dialect, first));
        let mut taken = vec![first.to_owned()];
        for _ in 0..random.between(1, 6) {
            let (text, other) = (random.pick(&seeds).clone(), random.pick(&seeds).clone());
            let message = mutate(random, &text, &other);
            if append(&mut host, dialect, &message) {
                taken.push(message);
            }
        }
        let last = u64::try_from(taken.len()).unwrap();
        let args = Json::object([
            ("seq_first", 1_u64.into()),
            ("seq_last", last.into()),
            ("bytes_max", 1_000_000_u64.into()),
        ]);
        let back = host.ask("recall.messages", &args).unwrap();
        let back: Vec<&str> = back.elements().iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(back, taken);
        for other in DIALECTS {
            let args = Json::object([("budget", 100_000_u64.into()), ("dialect", other.into())]);
            let assembled = host.ask("context.assemble", &args).unwrap();
            let messages = assembled.field("messages_json").unwrap().clone();
            if other != "lcm" {
                let args = Json::object([("dialect", other.into()), ("messages_json", messages)]);
                let findings = host.ask("context.validate", &args).unwrap();
                assert_eq!(findings.as_str(), Some("[]"), "{dialect} to {other}: {taken:?}");
            }
        }
        let check = host.ask("admin.check", &Json::object([])).unwrap();
        let check = Json::parse(check.as_str().unwrap()).unwrap();
        assert_eq!(check.field("ok").unwrap(), &Json::Bool(true), "{check}: {taken:?}");
    });
}

#[test]
fn lcm() {
    fuzz_dialect("lcm");
}

#[test]
fn anthropic() {
    fuzz_dialect("anthropic");
}

#[test]
fn openai_chat() {
    fuzz_dialect("openai-chat");
}

#[test]
fn openai_responses() {
    fuzz_dialect("openai-responses");
}

#[test]
fn gemini() {
    fuzz_dialect("gemini");
}

/// Large payloads with file blocks, tables, code, logs and similar texts.
#[test]
fn payloads() {
    const KINDS: [&str; 10] = [
        "a,b,c\n1,2,3\n\"x\ny\",5,6\n",
        "{\"rows\":[{\"id\":1,\"tags\":[\"a\"]}],\"n\":1.5e3}\n",
        "name: x\nlist:\n  - 1\nother: |\n  text\n",
        "<?xml version=\"1.0\"?><a><b c=\"d\">e</b><!-- f --></a>\n",
        "use std::fs;\npub fn main() {\n}\nclass A:\n  def f(self):\nimport x from 'y';\n",
        "# Title\n\nwords and words\n\n## Second\n* point\n",
        "2024-05-01T10:00:00Z ERROR failed to open\n2024-05-01 INFO fine\n",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}\u{3002}\u{1f600}\n",
    ];
    const NAMES: [&str; 12] = [
        "a.csv", "a.tsv", "a.json", "a.jsonl", "a.yaml", "a.xml", "a.rs", "a.md", "a.log",
        "a.diff", "a.png", "",
    ];
    rounds("payloads", |random| {
        let mut text = String::new();
        while lcm_text::base::tokens::estimate(&text) < 1_200 {
            let (kind, other) = (random.pick(&KINDS).to_string(), random.pick(&KINDS).to_string());
            let piece = if random.chance(300) { mutate(random, &kind, &other) } else { kind };
            text.push_str(&piece);
        }
        let name = random.pick(&NAMES);
        let file = Json::object([
            ("type", "file".into()),
            ("name", (*name).into()),
            ("text", text.as_str().into()),
        ]);
        let block = format!("see <file name='{name}'>{text}</file> and tell me");
        let said = Json::object([("type", "text".into()), ("text", block.into())]);
        let parts = Json::Array(vec![file, said]);
        let message = Json::object([("role", "user".into()), ("parts", parts)]).compact();
        let mut host = host();
        assert!(append(&mut host, "lcm", &message));
        let args = Json::object([("budget", 1_000_000_u64.into())]);
        let assembled = host.ask("context.assemble", &args).unwrap();
        let context = assembled.field("messages_json").unwrap().as_str().unwrap();
        let at = context.find("[LCM File: ").unwrap() + "[LCM File: ".len();
        let id = &context[at..at + 21];
        let options = "{\"bytes_max\":500000}";
        let args = Json::object([("id", id.into()), ("options_json", options.into())]);
        let file =
            Json::parse(host.ask("recall.describe", &args).unwrap().as_str().unwrap()).unwrap();
        assert_eq!(file.field("content").unwrap().as_str(), Some(text.as_str()));
        let exploration = file.field("exploration").unwrap().as_str().unwrap();
        let tokens = lcm_text::base::tokens::estimate(exploration);
        assert!((1..=240).contains(&tokens), "{tokens} tokens: {exploration}");
        let check = host.ask("admin.check", &Json::object([])).unwrap();
        assert!(check.as_str().unwrap().contains("\"ok\":true"), "{check}");
    });
}

/// Arguments that hosts write as JSON: transcripts, configurations, options, queries, lines of an
/// export. Each call answers or refuses; only the import may write.
#[test]
fn arguments() {
    let texts = [
        "{\"entries\":[{\"entry_id\":\"a\",\"hash\":\"00000000000000000000000000000000\",\"tokens\":5}],\
         \"bounded\":true,\"confirmed\":1,\"checkpoint\":{\"epoch\":\"x\"},\"epoch\":\"y\"}",
        "{\"contextThreshold\":0.5,\"fresh_tail_messages_max\":3,\"ignoreSessionPatterns\":[\"a*\"]}",
        "{\"start_line\":1,\"end_line\":2,\"bytes_max\":5000,\"include_messages\":true,\"tokens_max\":9}",
        "{\"pattern\":\"x+(y|z)*\",\"mode\":\"auto\",\"since\":\"2024-01-01T00:00:00Z\",\"limit\":5}",
        "{\"family\":\"f\",\"cause\":\"idle\",\"retain_depth\":1,\"dry_run\":true}",
    ];
    rounds("arguments", |random| {
        let mut host = host();
        assert!(append(&mut host, "lcm", "{\"role\":\"user\",\"content\":\"hello world\"}"));
        let before = host.store.digest();
        for _ in 0..4 {
            let (text, other) = (*random.pick(&texts), *random.pick(&texts));
            let text = mutate(random, text, other);
            let calls = [
                ("ingest.reconcile", "transcript_json", None),
                ("recall.grep", "query_json", None),
                ("recall.describe", "options_json", Some("msg_0123456789abcdef")),
                ("recall.describe", "options_json", Some(text.as_str())),
                ("recall.expand", "options_json", Some("sum_0123456789abcdef")),
                ("setup.configure", "config_json", None),
            ];
            let (call, key, id) = *random.pick(&calls);
            let text_of = Json::from(text.as_str());
            let args = match id {
                Some(id) => Json::object([(key, text_of), ("id", id.into())]),
                None => Json::object([(key, text_of)]),
            };
            if let Err(error) = host.call(call, &args).unwrap() {
                let code = error.code.as_str();
                let expected =
                    ["invalid-input", "limit-exceeded", "not-found", "unsupported", "exists"];
                assert!(expected.contains(&code), "{call}: {code}: {}", error.message);
            }
            assert_eq!(host.store.digest(), before, "{call} wrote: {text}");
        }
        let line = mutate(random, "{\"header\":{\"format\":\"x\"},\"sum\":\"00\"}", texts[0]);
        let args = Json::object([("lines", Json::Array(vec![line.as_str().into()]))]);
        if let Err(error) = host.call("admin.import_page", &args).unwrap() {
            assert_eq!(error.code.as_str(), "invalid-input", "{}: {line}", error.message);
        }
        assert_eq!(host.store.digest(), before, "an import wrote: {line}");
    });
}
