//! Import: the lines of an export become a conversation again.
//!
//! In: the lines, page by page and twice over, and a cursor. The first time everything is verified
//! and nothing written: the chain of sums, the order, every message, every hash, and whether the
//! store holds other messages under these names. Only then the lines are asked for once more and
//! stored ([`write`]): messages first, exactly as an append would, then summaries, then the
//! context in one commit. After every commit the conversation is sound and holds a beginning of
//! what was exported, so that an import which is cut short is completed by repeating it.

mod progress;
mod summaries;
mod write;

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    codec, head::Loaded, history::History, keys::Keys, store_session::Reader, summary,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::Writer,
        limits,
    },
    types::api::Timestamp,
};

use super::portable::{Header, Line, SummaryLine};
use progress::{Progress, Section};

/// Takes one page of lines. Answers `{"consumed", "cursor", "rewind", ...}`: how many lines were
/// taken, what to hand over with the next ones, whether those begin with the first line again, and
/// what was stored so far. A cursor of null ends the import. No lines say that there are no more.
///
/// # Errors
///
/// `invalid-input`: a line that no export has at its place, named by its number, and nothing was
/// written; `exists`: the store holds other messages or summaries; `limit-exceeded`: more than
/// 1 MiB; errors of the store.
pub(crate) fn import_page(
    reader: &mut Reader<'_>,
    lines: &[String],
    cursor: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let bytes: usize = lines.iter().map(String::len).sum();
    if int::to_u32(bytes) > limits::CALL_BYTES_MAX {
        return Err(Error::limit(format_args!(
            "lines: {bytes} bytes are over the 1 MiB of one call"
        )));
    }
    let mut progress = Progress::read(cursor)?;
    if lines.is_empty() {
        if !progress.ended || progress.verified.is_some() {
            return Err(progress.wrong("is missing: this is not the whole export"));
        }
        return answer(&progress.rewound(), 0, true);
    }
    if progress.verified.is_some() {
        let consumed = write::page(reader, &mut progress, lines, now)?;
        return answer(&progress, consumed, false);
    }
    for text in lines {
        let line = progress.open(text)?;
        progress.accept(&line)?;
        verify(reader, &mut progress, &line)?;
    }
    answer(&progress, lines.len(), false)
}

fn answer(progress: &Progress, consumed: usize, rewind: bool) -> Result<String> {
    let done = progress.verified.is_some() && progress.ended;
    let cursor = if done { None } else { Some(progress.text()?) };
    let totals = &progress.totals;
    let mut answer = Writer::object();
    answer.number("consumed", int::to_u64(consumed));
    answer.number("contexts", totals.contexts);
    answer.number("conversations", progress.part);
    answer.text_or_null("cursor", cursor.as_deref());
    answer.number("ingested", totals.ingested);
    answer.number("messages", totals.messages);
    answer.flag("rewind", rewind);
    answer.number("summaries", totals.summaries);
    Ok(answer.end_object())
}

/// Compares an accepted line with what the store holds.
fn verify(reader: &mut Reader<'_>, progress: &mut Progress, line: &Line) -> Result<()> {
    match line {
        Line::Header(header) => {
            let (keys, loaded) = stored(reader, header)?;
            let head = &loaded.head;
            compare(reader, progress, &keys, &loaded)?;
            let (messages, frontier) = (head.messages, head.frontier);
            if let Some(section) = &mut progress.section {
                (section.stored, section.stored_frontier) = (messages, frontier);
            }
            Ok(())
        }
        Line::Message(_) | Line::Large(_) | Line::Piece(_) => {
            let Some(section) = &progress.section else { return Ok(()) };
            section.same_messages(section.stored, &section.stored_frontier)
        }
        Line::Summary(line) => match &progress.section {
            Some(section) if section.stored > 0 && section.stored <= section.messages => {
                let keys = Keys::new(&section.conversation)?;
                derived_here(reader, &keys, line).map(|_| ())
            }
            _ => Ok(()),
        },
        Line::Context(_) | Line::End(_) => Ok(()),
    }
}

fn stored(reader: &mut Reader<'_>, header: &Header) -> Result<(Keys, Loaded)> {
    let keys = Keys::new(&header.conversation)?;
    let loaded = Loaded::of(reader, &keys, &header.conversation)?;
    Ok((keys, loaded))
}

/// Refuses a section whose messages are not the beginning of what is stored, when that has more.
fn compare(
    reader: &mut Reader<'_>,
    progress: &Progress,
    keys: &Keys,
    loaded: &Loaded,
) -> Result<()> {
    let Some(section) = &progress.section else { return Ok(()) };
    let head = &loaded.head;
    let same = match section.messages {
        0 => true,
        last if last <= head.messages => {
            History { keys, head }.frontier(reader, last)? == section.frontier
        }
        _ => true,
    };
    if same { Ok(()) } else { Err(section.other_messages()) }
}

impl Section {
    /// Refuses other messages, when the section has come to the newest stored one.
    fn same_messages(&self, newest: u64, frontier: &[u8; 16]) -> Result<()> {
        if newest > 0 && self.seen == newest && self.running != *frontier {
            return Err(self.other_messages());
        }
        Ok(())
    }

    fn other_messages(&self) -> Error {
        let message = format!("the conversation `{}` holds other messages", self.conversation);
        Error::new(ErrorCode::Exists, message)
    }
}

/// What the store says was derived from the sources of a condensed summary: nothing for those that
/// it does not know.
///
/// # Errors
///
/// `exists`: another summary was.
fn derived_here(reader: &mut Reader<'_>, keys: &Keys, line: &SummaryLine) -> Result<()> {
    let sources = line.record.source_refs();
    let names: Vec<String> = sources.iter().map(|source| keys.derived(source.id)).collect();
    for ((key, value), source) in names.iter().zip(reader.fresh(&names)?).zip(sources) {
        let Some(value) = value else { continue };
        if codec::decode::<[u8; 8]>(key, &value)? != line.id {
            let source = summary::name(source.id);
            let message = format!("the summary `{source}` was condensed in another way here");
            return Err(Error::new(ErrorCode::Exists, message));
        }
    }
    Ok(())
}
