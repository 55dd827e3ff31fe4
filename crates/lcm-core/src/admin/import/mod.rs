//! Import: restores conversations from the lines of an export.
//!
//! In: a page of lines and a cursor, in two passes over the export. Out: totals and the next
//! cursor. The first pass writes nothing. It verifies checksums, order, messages and hashes, and
//! that the store has no other messages in these conversations. The second pass stores the same
//! lines ([`writer`]): versions of the system messages, messages as an append stores them, then
//! summaries, then the context in one commit. After every commit the conversation is sound and
//! holds the beginning of the export. So a repeated import completes an interrupted import.

mod progress;
mod summaries;
mod writer;

use alloc::{format, string::String, vec::Vec};

use crate::{
    compaction,
    storage::{
        call::Call,
        head::{ConversationHead, LoadedHead},
        history::MessageHistory,
        keys::ConversationKeys,
        records::remakes::RemakeRecord,
        store_session::StoreSession,
        summary::{self, Summary},
    },
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::JsonWriter,
        limits,
    },
    config::Config,
    types::api::Timestamp,
};

use super::export_format::{ExportLine, SummaryLine};
use progress::{ImportProgress, ImportSection};

/// Imports one page of lines and returns `{"consumed", "cursor", "rewind", ...}` with totals.
///
/// `consumed` counts the accepted lines of this page. The next call passes `cursor` and the lines
/// that follow them. After the last line of the first pass, a host passes an empty page. Only the
/// answer to this page has a true `rewind`: the next call passes the lines from the first on. A
/// `cursor` of null ends the import.
///
/// # Errors
///
/// - `invalid-input`: a line, named by its number, breaks the format, or a summary or context does
///   not match the store.
/// - `exists`: the store has other messages or summaries.
/// - `limit-exceeded`: the page has more than 1 MiB.
/// - `denied`: the stored conversation is being deleted, or is archived and lacks messages of the
///   export.
/// - `unsupported`: a newer version stored a summary.
/// - `conflict`: the conversation changed during the import.
/// - Errors of the store.
///
/// The call that fails wrote nothing, unless the store failed in the commit.
pub(crate) fn import_page(
    session: &mut StoreSession<'_>,
    lines: &[String],
    cursor: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let bytes: usize = lines.iter().map(String::len).sum();
    if int::to_u32(bytes) > limits::CALL_BYTES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`lines` must have at most {} bytes in one call, got {bytes}",
            limits::CALL_BYTES_MAX
        )));
    }
    // An import copies stored messages, so the configuration of the instance does not apply.
    let config = Config::default();
    let mut progress = ImportProgress::read(cursor)?;
    if lines.is_empty() {
        if !progress.is_ended || progress.verified_checksum.is_some() {
            return Err(progress.line_error("is missing: the export is not complete"));
        }
        return build_response(&progress.start_second_pass(), 0, true);
    }
    if progress.verified_checksum.is_some() {
        let consumed = writer::write_page(session, &config, &mut progress, lines, now)?;
        return build_response(&progress, consumed, false);
    }
    for text in lines {
        let line = progress.open_line(text)?;
        progress.accept_line(&line)?;
        verify_line(session, &config, &mut progress, &line)?;
    }
    build_response(&progress, lines.len(), false)
}

fn build_response(progress: &ImportProgress, consumed: usize, rewind: bool) -> Result<String> {
    let done = progress.verified_checksum.is_some() && progress.is_ended;
    let cursor = if done { None } else { Some(progress.encode_cursor()?) };
    let totals = &progress.totals;
    let mut answer = JsonWriter::new_object();
    answer.add_number("consumed", int::to_u64(consumed));
    answer.add_number("contexts", totals.contexts);
    answer.add_number("conversations", progress.part);
    answer.add_optional_text("cursor", cursor.as_deref());
    answer.add_number("ingested", totals.ingested);
    answer.add_number("messages", totals.messages);
    answer.add_flag("rewind", rewind);
    answer.add_number("summaries", totals.summaries);
    Ok(answer.end_object())
}

/// Compares a line that the first pass accepted with the stored conversation.
fn verify_line(
    session: &mut StoreSession<'_>,
    config: &Config,
    progress: &mut ImportProgress,
    line: &ExportLine,
) -> Result<()> {
    match line {
        ExportLine::Header(header) => {
            let stored = OpenConversation::open(session, &header.conversation)?;
            ensure_same_messages(session, progress, stored.call(config, 0), &stored.loaded)?;
            let head = &stored.loaded.head;
            if let Some(section) = &mut progress.section {
                section.messages_stored = head.messages;
                section.stored_frontier = head.frontier;
            }
            Ok(())
        }
        ExportLine::Message(_) | ExportLine::LargeMessage(_) | ExportLine::Chunk(_) => {
            let Some(section) = &progress.section else { return Ok(()) };
            section.ensure_messages_match(section.messages_stored, &section.stored_frontier)
        }
        ExportLine::Summary(line) => match &progress.section {
            Some(section)
                if section.messages_stored > 0 && section.messages_stored <= section.messages =>
            {
                let stored = OpenConversation::open(session, &section.conversation)?;
                let call = stored.call(config, 0);
                read_matching_derivations(session, call, &stored.loaded.head, line).map(|_| ())
            }
            _ => Ok(()),
        },
        ExportLine::System(_) | ExportLine::SystemChunk(_) => Ok(()),
        ExportLine::Withdrawn(_) | ExportLine::Context(_) | ExportLine::End(_) => Ok(()),
    }
}

/// A conversation of an import, with its keys and its stored head.
struct OpenConversation {
    name: String,
    keys: ConversationKeys,
    loaded: LoadedHead,
}

impl OpenConversation {
    fn open(session: &mut StoreSession<'_>, conversation: &str) -> Result<Self> {
        let keys = ConversationKeys::new(conversation)?;
        let loaded = LoadedHead::load_head(session, &keys, conversation)?;
        Ok(Self { name: conversation.into(), keys, loaded })
    }

    /// Returns a call on this conversation.
    fn call<'a>(&'a self, config: &'a Config, now: Timestamp) -> Call<'a> {
        Call { config, conversation: &self.name, keys: &self.keys, now }
    }
}

/// If the store has at least as many messages as the section, ensures that the first stored
/// messages equal the messages of the section. With fewer stored messages the comparison comes
/// later.
fn ensure_same_messages(
    session: &mut StoreSession<'_>,
    progress: &ImportProgress,
    call: Call<'_>,
    loaded: &LoadedHead,
) -> Result<()> {
    let Some(section) = &progress.section else { return Ok(()) };
    let head = &loaded.head;
    let same = match section.messages {
        0 => true,
        last if last <= head.messages => {
            MessageHistory::new(call, head).frontier_at(session, last)? == section.frontier
        }
        _ => true,
    };
    if same { Ok(()) } else { Err(section.other_messages_error()) }
}

impl ImportSection {
    /// Ensures, at the message with the seq `newest`, that the running hash equals `frontier`, the
    /// stored running hash after this message.
    fn ensure_messages_match(&self, newest: u64, frontier: &[u8; 16]) -> Result<()> {
        if newest > 0 && self.messages_seen == newest && self.running_hash != *frontier {
            return Err(self.other_messages_error());
        }
        Ok(())
    }

    fn other_messages_error(&self) -> Error {
        let message = format!(
            "the conversation `{}` holds other messages than the export; import into another store",
            self.conversation
        );
        Error::new(ErrorCode::Exists, message)
    }
}

/// For each source of the summary in `line`, reads the stored summary that was derived from the
/// source; `None`: no summary was derived. The derived summary must be the summary in `line` or a
/// remake of it. This rule does not hold if the summary in `line` is itself a remake or is
/// superseded, or if the derived summary is no longer in the context.
///
/// # Errors
///
/// `exists`: a source has another derived summary in the context; errors of the store.
fn read_matching_derivations(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    line: &SummaryLine,
) -> Result<Vec<Option<[u8; 8]>>> {
    let keys = call.keys;
    let sources = line.record.source_refs();
    let derived: Vec<_> =
        sources.iter().map(|source| Summary::derived_key(keys, source.id)).collect();
    let derived = session.read_records(&derived)?;
    let is_free = line.record.replaces.is_some() || line.place.is_superseded;
    for (found, source) in derived.iter().zip(sources) {
        let Some(found) = found.filter(|found| *found != line.id && !is_free) else { continue };
        // The store may have made the summary again.
        let remakes = RemakeRecord::read(session, keys, head)?;
        let items = head.context.load_items(session, keys)?;
        if !remakes.is_in_chain(line.id, found)
            && compaction::find_enclosing_item(session, call, &items, found)?.is_some()
        {
            let source = summary::format_summary_id(source.id);
            let message =
                format!("the store condensed the summary `{source}` into another summary");
            return Err(Error::new(ErrorCode::Exists, message));
        }
    }
    Ok(derived)
}
