//! The payload that an outline describes, and the formats of payloads.
//!
//! [`super::build_outline`] takes a [`PayloadText`] and returns the [`PayloadFormat`].

/// A payload, and what its message declares about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadText<'a> {
    /// Name of the file; `None`: no file, or a file without a name.
    pub name: Option<&'a str>,
    /// Media type that the message declares; `None`: no type is declared.
    pub mime: Option<&'a str>,
    /// Beginning of the decoded text, about 1 MiB; the whole text if `is_whole`.
    pub head: &'a str,
    /// End of the decoded text, at most 16 KiB; empty if `is_whole`.
    pub tail: &'a str,
    /// Bytes of the whole payload.
    pub bytes: u64,
    /// Lines of the whole payload.
    pub lines: u64,
    /// Whether `head` is the whole text.
    pub is_whole: bool,
}

/// Format of a payload. Names of languages and image formats are as an outline shows them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadFormat {
    /// One JSON document, or one document per line.
    Json,
    /// Rows with columns separated by commas, semicolons or bars.
    Csv,
    /// Rows with columns separated by tabs.
    Tsv,
    /// YAML documents.
    Yaml,
    /// XML or HTML.
    Xml,
    /// Source code in the named language.
    Code(&'static str),
    /// Text with headings.
    Markdown,
    /// Lines with times or log levels.
    Log,
    /// A unified diff.
    Diff,
    /// An image in the named format, mostly as base64.
    Image(&'static str),
    /// Other binary data, as base64 or as bytes that were read as text.
    Binary,
    /// Any other text.
    Text,
}
