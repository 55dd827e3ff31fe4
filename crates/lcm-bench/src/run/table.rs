//! Output of a run: text for people, JSON for programs, and a verdict.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    Section,
    figures::{ANYWHERE, At, Bound, FIGURES, GROWTHS},
};
use crate::failure::{Result, failure};

/// Whether the first engine kept a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    /// The bound is kept, or there is no bound.
    Kept,
    /// A bound of a ratio is missed, which fails the run.
    Failed,
    /// A bound of an absolute figure is missed.
    Over,
    /// There is a bound, but the first engine has no value.
    Missing,
}

/// One figure, with the values of all engines.
struct Row {
    name: String,
    unit: &'static str,
    bound: Bound,
    values: Vec<Option<f64>>,
    verdict: Verdict,
}

impl Row {
    /// Creates a row. The verdict is about the first value; `ratio`: a missed bound fails the run.
    fn new(
        name: String,
        unit: &'static str,
        bound: Bound,
        ratio: bool,
        values: Vec<Option<f64>>,
    ) -> Self {
        let verdict = match values.first().copied().flatten() {
            _ if bound == Bound::Open => Verdict::Kept,
            None => Verdict::Missing,
            Some(value) if bound.holds(value) => Verdict::Kept,
            Some(_) if ratio => Verdict::Failed,
            Some(_) => Verdict::Over,
        };
        Self { name, unit, bound, values, verdict }
    }

    /// Returns the cells of the row: name, bound, values, verdict.
    fn cells(&self) -> Vec<String> {
        let bound = match self.bound {
            Bound::AtMost(most) => format!("<= {}", shown(most)),
            Bound::AtLeast(least) => format!(">= {}", shown(least)),
            Bound::Open => String::new(),
        };
        let first = self.values.first().copied().flatten();
        let value = |(index, value): (usize, &Option<f64>)| match (value, first) {
            (None, _) => "-".to_owned(),
            (Some(value), Some(first)) if index > 0 && first > 0.0 => {
                format!("{} ({:.2}x)", shown(*value), value / first)
            }
            (Some(value), _) => shown(*value),
        };
        let verdict = match self.verdict {
            Verdict::Kept => "",
            Verdict::Failed => "FAILS",
            Verdict::Over => "over",
            Verdict::Missing => "missing",
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        let mut cells = vec![format!("{}{unit}", self.name), bound];
        cells.extend(self.values.iter().enumerate().map(value));
        cells.push(verdict.to_owned());
        cells
    }
}

/// Rows of one conversation, or of the comparison between two sizes.
struct Block {
    title: String,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// The result of a run.
pub(super) struct Table {
    names: Vec<String>,
    blocks: Vec<Block>,
}

impl Table {
    /// Compares all figures with their bounds. Sections with a size must be in ascending order.
    pub(super) fn new(names: &[&str], sections: &[Section]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let largest = sections.iter().filter_map(|section| section.size).max();
        let mut blocks: Vec<Block> = sections
            .iter()
            .map(|section| Block {
                title: section.title.clone(),
                rows: rows(section, section.size.is_some() && section.size == largest),
                notes: notes(&names, section),
            })
            .collect();
        blocks.extend(growth(sections));
        Self { names, blocks }
    }

    /// Returns the tables as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let mut heads = vec![block.title.clone(), "bound".to_owned()];
            heads.extend(self.names.iter().cloned());
            heads.push(String::new());
            let mut lines = vec![heads];
            lines.extend(block.rows.iter().map(Row::cells));
            text.push('\n');
            text.push_str(&aligned(&lines));
            for note in &block.notes {
                text.push_str(note);
                text.push('\n');
            }
        }
        text
    }

    /// Returns every figure as JSON, by block and engine.
    pub(super) fn json(&self) -> Value {
        let blocks = self.blocks.iter().map(|block| {
            let rows = block.rows.iter().map(|row| {
                let values = self.names.iter().zip(&row.values);
                let values: Map<String, Value> =
                    values.map(|(name, value)| (name.clone(), json!(value))).collect();
                let (bound, least) = match row.bound {
                    Bound::AtMost(most) => (Some(most), false),
                    Bound::AtLeast(least) => (Some(least), true),
                    Bound::Open => (None, false),
                };
                let kept = row.verdict == Verdict::Kept;
                json!({"name": row.name, "unit": row.unit, "bound": bound, "at_least": least,
                    "values": values, "kept": kept})
            });
            json!({"title": block.title, "rows": rows.collect::<Vec<_>>()})
        });
        blocks.collect()
    }

    /// Checks that the first engine kept the bounds of all ratios, and with `strict` all bounds.
    ///
    /// # Errors
    ///
    /// A bound was missed; the message names the figures.
    pub(super) fn verdict(&self, strict: bool) -> Result<()> {
        let missed = |row: &&Row| match row.verdict {
            Verdict::Kept => false,
            Verdict::Failed => true,
            Verdict::Over | Verdict::Missing => strict,
        };
        let names: Vec<String> = self
            .blocks
            .iter()
            .flat_map(|block| {
                let rows = block.rows.iter().filter(missed);
                rows.map(|row| format!("{} at {}", row.name, block.title))
            })
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        failure(format!("{} missed: {}", names.len(), names.join("; ")))
    }
}

fn rows(section: &Section, is_largest: bool) -> Vec<Row> {
    let row = |figure: &super::figures::Figure| {
        let (meant, ratio) = match (figure.at, section.size) {
            (At::Ratio(messages_min), Some(size)) => (size >= messages_min, true),
            (At::Ratio(_), None) => (ANYWHERE.contains(&figure.name), true),
            (At::Absolute, _) => (is_largest, false),
        };
        let bound = if meant { figure.bound } else { Bound::Open };
        let values = section.columns.iter().map(|column| column.value(figure.name)).collect();
        Row::new(figure.name.to_owned(), figure.unit, bound, ratio, values)
    };
    FIGURES.iter().map(row).collect()
}

/// Returns lines for each engine: its bytes in the store by kind, and why figures are missing.
fn notes(names: &[String], section: &Section) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, column) in names.iter().zip(&section.columns) {
        if let Some(bytes) = column.last.bytes.as_ref().and_then(Value::as_object) {
            let raw = bytes.get("raw").and_then(Value::as_f64).filter(|raw| *raw > 0.0);
            let share = |(kind, bytes): (&String, &Value)| {
                let share = bytes.as_f64()? / raw?;
                Some(format!("{kind} {share:.3}"))
            };
            let kinds = bytes.iter().filter(|(kind, _)| !matches!(kind.as_str(), "raw" | "file"));
            let kinds: Vec<String> = kinds.filter_map(share).collect();
            notes.push(format!("{name}: of the input, in the store: {}", kinds.join(", ")));
        }
        let reasons: BTreeSet<&String> = column.last.missing.values().collect();
        for reason in reasons {
            let missing = column.last.missing.values().filter(|other| *other == reason);
            notes.push(format!("{name}: figures missing: {}: {reason}", missing.count()));
        }
    }
    notes
}

/// Compares the largest size with 10,000 messages, or else with the next smaller size. `None`:
/// there are fewer than two sizes.
fn growth(sections: &[Section]) -> Option<Block> {
    let made_up: Vec<(u32, &Section)> =
        sections.iter().filter_map(|section| Some((section.size?, section))).collect();
    let ((large_size, largest), smaller) = made_up.split_last()?;
    let (small_size, base) = smaller.iter().find(|(size, _)| *size == 10_000).or(smaller.last())?;
    let rows = GROWTHS.iter().map(|growth| {
        let bound = if *small_size >= growth.messages_min { growth.bound } else { Bound::Open };
        let values = largest.columns.iter().zip(&base.columns).map(|(large, small)| {
            let (large, small) = (large.value(growth.name)?, small.value(growth.name)?);
            (small > 0.0).then(|| large / small)
        });
        Row::new(growth.name.to_owned(), "", bound, true, values.collect())
    });
    let (large, small) = (shown(f64::from(*large_size)), shown(f64::from(*small_size)));
    Some(Block {
        title: format!("{large} to {small} messages"),
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

/// Formats a number with two decimals, without decimals from 1,000 on, and with a comma between
/// groups of three digits.
pub(super) fn shown(value: f64) -> String {
    let decimals = if value.fract() == 0.0 || value.abs() >= 1_000.0 { 0 } else { 2 };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// Aligns cells in columns: the first and the last cell of a line to the left, others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(index, (cell, &width))| {
            if index == 0 || index + 1 == line.len() {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Column, figures};

    fn section(messages: u32, figures: &[(&'static str, f64)]) -> Section {
        let mut column = Column::default();
        for (name, value) in figures {
            column.values.insert(name, vec![*value]);
        }
        let title = format!("{messages}");
        Section { title, size: Some(messages), columns: vec![column] }
    }

    #[test]
    fn an_exceeded_ratio_fails_and_an_absolute_figure_only_when_strict() {
        let bad_ratio = [section(10_000, &[(figures::STORE, 0.81)])];
        let error = Table::new(&["lcm"], &bad_ratio).verdict(false).unwrap_err();
        assert_eq!(error.0, "1 missed: store to input at 10000");

        let all_good: Vec<(&'static str, f64)> = FIGURES
            .iter()
            .map(|figure| match figure.bound {
                Bound::AtMost(value) | Bound::AtLeast(value) => (figure.name, value),
                Bound::Open => (figure.name, 0.0),
            })
            .collect();
        let good = [section(100_000, &all_good)];
        assert_eq!(Table::new(&["lcm"], &good).verdict(true), Ok(()));
        for (name, value) in [(figures::INGEST_RATE, 9_999.0), (figures::PROCESS, 201.0)] {
            let mut figures = all_good.clone();
            figures.retain(|(known, _)| *known != name);
            figures.push((name, value));
            let slow = [section(100_000, &figures)];
            assert_eq!(Table::new(&["lcm"], &slow).verdict(false), Ok(()));
            assert!(Table::new(&["lcm"], &slow).verdict(true).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_of_messages_is_judged_by_its_store_and_not_by_times() {
        let figures = [(figures::STORE, 0.81), (figures::COMPACT, 99.0), (figures::DEPTH, 0.0)];
        let file = Section { title: "a.jsonl".to_owned(), size: None, ..section(0, &figures) };
        let error = Table::new(&["lcm"], &[file]).verdict(false).unwrap_err();
        assert_eq!(error.0, "1 missed: store to input at a.jsonl");
    }

    #[test]
    fn growth_with_the_conversation_fails() {
        let of = |large: f64| {
            let sizes = [(1_000, 9.0), (10_000, 2.0), (100_000, large)];
            sizes.map(|(messages, ms)| section(messages, &[(figures::RAW_WARM, ms)]))
        };
        assert_eq!(Table::new(&["lcm"], &of(3.0)).verdict(false), Ok(()));
        assert!(Table::new(&["lcm"], &of(3.1)).verdict(false).is_err());
    }

    #[test]
    fn a_figure_that_is_missing_is_said_and_fails_when_strict() {
        let table = Table::new(&["lcm"], &[section(100_000, &[])]);
        assert!(table.text().contains("missing"), "{}", table.text());
        assert_eq!(table.verdict(false), Ok(()));
        assert!(table.verdict(true).is_err());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(shown(1_234_567.4), "1,234,567");
        assert_eq!(shown(12.345), "12.35");
        assert_eq!(shown(100.0), "100");
    }
}
