//! Methods for the interface `recall`: search, vectors, descriptions, expansion, original messages,
//! grants and questions.
//!
//! `grant` is the id of the grant that limits the read; `None`: nothing limits the read.

use serde_json::json;

use super::results;
use crate::{error::Result, lcm::Lcm, types::CompletionResult};

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Searches a conversation with its family; with `only` in `query_json` the conversation alone,
    /// with `all_conversations` the whole store. Query and answer are JSON.
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

    /// Attaches vectors to messages and summaries, or deletes them; arguments and result are JSON.
    pub fn embed(&self, conversation: &str, vectors_json: &str) -> Result<String> {
        self.call(
            "recall.embed",
            || json!({"conversation": conversation, "vectors_json": vectors_json}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_embed(store, conversation, vectors_json)
            },
        )
    }

    /// Describes a summary, message, file, conversation or version of the system messages by its
    /// id, as JSON.
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
                bindings.lcm_engine_recall().call_describe(
                    store,
                    conversation,
                    id,
                    options_json,
                    grant,
                    now,
                )
            },
        )
    }

    /// Returns one page of the sources of a summary, as JSON. [`Lcm::expand_all`] reads all pages.
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
                bindings.lcm_engine_recall().call_expand(
                    store,
                    conversation,
                    id,
                    options_json,
                    grant,
                    now,
                )
            },
        )
    }

    /// Returns original texts of a range of messages, both ends included, from its first message
    /// on. The texts have at most `bytes_max` bytes, but at least one message is returned if one
    /// exists.
    pub fn messages(
        &self,
        conversation: &str,
        seq_first: u64,
        seq_last: u64,
        bytes_max: u32,
    ) -> Result<Vec<String>> {
        self.call(
            "recall.messages",
            || {
                json!({"conversation": conversation, "seq_first": seq_first, "seq_last": seq_last,
                    "bytes_max": bytes_max})
            },
            |bindings, store| {
                bindings.lcm_engine_recall().call_messages(
                    store,
                    conversation,
                    seq_first,
                    seq_last,
                    bytes_max,
                )
            },
        )
    }

    /// Creates a grant, limited read access for a sub-agent; arguments and result are JSON.
    pub fn grant(&self, conversation: &str, grant_json: &str, now: u64) -> Result<String> {
        self.call(
            "recall.grant",
            || json!({"conversation": conversation, "grant_json": grant_json, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_grant(store, conversation, grant_json, now)
            },
        )
    }

    /// Revokes a grant and all grants that inherit from it; the next read on them is refused.
    pub fn revoke(&self, conversation: &str, grant: &str, now: u64) -> Result<()> {
        self.call(
            "recall.revoke",
            || json!({"conversation": conversation, "grant": grant, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_revoke(store, conversation, grant, now)
            },
        )
    }

    /// Opens a question; arguments and result are JSON. The result has a completion request, or
    /// already the end of the question.
    pub fn ask_plan(&self, conversation: &str, question_json: &str, now: u64) -> Result<String> {
        self.call(
            "recall.ask-plan",
            || json!({"conversation": conversation, "question_json": question_json, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_recall().call_ask_plan(store, conversation, question_json, now)
            },
        )
    }

    /// Continues a question with the model's answers, one for each request, in order. The result is
    /// as in [`Lcm::ask_plan`].
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
                bindings.lcm_engine_recall().call_ask_apply(
                    store,
                    conversation,
                    continuation,
                    answers,
                    now,
                )
            },
        )
    }

    /// Answers a question with the model of this handle. Other calls of the handle wait until the
    /// question ends.
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
