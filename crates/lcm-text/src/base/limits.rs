//! Bounds that the engine keeps under every configuration. All modules read them.

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
/// Most bytes of the messages of one append; uploaded messages are not counted.
pub const BATCH_BYTES_MAX: usize = 512 << 10;
/// Most bytes of one message.
pub const MESSAGE_BYTES_MAX: u64 = 32 << 20;
/// Most messages of one pack.
pub const PACK_MESSAGES_MAX: usize = 64;
/// Most bytes of all message texts inside one pack, and so of one text; a larger text is stored in
/// chunks outside the pack.
pub const PACK_BYTES_MAX: usize = 64 << 10;
/// Bytes of text from which a compressed pack ends at the next seq divisible by
/// [`COMPRESSED_PACK_ALIGNMENT`]. Measured on chats: twice as many bytes save 1 % of the raw text,
/// and reading one message takes twice as long.
pub const COMPRESSED_TEXTS_BYTES_MIN: usize = 32 << 10;
/// Most bytes of text of one compressed pack. Reading one message inflates half of a pack on
/// average.
pub const COMPRESSED_TEXTS_BYTES_MAX: usize = 128 << 10;
/// A compressed pack that is large enough ends at a seq divisible by this number. It ends earlier
/// if the next message does not fit the pack or has another dialect.
pub const COMPRESSED_PACK_ALIGNMENT: u64 = 64;
/// Bytes of texts, before deflating, that the finished compressed packs of a commit have when the
/// commit takes no further pack.
pub const PACK_COMPACTION_BYTES_MAX: usize = 256 << 10;
/// Most bytes of one chunk of a large text.
pub const CHUNK_BYTES_MAX: usize = 192 << 10;
/// Most bytes of a conversation id.
pub const CONVERSATION_BYTES_MAX: usize = 512;
/// Consecutive messages that one directory node covers.
pub const DIRECTORY_SPAN: u64 = 1_024;
/// Most pack references in the head. When an append exceeds this number, all references but the
/// newest 8 move to the directory.
pub const RECENT_PACKS_MAX: usize = 28;
/// Most marks in the head: those of the newest messages, for alignment. The number is above
/// [`BATCH_MESSAGES_MAX`], so that the head recognises a whole repeated batch.
pub const RECENT_MARKS_MAX: usize = 104;
/// Most running hashes of accepted lists in the head.
pub const ACCEPTED_LISTS_MAX: usize = 8;
/// Most beginnings of lists in the head, apart from the first message.
pub const LIST_STARTS_MAX: usize = 8;
/// Most records of `append` calls in the head; a repeated call is recognised by its record.
pub const RECENT_BATCHES_MAX: usize = 8;
/// Most context items in the head itself; context nodes hold the others.
pub const INLINE_ITEMS_MAX: usize = 32;
/// Most context items of one context node.
pub const NODE_ITEMS_MAX: usize = 128;
/// Most context nodes of one conversation.
pub const NODES_MAX: usize = 32;
/// Number of context items from which summaries are condensed before new leaves are made: three
/// quarters of the items that [`NODES_MAX`] full nodes hold.
pub const CONTEXT_ITEMS_MERGE_MIN: u64 = 3_072;
/// Most sources of one condensed summary, so that its commit stays within [`PUTS_MAX`].
pub const SOURCES_MAX: usize = 128;
/// Most bytes of raw values and inflated compressed packs that an engine instance caches. Decoded
/// packs and directory nodes have bounds of their own.
pub const CACHE_BYTES_MAX: usize = 16 << 20;
/// The part of [`CACHE_BYTES_MAX`], in bytes, for inflated compressed packs.
pub const OPEN_PACKS_BYTES_MAX: usize = 4 << 20;
/// Most completions for one set of sources before the fallback.
pub const ATTEMPTS_MAX: u32 = 3;
/// A run between two summaries with fewer tokens than this number is not summarised alone, because
/// a model call would cost more. The next condensed summary includes the run.
pub const BRIDGE_TOKENS_MAX: u64 = 32;
/// Most bytes of text on one page of `expand`; the first entry of a page may be larger.
pub const PAGE_BYTES_MAX: usize = 512 << 10;
/// Most directory nodes that an assembly reads ahead; 64 nodes cover 65,536 messages.
pub const DIRECTORY_NODES_READAHEAD_MAX: usize = 64;
/// Most bytes of a model's name in a stored record.
pub const MODEL_BYTES_MAX: usize = 128;
/// Most payload ids that a summary lists or a filter of `grep` names. The bound keeps the record of
/// a summary small when its sources quote many ids.
pub const FILE_IDS_MAX: usize = 64;
/// Most bytes of uploaded text that one append reads: one message of the largest size.
pub const BATCH_UPLOADED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
/// Fewest numbers of a vector; fewer do not distinguish documents.
pub const VECTOR_DIMENSIONS_MIN: usize = 8;
/// Most numbers of a vector. The sign bits of a block then take at most an eighth of
/// [`VALUE_BYTES_MAX`], and a stored vector, one byte for each number, a 64th.
pub const VECTOR_DIMENSIONS_MAX: usize = 4_096;
/// Most entries of one call of `embed`: as many as a commit has puts.
pub const VECTOR_ENTRIES_MAX: usize = PUTS_MAX;
/// Most ids that `embed` returns for the next call. The vectors of so many consecutive documents
/// fit one commit.
pub const VECTOR_NEXT_MAX: usize = 200;
/// Most bytes of sign bits that a query reads: for example, 16,384 documents of 1,536 dimensions.
pub const VECTOR_SIGNS_BYTES_MAX: usize = 3 << 20;
/// Least bytes that each document counts towards [`VECTOR_SIGNS_BYTES_MAX`], so that a query reads
/// at most 32,768 documents. With 16 dimensions, a query over 100,000 messages took 103 to 152 ms
/// in the component.
pub const VECTOR_DOCUMENT_BYTES_MIN: usize = 96;
/// Most documents whose full vectors a query reads: the nearest by sign bits, as far as their
/// vectors fit one host call. Random vectors need about 512 documents to find the nearest ten of
/// thousands; vectors of a real model need a tenth.
pub const VECTOR_RESCORED_MAX: usize = 512;
