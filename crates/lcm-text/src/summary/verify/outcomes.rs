//! Classifies the outcome of a clause: kinds of failure, a success, or neither; and its subject.
//!
//! Input: a clause. Output: its outcome, and hashes of the words of its subject. The module
//! `failures` decides which failures stay open. The words of trouble are the error words of the
//! offline summariser, and the words of [`WORDS`].

use alloc::vec::Vec;
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;
use lcm_loops::{lower_case::lower_char, substring::contains_str};

use crate::{
    base::sort,
    summary::offline_summary::{
        cues,
        term_hash::{TermHasher, fnv_hash, fnv_hash_lowercase},
        term_scanner::{TermClass, TermOccurrence, scan_terms},
    },
};

const FAILED: u32 = 1;
const KILLED: u32 = 1 << 1;
const ABORTED: u32 = 1 << 2;
const TIMED_OUT: u32 = 1 << 3;
const CRASHED: u32 = 1 << 4;
/// The flags of all kinds of failure.
const ANY_FAILURE: u32 = FAILED | KILLED | ABORTED | TIMED_OUT | CRASHED;
/// A word about problems that names no kind of failure.
const TROUBLE: u32 = 1 << 5;
const SUCCESS: u32 = 1 << 6;
const NEGATION: u32 = 1 << 7;
/// A word that makes its clause a condition, a possibility or a plan.
const HEDGE: u32 = 1 << 8;
/// A word without meaning for the subject.
const STOP: u32 = 1 << 9;
/// A word such as `all`: a success in the clause is a success of everything.
const ALL: u32 = 1 << 10;
/// A word such as `other`: a success in the clause is a success of the rest only.
const REST: u32 = 1 << 11;
/// A word before `failed` that makes the failure an attribute, not an outcome.
const ATTRIBUTE: u32 = 1 << 12;
/// The first word of a pair in [`PAIRS`].
const PAIR: u32 = 1 << 13;
/// A word that reports failures after a number, as in `2 errors`.
const COUNTED: u32 = 1 << 14;
/// A person, whose refusal is no failure.
const PERSON: u32 = 1 << 15;
/// A word such as `is`, after which `broken` and similar words are an outcome and not an attribute.
const STATE: u32 = 1 << 16;
/// A verb of normal operation, whose negation is a failure.
const WORKS: u32 = 1 << 17;

/// Number of words after a negation among which the negated word is searched.
const NEGATION_WORDS: u32 = 4;
/// Number of first letters by which forms of one word are recognised as equal.
const STEM_LETTERS: usize = 5;

// Lower case; a word may be in several lists. One text for a list takes less of the component than
// a place and a length for each word.
#[rustfmt::skip]
const WORDS: [(u32, &str); 20] = [
    (FAILED, "failed fails failing fehlgeschlagen gescheitert scheiterte scheitert scheiterten \
        \u{e9}chou\u{e9} fall\u{f3}"),
    (KILLED, "killed sigkill oomkilled oom oom-killed evicted"),
    (ABORTED, "aborted interrupted abgebrochen aborting"),
    (TIMED_OUT, "timed-out timed_out etimedout zeit\u{fc}berschreitung"),
    (CRASHED, "crashed crashes panicked segfault segfaulted crashloopbackoff abgest\u{fc}rzt \
        crashing crash-looping"),
    (COUNTED, "failed failures errors failure error fehler failing"),
    (TROUBLE, "broken broke breaks problem problems unsuccessful unsuccessfully unresolved \
        blocked outage stuck lost unavailable unfinished incomplete fail abort cannot can't \
        couldn't unable corrupt corrupted declined stopped died dies terminated out-of-memory \
        timeouts timing expired crashing halted hung hangs throws threw raises conflicts \
        mismatch regression red bug fault unhealthy unreachable rollback interruption abbruch \
        abgelehnt absturz brach brachen bricht st\u{fc}rzte unterbrochen \u{e9}chec \
        \u{e9}chou\u{e9}e fallido fehl fehlschlag problema probl\u{e8}me sigterm killing kill \
        aborts exceeded violation violated bounced refusal rejection failover scheitern \
        verweigert timing-out non-zero nonzero oom-kill verloren"),
    (SUCCESS, "success successful successfully succeeded succeeds succeed passed passes passing \
        pass completed completes complete finished fixed resolved solved works worked working \
        deployed green ok done healthy recovered restored installed confirmed landed shipped \
        cleanly smoothly fine erfolgreich behoben gel\u{f6}st abgeschlossen bestanden \
        durchgelaufen fertig erfolg succ\u{e8}s listo merged clean live unblocked stable"),
    (NEGATION, "no not without never none zero neither nor nothing 0 didn't don't doesn't isn't \
        wasn't hasn't weren't won't haven't nicht kein keine keinen ohne pas sin aren't nie yet"),
    (HEDGE, "if would might may should whether unless suppose maybe perhaps falls wenn ob \
        k\u{f6}nnte could will would've to-do otherwise avoid prevent expect expected likely \
        possibly sollte"),
    (ALL, "all everything alles alle every"),
    (REST, "other others rest remaining else except \u{fc}brigen"),
    (ATTRIBUTE, "the a an any every each of for on retry retries retried handle handles per as \
        these those no mark marked status count counts list lists show shows in about into log \
        logs their its our your my this that's recent same previous last which"),
    (PAIR, "in could timed rolled out ran went schlug schlugen came brach"),
    (STATE, "is was are were be been still remains remain stays left got and again completely \
        not currently"),
    (WORKS, "come came start started respond responded answer answered load build compile apply \
        connect finish work converge"),
    (PERSON, "user customer client caller guest he she they kunde"),
    (STOP, "the and but for was not are has had its all any new two one with from that this \
        then than them they there their were been have into onto over after before again still \
        also when which while what will would could should did does done can may might our your \
        you she her his him who how why out off now yet got get let see said says because since \
        until during about more most some such only just very first second third time times \
        attempt attempts try tried tries retry retried run runs ran once twice three four five \
        due per via both each other same here being under where your mine main exit exited code \
        status message error errors failure failures tool call result user assistant"),
    (STOP, "der die das und aber mit von ist war wurde wurden ein eine einen dem den des auf \
        aus bei nach noch auch sich nicht wegen weil dann beim f\u{fc}r sind hat haben"),
    (STOP, "command cmd path args timeout description true false null please need needs want \
        wants make made used using use today yesterday tomorrow last next another later earlier \
        finally ago minutes minute seconds hours it's i'm i'll so went through without never \
        none zero nothing"),
];

/// Pairs of words that together have flags of their own.
const PAIRS: [(u32, &str, &str); 14] = [
    (TIMED_OUT, "timed", "out"),
    (TROUBLE, "could", "not"),
    (HEDGE, "in", "case"),
    (TROUBLE, "rolled", "back"),
    (TROUBLE, "out", "of"),
    (TROUBLE, "ran", "into"),
    (SUCCESS, "went", "through"),
    (SUCCESS, "went", "well"),
    (FAILED, "schlug", "fehl"),
    (FAILED, "schlugen", "fehl"),
    (SUCCESS, "came", "up"),
    (TROUBLE, "went", "down"),
    (TROUBLE, "went", "wrong"),
    (ABORTED, "brach", "ab"),
];

/// Phrases of scripts without spaces, with their flags.
#[rustfmt::skip]
const PHRASES: [(u32, &[&str]); 9] = [
    (FAILED, &["\u{5931}\u{8d25}", "\u{5931}\u{6557}"]),
    (KILLED, &["\u{88ab}\u{6740}", "\u{5f37}\u{5236}\u{7d42}\u{4e86}", "\u{6740}\u{6389}"]),
    (ABORTED, &["\u{4e2d}\u{6b62}", "\u{7ec8}\u{6b62}", "\u{4e2d}\u{65ad}"]),
    (TIMED_OUT, &["\u{8d85}\u{65f6}", "\u{30bf}\u{30a4}\u{30e0}\u{30a2}\u{30a6}\u{30c8}"]),
    (CRASHED, &["\u{5d29}\u{6e83}", "\u{30af}\u{30e9}\u{30c3}\u{30b7}\u{30e5}",
        "\u{843d}\u{3061}"]),
    (TROUBLE, &["\u{9519}\u{8bef}", "\u{30a8}\u{30e9}\u{30fc}", "\u{95ee}\u{9898}",
        "\u{65e0}\u{6cd5}", "\u{5f02}\u{5e38}", "\u{672a}\u{80fd}", "\u{4e0d}\u{80fd}",
        "\u{672a}\u{901a}\u{8fc7}", "\u{672a}\u{6210}\u{529f}", "\u{6ca1}\u{6709}\u{6210}",
        "\u{672a}\u{5b8c}\u{6210}", "\u{3067}\u{304d}\u{307e}\u{305b}\u{3093}",
        "\u{3067}\u{304d}\u{306a}\u{304b}", "\u{6ca1}\u{80fd}", "\u{62d2}\u{7edd}",
        "\u{672a}\u{89e3}\u{6c7a}", "\u{672a}\u{89e3}\u{51b3}", "\u{5185}\u{5b58}\u{4e0d}\u{8db3}",
        "\u{30e1}\u{30e2}\u{30ea}\u{4e0d}\u{8db3}"]),
    (SUCCESS, &["\u{6210}\u{529f}", "\u{5b8c}\u{6210}", "\u{901a}\u{8fc7}", "\u{89e3}\u{51b3}",
        "\u{4fee}\u{590d}", "\u{5b8c}\u{4e86}", "\u{89e3}\u{6c7a}", "\u{6b63}\u{5e38}",
        "\u{5fa9}\u{65e7}"]),
    (ALL, &["\u{5168}\u{90e8}", "\u{3059}\u{3079}\u{3066}"]),
    (HEDGE, &["\u{5982}\u{679c}", "\u{4e07}\u{4e00}", "\u{3082}\u{3057}", "\u{ff1f}",
        "\u{304b}\u{3082}\u{3057}\u{308c}", "\u{53ef}\u{80fd}", "\u{5417}"]),
];

/// The outcome of a clause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClauseOutcome {
    /// Flags of the kinds of failure that the clause reports.
    pub(super) failure_kinds: u32,
    /// Whether the clause has a word of trouble or denies a success.
    pub(super) is_trouble: bool,
    /// Whether the clause reports a success or denies a failure.
    pub(super) is_success: bool,
    /// Whether the clause is a question, a condition or a plan.
    pub(super) is_hedged: bool,
    /// Whether a success is a success of everything.
    pub(super) is_general: bool,
    /// Whether the clause denies a failure or trouble, which is a success of everything.
    denies_failure: bool,
    /// Whether the clause counts failures. Such a clause reports a failure also beside a success.
    counts_failures: bool,
}

impl ClauseOutcome {
    /// Returns whether the clause reports a failure and does not take the failure back.
    pub(super) const fn is_failure(&self) -> bool {
        self.failure_kinds != 0 && !self.is_hedged && (!self.is_success || self.counts_failures)
    }

    /// Returns whether the clause mentions that something went wrong.
    pub(super) const fn mentions_failure(&self) -> bool {
        self.failure_kinds != 0 || self.is_trouble
    }

    /// Returns whether the clause reports a success (a denied failure counts), reports no failure
    /// or trouble, and is no question, condition, possibility or plan.
    pub(super) const fn is_pure_success(&self) -> bool {
        self.is_success && self.failure_kinds == 0 && !self.is_hedged && !self.is_trouble
    }
}

/// The words that express outcomes.
#[derive(Debug)]
pub(super) struct OutcomeLexicon {
    words: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
}

impl OutcomeLexicon {
    /// Builds the lexicon.
    pub(super) fn new() -> Self {
        let mut words: HashMap<u64, u32, BuildHasherDefault<TermHasher>> = HashMap::default();
        let mut add = |word: &str, flags: u32| {
            *words.entry(fnv_hash(word.as_bytes())).or_insert(0) |= flags;
        };
        for (flags, list) in WORDS {
            list.split(' ').for_each(|word| add(word, flags));
        }
        for (word, cues) in cues::iter_cue_words() {
            if cues & cues::ERROR != 0 {
                add(word, TROUBLE);
            }
        }
        Self { words }
    }

    /// Reads a clause and adds the hashes of its subject's words to `keys`; afterwards, all keys
    /// are ascending and distinct.
    pub(super) fn read_clause(&self, clause: &str, keys: &mut Vec<u64>) -> ClauseOutcome {
        let mut reading = ClauseReader {
            lexicon: self,
            keys,
            outcome: ClauseOutcome::default(),
            state: ClauseState::default(),
        };
        scan_terms(clause, &mut |word| reading.read_word(&word));
        let ClauseReader { mut outcome, state, .. } = reading;
        if state.word_count == state.loud_word_count && state.loud_word_count > 0 {
            // A clause of only capitalised words of trouble, such as `ERRORS`, is a heading.
            outcome = ClauseOutcome::default();
        }
        if state.is_failed_pending {
            // `Failed` alone, or at the end of the clause.
            outcome.failure_kinds |= FAILED;
        }
        outcome.is_general &= !state.speaks_of_rest;
        outcome.is_general |= outcome.denies_failure;
        // In a clause with a failure, `7 of 11 tasks done` is no success.
        outcome.is_success |= state.has_partial_success && outcome.failure_kinds == 0;
        if !clause.is_ascii() {
            apply_phrases(clause, &mut outcome);
        }
        if parse_exit_success(clause) == Some(false) || has_failed_status(clause) {
            outcome.failure_kinds |= FAILED;
        }
        outcome.is_hedged |= clause.trim_end().ends_with('?');
        sort::sort_and_dedup_numbers(keys);
        outcome
    }
}

fn apply_phrases(clause: &str, outcome: &mut ClauseOutcome) {
    for (flags, list) in PHRASES {
        if list.iter().any(|phrase| clause.contains(phrase)) {
            outcome.failure_kinds |= flags & ANY_FAILURE;
            outcome.is_trouble |= flags & TROUBLE != 0;
            outcome.is_success |= flags & SUCCESS != 0 && !outcome.is_trouble;
            outcome.is_hedged |= flags & HEDGE != 0;
            outcome.is_general |= flags & ALL != 0;
        }
    }
}

/// The state of a reader before the next word.
#[derive(Debug, Default)]
struct ClauseState {
    /// Number of following words that the last negation still negates.
    negated_words_left: u32,
    /// Flags of the previous word.
    last_flags: u32,
    /// Hash of the previous word.
    last_key: u64,
    has_any_word: bool,
    /// Whether the previous word is a number above 0; `None`: the previous word is no number.
    last_number_is_positive: Option<bool>,
    /// Whether the previous word is a `Failed` that began the clause. The next word decides whether
    /// this `Failed` is an outcome or an attribute.
    is_failed_pending: bool,
    /// Whether the clause has a word with the flag [`REST`].
    speaks_of_rest: bool,
    /// Number of words so far.
    word_count: u32,
    /// Number of words of trouble in capitals so far, without forms of `failed`.
    loud_word_count: u32,
    /// Position of the last number among the words, from 1; 0: no number.
    number_word_index: u32,
    /// Whether a part of something went well.
    has_partial_success: bool,
}

struct ClauseReader<'l, 'k> {
    lexicon: &'l OutcomeLexicon,
    keys: &'k mut Vec<u64>,
    outcome: ClauseOutcome,
    state: ClauseState,
}

impl ClauseReader<'_, '_> {
    fn read_word(&mut self, word: &TermOccurrence<'_>) {
        let flags = self.lexicon.words.get(&word.key).copied().unwrap_or(0);
        if word.class == TermClass::Gram {
            self.keys.push(word.key);
            return;
        }
        self.state.word_count += 1;
        self.push_word_keys(word, flags);
        let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
        if self.state.is_failed_pending {
            self.state.is_failed_pending = false;
            if flags & (STOP | NEGATION) != 0 || word.text == "to" || word.text.len() < 3 {
                self.outcome.failure_kinds |= FAILED;
            }
        }
        let says = self.resolve_meaning(word, flags);
        if is_number {
            self.state.number_word_index = self.state.word_count;
        }
        self.apply_meaning(says);
        self.outcome.is_hedged |= flags & HEDGE != 0;
        if flags & NEGATION != 0 {
            // `could not` reports a fact, so the hedge `could` is taken back.
            self.outcome.is_hedged &= !(self.state.last_flags & HEDGE != 0 && word.text == "not");
            self.state.negated_words_left = NEGATION_WORDS + 1;
        }
        self.outcome.is_general |= flags & ALL != 0;
        self.state.speaks_of_rest |= flags & REST != 0;
        self.state.negated_words_left = self.state.negated_words_left.saturating_sub(1);
        self.state.last_number_is_positive =
            is_number.then(|| word.text.bytes().any(|byte| byte != b'0'));
        self.state.has_any_word = true;
        (self.state.last_flags, self.state.last_key) = (flags, word.key);
    }

    /// Returns the flags that a word has after the words before it.
    fn resolve_meaning(&mut self, word: &TermOccurrence<'_>, flags: u32) -> u32 {
        let is_loud = word.text.len() > 3
            && flags & (ANY_FAILURE | TROUBLE) != 0
            && word.text.bytes().all(|byte| byte.is_ascii_uppercase());
        let mut says = flags & (ANY_FAILURE | TROUBLE | SUCCESS);
        let refuses = ["declined", "rejected", "refused", "denied", "rejects"];
        if self.state.last_flags & PERSON != 0 && refuses.contains(&word.text) {
            says = 0;
        }
        let states = ["broken", "lost", "red", "blocked", "stuck", "corrupt", "corrupted"];
        if says & TROUBLE != 0 && states.contains(&word.text) && self.state.last_flags & STATE == 0
        {
            says = 0;
        }
        if self.state.last_flags & PAIR != 0 {
            says |= pair_meaning(self.state.last_key, word.key);
        }
        let counted = flags & COUNTED != 0 && self.state.last_number_is_positive == Some(true);
        if counted {
            says |= FAILED;
            self.outcome.counts_failures = true;
        } else if is_loud && flags & (FAILED | TROUBLE) != 0 {
            says |= FAILED;
            self.state.loud_word_count += u32::from(flags & FAILED == 0);
        } else if says & FAILED != 0 && self.state.last_flags & ATTRIBUTE != 0 {
            says = says & !FAILED | TROUBLE;
        } else if says & FAILED != 0 && !self.state.has_any_word && word.text.ends_with("ed") {
            says = says & !FAILED | TROUBLE;
            self.state.is_failed_pending = true;
        }
        self.outcome.is_hedged |= says & HEDGE != 0;
        says &= !HEDGE;
        let parts = ["done", "completed", "finished", "passed", "complete", "ok", "processed"];
        let near = self.state.number_word_index > 0
            && self.state.word_count - self.state.number_word_index < 4;
        if says == SUCCESS
            && near
            && parts.contains(&word.text)
            && self.state.negated_words_left == 0
        {
            self.state.has_partial_success = true;
            says = 0;
        }
        if self.state.negated_words_left > 0 && says == 0 && flags & WORKS != 0 {
            self.outcome.is_trouble = true;
        }
        says
    }

    fn apply_meaning(&mut self, says: u32) {
        if says == 0 {
            return;
        }
        let outcome = &mut self.outcome;
        if self.state.negated_words_left > 0 {
            // A denied failure is a success; a denied success is trouble.
            let bad = says & (ANY_FAILURE | TROUBLE) != 0;
            outcome.is_success |= bad;
            outcome.denies_failure |= bad;
            outcome.is_trouble |= !bad;
            self.state.negated_words_left = 0;
            return;
        }
        outcome.failure_kinds |= says & ANY_FAILURE;
        outcome.is_trouble |= says & TROUBLE != 0;
        outcome.is_success |= says & SUCCESS != 0;
    }

    fn push_word_keys(&mut self, word: &TermOccurrence<'_>, flags: u32) {
        if flags & (ANY_FAILURE | TROUBLE | SUCCESS | NEGATION | HEDGE | STOP) != 0 {
            return;
        }
        if word.text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            return self.push_part_keys(word.text, word.class);
        }
        for part in word.text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            self.push_part_keys(part, word.class);
        }
    }

    fn push_part_keys(&mut self, part: &str, class: TermClass) {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        let least = if digits || class == TermClass::Name { 2 } else { 3 };
        if part.len() >= least {
            self.keys.push(hash_stem(part, digits));
        }
        // The parts of a name are subject words, too.
        if part.bytes().any(|byte| byte == b'_') {
            let words = part.split('_').filter(|word| word.len() > 2 && word.len() < part.len());
            self.keys.extend(words.map(|word| hash_stem(word, false)));
        }
    }
}

fn pair_meaning(first: u64, second: u64) -> u32 {
    let is = |key: u64, word: &str| key == fnv_hash(word.as_bytes());
    PAIRS
        .iter()
        .filter(|(_, a, b)| is(first, a) && is(second, b))
        .fold(0, |all, (says, ..)| all | says)
}

/// Hashes the first [`STEM_LETTERS`] of a word, which are equal for most of its forms; of a number
/// or a name, all letters.
fn hash_stem(word: &str, digits: bool) -> u64 {
    let bare = if word.len() > 3 { word.strip_suffix('s').unwrap_or(word) } else { word };
    let named = digits || word.bytes().any(|byte| byte == b'_' || byte.is_ascii_digit());
    let letters = if named { usize::MAX } else { STEM_LETTERS };
    if bare.is_ascii() {
        return fnv_hash_lowercase(bare.as_bytes().iter().take(letters));
    }
    let mut bytes = Vec::with_capacity(8);
    for c in bare.chars().take(letters).flat_map(lower_char) {
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    fnv_hash(&bytes)
}

/// Words that begin a new clause.
const CONTRASTS: [&str; 9] = [
    " but ",
    " while ",
    " whereas ",
    " although ",
    " though ",
    " aber ",
    " however",
    " yet ",
    " then ",
];

/// Calls `each` with each clause of a line, and whether the clause continues the sentence of the
/// preceding clause.
pub(super) fn for_each_clause<'a>(line: &'a str, each: &mut dyn FnMut(&'a str, bool)) {
    let mut from = 0;
    let mut goes_on = false;
    let bytes = line.as_bytes();
    for at in 0..bytes.len() {
        // Only characters that can end a clause are decoded, because this loop reads every byte of
        // a source.
        let length = match bytes.get(at) {
            Some(b'.' | b'!' | b'?' | b';' | b' ') => 1,
            Some(0xe3 | 0xe4 | 0xef) => 3,
            _ => continue,
        };
        let end = at + length;
        let sign = line.get(at..end).unwrap_or("");
        let ends = match sign {
            "." | "!" | "?" | ";" => bytes.get(end).is_none_or(u8::is_ascii_whitespace),
            "\u{3002}" | "\u{ff01}" | "\u{ff1f}" | "\u{ff1b}" => true,
            _ => false,
        };
        if ends {
            each(line.get(from..end).unwrap_or(""), goes_on);
            (from, goes_on) = (end, sign == ";" || sign == "\u{ff1b}");
            continue;
        }
        let contrast = match sign {
            " " => is_contrast(line.get(at..).unwrap_or("")),
            "\u{4f46}" => true,
            _ => false,
        };
        if contrast && at > from {
            each(line.get(from..at).unwrap_or(""), goes_on);
            (from, goes_on) = (at, true);
        }
    }
    let rest = line.get(from..).unwrap_or("");
    if !rest.trim().is_empty() {
        each(rest, goes_on);
    }
}

/// Returns whether a text begins with one of [`CONTRASTS`].
fn is_contrast(text: &str) -> bool {
    let initial = text.as_bytes().get(1);
    matches!(initial, Some(b'a' | b'b' | b'h' | b't' | b'w' | b'y'))
        && CONTRASTS.iter().any(|word| text.starts_with(word))
}

/// Returns whether the first exit code that a line reports is 0; `None`: the line reports no exit
/// code. The code may be negative: Windows reports a crash as a negative code.
pub(super) fn parse_exit_success(line: &str) -> Option<bool> {
    const SIGNS: [&str; 9] = [
        "xit code",
        "xit_code",
        "xitCode",
        "xit status",
        "xited with",
        "exit ",
        "returncode",
        "\u{9000}\u{51fa}\u{7801}",
        "\u{7d42}\u{4e86}\u{30b3}\u{30fc}\u{30c9}",
    ];
    // A fast first check, because nearly no line reports an exit code.
    if line.is_ascii() && !contains_str(line, "xit") && !contains_str(line, "returncode") {
        return None;
    }
    let at = SIGNS.iter().find_map(|sign| Some(line.find(sign)? + sign.len()))?;
    let rest = line.get(at..)?;
    let rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '-');
    let rest = rest.strip_prefix("code").or_else(|| rest.strip_prefix("status")).unwrap_or(rest);
    let rest = rest.trim_start_matches([' ', ':', '=', '\u{4e3a}']);
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let code = rest.get(..digits).filter(|code| !code.is_empty())?;
    Some(code.bytes().all(|byte| byte == b'0'))
}

/// Returns whether a field of a report has a value of failure, such as `status: failed` or
/// `"state":"ERROR"`.
fn has_failed_status(clause: &str) -> bool {
    const FIELDS: [&str; 4] = ["tatus", "tate", "onclusion", "esult"];
    const FAILED: [&str; 8] =
        ["failed", "failure", "error", "errored", "aborted", "killed", "timeout", "timed_out"];
    if !clause.bytes().any(|byte| matches!(byte, b':' | b'=')) {
        return false;
    }
    let value_after = |at: usize| {
        let rest = clause.get(at..)?;
        let rest = rest.trim_start_matches(['"', '\'', ' ']).strip_prefix([':', '='])?;
        let rest = rest.trim_start_matches(['"', '\'', ' ']);
        let end = rest.bytes().position(|byte| !byte.is_ascii_alphabetic() && byte != b'_');
        rest.get(..end.unwrap_or(rest.len()))
    };
    FIELDS.iter().any(|field| {
        clause
            .match_indices(field)
            .filter_map(|(at, _)| value_after(at + field.len()))
            .any(|value| FAILED.iter().any(|failed| failed.eq_ignore_ascii_case(value)))
    })
}
