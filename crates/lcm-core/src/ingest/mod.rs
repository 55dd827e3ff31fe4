//! Ingest: stores the messages of a host byte for byte and skips messages that are stored already.
//!
//! In: raw messages, or the identities of a transcript. Out: receipts and plans. The engine,
//! `drive`, and of `admin` the import and the command `rewind` use this module.
//!
//! [`append()`] decides which messages of a batch are new ([`identity`], [`new_messages`]), builds
//! their packs ([`batch`]) and makes one commit ([`commit`]). [`stage`] takes a large text piece by
//! piece. [`reconcile()`] compares a whole transcript with the stored messages. A message is
//! skipped only on evidence; in doubt the message is stored.

mod alignment;
mod anchor_alignment;
mod append;
mod append_options;
mod backlog;
mod batch;
mod block_questions;
mod branch_walk;
mod branch_window;
mod commit;
mod commit_events;
mod idempotency;
mod identity;
mod import;
mod line_change;
mod line_diff;
mod line_runs;
mod list_alignment;
mod list_batch;
mod list_decision;
mod list_texts;
mod longer_answer;
mod message_form;
mod moved_entries;
mod new_messages;
mod planned_line;
mod range_alignment;
mod reconcile;
mod reconcile_plan;
mod redaction;
mod rendered;
mod replay;
mod rewind;
mod stored_line;
mod stored_state;
mod system_messages;
mod system_option;
mod taken_ids;
mod transcript;
mod unfolding;
mod upload;
mod warnings;

pub(crate) use append::append;
pub(crate) use import::{ImportedMessages, ImportedVersion, import_messages, import_system};
pub(crate) use line_change::find_newest_user;
pub(crate) use planned_line::PlannedLine;
pub(crate) use reconcile::reconcile;
pub(crate) use rewind::{RewindTarget, rewind_line};
pub(crate) use stored_line::read_forms;
pub(crate) use transcript::identify;
pub(crate) use upload::stage;
