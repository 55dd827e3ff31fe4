//! `lcm prompts`: lists, shows, compares, sets and removes overrides of the prompts of summaries.
//!
//! In: the name of a prompt, and a text to set. Out: the prompts as the component has them, or the
//! file of `--config` with an override added or removed. The store of `--store` is not opened.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use lcm_host::{Code, Error, Result};
use serde_json::{Value, json};
use similar::TextDiff;

use super::recall::{field, parse};
use crate::{
    End,
    arguments::{Global, Prompts},
    config,
    input::read_text,
    output::{self, Table},
    session::Session,
};

pub(crate) fn run(global: &Global, command: &Prompts) -> Result<End> {
    let printed = match command {
        Prompts::List => list(global)?,
        Prompts::Show(prompt) => show(global, &prompt.name)?,
        Prompts::Set { prompt, file } => {
            let own = read_text(file)?;
            if own.trim().is_empty() {
                let unset = format!("`lcm prompts unset {}`", prompt.name);
                let message =
                    format!("the text must not be blank; {unset} restores the built-in text");
                return Err(Error::new(Code::InvalidInput, message));
            }
            write(global, &prompt.name, Some(own.trim()))?
        }
        Prompts::Unset(prompt) => write(global, &prompt.name, None)?,
        Prompts::Diff(prompt) => diff(global, &prompt.name)?,
    };
    if global.json {
        output::json(&printed.json)?
    } else {
        output::text(&printed.text)?
    }
    Ok(End::Done)
}

/// The output of a command: for `--json`, and for people.
struct Printed {
    json: Value,
    text: String,
}

/// Returns the prompts of the component, with the overrides of the configuration.
fn prompts(global: &Global) -> Result<Vec<Value>> {
    let session = Session::without_store(global)?;
    let text = session.lcm.admin_call(session.conversation, "prompts", "{}", session.now())?;
    match parse("admin.call", &text)?.get_mut("prompts").map(Value::take) {
        Some(Value::Array(prompts)) => Ok(prompts),
        _ => Err(Error::new(Code::Internal, "`prompts` answered no prompts")),
    }
}

fn named(global: &Global, name: &str) -> Result<Value> {
    let prompts = prompts(global)?;
    let names: Vec<String> = prompts.iter().map(|prompt| field(prompt, "name")).collect();
    prompts.into_iter().find(|prompt| field(prompt, "name") == name).ok_or_else(|| {
        let message = format!("the prompt must be one of {}, got `{name}`", names.join(", "));
        Error::new(Code::InvalidInput, message)
    })
}

fn is_overridden(prompt: &Value) -> bool {
    prompt.get("overridden") == Some(&Value::Bool(true))
}

fn list(global: &Global) -> Result<Printed> {
    let prompts = prompts(global)?;
    let mut table = Table::new(&["name", ">version", ">tokens", "text"]);
    for prompt in &prompts {
        let text = if is_overridden(prompt) { "overridden" } else { "built in" };
        // `field` would add thousands separators to the version.
        let version = prompt.get("version").map(Value::to_string).unwrap_or_default();
        table.row(vec![field(prompt, "name"), version, field(prompt, "tokens"), text.to_owned()]);
    }
    let json = json!({ "prompts": prompts });
    Ok(Printed { json, text: table.render() })
}

fn show(global: &Global, name: &str) -> Result<Printed> {
    let prompt = named(global, name)?;
    let of = |key: &str| prompt.get(key).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{}\n\n{}\n", of("system"), of("prompt"));
    Ok(Printed { json: prompt, text })
}

fn diff(global: &Global, name: &str) -> Result<Printed> {
    let prompt = named(global, name)?;
    let of = |key: &str| format!("{}\n", field(&prompt, key));
    let (built_in, own) = (of("built_in"), of("text"));
    let diff = TextDiff::from_lines(&built_in, &own);
    let diff = diff.unified_diff().header("built in", "override").to_string();
    let text = match is_overridden(&prompt) {
        true => diff.clone(),
        false => format!("{name} is not overridden\n"),
    };
    let json = json!({ "name": name, "overridden": is_overridden(&prompt), "diff": diff });
    Ok(Printed { json, text })
}

/// Sets the override of a prompt in the file of `--config`; `own` is `None`: removes the override.
fn write(global: &Global, name: &str, own: Option<&str>) -> Result<Printed> {
    let Some(file) = &global.config else {
        let message = "`--config` must name the file that holds the overrides";
        return Err(Error::new(Code::InvalidInput, message));
    };
    let before = text_of(file)?;
    let no_object = |error| {
        let message = format!("`{}` must hold one JSON object: {error}", file.display());
        Error::new(Code::InvalidInput, message)
    };
    let text = before.as_deref().unwrap_or("{}\n");
    let (after, changed) = config::with_override(text, name, own).map_err(no_object)?;
    // The component checks the name and the text before the file is written.
    let unconfigured = Global { config: None, ..global.clone() };
    named(&unconfigured, name)?;
    let session = Session::without_store(&unconfigured)?;
    let in_file =
        |error: Error| Error::new(error.code, format!("`{}`: {}", file.display(), error.message));
    session.lcm.configure(&after).map_err(in_file)?;
    if changed {
        replace(file, &after).map_err(|error| {
            let message = format!("cannot write `{}`: {error}", file.display());
            Error::new(Code::InvalidInput, message)
        })?;
    }
    let place = file.display();
    let text = match (own, changed) {
        (Some(_), true) => format!("{name} is overridden in {place}\n"),
        (None, true) => format!("{name} is built in again in {place}\n"),
        (_, false) => "nothing to do\n".to_owned(),
    };
    let json = json!({ "name": name, "overridden": own.is_some(), "changed": changed });
    Ok(Printed { json, text })
}

/// Replaces a file atomically: after an interrupt the file has the old or the new text.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    // If `file` is a symbolic link, its target is replaced.
    let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = place.with_file_name(name);
    let written = File::create(&beside).and_then(|mut new| {
        new.write_all(text.as_bytes())?;
        if let Ok(old) = fs::metadata(&place) {
            new.set_permissions(old.permissions())?;
        }
        new.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, &place)).inspect_err(|_| {
        // The caller gets the first error, not that of the removal.
        drop(fs::remove_file(&beside));
    })
}

/// Returns the text of the file; `None`: the file does not exist yet.
fn text_of(file: &Path) -> Result<Option<String>> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read_text(file).map(Some),
    }
}
