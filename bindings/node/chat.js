'use strict';
// chat.js - conversations: answers as text, reasoning and calls of tools.
const addon = require('./jitrun.node');
const { anyText, as, objectOf, optionsOf, refuse, secondsOf, shown, textOrBytes, tokenOf } = require('./options.js');
const { Steps } = require('./generation.js');

// What reading an answer takes of a conversation, as the addon has it.
const READING = {
  tools: as.json, template: as.text, templateName: as.text, prompt: anyTextOrNone, opened: as.text, callId: as.text,
  oneCall: as.flag(false), keepReasoning: as.flag(false),
};

function anyTextOrNone(value, name) {
  return value === undefined || value === null ? undefined : anyText(value, name);
}

function parse(handle, answer, options) {
  const given = optionsOf(options, { ...READING, cut: as.flag(false) });
  return JSON.parse(addon.parse(handle, given, textOrBytes(answer, 'the answer')));
}

// What Model.chat() and so on take beside the options of a generation.
const CHAT = {
  tools: as.json, variables: as.json, template: as.text, templateName: as.text, now: secondsOf, toolChoice: choiceOf,
  callId: as.text, oneCall: as.flag(false), keepReasoning: as.flag(false),
};

// Of an answer that must be a call: undefined, or the function's name where one was named.
function choiceOf(choice) {
  if (choice === undefined || choice === null || choice === 'auto') return undefined;
  if (choice === 'required') return {};
  if (typeof choice !== 'object' || typeof choice.function !== 'string') {
    refuse(`toolChoice is ${shown(choice)}: "auto", "required" or {function: NAME} was expected`);
  }
  return { function: as.text(choice.function, 'the function of toolChoice') };
}

// Whether a template is told so: then the answer keeps to its grammar from the first token on.
function isToldNotToReason(variables) {
  try {
    return (typeof variables === 'string' ? JSON.parse(variables) : variables)?.enable_thinking === false;
  } catch {
    return false; // rendering has said what is wrong
  }
}

// Reads an answer while it comes.
class Answer {
  #handle;

  constructor(handle, options) {
    this.#handle = addon.answer(handle, optionsOf(options, READING));
  }

  feed(answer, token = -1) {
    return addon.answerFeed(this.#handle, textOrBytes(answer, 'the answer'), tokenOf(token));
  }

  finish(cut) {
    return addon.answerFinish(this.#handle, as.flag(false)(cut, 'cut'));
  }

  close() {
    addon.close(this.#handle);
  }
}

class Reply {
  #model;
  #messages;
  #options;
  #steps;
  #iterator;

  constructor(model, source, messages, options) {
    const own = {}, others = { ...objectOf(options) };
    for (const [name, check] of Object.entries(CHAT)) {
      own[name] = check(others[name], name);
      delete others[name];
    }
    const { tools, variables, template, templateName, now, toolChoice, callId, oneCall, keepReasoning } = own;
    if (toolChoice && others.grammar) {
      refuse('toolChoice asks for a call, and grammar for another form: one of them was expected');
    }
    Object.assign(this, { text: '', reasoning: '', toolCalls: [] });
    this.#model = model;
    this.#messages = as.json(messages ?? null, 'messages');
    this.#options = {
      rendering: { tools, variables, template, templateName, now },
      reading: { tools, template, templateName, callId, oneCall, keepReasoning },
      toolChoice,
    };
    this.#steps = new Steps(source, others);
  }

  get ids() {
    return Int32Array.from(this.#steps.ids);
  }

  get logprobs() {
    return this.#steps.logprobs.slice();
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
    const { rendering, reading: given, toolChoice } = this.#options;
    const { tools, template, templateName, oneCall } = given;
    const prompt = this.#model.render(this.#messages, rendering);
    const before = { prompt: prompt.text, tools, template, templateName };
    let forced = null;
    if (toolChoice) {
      const forcing = { tools, template, templateName, oneCall, function: toolChoice.function, prompt: prompt.text };
      forced = this.#model.forceCall(forcing);
    }
    // Where the answer opens the call behind its reasoning, nothing of it is fed.
    const ids = Int32Array.from([...prompt.ids, ...(forced && !forced.behindReasoning ? forced.ids : [])]);
    this.#steps.before = isToldNotToReason(rendering.variables) ? { prompt: prompt.text, template: '' } : before;
    const answer = this.#model.reader({ ...given, prompt: prompt.text, opened: forced?.opened });
    const prepare = async (session) => {
      await session._begin(ids);
      if (forced) await session.setGrammar({ forced }, before);
    };
    try {
      for await (const step of this.#steps.run(prepare)) {
        for (const event of answer.feed(step.text, step.id)) yield this.#take(event);
      }
      for (const event of answer.finish(this.#steps.reason === 'length')) yield this.#take(event);
    } finally {
      answer.close();
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

module.exports = { Answer, Reply, parse };
