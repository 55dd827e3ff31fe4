//! `lcm grant`: creates, lists and revokes grants, which are limited rights to read.
//!
//! In: limits, or the id of a grant. Out: a table of grants, or their JSON. The component checks
//! every limit.

use lcm_host::Result;
use serde_json::{Value, json, value::RawValue};

use super::recall::{field, list, parse};
use crate::{
    End,
    arguments::{Global, Grant, GrantCreate},
    output::{self, Table},
    session::Session,
};

pub(crate) fn run(global: &Global, command: &Grant) -> Result<End> {
    let session = Session::open(global)?;
    match command {
        Grant::Create(options) => create(&session, options)?,
        Grant::List => list_all(&session)?,
        Grant::Revoke { id } => {
            session.lcm.revoke(session.conversation, id, session.now())?;
            if session.json {
                output::json(&json!({ "id": id, "revoked": true }))?;
            } else {
                output::text(&format!("{id} is revoked\n"))?;
            }
        }
    }
    Ok(End::Done)
}

fn create(session: &Session<'_>, options: &GrantCreate) -> Result<()> {
    let list = |ids: &Vec<String>| (!ids.is_empty()).then(|| ids.clone());
    let limits = json!({
        "conversations": list(&options.covers),
        "summary_ids": list(&options.summary_ids),
        "depth_max": options.depth_max,
        "tokens_max": options.tokens_max,
        "ttl_ms": options.ttl_ms,
        "parent": options.parent,
    });
    let text = session.lcm.grant(session.conversation, &limits.to_string(), session.now())?;
    if session.json {
        return output::text(&(text + "\n"));
    }
    output::text(&table(&[parse("recall.grant", &text)?]))
}

fn list_all(session: &Session<'_>) -> Result<()> {
    let grants: Vec<Box<RawValue>> = list(session, "grants", None)?;
    if session.json {
        return output::json(&json!({ "grants": grants }));
    }
    let grants = grants.iter().map(|grant| parse("admin.listing", grant.get()));
    output::text(&table(&grants.collect::<Result<Vec<Value>>>()?))
}

/// Formats grants as a table for people.
fn table(grants: &[Value]) -> String {
    let heading = ["id", ">left", ">of", ">depth", "expires", "revoked", "covers"];
    let mut table = Table::new(&heading);
    for grant in grants {
        let ids = |key: &str| match grant.get(key).and_then(Value::as_array) {
            Some(ids) => ids.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            None => String::new(),
        };
        let covers = [ids("conversations"), ids("summary_ids")].join(" ");
        table.row(vec![
            field(grant, "id"),
            field(grant, "tokens_left"),
            field(grant, "tokens_max"),
            field(grant, "depth_max"),
            field(grant, "expires_at"),
            field(grant, "revoked"),
            covers.trim_end().to_owned(),
        ]);
    }
    table.render()
}
