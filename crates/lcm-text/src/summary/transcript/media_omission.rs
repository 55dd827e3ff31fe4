//! Replaces media in a text by a short note: data URLs, base64 and `MEDIA:/` lines.
//!
//! Input and output: text of a message for a summariser.

use alloc::{borrow::Cow, string::String, vec::Vec};

/// The note that replaces a piece of media.
pub(crate) const MEDIA_NOTE: &str = "[media omitted]";

/// Fewest bytes of base64 that count as media, on one line or on consecutive lines.
const RUN_MIN: usize = 256;
/// Fewest bytes of a line that can begin or continue base64 on several lines; the last line may be
/// shorter.
const LINE_MIN: usize = 60;

/// Replaces every piece of media in a text by [`MEDIA_NOTE`].
pub(super) fn omit_media(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.split('\n').all(is_free_of_media) {
        text
    } else {
        Cow::Owned(omit_media_by_line(&text))
    }
}

/// Returns whether a line certainly is no media and has no media. A fast check, because nearly all
/// lines have no media.
fn is_free_of_media(line: &str) -> bool {
    let trimmed = line.trim();
    !(trimmed.starts_with("MEDIA:/")
        || (trimmed.len() >= LINE_MIN && looks_like_base64(trimmed))
        || may_hold_media(line))
}

fn omit_media_by_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut wrapped: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        // The last line of a base64 block is shorter than the others.
        let continues = !wrapped.is_empty() && is_base64(line.trim());
        if continues || (line.trim().len() >= LINE_MIN && looks_like_base64(line.trim())) {
            wrapped.push(line);
            continue;
        }
        flush_wrapped_lines(&mut out, &mut wrapped);
        push_line(&mut out, line);
    }
    flush_wrapped_lines(&mut out, &mut wrapped);
    out.pop();
    out
}

/// Writes the note if the collected lines together have at least [`RUN_MIN`] bytes, else the lines.
fn flush_wrapped_lines(out: &mut String, wrapped: &mut Vec<&str>) {
    if wrapped.iter().map(|line| line.len()).sum::<usize>() >= RUN_MIN {
        out.push_str(MEDIA_NOTE);
        out.push('\n');
    } else {
        for line in wrapped.iter() {
            push_line(out, line);
        }
    }
    wrapped.clear();
}

fn push_line(out: &mut String, line: &str) {
    if line.trim_start().starts_with("MEDIA:/") {
        out.push_str(MEDIA_NOTE);
    } else if may_hold_media(line) {
        push_inline(out, line);
    } else {
        out.push_str(line);
    }
    out.push('\n');
}

/// Returns whether [`find_media`] may find media in a line; `false` only if it would find none. The
/// check is much faster than the search.
fn may_hold_media(line: &str) -> bool {
    let bytes = line.as_bytes();
    // A run of `RUN_MIN` bytes covers at least one of the sampled bytes.
    let in_run = |byte: &&u8| is_base64_byte(**byte);
    let is_long = |at: usize| {
        let (before, after) = bytes.split_at_checked(at).unwrap_or_default();
        let ahead = after.iter().take(RUN_MIN).take_while(in_run).count();
        let behind = || before.iter().rev().take(RUN_MIN).take_while(in_run).count();
        ahead > 0 && ahead + behind() >= RUN_MIN
    };
    if (RUN_MIN - 1..bytes.len()).step_by(RUN_MIN).any(is_long) {
        return true;
    }
    line.match_indices(':').any(|(at, _)| {
        let scheme = at.checked_sub(4).and_then(|from| bytes.get(from..at));
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data"))
    })
}

/// Appends a line with data URLs and long runs of base64 replaced.
fn push_inline(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some((before, length)) = find_media(rest) {
        let (kept, media) = rest.split_at_checked(before).unwrap_or((rest, ""));
        out.push_str(kept);
        out.push_str(MEDIA_NOTE);
        rest = media.get(length..).unwrap_or("");
    }
    out.push_str(rest);
}

/// Returns offset and length in bytes of the first piece of media in `line`; `None`: no media.
fn find_media(line: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = data_url_length(rest) {
            return Some((at, length));
        }
        let run = rest.bytes().take_while(|byte| is_base64_byte(*byte)).count();
        if run >= RUN_MIN && rest.get(..run).is_some_and(looks_like_base64) {
            return Some((at, run));
        }
        // The search continues at the next base64 byte after the run.
        let skipped = rest.bytes().skip(run).take_while(|byte| !is_base64_byte(*byte)).count();
        at += (run + skipped).max(1);
    }
    None
}

/// Returns the length in bytes of the data URL that `text` starts with; `None`: no data URL.
fn data_url_length(text: &str) -> Option<usize> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
    let rest = text.get(scheme.len()..)?;
    let comma = rest.bytes().take(128).position(|byte| byte == b',')?;
    let kind = rest.get(..comma)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/;=-+._".contains(&byte);
    if !kind.contains('/') || !kind.bytes().all(plain) {
        return None;
    }
    let payload = rest.bytes().skip(comma + 1);
    let length =
        payload.take_while(|byte| is_base64_byte(*byte) || b"%-_.~!*".contains(byte)).count();
    (length > 0).then_some(scheme.len() + comma + 1 + length)
}

fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_base64_byte)
}

/// Returns whether a text is only base64 characters and mixes both cases and digits, as encoded
/// bytes do. The mix is searched in the first 512 bytes.
fn looks_like_base64(text: &str) -> bool {
    let head = || text.bytes().take(512);
    is_base64(text)
        && head().any(|byte| byte.is_ascii_digit())
        && head().any(|byte| byte.is_ascii_uppercase())
        && head().any(|byte| byte.is_ascii_lowercase())
}
