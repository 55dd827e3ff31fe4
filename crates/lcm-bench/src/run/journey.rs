//! The measurement of one engine with one conversation, in a separate process.
//!
//! In: an engine and a workload. Out: figures. The engine measures the times, so the cost of the
//! pipe is excluded.

use std::{collections::BTreeMap, path::Path, time::Instant};

use serde_json::{Value, json};

use super::{
    figures as f, numbers,
    process::{Contender, Process},
    workload::Workload,
};
use crate::failure::{Failure, Result, failure};

/// Tokens of every context.
const BUDGET: u32 = 128_000;
/// Messages of one batch.
const BATCH_MESSAGES: usize = 100;
/// Number of messages to read back, spread over the conversation.
const LOOKED_UP: usize = 100;
/// Bytes of a megabyte.
const MEGABYTE: f64 = 1_000_000.0;

/// The figures of one run.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Figures by name.
    pub(super) figures: BTreeMap<&'static str, f64>,
    /// Bytes of the store by kind; `None`: the engine does not say.
    pub(super) bytes: Option<Value>,
    /// Figures that the engine could not give, each with the engine's error.
    pub(super) missing: BTreeMap<&'static str, String>,
}

struct Journey<'a> {
    engine: Process,
    workload: &'a Workload,
    measured: Measured,
    /// Number of messages that were appended between measurements.
    appended: usize,
    /// Bytes of all messages that the engine received.
    input_bytes: f64,
}

/// Runs an engine through a conversation and measures it, in a new store at `db`; with `search`,
/// also measures searches.
///
/// # Errors
///
/// The engine ends, or fails in an operation that every engine must support.
pub(super) fn measure(
    contender: &Contender,
    workload: &Workload,
    db: &Path,
    search: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Measured> {
    let mut engine = Process::start(contender)?;
    engine.ask(&json!({"op": "open", "db": db}))?;
    let measured = Measured::default();
    let mut journey = Journey { engine, workload, measured, appended: 0, input_bytes: 0.0 };
    let mut step = |name: &str, begin: Instant| {
        say(&format!("{name} {:.1} s", begin.elapsed().as_secs_f64()));
    };
    let begin = Instant::now();
    journey.ingest()?;
    step("ingest", begin);
    journey.assemble(f::RAW_WARM, f::RAW_COLD)?;
    let begin = Instant::now();
    journey.compact()?;
    step("compaction", begin);
    journey.assemble(f::FULL_WARM, f::FULL_COLD)?;
    if search {
        let begin = Instant::now();
        journey.search();
        step("search", begin);
    }
    journey.size()?;
    let begin = Instant::now();
    journey.check();
    journey.look_up()?;
    step("check", begin);
    journey.engine.close()?;
    Ok(journey.measured)
}

/// Returns the number at a JSON pointer of an answer; `None`: there is no number.
fn number(answer: &Value, pointer: &str) -> Option<f64> {
    answer.pointer(pointer).and_then(Value::as_f64)
}

fn needed(answer: &Value, pointer: &str) -> Result<f64> {
    number(answer, pointer).ok_or_else(|| Failure(format!("no number `{pointer}` in an answer")))
}

fn assembly(cold: bool) -> Value {
    json!({"op": "assemble", "token_budget": BUDGET, "want_text": false, "cold": cold})
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

impl Journey<'_> {
    fn note(&mut self, name: &'static str, value: Option<f64>) {
        self.measured.figures.extend(value.map(|value| (name, value)));
    }

    fn ingest(&mut self) -> Result<()> {
        let mut lat_ms = Vec::new();
        for batch in self.workload.lines.chunks(BATCH_MESSAGES) {
            let answer = self.engine.ingest("batch", batch)?;
            lat_ms.push(needed(&answer, "/ms")?);
            if number(&answer, "/refused").is_some_and(|refused| refused > 0.0) {
                let why = answer.get("refusal").and_then(Value::as_str).unwrap_or("no reason");
                return failure(format!("messages were refused: {why}"));
            }
            self.input_bytes += float(batch.iter().map(String::len).sum());
        }
        let seconds = lat_ms.iter().sum::<f64>() / 1_000.0;
        self.note(f::INGEST_RATE, Some(float(self.workload.lines.len()) / seconds));
        self.note(f::INGEST_TENTHS, numbers::last_to_first_tenth(&lat_ms));
        self.note(f::INGEST_SLOWEST, numbers::largest(&lat_ms));
        Ok(())
    }

    /// Appends the next message of the conversation.
    fn append_one(&mut self) -> Result<()> {
        let next = self.workload.extra.get(self.appended..=self.appended);
        let next = next.ok_or_else(|| Failure("the workload is too short".to_owned()))?;
        self.appended += 1;
        self.engine.ingest("single", next)?;
        self.input_bytes += float(next.iter().map(String::len).sum());
        Ok(())
    }

    fn assemble(&mut self, warm: &'static str, cold: &'static str) -> Result<()> {
        // The first assembly of an instance is always cold, so its time is not used.
        self.engine.ask(&assembly(false))?;
        for (name, is_cold) in [(warm, false), (cold, true)] {
            let request = assembly(is_cold);
            let mut lat_ms = Vec::new();
            for _ in 0..self.workload.assemblies {
                self.append_one()?;
                let answer = self.engine.ask(&request)?;
                if answer.get("cold").and_then(Value::as_bool).unwrap_or(false) == is_cold {
                    lat_ms.push(needed(&answer, "/ms")?);
                }
            }
            self.note(name, numbers::percentile(&lat_ms, 50));
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let answer = self.engine.ask(&json!({
            "op": "compact",
            "token_budget": BUDGET,
            "force": false,
            "unbounded": true,
            "summarizer": self.workload.summarizer,
        }))?;
        self.note(f::COMPACT, Some(needed(&answer, "/ms")? / 1_000.0));
        let passes = answer.get("passes").and_then(Value::as_array);
        let time = |pass: &Value| number(pass, "/ms_excl_llm").or_else(|| number(pass, "/ms"));
        let lat_ms: Vec<f64> = passes.into_iter().flatten().filter_map(time).collect();
        self.note(f::PASSES, Some(float(lat_ms.len())));
        self.note(f::PASS, numbers::percentile(&lat_ms, 95));
        self.note(f::PASS_TENTHS, numbers::last_to_first_tenth(&lat_ms));
        let tokens = number(&answer, "/result/tokensAfter");
        let threshold = number(&answer, "/result/threshold");
        self.note(f::CONTEXT, tokens.zip(threshold).map(|(tokens, most)| tokens / most));
        Ok(())
    }

    fn search(&mut self) {
        let workload = self.workload;
        let queries = &workload.queries;
        for (name, mode, kind) in [
            (f::GREP_RARE, "full_text", &queries.rare),
            (f::GREP_FREQUENT, "full_text", &queries.frequent),
            (f::GREP_CJK, "full_text", &queries.cjk),
            (f::GREP_THREE, "full_text", &queries.three),
            (f::GREP_LITERAL, "regex", &queries.literal),
            (f::GREP_REGEX, "regex", &queries.regex),
        ] {
            let found: Result<Vec<f64>> = kind
                .iter()
                .map(|query| self.grep(query, mode).and_then(|answer| needed(&answer, "/ms")))
                .collect();
            match found {
                Ok(lat_ms) => self.note(name, numbers::percentile(&lat_ms, 95)),
                Err(error) => {
                    self.measured.missing.insert(name, error.to_string());
                }
            }
        }
        if let Some(share) = self.needles() {
            self.note(f::NEEDLES, Some(share));
        }
    }

    fn grep(&mut self, query: &str, mode: &str) -> Result<Value> {
        self.engine.ask(&json!({
            "op": "grep",
            "query": query,
            "mode": mode,
            "scope": "messages",
            "sort": "relevance",
            "limit": 20,
        }))
    }

    /// Returns the share of codes that a search finds in their message, from 0 to 1; `None`: the
    /// engine has no search, or the workload has no codes.
    fn needles(&mut self) -> Option<f64> {
        let needles = &self.workload.needles;
        let mut found = 0;
        for needle in needles {
            let answer = self.grep(&needle.code, "full_text").ok()?;
            let hits = answer.get("hits").and_then(Value::as_array)?;
            let hit = |hit: &Value| hit.get("id").and_then(Value::as_str) == Some(&needle.id);
            found += usize::from(hits.iter().any(hit));
        }
        (!needles.is_empty()).then(|| float(found) / float(needles.len()))
    }

    fn size(&mut self) -> Result<()> {
        let answer = self.engine.ask(&json!({"op": "stat"}))?;
        self.note(f::DEPTH, number(&answer, "/max_depth"));
        self.note(f::PROCESS, number(&answer, "/process_bytes_peak").map(|b| b / MEGABYTE));
        self.note(f::LINEAR, number(&answer, "/linear_memory_bytes").map(|b| b / MEGABYTE));
        self.note(f::STORE, number(&answer, "/bytes/total").map(|b| b / self.input_bytes));
        let file = self.engine.ask(&json!({"op": "checkpoint"}))?;
        self.note(f::FILE, number(&file, "/db_bytes").map(|bytes| bytes / self.input_bytes));
        self.measured.bytes = answer.get("bytes").filter(|bytes| bytes.is_object()).cloned();
        Ok(())
    }

    fn check(&mut self) {
        match self.engine.ask(&json!({"op": "check"})) {
            Ok(answer) => {
                let sound = answer.get("sound").and_then(Value::as_bool);
                self.note(f::CHECK, sound.map(|sound| f64::from(u8::from(sound))));
            }
            Err(error) => {
                self.measured.missing.insert(f::CHECK, error.to_string());
            }
        }
    }

    /// Reads messages by their ids and compares each with the original.
    fn look_up(&mut self) -> Result<()> {
        let lines = &self.workload.lines;
        let step = (lines.len() / LOOKED_UP).max(1);
        let (mut asked, mut equal) = (0, 0);
        for line in lines.iter().step_by(step) {
            let message: Value = serde_json::from_str(line).unwrap_or_default();
            let answer = self.engine.ask(&json!({"op": "get", "id": message.get("id")}))?;
            asked += 1;
            equal += usize::from(is_same(&message, &answer));
        }
        self.note(f::LOSSLESS, Some(float(equal) / float(asked)));
        Ok(())
    }
}

/// Returns whether an answer has the role and the parts of a message.
fn is_same(message: &Value, answer: &Value) -> bool {
    let parts = |value: &Value| value.get("parts").and_then(Value::as_array).cloned();
    let (wanted, found) = (parts(message).unwrap_or_default(), parts(answer).unwrap_or_default());
    let field = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
    let same = |(wanted, found): (&Value, &Value)| {
        [
            ("type", "part_type"),
            ("text", "text_content"),
            ("name", "tool_name"),
            ("input", "tool_input"),
            ("output", "tool_output"),
        ]
        .iter()
        .all(|(name, of_answer)| field(wanted, name) == field(found, of_answer))
    };
    field(message, "role") == field(answer, "role")
        && wanted.len() == found.len()
        && wanted.iter().zip(&found).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_came_back_otherwise_is_noticed() {
        let message = json!({"role": "user", "parts": [{"type": "text", "text": "a"}]});
        let part = |text: &str| json!({"part_type": "text", "text_content": text});
        assert!(is_same(&message, &json!({"role": "user", "parts": [part("a")]})));
        for parts in [json!([part("b")]), json!([]), json!([part("a"), part("a")])] {
            assert!(!is_same(&message, &json!({"role": "user", "parts": parts})), "{parts}");
        }
        assert!(!is_same(&message, &json!({"role": "tool", "parts": [part("a")]})));
    }
}
