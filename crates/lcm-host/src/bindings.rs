//! The component's types and functions, generated from `wit/`.
//!
//! Out: the generated bindings and the public names of their records. Nothing is written by hand.

#[allow(
    missing_docs,
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "generated; the meaning of every item stands in `wit/`"
)]
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "engine",
        additional_derives: [PartialEq],
    });
}

pub(crate) use generated::{Engine, EnginePre, exports::lcm::engine as exports, lcm::engine};

/// Records and enumerations that several interfaces share.
pub mod types {
    pub use super::engine::types::*;
}

/// Records of `ingest`.
pub mod ingestion {
    pub use super::exports::ingest::{AppendMode, Options, Receipt};
}

/// Records of `compaction`.
pub mod work {
    pub use super::exports::compaction::{
        Applied, ApplyOptions, Decision, Mode, Options, Outcome, PlanResult, Status,
    };
}

/// Records of `context` and `tools`.
pub mod context {
    pub use super::exports::{
        context::{Assembled, Item, Options, Policy, Prefix},
        tools::{Answer, Needs, ToolOutcome, ToolScope},
    };
}
