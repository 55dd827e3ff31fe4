//! Messages of the AI SDK that grow under one id: a host appends its list while tools and the model
//! still work, and the context has the last form of each message.

use lcm_testing::simulation::random::Random;
use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::host::{Host, read_seeds};

/// Lives; `LCM_SEEDS` says another number, and `LCM_SEED` a single life.
const LIVES: u64 = 300;
const TURNS: usize = 12;

/// A chat whose list the host appends at any time.
struct Life {
    host: Host,
    random: Random,
    list: Vec<Value>,
    /// The list when the host appended it before.
    earlier: Vec<Value>,
    /// Count of texts, calls and outputs, which makes each unique.
    count: usize,
}

impl Life {
    fn next_word(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what} number {} of this chat", self.count)
    }

    /// Appends the list, sometimes without `seq_seen`, in a plan, or an older list after it.
    fn may_append(&mut self, per_mille: u64) {
        if !self.random.chance(per_mille) {
            return;
        }
        match self.random.between(0, 2) {
            0 => drop(self.host.append(Dialect::AiSdk, &self.list)),
            1 => drop(self.host.append_seen(Dialect::AiSdk, &self.list, None)),
            _ => drop(self.host.ingest_in(Dialect::AiSdk, &self.list)),
        }
        if self.random.chance(200) && !self.earlier.is_empty() {
            let receipt = self.host.append_seen(Dialect::AiSdk, &self.earlier, None);
            assert_eq!(receipt.ingested, 0, "an older list has nothing new");
        }
        self.earlier.clone_from(&self.list);
    }

    fn last_parts(&mut self) -> &mut Vec<Value> {
        let last = self.list.last_mut().expect("a message");
        last["parts"].as_array_mut().expect("parts")
    }

    fn add_text(&mut self) {
        let text = self.next_word("text");
        self.last_parts().push(json!({"type": "text", "text": text}));
    }

    /// Adds calls, and then their outputs; `is_left`: the last call gets none.
    fn run_tools(&mut self, is_left: bool) {
        let first = self.last_parts().len();
        let calls = 1 + self.random.between(0, 2) as usize;
        for _ in 0..calls {
            let word = self.next_word("argument");
            let id = format!("call_abcdefghij{:04}", self.count);
            self.last_parts().push(json!({"type": "tool-read", "toolCallId": id,
                "state": "input-available", "input": {"a": word}}));
        }
        self.may_append(400);
        for at in first..first + calls {
            if self.random.chance(300) {
                self.last_parts()[at]["state"] = json!("approval-requested");
                self.last_parts()[at]["approval"] = json!({"id": format!("ask{at}")});
                self.may_append(400);
                self.last_parts()[at]["state"] = json!("approval-responded");
                self.last_parts()[at]["approval"]["approved"] = json!(true);
                self.may_append(400);
            }
            if !is_left || at + 1 < first + calls {
                self.last_parts()[at]["output"] = json!(self.next_word("output"));
                self.last_parts()[at]["state"] = json!("output-available");
                self.may_append(400);
            }
        }
    }

    fn take_turn(&mut self, turn: usize) {
        self.list.push(json!({"id": format!("u{turn}"), "role": "user", "parts": []}));
        self.add_text();
        self.may_append(700);
        self.list.push(json!({"id": format!("a{turn}"), "role": "assistant", "parts": []}));
        let steps = 1 + self.random.between(0, 2);
        let is_left = self.random.chance(200);
        for step in 1..=steps {
            self.last_parts().push(json!({"type": "step-start"}));
            if self.random.chance(600) {
                self.add_text();
            }
            self.run_tools(is_left && step == steps);
        }
        if !is_left {
            self.last_parts().push(json!({"type": "step-start"}));
            self.add_text();
        }
    }
}

/// Converts the messages for a model, as the SDK does.
fn convert_messages(list: &[Value]) -> Vec<Value> {
    let mut out = Vec::new();
    for message in list {
        let parts = message["parts"].as_array().unwrap();
        for step in parts.split(|part| part["type"] == "step-start") {
            let (mut content, mut results) = (Vec::new(), Vec::new());
            for part in step {
                if part["type"] == "text" {
                    content.push(json!({"type": "text", "text": part["text"]}));
                    continue;
                }
                let (id, missing) = (&part["toolCallId"], "[the result of this call is missing]");
                content.push(json!({"type": "tool-call", "toolCallId": id, "toolName": "read",
                    "input": part["input"]}));
                let output = match &part["output"] {
                    Value::Null => json!({"type": "error-text", "value": missing}),
                    output => json!({"type": "text", "value": output}),
                };
                results.push(json!({"type": "tool-result", "toolCallId": id, "toolName": "read",
                    "output": output}));
            }
            let role = message["role"].clone();
            let messages = [
                json!({"role": role, "content": content}),
                json!({"role": "tool", "content": results}),
            ];
            out.extend(messages.into_iter().filter(|it| it["content"] != json!([])));
        }
    }
    out
}

/// A context has the last form of each message, and nothing twice, however often and with whatever
/// knowledge the host appended earlier forms.
#[test]
fn the_last_form_of_a_grown_message_is_in_the_context() {
    for seed in read_seeds(LIVES) {
        let (host, random) = (Host::new(), Random::new(seed));
        let (list, earlier) = (Vec::new(), Vec::new());
        let mut life = Life { host, random, list, earlier, count: 0 };
        for turn in 0..TURNS {
            life.take_turn(turn);
        }
        // A person's answer to the last call would go out as such.
        life.list.push(json!({"id": "end", "role": "user", "parts": []}));
        life.add_text();
        life.may_append(1_000);
        let context = life.host.assemble_chat(Dialect::AiSdk, 1_000_000);
        let wanted = convert_messages(&life.list);
        assert_eq!(context.len(), wanted.len(), "seed {seed}");
        for (one, other) in context.iter().zip(&wanted) {
            assert_eq!(one, other, "seed {seed}");
        }
        life.host.ensure_sound();
    }
}
