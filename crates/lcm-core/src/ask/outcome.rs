//! The step of a question for its host: a completion request, or the outcome.
//!
//! In: a question with its evidence, and the decision about an answer. Out: a JSON document with
//! sorted keys. [`crate::ask`] uses this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    records::question::{ConversationShare, EvidenceSource, OpenQuestion, QuestionRecord},
    summary::StoredLevel,
    withdrawn_mark::{WITHDRAWN, WithdrawnMark},
};
use lcm_text::{
    base::{int, json::JsonWriter},
    types::{
        api::Timestamp,
        model::{CompletionError, CompletionErrorCode, CompletionRequest},
    },
};

use super::{
    evidence::Evidence, question::Question, question_slot::format_continuation,
    routing::RoutingInput,
};

/// Status of an outcome. The list is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AskStatus {
    /// The answer cites passages that the model was shown.
    Answered,
    /// Another question of the conversation is open.
    Busy,
    /// The answer cites no passage that the model was shown.
    Uncited,
    /// The passages do not contain the answer.
    NotFound,
    /// No passage was found.
    NoEvidence,
    /// The last completion was empty or a refusal.
    NoAnswer,
    /// The last completion failed.
    ModelFailed,
    /// The last completion failed with a timeout, or failed after the expiry of the question.
    TimedOut,
}

impl AskStatus {
    /// Returns the name of the status in a document.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Busy => "busy",
            Self::Uncited => "uncited",
            Self::NotFound => "not-found",
            Self::NoEvidence => "no-evidence",
            Self::NoAnswer => "no-answer",
            Self::ModelFailed => "model-failed",
            Self::TimedOut => "timed-out",
        }
    }
}

/// Result of a call about a question.
#[derive(Clone, Debug)]
pub(crate) struct AskStep {
    /// JSON for the host.
    pub(crate) document: String,
    /// Requests to complete; empty: the question ended.
    pub(crate) requests: Vec<CompletionRequest>,
    /// Continuation for the next call; empty: the question ended.
    pub(crate) continuation: String,
}

impl AskStep {
    /// Creates the step of an ended question.
    pub(super) const fn from_document(document: String) -> Self {
        Self { document, requests: Vec::new(), continuation: String::new() }
    }
}

/// A passage that the model was shown, as an answer cites it.
#[derive(Clone)]
pub(super) struct Citation {
    pub(super) id: String,
    pub(super) conversation: String,
    /// Mark of a withdrawn message, or of a summary of only such messages; `None`: the passage has
    /// no mark.
    pub(super) mark: Option<WithdrawnMark>,
}

/// Outcome of a question.
pub(super) struct AskOutcome {
    status: AskStatus,
    pub(super) answer: Option<String>,
    pub(super) cited: Vec<Citation>,
    /// Ids in the answer that the model was not shown.
    pub(super) rejected: Vec<String>,
    /// Whether a bound limited the evidence or the answer.
    pub(super) truncated: bool,
    completions: u32,
    failure: Option<(CompletionErrorCode, String)>,
    conversations: String,
    sources: Vec<String>,
    expanded_summaries: usize,
    pub(super) source_tokens: u32,
    /// Expiry of the open question that blocks this question; `None`: no question blocks.
    expires_at: Option<Timestamp>,
}

impl AskOutcome {
    /// Creates an outcome without an answer, after `completions` completions.
    pub(super) fn without_answer(open: &OpenQuestion, status: AskStatus, completions: u32) -> Self {
        let is_source = |number: usize| open.passages.iter().any(|one| one.share_index() == number);
        let sources = open.shares.iter().enumerate().filter(|(number, _)| is_source(*number));
        let is_summary = |what: &EvidenceSource| matches!(what, EvidenceSource::Summary(_));
        Self {
            status,
            answer: None,
            cited: Vec::new(),
            rejected: Vec::new(),
            truncated: open.truncated,
            completions,
            failure: None,
            conversations: render_conversations(open).end_array(),
            sources: sources.map(|(_, share)| share.conversation.clone()).collect(),
            expanded_summaries: open
                .passages
                .iter()
                .filter(|passage| is_summary(&passage.source))
                .count(),
            source_tokens: open.evidence_tokens,
            expires_at: None,
        }
    }

    /// Adds the error of a failed completion.
    pub(super) fn with_failure(mut self, error: &CompletionError) -> Self {
        self.failure = Some((error.code, error.message.clone()));
        self
    }
}

/// Builds the step of an ended question.
pub(super) fn build_outcome_step(ending: &AskOutcome, note: Option<JsonWriter>) -> AskStep {
    let mut w = JsonWriter::new_object();
    w.add_optional_text("answer", ending.answer.as_deref());
    let (mut ids, mut places) = (JsonWriter::new_array(), JsonWriter::new_array());
    for Citation { id, conversation, .. } in &ending.cited {
        ids.push_text(id);
        places.push_text(conversation);
    }
    w.add_array("cited_conversations", places);
    w.add_array("cited_ids", ids);
    w.add_number("completions", ending.completions.into());
    w.add_json("conversations", &ending.conversations);
    w.add_number("expanded_summaries", int::to_u64(ending.expanded_summaries));
    if let Some(expires_at) = ending.expires_at {
        w.add_time("expires_at", expires_at);
    }
    match &ending.failure {
        None => w.add_null("failure"),
        Some((code, message)) => {
            let mut failure = JsonWriter::new_object();
            failure.add_text("code", code.as_str());
            failure.add_text("message", message);
            w.add_object("failure", failure);
        }
    }
    write_grant_note(note, &mut w);
    w.add_texts("rejected_ids", &ending.rejected);
    w.add_texts("source_conversations", &ending.sources);
    w.add_number("source_tokens", ending.source_tokens.into());
    w.add_text("status", ending.status.as_str());
    w.add_flag("truncated", ending.truncated);
    let cited = ending.cited.iter().map(|cited| (cited.id.clone(), cited.mark));
    write_withdrawn_ids(cited, &mut w);
    AskStep::from_document(w.end_object())
}

/// Builds the step of a question that waits for a completion.
pub(super) fn build_request_step(
    record: &QuestionRecord,
    open: &OpenQuestion,
    request: CompletionRequest,
    note: Option<JsonWriter>,
    now: Timestamp,
) -> AskStep {
    let mut requests = JsonWriter::new_array();
    requests.push_object(render_request(&request));
    let mut w = JsonWriter::new_object();
    w.add_text("continuation", &format_continuation(record));
    w.add_array("conversations", render_conversations(open));
    w.add_time("expires_at", record.expires_at);
    write_grant_note(note, &mut w);
    w.add_array("requests", requests);
    w.add_number("source_tokens", open.evidence_tokens.into());
    w.add_text("status", "asked");
    w.add_number("deadline_ms", record.expires_at.saturating_sub(now));
    w.add_flag("truncated", open.truncated);
    let continuation = format_continuation(record);
    AskStep { document: w.end_object(), requests: alloc::vec![request], continuation }
}

/// Builds the step of a question that another question of the conversation blocks.
pub(super) fn build_busy_step(other: &QuestionRecord) -> AskStep {
    let ending = AskOutcome {
        status: AskStatus::Busy,
        answer: None,
        cited: Vec::new(),
        rejected: Vec::new(),
        truncated: false,
        completions: 0,
        failure: None,
        conversations: String::from("[]"),
        sources: Vec::new(),
        expanded_summaries: 0,
        source_tokens: 0,
        expires_at: Some(other.expires_at),
    };
    build_outcome_step(&ending, None)
}

/// Builds the step that lists the ids of the evidence with advice on reading, for a host whose own
/// sub-agent reads the sources.
pub(super) fn build_plan_step(
    question: &Question,
    evidence: &Evidence,
    note: Option<JsonWriter>,
) -> AskStep {
    let candidates: u32 = evidence.shares.iter().map(|share| share.candidates).sum();
    let is_message = |what: &EvidenceSource| matches!(what, EvidenceSource::Message(_));
    let route = RoutingInput {
        text: &question.question,
        depth: None,
        candidates: int::to_usize(candidates.into()),
        tokens_max: question.evidence_tokens_max,
        has_messages: evidence.passages.iter().any(|passage| is_message(&passage.source)),
        is_probe: question.summary_ids.is_empty(),
    };
    let mut conversations = JsonWriter::new_array();
    for (number, share) in evidence.shares.iter().enumerate() {
        let mut row = render_share(share);
        let here = evidence.passages.iter().filter(|passage| passage.share_index() == number);
        let ids = here.map(|passage| (passage.source.format_id(&share.conversation), passage.mark));
        let ids: Vec<(String, Option<WithdrawnMark>)> = ids.collect();
        let names: Vec<&str> = ids.iter().map(|(id, _)| id.as_str()).collect();
        row.add_texts("ids", &names);
        row.add_number("tokens_max", share.tokens_max.into());
        write_withdrawn_ids(ids.into_iter(), &mut row);
        conversations.push_object(row);
    }
    let mut w = JsonWriter::new_object();
    w.add_array("conversations", conversations);
    write_grant_note(note, &mut w);
    w.add_object("routing", route.render_json());
    w.add_number("source_tokens", evidence.tokens.into());
    w.add_text("status", "planned");
    w.add_flag("truncated", evidence.truncated);
    AskStep::from_document(w.end_object())
}

/// Writes those ids of a list that have a mark, each with its mark; if no id has a mark, writes no
/// member.
fn write_withdrawn_ids(
    ids: impl Iterator<Item = (String, Option<WithdrawnMark>)>,
    to: &mut JsonWriter,
) {
    let mut list = JsonWriter::new_array();
    for (id, mark) in ids {
        if let Some(mark) = mark {
            let mut row = JsonWriter::new_object();
            row.add_text("id", &id);
            row.add_text(WITHDRAWN, mark.as_str());
            list.push_object(row);
        }
    }
    if !list.is_empty() {
        to.add_array("withdrawn_ids", list);
    }
}

/// Writes the note on the grant; `None`: the question reads without a grant.
fn write_grant_note(note: Option<JsonWriter>, to: &mut JsonWriter) {
    if let Some(note) = note {
        to.add_object("grant", note);
    }
}

/// Renders the conversations of the evidence, each with its share.
fn render_conversations(open: &OpenQuestion) -> JsonWriter {
    let mut list = JsonWriter::new_array();
    open.shares.iter().for_each(|share| list.push_object(render_share(share)));
    list
}

/// Renders the share of a conversation.
fn render_share(share: &ConversationShare) -> JsonWriter {
    let mut row = JsonWriter::new_object();
    row.add_number("candidates", share.candidates.into());
    row.add_text("conversation", &share.conversation);
    row.add_number("named", share.named.into());
    row.add_text("status", if share.tokens == 0 { "skipped" } else { "used" });
    row.add_number("tokens", share.tokens.into());
    row
}

/// Renders a completion request as JSON.
fn render_request(request: &CompletionRequest) -> JsonWriter {
    let mut w = JsonWriter::new_object();
    w.add_text("id", &request.id);
    w.add_number("input_tokens", request.input_tokens.into());
    w.add_text("level", StoredLevel::from(request.level).as_str());
    w.add_optional_text("model", request.model.as_deref());
    w.add_number("output_tokens_max", request.output_tokens_max.into());
    w.add_text("prompt", &request.prompt);
    w.add_text("purpose", "ask");
    w.add_text("system", &request.system);
    w.add_number("temperature_permille", request.temperature_permille.into());
    w
}
