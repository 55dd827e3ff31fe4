//! Check of the context and the summaries: partition, sources and totals.
//!
//! In: the history and all summaries of a conversation. Out: findings in the report. The import
//! uses the same rules for summaries.

use crate::storage::pack::PlacedMessage;
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    codec,
    context::{Context, ContextItem},
    head::ConversationHead,
    history::MessageHistory,
    keys::ConversationKeys,
    records::{remakes::RemakeRecord, summary_counts::SummaryCounts},
    store_session::StoreSession,
    summary::{self, Summary, SummarySources},
    summary_records::SizedSummaries,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result, int, time, tokens},
    message::trust::Trust,
};

use super::CheckReport;

/// Checks that the context items cover every message once, in order, and match the stored records.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn check_context(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    summaries: &SizedSummaries,
    report: &mut CheckReport,
) -> Result<()> {
    let MessageHistory { keys, head } = *history;
    report.begin_check("context");
    let context: &Context = &head.context;
    let Some(items) = report.catch_damage(context.load_items(session, keys))? else {
        return Ok(());
    };
    let remakes = RemakeRecord::read(session, keys, head);
    let remakes = report.catch_damage(remakes)?.unwrap_or_default();
    let mut next = 1u64;
    for item in &items {
        report.expect_sound(item.seq_first() == next && item.seq_last() >= next, || {
            format!("a context item begins at message {}, expected {next}", item.seq_first())
        });
        next = item.seq_last() + 1;
        match item {
            ContextItem::Run(run) => {
                let messages = history.read_messages(session, run.seq_first, run.seq_last);
                let Some(messages) = report.catch_damage(messages)? else { continue };
                let sum: u64 = messages.iter().map(|placed| u64::from(placed.stored.tokens)).sum();
                let before = messages.first().map_or(0, |placed| placed.tokens_before);
                report.expect_sound(sum == run.tokens && before == run.tokens_before, || {
                    format!("the run from message {} has other tokens", run.seq_first)
                });
            }
            ContextItem::Summary(item) => {
                let name = summary::format_summary_id(item.id);
                let Some((record, bytes)) = summaries.get(&item.id) else {
                    report.add_finding(format!("the summary `{name}` is missing"));
                    continue;
                };
                let matches_record = record.depth == item.depth
                    && record.tokens == item.tokens
                    && record.seq_first == item.seq_first
                    && record.seq_last == item.seq_last
                    && *bytes == item.bytes
                    && record.is_provisional() == item.is_provisional
                    && (record.derivation_version != DERIVATION_VERSION
                        || tokens::estimate(&record.render_xml(item.id)) == item.rendered_tokens);
                report.expect_sound(matches_record, || {
                    format!("the item of `{name}` differs from its record")
                });
                report.expect_sound(remakes.find_exit(item.id).is_none(), || {
                    format!("`{name}` is in the context, although the record of remakes says that it left")
                });
            }
            ContextItem::Withdrawn { .. } => {}
        }
    }
    report.expect_sound(next == head.messages + 1, || {
        format!("the context ends before message {next}, the sequence at {}", head.messages)
    });
    let is_provisional =
        |item: &&ContextItem| matches!(item, ContextItem::Summary(item) if item.is_provisional);
    let provisional = items.iter().filter(is_provisional).count();
    report.expect_sound(int::to_u64(provisional) == context.provisional, || {
        format!("{provisional} items are provisional, the head counts {}", context.provisional)
    });
    let stored: u64 = items.iter().map(ContextItem::tokens).sum();
    let rendered: u64 = items.iter().map(ContextItem::rendered_tokens).sum();
    report.expect_sound(stored == context.tokens && rendered == context.rendered_tokens, || {
        format!("the items have {stored} tokens, the head counts {}", context.tokens)
    });
    Ok(())
}

/// Checks every summary and the record of remakes. The tokens of a summary must match its text; its
/// depth, range, totals and trust must match its sources. The record `derived` of each source
/// summary must name the summary, or a summary that was made from the source later.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn check_summaries(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    summaries: &SizedSummaries,
    report: &mut CheckReport,
) -> Result<()> {
    let head = history.head;
    report.begin_check("summaries");
    let remakes = RemakeRecord::read(session, history.keys, head);
    let remakes = report.catch_damage(remakes)?.unwrap_or_default();
    check_remakes(head, summaries, &remakes, report);
    let count = u64::try_from(summaries.len()).unwrap_or(u64::MAX);
    report.expect_sound(count == head.summaries, || {
        format!("the head counts {} summaries, the store has {count}", head.summaries)
    });
    let mut counted = SummaryCounts::default();
    let mut all_current = true;
    for (_, (record, _)) in summaries.as_entries() {
        counted.count_summary(record.depth, record.tokens);
        all_current &= record.derivation_version == DERIVATION_VERSION;
    }
    let counts_key = SummaryCounts::key(history.keys);
    let counts =
        report.catch_damage(session.read_record(&counts_key))?.map(Option::unwrap_or_default);
    report.expect_sound(counts.is_none_or(|counts| counts.matches(&counted, all_current)), || {
        format!("`{}` counts other summaries by depth than are stored", counts_key.name())
    });
    for (id, (record, _)) in summaries.as_entries() {
        let name = summary::format_summary_id(*id);
        let is_counted = record.derivation_version != DERIVATION_VERSION
            || record.tokens == tokens::estimate(&record.text);
        report.expect_sound(is_counted, || format!("the tokens of `{name}` differ from its text"));
        match &record.sources {
            SummarySources::Messages { span, .. } => {
                let is_sound = record.depth == 0
                    && span.is_sound()
                    && span.seq_last <= head.messages
                    && record.seq_first == span.seq_first
                    && record.seq_last == span.seq_last
                    && record.descendant_count == 0;
                report.expect_sound(is_sound, || format!("`{name}` is not a sound leaf"));
            }
            SummarySources::Summaries(list) => {
                let found: Vec<&Summary> = list
                    .iter()
                    .filter_map(|source| summaries.get(&source.id))
                    .map(|(source, _)| source)
                    .collect();
                report.expect_sound(found.len() == list.len(), || {
                    format!("a source of `{name}` is missing")
                });
                report.expect_sound(is_derived_from(record, &found), || {
                    format!(
                        "the depth, range, totals or trust of `{name}` do not match its sources"
                    )
                });
                let ids: Vec<[u8; 8]> = list.iter().map(|source| source.id).collect();
                check_derived(session, history.keys, (*id, summaries, &remakes), &ids, report)?;
            }
        }
    }
    check_leaves(session, history, summaries, report)
}

/// Returns three sums over `sources`: the number of sources with all descendants, the tokens of all
/// these texts, and the tokens of the covered messages.
pub(in crate::admin) fn sum_measures(sources: &[&Summary]) -> (u64, u64, u64) {
    let sum = |of: fn(&Summary) -> u64| sources.iter().map(|source| of(source)).sum();
    (
        sum(|source| source.descendant_count + 1),
        sum(|source| source.descendant_tokens + u64::from(source.tokens)),
        sum(|source| source.message_tokens),
    )
}

/// Returns whether depth, range, totals and trust of a condensed record match its sources, and its
/// times enclose the times of the sources.
///
/// Sources must be in order; withdrawn messages may lie between two of them.
pub(in crate::admin) fn is_derived_from(record: &Summary, sources: &[&Summary]) -> bool {
    let in_order = sources
        .windows(2)
        .all(|pair| matches!(pair, [left, right] if left.seq_last < right.seq_first));
    let measures = (record.descendant_count, record.descendant_tokens, record.message_tokens);
    sources.len() >= 2
        && in_order
        && record.depth == 1 + sources.iter().map(|source| source.depth).max().unwrap_or(0)
        && sources.first().is_some_and(|first| first.seq_first == record.seq_first)
        && sources.last().is_some_and(|last| last.seq_last == record.seq_last)
        && measures == sum_measures(sources)
        && encloses_times(record, sources)
        && record.trust == Trust::least_of(sources.iter().map(|source| source.trust))
        && (record.is_provisional() || !sources.iter().any(|source| source.is_provisional()))
}

/// Returns whether the times of a record enclose those of its sources. A record of undated sources
/// is undated, and a dated record has a dated source.
fn encloses_times(record: &Summary, sources: &[&Summary]) -> bool {
    let times = sources.iter().flat_map(|source| [source.earliest_at, source.latest_at]);
    let (earliest, latest) = time::find_range(times);
    let is_undated = |at| at == time::UNDATED;
    let of_record = [record.earliest_at, record.latest_at].map(is_undated);
    of_record == [earliest, latest].map(is_undated)
        && record.earliest_at <= earliest
        && latest <= record.latest_at
}

/// Checks the record of remakes: in each pair the new summary names the provisional one, and has
/// the same messages and the same depth; each summary that left the context is stored.
fn check_remakes(
    head: &ConversationHead,
    summaries: &SizedSummaries,
    remakes: &RemakeRecord,
    report: &mut CheckReport,
) {
    let count = remakes.count_entries();
    report.expect_sound(count == head.remakes, || {
        format!("the head counts {} remakes and exits, the store has {count}", head.remakes)
    });
    for id in remakes.list_exits() {
        report.expect_sound(summaries.get(id).is_some(), || {
            format!("`{}`, which left the context, is missing", summary::format_summary_id(*id))
        });
    }
    for remake in remakes.list_made() {
        let pair = (summaries.get(&remake.old), summaries.get(&remake.new));
        let is_sound = matches!(pair, (Some((old, _)), Some((new, _)))
            if old.is_provisional()
                && new.replaces == Some(remake.old)
                && (old.seq_first, old.seq_last) == (new.seq_first, new.seq_last)
                && old.depth == new.depth);
        report.expect_sound(is_sound, || {
            let (old, new) = (remake.old, remake.new);
            let [old, new] = [old, new].map(summary::format_summary_id);
            format!("`{new}` was not made in place of `{old}`")
        });
    }
}

/// Checks that the record `derived` of each source names the summary `id`, a summary that was made
/// in its place, or a summary that was made from the source after `id` left the context.
fn check_derived(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    (id, summaries, remakes): ([u8; 8], &SizedSummaries, &RemakeRecord),
    sources: &[[u8; 8]],
    report: &mut CheckReport,
) -> Result<()> {
    let names: Vec<String> = sources.iter().map(|source| keys.derived_key(*source)).collect();
    let values = session.read_uncached(&names)?;
    for ((key, source), value) in names.iter().zip(sources).zip(values) {
        let derived = match value {
            Some(value) => report.catch_damage(codec::decode::<[u8; 8]>(key, &value))?,
            None => None,
        };
        let has_source = |derived| {
            let refs = summaries.get(&derived).map(|(record, _)| record.source_refs());
            refs.unwrap_or(&[]).iter().any(|other| other.id == *source)
        };
        let is_newer =
            |derived| derived == id || remakes.is_in_chain(id, derived) || has_source(derived);
        report.expect_sound(derived.is_some_and(is_newer), || {
            format!("`{key}` does not lead to `{}`", summary::format_summary_id(id))
        });
    }
    Ok(())
}

/// Returns the least trust of the messages, from the texts that contexts render.
///
/// # Errors
///
/// `corrupt`: a text is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(in crate::admin) fn least_trust(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    messages: &[PlacedMessage],
) -> Result<Trust> {
    let mut labels = Vec::new();
    for message in messages {
        let raw = history.read_rendered_text(session, &message.stored)?;
        labels.push(Trust::from_message(&raw, message.stored.role, &message.stored.parts));
    }
    Ok(Trust::least_of(labels))
}

/// Checks that message tokens, running hash and trust of every leaf match its messages.
fn check_leaves(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    summaries: &SizedSummaries,
    report: &mut CheckReport,
) -> Result<()> {
    let head = history.head;
    for (id, (record, _)) in summaries.as_entries() {
        let SummarySources::Messages { span, frontier } = &record.sources else { continue };
        if span.seq_last > head.messages {
            continue;
        }
        let messages = history.read_span(session, span);
        let Some(messages) = report.catch_damage(messages)? else { continue };
        let sum: u64 = messages.iter().map(|placed| u64::from(placed.stored.tokens)).sum();
        let found = report.catch_damage(history.frontier_of_message(session, messages.last()))?;
        let is_derived = sum == record.message_tokens && found == Some(*frontier);
        let name = summary::format_summary_id(*id);
        report.expect_sound(is_derived, || {
            format!("the messages of `{name}` differ from the stored messages")
        });
        let Some(trust) = report.catch_damage(least_trust(session, history, &messages))? else {
            continue;
        };
        report.expect_sound(trust == record.trust, || {
            let (found, expected) = (record.trust.as_str(), trust.as_str());
            format!("the trust of `{name}` is {found}, its messages have {expected}")
        });
    }
    Ok(())
}
