"""Writes texts of published packages by class, as JSON lines: texts.py FOLDER

FOLDER has `node_modules` and `venv` with the packages of `package.json` and `requirements.txt`, and
`trace.log`. Each line is {"class", "source", "text"}. The texts are the same in every run, have at
most 6,000 characters, and come from packages that no cost was fitted to. Run by tests/tokens/run.
"""

import base64
import hashlib
import json
import re
import sys
import uuid
from pathlib import Path

from languages import language_texts
from pieces import cut, read, take_middle

from pylatexenc.latex2text import LatexNodes2Text

SCRIPTS = [
    "node_modules/bats/libexec/bats-core/bats-exec-test",
    "node_modules/bats/lib/bats-core/test_functions.bash",
    "node_modules/bats/libexec/bats-core/bats-format-junit",
    "node_modules/pure-prompt/pure.zsh",
    "venv/bin/virtualenvwrapper.sh",
]
PROGRAMS = [
    "node_modules/lodash/lodash.js",
    "node_modules/vue/dist/vue.cjs.js",
    "node_modules/katex/src/Parser.ts",
    "node_modules/katex/dist/katex.css",
    "node_modules/node-addon-api/napi-inl.h",
    "node_modules/@capacitor/android/capacitor/src/main/java/com/getcapacitor/Bridge.java",
    "node_modules/@capacitor/ios/Capacitor/Capacitor/CapacitorBridge.swift",
    "{python}/rich/console.py",
    "{python}/trytond/model/modelsql.py",
    "{python}/wagtail/models/sites.py",
    "{python}/wagtail/admin/templates/wagtailadmin/pages/edit.html",
]
PROSE = [
    "node_modules/bats/man/bats.7.ronn",
    "node_modules/katex/README.md",
    "node_modules/node-addon-api/README.md",
    "{python}/virtualenvwrapper-6.1.1.dist-info/METADATA",
]
TABLES = "airports birdstrikes disasters github la-riots seattle-weather species stocks zipcodes"
OBJECTS = "barley cars earthquakes flare miserables movies penguins weekly-weather world-110m"


def stream(name, count):
    """Returns bytes without any order: SHA-256 of a counter."""
    blocks = (hashlib.sha256(f"{name} {at}".encode()).digest() for at in range(count // 32 + 1))
    return b"".join(blocks)[:count]


def numbers(name, count):
    """Returns numbers below 2^32, as `stream`."""
    data = stream(name, 4 * count)
    return [int.from_bytes(data[4 * at : 4 * at + 4], "big") for at in range(count)]


def encoded_texts(folder):
    """Yields base64 and hexadecimal digits of fonts, images, programs and bytes without order."""
    packages = folder / "node_modules"
    font = (packages / "katex/dist/fonts/KaTeX_Main-Regular.woff2").read_bytes()
    image = (packages / "vega-datasets/data/ffox.png").read_bytes()
    program = (packages / "lodash/lodash.js").read_bytes()
    token = base64.urlsafe_b64encode(stream("token", 4500)).decode()
    yield "base64", "katex font", base64.b64encode(font).decode()
    yield "base64", "vega-datasets image", base64.encodebytes(image).decode()
    yield "base64", "lodash source", base64.b64encode(program).decode()
    yield "base64", "tokens", "\n".join(token[at : at + 43] for at in range(0, 6000, 43))
    files = sorted((packages / "katex/src").rglob("*.ts"))
    digests = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}" for f in files)
    dump = (f"{at:08x}: {font[at : at + 16].hex(' ', 2)}" for at in range(0, 2400, 16))
    data = stream("ids", 16 * 160)
    ids = (str(uuid.UUID(bytes=data[at : at + 16])) for at in range(0, len(data), 16))
    yield "hex", "digests of katex", "\n".join(digests)
    yield "hex", "dump of a font", "\n".join(dump)
    yield "hex", "image", image.hex()
    yield "hex", "ids", "\n".join(ids)


def number_texts(folder):
    """Yields numbers of several lengths: measured ones, and ones without order."""
    data = folder / "node_modules/vega-datasets/data"
    heights = json.loads(read(data / "volcano.json"))["values"]
    winds = re.findall(r"-?\d+\.\d+", read(data / "windvectors.csv"))
    mixed = [n % 10 ** (1 + n % 9) for n in numbers("mixed", 1200)]
    digits = "".join(f"{n % 10**9:09}" for n in numbers("long", 700))
    yield "digits", "volcano", " ".join(map(str, heights))
    yield "digits", "windvectors", "\n".join(winds)
    yield "digits", "mixed, commas", ", ".join(map(str, mixed))
    yield "digits", "mixed, lines", "\n".join(map(str, reversed(mixed)))
    yield "digits", "40 digits", "\n".join(digits[at : at + 40] for at in range(0, 6000, 40))


def identifier_texts(folder, python):
    """Yields the names of programs that consist of several words, each once."""
    sources = {
        "vue": folder / "node_modules/@vue/runtime-core/dist/runtime-core.cjs.js",
        "typescript": folder / "node_modules/typescript/lib/typescript.d.ts",
        "wagtail": python / "wagtail/models/pages.py",
        "trytond": python / "trytond/model/modelstorage.py",
    }
    for name, file in sources.items():
        words = re.findall(r"[A-Za-z_]\w{5,}", read(file))
        long = dict.fromkeys(w for w in words if re.search(r"[a-z][A-Z]|[A-Za-z]_[A-Za-z]", w))
        yield "identifiers", name, "\n".join(long)
        yield "identifiers", f"{name}, reversed", ", ".join(reversed(long))


def log_messages(folder):
    """Returns (level, module, message) of a package's calls of a logger, filled with numbers."""
    call = re.compile(r"log(?:ger|ging)?\.(debug|info|warning|error)\(\s*\"([^\"\\{]{12,})\"")
    found = []
    for file in sorted(folder.rglob("*.py")):
        module = ".".join(file.relative_to(folder.parent).with_suffix("").parts)
        for level, text in call.findall(read(file)):
            value = str(numbers(text, 1)[0] % 5000)
            found.append((level, module, re.sub(r"%[srd]", value, text)))
    return found


# Forms of a line of a log, of `logging`, syslog and logfmt.
LOG_FORMS = {
    "lines": "2026-{month:02}-{day:02} {time},{ms:03} {level:8} {module}: {text}",
    "system": "{name} {day:2} {time} web{host} {program}[{process}]: {text}",
    "fields": "time=2026-{month:02}-{day:02}T{time}.{ms:03}Z level={level}"
    ' caller={module}:{line} msg="{text}" took={ms}ms',
}
REQUEST = (
    '10.0.{host}.{ms} - - [{day:02}/{name}/2026:{time} +0000] "GET /{file} HTTP/1.1" '
    '{status} {size} "-" "curl/8.5.0"'
)


def moment(n):
    """Returns the members of a line of a log that depend on a number only."""
    return {
        "month": n % 12 + 1,
        "name": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[n % 12],
        "day": n // 12 % 28 + 1,
        "time": f"{n // 5 % 24:02}:{n // 7 % 60:02}:{n // 11 % 60:02}",
        "ms": n // 13 % 1000,
        "host": n // 17 % 9,
        "process": n // 19 % 32768,
        "line": n // 23 % 700,
        "status": (200, 304, 404)[n // 29 % 3],
        "size": n // 31 % 90000,
    }


def log_texts(folder, python):
    """Yields logs: messages and files of packages in four usual forms, and a compiler's trace."""
    for program in ("pip", "trytond"):
        messages = log_messages(python / program)
        for name, form in LOG_FORMS.items():
            lines = []
            for n in numbers(f"{program} {name}", 90):
                level, module, text = messages[n % len(messages)]
                rest = {"level": level, "module": module, "text": text, "program": program}
                lines.append(form.format(**rest, **moment(n)))
            yield "logs", f"{program}, {name}", "\n".join(lines)
    files = sorted(f.relative_to(python) for f in (python / "wagtail").rglob("*.js"))
    requests = ((files[n % len(files)], moment(n)) for n in numbers("requests", 60))
    lines = (REQUEST.format(file=file, **members) for file, members in requests)
    yield "logs", "requests", "\n".join(lines)
    yield "logs", "typescript trace", read(folder / "trace.log")


def formula_texts(python):
    """Yields the formulas of sympy's documentation, as TeX and as Unicode."""
    formulas = []
    for file in sorted((python / "sympy").rglob("*.py")):
        blocks = re.findall(r"^( *)\.\. math ?::(.*\n(?:\1[ ]+.+\n|\n)*)", read(file), re.M)
        formulas += [re.sub(r"\s+", " ", block).strip() for _, block in blocks]
    plain = LatexNodes2Text(math_mode="text")
    shown = [re.sub(r"\s+", " ", plain.latex_to_text(formula)) for formula in formulas]
    for at, text in enumerate(cut("\n".join(formulas), 3)):
        yield "mathematics", f"sympy, TeX {at + 1}", text
    for at, text in enumerate(cut("\n".join(shown), 3)):
        yield "mathematics", f"sympy, Unicode {at + 1}", text


def emoji_texts(folder):
    """Yields every emoji, every skin tone, and emoji with their names."""
    entries = json.loads(read(folder / "node_modules/emojibase-data/en/data.json"))
    plain = [entry["emoji"] for entry in entries]
    tones = [skin["emoji"] for entry in entries for skin in entry.get("skins", [])]
    rows = ["".join(plain[at : at + 30]) for at in range(0, len(plain), 30)]
    yield "emoji", "all", "\n".join(rows)
    yield "emoji", "skin tones", " ".join(tones)
    for at, text in enumerate(cut("\n".join(f"{e['emoji']} {e['label']}" for e in entries), 2)):
        yield "emoji", f"names {at + 1}", text


def file_texts(folder, python):
    """Yields the middle of files of packages: programs, scripts, prose, tables and objects."""
    data = "node_modules/vega-datasets/data"
    lists = {
        "English": PROSE,
        "code": PROGRAMS,
        "shell": SCRIPTS,
        "CSV": [f"{data}/{name}.csv" for name in TABLES.split()],
        "JSON": [f"{data}/{name}.json" for name in OBJECTS.split()]
        + ["node_modules/vue/package.json", "node_modules/emojibase-data/en/compact.json"],
    }
    for name, files in lists.items():
        for file in files:
            text = read(folder / file.format(python=python))
            yield name, "/".join(Path(file).parts[-3:]), take_middle(text)


def main():
    folder = Path(sys.argv[1])
    python = next((folder / "venv/lib").glob("python3*/site-packages")).absolute()
    groups = [
        file_texts(folder, python),
        encoded_texts(folder),
        number_texts(folder),
        identifier_texts(folder, python),
        log_texts(folder, python),
        formula_texts(python),
        emoji_texts(folder),
        language_texts(folder, python),
    ]
    for group in groups:
        for name, source, text in group:
            (piece,) = cut(text, 1)
            print(json.dumps({"class": name, "source": source, "text": piece}))


main()
