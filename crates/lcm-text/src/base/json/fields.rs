//! Reads the fields of a JSON object that is an argument, each by name and type.
//!
//! Input: a JSON object. Output: values, and at the end the first fault. A wrong value is read as
//! if absent, and a wrong element of a list of texts as its JSON text. So callers handle faults in
//! one place. [`crate::message`] reads the objects of messages, which may have any fields.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::reader::{
    ByteSpan, JsonKind, JsonMember, JsonValue, list_elements, parse_object, slice_span, text,
};
use crate::base::error::{Error, Result};

/// A JSON object whose fields are being read.
///
/// A `take` function returns `None` for an absent optional field, and a default for an absent
/// required field. The result for a value of a wrong type is the same. A wrong type and an absent
/// required field are recorded as faults.
///
/// ```
/// use lcm_text::base::json::JsonFields;
///
/// let mut fields = JsonFields::parse_argument("options_json", r#"{"limit": "ten"}"#)?;
/// let limit = fields.take_optional_u32("limit");
/// let error = fields.finish("options_json").unwrap_err();
/// assert_eq!(limit, None);
/// assert_eq!(error.message, "options_json: `limit` must be a whole number from 0, got \"ten\"");
/// # Ok::<(), lcm_text::base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonFields<'a> {
    raw: &'a str,
    /// Fields that were not read yet.
    members: Vec<JsonMember>,
    /// Fields that were read, for error messages.
    taken: Vec<JsonMember>,
    /// The first fault, as an error message without the argument's name; `None`: no fault so far.
    fault: Option<String>,
}

impl<'a> JsonFields<'a> {
    /// Creates a reader of `members`, which are the members of an object in `raw`.
    pub const fn new(raw: &'a str, members: Vec<JsonMember>) -> Self {
        Self { raw, members, taken: Vec::new(), fault: None }
    }

    /// Creates a reader of the object `raw`, which is the value of the argument `name`.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the argument: `raw` is not one JSON object.
    pub fn parse_argument(name: &str, raw: &'a str) -> Result<Self> {
        match parse_object(raw) {
            Ok(members) => Ok(Self::new(raw, members)),
            Err(error) => Err(Error::invalid_input(format_args!("{name}: {}", error.message))),
        }
    }

    /// Ends reading. The error names the argument `name` and the first fault, or else the first
    /// field that was not read.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a field has a wrong value, is required and absent, occurs twice, or is not
    /// known.
    pub fn finish(mut self, name: &str) -> Result<()> {
        if let Some(member) = self.members.first() {
            let key = text(self.raw, member.key);
            self.fault.get_or_insert(format!("`{key}` is not a known field"));
        }
        self.finish_known(name)
    }

    /// Ends reading as [`JsonFields::finish`], but ignores fields that were not read.
    pub fn finish_known(self, name: &str) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(Error::invalid_input(format_args!("{name}: {fault}"))),
        }
    }

    /// Records the fault that the value of `key` breaks `rule`, for example `a whole number from 1
    /// to 9`. Only the first recorded fault is kept.
    #[cold]
    pub fn reject_field(&mut self, key: &str, rule: &str) {
        let raw = self.raw;
        let taken = self.taken.iter().find(|member| text(raw, member.key) == key);
        let found = taken.map(|member| describe_scalar(raw, member.value)).unwrap_or_default();
        self.record_fault(format!("`{key}` must be {rule}{found}"));
    }

    #[cold]
    fn record_fault(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    fn take_member(&mut self, key: &str) -> Option<(ByteSpan, JsonKind)> {
        let raw = self.raw;
        let has_key = |member: &JsonMember| text(raw, member.key) == key;
        let at = self.members.iter().position(has_key)?;
        let member = self.members.remove(at);
        if self.members.iter().any(has_key) {
            self.record_fault(format!("`{key}` must be given once"));
        }
        self.taken.push(member);
        Some((member.value, member.kind))
    }

    /// Takes the value of a field; `None`: absent, `null`, or not of type `kind`, which is a fault.
    fn take_typed(&mut self, key: &str, kind: JsonKind, rule: &str) -> Option<ByteSpan> {
        match self.take_member(key)? {
            (span, found) if found == kind => return Some(span),
            (_, JsonKind::Null) => {}
            _ => self.reject_field(key, rule),
        }
        None
    }

    /// Takes the value and type of a field; `None`: absent. A string is decoded; any other value is
    /// its JSON text.
    pub fn take_any(&mut self, key: &str) -> Option<(Cow<'a, str>, JsonKind)> {
        let (span, kind) = self.take_member(key)?;
        Some((text(self.raw, span), kind))
    }

    /// Takes a Boolean field; `false` if absent. `null` is a fault.
    pub fn take_flag(&mut self, key: &str) -> bool {
        self.take_optional_flag(key).unwrap_or(false)
    }

    /// Takes a Boolean field; `None`: absent. `null` is a fault.
    pub fn take_optional_flag(&mut self, key: &str) -> Option<bool> {
        match self.take_member(key)? {
            (span, JsonKind::Bool) => Some(slice_span(self.raw, span) == "true"),
            _ => {
                self.reject_field(key, "true or false");
                None
            }
        }
    }

    /// Takes a string; `None`: absent or `null`.
    pub fn take_optional_text(&mut self, key: &str) -> Option<String> {
        let span = self.take_typed(key, JsonKind::String, TEXT)?;
        Some(text(self.raw, span).into_owned())
    }

    /// Takes a string that is required.
    pub fn take_text(&mut self, key: &str) -> String {
        let found = self.take_optional_text(key);
        self.require_value(key, TEXT, found)
    }

    /// Takes a whole number from 0 to 2^64 - 1; `None`: absent or `null`.
    pub fn take_optional_u64(&mut self, key: &str) -> Option<u64> {
        let span = self.take_typed(key, JsonKind::Number, WHOLE_NUMBER)?;
        let number = slice_span(self.raw, span).parse().ok();
        if number.is_none() {
            self.reject_field(key, WHOLE_NUMBER);
        }
        number
    }

    /// Takes a whole number that is required.
    pub fn take_u64(&mut self, key: &str) -> u64 {
        let found = self.take_optional_u64(key);
        self.require_value(key, WHOLE_NUMBER, found)
    }

    /// Takes a whole number from 0 to 2^32 - 1; `None`: absent or `null`.
    pub fn take_optional_u32(&mut self, key: &str) -> Option<u32> {
        let number = self.take_optional_u64(key)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            self.reject_field(key, "a whole number from 0 to 4294967295");
        }
        small
    }

    /// Takes a whole number from 0 to 2^32 - 1 that is required.
    pub fn take_u32(&mut self, key: &str) -> u32 {
        let found = self.take_optional_u32(key);
        self.require_value(key, WHOLE_NUMBER, found)
    }

    /// Takes a string that is one of `names` and returns its index; `None`: absent. `null` is a
    /// fault.
    pub fn take_optional_choice(&mut self, key: &str, names: &[&str]) -> Option<usize> {
        let (found, kind) = self.take_any(key)?;
        let index =
            names.iter().position(|name| *name == found).filter(|_| kind == JsonKind::String);
        if index.is_none() {
            self.reject_field(key, &format!("one of `{}`", names.join("`, `")));
        }
        index
    }

    /// Takes a required string that is one of `names`, and returns its index in `names`.
    pub fn take_choice(&mut self, key: &str, names: &[&str]) -> usize {
        let found = self.take_optional_choice(key, names);
        self.require_value(key, TEXT, found)
    }

    /// Takes a required array and returns its elements.
    pub fn take_list(&mut self, key: &str) -> Vec<JsonValue> {
        let found = self.take_typed(key, JsonKind::Array, LIST);
        let span = self.require_value(key, LIST, found);
        list_elements(self.raw, span)
    }

    /// Takes an array and returns its elements; none if absent or `null`.
    pub fn take_optional_list(&mut self, key: &str) -> Vec<JsonValue> {
        let span = self.take_typed(key, JsonKind::Array, LIST);
        span.map_or_else(Vec::new, |span| list_elements(self.raw, span))
    }

    /// Takes an array of strings; `None`: absent or `null`. An element that is no string is a fault
    /// and is returned as its JSON text.
    pub fn take_optional_texts(&mut self, key: &str) -> Option<Vec<String>> {
        let span = self.take_typed(key, JsonKind::Array, TEXTS)?;
        let mut texts = Vec::new();
        for element in list_elements(self.raw, span) {
            if element.kind != JsonKind::String {
                self.reject_field(key, TEXTS);
            }
            texts.push(text(self.raw, element.span).into_owned());
        }
        Some(texts)
    }

    /// Takes an array of strings that is required.
    pub fn take_texts(&mut self, key: &str) -> Vec<String> {
        let found = self.take_optional_texts(key);
        self.require_value(key, TEXTS, found)
    }

    fn require_value<T: Default>(&mut self, key: &str, rule: &str, value: Option<T>) -> T {
        if value.is_none() {
            self.reject_field(key, rule);
        }
        value.unwrap_or_default()
    }
}

/// Returns `, got VALUE` for an error message, with at most [`FOUND_BYTES_MAX`] bytes of the value;
/// empty for an object or an array.
pub(crate) fn describe_scalar(raw: &str, span: ByteSpan) -> String {
    let value = slice_span(raw, span);
    if value.starts_with(['{', '[']) {
        return String::new();
    }
    match value.get(..value.floor_char_boundary(FOUND_BYTES_MAX)) {
        Some(beginning) if beginning.len() < value.len() => format!(", got {beginning}..."),
        _ => format!(", got {value}"),
    }
}

/// Most bytes of a value that an error message quotes.
const FOUND_BYTES_MAX: usize = 60;

const TEXT: &str = "a string";
const WHOLE_NUMBER: &str = "a whole number from 0";
const LIST: &str = "an array";
const TEXTS: &str = "an array of strings";

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(
        raw: &str,
        read: impl Fn(&mut JsonFields<'_>) -> T,
    ) -> core::result::Result<T, String> {
        let mut fields = JsonFields::parse_argument("name", raw)
            .map_err(|error| error.into_failure().message)?;
        let value = read(&mut fields);
        fields.finish("name").map(|()| value).map_err(|error| error.into_failure().message)
    }

    #[test]
    fn fields_are_read_by_type() {
        let raw = r#"{"t":"\u0041","n":18446744073709551615,"s":4294967295,"f":true,"z":null,
            "l":["a","\n"],"c":"two"}"#;
        let mut fields = JsonFields::parse_argument("name", raw).unwrap();
        assert_eq!(fields.take_text("t"), "A");
        assert_eq!(fields.take_u64("n"), u64::MAX);
        assert_eq!(fields.take_u32("s"), u32::MAX);
        assert!(fields.take_flag("f"));
        assert!(!fields.take_flag("absent"));
        assert_eq!(fields.take_optional_u64("z"), None);
        assert_eq!(fields.take_optional_text("absent"), None);
        assert_eq!(fields.take_texts("l"), ["a", "\n"]);
        assert_eq!(fields.take_optional_choice("c", &["one", "two"]), Some(1));
        fields.finish("name").unwrap();
    }

    #[test]
    fn the_first_fault_is_reported() {
        let number = |fields: &mut JsonFields<'_>| fields.take_u64("n");
        for (raw, found) in [
            ("{}", ""),
            (r#"{"n":null}"#, ", got null"),
            (r#"{"n":1.0}"#, ", got 1.0"),
            (r#"{"n":-1}"#, ", got -1"),
            (r#"{"n":"1"}"#, ", got \"1\""),
            (r#"{"n":[1]}"#, ""),
        ] {
            assert_eq!(
                read(raw, number).unwrap_err(),
                format!("name: `n` must be a whole number from 0{found}")
            );
        }
        let error =
            read(r#"{"s":4294967296}"#, |fields| fields.take_optional_u32("s")).unwrap_err();
        assert_eq!(error, "name: `s` must be a whole number from 0 to 4294967295, got 4294967296");
        assert_eq!(read(r#"{"n":1,"m":2}"#, number).unwrap_err(), "name: `m` is not a known field");
        assert_eq!(read(r#"{"n":1,"n":1}"#, number).unwrap_err(), "name: `n` must be given once");
        let error = read(r#"{"f":null}"#, |fields| fields.take_flag("f")).unwrap_err();
        assert_eq!(error, "name: `f` must be true or false, got null");
        let error = read(r#"{"c":"x"}"#, |fields| fields.take_optional_choice("c", &["a", "b"]))
            .unwrap_err();
        assert_eq!(error, "name: `c` must be one of `a`, `b`, got \"x\"");
        let error = read(r#"{"l":["a",1]}"#, |fields| fields.take_texts("l")).unwrap_err();
        assert!(error.starts_with("name: `l` must be an array"), "{error}");
        assert!(read("[]", number).unwrap_err().starts_with("name: must be one JSON object"));
    }
}
