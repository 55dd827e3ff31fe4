//! The operations of the protocol `lcm-bench/1`.
//!
//! In: one request as a line of JSON. Out: its answer. Extensions of the protocol, optional for
//! other engines, are the operation `check`, `cold` on `assemble`, the summariser `offline`, and
//! further fields of `stat`. `read` answers requests about single messages and summaries.

use std::{path::PathBuf, time::Instant};

use lcm_text::types::api::UploadChunk;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::{
    Engine, Maker, compact::Compaction, memory, ms, read, read::Reader, summarizer::Summarizer,
};
use crate::failure::{Result, context, failure};

/// Messages and bytes of one call of `append`.
const BATCH_MESSAGES_MAX: usize = 100;
const BATCH_BYTES_MAX: usize = 512 << 10;
/// Bytes of one staged piece of a longer message.
const PIECE_BYTES_MAX: usize = 192 << 10;

#[derive(Deserialize)]
struct Op {
    op: String,
}

#[derive(Clone, Deserialize)]
struct Open {
    db: PathBuf,
    #[serde(default)]
    config: Option<Value>,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Single,
    Batch,
}

#[derive(Deserialize)]
struct Ingest {
    mode: Mode,
    messages: Vec<Box<RawValue>>,
    #[serde(default)]
    want_lat: bool,
}

#[derive(Deserialize)]
struct Compact {
    token_budget: u32,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    max_passes: Option<usize>,
    #[serde(default)]
    unbounded: bool,
    #[serde(default)]
    summarizer: Summarizer,
}

#[derive(Deserialize)]
struct Assemble {
    token_budget: u32,
    #[serde(default)]
    want_text: bool,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    cold: bool,
}

/// A server of one engine at a time.
pub(super) struct Served {
    make: Maker,
    open: Option<Opened>,
}

struct Opened {
    request: Open,
    engine: Box<dyn Engine>,
    reader: Reader,
    ingested: u64,
    skipped: u64,
    refused: u64,
    /// Error of the last refused batch.
    refusal: Option<String>,
}

impl Served {
    /// Creates a server without an open store.
    pub(super) fn new(make: Maker) -> Self {
        Self { make, open: None }
    }

    /// Returns the answer to a request, and whether the request was `close`.
    pub(super) fn answer(&mut self, line: &str) -> (Value, bool) {
        let op = serde_json::from_str::<Op>(line).map(|found| found.op).unwrap_or_default();
        let answer = match self.dispatch(&op, line) {
            Ok(mut answer) => {
                if let Some(fields) = answer.as_object_mut() {
                    fields.insert("ok".to_owned(), true.into());
                }
                answer
            }
            Err(error) => json!({"ok": false, "error": error.to_string()}),
        };
        (answer, op == "close")
    }

    fn dispatch(&mut self, op: &str, line: &str) -> Result<Value> {
        if op == "open" {
            return self.open(request(line)?);
        }
        if op == "checkpoint" {
            return self.checkpoint();
        }
        let Some(open) = &mut self.open else { return failure("no store is open") };
        match op {
            "ingest" => open.ingest(&request(line)?),
            "compact" => open.compact(&request(line)?),
            "assemble" => open.assemble(&request(line)?),
            "stat" => open.stat(),
            "check" => read::check(open.engine.as_mut()),
            "close" => {
                self.open = None;
                Ok(json!({}))
            }
            _ => open.reader.answer(open.engine.as_mut(), op, line),
        }
    }

    fn open(&mut self, request: Open) -> Result<Value> {
        // An open store is closed first: two engines on one file would wait for each other.
        self.open = None;
        let begin = Instant::now();
        let (mut engine, config) = self.engine(&request)?;
        let version = engine.version()?;
        let ms = ms(begin);
        let reader = Reader::default();
        let (ingested, skipped, refused, refusal) = (0, 0, 0, None);
        self.open = Some(Opened { request, engine, reader, ingested, skipped, refused, refusal });
        Ok(json!({"ms": ms, "engine": "lcm", "version": version, "config": config}))
    }

    /// Creates an engine and configures it. Also returns the engine's report about the
    /// configuration; null without a configuration.
    fn engine(&self, request: &Open) -> Result<(Box<dyn Engine>, Value)> {
        let mut engine = (self.make)(&request.db)?;
        let Some(config) = &request.config else { return Ok((engine, Value::Null)) };
        let report = engine.configure(&config.to_string())?;
        let report = serde_json::from_str(&report);
        Ok((engine, report.map_err(context("reading the report of the configuration"))?))
    }

    /// Closes the store, so that SQLite merges its write-ahead log into the file, measures the
    /// file, and opens the store again.
    fn checkpoint(&mut self) -> Result<Value> {
        let Some(mut open) = self.open.take() else { return failure("no store is open") };
        let request = open.request.clone();
        drop(open.engine);
        let db_bytes = std::fs::metadata(&request.db).map(|found| found.len()).ok();
        (open.engine, _) = self.engine(&request)?;
        self.open = Some(open);
        Ok(json!({"db_bytes": db_bytes}))
    }
}

/// Parses a request of an operation.
///
/// # Errors
///
/// A field is missing or of another type.
pub(super) fn request<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(line).map_err(context("reading the request"))
}

impl Opened {
    fn ingest(&mut self, request: &Ingest) -> Result<Value> {
        let messages: Vec<String> =
            request.messages.iter().map(|message| message.get().to_owned()).collect();
        let mut lat_ms = Vec::new();
        let begin = Instant::now();
        match request.mode {
            Mode::Batch => self.append_all(&messages),
            Mode::Single => {
                for message in &messages {
                    let begin = Instant::now();
                    self.append_all(std::slice::from_ref(message));
                    lat_ms.push(ms(begin));
                }
            }
        }
        let ms = ms(begin);
        if request.mode == Mode::Batch {
            lat_ms.push(ms);
        }
        let mut answer = json!({
            "ms": ms,
            "ingested": self.ingested,
            "refused": self.refused,
            "skipped": self.skipped,
            "refusal": self.refusal,
        });
        if let Some(fields) = answer.as_object_mut().filter(|_| request.want_lat) {
            fields.insert("lat_ms".to_owned(), lat_ms.into());
        }
        Ok(answer)
    }

    /// Stores messages in as many calls as needed. Refused messages are counted, and are no error.
    fn append_all(&mut self, messages: &[String]) {
        let mut rest = messages;
        while !rest.is_empty() {
            let (batch, _) = rest.split_at(batch_length(rest));
            let taken = match batch {
                [large] if large.len() > BATCH_BYTES_MAX => self.append_large(large),
                _ => self.append(batch),
            };
            // The engine refuses a batch as a whole, so the loop continues after the batch.
            let (_, after) = rest.split_at(taken.unwrap_or_else(|error| {
                self.refused += u64::try_from(batch.len()).unwrap_or(u64::MAX);
                self.refusal = Some(error.to_string());
                batch.len()
            }));
            rest = after;
        }
    }

    /// Stores the first messages of a batch. Returns how many were stored or skipped, at least 1.
    fn append(&mut self, batch: &[String]) -> Result<usize> {
        let taken = self.engine.append(batch)?;
        self.ingested += taken.ingested;
        self.skipped += taken.skipped;
        let count = usize::try_from(taken.ingested + taken.skipped).unwrap_or(usize::MAX);
        if count == 0 { failure("no message was taken") } else { Ok(count.min(batch.len())) }
    }

    fn append_large(&mut self, message: &str) -> Result<usize> {
        let digest = Sha256::digest(message.as_bytes());
        let upload: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let extra_json = json!({"bytes": message.len()}).to_string();
        let mut rest = message;
        let mut offset = 0;
        while !rest.is_empty() {
            let (text, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            let extra_json = Some(extra_json.as_str());
            offset =
                self.engine.stage(&UploadChunk { upload: &upload, offset, text, extra_json })?;
            rest = after;
        }
        self.append(&[format!("@upload {upload}")])
    }

    fn compact(&mut self, request: &Compact) -> Result<Value> {
        let compaction = Compaction {
            budget: request.token_budget,
            force: request.force,
            passes_max: request.max_passes.filter(|_| !request.unbounded),
            summarizer: request.summarizer,
        };
        let before = self.engine.load(request.token_budget)?;
        let begin = Instant::now();
        let done = self.engine.compact(&compaction)?;
        let ms = ms(begin);
        let after = self.engine.load(request.token_budget)?;
        let ran = !done.passes.is_empty();
        Ok(json!({
            "ms": ms,
            "ms_excl_llm": ms - done.llm_ms,
            "llm_calls": done.llm_calls,
            "ran": ran,
            "result": {
                "actionTaken": ran,
                "tokensBefore": before.tokens,
                "tokensAfter": after.tokens,
                "stoppedAtBudget": after.tokens <= after.threshold,
                "threshold": after.threshold,
            },
            "passes": done.passes,
        }))
    }

    fn assemble(&mut self, request: &Assemble) -> Result<Value> {
        if request.cold {
            self.engine.begin_anew()?;
        }
        let begin = Instant::now();
        let found = self.engine.assemble(request.token_budget, request.prompt.as_deref())?;
        let ms = ms(begin);
        let messages: Vec<&RawValue> = serde_json::from_str(&found.messages_json)
            .map_err(context("reading an assembled context"))?;
        let mut answer = json!({
            "ms": ms,
            "tokens": found.tokens,
            "messages": messages.len(),
            "cold": request.cold,
        });
        if let Some(fields) = answer.as_object_mut().filter(|_| request.want_text) {
            let context: Result<Vec<Value>> =
                messages.iter().map(|message| read::shown(message.get())).collect();
            fields.insert("context".to_owned(), context?.into());
        }
        Ok(answer)
    }

    fn stat(&mut self) -> Result<Value> {
        let status = self.engine.status()?;
        let status: Value = serde_json::from_str(&status).map_err(context("reading a status"))?;
        let check: Value = serde_json::from_str(&self.engine.check(None)?)
            .map_err(context("reading the result of a check"))?;
        let empty = Vec::new();
        let depths = status.get("summaries").and_then(Value::as_array).unwrap_or(&empty);
        let of = |row: &Value, name: &str| row.get(name).and_then(Value::as_u64).unwrap_or(0);
        Ok(json!({
            "db_bytes": self.engine.bytes_on_disk(),
            "messages": status.get("messages"),
            "summaries": depths.iter().map(|row| of(row, "count")).sum::<u64>(),
            "context_items": status.pointer("/context/items"),
            "context_tokens": status.pointer("/context/tokens"),
            "max_depth": depths.iter().map(|row| of(row, "depth")).max(),
            "bytes": check.pointer("/metrics/bytes"),
            "process_bytes_peak": memory::process_bytes_peak(),
            "linear_memory_bytes": self.engine.linear_memory_bytes(),
        }))
    }
}

/// Returns how many of the first messages fit one call; a message over the limit is alone.
fn batch_length(messages: &[String]) -> usize {
    let mut bytes = 0_usize;
    let fitting = messages.iter().take(BATCH_MESSAGES_MAX).take_while(|message| {
        bytes = bytes.saturating_add(message.len());
        bytes <= BATCH_BYTES_MAX
    });
    fitting.count().max(1)
}
