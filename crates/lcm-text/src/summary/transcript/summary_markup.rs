//! Renders a summary or a focus brief for a context: as an XML element, or as plain text.
//!
//! Input: the content of a summary or brief. Output: the text that assembly puts into a context.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::framing::{MARK, begins_with_bracket, split_lines};
use crate::{
    base::time::{self, Timestamp},
    message::trust::Trust,
};

/// A summary to render for a context.
#[derive(Clone, Copy, Debug)]
pub struct SummaryElement<'a> {
    /// `sum_...`.
    pub id: &'a str,
    /// Depth; 0 is a leaf.
    pub depth: u32,
    /// Number of summaries below this summary in the tree.
    pub descendant_count: u32,
    /// Earliest and latest local time of a message, in milliseconds since the epoch; `None`: all
    /// messages are undated, and no time is rendered.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Ids of the source summaries, in order; empty for a leaf.
    pub sources: &'a [&'a str],
    /// Lowest trust of the sources.
    pub trust: Trust,
    /// Text of the summary.
    pub text: &'a str,
}

/// Renders a summary as XML. All text is escaped; characters that XML does not allow become U+FFFD.
#[must_use]
pub fn render_summary_xml(summary: &SummaryElement<'_>) -> String {
    let kind = if summary.depth == 0 { "leaf" } else { "condensed" };
    let mut out = String::from("<summary");
    push_attribute(&mut out, "id", summary.id);
    push_attribute(&mut out, "kind", kind);
    push_attribute(&mut out, "depth", &summary.depth.to_string());
    push_attribute(&mut out, "descendant_count", &summary.descendant_count.to_string());
    push_attribute(&mut out, "trust", summary.trust.as_str());
    if let Some((earliest, latest)) = summary.times {
        push_attribute(&mut out, "earliest_at", &time::iso_seconds(earliest));
        push_attribute(&mut out, "latest_at", &time::iso_seconds(latest));
    }
    push_element_body(&mut out, summary.sources, summary.text);
    out.push_str("</summary>");
    out
}

/// Renders a summary as plain text between a first line with the attributes and a last line. Only
/// these two lines begin with a bracket, so that the text of a summary cannot imitate them.
#[must_use]
pub fn render_summary_plain(summary: &SummaryElement<'_>) -> String {
    let kind = if summary.depth == 0 { "leaf" } else { "condensed" };
    let SummaryElement { id, depth, descendant_count, .. } = summary;
    let mut out = format!("[summary {id}: {kind}, depth {depth}, {descendant_count} below it");
    if let Some((earliest, latest)) = summary.times {
        let [earliest, latest] = [earliest, latest].map(time::iso_seconds);
        out.push_str(&format!(", from {earliest}, to {latest}"));
    }
    append_plain_body(&mut out, summary.trust, id, summary.sources, summary.text);
    out
}

/// Renders a focus brief as plain text, in the form of [`render_summary_plain`].
pub fn render_focus_plain(id: &str, summaries: &[String], text: &str) -> String {
    let mut out = format!("[focus brief {id}");
    let sources: Vec<&str> = summaries.iter().map(String::as_str).collect();
    append_plain_body(&mut out, Trust::Untrusted, id, &sources, text);
    out
}

/// Appends the rest of the first line, the text and the last line. A backslash is put before each
/// line of the text that begins with a bracket, or with backslashes and then a bracket. So exactly
/// one backslash before a bracket comes from this function.
fn append_plain_body(out: &mut String, trust: Trust, id: &str, sources: &[&str], text: &str) {
    out.push_str(&format!(", {}", trust.as_str()));
    if !sources.is_empty() {
        out.push_str(&format!(", made from {}", sources.join(" ")));
    }
    out.push(']');
    for line in split_lines(text.trim()) {
        out.push('\n');
        if begins_with_bracket(line) {
            out.push(MARK);
        }
        out.push_str(line);
    }
    out.push_str(&format!("\n[end of {id}]"));
}

/// Renders a focus brief that replaces `summaries` as XML, escaped like a summary.
pub fn render_focus_xml(id: &str, summaries: &[String], text: &str) -> String {
    let mut out = String::from("<focus_brief");
    push_attribute(&mut out, "id", id);
    // The author of a brief may have read untrusted text.
    push_attribute(&mut out, "trust", Trust::Untrusted.as_str());
    push_element_body(&mut out, &summaries.iter().map(String::as_str).collect::<Vec<_>>(), text);
    out.push_str("</focus_brief>");
    out
}

/// Appends the end of an opening tag, the ids of sources and the content.
fn push_element_body(out: &mut String, sources: &[&str], text: &str) {
    out.push_str(">\n");
    if !sources.is_empty() {
        out.push_str("<parents>");
        for id in sources {
            out.push_str("<summary_ref");
            push_attribute(out, "id", id);
            out.push_str("/>");
        }
        out.push_str("</parents>\n");
    }
    out.push_str("<content>");
    // A quote in element content is not escaped, because an escape costs tokens.
    push_escaped(out, text.trim(), false);
    out.push_str("</content>\n");
}

fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(out, value, true);
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str, quotes: bool) {
    // 0xEF is the first byte of U+FFFE and U+FFFF, and never a later byte of a character.
    let is_special = |byte: &u8| matches!(byte, 0x00..=0x1F | b'&' | b'<' | b'>' | b'"' | 0xEF);
    let mut rest = text;
    while let Some(at) = rest.as_bytes().iter().position(is_special) {
        let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut chars = from.chars();
        match chars.next().unwrap_or('\u{FFFD}') {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if quotes => out.push_str("&quot;"),
            c @ ('\n' | '\r' | '\t') if !quotes => out.push(c),
            '\u{0}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}
