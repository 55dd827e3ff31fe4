"""Arrays that rules.py must refuse, each with words of the rule, and arrays that it must accept."""

CACHED = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
RAN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "code_execution_result",
        "content": [],
        "return_code": 0,
        "stderr": "",
        "stdout": "",
    },
}
FROM_CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}


def text(words="t"):
    """Returns a text block of Anthropic or a text part of Chat."""
    return {"type": "text", "text": words}


def use(call_id="c", **more):
    """Returns a call of Anthropic."""
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}, **more}


def result(name="c", **more):
    """Returns a result of Anthropic."""
    return {"type": "tool_result", "tool_use_id": name, "content": "r", **more}


def thought(**more):
    """Returns a signed thought of Anthropic."""
    return {"type": "thinking", "thinking": "h", "signature": "c2ln", **more}


def turns(*contents):
    """Returns turns of Anthropic that alternate from the user on."""
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": one} for at, one in enumerate(contents)]


def url(kind, address):
    """Returns an image or a document of Anthropic by its URL."""
    return {"type": kind, "source": {"type": "url", "url": address}}


ANTHROPIC = [
    ("unknown role", [{"role": "tool", "content": "q"}]),
    ("system message not behind", [{"role": "system", "content": "s"}, *turns("q")]),
    ("first turn not of the user", [{"role": "assistant", "content": "a"}, *turns("q")]),
    ("last turn of the model", turns("q", "a")),
    ("empty content", turns([])),
    ("blank text", turns([text(" \n")])),
    ("unknown member index", turns([{**text(), "index": 0}])),
    ("user: unknown member timestamp", [{"role": "user", "content": "q", "timestamp": 5}]),
    ("text: without text", turns([{"type": "text"}])),
    ("more than 4 cache_control", turns([CACHED] * 5)),
    ("cache_control", turns("q", [thought(cache_control=None), text()], "q")),
    ("thinking without a signature", turns("q", [thought(signature=""), text()], "q")),
    ("thinking: without signature", turns("q", [{"type": "thinking", "thinking": "h"}], "q")),
    ("thinking ends a turn", turns("q", [text(), thought()], "q")),
    ("thinking not of the model", turns([thought(), text()])),
    ("call without a result", turns("q", [use()], "q")),
    ("call without a result", turns("q", [use(), use("d")], [result()])),
    ("result without its call", turns([result()])),
    ("result without its call", turns("q", [use()], [result()], "a", [result()])),
    ("two results of one call", turns("q", [use()], [result(), result()])),
    ("id of two calls", turns("q", [use()], [result()], [use()], [result()])),
    ("results not first", turns("q", [use()], [text(), result()])),
    ("id of a call with other", turns("q", [use("a.b")], [result("a.b")])),
    ("name of a tool", turns("q", [use(name="read it")], [result()])),
    ("tool_use.input: no object", turns("q", [use(input="{}")], [result()])),
    ("error without content", turns("q", [use()], [result(content="", is_error=True)])),
    (
        "error with more than text",
        turns("q", [use()], [result(content=[url("image", "https://a.example")], is_error=True)]),
    ),
    ("tool_use not of the model", turns([use()])),
    ("image not of the user", turns("q", [url("image", "https://a.example")], "q")),
    ("URL", turns([url("document", "file:///a.pdf")])),
    (
        "without base64",
        turns(
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "?"},
                }
            ]
        ),
    ),
    (
        "none of the allowed values",
        turns(
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/bmp", "data": "aaaa"},
                }
            ]
        ),
    ),
    ("srvtoolu_", turns("q", [{**CODE, "id": "c"}])),
    ("server call without a result", turns("q", [CODE, text()], "q")),
    ("server result without its call", turns("q", [RAN], "q")),
    ("server result without its call", turns("q", [RAN, CODE])),
    ("last turn of the model", turns("q", [CODE, text()])),
    (
        "another type than its call",
        turns("q", [{**CODE, "name": "web_fetch"}, RAN], "q"),
    ),
    ("caller names no", turns("q", [use(caller=FROM_CODE)], [result()])),
    ("more than results", turns("q", [CODE, use(caller=FROM_CODE)], [result(), text()])),
    ("before the results", turns("q", [CODE, use(caller=FROM_CODE), RAN], [result()])),
]


def asks(*names, **more):
    """Returns a message of Chat with calls."""
    function = {"name": "read", "arguments": "{}"}
    calls = [{"type": "function", "id": name, "function": function} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answer(name="c", **more):
    """Returns a tool message of Chat."""
    return {"role": "tool", "tool_call_id": name, "content": "r", **more}


def asks_with(function):
    """Returns a message of Chat with a call of a function."""
    return {"role": "assistant", "tool_calls": [{"type": "function", "id": "c", **function}]}


USER = {"role": "user", "content": "q"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example"}}

CHAT = [
    ("unknown role", [{"role": "model", "content": "q"}]),
    ("unknown member timestamp", [{"role": "user", "content": "q", "timestamp": 5}]),
    ("user: without content", [{"role": "user"}]),
    ("empty array of content", [{"role": "user", "content": []}]),
    ("user.content: null", [{"role": "user", "content": None}]),
    ("call without its tool message", [USER, asks("c")]),
    ("call without its tool message", [USER, asks("c", "d"), answer("c"), USER]),
    ("tool message without its call", [USER, answer()]),
    ("tool message without its call", [USER, asks("c"), answer(), answer()]),
    ("call without its tool message", [USER, asks("c"), USER, answer()]),
    ("id of two calls", [USER, asks("c", "c"), answer(), answer()]),
    ("over 40 characters", [USER, asks("c" * 41), answer("c" * 41)]),
    ("name of a tool", [USER, asks_with({"function": {"name": "a b", "arguments": ""}})]),
    ("arguments: no str", [USER, asks_with({"function": {"name": "a", "arguments": {}}})]),
    ("empty array of calls", [USER, asks()]),
    ("without content or calls", [{"role": "assistant", "content": None}]),
    ("member id of a response", [{"role": "assistant", "content": "a", "id": "m"}]),
    ("member parsed of a response", [{"role": "assistant", "content": "a", "parsed": {}}]),
    ("refusal: null", [{"role": "assistant", "content": "a", "refusal": None}]),
    ("image_url: without text", [USER, asks("c"), answer(content=[IMAGE])]),
    ("image_url: without text", [{"role": "system", "content": [IMAGE]}]),
    ("image without a URL", [{"role": "user", "content": [{**IMAGE, "image_url": {"url": "a"}}]}]),
    ("name with other characters", [{**USER, "name": "a b"}]),
]


def call(call_id="c", **more):
    """Returns a function call of Responses."""
    item = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return {**item, **more}


def output(name="c", **more):
    """Returns the output of a function call of Responses."""
    return {"type": "function_call_output", "call_id": name, "output": "r", **more}


def said(name, role="assistant", kind="output_text"):
    """Returns a message of Responses with an array."""
    content = [{"type": kind, "text": "a", "annotations": []}]
    item = {"type": "message", "id": name, "role": role, "status": "completed"}
    return {**item, "content": content}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
PROGRAM = {"type": "program", "id": "p", "call_id": "p", "code": "c", "fingerprint": "f"}
ENDED = {"type": "program_output", "id": "o", "call_id": "p", "result": "", "status": "completed"}
FROM_PROGRAM = {"type": "program", "caller_id": "p"}

RESPONSES = [
    ("function_call without its output", [USER, call()]),
    ("output without an open call", [USER, output()]),
    ("output without an open call", [USER, output(), call()]),
    ("output without an open call", [USER, call(), output(), output()]),
    ("call_id of two calls", [USER, call(), output(), call(), output()]),
    ("another type", [USER, call(), output(type="custom_tool_call_output")]),
    ("unknown member parsed_arguments", [USER, call(parsed_arguments={}), output()]),
    ("status: null", [USER, call(status=None), output()]),
    ("arguments: no str", [USER, call(arguments={}), output()]),
    ("without name", [USER, {"type": "function_call", "call_id": "c", "arguments": ""}]),
    ("name of a tool", [USER, call(name="a b"), output()]),
    ("over 64 characters", [USER, call("c" * 65), output("c" * 65)]),
    ("without fc", [USER, call(id="call_1"), output()]),
    ("without msg", [USER, said("m")]),
    ("without rs", [{**REASONING, "id": "1"}, said("msg_1")]),
    ("id of two items", [USER, said("msg_1"), said("msg_1")]),
    ("reference to a missing", [USER, {"type": "item_reference", "id": "msg_1"}]),
    ("without its following", [USER, REASONING]),
    ("without its following", [REASONING, USER]),
    ("without its following", [call(), REASONING, output()]),
    ("input_text in a message", [said("msg_1", kind="input_text")]),
    ("output_text in a message", [{"role": "user", "content": said("m")["content"]}]),
    ("empty array of content", [{"role": "user", "content": []}]),
    ("unknown role", [{"role": "tool", "content": "q"}]),
    ("caller names no program", [call(caller=FROM_PROGRAM), output()]),
    ("program without its output", [PROGRAM, USER]),
    ("program without its output", [PROGRAM, call(caller=FROM_PROGRAM), output(), USER]),
    ("output of a program before", [PROGRAM, call(caller=FROM_PROGRAM), ENDED, output()]),
    ("program that has ended", [PROGRAM, ENDED, call(caller=FROM_PROGRAM), output()]),
    ("image without its URL", [{"role": "user", "content": [{"type": "input_image"}]}]),
]


def content(role, *parts):
    """Returns a content of Gemini."""
    return {"role": role, "parts": list(parts)}


def asked(**more):
    """Returns a part of Gemini with a call."""
    return {"functionCall": {"name": "read", "args": {}, **more}}


def responded(**more):
    """Returns a part of Gemini with a response."""
    return {"functionResponse": {"name": "read", "response": {}, **more}}


Q, A = content("user", {"text": "q"}), content("model", {"text": "a"})
CALLS = content("model", asked(id="c"))
RESPONDS = content("user", responded(id="c"))
DATA = {"inlineData": {"mimeType": "image/png", "data": "aaaa"}}

GEMINI = [
    ("unknown role", [content("function", {"text": "q"})]),
    ("first content of the model", [A, Q]),
    ("last content of the model", [Q, A]),
    ("content without parts", [content("user")]),
    ("content: unknown member", [{**Q, "timestamp": 5}]),
    ("part with 2 kinds", [content("user", {"text": "q", "index": 0})]),
    ("empty text", [content("user", {"text": ""})]),
    ("part with 0 kinds", [content("user", {})]),
    ("part with 2 kinds", [content("user", {"text": "q", **DATA})]),
    ("not as many responses", [Q, CALLS, Q]),
    ("not as many responses", [Q, content("model", asked(), asked()), RESPONDS]),
    ("not as many responses", [RESPONDS]),
    ("not as many responses", [Q, CALLS, RESPONDS, RESPONDS]),
    ("more than responses", [Q, CALLS, content("user", responded(id="c"), {"text": "q"})]),
    ("other names or ids", [Q, CALLS, content("user", responded(id="d"))]),
    ("other names or ids", [Q, CALLS, content("user", responded(id="c", name="write"))]),
    ("do not follow the user", [Q, A, CALLS, RESPONDS]),
    ("functionCall of the user", [content("user", asked())]),
    ("functionResponse of the model", [Q, content("model", responded())]),
    ("response: no object", [Q, CALLS, content("user", responded(id="c", response="r"))]),
    ("args: no object", [Q, content("model", asked(args="{}")), RESPONDS]),
    ("functionResponse: without", [Q, CALLS, content("user", {"functionResponse": {"id": "c"}})]),
    ("name of a tool", [Q, content("model", asked(name="a b"))]),
    ("functionCall: unknown", [Q, content("model", asked(index=0))]),
    ("without base64", [content("user", {"inlineData": {"mimeType": "image/png", "data": ""}})]),
    ("thoughtSignature without", [Q, content("model", {"text": "a", "thoughtSignature": "?"}), Q]),
    ("text of the user", [content("user", {"text": "q", "thought": True})]),
    (
        "result of code without",
        [Q, content("model", {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}), Q],
    ),
]

BROKEN = [
    (dialect, kind, messages)
    for dialect, arrays in [
        ("anthropic", ANTHROPIC),
        ("openai-chat", CHAT),
        ("openai-responses", RESPONSES),
        ("gemini", GEMINI),
    ]
    for kind, messages in arrays
]

NOVEL = {"type": "novel", "x": None}
ACCEPTED = [
    ("anthropic", turns([NOVEL, text()])),
    ("anthropic", turns("q", [thought(), use()], [result(), text()], "a", "q")),
    ("anthropic", turns("q", [CODE])),
    ("anthropic", turns("q", [CODE, use(caller=FROM_CODE)], [result()])),
    ("anthropic", turns("q", [CODE, use(caller=FROM_CODE)], [result()], [RAN, text()], "q")),
    ("anthropic", [*turns("q"), {"role": "system", "content": "s"}]),
    ("openai-chat", [USER, asks("c", "d", reasoning_content="h"), answer("d"), answer("c")]),
    ("openai-chat", [{"role": "user", "content": [text(), IMAGE, NOVEL]}]),
    ("openai-responses", [USER, REASONING, call(id="fc_1"), call("d"), output("d"), output()]),
    ("openai-responses", [{"type": "of_tomorrow", "x": None}, REASONING, said("msg_1")]),
    ("openai-responses", [PROGRAM, call(caller=FROM_PROGRAM), output(), ENDED, USER]),
    ("openai-responses", [USER, PROGRAM, call(caller=FROM_PROGRAM), output()]),
    ("gemini", [Q, CALLS, RESPONDS, A, content("user", {"ofTomorrow": {}}, DATA)]),
    ("gemini", [Q, content("model", {"text": "", "thoughtSignature": "c2ln"}), Q]),
]
