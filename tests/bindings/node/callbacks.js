'use strict';
// callbacks.js - functions that the library calls: progress of loading and of prompts, logits before a choice; those
// that throw, that give up, that take the session away, and that nobody holds any more.
const assert = require('node:assert');
const test = require('node:test');
const { PROMPT, bits, collect, greedy, ids, long, open, session } = require('./support.js');

const small = { ...session, batch: 8, sampling: greedy };

test('progress of loading', async () => {
  const told = [];
  const model = await open({ progress: (done, total) => { told.push([done, total]); } });
  assert.ok(told.length > 0 && told.every(([done, total], i) => done <= total && (!i || done >= told[i - 1][0])));
  assert.ok(model.info.vocab > 0);
  let calls = 0;
  await assert.rejects(open({ progress: () => ++calls > 0 }), { code: 'JIT_ERROR_ARGUMENT' });
  assert.strictEqual(calls, 1);
  for (const thrown of [new RangeError('while loading'), 7, undefined, null]) {
    calls = 0;
    const opening = open({ progress: () => { calls++; throw thrown; } });
    assert.strictEqual(await opening.then(assert.fail, (e) => e), thrown);
    assert.strictEqual(calls, 1);
  }
  await assert.rejects(open({ progress: async () => false }), /progress gave a promise/);
  await assert.rejects(open({ progress: 7 }), /progress is 7/);
});

test('progress of prompts', async () => {
  const model = await open();
  const prompt = model.tokenize(long);
  const s = await model.session(small), told = [];
  const whole = await model.session({ ...session, sampling: greedy });
  await whole.feed(prompt);
  const expected = bits(await whole.logits());
  s.setPromptFn((computed, length) => { told.push([computed, length]); });
  await s.feed(prompt);
  assert.deepStrictEqual(bits(await s.logits()), expected);
  assert.ok(told.length >= prompt.length / 8 && told.every(([, length]) => length === prompt.length));
  assert.ok(told.every(([computed], i) => !i || computed > told[i - 1][0]));
  assert.strictEqual(told.at(-1)[0], prompt.length);
  // Giving up: the session is where its last pass left it, and goes on.
  let calls = 0;
  s.setPromptFn(() => ++calls === 2);
  s.rewind(0);
  await assert.rejects(s.feed(prompt), { code: 'JIT_ERROR_CANCELLED' });
  assert.ok(calls === 2 && s.length > 0 && s.length < prompt.length);
  await s.feed(prompt.subarray(s.length));
  assert.deepStrictEqual(bits(await s.logits()), expected);
  // What is thrown comes out of each call that computes, behind the last pass as well.
  let armed = false;
  const thrown = new Error('in a prompt');
  s.setPromptFn((computed, length) => { if (armed && (armed === 'first' || computed === length)) throw thrown; });
  const all = [
    () => s.feed(prompt), () => s.feed(long), () => s.feedLogits(prompt), () => s.score(prompt),
    () => s.embed(prompt, { pooling: 'mean' }),
  ];
  for (const which of ['first', 'last']) {
    for (const call of all) {
      s.rewind(0);
      armed = which;
      assert.strictEqual(await call().then(assert.fail, (e) => e), thrown);
      armed = false;
    }
  }
  s.rewind(0);
  await s.feed(prompt);
  assert.deepStrictEqual(bits(await s.logits()), expected);
  armed = 'first';
  s.setPromptFn(null);
  s.rewind(0);
  await s.feed(prompt);
  s.setPromptFn(async () => false);
  s.rewind(0);
  await assert.rejects(s.feed(prompt), /the function for prompts gave a promise/);
  assert.throws(() => s.setPromptFn('x'), /the function for prompts is "x"/);
});

test('logits before a choice', async () => {
  const model = await open(), { vocab } = model.info;
  const prompt = [...model.tokenize(PROMPT)];
  for (const speculate of ['off', 'auto', '4']) {
    const s = await model.session({ ...session, speculate, sampling: greedy }), seen = [];
    s.setLogitsFn((logits, before) => {
      assert.ok(logits instanceof Float32Array && logits.length === vocab && before instanceof Int32Array);
      seen.push([...before]);
    });
    await s.feed(prompt);
    const generation = s.generate({ maxTokens: ids.length });
    await generation.read();
    assert.deepStrictEqual([...generation.ids], ids);
    assert.deepStrictEqual(seen, ids.map((_, i) => [...prompt, ...ids.slice(0, i)]));
  }
  // What it forbids is not chosen, and its own logits are as ever.
  const s = await model.session({ ...session, sampling: greedy });
  await s.feed(prompt);
  const own = bits(await s.logits());
  s.setLogitsFn((logits) => { logits[ids[0]] = -Infinity; });
  assert.notStrictEqual(await s.next(), ids[0]);
  s.rewind(prompt.length - 1);
  await s.feed(prompt.slice(-1));
  assert.deepStrictEqual(bits(await s.logits()), own);
  const fork = await s.fork({ ...session, sampling: greedy });
  assert.strictEqual(await fork.next(), ids[0]);
  // Numbers that are none, giving up, throwing, and giving the memory away.
  s.setLogitsFn((logits) => { logits[7] = NaN; });
  await assert.rejects(s.next(), { code: 'JIT_ERROR_ARGUMENT', message: /token 7/ });
  s.setLogitsFn(() => true);
  await assert.rejects(s.next(), { code: 'JIT_ERROR_CANCELLED' });
  s.setLogitsFn((logits) => { structuredClone(logits, { transfer: [logits.buffer] }); });
  await assert.rejects(s.next(), /gave their memory away/);
  s.setLogitsFn(async () => {});
  await assert.rejects(s.next(), /gave a promise/);
  let calls = 0;
  s.setLogitsFn(() => { if (++calls === 4) throw new Error('before a choice'); });
  const generation = s.generate({ maxTokens: ids.length });
  await assert.rejects(generation.read(), { message: 'before a choice' });
  assert.deepStrictEqual([...generation.ids], ids.slice(0, 3));
  s.setLogitsFn(null);
  const rest = s.generate({ maxTokens: ids.length - 3 });
  await rest.read();
  assert.deepStrictEqual([...rest.ids], ids.slice(3));
});

test('functions that use their session', async () => {
  const model = await open();
  const s = await model.session({ ...session, sampling: greedy });
  await s.feed(PROMPT);
  // The session computes: it refuses, by an exception of the call that it was used in.
  const uses = [() => s.ids, () => s.rewind(0), () => s.stats(), () => s.setLogitsFn(null), () => s.logprobs()];
  for (const use of uses) {
    s.setLogitsFn(() => { use(); });
    await assert.rejects(s.next(), /the session computes/);
  }
  let inner;
  s.setLogitsFn(() => { inner = s.next().catch((e) => e); });
  assert.strictEqual(await s.next(), ids[0]);
  assert.match((await inner).message, /the session computes/);
  // What computes next is cancelled.
  s.setLogitsFn(() => { s.cancel(); });
  assert.strictEqual(await s.next(), ids[1]);
  s.setLogitsFn(null);
  await assert.rejects(s.next(), { code: 'JIT_ERROR_CANCELLED' });
  // Closed while it computes, it is there until the call has ended.
  s.setLogitsFn(() => { s.close(); model.close(); });
  assert.strictEqual(await s.next(), ids[2]);
  await assert.rejects(s.next(), { message: 'the session is closed' });
  // Several at once, each with functions of its own.
  const other = await open();
  const all = await Promise.all([0, 1, 2, 3, 4, 5].map(async (which) => {
    const one = await other.session({ ...session, sampling: greedy });
    let calls = 0;
    one.setPromptFn(() => false);
    one.setLogitsFn(() => { if (++calls === which + 2) throw new Error(String(which)); });
    await one.feed(PROMPT);
    const generation = one.generate({ maxTokens: ids.length });
    const e = await generation.read().then(assert.fail, (thrown) => thrown);
    return [e.message, generation.ids.length];
  }));
  assert.deepStrictEqual(all, [0, 1, 2, 3, 4, 5].map((which) => [String(which), which + 1]));
});

test('functions that nobody holds', async () => {
  const made = async () => {
    const s = await (await open()).session(small);
    const big = { s };
    s.setPromptFn(() => big === s); // a circle: the session, its function, and the session again
    s.setLogitsFn(() => big === s);
    return [s.feed(long), new WeakRef(s)];
  };
  const [[feeding, weak], [other]] = await Promise.all([made(), made()]);
  await collect(); // while they compute, and are asked
  await Promise.all([feeding, other]);
  await collect(8);
  assert.strictEqual(weak.deref(), undefined);
});
