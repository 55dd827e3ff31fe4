//! Ask: an answer to a question from what was said, with the ids that say so.
//!
//! In: a question. Out: one completion request over the passages that fit a cap, and of the model's
//! answer its words and the ids it cites, which are checked against what it was shown. At most
//! [`COMPLETIONS_MAX`] requests are made for a question: a second one after an answer of no use, or
//! after a search that the model asked for. A question is open until it is answered or its time is
//! over, and a conversation has one at a time. Not here: searching and reading ([`crate::recall`]).

mod answer;
mod evidence;
mod outcome;
mod passage;
mod prompt;
mod question;
mod record;
mod routing;

use crate::storage::session;
use alloc::{boxed::Box, string::String, vec::Vec};

pub(crate) use self::question::TIMEOUT_MS_MAX;
use crate::{
    storage::read_scope::{self, Within},
    storage::{
        head::Loaded, history::History, keys::Keys, records::grants::Permit, store_session::Reader,
    },
};
use evidence::{Evidence, Named, Wanted, What};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, tokens,
    },
    config::Config,
    types::{
        api::Timestamp,
        model::{
            Completion, CompletionErrorCode, CompletionRequest, CompletionResult, Finish, Model,
        },
    },
};
pub(crate) use outcome::Step;
use outcome::{Ending, Status};
use prompt::Remark;
pub(crate) use prompt::offline;
use question::Question;
use record::{Held, Open, Paid, Record, Slot, State};

/// Completions for one question.
const COMPLETIONS_MAX: u32 = 2;

/// Begins to answer a question.
///
/// # Errors
///
/// `invalid-input`; `not-found`: the conversation, or a summary that is named; `denied`: the grant,
/// or nothing is stored for the session; `conflict`: another question, or a call on the grant, was
/// faster; errors of the store.
pub(crate) fn plan(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<Step> {
    match begin(reader, config, conversation, question_json, now)? {
        Begun::Ended(step) => Ok(step),
        Begun::Asks(asks) => {
            let Asks { asked, text, now } = *asks;
            let request = asked.request(config, &text, Remark::First);
            asked.hand_out(reader, request, now)
        }
    }
}

/// How a question begins.
enum Begun {
    /// No model is needed.
    Ended(Step),
    Asks(Box<Asks>),
}

/// A question with the passages that a model is to be asked about; nothing is written yet.
struct Asks {
    asked: Asked,
    text: String,
    /// The effective time.
    now: Timestamp,
}

/// A question that is open, with what the call about it is going to write.
struct Asked {
    slot: Slot,
    record: Record,
    open: Open,
    paid: Paid,
}

/// What comes before a model is asked, whoever asks it.
fn begin(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<Begun> {
    let question = Question::read(question_json, config)?;
    let keys = Keys::new(conversation)?;
    let permit = Permit::for_call(reader, conversation, question.grant.as_deref(), now)?;
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let now = loaded.now(now)?;
    let slot = Slot::read(reader, &keys)?;
    if !question.plan_only {
        session::must_be_stored(reader, config, &keys, &loaded.head)?;
        if let Some(other) = slot.open(now)
            && is_held(reader, conversation, other, now)?
        {
            return Ok(Begun::Ended(outcome::busy(other)));
        }
    }
    let within = Within { permit: permit.as_ref(), ..Within::default() };
    let named = named(reader, conversation, &question, within)?;
    let evidence = first_evidence(reader, conversation, &question, &named, within, now)?;
    let truncated = evidence.truncated && within.left() < question.evidence_tokens_max;
    let mut paid = Paid { permit, tokens: 0, truncated };
    if question.plan_only {
        let note = paid.note(0);
        return Ok(Begun::Ended(outcome::planned(&question, &evidence, note)));
    }
    let record = Record::after(&slot, &keys, now, question.timeout_ms);
    let open = open(&question, evidence, truncated);
    if open.passages.is_empty() {
        let ending = Ending::of(&open, Status::NoEvidence, 0);
        return Ok(Begun::Ended(outcome::ended(&ending, paid.note(0))));
    }
    let text = text(reader, &open)?;
    paid.tokens = open.evidence_tokens;
    let asked = Asked { slot, record, open, paid };
    Ok(Begun::Asks(Box::new(Asks { asked, text, now })))
}

/// Whether an open question keeps another one out. One that is read on a grant which does not stand
/// any more will not be answered.
fn is_held(
    reader: &mut Reader<'_>,
    conversation: &str,
    record: &Record,
    now: Timestamp,
) -> Result<bool> {
    let State::Open(open) = &record.state else { return Ok(false) };
    let grant = open.grant.as_ref().map(|grant| grant.id.as_str());
    match Permit::for_call(reader, conversation, grant, now) {
        Ok(_) => Ok(true),
        Err(error) if error.code == ErrorCode::Denied => Ok(false),
        Err(error) => Err(error),
    }
}

impl Asked {
    fn request(&self, config: &Config, text: &str, remark: Remark) -> CompletionRequest {
        prompt::request(config, &self.record, &self.open, text, remark)
    }

    /// Writes that a model is asked, and tells what.
    fn hand_out(
        self,
        reader: &mut Reader<'_>,
        request: CompletionRequest,
        now: Timestamp,
    ) -> Result<Step> {
        let Self { slot, mut record, open, paid } = self;
        let note = paid.note(open.evidence_tokens);
        let step = outcome::asked(&record, &open, request, note, now);
        record.state = State::Open(open);
        slot.write(reader, &record, paid)?;
        Ok(step)
    }

    /// Writes how a question ended, and tells it.
    fn settle(self, reader: &mut Reader<'_>, ending: &Ending) -> Result<Step> {
        let Self { slot, mut record, paid, .. } = self;
        let step = outcome::ended(ending, paid.note(ending.source_tokens));
        record.state = State::Ended(step.document.clone());
        slot.write(reader, &record, paid)?;
        Ok(step)
    }
}

/// Goes on with the answer to the request.
///
/// # Errors
///
/// `invalid-input`: no continuation, or not one answer; `not-found`: the question is not there any
/// more; `denied`: the grant on which it is read does not stand any more; `conflict`: it was
/// answered meanwhile; errors of the store.
pub(crate) fn apply(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    continuation: &str,
    answers: &[CompletionResult],
    now: Timestamp,
) -> Result<Step> {
    let keys = Keys::new(conversation)?;
    let now = Loaded::of_existing(reader, &keys, conversation)?.now(now)?;
    let mut slot = Slot::read(reader, &keys)?;
    let mut record = slot.continued(continuation)?;
    let open = match core::mem::replace(&mut record.state, State::Ended(String::new())) {
        State::Ended(document) => return Ok(Step::done(document)),
        State::Open(open) => open,
    };
    let [answer] = answers else {
        return Err(Error::invalid(format_args!(
            "answers: {} came, one was asked for",
            answers.len()
        )));
    };
    let grant = open.grant.as_ref();
    let truncated = grant.is_some_and(|grant| grant.truncated);
    let permit = Permit::for_call(reader, conversation, grant.map(|grant| grant.id.as_str()), now)?;
    let mut asked = Asked { slot, record, open, paid: Paid { permit, tokens: 0, truncated } };
    let is_in_time = now < asked.record.expires_at;
    let may_ask = asked.open.attempt < COMPLETIONS_MAX && is_in_time;
    let remark = match judge(&asked.open, answer, may_ask, is_in_time) {
        Judged::Ended(ending) => return asked.settle(reader, &ending),
        Judged::Again => Remark::Again,
        Judged::Search(words) => {
            if !asked.search(reader, conversation, &words, now)? {
                let ending = Ending::of(&asked.open, Status::NotFound, asked.open.attempt);
                return asked.settle(reader, &ending);
            }
            Remark::Searched
        }
    };
    asked.open.attempt += 1;
    let text = text(reader, &asked.open)?;
    let request = asked.request(config, &text, remark);
    asked.hand_out(reader, request, now)
}

/// Answers a question through a model that may block. All reads come before it is asked, so that a
/// search at its wish is not made.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn run(
    reader: &mut Reader<'_>,
    model: &mut dyn Model,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<Step> {
    let asks = match begin(reader, config, conversation, question_json, now)? {
        Begun::Ended(step) => return Ok(step),
        Begun::Asks(asks) => asks,
    };
    let Asks { mut asked, text, .. } = *asks;
    let mut remark = Remark::First;
    let ending = loop {
        let answer = model.complete(&asked.request(config, &text, remark));
        let attempt = asked.open.attempt;
        match judge(&asked.open, &answer, attempt < COMPLETIONS_MAX, true) {
            Judged::Ended(ending) => break ending,
            Judged::Search(_) => break Ending::of(&asked.open, Status::NotFound, attempt),
            Judged::Again => (remark, asked.open.attempt) = (Remark::Again, attempt + 1),
        }
    };
    asked.settle(reader, &ending)
}

/// Reads the record of a question, if there is one.
///
/// # Errors
///
/// `corrupt`: it cannot be read; errors of the store.
pub(crate) fn check(reader: &mut Reader<'_>, keys: &Keys) -> Result<()> {
    Slot::read(reader, keys).map(|_| ())
}

/// The summaries that a question names, with their conversations.
fn named(
    reader: &mut Reader<'_>,
    conversation: &str,
    question: &Question,
    within: Within<'_>,
) -> Result<Vec<Named>> {
    let mut found: Vec<Named> = Vec::new();
    for text in &question.summaries {
        let (conversation, id, record) =
            read_scope::summary_in_family(reader, conversation, text, within)?;
        if !found.iter().any(|named| named.id == id) {
            found.push(Named { conversation, id, record });
        }
    }
    Ok(found)
}

fn first_evidence(
    reader: &mut Reader<'_>,
    conversation: &str,
    question: &Question,
    named: &[Named],
    within: Within<'_>,
    now: Timestamp,
) -> Result<Evidence> {
    let wanted = Wanted {
        conversation,
        sought: question.sought(),
        is_query: question.query.is_some(),
        named,
        is_within_named: !named.is_empty() && question.query.is_none(),
        tokens_max: question.evidence_tokens_max.min(within.left()),
        all: question.all,
        only: question.only,
        within,
        now,
    };
    evidence::gather(reader, &wanted, (&[], &[]))
}

/// `truncated`: evidence was left out for want of tokens of the grant.
fn open(question: &Question, evidence: Evidence, truncated: bool) -> Open {
    let held = |id: &String| Held { id: id.clone(), truncated };
    Open {
        question: question.question.clone(),
        tokens_max: question.tokens_max,
        evidence_tokens_max: question.evidence_tokens_max,
        all: question.all,
        only: question.only,
        attempt: 1,
        passages: evidence.passages,
        shares: evidence.shares,
        evidence_tokens: evidence.tokens,
        truncated: evidence.truncated,
        grant: question.grant.as_ref().map(held),
    }
}

impl Asked {
    /// Adds what a search at the model's wish finds; `false`: nothing that is not there, or nothing
    /// is left to read with.
    fn search(
        &mut self,
        reader: &mut Reader<'_>,
        conversation: &str,
        words: &str,
        now: Timestamp,
    ) -> Result<bool> {
        let Self { open, paid, .. } = self;
        let within = Within { permit: paid.permit.as_ref(), ..Within::default() };
        if within.left() == 0 {
            return Ok(false);
        }
        let wanted = Wanted {
            conversation,
            sought: words,
            is_query: false,
            named: &[],
            is_within_named: false,
            tokens_max: open.evidence_tokens_max.min(within.left()),
            all: open.all,
            only: open.only,
            within,
            now,
        };
        let found = evidence::gather(reader, &wanted, (&open.shares, &open.passages))?;
        let is_new = !found.passages.is_empty();
        paid.truncated |= found.truncated && within.left() < open.evidence_tokens_max;
        paid.tokens = found.tokens;
        open.shares = found.shares;
        open.passages.extend(found.passages);
        open.evidence_tokens = open.evidence_tokens.saturating_add(found.tokens);
        open.truncated |= found.truncated;
        if let Some(grant) = &mut open.grant {
            grant.truncated = paid.truncated;
        }
        Ok(is_new)
    }
}

/// The passages as the model reads them, by conversation and in the order of time.
fn text(reader: &mut Reader<'_>, open: &Open) -> Result<String> {
    let mut out = String::new();
    for (number, share) in open.shares.iter().enumerate() {
        let mut passages = open.passages.iter().filter(|passage| passage.place() == number);
        if passages.clone().next().is_none() {
            continue;
        }
        let keys = Keys::new(&share.conversation)?;
        let loaded = Loaded::of_existing(reader, &keys, &share.conversation)?;
        reader.enter(&keys, loaded.head.revision, loaded.bytes.as_deref());
        let history = History { keys: &keys, head: &loaded.head };
        let mut blocks: Vec<(u64, String)> = Vec::new();
        passages.try_for_each(|passage| -> Result<()> {
            if let Some(whole) = passage::whole(reader, &history, passage.what)? {
                let text = whole.text(int::to_usize(passage.at), passage.tokens_max);
                blocks.push((whole.seq, text));
            }
            Ok(())
        })?;
        lcm_text::base::sort::sort(&mut blocks);
        for (_, block) in blocks {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&block);
        }
    }
    Ok(out)
}

/// The printed id of something in a conversation.
fn id_of(conversation: &str, what: What) -> String {
    match what {
        What::Message(seq) => {
            Keys::new(conversation).map(|keys| keys.message_name(seq)).unwrap_or_default()
        }
        What::Summary(id) => crate::storage::summary::name(id),
    }
}

/// The printed ids of what the model was shown, each with its conversation.
fn shown(open: &Open) -> Vec<(String, &str)> {
    let of = |passage: &evidence::Passage| {
        let share = open.shares.get(passage.place())?;
        Some((id_of(&share.conversation, passage.what), share.conversation.as_str()))
    };
    open.passages.iter().filter_map(of).collect()
}

/// What an answer leads to.
enum Judged {
    Ended(Ending),
    /// The same is asked again.
    Again,
    /// These words are searched, and then it is asked again.
    Search(String),
}

fn judge(open: &Open, answer: &CompletionResult, may_ask: bool, is_in_time: bool) -> Judged {
    let without = |status| Judged::Ended(Ending::of(open, status, open.attempt));
    let completion = match answer {
        CompletionResult::Done(completion) => completion,
        CompletionResult::Failed(error) => {
            let is_late = !is_in_time || error.code == CompletionErrorCode::Timeout;
            let status = if is_late { Status::TimedOut } else { Status::ModelFailed };
            return Judged::Ended(Ending::of(open, status, open.attempt).failed(error));
        }
    };
    match answer::read(completion) {
        answer::Read::NotFound { search: Some(words) } if may_ask => Judged::Search(words),
        answer::Read::NotFound { .. } => without(Status::NotFound),
        answer::Read::Nothing if may_ask => Judged::Again,
        answer::Read::Nothing => without(Status::NoAnswer),
        answer::Read::Answer { text, ids } => answered(open, completion, text, ids, may_ask),
    }
}

/// An answer in words: what it cites counts only if the model was shown it.
fn answered(
    open: &Open,
    completion: &Completion,
    text: String,
    ids: Vec<String>,
    may_ask: bool,
) -> Judged {
    let shown = shown(open);
    let (mut cited, mut rejected) = (Vec::new(), Vec::new());
    for id in ids {
        match shown.iter().find(|(shown, _)| *shown == id) {
            Some((_, conversation)) => cited.push((id, String::from(*conversation))),
            None => rejected.push(id),
        }
    }
    if cited.is_empty() && may_ask {
        return Judged::Again;
    }
    let status = if cited.is_empty() { Status::Uncited } else { Status::Answered };
    let cut = tokens::truncate(&text, open.tokens_max);
    let is_cut = cut.len() < text.len() || completion.finish == Finish::Length;
    let mut ending = Ending::of(open, status, open.attempt);
    ending.answer = Some(cut.into());
    ending.cited = cited;
    ending.rejected = rejected;
    ending.truncated |= is_cut;
    Judged::Ended(ending)
}
