'use strict';
// model.js - models: what they are, their vocabulary and metadata, and what is opened on them.
const addon = require('./jitrun.node');
const {
  POOLING, anyText, as, constants, listOf, named, objectOf, opened, optionsOf, refuse, secondsOf, sessionOf, shown,
  text, textOrBytes, tokenOf,
} = require('./options.js');
const { Answer, Reply, parse } = require('./chat.js');
const { Batch } = require('./batch.js');
const { Generation, Steps } = require('./generation.js');
const { EMBEDDING, Session, answerOf } = require('./session.js');

const BOUNDED = {
  [constants.JIT_BOUNDED_NONE]: 'none', [constants.JIT_BOUNDED_PROMPTS]: 'prompts', [constants.JIT_BOUNDED_ALL]: 'all',
};
const KINDS = {
  [constants.JIT_TOKEN_NORMAL]: 'normal', [constants.JIT_TOKEN_UNKNOWN]: 'unknown',
  [constants.JIT_TOKEN_CONTROL]: 'control', [constants.JIT_TOKEN_USER]: 'user',
  [constants.JIT_TOKEN_UNUSED]: 'unused', [constants.JIT_TOKEN_BYTE]: 'byte',
};

const TOKENIZING = { addSpecial: as.flag(true), parseSpecial: as.flag(false) };
const RENDERING = {
  tools: as.json, variables: as.json, template: as.text, templateName: as.text, now: secondsOf,
  generationPrompt: as.flag(true),
};
const FORCING = {
  tools: as.json, template: as.text, templateName: as.text, function: as.text, oneCall: as.flag(false),
  prompt: (value, name) => (value === undefined || value === null ? undefined : anyText(value, name)),
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

  static async open(path, options) {
    const { signal, progress, session, ...others } = objectOf(options);
    if (progress !== undefined && typeof progress !== 'function') {
      refuse(`progress is ${shown(progress)}: a function was expected`);
    }
    const file = text(path, 'path'), fields = named(others);
    const wanted = session === undefined ? undefined : sessionOf(session, 'session');
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

  tokenize(string, options) {
    const { addSpecial, parseSpecial } = optionsOf(options, TOKENIZING);
    return addon.tokenize(this.#handle, anyText(string, 'the text'), addSpecial, parseSpecial);
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

  async session(options) {
    const { signal, ...others } = objectOf(options), given = sessionOf(others);
    return opened(signal, async (request) => (
      new Session(this, await addon.session(this.#handle, given, request.handle), request)));
  }

  async batch(options) {
    const { signal, ...others } = objectOf(options), fields = named(others);
    return opened(signal, async (request) => (
      new Batch(this, await addon.batch(this.#handle, fields, request.handle), request)));
  }

  generate(prompt, options) {
    const { session, sampling, parseSpecial, ...others } = objectOf(options);
    const open = (signal) => this.session({ ...objectOf(session, 'session'), sampling, signal });
    const prepare = (made) => made.feed(prompt, { parseSpecial });
    return new Generation(new Steps({ open, prepare, owned: true }, others));
  }

  chat(messages, options) {
    const { session, sampling, ...others } = objectOf(options);
    const open = (signal) => this.session({ ...objectOf(session, 'session'), sampling, signal });
    return new Reply(this, { open, owned: true }, messages, others);
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
    optionsOf(options, EMBEDDING); // an error before anything is opened
    const ids = this.tokenize(string);
    return this.#alone(ids, (made) => made.embed(ids, options));
  }

  async score(string) {
    const ids = this.tokenize(string);
    return this.#alone(ids, (made) => made.score(ids));
  }

  render(messages, options) {
    const { generationPrompt, ...others } = optionsOf(options, RENDERING);
    const given = { ...others, messages: as.json(messages ?? null, 'messages'), noGenerationPrompt: !generationPrompt };
    return addon.render(this.#handle, given);
  }

  forceCall(options) {
    return addon.force(this.#handle, optionsOf(options, FORCING));
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

  // The tokens of a prompt, as a session that is fed the text has them.
  _promptIds(string, first, parseSpecial) {
    return this.tokenize(string, { addSpecial: first, parseSpecial });
  }
}

module.exports = { Metadata, Model };
