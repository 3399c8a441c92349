'use strict';
// options.js - what programs give, checked and in the form that the addon takes.
const addon = require('./jitrun.node');

const { constants } = addon;
const POOLING = {
  last: constants.JIT_POOL_LAST, mean: constants.JIT_POOL_MEAN, none: constants.JIT_POOL_NONE,
  rank: constants.JIT_POOL_RANK,
};
const GRAMMARS = {
  schema: constants.JIT_GRAMMAR_JSON_SCHEMA,
  openSchema: constants.JIT_GRAMMAR_JSON_SCHEMA | constants.JIT_GRAMMAR_ADDITIONAL,
  regex: constants.JIT_GRAMMAR_REGEX,
  gbnf: constants.JIT_GRAMMAR_GBNF,
};

function refuse(sentence) {
  throw Object.assign(new TypeError(sentence), { code: 'JIT_ERROR_ARGUMENT' });
}

function kindOf(value) {
  return value === null ? 'null' : typeof value;
}

// {topK: 40} to ['top_k', '40']: the library knows the names and says what is wrong.
function named(options) {
  if (options !== undefined && options !== null && typeof options !== 'object') {
    refuse(`the options are ${typeof options}: an object was expected`);
  }
  const list = [];
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || value === null) continue;
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

function likeliest(n, what = 'logprobs') {
  if (!Number.isInteger(n) || n < 0 || n > constants.JIT_LOGPROBS_MOST) {
    refuse(`${what} is ${n}: 0 to ${constants.JIT_LOGPROBS_MOST} was expected`);
  }
  return n;
}

function tokenOf(id) {
  if (!Number.isInteger(id) || id < -(2 ** 31) || id >= 2 ** 31) refuse(`a token is ${id}: an integer was expected`);
  return id;
}

function listOf(ids, what = 'the tokens') {
  if (ids instanceof Int32Array) return ids;
  if (typeof ids === 'string' || typeof ids?.[Symbol.iterator] !== 'function') {
    refuse(`${what} are ${kindOf(ids)}: a list of integers was expected`);
  }
  return Int32Array.from(Array.from(ids, tokenOf));
}

function text(value, what) {
  if (typeof value !== 'string') refuse(`${what} is ${kindOf(value)}: a string was expected`);
  return value;
}

function textOrBytes(value, what) {
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  return refuse(`${what} is ${kindOf(value)}: a string or a Uint8Array was expected`);
}

function texts(list, what) {
  const all = typeof list === 'string' ? [list] : Array.from(list ?? []);
  return all.map((one) => text(one, what));
}

// [[token, number], ...] of an object or of pairs.
function biasOf(bias) {
  const pairs = typeof bias[Symbol.iterator] === 'function' ? Array.from(bias) : Object.entries(bias);
  return pairs.map(([id, number]) => {
    if (typeof number !== 'number') refuse(`logitBias of the token ${id} is ${kindOf(number)}: a number was expected`);
    return [tokenOf(Number(id)), number];
  });
}

function samplingOf(sampling) {
  if (sampling !== undefined && (sampling === null || typeof sampling !== 'object')) {
    refuse(`sampling is ${kindOf(sampling)}: an object was expected`);
  }
  const { logitBias, logit_bias: bias, dryBreakers, dry_breakers: breakers, ...fields } = sampling ?? {};
  const pairs = biasOf(logitBias ?? bias ?? []), given = dryBreakers ?? breakers;
  return {
    fields: named({ seed: Math.floor(Math.random() * 2 ** 32), ...fields }),
    biasIds: Int32Array.from(pairs, ([id]) => id),
    bias: Float32Array.from(pairs, ([, number]) => number),
    breakers: given === undefined || given === null ? undefined : texts(given, 'a text of dryBreakers'),
  };
}

function sessionOf({ sampling, card, ...fields } = {}) {
  return { fields: named(fields), card: named(card), sampling: samplingOf(sampling) };
}

// [kind, text] of what an answer keeps to; null ends it.
function grammarOf(grammar) {
  if (grammar === null || grammar === undefined) return [constants.JIT_GRAMMAR_NONE, ''];
  const kinds = Object.keys(grammar), [kind] = kinds;
  if (kinds.length === 1 && kind === 'forced') return [grammar.forced.kind, grammar.forced.grammar];
  if (kinds.length !== 1 || !Object.hasOwn(GRAMMARS, kind)) {
    refuse(`a grammar has the members ${kinds.join(', ') || '(none)'}: one of schema, openSchema, regex, gbnf or ` +
           'forced was expected');
  }
  return [GRAMMARS[kind], json(grammar[kind]) ?? ''];
}

// What a grammar is told of the conversation, where the answer may reason before the grammar's part of it.
function beforeOf(grammar, before) {
  const forced = grammar?.forced;
  if (forced?.behindReasoning && !before) {
    refuse('the forced call is opened behind the reasoning: what behindReasoning has was expected beside it');
  }
  if (!before || (forced && !forced.behindReasoning)) return undefined;
  const { prompt, tools, template, templateName, ...others } = before;
  const [unknown] = Object.keys(others);
  if (unknown) {
    refuse(`there is no ${unknown} in behindReasoning: prompt, tools, template or templateName was expected`);
  }
  return { prompt: text(prompt, 'the prompt'), tools: json(tools), template, templateName, opening: forced?.prompt };
}

function poolingOf(pooling) {
  if (!Object.hasOwn(POOLING, pooling)) {
    refuse(`pooling is ${pooling}: one of ${Object.keys(POOLING).join(', ')} was expected`);
  }
  return POOLING[pooling];
}

const listeners = new FinalizationRegistry(({ signal, listener }) => signal.removeEventListener('abort', listener));

// What a signal asks for, of all that is opened with it; it is asked as long as somebody holds this.
class Request {
  constructor(signal) {
    signal?.throwIfAborted();
    this.handle = addon.request();
    this.signal = signal;
    if (signal) {
      const weak = new WeakRef(this);
      const listener = () => {
        const request = weak.deref();
        if (request) addon.cancel(request.handle);
      };
      signal.addEventListener('abort', listener, { once: true });
      listeners.register(this, { signal, listener }, this);
      this.listener = listener;
    }
  }

  // The signal asks for nothing any more.
  end() {
    this.signal?.removeEventListener('abort', this.listener);
    listeners.unregister(this);
  }

  get asked() {
    return addon.cancelled(this.handle);
  }

  // What an error is for the program: the signal's reason, where that was what ended the call.
  reasonFor(e) {
    return e?.code === 'JIT_ERROR_CANCELLED' && this.signal?.aborted ? this.signal.reason : e;
  }
}

// Opens something that a signal ends.
async function opened(signal, open) {
  const request = new Request(signal);
  try {
    return await open(request);
  } catch (e) {
    throw request.reasonFor(e);
  }
}

module.exports = {
  beforeOf, constants, refuse, kindOf, named, json, limit, likeliest, tokenOf, listOf, text, textOrBytes, texts,
  samplingOf, sessionOf, grammarOf, poolingOf, POOLING, opened,
};
