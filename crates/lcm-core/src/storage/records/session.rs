//! Records of a session: the membership in a family, and the archive.
//!
//! The rules for these records are in [`crate::storage::session`].

use alloc::string::String;

use serde::{Deserialize, Serialize};

use lcm_text::{
    base::{limits, time},
    types::api::Timestamp,
};

use crate::storage::{codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey};

/// Why a conversation was archived. The index of a case is stored, so the order must not change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum ArchiveCause {
    /// A person started again.
    ManualReset,
    /// The host discarded its session; the records stay.
    Discarded,
    /// The session ended.
    SessionEnd,
    /// The host continued in another conversation of the family.
    Rollover,
    /// A recurring job started its next run.
    CronRotation,
    /// The session had no messages for a long time.
    Idle,
}

impl ArchiveCause {
    const ALL: [(&'static str, Self); 6] = [
        ("manual-reset", Self::ManualReset),
        ("discarded", Self::Discarded),
        ("session-end", Self::SessionEnd),
        ("rollover", Self::Rollover),
        ("cron-rotation", Self::CronRotation),
        ("idle", Self::Idle),
    ];
    /// Names of all causes, in the order of [`Self::from_index`].
    pub(crate) const NAMES: [&'static str; 6] = {
        let [a, b, c, d, e, f] = Self::ALL;
        [a.0, b.0, c.0, d.0, e.0, f.0]
    };

    /// Returns the cause with this index in [`Self::NAMES`]; `ManualReset` if there is none.
    pub(crate) fn from_index(place: usize) -> Self {
        Self::ALL.get(place).map_or(Self::ManualReset, |(_, cause)| *cause)
    }

    /// Returns the name of the cause.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, cause)| *cause == self).map_or("", |(name, _)| name)
    }
}

/// The archive record, a part of the head. An archived conversation is readable, and takes no
/// further messages or summaries.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ArchiveRecord {
    pub(crate) cause: ArchiveCause,
    pub(crate) time: Timestamp,
    /// Hash of the conversation that continues the session; `None`: no conversation does.
    pub(crate) successor: Option<[u8; 16]>,
}

/// The member record of a conversation in its family.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FamilyMember {
    pub(crate) family: String,
    pub(crate) conversation: String,
    pub(crate) joined_at: Timestamp,
    /// The part before `#` of the conversation's id, if a reset made this id; `None`: no reset made
    /// it.
    pub(crate) numbered_from: Option<String>,
}

impl FamilyMember {
    /// Returns the key of a conversation's member record in the family with this hash.
    pub(crate) fn key(keys: &ConversationKeys, family: [u8; 16]) -> RecordKey<Self> {
        RecordKey::new(keys.family_member_key(family))
    }
}

impl SoundRecord for FamilyMember {
    fn is_sound(&self) -> bool {
        let stem_bytes = self.numbered_from.as_ref().map_or(0, String::len);
        self.family.len().max(stem_bytes) <= limits::CONVERSATION_BYTES_MAX
            && self.joined_at <= time::MS_MAX
    }
}

impl SoundRecord for ArchiveRecord {
    fn is_sound(&self) -> bool {
        self.time <= time::MS_MAX
    }
}
