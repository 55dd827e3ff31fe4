//! Check: every invariant of a conversation, recomputed from what is stored.
//!
//! It reads everything once, in pages, and believes no count: projections, hashes, tokens, places
//! and edges are made anew and compared. What other rules derived ([`lcm_text::base::derivation_version`]) is not
//! compared but must fit its text; everything else is. Findings do not stop it; a record that
//! cannot be read at all is a finding of its own.

mod graph;
mod payloads;
mod sequence;

pub(super) use graph::{follows, measures, trust};

use alloc::{format, string::String, vec::Vec};

use crate::{
    ask, search,
    storage::{
        codec,
        head::{Head, Loaded},
        keys::Keys,
        records::grants,
        store_session::Reader,
        summary::Summary,
    },
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    json::Writer,
    sort::Sorted,
};

/// Largest head that is sound.
const HEAD_BYTES_MAX: usize = 4 << 10;
/// Findings of one kind that are listed; more are counted.
const FINDINGS_MAX: usize = 8;

/// Findings by check.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<(&'static str, Vec<String>, usize)>,
}

impl Report {
    /// Starts a check; it passes unless something is found.
    pub(super) fn begin(&mut self, name: &'static str) {
        self.checks.push((name, Vec::new(), 0));
    }

    /// Adds a finding to the check that runs.
    pub(super) fn found(&mut self, message: String) {
        if let Some((_, messages, count)) = self.checks.last_mut() {
            *count += 1;
            if messages.len() < FINDINGS_MAX {
                messages.push(message);
            }
        }
    }

    /// Adds a finding unless `sound`.
    pub(super) fn expect(&mut self, sound: bool, message: impl FnOnce() -> String) {
        if !sound {
            self.found(message());
        }
    }

    /// Turns damage into a finding; other errors stop the check.
    pub(super) fn damage<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.damaged(error).map(|()| None),
        }
    }

    #[cold]
    fn damaged(&mut self, error: Error) -> Result<()> {
        if error.code != ErrorCode::Corrupt {
            return Err(error);
        }
        self.found(error.into_failure().message);
        Ok(())
    }

    fn json(&self, metrics: Writer) -> String {
        let ok = self.checks.iter().all(|(_, _, count)| *count == 0);
        let mut checks = Writer::array();
        for (name, messages, count) in &self.checks {
            let mut message = messages.join("; ");
            if *count > messages.len() {
                message = format!("{message}; and {} more", count - messages.len());
            }
            let mut row = Writer::object();
            row.text("message", &message);
            row.text("name", name);
            row.text("status", if *count == 0 { "pass" } else { "fail" });
            checks.push_object(row);
        }
        let mut report = Writer::object();
        report.array_at("checks", checks);
        report.null("cursor");
        report.object_at("metrics", metrics);
        report.flag("ok", ok);
        report.end_object()
    }
}

/// Checks a conversation and returns `{"ok", "checks", "metrics", "cursor"}`.
///
/// # Errors
///
/// `not-found`; errors of the store. Damage is no error but a finding.
pub(crate) fn check(reader: &mut Reader<'_>, conversation: &str) -> Result<String> {
    let keys = Keys::new(conversation)?;
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let bytes = loaded.bytes.as_ref().map_or(0, Vec::len);
    let head = &loaded.head;
    let mut report = Report::default();
    report.begin("head");
    report.expect(bytes <= HEAD_BYTES_MAX, || format!("the head has {bytes} bytes"));
    let (less, ledger) = (head.raw_tokens.wrapping_sub(head.context.tokens), &head.ledger);
    let explained = ledger.saved_tokens.wrapping_add(ledger.withdrawn_tokens);
    report.expect(less == explained, || {
        format!("the context has {less} tokens less than the messages, the ledger says {explained}")
    });
    names(reader, &keys, conversation, &mut report)?;
    journal(reader, &keys, head, &mut report)?;
    let others = sequence::check(reader, &keys, head, &mut report)?;
    let summaries = read_summaries(reader, &keys, &mut report)?;
    graph::context(reader, &keys, head, &summaries, &mut report)?;
    graph::summaries(reader, &keys, head, &summaries, &mut report)?;
    report.begin("search-index");
    let found = search::check(reader, &keys, head, &summaries);
    for message in report.damage(found)?.unwrap_or_default() {
        report.found(message);
    }
    report.begin("grants");
    let found = grants::check(reader, &keys);
    for message in report.damage(found)?.unwrap_or_default() {
        report.found(message);
    }
    report.begin("vectors");
    let counts = [head.messages, int::to_u64(summaries.len())];
    let found = search::vectors::check::check(reader, &keys, counts);
    for message in report.damage(found)?.unwrap_or_default() {
        report.found(message);
    }
    report.begin("question");
    let found = ask::check(reader, &keys);
    report.damage(found)?;
    let mut metrics = Writer::object();
    metrics.number("context_items", head.context.count());
    metrics.number("context_tokens", head.context.tokens);
    metrics.number("messages", head.messages);
    metrics.number("messages_newer_rules", others.newer);
    metrics.number("messages_older_rules", others.older);
    metrics.number("raw_bytes", head.raw_bytes);
    metrics.number("raw_tokens", head.raw_tokens);
    metrics.number("revision", head.revision);
    metrics.number("summaries", int::to_u64(summaries.len()));
    Ok(report.json(metrics))
}

/// The list of conversations names this one.
fn names(
    reader: &mut Reader<'_>,
    keys: &Keys,
    conversation: &str,
    report: &mut Report,
) -> Result<()> {
    let key = keys.name();
    let value = reader.fresh_one(&key)?;
    let Some(value) = value else {
        report.found(format!("`{key}` is missing"));
        return Ok(());
    };
    let name = report.damage(codec::decode::<(String, String)>(&key, &value))?;
    report.expect(name.is_none_or(|(_, id)| id == conversation), || {
        format!("`{key}` names another conversation")
    });
    Ok(())
}

/// One entry for every revision.
fn journal(reader: &mut Reader<'_>, keys: &Keys, head: &Head, report: &mut Report) -> Result<()> {
    report.begin("journal");
    let (start, end) = keys.range("j");
    let mut next = 1u64;
    let mut damaged: Vec<String> = Vec::new();
    reader.scan(&start, &end, &mut |key, value| {
        if let Err(error) = codec::decode::<crate::storage::head::Journal>(key, value) {
            damaged.push(error.into_failure().message);
        }
        if key != keys.journal(next) {
            damaged.push(format!("`{key}` stands where revision {next} belongs"));
        }
        next += 1;
        Ok(())
    })?;
    damaged.into_iter().for_each(|message| report.found(message));
    let last = next - 1;
    report
        .expect(last == head.revision, || format!("{last} entries for revision {}", head.revision));
    Ok(())
}

/// All summaries by id, with the size of their records.
pub(crate) type Summaries = Sorted<[u8; 8], (Summary, u32)>;

fn read_summaries(reader: &mut Reader<'_>, keys: &Keys, report: &mut Report) -> Result<Summaries> {
    report.begin("summary-records");
    let (start, end) = keys.range("s");
    let mut out = Summaries::default();
    let mut findings: Vec<String> = Vec::new();
    reader.scan(&start, &end, &mut |key, value| {
        match codec::decode::<Summary>(key, value) {
            Ok(record) => {
                let id = record.id();
                if key != keys.summary(id) {
                    findings.push(format!(
                        "`{key}` holds the summary {}",
                        crate::storage::summary::name(id)
                    ));
                }
                out.insert(id, (record, int::to_u32(value.len())));
            }
            Err(error) => findings.push(error.into_failure().message),
        }
        Ok(())
    })?;
    findings.into_iter().for_each(|message| report.found(message));
    Ok(out)
}

#[cfg(test)]
mod tests;
