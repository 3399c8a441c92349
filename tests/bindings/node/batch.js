'use strict';
// batch.js - many sessions computed together: the same as alone; loops of one's own; those that end in every other way.
const assert = require('node:assert');
const test = require('node:test');
const { Batch, BatchSession, Session } = require('jitrun');
const { PROMPT, bits, collect, greedy, ids, long, open, seeded, session, template, tools } = require('./support.js');

const texts = [PROMPT, 'The sea', 'A king', 'In the morning the old woman went out, and', PROMPT];

async function alone(model, prompt, options) {
  const generation = model.generate(prompt, { session, ...options });
  return [await generation.read(), [...generation.ids], generation.finishReason];
}

async function together(batch, prompt, options) {
  const generation = batch.generate(prompt, options);
  return [await generation.read(), [...generation.ids], generation.finishReason];
}

test('texts are the same as alone', async () => {
  const model = await open();
  const batch = await model.batch({ ...session, tokens: 7 });
  assert.ok(batch instanceof Batch && batch.model === model);
  const each = texts.map((text, i) => [text, { maxTokens: 10 + 3 * i, sampling: i % 2 ? seeded.sampling : greedy }]);
  each.push([PROMPT, { sampling: seeded.sampling, maxTokens: seeded.ids.length }]);
  each.push([PROMPT, { sampling: greedy, maxTokens: 100, grammar: { regex: '(red|blue) [0-9]{2}' } }]);
  each.push([PROMPT, { sampling: greedy, maxTokens: 0 }]);
  each.push([[...model.tokenize('A king')], { sampling: greedy, maxTokens: 20, stop: ['king', ' and'] }]);
  const expected = [];
  for (const [prompt, options] of each) expected.push(await alone(model, prompt, options));
  const made = await Promise.all(each.map(([prompt, options]) => together(batch, prompt, options)));
  assert.deepStrictEqual(made, expected);
  assert.deepStrictEqual(Buffer.from(made[5][0]), seeded.text);
  // They were computed together, and nothing is left.
  const stats = await batch.stats();
  assert.ok(stats.width.slice(2).reduce((sum, n) => sum + n, 0) > 5, JSON.stringify(stats));
  assert.deepStrictEqual([stats.context, await batch.pending()], [256, 0]);
  // One that is read slowly does not hold up the others.
  const slow = batch.generate(PROMPT, { sampling: greedy, maxTokens: 8 });
  const begun = slow[Symbol.asyncIterator]();
  await begun.next();
  const kept = batch.generate(PROMPT, { sampling: greedy, maxTokens: 8, logprobs: 2 });
  await kept.read();
  assert.ok(kept.logprobs.length === 8 && kept.logprobs[0].top.length === 2 && kept.logprobs[0].logprob < 0);
  assert.deepStrictEqual([...kept.ids], ids.slice(0, 8));
  assert.ok(slow.ids.length < 8);
  await slow.read();
  assert.deepStrictEqual([...slow.ids], ids.slice(0, 8));
  // Conversations and forced calls.
  const messages = [{ role: 'user', content: 'Hello' }], options = { template, tools, maxTokens: 60, sampling: greedy };
  const one = await model.chat(messages, { ...options, session }).read();
  const [first, called] = await Promise.all([
    batch.chat(messages, options).read(), batch.chat(messages, { ...options, toolChoice: 'required' }).read(),
  ]);
  assert.deepStrictEqual([first.text, [...first.ids]], [one.text, [...one.ids]]);
  assert.ok(called.toolCalls[0].name === 'weather' && called.toolCalls[0].whole);
});

test('loops of one\'s own', async () => {
  const model = await open();
  const batch = await model.batch({ ...session, tokens: 8 });
  const a = await batch.session({ sampling: greedy }), b = await batch.session({ sampling: greedy });
  assert.ok(a instanceof BatchSession && a instanceof Session && a.batch === batch && a.model === model);
  assert.strictEqual(await a.submit(PROMPT), 0);
  await b.submit(model.tokenize('The sea'));
  const said = new Map([[a, []], [b, []]]);
  let texts = '';
  while (await batch.pending() > 0) {
    for (const s of await batch.step()) {
      const id = await s.next();
      said.get(s).push(id);
      if (s === a) texts += s.text(id);
      assert.ok(s.logprobs(1).top[0].id === id && s.ids.at(-1) === id);
      if (said.get(s).length === ids.length) s.close();
    }
  }
  assert.deepStrictEqual(said.get(a), ids);
  assert.deepStrictEqual(said.get(b), (await alone(model, 'The sea', { sampling: greedy, maxTokens: ids.length }))[1]);
  assert.ok(model.detokenize(ids).startsWith(texts));
  await assert.rejects(a.next(), { message: 'the session is closed' });
  // What computes at once, alone; generating from a session; and what only asks.
  const s = await batch.session({ sampling: greedy });
  await s.feed(PROMPT);
  const logits = await s.logits();
  s.rewind(0);
  const rows = await s.feedLogits(model.tokenize(PROMPT));
  assert.deepStrictEqual(bits(rows.subarray(rows.length - logits.length)), bits(logits));
  const generation = s.generate({ maxTokens: 5 });
  await generation.read();
  assert.deepStrictEqual([...generation.ids], ids.slice(0, 5));
  await s.submit(ids.slice(5, 6));
  const more = s.generate({ maxTokens: 5 });
  await more.read();
  assert.strictEqual(s.length, model.tokenize(PROMPT).length + 11);
  assert.ok(s.stats().promptTokens >= 0 && s.grammarComplete === null && s.stopped === null);
  s.setSampling(greedy);
  s.setStop([]);
  const fork = await s.fork({ ...session, sampling: greedy });
  assert.deepStrictEqual(fork.ids, s.ids);
  assert.ok(!(fork instanceof BatchSession));
  // What is remembered, and forgotten.
  const prompt = Array.from({ length: 4 }, () => [...model.tokenize(long)]).flat();
  const first = await batch.session();
  await first.submit(prompt);
  while (!(await batch.step()).includes(first));
  first.close();
  const second = await batch.session();
  assert.ok(await second.submit(prompt) > 100);
  second.close();
  assert.ok(await batch.forget(prompt.slice(0, 9)) > 0);
  assert.ok(await batch.forget() >= 0);
  const third = await batch.session();
  assert.ok(await third.submit(prompt) < 20); // what it shares with a session that is open
  third.close();
  assert.ok((await batch.stats()).reusedTokens > 100);
  // Wrong uses, each in one sentence.
  await assert.rejects(batch.session({ context: 7 }), /context/);
  await assert.rejects(batch.session({ sampling: { topQ: 1 } }), /top_q/);
  await assert.rejects(s.submit([1.5]), /a token is 1.5/);
  await assert.rejects(s.submit([-1]), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects(s.submit(7), /the prompt are 7/);
  await assert.rejects(s.submit(new Array(999).fill(1)), { code: 'JIT_ERROR_CONTEXT' });
  await assert.rejects(model.batch({ kvBytes: 'x' }), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects((await batch.session()).generate().read(), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects(batch.generate([]).read(), { code: 'JIT_ERROR_ARGUMENT' });
  const stepping = batch.step();
  await Promise.resolve();
  await new Promise(setImmediate);
  await stepping;
});

test('sessions that end while the batch computes', async () => {
  const model = await open();
  const batch = await model.batch({ ...session, tokens: 4 });
  const others = () => texts.map((text) => together(batch, text, { sampling: greedy, maxTokens: 12 }));
  const expected = [];
  for (const text of texts) expected.push(await alone(model, text, { sampling: greedy, maxTokens: 12 }));
  // Broken off, aborted at several moments, closed, failing on their own, and dropped.
  const breaking = (async () => {
    for await (const _ of batch.generate(PROMPT, { sampling: greedy })) break;
  })();
  const aborts = [0, 1, 3, 9].map(async (wait) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('enough')), wait);
    const generation = batch.generate(long, { sampling: greedy, signal: controller.signal });
    await assert.rejects(generation.read(), { message: 'enough' });
  });
  const closing = (async () => {
    const s = await batch.session({ sampling: greedy });
    await s.submit(long);
    const reading = s.generate().read();
    setImmediate(() => s.close());
    await assert.rejects(reading, { message: 'the session is closed' });
  })();
  const wrong = together(batch, PROMPT, { sampling: greedy, grammar: { regex: '(' } });
  const failing = assert.rejects(wrong, { code: /^JIT/ });
  const forbidden = assert.rejects(together(batch, [1, -1], {}), { code: 'JIT_ERROR_ARGUMENT' });
  const dropped = (async () => {
    const s = await batch.session({ sampling: greedy });
    await s.submit(long);
  })();
  assert.deepStrictEqual(await Promise.all(others()), expected);
  await Promise.all([breaking, ...aborts, closing, failing, forbidden, dropped]);
  await collect();
  while (await batch.pending() > 0) await batch.step();
  // One that was aborted and is not of the batch's making goes on.
  const s = await batch.session({ sampling: greedy });
  await s.submit(PROMPT);
  const controller = new AbortController();
  const reading = s.generate({ signal: controller.signal, maxTokens: 100 }).read();
  setTimeout(() => controller.abort(new Error('enough')), 4);
  await assert.rejects(reading, { message: 'enough' });
  const here = s.length - model.tokenize(PROMPT).length;
  if (here < ids.length) {
    const rest = s.generate({ maxTokens: ids.length - here });
    await rest.read();
    assert.deepStrictEqual([...s.ids].slice(-ids.length), ids);
  }
  // Cancelled, it is told so once, and goes on as well.
  await s.submit(model.tokenize(long, { addSpecial: false }));
  s.cancel();
  await assert.rejects(s.generate({ maxTokens: 1 }).read(), { code: 'JIT_ERROR_CANCELLED' });
  await s.submit(model.tokenize('The end', { addSpecial: false }));
  await s.generate({ maxTokens: 2 }).read();
});

test('functions of a batch\'s sessions', async () => {
  const model = await open();
  const batch = await model.batch({ ...session, tokens: 8 });
  const told = [];
  let armed = true;
  const s = await batch.session({ sampling: greedy });
  s.setPromptFn((computed, length) => {
    told.push([computed, length]);
    if (armed && computed > 20) throw new Error('in a step');
  });
  const prompt = model.tokenize(long);
  await s.submit(prompt);
  const t = await batch.session({ sampling: greedy });
  t.setLogitsFn((logits, before) => { assert.ok(before.length >= 5 && logits.length === 4096); });
  await t.submit(PROMPT);
  const [text] = await Promise.all([
    t.generate({ maxTokens: ids.length }).read(),
    assert.rejects(s.generate({ maxTokens: 1 }).read(), { message: 'in a step' }),
  ]);
  assert.strictEqual(text, (await alone(model, PROMPT, { sampling: greedy, maxTokens: ids.length }))[0]);
  armed = false;
  await s.submit(prompt.subarray(s.length));
  await s.generate({ maxTokens: 1 }).read();
  assert.deepStrictEqual(told.at(-1), [prompt.length, prompt.length]);
  t.setLogitsFn(() => { throw new Error('before a choice'); });
  await t.submit(ids.slice(0, 1));
  await assert.rejects(t.generate({ maxTokens: 1 }).read(), { message: 'before a choice' });
  t.setLogitsFn(() => { t.ids; });
  await t.submit(ids.slice(0, 1));
  await assert.rejects(t.generate({ maxTokens: 1 }).read(), { message: /the batch computes/ });
  t.setLogitsFn(() => { t.close(); batch.close(); model.close(); });
  const last = t.generate({ maxTokens: 3 }).read();
  await assert.rejects(last, { message: /the (session|batch) is closed/ });
});

test('steps beside generations', async () => {
  const model = await open(), batch = await model.batch(session);
  const own = await batch.session({ sampling: greedy });
  let over = false, told = 0;
  const stepping = (async () => {
    while (!over) {
      const ready = await batch.step();
      told += ready.filter((one) => one === own).length;
      await new Promise(setImmediate);
    }
  })();
  await own.submit(PROMPT);
  const all = [0, 1, 2].map(() => batch.generate(PROMPT, { sampling: greedy, maxTokens: ids.length }));
  await Promise.all(all.map((one) => one.read()));
  for (const one of all) assert.deepStrictEqual([...one.ids], ids);
  over = true;
  await stepping;
  told += (await batch.step()).filter((one) => one === own).length;
  assert.strictEqual(told, 1);
  assert.strictEqual(await own.next(), ids[0]);
});

test('sessions that passes for generations computed', async () => {
  const model = await open(), batch = await model.batch(session);
  const own = await batch.session({ sampling: greedy }), other = await batch.session({ sampling: greedy });
  await own.submit(PROMPT);
  await other.submit(PROMPT);
  assert.strictEqual(await batch.generate(PROMPT, { sampling: greedy, maxTokens: 2 }).read(),
    (await alone(model, PROMPT, { sampling: greedy, maxTokens: 2 }))[0]);
  assert.strictEqual(await batch.pending(), 2);
  assert.strictEqual(await other.next(), ids[0]); // it asks without being told, and has a token to compute now
  assert.strictEqual(await batch.pending(), 2);
  assert.deepStrictEqual((await batch.step()).map((one) => one === own), [true]);
  assert.strictEqual(await batch.pending(), 1);
  assert.deepStrictEqual((await batch.step()).map((one) => one === other), [true]);
  assert.deepStrictEqual([await batch.pending(), await batch.step()], [0, []]);
  assert.strictEqual(await own.next(), ids[0]);
});

test('sessions that are closed within a pass', async () => {
  const model = await open();
  const batch = await model.batch({ ...session, tokens: 64 });
  const expected = (await alone(model, PROMPT, { sampling: greedy, maxTokens: ids.length }))[0];
  for (let turn = 0; turn < 4; turn++) {
    const all = [];
    for (let i = 0; i < 6; i++) all.push(await batch.session({ sampling: greedy }));
    for (const one of all) await one.submit(`Turn ${turn} of ${all.indexOf(one)}. ${long}`);
    const kept = await batch.session({ sampling: greedy });
    await kept.submit(PROMPT);
    let closed = 0;
    // The pass is over, and the library goes through its sessions: those that it comes to later are closed.
    all[0].setPromptFn(() => {
      for (const one of all) one.close();
      closed++;
    });
    assert.strictEqual(await kept.generate({ maxTokens: ids.length }).read(), expected);
    assert.ok(closed === 1 && all.every((one) => one.closed));
    kept.close();
    assert.deepStrictEqual([await batch.pending(), await batch.step()], [0, []]);
  }
});

test('batches that are closed, cancelled, or dropped', async () => {
  const model = await open();
  const batch = await model.batch(session);
  const reading = batch.generate(PROMPT, { sampling: greedy }).read();
  setTimeout(() => batch.close(), 5);
  await assert.rejects(reading, { message: 'the batch is closed' });
  await assert.rejects(batch.step(), { message: 'the batch is closed' });
  await assert.rejects(batch.session(), { message: 'the batch is closed' });
  batch.close();
  const controller = new AbortController();
  const bound = await model.batch({ ...session, signal: controller.signal });
  const all = [0, 1, 2].map(() => bound.generate(long, { sampling: greedy }).read());
  setTimeout(() => controller.abort(new Error('all')), 3);
  for (const one of all) await assert.rejects(one, { message: 'all' });
  await assert.rejects(bound.step(), { message: 'all' });
  await assert.rejects(model.batch({ signal: AbortSignal.abort(new Error('no')) }), { message: 'no' });
  // Nobody holds the model and the batch; its sessions are collected before them, or behind them.
  const session2 = await (async () => {
    const other = await (await open()).batch(session);
    const s = await other.session({ sampling: greedy });
    await other.session();
    await s.submit(PROMPT);
    return s;
  })();
  await collect();
  await session2.generate({ maxTokens: ids.length }).read();
  assert.deepStrictEqual([...session2.ids].slice(-ids.length), ids);
  const running = (async () => {
    const other = await (await open()).batch(session);
    return other.generate(long, { sampling: greedy, maxTokens: 4 }).read();
  })();
  await collect();
  assert.ok((await running).length > 0);
});
