//! `lcm grant`, and what is read on one.

use serde_json::json;

use crate::{Place, keys};

#[test]
fn a_grant_is_made_read_on_listed_and_revoked() {
    let place = Place::with_demo();
    place.run(&["compact", "--budget", "4000"]).ok();
    let limits = ["grant", "create", "--tokens-max", "900", "--depth-max", "2"];
    let made = place.json(&limits);
    let expected = [
        "conversations",
        "depth_max",
        "expires_at",
        "id",
        "issued_at",
        "parent",
        "revoked",
        "summary_ids",
        "tokens_left",
        "tokens_max",
    ];
    assert_eq!(keys(&made), expected);
    assert_eq!((&made["tokens_left"], &made["conversations"]), (&json!(900), &json!(["default"])));
    let id = made["id"].as_str().unwrap();
    let found = place.json(&["grep", "scheduler", "--limit", "3", "--grant", id]);
    let left = found["grant"]["tokens_left"].as_u64().unwrap();
    assert!(left < 900, "{found}");
    let people = place.run(&["grep", "scheduler", "--limit", "3", "--grant", id]).ok().out;
    assert!(people.contains("tokens of the grant, "), "{people}");
    let summaries = place.json(&["summaries"]);
    let summary = summaries["summaries"][0]["id"].as_str().unwrap();
    // One page, whatever is left: what was taken is shown.
    let below = place.json(&["expand", summary, "--include-messages", "--grant", id]);
    assert!(below["grant"]["tokens"].as_u64().unwrap() <= left, "{below}");
    place.json(&["describe", summary, "--grant", id]);
    let listed = place.json(&["grant", "list"]);
    assert_eq!(listed["grants"][0]["id"], id);
    assert!(place.run(&["grant", "list"]).ok().out.contains(id));
    place.run(&["grant", "revoke", id]).ok();
    assert_eq!(place.json(&["grant", "revoke", id])["revoked"], true);
    place.run(&["grep", "scheduler", "--grant", id]).failed(4, "denied", "revoked");
    place.run(&["grant", "revoke", "grant_0"]).failed(3, "not-found", "neither issued the grant");
    place.run(&["grant", "create", "--covers", "nowhere"]).failed(3, "not-found", "nowhere");
}
