//! Finds `<file name="..." mime="...">...</file>` blocks, in which hosts paste files into texts.
//!
//! In: the inside of a JSON string with its escapes, because decoding megabytes to find a few tags
//! would cost too much. Out: byte offsets into this input, and decoded attributes. Case is ignored
//! in tags and attribute names. A block ends with the first closing tag.

use alloc::string::String;

use crate::base::json::{self, StringPiece};

/// Most characters of a tag; a longer tag is ignored.
const TAG_CHARACTERS_MAX: usize = 4_096;

/// One file block.
#[derive(Debug)]
pub(super) struct FileBlock {
    /// Byte offsets of the block with its tags: start and end.
    pub(super) whole_range: (usize, usize),
    /// Byte offsets of the content between the tags: start and end.
    pub(super) content_range: (usize, usize),
    pub(super) name: Option<String>,
    pub(super) mime: Option<String>,
}

/// Returns the first complete block at or after an offset; `None`: no such block follows.
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

/// Decodes the character at an offset; returns the character and the offset of the next character.
/// `None`: the offset is at the end of the text.
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

/// Finds a tag at or after an offset; returns the offsets of its start and of the text after it.
/// `None`: no tag follows.
fn find_tag(written: &str, mut at: usize, tag: &str) -> Option<(usize, usize)> {
    loop {
        // Some JSON writers escape `<`, so a tag can begin with an escape.
        at += written.get(at..)?.find(['<', '\\'])?;
        let start = at;
        let mut end = start;
        let matches = tag.chars().all(|expected| {
            let Some((c, behind)) = decode_character(written, end) else { return false };
            end = behind;
            c.eq_ignore_ascii_case(&expected)
        });
        if matches {
            return Some((start, end));
        }
        at = decode_character(written, start)?.1;
    }
}

/// Returns the decoded attributes of a tag and the offset after the tag; `None`: the tag name is
/// longer than `file`, or the tag has no end within [`TAG_CHARACTERS_MAX`] characters.
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

/// Returns the value of an attribute, which is written in single quotes, in double quotes, or
/// without quotes; `None`: absent or empty.
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
