// What errors and answers of model providers mean: the table of `docs/model-failures.md`, as data.
//
// In: nothing. Out: rows of evidence, code and values; a test compares them with the document.

/** Rows of the table, the first match first. `refusal` and `length` are answers, not failures. */
export const FAILURE_TABLE = Object.freeze([
  {
    evidence: "name",
    code: "timeout",
    values: [
      "TimeoutError", "AbortError", "APITimeoutError", "APIConnectionTimeoutError",
      "APIUserAbortError", "ModelAbortError", "ModelTimeoutError", "TimeoutException", "Timeout",
      "ConnectTimeout", "ReadTimeout", "ConnectTimeoutError", "HeadersTimeoutError",
      "BodyTimeoutError",
    ],
  },
  {
    evidence: "name",
    code: "unavailable",
    values: [
      "APIConnectionError", "ModelConnectionError", "ModelAPIError", "ConnectionError",
      "NetworkError", "RemoteProtocolError", "ProxyError", "ClientConnectionError", "gaierror",
      "SocketError", "AI_EmptyResponseBodyError",
    ],
  },
  {
    evidence: "name",
    code: "auth",
    values: [
      "AI_LoadAPIKeyError", "CredentialsError", "DefaultCredentialsError",
      "ModelAuthenticationError", "ModelPermissionDeniedError",
      "AuthenticationError", "InsufficientQuotaError",
    ],
  },
  {
    evidence: "name",
    code: "rate-limited",
    values: [
      "ModelRateLimitError", "RateLimitError",
    ],
  },
  {
    evidence: "name",
    code: "context-too-long",
    values: [
      "ContextOverflowError", "ContextWindowExceededError", "RequestTooLargeError",
    ],
  },
  { evidence: "name", code: "policy", values: ["ContentPolicyViolationError"] },
  {
    evidence: "name",
    code: "refusal",
    values: [
      "ModelRefusalError", "ContentFilterFinishReasonError",
    ],
  },
  {
    evidence: "code",
    code: "auth",
    values: [
      "authentication_error", "permission_error", "invalid_api_key", "incorrect_api_key",
      "invalid_authentication_error", "api_key_invalid", "unauthenticated", "unauthorized",
      "permission_denied", "model_authentication", "insufficient_quota",
      "exceeded_current_quota_error", "billing_error", "billing_hard_limit_reached",
    ],
  },
  {
    evidence: "code",
    code: "policy",
    values: [
      "content_filter", "content_policy_violation", "responsibleaipolicyviolation",
      "data_inspection_failed", "invalid_prompt",
    ],
  },
  {
    evidence: "code",
    code: "rate-limited",
    values: [
      "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "too_many_requests",
      "resource_exhausted", "slow_down", "throttling",
      "throttling.ratequota", "throttling.allocationquota", "limit_requests", "model_rate_limit",
    ],
  },
  {
    evidence: "code",
    code: "timeout",
    values: [
      "timeout_error", "deadline_exceeded", "request_timeout", "request-timeout", "etimedout",
      "econnaborted", "esockettimedout", "und_err_connect_timeout", "und_err_headers_timeout",
      "und_err_body_timeout", "abort_err", "err_canceled",
    ],
  },
  {
    evidence: "code",
    code: "unavailable",
    values: [
      "overloaded_error", "engine_overloaded", "engine_overloaded_error", "server_error",
      "internal_error", "internal_server_error", "service_unavailable", "unavailable", "internal",
      "econnrefused", "econnreset", "enotfound", "eai_again", "epipe", "ehostunreach",
      "enetunreach", "err_network", "und_err_socket",
    ],
  },
  {
    evidence: "code",
    code: "context-too-long",
    values: [
      "context_length_exceeded", "exceed_context_size_error", "request_too_large",
      "model_max_prompt_tokens_exceeded", "model_context_window_exceeded",
      "string_above_max_length", "context_overflow",
    ],
  },
  { evidence: "status", code: "auth", values: ["401", "402", "403"] },
  { evidence: "status", code: "context-too-long", values: ["413"] },
  { evidence: "status", code: "rate-limited", values: ["429"] },
  { evidence: "status", code: "timeout", values: ["408", "504"] },
  { evidence: "status", code: "unavailable", values: ["5xx"] },
  {
    evidence: "words",
    code: "context-too-long",
    values: [
      "context_length_exceeded", "maximum context length", "context length exceeded",
      "exceeds the context window", "exceeds the context length", "context window exceeds limit",
      "exceeds the available context size", "context size has been exceeded",
      "configured context size is", "exceed context limit", "exceed_context_size",
      "exceeded max context length", "greater than the context length", "context length of only",
      "longer than the model's context length", "longer than the maximum model length",
      "maximum allowed input length", "maximum prompt length is", "prompt is too long",
      "prompt too long", "prompt exceeds max length", "prompt token count of",
      "input is too long", "input token count is", "input tokens exceed the configured limit",
      "exceeds the maximum number of tokens allowed", "exceeded model token limit",
      "tokens in the prompt cannot exceed", "too many tokens: size limit exceeded",
      "tokens in request more than max tokens allowed", "range of input length should be",
      "token length exceed", "reduce the length of the messages", "max input characters",
      "\u4e0a\u4e0b\u6587\u957f\u5ea6", "\u6700\u5927\u4e0a\u4e0b\u6587",
      "\u8f93\u5165\u957f\u5ea6\u8d85", "\u8d85\u51fa\u6700\u5927\u957f\u5ea6",
      "\u8d85\u8fc7\u6700\u5927\u957f\u5ea6", "\u957f\u5ea6\u8d85\u9650",
      "\u8f93\u5165\u8fc7\u957f", "\u8d85\u957f",
    ],
  },
  {
    evidence: "words",
    code: "policy",
    values: [
      "content policy", "content_policy", "content_filter", "content filtering policy",
      "content management policy", "violating our usage policy", "inappropriate content",
    ],
  },
  {
    evidence: "words",
    code: "auth",
    values: [
      "api key not valid", "incorrect api key", "invalid api key", "api key is missing",
      "could not resolve authentication method", "api_key client option must be set",
      "missing credentials",
    ],
  },
  {
    evidence: "words",
    code: "rate-limited",
    values: [
      "rate limit", "too many requests", "resource has been exhausted",
      "exceeded your current quota",
    ],
  },
  { evidence: "words", code: "timeout", values: ["timed out", "request was aborted"] },
  {
    evidence: "words",
    code: "unavailable",
    values: [
      "overloaded", "service unavailable", "cannot connect to api", "connection error",
      "connection refused", "connection reset", "fetch failed", "socket hang up",
    ],
  },
  {
    evidence: "finish",
    code: "length",
    values: [
      "length", "max_tokens", "max_output_tokens", "token_limit", "maxpredictedtokensreached",
    ],
  },
  {
    evidence: "finish",
    code: "refusal",
    values: [
      "refusal", "content_filter", "content_filtered", "guardrail_intervened", "safety",
      "recitation", "blocklist", "prohibited_content", "spii", "sensitive", "error_toxic",
    ],
  },
  {
    evidence: "finish",
    code: "context-too-long",
    values: [
      "model_context_window_exceeded", "model_length", "error_limit", "contextlengthreached",
    ],
  },
  {
    evidence: "finish",
    code: "timeout",
    values: [
      "timeout", "time_limit",
    ],
  },
  {
    evidence: "finish",
    code: "unavailable",
    values: [
      "error", "network_error", "insufficient_system_resource",
    ],
  },
  {
    evidence: "finish",
    code: "other",
    values: [
      "tool_calls", "tool_call", "tool_use", "function_call", "pause_turn",
      "malformed_function_call", "malformed_tool_use", "unexpected_tool_call",
    ],
  },
]);

function mapOf(evidence) {
  const rows = FAILURE_TABLE.filter((row) => row.evidence === evidence);
  return new Map(rows.flatMap(({ code, values }) => values.map((value) => [value, code])));
}

const NAMES = mapOf("name");
const CODES = mapOf("code");
const STATUSES = mapOf("status");
const WORDS = [...mapOf("words")];
const FINISHES = mapOf("finish");

/** Returns the code of a name of an error class; undefined: the name is not in the table. */
export const codeOfName = (name) => NAMES.get(name);

/** Returns the code of a provider's or system's code, without case. */
export const codeOfCode = (code) => CODES.get(code.toLowerCase());

/**
 * Returns what a word for the end of an answer means: `length`, `refusal` or the code of a failure;
 * undefined: the answer is complete.
 */
export const codeOfFinish = (word) => FINISHES.get(word.trim().toLowerCase().replaceAll("-", "_"));

/** Returns the code of an HTTP status. */
export function codeOfStatus(status) {
  return STATUSES.get(String(status)) ?? STATUSES.get(`${Math.floor(status / 100)}xx`);
}

/** Returns the code of the first words that are part of a text; `only` limits it to one code. */
export function codeOfWords(text, only) {
  const said = text.toLowerCase();
  const isSaid = ([words, code]) => (only === undefined || code === only) && said.includes(words);
  return WORDS.find(isSaid)?.[1];
}
