"""Rules of Gemini's API for contents. Used by rules.py.

The types of its package have members of other clouds, so that those of the API are listed here.
"""

import base64
import binascii
import re

from shapes import refuse

# The data of a part, of which it has exactly one, with the members that the API documents.
DATA = {
    "codeExecutionResult": {"id", "outcome", "output"},
    "executableCode": {"id", "code", "language"},
    "fileData": {"fileUri", "mimeType"},
    "functionCall": {"args", "id", "name"},
    "functionResponse": {"id", "name", "parts", "response", "scheduling", "willContinue"},
    "inlineData": {"data", "mimeType"},
    "text": None,
    "toolCall": {"args", "id", "toolType"},
    "toolResponse": {"id", "response", "toolType"},
}
BESIDE = {"mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"}
OF_MODEL = {"codeExecutionResult", "executableCode", "functionCall", "toolCall", "toolResponse"}
REQUIRED = {
    "executableCode": {"code", "language"},
    "codeExecutionResult": {"outcome"},
    "fileData": {"fileUri"},
    "functionCall": {"name"},
    "functionResponse": {"name", "response"},
    "inlineData": {"data", "mimeType"},
}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
MIME_TYPE = re.compile(r"[a-z0-9.+-]+/[a-zA-Z0-9.+-]+")


def spell(name):
    """Returns the camel case of a member, which the API accepts in both spellings."""
    first, *others = name.split("_")
    return first + "".join(one[:1].upper() + one[1:] for one in others)


def members_of(value, allowed, path):
    """Returns the members that are not null, which the API takes as absent."""
    if not isinstance(value, dict):
        refuse(f"{path}: no object", value)
    members = {spell(name): one for name, one in value.items() if one is not None}
    if allowed is not None and (unknown := set(members) - allowed):
        refuse(f"{path}: unknown member {sorted(unknown)[0]}", value)
    return members


def check(contents):
    """Refuses an array that the API does not accept."""
    before, calls = None, []
    for content in contents:
        members = members_of(content, {"parts", "role"}, "content")
        role = members.get("role")
        if role not in ("user", "model"):
            refuse("unknown role", content)
        if before is None and role == "model":
            refuse("first content of the model", content)
        parts = members.get("parts")
        if not parts:
            refuse("content without parts", content)
        kinds = [check_part(part, role) for part in parts]
        found = [kind[1] for kind in kinds if kind[0] == "functionCall"]
        if found and before != "user":
            refuse("calls that do not follow the user", content)
        check_responses(kinds, calls)
        check_code(kinds)
        before, calls = role, found
    if before == "model":
        refuse("last content of the model", contents[-1])


def check_responses(kinds, calls):
    """Refuses responses that are not those of the calls of the content before."""
    responses = [kind[1] for kind in kinds if kind[0] == "functionResponse"]
    if not calls and not responses:
        return
    if len(responses) != len(calls):
        refuse("not as many responses as calls", [calls, responses])
    if len(responses) != len(kinds):
        refuse("more than responses behind calls", [kind[0] for kind in kinds])
    if sorted(map(str, calls)) != sorted(map(str, responses)):
        refuse("responses of other names or ids than the calls", [calls, responses])


def check_code(kinds):
    """Refuses a result of code that does not follow code."""
    before = None
    for kind, _ in kinds:
        if kind == "codeExecutionResult" and before != "executableCode":
            refuse("result of code without code before", [one[0] for one in kinds])
        before = kind


def check_part(part, role):
    """Refuses a part; returns its kind of data, and name and id of a call or response."""
    members = members_of(part, None, "part")
    unknown = set(members) - set(DATA) - BESIDE
    kinds = [name for name in members if name in DATA or name in unknown]
    if len(kinds) != 1:
        refuse(f"part with {len(kinds)} kinds of data", part)
    kind = kinds[0]
    if kind in unknown:
        # A kind of tomorrow is an object; a plain value is a member beside the data.
        if not isinstance(members[kind], dict):
            refuse(f"part: unknown member {kind}", part)
        return kind, None
    if role == "user" and (kind in OF_MODEL or members.keys() & {"thought", "thoughtSignature"}):
        refuse(f"{kind} of the user", part)
    if role == "model" and kind == "functionResponse":
        refuse("functionResponse of the model", part)
    signature = members.get("thoughtSignature")
    if signature is not None and not is_base64(signature):
        refuse("thoughtSignature without base64", part)
    if not isinstance(members.get("thought", False), bool):
        refuse("thought: no bool", part)
    if kind == "text":
        if not isinstance(members["text"], str) or not members["text"] and not signature:
            refuse("empty text", part)
        return kind, None
    return kind, check_data(kind, members[kind])


def check_data(kind, value):
    """Refuses the data of a part; returns name and id of a call or response."""
    data = members_of(value, DATA[kind], kind)
    if missing := REQUIRED.get(kind, set()) - set(data):
        refuse(f"{kind}: without {sorted(missing)[0]}", value)
    if kind == "inlineData" and not is_base64(data["data"]):
        refuse("inlineData without base64", value)
    if "mimeType" in data and not MIME_TYPE.fullmatch(data["mimeType"]):
        refuse(f"{kind}: mimeType", value)
    if kind == "fileData" and not data["fileUri"]:
        refuse("fileData without a URI", value)
    if kind not in ("functionCall", "functionResponse"):
        return None
    if not NAME.fullmatch(data["name"]):
        refuse("name of a tool with other characters or too long", value)
    if not isinstance(data.get("args", {}), dict):
        refuse("args: no object", value)
    if not isinstance(data.get("response", {}), dict):
        refuse("response: no object", value)
    for part in data.get("parts", ()):
        members = members_of(part, {"inlineData", "fileData"}, "part of a response")
        if len(members) != 1:
            refuse("part of a response without one kind of data", part)
        for name, one in members.items():
            check_data(name, one)
    return data["name"], data.get("id")


def is_base64(value):
    """Returns whether a value is base64, in either alphabet, of at least a byte."""
    if not isinstance(value, str) or not value:
        return False
    try:
        base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return False
    return True
