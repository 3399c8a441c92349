// types.ts - the declarations, as programs in TypeScript meet them. It is checked and never run.
import {
  Answer, Batch, BatchSession, Event, ForcedCall, Generation, Message, MetadataValue, Model, ModelInfo, Needs, Reply,
  SamplingDefaults, Session, SessionStats, Token, Tool, devices, modelNeeds, parse, reader, version, writeObjects,
} from "jitrun";

const tools: Tool[] = [{ type: "function", function: { name: "f", parameters: { type: "object" }, strict: true } }];

async function models(signal: AbortSignal): Promise<void> {
  const model: Model = await Model.open("m.gguf", {
    device: "cpu", threads: 2, boundedNumerics: "exact", signal,
    progress: (done: number, total: number) => done > total, session: { context: 512, card: { launch: "layer" } },
  });
  const info: ModelInfo = model.info;
  const pooling: "last" | "mean" | "none" | "rank" | "cls" | null = info.pooling;
  const trouble: string | null = info.weightCacheTrouble;
  const defaults: SamplingDefaults = model.samplingDefaults;
  const biased: [number, number][] = defaults.logitBias;
  for (const [key, value] of model.metadata) {
    const one: MetadataValue = value;
    if (Array.isArray(one)) one.map((item) => item);
    console.log(key.length, one instanceof Uint8Array ? one.byteLength : one);
  }
  for (const token of model.tokens()) {
    const spelling: Uint8Array | null = token.spelling;
    const kind: Token["kind"] = token.kind;
    console.log(spelling, kind === "byte");
  }
  const bos: number | null | undefined = model.roles["bos"];
  const found: number | null = model.findToken(new Uint8Array([32]));
  const needs: Needs = await modelNeeds("m.gguf", { session: { context: 1 } });
  const room: number | null = needs.availableBytes;
  const written: { kernels: number } = await writeObjects("m.gguf", { target: "gfx1101", dir: "x" });
  const names: string[] = devices().map(({ name, whyNot }) => whyNot ?? name);
  console.log(pooling, trouble, biased, bos, found, room, written, names, version.length, model.stopTexts[0]);
  // @ts-expect-error: models are opened
  new Model();
  // @ts-expect-error: a path is a string
  await Model.open(7);
  // @ts-expect-error: information cannot be changed
  model.info = info;
  // @ts-expect-error: progress hears of numbers
  await Model.open("m.gguf", { progress: (done: string) => done === "" });
}

async function sessions(model: Model, signal: AbortSignal): Promise<void> {
  const session: Session = await model.session({
    context: 512, kv: "q8_0", signal,
    sampling: { temperature: 0.7, seed: 7n, logitBias: { 5: -Infinity }, dryBreakers: ["\n"], xtcProbability: 0.1 },
  });
  await session.feed("text", { parseSpecial: true });
  await session.feed(new Int32Array([1]));
  await session.feed(new Set([1, 2]));
  const rows: Float32Array = await session.feedLogits([1, 2]);
  const saved: Uint8Array = await session.save(), written: void = await session.save("file");
  await session.restore(saved);
  const id: number = await session.next();
  const text: string = session.text(id) + session.flush();
  const bytes: Uint8Array = session.textBytes(id);
  const { logprob, top } = session.sampledLogprobs(3);
  const stopped: number | null = session.stopped, complete: boolean | null = session.grammarComplete;
  session.setLogitsFn((logits, ids) => { logits[ids[0] ?? 0] = -Infinity; });
  session.setLogitsFn((logits: Float32Array) => logits.length === 0);
  session.setPromptFn((computed, length) => computed > length);
  session.setPromptFn(null);
  await session.setGrammar({ openSchema: { type: "object" } });
  await session.setGrammar({ gbnf: "root ::= \"a\"" });
  await session.setGrammar({ lark: "start: \"a\"" });
  await session.setGrammar({ regex: "a" }, { prompt: "a", tools: "[]", template: "b" });
  await session.setGrammar(null);
  const fork: Session = await session.fork({ context: 512 });
  const stats: SessionStats = session.stats();
  console.log(rows, text, bytes, logprob, top[0]?.id, stopped, complete, fork.ids, stats.speculation[0]?.tokens);
  // @ts-expect-error: an answer at once
  session.setLogitsFn(async () => true);
  // @ts-expect-error: one kind of grammar
  await session.setGrammar({ rules: "" });
  // @ts-expect-error: tokens are numbers
  await session.feed(["1"]);
  // @ts-expect-error: sampling is an object
  await model.session({ sampling: "hot" });
}

async function generations(model: Model, signal: AbortSignal): Promise<void> {
  const generation: Generation = model.generate("a", { maxTokens: 3, stop: ["b"], signal, logprobs: 2, session: {} });
  for await (const piece of generation) console.log(piece.length);
  const reason: "stop" | "length" | null = generation.finishReason;
  const kept: { id: number; logprob: number }[] = generation.logprobs;
  const messages: Message[] = [{ role: "user", content: "Hello" }];
  const reply: Reply = model.chat(messages, { tools, toolChoice: { function: "f" }, oneCall: true, callId: "x" });
  for await (const event of reply) tell(event);
  messages.push((await reply.read()).message);
  const forced: ForcedCall = model.forceCall({ tools, function: "f" });
  const answer: Answer = model.reader({ tools, prompt: "a", opened: forced.opened });
  answer.feed(new Uint8Array(3), 5).concat(answer.finish(true)).forEach(tell);
  const message: Message = parse("a", { template: "", tools, cut: true, keepReasoning: true });
  const alone: Answer = reader({ template: "" });
  console.log(reason, kept, message.role, alone, model.parse("a").content);
  // @ts-expect-error: without a model there is a template
  parse("a", {});
  // @ts-expect-error: there is no such option
  model.generate("a", { maxToken: 3 });
  // @ts-expect-error: a choice of tools is one of three
  model.chat(messages, { toolChoice: "never" });
}

function tell(event: Event): void {
  switch (event.kind) {
    case "text": case "reasoning": return console.log(event.text);
    case "call": return console.log(event.call, event.id, event.name);
    case "arguments": return console.log(event.call, event.text);
    case "call_end": return console.log(event.whole);
    default: {
      const none: never = event;
      return none;
    }
  }
}

async function batches(model: Model, signal: AbortSignal): Promise<void> {
  const batch: Batch = await model.batch({ context: 512, maxPassMs: 100, kvBytes: 1e9, signal });
  const all: string[] = await Promise.all(["a", "b"].map((prompt) => batch.generate(prompt, { maxTokens: 3 }).read()));
  const reply: Reply = batch.chat("[]", { sampling: { seed: 1 } });
  const session: BatchSession = await batch.session({ sampling: { temperature: 0 } });
  const reused: number = await session.submit("a", { parseSpecial: false });
  while (await batch.pending() > 0) {
    for (const one of await batch.step()) console.log(await one.next(), one.batch === batch);
  }
  const forgotten: number = await batch.forget([1]) + await batch.forget();
  console.log(all, reply, reused, forgotten, (await batch.stats()).width[0]);
  const plain: Session = session;
  // @ts-expect-error: a session is in no batch
  plain.submit("a");
  // @ts-expect-error: sessions of a batch have its context
  await batch.session({ context: 5 });
}

void [models, sessions, generations, batches];
