//! Reads the hand-written files: the scenes of a world, the stock around them, the questions.
//!
//! In: the folders below `tests/fixtures/recall`. Out: worlds. The format is described in the
//! `README.md` there. Another module composes a conversation from a world.

use std::{collections::BTreeMap, fs, path::Path};

use regex::Regex;

/// Everything that one folder holds.
pub(crate) struct World {
    /// Name of the folder; also the id of the conversation.
    pub(crate) name: String,
    /// Kind of conversation: the name without its number.
    pub(crate) kind: String,
    /// `tune` or `held-out`.
    pub(crate) half: String,
    pub(crate) seed: u64,
    /// Smallest number of messages of the conversation.
    pub(crate) messages_min: usize,
    pub(crate) scenes: Vec<Scene>,
    pub(crate) stock: Stock,
    pub(crate) questions: Vec<Question>,
}

impl World {
    /// Whether people talk among themselves, so that every message has a speaker.
    pub(crate) fn is_talk(&self) -> bool {
        ["people", "pair"].contains(&self.kind.as_str())
    }
}

/// Messages that follow each other.
pub(crate) struct Scene {
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(crate) lines: Vec<Line>,
}

/// One message.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) label: Option<String>,
    pub(crate) who: String,
    /// Stock that is put around the text.
    pub(crate) stock: Option<String>,
    pub(crate) text: String,
}

/// The texts from which the parts between the scenes are composed.
#[derive(Default)]
pub(crate) struct Stock {
    /// Exchanges of several messages.
    pub(crate) talks: Vec<Vec<Line>>,
    /// Messages of a user, by topic; each is answered with lines of that name.
    pub(crate) asks: BTreeMap<String, Vec<String>>,
    /// Sentences or lines of output, by name.
    pub(crate) lines: BTreeMap<String, Vec<String>>,
    /// Values of a slot, by name.
    pub(crate) lists: BTreeMap<String, Vec<String>>,
}

/// A question with the messages that answer it.
pub(crate) struct Question {
    /// One of [`KINDS`].
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) answer: String,
    pub(crate) evidence: Vec<String>,
    /// Seconds since 1970; absent: after the last message.
    pub(crate) now: Option<i64>,
}

/// Kinds of questions.
pub(crate) const KINDS: [&str; 5] = ["fact", "facts", "time", "who", "paraphrase"];

/// Every world, in the order of the names.
pub(crate) fn all() -> Vec<World> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recall");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| read(folder)).collect()
}

fn read(folder: &Path) -> World {
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let kind = name.rsplit_once('-').unwrap().0.to_owned();
    let (settings, scenes) = scenes(&text("messages.txt"), &name);
    let setting = |key: &str| settings.get(key).unwrap_or_else(|| panic!("{name}: no {key}"));
    World {
        half: setting("half").clone(),
        seed: setting("seed").parse().unwrap(),
        messages_min: setting("messages").parse().unwrap(),
        scenes,
        stock: stock(&text("stock.txt"), &name),
        questions: questions(&text("questions.txt"), &name),
        name,
        kind,
    }
}

fn scenes(text: &str, name: &str) -> (BTreeMap<String, String>, Vec<Scene>) {
    let mut settings = BTreeMap::new();
    let mut scenes: Vec<Scene> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(setting) = line.strip_prefix("! ") {
            let (key, value) = setting.split_once(' ').unwrap();
            settings.insert(key.to_owned(), value.to_owned());
        } else if let Some(at) = line.strip_prefix("== ") {
            scenes.push(Scene { at: seconds(at), lines: Vec::new() });
        } else {
            let scene = scenes.last_mut().unwrap_or_else(|| panic!("{name}: no scene: {line}"));
            scene.lines.push(message(line, name));
        }
    }
    (settings, scenes)
}

fn message(line: &str, name: &str) -> Line {
    let shape = Regex::new(r"^(?:@(\S+) )?([A-Za-z.]+)(?:\(([a-z0-9-]+)\))?> ?(.*)$").unwrap();
    let parts = shape.captures(line).unwrap_or_else(|| panic!("{name}: no message: {line}"));
    let part = |at: usize| parts.get(at).map(|part| part.as_str().to_owned());
    Line {
        label: part(1),
        who: part(2).unwrap(),
        stock: part(3),
        text: part(4).unwrap().replace("\\n", "\n"),
    }
}

fn stock(text: &str, name: &str) -> Stock {
    let mut stock = Stock::default();
    let (mut section, mut topic) = (String::new(), String::new());
    let mut is_new = true;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("== ") {
            let (kind, rest) = heading.split_once(' ').unwrap_or((heading, ""));
            (section, topic) = (kind.to_owned(), rest.to_owned());
            is_new = true;
        } else if line.is_empty() {
            is_new = true;
        } else if section == "talk" {
            if is_new {
                stock.talks.push(Vec::new());
            }
            stock.talks.last_mut().unwrap().push(message(line, name));
            is_new = false;
        } else {
            let place = match section.as_str() {
                "asks" => &mut stock.asks,
                "lines" => &mut stock.lines,
                "list" => &mut stock.lists,
                _ => panic!("{name}: no section for {line}"),
            };
            let values = place.entry(topic.clone()).or_default();
            if section == "list" {
                values.extend(line.split(", ").map(str::to_owned));
            } else {
                values.push(line.to_owned());
            }
        }
    }
    stock
}

fn questions(text: &str, name: &str) -> Vec<Question> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split(" | ").collect();
            assert!((4..=5).contains(&parts.len()), "{name}: no question: {line}");
            Question {
                kind: parts[0].to_owned(),
                text: parts[1].to_owned(),
                answer: parts[2].to_owned(),
                evidence: parts[3].split(' ').map(str::to_owned).collect(),
                now: parts.get(4).map(|now| seconds(now)),
            }
        })
        .collect()
}

/// Parses a time like `2024-03-04 19:12` to seconds since 1970.
pub(crate) fn seconds(text: &str) -> i64 {
    let mut numbers = text
        .split(['-', ' ', ':'])
        .map(|part| part.parse::<i64>().unwrap_or_else(|_| panic!("`{text}` is no time")));
    let mut next = || numbers.next().unwrap();
    let (year, month, day, hour, minute) = (next(), next(), next(), next(), next());
    // Counts years from March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    ((days - 719_468) * 24 + hour) * 3600 + minute * 60
}

/// Formats seconds since 1970 like `2024-03-04T19:12:00.000Z`.
pub(crate) fn iso(at: i64) -> String {
    let (days, rest) = (at.div_euclid(86_400) + 719_468, at.rem_euclid(86_400));
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, if month < 10 { month + 3 } else { month - 9 });
    let year = if month <= 2 { year + 1 } else { year };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

#[test]
fn times_are_those_of_the_calendar() {
    assert_eq!(seconds("1970-01-01 00:00"), 0);
    assert_eq!(seconds("2024-03-01 00:00") - seconds("2024-02-28 00:00"), 2 * 86_400);
    for time in ["2023-12-31 23:59", "2024-02-29 06:30", "2025-03-01 00:00"] {
        assert_eq!(iso(seconds(time)), time.replace(' ', "T") + ":00.000Z");
    }
}
