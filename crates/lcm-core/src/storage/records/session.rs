//! Records of a session: the member of a family, and the archive.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use lcm_text::{
    base::{limits, time},
    types::api::Timestamp,
};

use crate::storage::codec::SoundRecord;

/// Why a conversation was archived. The order of the cases is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum ArchiveCause {
    /// A person began anew: the one cause that is a deliberate act.
    ManualReset,
    /// The session was deleted where it was held.
    Deleted,
    /// The session came to its end.
    SessionEnd,
    /// The host went on in another conversation of the family.
    Rollover,
    /// A recurring job began its next turn.
    CronRotation,
    /// Nothing was said for long.
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
    /// All names.
    pub(crate) const NAMES: [&'static str; 6] = {
        let [a, b, c, d, e, f] = Self::ALL;
        [a.0, b.0, c.0, d.0, e.0, f.0]
    };

    /// The cause at this place among the names.
    pub(crate) fn from_index(place: usize) -> Self {
        Self::ALL.get(place).map_or(Self::ManualReset, |(_, cause)| *cause)
    }

    /// Its name.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, cause)| *cause == self).map_or("", |(name, _)| name)
    }
}

/// That a conversation was archived. It is read as before and never written to again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ArchiveRecord {
    pub(crate) cause: ArchiveCause,
    pub(crate) time: Timestamp,
    /// Hash of the conversation that goes on in its place.
    pub(crate) successor: Option<[u8; 16]>,
}

/// A conversation in the list of its family.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FamilyMember {
    pub(crate) family: String,
    pub(crate) conversation: String,
    pub(crate) joined_at: Timestamp,
    /// Of a conversation whose id a reset made: what stands before `#` and its number.
    pub(crate) numbered_from: Option<String>,
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
