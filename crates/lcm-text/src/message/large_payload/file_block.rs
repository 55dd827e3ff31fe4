//! `<file name="..." mime="...">...</file>` blocks in a text, as hosts paste files into messages.
//!
//! In: what stands between the quotes of a JSON string, escapes and all, because a text of
//! megabytes is not decoded to find a few tags. Out: offsets into it. Tags and attribute names are
//! of any case; a block ends with the first closing tag.

use alloc::string::String;

use crate::base::json::{self, StringPiece};

/// Characters of a tag that are looked at for its end.
const TAG_CHARACTERS_MAX: usize = 4_096;

/// One block.
#[derive(Debug)]
pub(super) struct FileBlock {
    /// Where the block begins and ends.
    pub(super) whole_range: (usize, usize),
    /// What stands between its tags.
    pub(super) content_range: (usize, usize),
    pub(super) name: Option<String>,
    pub(super) mime: Option<String>,
}

/// The next block from an offset on.
pub(super) fn find_block(written: &str, at: usize) -> Option<FileBlock> {
    let mut from = at;
    loop {
        let (start, behind) = find_tag(written, from, "<file")?;
        from = behind;
        let Some((attributes, content)) = read_attributes(written, behind) else { continue };
        let (end, close) = find_tag(written, content, "</file>")?;
        let [name, mime] = ["name", "mime"].map(|key| find_attribute(&attributes, key));
        return Some(FileBlock {
            whole_range: (start, close),
            content_range: (content, end),
            name,
            mime,
        });
    }
}

/// The character at an offset, decoded, and the offset behind it.
fn decode_character(written: &str, at: usize) -> Option<(char, usize)> {
    let rest = written.get(at..)?;
    if !rest.starts_with('\\') {
        return rest.chars().next().map(|c| (c, at + c.len_utf8()));
    }
    let (piece, used) = json::first_piece(rest)?;
    let c = match piece {
        StringPiece::Char(c) => c,
        StringPiece::LoneSurrogate(_) | StringPiece::Plain(_) => char::REPLACEMENT_CHARACTER,
    };
    Some((c, at + used))
}

/// Where a tag begins and what follows it.
fn find_tag(written: &str, mut at: usize, wanted: &str) -> Option<(usize, usize)> {
    loop {
        // An escape may be a `<`: some writers never write one.
        at += written.get(at..)?.find(['<', '\\'])?;
        let start = at;
        let mut end = start;
        let fits = wanted.chars().all(|wanted| {
            let Some((c, behind)) = decode_character(written, end) else { return false };
            end = behind;
            c.eq_ignore_ascii_case(&wanted)
        });
        if fits {
            return Some((start, end));
        }
        at = decode_character(written, start)?.1;
    }
}

/// The decoded attributes of a tag, and what follows it; `None`: it is another tag, or has no end.
fn read_attributes(written: &str, mut at: usize) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut quote = None;
    for _ in 0..TAG_CHARACTERS_MAX {
        let (c, behind) = decode_character(written, at)?;
        at = behind;
        match c {
            '>' if quote.is_none() => return Some((out, at)),
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ => {}
        }
        if out.is_empty() && !c.is_whitespace() {
            return None;
        }
        out.push(c);
    }
    None
}

/// The value of an attribute, in quotes of either kind or none.
fn find_attribute(attributes: &str, key: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end)?;
        let Some(value) = behind.trim_start().strip_prefix('=') else {
            rest = behind.trim_start();
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => value.get(1..)?.split_once(quote).unwrap_or((value, "")),
            None => value.split_once(char::is_whitespace).unwrap_or((value, "")),
        };
        if name.eq_ignore_ascii_case(key) {
            return (!value.is_empty()).then(|| value.into());
        }
        rest = behind.trim_start();
    }
    None
}
