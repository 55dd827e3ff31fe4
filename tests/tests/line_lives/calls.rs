//! Calls of the engine, as the hosts of a life make them.

use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::types::api::{AppendMode, AppendOptions, AssembleOptions, Dialect};
use serde_json::{Value, json};

use crate::{CHAT, Life};

impl Life {
    pub(crate) fn append(
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

    /// Stores a list as a host with long lists does: by the plan of `reconcile`.
    pub(crate) fn ingest(
        &mut self,
        dialect: Dialect,
        list: &[String],
        seen: Option<u64>,
    ) -> Result<u64, String> {
        let entries = self.engine.identify(dialect, list).map_err(|error| error.to_string())?;
        let entries: Value = serde_json::from_str(&entries).unwrap();
        let transcript = json!({"entries": entries, "seq_seen": seen}).to_string();
        self.store.begin_call();
        let plan = self
            .engine
            .reconcile(&mut self.store, CHAT, &transcript, self.now)
            .map_err(|error| error.to_string())?;
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let warnings = plan["warnings"].as_array().unwrap();
        self.notices.extend(warnings.iter().map(|it| it.as_str().unwrap().to_owned()));
        let ranges = plan["missing_ranges"].as_array().unwrap().clone();
        let mut line = plan["line"].clone();
        let mut revision = plan["revision"].as_u64().unwrap();
        let mut seq_seen = 0;
        let count = ranges.len().max(1);
        for at in 0..count {
            let (batch, [is_revision, is_system]) = match ranges.get(at) {
                Some(range) => {
                    let [from, to] = ["index_first", "index_last"]
                        .map(|key| range[key].as_u64().unwrap() as usize);
                    (&list[from..=to], ["revision", "system"].map(|key| range[key] == true))
                }
                None => (&list[..0], [false; 2]),
            };
            let mut part = json!({"seq_seen": line["seq_seen"], "revision": is_revision,
                "system": is_system});
            for key in ["fork", "grown", "restored", "ends_doubt"] {
                if let Some(value) = line.get(key) {
                    part[key] = value.clone();
                }
            }
            if !is_system && !is_revision && at < ranges.len() {
                part["branch"] = line["branch"].take();
            }
            if line["start"] == true && !is_system {
                part["start"] = json!(true);
                line["start"] = json!(false);
            }
            if at + 1 == count {
                part["list_hash"] = line["list_hash"].clone();
                part["count"] = json!(batch.len());
            }
            for key in ["fork", "grown", "restored", "ends_doubt"] {
                line.as_object_mut().unwrap().remove(key);
            }
            let extra = json!({"revision": revision, "line": part}).to_string();
            let options = AppendOptions {
                append_mode: AppendMode::New,
                extra_json: Some(extra),
                ..AppendOptions::default()
            };
            self.store.begin_call();
            let receipt = self
                .engine
                .append(&mut self.store, CHAT, dialect, batch, &options, self.now)
                .map_err(|error| error.to_string())?;
            revision = receipt.revision;
            seq_seen = receipt.seq_seen;
        }
        Ok(seq_seen)
    }

    pub(crate) fn stored(&mut self) -> Vec<String> {
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

    pub(crate) fn context(&mut self, dialect: Dialect) -> Vec<String> {
        let options = AssembleOptions::default();
        self.store.begin_call();
        let assembled = self
            .engine
            .assemble(&mut self.store, CHAT, 4_000_000, dialect, &options, self.now)
            .expect("a context");
        let messages: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
        messages.iter().map(Value::to_string).collect()
    }

    /// Goes on with a copy of the conversation.
    pub(crate) fn copy_store(&mut self) -> Result<(), String> {
        self.store.begin_call();
        let page = self.engine.export_page(&mut self.store, CHAT, None, 1 << 20);
        let page: Value = serde_json::from_str(&page.map_err(|error| error.to_string())?).unwrap();
        let lines = page["lines"].as_array().unwrap().iter();
        let lines: Vec<String> = lines.map(|line| line.as_str().unwrap().to_owned()).collect();
        self.store.begin_call();
        let digest = self.engine.digest(&mut self.store, None, true).expect("a digest");
        (self.engine, self.store) = (Engine::new(), ModelStore::new());
        let (mut at, mut cursor) = (0, None::<String>);
        loop {
            self.store.begin_call();
            let answer = self
                .engine
                .import_page(&mut self.store, &lines[at..], cursor.as_deref(), self.now)
                .map_err(|error| error.to_string())?;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            at += answer["consumed"].as_u64().unwrap() as usize;
            if answer["rewind"] == true {
                at = 0;
            }
            match answer["cursor"].as_str() {
                Some(next) => cursor = Some(next.into()),
                None => break,
            }
        }
        self.store.begin_call();
        let copied = self.engine.digest(&mut self.store, None, true).expect("a digest");
        self.log.push("  copied".into());
        if copied == digest { Ok(()) } else { Err("the copy has another digest".into()) }
    }
}
