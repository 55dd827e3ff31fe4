//! Reads and writes JSON without building a tree.
//!
//! `reader` takes JSON text and returns offsets into the text. `fields` takes an object that is an
//! argument and returns typed values. `write` takes keys and values and returns JSON text. Callers
//! decide what a member means.

mod fields;
mod reader;
mod write;

pub use lcm_loops::{
    json_scanner::{DEPTH_MAX, JsonFault, JsonScanner, JsonTokenKind},
    json_string::{
        StringPiece, each_compact_piece, each_piece, each_text, first_piece, string_body,
        write_string,
    },
};

pub use self::{
    fields::JsonFields,
    reader::{
        ByteSpan, JsonKind, JsonMember, JsonValue, compact_value, find_member, is_equal_text, kind,
        list_elements, list_members, parse_object, slice_span, text,
    },
    write::JsonWriter,
};
pub(crate) use self::{
    fields::describe_scalar,
    reader::{each_element, each_member, first_element, has_more_tokens},
};

#[cfg(test)]
#[expect(clippy::as_conversions, clippy::string_slice, reason = "a failing test may panic")]
mod tests;
