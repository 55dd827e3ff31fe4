//! The facade: one method per function of the public interface.
//!
//! An [`Engine`] is configuration plus a cache; dropping it at any moment loses nothing. Nothing is
//! decided here. What each call does, and its errors in full, is said in `wit/`.

use crate::storage::store_session::{InstanceCache, StoreSession};
use alloc::{rc::Rc, string::String, vec::Vec};

use crate::{
    admin, agent_tools, ask,
    assembly::{self, RenderCache},
    compaction, drive, ingest, recall, search,
    storage::{records::grants, store::Store, summary::OFFLINE_MODEL},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        tokens,
    },
    config::{self, Config},
    message::validate,
    summary::offline_summary,
    types::{
        api::{
            AppendOptions, ApplyOptions, ApplyOutcome, AssembleOptions, AssembledContext,
            CompactionOptions, Decision, Dialect, PlanResult, Receipt, Timestamp, ToolOutcome,
            UploadChunk,
        },
        model::{Completion, CompletionRequest, CompletionResult, Finish, Model, Purpose},
    },
};

/// The engine: configuration and a bounded cache, nothing else.
///
/// Calls on one conversation may come from any number of engines over one store; a commit that
/// lost a race is `conflict` and has written nothing.
#[derive(Debug, Default)]
pub struct Engine {
    config: Rc<Config>,
    cache: InstanceCache,
    render_cache: RenderCache,
}

impl Engine {
    /// An engine with the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn open_session<'a>(&'a mut self, store: &'a mut dyn Store) -> StoreSession<'a> {
        StoreSession::new(store, &mut self.cache)
    }

    /// Replaces the configuration by a JSON object and returns a JSON report of its keys.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no JSON object, or a value out of bounds; the old configuration stays.
    pub fn configure(&mut self, config_json: &str) -> Result<String> {
        let (config, report) = config::parse(config_json)?;
        if config.plain_summaries != self.config.plain_summaries {
            // What is remembered of an assembly has summaries in the other form.
            self.render_cache = RenderCache::default();
        }
        self.config = Rc::new(config);
        Ok(report)
    }

    /// Version of the engine.
    #[must_use]
    pub fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    /// Stores those messages of a batch that are not stored yet.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `limit-exceeded`, `not-found` (an upload), `exists` (a refused replay, or
    /// another family), `denied` (archived), `conflict`; errors of the store.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod memory_store { include!("../doc/memory_store.rs"); }
    /// # use memory_store::MemoryStore;
    /// use lcm_core::Engine;
    /// use lcm_text::types::api::{AppendOptions, Dialect};
    ///
    /// let (mut engine, mut store) = (Engine::new(), MemoryStore::default());
    /// let messages = [r#"{"role": "user", "content": "Where is the log?"}"#.to_owned()];
    /// let options = AppendOptions::default();
    /// let receipt = engine.append(&mut store, "chat", Dialect::Lcm, &messages, &options, 1)?;
    /// assert_eq!((receipt.ingested, receipt.revision), (1, 1));
    /// # Ok::<(), lcm_core::Error>(())
    /// ```
    ///
    /// A failed call has a code for programs and one line for people:
    ///
    /// ```
    /// # mod memory_store { include!("../doc/memory_store.rs"); }
    /// # use memory_store::MemoryStore;
    /// use lcm_core::{Engine, ErrorCode};
    /// use lcm_text::types::api::{AppendOptions, Dialect};
    ///
    /// let (mut engine, mut store) = (Engine::new(), MemoryStore::default());
    /// let messages = [r#"{"role": "pilot", "content": "Hello?"}"#.to_owned()];
    /// let options = AppendOptions::default();
    /// let failed = engine.append(&mut store, "chat", Dialect::Lcm, &messages, &options, 1);
    /// let error = failed.unwrap_err();
    /// assert_eq!(error.code, ErrorCode::InvalidInput);
    /// assert_eq!(
    ///     error.message,
    ///     "messages[0]: `role` must be one of system, user, assistant, tool in dialect `lcm`, \
    ///      got `pilot`",
    /// );
    /// ```
    pub fn append(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        dialect: Dialect,
        messages: &[String],
        options: &AppendOptions,
        now: Timestamp,
    ) -> Result<Receipt> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        ingest::append(reader, &config, conversation, dialect, messages, options, now)
    }

    /// Takes one piece of a text that is too large for one call; returns the offset of the next.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `limit-exceeded`, `exists` (another family), `denied` (archived),
    /// `conflict`; errors of the store.
    pub fn stage(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        piece: &UploadChunk<'_>,
        now: Timestamp,
    ) -> Result<u64> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        ingest::stage(reader, &config, conversation, piece, now)
    }

    /// The identities of messages as a JSON array. Reads nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`.
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        ingest::identify(dialect, messages)
    }

    /// Which entries of a transcript are not stored, as a JSON plan.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `limit-exceeded`; `exists`: one without ids was changed among messages that
    /// are stored; errors of the store.
    pub fn reconcile(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        transcript_json: &str,
        _now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        ingest::reconcile(&mut self.open_session(store), &config, conversation, transcript_json)
    }

    /// Says whether compaction is due, and why.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `unsupported` (mode); errors of the store.
    pub fn evaluate(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        budget: u32,
        options: &CompactionOptions,
        now: Timestamp,
    ) -> Result<Decision> {
        let config = Rc::clone(&self.config);
        compaction::evaluate(
            &mut self.open_session(store),
            &config,
            conversation,
            budget,
            options,
            now,
        )
    }

    /// Proposes the next tasks of a sweep as completion requests.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `unsupported` (mode), `denied` (archived), `conflict` (with leases); errors
    /// of the store.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod memory_store { include!("../doc/memory_store.rs"); }
    /// # use memory_store::MemoryStore;
    /// use lcm_core::Engine;
    /// use lcm_text::types::api::{AppendOptions, CompactionOptions, Dialect, PlanStatus};
    ///
    /// # let mut store = MemoryStore::default();
    /// # let mut engine = Engine::new();
    /// # let text = "the pump stopped and the valve was replaced on Tuesday ".repeat(20);
    /// # let messages: Vec<String> = (0..24)
    /// #     .map(|n| format!(r#"{{"role": "user", "content": "{n}: {text}"}}"#))
    /// #     .collect();
    /// # let options = AppendOptions::default();
    /// # engine.append(&mut store, "chat", Dialect::Lcm, &messages, &options, 1)?;
    /// let options = CompactionOptions::default();
    /// let plan = engine.plan(&mut store, "chat", 4_000, &options, 2)?;
    /// assert_eq!(plan.status, PlanStatus::NeedsCompletions);
    /// let request = &plan.requests[0];
    /// assert!(request.prompt.contains("the valve was replaced"));
    /// # Ok::<(), lcm_core::Error>(())
    /// ```
    pub fn plan(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        budget: u32,
        options: &CompactionOptions,
        now: Timestamp,
    ) -> Result<PlanResult> {
        let config = Rc::clone(&self.config);
        compaction::plan(&mut self.open_session(store), &config, conversation, budget, options, now)
    }

    /// Settles the answer to a request.
    ///
    /// # Errors
    ///
    /// `invalid-input` (no request of this engine), `not-found`, `denied` (archived), `conflict`;
    /// errors of the store.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod memory_store { include!("../doc/memory_store.rs"); }
    /// # use memory_store::MemoryStore;
    /// use lcm_core::Engine;
    /// use lcm_text::types::{
    ///     api::{AppendOptions, ApplyOptions, ApplyStatus, CompactionOptions, Dialect},
    ///     model::{Completion, CompletionResult, Finish},
    /// };
    ///
    /// # let mut store = MemoryStore::default();
    /// # let mut engine = Engine::new();
    /// # let text = "the pump stopped and the valve was replaced on Tuesday ".repeat(20);
    /// # let messages: Vec<String> = (0..24)
    /// #     .map(|n| format!(r#"{{"role": "user", "content": "{n}: {text}"}}"#))
    /// #     .collect();
    /// # let options = AppendOptions::default();
    /// # engine.append(&mut store, "chat", Dialect::Lcm, &messages, &options, 1)?;
    /// let plan = engine.plan(&mut store, "chat", 4_000, &CompactionOptions::default(), 2)?;
    /// let request = &plan.requests[0];
    /// // A host sends `system` and `prompt` of the request to its model.
    /// let answer = CompletionResult::Done(Completion {
    ///     text: "The pump stopped. The valve was replaced on Tuesday.".to_owned(),
    ///     finish: Finish::Stop,
    ///     model: "my-model".to_owned(),
    ///     input_tokens: 0,
    ///     output_tokens: 0,
    /// });
    /// let options = ApplyOptions::default();
    /// let outcome = engine.apply(&mut store, "chat", &request.id, &answer, &options, 3)?;
    /// assert_eq!(outcome.applied, ApplyStatus::Committed);
    /// assert!(outcome.tokens_after < outcome.tokens_before);
    /// # Ok::<(), lcm_core::Error>(())
    /// ```
    pub fn apply(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        request_id: &str,
        answer: &CompletionResult,
        options: &ApplyOptions,
        now: Timestamp,
    ) -> Result<ApplyOutcome> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        compaction::apply(reader, &config, conversation, request_id, answer, options, now)
    }

    /// Makes one pass through a model that may block.
    ///
    /// # Errors
    ///
    /// As [`Engine::plan`] and [`Engine::apply`].
    pub fn run(
        &mut self,
        store: &mut dyn Store,
        model: &mut dyn Model,
        conversation: &str,
        budget: u32,
        options: &CompactionOptions,
        now: Timestamp,
    ) -> Result<ApplyOutcome> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        compaction::run(reader, model, &config, conversation, budget, options, now)
    }

    /// Answers a request without a model: deterministic, extractive, within the target.
    #[must_use]
    pub fn complete_offline(&self, request: &CompletionRequest) -> Completion {
        let text = match request.purpose {
            Purpose::Ask => ask::answer_offline(&request.prompt),
            _ => offline_summary::answer_offline_prompt(&request.prompt),
        };
        Completion {
            output_tokens: tokens::estimate(&text),
            text,
            finish: Finish::Stop,
            model: OFFLINE_MODEL.into(),
            input_tokens: request.input_tokens,
        }
    }

    /// Assembles a context that fits a budget. Reads only.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded`; errors of the store.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod memory_store { include!("../doc/memory_store.rs"); }
    /// # use memory_store::MemoryStore;
    /// use lcm_core::Engine;
    /// use lcm_text::types::api::{AppendOptions, AssembleOptions, Dialect};
    ///
    /// # let mut store = MemoryStore::default();
    /// # let mut engine = Engine::new();
    /// # let text = "the pump stopped and the valve was replaced on Tuesday ".repeat(20);
    /// # let messages: Vec<String> = (0..24)
    /// #     .map(|n| format!(r#"{{"role": "user", "content": "{n}: {text}"}}"#))
    /// #     .collect();
    /// # let options = AppendOptions::default();
    /// # engine.append(&mut store, "chat", Dialect::Lcm, &messages, &options, 1)?;
    /// let options = AssembleOptions::default();
    /// let context =
    ///     engine.assemble(&mut store, "chat", 4_000, Dialect::Anthropic, &options, 2)?;
    /// assert!(context.tokens <= 4_000 && context.evicted > 0);
    /// # Ok::<(), lcm_core::Error>(())
    /// ```
    pub fn assemble(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        budget: u32,
        dialect: Dialect,
        options: &AssembleOptions,
        _now: Timestamp,
    ) -> Result<AssembledContext> {
        let config = Rc::clone(&self.config);
        let reader = &mut StoreSession::new(store, &mut self.cache);
        let cache = &mut self.render_cache;
        assembly::assemble(reader, cache, &config, conversation, budget, dialect, options)
    }

    /// Findings that would make a provider refuse an array of messages, as a JSON list.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no JSON array; `unsupported`: `lcm`, which is no provider's dialect.
    pub fn validate(&self, dialect: Dialect, messages_json: &str) -> Result<String> {
        validate::validate(dialect, messages_json)
    }

    /// Searches a conversation with its family, or all of them, and answers with hits as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded` (an expression), `unsupported` (files);
    /// `denied` and `conflict` with a grant; errors of the store.
    pub fn grep(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        query_json: &str,
        grant: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        search::grep::grep(&mut self.open_session(store), conversation, query_json, grant, now)
    }

    /// Attaches vectors to messages and summaries, or forgets them, and says as JSON what comes
    /// next.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `denied`, `conflict`; errors of the store.
    pub fn embed(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        vectors_json: &str,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        recall::embed(&mut self.open_session(store), &config, conversation, vectors_json)
    }

    /// Everything known about a summary or message of a conversation or its family, as JSON.
    ///
    /// # Errors
    ///
    /// `not-found`, `invalid-input`; `denied` and `conflict` with a grant; errors of the store.
    pub fn describe(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        id: &str,
        options_json: &str,
        grant: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        recall::describe(&mut self.open_session(store), conversation, id, options_json, grant, now)
    }

    /// The sources of a summary, down to the original messages, as JSON.
    ///
    /// # Errors
    ///
    /// As [`Engine::describe`].
    pub fn expand(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        id: &str,
        options_json: &str,
        grant: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        recall::expand(&mut self.open_session(store), conversation, id, options_json, grant, now)
    }

    /// Verbatim texts of `[seq_from, seq_to]`: as many as fit `bytes_max`, but at least one.
    ///
    /// # Errors
    ///
    /// `not-found`, `invalid-input`; errors of the store.
    pub fn messages(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        seq_from: u64,
        seq_to: u64,
        bytes_max: u32,
    ) -> Result<Vec<String>> {
        recall::read_messages(
            &mut self.open_session(store),
            conversation,
            seq_from,
            seq_to,
            bytes_max,
        )
    }

    /// Makes a grant, a limited right to read, as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded`, `denied` (one to inherit from), `conflict`;
    /// errors of the store.
    pub fn grant(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        grant_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        grants::create_grant(&mut self.open_session(store), &config, conversation, grant_json, now)
    }

    /// Ends a grant at once; one that has ended stays ended.
    ///
    /// # Errors
    ///
    /// `not-found`, `conflict`; errors of the store.
    pub fn revoke(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        grant: &str,
        now: Timestamp,
    ) -> Result<()> {
        grants::revoke_grant(&mut self.open_session(store), conversation, grant, now)
    }

    /// Begins to answer a question: JSON with the request that a model has to complete and the
    /// continuation, or with how it ended.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `conflict`; errors of the store.
    pub fn ask_plan(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        question_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        Ok(ask::plan(reader, &config, conversation, question_json, now)?.document)
    }

    /// Goes on with what a model answered to the request of a question.
    ///
    /// # Errors
    ///
    /// `invalid-input` (continuation, answers), `not-found` (the question was replaced),
    /// `conflict`; errors of the store.
    pub fn ask_apply(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        Ok(ask::apply(reader, &config, conversation, continuation, answers, now)?.document)
    }

    /// Answers a question through a model that may block.
    ///
    /// # Errors
    ///
    /// As [`Engine::ask_plan`].
    pub fn ask_run(
        &mut self,
        store: &mut dyn Store,
        model: &mut dyn Model,
        conversation: &str,
        question_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        Ok(ask::run(reader, model, &config, conversation, question_json, now)?.document)
    }

    /// The tools that an agent's model sees, as a JSON array in the format of the dialect; `caller`
    /// as in [`Engine::tool_call`], of which only counts whether there is one.
    #[must_use]
    pub fn tool_definitions(&self, dialect: Dialect, caller: Option<&str>) -> String {
        agent_tools::build_definitions(dialect, caller.is_some())
    }

    /// Text for a system prompt that says when to use the tools, as a section in the form that the
    /// dialect's provider asks for.
    #[must_use]
    pub fn tool_instructions(&self, dialect: Dialect, has_summaries: bool) -> String {
        agent_tools::build_instructions(dialect, has_summaries)
    }

    /// Answers the call of a tool. What its model did wrong is an answer, too. `caller` is the
    /// grant of a sub-agent; `None`: the main agent.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the conversation is no id; `conflict` (with a grant); errors of the
    /// store.
    pub fn tool_call(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        name: &str,
        arguments_json: &str,
        caller: Option<&str>,
        now: Timestamp,
    ) -> Result<ToolOutcome> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        agent_tools::call_tool(reader, &config, conversation, name, arguments_json, caller, now)
    }

    /// Goes on with the call of a tool that needed a model.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the conversation is no id, the continuation is none, or not one answer for
    /// each request; `conflict`; errors of the store.
    pub fn tool_resume(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: Timestamp,
    ) -> Result<ToolOutcome> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        agent_tools::resume_call(reader, &config, conversation, continuation, answers, now)
    }

    /// What a conversation holds and costs, or (`None`) what the store holds, as JSON.
    ///
    /// # Errors
    ///
    /// `not-found`; errors of the store.
    pub fn status(
        &mut self,
        store: &mut dyn Store,
        conversation: Option<&str>,
        _now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        admin::status(&mut self.open_session(store), &config, conversation)
    }

    /// One page of a listing as JSON: kind `conversations`, `summaries`, `messages` or
    /// `grants`.
    ///
    /// # Errors
    ///
    /// `invalid-input` (kind, cursor), `not-found`; errors of the store.
    pub fn listing(
        &mut self,
        store: &mut dyn Store,
        kind: &str,
        conversation: Option<&str>,
        cursor: Option<&str>,
        bytes_max: u32,
    ) -> Result<String> {
        admin::list_page(&mut self.open_session(store), kind, conversation, cursor, bytes_max)
    }

    /// Recomputes every invariant of a conversation; damage is a finding, not an error.
    ///
    /// The answer is complete in one call.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a cursor; `not-found`; errors of the store.
    pub fn check(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        cursor: Option<&str>,
    ) -> Result<String> {
        ensure_single_page(cursor)?;
        admin::check(&mut self.open_session(store), conversation)
    }

    /// One hash over the whole store, or over what it means. The answer is complete in one call.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a cursor; `corrupt` (logical, of a damaged store); errors of the store.
    pub fn digest(
        &mut self,
        store: &mut dyn Store,
        cursor: Option<&str>,
        logical: bool,
    ) -> Result<String> {
        ensure_single_page(cursor)?;
        admin::digest(&mut self.open_session(store), logical)
    }

    /// One page of an export as JSON: `{lines, cursor}`. An empty conversation means all of them.
    ///
    /// # Errors
    ///
    /// `not-found`, `invalid-input` (cursor), `conflict`; errors of the store.
    pub fn export_page(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        cursor: Option<&str>,
        bytes_max: u32,
    ) -> Result<String> {
        admin::export_page(&mut self.open_session(store), conversation, cursor, bytes_max)
    }

    /// Takes lines of an export; answers JSON: `{consumed, cursor, rewind, ...}`.
    ///
    /// # Errors
    ///
    /// `invalid-input` (a line, by its number), `exists`, `limit-exceeded`, `conflict`; errors of
    /// the store.
    pub fn import_page(
        &mut self,
        store: &mut dyn Store,
        lines: &[String],
        cursor: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        admin::import_page(&mut self.open_session(store), lines, cursor, now)
    }

    /// Does what a verb says: `family`, `reset`, `new`, `archive`, `calibrate`, `maintain` or
    /// `prompts`. Arguments and answer are JSON.
    ///
    /// # Errors
    ///
    /// `unsupported` (verb), `invalid-input`, `not-found`, `exists`, `denied`, `conflict`; errors
    /// of the store.
    pub fn call(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        verb: &str,
        arguments_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        let config = Rc::clone(&self.config);
        let reader = &mut self.open_session(store);
        admin::run_command(reader, &config, conversation, verb, arguments_json, now)
    }

    /// Begins a task of several calls; returns the first instruction as JSON. Reads nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no such task; `limit-exceeded`: its texts are too long.
    pub fn begin(&self, task_json: &str, now: Timestamp) -> Result<String> {
        drive::begin(task_json, now)
    }

    /// Returns the instruction that follows an event, as JSON. Reads nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a token of another engine, or an event that does not answer its
    /// instruction.
    pub fn step(&self, token: &str, event_json: &str, now: Timestamp) -> Result<String> {
        drive::step(token, event_json, now)
    }
}

/// Refuses a cursor where every answer is complete.
fn ensure_single_page(cursor: Option<&str>) -> Result<()> {
    match cursor {
        None => Ok(()),
        Some(_) => Err(Error::invalid_input("cursor: this answer is complete in one page")),
    }
}
