//! Methods for the interface `admin`: status, lists, checks, digests, exports, imports and verbs.
//!
//! `cursor` is that of the page before; `None`: the first page.

use serde_json::json;

use crate::{error::Result, lcm::Lcm};

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Returns counts and sizes of a conversation as JSON; `None`: of the whole store.
    pub fn status(&self, conversation: Option<&str>, now: u64) -> Result<String> {
        self.call(
            "admin.status",
            || json!({"conversation": conversation, "now": now}),
            |bindings, store| bindings.lcm_engine_admin().call_status(store, conversation, now),
        )
    }

    /// Returns one page of a list, about `bytes_max` bytes, as JSON `{items, cursor}`. `kind` is
    /// `conversations`, `deletions`, `summaries`, `messages` or `grants`. `conversation` is `None`
    /// only for the first two. [`Lcm::list_all`] reads all pages.
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
                bindings.lcm_engine_admin().call_listing(
                    store,
                    kind,
                    conversation,
                    cursor,
                    bytes_max,
                )
            },
        )
    }

    /// Returns one page of a check of a conversation, as JSON. [`Lcm::check_all`] reads all pages.
    pub fn check(&self, conversation: &str, cursor: Option<&str>) -> Result<String> {
        self.call(
            "admin.check",
            || json!({"conversation": conversation, "cursor": cursor}),
            |bindings, store| bindings.lcm_engine_admin().call_check(store, conversation, cursor),
        )
    }

    /// Returns one page of the digest of the store, as JSON: of its keys and values, or with
    /// `logical` of its messages, summaries and contexts. [`Lcm::digest_all`] reads all pages.
    pub fn digest(&self, cursor: Option<&str>, logical: bool) -> Result<String> {
        self.call(
            "admin.digest",
            || json!({"cursor": cursor, "logical": logical}),
            |bindings, store| bindings.lcm_engine_admin().call_digest(store, cursor, logical),
        )
    }

    /// Returns one page of an export as JSON; an empty `conversation` exports all conversations.
    /// [`Lcm::export_all`] reads all pages.
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
                bindings.lcm_engine_admin().call_export_page(store, conversation, cursor, bytes_max)
            },
        )
    }

    /// Imports lines of an export, and returns the progress as JSON. [`Lcm::import_all`] imports a
    /// whole export.
    pub fn import_page(&self, lines: &[String], cursor: Option<&str>, now: u64) -> Result<String> {
        self.call(
            "admin.import-page",
            || json!({"lines": lines, "cursor": cursor, "now": now}),
            |bindings, store| {
                bindings.lcm_engine_admin().call_import_page(store, lines, cursor, now)
            },
        )
    }

    /// Runs the verb of this name on a conversation; arguments and result are JSON.
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
                bindings.lcm_engine_admin().call_call(
                    store,
                    conversation,
                    verb,
                    arguments_json,
                    now,
                )
            },
        )
    }
}
