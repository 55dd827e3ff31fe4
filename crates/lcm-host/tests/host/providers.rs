//! The network providers against a server that answers by script.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use lcm_host::{
    Cancel,
    completion::{Anthropic, Chain, CompletionProvider, OpenAi},
    types::{Completion, CompletionError, CompletionErrorCode as Code, CompletionResult, Finish},
};
use serde_json::{Value, json};

use crate::{
    build_request,
    server::{Asked, Reply, Server, reply, response},
};

const KEY: &str = "sk-very-secret";

fn openai(server: &Server) -> OpenAi {
    OpenAi::parse(&format!("m@http://127.0.0.1:{}/v1", server.port), Some(KEY)).unwrap()
}

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::parse(&format!("m@http://127.0.0.1:{}", server.port), Some(KEY)).unwrap()
}

fn done(result: CompletionResult) -> Completion {
    match result {
        CompletionResult::Done(done) => done,
        CompletionResult::Failed(error) => panic!("failed with {error:?}"),
    }
}

fn failed(result: CompletionResult) -> CompletionError {
    match result {
        CompletionResult::Failed(error) => error,
        CompletionResult::Done(done) => panic!("answered {done:?}"),
    }
}

fn ask(provider: &dyn CompletionProvider) -> CompletionResult {
    provider.complete(&build_request("a \"long\" story"), &Cancel::default())
}

/// What OpenAI's shape of provider makes of one answer, and what it was asked.
fn openai_on(answer: Reply) -> (CompletionResult, Vec<Asked>) {
    let server = Server::start(vec![answer]);
    let result = ask(&openai(&server).with_timeout(Duration::from_secs(20)));
    (result, server.asked())
}

fn anthropic_on(answer: Reply) -> (CompletionResult, Vec<Asked>) {
    let server = Server::start(vec![answer]);
    let result = ask(&anthropic(&server).with_timeout(Duration::from_secs(20)));
    (result, server.asked())
}

fn chat(message: Value, finish: &str) -> Value {
    json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m-2025",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}})
}

fn chat_text(text: &str) -> Value {
    chat(json!({"role": "assistant", "content": text}), "stop")
}

fn message(content: Value, stop: &str) -> Value {
    json!({"id": "x", "type": "message", "role": "assistant", "model": "m-2025",
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 4}})
}

#[test]
fn chat_completions_are_asked_as_published() {
    let (result, asked) = openai_on(reply(200, &[], &chat_text("short")));
    let answer = done(result);
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("short", "m-2025"));
    assert_eq!((answer.input_tokens, answer.output_tokens), (9, 4));
    assert_eq!(answer.finish, Finish::Stop);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!(asked[0].header("content-type"), Some("application/json"));
    let expected = json!({"model": "m", "max_tokens": 34, "temperature": 0.2, "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "a \"long\" story"}]});
    assert_eq!(asked[0].body, expected);
}

#[test]
fn messages_are_asked_as_published() {
    let blocks = json!([{"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "sho"}, {"type": "text", "text": "rt"}]);
    let (result, asked) = anthropic_on(reply(200, &[], &message(blocks, "end_turn")));
    let answer = done(result);
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("short", "m-2025"));
    assert_eq!((answer.input_tokens, answer.output_tokens), (11, 4));
    assert_eq!(asked[0].line, "POST /v1/messages HTTP/1.1");
    assert_eq!(asked[0].header("x-api-key"), Some(KEY));
    assert_eq!(asked[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(asked[0].header("authorization"), None);
    let expected = json!({"model": "m", "max_tokens": 34, "temperature": 0.2,
        "system": "be brief", "messages": [{"role": "user", "content": "a \"long\" story"}]});
    assert_eq!(asked[0].body, expected);
}

#[test]
fn a_local_server_needs_no_key_and_the_providers_own_does() {
    let server = Server::start(vec![reply(200, &[], &chat_text("short"))]);
    let local = OpenAi::parse(&format!("m@http://127.0.0.1:{}", server.port), None).unwrap();
    assert_eq!(done(ask(&local)).text, "short");
    assert_eq!(server.asked()[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(server.asked()[0].header("authorization"), None);
    let openai = OpenAi::parse("m", None).unwrap();
    let anthropic = Anthropic::parse("m", Some(" ")).unwrap();
    let own: [(&dyn CompletionProvider, &str); 2] =
        [(&openai, "OPENAI"), (&anthropic, "ANTHROPIC")];
    for (provider, variable) in own {
        let error = failed(ask(provider));
        assert_eq!(error.code, Code::Auth);
        assert!(error.message.ends_with(&format!("needs {variable}_API_KEY")), "{error:?}");
    }
}

#[test]
fn endings_and_contents_of_every_published_kind_are_read() {
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "reasoning"},
        {"type": "text", "text": "b"}]});
    let thought = json!({"content": null, "reasoning_content": "hm"});
    let refusal = json!({"content": null, "refusal": "no"});
    for (content, reason, text, finish) in [
        (parts, "stop", "ab", Finish::Stop),
        (json!({"content": "cut"}), "length", "cut", Finish::Length),
        (thought, "length", "", Finish::Length),
        (refusal, "stop", "no", Finish::Refusal),
        (json!({"content": ""}), "content_filter", "", Finish::Refusal),
    ] {
        let answer = done(openai_on(reply(200, &[], &chat(content, reason))).0);
        assert_eq!((answer.text.as_str(), answer.finish), (text, finish), "{reason}");
    }
    let text = json!([{"type": "text", "text": "t"}]);
    for (content, reason, expected, finish) in [
        (text.clone(), "max_tokens", "t", Finish::Length),
        (text.clone(), "stop_sequence", "t", Finish::Stop),
        (json!([]), "refusal", "", Finish::Refusal),
        (json!([{"type": "thinking", "thinking": "hm"}]), "end_turn", "", Finish::Stop),
    ] {
        let answer = done(anthropic_on(reply(200, &[], &message(content, reason))).0);
        assert_eq!((answer.text.as_str(), answer.finish), (expected, finish), "{reason}");
    }
    let tool = failed(anthropic_on(reply(200, &[], &message(text, "tool_use"))).0);
    assert_eq!(tool.code, Code::Other);
    let call = chat(json!({"content": null, "tool_calls": []}), "tool_calls");
    assert_eq!(failed(openai_on(reply(200, &[], &call)).0).code, Code::Other);
}

/// Goal: no good answer is thrown away. Method: answers with members that a strict reader refuses,
/// each after public reports about a server or gateway.
#[test]
fn odd_members_and_bodies_are_no_failure() {
    let whole = chat_text("short");
    let with = |path: &str, value: Value| {
        let mut answer = whole.clone();
        *answer.pointer_mut(path).unwrap() = value;
        reply(200, &[], &answer)
    };
    let finishes = ["STOP", "end_turn", "", "COMPLETE", "eosFound", "a_new_word"];
    let mut answers: Vec<Reply> =
        finishes.map(|word| with("/choices/0/finish_reason", json!(word))).into();
    let counts = [json!(null), json!(9.7), json!("9"), json!(-1), json!([9]), json!({"a": 1})];
    answers.extend(counts.iter().map(|count| with("/usage/prompt_tokens", count.clone())));
    answers.extend([json!(null), json!([]), json!("9")].map(|usage| with("/usage", usage)));
    answers.push(with("/choices/0/finish_reason", json!(null)));
    answers.push(with("/choices/0/finish_reason", json!(7)));
    answers.push(with("/model", json!(7)));
    answers.push(reply(201, &[], &whole));
    let body = whole.to_string();
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"model": "m", "choices": [choice]}))
    };
    let stream = [
        ": OPENROUTER PROCESSING\n\n".to_owned(),
        chunk(json!({"role": "assistant", "reasoning_content": "hm"}), Value::Null),
        chunk(json!({"content": "sh"}), Value::Null),
        chunk(json!({"content": "ort"}), json!("stop")),
        "data: {\"choices\": [], \"usage\": {\"completion_tokens\": 4}}\n\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ];
    answers.extend(
        [
            format!(": keep-alive\n\n: keep-alive\n\n{body}"),
            format!("\n\n   {body}\n"),
            format!("\u{feff}{body}"),
            format!("data: {body}\n\ndata: [DONE]\n\n"),
            stream.concat(),
            stream.concat().replace("data: {", "event: x\r\ndata:{").replace("\n\n", "\r\n\r\n"),
        ]
        .map(|text| Reply::Raw(response(200, &[], &text))),
    );
    for answer in answers {
        let done = done(openai_on(answer).0);
        assert_eq!((done.text.as_str(), done.finish), ("short", Finish::Stop));
    }
    let half = body.replace("short", "sho\\ud83drt");
    assert_eq!(done(openai_on(Reply::Raw(response(200, &[], &half))).0).text, "sho\u{fffd}rt");
    for (word, finish) in [("MAX_TOKENS", Finish::Length), ("SAFETY", Finish::Refusal)] {
        let answer = with("/choices/0/finish_reason", json!(word));
        assert_eq!(done(openai_on(answer).0).finish, finish);
    }
    let streams = [
        (stream[..3].concat(), Code::Unavailable),
        ("data: {\"error\": {\"code\": 429}}\n\n".to_owned(), Code::RateLimited),
        ("data: [DONE]\n\n".to_owned(), Code::Other),
    ];
    for (text, code) in streams {
        assert_eq!(failed(openai_on(Reply::Raw(response(200, &[], &text))).0).code, code, "{text}");
    }
}

#[test]
fn odd_messages_of_anthropic_are_no_failure() {
    let whole = message(json!([{"type": "text", "text": "short"}]), "end_turn");
    let mut odd = vec![reply(201, &[], &whole)];
    for (path, value) in [
        ("/stop_reason", json!("")),
        ("/stop_reason", json!("STOP")),
        ("/usage", json!(null)),
        ("/usage/input_tokens", json!("9")),
        ("/usage/output_tokens", json!(4.5)),
        ("/model", json!(7)),
        ("/content", json!("short")),
    ] {
        let mut answer = whole.clone();
        *answer.pointer_mut(path).unwrap() = value;
        odd.push(reply(200, &[], &answer));
    }
    let stream = [
        json!({"type": "message_start", "message": {"model": "m", "content": [],
            "usage": {"input_tokens": 9}}}),
        json!({"type": "content_block_delta", "delta": {"type": "thinking_delta",
            "thinking": "hm"}}),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "sh"}}),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ort"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 4}}),
    ];
    let event = |event: &Value| format!("event: x\ndata: {event}\n\n");
    let events: String = stream.iter().map(event).collect();
    odd.push(Reply::Raw(response(200, &[], &events)));
    for answer in odd {
        let done = done(anthropic_on(answer).0);
        assert_eq!((done.text.as_str(), done.finish), ("short", Finish::Stop));
    }
    let full = message(json!([{"type": "text", "text": "sho"}]), "model_context_window_exceeded");
    assert_eq!(failed(anthropic_on(reply(200, &[], &full)).0).code, Code::ContextTooLong);
}

#[test]
fn refusals_are_classified_by_status_and_code() {
    let error = |kind: &str, code: Value, message: &str| {
        let error = json!({"type": kind, "code": code, "message": message});
        json!({"error": error})
    };
    let plain = || error("x", Value::Null, "went wrong");
    let long = error("invalid_request_error", json!("context_length_exceeded"), "too many");
    let vllm = error("BadRequestError", json!(400), "This model's maximum context length is 8");
    let gemini = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let policy = error("invalid_request_error", json!("content_policy_violation"), "no");
    for (status, body, code) in [
        (401, error("invalid_request_error", json!("invalid_api_key"), "no"), Code::Auth),
        (403, plain(), Code::Auth),
        (429, plain(), Code::RateLimited),
        (429, error("x", json!("insufficient_quota"), "pay"), Code::Auth),
        (400, long, Code::ContextTooLong),
        (400, vllm, Code::ContextTooLong),
        (
            400,
            json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": gemini}}]),
            Code::ContextTooLong,
        ),
        (400, json!({"message": "Input is too long for requested model."}), Code::ContextTooLong),
        (
            400,
            json!({"message": "too many tokens: total number of tokens in the prompt cannot \
            exceed 4081 - received 4292."}),
            Code::ContextTooLong,
        ),
        (400, policy, Code::Policy),
        (400, plain(), Code::Other),
        (404, plain(), Code::Other),
        (408, plain(), Code::Timeout),
        (500, plain(), Code::Unavailable),
        (503, json!("down"), Code::Unavailable),
        (307, json!({}), Code::Other),
        // A gateway that answers every failure with 200.
        (200, json!({"error": {"code": 429, "message": "busy"}}), Code::RateLimited),
        (200, json!({"error": "broken"}), Code::Unavailable),
    ] {
        let (result, asked) = openai_on(reply(status, &["location: /elsewhere"], &body));
        assert_eq!(failed(result).code, code, "{status} {body}");
        assert_eq!(asked.len(), 1, "one exchange for {status}");
    }
    let typed = |kind: &str, message: &str| {
        let error = json!({"type": kind, "message": message});
        json!({"type": "error", "error": error})
    };
    let long = "prompt is too long: 210000 tokens > 200000 maximum";
    let blocked = "Output blocked by content filtering policy";
    for (status, body, code) in [
        (401, typed("authentication_error", "invalid x-api-key"), Code::Auth),
        (403, typed("permission_error", "no"), Code::Auth),
        (400, typed("invalid_request_error", long), Code::ContextTooLong),
        (400, typed("invalid_request_error", blocked), Code::Policy),
        (413, typed("request_too_large", "large"), Code::ContextTooLong),
        (429, typed("rate_limit_error", "slow down"), Code::RateLimited),
        (500, typed("api_error", "oops"), Code::Unavailable),
        (504, typed("timeout_error", "late"), Code::Timeout),
        (529, typed("overloaded_error", "Overloaded"), Code::Unavailable),
    ] {
        let error = failed(anthropic_on(reply(status, &[], &body)).0);
        assert_eq!(error.code, code, "{status} {body}");
        assert!(error.message.starts_with(&format!("`anthropic:m` answered {status}: ")));
    }
}

#[test]
fn a_summary_that_speaks_of_refused_keys_is_a_summary() {
    let text = "they saw: 401 unauthorized, invalid api key, context_length_exceeded";
    assert_eq!(done(openai_on(reply(200, &[], &chat_text(text))).0).text, text);
}

#[test]
fn a_key_that_a_server_repeats_is_not_shown() {
    let body = json!({"error": {"message": format!("bad key\n{KEY}, or so")}});
    let error = failed(openai_on(reply(401, &[], &body)).0);
    assert_eq!(error.message, "`openai:m` answered 401: bad key [key], or so");
    let text = format!("<html>{KEY}</html>");
    let error = failed(anthropic_on(Reply::Raw(response(502, &[], &text))).0);
    assert_eq!(error.message, "`anthropic:m` answered 502: <html>[key]</html>");
}

#[test]
fn the_pause_that_a_provider_wants_is_kept() {
    let body = json!({"error": {"message": "busy"}});
    let error = failed(openai_on(reply(429, &["retry-after: 3"], &body)).0);
    assert_eq!(error.retry_after_ms, Some(3_000));
    let headers = ["retry-after: 3", "retry-after-ms: 250"];
    let error = failed(anthropic_on(reply(529, &headers, &body)).0);
    assert_eq!(error.retry_after_ms, Some(250));
}

#[test]
fn parameters_that_a_model_does_not_take_are_left_out_from_then_on() {
    let limit = json!({"error": {"param": "max_tokens", "code": "unsupported_parameter",
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. \
            Use 'max_completion_tokens' instead."}});
    let heat = json!({"error": {"param": "temperature", "code": "unsupported_value",
        "message": "Unsupported value: 'temperature' does not support 0.2 with this model."}});
    let answers =
        vec![reply(400, &[], &limit), reply(400, &[], &heat), reply(200, &[], &chat_text("short"))];
    let server = Server::start(answers);
    let model = openai(&server);
    assert_eq!(done(ask(&model)).text, "short");
    assert_eq!(done(ask(&model)).text, "short");
    let asked = server.asked();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[1].body["max_completion_tokens"], 34);
    assert_eq!(asked[1].body.get("max_tokens"), None);
    for later in &asked[2..] {
        assert_eq!(later.body.get("temperature"), None);
        assert_eq!(later.body["max_completion_tokens"], 34);
    }

    let heat = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "`temperature` is deprecated for this model."}});
    let text = json!([{"type": "text", "text": "t"}]);
    let server =
        Server::start(vec![reply(400, &[], &heat), reply(200, &[], &message(text, "end_turn"))]);
    assert_eq!(done(ask(&anthropic(&server))).text, "t");
    assert_eq!(server.asked()[1].body.get("temperature"), None);
}

#[test]
fn a_server_that_refuses_every_variant_is_not_asked_for_ever() {
    let both = json!({"error": {"message": "max_tokens, max_completion_tokens unsupported"}});
    let (result, asked) = openai_on(reply(400, &[], &both));
    assert_eq!(failed(result).code, Code::Other);
    assert_eq!(asked.len(), 3);
}

#[test]
fn answers_may_come_in_chunks_and_slowly() {
    let body = chat_text("gr\u{fc}n").to_string();
    let (first, second) = body.split_at(20);
    let chunks = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    assert_eq!(done(openai_on(Reply::Raw(chunks.clone().into_bytes())).0).text, "gr\u{fc}n");
    let slow = Reply::Slow(chunks.into_bytes(), Duration::from_millis(1));
    assert_eq!(done(openai_on(slow).0).text, "gr\u{fc}n");
}

#[test]
fn what_is_no_answer_is_no_completion() {
    let whole = response(200, &[], &chat_text("short").to_string());
    let cut = whole[..whole.len() - 10].to_vec();
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(9 << 20));
    for (bytes, code, words) in [
        (response(200, &[], "<html>"), Code::Other, "no completion"),
        (response(200, &[], r#"{"choices": []}"#), Code::Other, "without a choice"),
        (response(200, &[], &chat(json!({"content": 5}), "stop").to_string()), Code::Other, "text"),
        (response(200, &[], &chat(json!({}), "error").to_string()), Code::Unavailable, "`error`"),
        (response(200, &[], &large), Code::Other, "more than 8 MiB"),
        (b"SSH-2.0\r\n".to_vec(), Code::Other, "HTTP"),
        (cut, Code::Unavailable, "closed the connection"),
        (Vec::new(), Code::Unavailable, "closed the connection"),
    ] {
        let error = failed(openai_on(Reply::Raw(bytes)).0);
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(words), "{error:?}");
    }
    let error = failed(anthropic_on(Reply::Raw(response(200, &[], "{}"))).0);
    assert_eq!(error.code, Code::Other);
}

#[test]
fn nobody_there_is_unavailable() {
    // A port that was just free.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let model = OpenAi::parse(&format!("m@http://127.0.0.1:{port}/v1"), None).unwrap();
    let error = failed(ask(&model));
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.ends_with("connection refused"), "{error:?}");
}

#[test]
fn silence_ends_with_a_timeout_and_the_connection_is_closed() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec();
    for begun in [Vec::new(), head] {
        let server = Server::start(vec![Reply::Hang(begun)]);
        let error = failed(ask(&openai(&server).with_timeout(Duration::from_millis(150))));
        assert_eq!(error.code, Code::Timeout, "{error:?}");
        server.wait_until_gone();
    }
    // Bytes that trickle do not extend the time.
    let trickle = response(200, &[], &chat_text(&"x".repeat(1_000)).to_string());
    let server = Server::start(vec![Reply::Slow(trickle, Duration::from_millis(20))]);
    let error = failed(ask(&anthropic(&server).with_timeout(Duration::from_millis(150))));
    assert_eq!(error.code, Code::Timeout, "{error:?}");
}

#[test]
fn work_that_is_stopped_closes_the_connection_at_once() {
    let server = Server::start(vec![Reply::Hang(Vec::new())]);
    let cancel = Cancel::default();
    let model = openai(&server);
    let began = Instant::now();
    thread::scope(|scope| {
        let asking = scope.spawn(|| model.complete(&build_request("a \"long\" story"), &cancel));
        while server.asked().is_empty() {
            thread::yield_now();
        }
        cancel.cancel();
        assert_eq!(failed(asking.join().unwrap()).code, Code::Timeout);
    });
    server.wait_until_gone();
    assert!(began.elapsed() < Duration::from_secs(30), "not after the timeout of a minute");
}

#[test]
fn a_busy_provider_is_asked_again_after_the_pause_it_wants() {
    let busy = json!({"error": {"message": "busy"}});
    let server = Server::start(vec![
        reply(429, &["retry-after-ms: 120"], &busy),
        reply(200, &[], &chat_text("short")),
    ]);
    let began = Instant::now();
    assert_eq!(done(ask(&Chain::new(vec![Arc::new(openai(&server))]))).text, "short");
    assert!(began.elapsed() >= Duration::from_millis(120));
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn the_next_provider_is_asked_unless_the_first_refuses_the_key() {
    let failure = |status| reply(status, &["retry-after: 0"], &json!({"error": {"message": "x"}}));
    let second = Server::start(vec![reply(
        200,
        &[],
        &message(json!([{"type": "text", "text": "t"}]), "end_turn"),
    )]);
    let chain = |first: &Server| {
        Chain::new(vec![Arc::new(openai(first)), Arc::new(anthropic(&second))]).with_retries(1)
    };
    let down = Server::start(vec![failure(503)]);
    assert_eq!(done(ask(&chain(&down))).text, "t");
    assert_eq!((down.asked().len(), second.asked().len()), (2, 1));
    let long = json!({"error": {"message": "prompt is too long"}});
    let small = Server::start(vec![reply(400, &[], &long)]);
    assert_eq!(done(ask(&chain(&small))).text, "t");
    assert_eq!((small.asked().len(), second.asked().len()), (1, 2));
    let both = Chain::new(vec![Arc::new(openai(&small)), Arc::new(openai(&down))]);
    assert_eq!(failed(ask(&both.with_retries(0))).code, Code::ContextTooLong);
    let locked = Server::start(vec![failure(401)]);
    assert_eq!(failed(ask(&chain(&locked))).code, Code::Auth);
    assert_eq!((locked.asked().len(), second.asked().len()), (1, 2));
}
