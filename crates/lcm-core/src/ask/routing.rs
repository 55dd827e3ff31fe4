//! Routing: advice on whether, and by whom, the sources of a question should be read.
//!
//! In: the number of candidates and the wording of a question. Out: an action with its reasons, in
//! the answer to a question with `plan_only`. A host may follow the action; the engine does not.
//! The rules know English words only.

use alloc::vec::Vec;

use lcm_loops::char_fold;

use lcm_text::base::{int, json::JsonWriter};

/// Depth of expansion, in steps from a summary to its sources, if no depth is given.
const DEPTH_DEFAULT: u32 = 3;
/// Greatest depth; a greater depth counts as this depth.
const DEPTH_MAX: u32 = 10;
/// Estimated tokens of a candidate.
const CANDIDATE_TOKENS: u64 = 220;
/// Factor of the estimate if the evidence has messages, in hundredths.
const MESSAGES_FACTOR: u64 = 190;
/// Increase of the factor of the estimate for each level of depth after the first, in hundredths.
const DEPTH_FACTOR: u64 = 65;
/// Factor of the estimate for a broad question, in hundredths.
const BROAD_FACTOR: u64 = 135;
/// Factor of the estimate for a question in several steps, in hundredths.
const MULTI_HOP_FACTOR: u64 = 125;
/// If the estimated tokens are at least this percentage of the token cap, the risk of exceeding the
/// cap is high.
const HIGH_RISK_PERCENT: u64 = 70;
/// If the estimated tokens are at least this percentage of the token cap, the risk is at least
/// moderate.
const MODERATE_RISK_PERCENT: u64 = 35;

const MULTI_HOP_WORDS: [&str; 9] = [
    "root cause",
    "causal chain",
    "chain of events",
    "multi-hop",
    "multi hop",
    "multi-step",
    "multi step",
    "cross-summary",
    "lead to",
];
const BROAD_WORDS: [&str; 17] = [
    "timeline",
    "chronology",
    "history",
    "long-term",
    "long term",
    "over time",
    "across time",
    "throughout",
    "over months",
    "last month",
    "past month",
    "last quarter",
    "past quarter",
    "last year",
    "past year",
    "over the years",
    "past months",
];

/// Properties of a question before its sources are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutingInput<'a> {
    pub(super) text: &'a str,
    /// Requested depth; `None`: the default.
    pub(super) depth: Option<u32>,
    /// Number of hits and named summaries.
    pub(super) candidates: usize,
    /// Token cap of the evidence.
    pub(super) tokens_max: u32,
    /// Whether the evidence has passages of messages.
    pub(super) has_messages: bool,
    /// Whether the candidates come from a search only, not from named summaries.
    pub(super) is_probe: bool,
}

impl RoutingInput<'_> {
    /// Renders the action, the estimated tokens, the risk and the reasons as JSON.
    pub(super) fn render_json(&self) -> JsonWriter {
        let depth = self.depth.unwrap_or(DEPTH_DEFAULT).clamp(1, DEPTH_MAX);
        let text = char_fold::lower_text(self.text);
        let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_broad = mentions(&BROAD_WORDS) || spans_years(&text);
        let is_multi_hop = depth >= 3 || self.candidates >= 5 || mentions(&MULTI_HOP_WORDS);
        let factors = [
            (self.has_messages, MESSAGES_FACTOR),
            (true, 100 + u64::from(depth - 1) * DEPTH_FACTOR),
            (is_broad, BROAD_FACTOR),
            (is_multi_hop, MULTI_HOP_FACTOR),
        ];
        let (mut estimate, mut unit) =
            (CANDIDATE_TOKENS.saturating_mul(int::to_u64(self.candidates)), 1u64);
        for (_, factor) in factors.into_iter().filter(|(counts, _)| *counts) {
            (estimate, unit) = (estimate.saturating_mul(factor), unit * 100);
        }
        let estimate = estimate.div_ceil(unit);
        let ratio = estimate.saturating_mul(100) / u64::from(self.tokens_max.max(1));
        let (risk, is_high) = match ratio {
            HIGH_RISK_PERCENT.. => ("high", true),
            MODERATE_RISK_PERCENT.. => ("moderate", false),
            _ => ("low", false),
        };
        let mut reasons: Vec<&str> = Vec::new();
        let is_small = self.candidates <= 1 && depth <= 2 && ratio < MODERATE_RISK_PERCENT;
        let action = if self.candidates == 0 {
            reasons.push("no-candidates");
            "answer-directly"
        } else if self.is_probe && is_small && !is_broad && !is_multi_hop {
            reasons.push("small-probe");
            "answer-directly"
        } else if is_high || (is_broad && is_multi_hop) {
            "delegate-traversal"
        } else {
            "expand-shallow"
        };
        let further = [(is_high, "high-risk"), (is_broad, "broad"), (is_multi_hop, "multi-hop")];
        reasons.extend(further.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason));
        let mut w = JsonWriter::new_object();
        w.add_text("action", action);
        w.add_number("estimated_tokens", estimate);
        w.add_texts("reasons", &reasons);
        w.add_text("risk", risk);
        w
    }
}

/// Returns whether a text names two years, from 1900 to 2099, that are at least two years apart.
fn spans_years(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_year =
        |word: &&str| word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
    let years: Vec<u32> = words.filter(is_year).filter_map(|word| word.parse().ok()).collect();
    match (years.iter().min(), years.iter().max()) {
        (Some(first), Some(last)) => last - first >= 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    fn route(depth: u32, candidates: usize, is_probe: bool, text: &str) -> String {
        let (depth, tokens_max, has_messages) = (Some(depth), 4_000, false);
        let route = RoutingInput { text, depth, candidates, tokens_max, has_messages, is_probe };
        route.render_json().end_object()
    }

    fn expected(action: &str, tokens: u32, reasons: &str, risk: &str) -> String {
        format!(
            "{{\"action\":\"{action}\",\"estimated_tokens\":{tokens},\"reasons\":[{reasons}],\
             \"risk\":\"{risk}\"}}"
        )
    }

    #[test]
    fn a_question_is_routed_by_what_reading_would_take() {
        let direct = expected("answer-directly", 363, "\"small-probe\"", "low");
        assert_eq!(route(2, 1, true, "which port"), direct);
        let high = "\"high-risk\",\"multi-hop\"";
        assert_eq!(route(3, 5, true, "x"), expected("delegate-traversal", 3_163, high, "high"));
        assert_eq!(route(1, 3, true, "x"), expected("expand-shallow", 660, "", "low"));
        let none = expected("answer-directly", 0, "\"no-candidates\"", "low");
        assert_eq!(route(1, 0, true, "x"), none);
    }

    #[test]
    fn words_and_years_make_a_question_broad() {
        for text in ["the history of db-3", "from 2019 to 2023", "Timeline, please"] {
            assert!(route(1, 1, true, text).contains("\"broad\""), "{text}");
        }
        for text in ["in 2023 or 2024", "port 2001x", "a story"] {
            assert!(!route(1, 1, true, text).contains("\"broad\""), "{text}");
        }
        let both = route(3, 1, true, "the timeline of how this did lead to that");
        assert!(both.contains("delegate-traversal"), "{both}");
    }
}
