"""Texts of natural languages: translated messages of programs, and a translated book.

A message that equals the English one counts as not translated and is left out. A second norm of a
language (Spanish of Latin America) is no class of its own.
"""

import json

import polib
from pieces import cut, read, take_middle

MESSAGES = "node_modules/chrome-devtools-frontend/front_end/core/i18n/locales"
SECOND_NORMS = {"en-GB", "es-419", "fr-CA", "pt-PT"}
# Languages whose class has another name than the file of a package.
NAMES = {"en": "English", "no": "nb", "pt": "pt_BR", "zh": "zh_CN"}
WAGTAIL = {
    "az": "az_AZ",
    "he": "he_IL",
    "hr": "hr_HR",
    "id": "id_ID",
    "is": "is_IS",
    "sk": "sk_SK",
    "zh_CN": "zh_Hans",
    "zh_TW": "zh_Hant",
}
BOOK = "bn en es fr id ru sv tr ur zh".split()
# What a language has less of in a source says little about it.
CHARACTERS_MIN = 1000


def message_texts(folder):
    """Yields two texts of the messages of Chrome's developer tools for each language."""
    english = json.loads(read(folder / MESSAGES / "en-GB.json"))
    english = {key: entry["message"] for key, entry in english.items()}
    for at, text in enumerate(cut("\n".join(english.values()), 2)):
        yield "English", f"devtools {at + 1}", text
    for file in sorted((folder / MESSAGES).glob("*.json")):
        if file.stem in SECOND_NORMS:
            continue
        entries = json.loads(read(file)).items()
        own = [e["message"] for key, e in entries if e["message"] != english.get(key)]
        language = NAMES.get(file.stem, file.stem.replace("-", "_"))
        for at, text in enumerate(cut("\n".join(own), 2)):
            yield language, f"devtools {at + 1}", text


def compiler_text(folder, language):
    """Returns the messages of TypeScript."""
    name = language.lower().replace("_", "-")
    file = folder / "node_modules/typescript/lib" / name / "diagnosticMessages.generated.json"
    return "\n".join(json.loads(read(file)).values()) if file.exists() else ""


def catalogue_text(files):
    """Returns the translations of message catalogues."""
    entries = [entry for file in sorted(files) for entry in polib.pofile(str(file))]
    own = (e.msgstr for e in entries if e.translated() and e.msgstr not in ("", e.msgid))
    return "\n".join(own)


def book_texts(folder):
    """Yields two texts of each translation of the Quran, and of the original with its vowels."""
    chapters = folder / "node_modules/quran-json/dist"
    for name in BOOK:
        verses = [v for c in json.loads(read(chapters / f"quran_{name}.json")) for v in c["verses"]]
        for at, text in enumerate(cut("\n".join(v["translation"] for v in verses), 2)):
            yield NAMES.get(name, name), f"quran {at + 1}", text
    for at, text in enumerate(cut("\n".join(v["text"] for v in verses), 2)):
        yield "ar, vowelled", f"quran {at + 1}", text


def language_texts(folder, python):
    """Yields all texts of natural languages, by language."""
    texts = list(message_texts(folder))
    for language in dict.fromkeys(name for name, _, _ in texts if name != "English"):
        catalogue = WAGTAIL.get(language, language)
        wagtail = (python / "wagtail").rglob(f"locale/{catalogue}/LC_MESSAGES/*.po")
        trytond = (python / "trytond").rglob(f"locale/{language}.po")
        for source, text in (
            ("typescript", compiler_text(folder, language)),
            ("wagtail", catalogue_text(wagtail)),
            ("trytond", catalogue_text(trytond)),
        ):
            if len(text) >= CHARACTERS_MIN:
                texts.append((language, source, take_middle(text)))
    texts += book_texts(folder)
    for name, source, text in sorted(texts, key=lambda found: found[0]):
        yield name if name == "English" else f"language {name}", source, text
