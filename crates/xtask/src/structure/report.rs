//! The figures of a checkout as text, with their targets.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::{
    hosts,
    imports::{Import, find_circles, find_imports},
    items::{Items, count_examples, is_one_word},
    layers::{Breach, LAYERS, Layers},
    read_engine,
    source::SourceFile,
};

/// Largest number of parameters of a function.
pub const PARAMETERS_MAX: usize = 5;

/// Largest number of consecutive equal lines of code that two host files may share.
pub const EQUAL_LINES_MAX: usize = 30;

/// Options of a report.
#[derive(Default)]
pub struct Options<'a> {
    /// Layers of a checkout with another layout.
    pub layers: Option<&'a str>,
    /// Whether findings are listed below the figures.
    pub details: bool,
}

/// Measures the checkout `root`.
///
/// # Errors
///
/// When a file cannot be read or parsed, or the engine is missing.
pub fn measure(root: &Path, options: &Options) -> Result<String> {
    let files = read_engine(root).context("reading the engine")?;
    ensure!(!files.is_empty(), "{} must contain a crate of the engine", root.display());
    let mut report = Report { details: options.details, ..Report::default() };
    report.add_engine(&files);
    report.add_imports(&files, &Layers::parse(options.layers.unwrap_or(LAYERS)));
    report.add_hosts(root)?;
    Ok(report.table + &report.lists)
}

/// Figures, followed by lists of findings.
#[derive(Default)]
struct Report {
    details: bool,
    table: String,
    lists: String,
}

impl Report {
    fn add_figure(&mut self, name: &str, figure: &str, target: &str) {
        _ = writeln!(self.table, "{name:<54} {figure:>22}   {target}");
    }

    fn add_list(&mut self, title: &str, lines: impl IntoIterator<Item = String>) {
        if !self.details {
            return;
        }
        _ = writeln!(self.lists, "\n{title}");
        for line in lines {
            _ = writeln!(self.lists, "  {line}");
        }
    }

    fn add_engine(&mut self, files: &[SourceFile]) {
        let items = Items::collect(files);
        let names = items.function_names();
        let short: Vec<&str> = names.iter().copied().filter(|name| is_one_word(name)).collect();
        let figure = share(short.len(), names.len());
        self.add_figure("one-word function names, of the distinct ones", &figure, "at most 20 %");
        let types = items.type_files();
        let shared: Vec<_> = types.iter().filter(|(_, files)| files.len() > 1).collect();
        let figure = share(shared.len(), types.len());
        self.add_figure("type names in more than one file", &figure, "at most 3 %");
        let over: Vec<_> = items.functions_over(PARAMETERS_MAX).collect();
        let figure = share(over.len(), items.functions.len());
        self.add_figure("functions with more than five parameters", &figure, "at most 1 %");
        let longest = items.functions.iter().max_by_key(|function| function.lines);
        let figure = longest.map_or(0, |function| function.lines).to_string();
        self.add_figure("lines of the longest function", &figure, "at most 70");
        let examples: usize = files.iter().map(|file| count_examples(&file.text)).sum();
        self.add_figure("rustdoc examples", &examples.to_string(), "at least 15");
        self.add_list("One-word function names", [short.join(" ")]);
        let holders = shared.iter().map(|(name, files)| {
            format!("{name}: {}", files.iter().copied().collect::<Vec<_>>().join(" "))
        });
        self.add_list("Type names in more than one file", holders.collect::<Vec<_>>());
        let over = over.iter().map(|found| {
            format!("{}:{}: {} has {}", found.path, found.line, found.name, found.parameters)
        });
        self.add_list("Functions with more than five parameters", over.collect::<Vec<_>>());
    }

    fn add_imports(&mut self, files: &[SourceFile], layers: &Layers) {
        let imports = find_imports(files);
        let circles = find_circles(&imports);
        let figure = circles.first().map_or(0, Vec::len).to_string();
        self.add_figure("files of the largest import circle", &figure, "at most 5");
        let breaches = layers.breaches(&imports);
        for (breach, name) in [
            (Breach::Upward, "imports that run upward between layers"),
            (Breach::Sideways, "imports between parts of one layer"),
        ] {
            let found: Vec<&Import> =
                breaches.iter().filter(|found| found.0 == breach).map(|found| found.1).collect();
            self.add_figure(name, &found.len().to_string(), "0");
            self.add_list(name, found.into_iter().map(show_import).collect::<Vec<_>>());
        }
        let outside = files.iter().filter(|file| layers.part_of(&file.path).is_none());
        let outside: Vec<String> = outside.map(|file| file.path.clone()).collect();
        self.add_figure(
            "files without a layer",
            &outside.len().to_string(),
            "lib.rs of two crates",
        );
        self.add_list("Files without a layer", outside);
        let circles =
            circles.iter().map(|circle| format!("{}: {}", circle.len(), circle.join(" ")));
        self.add_list("Import circles", circles.collect::<Vec<_>>());
    }

    fn add_hosts(&mut self, root: &Path) -> Result<()> {
        let mut runs = Vec::new();
        for files in hosts::read_hosts(root)? {
            runs.extend(hosts::equal_runs(&files, EQUAL_LINES_MAX));
        }
        self.add_figure("pairs of equal host code over 30 lines", &runs.len().to_string(), "0");
        let typescript = hosts::loose_typescript(root)?;
        let figure = typescript.len().to_string();
        self.add_figure("`any` and `unknown` in public TypeScript types", &figure, "0");
        let python = hosts::loose_python(root)?;
        self.add_figure("`Any` in public Python signatures", &python.len().to_string(), "0");
        let mut counted = Vec::new();
        for hosts::DrivingCode { host, files } in hosts::driving_code(root)? {
            let lines: usize = files.iter().map(|(_, lines)| lines).sum();
            let name = format!("lines of code that drive the engine, {host}");
            self.add_figure(&name, &lines.to_string(), "at most 200");
            counted.extend(files.into_iter().map(|(path, lines)| format!("{path}: {lines}")));
        }
        let runs = runs.iter().map(|run| {
            let ((a, in_a), (b, in_b)) = (&run.first, &run.second);
            format!("{a}:{in_a} and {b}:{in_b}: {} lines", run.lines)
        });
        self.add_list("Equal host code", runs.collect::<Vec<_>>());
        self.add_list("Loose types", typescript.into_iter().chain(python));
        self.add_list("Files that drive the engine, with their lines of code", counted);
        Ok(())
    }
}

/// Formats an import as one line.
#[must_use]
pub fn show_import(import: &Import) -> String {
    format!("{}:{}: {} in {}", import.from, import.line, import.name, import.to)
}

/// Formats `part` of `all` in tenths of a percent.
fn share(part: usize, all: usize) -> String {
    let tenths = part * 1000 / all.max(1);
    format!("{}.{} % ({part} of {all})", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_tenths_of_a_percent() {
        assert_eq!(share(79, 381), "20.7 % (79 of 381)");
        assert_eq!(share(0, 0), "0.0 % (0 of 0)");
    }
}
