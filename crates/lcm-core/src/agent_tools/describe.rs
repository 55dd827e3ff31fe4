//! `lcm_describe`: what an id stands for, and of its text as much as an answer holds.
//!
//! In: the arguments of a model. Out: text with the call that reads on. Not here: what is known of
//! an id (`recall::describe`).

use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND;

use super::{CLOSING_TOKENS, Call, TOKENS_MAX, Told, about, next, one_line};
use crate::{recall, storage::store_session::Reader};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, Fields, Writer},
    tokens,
};

/// Summaries of a subtree that are listed. Of a usual run of sources all are.
const SUBTREE_MAX: usize = 12;
/// Files that are listed.
const FILES_MAX: usize = 8;
/// Summaries that one was taken into which are listed.
const DERIVED_MAX: usize = 8;
/// Tokens of the name of a file that are shown, and of its type.
const NAME_TOKENS_MAX: u32 = 100;
/// Tokens of a text that are shown in any case, so that every call gets further.
const PIECE_TOKENS_MIN: u32 = 200;
/// Tokens of the findings that are listed.
const FINDINGS_TOKENS_MAX: u32 = 200;

/// Arguments and what they are called in options.
const OPTIONS: [(&str, &str); 5] = [
    ("expandFileMaxBytes", "bytes_max"),
    ("startLine", "start_line"),
    ("endLine", "end_line"),
    ("startByte", "start_byte"),
    ("endByte", "end_byte"),
];

/// Answers what an id stands for.
///
/// # Errors
///
/// As [`recall::described`], and `invalid-input`: a range that is none.
pub(super) fn describe(reader: &mut Reader<'_>, call: &Call<'_>) -> Result<Told> {
    let asked = &call.arguments;
    range(call)?;
    let ranged = OPTIONS.iter().any(|(name, _)| asked.number(name).is_some());
    let mut options = Writer::object();
    // Who names a range wants to read it.
    options.flag("all", asked.flag("allConversations"));
    options.flag("content", asked.flag("expandFile") || ranged);
    asked.copy(&OPTIONS, &mut options);
    let options = options.end_object();
    let id = asked.text("id").unwrap_or_default();
    let found = recall::described(reader, &call.place, id, &options, call.within())?.json;
    let mut fields = Fields::of_argument("described", &found)?;
    let is_conversation = id == call.place;
    let id = fields.text("id");
    if is_conversation {
        return Ok(conversation(&found, &mut fields, &id, call));
    }
    if id.starts_with("file_") {
        return Ok(file(&mut fields, &id, call));
    }
    let mut out = String::from(BACKGROUND);
    out.push('\n');
    let text = if id.starts_with("msg_") {
        message(&mut fields, &id, &mut out)
    } else {
        summary(&found, &mut fields, &id, call, &mut out)
    };
    let tokens = piece(&text, &id, call, &mut out);
    Ok(Told { text: out, tokens })
}

/// Refuses a range that is none, by the names that the model knows.
fn range(call: &Call<'_>) -> Result<()> {
    let number = |name| call.arguments.number(name);
    let lines = [number("startLine"), number("endLine")];
    let bytes = [number("startByte"), number("endByte")];
    if lines.iter().any(Option::is_some) && bytes.iter().any(Option::is_some) {
        return Err(Error::invalid(
            "`startByte` and `endByte` must not be given with `startLine` or `endLine`",
        ));
    }
    for ([start, end], name) in [(lines, "endLine"), (bytes, "endByte")] {
        if end.is_some_and(|end| end < start.unwrap_or(0)) {
            return Err(Error::invalid(format_args!("`{name}` must not lie before its start")));
        }
    }
    Ok(())
}

/// Where a call that goes on finds the id: where this one did.
fn on<'a>(id: &str, call: &'a Call<'a>) -> Writer {
    let mut arguments = about(id, call.arguments.text("conversationId"));
    if call.arguments.flag("allConversations") {
        arguments.flag("allConversations", true);
    }
    arguments
}

/// What a conversation has, and the summaries of its context with what reading them costs.
fn conversation(found: &str, fields: &mut Fields<'_>, id: &str, call: &Call<'_>) -> Told {
    let mut text = format!(
        "{BACKGROUND}\nConversation {}: {} messages of {} tokens, {} to {}; {} summaries, context \
         of {} tokens\n",
        shown(id),
        fields.number("messages"),
        fields.number("message_tokens"),
        fields.text_or_none("earliest_at").unwrap_or_else(|| String::from("never")),
        fields.text_or_none("latest_at").unwrap_or_else(|| String::from("never")),
        fields.number("summaries"),
        fields.number("context_tokens"),
    );
    let rows = fields.list("subtree");
    let Some(first) = rows.first() else {
        text.push_str("No summary stands in its context.\n");
        return Told { text, tokens: 0 };
    };
    text.push_str("What is older is summarised, oldest first. ");
    subtree(found, &rows, call, &mut text);
    let first = Fields::new(found, json::members(found, first.span)).text("id");
    text.push_str(&next(on(&first, call), "gives the oldest summary"));
    Told { text, tokens: 0 }
}

/// The words of a message, after what is known of it.
fn message(fields: &mut Fields<'_>, id: &str, out: &mut String) -> String {
    out.push_str(&format!(
        "Message {id}: {}, seq {}, {}, {} tokens, {}\n",
        fields.text("role"),
        fields.number("seq"),
        fields.text("created_at"),
        fields.number("tokens"),
        fields.text("trust"),
    ));
    fields.text("raw")
}

/// The text of a summary, after what it was made from and what reading that costs.
fn summary(
    found: &str,
    fields: &mut Fields<'_>,
    id: &str,
    call: &Call<'_>,
    out: &mut String,
) -> String {
    let capped = if fields.flag("capped") { ", cut to its limit" } else { "" };
    out.push_str(&format!(
        "Summary {id}: {}, depth {}, level {}{capped}, {}; messages {} to {}, {} to {}\n",
        fields.text("kind"),
        fields.number("depth"),
        fields.text("level"),
        fields.text("trust"),
        fields.number("seq_first"),
        fields.number("seq_last"),
        fields.text("earliest_at"),
        fields.text("latest_at"),
    ));
    let derived = fields.texts("derived");
    if !derived.is_empty() {
        let (listed, cut) = cut(&derived, DERIVED_MAX);
        out.push_str(&format!("Part of {}{cut}\n", listed.join(", ")));
    }
    let files = fields.texts("file_ids");
    if !files.is_empty() {
        let (listed, cut) = cut(&files, FILES_MAX);
        out.push_str(&format!("Files: {}{cut}\n", listed.join(", ")));
    }
    let findings = fields.texts("findings");
    if !findings.is_empty() {
        let findings = one_line(&findings.join("; "));
        let shown = tokens::truncate(&findings, FINDINGS_TOKENS_MAX);
        let cut = if shown.len() < findings.len() { " (cut)" } else { "" };
        out.push_str(&format!("Doubts, found by a check: {shown}{cut}\n"));
    }
    let sources = fields.texts("sources");
    let ids = fields.texts("message_ids");
    subtree(found, &fields.list("subtree"), call, out);
    if let Some(first) = ids.first() {
        out.push_str(&format!(
            "Made from those messages, {first} and on; the last 10 digits of their ids count in \
             hex\n"
        ));
    }
    let (source, what) = match (sources.first(), ids.first()) {
        (Some(source), _) => (source, "gives the first source"),
        (None, Some(message)) => (message, "gives the first message"),
        (None, None) => return fields.text("text"),
    };
    out.push_str(&next(on(source, call), what));
    fields.text("text")
}

/// What is listed of a list, and the note on what is not.
fn cut(list: &[String], max: usize) -> (Vec<&str>, String) {
    let listed: Vec<&str> = list.iter().take(max).map(String::as_str).collect();
    let more = list.len() - listed.len();
    let note = if more > 0 { format!(" and {more} more") } else { String::new() };
    (listed, note)
}

/// What reading the summary and those under it costs.
fn subtree(found: &str, rows: &[json::Value], call: &Call<'_>, out: &mut String) {
    out.push_str("Tokens: of a summary alone, with the summaries under it, of all its messages\n");
    for row in rows.iter().take(SUBTREE_MAX) {
        let mut fields = Fields::new(found, json::members(found, row.span));
        let subtree_tokens = fields.number("subtree_tokens");
        let fits = match call.arguments.number("tokenCap") {
            Some(cap) if subtree_tokens <= cap => ", fits",
            Some(_) => ", over tokenCap",
            None => "",
        };
        out.push_str(&format!(
            "- {} depth {}: {}, {subtree_tokens}, {}{fits}\n",
            fields.text("id"),
            fields.number("depth"),
            fields.number("tokens"),
            fields.number("message_tokens"),
        ));
    }
    if rows.len() > SUBTREE_MAX {
        out.push_str("- and more: describe one of these\n");
    }
}

/// Adds of a text what the answer still holds, from `startByte` on; returns the tokens of that.
fn piece(text: &str, id: &str, call: &Call<'_>, out: &mut String) -> u32 {
    let closing = CLOSING_TOKENS + tokens::estimate(&on(id, call).end_object());
    let left = TOKENS_MAX.saturating_sub(tokens::estimate(out) + closing).max(PIECE_TOKENS_MIN);
    let left = left.min(call.left());
    let mut start = int::to_usize(call.arguments.number("startByte").unwrap_or(0)).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = text.get(start..).unwrap_or_default();
    let shown = tokens::truncate(rest, left);
    let end = start + shown.len();
    if end < text.len() {
        let mut arguments = on(id, call);
        arguments.number("startByte", int::to_u64(end));
        out.push_str(&next(arguments, "goes on where the text was cut"));
    }
    out.push_str(&format!("Text, bytes {start} to {end} of {}:\n{shown}", text.len()));
    tokens::estimate(shown)
}

/// A name as it stands in a line.
fn shown(name: &str) -> String {
    one_line(tokens::truncate(name, NAME_TOKENS_MAX))
}

/// What a file is, and the range of it that was asked for.
fn file(fields: &mut Fields<'_>, id: &str, call: &Call<'_>) -> Told {
    let name = fields.text_or_none("name").unwrap_or_else(|| String::from("unnamed"));
    let bytes = fields.number("bytes");
    let mut text = format!(
        "{BACKGROUND}\nFile {id}: {}, {}, {}, {bytes} bytes, {} lines, from message {} (seq {})\n",
        shown(&name),
        fields.text("kind"),
        shown(&fields.text("mime")),
        fields.number("lines"),
        fields.text("message"),
        fields.number("seq"),
    );
    let mut arguments = on(id, call);
    arguments.flag("expandFile", true);
    let Some(content) = fields.text_or_none("content") else {
        text.push_str(&next(arguments, "gives the content"));
        text.push_str("Exploration:\n");
        let exploration = fields.text("exploration");
        let exploration = tokens::truncate(&exploration, call.left());
        text.push_str(exploration);
        return Told { text, tokens: tokens::estimate(exploration) };
    };
    let (start, end) = (fields.number("start_byte"), fields.number("end_byte"));
    let part = tokens::truncate(&content, call.left());
    let is_cut = part.len() < content.len();
    let end = if is_cut { start + int::to_u64(part.len()) } else { end };
    if is_cut || fields.flag("truncated") {
        arguments.number("startByte", end);
        text.push_str(&next(arguments, "goes on where the content was cut"));
    }
    text.push_str(&format!("Content, bytes {start} to {end} of {bytes}:\n{part}"));
    Told { text, tokens: tokens::estimate(part) }
}
