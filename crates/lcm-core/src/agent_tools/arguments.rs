//! The arguments of a tool: their definitions, and their parser over the same table.
//!
//! In: the JSON of a model. Out: values by name, or one line that names the argument and its
//! allowed values. Models write `null` or an empty string for an absent optional argument, and
//! numbers and flags as strings; the parser accepts all of this. Not here: the meaning of an
//! argument.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, JsonKind, JsonWriter},
    },
    types::api::ToolScope,
};

/// Greatest value of an argument without a bound of its own: the greatest 32-bit number.
pub(super) const NUMBER_MAX: u64 = 4_294_967_295;

/// Arguments that exist only in the scope of the store.
const STORE_ARGUMENTS: [&str; 2] = ["conversationId", "allConversations"];

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

impl ToolArgument {
    /// Returns whether the argument exists in a scope.
    fn is_in_scope(&self, scope: ToolScope) -> bool {
        scope == ToolScope::Store || !STORE_ARGUMENTS.contains(&self.name)
    }
}

/// Type and bounds of an argument.
pub(super) enum ArgumentType {
    Text,
    Flag,
    /// An integer between two bounds, both included.
    Number(u64, u64),
    /// One of these strings; `-` in a value counts as `_`.
    Choice(&'static [&'static str]),
    /// A list of strings, from one to this number. A single string counts as a list of one.
    Texts(usize),
}

/// A parsed value.
enum ArgumentValue {
    Text(String),
    Flag(bool),
    Number(u64),
    Texts(Vec<String>),
}

impl ArgumentType {
    /// Parses a value; `None`: the text is not a value of this type.
    ///
    /// `list` returns the elements if the value is an array of strings.
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
                // Models write `full-text` and `full_text`.
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

    /// Describes the allowed values for an error.
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
    /// Iterates over the arguments that exist in a scope.
    fn arguments_in(&self, scope: ToolScope) -> impl Iterator<Item = &'static ToolArgument> {
        self.arguments.iter().filter(move |argument| argument.is_in_scope(scope))
    }

    /// Builds the JSON Schema of the arguments, in the subset that all providers accept.
    pub(super) fn build_schema(&self, scope: ToolScope) -> JsonWriter {
        let mut properties = JsonWriter::new_object();
        for argument in self.arguments_in(scope) {
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
        let required = self.arguments.iter().filter(|argument| argument.is_required);
        let required: Vec<&str> = required.map(|argument| argument.name).collect();
        let mut schema = JsonWriter::new_object();
        schema.add_text("type", "object");
        schema.add_object("properties", properties);
        schema.add_texts("required", &required);
        schema
    }

    /// Parses the arguments of a model. An argument of a wider scope is an unknown argument,
    /// whatever its value.
    ///
    /// # Errors
    ///
    /// `invalid-input`: not a JSON object, an unknown argument, an invalid value, or a missing
    /// required argument.
    pub(super) fn read_arguments(&self, raw: &str, scope: ToolScope) -> Result<ToolArguments> {
        let raw = if raw.trim().is_empty() { "{}" } else { raw };
        let Ok(members) = json::parse_object(raw) else {
            return Err(Error::invalid_input("the arguments must be one JSON object"));
        };
        let mut values = Vec::new();
        for member in members {
            let key = json::text(raw, member.key);
            let known = self.arguments_in(scope).find(|argument| argument.name == key);
            let Some(argument) = known else {
                let names: Vec<&str> = self.arguments_in(scope).map(|one| one.name).collect();
                return Err(Error::invalid_input(format_args!(
                    "`{key}` is not an argument; allowed are `{}`",
                    names.join("`, `")
                )));
            };
            let text = json::text(raw, member.value);
            let is_absent = member.kind == JsonKind::Null
                || (matches!(&*text, "" | "[]") && !argument.is_required);
            if is_absent {
                continue;
            }
            let list = || read_string_array(raw, &member);
            match argument.value_type.parse_value(text, member.kind, &list) {
                Some(value) => values.push((argument.name, value)),
                None => return Err(build_argument_error(argument)),
            }
        }
        let is_missing = |argument: &&ToolArgument| {
            argument.is_required && !values.iter().any(|(name, _)| *name == argument.name)
        };
        match self.arguments.iter().find(is_missing) {
            Some(argument) => Err(build_argument_error(argument)),
            None => Ok(ToolArguments(values)),
        }
    }
}

/// Reads the elements of an array of strings, without empty strings; `None`: the value is not an
/// array of strings.
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

/// Builds the error of an invalid or missing argument.
fn build_argument_error(argument: &ToolArgument) -> Error {
    let wanted = argument.value_type.describe_type();
    let required = if argument.is_required { " and is required" } else { "" };
    Error::invalid_input(format_args!("`{}` must be {wanted}{required}", argument.name))
}

/// Parsed arguments of a call.
pub(super) struct ToolArguments(Vec<(&'static str, ArgumentValue)>);

impl ToolArguments {
    /// Finds a value by its name; of equal names the last counts. `None`: the argument is absent.
    fn find_value(&self, name: &str) -> Option<&ArgumentValue> {
        self.0.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns a string; `None`: the argument is absent.
    pub(super) fn get_text(&self, name: &str) -> Option<&str> {
        match self.find_value(name) {
            Some(ArgumentValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a list of strings; empty: the argument is absent.
    pub(super) fn get_texts(&self, name: &str) -> &[String] {
        match self.find_value(name) {
            Some(ArgumentValue::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Returns whether a flag is true.
    pub(super) fn is_set(&self, name: &str) -> bool {
        matches!(self.find_value(name), Some(ArgumentValue::Flag(true)))
    }

    /// Returns a number; `None`: the argument is absent.
    pub(super) fn get_number(&self, name: &str) -> Option<u64> {
        match self.find_value(name) {
            Some(ArgumentValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Copies the present arguments of `names` into an object. Each pair has the name of the
    /// argument and of the member.
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
