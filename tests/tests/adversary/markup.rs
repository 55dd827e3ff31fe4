//! Reads assembled summaries strictly: anything but the markup of the engine is a fault.

use lcm_text::types::api::AssembledContext;

/// Checks every summary of an assembly in the dialect `lcm`; returns how many there were.
pub(crate) fn check(assembled: &AssembledContext) -> usize {
    let messages: Vec<serde_json::Value> = serde_json::from_str(&assembled.messages_json).unwrap();
    let ids: Vec<&str> = assembled
        .items
        .iter()
        .filter(|item| item.included && item.kind != "message")
        .map(|item| item.id.as_str())
        .collect();
    let texts: Vec<String> = messages.iter().map(text).collect();
    for id in &ids {
        let begins = format!("<summary id=\"{id}\"");
        let found: Vec<&String> = texts.iter().filter(|text| text.starts_with(&begins)).collect();
        assert_eq!(found.len(), 1, "{id}: {}", assembled.messages_json);
        element(found[0]);
    }
    assert_eq!(ids.len(), assembled.summaries as usize);
    ids.len()
}

fn text(message: &serde_json::Value) -> String {
    match &message["content"] {
        serde_json::Value::String(text) => text.clone(),
        _ => message["parts"][0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Checks one element: `<summary ATTRIBUTES>`, perhaps `<parents>`, `<content>` without markup, and
/// nothing more.
fn element(text: &str) {
    let rest = text.strip_prefix("<summary ").unwrap();
    let (attributes, rest) = rest.split_once(">\n").unwrap();
    assert!(!attributes.contains('<'), "{text}");
    // `check` compares the label with the sources.
    let label = attributes.split_once(" trust=\"").and_then(|(_, rest)| rest.split_once('"'));
    assert!(matches!(label, Some(("trusted" | "untrusted", _))), "{text}");
    let rest = match rest.strip_prefix("<parents>") {
        None => rest,
        Some(rest) => {
            let (references, rest) = rest.split_once("</parents>\n").unwrap();
            for reference in references.split_inclusive("/>") {
                let id = reference.strip_prefix("<summary_ref id=\"sum_").unwrap();
                let id = id.strip_suffix("\"/>").unwrap();
                assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            }
            rest
        }
    };
    let content = rest.strip_prefix("<content>").unwrap();
    let content = content.strip_suffix("</content>\n</summary>").unwrap();
    assert!(!content.contains(['<', '>']), "{text}");
}
