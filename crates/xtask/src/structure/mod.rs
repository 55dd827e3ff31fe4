//! The structure of the code in figures: names, sizes, imports, layers, and what hosts repeat.
//!
//! In: a checkout, of this layout or with everything in one crate `lcm-core`. Out: figures, each
//! with the rule that it follows in the documentation of its module. Test code does not count.

pub mod hosts;
pub mod imports;
pub mod items;
pub mod layers;
pub mod report;
pub mod source;

use std::path::Path;

use anyhow::Result;

use source::SourceFile;

/// The crates of the engine; their types have names of their own among all of them.
pub const ENGINE: [&str; 3] = ["lcm-loops", "lcm-text", "lcm-core"];

/// Reads all crates of the engine that the checkout has.
///
/// # Errors
///
/// When a file cannot be read or parsed.
pub fn read_engine(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for name in ENGINE {
        files.extend(source::read_crate(root, name)?);
    }
    Ok(files)
}
