//! Large payloads: texts that are too large for a context, and the references that replace them.
//!
//! In: a message whose token cost reaches a threshold. Out: a *placeholder*, which is the same
//! message with a reference in place of each payload, and one record per payload. The raw text is
//! stored unchanged; a payload is a span of the raw text and never a copy. A placeholder is a
//! message of the same dialect, so assembly and summaries need no rules for payloads. `lcm-core`
//! reads ranges of payloads; [`crate::message::outline`] makes outlines.

mod detect;
mod file_block;
mod found_payload;
mod measure;
mod payload_id;
mod payload_record;
mod placeholder;
mod reference;

pub use self::{
    measure::{SeekPoint, walk},
    payload_id::{IDS_MAX, find_ids, format_name, parse_name},
    payload_record::{PayloadKind, PayloadLocation, PayloadRecord},
    placeholder::{NewPlaceholder, build_placeholder},
};

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests;
