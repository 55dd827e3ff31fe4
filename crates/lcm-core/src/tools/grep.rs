//! `lcm_grep`: matches as lines.

use alloc::{format, string::String};

use super::{BACKGROUND, CLOSING_TOKENS, Call, Told, about, next, one_line};
use crate::{
    error::Result,
    json::{self, Fields, Writer},
    num,
    reader::Reader,
    recall, tokens,
};

/// Tokens of an answer: some twenty matches, of which the first few are mostly enough. With more
/// an agent asks again and more narrowly, which costs less than reading on.
const TOKENS_MAX: u32 = 1_500;

/// Arguments and what they are called in a query.
const QUERY: [(&str, &str); 10] = [
    ("pattern", "pattern"),
    ("mode", "mode"),
    ("scope", "scope"),
    ("fileIds", "file_ids"),
    ("startByte", "start_byte"),
    ("sort", "sort"),
    ("since", "since"),
    ("before", "before"),
    ("limit", "limit"),
    ("allConversations", "all"),
];

/// Bytes before a match in a file from which on its surroundings are read, and how many.
const BEFORE_BYTES: u64 = 1_000;
const AROUND_BYTES: u64 = 4_000;

/// Answers a search.
///
/// # Errors
///
/// As [`recall::searched`].
pub(super) fn grep(reader: &mut Reader<'_>, call: &Call<'_>) -> Result<Told> {
    let mut query = Writer::object();
    call.arguments.copy(&QUERY, &mut query);
    // Who names a conversation means it alone.
    query.flag("only", call.arguments.text("conversationId").is_some());
    let query = query.end_object();
    let found = recall::searched(reader, &call.place, &query, call.within(), call.now)?.json;
    let mut fields = Fields::of_argument("matches", &found)?;
    let total = fields.number("total");
    let notes = fields.texts("notes").join(", ");
    let unscanned = unscanned(&mut fields)?;
    let matches = fields.list("matches");
    let (mut lines, mut shown, mut first) = (String::new(), 0, None);
    let mut left = TOKENS_MAX - CLOSING_TOKENS;
    let mut charged = 0u32;
    for one in matches {
        let mut fields = Fields::new(&found, json::members(&found, one.span));
        let snippet = fields.text("snippet");
        let with_it = charged.saturating_add(tokens::estimate(&snippet));
        if with_it > call.left() {
            break;
        }
        let id = fields.text("id");
        let conversation = fields.text("conversation");
        let elsewhere = (conversation != call.conversation).then_some(conversation);
        let line = line(&mut fields, &id, elsewhere.as_deref(), &snippet);
        let mut cost = tokens::estimate(&line);
        if first.is_none() {
            let arguments = whole(&mut fields, &id, elsewhere.as_deref());
            cost += tokens::estimate(&arguments.clone().end_object());
            first = Some(arguments);
        }
        if cost > left {
            break;
        }
        left -= cost;
        charged = with_it;
        lines.push_str(&line);
        shown += 1;
    }
    let mut out = format!("{BACKGROUND}\nMatches: {total}");
    if !notes.is_empty() {
        out.push_str(&format!(" ({notes})"));
    }
    if total > num::to_u64(shown) {
        out.push_str(&format!(
            "; cut to the first {shown}: more words, +\"words that must stand so\", scope, since or \
             before narrow them"
        ));
    }
    out.push_str(&unscanned);
    out.push('\n');
    match first {
        Some(arguments) => out.push_str(&next(arguments, "gives more of the first")),
        None => out.push_str(
            "Next: lcm_grep with fewer or other words, or with \"allConversations\":true\n",
        ),
    }
    out.push_str(&lines);
    Ok(Told { text: out, tokens: charged })
}

/// What goes on with a search that ended before all was looked through.
fn unscanned(fields: &mut Fields<'_>) -> Result<String> {
    let mut out = String::new();
    if let Some((from, _)) = fields.any("unscanned_from") {
        let mut fields = Fields::of_argument("unscanned_from", &from)?;
        let (id, byte) = (fields.text("id"), fields.number("byte"));
        out.push_str(&format!(
            "; the rest of {id} is searched with \"fileIds\":[\"{id}\"],\"startByte\":{byte}"
        ));
    }
    if let Some(before) = fields.text_or_none("unscanned_before") {
        out.push_str(&format!("; what is older is found with \"before\":\"{before}\""));
    }
    Ok(out)
}

/// The arguments that give more of a match: all of it, or of a file what is around it.
fn whole(fields: &mut Fields<'_>, id: &str, conversation: Option<&str>) -> Writer {
    let mut arguments = about(id, conversation);
    if let Some(byte) = fields.number_or_none("byte") {
        arguments.flag("expandFile", true);
        arguments.number("startByte", byte.saturating_sub(BEFORE_BYTES));
        arguments.number("expandFileMaxBytes", AROUND_BYTES);
    }
    arguments
}

/// A match.
fn line(fields: &mut Fields<'_>, id: &str, conversation: Option<&str>, snippet: &str) -> String {
    let mut line = format!("- {id} {}", fields.text("created_at"));
    if let Some(seq) = fields.number_or_none("seq") {
        line.push_str(&format!(" {} seq {seq}", fields.text("role")));
    }
    if let Some(byte) = fields.number_or_none("byte") {
        line.push_str(&format!(" line {} byte {byte}", fields.number("line")));
    }
    if let Some(name) = fields.text_or_none("name") {
        line.push_str(&format!(" {}", one_line(&name)));
    }
    if let Some(depth) = fields.number_or_none("depth") {
        line.push_str(&format!(" {} depth {depth}", fields.text("kind")));
    }
    if let Some(conversation) = conversation {
        line.push_str(&format!(" of {}", one_line(conversation)));
    }
    line.push_str(": ");
    line.push_str(&one_line(snippet));
    line.push('\n');
    line
}
