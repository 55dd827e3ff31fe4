//! What a large payload is and where to look in it, told in about 200 tokens without a model.
//!
//! In: the beginning and the end of a decoded payload and what the host says about it. Out: its
//! kind, a media type, and a text that is never empty and never above [`TOKENS_MAX`]. The same
//! payload gives the same text; time is linear, memory bounded by what is shown, and nothing
//! recurses. Not here: what is large, and where payload and text are kept.

mod code;
mod diff;
mod format_detection;
mod image;
mod json;
mod log;
mod markup;
mod outline_writer;
mod prose;
mod table;

use alloc::string::String;

use self::outline_writer::OutlineWriter;

/// Most tokens of the text, as `tokens::estimate` counts.
pub const TOKENS_MAX: u32 = 240;

/// What is known of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadText<'a> {
    /// Name of the file or tool, as the host gives it.
    pub name: Option<&'a str>,
    /// Declared media type.
    pub mime: Option<&'a str>,
    /// Beginning of the decoded text, at most 1 MiB; all of it when `is_whole`.
    pub head: &'a str,
    /// End of the text, at most 16 KiB; empty when `is_whole`.
    pub tail: &'a str,
    /// Bytes of the whole payload.
    pub bytes: u64,
    /// Lines of the whole payload.
    pub lines: u64,
    /// Whether `head` is everything.
    pub is_whole: bool,
}

/// What a payload is. Names of languages and image formats are as people write them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadFormat {
    /// One JSON document, or one per line.
    Json,
    /// Rows with commas, semicolons or bars between their columns.
    Csv,
    /// Rows with tabs between their columns.
    Tsv,
    /// YAML documents.
    Yaml,
    /// XML or HTML.
    Xml,
    /// Source text in a language.
    Code(&'static str),
    /// Text with headings.
    Markdown,
    /// Lines with times or levels.
    Log,
    /// A unified diff.
    Diff,
    /// An image of a format, in base64.
    Image(&'static str),
    /// Bytes that are no text, in base64 or not.
    Binary,
    /// Any other text.
    Text,
}

/// What was found out about a payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outline {
    /// What it is.
    pub kind: PayloadFormat,
    /// Media type, for a payload of which none was declared.
    pub mime: &'static str,
    /// The summary, 1 to [`TOKENS_MAX`] tokens.
    pub text: String,
}

/// Explores a payload.
pub(crate) fn build_outline(payload: &PayloadText<'_>) -> Outline {
    let head = payload.head.strip_prefix('\u{feff}').unwrap_or(payload.head);
    let payload = &PayloadText { head, ..*payload };
    let (kind, mime) = format_detection::detect_format(payload);
    let mut sheet = OutlineWriter::new(TOKENS_MAX);
    match kind {
        PayloadFormat::Json => json::outline_json(&mut sheet, payload),
        PayloadFormat::Csv | PayloadFormat::Tsv => {
            table::outline_table(&mut sheet, payload, kind == PayloadFormat::Tsv)
        }
        PayloadFormat::Yaml => markup::outline_yaml(&mut sheet, payload),
        PayloadFormat::Xml => markup::outline_tags(&mut sheet, payload),
        PayloadFormat::Code(name) => code::outline_code(&mut sheet, payload, name),
        PayloadFormat::Markdown => prose::outline_text(&mut sheet, payload, "Markdown"),
        PayloadFormat::Log => log::outline_log(&mut sheet, payload),
        PayloadFormat::Diff => diff::outline_diff(&mut sheet, payload),
        PayloadFormat::Image(_) | PayloadFormat::Binary => {
            image::outline_binary(&mut sheet, payload, kind)
        }
        PayloadFormat::Text => prose::outline_text(&mut sheet, payload, "Text"),
    }
    Outline { kind, mime, text: sheet.into_text() }
}

#[cfg(test)]
mod tests;
