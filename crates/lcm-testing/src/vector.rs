//! Reads the format of a golden vector.

use crate::json::Json;

/// What a step expects.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// That the call succeeds.
    Success,
    /// That the result matches.
    Match(Json),
    /// That the call fails with this code and, if given, a message that matches.
    Failure {
        /// The code.
        code: String,
        /// Matched against the message.
        message: Option<Json>,
    },
}

/// One step of a vector.
#[derive(Clone, Debug)]
pub struct Step {
    /// `interface.function`, `restart`, `drive` or `offline`.
    pub call: String,
    /// Its arguments, references not yet replaced.
    pub args: Json,
    /// What it expects.
    pub expectation: Expectation,
}

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The claim.
    pub description: String,
    /// Configuration of every new instance.
    pub config: Option<Json>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Scripted answers for `drive` and `compaction.run`.
    pub completions: Vec<Json>,
    /// Digest of the store at the end; `None`: not blessed yet.
    pub store_sha256: Option<String>,
}

impl Vector {
    /// Reads a vector.
    ///
    /// # Errors
    ///
    /// It is no JSON, has a field that the format does not know, or lacks one that it needs.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = Json::parse(text)?;
        let known = ["description", "config", "steps", "completions", "store_sha256"];
        only(&value, "vector", &known)?;
        let description = string(&value, "description").ok_or("no `description`")?;
        let steps: Vec<Step> = list(&value, "steps")?
            .iter()
            .enumerate()
            .map(|(index, step)| read_step(step).map_err(|why| format!("step {index}: {why}")))
            .collect::<Result<_, _>>()?;
        if steps.is_empty() {
            return Err("no `steps`".to_owned());
        }
        Ok(Self {
            description,
            config: value.field("config").cloned(),
            steps,
            completions: list(&value, "completions")?.to_vec(),
            store_sha256: string(&value, "store_sha256").filter(|sha256| !sha256.is_empty()),
        })
    }
}

fn read_step(value: &Json) -> Result<Step, String> {
    only(value, "step", &["call", "args", "expect", "expect_error", "note"])?;
    let expectation = match (value.field("expect"), value.field("expect_error")) {
        (None, None) => Expectation::Success,
        (Some(expected), None) => Expectation::Match(expected.clone()),
        (None, Some(failure)) => {
            only(failure, "expect_error", &["code", "message"])?;
            Expectation::Failure {
                code: string(failure, "code").ok_or("`expect_error` without `code`")?,
                message: failure.field("message").cloned(),
            }
        }
        (Some(_), Some(_)) => return Err("both `expect` and `expect_error`".to_owned()),
    };
    Ok(Step {
        call: string(value, "call").ok_or("no `call`")?,
        args: value.field("args").cloned().unwrap_or(Json::Null),
        expectation,
    })
}

fn only(value: &Json, what: &str, known: &[&str]) -> Result<(), String> {
    let Json::Object(entries) = value else { return Err(format!("a {what} is an object")) };
    match entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, _)) => Err(format!("a {what} has no field `{key}`")),
        None => Ok(()),
    }
}

fn string(value: &Json, key: &str) -> Option<String> {
    value.field(key).and_then(Json::as_str).map(str::to_owned)
}

fn list<'a>(value: &'a Json, key: &str) -> Result<&'a [Json], String> {
    match value.field(key) {
        None => Ok(&[]),
        Some(Json::Array(elements)) => Ok(elements),
        Some(_) => Err(format!("`{key}` is an array")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused() {
        let text = r#"{"description":"d","steps":[{"call":"restart","arg":{}}]}"#;
        assert_eq!(Vector::parse(text).unwrap_err(), "step 0: a step has no field `arg`");
        let text = r#"{"description":"d","step":[]}"#;
        assert_eq!(Vector::parse(text).unwrap_err(), "a vector has no field `step`");
    }

    #[test]
    fn a_step_expects_one_thing() {
        let text = r#"{"description":"d","steps":[
            {"call":"restart","expect":{},"expect_error":{"code":"x"}}]}"#;
        assert!(Vector::parse(text).unwrap_err().contains("both"));
    }
}
