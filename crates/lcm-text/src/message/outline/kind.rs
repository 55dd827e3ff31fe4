//! What a payload is: by the ending of its name, else by its media type, else by what is in it.
//!
//! In: a payload. Out: its kind and a media type. A name or type that says only "text" or "bytes"
//! says nothing.

use super::{Kind, Payload, code, image, json, log, markup, prose, table};

/// Kinds with their media type, and endings of names and subtypes of media types that mean them.
const FORMATS: [(Kind, &str, &str); 17] = [
    (Kind::Json, "application/json", "json jsonl ndjson geojson ipynb jsonlines json-seq"),
    (Kind::Csv, "text/csv", "csv comma-separated-values"),
    (Kind::Tsv, "text/tab-separated-values", "tsv tab tab-separated-values"),
    (Kind::Yaml, "application/yaml", "yaml yml"),
    (Kind::Xml, "text/html", "html htm xhtml"),
    (Kind::Xml, "image/svg+xml", "svg"),
    (Kind::Xml, "application/xml", "xml xsd xsl rss atom plist pom"),
    (Kind::Markdown, "text/markdown", "md markdown mdx"),
    (Kind::Log, "text/plain", "log"),
    (Kind::Diff, "text/x-diff", "diff patch"),
    (Kind::Image("PNG"), "image/png", "png"),
    (Kind::Image("JPEG"), "image/jpeg", "jpg jpeg"),
    (Kind::Image("GIF"), "image/gif", "gif"),
    (Kind::Image("WebP"), "image/webp", "webp"),
    (Kind::Binary, "application/pdf", "pdf"),
    (Kind::Binary, "application/zip", "zip"),
    (Kind::Binary, "application/gzip", "gz gzip"),
];
/// Lines that are looked at.
const LINES_MAX: usize = 40;

/// The kind and media type of a payload.
pub(super) fn of(payload: &Payload<'_>) -> (Kind, &'static str) {
    payload.name.and_then(by_name).or_else(|| payload.mime.and_then(by_mime)).unwrap_or_else(|| {
        let kind = sniff(payload);
        let mime = match kind {
            Kind::Xml if !markup::is_html(payload.head) => "application/xml",
            Kind::Code(name) => code::mime(name),
            Kind::Binary => image::mime(payload.head),
            _ => FORMATS.iter().find(|format| format.0 == kind).map_or("text/plain", |it| it.1),
        };
        (kind, mime)
    })
}

/// What a name ending or a subtype, in lower case, stands for.
fn named(word: &str) -> Option<(Kind, &'static str)> {
    let format = FORMATS.iter().find(|format| format.2.split(' ').any(|name| name == word));
    format.map(|format| (format.0, format.1)).or_else(|| code::named(word))
}

fn by_name(name: &str) -> Option<(Kind, &'static str)> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, ending)) => named(&ending.to_ascii_lowercase()),
        // A tool may be called like an ending.
        None => named(file).filter(|_| file.starts_with(|c: char| c.is_ascii_uppercase())),
    }
}

fn by_mime(mime: &str) -> Option<(Kind, &'static str)> {
    let mime = mime.split(';').next().unwrap_or(mime).trim().to_ascii_lowercase();
    let (class, subtype) = mime.split_once('/')?;
    let bare = subtype.strip_prefix("x-").unwrap_or(subtype);
    let found = named(bare).or_else(|| named(bare.rsplit('+').next().unwrap_or(bare)));
    let unknown = match class {
        "image" => Some((Kind::Image("unknown"), "application/octet-stream")),
        "audio" | "video" => Some((Kind::Binary, "application/octet-stream")),
        _ => None,
    };
    found.or(unknown)
}

fn sniff(payload: &Payload<'_>) -> Kind {
    let text = payload.head.trim_start();
    if let Some(kind) = image::sniff(text) {
        return kind;
    }
    if let Some(interpreter) = text.strip_prefix("#!").and_then(|text| text.lines().next()) {
        let words = interpreter.split(['/', ' ']);
        let version = |c: char| c.is_ascii_digit() || c == '.';
        let mut languages = words.filter_map(|word| code::named(word.trim_end_matches(version)));
        if let Some((kind, _)) = languages.next() {
            return kind;
        }
    }
    if text.starts_with(['{', '[']) && json::is_json(text, payload.is_whole) {
        return Kind::Json;
    }
    if is_diff(text) {
        return Kind::Diff;
    }
    if markup::is_markup(text) {
        return Kind::Xml;
    }
    if log::is_log(text) {
        return Kind::Log;
    }
    match table::separator(text, payload.is_whole) {
        Some(b'\t') => return Kind::Tsv,
        Some(_) => return Kind::Csv,
        None => {}
    }
    if markup::is_yaml(text) {
        Kind::Yaml
    } else if is_markdown(text) {
        Kind::Markdown
    } else {
        Kind::Text
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
