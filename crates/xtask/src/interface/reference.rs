//! Writes the reference pages and the tables of the configuration.

use anyhow::{Context as _, Result, ensure};

use super::{
    exports::{Exports, Payload},
    schema::{Form, Member, Schema, SchemaFile, Shape},
    words::{describe_default, describe_kind, generated_line},
};

/// Folder of the pages.
const FOLDER: &str = "docs/reference";

/// Link to the shapes of verbs.
const OF_VERB: &str = "[of the verb](#verbs-of-admincall)";

/// Writes a page for each subject, and an index page.
#[must_use]
pub(super) fn write_pages(schema: &Schema, exports: &Exports) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for file in &schema.files {
        pages.push((format!("{FOLDER}/{}.md", file.name), write_page(schema, file)));
    }
    pages.push((format!("{FOLDER}/README.md"), write_index(schema, exports)));
    pages
}

fn write_index(schema: &Schema, exports: &Exports) -> String {
    let mut text = format!("<!-- {} -->\n\n# Reference\n\n", generated_line());
    text.push_str("The JSON of the interface, by export, by verb and by method.\n");
    text.push_str("[schema/](../../schema/README.md) holds the description as JSON Schema.\n\n");
    text.push_str("| page | subject |\n|---|---|\n");
    for file in &schema.files {
        text.push_str(&format!("| [{0}]({0}.md) | {1} |\n", file.name, file.description));
    }
    text.push_str("\n## Exports\n\n| export | JSON arguments | JSON result |\n|---|---|---|\n");
    for export in &exports.exports {
        let [arguments, results] = [&export.arguments, &export.results]
            .map(|places| list_places(schema, places, &link_shape, OF_VERB));
        text.push_str(&format!("| `{}` | {arguments} | {results} |\n", export.name));
    }
    text.push_str("\n## Verbs of `admin.call`\n\n| verb | arguments | answer |\n|---|---|---|\n");
    for verb in &exports.verbs {
        let [arguments, answer] =
            [&verb.arguments, &verb.answer].map(|name| link_name(schema, name));
        text.push_str(&format!("| `{}` | {arguments} | {answer} |\n", verb.name));
    }
    text.push_str("\n## Methods of the packages\n\nNames are camelCase in Node, snake_case in ");
    text.push_str("Python.\n\n| method | options | result |\n|---|---|---|\n");
    for method in &exports.methods {
        let options = method.options.as_deref().map(|name| link_name(schema, name));
        let link = |shape: &Shape| link_shape(shape);
        let result = method.result.as_ref().map(|kind| describe_kind(schema, kind, &link));
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            method.name,
            options.unwrap_or_default(),
            result.unwrap_or_default()
        ));
    }
    text
}

/// Lists places of JSON texts, each with the shape of its value. `of_verb` is the text for a place
/// whose shape depends on the called verb.
pub(super) fn list_places(
    schema: &Schema,
    places: &[(String, Payload)],
    link: &dyn Fn(&Shape) -> String,
    of_verb: &str,
) -> String {
    let place = |(place, payload): &(String, Payload)| {
        let words = match payload {
            Payload::Of(kind) => describe_kind(schema, kind, link),
            Payload::Verb => of_verb.into(),
        };
        if place.is_empty() { words } else { format!("`{place}`: {words}") }
    };
    places.iter().map(place).collect::<Vec<_>>().join("; ")
}

fn link_name(schema: &Schema, name: &str) -> String {
    schema.shapes.get(name).map_or_else(|| name.to_owned(), link_shape)
}

fn link_shape(shape: &Shape) -> String {
    format!("[`{0}`]({1}.md#{2})", shape.name, shape.file, shape.name.to_lowercase())
}

fn write_page(schema: &Schema, file: &SchemaFile) -> String {
    let mut text = format!("<!-- {} -->\n\n# {}\n\n", generated_line(), format_title(&file.name));
    text.push_str(&format!("{}\n", file.description));
    for name in &file.shapes {
        let Some(shape) = schema.shapes.get(name) else { continue };
        text.push_str(&format!("\n## {name}\n\n{}\n", shape.description));
        match &shape.form {
            Form::Object(members) if !members.is_empty() => {
                text.push_str("\n| member | value | absent | meaning |\n|---|---|---|---|\n");
                for member in members {
                    text.push_str(&write_row(schema, member));
                }
            }
            Form::Choice(choices) => {
                let choices: Vec<String> = choices.iter().map(|one| format!("`{one}`")).collect();
                text.push_str(&format!("\nOne of {}.\n", choices.join(", ")));
            }
            Form::Union(names) => {
                let names: Vec<String> = names.iter().map(|name| link_name(schema, name)).collect();
                text.push_str(&format!("\nOne of {}.\n", names.join(", ")));
            }
            Form::Object(_) | Form::Free(_) | Form::Host(_) => {}
        }
    }
    text
}

fn format_title(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn write_row(schema: &Schema, member: &Member) -> String {
    let link = |shape: &Shape| link_shape(shape);
    let kind = describe_kind(schema, &member.kind, &link).replace('|', "or");
    let absent = match (member.is_required, describe_default(member)) {
        (true, _) => String::new(),
        (false, Some(default)) => default,
        (false, None) => "allowed".into(),
    };
    format!("| `{}` | {kind} | {absent} | {} |\n", member.name, member.description)
}

/// Replaces the tables of `docs/configuration.md`, each between `<!-- keys: HEADING -->` and
/// `<!-- /keys -->`.
///
/// # Errors
///
/// A mark without its end, or a heading of the description that the page does not have.
pub(super) fn rewrite_configuration(schema: &Schema, page: &str) -> Result<String> {
    let Form::Object(members) = &schema.find_shape("Configuration")?.form else {
        anyhow::bail!("the configuration must be an object");
    };
    let mut groups: Vec<&str> = members.iter().filter_map(|one| one.group.as_deref()).collect();
    groups.dedup();
    let mut text = page.to_owned();
    for group in groups {
        let start = format!("<!-- keys: {group} -->\n");
        let (before, behind) = text
            .split_once(&start)
            .with_context(|| format!("the page must have the mark `keys: {group}`"))?;
        let (_, rest) =
            behind.split_once("<!-- /keys -->").context("every mark must have an end")?;
        let mut table = String::from("| key | value | default | meaning |\n|---|---|---|---|\n");
        let link = |shape: &Shape| {
            format!(
                "[`{0}`](reference/{1}.md#{2})",
                shape.name,
                shape.file,
                shape.name.to_lowercase()
            )
        };
        for member in members.iter().filter(|one| one.group.as_deref() == Some(group)) {
            let kind = describe_kind(schema, &member.kind, &link);
            let is_derived = member.description.contains("absent: ");
            let absent = || if is_derived { "derived" } else { "none" }.to_owned();
            let default = describe_default(member).unwrap_or_else(absent);
            let name = &member.name;
            table
                .push_str(&format!("| `{name}` | {kind} | {default} | {} |\n", member.description));
        }
        text = format!("{before}{start}{table}<!-- /keys -->{rest}");
    }
    ensure!(members.iter().all(|member| member.group.is_some()), "every key must have a heading");
    Ok(text)
}
