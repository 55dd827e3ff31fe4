//! Check of the system messages: the slot and all versions.
//!
//! In: a conversation. Out: findings. Ids and tokens of the versions are computed anew from their
//! texts.

use alloc::{format, vec::Vec};

use crate::storage::{
    history::MessageHistory,
    records::system_slot::{self, StoredVersion, SystemText, format_system_id, hash_version},
    store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result, int},
    message::{self, Role, meaning},
};

use super::CheckReport;

/// Checks the slot and the versions of a conversation.
///
/// # Errors
///
/// Errors of the store; damage is a finding.
pub(super) fn check(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    report: &mut CheckReport,
) -> Result<()> {
    report.begin_check("system-messages");
    let versions = system_slot::list_versions(session, history);
    let Some(versions) = report.catch_damage(versions)? else { return Ok(()) };
    let Some(slot) = history.head.system else { return Ok(()) };
    let count = int::to_u64(versions.len());
    report.expect_sound(count == slot.versions, || {
        format!("there are {count} versions, the slot counts {}", slot.versions)
    });
    let newest = versions.iter().find(|stored| stored.id == slot.id);
    let is_newest =
        newest.is_some_and(|it| (it.bytes, it.version.tokens()) == (slot.bytes, slot.tokens));
    report.expect_sound(is_newest, || {
        format!(
            "the slot must have bytes and tokens of its version `{}`",
            format_system_id(slot.id)
        )
    });
    for stored in &versions {
        let texts = report.catch_damage(stored.version.read_texts(session, history))?;
        if let Some(texts) = texts {
            check_version(stored, &texts, report);
        }
    }
    Ok(())
}

fn check_version(stored: &StoredVersion, texts: &[SystemText], report: &mut CheckReport) {
    let name = format_system_id(stored.id);
    let mut said = Vec::with_capacity(texts.len());
    for (text, message) in texts.iter().zip(&stored.version.messages) {
        let Ok(parsed) = message::parse(text.dialect, &text.raw) else {
            report.add_finding(format!("`{name}` has a text that is no message"));
            return;
        };
        let is_counted = message.derivation_version != DERIVATION_VERSION
            || (parsed.tokens, parsed.role) == (message.tokens, Role::System);
        report.expect_sound(is_counted, || {
            format!("`{name}` counts {} tokens, its text has {}", message.tokens, parsed.tokens)
        });
        said.push(meaning::hash_parts(&text.raw, &parsed));
    }
    let id = hash_version(said.iter().map(Vec::as_slice));
    report.expect_sound(id == stored.id, || {
        format!("`{name}` has the texts of `{}`", format_system_id(id))
    });
}
