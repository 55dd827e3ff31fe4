//! Calls of the engine, as the hosts of a life make them.

use lcm_core::Engine;
use lcm_testing::{
    ModelStore,
    transcripts::{PlannedList, export_lines, import_lines},
};
use lcm_text::types::{
    api::{AppendMode, AppendOptions, ApplyOptions, ApplyOutcome, AssembleOptions, Dialect},
    model::CompletionResult,
};
use serde_json::{Value, json};

use crate::{CHAT, Life};

impl Life {
    pub(crate) fn append_list(
        &mut self,
        dialect: Dialect,
        list: &[String],
        seen: Option<u64>,
    ) -> Result<u64, String> {
        let extra = json!({ "seq_seen": seen }).to_string();
        let options = AppendOptions {
            append_mode: AppendMode::Transcript,
            extra_json: Some(extra),
            ..AppendOptions::default()
        };
        self.store.begin_call();
        let receipt = self
            .engine
            .append(&mut self.store, CHAT, dialect, list, &options, self.now)
            .map_err(|error| error.to_string())?;
        self.notices.extend(receipt.warnings);
        Ok(receipt.seq_seen)
    }

    /// If the engine knows the beginning of a list by its texts, checks that it stores the rest as
    /// that of an equal list of which it knows no text. The life goes on as before.
    pub(crate) fn check_known_beginning(
        &mut self,
        dialect: Dialect,
        list: &[String],
        seen: Option<u64>,
    ) -> Result<(), String> {
        let before = self.store.clone();
        let continued =
            self.append_copy(dialect, list, &json!({"seq_seen": seen, "continues": true}));
        self.store = before.clone();
        let Ok(continued) = continued else { return Ok(()) };
        self.known_beginnings += 1;
        // The spaces make other texts of the same messages.
        let spaced: Vec<String> = list.iter().map(|message| format!(" {message}")).collect();
        let compared = self.append_copy(dialect, &spaced, &json!({ "seq_seen": seen }));
        self.store = before;
        let mut compared = compared?;
        // Ids of other messages in the beginning were announced when these messages were stored.
        let is_taken = |it: &Value| it.as_str().is_some_and(|it| it.starts_with("id-taken: "));
        let warnings = compared["warnings"].as_array_mut().unwrap();
        warnings.retain(|it| !is_taken(it));
        let keys = ["counts", "seqs", "warnings", "stored", "context"];
        match keys.iter().find(|key| continued[**key] != compared[**key]) {
            None => Ok(()),
            Some(key) => Err(format!(
                "known by its texts, the list has {key} {}, compared {}",
                continued[*key], compared[*key]
            )),
        }
    }

    /// Appends a list, and describes the receipt, the stored messages and the context.
    fn append_copy(
        &mut self,
        dialect: Dialect,
        list: &[String],
        extra: &Value,
    ) -> Result<Value, String> {
        let options =
            AppendOptions { extra_json: Some(extra.to_string()), ..AppendOptions::default() };
        self.store.begin_call();
        let receipt = self
            .engine
            .append(&mut self.store, CHAT, dialect, list, &options, self.now)
            .map_err(|error| error.to_string())?;
        let stored: Vec<Value> =
            self.read_stored().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        Ok(json!({"seqs": [receipt.seq_first, receipt.seq_last, Some(receipt.seq_seen)],
            "counts": [receipt.ingested, receipt.skipped], "warnings": receipt.warnings,
            "stored": stored, "context": self.assemble_texts(Dialect::Lcm)}))
    }

    /// Stores a list as a host with long lists does: by the plan of `reconcile`.
    pub(crate) fn ingest_list(
        &mut self,
        dialect: Dialect,
        list: &[String],
        seen: Option<u64>,
    ) -> Result<u64, String> {
        let list = PlannedList {
            conversation: CHAT,
            dialect,
            messages: list,
            seq_seen: seen,
            now: self.now,
        };
        let stored = list.store_list(&mut self.engine, &mut self.store);
        let stored = stored.map_err(|error| error.to_string())?;
        self.notices.extend(stored.warnings);
        Ok(stored.seq_seen)
    }

    pub(crate) fn read_stored(&mut self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        loop {
            self.store.begin_call();
            let first = out.len() as u64 + 1;
            let page = self
                .engine
                .messages(&mut self.store, CHAT, first, u64::MAX >> 12, 1 << 20)
                .expect("messages");
            if page.is_empty() {
                return out;
            }
            out.extend(page);
        }
    }

    pub(crate) fn assemble_texts(&mut self, dialect: Dialect) -> Vec<String> {
        let options = AssembleOptions::default();
        self.store.begin_call();
        let assembled = self
            .engine
            .assemble(&mut self.store, CHAT, 4_000_000, dialect, &options, self.now)
            .expect("a context");
        let messages: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
        messages.iter().map(Value::to_string).collect()
    }

    pub(crate) fn apply_answer(
        &mut self,
        request_id: &str,
        answer: &CompletionResult,
        options: &ApplyOptions,
    ) -> Result<ApplyOutcome, String> {
        self.store.begin_call();
        let outcome =
            self.engine.apply(&mut self.store, CHAT, request_id, answer, options, self.now);
        outcome.map_err(|error| format!("apply: {error}"))
    }

    /// Goes on with a copy of the conversation.
    pub(crate) fn copy_store(&mut self) -> Result<(), String> {
        let lines = export_lines(&mut self.engine, &mut self.store, CHAT);
        self.store.begin_call();
        let digest = self.engine.digest(&mut self.store, None, true).expect("a digest");
        (self.engine, self.store) = (Engine::new(), ModelStore::new());
        self.configure_engine();
        import_lines(&mut self.engine, &mut self.store, (&lines, usize::MAX), self.now);
        self.store.begin_call();
        let copied = self.engine.digest(&mut self.store, None, true).expect("a digest");
        self.log.push("  copied".into());
        if copied == digest { Ok(()) } else { Err("the copy has another digest".into()) }
    }
}
