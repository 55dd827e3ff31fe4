//! Reads the configuration, and derives the numbers that apply to one token budget.
//!
//! Input: the caller's JSON object, which [`parse`] checks, and the budget of a call. Output: a
//! [`Config`], and a [`BudgetPolicy`] of plain numbers for compaction and assembly. Hosts read
//! environment variables and files.

mod budget_policy;
mod config_override;
mod decimal;
mod engine_config;
mod overrides;
mod settings;

pub use self::{
    budget_policy::BudgetPolicy,
    config_override::{ConfigOverride, OverrideContext},
    engine_config::{Config, TailCap},
    settings::parse,
};

#[cfg(test)]
mod tests;
