//! The slot of system messages: which messages of a call fill it, and the write of a version.
//!
//! In: the leading system messages of a list, or the option `system`. Out: an outcome for them, and
//! an update of the slot as part of the commit of the append.
//!
//! | list | its leading system messages |
//! |---|---|
//! | begins the conversation, or a new session of it | fill the slot |
//! | has messages that are stored | fill the slot, except last ones that the line has |
//! | has none, and they equal the newest version | fill the slot, which stays as it is |
//! | has none, and the first shares most of its text with the newest version | fill the slot |
//! | has none, and they say something else | become messages of the sequence |
//! | has nothing but system messages, but begins no session | become messages of the sequence |
//!
//! The leading system messages end before the first one with a stored id, and after 64 messages.
//! The others are compared with the line.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    changes::Changes,
    head::{ConversationHead, JournalAction, LoadedHead},
    history::MessageHistory,
    message_mark::MessageMark,
    pack::RawText,
    records::system_slot::{
        self, SYSTEM_MESSAGES_MAX, SharedVersion, SystemMessage, SystemSlot, SystemText,
        SystemVersion, hash_version,
    },
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        derivation_version::DERIVATION_VERSION,
        error::{Error, Result},
        int, limits,
        sort::SortedMap,
    },
    message::{Part, meaning},
    types::api::Timestamp,
};

use super::{
    batch::{self, AppendCandidate, CandidateParser, PackBuilder},
    line_diff::LineDiff,
    list_decision::EntryOutcome,
    stored_line::{StoredLine, read_marks},
    system_option::{self, SystemOption},
    transcript::TranscriptEntry,
};

/// Most bytes of the texts in the record of a version; further texts are stored in chunks.
const INLINE_BYTES_MAX: usize = 128 << 10;

/// The leading system messages of a list that was compared with the line.
pub(super) struct LeadRequest<'a, 'b> {
    pub(super) line: &'a StoredLine<'b>,
    /// The comparison of the entries after the lead.
    pub(super) diff: &'a LineDiff,
    pub(super) entries: &'a [&'a TranscriptEntry],
    /// Whether the list begins the conversation or its session.
    pub(super) has_no_message: bool,
    /// Returns what an entry says, if that is one text; `None`: something else, or only hashes are
    /// known.
    pub(super) text_of: &'a dyn Fn(usize) -> Option<String>,
}

impl LeadRequest<'_, '_> {
    /// Decides what becomes of each leading system message.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn decide_lead(&self, session: &mut StoreSession<'_>) -> Result<Vec<EntryOutcome>> {
        let mut outcomes = alloc::vec![EntryOutcome::Stored; self.entries.len()];
        let slot = self.line.message_history().head.system;
        let is_newest = |entries: &[&TranscriptEntry]| {
            let id = hash_version(entries.iter().map(|entry| &*entry.said));
            slot.is_some_and(|slot| slot.id == id)
        };
        let is_apart = self.diff.found_by == "none" && !self.has_no_message;
        if is_apart && !is_newest(self.entries) && !self.is_like_newest(session)? {
            outcomes.fill(EntryOutcome::New);
            return Ok(outcomes);
        }
        let count = self.entries.len() - self.count_in_line(session)?;
        let filling = self.entries.get(..count).unwrap_or(&[]);
        if !is_newest(filling) {
            outcomes.iter_mut().take(count).for_each(|it| *it = EntryOutcome::System);
        }
        Ok(outcomes)
    }

    /// Returns whether the first entry shares most of its text with the first message of the newest
    /// version: that message with a change, such as a clock.
    fn is_like_newest(&self, session: &mut StoreSession<'_>) -> Result<bool> {
        let history = self.line.message_history();
        let Some(text) = (self.text_of)(0) else { return Ok(false) };
        let Some(newest) = system_slot::read_newest(session, history)? else { return Ok(false) };
        let stored = newest.read_texts(session, history)?;
        let stored = stored.first().map(SystemText::read_said).unwrap_or_default();
        Ok(shares_most(&meaning::normalize_text(&stored), &text))
    }

    /// Counts the last entries of the lead that are messages of the line. With a filled slot, and
    /// in a list that was found in the line, an entry may equal any of the newest messages. In any
    /// other case the entries must equal the messages directly before the first entry after the
    /// lead; the count is 0 if the place of that entry is unknown.
    fn count_in_line(&self, session: &mut StoreSession<'_>) -> Result<usize> {
        if self.line.message_history().head.system.is_some() && self.diff.found_by != "none" {
            let marks = self.line.newest_marks();
            let mut count = 0;
            for entry in self.entries.iter().rev() {
                if !marks.iter().any(|mark| entry.mark.says_the_same(mark)) {
                    break;
                }
                count += 1;
            }
            if count > 0 {
                return Ok(count);
            }
        }
        // An accepted list has no positions, so the place is counted back from its end. That is
        // wrong if the list has branches or other forms: the messages there are no such system
        // messages, so the lead fills the slot.
        let accepted = int::to_u64(self.diff.accepted);
        let position = match accepted {
            0 => self.diff.positions.first().copied().flatten().unwrap_or(0),
            _ => (self.diff.position_accepted + 1).saturating_sub(accepted),
        };
        let most = int::to_u64(self.entries.len()).min(position.saturating_sub(1));
        let seqs: Vec<u64> =
            (position - most..position).map(|position| self.line.seq_at(position)).collect();
        let stored = read_marks(session, self.line.message_history(), &seqs)?;
        let pairs = self.entries.iter().rev().zip(stored.iter().rev());
        let is_same =
            |(entry, stored): &(&&TranscriptEntry, &MessageMark)| entry.mark.says_the_same(stored);
        Ok(pairs.take_while(is_same).count())
    }
}

/// Returns whether two texts have at least three quarters of the longer one in common, at their
/// beginnings and ends.
fn shares_most(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let is_equal = |(left, right): &(&u8, &u8)| left == right;
    let before = one.iter().zip(other).take_while(is_equal).count();
    let rest = one.len().min(other.len()) - before;
    let after = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(is_equal).count();
    4 * (before + after) >= 3 * one.len().max(other.len())
}

/// Parses the message of an option; empty: the option is not given.
///
/// # Errors
///
/// `invalid-input`: the dialect has no such content, or the content is not text alone.
pub(super) fn read_option<'a>(
    option: Option<&'a SystemOption>,
    call: Call<'_>,
) -> Result<Vec<AppendCandidate<'a>>> {
    let Some(SystemOption { dialect, raw }) = option else { return Ok(Vec::new()) };
    let parser =
        CandidateParser { call, dialect: (*dialect).into(), payload_tokens_min: &|_| None };
    let read = batch::read_candidates(&parser, core::slice::from_ref(raw), false);
    let candidates = read.map_err(|error| {
        let reason = error.message.strip_prefix("messages[0]: ").unwrap_or(&error.message);
        Error::new(error.code, format_args!("`system`: {reason}"))
    })?;
    let mut parts = candidates.iter().flat_map(|candidate| &candidate.message.parts);
    // A context shows the slot as text, so other content would be missing without a warning.
    match parts.all(|part| matches!(part, Part::Text { .. })) {
        true => Ok(candidates),
        false => Err(system_option::option_error()),
    }
}

/// Number, time and predecessor of a version.
#[derive(Clone, Copy)]
pub(super) struct VersionStamp {
    pub(super) number: u64,
    pub(super) time: Timestamp,
    pub(super) previous: Option<[u8; 8]>,
}

/// An update of the slot whose records were read.
pub(super) struct SystemUpdate<'a> {
    messages: Vec<&'a AppendCandidate<'a>>,
    /// Number of messages that come from the list, not from the option.
    of_list: usize,
    id: [u8; 8],
    /// The version with this id, which is stored already, and the size of its record in bytes.
    known: Option<(SystemVersion, u32)>,
    /// The whole version whose texts the new version may share.
    shared: Option<(SharedVersion, SystemVersion)>,
    /// Stamp of an imported version; `None`: the version is made now and follows the newest.
    stamp: Option<VersionStamp>,
}

impl<'a> SystemUpdate<'a> {
    /// Reads what an update to these messages needs, of which the last `of_list` come from the
    /// list. `None`: there are no messages, or they say what the newest version says.
    ///
    /// # Errors
    ///
    /// `corrupt`; errors of the store.
    pub(super) fn prepare_update(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        messages: Vec<&'a AppendCandidate<'a>>,
        of_list: usize,
    ) -> Result<Option<Self>> {
        let id = hash_candidates(&messages);
        if messages.is_empty() || head.system.is_some_and(|slot| slot.id == id) {
            return Ok(None);
        }
        let mut update = Self { messages, of_list, id, known: None, shared: None, stamp: None };
        let Some(slot) = head.system else { return Ok(Some(update)) };
        let key = SystemVersion::key(call.keys, id);
        let stored = session.read_guarded(key)?;
        if let (Some(value), Some(version)) = (stored.stored_value(), &stored.record) {
            update.known = Some((version.clone(), int::to_u32(value.len())));
            return Ok(Some(update));
        }
        let history = MessageHistory::new(call, head);
        let Some(newest) = system_slot::read_newest(session, &history)? else {
            return Ok(Some(update));
        };
        update.shared = match newest.shared {
            None => Some((SharedVersion { id: slot.id, bytes: slot.bytes }, newest)),
            Some(shared) => {
                let wanted = [(SystemVersion::key(call.keys, shared.id), shared.bytes)];
                let base = session.read_immutable_records(&wanted)?.pop();
                base.map(|base| (shared, base))
            }
        };
        Ok(Some(update))
    }

    /// Returns whether the version is stored already.
    pub(super) fn is_stored(&self) -> bool {
        self.known.is_some()
    }

    /// Returns the update with the stamp of an imported version.
    pub(super) fn with_stamp(self, stamp: VersionStamp) -> Self {
        Self { stamp: Some(stamp), ..self }
    }

    /// Commits the update alone.
    ///
    /// # Errors
    ///
    /// `conflict`; `limit-exceeded`: a record is too large; errors of the store.
    pub(super) fn commit(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        mut loaded: LoadedHead,
    ) -> Result<()> {
        let mut changes = Changes::default();
        let mut builder = PackBuilder::new(call, SortedMap::default(), &mut changes);
        self.write(call, &mut loaded.head, &mut builder)?;
        let act = build_action(&loaded.head);
        loaded.commit_changes(session, call, act, changes)?;
        Ok(())
    }

    /// Adds the writes of the slot, and of the version if it is new, and changes the head. Returns
    /// the number of messages of the list that a new version has; 0 if the version was stored
    /// before.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn write(
        self,
        call: Call<'_>,
        head: &mut ConversationHead,
        builder: &mut PackBuilder<'_>,
    ) -> Result<usize> {
        let versions = head.system.map_or(0, |slot| slot.versions);
        let (tokens, bytes, versions) = match &self.known {
            Some((version, bytes)) => (version.tokens(), *bytes, versions),
            None => {
                let version = self.build_version(head, builder, call.now)?;
                let key = SystemVersion::key(call.keys, self.id);
                let bytes = builder.changes_mut().write_record(&key, &version)?;
                (version.tokens(), bytes, versions + 1)
            }
        };
        let slot = SystemSlot { versions, id: self.id, tokens, bytes };
        builder.changes_mut().write_record(&SystemSlot::key(call.keys), &slot)?;
        head.system = Some(slot);
        Ok(if self.known.is_some() { 0 } else { self.of_list })
    }

    fn build_version(
        &self,
        head: &ConversationHead,
        builder: &mut PackBuilder<'_>,
        time: Timestamp,
    ) -> Result<SystemVersion> {
        let is_alike = |(_, base): &&(SharedVersion, SystemVersion)| {
            base.messages.len() == self.messages.len()
        };
        let shared = self.shared.as_ref().filter(is_alike);
        let mut inline = 0;
        let mut messages = Vec::with_capacity(self.messages.len());
        for (place, candidate) in self.messages.iter().enumerate() {
            let (raw, counts) = match builder.put_text(candidate)? {
                RawText::Inline(text) => {
                    let base = shared.and_then(|(_, base)| base.messages.get(place));
                    let counts = base.map_or([0; 2], |base| base.count_shared(&text));
                    let [before, after] = counts.map(|bytes| int::to_usize(bytes.into()));
                    let middle = text.get(before..text.len().saturating_sub(after)).unwrap_or("");
                    if inline + middle.len() > INLINE_BYTES_MAX {
                        (builder.put_chunks(&text)?, [0; 2])
                    } else {
                        inline += middle.len();
                        (RawText::Inline(middle.into()), counts)
                    }
                }
                chunks => (chunks, [0; 2]),
            };
            messages.push(SystemMessage {
                dialect: candidate.message.dialect,
                derivation_version: DERIVATION_VERSION,
                tokens: candidate.message.tokens,
                shared: counts,
                raw,
            });
        }
        let has_shared = messages.iter().any(|message| message.shared != [0; 2]);
        let stamp = self.stamp.unwrap_or(VersionStamp {
            number: head.system.map_or(0, |slot| slot.versions) + 1,
            time,
            previous: head.system.map(|slot| slot.id),
        });
        let VersionStamp { number, time, previous } = stamp;
        Ok(SystemVersion {
            number,
            time,
            previous,
            shared: shared.map(|(shared, _)| *shared).filter(|_| has_shared),
            messages,
        })
    }
}

/// Returns the action of a commit that changes the slot and stores no message.
pub(super) fn build_action(head: &ConversationHead) -> JournalAction {
    JournalAction::System { version: head.system.map_or([0; 8], |slot| slot.id) }
}

fn hash_candidates(messages: &[&AppendCandidate<'_>]) -> [u8; 8] {
    hash_version(messages.iter().map(|candidate| &*candidate.entry.said))
}

/// The messages of a call that fill the slot.
pub(super) struct FillingMessages<'a> {
    /// Those of the option `system`, which stand before those of the list.
    pub(super) given: &'a [AppendCandidate<'a>],
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// Indexes of the candidates that fill the slot.
    pub(super) indexes: &'a [usize],
}

impl<'a> FillingMessages<'a> {
    /// Refuses a call that takes only the first of the system messages of a list of `count`
    /// messages.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the system messages do not fit one call.
    fn ensure_whole(&self, count: usize) -> Result<()> {
        let (taken, filling) = (self.candidates.len(), self.indexes.len());
        if filling < taken || taken == count || [0, SYSTEM_MESSAGES_MAX].contains(&filling) {
            return Ok(());
        }
        Err(Error::limit_exceeded(format_args!(
            "the system messages at the beginning of `messages` must fit one call, which takes \
             {taken} of {count}; stage messages over {} bytes",
            limits::PACK_BYTES_MAX
        )))
    }

    /// Reads what the update of the slot needs, for a list of `count` messages; `None`: the slot
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the system messages do not fit one call; `corrupt`; errors of the store.
    pub(super) fn prepare_update(
        &self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        count: usize,
    ) -> Result<Option<SystemUpdate<'a>>> {
        self.ensure_whole(count)?;
        let of_list = self.indexes.iter().filter_map(|index| self.candidates.get(*index));
        let of_list: Vec<&AppendCandidate<'_>> = of_list.collect();
        let mut messages: Vec<&AppendCandidate<'_>> = self.given.iter().collect();
        if messages.is_empty() || hash_candidates(&messages) != hash_candidates(&of_list) {
            messages.extend(&of_list);
        }
        if messages.len() > SYSTEM_MESSAGES_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "`system` and the system messages at the beginning of `messages` must be at most \
                 {SYSTEM_MESSAGES_MAX} messages together, got {}",
                messages.len()
            )));
        }
        let count = messages.len() - self.given.len();
        SystemUpdate::prepare_update(session, call, head, messages, count)
    }
}
