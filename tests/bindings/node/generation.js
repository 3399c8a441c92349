'use strict';
// generation.js - texts, sessions and conversations.
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');
const { Answer, Generation, Model, Reply, Session, parse, reader, version } = require('jitrun');
const { PROMPT, bits, collect, folder, greedy, ids, long, open, seeded, session, template, tools } =
  require('./support.js');

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

test('seeded bytes are those of the program, whichever way they are generated', async () => {
  const model = await open();
  const generation = model.generate(PROMPT, { session, sampling: seeded.sampling, maxTokens: seeded.ids.length });
  assert.ok(generation instanceof Generation);
  assert.deepStrictEqual(Buffer.from(await generation.read()), seeded.text);
  assert.deepStrictEqual([...generation.ids], seeded.ids);
  const s = await model.session({ ...session, sampling: seeded.sampling });
  assert.ok(s instanceof Session);
  await s.feed(PROMPT);
  const bytes = [];
  for (const id of seeded.ids) {
    assert.strictEqual(await s.next(), id);
    const own = s.logprobs(2), drawn = s.sampledLogprobs(40);
    assert.ok(own.logprob < 0 && own.top.length === 2 && own.top[0].logprob >= own.top[1].logprob);
    assert.ok(drawn.top.length <= 40 && drawn.top.some((one) => one.id === id && one.logprob === drawn.logprob));
    bytes.push(bytes.length % 2 ? s.textBytes(id) : Buffer.from(s.text(id)));
  }
  assert.deepStrictEqual(Buffer.concat([...bytes, Buffer.from(s.flush())]), seeded.text);
  assert.throws(() => s.text(-1), /the token is -1/);
  assert.throws(() => s.textBytes(1.5), /a token is 1.5/);
  assert.throws(() => s.logprobs(1000), /0 to 256/);
  const kept = model.generate(PROMPT, { session, sampling: greedy, maxTokens: 4, logprobs: 1 });
  await kept.read();
  assert.deepStrictEqual(kept.logprobs.map(({ id, logprob, top }) => [id, top[0].id, top[0].logprob === logprob]),
                         ids.slice(0, 4).map((id) => [id, id, true]));
  assert.throws(() => model.generate(PROMPT, { logprobs: -1 }), /logprobs is -1/);
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
  // What may become a stop text is held back, and given at the end.
  assert.strictEqual(await run(greedy, { stop: `${whole.slice(-3)}?` }), whole);
  const batch = await model.batch(session);
  const held = { sampling: greedy, maxTokens: 24, stop: `${whole.slice(-3)}?` };
  assert.strictEqual(await batch.generate(PROMPT, held).read(), whole);
  assert.match(await run(greedy, { grammar: { regex: '(red|blue) [0-9]{2}' } }), /^(red|blue) [0-9]{2}$/);
  const lark = 'start: "red" " " NUMBER\nNUMBER: /[0-9]{2}/';
  assert.match(await run(greedy, { grammar: { lark } }), /^red [0-9]{2}$/);
  const schema = { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'] };
  const value = JSON.parse(await run(greedy, { grammar: { schema }, maxTokens: 100 }));
  assert.strictEqual(typeof value.on, 'boolean');
  await assert.rejects(run({ topQ: 1 }), { code: 'JIT_ERROR_ARGUMENT', message: /top_q/ });
  await assert.rejects(run({ topK: [] }), TypeError);
  await assert.rejects(run(greedy, { grammar: { schema: '{' } }), { code: 'JIT_ERROR_FORMAT' });
  assert.throws(() => run(greedy, { grammar: { rules: '' } }), /a grammar has the members rules/);
  assert.throws(() => model.generate(PROMPT, { maxTokens: -1 }), /maxTokens is -1/);
  assert.throws(() => model.generate(PROMPT, { maxToken: 1 }), /maxToken/);
  assert.strictEqual(await run(greedy, { maxTokens: 0 }), '');
  // Lists that have no name, and what the makers say.
  for (const logitBias of [{ [ids[0]]: -Infinity }, [[ids[0], -Infinity]], new Map([[ids[0], -100]])]) {
    const biased = model.generate(PROMPT, { session, sampling: { ...greedy, logitBias }, maxTokens: 1 });
    await biased.read();
    assert.notStrictEqual(biased.ids[0], ids[0]);
  }
  await assert.rejects(run({ logitBias: [[1, 'x']] }), /logitBias of the token 1 is "x"/);
  await assert.rejects(run({ logitBias: [[-7, 1]] }), { code: 'JIT_ERROR_ARGUMENT' });
  const loops = { ...greedy, dryMultiplier: 5, dryAllowedLength: 1, dryBase: 3 };
  assert.notStrictEqual(await run({ ...loops, dryBreakers: ['\n'] }), whole);
  await assert.rejects(run({ dryBreakers: [7] }), /dryBreakers is 7/);
  await assert.rejects(run('hot'), /sampling is "hot"/);
  const defaults = model.samplingDefaults;
  assert.deepStrictEqual([defaults.topK, defaults.samplers, defaults.logitBias, defaults.dryBreakers],
                         [40, null, [], null]);
  assert.ok(Math.abs(defaults.topP - 0.95) < 1e-6 && defaults.seed === 0 && defaults.dryWindow === 0);
  // Schemas, with and without other members.
  const s = await model.session({ ...session, sampling: greedy });
  const closed = { type: 'object', properties: { a: { enum: [1] } }, required: ['a'] };
  for (const [grammar, others] of [[{ schema: closed }, false], [{ openSchema: closed }, true]]) {
    await s.setGrammar(null);
    s.rewind(0);
    await s.feed(PROMPT);
    assert.strictEqual(s.grammarComplete, null);
    await s.setGrammar(grammar);
    assert.strictEqual(s.grammarComplete, false);
    const fed = await s.feed(model.tokenize('{"a": 1, "b": 2}', { addSpecial: false })).then(() => true, () => false);
    assert.strictEqual(fed, others);
  }
  await s.setGrammar(null);
  s.rewind(0);
  await s.feed('<|end_of_text|>', { parseSpecial: true });
  assert.deepStrictEqual([...s.ids], [0, 1]);
});

test('sessions: logits, scores, embeddings', async () => {
  const model = await open();
  const s = await model.session({ ...session, sampling: greedy });
  await assert.rejects(s.logits(), { code: 'JIT_ERROR_ARGUMENT' });
  await s.feed(PROMPT);
  const logits = await s.logits();
  assert.ok(logits instanceof Float32Array && logits.length === model.info.vocab);
  assert.strictEqual(logits.indexOf(Math.max(...logits)), ids[0]);
  const rows = await s.feedLogits(ids);
  assert.strictEqual(rows.length, ids.length * logits.length);
  const other = await model.session({ ...session, sampling: greedy });
  await other.feed(PROMPT);
  for (let i = 0; i < ids.length; i++) {
    await other.feed([ids[i]]);
    const row = rows.subarray(i * logits.length, (i + 1) * logits.length);
    assert.deepStrictEqual(bits(row), bits(await other.logits()));
  }
  await assert.rejects(s.feedLogits([-1]), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects(s.feedLogits(new Array(1000).fill(1)), { code: 'JIT_ERROR_CONTEXT' });
  s.rewind(s.length - ids.length - 1);
  await s.feed(model.tokenize(PROMPT).subarray(-1));
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
  const hidden = await s.embed(tokens, { pooling: 'none', normalise: false });
  s.rewind(0);
  const last = await s.embed(tokens, { pooling: 'last', normalise: false });
  assert.ok(last instanceof Float32Array && last.length === model.info.hidden);
  assert.strictEqual(hidden.length, tokens.length * last.length);
  assert.deepStrictEqual(bits(hidden.slice(hidden.length - last.length)), bits(last));
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

test('sessions: files, forks, stop texts, reports', async () => {
  const model = await open({ cacheDir: '' }), dir = folder();
  const s = await model.session({ ...session, sampling: greedy, profile: 'events' });
  await s.feed(PROMPT);
  await s.save(path.join(dir, 'saved'));
  const fork = await s.fork({ ...session, sampling: greedy });
  const again = await model.session({ ...session, sampling: greedy });
  await again.restore(path.join(dir, 'saved'));
  // The same as bytes, which leave no file.
  const temporary = process.env.TMPDIR;
  process.env.TMPDIR = dir;
  const bytes = await s.save(), ofBytes = await model.session({ ...session, sampling: greedy });
  assert.ok(bytes instanceof Uint8Array && Buffer.compare(bytes, fs.readFileSync(path.join(dir, 'saved'))) === 0);
  const damaged = bytes.slice();
  damaged[damaged.length - 1] ^= 1;
  for (const wrong of [damaged, bytes.subarray(1), bytes.subarray(0, 100), new Uint8Array(0)]) {
    await assert.rejects(ofBytes.restore(wrong), { code: 'JIT_ERROR_FORMAT' });
    assert.strictEqual(ofBytes.length, 0);
  }
  await ofBytes.restore(Buffer.from(bytes));
  const batched = await (await model.batch(session)).session({ sampling: greedy });
  await batched.restore(await ofBytes.save()).catch((e) => assert.match(e.code, /^JIT_ERROR_/));
  assert.deepStrictEqual(fs.readdirSync(dir), ['saved']);
  if (temporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = temporary;
  for (const one of [s, fork, again, ofBytes]) {
    assert.deepStrictEqual(one.ids, model.tokenize(PROMPT));
    const generation = one.generate({ maxTokens: ids.length });
    await generation.read();
    assert.deepStrictEqual([...generation.ids], ids);
  }
  await assert.rejects(again.restore(path.join(dir, 'saved')), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects(again.save(path.join(dir, 'no', 'such')), { code: 'JIT_ERROR_IO' });
  await assert.rejects(again.save(7), /path is 7/);
  await assert.rejects(s.fork({ kv: 'f32' }), { code: 'JIT_ERROR_ARGUMENT' });
  const stats = s.stats();
  assert.deepStrictEqual([stats.promptTokens, stats.context, stats.threads, stats.speculation.length], [5, 256, 1, 3]);
  assert.ok(stats.kernels === stats.kernelsGenerated && stats.kvBytes > 0 && stats.decodeTokens === ids.length - 1);
  assert.deepStrictEqual(stats.speculation.map((one) => one.tokens), [4, 8, 16]);
  assert.throws(() => s.cardStats(), { code: 'JIT_ERROR_UNSUPPORTED' });
  assert.match(await s.report(), /matmul/);
  assert.ok('kernels' in JSON.parse(await s.report({ json: true })));
  await s.trace(path.join(dir, 'trace'));
  assert.ok(Array.isArray(JSON.parse(fs.readFileSync(path.join(dir, 'trace'))).traceEvents));
  s.rewind(0);
  s.setStop('king');
  await s.feed('There was a');
  assert.strictEqual(s.stopped, null);
  for (const id of model.tokenize(' king', { addSpecial: false })) {
    await s.feed([id]);
    s.text(id);
  }
  assert.strictEqual(s.stopped, 0);
  s.setStop([]);
  assert.strictEqual(s.stopped, null);
  assert.ok(!s.closed);
  s.close();
  assert.ok(s.closed);
  fs.rmSync(dir, { recursive: true });
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
  const own = model.chat(messages, { ...options, maxTokens: 3, session, sampling: greedy, logprobs: 0 });
  assert.ok(await own.read() === own && own instanceof Reply);
  assert.deepStrictEqual([own.ids.length, own.logprobs.length, own.finishReason, own.reasoning], [3, 3, 'length', '']);
  await assert.rejects(model.chat(messages, { template, templateName: 'tool_use', session }).read(), /template/);
});

test('reasoning before a grammar', async () => {
  const model = await open();
  const batch = await model.batch({ context: 512, threads: 1 });
  const schema = { type: 'object', properties: { a: { enum: ['yes', 'no'] } }, required: ['a'] };
  const teaching = '{% for t in tools %}<tool_call>{{ t | tojson }}</tool_call>\n{% endfor %}';
  const may = `${teaching}${template}{# <think></think> #}`;
  const within = may.replace("<|im_start|>assistant\n{% endif", "<|im_start|>assistant\n<think>\n{% endif");
  assert.notStrictEqual(within, may);
  const messages = [{ role: 'user', content: 'Go' }], opens = { [model.tokenize('<', { addSpecial: false })[0]]: 60 };
  const common = { tools, maxTokens: 300, sampling: greedy }, roomy = { context: 512, threads: 1 };
  const ask = (options) => model.chat(messages, { ...common, session: roomy, ...options }).read();
  const askBatch = (options) => batch.chat(messages, { ...common, ...options }).read();
  for (const given of [{ grammar: { schema } }, { toolChoice: 'required', oneCall: true }]) {
    // The prompt is within the reasoning, and the model does not end it by itself.
    const cut = await ask({ template: within, maxTokens: 9, ...given });
    assert.deepStrictEqual([cut.finishReason, cut.text, cut.toolCalls], ['length', '', []]);
    assert.ok(cut.reasoning.length > 0);
    // The model may begin it, and does not; alone and in a batch.
    for (const reply of [await ask({ template: may, ...given }), await askBatch({ template: may, ...given })]) {
      assert.strictEqual(reply.reasoning, '');
      if (given.grammar) assert.ok(['yes', 'no'].includes(JSON.parse(reply.text).a));
      else assert.match(reply.toolCalls[0].arguments, /^\{"sky":"(blue|grey)"\}$/);
    }
  }
  const begun = { template: may, grammar: { schema }, sampling: { ...greedy, logitBias: opens } };
  const reply = await ask({ ...begun, maxTokens: 20 });
  assert.deepStrictEqual([reply.text, reply.finishReason], ['', 'length']);
  // It shall not reason, and so it does not begin to.
  for (const variables of [{ enable_thinking: false }, '{"enable_thinking": false}']) {
    assert.ok(['yes', 'no'].includes(JSON.parse((await ask({ ...begun, variables })).text).a));
  }
  const both = { toolChoice: 'required', grammar: { schema } };
  assert.throws(() => model.chat(messages, both), /grammar for another form/);
  // By hand.
  const prompt = model.render(messages, { template: within });
  const s = await model.session({ ...session, sampling: greedy });
  await s.feed(prompt.ids);
  const before = { prompt: prompt.text, template: within };
  await s.setGrammar({ regex: 'yes|no' }, before);
  await s.feed('Let me see. yes or no');
  assert.strictEqual(s.grammarComplete, false);
  await s.feed('</think>\n\n');
  assert.match(await s.generate({ maxTokens: 40 }).read(), /^\s*(yes|no)$/);
  await s.setGrammar({ regex: 'yes|no' });
  await assert.rejects(s.feed('Let me see'), /does not allow/);
  const forced = model.forceCall({ tools, template: within, prompt: prompt.text });
  assert.deepStrictEqual([forced.behindReasoning, forced.opened], [true, null]);
  assert.strictEqual(model.forceCall({ tools, template: within }).behindReasoning, false);
  await assert.rejects(s.setGrammar({ forced }), /behindReasoning/);
  await s.setGrammar(null);
  s.rewind(0);
  await s.feed(prompt.ids);
  await s.setGrammar({ forced }, { ...before, tools });
  await s.feed('Well.</think>\n');
  const called = await s.generate({ maxTokens: 100 }).read();
  assert.strictEqual(model.parse(called, { tools, template: may }).tool_calls[0].function.name, 'weather');
  await assert.rejects(s.setGrammar({ regex: 'a' }, { prompt: 7 }), /prompt is 7/);
  await assert.rejects(s.setGrammar({ regex: 'a' }, { prompt: '', opening: 'x' }), /opening/);
  await assert.rejects(s.setGrammar({ regex: 'a' }, { prompt: '', templateName: 'none' }), { code: /^JIT_ERROR/ });
});

test('answers are read as they come', async () => {
  const model = await open();
  const said = 'Well. <tool_call>{"name": "weather", "arguments": {"sky": "blue"}}</tool_call> ' +
    '<tool_call>{"name": "weather", "arguments": {"sky": "grey"}}</tool_call> End';
  const read = (answer, cuts, cut = false) => {
    const out = { text: '', calls: [] };
    const bytes = Buffer.from(said), events = [];
    for (let at = 0; at < bytes.length; at += cuts) events.push(...answer.feed(bytes.subarray(at, at + cuts), 0));
    events.push(...answer.finish(cut));
    assert.throws(() => answer.feed('more'), { code: 'JIT_ERROR_ARGUMENT' });
    answer.close();
    assert.throws(() => answer.finish(), /the answer is closed/);
    for (const e of events) {
      if (e.kind === 'text') out.text += e.text;
      else if (e.kind === 'call') out.calls[e.call] = [e.id, e.name, ''];
      else if (e.kind === 'arguments') out.calls[e.call][2] += e.text;
      else out.calls[e.call].push(e.whole);
    }
    return out;
  };
  const whole = read(reader({ template, tools }), said.length);
  assert.deepStrictEqual(whole.calls.map(([id, name, , ended]) => [id, name, ended]),
                         [['call_0', 'weather', true], ['call_1', 'weather', true]]);
  for (let cuts = 1; cuts < 9; cuts++) assert.deepStrictEqual(read(model.reader({ template, tools }), cuts), whole);
  assert.ok(model.reader() instanceof Answer);
  const one = { template, tools, oneCall: true, callId: 'mine' };
  assert.deepStrictEqual(read(reader(one), 3).calls.map(([id]) => id), ['mine_0']);
  assert.deepStrictEqual(parse(said, one).tool_calls.map(({ id }) => id), ['mine_0']);
  assert.deepStrictEqual(model.parse(Buffer.from(said), { template, tools }), parse(said, { template, tools }));
  assert.deepStrictEqual(parse('<think>\nHm.\n</think>\n\nYes.', { template }),
                         { role: 'assistant', reasoning_content: 'Hm.', content: 'Yes.' });
  const marked = parse('<think>\nHm.\n</think>\n\nYes.', { template, keepReasoning: true });
  assert.ok(marked.content.startsWith('<think>') && !('reasoning_content' in marked));
  assert.strictEqual(parse('Hm.</think>Yes.', { template, prompt: 'a\0<think>\n' }).reasoning_content, 'Hm.');
  // An answer that was cut off: what is not there yet is not added.
  const elements = { tools, template: '<tool_call>\n<function=f>\n<parameter=x>\n{{ tools }}' };
  const half = '<tool_call>\n<function=weather>\n<parameter=sky>\nblue\n</parameter>\n';
  assert.strictEqual(parse(half, elements).tool_calls[0].function.arguments, '{"sky":"blue"}');
  assert.strictEqual(parse(half, { ...elements, cut: true }).tool_calls[0].function.arguments, '{"sky":"blue');
  assert.throws(() => parse(said), { code: 'JIT_ERROR_ARGUMENT' });
  assert.throws(() => parse(7, { template }), /the answer is 7/);
  assert.throws(() => parse(said, { templates: '' }), /templates/);
  // A forced call by hand.
  const forced = model.forceCall({ tools, template, function: 'weather', oneCall: true });
  assert.deepStrictEqual(model.tokenize(forced.prompt, { addSpecial: false, parseSpecial: true }), forced.ids);
  const s = await model.session({ ...session, sampling: greedy });
  const prompt = model.render([{ role: 'user', content: 'Hello' }], { template, tools });
  await s.feed(prompt.ids);
  await s.feed(forced.ids);
  const generation = s.generate({ grammar: { forced }, maxTokens: 100 });
  const answer = model.reader({ template, tools, prompt: prompt.text, opened: forced.opened });
  const events = [...answer.feed(await generation.read()), ...answer.finish()];
  assert.strictEqual(events.find((e) => e.kind === 'call').name, 'weather');
  assert.ok(s.grammarComplete && forced.kind > 0 && forced.grammar.length > 0);
  assert.throws(() => model.forceCall({ tools, template, function: 'no' }), { message: /no/ });
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
  const never = model.generate(PROMPT, { signal: AbortSignal.abort(new Error('no')) });
  await assert.rejects(never.read(), { message: 'no' });
  // A session whose generation was aborted goes on: nothing of the signal is left.
  for (let turn = 0; turn < 3; turn++) {
    const aborting = new AbortController();
    const many = { signal: aborting.signal, maxTokens: 100 };
    const reading = s.generate(many).read();
    if (turn === 0) aborting.abort(new Error('enough'));
    else if (turn === 1) setImmediate(() => aborting.abort(new Error('enough')));
    else setTimeout(() => aborting.abort(new Error('enough')), 2);
    await assert.rejects(reading, { message: 'enough' });
    s.rewind(0);
    await s.feed(PROMPT);
    const whole = s.generate({ maxTokens: ids.length, signal: new AbortController().signal });
    await whole.read();
    assert.deepStrictEqual([...whole.ids], ids);
  }
  // While the prompt is computed.
  const early = new AbortController();
  const slow = await model.session({ ...session, batch: 4, sampling: greedy });
  slow.setPromptFn(() => early.abort(new Error('early')));
  const reading = slow.chat([{ role: 'user', content: long }], { template, signal: early.signal }).read();
  await assert.rejects(reading, { message: 'early' });
  assert.ok(slow.length > 0 && slow.length < model.tokenize(long).length);
  const own = new AbortController();
  const inPrompt = model.generate(long, { session: { ...session, batch: 4 }, signal: own.signal });
  const rejected = assert.rejects(inPrompt.read(), { message: 'own' });
  setTimeout(() => own.abort(new Error('own')), 3);
  await rejected;
  // Openings, and what is opened with a signal that is asked later.
  const at = { signal: AbortSignal.abort(new Error('no')) };
  await assert.rejects(open(at), { message: 'no' });
  await assert.rejects(model.session(at), { message: 'no' });
  const loading = new AbortController();
  const half = open({ signal: loading.signal, progress: () => loading.abort(new Error('half')) });
  await assert.rejects(half, { message: 'half' });
  const later = new AbortController();
  const bound = await model.session({ ...session, signal: later.signal });
  const child = await bound.fork({ ...session, signal: later.signal });
  await bound.feed(PROMPT);
  later.abort(new Error('later'));
  await assert.rejects(bound.feed(PROMPT), { message: 'later' });
  await assert.rejects(bound.generate({ maxTokens: 1 }).read(), { message: 'later' });
  await assert.rejects(child.feed(PROMPT), { message: 'later' });
  // Closing while it computes: the call ends as ever, and no other begins.
  const closing = await model.session({ ...session, sampling: greedy });
  const feeding = closing.feed(long);
  closing.close();
  await feeding;
  await assert.rejects(closing.feed(PROMPT), { message: 'the session is closed' });
  const closed = await model.session({ ...session, sampling: greedy });
  await closed.feed(PROMPT);
  await assert.rejects(async () => {
    for await (const _ of closed.generate()) closed.close();
  }, { message: 'the session is closed' });
  await assert.rejects(Model.open('/no/such/model.gguf'), { code: 'JIT_ERROR_IO', message: /\/no\/such\/model.gguf/ });
  await assert.rejects(Model.open('a\0b'), /path has a NUL/);
  await assert.rejects(Model.open(7), TypeError);
  await assert.rejects(Model.open(process.env.JITRUN_MODEL, { thread: 1 }), { message: /thread/ });
  assert.throws(() => model.tokenize(null), /the text is null/);
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
  await collect();
  await s.feed(PROMPT);
  // Nobody holds these while they compute, nor afterwards.
  const jobs = [];
  for (let i = 0; i < 3; i++) jobs.push((await (await open()).session(session)).feed(long));
  await collect();
  await Promise.all(jobs);
  // An iteration that nobody goes on with.
  const weak = await (async () => {
    const left = await (await open()).session({ ...session, sampling: greedy });
    await left.feed(PROMPT);
    await left.generate()[Symbol.asyncIterator]().next();
    return new WeakRef(left);
  })();
  await collect();
  assert.strictEqual(weak.deref(), undefined);
});
