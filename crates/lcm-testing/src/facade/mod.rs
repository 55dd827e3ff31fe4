//! The engine's functions by name, with JSON arguments and results in the vector format.
//!
//! In: `interface.function`, an object of arguments, an engine, a store and a model. Out: the
//! answer of the engine as JSON. [`arguments`] has the defaults, [`results`] the shapes of results,
//! [`messages`] the shorthands for lists of messages. A violation of the format is a [`Misuse`],
//! never an answer.

pub mod arguments;
pub mod messages;
pub mod results;

use lcm_core::{Engine, Error, Model, Store};
use lcm_text::types::api::{ToolRequest, UploadChunk};

use crate::{facade::arguments::Args, json::Json};

/// Why a step violates the vector format: an unknown function or argument, or a value of the wrong
/// type.
pub type Misuse = String;

/// Answer of the engine: a value or an error.
pub type Answer = Result<Json, Error>;

/// An engine with the store and the model that its calls use.
pub struct Instance<'a> {
    /// The engine.
    pub engine: &'a mut Engine,
    /// The store of the engine.
    pub store: &'a mut dyn Store,
    /// The model; only `compaction.run` calls the model.
    pub model: &'a mut dyn Model,
}

/// Calls one function of the engine.
///
/// # Errors
///
/// [`Misuse`]: there is no such function, or the arguments do not have its types.
pub fn call(instance: &mut Instance<'_>, name: &str, args: &Json) -> Result<Answer, Misuse> {
    let mut args = Args::new(name, args)?;
    let answer = match name.split_once('.') {
        Some(("setup", function)) => setup(instance, function, &mut args)?,
        Some(("ingest", function)) => ingest(instance, function, &mut args)?,
        Some(("compaction", function)) => compaction(instance, function, &mut args)?,
        Some(("drive", function)) => drive(instance, function, &mut args)?,
        Some(("context", function)) => context(instance, function, &mut args)?,
        Some(("recall", function)) => recall(instance, function, &mut args)?,
        Some(("tools", function)) => tools(instance, function, &mut args)?,
        Some(("admin", function)) => admin(instance, function, &mut args)?,
        _ => return Err(format!("no function `{name}`")),
    };
    args.finish()?;
    Ok(answer)
}

fn unknown<T>(interface: &str, function: &str) -> Result<T, Misuse> {
    Err(format!("no function `{interface}.{function}`"))
}

fn setup(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    Ok(match function {
        "configure" => instance.engine.configure(&args.json("config_json")?).map(Json::String),
        "resolve" => {
            let config = args.json("config_json")?;
            let variables = args.json("variables_json")?;
            lcm_text::config::resolve_config(&config, &variables).map(Json::String)
        }
        "version" => Ok(Json::String(instance.engine.version())),
        _ => return unknown("setup", function),
    })
}

fn ingest(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let Instance { engine, store, .. } = instance;
    Ok(match function {
        "append" => {
            let options = args.append_options()?;
            let conversation = args.conversation()?;
            let dialect = args.dialect()?;
            let messages = args.messages("messages")?;
            let now = args.now()?;
            engine
                .append(*store, &conversation, dialect, &messages, &options, now)
                .map(results::receipt)
        }
        "stage" => {
            let conversation = args.conversation()?;
            let upload = args.string("upload")?;
            let offset = args.number("offset")?;
            let text = args.string("text")?;
            let extra_json = args.optional_json("extra_json")?;
            let now = args.now()?;
            let extra_json = extra_json.as_deref();
            let piece = UploadChunk { upload: &upload, offset, text: &text, extra_json };
            engine.stage(*store, &conversation, &piece, now).map(Json::Number)
        }
        "identify" => {
            let dialect = args.dialect()?;
            engine.identify(dialect, &args.messages("messages")?).map(Json::String)
        }
        "reconcile" => {
            let conversation = args.conversation()?;
            let transcript = args.json("transcript_json")?;
            let now = args.now()?;
            engine.reconcile(*store, &conversation, &transcript, now).map(Json::String)
        }
        _ => return unknown("ingest", function),
    })
}

fn compaction(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let Instance { engine, store, model } = instance;
    if function == "complete_offline" {
        let request = args.request("request")?;
        return Ok(Ok(results::completion(&engine.complete_offline(&request))));
    }
    if function == "judge_answer" {
        let (request, answer) = (args.request("request")?, args.completion("answer")?);
        return Ok(Ok(engine.judge_answer(&request, &answer).into()));
    }
    let conversation = args.conversation()?;
    let now = args.now()?;
    if function == "apply" {
        let request_id = args.string("request_id")?;
        let answer = args.answer("answer")?;
        let options = args.apply_options()?;
        return Ok(engine
            .apply(*store, &conversation, &request_id, &answer, &options, now)
            .map(results::outcome));
    }
    let budget = args.number_u32("budget")?;
    let options = args.compaction_options()?;
    Ok(match function {
        "evaluate" => {
            engine.evaluate(*store, &conversation, budget, &options, now).map(results::decision)
        }
        "plan" => {
            engine.plan(*store, &conversation, budget, &options, now).map(results::plan_result)
        }
        "run" => {
            engine.run(*store, *model, &conversation, budget, &options, now).map(results::outcome)
        }
        _ => return unknown("compaction", function),
    })
}

fn drive(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let now = args.now()?;
    Ok(match function {
        "begin" => instance.engine.begin(&args.json("task_json")?, now),
        "step" => instance.engine.step(&args.string("token")?, &args.json("event_json")?, now),
        _ => return unknown("drive", function),
    }
    .map(Json::String))
}

fn context(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let dialect = args.dialect()?;
    Ok(match function {
        "assemble" => {
            let conversation = args.conversation()?;
            let budget = args.number_u32("budget")?;
            let options = args.assemble_options()?;
            let now = args.now()?;
            instance
                .engine
                .assemble(instance.store, &conversation, budget, dialect, &options, now)
                .map(results::assembled)
        }
        "validate" => {
            let messages = args.json("messages_json")?;
            instance.engine.validate(dialect, &messages).map(Json::String)
        }
        _ => return unknown("context", function),
    })
}

fn recall(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let Instance { engine, store, model } = instance;
    let conversation = args.conversation()?;
    if function == "ask_plan" || function == "ask_run" {
        let (question, now) = (args.json("question_json")?, args.now()?);
        return Ok(match function {
            "ask_plan" => engine.ask_plan(*store, &conversation, &question, now),
            _ => engine.ask_run(*store, *model, &conversation, &question, now),
        }
        .map(Json::String));
    }
    if function == "ask_apply" {
        let (continuation, answers) = (args.string("continuation")?, args.answers("answers")?);
        let now = args.now()?;
        return Ok(engine
            .ask_apply(*store, &conversation, &continuation, &answers, now)
            .map(Json::String));
    }
    if function == "messages" {
        let (from, to) = (args.number("seq_first")?, args.number("seq_last")?);
        let bytes_max = args.bytes_max()?;
        return Ok(engine
            .messages(*store, &conversation, from, to, bytes_max)
            .map(|texts| Json::Array(texts.into_iter().map(Json::String).collect())));
    }
    if function == "embed" {
        let vectors = args.json("vectors_json")?;
        return Ok(engine.embed(*store, &conversation, &vectors).map(Json::String));
    }
    if function == "grant" {
        let limits = args.json("grant_json")?;
        return Ok(engine.grant(*store, &conversation, &limits, args.now()?).map(Json::String));
    }
    if function == "revoke" {
        let grant = args.string("grant")?;
        return Ok(engine.revoke(*store, &conversation, &grant, args.now()?).map(|()| Json::Null));
    }
    let grant = args.optional_string("grant")?;
    let now = args.now()?;
    if function == "grep" {
        let query = args.json("query_json")?;
        return Ok(engine
            .grep(*store, &conversation, &query, grant.as_deref(), now)
            .map(Json::String));
    }
    let id = args.string("id")?;
    let options = args.json("options_json")?;
    let grant = grant.as_deref();
    Ok(match function {
        "describe" => engine.describe(*store, &conversation, &id, &options, grant, now),
        "expand" => engine.expand(*store, &conversation, &id, &options, grant, now),
        _ => return unknown("recall", function),
    }
    .map(Json::String))
}

fn tools(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let Instance { engine, store, .. } = instance;
    Ok(match function {
        "definitions" => {
            let grant = args.optional_string("grant")?;
            let (dialect, scope) = (args.dialect()?, args.tool_scope()?);
            Ok(Json::String(engine.tool_definitions(dialect, grant.as_deref(), scope)))
        }
        "instructions" => {
            let has_summaries = args.boolean("has_summaries")?;
            Ok(Json::String(engine.tool_instructions(args.dialect()?, has_summaries)))
        }
        "call" => {
            let (conversation, name) = (args.conversation()?, args.string("name")?);
            let arguments = args.json("arguments_json")?;
            let grant = args.optional_string("grant")?;
            let request = ToolRequest {
                name: &name,
                arguments_json: &arguments,
                grant: grant.as_deref(),
                scope: args.tool_scope()?,
            };
            engine.tool_call(*store, &conversation, request, args.now()?).map(results::tool_outcome)
        }
        "resume" => {
            let conversation = args.conversation()?;
            let (continuation, answers) = (args.string("continuation")?, args.answers("answers")?);
            let (scope, now) = (args.tool_scope()?, args.now()?);
            engine
                .tool_resume(*store, &conversation, &continuation, &answers, scope, now)
                .map(results::tool_outcome)
        }
        _ => return unknown("tools", function),
    })
}

fn admin(
    instance: &mut Instance<'_>,
    function: &str,
    args: &mut Args<'_>,
) -> Result<Answer, Misuse> {
    let Instance { engine, store, .. } = instance;
    Ok(match function {
        "status" => {
            let conversation = args.optional_string("conversation")?;
            engine.status(*store, conversation.as_deref(), args.now()?)
        }
        "listing" => {
            let kind = args.string("kind")?;
            let conversation = args.optional_string("conversation")?;
            let cursor = args.optional_string("cursor")?;
            let bytes_max = args.bytes_max()?;
            engine.listing(*store, &kind, conversation.as_deref(), cursor.as_deref(), bytes_max)
        }
        "check" => {
            let conversation = args.conversation()?;
            engine.check(*store, &conversation, args.optional_string("cursor")?.as_deref())
        }
        "digest" => {
            let cursor = args.optional_string("cursor")?;
            engine.digest(*store, cursor.as_deref(), args.boolean("logical")?)
        }
        "export_page" => {
            let conversation = args.conversation()?;
            let cursor = args.optional_string("cursor")?;
            engine.export_page(*store, &conversation, cursor.as_deref(), args.bytes_max()?)
        }
        "import_page" => {
            let lines = args.messages("lines")?;
            let cursor = args.optional_string("cursor")?;
            engine.import_page(*store, &lines, cursor.as_deref(), args.now()?)
        }
        "call" => {
            let (conversation, verb) = (args.conversation()?, args.string("verb")?);
            let arguments = args.json("arguments_json")?;
            engine.call(*store, &conversation, &verb, &arguments, args.now()?)
        }
        _ => return unknown("admin", function),
    }
    .map(Json::String))
}
