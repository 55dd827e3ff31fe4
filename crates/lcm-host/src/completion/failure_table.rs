//! What codes, statuses and words of providers mean, as data.
//!
//! The table is that of `docs/model-failures.md`.
//! In: a code, a status or a text. Out: a failure code. A test compares the rows with the document;
//! names of error classes belong to the packages alone.

use crate::types::CompletionErrorCode::{
    self as Code, Auth, ContextTooLong, Policy, RateLimited, Timeout, Unavailable,
};

/// The evidence of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Evidence {
    /// A code of a provider or of a system, in lower case.
    Code,
    /// An HTTP status, or `5xx` for the other server errors.
    Status,
    /// Words of a message, in lower case.
    Words,
}

/// Evidence, failure code and values.
pub(super) type FailureRow = (Evidence, Code, &'static [&'static str]);

/// Rows of the table, the first match first.
pub(super) const FAILURE_TABLE: &[FailureRow] = &[
    (
        Evidence::Code,
        Auth,
        &[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "incorrect_api_key",
            "invalid_authentication_error",
            "api_key_invalid",
            "unauthenticated",
            "unauthorized",
            "permission_denied",
            "model_authentication",
            "insufficient_quota",
            "exceeded_current_quota_error",
            "billing_error",
            "billing_hard_limit_reached",
        ],
    ),
    (
        Evidence::Code,
        Policy,
        &[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "invalid_prompt",
        ],
    ),
    (
        Evidence::Code,
        RateLimited,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_reached_error",
            "too_many_requests",
            "resource_exhausted",
            "slow_down",
            "throttling",
            "throttling.ratequota",
            "throttling.allocationquota",
            "limit_requests",
            "model_rate_limit",
        ],
    ),
    (
        Evidence::Code,
        Timeout,
        &[
            "timeout_error",
            "deadline_exceeded",
            "request_timeout",
            "request-timeout",
            "etimedout",
            "econnaborted",
            "esockettimedout",
            "und_err_connect_timeout",
            "und_err_headers_timeout",
            "und_err_body_timeout",
            "abort_err",
            "err_canceled",
        ],
    ),
    (
        Evidence::Code,
        Unavailable,
        &[
            "overloaded_error",
            "engine_overloaded",
            "engine_overloaded_error",
            "server_error",
            "internal_error",
            "internal_server_error",
            "service_unavailable",
            "unavailable",
            "internal",
            "econnrefused",
            "econnreset",
            "enotfound",
            "eai_again",
            "epipe",
            "ehostunreach",
            "enetunreach",
            "err_network",
            "und_err_socket",
        ],
    ),
    (
        Evidence::Code,
        ContextTooLong,
        &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "model_max_prompt_tokens_exceeded",
            "model_context_window_exceeded",
            "string_above_max_length",
            "context_overflow",
        ],
    ),
    (Evidence::Status, Auth, &["401", "402", "403"]),
    (Evidence::Status, ContextTooLong, &["413"]),
    (Evidence::Status, RateLimited, &["429"]),
    (Evidence::Status, Timeout, &["408", "504"]),
    (Evidence::Status, Unavailable, &["5xx"]),
    (
        Evidence::Words,
        ContextTooLong,
        &[
            "context_length_exceeded",
            "maximum context length",
            "context length exceeded",
            "exceeds the context window",
            "exceeds the context length",
            "context window exceeds limit",
            "exceeds the available context size",
            "context size has been exceeded",
            "configured context size is",
            "exceed context limit",
            "exceed_context_size",
            "exceeded max context length",
            "greater than the context length",
            "context length of only",
            "longer than the model's context length",
            "longer than the maximum model length",
            "maximum allowed input length",
            "maximum prompt length is",
            "prompt is too long",
            "prompt too long",
            "prompt exceeds max length",
            "prompt token count of",
            "input is too long",
            "input token count is",
            "input tokens exceed the configured limit",
            "exceeds the maximum number of tokens allowed",
            "exceeded model token limit",
            "tokens in the prompt cannot exceed",
            "too many tokens: size limit exceeded",
            "tokens in request more than max tokens allowed",
            "range of input length should be",
            "token length exceed",
            "reduce the length of the messages",
            "max input characters",
            "\u{4e0a}\u{4e0b}\u{6587}\u{957f}\u{5ea6}",
            "\u{6700}\u{5927}\u{4e0a}\u{4e0b}\u{6587}",
            "\u{8f93}\u{5165}\u{957f}\u{5ea6}\u{8d85}",
            "\u{8d85}\u{51fa}\u{6700}\u{5927}\u{957f}\u{5ea6}",
            "\u{8d85}\u{8fc7}\u{6700}\u{5927}\u{957f}\u{5ea6}",
            "\u{957f}\u{5ea6}\u{8d85}\u{9650}",
            "\u{8f93}\u{5165}\u{8fc7}\u{957f}",
            "\u{8d85}\u{957f}",
        ],
    ),
    (
        Evidence::Words,
        Policy,
        &[
            "content policy",
            "content_policy",
            "content_filter",
            "content filtering policy",
            "content management policy",
            "violating our usage policy",
            "inappropriate content",
        ],
    ),
    (
        Evidence::Words,
        Auth,
        &[
            "api key not valid",
            "incorrect api key",
            "invalid api key",
            "api key is missing",
            "could not resolve authentication method",
            "api_key client option must be set",
            "missing credentials",
        ],
    ),
    (
        Evidence::Words,
        RateLimited,
        &[
            "rate limit",
            "too many requests",
            "resource has been exhausted",
            "exceeded your current quota",
        ],
    ),
    (Evidence::Words, Timeout, &["timed out", "request was aborted"]),
    (
        Evidence::Words,
        Unavailable,
        &[
            "overloaded",
            "service unavailable",
            "cannot connect to api",
            "connection error",
            "connection refused",
            "connection reset",
            "fetch failed",
            "socket hang up",
        ],
    ),
];

fn list_rows(evidence: Evidence) -> impl Iterator<Item = &'static FailureRow> {
    FAILURE_TABLE.iter().filter(move |row| row.0 == evidence)
}

/// Returns the failure of a code, without case; `None`: the table does not have the code.
pub(super) fn code_of_code(code: &str) -> Option<Code> {
    let has = |row: &&FailureRow| row.2.iter().any(|known| known.eq_ignore_ascii_case(code));
    list_rows(Evidence::Code).find(has).map(|row| row.1)
}

/// Returns the failure of a status from 400; `None`: the table does not have the status.
pub(super) fn code_of_status(status: u16) -> Option<Code> {
    let find = |text: &str| list_rows(Evidence::Status).find(|row| row.2.contains(&text));
    find(&status.to_string()).or_else(|| find(&format!("{}xx", status / 100))).map(|row| row.1)
}

/// Returns the failure of the first row with words that are part of a text in lower case; `None`:
/// no row has such words.
pub(super) fn code_of_words(text: &str) -> Option<Code> {
    let is_said = |row: &&FailureRow| row.2.iter().any(|words| text.contains(words));
    list_rows(Evidence::Words).find(is_said).map(|row| row.1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::completion::error_name;

    /// Returns the rows of the document that have no names of classes.
    pub(in super::super) fn list_documented() -> Vec<(String, String, Vec<String>)> {
        let document = include_str!("../../../../docs/model-failures.md");
        let (_, table) = document.split_once("<!-- model-failures -->").unwrap();
        let (table, _) = table.split_once("<!-- /model-failures -->").unwrap();
        let rows = table.trim().lines().skip(2).map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let values = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (cells[0].to_owned(), cells[1].replace('`', ""), values)
        });
        rows.filter(|row| row.0 != "name").collect()
    }

    #[test]
    fn the_table_of_failures_is_that_of_the_document() {
        let rows = FAILURE_TABLE.iter().map(|(evidence, code, values)| {
            let evidence = format!("{evidence:?}").to_lowercase();
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            (evidence, error_name(*code).to_owned(), values)
        });
        let documented = list_documented().into_iter().filter(|row| row.0 != "finish");
        assert!(rows.eq(documented));
    }
}
