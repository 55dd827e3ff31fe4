//! Composes a long conversation: the scenes of a world at their times, and between them texts from
//! the stock of the world, chosen by a generator with the seed of the world.
//!
//! In: a world. Out: its messages in the `lcm` dialect. Every message that a question may need is
//! written by hand; the messages that are composed here only surround these.

use serde_json::{Value, json};

use crate::world::{Line, Stock, World, iso};

/// A message of a conversation.
pub(crate) struct Message {
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(crate) role: &'static str,
    pub(crate) speaker: Option<String>,
    /// Whether the message is in a scene, which a person wrote.
    pub(crate) is_written: bool,
    /// Text, names of tools, arguments and results.
    pub(crate) text: String,
    /// The message as a line of JSON.
    pub(crate) raw: String,
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// Returns a number from `low` to `high`, both included.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    fn of<'a>(&mut self, list: &'a [String]) -> &'a str {
        &list[self.below(list.len())]
    }

    fn shuffled<T>(&mut self, mut list: Vec<T>) -> Vec<T> {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
        list
    }
}

/// Consecutive lines that begin at a time.
struct Block {
    at: i64,
    is_written: bool,
    /// Each with the seconds since the line before.
    lines: Vec<(i64, Line)>,
}

impl Block {
    fn end(&self) -> i64 {
        self.at + self.lines.iter().map(|(wait, _)| wait).sum::<i64>()
    }
}

/// A gap that begins a new session.
const SESSION_GAP_S: i64 = 3 * 3600;
/// Smallest and largest number of words of an answer with stock around it.
const ANSWER_WORDS: (i64, i64) = (225, 560);
/// Smallest and largest number of lines of stock in the result of a tool.
const RESULT_LINES: (i64, i64) = (6, 36);

/// Returns the conversation of a world.
pub(crate) fn compose(world: &World) -> Vec<Message> {
    let mut random = Random(world.seed);
    let mut blocks: Vec<Block> = Vec::new();
    for scene in &world.scenes {
        let lines = scene.lines.iter().map(|line| (wait(world, line, &mut random), line.clone()));
        blocks.push(Block { at: scene.at, is_written: true, lines: lines.collect() });
    }
    let mut count: usize = blocks.iter().map(|block| block.lines.len()).sum();
    let mut fillers = Fillers { world, waiting: Vec::new() };
    while count < world.messages_min {
        let lines = fillers.next(&mut random);
        count += lines.len();
        let lines = lines.into_iter().map(|line| (wait(world, &line, &mut random), line)).collect();
        let mut block = Block { at: 0, is_written: false, lines };
        place(&mut block, world, &blocks, &mut random);
        blocks.push(block);
    }
    blocks.sort_by_key(|block| block.at);
    render(world, &blocks, &mut random)
}

/// Returns the seconds between a line and the line before.
fn wait(world: &World, line: &Line, random: &mut Random) -> i64 {
    match (world.kind.as_str(), line.who.as_str()) {
        ("people" | "pair", _) => random.between(12, 100),
        ("assistant", "a") => random.between(15, 50),
        ("assistant", _) => random.between(60, 500),
        (_, who) if who.starts_with('u') => random.between(40, 400),
        _ => random.between(2, 30),
    }
}

/// Gives a block a time at which no other block runs. The time is often right before or after
/// another block, as people who write or work continue with a second subject.
fn place(block: &mut Block, world: &World, blocks: &[Block], random: &mut Random) {
    let written = |block: &&Block| block.is_written;
    let first = blocks.iter().filter(written).map(|block| block.at).min().unwrap() / 86_400;
    let last = blocks.iter().filter(written).map(|block| block.at).max().unwrap() / 86_400;
    let together = match world.kind.as_str() {
        "pair" => 90,
        "people" | "agent" => 65,
        _ => 40,
    };
    let duration = block.end() - block.at;
    loop {
        block.at = if random.below(100) < together {
            let other = &blocks[random.below(blocks.len())];
            let gap = random.between(100, 600);
            let is_after = random.below(2) == 0;
            if is_after { other.end() + gap } else { other.at - duration - gap }
        } else {
            random.between(first, last) * 86_400 + random.between(7 * 3600, 22 * 3600)
        };
        let (start, end) = (block.at - 90, block.end() + 90);
        if !blocks.iter().any(|other| other.at < end && start < other.end()) {
            return;
        }
    }
}

/// The texts between the scenes: every piece of the stock once, then again in another order.
struct Fillers<'a> {
    world: &'a World,
    waiting: Vec<Vec<Line>>,
}

impl Fillers<'_> {
    fn next(&mut self, random: &mut Random) -> Vec<Line> {
        if self.waiting.is_empty() {
            let stock = &self.world.stock;
            let mut pieces = stock.talks.clone();
            for (topic, asks) in &stock.asks {
                let asks = random.shuffled(asks.clone());
                pieces.extend(sittings(topic, &asks, random));
            }
            self.waiting = random.shuffled(pieces);
        }
        let lines = self.waiting.pop().unwrap();
        let mut bound = Bound { stock: &self.world.stock, values: Vec::new() };
        if self.world.is_talk() {
            bound.values = self.roles(&lines, random);
        }
        let fill = |line: Line| {
            let role = bound.values.iter().find(|(role, _)| *role == line.who);
            let who = role.map_or(line.who.clone(), |(_, name)| name.clone());
            Line { text: bound.fill(&line.text, random), who, ..line }
        };
        lines.into_iter().map(fill).collect()
    }

    /// Returns speakers for the roles `A`, `B` and `C` of an exchange, without those named in it.
    fn roles(&self, lines: &[Line], random: &mut Random) -> Vec<(String, String)> {
        let named = |name: &&String| !lines.iter().any(|line| line.who == **name);
        let speakers = self.world.stock.lists["speakers"].iter().filter(named).cloned().collect();
        let speakers = random.shuffled(speakers);
        ["A", "B", "C"].map(String::from).into_iter().zip(speakers).collect()
    }
}

/// Groups questions of a user about one topic, a few at a time, each with its answer.
fn sittings(topic: &str, asks: &[String], random: &mut Random) -> Vec<Vec<Line>> {
    let mut rest = asks;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + random.below(3)).min(rest.len()));
        let line = |who: &str, stock: Option<&str>, text: &str| Line {
            label: None,
            who: who.to_owned(),
            stock: stock.map(str::to_owned),
            text: text.to_owned(),
        };
        let pair = |ask: &String| [line("u", None, ask), line("a", Some(topic), "")];
        out.push(now.iter().flat_map(pair).collect());
        rest = later;
    }
    out
}

/// The values of the slots `[[...]]` of an exchange.
struct Bound<'a> {
    stock: &'a Stock,
    /// Values that stay the same throughout the exchange.
    values: Vec<(String, String)>,
}

impl Bound<'_> {
    /// Returns the text with a value in each slot.
    fn fill(&mut self, text: &str, random: &mut Random) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("[[") {
            let (slot, after) = after.split_once("]]").unwrap_or_else(|| panic!("slot: {text}"));
            out.push_str(before);
            out.push_str(&self.value(slot, random));
            rest = after;
        }
        out + rest
    }

    fn value(&mut self, slot: &str, random: &mut Random) -> String {
        if let Some(name) = slot.strip_prefix('$') {
            if let Some((_, value)) = self.values.iter().find(|(bound, _)| bound == name) {
                return value.clone();
            }
            let list = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let value = random.of(&self.list(list)).to_owned();
            self.values.push((name.to_owned(), value.clone()));
            return value;
        }
        if let Some(name) = slot.strip_prefix('*') {
            return random.of(&self.list(name)).to_owned();
        }
        if let Some((low, high)) = slot.strip_prefix('#').and_then(|range| range.split_once('-')) {
            let number = random.between(low.parse().unwrap(), high.parse().unwrap());
            return format!("{number:0width$}", width = low.len());
        }
        if let Some(digits) = slot.strip_prefix('%') {
            let digit = |_| char::from_digit(random.below(16) as u32, 16).unwrap();
            return (0..digits.parse::<usize>().unwrap()).map(digit).collect();
        }
        random.of(&slot.split('|').map(str::to_owned).collect::<Vec<_>>()).to_owned()
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.stock.lists.get(name).unwrap_or_else(|| panic!("no list `{name}`")).clone()
    }
}

/// Returns a text with sentences of a stock around it, as an answer in paragraphs.
fn answer(stock: &Stock, name: &str, text: &str, random: &mut Random) -> String {
    let lines = |name: &str| stock.lines.get(name).unwrap_or_else(|| panic!("no lines `{name}`"));
    let mut of_topic = random.shuffled(lines(name).clone());
    let mut of_all = random.shuffled(lines("general").clone());
    let (low, high) = ANSWER_WORDS;
    let mut left = random.between(low, high) - text.split(' ').count() as i64;
    let mut paragraphs: Vec<String> = Vec::new();
    let mut bound = Bound { stock, values: Vec::new() };
    while left > 0 {
        let is_list = random.below(4) == 0;
        let mut sentences = Vec::new();
        for _ in 0..random.between(2, 5) {
            let is_general = random.below(10) < 3;
            let from = if is_general { &mut of_all } else { &mut of_topic };
            let Some(sentence) = from.pop().or_else(|| of_all.pop()) else { break };
            let sentence = bound.fill(&sentence, random);
            left -= sentence.split(' ').count() as i64;
            sentences.push(if is_list { format!("- {sentence}") } else { sentence });
        }
        assert!(!sentences.is_empty(), "the lines `{name}` and `general` are too few");
        paragraphs.push(sentences.join(if is_list { "\n" } else { " " }));
    }
    if !text.is_empty() {
        let at = if random.below(2) == 0 { 0 } else { random.below(paragraphs.len() + 1) };
        paragraphs.insert(at, text.to_owned());
    }
    paragraphs.join("\n\n")
}

/// Returns a text with lines of a stock around it, as the output of a tool.
fn output(stock: &Stock, name: &str, text: &str, random: &mut Random) -> String {
    let from = stock.lines.get(name).unwrap_or_else(|| panic!("no lines `{name}`"));
    let (low, high) = RESULT_LINES;
    let mut lines = Vec::new();
    for _ in 0..random.between(low, high) {
        let mut bound = Bound { stock, values: Vec::new() };
        lines.push(bound.fill(random.of(from), random));
    }
    if !text.is_empty() {
        lines.insert(random.below(lines.len() + 1), text.to_owned());
    }
    lines.join("\n")
}

fn render(world: &World, blocks: &[Block], random: &mut Random) -> Vec<Message> {
    let mut messages = Vec::new();
    let (mut session, mut last) = (0, i64::MIN / 2);
    let (mut calls, mut tool) = (0, String::new());
    for block in blocks {
        let mut at = block.at;
        for (wait, line) in &block.lines {
            at += wait;
            session += usize::from(at - last > SESSION_GAP_S);
            last = at;
            let text = match &line.stock {
                None => line.text.clone(),
                Some(name) if line.who == "r" || line.who == "e" => {
                    output(&world.stock, name, &line.text, random)
                }
                Some(name) => answer(&world.stock, name, &line.text, random),
            };
            let (who, speaker) = match line.who.split_once('.') {
                Some((who, speaker)) => (who, Some(speaker.to_owned())),
                None if world.is_talk() => ("u", Some(line.who.clone())),
                None => (line.who.as_str(), None),
            };
            let (role, parts) = parts(who, &text, &mut calls, &mut tool);
            let number = messages.len() + 1;
            let id = line.label.clone().unwrap_or_else(|| format!("n{number:04}"));
            let mut value = json!({"role": role, "id": id, "timestamp": iso(at),
                "session": format!("{}-{session}", world.name), "parts": parts});
            if let Some(speaker) = &speaker {
                value["speaker"] = json!(speaker);
            }
            messages.push(Message {
                id,
                at,
                role,
                speaker,
                is_written: block.is_written,
                text: searchable(&value["parts"]),
                raw: value.to_string(),
            });
        }
    }
    messages
}

fn parts(who: &str, text: &str, calls: &mut usize, tool: &mut String) -> (&'static str, Value) {
    let plain = json!([{"type": "text", "text": text}]);
    match who {
        "u" => ("user", plain),
        "a" => ("assistant", plain),
        "c" => {
            let (said, call) = text.split_once("=> ").unwrap_or_else(|| panic!("call: {text}"));
            let (name, input) = call.split_once(' ').unwrap_or_else(|| panic!("call: {text}"));
            *calls += 1;
            name.clone_into(tool);
            // A written `\n` became a line end, which a JSON string must have as an escape.
            let input: Value = serde_json::from_str(&input.replace('\n', "\\n"))
                .unwrap_or_else(|error| panic!("{error}: {input}"));
            let call = json!({"type": "tool_call", "id": format!("call-{calls}"), "name": name,
                "input": input});
            if said.is_empty() {
                return ("assistant", json!([call]));
            }
            ("assistant", json!([{"type": "text", "text": said.trim_end()}, call]))
        }
        "r" | "e" => (
            "tool",
            json!([{"type": "tool_result", "call_id": format!("call-{calls}"), "name": tool,
                "output": text, "is_error": who == "e"}]),
        ),
        _ => panic!("nobody is `{who}`"),
    }
}

/// Returns the text that a plain search would read.
fn searchable(parts: &Value) -> String {
    let mut texts = Vec::new();
    for part in parts.as_array().unwrap() {
        for key in ["text", "name", "input", "output"] {
            match &part[key] {
                Value::Null => {}
                Value::String(text) => texts.push(text.clone()),
                other => texts.push(other.to_string()),
            }
        }
    }
    texts.join("\n")
}
