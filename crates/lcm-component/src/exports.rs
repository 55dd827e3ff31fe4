//! Every exported function, forwarded to the engine.
//!
//! In: arguments in the component's types. Out: the engine's answer. This module checks no
//! argument, and adds no default except for an absent tool scope.

use alloc::{string::String, vec::Vec};

use lcm_core::Engine;
use lcm_text::{
    config,
    types::api::{ToolRequest, UploadChunk},
};

use crate::{
    bindings::{
        exports::lcm::engine::{
            admin, compaction, context, drive, ingest, recall, setup,
            tools::{self, ToolScope},
        },
        lcm::engine::types::{
            Completion, CompletionRequest, CompletionResult, Dialect, Error, Seq, Timestamp,
        },
    },
    imports::{HostModel, HostStore},
    instance::with_engine,
};

/// The type that implements the exports; it has no state.
pub(crate) struct Component;

impl setup::Guest for Component {
    fn configure(config_json: String) -> Result<String, Error> {
        with_engine(|engine| engine.configure(&config_json))
    }

    fn resolve(config_json: String, variables_json: String) -> Result<String, Error> {
        config::resolve_config(&config_json, &variables_json).map_err(Into::into)
    }

    fn version() -> String {
        Engine::new().version()
    }
}

impl ingest::Guest for Component {
    fn append(
        conversation: String,
        dialect: Dialect,
        messages: Vec<String>,
        options: ingest::Options,
        now: Timestamp,
    ) -> Result<ingest::Receipt, Error> {
        let options = options.into();
        with_engine(|engine| {
            engine.append(&mut HostStore, &conversation, dialect, &messages, &options, now)
        })
        .map(Into::into)
    }

    fn stage(
        conversation: String,
        upload: String,
        offset: u64,
        text: String,
        extra_json: Option<String>,
        now: Timestamp,
    ) -> Result<u64, Error> {
        let extra_json = extra_json.as_deref();
        let piece = UploadChunk { upload: &upload, offset, text: &text, extra_json };
        with_engine(|engine| engine.stage(&mut HostStore, &conversation, &piece, now))
    }

    fn identify(dialect: Dialect, messages: Vec<String>) -> Result<String, Error> {
        with_engine(|engine| engine.identify(dialect, &messages))
    }

    fn reconcile(
        conversation: String,
        transcript_json: String,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| engine.reconcile(&mut HostStore, &conversation, &transcript_json, now))
    }
}

impl compaction::Guest for Component {
    fn evaluate(
        conversation: String,
        budget: u32,
        options: compaction::Options,
        now: Timestamp,
    ) -> Result<compaction::Decision, Error> {
        let options = options.into();
        with_engine(|engine| engine.evaluate(&mut HostStore, &conversation, budget, &options, now))
            .map(Into::into)
    }

    fn plan(
        conversation: String,
        budget: u32,
        options: compaction::Options,
        now: Timestamp,
    ) -> Result<compaction::PlanResult, Error> {
        let options = options.into();
        with_engine(|engine| engine.plan(&mut HostStore, &conversation, budget, &options, now))
            .map(Into::into)
    }

    fn apply(
        conversation: String,
        request_id: String,
        answer: CompletionResult,
        options: compaction::ApplyOptions,
        now: Timestamp,
    ) -> Result<compaction::Outcome, Error> {
        let (answer, options) = (answer.into(), options.into());
        with_engine(|engine| {
            engine.apply(&mut HostStore, &conversation, &request_id, &answer, &options, now)
        })
        .map(Into::into)
    }

    fn run(
        conversation: String,
        budget: u32,
        options: compaction::Options,
        now: Timestamp,
    ) -> Result<compaction::Outcome, Error> {
        let options = options.into();
        with_engine(|engine| {
            engine.run(&mut HostStore, &mut HostModel, &conversation, budget, &options, now)
        })
        .map(Into::into)
    }

    fn complete_offline(request: CompletionRequest) -> Completion {
        // The answer depends only on the request, so a new engine can give it.
        Engine::new().complete_offline(&request.into()).into()
    }

    fn judge_answer(request: CompletionRequest, answer: Completion) -> Option<String> {
        Engine::new().judge_answer(&request.into(), &answer.into()).map(Into::into)
    }
}

impl drive::Guest for Component {
    fn begin(task_json: String, now: Timestamp) -> Result<String, Error> {
        with_engine(|engine| engine.begin(&task_json, now))
    }

    fn step(token: String, event_json: String, now: Timestamp) -> Result<String, Error> {
        with_engine(|engine| engine.step(&token, &event_json, now))
    }
}

impl context::Guest for Component {
    fn assemble(
        conversation: String,
        budget: u32,
        dialect: Dialect,
        options: context::Options,
        now: Timestamp,
    ) -> Result<context::Assembled, Error> {
        let options = options.into();
        with_engine(|engine| {
            engine.assemble(&mut HostStore, &conversation, budget, dialect, &options, now)
        })
        .map(Into::into)
    }

    fn validate(dialect: Dialect, messages_json: String) -> Result<String, Error> {
        with_engine(|engine| engine.validate(dialect, &messages_json))
    }
}

impl recall::Guest for Component {
    fn grep(
        conversation: String,
        query_json: String,
        grant: Option<String>,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            engine.grep(&mut HostStore, &conversation, &query_json, grant.as_deref(), now)
        })
    }

    fn embed(conversation: String, vectors_json: String) -> Result<String, Error> {
        with_engine(|engine| engine.embed(&mut HostStore, &conversation, &vectors_json))
    }

    fn describe(
        conversation: String,
        id: String,
        options_json: String,
        grant: Option<String>,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            let grant = grant.as_deref();
            engine.describe(&mut HostStore, &conversation, &id, &options_json, grant, now)
        })
    }

    fn expand(
        conversation: String,
        id: String,
        options_json: String,
        grant: Option<String>,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            let grant = grant.as_deref();
            engine.expand(&mut HostStore, &conversation, &id, &options_json, grant, now)
        })
    }

    fn messages(
        conversation: String,
        seq_first: Seq,
        seq_last: Seq,
        bytes_max: u32,
    ) -> Result<Vec<String>, Error> {
        with_engine(|engine| {
            engine.messages(&mut HostStore, &conversation, seq_first, seq_last, bytes_max)
        })
    }

    fn grant(conversation: String, grant_json: String, now: Timestamp) -> Result<String, Error> {
        with_engine(|engine| engine.grant(&mut HostStore, &conversation, &grant_json, now))
    }

    fn revoke(conversation: String, grant: String, now: Timestamp) -> Result<(), Error> {
        with_engine(|engine| engine.revoke(&mut HostStore, &conversation, &grant, now))
    }

    fn ask_plan(
        conversation: String,
        question_json: String,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| engine.ask_plan(&mut HostStore, &conversation, &question_json, now))
    }

    fn ask_apply(
        conversation: String,
        continuation: String,
        answers: Vec<CompletionResult>,
        now: Timestamp,
    ) -> Result<String, Error> {
        let answers = completions(answers);
        with_engine(|engine| {
            engine.ask_apply(&mut HostStore, &conversation, &continuation, &answers, now)
        })
    }

    fn ask_run(
        conversation: String,
        question_json: String,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            engine.ask_run(&mut HostStore, &mut HostModel, &conversation, &question_json, now)
        })
    }
}

/// Converts the results of completion requests to the engine's type.
fn completions(answers: Vec<CompletionResult>) -> Vec<lcm_text::types::model::CompletionResult> {
    answers.into_iter().map(Into::into).collect()
}

/// Converts the scope of a call to the engine's type; absent: the conversation and its family.
fn tool_scope(scope: Option<ToolScope>) -> lcm_text::types::api::ToolScope {
    scope.map(Into::into).unwrap_or_default()
}

impl tools::Guest for Component {
    fn definitions(dialect: Dialect, grant: Option<String>, scope: Option<ToolScope>) -> String {
        // The answer depends only on the arguments, so any engine can answer.
        Engine::new().tool_definitions(dialect, grant.as_deref(), tool_scope(scope))
    }

    fn instructions(dialect: Dialect, has_summaries: bool) -> String {
        Engine::new().tool_instructions(dialect, has_summaries)
    }

    fn call(
        conversation: String,
        name: String,
        arguments_json: String,
        grant: Option<String>,
        scope: Option<ToolScope>,
        now: Timestamp,
    ) -> Result<tools::ToolOutcome, Error> {
        let request = ToolRequest {
            name: &name,
            arguments_json: &arguments_json,
            grant: grant.as_deref(),
            scope: tool_scope(scope),
        };
        with_engine(|engine| engine.tool_call(&mut HostStore, &conversation, request, now))
            .map(Into::into)
    }

    fn resume(
        conversation: String,
        continuation: String,
        answers: Vec<CompletionResult>,
        scope: Option<ToolScope>,
        now: Timestamp,
    ) -> Result<tools::ToolOutcome, Error> {
        let (answers, scope) = (completions(answers), tool_scope(scope));
        with_engine(|engine| {
            engine.tool_resume(&mut HostStore, &conversation, &continuation, &answers, scope, now)
        })
        .map(Into::into)
    }
}

impl admin::Guest for Component {
    fn status(conversation: Option<String>, now: Timestamp) -> Result<String, Error> {
        with_engine(|engine| engine.status(&mut HostStore, conversation.as_deref(), now))
    }

    fn listing(
        kind: String,
        conversation: Option<String>,
        cursor: Option<String>,
        bytes_max: u32,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            let (conversation, cursor) = (conversation.as_deref(), cursor.as_deref());
            engine.listing(&mut HostStore, &kind, conversation, cursor, bytes_max)
        })
    }

    fn check(conversation: String, cursor: Option<String>) -> Result<String, Error> {
        with_engine(|engine| engine.check(&mut HostStore, &conversation, cursor.as_deref()))
    }

    fn digest(cursor: Option<String>, logical: bool) -> Result<String, Error> {
        with_engine(|engine| engine.digest(&mut HostStore, cursor.as_deref(), logical))
    }

    fn export_page(
        conversation: String,
        cursor: Option<String>,
        bytes_max: u32,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            engine.export_page(&mut HostStore, &conversation, cursor.as_deref(), bytes_max)
        })
    }

    fn import_page(
        lines: Vec<String>,
        cursor: Option<String>,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| engine.import_page(&mut HostStore, &lines, cursor.as_deref(), now))
    }

    fn call(
        conversation: String,
        verb: String,
        arguments_json: String,
        now: Timestamp,
    ) -> Result<String, Error> {
        with_engine(|engine| {
            engine.call(&mut HostStore, &conversation, &verb, &arguments_json, now)
        })
    }
}
