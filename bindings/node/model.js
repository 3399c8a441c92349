'use strict';
// model.js - models: what they are, their vocabulary and metadata, and what is opened on them.
const addon = require('./jitrun.node');
const {
  POOLING, constants, json, listOf, named, opened, refuse, sessionOf, text, textOrBytes, tokenOf,
} = require('./options.js');
const { Answer, Reply, parse } = require('./chat.js');
const { Batch } = require('./batch.js');
const { Generation, Steps } = require('./generation.js');
const { Session, answerOf } = require('./session.js');

const BOUNDED = {
  [constants.JIT_BOUNDED_NONE]: 'none', [constants.JIT_BOUNDED_PROMPTS]: 'prompts', [constants.JIT_BOUNDED_ALL]: 'all',
};
const KINDS = {
  [constants.JIT_TOKEN_NORMAL]: 'normal', [constants.JIT_TOKEN_UNKNOWN]: 'unknown',
  [constants.JIT_TOKEN_CONTROL]: 'control', [constants.JIT_TOKEN_USER]: 'user',
  [constants.JIT_TOKEN_UNUSED]: 'unused', [constants.JIT_TOKEN_BYTE]: 'byte',
};

function orNull(id) {
  return id < 0 ? null : id;
}

// What a model's files say of themselves, as a Map that cannot be changed.
class Metadata {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  get size() {
    return addon.metadataCount(this.#handle);
  }

  #find(key) {
    return typeof key === 'string' && !key.includes('\0') ? addon.metadataFind(this.#handle, key) : -1;
  }

  has(key) {
    return this.#find(key) >= 0;
  }

  get(key) {
    return addon.metadata(this.#handle, this.#find(key))?.[1];
  }

  * entries() {
    for (let number = 0; number < this.size; number++) yield addon.metadata(this.#handle, number);
  }

  * keys() {
    for (const [key] of this) yield key;
  }

  * values() {
    for (const [, value] of this) yield value;
  }

  forEach(callback, that) {
    for (const [key, value] of this) callback.call(that, value, key, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

class Model {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  static async open(path, { signal, progress, session, ...options } = {}) {
    if (progress !== undefined && typeof progress !== 'function') {
      refuse(`progress is ${typeof progress}: a function was expected`);
    }
    const file = text(path, 'path'), fields = named(options);
    const wanted = session === undefined ? undefined : sessionOf(session);
    let thrown = null;
    const told = progress && ((kind, done, total) => {
      try {
        return answerOf(progress(done, total), 'progress');
      } catch (error) {
        thrown ??= { error };
        return true;
      }
    });
    let handle;
    try {
      handle = await opened(signal, async (request) => {
        const made = await addon.open(file, fields, wanted, request.handle, told);
        request.end();
        return made;
      });
    } catch (e) {
      throw thrown ? thrown.error : e;
    }
    if (thrown) {
      addon.close(handle);
      throw thrown.error;
    }
    return new Model(handle);
  }

  get info() {
    const info = addon.info(this.#handle);
    const [pooling] = Object.entries(POOLING).find(([, kind]) => kind === info.pooling) ?? ['none'];
    return { ...info, pooling: pooling === 'none' ? null : pooling, bounded: BOUNDED[info.bounded] };
  }

  get samplingDefaults() {
    return addon.defaults(this.#handle);
  }

  get metadata() {
    this.info; // an error where the model is closed
    return new Metadata(this.#handle);
  }

  checkWritten() {
    addon.written(this.#handle);
  }

  checkAlive() {
    addon.alive(this.#handle);
  }

  tokenize(string, { addSpecial = true, parseSpecial = false } = {}) {
    return addon.tokenize(this.#handle, text(string, 'text'), Boolean(addSpecial), Boolean(parseSpecial));
  }

  detokenize(ids) {
    return addon.detokenize(this.#handle, listOf(ids));
  }

  isEnd(id) {
    return addon.isEnd(this.#handle, tokenOf(id));
  }

  token(id) {
    const token = addon.token(this.#handle, tokenOf(id));
    return { ...token, kind: KINDS[token.kind] ?? 'unused' };
  }

  * tokens() {
    const { vocab } = this.info;
    for (let id = 0; id < vocab; id++) yield this.token(id);
  }

  findToken(spelling) {
    return orNull(addon.findToken(this.#handle, textOrBytes(spelling, 'the spelling')));
  }

  get roles() {
    return Object.fromEntries(Object.entries(addon.roles(this.#handle)).map(([name, id]) => [name, orNull(id)]));
  }

  get stopTexts() {
    return addon.stopTexts(this.#handle);
  }

  async session({ signal, ...options } = {}) {
    const given = sessionOf(options);
    return opened(signal, async (request) => (
      new Session(this, await addon.session(this.#handle, given, request.handle), request)));
  }

  async batch({ signal, ...options } = {}) {
    const fields = named(options);
    return opened(signal, async (request) => (
      new Batch(this, await addon.batch(this.#handle, fields, request.handle), request)));
  }

  generate(prompt, { session = {}, sampling, parseSpecial, ...options } = {}) {
    const open = (signal) => this.session({ ...session, sampling, signal });
    const prepare = (made) => made.feed(prompt, { parseSpecial });
    return new Generation(new Steps({ open, prepare, owned: true }, options));
  }

  chat(messages, { session = {}, sampling, ...options } = {}) {
    const open = (signal) => this.session({ ...session, sampling, signal });
    return new Reply(this, { open, owned: true }, messages, options);
  }

  // Calls it with a session of its own, which has room for these tokens.
  async #alone(ids, call) {
    const made = await this.session({ context: Math.max(ids.length, 1) });
    try {
      return await call(made);
    } finally {
      made.close();
    }
  }

  async embed(string, options) {
    const ids = this.tokenize(string);
    return this.#alone(ids, (made) => made.embed(ids, options));
  }

  async score(string) {
    const ids = this.tokenize(string);
    return this.#alone(ids, (made) => made.score(ids));
  }

  render(messages, { tools, variables, template, templateName, now, generationPrompt = true } = {}) {
    return addon.render(this.#handle, {
      messages: json(messages), tools: json(tools), variables: json(variables), template, templateName,
      now: now instanceof Date ? Math.floor(now / 1000) : now, noGenerationPrompt: generationPrompt ? 0 : 1,
    });
  }

  forceCall({ tools, function: name, template, templateName, oneCall = false, prompt }) {
    return addon.force(this.#handle, {
      tools: json(tools), function: name, template, templateName, oneCall: Boolean(oneCall), prompt,
    });
  }

  reader(options) {
    return new Answer(this.#handle, options);
  }

  parse(answer, options) {
    return parse(this.#handle, answer, options);
  }

  close() {
    addon.close(this.#handle);
  }

  // The tokens of a prompt: before the first text what the model wants there, and nothing behind it.
  _promptIds(string, first, parseSpecial) {
    const plain = this.tokenize(string, { addSpecial: false, parseSpecial });
    if (!first) return plain;
    const whole = this.tokenize(string, { addSpecial: true, parseSpecial });
    for (const at of [0, 1]) {
      const part = whole.subarray(at, at + plain.length);
      if (part.length === plain.length && part.every((id, i) => id === plain[i])) {
        return whole.subarray(0, at + part.length);
      }
    }
    return whole;
  }
}

module.exports = { Metadata, Model };
