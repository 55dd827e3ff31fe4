//! A payload that was detected in a message and has no record yet.
//!
//! The detection makes a [`FoundPayload`]; the placeholder and the record are built from it.

use alloc::string::String;

use crate::message::large_payload::payload_record::PayloadKind;

/// A detected payload.
#[derive(Debug)]
pub(super) struct FoundPayload {
    pub(super) kind: PayloadKind,
    pub(super) name: Option<String>,
    pub(super) mime: Option<String>,
    /// Id of the call whose output is the payload; empty for other payloads and if unknown.
    pub(super) call_id: String,
    /// Byte offsets of the payload in the message: start and end.
    pub(super) content_range: (usize, usize),
    /// Whether the payload is the inside of a JSON string and must be decoded.
    pub(super) is_text: bool,
    /// Byte offsets of the text that the reference replaces: start and end.
    pub(super) replaced_range: (usize, usize),
    pub(super) form: ReferenceForm,
}

/// JSON form of a reference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReferenceForm {
    /// Escaped text inside a string, without quotes.
    Inside,
    /// A string with its quotes.
    Text,
    /// An object whose only member `output` is the reference as a string.
    Object,
}
