//! The built component: it imports what the host provides and nothing else.
//!
//! In: `dist/lcm.wasm`, when it was built. Out: a failure that names the import. Size, contents and
//! repeatability are looked at where it is built.
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("dist")
}

/// The component, when it was built.
fn component() -> Option<Vec<u8>> {
    let bytes = std::fs::read(dist().join("lcm.wasm")).ok();
    if bytes.is_none() {
        eprintln!("dist/lcm.wasm is not built, so it was not looked at");
    }
    bytes
}

/// Imports of the component itself, not of what is nested in it.
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

/// The smallest component with an import, byte by byte: the gate sees it and refuses it.
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
