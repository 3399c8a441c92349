/** Runs large language models with jitrun. Errors of the library have a `code`, such as "JIT_ERROR_IO". */

/** Fields of a struct of options by their names, in camelCase or as in C: `man 3 jitrun` has them all. */
export type Options = Record<string, string | number | boolean | bigint | null | undefined>;

/** How tokens are chosen: fields of `jit_sampling`. Others than these are as the model's makers say. */
export interface Sampling {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  /** Where it is not given, one is drawn. */
  seed?: number | bigint;
  /** What is added to logits of tokens: numbers, or -Infinity, after which a token is never chosen. */
  logitBias?: Record<number, number> | Iterable<readonly [number, number]>;
  /** The texts at which the search for repetitions begins anew (DRY). */
  dryBreakers?: string[];
  [name: string]: unknown;
}

/** How the model's makers say that tokens are to be chosen. */
export interface SamplingDefaults {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repeatPenalty: number;
  repeatWindow: number;
  seed: number | bigint;
  samplers: string | null;
  typicalP: number;
  topNSigma: number;
  frequencyPenalty: number;
  presencePenalty: number;
  dynatempRange: number;
  dynatempExponent: number;
  xtcProbability: number;
  xtcThreshold: number;
  dryMultiplier: number;
  dryBase: number;
  dryAllowedLength: number;
  dryWindow: number;
  mirostat: number;
  minKeep: number;
  mirostatTau: number;
  mirostatEta: number;
  adaptiveTarget: number;
  adaptiveDecay: number;
  logitBias: [number, number][];
  dryBreakers: string[] | null;
}

/** Fields of `jit_session_options`. */
export interface SessionOptions {
  context?: number;
  threads?: number;
  sampling?: Sampling;
  /** How it runs on a graphics card: fields of `jit_card_options`. */
  card?: Options;
  /** Ends the opening, and from then on all that the session computes, with the signal's reason. */
  signal?: AbortSignal;
  [name: string]: unknown;
}

/** Fields of `jit_model_options`. */
export interface ModelOptions {
  device?: string;
  threads?: number;
  /** Ends the opening with the signal's reason. */
  signal?: AbortSignal;
  /** Hears how many bytes are loaded, of how many. true: give up, with an error. */
  progress?: (done: number, total: number) => boolean | void;
  /** The session to come: what it needs and cannot have beside the weights is refused before they load. */
  session?: SessionOptions;
  [name: string]: unknown;
}

/** Fields of `jit_batch_options`. */
export interface BatchOptions {
  context?: number;
  threads?: number;
  /** Ends the opening, and from then on all that the batch computes, with the signal's reason. */
  signal?: AbortSignal;
  [name: string]: unknown;
}

/** What an answer keeps to: a JSON Schema, a regular expression, rules, or what `Model.forceCall` gave. */
export type Grammar =
  | { schema: object | string }
  /** Objects may have other members than `properties` names, as JSON Schema says. */
  | { openSchema: object | string }
  | { regex: string }
  | { gbnf: string }
  /** Rules as Lark writes them, which begin with `start`. */
  | { lark: string }
  | { forced: ForcedCall };

/** The conversation to whose answer a grammar belongs. */
export interface BehindReasoning extends TemplateOptions {
  /** What was rendered. */
  prompt: string;
}

export type Pooling = "last" | "mean" | "none" | "rank" | "cls";

export interface EmbedOptions {
  /** "none": a row for each token, one behind the other, which are its hidden states. */
  pooling?: Pooling;
  /** Each row has length 1; true by default. */
  normalise?: boolean;
}

export interface TextOptions {
  /** Text such as "<|im_start|>" becomes that token; leave it out for text that others wrote. */
  parseSpecial?: boolean;
}

export interface GenerateOptions {
  /** At most so many tokens; without it, until the text or the context ends. */
  maxTokens?: number;
  /** Texts that end the answer and are no part of it. */
  stop?: string | string[];
  grammar?: Grammar;
  /** Ends the generation with the signal's reason. The session can be used on. */
  signal?: AbortSignal;
  /** Keeps each token's log probability and those of so many likeliest ones. */
  logprobs?: number;
}

export interface Message {
  role: string;
  content?: unknown;
  [name: string]: unknown;
}

export interface Tool {
  type: "function";
  function: { name: string; description?: string; parameters?: object; strict?: boolean };
}

/** Which template a conversation has. */
export interface TemplateOptions {
  tools?: Tool[] | string;
  /** A template instead of the model's own. */
  template?: string;
  templateName?: string;
}

export interface RenderOptions extends TemplateOptions {
  /** What else the template knows. */
  variables?: object | string;
  /** For templates that write the date. */
  now?: Date | number;
}

/** How an answer is read. */
export interface ReadOptions {
  /** What the ids of calls begin with, instead of "call". */
  callId?: string;
  /** The answer has one call at most: nothing is told of what follows it. */
  oneCall?: boolean;
  /** Reasoning is part of the text, with its marks. */
  keepReasoning?: boolean;
}

export interface ReaderOptions extends TemplateOptions, ReadOptions {
  /** What was rendered: it may end within the reasoning. */
  prompt?: string;
  /** `ForcedCall.opened`, when a call was forced. */
  opened?: string | null;
}

export interface ParseOptions extends ReaderOptions {
  /** The answer was cut off, as at a limit of tokens. */
  cut?: boolean;
}

export interface ForceOptions extends TemplateOptions {
  /** The one to call; without it, any of them. */
  function?: string;
  /** One call at most. */
  oneCall?: boolean;
  /** What was rendered: then the model may reason before it calls. */
  prompt?: string;
}

/** What makes an answer a call: feed the ids behind the prompt's, set the grammar, and give a reader `opened`. */
export interface ForcedCall {
  /** The model may reason first: feed nothing, and give `setGrammar` the conversation. */
  readonly behindReasoning: boolean;
  readonly kind: number;
  readonly grammar: string;
  /** What opens the call. */
  readonly prompt: string;
  /** Its tokens. */
  readonly ids: Int32Array;
  readonly opened: string | null;
}

export interface ChatOptions extends GenerateOptions, RenderOptions, ReadOptions {
  /** Whether the answer must be a call. */
  toolChoice?: "auto" | "required" | { function: string };
}

/** Of a session made for one answer. */
export interface NewSession {
  session?: Omit<SessionOptions, "sampling" | "signal">;
  sampling?: Sampling;
}

export interface ModelInfo {
  description: string;
  vocab: number;
  layers: number;
  hidden: number;
  contextTrained: number;
  /** Of the weight files. */
  fileBytes: number;
  /** Of packed weights, in memory. */
  weightBytes: number;
  /** Of weights read to make one token. */
  tokenBytes: number;
  loadSeconds: number;
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
  hasSampling: boolean;
  /** How the files say that rows become an embedding; null: they do not. */
  pooling: Pooling | null;
  /** What of the results depends on more than the tokens, where `boundedNumerics` was asked for. */
  bounded: "none" | "prompts" | "all";
  boundedGain: number;
  /** It encodes texts and generates none. */
  encodes: boolean;
  /** Numbers of a text's embedding. */
  embedding: number;
  /** Why packed weights could not be kept for the next time; null: they were, or need not be. */
  weightCacheTrouble: string | null;
}

/** An entry of the vocabulary. */
export interface Token {
  id: number;
  /** How the vocabulary spells it; null: it has no text. */
  spelling: Uint8Array | null;
  /** What it adds to a text, which may be a part of a character; of a control token, its spelling. */
  bytes: Uint8Array;
  kind: "normal" | "unknown" | "control" | "user" | "unused" | "byte";
  /** Whether it ends a generation. */
  isEnd: boolean;
}

/** A text that is no UTF-8 is a Uint8Array. undefined: a list or an object in a list. */
export type MetadataValue =
  | string | Uint8Array | number | bigint | boolean | null | undefined | MetadataValue[];

/** What a model's files say of themselves, by key. */
export class Metadata implements Iterable<[string, MetadataValue]> {
  private constructor();
  readonly size: number;
  has(key: string): boolean;
  get(key: string): MetadataValue;
  keys(): IterableIterator<string>;
  values(): IterableIterator<MetadataValue>;
  entries(): IterableIterator<[string, MetadataValue]>;
  forEach(callback: (value: MetadataValue, key: string, metadata: Metadata) => void): void;
  [Symbol.iterator](): IterableIterator<[string, MetadataValue]>;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, complete when the call is whole. */
  arguments: string;
  whole: boolean;
}

export type Event =
  | { kind: "text"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "call"; call: number; id: string; name: string }
  | { kind: "arguments"; call: number; text: string }
  | { kind: "call_end"; call: number; whole: boolean };

/** The natural logarithm of a token's probability, and the likeliest tokens in its place. */
export interface Logprobs {
  logprob: number;
  top: { id: number; logprob: number }[];
}

/** What a session computed so far: `jit_session_stats`. */
export interface SessionStats {
  promptTokens: number;
  decodeTokens: number;
  promptSeconds: number;
  decodeSeconds: number;
  kernels: number;
  kernelsGenerated: number;
  kernelsFromCache: number;
  kernelsFromPack: number;
  kernelsBackground: number;
  kernelStalls: number;
  cacheDamaged: number;
  cacheStoreFailed: number;
  cacheEvicted: number;
  cacheUnreadable: number;
  generateSeconds: number;
  codeBytes: number;
  kvBytes: number;
  threads: number;
  context: number;
  decodePasses: number;
  drafted: number;
  accepted: number;
  /** The same by tokens of a pass. */
  speculation: { tokens: number; passes: number; drafted: number; accepted: number }[];
}

/** What a session launched and moved on a card: `jit_card_stats`. */
export interface CardStats {
  launches: number;
  barriers: number;
  instructions: number;
  loadBytes: number;
  load128Bytes: number;
  storeBytes: number;
  scalarBytes: number;
  weightBytes: number;
  cacheBytes: number;
  commands: number;
}

/** What a batch computed so far: `jit_batch_stats`. */
export interface BatchStats {
  passes: number;
  tokens: number;
  promptTokens: number;
  decodeTokens: number;
  reusedTokens: number;
  setBack: number;
  pages: number;
  pagesUsed: number;
  pagesKept: number;
  pagesShared: number;
  kvBytes: number;
  seconds: number;
  /** Passes by number of sessions: 1, 2, 3-4, 5-8, ... */
  width: number[];
  context: number;
}

/** What a model and one session on it take, in bytes. */
export interface Needs {
  weightBytes: number;
  tokenBytes: number;
  kvBytes: number;
  passBytes: number;
  /** Of memory that can be had now; null: not known. */
  availableBytes: number | null;
  context: number;
  contextTrained: number;
}

export interface Device {
  /** For the option `device`. */
  name: string;
  about: string;
  /** Why no model can be opened on it; null: models can. */
  whyNot: string | null;
}

export class Model {
  private constructor();
  /** A .gguf or .safetensors file, or a directory. */
  static open(path: string, options?: ModelOptions): Promise<Model>;
  readonly info: ModelInfo;
  readonly samplingDefaults: SamplingDefaults;
  readonly metadata: Metadata;
  /** The tokens with a task, such as "bos" and "fim_prefix"; null: the model has none. */
  readonly roles: Record<string, number | null>;
  /** The texts that end a generation by the model's own files. */
  readonly stopTexts: string[];
  tokenize(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Int32Array;
  /** Bytes that are no UTF-8 become U+FFFD; `token` has a token's own. */
  detokenize(ids: Iterable<number>): string;
  isEnd(id: number): boolean;
  token(id: number): Token;
  /** All tokens of the vocabulary, from 0. */
  tokens(): IterableIterator<Token>;
  /** The token that the vocabulary spells exactly so; null: there is none. */
  findToken(spelling: string | Uint8Array): number | null;
  session(options?: SessionOptions): Promise<Session>;
  batch(options?: BatchOptions): Promise<Batch>;
  /** Text behind a prompt, from a session of its own. */
  generate(prompt: string | Iterable<number>, options?: GenerateOptions & TextOptions & NewSession): Generation;
  /** The answer to a conversation, from a session of its own. */
  chat(messages: Message[] | string, options?: ChatOptions & NewSession): Reply;
  render(messages: Message[] | string, options?: RenderOptions & { generationPrompt?: boolean }):
    { text: string; ids: Int32Array };
  /** What makes the next answer a call of a tool. */
  forceCall(options: ForceOptions): ForcedCall;
  /** Reads an answer while it comes. */
  reader(options?: ReaderOptions): Answer;
  /** A whole answer as a message in the form of OpenAI's API. */
  parse(answer: string | Uint8Array, options?: ParseOptions): Message;
  embed(text: string, options?: EmbedOptions): Promise<Float32Array>;
  /** Natural logarithms of the probability of each token after those before it. */
  score(text: string): Promise<Float32Array>;
  /** An error where a file of dumpIr, dumpAsm, perfMap or jitdump could not be written whole. Ask at the end. */
  checkWritten(): void;
  /** An error once the model's device has failed for good. */
  checkAlive(): void;
  /** Its memory is given back when the last of its sessions is closed. */
  close(): void;
}

/** One conversation. It computes for one call at a time. */
export class Session {
  protected constructor();
  readonly model: Model;
  readonly ids: Int32Array;
  readonly length: number;
  feed(prompt: string | Iterable<number>, options?: TextOptions): Promise<void>;
  /** Appends tokens and gives the logits after each: a row of `vocab` floats for each, one behind the other. */
  feedLogits(ids: Iterable<number>): Promise<Float32Array>;
  generate(options?: GenerateOptions): Generation;
  /** What the session has of the conversation is kept. */
  chat(messages: Message[] | string, options?: ChatOptions): Reply;
  /** Chooses the next token; `text` gives what it completes. */
  next(): Promise<number>;
  /** The text that a token completes, once for each token, in order: whole characters. */
  text(id: number): string;
  /** The same as bytes. */
  textBytes(id: number): Uint8Array;
  /** The text that was held back, at the end. */
  flush(): string;
  /** Right after `next`: as the model says, before all sampling. */
  logprobs(n?: number): Logprobs;
  /** The same as the token was drawn from, behind all of the sampling and a grammar. */
  sampledLogprobs(n?: number): Logprobs;
  /** The logits after the last token. */
  logits(): Promise<Float32Array>;
  score(ids: Iterable<number>): Promise<Float32Array>;
  embed(ids: Iterable<number>, options?: EmbedOptions): Promise<Float32Array>;
  /** Set it behind the prompt; null ends it. behindReasoning: the model may reason before the grammar's part. */
  setGrammar(grammar: Grammar | null, behindReasoning?: BehindReasoning): Promise<void>;
  /** Whether the text is right as it stands; null: there is no grammar. */
  readonly grammarComplete: boolean | null;
  setSampling(sampling?: Sampling): void;
  /** Texts that end an answer; none: those of the model's files. */
  setStop(texts: string | Iterable<string>): void;
  /** The number of the stop text that was found; null: none was. */
  readonly stopped: number | null;
  /**
   * From the next choice on, it sees the logits behind these tokens before a token is chosen, and may change them: each
   * must be a finite number then, or -Infinity, after which that token is not chosen. true ends the choice with the
   * code "JIT_ERROR_CANCELLED"; what it throws comes out of the call that chooses. null: none. A fork has none.
   */
  setLogitsFn(fn: ((logits: Float32Array, ids: Int32Array) => boolean | void) | null): void;
  /**
   * From the next pass on, it hears how many of the session's tokens are computed, of how many. true ends the
   * computation with the code "JIT_ERROR_CANCELLED"; what it throws comes out of the call that computes. null: none.
   */
  setPromptFn(fn: ((computed: number, length: number) => boolean | void) | null): void;
  /** Forgets every token from position n on. Then feed at least one. */
  rewind(n: number): void;
  /** Writes its tokens and its cache into a file. */
  save(path: string): Promise<void>;
  /** The same as bytes; they pass through a file in the system's directory for temporary ones. */
  save(): Promise<Uint8Array>;
  /** Reads them back, from a file or of bytes, into a session without tokens. */
  restore(saved: string | Uint8Array): Promise<void>;
  /** A session with the same tokens and a copy of the cache. */
  fork(options?: SessionOptions): Promise<Session>;
  stats(): SessionStats;
  /** An error on a device that does not count. */
  cardStats(): CardStats;
  /** Every kernel that was used, as a table, or as JSON text. */
  report(options?: { json?: boolean }): Promise<string>;
  /** Writes what every worker did when, in Chrome's trace format, of a session with the profile "events". */
  trace(path: string): Promise<void>;
  /** The call that computes, or else the next one, fails with the code "JIT_ERROR_CANCELLED". */
  cancel(): void;
  readonly closed: boolean;
  close(): void;
}

/** A session of a batch, which computes together with the others. */
export class BatchSession extends Session {
  readonly batch: Batch;
  /** Appends tokens, which the steps to come compute; how many need not be computed. */
  submit(prompt: string | Iterable<number>, options?: TextOptions): Promise<number>;
}

/** One pass computes tokens of many sessions. Each text is the same as alone. */
export class Batch {
  private constructor();
  readonly model: Model;
  /** Text behind a prompt, computed together with all that is generated at the same time. */
  generate(prompt: string | Iterable<number>, options?: GenerateOptions & TextOptions & { sampling?: Sampling }):
    Generation;
  /** The same of an answer to a conversation. */
  chat(messages: Message[] | string, options?: ChatOptions & { sampling?: Sampling }): Reply;
  /** A session, for loops of one's own. */
  session(options?: { sampling?: Sampling }): Promise<BatchSession>;
  /** At most one pass; the sessions whose tokens are all computed by now, each told once. Generations of the batch have
   * theirs for themselves; what their passes computed for others is told first. */
  step(): Promise<BatchSession[]>;
  /** How many sessions have tokens to compute, or are ready and were not told yet. */
  pending(): Promise<number>;
  /** Forgets what is remembered of closed sessions that begin with these tokens; of none: of all. */
  forget(ids?: Iterable<number>): Promise<number>;
  stats(): Promise<BatchStats>;
  /** Its memory is given back when the last of its sessions is closed. */
  close(): void;
}

/** Texts as they are generated, for `for await`. */
export class Generation implements AsyncIterable<string> {
  private constructor();
  [Symbol.asyncIterator](): AsyncGenerator<string, void, undefined>;
  /** The whole text. */
  read(): Promise<string>;
  /** So far. */
  readonly text: string;
  readonly ids: Int32Array;
  /** Of each token, where `logprobs` was given. */
  readonly logprobs: (Logprobs & { id: number })[];
  readonly finishReason: "stop" | "length" | null;
}

/** An answer of a conversation; `for await` gives its events. */
export class Reply implements AsyncIterable<Event> {
  private constructor();
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined>;
  /** The answer when it is whole. */
  read(): Promise<Reply>;
  /** So far. */
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: ToolCall[];
  readonly ids: Int32Array;
  readonly logprobs: (Logprobs & { id: number })[];
  readonly finishReason: "stop" | "length" | "tool_calls" | null;
  /** In the form of OpenAI's API: put it behind the others to go on. */
  readonly message: Message;
}

/** Reads an answer while it comes: the same events for every model family, however its text is cut. */
export class Answer {
  private constructor();
  /** The next text or bytes, and the token that they are of: some tokens that have no text are marks. */
  feed(text: string | Uint8Array, token?: number): Event[];
  /** Nothing more comes. cut: the model had more to say. */
  finish(cut?: boolean): Event[];
  close(): void;
}

/** The library's version. */
export const version: string;
/** The devices that models can be opened on, or why they cannot. */
export function devices(): Device[];
/** What a model and one session would take, from the headers of its files alone. */
export function modelNeeds(path: string, options?: { session?: SessionOptions }): Promise<Needs>;
/** Writes a model's machine code for a graphics card into files; options: fields of `jit_objects_options`. */
export function writeObjects(path: string, options: Options):
  Promise<{ kernels: number; programs: number; bytes: number }>;
/** As `Model.parse`, without a model: by a template. */
export function parse(answer: string | Uint8Array, options: ParseOptions & { template: string }): Message;
/** As `Model.reader`, without a model: by a template. */
export function reader(options: ReaderOptions & { template: string }): Answer;
