// How a model is wired: a service behind the binding MODEL that speaks Chat Completions, as most
// providers and local servers do. Without the binding summaries are made without a model.
//
// For another one, return another function: with Workers AI it is
// `({ system, prompt }) => env.AI.run(name, { messages })`, for the API of a provider its SDK.

/** Why an answer ended where it did, where it did not by itself. */
const FINISHES = { length: "length", content_filter: "refusal" };

/** What the status of a response says of the failure. */
function codeOf(status) {
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "rate-limited";
  return status >= 500 ? "unavailable" : "other";
}

function failureOf(response) {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const error = { code: codeOf(response.status), message: `the model answered ${response.status}` };
  return { error: Number.isFinite(seconds) ? { ...error, retry_after_ms: seconds * 1000 } : error };
}

/** The `complete` of `open` by what is bound: MODEL, MODEL_NAME and MODEL_KEY. */
export function completeOf({ MODEL: service, MODEL_NAME: model, MODEL_KEY: key }) {
  if (!service) return undefined;
  return async ({ system, prompt, output_tokens_max }, { signal }) => {
    const response = await service.fetch("http://model/v1/chat/completions", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        max_tokens: output_tokens_max,
        messages: [
          { role: "system", content: system },
          { role: "user", content: prompt },
        ],
      }),
      signal,
    });
    if (!response.ok) return failureOf(response);
    const { choices, usage } = await response.json();
    const [{ message, finish_reason: finish }] = choices;
    return {
      text: message.content,
      finish: FINISHES[finish] ?? "stop",
      model,
      input_tokens: usage?.prompt_tokens,
      output_tokens: usage?.completion_tokens,
    };
  };
}
