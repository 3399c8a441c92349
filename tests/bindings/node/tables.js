'use strict';
// tables.js - what models say of themselves, where they run, and files about them; and the declarations of TypeScript.
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const jitrun = require('jitrun');
const { file, folder, greedy, open, session } = require('./support.js');

const { Metadata, Model, devices, modelNeeds, writeObjects } = jitrun;

test('metadata by key, with arrays', async () => {
  const model = await open();
  const { metadata } = model;
  assert.ok(metadata instanceof Metadata);
  assert.strictEqual(metadata.get('general.architecture'), 'qwen3');
  assert.strictEqual(metadata.get('qwen3.block_count'), 6);
  assert.strictEqual(metadata.get('qwen3.rope.freq_base'), 1e6);
  assert.strictEqual(metadata.get('tokenizer.ggml.add_bos_token'), true);
  const tokens = metadata.get('tokenizer.ggml.tokens');
  assert.deepStrictEqual([tokens.length, tokens[5]], [model.info.vocab, '$']);
  assert.deepStrictEqual([model.info.encodes, model.info.embedding], [false, model.info.hidden]);
  assert.strictEqual(metadata.get('tokenizer.ggml.token_type')[0], 3);
  for (const key of ['no such key', 'a\0b', 7, undefined]) {
    assert.deepStrictEqual([metadata.has(key), metadata.get(key)], [false, undefined]);
  }
  const keys = [...metadata.keys()], values = [...metadata.values()], entries = [...metadata.entries()];
  assert.deepStrictEqual([keys.length, keys[0]], [metadata.size, 'general.architecture']);
  assert.deepStrictEqual(entries, keys.map((key, i) => [key, values[i]]));
  assert.deepStrictEqual([...metadata], entries);
  const seen = [];
  metadata.forEach((value, key, all) => {
    assert.ok(all === metadata && metadata.has(key));
    assert.deepStrictEqual(metadata.get(key), value);
    seen.push([key, value]);
  });
  assert.deepStrictEqual(seen, entries);
  model.close();
  assert.throws(() => metadata.size, /the model is closed/);
  assert.throws(() => model.metadata, /the model is closed/);
});

test('metadata of a directory', async (t) => {
  const from = path.join(process.env.JITRUN_SHARED ?? '', 'models', 'tale-qwen3'), dir = folder();
  if (!fs.existsSync(from)) return t.skip('there is no reference data');
  for (const name of fs.readdirSync(from)) fs.symlinkSync(path.join(from, name), path.join(dir, name));
  fs.rmSync(path.join(dir, 'generation_config.json'));
  fs.writeFileSync(path.join(dir, 'generation_config.json'),
                   '{"none": null, "mixed": [1, "a", null, true, 1.5, [2], {"b": 3}], "empty": [], ' +
                   '"big": 9007199254740993}');
  const model = await Model.open(dir, { threads: 1 });
  const get = (key) => model.metadata.get(`generation_config.${key}`);
  assert.strictEqual(get('none'), null);
  assert.deepStrictEqual(get('mixed'), [1, 'a', null, true, 1.5, undefined, undefined]);
  assert.deepStrictEqual(get('empty'), []);
  assert.strictEqual(get('big'), 9007199254740993n);
  fs.rmSync(dir, { recursive: true });
});

test('texts that are no UTF-8 are bytes', async () => {
  // The name of the model, changed in place to bytes of which each row is wrong, or right, in its own way.
  const gguf = fs.readFileSync(file), dir = folder(), copy = path.join(dir, 'model.gguf');
  const at = gguf.indexOf('tale-qwen3'), name = (bytes) => {
    Buffer.from('tale-qwen3').copy(gguf, at);
    Buffer.from(bytes).copy(gguf, at);
    fs.writeFileSync(copy, gguf);
    return open2(copy);
  };
  const open2 = async (which) => {
    const model = await Model.open(which, { threads: 1 });
    const value = model.metadata.get('general.name');
    model.close();
    return value;
  };
  const wrong = [[0xff], [0xc0, 0x80], [0xc3], [0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98],
                 [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe1, 0x80, 0x20]];
  for (const bytes of wrong) {
    const value = await name([...bytes, 0x20]);
    assert.ok(value instanceof Uint8Array && value[0] === bytes[0] && value.length === 10, String(bytes));
  }
  for (const text of ['\u00e9', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}', '\0']) {
    assert.ok((await name(text)).startsWith(text));
  }
  fs.rmSync(dir, { recursive: true });
});

test('the vocabulary', async () => {
  const model = await open();
  const tokens = [...model.tokens()];
  assert.strictEqual(tokens.length, model.info.vocab);
  for (const { id, spelling, bytes, kind, isEnd } of tokens) {
    assert.strictEqual(model.findToken(spelling), id);
    assert.strictEqual(isEnd, model.isEnd(id));
    if (kind === 'normal') assert.strictEqual(model.detokenize([id]), Buffer.from(bytes).toString());
    else assert.ok(kind === 'control' && Buffer.compare(bytes, spelling) === 0);
  }
  assert.deepStrictEqual(model.token(1), tokens[1]);
  const text = 'h\u00e9llo \u{1f600} \u65e5';
  const own = [...model.tokenize(text, { addSpecial: false })].map((id) => tokens[id].bytes);
  assert.strictEqual(Buffer.concat(own).toString(), text);
  assert.strictEqual(model.findToken('<|end_of_text|>'), 1);
  assert.strictEqual(model.findToken('no such token of any vocabulary'), null);
  assert.throws(() => model.findToken(7), /the spelling is 7/);
  assert.throws(() => model.token(-1), { code: 'JIT_ERROR_ARGUMENT' });
  assert.throws(() => model.token(tokens.length), { code: 'JIT_ERROR_ARGUMENT' });
  assert.throws(() => model.token('1'), /a token is "1": an integer was expected/);
  assert.throws(() => model.isEnd(1.5), /a token is 1.5/);
  const { roles } = model;
  assert.deepStrictEqual([roles.bos, roles.eos, roles.fim_prefix], [0, 1, null]);
  assert.deepStrictEqual(model.stopTexts, []);
});

test('what a model needs, and where it runs', async () => {
  const needs = await modelNeeds(file, { session: { context: 512 } });
  const model = await open({ session });
  const { info } = model;
  assert.deepStrictEqual([needs.context, needs.tokenBytes, needs.contextTrained],
                         [512, info.tokenBytes, info.contextTrained]);
  assert.ok(needs.weightBytes >= info.weightBytes && needs.kvBytes > 0 && needs.passBytes > 0);
  assert.ok(needs.availableBytes > 0 && (await modelNeeds(file)).kvBytes > needs.kvBytes);
  await assert.rejects(modelNeeds('no such file'), { code: 'JIT_ERROR_IO' });
  await assert.rejects(modelNeeds(file, { session: { contexts: 1 } }), /contexts/);
  assert.ok(info.fileBytes > 6e6 && info.loadSeconds > 0 && info.layers === 6 && info.hidden === 256);
  const { pooling, bounded, boundedGain, weightCacheTrouble } = info;
  assert.deepStrictEqual([pooling, bounded, boundedGain, weightCacheTrouble], [null, 'none', 0, null]);
  assert.deepStrictEqual([info.hasTokenizer, info.hasChatTemplate, info.hasSampling], [true, false, false]);
  assert.match(info.description, /qwen3/);
  model.checkAlive();
  const [cpu] = devices();
  assert.ok(cpu.name === 'cpu' && cpu.about !== '' && cpu.whyNot === null);
  assert.ok(devices().every(({ whyNot }) => whyNot === null || whyNot.length > 10));
  await assert.rejects(open({ session: { context: 2 ** 30 } }), { code: /JIT_ERROR_(MEMORY|ARGUMENT)/ });
  await assert.rejects(model.session({ card: { workgroups: -1 } }), { message: /workgroups/ });
  await assert.rejects(model.session({ card: { nothing: 1 } }), { message: /nothing/ });
});

test('a simulated card counts', async () => {
  const model = await open({ device: 'sim:gfx1100' });
  const s = await model.session({ context: 8, card: { launch: 'layer', units: 1 } });
  await s.feed([0]);
  const counted = s.cardStats();
  assert.ok(counted.launches > 1 && counted.instructions > 0 && counted.weightBytes > 0 && counted.load128Bytes > 0);
});

test('files about kernels', async () => {
  const dir = folder(), ir = path.join(dir, 'ir'), objects = path.join(dir, 'objects');
  const model = await open({ dumpIr: ir, cacheDir: '' });
  await (await model.session(session)).feed([0]);
  model.checkWritten();
  assert.ok(fs.statSync(ir).size > 1000);
  const full = await open({ dumpIr: '/dev/full', cacheDir: '' });
  await (await full.session(session)).feed([0]);
  assert.throws(() => full.checkWritten(), { code: 'JIT_ERROR_IO' });
  const written = await writeObjects(file, { target: 'gfx1101', dir: objects });
  assert.ok(written.kernels > 10 && written.programs > 0 && written.bytes > 0 && fs.readdirSync(objects).length > 10);
  await assert.rejects(writeObjects(file, {}), { code: 'JIT_ERROR_ARGUMENT' });
  await assert.rejects(writeObjects(file, 7), /the options are 7/);
  fs.rmSync(dir, { recursive: true });
});

test('numbers, each by its name', async () => {
  const model = await open({ cacheDir: '', tune: 'off' });
  const rounded = (object) => Object.fromEntries(Object.entries(object).map(([name, value]) => (
    [name, typeof value === 'number' ? Math.round(value * 1e4) / 1e4 : value])));
  assert.deepStrictEqual(rounded(model.samplingDefaults), {
    temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, repeatPenalty: 1, repeatWindow: 64, seed: 0, samplers: null,
    typicalP: 1, topNSigma: 0, frequencyPenalty: 0, presencePenalty: 0, dynatempRange: 0, dynatempExponent: 0,
    xtcProbability: 0, xtcThreshold: 0, dryMultiplier: 0, dryBase: 0, dryAllowedLength: 0, dryWindow: 0, mirostat: 0,
    minKeep: 0, mirostatTau: 0, mirostatEta: 0, adaptiveTarget: 0, adaptiveDecay: 0, logitBias: [], dryBreakers: null,
  });
  const s = await model.session({ ...session, speculate: '4', sampling: greedy });
  await s.feed('a b a b a b a b');
  await s.generate({ maxTokens: 24 }).read();
  const {
    promptTokens, decodeTokens, promptSeconds, decodeSeconds, kernels, kernelsGenerated, generateSeconds, codeBytes,
    kvBytes, decodePasses, drafted, accepted, kernelsBackground, kernelStalls, threads, context, speculation, ...others
  } = s.stats();
  assert.deepStrictEqual([promptTokens, decodeTokens, threads, context], [s.length - 24, 23, 1, 256]);
  assert.ok(promptSeconds > 0 && decodeSeconds > 0 && generateSeconds > 0 && codeBytes > 1000 && kvBytes > 1e5);
  assert.ok(kernels === kernelsGenerated && kernelsBackground <= kernels && kernelStalls <= kernels);
  assert.ok(decodePasses <= decodeTokens && accepted <= drafted);
  assert.strictEqual(decodeTokens - decodePasses, accepted);
  assert.deepStrictEqual(speculation.reduce((sum, one) => [sum[0] + one.drafted, sum[1] + one.accepted], [0, 0]),
                         [drafted, accepted]);
  assert.deepStrictEqual(others, {
    kernelsFromCache: 0, kernelsFromPack: 0, cacheDamaged: 0, cacheStoreFailed: 0, cacheEvicted: 0, cacheUnreadable: 0,
  });
  const batch = await model.batch({ ...session, kvBytes: 2 ** 24 });
  await Promise.all(['The sea', 'A king'].map((prompt) => batch.generate(prompt, { maxTokens: 4 }).read()));
  const held = await batch.session();
  await held.submit('The sea');
  await held.generate({ maxTokens: 1 }).read();
  const stats = await batch.stats();
  assert.strictEqual(stats.width.reduce((sum, n) => sum + n, 0), stats.passes);
  assert.strictEqual(stats.tokens, stats.promptTokens + stats.decodeTokens);
  assert.ok(stats.width[1] >= 3 && stats.reusedTokens > 0 && stats.seconds > 0 && stats.kvBytes <= 2 ** 24);
  assert.ok(stats.pages > 0 && stats.pagesUsed > 0 && stats.pagesKept > 0 && stats.pagesUsed <= stats.pages);
  assert.deepStrictEqual([stats.setBack, stats.context, stats.pagesShared <= stats.pagesUsed], [0, 256, true]);
  const card = await open({ device: 'sim:gfx1100' });
  const counts = [];
  for (const launch of ['token', 'op']) {
    const counting = await card.session({ context: 8, card: { launch, units: 1 } });
    await counting.feed([0]);
    counts.push(counting.cardStats());
  }
  const [one, many] = counts;
  assert.ok(one.launches < many.launches && one.barriers > many.barriers && one.instructions > 1000);
  assert.ok(one.load128Bytes > 0 && one.load128Bytes <= one.loadBytes && one.storeBytes > 0 && one.scalarBytes > 0);
  assert.ok(one.weightBytes > card.info.tokenBytes / 2 && one.cacheBytes > 0 && one.commands >= 0);
});

test('the declarations name what is there', async () => {
  const text = fs.readFileSync(require.resolve('jitrun/index.d.ts'), 'utf8').replace(/\/\*.*?\*\//gs, '');
  const classes = new Map(Array.from(text.matchAll(/^export class (\w+)[^\n]*\{\n(.*?)^\}/gms), ([, name, body]) => (
    [name, [...body.matchAll(/^ {2}(?:static |readonly )*(\w+)\??\s*[(:]/gm)].map((m) => m[1]).sort()])));
  const exported = [...text.matchAll(/^export (?:class|const|function) (\w+)/gm)].map((m) => m[1]);
  assert.deepStrictEqual(exported.sort(), Object.keys(jitrun).sort());
  for (const [name, declared] of classes) {
    const { prototype } = jitrun[name];
    const own = [...Object.getOwnPropertyNames(prototype), ...Object.getOwnPropertyNames(jitrun[name])]
      .filter((member) => !['constructor', 'length', 'name', 'prototype'].includes(member) && !member.startsWith('_'));
    for (const member of own) {
      const inherited = Object.getPrototypeOf(prototype)?.[member] !== undefined;
      assert.ok(declared.includes(member) || inherited, `${name}.${member} is not declared`);
    }
  }
  const model = await open();
  const batch = await model.batch(session);
  const made = {
    Model: model, Session: await model.session(session), Batch: batch, BatchSession: await batch.session(),
    Metadata: model.metadata, Answer: model.reader(), Generation: model.generate('a'), Reply: model.chat([]),
  };
  made.Session.setGrammar(null);
  for (const [name, declared] of classes) {
    for (const member of declared.filter((one) => one !== 'constructor')) {
      assert.ok(member in made[name] || member in jitrun[name], `${name}.${member} is declared and not there`);
    }
  }
  assert.deepStrictEqual([...classes.keys()].sort(), Object.keys(made).sort());
  // Objects of results: each field is declared by its name, and no other is.
  const of = (name) => [...new RegExp(`^export interface ${name} \\{\\n(.*?)^\\}`, 'ms').exec(text)[1]
    .matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map((m) => m[1]).sort();
  await new Promise(setImmediate);
  const s = await model.session(session);
  const results = {
    ModelInfo: model.info, SamplingDefaults: model.samplingDefaults, Token: model.token(0), SessionStats: s.stats(),
    BatchStats: await batch.stats(), Needs: await modelNeeds(file), Device: devices()[0],
    ForcedCall: model.forceCall({ tools: '[{"type":"function","function":{"name":"f"}}]', template: '' }),
  };
  for (const [name, result] of Object.entries(results)) {
    assert.deepStrictEqual(Object.keys(result).sort(), of(name), name);
  }
});
