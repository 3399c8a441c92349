'use strict';
// batch.js - many sessions of one model, computed together.
const addon = require('./jitrun.node');
const { listOf, objectOf, optionsOf, refuse, samplingOf } = require('./options.js');
const { Generation, Steps } = require('./generation.js');
const { Reply } = require('./chat.js');
const { PARSING, Session } = require('./session.js');

class BatchSession extends Session {
  // Whether its tokens are all computed, so that the next one can be chosen.
  _isReady = false;
  // Whether a pass for others made it so, and no step has told of it.
  _isUntold = false;
  // A generation of the batch has opened it, which alone is told of it.
  _isOwned = false;

  constructor(batch, handle) {
    super(batch.model, handle);
    Object.defineProperty(this, 'batch', { value: batch, enumerable: true });
  }

  async submit(prompt, options) {
    const { parseSpecial } = optionsOf(options, PARSING);
    const ids = typeof prompt === 'string' ? null : listOf(prompt, 'the prompt');
    return this._compute((handle) => {
      const first = addon.ids(handle).length === 0;
      this._isReady = false;
      return addon.submit(handle, ids ?? this.model._promptIds(prompt, first, parseSpecial));
    });
  }

  async next() {
    this._isReady = false;
    return super.next();
  }

  close() {
    super.close();
    this.batch._left(this);
  }

  // In turn with all that the batch computes.
  _compute(call) {
    return this.batch._inTurn(() => super._compute(call));
  }

  // Nothing waits for it any more. What it has to compute stays, or goes with it.
  _abort(reason) {
    this.batch._left(this, reason);
  }

  // The pass that computes ends first.
  _idle() {
    return this.batch._inTurn(() => {});
  }

  _step(last, logprobs) {
    return this.batch._token(this, last, logprobs);
  }

  _append(ids) {
    return this.submit(ids);
  }
}

class Batch {
  #handle;
  #request;
  #sessions = new Map(); // weak references by number
  #made = 0;
  #turn = Promise.resolve();
  #waiting = new Map(); // by session, who waits for a token
  #pumping = false;

  constructor(model, handle, request) {
    this.model = model;
    this.#handle = handle;
    this.#request = request;
  }

  async session(options) {
    return this.#open(options, false);
  }

  async #open(options, isOwned) {
    const { sampling: given } = optionsOf(options, { sampling: samplingOf });
    const number = ++this.#made;
    const handle = await this._inTurn(() => addon.batchSession(this.#handle, given, number));
    const session = new BatchSession(this, handle);
    session._number = number;
    session._isOwned = isOwned;
    this.#sessions.set(number, new WeakRef(session));
    return session;
  }

  async step() {
    const untold = this.#untold();
    const ready = untold.length > 0 ? untold : await this.#pass();
    const told = ready.filter((session) => this.#isTold(session));
    for (const session of told) session._isUntold = false;
    return told;
  }

  async pending() {
    return await this.#pending() + this.#untold().length;
  }

  #pending() {
    return this._inTurn(() => addon.pending(this.#handle));
  }

  // The sessions that are ready behind a pass, each once.
  async #pass() {
    const numbers = await this._inTurn(() => addon.step(this.#handle));
    const ready = numbers.map((number) => this.#sessions.get(number)?.deref()).filter((session) => session);
    for (const session of ready) session._isReady = true;
    return ready;
  }

  // Whether steps tell of it: nobody else asks for its next token.
  #isTold(session) {
    return !session._isOwned && !this.#waiting.has(session);
  }

  #untold() {
    const all = [...this.#sessions.values()].map((one) => one.deref());
    return all.filter((session) => session?._isUntold && session._isReady && !session.closed);
  }

  async forget(ids = []) {
    const list = listOf(ids);
    return this._inTurn(() => addon.forget(this.#handle, list));
  }

  async stats() {
    return this._inTurn(() => addon.batchStats(this.#handle));
  }

  generate(prompt, options) {
    const { sampling, parseSpecial, ...others } = objectOf(options);
    const prepare = (session) => session.submit(prompt, { parseSpecial });
    return new Generation(new Steps({ open: () => this.#open({ sampling }, true), prepare, owned: true }, others));
  }

  chat(messages, options) {
    const { sampling, ...others } = objectOf(options);
    return new Reply(this.model, { open: () => this.#open({ sampling }, true), owned: true }, messages, others);
  }

  close() {
    addon.close(this.#handle);
  }

  // One call after the other: the batch and its sessions belong to one at a time.
  async _inTurn(call) {
    const before = this.#turn;
    let done;
    this.#turn = new Promise((resolve) => { done = resolve; });
    await before;
    try {
      return await call();
    } catch (e) {
      throw this.#request.reasonFor(e);
    } finally {
      done();
    }
  }

  // The session's next token, once its tokens are all computed.
  _token(session, last, logprobs) {
    return new Promise((resolve, reject) => {
      if (this.#waiting.has(session)) refuse('the session computes: wait for the promise of the call before');
      this.#waiting.set(session, { last, logprobs, resolve, reject });
      if (!this.#pumping) this.#pump();
    });
  }

  // A session is closed, or whoever waits for it does so no more.
  _left(session, reason) {
    const waits = this.#waiting.get(session);
    this.#waiting.delete(session);
    if (session.closed) this.#sessions.delete(session._number);
    waits?.reject(reason ?? closedError());
  }

  // Computes as long as somebody waits for a token.
  async #pump() {
    this.#pumping = true;
    try {
      while (this.#waiting.size > 0) {
        if (await this.#choose((session) => session._isReady)) {
          await new Promise(setImmediate); // all of them may ask for their next token before the pass
          continue;
        }
        const ready = await this.#pass();
        for (const session of ready) session._isUntold = this.#isTold(session);
        // With nothing to compute, the library says what the sessions lack.
        if (ready.length === 0 && await this.#pending() === 0) await this.#choose(() => true);
      }
    } catch (e) {
      for (const waits of this.#waiting.values()) waits.reject(e);
      this.#waiting.clear();
    } finally {
      this.#pumping = false;
    }
  }

  // Chooses a token of each of these sessions. false: there are none of them.
  async #choose(which) {
    const those = [...this.#waiting].filter(([session]) => which(session));
    for (const [session] of those) this.#waiting.delete(session);
    if (those.length === 0) return false;
    let open = [];
    try {
      const made = await this._inTurn(() => {
        open = those.filter(([session]) => !session.closed);
        for (const [session] of open) session._isReady = false;
        return addon.chooseAll(this.#handle, open.map(([s, { last, logprobs }]) => [s._handle, last, logprobs]));
      });
      open.forEach(([session, { resolve, reject }], i) => {
        try {
          session._rethrow();
          if (made[i].error) reject(made[i].error);
          else resolve(made[i]);
        } catch (e) {
          reject(e);
        }
      });
    } catch (e) {
      for (const [, { reject }] of open) reject(e);
    }
    for (const [session, { reject }] of those) if (session.closed) reject(closedError());
    return true;
  }
}

function closedError() {
  return Object.assign(new Error('the session is closed'), { code: 'JIT_ERROR_ARGUMENT' });
}

module.exports = { Batch, BatchSession };
