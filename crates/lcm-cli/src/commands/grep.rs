//! `lcm grep`: searches messages, summaries and files.
//!
//! In: a pattern and filters. Out: the matches, their number and notes; with `--json` the answer of
//! the component.

use lcm_host::Result;
use serde_json::{Value, json};

use super::recall::{field, format_mark, granted, message_time, parse};
use crate::{
    End,
    arguments::{Global, Grep},
    output::{self, number},
    session::Session,
};

/// Texts for the notes of an answer. An empty text hides the note; a note that is missing here is
/// shown unchanged.
const NOTES: [(&str, &str); 10] = [
    ("mode-regex", "the pattern was read as a regular expression; try --mode full-text"),
    ("mode-full-text", ""),
    ("looks-like-regex", "the pattern was read as words; --mode regex reads a regular expression"),
    ("terms-limited", "some words were ignored: too many words, or too frequent"),
    ("family-limited", "only the newest conversations of the family were searched"),
    ("no-terms", "the pattern has no word"),
    ("file-limited", "at most 10 matches of a file and 512 files of a message were counted"),
    (
        "partly-read",
        "words in the middle of very long texts are not indexed; --mode regex reads all text",
    ),
    ("neighbours-limited", "some matches have no neighbours: the messages are too long"),
    ("scan-limited", "the search stopped before the end"),
];

pub(crate) fn run(global: &Global, options: &Grep) -> Result<End> {
    let session = Session::open(global)?;
    let query = json!({
        "pattern": options.pattern,
        "mode": options.mode,
        "scope": options.scope,
        "file_ids": (!options.file_ids.is_empty()).then_some(&options.file_ids),
        "cursor": options.cursor,
        "start_byte": options.start_byte,
        "neighbours": options.neighbours,
        "sort": options.sort,
        "since": options.since,
        "before": options.before,
        "limit": options.limit,
        "all_conversations": options.all_conversations,
        "only": options.only,
    });
    let (conversation, grant) = (session.conversation, options.grant.as_deref());
    let text = session.lcm.grep(conversation, &query.to_string(), grant, session.now())?;
    if session.json {
        output::text(&(text + "\n"))?;
    } else {
        let answer = parse("recall.grep", &text)?;
        let hits = answer.get("matches").and_then(Value::as_array).into_iter().flatten();
        let elsewhere =
            |hit: &Value| hit.get("conversation").is_some_and(|id| *id != session.conversation);
        let named = options.all_conversations || hits.into_iter().any(elsewhere);
        output::text(&(for_people(&answer, named) + &granted(answer.get("grant"))))?;
    }
    Ok(End::Done)
}

/// Formats the matches with their neighbours, the total and the notes. With `named`, the line of a
/// match also shows the id of its conversation.
pub(super) fn for_people(answer: &Value, named: bool) -> String {
    let list = |key: &str| answer.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut out = String::new();
    for hit in list("matches") {
        let place = match hit.get("seq").and_then(Value::as_u64) {
            Some(seq) => format!("#{seq} {}{}", field(hit, "role"), format_mark(hit)),
            None if hit.get("type").is_some_and(|of| of == "system") => "system".to_owned(),
            None => {
                let (kind, depth) = (field(hit, "kind"), field(hit, "depth"));
                format!("{kind}, depth {depth}{}", format_mark(hit))
            }
        };
        let place = match hit.get("byte") {
            Some(byte) => format!("{place}, line {}, byte {byte}", field(hit, "line")),
            None => place,
        };
        let conversation =
            if named { format!("  {}", field(hit, "conversation")) } else { String::new() };
        out.push_str(&format!(
            "{}  {place}  {}{conversation}\n",
            field(hit, "id"),
            message_time(hit),
        ));
        let beside = |side: &str| -> String {
            let side = hit.get(side).and_then(Value::as_array).into_iter().flatten();
            let line = |one| {
                let (role, snippet) = (field(one, "role"), field(one, "snippet"));
                format!("      {role}{} {snippet}\n", format_mark(one))
            };
            side.map(line).collect()
        };
        out.push_str(&beside("neighbours_before"));
        out.push_str(&format!("    {}\n", field(hit, "snippet")));
        out.push_str(&beside("neighbours_after"));
    }
    let total = answer.get("total").and_then(Value::as_u64).unwrap_or(0);
    let shown = list("matches").count();
    let matches = if total == 1 { "match" } else { "matches" };
    match answer.get("truncated") {
        Some(Value::Bool(true)) => {
            out.push_str(&format!("the first {shown} of {} {matches}\n", number(total)));
        }
        _ => out.push_str(&format!("{} {matches}\n", number(total))),
    }
    if let Some(cursor) = answer.get("cursor").and_then(Value::as_str) {
        out.push_str(&format!("note: --cursor {cursor} continues the search\n"));
    }
    for note in list("notes").filter_map(Value::as_str) {
        let said = NOTES.iter().find(|(name, _)| *name == note).map_or(note, |(_, said)| *said);
        if !said.is_empty() {
            out.push_str(&format!("note: {said}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_hits_the_total_and_what_the_notes_mean() {
        let answer = json!({
            "matches": [
                {"type": "message", "id": "msg_1", "seq": 7, "role": "user", "depth": null,
                 "created_at": "T1", "snippet": "a needle", "kind": "message",
                 "conversation": "c"},
                {"type": "summary", "id": "sum_1", "seq": null, "role": null, "depth": 1,
                 "created_at": "T2", "snippet": "needles", "kind": "condensed",
                 "conversation": "c"},
                {"type": "system", "id": "sys_1", "seq": null, "role": "system", "depth": null,
                 "created_at": "T3", "snippet": "find needles", "kind": "system",
                 "conversation": "c"},
            ],
            "total": 1234, "truncated": true, "notes": ["mode-full-text", "looks-like-regex"],
        });
        let expected = "msg_1  #7 user  T1\n    a needle\n\
            sum_1  condensed, depth 1  T2\n    needles\n\
            sys_1  system  T3\n    find needles\n\
            the first 3 of 1,234 matches\n\
            note: the pattern was read as words; --mode regex reads a regular expression\n";
        assert_eq!(for_people(&answer, false), expected);
        assert!(for_people(&answer, true).contains("T1  c\n"));
        let of_files = json!({
            "matches": [
                {"type": "file", "id": "file_1", "seq": 7, "role": "tool", "created_at": "T1",
                 "snippet": "a needle", "kind": "tool-output", "line": 3, "byte": 40},
                {"type": "message", "id": "msg_2", "seq": 2, "role": "user", "created_at": "T2",
                 "snippet": "needle", "kind": "message", "withdrawn": "set-aside",
                 "neighbours_before": [{"id": "msg_1", "role": "user", "snippet": "said before",
                                        "withdrawn": "revision"}],
                 "neighbours_after": [{"id": "msg_3", "role": "assistant", "snippet": "said after"}]},
                {"type": "summary", "id": "sum_1", "seq": null, "role": null, "depth": 0,
                 "created_at": "T3", "snippet": "needles", "kind": "leaf",
                 "withdrawn": "set-aside"},
            ],
            "total": 3, "truncated": true, "notes": ["scan-limited"],
            "cursor": "file_1:900",
        });
        let expected = "file_1  #7 tool, line 3, byte 40  T1\n    a needle\n\
            msg_2  #2 user, set aside  T2\n      user, another form said before\n    needle\n\
            \x20     assistant said after\n\
            sum_1  leaf, depth 0, set aside  T3\n    needles\n\
            the first 3 of 3 matches\n\
            note: --cursor file_1:900 continues the search\n\
            note: the search stopped before the end\n";
        assert_eq!(for_people(&of_files, false), expected);
        let goes_on = json!({"matches": [], "total": 0, "truncated": true, "notes": [],
            "cursor": "scan_1_m7"});
        let expected = "the first 0 of 0 matches\nnote: --cursor scan_1_m7 continues the search\n";
        assert_eq!(for_people(&goes_on, false), expected);
        let none = json!({"matches": [], "total": 0, "truncated": false, "notes": ["new-note"]});
        assert_eq!(for_people(&none, false), "0 matches\nnote: new-note\n");
    }
}
