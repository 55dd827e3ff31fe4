//! The built component: it imports what the host provides and nothing else.
//!
//! In: `dist/lcm.wasm`, if it was built. Out: a failure that names the import. The build itself
//! checks size, contents and repeatability.
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("dist")
}

/// Returns the bytes of the component; `None`: it was not built.
fn component() -> Option<Vec<u8>> {
    let bytes = std::fs::read(dist().join("lcm.wasm")).ok();
    if bytes.is_none() {
        eprintln!("dist/lcm.wasm is not built, so it was not looked at");
    }
    bytes
}

/// Returns the imports of the component itself, not those of modules and components inside it.
fn imports(component: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                names
                    .extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
            _ => {}
        }
    }
    names
}

fn foreign(imports: &[String]) -> Vec<&String> {
    imports.iter().filter(|name| !name.starts_with("lcm:engine/")).collect()
}

#[test]
fn the_component_imports_only_what_the_host_provides() {
    let Some(component) = component() else { return };
    let imports = imports(&component);
    assert!(imports.iter().any(|name| name.starts_with("lcm:engine/types@")), "{imports:?}");
    assert_eq!(foreign(&imports), Vec::<&String>::new());
}

#[test]
fn the_checksum_beside_the_component_is_its_own() {
    let Some(component) = component() else { return };
    let digest: String =
        Sha256::digest(&component).iter().map(|byte| format!("{byte:02x}")).collect();
    let sums = std::fs::read_to_string(dist().join("SHA256SUMS")).unwrap();
    assert!(sums.lines().any(|line| line == format!("{digest}  lcm.wasm")), "{sums}");
}

/// The check finds the import in the smallest component that has one, which is built here byte by
/// byte.
#[test]
fn a_foreign_import_is_seen() {
    let name = b"wasi:io/poll@0.2.0";
    let length = u8::try_from(name.len()).unwrap();
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    // A section of types with one empty instance type, then one of imports that uses it.
    component.extend([7, 3, 1, 0x42, 0]);
    component.extend([10, length + 5, 1, 0, length]);
    component.extend(name);
    component.extend([5, 0]);
    let imports = imports(&component);
    assert_eq!(imports, ["wasi:io/poll@0.2.0"]);
    assert_eq!(foreign(&imports).len(), 1);
}
