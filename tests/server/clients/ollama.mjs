// ollama.mjs URL NARROW - the ollama client of npm against servers of the model "tale", of which the second has room for
// one answer.
import { Ollama } from 'ollama';
import { test, must, same, refused, occupied, finish } from './checks.mjs';

const client = new Ollama({ host: process.argv[2] });
const model = 'tale';
const messages = [{ role: 'user', content: 'Tell me about a cat.' }];
const options = { num_predict: 24, seed: 7 };
const tools = [{
	type: 'function',
	function: {
		name: 'get_weather',
		description: 'the weather of a city',
		parameters: {
			type: 'object',
			properties: { city: { type: 'string', enum: ['Oslo', 'Rome'] } },
			required: ['city'],
			additionalProperties: false,
		},
	},
}];
let whole;

async function collect(stream) {
	const all = [];
	for await (const part of stream)
		all.push(part);
	return all;
}

async function refuses(status, words, ask) {
	await refused(status, words, async () => {
		try {
			return await ask();
		} catch (e) {
			e.status = e.status_code;
			throw e;
		}
	});
}

await test('models', async () => {
	const list = await client.list();
	same(list.models.map((m) => m.name), ['tale:latest'], 'models');
	must(!isNaN(new Date(list.models[0].modified_at)), 'modified_at');
	const show = await client.show({ model });
	must(show.capabilities.includes('completion'), 'capabilities');
	const architecture = show.model_info['general.architecture'];
	same(show.model_info[`${architecture}.context_length`], 1024, 'context_length');
	same(show.details, list.models[0].details, 'details');
	await refuses(404, 'not found', () => client.show({ model: 'nothing' }));
	const running = await client.ps();
	same(running.models.map((m) => m.name), ['tale:latest'], 'in memory');
	must(new Date(running.models[0].expires_at) > new Date(), 'expires_at');
	must(/^\d+\.\d+\.\d+/.test((await client.version()).version), 'version');
});

await test('a conversation', async () => {
	const r = await client.chat({ model, messages, options });
	whole = r.message.content;
	must(whole.length > 0 && r.message.role === 'assistant', 'no text');
	same([r.done, r.done_reason, r.eval_count], [true, 'length', 24], 'end');
	must(r.total_duration >= r.load_duration + r.prompt_eval_duration + r.eval_duration, 'durations');
	must(new Date(r.created_at) <= new Date(), 'created_at');
});

await test('a stream has the same text', async () => {
	const parts = await collect(await client.chat({ model: 'tale:latest', messages, options, stream: true }));
	same(parts.map((p) => p.message.content).join(''), whole, 'text');
	must(parts.length > 5, `${parts.length} parts`);
	same(parts.map((p) => p.done), [...Array(parts.length - 1).fill(false), true], 'done');
});

await test('a stream that the client ends', async () => {
	const stream = await client.chat({ model, messages, options: { seed: 7 }, ignore_eos: true, stream: true });
	let parts = 0;
	try {
		for await (const part of stream)
			if (++parts === 3)
				stream.abort();
	} catch (e) {
		must(e.name === 'AbortError', String(e));
	}
	must(parts >= 3, `${parts} parts`);
	same((await client.chat({ model, messages, options })).message.content, whole, 'text after it');
});

await test('a prompt', async () => {
	const request = { model, prompt: 'Once upon a time', raw: true, options };
	const r = await client.generate(request);
	const parts = await collect(await client.generate({ ...request, stream: true }));
	same(parts.map((p) => p.response).join(''), r.response, 'text');
	const first = await client.generate({ model, prompt: 'Once upon a time', options });
	must(first.context.length > 24, 'context');
	const more = await client.generate({ model, prompt: ' And then', context: first.context, options });
	must(more.prompt_eval_count > first.prompt_eval_count + 24, 'the context counts');
	same((await client.generate({ model, prompt: '' })).done_reason, 'load', 'loading');
});

await test('a schema', async () => {
	const format = { type: 'object', properties: { tame: { type: 'boolean' } }, required: ['tame'], additionalProperties: false };
	const r = await client.chat({ model, messages, format, options: { num_predict: 200, temperature: 0 } });
	same(typeof JSON.parse(r.message.content).tame, 'boolean', r.message.content);
	const any = await client.generate({ model, prompt: 'A cat', format: 'json', options: { num_predict: 1000, temperature: 0 } });
	must(any.done_reason === 'length' || JSON.parse(any.response), any.response);
});

await test('a call', async () => {
	const request = { model, messages, tools, tool_choice: 'required', options: { num_predict: 1000, seed: 3 } };
	const r = await client.chat(request);
	same(r.message.tool_calls.length, 1, 'calls');
	const call = r.message.tool_calls[0].function;
	same(call.name, 'get_weather', 'name');
	must(['Oslo', 'Rome'].includes(call.arguments.city), JSON.stringify(call));
	const parts = await collect(await client.chat({ ...request, stream: true }));
	same(parts.flatMap((p) => p.message.tool_calls ?? []).map((c) => c.function), [call], 'in a stream');
	const answer = await client.chat({
		model, tools, options,
		messages: [...messages, r.message, { role: 'tool', content: 'Rain.', tool_name: call.name }],
	});
	must(answer.eval_count > 0, 'the result of a call');
});

await test('log probabilities', async () => {
	const r = await client.chat({ model, messages, logprobs: true, top_logprobs: 3, options: { num_predict: 4 } });
	same(r.logprobs.map((l) => l.top_logprobs.length), [3, 3, 3, 3], 'entries');
	must(r.logprobs.every((l) => l.logprob <= l.top_logprobs[0].logprob), 'the likeliest');
});

await test('vectors', async () => {
	const r = await client.embed({ model, input: ['a cat', 'the sea'] });
	same(r.embeddings.map((v) => v.length), [256, 256], 'vectors');
	const length = Math.hypot(...r.embeddings[0]);
	must(Math.abs(length - 1) < 1e-5, `length ${length}`);
	same((await client.embed({ model, input: 'a cat', dimensions: 32 })).embeddings[0].length, 32, 'dimensions');
	same((await client.embeddings({ model, prompt: 'the sea' })).embedding, r.embeddings[1], 'the older form');
});

await test('what is refused', async () => {
	const images = [new Uint8Array([1, 2, 3])];
	await refuses(400, 'cannot see', () => client.chat({ model, messages: [{ ...messages[0], images }], options }));
	await refuses(400, 'temperature', () => client.chat({ model, messages, options: { temperature: 'hot' } }));
	await refuses(400, 'top_p', () => client.generate({ model, prompt: 'a', options: { top_p: -1 } }));
	await refuses(404, 'not found', () => client.delete({ model: 'nothing' }));
	await refuses(403, 'jitserve', () => client.delete({ model }));
	await refuses(404, 'not found', () => client.copy({ source: 'nothing', destination: 'other' }));
	await refuses(403, '--pull-with', () => client.pull({ model: 'owner/other' }));
	await refuses(403, '--presets-dir', () => client.create({ model: 'other', from: model }));
});

await test('a server that is full', async () => {
	const narrow = new Ollama({ host: process.argv[3] });
	await occupied(process.argv[3], () => refuses(429, '', () => narrow.chat({ model, messages, options })));
});

finish();
