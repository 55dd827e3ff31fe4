//! Bounds that the engine keeps under every configuration, with the reason for each.

/// Most keys of one `get-many`.
pub const KEYS_MAX: usize = 1_000;
/// Most bytes of values in one host call, in either direction. Python's component binding traps
/// above 2.79 MB of byte lists.
pub const CALL_BYTES_MAX: u32 = 1 << 20;
/// Most bytes of one value.
pub const VALUE_BYTES_MAX: usize = 256 << 10;
/// Most puts of one commit.
pub const PUTS_MAX: usize = 256;
/// Most messages of one append.
pub const BATCH_MESSAGES_MAX: usize = 100;
/// Most raw bytes of one append; uploaded messages are not counted.
pub const BATCH_BYTES_MAX: usize = 512 << 10;
/// Most bytes of one message.
pub const MESSAGE_BYTES_MAX: u64 = 32 << 20;
/// Most messages of one pack.
pub const PACK_MESSAGES_MAX: usize = 64;
/// Most raw bytes of one pack, and of one message inside a pack; a larger message is stored apart.
pub const PACK_BYTES_MAX: usize = 64 << 10;
/// Least bytes of text of a compressed pack; with these bytes the pack ends at the next seq
/// divisible by [`COMPRESSED_PACK_ALIGNMENT`]. Measured on chats: twice as many bytes save 1 % of
/// the raw text, and reading one message takes twice as long.
pub const COMPRESSED_TEXTS_BYTES_MIN: usize = 32 << 10;
/// Most bytes of text of one compressed pack. Reading one message inflates half of a pack on
/// average.
pub const COMPRESSED_TEXTS_BYTES_MAX: usize = 128 << 10;
/// A compressed pack ends at a seq divisible by this number, unless this many messages do not fit
/// one pack.
pub const COMPRESSED_PACK_ALIGNMENT: u64 = 64;
/// Most bytes of text that one commit compresses.
pub const PACK_COMPACTION_BYTES_MAX: usize = 256 << 10;
/// Most bytes of one chunk of a large text.
pub const CHUNK_BYTES_MAX: usize = 192 << 10;
/// Most bytes of a conversation id.
pub const CONVERSATION_BYTES_MAX: usize = 512;
/// Messages that one directory node covers.
pub const DIRECTORY_SPAN: u64 = 1_024;
/// Most pack references that the head holds; above this number, all but the newest 8 move to the
/// directory.
pub const RECENT_PACKS_MAX: usize = 28;
/// Identities of the newest messages that the head holds for alignment. There are more than one
/// batch has messages, so that a repeated batch lies inside.
pub const RECENT_HASHES_MAX: usize = 119;
/// Latest `append` calls that are recognised when they are repeated.
pub const RECENT_BATCHES_MAX: usize = 8;
/// Context items that the head holds itself.
pub const INLINE_ITEMS_MAX: usize = 32;
/// Context items of one node.
pub const NODE_ITEMS_MAX: usize = 128;
/// Context nodes of one conversation.
pub const NODES_MAX: usize = 32;
/// Least number of context items with which summaries are merged before new summaries are made:
/// three quarters of the items that the root can refer to.
pub const CONTEXT_ITEMS_MERGE_MIN: u64 = 3_072;
/// Most sources of one condensed summary, so that its commit stays within [`PUTS_MAX`].
pub const SOURCES_MAX: usize = 128;
/// Bytes of values that an engine instance caches in memory.
pub const CACHE_BYTES_MAX: usize = 16 << 20;
/// Most bytes of inflated compressed packs in that cache.
pub const OPEN_PACKS_BYTES_MAX: usize = 4 << 20;
/// Most completions for one set of sources before the fallback.
pub const ATTEMPTS_MAX: u32 = 3;
/// Most tokens of a run between two summaries that is not summarised alone, because a model call
/// would cost more. The next condensed summary includes the run.
pub const BRIDGE_TOKENS_MAX: u64 = 32;
/// Bytes of text on one page of `expand`.
pub const PAGE_BYTES_MAX: usize = 512 << 10;
/// Directory nodes that an assembly reads ahead: 65,536 messages.
pub const DIRECTORY_NODES_READAHEAD_MAX: usize = 64;
/// Most bytes of a model's name, in a summary and in a report of tokens.
pub const MODEL_BYTES_MAX: usize = 128;
/// Most file ids that a summary lists. The bound keeps a record small when a text quotes many ids.
pub const FILE_IDS_MAX: usize = 64;
/// Most bytes of uploaded text that one append reads: one message of the largest size.
pub const BATCH_UPLOADED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
/// Fewest numbers of an embedding; fewer do not distinguish documents.
pub const VECTOR_DIMENSIONS_MIN: usize = 8;
/// Most numbers of an embedding, so that a block of sign bits and a vector each fit a value several
/// times.
pub const VECTOR_DIMENSIONS_MAX: usize = 4_096;
/// Most entries of one call of `embed`: as many as a commit has puts.
pub const VECTOR_ENTRIES_MAX: usize = PUTS_MAX;
/// Most ids that `embed` returns for the next call. Vectors of any dimensions fit one commit when
/// their ids are neighbours.
pub const VECTOR_NEXT_MAX: usize = 200;
/// Most bytes of sign bits that a query reads: 16,384 documents of 1,536 dimensions.
pub const VECTOR_SIGNS_BYTES_MAX: usize = 3 << 20;
/// Least bytes that a document counts, so that a query reads at most 32,768 documents. With 16
/// dimensions, a query over 100,000 messages took 103 to 152 ms in the component.
pub const VECTOR_DOCUMENT_BYTES_MIN: usize = 96;
/// Most documents whose full vectors a query reads: those nearest by sign bits, as far as they fit
/// one host call. For random vectors, so many are needed to find the nearest ten of thousands; for
/// real ones, a tenth would do.
pub const VECTOR_RESCORED_MAX: usize = 512;
