//! The configuration of a handle: from JSON and from variables, what is followed, what is told.

use std::sync::{Arc, Mutex};

use lcm_host::{
    Cancel, Code, Lcm, Settings,
    types::{Completion, CompletionRequest, CompletionResult, Finish},
};
use serde_json::Value;

use crate::{
    Folder,
    engine::{NOW, component, transcript},
};

fn variables(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// The first step of a vector: what the reference system's configuration comes to.
fn resolved_in(vector: &str) -> Value {
    let place = format!("../../tests/vectors/setup/{vector}.json");
    let text = std::fs::read_to_string(place).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["steps"][0].clone()
}

fn model(_: &CompletionRequest) -> CompletionResult {
    CompletionResult::Done(Completion {
        text: "Words were said.".to_owned(),
        finish: Finish::Stop,
        model: "m".to_owned(),
        input_tokens: 0,
        output_tokens: 0,
    })
}

#[test]
fn the_reference_configuration_opens_a_handle_and_its_notes_are_told() {
    for (vector, count) in [
        ("reference-sample-configuration-loads", 57),
        ("reference-variables-are-followed-or-reported", 70),
    ] {
        let step = resolved_in(vector);
        let (config, given) = (&step["args"]["config_json"], &step["args"]["variables_json"]);
        let named = given.as_object().unwrap().iter();
        let environment: Vec<(String, String)> =
            named.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect();
        assert!(config.as_object().unwrap().len() + environment.len() >= count);
        let settings =
            Settings::resolve(&component(), &config.to_string(), environment.clone()).unwrap();
        let report = serde_json::to_value(&settings.report).unwrap();
        for (list, expected) in step["expect"]["report"].as_object().unwrap() {
            assert_eq!(report[list], *expected, "{vector}: {list}");
        }

        let told = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&told);
        let lcm = Lcm::builder()
            .path("memory:")
            .model(model)
            .config(config.to_string())
            .environment(environment)
            .on_note(move |line| lines.lock().unwrap().push(line.to_owned()))
            .open_with(&component())
            .unwrap();
        assert_eq!(lcm.version().unwrap(), env!("CARGO_PKG_VERSION"));
        let told = told.lock().unwrap();
        for line in settings.lines() {
            assert!(told.contains(&line), "{line}");
        }
        for line in [
            "`database_path`: not used, the builder has a store",
            "`timeout_ms`: not followed: each model of the builder has its own timeout",
        ] {
            assert!(told.iter().any(|told| told == line), "{told:?}");
        }
    }
}

#[test]
fn what_is_handed_over_goes_before_variables() {
    let settings = |config: &str, given: &[(&str, &str)]| {
        Settings::resolve(&component(), config, variables(given))
    };
    let given = [("LCM_FRESH_TAIL_COUNT", "9"), ("PATH", "x")];
    let both = settings(r#"{"fresh_tail_messages_max":5}"#, &given).unwrap();
    assert_eq!(both.config, r#"{"fresh_tail_messages_max":5}"#);
    assert_eq!(both.report.overridden, ["LCM_FRESH_TAIL_COUNT"]);
    assert_eq!(settings("{}", &given).unwrap().config, r#"{"fresh_tail_count":9}"#);
    for (config, name, text, wanted) in [
        ("{}", "LCM_FRESH_TAIL_COUNT", "all", "`LCM_FRESH_TAIL_COUNT` must be"),
        ("{}", "LCM_TIMEZONE", "Mars/Olympus", "`timezone` must be the name"),
        ("[]", "LCM_ENABLED", "true", "must be one JSON object"),
    ] {
        let error = settings(config, &[(name, text)]).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.message.contains(wanted), "{}", error.message);
    }
}

#[test]
fn a_builder_follows_the_store_and_refuses_a_model_that_nobody_can_ask() {
    let folder = Folder::new();
    let path = folder.path("named.lcm.db");
    let environment = variables(&[("LCM_DATABASE_PATH", path.to_str().unwrap())]);
    let open = || Lcm::builder().environment(environment.clone()).open_with(&component()).unwrap();
    let options = lcm_host::IngestOptions::new(lcm_host::types::Dialect::Lcm, NOW);
    let (messages, cancel) = (transcript(4, 10), Cancel::default());
    open().ingest("c", &messages, &options, &cancel, &mut |_| ()).unwrap();
    assert!(path.exists());

    let named = Lcm::builder().config(r#"{"summaryModel":"m","summaryProvider":"p"}"#);
    let error = named.open_with(&component()).unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    assert_eq!(error.message, "`summary_model` asks for `p/m`, so the builder needs a `model`");
}
