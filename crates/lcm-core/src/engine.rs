//! The facade: one method per function of the public interface.
//!
//! In: arguments and a store. Out: the result of the call. The files of `wit/` describe each call.
//! Every call that reads may also fail with `corrupt`, with `unsupported` for a newer store format,
//! or with `denied` for a conversation that is being deleted.

mod answers;

use crate::storage::store_session::{InstanceCache, StoreSession};
use alloc::{rc::Rc, string::String, vec::Vec};

use crate::{
    admin::{self, ListingRequest},
    agent_tools, ask,
    assembly::{self, AssembleRequest, RenderCache},
    compaction, drive, ingest, recall, search,
    storage::{call::Call, keys::ConversationKeys, records::grants, store::Store},
};
use lcm_text::{
    base::error::Result,
    config::{self, Config},
    message::validate,
    types::{
        api::{
            AppendOptions, ApplyOptions, ApplyOutcome, AssembleOptions, AssembledContext,
            CompactionOptions, Decision, PlanResult, ReadDialect, Receipt, Timestamp, ToolOutcome,
            ToolRequest, ToolScope, UploadChunk,
        },
        model::{CompletionResult, Model},
    },
};

/// The engine: a configuration and a bounded cache. Dropping an engine loses no stored data.
///
/// Any number of engines over one store may serve one conversation. A commit that loses a race
/// fails with `conflict` and writes nothing.
#[derive(Debug, Default)]
pub struct Engine {
    config: Rc<Config>,
    cache: InstanceCache,
    render_cache: RenderCache,
}

impl Engine {
    /// Creates an engine with the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn open_session<'a>(&'a mut self, store: &'a mut dyn Store) -> StoreSession<'a> {
        StoreSession::new(store, &mut self.cache)
    }

    /// Runs `act` as one exported call on one conversation.
    fn run_call<T>(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        now: Timestamp,
        act: impl FnOnce(&mut StoreSession<'_>, Call<'_>) -> Result<T>,
    ) -> Result<T> {
        let keys = ConversationKeys::new(conversation)?;
        let config = Rc::clone(&self.config);
        let call = Call { config: &config, conversation, keys: &keys, now };
        act(&mut self.open_session(store), call)
    }

    /// Replaces the configuration by a JSON object and returns a JSON report of its keys.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text is no JSON object, or a value has a wrong type or is out of
    /// bounds. The old configuration stays.
    pub fn configure(&mut self, config_json: &str) -> Result<String> {
        let (config, report) = config::parse(config_json)?;
        let summary_form = |config: &Config| (config.plain_summaries, config.time_offsets.clone());
        if summary_form(&config) != summary_form(&self.config) {
            self.render_cache = RenderCache::default();
        }
        self.config = Rc::new(config);
        Ok(report)
    }

    /// Returns the version of the engine.
    #[must_use]
    pub fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    /// Stores the messages of a batch that are not stored yet, in one commit.
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
        dialect: impl Into<ReadDialect>,
        messages: &[String],
        options: &AppendOptions,
        now: Timestamp,
    ) -> Result<Receipt> {
        let dialect = dialect.into();
        self.run_call(store, conversation, now, |session, call| {
            ingest::append(session, call, dialect, messages, options)
        })
    }

    /// Stores one piece of a message that is too large for one call; returns the offset in bytes of
    /// the next piece.
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
        self.run_call(store, conversation, now, |session, call| ingest::stage(session, call, piece))
    }

    /// Returns the identity of each message, for [`Engine::reconcile`], as JSON. Reads no store.
    ///
    /// # Errors
    ///
    /// `invalid-input`.
    pub fn identify(&self, dialect: impl Into<ReadDialect>, messages: &[String]) -> Result<String> {
        ingest::identify(dialect.into(), messages)
    }

    /// Returns the ranges of a transcript that are not stored, as JSON. Writes nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `limit-exceeded`; `exists`: a transcript without stored ids differs from
    /// stored messages, or a likely replay is refused; errors of the store.
    pub fn reconcile(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        transcript_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            ingest::reconcile(session, call, transcript_json)
        })
    }

    /// Decides whether compaction is due, and why. Writes nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`; errors of the store.
    pub fn evaluate(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        budget: u32,
        options: &CompactionOptions,
        now: Timestamp,
    ) -> Result<Decision> {
        self.run_call(store, conversation, now, |session, call| {
            compaction::evaluate(session, call, budget, options)
        })
    }

    /// Proposes the next summaries of a sweep as completion requests. Writes only leases.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `denied` (archived, and no summary is provisional), `conflict`
    /// (with leases); errors of the store.
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
        self.run_call(store, conversation, now, |session, call| {
            compaction::plan(session, call, budget, options)
        })
    }

    /// Applies the answer to a request: stores the summary, or rejects the answer. An answer whose
    /// sources have changed is `stale`.
    ///
    /// # Errors
    ///
    /// `invalid-input` (an id that no plan returned), `not-found`, `denied` (archived, and the
    /// request is no remake), `conflict`, `limit-exceeded`; errors of the store.
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
        self.run_call(store, conversation, now, |session, call| {
            compaction::apply(session, call, request_id, answer, options)
        })
    }

    /// Makes one pass of compaction: plans one summary, asks `model` and stores the summary.
    ///
    /// # Errors
    ///
    /// Fails as [`Engine::plan`] and [`Engine::apply`].
    pub fn run(
        &mut self,
        store: &mut dyn Store,
        model: &mut dyn Model,
        conversation: &str,
        budget: u32,
        options: &CompactionOptions,
        now: Timestamp,
    ) -> Result<ApplyOutcome> {
        self.run_call(store, conversation, now, |session, call| {
            compaction::run(session, call, model, budget, options)
        })
    }

    /// Assembles a context for a budget in tokens. Only the protected part may exceed the budget.
    /// Writes nothing.
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
        dialect: impl Into<ReadDialect>,
        options: &AssembleOptions,
        now: Timestamp,
    ) -> Result<AssembledContext> {
        let dialect = dialect.into().require_one()?;
        let keys = ConversationKeys::new(conversation)?;
        let config = Rc::clone(&self.config);
        let call = Call { config: &config, conversation, keys: &keys, now };
        let session = &mut StoreSession::new(store, &mut self.cache);
        let request = AssembleRequest { budget, dialect, options };
        assembly::assemble(session, &mut self.render_cache, call, &request)
    }

    /// Checks an array of messages by the rules of a provider; returns the findings as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text is no JSON array; `unsupported`: the dialect is `lcm`, which no
    /// provider accepts.
    pub fn validate(&self, dialect: impl Into<ReadDialect>, messages_json: &str) -> Result<String> {
        validate::validate(dialect.into().require_one()?, messages_json)
    }

    /// Searches a conversation, its family or all conversations; returns matches as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded` (pattern); `denied` and `conflict` with a
    /// grant; errors of the store.
    pub fn grep(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        query_json: &str,
        grant: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            search::grep::grep(session, call, query_json, grant)
        })
    }

    /// Attaches or deletes vectors of messages and summaries; returns ids without vectors as JSON.
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
        self.run_call(store, conversation, 0, |session, call| {
            recall::embed(session, call, vectors_json)
        })
    }

    /// Describes a summary, message, file or conversation, as JSON.
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
        self.run_call(store, conversation, now, |session, call| {
            recall::describe(session, call, id, options_json, grant)
        })
    }

    /// Lists the sources of a summary, down to the messages if asked for, as JSON.
    ///
    /// # Errors
    ///
    /// Fails as [`Engine::describe`].
    pub fn expand(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        id: &str,
        options_json: &str,
        grant: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            recall::expand(session, call, id, options_json, grant)
        })
    }

    /// Returns the original texts of the messages `[seq_from, seq_to]`: the first messages that fit
    /// `bytes_max`, but at least one message if the range has any.
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
        self.run_call(store, conversation, 0, |session, call| {
            recall::read_messages(session, call, seq_from, seq_to, bytes_max)
        })
    }

    /// Creates a grant, a limited right to read, and returns the grant as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded`, `denied` (the grant to inherit from),
    /// `conflict`; errors of the store.
    pub fn grant(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        grant_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            grants::create_grant(session, call, grant_json)
        })
    }

    /// Revokes a grant and the grants that inherit from it. A repeated call changes nothing.
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
        self.run_call(store, conversation, now, |session, call| {
            grants::revoke_grant(session, call, grant)
        })
    }

    /// Opens a question; returns JSON with a completion request, or with the outcome.
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found`, `limit-exceeded`, `denied`, `conflict`; errors of the store.
    pub fn ask_plan(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        question_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            Ok(ask::plan(session, call, question_json)?.document)
        })
    }

    /// Continues a question with the answer to its request; returns JSON as [`Engine::ask_plan`].
    ///
    /// # Errors
    ///
    /// `invalid-input`, `not-found` (replaced), `denied` (grant), `conflict`; errors of the store.
    pub fn ask_apply(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            Ok(ask::apply(session, call, continuation, answers)?.document)
        })
    }

    /// Answers a question with `model` in one call; returns the outcome as JSON.
    ///
    /// # Errors
    ///
    /// Fails as [`Engine::ask_plan`].
    pub fn ask_run(
        &mut self,
        store: &mut dyn Store,
        model: &mut dyn Model,
        conversation: &str,
        question_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        self.run_call(store, conversation, now, |session, call| {
            Ok(ask::run(session, call, model, question_json)?.document)
        })
    }

    /// Returns the definitions of the agent's tools, as a JSON array in the format of the dialect.
    ///
    /// `grant` and `scope` are as in [`Engine::tool_call`]; of a grant only its presence counts.
    #[must_use]
    pub fn tool_definitions(
        &self,
        dialect: impl Into<ReadDialect>,
        grant: Option<&str>,
        scope: ToolScope,
    ) -> String {
        agent_tools::build_definitions(dialect.into().or_lcm(), grant.is_some(), scope)
    }

    /// Returns a section for a system prompt that tells a model when to use the tools, in the form
    /// of the dialect's provider.
    #[must_use]
    pub fn tool_instructions(
        &self,
        dialect: impl Into<ReadDialect>,
        has_summaries: bool,
    ) -> String {
        agent_tools::build_instructions(dialect.into().or_lcm(), has_summaries)
    }

    /// Answers a tool call. An error of the model is an answer, too.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `conversation` is no id; `conflict`; errors of the store.
    pub fn tool_call(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        request: ToolRequest<'_>,
        now: Timestamp,
    ) -> Result<ToolOutcome> {
        self.run_call(store, conversation, now, |session, call| {
            agent_tools::call_tool(session, call, request)
        })
    }

    /// Continues a tool call with the completions of its requests, in the scope of the call.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the conversation is no id, the continuation is invalid, or the number of
    /// answers is not the number of requests; `not-found`: the continuation is of a conversation
    /// outside of the scope; `conflict`; errors of the store.
    pub fn tool_resume(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        scope: ToolScope,
        now: Timestamp,
    ) -> Result<ToolOutcome> {
        self.run_call(store, conversation, now, |session, call| {
            agent_tools::resume_call(session, call, continuation, answers, scope)
        })
    }

    /// Returns sizes and costs of a conversation, or with `None` counts of the store, as JSON.
    ///
    /// # Errors
    ///
    /// `not-found`; errors of the store.
    pub fn status(
        &mut self,
        store: &mut dyn Store,
        conversation: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        match conversation {
            Some(conversation) => {
                self.run_call(store, conversation, now, admin::conversation_status)
            }
            None => admin::store_status(&mut self.open_session(store)),
        }
    }

    /// Returns one page of a listing as JSON; `kind` is `conversations`, `deletions`, `summaries`,
    /// `messages` or `grants`.
    ///
    /// # Errors
    ///
    /// `invalid-input` (kind, conversation, cursor), `not-found`; errors of the store.
    pub fn listing(
        &mut self,
        store: &mut dyn Store,
        kind: &str,
        conversation: Option<&str>,
        cursor: Option<&str>,
        bytes_max: u32,
    ) -> Result<String> {
        let request = ListingRequest { kind, cursor, bytes_max };
        match conversation.filter(|_| !matches!(kind, "conversations" | "deletions")) {
            Some(conversation) => self.run_call(store, conversation, 0, |session, call| {
                admin::list_page(session, Some(call), &request)
            }),
            None => admin::list_page(&mut self.open_session(store), None, &request),
        }
    }

    /// Checks the stored data of a conversation; returns findings as JSON. Damage is a finding.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a cursor is given; `not-found`; `corrupt`: the head cannot be read; errors
    /// of the store.
    pub fn check(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        cursor: Option<&str>,
    ) -> Result<String> {
        admin::ensure_no_cursor(cursor)?;
        self.run_call(store, conversation, 0, admin::check)
    }

    /// Computes one SHA-256 over all keys and values of the store, or with `logical` over messages,
    /// summaries and contexts. Returns JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input` (a cursor of another call), `corrupt` (logical); errors of the store.
    pub fn digest(
        &mut self,
        store: &mut dyn Store,
        cursor: Option<&str>,
        logical: bool,
    ) -> Result<String> {
        admin::digest(&mut self.open_session(store), cursor, logical)
    }

    /// Returns one page of an export as JSON: `{lines, cursor}`; of all conversations if
    /// `conversation` is empty.
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

    /// Imports lines of an export and returns JSON: `{consumed, cursor, rewind, ...}`.
    ///
    /// # Errors
    ///
    /// `invalid-input` (a line, by its number), `exists`, `limit-exceeded`, `denied` (archived),
    /// `unsupported` (of a newer version), `conflict`; errors of the store.
    pub fn import_page(
        &mut self,
        store: &mut dyn Store,
        lines: &[String],
        cursor: Option<&str>,
        now: Timestamp,
    ) -> Result<String> {
        admin::import_page(&mut self.open_session(store), lines, cursor, now)
    }

    /// Runs a command of a conversation: `family`, `reset`, `new`, `archive`, `delete`,
    /// `calibrate`, `maintain`, `resummarize`, `usage`, `advise`, `focus` or `rewind`; or `prompts`
    /// or `live`, which do not concern a single conversation. Arguments and report are JSON.
    ///
    /// # Errors
    ///
    /// `unsupported` (an unknown verb), `invalid-input`, `not-found`, `exists`, `denied`,
    /// `limit-exceeded` (a rewind), `conflict`; errors of the store.
    pub fn call(
        &mut self,
        store: &mut dyn Store,
        conversation: &str,
        verb: &str,
        arguments_json: &str,
        now: Timestamp,
    ) -> Result<String> {
        // `prompts` depends on the configuration alone, so the conversation need not be valid.
        if verb == "prompts" {
            return admin::list_prompts(&self.config, arguments_json);
        }
        if verb == "live" {
            return admin::find_live(&mut self.open_session(store), arguments_json);
        }
        self.run_call(store, conversation, now, |session, call| {
            admin::run_command(session, call, verb, arguments_json)
        })
    }

    /// Begins a task of several calls; returns the first instruction as JSON. Reads no store.
    ///
    /// # Errors
    ///
    /// `invalid-input`: an unknown task, or a wrong or unknown member; `limit-exceeded`: more than
    /// 16 KiB without `system`, or a `system` of more than 512 KiB.
    pub fn begin(&self, task_json: &str, now: Timestamp) -> Result<String> {
        drive::begin(&self.config, task_json, now)
    }

    /// Returns the instruction that follows an event, as JSON. Reads no store.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a token that no call returned, or an event that does not answer the
    /// instruction.
    pub fn step(&self, token: &str, event_json: &str, now: Timestamp) -> Result<String> {
        drive::step(&self.config, token, event_json, now)
    }
}
