//! Builds messages of the dialect `lcm` from records, and collects them with their branches.
//!
//! In: values of a record, from a reader. Out: the text of a message, and [`SessionContent`]
//! with entry ids. The readers of all formats but Claude Code, Codex and `OpenClaw` use this
//! module.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{
    Branch, FileMessage, SessionContent,
    entries::{Ids, SkippedCounts},
    line::{self, Object, Text},
};

/// Collector of the messages of a file.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) ids: Ids,
    pub(super) left: SkippedCounts,
    found: SessionContent,
    branches: Branches,
    /// Whether the next messages belong to a branch.
    is_aside: bool,
    /// Entry id of the message that the next message of a branch follows.
    after: Option<String>,
}

/// What a record of a model's turn has, in order.
pub(super) enum Piece {
    /// A part of an answer.
    Part(String),
    /// The result of a call, as a part.
    Result(String),
}

/// A message that a record becomes.
pub(super) struct Draft<'a> {
    /// Own id of the record; `None`: the id is a hash of its line.
    pub(super) id: Option<&'a str>,
    /// Time of the record as JSON; `None`: the record has none.
    pub(super) time: Option<&'a str>,
    pub(super) role: &'static str,
    /// Parts of the dialect `lcm`, each a JSON text.
    pub(super) parts: Vec<String>,
    /// Members of the record for which the dialect has no name, as a JSON object; empty: none.
    pub(super) source: String,
}

impl<'a> Draft<'a> {
    /// Creates a message without parts.
    pub(super) const fn new(role: &'static str) -> Self {
        Self { id: None, time: None, role, parts: Vec::new(), source: String::new() }
    }

    /// Sets the id and the time.
    pub(super) fn with_id(self, id: Option<&'a str>, time: Option<&'a str>) -> Self {
        Self { id, time, ..self }
    }

    /// Sets the parts.
    pub(super) fn with_parts(self, parts: Vec<String>) -> Self {
        Self { parts, ..self }
    }

    /// Sets the members that the dialect does not name.
    pub(super) fn with_source(self, object: &Object<'_>, but: &[&str]) -> Self {
        let source = Text::default().rest(object, but).end();
        Self { source: if source == "{}" { String::new() } else { source }, ..self }
    }
}

impl Collector {
    /// Adds a message of the record `line` at this index, and returns its entry id; `None`: the
    /// message has no parts and was not added.
    pub(super) fn push(&mut self, index: usize, line: &str, draft: &Draft<'_>) -> Option<String> {
        if draft.parts.is_empty() {
            return None;
        }
        let (id, message) = self.build_message(index, line, draft);
        if self.is_aside {
            let after = self.after.replace(id.clone());
            self.branches.push(&id, message, after);
        } else {
            self.found.messages.push(message);
        }
        Some(id)
    }

    /// Adds the messages of a turn: an answer of the model, the results of its calls, the next
    /// answer. Returns the entry id of the last one. `draft` has no parts.
    pub(super) fn push_pieces(
        &mut self,
        index: usize,
        line: &str,
        draft: &Draft<'_>,
        pieces: Vec<Piece>,
    ) -> Option<String> {
        let mut last = None;
        let mut parts = Vec::new();
        let mut count = 0_usize;
        let mut flush = |out: &mut Self, role: &'static str, parts: Vec<String>| {
            let id = draft.id.map(|id| match count {
                0 => id.to_owned(),
                _ => format!("{id}/{count}"),
            });
            let source = if count == 0 { draft.source.clone() } else { String::new() };
            let piece = Draft { id: id.as_deref(), time: draft.time, role, parts, source };
            count += 1;
            out.push(index, line, &piece)
        };
        for piece in pieces {
            match piece {
                Piece::Part(part) => parts.push(part),
                Piece::Result(part) => {
                    if !parts.is_empty() {
                        last = flush(self, draft.role, std::mem::take(&mut parts)).or(last);
                    }
                    last = flush(self, "tool", Vec::from([part])).or(last);
                }
            }
        }
        if !parts.is_empty() {
            last = flush(self, draft.role, parts).or(last);
        }
        last
    }

    /// Lets the next messages belong to a branch; `after`: entry id of the message that it follows.
    pub(super) fn begin_branch(&mut self, after: Option<String>) {
        (self.is_aside, self.after) = (true, after);
    }

    /// Lets the next messages belong to the live conversation.
    pub(super) fn end_branch(&mut self) {
        self.is_aside = false;
    }

    /// Builds a message with its entry id.
    fn build_message(
        &mut self,
        index: usize,
        line: &str,
        draft: &Draft<'_>,
    ) -> (String, FileMessage) {
        let parts = line::array(&draft.parts);
        let id = match draft.id {
            Some(id) => self.ids.name_entry(id, &parts),
            None => self.ids.name_line(line),
        };
        let text = Text::default().string("id", &id);
        let text = match draft.time {
            Some(time) => text.raw("timestamp", time),
            None => text,
        };
        let text = text.string("role", draft.role).raw("parts", &parts);
        let text = match draft.source.as_str() {
            "" => text,
            source => text.raw("source", source),
        };
        (id, FileMessage { text: text.end(), line: index })
    }

    /// Sets the newest messages from index `from` on aside, as a branch.
    pub(super) fn set_aside_from(&mut self, from: usize) {
        set_aside_from(&mut self.found, from);
    }

    /// Returns the messages so far.
    pub(super) fn messages(&self) -> &[FileMessage] {
        &self.found.messages
    }

    /// Sets the session and the folder in which it worked, if they are not set.
    pub(super) fn set_session(&mut self, session: Option<String>, project: Option<String>) {
        self.found.session = self.found.session.take().or(session);
        self.found.project = self.found.project.take().or(project);
    }

    /// Returns the messages and branches, with all warnings.
    pub(super) fn into_content(mut self) -> SessionContent {
        self.found.branches.extend(self.branches.into_list());
        self.left.set_aside(&self.found.branches);
        self.found.warnings = self.left.warnings();
        self.found.warnings.extend(self.ids.warning());
        self.found
    }
}

/// Moves the messages from index `from` on to a branch.
pub(super) fn set_aside_from(found: &mut SessionContent, from: usize) {
    if from >= found.messages.len() {
        return;
    }
    let messages = found.messages.split_off(from);
    let after = found.messages.last().map(|message| entry_id(&message.text));
    found.branches.push(Branch { after, messages });
}

/// Branches of a file, found by the entry ids of their newest messages.
#[derive(Debug, Default)]
pub(super) struct Branches {
    list: Vec<Branch>,
    /// For the entry id of the last message of a branch, the index of the branch.
    ends: HashMap<String, usize>,
}

impl Branches {
    /// Adds a message that follows `after` to the branch that ends there, or as a new branch.
    pub(super) fn push(&mut self, id: &str, message: FileMessage, after: Option<String>) {
        let ends = after.as_ref().and_then(|after| self.ends.remove(after));
        let index = ends.unwrap_or(self.list.len());
        match self.list.get_mut(index) {
            Some(branch) => branch.messages.push(message),
            None => self.list.push(Branch { after, messages: Vec::from([message]) }),
        }
        self.ends.insert(id.to_owned(), index);
    }

    /// Returns the branches in the order of their first messages.
    pub(super) fn into_list(self) -> Vec<Branch> {
        self.list
    }
}

/// Returns the entry id of a message that a reader built; empty: it has none.
pub(super) fn entry_id(text: &str) -> String {
    Object::read(text).ok().and_then(|message| message.text("id")).unwrap_or_default()
}

/// Returns a part with a text.
pub(super) fn text_part(text: &str) -> String {
    Text::default().string("type", "text").string("text", text).end()
}

/// Returns a part with the thoughts of a model.
pub(super) fn reasoning_part(text: &str) -> String {
    Text::default().string("type", "reasoning").string("text", text).end()
}

/// Returns a part with a call; `input` is a JSON text.
pub(super) fn call_part(id: &str, name: &str, input: &str) -> String {
    let text = Text::default().string("type", "tool_call").string("id", id).string("name", name);
    text.raw("input", input).end()
}

/// Returns a part with the result of a call; `output` is a JSON text.
pub(super) fn result_part(call_id: &str, name: &str, output: &str, is_error: bool) -> String {
    let text = Text::default().string("type", "tool_result").string("call_id", call_id);
    let text = match name {
        "" => text,
        name => text.string("name", name),
    };
    let text = text.raw("output", output);
    if is_error { text.raw("is_error", "true").end() } else { text.end() }
}

/// Returns a part with the bytes of a file in base64.
pub(super) fn file_part(name: Option<&str>, mime: &str, data: &str) -> String {
    let text = Text::default().string("type", "file");
    let text = match name {
        Some(name) => text.string("name", name),
        None => text,
    };
    text.string("mime", mime).string("data", data).end()
}

/// Returns a part with the bytes of a data URL; `None`: the URL leads elsewhere.
pub(super) fn data_url_part(name: Option<&str>, url: &str) -> Option<String> {
    let (mime, data) = split_data_url(url)?;
    Some(file_part(name, mime, data))
}

/// Returns the media type and the base64 text of a data URL; `None`: the URL leads elsewhere.
pub(super) fn split_data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns an image block with the members that Anthropic gives it; every provider can be sent such
/// a block in the result of a call. `data`: base64 text.
pub(super) fn image_block(media_type: &str, data: &str) -> String {
    let source = Text::default().string("type", "base64").string("media_type", media_type);
    let source = source.string("data", data).end();
    Text::default().string("type", "image").raw("source", &source).end()
}

/// Converts a block of Anthropic's content to a part, or to the result of a call; unknown blocks
/// stay unchanged. `call_id`: id of a call without an own id.
pub(super) fn convert_block(block: &Object<'_>, raw: &str, call_id: &str) -> Piece {
    let text = |key| block.text(key).unwrap_or_default();
    let own = |key| block.text(key).unwrap_or_else(|| call_id.to_owned());
    let input = block.any("input").or_else(|| block.any("args"));
    let part = match text("type").as_str() {
        "text" => text_part(&text("text")),
        "thinking" => Text::default()
            .string("type", "reasoning")
            .string("text", &text("thinking"))
            .rest(block, &["type", "thinking"])
            .end(),
        "tool_use" => call_part(&own("id"), &text("name"), input.map_or("{}", RawValue::get)),
        "tool_result" => {
            let output = block.any("content").map_or("\"\"", RawValue::get);
            let (id, is_error) = (own("tool_use_id"), block.is_true("is_error"));
            return Piece::Result(result_part(&id, &text("name"), output, is_error));
        }
        _ => raw.to_owned(),
    };
    Piece::Part(part)
}
