//! Check: recomputes derived values of a conversation and compares them with the stored values.
//!
//! In: a conversation. Out: the findings of each check, as JSON. Checked are head, list entry,
//! journal, system messages, messages with identities and payloads, summaries, context, search
//! index, grants, vectors and the question. Values of another derivation version
//! ([`lcm_text::base::derivation_version`]) are not compared, but must be possible for their texts.
//! A finding does not stop the check; an unreadable record is a finding.

mod payloads;
mod sequence;
mod summary_graph;
mod system;

pub(super) use summary_graph::{is_derived_from, least_trust, sum_measures};

use alloc::{format, string::String, vec::Vec};

use super::status::ByteUsage;
use crate::{
    search,
    storage::{
        call::Call,
        codec,
        head::{HEAD_BYTES_MAX, JournalEntry, LoadedHead},
        history::MessageHistory,
        keys::ConversationKeys,
        records::{grants, question::QuestionRecord},
        store_session::StoreSession,
        summary::Summary,
        summary_records::SizedSummaries,
    },
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    json::JsonWriter,
};

/// Maximum number of findings of one check that the report names. The report only counts further
/// findings.
const FINDINGS_MAX: usize = 8;

/// The checks so far, with their findings.
#[derive(Debug, Default)]
pub(super) struct CheckReport {
    checks: Vec<CheckResult>,
}

/// One check, with its findings.
#[derive(Debug, Default)]
struct CheckResult {
    name: &'static str,
    /// The first findings, at most [`FINDINGS_MAX`].
    messages: Vec<String>,
    /// Number of all findings.
    count: usize,
}

impl CheckReport {
    /// Begins a check, to which later findings are added; a check without findings passes.
    pub(super) fn begin_check(&mut self, name: &'static str) {
        self.checks.push(CheckResult { name, ..CheckResult::default() });
    }

    /// Adds a finding to the check that began last.
    pub(super) fn add_finding(&mut self, message: String) {
        if let Some(check) = self.checks.last_mut() {
            check.count += 1;
            if check.messages.len() < FINDINGS_MAX {
                check.messages.push(message);
            }
        }
    }

    /// Adds a finding unless `sound`.
    pub(super) fn expect_sound(&mut self, sound: bool, message: impl FnOnce() -> String) {
        if !sound {
            self.add_finding(message());
        }
    }

    /// Returns the value; turns an error `corrupt` into a finding and `None`; returns other errors.
    pub(super) fn catch_damage<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.add_damage(error).map(|()| None),
        }
    }

    #[cold]
    fn add_damage(&mut self, error: Error) -> Result<()> {
        if error.code != ErrorCode::Corrupt {
            return Err(error);
        }
        self.add_finding(error.into_failure().message);
        Ok(())
    }

    fn to_json(&self, metrics: JsonWriter) -> String {
        let ok = self.checks.iter().all(|check| check.count == 0);
        let mut checks = JsonWriter::new_array();
        for CheckResult { name, messages, count } in &self.checks {
            let mut message = messages.join("; ");
            if *count > messages.len() {
                message = format!("{message}; and {} more", count - messages.len());
            }
            let mut row = JsonWriter::new_object();
            row.add_text("message", &message);
            row.add_text("name", name);
            row.add_text("status", if *count == 0 { "pass" } else { "fail" });
            checks.push_object(row);
        }
        let mut report = JsonWriter::new_object();
        report.add_array("checks", checks);
        report.add_null("cursor");
        report.add_object("metrics", metrics);
        report.add_flag("ok", ok);
        report.end_object()
    }
}

/// Checks a conversation and returns `{"ok", "checks", "metrics", "cursor"}`.
///
/// # Errors
///
/// `not-found`: the conversation does not exist; `denied`: the conversation is being deleted;
/// errors of the store. Damage is a finding and no error, except in the head itself.
pub(crate) fn check(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<String> {
    let keys = call.keys;
    let loaded = LoadedHead::open_existing(session, call)?;
    let bytes = loaded.bytes.as_ref().map_or(0, Vec::len);
    let head = &loaded.head;
    let history = MessageHistory::new(call, head);
    let mut report = CheckReport::default();
    report.begin_check("head");
    report.expect_sound(bytes <= HEAD_BYTES_MAX, || {
        format!("the head has {bytes} bytes, at most {HEAD_BYTES_MAX} are allowed")
    });
    let (saved, ledger) = (head.raw_tokens.wrapping_sub(head.context.tokens), &head.ledger);
    let expected = ledger.saved_tokens.wrapping_add(ledger.withdrawn_tokens);
    report.expect_sound(saved == expected, || {
        format!("the context saves {saved} tokens, the ledger counts {expected}")
    });
    check_name(session, call, &mut report)?;
    check_journal(session, &history, &mut report)?;
    report.begin_check("system-messages");
    let found = system::check(session, &history);
    for message in report.catch_damage(found)?.unwrap_or_default() {
        report.add_finding(message);
    }
    let other_versions = sequence::check(session, &history, &mut report)?;
    let summaries = read_summaries(session, keys, &mut report)?;
    summary_graph::check_context(session, &history, &summaries, &mut report)?;
    summary_graph::check_summaries(session, &history, &summaries, &mut report)?;
    report.begin_check("search-index");
    let found = search::check(session, keys, head, &summaries);
    for message in report.catch_damage(found)?.unwrap_or_default() {
        report.add_finding(message);
    }
    report.begin_check("grants");
    let found = grants::check(session, keys);
    for message in report.catch_damage(found)?.unwrap_or_default() {
        report.add_finding(message);
    }
    report.begin_check("vectors");
    let counts = [head.messages, int::to_u64(summaries.len())];
    let found = search::vectors::check::check(session, keys, counts);
    for message in report.catch_damage(found)?.unwrap_or_default() {
        report.add_finding(message);
    }
    report.begin_check("question");
    let found = session.read_record(&QuestionRecord::key(keys)).map(|_| ());
    report.catch_damage(found)?;
    let usage = ByteUsage::scan(session, keys)?;
    let mut metrics = JsonWriter::new_object();
    metrics.add_object("bytes", usage.to_object(head.raw_bytes));
    metrics.add_number("context_items", head.context.count_items());
    metrics.add_number("context_tokens", head.context.tokens);
    metrics.add_number("messages", head.messages);
    metrics.add_number("messages_newer_rules", other_versions.newer);
    metrics.add_number("messages_older_rules", other_versions.older);
    metrics.add_number("raw_bytes", head.raw_bytes);
    metrics.add_number("raw_tokens", head.raw_tokens);
    metrics.add_number("revision", head.revision);
    metrics.add_number("summaries", int::to_u64(summaries.len()));
    Ok(report.to_json(metrics))
}

/// Checks that the list of conversations has an entry with the id of this conversation.
fn check_name(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    report: &mut CheckReport,
) -> Result<()> {
    let key = call.keys.name_key();
    let value = session.read_one_uncached(&key)?;
    let Some(value) = value else {
        report.add_finding(format!("`{key}` is missing"));
        return Ok(());
    };
    let name = report.catch_damage(codec::decode::<(String, String)>(&key, &value))?;
    report.expect_sound(name.is_none_or(|(_, id)| id == call.conversation), || {
        format!("`{key}` names another conversation")
    });
    Ok(())
}

/// Checks that the journal has one readable entry for every revision.
fn check_journal(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    report: &mut CheckReport,
) -> Result<()> {
    let MessageHistory { keys, head } = *history;
    report.begin_check("journal");
    let (start, end) = keys.record_range("j");
    let mut next = 1u64;
    let mut damaged: Vec<String> = Vec::new();
    session.scan_range(&start, &end, &mut |key, value| {
        if let Err(error) = codec::decode::<JournalEntry>(key, value) {
            damaged.push(error.into_failure().message);
        }
        if key != keys.journal_key(next) {
            damaged.push(format!("`{key}` is the journal entry at the place of revision {next}"));
        }
        next += 1;
        Ok(())
    })?;
    damaged.into_iter().for_each(|message| report.add_finding(message));
    let last = next - 1;
    report.expect_sound(last == head.revision, || {
        format!("the journal has {last} entries, the head has revision {}", head.revision)
    });
    Ok(())
}

/// Reads all summaries by the ids of their contents; an unreadable record, or a record under
/// another id, is a finding.
fn read_summaries(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    report: &mut CheckReport,
) -> Result<SizedSummaries> {
    report.begin_check("summary-records");
    let (start, end) = keys.record_range("s");
    let mut out = SizedSummaries::default();
    let mut findings: Vec<String> = Vec::new();
    session.scan_range(&start, &end, &mut |key, value| {
        match codec::decode::<Summary>(key, value) {
            Ok(record) => {
                let id = record.id();
                if key != keys.summary_key(id) {
                    findings.push(format!(
                        "`{key}` holds the summary {}",
                        crate::storage::summary::format_summary_id(id)
                    ));
                }
                out.insert(id, (record, int::to_u32(value.len())));
            }
            Err(error) => findings.push(error.into_failure().message),
        }
        Ok(())
    })?;
    findings.into_iter().for_each(|message| report.add_finding(message));
    Ok(out)
}

#[cfg(test)]
mod tests;
