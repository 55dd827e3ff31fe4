//! A lenient reader of prompts and summaries. It shares no rule with the engine. A line that begins
//! with a character like a bracket and has a time or a role is a header; every character that may
//! end a line is a line end; and every text that looks like a tag is a tag.

use std::sync::LazyLock;

use regex::Regex;

/// A word of a text, and the speaker, tool and time that the reader assigns to the word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) word: String,
    /// `None`: no speaker, as for the words of a summary.
    pub(crate) speaker: Option<String>,
    /// The tool that a label names.
    pub(crate) tool: Option<String>,
    /// A time, perhaps with its date before it.
    pub(crate) time: Option<String>,
}

/// The words that a reader found in a text.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) heard: Vec<Heard>,
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

static LINE_END: LazyLock<Regex> =
    LazyLock::new(|| regex("\r\n|[\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}]"));
static UNSEEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^[\s\x00-\x1f\x7f-\x9f\x{ad}\x{34f}\x{61c}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}\x{e0000}-\x{e0fff}\x{115f}\x{1160}\x{2800}\x{3164}\x{ffa0}\x{fe00}-\x{fe0f}]*",
    )
});
static BRACKET: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^[\[\x{ff3b}\x{3010}\x{3014}\x{2772}\x{27e6}\x{2045}\x{301a}\x{fe5d}]([^\]\x{ff3d}\x{3011}]*)[\]\x{ff3d}\x{3011}]?",
    )
});
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d"));
static ROLE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(user|assistant|tool|system|data|summary)\b"));
static LABEL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)^tool (call|result|error)(?: ([^:]*))?:?"));
static WORD: LazyLock<Regex> = LazyLock::new(|| regex(r"w\d{4}q"));
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(\\?)[<\x{ff1c}\x{3008}][\s\x00-\x1f\x7f-\x9f\x{ad}\x{34f}\x{61c}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}\x{e0000}-\x{e0fff}]*(/?)[\s\x00-\x1f\x7f-\x9f\x{ad}\x{34f}\x{61c}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}\x{e0000}-\x{e0fff}]*(source|previous|findings|question)\b",
    )
});

fn lines(text: &str) -> Vec<&str> {
    LINE_END.split(text).collect()
}

fn seen(line: &str) -> &str {
    &line[UNSEEN.find(line).map_or(0, |found| found.end())..]
}

/// Reads a prompt. Each part must occur once, in the fixed order, and words of speakers must be
/// inside the parts.
pub(crate) fn read_prompt(prompt: &str) -> Result<Reading, String> {
    let (mut reading, mut inside) = (Reading::default(), None::<(String, Vec<&str>)>);
    let mut parts: Vec<String> = Vec::new();
    for line in lines(prompt) {
        let tag = find_tag(line);
        match (tag, &mut inside) {
            (Some((name, false)), None) if line == format!("<{name}>") => {
                parts.push(name.clone());
                inside = Some((name, Vec::new()));
            }
            (Some((name, true)), Some((open, found))) if line == format!("</{open}>") => {
                if name != *open {
                    return Err(format!("`{line}` closes `{open}`"));
                }
                let found = core::mem::take(found);
                read_part(open, &found, &mut reading)?;
                inside = None;
            }
            (Some(_), _) => return Err(format!("a tag where none is: {line:?}")),
            (None, Some((_, found))) => found.push(line),
            (None, None) if WORD.is_match(line) => {
                return Err(format!("words outside of the material: {line:?}"));
            }
            (None, None) => {}
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let known: [&[&str]; 5] = [
        &["source"],
        &["source", "previous"],
        &["source", "findings"],
        &["source", "previous", "findings"],
        &["question", "source"],
    ];
    if inside.is_some() || !known.contains(&parts.as_slice()) {
        return Err(format!("parts {parts:?}"));
    }
    Ok(reading)
}

/// Returns the tag of a line: a closing tag anywhere, or an opening tag at the beginning.
fn find_tag(line: &str) -> Option<(String, bool)> {
    TAG.captures_iter(line).find_map(|found| {
        let is_closing = !found[2].is_empty();
        let begins = seen(&line[..found.get(0)?.start()]).is_empty();
        let counts = found[1].is_empty() && (is_closing || begins);
        counts.then(|| (found[3].to_lowercase(), is_closing))
    })
}

fn read_part(part: &str, lines: &[&str], reading: &mut Reading) -> Result<(), String> {
    if matches!(part, "findings" | "question") {
        let spoken = lines.iter().find(|line| read_header(line).is_some());
        return spoken.map_or(Ok(()), |line| Err(format!("`{part}` has a speaker: {line:?}")));
    }
    read_lines(lines, reading)
}

/// Reads the text of a summary.
pub(crate) fn read_summary(text: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    read_lines(&lines(text), &mut reading)?;
    Ok(reading)
}

/// Returns time and speaker of a header, and the text after it; `None`: the line is no header.
fn read_header(line: &str) -> Option<(Option<String>, Option<String>, &str)> {
    let line = seen(line);
    let bracket = BRACKET.captures(line)?;
    let inside = &bracket[1];
    let time = TIME.find(inside).map(|time| time.as_str().to_owned());
    let role = ROLE.find_iter(inside).last().map(|role| role.as_str().to_lowercase());
    let behind = &line[bracket.get(0)?.end()..];
    (time.is_some() || role.is_some()).then_some((time, role, behind))
}

fn read_lines(lines: &[&str], reading: &mut Reading) -> Result<(), String> {
    let mut current = Heard::default();
    for line in lines {
        let mut text = seen(line);
        if let Some((time, role, behind)) = read_header(line) {
            // The words of a summary have no speaker and no time.
            let is_summary = role.as_deref() == Some("summary");
            current = if is_summary {
                Heard::default()
            } else {
                Heard { time, speaker: role, ..Heard::default() }
            };
            text = behind;
        } else if BRACKET.is_match(text) && WORD.is_match(text) {
            return Err(format!("a note of somebody else: {line:?}"));
        }
        if let Some(label) = LABEL.captures(seen(text)) {
            let is_call = label[1].eq_ignore_ascii_case("call");
            let speaker = if is_call { "assistant" } else { "tool" };
            current.speaker = Some(speaker.into());
            current.tool =
                label.get(2).map(|name| name.as_str().trim().to_owned()).filter(|_| !is_call);
        }
        if seen(text).starts_with("Expand for details about:") {
            // This line names words that the text does not have; it is no speech.
            continue;
        }
        for word in WORD.find_iter(text) {
            reading.heard.push(Heard { word: word.as_str().into(), ..current.clone() });
        }
    }
    Ok(())
}
