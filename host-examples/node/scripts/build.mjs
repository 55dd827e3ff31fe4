// Makes build/ from the component: the generated glue, the core modules and the signatures.
//
// In: dist/lcm.wasm (or the path given as argument) and wit/. Out: build/lcm.js, build/*.wasm,
// build/signatures.js, build/modules.js. Does nothing when its inputs have not changed.

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { readWit } from "./wit.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const out = join(here, "..", "build");
const wasmPath = process.argv[2] ?? join(root, "dist", "lcm.wasm");

async function readWitFiles() {
  const folder = join(root, "wit");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".wit")).sort();
  return Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
}

async function stampOf(parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\0");
  for (const script of ["build.mjs", "wit.mjs"]) hash.update(await readFile(join(here, script)));
  return hash.digest("hex");
}

/** Source of a module that imports every core module, for runtimes that cannot compile bytes. */
function modulesSource(names) {
  const imports = names.map((name, i) => `import m${i} from "./${name}";`);
  const entries = names.map((name, i) => `  ${JSON.stringify(name)}: m${i},`);
  return `${imports.join("\n")}\nexport const modules = {\n${entries.join("\n")}\n};\n`;
}

/**
* Removes the preparation of asynchronous calls from the glue, because the engine has no such calls.
* Where a runtime lacks `WebAssembly.promising`, each preparation throws, and an instance takes
* 50 ms instead of 1 ms.
*/
function withoutPromising(glue) {
  const kept = glue.replace(/try\{WebAssembly\.promising\([^()]+\)\}catch\{[^{}]+\}/g, "");
  if (kept === glue || kept.includes("WebAssembly.promising")) {
    throw new Error("the glue prepares asynchronous calls in another way than it did");
  }
  return kept;
}

async function transpile(component) {
  const { transpileBytes } = await import("@bytecodealliance/jco-transpile");
  const { files } = await transpileBytes(component, {
    name: "lcm",
    instantiation: "async",
    noComponentErrorWrapping: true,
    emitTypescriptDeclarations: false,
    base64Cutoff: 0,
    minify: true,
    outDir: ".",
  });
  return Object.entries(files).map(([path, bytes]) => {
    const name = path.replace(/^\.\//, "");
    return [name, name === "lcm.js" ? withoutPromising(Buffer.from(bytes).toString()) : bytes];
  });
}

const component = await readFile(wasmPath);
const wit = await readWitFiles();
const stamp = await stampOf([component, ...wit]);
const stampPath = join(out, "stamp");
if ((await readFile(stampPath, "utf8").catch(() => "")) === stamp) {
  console.log("build: up to date");
} else {
  const files = await transpile(component);
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  for (const [path, bytes] of files) await writeFile(join(out, path), bytes);
  const modules = files
    .map(([path]) => path)
    .filter((path) => path.endsWith(".wasm"))
    .sort();
  await writeFile(join(out, "modules.js"), modulesSource(modules));
  const { types, functions } = readWit(wit);
  await writeFile(
    join(out, "signatures.js"),
    `export const types = ${JSON.stringify(types, null, 1)};\n` +
      `export const functions = ${JSON.stringify(functions, null, 1)};\n`,
  );
  await writeFile(stampPath, stamp);
  const size = files.find(([path]) => path === "lcm.js")[1].length;
  console.log(`build: ${modules.length} core modules, ${size} bytes of glue`);
}
