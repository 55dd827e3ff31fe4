//! A progress bar on standard error, when that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Progress bar of long work; dropping the value clears the bar.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows progress towards a known number.
    pub(crate) fn counted(what: &'static str, total: usize) -> Self {
        let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
        style(&bar, "{prefix} [{bar:30}] {human_pos}/{human_len} {eta}");
        bar.set_prefix(what);
        Self { bar }
    }

    /// Shows the steps of work of unknown length.
    pub(crate) fn open(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        style(&bar, "{spinner} {prefix} {elapsed} {wide_msg}");
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Sets the finished number.
    pub(crate) fn at(&self, done: usize) {
        self.bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    }

    /// Shows the last step.
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
    // A template that does not parse only changes the look of the bar.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}
