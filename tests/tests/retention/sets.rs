//! Conversations, cut into turns and windows.

use std::{fs, path::Path};

/// Turns of one window.
pub(crate) const TURNS: usize = 100;

/// Conversations of one kind, joined to one.
pub(crate) struct Set {
    pub(crate) name: String,
    /// Each turn is a user's message and all messages before the next user's message.
    turns: Vec<Vec<String>>,
}

impl Set {
    fn of(name: &str, messages: impl Iterator<Item = String>) -> Self {
        let mut turns: Vec<Vec<String>> = Vec::new();
        let mut before = String::new();
        for message in messages {
            let role = role(&message);
            // A system message begins the conversation that follows it.
            let begins = matches!(role.as_str(), "user" | "system") && role != before;
            if begins && !(role == "user" && before == "system") || turns.is_empty() {
                turns.push(Vec::new());
            }
            turns.last_mut().unwrap().push(message);
            before = role;
        }
        Self { name: name.to_owned(), turns }
    }

    /// Returns `wanted` turns; begins again from the first if there are fewer.
    pub(crate) fn turns(&self, wanted: usize) -> Vec<&[String]> {
        self.turns.iter().map(Vec::as_slice).cycle().take(wanted).collect()
    }

    /// Returns `count` windows at equal distances, or fewer if there are too few turns.
    pub(crate) fn windows(&self, count: usize) -> Vec<&[Vec<String>]> {
        let last = self.turns.len().saturating_sub(TURNS);
        let step = (last / (count - 1).max(1)).max(1);
        let starts = (0..=last).step_by(step).take(count);
        starts.map(|from| &self.turns[from..self.turns.len().min(from + TURNS)]).collect()
    }
}

fn role(message: &str) -> String {
    let message: serde_json::Value = serde_json::from_str(message).unwrap();
    message["role"].as_str().unwrap().to_owned()
}

/// Returns a message without its id, as from a host whose messages have no ids.
fn plain(message: &str) -> String {
    let mut message: serde_json::Value = serde_json::from_str(message).unwrap();
    let object = message.as_object_mut().unwrap();
    object.remove("id");
    message.to_string()
}

/// Returns the sets of a folder of real conversations.
pub(crate) fn real(folder: &Path) -> Vec<Set> {
    let read = |name: &str, file: &str| {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Set::of(name, text.lines().map(plain))
    };
    vec![
        read("aider", "aider/chat-history-full.jsonl"),
        read("tau", "long/tau-airline-concat-trial0.jsonl"),
    ]
}

/// Returns the sets of generated transcripts.
pub(crate) fn generated() -> Vec<Set> {
    let of =
        |set: &crate::generated::Generated| Set::of(set.name, (set.make)().into_iter().flatten());
    // The Chinese transcripts have no identifiers.
    crate::generated::SETS.iter().filter(|set| set.name != "chinese").map(of).collect()
}
