//! A finding: the kind of a fault in an answer, and a quote.
//!
//! The checks of this folder make findings. Callers of [`super::verify`] show them to the model.

use alloc::{format, string::String};

/// Most bytes of a finding's quote.
const QUOTE_BYTES_MAX: usize = 80;
/// The kind of a finding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FindingKind {
    /// An exit code that the source does not report.
    ExitCode,
    /// A failure of the source that the answer does not mention; the quote is from the source.
    FailureDropped,
    /// A failure of the source that the answer calls a success; the quote is from the answer.
    FailureInverted,
    /// An identifier that does not occur in the source.
    Identifier,
    /// A number that does not occur in the source.
    Number,
    /// A path that does not occur in the source.
    Path,
    /// A URL that does not occur in the source.
    Url,
    /// A version that does not occur in the source.
    Version,
}

impl FindingKind {
    /// Returns the description of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExitCode => "exit code not in the material",
            Self::FailureDropped => "failure left out",
            Self::FailureInverted => "failure told as a success",
            Self::Identifier => "identifier not in the material",
            Self::Number => "number not in the material",
            Self::Path => "path not in the material",
            Self::Url => "URL not in the material",
            Self::Version => "version not in the material",
        }
    }

    pub(super) const fn as_u8(self) -> u8 {
        match self {
            Self::ExitCode => 0,
            Self::FailureDropped => 1,
            Self::FailureInverted => 2,
            Self::Identifier => 3,
            Self::Number => 4,
            Self::Path => 5,
            Self::Url => 6,
            Self::Version => 7,
        }
    }
}

/// A claim of an answer that its source does not support, or a failure that the answer drops.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The faulty piece of the answer, or the failure in the source; one line, at most 80 bytes.
    pub quote: String,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, text: &str) -> Self {
        Self { kind, quote: quote_one_line(text, QUOTE_BYTES_MAX) }
    }

    /// Formats the finding as one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{}: {}", self.kind.as_str(), self.quote)
    }
}

/// Formats a text as a quote: its first whole words on one line, at most `bytes_max` bytes. A
/// longer first word is cut.
fn quote_one_line(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        let space = usize::from(!out.is_empty());
        if out.len() + space + word.len() > bytes_max {
            if out.is_empty() {
                let mut end = bytes_max;
                while !word.is_char_boundary(end) {
                    end -= 1;
                }
                out.push_str(word.get(..end).unwrap_or(""));
            }
            break;
        }
        if space > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
