//! Source text: what it imports and where what it defines stands.
//!
//! In: text in a known language. Out: import lines, and top-level definitions with the numbers of
//! their lines. A language is a row of a table of how such lines begin; nothing is parsed.

use alloc::vec::Vec;

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::{PayloadFormat, PayloadText},
};

/// How functions look that no word introduces.
#[derive(Clone, Copy, PartialEq)]
enum FunctionStyle {
    /// There are none.
    Worded,
    /// `type name(...` at the beginning of a line.
    Typed,
    /// The same, and all definitions, also one level inside a class.
    Members,
    /// `name() {`.
    Shell,
}
use FunctionStyle::{Members, Shell, Typed, Worded};

/// Name, media type, endings, beginnings of definitions and of imports, separated by `|`.
type LanguageRow =
    (&'static str, &'static str, &'static str, &'static str, &'static str, FunctionStyle);

const SCRIPT: &str = "function |function* |class |const |let |var |module.exports|exports.|\
                      interface |type |enum |namespace ";
const SCRIPT_IMPORTS: &str = "import |import{";
const NATIVE: &str = "class |struct |enum |union |namespace |template|typedef |using |#define ";

#[rustfmt::skip]
const LANGUAGES: [LanguageRow; 25] = [
    ("Rust", "text/x-rust", "rs|rust",
        "fn |struct |enum |trait |impl |impl<|mod |macro_rules!|type |const |static |union ",
        "use |extern crate ", Worded),
    ("Python", "text/x-python", "py|pyi|pyw|python", "def |class ", "import |from ", Worded),
    ("JavaScript", "text/javascript", "js|mjs|cjs|jsx|javascript|node|ecmascript", SCRIPT,
        SCRIPT_IMPORTS, Worded),
    ("TypeScript", "text/x-typescript", "ts|tsx|mts|cts|typescript|deno", SCRIPT, SCRIPT_IMPORTS,
        Worded),
    ("Go", "text/x-go", "go", "func |type |var |const ", "import |\t\"", Worded),
    ("Java", "text/x-java", "java|java-source", "class |interface |enum |record |@interface ",
        "import |package ", Members),
    ("Kotlin", "text/x-kotlin", "kt|kts|kotlin",
        "fun |class |interface |object |val |var |enum |typealias |companion ",
        "import |package ", Worded),
    ("C", "text/x-c", "c|h|csrc|chdr", "struct |enum |union |typedef |#define ", "#include", Typed),
    ("C++", "text/x-c++", "cc|cpp|cxx|hpp|hh|hxx|inl|c++|c++src|c++hdr", NATIVE, "#include", Typed),
    ("C#", "text/x-csharp", "cs|csharp",
        "class |interface |struct |enum |record |namespace |delegate ", "using ", Members),
    ("Ruby", "text/x-ruby", "rb|rake|gemspec|ruby", "def |class |module ",
        "require |require_relative |include ", Worded),
    ("PHP", "application/x-php", "php|httpd-php",
        "function |class |interface |trait |enum |namespace |const ", "use |require|include",
        Worded),
    ("shell", "application/x-sh", "sh|bash|zsh|ksh|dash|fish|shellscript", "function |alias ",
        "source |. ", Shell),
    ("SQL", "application/sql", "sql", "create ", "", Worded),
    ("Swift", "text/x-swift", "swift",
        "func |class |struct |enum |protocol |extension |actor |typealias |let |var ", "import ",
        Worded),
    ("Scala", "text/x-scala", "scala|sc", "class |object |trait |def |type |val |case class ",
        "import |package ", Worded),
    ("Dart", "text/x-dart", "dart", "class |enum |mixin |extension |typedef ", "import |export ",
        Typed),
    ("Lua", "text/x-lua", "lua", "function |local function ", "require|local ", Worded),
    ("Perl", "text/x-perl", "pl|pm|perl", "sub |package ", "use |require ", Worded),
    ("Elixir", "text/x-elixir", "ex|exs|elixir", "defmodule |def |defp ", "import |alias |use ",
        Worded),
    ("PowerShell", "text/x-powershell", "ps1|psm1|powershell", "function |class |filter ",
        "import-module |using ", Worded),
    ("Terraform", "text/x-hcl", "tf|hcl", "resource |module |variable |output |data |provider ", "",
        Worded),
    ("protobuf", "text/x-protobuf", "proto", "message |service |enum ", "import |package ", Worded),
    ("GraphQL", "application/graphql", "graphql|gql",
        "type |interface |enum |input |union |scalar |query |mutation |fragment |schema ", "",
        Worded),
    ("TOML", "application/toml", "toml|ini|cfg|properties", "[", "", Worded),
];
/// Words that may stand before a definition.
const MODIFIERS: &str = "pub |pub(crate) |pub(super) |export |default |async |unsafe |public |\
    private |protected |internal |static |final |abstract |sealed |open |data |partial |extern |\
    inline |virtual |override |suspend |declare |const |case |readonly |local ";
/// Words that a typed function does not begin with.
const STATEMENTS: &str = "if|else|for|while|switch|case|return|do|new|throw|goto|catch|try|delete|\
    await|yield|assert|using|typedef|lock";
/// Imports and definitions that are shown, and the quarter tokens of the former.
const IMPORTS: usize = 12;
const DEFINITIONS: usize = 24;
const IMPORTS_MAX: u64 = 240;
/// Definitions that are shown with more than their beginning.
const SIGNATURES: u64 = 8;
/// Characters by which a member of a class is indented at most.
const MEMBER_INDENT: usize = 4;
/// Quarter tokens from which a text without definitions shows its beginning.
const OPENING_MIN: u64 = 80;

/// The language of an ending or a subtype of a media type, and its media type.
pub(super) fn find_language(word: &str) -> Option<(PayloadFormat, &'static str)> {
    let language = LANGUAGES.iter().find(|row| row.2.split('|').any(|name| name == word));
    language.map(|row| (PayloadFormat::Code(row.0), row.1))
}

/// The media type of a language.
pub(super) fn language_mime(name: &str) -> &'static str {
    LANGUAGES.iter().find(|row| row.0 == name).map_or("text/plain", |row| row.1)
}

/// Describes source text.
pub(super) fn outline_code(writer: &mut OutlineWriter, payload: &PayloadText<'_>, name: &str) {
    let Some(language) = LANGUAGES.iter().find(|row| row.0 == name) else { return };
    let split = |table: &'static str| table.split('|').filter(|word| !word.is_empty());
    let words: Vec<&str> = split(language.3).collect();
    let import_words: Vec<&str> = split(language.4).collect();
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
            // Of a script, the module.
            let module = import.split_once(" from ").map_or(import, |(_, module)| module);
            imports.push(None, module.trim_end_matches([';', ' ']), None);
            continue;
        }
        let outer = indent == 0 || (language.5 == Members && indent <= MEMBER_INDENT);
        let worded = || initial_bit(code) & definitions_begin != 0;
        if outer
            && ((worded() && is_definition(code, &words, &modifiers))
                || is_function(code, language.5, &statements))
        {
            total += 1;
            if found.len() < DEFINITIONS {
                found.push((at, code));
            }
        }
    }
    let mut definitions = OutlineList::new(DEFINITIONS);
    for (at, code) in found {
        // Of many, the names are more use than how each goes on.
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

/// Whether a line begins with one of the words, whatever their case.
fn starts_with_word(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| strip_word(line, word).is_some())
}

fn strip_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let start = line.as_bytes().get(..word.len())?;
    if start.eq_ignore_ascii_case(word.as_bytes()) { line.get(word.len()..) } else { None }
}

/// One bit for each letter that a word begins with: most lines are none of these.
fn initial_bits<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> u128 {
    words.into_iter().fold(0, |set, word| set | initial_bit(word))
}

fn initial_bit(word: &str) -> u128 {
    word.as_bytes().first().map_or(0, |byte| 1 << (byte.to_ascii_lowercase() % 128))
}

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

fn is_function(code: &str, functions: FunctionStyle, statements: &[&str]) -> bool {
    let Some((before, _)) = code.split_once('(') else { return false };
    match functions {
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
