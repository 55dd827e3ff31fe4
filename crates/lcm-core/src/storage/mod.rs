//! Storage: the keys and encodings of records, bounded reads, and guarded commits.
//!
//! In: a host's store and typed records. Out: decoded records, and at most one commit per exported
//! call. All operations of this crate read and write the store through this module.

pub(crate) mod call;
pub(crate) mod changes;
pub(crate) mod clock;
pub(crate) mod codec;
pub(crate) mod compressed_pack;
pub(crate) mod context;
pub(crate) mod conversation_list;
pub(crate) mod cursor_binding;
pub(crate) mod fresh_tail;
pub(crate) mod head;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod links;
pub(crate) mod message_mark;
pub(crate) mod message_span;
pub(crate) mod newest_sources;
pub(crate) mod pack;
pub(crate) mod pack_compaction;
pub(crate) mod payload_text;
pub(crate) mod prefetch;
pub(crate) mod read_scope;
pub(crate) mod record_key;
pub(crate) mod records;
pub(crate) mod session;
pub mod store;
pub(crate) mod store_session;
pub(crate) mod summary;
pub(crate) mod summary_items;
pub(crate) mod summary_records;
pub(crate) mod withdrawn_mark;
