//! Likely replays: many new messages that equal the newest stored messages.
//!
//! In: the decision of an append. Out: warnings for the receipt, or an error if the host asked for
//! an error with `refuse_replay`. A host that lost its position would store messages twice, but
//! equal messages alone prove nothing. `append` uses this module; `reconcile` uses its thresholds.

use alloc::{format, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
    },
    config::Config,
    message::Role,
};

use super::{append_options::AppendExtra, batch::AppendCandidate, new_messages::AppendDecision};

/// How many new messages that equal stored messages make a likely replay.
///
/// Users rarely repeat themselves; tools and models do so all the time.
pub(super) struct ReplayThresholds {
    /// Messages of users.
    pub(super) users: u32,
    /// Messages of models, tools and the system.
    pub(super) others: u32,
}

impl ReplayThresholds {
    /// Returns the thresholds of a configuration; 0 counts as 1.
    pub(super) fn from_config(config: &Config) -> Self {
        Self {
            users: config.replay_flood_threshold_external.max(1),
            others: config.replay_flood_threshold_internal.max(1),
        }
    }
}

/// Adds a warning if the number of new user messages that equal newest stored messages reaches the
/// threshold for users, and likewise one for all other messages. A call whose new messages were
/// compared before is checked only with `refuse_replay` ([`AppendExtra::counts_replays`]).
///
/// # Errors
///
/// `exists`, with the text of the warning: a likely replay, and `refuse_replay` is set.
pub(super) fn add_replay_warnings(
    config: &Config,
    extra: &AppendExtra,
    candidates: &[AppendCandidate<'_>],
    decided: &mut AppendDecision,
) -> Result<()> {
    if !extra.counts_replays() {
        return Ok(());
    }
    let is_from_user = |index: usize| {
        candidates.get(index).is_some_and(|candidate| candidate.message.role == Role::User)
    };
    let thresholds = ReplayThresholds::from_config(config);
    for (from_user, count_min) in [(true, thresholds.users), (false, thresholds.others)] {
        let duplicates = decided.duplicates.iter();
        let seqs: Vec<u64> = duplicates
            .filter(|(index, _)| *index < candidates.len() && is_from_user(*index) == from_user)
            .map(|(_, seq)| *seq)
            .collect();
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { continue };
        if int::to_u32(seqs.len()) >= count_min {
            let count = seqs.len();
            let warning = format!(
                "possible-replay: {count} of the messages with seq {first} to {last} equal stored \
                 messages"
            );
            if extra.refuse_replay {
                let rule = "`refuse_replay` must be false to store messages again";
                return Err(Error::new(ErrorCode::Exists, format!("{rule}; {warning}")));
            }
            decided.warnings.push(warning);
        }
    }
    Ok(())
}
