//! Conversion of every value between `lcm_core` and the component's types, field by field.
//!
//! In: a value of one side. Out: the same value of the other side, without checks and defaults.
//! Patterns have no `..`, so the compiler rejects a new field without a conversion. [`exports`] and
//! [`imports`] convert their arguments and results here.
//!
//! [`exports`]: crate::exports
//! [`imports`]: crate::imports

use lcm_core::store;
use lcm_text::{
    base::error,
    types::{api, model},
};

use crate::bindings::{
    exports::lcm::engine::{compaction, context, ingest, tools},
    lcm::engine::{store as host_store, types},
};

/// Implements the conversion of enums whose cases have the same names on both sides: with `=>` in
/// one direction, with `,` in both.
macro_rules! same_cases {
    ($from:ty => $to:ty { $($case:ident),* }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                match value { $(<$from>::$case => Self::$case),* }
            }
        }
    };
    ($left:ty, $right:ty { $($case:ident),* }) => {
        same_cases!($left => $right { $($case),* });
        same_cases!($right => $left { $($case),* });
    };
}

same_cases!(
    types::ErrorCode,
    error::ErrorCode {
        InvalidInput,
        NotFound,
        Exists,
        LimitExceeded,
        Unsupported,
        Denied,
        Conflict,
        StoreUnavailable,
        WouldBlock,
        CompletionFailed,
        Corrupt
    }
);

impl From<types::Dialect> for api::ReadDialect {
    fn from(dialect: types::Dialect) -> Self {
        use api::Dialect::{
            AiSdk, Anthropic, Gemini, Langchain, Lcm, OpenaiAgents, OpenaiChat, OpenaiResponses,
            Openclaw,
        };
        match dialect {
            types::Dialect::Lcm => Self::Of(Lcm),
            types::Dialect::Anthropic => Self::Of(Anthropic),
            types::Dialect::OpenaiChat => Self::Of(OpenaiChat),
            types::Dialect::OpenaiResponses => Self::Of(OpenaiResponses),
            types::Dialect::Gemini => Self::Of(Gemini),
            types::Dialect::AiSdk => Self::Of(AiSdk),
            types::Dialect::Openclaw => Self::Of(Openclaw),
            types::Dialect::Langchain => Self::Of(Langchain),
            types::Dialect::OpenaiAgents => Self::Of(OpenaiAgents),
            types::Dialect::Auto => Self::Auto,
        }
    }
}

same_cases!(types::Purpose, model::Purpose { Leaf, Condensed, File, Ask, Focus });
same_cases!(types::Level, model::Level { Normal, Aggressive, Fallback });
same_cases!(types::Finish, model::Finish { Stop, Length, Refusal });
same_cases!(types::CompletionErrorCode => model::CompletionErrorCode {
    Auth, Policy, RateLimited, Timeout, ContextTooLong, Unavailable, Other
});
same_cases!(tools::ToolScope => api::ToolScope { Conversation, Store });
same_cases!(ingest::AppendMode => api::AppendMode { Transcript, New });
same_cases!(compaction::Mode => api::CompactionMode {
    Threshold, Incremental, Sweep, UntilUnder
});
same_cases!(api::PlanStatus => compaction::Status { NothingDue, NeedsCompletions, Stopped });
same_cases!(api::ApplyStatus => compaction::Applied { Committed, Retry, Stale, Refused });
same_cases!(context::Policy => api::EvictionPolicy { Chronological, PromptAware, Layered });

/// Implements the conversion of records whose fields have the same names on both sides.
///
/// A field written `name: into` is a record or enum, `name: maybe` an option of a record, `name:
/// each` a list of records; other fields have the same type on both sides.
macro_rules! same_fields {
    ($from:ty => $to:ty { $($field:ident $(: $how:ident)?),* }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                type From = $from;
                let From { $($field),* } = value;
                Self { $($field: same_fields!(@ $field $($how)?)),* }
            }
        }
    };
    (@ $field:ident) => { $field };
    (@ $field:ident into) => { $field.into() };
    (@ $field:ident each) => { $field.into_iter().map(Into::into).collect() };
    (@ $field:ident maybe) => { $field.map(Into::into) };
}

same_fields!(error::Failure => types::Error { code: into, message });

same_fields!(host_store::Entry => store::Entry { key, value });

same_fields!(types::CompletionRequest => model::CompletionRequest {
    id, purpose: into, level: into, system, prompt, input_tokens, output_tokens_max,
    temperature_permille, model
});
same_fields!(model::CompletionRequest => types::CompletionRequest {
    id, purpose: into, level: into, system, prompt, input_tokens, output_tokens_max,
    temperature_permille, model
});
same_fields!(types::Completion => model::Completion {
    text, finish: into, model, input_tokens, output_tokens
});
same_fields!(model::Completion => types::Completion {
    text, finish: into, model, input_tokens, output_tokens
});
same_fields!(types::CompletionError => model::CompletionError {
    code: into, message, retry_after_ms
});

same_fields!(ingest::Options => api::AppendOptions { append_mode: into, partial, extra_json });
same_fields!(api::Receipt => ingest::Receipt {
    revision, ingested, skipped, seq_first, seq_last, seq_seen, context_tokens, warnings,
    events_json
});

same_fields!(compaction::Options => api::CompactionOptions {
    mode: into, force, target, observed_tokens, requests_max, lease_ms, sweep, extra_json
});
same_fields!(compaction::ApplyOptions => api::ApplyOptions { fallback_over_tokens, extra_json });
same_fields!(api::Decision => compaction::Decision {
    due, must, reason, tokens, threshold, explanation_json
});
same_fields!(api::PlanResult => compaction::PlanResult {
    status: into, reason, revision, requests: each, sweep
});
same_fields!(api::ApplyOutcome => compaction::Outcome {
    applied: into, reason, summary_id, purpose: into, depth, level: into, capped, provisional,
    replaces, tokens_before,
    tokens_after, more, next: maybe, sweep, warnings, events_json
});

same_fields!(context::Options => api::AssembleOptions {
    policy: maybe, prompt, reserve_tokens, live_messages, previous, explain, extra_json
});
same_fields!(api::PrefixReport => context::Prefix {
    stable_tokens, broken_by, broken_why, breakpoints, sha256, token
});
same_fields!(api::AssembledItem => context::Item {
    id, kind, included, why, tokens, seq_first, seq_last
});
same_fields!(api::AssembledContext => context::Assembled {
    messages_json, system, tokens, summaries, fresh_tail_messages, evicted, items: each,
    explanation_text, prefix: into, warnings
});

same_fields!(api::ToolAnswer => tools::Answer { text, is_error });

impl From<api::ToolOutcome> for tools::ToolOutcome {
    fn from(outcome: api::ToolOutcome) -> Self {
        match outcome {
            api::ToolOutcome::Done(answer) => Self::Done(answer.into()),
            api::ToolOutcome::NeedsCompletions { requests, continuation, deadline_ms } => {
                let requests = requests.into_iter().map(Into::into).collect();
                Self::NeedsCompletions(tools::Needs { requests, continuation, deadline_ms })
            }
        }
    }
}

impl From<error::Error> for types::Error {
    fn from(value: error::Error) -> Self {
        value.into_failure().into()
    }
}

impl From<types::Error> for error::Error {
    fn from(types::Error { code, message }: types::Error) -> Self {
        Self::new(code.into(), message)
    }
}

impl From<types::CompletionResult> for model::CompletionResult {
    fn from(value: types::CompletionResult) -> Self {
        match value {
            types::CompletionResult::Done(completion) => Self::Done(completion.into()),
            types::CompletionResult::Failed(error) => Self::Failed(error.into()),
        }
    }
}

impl<'a> From<&'a store::Guard> for host_store::Guard<'a> {
    fn from(guard: &'a store::Guard) -> Self {
        let store::Guard { key, value } = guard;
        Self { key, value: value.as_deref() }
    }
}

impl<'a> From<&'a store::Put> for host_store::Put<'a> {
    fn from(put: &'a store::Put) -> Self {
        let store::Put { key, value } = put;
        Self { key, value: value.as_deref() }
    }
}
