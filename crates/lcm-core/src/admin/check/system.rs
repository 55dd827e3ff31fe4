//! Check of the system messages: the slot and all versions.
//!
//! In: a conversation. Out: findings. Ids and tokens of the versions are computed anew from their
//! texts.

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    history::MessageHistory,
    records::system_slot::{self, StoredVersion, SystemText, format_system_id, hash_version},
    store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result, int},
    message::{self, Role, meaning},
};

/// Checks the slot and the versions of a conversation; returns the findings.
///
/// # Errors
///
/// `corrupt`: a record is damaged; errors of the store.
pub(super) fn check(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let versions = system_slot::list_versions(session, history)?;
    let Some(slot) = history.head.system else { return Ok(findings) };
    let count = int::to_u64(versions.len());
    if count != slot.versions {
        findings.push(format!("there are {count} versions, the slot counts {}", slot.versions));
    }
    let newest = versions.iter().find(|stored| stored.id == slot.id);
    let measured = newest.map(|stored| (stored.bytes, stored.version.tokens()));
    if measured != Some((slot.bytes, slot.tokens)) {
        let name = format_system_id(slot.id);
        findings.push(format!("the slot must have bytes and tokens of its version `{name}`"));
    }
    for stored in &versions {
        let texts = stored.version.read_texts(session, history)?;
        findings.extend(check_version(stored, &texts));
    }
    Ok(findings)
}

/// Computes the id and the tokens of a version anew; returns a finding if one differs, or if a
/// message has another role than `system`.
fn check_version(stored: &StoredVersion, texts: &[SystemText]) -> Option<String> {
    let name = format_system_id(stored.id);
    let mut meanings = Vec::with_capacity(texts.len());
    for (text, message) in texts.iter().zip(&stored.version.messages) {
        let Ok(parsed) = message::parse(text.dialect, &text.raw) else {
            return Some(format!("`{name}` has a text that is not a message"));
        };
        let is_derived_now = message.derivation_version == DERIVATION_VERSION;
        if is_derived_now && parsed.role != Role::System {
            return Some(format!("`{name}` has a message that is not of the role `system`"));
        }
        let (counted, tokens) = (message.tokens, parsed.tokens);
        if is_derived_now && counted != tokens {
            return Some(format!("`{name}` counts {counted} tokens, its text has {tokens}"));
        }
        meanings.push(meaning::hash_parts(&text.raw, &parsed));
    }
    let id = hash_version(meanings.iter().map(Vec::as_slice));
    (id != stored.id).then(|| format!("`{name}` has the texts of `{}`", format_system_id(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{
        pack::RawText,
        records::system_slot::{SystemMessage, SystemVersion},
    };
    use lcm_text::types::api::Dialect;

    /// Returns the finding about a version of one message.
    fn find_fault(role: &str, more_tokens: u32) -> Option<String> {
        let raw = format!(r#"{{"role":"{role}","content":"Answer in short sentences."}}"#);
        let dialect = Dialect::OpenaiChat;
        let parsed = message::parse(dialect, &raw).unwrap();
        let meaning = meaning::hash_parts(&raw, &parsed);
        let message = SystemMessage {
            dialect,
            derivation_version: DERIVATION_VERSION,
            tokens: parsed.tokens + more_tokens,
            shared: [0; 2],
            raw: RawText::Inline(raw.clone()),
        };
        let version = SystemVersion {
            number: 1,
            time: 0,
            previous: None,
            shared: None,
            messages: Vec::from([message]),
        };
        let id = hash_version([meaning.as_slice()].into_iter());
        let text = SystemText { dialect, raw, tokens: parsed.tokens };
        check_version(&StoredVersion { id, bytes: 0, version }, &[text])
    }

    #[test]
    fn a_finding_names_the_role_or_the_tokens_that_differ() {
        assert_eq!(find_fault("system", 0), None);
        assert!(
            find_fault("user", 0)
                .unwrap()
                .ends_with("has a message that is not of the role `system`")
        );
        assert!(find_fault("system", 1).unwrap().contains(" counts "));
    }
}
