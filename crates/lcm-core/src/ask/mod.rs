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
mod question_record;
mod routing;

use crate::storage::session;
use alloc::{boxed::Box, string::String, vec::Vec};

pub(crate) use self::question::DEADLINE_MS_MAX;
use crate::{
    storage::read_scope::{self, ReadLimits},
    storage::{
        head::LoadedHead, history::MessageHistory, keys::ConversationKeys,
        records::grants::GrantAccess, store_session::StoreSession,
    },
};
use evidence::{Evidence, EvidenceRequest, EvidenceSource, NamedSummary};
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
pub(crate) use outcome::AskStep;
use outcome::{AskOutcome, AskStatus};
use prompt::AttemptRemark;
pub(crate) use prompt::answer_offline;
use question::Question;
use question_record::{
    GrantCharge, OpenQuestion, QuestionGrant, QuestionRecord, QuestionSlot, QuestionState,
};

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
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<AskStep> {
    match prepare_question(reader, config, conversation, question_json, now)? {
        AskPreparation::Ended(step) => Ok(step),
        AskPreparation::NeedsModel(asks) => {
            let PreparedQuestion { asked, text, now } = *asks;
            let request = asked.build_request(config, &text, AttemptRemark::First);
            asked.commit_request(reader, request, now)
        }
    }
}

/// How a question begins.
enum AskPreparation {
    /// No model is needed.
    Ended(AskStep),
    NeedsModel(Box<PreparedQuestion>),
}

/// A question with the passages that a model is to be asked about; nothing is written yet.
struct PreparedQuestion {
    asked: PendingQuestion,
    text: String,
    /// The effective time.
    now: Timestamp,
}

/// A question that is open, with what the call about it is going to write.
struct PendingQuestion {
    slot: QuestionSlot,
    record: QuestionRecord,
    open: OpenQuestion,
    charge: GrantCharge,
}

/// What comes before a model is asked, whoever asks it.
fn prepare_question(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<AskPreparation> {
    let question = Question::read(question_json, config)?;
    let keys = ConversationKeys::new(conversation)?;
    let permit = GrantAccess::for_call(reader, conversation, question.grant.as_deref(), now)?;
    let loaded = LoadedHead::load_existing(reader, &keys, conversation)?;
    let now = loaded.effective_time(now)?;
    let slot = QuestionSlot::read(reader, &keys)?;
    if !question.plan_only {
        session::ensure_not_skipped(reader, config, &keys, &loaded.head)?;
        if let Some(other) = slot.find_open_question(now)
            && is_blocking(reader, conversation, other, now)?
        {
            return Ok(AskPreparation::Ended(outcome::build_busy_step(other)));
        }
    }
    let within = ReadLimits { permit: permit.as_ref(), ..ReadLimits::default() };
    let named = resolve_named_summaries(reader, conversation, &question, within)?;
    let evidence = gather_first_evidence(reader, conversation, &question, &named, within, now)?;
    let truncated = evidence.truncated && within.tokens_left() < question.evidence_tokens_max;
    let mut paid = GrantCharge { permit, tokens: 0, truncated };
    if question.plan_only {
        let note = paid.build_grant_note(0);
        return Ok(AskPreparation::Ended(outcome::build_plan_step(&question, &evidence, note)));
    }
    let record = QuestionRecord::new_after_slot(&slot, &keys, now, question.deadline_ms);
    let open = build_open_question(&question, evidence, truncated);
    if open.passages.is_empty() {
        let ending = AskOutcome::without_answer(&open, AskStatus::NoEvidence, 0);
        return Ok(AskPreparation::Ended(outcome::build_outcome_step(
            &ending,
            paid.build_grant_note(0),
        )));
    }
    let text = render_evidence(reader, &open)?;
    paid.tokens = open.evidence_tokens;
    let asked = PendingQuestion { slot, record, open, charge: paid };
    Ok(AskPreparation::NeedsModel(Box::new(PreparedQuestion { asked, text, now })))
}

/// Whether an open question keeps another one out. One that is read on a grant which does not stand
/// any more will not be answered.
fn is_blocking(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    record: &QuestionRecord,
    now: Timestamp,
) -> Result<bool> {
    let QuestionState::Open(open) = &record.state else { return Ok(false) };
    let grant = open.grant.as_ref().map(|grant| grant.id.as_str());
    match GrantAccess::for_call(reader, conversation, grant, now) {
        Ok(_) => Ok(true),
        Err(error) if error.code == ErrorCode::Denied => Ok(false),
        Err(error) => Err(error),
    }
}

impl PendingQuestion {
    fn build_request(
        &self,
        config: &Config,
        text: &str,
        remark: AttemptRemark,
    ) -> CompletionRequest {
        prompt::build_ask_request(config, &self.record, &self.open, text, remark)
    }

    /// Writes that a model is asked, and tells what.
    fn commit_request(
        self,
        reader: &mut StoreSession<'_>,
        request: CompletionRequest,
        now: Timestamp,
    ) -> Result<AskStep> {
        let Self { slot, mut record, open, charge: paid } = self;
        let note = paid.build_grant_note(open.evidence_tokens);
        let step = outcome::build_request_step(&record, &open, request, note, now);
        record.state = QuestionState::Open(open);
        slot.write(reader, &record, paid)?;
        Ok(step)
    }

    /// Writes how a question ended, and tells it.
    fn commit_outcome(self, reader: &mut StoreSession<'_>, ending: &AskOutcome) -> Result<AskStep> {
        let Self { slot, mut record, charge: paid, .. } = self;
        let step = outcome::build_outcome_step(ending, paid.build_grant_note(ending.source_tokens));
        record.state = QuestionState::Ended(step.document.clone());
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
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    continuation: &str,
    answers: &[CompletionResult],
    now: Timestamp,
) -> Result<AskStep> {
    let keys = ConversationKeys::new(conversation)?;
    let now = LoadedHead::load_existing(reader, &keys, conversation)?.effective_time(now)?;
    let mut slot = QuestionSlot::read(reader, &keys)?;
    let mut record = slot.take_by_continuation(continuation)?;
    let open = match core::mem::replace(&mut record.state, QuestionState::Ended(String::new())) {
        QuestionState::Ended(document) => return Ok(AskStep::from_document(document)),
        QuestionState::Open(open) => open,
    };
    let [answer] = answers else {
        return Err(Error::invalid_input(format_args!(
            "answers: {} came, one was asked for",
            answers.len()
        )));
    };
    let grant = open.grant.as_ref();
    let truncated = grant.is_some_and(|grant| grant.truncated);
    let permit =
        GrantAccess::for_call(reader, conversation, grant.map(|grant| grant.id.as_str()), now)?;
    let mut asked = PendingQuestion {
        slot,
        record,
        open,
        charge: GrantCharge { permit, tokens: 0, truncated },
    };
    let is_in_time = now < asked.record.expires_at;
    let may_ask = asked.open.attempt < COMPLETIONS_MAX && is_in_time;
    let remark = match judge_answer(&asked.open, answer, may_ask, is_in_time) {
        AnswerVerdict::Ended(ending) => return asked.commit_outcome(reader, &ending),
        AnswerVerdict::Retry => AttemptRemark::AfterUselessAnswer,
        AnswerVerdict::Search(words) => {
            if !asked.add_search_evidence(reader, conversation, &words, now)? {
                let ending = AskOutcome::without_answer(
                    &asked.open,
                    AskStatus::NotFound,
                    asked.open.attempt,
                );
                return asked.commit_outcome(reader, &ending);
            }
            AttemptRemark::AfterSearch
        }
    };
    asked.open.attempt += 1;
    let text = render_evidence(reader, &asked.open)?;
    let request = asked.build_request(config, &text, remark);
    asked.commit_request(reader, request, now)
}

/// Answers a question through a model that may block. All reads come before it is asked, so that a
/// search at its wish is not made.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn run(
    reader: &mut StoreSession<'_>,
    model: &mut dyn Model,
    config: &Config,
    conversation: &str,
    question_json: &str,
    now: Timestamp,
) -> Result<AskStep> {
    let asks = match prepare_question(reader, config, conversation, question_json, now)? {
        AskPreparation::Ended(step) => return Ok(step),
        AskPreparation::NeedsModel(asks) => asks,
    };
    let PreparedQuestion { mut asked, text, .. } = *asks;
    let mut remark = AttemptRemark::First;
    let ending = loop {
        let answer = model.complete(&asked.build_request(config, &text, remark));
        let attempt = asked.open.attempt;
        match judge_answer(&asked.open, &answer, attempt < COMPLETIONS_MAX, true) {
            AnswerVerdict::Ended(ending) => break ending,
            AnswerVerdict::Search(_) => {
                break AskOutcome::without_answer(&asked.open, AskStatus::NotFound, attempt);
            }
            AnswerVerdict::Retry => {
                (remark, asked.open.attempt) = (AttemptRemark::AfterUselessAnswer, attempt + 1)
            }
        }
    };
    asked.commit_outcome(reader, &ending)
}

/// Reads the record of a question, if there is one.
///
/// # Errors
///
/// `corrupt`: it cannot be read; errors of the store.
pub(crate) fn check(reader: &mut StoreSession<'_>, keys: &ConversationKeys) -> Result<()> {
    QuestionSlot::read(reader, keys).map(|_| ())
}

/// The summaries that a question names, with their conversations.
fn resolve_named_summaries(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    question: &Question,
    within: ReadLimits<'_>,
) -> Result<Vec<NamedSummary>> {
    let mut found: Vec<NamedSummary> = Vec::new();
    for text in &question.summary_ids {
        let (conversation, id, record) =
            read_scope::find_summary_in_family(reader, conversation, text, within)?;
        if !found.iter().any(|named| named.id == id) {
            found.push(NamedSummary { conversation, id, record });
        }
    }
    Ok(found)
}

fn gather_first_evidence(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    question: &Question,
    named: &[NamedSummary],
    within: ReadLimits<'_>,
    now: Timestamp,
) -> Result<Evidence> {
    let wanted = EvidenceRequest {
        conversation,
        search_text: question.search_text(),
        is_query: question.query.is_some(),
        named,
        is_within_named: !named.is_empty() && question.query.is_none(),
        tokens_max: question.evidence_tokens_max.min(within.tokens_left()),
        all: question.all_conversations,
        only: question.only,
        within,
        now,
    };
    evidence::gather_evidence(reader, &wanted, (&[], &[]))
}

/// `truncated`: evidence was left out for want of tokens of the grant.
fn build_open_question(question: &Question, evidence: Evidence, truncated: bool) -> OpenQuestion {
    let held = |id: &String| QuestionGrant { id: id.clone(), truncated };
    OpenQuestion {
        question: question.question.clone(),
        tokens_max: question.answer_tokens_max,
        evidence_tokens_max: question.evidence_tokens_max,
        all: question.all_conversations,
        only: question.only,
        attempt: 1,
        passages: evidence.passages,
        shares: evidence.shares,
        evidence_tokens: evidence.tokens,
        truncated: evidence.truncated,
        grant: question.grant.as_ref().map(held),
    }
}

impl PendingQuestion {
    /// Adds what a search at the model's wish finds; `false`: nothing that is not there, or nothing
    /// is left to read with.
    fn add_search_evidence(
        &mut self,
        reader: &mut StoreSession<'_>,
        conversation: &str,
        words: &str,
        now: Timestamp,
    ) -> Result<bool> {
        let Self { open, charge: paid, .. } = self;
        let within = ReadLimits { permit: paid.permit.as_ref(), ..ReadLimits::default() };
        if within.tokens_left() == 0 {
            return Ok(false);
        }
        let wanted = EvidenceRequest {
            conversation,
            search_text: words,
            is_query: false,
            named: &[],
            is_within_named: false,
            tokens_max: open.evidence_tokens_max.min(within.tokens_left()),
            all: open.all,
            only: open.only,
            within,
            now,
        };
        let found = evidence::gather_evidence(reader, &wanted, (&open.shares, &open.passages))?;
        let is_new = !found.passages.is_empty();
        paid.truncated |= found.truncated && within.tokens_left() < open.evidence_tokens_max;
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
fn render_evidence(reader: &mut StoreSession<'_>, open: &OpenQuestion) -> Result<String> {
    let mut out = String::new();
    for (number, share) in open.shares.iter().enumerate() {
        let mut passages = open.passages.iter().filter(|passage| passage.share_index() == number);
        if passages.clone().next().is_none() {
            continue;
        }
        let keys = ConversationKeys::new(&share.conversation)?;
        let loaded = LoadedHead::load_existing(reader, &keys, &share.conversation)?;
        reader.bind_head(&keys, loaded.head.revision, loaded.bytes.as_deref());
        let history = MessageHistory { keys: &keys, head: &loaded.head };
        let mut blocks: Vec<(u64, String)> = Vec::new();
        passages.try_for_each(|passage| -> Result<()> {
            if let Some(whole) = passage::read_passage_source(reader, &history, passage.source)? {
                let text = whole.render_passage(int::to_usize(passage.offset), passage.tokens_max);
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
fn format_source_id(conversation: &str, what: EvidenceSource) -> String {
    match what {
        EvidenceSource::Message(seq) => {
            ConversationKeys::new(conversation).map(|keys| keys.message_id(seq)).unwrap_or_default()
        }
        EvidenceSource::Summary(id) => crate::storage::summary::format_summary_id(id),
    }
}

/// The printed ids of what the model was shown, each with its conversation.
fn list_shown_ids(open: &OpenQuestion) -> Vec<(String, &str)> {
    let of = |passage: &evidence::EvidencePassage| {
        let share = open.shares.get(passage.share_index())?;
        Some((format_source_id(&share.conversation, passage.source), share.conversation.as_str()))
    };
    open.passages.iter().filter_map(of).collect()
}

/// What an answer leads to.
enum AnswerVerdict {
    Ended(AskOutcome),
    /// The same is asked again.
    Retry,
    /// These words are searched, and then it is asked again.
    Search(String),
}

fn judge_answer(
    open: &OpenQuestion,
    answer: &CompletionResult,
    may_ask: bool,
    is_in_time: bool,
) -> AnswerVerdict {
    let without =
        |status| AnswerVerdict::Ended(AskOutcome::without_answer(open, status, open.attempt));
    let completion = match answer {
        CompletionResult::Done(completion) => completion,
        CompletionResult::Failed(error) => {
            let is_late = !is_in_time || error.code == CompletionErrorCode::Timeout;
            let status = if is_late { AskStatus::TimedOut } else { AskStatus::ModelFailed };
            return AnswerVerdict::Ended(
                AskOutcome::without_answer(open, status, open.attempt).with_failure(error),
            );
        }
    };
    match answer::parse_answer(completion) {
        answer::ParsedAnswer::NotFound { search: Some(words) } if may_ask => {
            AnswerVerdict::Search(words)
        }
        answer::ParsedAnswer::NotFound { .. } => without(AskStatus::NotFound),
        answer::ParsedAnswer::Unusable if may_ask => AnswerVerdict::Retry,
        answer::ParsedAnswer::Unusable => without(AskStatus::NoAnswer),
        answer::ParsedAnswer::Answer { text, ids } => {
            check_citations(open, completion, text, ids, may_ask)
        }
    }
}

/// An answer in words: what it cites counts only if the model was shown it.
fn check_citations(
    open: &OpenQuestion,
    completion: &Completion,
    text: String,
    ids: Vec<String>,
    may_ask: bool,
) -> AnswerVerdict {
    let shown = list_shown_ids(open);
    let (mut cited, mut rejected) = (Vec::new(), Vec::new());
    for id in ids {
        match shown.iter().find(|(shown, _)| *shown == id) {
            Some((_, conversation)) => cited.push((id, String::from(*conversation))),
            None => rejected.push(id),
        }
    }
    if cited.is_empty() && may_ask {
        return AnswerVerdict::Retry;
    }
    let status = if cited.is_empty() { AskStatus::Uncited } else { AskStatus::Answered };
    let cut = tokens::truncate_to_tokens(&text, open.tokens_max);
    let is_cut = cut.len() < text.len() || completion.finish == Finish::Length;
    let mut ending = AskOutcome::without_answer(open, status, open.attempt);
    ending.answer = Some(cut.into());
    ending.cited = cited;
    ending.rejected = rejected;
    ending.truncated |= is_cut;
    AnswerVerdict::Ended(ending)
}
