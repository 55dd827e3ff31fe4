//! `lcm_expand`: what summaries were made from, several at once under one cap.
//!
//! In: ids, or a query that finds summaries. Out: one line for each summary and message below them.
//! When all fits, ids come in the order in which they were given, found ones as they were ranked;
//! else the cheapest come first, so that more of them fit. The first text that does not fit ends
//! the answer, which says what was left out and which call goes on: behind the last text that was
//! shown, or when no answer holds the next one, behind that, which `lcm_describe` gives in pieces.

use crate::search::grep;
use crate::storage::read_scope::LeftOut;
use alloc::{format, string::String, vec::Vec};
use lcm_text::message::trust::BACKGROUND;

use super::{CLOSING_TOKENS, Call, TOKENS_MAX, Told, about, next, one_line};
use crate::{
    recall::{self, Expansion},
    storage::{records::grants, store_session::Reader},
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, Fields, Writer},
    sort, tokens,
};

/// Summaries that a query finds.
const FOUND_MAX: u64 = 10;
/// Ids that a line names.
const LISTED_MAX: usize = 12;

/// A summary that is to be expanded.
struct Root {
    id: String,
    /// Line and text of the summary itself, when that is shown.
    own: Option<(String, String)>,
    /// Tokens of all that may be shown of it.
    cost: u64,
    /// Whether anything but its own text may be.
    has_below: bool,
}

/// Lines within their bounds.
struct Lines {
    text: String,
    shown: Vec<String>,
    /// Of stored text.
    tokens: u32,
    cap: u32,
    /// For ids, seqs and the like.
    margin: u32,
}

impl Lines {
    /// Adds a line, unless it stands there already; `false`: it does not fit.
    fn take(&mut self, id: &str, what: &str, text: &str) -> bool {
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
        self.text.push_str(&one_line(text));
        self.text.push('\n');
        true
    }
}

/// Answers an expansion. The caller has a grant.
///
/// # Errors
///
/// As [`recall::expanded`]; `invalid-input`: neither ids nor a query.
pub(super) fn expand(reader: &mut Reader<'_>, call: &Call<'_>) -> Result<Told> {
    let asked = &call.arguments;
    let cap = int::tokens_u32(asked.number("tokenCap").unwrap_or(u64::MAX));
    let cap = cap.min(call.config.expand_tokens_max).min(call.left());
    let is_found = asked.text("query").is_some();
    let after = asked.text("after");
    if after.is_some() && is_found {
        return Err(Error::invalid("`after` goes with `summaryIds`, not with `query`"));
    }
    let ids = match asked.text("query") {
        Some(query) => found(reader, call, query)?,
        None => asked.texts("summaryIds").to_vec(),
    };
    if ids.is_empty() && !is_found {
        return Err(Error::invalid("`summaryIds` or `query` must be given"));
    }
    let mut roots: Vec<Root> = Vec::new();
    for id in &ids {
        let root = root(reader, call, id, is_found)?;
        if roots.iter().all(|known| known.id != root.id) {
            roots.push(root);
        }
    }
    // One that goes on has them in the order of the call before.
    if after.is_none() && roots.iter().map(|root| root.cost).sum::<u64>() > cap.into() {
        sort::sort_by(&mut roots, &mut |a, b| a.cost.cmp(&b.cost));
    }
    // The call that goes on names them all.
    let names = tokens::estimate(&again(call, &ids_of(&roots), true, None));
    let margin = (TOKENS_MAX - CLOSING_TOKENS).saturating_sub(names);
    let mut lines = Lines { text: String::new(), shown: Vec::new(), tokens: 0, cap, margin };
    let (mut cut, mut complete) = (None, 0);
    for (number, root) in roots.iter().enumerate() {
        let behind = after.filter(|_| number == 0);
        cut = expanded(reader, call, root, behind, &mut lines)?;
        if cut.is_some() {
            break;
        }
        complete += 1;
    }
    let mut text = format!(
        "{BACKGROUND}\nExpanded: {complete} of {} summaries, {} of at most {cap} tokens\n",
        roots.len(),
        lines.tokens
    );
    let rest = roots.get(complete..).unwrap_or_default();
    text.push_str(&closing(call, &roots, rest, cut.as_ref(), lines.tokens));
    text.push_str(&lines.text);
    Ok(Told { text, tokens: lines.tokens })
}

/// The summaries that a query finds.
fn found(reader: &mut Reader<'_>, call: &Call<'_>, pattern: &str) -> Result<Vec<String>> {
    let mut query = Writer::object();
    query.text("pattern", pattern);
    query.text("scope", "summaries");
    query.number("limit", FOUND_MAX);
    query.flag("only", call.only());
    let query = query.end_object();
    let found = grep::searched(reader, &call.place, &query, call.within(), call.now)?.json;
    let rows = Fields::of_argument("matches", &found)?.list("matches");
    let id = |row: &json::Value| Fields::new(&found, json::members(&found, row.span)).text("id");
    Ok(rows.iter().map(id).collect())
}

/// What is shown of an id. The text of the summary itself is, when the caller has not named it and
/// so does not know it, or when it is a leaf and its messages are not asked for.
fn root(reader: &mut Reader<'_>, call: &Call<'_>, id: &str, is_found: bool) -> Result<Root> {
    let options = "{\"content\":false}";
    let described = recall::described(reader, &call.place, id, options, call.within())?.json;
    let mut fields = Fields::of_argument("described", &described)?;
    let id = fields.text("id");
    if !id.starts_with("sum_") {
        return Err(Error::invalid(format_args!(
            "`{id}` is no summary; lcm_describe gives its text"
        )));
    }
    let messages = call.arguments.flag("includeMessages");
    let own_tokens = fields.number("tokens");
    let mut cost = fields.number("descendant_tokens");
    if messages {
        cost += fields.number("message_tokens");
    }
    let has_below = messages || fields.text("kind") != "leaf";
    let own = (is_found || !has_below).then(|| {
        cost += own_tokens;
        let note = if messages { "" } else { "itself, " };
        (line_of_summary(&mut fields, note).0, fields.text("text"))
    });
    Ok(Root { id, own, cost, has_below })
}

/// What is said of a summary before its text, and its first seq.
fn line_of_summary(fields: &mut Fields<'_>, note: &str) -> (String, u64) {
    let depth = fields.number("depth");
    let (first, last) = (fields.number("seq_first"), fields.number("seq_last"));
    (format!("{note}depth {depth}, messages {first} to {last}"), first)
}

/// Adds what lies below a summary, in the order of the conversation, or of that what lies behind an
/// id; returns what did not fit.
fn expanded(
    reader: &mut Reader<'_>,
    call: &Call<'_>,
    root: &Root,
    behind: Option<&str>,
    lines: &mut Lines,
) -> Result<Option<LeftOut>> {
    let mut behind = behind.map(String::from);
    if let Some((what, text)) = root.own.as_ref().filter(|_| behind.is_none())
        && !lines.take(&root.id, what, text)
    {
        let (id, tokens) = (root.id.clone(), tokens::estimate(text).into());
        return Ok(Some(LeftOut { id, tokens, behind }));
    }
    let depth = call.arguments.number("maxDepth").map_or(grants::DEPTH, int::tokens_u32);
    let asked = Expansion {
        depth: Some(depth),
        messages: call.arguments.flag("includeMessages"),
        token_cap: Some(u64::from(lines.cap - lines.tokens)),
        shown: lines.shown.clone(),
        behind: behind.clone(),
        ..Expansion::default()
    };
    let below = recall::expanded(reader, &call.place, &root.id, &asked, call.within())?;
    for (id, what, text) in rows(&below.json)? {
        if !lines.take(&id, &what, &text) {
            let tokens = tokens::estimate(&text).into();
            return Ok(Some(LeftOut { id, tokens, behind }));
        }
        behind = Some(id);
    }
    Ok(below.left_out)
}

/// The ids, lines and texts of an expansion, each summary before the messages below it.
fn rows(expanded: &str) -> Result<Vec<(String, String, String)>> {
    let mut fields = Fields::of_argument("expanded", expanded)?;
    let of = |row: &json::Value| Fields::new(expanded, json::members(expanded, row.span));
    let mut rows = Vec::new();
    for row in fields.list("summaries") {
        let mut fields = of(&row);
        let (id, text) = (fields.text("id"), fields.text("text"));
        let (line, first) = line_of_summary(&mut fields, "");
        rows.push((first, id, line, text));
    }
    for row in fields.list("messages") {
        let mut fields = of(&row);
        let (id, text, seq) = (fields.text("id"), fields.text("raw"), fields.number("seq"));
        rows.push((seq, id, format!("{} seq {seq}", fields.text("role")), text));
    }
    // Summaries of one beginning stand in the order of their depth, and before the message.
    sort::sort_by(&mut rows, &mut |a, b| a.0.cmp(&b.0));
    Ok(rows.into_iter().map(|(_, id, what, text)| (id, what, text)).collect())
}

/// The lines that say what was left out and which call goes on.
fn closing(
    call: &Call<'_>,
    roots: &[Root],
    rest: &[Root],
    cut: Option<&LeftOut>,
    spent: u32,
) -> String {
    let mut out = String::new();
    let messages = call.arguments.flag("includeMessages");
    let Some(cut) = cut else {
        if roots.is_empty() {
            return String::from("Next: lcm_grep with fewer or other words\n");
        }
        if messages || call.left() == spent {
            return out;
        }
        let ids: Vec<&str> = ids_of(roots).into_iter().take(LISTED_MAX).collect();
        let arguments = again(call, &ids, true, None);
        out.push_str(&format!("Next: lcm_expand {arguments} gives the messages\n"));
        return out;
    };
    let ids = ids_of(rest);
    let names = ids.get(..LISTED_MAX.min(ids.len())).unwrap_or_default();
    let more = if ids.len() > names.len() { " and more" } else { "" };
    out.push_str(&format!("Left out, from {} on: of {}{more}\n", cut.id, names.join(", ")));
    if call.left() == spent {
        out.push_str("Nothing is left to read with: answer with what is here\n");
        return out;
    }
    let cap = call.arguments.number("tokenCap").unwrap_or(u64::MAX);
    let cap = cap.min(call.config.expand_tokens_max.into());
    let is_own = rest.first().is_some_and(|root| root.id == cut.id);
    let has_below = rest.first().is_some_and(|root| root.has_below);
    // Who names a summary that has something below is not given its own text.
    if cut.tokens <= cap.min((call.left() - spent).into()) && !(is_own && has_below) {
        let arguments = again(call, &ids, messages, cut.behind.as_deref());
        out.push_str(&format!("Next: lcm_expand {arguments} goes on\n"));
        return out;
    }
    // What no answer holds comes in pieces.
    let arguments = about(&cut.id, call.arguments.text("conversationId"));
    out.push_str(&next(arguments, "gives what did not fit"));
    let ids = ids.get(usize::from(is_own && !has_below)..).unwrap_or_default();
    if !ids.is_empty() {
        let behind = (!is_own).then_some(cut.id.as_str());
        let arguments = again(call, ids, messages, behind);
        out.push_str(&format!("Next: lcm_expand {arguments} goes on behind it\n"));
    }
    out
}

fn ids_of(roots: &[Root]) -> Vec<&str> {
    roots.iter().map(|root| root.id.as_str()).collect()
}

/// Arguments of a call like this one for other ids, behind an id below the first of them.
fn again(call: &Call<'_>, ids: &[&str], messages: bool, after: Option<&str>) -> String {
    let mut arguments = Writer::object();
    arguments.texts("summaryIds", ids);
    if messages {
        arguments.flag("includeMessages", true);
    }
    if let Some(after) = after {
        arguments.text("after", after);
    }
    let same = ["maxDepth", "tokenCap", "conversationId"].map(|name| (name, name));
    call.arguments.copy(&same, &mut arguments);
    arguments.end_object()
}
