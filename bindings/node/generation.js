'use strict';
// generation.js - tokens and texts, one after the other.
const { as, grammarOf, likeliest, limit, optionsOf, texts } = require('./options.js');

const REASONS = [null, 'stop', 'length'];

// What Generation and Reply have in common. open: gives the session; prepare: what is done before the first token;
// owned: the session is closed at the end. before: what the grammar is told of a conversation.
class Steps {
  constructor({ open, prepare, owned = false }, options) {
    const checks = {
      maxTokens: limit,
      stop: (value) => (value === undefined ? undefined : texts(value, 'a stop text')),
      grammar: as.any,
      signal: as.signal,
      logprobs: (value) => (value === undefined || value === null ? -1 : likeliest(value)),
    };
    const { maxTokens: most, stop, grammar, signal, logprobs: kept } = optionsOf(options, checks);
    grammarOf(grammar); // an error at once, and not behind the prompt
    Object.assign(this, { open, prepare, owned, stop, grammar, signal, kept, most });
    Object.assign(this, { ids: [], logprobs: [], reason: null, before: undefined });
  }

  async* run(prepare = this.prepare) {
    const { signal } = this;
    signal?.throwIfAborted();
    const session = await this.open(signal);
    const abort = () => session._abort(signal.reason);
    signal?.addEventListener('abort', abort);
    try {
      signal?.throwIfAborted();
      if (this.stop !== undefined) await session._compute(() => session.setStop(this.stop));
      if (prepare) await prepare(session);
      if (this.grammar !== undefined) await session.setGrammar(this.grammar, this.before);
      if (this.most === 0) this.reason = 'length';
      while (this.reason === null) {
        signal?.throwIfAborted();
        const step = await session._step(this.ids.length + 1 >= this.most, this.kept);
        if (step.id >= 0) this.ids.push(step.id);
        if (step.logprobs) this.logprobs.push({ id: step.id, ...step.logprobs });
        this.reason = REASONS[step.reason] ?? (this.ids.length >= this.most ? 'length' : null);
        yield step;
      }
    } catch (e) {
      if (signal?.aborted) throw signal.reason;
      throw e;
    } finally {
      signal?.removeEventListener('abort', abort);
      if (this.owned) session.close();
      else await session._idle();
    }
  }
}

class Generation {
  #steps;
  #iterator;
  #text = '';

  constructor(steps) {
    this.#steps = steps;
  }

  get ids() {
    return Int32Array.from(this.#steps.ids);
  }

  get logprobs() {
    return this.#steps.logprobs.slice();
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

module.exports = { Generation, Steps };
