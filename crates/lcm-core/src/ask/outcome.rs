//! What a host is told of a question: what to complete, or how it ended.
//!
//! Documents are JSON with their keys in order. Not here: why it ended so.

use alloc::{string::String, vec::Vec};

use crate::storage::summary::StoredLevel;
use lcm_text::{
    base::{int, json::Writer},
    types::{
        api::Timestamp,
        model::{CompletionError, CompletionErrorCode, CompletionRequest},
    },
};

use super::{
    evidence::{Evidence, What},
    question::Question,
    record::{Open, Record},
    routing::Route,
};

/// How a question ended. Closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Status {
    Answered,
    /// Another question of the conversation is open.
    Busy,
    /// An answer that cites nothing that the model was shown.
    Uncited,
    /// The passages do not hold the answer.
    NotFound,
    /// The search found nothing.
    NoEvidence,
    /// The model was of no use.
    NoAnswer,
    ModelFailed,
    TimedOut,
}

impl Status {
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

/// What a call about a question answers.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// What a host reads.
    pub(crate) document: String,
    /// What has to be completed; none: the question ended.
    pub(crate) requests: Vec<CompletionRequest>,
    /// For the next call; empty: there is none.
    pub(crate) continuation: String,
}

impl Step {
    /// The step of a question that ended.
    pub(super) const fn done(document: String) -> Self {
        Self { document, requests: Vec::new(), continuation: String::new() }
    }
}

/// How a question ended, with what is told of it.
pub(super) struct Ending {
    status: Status,
    pub(super) answer: Option<String>,
    /// Ids, each with its conversation.
    pub(super) cited: Vec<(String, String)>,
    pub(super) rejected: Vec<String>,
    pub(super) truncated: bool,
    completions: u32,
    failure: Option<(CompletionErrorCode, String)>,
    conversations: String,
    sources: Vec<String>,
    expanded: usize,
    pub(super) source_tokens: u32,
    /// Until when another question is open.
    expires_at: Option<Timestamp>,
}

impl Ending {
    /// One without an answer, after so many completions.
    pub(super) fn of(open: &Open, status: Status, completions: u32) -> Self {
        let is_source = |number: usize| open.passages.iter().any(|one| one.place() == number);
        let sources = open.shares.iter().enumerate().filter(|(number, _)| is_source(*number));
        let is_summary = |what: &What| matches!(what, What::Summary(_));
        Self {
            status,
            answer: None,
            cited: Vec::new(),
            rejected: Vec::new(),
            truncated: open.truncated,
            completions,
            failure: None,
            conversations: conversations(open).end_array(),
            sources: sources.map(|(_, share)| share.conversation.clone()).collect(),
            expanded: open.passages.iter().filter(|passage| is_summary(&passage.what)).count(),
            source_tokens: open.evidence_tokens,
            expires_at: None,
        }
    }

    /// Because a completion failed.
    pub(super) fn failed(mut self, error: &CompletionError) -> Self {
        self.failure = Some((error.code, error.message.clone()));
        self
    }
}

/// The document of a question that ended.
pub(super) fn ended(ending: &Ending, note: Option<Writer>) -> Step {
    let mut w = Writer::object();
    w.text_or_null("answer", ending.answer.as_deref());
    let (mut ids, mut places) = (Writer::array(), Writer::array());
    for (id, conversation) in &ending.cited {
        ids.push_text(id);
        places.push_text(conversation);
    }
    w.array_at("cited_conversations", places);
    w.array_at("cited_ids", ids);
    w.number("completions", ending.completions.into());
    w.json("conversations", &ending.conversations);
    w.number("expanded_summaries", int::to_u64(ending.expanded));
    if let Some(expires_at) = ending.expires_at {
        w.time("expires_at", expires_at);
    }
    match &ending.failure {
        None => w.null("failure"),
        Some((code, message)) => {
            let mut failure = Writer::object();
            failure.text("code", code.as_str());
            failure.text("message", message);
            w.object_at("failure", failure);
        }
    }
    granted(note, &mut w);
    w.texts("rejected_ids", &ending.rejected);
    w.texts("source_conversations", &ending.sources);
    w.number("source_tokens", ending.source_tokens.into());
    w.text("status", ending.status.as_str());
    w.flag("truncated", ending.truncated);
    Step::done(w.end_object())
}

/// The document of a question that waits for a completion.
pub(super) fn asked(
    record: &Record,
    open: &Open,
    request: CompletionRequest,
    note: Option<Writer>,
    now: Timestamp,
) -> Step {
    let mut requests = Writer::array();
    requests.push_object(request_json(&request));
    let mut w = Writer::object();
    w.text("continuation", &record.continuation());
    w.array_at("conversations", conversations(open));
    w.time("expires_at", record.expires_at);
    granted(note, &mut w);
    w.array_at("requests", requests);
    w.number("source_tokens", open.evidence_tokens.into());
    w.text("status", "asked");
    w.number("timeout_ms", record.expires_at.saturating_sub(now));
    w.flag("truncated", open.truncated);
    let continuation = record.continuation();
    Step { document: w.end_object(), requests: alloc::vec![request], continuation }
}

/// The document of a question that another one of the same conversation keeps out.
pub(super) fn busy(other: &Record) -> Step {
    let ending = Ending {
        status: Status::Busy,
        answer: None,
        cited: Vec::new(),
        rejected: Vec::new(),
        truncated: false,
        completions: 0,
        failure: None,
        conversations: String::from("[]"),
        sources: Vec::new(),
        expanded: 0,
        source_tokens: 0,
        expires_at: Some(other.expires_at),
    };
    ended(&ending, None)
}

/// What would be read for a question, for a host that has somebody else read it.
pub(super) fn planned(question: &Question, evidence: &Evidence, note: Option<Writer>) -> Step {
    let candidates: u32 = evidence.shares.iter().map(|share| share.candidates).sum();
    let is_message = |what: &What| matches!(what, What::Message(_));
    let route = Route {
        text: &question.question,
        depth: None,
        candidates: int::to_usize(candidates.into()),
        tokens_max: question.evidence_tokens_max,
        has_messages: evidence.passages.iter().any(|passage| is_message(&passage.what)),
        is_probe: question.summaries.is_empty(),
    };
    let mut conversations = Writer::array();
    for (number, share) in evidence.shares.iter().enumerate() {
        let mut row = row(share);
        let mut ids = Writer::array();
        for passage in evidence.passages.iter().filter(|passage| passage.place() == number) {
            ids.push_text(&super::id_of(&share.conversation, passage.what));
        }
        row.array_at("ids", ids);
        row.number("token_cap", share.tokens_max.into());
        conversations.push_object(row);
    }
    let mut w = Writer::object();
    w.array_at("conversations", conversations);
    granted(note, &mut w);
    w.object_at("routing", route.json());
    w.number("source_tokens", evidence.tokens.into());
    w.text("status", "planned");
    w.flag("truncated", evidence.truncated);
    Step::done(w.end_object())
}

/// What is told of the grant on which was read.
fn granted(note: Option<Writer>, to: &mut Writer) {
    if let Some(note) = note {
        to.object_at("grant", note);
    }
}

/// The conversations with what was taken from each.
fn conversations(open: &Open) -> Writer {
    let mut list = Writer::array();
    open.shares.iter().for_each(|share| list.push_object(row(share)));
    list
}

fn row(share: &super::evidence::Share) -> Writer {
    let mut row = Writer::object();
    row.number("candidates", share.candidates.into());
    row.text("conversation", &share.conversation);
    row.number("named", share.named.into());
    row.text("status", if share.tokens == 0 { "skipped" } else { "used" });
    row.number("tokens", share.tokens.into());
    row
}

/// The request of a question as programs read it.
fn request_json(request: &CompletionRequest) -> Writer {
    let mut w = Writer::object();
    w.text("id", &request.id);
    w.number("input_tokens", request.input_tokens.into());
    w.text("level", StoredLevel::from(request.level).as_str());
    w.text_or_null("model", request.model.as_deref());
    w.number("output_tokens_max", request.output_tokens_max.into());
    w.text("prompt", &request.prompt);
    w.text("purpose", "ask");
    w.text("system", &request.system);
    w.number("temperature_permille", request.temperature_permille.into());
    w
}
