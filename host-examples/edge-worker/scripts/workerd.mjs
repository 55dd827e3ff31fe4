// Starts the worker in workerd on a free loopback port.
//
// Writes build/config.capnp: workerd wants every module listed, so the imports are followed from
// src/worker.js. Modules are named by their path below host-examples, where relative imports work.

import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join, posix, relative, resolve as resolvePath } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("..", import.meta.url));
const examples = join(here, "..");
const build = join(here, "build");
const START_MS_MAX = 20_000;

/** Paths of a module and all it imports, the module itself first. */
async function modulesFrom(path, found = []) {
  if (found.includes(path)) return found;
  found.push(path);
  if (!path.endsWith(".js")) return found;
  const text = await readFile(join(examples, path), "utf8");
  // The generated glue imports nothing; it is minified and not worth scanning.
  if (path.endsWith("/lcm.js")) return found;
  for (const [, from] of text.matchAll(/^(?:import|export)\b[^"]*?\bfrom "(\.[^"]+)";/gm)) {
    await modulesFrom(posix.join(posix.dirname(path), from), found);
  }
  return found;
}

function moduleLine(path) {
  const kind = path.endsWith(".wasm") ? "wasm" : "esModule";
  return `    ( name = "${path}", ${kind} = embed "${relative(build, join(examples, path))}" ),`;
}

async function writeConfig(storage) {
  const modules = await modulesFrom("edge-worker/src/worker.js");
  const text = `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ( name = "main", worker = .worker ),
    ( name = "storage", disk = ( path = ${JSON.stringify(storage)}, writable = true ) ),
  ],
  sockets = [ ( name = "http", address = "127.0.0.1:0", http = (), service = "main" ) ],
);

const worker :Workerd.Worker = (
  modules = [
${modules.map(moduleLine).join("\n")}
  ],
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [
    ( className = "Conversation", uniqueKey = "lcm-conversation", enableSql = true ),
    ( className = "Check", uniqueKey = "lcm-check", enableSql = true ),
  ],
  durableObjectStorage = ( localDisk = "storage" ),
  bindings = [
    ( name = "CONVERSATIONS", durableObjectNamespace = "Conversation" ),
    ( name = "CHECKS", durableObjectNamespace = "Check" ),
  ],
);
`;
  await mkdir(build, { recursive: true });
  const path = join(build, "config.capnp");
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

/** The native program; its package's own start script would download what is there already. */
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
 * Starts the worker; resolves to its address and a function that ends it.
 *
 * `storage` is the folder that keeps the Durable Objects.
 */
export async function startWorker(storage) {
  await mkdir(storage, { recursive: true });
  const config = await writeConfig(resolvePath(storage));
  const port = await freePort();
  const args = ["serve", config, `--socket-addr=http=127.0.0.1:${port}`];
  const child = spawn(workerdPath(), args, { stdio: ["ignore", "inherit", "inherit"] });
  const ended = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  process.once("exit", () => child.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url, child).catch(async (error) => {
    await stop();
    throw error;
  });
  return { url, stop };
}
