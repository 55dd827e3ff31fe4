//! Explanation of a context as text for people: a table of the items and a bar of the budget.
//!
//! In: the explained items ([`super::explain`]). Out: lines of text, without the messages.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use lcm_text::{base::int, types::api::AssembledItem};

/// Width of the bar between its brackets, in characters.
const BAR_WIDTH: u64 = 64;
/// Headings of the columns.
const HEADING: [&str; COLUMNS] = ["id", "kind", "messages", "tokens", "in", "why"];
/// Number of columns.
const COLUMNS: usize = 6;
/// Indexes of the columns that are aligned to the right.
const NUMERIC_COLUMNS: [usize; 2] = [2, 3];

/// Renders the table of the items and the bar of the budget.
pub(super) fn render_explanation(items: &[AssembledItem], budget: u32) -> String {
    let mut out = render_table(items);
    out.push('\n');
    draw_budget_bar(items, u64::from(budget), &mut out);
    out
}

fn render_table(items: &[AssembledItem]) -> String {
    let mut rows = Vec::from([HEADING.map(String::from)]);
    rows.extend(items.iter().map(format_row));
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| count_characters(cell)).max()
    };
    let widths: Vec<usize> = (0..COLUMNS).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let begin = out.len();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blank = width.saturating_sub(count_characters(cell));
            let before = if NUMERIC_COLUMNS.contains(&column) { blank } else { 0 };
            out.extend(core::iter::repeat_n(' ', before));
            out.push_str(cell);
            out.extend(core::iter::repeat_n(' ', blank - before + 2));
        }
        out.truncate(out.trim_end().len().max(begin));
        out.push('\n');
    }
    out
}

fn format_row(item: &AssembledItem) -> [String; COLUMNS] {
    let span = match (item.seq_first, item.seq_last) {
        (Some(first), Some(last)) if first != last => format!("{first}-{last}"),
        (Some(first), _) => first.to_string(),
        _ => String::new(),
    };
    let included = if item.included { "yes" } else { "no" };
    [
        item.id.clone(),
        item.kind.clone(),
        span,
        int::format_with_thousands(u64::from(item.tokens)),
        included.into(),
        item.why.clone(),
    ]
}

fn count_characters(text: &str) -> usize {
    text.chars().count()
}

/// Draws the budget as a bar of [`BAR_WIDTH`] characters, then the meaning of its letters. A letter
/// marks tokens that an included item takes, `.` marks free tokens. A context over its budget fills
/// the bar.
fn draw_budget_bar(items: &[AssembledItem], budget: u64, out: &mut String) {
    let (mut tokens, mut drawn) = (0, 0);
    out.push('[');
    for item in items.iter().filter(|item| item.included) {
        tokens += u64::from(item.tokens);
        let end = (tokens * BAR_WIDTH / budget.max(1)).min(BAR_WIDTH);
        out.extend((drawn..end).map(|_| item_letter(item)));
        drawn = end;
    }
    out.extend((drawn..BAR_WIDTH).map(|_| '.'));
    out.push_str(&format!("]  of {} tokens\n", int::format_with_thousands(budget)));
    out.push_str(
        "S system, C condensed, L leaf, F brief, m messages, t fresh tail, + not stored\n",
    );
}

/// Returns the letter of an item in the bar.
fn item_letter(item: &AssembledItem) -> char {
    match item.kind.as_str() {
        "system" => 'S',
        "condensed" => 'C',
        "leaf" => 'L',
        "focus" => 'F',
        "live" => '+',
        _ if item.why.starts_with("fresh-tail") => 't',
        _ => 'm',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: &str, why: &str, tokens: u32, seqs: Option<(u64, u64)>) -> AssembledItem {
        AssembledItem {
            id: "id".into(),
            kind: kind.into(),
            included: why != "over-budget",
            why: why.into(),
            tokens,
            seq_first: seqs.map(|(first, _)| first),
            seq_last: seqs.map(|(_, last)| last),
        }
    }

    #[test]
    fn items_fill_the_table_and_the_bar() {
        let items = [
            item("condensed", "oldest", 500, Some((1, 90))),
            item("leaf", "over-budget", 12_345, Some((91, 99))),
            item("message", "fill: merged 1", 250, Some((100, 100))),
            item("message", "fresh-tail", 125, Some((101, 109))),
            item("live", "live", 125, None),
        ];
        let expected = "\
id  kind       messages  tokens  in   why
id  condensed      1-90     500  yes  oldest
id  leaf          91-99  12,345  no   over-budget
id  message         100     250  yes  fill: merged 1
id  message     101-109     125  yes  fresh-tail
id  live                    125  yes  live

[CCCCCCCCCCCCCCCCmmmmmmmmtttt++++................................]  of 2,000 tokens
S system, C condensed, L leaf, F brief, m messages, t fresh tail, + not stored
";
        assert_eq!(render_explanation(&items, 2_000), expected);
        // A context over the budget, and a budget of 0.
        let full = render_explanation(&items, 700);
        assert!(full.contains(&format!("[{}m", "C".repeat(45))) && full.contains("m]"), "{full}");
        assert!(render_explanation(&items, 0).contains(&format!("[{}]", "C".repeat(64))));
    }
}
