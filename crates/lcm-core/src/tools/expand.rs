//! `lcm_expand`: what summaries were made from, several at once under one cap.
//!
//! In: ids, or a query that finds summaries. Out: one line for each summary and message below them.
//! When all fits, ids come in the order in which they were given, found ones as they were ranked;
//! else the cheapest come first, so that more of them fit. The first text that does not fit ends
//! the answer, which says what was left out and which call goes on.

use alloc::{format, string::String, vec::Vec};

use super::{BACKGROUND, CLOSING_TOKENS, Call, TOKENS_MAX, Told, about, next, one_line};
use crate::{
    error::{Error, Result},
    grants,
    json::{self, Fields, Writer},
    num, order,
    reader::Reader,
    recall::{self, Expansion},
    tokens,
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
    let cap = num::tokens_u32(asked.number("tokenCap").unwrap_or(u64::MAX));
    let cap = cap.min(call.config.expand_tokens_max).min(call.left());
    let is_found = asked.text("query").is_some();
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
    if roots.iter().map(|root| root.cost).sum::<u64>() > cap.into() {
        order::sort_by(&mut roots, &mut |a, b| a.cost.cmp(&b.cost));
    }
    let margin = TOKENS_MAX - CLOSING_TOKENS;
    let mut lines = Lines { text: String::new(), shown: Vec::new(), tokens: 0, cap, margin };
    let (mut cut, mut complete) = (None, 0);
    for root in &roots {
        cut = expanded(reader, call, root, &mut lines)?;
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
    text.push_str(&closing(call, &roots, rest, cut.as_deref(), lines.tokens));
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
    let found = recall::searched(reader, &call.place, &query, call.within(), call.now)?.json;
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
    let own = (is_found || (fields.text("kind") == "leaf" && !messages)).then(|| {
        cost += own_tokens;
        (line_of_summary(&mut fields, if messages { "" } else { "itself, " }), fields.text("text"))
    });
    Ok(Root { id, own, cost })
}

fn line_of_summary(fields: &mut Fields<'_>, note: &str) -> String {
    let depth = fields.number("depth");
    let (first, last) = (fields.number("seq_first"), fields.number("seq_last"));
    format!("{note}depth {depth}, messages {first} to {last}")
}

/// Adds what lies below a summary; returns the id of what did not fit.
fn expanded(
    reader: &mut Reader<'_>,
    call: &Call<'_>,
    root: &Root,
    lines: &mut Lines,
) -> Result<Option<String>> {
    if let Some((what, text)) = &root.own
        && !lines.take(&root.id, what, text)
    {
        return Ok(Some(root.id.clone()));
    }
    let depth = call.arguments.number("maxDepth").map_or(grants::DEPTH, num::tokens_u32);
    let asked = Expansion {
        depth: Some(depth),
        messages: call.arguments.flag("includeMessages"),
        token_cap: Some(u64::from(lines.cap - lines.tokens)),
        shown: lines.shown.clone(),
        ..Expansion::default()
    };
    let below = recall::expanded(reader, &call.place, &root.id, &asked, call.within())?;
    let mut fields = Fields::of_argument("expanded", &below.json)?;
    for row in fields.list("summaries") {
        let mut fields = Fields::new(&below.json, json::members(&below.json, row.span));
        let (id, text) = (fields.text("id"), fields.text("text"));
        let what = line_of_summary(&mut fields, "");
        if !lines.take(&id, &what, &text) {
            return Ok(Some(id));
        }
    }
    for row in fields.list("messages") {
        let mut fields = Fields::new(&below.json, json::members(&below.json, row.span));
        let (id, text) = (fields.text("id"), fields.text("raw"));
        let what = format!("{} seq {}", fields.text("role"), fields.number("seq"));
        if !lines.take(&id, &what, &text) {
            return Ok(Some(id));
        }
    }
    Ok(below.left_out)
}

/// The lines that say what was left out and which call goes on.
fn closing(
    call: &Call<'_>,
    roots: &[Root],
    rest: &[Root],
    cut: Option<&str>,
    spent: u32,
) -> String {
    let mut out = String::new();
    let Some(cut) = cut else {
        if roots.is_empty() {
            return String::from("Next: lcm_grep with fewer or other words\n");
        }
        if call.arguments.flag("includeMessages") || call.left() == spent {
            return out;
        }
        let ids = ids(roots);
        out.push_str(&format!("Next: lcm_expand {} gives the messages\n", again(call, &ids, true)));
        return out;
    };
    let names = ids(rest);
    let more = if rest.len() > names.len() { " and more" } else { "" };
    out.push_str(&format!("Left out, from {cut} on: of {}{more}\n", names.join(", ")));
    if call.left() == spent {
        out.push_str("Nothing is left to read with: answer with what is here\n");
        return out;
    }
    // What did not fit comes in pieces.
    let arguments = about(cut, call.arguments.text("conversationId"));
    out.push_str(&next(arguments, "gives what did not fit"));
    if let Some(others) = rest.get(1..).filter(|others| !others.is_empty()) {
        let messages = call.arguments.flag("includeMessages");
        let arguments = again(call, &ids(others), messages);
        out.push_str(&format!("Next: lcm_expand {arguments} goes on with the others\n"));
    }
    out
}

/// The first ids.
fn ids(roots: &[Root]) -> Vec<&str> {
    roots.iter().take(LISTED_MAX).map(|root| root.id.as_str()).collect()
}

/// Arguments of a call like this one for other ids.
fn again(call: &Call<'_>, ids: &[&str], messages: bool) -> String {
    let mut arguments = Writer::object();
    arguments.texts("summaryIds", ids);
    if messages {
        arguments.flag("includeMessages", true);
    }
    call.arguments
        .copy(&[("maxDepth", "maxDepth"), ("conversationId", "conversationId")], &mut arguments);
    arguments.end_object()
}
