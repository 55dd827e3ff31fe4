//! Shows the progress of long work on standard error, if standard error is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar; dropping the value clears the bar.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows a bar for work of `total` steps.
    pub(crate) fn counted(what: &'static str, total: usize) -> Self {
        let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
        style(&bar, "{prefix} [{bar:30}] {human_pos}/{human_len} {eta}");
        bar.set_prefix(what);
        Self { bar }
    }

    /// Shows a spinner for work of unknown length.
    pub(crate) fn open(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        style(&bar, "{spinner} {prefix} {elapsed} {wide_msg}");
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Sets the number of finished steps.
    pub(crate) fn at(&self, done: usize) {
        self.bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    }

    /// Shows a text about the work beside the spinner.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(bar: &ProgressBar, template: &str) {
    // If the template did not parse, the bar would keep the default style of `indicatif`.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}
