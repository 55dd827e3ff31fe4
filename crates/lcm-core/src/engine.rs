//! The facade: one method per function of the public interface.
//!
//! An [`Engine`] is configuration plus a cache; dropping it at any moment loses nothing.

use alloc::{string::String, vec::Vec};

use crate::{
    api::{
        AppendOptions, ApplyOptions, AssembleOptions, Assembled, CompactionOptions, Decision,
        Dialect, Outcome, PlanResult, Receipt, Timestamp,
    },
    error::{Error, Result},
    model::{Completion, CompletionRequest, CompletionResult, Model},
    store::Store,
};

/// The engine: configuration and a bounded cache, nothing else.
#[derive(Debug, Default)]
pub struct Engine {}

fn todo<T>() -> Result<T> {
    Err(Error::unsupported("not built yet"))
}

#[expect(unused_variables, missing_docs, reason = "skeleton")]
impl Engine {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    // setup
    pub fn configure(&mut self, config_json: &str) -> Result<String> {
        todo()
    }
    #[must_use]
    pub fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }
    // ingest
    pub fn append(&mut self, store: &mut dyn Store, conversation: &str, dialect: Dialect, messages: &[String], options: &AppendOptions, now: Timestamp) -> Result<Receipt> {
        todo()
    }
    pub fn stage(&mut self, store: &mut dyn Store, conversation: &str, upload: &str, offset: u64, text: &str, now: Timestamp) -> Result<u64> {
        todo()
    }
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        todo()
    }
    pub fn reconcile(&mut self, store: &mut dyn Store, conversation: &str, transcript_json: &str, now: Timestamp) -> Result<String> {
        todo()
    }
    // compaction
    pub fn evaluate(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<Decision> {
        todo()
    }
    pub fn plan(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<PlanResult> {
        todo()
    }
    pub fn apply(&mut self, store: &mut dyn Store, conversation: &str, request_id: &str, answer: &CompletionResult, options: &ApplyOptions, now: Timestamp) -> Result<Outcome> {
        todo()
    }
    pub fn run(&mut self, store: &mut dyn Store, model: &mut dyn Model, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<Outcome> {
        todo()
    }
    #[must_use]
    pub fn complete_offline(&self, request: &CompletionRequest) -> Completion {
        Completion { text: String::new(), finish: crate::model::Finish::Stop, model: "offline".into(), input_tokens: 0, output_tokens: 0 }
    }
    // context
    pub fn assemble(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, dialect: Dialect, options: &AssembleOptions, now: Timestamp) -> Result<Assembled> {
        todo()
    }
    pub fn validate(&self, dialect: Dialect, messages_json: &str) -> Result<String> {
        todo()
    }
    // recall
    pub fn grep(&mut self, store: &mut dyn Store, conversation: &str, query_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        todo()
    }
    pub fn describe(&mut self, store: &mut dyn Store, conversation: &str, id: &str, options_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        todo()
    }
    pub fn expand(&mut self, store: &mut dyn Store, conversation: &str, id: &str, options_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        todo()
    }
    pub fn messages(&mut self, store: &mut dyn Store, conversation: &str, seq_from: u64, seq_to: u64, bytes_max: u32) -> Result<Vec<String>> {
        todo()
    }
    // admin
    pub fn status(&mut self, store: &mut dyn Store, conversation: Option<&str>, now: Timestamp) -> Result<String> {
        todo()
    }
    pub fn listing(&mut self, store: &mut dyn Store, kind: &str, conversation: Option<&str>, cursor: Option<&str>, bytes_max: u32) -> Result<String> {
        todo()
    }
    pub fn check(&mut self, store: &mut dyn Store, conversation: &str, cursor: Option<&str>) -> Result<String> {
        todo()
    }
    pub fn digest(&mut self, store: &mut dyn Store, cursor: Option<&str>, logical: bool) -> Result<String> {
        todo()
    }
}
