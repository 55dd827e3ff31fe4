//! A workload on disk: messages, a summary of the messages, and queries.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
};

use super::{Meta, generate};
use crate::failure::{Result, context};

impl Meta {
    /// Returns the text of the side file `FILE.meta.json`.
    pub(crate) fn text(&self) -> String {
        // Strings and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Writes a workload to `path`, and its side files beside it.
///
/// # Errors
///
/// A file cannot be written.
pub(crate) fn write(seed: u32, messages: u32, path: &Path) -> Result<()> {
    let named = |path: &Path| format!("writing `{}`", path.display());
    let file = File::create(path).map_err(context(named(path)))?;
    let mut file = BufWriter::new(file);
    let mut written = Ok(());
    let (meta, queries) = generate(seed, messages, &mut |line| {
        if written.is_ok() {
            written = writeln!(file, "{line}");
        }
    });
    written.and_then(|()| file.flush()).map_err(context(named(path)))?;
    let name = path.to_string_lossy();
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    for (ending, text) in [("meta", meta.text()), ("queries", queries.text())] {
        let beside = format!("{stem}.{ending}.json");
        let beside = Path::new(&beside);
        fs::write(beside, text).map_err(context(named(beside)))?;
    }
    Ok(())
}
