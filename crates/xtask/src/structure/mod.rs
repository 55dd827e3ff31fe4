//! The structure of the code in figures: names, sizes, imports, layers, and equal host code.
//!
//! In: a checkout of this layout, or with everything in one crate `lcm-core`. Out: figures, whose
//! definitions are in the documentation of the modules. Test code does not count.

pub mod hosts;
pub mod imports;
pub mod items;
pub mod layers;
pub mod report;
pub mod source;

use std::path::Path;

use anyhow::Result;

use source::SourceFile;

/// The crates of the engine, whose type names are unique.
pub const ENGINE: [&str; 3] = ["lcm-loops", "lcm-text", "lcm-core"];

/// Reads all crates of the engine in the checkout.
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
