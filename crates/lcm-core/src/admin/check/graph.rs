//! The context and the summaries: partition, edges, measures.

use crate::storage::pack::Placed;
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    codec,
    context::{Context, Item},
    head::Head,
    history::History,
    keys::Keys,
    store_session::Reader,
    summary::{self, Sources, Summary},
};
use lcm_text::{
    base::{derivation_version::RULES, error::Result, tokens},
    message::trust::Trust,
};

use super::{Report, Summaries};

/// The items partition the sequence, and say of each what is stored.
///
/// # Errors
///
/// Of the store.
pub(super) fn context(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    summaries: &Summaries,
    report: &mut Report,
) -> Result<()> {
    report.begin("context");
    let context: &Context = &head.context;
    let Some(items) = report.damage(context.load(reader, keys))? else { return Ok(()) };
    let mut next = 1u64;
    for item in &items {
        report.expect(item.seq_first() == next && item.seq_last() >= next, || {
            format!("an item begins with {} where {next} belongs", item.seq_first())
        });
        next = item.seq_last() + 1;
        match item {
            Item::Run(run) => {
                let history = History { keys, head };
                let messages = history.messages(reader, run.seq_first, run.seq_last);
                let Some(messages) = report.damage(messages)? else { continue };
                let sum: u64 = messages.iter().map(|placed| u64::from(placed.stored.tokens)).sum();
                let before = messages.first().map_or(0, |placed| placed.tokens_before);
                report.expect(sum == run.tokens && before == run.tokens_before, || {
                    format!("the run from {} has other tokens", run.seq_first)
                });
            }
            Item::Summary(item) => {
                let name = summary::name(item.id);
                let Some((record, bytes)) = summaries.get(&item.id) else {
                    report.found(format!("the summary `{name}` is missing"));
                    continue;
                };
                let same = record.depth == item.depth
                    && record.tokens == item.tokens
                    && record.seq_first == item.seq_first
                    && record.seq_last == item.seq_last
                    && *bytes == item.bytes
                    && (record.rules != RULES
                        || tokens::estimate(&record.xml(item.id)) == item.rendered_tokens);
                report.expect(same, || format!("the item of `{name}` differs from its record"));
            }
            Item::Withdrawn { .. } => {}
        }
    }
    report.expect(next == head.messages + 1, || {
        format!("the context ends before {next}, the sequence at {}", head.messages)
    });
    let stored: u64 = items.iter().map(Item::tokens).sum();
    let rendered: u64 = items.iter().map(Item::rendered_tokens).sum();
    report.expect(stored == context.tokens && rendered == context.rendered_tokens, || {
        format!("the items have {stored} tokens, the head says {}", context.tokens)
    });
    Ok(())
}

/// Every summary follows from its sources and leads on to what was derived from it.
///
/// # Errors
///
/// Of the store.
pub(super) fn summaries(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    summaries: &Summaries,
    report: &mut Report,
) -> Result<()> {
    report.begin("summaries");
    let count = u64::try_from(summaries.len()).unwrap_or(u64::MAX);
    report.expect(count == head.summaries, || {
        format!("{count} summaries where the head counts {}", head.summaries)
    });
    for (id, (record, _)) in summaries.entries() {
        let name = summary::name(*id);
        let counted = || record.tokens == tokens::estimate(&record.text);
        report.expect(record.rules != RULES || counted(), || {
            format!("the tokens of `{name}` differ from its text")
        });
        match &record.sources {
            Sources::Messages { seq_first, seq_last, .. } => {
                let sound = record.depth == 0
                    && seq_first <= seq_last
                    && *seq_last <= head.messages
                    && record.seq_first == *seq_first
                    && record.seq_last == *seq_last
                    && record.descendant_count == 0;
                report.expect(sound, || format!("`{name}` is no sound leaf"));
            }
            Sources::Summaries(list) => {
                let found: Vec<&Summary> = list
                    .iter()
                    .filter_map(|source| summaries.get(&source.id))
                    .map(|(source, _)| source)
                    .collect();
                report.expect(found.len() == list.len(), || {
                    format!("a source of `{name}` is missing")
                });
                report.expect(follows(record, &found), || {
                    format!("`{name}` does not follow from its sources")
                });
                let ids: Vec<[u8; 8]> = list.iter().map(|source| source.id).collect();
                derived(reader, keys, *id, &ids, report)?;
            }
        }
    }
    leaves(reader, keys, head, summaries, report)
}

/// What summaries count together: summaries, their tokens, and the tokens of all messages.
pub(in crate::admin) fn measures(sources: &[&Summary]) -> (u64, u64, u64) {
    let sum = |of: fn(&Summary) -> u64| sources.iter().map(|source| of(source)).sum();
    (
        sum(|source| source.descendant_count + 1),
        sum(|source| source.descendant_tokens + u64::from(source.tokens)),
        sum(|source| source.message_tokens),
    )
}

/// Whether a condensed record is what its sources make. Between two of them may lie what was
/// withdrawn.
pub(in crate::admin) fn follows(record: &Summary, sources: &[&Summary]) -> bool {
    let in_order = sources
        .windows(2)
        .all(|pair| matches!(pair, [left, right] if left.seq_last < right.seq_first));
    let measured = (record.descendant_count, record.descendant_tokens, record.message_tokens);
    sources.len() >= 2
        && in_order
        && record.depth == 1 + sources.iter().map(|source| source.depth).max().unwrap_or(0)
        && sources.first().is_some_and(|first| first.seq_first == record.seq_first)
        && sources.last().is_some_and(|last| last.seq_last == record.seq_last)
        && measured == measures(sources)
        && sources.iter().all(|source| source.earliest_at >= record.earliest_at)
        && sources.iter().all(|source| source.latest_at <= record.latest_at)
        && record.trust == Trust::least(sources.iter().map(|source| source.trust))
}

/// The sources know what was derived from them.
fn derived(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    sources: &[[u8; 8]],
    report: &mut Report,
) -> Result<()> {
    let names: Vec<String> = sources.iter().map(|source| keys.derived(*source)).collect();
    for (key, value) in names.iter().zip(reader.fresh(&names)?) {
        let back = match value {
            Some(value) => report.damage(codec::decode::<[u8; 8]>(key, &value))?,
            None => None,
        };
        report.expect(back == Some(id), || {
            format!("`{key}` does not lead to `{}`", summary::name(id))
        });
    }
    Ok(())
}

/// The least label of messages.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(in crate::admin) fn trust(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    messages: &[Placed],
) -> Result<Trust> {
    let mut labels = Vec::new();
    for message in messages {
        let raw = history.shown(reader, &message.stored)?;
        labels.push(Trust::of_message(&raw, message.stored.role, &message.stored.parts));
    }
    Ok(Trust::least(labels))
}

/// Every leaf is made of the messages it names.
fn leaves(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    summaries: &Summaries,
    report: &mut Report,
) -> Result<()> {
    let history = History { keys, head };
    for (id, (record, _)) in summaries.entries() {
        let Sources::Messages { seq_first, seq_last, frontier } = &record.sources else {
            continue;
        };
        if *seq_last > head.messages {
            continue;
        }
        let messages = history.messages(reader, *seq_first, *seq_last);
        let Some(messages) = report.damage(messages)? else { continue };
        let sum: u64 = messages.iter().map(|placed| u64::from(placed.stored.tokens)).sum();
        let found = report.damage(history.frontier_of(reader, messages.last()))?;
        let same = sum == record.message_tokens && found == Some(*frontier);
        let name = summary::name(*id);
        report.expect(same, || format!("the messages of `{name}` are others"));
        let Some(trust) = report.damage(trust(reader, &history, &messages))? else { continue };
        report.expect(trust == record.trust, || {
            format!("`{name}` is {}, its messages are {}", record.trust.as_str(), trust.as_str())
        });
    }
    Ok(())
}
