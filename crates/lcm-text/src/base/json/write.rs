//! Writes JSON documents from beginning to end.
//!
//! Input: keys and values in the order in which they are written; callers sort the keys of results.
//! Output: JSON text. The writer appends to one text and builds no tree. Fractional numbers are not
//! supported, because no document has a fractional number.

use alloc::string::String;
use core::fmt::Write as _;

use lcm_loops::json_string::write_string;

use crate::base::time::{self, Timestamp};

/// An object or array under construction. Keys must be ASCII and need no escape.
///
/// ```
/// use lcm_text::base::json::JsonWriter;
///
/// let mut object = JsonWriter::new_object();
/// object.add_number("count", 2);
/// object.add_texts("names", &["a", "b"]);
/// assert_eq!(object.end_object(), r#"{"count":2,"names":["a","b"]}"#);
/// ```
#[derive(Clone, Debug)]
pub struct JsonWriter(String);

impl JsonWriter {
    /// Starts an object.
    pub fn new_object() -> Self {
        Self::from_open_text("{")
    }

    /// Starts an array.
    pub fn new_array() -> Self {
        Self::from_open_text("[")
    }

    /// Creates a writer that continues `text`, which must end inside an open object or array.
    pub fn from_open_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns whether the innermost open object or array is empty.
    pub fn is_empty(&self) -> bool {
        self.0.ends_with(['{', '['])
    }

    /// Appends the closing bracket and returns the text.
    fn close_with(mut self, bracket: char) -> String {
        self.0.push(bracket);
        self.0
    }

    /// Closes the object and returns the text.
    pub fn end_object(self) -> String {
        self.close_with('}')
    }

    /// Closes the array and returns the text.
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

    /// Adds a member whose value is `json`, unchanged.
    pub fn add_json(&mut self, key: &str, json: &str) {
        self.push_key(key);
        self.0.push_str(json);
    }

    /// Adds a member whose value is an object.
    pub fn add_object(&mut self, key: &str, object: Self) {
        self.add_json(key, &object.end_object());
    }

    /// Adds a member whose value is an array.
    pub fn add_array(&mut self, key: &str, array: Self) {
        self.add_json(key, &array.end_array());
    }

    /// Adds the members of another object.
    pub fn append_members(&mut self, object: Self) {
        if !object.is_empty() {
            self.push_comma();
            self.0.push_str(object.0.strip_prefix('{').unwrap_or_default());
        }
    }

    /// Adds a member whose value is `null`.
    pub fn add_null(&mut self, key: &str) {
        self.add_json(key, "null");
    }

    /// Adds a member whose value is `true` or `false`.
    pub fn add_flag(&mut self, key: &str, flag: bool) {
        self.add_json(key, if flag { "true" } else { "false" });
    }

    /// Adds a member whose value is a number.
    pub fn add_number(&mut self, key: &str, number: u64) {
        self.push_key(key);
        // Formatting into a string cannot fail.
        let _ = write!(self.0, "{number}");
    }

    /// Adds a member whose value is a number, or `null` for `None`.
    pub fn add_optional_number(&mut self, key: &str, number: Option<u64>) {
        match number {
            Some(number) => self.add_number(key, number),
            None => self.add_null(key),
        }
    }

    /// Adds a member whose value is a string.
    pub fn add_text(&mut self, key: &str, text: &str) {
        self.push_key(key);
        write_string(&mut self.0, text);
    }

    /// Adds a member whose value is a string, or `null` for `None`.
    pub fn add_optional_text(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.add_text(key, text),
            None => self.add_null(key),
        }
    }

    /// Adds a member whose value is a string: the time in ISO 8601, UTC, with milliseconds.
    pub fn add_time(&mut self, key: &str, time: Timestamp) {
        self.add_text(key, &time::iso_millis(time));
    }

    /// Adds the time of a message, or of messages: null for [`time::UNDATED`], else as
    /// [`add_time`](Self::add_time).
    pub fn add_message_time(&mut self, key: &str, time: Timestamp) {
        match time {
            time::UNDATED => self.add_null(key),
            time => self.add_time(key, time),
        }
    }

    /// Adds a member whose value is an array of strings.
    pub fn add_texts(&mut self, key: &str, texts: &[impl AsRef<str>]) {
        let mut array = Self::new_array();
        texts.iter().for_each(|text| array.push_text(text.as_ref()));
        self.add_array(key, array);
    }

    /// Appends the element `json`, unchanged.
    pub fn push_json(&mut self, json: &str) {
        self.push_comma();
        self.0.push_str(json);
    }

    /// Appends an element that is an object.
    pub fn push_object(&mut self, object: Self) {
        self.push_json(&object.end_object());
    }

    /// Appends an element that is a string.
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
