//! Set operations on ascending lists of documents and on postings.
//!
//! Input: lists without duplicates. Output: lists of the same kind, for `full_text` and
//! `item_lookup`.

use alloc::vec::Vec;

use super::index_reader::Postings;

/// Keeps the documents whose value passes `is_kept`.
///
/// `values` has one value for each document, in the same order. A document without a value is
/// removed.
pub(super) fn retain_by_value<T>(
    documents: &mut Vec<u64>,
    values: &[T],
    is_kept: impl Fn(&T) -> bool,
) {
    let mut values = values.iter();
    documents.retain(|_| values.next().is_some_and(&is_kept));
}

/// Keeps the documents that are also in the other list. Both lists are ascending.
pub(super) fn intersect_in_place(documents: &mut Vec<u64>, other: &[u64]) {
    let mut other = other.iter().peekable();
    documents.retain(|document| {
        while other.next_if(|next| **next < *document).is_some() {}
        other.peek() == Some(&document)
    });
}

/// Removes the documents that are in the other list. Both lists are ascending.
pub(super) fn subtract_in_place(documents: &mut Vec<u64>, other: &[u64]) {
    let mut other = other.iter().peekable();
    documents.retain(|document| {
        while other.next_if(|next| **next < *document).is_some() {}
        other.peek() != Some(&document)
    });
}

/// Merges two ascending lists; a document in both lists occurs once in the result.
pub(super) fn union_documents(left: Vec<u64>, right: &[u64]) -> Vec<u64> {
    if left.is_empty() {
        return right.to_vec();
    }
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut right = right.iter().copied().peekable();
    for document in left {
        while let Some(next) = right.next_if(|next| *next < document) {
            out.push(next);
        }
        right.next_if_eq(&document);
        out.push(document);
    }
    out.extend(right);
    out
}

/// Merges two posting lists. A document in both lists gets the count `same(left, right)`.
pub(super) fn union_postings(
    left: &Postings,
    right: &Postings,
    same: impl Fn(u32, u32) -> u32,
) -> Postings {
    if left.documents.is_empty() {
        return right.clone();
    }
    let mut out = Postings::default();
    let rows = |list: &Postings| {
        let rows = list.documents.iter().copied().zip(list.counts.iter().copied());
        rows.collect::<Vec<(u64, u32)>>()
    };
    let mut more = rows(right).into_iter().peekable();
    let mut push = |(document, count): (u64, u32)| {
        out.documents.push(document);
        out.counts.push(count);
    };
    for (document, count) in rows(left) {
        while let Some(row) = more.next_if(|(next, _)| *next < document) {
            push(row);
        }
        let count = match more.next_if(|(next, _)| *next == document) {
            Some((_, other)) => same(count, other),
            None => count,
        };
        push((document, count));
    }
    more.for_each(push);
    out
}
