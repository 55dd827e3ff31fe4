//! What a model answered: its words, freed of what models wrap them in, and the ids it cites.
//!
//! In: a completion. Out: an answer, that there is none, or that the model gave nothing of use. Not
//! here: whether what it cites was shown to it.

use alloc::{string::String, vec::Vec};

use crate::{
    json::{self, Kind, Span},
    model::{Completion, Finish},
    source,
};

/// Begins an answer when the passages do not hold it.
pub(super) const NOT_FOUND: &str = "NOT FOUND";
/// Begins the line with the words that a model wants searched.
pub(super) const SEARCH: &str = "SEARCH:";
/// Words that are searched at a model's wish.
const SEARCH_BYTES_MAX: usize = 400;
/// Ids of one answer that are looked at.
const IDS_MAX: usize = 64;
/// Hex digits of an id.
const ID_DIGITS: usize = 16;

/// What came of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Read {
    /// Words, and the ids that it names, each once, in order.
    Answer { text: String, ids: Vec<String> },
    /// The passages do not hold it; what to search for instead, if the model says.
    NotFound { search: Option<String> },
    /// Nothing, or a refusal.
    Nothing,
}

/// Reads an answer.
pub(super) fn read(completion: &Completion) -> Read {
    if completion.finish == Finish::Refusal {
        return Read::Nothing;
    }
    let bare = source::strip_reasoning(&completion.text);
    let (text, mut claimed) = match unwrapped(&bare) {
        Some((text, claimed)) => (text, claimed),
        None => (unfenced(&bare).into(), Vec::new()),
    };
    let text = text.trim();
    if text.is_empty() {
        return Read::Nothing;
    }
    let begins = |line: &str, word: &str| {
        line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let search = text.lines().map(str::trim).find(|line| begins(line, SEARCH));
    if search.is_some() || begins(text.trim_start_matches(['*', '#', ' ']), NOT_FOUND) {
        let words = search.and_then(|line| line.get(SEARCH.len()..)).unwrap_or("").trim();
        let words = words.get(..words.floor_char_boundary(SEARCH_BYTES_MAX)).unwrap_or("");
        return Read::NotFound { search: (!words.is_empty()).then(|| words.into()) };
    }
    let mut ids = ids(text);
    claimed.retain(|id| !ids.contains(id));
    ids.extend(claimed);
    ids.truncate(IDS_MAX);
    Read::Answer { text: text.into(), ids }
}

/// The ids that a text names, each once, in order.
pub(super) fn ids(text: &str) -> Vec<String> {
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

/// The answer and ids of a JSON object, alone or with words or a fence around it.
fn unwrapped(text: &str) -> Option<(String, Vec<String>)> {
    let from = text.find('{')?;
    let to = text.rfind('}')?;
    let object = text.get(from..=to)?;
    let members = json::object(object).ok()?;
    let string = |key: &str| {
        let member = json::member(&members, object, key)?;
        (member.kind == Kind::String).then(|| json::text(object, member.value).into_owned())
    };
    let answer = string("answer")?;
    let list = |key: &str| Some(json::member(&members, object, key)?.value);
    let cited = list("cited_ids").or_else(|| list("citedIds"));
    let cited = cited.map_or_else(Vec::new, |span: Span| ids(json::slice(object, span)));
    Some((answer, cited))
}

/// The inside of a fence or element that encloses the whole text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("```") {
        let inside = rest.split_once('\n').map_or("", |(_, inside)| inside);
        return inside.trim_end().strip_suffix("```").unwrap_or(inside);
    }
    let inside = text.strip_prefix("<answer>").map(str::trim_end);
    inside.and_then(|inside| inside.strip_suffix("</answer>")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "msg_00000000000000a1";
    const TWO: &str = "sum_00000000000000b2";

    fn of(text: &str) -> Read {
        read(&Completion {
            text: text.into(),
            finish: Finish::Stop,
            model: "m".into(),
            input_tokens: 0,
            output_tokens: 0,
        })
    }

    fn answer(text: &str, ids: &[&str]) -> Read {
        Read::Answer { text: text.into(), ids: ids.iter().map(|id| (*id).into()).collect() }
    }

    #[test]
    fn an_answer_is_freed_of_what_models_wrap_it_in() {
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
    fn ids_count_once_and_only_whole() {
        let text = alloc::format!("({ONE}), {ONE}x, msg_12, {TWO}{ONE}, [{TWO}] and {ONE}.");
        assert_eq!(ids(&text), [ONE, TWO]);
    }

    #[test]
    fn that_there_is_no_answer_is_told_apart_from_nothing() {
        assert_eq!(of("NOT FOUND"), Read::NotFound { search: None });
        let search = Some("tide table harbour".into());
        assert_eq!(of("Not found.\nSEARCH: tide table harbour"), Read::NotFound { search });
        let long = alloc::format!("SEARCH: {}", "\u{e9}".repeat(999));
        let Read::NotFound { search: Some(words) } = of(&long) else { panic!("{long}") };
        assert_eq!(words.len(), SEARCH_BYTES_MAX);
        for nothing in ["", " \n", "<think>only thoughts", "```\n```", "{\"answer\":\" \"}"] {
            assert_eq!(of(nothing), Read::Nothing, "{nothing}");
        }
    }
}
