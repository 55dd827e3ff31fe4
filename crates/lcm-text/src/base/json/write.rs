//! JSON documents, written from their beginning to their end.
//!
//! In: keys and values in the order in which they are to stand; that of the results is the order of
//! the keys. Out: the text. Nothing is collected first, so that a document costs no more than its
//! text. Not here: numbers that are not whole, because nothing has one.

use alloc::string::String;
use core::fmt::Write as _;

use super::write_string;
use crate::{base::time, types::api::Timestamp};

/// An object or array that is being written. Keys are ASCII without anything to escape.
#[derive(Clone, Debug)]
pub struct JsonWriter(String);

impl JsonWriter {
    /// An object.
    pub fn new_object() -> Self {
        Self::from_open_text("{")
    }

    /// An array.
    pub fn new_array() -> Self {
        Self::from_open_text("[")
    }

    /// Goes on with a text that ends with the bracket of the object or array to write.
    pub fn from_open_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.0.ends_with(['{', '['])
    }

    /// The text, its last object or array closed; `what` is the bracket for it.
    fn close_with(mut self, what: char) -> String {
        self.0.push(what);
        self.0
    }

    /// The text with the object closed.
    pub fn end_object(self) -> String {
        self.close_with('}')
    }

    /// The text with the array closed.
    pub fn end_array(self) -> String {
        self.close_with(']')
    }

    fn push_comma(&mut self) {
        if !self.is_empty() {
            self.0.push(',');
        }
    }

    fn push_key(&mut self, key: &str) {
        self.push_comma();
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// A member that is JSON already.
    pub fn add_json(&mut self, key: &str, json: &str) {
        self.push_key(key);
        self.0.push_str(json);
    }

    /// A member that is an object.
    pub fn add_object(&mut self, key: &str, object: Self) {
        self.add_json(key, &object.end_object());
    }

    /// A member that is an array.
    pub fn add_array(&mut self, key: &str, array: Self) {
        self.add_json(key, &array.end_array());
    }

    /// The members of another object.
    pub fn append_members(&mut self, object: Self) {
        if !object.is_empty() {
            self.push_comma();
            self.0.push_str(object.0.strip_prefix('{').unwrap_or_default());
        }
    }

    /// A member that is `null`.
    pub fn add_null(&mut self, key: &str) {
        self.add_json(key, "null");
    }

    /// A member that is `true` or `false`.
    pub fn add_flag(&mut self, key: &str, flag: bool) {
        self.add_json(key, if flag { "true" } else { "false" });
    }

    /// A member that is a number.
    pub fn add_number(&mut self, key: &str, number: u64) {
        self.push_key(key);
        // Writing to a text cannot fail.
        let _ = write!(self.0, "{number}");
    }

    /// A member that is a number, or `null`.
    pub fn add_optional_number(&mut self, key: &str, number: Option<u64>) {
        match number {
            Some(number) => self.add_number(key, number),
            None => self.add_null(key),
        }
    }

    /// A member that is a string.
    pub fn add_text(&mut self, key: &str, text: &str) {
        self.push_key(key);
        write_string(&mut self.0, text);
    }

    /// A member that is a string, or `null`.
    pub fn add_optional_text(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.add_text(key, text),
            None => self.add_null(key),
        }
    }

    /// A member that is a time, in ISO 8601.
    pub fn add_time(&mut self, key: &str, time: Timestamp) {
        self.add_text(key, &time::iso_millis(time));
    }

    /// A member that is an array of strings.
    pub fn add_texts(&mut self, key: &str, texts: &[impl AsRef<str>]) {
        let mut array = Self::new_array();
        texts.iter().for_each(|text| array.push_text(text.as_ref()));
        self.add_array(key, array);
    }

    /// An element that is JSON already.
    pub fn push_json(&mut self, json: &str) {
        self.push_comma();
        self.0.push_str(json);
    }

    /// An element that is an object.
    pub fn push_object(&mut self, object: Self) {
        self.push_json(&object.end_object());
    }

    /// An element that is a string.
    pub fn push_text(&mut self, text: &str) {
        self.push_comma();
        write_string(&mut self.0, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between() {
        let mut inner = JsonWriter::new_array();
        assert!(inner.is_empty());
        inner.push_text("{");
        inner.push_json("[]");
        inner.push_object(JsonWriter::new_object());
        assert!(!inner.is_empty());
        let mut outer = JsonWriter::new_object();
        outer.add_array("a", inner);
        outer.add_number("b", u64::MAX);
        outer.add_optional_number("c", None);
        outer.add_texts("d", &["\"", "["]);
        outer.add_texts("e", &[""; 0]);
        outer.add_flag("f", false);
        outer.add_optional_text("g", Some("\u{1}"));
        assert_eq!(
            outer.end_object(),
            "{\"a\":[\"{\",[],{}],\"b\":18446744073709551615,\"c\":null,\"d\":[\"\\\"\",\"[\"],\
             \"e\":[],\"f\":false,\"g\":\"\\u0001\"}"
        );
    }
}
