//! Readers that follow cursors to the end.
//!
//! In: a range, a summary or a list. Out: the whole result, or one page at a time to a callback, so
//! that memory stays small. The component makes the pages.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    clock::Cancel,
    error::{Error, Result},
    json as text,
    lcm::Lcm,
    shapes::{GrantCharge, StoreDigest},
};

/// Bytes of one page.
const PAGE_BYTES_MAX: u32 = 1 << 20;

/// Options of an expansion.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExpandOptions {
    /// Levels of summaries below the given summary; `None`: the component's default.
    pub depth_max: Option<u32>,
    /// Whether messages are returned as well.
    pub include_messages: bool,
    /// Most tokens of one page; `None`: everything.
    pub tokens_max: Option<u32>,
    /// `cursor` of an earlier page; `None`: the beginning.
    pub cursor: Option<String>,
    /// Id of the grant to read with; `None`: no grant limits the reads.
    pub grant: Option<String>,
}

impl GrantCharge {
    /// Adds the charge of the next page.
    fn add(&mut self, next: Self) {
        let tokens = self.tokens.saturating_add(next.tokens);
        *self = Self { tokens, ..next };
    }
}

/// Sources of a summary.
#[derive(Debug, Deserialize)]
pub struct Expanded {
    /// Id of the expanded summary.
    pub id: String,
    /// Summaries as the component wrote them: JSON objects.
    #[serde(default)]
    pub summaries: Vec<Box<RawValue>>,
    /// Messages as the component wrote them: JSON objects.
    #[serde(default)]
    pub messages: Vec<Box<RawValue>>,
    /// Tokens of the result.
    pub tokens: u64,
    /// Whether the result is incomplete.
    pub truncated: bool,
    /// Cursor of the rest; `None`: the result is complete.
    pub cursor: Option<String>,
    /// Charge to the grant.
    pub grant: Option<GrantCharge>,
}

/// Result of a check.
#[derive(Debug, Deserialize)]
pub struct Checked {
    /// Whether there are no findings.
    pub ok: bool,
    /// The checks as the component wrote them: JSON objects.
    #[serde(default)]
    pub checks: Vec<Box<RawValue>>,
    /// Counts, as the component wrote them.
    pub metrics: Option<Box<RawValue>>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Box<RawValue>>,
    cursor: Option<String>,
}

/// Rejects a repeated cursor, which would never end.
fn moved(function: &str, before: Option<&String>, after: Option<&String>) -> Result<()> {
    if after.is_some() && before == after {
        return Err(Error::internal(format!("`{function}` returned the same cursor twice")));
    }
    Ok(())
}

impl Lcm {
    /// Reads every item of a list as JSON objects, from `cursor` on.
    ///
    /// # Errors
    ///
    /// Errors of the component, and `cancelled`.
    pub fn list_all(
        &self,
        kind: &str,
        conversation: Option<&str>,
        cursor: Option<String>,
        cancel: &Cancel,
        each: &mut dyn FnMut(&RawValue) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = cursor;
        loop {
            cancel.check()?;
            let page = self.listing(kind, conversation, cursor.as_deref(), PAGE_BYTES_MAX)?;
            let page: List = text::read("admin.listing", &page)?;
            for item in &page.items {
                each(item)?;
            }
            moved("admin.listing", cursor.as_ref(), page.cursor.as_ref())?;
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Reads the original texts of the messages of a range, both ends included, in order.
    ///
    /// # Errors
    ///
    /// Errors of the component, errors of `each`, and `cancelled`.
    pub fn messages_all(
        &self,
        conversation: &str,
        seq_first: u64,
        seq_last: u64,
        cancel: &Cancel,
        each: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let mut seq = seq_first;
        while seq <= seq_last {
            cancel.check()?;
            let page = self.messages(conversation, seq, seq_last, PAGE_BYTES_MAX)?;
            if page.is_empty() {
                return Ok(());
            }
            for message in &page {
                each(message)?;
                seq = seq.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Reads the sources of a summary: one page with `tokens_max`, otherwise everything.
    ///
    /// Reads with a grant are charged. After a failure behind the first page the pages so far are
    /// returned, with `cursor` at the failed page.
    ///
    /// # Errors
    ///
    /// Errors of the component, and `cancelled`.
    pub fn expand_all(
        &self,
        conversation: &str,
        id: &str,
        options: &ExpandOptions,
        now: u64,
        cancel: &Cancel,
    ) -> Result<Expanded> {
        let mut whole: Option<Expanded> = None;
        let mut cursor = options.cursor.clone();
        loop {
            let arguments = expand_arguments(options, cursor.as_deref());
            let page = cancel.check().and_then(|()| {
                let grant = options.grant.as_deref();
                let page = self.expand(conversation, id, &arguments, grant, now)?;
                let page: Expanded = text::read("recall.expand", &page)?;
                moved("recall.expand", cursor.as_ref(), page.cursor.as_ref()).map(|()| page)
            });
            let page = match page {
                Ok(page) => page,
                Err(_) if options.grant.is_some() && whole.is_some() => break,
                Err(error) => return Err(error),
            };
            let whole = match &mut whole {
                None => whole.insert(page),
                Some(whole) => {
                    whole.summaries.extend(page.summaries);
                    whole.messages.extend(page.messages);
                    whole.tokens = whole.tokens.saturating_add(page.tokens);
                    whole.truncated = page.truncated;
                    whole.cursor = page.cursor;
                    if let (Some(before), Some(after)) = (&mut whole.grant, page.grant) {
                        before.add(after);
                    }
                    whole
                }
            };
            cursor.clone_from(&whole.cursor);
            let is_spent = whole.grant.is_some_and(|grant| grant.truncated);
            if options.tokens_max.is_some() || is_spent || cursor.is_none() {
                break;
            }
        }
        whole.ok_or_else(|| Error::internal("`recall.expand` returned no page"))
    }

    /// Checks a conversation to the end.
    ///
    /// # Errors
    ///
    /// Errors of the component, and `cancelled`. Findings are not an error.
    pub fn check_all(&self, conversation: &str, cancel: &Cancel) -> Result<Checked> {
        let mut cursor: Option<String> = None;
        loop {
            cancel.check()?;
            let page = self.check(conversation, cursor.as_deref())?;
            let page: Checked = text::read("admin.check", &page)?;
            moved("admin.check", cursor.as_ref(), page.cursor.as_ref())?;
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(page),
            }
        }
    }

    /// Returns the SHA-256 of the stored bytes or of the logical content, as 64 hex digits.
    ///
    /// # Errors
    ///
    /// Errors of the component, and `cancelled`.
    pub fn digest_all(&self, logical: bool, cancel: &Cancel) -> Result<String> {
        let missing = || Error::internal("`admin.digest` returned no digest");
        let mut cursor: Option<String> = None;
        loop {
            cancel.check()?;
            let page = self.digest(cursor.as_deref(), logical)?;
            let page: StoreDigest = text::read("admin.digest", &page)?;
            moved("admin.digest", cursor.as_ref(), page.cursor.as_ref())?;
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return page.sha256.ok_or_else(missing),
            }
        }
    }
}

fn expand_arguments(options: &ExpandOptions, cursor: Option<&str>) -> String {
    let mut arguments = json!({ "include_messages": options.include_messages });
    let mut add = |key: &str, value: Option<Value>| {
        if let (Some(arguments), Some(value)) = (arguments.as_object_mut(), value) {
            arguments.insert(key.to_owned(), value);
        }
    };
    add("depth_max", options.depth_max.map(Value::from));
    add("tokens_max", options.tokens_max.map(Value::from));
    add("cursor", cursor.map(Value::from));
    arguments.to_string()
}
