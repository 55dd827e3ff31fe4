//! The record of a large payload: its key and its bounds.

use lcm_text::{
    base::limits,
    message::large_payload::{PayloadRecord, SeekPoint},
};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};

/// Returns the key of the payload with this id.
pub(crate) fn payload_key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<PayloadRecord> {
    RecordKey::new(keys.payload_key(id))
}

impl SoundRecord for PayloadRecord {
    fn is_sound(&self) -> bool {
        let end = u64::from(self.place.start) + u64::from(self.place.length);
        let inside =
            |mark: &SeekPoint| mark.at <= self.place.length && u64::from(mark.bytes) <= end;
        codec::are_countable(&[self.seq])
            && self.seq > 0
            && end <= limits::MESSAGE_BYTES_MAX
            // A decoded text is never longer than it is written: half a pair is 3 bytes for 6.
            && self.bytes <= limits::MESSAGE_BYTES_MAX
            && self.lines <= self.bytes
            && self.place.seek_points.iter().all(inside)
    }
}
