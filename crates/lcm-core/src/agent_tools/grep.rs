//! `lcm_grep`: matches as lines.
//!
//! In: the arguments of a model. Out: text of at most [`TOKENS_MAX`] tokens, and what of it is
//! charged. Not here: searching (`recall::grep`).

use crate::search;
use alloc::{format, string::String};
use lcm_text::message::trust::BACKGROUND;

use super::{CLOSING_TOKENS, Call, Told, about, next, one_line};
use crate::storage::store_session::Reader;
use lcm_text::base::{
    error::Result,
    int,
    json::{self, Fields, Writer},
    tokens,
};

/// Tokens of an answer: some twenty matches, of which the first few are mostly enough. With more
/// an agent asks again and more narrowly, which costs less than reading on.
const TOKENS_MAX: u32 = 1_500;

/// Arguments and what they are called in a query.
const QUERY: [(&str, &str); 12] = [
    ("pattern", "pattern"),
    ("mode", "mode"),
    ("scope", "scope"),
    ("fileIds", "file_ids"),
    ("startId", "start_id"),
    ("startByte", "start_byte"),
    ("neighbours", "neighbours"),
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
/// As [`search::grep::searched`].
pub(super) fn grep(reader: &mut Reader<'_>, call: &Call<'_>) -> Result<Told> {
    let mut query = Writer::object();
    call.arguments.copy(&QUERY, &mut query);
    query.flag("only", call.only());
    let query = query.end_object();
    let answer = search::grep::searched(reader, &call.place, &query, call.within(), call.now)?;
    let found = answer.json;
    let mut fields = Fields::of_argument("matches", &found)?;
    let mut total = fields.number("total");
    let notes = fields.texts("notes").join(", ");
    let mut unscanned = unscanned(&mut fields)?;
    let matches = fields.list("matches");
    let (mut lines, mut shown, mut first) = (String::new(), 0, None);
    let mut left = TOKENS_MAX - CLOSING_TOKENS;
    let mut charged = 0u32;
    for one in matches {
        let mut fields = Fields::new(&found, json::members(&found, one.span));
        let one = one_match(&found, &mut fields, call.conversation);
        let mut cost = 0;
        if first.is_none() {
            cost = tokens::estimate(&one.arguments.clone().end_object());
        }
        // Without its neighbours if it does not fit with them.
        let fits = [(&one.line, &one.beside, one.charged), (&one.line, &String::new(), one.alone)]
            .into_iter()
            .find_map(|(line, beside, charge)| {
                let text = [line.as_str(), beside.as_str()].concat();
                let cost = cost + tokens::estimate(&text);
                let with_it = charged.saturating_add(charge);
                (cost <= left && with_it <= call.left()).then_some((text, cost, with_it))
            });
        let Some((text, cost, with_it)) = fits else { break };
        first.get_or_insert((one.arguments, one.what));
        left -= cost;
        charged = with_it;
        lines.push_str(&text);
        shown += 1;
    }
    if let Some(start) = answer.starts.get(shown) {
        // What is not shown comes next.
        (total, unscanned) = (int::to_u64(shown), goes_on(start, 0));
    }
    let mut out = format!("{BACKGROUND}\nMatches: {total}");
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
        Some((arguments, what)) => out.push_str(&next(arguments, what)),
        None => out.push_str(otherwise(!unscanned.is_empty(), &notes)),
    }
    out.push_str(&lines);
    Ok(Told { text: out, tokens: charged })
}

/// What to do when there is no match.
fn otherwise(goes_on: bool, notes: &str) -> &'static str {
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
fn unscanned(fields: &mut Fields<'_>) -> Result<String> {
    let Some((from, _)) = fields.any("unscanned_from") else { return Ok(String::new()) };
    let mut fields = Fields::of_argument("unscanned_from", &from)?;
    Ok(goes_on(&fields.text("id"), fields.number("byte")))
}

/// How the same search goes on at a place.
fn goes_on(id: &str, byte: u64) -> String {
    let mut out = format!("; what is left is searched with \"startId\":\"{id}\"");
    if byte > 0 {
        out.push_str(&format!(",\"startByte\":{byte}"));
    }
    out
}

/// A match as a model is told of it.
struct Match {
    line: String,
    /// The messages beside it, a line each.
    beside: String,
    /// What is charged for both, and for the match alone.
    charged: u32,
    alone: u32,
    /// What gives more of it, and what that is: all of it, or of a file what is around it.
    arguments: Writer,
    what: &'static str,
}

/// Reads a match of an answer, which is found from the conversation that is named.
fn one_match(found: &str, fields: &mut Fields<'_>, here: &str) -> Match {
    let snippet = fields.text("snippet");
    let id = fields.text("id");
    let conversation = fields.text("conversation");
    let elsewhere = (conversation != here).then_some(conversation);
    let byte = fields.number_or_none("byte");
    let mut arguments = about(&id, elsewhere.as_deref());
    let mut what = "gives the whole of the first";
    if let Some(byte) = byte {
        what = "gives what is around the first";
        arguments.flag("expandFile", true);
        arguments.number("startByte", byte.saturating_sub(BEFORE_BYTES));
        arguments.number("expandFileMaxBytes", AROUND_BYTES);
    }
    let line = line(fields, &id, elsewhere.as_deref(), byte, &snippet);
    let alone = tokens::estimate(&snippet);
    let (mut beside, mut charged) = (String::new(), alone);
    for side in ["before", "after"] {
        for one in fields.list(side) {
            let mut fields = Fields::new(found, json::members(found, one.span));
            let snippet = fields.text("snippet");
            charged = charged.saturating_add(tokens::estimate(&snippet));
            let (id, role) = (fields.text("id"), fields.text("role"));
            beside.push_str(&format!("  {side} {id} {role}: {}\n", one_line(&snippet)));
        }
    }
    Match { line, beside, charged, alone, arguments, what }
}

/// The line of a match.
fn line(
    fields: &mut Fields<'_>,
    id: &str,
    conversation: Option<&str>,
    byte: Option<u64>,
    snippet: &str,
) -> String {
    let mut line = format!("- {id} {}", fields.text("created_at"));
    if let Some(seq) = fields.number_or_none("seq") {
        line.push_str(&format!(" {} seq {seq}", fields.text("role")));
    }
    if let Some(byte) = byte {
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
