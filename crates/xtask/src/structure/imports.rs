//! Imports between files, and import circles.
//!
//! File A imports file B when a `use` item, or a path of two or more names, in non-test code of A
//! names an item that B defines. The definition follows from these rules:
//!
//! - A name is followed through `use` items and re-exports to the file that defines the item.
//!   The import belongs to the file of the item, never to the files of the re-exports between.
//! - A re-export is a `use` item: its own file imports the file of the item.
//! - A path ends at the first name that is not a module: `Type::method` names `Type`.
//! - A path that names only a module does not count, nor does a `mod` declaration.
//! - A glob import counts for the items of its module that a path of one name uses.
//! - Paths in the arguments of macros count. Attributes and visibilities do not.
//! - A method call does not count; its type counts where the type is named.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, UseTree, visit::Visit};

use super::source::SourceFile;

/// Largest number of re-exports to follow for a name.
const STEPS_MAX: usize = 12;

/// A path below a crate: the name of the crate, then modules.
type ModulePath = Vec<String>;

/// One import between two files, with the place of its first occurrence.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Import {
    /// File that imports.
    pub from: String,
    /// File that defines the item.
    pub to: String,
    /// Line in `from`, from 1.
    pub line: usize,
    /// Path that names the item.
    pub name: String,
}

/// Returns the imports among `files`, each pair of files once.
#[must_use]
pub fn find_imports(files: &[SourceFile]) -> Vec<Import> {
    let mut tree = ModuleTree::default();
    for file in files {
        tree.add_items(&file.path, &file.module, &file.syntax.items);
    }
    let mut imports = BTreeMap::new();
    for file in files {
        let mut names = UsedNames { tree: &tree, module: file.module.clone(), found: Vec::new() };
        names.visit_file(&file.syntax);
        for (module, path, line) in names.found {
            for to in tree.files_of(&module, &path) {
                if to != file.path {
                    let import = Import {
                        from: file.path.clone(),
                        to: to.clone(),
                        line,
                        name: path.join("::"),
                    };
                    imports.entry((file.path.clone(), to)).or_insert(import);
                }
            }
        }
    }
    imports.into_values().collect()
}

/// Returns the circles of files that import each other, the largest first.
#[must_use]
pub fn find_circles(imports: &[Import]) -> Vec<Vec<String>> {
    let mut edges = BTreeMap::<&str, BTreeSet<&str>>::new();
    for import in imports {
        edges.entry(&import.from).or_default().insert(&import.to);
    }
    // Two files are in one circle if each reaches the other.
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reach(&edges, file))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut circles: Vec<Vec<String>> = Vec::new();
    let mut placed = BTreeSet::new();
    for (file, all) in &reached {
        if placed.contains(file) || !all.contains(file) {
            continue;
        }
        let circle: Vec<&str> = all.iter().copied().filter(|other| reaches(other, file)).collect();
        placed.extend(circle.iter().copied());
        circles.push(circle.into_iter().map(str::to_owned).collect());
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns the files that `from` reaches in at least one step.
fn reach<'a>(edges: &BTreeMap<&str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in edges.get(file).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Binding of a name in a module.
enum Binding {
    Item,
    Module,
    Use(ModulePath),
}

/// Names of a module.
#[derive(Default)]
struct Scope {
    file: String,
    names: BTreeMap<String, Vec<Binding>>,
    globs: Vec<ModulePath>,
}

/// Target of a path.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
enum Target {
    Module(ModulePath),
    /// An item, identified by its file.
    Item(String),
}

/// The modules of all crates.
#[derive(Default)]
struct ModuleTree {
    scopes: BTreeMap<ModulePath, Scope>,
}

impl ModuleTree {
    fn add_items(&mut self, file: &str, module: &[String], items: &[Item]) {
        self.scopes.entry(module.to_vec()).or_default().file = file.to_owned();
        for item in items {
            match item {
                Item::Mod(item) => {
                    let name = item.ident.to_string();
                    if let Some((_, content)) = &item.content {
                        let mut inner = module.to_vec();
                        inner.push(name.clone());
                        self.add_items(file, &inner, content);
                    }
                    self.bind(module, name, Binding::Module);
                }
                Item::Use(item) => {
                    for (name, path) in use_paths(&item.tree) {
                        match name {
                            Some(name) => self.bind(module, name, Binding::Use(path)),
                            None => {
                                let scope = self.scopes.entry(module.to_vec()).or_default();
                                scope.globs.push(path);
                            }
                        }
                    }
                }
                item => {
                    if let Some(name) = item_name(item) {
                        self.bind(module, name, Binding::Item);
                    }
                }
            }
        }
    }

    fn bind(&mut self, module: &[String], name: String, binding: Binding) {
        let scope = self.scopes.entry(module.to_vec()).or_default();
        scope.names.entry(name).or_default().push(binding);
    }

    /// Returns the files that define the items of `path`, as seen from `module`.
    fn files_of(&self, module: &[String], path: &[String]) -> BTreeSet<String> {
        let targets = self.resolve(module, path, STEPS_MAX).into_iter();
        targets
            .filter_map(|target| match target {
                Target::Item(file) => Some(file),
                Target::Module(_) => None,
            })
            .collect()
    }

    fn resolve(&self, module: &[String], path: &[String], steps: usize) -> BTreeSet<Target> {
        let Some((first, rest)) = path.split_first() else { return BTreeSet::new() };
        let Some(steps) = steps.checked_sub(1) else { return BTreeSet::new() };
        let mut targets = match first.as_str() {
            "crate" => {
                module.iter().take(1).map(|root| Target::Module(vec![root.clone()])).collect()
            }
            "self" => BTreeSet::from([Target::Module(module.to_vec())]),
            "super" => BTreeSet::from([Target::Module(above(module))]),
            name => self.look_up(module, name, steps),
        };
        if targets.is_empty() && self.scopes.contains_key(std::slice::from_ref(first)) {
            targets.insert(Target::Module(vec![first.clone()]));
        }
        for name in rest {
            let step = |target: Target| match target {
                Target::Module(inner) if name == "super" => {
                    BTreeSet::from([Target::Module(above(&inner))])
                }
                Target::Module(inner) if name == "self" => BTreeSet::from([Target::Module(inner)]),
                Target::Module(inner) => self.look_up(&inner, name, steps),
                item @ Target::Item(_) => BTreeSet::from([item]),
            };
            targets = targets.into_iter().flat_map(step).collect();
        }
        targets
    }

    /// Returns the binding of `name` in `module`.
    fn look_up(&self, module: &[String], name: &str, steps: usize) -> BTreeSet<Target> {
        let Some(scope) = self.scopes.get(module) else { return BTreeSet::new() };
        let mut targets = BTreeSet::new();
        for binding in scope.names.get(name).into_iter().flatten() {
            match binding {
                Binding::Item => drop(targets.insert(Target::Item(scope.file.clone()))),
                Binding::Module => {
                    let mut inner = module.to_vec();
                    inner.push(name.to_owned());
                    targets.insert(Target::Module(inner));
                }
                Binding::Use(path) => targets.extend(self.resolve(module, path, steps)),
            }
        }
        if targets.is_empty() {
            for path in &scope.globs {
                for target in self.resolve(module, path, steps) {
                    match (target, steps.checked_sub(1)) {
                        (Target::Module(inner), Some(steps)) if inner != module => {
                            targets.extend(self.look_up(&inner, name, steps));
                        }
                        _ => {}
                    }
                }
            }
        }
        targets
    }
}

fn above(module: &[String]) -> ModulePath {
    module.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default()
}

fn item_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns the names that a `use` binds, each with its path; a glob has no name.
fn use_paths(tree: &UseTree) -> Vec<(Option<String>, ModulePath)> {
    let mut paths = Vec::new();
    add_use_paths(tree, Vec::new(), &mut paths);
    paths
}

fn add_use_paths(
    tree: &UseTree,
    mut above: ModulePath,
    paths: &mut Vec<(Option<String>, ModulePath)>,
) {
    match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            add_use_paths(&path.tree, above, paths);
        }
        UseTree::Name(name) if name.ident == "self" => paths.push((above.last().cloned(), above)),
        UseTree::Name(name) => {
            above.push(name.ident.to_string());
            paths.push((Some(name.ident.to_string()), above));
        }
        UseTree::Rename(rename) => {
            if rename.ident != "self" {
                above.push(rename.ident.to_string());
            }
            paths.push((Some(rename.rename.to_string()), above));
        }
        UseTree::Glob(_) => paths.push((None, above)),
        UseTree::Group(group) => {
            for tree in &group.items {
                add_use_paths(tree, above.clone(), paths);
            }
        }
    }
}

/// Collects the paths of a file: module, path and line of each.
struct UsedNames<'t> {
    tree: &'t ModuleTree,
    module: ModulePath,
    found: Vec<(ModulePath, ModulePath, usize)>,
}

impl UsedNames<'_> {
    fn add_path(&mut self, path: ModulePath, line: usize) {
        let globs = self.tree.scopes.get(&self.module).is_some_and(|scope| !scope.globs.is_empty());
        if path.len() > 1 || globs {
            self.found.push((self.module.clone(), path, line));
        }
    }

    /// Collects paths of two or more names in the arguments of a macro.
    fn scan_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_scanned(&mut path, line);
                    }
                    line = name.span().start().line;
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.add_scanned(&mut path, line);
                    self.scan_tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.add_scanned(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.add_scanned(&mut path, line);
    }

    fn add_scanned(&mut self, path: &mut ModulePath, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.found.push((self.module.clone(), path, line));
        }
    }
}

impl<'a> Visit<'a> for UsedNames<'_> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            syn::visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let line = item.use_token.span.start().line;
        for (name, path) in use_paths(&item.tree) {
            if name.is_some() {
                self.found.push((self.module.clone(), path, line));
            }
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.add_path(names, line);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.visit_path(&call.path);
        self.scan_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn imports_of(files: &[(&str, &[&str], &str)]) -> Vec<(String, String)> {
        let parse = |(path, module, text): &(&str, &[&str], &str)| {
            SourceFile::parse(path, module, text).unwrap()
        };
        let files: Vec<SourceFile> = files.iter().map(parse).collect();
        find_imports(&files).into_iter().map(|import| (import.from, import.to)).collect()
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn a_re_export_is_followed_to_the_definition() {
        let found = imports_of(&[
            ("lib.rs", &["a"], "mod b; mod c; mod d;"),
            ("b/mod.rs", &["a", "b"], "mod inner; pub(crate) use inner::Thing;"),
            ("b/inner.rs", &["a", "b", "inner"], "pub(crate) struct Thing;"),
            ("c.rs", &["a", "c"], "use crate::b::Thing; fn f(_: Thing) {}"),
            ("d.rs", &["a", "d"], "use crate::b;"),
        ]);
        assert_eq!(found, [pair("b/mod.rs", "b/inner.rs"), pair("c.rs", "b/inner.rs")]);
    }

    #[test]
    fn qualified_paths_macros_and_globs_are_imports() {
        let found = imports_of(&[
            ("x/lib.rs", &["x"], "pub mod b; pub mod c; use b::*; fn g() { f(); }"),
            ("b.rs", &["x", "b"], "pub fn f() {} pub fn h() {}"),
            ("c.rs", &["x", "c"], "use super::b; fn k() { assert!(b::f() == 1); }"),
            ("y.rs", &["y"], "/// See [`x::b::f`].\nfn f() { x::b::h(); x::c::missing(); }"),
            ("z.rs", &["z"], "#[cfg(test)] mod t { use x::b::f; }\npub(in crate) struct S;"),
        ]);
        assert_eq!(found, [pair("c.rs", "b.rs"), pair("x/lib.rs", "b.rs"), pair("y.rs", "b.rs")]);
    }

    #[test]
    fn circles_are_the_largest_first() {
        let import = |from: &str, to: &str| Import {
            from: from.to_owned(),
            to: to.to_owned(),
            line: 1,
            name: String::new(),
        };
        let pairs = ["ab", "bc", "ca", "cd", "de", "ed", "ef"];
        let imports: Vec<Import> = pairs.map(|pair| import(&pair[..1], &pair[1..])).to_vec();
        assert_eq!(find_circles(&imports), [vec!["a", "b", "c"], vec!["d", "e"]]);
        assert!(find_circles(&[import("a", "b")]).is_empty());
    }
}
