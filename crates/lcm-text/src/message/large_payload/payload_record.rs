//! The stored record of a payload: what the payload is and where it is in its message.
//!
//! [`super::reference`] makes the record; `lcm-core` stores the record and reads ranges of the
//! payload.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::message::large_payload::measure::SeekPoint;

/// Kind of a payload.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum PayloadKind {
    /// A `<file>` block in a text, or the text of a part that is a file.
    File,
    /// Output of a tool.
    ToolOutput,
    /// Any other text.
    RawPayload,
}

impl PayloadKind {
    /// Returns the kind as JSON writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::ToolOutput => "tool-output",
            Self::RawPayload => "raw-payload",
        }
    }
}

/// Position of a payload in the raw text of its message.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PayloadLocation {
    /// Byte offset of the payload.
    pub start: u32,
    /// Length in bytes, as written in the message.
    pub length: u32,
    /// Whether the payload is the inside of a JSON string and must be decoded; otherwise the
    /// payload is a JSON value as written.
    pub is_text: bool,
    /// Points at which decoding can start, in order, so that a reader of a range skips most of what
    /// precedes the range.
    pub seek_points: Vec<SeekPoint>,
}

/// The stored record of a payload.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PayloadRecord {
    /// Seq of the newest message that has the payload.
    pub seq: u64,
    /// [`DERIVATION_VERSION`](crate::base::derivation_version::DERIVATION_VERSION) of the record.
    pub rules: u32,
    /// Kind of the payload.
    pub kind: PayloadKind,
    /// Name of the file or tool; `None`: the message gives no name.
    pub name: Option<String>,
    /// Media type: declared by the message, or else detected.
    pub mime: String,
    /// Bytes of the decoded text.
    pub bytes: u64,
    /// Lines of the decoded text.
    pub lines: u64,
    /// Outline of the payload, at most 240 tokens.
    pub exploration: String,
    /// Position of the payload in its message.
    pub place: PayloadLocation,
}

impl PayloadRecord {
    /// Returns an upper bound of the bytes of the encoded record.
    pub fn bytes_max(&self) -> usize {
        let name = self.name.as_ref().map_or(0, String::len);
        128 + name + self.mime.len() + self.exploration.len() + 15 * self.place.seek_points.len()
    }
}
