//! Builds the outline of a large payload without a model: what the payload is and where to look in
//! it.
//!
//! In: the beginning and the end of a decoded payload, its name and its media type. Out: its
//! format, a media type, and a text of 1 to [`TOKENS_MAX`] tokens. Equal payloads have equal
//! outlines. Time is linear, and no function recurses. [`crate::message::large_payload`] decides
//! which payloads are large; `lcm-core` stores outlines.

mod code;
mod diff;
mod format_detection;
mod image;
mod json;
mod log;
mod markup;
mod outline_writer;
mod payload_text;
mod prose;
mod table;

use alloc::string::String;

use self::outline_writer::OutlineWriter;
pub use self::payload_text::PayloadFormat;
pub(crate) use self::payload_text::PayloadText;

/// Most tokens of an outline, by [`crate::base::tokens::estimate`].
pub const TOKENS_MAX: u32 = 240;

/// Outline of a payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outline {
    /// Format of the payload.
    pub kind: PayloadFormat,
    /// Media type of the format; used if the message declares no media type.
    pub mime: &'static str,
    /// Text of the outline, 1 to [`TOKENS_MAX`] tokens.
    pub text: String,
}

/// Builds the outline of a payload.
pub(crate) fn build_outline(payload: &PayloadText<'_>) -> Outline {
    let head = payload.head.strip_prefix('\u{feff}').unwrap_or(payload.head);
    let payload = &PayloadText { head, ..*payload };
    let (kind, mime) = format_detection::detect_format(payload);
    let mut writer = OutlineWriter::new(TOKENS_MAX);
    match kind {
        PayloadFormat::Json => json::outline_json(&mut writer, payload),
        PayloadFormat::Csv | PayloadFormat::Tsv => table::outline_table(&mut writer, payload, kind),
        PayloadFormat::Yaml => markup::outline_yaml(&mut writer, payload),
        PayloadFormat::Xml => markup::outline_tags(&mut writer, payload),
        PayloadFormat::Code(name) => code::outline_code(&mut writer, payload, name),
        PayloadFormat::Markdown => prose::outline_text(&mut writer, payload, "Markdown"),
        PayloadFormat::Log => log::outline_log(&mut writer, payload),
        PayloadFormat::Diff => diff::outline_diff(&mut writer, payload),
        PayloadFormat::Image(_) | PayloadFormat::Binary => {
            image::outline_binary(&mut writer, payload, kind)
        }
        PayloadFormat::Text => prose::outline_text(&mut writer, payload, "Text"),
    }
    Outline { kind, mime, text: writer.into_text() }
}

#[cfg(test)]
mod tests;
