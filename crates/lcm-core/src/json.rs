//! A lenient scanner for JSON text: offsets into the original, never a rewritten copy.

use serde::{Deserialize, Serialize};

/// A range of bytes of a raw message, on character boundaries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub length: u32,
}
