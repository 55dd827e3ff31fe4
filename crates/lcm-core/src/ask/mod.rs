//! Ask: answers a question from stored messages, with the ids that support the answer.
//!
//! In: a question. Out: a completion request with the passages that fit a token limit, then the
//! model's answer with the ids that the answer cites. The engine exports [`plan`], [`apply`] and
//! [`run`]; the tools of agents call [`plan`] and [`apply`].
//!
//! A citation counts only if the model was shown its passage. A question makes at most
//! [`COMPLETIONS_MAX`] requests: a second request follows a useless answer or a search that the
//! model asked for. A conversation has at most one open question. A question is open until its
//! outcome is stored; after its expiry, another question may replace it.

mod answer;
mod evidence;
mod outcome;
mod passage;
mod prompt;
mod question;
mod question_slot;
mod routing;

use alloc::{boxed::Box, string::String, vec::Vec};

pub(crate) use self::question::DEADLINE_MS_MAX;
use crate::storage::{
    call::Call,
    head::{LoadedHead, ensure_time},
    history::MessageHistory,
    links::ConversationLinks,
    read_scope::{self, ReadLimits},
    records::{
        grants::GrantAccess,
        question::{EvidencePassage, OpenQuestion, QuestionGrant, QuestionRecord, QuestionState},
    },
    session::ensure_not_skipped,
    store_session::StoreSession,
};
use evidence::{Evidence, EvidenceRequest, NamedSummary};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, sort, tokens,
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
use outcome::{AskOutcome, AskStatus, Citation};
use passage::PassageRequest;
use prompt::AttemptRemark;
pub(crate) use prompt::answer_offline;
use question::Question;
use question_slot::{GrantCharge, QuestionSlot};

/// Maximum number of completions of one question.
const COMPLETIONS_MAX: u32 = 2;

/// Opens a question and returns the completion request, or the outcome if no model is needed.
///
/// # Errors
///
/// - `invalid-input`: a field of the question is malformed or out of bounds.
/// - `not-found`: the conversation or a named summary does not exist.
/// - `limit-exceeded`: the query breaks a bound of a pattern.
/// - `denied`: the grant is not valid or does not cover the question, or the configuration stores
///   nothing for the session.
/// - `conflict`: another question, or a call on the grant, committed first.
/// - Errors of the store.
pub(crate) fn plan(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    question_json: &str,
) -> Result<AskStep> {
    match prepare_question(session, call, question_json)? {
        AskPreparation::Ended(step) => Ok(step),
        AskPreparation::NeedsModel(prepared) => {
            let PreparedQuestion { asked, text, now } = *prepared;
            let request = asked.build_request(call.config, &text, AttemptRemark::First);
            asked.commit_request(session, request, now)
        }
    }
}

/// Result of the preparation of a question.
enum AskPreparation {
    /// The question ended without a model.
    Ended(AskStep),
    /// There are passages, so a model can answer the question.
    NeedsModel(Box<PreparedQuestion>),
}

/// A question with its evidence, before the first write.
struct PreparedQuestion {
    asked: PendingQuestion,
    /// The rendered evidence.
    text: String,
    /// The time of the call.
    now: Timestamp,
}

/// An open question, with the record and the charge that the call will write.
struct PendingQuestion {
    slot: QuestionSlot,
    record: QuestionRecord,
    open: OpenQuestion,
    charge: GrantCharge,
    /// Links to the conversations of the evidence.
    links: ConversationLinks,
}

/// Reads the links to the conversations of an open question, before the texts of its passages.
fn read_links(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    open: &OpenQuestion,
) -> Result<ConversationLinks> {
    let names = open.shares.iter().map(|share| share.conversation.as_str());
    ConversationLinks::read(session, call, names)
}

/// Reads a question and gathers its evidence, for [`plan`] and [`run`].
fn prepare_question(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    question_json: &str,
) -> Result<AskPreparation> {
    let question = Question::read(question_json, call.config)?;
    let permit = GrantAccess::for_call(session, call, question.grant.as_deref())?;
    let loaded = LoadedHead::open_existing(session, call)?;
    ensure_time(call.now)?;
    let now = call.now;
    let slot = QuestionSlot::read(session, call)?;
    if !question.plan_only {
        ensure_not_skipped(session, call, &loaded.head)?;
        if let Some(other) = slot.find_open_question(now)
            && is_blocking(session, call, other)?
        {
            return Ok(AskPreparation::Ended(outcome::build_busy_step(other)));
        }
    }
    let within = ReadLimits { permit: permit.as_ref(), ..ReadLimits::default() };
    let named = resolve_named_summaries(session, call, &question, within)?;
    let evidence = gather_first_evidence(session, call, &question, &named, within)?;
    let truncated = evidence.truncated && within.tokens_left() < question.evidence_tokens_max;
    let mut paid = GrantCharge { permit, tokens: 0, truncated };
    if question.plan_only {
        let note = paid.build_grant_note(0);
        return Ok(AskPreparation::Ended(outcome::build_plan_step(&question, &evidence, note)));
    }
    let record = slot.create_next(call, question.deadline_ms);
    let open = build_open_question(&question, evidence, truncated);
    if open.passages.is_empty() {
        let ending = AskOutcome::without_answer(&open, AskStatus::NoEvidence, 0);
        return Ok(AskPreparation::Ended(outcome::build_outcome_step(
            &ending,
            paid.build_grant_note(0),
        )));
    }
    let links = read_links(session, call, &open)?;
    let text = render_evidence(session, call, &open)?;
    paid.tokens = open.evidence_tokens;
    let asked = PendingQuestion { slot, record, open, charge: paid, links };
    Ok(AskPreparation::NeedsModel(Box::new(PreparedQuestion { asked, text, now })))
}

/// Returns whether an open question blocks another question. A question on an ended grant does not
/// block: nobody can answer it.
fn is_blocking(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    record: &QuestionRecord,
) -> Result<bool> {
    let QuestionState::Open(open) = &record.state else { return Ok(false) };
    let grant = open.grant.as_ref().map(|grant| grant.id.as_str());
    match GrantAccess::for_call(session, call, grant) {
        Ok(_) => Ok(true),
        Err(error) if error.code == ErrorCode::Denied => Ok(false),
        Err(error) => Err(error),
    }
}

impl PendingQuestion {
    /// Builds the completion request of the current attempt.
    fn build_request(
        &self,
        config: &Config,
        text: &str,
        remark: AttemptRemark,
    ) -> CompletionRequest {
        prompt::build_ask_request(config, &self.record, &self.open, text, remark)
    }

    /// Commits the open question and returns the step with its request.
    fn commit_request(
        self,
        session: &mut StoreSession<'_>,
        request: CompletionRequest,
        now: Timestamp,
    ) -> Result<AskStep> {
        let Self { slot, mut record, open, charge: paid, links } = self;
        let note = paid.build_grant_note(open.evidence_tokens);
        let step = outcome::build_request_step(&record, &open, request, note, now);
        record.state = QuestionState::Open(open);
        slot.write(session, &record, paid, links)?;
        Ok(step)
    }

    /// Commits the outcome of the question and returns its step.
    fn commit_outcome(
        self,
        session: &mut StoreSession<'_>,
        ending: &AskOutcome,
    ) -> Result<AskStep> {
        let Self { slot, mut record, charge: paid, links, .. } = self;
        let step = outcome::build_outcome_step(ending, paid.build_grant_note(ending.source_tokens));
        record.state = QuestionState::Ended(step.document.clone());
        slot.write(session, &record, paid, links)?;
        Ok(step)
    }
}

/// Applies the model's answer to an open question. Returns the outcome, or the step with the second
/// request. For a question that ended already, returns the stored outcome.
///
/// # Errors
///
/// - `invalid-input`: the text is no continuation, or `answers` has not exactly one answer.
/// - `not-found`: the conversation does not exist, another question replaced this question, or a
///   conversation of its evidence was deleted.
/// - `denied`: the grant of the question is no longer valid, or has too few tokens left.
/// - `conflict`: another call answered first.
/// - Errors of the store.
pub(crate) fn apply(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    continuation: &str,
    answers: &[CompletionResult],
) -> Result<AskStep> {
    LoadedHead::open_existing(session, call)?;
    ensure_time(call.now)?;
    let now = call.now;
    let mut slot = QuestionSlot::read(session, call)?;
    let mut record = slot.take_by_continuation(continuation)?;
    let open = match core::mem::replace(&mut record.state, QuestionState::Ended(String::new())) {
        QuestionState::Ended(document) => return Ok(AskStep::from_document(document)),
        QuestionState::Open(open) => open,
    };
    let [answer] = answers else {
        return Err(Error::invalid_input(format_args!(
            "`answers` must have one answer, got {}",
            answers.len()
        )));
    };
    let links = read_links(session, call, &open)?;
    links.ensure_alive().map_err(|_| {
        Error::not_found("a conversation of the evidence was deleted, so the question does not exist any more; ask \
             again")
    })?;
    let grant = open.grant.as_ref();
    let truncated = grant.is_some_and(|grant| grant.truncated);
    let permit = GrantAccess::for_call(session, call, grant.map(|grant| grant.id.as_str()))?;
    let mut asked = PendingQuestion {
        slot,
        record,
        open,
        charge: GrantCharge { permit, tokens: 0, truncated },
        links,
    };
    let is_in_time = now < asked.record.expires_at;
    let may_ask = asked.open.attempt < COMPLETIONS_MAX && is_in_time;
    let remark = match judge_answer(&asked.open, answer, may_ask, is_in_time) {
        AnswerVerdict::Ended(ending) => return asked.commit_outcome(session, &ending),
        AnswerVerdict::Retry => AttemptRemark::AfterUselessAnswer,
        AnswerVerdict::Search(words) => {
            if !asked.add_search_evidence(session, call, &words)? {
                let ending = AskOutcome::without_answer(
                    &asked.open,
                    AskStatus::NotFound,
                    asked.open.attempt,
                );
                return asked.commit_outcome(session, &ending);
            }
            asked.links = read_links(session, call, &asked.open)?;
            AttemptRemark::AfterSearch
        }
    };
    asked.open.attempt += 1;
    let text = render_evidence(session, call, &asked.open)?;
    let request = asked.build_request(call.config, &text, remark);
    asked.commit_request(session, request, now)
}

/// Answers a question in one call, which calls `model` itself.
///
/// All reads precede the first completion. So a search that the model asks for is not made, and the
/// outcome is `not-found`.
///
/// # Errors
///
/// The errors of [`plan`].
pub(crate) fn run(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    model: &mut dyn Model,
    question_json: &str,
) -> Result<AskStep> {
    let prepared = match prepare_question(session, call, question_json)? {
        AskPreparation::Ended(step) => return Ok(step),
        AskPreparation::NeedsModel(prepared) => prepared,
    };
    let PreparedQuestion { mut asked, text, .. } = *prepared;
    let mut remark = AttemptRemark::First;
    let ending = loop {
        let answer = model.complete(&asked.build_request(call.config, &text, remark));
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
    asked.commit_outcome(session, &ending)
}

/// Finds the summaries that a question names, each once, with their conversations.
fn resolve_named_summaries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    question: &Question,
    within: ReadLimits<'_>,
) -> Result<Vec<NamedSummary>> {
    let mut found: Vec<NamedSummary> = Vec::new();
    for text in &question.summary_ids {
        let (conversation, id, record) =
            read_scope::find_summary_in_family(session, call, text, within)?;
        if !found.iter().any(|named| named.id == id) {
            found.push(NamedSummary { conversation, id, record });
        }
    }
    Ok(found)
}

/// Gathers the evidence of a question before its first request.
fn gather_first_evidence(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    question: &Question,
    named: &[NamedSummary],
    within: ReadLimits<'_>,
) -> Result<Evidence> {
    let wanted = EvidenceRequest {
        call,
        search_text: question.search_text(),
        is_query: question.query.is_some(),
        named,
        is_within_named: !named.is_empty() && question.query.is_none(),
        tokens_max: question.evidence_tokens_max.min(within.tokens_left()),
        all_conversations: question.all_conversations,
        only: question.only,
        within,
    };
    evidence::gather_evidence(session, &wanted, (&[], &[]))
}

/// Builds an open question from its evidence.
///
/// `truncated`: whether the tokens left in the grant limited the evidence.
fn build_open_question(question: &Question, evidence: Evidence, truncated: bool) -> OpenQuestion {
    let held = |id: &String| QuestionGrant { id: id.clone(), truncated };
    OpenQuestion {
        question: question.question.clone(),
        answer_tokens_max: question.answer_tokens_max,
        evidence_tokens_max: question.evidence_tokens_max,
        all_conversations: question.all_conversations,
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
    /// Adds the evidence of a search that the model asked for. Returns `false` if the search found
    /// no new passage, or the grant has no tokens left.
    fn add_search_evidence(
        &mut self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        words: &str,
    ) -> Result<bool> {
        let Self { open, charge: paid, .. } = self;
        let within = ReadLimits { permit: paid.permit.as_ref(), ..ReadLimits::default() };
        if within.tokens_left() == 0 {
            return Ok(false);
        }
        let wanted = EvidenceRequest {
            call,
            search_text: words,
            is_query: false,
            named: &[],
            is_within_named: false,
            tokens_max: open.evidence_tokens_max.min(within.tokens_left()),
            all_conversations: open.all_conversations,
            only: open.only,
            within,
        };
        let found = evidence::gather_evidence(session, &wanted, (&open.shares, &open.passages))?;
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

/// Renders the passages for the model, by conversation and in the order of messages.
fn render_evidence(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    open: &OpenQuestion,
) -> Result<String> {
    let mut out = String::new();
    for (number, share) in open.shares.iter().enumerate() {
        let passages = open.passages.iter().filter(|passage| passage.share_index() == number);
        let passages: Vec<&EvidencePassage> = passages.collect();
        if passages.is_empty() {
            continue;
        }
        let blocks = call.with_conversation(&share.conversation, |call| {
            render_passages(session, call, &passages)
        })?;
        for (_, block) in blocks {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&block);
        }
    }
    Ok(out)
}

/// Renders the passages of one conversation in the order of messages, each with its first seq.
fn render_passages(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    passages: &[&EvidencePassage],
) -> Result<Vec<(u64, String)>> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let history = MessageHistory::new(call, &loaded.head);
    let mut blocks: Vec<(u64, String)> = Vec::new();
    for passage in passages {
        let EvidencePassage { source, mark, .. } = **passage;
        let wanted = PassageRequest { source, mark, offsets: &call.config.time_offsets };
        if let Some(whole) = passage::read_passage_source(session, &history, wanted)? {
            let text = whole.render_passage(int::to_usize(passage.offset), passage.tokens_max);
            blocks.push((whole.seq, text));
        }
    }
    sort::sort(&mut blocks);
    Ok(blocks)
}

/// Lists the passages shown to the model as citations, because an answer may cite only these.
fn list_citable(open: &OpenQuestion) -> Vec<Citation> {
    let of = |passage: &EvidencePassage| {
        let conversation = &open.shares.get(passage.share_index())?.conversation;
        Some(Citation {
            id: passage.source.format_id(conversation),
            conversation: conversation.clone(),
            mark: passage.mark,
        })
    };
    open.passages.iter().filter_map(of).collect()
}

/// Decision about an answer of the model.
enum AnswerVerdict {
    /// The question ends.
    Ended(AskOutcome),
    /// The answer is useless; a second request with the same passages follows.
    Retry,
    /// The model asks for a search of these words.
    Search(String),
}

/// Decides what follows an answer of the model. `may_ask`: whether another request is allowed;
/// `is_in_time`: whether the question has not expired.
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

/// Separates the ids in an answer into ids that the model was shown and other ids. If no id was
/// shown, returns [`AnswerVerdict::Retry`] if `may_ask`; otherwise the question ends.
fn check_citations(
    open: &OpenQuestion,
    completion: &Completion,
    text: String,
    ids: Vec<String>,
    may_ask: bool,
) -> AnswerVerdict {
    let shown = list_citable(open);
    let (mut cited, mut rejected) = (Vec::new(), Vec::new());
    for id in ids {
        match shown.iter().find(|shown| shown.id == id) {
            Some(shown) => cited.push(shown.clone()),
            None => rejected.push(id),
        }
    }
    if cited.is_empty() && may_ask {
        return AnswerVerdict::Retry;
    }
    let status = if cited.is_empty() { AskStatus::Uncited } else { AskStatus::Answered };
    let cut = tokens::truncate_to_tokens(&text, open.answer_tokens_max);
    let is_cut = cut.len() < text.len() || completion.finish == Finish::Length;
    let mut ending = AskOutcome::without_answer(open, status, open.attempt);
    ending.answer = Some(cut.into());
    ending.cited = cited;
    ending.rejected = rejected;
    ending.truncated |= is_cut;
    AnswerVerdict::Ended(ending)
}
