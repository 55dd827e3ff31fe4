//! A conversation with its settings, for the loop of an agent.
//!
//! In: messages as JSON texts of a dialect, and tool calls. Out: contexts that fit the budget, and
//! answers to tool calls. All other calls are methods of [`Lcm`] that take a conversation's id.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::{
    clock::{Cancel, Clock},
    compaction::{CompactOptions, CompactReport, with_option},
    context::{Answer, Assembled, Options, ToolScope},
    error::Result,
    ingest::{IngestOptions, IngestReport},
    ingestion::AppendMode,
    json,
    lcm::Lcm,
    shapes::{DeletionResult, RewindAnswer, RewindArguments},
    tools::ToolCall,
    turn::{MaintainReport, TurnOptions, TurnReport},
    types::Dialect,
};

/// A conversation of a store, with its settings, for one caller.
///
/// The handle keeps how far its caller has seen the conversation and hands that over with the next
/// list. Clones share the store and begin with what their original has seen.
///
/// ```
/// use lcm_host::{Lcm, types::Dialect};
///
/// let lcm = Lcm::open("memory:", include_bytes!("../../../dist/lcm.wasm"))?;
/// let chat = lcm.conversation("chat-1", 200_000).dialect(Dialect::Anthropic);
/// chat.turn(&[r#"{"role": "user", "content": "The gate code is 4711."}"#])?;
/// let context = chat.assemble()?;
/// assert!(context.messages_json.contains("4711"));
///
/// let found = chat.call_tool("lcm_grep", r#"{"pattern": "gate code"}"#)?;
/// assert!(!found.is_error && found.text.contains("4711"));
/// # Ok::<(), lcm_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Conversation {
    lcm: Lcm,
    id: String,
    budget: u32,
    dialect: Dialect,
    append_mode: AppendMode,
    defer: Option<bool>,
    model: Option<String>,
    tool_scope: ToolScope,
    clock: Clock,
    cancel: Cancel,
    followed: Followed,
}

/// What a handle keeps of the newest receipt.
#[derive(Debug, Default)]
struct Followed {
    /// Seq up to which the caller has seen every message; 0: none.
    seq_seen: AtomicU64,
    /// Whether the newest turn of the handle deferred compaction.
    is_deferred: AtomicBool,
}

impl Followed {
    fn seq_seen(&self) -> u64 {
        self.seq_seen.load(Ordering::Relaxed)
    }

    fn note_seen(&self, seq: u64) {
        self.seq_seen.fetch_max(seq, Ordering::Relaxed);
    }
}

impl Clone for Followed {
    fn clone(&self) -> Self {
        let is_deferred = self.is_deferred.load(Ordering::Relaxed).into();
        Self { seq_seen: self.seq_seen().into(), is_deferred }
    }
}

impl Lcm {
    /// Returns the conversation of this id, which need not exist, with a budget in tokens.
    #[must_use]
    pub fn conversation(&self, id: impl Into<String>, budget: u32) -> Conversation {
        Conversation {
            lcm: self.clone(),
            id: id.into(),
            budget,
            dialect: Dialect::Lcm,
            append_mode: AppendMode::Transcript,
            defer: None,
            model: None,
            tool_scope: ToolScope::Conversation,
            clock: Clock::System,
            cancel: Cancel::default(),
            followed: Followed::default(),
        }
    }
}

impl Conversation {
    /// Sets the dialect of messages, contexts and tool definitions; the default is `lcm`.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets how [`Conversation::append`] and [`Conversation::turn`] treat stored messages.
    /// `Transcript`, the default, skips them; `New` stores every message again unless its id or
    /// event key, or its call id with equal content, is stored.
    #[must_use]
    pub fn append_mode(mut self, append_mode: AppendMode) -> Self {
        self.append_mode = append_mode;
        self
    }

    /// Sets whether [`Conversation::turn`] leaves compaction that can wait to
    /// [`Conversation::maintain`] and the next turn. Default: `turn_compaction` of the
    /// configuration; without it, true.
    #[must_use]
    pub fn defer(mut self, defer: bool) -> Self {
        self.defer = Some(defer);
        self
    }

    /// Sets the model whose provider counts the tokens of the budget. The verb `calibrate` must
    /// have reported a count of this model; otherwise, and by default, the budget counts estimated
    /// tokens.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the conversations that [`Conversation::call_tool`] may read; the default is this
    /// conversation and its family. An agent with [`ToolScope::Store`] reads every conversation of
    /// the store.
    #[must_use]
    pub fn tool_scope(mut self, tool_scope: ToolScope) -> Self {
        self.tool_scope = tool_scope;
        self
    }

    /// Sets the clock; the default is the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the flag with which the caller stops a running method: between two calls of the
    /// component, or while a model works that looks at the flag.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns the handle on the store of the conversation.
    #[must_use]
    pub const fn lcm(&self) -> &Lcm {
        &self.lcm
    }

    /// Returns the id of the conversation.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Stores the newest messages of the conversation, each a JSON text of the dialect.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::ingest`].
    pub fn append(&self, messages: &[impl AsRef<str>]) -> Result<IngestReport> {
        let stored = self.lcm.append_end(
            &self.id,
            &owned(messages),
            &self.ingest_options(),
            &self.cancel,
        )?;
        self.followed.note_seen(stored.seq_seen);
        Ok(stored)
    }

    /// Stores the newest messages of the conversation, then compacts when compaction is due and
    /// cannot wait. If this turn and the turn of the handle before it both defer compaction, this
    /// turn makes one pass of [`Conversation::maintain`]. A failure of the model does not undo the
    /// append.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::turn`].
    pub fn turn(&self, messages: &[impl AsRef<str>]) -> Result<TurnReport> {
        let options = TurnOptions {
            ingest: self.ingest_options(),
            compact: self.compact_options(),
            defer: self.defer,
        };
        let mut report = self.lcm.turn(&self.id, &owned(messages), &options, &self.cancel)?;
        self.followed.note_seen(report.ingested.seq_seen);
        let was_deferred = self.followed.is_deferred.swap(report.deferred, Ordering::Relaxed);
        if was_deferred && report.deferred {
            let pass = CompactOptions { passes_max: Some(1), ..options.compact };
            let made = self.lcm.maintain(&self.id, &pass, &self.cancel, &mut |_| {});
            report.take_compaction(made.and_then(|made| match made.failure {
                Some(failure) => Err(failure),
                None => Ok(made.compacted),
            }));
        }
        Ok(report)
    }

    /// Compacts until nothing is due or the component stops for another reason, which the report
    /// names.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::compact`].
    pub fn compact(&self) -> Result<CompactReport> {
        self.lcm.compact(&self.id, &self.compact_options(), &self.cancel, &mut |_| {})
    }

    /// Compacts when deferred compaction is due.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::maintain`].
    pub fn maintain(&self) -> Result<MaintainReport> {
        self.lcm.maintain(&self.id, &self.compact_options(), &self.cancel, &mut |_| {})
    }

    /// Makes all provisional summaries again, also those that the model was asked for again in
    /// vain.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::resummarize`].
    pub fn resummarize(&self) -> Result<CompactReport> {
        self.lcm.resummarize(&self.id, None, &self.compact_options(), &self.cancel, &mut |_| {})
    }

    /// Deletes the conversation and what other conversations have of it. A later append begins a
    /// new conversation under the id.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::delete`].
    pub fn delete(&self) -> Result<DeletionResult> {
        let receipt = self.lcm.delete(&self.id, self.clock, &self.cancel)?;
        self.followed.seq_seen.store(0, Ordering::Relaxed);
        Ok(receipt)
    }

    /// Sets aside the messages after the one with seq `to`; 0: all messages. If the message `to`
    /// was itself set aside, it comes back, with the messages that lead to it.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: there is no such message, `to` is another form of a message, or too many
    ///   set-aside branches lead to it.
    /// - `conflict`: another caller stored messages that the caller of this handle did not see.
    /// - `limit-exceeded`: too many summaries would give way.
    /// - errors of the component.
    pub fn rewind(&self, to: u64) -> Result<RewindAnswer> {
        self.call_rewind(RewindArguments { to: Some(to), ..RewindArguments::default() })
    }

    /// Sets aside the newest message, or the newest call with its results, and returns it.
    ///
    /// # Errors
    ///
    /// Errors of [`Conversation::rewind`].
    pub fn pop(&self) -> Result<RewindAnswer> {
        self.call_rewind(RewindArguments { units: Some(1), ..RewindArguments::default() })
    }

    fn call_rewind(&self, arguments: RewindArguments) -> Result<RewindAnswer> {
        let seq_seen = Some(self.followed.seq_seen()).filter(|seen| *seen > 0);
        let arguments = json!(RewindArguments { seq_seen, ..arguments }).to_string();
        let answer = self.lcm.admin_call(&self.id, "rewind", &arguments, self.clock.now_ms())?;
        json::read("admin.call", &answer)
    }

    /// Assembles a context for the budget: `messages_json` is the array to send, `system` the
    /// system text. The context of a conversation that does not exist is empty.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::assemble`].
    pub fn assemble(&self) -> Result<Assembled> {
        self.assemble_with(&Options::default())
    }

    /// Assembles a context with options, such as a prompt, a reserve or live messages.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::assemble`].
    pub fn assemble_with(&self, options: &Options) -> Result<Assembled> {
        let mut options = options.clone();
        let mut extra = with_option(options.extra_json.as_deref(), "may_be_new", true.into())?;
        if let Some(model) = &self.model {
            extra = with_option(Some(&extra), "model", model.as_str().into())?;
        }
        options.extra_json = Some(extra);
        self.lcm.assemble(&self.id, self.budget, self.dialect, &options, self.clock.now_ms())
    }

    /// Returns the tool definitions, a JSON array in the format of the dialect's provider.
    ///
    /// # Errors
    ///
    /// `internal` only.
    pub fn tools(&self) -> Result<String> {
        self.lcm.tool_definitions(self.dialect, None, self.tool_scope)
    }

    /// Returns the text for the system prompt that explains when to use the tools. With
    /// `has_summaries` the text also explains the summaries in contexts.
    ///
    /// # Errors
    ///
    /// `internal` only.
    pub fn instructions(&self, has_summaries: bool) -> Result<String> {
        self.lcm.tool_instructions(self.dialect, has_summaries)
    }

    /// Answers a call of a tool whose name starts with `lcm_`, with the model if necessary. A
    /// mistake in the call gives an answer with `is_error`.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::answer_tool_call`].
    pub fn call_tool(&self, name: &str, arguments_json: &str) -> Result<Answer> {
        let Self { lcm, id, clock, cancel, tool_scope, .. } = self;
        let call = ToolCall { scope: *tool_scope, ..ToolCall::new(name, arguments_json) };
        lcm.answer_tool_call(id, &call, *clock, cancel)
    }

    fn ingest_options(&self) -> IngestOptions {
        let (append_mode, seq_seen) = (self.append_mode, Some(self.followed.seq_seen()));
        IngestOptions { append_mode, seq_seen, ..IngestOptions::new(self.dialect, self.clock) }
    }

    fn compact_options(&self) -> CompactOptions {
        let model = self.model.clone();
        CompactOptions { model, ..CompactOptions::new(self.budget, self.clock) }
    }
}

fn owned(messages: &[impl AsRef<str>]) -> Vec<String> {
    messages.iter().map(|message| message.as_ref().to_owned()).collect()
}
