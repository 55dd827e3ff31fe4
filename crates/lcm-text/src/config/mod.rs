//! Reads the configuration, and derives the numbers that apply to one token budget.
//!
//! Input: the caller's JSON object, which [`parse`] checks, or the object and environment
//! variables, which [`resolve_config`] checks; and the budget of a call. Output: a [`Config`], and
//! a [`BudgetPolicy`] of plain numbers for compaction and assembly. Hosts read files and the
//! environment.

mod budget_policy;
mod config_override;
mod decimal;
mod engine_config;
mod host_settings;
mod ignored_keys;
mod overrides;
mod report;
mod setting;
mod settings;
mod time_offsets;
mod variables;

pub use self::{
    budget_policy::BudgetPolicy,
    config_override::{ConfigOverride, OverrideContext},
    engine_config::{Config, TailCap, TurnCompaction},
    host_settings::HostSettings,
    settings::{parse, resolve_config},
};

#[cfg(test)]
mod tests;
