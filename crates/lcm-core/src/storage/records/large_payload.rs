//! The key and the bounds of the record of a large payload, for all reads and writes of payloads.

use lcm_text::{
    base::limits,
    message::large_payload::{PayloadRecord, SeekPoint},
};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};

/// Returns the key of the record of a payload.
pub(crate) fn payload_record_key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<PayloadRecord> {
    RecordKey::new(keys.payload_key(id))
}

impl SoundRecord for PayloadRecord {
    fn is_sound(&self) -> bool {
        let end = u64::from(self.place.start) + u64::from(self.place.length);
        let is_inside =
            |point: &SeekPoint| point.at <= self.place.length && u64::from(point.bytes) <= end;
        codec::are_countable(&[self.seq])
            && self.seq > 0
            && end <= limits::MESSAGE_BYTES_MAX
            // A decoded text is never longer than its JSON: even half a surrogate pair, written in
            // 6 bytes, becomes 3 bytes.
            && self.bytes <= limits::MESSAGE_BYTES_MAX
            && self.lines <= self.bytes
            && self.place.seek_points.iter().all(is_inside)
    }
}
