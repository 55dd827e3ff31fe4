//! Parses a golden vector: a test case as JSON, in the format of `tests/vectors/README.md`.

use crate::json::Json;

/// The expected outcome of a step.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// The call succeeds.
    Success,
    /// The call succeeds, and its result matches.
    Match(Json),
    /// The call fails with this code and a message that matches.
    Failure {
        /// The code.
        code: String,
        /// Expectation for the message; `None`: any message.
        message: Option<Json>,
    },
}

/// One step of a vector.
#[derive(Clone, Debug)]
pub struct Step {
    /// `interface.function`, `restart`, `drive` or `offline`.
    pub call: String,
    /// The arguments, in which references to results are not replaced yet.
    pub args: Json,
    /// The expected outcome.
    pub expectation: Expectation,
}

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The claim that the vector proves.
    pub description: String,
    /// Configuration of every new instance; `None`: the defaults.
    pub config: Option<Json>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Scripted answers for `drive` and `compaction.run`.
    pub completions: Vec<Json>,
    /// Expected digest of the store after the last step; `None`: the digest is not recorded yet
    /// (`LCM_BLESS=1` records it).
    pub store_sha256: Option<String>,
}

impl Vector {
    /// Parses a vector.
    ///
    /// # Errors
    ///
    /// The text is no JSON, has an unknown field, lacks a required field, or has a field of a wrong
    /// type.
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
