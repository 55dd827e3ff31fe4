//! `setup` and `ingest`: the version, and messages in.

use serde_json::{Value, json};

use crate::{
    error::Result,
    ingestion::{self, Receipt},
    lcm::{CONFLICT_RETRIES_MAX, Failure, Lcm},
    record::{append_options, dialect_name},
    types::Dialect,
};

/// `options` with `{"repeat": true}` added to what `extra_json` holds.
fn repeating(options: &ingestion::Options) -> ingestion::Options {
    let extra = options.extra_json.as_deref().unwrap_or("{}");
    let mut extra: Value = serde_json::from_str(extra).unwrap_or_else(|_| json!({}));
    if let Some(extra) = extra.as_object_mut() {
        extra.insert("repeat".to_owned(), Value::Bool(true));
    }
    ingestion::Options { extra_json: Some(extra.to_string()), ..options.clone() }
}

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
            self.append_known(conversation, dialect, messages, options, now, CONFLICT_RETRIES_MAX)
        };
        match attempt(options) {
            Err(failure) if failure.is_unknown() => attempt(&repeating(options)),
            other => other,
        }
        .map_err(|failure| failure.error)
    }

    /// As [`Lcm::append`], repeated so often after a conflict and never after an unknown outcome.
    fn append_known(
        &self,
        conversation: &str,
        dialect: Dialect,
        messages: &[String],
        options: &ingestion::Options,
        now: u64,
        repeats_max: u32,
    ) -> std::result::Result<Receipt, Failure> {
        self.call_known(
            "ingest.append",
            repeats_max,
            || {
                json!({"conversation": conversation, "dialect": dialect_name(dialect),
                    "messages": messages, "options": append_options(options), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_ingest().call_append(
                    store,
                    conversation,
                    dialect,
                    messages,
                    options,
                    now,
                )
            },
        )
    }

    /// Stores a piece of one message too large for `append`; returns the next offset in bytes.
    /// Idempotent by offset. `extra_json` says what is known of the whole text: its size, and the
    /// family that `append` will be told.
    pub fn stage(
        &self,
        conversation: &str,
        upload: &str,
        offset: u64,
        text: &str,
        extra_json: Option<&str>,
        now: u64,
    ) -> Result<u64> {
        self.call(
            "ingest.stage",
            || {
                json!({"conversation": conversation, "upload": upload, "offset": offset,
                    "text": text, "extra_json": extra_json, "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_ingest().call_stage(
                    store,
                    conversation,
                    upload,
                    offset,
                    text,
                    extra_json,
                    now,
                )
            },
        )
    }

    /// Identities of messages, as the JSON array that `wit/ingest.wit` describes. Reads nothing.
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        self.call(
            "ingest.identify",
            || json!({"dialect": dialect_name(dialect), "messages": messages}),
            |bindings, store| bindings.lcm_engine_ingest().call_identify(store, dialect, messages),
        )
    }

    /// Which entries of a whole transcript are not stored, as JSON. `transcript_json` is
    /// `{"entries": [...]}` with the objects of [`Lcm::identify`], and what `wit/ingest.wit` has
    /// beside.
    pub fn reconcile(&self, conversation: &str, transcript_json: &str, now: u64) -> Result<String> {
        self.call(
            "ingest.reconcile",
            || {
                json!({"conversation": conversation, "transcript_json": transcript_json,
                    "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_ingest().call_reconcile(
                    store,
                    conversation,
                    transcript_json,
                    now,
                )
            },
        )
    }
}
