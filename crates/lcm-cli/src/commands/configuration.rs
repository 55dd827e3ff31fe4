//! `lcm config`: prints the effective configuration, and how each key was treated.
//!
//! In: the file of `--config` and the environment. Out: the keys with their values, and a line for
//! each key without effect or under another name. No store is opened.

use lcm_host::{Result, Settings};
use serde_json::{Map, Value, json};

use crate::{End, arguments::Global, config, output, session};

pub(crate) fn run(global: &Global) -> Result<End> {
    let component = session::component(global.component.as_deref())?;
    let settings = config::resolve_settings(&component, global.config.as_deref())?;
    let engine: Map<String, Value> = serde_json::from_str(&settings.config).unwrap_or_default();
    if global.json {
        let Settings { host, report, .. } = &settings;
        output::json(&json!({"config": engine, "host": host, "report": report}))?;
    } else {
        output::text(&for_people(&engine, &settings))?;
    }
    Ok(End::Done)
}

fn for_people(engine: &Map<String, Value>, settings: &Settings) -> String {
    let mut out = String::new();
    let host = serde_json::to_value(&settings.host).unwrap_or_default();
    let host = host.as_object().cloned().unwrap_or_default();
    let given = host.iter().filter(|(_, value)| !value.is_null() && **value != json!([]));
    for (key, value) in engine.iter().filter(|(key, _)| *key != "time_offsets").chain(given) {
        out.push_str(&format!("{key} = {value}\n"));
    }
    for alias in &settings.report.aliased {
        out.push_str(&format!("`{}` is `{}`\n", alias.key, alias.r#as));
    }
    for line in settings.lines() {
        out.push_str(&format!("{line}\n"));
    }
    if out.is_empty() {
        out.push_str("every key has its default\n");
    }
    out
}
