#!/usr/bin/env bash
# Packs the npm package, with the component's modules inside, into dist/lcm-engine-VERSION.tgz.
# Needs dist/lcm.wasm.
set -euo pipefail
cd "$(dirname "$0")"
bash scripts/install.sh
node scripts/build.mjs

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R README.md conversation.d.ts engine.d.ts index.d.ts types.d.ts types src build "$folder"
cp ../../LICENSE ../../LICENSE-MIT ../../LICENSE-APACHE "$folder"
# What only a checkout can run or needs is no part of the package.
node -e '
    const { scripts, devDependencies, ...kept } = JSON.parse(fs.readFileSync("package.json"));
    fs.writeFileSync(process.argv[1], JSON.stringify(kept, null, 2) + "\n");
' "$folder/package.json"
npm pack "$folder" --pack-destination ../../dist --ignore-scripts --loglevel=error
