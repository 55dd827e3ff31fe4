//! Deletion of a conversation: the command `delete`, one commit for each call.
//!
//! In: a conversation, or the tombstone of a conversation. Out: a commit that deletes the next
//! piece, and the counts of all pieces so far. `docs/store-format.md` (*Deletion*) describes the
//! commits and gives the reasons for their order. The task `delete` in [`crate::drive`] repeats the
//! command until it is done.

use alloc::string::String;

use crate::storage::{
    call::Call,
    changes::Changes,
    codec,
    head::{JournalAction, LoadedHead, ensure_time},
    keys::ConversationKeys,
    record_key::{RecordReads, RecordSlot, RecordValues},
    records::{
        grants::{self, GrantRecord},
        link::ConversationLink,
        question::QuestionRecord,
        tombstone::Tombstone,
    },
    store::{Entry, Guard, Put},
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    json::{JsonFields, JsonWriter},
    limits,
};

/// Maximum number of records that one commit deletes.
const RECORDS_PER_PIECE: usize = 250;
/// Maximum number of linked conversations of one commit, each with at most seven writes.
const LINKS_PER_PIECE: usize = 16;
/// Bytes of written records after which a commit takes no further linked conversation. The largest
/// record of a linked conversation, that of its grants, has at most 115 KB.
const LINK_BYTES_MAX: usize = 512 << 10;

/// Arguments of `delete`.
struct DeleteRequest {
    /// Whether the call only continues a deletion.
    resume: bool,
    dry_run: bool,
}

/// Deletes the next piece of a conversation and returns the counts of all pieces so far as JSON.
///
/// # Errors
///
/// - `invalid-input`: an argument is unknown or malformed.
/// - `not-found`: the conversation does not exist. With `resume` that is no error: the deletion has
///   ended.
/// - `corrupt`: the head or the tombstone is damaged, or is that of another conversation.
/// - `conflict`: another call committed first.
/// - Errors of the store.
pub(super) fn delete_piece(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    mut fields: JsonFields<'_>,
    arguments: &str,
) -> Result<String> {
    let request =
        DeleteRequest { resume: fields.take_flag("resume"), dry_run: fields.take_flag("dry_run") };
    fields.finish(arguments)?;
    let key = call.keys.head_key();
    let value = session.read_one_uncached(&key)?;
    if let Some(value) = value.filter(|value| codec::is_tombstone(value)) {
        let tombstone: Tombstone = codec::decode_tombstone(&key, &value)?;
        if tombstone.conversation != call.conversation {
            return Err(Error::corrupt_store(format_args!(
                "`{key}` is the tombstone of another conversation"
            )));
        }
        session.clear_cache();
        let piece = DeletionPiece::new(call, tombstone, Guard { key, value: Some(value) });
        return piece.continue_deletion(session, request.dry_run);
    }
    let loaded = LoadedHead::open(session, call)?;
    if request.resume {
        // The deletion has ended already. A conversation that has this id now is a new one, which
        // stays.
        return Ok(build_receipt(call, &DeletionState::default()));
    }
    loaded.ensure_exists()?;
    begin_deletion(session, call, loaded, request.dry_run)
}

/// State of a deletion after a call.
#[derive(Default)]
struct DeletionState {
    tombstone: Option<Tombstone>,
    changed: bool,
    /// Whether records are left.
    has_more: bool,
}

/// Builds the answer of the command.
fn build_receipt(call: Call<'_>, state: &DeletionState) -> String {
    let counts = state.tombstone.as_ref();
    let mut answer = JsonWriter::new_object();
    answer.add_number("bytes", counts.map_or(0, |counts| counts.bytes));
    answer.add_flag("changed", state.changed);
    answer.add_text("conversation", call.conversation);
    answer.add_flag("done", !state.has_more);
    answer.add_number("messages", counts.map_or(0, |counts| counts.messages));
    answer.add_number("records", counts.map_or(0, |counts| counts.records));
    answer.end_object()
}

/// Replaces the head by a tombstone, and moves the conversation from the lists of conversations and
/// of its family to the list of deletions.
fn begin_deletion(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    loaded: LoadedHead,
    dry_run: bool,
) -> Result<String> {
    let keys = call.keys;
    ensure_time(call.now)?;
    let head = &loaded.head;
    let guard = Guard { key: keys.head_key(), value: loaded.bytes.clone() };
    let tombstone = Tombstone {
        tenant: head.tenant.clone(),
        conversation: head.conversation.clone(),
        time: call.now,
        messages: head.messages,
        records: 0,
        bytes: 0,
    };
    let listed = codec::encode(&(head.tenant.as_str(), head.conversation.as_str()))?;
    let mut names = alloc::vec![keys.name_key(), keys.life_key()];
    names.extend(head.family.map(|family| keys.family_member_key(family)));
    let mut piece = DeletionPiece::new(call, tombstone, guard);
    piece.count_record(&keys.head_key(), loaded.bytes.as_deref().unwrap_or_default());
    for (key, value) in names.iter().zip(session.read_uncached(&names)?) {
        if let Some(value) = value {
            piece.delete_record(key, &value);
        }
    }
    piece.changes.add_put(Put { key: keys.deletion_key(), value: Some(listed) });
    piece.commit(session, dry_run)
}

/// One commit of a deletion.
struct DeletionPiece<'a> {
    call: Call<'a>,
    /// The tombstone after this piece.
    tombstone: Tombstone,
    changes: Changes,
}

impl<'a> DeletionPiece<'a> {
    /// Creates a piece; `guard` holds the head or the tombstone as read.
    fn new(call: Call<'a>, tombstone: Tombstone, guard: Guard) -> Self {
        let mut changes = Changes::default();
        changes.add_guard(guard);
        Self { call, tombstone, changes }
    }

    fn count_record(&mut self, key: &str, value: &[u8]) {
        self.tombstone.records += 1;
        self.tombstone.bytes += int::to_u64(key.len() + value.len());
    }

    fn delete_record(&mut self, key: &str, value: &[u8]) {
        self.count_record(key, value);
        self.changes.add_put(Put { key: key.into(), value: None });
    }

    /// Commits the piece with the tombstone and returns the answer.
    fn commit(mut self, session: &mut StoreSession<'_>, dry_run: bool) -> Result<String> {
        let value = Some(codec::encode_tombstone(&self.tombstone)?);
        self.changes.add_put(Put { key: self.call.keys.head_key(), value });
        self.finish(session, true, dry_run)
    }

    fn finish(
        self,
        session: &mut StoreSession<'_>,
        has_more: bool,
        dry_run: bool,
    ) -> Result<String> {
        let Self { call, tombstone, changes } = self;
        if !dry_run {
            session.commit_changes(&changes)?;
        }
        let state = DeletionState { tombstone: Some(tombstone), changed: true, has_more };
        Ok(build_receipt(call, &state))
    }

    /// Deletes the next piece. While links are left, the piece is the data about this conversation
    /// in some linked conversations. Then it is some of this conversation's records, and after the
    /// last record the tombstone.
    fn continue_deletion(
        mut self,
        session: &mut StoreSession<'_>,
        dry_run: bool,
    ) -> Result<String> {
        let keys = self.call.keys;
        let (start, end) = keys.record_range("l");
        let (links, _) = session.scan_page(&start, &end, limits::CALL_BYTES_MAX)?;
        if !links.is_empty() {
            for link in links.iter().take(LINKS_PER_PIECE) {
                self.remove_link(session, link)?;
                let values = self.changes.list_puts().iter().filter_map(|put| put.value.as_ref());
                if values.map(alloc::vec::Vec::len).sum::<usize>() > LINK_BYTES_MAX {
                    break;
                }
            }
            return self.commit(session, dry_run);
        }
        let (start, end) = keys.record_range("");
        let (entries, _) = session.scan_page(&start, &end, limits::CALL_BYTES_MAX)?;
        let head_key = keys.head_key();
        let mut records = entries.iter().filter(|entry| entry.key != head_key).peekable();
        if records.peek().is_none() {
            for key in [head_key, keys.deletion_key()] {
                self.changes.add_put(Put { key, value: None });
            }
            return self.finish(session, false, dry_run);
        }
        for Entry { key, value } in records.take(RECORDS_PER_PIECE) {
            self.delete_record(key, value);
        }
        self.commit(session, dry_run)
    }

    /// Removes the data about this conversation from a linked conversation, and both links.
    fn remove_link(&mut self, session: &mut StoreSession<'_>, link: &Entry) -> Result<()> {
        let this = self.call;
        let other = codec::decode::<ConversationLink>(&link.key, &link.value);
        let other = other.ok().map(|link| link.conversation).filter(|other| {
            let keys = ConversationKeys::new(other);
            keys.is_ok_and(|keys| this.keys.link_key(&keys) == link.key)
        });
        self.delete_record(&link.key, &link.value);
        // A damaged link names no conversation.
        let Some(other) = other.filter(|other| other != this.conversation) else { return Ok(()) };
        this.with_conversation(&other, |other| {
            let back_link = ConversationLink { conversation: this.conversation.into() };
            self.delete_record(&other.keys.link_key(this.keys), &codec::encode(&back_link)?);
            let mut reads = RecordReads::default();
            let grants = reads.add_record(GrantRecord::key(other.keys));
            let question = reads.add_record(QuestionRecord::key(other.keys));
            let values = match LoadedHead::open_with_records(session, other, &reads) {
                Ok((loaded, values)) => {
                    self.forget_successor(other, loaded)?;
                    values
                }
                // The other conversation is being deleted, too, or its head is damaged.
                Err(error) if matches!(error.code, ErrorCode::Denied | ErrorCode::Corrupt) => {
                    reads.read(session)?
                }
                Err(error) => return Err(error),
            };
            self.forget_grants(&values, &grants)?;
            self.forget_question(&values, &question)
        })
    }

    /// Removes the successor from the archive record of another conversation if the successor is
    /// this conversation.
    fn forget_successor(&mut self, other: Call<'_>, mut loaded: LoadedHead) -> Result<()> {
        let deleted = Some(self.call.keys.conversation_hash());
        let archived = loaded.head.archived.as_mut();
        let Some(archived) = archived.filter(|archived| archived.successor == deleted) else {
            return Ok(());
        };
        archived.successor = None;
        let act = JournalAction::Archive { cause: archived.cause };
        loaded.append_changes(other, act, &mut self.changes)?;
        Ok(())
    }

    /// Removes from another conversation the grants that cover this conversation, and the
    /// references to grants of this conversation.
    fn forget_grants(
        &mut self,
        values: &RecordValues,
        slot: &RecordSlot<GrantRecord>,
    ) -> Result<()> {
        let deleted = self.call.keys.conversation_hash();
        let guard = values.build_guard(slot);
        match values.decode(slot) {
            Ok(record) => {
                let changed = record.and_then(|one| grants::forget_conversation(one, deleted));
                if let Some(record) = changed {
                    self.changes.write_record(slot.key(), &record)?;
                    self.changes.add_guard(guard);
                }
                Ok(())
            }
            Err(error) => self.delete_damaged(error, guard),
        }
    }

    /// Deletes the question of another conversation, open or ended, if its evidence or its outcome
    /// names this conversation; also if the record is damaged.
    fn forget_question(
        &mut self,
        values: &RecordValues,
        slot: &RecordSlot<QuestionRecord>,
    ) -> Result<()> {
        let guard = values.build_guard(slot);
        match values.decode(slot) {
            Ok(Some(record)) if record.names_conversation(self.call.conversation) => {
                self.delete_guarded(guard);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => self.delete_damaged(error, guard),
        }
    }

    /// Deletes a damaged record, because nobody can read whether it names this conversation.
    fn delete_damaged(&mut self, error: Error, guard: Guard) -> Result<()> {
        if error.code != ErrorCode::Corrupt {
            return Err(error);
        }
        self.delete_guarded(guard);
        Ok(())
    }

    /// Deletes a record that must still have the value that was read.
    fn delete_guarded(&mut self, guard: Guard) {
        self.delete_record(&guard.key, guard.value.as_deref().unwrap_or_default());
        self.changes.add_guard(guard);
    }
}
