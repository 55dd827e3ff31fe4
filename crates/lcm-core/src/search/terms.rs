//! Index terms of a text.
//!
//! Input: a text and its field. Output: terms as [`lcm_loops::term_tokenizer`] makes them. A tool
//! name is also a term as a whole (kind `n`). Of arguments and results in JSON, only keys and
//! values have terms. Used to index messages and summaries and to parse queries.

pub(crate) use lcm_loops::term_tokenizer::has_positions;
pub(super) use lcm_loops::term_tokenizer::hash_bytes;
use lcm_loops::term_tokenizer::{EachTerm, TermTokenizer};

use super::fields::SearchField;
use lcm_text::base::json::{self, ByteSpan, JsonScanner, JsonTokenKind};

/// Calls `each` with every term of a text: kind and bytes, position, and byte range in `text`.
/// Returns the number of positions.
///
/// Positions start at 0 and never decrease. Of arguments and results that are a JSON object or
/// array, only keys and values have terms. A term of a JSON string with escapes has the byte range
/// of the whole string, quotes included.
pub(crate) fn each_term(field: SearchField, text: &str, each: EachTerm<'_>) -> u32 {
    let mut walk = TermTokenizer::new(each);
    match field {
        SearchField::ToolName if text.is_empty() => {}
        SearchField::ToolName => {
            walk.emit_folded_whole(b'n', text);
            walk.tokenize_text(text);
        }
        SearchField::Arguments | SearchField::Result => tokenize_json_or_text(&mut walk, text),
        SearchField::Text
        | SearchField::Reasoning
        | SearchField::FileName
        | SearchField::FileText => walk.tokenize_text(text),
    }
    walk.position
}

fn tokenize_json_or_text(walk: &mut TermTokenizer<'_>, text: &str) {
    let container = text.trim_start().starts_with(['{', '[']);
    if !container || !is_json(text) {
        return walk.tokenize_text(text);
    }
    let mut scanner = JsonScanner::new(text);
    while let Ok(Some(token)) = scanner.next_token() {
        match token.kind {
            JsonTokenKind::Key | JsonTokenKind::String => {
                let span = ByteSpan::from_range(token.start, token.end);
                let inner = json::slice_span(text, span);
                if inner.contains('\\') {
                    walk.fixed_range = Some(token.start..token.end);
                    walk.tokenize_text(&json::text(text, span));
                    walk.fixed_range = None;
                } else {
                    walk.text_offset = token.start + 1;
                    walk.tokenize_text(inner.trim_matches('"'));
                }
            }
            JsonTokenKind::Number => {
                walk.text_offset = token.start;
                walk.tokenize_text(json::slice_span(
                    text,
                    ByteSpan::from_range(token.start, token.end),
                ));
            }
            JsonTokenKind::True | JsonTokenKind::False | JsonTokenKind::Null => {
                walk.text_offset = token.start;
                walk.tokenize_text(json::slice_span(
                    text,
                    ByteSpan::from_range(token.start, token.end),
                ));
            }
            _ => {}
        }
    }
}

fn is_json(text: &str) -> bool {
    let mut scanner = JsonScanner::new(text);
    loop {
        match scanner.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String, vec, vec::Vec};

    use lcm_loops::term_tokenizer::TERM_BYTES_MAX;

    use super::*;

    fn terms(field: SearchField, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_term(field, text, &mut |term, position, range| {
            assert!(text.get(range).is_some(), "a range lies in the text");
            out.push(format!("{}@{position}", String::from_utf8_lossy(term)));
        });
        out
    }

    fn plain(text: &str) -> Vec<String> {
        terms(SearchField::Text, text)
    }

    #[test]
    fn words_are_folded_and_counted() {
        assert_eq!(plain("The cat, THE hat."), ["wthe@0", "wcat@1", "wthe@2", "what@3"]);
        assert_eq!(plain("Caf\u{e9} na\u{ef}ve"), ["wcafe@0", "wnaive@1"]);
        assert_eq!(plain("cafe\u{301} sha256"), ["wcafe@0", "wsha256@1"]);
        assert_eq!(plain("\u{201c}so\u{201d}\u{2014}no\u{2026}"), ["wso@0", "wno@1"]);
        assert_eq!(plain(""), Vec::<String>::new());
    }

    #[test]
    fn identifiers_are_kept_whole_and_in_words() {
        assert_eq!(
            plain("see src/mainLoop.rs:12."),
            [
                "wsee@0",
                "isrc/mainloop.rs:12@1",
                "wsrc@1",
                "imainloop@2",
                "wmain@2",
                "wloop@3",
                "wrs@4",
                "w12@5"
            ]
        );
        assert_eq!(plain("fooBar"), ["ifoobar@0", "wfoo@0", "wbar@1"]);
        assert_eq!(plain("parseHTMLText"), ["iparsehtmltext@0", "wparse@0", "whtml@1", "wtext@2"]);
        assert_eq!(plain("HTTP"), ["whttp@0"]);
        assert_eq!(
            plain("a::b x://y p...q"),
            ["ia::b@0", "wa@0", "wb@1", "ix://y@2", "wx@2", "wy@3", "wp@4", "wq@5"]
        );
        assert_eq!(plain("stra\u{df}e_nord")[0], "istrasse_nord@0");
        assert_eq!(plain("STRA\u{1e9e}E o\u{fb03}ce"), ["wstrasse@0", "woffice@1"]);
    }

    #[test]
    fn encoded_data_is_not_parted_at_every_capital() {
        let data = "aBcDeFgHiJkLmNoPqRsTuV";
        assert_eq!(plain(data), [format!("w{}@0", data.to_lowercase())]);
        let long = "x".repeat(300);
        assert_eq!(plain(&long), [format!("w{}@0", "x".repeat(TERM_BYTES_MAX))]);
        let accents = "\u{e9}".repeat(300);
        assert_eq!(plain(&accents), [format!("w{}@0", "e".repeat(TERM_BYTES_MAX))]);
    }

    #[test]
    fn scripts_without_spaces_are_characters_and_pairs() {
        assert_eq!(
            plain("\u{6570}\u{636e}\u{5e93}v2"),
            [
                "c\u{6570}@0",
                "c\u{6570}\u{636e}@0",
                "c\u{636e}@1",
                "c\u{636e}\u{5e93}@1",
                "c\u{5e93}@2",
                "wv2@3"
            ]
        );
        // ASCII words beside CJK characters have the same terms as elsewhere.
        assert_eq!(
            plain("\u{5728}GitHub\u{4e0a} deploying\u{4e0a}"),
            [
                "c\u{5728}@0",
                "igithub@1",
                "wgit@1",
                "whub@2",
                "c\u{4e0a}@3",
                "wdeploying@4",
                "sdeploy@4",
                "c\u{4e0a}@5"
            ]
        );
        // A comma separates two characters, so they form no pair; full-width letters are letters.
        assert_eq!(plain("\u{6570}\u{ff0c}\u{636e}"), ["c\u{6570}@0", "c\u{636e}@1"]);
        assert_eq!(plain("\u{ff21}\u{ff22}"), ["wab@0"]);
        assert_eq!(plain("\u{e01}\u{e02}"), ["c\u{e01}@0", "c\u{e01}\u{e02}@0", "c\u{e02}@1"]);
        assert!(
            has_positions("c\u{6570}".as_bytes()) && !has_positions("c\u{6570}\u{636e}".as_bytes())
        );
    }

    #[test]
    fn json_is_read_without_its_syntax() {
        let json = r#"{"file_path":"src/a.rs","n":[1,true,null,"x\ny"]}"#;
        let expected = vec![
            "ifile_path@0",
            "wfile@0",
            "wpath@1",
            "isrc/a.rs@2",
            "wsrc@2",
            "wa@3",
            "wrs@4",
            "wn@5",
            "w1@6",
            "wtrue@7",
            "wnull@8",
            "wx@9",
            "wy@10",
        ];
        assert_eq!(terms(SearchField::Arguments, json), expected);
        assert_eq!(terms(SearchField::Result, "[no json"), ["wno@0", "wjson@1"]);
        assert_eq!(
            terms(SearchField::ToolName, "list_dir"),
            ["nlist_dir@0", "ilist_dir@0", "wlist@0", "wdir@1"]
        );
        let mut ranges = Vec::new();
        each_term(SearchField::Arguments, json, &mut |_, _, range| ranges.push(range));
        assert_eq!(json.get(ranges[3].clone()), Some("src/a.rs"));
        assert_eq!(json.get(ranges[11].clone()), Some(r#""x\ny""#));
    }

    /// Goal: no text makes the tokenizer panic, and every range is sound. Method: every string of
    /// up to four of these pieces.
    #[test]
    fn any_text_has_sound_terms() {
        let alphabet = [
            "a", "B", "1", "-", ":", "/", " ", "\u{e9}", "\u{6570}", "\u{301}", "\u{2014}",
            "\u{ff21}", "\u{e01}", "{", "\"",
        ];
        let mut texts = vec![String::new()];
        for length in 0..4 {
            let longer: Vec<String> = texts
                .iter()
                .filter(|text| text.chars().count() == length)
                .flat_map(|text| alphabet.iter().map(move |next| format!("{text}{next}")))
                .collect();
            texts.extend(longer);
        }
        for text in &texts {
            for field in [SearchField::Text, SearchField::Arguments, SearchField::ToolName] {
                let mut last = 0;
                let positions = each_term(field, text, &mut |term, position, range| {
                    assert!(term.len() <= TERM_BYTES_MAX + 1 && position >= last.max(1) - 1);
                    assert!(
                        text.get(range.clone()).is_some_and(|part| !part.is_empty()),
                        "{text:?}"
                    );
                    last = position;
                });
                assert!(positions == 0 || positions > last);
            }
        }
        assert_eq!(texts.len(), 54_241);
    }
}
