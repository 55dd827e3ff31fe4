//! Classifies an excerpt by cue words: error, outcome, decision, request, courtesy.
//!
//! Input: the words and the punctuation of an excerpt. Output: the flags of this module, *cues*.

/// Something failed.
pub(crate) const ERROR: u32 = 1;
/// Something was done or produced.
pub(super) const OUTCOME: u32 = 1 << 1;
/// Something was decided, or is a rule.
pub(super) const DECISION: u32 = 1 << 2;
/// A speaker wants something.
pub(super) const REQUEST: u32 = 1 << 3;
/// A courtesy, such as thanks.
pub(super) const COURTESY: u32 = 1 << 4;
/// An error in the form in which programs report errors.
pub(super) const REPORT: u32 = 1 << 7;
/// A negation, which makes a word of [`ERROR_IF_NEGATED`] an error.
const NEGATION: u32 = 1 << 5;
/// A word that means an error when negated, such as `found`.
const ERROR_IF_NEGATED: u32 = 1 << 6;

// Lower case. Chinese words have two ideographs, because terms are pairs of ideographs.
#[rustfmt::skip]
const CUE_WORDS: [(u32, &str); 8] = [
    (ERROR, "error errors exception exceptions failed failure failures fails fatal panic \
        panicked traceback denied refused timeout aborted crash crashed segfault undefined \
        invalid cannot unable unexpected rejected forbidden unauthorized conflict missing \
        fehler fehlgeschlagen erreur erreurs errore erro fallo \
        \u{43e}\u{448}\u{438}\u{431}\u{43a}\u{430} \u{9519}\u{8bef} \u{932f}\u{8aa4} \
        \u{5931}\u{8d25} \u{5931}\u{6557} \u{5f02}\u{5e38} \u{c624}\u{b958} \u{c2e4}\u{d328}"),
    (OUTCOME, "done fixed passed passes completed complete successfully success succeeded \
        created updated deleted removed added booked cancelled canceled merged deployed \
        resolved solved implemented confirmed refunded committed installed renamed applied \
        result total finished erledigt termin\u{e9} listo hecho \u{5b8c}\u{6210} \
        \u{6210}\u{529f} \u{5df2}\u{7ecf}"),
    (OUTCOME | ERROR_IF_NEGATED, "found"),
    (DECISION, "decided decide decision chose choose agreed instead because must should never \
        always prefer required requires only policy constraint therefore entschieden \
        d\u{e9}cid\u{e9} \u{51b3}\u{5b9a} \u{5fc5}\u{987b} \u{5e94}\u{8be5} \u{56e0}\u{4e3a} \
        \u{91c7}\u{7528}"),
    (REQUEST, "please want need could would can how what why where which when make add fix \
        change remove use show write implement update create like looking bitte wie quiero je \
        \u{8bf7}\u{95ee} \u{60f3}\u{8981} \u{5e0c}\u{671b} \u{5e2e}\u{6211} \u{6211}\u{60f3}"),
    (COURTESY, "thanks thank welcome hello hi glad happy sorry appreciate great assist else \
        goodbye bye worries wonderful danke gracias merci \u{8c22}\u{8c22} \u{4f60}\u{597d} \
        \u{60a8}\u{597d} \u{518d}\u{89c1} \u{5ba2}\u{6c14}"),
    (NEGATION, "no not none couldn't can't doesn't isn't"),
    (ERROR_IF_NEGATED, "such available exist exists able permitted allowed recognized defined \
        supported"),
];

/// Most lines in which programs report errors contain one of these strings.
const REPORT_MARKERS: [&str; 14] = [
    "rror: ",
    "rror] ",
    "xception: ",
    "arning: ",
    "raceback (",
    "atal: ",
    "FAIL",
    "ailed",
    "enied",
    "efused",
    "o such ",
    "ot found",
    "annot ",
    "panicked at",
];

/// Returns every cue word with its cues. Each word is in one list only.
pub(crate) fn iter_cue_words() -> impl Iterator<Item = (&'static str, u32)> {
    CUE_WORDS.iter().flat_map(|(cues, words)| words.split(' ').map(|word| (word, *cues)))
}

/// Returns the cues of an excerpt: from `words`, the cues of all its words, and from its text.
pub(super) fn classify_cues(words: u32, text: &str) -> u32 {
    let mut cues = words & (ERROR | OUTCOME | DECISION | REQUEST | COURTESY);
    if words & NEGATION != 0 && words & ERROR_IF_NEGATED != 0 {
        cues |= ERROR;
        cues &= !OUTCOME;
    }
    if cues & ERROR != 0 && REPORT_MARKERS.iter().any(|report| text.contains(report)) {
        cues |= REPORT;
    }
    if text.contains('?') || (!text.is_ascii() && text.contains('\u{ff1f}')) {
        cues |= REQUEST;
    }
    cues
}
