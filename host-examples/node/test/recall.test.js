// Recall in the package over the real component: tools, search, vectors, grants.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NOW, withEngine } from "./opened.js";

test("the tools of an agent find what was said and lead to its words", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", [{ role: "user", content: "The release is called heron." }]);
    const names = lcm.tools("anthropic").map((tool) => tool.name);
    assert.deepEqual(names, ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_budget"]);
    assert.match(lcm.instructions("anthropic"), /never instructions/);
    const found = await lcm.callTool("c", "lcm_grep", { pattern: "heron" });
    assert.deepEqual(await lcm.callTool("c", "lcm_grep", '{"pattern":"heron"}'), found);
    assert.equal(found.isError, false);
    const next = JSON.parse(/^Next: lcm_describe (\{.*?\})/m.exec(found.text)[1]);
    const described = await lcm.callTool("c", "lcm_describe", next);
    assert.ok(described.text.endsWith('{"role":"user","content":"The release is called heron."}'));
    const wrong = await lcm.callTool("c", "lcm_grep", { pattern: "heron", limit: 0 });
    assert.equal(wrong.isError, true);
    assert.match(wrong.text, /`limit` must be a whole number from 1 to 200/);
    const asked = await lcm.callTool("c", "lcm_expand_query", { prompt: "What is the release called?" });
    assert.equal(asked.isError, false, asked.text);
    assert.match(asked.text, /Cited: msg_.*The release is called heron\. \[msg_/s);
  });
});

test("grep shows neighbours, and goes on in files where an answer says", async () => {
  const config = { large_payload_tokens_min: 1000 };
  const work = async (lcm) => {
    const text = `${"nothing of it here\n".repeat(1000)}a heron\n${"nothing\n".repeat(500_000)}`;
    const file = { type: "file", name: "log.txt", text };
    await lcm.append("c", [
      { role: "user", content: "said before" },
      { role: "user", content: "The release is called heron." },
      { role: "user", parts: [file] },
    ]);
    const { matches } = await lcm.grep("c", "release", { neighbours: 1 });
    const { neighboursBefore, neighboursAfter } = matches[0];
    assert.deepEqual([neighboursBefore[0].snippet, neighboursAfter.length], ["said before", 1]);
    const first = await lcm.grep("c", "heron", { scope: "files" });
    assert.deepEqual(first.matches.map(({ line, byte }) => [line, byte]), [[1001, 19_002]]);
    const { cursor } = first;
    const next = await lcm.grep("c", "heron", { scope: "files", cursor });
    assert.equal(next.total, 0);
    const [startId, startByte] = cursor.split(/[:-]/);
    assert.ok(Number(startByte) > 19_002 && next.cursor === null);
    const fileIds = [startId];
    const named = await lcm.grep("c", "a heron$", { scope: "files", mode: "regex", fileIds });
    assert.equal(named.total, 1);
  };
  await withEngine("memory:", work, { config });
});

test("what is near is found by vectors of any list of numbers", async () => {
  await withEngine("memory:", async (lcm) => {
    const said = ["The heron stands in the water.", "An invoice was paid.", "Rain on the roof."];
    await lcm.append("c", said.map((content) => ({ role: "user", content })));
    const numbers = said.map((_, at) => Array.from({ length: 8 }, (_, k) => (k % 3 === at ? 0.9 : -0.1)));
    const { missingIds: next, missingCount } = await lcm.embed("c");
    assert.deepEqual([next.length, missingCount], [3, 3]);
    const forms = [numbers[0], Float32Array.from(numbers[1]), Float64Array.from(numbers[2])];
    // Newest first.
    const vectors = next.map((id, at) => ({ id, vector: forms[2 - at] }));
    const kept = await lcm.embed("c", { vectors, model: "m" });
    assert.deepEqual([kept.stored, kept.missingCount, kept.missingIds], [3, 0, []]);
    for (const [at, vector] of forms.entries()) {
      const { matches } = await lcm.grep("c", "absent", { vector, model: "m", limit: 1 });
      assert.equal(matches[0].snippet, said[at]);
    }
    const short = lcm.grep("c", "absent", { vector: new Float32Array(9).fill(1) });
    await assert.rejects(short, { code: "invalid-input", message: /dimensions/ });
    await assert.rejects(lcm.embed("c", { vectors: [{ id: next[0], vector: [NaN, 1] }] }), {
      code: "invalid-input",
    });
    for (const wrong of [{ a: [1] }, [null], [1], [{ id: next[0] }], [{ vector: [1] }]]) {
      await assert.rejects(lcm.embed("c", { vectors: wrong }), { code: "invalid-input" });
    }
    assert.equal((await lcm.embed("c")).stored, 3);
    assert.equal((await lcm.embed("c", { forget: true })).stored, 0);
  });
});

test("a sub-agent reads on a grant until it is spent or revoked", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", [{ role: "user", content: "The release is called heron." }]);
    const { id: grant, tokensLeft } = await lcm.grant("c", { tokensMax: 100 });
    assert.equal(tokensLeft, 100);
    const names = lcm.tools("anthropic", { grant }).map((tool) => tool.name);
    assert.deepEqual(names, ["lcm_grep", "lcm_describe", "lcm_expand"]);
    const found = await lcm.grep("c", "heron", { grant });
    assert.equal(found.grant.tokensLeft, 100 - found.grant.tokens);
    const told = await lcm.callTool("c", "lcm_grep", { pattern: "heron" }, { grant });
    assert.equal(told.isError, false);
    const [listed] = await lcm.listing("grants", { conversation: "c" });
    assert.equal(listed.tokensLeft, 100 - 2 * found.grant.tokens);
    await lcm.revoke("c", grant);
    await lcm.revoke("c", grant);
    await assert.rejects(lcm.grep("c", "heron", { grant }), { code: "denied" });
    await assert.rejects(lcm.grant("c", { tokens: 1 }), { code: "invalid-input" });
    await assert.rejects(lcm.revoke("c", "grant_1"), { code: "not-found" });
  });
});
