// openai.mjs URL NARROW NAMED ELEMENTS - the openai client of npm against servers of the model "tale": one with room for
// one answer, and two whose templates teach other forms of calls.
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { test, must, same, refused, occupied, finish } from './checks.mjs';

const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'none', maxRetries: 0 });
const others = process.argv.slice(4).map((url) => new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 }));
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
	const schema = { type: 'string', pattern: '(?<=a)b' };
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

// The arguments come in pieces, which together are those of the whole answer, also where it is cut off.
await test('the pieces of a call', async () => {
	let most = 0, unfinished = 0;
	const tale = { type: 'string', minLength: 30 };
	const text = { type: 'function', function: { name: 'tell', parameters: {
		type: 'object', properties: { tale }, required: ['tale'], additionalProperties: false } } };
	for (const [one, max_tokens] of [client, ...others].flatMap((c) => [200, 40, 24, 18, 12].map((n) => [c, n]))) {
		const request = { ...forced, tools: [text], max_tokens };
		const r = (await one.chat.completions.create(request)).choices[0];
		const calls = [];
		let pieces = 0, content = '', finish_reason;
		for await (const chunk of await one.chat.completions.create({ ...request, stream: true })) {
			const { delta, finish_reason: reason } = chunk.choices[0] ?? {};
			content += delta?.content ?? '';
			finish_reason = reason ?? finish_reason;
			for (const call of delta?.tool_calls ?? []) {
				calls[call.index] ??= { name: '', arguments: '' };
				calls[call.index].name += call.function.name ?? '';
				calls[call.index].arguments += call.function.arguments;
				pieces++;
			}
		}
		same(calls, (r.message.tool_calls ?? []).map((c) => ({ name: c.function.name, arguments: c.function.arguments })), 'calls');
		same([content, finish_reason], [r.message.content, r.finish_reason], 'text and end');
		unfinished += finish_reason === 'length' && calls.length > 0;
		most = Math.max(most, pieces);
	}
	must(most > 20, `${most} pieces`);
	must(unfinished > 0, 'none was cut off inside a call');
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
	const few = await client.embeddings.create({ model, input, dimensions: 16 });
	for (let i = 0; i < 2; i++) {
		const one = few.data[i].embedding, whole = base64.data[i].embedding.slice(0, 16);
		same(one.length, 16, 'dimensions');
		must(one.every((v, k) => Math.abs(v - whole[k] / Math.hypot(...whole)) < 1e-6), 'the first numbers');
	}
	const ids = await client.embeddings.create({ model, input: [[5, 6, 7], [8]], encoding_format: 'float' });
	same(ids.data.length, 2, 'vectors of token ids');
});

await test('several at once as each alone', async () => {
	const ask = (i) => client.chat.completions.create({ ...request, messages: [{ role: 'user', content: `Story ${i}` }], seed: i }).then((r) => r.choices[0].message.content);
	const alone = [];
	for (let i = 0; i < 6; i++)
		alone.push(await ask(i));
	same(await Promise.all([0, 1, 2, 3, 4, 5].map(ask)), alone, 'texts');
	must(new Set(alone).size > 1, 'all are the same');
});

await test('a server that is busy is asked again', async () => {
	let tries = 0;
	const counted = (...a) => { tries++; return fetch(...a); };
	const narrow = (maxRetries) => new OpenAI({ baseURL: process.argv[3] + '/v1', apiKey: 'none', maxRetries, fetch: counted });
	await occupied(process.argv[3], async () => {
		await refused(429, 'wait', () => narrow(0).chat.completions.create(request));
		same((await narrow(60).chat.completions.create(request)).choices[0].message.content, whole, 'text');
		must(tries > 2, `${tries} tries`);
	});
});

// ---- responses

const ask = { model, input: 'Tell me about a cat.', max_output_tokens: 24, seed: 7 };
const flat = { type: 'function', strict: false, ...tools[0].function };
const forced_response = { ...ask, max_output_tokens: 1000, seed: 3, tools: [{ type: 'web_search' }, flat], tool_choice: 'required' };

await test('responses', async () => {
	const r = await client.responses.create(ask);
	same([r.object, r.status, r.incomplete_details?.reason], ['response', 'incomplete', 'max_output_tokens'], 'head');
	same(r.output_text, whole, 'text');
	same([r.output[0].type, r.output[0].role], ['message', 'assistant'], 'item');
	same([r.usage.output_tokens, r.usage.total_tokens - r.usage.input_tokens], [24, 24], 'usage');
	must((await client.responses.create(ask)).id !== r.id, 'two have one id');
	const stopped = await client.responses.create({ ...ask, stop: [whole.slice(4, 8)] });
	same([stopped.status, stopped.output_text], ['completed', whole.slice(0, whole.indexOf(whole.slice(4, 8)))], 'stopped');
});

await test('responses.stream has the same text', async () => {
	const stream = client.responses.stream(ask);
	const types = [];
	let text = '', number = 0;
	for await (const event of stream) {
		same(event.sequence_number, number++, 'sequence_number');
		if (types.at(-1) !== event.type)
			types.push(event.type);
		if (event.type === 'response.output_text.delta')
			text += event.delta;
	}
	const final = await stream.finalResponse();
	same([text, final.output_text, final.output.length], [whole, whole, 1], 'text');
	same([final.status, final.usage.output_tokens], ['incomplete', 24], 'end');
	same(types.map((t) => t.slice('response.'.length)), ['created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta',
		'output_text.done', 'content_part.done', 'output_item.done', 'incomplete'], 'events');
});

await test('responses with a schema', async () => {
	const pet = z.object({ kind: z.enum(['cat', 'dog']), tame: z.boolean() });
	const r = await client.responses.parse({ ...ask, max_output_tokens: 300, text: { format: zodTextFormat(pet, 'pet') } });
	must(['cat', 'dog'].includes(r.output_parsed?.kind), JSON.stringify(r.output));
});

await test('responses with a call that is required', async () => {
	const r = await client.responses.create(forced_response);
	same([r.status, r.output.length], ['completed', 1], 'head');
	const call = r.output[0];
	same([call.type, call.name, call.status], ['function_call', 'get_weather', 'completed'], 'item');
	must(['Oslo', 'Rome'].includes(JSON.parse(call.arguments).city), call.arguments);
	for (const c of [client, ...others]) {
		const whole = (await c.responses.create(forced_response)).output[0];
		const stream = c.responses.stream(forced_response);
		let pieces = '', n = 0;
		stream.on('response.function_call_arguments.delta', (e) => { pieces += e.delta; n++; });
		const final = await stream.finalResponse();
		same([pieces, final.output[0].arguments, final.output[0].name], [whole.arguments, whole.arguments, whole.name], 'the stream');
		must(c === client || n > 3, `${n} pieces`);
	}
	const input = [{ role: 'user', content: ask.input }, ...r.output, { type: 'function_call_output', call_id: call.call_id, output: 'rain' }];
	const next = await client.responses.create({ ...ask, input, tools: [flat] });
	must(next.usage.input_tokens > r.usage.input_tokens, 'the prompt did not grow');
	const warned = await client.responses.create({ ...ask, tools: [{ type: 'web_search' }, flat] });
	must(/^tools\[0\] of type web_search /.test(warned.warnings[0]), 'no warning');
	for (const tools of [[{ type: 'web_search' }], [flat, { type: 'custom', name: 'c' }], [flat, { type: 'mcp', server_label: 's' }]])
		must((await client.responses.create({ ...ask, tools })).output.length, 'tools that are left out');
	await refused(400, 'no_such', () => client.responses.create({ ...ask, tools: [{ type: 'no_such' }] }));
});

await test('responses: counted tokens', async () => {
	const r = await client.responses.create(ask);
	same((await client.responses.inputTokens.count({ model, input: ask.input })).input_tokens, r.usage.input_tokens, 'input_tokens');
	const more = await client.responses.inputTokens.count({ model, input: ask.input, instructions: 'Be brief.' });
	must(more.input_tokens > r.usage.input_tokens, 'instructions');
});

await test('responses that are kept', async () => {
	const first = await client.responses.create(ask);
	same((await client.responses.retrieve(first.id)).output_text, first.output_text, 'the same response');
	must((await client.responses.inputItems.list(first.id)).data.length === 1, 'input items');
	const next = await client.responses.create({ ...ask, input: 'And then?', previous_response_id: first.id });
	must(next.usage.input_tokens > first.usage.input_tokens, 'the conversation did not grow');
	await client.responses.delete(first.id);
	await refused(404, first.id, () => client.responses.retrieve(first.id));
});

await test('responses that are refused', async () => {
	await refused(400, 'previous_response_id', () => client.responses.create({ ...ask, previous_response_id: 'resp_1' }));
	await refused(400, 'input', () => client.responses.create({ ...ask, input: [{ type: 'computer_call' }] }));
	await refused(400, 'call_id', () => client.responses.create({ ...ask, input: [{ type: 'function_call_output', output: '' }] }));
	await refused(400, 'tools[0]', () => client.responses.create({ ...ask, tools: [{ type: 'function' }] }));
	await refused(400, 'input', () => client.responses.create({ ...ask, input: [] }));
	await refused(404, 'resp_1', () => client.responses.retrieve('resp_1'));
});

finish();
