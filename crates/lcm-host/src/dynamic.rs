//! Calls any exported function of `wit/` by its name, with JSON arguments and a JSON result.
//!
//! In: `interface.function` and an object of arguments. Out: the result of the function. Names are
//! in snake_case, enumeration cases in kebab-case, a variant is `{"case": payload}`, an absent
//! option is null, a tuple is an array. The loaded component provides the types, so a new function
//! needs no change here. `drive` calls functions this way; other callers have the typed methods.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use wasmtime::component::{Func, Type, Val, types::ComponentFunc};

use crate::{
    bindings::types,
    error::{Code, Error, Result},
    instance::{Exports, HostState},
    lcm::{CONFLICT_RETRIES_MAX, CallResult, Lcm},
};

type Store = wasmtime::Store<HostState>;

impl Lcm {
    /// Calls `interface.function`. The default of an absent or null argument or field depends on
    /// its type: none, an empty text or list, 0, false, or the first case of an enumeration. A
    /// variant has no default.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the function does not exist, or an argument is unknown or has the wrong
    ///   type.
    /// - errors of the component.
    pub fn call_json(&self, function: &str, arguments: &Value) -> Result<Value> {
        self.call_value(function, arguments, CONFLICT_RETRIES_MAX).map_err(|failure| failure.error)
    }

    /// Calls `interface.function` and repeats the call at most `repeats_max` times after conflicts.
    /// A failure has the state of the commit.
    pub(crate) fn call_value(
        &self,
        function: &str,
        arguments: &Value,
        repeats_max: u32,
    ) -> CallResult<Value> {
        let unknown =
            || invalid(format!("`{function}` must be an exported function, such as `recall.grep`"));
        let (interface, name) = function.split_once('.').ok_or_else(unknown)?;
        let interface = self.component().interface(interface).ok_or_else(unknown)?;
        let name = name.replace('_', "-");
        let answer = self.call_known(
            function,
            repeats_max,
            || arguments.clone(),
            |exports, store| {
                let Some(callee) = find(exports, store, &interface, &name) else {
                    return Ok(Ok(Err(unknown())));
                };
                let values = match parameters(&callee.ty(&*store), arguments) {
                    Ok(values) => values,
                    Err(error) => return Ok(Ok(Err(error))),
                };
                let mut results = [Val::Bool(false)];
                callee.call(store, &values, &mut results)?;
                let [result] = results;
                Ok(settled(result).map(Ok))
            },
        );
        answer?.map_err(Into::into)
    }
}

fn find(exports: &Exports, store: &mut Store, interface: &str, name: &str) -> Option<Func> {
    let interface = exports.by_name.get_export_index(&mut *store, None, interface)?;
    let function = exports.by_name.get_export_index(&mut *store, Some(&interface), name)?;
    exports.by_name.get_func(store, function)
}

fn parameters(callee: &ComponentFunc, arguments: &Value) -> Result<Vec<Val>> {
    let named: Vec<(String, Type)> = callee.params().map(|(name, of)| (snake(name), of)).collect();
    let given = object(arguments, "arguments")?;
    known(given, "arguments", |key| named.iter().any(|(name, _)| name == key))?;
    named.iter().map(|(name, of)| value(of, given.get(name), name)).collect()
}

/// Converts the result of a function to JSON, or to the error that the function returned.
fn settled(result: Val) -> std::result::Result<Value, types::Error> {
    match result {
        Val::Result(Ok(value)) => Ok(value.map_or(Value::Null, |value| json(&value))),
        Val::Result(Err(error)) => {
            let error = error.map_or(Value::Null, |error| json(&error));
            let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
            Err(types::Error { code: code(text("code")), message: text("message").to_owned() })
        }
        other => Ok(json(&other)),
    }
}

/// Returns the error code of this name; an unknown name counts as `corrupt`.
pub(crate) fn code(name: &str) -> types::ErrorCode {
    use types::ErrorCode as Wit;
    match name {
        "invalid-input" => Wit::InvalidInput,
        "not-found" => Wit::NotFound,
        "exists" => Wit::Exists,
        "limit-exceeded" => Wit::LimitExceeded,
        "unsupported" => Wit::Unsupported,
        "denied" => Wit::Denied,
        "conflict" => Wit::Conflict,
        "store-unavailable" => Wit::StoreUnavailable,
        "would-block" => Wit::WouldBlock,
        "completion-failed" => Wit::CompletionFailed,
        _ => Wit::Corrupt,
    }
}

/// Converts JSON to a value of type `of`; `None` and null give the default of the type. `place`
/// names the value in errors.
fn value(of: &Type, given: Option<&Value>, place: &str) -> Result<Val> {
    let given = given.filter(|given| !given.is_null());
    Ok(match of {
        Type::Bool => Val::Bool(take(given, place, "true or false", Value::as_bool)?),
        Type::U32 => Val::U32(take(given, place, "an integer from 0 to 4294967295", |given| {
            given.as_u64().and_then(|number| u32::try_from(number).ok())
        })?),
        Type::U64 => Val::U64(take(given, place, "an integer of at least 0", Value::as_u64)?),
        Type::String => {
            Val::String(take(given, place, "a text", |given| given.as_str().map(str::to_owned))?)
        }
        Type::List(list) => {
            let items = take(given, place, "a list", |given| given.as_array().cloned())?;
            let item = |(index, item)| value(&list.ty(), Some(item), &format!("{place}[{index}]"));
            Val::List(items.iter().enumerate().map(item).collect::<Result<_>>()?)
        }
        Type::Option(option) => Val::Option(match given {
            Some(given) => Some(Box::new(value(&option.ty(), Some(given), place)?)),
            None => None,
        }),
        Type::Record(record) => {
            let given = object(given.unwrap_or(&Value::Null), place)?;
            let fields: Vec<_> = record.fields().collect();
            known(given, place, |key| fields.iter().any(|field| snake(field.name) == key))?;
            let field = |field: &wasmtime::component::types::Field<'_>| {
                let name = snake(field.name);
                let inner = value(&field.ty, given.get(&name), &format!("{place}.{name}"))?;
                Ok((field.name.to_owned(), inner))
            };
            Val::Record(fields.iter().map(field).collect::<Result<_>>()?)
        }
        Type::Enum(cases) => {
            let first = cases.names().next().unwrap_or_default();
            let name = given.map_or(Some(first), Value::as_str);
            match name.filter(|name| cases.names().any(|case| case == *name)) {
                Some(name) => Val::Enum(name.to_owned()),
                None => {
                    let known: Vec<&str> = cases.names().collect();
                    return Err(invalid(format!("`{place}` must be one of {}", known.join(", "))));
                }
            }
        }
        Type::Variant(variant) => {
            let given = object(given.unwrap_or(&Value::Null), place)?;
            let case = variant.cases().find(|case| given.contains_key(case.name));
            let known = || variant.cases().map(|case| case.name).collect::<Vec<_>>().join(", ");
            let case = case.ok_or_else(|| {
                invalid(format!("`{place}` must have one of the members {}", known()))
            })?;
            let payload = match &case.ty {
                Some(of) => Some(Box::new(value(of, given.get(case.name), place)?)),
                None => None,
            };
            Val::Variant(case.name.to_owned(), payload)
        }
        _ => {
            return Err(Error::internal(format!(
                "`{place}` must have a type that JSON can express"
            )));
        }
    })
}

fn take<T: Default>(
    given: Option<&Value>,
    place: &str,
    wanted: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<T> {
    match given {
        None => Ok(T::default()),
        Some(given) => read(given).ok_or_else(|| invalid(format!("`{place}` must be {wanted}"))),
    }
}

fn object<'a>(given: &'a Value, place: &str) -> Result<&'a Map<String, Value>> {
    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    match given {
        Value::Null => Ok(&*NOTHING),
        Value::Object(fields) => Ok(fields),
        _ => Err(invalid(format!("`{place}` must be an object"))),
    }
}

fn known(given: &Map<String, Value>, place: &str, is_known: impl Fn(&str) -> bool) -> Result<()> {
    match given.keys().find(|key| !is_known(key)) {
        Some(key) => Err(invalid(format!("`{place}` must have known members only, got `{key}`"))),
        None => Ok(()),
    }
}

fn json(value: &Val) -> Value {
    let optional = |value: &Option<Box<Val>>| value.as_ref().map_or(Value::Null, |v| json(v));
    match value {
        Val::Bool(flag) => Value::from(*flag),
        Val::U32(number) => Value::from(*number),
        Val::U64(number) => Value::from(*number),
        Val::String(text) | Val::Enum(text) => Value::from(text.as_str()),
        Val::List(items) | Val::Tuple(items) => items.iter().map(json).collect(),
        Val::Option(inner) => optional(inner),
        Val::Record(fields) => {
            fields.iter().map(|(name, inner)| (snake(name), json(inner))).collect()
        }
        Val::Variant(case, payload) => [(case.clone(), optional(payload))].into_iter().collect(),
        // No function of the interface returns another type.
        _ => Value::Null,
    }
}

fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidInput, message)
}
