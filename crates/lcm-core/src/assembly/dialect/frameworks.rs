//! Writes turns as messages of agent frameworks.
//!
//! One writer writes all four dialects: each has a table of templates. A message of the target
//! dialect is written without the members that a host added, and otherwise unchanged, unless it is
//! split or a call of it gets another id. A `UIMessage` of the AI SDK becomes messages for a model,
//! as the SDK converts it: metadata of a part become its options, and states are left out. Turns
//! are never merged.

use alloc::{format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    approvals::TurnApproval,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{self, FileContent, quote_text, write_members},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall},
    tool_output,
};
use lcm_text::{
    base::json,
    message::{JsonObject, Role, provider_limits},
    types::api::Dialect,
};

/// Templates of a dialect. `$` and a letter stand for JSON: `c` content, `l` calls, `t` text, `i`
/// id, `n` name, `a` arguments as an object, `s` arguments as a string, `v` the value of a result,
/// `e` whether it is an error, `k` its kind, `d` data or address of a file, `m` its media type.
struct Shape {
    /// Empty: a system message becomes the user's.
    system: &'static str,
    user: &'static str,
    assistant: &'static str,
    text: &'static str,
    /// A text of the model.
    answer: &'static str,
    image: &'static str,
    /// Empty: the dialect has no files but images.
    file: &'static str,
    call: &'static str,
    result: &'static str,
    /// Type of a call that is written unchanged; empty: any.
    call_type: &'static str,
    /// Type or role of a result that is written unchanged; empty: any.
    result_type: &'static str,
    /// Words for a result and for an error, as `k`.
    kinds: [&'static str; 2],
}

/// A message of the AI SDK with results or approvals.
const TOOL_MESSAGE: &str = "{\"role\":\"tool\",\"content\":[$c]}";
const PLAIN_TEXT: &str = "{\"type\":\"text\",\"text\":$t}";

const AI_SDK: Shape = Shape {
    system: "{\"role\":\"system\",\"content\":$t}",
    user: "{\"role\":\"user\",\"content\":[$c]}",
    assistant: "{\"role\":\"assistant\",\"content\":[$c$l]}",
    text: PLAIN_TEXT,
    answer: PLAIN_TEXT,
    image: "{\"type\":\"file\",\"mediaType\":$m,\"data\":$d}",
    file: "{\"type\":\"file\",\"mediaType\":$m,\"data\":$d}",
    call: "{\"type\":\"tool-call\",\"toolCallId\":$i,\"toolName\":$n,\"input\":$a}",
    result: "{\"type\":\"tool-result\",\"toolCallId\":$i,\"toolName\":$n,\
        \"output\":{\"type\":$k,\"value\":$v}}",
    call_type: "tool-call",
    result_type: "tool-result",
    kinds: ["\"text\"", "\"error-text\""],
};

/// Times and usage of messages that the host did not write are zero, because its types have them.
const OPEN_CLAW: Shape = Shape {
    system: "",
    user: "{\"role\":\"user\",\"content\":[$c],\"timestamp\":0}",
    assistant: "{\"role\":\"assistant\",\"content\":[$c$l],\"api\":\"\",\"provider\":\"\",\
        \"model\":\"\",\"usage\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\
        \"totalTokens\":0,\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\
        \"total\":0}},\"stopReason\":\"stop\",\"timestamp\":0}",
    image: "{\"type\":\"image\",\"data\":$d,\"mimeType\":$m}",
    file: "",
    call: "{\"type\":\"toolCall\",\"id\":$i,\"name\":$n,\"arguments\":$a}",
    result: "{\"role\":\"toolResult\",\"toolCallId\":$i,\"toolName\":$n,\
        \"content\":[{\"type\":\"text\",\"text\":$t}],\"isError\":$e,\"timestamp\":0}",
    call_type: "toolCall",
    result_type: "toolResult",
    ..AI_SDK
};

const LANG_CHAIN: Shape = Shape {
    system: "{\"type\":\"system\",\"data\":{\"content\":$t}}",
    user: "{\"type\":\"human\",\"data\":{\"content\":[$c]}}",
    assistant: "{\"type\":\"ai\",\"data\":{\"content\":[$c],\"tool_calls\":[$l]}}",
    image: "",
    call: "{\"name\":$n,\"args\":$a,\"id\":$i,\"type\":\"tool_call\"}",
    result: "{\"type\":\"tool\",\"data\":{\"content\":$t,\"tool_call_id\":$i,\"name\":$n,\
        \"status\":$k}}",
    call_type: "tool_call",
    result_type: "",
    kinds: ["\"success\"", "\"error\""],
    ..AI_SDK
};

const OPENAI_AGENTS: Shape = Shape {
    user: "{\"type\":\"message\",\"role\":\"user\",\"content\":[$c]}",
    assistant: "{\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\
        \"content\":[$c]}",
    text: "{\"type\":\"input_text\",\"text\":$t}",
    answer: "{\"type\":\"output_text\",\"text\":$t}",
    image: "{\"type\":\"input_image\",\"image\":$d}",
    file: "{\"type\":\"input_file\",\"file\":$d}",
    call: "{\"type\":\"function_call\",\"callId\":$i,\"name\":$n,\"arguments\":$s}",
    result: "{\"type\":\"function_call_result\",\"callId\":$i,\"name\":$n,\
        \"status\":\"completed\",\"output\":{\"type\":\"text\",\"text\":$t}}",
    call_type: "",
    result_type: "",
    ..AI_SDK
};

/// Writes all turns.
pub(super) fn write(dialect: Dialect, turns: &[Turn<'_>], notes: &mut RenderNotes) -> ArrayWriter {
    let shape = match dialect {
        Dialect::Openclaw => &OPEN_CLAW,
        Dialect::Langchain => &LANG_CHAIN,
        Dialect::OpenaiAgents => &OPENAI_AGENTS,
        _ => &AI_SDK,
    };
    let array = ArrayWriter::new(dialect);
    let mut writer = FrameworkWriter { dialect, shape, array, notes };
    for turn in turns {
        writer.push_turn(turn);
        writer.push_answers(&turn.answers);
        writer.push_approvals(turn);
    }
    writer.array
}

/// A writer of the messages of one array.
struct FrameworkWriter<'w> {
    dialect: Dialect,
    shape: &'static Shape,
    array: ArrayWriter,
    notes: &'w mut RenderNotes,
}

impl FrameworkWriter<'_> {
    fn push_message(&mut self, entry: usize, json: String) {
        let fragment = JsonFragment::strip_object(self.dialect, entry, json);
        self.array.push_message("", &[fragment], "", self.notes);
    }

    /// Writes a turn without the results of its calls.
    fn push_turn(&mut self, turn: &Turn<'_>) {
        let is_unchanged = |block: &TurnBlock<'_>| match &block.body {
            BlockBody::Call(call) => call.given_id.as_deref() == Some(&call.id),
            BlockBody::ServerTool { id, .. } => is_paired(turn, id),
            _ => true,
        };
        let is_whole = !turn.blocks.is_empty()
            && (turn.is_item || !turn.is_emptied)
            && turn.blocks.iter().all(is_unchanged);
        if let Some(raw) = turn.native.filter(|_| is_whole) {
            return self.push_message(turn.entry, raw.into());
        }
        let is_model = matches!(turn.role, Role::Assistant | Role::Tool);
        let mut template = if is_model { self.shape.assistant } else { self.shape.user };
        let is_joined = template.contains("$c$l");
        let (mut content, mut calls, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for block in &turn.blocks {
            match &block.body {
                BlockBody::Call(call) if is_joined => {
                    content.push(self.call_json(call, block.native));
                }
                BlockBody::Call(call) => calls.push(self.call_json(call, block.native)),
                BlockBody::Text(text) if text.trim().is_empty() => {}
                body => {
                    if let BlockBody::Text(text) = body {
                        texts.push(&**text);
                    }
                    content.extend(self.block_json(turn, block));
                }
            }
        }
        calls.extend(turn.approvals.iter().map(|approval| approval.write_request()));
        if content.is_empty() && calls.is_empty() {
            if turn.answers.is_empty() && !turn.is_emptied {
                self.notes.add_note(turn.entry, RenderNote::DroppedEmpty);
            }
            return;
        }
        if turn.role == Role::System {
            if self.shape.system.is_empty() {
                self.notes.add_note(turn.entry, RenderNote::SystemAsUser);
                content.insert(0, self.text_json("[system message]", false));
            } else {
                template = self.shape.system;
            }
        }
        if is_joined {
            content.append(&mut calls);
        }
        // A template without calls has each call as a message of its own.
        let has_calls = template.contains("$l");
        if !content.is_empty() || has_calls {
            let (text, list) = (quote_text(&texts.join("\n")), calls.join(","));
            let values = [('c', &*content.join(",")), ('l', &*list), ('t', &*text)];
            self.push_message(turn.entry, fill_template(template, &values));
        }
        if !has_calls {
            calls.into_iter().for_each(|call| self.push_message(turn.entry, call));
        }
    }

    /// Writes a block that is no call; `None`: nothing of it is written.
    fn block_json(&mut self, turn: &Turn<'_>, block: &TurnBlock<'_>) -> Option<String> {
        let is_model = turn.role == Role::Assistant;
        let native = block.native.filter(|native| file_content::is_object(native));
        let kept = || native.map(|native| with_options(native.into(), native));
        match &block.body {
            BlockBody::Text(text) => Some(kept().unwrap_or_else(|| self.text_json(text, is_model))),
            BlockBody::Thought => {
                if native.is_none() {
                    self.notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
                }
                kept()
            }
            BlockBody::File(file) => {
                let is_link = |native: &str| read_object(native).get_value("url").is_some();
                if native.is_some_and(|native| !is_link(native)) {
                    return kept();
                }
                let json =
                    self.file_json(file).filter(|_| !is_model || self.dialect == Dialect::AiSdk);
                let json = json.map(|json| with_options(json, native.unwrap_or_default()));
                Some(json.unwrap_or_else(|| self.omission_json(turn, &file.display_title())))
            }
            BlockBody::ServerTool { id, .. } => {
                let kept = kept().filter(|_| is_paired(turn, id));
                Some(kept.unwrap_or_else(|| self.omission_json(turn, "block")))
            }
            BlockBody::Other(kind) => {
                let name = if kind.is_empty() { "block" } else { kind };
                Some(kept().unwrap_or_else(|| self.omission_json(turn, name)))
            }
            BlockBody::Call(_) | BlockBody::Answer(_) => None,
        }
    }

    /// Writes a text in place of content that the dialect cannot express, and adds a note.
    fn omission_json(&mut self, turn: &Turn<'_>, what: &str) -> String {
        self.notes.add_note(turn.entry, RenderNote::BlockLeftOut);
        self.text_json(&format!("[{what} left out]"), turn.role == Role::Assistant)
    }

    fn text_json(&self, text: &str, is_model: bool) -> String {
        let template = if is_model { self.shape.answer } else { self.shape.text };
        fill_template(template, &[('t', &quote_text(text))])
    }

    /// Writes the part of a user's message; `None`: no part can hold the file.
    fn file_json(&self, file: &FileContent<'_>) -> Option<String> {
        if self.dialect == Dialect::Langchain {
            return file.to_openai_chat();
        }
        let link = file.url.as_ref();
        let is_image = file.mime.starts_with("image/") || link.is_some_and(|(_, image)| *image);
        let template = if is_image { self.shape.image } else { self.shape.file };
        let is_linked = self.dialect == Dialect::Openclaw;
        let data = match (link, file.data.as_deref()) {
            (Some((url, _)), _) if is_linked => return Some(self.text_json(url, false)),
            (Some((url, _)), _) => Some(String::from(&**url)),
            (None, Some(data)) if self.dialect == Dialect::OpenaiAgents => {
                Some(format!("data:{};base64,{data}", file.mime))
            }
            (None, data) => data.map(String::from),
        };
        let Some(data) = data.filter(|_| !template.is_empty()) else {
            return file.titled_text().map(|text| self.text_json(&text, false));
        };
        let mime = match &*file.mime {
            "" if is_image => "image/*",
            "" => "application/octet-stream",
            mime => mime,
        };
        let json = fill_template(template, &[('d', &quote_text(&data)), ('m', &quote_text(mime))]);
        let name = Some(quote_text(&file.name)).filter(|_| !file.name.is_empty());
        Some(match name.filter(|_| self.dialect == Dialect::AiSdk) {
            Some(name) => write_members(&json, &[("filename", Some(&name))]),
            None => json,
        })
    }

    fn call_json(&self, call: &TurnCall<'_>, native: Option<&str>) -> String {
        let is_unchanged = |native: &&str| {
            call.given_id.as_deref() == Some(&call.id)
                && [&*read_object(native).get_text("type"), ""].contains(&self.shape.call_type)
        };
        let json = native.filter(is_unchanged).map(String::from).unwrap_or_else(|| {
            let input = provider_limits::to_input_object(call.input);
            let name = provider_limits::sanitize_tool_name(self.dialect, &call.name);
            fill_template(
                self.shape.call,
                &[
                    ('i', &quote_text(&call.id)),
                    ('n', &quote_text(&name)),
                    ('s', &quote_text(&input)),
                    ('a', &input),
                ],
            )
        });
        with_options(json, native.unwrap_or_default())
    }

    /// Writes the results of the calls of a turn, and behind them the media of the results.
    fn push_answers(&mut self, answers: &[TurnAnswer<'_>]) {
        let mut media = Vec::new();
        let mut rest = answers;
        while let Some(first) = rest.first() {
            let is_group = |answer: &&TurnAnswer<'_>| answer.entry == first.entry;
            let count = match self.dialect {
                Dialect::AiSdk => rest.iter().take_while(is_group).count(),
                _ => 1,
            };
            let (group, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = others;
            let results: Vec<String> =
                group.iter().map(|answer| self.answer_json(answer, &mut media)).collect();
            let json = results.join(",");
            let is_list = self.dialect == Dialect::AiSdk;
            let wrapped = || fill_template(TOOL_MESSAGE, &[('c', &json)]);
            self.push_message(first.entry, if is_list { wrapped() } else { json });
        }
        if let Some(answer) = answers.first().filter(|_| !media.is_empty()) {
            let json = fill_template(self.shape.user, &[('c', &media.join(","))]);
            self.push_message(answer.entry, json);
        }
    }

    /// Writes the approvals that end the array, as the last message.
    fn push_approvals(&mut self, turn: &Turn<'_>) {
        let responses: Vec<String> =
            turn.approvals.iter().map(TurnApproval::write_response).collect();
        if let Some(approval) = turn.approvals.first() {
            let json = fill_template(TOOL_MESSAGE, &[('c', &responses.join(","))]);
            self.push_message(approval.entry, json);
        }
    }

    /// Writes a result; its media go to `media`.
    fn answer_json(&mut self, answer: &TurnAnswer<'_>, media: &mut Vec<String>) -> String {
        let word = self.shape.result_type;
        let is_unchanged = |native: &&str| {
            let result = read_object(native);
            answer.given_id.as_deref() == Some(&answer.id)
                && [&*result.get_text("type"), &*result.get_text("role"), ""].contains(&word)
        };
        if let Some(native) = answer.native.filter(is_unchanged) {
            return native.into();
        }
        // The items of OpenAI Agents cannot say that a tool failed.
        let is_marked = answer.is_error && self.dialect == Dialect::OpenaiAgents;
        let mut output =
            tool_output::write_text(answer.output, is_marked, &|file| self.file_json(file));
        if !output.is_complete {
            self.notes.add_note(answer.entry, RenderNote::BlockLeftOut);
        }
        media.append(&mut output.media);
        let text = quote_text(&output.text);
        let kind = self.shape.kinds.get(usize::from(answer.is_error)).copied().unwrap_or_default();
        // The AI SDK keeps JSON that is no list of blocks as it is.
        let is_json = self.dialect == Dialect::AiSdk
            && output.text == answer.output
            && !answer.output.is_empty();
        let (kind, value) = match is_json {
            true => (&*kind.replace("text", "json"), answer.output),
            false => (kind, &*text),
        };
        let name = provider_limits::sanitize_tool_name(self.dialect, &answer.name);
        let json = fill_template(
            self.shape.result,
            &[
                ('i', &quote_text(&answer.id)),
                ('n', &quote_text(&name)),
                ('t', &text),
                ('v', value),
                ('k', kind),
                ('e', if answer.is_error { "true" } else { "false" }),
            ],
        );
        with_options(json, answer.native.unwrap_or_default())
    }
}

/// Returns whether a turn has a call of the provider with its result.
fn is_paired(turn: &Turn<'_>, call_id: &str) -> bool {
    let has = |wanted: bool| {
        turn.blocks.iter().any(|block| {
            matches!(&block.body, BlockBody::ServerTool { id, is_result }
                if *id == call_id && *is_result == wanted)
        })
    };
    has(true) && has(false)
}

/// Writes a template with these values.
fn fill_template(template: &str, values: &[(char, &str)]) -> String {
    let mut pieces = template.split('$');
    let mut out = String::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        let mut rest = piece.chars();
        let letter = rest.next();
        let value = values.iter().find(|(known, _)| Some(*known) == letter);
        out.push_str(value.map_or("", |(_, value)| value));
        out.push_str(rest.as_str());
    }
    out
}

/// Returns a block with the metadata of `native` as its options.
fn with_options(json: String, native: &str) -> String {
    let object = read_object(native);
    let metadata = object.get_value("providerMetadata");
    let Some(options) = metadata.or_else(|| object.get_value("callProviderMetadata")) else {
        return json;
    };
    write_members(&json, &[("providerOptions", Some(json::slice_span(native, options)))])
}

fn read_object(json: &str) -> JsonObject<'_> {
    JsonObject::new(json, json::parse_object(json).unwrap_or_default())
}
