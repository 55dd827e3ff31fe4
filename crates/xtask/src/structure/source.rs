//! The Rust files of a crate, parsed, without test code.
//!
//! A crate is read from its root (`src/lib.rs`, else `src/main.rs`) along its `mod` declarations.
//! Items and statements under `#[test]` or a `cfg` that names `test` are removed, and so are the
//! files behind such a `mod`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use syn::{Attribute, Item, Meta, visit_mut::VisitMut};

/// A Rust file with its place in the module tree.
pub struct SourceFile {
    /// Path below the checkout, with `/` between folders.
    pub path: String,
    /// Names of the crate and of the modules down to this file.
    pub module: Vec<String>,
    /// The text, test code included.
    pub text: String,
    /// The syntax tree, test code excluded.
    pub syntax: syn::File,
}

impl SourceFile {
    /// Parses `text` as the file of `module`.
    ///
    /// # Errors
    ///
    /// When the text is not Rust.
    pub fn parse(path: &str, module: &[&str], text: &str) -> Result<Self> {
        let mut syntax = syn::parse_file(text).with_context(|| format!("parsing {path}"))?;
        TestCode.visit_file_mut(&mut syntax);
        let module = module.iter().map(|name| (*name).to_owned()).collect();
        Ok(Self { path: path.to_owned(), module, text: text.to_owned(), syntax })
    }
}

/// Reads the crate `name` in `crates/` of the checkout `root`; nothing when the crate is absent.
///
/// # Errors
///
/// When a file cannot be read or parsed, or the file of a module is missing.
pub fn read_crate(root: &Path, name: &str) -> Result<Vec<SourceFile>> {
    let folder = root.join("crates").join(name).join("src");
    let entry = ["lib.rs", "main.rs"].map(|file| folder.join(file));
    let Some(entry) = entry.into_iter().find(|path| path.is_file()) else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    // Files to read: path, folder of the modules in that file, module path.
    let mut open = vec![(entry, folder, vec![name.replace('-', "_")])];
    while let Some((path, folder, module)) = open.pop() {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        let names: Vec<&str> = module.iter().map(String::as_str).collect();
        let file = SourceFile::parse(&parts.join("/"), &names, &text)?;
        add_modules(&file.syntax.items, &folder, &module, &mut open)?;
        files.push(file);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Adds the files of the `mod` declarations among `items`.
fn add_modules(
    items: &[Item],
    folder: &Path,
    module: &[String],
    open: &mut Vec<(PathBuf, PathBuf, Vec<String>)>,
) -> Result<()> {
    for item in items {
        let Item::Mod(declaration) = item else { continue };
        let name = declaration.ident.to_string();
        let below = folder.join(&name);
        let mut inner = module.to_vec();
        inner.push(name.clone());
        if let Some((_, content)) = &declaration.content {
            add_modules(content, &below, &inner, open)?;
            continue;
        }
        let files = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
        let Some(file) = files.into_iter().find(|path| path.is_file()) else {
            bail!("the module `{name}` must have a file in {}", folder.display());
        };
        open.push((file, below, inner));
    }
    Ok(())
}

/// Removes test code from a syntax tree.
struct TestCode;

impl VisitMut for TestCode {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_test(item_attributes(item)));
        syn::visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, item: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut item.content {
            items.retain(|item| !is_test(item_attributes(item)));
        }
        syn::visit_mut::visit_item_mod_mut(self, item);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| match item {
            syn::ImplItem::Const(item) => !is_test(&item.attrs),
            syn::ImplItem::Fn(item) => !is_test(&item.attrs),
            syn::ImplItem::Type(item) => !is_test(&item.attrs),
            _ => true,
        });
        syn::visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            syn::Stmt::Local(local) => !is_test(&local.attrs),
            syn::Stmt::Item(item) => !is_test(item_attributes(item)),
            _ => true,
        });
        syn::visit_mut::visit_block_mut(self, block);
    }
}

/// Returns whether attributes restrict their item to tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            let mut words = condition.split(|character: char| !character.is_alphanumeric());
            words.any(|word| word == "test") && !condition.contains("not")
        }
        _ => false,
    })
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_removed() {
        let text = "fn a() { #[cfg(test)] let b = 1; }\n#[cfg(test)]\nmod tests { fn c() {} }\n\
                    #[cfg(not(test))]\nfn d() {}\nimpl E { #[cfg(test)] fn f() {} fn g() {} }\n\
                    #[test]\nfn h() {}\n";
        let file = SourceFile::parse("a.rs", &["a"], text).unwrap();
        assert_eq!(file.syntax.items.len(), 3);
        let Some(Item::Impl(block)) = file.syntax.items.last() else { panic!("no impl") };
        assert_eq!(block.items.len(), 1);
        let Some(Item::Fn(function)) = file.syntax.items.first() else { panic!("no function") };
        assert!(function.block.stmts.is_empty());
    }
}
