//! Small files of every format, each with the number of its messages by the rules of the format.
//!
//! `fixtures.txt` has one file after each line `=== NAME | FORMAT | LIVE+BRANCHES`, with a comma
//! between conversations. Texts with `SAID` are those that may not be lost.

use super::*;

const FIXTURES: &str = include_str!("fixtures.txt");

/// A file of `fixtures.txt`.
struct Fixture {
    name: &'static str,
    format: &'static str,
    /// Live messages and messages of branches of each conversation, such as `2+1`.
    counts: &'static str,
    /// Whether later lines may change the place of earlier ones.
    is_ordered: bool,
    text: &'static str,
}

fn list_fixtures() -> Vec<Fixture> {
    let of = |section: &'static str| {
        let (head, text) = section.split_once('\n').unwrap();
        let head: Vec<&str> = head.split(" | ").collect();
        let is_ordered = head.get(3) != Some(&"unordered");
        Fixture { name: head[0], format: head[1], counts: head[2], is_ordered, text }
    };
    FIXTURES.split("=== ").skip(1).map(of).collect()
}

fn list_texts(file: &SessionFile) -> Vec<&str> {
    let aside = file.branches.iter().flat_map(|branch| &branch.messages);
    file.messages.iter().chain(aside).map(|message| message.text.as_str()).collect()
}

/// The words of a text that begin with `SAID`.
fn find_marked_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    // After a line break in JSON a word begins with the letter of its escape.
    let words = words.map(|word| word.strip_prefix('n').unwrap_or(word));
    words.filter(|word| word.starts_with("SAID")).map(str::to_owned).collect()
}

#[test]
fn every_format_has_its_messages() {
    let fixtures = list_fixtures();
    assert!(fixtures.len() >= 60, "{}", fixtures.len());
    for fixture in fixtures {
        let name = fixture.name;
        let files = read_bytes(fixture.text.as_bytes(), Growth::Ended);
        let files = files.unwrap_or_else(|error| panic!("{name}: {error}"));
        let count = |file: &SessionFile| {
            let aside: usize = file.branches.iter().map(|branch| branch.messages.len()).sum();
            format!("{}+{aside}", file.messages.len())
        };
        let counts: Vec<String> = files.iter().map(count).collect();
        assert_eq!(counts.join(","), fixture.counts, "{name}: {files:?}");
        for file in &files {
            let format = file.format.unwrap().name();
            assert!(format.contains(fixture.format), "{name}: {format}");
            for text in list_texts(file) {
                assert!(
                    Object::read(text)
                        .is_ok_and(|it| it.text("role").is_some() || it.text("type").is_some()),
                    "{name}: {text}"
                );
            }
        }
        let stored: Vec<&str> = files.iter().flat_map(list_texts).collect();
        for word in find_marked_words(fixture.text) {
            assert!(stored.iter().any(|text| text.contains(&word)), "{name}: {word} is lost");
        }
    }
}

#[test]
fn every_format_has_a_fixture_and_stands_in_the_documentation() {
    const DOCUMENTATION: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md"));
    let fixtures = list_fixtures();
    let names: String = fixtures.iter().map(|it| format!("{}\n", it.name)).collect();
    let names = names.to_lowercase().replace('-', " ");
    for format in formats::list_formats() {
        let name = format.name();
        let has_fixture = |it: &Fixture| !it.format.is_empty() && name.contains(it.format);
        let is_found = fixtures.iter().any(has_fixture);
        // Notes are read only if the caller names their author.
        assert!(is_found || format == Format::Notes, "{name} must have a fixture");
        if let Format::Messages(_) = format {
            assert!(DOCUMENTATION.contains(name.rsplit(' ').next().unwrap()), "{name}");
        }
        for program in format.programs() {
            let program = program.trim_matches('`');
            let shown = program.trim_start_matches("codex ");
            assert!(DOCUMENTATION.contains(shown), "`{shown}` must stand in docs/cli.md");
            let word = program.trim_end_matches(" --json").to_lowercase().replace('-', " ");
            assert!(names.contains(&word), "`{word}` must be the name of a fixture");
            assert!(formats::list_names().contains(program), "{program}");
        }
    }
}

#[test]
fn the_list_of_formats_has_every_dialect_of_the_interface() {
    const INTERFACE: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/types.wit"));
    let (_, dialects) = INTERFACE.split_once("enum dialect {").unwrap();
    let (dialects, _) = dialects.split_once('}').unwrap();
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with("///");
    let cases = dialects.lines().map(str::trim).filter(is_case).count();
    let mut names: Vec<&str> = formats::list_formats().map(Format::name).collect();
    let lists = formats::list_formats().filter(|it| matches!(it, Format::Messages(_))).count();
    assert_eq!(lists, cases);
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each format is listed once");
}

#[test]
fn the_first_comment_of_each_reader_says_what_was_read_and_when() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/session_files");
    let mut readers = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        // These read what no program defines.
        let is_own = ["line.rs", "mod.rs", "notes.rs"].contains(&name);
        if is_own || !text.starts_with("//! Reads ") {
            continue;
        }
        readers += 1;
        let comment: Vec<&str> = text.lines().take_while(|line| line.len() > 3).collect();
        let comment = comment.join(" ");
        let (_, read) = comment.split_once(" Read from ").unwrap_or_else(|| panic!("{name}"));
        let (_, date) = read.rsplit_once(", ").unwrap();
        let form: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000-00-00.", "{name}: {comment}");
    }
    assert!(readers >= 13, "{readers}");
}

/// A followed file is read again after each line, so messages of its beginning are those of the
/// whole file, and no beginning is an error.
#[test]
fn every_format_may_grow() {
    for fixture in list_fixtures() {
        let name = fixture.name;
        let whole = read_bytes(fixture.text.as_bytes(), Growth::Ended).unwrap();
        let whole_format = whole.first().and_then(|file| file.format);
        let whole: Vec<&str> = whole.iter().flat_map(list_texts).collect();
        let ends = fixture.text.match_indices('\n').map(|(at, _)| at + 1);
        for end in ends.flat_map(|end| [end - 1, end, end.saturating_sub(9)]) {
            let Some(begin) = fixture.text.get(..end) else { continue };
            let files = match read_bytes(begin.as_bytes(), Growth::Growing) {
                Ok(files) => files,
                Err(error) => panic!("{name}, {end} bytes: {error}"),
            };
            // A beginning may fit another format; the component then compares what messages say.
            let format = files.first().and_then(|file| file.format);
            if !fixture.is_ordered || format != whole_format {
                continue;
            }
            for text in files.iter().flat_map(list_texts) {
                assert!(whole.contains(&text), "{name}, {end} bytes: {text}");
            }
        }
    }
}

#[test]
fn a_file_of_no_format_names_the_formats() {
    let files = [
        "{\"a\":1}\n",
        "[{\"a\":1}]\n",
        "{\n  \"a\": 1\n}\n",
        "plain words\n",
        "{\"type\":\"unheard\",\"b\":1}\n",
        "[1, 2]\n",
    ];
    for file in files {
        let error = read_bytes(file.as_bytes(), Growth::Ended).unwrap_err();
        let named = ["Claude Code", "Gemini CLI", "`messages`"];
        let is_named = named.iter().all(|name| error.reason.contains(name));
        assert!(is_named || file.starts_with("[1"), "{file}: {error}");
        assert!(error.reason.len() < 500 && !error.reason.contains('\n'), "{error}");
    }
    let unknown = read_bytes(b"{\"role\":\"wizard\",\"content\":\"x\"}\n", Growth::Ended);
    assert!(unknown.unwrap_err().reason.contains("`wizard`"));
}

#[test]
fn a_file_of_which_nothing_was_understood_is_an_error() {
    let files = [
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}"#,
        r#"{"info":{"role":"user","id":"m"},"parts":[{"type":"unheard","content":"x"}]}"#,
        r#"{"type":"user.message","data":{"words":"x"}}"#,
        r#"{"mapping":{}}"#,
    ];
    for file in files {
        let read = |growth| read_bytes(format!("{file}\n").as_bytes(), growth);
        let error = read(Growth::Ended).unwrap_err();
        assert!(error.reason.contains("no message was understood"), "{file}: {error}");
        assert!(error.reason.contains("Claude Code") && read(Growth::Growing).is_ok(), "{file}");
    }
}

/// Words about lines that are no messages are for lines that a reader does not know.
#[test]
fn files_of_known_lines_have_no_warning_about_them() {
    for fixture in list_fixtures() {
        let files = read_bytes(fixture.text.as_bytes(), Growth::Ended).unwrap();
        for warning in files.iter().flat_map(|file| &file.warnings) {
            assert!(!warning.contains("lines that are no messages"), "{}: {warning}", fixture.name);
        }
    }
}

#[test]
fn lines_that_could_have_words_of_a_person_are_named() {
    let files = [
        (
            r#"{"type":"user","uuid":"u","message":{"role":"user","content":"x"}}"#,
            [
                (r#"{"type":"custom-title","uuid":"a","customTitle":"x"}"#, "custom-title"),
                (
                    r#"{"type":"attachment","uuid":"a","attachment":{"type":"new"}}"#,
                    "attachment new",
                ),
                (
                    r#"{"type":"attachment","uuid":"a","attachment":{"type":"file"}}"#,
                    "attachment file",
                ),
            ],
        ),
        (
            r#"{"type":"session","id":"s"}"#,
            [
                (r#"{"type":"label","id":"1","parentId":null,"label":"x"}"#, "label"),
                (r#"{"type":"custom","id":"1","parentId":null,"customType":"x"}"#, "custom"),
                (r#"{"type":"session_info","id":"1","parentId":null,"name":"x"}"#, "session_info"),
            ],
        ),
        (
            r#"{"type":"thread.started","thread_id":"t"}"#,
            [
                (r#"{"type":"turn.failed","error":{}}"#, "turn.failed"),
                (r#"{"type":"item.completed","item":{"id":"1","type":"new"}}"#, "item new"),
                (r#"{"type":"item.spoken","words":"x"}"#, "item.spoken"),
            ],
        ),
        (
            r#"{"type":"user.message","data":{"content":"x"}}"#,
            [
                (r#"{"type":"command.queued","data":{"command":"x"}}"#, "command.queued"),
                (r#"{"type":"user.message","data":{"words":"x"}}"#, "user.message without text"),
                (r#"{"type":"assistant.reasoning","data":{"words":"x"}}"#, "assistant.reasoning"),
            ],
        ),
        (
            r#"{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"x"}]}"#,
            [
                (r#"{"info":{"id":"n","role":"user"},"parts":[{"type":"new"}]}"#, "part new"),
                (r#"{"info":{"id":"n","role":"user"},"parts":[{"type":"agent"}]}"#, "part agent"),
                (
                    r#"{"info":{"id":"n","role":"user"},"parts":[{"type":"text","text":[]}]}"#,
                    "part text",
                ),
            ],
        ),
    ];
    for (first, lines) in files {
        for (line, says) in lines {
            let text = format!("{first}\n{line}\n");
            let files = read_bytes(text.as_bytes(), Growth::Growing).unwrap();
            let named = files[0].warnings.iter().any(|it| it.contains(&format!("1 `{says}`")));
            assert!(named, "{line}: {:?}", files[0].warnings);
        }
    }
}

#[test]
fn a_text_is_a_message_for_each_paragraph() {
    let text = "one\ntwo\n\n\nthree\n```\na\n\nb\n```\n\nlast";
    let count = |growth| read_notes(text.as_bytes(), Author::User, growth).unwrap().messages.len();
    assert_eq!((count(Growth::Ended), count(Growth::Growing)), (3, 2));
    let read = read_notes(text.as_bytes(), Author::System, Growth::Ended).unwrap();
    assert!(read.messages[1].text.contains("three\\n```\\na\\n\\nb\\n```"));
    assert!(read.messages[1].text.contains("\"role\":\"system\""));
    assert!(read_notes(b"a\0b", Author::User, Growth::Ended).is_err());
}
