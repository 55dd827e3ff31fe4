// Answers that come in pages: as one, or page by page as they are taken.
//
// In: `read(cursor)`, which resolves to a page; null asks for the first page.

/** Whether a page of an expansion is the last page that can be read. */
function isLast(page) {
  return !page.cursor || page.grant?.truncated === true;
}

/** The pages of an expansion, each read when it is taken. */
export async function* expansionPages(read) {
  for (let cursor = null; ; ) {
    const page = await read(cursor);
    yield page;
    if (isLast(page)) return;
    cursor = page.cursor;
  }
}

/**
 * All pages of an expansion as one.
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

/** Texts of the messages `from` to `to`; `read(seq)` resolves to some from `seq` on. */
export async function* messagePages(read, from, to) {
  for (let seq = from; seq <= to; ) {
    const page = await read(seq);
    if (page.length === 0) return;
    yield page;
    seq += page.length;
  }
}

/** The pages of a document that goes on at a cursor. */
export async function* cursorPages(read) {
  for (let cursor = null; ; ) {
    const page = await read(cursor);
    yield page;
    if (!page.cursor) return;
    cursor = page.cursor;
  }
}

/** What `of` finds in each page, one by one. */
export async function* each(pages, of) {
  for await (const page of pages) yield* of(page);
}

/** All that pages yield, as an array. */
export async function collected(pages) {
  const all = [];
  for await (const page of pages) all.push(page);
  return all;
}
