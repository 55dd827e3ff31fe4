//! Writes the outline of source code: its imports and definitions.
//!
//! In: text in a known language. Out: imports, and top-level definitions with line numbers. In Java
//! and C#, the members of classes are definitions too. The table [`LANGUAGES`] has the words with
//! which such lines begin in each language; nothing is parsed.

use alloc::vec::Vec;

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::{PayloadFormat, PayloadText},
};

/// Form of function definitions that no keyword introduces.
#[derive(Clone, Copy, PartialEq)]
enum FunctionStyle {
    /// None: a keyword introduces every function.
    Worded,
    /// `type name(...)` at the beginning of a line.
    Typed,
    /// `type name(...)` at the beginning of a line or one level inside a class.
    Members,
    /// `name() {`.
    Shell,
}
use FunctionStyle::{Members, Shell, Typed, Worded};

/// A language. Each list is one text with `|` between its entries.
struct Language {
    name: &'static str,
    mime: &'static str,
    /// File extensions, interpreters and media subtypes.
    words: &'static str,
    /// Beginnings of definitions.
    definitions: &'static str,
    /// Beginnings of imports.
    imports: &'static str,
    style: FunctionStyle,
}

/// Beginnings of definitions in JavaScript and TypeScript.
const SCRIPT: &str = "function |function* |class |const |let |var |module.exports|exports.|\
                      interface |type |enum |namespace ";
/// Beginnings of imports in JavaScript and TypeScript.
const SCRIPT_IMPORTS: &str = "import |import{";
/// Beginnings of definitions in C++.
const NATIVE: &str = "class |struct |enum |union |namespace |template|typedef |using |#define ";

/// Known languages.
const LANGUAGES: [Language; 25] = [
    Language {
        name: "Rust",
        mime: "text/x-rust",
        words: "rs|rust",
        definitions: "fn |struct |enum |trait |impl |impl<|mod |macro_rules!|type |const |static |\
                      union ",
        imports: "use |extern crate ",
        style: Worded,
    },
    Language {
        name: "Python",
        mime: "text/x-python",
        words: "py|pyi|pyw|python",
        definitions: "def |class ",
        imports: "import |from ",
        style: Worded,
    },
    Language {
        name: "JavaScript",
        mime: "text/javascript",
        words: "js|mjs|cjs|jsx|javascript|node|ecmascript",
        definitions: SCRIPT,
        imports: SCRIPT_IMPORTS,
        style: Worded,
    },
    Language {
        name: "TypeScript",
        mime: "text/x-typescript",
        words: "ts|tsx|mts|cts|typescript|deno",
        definitions: SCRIPT,
        imports: SCRIPT_IMPORTS,
        style: Worded,
    },
    Language {
        name: "Go",
        mime: "text/x-go",
        words: "go",
        definitions: "func |type |var |const ",
        imports: "import |\t\"",
        style: Worded,
    },
    Language {
        name: "Java",
        mime: "text/x-java",
        words: "java|java-source",
        definitions: "class |interface |enum |record |@interface ",
        imports: "import |package ",
        style: Members,
    },
    Language {
        name: "Kotlin",
        mime: "text/x-kotlin",
        words: "kt|kts|kotlin",
        definitions: "fun |class |interface |object |val |var |enum |typealias |companion ",
        imports: "import |package ",
        style: Worded,
    },
    Language {
        name: "C",
        mime: "text/x-c",
        words: "c|h|csrc|chdr",
        definitions: "struct |enum |union |typedef |#define ",
        imports: "#include",
        style: Typed,
    },
    Language {
        name: "C++",
        mime: "text/x-c++",
        words: "cc|cpp|cxx|hpp|hh|hxx|inl|c++|c++src|c++hdr",
        definitions: NATIVE,
        imports: "#include",
        style: Typed,
    },
    Language {
        name: "C#",
        mime: "text/x-csharp",
        words: "cs|csharp",
        definitions: "class |interface |struct |enum |record |namespace |delegate ",
        imports: "using ",
        style: Members,
    },
    Language {
        name: "Ruby",
        mime: "text/x-ruby",
        words: "rb|rake|gemspec|ruby",
        definitions: "def |class |module ",
        imports: "require |require_relative |include ",
        style: Worded,
    },
    Language {
        name: "PHP",
        mime: "application/x-php",
        words: "php|httpd-php",
        definitions: "function |class |interface |trait |enum |namespace |const ",
        imports: "use |require|include",
        style: Worded,
    },
    Language {
        name: "shell",
        mime: "application/x-sh",
        words: "sh|bash|zsh|ksh|dash|fish|shellscript",
        definitions: "function |alias ",
        imports: "source |. ",
        style: Shell,
    },
    Language {
        name: "SQL",
        mime: "application/sql",
        words: "sql",
        definitions: "create ",
        imports: "",
        style: Worded,
    },
    Language {
        name: "Swift",
        mime: "text/x-swift",
        words: "swift",
        definitions: "func |class |struct |enum |protocol |extension |actor |typealias |let |var ",
        imports: "import ",
        style: Worded,
    },
    Language {
        name: "Scala",
        mime: "text/x-scala",
        words: "scala|sc",
        definitions: "class |object |trait |def |type |val |case class ",
        imports: "import |package ",
        style: Worded,
    },
    Language {
        name: "Dart",
        mime: "text/x-dart",
        words: "dart",
        definitions: "class |enum |mixin |extension |typedef ",
        imports: "import |export ",
        style: Typed,
    },
    Language {
        name: "Lua",
        mime: "text/x-lua",
        words: "lua",
        definitions: "function |local function ",
        imports: "require|local ",
        style: Worded,
    },
    Language {
        name: "Perl",
        mime: "text/x-perl",
        words: "pl|pm|perl",
        definitions: "sub |package ",
        imports: "use |require ",
        style: Worded,
    },
    Language {
        name: "Elixir",
        mime: "text/x-elixir",
        words: "ex|exs|elixir",
        definitions: "defmodule |def |defp ",
        imports: "import |alias |use ",
        style: Worded,
    },
    Language {
        name: "PowerShell",
        mime: "text/x-powershell",
        words: "ps1|psm1|powershell",
        definitions: "function |class |filter ",
        imports: "import-module |using ",
        style: Worded,
    },
    Language {
        name: "Terraform",
        mime: "text/x-hcl",
        words: "tf|hcl",
        definitions: "resource |module |variable |output |data |provider ",
        imports: "",
        style: Worded,
    },
    Language {
        name: "protobuf",
        mime: "text/x-protobuf",
        words: "proto",
        definitions: "message |service |enum ",
        imports: "import |package ",
        style: Worded,
    },
    Language {
        name: "GraphQL",
        mime: "application/graphql",
        words: "graphql|gql",
        definitions: "type |interface |enum |input |union |scalar |query |mutation |fragment |\
                      schema ",
        imports: "",
        style: Worded,
    },
    Language {
        name: "TOML",
        mime: "application/toml",
        words: "toml|ini|cfg|properties",
        definitions: "[",
        imports: "",
        style: Worded,
    },
];
/// Words that can precede a definition.
const MODIFIERS: &str = "pub |pub(crate) |pub(super) |export |default |async |unsafe |public |\
    private |protected |internal |static |final |abstract |sealed |open |data |partial |extern |\
    inline |virtual |override |suspend |declare |const |case |readonly |local ";
/// First words of lines that are statements and no function definitions.
const STATEMENTS: &str = "if|else|for|while|switch|case|return|do|new|throw|goto|catch|try|delete|\
    await|yield|assert|using|typedef|lock";
/// Most imports shown.
const IMPORTS: usize = 12;
/// Most definitions shown.
const DEFINITIONS: usize = 24;
/// Most quarter tokens of the imports.
const IMPORTS_MAX: u64 = 240;
/// Most definitions in a text whose signatures are shown; of a text with more definitions, only the
/// names are shown.
const SIGNATURES: u64 = 8;
/// Most bytes of indentation of a class member.
const MEMBER_INDENT: usize = 4;
/// Remaining quarter tokens above which the beginning of a text without definitions is shown.
const OPENING_MIN: u64 = 80;

/// Returns the format and media type of a file extension, interpreter or media subtype; `None`:
/// unknown.
pub(super) fn find_language(word: &str) -> Option<(PayloadFormat, &'static str)> {
    let mut languages = LANGUAGES.iter();
    let language = languages.find(|language| language.words.split('|').any(|name| name == word));
    language.map(|language| (PayloadFormat::Code(language.name), language.mime))
}

/// Returns the media type of a language; `text/plain` for an unknown name.
pub(super) fn language_mime(name: &str) -> &'static str {
    find_by_name(name).map_or("text/plain", |language| language.mime)
}

/// Returns the language with this name; `None`: unknown.
fn find_by_name(name: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.name == name)
}

/// Writes the outline of source code in the named language; nothing for an unknown language.
pub(super) fn outline_code(writer: &mut OutlineWriter, payload: &PayloadText<'_>, name: &str) {
    let Some(language) = find_by_name(name) else { return };
    let split = |table: &'static str| table.split('|').filter(|word| !word.is_empty());
    let words: Vec<&str> = split(language.definitions).collect();
    let import_words: Vec<&str> = split(language.imports).collect();
    let modifiers: Vec<&str> = split(MODIFIERS).collect();
    let statements: Vec<&str> = split(STATEMENTS).collect();
    let imports_begin = initial_bits(&import_words);
    let definitions_begin = initial_bits(words.iter().chain(&modifiers));
    let mut imports = OutlineList::new(IMPORTS);
    let mut found = Vec::new();
    let mut total = 0;
    for (at, line) in (1..).zip(payload.head.lines()) {
        let code = line.trim();
        if code.is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let import = || import_words.iter().find_map(|word| strip_word(line, word));
        let import = if initial_bit(line) & imports_begin == 0 { None } else { import() };
        if let Some(import) = import.filter(|_| indent == 0 || total == 0) {
            // `import x from module` is shown as the module.
            let module = import.split_once(" from ").map_or(import, |(_, module)| module);
            imports.push(None, module.trim_end_matches([';', ' ']), None);
            continue;
        }
        let is_outer = indent == 0 || (language.style == Members && indent <= MEMBER_INDENT);
        let can_define = || initial_bit(code) & definitions_begin != 0;
        if is_outer
            && ((can_define() && is_definition(code, &words, &modifiers))
                || is_function(code, language.style, &statements))
        {
            total += 1;
            if found.len() < DEFINITIONS {
                found.push((at, code));
            }
        }
    }
    let mut definitions = OutlineList::new(DEFINITIONS);
    for (at, code) in found {
        // With many definitions, names are more useful than signatures.
        let end = if total > SIGNATURES { code.find(['(', '=']) } else { None };
        let start = end.filter(|end| *end > 0).and_then(|end| code.get(..end)).unwrap_or(code);
        definitions.push(Some(at), start.trim_end_matches([' ', '{', ':', ';', '(']), None);
    }
    definitions.total = total;
    writer.push_title(payload, name);
    writer.push_list("import", &imports, ", ", IMPORTS_MAX);
    writer.push_list("definition", &definitions, "\n", writer.quarters_left());
    if total == 0 && writer.quarters_left() > OPENING_MIN {
        writer.push_quote("\nOpening: ", payload.head, writer.quarters_left() - OPENING_MIN / 2);
    }
}

/// Returns whether a line begins with one of `words`; case is ignored.
fn starts_with_word(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| strip_word(line, word).is_some())
}

/// Returns the rest of a line after `word`; `None`: the line does not begin with `word`. Case is
/// ignored.
fn strip_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let start = line.as_bytes().get(..word.len())?;
    if start.eq_ignore_ascii_case(word.as_bytes()) { line.get(word.len()..) } else { None }
}

/// Returns the first letters of words as a set with one bit each, so that a line with another first
/// letter needs no comparison with the words.
fn initial_bits<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> u128 {
    words.into_iter().fold(0, |set, word| set | initial_bit(word))
}

/// Returns the bit of the first letter of a word; 0 for an empty word.
fn initial_bit(word: &str) -> u128 {
    word.as_bytes().first().map_or(0, |byte| 1 << (byte.to_ascii_lowercase() % 128))
}

/// Returns whether a line begins with a definition, after any number of modifiers.
fn is_definition(code: &str, words: &[&str], modifiers: &[&str]) -> bool {
    let mut rest = code;
    loop {
        if starts_with_word(rest, words) {
            return true;
        }
        match modifiers.iter().find_map(|modifier| strip_word(rest, modifier)) {
            Some(next) => rest = next,
            None => return false,
        }
    }
}

/// Returns whether a line is a function definition that no keyword introduces.
fn is_function(code: &str, style: FunctionStyle, statements: &[&str]) -> bool {
    let Some((before, _)) = code.split_once('(') else { return false };
    match style {
        Worded => false,
        Shell => code.ends_with('{') && !before.contains([' ', '$', '=']) && code.contains("()"),
        Typed | Members => {
            let first = before.split([' ', '\t']).next().unwrap_or_default();
            first.len() < before.trim_end().len()
                && first.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !before.contains(['=', '"', '.'])
                && !code.ends_with(';')
                && !statements.contains(&first)
        }
    }
}
