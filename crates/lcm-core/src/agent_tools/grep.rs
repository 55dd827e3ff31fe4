//! `lcm_grep`: matches as lines.
//!
//! In: the arguments of a model. Out: text of at most [`TOKENS_MAX`] tokens, and what of it is
//! charged. Not here: searching (`recall::grep`).

use crate::search::{
    self,
    grep::{join_file_cursor, split_file_cursor},
};
use alloc::{format, string::String};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{CLOSING_TOKENS, ToolInvocation, ToolReply, id_arguments, next_call_line, to_one_line};
use crate::storage::store_session::StoreSession;
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, JsonFields, JsonWriter},
    tokens,
};

/// Tokens of an answer: some twenty matches, of which the first few are mostly enough. With more
/// an agent asks again and more narrowly, which costs less than reading on.
const TOKENS_MAX: u32 = 1_500;

/// Arguments and what they are called in a query.
const QUERY_ARGUMENTS: [(&str, &str); 9] = [
    ("pattern", "pattern"),
    ("scope", "scope"),
    ("fileIds", "file_ids"),
    ("neighbours", "neighbours"),
    ("sort", "sort"),
    ("since", "since"),
    ("before", "before"),
    ("limit", "limit"),
    ("allConversations", "all_conversations"),
];

/// Bytes before a match in a file from which on its surroundings are read, and how many.
const BEFORE_BYTES: u64 = 1_000;
const AROUND_BYTES: u64 = 4_000;

/// Answers a search.
///
/// # Errors
///
/// As [`search::grep::searched`].
pub(super) fn grep(reader: &mut StoreSession<'_>, call: &ToolInvocation<'_>) -> Result<ToolReply> {
    let query = build_query(call);
    let answer = search::grep::grep_uncharged(
        reader,
        &call.target_conversation,
        &query,
        call.read_bounds(),
        call.now,
    )
    .map_err(name_start_argument)?;
    let found = answer.json;
    let mut fields = JsonFields::parse_argument("matches", &found)?;
    let mut total = fields.take_u64("total");
    let notes = fields.take_texts("notes").join(", ");
    let mut unscanned = read_resume_hint(&mut fields);
    let matches = fields.take_list("matches");
    let (mut lines, mut shown, mut first) = (String::new(), 0, None);
    let mut left = TOKENS_MAX - CLOSING_TOKENS;
    let mut charged = 0u32;
    for one in matches {
        let mut fields = JsonFields::new(&found, json::list_members(&found, one.span));
        let one = read_match(&found, &mut fields, call.conversation);
        let mut cost = 0;
        if first.is_none() {
            cost = tokens::estimate(&one.next_arguments.clone().end_object());
        }
        // Without its neighbours if it does not fit with them.
        let fits = [
            (&one.line, &one.neighbour_lines, one.tokens_with_neighbours),
            (&one.line, &String::new(), one.tokens_alone),
        ]
        .into_iter()
        .find_map(|(line, beside, charge)| {
            let text = [line.as_str(), beside.as_str()].concat();
            let cost = cost + tokens::estimate(&text);
            let with_it = charged.saturating_add(charge);
            (cost <= left && with_it <= call.tokens_left()).then_some((text, cost, with_it))
        });
        let Some((text, cost, with_it)) = fits else { break };
        first.get_or_insert((one.next_arguments, one.next_purpose));
        left -= cost;
        charged = with_it;
        lines.push_str(&text);
        shown += 1;
    }
    if let Some(start) = answer.cursors.get(shown) {
        // What is not shown comes next.
        (total, unscanned) = (int::to_u64(shown), resume_hint(start));
    }
    let mut out = format!("{BACKGROUND_LINE}\nMatches: {total}");
    if !notes.is_empty() {
        out.push_str(&format!(" ({notes})"));
    }
    if total > int::to_u64(shown) {
        out.push_str(&format!(
            "; cut to the first {shown}: more words, +\"words that must stand so\", scope, since or \
             before narrow them"
        ));
    }
    out.push_str(&unscanned);
    out.push('\n');
    match first {
        Some((arguments, what)) => out.push_str(&next_call_line(arguments, what)),
        None => out.push_str(no_match_hint(!unscanned.is_empty(), &notes)),
    }
    out.push_str(&lines);
    Ok(ToolReply { text: out, tokens: charged })
}

/// Builds the query of a call, under the names of the query.
fn build_query(call: &ToolInvocation<'_>) -> String {
    let arguments = &call.arguments;
    let mut query = JsonWriter::new_object();
    arguments.copy_into(&QUERY_ARGUMENTS, &mut query);
    query.add_flag("only", call.is_single_conversation());
    if let Some(mode) = arguments.get_text("mode") {
        query.add_text("mode", &mode.replace('_', "-"));
    }
    let byte = arguments.get_number("startByte");
    match (arguments.get_text("startId"), byte) {
        (Some(id), byte) => query.add_text("cursor", &join_file_cursor(id, byte.unwrap_or(0))),
        (None, Some(byte)) => query.add_number("start_byte", byte),
        (None, None) => {}
    }
    query.end_object()
}

/// Names the argument of the tool in an error about the cursor of a query.
fn name_start_argument(error: Error) -> Error {
    Error::new(error.code, error.message.replace("`cursor`", "`startId`"))
}

/// What to do when there is no match.
fn no_match_hint(goes_on: bool, notes: &str) -> &'static str {
    if goes_on {
        "Next: lcm_grep with the same arguments and that place\n"
    } else if notes.contains("partly-read") {
        // Not all of a very long text is searched by words.
        "Next: lcm_grep with \"mode\":\"regex\", which looks through very long texts, too, or with \
         other words\n"
    } else {
        "Next: lcm_grep with fewer or other words, or with \"allConversations\":true\n"
    }
}

/// What goes on with a search that ended before all was looked through.
fn read_resume_hint(fields: &mut JsonFields<'_>) -> String {
    fields.take_optional_text("cursor").map_or_else(String::new, |cursor| resume_hint(&cursor))
}

/// How the same search goes on at a cursor.
fn resume_hint(cursor: &str) -> String {
    let (id, byte) = split_file_cursor(cursor);
    let mut out = format!("; what is left is searched with \"startId\":\"{id}\"");
    if byte > 0 {
        out.push_str(&format!(",\"startByte\":{byte}"));
    }
    out
}

/// A match as a model is told of it.
struct ToolMatch {
    line: String,
    /// The messages beside it, a line each.
    neighbour_lines: String,
    /// What is charged for both, and for the match alone.
    tokens_with_neighbours: u32,
    tokens_alone: u32,
    /// What gives more of it, and what that is: all of it, or of a file what is around it.
    next_arguments: JsonWriter,
    next_purpose: &'static str,
}

/// Reads a match of an answer, which is found from the conversation that is named.
fn read_match(found: &str, fields: &mut JsonFields<'_>, here: &str) -> ToolMatch {
    let snippet = fields.take_text("snippet");
    let id = fields.take_text("id");
    let conversation = fields.take_text("conversation");
    let elsewhere = (conversation != here).then_some(conversation);
    let byte = fields.take_optional_u64("byte");
    let mut arguments = id_arguments(&id, elsewhere.as_deref());
    let mut what = "gives the whole of the first";
    if let Some(byte) = byte {
        what = "gives what is around the first";
        arguments.add_flag("expandFile", true);
        arguments.add_number("startByte", byte.saturating_sub(BEFORE_BYTES));
        arguments.add_number("expandFileMaxBytes", AROUND_BYTES);
    }
    let line = format_match_line(fields, &id, elsewhere.as_deref(), byte, &snippet);
    let alone = tokens::estimate(&snippet);
    let (mut beside, mut charged) = (String::new(), alone);
    for (side, key) in [("before", "neighbours_before"), ("after", "neighbours_after")] {
        for one in fields.take_list(key) {
            let mut fields = JsonFields::new(found, json::list_members(found, one.span));
            let snippet = fields.take_text("snippet");
            charged = charged.saturating_add(tokens::estimate(&snippet));
            let (id, role) = (fields.take_text("id"), fields.take_text("role"));
            beside.push_str(&format!("  {side} {id} {role}: {}\n", to_one_line(&snippet)));
        }
    }
    ToolMatch {
        line,
        neighbour_lines: beside,
        tokens_with_neighbours: charged,
        tokens_alone: alone,
        next_arguments: arguments,
        next_purpose: what,
    }
}

/// The line of a match.
fn format_match_line(
    fields: &mut JsonFields<'_>,
    id: &str,
    conversation: Option<&str>,
    byte: Option<u64>,
    snippet: &str,
) -> String {
    let mut line = format!("- {id} {}", fields.take_text("created_at"));
    if let Some(seq) = fields.take_optional_u64("seq") {
        line.push_str(&format!(" {} seq {seq}", fields.take_text("role")));
    }
    if let Some(byte) = byte {
        line.push_str(&format!(" line {} byte {byte}", fields.take_u64("line")));
    }
    if let Some(name) = fields.take_optional_text("name") {
        line.push_str(&format!(" {}", to_one_line(&name)));
    }
    if let Some(depth) = fields.take_optional_u64("depth") {
        line.push_str(&format!(" {} depth {depth}", fields.take_text("kind")));
    }
    if let Some(conversation) = conversation {
        line.push_str(&format!(" of {}", to_one_line(conversation)));
    }
    line.push_str(": ");
    line.push_str(&to_one_line(snippet));
    line.push('\n');
    line
}
