//! The report of a configuration: how each given key was treated.
//!
//! Input: what [`parse`](super::parse) found about each key. Output: JSON with sorted lists.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::base::{json::JsonWriter, sort};

/// How each given key was treated, and which settings were not given. [`Self::into_json`] sorts the
/// lists.
#[derive(Default)]
pub(super) struct ConfigReport {
    /// Own names of the settings of the engine that were given by any name.
    pub(super) accepted: Vec<&'static str>,
    /// The accepted settings that have no effect in this version.
    pub(super) reserved: Vec<&'static str>,
    /// Own names of the settings of the engine that were not given.
    pub(super) defaulted: Vec<&'static str>,
    /// Given names that are an alias of their setting, or another spelling of its own name.
    pub(super) aliased: Vec<AliasedKey>,
    /// Given keys that the reference system keeps without effect.
    pub(super) deprecated: Vec<String>,
    /// Own names of the settings of hosts that were given by any name.
    pub(super) host: Vec<&'static str>,
    /// Given keys that neither the engine nor a host follows.
    pub(super) not_followed: Vec<String>,
    /// Given keys that are not used, because another given name of the same setting takes
    /// precedence.
    pub(super) overridden: Vec<String>,
    /// All other given keys.
    pub(super) unknown: Vec<String>,
    /// One line for each key that has no effect, or another effect than its name says.
    notes: Vec<ConfigNote>,
}

/// A name of a setting that is not its own name.
pub(super) struct AliasedKey {
    pub(super) key: String,
    pub(super) name: &'static str,
}

struct ConfigNote {
    key: String,
    note: String,
}

impl ConfigReport {
    /// Adds a line about a key.
    pub(super) fn add_note(&mut self, key: &str, note: &str) {
        self.notes.push(ConfigNote { key: key.to_string(), note: note.to_string() });
    }

    /// Sorts the lists, and renders them as JSON.
    pub(super) fn into_json(mut self) -> JsonWriter {
        for names in [&mut self.accepted, &mut self.reserved, &mut self.defaulted, &mut self.host] {
            sort::sort_and_dedup(names);
        }
        let given =
            [&mut self.deprecated, &mut self.not_followed, &mut self.overridden, &mut self.unknown];
        given.into_iter().for_each(|keys| sort::sort(keys));
        sort::sort_by(&mut self.aliased, &mut |a, b| a.key.cmp(&b.key));
        sort::sort_by(&mut self.notes, &mut |a, b| (&a.key, &a.note).cmp(&(&b.key, &b.note)));
        let mut aliased = JsonWriter::new_array();
        for AliasedKey { key, name } in &self.aliased {
            aliased.push_object(write_pair(("key", key), ("as", name)));
        }
        let mut notes = JsonWriter::new_array();
        for ConfigNote { key, note } in &self.notes {
            notes.push_object(write_pair(("key", key), ("note", note)));
        }
        let mut report = JsonWriter::new_object();
        report.add_texts("accepted", &self.accepted);
        report.add_texts("reserved", &self.reserved);
        report.add_texts("defaulted", &self.defaulted);
        report.add_array("aliased", aliased);
        report.add_texts("deprecated", &self.deprecated);
        report.add_texts("host", &self.host);
        report.add_texts("not_followed", &self.not_followed);
        report.add_texts("overridden", &self.overridden);
        report.add_texts("unknown", &self.unknown);
        report.add_array("notes", notes);
        report
    }
}

fn write_pair(first: (&str, &str), second: (&str, &str)) -> JsonWriter {
    let mut pair = JsonWriter::new_object();
    pair.add_text(first.0, first.1);
    pair.add_text(second.0, second.1);
    pair
}
