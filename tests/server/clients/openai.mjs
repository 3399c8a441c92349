// openai.mjs URL - the openai client of npm against a server of the model "tale".
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { test, must, same, refused, finish } from './checks.mjs';

const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'none', maxRetries: 0 });
const model = 'tale';
const messages = [{ role: 'user', content: 'Tell me about a cat.' }];
const request = { model, messages, max_tokens: 24, seed: 7 };
const tools = [{
	type: 'function',
	function: {
		name: 'get_weather',
		description: 'the weather of a city',
		parameters: {
			type: 'object',
			properties: { city: { enum: ['Oslo', 'Rome'] } },
			required: ['city'],
			additionalProperties: false,
		},
	},
}];
const forced = { model, messages, max_tokens: 1000, seed: 3, tools, tool_choice: 'required' };
let whole;

function is_weather(call) {
	must(call?.function?.name === 'get_weather', JSON.stringify(call));
	must(['Oslo', 'Rome'].includes(JSON.parse(call.function.arguments).city), call.function.arguments);
	must(/^call_./.test(call.id), call.id);
}

await test('models', async () => {
	const list = await client.models.list();
	same(list.data.map((m) => m.id), [model], 'models');
	same((await client.models.retrieve(model)).id, model, 'one model');
	await refused(404, 'no model', () => client.models.retrieve('nothing'));
});

await test('chat', async () => {
	const r = await client.chat.completions.create(request);
	whole = r.choices[0].message.content;
	must(whole.length > 0, 'no text');
	same(r.choices[0].finish_reason, 'length', 'finish_reason');
	same(r.usage.completion_tokens, 24, 'completion_tokens');
	same(r.usage.total_tokens, r.usage.prompt_tokens + 24, 'total_tokens');
});

await test('a stream has the same text', async () => {
	const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
	const ids = new Set();
	let text = '', usage, finish_reason, chunks = 0;
	for await (const chunk of stream) {
		chunks++;
		ids.add(chunk.id);
		text += chunk.choices[0]?.delta?.content ?? '';
		usage = chunk.usage ?? usage;
		finish_reason = chunk.choices[0]?.finish_reason ?? finish_reason;
	}
	same(text, whole, 'text');
	same(usage.completion_tokens, 24, 'usage');
	same(finish_reason, 'length', 'finish_reason');
	same(ids.size, 1, 'ids');
	must(chunks > 5, `${chunks} chunks`);
});

await test('the stream helper', async () => {
	const final = await client.chat.completions.stream(request).finalChatCompletion();
	same(final.choices[0].message.content, whole, 'text');
});

await test('a stream that the client ends', async () => {
	const long = { ...request, max_tokens: 100000, ignore_eos: true, stream: true };
	const stream = await client.chat.completions.create(long);
	let chunks = 0;
	for await (const chunk of stream)
		if (++chunks === 3)
			stream.controller.abort();
	must(chunks >= 3 && chunks < 200, `${chunks} chunks`);
	same((await client.chat.completions.create(request)).choices[0].message.content, whole, 'text after it');
});

await test('completions', async () => {
	const r = await client.completions.create({ model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0, logprobs: 2 });
	const l = r.choices[0].logprobs;
	same(l.tokens.join(''), r.choices[0].text, 'tokens');
	same([l.tokens.length, l.token_logprobs.length, l.text_offset.length], [8, 8, 8], 'lengths');
	for (let i = 0; i < 8; i++)
		same(Math.max(...Object.values(l.top_logprobs[i])), l.token_logprobs[i], 'the likeliest');
});

await test('log probabilities', async () => {
	const r = await client.chat.completions.create({ ...request, max_tokens: 4, logprobs: true, top_logprobs: 3 });
	const list = r.choices[0].logprobs.content;
	same(list.length, 4, 'entries');
	for (const entry of list) {
		const top = entry.top_logprobs.map((t) => t.logprob);
		same(top.length, 3, 'top');
		same(top, [...top].sort((a, b) => b - a), 'order');
		must(entry.logprob <= top[0], 'the likeliest');
	}
});

await test('several choices', async () => {
	const r = await client.chat.completions.create({ ...request, n: 3 });
	same(r.choices.map((c) => c.index), [0, 1, 2], 'numbers');
	same(r.choices[0].message.content, whole, 'the first one');
	must(r.choices[1].message.content !== whole, 'all are the same');
});

await test('parse with a schema', async () => {
	const pet = z.object({ kind: z.enum(['cat', 'dog']), tame: z.boolean() });
	const r = await client.chat.completions.parse({ ...request, max_tokens: 300, temperature: 0, response_format: zodResponseFormat(pet, 'pet') });
	const parsed = r.choices[0].message.parsed;
	must(['cat', 'dog'].includes(parsed?.kind) && typeof parsed.tame === 'boolean', JSON.stringify(r.choices));
});

await test('a schema that is not supported', async () => {
	const schema = { type: 'string', pattern: '(?=a)b' };
	await refused(400, '#/pattern', () => client.chat.completions.create({ ...request, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }));
});

await test('requests that are wrong', async () => {
	await refused(400, 'messages', () => client.chat.completions.create({ model, messages: [] }));
	await refused(400, 'top_p', () => client.chat.completions.create({ ...request, top_p: -1 }));
});

await test('a call that is required', async () => {
	const r = await client.chat.completions.create(forced);
	same(r.choices[0].finish_reason, 'tool_calls', 'finish_reason');
	same(r.choices[0].message.tool_calls.length, 1, 'calls');
	is_weather(r.choices[0].message.tool_calls[0]);
});

await test('a call in a stream', async () => {
	const final = await client.chat.completions.stream(forced).finalChatCompletion();
	same(final.choices[0].finish_reason, 'tool_calls', 'finish_reason');
	is_weather(final.choices[0].message.tool_calls[0]);
});

await test('the result of a call goes back', async () => {
	const first = await client.chat.completions.create(forced);
	const call = first.choices[0].message.tool_calls[0];
	const more = [...messages, first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'rain' }];
	const r = await client.chat.completions.create({ ...request, messages: more, tools });
	must(r.usage.prompt_tokens > first.usage.prompt_tokens, 'the prompt did not grow');
});

await test('embeddings', async () => {
	const input = ['a cat', 'a dog'];
	const base64 = await client.embeddings.create({ model, input });
	const plain = await client.embeddings.create({ model, input, encoding_format: 'float' });
	same(base64.data.length, 2, 'vectors');
	for (let i = 0; i < 2; i++) {
		const one = base64.data[i].embedding;
		const length = Math.hypot(...one);
		must(Math.abs(length - 1) < 1e-5, `length ${length}`);
		must(one.every((v, k) => Math.abs(v - plain.data[i].embedding[k]) < 1e-6), 'the forms differ');
	}
});

await test('several at once as each alone', async () => {
	const ask = (i) => client.chat.completions.create({ ...request, messages: [{ role: 'user', content: `Story ${i}` }], seed: i }).then((r) => r.choices[0].message.content);
	const alone = [];
	for (let i = 0; i < 6; i++)
		alone.push(await ask(i));
	same(await Promise.all([0, 1, 2, 3, 4, 5].map(ask)), alone, 'texts');
	must(new Set(alone).size > 1, 'all are the same');
});

finish();
