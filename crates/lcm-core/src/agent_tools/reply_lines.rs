//! Lines of replies that several tools write: mistakes, next calls, and texts as single lines.

use alloc::{format, string::String};

use lcm_text::{
    base::{
        error::Error,
        json::{JsonFields, JsonWriter},
        tokens,
    },
    types::api::ToolAnswer,
};

/// Maximum tokens of the answer to a mistake, which may quote the arguments of the model.
const ERROR_TOKENS_MAX: u32 = 200;
/// What stands for the time of a message without a time.
pub(super) const UNDATED: &str = "undated";

/// Builds the answer to a mistake of the model, in one line. `name`: name of the tool.
pub(super) fn build_mistake_answer(name: &str, message: &str) -> ToolAnswer {
    let line = to_one_line(&format!("{name}: {message}"));
    ToolAnswer { text: tokens::truncate_to_tokens(&line, ERROR_TOKENS_MAX).into(), is_error: true }
}

/// Replaces the names of fields in an error by those of the tool's arguments. Each pair has the
/// name of the argument and of the field.
pub(super) fn rename_fields(error: Error, names: &[(&str, &str)]) -> Error {
    let mut message = error.message.clone();
    for (argument, field) in names {
        message = message.replace(&format!("`{field}`"), &format!("`{argument}`"));
    }
    Error::new(error.code, message)
}

/// Replaces each line break and control character of a text by a space.
pub(super) fn to_one_line(text: &str) -> String {
    // U+2028 and U+2029 end a line, too, but are not control characters.
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if is_break(c) { ' ' } else { c }).collect()
}

/// Takes the time of a message or match, `created_at`; `undated` if it has none.
pub(super) fn take_message_time(fields: &mut JsonFields<'_>) -> String {
    fields.take_optional_text("created_at").unwrap_or_else(|| String::from(UNDATED))
}

/// Builds arguments of a next call that name an id, and the conversation of the id if given.
pub(super) fn build_id_arguments(id: &str, conversation: Option<&str>) -> JsonWriter {
    let mut arguments = JsonWriter::new_object();
    arguments.add_text("id", id);
    if let Some(conversation) = conversation {
        arguments.add_text("conversationId", conversation);
    }
    arguments
}

/// Formats the line that names a call of `lcm_describe` as the next call, and its purpose.
pub(super) fn format_next_call(arguments: JsonWriter, purpose: &str) -> String {
    format!("Next: lcm_describe {} {purpose}\n", arguments.end_object())
}
