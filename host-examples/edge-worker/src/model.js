// The model function of the worker: a server with the Chat Completions API, at the base URL in
// MODEL_URL or behind the service binding MODEL. With neither, no model is asked, and the engine
// makes the summaries.
//
// The name of the model is the configured name in the request, else MODEL_NAME. For another API,
// return another function: for Workers AI `({ system, prompt }) => env.AI.run(name, { messages })`,
// for another provider a function that calls its SDK.

/** `finish` of an answer by `finish_reason`; any other reason is `stop`. */
const FINISHES = { length: "length", content_filter: "refusal" };

/** Converts an HTTP answer without a completion to an error that the package can classify. */
function errorOf({ status, headers }, responseBody) {
  const said = status < 300 ? "answered no completion" : `answered ${status}`;
  return Object.assign(new Error(`the model ${said}`), { status, headers, responseBody });
}

/** Converts the body of an HTTP answer to a completion; undefined: the body has no text. */
function completionOf(said) {
  let answer;
  try {
    answer = JSON.parse(said);
  } catch {
    return undefined;
  }
  const { message, finish_reason: finish } = answer?.choices?.[0] ?? {};
  const text = message?.content ?? message?.refusal;
  if (typeof text !== "string") return undefined;
  return {
    text,
    finish: message.refusal ? "refusal" : (FINISHES[finish] ?? "stop"),
    inputTokens: answer.usage?.prompt_tokens,
    outputTokens: answer.usage?.completion_tokens,
  };
}

/**
 * Returns the `complete` of `open` by the variables and bindings MODEL_URL, MODEL, MODEL_NAME and
 * MODEL_KEY; undefined: neither MODEL_URL nor MODEL is set.
 */
export function completeOf({ MODEL: service, MODEL_URL: base, MODEL_NAME: model, MODEL_KEY: key }) {
  if (!service && !base) return undefined;
  const url = `${(base ?? "http://model/v1").replace(/\/+$/, "")}/chat/completions`;
  const limit = new URL(url).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens";
  return async ({ system, prompt, outputTokensMax, model: wanted }, { signal }) => {
    const name = wanted ?? model;
    const request = {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model: name,
        [limit]: outputTokensMax,
        messages: [
          { role: "system", content: system },
          { role: "user", content: prompt },
        ],
      }),
      signal,
    };
    let response;
    let said;
    try {
      response = await (service ?? globalThis).fetch(url, request);
      said = await response.text();
    } catch ({ message }) {
      return { error: { code: "unavailable", message: `the model cannot be reached: ${message}` } };
    }
    const completion = response.ok ? completionOf(said) : undefined;
    if (completion === undefined) throw errorOf(response, said);
    return { ...completion, model: name };
  };
}
