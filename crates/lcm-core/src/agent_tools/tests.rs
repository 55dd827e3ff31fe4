//! Claims about the arguments of a model and the formats of the definitions.

use alloc::{string::String, vec::Vec};

use super::{
    arguments::{ToolArguments, ToolDefinition},
    definitions::{DESCRIBE, GREP, build_definitions},
    reply_lines::to_one_line,
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    types::api::{Dialect, ToolScope},
};

fn read(tool: &ToolDefinition, raw: &str) -> Result<ToolArguments, String> {
    tool.read_arguments(raw, ToolScope::Store).map_err(|error| error.into_failure().message)
}

fn refused(raw: &str) -> String {
    read(&GREP, raw).err().unwrap()
}

#[test]
fn optional_arguments_may_be_null_or_empty() {
    let raw =
        r#"{"pattern":"x","limit":null,"since":"","allConversations":"true","mode":"full-text"}"#;
    let read = read(&GREP, raw).unwrap();
    assert_eq!(read.get_text("pattern"), Some("x"));
    assert_eq!((read.get_number("limit"), read.get_text("since")), (None, None));
    assert!(read.is_set("allConversations"));
    assert_eq!(read.get_text("mode"), Some("full_text"));
    assert_eq!(
        self::read(&GREP, r#"{"pattern":"x","limit":"7"}"#).unwrap().get_number("limit"),
        Some(7)
    );
}

#[test]
fn a_wrong_argument_is_named_with_what_is_allowed() {
    assert_eq!(refused(""), "`pattern` must be a string that is not empty and is required");
    assert_eq!(refused(r#"{"pattern":""}"#), refused("{}"));
    assert_eq!(refused("[]"), "the arguments must be one JSON object");
    for limit in ["0", "201", "1.5", "-1", "\"many\"", "true", "{}"] {
        let raw = alloc::format!(r#"{{"pattern":"x","limit":{limit}}}"#);
        assert_eq!(refused(&raw), "`limit` must be a whole number from 1 to 200", "{limit}");
    }
    let wrong = refused(r#"{"pattern":"x","scope":"file"}"#);
    assert_eq!(wrong, "`scope` must be one of `messages`, `summaries`, `both`, `files`");
    let wrong = refused(r#"{"pattern":"x","allConversations":1}"#);
    assert_eq!(wrong, "`allConversations` must be true or false");
    let wrong = refused(r#"{"pattern":"x","files":[]}"#);
    assert!(
        wrong.starts_with("`files` is not an argument; allowed are `pattern`, `mode`"),
        "{wrong}"
    );
    assert!(read(&DESCRIBE, r#"{"id":"sum_1","expandFileMaxBytes":1023}"#).is_err());
}

/// Compares the outermost names of each format with the providers' documentation.
#[test]
fn every_dialect_has_its_own_format() {
    let keys = |raw: &str, span: ByteSpan| -> Vec<String> {
        json::list_members(raw, span)
            .iter()
            .map(|one| json::text(raw, one.key).into_owned())
            .collect()
    };
    for (dialect, wanted) in [
        (Dialect::Lcm, "name description inputSchema"),
        (Dialect::Anthropic, "name description input_schema"),
        (Dialect::OpenaiChat, "type function"),
        (Dialect::OpenaiResponses, "type strict name description parameters"),
        (Dialect::Gemini, "functionDeclarations"),
    ] {
        let raw = build_definitions(dialect, false, ToolScope::Conversation);
        let whole = ByteSpan::from_range(0, raw.len());
        assert_eq!(json::kind(&raw, whole), JsonKind::Array);
        let list = json::list_elements(&raw, whole);
        assert_eq!(list.len(), if dialect == Dialect::Gemini { 1 } else { 4 });
        for one in &list {
            assert_eq!(keys(&raw, one.span).join(" "), wanted, "{dialect:?}");
        }
        for name in ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_budget"] {
            assert!(raw.contains(&alloc::format!("\"name\":\"{name}\"")), "{dialect:?}");
        }
    }
}

/// Without the scope of the store no schema has an argument that names another conversation, and a
/// model that writes such an argument gets the same answer as for an unknown argument.
#[test]
fn only_the_scope_of_the_store_names_other_conversations() {
    for has_grant in [false, true] {
        let own = build_definitions(Dialect::Anthropic, has_grant, ToolScope::Conversation);
        let all = build_definitions(Dialect::Anthropic, has_grant, ToolScope::Store);
        for name in ["allConversations", "conversationId"] {
            assert!(all.contains(name) && !own.contains(name), "{name}");
        }
        assert!(!own.to_lowercase().contains("another conversation"), "{own}");
    }
    for (key, value) in [("conversationId", "\"c\""), ("allConversations", "true")] {
        let raw = alloc::format!(r#"{{"pattern":"x","{key}":{value}}}"#);
        let error = |raw: &str| {
            let read = GREP.read_arguments(raw, ToolScope::Conversation);
            read.err().unwrap().into_failure().message
        };
        let made_up = raw.replace(key, "madeUp");
        assert_eq!(error(&raw), error(&made_up).replace("madeUp", key));
    }
}

#[test]
fn a_line_has_no_line_break() {
    assert_eq!(to_one_line("a\r\nb\u{2028}c\u{85}d"), "a  b c d");
}
