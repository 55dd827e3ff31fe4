//! Formats and prints results: JSON documents, aligned tables and short texts.
//!
//! In: values of all commands. Out: text for standard output. If the reader of a pipe has closed
//! it, the program ends with success.

use std::io::{ErrorKind, Write as _};

use lcm_host::{Code, Error, Result};
use serde::Serialize;
use serde_json::Value;

/// Prints a text unchanged.
pub(crate) fn text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            Err(Error::new(Code::Internal, format!("cannot write standard output: {error}")))
        }
    }
}

/// Prints one JSON document.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<()> {
    let document = serde_json::to_string(value)
        .map_err(|error| Error::new(Code::Internal, format!("cannot write JSON: {error}")))?;
    text(&(document + "\n"))
}

/// Formats a number with separators: `12,345`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with its noun: `1 message`, `2 messages`.
pub(crate) fn count(value: u64, what: &str) -> String {
    let plural = match (value, what.strip_suffix('y')) {
        (1, _) => what.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{what}s"),
    };
    format!("{} {plural}", number(value))
}

/// Joins the lines of a text, and cuts the result to at most `characters_max` characters.
pub(crate) fn line(text: &str, characters_max: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if joined.chars().count() <= characters_max {
        return joined;
    }
    let cut: String = joined.chars().take(characters_max.saturating_sub(3)).collect();
    cut.trim_end().to_owned() + "..."
}

/// Formats a JSON value for people; null and an empty list become `-`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), self::number),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Object(_) => value.to_string(),
    }
}

/// A table with aligned columns.
pub(crate) struct Table {
    /// Whether each column is aligned to the right.
    right: Vec<bool>,
    /// The heading, then all rows.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with this heading; a name that starts with `>` aligns its column right.
    pub(crate) fn new(heading: &[&str]) -> Self {
        let right = heading.iter().map(|name| name.starts_with('>')).collect();
        let names = heading.iter().map(|name| name.trim_start_matches('>').to_owned()).collect();
        Self { right, rows: vec![names] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Renders the table as lines.
    pub(crate) fn render(&self) -> String {
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width_of).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let padded =
                    if *right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
                line.push_str(&padded);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Formats each warning as a line.
pub(crate) fn warnings(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(1_234_567), "1,234,567");
    }

    #[test]
    fn words_follow_their_number() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(2, "summary"), "2 summaries");
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_spaces() {
        let mut table = Table::new(&["id", ">tokens", "kind"]);
        table.row(vec!["sum_1".into(), "5".into(), "leaf".into()]);
        table.row(vec!["s".into(), "12,345".into(), String::new()]);
        assert_eq!(table.render(), "id     tokens  kind\nsum_1       5  leaf\ns      12,345\n");
    }

    #[test]
    fn a_long_text_is_cut_between_words_of_one_line() {
        assert_eq!(line("a\n b", 10), "a b");
        assert_eq!(line("abcdefghijkl", 8), "abcde...");
    }
}
