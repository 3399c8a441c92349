'use strict';
// options.js - what programs give, checked and in the form that the addon takes.
const addon = require('./jitrun.node');

const { constants } = addon;
const POOLING = {
  last: constants.JIT_POOL_LAST, mean: constants.JIT_POOL_MEAN, none: constants.JIT_POOL_NONE,
  rank: constants.JIT_POOL_RANK,
  cls: constants.JIT_POOL_CLS,
};
const GRAMMARS = {
  schema: constants.JIT_GRAMMAR_JSON_SCHEMA,
  openSchema: constants.JIT_GRAMMAR_JSON_SCHEMA | constants.JIT_GRAMMAR_ADDITIONAL,
  regex: constants.JIT_GRAMMAR_REGEX,
  gbnf: constants.JIT_GRAMMAR_GBNF,
  lark: constants.JIT_GRAMMAR_LARK,
};

function refuse(sentence) {
  throw Object.assign(new TypeError(sentence), { code: 'JIT_ERROR_ARGUMENT' });
}

function kindOf(value) {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}

// A value as a sentence names it.
function shown(value) {
  if (typeof value === 'string') return value.length > 40 ? 'a string' : JSON.stringify(value);
  return ['number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : kindOf(value);
}

function oneOf(names) {
  return names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : names[0];
}

// An object of options, which may be missing.
function objectOf(options, what = 'the options') {
  if (options === undefined) return {};
  if (options === null || typeof options !== 'object' || Symbol.iterator in options) {
    refuse(`${what} ${what.endsWith('s') ? 'are' : 'is'} ${shown(options)}: an object was expected`);
  }
  return options;
}

// The members of an object of options, each by its check: {name: check(value, name)}. Others are refused.
function optionsOf(options, checks, what = 'the options') {
  const given = { ...objectOf(options, what) }, made = {};
  for (const [name, check] of Object.entries(checks)) {
    made[name] = check(given[name], name);
    delete given[name];
  }
  const unknown = Object.keys(given).find((name) => given[name] !== undefined);
  if (unknown !== undefined) refuse(`${what} have ${shown(unknown)}: ${oneOf(Object.keys(checks))} was expected`);
  return made;
}

// Checks for optionsOf().
const as = {
  any: (value) => value,
  flag: (usual) => (value, name) => {
    if (value === undefined || typeof value === 'boolean') return value ?? usual;
    return refuse(`${name} is ${shown(value)}: true or false was expected`);
  },
  text: (value, name) => (value === undefined || value === null ? undefined : text(value, name)),
  object: (value, name) => objectOf(value, name),
  json: (value, name) => json(value, name),
  signal: (value, name) => signalOf(value, name),
};

// {topK: 40} to ['top_k', '40']: the library knows the names and says what is wrong.
function named(options, what) {
  const list = [];
  for (const [name, value] of Object.entries(objectOf(options ?? undefined, what))) {
    if (value === undefined || value === null) continue;
    if (!['string', 'number', 'boolean', 'bigint'].includes(typeof value)) {
      refuse(`the option ${name} is ${kindOf(value)}: a string, number or boolean was expected`);
    }
    const field = text(name, 'the name of an option').replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
    list.push(field, text(String(value), `the option ${name}`));
  }
  return list;
}

// A value as JSON text; a string is such a text.
function json(value, what = 'the value') {
  if (value === undefined || value === null) return value;
  if (typeof value === 'string') return text(value, what);
  let made;
  try {
    made = JSON.stringify(value);
  } catch (e) {
    if (!(e instanceof TypeError)) throw e;
    refuse(`${what} cannot be written as JSON: ${e.message.split('\n')[0]}`);
  }
  if (made === undefined) refuse(`${what} is ${kindOf(value)}: JSON, or what can be written so, was expected`);
  return made;
}

function limit(most) {
  if (most === undefined || most === null) return Infinity;
  if (!(Number.isInteger(most) || most === Infinity) || most < 0) {
    refuse(`maxTokens is ${shown(most)}: an integer of 0 or more was expected`);
  }
  return most;
}

function likeliest(n, what = 'logprobs') {
  if (!Number.isInteger(n) || n < 0 || n > constants.JIT_LOGPROBS_MOST) {
    refuse(`${what} is ${shown(n)}: 0 to ${constants.JIT_LOGPROBS_MOST} was expected`);
  }
  return n;
}

function tokenOf(id) {
  if (!Number.isInteger(id) || id < -(2 ** 31) || id >= 2 ** 31) {
    refuse(`a token is ${shown(id)}: an integer was expected`);
  }
  return id;
}

// The items of an iterable, each checked when it comes, so that the first wrong one ends it.
function items(list, check, sentence) {
  if (typeof list === 'string' || typeof list?.[Symbol.iterator] !== 'function') refuse(sentence());
  const made = [];
  // Of memory that was given to another thread, an array has no items, and its iterator throws.
  for (const item of ArrayBuffer.isView(list) ? Array.prototype.slice.call(list) : list) made.push(check(item));
  return made;
}

function listOf(ids, what = 'the tokens') {
  if (ids instanceof Int32Array) return ids;
  return Int32Array.from(items(ids, tokenOf, () => `${what} are ${shown(ids)}: a list of integers was expected`));
}

function text(value, what) {
  if (typeof value !== 'string') refuse(`${what} is ${shown(value)}: a string was expected`);
  if (value.includes('\0')) refuse(`${what} has a NUL character: a string without was expected`);
  return value;
}

// A text for functions that take any bytes, zeros among them.
function anyText(value, what) {
  if (typeof value !== 'string') refuse(`${what} is ${shown(value)}: a string was expected`);
  return value;
}

function textOrBytes(value, what) {
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  return refuse(`${what} is ${shown(value)}: a string or a Uint8Array was expected`);
}

function texts(list, what) {
  if (list === undefined || list === null) return [];
  if (typeof list === 'string') return [text(list, what)];
  const sentence = () => `${what} is ${shown(list)}: a string, or a list of strings, was expected`;
  return items(list, (one) => text(one, what), sentence);
}

function signalOf(signal, name = 'signal') {
  if (signal === undefined || signal === null) return undefined;
  if (typeof signal !== 'object' || typeof signal.throwIfAborted !== 'function' ||
      typeof signal.addEventListener !== 'function') {
    refuse(`${name} is ${shown(signal)}: an AbortSignal was expected`);
  }
  return signal;
}

// Seconds since 1970 of a date, or a number of them.
function secondsOf(now, name = 'now') {
  if (now === undefined || now === null) return undefined;
  const seconds = now instanceof Date ? Math.floor(now / 1000) : now;
  if (typeof seconds !== 'number' || !Number.isSafeInteger(Math.floor(seconds))) {
    refuse(`${name} is ${now instanceof Date ? 'no time' : shown(now)}: a Date, or seconds since 1970, was expected`);
  }
  return Math.floor(seconds);
}

function biasPair(pair) {
  if (!Array.isArray(pair) || pair.length !== 2) {
    refuse(`logitBias has ${shown(pair)}: pairs of a token and a number were expected`);
  }
  const [id, number] = pair;
  if (typeof number !== 'number') {
    refuse(`logitBias of the token ${shown(id)} is ${shown(number)}: a number was expected`);
  }
  return [tokenOf(typeof id === 'string' && id.trim() !== '' ? Number(id) : id), number];
}

// [[token, number], ...] of an object or of pairs.
function biasOf(bias) {
  if (bias === undefined || bias === null) return [];
  const sentence = () => `logitBias is ${shown(bias)}: an object, or pairs of a token and a number, was expected`;
  if (typeof bias !== 'object') refuse(sentence());
  return items(Symbol.iterator in bias ? bias : Object.entries(bias), biasPair, sentence);
}

function samplingOf(sampling) {
  const given = objectOf(sampling, 'sampling');
  const { logitBias, logit_bias: bias, dryBreakers, dry_breakers: breakers, ...fields } = given;
  const pairs = biasOf(logitBias ?? bias), list = dryBreakers ?? breakers;
  return {
    fields: named({ seed: Math.floor(Math.random() * 2 ** 32), ...fields }, 'sampling'),
    biasIds: Int32Array.from(pairs, ([id]) => id),
    bias: Float32Array.from(pairs, ([, number]) => number),
    breakers: list === undefined || list === null ? undefined : texts(list, 'a text of dryBreakers'),
  };
}

function sessionOf(options, what = 'the options') {
  const { sampling, card, ...fields } = objectOf(options, what);
  return { fields: named(fields), card: named(card, 'card'), sampling: samplingOf(sampling) };
}

function forcedOf(forced) {
  const { kind, grammar, prompt } = objectOf(forced ?? null, 'forced');
  if (!Number.isInteger(kind) || typeof grammar !== 'string' || typeof prompt !== 'string') {
    refuse('forced was expected to be what Model.forceCall gave');
  }
  return [kind, grammar];
}

// [kind, text] of what an answer keeps to; null ends it.
function grammarOf(grammar) {
  if (grammar === null || grammar === undefined) return [constants.JIT_GRAMMAR_NONE, ''];
  const kinds = Object.keys(objectOf(grammar, 'a grammar')), [kind] = kinds;
  if (kinds.length !== 1 || !(kind === 'forced' || Object.hasOwn(GRAMMARS, kind))) {
    refuse(`a grammar has the members ${kinds.join(', ') || '(none)'}: one of schema, openSchema, regex, gbnf, ` +
           'lark or forced was expected');
  }
  if (kind === 'forced') return forcedOf(grammar.forced);
  const isSchema = kind === 'schema' || kind === 'openSchema';
  return [GRAMMARS[kind], isSchema ? json(grammar[kind], kind) ?? 'null' : anyText(grammar[kind], kind)];
}

// What a grammar is told of the conversation, where the answer may reason before the grammar's part of it.
function beforeOf(grammar, before) {
  const forced = grammar?.forced;
  if (forced?.behindReasoning && !before) {
    refuse('the forced call is opened behind the reasoning: what behindReasoning has was expected beside it');
  }
  if (before === undefined || before === null) return undefined;
  const checks = { prompt: anyText, tools: as.json, template: as.text, templateName: as.text };
  const { prompt, ...others } = optionsOf(before, checks, 'behindReasoning');
  return forced && !forced.behindReasoning ? undefined : { prompt, ...others, opening: forced?.prompt };
}

function poolingOf(pooling) {
  if (typeof pooling !== 'string' || !Object.hasOwn(POOLING, pooling)) {
    refuse(`pooling is ${shown(pooling)}: one of ${Object.keys(POOLING).join(', ')} was expected`);
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
  const request = new Request(signalOf(signal));
  try {
    return await open(request);
  } catch (e) {
    throw request.reasonFor(e);
  }
}

module.exports = {
  POOLING, anyText, as, beforeOf, constants, grammarOf, json, kindOf, likeliest, limit, listOf, named, objectOf, opened,
  optionsOf, poolingOf, refuse, samplingOf, secondsOf, sessionOf, shown, signalOf, text, textOrBytes, texts, tokenOf,
};
