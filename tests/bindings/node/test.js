'use strict';
// test.js - the package in NODE_PATH, with the model in JITRUN_MODEL; JITRUN_IDS is what the program jitrun generates
// behind PROMPT, greedily.
const assert = require('node:assert');
const test = require('node:test');
const { Worker } = require('node:worker_threads');
const { Model, version } = require('jitrun');

const PROMPT = 'Once upon a time';
const ids = process.env.JITRUN_IDS.split(',').map(Number);
const session = { context: 256, threads: 1 };
const greedy = { temperature: 0 };
const template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
const tools = [{
  type: 'function',
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { sky: { enum: ['blue', 'grey'] } }, required: ['sky'] },
  },
}];
const open = () => Model.open(process.env.JITRUN_MODEL, { threads: 1 });

test('ids are those of the program, and the event loop goes on', async () => {
  const model = await open();
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const generation = model.generate(PROMPT, { session, sampling: greedy, maxTokens: ids.length });
  let text = '';
  for await (const piece of generation) text += piece;
  clearInterval(timer);
  assert.deepStrictEqual([...generation.ids], ids);
  assert.strictEqual(generation.finishReason, 'length');
  assert.strictEqual(generation.text, text);
  assert.ok(ticks > 0);
  assert.ok(model.detokenize([...model.tokenize(PROMPT), ...ids]).endsWith(text));
  const all = await Promise.all([1, 2, 3].map(async () => {
    const one = model.generate(PROMPT, { session, sampling: greedy, maxTokens: ids.length });
    await one.read();
    return [...one.ids];
  }));
  assert.deepStrictEqual(all, [ids, ids, ids]);
  const reason = model.generate(PROMPT, { session: { ...session, context: 8 }, sampling: greedy });
  await reason.read();
  assert.strictEqual(reason.finishReason, 'length');
  model.close();
  assert.throws(() => model.info, { code: 'JIT_ERROR_ARGUMENT', message: 'the model is closed' });
});

test('sampling, seeds, stop texts and grammars', async () => {
  const model = await open();
  const run = (sampling, more) => model.generate(PROMPT, { session, sampling, maxTokens: 24, ...more }).read();
  const hot = (seed) => run({ temperature: 1.5, topK: 50, seed });
  assert.strictEqual(await hot(1), await hot(1));
  assert.notStrictEqual(await hot(1), await hot(2));
  assert.notStrictEqual(await run({ temperature: 1.5 }), await run({ temperature: 1.5 }));
  const whole = await run(greedy);
  const stop = whole.slice(20, 23);
  assert.strictEqual(await run(greedy, { stop }), whole.slice(0, whole.indexOf(stop)));
  assert.match(await run(greedy, { grammar: { regex: '(red|blue) [0-9]{2}' } }), /^(red|blue) [0-9]{2}$/);
  const schema = { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'] };
  const value = JSON.parse(await run(greedy, { grammar: { schema }, maxTokens: 100 }));
  assert.strictEqual(typeof value.on, 'boolean');
  await assert.rejects(run({ topQ: 1 }), { code: 'JIT_ERROR_ARGUMENT', message: /top_q/ });
  await assert.rejects(run({ topK: [] }), TypeError);
  await assert.rejects(run(greedy, { grammar: { schema: '{' } }), { code: 'JIT_ERROR_FORMAT' });
  await assert.rejects(run(greedy, { grammar: { rules: '' } }), TypeError);
  assert.throws(() => model.generate(PROMPT, { maxTokens: -1 }), /maxTokens is -1/);
  assert.throws(() => model.generate(PROMPT, { maxToken: 1 }), /maxToken/);
  assert.strictEqual(await run(greedy, { maxTokens: 0 }), '');
});

test('sessions: logits, scores, embeddings', async () => {
  const model = await open();
  const s = await model.session({ ...session, sampling: greedy });
  await assert.rejects(s.logits(), { code: 'JIT_ERROR_ARGUMENT' });
  await s.feed(PROMPT);
  const logits = await s.logits();
  assert.ok(logits instanceof Float32Array && logits.length === model.info.vocab);
  assert.strictEqual(logits.indexOf(Math.max(...logits)), ids[0]);
  const n = s.length;
  const busy = s.logits();
  assert.throws(() => s.ids, /the session computes/);
  await busy;
  await s.generate({ maxTokens: 4 }).read();
  assert.deepStrictEqual([...s.ids].slice(n), ids.slice(0, 4));
  s.rewind(n);
  await s.feed(ids.slice(0, 1));
  await s.generate({ maxTokens: 2 }).read();
  assert.deepStrictEqual([...s.ids].slice(n + 1), ids.slice(1, 3));
  s.setSampling({ temperature: 1, seed: 3 });
  assert.throws(() => s.rewind(1e9), /position/);
  await assert.rejects(s.feed([1.5]), /a token is 1.5/);
  await assert.rejects(s.feed([-1]), { code: 'JIT_ERROR_ARGUMENT' });
  s.rewind(0);
  const tokens = model.tokenize('a small house');
  const rows = await s.embed(tokens, { pooling: 'none', normalise: false });
  s.rewind(0);
  const last = await s.embed(tokens, { pooling: 'last', normalise: false });
  assert.ok(last instanceof Float32Array && last.length === model.info.hidden);
  assert.deepStrictEqual(rows.slice(rows.length - last.length), last);
  const unit = await model.embed('a small house', { pooling: 'mean' });
  assert.ok(Math.abs(unit.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-4);
  await assert.rejects(model.embed('a', { pooling: 'most' }), /last, mean, none, rank/);
  const scores = await model.score('a small house');
  assert.ok(scores.length === tokens.length && scores.every((x) => x <= 0));
  assert.ok(model.isEnd(-1) === false);
  model.close();
  s.rewind(0);
  await s.feed([1]); // the model is there as long as its sessions are
  s.close();
  await assert.rejects(s.feed([1]), { message: 'the session is closed' });
});

test('conversations and tools', async () => {
  const model = await open();
  const messages = [{ role: 'user', content: 'Hello "you" \0' }];
  const prompt = model.render(messages, { template });
  assert.ok(prompt.text.includes('Hello "you" \0') && prompt.text.endsWith('assistant\n'));
  assert.ok(!model.render(messages, { template, generationPrompt: false }).text.endsWith('assistant\n'));
  assert.ok(prompt.ids instanceof Int32Array);
  const dated = model.render(messages, { template: "{{ strftime_now('%Y') }}", now: new Date(Date.UTC(1999, 6)) });
  assert.strictEqual(dated.text, '1999');
  assert.strictEqual(model.render(messages, { template: '{{ a }}', variables: { a: 'b' } }).text, 'b');
  assert.throws(() => model.render('{', { template }), { code: 'JIT_ERROR_ARGUMENT' });
  const s = await model.session({ ...session, sampling: greedy });
  const reply = s.chat(messages, { template, maxTokens: 12 });
  let told = '';
  for await (const event of reply) told += event.text;
  assert.ok(told !== '' && told === reply.text);
  messages.push(reply.message, { role: 'user', content: 'And?' });
  const options = { template, tools, maxTokens: 100 };
  for (const toolChoice of ['required', { function: 'weather' }]) {
    const called = await s.chat(messages, { ...options, toolChoice }).read();
    const [call] = called.toolCalls;
    assert.ok(call.name === 'weather' && call.whole, JSON.stringify(called));
    assert.ok(['blue', 'grey'].includes(JSON.parse(call.arguments).sky));
    assert.strictEqual(called.finishReason, 'tool_calls');
    assert.strictEqual(called.message.tool_calls[0].function.name, 'weather');
  }
  await assert.rejects(s.chat(messages, { ...options, toolChoice: { function: 'no' } }).read(), { message: /no/ });
  assert.throws(() => s.chat(messages, { toolChoice: 'never' }), TypeError);
  const own = await model.chat(messages, { ...options, maxTokens: 3, session, sampling: greedy }).read();
  assert.strictEqual(own.ids.length, 3);
});

test('cancelling, breaking off, errors', async () => {
  const model = await open();
  const s = await model.session({ ...session, sampling: greedy });
  s.cancel();
  await assert.rejects(s.feed(PROMPT), { code: 'JIT_ERROR_CANCELLED' });
  await s.feed(PROMPT);
  for await (const _ of s.generate()) break;
  await s.generate({ maxTokens: 2 }).read();
  const controller = new AbortController();
  const generation = model.generate(PROMPT, { session, sampling: greedy, signal: controller.signal });
  await assert.rejects(async () => {
    for await (const _ of generation) controller.abort(new Error('enough'));
  }, { message: 'enough' });
  await assert.rejects(model.generate(PROMPT, { signal: AbortSignal.abort(new Error('no')) }).read(), { message: 'no' });
  await assert.rejects(Model.open('/no/such/model.gguf'), { code: 'JIT_ERROR_IO', message: /\/no\/such\/model.gguf/ });
  await assert.rejects(Model.open('a\0b'), /zero byte/);
  await assert.rejects(Model.open(7), TypeError);
  await assert.rejects(Model.open(process.env.JITRUN_MODEL, { thread: 1 }), { message: /thread/ });
  assert.throws(() => model.tokenize(null), /text is null/);
  assert.strictEqual(version, require('jitrun/package.json').version);
  s.close();
  s.close();
});

test('worker threads, and the garbage collector', async () => {
  const code = `const { Model } = require('jitrun');
    const { parentPort, workerData } = require('node:worker_threads');
    Model.open(process.env.JITRUN_MODEL, { threads: 1 }).then(async (model) => {
      const { prompt, ...options } = workerData;
      const one = model.generate(prompt, { ...options, maxTokens: 8 });
      await one.read();
      parentPort.postMessage([...one.ids]);
    });`;
  const workerData = { prompt: PROMPT, session, sampling: greedy };
  const said = await Promise.all([1, 2].map(() => new Promise((done, failed) => {
    new Worker(code, { eval: true, workerData }).on('message', done).on('error', failed);
  })));
  assert.deepStrictEqual(said, [ids.slice(0, 8), ids.slice(0, 8)]);
  let model = await open();
  const s = await model.session(session);
  for (let i = 0; i < 3; i++) await model.session(session);
  model = null;
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  await s.feed(PROMPT);
});
