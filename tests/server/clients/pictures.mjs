// pictures.mjs URL PNG PNG - the clients of npm send a picture to a server whose model sees, each in its own form: all are
// told the same, which is not what another picture gives.
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import { generateText } from 'ai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { test, must, same, finish } from './checks.mjs';

const url = process.argv[2];
const [picture, another] = process.argv.slice(3).map((path) => readFileSync(path));
const data = (bytes) => 'data:image/png;base64,' + bytes.toString('base64');
const text = 'What is it?';
const openai = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
const model = (await openai.models.list()).data[0].id;
let wanted, tokens;

async function plain(bytes) {
	const body = { model, max_tokens: 8, temperature: 0, messages: [{ role: 'user', content: [
		{ type: 'image_url', image_url: { url: data(bytes) } }, { type: 'text', text }] }] };
	const r = await (await fetch(url + '/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) })).json();
	return [r.choices[0].message.content, r.usage.prompt_tokens];
}

await test('by hand', async () => {
	[wanted, tokens] = await plain(picture);
	must(wanted.length > 0 && tokens > 20, `${tokens} tokens`);
	must((await plain(another))[0] !== wanted, 'another picture is the same');
});

await test('openai, chat', async () => {
	const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: data(picture), detail: 'low' } }, { type: 'text', text }] }];
	const r = await openai.chat.completions.create({ model, max_tokens: 8, temperature: 0, messages });
	same(r.choices[0].message.content, wanted, 'text');
	same(r.usage.prompt_tokens, tokens, 'tokens');
	const stream = await openai.chat.completions.create({ model, max_tokens: 8, temperature: 0, messages, stream: true });
	let streamed = '';
	for await (const chunk of stream)
		streamed += chunk.choices[0]?.delta?.content ?? '';
	same(streamed, wanted, 'the stream');
});

await test('openai, responses', async () => {
	const r = await openai.responses.create({ model, max_output_tokens: 8, temperature: 0, input: [{ role: 'user', content: [
		{ type: 'input_image', image_url: data(picture), detail: 'auto' }, { type: 'input_text', text }] }] });
	same(r.output_text, wanted, 'text');
});

await test('Anthropic', async () => {
	const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
	const messages = [{ role: 'user', content: [
		{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture.toString('base64') } }, { type: 'text', text }] }];
	const r = await client.messages.create({ model, max_tokens: 8, temperature: 0, messages });
	same(r.content.map((b) => b.text).join(''), wanted, 'text');
	same((await client.messages.countTokens({ model, messages })).input_tokens, tokens, 'counted');
});

await test('ollama', async () => {
	const client = new Ollama({ host: url });
	const options = { num_predict: 8, temperature: 0 };
	const r = await client.chat({ model, options, messages: [{ role: 'user', content: text, images: [new Uint8Array(picture)] }] });
	same(r.message.content, wanted, 'text');
	const g = await client.generate({ model, options, prompt: text, images: [picture.toString('base64')] });
	same(g.response, wanted, 'generate');
	must((await client.show({ model })).capabilities.includes('vision'), 'capabilities');
});

await test('ai', async () => {
	const provider = createOpenAICompatible({ name: 'jitrun', baseURL: url + '/v1' });
	const r = await generateText({ model: provider(model), maxOutputTokens: 8, temperature: 0, maxRetries: 0, messages: [{ role: 'user', content: [
		{ type: 'image', image: picture, mediaType: 'image/png' }, { type: 'text', text }] }] });
	same(r.text, wanted, 'text');
});

await test('langchain', async () => {
	const chat = new ChatOpenAI({ model, maxTokens: 8, temperature: 0, maxRetries: 0, apiKey: 'none', configuration: { baseURL: url + '/v1' } });
	const r = await chat.invoke([{ role: 'user', content: [{ type: 'image_url', image_url: { url: data(picture) } }, { type: 'text', text }] }]);
	same(r.content, wanted, 'text');
});

finish();
