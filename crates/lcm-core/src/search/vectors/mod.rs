//! Vectors: the embeddings that a host attached to documents, and their similarity to a query.
//!
//! Input: embeddings as decimals in JSON. Output: the vector record of a conversation, and the
//! similarity of documents. No value is a float: a vector is quantised once ([`quantization`]), the
//! sign bits of 64 documents form a block ([`sign_block`]), and [`similarity`] compares integers.
//! Elsewhere: computing embeddings (the host), attaching them (`crate::recall`), and vector queries
//! (`crate::search::grep`).

pub(crate) mod check;
pub(crate) mod quantization;
mod record;
pub(crate) mod sign_block;
pub(crate) mod similarity;
mod update;

pub(crate) use record::{VectorRecord, block_key, diagnose_damage, vector_key};
pub(crate) use update::{DocumentVector, VectorUpdate};
