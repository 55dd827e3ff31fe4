//! The closed list of reasons for which a compaction ends, or is not due.
//!
//! Plans, outcomes and results of `drive` name a reason from this list.

pub(crate) const BELOW_THRESHOLD: &str = "below-threshold";
pub(crate) const REACHED_TARGET: &str = "reached-target";
pub(crate) const NO_ELIGIBLE_CHUNK: &str = "no-eligible-chunk";
pub(crate) const NO_PROGRESS: &str = "no-progress";
pub(crate) const TAIL_OVER_TARGET: &str = "tail-over-target";
pub(crate) const PASS_LIMIT: &str = "pass-limit";
pub(crate) const ROUND_LIMIT: &str = "round-limit";
/// A forced compaction has used the maximum number of completions of one call.
pub(crate) const COMPLETION_LIMIT: &str = "completion-limit";
pub(crate) const SPEND_LIMIT: &str = "spend-limit";
pub(crate) const BREAKER_OPEN: &str = "breaker-open";
pub(crate) const MODEL_AUTH: &str = "model-auth";
pub(crate) const MODEL_POLICY: &str = "model-policy";
pub(crate) const MODEL_UNAVAILABLE: &str = "model-unavailable";
/// The caller stopped the compaction between two passes or requests.
pub(crate) const CANCELLED: &str = "cancelled";
pub(crate) const CONFLICT: &str = "conflict";
/// The configuration has `enabled: false`.
pub(crate) const DISABLED: &str = "disabled";
/// The time of `sweep_deadline_ms` or `until_under_deadline_ms` is over.
pub(crate) const DEADLINE: &str = "deadline";

/// All reasons.
pub(crate) const ALL: [&str; 17] = [
    BELOW_THRESHOLD,
    REACHED_TARGET,
    NO_ELIGIBLE_CHUNK,
    NO_PROGRESS,
    TAIL_OVER_TARGET,
    PASS_LIMIT,
    ROUND_LIMIT,
    COMPLETION_LIMIT,
    SPEND_LIMIT,
    BREAKER_OPEN,
    MODEL_AUTH,
    MODEL_POLICY,
    MODEL_UNAVAILABLE,
    CANCELLED,
    CONFLICT,
    DISABLED,
    DEADLINE,
];
