//! Stores the branches that a session file abandoned, and sets them aside.
//!
//! In: the live messages of a session and its branches, each message with an entry id. Out: the
//! report of an ingest. A branch is stored where it left the conversation: `rewind` goes back to
//! the message that it follows, its messages are appended, and `rewind` returns to the live ones.
//! So no context has its messages, and a search finds them. A branch of which every message is
//! stored costs nothing.
//!
//! If another caller stored the newest message, nothing is set aside, and a warning says so.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::{
    bindings::ingestion::AppendMode,
    clock::Cancel,
    error::{Code, Result},
    ingest::{IngestOptions, IngestReport, IngestResult},
    lcm::Lcm,
    session_files::{Branch, count_aside},
};

/// Warning about branches that were not stored.
const OTHERS: &str = "branches of the session were not stored, because another caller stored \
                      messages after the messages of the session";

/// Messages of a session, with its branches.
#[derive(Clone, Copy, Debug)]
pub struct SessionMessages<'a> {
    /// Texts of the live messages, in order.
    pub live: &'a [String],
    /// Index of the line of each live message.
    pub lines: &'a [usize],
    /// Branches that the conversation did not continue.
    pub branches: &'a [Branch],
}

impl SessionMessages<'_> {
    /// Returns the number of all messages, with those of branches.
    #[must_use]
    pub fn count_messages(&self) -> u64 {
        let count = self.live.len() + count_aside(self.branches);
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

/// An ingest of a session with branches.
struct SessionIngest<'a> {
    lcm: &'a Lcm,
    conversation: &'a str,
    options: &'a IngestOptions,
    cancel: &'a Cancel,
    /// Seq of each stored message that has an entry id.
    seqs: HashMap<String, u64>,
    /// Seq of the newest message that was read; 0: none was read.
    seq_last: u64,
    /// Entry id of the newest stored message; `None`: there is no message, or it has no id.
    newest: Option<String>,
    report: IngestReport,
}

impl Lcm {
    /// Stores the missing messages of a session file, as [`Lcm::ingest`] does, and those of its
    /// branches, which are set aside. `progress` receives the number of finished live messages.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::ingest`], with the index of a live message, and of the verb `rewind`.
    pub fn ingest_session(
        &self,
        conversation: &str,
        session: &SessionMessages<'_>,
        options: &IngestOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(usize),
    ) -> IngestResult<IngestReport> {
        let SessionMessages { live, branches, .. } = *session;
        if branches.is_empty() {
            return self.ingest(conversation, live, options, cancel, progress);
        }
        let mut ingest = SessionIngest {
            lcm: self,
            conversation,
            options,
            cancel,
            seqs: HashMap::new(),
            seq_last: 0,
            newest: None,
            report: IngestReport::default(),
        };
        ingest.read_stored()?;
        ingest.store_branches(session)?;
        let report = self.ingest(conversation, live, options, cancel, progress)?;
        ingest.add_report(report);
        let mut report = ingest.report;
        report.skipped = session.count_messages().saturating_sub(report.ingested);
        Ok(report)
    }
}

impl SessionIngest<'_> {
    /// Reads the ids of the stored messages that were not read before.
    fn read_stored(&mut self) -> Result<()> {
        let Self { lcm, conversation, cancel, seqs, seq_last, newest, .. } = self;
        let first = seq_last.saturating_add(1);
        let read = lcm.messages_all(conversation, first, u64::MAX, cancel, &mut |text| {
            *seq_last = seq_last.saturating_add(1);
            *newest = read_id(text);
            if let Some(id) = newest.clone() {
                seqs.insert(id, *seq_last);
            }
            Ok(())
        });
        match read {
            // The conversation does not exist yet.
            Err(error) if error.code == Code::NotFound => Ok(()),
            read => read,
        }
    }

    /// Stores the branches that have missing messages, and returns to the live messages.
    fn store_branches(&mut self, session: &SessionMessages<'_>) -> Result<()> {
        let live = session.lines.iter().zip(session.live).filter(|(_, text)| !is_system(text));
        let live: Vec<(usize, String)> =
            live.filter_map(|(line, text)| Some((*line, read_id(text)?))).collect();
        let aside = session.branches.iter().flat_map(|branch| &branch.messages);
        let aside: HashSet<String> = aside.filter_map(|message| read_id(&message.text)).collect();
        let is_own = |id: &String| aside.contains(id) || live.iter().any(|(_, live)| live == id);
        let is_others = match &self.newest {
            Some(newest) => !is_own(newest),
            None => !self.seqs.is_empty(),
        };
        let missing = |branch: &&Branch, seqs: &HashMap<String, u64>| {
            let mut ids = branch.messages.iter().filter_map(|message| read_id(&message.text));
            ids.any(|id| !seqs.contains_key(&id))
        };
        let todo: Vec<&Branch> =
            session.branches.iter().filter(|branch| missing(branch, &self.seqs)).collect();
        let newest_is_aside = self.newest.as_ref().is_some_and(|newest| aside.contains(newest));
        if is_others {
            if !todo.is_empty() {
                self.report.warnings.push(OTHERS.to_owned());
            }
            return Ok(());
        }
        for branch in &todo {
            self.store_live_before(session, branch, &live)?;
            self.store_branch(branch)?;
        }
        if !todo.is_empty() || newest_is_aside {
            let last = live.iter().filter_map(|(_, id)| self.seqs.get(id)).max().copied();
            self.rewind(last.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Stores the live messages before the first line of a branch, unless they are stored.
    fn store_live_before(
        &mut self,
        session: &SessionMessages<'_>,
        branch: &Branch,
        live: &[(usize, String)],
    ) -> Result<()> {
        let Some(first) = branch.messages.first().map(|message| message.line) else {
            return Ok(());
        };
        let before = live.iter().filter(|(line, _)| *line < first);
        let mut missing = before.clone().filter(|(_, id)| !self.seqs.contains_key(id));
        if missing.next().is_none() {
            return Ok(());
        }
        let stored = before.filter_map(|(_, id)| self.seqs.get(id)).max().copied();
        if let Some(stored) = stored {
            self.rewind(stored)?;
        }
        let count = session.lines.iter().take_while(|line| **line < first).count();
        let messages = session.live.get(..count).unwrap_or_default();
        self.append(messages, self.options.append_mode)
    }

    /// Appends the missing messages of a branch after the message that they follow.
    fn store_branch(&mut self, branch: &Branch) -> Result<()> {
        let mut after = branch.after.as_ref().and_then(|id| self.seqs.get(id)).copied();
        let mut missing = Vec::new();
        for message in &branch.messages {
            let stored = read_id(&message.text).and_then(|id| self.seqs.get(&id).copied());
            match stored.filter(|_| missing.is_empty()) {
                Some(seq) => after = Some(seq),
                None => missing.push(message.text.clone()),
            }
        }
        self.rewind(after.unwrap_or_default())?;
        self.append(&missing, AppendMode::New)
    }

    /// Appends messages and learns their seqs.
    fn append(&mut self, messages: &[String], append_mode: AppendMode) -> Result<()> {
        let options = IngestOptions { append_mode, ..self.options.clone() };
        let ingest =
            self.lcm.ingest(self.conversation, messages, &options, self.cancel, &mut |_| ());
        self.add_report(ingest.map_err(|failure| failure.error)?);
        self.read_stored()
    }

    /// Sets aside the messages after this seq, or brings back those that lead to it.
    fn rewind(&mut self, to: u64) -> Result<()> {
        if self.seqs.is_empty() {
            return Ok(());
        }
        let arguments = json!({ "to": to }).to_string();
        let now = self.options.clock.now_ms();
        self.lcm.admin_call(self.conversation, "rewind", &arguments, now).map(drop)
    }

    /// Adds the counts of a report; all other values become those of the report.
    fn add_report(&mut self, next: IngestReport) {
        let before = std::mem::take(&mut self.report);
        let mut warnings = before.warnings;
        for warning in next.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        self.report = IngestReport {
            ingested: before.ingested.saturating_add(next.ingested),
            seq_first: before.seq_first.or(next.seq_first),
            seq_last: next.seq_last.or(before.seq_last),
            warnings,
            ..next
        };
    }
}

/// Returns the entry id of a message; `None`: it has none.
fn read_id(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct EntryId {
        id: Option<Value>,
    }
    match serde_json::from_str::<EntryId>(text).ok()?.id? {
        Value::String(id) => Some(id),
        _ => None,
    }
}

/// Returns whether a message is one of the system, which may have no seq.
fn is_system(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct MessageRole {
        role: Option<Value>,
    }
    let role = serde_json::from_str::<MessageRole>(text).ok().and_then(|message| message.role);
    role == Some(Value::from("system"))
}
