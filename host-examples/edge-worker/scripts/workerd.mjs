// Starts a worker in workerd on a free loopback port.
//
// Writes a configuration into the storage folder. workerd requires a list of all modules, so this
// module follows the imports from the main module. Names of modules are their paths below
// host-examples, so that relative imports work. To resolve the import `lcm-engine` without a
// bundler, each folder gets a module of this name that re-exports the package.

import { spawn } from "node:child_process";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join, posix, relative, resolve as resolvePath } from "node:path";
import { fileURLToPath } from "node:url";

const examples = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const START_MS_MAX = 20_000;
/** Default access token of a worker. */
const TOKEN = "local";

/** Resolves to the compatibility date of the deployed worker. */
async function compatibilityDate() {
  const text = await readFile(join(examples, "edge-worker", "wrangler.jsonc"), "utf8");
  return JSON.parse(text.replace(/^\s*\/\/.*$/gm, "")).compatibility_date;
}

/** Resolves to the package in `folder`: prefix of its module names, its folder and its entry. */
async function engineIn(folder) {
  const name = folder === join(examples, "node") ? "node" : "lcm-engine";
  const { exports } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  return { name, folder, entry: posix.join(name, exports["."].workerd) };
}

/** Returns the path of a module's file. */
function fileOf(path, engine) {
  const inside = `${engine.name}/`;
  if (path.startsWith(inside)) return join(engine.folder, path.slice(inside.length));
  return join(examples, path);
}

/** Resolves to the names of a module and of all modules that it imports, itself first. */
async function modulesFrom(path, engine, found = []) {
  if (found.includes(path)) return found;
  found.push(path);
  // The generated glue imports nothing; it is minified and not worth scanning.
  if (!path.endsWith(".js") || path.endsWith("/lcm.js")) return found;
  const text = await readFile(fileOf(path, engine), "utf8");
  for (const [, from] of text.matchAll(/^(?:import|export)\b[^"]*?\bfrom "([^"]+)";/gm)) {
    if (from === "lcm-engine") await modulesFrom(engine.entry, engine, found);
    if (!from.startsWith(".")) continue;
    await modulesFrom(posix.join(posix.dirname(path), from), engine, found);
  }
  return found;
}

/** Returns the line of the module `lcm-engine` of one folder, which re-exports the package. */
function engineLine(folder, engine) {
  const source = `export * from "${posix.relative(folder, engine.entry)}";`;
  return `    ( name = "${folder}/lcm-engine", esModule = ${JSON.stringify(source)} ),`;
}

function moduleLine(path, engine, from) {
  const kind = path.endsWith(".wasm") ? "wasm" : "esModule";
  const file = JSON.stringify(relative(from, fileOf(path, engine)));
  return `    ( name = "${path}", ${kind} = embed ${file} ),`;
}

/** Returns all further bindings: texts, the Durable Objects of tests, the service of a model. */
function bindingsOf({ main, model, variables }) {
  const checks = main.includes("/test/");
  const texts = Object.entries({ ACCESS_TOKEN: TOKEN, ...variables })
    .filter(([, text]) => text !== undefined)
    .map(([name, text]) => `( name = ${JSON.stringify(name)}, text = ${JSON.stringify(text)} ),`);
  return {
    classes: checks
      ? `( className = "Check", uniqueKey = "lcm-check", enableSql = true ),
    ( className = "Turns", uniqueKey = "lcm-turns", enableSql = true ),`
      : "",
    services: model
      ? `( name = "model", external = ( address = ${JSON.stringify(model)}, http = () ) ),`
      : "",
    bindings: [
      ...texts,
      checks ? `( name = "CHECKS", durableObjectNamespace = "Check" ),` : "",
      checks ? `( name = "TURNS", durableObjectNamespace = "Turns" ),` : "",
      model ? `( name = "MODEL", service = "model" ), ( name = "MODEL_NAME", text = "m" ),` : "",
    ].join("\n    "),
  };
}

/** Resolves to the lines of a worker's modules in its configuration, the main module first. */
async function modulesOf({ storage, main, engine }) {
  const modules = await modulesFrom(main, engine);
  const folders = new Set(modules.map((path) => posix.dirname(path)));
  const own = [...folders].filter((folder) => !folder.startsWith(engine.name));
  return [
    ...modules.map((path) => moduleLine(path, engine, storage)),
    ...own.map((folder) => engineLine(folder, engine)),
  ];
}

/** Like `modulesOf`, for a folder that a bundler wrote: `worker.js` and its WASM modules. */
async function modulesIn(bundle, storage) {
  const names = (await readdir(bundle)).filter((name) => name.endsWith(".wasm"));
  const line = (name, kind) => {
    const file = JSON.stringify(relative(storage, join(bundle, name)));
    return `    ( name = "${name}", ${kind} = embed ${file} ),`;
  };
  return [line("worker.js", "esModule"), ...names.map((name) => line(name, "wasm"))];
}

async function writeConfig({ storage, bundle, heapMegabytes, ...worker }) {
  const modules = bundle
    ? await modulesIn(bundle, storage)
    : await modulesOf({ storage, ...worker });
  const bound = bindingsOf(worker);
  const flags = heapMegabytes ? `v8Flags = [ "--max-heap-size=${heapMegabytes}" ],` : "";
  const text = `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  ${flags}
  services = [
    ( name = "main", worker = .worker ),
    ( name = "storage", disk = ( path = ${JSON.stringify(storage)}, writable = true ) ),
    # As far as the program itself gets: a model may be on this machine.
    ( name = "outbound", network = (
      allow = ["public", "private"], tlsOptions = ( trustBrowserCas = true ) ) ),
    ${bound.services}
  ],
  sockets = [ ( name = "http", address = "127.0.0.1:0", http = (), service = "main" ) ],
);

const worker :Workerd.Worker = (
  modules = [
${modules.join("\n")}
  ],
  compatibilityDate = "${await compatibilityDate()}",
  globalOutbound = "outbound",
  durableObjectNamespaces = [
    ( className = "Conversation", uniqueKey = "lcm-conversation", enableSql = true ),
    ${bound.classes}
  ],
  durableObjectStorage = ( localDisk = "storage" ),
  bindings = [
    ( name = "CONVERSATIONS", durableObjectNamespace = "Conversation" ),
    ${bound.bindings}
  ],
);
`;
  const path = join(storage, "config.capnp");
  await writeFile(path, text);
  return path;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Returns the path of the native program; the package's start script would download it again. */
function workerdPath() {
  const require = createRequire(import.meta.url);
  const packages = {
    "linux-x64": "linux-64",
    "linux-arm64": "linux-arm64",
    "darwin-x64": "darwin-64",
    "darwin-arm64": "darwin-arm64",
  };
  const name = packages[`${process.platform}-${process.arch}`];
  if (!name) throw new Error(`there is no workerd for ${process.platform}-${process.arch}`);
  return join(
    dirname(require.resolve(`@cloudflare/workerd-${name}/package.json`)),
    "bin",
    "workerd",
  );
}

async function untilReady(url, child) {
  const end = Date.now() + START_MS_MAX;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`workerd ended with ${child.exitCode}`);
    const response = await fetch(url).catch(() => null);
    if (response) return;
    if (Date.now() > end) throw new Error("workerd did not start in time");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * Starts a worker; resolves to its address, its access token, its process id and a function that
 * stops it.
 *
 * `storage` is the folder for Durable Objects. `main` is the worker's module below host-examples;
 * `bundle`, a folder that a bundler wrote, replaces it. `engine` is the folder of the package,
 * `model` the address of a model's service, `variables` the texts to bind, and `heapMegabytes`
 * the limit of the JavaScript heap.
 */
export async function startWorker(storage, options = {}) {
  const { main = "edge-worker/src/worker.js", ...others } = options;
  const engine = await engineIn(options.engine ?? join(examples, "node"));
  await mkdir(storage, { recursive: true });
  const worker = { ...others, main, engine, storage: resolvePath(storage) };
  const config = await writeConfig(worker);
  const port = await freePort();
  const args = ["serve", config, `--socket-addr=http=127.0.0.1:${port}`];
  const child = spawn(workerdPath(), args, { stdio: ["ignore", "inherit", "inherit"] });
  const ended = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  const kill = () => child.kill("SIGKILL");
  const stop = async () => {
    kill();
    await ended;
    process.off("exit", kill);
  };
  process.once("exit", kill);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url, child).catch(async (error) => {
    await stop();
    throw error;
  });
  return { url, token: options.variables?.ACCESS_TOKEN ?? TOKEN, pid: child.pid, stop };
}
