//! The plan of a reconcile: ranges of missing entries, warnings and the next checkpoint.
//!
//! In: a transcript, and which of its entries are stored. Out: the plan as JSON, which `reconcile`
//! returns to the host.

use alloc::{format, string::String, vec::Vec};

use crate::storage::head::ConversationHead;
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        hash, int,
        json::JsonWriter,
        sort,
    },
    config::Config,
    message::Role,
};

use super::{
    backlog::{LastEntry, OverlapSummary},
    list_decision::{EntryOutcome, ListDecision},
    list_texts::ListHashes,
    planned_line::PlannedLine,
    replay::ReplayThresholds,
    transcript::{ReconcileRequest, TranscriptEntry},
};

/// The inputs of a plan.
pub(super) struct PlanInput<'a> {
    pub(super) config: &'a Config,
    pub(super) head: &'a ConversationHead,
    pub(super) transcript: &'a ReconcileRequest,
    /// Indexes of the entries that `append` would store in an empty conversation.
    pub(super) effective: &'a [usize],
    /// Notice about entries whose ids are taken; `None`: there are none.
    pub(super) taken: Option<String>,
}

/// A range of entries, by 0-based inclusive index.
#[derive(Clone, Copy)]
struct MissingRange {
    from: u64,
    to: u64,
    /// What becomes of the entries.
    outcome: EntryOutcome,
}

impl PlanInput<'_> {
    /// Builds the JSON plan. `found_by` names how the stored entries were found, and `outcome`
    /// returns what becomes of the entry at an index. `decision`: of the alignment, with
    /// what is remembered of the list; `None`: only ids count.
    ///
    /// # Errors
    ///
    /// `exists`: a refused likely replay.
    pub(super) fn build_plan(
        &self,
        found_by: &'static str,
        decision: Option<(&ListDecision, Option<ListHashes>)>,
        outcome: &dyn Fn(usize) -> EntryOutcome,
    ) -> Result<String> {
        let is_recognised = |index: usize| outcome(index) == EntryOutcome::Stored;
        let Self { config, head, transcript, effective, .. } = *self;
        let ReconcileRequest { entries, confirmed_count, backlog, .. } = transcript;
        let confirmed = *confirmed_count;
        let last = effective.iter().rev().find(|index| **index < confirmed);
        let by =
            if last.is_none_or(|index| is_recognised(*index)) { found_by } else { "confirmed" };
        let is_stored = |index: usize| index < confirmed || is_recognised(index);
        let mut indexes: Vec<usize> =
            (0..entries.len()).filter(|index| !is_stored(*index)).collect();
        if transcript.refuse_replay {
            self.ensure_no_replay(&indexes)?;
        }
        let tokens = |index: usize| entries.get(index).map_or(0, |entry| entry.tokens);
        let first_stored = effective.iter().copied().find(|index| is_stored(*index));
        let stored = head.messages;
        let overlap = OverlapSummary { stored, found_by: by, first_stored };
        let bounded = backlog.limit_missing(config, &mut indexes, &tokens, &overlap);
        let missing = collect_ranges(&indexes, outcome);
        let mut warnings = JsonWriter::new_array();
        let notices = decision.map_or(&[][..], |(decision, _)| &decision.notices);
        notices.iter().chain(&self.taken).for_each(|notice| warnings.push_text(notice));
        if let Some(warning) = backlog.build_warning(&bounded) {
            warnings.push_text(&warning);
        }
        // The checkpoint changes only if no planned entry is still to be stored.
        let is_complete = missing.is_empty() && bounded.blocked_reason.is_none();
        let last = entries.last().filter(|_| is_complete);
        let hash = last.map(|entry| hash::hex(&entry.mark.meaning)).unwrap_or_default();
        let last = last.map(|entry| {
            let (entry_id, entries) = (entry.entry_id.as_deref(), int::to_u64(entries.len()));
            LastEntry { entry_id, hash: &hash, entries }
        });
        let mut plan = JsonWriter::new_object();
        plan.add_array("missing_ranges", write_ranges(&missing));
        if let Some((decision, hashes)) = decision {
            let is_all = !bounded.has_more && bounded.blocked_reason.is_none();
            let is_complete = is_all && bounded.fork_entries.is_none();
            let line = PlannedLine::from_decision(decision, hashes, is_complete);
            plan.add_object("line", line.to_object());
        }
        plan.add_number("stored", stored);
        plan.add_text("by", by);
        // Revision 0: the conversation does not exist.
        plan.add_number("revision", head.revision);
        backlog.write_plan(&mut plan, &bounded, last);
        plan.add_array("warnings", warnings);
        Ok(plan.end_object())
    }

    /// Refuses a likely replay: as many missing entries as a threshold equal newest stored
    /// messages.
    fn ensure_no_replay(&self, missing: &[usize]) -> Result<()> {
        let mut meanings: Vec<[u8; 8]> =
            self.head.recent_marks.iter().map(|mark| mark.meaning).collect();
        sort::sort(&mut meanings);
        let is_equal =
            |entry: &&TranscriptEntry| meanings.binary_search(&entry.mark.meaning).is_ok();
        let thresholds = ReplayThresholds::from_config(self.config);
        for (from_user, count_min) in [(true, thresholds.users), (false, thresholds.others)] {
            let entries = missing.iter().filter_map(|index| self.transcript.entries.get(*index));
            let of_kind = entries.filter(|entry| (entry.role == Role::User) == from_user);
            let count = of_kind.filter(is_equal).count();
            if int::to_u32(count) >= count_min {
                let message = format!(
                    "`entries` must have fewer than {count_min} new messages that equal stored \
                     messages, got {count}: a likely replay; without `refuse_replay` the plan has \
                     these messages"
                );
                return Err(Error::new(ErrorCode::Exists, message));
            }
        }
        Ok(())
    }
}

/// Joins the consecutive indexes of a sorted list into ranges.
fn collect_ranges(indexes: &[usize], outcome: &dyn Fn(usize) -> EntryOutcome) -> Vec<MissingRange> {
    let mut ranges: Vec<MissingRange> = Vec::new();
    for index in indexes {
        let at = int::to_u64(*index);
        let outcome = outcome(*index);
        match ranges.last_mut() {
            Some(range) if range.to + 1 == at && range.outcome == outcome => range.to = at,
            _ => ranges.push(MissingRange { from: at, to: at, outcome }),
        }
    }
    ranges
}

fn write_ranges(missing: &[MissingRange]) -> JsonWriter {
    let mut ranges = JsonWriter::new_array();
    for MissingRange { from, to, outcome } in missing {
        let mut range = JsonWriter::new_object();
        range.add_number("index_first", *from);
        range.add_number("index_last", *to);
        match outcome {
            EntryOutcome::Revision => range.add_flag("revision", true),
            EntryOutcome::System => range.add_flag("system", true),
            EntryOutcome::New | EntryOutcome::Stored => {}
        }
        ranges.push_object(range);
    }
    ranges
}
