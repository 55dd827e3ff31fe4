//! Bounds the engine keeps whatever is configured, with the reason for each.

/// Most keys of one `get-many`.
pub const KEYS_MAX: usize = 1_000;
/// Most bytes of values in one host call, either way: Python's component binding traps above
/// 2.79 MB of byte lists.
pub const CALL_BYTES_MAX: u32 = 1 << 20;
/// Most bytes of one value.
pub const VALUE_BYTES_MAX: usize = 256 << 10;
/// Most puts of one commit.
pub const PUTS_MAX: usize = 256;
/// Most messages of one append.
pub const BATCH_MESSAGES_MAX: usize = 100;
/// Most raw bytes of one append, staged messages not counted.
pub const BATCH_BYTES_MAX: usize = 512 << 10;
/// Most bytes of one message.
pub const MESSAGE_BYTES_MAX: u64 = 32 << 20;
/// Most messages of one pack.
pub const PACK_MESSAGES_MAX: usize = 64;
/// Most raw bytes of one pack, and of a message that stands in a pack at all.
pub const PACK_BYTES_MAX: usize = 64 << 10;
/// Bytes of text from which on a sealed pack ends at the next seq divisible by [`SEAL_ALIGNMENT`]:
/// measured on chats, twice as much saves 0.01 of the raw text and makes one message twice as slow
/// to read.
pub const COMPRESSED_TEXTS_BYTES_MIN: usize = 32 << 10;
/// Most bytes of text of one sealed pack; half of a pack is inflated for one message, on average.
pub const COMPRESSED_TEXTS_BYTES_MAX: usize = 128 << 10;
/// Sealed packs end with a seq divisible by this, unless so many messages are too large for one.
pub const COMPRESSED_PACK_ALIGNMENT: u64 = 64;
/// Most bytes of text that one commit seals.
pub const PACK_COMPACTION_BYTES_MAX: usize = 256 << 10;
/// Most bytes of one chunk of a large text.
pub const CHUNK_BYTES_MAX: usize = 192 << 10;
/// Most bytes of a conversation id.
pub const CONVERSATION_BYTES_MAX: usize = 512;
/// Messages that one directory node covers.
pub const DIRECTORY_SPAN: u64 = 1_024;
/// Pack references that the head holds before they move to the directory.
pub const RECENT_PACKS_MAX: usize = 28;
/// Identities that the head holds for alignment; more than a batch, so that a replayed batch
/// always lies inside.
pub const RECENT_HASHES_MAX: usize = 119;
/// Ingest calls whose repetition is recognised.
pub const RECENT_BATCHES_MAX: usize = 8;
/// Context items that stand in the head.
pub const INLINE_ITEMS_MAX: usize = 32;
/// Context items of one node.
pub const NODE_ITEMS_MAX: usize = 128;
/// Context nodes of one conversation.
pub const NODES_MAX: usize = 32;
/// Context items from which on summaries are merged before more are made: three quarters of what
/// the root can refer to.
pub const CONTEXT_ITEMS_MERGE_MIN: u64 = 3_072;
/// Most sources of one condensed summary, so that its commit keeps `PUTS_MAX`.
pub const SOURCES_MAX: usize = 128;
/// Bytes of values the instance keeps in memory.
pub const CACHE_BYTES_MAX: usize = 16 << 20;
/// Bytes of them that are opened sealed packs.
pub const OPEN_PACKS_BYTES_MAX: usize = 4 << 20;
/// Completions asked for one node before the fallback (architecture, rule 6).
pub const ATTEMPTS_MAX: u32 = 3;
/// A run of raw messages below this, between two summaries, is not worth a model call: the next
/// condensation takes it along.
pub const BRIDGE_TOKENS_MAX: u64 = 32;
/// Bytes of text on one page of `expand`.
pub const PAGE_BYTES_MAX: usize = 512 << 10;
/// Directory nodes that an assembly reads ahead: 65,536 messages.
pub const DIRECTORY_NODES_READAHEAD_MAX: usize = 64;
/// Bytes of a model's name: that a summary keeps, and that a report of tokens may have.
pub const MODEL_BYTES_MAX: usize = 128;
/// File ids that a summary lists; more would let quoted ids crowd a record out of its bound.
pub const FILE_IDS_MAX: usize = 64;
/// Bytes of staged text that one append resolves: one message of the largest size.
pub const BATCH_UPLOADED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
/// Numbers of an embedding: fewer tell nothing apart, and no model in use has more.
pub const VECTOR_DIMENSIONS_MIN: usize = 8;
/// See [`VECTOR_DIMENSIONS_MIN`]: the signs of a block and a vector then fit a value several times.
pub const VECTOR_DIMENSIONS_MAX: usize = 4_096;
/// Entries of one call of `embed`: as many as a commit has puts.
pub const VECTOR_ENTRIES_MAX: usize = PUTS_MAX;
/// Ids that `embed` names to go on with: their vectors of any dimensions fit one commit when they
/// are next to each other.
pub const VECTOR_NEXT_MAX: usize = 200;
/// Bytes of signs that a query reads: of 1,536 dimensions those of 16,384 documents.
pub const VECTOR_SIGNS_BYTES_MAX: usize = 3 << 20;
/// Bytes that a document counts at least, so that a query looks at 32,768 of them at most: with
/// 16 dimensions those of 100,000 messages took 103 to 152 ms in the component.
pub const VECTOR_DOCUMENT_BYTES_MIN: usize = 96;
/// Documents whose vectors a query reads, those that seem nearest by their signs, as far as they
/// fit one host call. Where nothing is near (vectors at random) so many find the nearest ten of
/// thousands; where something is, a tenth would.
pub const VECTOR_RESCORED_MAX: usize = 512;
