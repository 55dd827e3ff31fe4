//! Detects the format of a payload.
//!
//! In: a payload. Out: its format and media type. The extension of the name decides; without a
//! known extension the declared media type decides, and otherwise the content. Generic types such
//! as `text/plain` and `application/octet-stream` are ignored.

use crate::message::outline::{
    code, image, json, log, markup,
    payload_text::{PayloadFormat, PayloadText},
    prose, table,
};

/// A format with its media type, its file extensions and its media subtypes.
struct FormatRow {
    format: PayloadFormat,
    mime: &'static str,
    /// File extensions and media subtypes, separated by spaces.
    words: &'static str,
}

/// Makes a row of [`FORMATS`].
const fn format_row(format: PayloadFormat, mime: &'static str, words: &'static str) -> FormatRow {
    FormatRow { format, mime, words }
}

/// Known formats other than programming languages.
const FORMATS: [FormatRow; 17] = [
    format_row(
        PayloadFormat::Json,
        "application/json",
        "json jsonl ndjson geojson ipynb jsonlines json-seq",
    ),
    format_row(PayloadFormat::Csv, "text/csv", "csv comma-separated-values"),
    format_row(PayloadFormat::Tsv, "text/tab-separated-values", "tsv tab tab-separated-values"),
    format_row(PayloadFormat::Yaml, "application/yaml", "yaml yml"),
    format_row(PayloadFormat::Xml, "text/html", "html htm xhtml"),
    format_row(PayloadFormat::Xml, "image/svg+xml", "svg"),
    format_row(PayloadFormat::Xml, "application/xml", "xml xsd xsl rss atom plist pom"),
    format_row(PayloadFormat::Markdown, "text/markdown", "md markdown mdx"),
    format_row(PayloadFormat::Log, "text/plain", "log"),
    format_row(PayloadFormat::Diff, "text/x-diff", "diff patch"),
    format_row(PayloadFormat::Image("PNG"), "image/png", "png"),
    format_row(PayloadFormat::Image("JPEG"), "image/jpeg", "jpg jpeg"),
    format_row(PayloadFormat::Image("GIF"), "image/gif", "gif"),
    format_row(PayloadFormat::Image("WebP"), "image/webp", "webp"),
    format_row(PayloadFormat::Binary, "application/pdf", "pdf"),
    format_row(PayloadFormat::Binary, "application/zip", "zip"),
    format_row(PayloadFormat::Binary, "application/gzip", "gz gzip"),
];
/// Most lines of the content that are examined for a diff or Markdown.
const LINES_MAX: usize = 40;

/// Returns the format and media type of a payload.
pub(super) fn detect_format(payload: &PayloadText<'_>) -> (PayloadFormat, &'static str) {
    payload
        .name
        .and_then(format_by_name)
        .or_else(|| payload.mime.and_then(format_by_mime))
        .unwrap_or_else(|| {
            let kind = sniff_format(payload);
            let mime = match kind {
                PayloadFormat::Xml if !markup::is_html(payload.head) => "application/xml",
                PayloadFormat::Code(name) => code::language_mime(name),
                PayloadFormat::Binary => image::binary_mime(payload.head),
                _ => FORMATS
                    .iter()
                    .find(|row| row.format == kind)
                    .map_or("text/plain", |row| row.mime),
            };
            (kind, mime)
        })
}

/// Returns the format and media type of a file extension or media subtype in lower case; `None`:
/// unknown.
fn find_format(word: &str) -> Option<(PayloadFormat, &'static str)> {
    let row = FORMATS.iter().find(|row| row.words.split(' ').any(|name| name == word));
    row.map(|row| (row.format, row.mime)).or_else(|| code::find_language(word))
}

/// Returns the format and media type of a file by its extension; `None`: unknown.
fn format_by_name(name: &str) -> Option<(PayloadFormat, &'static str)> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, ending)) => find_format(&ending.to_ascii_lowercase()),
        // A name without a dot is looked up only if it begins in upper case, because common words
        // can equal an extension. The words of the tables are in lower case.
        None => find_format(file).filter(|_| file.starts_with(|c: char| c.is_ascii_uppercase())),
    }
}

/// Returns the format and media type for a declared media type; `None`: unknown.
fn format_by_mime(mime: &str) -> Option<(PayloadFormat, &'static str)> {
    let mime = mime.split(';').next().unwrap_or(mime).trim().to_ascii_lowercase();
    let (class, subtype) = mime.split_once('/')?;
    let bare = subtype.strip_prefix("x-").unwrap_or(subtype);
    let found = find_format(bare).or_else(|| find_format(bare.rsplit('+').next().unwrap_or(bare)));
    let unknown = match class {
        "image" => Some((PayloadFormat::Image("unknown"), "application/octet-stream")),
        "audio" | "video" => Some((PayloadFormat::Binary, "application/octet-stream")),
        _ => None,
    };
    found.or(unknown)
}

/// Returns the format of a payload by its content.
fn sniff_format(payload: &PayloadText<'_>) -> PayloadFormat {
    let text = payload.head.trim_start();
    if let Some(kind) = image::detect_binary(text) {
        return kind;
    }
    if let Some(interpreter) = text.strip_prefix("#!").and_then(|text| text.lines().next()) {
        let words = interpreter.split(['/', ' ']);
        let version = |c: char| c.is_ascii_digit() || c == '.';
        let mut languages =
            words.filter_map(|word| code::find_language(word.trim_end_matches(version)));
        if let Some((kind, _)) = languages.next() {
            return kind;
        }
    }
    if text.starts_with(['{', '[']) && json::is_json(text, payload.is_whole) {
        return PayloadFormat::Json;
    }
    if is_diff(text) {
        return PayloadFormat::Diff;
    }
    if markup::is_markup(text) {
        return PayloadFormat::Xml;
    }
    if log::is_log(text) {
        return PayloadFormat::Log;
    }
    match table::detect_separator(text, payload.is_whole) {
        Some(b'\t') => return PayloadFormat::Tsv,
        Some(_) => return PayloadFormat::Csv,
        None => {}
    }
    if markup::is_yaml(text) {
        PayloadFormat::Yaml
    } else if is_markdown(text) {
        PayloadFormat::Markdown
    } else {
        PayloadFormat::Text
    }
}

/// Returns whether one of the first lines of a text begins a file of a unified diff.
fn is_diff(text: &str) -> bool {
    let mut before = "";
    text.lines().take(LINES_MAX).any(|line| {
        let files = before.starts_with("--- ") && line.starts_with("+++ ");
        before = line;
        files || line.starts_with("diff --git ")
    })
}

/// Returns whether a text has several headings, or one heading and other Markdown.
fn is_markdown(text: &str) -> bool {
    let lines = || text.lines().take(LINES_MAX);
    // Comments with `#` look like headings, so a heading counts only before an empty line.
    let pairs = lines().zip(lines().skip(1).chain([""]));
    let headings = pairs.filter(|(line, next)| next.is_empty() && prose::is_heading(line)).count();
    let marked = |line: &str| {
        ["```", "- ", "* ", "1. ", "> ", "| "].iter().any(|mark| line.starts_with(mark))
            || line.contains("](")
            || line.contains("**")
    };
    headings > 1 || (headings == 1 && lines().any(marked))
}
