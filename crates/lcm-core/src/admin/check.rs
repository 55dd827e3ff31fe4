//! Check: every invariant of a conversation, recomputed from what is stored.
//!
//! It reads everything once, in pages, and believes no count: projections, hashes, tokens, places
//! and edges are made anew and compared. Findings do not stop it; a record that cannot be read at
//! all is a finding of its own.

mod graph;
mod sequence;

pub(super) use graph::follows;

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use serde_json::{Value, json};

use crate::{
    codec,
    error::{Error, ErrorCode, Result},
    head::{Head, Loaded},
    keys::Keys,
    num,
    reader::Reader,
    search,
    summary::Summary,
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
            Err(Error { code: ErrorCode::Corrupt, message }) => {
                self.found(message);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn json(&self, metrics: &Value) -> Value {
        let ok = self.checks.iter().all(|(_, _, count)| *count == 0);
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|(name, messages, count)| {
                let status = if *count == 0 { "pass" } else { "fail" };
                let mut message = messages.join("; ");
                if *count > messages.len() {
                    message = format!("{message}; and {} more", count - messages.len());
                }
                json!({"name": name, "status": status, "message": message})
            })
            .collect();
        json!({"ok": ok, "checks": checks, "metrics": metrics, "cursor": Value::Null})
    }
}

/// Checks a conversation and returns `{"ok", "checks", "metrics", "cursor"}`.
///
/// # Errors
///
/// `not-found`; errors of the store. Damage is no error but a finding.
pub(crate) fn check(reader: &mut Reader<'_>, conversation: &str) -> Result<String> {
    let keys = Keys::new(conversation)?;
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    let loaded = loaded.existing()?;
    let bytes = loaded.bytes.as_ref().map_or(0, Vec::len);
    let head = &loaded.head;
    let mut report = Report::default();
    report.begin("head");
    report.expect(bytes <= HEAD_BYTES_MAX, || format!("the head has {bytes} bytes"));
    names(reader, &keys, conversation, &mut report)?;
    journal(reader, &keys, head, &mut report)?;
    sequence::check(reader, &keys, head, &mut report)?;
    let summaries = read_summaries(reader, &keys, &mut report)?;
    graph::context(reader, &keys, head, &summaries, &mut report)?;
    graph::summaries(reader, &keys, head, &summaries, &mut report)?;
    report.begin("search-index");
    let found = search::check(reader, &keys, head, &summaries);
    for message in report.damage(found)?.unwrap_or_default() {
        report.found(message);
    }
    let metrics = json!({
        "messages": head.messages,
        "raw_bytes": head.raw_bytes,
        "raw_tokens": head.raw_tokens,
        "summaries": summaries.len(),
        "context_items": head.context.count(),
        "context_tokens": head.context.tokens,
        "revision": head.revision,
    });
    Ok(format!("{}", report.json(&metrics)))
}

/// The list of conversations names this one.
fn names(
    reader: &mut Reader<'_>,
    keys: &Keys,
    conversation: &str,
    report: &mut Report,
) -> Result<()> {
    let key = keys.name();
    let value = reader.fresh(core::slice::from_ref(&key))?.into_iter().next().flatten();
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
    reader.scan(&start, &end, |key, value| {
        if let Err(error) = codec::decode::<crate::head::Journal>(key, value) {
            damaged.push(error.message);
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
pub(super) type Summaries = BTreeMap<[u8; 8], (Summary, u32)>;

fn read_summaries(reader: &mut Reader<'_>, keys: &Keys, report: &mut Report) -> Result<Summaries> {
    report.begin("summary-records");
    let (start, end) = keys.range("s");
    let mut out = Summaries::new();
    let mut findings: Vec<String> = Vec::new();
    reader.scan(&start, &end, |key, value| {
        match codec::decode::<Summary>(key, value) {
            Ok(record) => {
                let id = record.id();
                if key != keys.summary(id) {
                    findings
                        .push(format!("`{key}` holds the summary {}", crate::summary::name(id)));
                }
                out.insert(id, (record, num::to_u32(value.len())));
            }
            Err(error) => findings.push(error.message),
        }
        Ok(())
    })?;
    findings.into_iter().for_each(|message| report.found(message));
    Ok(out)
}
