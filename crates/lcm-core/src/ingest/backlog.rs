//! Limits of a plan: a bounded part of the backlog, and only the newest messages of a fork.
//!
//! In: the missing entries and the checkpoint of the last plan. Out: the entries to store now, the
//! next checkpoint, and whether the transcript is still the same session. The checkpoint advances
//! only when everything before it is stored.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    base::{
        int,
        json::{self, JsonFields, JsonWriter},
    },
    config::Config,
};

/// Entries that every bounded plan may have.
const BACKLOG_ENTRIES_MIN: u64 = 50;
/// Stored messages for each entry of a bounded plan that exceeds [`BACKLOG_ENTRIES_MIN`], as in the
/// reference system.
const BACKLOG_DIVISOR: u64 = 5;
/// Tokens that every first import of a forked session may have. A greater import may have three
/// tenths of the chunk of a leaf, as in the reference system.
const BOOTSTRAP_TOKENS_MIN: u64 = 6_000;
/// Tokens of the chunk of a leaf if the configuration names no number.
const LEAF_CHUNK_TOKENS_DEFAULT: u32 = 20_000;

/// The limits that a host asks for.
#[derive(Debug, Default)]
pub(super) struct BacklogOptions {
    /// Whether the plan has at most a part of the missing entries, oldest first.
    is_bounded: bool,
    /// Whether the session began as a copy of another session.
    is_forked: bool,
    /// The id that the session gives itself.
    epoch: Option<String>,
    /// The checkpoint of the last plan, as JSON.
    checkpoint: Option<String>,
    /// The epoch in the checkpoint.
    previous_epoch: Option<String>,
}

/// The effect of the limits on a plan.
#[derive(Debug, Default)]
pub(super) struct BoundedBacklog {
    /// Why nothing may be stored although entries are missing.
    pub(super) blocked_reason: Option<&'static str>,
    /// Whether more entries are missing than the plan has.
    pub(super) has_more: bool,
    /// Number of missing entries of a forked session, of which the plan has only the newest.
    pub(super) fork_entries: Option<u64>,
}

impl BacklogOptions {
    /// Takes the fields of a transcript that ask for limits.
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Self {
        let checkpoint =
            fields.take_any("checkpoint").filter(|(_, kind)| *kind == json::JsonKind::Object);
        let checkpoint = checkpoint.map(|(text, _)| text.into_owned());
        let previous_epoch = checkpoint.as_deref().and_then(|text| {
            let members = json::parse_object(text).ok()?;
            let epoch = json::find_member(&members, text, "epoch")?;
            let is_text = epoch.kind == json::JsonKind::String;
            is_text.then(|| json::text(text, epoch.value).into_owned())
        });
        Self {
            is_bounded: fields.take_flag("bounded"),
            is_forked: fields.take_flag("forked"),
            epoch: fields.take_optional_text("epoch"),
            checkpoint,
            previous_epoch,
        }
    }

    /// Cuts the list of missing entries; `tokens` returns the tokens of an entry.
    pub(super) fn limit_missing(
        &self,
        config: &Config,
        missing: &mut Vec<usize>,
        tokens: &dyn Fn(usize) -> u64,
        overlap: &OverlapSummary,
    ) -> BoundedBacklog {
        let OverlapSummary { stored, found_by: by, first_stored } = *overlap;
        let mut bounded = BoundedBacklog::default();
        if let Some(first) = first_stored.filter(|_| self.is_forked) {
            // Entries that the first import left out are in the forked conversation.
            missing.retain(|index| *index > first);
        }
        let count = int::to_u64(missing.len());
        if self.is_forked && stored == 0 {
            let costs: Vec<u64> = missing.iter().map(|index| tokens(*index)).collect();
            let kept = count_newest_fitting(&costs, bootstrap_tokens_max(config));
            missing.drain(..missing.len() - kept);
            bounded.fork_entries = (int::to_u64(kept) < count).then_some(count);
        }
        let most = backlog_entries_max(stored);
        if self.is_bounded && stored > 0 && int::to_u64(missing.len()) > most {
            if by == "none" {
                // A replay of this size would store everything twice.
                bounded.blocked_reason = Some("import-cap");
                missing.clear();
            } else {
                bounded.has_more = true;
                missing.truncate(int::to_usize(most));
            }
        }
        bounded
    }

    /// Compares the session with the session of the checkpoint; `None`: there is no checkpoint.
    fn epoch_status(&self) -> Option<&'static str> {
        self.checkpoint.as_ref()?;
        Some(compare_epochs(self.previous_epoch.as_deref(), self.epoch.as_deref()))
    }

    /// Writes the effect of the limits. `last` is the last entry if every entry is stored.
    pub(super) fn write_plan(
        &self,
        plan: &mut JsonWriter,
        bounded: &BoundedBacklog,
        last: Option<LastEntry<'_>>,
    ) {
        plan.add_optional_text("blocked", bounded.blocked_reason);
        match last {
            Some(LastEntry { entry_id, hash, entries }) => {
                let mut next = JsonWriter::new_object();
                next.add_optional_text("entry_id", entry_id);
                next.add_text("hash", hash);
                next.add_number("entries", entries);
                next.add_optional_text("epoch", self.epoch.as_deref());
                plan.add_object("checkpoint", next);
            }
            None => plan.add_json("checkpoint", self.checkpoint.as_deref().unwrap_or("null")),
        }
        plan.add_optional_text("epoch", self.epoch_status());
        if let Some(entries) = bounded.fork_entries {
            plan.add_number("fork_entries", entries);
        }
        plan.add_flag("more", bounded.has_more);
    }

    /// Builds the warning about the limits, if they had an effect.
    pub(super) fn build_warning(&self, bounded: &BoundedBacklog) -> Option<String> {
        if bounded.blocked_reason.is_some() {
            return Some(String::from(
                "import-cap: the transcript does not continue after the stored messages, and has \
                 too many new messages for a bounded plan",
            ));
        }
        let entries = bounded.fork_entries?;
        Some(format!("fork-bounded: only the newest of {entries} entries are imported"))
    }
}

/// How a transcript and the stored messages overlap.
pub(super) struct OverlapSummary {
    /// Number of stored messages.
    pub(super) stored: u64,
    /// The way in which stored entries were found.
    pub(super) found_by: &'static str,
    /// Index of the first entry that is stored.
    pub(super) first_stored: Option<usize>,
}

/// The last entry of a transcript.
pub(super) struct LastEntry<'a> {
    pub(super) entry_id: Option<&'a str>,
    pub(super) hash: &'a str,
    pub(super) entries: u64,
}

/// Compares two sessions by the ids that they give themselves.
fn compare_epochs(previous: Option<&str>, current: Option<&str>) -> &'static str {
    match (previous, current) {
        (Some(previous), Some(current)) if previous == current => "same",
        (Some(_), Some(_)) => "rollover",
        _ => "undeclared",
    }
}

/// Returns the most entries of a bounded plan with this many stored messages.
fn backlog_entries_max(stored: u64) -> u64 {
    (stored / BACKLOG_DIVISOR).max(BACKLOG_ENTRIES_MIN)
}

/// Returns the most tokens of the first import of a forked session.
fn bootstrap_tokens_max(config: &Config) -> u64 {
    if let Some(tokens) = config.bootstrap_tokens_max {
        return u64::from(tokens);
    }
    let chunk = u64::from(config.leaf_chunk_tokens_max.unwrap_or(LEAF_CHUNK_TOKENS_DEFAULT));
    (chunk * 3 / 10).max(BOOTSTRAP_TOKENS_MIN)
}

/// Counts the newest entries that fit together.
fn count_newest_fitting(tokens: &[u64], tokens_max: u64) -> usize {
    let fits = |sum: &mut u64, tokens: &u64| {
        *sum = sum.saturating_add(*tokens);
        (*sum <= tokens_max).then_some(())
    };
    tokens.iter().rev().scan(0, fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_plan_is_a_fifth_of_what_is_stored_or_50() {
        let caps = [0, 100, 250, 251, 1_000].map(backlog_entries_max);
        assert_eq!(caps, [50, 50, 50, 50, 200]);
    }

    #[test]
    fn a_session_is_the_same_by_its_id() {
        assert_eq!(compare_epochs(Some("x"), Some("x")), "same");
        assert_eq!(compare_epochs(Some("x"), Some("y")), "rollover");
        assert_eq!(compare_epochs(None, Some("y")), "undeclared");
    }

    #[test]
    fn a_forked_session_takes_the_newest_that_fit() {
        let mut config = Config::default();
        assert_eq!(bootstrap_tokens_max(&config), 6_000);
        config.leaf_chunk_tokens_max = Some(20_000);
        assert_eq!(bootstrap_tokens_max(&config), 6_000);
        config.leaf_chunk_tokens_max = Some(40_000);
        assert_eq!(bootstrap_tokens_max(&config), 12_000);
        config.bootstrap_tokens_max = Some(7);
        assert_eq!(bootstrap_tokens_max(&config), 7);
        assert_eq!(count_newest_fitting(&[2_000, 3_000, 2_500], 6_000), 2);
        assert_eq!(count_newest_fitting(&[100, 7_000], 6_000), 0);
        assert_eq!(count_newest_fitting(&[], 6_000), 0);
    }
}
