//! Limits of a `reconcile` plan: `bounded` limits the number of entries, and `forked` limits the
//! tokens of the first import of a fork.
//!
//! In: the missing entries and the checkpoint of the last plan. Out: the entries to store now, the
//! next checkpoint, and whether the transcript is still the same session. The checkpoint changes
//! only when the plan has no entry to store and is not blocked.

use alloc::{format, string::String, vec::Vec};

use lcm_text::{
    base::{
        int,
        json::{self, JsonFields, JsonWriter},
    },
    config::Config,
};

/// Entries that every bounded plan may have, however few messages are stored.
const BACKLOG_ENTRIES_MIN: u64 = 50;
/// A bounded plan may have one entry for this many stored messages, but always
/// [`BACKLOG_ENTRIES_MIN`].
const BACKLOG_DIVISOR: u64 = 5;
/// Least limit, in tokens, of the first import of a fork if the configuration has no
/// `bootstrap_tokens_max`. The limit is then three tenths of a leaf chunk, but at least this.
const BOOTSTRAP_TOKENS_MIN: u64 = 6_000;
/// Tokens of a leaf chunk, for the limit of a fork, if the configuration does not set them.
const LEAF_CHUNK_TOKENS_DEFAULT: u32 = 20_000;

/// The fields of a transcript that limit its plan.
#[derive(Debug, Default)]
pub(super) struct BacklogOptions {
    /// Whether the number of entries of the plan is limited if messages are stored; the oldest
    /// missing entries are kept.
    is_bounded: bool,
    /// Whether the session began as a copy of another session.
    is_forked: bool,
    /// The id that the session gives itself; `None`: no id is given.
    epoch: Option<String>,
    /// The checkpoint of the last plan, as JSON; `None`: absent or not an object.
    checkpoint: Option<String>,
    /// The epoch in the checkpoint; `None`: no checkpoint, or no text in its field `epoch`.
    previous_epoch: Option<String>,
}

/// The effect of the limits on a plan.
#[derive(Debug, Default)]
pub(super) struct BoundedBacklog {
    /// Why nothing may be stored although entries are missing; `None`: the plan is not blocked.
    pub(super) blocked_reason: Option<&'static str>,
    /// Whether `bounded` cut the list, so that later plans have the other missing entries.
    pub(super) has_more: bool,
    /// Number of missing entries of a fork before the list was cut to the newest; `None`: the list
    /// of a fork was not cut.
    pub(super) fork_entries: Option<u64>,
}

impl BacklogOptions {
    /// Takes the fields that limit the plan from a transcript.
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

    /// Cuts the sorted list of missing entries to the limits and returns their effect. `tokens`
    /// returns the tokens of the entry at an index.
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
            // The first import left out older entries, which the original conversation has.
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
                // No stored entry was found: a replay would store every message twice.
                bounded.blocked_reason = Some("import-cap");
                missing.clear();
            } else {
                bounded.has_more = true;
                missing.truncate(int::to_usize(most));
            }
        }
        bounded
    }

    /// Compares the epochs of the checkpoint and the session; `None`: there is no checkpoint.
    fn epoch_status(&self) -> Option<&'static str> {
        self.checkpoint.as_ref()?;
        Some(compare_epochs(self.previous_epoch.as_deref(), self.epoch.as_deref()))
    }

    /// Writes the fields `blocked`, `checkpoint`, `epoch`, `fork_entries` and `more` of the plan.
    /// `last` is the entry of the new checkpoint; `None`: the old checkpoint stays.
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

    /// Builds the warning about a blocked plan or, if the plan is not blocked, a cut fork; `None`:
    /// neither.
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
    /// Value of `by` in the plan: how stored entries were found; `none`: none was found.
    pub(super) found_by: &'static str,
    /// Index of the first entry that is stored; `None`: no entry is stored.
    pub(super) first_stored: Option<usize>,
}

/// The last entry of a transcript.
pub(super) struct LastEntry<'a> {
    pub(super) entry_id: Option<&'a str>,
    /// Hash of the entry in hex digits.
    pub(super) hash: &'a str,
    /// Number of entries of the transcript.
    pub(super) entries: u64,
}

/// Compares two epochs; `undeclared`: one or both are unknown.
fn compare_epochs(previous: Option<&str>, current: Option<&str>) -> &'static str {
    match (previous, current) {
        (Some(previous), Some(current)) if previous == current => "same",
        (Some(_), Some(_)) => "rollover",
        _ => "undeclared",
    }
}

/// Returns the most entries of a bounded plan when `stored` messages are stored.
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

/// Returns how many of the last entries have at most `tokens_max` tokens together.
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
