//! Parses the bracketed headers of rendered blocks, for the offline summariser and the verifier.
//!
//! Input: a line. Output: the date, time and role of a header. Blocks are rendered by
//! [`super::render_message`] and [`super::render_summary`].

/// The fields of a header. An absent field is empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BlockHeader<'a> {
    /// `2026-01-02`; empty for an undated message.
    pub date: &'a str,
    /// `03:04`; empty for an undated message.
    pub time: &'a str,
    /// A role, or `data`; empty for a summary.
    pub role: &'a str,
}

/// Parses a whole line as the header of a block; `None`: any other line.
pub fn parse_block_header(line: &str) -> Option<BlockHeader<'_>> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    if is_role(inside) {
        return Some(BlockHeader { role: inside, ..BlockHeader::default() });
    }
    if inside.starts_with("summary ") {
        return Some(BlockHeader::default());
    }
    let (date, rest) = inside.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    if !is_date(date) || !is_time(time) {
        return None;
    }
    if is_role(rest) {
        return Some(BlockHeader { date, time, role: rest });
    }
    let mut words = rest.split(' ');
    let shape = [words.next()?, words.next()?, words.next()?, words.next()?];
    match shape {
        ["to", to_date, to_time, "summary"] if is_date(to_date) && is_time(to_time) => {
            Some(BlockHeader { date, time, role: "" })
        }
        _ => None,
    }
}

/// Parses the header before the first line of an extracted message, such as `[03:04 user] text`,
/// and returns the header and the text, which may be empty; `None`: any other line. Date and role
/// may be absent, and the time before a role.
pub fn parse_inline_header(line: &str) -> Option<(BlockHeader<'_>, &str)> {
    let line = line.strip_prefix('[')?;
    let whole = || line.strip_suffix(']').map(|inside| (inside, ""));
    let (inside, text) = line.split_once("] ").or_else(whole)?;
    let mut header = BlockHeader::default();
    if is_role(inside) {
        header.role = inside;
        return Some((header, text));
    }
    let mut rest = inside;
    if let Some((date, after)) = inside.split_once(' ').filter(|(date, _)| is_date(date)) {
        header.date = date;
        rest = after;
    }
    let (time, role) = rest.split_once(' ').unwrap_or((rest, ""));
    header.time = time;
    header.role = role;
    (is_time(time) && (role.is_empty() || is_role(role))).then_some((header, text))
}

fn is_role(text: &str) -> bool {
    matches!(text, "system" | "user" | "assistant" | "tool" | "data")
}

fn is_date(text: &str) -> bool {
    matches_digit_pattern(text, "0000-00-00")
}

fn is_time(text: &str) -> bool {
    matches_digit_pattern(text, "00:00")
}

/// Returns whether `text` equals `shape`, with any digit for each zero.
fn matches_digit_pattern(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, expected)| {
            if expected == b'0' { byte.is_ascii_digit() } else { byte == expected }
        })
}
