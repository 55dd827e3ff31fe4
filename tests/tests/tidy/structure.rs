//! Rules for the structure of the engine: layers, names, parameters, import circles.
//!
//! In: the parsed code of the engine's crates. Out: findings. The figures are defined in
//! `xtask::structure`, so that `cargo run --release -p xtask -- structure` prints the same figures.

use std::{collections::BTreeSet, fs, path::PathBuf};

use xtask::structure::{
    imports::{Import, find_circles, find_imports},
    items::{Items, is_one_word},
    layers::Layers,
    read_engine,
    report::show_import,
    source::{SourceFile, read_crate},
};

use crate::{Finding, assert_none};

/// The layers, lowest first; `ARCHITECTURE.md` draws the same layers.
const LAYERS: &str = include_str!("../../../crates/xtask/layers.txt");

/// Names of functions that may be one word, separated by white space.
const ONE_WORD: &str = include_str!("one_word_functions.txt");

/// Parts of the engine that may use stored records only through the storage facade.
const OVER_THE_FACADE: [&str; 6] = [
    "lcm-core/ingest",
    "lcm-core/compaction",
    "lcm-core/assembly",
    "lcm-core/recall",
    "lcm-core/ask",
    "lcm-core/agent_tools",
];

/// Modules behind the storage facade.
const BEHIND_THE_FACADE: [&str; 3] = ["codec", "keys", "store"];

/// Methods of `StoreSession` that read or write values by key. Operations must use typed records
/// instead.
const RAW_CALLS: [&str; 9] = [
    ".read_uncached(",
    ".read_one_uncached(",
    ".read_content_addressed(",
    ".read_immutable(",
    ".read_immutable_uncached(",
    ".read_checked(",
    ".scan_range(",
    ".scan_page(",
    ".commit(&",
];

/// Largest number of files that may import each other in a circle.
const CIRCLE_MAX: usize = 4;

/// Largest share of functions with more than five parameters, in thousandths. The facade `Engine`
/// has such functions, because it has one parameter for each argument of the interface.
const LONG_LISTS_PERMILLE_MAX: usize = 3;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn engine() -> Vec<SourceFile> {
    read_engine(&root()).unwrap()
}

/// Finds type names that are defined in more than one file.
fn shared_types(items: &Items) -> Vec<Finding> {
    let names = items.type_files();
    let shared = names.iter().filter(|(_, files)| files.len() > 1);
    shared.map(|(name, files)| format!("`{name}` is defined in {files:?}")).collect()
}

/// Finds functions with a name of one word that is not on the list.
fn one_word_functions(items: &Items, allowed: &str) -> Vec<Finding> {
    let allowed: BTreeSet<&str> = allowed.split_whitespace().collect();
    let functions = items.functions.iter();
    functions
        .filter(|function| is_one_word(&function.name) && !allowed.contains(function.name.as_str()))
        .map(|function| format!("{}:{}: `{}`", function.path, function.line, function.name))
        .collect()
}

/// Finds imports from a higher layer, or between parts of one layer.
fn upward_imports(imports: &[Import], layers: &str) -> Vec<Finding> {
    let layers = Layers::parse(layers);
    layers.breaches(imports).iter().map(|(_, import)| show_import(import)).collect()
}

/// Finds imports of modules behind the storage facade.
fn storage_internals(imports: &[Import]) -> Vec<Finding> {
    let layers = Layers::parse(LAYERS);
    let is_behind = |path: &str| {
        let names = BEHIND_THE_FACADE.iter();
        names.map(|name| format!("crates/lcm-core/src/storage/{name}.rs")).any(|file| file == path)
    };
    let is_breach = |import: &&Import| {
        let part = layers.part_of(&import.from).unwrap_or_default();
        OVER_THE_FACADE.contains(&part) && is_behind(&import.to)
    };
    imports.iter().filter(is_breach).map(show_import).collect()
}

/// Finds calls of `StoreSession` that only the storage layer and the search layer may make.
fn raw_calls(files: &[SourceFile]) -> Vec<Finding> {
    let layers = Layers::parse(LAYERS);
    let is_over = |path: &str| {
        OVER_THE_FACADE.contains(&layers.part_of(path).unwrap_or_default())
            && !path.contains("/tests")
    };
    let is_raw = |line: &str| RAW_CALLS.iter().any(|call| line.contains(call));
    let of_file = |file: &SourceFile| -> Vec<Finding> {
        let found = file.text.lines().zip(1..).filter(|(line, _)| is_raw(line));
        found.map(|(line, number)| format!("{}:{number}: {}", file.path, line.trim())).collect()
    };
    files.iter().filter(|file| is_over(&file.path)).flat_map(of_file).collect()
}

/// Finds import circles of more than `most` files.
fn large_circles(imports: &[Import], most: usize) -> Vec<Finding> {
    let circles = find_circles(imports).into_iter();
    circles.filter(|circle| circle.len() > most).map(|circle| circle.join(", ")).collect()
}

/// Returns the share of functions with more than five parameters, in thousandths.
fn long_lists_permille(items: &Items) -> usize {
    items.functions_over(5).count() * 1_000 / items.functions.len().max(1)
}

/// Returns the layers that a document draws, in the form of [`layer_lines`]. In the drawing the
/// highest layer is first; a crate is at the beginning of a line, its modules after and below it.
fn drawn_layers(document: &str, layers: &Layers) -> Vec<String> {
    let (_, behind) = document.split_once("<!-- layers -->").unwrap_or_default();
    let (drawing, _) = behind.split_once("<!-- /layers -->").unwrap_or_default();
    let known: BTreeSet<&str> = layers.names().into_iter().flatten().collect();
    let mut drawn = Vec::new();
    let mut name_of_crate = "";
    for line in drawing.lines() {
        let mut words = line.split_whitespace().peekable();
        if let Some(word) = words.next_if(|word| word.starts_with("lcm-")) {
            name_of_crate = word;
        }
        let mut names: Vec<String> = words.map(|word| format!("{name_of_crate}/{word}")).collect();
        names.retain(|name| known.contains(name.as_str()));
        if names.is_empty() && known.contains(name_of_crate) && line.starts_with("lcm-") {
            names.push(name_of_crate.to_owned());
        }
        if !names.is_empty() {
            drawn.push(names.join(" "));
        }
    }
    drawn.reverse();
    drawn
}

/// Returns one line for each layer, with its parts in order.
fn layer_lines(layers: &Layers) -> Vec<String> {
    layers.names().iter().map(|names| names.join(" ")).collect()
}

#[test]
fn a_type_has_its_name_for_itself() {
    assert_none(&shared_types(&Items::collect(&engine())));
    assert_none(&shared_types(&Items::collect(&read_crate(&root(), "lcm-host").unwrap())));
}

#[test]
fn one_word_functions_are_on_the_list() {
    assert_none(&one_word_functions(&Items::collect(&engine()), ONE_WORD));
}

#[test]
fn no_import_runs_upward() {
    assert_none(&upward_imports(&find_imports(&engine()), LAYERS));
}

#[test]
fn operations_read_and_write_through_the_storage_facade() {
    assert_none(&storage_internals(&find_imports(&engine())));
    assert_none(&raw_calls(&engine()));
}

#[test]
fn import_circles_are_small() {
    assert_none(&large_circles(&find_imports(&engine()), CIRCLE_MAX));
}

#[test]
fn few_functions_have_more_than_five_parameters() {
    let items = Items::collect(&engine());
    let permille = long_lists_permille(&items);
    let names: Vec<&str> = items.functions_over(5).map(|one| one.name.as_str()).collect();
    assert!(permille <= LONG_LISTS_PERMILLE_MAX, "{permille} of 1,000: {names:?}");
}

#[test]
fn the_drawing_of_the_layers_is_that_of_the_rule() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let layers = Layers::parse(LAYERS);
    assert_eq!(drawn_layers(&document, &layers), layer_lines(&layers));
}

#[test]
fn the_rule_for_the_storage_facade_can_fail() {
    let import = |from: &str, to: &str| Import {
        from: format!("crates/lcm-core/src/{from}"),
        to: format!("crates/lcm-core/src/{to}"),
        line: 1,
        name: String::new(),
    };
    let good = [
        import("ask/a.rs", "storage/history.rs"),
        import("admin/a.rs", "storage/keys.rs"),
        import("storage/a.rs", "storage/keys.rs"),
    ];
    assert_eq!(storage_internals(&good), Vec::<Finding>::new());
    let bad = [import("ask/a.rs", "storage/keys.rs")];
    assert_eq!(storage_internals(&bad).len(), 1);
    let file = |path: &str, body: &str| {
        let text = format!("fn act(session: S) {{ session{body}; }}");
        SourceFile::parse(path, &["lcm_core"], &text).unwrap()
    };
    let (typed, raw) = (".read_record(&key)", ".read_uncached(&names)");
    let over = "crates/lcm-core/src/ask/a.rs";
    assert_eq!(raw_calls(&[file(over, typed)]), Vec::<Finding>::new());
    assert_eq!(raw_calls(&[file("crates/lcm-core/src/storage/a.rs", raw)]), Vec::<Finding>::new());
    assert_eq!(raw_calls(&[file(over, raw)]).len(), 1);
}

#[test]
fn each_rule_for_the_structure_can_fail() {
    let parse =
        |path: &str, module: &[&str], text: &str| SourceFile::parse(path, module, text).unwrap();
    let modules = "mod storage { pub mod a; } mod search { pub mod b; }";
    let root = || parse("crates/lcm-core/src/lib.rs", &["lcm_core"], modules);
    let good = [
        root(),
        parse("crates/lcm-core/src/storage/a.rs", &["lcm_core", "storage", "a"], "pub struct A;"),
        parse(
            "crates/lcm-core/src/search/b.rs",
            &["lcm_core", "search", "b"],
            "use crate::storage::a::A; pub struct B(A); fn read() {}",
        ),
    ];
    let items = Items::collect(&good);
    assert_eq!(shared_types(&items), Vec::<Finding>::new());
    assert_eq!(one_word_functions(&items, "read"), Vec::<Finding>::new());
    assert_eq!(one_word_functions(&items, "write").len(), 1);
    assert_eq!(upward_imports(&find_imports(&good), LAYERS), Vec::<Finding>::new());
    assert_eq!(large_circles(&find_imports(&good), 1), Vec::<Finding>::new());

    let bad = [
        root(),
        parse(
            "crates/lcm-core/src/storage/a.rs",
            &["lcm_core", "storage", "a"],
            "use crate::search::b::C; pub struct A(C); pub struct B;",
        ),
        parse(
            "crates/lcm-core/src/search/b.rs",
            &["lcm_core", "search", "b"],
            "use crate::storage::a::A; pub struct B(A); pub struct C;
             fn push_all(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}",
        ),
    ];
    let items = Items::collect(&bad);
    assert_eq!(shared_types(&items).len(), 1);
    assert_eq!(upward_imports(&find_imports(&bad), LAYERS).len(), 1);
    assert_eq!(large_circles(&find_imports(&bad), 1).len(), 1);
    assert_eq!(long_lists_permille(&items), 1_000);
    let layers = Layers::parse("lcm-loops\nlcm-core/a lcm-core/b\nlcm-core/c");
    let drawing = "<!-- layers -->\nlcm-core  c (facade)\n  a b\nlcm-loops\n<!-- /layers -->";
    assert_eq!(drawn_layers(drawing, &layers), layer_lines(&layers));
    let moved = "<!-- layers -->\nlcm-core  c b\n  a\nlcm-loops\n<!-- /layers -->";
    assert_ne!(drawn_layers(moved, &layers), layer_lines(&layers));
}
