//! `lcm_expand`: the sources of several summaries, under one cap.
//!
//! In: ids, or a query that finds summaries. Out: one line for each summary and message below them.
//! If all summaries fit, they have the given order, or their rank in the search. Otherwise the
//! cheapest come first, so that more summaries fit. The first text that does not fit ends the
//! answer. The answer then names the omitted summaries and the call that continues after the last
//! shown text. If the next text fits no answer, the call continues after this text, and
//! `lcm_describe` returns the text in pieces.

use crate::search::grep::{self, OwnSearches};
use crate::storage::read_scope::OmittedEntry;
use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND_LINE;

use super::{
    invocation::{CLOSING_TOKENS, TOKENS_MAX, ToolInvocation, ToolReply},
    reply_lines::{build_id_arguments, format_next_call, rename_fields, to_one_line},
};
use crate::{
    recall::{self, ExpandOptions},
    storage::{records::grants, store_session::StoreSession, withdrawn_mark},
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, JsonFields, JsonWriter},
    sort, tokens,
};

/// Maximum number of summaries that a query finds.
const QUERY_SUMMARIES_MAX: u64 = 10;
/// Maximum number of listed ids of omitted summaries, and of summaries in the call that gives their
/// messages.
const LISTED_MAX: usize = 12;

/// A summary to expand.
struct ExpandRoot {
    id: String,
    /// Line and text of the summary itself; `None`: the answer does not show them.
    own_line: Option<(String, String)>,
    /// Tokens of all texts that the answer may show for the summary: its own text and the texts
    /// below.
    cost: u64,
    /// Whether the answer may show entries below the summary: false for a leaf without messages.
    has_below: bool,
}

/// Lines of an answer, within their bounds.
struct ExpandedLines {
    text: String,
    /// Ids of the added lines.
    shown: Vec<String>,
    /// Tokens of stored text in the added lines.
    tokens: u32,
    /// Maximum tokens of stored text.
    cap: u32,
    /// Tokens left for the beginnings of lines, before the stored text.
    margin: u32,
}

impl ExpandedLines {
    /// Adds a line, unless the answer already has a line with this id; `false`: the line does not
    /// fit.
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

/// Expands summaries for a caller with a grant. With `query`, `summaryIds` is ignored.
///
/// # Errors
///
/// - `invalid-input`: neither ids nor a query is given, `after` is given with a query, or an id is
///   not of a summary.
/// - The errors of [`recall::expand_uncharged`] and of the search.
pub(super) fn expand(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolReply> {
    let asked = &invocation.arguments;
    let cap = int::saturate_tokens(asked.get_number("tokenCap").unwrap_or(u64::MAX));
    let cap = cap.min(invocation.call.config.expand_tokens_max).min(invocation.tokens_left());
    let is_found = asked.get_text("query").is_some();
    let after = asked.get_text("after");
    if after.is_some() && is_found {
        return Err(Error::invalid_input(
            "`after` must not be given with `query`; name the summaries in `summaryIds`",
        ));
    }
    let ids = match asked.get_text("query") {
        Some(query) => find_summaries(session, invocation, query)?,
        None => asked.get_texts("summaryIds").to_vec(),
    };
    if ids.is_empty() && !is_found {
        return Err(Error::invalid_input(
            "`summaryIds` or `query` must be given; with `query`, `summaryIds` is ignored",
        ));
    }
    let mut roots: Vec<ExpandRoot> = Vec::new();
    for id in &ids {
        let root = read_root(session, invocation, id, is_found)?;
        if roots.iter().all(|known| known.id != root.id) {
            roots.push(root);
        }
    }
    // A call that continues keeps its ids in the given order, the order of the call before.
    if after.is_none() && roots.iter().map(|root| root.cost).sum::<u64>() > cap.into() {
        sort::sort_by(&mut roots, &mut |a, b| a.cost.cmp(&b.cost));
    }
    // The line of the next call may name all ids.
    let names = tokens::estimate(&repeat_arguments(invocation, &root_ids(&roots), true, None));
    let margin = (TOKENS_MAX - CLOSING_TOKENS).saturating_sub(names);
    let mut lines =
        ExpandedLines { text: String::new(), shown: Vec::new(), tokens: 0, cap, margin };
    let (mut cut, mut complete) = (None, 0);
    for (number, root) in roots.iter().enumerate() {
        let behind = after.filter(|_| number == 0);
        cut = expand_root(session, invocation, root, behind, &mut lines)?;
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
    text.push_str(&build_closing(invocation, &roots, rest, cut.as_ref(), lines.tokens));
    text.push_str(&lines.text);
    Ok(ToolReply { text, tokens: lines.tokens })
}

/// Finds the ids of at most [`QUERY_SUMMARIES_MAX`] summaries by a query, best first.
fn find_summaries(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
    pattern: &str,
) -> Result<Vec<String>> {
    let mut query = JsonWriter::new_object();
    query.add_text("pattern", pattern);
    query.add_text("scope", "summaries");
    query.add_number("limit", QUERY_SUMMARIES_MAX);
    query.add_flag("only", invocation.is_single_conversation());
    let query = query.end_object();
    let limits = invocation.read_limits();
    let (target, own_searches) = (invocation.target, OwnSearches::Last);
    let found = grep::grep_uncharged(session, target, &query, limits, own_searches)
        .map_err(|error| rename_fields(error, &[("query", "pattern")]))?
        .json;
    let rows = JsonFields::parse_argument("matches", &found)?.take_list("matches");
    let id = |row: &json::JsonValue| {
        JsonFields::new(&found, json::list_members(&found, row.span)).take_text("id")
    };
    Ok(rows.iter().map(id).collect())
}

/// Reads a summary to expand.
///
/// The answer shows the text of the summary itself in two cases:
///
/// - A query found the summary, so the caller does not know its text.
/// - The summary is a leaf, and the caller wants no messages.
fn read_root(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
    id: &str,
    is_found: bool,
) -> Result<ExpandRoot> {
    let options = "{\"include_content\":false}";
    let described = recall::describe_uncharged(
        session,
        invocation.target,
        id,
        options,
        invocation.read_limits(),
    )?
    .json;
    let mut fields = JsonFields::parse_argument("described", &described)?;
    let id = fields.take_text("id");
    if !id.starts_with("sum_") {
        return Err(Error::invalid_input(format_args!(
            "`summaryIds` must name summaries, got `{id}`; lcm_describe gives the text of that id"
        )));
    }
    let messages = invocation.arguments.is_set("includeMessages");
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

/// Formats the properties of a summary; also returns its first seq.
fn format_summary_line(fields: &mut JsonFields<'_>, note: &str) -> (String, u64) {
    let depth = fields.take_u64("depth");
    let (first, last) = (fields.take_u64("seq_first"), fields.take_u64("seq_last"));
    let mark = withdrawn_mark::take_note(fields);
    (format!("{note}depth {depth}, messages {first} to {last}{mark}"), first)
}

/// Adds the lines of a summary and of the entries below it, in the order of the conversation.
/// Returns the first entry that did not fit; `None`: all entries fitted.
///
/// `behind`: only the entries after this id are added, without the line of the summary.
fn expand_root(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
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
    let depth = invocation
        .arguments
        .get_number("maxDepth")
        .map_or(grants::DEPTH_DEFAULT, int::saturate_tokens);
    let asked = ExpandOptions {
        depth_max: Some(depth),
        include_messages: invocation.arguments.is_set("includeMessages"),
        tokens_max: Some(u64::from(lines.cap - lines.tokens)),
        shown_ids: lines.shown.clone(),
        resume_after_id: behind.clone(),
        ..ExpandOptions::default()
    };
    let below = recall::expand_uncharged(
        session,
        invocation.target,
        &root.id,
        &asked,
        invocation.read_limits(),
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

/// Reads the ids, lines and texts of an expansion, in the order of the conversation, each summary
/// before its messages.
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
        let (role, note) = (fields.take_text("role"), withdrawn_mark::take_note(&mut fields));
        rows.push((seq, id, format!("{role} seq {seq}{note}"), text));
    }
    // The sort is stable: summaries of an equal first seq keep their depth order, before messages.
    sort::sort_by(&mut rows, &mut |a, b| a.0.cmp(&b.0));
    Ok(rows.into_iter().map(|(_, id, what, text)| (id, what, text)).collect())
}

/// Formats the lines that name the omitted summaries and the next calls.
///
/// `rest`: the summaries that are not complete. `cut`: the first entry that did not fit. `spent`:
/// tokens of stored text in the answer.
fn build_closing(
    invocation: &ToolInvocation<'_>,
    roots: &[ExpandRoot],
    rest: &[ExpandRoot],
    cut: Option<&OmittedEntry>,
    spent: u32,
) -> String {
    let mut out = String::new();
    let messages = invocation.arguments.is_set("includeMessages");
    let Some(cut) = cut else {
        if roots.is_empty() {
            return String::from("Next: lcm_grep with fewer or other words\n");
        }
        if messages || invocation.tokens_left() == spent {
            return out;
        }
        let ids: Vec<&str> = root_ids(roots).into_iter().take(LISTED_MAX).collect();
        let arguments = repeat_arguments(invocation, &ids, true, None);
        out.push_str(&format!("Next: lcm_expand {arguments} gives the messages\n"));
        return out;
    };
    let ids = root_ids(rest);
    let names = ids.get(..LISTED_MAX.min(ids.len())).unwrap_or_default();
    let more = if ids.len() > names.len() { " and more" } else { "" };
    out.push_str(&format!(
        "Left out: entries from {} on, below {}{more}\n",
        cut.id,
        names.join(", ")
    ));
    if invocation.tokens_left() == spent {
        out.push_str("Nothing is left to read with: answer with what is here\n");
        return out;
    }
    let cap = invocation.arguments.get_number("tokenCap").unwrap_or(u64::MAX);
    let cap = cap.min(invocation.call.config.expand_tokens_max.into());
    let is_own = rest.first().is_some_and(|root| root.id == cut.id);
    let has_below = rest.first().is_some_and(|root| root.has_below);
    // A call that names a summary with entries below does not show the summary's own text.
    if cut.tokens <= cap.min((invocation.tokens_left() - spent).into()) && !(is_own && has_below) {
        let arguments = repeat_arguments(invocation, &ids, messages, cut.previous_id.as_deref());
        out.push_str(&format!("Next: lcm_expand {arguments} goes on\n"));
        return out;
    }
    // `lcm_describe` returns a text that fits no answer in pieces.
    let arguments = build_id_arguments(&cut.id, invocation.arguments.get_text("conversationId"));
    out.push_str(&format_next_call(arguments, "gives what did not fit"));
    let ids = ids.get(usize::from(is_own && !has_below)..).unwrap_or_default();
    if !ids.is_empty() {
        let behind = (!is_own).then_some(cut.id.as_str());
        let arguments = repeat_arguments(invocation, ids, messages, behind);
        out.push_str(&format!("Next: lcm_expand {arguments} goes on behind it\n"));
    }
    out
}

/// Returns the ids of summaries.
fn root_ids(roots: &[ExpandRoot]) -> Vec<&str> {
    roots.iter().map(|root| root.id.as_str()).collect()
}

/// Formats the arguments of a call of `lcm_expand` for `ids`, with the limits of this call.
///
/// `after`: an id below the first summary, after which the call continues.
fn repeat_arguments(
    invocation: &ToolInvocation<'_>,
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
    invocation.arguments.copy_into(&same, &mut arguments);
    arguments.end_object()
}
