//! The fields of an object that comes in as arguments: each asked for once by name and type.
//!
//! In: a JSON object. Out: its values, and at the end the first thing that was wrong with it. Until
//! then a wrong value is a default, so that a reader of many fields can fail in one place. Not
//! here: objects of messages, which may hold anything ([`crate::message`]).

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{ByteSpan, JsonKind, JsonMember, parse_object, slice_span, text};
use crate::base::error::{Error, Result};

/// An object that is being read.
#[derive(Debug)]
pub struct JsonFields<'a> {
    raw: &'a str,
    /// What was not asked for yet.
    members: Vec<JsonMember>,
    fault: Option<String>,
}

impl<'a> JsonFields<'a> {
    /// The members of an object in `raw`.
    pub const fn new(raw: &'a str, members: Vec<JsonMember>) -> Self {
        Self { raw, members, fault: None }
    }

    /// The object that `raw` consists of; `name` is the argument.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the argument: it is none.
    pub fn parse_argument(name: &str, raw: &'a str) -> Result<Self> {
        match parse_object(raw) {
            Ok(members) => Ok(Self::new(raw, members)),
            Err(error) => Err(Error::invalid_input(format_args!("{name}: {}", error.message))),
        }
    }

    /// What was wrong, after `name`.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the field: one of the wrong type, or one that nobody asked for.
    pub fn finish(mut self, name: &str) -> Result<()> {
        if let Some(member) = self.members.first() {
            let key = text(self.raw, member.key);
            self.fault.get_or_insert(format!("`{key}` is not known here"));
        }
        self.finish_known(name)
    }

    /// As [`Fields::end`], where fields that nobody asked for are passed over.
    pub fn finish_known(self, name: &str) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(Error::invalid_input(format_args!("{name}: {fault}"))),
        }
    }

    /// Says that a field is not as it must be.
    #[cold]
    pub fn reject_field(&mut self, key: &str, wanted: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("`{key}` must be {wanted}"));
        }
    }

    fn take_member(&mut self, key: &str) -> Option<(ByteSpan, JsonKind)> {
        let raw = self.raw;
        let is_it = |member: &JsonMember| text(raw, member.key) == key;
        let at = self.members.iter().position(is_it)?;
        let member = self.members.remove(at);
        if self.members.iter().any(is_it) {
            self.reject_field(key, "given once");
        }
        Some((member.value, member.kind))
    }

    /// The value of a field of a type; `None`: it is not there, or `null`.
    fn take_typed(&mut self, key: &str, kind: JsonKind, wanted: &str) -> Option<ByteSpan> {
        match self.take_member(key)? {
            (span, found) if found == kind => return Some(span),
            (_, JsonKind::Null) => {}
            _ => self.reject_field(key, wanted),
        }
        None
    }

    /// The text and type of a field; `None`: it is not there.
    pub fn take_any(&mut self, key: &str) -> Option<(Cow<'a, str>, JsonKind)> {
        let (span, kind) = self.take_member(key)?;
        Some((text(self.raw, span), kind))
    }

    /// Whether a field is `true`; one that is not there is `false`.
    pub fn take_flag(&mut self, key: &str) -> bool {
        self.take_optional_flag(key).unwrap_or(false)
    }

    /// Whether a field is `true`; `None`: it is not there.
    pub fn take_optional_flag(&mut self, key: &str) -> Option<bool> {
        match self.take_member(key)? {
            (span, JsonKind::Bool) => Some(slice_span(self.raw, span) == "true"),
            _ => {
                self.reject_field(key, "true or false");
                None
            }
        }
    }

    /// A string; `None`: it is not there, or `null`.
    pub fn take_optional_text(&mut self, key: &str) -> Option<String> {
        let span = self.take_typed(key, JsonKind::String, TEXT)?;
        Some(text(self.raw, span).into_owned())
    }

    /// A string that has to be there.
    pub fn take_text(&mut self, key: &str) -> String {
        let found = self.take_optional_text(key);
        self.require_value(key, TEXT, found)
    }

    /// A whole number from 0 to 2^64 - 1; `None`: it is not there, or `null`.
    pub fn take_optional_u64(&mut self, key: &str) -> Option<u64> {
        let span = self.take_typed(key, JsonKind::Number, NUMBER)?;
        let number = slice_span(self.raw, span).parse().ok();
        if number.is_none() {
            self.reject_field(key, NUMBER);
        }
        number
    }

    /// A whole number that has to be there.
    pub fn take_u64(&mut self, key: &str) -> u64 {
        let found = self.take_optional_u64(key);
        self.require_value(key, NUMBER, found)
    }

    /// As [`Fields::number_or_none`], up to 2^32 - 1.
    pub fn take_optional_u32(&mut self, key: &str) -> Option<u32> {
        let number = self.take_optional_u64(key)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            self.reject_field(key, NUMBER);
        }
        small
    }

    /// As [`Fields::number`], up to 2^32 - 1.
    pub fn take_u32(&mut self, key: &str) -> u32 {
        let found = self.take_optional_u32(key);
        self.require_value(key, NUMBER, found)
    }

    /// Place of a string among `names`; `None`: it is not there.
    pub fn take_optional_choice(&mut self, key: &str, names: &[&str]) -> Option<usize> {
        let (found, kind) = self.take_any(key)?;
        let place =
            names.iter().position(|name| *name == found).filter(|_| kind == JsonKind::String);
        if place.is_none() {
            self.reject_field(key, &format!("one of `{}`", names.join("`, `")));
        }
        place
    }

    /// As [`Fields::choice`] of a string that has to be there.
    pub fn take_choice(&mut self, key: &str, names: &[&str]) -> usize {
        let found = self.take_optional_choice(key, names);
        self.require_value(key, TEXT, found)
    }

    /// The elements of an array that has to be there.
    pub fn take_list(&mut self, key: &str) -> Vec<super::JsonValue> {
        let found = self.take_typed(key, JsonKind::Array, LIST);
        let span = self.require_value(key, LIST, found);
        super::list_elements(self.raw, span)
    }

    /// An array of strings; `None`: it is not there, or `null`.
    pub fn take_optional_texts(&mut self, key: &str) -> Option<Vec<String>> {
        let span = self.take_typed(key, JsonKind::Array, LIST)?;
        let mut texts = Vec::new();
        for element in super::list_elements(self.raw, span) {
            if element.kind != JsonKind::String {
                self.reject_field(key, LIST);
            }
            texts.push(text(self.raw, element.span).into_owned());
        }
        Some(texts)
    }

    /// An array of strings that has to be there.
    pub fn take_texts(&mut self, key: &str) -> Vec<String> {
        let found = self.take_optional_texts(key);
        self.require_value(key, LIST, found)
    }

    fn require_value<T: Default>(&mut self, key: &str, wanted: &str, found: Option<T>) -> T {
        if found.is_none() {
            self.reject_field(key, wanted);
        }
        found.unwrap_or_default()
    }
}

const TEXT: &str = "a string";
const NUMBER: &str = "a whole number in its bounds";
const LIST: &str = "an array, and of the right elements";

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
    fn the_first_fault_is_told() {
        let number = |fields: &mut JsonFields<'_>| fields.take_u64("n");
        for raw in ["{}", r#"{"n":null}"#, r#"{"n":1.0}"#, r#"{"n":-1}"#, r#"{"n":"1"}"#] {
            assert_eq!(
                read(raw, number).unwrap_err(),
                "name: `n` must be a whole number in its bounds"
            );
        }
        let error =
            read(r#"{"s":4294967296}"#, |fields| fields.take_optional_u32("s")).unwrap_err();
        assert_eq!(error, "name: `s` must be a whole number in its bounds");
        assert_eq!(read(r#"{"n":1,"m":2}"#, number).unwrap_err(), "name: `m` is not known here");
        assert_eq!(read(r#"{"n":1,"n":1}"#, number).unwrap_err(), "name: `n` must be given once");
        let error = read(r#"{"f":null}"#, |fields| fields.take_flag("f")).unwrap_err();
        assert_eq!(error, "name: `f` must be true or false");
        let error = read(r#"{"c":"x"}"#, |fields| fields.take_optional_choice("c", &["a", "b"]))
            .unwrap_err();
        assert_eq!(error, "name: `c` must be one of `a`, `b`");
        let error = read(r#"{"l":["a",1]}"#, |fields| fields.take_texts("l")).unwrap_err();
        assert!(error.starts_with("name: `l` must be an array"), "{error}");
        assert!(read("[]", number).unwrap_err().starts_with("name: no JSON object"));
    }
}
