//! The description is read as it is meant, and a value that differs is found.

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
    assert!(text.contains("size: Option<u32>,") && !text.contains("serde"), "{text}");
}
