// One instance of the component over one synchronous store.
//
// An instance is only a cache. A trap, an invalid answer of the store, or any error of the store
// but `conflict` and `would-block` drops the instance; the next call gets a new, configured
// instance. This module awaits nothing and retries nothing.

import { lowerArguments, lowerValue, liftResult, liftValue, signatureOf } from "./convert.js";
import { invalid, isErrorRecord, LcmError, textOf } from "./errors.js";
import { checkPage, checkValues, refusePromise, storeError } from "./store-contract.js";

const HARMLESS = ["conflict", "would-block"];

function noModel() {
  const message = "a call that blocks on a model is not offered in JavaScript; use plan and apply";
  return { failed: { code: "unavailable", message } };
}

/** The component over a store that answers at once. */
export class Component {
  #instantiate;
  #store;
  #configJson;
  #model;
  #exports = null;
  #fault = null;
  #busy = false;

  /**
   * @param {object} parts
   * @param {(imports: object) => object} parts.instantiate makes an instance, synchronously
   * @param {object} parts.store getMany, scan, commit, all synchronous
   * @param {string|null} [parts.configJson] configuration of every new instance; null: none
   * @param {(request: object) => object} [parts.model] answers the `llm` import, synchronously
   */
  constructor({ instantiate, store, configJson = null, model = noModel }) {
    this.#instantiate = instantiate;
    this.#store = store;
    this.#configJson = configJson;
    this.#model = model;
  }

  /** Drops the instance, which is only a cache. */
  drop() {
    this.#exports = null;
  }

  /** Drops the instance and configures later instances with `configJson`. */
  reconfigure(configJson) {
    this.#configJson = configJson;
    this.drop();
  }

  /**
   * Calls `interface.function` with named arguments and returns its result as plain values.
   *
   * Throws an `LcmError`: the engine's own, or `trap` when the engine failed.
   */
  invoke(name, args) {
    const signature = signatureOf(name);
    const positional = lowerArguments(signature, args);
    if (this.#busy) throw invalid("a store must not call the engine that is calling it");
    this.#busy = true;
    this.#fault = null;
    try {
      const exports = this.#ready();
      return liftResult(
        signature,
        this.#guarded(() =>
          exports[signature.interfaceName][signature.functionName](...positional),
        ),
      );
    } finally {
      this.#busy = false;
    }
  }

  #ready() {
    if (this.#exports) return this.#exports;
    const exports = this.#guarded(() => this.#instantiate(this.#imports()));
    if (this.#configJson !== null) {
      this.#guarded(() => exports.setup.configure(this.#configJson));
    }
    this.#exports = exports;
    return exports;
  }

  /** Runs an export; any failure becomes an `LcmError`, and drops the instance if necessary. */
  #guarded(call) {
    let result;
    try {
      result = call();
    } catch (thrown) {
      const record = thrown?.payload ?? thrown;
      if (this.#fault) throw this.#dropFor(this.#fault);
      if (isErrorRecord(record)) throw new LcmError(record.code, record.message);
      const message = `the engine failed: ${textOf(thrown)}`;
      throw this.#dropFor(new LcmError("trap", message, { cause: thrown }));
    }
    // A result after an invalid answer of the store is not used, even if the engine succeeded.
    if (this.#fault) throw this.#dropFor(this.#fault);
    return result;
  }

  #dropFor(error) {
    this.drop();
    return error;
  }

  /** Runs a function of the store; the engine gets errors as records. */
  #answered(name, call) {
    try {
      const answer = call();
      refusePromise(answer, name);
      return answer;
    } catch (thrown) {
      const error = storeError(thrown, name);
      if (!HARMLESS.includes(error.code)) this.#fault = error;
      throw { code: error.code, message: error.message };
    }
  }

  #imports() {
    const store = {
      getMany: (keys) =>
        this.#answered("getMany", () => {
          const answer = this.#store.getMany(keys);
          refusePromise(answer, "getMany");
          return checkValues(answer, keys);
        }),
      scan: (...asked) =>
        this.#answered("scan", () => {
          const answer = this.#store.scan(...asked);
          refusePromise(answer, "scan");
          return checkPage(answer, asked);
        }),
      commit: (guards, puts) => {
        this.#answered("commit", () => this.#store.commit(guards, puts));
      },
    };
    const llm = { complete: (request) => this.#complete(request) };
    // The generated types name the imports with the version, the generated code without a version.
    return {
      "lcm:engine/store": store,
      "lcm:engine/store@0.1.0": store,
      "lcm:engine/llm": llm,
      "lcm:engine/llm@0.1.0": llm,
      "lcm:engine/types": {},
      "lcm:engine/types@0.1.0": {},
    };
  }

  #complete(request) {
    try {
      const answer = this.#model(liftValue("types.completion-request", request));
      refusePromise(answer, "complete");
      return lowerValue("types.completion-result", answer);
    } catch (thrown) {
      this.#fault = new LcmError("completion-failed", textOf(thrown), { cause: thrown });
      return {
        tag: "failed",
        val: { code: "other", message: textOf(thrown), retryAfterMs: undefined },
      };
    }
  }
}
