//! Damages texts at random: cut, doubled, spliced, huge or deep texts, with characters and escapes
//! that parsers often read wrongly.

use crate::simulation::random::Random;

/// Pieces that are inserted at random places.
const PIECES: [&str; 26] = [
    "\"",
    "\\",
    "\\u0000",
    "\\ud83d",
    "\\ude00",
    "\\u",
    "\0",
    "\u{feff}",
    "\u{1f600}",
    "\u{4f60}\u{597d}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1e999",
    "184467440737095516160",
    "0.1",
    "true",
    "<file name=\"a.csv\">",
    "</file>",
    "\\u003cfile\\u003e",
    "[REDACTED]",
    "data:image/png;base64,iVBORw0KGgo",
];

/// Most bytes of a damaged text.
const BYTES_MAX: usize = 60_000;

/// Damages a text in one to four places. A piece of `other` may be spliced into the text.
pub fn mutate(random: &mut Random, text: &str, other: &str) -> String {
    let mut out = text.to_owned();
    for _ in 0..random.between(1, 4) {
        let (from, to) = range(random, &out);
        match random.between(0, 8) {
            0 => out.truncate(from),
            1 => out.replace_range(from..to, ""),
            2 => {
                let again = out[from..to].to_owned();
                out.insert_str(to, &again);
            }
            3 => out.insert_str(from, piece(random)),
            4 => out.replace_range(from..to, piece(random)),
            5 => {
                let (start, end) = range(random, other);
                out.replace_range(from..to, &other[start..end]);
            }
            6 => {
                let count = random.between(1, 700);
                let pieces = ["[", "{\"a\":", "]", "}", "\\\\", "\\n", "x", "\u{e9}"];
                let piece = *random.pick(pieces.as_slice());
                out.insert_str(from, &piece.repeat(usize::try_from(count).unwrap()));
            }
            7 => {
                // Inserts a member with the same key before the next member that has one of these
                // keys, if there is such a member.
                let word = random.pick(&[
                    "\"id\":",
                    "\"role\":",
                    "\"type\":",
                    "\"text\":",
                    "\"content\":",
                ]);
                if let Some(at) = out[from..].find(*word) {
                    out.insert_str(from + at, &format!("{word}{},", piece(random)));
                }
            }
            _ => {
                let piece = out[from..to].to_owned();
                let count = BYTES_MAX.saturating_sub(out.len()) / piece.len().max(1);
                out.insert_str(to, &piece.repeat(count.min(300)));
            }
        }
        out.truncate(out.floor_char_boundary(BYTES_MAX));
    }
    out
}

fn piece(random: &mut Random) -> &'static str {
    let pieces: &[&'static str] = &PIECES;
    random.pick::<&'static str>(pieces)
}

/// Returns two byte offsets in a text on character boundaries, the smaller first.
fn range(random: &mut Random, text: &str) -> (usize, usize) {
    let length = u64::try_from(text.len()).unwrap();
    let mut at = || text.floor_char_boundary(usize::try_from(random.between(0, length)).unwrap());
    let (a, b) = (at(), at());
    // The range is mostly at most 24 bytes long, and sometimes a large part of the text.
    let (from, to) = (a.min(b), a.max(b));
    if random.chance(700) {
        (from, text.floor_char_boundary(to.min(from + 24)))
    } else {
        (from, to)
    }
}
