//! The messages of a task: sizes, ranges for one call, and uploads of large messages.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::instruction::TaskRange;
use crate::{
    clock::Cancel,
    digest::sha256_hex,
    error::Error,
    lcm::{CONFLICT_RETRIES_MAX, Failure, Lcm},
};

/// Returns the members of a task that describe its messages.
pub(crate) fn measure_messages(messages: &[String]) -> Value {
    let sizes = || messages.iter().map(String::len);
    json!({"count": messages.len(), "bytes": sizes().sum::<usize>(),
        "bytes_longest": sizes().max().unwrap_or(0)})
}

/// The messages of a task, with references to the uploaded ones.
pub(super) struct TaskMessages<'a> {
    pub(super) texts: &'a [String],
    /// References to uploaded messages, by index.
    pub(super) uploads: BTreeMap<usize, String>,
}

impl<'a> TaskMessages<'a> {
    /// Returns the messages of one call: as many as fit, at least one unless the range is empty.
    pub(super) fn select(&self, range: TaskRange) -> Vec<&str> {
        let mut bytes = 0_usize;
        let fits = |&(index, text): &(usize, &'a String)| {
            bytes = bytes.saturating_add(text.len());
            index == range.index_first || bytes <= range.bytes_max
        };
        let texts = self.list_texts(range).take_while(fits);
        texts.map(|(index, text)| self.uploads.get(&index).unwrap_or(text).as_str()).collect()
    }

    /// Lists the messages of a range, as the caller gave them, with their indices.
    pub(super) fn list_texts(
        &self,
        range: TaskRange,
    ) -> impl Iterator<Item = (usize, &'a String)> + use<'a> {
        self.texts.iter().enumerate().skip(range.index_first).take(range.count)
    }
}

impl Lcm {
    /// Uploads a text in pieces that end between characters; returns the reference to the upload.
    pub(super) fn upload(
        &self,
        text: &str,
        mut arguments: Map<String, Value>,
        piece_bytes_max: usize,
        cancel: &Cancel,
    ) -> Result<String, Failure> {
        let upload = sha256_hex(text.as_bytes());
        let extra = json!({"bytes": text.len(), "family": arguments.remove("family")});
        arguments.insert("extra_json".to_owned(), extra.to_string().into());
        arguments.insert("upload".to_owned(), upload.as_str().into());
        let mut offset = 0;
        while offset < text.len() {
            cancel.check()?;
            let end = text.floor_char_boundary(offset.saturating_add(piece_bytes_max));
            arguments.insert("offset".to_owned(), offset.into());
            arguments.insert("text".to_owned(), text.get(offset..end).into());
            let given = Value::Object(arguments.clone());
            let next = self.call_value("ingest.stage", &given, CONFLICT_RETRIES_MAX)?;
            // An earlier attempt may have uploaded more.
            match next.as_u64().and_then(|next| usize::try_from(next).ok()) {
                Some(next) if next > offset => offset = next,
                _ => return Err(Error::internal("an upload does not advance").into()),
            }
        }
        Ok(format!("@upload {upload}"))
    }
}
