// Results in pages: joined to one result, or page by page on demand.
//
// In: `read(cursor)`, which resolves to a page; null asks for the first page.

/** Whether a page of an expansion is the last page that can be read. */
function isLast(page) {
  return !page.cursor || page.grant?.truncated === true;
}

/** Yields the pages of an expansion, each read on demand. */
export async function* expansionPages(read) {
  for (let cursor = null; ; ) {
    const page = await read(cursor);
    yield page;
    if (isLast(page)) return;
    cursor = page.cursor;
  }
}

/**
 * Joins all pages of an expansion.
 *
 * A read on a grant spends tokens. When a page after the first one fails, the result is what was
 * read so far, and its `cursor` leads to the page that failed.
 */
export async function expanded(read, { grant, tokens_max: tokensMax }) {
  let whole = await read(null);
  while (!isLast(whole) && (tokensMax ?? null) === null) {
    let page;
    try {
      page = await read(whole.cursor);
    } catch (error) {
      if ((grant ?? null) === null) throw error;
      return whole;
    }
    whole = {
      ...page,
      summaries: [...whole.summaries, ...page.summaries],
      messages: [...whole.messages, ...page.messages],
      tokens: whole.tokens + page.tokens,
      ...(page.grant && {
        grant: { ...page.grant, tokens: whole.grant.tokens + page.grant.tokens },
      }),
    };
  }
  return whole;
}

/** Yields pages of texts of the messages `first` to `last`; `read(seq)` reads a page from `seq`. */
export async function* messagePages(read, first, last) {
  for (let seq = first; seq <= last; ) {
    const page = await read(seq);
    if (page.length === 0) return;
    yield page;
    seq += page.length;
  }
}

/** Yields the pages of a document that continues at a cursor. */
export async function* cursorPages(read) {
  for (let cursor = null; ; ) {
    const page = await read(cursor);
    yield page;
    if (!page.cursor) return;
    cursor = page.cursor;
  }
}

/** Yields the elements of each page, one by one; `elementsOf(page)` returns them. */
export async function* each(pages, elementsOf) {
  for await (const page of pages) yield* elementsOf(page);
}

/** Collects a stream of pages in an array. */
export async function collected(pages) {
  const all = [];
  for await (const page of pages) all.push(page);
  return all;
}
