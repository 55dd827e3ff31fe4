// How a model is wired: whatever speaks Chat Completions, as most providers and local servers do,
// at the base URL in MODEL_URL or behind the service binding MODEL. Without either summaries are
// made without a model.
//
// The model is that of the request, which the configuration names, else MODEL_NAME.
// For another one, return another function: with Workers AI it is
// `({ system, prompt }) => env.AI.run(name, { messages })`, for the API of a provider its SDK.

/** Why an answer ended where it did, where it did not by itself. */
const FINISHES = { length: "length", content_filter: "refusal" };

/** Returns an answer without a completion as an error, which the package understands. */
function errorOf({ status, headers }, responseBody) {
  const said = status < 300 ? "answered no completion" : `answered ${status}`;
  return Object.assign(new Error(`the model ${said}`), { status, headers, responseBody });
}

/** An answer of the API as a completion; undefined: it is none. */
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

/** The `complete` of `open` by what is bound: MODEL_URL or MODEL, MODEL_NAME and MODEL_KEY. */
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
