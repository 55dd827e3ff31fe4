//! Python imports every generated module, and every name in their types is defined.

use std::{fs, path::Path, process::Command};

use super::root;

/// Imports one module without the package's `__init__`, and resolves the types of its members.
const PROGRAM: &str = "
import importlib, sys, types, typing
package = types.ModuleType('lcm_engine')
package.__path__ = [sys.argv[1]]
sys.modules['lcm_engine'] = package
module = importlib.import_module('lcm_engine.' + sys.argv[2])
for name, value in vars(module).items():
    if isinstance(value, type) and typing.is_typeddict(value):
        typing.get_type_hints(value)
";

/// Imports a module first in a new process; returns the output of Python if this fails.
fn find_import_error(package: &Path, module: &str) -> Option<String> {
    let mut python = Command::new("python3");
    python.args(["-B", "-c", PROGRAM]).arg(package).arg(module);
    let output = python.output().expect("`python3` must be installed");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn python_imports_every_generated_module_first() {
    let package = root().join("host-examples/python/src/lcm_engine");
    let mut modules = vec!["results".to_owned()];
    for file in fs::read_dir(package.join("shapes")).unwrap() {
        let name = file.unwrap().file_name().to_string_lossy().into_owned();
        modules.extend(name.strip_suffix(".py").map(|name| format!("shapes.{name}")));
    }
    assert!(modules.len() > 10, "the modules are not where they are looked for");
    for module in modules {
        let error = find_import_error(&package, &module);
        assert!(error.is_none(), "{module}: {}", error.unwrap_or_default());
    }
}

#[test]
fn modules_in_a_circle_and_unknown_names_are_found() {
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-circle");
    fs::create_dir_all(&package).unwrap();
    let write = |name: &str, text: &str| fs::write(package.join(name), text).unwrap();
    write("a.py", "from .b import B\nA = int\n");
    write("b.py", "from .a import A\nB = int\n");
    write(
        "c.py",
        "from __future__ import annotations\nfrom typing import TypedDict\n\
         class C(TypedDict):\n    member: Unknown\n",
    );
    write("d.py", "from typing import TypedDict\nclass D(TypedDict):\n    member: int\n");
    assert!(find_import_error(&package, "a").unwrap().contains("circular import"));
    assert!(find_import_error(&package, "c").unwrap().contains("name 'Unknown'"));
    assert_eq!(find_import_error(&package, "d"), None);
}
