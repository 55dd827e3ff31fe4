#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Random lives of hosts that append their whole list of messages after every turn, as chat
//! programs do.
//!
//! The *line* is the stored messages with which a list is compared: all but those that were set
//! aside and other forms of messages.
//!
//! A host says something, edits a question, regenerates an answer, undoes turns, goes to an
//! earlier branch, streams an answer in two parts, loses its `seq_seen`, continues with a copy of
//! the conversation, and writes its messages differently each time. Some hosts give ids: one to
//! each message, or the number of its place, which an edited message keeps. A tenth of the lives
//! have two hosts on one conversation. After every call:
//!
//! - the context has every message of the appended list, in order for a single host;
//! - the context has every message that the other host still has;
//! - every message is stored, once for each of its forms;
//! - if a single host passes `seq_seen`, the context has no message that this host left;
//! - a list whose beginning the engine knows by its texts is stored as if it were compared whole.
//!
//! Half of the lives are compacted between the calls. In these lives the items of the context are
//! expanded to messages, which must be each message of the line exactly once.
//!
//! Every run has 1,000 lives; `LCM_SEEDS=100000` runs more, `LCM_SEED=123` runs one.

#[path = "line_lives/calls.rs"]
mod calls;
#[path = "line_lives/compaction.rs"]
mod compaction;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use compaction::{Compaction, Figures};
use lcm_core::Engine;
use lcm_testing::{ModelStore, simulation::random::Random};
use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

const CHAT: &str = "c";
const SEEDS: u64 = 1_000;
const STEPS: u64 = 14;
/// The short messages; no other text has these words.
const SHORT: [&str; 3] = ["okay", "yes", "thanks"];

/// A message that was said, by kind.
#[derive(Clone, Debug)]
enum Said {
    System,
    /// Text of a user or assistant; `token` is in no other text, empty for a short text.
    Text {
        role: &'static str,
        text: String,
        token: String,
    },
    /// A tool call that polls: its arguments and result are said again and again.
    Call {
        id: String,
    },
    Result {
        id: String,
        text: String,
        token: String,
    },
}

/// The ids that a host gives to its messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ids {
    None,
    /// Each message has an id of its own.
    Own,
    /// The id is the place in the list, so a message that replaces another one has its id.
    Place,
}

/// The form in which a list is written.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    nulls: bool,
    parts: bool,
    newline: bool,
    empty_for_null: bool,
    mark: bool,
    spaced_arguments: bool,
    anthropic: bool,
    stubs: bool,
    reminder: bool,
    /// The last answer is still being streamed: the list has its first half.
    half: bool,
}

#[derive(Clone, Debug, Default)]
struct Host {
    /// The current messages of the host, by number.
    list: Vec<usize>,
    /// Earlier lists that the host left.
    branches: Vec<Vec<usize>>,
    seq_seen: Option<u64>,
    /// Numbers of all messages that the host ever had.
    had: BTreeSet<usize>,
    /// Number of messages at the end of the list that the host appends; `None`: the whole list.
    window: Option<usize>,
    passes_seen: bool,
}

struct Life {
    random: Random,
    engine: Engine,
    store: ModelStore,
    now: u64,
    said: Vec<Said>,
    hosts: Vec<Host>,
    /// Whether call ids are unique.
    has_ids: bool,
    ids: Ids,
    /// Place of each message in the list when the message was first appended, by number.
    places: BTreeMap<usize, usize>,
    has_clock: bool,
    /// Texts with which each message was appended, by number.
    forms: BTreeMap<usize, BTreeSet<String>>,
    handed: BTreeSet<usize>,
    /// Numbers of messages of which a list once had only the first half.
    halved: BTreeSet<usize>,
    notices: Vec<String>,
    /// Whether a notice said that the engine is not certain that the list continues the line.
    in_doubt: bool,
    /// Whether messages may be stored twice.
    may_double: bool,
    /// Number of the first text of the first list.
    first: Option<usize>,
    log: Vec<String>,
    /// `None`: the life is not compacted.
    compaction: Option<Compaction>,
    /// Seqs of the messages that the context led to after the newest list.
    stored_context: Vec<u64>,
    /// Number of lists whose beginning the engine knew by its texts.
    known_beginnings: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_shared = random.chance(100);
        let host = Host { passes_seen: !random.chance(150), ..Host::default() };
        let mut hosts = vec![host];
        if is_shared {
            hosts = vec![Host { passes_seen: true, ..Host::default() }; 2];
        } else if random.chance(150) {
            hosts[0].window = Some(random.between(6, 30) as usize);
        }
        let has_ids = random.chance(500);
        let has_clock = random.chance(300);
        let ids = [Ids::None, Ids::None, Ids::Own, Ids::Place][random.between(0, 3) as usize];
        // Two hosts count separately, so two of their messages would have one id.
        let ids = if is_shared && ids == Ids::Place { Ids::Own } else { ids };
        // Otherwise an equal call or short text at the same place would be the same message.
        let has_ids = has_ids || ids == Ids::Place;
        let mut life = Self {
            random,
            engine: Engine::new(),
            store: ModelStore::new(),
            now: 1_700_000_000_000,
            said: Vec::new(),
            hosts,
            has_ids,
            ids,
            places: BTreeMap::new(),
            has_clock,
            forms: BTreeMap::new(),
            handed: BTreeSet::new(),
            halved: BTreeSet::new(),
            notices: Vec::new(),
            in_doubt: false,
            may_double: false,
            first: None,
            log: Vec::new(),
            compaction: Compaction::for_seed(seed),
            stored_context: Vec::new(),
            known_beginnings: 0,
        };
        life.configure_engine();
        life
    }

    fn say(&mut self, said: Said) -> usize {
        self.said.push(said);
        self.said.len() - 1
    }

    fn say_text(&mut self, role: &'static str, short: bool) -> usize {
        let number = self.said.len();
        if short && self.ids != Ids::Place {
            let text = (*self.random.pick(&SHORT)).to_owned();
            return self.say(Said::Text { role, text, token: String::new() });
        }
        let token = format!("[t{number}]");
        let text = format!("{token} what the {role} said as number {number} of all");
        self.say(Said::Text { role, text, token })
    }

    /// Says the messages of a turn: a question, polls, an answer.
    fn say_turn(&mut self) -> Vec<usize> {
        let short = self.random.chance(150);
        let mut turn = vec![self.say_text("user", short)];
        turn.extend(self.say_answer());
        turn
    }

    fn say_answer(&mut self) -> Vec<usize> {
        let mut turn = Vec::new();
        for _ in 0..[0, 0, 1, 3][self.random.between(0, 3) as usize] {
            let number = self.said.len();
            let id = match self.has_ids {
                true => format!("call_abcdefghij{number:06}"),
                false => format!("call_{}", number % 4),
            };
            turn.push(self.say(Said::Call { id: id.clone() }));
            let is_same = self.random.chance(500);
            let token = if is_same { String::new() } else { format!("[r{number}]") };
            let text =
                if is_same { "pending".to_owned() } else { format!("{token} the result of a job") };
            turn.push(self.say(Said::Result { id, text, token }));
        }
        let short = self.random.chance(100);
        turn.push(self.say_text("assistant", short));
        turn
    }

    fn write(&self, number: usize, form: Form, place: usize, count: usize) -> Value {
        let content = |text: &str| match (form.parts, form.mark && place + 2 > count) {
            (_, true) => json!([{"type": "text", "text": text,
                "cache_control": {"type": "ephemeral"}}]),
            (true, _) => json!([{"type": "text", "text": text}]),
            _ if form.newline => json!(format!("{text}\n")),
            _ => json!(text),
        };
        let is_old = place + 6 < count;
        let mut message = match &self.said[number] {
            Said::System => {
                let clock = if self.has_clock { self.now.to_string() } else { String::new() };
                json!({"role": "system", "content": format!("You help people. {clock}")})
            }
            Said::Text { role, text, .. }
                if form.half && place + 1 == count && *role == "assistant" =>
            {
                json!({"role": role, "content": text[..text.len() / 2]})
            }
            Said::Text { role, text, .. } => {
                let is_newest = self.newest_user(place, count);
                match form.reminder && *role == "user" && is_newest {
                    true => json!({"role": role, "content": format!("{text} <reminder>")}),
                    false => json!({"role": role, "content": content(text)}),
                }
            }
            Said::Call { id } if form.anthropic => json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "status", "input": {"job": 1, "of": "x"}}]}),
            Said::Call { id } => {
                let arguments = match form.spaced_arguments {
                    true => "{ \"of\": \"x\", \"job\": 1 }",
                    false => "{\"job\":1,\"of\":\"x\"}",
                };
                let content = if form.empty_for_null { json!("") } else { Value::Null };
                json!({"role": "assistant", "content": content, "tool_calls": [{"id": id,
                    "type": "function", "function": {"name": "status", "arguments": arguments}}]})
            }
            Said::Result { id, text, .. } => {
                let text = if form.stubs && is_old && self.handed.contains(&number) {
                    "[removed]"
                } else {
                    text.as_str()
                };
                match form.anthropic {
                    true => json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": id, "content": content(text)}]}),
                    false => json!({"role": "tool", "tool_call_id": id, "content": content(text)}),
                }
            }
        };
        if form.nulls && !form.anthropic {
            message["name"] = Value::Null;
        }
        let place = self.places.get(&number).filter(|_| self.ids == Ids::Place);
        match (self.ids, &self.said[number]) {
            (Ids::None, _) | (_, Said::System) => {}
            (Ids::Own, _) => message["id"] = json!(format!("own{number}")),
            (Ids::Place, _) => message["id"] = json!(place.map(|place| format!("m{place}"))),
        }
        message
    }

    fn newest_user(&self, place: usize, count: usize) -> bool {
        place + 2 >= count
    }

    /// Returns the text of a message in a form, so that its different forms can be counted.
    fn form_text(&self, number: usize, form: Form, place: usize, count: usize) -> String {
        match &self.said[number] {
            Said::Text { role, text, .. }
                if form.reminder && *role == "user" && self.newest_user(place, count) =>
            {
                format!("{text} <reminder>")
            }
            Said::Text { role, text, .. }
                if form.half && place + 1 == count && *role == "assistant" =>
            {
                text[..text.len() / 2].to_owned()
            }
            Said::Text { text, .. } => text.clone(),
            Said::Result { .. }
                if form.stubs && place + 6 < count && self.handed.contains(&number) =>
            {
                "[removed]".into()
            }
            Said::Result { text, .. } => text.clone(),
            Said::System | Said::Call { .. } => String::new(),
        }
    }

    fn random_form(&mut self) -> Form {
        let mut form = Form::default();
        match self.random.between(0, 13) {
            0 => form.nulls = true,
            1 => form.parts = true,
            2 => form.newline = true,
            3 => form.empty_for_null = true,
            4 => form.mark = true,
            5 => form.spaced_arguments = true,
            6 => form.anthropic = !self.has_clock,
            7 => form.stubs = self.has_ids,
            8 => form.reminder = self.may_remind(),
            9 => {
                let last = self.hosts[0].list.last();
                let is_long = |number: &usize| self.token(*number).is_some();
                form.half = self.hosts.len() == 1
                    && self.hosts[0].window.is_none()
                    && last.is_some_and(|number| is_long(number) && !self.handed.contains(number));
            }
            _ => {}
        }
        form
    }

    fn is_long(&self, number: usize) -> bool {
        matches!(&self.said[number], Said::Text { token, .. } if !token.is_empty())
    }

    /// Returns whether a reminder may be added: the newest question is appended for the first time.
    /// A reminder that is added to an old question is an edit.
    fn may_remind(&self) -> bool {
        let [host] = &*self.hosts else { return false };
        // The engine recognises a changed form only after two long texts.
        let is_long = |number: &&usize| self.is_long(**number);
        let before = host.list.len().saturating_sub(2);
        if host.list[..before].iter().filter(is_long).count() < 2 {
            return false;
        }
        let newest = host.list.iter().rev().take(2);
        let is_user =
            |number: &&usize| matches!(self.said[**number], Said::Text { role: "user", .. });
        host.window.is_none() && newest.filter(is_user).all(|number| !self.handed.contains(number))
    }

    /// Hands the list of a host over.
    fn hand_over(&mut self, which: usize) -> Result<(), String> {
        self.now += self.random.between(1, 90_000);
        let form = self.random_form();
        let host = self.hosts[which].clone();
        let mut list = host.list.clone();
        if let Some(window) = host.window
            && list.len() > window
        {
            // The window overlaps messages that were appended before; it begins with no result.
            let new = list.iter().position(|number| !self.handed.contains(number));
            let most = new.unwrap_or(list.len()).saturating_sub(6);
            let mut from = (list.len() - window).min(most);
            while from > 0 && matches!(self.said[list[from]], Said::Result { .. }) {
                from -= 1;
            }
            list = list[from..].to_vec();
            // Without a long text, an overlap cannot be distinguished from a repetition.
            let is_long = |number: &&usize| self.is_long(**number);
            let again = list.iter().filter(|number| self.handed.contains(number));
            self.may_double |= again.filter(is_long).count() == 0;
        }
        let count = list.len();
        if count < 2 {
            return Ok(());
        }
        for (place, number) in host.list.iter().enumerate() {
            self.places.entry(*number).or_insert(place);
        }
        let messages: Vec<String> = list
            .iter()
            .enumerate()
            .map(|(place, number)| self.write(*number, form, place, count).to_string())
            .collect();
        for (place, number) in list.iter().enumerate() {
            let text = self.form_text(*number, form, place, count);
            self.forms.entry(*number).or_default().insert(text);
            self.handed.insert(*number);
            if form.half && place + 1 == count {
                self.halved.insert(*number);
            }
        }
        let dialect = if form.anthropic { Dialect::Anthropic } else { Dialect::OpenaiChat };
        let seen = host.seq_seen.filter(|_| host.passes_seen);
        self.hosts[which].had.extend(&list);
        let form_text = format!("{form:?}");
        let set: Vec<String> = form_text
            .split(", ")
            .filter(|it| it.contains("true"))
            .map(|it| it.replace(": true", "").replace("Form { ", "").replace(" }", ""))
            .collect();
        self.log.push(format!("host {which} {list:?} {set:?} seen {seen:?}"));
        self.notices.clear();
        self.check_known_beginning(dialect, &messages, seen)?;
        let seq_seen = match self.random.chance(400) || count > 100 {
            true => self.ingest_list(dialect, &messages, seen)?,
            false => self.append_list(dialect, &messages, seen)?,
        };
        self.log.push(format!("  {:?} seen {seq_seen}", self.notices));
        // After an edit of the first question the list may share nothing with the line.
        let is_text = |number: &&usize| !matches!(self.said[**number], Said::System);
        let first = list.iter().find(is_text).copied();
        self.may_double |= host.window.is_none() && first != self.first.or(first);
        self.first = self.first.or(first);
        self.in_doubt |= self.notices.iter().any(|notice| notice.starts_with("branch-in-doubt"));
        self.may_double |= self.notices.iter().any(|it| it.contains("all of the list is stored"));
        self.hosts[which].seq_seen = Some(seq_seen);
        self.check(which, &list)
    }

    fn token(&self, number: usize) -> Option<&str> {
        match &self.said[number] {
            Said::Text { token, .. } | Said::Result { token, .. } if !token.is_empty() => {
                Some(token)
            }
            _ => None,
        }
    }

    fn check(&mut self, which: usize, list: &[usize]) -> Result<(), String> {
        let context = self.read_context(Dialect::OpenaiChat)?;
        if env::var("LCM_SHOW").is_ok() {
            let stored = self.read_stored().join("\n");
            self.log.push(format!("STORED\n{stored}\nCONTEXT\n{context}"));
        }
        let count = |text: &str| context.matches(text).count();
        // In order means: each token comes after the token of the message before.
        let mut from = 0;
        let is_ordered = self.hosts.len() == 1 && !self.in_doubt && !self.may_double;
        let mut polls = 0;
        let mut shorts: BTreeMap<&str, usize> = BTreeMap::new();
        for number in list {
            match (&self.said[*number], self.token(*number)) {
                // A stub of a stored result, in a list that shares nothing with the line.
                (Said::Result { .. }, Some(token))
                    if (self.in_doubt || self.may_double) && !context.contains(token) => {}
                (_, Some(token)) => {
                    let Some(at) = context[from..].find(token) else {
                        return Err(match context.contains(token) {
                            true => format!("{token} is out of order in the context"),
                            false => format!("{token} is missing in the context"),
                        });
                    };
                    if is_ordered {
                        from += at;
                    }
                }
                (Said::Text { text, .. }, None) => *shorts.entry(text).or_default() += 1,
                (Said::Call { .. }, None) => polls += 1,
                (Said::Result { .. } | Said::System, None) => {}
            }
        }
        for (text, wanted) in shorts {
            if count(text) < wanted {
                return Err(format!(
                    "`{text}` is in the context {} of {wanted} times",
                    count(text)
                ));
            }
        }
        if count("\"status\"") < polls {
            return Err(format!("{} of {polls} calls are in the context", count("\"status\"")));
        }
        if self.hosts.len() > 1 {
            // If two results have one counted id, a context for a provider has only one of them.
            let context = self.read_context(Dialect::Lcm)?;
            self.check_foreign(which, &context)?;
        }
        self.check_stored()?;
        self.check_left(which, list, &context)
    }

    /// Reads the context: the assembled one, or in a life with compaction the expanded messages.
    fn read_context(&mut self, dialect: Dialect) -> Result<String, String> {
        if self.compaction.is_none() {
            return Ok(self.assemble_texts(dialect).join("\n"));
        }
        let stored = self.read_stored();
        let seqs = self.expand_context()?;
        Ok(seqs.iter().map(|seq| &*stored[*seq as usize - 1]).collect::<Vec<_>>().join("\n"))
    }

    /// Checks that the context has every message that another host has and this host never had.
    fn check_foreign(&self, which: usize, context: &str) -> Result<(), String> {
        if let Some(other) = self.hosts.get(1 - which.min(1)).filter(|_| self.hosts.len() > 1) {
            let is_foreign = |number: &&usize| {
                self.handed.contains(number) && !self.hosts[which].had.contains(number)
            };
            for number in other.list.iter().filter(is_foreign) {
                if let Some(token) = self.token(*number)
                    && !context.contains(token)
                {
                    return Err(format!("{token}, which the other host has, is set aside"));
                }
            }
        }
        Ok(())
    }

    /// Checks that every message is stored, once for each of its forms.
    fn check_stored(&mut self) -> Result<(), String> {
        let stored = self.read_stored().join("\n");
        for number in &self.handed {
            let Some(token) = self.token(*number) else { continue };
            let forms = self.forms[number].iter().filter(|form| form.contains(token)).count();
            let found = stored.matches(token).count();
            let lost = self.forms[number].iter().find(|form| !stored.contains(form.as_str()));
            if found == 0 || lost.is_some() {
                return Err(format!("{token} is not stored, or its form {lost:?}"));
            }
            // Without `seq_seen` the engine cannot be certain of a branch, so it may store
            // another form of the question.
            let is_unseen = self.in_doubt && !self.hosts.iter().all(|host| host.passes_seen);
            // An answer that was left half streamed and comes back whole is stored once more.
            let again = usize::from(self.halved.contains(number));
            if found > forms + again && !self.may_double && !is_unseen {
                return Err(format!("{token} is stored {found} times, in {forms} forms"));
            }
        }
        Ok(())
    }

    /// Checks that the context has no message that the host left.
    fn check_left(&self, which: usize, list: &[usize], context: &str) -> Result<(), String> {
        let host = &self.hosts[which];
        let is_certain = !self.in_doubt && !self.may_double;
        if self.hosts.len() == 1 && host.passes_seen && is_certain && host.window.is_none() {
            for number in self.handed.iter().filter(|number| !list.contains(number)) {
                if let Some(token) = self.token(*number)
                    && context.contains(token)
                    && self.notices.iter().any(|notice| notice.starts_with("set-aside"))
                {
                    return Err(format!("{token}, which the host left, is in the context"));
                }
            }
        }
        Ok(())
    }

    /// Keeps the current list of the host as a branch, before the host leaves it.
    fn keep_branch(&mut self, which: usize) {
        let list = self.hosts[which].list.clone();
        self.hosts[which].branches.push(list);
    }

    fn act(&mut self, which: usize) {
        let length = self.hosts[which].list.len();
        let is_window = self.hosts[which].window.is_some();
        let action = if length < 4 || is_window { 0 } else { self.random.between(0, 11) };
        match action {
            // The host edits an earlier question, or undoes turns and asks something else.
            6 | 7 => {
                self.keep_branch(which);
                let users: Vec<usize> = self.hosts[which]
                    .list
                    .iter()
                    .enumerate()
                    .filter(|(_, number)| {
                        matches!(self.said[**number], Said::Text { role: "user", .. })
                    })
                    .map(|(at, _)| at)
                    .collect();
                let at = *self.random.pick(&users);
                self.hosts[which].list.truncate(at);
                let turn = self.say_turn();
                self.hosts[which].list.extend(turn);
            }
            // The last answer is regenerated.
            8 => {
                self.keep_branch(which);
                let list = &self.hosts[which].list;
                let is_user =
                    |number: &usize| matches!(self.said[*number], Said::Text { role: "user", .. });
                let at = list.iter().rposition(is_user).map_or(0, |at| at + 1);
                self.hosts[which].list.truncate(at);
                let answer = self.say_answer();
                self.hosts[which].list.extend(answer);
            }
            9 if !self.hosts[which].branches.is_empty() => {
                let branches = self.hosts[which].branches.clone();
                let back = self.random.pick(&branches).clone();
                self.keep_branch(which);
                self.hosts[which].list = back;
                if self.random.chance(500) {
                    let turn = self.say_turn();
                    self.hosts[which].list.extend(turn);
                }
            }
            // The host undoes turns, and says nothing new.
            11 => {
                self.keep_branch(which);
                let list = &self.hosts[which].list;
                let is_user =
                    |number: &usize| matches!(self.said[*number], Said::Text { role: "user", .. });
                let users = (2..list.len()).filter(|at| is_user(&list[*at]));
                let users: Vec<usize> = users.collect();
                if !users.is_empty() {
                    let at = *self.random.pick(&users);
                    self.hosts[which].list.truncate(at);
                }
            }
            10 => {
                self.hosts[which].seq_seen = None;
                let turn = self.say_turn();
                self.hosts[which].list.extend(turn);
            }
            _ => {
                let turn = self.say_turn();
                self.hosts[which].list.extend(turn);
            }
        }
    }

    fn lead_life(mut self) -> Result<Figures, String> {
        let result = self.run();
        result.map_err(|error| format!("{error}\n{}", self.log.join("\n")))?;
        let figures = self.compaction.map(|compaction| compaction.figures).unwrap_or_default();
        Ok(Figures { known_beginnings: self.known_beginnings, ..figures })
    }

    fn run(&mut self) -> Result<(), String> {
        // Both hosts begin with the same messages.
        let mut start = Vec::new();
        if self.random.chance(600) {
            start.push(self.say(Said::System));
        }
        start.extend(self.say_turn());
        start.extend(self.say_turn());
        for which in 0..self.hosts.len() {
            self.hosts[which].list = start.clone();
            self.hand_over(which)?;
        }
        for _ in 0..STEPS {
            let which = self.random.between(0, self.hosts.len() as u64 - 1) as usize;
            if self.random.chance(40) {
                self.copy_store()?;
            }
            self.compact_line()?;
            self.act(which);
            self.hand_over(which)?;
            if self.random.chance(150) {
                // The same list again, in another form.
                self.hand_over(which)?;
            }
        }
        self.check_store()
    }
}

#[test]
fn lists_are_stored_once_and_live() {
    if let Ok(seed) = env::var("LCM_SEED") {
        let seed: u64 = seed.parse().expect("a number");
        let figures = Life::new(seed).lead_life().unwrap_or_else(|error| panic!("{error}"));
        println!("{figures:?}");
        return;
    }
    let seeds = env::var("LCM_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    let (mut failures, mut figures) = (Vec::new(), Figures::default());
    for seed in 1..=seeds {
        match Life::new(seed).lead_life() {
            Ok(of_life) => figures.add_figures(of_life),
            Err(error) => {
                eprintln!("seed {seed}: {}", error.lines().next().unwrap_or_default());
                failures.push((seed, error));
            }
        }
        if seed % 1_000 == 0 {
            eprintln!("{seed} of {seeds} lives, {} failed", failures.len());
        }
    }
    let first = failures.iter().take(12).map(|(seed, error)| {
        format!(
            "LCM_SEED={seed} cargo test --release -p lcm-tests --test line_lives: {}",
            error.lines().next().unwrap_or_default()
        )
    });
    assert!(
        failures.is_empty(),
        "{} of {seeds} lives failed\n{}",
        failures.len(),
        first.collect::<Vec<_>>().join("\n")
    );
    println!("{figures:?}");
    figures.every_kind_occurred();
}

#[test]
fn a_message_that_a_summary_loses_is_missed() {
    let errors = (1..=40).filter_map(|seed| {
        let mut life = Life::new(seed);
        life.compaction.as_mut()?.is_planted = true;
        life.lead_life().err()
    });
    let errors: Vec<String> = errors.collect();
    let has = |text: &str| errors.iter().any(|error| error.contains(text));
    assert!(
        has("compaction changed the messages") && has("is missing in the context"),
        "{errors:?}"
    );
}
