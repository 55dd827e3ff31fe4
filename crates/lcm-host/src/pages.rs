//! Readers that follow cursors to the end.
//!
//! In: what to read. Out: the whole result, or one page at a time to a callback, so that nothing
//! large has to be held. The pages themselves are the component's.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    clock::Cancel,
    error::{Error, Result},
    json as text,
    lcm::Lcm,
    shapes::GrantCharge,
};

/// Bytes of one page.
const PAGE_BYTES_MAX: u32 = 1 << 20;

/// What to expand, and how far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExpandOptions {
    /// Levels of summaries below the given one; `None`: the component's default.
    pub depth_max: Option<u32>,
    /// Whether messages are returned, too.
    pub include_messages: bool,
    /// Tokens of one page; `None`: everything.
    pub tokens_max: Option<u32>,
    /// The `cursor` of an earlier page; `None`: from the beginning.
    pub cursor: Option<String>,
    /// Id of the grant on which it is read; `None`: everything may be.
    pub grant: Option<String>,
}

impl GrantCharge {
    /// Adds what the next page took.
    fn add(&mut self, next: Self) {
        let tokens = self.tokens.saturating_add(next.tokens);
        *self = Self { tokens, ..next };
    }
}

/// What a summary stands for.
#[derive(Debug, Deserialize)]
pub struct Expanded {
    /// The summary that was expanded.
    pub id: String,
    /// Summaries as the component wrote them: JSON objects.
    #[serde(default)]
    pub summaries: Vec<Box<RawValue>>,
    /// Messages as the component wrote them: JSON objects.
    #[serde(default)]
    pub messages: Vec<Box<RawValue>>,
    /// Tokens of what is returned.
    pub tokens: u64,
    /// Whether something was left out.
    pub truncated: bool,
    /// The cursor of what was left out; `None`: nothing was.
    pub cursor: Option<String>,
    /// What was taken of the grant.
    pub grant: Option<GrantCharge>,
}

/// The result of a check.
#[derive(Debug, Deserialize)]
pub struct Checked {
    /// Whether nothing was found.
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

#[derive(Deserialize)]
struct Digest {
    #[serde(default)]
    sha256: String,
    cursor: Option<String>,
}

/// A cursor that does not move would never end.
fn moved(function: &str, before: Option<&String>, after: Option<&String>) -> Result<()> {
    if after.is_some() && before == after {
        return Err(Error::internal(format!("`{function}` answered the same cursor twice")));
    }
    Ok(())
}

impl Lcm {
    /// Every item of a list, as JSON objects; `cursor` is where it starts.
    ///
    /// # Errors
    ///
    /// What the component answers, and `cancelled`.
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

    /// Original texts of the messages of a range, both ends included, in order.
    ///
    /// # Errors
    ///
    /// What the component answers, what `each` fails with, and `cancelled`.
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

    /// What a summary stands for: one page when `tokens_max` is given, everything otherwise.
    ///
    /// What was read on a grant is paid for: when something goes wrong behind the first page, that
    /// is returned, and its `cursor` leads to the page that failed.
    ///
    /// # Errors
    ///
    /// What the component answers, and `cancelled`.
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
        whole.ok_or_else(|| Error::internal("`recall.expand` answered no page"))
    }

    /// Checks a conversation to the end.
    ///
    /// # Errors
    ///
    /// What the component answers, and `cancelled`. Findings are no error.
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

    /// SHA-256 of the store, or of what it means, as 64 hex digits.
    ///
    /// # Errors
    ///
    /// What the component answers, and `cancelled`.
    pub fn digest_all(&self, logical: bool, cancel: &Cancel) -> Result<String> {
        let mut cursor: Option<String> = None;
        loop {
            cancel.check()?;
            let page = self.digest(cursor.as_deref(), logical)?;
            let page: Digest = text::read("admin.digest", &page)?;
            moved("admin.digest", cursor.as_ref(), page.cursor.as_ref())?;
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(page.sha256),
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
