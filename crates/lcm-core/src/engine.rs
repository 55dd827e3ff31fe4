//! The facade: one method per function of the public interface.
//!
//! An [`Engine`] is configuration plus a cache; dropping it at any moment loses nothing.

use alloc::{rc::Rc, string::String, vec::Vec};

use crate::{
    admin,
    assembly,
    api::{
        AppendOptions, ApplyOptions, AssembleOptions, Assembled, CompactionOptions, Decision,
        Dialect, Outcome, PlanResult, Receipt, Timestamp,
    },
    compaction, config::{self, Config},
    error::{Error, Result},
    extract,
    ingest,
    model::{Completion, CompletionRequest, CompletionResult, Finish, Model},
    reader::{Cache, Reader},
    recall,
    store::Store,
};

/// The engine: configuration and a bounded cache, nothing else.
#[derive(Debug, Default)]
pub struct Engine {
    config: Rc<Config>,
    cache: Cache,
}

fn todo<T>() -> Result<T> {
    Err(Error::unsupported("not built yet"))
}

#[expect(unused_variables, missing_docs, reason = "skeleton")]
impl Engine {
    fn reader<'a>(&'a mut self, store: &'a mut dyn Store) -> Reader<'a> {
        Reader::new(store, &mut self.cache)
    }
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    // setup
    pub fn configure(&mut self, config_json: &str) -> Result<String> {
        let (config, report) = config::parse(config_json)?;
        self.config = Rc::new(config);
        Ok(report)
    }
    #[must_use]
    pub fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }
    // ingest
    pub fn append(&mut self, store: &mut dyn Store, conversation: &str, dialect: Dialect, messages: &[String], options: &AppendOptions, now: Timestamp) -> Result<Receipt> {
        ingest::append(&mut self.reader(store), conversation, dialect, messages, options, now)
    }
    pub fn stage(&mut self, store: &mut dyn Store, conversation: &str, upload: &str, offset: u64, text: &str, now: Timestamp) -> Result<u64> {
        ingest::stage(&mut self.reader(store), conversation, upload, offset, text, now)
    }
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        ingest::identify(dialect, messages)
    }
    pub fn reconcile(&mut self, store: &mut dyn Store, conversation: &str, transcript_json: &str, now: Timestamp) -> Result<String> {
        ingest::reconcile(&mut self.reader(store), conversation, transcript_json)
    }
    // compaction
    pub fn evaluate(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<Decision> {
        let config = Rc::clone(&self.config);
        let _ = now;
        compaction::evaluate(&mut self.reader(store), &config, conversation, budget, options)
    }
    pub fn plan(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<PlanResult> {
        let config = Rc::clone(&self.config);
        compaction::plan(&mut self.reader(store), &config, conversation, budget, options, now)
    }
    pub fn apply(&mut self, store: &mut dyn Store, conversation: &str, request_id: &str, answer: &CompletionResult, options: &ApplyOptions, now: Timestamp) -> Result<Outcome> {
        let config = Rc::clone(&self.config);
        compaction::apply(&mut self.reader(store), &config, conversation, request_id, answer, options, now)
    }
    pub fn run(&mut self, store: &mut dyn Store, model: &mut dyn Model, conversation: &str, budget: u32, options: &CompactionOptions, now: Timestamp) -> Result<Outcome> {
        let config = Rc::clone(&self.config);
        compaction::run(&mut self.reader(store), model, &config, conversation, budget, options, now)
    }
    #[must_use]
    pub fn complete_offline(&self, request: &CompletionRequest) -> Completion {
        Completion { text: extract::offline(&request.prompt), finish: Finish::Stop, model: "offline".into(), input_tokens: 0, output_tokens: 0 }
    }
    // context
    pub fn assemble(&mut self, store: &mut dyn Store, conversation: &str, budget: u32, dialect: Dialect, options: &AssembleOptions, now: Timestamp) -> Result<Assembled> {
        let config = Rc::clone(&self.config);
        let _ = now;
        assembly::assemble(&mut self.reader(store), &config, conversation, budget, dialect, options)
    }
    pub fn validate(&self, dialect: Dialect, messages_json: &str) -> Result<String> {
        todo()
    }
    // recall
    pub fn grep(&mut self, store: &mut dyn Store, conversation: &str, query_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        todo()
    }
    pub fn describe(&mut self, store: &mut dyn Store, conversation: &str, id: &str, options_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        let _ = now;
        recall::describe(&mut self.reader(store), conversation, id, options_json, grant)
    }
    pub fn expand(&mut self, store: &mut dyn Store, conversation: &str, id: &str, options_json: &str, grant: Option<&str>, now: Timestamp) -> Result<String> {
        let _ = now;
        recall::expand(&mut self.reader(store), conversation, id, options_json, grant)
    }
    pub fn messages(&mut self, store: &mut dyn Store, conversation: &str, seq_from: u64, seq_to: u64, bytes_max: u32) -> Result<Vec<String>> {
        recall::messages(&mut self.reader(store), conversation, seq_from, seq_to, bytes_max)
    }
    // admin
    pub fn status(&mut self, store: &mut dyn Store, conversation: Option<&str>, now: Timestamp) -> Result<String> {
        let config = Rc::clone(&self.config);
        let _ = now;
        admin::status(&mut self.reader(store), &config, conversation)
    }
    pub fn listing(&mut self, store: &mut dyn Store, kind: &str, conversation: Option<&str>, cursor: Option<&str>, bytes_max: u32) -> Result<String> {
        admin::listing(&mut self.reader(store), kind, conversation, cursor, bytes_max)
    }
    pub fn check(&mut self, store: &mut dyn Store, conversation: &str, cursor: Option<&str>) -> Result<String> {
        let _ = cursor;
        admin::check(&mut self.reader(store), conversation)
    }
    pub fn digest(&mut self, store: &mut dyn Store, cursor: Option<&str>, logical: bool) -> Result<String> {
        admin::digest(&mut self.reader(store), logical)
    }
}
