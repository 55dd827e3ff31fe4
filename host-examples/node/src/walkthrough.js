// The walkthrough that every host package has: store a conversation, compact it, assemble a
// context, expand a summary, and get every message back.
//
// In: an open engine and the lines of host-examples/walkthrough.jsonl. Out: lines for a person.
// The clock is fixed and summaries are made offline, so every host ends with the same store.

const CONVERSATION = "walkthrough";
const NOW = 1_700_000_000_000;
const BATCH_MESSAGES = 16;
const BUDGET = 3_000;

async function appendAll(lcm, lines) {
  let receipt;
  for (let start = 0; start < lines.length; start += BATCH_MESSAGES) {
    const batch = lines.slice(start, start + BATCH_MESSAGES);
    receipt = await lcm.append(CONVERSATION, batch, { now: NOW });
  }
  return receipt;
}

/** Runs the walkthrough over an empty store; resolves to the lines for a person. */
export async function walkthrough(lcm, lines) {
  const said = [];
  const receipt = await appendAll(lcm, lines);
  said.push(`stored ${receipt.seqLast} messages, ${receipt.contextTokens} tokens`);

  const compacted = await lcm.compact(CONVERSATION, { budget: BUDGET, now: NOW });
  const { passes, tokensBefore, tokensAfter, status } = compacted;
  said.push(
    `compacted: ${status}, ${passes.length} summaries, ${tokensBefore} -> ${tokensAfter}`,
  );

  const context = await lcm.assemble(CONVERSATION, { budget: BUDGET, explain: true, now: NOW });
  const { messages, tokens, summaries } = context;
  said.push(`assembled ${messages.length} messages, ${summaries} summaries, ${tokens} tokens`);

  const summary = context.items.find((item) => item.kind !== "message");
  const described = await lcm.describe(CONVERSATION, summary.id, { now: NOW });
  const whole = { includeMessages: true, depthMax: 10, now: NOW };
  const expanded = await lcm.expand(CONVERSATION, summary.id, whole);
  const { kind, seqFirst, seqLast } = described;
  said.push(`expanded ${kind} ${summary.id}: messages ${seqFirst} to ${seqLast}`);
  said.push(`its first message begins ${expanded.messages[0].raw.slice(0, 60)}`);

  const digest = await lcm.digest();
  const back = await lcm.messages(CONVERSATION);
  const equal = back.length === lines.length && back.every((text, i) => text === lines[i]);
  said.push(`store digest: ${digest}`);
  said.push(`every message came back byte for byte: ${equal ? "yes" : "no"}`);
  return { said, digest, equal };
}
