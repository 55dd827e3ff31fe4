//! Chunks, their summaries, and the shares of facts that the summaries keep.

use std::{fmt, fs, path::Path};

use lcm_text::{
    base::{
        time_offsets::TimeOffsets,
        tokens::{estimate, truncate_to_tokens},
    },
    message,
    summary::{offline_summary::summarize_extractively, transcript},
    types::api::Dialect,
};

use crate::facts;

/// Largest size of a chunk, in tokens.
const CHUNK_TOKENS: u32 = 4_000;
/// Size of a summary in percent of its chunk.
const SUMMARY_PERCENT: u32 = 20;
/// Largest size of a part of a message, in tokens; a longer part is cut before it is summarised, as
/// in a leaf.
const PART_TOKENS_MAX: u32 = 20_000;
/// Beginning of the last line of every summary.
const FOOTER: &str = "Expand for details about: ";
/// Text of the last line if the omitted facts have no name.
const NAMELESS: &str = "the full text";

/// Conversations of one kind.
pub(crate) struct Set {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// Folder under the data folder.
    folder: &'static str,
    /// Smallest kept share of rare facts, in percent.
    pub(crate) facts_min: u32,
}

/// The sets of real conversations. Short conversations are joined.
pub(crate) const SETS: [Set; 6] = [
    Set { name: "tau", folder: "tau_airline", facts_min: 70 },
    Set { name: "tau-long", folder: "long", facts_min: 70 },
    Set { name: "swe", folder: "swe_agent", facts_min: 73 },
    Set { name: "openhands", folder: "openhands", facts_min: 78 },
    Set { name: "aider", folder: "aider", facts_min: 60 },
    Set { name: "chinese", folder: "crosswoz_zh", facts_min: 25 },
];

/// Numbers of kept facts and of all facts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) kept: u32,
    /// Number of facts in a truncated chunk of the same size.
    pub(crate) truncated: u32,
    pub(crate) all: u32,
}

impl Share {
    /// Returns whether at least `percent` percent are kept.
    pub(crate) fn reaches(&self, percent: u32) -> bool {
        self.kept * 100 >= self.all * percent
    }

    fn add(&mut self, kept: bool, truncated: bool) {
        self.kept += u32::from(kept);
        self.truncated += u32::from(truncated);
        self.all += 1;
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |count: u32| f64::from(count) / f64::from(self.all.max(1));
        write!(f, "{:.3} {:.3} {:6}", part(self.kept), part(self.truncated), self.all)
    }
}

/// One row of the table.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) chunks: u32,
    pub(crate) facts: Share,
    /// Share of rare facts without the last line of the summary.
    body: Share,
    pub(crate) errors: Share,
    fill: u32,
}

/// Names the columns of a row.
pub(crate) const HEADING: &str = "\
set       chunks  rare facts: kept, cut, of  without last line   error lines: kept, cut, of  used";

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, chunks, facts, body, errors, fill } = self;
        write!(f, "{name:9} {chunks:5}  {facts}  {body}  {errors}  {fill:3} %")
    }
}

/// One rendered message.
struct Block {
    tokens: u32,
    text: String,
}

impl Set {
    /// Reads the messages of all conversations of the set, in the order of their files.
    pub(crate) fn read(&self, data: &Path) -> Vec<Vec<String>> {
        let folder = data.join(self.folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|why| panic!("{folder:?}: {why}"));
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|name| name == "jsonl"));
        files.sort();
        let lines = |path| -> Vec<String> {
            fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
        };
        files.iter().map(lines).collect()
    }
}

/// Summarises all chunks of these conversations, checks every summary, and counts facts.
pub(crate) fn measure(name: &'static str, conversations: &[Vec<String>]) -> Measured {
    let mut row = Measured {
        name,
        chunks: 0,
        facts: Share::default(),
        body: Share::default(),
        errors: Share::default(),
        fill: 0,
    };
    let mut used = 0;
    for chunk in all_chunks(conversations) {
        used += row.count(&chunk);
    }
    row.fill = used / row.chunks.max(1);
    row
}

fn all_chunks(conversations: &[Vec<String>]) -> Vec<Vec<Block>> {
    // Conversations that are too short for a chunk are joined.
    let size = |lines: &Vec<String>| blocks(lines).iter().map(|block| block.tokens).sum::<u32>();
    let short = conversations.iter().all(|lines| size(lines) < CHUNK_TOKENS);
    let joined = [conversations.concat()];
    let all = if short { &joined[..] } else { conversations };
    all.iter().flat_map(|conversation| chunks(blocks(conversation))).collect()
}

/// Returns the chunks of these conversations, as a summariser reads them.
pub(crate) fn sources(conversations: &[Vec<String>]) -> Vec<String> {
    let text = |chunk: &Vec<Block>| {
        let texts: Vec<&str> = chunk.iter().map(|block| block.text.as_str()).collect();
        texts.join("\n\n")
    };
    all_chunks(conversations).iter().map(text).collect()
}

fn blocks(lines: &[String]) -> Vec<Block> {
    let mut out = Vec::new();
    for raw in lines.iter().filter(|line| !line.trim().is_empty()) {
        let message = message::parse(Dialect::Lcm, raw).unwrap();
        let mut text = String::new();
        let time = message.timestamp.unwrap_or(0);
        let (role, parts) = (message.role, &*message.parts);
        let options = transcript::TranscriptOptions {
            part_tokens_max: PART_TOKENS_MAX,
            injected_tags: &[],
            offsets: &TimeOffsets::default(),
        };
        let message = transcript::TranscriptMessage { raw, role, parts, time };
        if transcript::render_message(&mut text, &message, options) {
            out.push(Block { tokens: estimate(&text), text });
        }
    }
    out
}

/// Groups consecutive messages to chunks of at most [`CHUNK_TOKENS`], or of one larger message.
fn chunks(blocks: Vec<Block>) -> Vec<Vec<Block>> {
    let mut out: Vec<Vec<Block>> = Vec::new();
    let mut size = u32::MAX;
    for block in blocks {
        if size.saturating_add(block.tokens) > CHUNK_TOKENS {
            out.push(Vec::new());
            size = 0;
        }
        size += block.tokens;
        out.last_mut().unwrap().push(block);
    }
    // A small rest at the end or before a large message does not count as a chunk.
    let tokens = |chunk: &Vec<Block>| chunk.iter().map(|block| block.tokens).sum::<u32>();
    out.retain(|chunk| tokens(chunk) >= CHUNK_TOKENS / 2);
    out
}

impl Measured {
    /// Adds one chunk; returns how much of its limit the summary uses, in percent.
    fn count(&mut self, chunk: &[Block]) -> u32 {
        let texts: Vec<&str> = chunk.iter().map(|block| block.text.as_str()).collect();
        let source = texts.join("\n\n");
        let target = estimate(&source) * SUMMARY_PERCENT / 100;
        let summary = summarize_extractively(&source, target);
        assert_summary(&summary, &texts, target);
        assert_eq!(summary, summarize_extractively(&source, target));
        let body = summary.rsplit_once('\n').unwrap().0;
        let cut = truncate_to_tokens(&source, target);
        let bodies: Vec<&str> =
            texts.iter().map(|text| text.split_once('\n').map_or("", |(_, body)| body)).collect();
        let pairs = source.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
        for fact in facts::rare(&bodies, pairs * 4 > source.chars().count()) {
            let truncated = facts::holds(cut, fact);
            self.facts.add(facts::holds(&summary, fact), truncated);
            self.body.add(facts::holds(body, fact), truncated);
        }
        for window in facts::error_windows(&bodies.join("\n")) {
            self.errors.add(body.contains(window), cut.contains(window));
        }
        self.chunks += 1;
        estimate(&summary) * 100 / target
    }
}

/// Asserts for a summary: it is within its limit, every part is a literal piece of one line of a
/// message, and the last line names the omitted facts.
fn assert_summary(summary: &str, messages: &[&str], tokens_max: u32) {
    assert!(estimate(summary) <= tokens_max, "{} of {tokens_max} tokens", estimate(summary));
    let (body, footer) = summary
        .rsplit_once('\n')
        .unwrap_or_else(|| panic!("one line in {tokens_max} tokens: {summary:?}"));
    let lines: Vec<&str> = messages.iter().flat_map(|text| text.lines()).collect();
    let whole = |part: &str| lines.iter().any(|line| line.contains(part));
    for line in body.lines() {
        let text = without_header(line);
        let parts = |text: &str| text.split(" ... ").all(whole);
        let literal = whole(line) || whole(text) || parts(line) || parts(text);
        assert!(literal, "{line:?} is not in the messages");
    }
    let names = footer.strip_prefix(FOOTER).unwrap_or_else(|| panic!("last line: {footer:?}"));
    for name in names.split(", ").filter(|name| *name != NAMELESS) {
        assert!(messages.iter().any(|text| text.contains(name)), "{name:?} is in no message");
        assert!(!facts::holds(body, name), "{name:?} was not left out");
    }
}

/// Returns a line without the header with its time and speaker.
fn without_header(line: &str) -> &str {
    let Some((head, text)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) else {
        return line;
    };
    let mut words = head.split(' ').map(|word| word.chars().next());
    if words.next().flatten().is_some_and(|c| c.is_ascii_digit()) { text } else { line }
}
