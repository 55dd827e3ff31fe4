//! Functions, types and documentation examples of parsed files.
//!
//! | measure | definition |
//! |---|---|
//! | function | `fn` with a name, methods, trait methods and functions within functions included |
//! | one-word name | a name without `_` inside |
//! | type | `struct`, `enum`, `trait`, `type`, `union`; none within `impl` or `trait` |
//! | parameters | inputs of a function, the receiver excluded |
//! | lines of a function | from the line of `fn` to the line of the last brace, both included |
//! | example | a fenced block of Rust in a documentation comment |

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use super::source::SourceFile;

/// A function of non-test code.
#[derive(Clone, Debug)]
pub struct Function {
    /// File, below the checkout.
    pub path: String,
    /// Line of `fn`, from 1.
    pub line: usize,
    /// Name.
    pub name: String,
    /// Number of parameters, the receiver excluded.
    pub parameters: usize,
    /// Lines, 0 for a declaration without a body.
    pub lines: usize,
}

/// A type of non-test code.
#[derive(Clone, Debug)]
pub struct TypeName {
    /// File, below the checkout.
    pub path: String,
    /// Line of the name, from 1.
    pub line: usize,
    /// Name.
    pub name: String,
}

/// Functions and types of some files.
#[derive(Default)]
pub struct Items {
    /// All functions, by file.
    pub functions: Vec<Function>,
    /// All types, by file.
    pub types: Vec<TypeName>,
    path: String,
}

impl Items {
    /// Collects the items of `files`.
    #[must_use]
    pub fn collect<'a>(files: impl IntoIterator<Item = &'a SourceFile>) -> Self {
        let mut items = Self::default();
        for file in files {
            items.path.clone_from(&file.path);
            items.visit_file(&file.syntax);
        }
        items
    }

    /// Returns the distinct names of functions.
    #[must_use]
    pub fn function_names(&self) -> BTreeSet<&str> {
        self.functions.iter().map(|function| function.name.as_str()).collect()
    }

    /// Returns the names of types with their files.
    #[must_use]
    pub fn type_files(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut files = BTreeMap::<&str, BTreeSet<&str>>::new();
        for defined in &self.types {
            files.entry(&defined.name).or_default().insert(&defined.path);
        }
        files
    }

    /// Returns the functions with more than `most` parameters.
    pub fn functions_over(&self, most: usize) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(move |function| function.parameters > most)
    }

    fn add_function(&mut self, signature: &syn::Signature, body: Option<&syn::Block>) {
        let line = signature.fn_token.span.start().line;
        let lines = body.map_or(0, |body| body.brace_token.span.close().end().line + 1 - line);
        self.functions.push(Function {
            path: self.path.clone(),
            line,
            name: plain_name(&signature.ident),
            parameters: signature.inputs.len() - usize::from(signature.receiver().is_some()),
            lines,
        });
    }

    fn add_type(&mut self, name: &syn::Ident) {
        let line = name.span().start().line;
        self.types.push(TypeName { path: self.path.clone(), line, name: plain_name(name) });
    }
}

/// Removes the prefix of a raw identifier.
fn plain_name(name: &syn::Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

impl<'a> Visit<'a> for Items {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.add_function(&item.sig, item.default.as_ref());
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.add_type(&item.ident);
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.add_type(&item.ident);
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.add_type(&item.ident);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.add_type(&item.ident);
        syn::visit::visit_item_type(self, item);
    }

    fn visit_item_union(&mut self, item: &'a syn::ItemUnion) {
        self.add_type(&item.ident);
        syn::visit::visit_item_union(self, item);
    }
}

/// Returns whether a name is one word.
#[must_use]
pub fn is_one_word(name: &str) -> bool {
    !name.trim_matches('_').contains('_')
}

/// Counts the examples in the documentation comments of a text.
#[must_use]
pub fn count_examples(text: &str) -> usize {
    let (mut count, mut fenced) = (0, false);
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(info) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            continue;
        };
        if !fenced {
            let mut words = info.split(',').map(str::trim);
            let rust = ["", "rust", "no_run", "should_panic", "compile_fail"];
            count += usize::from(words.all(|word| rust.contains(&word)));
        }
        fenced = !fenced;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_types_are_counted() {
        let text = "struct A;\nimpl A {\n fn b(&self, c: u8) {\n  fn d_e() {}\n }\n}\n\
                    trait F { type G; fn h(); }\ntype I = A;\n";
        let file = SourceFile::parse("a.rs", &["a"], text).unwrap();
        let items = Items::collect([&file]);
        let names: Vec<&str> = items.types.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["A", "F", "I"]);
        let functions: Vec<_> = items
            .functions
            .iter()
            .map(|found| (found.name.as_str(), found.line, found.parameters, found.lines))
            .collect();
        assert_eq!(functions, [("b", 3, 1, 3), ("d_e", 4, 0, 1), ("h", 7, 0, 0)]);
        assert_eq!(items.functions_over(0).count(), 1);
        assert!(is_one_word("b") && is_one_word("_b") && !is_one_word("d_e"));
    }

    #[test]
    fn examples_are_fenced_blocks_of_rust() {
        let text =
            "/// ```\n/// a();\n/// ```\n//! ```text\n//! a\n//! ```\n/// ```no_run\n/// ```\n";
        assert_eq!(count_examples(text), 2);
    }
}
