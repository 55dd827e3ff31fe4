//! The arguments of a tool: what a definition says of them, and their reading by the same table.
//!
//! In: what a model wrote. Out: values by name, or one line that names the argument and what it may
//! be. Models fill what they need not say with `null` or an empty string, and write numbers as
//! strings; both are taken. Not here: what an argument means.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_text::base::{
    error::{Error, Result},
    json::{self, JsonKind, JsonWriter},
};

/// Greatest number of an argument that is bounded by what is stored: that of 32 bits.
pub(super) const NUMBER_MAX: u64 = 4_294_967_295;

/// A tool as a model sees it.
pub(super) struct ToolDefinition {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) arguments: &'static [ToolArgument],
}

/// An argument of a tool.
pub(super) struct ToolArgument {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) value_type: ArgumentType,
    pub(super) is_required: bool,
}

/// What an argument may be.
pub(super) enum ArgumentType {
    Text,
    Flag,
    /// A whole number from the first to the second.
    Number(u64, u64),
    Choice(&'static [&'static str]),
    /// At most so many strings; one alone may stand without a list.
    Texts(usize),
}

/// A value that was read.
enum ArgumentValue {
    Text(String),
    Flag(bool),
    Number(u64),
    Texts(Vec<String>),
}

impl ArgumentType {
    /// The value in a text of this type; `None`: it is not one of this form.
    ///
    /// `list` gives the elements of an array.
    fn parse_value(
        &self,
        text: Cow<'_, str>,
        kind: JsonKind,
        list: &dyn Fn() -> Option<Vec<String>>,
    ) -> Option<ArgumentValue> {
        let is_text = kind == JsonKind::String;
        match self {
            Self::Text => {
                (is_text && !text.is_empty()).then(|| ArgumentValue::Text(text.into_owned()))
            }
            Self::Flag if is_text || kind == JsonKind::Bool => match &*text {
                "true" => Some(ArgumentValue::Flag(true)),
                "false" => Some(ArgumentValue::Flag(false)),
                _ => None,
            },
            Self::Number(min, max) if is_text || kind == JsonKind::Number => {
                let number = text.parse().ok().filter(|number| (*min..=*max).contains(number));
                number.map(ArgumentValue::Number)
            }
            Self::Choice(names) if is_text => {
                // Both spellings are in use.
                let text = text.replace('-', "_");
                names.contains(&text.as_str()).then_some(ArgumentValue::Text(text))
            }
            Self::Texts(count_max) => {
                let texts = if is_text { Some(alloc::vec![text.into_owned()]) } else { list() };
                let fits = |texts: &Vec<String>| (1..=*count_max).contains(&texts.len());
                texts.filter(fits).map(ArgumentValue::Texts)
            }
            _ => None,
        }
    }

    /// What an argument of this form must be.
    fn describe_type(&self) -> String {
        match self {
            Self::Text => String::from("a string that is not empty"),
            Self::Flag => String::from("true or false"),
            Self::Number(min, max) => format!("a whole number from {min} to {max}"),
            Self::Choice(names) => format!("one of `{}`", names.join("`, `")),
            Self::Texts(count_max) => format!("a list of 1 to {count_max} strings"),
        }
    }
}

impl ToolDefinition {
    /// The arguments as a JSON Schema of the subset that all providers take.
    pub(super) fn build_schema(&self) -> JsonWriter {
        let mut properties = JsonWriter::new_object();
        for argument in self.arguments {
            let mut property = JsonWriter::new_object();
            property.add_text("description", argument.description);
            property.add_text(
                "type",
                match argument.value_type {
                    ArgumentType::Text | ArgumentType::Choice(_) => "string",
                    ArgumentType::Flag => "boolean",
                    ArgumentType::Number(..) => "integer",
                    ArgumentType::Texts(_) => "array",
                },
            );
            match argument.value_type {
                ArgumentType::Choice(names) => property.add_texts("enum", names),
                ArgumentType::Number(min, max) => {
                    property.add_number("minimum", min);
                    property.add_number("maximum", max);
                }
                ArgumentType::Texts(_) => {
                    let mut items = JsonWriter::new_object();
                    items.add_text("type", "string");
                    property.add_object("items", items);
                }
                ArgumentType::Text | ArgumentType::Flag => {}
            }
            properties.add_object(argument.name, property);
        }
        let needed = self.arguments.iter().filter(|argument| argument.is_required);
        let needed: Vec<&str> = needed.map(|argument| argument.name).collect();
        let mut schema = JsonWriter::new_object();
        schema.add_text("type", "object");
        schema.add_object("properties", properties);
        schema.add_texts("required", &needed);
        schema
    }

    /// Reads what a model wrote.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no JSON object, an argument of another form or name, or one that is needed
    /// and missing.
    pub(super) fn read_arguments(&self, raw: &str) -> Result<ToolArguments> {
        let raw = if raw.trim().is_empty() { "{}" } else { raw };
        let Ok(members) = json::parse_object(raw) else {
            return Err(Error::invalid_input("the arguments must be one JSON object"));
        };
        let mut values = Vec::new();
        for member in members {
            let key = json::text(raw, member.key);
            let Some(argument) = self.arguments.iter().find(|argument| argument.name == key) else {
                let names: Vec<&str> = self.arguments.iter().map(|one| one.name).collect();
                return Err(Error::invalid_input(format_args!(
                    "`{key}` is no argument; allowed are `{}`",
                    names.join("`, `")
                )));
            };
            let text = json::text(raw, member.value);
            let is_unsaid = member.kind == JsonKind::Null
                || (matches!(&*text, "" | "[]") && !argument.is_required);
            if is_unsaid {
                continue;
            }
            let list = || read_string_array(raw, &member);
            match argument.value_type.parse_value(text, member.kind, &list) {
                Some(value) => values.push((argument.name, value)),
                None => return Err(argument_error(argument)),
            }
        }
        let is_missing = |argument: &&ToolArgument| {
            argument.is_required && !values.iter().any(|(name, _)| *name == argument.name)
        };
        match self.arguments.iter().find(is_missing) {
            Some(argument) => Err(argument_error(argument)),
            None => Ok(ToolArguments(values)),
        }
    }
}

/// The elements of a member that is an array of strings, without empty ones.
fn read_string_array(raw: &str, member: &json::JsonMember) -> Option<Vec<String>> {
    if member.kind != JsonKind::Array {
        return None;
    }
    let mut texts = Vec::new();
    for element in json::list_elements(raw, member.value) {
        let text = json::text(raw, element.span);
        match element.kind {
            JsonKind::String if text.is_empty() => {}
            JsonKind::String => texts.push(text.into_owned()),
            _ => return None,
        }
    }
    Some(texts)
}

fn argument_error(argument: &ToolArgument) -> Error {
    let wanted = argument.value_type.describe_type();
    let needed = if argument.is_required { " and is needed" } else { "" };
    Error::invalid_input(format_args!("`{}` must be {wanted}{needed}", argument.name))
}

/// What a call says.
pub(super) struct ToolArguments(Vec<(&'static str, ArgumentValue)>);

impl ToolArguments {
    /// Of arguments that are given twice the last counts.
    fn find_value(&self, name: &str) -> Option<&ArgumentValue> {
        self.0.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A string; `None`: it was not given.
    pub(super) fn get_text(&self, name: &str) -> Option<&str> {
        match self.find_value(name) {
            Some(ArgumentValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A list of strings; empty: it was not given.
    pub(super) fn get_texts(&self, name: &str) -> &[String] {
        match self.find_value(name) {
            Some(ArgumentValue::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Whether a flag was set.
    pub(super) fn is_set(&self, name: &str) -> bool {
        matches!(self.find_value(name), Some(ArgumentValue::Flag(true)))
    }

    /// A number; `None`: it was not given.
    pub(super) fn get_number(&self, name: &str) -> Option<u64> {
        match self.find_value(name) {
            Some(ArgumentValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Adds what was given under these names to an object, under the other ones.
    pub(super) fn copy_into(&self, names: &[(&str, &str)], to: &mut JsonWriter) {
        for (from, key) in names {
            match self.find_value(from) {
                Some(ArgumentValue::Text(text)) => to.add_text(key, text),
                Some(ArgumentValue::Number(number)) => to.add_number(key, *number),
                Some(ArgumentValue::Flag(flag)) => to.add_flag(key, *flag),
                Some(ArgumentValue::Texts(texts)) => to.add_texts(key, texts),
                None => {}
            }
        }
    }
}
