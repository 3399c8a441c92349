'use strict';
// session.js - one conversation: what is fed, what is computed, what is chosen, and functions that hear of it.
const fs = require('node:fs/promises');
const os = require('node:os');
const path = require('node:path');
const addon = require('./jitrun.node');
const {
  as, beforeOf, grammarOf, likeliest, listOf, objectOf, opened, optionsOf, poolingOf, refuse, samplingOf, sessionOf,
  shown, text, textOrBytes, texts, tokenOf,
} = require('./options.js');
const { Generation, Steps } = require('./generation.js');
const { Reply } = require('./chat.js');

// Kinds of questions of the addon, as in hooks.c.
const PROMPT = 1;
const PARSING = { parseSpecial: as.flag(false) };
const EMBEDDING = { pooling: (value) => poolingOf(value === undefined ? 'last' : value), normalise: as.flag(true) };

// A file that only this user can read, which is gone behind the call.
async function withFile(call) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'jitrun-'));
  try {
    return await call(path.join(folder, 'session'));
  } finally {
    await fs.rm(folder, { recursive: true, force: true });
  }
}

class Session {
  #handle;
  #request;
  #closed = false;
  #thrown = null;
  #logitsFn = null;
  #promptFn = null;

  constructor(model, handle, request) {
    this.model = model;
    this.#handle = handle;
    this.#request = request;
  }

  get ids() {
    return addon.ids(this.#handle);
  }

  get length() {
    return this.ids.length;
  }

  async feed(prompt, options) {
    const { parseSpecial } = optionsOf(options, PARSING);
    if (typeof prompt === 'string') {
      await this._compute((handle) => addon.feedText(handle, prompt, parseSpecial));
    } else {
      const ids = listOf(prompt, 'the prompt');
      await this._compute((handle) => addon.feed(handle, ids));
    }
  }

  async feedLogits(ids) {
    const list = listOf(ids);
    return this._compute((handle) => addon.feedLogits(handle, list));
  }

  async score(ids) {
    const list = listOf(ids);
    return this._compute((handle) => addon.score(handle, list));
  }

  async embed(ids, options) {
    const { pooling, normalise } = optionsOf(options, EMBEDDING);
    const list = listOf(ids);
    return this._compute((handle) => addon.embed(handle, list, pooling, normalise));
  }

  async logits() {
    return this._compute((handle) => addon.logits(handle));
  }

  async next() {
    return this._compute((handle) => addon.next(handle));
  }

  text(id) {
    if (tokenOf(id) < 0) refuse(`the token is ${id}: 0 or more was expected`);
    return addon.text(this.#handle, id, false);
  }

  textBytes(id) {
    if (tokenOf(id) < 0) refuse(`the token is ${id}: 0 or more was expected`);
    return addon.text(this.#handle, id, true);
  }

  flush() {
    return addon.text(this.#handle, -1, false);
  }

  logprobs(n = 0) {
    return addon.logprobs(this.#handle, likeliest(n, 'the number of log probabilities'), false);
  }

  sampledLogprobs(n = 0) {
    return addon.logprobs(this.#handle, likeliest(n, 'the number of log probabilities'), true);
  }

  async setGrammar(grammar, behindReasoning) {
    const [kind, rules] = grammarOf(grammar);
    const before = beforeOf(grammar, behindReasoning);
    await this._compute((handle) => addon.grammar(handle, rules, kind, before));
  }

  get grammarComplete() {
    const said = addon.grammarComplete(this.#handle);
    return said < 0 ? null : said === 1;
  }

  setSampling(sampling) {
    addon.sampling(this.#handle, samplingOf(sampling));
  }

  setStop(stop) {
    addon.stop(this.#handle, texts(stop, 'a stop text'));
  }

  get stopped() {
    const number = addon.stopped(this.#handle);
    return number < 0 ? null : number;
  }

  setLogitsFn(fn) {
    this.#listen(fn, 'the function for logits');
    addon.logitsFn(this.#handle, Boolean(fn));
    this.#logitsFn = fn ?? null;
  }

  setPromptFn(fn) {
    this.#listen(fn, 'the function for prompts');
    addon.promptFn(this.#handle, Boolean(fn));
    this.#promptFn = fn ?? null;
  }

  rewind(n) {
    if (!Number.isInteger(n) || n < 0 || n > this.length) {
      refuse(`the position is ${shown(n)}: 0 to ${this.length} was expected`);
    }
    addon.rewind(this.#handle, n);
  }

  async save(name) {
    if (name === undefined) {
      return withFile(async (file) => {
        await this.save(file);
        return new Uint8Array(await fs.readFile(file));
      });
    }
    const file = text(name, 'path');
    return this._compute((handle) => addon.save(handle, file));
  }

  async restore(saved) {
    if (saved instanceof Uint8Array) {
      return withFile(async (file) => {
        await fs.writeFile(file, saved);
        await this.restore(file);
      });
    }
    const file = text(textOrBytes(saved, 'what was saved'), 'path');
    return this._compute((handle) => addon.restore(handle, file));
  }

  async fork(options) {
    const { signal, ...others } = objectOf(options), given = sessionOf(others);
    return opened(signal, async (request) => {
      const made = await this._compute((handle) => addon.fork(handle, given, request.handle));
      return new Session(this.model, made, request);
    });
  }

  stats() {
    return addon.stats(this.#handle);
  }

  cardStats() {
    return addon.cardStats(this.#handle);
  }

  async report(options) {
    const { json } = optionsOf(options, { json: as.flag(false) });
    return this._compute((handle) => addon.report(handle, json));
  }

  async trace(name) {
    const file = text(name, 'path');
    await this._compute((handle) => addon.trace(handle, file));
  }

  generate(options) {
    return new Generation(new Steps({ open: async () => this }, options));
  }

  chat(messages, options) {
    return new Reply(this.model, { open: async () => this }, messages, options);
  }

  cancel() {
    addon.cancel(this.#handle);
  }

  close() {
    this.#closed = true;
    addon.close(this.#handle);
  }

  get closed() {
    return this.#closed;
  }

  get _handle() {
    return this.#handle;
  }

  // Calls the addon, and has what a function of the program threw meanwhile come out of it.
  async _compute(call) {
    let value;
    try {
      this._rethrow();
      value = await call(this.#handle);
    } catch (e) {
      this._rethrow();
      throw this.#request?.reasonFor(e) ?? e;
    }
    this._rethrow();
    return value;
  }

  _rethrow() {
    const thrown = this.#thrown;
    this.#thrown = null;
    if (thrown) throw thrown.error;
  }

  // Ends the call that computes, if there is one.
  _abort() {
    addon.abort(this.#handle);
  }

  // Waits until it can be used again.
  async _idle() {}

  // Chooses a token: {id, text, reason, logprobs}.
  async _step(last, logprobs) {
    const [made] = await this._compute((handle) => addon.choose(handle, [[handle, last, logprobs]]));
    if (made.error) throw this.#request?.reasonFor(made.error) ?? made.error;
    return made;
  }

  // Makes it stand behind these tokens, of which it keeps what it has.
  async _begin(ids) {
    await this.setGrammar(null);
    const rest = await this._compute((handle) => {
      const has = addon.ids(handle);
      let shared = 0;
      while (shared < Math.min(has.length, ids.length - 1) && has[shared] === ids[shared]) shared++;
      addon.rewind(handle, shared);
      return ids.subarray(shared);
    });
    await this._append(rest);
  }

  _append(ids) {
    return this.feed(ids);
  }

  // The addon has one function of a session, which leads to those of the program as long as the session is there.
  #listen(fn, what) {
    if (fn !== null && fn !== undefined && typeof fn !== 'function') {
      refuse(`${what} is ${shown(fn)}: a function or null was expected`);
    }
    const weak = new WeakRef(this);
    addon.hook(this.#handle, (kind, a, b) => weak.deref()?.#asked(kind, a, b) ?? true);
  }

  // true: give up
  #asked(kind, a, b) {
    try {
      if (kind === PROMPT) return answerOf(this.#promptFn(a, b), 'the function for prompts');
      const n = a.length;
      const answer = answerOf(this.#logitsFn(a, b), 'the function for logits');
      if (a.length !== n) refuse('the function for logits gave their memory away');
      return answer;
    } catch (error) {
      this.#thrown ??= { error };
      return true;
    }
  }
}

// What a function said; a promise comes too late.
function answerOf(said, what) {
  if (typeof said?.then === 'function') {
    Promise.resolve(said).catch(() => {});
    refuse(`${what} gave a promise: an answer at once was expected`);
  }
  return said === true;
}

module.exports = { EMBEDDING, PARSING, Session, answerOf };
