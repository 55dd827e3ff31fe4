//! Conversion of files, images and documents between dialects, and writers of JSON objects.
//!
//! In: a part or block with a file. Out: the name, type, text and bytes of the file, or its URL.
//! From these, the block for another dialect, or `None` if that dialect has no block for the file.

use alloc::{borrow::Cow, format, string::String};

use super::tool_output;
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, JsonObject, Part, provider_limits, provider_members::dedup_members},
    types::api::Dialect,
};

/// Media types of recordings that Chat Completions accepts, as WAV or MP3.
const RECORDING_TYPES: [&str; 4] = ["audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg"];
/// Media type of a PDF.
const PDF: &str = "application/pdf";

/// A file in a message: its content, or a link to it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct FileContent<'a> {
    /// Name; empty: unknown.
    pub(super) name: Cow<'a, str>,
    /// Media type; empty: unknown.
    pub(super) mime: Cow<'a, str>,
    pub(super) text: Option<Cow<'a, str>>,
    /// Bytes of the file, in Base64; `None`: the file is a text or a URL.
    pub(super) data: Option<Cow<'a, str>>,
    /// URL of the file, and whether the file is an image; `None`: the message has the content.
    pub(super) url: Option<(Cow<'a, str>, bool)>,
    /// Whether the block was a search result, whose source no file part can express.
    is_search_result: bool,
}

/// Reads the file in a block: its content, or its URL.
///
/// `None`: the block has no file, or names a file that only the provider holds (`file_id`).
/// `part`: the part that was read from this block; `whole`: span of the block in `raw`.
pub(super) fn read<'a>(
    dialect: Dialect,
    raw: &'a str,
    part: &Part,
    whole: ByteSpan,
) -> Option<FileContent<'a>> {
    let text = |span: Option<ByteSpan>| span.map(|span| json::text(raw, span));
    let Part::File { name, mime, text: content, data } = *part else {
        return read_linked(dialect, raw, whole);
    };
    let mut file = FileContent {
        name: text(name).unwrap_or_default(),
        mime: text(mime).unwrap_or_default(),
        text: content.map(|span| match json::kind(raw, span) {
            JsonKind::String => json::text(raw, span),
            _ => Cow::Owned(tool_output::join_text(json::slice_span(raw, span)).0),
        }),
        data: text(data),
        url: None,
        is_search_result: false,
    };
    let block =
        || JsonObject::from_value(raw, JsonValue { span: whole, kind: json::kind(raw, whole) });
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiResponses => {
            if let Some(audio) = block().and_then(|block| block.get_object("input_audio")) {
                file.mime = Cow::Owned(format!("audio/{}", audio.get_text("format")));
            }
        }
        // A search result always has text.
        Dialect::Anthropic if content.is_some() => {
            if let Some(block) = block().filter(|block| block.get_text("type") == "search_result") {
                let source = block.get_text("source");
                if file.name != source {
                    file.name = Cow::Owned(format!("{} {source}", file.name));
                }
                file.is_search_result = true;
            }
        }
        _ => {}
    }
    file.split_data_url();
    Some(file)
}

/// Reads the file of a media block in tool output, in any dialect except `gemini`; `None`: no file.
pub(super) fn read_media(media: &str) -> Option<FileContent<'_>> {
    let whole = ByteSpan::from_range(0, media.len());
    let block =
        JsonObject::from_value(media, JsonValue { span: whole, kind: json::kind(media, whole) })?;
    if block.get_text("type") == "input_file" && block.get_string("file_data").is_some() {
        let (name, data) = (block.get_text("filename"), Some(block.get_text("file_data")));
        let mut file = FileContent { name, data, ..FileContent::default() };
        file.split_data_url();
        return Some(file);
    }
    if let Some(source) =
        block.get_object("source").filter(|source| source.get_text("type") == "base64")
    {
        let (mime, data) = (source.get_text("media_type"), Some(source.get_text("data")));
        return Some(FileContent { mime, data, ..FileContent::default() });
    }
    let dialects =
        [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AiSdk];
    dialects.into_iter().find_map(|dialect| read_linked(dialect, media, whole))
}

/// Reads the URL of an image or document in a block; a data URL becomes bytes. `None`: no URL.
fn read_linked(dialect: Dialect, raw: &str, whole: ByteSpan) -> Option<FileContent<'_>> {
    let block =
        JsonObject::from_value(raw, JsonValue { span: whole, kind: json::kind(raw, whole) })?;
    let kind = block.get_text("type");
    let (url, is_image) = match (dialect, &*kind) {
        (Dialect::Anthropic, "image" | "document") => {
            let source = block.get_object("source")?;
            (source.get_string("url")?, kind == "image")
        }
        (Dialect::OpenaiChat, "image_url") => {
            let url = match block.get_object("image_url") {
                Some(image) => image.get_string("url")?,
                None => block.get_string("image_url")?,
            };
            (url, true)
        }
        (Dialect::OpenaiResponses, "input_image" | "computer_screenshot") => {
            (block.get_string("image_url")?, true)
        }
        (Dialect::OpenaiResponses, "input_file") => (block.get_string("file_url")?, false),
        (Dialect::Gemini, _) => {
            let data = message::get_object_either(&block, "fileData", "file_data")?;
            let mime = match data.get_text("mimeType") {
                mime if mime.is_empty() => data.get_text("mime_type"),
                mime => mime,
            };
            let url = data.get_string("fileUri").or_else(|| data.get_string("file_uri"))?;
            let url = Some((read_url(raw, url)?, mime.starts_with("image/")));
            return Some(FileContent { mime, url, ..FileContent::default() });
        }
        _ if dialect.is_framework() => return read_media_block(raw, &block),
        _ => return None,
    };
    Some(link_file(FileContent::default(), read_url(raw, url)?, is_image))
}

/// Reads the file in a block of a framework or of the Model Context Protocol; `None`: no file.
fn read_media_block<'a>(raw: &'a str, block: &JsonObject<'a>) -> Option<FileContent<'a>> {
    let (name, mime, data) = message::find_media(block)?;
    let text = |span: Option<ByteSpan>| span.map(|span| json::text(raw, span)).unwrap_or_default();
    let file = FileContent { name: text(name), mime: text(mime), ..FileContent::default() };
    let is_image = file.mime.starts_with("image") || block.get_text("type").contains("image");
    Some(link_file(file, read_url(raw, data)?, is_image))
}

/// Sets the content of a file: Base64, a data URL, or a link.
fn link_file<'a>(
    mut file: FileContent<'a>,
    content: Cow<'a, str>,
    is_image: bool,
) -> FileContent<'a> {
    let is_bare = !content.starts_with("data:") && file.mime.is_empty();
    if content.starts_with("http") || is_bare {
        file.url = Some((content, is_image));
    } else {
        file.data = Some(content);
        file.split_data_url();
    }
    file
}

/// Returns the URL in a string; `None`: the string is empty.
fn read_url(raw: &str, url: ByteSpan) -> Option<Cow<'_, str>> {
    Some(json::text(raw, url)).filter(|url| !url.is_empty())
}

impl<'a> FileContent<'a> {
    /// Replaces a data URL in `data` by its bytes. Its type becomes the type of a file without a
    /// type.
    fn split_data_url(&mut self) {
        let Some(data) = self.data.as_deref() else { return };
        let Some((mime, bytes)) = data.strip_prefix("data:").and_then(|url| url.split_once(','))
        else {
            return;
        };
        let (mime, bytes) = (mime.split(';').next().unwrap_or_default(), String::from(bytes));
        if self.mime.is_empty() {
            self.mime = Cow::Owned(String::from(mime));
        }
        self.data = Some(Cow::Owned(bytes));
    }

    /// Returns the bytes, in Base64. `None`: the file has no bytes, or has another type than
    /// `types`.
    fn data_of_types(&self, types: &[&str]) -> Option<&str> {
        self.data.as_deref().filter(|_| types.contains(&&*self.mime))
    }

    /// Returns the link, if a provider fetches it.
    fn web_url(&self) -> Option<&(Cow<'a, str>, bool)> {
        self.url.as_ref().filter(|(url, _)| provider_limits::is_web_address(url))
    }

    /// Returns the text of the file below its title; `None`: the text is absent or blank.
    pub(super) fn titled_text(&self) -> Option<String> {
        let text = self.text.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(format!("{}\n{text}", self.display_title()))
    }

    /// Returns the title `file NAME (TYPE)`; an unknown name or type is omitted.
    pub(super) fn display_title(&self) -> String {
        let mut out = String::from("file");
        for word in self.name.split_whitespace() {
            out.push(' ');
            out.push_str(word);
        }
        if !self.mime.trim().is_empty() {
            out.push_str(&format!(" ({})", self.mime.trim()));
        }
        out
    }

    /// Writes the block of an `anthropic` user message; `None`: no block can hold the file.
    pub(super) fn to_anthropic(&self) -> Option<String> {
        let mut out = String::new();
        if let Some(data) =
            self.data_of_types(&provider_limits::IMAGE_TYPES).or_else(|| self.data_of_types(&[PDF]))
        {
            let kind = if self.mime == PDF { "document" } else { "image" };
            out.push_str(&format!("{{\"type\":\"{kind}\",\"source\":{{\"type\":\"base64\""));
            push_field(&mut out, "media_type", &self.mime);
            push_field(&mut out, "data", data);
            out.push('}');
            if kind == "document" && !self.name.trim().is_empty() {
                push_field(&mut out, "title", &self.name);
            }
        } else if let Some((url, is_image)) = self.web_url() {
            let kind = if *is_image { "image" } else { "document" };
            out.push_str(&format!("{{\"type\":\"{kind}\",\"source\":{{\"type\":\"url\""));
            push_field(&mut out, "url", url);
            out.push('}');
        } else {
            out.push_str("{\"type\":\"text\"");
            push_field(&mut out, "text", &self.titled_text()?);
        }
        out.push('}');
        Some(out)
    }

    /// Writes the part of an `openai-chat` user message; `None`: no part can hold the file.
    pub(super) fn to_openai_chat(&self) -> Option<String> {
        let mut out = String::new();
        let url = |mime: &str, data: &str| format!("data:{mime};base64,{data}");
        if let Some(data) = self.data_of_types(&provider_limits::IMAGE_TYPES) {
            out.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
            json::write_string(&mut out, &url(&self.mime, data));
            out.push('}');
        } else if let Some((url, true)) = self.web_url() {
            out.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
            json::write_string(&mut out, url);
            out.push('}');
        } else if let Some(data) = self.data_of_types(&[PDF]) {
            let name = if self.name.trim().is_empty() { "file.pdf" } else { &self.name };
            out.push_str("{\"type\":\"file\",\"file\":{\"filename\":");
            json::write_string(&mut out, name);
            push_field(&mut out, "file_data", &url(PDF, data));
            out.push('}');
        } else if let Some(data) = self.data_of_types(&RECORDING_TYPES) {
            out.push_str("{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
            json::write_string(&mut out, data);
            // `audio/mpeg` is the registered type of MP3.
            push_field(&mut out, "format", if self.mime.ends_with("wav") { "wav" } else { "mp3" });
            out.push('}');
        } else {
            out.push_str("{\"type\":\"text\"");
            push_field(&mut out, "text", &self.titled_text()?);
        }
        out.push('}');
        Some(out)
    }

    /// Writes the part of an `openai-responses` user message; `None`: no part can hold the file.
    pub(super) fn to_openai_responses(&self) -> Option<String> {
        let mut out = String::from("{\"type\":");
        let url = |data: &str| format!("data:{};base64,{data}", self.mime);
        if let Some(data) = self.data_of_types(&provider_limits::IMAGE_TYPES) {
            out.push_str("\"input_image\",\"detail\":\"auto\"");
            push_field(&mut out, "image_url", &url(data));
        } else if let Some((url, is_image)) = self.web_url() {
            let (kind, key) = if *is_image { ("image", "image_url") } else { ("file", "file_url") };
            let detail = if *is_image { ",\"detail\":\"auto\"" } else { "" };
            out.push_str(&format!("\"input_{kind}\"{detail}"));
            push_field(&mut out, key, url);
        } else if let Some(data) = self.data_of_types(&[PDF]) {
            let name = if self.name.trim().is_empty() { "file.pdf" } else { &self.name };
            out.push_str("\"input_file\"");
            push_field(&mut out, "filename", name);
            push_field(&mut out, "file_data", &url(data));
        } else {
            out.push_str("\"input_text\"");
            push_field(&mut out, "text", &self.titled_text()?);
        }
        out.push('}');
        Some(out)
    }

    /// Writes the part of a `gemini` content; `None`: no part can hold the file.
    pub(super) fn to_gemini(&self) -> Option<String> {
        let mut out = String::new();
        let kind = self.mime.split('/').next().unwrap_or_default();
        let is_media = ["image", "audio", "video", "text"].contains(&kind) || self.mime == PDF;
        let holds_bytes = |data: &&str| !data.trim().is_empty();
        if let Some(data) = self.data.as_deref().filter(holds_bytes).filter(|_| is_media) {
            out.push_str("{\"inlineData\":{\"mimeType\":");
            json::write_string(&mut out, &self.mime);
            push_field(&mut out, "data", data);
            out.push('}');
        } else if let Some((url, _)) = &self.url {
            out.push_str("{\"fileData\":{\"fileUri\":");
            json::write_string(&mut out, url);
            if !self.mime.is_empty() {
                push_field(&mut out, "mimeType", &self.mime);
            }
            out.push('}');
        } else {
            out.push_str("{\"text\":");
            json::write_string(&mut out, &self.titled_text()?);
        }
        out.push('}');
        Some(out)
    }

    /// Writes the part of an `lcm` message; `None`: the file is a URL, or a search result.
    pub(super) fn to_lcm(&self) -> Option<String> {
        if self.url.is_some() || self.is_search_result {
            return None;
        }
        let mut out = String::from("{\"type\":\"file\"");
        let fields = [
            ("name", Some(&self.name).filter(|name| !name.is_empty())),
            ("mime", Some(&self.mime).filter(|mime| !mime.is_empty())),
            ("text", self.text.as_ref()),
            ("data", self.data.as_ref()),
        ];
        for (key, value) in fields {
            if let Some(value) = value {
                push_field(&mut out, key, value);
            }
        }
        out.push('}');
        Some(out)
    }
}

/// Appends a member with a string value to an object that already has members.
pub(super) fn push_field(out: &mut String, key: &str, value: &str) {
    out.push_str(",\"");
    out.push_str(key);
    out.push_str("\":");
    json::write_string(out, value);
}

/// Writes an object with these members changed: to a JSON value, or left out (`None`). New members
/// are appended; of equal keys only the last member is written.
pub(super) fn write_members(json: &str, changes: &[(&str, Option<&str>)]) -> String {
    let object = JsonObject::new(json, json::parse_object(json).unwrap_or_default());
    let mut out = String::new();
    let mut push = |key: &str, value: &str| {
        out.push_str(if out.is_empty() { "{" } else { "," });
        out.push_str(key);
        out.push(':');
        out.push_str(value);
    };
    let mut added = changes.to_vec();
    for (key, member) in dedup_members(json, &object) {
        let change = added.iter().position(|(changed, _)| *changed == key);
        let value = match change.map(|at| added.remove(at)) {
            Some((_, value)) => value,
            None => Some(json::slice_span(json, member.value)),
        };
        if let Some(value) = value {
            push(json::slice_span(json, member.key), value);
        }
    }
    for (key, value) in added {
        if let Some(value) = value {
            push(&quote_text(key), value);
        }
    }
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    out
}

/// Writes a text as JSON.
pub(super) fn quote_text(text: &str) -> String {
    let mut out = String::new();
    json::write_string(&mut out, text);
    out
}

/// Returns whether a value starts as an object.
pub(super) fn is_object(value: &str) -> bool {
    json::kind(value, ByteSpan::from_range(0, value.len())) == JsonKind::Object
}
