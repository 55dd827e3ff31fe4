// How a model is wired: whatever speaks Chat Completions, as most providers and local servers do,
// at the base URL in MODEL_URL or behind the service binding MODEL. Without either summaries are
// made without a model.
//
// For another one, return another function: with Workers AI it is
// `({ system, prompt }) => env.AI.run(name, { messages })`, for the API of a provider its SDK.

/** Why an answer ended where it did, where it did not by itself. */
const FINISHES = { length: "length", content_filter: "refusal" };

/** Words of a refusal for a prompt that is too long, and for content that is not served. */
const TOO_LONG = /context.?(length|size|window|limit)|too long|reduce the length/i;
const POLICY = /content.?(policy|filter)/i;

/** What a refusal means, by its status and, where providers have no status for it, its words. */
function codeOf(status, said) {
  if (status === 401 || status === 403) return "auth";
  if (status === 402 || status === 429 || status === 529) return "rate-limited";
  if (status === 408 || status === 504) return "timeout";
  if (status === 413) return "context-too-long";
  if ([400, 422, 500].includes(status) && TOO_LONG.test(said)) return "context-too-long";
  if ([400, 422].includes(status) && POLICY.test(said)) return "policy";
  return status >= 500 ? "unavailable" : "other";
}

function failureOf({ status, headers }, said) {
  const error = { code: codeOf(status, said), message: `the model answered ${status}` };
  const seconds = headers.get("retry-after") ?? "";
  const isSeconds = /^\d{1,9}(\.\d+)?$/.test(seconds);
  return { error: isSeconds ? { ...error, retryAfterMs: Math.ceil(seconds * 1000) } : error };
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

function unavailable(why) {
  return { error: { code: "unavailable", message: `the model ${why}` } };
}

/** The `complete` of `open` by what is bound: MODEL_URL or MODEL, MODEL_NAME and MODEL_KEY. */
export function completeOf({ MODEL: service, MODEL_URL: base, MODEL_NAME: model, MODEL_KEY: key }) {
  if (!service && !base) return undefined;
  const url = `${(base ?? "http://model/v1").replace(/\/+$/, "")}/chat/completions`;
  const limit = new URL(url).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens";
  return async ({ system, prompt, outputTokensMax }, { signal }) => {
    const request = {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        [limit]: outputTokensMax,
        messages: [
          { role: "system", content: system },
          { role: "user", content: prompt },
        ],
      }),
      signal,
    };
    try {
      const response = await (service ?? globalThis).fetch(url, request);
      const said = await response.text();
      if (!response.ok) return failureOf(response, said);
      const completion = completionOf(said);
      return completion ? { ...completion, model } : unavailable("answered no completion");
    } catch ({ message }) {
      return unavailable(`cannot be reached: ${message}`);
    }
  };
}
