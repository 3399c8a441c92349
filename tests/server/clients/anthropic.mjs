// anthropic.mjs URL NARROW NAMED ELEMENTS - the Anthropic client of npm against servers of the model "tale": one with room
// for one answer, and two whose templates teach other forms of calls.
import Anthropic from '@anthropic-ai/sdk';
import { test, must, same, refused, occupied, finish } from './checks.mjs';

const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
const others = process.argv.slice(4).map((url) => new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 }));
const messages = [{ role: 'user', content: 'Tell me about a cat.' }];
const request = { model: 'tale', messages, max_tokens: 24, seed: 7 };
const tools = [{
	name: 'get_weather',
	description: 'the weather of a city',
	input_schema: { type: 'object', properties: { city: { enum: ['Oslo', 'Rome'] } }, required: ['city'], additionalProperties: false },
}];
const forced = { model: 'tale', messages, max_tokens: 1000, seed: 3, tools, tool_choice: { type: 'any' } };
let whole, asked;

function is_weather(block) {
	same([block?.type, block?.name], ['tool_use', 'get_weather'], 'block');
	must(['Oslo', 'Rome'].includes(block.input.city), JSON.stringify(block.input));
}

await test('messages', async () => {
	const r = await client.messages.create(request);
	same([r.type, r.role, r.stop_reason], ['message', 'assistant', 'max_tokens'], 'head');
	whole = r.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
	must(whole.length > 0, 'no text');
	same(r.usage.output_tokens, 24, 'output_tokens');
	asked = r.usage.input_tokens + r.usage.cache_read_input_tokens;
});

await test('a stream has the same text', async () => {
	const stream = client.messages.stream(request);
	let text = '', pieces = 0;
	stream.on('text', (t) => { text += t; pieces++; });
	const final = await stream.finalMessage();
	same(text, whole, 'text');
	same(final.content.filter((b) => b.type === 'text').map((b) => b.text).join(''), whole, 'the final message');
	same([final.stop_reason, final.usage.output_tokens], ['max_tokens', 24], 'end');
	must(pieces > 3, `${pieces} pieces`);
});

await test('events of a raw stream', async () => {
	const types = [];
	for await (const event of await client.messages.create({ ...request, stream: true }))
		if (types.at(-1) !== event.type)
			types.push(event.type);
	same(types, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'], 'events');
});

await test('a stream that the client ends', async () => {
	const stream = await client.messages.create({ ...request, max_tokens: 100000, stream: true });
	let events = 0;
	for await (const event of stream)
		if (++events === 3)
			stream.controller.abort();
	must(events >= 3 && events < 200, `${events} events`);
});

await test('counted tokens', async () => {
	const r = await client.messages.countTokens({ model: 'tale', messages });
	same(r.input_tokens, asked, 'input_tokens');
});

await test('a text that ends the answer', async () => {
	const stop = whole.slice(4, 8);
	const r = await client.messages.create({ ...request, stop_sequences: [stop] });
	same([r.stop_reason, r.stop_sequence], ['stop_sequence', stop], 'end');
	same(r.content[0].text, whole.slice(0, whole.indexOf(stop)), 'text');
});

await test('a call that is required', async () => {
	const r = await client.messages.create(forced);
	same(r.stop_reason, 'tool_use', 'stop_reason');
	is_weather(r.content.at(-1));
});

await test('a call in a stream', async () => {
	for (const c of [client, ...others]) {
		const stream = c.messages.stream(forced);
		let json = '', pieces = 0;
		stream.on('inputJson', (part) => { json += part; pieces++; });
		const final = await stream.finalMessage();
		same(final.stop_reason, 'tool_use', 'stop_reason');
		is_weather(final.content.at(-1));
		same(JSON.parse(json), final.content.at(-1).input, 'the pieces');
		must(c === client || pieces > 3, `${pieces} pieces`);
	}
});

await test('a call that is cut off is no block of its own', async () => {
	let seen = 0;
	for (const [one, max_tokens] of others.flatMap((c) => [40, 24, 18, 12].map((n) => [c, n]))) {
		const r = await one.messages.create({ ...forced, max_tokens });
		const s = await one.messages.create({ ...forced, max_tokens, stream: true });
		let begun = 0, stop_reason, json = '';
		for await (const e of s) {
			begun += e.type === 'content_block_start' && e.content_block.type === 'tool_use';
			json += e.delta?.partial_json ?? '';
			stop_reason = e.delta?.stop_reason ?? stop_reason;
		}
		same(stop_reason, r.stop_reason, 'stop_reason');
		if (r.stop_reason !== 'max_tokens' || !begun)
			continue;
		let parsed = true;
		try { JSON.parse(json); } catch { parsed = false; }
		same(r.content.map((b) => b.type), [parsed ? 'tool_use' : 'text'], json);
		seen += !parsed;
	}
	must(seen > 0, 'none was cut off inside a call');
});

await test('the result of a call goes back', async () => {
	const first = await client.messages.create(forced);
	const result = { type: 'tool_result', tool_use_id: first.content.at(-1).id, content: 'rain' };
	const more = [...messages, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
	const r = await client.messages.countTokens({ model: 'tale', messages: more, tools });
	must(r.input_tokens > first.usage.input_tokens + first.usage.cache_read_input_tokens, 'the prompt did not grow');
});

await test('requests that are wrong', async () => {
	await refused(400, 'messages', () => client.messages.create({ ...request, messages: [] }));
	await refused(400, 'top_p', () => client.messages.create({ ...request, top_p: -1 }));
	await refused(400, 'tool_use_id', () => client.messages.create({ ...request, messages: [{ role: 'user', content: [{ type: 'tool_result', content: '' }] }] }));
	await refused(400, 'tools[0]', () => client.messages.create({ ...request, tools: [{ input_schema: {} }] }));
	await refused(400, 'tool_choice', () => client.messages.create({ ...request, tools, tool_choice: { type: 'tool' } }));
	await refused(400, 'cannot see', () => client.messages.create({ ...request, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }] }] }));
});

await test('a server that is busy is asked again', async () => {
	let tries = 0;
	const counted = (...a) => { tries++; return fetch(...a); };
	const narrow = (maxRetries) => new Anthropic({ baseURL: process.argv[3], apiKey: 'none', maxRetries, fetch: counted });
	await occupied(process.argv[3], async () => {
		await refused(429, 'wait', () => narrow(0).messages.create(request));
		const r = await narrow(60).messages.create(request);
		same(r.content.filter((b) => b.type === 'text').map((b) => b.text).join(''), whole, 'text');
		must(tries > 2, `${tries} tries`);
	});
});

finish();
