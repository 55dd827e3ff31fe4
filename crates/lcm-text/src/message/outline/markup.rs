//! Writes the outline of XML, HTML and YAML: names of elements or keys.
//!
//! In: text in one of these formats. Out: the root and the names of the elements after it with
//! their counts, or top-level keys with line numbers. Nesting of tags is ignored, because web
//! documents often nest wrongly.

use alloc::vec::Vec;

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::PayloadText,
};

/// Most distinct tags that are counted and shown; all others are counted together.
const TAGS: usize = 30;
/// Most keys shown.
const KEYS: usize = 30;
/// Most quarter tokens of the root and of the title.
const TITLE_MAX: u64 = 120;
/// Most quarter tokens of a list.
const LIST_MAX: u64 = 760;
/// Most lines that are examined to recognise YAML.
const LINES_MAX: usize = 20;
/// Most bytes of a key or tag name.
const KEY_BYTES_MAX: usize = 100;

/// Returns whether a text starts like XML or HTML.
pub(super) fn is_markup(text: &str) -> bool {
    let closes = |tag: &str| text.contains("</") && text.contains('>') && !tag.is_empty();
    text.starts_with("<?xml") || text.starts_with("<!") || {
        text.strip_prefix('<').is_some_and(|rest| closes(tag_name(rest)))
    }
}

/// Returns whether one of the first four tags of a document is `html`.
pub(super) fn is_html(text: &str) -> bool {
    text.split('<').skip(1).take(4).any(|piece| {
        let start = piece.trim_start_matches("!DOCTYPE ").trim_start_matches("!doctype ");
        tag_name(start).eq_ignore_ascii_case("html")
    })
}

/// Returns the tag name at the beginning of the text after `<`; empty if the text begins no opening
/// tag, or the name is longer than [`KEY_BYTES_MAX`].
fn tag_name(piece: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '<');
    let name = piece.split(ends).next().unwrap_or_default();
    let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if named && name.len() <= KEY_BYTES_MAX { name } else { "" }
}

/// Writes the outline of XML or HTML.
pub(super) fn outline_tags(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let text = payload.head;
    let (mut root, mut title) = ("", "");
    let mut tags: Vec<(&str, u64)> = Vec::new();
    let mut others = 0;
    let mut comment = false;
    for piece in text.split('<').skip(1) {
        let inside = comment || piece.starts_with("!--");
        comment = inside && !piece.contains("-->");
        let name = tag_name(piece);
        if inside || name.is_empty() {
            continue;
        }
        if root.is_empty() {
            root = name;
            continue;
        }
        if title.is_empty() && name.eq_ignore_ascii_case("title") {
            title = piece.split_once('>').map_or("", |(_, title)| title);
        }
        if let Some(tag) = tags.iter_mut().find(|tag| tag.0 == name) {
            tag.1 += 1;
        } else if tags.len() < TAGS {
            tags.push((name, 1));
        } else {
            others += 1;
        }
    }
    writer.push_title(payload, if is_html(text) { "HTML" } else { "XML" });
    writer.push_quote("\nRoot: ", root, TITLE_MAX);
    writer.push_quote("\nTitle: ", title, TITLE_MAX);
    let mut list = OutlineList::new(TAGS);
    for (name, count) in tags {
        list.push(None, name, Some(count));
    }
    writer.push_list("tag", &list, ", ", LIST_MAX);
    if others > 0 {
        writer.push_text(", and others ");
        writer.push_count(others, "time");
    }
}

/// Returns the key of a YAML line without indentation; `None`: any other line, or a key of more
/// than [`KEY_BYTES_MAX`] bytes.
fn yaml_key(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t', '#', '-', '{', '[', '<', '%', '@', '`']) {
        return None;
    }
    let (key, rest) = line.split_once(':')?;
    let bare = key.trim_matches(['"', '\'']);
    let spaced = rest.is_empty() || rest.starts_with([' ', '\r', '\t']);
    let plain = !bare.is_empty() && bare.len() <= KEY_BYTES_MAX;
    (spaced && plain).then_some(bare)
}

/// Returns whether the first lines of a text look like YAML. They have only keys, lists, comments
/// and indented lines: at least two keys, or `---` at the start and one key.
pub(super) fn is_yaml(text: &str) -> bool {
    let starts = text.starts_with("---");
    let mut keys = 0;
    for line in text.lines().take(LINES_MAX) {
        let name = yaml_key(line).filter(|name| !name.contains(' '));
        keys += usize::from(name.is_some());
        let other = line.is_empty() || line.starts_with([' ', '#']) || line.starts_with("---");
        if name.is_none() && !other && !line.starts_with("- ") {
            return false;
        }
    }
    keys > 1 || (starts && keys > 0)
}

/// Writes the outline of YAML.
pub(super) fn outline_yaml(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let (mut documents, mut items, mut content) = (0_u64, 0, false);
    let mut keys = OutlineList::new(KEYS);
    for (at, line) in (1..).zip(payload.head.lines()) {
        if line.starts_with("---") {
            documents += u64::from(content);
            content = false;
        } else if !line.trim().is_empty() && !line.starts_with(['#', '%']) {
            content = true;
        }
        items += u64::from(line.starts_with("- ") || line == "-");
        if let Some(name) = yaml_key(line) {
            keys.push(Some(at), name, None);
        }
    }
    writer.push_title(payload, "YAML");
    writer.push_text("\n");
    writer.push_count(documents + u64::from(content), "document");
    if items > 0 {
        writer.push_text(", ");
        writer.push_count(items, "top-level list item");
    }
    writer.push_list("top-level key", &keys, ", ", LIST_MAX);
    if keys.total == 0 {
        writer.push_quote("\nOpening: ", payload.head, LIST_MAX / 2);
    }
}
