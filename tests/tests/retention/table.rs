//! The printed table, and the assertions about its rows.

use crate::life::{Life, POINTS, Point};

pub(crate) const HEADING: &str = "\
set      turns     raw  context  ratio  saved | rare identifiers: kept  equal   full  reached";

/// Kept shares of a set after `turns` turns: means over its windows.
pub(crate) struct Row {
    pub(crate) turns: usize,
    raw: f64,
    context: f64,
    pub(crate) kept: f64,
    /// Share in the newest messages with as many tokens as the context.
    pub(crate) equal: f64,
    /// Share in the newest messages that fill the budget.
    pub(crate) full: f64,
    pub(crate) reached: f64,
}

/// Returns one row for each point that the windows reach.
pub(crate) fn rows(lives: &[Life]) -> Vec<Row> {
    let points = |index: usize| -> Vec<Point> {
        lives.iter().filter_map(|life| life.points.get(index).copied()).collect()
    };
    let row = |(index, turns): (usize, &usize)| {
        let points = points(index);
        let mean = |figure: &dyn Fn(&Point) -> f64| {
            points.iter().map(figure).sum::<f64>() / points.len() as f64
        };
        // If there are no rare identifiers, none is lost.
        let share = |a: u64, b: u64| if b == 0 { 1.0 } else { a as f64 / b as f64 };
        Row {
            turns: *turns,
            raw: mean(&|point| point.raw_tokens as f64),
            context: mean(&|point| point.context_tokens as f64),
            kept: mean(&|point| share(point.kept, point.rare)),
            equal: mean(&|point| share(point.equal_window, point.rare)),
            full: mean(&|point| share(point.full_window, point.rare)),
            reached: mean(&|point| share(point.reached, point.asked)),
        }
    };
    let reached = |index: &(usize, &usize)| !points(index.0).is_empty();
    POINTS.iter().enumerate().filter(reached).map(row).collect()
}

pub(crate) fn print(name: &str, rows: &[Row], lives: &[Life]) {
    for row in rows {
        let Row { turns, raw, context, kept, equal, full, reached } = row;
        let (ratio, saved) = (raw / context, 100.0 - 100.0 * context / raw);
        println!(
            "{name:8} {turns:5} {raw:7.0}  {context:7.0}  {ratio:5.2}  {saved:4.0}% | \
             {kept:22.2}  {equal:5.2}  {full:5.2}  {reached:7.2}"
        );
    }
    let sum = |figure: &dyn Fn(&Life) -> u64| lives.iter().map(figure).sum::<u64>() as f64;
    let bill = sum(&|life| life.bill.total());
    println!(
        "{name:8} bill {:.2} of the full window's, {:.2} of the prompts read from the cache, {:.2} of \
         the bill for summaries; {:.1} passes",
        bill / sum(&|life| life.window_bill.total()),
        sum(&|life| life.bill.read) / sum(&|life| life.bill.sent),
        sum(&|life| life.bill.summaries * 100) / bill,
        sum(&|life| life.passes) / lives.len() as f64,
    );
}
