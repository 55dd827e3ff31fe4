//! The head of a conversation: its one guarded record, from which every other key follows.
//!
//! Every commit that touches a conversation writes its head with the next revision and guards the
//! old bytes; whoever loses that race has written nothing. A head stays under 4 KiB whatever
//! happens: each list in it has a bound in [`lcm_text::base::limits`].

use crate::storage::records::session::{ArchiveCause, ArchiveRecord};
use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    call::Call,
    changes::Changes,
    codec::{self, SoundRecord},
    context::Context,
    keys::{self, ConversationKeys},
    pack::PackRef,
    record_key::{RecordReads, RecordValues},
    records::deferred::DeferredCompaction,
    store::{Guard, Put},
    store_session::StoreSession,
    summary::SummaryProvenance,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        limits, time,
    },
    types::api::Timestamp,
};

/// Where the newest user message stands, for the fresh tail.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct UserMessageRef {
    pub(crate) seq: u64,
    pub(crate) tokens: u32,
}

/// One ingest call, or the calls of one list, so that their repetition is recognised.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct BatchRecord {
    /// Hash over the hashes of the messages, the mode, `now` and revision of the call, or of the
    /// name of the list.
    pub(crate) hash: [u8; 12],
    /// How many messages were consumed, of a list by all its calls so far.
    pub(crate) consumed: u32,
}

/// What models were asked and what it cost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct CompletionLedger {
    pub(crate) completions: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Tokens that summaries took out of the stored context.
    pub(crate) saved_tokens: u64,
    /// Tokens that new sessions took out of it.
    pub(crate) withdrawn_tokens: u64,
    /// Begin of the current window, and what was asked in it.
    pub(crate) window_start: Timestamp,
    pub(crate) window_completions: u32,
    pub(crate) window_tokens: u64,
    /// Answers of the window since the last that became a summary.
    pub(crate) window_rejected: u32,
    /// Until when no model is asked, unless a person wants it; 0: it may be.
    pub(crate) paused_until: Timestamp,
}

/// Up to where messages are in search segments.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexedExtent {
    pub(crate) messages: u64,
    /// Raw bytes of these messages.
    pub(crate) raw_bytes: u64,
}

/// The conversation that this one was forked from. No operation writes it yet; its place keeps
/// fork a matter of one commit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ForkOrigin {
    pub(crate) conversation: [u8; 16],
    pub(crate) revision: u64,
    pub(crate) seq: u64,
}

/// The head record.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConversationHead {
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    pub(crate) origin: Option<ForkOrigin>,
    /// Counts the commits.
    pub(crate) revision: u64,
    /// The greatest `now` seen.
    pub(crate) time: Timestamp,
    /// Number of messages, which is the seq of the newest.
    pub(crate) messages: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) raw_tokens: u64,
    /// Running hash after the newest message.
    pub(crate) frontier: [u8; 16],
    pub(crate) newest_user: Option<UserMessageRef>,
    pub(crate) summaries: u64,
    pub(crate) context: Context,
    /// The newest packs; older ones stand in the directory.
    pub(crate) packs: Vec<PackRef>,
    /// Seq up to which messages stand in sealed packs.
    pub(crate) compressed_through: u64,
    /// Running hash after the newest of them.
    pub(crate) compressed_frontier: [u8; 16],
    /// Hashes of the newest messages, oldest first.
    pub(crate) recent_hashes: Vec<[u8; 12]>,
    pub(crate) recent_batches: Vec<BatchRecord>,
    pub(crate) ledger: CompletionLedger,
    pub(crate) indexed: IndexedExtent,
    /// Hash of the key of its family; the key itself stands in the list of the family.
    pub(crate) family: Option<[u8; 16]>,
    /// `None`: it goes on.
    pub(crate) archived: Option<ArchiveRecord>,
    /// Compaction that was put off; `None`: none was.
    pub(crate) deferred: Option<DeferredCompaction>,
}

impl SoundRecord for ConversationHead {
    fn is_sound(&self) -> bool {
        let ledger = &self.ledger;
        let marks = self.newest_user.map_or(0, |mark| mark.seq);
        codec::are_countable(&[
            self.revision,
            self.messages,
            self.raw_tokens,
            self.summaries,
            marks,
        ]) && self.raw_bytes < 1 << 50
            && self.compressed_through <= self.messages
            && self.time <= time::MS_MAX
            && self.indexed.messages <= self.messages
            && self.indexed.raw_bytes <= self.raw_bytes
            && ledger.window_start <= time::MS_MAX
            && ledger.paused_until < 1 << 60
            && ledger.saved_tokens.max(ledger.withdrawn_tokens) < 1 << 60
            && ledger.completions.max(ledger.window_tokens) < 1 << 60
            && ledger.input_tokens.max(ledger.output_tokens) < 1 << 60
            && self.packs.iter().all(SoundRecord::is_sound)
            && self.archived.is_none_or(|archived| archived.is_sound())
            && self.deferred.is_none_or(|debt| debt.is_sound())
            && self.context.is_sound()
    }
}

impl SoundRecord for JournalEntry {}

/// A head together with the bytes it was read from, which guard the next commit.
#[derive(Clone, Debug)]
pub(crate) struct LoadedHead {
    pub(crate) head: ConversationHead,
    /// `None`: the conversation does not exist yet.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl ConversationHead {
    fn new(conversation: &str) -> Self {
        Self {
            tenant: String::new(),
            conversation: conversation.into(),
            origin: None,
            revision: 0,
            time: 0,
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
            recent_hashes: Vec::new(),
            recent_batches: Vec::new(),
            ledger: CompletionLedger::default(),
            indexed: IndexedExtent::default(),
            family: None,
            archived: None,
            deferred: None,
        }
    }
}

impl LoadedHead {
    /// Reads the head, together with further keys in the same read.
    ///
    /// # Errors
    ///
    /// `corrupt`: the head cannot be read or names another conversation; `unsupported`: the store
    /// was written by a newer format.
    pub(crate) fn read_with_keys(
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
        further: &[String],
    ) -> Result<(Self, Vec<Option<Vec<u8>>>)> {
        let mut wanted = alloc::vec![keys.head_key(), String::from(keys::FORMAT_VERSION_KEY)];
        wanted.extend_from_slice(further);
        let mut values = reader.read_uncached(&wanted)?;
        let rest = values.split_off(2.min(values.len()));
        let mut values = values.into_iter();
        let bytes = values.next().flatten();
        if let Some(value) = values.next().flatten() {
            let _: () = codec::decode(keys::FORMAT_VERSION_KEY, &value)?;
        }
        let head = match &bytes {
            None => ConversationHead::new(conversation),
            Some(value) => codec::decode::<ConversationHead>(&keys.head_key(), value)?,
        };
        if head.conversation != conversation {
            return Err(Error::corrupt_store(format_args!(
                "`{}` is not the head of this one",
                keys.head_key()
            )));
        }
        reader.bind_head(keys, head.revision, bytes.as_deref());
        Ok((Self { head, bytes }, rest))
    }

    /// Reads the head of the call's conversation; a conversation that does not exist has an empty
    /// head.
    ///
    /// # Errors
    ///
    /// As [`LoadedHead::read_with_keys`].
    pub(crate) fn open(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<Self> {
        Self::load_head(session, call.keys, call.conversation)
    }

    /// Reads the head of the call's conversation, which must exist.
    ///
    /// # Errors
    ///
    /// As [`LoadedHead::read_with_keys`]; `not-found`.
    pub(crate) fn open_existing(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<Self> {
        Self::open(session, call)?.require_existing()
    }

    /// Reads the head of the call's conversation together with further records in one host call.
    ///
    /// # Errors
    ///
    /// As [`LoadedHead::read_with_keys`].
    pub(crate) fn open_with_records(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        reads: &RecordReads,
    ) -> Result<(Self, RecordValues)> {
        let (loaded, values) =
            Self::read_with_keys(session, call.keys, call.conversation, reads.names())?;
        Ok((loaded, RecordValues::new(values)))
    }

    /// Reads the head alone.
    ///
    /// # Errors
    ///
    /// As [`Loaded::read`].
    pub(crate) fn load_head(
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
    ) -> Result<Self> {
        Self::read_with_keys(reader, keys, conversation, &[]).map(|(loaded, _)| loaded)
    }

    /// Reads the head alone of a conversation that exists.
    ///
    /// # Errors
    ///
    /// As [`Loaded::read`]; `not-found`.
    pub(crate) fn load_existing(
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        conversation: &str,
    ) -> Result<Self> {
        Self::load_head(reader, keys, conversation)?.require_existing()
    }

    /// Refuses a conversation that does not exist.
    ///
    /// # Errors
    ///
    /// `not-found`.
    pub(crate) fn require_existing(self) -> Result<Self> {
        self.ensure_exists()?;
        Ok(self)
    }

    /// As [`Loaded::existing`], of one that is needed after.
    ///
    /// # Errors
    ///
    /// `not-found`.
    pub(crate) fn ensure_exists(&self) -> Result<()> {
        if self.bytes.is_some() {
            return Ok(());
        }
        Err(Error::not_found(format_args!(
            "conversation `{}` does not exist",
            self.head.conversation
        )))
    }

    /// The effective time of a call.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a time behind the year 9999, which would stop the conversation's clock.
    pub(crate) fn effective_time(&self, now: Timestamp) -> Result<Timestamp> {
        if now > time::MS_MAX {
            return Err(Error::invalid_input(format_args!(
                "now: at most {} (the year 9999)",
                time::MS_MAX
            )));
        }
        Ok(now.max(self.head.time))
    }

    /// Commits the changed head together with `puts`: the one commit of an exported call, and its
    /// last store call.
    ///
    /// # Errors
    ///
    /// `conflict`: another instance was faster; nothing was written. `limit-exceeded`: the commit
    /// would pass the bounds of a host call. Others from the store: outcome unknown.
    pub(crate) fn commit(
        self,
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        now: Timestamp,
        entry: &JournalEntry,
        mut puts: Vec<Put>,
        further_guards: Vec<Guard>,
    ) -> Result<ConversationHead> {
        let mut guards = Vec::new();
        let head = self.append_head_puts(keys, now, entry, &mut puts, &mut guards)?;
        guards.extend(further_guards);
        if puts.len() > limits::PUTS_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "a commit of {} writes is over the bound of {}",
                puts.len(),
                limits::PUTS_MAX
            )));
        }
        reader.commit(&guards, &puts)?;
        Ok(head)
    }

    /// Commits the changed head together with `changes`: the one commit of an exported call, and
    /// its last store call. The journal entry has the effective time of the call.
    ///
    /// # Errors
    ///
    /// `conflict`: another instance was faster, and nothing was written. `limit-exceeded`: the
    /// commit would pass the bounds of a host call. Others from the store: outcome unknown.
    pub(crate) fn commit_changes(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        act: JournalAction,
        changes: Changes,
    ) -> Result<ConversationHead> {
        let time = self.effective_time(call.now)?;
        let entry = JournalEntry { time, act };
        self.commit(session, call.keys, time, &entry, changes.puts, changes.guards)
    }

    /// Adds what the commit of a changed head writes and what guards it.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(crate) fn append_head_puts(
        self,
        keys: &ConversationKeys,
        now: Timestamp,
        entry: &JournalEntry,
        puts: &mut Vec<Put>,
        guards: &mut Vec<Guard>,
    ) -> Result<ConversationHead> {
        let mut head = self.head;
        head.time = head.time.max(now);
        head.revision += 1;
        puts.push(Put { key: keys.journal_key(head.revision), value: Some(codec::encode(entry)?) });
        if self.bytes.is_none() {
            let name = (head.tenant.as_str(), head.conversation.as_str());
            puts.push(Put { key: keys.name_key(), value: Some(codec::encode(&name)?) });
            puts.push(Put {
                key: keys::FORMAT_VERSION_KEY.into(),
                value: Some(codec::encode(&())?),
            });
        }
        puts.push(Put { key: keys.head_key(), value: Some(codec::encode(&head)?) });
        guards.push(Guard { key: keys.head_key(), value: self.bytes });
        Ok(head)
    }
}

/// One journal entry: what a commit did.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JournalEntry {
    pub(crate) time: Timestamp,
    pub(crate) act: JournalAction,
}

/// What a commit did to the conversation.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum JournalAction {
    /// Messages were stored.
    Append { seq_first: u64, count: u32 },
    /// A part of a large text was stored.
    Stage { sha256: [u8; 32], offset: u64 },
    /// A summary replaced its sources, made as its record says. The old context root makes the
    /// earlier context readable.
    Compact { summary: [u8; 8], made: SummaryProvenance, before: Context },
    /// An answer was rejected; its tokens were counted.
    Reject { sources: [u8; 16] },
    /// An answer came too late; its tokens were counted.
    Stale { sources: [u8; 16] },
    /// Tasks were reserved.
    Lease { count: u32 },
    /// An import stored summaries, or replaced the context, of which the old root is kept.
    Import { summaries: u32, before: Option<Context> },
    /// It was made for a family, or came to belong to one.
    Join,
    /// It was archived.
    Archive { cause: ArchiveCause },
    /// A new session withdrew items from the context, of which the old root is kept.
    Withdraw { before: Context },
    /// A provider's count of a prompt was reported.
    Calibrate,
    /// Compaction was put off, or what was put off is no more.
    Defer,
    /// A host reported what it spent.
    Usage,
    /// A focus brief was set or taken away.
    Focus,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::context::ContextItem;

    /// Goal: the document names what journal entries say, in the order that numbers them. Method:
    /// the list in its text against the cases in the text of this file.
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
        assert_eq!(acts.last().map(String::as_str), Some("focus"));
    }

    /// Goal: a head stays under 4 KiB whatever happens. Method: every list at its bound, every
    /// number far beyond what a conversation reaches.
    #[test]
    fn a_head_with_every_list_full_has_at_most_4_kib() {
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
        head.time = 253_402_300_799_999;
        head.indexed = IndexedExtent { messages: far, raw_bytes: 1 << 45 };
        head.family = Some([255; 16]);
        let (cause, successor) = (ArchiveCause::ManualReset, Some([255; 16]));
        head.archived = Some(ArchiveRecord { cause, time: head.time, successor });
        (head.messages, head.raw_bytes, head.raw_tokens) = (far, 1 << 45, 1 << 39);
        head.newest_user = Some(UserMessageRef { seq: far, tokens: many });
        (head.summaries, head.compressed_through) = (far, far);
        head.packs = alloc::vec![pack; limits::RECENT_PACKS_MAX];
        head.recent_hashes = alloc::vec![[255; 12]; limits::RECENT_HASHES_MAX];
        let mark = BatchRecord { hash: [255; 12], consumed: 2_000_100 };
        head.recent_batches = alloc::vec![mark; limits::RECENT_BATCHES_MAX];
        head.ledger = CompletionLedger {
            completions: far,
            input_tokens: 1 << 43,
            output_tokens: 1 << 43,
            window_start: head.time,
            window_completions: many,
            window_tokens: 1 << 43,
            saved_tokens: 1 << 43,
            withdrawn_tokens: 1 << 43,
            window_rejected: many,
            paused_until: 1 << 50,
        };
        head.deferred = Some(DeferredCompaction {
            since: head.time,
            failures: many,
            next_attempt_at: head.time,
            exhausted_tokens: Some(1 << 43),
        });
        head.context = Context::full(|seq| {
            ContextItem::Summary(crate::storage::context::SummaryItem {
                id: [255; 8],
                depth: 12,
                tokens: 16_000,
                rendered_tokens: 16_000,
                bytes: 250_000,
                seq_first: far + seq,
                seq_last: far + seq,
            })
        });
        let bytes = codec::encode(&head).unwrap().len();
        assert!(bytes <= 4 << 10, "{bytes}");
    }
}
