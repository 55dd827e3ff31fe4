//! Splits Rust text: code without comments and literals, and the lines that are only tests.
//!
//! In: the text of a file. Out: text of the same lines and columns in which comments and literals,
//! or everything but comments, are spaces. The scanner knows comments, strings, raw strings and
//! characters, and nothing else of the grammar.

/// A Rust file, ready to be searched.
pub(crate) struct Code {
    /// Lines of code; comments and the insides of literals are spaces.
    pub(crate) lines: Vec<String>,
    /// Lines of comments; everything else is spaces.
    pub(crate) comments: Vec<String>,
    /// For each line whether it belongs to an item under `#[cfg(test)]`.
    pub(crate) test: Vec<bool>,
}

/// The element in which the scanner is.
enum State {
    Code,
    LineComment,
    /// A block comment, with the number of open block comments.
    BlockComment(u32),
    Text,
    /// A raw string, with its number of `#`.
    RawText(usize),
}

impl Code {
    /// Splits the text of a file.
    pub(crate) fn of(text: &str) -> Self {
        let (code, comments) = split(text);
        let lines: Vec<String> = code.lines().map(str::to_owned).collect();
        let test = test_lines(&lines);
        Self { lines, comments: comments.lines().map(str::to_owned).collect(), test }
    }

    /// Returns the lines of code outside tests, with their numbers from 1.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.lines.iter().zip(&self.test).enumerate();
        numbered
            .filter(|(_, (_, test))| !**test)
            .map(|(index, (line, _))| (index + 1, line.as_str()))
    }
}

fn split(text: &str) -> (String, String) {
    let all: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut state = State::Code;
    let mut at = 0;
    while let Some(&character) = all.get(at) {
        let next = all.get(at + 1).copied().unwrap_or('\n');
        // Number of characters to take, and whether they appear as code or as comment.
        let (mut taken, mut shown_as) = (1, Shown::Nowhere);
        match state {
            State::Code => match (character, next) {
                ('/', '/') => (state, shown_as) = (State::LineComment, Shown::Comment),
                ('/', '*') => (state, taken) = (State::BlockComment(1), 2),
                ('"', _) => (state, shown_as) = (State::Text, Shown::Code),
                ('r' | 'b' | 'c', _) if raw_start(&all, at).is_some() => {
                    let hashes = raw_start(&all, at).unwrap();
                    (state, taken) = (State::RawText(hashes.0), hashes.1);
                }
                ('\'', _) => taken = character_literal(&all, at),
                _ => shown_as = Shown::Code,
            },
            State::LineComment => {
                shown_as = Shown::Comment;
                if character == '\n' {
                    state = State::Code;
                }
            }
            State::BlockComment(open) => {
                shown_as = Shown::Comment;
                match (character, next) {
                    ('*', '/') if open == 1 => (state, taken) = (State::Code, 2),
                    ('*', '/') => (state, taken) = (State::BlockComment(open - 1), 2),
                    ('/', '*') => (state, taken) = (State::BlockComment(open + 1), 2),
                    _ => {}
                }
            }
            State::Text => match character {
                '\\' => taken = 2,
                '"' => (state, shown_as) = (State::Code, Shown::Code),
                _ => {}
            },
            State::RawText(hashes) => {
                let end = (1..=hashes).all(|step| all.get(at + step) == Some(&'#'));
                if character == '"' && end {
                    (state, taken) = (State::Code, 1 + hashes);
                }
            }
        }
        for &part in all.iter().skip(at).take(taken) {
            let line_end = part == '\n';
            code.push(if line_end || shown_as == Shown::Code { part } else { ' ' });
            comments.push(if line_end || shown_as == Shown::Comment { part } else { ' ' });
        }
        at += taken;
    }
    (code, comments)
}

#[derive(PartialEq)]
enum Shown {
    Code,
    Comment,
    Nowhere,
}

/// Returns the number of `#` and the length of the opening of a raw string at `at`; `None`: no raw
/// string starts there.
fn raw_start(all: &[char], at: usize) -> Option<(usize, usize)> {
    let before = at.checked_sub(1).and_then(|before| all.get(before));
    if before.is_some_and(|before| before.is_alphanumeric() || *before == '_') {
        return None;
    }
    let mut length = 0;
    if matches!(all.get(at), Some('b' | 'c')) {
        length += 1;
    }
    if all.get(at + length) != Some(&'r') {
        return None;
    }
    length += 1;
    let hashes = all.iter().skip(at + length).take_while(|part| **part == '#').count();
    length += hashes;
    (all.get(at + length) == Some(&'"')).then_some((hashes, length + 1))
}

/// Returns the length of the character literal at `at`; 1 for a lifetime.
fn character_literal(all: &[char], at: usize) -> usize {
    match (all.get(at + 1), all.get(at + 2)) {
        (Some('\\'), _) => {
            // The escaped character itself may be a quote.
            let rest = all.iter().skip(at + 3).take_while(|part| **part != '\'').count();
            rest + 4
        }
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

/// Returns for each line whether it belongs to an item under `#[cfg(test)]`.
fn test_lines(lines: &[String]) -> Vec<bool> {
    let mut test = Vec::with_capacity(lines.len());
    // Number of open braces inside the item; inner `None`: before its first brace.
    let mut inside: Option<Option<u32>> = None;
    for line in lines {
        if inside.is_none() && line.trim_start().starts_with("#[cfg(test)]") {
            inside = Some(None);
        }
        test.push(inside.is_some());
        let Some(mut open) = inside else { continue };
        for character in line.chars() {
            match (character, open) {
                ('{', depth) => open = Some(depth.unwrap_or(0) + 1),
                ('}', Some(depth)) => open = Some(depth.saturating_sub(1)),
                (';', None) => open = Some(0),
                _ => {}
            }
        }
        inside = (open != Some(0)).then_some(open);
    }
    test
}

/// Returns whether `word` is in `line` as a whole identifier.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Returns the identifiers of a line.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| !word.is_empty())
}

#[test]
fn comments_and_literals_are_not_code() {
    let text = "let a = \"x // {\"; // { b\nlet c = '{'; /* { /* d */ { */ let e: &'static str;\n\
                let f = r#\"\" { \"#; let g = '\\''; let h = b\"{\\\"\";\n";
    let code = Code::of(text);
    let all = code.lines.join("\n");
    assert!(!all.contains('{'), "{all}");
    for word in ["a", "c", "e", "static", "f", "g", "h"] {
        assert!(has_word(&all, word), "{word} is gone from {all}");
    }
    assert!(code.comments.join("\n").contains("{ b"), "{:?}", code.comments);
    assert!(code.comments.join("\n").contains('d'), "{:?}", code.comments);
}

#[test]
fn lines_under_cfg_test_are_known() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n\
                #[cfg(test)]\nmod more;\nfn d() {}\n";
    let shipped: Vec<usize> = Code::of(text).shipped().map(|(number, _)| number).collect();
    assert_eq!(shipped, [1, 6, 9]);
}

#[test]
fn a_word_is_found_only_whole() {
    assert!(has_word("use std::fmt;", "std"));
    assert!(!has_word("use no_std;", "std"));
    assert!(!has_word("stdin", "std"));
}
