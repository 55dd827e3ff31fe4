//! Reads messages of opencode with their parts, as its export and its interface have them.
//! Read from files of opencode, 2026-11-28.
//!
//! In: records with `info` (a message) and `parts`, and a record with the `info` of the session.
//! Out: messages of `lcm`. A tool part has a call and, once it is complete, its result, so that an
//! answer becomes several messages. Parts of an unknown type are counted. Messages from the
//! one on to which a person reverted the session become a branch.

use serde_json::value::RawValue;

use super::{
    SessionContent,
    formats::Fit,
    line::{self, Object, quoted},
    records::{self, Collector, Draft, Piece},
};

/// Types of parts that say only what the program did.
const PROGRAM: [&str; 6] =
    ["step-start", "step-finish", "snapshot", "patch", "compaction", "retry"];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    let Some(info) = object.object("info") else { return Fit::No };
    match object.list("parts") {
        Some(_) => Fit::typical_if(info.text("role").is_some()),
        None if info.has("directory") || info.has("projectID") => Fit::Typical,
        None => Fit::No,
    }
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    let mut reverted = None;
    let mut reverted_from = None;
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let Some(info) = object.object("info") else { continue };
        let id = info.text("id");
        let Some(parts) = object.list("parts") else {
            reverted = info.object("revert").and_then(|revert| revert.text("messageID"));
            out.set_session(id, info.text("directory"));
            continue;
        };
        let folder = info.object("path").and_then(|path| path.text("cwd"));
        out.set_session(info.text("sessionID"), folder);
        if reverted.is_some() && id == reverted {
            reverted_from = Some(out.messages().len());
        }
        let role = match info.text("role").as_deref() {
            Some("user") => "user",
            Some("system") => "system",
            _ => "assistant",
        };
        let time = info.object("time").and_then(|time| time.any("created")).map(RawValue::get);
        let mut pieces = Vec::new();
        for part in parts {
            read_part(&mut out, part, &mut pieces);
        }
        let error = info.object("error").filter(|_| pieces.is_empty());
        if let Some(error) = error {
            let text = error.object("data").and_then(|data| data.text("message"));
            let text = text.or_else(|| error.text("name")).unwrap_or_default();
            pieces.push(Piece::Part(records::text_part(&format!("Error: {text}"))));
        }
        let draft = Draft::new(role).with_id(id.as_deref(), time);
        let draft = draft.with_source(&info, &["id", "role", "time", "sessionID"]);
        out.push_pieces(index, line, &draft, pieces);
    }
    reverted_from.into_iter().for_each(|from| out.set_aside_from(from));
    out.into_content()
}

/// Adds the pieces of a part.
fn read_part(out: &mut Collector, value: &RawValue, pieces: &mut Vec<Piece>) {
    let Some(part) = Object::from_value(value) else { return };
    let text = || part.text("text").unwrap_or_default();
    match part.text("type").unwrap_or_default().as_str() {
        "text" if !text().is_empty() => pieces.push(Piece::Part(records::text_part(&text()))),
        "reasoning" if !text().is_empty() => {
            pieces.push(Piece::Part(records::reasoning_part(&text())));
        }
        "tool" => read_tool(&part, pieces),
        "file" => pieces.push(Piece::Part(read_file(&part, value))),
        "subtask" => {
            let prompt = part.text("prompt").unwrap_or_default();
            pieces.push(Piece::Part(records::text_part(&prompt)));
        }
        "text" | "reasoning" if part.any("text").is_some_and(line::is_string) => (),
        kind if PROGRAM.contains(&kind) => (),
        kind => out.left.count_line(&format!("part {kind}")),
    }
}

/// Adds a call, and its result if it is complete.
fn read_tool(part: &Object<'_>, pieces: &mut Vec<Piece>) {
    let id = part.text("callID").or_else(|| part.text("id")).unwrap_or_default();
    let name = part.text("tool").unwrap_or_default();
    let state = part.object("state").unwrap_or_default();
    let input = state.any("input").map_or("{}", RawValue::get);
    pieces.push(Piece::Part(records::call_part(&id, &name, input)));
    let status = state.text("status").unwrap_or_default();
    let output = match status.as_str() {
        "completed" => state.any("output").map_or_else(|| quoted(""), |it| it.get().to_owned()),
        "error" => state.any("error").map_or_else(|| quoted(""), |it| it.get().to_owned()),
        _ => return,
    };
    let files = state.list("attachments").unwrap_or_default();
    let images: Vec<String> = files.into_iter().filter_map(image_block).collect();
    let output = match (images.is_empty(), serde_json::from_str::<String>(&output)) {
        (false, Ok(text)) => {
            let blocks: Vec<String> =
                std::iter::once(records::text_part(&text)).chain(images).collect();
            line::array(&blocks)
        }
        _ => output,
    };
    let part = records::result_part(&id, &name, &output, status == "error");
    pieces.push(Piece::Result(part));
}

/// Converts an attached image of a result to a block; `None`: it is not in the file.
fn image_block(value: &RawValue) -> Option<String> {
    let file = Object::from_value(value)?;
    let url = file.text("url")?;
    let (mime, data) = records::split_data_url(&url)?;
    Some(records::image_block(mime, data))
}

/// Converts a file: its bytes, the text that was read of it, or the part as it is.
fn read_file(part: &Object<'_>, value: &RawValue) -> String {
    let name = part.text("filename");
    let bytes = part.text("url").and_then(|url| records::data_url_part(name.as_deref(), &url));
    let source = part.object("source").and_then(|source| source.object("text"));
    match (bytes, source.and_then(|text| text.text("value"))) {
        (Some(bytes), _) => bytes,
        (None, Some(text)) => records::text_part(&format!("{}:\n{text}", name.unwrap_or_default())),
        (None, None) => value.get().to_owned(),
    }
}
