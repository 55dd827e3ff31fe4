//! The record of a large payload: its bounds.

use lcm_text::{
    base::limits,
    message::large_payload::{File, Mark},
};

use crate::storage::codec::{self, Sound};

impl Sound for File {
    fn is_sound(&self) -> bool {
        let end = u64::from(self.place.start) + u64::from(self.place.length);
        let inside = |mark: &Mark| mark.at <= self.place.length && u64::from(mark.bytes) <= end;
        codec::countable(&[self.seq])
            && self.seq > 0
            && end <= limits::MESSAGE_BYTES_MAX
            // A decoded text is never longer than it is written: half a pair is 3 bytes for 6.
            && self.bytes <= limits::MESSAGE_BYTES_MAX
            && self.lines <= self.bytes
            && self.place.marks.iter().all(inside)
    }
}
