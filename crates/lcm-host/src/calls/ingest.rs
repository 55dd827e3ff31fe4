//! Methods for `setup.version`, and for the interface `ingest`: append, upload, identities and
//! comparison of transcripts.

use serde_json::{Value, json};

use crate::{
    error::Result,
    ingestion::{self, Receipt},
    lcm::{CONFLICT_RETRIES_MAX, CallResult, Lcm},
    record::{append_options, dialect_name},
    types::Dialect,
};

/// Returns the options with the member `"repeat": true` in `extra_json`.
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
    /// Returns the version of the component.
    pub fn version(&self) -> Result<String> {
        self.call(
            "setup.version",
            || json!({}),
            |bindings, store| bindings.lcm_engine_setup().call_version(store).map(Ok),
        )
    }

    /// Stores messages in one commit, each one JSON text of `dialect`. [`Lcm::ingest`] takes any
    /// number of messages.
    ///
    /// After a commit of unknown outcome this method repeats the call once with `{"repeat": true}`
    /// in `extra_json`. The component then skips messages that the first call stored. If the second
    /// call fails, too, the caller may repeat it in the same way.
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

    /// Appends, and repeats the call at most `repeats_max` times after conflicts; never after an
    /// unknown outcome.
    fn append_known(
        &self,
        conversation: &str,
        dialect: Dialect,
        messages: &[String],
        options: &ingestion::Options,
        now: u64,
        repeats_max: u32,
    ) -> CallResult<Receipt> {
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

    /// Stores a piece of a message that is too large for `append`, and returns the offset of the
    /// next piece in bytes. A repeated piece changes nothing. `extra_json` may have the size of the
    /// whole text, and the family of the later `append`.
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

    /// Returns the identities of messages, as a JSON array of
    /// [`MessageIdentity`](crate::shapes::MessageIdentity). Reads no store.
    pub fn identify(&self, dialect: Dialect, messages: &[String]) -> Result<String> {
        self.call(
            "ingest.identify",
            || json!({"dialect": dialect_name(dialect), "messages": messages}),
            |bindings, store| bindings.lcm_engine_ingest().call_identify(store, dialect, messages),
        )
    }

    /// Compares a whole transcript with the stored conversation, and returns the ranges of entries
    /// that are not stored, as JSON. `transcript_json` is a
    /// [`TranscriptDocument`](crate::shapes::TranscriptDocument) with the identities that
    /// [`Lcm::identify`] returned.
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
