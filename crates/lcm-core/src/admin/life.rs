//! What is asked of a session: join a family, reset, begin anew, archive, calibrate.
//!
//! In: a verb and its arguments as JSON. Out: what was done, as JSON; `changed` says whether
//! anything was, or with `dry_run` would be. Each makes at most one commit and, repeated, none.

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::Timestamp,
    calibration, codec,
    config::Config,
    context::Item,
    error::{Error, ErrorCode, Result},
    head::{Act, Journal, Loaded},
    json::{Fields, Kind, Writer},
    keys::{self, Keys},
    life::{self, Archived, Cause, Life},
    num,
    reader::Reader,
    store::{Guard, Put},
};

/// Name of the argument that holds the verb's own.
const ARGUMENTS: &str = "arguments-json";
/// Ids that are tried for a successor; whoever has taken more names one.
const SUCCESSORS_MAX: u64 = 1_000;

/// A verb with its arguments.
enum Asked {
    Family {
        key: String,
    },
    Reset {
        successor: Option<String>,
    },
    /// Summaries from this depth on stay; `None`: everything does.
    New {
        retain_depth: Option<u32>,
    },
    Archive {
        cause: Cause,
    },
    Calibrate {
        model: String,
        estimated_tokens: u32,
        prompt_tokens: u32,
    },
}

/// Does what a verb says.
///
/// # Errors
///
/// `unsupported`: no such verb; `invalid-input`: its arguments; `not-found`, `exists`, `denied` as
/// the verb says; `conflict`; errors of the store.
pub(crate) fn call(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    verb: &str,
    arguments_json: &str,
    now: Timestamp,
) -> Result<String> {
    let keys = Keys::new(conversation)?;
    let none = arguments_json.trim().is_empty();
    let mut fields = Fields::of_argument(ARGUMENTS, if none { "{}" } else { arguments_json })?;
    let asked = match verb {
        "family" => Asked::Family { key: fields.text("key") },
        "reset" => Asked::Reset { successor: fields.text_or_none("successor") },
        "new" => Asked::New { retain_depth: retain_depth(&mut fields, config)? },
        "archive" => Asked::Archive { cause: Cause::at(fields.place("cause", &Cause::NAMES)) },
        "calibrate" => Asked::Calibrate {
            model: fields.text("model"),
            estimated_tokens: fields.small("estimated_tokens"),
            prompt_tokens: fields.small("prompt_tokens"),
        },
        _ => return Err(Error::unsupported(format_args!("verb: there is no `{verb}`"))),
    };
    let dry_run = fields.flag("dry_run");
    fields.end(ARGUMENTS)?;
    let loaded = Loaded::of(reader, &keys, conversation)?;
    let now = loaded.now(now)?;
    let family = match &asked {
        Asked::Family { key } => Some(key.as_str()),
        _ => None,
    };
    let passed_over = life::passed_over(reader, config, &keys, &loaded.head, family)?;
    let writes = !dry_run && passed_over.is_none();
    let session = Session { reader, keys, loaded, now, writes };
    let is_stored = passed_over.is_none();
    let mut answer = match asked {
        Asked::Family { key } => session.family(&key),
        Asked::Reset { successor } => session.reset(successor),
        Asked::New { retain_depth } => session.new_session(retain_depth),
        Asked::Archive { cause } => session.archive(cause),
        Asked::Calibrate { model, estimated_tokens, prompt_tokens } => {
            session.calibrate(model, (estimated_tokens, prompt_tokens), is_stored)
        }
    }?;
    if let Some(reason) = passed_over {
        answer.texts("warnings", &[life::warning(reason)]);
    }
    Ok(answer.end_object())
}

/// The argument of `new`, or what is configured.
fn retain_depth(fields: &mut Fields<'_>, config: &Config) -> Result<Option<u32>> {
    match fields.any("retain_depth") {
        None | Some((_, Kind::Null)) => Ok(config.new_session_retain_depth),
        Some((text, Kind::Number)) if text == "-1" => Ok(None),
        Some((text, kind)) => {
            let depth = text.parse().ok().filter(|_| kind == Kind::Number);
            let wrong = || Error::invalid("retain_depth: a whole number from -1");
            depth.map(Some).ok_or_else(wrong)
        }
    }
}

/// One conversation, read.
struct Session<'a, 's> {
    reader: &'a mut Reader<'s>,
    keys: Keys,
    loaded: Loaded,
    now: Timestamp,
    writes: bool,
}

impl Session<'_, '_> {
    fn family(mut self, key: &str) -> Result<Writer> {
        let mut puts = Vec::new();
        let changed = life::join(&mut self.loaded.head, &self.keys, key, self.now, &mut puts)?;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        answer.text("family", key);
        if changed && self.writes {
            let entry = Journal { time: self.now, act: Act::Join };
            self.loaded.commit(self.reader, &self.keys, self.now, &entry, puts, Vec::new())?;
        }
        Ok(answer)
    }

    fn archive(mut self, cause: Cause) -> Result<Writer> {
        self.loaded = self.loaded.existing()?;
        let head = &mut self.loaded.head;
        let changed = head.archived.is_none();
        let new = Archived { cause, time: self.now, successor: None };
        head.archived.get_or_insert(new);
        let mut answer = Writer::object();
        Life::read(self.reader, &self.keys, head)?.write_archived(&mut answer);
        answer.flag("changed", changed);
        answer.text("conversation", &head.conversation);
        if changed && self.writes {
            let entry = Journal { time: self.now, act: Act::Archive { cause } };
            self.loaded.commit(
                self.reader,
                &self.keys,
                self.now,
                &entry,
                Vec::new(),
                Vec::new(),
            )?;
        }
        Ok(answer)
    }

    fn calibrate(
        mut self,
        model: String,
        (estimated_tokens, prompt_tokens): (u32, u32),
        is_stored: bool,
    ) -> Result<Writer> {
        let wanted = calibration::Wanted::of(&self.keys, model)?;
        if is_stored {
            self.loaded = self.loaded.existing()?;
            life::goes_on(self.reader, &self.loaded.head)?;
        }
        let found = wanted.found(self.reader.fresh_one(&wanted.key)?)?;
        let mut puts = Vec::new();
        if found.is_none() {
            puts.extend(calibration::room(self.reader, &self.keys)?);
        }
        let mut record = found.unwrap_or_else(|| wanted.begin());
        let changed = record.report(estimated_tokens, prompt_tokens, self.now)?;
        let mut answer = Writer::object();
        answer.object_at("calibration", record.object());
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        if changed && self.writes {
            puts.push(Put { key: wanted.key, value: Some(codec::encode(&record)?) });
            let entry = Journal { time: self.now, act: Act::Calibrate };
            self.loaded.commit(self.reader, &self.keys, self.now, &entry, puts, Vec::new())?;
        }
        Ok(answer)
    }

    fn new_session(mut self, retain_depth: Option<u32>) -> Result<Writer> {
        let head = &mut self.loaded.head;
        life::goes_on(self.reader, head)?;
        let items = head.context.load(self.reader, &self.keys)?;
        let kept = |item: &Item| retain_depth.is_none_or(|least| item.depth() >= Some(least));
        let (mut messages, mut summaries) = (0u64, 0u64);
        let mut left: Vec<Item> = Vec::new();
        for item in &items {
            match item {
                _ if kept(item) => {
                    left.push(*item);
                    continue;
                }
                Item::Run(run) => messages += run.seq_last + 1 - run.seq_first,
                Item::Summary(_) => summaries += 1,
                Item::Withdrawn { .. } => {}
            }
            let (mut first, last) = (item.seq_first(), item.seq_last());
            if let Some(Item::Withdrawn { seq_first, .. }) = left.last() {
                first = *seq_first;
                left.pop();
            }
            left.push(Item::Withdrawn { seq_first: first, seq_last: last });
        }
        let before = head.context.clone();
        let revision = head.revision + 1;
        let (context, puts) =
            head.context.replace(&self.keys, revision, &items, 0..items.len(), &left)?;
        head.context = context;
        let changed = left != items;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &head.conversation);
        answer.number("messages", messages);
        answer.number("summaries", summaries);
        answer.number("tokens_after", head.context.tokens);
        answer.number("tokens_before", before.tokens);
        if changed && self.writes {
            let entry = Journal { time: self.now, act: Act::Withdraw { before } };
            self.loaded.commit(self.reader, &self.keys, self.now, &entry, puts, Vec::new())?;
        }
        Ok(answer)
    }

    fn reset(mut self, successor: Option<String>) -> Result<Writer> {
        let head = &self.loaded.head;
        let conversation = head.conversation.clone();
        let answer = |archived: Option<&str>, conversation: &str, changed| {
            let mut answer = Writer::object();
            answer.text_or_null("archived", archived);
            answer.flag("changed", changed);
            answer.text("conversation", conversation);
            answer
        };
        match &head.archived {
            None if head.messages == 0 => return Ok(answer(None, &conversation, false)),
            Some(archived) => {
                if let Some(successor) = life::successor(self.reader, archived)? {
                    return Ok(answer(Some(&conversation), &successor, false));
                }
            }
            None => {}
        }
        let family = life::family_of(self.reader, &self.keys, head)?;
        let family = family.unwrap_or_else(|| conversation.clone());
        let next = self.successor(successor, &family)?;
        let name = next.1.head.conversation.clone();
        if self.writes {
            self.commit_reset(&family, next)?;
        }
        Ok(answer(Some(&conversation), &name, true))
    }

    /// An empty conversation to go on in.
    fn successor(&mut self, asked: Option<String>, family: &str) -> Result<(Keys, Loaded)> {
        let hash = keys::family(family);
        if let Some(name) = asked {
            let found = self.empty(&name, hash)?;
            return found.ok_or_else(|| {
                let message = format!("conversation `{name}` exists and is not empty");
                Error::new(ErrorCode::Exists, message)
            });
        }
        let id = &self.loaded.head.conversation;
        let digits = |tail: &str| !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit());
        let stem =
            id.rsplit_once('#').filter(|(_, tail)| digits(tail)).map_or(&**id, |(stem, _)| stem);
        let stem = String::from(stem);
        let members = life::members(self.reader, hash)?.len();
        // The first of a family is the conversation itself, listed or about to be.
        let from = num::to_u64(members).max(1) + 1;
        for number in from..from + SUCCESSORS_MAX {
            if let Some(found) = self.empty(&format!("{stem}#{number}"), hash)? {
                return Ok(found);
            }
        }
        Err(Error::new(ErrorCode::Exists, "successor: name one; the next ids are all taken"))
    }

    /// The conversation of this id, when it can be a successor: nothing was said in it.
    fn empty(&mut self, name: &str, family: [u8; 16]) -> Result<Option<(Keys, Loaded)>> {
        let keys = Keys::new(name)?;
        let loaded = Loaded::of(self.reader, &keys, name)?;
        let head = &loaded.head;
        let usable = head.messages == 0
            && head.archived.is_none()
            && head.family.is_none_or(|known| known == family)
            && keys.id() != self.keys.id();
        Ok(usable.then_some((keys, loaded)))
    }

    /// Archives the one and makes the other, both in one family, in one commit guarded by both.
    fn commit_reset(mut self, family: &str, (keys, mut next): (Keys, Loaded)) -> Result<()> {
        let now = self.now;
        let (mut puts, mut guards) = (Vec::new(), Vec::new());
        let head = &mut self.loaded.head;
        life::join(head, &self.keys, family, now, &mut puts)?;
        let (cause, time) = (Cause::ManualReset, now);
        let archived = head.archived.get_or_insert(Archived { cause, time, successor: None });
        archived.successor = Some(keys.id());
        let entry = Journal { time: now, act: Act::Archive { cause: archived.cause } };
        self.loaded.write(&self.keys, now, &entry, &mut puts, &mut guards)?;
        if life::join(&mut next.head, &keys, family, now, &mut puts)? {
            let now = next.now(now)?;
            let entry = Journal { time: now, act: Act::Join };
            next.write(&keys, now, &entry, &mut puts, &mut guards)?;
        } else {
            guards.push(Guard { key: keys.head(), value: next.bytes });
        }
        self.reader.commit(&guards, &puts)
    }
}
