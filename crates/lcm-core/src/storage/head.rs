//! The head of a conversation: the guarded record that leads to all other records.
//!
//! A commit that changes messages, summaries, context or lifecycle writes the head with the next
//! revision, guarded by the old bytes of the head. A commit that loses a race writes nothing.
//! Grants, questions and vectors have records that guard themselves. A head has at most 5 KiB: each
//! of its lists has a bound in [`lcm_text::base::limits`].

use crate::storage::records::session::{ArchiveCause, ArchiveRecord};
use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    call::Call,
    changes::Changes,
    clock::{Clock, ClockReading},
    codec::{self, SoundRecord},
    context::Context,
    keys::{ConversationKeys, FORMAT_VERSION_KEY},
    message_mark::{AcceptedList, MessageMark},
    pack::PackRef,
    record_key::{RecordKey, RecordReads, RecordValues},
    records::{deferred::DeferredCompaction, system_slot::SystemSlot},
    store::{Guard, Put},
    store_session::StoreSession,
    summary::SummaryProvenance,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        limits, time,
    },
    message::meaning::MEANING_VERSION,
    types::api::Timestamp,
};

/// Most bytes of a head. Each of its lists is bounded, so no head that the engine writes has more.
pub(crate) const HEAD_BYTES_MAX: usize = 5 << 10;

/// Reference to the newest user message, by which the fresh tail is computed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct UserMessageRef {
    pub(crate) seq: u64,
    pub(crate) tokens: u32,
}

/// An `append` call, or all `append` calls of one list, remembered to recognise a repeated call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct BatchRecord {
    /// Hash over the message hashes, mode, `now` and revision of the call, or over the name of the
    /// list.
    pub(crate) hash: [u8; 12],
    /// Number of messages that the call consumed; for a list, that all its calls so far consumed.
    pub(crate) consumed: u32,
}

/// Counts of completions for summaries, of their tokens, and of tokens saved or withdrawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct CompletionLedger {
    pub(crate) completions: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Tokens by which summaries shortened the stored context.
    pub(crate) saved_tokens: u64,
    /// Tokens by which withdrawals shortened the stored context: by new sessions, and of messages
    /// that were set aside or are other forms. The context has `raw_tokens` less `saved_tokens`
    /// less this number.
    pub(crate) withdrawn_tokens: u64,
    /// Start of the newest window of the spend limit, in ticks. The next three fields count within
    /// this window.
    pub(crate) window_start: Timestamp,
    pub(crate) window_completions: u32,
    pub(crate) window_tokens: u64,
    /// Rejected answers since the latest of three times: the start of the window, the last accepted
    /// answer and the last pause.
    pub(crate) window_rejected: u32,
    /// End of a pause in ticks, in which no model is asked unless compaction is forced; 0: no
    /// pause.
    pub(crate) paused_until: Timestamp,
}

/// The messages that segments of the search index cover: the first `messages` of the conversation.
/// Messages in `IndexManifest::unindexed` count as covered, but a search reads them without the
/// index.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexedExtent {
    pub(crate) messages: u64,
    /// Raw bytes of the covered messages.
    pub(crate) raw_bytes: u64,
}

/// The conversation, revision and seq from which a conversation was forked. No operation sets this
/// field yet; it is part of the format so that forks need no new format.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ForkOrigin {
    pub(crate) conversation: [u8; 16],
    pub(crate) revision: u64,
    pub(crate) seq: u64,
}

/// The head of a conversation, as it is stored.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConversationHead {
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    pub(crate) origin: Option<ForkOrigin>,
    /// Number of commits that wrote the head.
    pub(crate) revision: u64,
    /// Clock of the commits that wrote the head, by which the deadlines of the conversation run.
    pub(crate) clock: Clock,
    /// Number of messages, which is the seq of the newest message.
    pub(crate) messages: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) raw_tokens: u64,
    /// Running hash after the newest message.
    pub(crate) frontier: [u8; 16],
    pub(crate) newest_user: Option<UserMessageRef>,
    pub(crate) summaries: u64,
    pub(crate) context: Context,
    /// References to the newest packs; the directory holds the older references.
    pub(crate) packs: Vec<PackRef>,
    /// Seq of the last message in compressed packs; 0: there are none.
    pub(crate) compressed_through: u64,
    /// Running hash after the last message in compressed packs.
    pub(crate) compressed_frontier: [u8; 16],
    /// Version of the rules by which `recent_marks` and `accepted_lists` were computed.
    pub(crate) meaning_version: u32,
    /// Marks of the newest messages, oldest first.
    pub(crate) recent_marks: Vec<MessageMark>,
    /// The lists that were accepted last, oldest first.
    pub(crate) accepted_lists: Vec<AcceptedList>,
    /// Seqs, ascending, of the messages with which lists of the host began, without the first
    /// message of the conversation. Such a list shared nothing with the line, or came in append
    /// mode `new`.
    pub(crate) list_starts: Vec<u64>,
    /// Seq of the newest message that append mode `new` stored; 0: none.
    pub(crate) appended_new: u64,
    pub(crate) recent_batches: Vec<BatchRecord>,
    pub(crate) ledger: CompletionLedger,
    pub(crate) indexed: IndexedExtent,
    /// Hash of the family key; `None`: no family. The member record has the family key itself.
    pub(crate) family: Option<[u8; 16]>,
    /// How the conversation was archived; `None`: it is open.
    pub(crate) archived: Option<ArchiveRecord>,
    /// Deferred compaction; `None`: no compaction is deferred.
    pub(crate) deferred: Option<DeferredCompaction>,
    /// Number of entries in the record of remakes; 0: there is no such record.
    pub(crate) remakes: u32,
    /// The slot of system messages, a record of its own that is read with the head; `None`: the
    /// slot was never filled.
    #[serde(skip)]
    pub(crate) system: Option<SystemSlot>,
}

impl SoundRecord for ConversationHead {
    fn is_sound(&self) -> bool {
        let ledger = &self.ledger;
        let newest_user_seq = self.newest_user.map_or(0, |message| message.seq);
        codec::are_countable(&[
            self.revision,
            self.messages,
            self.raw_tokens,
            self.summaries,
            newest_user_seq,
        ]) && self.raw_bytes < 1 << 50
            && self.compressed_through <= self.messages
            && self.clock.is_sound()
            && self.indexed.messages <= self.messages
            && self.indexed.raw_bytes <= self.raw_bytes
            && ledger.window_start.max(ledger.paused_until) < 1 << 60
            && ledger.saved_tokens.max(ledger.withdrawn_tokens) < 1 << 60
            && ledger.completions.max(ledger.window_tokens) < 1 << 60
            && ledger.input_tokens.max(ledger.output_tokens) < 1 << 60
            && self.packs.iter().all(SoundRecord::is_sound)
            && self.list_starts.iter().chain([&self.appended_new]).all(|seq| *seq <= self.messages)
            && self.archived.is_none_or(|archived| archived.is_sound())
            && self.deferred.is_none_or(|debt| debt.is_sound())
            && self.context.is_sound()
    }
}

impl SoundRecord for JournalEntry {}

/// A head, with its stored bytes, by which the next commit is guarded.
#[derive(Clone, Debug)]
pub(crate) struct LoadedHead {
    pub(crate) head: ConversationHead,
    /// The stored bytes; `None`: the conversation does not exist yet.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl ConversationHead {
    fn new(conversation: &str) -> Self {
        Self {
            tenant: String::new(),
            conversation: conversation.into(),
            origin: None,
            revision: 0,
            clock: Clock::default(),
            messages: 0,
            raw_bytes: 0,
            raw_tokens: 0,
            frontier: [0; 16],
            newest_user: None,
            summaries: 0,
            context: Context::default(),
            packs: Vec::new(),
            compressed_through: 0,
            compressed_frontier: [0; 16],
            meaning_version: MEANING_VERSION,
            recent_marks: Vec::new(),
            accepted_lists: Vec::new(),
            list_starts: Vec::new(),
            appended_new: 0,
            recent_batches: Vec::new(),
            ledger: CompletionLedger::default(),
            indexed: IndexedExtent::default(),
            family: None,
            archived: None,
            deferred: None,
            remakes: 0,
            system: None,
        }
    }

    /// Returns the tokens of the system messages that belong to every context.
    pub(crate) fn system_tokens(&self) -> u64 {
        self.system.map_or(0, |slot| u64::from(slot.tokens))
    }
}

impl LoadedHead {
    /// Reads the head and the values of further keys in one host call, and binds the session to the
    /// head. A conversation that does not exist has an empty head.
    ///
    /// # Errors
    ///
    /// - `corrupt`: the head is damaged or names another conversation.
    /// - `unsupported`: the store has a newer format.
    /// - `denied`: the conversation is being deleted.
    /// - Errors of the store.
    pub(crate) fn read_with_keys(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
        further: &[String],
    ) -> Result<(Self, Vec<Option<Vec<u8>>>)> {
        let slot = SystemSlot::key(keys);
        let mut wanted =
            alloc::vec![keys.head_key(), FORMAT_VERSION_KEY.into(), slot.name().into()];
        wanted.extend_from_slice(further);
        let mut values = session.read_uncached(&wanted)?;
        let rest = values.split_off(3.min(values.len()));
        let mut values = values.into_iter();
        let bytes = values.next().flatten();
        if let Some(value) = values.next().flatten() {
            let _: () = codec::decode(FORMAT_VERSION_KEY, &value)?;
        }
        let system = values.next().flatten().filter(|_| bytes.is_some());
        let mut head = match &bytes {
            None => ConversationHead::new(conversation),
            Some(value) if codec::is_tombstone(value) => {
                // Nothing of the conversation stays in memory.
                session.clear_cache();
                return Err(deletion_error(conversation));
            }
            Some(value) => codec::decode::<ConversationHead>(&keys.head_key(), value)?,
        };
        if head.conversation != conversation {
            return Err(Error::corrupt_store(format_args!(
                "`{}` is the head of another conversation",
                keys.head_key()
            )));
        }
        head.system = system.map(|value| slot.decode(&value)).transpose()?;
        session.bind_head(keys, head.revision, bytes.as_deref());
        Ok((Self { head, bytes }, rest))
    }

    /// Reads the head of the call's conversation; a conversation that does not exist has an empty
    /// head.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::read_with_keys`].
    pub(crate) fn open(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<Self> {
        Self::load_head(session, call.keys, call.conversation)
    }

    /// Reads the head of the call's conversation, which must exist.
    ///
    /// # Errors
    ///
    /// `not-found`: the conversation does not exist; errors of [`Self::read_with_keys`].
    pub(crate) fn open_existing(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<Self> {
        Self::open(session, call)?.require_existing()
    }

    /// Reads the head of the call's conversation together with further records in one host call.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::read_with_keys`].
    pub(crate) fn open_with_records(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        reads: &RecordReads,
    ) -> Result<(Self, RecordValues)> {
        let (loaded, values) =
            Self::read_with_keys(session, call.keys, call.conversation, reads.key_names())?;
        Ok((loaded, RecordValues::new(values)))
    }

    /// Reads the head of a conversation; a conversation that does not exist has an empty head.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::read_with_keys`].
    pub(crate) fn load_head(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
    ) -> Result<Self> {
        Self::read_with_keys(session, keys, conversation, &[]).map(|(loaded, _)| loaded)
    }

    /// Reads the head of a conversation, which must exist.
    ///
    /// # Errors
    ///
    /// `not-found`: the conversation does not exist; errors of [`Self::read_with_keys`].
    pub(crate) fn load_existing(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
    ) -> Result<Self> {
        Self::load_head(session, keys, conversation)?.require_existing()
    }

    /// Returns the head if the conversation exists.
    ///
    /// # Errors
    ///
    /// `not-found`: the conversation does not exist.
    pub(crate) fn require_existing(self) -> Result<Self> {
        self.ensure_exists()?;
        Ok(self)
    }

    /// Builds the error for a conversation that does not exist.
    pub(crate) fn missing_error(conversation: &str) -> Error {
        Error::not_found(format_args!("conversation `{conversation}` does not exist"))
    }

    /// Refuses a conversation that does not exist.
    ///
    /// # Errors
    ///
    /// `not-found`: the conversation does not exist.
    pub(crate) fn ensure_exists(&self) -> Result<()> {
        if self.bytes.is_some() {
            return Ok(());
        }
        Err(Self::missing_error(&self.head.conversation))
    }

    /// Reads the clock of the conversation at the `now` of a call.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `now` is after the year 9999.
    pub(crate) fn read_clock(&self, now: Timestamp) -> Result<ClockReading> {
        ensure_time(now)?;
        Ok(self.head.clock.read_at(now))
    }

    /// Commits the changed head, its journal entry and `changes`; returns the new head. This must
    /// be the last store call of an exported call. The head gets the clock at the time of the call,
    /// the entry gets this time.
    ///
    /// # Errors
    ///
    /// `conflict`: the head or another guarded value has changed; `limit-exceeded`: the commit has
    /// more than 256 records or 1 MiB, or a record is too large; `invalid-input`: `now` is out of
    /// bounds. In these cases nothing was written. After other errors the outcome is unknown.
    pub(crate) fn commit_changes(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        act: JournalAction,
        mut changes: Changes,
    ) -> Result<ConversationHead> {
        // The guard of the head comes before the other guards.
        let further_guards = core::mem::take(&mut changes.guards);
        let head = self.append_changes(call, act, &mut changes)?;
        changes.guards.extend(further_guards);
        if changes.puts.len() > limits::PUTS_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "one commit must have at most {} records, this call would write {}; pass fewer \
                 items per call",
                limits::PUTS_MAX,
                changes.puts.len()
            )));
        }
        session.commit_changes(&changes)?;
        Ok(head)
    }

    /// Adds to `changes` the changed head with the next revision, its guard and its journal entry;
    /// returns the new head. For a new conversation, adds the entry in the list of conversations
    /// and the format version. A commit of two heads calls this method for each head.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `now` is out of bounds; `limit-exceeded`: a record is too large.
    pub(crate) fn append_changes(
        self,
        call: Call<'_>,
        act: JournalAction,
        changes: &mut Changes,
    ) -> Result<ConversationHead> {
        let keys = call.keys;
        let clock = self.read_clock(call.now)?.clock;
        let mut head = self.head;
        head.clock = clock;
        head.revision += 1;
        let puts = &mut changes.puts;
        let entry = codec::encode(&JournalEntry { time: call.now, act })?;
        puts.push(Put { key: keys.journal_key(head.revision), value: Some(entry) });
        if self.bytes.is_none() {
            let name = (head.tenant.as_str(), head.conversation.as_str());
            puts.push(Put { key: keys.name_key(), value: Some(codec::encode(&name)?) });
            let format = Some(codec::encode(&())?);
            puts.push(Put { key: FORMAT_VERSION_KEY.into(), value: format });
        }
        puts.push(Put { key: keys.head_key(), value: Some(codec::encode(&head)?) });
        changes.guards.push(Guard { key: keys.head_key(), value: self.bytes });
        Ok(head)
    }

    /// Adds to `changes` the guard that the stored head is still this head, without a write.
    pub(crate) fn add_guard(self, call: Call<'_>, changes: &mut Changes) {
        changes.guards.push(Guard { key: call.keys.head_key(), value: self.bytes });
    }
}

/// Refuses a time after the year 9999.
///
/// # Errors
///
/// `invalid-input`: `now` is later.
pub(crate) fn ensure_time(now: Timestamp) -> Result<()> {
    if now <= time::MS_MAX {
        return Ok(());
    }
    Err(Error::invalid_input(format_args!(
        "`now` is in milliseconds since 1970 and must be at most {} (the year 9999), got {now}",
        time::MS_MAX
    )))
}

/// Builds the refusal of a call on a conversation that is being deleted.
#[cold]
#[inline(never)]
pub(crate) fn deletion_error(conversation: &str) -> Error {
    Error::new(
        ErrorCode::Denied,
        format_args!(
            "conversation `{conversation}` is being deleted; call `delete` until it is done, then \
             the id is free"
        ),
    )
}

/// A journal entry: time and action of a commit that wrote the head.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JournalEntry {
    pub(crate) time: Timestamp,
    pub(crate) act: JournalAction,
}

impl JournalEntry {
    /// Returns the key of the entry of a revision.
    pub(crate) fn key(keys: &ConversationKeys, revision: u64) -> RecordKey<Self> {
        RecordKey::new(keys.journal_key(revision))
    }
}

/// The action of a commit that wrote the head. The store holds the index of the case, so the order
/// of the cases must not change.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum JournalAction {
    /// Stored messages.
    Append { seq_first: u64, count: u32 },
    /// Stored messages and changed the line before them; `before` is the earlier context root.
    Branch { seq_first: u64, count: u32, before: Context },
    /// Stored the piece of a large text that begins at the byte `offset`.
    Stage { sha256: [u8; 32], offset: u64 },
    /// Replaced sources by their summary; `before` is the earlier context root.
    Compact { summary: [u8; 8], made: SummaryProvenance, before: Context },
    /// Rejected an answer and counted its tokens, or ended a lease without an answer.
    Reject { sources: [u8; 16] },
    /// Counted the tokens of an answer whose sources had left the context.
    Stale { sources: [u8; 16] },
    /// Leased `count` tasks to a planner.
    Lease { count: u32 },
    /// Imported summaries, or created the conversation, or replaced its context, family or archive;
    /// `before` is the earlier context root if the import replaced the context.
    Import { summaries: u32, before: Option<Context> },
    /// Joined a family.
    Join,
    /// Archived the conversation.
    Archive { cause: ArchiveCause },
    /// Withdrew items from the context for a new session; `before` is the earlier context root.
    Withdraw { before: Context },
    /// Stored a report of a provider's token count.
    Calibrate,
    /// Set, changed or removed the deferred compaction.
    Defer,
    /// Stored a usage report.
    Usage,
    /// Set or removed the focus brief.
    Focus,
    /// Stored only the clock, in the commit of a new grant, because the grant also ends by the
    /// clock of the head.
    Clock,
    /// Removed the entries of failed remakes, so that models are asked again.
    Resummarize,
    /// Made a version of the system messages the newest, and stored no message.
    System { version: [u8; 8] },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::context::ContextItem;

    /// Goal: docs/store-format.md lists the journal actions in the order of their numbers. Method:
    /// compares the list in the document with the variants in the text of this file.
    #[test]
    fn the_document_lists_the_acts_of_the_journal() {
        let between = |text: &'static str, from: &str, to: &str| {
            let (_, rest) = text.split_once(from).unwrap();
            rest.split_once(to).unwrap().0
        };
        let cases = between(include_str!("head.rs"), "enum JournalAction {\n", "\n}\n");
        let cases = cases.lines().filter_map(|line| line.strip_prefix("    "));
        let is_name = |c: char| c.is_ascii_alphabetic();
        let acts: Vec<String> = cases
            .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
            .map(|line| line.chars().take_while(|c| is_name(*c)).collect::<String>())
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let listed = between(
            include_str!("../../../../docs/store-format.md"),
            "the time and one of ",
            ".\n",
        );
        let listed: Vec<&str> =
            listed.split(", ").filter_map(|act| act.split(' ').next()).collect();
        assert_eq!(listed, acts);
        assert_eq!(acts.last().map(String::as_str), Some("system"));
    }

    /// Goal: a head has at most 5 KiB. Method: every list at its bound, every number beyond any
    /// real conversation.
    #[test]
    fn a_head_with_every_list_full_has_at_most_5_kib() {
        let far = 1u64 << 34;
        // Tokens of a message, completions of ten minutes and messages of a list are fewer.
        let many = (1 << 28) - 1;
        let (bytes, tokens, check) = (250_000, 1 << 20, [255; 4]);
        let pack = PackRef {
            seq_first: far,
            count: 64,
            bytes,
            tokens,
            frontier_prefix: check,
            is_compressed: false,
        };
        let mut head = ConversationHead::new(&"x".repeat(limits::CONVERSATION_BYTES_MAX));
        head.origin = Some(ForkOrigin { conversation: [255; 16], revision: far, seq: far });
        head.revision = far;
        // A thousand years of steps back.
        head.clock = Clock { time: 253_402_300_799_999, ahead: 1 << 45 };
        head.indexed = IndexedExtent { messages: far, raw_bytes: 1 << 45 };
        head.family = Some([255; 16]);
        let (cause, successor) = (ArchiveCause::ManualReset, Some([255; 16]));
        head.archived = Some(ArchiveRecord { cause, time: head.clock.time, successor });
        (head.messages, head.raw_bytes, head.raw_tokens) = (far, 1 << 45, 1 << 39);
        head.newest_user = Some(UserMessageRef { seq: far, tokens: many });
        (head.summaries, head.compressed_through) = (far, far);
        head.packs = alloc::vec![pack; limits::RECENT_PACKS_MAX];
        let mark = MessageMark { meaning: [255; 8], id: [255; 4], call: [255; 4] };
        head.recent_marks = alloc::vec![mark; limits::RECENT_MARKS_MAX];
        let list = AcceptedList { hash: [255; 16], texts: [255; 16], seq_last: far, seq_seen: far };
        head.accepted_lists = alloc::vec![list; limits::ACCEPTED_LISTS_MAX];
        head.list_starts = alloc::vec![far; limits::LIST_STARTS_MAX];
        head.appended_new = far;
        let mark = BatchRecord { hash: [255; 12], consumed: 2_000_100 };
        head.recent_batches = alloc::vec![mark; limits::RECENT_BATCHES_MAX];
        head.ledger = CompletionLedger {
            completions: far,
            input_tokens: 1 << 43,
            output_tokens: 1 << 43,
            window_start: 1 << 48,
            window_completions: many,
            window_tokens: 1 << 43,
            saved_tokens: 1 << 43,
            withdrawn_tokens: 1 << 43,
            window_rejected: many,
            paused_until: 1 << 50,
        };
        head.deferred = Some(DeferredCompaction {
            since: head.clock.time,
            failures: many,
            next_attempt_at: 1 << 48,
            exhausted_tokens: Some(1 << 43),
        });
        head.remakes = 12_288;
        head.context = Context::full(|seq| {
            ContextItem::Summary(crate::storage::context::SummaryItem {
                id: [255; 8],
                depth: 12,
                tokens: 16_000,
                rendered_tokens: 16_000,
                bytes: 250_000,
                seq_first: far + seq,
                seq_last: far + seq,
                is_provisional: true,
            })
        });
        let bytes = codec::encode(&head).unwrap().len();
        assert!(bytes <= HEAD_BYTES_MAX, "{bytes}");
    }
}
