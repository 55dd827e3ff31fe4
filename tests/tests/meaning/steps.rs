//! Answers of the AI SDK in both forms: a host appends the messages of each step after its model
//! ran, and the client posts the whole chat with one message for all steps, and with the results
//! of tools that the client ran.

use lcm_testing::simulation::random::Random;
use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::host::{Host, read_seeds};

const LIVES: u64 = 300;
const TURNS: usize = 8;

/// A chat in the forms of client and model.
#[derive(Default)]
struct Chat {
    /// What the client posts.
    posted: Vec<Value>,
    /// Messages of the model's newest answer.
    answer: Vec<Value>,
    /// All messages as a model takes them.
    whole: Vec<Value>,
    /// Count of texts, which makes each unique.
    count: usize,
    random: Option<Random>,
}

impl Chat {
    fn happens_by_chance(&mut self, per_mille: u64) -> bool {
        self.random.as_mut().is_some_and(|random| random.chance(per_mille))
    }

    /// The next text: mostly a long one, and sometimes a short one that people say again.
    fn next_text(&mut self, what: &str) -> String {
        self.count += 1;
        match self.happens_by_chance(200) {
            true => "ok".into(),
            false => format!("{what} number {} of this chat", self.count),
        }
    }

    fn ask_question(&mut self, turn: usize) {
        let text = self.next_text("question");
        let part = json!([{"type": "text", "text": text}]);
        self.posted.push(json!({"id": format!("u{turn}"), "role": "user", "parts": part}));
        self.whole.push(json!({"role": "user", "content": part}));
    }

    /// The model answers in up to three steps with tools, and a last text; `is_open`: the answer
    /// ends with a step whose last tool the client runs.
    fn answer_in_steps(&mut self, turn: usize, is_open: bool) {
        self.answer.clear();
        let mut parts = Vec::new();
        let steps = self.random.as_mut().expect("a random").between(0, 3);
        for _ in 0..steps {
            parts.push(json!({"type": "step-start"}));
            let mut content = Vec::new();
            if self.happens_by_chance(500) {
                let text = json!({"type": "text", "text": self.next_text("step")});
                content.push(text.clone());
                parts.push(text);
            }
            let mut results = Vec::new();
            for _ in 0..=u8::from(self.happens_by_chance(400)) {
                let input = json!({"query": self.next_text("argument")});
                let id = format!("call_abcdefghij{:04}", self.count);
                let (output, value) = match self.happens_by_chance(500) {
                    true => (json!({"type": "json", "value": {"n": 1}}), json!({"n": 1})),
                    false => {
                        let text = self.next_text("output");
                        (json!({"type": "text", "value": text}), json!(text))
                    }
                };
                content.push(json!({"type": "tool-call", "toolCallId": id, "toolName": "find",
                    "input": input}));
                results.push(json!({"type": "tool-result", "toolCallId": id, "toolName": "find",
                    "output": output}));
                parts.push(json!({"type": "tool-find", "toolCallId": id, "input": input,
                    "state": "output-available", "output": value}));
            }
            self.answer.push(json!({"role": "assistant", "content": content}));
            self.answer.push(json!({"role": "tool", "content": results}));
        }
        if !is_open || steps == 0 {
            let text = json!({"type": "text", "text": self.next_text("answer")});
            self.answer.push(json!({"role": "assistant", "content": [text]}));
            parts.extend([json!({"type": "step-start"}), text]);
        }
        self.posted.push(json!({"id": format!("a{turn}"), "role": "assistant", "parts": parts}));
        self.whole.extend(self.answer.iter().cloned());
        if is_open && steps > 0 {
            let results = self.answer.last_mut().expect("results")["content"].as_array_mut();
            let results = results.expect("results");
            results.pop();
            if results.is_empty() {
                self.answer.pop();
            }
        }
    }
}

/// A host that appends what the client posted, and then the messages of the model's answer, has
/// each message once.
#[test]
fn an_answer_in_steps_is_the_message_that_the_client_posts() {
    for seed in read_seeds(LIVES) {
        let mut host = Host::new();
        let mut chat = Chat { random: Some(Random::new(seed)), ..Chat::default() };
        let knows = chat.happens_by_chance(500);
        let is_planned = chat.happens_by_chance(300);
        for turn in 0..=TURNS {
            chat.ask_question(turn);
            for _ in 0..=u8::from(chat.happens_by_chance(200)) {
                match (is_planned, knows) {
                    (true, _) => drop(host.ingest_in(Dialect::AiSdk, &chat.posted)),
                    (_, true) => drop(host.append(Dialect::AiSdk, &chat.posted)),
                    _ => drop(host.append_seen(Dialect::AiSdk, &chat.posted, None)),
                }
            }
            if turn == TURNS {
                break;
            }
            let is_open = chat.happens_by_chance(300);
            chat.answer_in_steps(turn, is_open);
            match knows {
                true => drop(host.append(Dialect::AiSdk, &chat.answer)),
                false => drop(host.append_seen(Dialect::AiSdk, &chat.answer, None)),
            }
        }
        let context = host.assemble_chat(Dialect::AiSdk, 1_000_000);
        let noise = ["nothing-new: ", "revision: "];
        host.warnings.retain(|it| !noise.iter().any(|name| it.starts_with(name)));
        assert_eq!(host.warnings, [""; 0], "seed {seed}");
        let pairs = context.iter().zip(&chat.whole).enumerate();
        for (place, (one, other)) in pairs {
            assert_eq!(one, other, "seed {seed}, message {place}: {:?}", host.warnings);
        }
        assert_eq!(context.len(), chat.whole.len(), "seed {seed}");
        host.ensure_sound();
    }
}

/// A call that waits for a person is stored once, in whichever form the host hands it over.
#[test]
fn a_call_that_waits_for_an_approval_is_stored_once() {
    let id = "call_abcdefghij0001";
    let question = json!({"id": "u1", "role": "user",
        "parts": [{"type": "text", "text": "Please delete the old build folder now."}]});
    let request = [json!({"role": "assistant", "content": [
        {"type": "tool-call", "toolCallId": id, "toolName": "rm", "input": {"path": "build"}},
        {"type": "tool-approval-request", "approvalId": "apr_1", "toolCallId": id}]})];
    let posted = |state: &str, more: Value| {
        let mut part = json!({"type": "tool-rm", "toolCallId": id, "state": state,
            "input": {"path": "build"}, "approval": {"id": "apr_1", "approved": true}});
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, part]})
    };
    let answer = [
        json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id,
            "toolName": "rm", "output": {"type": "text", "value": "deleted build"}}]}),
        json!({"role": "assistant",
            "content": [{"type": "text", "text": "The old build folder is gone."}]}),
    ];
    let mut done = posted("output-available", json!({"output": "deleted build"}));
    done["parts"].as_array_mut().unwrap().extend([
        json!({"type": "step-start"}),
        json!({"type": "text", "text": "The old build folder is gone."}),
    ]);
    let next = json!({"id": "u2", "role": "user",
        "parts": [{"type": "text", "text": "Thanks, what else is there to clean?"}]});
    for knows in [true, false] {
        let mut host = Host::new();
        let steps = [
            vec![question.clone()],
            request.to_vec(),
            vec![question.clone(), posted("approval-responded", json!({}))],
            answer.to_vec(),
            vec![question.clone(), done.clone(), next.clone()],
        ];
        for list in steps {
            let seen = knows.then_some(host.seen);
            host.seen = host.append_seen(Dialect::AiSdk, &list, seen).seq_seen;
            let context = json!(host.assemble_chat(Dialect::AiSdk, 1_000_000)).to_string();
            let calls = context.matches("\"tool-call\"").count();
            assert_eq!(calls, usize::from(list != [question.clone()]), "{context}");
        }
        let context = json!(host.assemble_chat(Dialect::AiSdk, 1_000_000)).to_string();
        assert_eq!(context.matches("deleted build").count(), 1, "{context}");
        assert_eq!(context.matches("folder is gone").count(), 1, "{context}");
        host.ensure_sound();
    }
}

fn user_message(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// Two parallel calls, of which a person approves the first; `outputs`: those that are there.
fn parallel_calls(ids: [&str; 2], outputs: [Option<&str>; 2], answer: Option<&str>) -> Value {
    let part = |at: usize| {
        let mut part = json!({"type": "tool-rm", "toolCallId": ids[at], "input": {"path": at},
            "state": "approval-responded", "approval": {"id": format!("ask{at}"), "approved": true}});
        if let Some(output) = outputs[at] {
            (part["state"], part["output"]) = (json!("output-available"), json!(output));
        }
        part
    };
    let mut parts = vec![json!({"type": "step-start"}), part(0), part(1)];
    if let Some(answer) = answer {
        parts.extend([json!({"type": "step-start"}), json!({"type": "text", "text": answer})]);
    }
    json!({"id": "a1", "role": "assistant", "parts": parts})
}

/// Results of parallel calls may be stored in another order than the calls, and call ids may only
/// count calls: no result and no text leaves the context, and none is there twice.
#[test]
fn results_in_any_order_belong_to_the_answer() {
    let question = user_message("u1", "Please delete both of the old folders.");
    let result = |id: &str, text: &str| {
        json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id,
            "toolName": "rm", "output": {"type": "text", "value": text}}]})
    };
    for ids in [["call_abcdefghij0001", "call_abcdefghij0002"], ["call_0", "call_1"]] {
        let calls = ids.map(|id| {
            json!({"type": "tool-call", "toolCallId": id, "toolName": "rm",
                "input": {"path": usize::from(id == ids[1])}})
        });
        let step = json!({"role": "assistant", "content": calls});
        let last = json!({"role": "assistant",
            "content": [{"type": "text", "text": "Both of the old folders are gone."}]});
        for knows in [true, false] {
            let mut host = Host::new();
            let lists = [
                vec![question.clone()],
                vec![step.clone(), result(ids[1], "deleted two")],
                vec![question.clone(), parallel_calls(ids, [None, Some("deleted two")], None)],
                vec![result(ids[0], "deleted one"), last.clone()],
                vec![
                    question.clone(),
                    parallel_calls(
                        ids,
                        [Some("deleted one"), Some("deleted two")],
                        Some("Both of the old folders are gone."),
                    ),
                    user_message("u2", "Thanks, what else is there to clean?"),
                ],
            ];
            for list in lists {
                let seen = knows.then_some(host.seen);
                host.seen = host.append_seen(Dialect::AiSdk, &list, seen).seq_seen;
            }
            let context = json!(host.assemble_chat(Dialect::AiSdk, 1_000_000)).to_string();
            for text in ["deleted one", "deleted two", "folders are gone", "else is there"] {
                assert_eq!(context.matches(text).count(), 1, "{text}: {context}");
            }
            assert_eq!(context.matches("\"tool-call\"").count(), 2, "{context}");
            host.ensure_sound();
        }
    }
}

/// A client may send only its newest message, and a host may store the answer in both forms.
#[test]
fn an_answer_alone_is_its_steps() {
    let id = "call_abcdefghij0001";
    let steps = [
        json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": id,
            "toolName": "rm", "input": {"path": "build"}}]}),
        json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id,
            "toolName": "rm", "output": {"type": "text", "value": "deleted build"}}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "The folder is gone."}]}),
    ];
    let whole = json!({"id": "a1", "role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "tool-rm", "toolCallId": id, "state": "output-available",
            "input": {"path": "build"}, "output": "deleted build"},
        {"type": "step-start"}, {"type": "text", "text": "The folder is gone."}]});
    for count in 1..=3 {
        for knows in [true, false] {
            let mut host = Host::new();
            for list in [vec![user_message("u1", "Please delete it.")], steps[..count].to_vec()] {
                host.append(Dialect::AiSdk, &list);
            }
            let seen = knows.then_some(host.seen);
            let receipt = host.append_seen(Dialect::AiSdk, std::slice::from_ref(&whole), seen);
            assert_eq!(receipt.ingested, u32::from(count < 3));
            host.append(
                Dialect::AiSdk,
                &[user_message("u2", "Thanks, what else is there to clean?")],
            );
            let context = json!(host.assemble_chat(Dialect::AiSdk, 1_000_000)).to_string();
            for text in ["\"tool-call\"", "deleted build", "folder is gone", "else is there"] {
                assert_eq!(context.matches(text).count(), 1, "{count}, {text}: {context}");
            }
            host.ensure_sound();
        }
    }
}

/// The chunks of a streamed answer, stored one by one, are the joined answer of a later list.
#[test]
fn chunks_are_the_answer_that_joins_them() {
    let chunks = ["The build folder ", "has three files, ", "and all of them are old."];
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini] {
        let said = |role: &str, text: &str| match dialect {
            Dialect::Gemini => json!({"parts": [{"text": text}],
                "role": if role == "user" { "user" } else { "model" }}),
            _ => json!({"role": role, "content": text}),
        };
        for knows in [true, false] {
            let mut host = Host::new();
            let question = said("user", "What is in the build folder now?");
            host.append(dialect, std::slice::from_ref(&question));
            for chunk in chunks {
                let seen = knows.then_some(host.seen);
                host.seen = host.append_seen(dialect, &[said("assistant", chunk)], seen).seq_seen;
            }
            let list =
                [question, said("assistant", &chunks.concat()), said("user", "Delete them all.")];
            let seen = knows.then_some(host.seen);
            host.append_seen(dialect, &list, seen);
            let context = json!(host.assemble_chat(dialect, 1_000_000)).to_string();
            for text in ["build folder has", "three files, and", "of them are old", "them all"] {
                assert_eq!(context.matches(text).count(), 1, "{text}: {context}");
            }
            host.ensure_sound();
        }
    }
}
