//! Configuration, and the numbers derived from it for one token budget.
//!
//! Input: the caller's JSON object, which [`parse`] checks, and the budget of a call. Output: a
//! [`BudgetPolicy`] of plain numbers. Derived defaults scale with the budget. Environment variables
//! and files are read by the host.

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
