//! The focus brief in a context: one element that replaces the summaries that the brief covers.
//!
//! In: the stored brief and the items of the context. Out: the items with the brief in place of the
//! covered summaries, and its rendered element. The replacement precedes the selection.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::{ContextItem, SummaryItem},
    records::focus::FocusBrief,
    summary,
};
use lcm_text::{
    base::{int, tokens},
    config::Config,
    summary::transcript,
};

/// The element of a focus brief in a context.
#[derive(Debug)]
pub(super) struct FocusElement {
    /// Index of its item, which was the index of the first covered summary.
    pub(super) index: usize,
    /// Text of the element.
    pub(super) element: String,
    pub(super) tokens: u64,
    /// Id of the brief.
    pub(super) name: String,
}

/// Replaces the summaries that a brief covers by the element of the brief. A brief covers the
/// summaries whose `seq_last` is at most the `seq_last` of the brief. `None`: no summary is
/// covered, and `items` is unchanged.
pub(super) fn replace_covered_summaries(
    brief: &FocusBrief,
    items: &mut Vec<ContextItem>,
    config: &Config,
) -> Option<FocusElement> {
    let covered = |item: &ContextItem| match item {
        ContextItem::Summary(summary) if summary.seq_last <= brief.seq_last => Some(*summary),
        _ => None,
    };
    let index = items.iter().position(|item| covered(item).is_some())?;
    let summaries: Vec<SummaryItem> = items.iter().filter_map(covered).collect();
    let (first, last) = (summaries.first()?, summaries.last()?);
    let names: Vec<String> =
        summaries.iter().map(|summary| summary::format_summary_id(summary.id)).collect();
    let name = brief.name();
    let markup = if config.plain_summaries {
        transcript::render_focus_plain
    } else {
        transcript::render_focus_xml
    };
    let element = markup(&name, &names, &brief.text);
    let tokens = tokens::estimate(&element);
    let item = ContextItem::Summary(SummaryItem {
        // A hash of the element, by which caches recognise its text: the element lists the covered
        // summaries, which may differ from an earlier context.
        id: lcm_text::base::hash::hash_prefix(&lcm_text::base::hash::hash_fields(&[
            b"lcm focus element",
            element.as_bytes(),
        ])),
        depth: last.depth,
        tokens,
        rendered_tokens: tokens,
        bytes: int::to_u32(element.len()),
        seq_first: first.seq_first,
        seq_last: last.seq_last,
        is_provisional: false,
    });
    items.retain(|item| covered(item).is_none());
    items.insert(index.min(items.len()), item);
    Some(FocusElement { index, element, tokens: tokens.into(), name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::context::MessageRun;

    fn summary(number: u8, seq_first: u64, seq_last: u64) -> ContextItem {
        let (depth, tokens, rendered_tokens, bytes) = (0, 5, 9, 20);
        let id = [number; 8];
        ContextItem::Summary(SummaryItem {
            id,
            depth,
            tokens,
            rendered_tokens,
            bytes,
            seq_first,
            seq_last,
            is_provisional: false,
        })
    }

    fn run(seq_first: u64, seq_last: u64) -> ContextItem {
        ContextItem::Run(MessageRun { seq_first, seq_last, tokens_before: 0, tokens: 7 })
    }

    fn brief(seq_last: u64) -> FocusBrief {
        FocusBrief { seq_last, time: 1, text: "a < b".into() }
    }

    #[test]
    fn a_brief_replaces_the_first_summary_that_it_covers() {
        let mut items = Vec::from([
            summary(1, 1, 60),
            summary(2, 61, 100),
            summary(3, 101, 140),
            run(141, 150),
        ]);
        let focus = replace_covered_summaries(&brief(100), &mut items, &Config::default()).unwrap();
        assert_eq!((focus.index, items.len()), (0, 3));
        assert_eq!((items[0].seq_first(), items[0].seq_last()), (1, 100));
        assert_eq!(items[1], summary(3, 101, 140));
        assert!(focus.element.starts_with("<focus_brief id=\"focus_"), "{}", focus.element);
        let both = "<summary_ref id=\"sum_0101010101010101\"/>\
                    <summary_ref id=\"sum_0202020202020202\"/>";
        assert!(focus.element.contains(both), "{}", focus.element);
        assert!(focus.element.contains("<content>a &lt; b</content>"), "{}", focus.element);
    }

    #[test]
    fn runs_between_covered_summaries_stay_and_a_brief_without_summaries_is_omitted() {
        let mut items = Vec::from([run(1, 2), summary(1, 3, 60), run(61, 70), summary(2, 71, 90)]);
        let focus = replace_covered_summaries(&brief(90), &mut items, &Config::default()).unwrap();
        assert_eq!((focus.index, items.len()), (1, 3));
        assert_eq!(items[2], run(61, 70));
        let before = items.clone();
        assert!(replace_covered_summaries(&brief(59), &mut items, &Config::default()).is_none());
        assert_eq!(items, before);
    }
}
