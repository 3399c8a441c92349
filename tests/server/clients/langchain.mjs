// langchain.mjs URL - the package @langchain/openai of npm against a server of the model "tale".
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import { test, must, same, refused, counting, finish } from './checks.mjs';

const counted = counting();
const configuration = { baseURL: process.argv[2] + '/v1', fetch: counted.fetch };
const given = { model: 'tale', apiKey: 'none', maxRetries: 0, maxTokens: 24, configuration, modelKwargs: { seed: 7 } };
const chat = new ChatOpenAI(given), longer = new ChatOpenAI({ ...given, maxTokens: 300 });
const messages = [new SystemMessage('Be short.'), new HumanMessage('Tell me about a cat.')];
const city = z.enum(['Oslo', 'Rome']);
const weather = tool(async (input) => `${input.city}: 7 degrees`, { name: 'get_weather', description: 'the weather of a city',
	schema: z.object({ city }) });
let whole;

await test('invoke', async () => {
	const r = await chat.invoke(messages);
	whole = r.content;
	must(whole.length > 0, 'no text');
	same(r.response_metadata.finish_reason, 'length', 'finish_reason');
	same(r.usage_metadata.output_tokens, 24, 'output_tokens');
	same(r.usage_metadata.total_tokens, r.usage_metadata.input_tokens + 24, 'total_tokens');
});

await test('a stream has the same text', async () => {
	let all, pieces = 0;
	for await (const piece of await chat.stream(messages)) {
		all = all ? all.concat(piece) : piece;
		pieces++;
	}
	same(all.content, whole, 'text');
	same(all.usage_metadata.output_tokens, 24, 'output_tokens');
	must(pieces > 5, `${pieces} pieces`);
});

await test('several at once', async () => {
	const all = await chat.batch([messages, messages, messages]);
	same(all.map((r) => r.content), [whole, whole, whole], 'texts');
});

await test('a stop text', async () => {
	const stop = whole.slice(8, 12);
	const r = await chat.invoke(messages, { stop: [stop] });
	same(r.content, whole.slice(0, whole.indexOf(stop)), 'text');
	same(r.response_metadata.finish_reason, 'stop', 'finish_reason');
});

await test('log probabilities', async () => {
	const r = await new ChatOpenAI({ ...given, logprobs: true, topLogprobs: 2 }).invoke(messages);
	same(r.response_metadata.logprobs.content.length, 24, 'entries');
});

await test('a call and its result', async () => {
	const r = await longer.bindTools([weather], { tool_choice: 'required' }).invoke(messages);
	same(r.tool_calls.map((c) => c.name), ['get_weather'], 'calls');
	must(city.safeParse(r.tool_calls[0].args.city).success, JSON.stringify(r.tool_calls));
	const result = await weather.invoke(r.tool_calls[0]);
	must(result instanceof ToolMessage && result.tool_call_id === r.tool_calls[0].id, JSON.stringify(result));
	const after = await longer.bindTools([weather], { tool_choice: 'none' }).invoke([...messages, r, result]);
	same(after.tool_calls.length, 0, 'calls after it');
	must(after.content.length > 0, 'no text after the result');
	const made = new AIMessage({ content: '', tool_calls: [{ id: 'a', name: 'get_weather', args: { city: 'Oslo' } }] });
	const known = [...messages, made, new ToolMessage({ tool_call_id: 'a', content: '7' })];
	must((await chat.bindTools([weather]).invoke(known)).content !== undefined, 'no answer');
});

await test('a call in a stream', async () => {
	let all;
	for await (const piece of await longer.bindTools([weather], { tool_choice: 'get_weather' }).stream(messages))
		all = all ? all.concat(piece) : piece;
	same(all.tool_calls.map((c) => c.name), ['get_weather'], 'calls');
	must(city.safeParse(all.tool_calls[0].args.city).success, JSON.stringify(all.tool_calls));
});

await test('structured output', async () => {
	const pet = z.object({ kind: z.enum(['cat', 'dog']), tame: z.boolean() });
	for (const method of ['jsonSchema', 'functionCalling', 'jsonMode']) {
		if (method === 'jsonMode') {
			const r = await longer.withStructuredOutput(z.any(), { method, includeRaw: true }).invoke([new HumanMessage('JSON of a cat')]);
			must(r.raw.content.trimStart().startsWith('{'), r.raw.content);
			continue;
		}
		for (const strict of [undefined, true])
			must(pet.safeParse(await longer.withStructuredOutput(pet, { method, strict, name: 'pet' }).invoke(messages)).success, method);
	}
});

await test('responses', async () => {
	const r = new ChatOpenAI({ ...given, modelKwargs: {}, maxTokens: 300, useResponsesApi: true });
	const text = await r.invoke(messages);
	must(text.text.length > 0, 'no text');
	let all;
	for await (const piece of await r.stream(messages))
		all = all ? all.concat(piece) : piece;
	must(all.text.length > 0, 'no text in the stream');
	// Here the package sends a choice that names a tool, and no other.
	const called = await r.bindTools([weather], { tool_choice: 'get_weather' }).invoke(messages);
	same(called.tool_calls.map((c) => c.name), ['get_weather'], 'calls');
	const result = await weather.invoke(called.tool_calls[0]);
	must((await r.invoke([...messages, called, result])).text.length > 0, 'no text after it');
	const pet = z.object({ kind: z.enum(['cat', 'dog']), tame: z.boolean() });
	must(pet.safeParse(await r.withStructuredOutput(pet, { name: 'pet' }).invoke(messages)).success, 'structured');
});

await test('embeddings', async () => {
	const made = new OpenAIEmbeddings({ ...given, maxTokens: undefined, modelKwargs: undefined });
	const all = await made.embedDocuments(['a cat', 'a dog']);
	same(all.length, 2, 'embeddings');
	same(await made.embedQuery('a cat'), all[0], 'the first one');
});

await test('completions', async () => {
	const old = new OpenAI({ ...given, modelKwargs: {} });
	must((await old.invoke('Once upon a time')).length > 0, 'no text');
	let pieces = 0;
	for await (const piece of await old.stream('Once upon a time'))
		pieces += piece.length > 0;
	must(pieces > 5, `${pieces} pieces`);
});

await test('no answer but those that were meant was refused', async () => {
	same(counted.refused, [], 'refused');
	await refused(400, 'top_p', () => new ChatOpenAI({ ...given, topP: -1 }).invoke(messages));
});

finish();
