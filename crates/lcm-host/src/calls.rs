//! One method per exported function of the component, with its types.
//!
//! In: arguments as `wit/` names them. Out: its results. `configure` stands with the handle, and
//! loops over several calls stand in the modules of the drivers.
//!
//! Every method can fail with the codes of the component, with `conflict` after eight repeats, and
//! with `internal` when the component trapped.

use serde_json::{Value, json};

use crate::{
    bindings::types::{Completion, CompletionRequest, CompletionResult, Dialect},
    context::{self, Assembled, ToolOutcome},
    error::{Code, Result},
    ingestion::{self, Receipt},
    instance::Commit,
    lcm::{Failure, Lcm},
    record::{
        append_options, apply_options, assemble_options, completion_result, dialect_name,
        work_options,
    },
    work::{self, Decision, Outcome, PlanResult},
};

fn results(answers: &[CompletionResult]) -> Value {
    answers.iter().map(completion_result).collect()
}

/// `options` with `{"repeat": true}` added to what `extra_json` holds.
fn repeating(options: &ingestion::Options) -> ingestion::Options {
    let extra = options.extra_json.as_deref().unwrap_or("{}");
    let mut extra: Value = serde_json::from_str(extra).unwrap_or_else(|_| json!({}));
    if let Some(extra) = extra.as_object_mut() {
        extra.insert("repeat".to_owned(), Value::Bool(true));
    }
    ingestion::Options { extra_json: Some(extra.to_string()), ..options.clone() }
}

/// `setup` and `ingest`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// The version of the component.
    pub fn version(&self) -> Result<String> {
        self.call(
            "setup.version",
            || json!({}),
            |bindings, store| bindings.lcm_engine_setup().call_version(store).map(Ok),
        )
    }

    /// Stores messages, each one JSON text of `dialect`.
    ///
    /// When the outcome of its commit is unknown, the call is repeated once, here and nowhere
    /// else, with `{"repeat": true}` in `extra_json`: the component then recognises what the first
    /// attempt may have stored. When that fails, too, the caller may repeat it in the same way.
    pub fn append(
        &self,
        conversation: &str,
        dialect: Dialect,
        messages: &[String],
        options: &ingestion::Options,
        now: u64,
    ) -> Result<Receipt> {
        let attempt = |options: &ingestion::Options| {
            self.call_known(
                "ingest.append",
                || {
                    json!({"conversation": conversation, "dialect": dialect_name(dialect),
                        "messages": messages, "options": append_options(options), "now": now})
                },
                |bindings, store| {
                    bindings
                        .lcm_engine_ingest()
                        .call_append(store, conversation, dialect, messages, options, now)
                },
            )
        };
        let unknown = |failure: &Failure| {
            failure.commit == Commit::Unknown && failure.error.code == Code::StoreUnavailable
        };
        match attempt(options) {
            Err(failure) if unknown(&failure) => attempt(&repeating(options)),
            other => other,
        }
        .map_err(|failure| failure.error)
    }

    /// Stores a piece of one message too large for `append`; returns the next offset in bytes.
    /// Idempotent by offset.
    pub fn stage(
        &self,
        conversation: &str,
        upload: &str,
        offset: u64,
        text: &str,
        now: u64,
    ) -> Result<u64> {
        self.call(
            "ingest.stage",
            || {
                json!({"conversation": conversation, "upload": upload, "offset": offset,
                    "text": text, "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_ingest()
                    .call_stage(store, conversation, upload, offset, text, now)
            },
        )
    }

    /// Identities of messages, as a JSON array of `{entry_id, event_key, hash}`. Reads nothing.
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        self.call(
            "ingest.identify",
            || json!({"dialect": dialect_name(dialect), "messages": messages}),
            |bindings, store| bindings.lcm_engine_ingest().call_identify(store, dialect, messages),
        )
    }

    /// Which entries of a whole transcript are not stored, as JSON. `transcript_json` is
    /// `{"entries": [...]}` with the objects of [`Lcm::identify`].
    pub fn reconcile(
        &self,
        conversation: &str,
        transcript_json: &str,
        now: u64,
    ) -> Result<String> {
        self.call(
            "ingest.reconcile",
            || {
                json!({"conversation": conversation, "transcript_json": transcript_json,
                    "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_ingest()
                    .call_reconcile(store, conversation, transcript_json, now)
            },
        )
    }
}

/// `compaction`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Whether compaction is due, and why.
    pub fn evaluate(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<Decision> {
        self.call(
            "compaction.evaluate",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_compaction()
                    .call_evaluate(store, conversation, budget, options, now)
            },
        )
    }

    /// What compaction wants to ask a model next.
    pub fn plan(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<PlanResult> {
        self.call(
            "compaction.plan",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_compaction()
                    .call_plan(store, conversation, budget, options, now)
            },
        )
    }

    /// Judges an answer to a request of [`Lcm::plan`], and stores what is accepted.
    pub fn apply(
        &self,
        conversation: &str,
        request_id: &str,
        answer: &CompletionResult,
        options: &work::ApplyOptions,
        now: u64,
    ) -> Result<Outcome> {
        self.call(
            "compaction.apply",
            || {
                json!({"conversation": conversation, "request_id": request_id,
                    "answer": completion_result(answer), "options": apply_options(options),
                    "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_compaction()
                    .call_apply(store, conversation, request_id, answer, options, now)
            },
        )
    }

    /// One pass through the model of this handle. Other calls wait until it is over.
    pub fn run(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<Outcome> {
        self.call(
            "compaction.run",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_compaction()
                    .call_run(store, conversation, budget, options, now)
            },
        )
    }

    /// Answers a request without a model: deterministic, extractive.
    pub fn complete_offline(&self, request: &CompletionRequest) -> Result<Completion> {
        self.call(
            "compaction.complete-offline",
            || json!({"request": {"id": request.id}}),
            |bindings, store| {
                bindings.lcm_engine_compaction().call_complete_offline(store, request).map(Ok)
            },
        )
    }
}

/// `context`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// A context that fits `budget` tokens, in `dialect`.
    pub fn assemble(
        &self,
        conversation: &str,
        budget: u32,
        dialect: Dialect,
        options: &context::Options,
        now: u64,
    ) -> Result<Assembled> {
        self.call(
            "context.assemble",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "dialect": dialect_name(dialect), "options": assemble_options(options),
                    "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_context()
                    .call_assemble(store, conversation, budget, dialect, options, now)
            },
        )
    }

    /// Whether the provider of `dialect` would accept this array: a JSON list of findings.
    pub fn validate(&self, dialect: Dialect, messages_json: &str) -> Result<String> {
        self.call(
            "context.validate",
            || json!({"dialect": dialect_name(dialect), "messages_json": messages_json}),
            |bindings, store| {
                bindings.lcm_engine_context().call_validate(store, dialect, messages_json)
            },
        )
    }
}

/// `recall`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Searches a conversation; query and answer are JSON.
    pub fn grep(
        &self,
        conversation: &str,
        query_json: &str,
        grant: Option<&str>,
        now: u64,
    ) -> Result<String> {
        self.call(
            "recall.grep",
            || {
                json!({"conversation": conversation, "query_json": query_json, "grant": grant,
                    "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_recall().call_grep(store, conversation, query_json, grant, now)
            },
        )
    }

    /// Describes a summary or file as JSON.
    pub fn describe(
        &self,
        conversation: &str,
        id: &str,
        options_json: &str,
        grant: Option<&str>,
        now: u64,
    ) -> Result<String> {
        self.call(
            "recall.describe",
            || {
                json!({"conversation": conversation, "id": id, "options_json": options_json,
                    "grant": grant, "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_recall()
                    .call_describe(store, conversation, id, options_json, grant, now)
            },
        )
    }

    /// One page of what a summary stands for, as JSON. [`Lcm::expand_all`] follows the pages.
    pub fn expand(
        &self,
        conversation: &str,
        id: &str,
        options_json: &str,
        grant: Option<&str>,
        now: u64,
    ) -> Result<String> {
        self.call(
            "recall.expand",
            || {
                json!({"conversation": conversation, "id": id, "options_json": options_json,
                    "grant": grant, "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_recall()
                    .call_expand(store, conversation, id, options_json, grant, now)
            },
        )
    }

    /// Original texts of the messages of a range, both ends included, from its beginning to at
    /// most `bytes_max`, but at least one when there is one.
    pub fn messages(
        &self,
        conversation: &str,
        seq_from: u64,
        seq_to: u64,
        bytes_max: u32,
    ) -> Result<Vec<String>> {
        self.call(
            "recall.messages",
            || {
                json!({"conversation": conversation, "seq_from": seq_from, "seq_to": seq_to,
                    "bytes_max": bytes_max})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_recall()
                    .call_messages(store, conversation, seq_from, seq_to, bytes_max)
            },
        )
    }

    /// Makes a grant for a sub-agent; both sides are JSON.
    pub fn grant(&self, conversation: &str, grant_json: &str, now: u64) -> Result<String> {
        self.call(
            "recall.grant",
            || json!({"conversation": conversation, "grant_json": grant_json, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_grant(store, conversation, grant_json, now)
            },
        )
    }

    /// Withdraws a grant.
    pub fn revoke(&self, conversation: &str, grant: &str, now: u64) -> Result<()> {
        self.call(
            "recall.revoke",
            || json!({"conversation": conversation, "grant": grant, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_revoke(store, conversation, grant, now)
            },
        )
    }

    /// What answering a question wants to ask a model; both sides are JSON.
    pub fn ask_plan(&self, conversation: &str, question_json: &str, now: u64) -> Result<String> {
        self.call(
            "recall.ask-plan",
            || json!({"conversation": conversation, "question_json": question_json, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_ask_plan(store, conversation, question_json, now)
            },
        )
    }

    /// Continues a question with the model's answers.
    pub fn ask_apply(
        &self,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: u64,
    ) -> Result<String> {
        self.call(
            "recall.ask-apply",
            || {
                json!({"conversation": conversation, "continuation": continuation,
                    "answers": results(answers), "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_recall()
                    .call_ask_apply(store, conversation, continuation, answers, now)
            },
        )
    }

    /// Answers a question through the model of this handle. Other calls wait until it is over.
    pub fn ask_run(&self, conversation: &str, question_json: &str, now: u64) -> Result<String> {
        self.call(
            "recall.ask-run",
            || json!({"conversation": conversation, "question_json": question_json, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_ask_run(store, conversation, question_json, now)
            },
        )
    }
}

/// `tools`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Definitions of the tools, as JSON in the format of `dialect`.
    pub fn tool_definitions(&self, dialect: Dialect) -> Result<String> {
        self.call(
            "tools.definitions",
            || json!({"dialect": dialect_name(dialect)}),
            |bindings, store| bindings.lcm_engine_tools().call_definitions(store, dialect).map(Ok),
        )
    }

    /// What an agent should be told about the tools.
    pub fn tool_instructions(&self, dialect: Dialect, has_summaries: bool) -> Result<String> {
        self.call(
            "tools.instructions",
            || json!({"dialect": dialect_name(dialect), "has_summaries": has_summaries}),
            |bindings, store| {
                bindings
                    .lcm_engine_tools()
                    .call_instructions(store, dialect, has_summaries)
                    .map(Ok)
            },
        )
    }

    /// Answers a tool call of a model. `caller` is a grant for a sub-agent, `None` for the agent.
    pub fn tool_call(
        &self,
        conversation: &str,
        name: &str,
        arguments_json: &str,
        caller: Option<&str>,
        now: u64,
    ) -> Result<ToolOutcome> {
        self.call(
            "tools.call",
            || {
                json!({"conversation": conversation, "name": name,
                    "arguments_json": arguments_json, "caller": caller, "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_tools()
                    .call_call(store, conversation, name, arguments_json, caller, now)
            },
        )
    }

    /// Continues a tool call with the model's answers.
    pub fn tool_resume(
        &self,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: u64,
    ) -> Result<ToolOutcome> {
        self.call(
            "tools.resume",
            || {
                json!({"conversation": conversation, "continuation": continuation,
                    "answers": results(answers), "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_tools()
                    .call_resume(store, conversation, continuation, answers, now)
            },
        )
    }
}

/// `admin`.
#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Counts and sizes of a conversation, or of the store, as JSON.
    pub fn status(&self, conversation: Option<&str>, now: u64) -> Result<String> {
        self.call(
            "admin.status",
            || json!({"conversation": conversation, "now": now}),
            |bindings, store| bindings.lcm_engine_admin().call_status(store, conversation, now),
        )
    }

    /// One page of a list, as JSON `{items, cursor}`. [`Lcm::list_all`] follows the pages.
    pub fn listing(
        &self,
        kind: &str,
        conversation: Option<&str>,
        cursor: Option<&str>,
        bytes_max: u32,
    ) -> Result<String> {
        self.call(
            "admin.listing",
            || {
                json!({"kind": kind, "conversation": conversation, "cursor": cursor,
                    "bytes_max": bytes_max})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_admin()
                    .call_listing(store, kind, conversation, cursor, bytes_max)
            },
        )
    }

    /// One step of checking a conversation, as JSON. [`Lcm::check_all`] goes on to the end.
    pub fn check(&self, conversation: &str, cursor: Option<&str>) -> Result<String> {
        self.call(
            "admin.check",
            || json!({"conversation": conversation, "cursor": cursor}),
            |bindings, store| bindings.lcm_engine_admin().call_check(store, conversation, cursor),
        )
    }

    /// One step of the digest of the store, as JSON. [`Lcm::digest_all`] goes on to the end.
    pub fn digest(&self, cursor: Option<&str>, logical: bool) -> Result<String> {
        self.call(
            "admin.digest",
            || json!({"cursor": cursor, "logical": logical}),
            |bindings, store| bindings.lcm_engine_admin().call_digest(store, cursor, logical),
        )
    }

    /// One page of a portable copy, as JSON.
    pub fn export_page(
        &self,
        conversation: &str,
        cursor: Option<&str>,
        bytes_max: u32,
    ) -> Result<String> {
        self.call(
            "admin.export-page",
            || json!({"conversation": conversation, "cursor": cursor, "bytes_max": bytes_max}),
            |bindings, store| {
                bindings
                    .lcm_engine_admin()
                    .call_export_page(store, conversation, cursor, bytes_max)
            },
        )
    }

    /// Takes in one page of a portable copy; answers JSON.
    pub fn import_page(&self, lines: &[String], cursor: Option<&str>, now: u64) -> Result<String> {
        self.call(
            "admin.import-page",
            || json!({"lines": lines, "cursor": cursor, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_admin().call_import_page(store, lines, cursor, now)
            },
        )
    }

    /// A verb whose shape is not settled yet; both sides are JSON.
    pub fn admin_call(
        &self,
        conversation: &str,
        verb: &str,
        arguments_json: &str,
        now: u64,
    ) -> Result<String> {
        self.call(
            "admin.call",
            || {
                json!({"conversation": conversation, "verb": verb,
                    "arguments_json": arguments_json, "now": now})
            },
            |bindings, store| {
                bindings
                    .lcm_engine_admin()
                    .call_call(store, conversation, verb, arguments_json, now)
            },
        )
    }
}
