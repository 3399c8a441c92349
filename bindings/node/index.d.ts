/** Runs large language models with jitrun. Errors of the library have a `code`, such as "JIT_ERROR_IO". */

/** Fields of a struct of options by their names, in camelCase or as in C: `man 3 jitrun` has them all. */
export type Options = Record<string, string | number | boolean | bigint | null | undefined>;

/** How tokens are chosen: fields of `jit_sampling`. Others than these are as the model's makers say. */
export interface Sampling extends Options {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  /** Where it is not given, one is drawn. */
  seed?: number | bigint;
}

/** Fields of `jit_session_options`. */
export type SessionOptions = { [name: string]: Options[string] | Sampling; sampling?: Sampling };

/** What an answer keeps to: a JSON Schema, a regular expression, or rules. */
export type Grammar = { schema: object | string } | { regex: string } | { gbnf: string };

export type Pooling = "last" | "mean" | "none" | "rank";

export interface EmbedOptions {
  pooling?: Pooling;
  /** Each row has length 1; true by default. */
  normalise?: boolean;
}

export interface GenerateOptions {
  /** At most so many tokens; without it, until the text or the context ends. */
  maxTokens?: number;
  /** Texts that end the answer and are no part of it. */
  stop?: string | string[];
  grammar?: Grammar;
  /** Ends the generation with the signal's reason. */
  signal?: AbortSignal;
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

export interface RenderOptions {
  tools?: Tool[] | string;
  /** What else the template knows. */
  variables?: object | string;
  /** A template instead of the model's own. */
  template?: string;
  templateName?: string;
  /** For templates that write the date. */
  now?: Date | number;
}

export interface ChatOptions extends GenerateOptions, RenderOptions {
  /** Whether the answer must be a call. */
  toolChoice?: "auto" | "required" | { function: string };
}

/** Of a session made for one answer. */
export interface NewSession {
  session?: Options;
  sampling?: Sampling;
}

export interface ModelInfo {
  description: string;
  vocab: number;
  layers: number;
  hidden: number;
  contextTrained: number;
  weightBytes: number;
  tokenBytes: number;
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
  hasSampling: boolean;
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

export class Model {
  private constructor();
  /** A .gguf or .safetensors file, or a directory; options: fields of `jit_model_options`. */
  static open(path: string, options?: Options): Promise<Model>;
  readonly info: ModelInfo;
  tokenize(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Int32Array;
  detokenize(ids: Iterable<number>): string;
  isEnd(id: number): boolean;
  session(options?: SessionOptions): Promise<Session>;
  /** Text behind a prompt, from a session of its own. */
  generate(prompt: string | Iterable<number>, options?: GenerateOptions & NewSession): Generation;
  /** The answer to a conversation, from a session of its own. */
  chat(messages: Message[] | string, options?: ChatOptions & NewSession): Reply;
  render(messages: Message[] | string, options?: RenderOptions & { generationPrompt?: boolean }):
    { text: string; ids: Int32Array };
  embed(text: string, options?: EmbedOptions): Promise<Float32Array>;
  /** Natural logarithms of the probability of each token after those before it. */
  score(text: string): Promise<Float32Array>;
  /** Its memory is given back when the last of its sessions is closed. */
  close(): void;
}

/** One conversation. It computes for one call at a time. */
export class Session {
  private constructor();
  readonly model: Model;
  readonly ids: Int32Array;
  readonly length: number;
  feed(prompt: string | Iterable<number>): Promise<void>;
  generate(options?: GenerateOptions): Generation;
  /** What the session has of the conversation is kept. */
  chat(messages: Message[] | string, options?: ChatOptions): Reply;
  /** The logits after the last token. */
  logits(): Promise<Float32Array>;
  score(ids: Iterable<number>): Promise<Float32Array>;
  embed(ids: Iterable<number>, options?: EmbedOptions): Promise<Float32Array>;
  /** Set it behind the prompt; null ends it. */
  setGrammar(grammar: Grammar | null): Promise<void>;
  setSampling(sampling?: Sampling): void;
  setStop(texts: string | Iterable<string>): void;
  /** Forgets every token from position n on. Then feed at least one. */
  rewind(n: number): void;
  /** The call that computes, or else the next one, fails with the code "JIT_ERROR_CANCELLED". */
  cancel(): void;
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
  readonly finishReason: "stop" | "length" | "tool_calls" | null;
  /** In the form of OpenAI's API: put it behind the others to go on. */
  readonly message: Message;
}

/** The library's version. */
export const version: string;
