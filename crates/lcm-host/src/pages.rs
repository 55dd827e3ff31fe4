//! Reads all pages of a list, a range of messages, an expansion, a check or a digest.
//!
//! In: what to read, and for lists and messages a callback. Out: the whole result, or one item at a
//! time to the callback, so that memory stays small. The component makes the pages.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    clock::Cancel,
    error::{Error, Result},
    json as text,
    lcm::Lcm,
    shapes::{GrantCharge, StoreDigest},
};

/// Bytes to request for one page.
const PAGE_BYTES_MAX: u32 = 1 << 20;

/// Options of an expansion.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExpandOptions {
    /// Most levels of sources below the given summary; the messages of a leaf are a level, too.
    /// `None`: one, or all with `include_messages`. A grant may allow fewer.
    pub depth_max: Option<u32>,
    /// Whether the messages of leaves are returned, as far as `depth_max` reaches. Without them a
    /// leaf lists nothing.
    pub include_messages: bool,
    /// Most tokens of the one page to read; `None`: all pages are read.
    pub tokens_max: Option<u32>,
    /// `cursor` of the page before; `None`: reading starts at the beginning.
    pub cursor: Option<String>,
    /// Id of the grant to read with; `None`: no grant limits the reads.
    pub grant: Option<String>,
}

impl GrantCharge {
    /// Adds the tokens of the next page; the other fields become those of the next page.
    fn add(&mut self, next: Self) {
        let tokens = self.tokens.saturating_add(next.tokens);
        *self = Self { tokens, ..next };
    }
}

/// Sources of a summary: of one page, or of all pages together.
#[derive(Debug, Deserialize)]
pub struct Expanded {
    /// Id of the expanded summary.
    pub id: String,
    /// Source summaries, each a JSON object as the component wrote it.
    #[serde(default)]
    pub summaries: Vec<Box<RawValue>>,
    /// Source messages, each a JSON object as the component wrote it.
    #[serde(default)]
    pub messages: Vec<Box<RawValue>>,
    /// Estimated tokens of these summaries and messages.
    pub tokens: u64,
    /// Whether more sources follow.
    pub truncated: bool,
    /// Cursor of the next page; `None`: no page follows, or the next source alone is over the token
    /// limit.
    pub cursor: Option<String>,
    /// Tokens spent of the grant; `None`: the read used no grant.
    pub grant: Option<GrantCharge>,
}

/// Result of a check.
#[derive(Debug, Deserialize)]
pub struct Checked {
    /// Whether every check passed.
    pub ok: bool,
    /// Outcome of each check, a JSON object as the component wrote it.
    #[serde(default)]
    pub checks: Vec<Box<RawValue>>,
    /// Counts of what was checked, a JSON object as the component wrote it; `None`: not reported.
    pub metrics: Option<Box<RawValue>>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Box<RawValue>>,
    cursor: Option<String>,
}

/// Fails if the next cursor equals the cursor of the call, because reading would never end.
fn moved(function: &str, before: Option<&String>, after: Option<&String>) -> Result<()> {
    if after.is_some() && before == after {
        return Err(Error::internal(format!("`{function}` returned the same cursor twice")));
    }
    Ok(())
}

impl Lcm {
    /// Reads the items of a list from `cursor` on, and passes each to `each` as a JSON object.
    /// `cursor` is `None`: from the beginning.
    ///
    /// # Errors
    ///
    /// Errors of the component, errors of `each`, and `cancelled`.
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

    /// Reads the original texts of a range of messages, both ends included, and passes each to
    /// `each`, in order. Seqs after the newest message are ignored.
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

    /// Reads the sources of a summary: one page with `tokens_max`, otherwise all pages.
    ///
    /// With a grant, reading also ends when the grant has no tokens left. If a page after the first
    /// fails with a grant, the pages before are returned, because the grant was charged for them.
    /// `cursor` is then that of the failed page.
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

    /// Checks a conversation, and returns the last page of the check; the component of this version
    /// makes one page.
    ///
    /// # Errors
    ///
    /// Errors of the component, and `cancelled`. A failed check is no error.
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

    /// Returns a SHA-256 of the whole store as 64 hex digits: of its keys and values, or with
    /// `logical` of its messages, summaries and contexts.
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
