// Errors in the shapes that SDKs throw, made by hand after their sources in November 2026:
// openai 6.49.0, @anthropic-ai/sdk 1.14.0, @google/genai 2.32.0, ai 6.0.326, @langchain/core 1.4.0
// and @langchain/openai 1.5.8.
//
// An answer is `{status, body, headers}`; each function returns the error of the SDK for it.

/** Returns an error of a class of this name, with these classes above it. */
export function errorOf(names, message, members = {}) {
  let Class = Error;
  for (const name of [...names].reverse()) Class = { [name]: class extends Class {} }[name];
  return Object.assign(new Class(message), members);
}

const json = (body) => (typeof body === "string" ? body : JSON.stringify(body));

/** Returns the message `status message`, as SDKs that Stainless generates write it. */
function stainlessMessage(status, error) {
  const said = error?.message ?? (error ? JSON.stringify(error) : undefined);
  if (status && said) return `${status} ${said}`;
  return status ? `${status} status code (no body)` : (said ?? "(no status code or body)");
}

export function openai({ status, body, headers }) {
  const error = body?.error;
  const { code, type, param } = error ?? {};
  const members = { status, headers: new Headers(headers), error, code, param, type };
  return errorOf(["APIError", "OpenAIError"], stainlessMessage(status, error), members);
}

export function anthropic({ status, body, headers }) {
  const type = body?.error?.type ?? null;
  const details = body?.error?.details ?? null;
  const members = { status, headers: new Headers(headers), error: body, type, details };
  const error = errorOf(["APIError", "AnthropicError"], stainlessMessage(status, body), members);
  return Object.assign(error, { name: "APIError", errorCode: null });
}

export function google({ status, body }) {
  return errorOf(["ApiError"], json(body), { name: "ApiError", status });
}

export function aiSdk({ status, body, headers }) {
  return errorOf(["APICallError", "AISDKError"], body?.error?.message ?? "failed", {
    name: "AI_APICallError",
    url: "https://h.example/v1",
    requestBodyValues: { messages: [{ content: "prompt is too long" }] },
    statusCode: status,
    responseHeaders: headers,
    responseBody: json(body),
    isRetryable: status >= 500,
    data: body,
  });
}

export function retried(inner, reason = "maxRetriesExceeded") {
  const message = `Failed after 3 attempts. Last error: ${inner.message}`;
  const members = { name: "AI_RetryError", reason, errors: [inner], lastError: inner };
  return errorOf(["RetryError", "AISDKError"], message, members);
}

export function langchain(answer) {
  const codes = { 401: "MODEL_AUTHENTICATION", 404: "MODEL_NOT_FOUND", 429: "MODEL_RATE_LIMIT" };
  const error = openai(answer);
  const lc_error_code = codes[answer.status];
  if (lc_error_code === undefined) return error;
  error.message += `\n\nTroubleshooting URL: https://docs.langchain.com/${lc_error_code}/\n`;
  return Object.assign(error, { lc_error_code });
}

/** Returns the error that `axios` throws; other packages pass it on. */
export function axios({ status, body, headers }) {
  const response = { status, data: body, headers: { ...headers } };
  const members = { name: "AxiosError", code: "ERR_BAD_REQUEST", response };
  return errorOf(["AxiosError"], `Request failed with status code ${status}`, members);
}

/** Returns an error of the program that wraps another error. */
export function wrapped(inner) {
  return new Error("the summary could not be made", { cause: inner });
}
