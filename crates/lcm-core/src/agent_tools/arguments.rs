//! The arguments of a tool: what a definition says of them, and their reading by the same table.
//!
//! In: what a model wrote. Out: values by name, or one line that names the argument and what it may
//! be. Models fill what they need not say with `null` or an empty string, and write numbers as
//! strings; both are taken. Not here: what an argument means.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_text::base::{
    error::{Error, Result},
    json::{self, Kind, Writer},
};

/// Greatest number of an argument that is bounded by what is stored: that of 32 bits.
pub(super) const NUMBER_MAX: u64 = 4_294_967_295;

/// A tool as a model sees it.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) arguments: &'static [Argument],
}

/// An argument of a tool.
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) form: Form,
    pub(super) needed: bool,
}

/// What an argument may be.
pub(super) enum Form {
    Text,
    Flag,
    /// A whole number from the first to the second.
    Number(u64, u64),
    Choice(&'static [&'static str]),
    /// At most so many strings; one alone may stand without a list.
    Texts(usize),
}

/// A value that was read.
enum Value {
    Text(String),
    Flag(bool),
    Number(u64),
    Texts(Vec<String>),
}

impl Form {
    /// The value in a text of this type; `None`: it is not one of this form.
    ///
    /// `list` gives the elements of an array.
    fn value(
        &self,
        text: Cow<'_, str>,
        kind: Kind,
        list: &dyn Fn() -> Option<Vec<String>>,
    ) -> Option<Value> {
        let is_text = kind == Kind::String;
        match self {
            Self::Text => (is_text && !text.is_empty()).then(|| Value::Text(text.into_owned())),
            Self::Flag if is_text || kind == Kind::Bool => match &*text {
                "true" => Some(Value::Flag(true)),
                "false" => Some(Value::Flag(false)),
                _ => None,
            },
            Self::Number(min, max) if is_text || kind == Kind::Number => {
                let number = text.parse().ok().filter(|number| (*min..=*max).contains(number));
                number.map(Value::Number)
            }
            Self::Choice(names) if is_text => {
                // Both spellings are in use.
                let text = text.replace('-', "_");
                names.contains(&text.as_str()).then_some(Value::Text(text))
            }
            Self::Texts(count_max) => {
                let texts = if is_text { Some(alloc::vec![text.into_owned()]) } else { list() };
                let fits = |texts: &Vec<String>| (1..=*count_max).contains(&texts.len());
                texts.filter(fits).map(Value::Texts)
            }
            _ => None,
        }
    }

    /// What an argument of this form must be.
    fn wanted(&self) -> String {
        match self {
            Self::Text => String::from("a string that is not empty"),
            Self::Flag => String::from("true or false"),
            Self::Number(min, max) => format!("a whole number from {min} to {max}"),
            Self::Choice(names) => format!("one of `{}`", names.join("`, `")),
            Self::Texts(count_max) => format!("a list of 1 to {count_max} strings"),
        }
    }
}

impl Tool {
    /// The arguments as a JSON Schema of the subset that all providers take.
    pub(super) fn schema(&self) -> Writer {
        let mut properties = Writer::object();
        for argument in self.arguments {
            let mut property = Writer::object();
            property.text("description", argument.description);
            property.text(
                "type",
                match argument.form {
                    Form::Text | Form::Choice(_) => "string",
                    Form::Flag => "boolean",
                    Form::Number(..) => "integer",
                    Form::Texts(_) => "array",
                },
            );
            match argument.form {
                Form::Choice(names) => property.texts("enum", names),
                Form::Number(min, max) => {
                    property.number("minimum", min);
                    property.number("maximum", max);
                }
                Form::Texts(_) => {
                    let mut items = Writer::object();
                    items.text("type", "string");
                    property.object_at("items", items);
                }
                Form::Text | Form::Flag => {}
            }
            properties.object_at(argument.name, property);
        }
        let needed = self.arguments.iter().filter(|argument| argument.needed);
        let needed: Vec<&str> = needed.map(|argument| argument.name).collect();
        let mut schema = Writer::object();
        schema.text("type", "object");
        schema.object_at("properties", properties);
        schema.texts("required", &needed);
        schema
    }

    /// Reads what a model wrote.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no JSON object, an argument of another form or name, or one that is needed
    /// and missing.
    pub(super) fn read(&self, raw: &str) -> Result<Arguments> {
        let raw = if raw.trim().is_empty() { "{}" } else { raw };
        let Ok(members) = json::object(raw) else {
            return Err(Error::invalid("the arguments must be one JSON object"));
        };
        let mut values = Vec::new();
        for member in members {
            let key = json::text(raw, member.key);
            let Some(argument) = self.arguments.iter().find(|argument| argument.name == key) else {
                let names: Vec<&str> = self.arguments.iter().map(|one| one.name).collect();
                return Err(Error::invalid(format_args!(
                    "`{key}` is no argument; allowed are `{}`",
                    names.join("`, `")
                )));
            };
            let text = json::text(raw, member.value);
            let is_unsaid =
                member.kind == Kind::Null || (matches!(&*text, "" | "[]") && !argument.needed);
            if is_unsaid {
                continue;
            }
            let list = || texts(raw, &member);
            match argument.form.value(text, member.kind, &list) {
                Some(value) => values.push((argument.name, value)),
                None => return Err(must_be(argument)),
            }
        }
        let is_missing = |argument: &&Argument| {
            argument.needed && !values.iter().any(|(name, _)| *name == argument.name)
        };
        match self.arguments.iter().find(is_missing) {
            Some(argument) => Err(must_be(argument)),
            None => Ok(Arguments(values)),
        }
    }
}

/// The elements of a member that is an array of strings, without empty ones.
fn texts(raw: &str, member: &json::Member) -> Option<Vec<String>> {
    if member.kind != Kind::Array {
        return None;
    }
    let mut texts = Vec::new();
    for element in json::elements(raw, member.value) {
        let text = json::text(raw, element.span);
        match element.kind {
            Kind::String if text.is_empty() => {}
            Kind::String => texts.push(text.into_owned()),
            _ => return None,
        }
    }
    Some(texts)
}

fn must_be(argument: &Argument) -> Error {
    let wanted = argument.form.wanted();
    let needed = if argument.needed { " and is needed" } else { "" };
    Error::invalid(format_args!("`{}` must be {wanted}{needed}", argument.name))
}

/// What a call says.
pub(super) struct Arguments(Vec<(&'static str, Value)>);

impl Arguments {
    /// Of arguments that are given twice the last counts.
    fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A string; `None`: it was not given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A list of strings; empty: it was not given.
    pub(super) fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Value::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Whether a flag was set.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Flag(true)))
    }

    /// A number; `None`: it was not given.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Adds what was given under these names to an object, under the other ones.
    pub(super) fn copy(&self, names: &[(&str, &str)], to: &mut Writer) {
        for (from, key) in names {
            match self.value(from) {
                Some(Value::Text(text)) => to.text(key, text),
                Some(Value::Number(number)) => to.number(key, *number),
                Some(Value::Flag(flag)) => to.flag(key, *flag),
                Some(Value::Texts(texts)) => to.texts(key, texts),
                None => {}
            }
        }
    }
}
