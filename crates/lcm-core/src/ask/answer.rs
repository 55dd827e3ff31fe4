//! Parsing of a model's answer: its text without wrappers, and the ids it names.
//!
//! In: a completion. Out: an answer, the statement that the passages do not contain the answer, or
//! an unusable completion. [`crate::ask`] uses this module and checks the ids.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    summary::transcript,
    types::model::{Completion, Finish},
};

/// Prefix of a completion that says that the passages do not contain the answer.
pub(super) const NOT_FOUND_PREFIX: &str = "NOT FOUND";
/// Prefix of the line with the words for which the model asks the engine to search.
pub(super) const SEARCH_PREFIX: &str = "SEARCH:";
/// Maximum bytes of the words for which a model asks the engine to search.
const SEARCH_WORDS_BYTES_MAX: usize = 400;
/// Maximum number of ids that are kept of one answer.
const IDS_MAX: usize = 64;
/// Hexadecimal digits of an id, behind a prefix such as `msg_`.
const ID_DIGITS: usize = 16;

/// A parsed completion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ParsedAnswer {
    /// An answer, with the ids in its text, in order, then the ids that are only in `cited_ids` of
    /// its JSON. Each id is listed once; at most 64 are kept.
    Answer { text: String, ids: Vec<String> },
    /// The passages do not contain the answer. `search` has the words for which the model asks the
    /// engine to search; `None`: the model asks for no search.
    NotFound { search: Option<String> },
    /// The completion is empty, or its finish is a refusal.
    Unusable,
}

/// Parses a completion.
pub(super) fn parse_answer(completion: &Completion) -> ParsedAnswer {
    if completion.finish == Finish::Refusal {
        return ParsedAnswer::Unusable;
    }
    let bare = transcript::strip_reasoning(&completion.text);
    let (text, mut claimed) = match unwrap_json_answer(&bare) {
        Some((text, claimed)) => (text, claimed),
        None => (transcript::strip_enclosure(&bare).into(), Vec::new()),
    };
    let text = text.trim();
    if text.is_empty() {
        return ParsedAnswer::Unusable;
    }
    if let Some(search) = parse_not_found(text) {
        return ParsedAnswer::NotFound { search };
    }
    let mut ids = collect_ids(text);
    claimed.retain(|id| !ids.contains(id));
    ids.extend(claimed);
    ids.truncate(IDS_MAX);
    ParsedAnswer::Answer { text: text.into(), ids }
}

/// Parses the statement that the passages do not contain the answer, and the words to search (inner
/// `None`: no words). The outer `None`: the text is an answer.
///
/// An answer may begin "Not found in the cellar, but in the attic", or have the line "Search:
/// enabled". So only these texts are statements:
///
/// - `NOT FOUND` alone in the first line: in capitals, or the text names no id;
/// - `NOT FOUND` and more in the first line: the text names no id, and either punctuation follows
///   or the words are in capitals;
/// - `SEARCH:` at the start of the last line: the only line, or in capitals in a text that names no
///   id.
fn parse_not_found(text: &str) -> Option<Option<String>> {
    let first = trim_markup(text.lines().next()?);
    let cites = !collect_ids(text).is_empty();
    let behind = strip_word_ignore_case(first, NOT_FOUND_PREFIX);
    let is_set_off = |behind: &str| {
        let is_capitals = first.starts_with(NOT_FOUND_PREFIX);
        !cites && !behind.starts_with(|c: char| c.is_alphanumeric() || c == ' ' && !is_capitals)
    };
    let is_all =
        |behind: &str| behind.is_empty() && (!cites || first.starts_with(NOT_FOUND_PREFIX));
    if behind.is_some_and(|behind| is_all(behind) || is_set_off(behind)) {
        let beside = behind.and_then(|behind| Some(behind.split_once(SEARCH_PREFIX)?.1));
        let line = text
            .lines()
            .skip(1)
            .find_map(|line| strip_word_ignore_case(trim_markup(line), SEARCH_PREFIX));
        return Some(beside.or(line).and_then(parse_search_words));
    }
    let last = trim_markup(text.lines().next_back()?);
    let is_alone = text.lines().count() == 1;
    let search = strip_word_ignore_case(last, SEARCH_PREFIX)
        .filter(|_| is_alone || last.starts_with(SEARCH_PREFIX) && !cites);
    search.map(parse_search_words)
}

/// Strips `word`, in upper or lower case, from the start of a line; `None`: the line starts with
/// other text.
fn strip_word_ignore_case<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let (begin, behind) = line.split_at_checked(word.len())?;
    begin.eq_ignore_ascii_case(word).then_some(behind)
}

/// Parses the words to search, at most [`SEARCH_WORDS_BYTES_MAX`] bytes; `None`: no words.
fn parse_search_words(text: &str) -> Option<String> {
    let words = trim_markup(text);
    let words = words.get(..words.floor_char_boundary(SEARCH_WORDS_BYTES_MAX)).unwrap_or("");
    (!words.is_empty()).then(|| words.into())
}

/// Trims whitespace and markup around a line, and `.` or `!` at its end.
fn trim_markup(line: &str) -> &str {
    let marks = |c: char| c.is_whitespace() || matches!(c, '*' | '#' | '_' | '`' | '>' | '"');
    line.trim_matches(marks).trim_end_matches(['.', '!']).trim_end_matches(marks)
}

/// Collects the ids that a text names, each once, in order.
pub(super) fn collect_ids(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for word in text.split(|c: char| !is_word(c)) {
        let kinds = ["msg_", "sum_", "file_"];
        let digits = kinds.iter().find_map(|kind| word.strip_prefix(kind)).unwrap_or("");
        let is_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_id = is_hex && digits.len() == ID_DIGITS;
        if is_id && !found.iter().any(|id| id == word) {
            found.push(word.into());
        }
    }
    found
}

/// Returns `answer` and `cited_ids` of a JSON object on lines of its own; `None`: there is no such
/// object. A fence, or text that names no id, may surround the object.
fn unwrap_json_answer(text: &str) -> Option<(String, Vec<String>)> {
    let (before, rest) = text.split_at_checked(text.find('{')?)?;
    let (object, behind) = rest.split_at_checked(rest.rfind('}')? + 1)?;
    // Braces within a line may be part of the prose of an answer.
    let is_blank = |line: Option<&str>| line.is_none_or(|line| line.trim().is_empty());
    let stands_alone = is_blank(before.rsplit('\n').next()) && is_blank(behind.split('\n').next());
    if !stands_alone || !collect_ids(before).is_empty() || !collect_ids(behind).is_empty() {
        return None;
    }
    let members = json::parse_object(object).ok()?;
    let string = |key: &str| {
        let member = json::find_member(&members, object, key)?;
        (member.kind == JsonKind::String).then(|| json::text(object, member.value).into_owned())
    };
    let answer = string("answer")?;
    let list = |key: &str| Some(json::find_member(&members, object, key)?.value);
    let cited = list("cited_ids").or_else(|| list("citedIds"));
    let cited =
        cited.map_or_else(Vec::new, |span: ByteSpan| collect_ids(json::slice_span(object, span)));
    Some((answer, cited))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "msg_00000000000000a1";
    const TWO: &str = "sum_00000000000000b2";

    fn of(text: &str) -> ParsedAnswer {
        parse_answer(&Completion {
            text: text.into(),
            finish: Finish::Stop,
            model: "m".into(),
            input_tokens: 0,
            output_tokens: 0,
        })
    }

    fn answer(text: &str, ids: &[&str]) -> ParsedAnswer {
        ParsedAnswer::Answer { text: text.into(), ids: ids.iter().map(|id| (*id).into()).collect() }
    }

    #[test]
    fn wrappers_of_an_answer_are_stripped() {
        let plain = alloc::format!("Locker 7 [{ONE}], once 9 [{TWO}].");
        let wanted = answer(&plain, &[ONE, TWO]);
        for text in [
            plain.clone(),
            alloc::format!("```\n{plain}\n```"),
            alloc::format!("```markdown\n{plain}\n```\n"),
            alloc::format!("<answer>\n{plain}\n</answer>"),
            alloc::format!("<think>hm {TWO}</think>\n{plain}"),
            alloc::format!("{{\"answer\":\"{plain}\"}}"),
        ] {
            assert_eq!(of(&text), wanted, "{text}");
        }
        let json = "Here it is:\n```json\n{\"answer\": \"Locker 7.\", \"citedIds\": [\"X\"]}\n```";
        assert_eq!(of(&json.replace('X', ONE)), answer("Locker 7.", &[ONE]));
        let other = "A set {a, b} has no answer in JSON.";
        assert_eq!(of(other), answer(other, &[]));
    }

    #[test]
    fn an_answer_may_begin_like_a_refusal_to_answer() {
        for text in [
            alloc::format!("Not founded in 1999 but in 2001 [{ONE}]."),
            "Not found in the cellar, but in the attic.".into(),
            alloc::format!("NOT FOUND in the cellar, but in the attic [{ONE}]."),
            alloc::format!("Flags [{ONE}]:\nSearch: enabled\nCache: off"),
            alloc::format!("Flags [{ONE}]:\nSEARCH: enabled"),
            "Mode of the page:\nSearch: enabled".into(),
            alloc::format!("The body was {{\"answer\": \"42\"}} [{ONE}]."),
            alloc::format!("Not found\n\nwas the message [{ONE}]."),
            alloc::format!("```port = 8417``` is what was set [{ONE}]."),
            alloc::format!("```js\nport = 8417;\n```\nwas set in [{ONE}]."),
            alloc::format!("The body was\n{{\"answer\": \"42\"}}\nas [{ONE}] says."),
        ] {
            let cited: &[&str] = if text.contains(ONE) { &[ONE] } else { &[] };
            assert_eq!(of(&text), answer(&text, cited), "{text}");
        }
    }

    #[test]
    fn ids_count_once_and_only_whole() {
        let text = alloc::format!("({ONE}), {ONE}x, msg_12, {TWO}{ONE}, [{TWO}] and {ONE}.");
        assert_eq!(collect_ids(&text), [ONE, TWO]);
    }

    #[test]
    fn a_missing_answer_differs_from_an_empty_completion() {
        assert_eq!(of("NOT FOUND"), ParsedAnswer::NotFound { search: None });
        let search = Some("tide table harbour".into());
        assert_eq!(of("Not found.\nSEARCH: tide table harbour"), ParsedAnswer::NotFound { search });
        let long = alloc::format!("SEARCH: {}", "\u{e9}".repeat(999));
        let ParsedAnswer::NotFound { search: Some(words) } = of(&long) else { panic!("{long}") };
        assert_eq!(words.len(), SEARCH_WORDS_BYTES_MAX);
        for text in [
            "**NOT FOUND**",
            "NOT FOUND. The passages say nothing of it.",
            "NOT FOUND in the passages",
            "not found: no passage has it",
        ] {
            assert_eq!(of(text), ParsedAnswer::NotFound { search: None }, "{text}");
        }
        for text in
            ["NOT FOUND. SEARCH: tide", "It is not there.\nSEARCH: **tide**", "search: tide"]
        {
            assert_eq!(of(text), ParsedAnswer::NotFound { search: Some("tide".into()) }, "{text}");
        }
        for nothing in ["", " \n", "<think>only thoughts", "```\n```", "{\"answer\":\" \"}"] {
            assert_eq!(of(nothing), ParsedAnswer::Unusable, "{nothing}");
        }
    }
}
