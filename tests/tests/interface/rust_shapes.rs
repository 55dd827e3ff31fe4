//! The structs for Rust read a value of a union as the shape that the value has.
//!
//! Serde takes the first shape of a union that reads the value. Input: samples made from the
//! description. Output: the variant that each sample is read as.

use lcm_host::shapes;
use serde_json::{Map, Value, json};
use xtask::interface::{Exports, Form, FreeJson, Kind, Schema};

use super::root;

/// Name of the variant that a value is read as, and the value as that variant writes it.
type ReadUnion = fn(Value) -> serde_json::Result<(String, Value)>;

/// Pairs the name of each union with the function that reads it.
macro_rules! list_unions {
    ($($name:ident),*) => {
        [$((stringify!($name), |value| {
            let read: shapes::$name = serde_json::from_value(value)?;
            let text = format!("{read:?}");
            let variant = text.split('(').next().unwrap_or_default().to_owned();
            Ok((variant, serde_json::to_value(&read)?))
        })),*]
    };
}

const UNIONS: [(&str, ReadUnion); 10] = list_unions![
    GrepMatch,
    Description,
    AskProgress,
    StatusReport,
    StoreEvent,
    ListedItem,
    DriveTask,
    DriveInstruction,
    DriveResult,
    DriveEvent
];

/// How much a sample contains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SampleSize {
    /// Required members, null where possible, no elements that are not required.
    Smallest,
    /// All members, no null, at least one element in each list.
    Fullest,
}

/// Makes a value of a kind.
fn make_sample(schema: &Schema, kind: &Kind, size: SampleSize) -> Value {
    let is_full = size == SampleSize::Fullest;
    match kind {
        Kind::Null | Kind::Host(_) => Value::Null,
        Kind::Bool(_) => json!(true),
        Kind::Integer(least, _) => json!(least),
        Kind::Number => json!(0.5),
        Kind::Text(least, _) => json!("x".repeat(least.unwrap_or(0))),
        Kind::Time => json!("2026-01-02T03:04:05.000Z"),
        Kind::Constant(text) => json!(text),
        Kind::Nullable(inner) if is_full => make_sample(schema, inner, size),
        Kind::Nullable(_) => Value::Null,
        Kind::List(inner, least, _) => {
            let count = least.unwrap_or(0).max(usize::from(is_full));
            (0..count).map(|_| make_sample(schema, inner, size)).collect()
        }
        Kind::Ref(name) => match &schema.find_shape(name).unwrap().form {
            Form::Choice(choices) => json!(choices[0]),
            Form::Union(names) => make_sample(schema, &Kind::Ref(names[0].clone()), size),
            Form::Free(FreeJson::Object) => json!({"a": 1}),
            Form::Free(FreeJson::Value) => json!([1]),
            Form::Host(_) => Value::Null,
            Form::Object(members) => {
                let members = members.iter().filter(|member| member.is_required || is_full);
                let sample =
                    |kind: &Kind, name: &str| (name.to_owned(), make_sample(schema, kind, size));
                Value::Object(
                    members.map(|member| sample(&member.kind, &member.name)).collect::<Map<_, _>>(),
                )
            }
        },
    }
}

#[test]
fn a_value_of_a_union_is_read_as_its_own_shape() {
    let schema = Schema::load(&root()).unwrap();
    let exports = Exports::load(&root()).unwrap();
    let mut found = Vec::new();
    let mut unions = Vec::new();
    for shape in schema.closure(exports.wire_roots()) {
        let Form::Union(names) = &shape.form else { continue };
        unions.push(shape.name.as_str());
        let Some((_, read)) = UNIONS.iter().find(|(union, _)| *union == shape.name) else {
            continue;
        };
        for name in names {
            for size in [SampleSize::Smallest, SampleSize::Fullest] {
                let sample = make_sample(&schema, &Kind::Ref(name.clone()), size);
                match read(sample.clone()) {
                    Ok((variant, _)) if variant != *name => {
                        found.push(format!("{} reads {name} as {variant}", shape.name));
                    }
                    Ok((_, written)) if written != sample => {
                        found.push(format!("{name} writes {sample} as {written}"));
                    }
                    Ok(_) => {}
                    Err(error) => found.push(format!("{name}: {error}: {sample}")),
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    unions.retain(|union| UNIONS.iter().all(|(known, _)| known != union));
    assert!(unions.is_empty(), "`UNIONS` must name {unions:?}");
}
