#!/usr/bin/env bash
# Builds the wheel, with dist/lcm.wasm inside, into dist/. The same sources give the same bytes.
set -euo pipefail
cd "$(dirname "$0")"
. ./environment.sh
make_environment
if [ ! -f ../../dist/lcm.wasm ]; then
    echo "package.sh: dist/lcm.wasm is not built" >&2
    exit 1
fi
# Builds a copy of the sources, so that no files are left beside them and two runs do not collide.
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
cp -R src pyproject.toml README.md ../../LICENSE* "$sources"
cp ../../dist/lcm.wasm "$sources/src/lcm_engine/lcm.wasm"
find "$sources" -name __pycache__ -prune -exec rm -rf {} +
rm -f ../../dist/lcm_engine-*.whl
export SOURCE_DATE_EPOCH=315532800
.venv/bin/python -m pip --quiet --disable-pip-version-check wheel \
    --no-deps --no-build-isolation --no-index --wheel-dir ../../dist "$sources"
# The builder compresses for speed.
.venv/bin/python - ../../dist/lcm_engine-*.whl <<'END'
import pathlib, sys, zipfile

path = pathlib.Path(sys.argv[1])
smallest = path.with_suffix(".zip")
with zipfile.ZipFile(path) as given, zipfile.ZipFile(smallest, "w") as written:
    for info in given.infolist():
        written.writestr(info, given.read(info), compresslevel=9)
smallest.replace(path)
END
ls ../../dist/lcm_engine-*.whl | sed 's|^../../||'
