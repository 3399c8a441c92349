'use strict';
// index.js - models, sessions and conversations over the addon, whose functions are in addon.c, jobs.c and chat.c.
const addon = require('./jitrun.node');

const POOLING = { last: 0, mean: 1, none: 2, rank: 3 };
const GRAMMARS = { none: 0, schema: 1, regex: 2, gbnf: 3 };
const REASONS = [null, 'stop', 'length'];

function refuse(sentence) {
  throw Object.assign(new TypeError(sentence), { code: 'JIT_ERROR_ARGUMENT' });
}

// {topK: 40} to ['top_k', '40']: the library knows the names and says what is wrong.
function named(options, left) {
  const list = [];
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || value === null || left?.includes(name)) continue;
    if (!['string', 'number', 'boolean', 'bigint'].includes(typeof value)) {
      refuse(`the option ${name} is ${typeof value}: a string, number or boolean was expected`);
    }
    list.push(name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), String(value));
  }
  return list;
}

function json(value) {
  return value === undefined || value === null || typeof value === 'string' ? value : JSON.stringify(value);
}

function limit(most) {
  if (most === undefined || most === null) return Infinity;
  if (!(Number.isInteger(most) || most === Infinity) || most < 0) {
    refuse(`maxTokens is ${most}: an integer of 0 or more was expected`);
  }
  return most;
}

function listOf(ids) {
  if (ids instanceof Int32Array) return ids;
  const list = Array.from(ids);
  const bad = list.find((id) => !Number.isInteger(id) || id < -(2 ** 31) || id >= 2 ** 31);
  if (bad !== undefined) refuse(`a token is ${bad}: an integer was expected`);
  return Int32Array.from(list);
}

function text(value, what) {
  if (typeof value !== 'string') refuse(`${what} is ${value === null ? 'null' : typeof value}: a string was expected`);
  return value;
}

function withSeed(sampling) {
  return { seed: Math.floor(Math.random() * 2 ** 32), ...sampling };
}

class Model {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  static async open(path, options) {
    return new Model(await addon.open(text(path, 'path'), named(options)));
  }

  get info() {
    return addon.info(this.#handle);
  }

  tokenize(string, { addSpecial = true, parseSpecial = false } = {}) {
    return addon.tokenize(this.#handle, text(string, 'text'), Boolean(addSpecial), Boolean(parseSpecial));
  }

  detokenize(ids) {
    return addon.detokenize(this.#handle, listOf(ids));
  }

  isEnd(id) {
    return addon.isEnd(this.#handle, id);
  }

  async session({ sampling, ...options } = {}) {
    return new Session(this, await addon.session(this.#handle, named(options), named(withSeed(sampling))));
  }

  generate(prompt, { session = {}, sampling, ...options } = {}) {
    return new Generation(async () => {
      const made = await this.session({ ...session, sampling });
      try {
        await made.feed(prompt);
      } catch (e) {
        made.close();
        throw e;
      }
      return made;
    }, options, true);
  }

  async embed(string, { pooling = 'last', normalise = true } = {}) {
    const ids = this.tokenize(string);
    const made = await this.session({ context: Math.max(ids.length, 1) });
    try {
      return await made.embed(ids, { pooling, normalise });
    } finally {
      made.close();
    }
  }

  async score(string) {
    const ids = this.tokenize(string);
    const made = await this.session({ context: Math.max(ids.length, 1) });
    try {
      return await made.score(ids);
    } finally {
      made.close();
    }
  }

  render(messages, { tools, variables, template, templateName, now, generationPrompt = true } = {}) {
    return addon.render(this.#handle, {
      messages: json(messages), tools: json(tools), variables: json(variables), template, templateName,
      now: now instanceof Date ? Math.floor(now / 1000) : now, noGenerationPrompt: generationPrompt ? 0 : 1,
    });
  }

  chat(messages, { session = {}, sampling, ...options } = {}) {
    return new Reply(this, () => this.session({ ...session, sampling }), messages, options, true);
  }

  close() {
    addon.close(this.#handle);
  }

  _force(options) {
    return addon.force(this.#handle, options);
  }

  _answer(options) {
    return addon.answer(this.#handle, options);
  }
}

class Session {
  #handle;

  constructor(model, handle) {
    this.model = model;
    this.#handle = handle;
  }

  get ids() {
    return addon.ids(this.#handle);
  }

  get length() {
    return this.ids.length;
  }

  async feed(prompt) {
    const addSpecial = this.length === 0;
    const ids = typeof prompt === 'string' ? this.model.tokenize(prompt, { addSpecial }) : listOf(prompt);
    await addon.feed(this.#handle, ids);
  }

  async score(ids) {
    return addon.score(this.#handle, listOf(ids));
  }

  async embed(ids, { pooling = 'last', normalise = true } = {}) {
    if (!Object.hasOwn(POOLING, pooling)) {
      refuse(`pooling is ${pooling}: one of ${Object.keys(POOLING).join(', ')} was expected`);
    }
    return addon.embed(this.#handle, listOf(ids), POOLING[pooling], Boolean(normalise));
  }

  async logits() {
    return addon.logits(this.#handle);
  }

  async setGrammar(grammar) {
    const kinds = Object.keys(grammar ?? { none: '' });
    if (kinds.length !== 1 || !Object.hasOwn(GRAMMARS, kinds[0])) {
      refuse(`a grammar has the members ${kinds.join(', ') || '(none)'}: one of schema, regex, gbnf was expected`);
    }
    await addon.grammar(this.#handle, GRAMMARS[kinds[0]], json(grammar?.[kinds[0]]) ?? '');
  }

  setSampling(sampling) {
    addon.sampling(this.#handle, named(withSeed(sampling)));
  }

  setStop(texts) {
    addon.stop(this.#handle, typeof texts === 'string' ? [texts] : Array.from(texts));
  }

  rewind(n) {
    if (!Number.isInteger(n) || n < 0 || n > this.length) {
      refuse(`the position is ${n}: 0 to ${this.length} was expected`);
    }
    addon.rewind(this.#handle, n);
  }

  generate(options = {}) {
    return new Generation(async () => this, options, false);
  }

  chat(messages, options = {}) {
    return new Reply(this.model, async () => this, messages, options, false);
  }

  cancel() {
    addon.cancel(this.#handle);
  }

  close() {
    addon.close(this.#handle);
  }

  _step(last) {
    return addon.step(this.#handle, last);
  }

  _forced(forced) {
    return addon.grammar(this.#handle, forced.kind, forced.grammar);
  }
}

// Tokens and texts, one after the other; what Generation and Reply have in common.
class Steps {
  constructor(open, { maxTokens, stop, grammar, signal, ...others }, owned) {
    const unknown = Object.keys(others);
    if (unknown.length) refuse(`there is no option ${unknown[0]}: maxTokens, stop, grammar or signal was expected`);
    Object.assign(this, { open, stop, grammar, signal, owned, most: limit(maxTokens), ids: [], reason: null });
  }

  async* run(prepare) {
    this.signal?.throwIfAborted();
    const session = await this.open();
    const abort = () => session.cancel();
    this.signal?.addEventListener('abort', abort);
    try {
      if (this.stop !== undefined) session.setStop(this.stop);
      if (prepare) await prepare(session);
      if (this.grammar !== undefined) await session.setGrammar(this.grammar);
      if (this.most === 0) this.reason = 'length';
      while (this.reason === null) {
        this.signal?.throwIfAborted();
        const step = await session._step(this.ids.length + 1 >= this.most);
        if (step.id >= 0) this.ids.push(step.id);
        this.reason = REASONS[step.reason] ?? (this.ids.length >= this.most ? 'length' : null);
        yield step;
      }
    } catch (e) {
      if (this.signal?.aborted) throw this.signal.reason;
      throw e;
    } finally {
      this.signal?.removeEventListener('abort', abort);
      if (this.owned) session.close();
    }
  }
}

class Generation {
  #steps;
  #iterator;
  #text = '';

  constructor(open, options, owned) {
    this.#steps = new Steps(open, options, owned);
  }

  get ids() {
    return Int32Array.from(this.#steps.ids);
  }

  get text() {
    return this.#text;
  }

  get finishReason() {
    return this.#steps.reason;
  }

  async* #run() {
    for await (const { text: piece } of this.#steps.run()) {
      if (piece === '') continue;
      this.#text += piece;
      yield piece;
    }
  }

  [Symbol.asyncIterator]() {
    this.#iterator ??= this.#run();
    return this.#iterator;
  }

  async read() {
    for await (const _ of this);
    return this.#text;
  }
}

class Reply {
  #model;
  #messages;
  #options;
  #steps;
  #iterator;

  constructor(model, open, messages, options, owned) {
    const { tools, variables, template, templateName, now, toolChoice, ...others } = options;
    if (![undefined, 'auto', 'required'].includes(toolChoice) && typeof toolChoice?.function !== 'string') {
      refuse('toolChoice was expected to be "auto", "required" or {function: NAME}');
    }
    Object.assign(this, { text: '', reasoning: '', toolCalls: [] });
    this.#model = model;
    this.#messages = messages;
    this.#options = { tools, variables, template, templateName, now, toolChoice };
    this.#steps = new Steps(open, others, owned);
  }

  get ids() {
    return Int32Array.from(this.#steps.ids);
  }

  get finishReason() {
    return this.#steps.reason === 'stop' && this.toolCalls.length ? 'tool_calls' : this.#steps.reason;
  }

  get message() {
    const out = { role: 'assistant', content: this.text };
    if (this.reasoning) out.reasoning_content = this.reasoning;
    if (this.toolCalls.length) {
      out.tool_calls = this.toolCalls.map(({ id, name, arguments: given }) => (
        { id, type: 'function', function: { name, arguments: given } }));
    }
    return out;
  }

  #take(event) {
    if (event.kind === 'text') this.text += event.text;
    else if (event.kind === 'reasoning') this.reasoning += event.text;
    else if (event.kind === 'call') {
      this.toolCalls.push({ id: event.id, name: event.name, arguments: '', whole: false });
    } else if (event.kind === 'arguments') this.toolCalls[event.call].arguments += event.text;
    else this.toolCalls[event.call].whole = event.whole;
    return event;
  }

  async* #run() {
    const { tools, template, templateName, toolChoice } = this.#options;
    const given = { tools: json(tools), template, templateName };
    const forcing = toolChoice !== undefined && toolChoice !== 'auto';
    const forced = forcing ? this.#model._force({ ...given, function: toolChoice.function }) : null;
    const prompt = this.#model.render(this.#messages, this.#options);
    const ids = Int32Array.from([...prompt.ids, ...(forced?.ids ?? [])]);
    const answer = this.#model._answer({ ...given, prompt: prompt.text, opened: forced?.opened });
    const prepare = async (session) => {
      const has = session.ids;
      let shared = 0;
      while (shared < Math.min(has.length, ids.length - 1) && has[shared] === ids[shared]) shared++;
      await session.setGrammar(null);
      session.rewind(shared);
      await session.feed(ids.subarray(shared));
      if (forced) await session._forced(forced);
    };
    try {
      for await (const step of this.#steps.run(prepare)) {
        for (const event of addon.answerFeed(answer, step.text, step.id)) yield this.#take(event);
      }
      for (const event of addon.answerFinish(answer, this.#steps.reason === 'length')) yield this.#take(event);
    } finally {
      addon.close(answer);
    }
  }

  [Symbol.asyncIterator]() {
    this.#iterator ??= this.#run();
    return this.#iterator;
  }

  async read() {
    for await (const _ of this);
    return this;
  }
}

module.exports = { Model, Session, Generation, Reply, version: addon.version() };
