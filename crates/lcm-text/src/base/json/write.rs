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
pub struct Writer(String);

impl Writer {
    /// An object.
    pub fn object() -> Self {
        Self::on("{")
    }

    /// An array.
    pub fn array() -> Self {
        Self::on("[")
    }

    /// Goes on with a text that ends with the bracket of the object or array to write.
    pub fn on(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.0.ends_with(['{', '['])
    }

    /// The text, its last object or array closed; `what` is the bracket for it.
    fn closed(mut self, what: char) -> String {
        self.0.push(what);
        self.0
    }

    /// The text with the object closed.
    pub fn end_object(self) -> String {
        self.closed('}')
    }

    /// The text with the array closed.
    pub fn end_array(self) -> String {
        self.closed(']')
    }

    fn comma(&mut self) {
        if !self.is_empty() {
            self.0.push(',');
        }
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// A member that is JSON already.
    pub fn json(&mut self, key: &str, json: &str) {
        self.key(key);
        self.0.push_str(json);
    }

    /// A member that is an object.
    pub fn object_at(&mut self, key: &str, object: Self) {
        self.json(key, &object.end_object());
    }

    /// A member that is an array.
    pub fn array_at(&mut self, key: &str, array: Self) {
        self.json(key, &array.end_array());
    }

    /// The members of another object.
    pub fn append(&mut self, object: Self) {
        if !object.is_empty() {
            self.comma();
            self.0.push_str(object.0.strip_prefix('{').unwrap_or_default());
        }
    }

    /// A member that is `null`.
    pub fn null(&mut self, key: &str) {
        self.json(key, "null");
    }

    /// A member that is `true` or `false`.
    pub fn flag(&mut self, key: &str, flag: bool) {
        self.json(key, if flag { "true" } else { "false" });
    }

    /// A member that is a number.
    pub fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        // Writing to a text cannot fail.
        let _ = write!(self.0, "{number}");
    }

    /// A member that is a number, or `null`.
    pub fn number_or_null(&mut self, key: &str, number: Option<u64>) {
        match number {
            Some(number) => self.number(key, number),
            None => self.null(key),
        }
    }

    /// A member that is a string.
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        write_string(&mut self.0, text);
    }

    /// A member that is a string, or `null`.
    pub fn text_or_null(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(key, text),
            None => self.null(key),
        }
    }

    /// A member that is a time, in ISO 8601.
    pub fn time(&mut self, key: &str, time: Timestamp) {
        self.text(key, &time::iso_millis(time));
    }

    /// A member that is an array of strings.
    pub fn texts(&mut self, key: &str, texts: &[impl AsRef<str>]) {
        let mut array = Self::array();
        texts.iter().for_each(|text| array.push_text(text.as_ref()));
        self.array_at(key, array);
    }

    /// An element that is JSON already.
    pub fn push_json(&mut self, json: &str) {
        self.comma();
        self.0.push_str(json);
    }

    /// An element that is an object.
    pub fn push_object(&mut self, object: Self) {
        self.push_json(&object.end_object());
    }

    /// An element that is a string.
    pub fn push_text(&mut self, text: &str) {
        self.comma();
        write_string(&mut self.0, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between() {
        let mut inner = Writer::array();
        assert!(inner.is_empty());
        inner.push_text("{");
        inner.push_json("[]");
        inner.push_object(Writer::object());
        assert!(!inner.is_empty());
        let mut outer = Writer::object();
        outer.array_at("a", inner);
        outer.number("b", u64::MAX);
        outer.number_or_null("c", None);
        outer.texts("d", &["\"", "["]);
        outer.texts("e", &[""; 0]);
        outer.flag("f", false);
        outer.text_or_null("g", Some("\u{1}"));
        assert_eq!(
            outer.end_object(),
            "{\"a\":[\"{\",[],{}],\"b\":18446744073709551615,\"c\":null,\"d\":[\"\\\"\",\"[\"],\
             \"e\":[],\"f\":false,\"g\":\"\\u0001\"}"
        );
    }
}
