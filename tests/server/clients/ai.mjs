// ai.mjs URL - the packages ai and @ai-sdk/openai-compatible of npm against a server of the model "tale".
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, embedMany, generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';
import { test, must, same, refused, counting, finish } from './checks.mjs';

const counted = counting();
const jitrun = createOpenAICompatible({ name: 'jitrun', baseURL: process.argv[2] + '/v1', apiKey: 'none', includeUsage: true,
	supportsStructuredOutputs: true, fetch: counted.fetch });
const model = jitrun('tale');
const messages = [{ role: 'user', content: 'Tell me about a cat.' }];
const request = { model, messages, maxOutputTokens: 24, seed: 7, maxRetries: 0 };
const city = z.enum(['Oslo', 'Rome']);
const asked = [];
const tools = {
	get_weather: tool({ description: 'the weather of a city', inputSchema: z.object({ city }),
		execute: async (input) => { asked.push(input); return { degrees: 7 }; } }),
};
// The first step must call, the second one must not.
const forced = { ...request, maxOutputTokens: 300, tools, stopWhen: stepCountIs(2),
	prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }) };
let whole;

await test('text', async () => {
	const r = await generateText({ ...request, system: 'Be short.' });
	must(r.text.length > 0, 'no text');
	same(r.finishReason, 'length', 'finishReason');
	same(r.usage.outputTokens, 24, 'outputTokens');
	same(r.usage.totalTokens, r.usage.inputTokens + 24, 'totalTokens');
	whole = (await generateText(request)).text;
});

await test('a stream has the same text', async () => {
	const r = streamText(request);
	let text = '', pieces = 0;
	for await (const piece of r.textStream) {
		text += piece;
		pieces++;
	}
	same(text, whole, 'text');
	must(pieces > 5, `${pieces} pieces`);
	same(await r.finishReason, 'length', 'finishReason');
	same((await r.usage).outputTokens, 24, 'outputTokens');
});

await test('a stream that the client ends', async () => {
	const control = new AbortController();
	const r = streamText({ ...request, maxOutputTokens: 10000, abortSignal: control.signal, onError: () => {} });
	let pieces = 0;
	for await (const piece of r.textStream)
		if (piece && ++pieces === 3)
			control.abort();
	must(pieces >= 3 && pieces < 200, `${pieces} pieces`);
	same((await generateText(request)).text, whole, 'text after it');
});

await test('sampling and stop texts', async () => {
	const given = { ...request, temperature: 0.7, topP: 0.9, frequencyPenalty: 0.1, presencePenalty: 0.1 };
	same((await generateText(given)).text, (await generateText(given)).text, 'text');
	const stop = whole.slice(8, 12);
	same((await generateText({ ...request, stopSequences: [stop] })).text, whole.slice(0, whole.indexOf(stop)), 'stopped');
});

await test('a call and its result', async () => {
	asked.length = 0;
	const r = await generateText(forced);
	same(r.steps.length, 2, 'steps');
	same(r.steps[0].finishReason, 'tool-calls', 'finishReason');
	same(r.steps[0].toolCalls.map((c) => [c.toolName, c.input]), [['get_weather', asked[0]]], 'calls');
	must(city.safeParse(asked[0].city).success, JSON.stringify(asked));
	same(r.steps[0].toolResults[0].output, { degrees: 7 }, 'result');
	same(r.steps[1].toolCalls.length, 0, 'calls after it');
	must(r.text.length > 0, 'no text after the result');
});

await test('a call in a stream', async () => {
	asked.length = 0;
	const r = streamText(forced);
	let input = '', kinds = new Set();
	for await (const part of r.fullStream) {
		kinds.add(part.type);
		must(part.type !== 'error', String(part.error));
		if (part.type === 'tool-input-delta')
			input += part.delta;
	}
	same(JSON.parse(input), asked[0], 'input');
	for (const kind of ['tool-input-start', 'tool-input-end', 'tool-call', 'tool-result', 'text-delta', 'finish'])
		must(kinds.has(kind), `no ${kind}: ${[...kinds]}`);
	same((await r.steps).length, 2, 'steps');
});

await test('one tool by its name', async () => {
	const other = tool({ description: 'a tale', inputSchema: z.object({ title: z.string().max(8) }), execute: async () => 'done' });
	const r = await generateText({ ...request, maxOutputTokens: 300, tools: { ...tools, tell: other },
		toolChoice: { type: 'tool', toolName: 'tell' } });
	same(r.toolCalls.map((c) => c.toolName), ['tell'], 'calls');
	must(r.toolCalls[0].input.title.length <= 8, JSON.stringify(r.toolCalls[0].input));
});

const pet = z.object({ kind: z.enum(['cat', 'dog']), tame: z.boolean(), legs: z.number().int().min(2).max(4) });

await test('structured output', async () => {
	const given = { ...request, maxOutputTokens: 300 };
	must(pet.safeParse((await generateObject({ ...given, schema: pet })).object).success, 'generateObject');
	must(pet.safeParse((await generateText({ ...given, output: Output.object({ schema: pet }) })).output).success, 'Output.object');
	const r = streamObject({ ...given, schema: pet });
	let partial = 0;
	for await (const o of r.partialObjectStream)
		partial += o !== undefined;
	must(partial > 1, `${partial} partial objects`);
	must(pet.safeParse(await r.object).success, 'streamObject');
	const list = await generateObject({ ...given, output: 'array', schema: z.object({ city }), maxOutputTokens: 900, temperature: 0 });
	must(z.array(z.object({ city })).safeParse(list.object).success, JSON.stringify(list.object));
	const one = await generateObject({ ...given, output: 'enum', enum: ['Oslo', 'Rome'] });
	must(city.safeParse(one.object).success, JSON.stringify(one.object));
});

await test('embeddings', async () => {
	const made = jitrun.textEmbeddingModel('tale');
	const { embedding } = await embed({ model: made, value: 'a cat', maxRetries: 0 });
	const { embeddings, usage } = await embedMany({ model: made, values: ['a cat', 'a dog'], maxRetries: 0 });
	same(embeddings.length, 2, 'embeddings');
	same(embeddings[0], embedding, 'the first one');
	must(embedding.length > 8 && usage.tokens > 0, `${embedding.length} numbers, ${usage.tokens} tokens`);
});

await test('completions', async () => {
	const r = await generateText({ ...request, messages: undefined, model: jitrun.completionModel('tale'), prompt: 'Once upon a time' });
	must(r.text.length > 0, 'no text');
});

await test('no answer but those that were meant was refused', async () => {
	same(counted.refused, [], 'refused');
	const why = (ask) => () => ask().catch((e) => { throw Object.assign(e, { status: e.statusCode }); });
	await refused(400, 'top_p', why(() => generateText({ ...request, topP: -1 })));
});

finish();
