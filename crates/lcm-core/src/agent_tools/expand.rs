//! `lcm_expand`: what summaries were made from, several at once under one cap.
//!
//! In: ids, or a query that finds summaries. Out: one line for each summary and message below them.
//! When all fits, ids come in the order in which they were given, found ones as they were ranked;
//! else the cheapest come first, so that more of them fit. The first text that does not fit ends
//! the answer, which says what was left out and which call goes on: behind the last text that was
//! shown, or when no answer holds the next one, behind that, which `lcm_describe` gives in pieces.

use crate::search::grep;
use crate::storage::read_scope::OmittedEntry;
use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    CLOSING_TOKENS, TOKENS_MAX, ToolInvocation, ToolReply, id_arguments, next_call_line,
    to_one_line,
};
use crate::{
    recall::{self, ExpandOptions},
    storage::{records::grants, store_session::StoreSession},
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, JsonFields, JsonWriter},
    sort, tokens,
};

/// Summaries that a query finds.
const QUERY_SUMMARIES_MAX: u64 = 10;
/// Ids that a line names.
const LISTED_MAX: usize = 12;

/// A summary that is to be expanded.
struct ExpandRoot {
    id: String,
    /// Line and text of the summary itself, when that is shown.
    own_line: Option<(String, String)>,
    /// Tokens of all that may be shown of it.
    cost: u64,
    /// Whether anything but its own text may be.
    has_below: bool,
}

/// Lines within their bounds.
struct ExpandedLines {
    text: String,
    shown: Vec<String>,
    /// Of stored text.
    tokens: u32,
    cap: u32,
    /// For ids, seqs and the like.
    margin: u32,
}

impl ExpandedLines {
    /// Adds a line, unless it stands there already; `false`: it does not fit.
    fn add_line(&mut self, id: &str, what: &str, text: &str) -> bool {
        if self.shown.iter().any(|shown| shown == id) {
            return true;
        }
        let start = format!("- {id} {what}: ");
        let (cost, margin) = (tokens::estimate(text), tokens::estimate(&start) + 1);
        if cost > self.cap - self.tokens || margin > self.margin {
            return false;
        }
        self.tokens += cost;
        self.margin -= margin;
        self.shown.push(id.into());
        self.text.push_str(&start);
        self.text.push_str(&to_one_line(text));
        self.text.push('\n');
        true
    }
}

/// Answers an expansion. The caller has a grant.
///
/// # Errors
///
/// As [`recall::expanded`]; `invalid-input`: neither ids nor a query.
pub(super) fn expand(
    reader: &mut StoreSession<'_>,
    call: &ToolInvocation<'_>,
) -> Result<ToolReply> {
    let asked = &call.arguments;
    let cap = int::saturate_tokens(asked.get_number("tokenCap").unwrap_or(u64::MAX));
    let cap = cap.min(call.config.expand_tokens_max).min(call.tokens_left());
    let is_found = asked.get_text("query").is_some();
    let after = asked.get_text("after");
    if after.is_some() && is_found {
        return Err(Error::invalid_input("`after` goes with `summaryIds`, not with `query`"));
    }
    let ids = match asked.get_text("query") {
        Some(query) => find_summaries(reader, call, query)?,
        None => asked.get_texts("summaryIds").to_vec(),
    };
    if ids.is_empty() && !is_found {
        return Err(Error::invalid_input("`summaryIds` or `query` must be given"));
    }
    let mut roots: Vec<ExpandRoot> = Vec::new();
    for id in &ids {
        let root = read_root(reader, call, id, is_found)?;
        if roots.iter().all(|known| known.id != root.id) {
            roots.push(root);
        }
    }
    // One that goes on has them in the order of the call before.
    if after.is_none() && roots.iter().map(|root| root.cost).sum::<u64>() > cap.into() {
        sort::sort_by(&mut roots, &mut |a, b| a.cost.cmp(&b.cost));
    }
    // The call that goes on names them all.
    let names = tokens::estimate(&repeat_arguments(call, &root_ids(&roots), true, None));
    let margin = (TOKENS_MAX - CLOSING_TOKENS).saturating_sub(names);
    let mut lines =
        ExpandedLines { text: String::new(), shown: Vec::new(), tokens: 0, cap, margin };
    let (mut cut, mut complete) = (None, 0);
    for (number, root) in roots.iter().enumerate() {
        let behind = after.filter(|_| number == 0);
        cut = expand_root(reader, call, root, behind, &mut lines)?;
        if cut.is_some() {
            break;
        }
        complete += 1;
    }
    let mut text = format!(
        "{BACKGROUND_LINE}\nExpanded: {complete} of {} summaries, {} of at most {cap} tokens\n",
        roots.len(),
        lines.tokens
    );
    let rest = roots.get(complete..).unwrap_or_default();
    text.push_str(&build_closing(call, &roots, rest, cut.as_ref(), lines.tokens));
    text.push_str(&lines.text);
    Ok(ToolReply { text, tokens: lines.tokens })
}

/// The summaries that a query finds.
fn find_summaries(
    reader: &mut StoreSession<'_>,
    call: &ToolInvocation<'_>,
    pattern: &str,
) -> Result<Vec<String>> {
    let mut query = JsonWriter::new_object();
    query.add_text("pattern", pattern);
    query.add_text("scope", "summaries");
    query.add_number("limit", QUERY_SUMMARIES_MAX);
    query.add_flag("only", call.is_single_conversation());
    let query = query.end_object();
    let found = grep::grep_uncharged(
        reader,
        &call.target_conversation,
        &query,
        call.read_bounds(),
        call.now,
    )?
    .json;
    let rows = JsonFields::parse_argument("matches", &found)?.take_list("matches");
    let id = |row: &json::JsonValue| {
        JsonFields::new(&found, json::list_members(&found, row.span)).take_text("id")
    };
    Ok(rows.iter().map(id).collect())
}

/// What is shown of an id. The text of the summary itself is, when the caller has not named it and
/// so does not know it, or when it is a leaf and its messages are not asked for.
fn read_root(
    reader: &mut StoreSession<'_>,
    call: &ToolInvocation<'_>,
    id: &str,
    is_found: bool,
) -> Result<ExpandRoot> {
    let options = "{\"include_content\":false}";
    let described = recall::describe_uncharged(
        reader,
        &call.target_conversation,
        id,
        options,
        call.read_bounds(),
    )?
    .json;
    let mut fields = JsonFields::parse_argument("described", &described)?;
    let id = fields.take_text("id");
    if !id.starts_with("sum_") {
        return Err(Error::invalid_input(format_args!(
            "`{id}` is no summary; lcm_describe gives its text"
        )));
    }
    let messages = call.arguments.is_set("includeMessages");
    let own_tokens = fields.take_u64("tokens");
    let mut cost = fields.take_u64("descendant_tokens");
    if messages {
        cost += fields.take_u64("message_tokens");
    }
    let has_below = messages || fields.take_text("kind") != "leaf";
    let own = (is_found || !has_below).then(|| {
        cost += own_tokens;
        let note = if messages { "" } else { "itself, " };
        (format_summary_line(&mut fields, note).0, fields.take_text("text"))
    });
    Ok(ExpandRoot { id, own_line: own, cost, has_below })
}

/// What is said of a summary before its text, and its first seq.
fn format_summary_line(fields: &mut JsonFields<'_>, note: &str) -> (String, u64) {
    let depth = fields.take_u64("depth");
    let (first, last) = (fields.take_u64("seq_first"), fields.take_u64("seq_last"));
    (format!("{note}depth {depth}, messages {first} to {last}"), first)
}

/// Adds what lies below a summary, in the order of the conversation, or of that what lies behind an
/// id; returns what did not fit.
fn expand_root(
    reader: &mut StoreSession<'_>,
    call: &ToolInvocation<'_>,
    root: &ExpandRoot,
    behind: Option<&str>,
    lines: &mut ExpandedLines,
) -> Result<Option<OmittedEntry>> {
    let mut behind = behind.map(String::from);
    if let Some((what, text)) = root.own_line.as_ref().filter(|_| behind.is_none())
        && !lines.add_line(&root.id, what, text)
    {
        let (id, tokens) = (root.id.clone(), tokens::estimate(text).into());
        return Ok(Some(OmittedEntry { id, tokens, previous_id: behind }));
    }
    let depth =
        call.arguments.get_number("maxDepth").map_or(grants::DEPTH_DEFAULT, int::saturate_tokens);
    let asked = ExpandOptions {
        depth_max: Some(depth),
        include_messages: call.arguments.is_set("includeMessages"),
        tokens_max: Some(u64::from(lines.cap - lines.tokens)),
        shown_ids: lines.shown.clone(),
        resume_after_id: behind.clone(),
        ..ExpandOptions::default()
    };
    let below = recall::expand_uncharged(
        reader,
        &call.target_conversation,
        &root.id,
        &asked,
        call.read_bounds(),
    )?;
    for (id, what, text) in read_rows(&below.json)? {
        if !lines.add_line(&id, &what, &text) {
            let tokens = tokens::estimate(&text).into();
            return Ok(Some(OmittedEntry { id, tokens, previous_id: behind }));
        }
        behind = Some(id);
    }
    Ok(below.omitted)
}

/// The ids, lines and texts of an expansion, each summary before the messages below it.
fn read_rows(expanded: &str) -> Result<Vec<(String, String, String)>> {
    let mut fields = JsonFields::parse_argument("expanded", expanded)?;
    let of =
        |row: &json::JsonValue| JsonFields::new(expanded, json::list_members(expanded, row.span));
    let mut rows = Vec::new();
    for row in fields.take_list("summaries") {
        let mut fields = of(&row);
        let (id, text) = (fields.take_text("id"), fields.take_text("text"));
        let (line, first) = format_summary_line(&mut fields, "");
        rows.push((first, id, line, text));
    }
    for row in fields.take_list("messages") {
        let mut fields = of(&row);
        let (id, text, seq) =
            (fields.take_text("id"), fields.take_text("raw"), fields.take_u64("seq"));
        rows.push((seq, id, format!("{} seq {seq}", fields.take_text("role")), text));
    }
    // Summaries of one beginning stand in the order of their depth, and before the message.
    sort::sort_by(&mut rows, &mut |a, b| a.0.cmp(&b.0));
    Ok(rows.into_iter().map(|(_, id, what, text)| (id, what, text)).collect())
}

/// The lines that say what was left out and which call goes on.
fn build_closing(
    call: &ToolInvocation<'_>,
    roots: &[ExpandRoot],
    rest: &[ExpandRoot],
    cut: Option<&OmittedEntry>,
    spent: u32,
) -> String {
    let mut out = String::new();
    let messages = call.arguments.is_set("includeMessages");
    let Some(cut) = cut else {
        if roots.is_empty() {
            return String::from("Next: lcm_grep with fewer or other words\n");
        }
        if messages || call.tokens_left() == spent {
            return out;
        }
        let ids: Vec<&str> = root_ids(roots).into_iter().take(LISTED_MAX).collect();
        let arguments = repeat_arguments(call, &ids, true, None);
        out.push_str(&format!("Next: lcm_expand {arguments} gives the messages\n"));
        return out;
    };
    let ids = root_ids(rest);
    let names = ids.get(..LISTED_MAX.min(ids.len())).unwrap_or_default();
    let more = if ids.len() > names.len() { " and more" } else { "" };
    out.push_str(&format!("Left out, from {} on: of {}{more}\n", cut.id, names.join(", ")));
    if call.tokens_left() == spent {
        out.push_str("Nothing is left to read with: answer with what is here\n");
        return out;
    }
    let cap = call.arguments.get_number("tokenCap").unwrap_or(u64::MAX);
    let cap = cap.min(call.config.expand_tokens_max.into());
    let is_own = rest.first().is_some_and(|root| root.id == cut.id);
    let has_below = rest.first().is_some_and(|root| root.has_below);
    // Who names a summary that has something below is not given its own text.
    if cut.tokens <= cap.min((call.tokens_left() - spent).into()) && !(is_own && has_below) {
        let arguments = repeat_arguments(call, &ids, messages, cut.previous_id.as_deref());
        out.push_str(&format!("Next: lcm_expand {arguments} goes on\n"));
        return out;
    }
    // What no answer holds comes in pieces.
    let arguments = id_arguments(&cut.id, call.arguments.get_text("conversationId"));
    out.push_str(&next_call_line(arguments, "gives what did not fit"));
    let ids = ids.get(usize::from(is_own && !has_below)..).unwrap_or_default();
    if !ids.is_empty() {
        let behind = (!is_own).then_some(cut.id.as_str());
        let arguments = repeat_arguments(call, ids, messages, behind);
        out.push_str(&format!("Next: lcm_expand {arguments} goes on behind it\n"));
    }
    out
}

fn root_ids(roots: &[ExpandRoot]) -> Vec<&str> {
    roots.iter().map(|root| root.id.as_str()).collect()
}

/// Arguments of a call like this one for other ids, behind an id below the first of them.
fn repeat_arguments(
    call: &ToolInvocation<'_>,
    ids: &[&str],
    messages: bool,
    after: Option<&str>,
) -> String {
    let mut arguments = JsonWriter::new_object();
    arguments.add_texts("summaryIds", ids);
    if messages {
        arguments.add_flag("includeMessages", true);
    }
    if let Some(after) = after {
        arguments.add_text("after", after);
    }
    let same = ["maxDepth", "tokenCap", "conversationId"].map(|name| (name, name));
    call.arguments.copy_into(&same, &mut arguments);
    arguments.end_object()
}
