//! `lcm_grep`: matches as lines.
//!
//! In: the arguments of a model. Out: text of at most [`TOKENS_MAX`] tokens, and the tokens to
//! charge. Not here: the search ([`crate::search::grep`]).

use crate::search::grep::{self, OwnSearches};
use alloc::{format, string::String};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    invocation::{CLOSING_TOKENS, ToolInvocation, ToolReply},
    reply_lines::{
        build_id_arguments, format_next_call, rename_fields, take_message_time, to_one_line,
    },
};
use crate::storage::{store_session::StoreSession, withdrawn_mark};
use lcm_text::{
    base::{
        error::Result,
        int,
        json::{self, JsonFields, JsonWriter},
        tokens,
    },
    types::api::ToolScope,
};

/// Maximum tokens of an answer: about twenty matches, of which the first few usually suffice. A
/// second, narrower search costs less than a longer answer.
const TOKENS_MAX: u32 = 1_500;

/// Names of arguments, and their names in a query.
const QUERY_ARGUMENTS: [(&str, &str); 11] = [
    ("pattern", "pattern"),
    ("scope", "scope"),
    ("fileIds", "file_ids"),
    ("startId", "cursor"),
    ("startByte", "start_byte"),
    ("neighbours", "neighbours"),
    ("sort", "sort"),
    ("since", "since"),
    ("before", "before"),
    ("limit", "limit"),
    ("allConversations", "all_conversations"),
];

/// Bytes from the beginning of an excerpt to the match in a file.
const BEFORE_BYTES: u64 = 1_000;
/// Maximum bytes of an excerpt around a match in a file.
const AROUND_BYTES: u64 = 4_000;

/// Searches messages, summaries and files.
///
/// # Errors
///
/// The errors of [`grep::grep_uncharged`], with the names of the tool's arguments.
pub(super) fn grep(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolReply> {
    let query = build_query(invocation);
    let limits = invocation.read_limits();
    let (target, own_searches) = (invocation.target, OwnSearches::Last);
    let answer = grep::grep_uncharged(session, target, &query, limits, own_searches)
        .map_err(|error| rename_fields(error, &QUERY_ARGUMENTS))?;
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
        let one = read_match(&found, &mut fields, invocation);
        let mut cost = 0;
        if first.is_none() {
            cost = tokens::estimate(&one.next_arguments.clone().end_object());
        }
        // A match that does not fit with its neighbours is shown without them.
        let fits = [
            (&one.line, &one.neighbour_lines, one.tokens_with_neighbours),
            (&one.line, &String::new(), one.tokens_alone),
        ]
        .into_iter()
        .find_map(|(line, beside, charge)| {
            let text = [line.as_str(), beside.as_str()].concat();
            let cost = cost + tokens::estimate(&text);
            let with_it = charged.saturating_add(charge);
            (cost <= left && with_it <= invocation.tokens_left()).then_some((text, cost, with_it))
        });
        let Some((text, cost, with_it)) = fits else { break };
        first.get_or_insert((one.next_arguments, one.next_purpose));
        left -= cost;
        charged = with_it;
        lines.push_str(&text);
        shown += 1;
    }
    if let Some(start) = answer.cursors.get(shown) {
        // The next search begins at the first match that is not shown.
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
        Some((arguments, what)) => out.push_str(&format_next_call(arguments, what)),
        None => out.push_str(no_match_hint(!unscanned.is_empty(), &notes, invocation)),
    }
    out.push_str(&lines);
    Ok(ToolReply { text: out, tokens: charged })
}

/// Builds the query of a call.
fn build_query(invocation: &ToolInvocation<'_>) -> String {
    let mut query = JsonWriter::new_object();
    invocation.arguments.copy_into(&QUERY_ARGUMENTS, &mut query);
    if let Some(mode) = invocation.arguments.get_text("mode") {
        query.add_text("mode", &mode.replace('_', "-"));
    }
    query.add_flag("only", invocation.is_single_conversation());
    query.end_object()
}

/// Returns the hint for a search without a shown match. `goes_on`: the search is not complete.
fn no_match_hint(goes_on: bool, notes: &str, invocation: &ToolInvocation<'_>) -> &'static str {
    if goes_on {
        "Next: lcm_grep with the same arguments and that place\n"
    } else if notes.contains("partly-read") {
        // A very long text is indexed only in part; a regular expression reads all of it.
        "Next: lcm_grep with \"mode\":\"regex\", which looks through very long texts, too, or with \
         other words\n"
    } else if ["since", "before"].iter().any(|key| invocation.arguments.get_text(key).is_some()) {
        "Next: lcm_grep without since and before, which leave out messages without a time\n"
    } else if invocation.scope == ToolScope::Conversation {
        "Next: lcm_grep with fewer or other words\n"
    } else {
        "Next: lcm_grep with fewer or other words, or with \"allConversations\":true\n"
    }
}

/// Reads the cursor of an incomplete search and formats its hint; empty: the search is complete.
fn read_resume_hint(fields: &mut JsonFields<'_>) -> String {
    fields.take_optional_text("cursor").map_or_else(String::new, |cursor| resume_hint(&cursor))
}

/// Formats the hint that resumes the same search at a cursor.
fn resume_hint(cursor: &str) -> String {
    format!("; what is left is searched with \"startId\":\"{cursor}\"")
}

/// A match, as shown to the model.
struct ToolMatch {
    line: String,
    /// Neighbouring messages, one line each.
    neighbour_lines: String,
    /// Tokens of stored text of the match and its neighbours, which a grant is charged.
    tokens_with_neighbours: u32,
    /// Tokens of stored text of the match alone.
    tokens_alone: u32,
    /// Arguments of the call that shows the whole text, or the surroundings of a match in a file.
    next_arguments: JsonWriter,
    /// Purpose of the call with `next_arguments`.
    next_purpose: &'static str,
}

/// Reads a match of a search.
fn read_match(
    found: &str,
    fields: &mut JsonFields<'_>,
    invocation: &ToolInvocation<'_>,
) -> ToolMatch {
    let snippet = fields.take_text("snippet");
    let id = fields.take_text("id");
    let conversation = fields.take_text("conversation");
    let is_elsewhere = conversation != invocation.call.conversation;
    let elsewhere = Some(conversation.as_str()).filter(|_| is_elsewhere);
    let byte = fields.take_optional_u64("byte");
    let mut arguments = build_id_arguments(&id, invocation.named_elsewhere(&conversation));
    let mut what = "gives the whole of the first";
    if let Some(byte) = byte {
        what = "gives what is around the first";
        arguments.add_flag("expandFile", true);
        arguments.add_number("startByte", byte.saturating_sub(BEFORE_BYTES));
        arguments.add_number("expandFileMaxBytes", AROUND_BYTES);
    }
    let line = format_match_line(fields, &id, elsewhere, byte, &snippet);
    let alone = tokens::estimate(&snippet);
    let (mut beside, mut charged) = (String::new(), alone);
    for (side, key) in [("before", "neighbours_before"), ("after", "neighbours_after")] {
        for one in fields.take_list(key) {
            let mut fields = JsonFields::new(found, json::list_members(found, one.span));
            let snippet = fields.take_text("snippet");
            charged = charged.saturating_add(tokens::estimate(&snippet));
            let (id, role) = (fields.take_text("id"), fields.take_text("role"));
            let note = withdrawn_mark::take_note(&mut fields);
            beside.push_str(&format!("  {side} {id} {role}{note}: {}\n", to_one_line(&snippet)));
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

/// Formats the line of a match. `conversation`: only for a match in another conversation; `byte`:
/// only for a match in a file.
fn format_match_line(
    fields: &mut JsonFields<'_>,
    id: &str,
    conversation: Option<&str>,
    byte: Option<u64>,
    snippet: &str,
) -> String {
    let mut line = format!("- {id} {}", take_message_time(fields));
    if let Some(seq) = fields.take_optional_u64("seq") {
        line.push_str(&format!(" {} seq {seq}", fields.take_text("role")));
    }
    if id.starts_with("sys_") {
        line.push_str(" system");
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
    line.push_str(&withdrawn_mark::take_note(fields));
    line.push_str(": ");
    line.push_str(&to_one_line(snippet));
    line.push('\n');
    line
}
