//! Records of a session: the member of a family, and the archive.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use lcm_text::{
    base::{limits, time},
    types::api::Timestamp,
};

use crate::storage::{codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey};

/// The cause of an archive. The order of the cases is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum ArchiveCause {
    /// A person started again; the only cause that is a deliberate act.
    ManualReset,
    /// The host deleted the session.
    Deleted,
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
        ("deleted", Self::Deleted),
        ("session-end", Self::SessionEnd),
        ("rollover", Self::Rollover),
        ("cron-rotation", Self::CronRotation),
        ("idle", Self::Idle),
    ];
    /// Names of all causes.
    pub(crate) const NAMES: [&'static str; 6] = {
        let [a, b, c, d, e, f] = Self::ALL;
        [a.0, b.0, c.0, d.0, e.0, f.0]
    };

    /// Returns the cause at this index of the names.
    pub(crate) fn from_index(place: usize) -> Self {
        Self::ALL.get(place).map_or(Self::ManualReset, |(_, cause)| *cause)
    }

    /// Returns the name of the cause.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, cause)| *cause == self).map_or("", |(name, _)| name)
    }
}

/// The archive record. An archived conversation can be read and is never written again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ArchiveRecord {
    pub(crate) cause: ArchiveCause,
    pub(crate) time: Timestamp,
    /// Hash of the conversation that continues the session.
    pub(crate) successor: Option<[u8; 16]>,
}

/// The member record of a conversation in its family.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FamilyMember {
    pub(crate) family: String,
    pub(crate) conversation: String,
    pub(crate) joined_at: Timestamp,
    /// The part before `#` of a numbered id that a reset made; `None`: the id is not numbered.
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
