//! The fields of an object that comes in as arguments: each asked for once by name and type.
//!
//! In: a JSON object. Out: its values, and at the end the first thing that was wrong with it. Until
//! then a wrong value is a default, so that a reader of many fields can fail in one place. Not
//! here: objects of messages, which may hold anything ([`crate::message`]).

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{Kind, Member, Span, object, slice, text};
use crate::base::error::{Error, Result};

/// An object that is being read.
#[derive(Debug)]
pub struct Fields<'a> {
    raw: &'a str,
    /// What was not asked for yet.
    members: Vec<Member>,
    fault: Option<String>,
}

impl<'a> Fields<'a> {
    /// The members of an object in `raw`.
    pub const fn new(raw: &'a str, members: Vec<Member>) -> Self {
        Self { raw, members, fault: None }
    }

    /// The object that `raw` consists of; `name` is the argument.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the argument: it is none.
    pub fn of_argument(name: &str, raw: &'a str) -> Result<Self> {
        match object(raw) {
            Ok(members) => Ok(Self::new(raw, members)),
            Err(error) => Err(Error::invalid(format_args!("{name}: {}", error.message))),
        }
    }

    /// What was wrong, after `name`.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the field: one of the wrong type, or one that nobody asked for.
    pub fn end(mut self, name: &str) -> Result<()> {
        if let Some(member) = self.members.first() {
            let key = text(self.raw, member.key);
            self.fault.get_or_insert(format!("`{key}` is not known here"));
        }
        self.end_of_known(name)
    }

    /// As [`Fields::end`], where fields that nobody asked for are passed over.
    pub fn end_of_known(self, name: &str) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(Error::invalid(format_args!("{name}: {fault}"))),
        }
    }

    /// Says that a field is not as it must be.
    #[cold]
    pub fn must_be(&mut self, key: &str, wanted: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("`{key}` must be {wanted}"));
        }
    }

    fn member(&mut self, key: &str) -> Option<(Span, Kind)> {
        let raw = self.raw;
        let is_it = |member: &Member| text(raw, member.key) == key;
        let at = self.members.iter().position(is_it)?;
        let member = self.members.remove(at);
        if self.members.iter().any(is_it) {
            self.must_be(key, "given once");
        }
        Some((member.value, member.kind))
    }

    /// The value of a field of a type; `None`: it is not there, or `null`.
    fn typed(&mut self, key: &str, kind: Kind, wanted: &str) -> Option<Span> {
        match self.member(key)? {
            (span, found) if found == kind => return Some(span),
            (_, Kind::Null) => {}
            _ => self.must_be(key, wanted),
        }
        None
    }

    /// The text and type of a field; `None`: it is not there.
    pub fn any(&mut self, key: &str) -> Option<(Cow<'a, str>, Kind)> {
        let (span, kind) = self.member(key)?;
        Some((text(self.raw, span), kind))
    }

    /// Whether a field is `true`; one that is not there is `false`.
    pub fn flag(&mut self, key: &str) -> bool {
        self.flag_or_none(key).unwrap_or(false)
    }

    /// Whether a field is `true`; `None`: it is not there.
    pub fn flag_or_none(&mut self, key: &str) -> Option<bool> {
        match self.member(key)? {
            (span, Kind::Bool) => Some(slice(self.raw, span) == "true"),
            _ => {
                self.must_be(key, "true or false");
                None
            }
        }
    }

    /// A string; `None`: it is not there, or `null`.
    pub fn text_or_none(&mut self, key: &str) -> Option<String> {
        let span = self.typed(key, Kind::String, TEXT)?;
        Some(text(self.raw, span).into_owned())
    }

    /// A string that has to be there.
    pub fn text(&mut self, key: &str) -> String {
        let found = self.text_or_none(key);
        self.needed(key, TEXT, found)
    }

    /// A whole number from 0 to 2^64 - 1; `None`: it is not there, or `null`.
    pub fn number_or_none(&mut self, key: &str) -> Option<u64> {
        let span = self.typed(key, Kind::Number, NUMBER)?;
        let number = slice(self.raw, span).parse().ok();
        if number.is_none() {
            self.must_be(key, NUMBER);
        }
        number
    }

    /// A whole number that has to be there.
    pub fn number(&mut self, key: &str) -> u64 {
        let found = self.number_or_none(key);
        self.needed(key, NUMBER, found)
    }

    /// As [`Fields::number_or_none`], up to 2^32 - 1.
    pub fn small_or_none(&mut self, key: &str) -> Option<u32> {
        let number = self.number_or_none(key)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            self.must_be(key, NUMBER);
        }
        small
    }

    /// As [`Fields::number`], up to 2^32 - 1.
    pub fn small(&mut self, key: &str) -> u32 {
        let found = self.small_or_none(key);
        self.needed(key, NUMBER, found)
    }

    /// Place of a string among `names`; `None`: it is not there.
    pub fn choice(&mut self, key: &str, names: &[&str]) -> Option<usize> {
        let (found, kind) = self.any(key)?;
        let place = names.iter().position(|name| *name == found).filter(|_| kind == Kind::String);
        if place.is_none() {
            self.must_be(key, &format!("one of `{}`", names.join("`, `")));
        }
        place
    }

    /// As [`Fields::choice`] of a string that has to be there.
    pub fn place(&mut self, key: &str, names: &[&str]) -> usize {
        let found = self.choice(key, names);
        self.needed(key, TEXT, found)
    }

    /// The elements of an array that has to be there.
    pub fn list(&mut self, key: &str) -> Vec<super::Value> {
        let found = self.typed(key, Kind::Array, LIST);
        let span = self.needed(key, LIST, found);
        super::elements(self.raw, span)
    }

    /// An array of strings; `None`: it is not there, or `null`.
    pub fn texts_or_none(&mut self, key: &str) -> Option<Vec<String>> {
        let span = self.typed(key, Kind::Array, LIST)?;
        let mut texts = Vec::new();
        for element in super::elements(self.raw, span) {
            if element.kind != Kind::String {
                self.must_be(key, LIST);
            }
            texts.push(text(self.raw, element.span).into_owned());
        }
        Some(texts)
    }

    /// An array of strings that has to be there.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        let found = self.texts_or_none(key);
        self.needed(key, LIST, found)
    }

    fn needed<T: Default>(&mut self, key: &str, wanted: &str, found: Option<T>) -> T {
        if found.is_none() {
            self.must_be(key, wanted);
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

    fn read<T>(raw: &str, read: impl Fn(&mut Fields<'_>) -> T) -> core::result::Result<T, String> {
        let mut fields =
            Fields::of_argument("name", raw).map_err(|error| error.into_failure().message)?;
        let value = read(&mut fields);
        fields.end("name").map(|()| value).map_err(|error| error.into_failure().message)
    }

    #[test]
    fn fields_are_read_by_type() {
        let raw = r#"{"t":"\u0041","n":18446744073709551615,"s":4294967295,"f":true,"z":null,
            "l":["a","\n"],"c":"two"}"#;
        let mut fields = Fields::of_argument("name", raw).unwrap();
        assert_eq!(fields.text("t"), "A");
        assert_eq!(fields.number("n"), u64::MAX);
        assert_eq!(fields.small("s"), u32::MAX);
        assert!(fields.flag("f"));
        assert!(!fields.flag("absent"));
        assert_eq!(fields.number_or_none("z"), None);
        assert_eq!(fields.text_or_none("absent"), None);
        assert_eq!(fields.texts("l"), ["a", "\n"]);
        assert_eq!(fields.choice("c", &["one", "two"]), Some(1));
        fields.end("name").unwrap();
    }

    #[test]
    fn the_first_fault_is_told() {
        let number = |fields: &mut Fields<'_>| fields.number("n");
        for raw in ["{}", r#"{"n":null}"#, r#"{"n":1.0}"#, r#"{"n":-1}"#, r#"{"n":"1"}"#] {
            assert_eq!(
                read(raw, number).unwrap_err(),
                "name: `n` must be a whole number in its bounds"
            );
        }
        let error = read(r#"{"s":4294967296}"#, |fields| fields.small_or_none("s")).unwrap_err();
        assert_eq!(error, "name: `s` must be a whole number in its bounds");
        assert_eq!(read(r#"{"n":1,"m":2}"#, number).unwrap_err(), "name: `m` is not known here");
        assert_eq!(read(r#"{"n":1,"n":1}"#, number).unwrap_err(), "name: `n` must be given once");
        let error = read(r#"{"f":null}"#, |fields| fields.flag("f")).unwrap_err();
        assert_eq!(error, "name: `f` must be true or false");
        let error = read(r#"{"c":"x"}"#, |fields| fields.choice("c", &["a", "b"])).unwrap_err();
        assert_eq!(error, "name: `c` must be one of `a`, `b`");
        let error = read(r#"{"l":["a",1]}"#, |fields| fields.texts("l")).unwrap_err();
        assert!(error.starts_with("name: `l` must be an array"), "{error}");
        assert!(read("[]", number).unwrap_err().starts_with("name: no JSON object"));
    }
}
