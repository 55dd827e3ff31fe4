//! Finds the component that the program carries.
//!
//! In: `dist/lcm.wasm` of the workspace. Out: its path for `include_bytes!`. Building it is the
//! business of `build.sh`.

use std::{env, path::PathBuf, process::exit};

fn main() {
    let crate_dir = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let component = crate_dir.join("../../dist/lcm.wasm");
    println!("cargo::rerun-if-changed={}", component.display());
    if !component.is_file() {
        println!("cargo::error=dist/lcm.wasm is missing: run ./build.sh build");
        exit(1);
    }
    println!("cargo::rustc-env=LCM_COMPONENT={}", component.display());
}
