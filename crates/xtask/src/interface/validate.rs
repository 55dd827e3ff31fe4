//! Compares JSON with its description.
//!
//! Input: a value and the kind or shape that it should have. Output: the differences, one line
//! each with the path of the value. Undescribed members and missing members are findings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::{Form, FreeJson, Kind, Member, Schema};

impl Schema {
    /// Lists the differences between a value and its kind.
    #[must_use]
    pub fn compare(&self, kind: &Kind, value: &Value) -> Vec<String> {
        let mut findings = Vec::new();
        self.compare_kind(kind, value, "$", &mut findings);
        findings
    }

    /// Returns the names of the shapes of a value and of all values in it.
    #[must_use]
    pub fn list_shapes(&self, kind: &Kind, value: &Value) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.collect_shapes(kind, value, &mut names);
        names
    }

    fn collect_shapes(&self, kind: &Kind, value: &Value, names: &mut BTreeSet<String>) {
        match kind {
            Kind::Nullable(inner) if !value.is_null() => self.collect_shapes(inner, value, names),
            Kind::List(inner, ..) => {
                for element in value.as_array().into_iter().flatten() {
                    self.collect_shapes(inner, element, names);
                }
            }
            Kind::Ref(name) => {
                let Some(shape) = self.shapes.get(name) else { return };
                names.insert(name.clone());
                match &shape.form {
                    Form::Object(members) => {
                        for member in members {
                            if let Some(inner) = value.get(&member.name) {
                                self.collect_shapes(&member.kind, inner, names);
                            }
                        }
                    }
                    Form::Union(options) => {
                        let options = options.iter().map(|name| Kind::Ref(name.clone()));
                        for option in options.filter(|one| self.compare(one, value).is_empty()) {
                            self.collect_shapes(&option, value, names);
                        }
                    }
                    Form::Choice(_) | Form::Free(_) | Form::Host(_) => {}
                }
            }
            _ => {}
        }
    }

    fn compare_kind(&self, kind: &Kind, value: &Value, path: &str, findings: &mut Vec<String>) {
        let mut expect = |fits: bool, what: String| {
            if !fits {
                findings.push(format!("{path} must be {what}, got {}", shorten_value(value)));
            }
        };
        match kind {
            Kind::Null => expect(value.is_null(), "null".into()),
            Kind::Bool(false) => expect(value.is_boolean(), "a flag".into()),
            Kind::Bool(true) => expect(value.as_bool() == Some(true), "true".into()),
            Kind::Integer(least, most) => {
                expect(is_within(value, *least, *most), bounds_text(*least, *most));
            }
            Kind::Number => expect(value.is_number(), "a number".into()),
            Kind::Text(least, most) => {
                let bytes = value.as_str().map(str::len);
                let fits = bytes.is_some_and(|bytes| {
                    least.is_none_or(|least| bytes >= least)
                        && most.is_none_or(|most| bytes <= most)
                });
                expect(fits, "a text within its bounds".into());
            }
            Kind::Time => expect(value.as_str().is_some_and(is_time), "a time".into()),
            Kind::Constant(text) => expect(value.as_str() == Some(text), format!("`{text}`")),
            Kind::Host(_) => expect(false, "absent on the wire".into()),
            Kind::Nullable(inner) => {
                if !value.is_null() {
                    self.compare_kind(inner, value, path, findings);
                }
            }
            Kind::List(inner, least, most) => {
                let Some(elements) = value.as_array() else {
                    expect(false, "an array".into());
                    return;
                };
                let count = elements.len();
                let fits = least.is_none_or(|least| count >= least)
                    && most.is_none_or(|most| count <= most);
                expect(fits, "an array within its bounds".into());
                for (index, element) in elements.iter().enumerate() {
                    self.compare_kind(inner, element, &format!("{path}[{index}]"), findings);
                }
            }
            Kind::Ref(name) => self.compare_shape(name, value, path, findings),
        }
    }

    fn compare_shape(&self, name: &str, value: &Value, path: &str, findings: &mut Vec<String>) {
        let Some(shape) = self.shapes.get(name) else {
            findings.push(format!("{path}: there is no shape `{name}`"));
            return;
        };
        match &shape.form {
            Form::Free(FreeJson::Value) => {}
            Form::Free(FreeJson::Object) if value.is_object() => {}
            Form::Choice(choices) => {
                if !value.as_str().is_some_and(|text| choices.iter().any(|one| one == text)) {
                    findings.push(format!("{path} is no `{name}`: {}", shorten_value(value)));
                }
            }
            Form::Union(names) => self.compare_union(names, value, path, findings),
            Form::Object(members) => self.compare_object(members, value, path, findings),
            Form::Free(FreeJson::Object) | Form::Host(_) => {
                findings.push(format!("{path} is no `{name}`: {}", shorten_value(value)));
            }
        }
    }

    fn compare_object(
        &self,
        members: &[Member],
        value: &Value,
        path: &str,
        findings: &mut Vec<String>,
    ) {
        let Some(object) = value.as_object() else {
            findings.push(format!("{path} must be an object, got {}", shorten_value(value)));
            return;
        };
        for key in object.keys() {
            if members.iter().all(|member| member.name != *key) {
                findings.push(format!("{path}.{key} has no description"));
            }
        }
        for member in members {
            match object.get(&member.name) {
                Some(inner) => {
                    let path = format!("{path}.{}", member.name);
                    self.compare_kind(&member.kind, inner, &path, findings);
                }
                None if member.is_required => {
                    findings.push(format!("{path}.{} is missing", member.name));
                }
                None => {}
            }
        }
    }

    /// Compares a value with the shapes of a union, exactly one of which must fit. If no shape
    /// fits, the findings are those of the nearest shape.
    fn compare_union(
        &self,
        names: &[String],
        value: &Value,
        path: &str,
        findings: &mut Vec<String>,
    ) {
        let mut attempts: Vec<(&str, Vec<String>)> = Vec::new();
        for name in names {
            let mut found = Vec::new();
            self.compare_shape(name, value, path, &mut found);
            attempts.push((name, found));
        }
        let fitting: Vec<&str> =
            attempts.iter().filter(|(_, found)| found.is_empty()).map(|(name, _)| *name).collect();
        match fitting.as_slice() {
            [_] => {}
            [] => {
                let nearest = attempts.into_iter().min_by_key(|(_, found)| found.len());
                if let Some((name, found)) = nearest {
                    findings.push(format!("{path} is nearest to `{name}`"));
                    findings.extend(found);
                }
            }
            several => findings.push(format!("{path} fits {several:?}")),
        }
    }
}

fn is_within(value: &Value, least: i64, most: Option<u64>) -> bool {
    match (value.as_u64(), value.as_i64()) {
        (Some(number), _) => {
            most.is_none_or(|most| number <= most)
                && i64::try_from(number).map_or(true, |number| number >= least)
        }
        (None, Some(number)) => number >= least,
        (None, None) => false,
    }
}

fn bounds_text(least: i64, most: Option<u64>) -> String {
    match most {
        Some(most) => format!("a whole number from {least} to {most}"),
        None => format!("a whole number from {least}"),
    }
}

/// Whether a text is a time like `2026-01-02T03:04:05.000Z`.
fn is_time(text: &str) -> bool {
    let pattern = "0000-00-00T00:00:00.000Z";
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            wanted => byte == wanted,
        })
}

fn shorten_value(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(60).collect()
}
