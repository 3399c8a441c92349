'use strict';
// misuse.js - programs that are wrong: values of a wrong kind in every place, objects that are closed, before a call
// and while it computes, empty prompts and those that are too long. Each ends in one error that says what is wrong.
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const jitrun = require('jitrun');
const { PROMPT, collect, file, folder, greedy, ids, long, open, session, template, tools } = require('./support.js');

const quick = process.env.JITRUN_TEST_QUICK;
const messages = [{ role: 'user', content: 'x' }];
const small = { ...session, sampling: greedy };
const few = { maxTokens: 2 };
const dir = folder();

test.after(() => fs.rmSync(dir, { recursive: true }));

const thrown = new RangeError('of a getter');
const throws = () => { throw thrown; };
const detached = new Int32Array(4);
structuredClone(detached, { transfer: [detached.buffer] });
const cyclic = { role: 'user', content: 'x' };
cyclic.self = cyclic;

const values = {
  undefined, null: null, true: true, zero: 0, minus: -1, half: 0.5, nan: NaN, infinity: Infinity, large: 2 ** 31,
  huge: 2 ** 60, bigint: 7n, hugeBigint: 2n ** 80n, empty: '', text: 'odd', nul: 'a\0b', surrogate: '\ud800',
  symbol: Symbol('s'), function: () => 7, async: async () => 7, object: {}, array: [], holes: new Array(1),
  nested: [[1, 2]], mixed: ['a', 1], nulls: [null], bytes: new Uint8Array([255]), words: new Int32Array([1, 2 ** 30]),
  detached, date: new Date(NaN), map: new Map([[1, 2]]), set: new Set(['x']), bare: Object.create(null),
  getter: { get seed() { return throws(); } }, cyclic, promise: Promise.resolve(7), unknown: { noSuch: 1 },
  proxy: new Proxy({}, { get: throws, ownKeys: throws, has: throws }), bigints: { a: 1n },
  endless: { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: {} }) }) },
};
const kinds = Object.keys(values);
// Which of them are right for what; `accepts` below says so of each parameter.
const nothing = ['undefined'], none = ['undefined', 'null'], flag = ['undefined', 'true'];
const strings = ['empty', 'text', 'nul', 'surrogate'], plain = ['empty', 'text', 'surrogate'];
const lists = ['array', 'bytes', 'detached'];
const objects = ['undefined', 'object', 'bare', 'date', 'promise'];

function judge(e, where) {
  if (e === thrown) return;
  assert.ok(e instanceof Error, `${where}: ${String(e)}`);
  assert.match(String(e.code), /^JIT_ERROR_/, `${where}: ${e.stack}`);
  assert.ok(e.message.length > 10 && e.message.length < 600 && !e.message.includes('\n'), `${where}: ${e.message}`);
}

async function drain(made) {
  if (typeof made?.read === 'function') return made.read();
  if (made && typeof made.then === 'function') return drain(await made);
  return made;
}

// At the quick size every third value is tried, and which ones differs from place to place.
let turn = 0;

// Calls it with each value. accepts: the kinds that are no error.
async function eachValue(where, accepts, call) {
  turn++;
  for (const [i, kind] of kinds.entries()) {
    if (quick && (i + turn) % 3) continue;
    const place = `${where} of the kind ${kind}`;
    let said = null;
    try {
      await drain(await call(values[kind]));
    } catch (e) {
      said = e;
    }
    if (said) judge(said, place);
    if (accepts === 'any') continue;
    const right = accepts.includes(kind);
    assert.ok(right ? !said : said, `${place}: ${right ? said : 'no error'}`);
  }
}

async function eachMember(where, members, call) {
  for (const [name, accepts] of Object.entries(members)) {
    await eachValue(`${where} ${name}`, accepts, (value) => call({ [name]: value }));
  }
}

const generating = {
  maxTokens: ['undefined', 'null', 'zero', 'infinity', 'large', 'huge'], stop: 'any', grammar: none, signal: none,
  logprobs: ['undefined', 'null', 'zero'], noSuch: nothing,
};
const templates = { tools: 'any', template: ['undefined', 'null', ...plain], templateName: none };
const reading = {
  ...templates, prompt: ['undefined', 'null', ...strings], opened: none, callId: ['undefined', 'null', ...plain],
  oneCall: flag, keepReasoning: flag, noSuch: nothing,
};
const chatting = {
  ...generating, tools: 'any', variables: 'any', template: plain, templateName: none, now: 'any', toolChoice: none,
  callId: ['undefined', 'null', ...plain], oneCall: flag, keepReasoning: flag,
};
const opening = { context: 'any', threads: 'any', signal: none, noSuch: none };
const sampling = {
  seed: 'any', temperature: 'any', topK: 'any', samplers: 'any', logitBias: 'any', dryBreakers: 'any', noSuch: none,
};

test('wrong values for the package and for models', async () => {
  const model = await open();
  const { Model } = jitrun;
  await eachValue('open', [], (v) => Model.open(v));
  await eachValue('open options', objects, (v) => Model.open(file, v).then((m) => m.close()));
  const openingModel = { ...opening, progress: ['undefined', 'function'], session: objects, device: none };
  delete openingModel.context;
  await eachMember('open', openingModel, (o) => Model.open(file, o).then((m) => m.close()));
  await eachValue('modelNeeds', [], (v) => jitrun.modelNeeds(v));
  await eachValue('modelNeeds options', objects, (v) => jitrun.modelNeeds(file, v));
  await eachMember('modelNeeds', { session: objects, noSuch: nothing }, (o) => jitrun.modelNeeds(file, o));
  await eachValue('writeObjects', [], (v) => jitrun.writeObjects(v, {}));
  await eachValue('writeObjects options', [], (v) => jitrun.writeObjects('no such model', v));

  await eachValue('tokenize', strings, (v) => model.tokenize(v));
  await eachValue('tokenize options', objects, (v) => model.tokenize('x', v));
  await eachMember('tokenize', { addSpecial: flag, parseSpecial: flag, noSuch: nothing },
                   (o) => model.tokenize('x', o));
  await eachValue('detokenize', lists, (v) => model.detokenize(v));
  await eachValue('isEnd', ['zero', 'minus'], (v) => model.isEnd(v));
  await eachValue('token', ['zero'], (v) => model.token(v));
  await eachValue('findToken', [...strings, 'bytes'], (v) => model.findToken(v));
  assert.ok(kinds.every((kind) => !model.metadata.has(values[kind]) && model.metadata.get(values[kind]) === undefined));

  await eachValue('render', 'any', (v) => model.render(v, { template }));
  await eachMember('a message', { role: 'any', content: 'any', tool_calls: 'any' },
                   (m) => model.render([{ ...messages[0], ...m }], { template }));
  await eachValue('render options', [], (v) => model.render(messages, v)); // there is no template
  await eachMember('render', {
    tools: 'any', variables: 'any', template: plain, templateName: none, now: 'any', generationPrompt: flag,
    noSuch: nothing,
  }, (o) => model.render(messages, { template, ...o }));
  for (const wrong of ['', '{}', 'x', '7', {}, 7, [7], ['x'], [messages]]) {
    assert.throws(() => model.render(wrong, { template }), { code: /^JIT_ERROR_/, message: /message|JSON|template/ });
  }
  await eachValue('forceCall', [], (v) => model.forceCall(v));
  await eachMember('forceCall', {
    ...templates, tools: [], function: none, oneCall: flag, prompt: ['undefined', 'null', ...strings], noSuch: nothing,
  }, (o) => model.forceCall({ tools, template, ...o }));
  for (const [name, make] of [['model', model], ['package', jitrun]]) {
    const template_ = name === 'model' ? templates.template : plain;
    await eachMember(`reader of the ${name}`, { ...reading, template: template_ },
                     (o) => make.reader({ template, ...o }).close());
    await eachMember(`parse of the ${name}`, { ...reading, template: template_, cut: flag },
                     (o) => make.parse('x', { template, ...o }));
    await eachValue(`parse of the ${name}`, [...strings, 'bytes'], (v) => make.parse(v, { template }));
  }
  await eachValue('reader options', objects, (v) => model.reader(v));
  await eachValue('parse options', objects, (v) => model.parse('x', v));
  const reader = () => model.reader({ template });
  await eachValue('feed of a reader', [...strings, 'bytes'], (v) => reader().feed(v));
  await eachValue('a token for a reader', ['undefined', 'zero', 'minus'], (v) => reader().feed('x', v));
  await eachValue('finish of a reader', flag, (v) => reader().finish(v));
});

test('wrong values for what models open', async () => {
  const model = await open();
  await eachValue('session options', objects, (v) => model.session(v).then((s) => s.close()));
  await eachMember('session', { ...opening, sampling: objects, card: ['null', ...objects], kv: 'any' },
                   (o) => model.session(o).then((s) => s.close()));
  await eachMember('sampling', sampling, (p) => model.session({ sampling: p }).then((s) => s.close()));
  await eachValue('batch options', objects, (v) => model.batch(v).then((b) => b.close()));
  await eachMember('batch', { ...opening, tokens: 'any' }, (o) => model.batch(o).then((b) => b.close()));
  await eachValue('embed', strings, (v) => model.embed(v));
  await eachMember('embed', { pooling: nothing, normalise: flag, noSuch: nothing }, (o) => model.embed('x', o));
  await eachValue('score', strings, (v) => model.score(v));
  const prompts = [...strings, 'bytes'];
  await eachValue('generate', prompts, (v) => model.generate(v, { ...few, session }));
  await eachMember('generate', { ...generating, session: objects, sampling: objects, parseSpecial: flag },
                   (o) => model.generate(PROMPT, { session: { context: 16 }, ...few, ...o }));
  await eachValue('chat', 'any', (v) => model.chat(v, { ...few, session, template }));
  await eachMember('chat', { ...chatting, session: objects, sampling: objects },
                   (o) => model.chat(messages, { session: { context: 64, threads: 1 }, ...few, template, ...o }));
  const grammars = { schema: 'any', openSchema: 'any', regex: 'any', gbnf: [], lark: [], forced: [] };
  await eachMember('grammar', grammars, (grammar) => model.generate(PROMPT, { ...few, session, grammar }));
  await eachValue('generate options', 'any', (v) => model.generate([], v));
  await eachValue('chat options', 'any', (v) => model.chat([], v));

  const batch = await model.batch(session);
  await eachValue('generate of a batch', prompts, (v) => batch.generate(v, few));
  await eachValue('generate options of a batch', 'any', (v) => batch.generate([], v));
  await eachMember('generate of a batch', { ...generating, sampling: objects, parseSpecial: flag },
                   (o) => batch.generate(PROMPT, { ...few, ...o, ...(o.maxTokens === undefined ? few : {}) }));
  await eachValue('chat of a batch', 'any', (v) => batch.chat(v, { ...few, template }));
  await eachValue('chat options of a batch', 'any', (v) => batch.chat([], v));
  await eachMember('chat of a batch', { ...chatting, sampling: objects, maxTokens: 'any' },
                   (o) => batch.chat(messages, { template, ...o, ...(o.maxTokens === 0 ? {} : few) }));
  await eachValue('session options of a batch', objects, (v) => batch.session(v).then((s) => s.close()));
  await eachMember('session of a batch', { sampling: objects, noSuch: nothing },
                   (o) => batch.session(o).then((s) => s.close()));
  await eachValue('forget', ['undefined', 'words', ...lists], (v) => batch.forget(v));
  const submit = async (...given) => {
    const s = await batch.session();
    await s.submit(...given).finally(() => s.close());
  };
  await eachValue('submit', [...strings, ...lists], submit);
  await eachValue('submit options', objects, (v) => submit(PROMPT, v));
  await eachMember('submit', { parseSpecial: flag, noSuch: nothing }, (o) => submit(PROMPT, o));
  batch.close();
});

// The methods of sessions: their right arguments, and of each argument which kinds are right.
const methods = {
  feed: [[[1], {}], [...strings, ...lists], objects], feedLogits: [[[1]], lists], generate: [[few], 'any'],
  chat: [[messages, { ...few, template }], 'any', 'any'], next: [[]], text: [[1], ['zero']],
  textBytes: [[1], ['zero']], flush: [[]], logprobs: [[1], ['undefined', 'zero']],
  sampledLogprobs: [[1], ['undefined', 'zero']], logits: [[]], score: [[[1]], lists],
  embed: [[[1], {}], ['bytes'], objects], setGrammar: [[{ regex: 'a' }, { prompt: 'x' }], none, none],
  setSampling: [[{}], objects], setStop: [['x'], 'any'], setLogitsFn: [[null], [...none, 'function', 'async']],
  setPromptFn: [[null], [...none, 'function', 'async']], rewind: [[1], ['zero']],
  save: [[path.join(dir, 'saved')], 'any'], restore: [[path.join(dir, 'none')], []], fork: [[small], objects],
  stats: [[]], cardStats: [[]], report: [[{}], objects], trace: [[path.join(dir, 'no', 'trace')], []], cancel: [[]],
  close: [[]],
};

test('wrong values for sessions', async () => {
  const model = await open();
  const names = Object.getOwnPropertyNames(jitrun.Session.prototype).filter((name) => (
    !name.startsWith('_') && name !== 'constructor' &&
    typeof Object.getOwnPropertyDescriptor(jitrun.Session.prototype, name).value === 'function'));
  assert.deepStrictEqual(names.sort(), Object.keys(methods).sort());
  for (const [name, [right, ...accepts]] of Object.entries(methods)) {
    for (const [place, kindsOf] of accepts.entries()) {
      if (name === 'save') continue; // any text is a file's name
      await eachValue(`${name}, argument ${place}`, kindsOf, async (value) => {
        const s = await model.session(small), given = right.slice();
        try {
          await s.feed(PROMPT);
          if (/logprobs/i.test(name)) await s.next();
          given[place] = value;
          return await drain(await s[name](...given));
        } finally {
          s.close();
        }
      });
    }
  }
  const s = await model.session(small);
  for (const wrong of [null, 7, '', 'a\0b', dir, [dir], path.join(dir, 'no', 'file')]) {
    await s.save(wrong).then(assert.fail, (e) => judge(e, `save ${wrong}`));
  }
  await eachMember('feed', { parseSpecial: flag, noSuch: nothing }, (o) => { s.rewind(0); return s.feed(PROMPT, o); });
  await eachMember('embed', { pooling: nothing, normalise: flag, noSuch: nothing }, (o) => {
    s.rewind(0);
    return s.embed(ids, o);
  });
  await eachMember('report', { json: flag, noSuch: nothing }, (o) => s.report(o));
  await eachMember('fork', { context: 'any', sampling: objects, signal: none, noSuch: none }, (o) => s.fork(o));
  await eachMember('behindReasoning', { prompt: strings, tools: 'any', template: ['undefined', 'null', ...plain] },
                   (o) => s.setGrammar({ regex: 'a' }, { prompt: 'x', ...o }));
  await eachMember('setSampling', sampling, (o) => s.setSampling(o));
  // After all of that, the same tokens as ever.
  const fresh = await model.session(small);
  await fresh.feed(PROMPT);
  const generation = fresh.generate({ maxTokens: ids.length });
  await generation.read();
  assert.deepStrictEqual([...generation.ids], ids);
});

test('objects that are closed', async () => {
  const model = await open();
  // closed: the sentence of each method's error; they end none of what was opened before.
  const refuses = async (object, name, given, message) => {
    const call = async () => drain(await object[name](...given));
    await assert.rejects(call, { code: 'JIT_ERROR_ARGUMENT', message }, name);
  };
  const s = await model.session(small), batch = await model.batch(session), one = await batch.session();
  const reader = model.reader({ template });
  reader.close();
  for (const [name, given] of [['feed', ['x']], ['finish', []]]) {
    await refuses(reader, name, given, 'the answer is closed');
  }
  for (const object of [s, one]) {
    object.close();
    object.close();
    for (const [name, [given]] of Object.entries(methods)) {
      if (name === 'close' || name === 'cancel') object[name]();
      else await refuses(object, name, given, 'the session is closed');
    }
    for (const name of ['ids', 'length', 'stopped', 'grammarComplete']) {
      assert.throws(() => object[name], { message: 'the session is closed' }, name);
    }
    assert.ok(object.closed);
  }
  await refuses(one, 'submit', [PROMPT], 'the session is closed');
  batch.close();
  for (const [name, given] of [['session', []], ['step', []], ['pending', []], ['forget', []], ['stats', []],
                               ['generate', [PROMPT]], ['chat', [messages, { template }]]]) {
    await refuses(batch, name, given, 'the batch is closed');
  }
  const { metadata } = model, left = await model.session(small);
  model.close();
  model.close();
  for (const [name, given] of [
    ['tokenize', ['x']], ['detokenize', [[1]]], ['isEnd', [1]], ['token', [1]], ['findToken', ['x']], ['session', []],
    ['batch', []], ['generate', [PROMPT]], ['chat', [messages, { template }]], ['render', [messages, { template }]],
    ['forceCall', [{ tools, template }]], ['reader', [{ template }]], ['parse', ['x', { template }]],
    ['embed', ['x']], ['score', ['x']], ['checkWritten', []], ['checkAlive', []]]) {
    await refuses(model, name, given, 'the model is closed');
  }
  for (const name of ['info', 'samplingDefaults', 'metadata', 'roles', 'stopTexts']) {
    assert.throws(() => model[name], { message: 'the model is closed' }, name);
  }
  assert.throws(() => [...model.tokens()], { message: 'the model is closed' });
  assert.throws(() => metadata.size, { message: 'the model is closed' });
  assert.throws(() => metadata.get('general.name'), { message: 'the model is closed' });
  // What was opened before lives on.
  await left.feed(PROMPT);
  await left.next();
});

test('objects that are closed, or collected, while they compute', async () => {
  const computing = {
    feed: [long], feedLogits: [ids], score: [ids], embed: [ids], logits: [], next: [], fork: [small], report: [],
    save: [path.join(dir, 'meanwhile')], setGrammar: [{ schema: {} }], generate: [few],
    chat: [messages, { ...few, template }],
  };
  for (const [name, given] of Object.entries(computing)) {
    for (const how of quick ? ['both', 'nobody'] : ['session', 'model', 'both', 'nobody']) {
      const begin = async () => {
        const model = await open(), s = await model.session(small);
        await s.feed(PROMPT);
        const said = drain(s[name](...given)).then(() => null, (e) => e);
        if (how === 'session' || how === 'both') s.close();
        if (how === 'model' || how === 'both') model.close();
        return [said];
      };
      const [said] = await begin();
      await collect(2);
      const error = await said, where = `${name} while the ${how} is closed`;
      if (error) judge(error, where);
      // One call ends as ever; those that are made of several end at the next one.
      const several = name === 'generate' || name === 'chat';
      assert.ok(!error || (several && how !== 'nobody' && /is closed/.test(error.message)), `${where}: ${error}`);
    }
  }
});

test('generations that are dropped in their middle', async () => {
  const model = await open(), batch = await model.batch(session), s = await model.session(small);
  await s.feed(PROMPT);
  const takeOne = async (generation) => {
    const iterator = generation[Symbol.asyncIterator]();
    assert.strictEqual((await iterator.next()).done, false);
  };
  for (let i = 0; i < 8; i++) {
    await takeOne(model.generate(PROMPT, { session, sampling: greedy }));
    await takeOne(batch.generate(PROMPT, { sampling: greedy }));
    await collect(1);
  }
  await takeOne(s.generate());
  await collect();
  // Neither the session nor the batch waits for what nobody reads any more.
  assert.strictEqual(await batch.pending(), 0);
  assert.strictEqual(await batch.generate(PROMPT, { sampling: greedy, maxTokens: ids.length }).read(),
                     await model.generate(PROMPT, { session, sampling: greedy, maxTokens: ids.length }).read());
  assert.strictEqual(await s.next(), ids[1]);
});

test('empty prompts, and prompts that are too long', async () => {
  const model = await open(), batch = await model.batch(session);
  const begun = [...model.tokenize('')]; // what the model wants before every text
  const s = await model.session(small), one = await batch.session({ sampling: greedy });
  await s.feed('');
  await one.submit('');
  assert.deepStrictEqual([[...s.ids], [...one.ids]], [begun, begun]);
  const text = await model.generate('', { ...few, session, sampling: greedy }).read();
  assert.ok(text.length > 0);
  assert.strictEqual(await batch.generate('', { ...few, sampling: greedy }).read(), text);
  const nothing_ = { code: 'JIT_ERROR_ARGUMENT', message: /feed at least one token/ };
  for (const from of [model, batch]) await assert.rejects(from.generate([], few).read(), nothing_);
  const bare = await model.session(small);
  for (const call of [() => bare.next(), () => bare.logits()]) await assert.rejects(call, nothing_);
  assert.deepStrictEqual([(await bare.score([])).length, (await bare.feedLogits([])).length], [0, 0]);
  await assert.rejects(bare.embed([]), { code: 'JIT_ERROR_ARGUMENT' });
  await s.feed([]);
  assert.deepStrictEqual([...s.ids], begun);
  // As many tokens as there is room for, and one more.
  const tokens = model.tokenize(long.repeat(8)), narrow = { context: 64, threads: 1 };
  const full = { code: 'JIT_ERROR_CONTEXT', message: /the context of 64 tokens is full/ };
  const cramped = await model.session({ ...narrow, sampling: greedy });
  for (const call of ['feed', 'feedLogits', 'score', 'embed']) {
    await assert.rejects(cramped[call](tokens), full);
    await assert.rejects(cramped[call](tokens.subarray(0, 65)), full);
    assert.strictEqual(cramped.length, 0);
    await cramped[call](tokens.subarray(0, 64));
    assert.strictEqual(cramped.length, 64);
    cramped.rewind(0);
  }
  await cramped.feed(tokens.subarray(0, 64));
  const last = cramped.generate();
  await last.read();
  assert.deepStrictEqual([last.ids.length, last.finishReason], [1, 'length']);
  const tight = await model.batch(narrow), others = tight.generate(PROMPT, { ...few, sampling: greedy }).read();
  for (const from of [(p) => model.generate(p, { session: narrow }), (p) => tight.generate(p),
                      (p) => tight.chat([{ role: 'user', content: p }], { template })]) {
    await assert.rejects(from(long.repeat(8)).read(), full);
  }
  assert.strictEqual(await others, await model.generate(PROMPT, { ...few, session, sampling: greedy }).read());
});

test('prompts of a model whose texts end with a token', async () => {
  // The key that asks for a token before texts asks for one behind them, too, when its name is changed.
  const gguf = fs.readFileSync(file), changed = path.join(dir, 'ends.gguf');
  gguf.write('tokenizer.ggml.add_eos_token', gguf.indexOf('tokenizer.ggml.add_bos_token'));
  fs.writeFileSync(changed, gguf);
  const model = await jitrun.Model.open(changed, { threads: 1 }), batch = await model.batch(session);
  const ending = model.tokenize(PROMPT);
  assert.ok(ending.length > model.tokenize(PROMPT, { addSpecial: false }).length && model.isEnd(ending.at(-1)));
  for (const prompt of [PROMPT, '']) {
    const s = await model.session(small), one = await batch.session({ sampling: greedy });
    await s.feed(prompt);
    await one.submit(prompt);
    assert.deepStrictEqual([...one.ids], [...s.ids]);
    const given = { sampling: greedy, maxTokens: 8 };
    assert.strictEqual(await batch.generate(prompt, given).read(),
                       await model.generate(prompt, { ...given, session }).read());
  }
});
