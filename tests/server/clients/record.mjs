// record.mjs OUT - asks a server of its own through the packages of npm and writes what they send into OUT/PACKAGE.jsonl,
// a line each: {"name", "method", "path", "fields", "body"}. t_recorded replays these to jitserve.
//
// Run it in a folder where npm installed the packages that recorded/README names.
import http from 'node:http';
import fs from 'node:fs';

const out = process.argv[2];
let name = '', lines = [];
// What names the machine, the run or the connection is none of the request.
const dropped = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'date'];

const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } };
const base = { id: 'x', created: 1, model: 'tale' };
const events = (list) => list.map((e) => `data: ${typeof e === 'string' ? e : JSON.stringify(e)}\n\n`).join('');
const named = (list) => list.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join('');

function chat(q) {
	const calls = q.tools?.length && !q.messages.some((m) => m.role === 'tool');
	const content = q.response_format ? '{"city":"Oslo","warm":null}' : 'Yes.';
	const message = calls ? { role: 'assistant', content: null, tool_calls: [call] } : { role: 'assistant', content };
	const finish_reason = calls ? 'tool_calls' : 'stop';
	const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
	if (!q.stream)
		return { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage };
	const one = { ...base, object: 'chat.completion.chunk' };
	const delta = calls ? { role: 'assistant', tool_calls: [{ index: 0, ...call }] } : { role: 'assistant', content };
	return events([{ ...one, choices: [{ index: 0, delta, finish_reason: null }] },
		{ ...one, choices: [{ index: 0, delta: {}, finish_reason }] }, { ...one, choices: [], usage }, '[DONE]']);
}

function responses(q) {
	const calls = q.tools?.length && !JSON.stringify(q.input).includes('function_call_output');
	const text = q.text?.format?.type === 'json_schema' ? '{"city":"Oslo","warm":null}' : 'Yes.';
	const output = calls
		? [{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'get_weather', arguments: '{"city":"Oslo"}',
			status: 'completed' }]
		: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed',
			content: [{ type: 'output_text', text, annotations: [] }] }];
	const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'tale', output,
		usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 },
			output_tokens_details: { reasoning_tokens: 0 } } };
	if (!q.stream)
		return whole;
	return named([{ type: 'response.created', sequence_number: 0, response: { ...whole, status: 'in_progress', output: [] } },
		{ type: 'response.output_item.added', sequence_number: 1, output_index: 0, item: { ...output[0], content: [] } },
		{ type: 'response.content_part.added', sequence_number: 2, output_index: 0, item_id: 'msg_1', content_index: 0,
			part: { type: 'output_text', text: '', annotations: [] } },
		{ type: 'response.output_text.delta', sequence_number: 3, output_index: 0, item_id: 'msg_1', content_index: 0, delta: text },
		{ type: 'response.output_item.done', sequence_number: 4, output_index: 0, item: output[0] },
		{ type: 'response.completed', sequence_number: 5, response: whole }]);
}

function messages(q) {
	const calls = q.tools?.length && !JSON.stringify(q.messages).includes('tool_result');
	const content = calls ? [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } }]
		: [{ type: 'text', text: q.output_config || q.output_format ? '{"city":"Oslo"}' : 'Yes.' }];
	const whole = { id: 'msg_1', type: 'message', role: 'assistant', model: 'tale', content, stop_sequence: null,
		stop_reason: calls ? 'tool_use' : 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } };
	if (!q.stream)
		return whole;
	return named([{ type: 'message_start', message: { ...whole, content: [], stop_reason: null } },
		{ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
		{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Yes.' } },
		{ type: 'content_block_stop', index: 0 },
		{ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
		{ type: 'message_stop' }]);
}

function embedding(q) {
	const texts = Array.isArray(q.input) ? q.input : [q.input];
	const vector = q.encoding_format === 'base64' ? Buffer.from(new Float32Array([1, 0]).buffer).toString('base64') : [1, 0];
	return { object: 'list', model: 'tale', usage: { prompt_tokens: 1, total_tokens: 1 },
		data: texts.map((t, index) => ({ object: 'embedding', index, embedding: vector })) };
}

function ollama(path, q) {
	const own = { model: 'tale', created_at: '2026-01-01T00:00:00Z', done: true, done_reason: 'stop' };
	if (path === '/api/embed')
		return { model: 'tale', embeddings: [[1, 0]] };
	if (path === '/api/embeddings')
		return { embedding: [1, 0] };
	const calls = q.tools?.length && !q.messages.some((m) => m.role === 'tool');
	const message = { role: 'assistant', content: q.format ? '{"city":"Oslo"}' : 'Yes.' };
	if (calls)
		message.tool_calls = [{ function: { name: 'get_weather', arguments: { city: 'Oslo' } } }];
	const whole = path === '/api/chat' ? { ...own, message } : { ...own, response: 'Yes.' };
	return q.stream ? JSON.stringify(whole) + '\n' : whole;
}

function answer(method, path, q) {
	if (path.startsWith('/v1/models/'))
		return { id: 'tale', object: 'model', created: 1, owned_by: 'x' };
	const of = {
		'/v1/models': { object: 'list', data: [{ id: 'tale', object: 'model', created: 1, owned_by: 'x' }] },
		'/api/tags': { models: [] }, '/api/ps': { models: [] }, '/api/show': { details: {}, model_info: {} },
		'/api/version': { version: '0.9.0' }, '/v1/messages/count_tokens': { input_tokens: 1 },
		'/v1/completions': { ...base, object: 'text_completion', choices: [{ index: 0, text: 'Yes.', finish_reason: 'stop' }],
			usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
	};
	if (of[path])
		return q?.stream ? events([of[path], '[DONE]']) : of[path];
	return path === '/v1/chat/completions' ? chat(q) : path === '/v1/responses' ? responses(q)
		: path === '/v1/messages' ? messages(q) : path === '/v1/embeddings' ? embedding(q) : ollama(path, q);
}

const server = http.createServer((request, response) => {
	const parts = [];
	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const body = Buffer.concat(parts).toString(), fields = [];
		for (let i = 0; i < request.rawHeaders.length; i += 2)
			if (!dropped.includes(request.rawHeaders[i].toLowerCase()))
				fields.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
		lines.push(JSON.stringify({ name, method: request.method, path: request.url, fields, body }));
		const q = body ? JSON.parse(body) : null, a = answer(request.method, request.url.split('?')[0], q);
		response.setHeader('Content-Type', typeof a !== 'string' ? 'application/json'
			: request.url.startsWith('/api') ? 'application/x-ndjson' : 'text/event-stream');
		response.end(typeof a === 'string' ? a : JSON.stringify(a));
	});
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${server.address().port}`;

// A step of a package: what fails in the client's reading of the answer is told, and what was sent is kept.
async function step(what, f) {
	name = what;
	try {
		await f();
	} catch (e) {
		console.error(`${what}: ${String(e).slice(0, 200)}`);
	}
}
function write(file) {
	fs.writeFileSync(`${out}/${file}.jsonl`, lines.join('\n') + '\n');
	lines = [];
}
async function drain(stream) {
	for await (const one of stream)
		void one;
}

const { z } = await import('zod');
const City = z.object({ city: z.string(), warm: z.boolean().nullable() });
const user = [{ role: 'user', content: 'How warm is it in Oslo?' }];
const parameters = { type: 'object', properties: { city: { type: 'string', description: 'which' } }, required: ['city'],
	additionalProperties: false };
const tool = { type: 'function', function: { name: 'get_weather', description: 'the weather of a city', parameters } };
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

// ---- openai
{
	const { default: OpenAI } = await import('openai');
	const { zodResponseFormat, zodTextFormat } = await import('openai/helpers/zod');
	const c = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
	const model = 'tale', messages = user;
	await step('models', () => c.models.list());
	await step('model', () => c.models.retrieve('tale'));
	await step('chat', () => c.chat.completions.create({ model, messages, max_completion_tokens: 8, user: 'u', store: false }));
	await step('stream', async () => drain(await c.chat.completions.create({ model, messages, max_tokens: 8, stream: true,
		stream_options: { include_usage: true } })));
	await step('stream helper', async () => c.chat.completions.stream({ model, messages, max_tokens: 8 }).finalContent());
	await step('tools', () => c.chat.completions.create({ model, messages, tools: [tool], tool_choice: 'auto', max_tokens: 8 }));
	await step('results of tools', () => c.chat.completions.create({ model, max_tokens: 8, tools: [tool], messages: [...messages,
		{ role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'call_1', content: '7' }] }));
	await step('running tools', () => c.chat.completions.runTools({ model, messages, max_tokens: 8, tools: [{ type: 'function',
		function: { ...tool.function, parse: JSON.parse, function: () => '7 degrees' } }] }).finalContent());
	await step('structured', () => c.chat.completions.parse({ model, messages, max_tokens: 40,
		response_format: zodResponseFormat(City, 'city') }));
	await step('json', () => c.chat.completions.create({ model, messages, max_tokens: 20, response_format: { type: 'json_object' } }));
	await step('log probabilities', () => c.chat.completions.create({ model, messages, max_tokens: 3, logprobs: true, top_logprobs: 2 }));
	await step('refused: image', () => c.chat.completions.create({ model, max_tokens: 8, messages: [{ role: 'user', content: [
		{ type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,' + png } }] }] }));
	await step('completions', () => c.completions.create({ model, prompt: 'A tale', max_tokens: 8 }));
	await step('completions stream', async () => drain(await c.completions.create({ model, prompt: 'A tale', max_tokens: 8, stream: true })));
	await step('embeddings', () => c.embeddings.create({ model, input: ['a', 'b'] }));
	await step('embeddings of floats', () => c.embeddings.create({ model, input: 'a', encoding_format: 'float' }));
	await step('responses', () => c.responses.create({ model, input: 'How warm is it?', max_output_tokens: 16 }));
	await step('responses stream', async () => drain(await c.responses.create({ model, input: user, instructions: 'Be short.',
		max_output_tokens: 16, stream: true })));
	await step('responses tools', () => c.responses.create({ model, input: user, max_output_tokens: 16,
		tools: [{ type: 'function', name: 'get_weather', description: 'd', strict: true, parameters }] }));
	await step('responses structured', () => c.responses.parse({ model, input: user, max_output_tokens: 40,
		text: { format: zodTextFormat(City, 'city') } }));
	await step('refused: responses image', () => c.responses.create({ model, max_output_tokens: 16, input: [{ role: 'user', content: [
		{ type: 'input_image', image_url: 'data:image/png;base64,' + png, detail: 'auto' }] }] }));
	write('openai');
}

// ---- @anthropic-ai/sdk
{
	const { default: Anthropic } = await import('@anthropic-ai/sdk');
	const c = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
	const model = 'tale', messages = user, max_tokens = 16;
	const tools = [{ name: 'get_weather', description: 'd', input_schema: parameters }];
	await step('messages', () => c.messages.create({ model, messages, max_tokens, system: 'Be short.', temperature: 0.5 }));
	await step('stream', async () => drain(await c.messages.create({ model, messages, max_tokens, stream: true })));
	await step('stream helper', () => c.messages.stream({ model, messages, max_tokens }).finalMessage());
	await step('tools', () => c.messages.create({ model, messages, max_tokens, tools, tool_choice: { type: 'auto' } }));
	await step('results of tools', () => c.messages.create({ model, max_tokens, tools, messages: [...messages,
		{ role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } }] },
		{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '7' }] }] }));
	await step('thinking', () => c.messages.create({ model, messages, max_tokens: 1100, thinking: { type: 'enabled', budget_tokens: 1024 },
		stop_sequences: ['.'] }));
	await step('beta', () => c.beta.messages.create({ model, messages, max_tokens, betas: ['context-management-2025-06-27'] }));
	await step('structured', () => c.messages.create({ model, messages, max_tokens: 40, output_config: { format: { type: 'json_schema',
		schema: parameters } } }));
	await step('cache', () => c.messages.create({ model, max_tokens, system: [{ type: 'text', text: 'Be short.',
		cache_control: { type: 'ephemeral' } }], messages, metadata: { user_id: 'u' } }));
	await step('tokens', () => c.messages.countTokens({ model, messages, tools }));
	await step('models', () => c.models.list());
	await step('refused: image', () => c.messages.create({ model, max_tokens, messages: [{ role: 'user', content: [
		{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }] }] }));
	write('anthropic');
}

// ---- ollama
{
	const { Ollama } = await import('ollama');
	const c = new Ollama({ host: url }), model = 'tale', options = { num_predict: 8, temperature: 0.5 };
	await step('list', () => c.list());
	await step('show', () => c.show({ model }));
	await step('ps', () => c.ps());
	await step('version', () => c.version());
	await step('chat', () => c.chat({ model, messages: user, options }));
	await step('stream', async () => drain(await c.chat({ model, messages: user, options, stream: true, keep_alive: '5m' })));
	await step('tools', () => c.chat({ model, messages: user, options, tools: [tool] }));
	await step('results of tools', () => c.chat({ model, options, tools: [tool], messages: [...user, { role: 'assistant', content: '',
		tool_calls: [{ function: { name: 'get_weather', arguments: { city: 'Oslo' } } }] },
		{ role: 'tool', content: '7', tool_name: 'get_weather' }] }));
	await step('structured', () => c.chat({ model, messages: user, options: { num_predict: 30 }, format: z.toJSONSchema(City) }));
	await step('json', () => c.generate({ model, prompt: 'A tale', options, format: 'json' }));
	await step('generate', () => c.generate({ model, prompt: 'A tale', options, system: 'Be short.' }));
	await step('generate stream', async () => drain(await c.generate({ model, prompt: 'A tale', options, stream: true, raw: true })));
	await step('embed', () => c.embed({ model, input: ['a', 'b'] }));
	await step('embeddings', () => c.embeddings({ model, prompt: 'a' }));
	await step('refused: image', () => c.chat({ model, options, messages: [{ role: 'user', content: 'What?', images: [png] }] }));
	write('ollama');
}

// ---- ai, @ai-sdk/openai-compatible
{
	const { generateText, streamText, generateObject, embedMany, tool: made } = await import('ai');
	const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
	const p = createOpenAICompatible({ name: 'jitrun', baseURL: url + '/v1', apiKey: 'none', includeUsage: true,
		supportsStructuredOutputs: true });
	const model = p('tale'), messages = user, maxOutputTokens = 16, maxRetries = 0;
	const tools = { get_weather: made({ description: 'd', inputSchema: z.object({ city: z.string() }), execute: async () => '7' }) };
	await step('text', () => generateText({ model, messages, maxOutputTokens, maxRetries, system: 'Be short.', temperature: 0.5, seed: 7 }));
	await step('stream', async () => drain(streamText({ model, messages, maxOutputTokens, maxRetries }).textStream));
	await step('tools', async () => generateText({ model, messages, maxOutputTokens, maxRetries, tools, toolChoice: 'auto',
		stopWhen: ({ steps }) => steps.length === 2 }));
	await step('stream with tools', async () => drain(streamText({ model, messages, maxOutputTokens, maxRetries, tools }).fullStream));
	await step('structured', () => generateObject({ model, messages, maxOutputTokens: 40, maxRetries, schema: z.object({ city: z.string() }) }));
	await step('embeddings', () => embedMany({ model: p.textEmbeddingModel('tale'), values: ['a', 'b'], maxRetries }));
	await step('completions', () => generateText({ model: p.completionModel('tale'), prompt: 'A tale', maxOutputTokens, maxRetries }));
	await step('refused: image', () => generateText({ model, maxOutputTokens, maxRetries, messages: [{ role: 'user', content: [
		{ type: 'text', text: 'What?' }, { type: 'image', image: Buffer.from(png, 'base64') }] }] }));
	write('ai');
}

// ---- @langchain/openai
{
	const { ChatOpenAI, OpenAIEmbeddings, OpenAI } = await import('@langchain/openai');
	const configuration = { baseURL: url + '/v1' }, given = { model: 'tale', apiKey: 'none', maxRetries: 0, maxTokens: 16, configuration };
	const chat = new ChatOpenAI(given);
	await step('invoke', () => chat.invoke('How warm is it in Oslo?'));
	await step('stream', async () => drain(await chat.stream('How warm is it in Oslo?')));
	await step('tools', () => chat.bindTools([tool]).invoke('How warm is it in Oslo?'));
	await step('structured', () => new ChatOpenAI({ ...given, maxTokens: 40 }).withStructuredOutput(z.object({ city: z.string() })).invoke('Which?'));
	await step('structured by a call', () => chat.withStructuredOutput(z.object({ city: z.string() }), { method: 'functionCalling' }).invoke('Which?'));
	await step('responses', () => new ChatOpenAI({ ...given, useResponsesApi: true }).invoke('How warm is it in Oslo?'));
	await step('embeddings', () => new OpenAIEmbeddings(given).embedDocuments(['a', 'b']));
	await step('completions', () => new OpenAI(given).invoke('A tale'));
	await step('refused: image', () => chat.invoke([{ role: 'user', content: [{ type: 'image_url',
		image_url: { url: 'data:image/png;base64,' + png } }] }]));
	write('langchain');
}
server.close();
process.exit(0);
