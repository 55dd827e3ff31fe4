//! Plants false numbers, identifiers and paths in summaries.
//!
//! In numbers of two or more digits, outside names, one digit is changed. Bare whole numbers up to
//! 12, approximate numbers, ratios, and times on the half hour are not changed, because the
//! verifier does not check them exactly. Identifiers and paths are replaced by those of other
//! sources, or one part of them is changed.

use lcm_testing::simulation::random::Random;
use regex::Regex;

/// The kind of a planted piece.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Number,
    Name,
    Path,
}

/// Identifiers and paths of all sources.
pub(crate) struct Others {
    names: Vec<String>,
    paths: Vec<String>,
}

const NAME: &str = r"\b(?:[A-Za-z]+_[A-Za-z0-9_]+|[a-z]+[A-Z][A-Za-z]+|[A-Z][a-z]+[A-Z][A-Za-z]+|[A-Za-z]+-?[0-9]+[A-Za-z0-9]*)\b";
const PATH: &str = r"\b[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+\.[a-z]{1,5}\b|\b[A-Za-z_]+\.(?:rs|py|ts|tsx|go|js|yml|yaml|csv|md|sql|toml|json|log|parquet|tf|vue)\b";
const NUMBER: &str = r"\d[\d,.:]*\d";
const WORDS: [&str; 8] =
    ["ledger", "harbor", "quartz", "meadow", "falcon", "timber", "copper", "violet"];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

fn all(pattern: &str, text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        regex(pattern).find_iter(text).map(|found| found.as_str().to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl Others {
    pub(crate) fn of<'a>(sources: impl Iterator<Item = &'a str>) -> Self {
        let text = sources.collect::<Vec<_>>().join("\n");
        let mut names = all(NAME, &text);
        // The verifier takes shorter names for words, and some are technical terms.
        names.retain(|name| name.len() > 3 && !name.eq_ignore_ascii_case("utf8"));
        Self { names, paths: all(PATH, &text) }
    }
}

/// Returns the summary with one false piece, once for each kind of piece that the summary has, and
/// the planted piece.
pub(crate) fn plant(
    random: &mut Random,
    source: &str,
    summary: &str,
    others: &Others,
) -> Vec<(Kind, String, String)> {
    let kinds = [(Kind::Number, NUMBER), (Kind::Name, NAME), (Kind::Path, PATH)];
    let mut out = Vec::new();
    for (kind, pattern) in kinds {
        let pattern = regex(pattern);
        let places: Vec<_> = pattern.find_iter(summary).collect();
        let fit = |place: &&regex::Match<'_>| match kind {
            Kind::Number => is_free_number(summary, place.start(), place.end()),
            Kind::Name | Kind::Path => is_free(summary, place.start(), place.end()),
        };
        let places: Vec<_> = places.iter().filter(fit).collect();
        if places.is_empty() {
            continue;
        }
        let place = random.pick(&places);
        let piece = place.as_str();
        let other = match kind {
            Kind::Number => number(random, source, piece),
            Kind::Name => name(random, source, piece, &others.names),
            Kind::Path => path(random, source, piece, &others.paths),
        };
        let Some(other) = other else { continue };
        let (before, after) = (&summary[..place.start()], &summary[place.end()..]);
        let context: String =
            before.chars().rev().take(20).collect::<Vec<_>>().iter().rev().collect();
        let what = format!("{context}[{piece} -> {other}]");
        out.push((kind, format!("{before}{other}{after}"), what));
    }
    out
}

/// Returns whether a piece is not a part of a longer piece.
fn is_free(text: &str, from: usize, to: usize) -> bool {
    let joins =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '@' | ':' | '=' | '%');
    let before = text[..from].chars().next_back().is_some_and(|c| joins(c) || c == '.');
    let after = text[to..].chars().next().is_some_and(joins);
    !before && !after
}

fn is_free_number(text: &str, from: usize, to: usize) -> bool {
    let before = &text[..from];
    let joins =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '@' | '.' | '=');
    if before.chars().next_back().is_some_and(joins) {
        return false;
    }
    let after = &text[to..];
    if after.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || "_-/+".contains(c)) {
        return false;
    }
    let piece = &text[from..to];
    let rough = [
        "about",
        "around",
        "roughly",
        "some",
        "nearly",
        "almost",
        "over",
        "than",
        "under",
        "least",
        "etwa",
        "rund",
        "most",
        "approximately",
        "knapp",
        "\u{7ea6}",
        "\u{7d04}",
        "~",
    ];
    let rough = rough.iter().any(|word| before.trim_end().ends_with(word));
    let half_hour = piece.ends_with(":00") || piece.ends_with(":30");
    let small = piece.parse::<u32>().is_ok_and(|number| number <= 12);
    // The sides of a ratio are mostly counts.
    let ratio = piece.contains(':') && !regex(r"^\d{1,2}:\d\d").is_match(piece);
    !rough && !half_hour && !small && !ratio
}

fn number(random: &mut Random, source: &str, piece: &str) -> Option<String> {
    let digits: Vec<usize> =
        piece.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    let at = *random.pick(&digits);
    let old = piece[at..].chars().next().unwrap().to_digit(10).unwrap();
    let low = u64::from(at == 0);
    let new = u32::try_from(random.between(low, 9)).unwrap();
    if new == old {
        return None;
    }
    let mut out = piece.to_owned();
    out.replace_range(at..=at, &new.to_string());
    // The changed number must not be in the source by chance, in any notation.
    let plain = |text: &str| text.replace(',', "");
    let small = out.parse::<u32>().is_ok_and(|number| number <= 12);
    let by_chance =
        plain(source).contains(&plain(&out)) || out.ends_with(":00") || out.ends_with(":30");
    (!by_chance && !small).then_some(out)
}

fn name(random: &mut Random, source: &str, piece: &str, names: &[String]) -> Option<String> {
    let out = if random.chance(500) && piece.contains('_') {
        let (head, _) = piece.rsplit_once('_').unwrap();
        format!("{head}_{}", random.pick(&WORDS))
    } else {
        random.pick(names).clone()
    };
    (!folded(source).contains(&folded(&out))).then_some(out)
}

fn path(random: &mut Random, source: &str, piece: &str, paths: &[String]) -> Option<String> {
    let out = if random.chance(500) {
        let (head, ending) = piece.rsplit_once('.').unwrap();
        let (folder, _) = head.rsplit_once('/').map_or(("", head), |(folder, base)| (folder, base));
        let slash = if folder.is_empty() { "" } else { "/" };
        format!("{folder}{slash}{}.{ending}", random.pick(&WORDS))
    } else {
        random.pick(paths).clone()
    };
    let base = out.rsplit('/').next().unwrap().to_owned();
    (!folded(source).contains(&folded(&base))).then_some(out)
}
