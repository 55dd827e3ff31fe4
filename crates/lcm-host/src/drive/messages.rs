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
    texts: &'a [String],
    uploads: BTreeMap<usize, String>,
}

impl<'a> TaskMessages<'a> {
    pub(super) fn new(texts: &'a [String]) -> Self {
        Self { texts, uploads: BTreeMap::new() }
    }

    /// Returns the messages of one call: as many as fit, at least one unless the range is empty.
    pub(super) fn select(&self, range: TaskRange) -> Vec<&str> {
        let (mut bytes, mut selected) = (0_usize, Vec::new());
        for (index, text) in self.texts_of(range) {
            bytes = bytes.saturating_add(text.len());
            if !selected.is_empty() && bytes > range.bytes_max {
                break;
            }
            selected.push(self.uploads.get(&index).unwrap_or(text).as_str());
        }
        selected
    }

    /// Returns the messages of a range that are too large for a call and not uploaded.
    pub(super) fn list_oversized(&self, range: TaskRange) -> Vec<(usize, &'a str)> {
        let large = |(index, text): &(usize, &String)| {
            text.len() > range.bytes_max && !self.uploads.contains_key(index)
        };
        self.texts_of(range).filter(large).map(|(index, text)| (index, text.as_str())).collect()
    }

    pub(super) fn set_upload(&mut self, index: usize, reference: String) {
        self.uploads.insert(index, reference);
    }

    fn texts_of(&self, range: TaskRange) -> impl Iterator<Item = (usize, &'a String)> + use<'a> {
        let texts = self.texts;
        range.to_indices().map_while(move |index| Some((index, texts.get(index)?)))
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
