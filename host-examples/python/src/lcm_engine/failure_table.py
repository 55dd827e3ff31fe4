"""What errors and answers of model providers mean: the table of `docs/model-failures.md`, as data.

In: a name, code, status or text. Out: a failure code; None: the table does not have it. A test
compares the rows with the document. `refusal` and `length` are answers, not failures.
"""

from __future__ import annotations

Row = tuple[str, str, tuple[str, ...]]
"""Evidence, code and values."""

FAILURE_TABLE: tuple[Row, ...] = (
    (
        "name",
        "timeout",
        (
            "TimeoutError", "AbortError", "APITimeoutError", "APIConnectionTimeoutError",
            "APIUserAbortError", "ModelAbortError", "ModelTimeoutError", "TimeoutException",
            "Timeout", "ConnectTimeout", "ReadTimeout", "ConnectTimeoutError",
            "HeadersTimeoutError", "BodyTimeoutError",
        ),
    ),
    (
        "name",
        "unavailable",
        (
            "APIConnectionError", "ModelConnectionError", "ModelAPIError", "ConnectionError",
            "NetworkError", "RemoteProtocolError", "ProxyError", "ClientConnectionError",
            "gaierror", "SocketError", "AI_EmptyResponseBodyError",
        ),
    ),
    (
        "name",
        "auth",
        (
            "AI_LoadAPIKeyError", "CredentialsError", "DefaultCredentialsError",
            "ModelAuthenticationError", "ModelPermissionDeniedError",
            "AuthenticationError", "InsufficientQuotaError",
        ),
    ),
    ("name", "rate-limited", ("ModelRateLimitError", "RateLimitError",)),
    (
        "name",
        "context-too-long",
        (
            "ContextOverflowError", "ContextWindowExceededError", "RequestTooLargeError",
        ),
    ),
    ("name", "policy", ("ContentPolicyViolationError",)),
    ("name", "refusal", ("ModelRefusalError", "ContentFilterFinishReasonError")),
    (
        "code",
        "auth",
        (
            "authentication_error", "permission_error", "invalid_api_key", "incorrect_api_key",
            "invalid_authentication_error", "api_key_invalid", "unauthenticated", "unauthorized",
            "permission_denied", "model_authentication", "insufficient_quota",
            "exceeded_current_quota_error", "billing_error", "billing_hard_limit_reached",
        ),
    ),
    (
        "code",
        "policy",
        (
            "content_filter", "content_policy_violation", "responsibleaipolicyviolation",
            "data_inspection_failed", "invalid_prompt",
        ),
    ),
    (
        "code",
        "rate-limited",
        (
            "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error",
            "too_many_requests", 
            "resource_exhausted", "slow_down",
            "throttling", "throttling.ratequota", "throttling.allocationquota", "limit_requests",
            "model_rate_limit",
        ),
    ),
    (
        "code",
        "timeout",
        (
            "timeout_error", "deadline_exceeded", "request_timeout", "request-timeout",
            "etimedout", "econnaborted", "esockettimedout", "und_err_connect_timeout",
            "und_err_headers_timeout", "und_err_body_timeout", "abort_err", "err_canceled",
        ),
    ),
    (
        "code",
        "unavailable",
        (
            "overloaded_error", "engine_overloaded", "engine_overloaded_error", "server_error",
            "internal_error", "internal_server_error", "service_unavailable", "unavailable",
            "internal", "econnrefused", "econnreset", "enotfound", "eai_again", "epipe",
            "ehostunreach", "enetunreach", "err_network", "und_err_socket",
        ),
    ),
    (
        "code",
        "context-too-long",
        (
            "context_length_exceeded", "exceed_context_size_error", "request_too_large",
            "model_max_prompt_tokens_exceeded", "model_context_window_exceeded",
            "string_above_max_length", "context_overflow",
        ),
    ),
    ("status", "auth", ("401", "402", "403")),
    ("status", "context-too-long", ("413",)),
    ("status", "rate-limited", ("429",)),
    ("status", "timeout", ("408", "504")),
    ("status", "unavailable", ("5xx",)),
    (
        "words",
        "context-too-long",
        (
            "context_length_exceeded", "maximum context length", "context length exceeded",
            "exceeds the context window", "exceeds the context length",
            "context window exceeds limit", "exceeds the available context size",
            "context size has been exceeded", "configured context size is", "exceed context limit",
            "exceed_context_size", "exceeded max context length",
            "greater than the context length", "context length of only",
            "longer than the model's context length", "longer than the maximum model length",
            "maximum allowed input length", "maximum prompt length is", "prompt is too long",
            "prompt too long", "prompt exceeds max length", "prompt token count of",
            "input is too long", "input token count is",
            "input tokens exceed the configured limit",
            "exceeds the maximum number of tokens allowed", "exceeded model token limit",
            "tokens in the prompt cannot exceed", "too many tokens: size limit exceeded",
            "tokens in request more than max tokens allowed", "range of input length should be",
            "token length exceed", "reduce the length of the messages", "max input characters",
            "\u4e0a\u4e0b\u6587\u957f\u5ea6", "\u6700\u5927\u4e0a\u4e0b\u6587",
            "\u8f93\u5165\u957f\u5ea6\u8d85", "\u8d85\u51fa\u6700\u5927\u957f\u5ea6",
            "\u8d85\u8fc7\u6700\u5927\u957f\u5ea6", "\u957f\u5ea6\u8d85\u9650",
            "\u8f93\u5165\u8fc7\u957f", "\u8d85\u957f",
        ),
    ),
    (
        "words",
        "policy",
        (
            "content policy", "content_policy", "content_filter", "content filtering policy",
            "content management policy", "violating our usage policy", "inappropriate content",
        ),
    ),
    (
        "words",
        "auth",
        (
            "api key not valid", "incorrect api key", "invalid api key", "api key is missing",
            "could not resolve authentication method", "api_key client option must be set",
            "missing credentials",
        ),
    ),
    (
        "words",
        "rate-limited",
        (
            "rate limit", "too many requests", "resource has been exhausted",
            "exceeded your current quota",
        ),
    ),
    ("words", "timeout", ("timed out", "request was aborted")),
    (
        "words",
        "unavailable",
        (
            "overloaded", "service unavailable", "cannot connect to api", "connection error",
            "connection refused", "connection reset", "fetch failed", "socket hang up",
        ),
    ),
    (
        "finish",
        "length",
        (
            "length", "max_tokens", "max_output_tokens", "token_limit",
            "maxpredictedtokensreached",
        ),
    ),
    (
        "finish",
        "refusal",
        (
            "refusal", "content_filter", "content_filtered", "guardrail_intervened",
            "safety", "recitation", "blocklist", "prohibited_content", "spii",
            "sensitive", "error_toxic",
        ),
    ),
    (
        "finish",
        "context-too-long",
        (
            "model_context_window_exceeded", "model_length", "error_limit",
            "contextlengthreached",
        ),
    ),
    (
        "finish",
        "timeout",
        (
            "timeout", "time_limit",
        ),
    ),
    (
        "finish",
        "unavailable",
        (
            "error", "network_error", "insufficient_system_resource",
        ),
    ),
    (
        "finish",
        "other",
        (
            "tool_calls", "tool_call", "tool_use", "function_call", "pause_turn",
            "malformed_function_call", "malformed_tool_use", "unexpected_tool_call",
        ),
    ),
)


def _map_of(evidence: str) -> dict[str, str]:
    rows = [row for row in FAILURE_TABLE if row[0] == evidence]
    return {value: code for _, code, values in rows for value in values}


_NAMES = _map_of("name")
_CODES = _map_of("code")
_STATUSES = _map_of("status")
_WORDS = _map_of("words")
_FINISHES = _map_of("finish")


def code_of_name(name: str) -> str | None:
    """Returns the code of a name of an error class."""
    return _NAMES.get(name)


def code_of_code(code: str) -> str | None:
    """Returns the code of a provider's or system's code, without case."""
    return _CODES.get(code.lower())


def code_of_finish(word: str) -> str | None:
    """Returns what a word for the end of an answer means: `length`, `refusal` or a failure's code.

    None: the answer is complete.
    """
    return _FINISHES.get(word.strip().lower().replace("-", "_"))


def code_of_status(status: int) -> str | None:
    """Returns the code of an HTTP status."""
    return _STATUSES.get(str(status)) or _STATUSES.get(f"{status // 100}xx")


def code_of_words(text: str, only: str | None = None) -> str | None:
    """Returns the code of the first words that are part of a text; `only`: of this code."""
    said = text.lower()
    for words, code in _WORDS.items():
        if only in (None, code) and words in said:
            return code
    return None
