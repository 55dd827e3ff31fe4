//! Sends requests of the providers `anthropic` and `openai` over HTTP.
//!
//! In: `MODEL[@BASE-URL]` and a key once, then JSON bodies. Out: the status and the body of each
//! answer, or a classified failure. The providers read the bodies; the chain retries. Redirects are
//! not followed, because a redirect would send the key to another server.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use ureq::{
    Agent,
    http::{HeaderMap, Uri, header},
};

use super::finish::{self, FinishMeaning};
use crate::{
    clock::Cancel,
    error::{Code, Error, Result},
    types::{CompletionError, CompletionErrorCode, Finish},
};

/// Time limit from the name lookup to the last byte of the answer, by default.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of an answer's body; a summary with reasoning has tens of thousands.
const BODY_BYTES_MAX: u64 = 8 << 20;
/// Most characters of the message of a failure.
const MESSAGE_CHARS_MAX: usize = 300;
/// Pause between two looks at a pending answer.
const POLL: Duration = Duration::from_millis(20);
/// Longest pause that a provider can request: a day.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// An API key, which `Debug` does not show.
#[derive(Clone, Eq, PartialEq)]
struct ApiKey(String);

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[key]")
    }
}

/// A model behind an HTTP interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    /// `openai` or `anthropic`, for error texts.
    scheme: &'static str,
    /// Name of the model.
    pub(super) model: String,
    /// Base URL without a slash at its end, with `/v1` or the given path.
    base: String,
    /// Whether no base URL was given, so that the provider's default applies.
    pub(super) official: bool,
    key: Option<ApiKey>,
    timeout: Duration,
    connect_timeout: Duration,
}

/// What differs between the schemes `openai` and `anthropic`.
pub(super) struct Defaults {
    /// Name before the colon of `--llm`.
    pub(super) scheme: &'static str,
    /// Base URL of the provider.
    pub(super) base: &'static str,
    /// Name of the environment variable of the key, for error texts.
    pub(super) variable: &'static str,
}

/// An HTTP answer of any status.
pub(super) struct Answered {
    pub(super) status: u16,
    /// Pause that the provider requests before the next request; `None`: no pause, or an unreadable
    /// one.
    pub(super) retry_after_ms: Option<u64>,
    pub(super) body: Vec<u8>,
}

impl Endpoint {
    /// Parses `MODEL[@BASE-URL]`; a blank key counts as none.
    pub(super) fn parse(defaults: &Defaults, text: &str, key: Option<&str>) -> Result<Self> {
        let scheme = defaults.scheme;
        let (model, base) = split_base(text);
        if model.is_empty() {
            return Err(invalid(format!("`--llm {scheme}:` must name a model")));
        }
        if base.is_none() && model.contains('@') {
            // The text after `@` may be a URL without its scheme. Without this error the provider's
            // own service would receive the conversation.
            let message =
                format!("the base URL of `{scheme}:{model}` must start with http:// or https://");
            return Err(invalid(message));
        }
        let key = key.map(str::trim).filter(|key| !key.is_empty());
        if key.is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            let message =
                format!("`{}` must hold visible ASCII characters only", defaults.variable);
            return Err(invalid(message));
        }
        Ok(Self {
            scheme,
            model: model.to_owned(),
            base: base
                .map_or_else(|| Ok(defaults.base.to_owned()), |base| checked(scheme, base))?,
            official: base.is_none(),
            key: key.map(|key| ApiKey(key.to_owned())),
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
        })
    }

    /// Sets the time limit of an answer, which also bounds the connection; the default is a minute.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
        self.connect_timeout = CONNECT_TIMEOUT.min(timeout);
    }

    /// Returns the base URL followed by `path`.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the key for a header; `None`: there is no key.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.0.as_str())
    }

    /// Returns the failure `auth` if neither a base URL nor a key was given; `None`: the request
    /// can be sent.
    pub(super) fn missing_key(&self, variable: &str) -> Option<CompletionError> {
        let message = format!("`{}:{}` needs {variable}", self.scheme, self.model);
        (self.official && self.key.is_none())
            .then(|| self.error(CompletionErrorCode::Auth, &message))
    }

    /// Returns a failure whose message is one line of at most [`MESSAGE_CHARS_MAX`] characters,
    /// without the key.
    pub(super) fn error(&self, code: CompletionErrorCode, message: &str) -> CompletionError {
        let message = self.redacted(message);
        let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.chars().filter(|letter| !letter.is_control()).take(MESSAGE_CHARS_MAX);
        CompletionError { code, message: line.collect(), retry_after_ms: None }
    }

    /// Returns a failure that starts with the name of the model.
    pub(super) fn failure(&self, code: CompletionErrorCode, what: &str) -> CompletionError {
        self.error(code, &format!("`{}:{}` {what}", self.scheme, self.model))
    }

    /// Returns how an answer ended, by the provider's word; any other value counts as no word.
    pub(super) fn check_finish(
        &self,
        word: Option<&Value>,
    ) -> std::result::Result<Finish, CompletionError> {
        let word = word.and_then(Value::as_str);
        match finish::read_finish(word) {
            FinishMeaning::Ended(finish) => Ok(finish),
            FinishMeaning::Failed(code) => {
                let what = format!("ended with `{}`", word.unwrap_or_default());
                Err(self.failure(code, &what))
            }
        }
    }

    /// Returns the name of the model that answered: the name in the answer, else the name in the
    /// request.
    pub(super) fn model_name(&self, answer: &Value) -> String {
        let name = answer.get("model").and_then(Value::as_str).filter(|name| !name.is_empty());
        self.redacted(name.unwrap_or(&self.model))
    }

    /// Returns a text of the provider with `[key]` in place of the key.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.key().map_or_else(|| text.to_owned(), |key| text.replace(key, "[key]"))
    }

    /// Posts a JSON body and waits for the answer of any status. After a time-out, or when `cancel`
    /// is set, the connection is closed.
    pub(super) fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: &Value,
        cancel: &Cancel,
    ) -> std::result::Result<Answered, CompletionError> {
        let agent = self.agent();
        let mut request = agent.post(url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = body.to_string();
        let (sender, receiver) = mpsc::channel();
        // A separate thread, because a name lookup and a connection block.
        std::thread::spawn(move || sender.send(request.send(body).and_then(read)));
        let deadline = Instant::now() + self.timeout;
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(Ok(answered)) => return Ok(answered),
                Ok(Err(error)) => return Err(self.transport_failure(&error)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.failure(CompletionErrorCode::Other, "stopped answering"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancel.is_cancelled() {
                agent.shutdown();
                return Err(self.failure(CompletionErrorCode::Timeout, "was stopped by the caller"));
            }
            if Instant::now() >= deadline {
                agent.shutdown();
                return Err(self.timed_out());
            }
        }
    }

    /// Returns an HTTP client for one request. Requests are rare, so no connection is kept open.
    fn agent(&self) -> Agent {
        let builder = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .user_agent(concat!("lcm/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .timeout_connect(Some(self.connect_timeout))
            .timeout_global(Some(self.timeout));
        // A proxy cannot reach this machine by a loopback name.
        let builder = if self.is_loopback() { builder.proxy(None) } else { builder };
        builder.build().new_agent()
    }

    fn is_loopback(&self) -> bool {
        let uri: Option<Uri> = self.base.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    fn timed_out(&self) -> CompletionError {
        let what = format!("did not answer in {:?}", self.timeout);
        self.failure(CompletionErrorCode::Timeout, &what)
    }

    /// Classifies a failure below HTTP.
    fn transport_failure(&self, error: &ureq::Error) -> CompletionError {
        use ureq::Error as E;
        let (code, what) = match error {
            E::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                let what = format!("could not be reached in {:?}", self.connect_timeout);
                (CompletionErrorCode::Timeout, what)
            }
            E::Timeout(_) => return self.timed_out(),
            E::BodyExceedsLimit(limit) => {
                let what = format!("sent more than {} MiB", limit >> 20);
                (CompletionErrorCode::Other, what)
            }
            E::Io(cause) if cause.kind() == std::io::ErrorKind::ConnectionRefused => {
                (CompletionErrorCode::Unavailable, self.unreachable("connection refused"))
            }
            E::HostNotFound => (CompletionErrorCode::Unavailable, self.unreachable("no such host")),
            E::Io(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
                (CompletionErrorCode::Unavailable, "closed the connection".to_owned())
            }
            E::Io(_)
            | E::ConnectionFailed
            | E::ConnectProxyFailed(_)
            | E::Tls(_)
            | E::Rustls(_) => {
                (CompletionErrorCode::Unavailable, self.unreachable(&error.to_string()))
            }
            _ => (CompletionErrorCode::Other, format!("did not send valid HTTP: {error}")),
        };
        self.failure(code, &what)
    }

    fn unreachable(&self, why: &str) -> String {
        format!("cannot be reached at {}: {why}", self.base)
    }
}

fn read(
    mut response: ureq::http::Response<ureq::Body>,
) -> std::result::Result<Answered, ureq::Error> {
    let retry_after_ms = retry_after(response.headers());
    let body = response.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec()?;
    Ok(Answered { status: response.status().as_u16(), retry_after_ms, body })
}

/// Returns the pause of `retry-after-ms`, or of `retry-after` in seconds or as a date; `None`:
/// neither header has a readable value.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    let pause = if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(RETRY_AFTER_MAX)
    } else {
        let after = text(header::RETRY_AFTER.as_str())?;
        if let Some(seconds) = number(after) {
            Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX)
        } else {
            let then = httpdate::parse_http_date(after).ok()?;
            // The provider's clock, if the answer has a date, may differ from the local clock.
            let now =
                text(header::DATE.as_str()).and_then(|now| httpdate::parse_http_date(now).ok());
            then.duration_since(now.unwrap_or_else(SystemTime::now)).unwrap_or_default()
        }
    };
    u64::try_from(pause.min(RETRY_AFTER_MAX).as_millis()).ok()
}

/// Splits a text before the first `@http://` or `@https://`; `None`: the text is a model only.
fn split_base(text: &str) -> (&str, Option<&str>) {
    let at = ["@http://", "@https://"].iter().filter_map(|mark| text.find(mark)).min();
    match at.and_then(|at| text.split_at_checked(at)) {
        Some((model, base)) => (model, base.strip_prefix('@')),
        None => (text, None),
    }
}

/// Checks a base URL, and returns it without slashes at its end; an empty path becomes `/v1`.
fn checked(scheme: &str, base: &str) -> Result<String> {
    let uri: Uri = base.parse().map_err(|error| {
        invalid(format!("the base URL of `{scheme}:` must be a valid URL: {error}"))
    })?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if uri.host().is_none_or(str::is_empty) {
        return Err(invalid(format!("the base URL of `{scheme}:` must name a host")));
    }
    if authority.contains('@') {
        let message = format!("the base URL of `{scheme}:` must not hold a name or password");
        return Err(invalid(message));
    }
    if uri.query().is_some() || base.contains('#') {
        return Err(invalid(format!("the base URL of `{scheme}:` must end with its path")));
    }
    let base = base.trim_end_matches('/');
    Ok(if uri.path().trim_matches('/').is_empty() { format!("{base}/v1") } else { base.to_owned() })
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults =
        Defaults { scheme: "openai", base: "https://own.example/v1", variable: "THE_KEY" };

    fn parse(text: &str) -> Result<Endpoint> {
        Endpoint::parse(&DEFAULTS, text, Some("secret-1"))
    }

    #[test]
    fn a_base_url_stands_after_the_last_part_of_a_model() {
        let own = parse("gpt-x").unwrap();
        assert_eq!((own.model.as_str(), own.base.as_str()), ("gpt-x", DEFAULTS.base));
        assert!(own.official);
        let other = parse("@cf/org/m@https://h.example:8443/ai/v1/").unwrap();
        assert_eq!(other.model, "@cf/org/m");
        assert_eq!(other.url("/x"), "https://h.example:8443/ai/v1/x");
        assert!(!other.official);
        assert_eq!(parse("m@http://localhost:1").unwrap().base, "http://localhost:1/v1");
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_showing_it() {
        for text in [
            "",
            "@http://localhost/v1",
            "m@localhost:8080",
            "m@http://",
            "m@http://user:pass-word@localhost/v1",
            "m@http://localhost/v1?key=pass-word",
            "m@http://localhost/v1#pass-word",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidInput, "{text}");
            assert!(!error.message.contains("pass-word"), "{error}");
        }
        let bad_key = Endpoint::parse(&DEFAULTS, "m", Some("two\nlines")).unwrap_err();
        assert!(bad_key.message.contains("THE_KEY") && !bad_key.message.contains("two"));
    }

    #[test]
    fn a_key_is_never_shown() {
        let endpoint = parse("m").unwrap();
        assert!(!format!("{endpoint:?}").contains("secret-1"));
        let error = endpoint.failure(CompletionErrorCode::Auth, "said: bad\n key secret-1 \u{7}!");
        assert_eq!(error.message, "`openai:m` said: bad key [key] !");
        let long = endpoint.failure(CompletionErrorCode::Other, &"x".repeat(1_000));
        assert_eq!(long.message.chars().count(), MESSAGE_CHARS_MAX);
    }

    #[test]
    fn only_this_machine_is_asked_without_a_proxy() {
        for (base, expected) in [
            ("http://127.0.0.1:9/v1", true),
            ("http://[::1]:9/v1", true),
            ("http://LOCALHOST/v1", true),
            ("http://10.0.0.1/v1", false),
            ("https://localhost.example/v1", false),
        ] {
            assert_eq!(parse(&format!("m@{base}")).unwrap().is_loopback(), expected, "{base}");
        }
    }

    #[test]
    fn a_pause_is_milliseconds_seconds_or_a_date() {
        let of = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (header::HeaderName::from_static(name), value.parse().unwrap())
            });
            retry_after(&pairs.collect())
        };
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(of(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(1_500));
        assert_eq!(of(&[("retry-after", "2")]), Some(2_000));
        assert_eq!(of(&[("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT"), date]), Some(7_000));
        assert_eq!(of(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), date]), Some(0));
        assert_eq!(of(&[("retry-after", "1e300")]), Some(86_400_000));
        assert_eq!(of(&[("retry-after", "-1")]), None);
        assert_eq!(of(&[("retry-after", "soon")]), None);
        assert_eq!(of(&[]), None);
    }
}
