//! Stores lists of messages, exports and imports of any length, as a host does: splits them into
//! calls of the engine.

use lcm_core::Engine;
use lcm_text::{
    base::error::Error,
    types::api::{AppendMode, AppendOptions, Dialect, Receipt, Timestamp},
};
use serde_json::{Value, json};

use crate::ModelStore;

/// Most messages of one call.
const BATCH_MESSAGES: usize = 100;
/// Members of `line` in a plan of `reconcile` that only the first append of the plan gets. `line`
/// has the planned changes of the line.
const FIRST_MEMBERS: [&str; 4] = ["fork", "grown", "restored", "ends_doubt"];

/// A list of messages to store with `reconcile` and the appends of its plan.
pub struct PlannedList<'a> {
    /// Name of the conversation.
    pub conversation: &'a str,
    /// Dialect of the messages.
    pub dialect: Dialect,
    /// The messages, any number of them.
    pub messages: &'a [String],
    /// Seq up to which the caller has seen every message; `None`: unknown.
    pub seq_seen: Option<u64>,
    /// Time of all calls.
    pub now: Timestamp,
}

/// Result of the appends of a plan.
#[derive(Debug, Default)]
pub struct StoredList {
    /// Number of stored messages.
    pub ingested: u32,
    /// Seq up to which the caller has now seen every message.
    pub seq_seen: u64,
    /// Warnings of the plan.
    pub warnings: Vec<String>,
}

impl PlannedList<'_> {
    /// Plans the list with `reconcile`, and makes the appends of the plan.
    ///
    /// # Errors
    ///
    /// Errors of `identify`, `reconcile` and `append`.
    pub fn store_list(
        &self,
        engine: &mut Engine,
        store: &mut ModelStore,
    ) -> Result<StoredList, Error> {
        let mut entries: Vec<Value> = Vec::new();
        for batch in self.messages.chunks(BATCH_MESSAGES) {
            let batch = engine.identify(self.dialect, batch)?;
            entries.extend(serde_json::from_str::<Vec<Value>>(&batch).unwrap());
        }
        let transcript = json!({"entries": entries, "seq_seen": self.seq_seen}).to_string();
        store.begin_call();
        let plan = engine.reconcile(store, self.conversation, &transcript, self.now)?;
        let mut plan: Value = serde_json::from_str(&plan).unwrap();
        let warnings = plan["warnings"].as_array().unwrap().iter();
        let warnings = warnings.map(|it| it.as_str().unwrap().to_owned()).collect();
        let mut stored = StoredList { warnings, ..StoredList::default() };
        let mut line = plan["line"].take();
        let mut revision = plan["revision"].as_u64().unwrap();
        let batches = self.list_batches(&plan);
        let last = batches.len() - 1;
        for (number, (batch, flags)) in batches.into_iter().enumerate() {
            let part = take_part(&mut line, flags, (number == last).then_some(batch.len()));
            let extra = json!({"revision": revision, "line": part}).to_string();
            let receipt = self.append_batch(engine, store, batch, extra)?;
            revision = receipt.revision;
            stored.ingested += receipt.ingested;
            stored.seq_seen = receipt.seq_seen;
        }
        Ok(stored)
    }

    /// Lists the appends of a plan, at least one: messages, whether they are other forms, and
    /// whether they fill the slot of system messages.
    fn list_batches(&self, plan: &Value) -> Vec<(&[String], [bool; 2])> {
        let mut batches: Vec<(&[String], [bool; 2])> = Vec::new();
        for range in plan["missing_ranges"].as_array().unwrap() {
            let [first, last] =
                ["index_first", "index_last"].map(|key| range[key].as_u64().unwrap() as usize);
            let flags = ["revision", "system"].map(|key| range[key] == true);
            let parts = self.messages[first..=last].chunks(BATCH_MESSAGES);
            batches.extend(parts.map(|part| (part, flags)));
        }
        if batches.is_empty() {
            batches.push((&[], [false; 2]));
        }
        batches
    }

    fn append_batch(
        &self,
        engine: &mut Engine,
        store: &mut ModelStore,
        batch: &[String],
        extra: String,
    ) -> Result<Receipt, Error> {
        let options = AppendOptions {
            append_mode: AppendMode::New,
            extra_json: Some(extra),
            ..AppendOptions::default()
        };
        store.begin_call();
        engine.append(store, self.conversation, self.dialect, batch, &options, self.now)
    }
}

/// Takes the members of `line` that belong to the next append. `last_count`: number of messages of
/// the last append; `None`: further appends follow.
fn take_part(line: &mut Value, flags: [bool; 2], last_count: Option<usize>) -> Value {
    let [is_revision, is_system] = flags;
    let mut part =
        json!({"seq_seen": line["seq_seen"], "revision": is_revision, "system": is_system});
    let members = line.as_object_mut().unwrap();
    for key in FIRST_MEMBERS {
        members.remove(key).into_iter().for_each(|value| part[key] = value);
    }
    if !is_system && !is_revision {
        members.remove("branch").into_iter().for_each(|value| part["branch"] = value);
    }
    if !is_system {
        members.remove("start").into_iter().for_each(|value| part["start"] = value);
    }
    if let Some(count) = last_count {
        part["list_hash"] = line["list_hash"].take();
        part["count"] = json!(count);
    }
    part
}

/// Returns the lines of an export, in pages of 64 KiB.
///
/// # Panics
///
/// The export fails.
pub fn export_lines(
    engine: &mut Engine,
    store: &mut ModelStore,
    conversation: &str,
) -> Vec<String> {
    let (mut lines, mut cursor) = (Vec::new(), None::<String>);
    loop {
        store.begin_call();
        let page = engine.export_page(store, conversation, cursor.as_deref(), 64 << 10);
        let page: Value = serde_json::from_str(&page.expect("a page")).unwrap();
        let texts = page["lines"].as_array().unwrap().iter();
        lines.extend(texts.map(|line| line.as_str().unwrap().to_owned()));
        match page["cursor"].as_str() {
            Some(next) => cursor = Some(next.into()),
            None => return lines,
        }
    }
}

/// Imports the lines of an export, at most `page` of them in one call.
///
/// # Panics
///
/// The import fails.
pub fn import_lines(
    engine: &mut Engine,
    store: &mut ModelStore,
    (lines, page): (&[String], usize),
    now: Timestamp,
) {
    let (mut at, mut cursor) = (0usize, None::<String>);
    loop {
        let lines = &lines[at..lines.len().min(at.saturating_add(page))];
        store.begin_call();
        let answer = engine.import_page(store, lines, cursor.as_deref(), now);
        let answer: Value = serde_json::from_str(&answer.expect("an import")).unwrap();
        at += answer["consumed"].as_u64().unwrap() as usize;
        if answer["rewind"] == true {
            at = 0;
        }
        match answer["cursor"].as_str() {
            Some(next) => cursor = Some(next.into()),
            None => return,
        }
    }
}
