//! Runs `wasm-opt` on the core module, which saves a tenth of its size.
//!
//! In: the module of rustc, with the names of its functions. Out: a smaller module without names,
//! whose functions have the order that gzip compresses best.
//!
//! `wasm-opt/` pins npm's `binaryen`, because another installed version would change the bytes. The
//! result is cached, so a module is optimised once.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use wasmparser::{Parser, Payload};

use crate::{
    component::sha256,
    function_order,
    gate::count_gzipped,
    workspace::{Workspace, run, write_if_changed},
};

/// Options of `wasm-opt`, with the share of the size that each saves. `--flatten` and `--rereloop`
/// rebuild the control flow (half a percent). Passes prefer size to speed, and repeat until none
/// saves more. Functions with one caller are not inlined (half a percent), but the smallest
/// functions are (an eighth of a percent). `--gufa` follows constants through the whole module and
/// `--dae-optimizing` removes parameters and results that are not needed (together a third of a
/// percent compressed). Functions are sorted by name, because without the sorting their order would
/// depend on the path of the workspace.
///
/// The data stays in one piece: `memory-packing` would split it at each run of zeros, and places
/// and lengths of the pieces take more than the zeros do compressed (a sixth of a percent).
///
/// `--low-memory-unused` (half a percent) moves constants that are added to addresses into the
/// offsets of loads and stores. That is right unless such a sum wraps around to an address below
/// 1,024. These addresses are the end of the stack, which the linker places first: an access there
/// may trap a little before the stack would overflow.
const ARGUMENTS: [&str; 14] = [
    "--low-memory-unused",
    "--flatten",
    "--rereloop",
    "-Oz",
    "--converge",
    "--one-caller-inline-max-function-size=0",
    "--always-inline-max-function-size=4",
    "--gufa",
    "--dae-optimizing",
    "-Oz",
    "--skip-pass=memory-packing",
    "--reorder-functions-by-name",
    "--strip-debug",
    "--strip-producers",
];

/// Options of the run that orders the functions by their names.
const ORDERING: [&str; 6] = [
    "--optimize-level=2",
    "--shrink-level=2",
    "--optimize-stack-ir",
    "--reorder-functions-by-name",
    "--strip-debug",
    "--strip-target-features",
];

/// The npm package and its lock file.
const PACKAGE: [(&str, &str); 2] = [
    ("package.json", include_str!("../wasm-opt/package.json")),
    ("package-lock.json", include_str!("../wasm-opt/package-lock.json")),
];

/// Optimises the module; the cache is below `target`.
///
/// # Errors
///
/// When npm or Node is missing, the installation fails, or `wasm-opt` refuses the module.
pub(crate) fn optimized(workspace: &Workspace, module: &[u8], target: &Path) -> Result<Vec<u8>> {
    let folder = target.join("wasm-opt");
    fs::create_dir_all(&folder).context("making the folder of wasm-opt")?;
    let [_, (_, lock)] = PACKAGE;
    let code = [
        include_str!("optimize.rs"),
        include_str!("function_order.rs"),
        include_str!("function_moves.rs"),
        include_str!("deflate_cost.rs"),
    ]
    .concat();
    let key = sha256(&[module, lock.as_bytes(), code.as_bytes()].concat());
    let kept = folder.join(format!("{key}.wasm"));
    if let Ok(smaller) = fs::read(&kept) {
        return Ok(smaller);
    }
    let program = install(&workspace.target.join("wasm-opt"))?;
    let (input, output) = (folder.join("in.wasm"), folder.join("out.wasm"));
    fs::write(&input, with_plain_names(module)?).context("writing the module for wasm-opt")?;
    run(Command::new(&program).args(ARGUMENTS).arg(&input).arg("-o").arg(&output))?;
    let smaller = fs::read(&output).context("reading what wasm-opt wrote")?;
    let order = |named: Vec<u8>| -> Result<(usize, Vec<u8>)> {
        fs::write(&input, named).context("writing the module for wasm-opt")?;
        run(Command::new(&program).args(ORDERING).arg(&input).arg("-o").arg(&output))?;
        let ordered = fs::read(&output).context("reading what wasm-opt wrote")?;
        Ok((count_gzipped(&ordered)?, ordered))
    };
    let best = find_best_order(&smaller, order)?;
    fs::write(&output, &best).context("writing the ordered module")?;
    fs::rename(&output, &kept).context("keeping the ordered module")?;
    Ok(best)
}

/// Tries all numbers of most called functions, moves functions of the best order, and returns the
/// module that is smallest when compressed. `order` gives the functions the order of their names,
/// and counts the compressed bytes.
fn find_best_order(
    module: &[u8],
    order: impl Fn(Vec<u8>) -> Result<(usize, Vec<u8>)>,
) -> Result<Vec<u8>> {
    let mut best: Option<(usize, Vec<u8>, usize)> = None;
    for called_first in function_order::CALLED_FIRST {
        let (size, ordered) = order(function_order::name_by_order(module, called_first)?)?;
        if best.as_ref().is_none_or(|(least, ..)| size < *least) {
            best = Some((size, ordered, called_first));
        }
    }
    let (least, best, called_first) = best.context("no order of functions was tried")?;
    let (size, moved) = order(function_order::name_by_moves(module, &best, called_first)?)?;
    Ok(if size < least { moved } else { best })
}

/// Installs the pinned program if it is missing, and returns its path.
fn install(folder: &Path) -> Result<std::path::PathBuf> {
    let [.., (lock_name, lock)] = PACKAGE;
    let program = folder.join("node_modules/.bin/wasm-opt");
    if program.exists() && fs::read_to_string(folder.join(lock_name)).is_ok_and(|it| it == lock) {
        return Ok(program);
    }
    fs::create_dir_all(folder).context("making the folder of wasm-opt")?;
    for (name, text) in PACKAGE {
        write_if_changed(&folder.join(name), text.as_bytes())?;
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))
        .context("installing wasm-opt (npm `binaryen`) for the component")?;
    Ok(program)
}

/// Makes the hashes in function names equal, because the hashes depend on the path of the workspace
/// and the order of functions must not.
fn with_plain_names(module: &[u8]) -> Result<Vec<u8>> {
    let mut plain = module.to_vec();
    for payload in Parser::new(0).parse_all(module) {
        let Payload::CustomSection(section) = payload? else { continue };
        if section.name() != "name" {
            continue;
        }
        let end = usize::try_from(section.range().end).context("a section out of bounds")?;
        let names = plain.get_mut(end - section.data().len()..end);
        blank_hashes(names.context("the section of names")?);
    }
    Ok(plain)
}

/// Overwrites the hash digits in the last part of mangled names, which has the form
/// `17h0123456789abcdefE`.
fn blank_hashes(names: &mut [u8]) {
    let mut at = 0;
    while let Some(window) = names.get_mut(at..at + 20) {
        if let [b'1', b'7', b'h', digits @ .., b'E'] = window
            && digits.iter().all(u8::is_ascii_hexdigit)
        {
            digits.fill(b'0');
            at += 20;
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::blank_hashes;

    #[test]
    fn only_the_hashes_of_names_are_blanked() {
        let mut names =
            b"_ZN4core3fmt17h0123456789abcdefE17h0123456789abcdef_17h0123456789abcdefE".to_vec();
        blank_hashes(&mut names);
        assert_eq!(
            names,
            b"_ZN4core3fmt17h0000000000000000E17h0123456789abcdef_17h0000000000000000E"
        );
        blank_hashes(&mut []);
    }
}
