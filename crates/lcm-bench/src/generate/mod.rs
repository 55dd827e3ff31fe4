//! The workload: an artificial conversation of any length, with queries.
//!
//! In: a seed. Out: messages as JSON lines of the format `lcm-workload/1`, a summary of the
//! messages, and queries with their expected matches. The same seed and number give the same bytes
//! everywhere. `run::queries` has the queries of a measurement.

mod files;
mod message;
mod queries;
mod random;
mod words;

use serde::{Serialize, Serializer};
use serde_json::Number;

use message::{Input, Message, Part};
use queries::Queries;
use random::Random;
use words::{ONSETS, VOWELS, Vocabulary};

pub(crate) use files::write;

/// 2026-01-05T09:00:00Z, the time before the first message of every workload, in milliseconds.
const BEGIN_MS: u64 = 1_767_603_600_000;
/// Share of turns in Chinese.
const CHINESE_SHARE: f64 = 0.02;
/// Every 250th message contains a needle: a code that is in no other message.
const NEEDLE_EVERY: u32 = 250;
const TOOLS: [&str; 6] = ["read_file", "run_shell", "grep", "edit_file", "web_fetch", "list_dir"];

/// A code that exactly one message contains.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Needle {
    /// Id of the message.
    pub(crate) id: String,
    /// The code.
    pub(crate) code: String,
}

/// Messages of each role, in the order in which the roles appear.
#[derive(Debug, Default)]
struct Roles(Vec<(&'static str, u64)>);

impl Serialize for Roles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Counts and sums of a workload, as its side file has them.
#[derive(Debug, Serialize)]
pub(crate) struct Meta {
    format: &'static str,
    seed: u32,
    messages: u32,
    roles: Roles,
    text_bytes: u64,
    approx_tokens: u64,
    avg_tokens: Number,
    /// The codes, each in exactly one message.
    pub(crate) needles: Vec<Needle>,
}

/// Calls `each` with `messages` lines, without line ends. Returns their counts and sums, and
/// queries.
pub(crate) fn generate(seed: u32, messages: u32, each: &mut dyn FnMut(&str)) -> (Meta, Queries) {
    let mut random = Random::new(seed);
    let words = Vocabulary::new(&mut random);
    let meta = Meta {
        format: "lcm-workload/1",
        seed,
        messages: 0,
        roles: Roles::default(),
        text_bytes: 0,
        approx_tokens: 0,
        avg_tokens: 0.into(),
        needles: Vec::new(),
    };
    let limit = messages;
    let mut talk = Talk { random, words: &words, each, limit, calls: 0, clock_ms: BEGIN_MS, meta };
    while talk.has_room() {
        talk.turn();
    }
    let Talk { mut random, mut meta, .. } = talk;
    meta.avg_tokens = tenths(meta.approx_tokens, u64::from(meta.messages));
    let queries = Queries::new(&words, &mut random, &meta.needles);
    (meta, queries)
}

/// The state of the generation of a conversation.
struct Talk<'a> {
    random: Random,
    words: &'a Vocabulary,
    each: &'a mut dyn FnMut(&str),
    /// Number of messages to generate.
    limit: u32,
    /// Calls of tools so far.
    calls: u32,
    clock_ms: u64,
    meta: Meta,
}

impl Talk<'_> {
    const fn has_room(&self) -> bool {
        self.meta.messages < self.limit
    }

    /// Writes a user's message, then rounds of tool calls, then an answer; stops at the limit.
    fn turn(&mut self) {
        let chinese = self.random.chance(CHINESE_SHARE);
        let text = self.text(chinese, 20, 60, 45.0);
        self.say("user", vec![Part::Text { text }]);
        if !self.has_room() {
            return;
        }
        let rounds = if self.random.chance(0.55) { 1 + self.random.below(4) } else { 0 };
        for _ in 0..rounds {
            if self.has_room() {
                self.round();
            }
        }
        if self.has_room() {
            let text = self.text(chinese, 40, 120, 100.0);
            self.say("assistant", vec![Part::Text { text }]);
        }
    }

    fn text(&mut self, chinese: bool, shortest: u32, range: u32, median: f64) -> String {
        if chinese {
            let count = shortest + self.random.below(range);
            self.words.chinese(&mut self.random, count)
        } else {
            let tokens = self.random.length_tokens(median, 0.8);
            self.words.sentences(&mut self.random, tokens)
        }
    }

    /// Writes a message with one or two tool calls, and a message for each result.
    fn round(&mut self) {
        let count = if self.random.chance(0.15) { 2 } else { 1 };
        let tokens = self.random.length_tokens(30.0, 0.6);
        let text = self.words.sentences(&mut self.random, tokens);
        let mut parts = vec![Part::Text { text }];
        let mut calls = Vec::new();
        for _ in 0..count {
            self.calls += 1;
            let id = format!("call_{:07}", self.calls);
            let name = self.random.pick(&TOOLS);
            let input = self.input();
            parts.push(Part::ToolCall { id: id.clone(), name, input });
            calls.push((id, name));
        }
        self.say("assistant", parts);
        for (call_id, name) in calls {
            if self.has_room() {
                let tokens = self.random.length_tokens(150.0, 0.9);
                let output = self.words.sentences(&mut self.random, tokens);
                self.say("tool", vec![Part::ToolResult { call_id, name, output }]);
            }
        }
    }

    fn input(&mut self) -> Input {
        let (words, random) = (self.words, &mut self.random);
        let folder = words.word(random);
        let file = words.word(random);
        let path = format!("/src/{folder}/{file}_{}.rs", self.calls);
        let first = words.word(random);
        let query = format!("{first} {}", words.word(random));
        Input { path, query, line: random.below(4_000) }
    }

    fn say(&mut self, role: &'static str, mut parts: Vec<Part>) {
        self.meta.messages += 1;
        let pause = self.random.below(if role == "user" { 240 } else { 20 });
        self.clock_ms += 1_000 * (1 + u64::from(pause));
        let id = format!("m{:07}", self.meta.messages);
        if self.meta.messages.is_multiple_of(NEEDLE_EVERY) {
            let code = self.code();
            let ticket = 1_000 + self.meta.messages;
            let sentence = format!(" The reference code is {code} for ticket {ticket}.");
            message::insert(&mut parts, &sentence);
            self.meta.needles.push(Needle { id: id.clone(), code });
        }
        for part in &parts {
            let (bytes, characters) = part.size();
            self.meta.text_bytes += bytes;
            self.meta.approx_tokens += characters.div_ceil(4);
        }
        match self.meta.roles.0.iter_mut().find(|(known, _)| *known == role) {
            Some((_, count)) => *count += 1,
            None => self.meta.roles.0.push((role, 1)),
        }
        (self.each)(&Message::new(id, role, self.clock_ms, parts).line());
    }

    fn code(&mut self) -> String {
        let mut code = format!("needle-{:07}-", self.meta.messages);
        for _ in 0..2 {
            code.push_str(self.random.pick(&ONSETS));
            code.push_str(self.random.pick(&VOWELS));
        }
        code.push('x');
        code
    }
}

/// Returns a ratio rounded to one decimal; a decimal of 0 is left out.
fn tenths(part: u64, whole: u64) -> Number {
    let tenths = (20 * part + whole).checked_div(2 * whole).unwrap_or(0);
    let text = match tenths % 10 {
        0 => format!("{}", tenths / 10),
        tenth => format!("{}.{tenth}", tenths / 10),
    };
    serde_json::from_str(&text).unwrap_or_else(|_| 0.into())
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    fn sha256(text: &str) -> String {
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The digests are of files that an earlier generator of this format wrote.
    #[test]
    fn a_thousand_messages_have_the_bytes_of_the_format() {
        let mut lines = String::new();
        let (meta, queries) = generate(42, 1_000, &mut |line| {
            lines.push_str(line);
            lines.push('\n');
        });
        assert_eq!(
            sha256(&lines),
            "51d9d894b25b77f10223080b97af9a48757233de7ce60cb0031fdc74d2843012"
        );
        assert_eq!(
            sha256(&meta.text()),
            "0e83dbe1991d7ed161eee34176ff6ab9ba62e22fd5f227d0341d2dbeeda459d4"
        );
        assert_eq!(
            sha256(&queries.text()),
            "347db768588053d4bc3f69a7c8167daf49cf42ecb1176d903a7bf75224c5d7d2"
        );
    }

    #[test]
    fn a_longer_workload_begins_with_a_shorter_one() {
        let lines = |count| {
            let mut lines = Vec::new();
            generate(7, count, &mut |line| lines.push(line.to_owned()));
            lines
        };
        let (short, long) = (lines(30), lines(60));
        assert_eq!((short.len(), long.len()), (30, 60));
        assert_eq!(short, long[..30]);
    }

    #[test]
    fn a_ratio_has_a_decimal_unless_it_is_whole() {
        let text = |part, whole| tenths(part, whole).to_string();
        assert_eq!(text(129, 1), "129");
        assert_eq!(text(517, 4), "129.3");
        assert_eq!(text(3, 0), "0");
    }
}
