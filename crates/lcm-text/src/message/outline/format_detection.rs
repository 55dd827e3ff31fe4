//! What a payload is: by the ending of its name, else by its media type, else by what is in it.
//!
//! In: a payload. Out: its kind and a media type. A name or type that says only "text" or "bytes"
//! says nothing.

use crate::message::outline::{
    code, image, json, log, markup,
    payload_text::{PayloadFormat, PayloadText},
    prose, table,
};

/// Kinds with their media type, and endings of names and subtypes of media types that mean them.
const FORMATS: [(PayloadFormat, &str, &str); 17] = [
    (PayloadFormat::Json, "application/json", "json jsonl ndjson geojson ipynb jsonlines json-seq"),
    (PayloadFormat::Csv, "text/csv", "csv comma-separated-values"),
    (PayloadFormat::Tsv, "text/tab-separated-values", "tsv tab tab-separated-values"),
    (PayloadFormat::Yaml, "application/yaml", "yaml yml"),
    (PayloadFormat::Xml, "text/html", "html htm xhtml"),
    (PayloadFormat::Xml, "image/svg+xml", "svg"),
    (PayloadFormat::Xml, "application/xml", "xml xsd xsl rss atom plist pom"),
    (PayloadFormat::Markdown, "text/markdown", "md markdown mdx"),
    (PayloadFormat::Log, "text/plain", "log"),
    (PayloadFormat::Diff, "text/x-diff", "diff patch"),
    (PayloadFormat::Image("PNG"), "image/png", "png"),
    (PayloadFormat::Image("JPEG"), "image/jpeg", "jpg jpeg"),
    (PayloadFormat::Image("GIF"), "image/gif", "gif"),
    (PayloadFormat::Image("WebP"), "image/webp", "webp"),
    (PayloadFormat::Binary, "application/pdf", "pdf"),
    (PayloadFormat::Binary, "application/zip", "zip"),
    (PayloadFormat::Binary, "application/gzip", "gz gzip"),
];
/// Lines that are looked at.
const LINES_MAX: usize = 40;

/// The kind and media type of a payload.
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
                _ => FORMATS.iter().find(|format| format.0 == kind).map_or("text/plain", |it| it.1),
            };
            (kind, mime)
        })
}

/// What a name ending or a subtype, in lower case, stands for.
fn find_format(word: &str) -> Option<(PayloadFormat, &'static str)> {
    let format = FORMATS.iter().find(|format| format.2.split(' ').any(|name| name == word));
    format.map(|format| (format.0, format.1)).or_else(|| code::find_language(word))
}

fn format_by_name(name: &str) -> Option<(PayloadFormat, &'static str)> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, ending)) => find_format(&ending.to_ascii_lowercase()),
        // A tool may be called like an ending.
        None => find_format(file).filter(|_| file.starts_with(|c: char| c.is_ascii_uppercase())),
    }
}

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

fn is_diff(text: &str) -> bool {
    let mut before = "";
    text.lines().take(LINES_MAX).any(|line| {
        let files = before.starts_with("--- ") && line.starts_with("+++ ");
        before = line;
        files || line.starts_with("diff --git ")
    })
}

fn is_markdown(text: &str) -> bool {
    let lines = || text.lines().take(LINES_MAX);
    // Comments look like headings, but no blank line follows them.
    let pairs = lines().zip(lines().skip(1).chain([""]));
    let headings = pairs.filter(|(line, next)| next.is_empty() && prose::is_heading(line)).count();
    let marked = |line: &str| {
        ["```", "- ", "* ", "1. ", "> ", "| "].iter().any(|mark| line.starts_with(mark))
            || line.contains("](")
            || line.contains("**")
    };
    headings > 1 || (headings == 1 && lines().any(marked))
}
