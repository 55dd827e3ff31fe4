//! `lcm_describe`: the properties of an id, and as much of its text as an answer holds.
//!
//! In: the arguments of a model. Out: text, with a next call if there is more to read. Not here:
//! the reading of an id ([`crate::recall::describe`]).

use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    invocation::{CLOSING_TOKENS, TOKENS_MAX, ToolInvocation, ToolReply},
    reply_lines::{UNDATED, build_id_arguments, format_next_call, take_message_time, to_one_line},
};
use crate::{
    recall,
    storage::{
        store_session::StoreSession,
        withdrawn_mark::{self, WITHDRAWN_MESSAGES},
    },
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, JsonFields, JsonWriter},
    tokens,
};

/// Maximum number of listed summaries of a subtree or conversation. The usual number of sources
/// fits.
const SUBTREE_MAX: usize = 12;
/// Maximum number of listed files.
const FILES_MAX: usize = 8;
/// Maximum number of listed ids of summaries that were derived from a summary.
const DERIVED_MAX: usize = 8;
/// Maximum shown tokens of the name of a conversation or file, and of the type of a file.
const NAME_TOKENS_MAX: u32 = 100;
/// Minimum tokens of a text that an answer has room for, so that every call makes progress. A grant
/// may allow fewer.
const PIECE_TOKENS_MIN: u32 = 200;
/// Maximum shown tokens of the findings.
const FINDINGS_TOKENS_MAX: u32 = 200;

/// Names of arguments, each with the name of its option.
const OPTION_ARGUMENTS: [(&str, &str); 5] = [
    ("expandFileMaxBytes", "bytes_max"),
    ("startLine", "start_line"),
    ("endLine", "end_line"),
    ("startByte", "start_byte"),
    ("endByte", "end_byte"),
];

/// Describes an id.
///
/// # Errors
///
/// The errors of [`recall::describe_uncharged`]; `invalid-input`: the range has both lines and
/// bytes, or its end is before its start.
pub(super) fn describe(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolReply> {
    let asked = &invocation.arguments;
    ensure_valid_range(invocation)?;
    let ranged = OPTION_ARGUMENTS.iter().any(|(name, _)| asked.get_number(name).is_some());
    let mut options = JsonWriter::new_object();
    options.add_flag("all_conversations", asked.is_set("allConversations"));
    // A range implies content.
    options.add_flag("include_content", asked.is_set("expandFile") || ranged);
    asked.copy_into(&OPTION_ARGUMENTS, &mut options);
    let options = options.end_object();
    let id = asked.get_text("id").unwrap_or_default();
    let (target, limits) = (invocation.target, invocation.read_limits());
    let found = recall::describe_uncharged(session, target, id, &options, limits)?.json;
    let mut fields = JsonFields::parse_argument("described", &found)?;
    let is_conversation = id == target.conversation;
    let id = fields.take_text("id");
    if is_conversation {
        return Ok(describe_conversation(&found, &mut fields, &id, invocation));
    }
    if id.starts_with("file_") {
        return Ok(describe_file(&mut fields, &id, invocation));
    }
    let mut out = String::from(BACKGROUND_LINE);
    out.push('\n');
    let text = if id.starts_with("msg_") {
        describe_message(&mut fields, &id, &mut out)
    } else if id.starts_with("sys_") {
        describe_system(&mut fields, &id, &mut out)
    } else {
        describe_summary(&found, &mut fields, &id, invocation, &mut out)
    };
    let tokens = write_text_range(&text, &id, invocation, &mut out);
    Ok(ToolReply { text: out, tokens })
}

/// Ensures that a range is valid; errors use the names of the tool's arguments.
fn ensure_valid_range(invocation: &ToolInvocation<'_>) -> Result<()> {
    let number = |name| invocation.arguments.get_number(name);
    let lines = [number("startLine"), number("endLine")];
    let bytes = [number("startByte"), number("endByte")];
    if lines.iter().any(Option::is_some) && bytes.iter().any(Option::is_some) {
        return Err(Error::invalid_input(
            "`startByte` and `endByte` must not be given with `startLine` or `endLine`",
        ));
    }
    for ([start, end], name) in [(lines, "endLine"), (bytes, "endByte")] {
        if end.is_some_and(|end| end < start.unwrap_or(0)) {
            return Err(Error::invalid_input(format_args!(
                "`{name}` must not be before the start of the range"
            )));
        }
    }
    Ok(())
}

/// Builds the arguments of a next call for an id, with the conversation arguments of this call.
fn build_follow_up<'a>(id: &str, invocation: &'a ToolInvocation<'a>) -> JsonWriter {
    let mut arguments = build_id_arguments(id, invocation.arguments.get_text("conversationId"));
    if invocation.arguments.is_set("allConversations") {
        arguments.add_flag("allConversations", true);
    }
    arguments
}

/// Formats the counts of a conversation, and the cost of the oldest summaries of its context.
fn describe_conversation(
    found: &str,
    fields: &mut JsonFields<'_>,
    id: &str,
    invocation: &ToolInvocation<'_>,
) -> ToolReply {
    let mut text = format!(
        "{BACKGROUND_LINE}\nConversation {}: {} messages of {} tokens, {}; {} summaries, context of \
         {} tokens\n",
        shorten_name(id),
        fields.take_u64("messages"),
        fields.take_u64("message_tokens"),
        format_times(fields),
        fields.take_u64("summaries"),
        fields.take_u64("context_tokens"),
    );
    text.push_str(&format_withdrawn(fields));
    let rows = fields.take_list("subtree");
    let Some(first) = rows.first() else {
        text.push_str("Its context has no summary.\n");
        return ToolReply { text, tokens: 0 };
    };
    text.push_str("What is older is summarised, oldest first. ");
    write_subtree(found, &rows, invocation, &mut text);
    let first = JsonFields::new(found, json::list_members(found, first.span)).take_text("id");
    text.push_str(&format_next_call(
        build_follow_up(&first, invocation),
        "gives the oldest summary",
    ));
    ToolReply { text, tokens: 0 }
}

/// Formats the times of the earliest and the latest message; `undated` if one has no time.
fn format_times(fields: &mut JsonFields<'_>) -> String {
    let times = ["earliest_at", "latest_at"].map(|key| fields.take_optional_text(key));
    match times {
        [Some(earliest), Some(latest)] => format!("{earliest} to {latest}"),
        _ => String::from(UNDATED),
    }
}

/// Formats the number of set-aside messages and the number of other forms of messages; empty: both
/// numbers are 0.
fn format_withdrawn(fields: &mut JsonFields<'_>) -> String {
    let Some((counts, _)) = fields.take_any(WITHDRAWN_MESSAGES) else { return String::new() };
    let Ok(mut counts) = JsonFields::parse_argument(WITHDRAWN_MESSAGES, &counts) else {
        return String::new();
    };
    match ["set_aside", "revisions"].map(|key| counts.take_u64(key)) {
        [0, 0] => String::new(),
        [set_aside, forms] => format!(
            "{set_aside} of its messages are set aside: the conversation went another way; {forms} \
             are other forms of messages that stand\n"
        ),
    }
}

/// Writes the properties of a message and returns its text.
fn describe_message(fields: &mut JsonFields<'_>, id: &str, out: &mut String) -> String {
    out.push_str(&format!(
        "Message {id}: {}, seq {}, {}, {} tokens, {}{}\n",
        fields.take_text("role"),
        fields.take_u64("seq"),
        take_message_time(fields),
        fields.take_u64("tokens"),
        fields.take_text("trust"),
        withdrawn_mark::take_note(fields),
    ));
    fields.take_text("raw")
}

/// Writes the properties of a version of the system messages and returns its text.
fn describe_system(fields: &mut JsonFields<'_>, id: &str, out: &mut String) -> String {
    let newest = if fields.take_flag("newest") { ", the newest" } else { "" };
    out.push_str(&format!(
        "System messages {id}: version {}{newest}, {}, {} tokens\n",
        fields.take_u64("version"),
        fields.take_text("created_at"),
        fields.take_u64("tokens"),
    ));
    if let Some(previous) = fields.take_optional_text("previous_id") {
        out.push_str(&format!("The version before: {previous}\n"));
    }
    fields.take_text("text")
}

/// Writes the properties, sources and cost of a summary and returns its text.
fn describe_summary(
    found: &str,
    fields: &mut JsonFields<'_>,
    id: &str,
    invocation: &ToolInvocation<'_>,
    out: &mut String,
) -> String {
    let capped = if fields.take_flag("capped") { ", cut to its limit" } else { "" };
    out.push_str(&format!(
        "Summary {id}: {}, depth {}, level {}{capped}, {}; messages {} to {}, {}{}\n",
        fields.take_text("kind"),
        fields.take_u64("depth"),
        fields.take_text("level"),
        fields.take_text("trust"),
        fields.take_u64("seq_first"),
        fields.take_u64("seq_last"),
        format_times(fields),
        withdrawn_mark::take_note(fields),
    ));
    let derived = fields.take_texts("derived_ids");
    if !derived.is_empty() {
        let (listed, cut) = list_first(&derived, DERIVED_MAX);
        out.push_str(&format!("Part of {}{cut}\n", listed.join(", ")));
    }
    let files = fields.take_texts("file_ids");
    if !files.is_empty() {
        let (listed, cut) = list_first(&files, FILES_MAX);
        out.push_str(&format!("Files: {}{cut}\n", listed.join(", ")));
    }
    let findings = fields.take_texts("findings");
    if !findings.is_empty() {
        let findings = to_one_line(&findings.join("; "));
        let shown = tokens::truncate_to_tokens(&findings, FINDINGS_TOKENS_MAX);
        let cut = if shown.len() < findings.len() { " (cut)" } else { "" };
        out.push_str(&format!("Doubts, found by a check: {shown}{cut}\n"));
    }
    let sources = fields.take_texts("source_ids");
    let ids = fields.take_texts("message_ids");
    write_subtree(found, &fields.take_list("subtree"), invocation, out);
    if let Some(first) = ids.first() {
        out.push_str(&format!(
            "Made from these messages, from {first} on; the last 10 hex digits of an id are its \
             seq\n"
        ));
    }
    let (source, what) = match (sources.first(), ids.first()) {
        (Some(source), _) => (source, "gives the first source"),
        (None, Some(message)) => (message, "gives the first message"),
        (None, None) => return fields.take_text("text"),
    };
    out.push_str(&format_next_call(build_follow_up(source, invocation), what));
    fields.take_text("text")
}

/// Returns the first `max` elements of a list, and a note on the number of the others.
fn list_first(list: &[String], max: usize) -> (Vec<&str>, String) {
    let listed: Vec<&str> = list.iter().take(max).map(String::as_str).collect();
    let more = list.len() - listed.len();
    let note = if more > 0 { format!(" and {more} more") } else { String::new() };
    (listed, note)
}

/// Writes the cost of each of the first [`SUBTREE_MAX`] summaries of a list.
fn write_subtree(
    found: &str,
    rows: &[json::JsonValue],
    invocation: &ToolInvocation<'_>,
    out: &mut String,
) {
    out.push_str("Tokens: of a summary alone, with the summaries under it, of all its messages\n");
    for row in rows.iter().take(SUBTREE_MAX) {
        let mut fields = JsonFields::new(found, json::list_members(found, row.span));
        let subtree_tokens = fields.take_u64("subtree_tokens");
        let fits = match invocation.arguments.get_number("tokenCap") {
            Some(cap) if subtree_tokens <= cap => ", fits",
            Some(_) => ", over tokenCap",
            None => "",
        };
        out.push_str(&format!(
            "- {} depth {}: {}, {subtree_tokens}, {}{fits}\n",
            fields.take_text("id"),
            fields.take_u64("depth"),
            fields.take_u64("tokens"),
            fields.take_u64("message_tokens"),
        ));
    }
    if rows.len() > SUBTREE_MAX {
        out.push_str("- and more: describe one of these\n");
    }
}

/// Writes as much of a text from `startByte` on as fits the answer and the grant; returns the
/// tokens of the written text.
fn write_text_range(
    text: &str,
    id: &str,
    invocation: &ToolInvocation<'_>,
    out: &mut String,
) -> u32 {
    let closing = CLOSING_TOKENS + tokens::estimate(&build_follow_up(id, invocation).end_object());
    let left = TOKENS_MAX.saturating_sub(tokens::estimate(out) + closing).max(PIECE_TOKENS_MIN);
    let left = left.min(invocation.tokens_left());
    let mut start =
        int::to_usize(invocation.arguments.get_number("startByte").unwrap_or(0)).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = text.get(start..).unwrap_or_default();
    let shown = tokens::truncate_to_tokens(rest, left);
    let end = start + shown.len();
    if end < text.len() {
        let mut arguments = build_follow_up(id, invocation);
        arguments.add_number("startByte", int::to_u64(end));
        out.push_str(&format_next_call(arguments, "goes on where the text was cut"));
    }
    out.push_str(&format!("Text, bytes {start} to {end} of {}:\n{shown}", text.len()));
    tokens::estimate(shown)
}

/// Shortens a name to [`NAME_TOKENS_MAX`] tokens, on one line.
fn shorten_name(name: &str) -> String {
    to_one_line(tokens::truncate_to_tokens(name, NAME_TOKENS_MAX))
}

/// Formats the properties of a file, and the requested content or else its outline.
fn describe_file(
    fields: &mut JsonFields<'_>,
    id: &str,
    invocation: &ToolInvocation<'_>,
) -> ToolReply {
    let name = fields.take_optional_text("name").unwrap_or_else(|| String::from("unnamed"));
    let bytes = fields.take_u64("bytes");
    let mut text = format!(
        "{BACKGROUND_LINE}\nFile {id}: {}, {}, {}, {bytes} bytes, {} lines, from message {} (seq {}){}\n",
        shorten_name(&name),
        fields.take_text("kind"),
        shorten_name(&fields.take_text("mime")),
        fields.take_u64("lines"),
        fields.take_text("message_id"),
        fields.take_u64("seq"),
        withdrawn_mark::take_note(fields),
    );
    let mut arguments = build_follow_up(id, invocation);
    arguments.add_flag("expandFile", true);
    let Some(content) = fields.take_optional_text("content") else {
        text.push_str(&format_next_call(arguments, "gives the content"));
        text.push_str("Outline:\n");
        let exploration = fields.take_text("exploration");
        let exploration = tokens::truncate_to_tokens(&exploration, invocation.tokens_left());
        text.push_str(exploration);
        return ToolReply { text, tokens: tokens::estimate(exploration) };
    };
    let (start, end) = (fields.take_u64("start_byte"), fields.take_u64("end_byte"));
    let part = tokens::truncate_to_tokens(&content, invocation.tokens_left());
    let is_cut = part.len() < content.len();
    let end = if is_cut { start + int::to_u64(part.len()) } else { end };
    if is_cut || fields.take_flag("truncated") {
        arguments.add_number("startByte", end);
        text.push_str(&format_next_call(arguments, "goes on where the content was cut"));
    }
    text.push_str(&format!("Content, bytes {start} to {end} of {bytes}:\n{part}"));
    ToolReply { text, tokens: tokens::estimate(part) }
}
