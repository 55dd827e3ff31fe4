//! Tests that the description is parsed correctly, and that a value with another shape is found.

use serde_json::json;

use super::{
    rust,
    schema::{Kind, Member, Schema},
};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

fn sample() -> Schema {
    let text = json!({
        "$schema": DRAFT, "$id": "a.json", "description": "A sample.",
        "$defs": {
            "Color": {"description": "A color.", "type": "string", "enum": ["red", "light-blue"]},
            "Dot": {
                "description": "A dot.", "type": "object", "additionalProperties": false,
                "required": ["color", "at"],
                "properties": {
                    "color": {"description": "Its color.", "$ref": "#/$defs/Color"},
                    "at": {"description": "Its time.", "type": "string", "format": "date-time"},
                    "size": {"description": "Its size.", "type": ["integer", "null"], "maximum": 9}
                }
            }
        }
    });
    Schema::parse(&[("a", text.to_string())]).unwrap()
}

#[test]
fn a_value_that_differs_is_found() {
    let schema = sample();
    let dot = Kind::Ref("Dot".into());
    let time = "2026-01-02T03:04:05.000Z";
    let good = json!({"color": "red", "at": time, "size": null});
    assert_eq!(schema.compare(&dot, &good), Vec::<String>::new());
    for bad in [
        json!({"color": "red", "at": time, "shade": 1}),
        json!({"color": "red"}),
        json!({"color": "blue", "at": time}),
        json!({"color": "red", "at": "2026-01-02"}),
        json!({"color": "red", "at": time, "size": 10}),
        json!({"color": "red", "at": time, "size": -1}),
        json!([]),
    ] {
        assert_eq!(schema.compare(&dot, &bad).len(), 1, "{bad}");
    }
}

#[test]
fn keywords_outside_the_subset_are_refused() {
    let text = |node: &str| {
        format!(
            "{{\"$schema\": \"{DRAFT}\", \"$id\": \"a.json\", \"description\": \"\", \
             \"$defs\": {{\"A\": {node}}}}}"
        )
    };
    let parse = |node: &str| Schema::parse(&[("a", text(node))]);
    let object = "\"description\": \"A.\", \"type\": \"object\", \"additionalProperties\": false";
    assert!(parse(&format!("{{{object}}}")).is_ok());
    assert!(parse(&format!("{{{object}, \"pattern\": \"a\"}}")).is_err());
    assert!(parse("{\"description\": \"A.\", \"type\": \"object\"}").is_err());
    assert!(parse(&format!("{{{object}, \"required\": [\"b\"]}}")).is_err());
    let member = "\"properties\": {\"b\": {\"description\": \"B.\", \"$ref\": \"#/$defs/C\"}}";
    assert!(parse(&format!("{{{object}, {member}}}")).is_err());
}

#[test]
fn null_is_kept_where_absence_means_something_else() {
    let mut member = Member {
        name: "size".into(),
        description: "Its size; absent: 9; null: no size.".into(),
        kind: Kind::Nullable(Box::new(Kind::Integer(0, Some(9)))),
        is_required: false,
        default: None,
        group: None,
        only: None,
    };
    let text = rust::write_member(&member);
    assert!(text.contains("deserialize_with = \"super::read_nullable\""), "{text}");
    assert!(text.contains("size: Option<Option<u32>>,"), "{text}");
    member.default = Some(json!(null));
    assert!(rust::write_member(&member).contains("size: Option<u32>,"));
    (member.default, member.is_required) = (None, true);
    let text = rust::write_member(&member);
    assert!(text.contains("size: Option<u32>,") && !text.contains("default"), "{text}");
}

/// Without its own readers, serde would accept an absent `Option` as `None`, and any text for a
/// constant.
#[test]
fn a_required_member_is_read_with_the_values_that_it_may_have() {
    let mut member = Member {
        name: "state".into(),
        description: "Its state.".into(),
        kind: Kind::Nullable(Box::new(Kind::Number)),
        is_required: true,
        default: None,
        group: None,
        only: None,
    };
    let reader = |name: &str| format!("#[serde(deserialize_with = \"{name}\")]");
    assert!(rust::write_member(&member).contains(&reader("Option::deserialize")));
    member.kind = Kind::Constant("half-open".into());
    assert!(rust::write_member(&member).contains(&reader("read_half_open")));
    member.kind = Kind::Number;
    assert!(!rust::write_member(&member).contains("serde"));
}

#[test]
fn files_that_refer_to_each_other_in_a_circle_are_refused() {
    let file = |name: &str, shape: &str, target: &str| {
        let text = json!({
            "$schema": DRAFT, "$id": format!("{name}.json"), "description": "A sample.",
            "$defs": {shape: {
                "description": "A sample.", "type": "object", "additionalProperties": false,
                "properties": {"inner": {"description": "Its inner value.", "$ref": target}}
            }}
        });
        text.to_string()
    };
    let a = ("a", file("a", "Apple", "b.json#/$defs/Berry"));
    let b = ("b", file("b", "Berry", "c.json#/$defs/Cherry"));
    // A shape may refer to itself, and a file to a later file.
    let line = [a.clone(), b.clone(), ("c", file("c", "Cherry", "#/$defs/Cherry"))];
    assert!(Schema::parse(&line).is_ok());
    let circle = [a, b, ("c", file("c", "Cherry", "b.json#/$defs/Berry"))];
    let error = Schema::parse(&circle).unwrap_err().to_string();
    assert_eq!(
        error,
        "files of schema/ must not refer to each other in a circle, got `Berry` of b.json refers \
         to `Cherry` of c.json, `Cherry` of c.json refers to `Berry` of b.json; move a shape that \
         several files use into common.json"
    );
}
