// styles.mjs URL - the clients of npm choose an adapter by the name of a model, of a server of "tale" with the adapters
// "shout", which tells in capitals, and "whisper", which tells in lower case.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import { generateText } from 'ai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { test, must, same, refused, finish } from './checks.mjs';

const url = process.argv[2], names = ['tale', 'shout', 'whisper'];
const openai = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
const prompt = 'Once upon a time', content = 'Tell me about a cat.', told = {};
const messages = [{ role: 'user', content }];

function is_in_style(name, text) {
	const large = (text.match(/[A-Z]/g) ?? []).length, small = (text.match(/[a-z]/g) ?? []).length;
	must(large + small > 30, `${name}: ${text}`);
	if (name === 'shout')
		must(large > 20 * small, `${name}: ${text}`);
	else if (name === 'whisper')
		must(large === 0 && !/[.,!?"]/.test(text), `${name}: ${text}`);
	else
		must(large > 0 && small > 5 * large, `${name}: ${text}`);
}

await test('models', async () => {
	const list = (await openai.models.list()).data;
	same(list.map((m) => m.id), names, 'names');
	same(list.map((m) => m.parent ?? null), [null, 'tale', 'tale'], 'parents');
	await refused(404, 'sing', () => openai.chat.completions.create({ model: 'sing', messages }));
});

await test('openai, completions', async () => {
	for (const model of names)
		is_in_style(model, (await openai.completions.create({ model, prompt, max_tokens: 60, temperature: 0 })).choices[0].text);
});

await test('openai, chat, and all at once', async () => {
	const ask = async (model) => {
		const r = await openai.chat.completions.create({ model, messages, max_tokens: 60, temperature: 0 });
		same(r.model, model, 'the name that answers');
		return r.choices[0].message.content;
	};
	for (const model of names)
		is_in_style(model, told[model] = await ask(model));
	const many = names.flatMap((model) => [model, model, model]);
	same(await Promise.all(many.map(ask)), many.map((model) => told[model]), 'texts');
});

await test('anthropic', async () => {
	const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
	for (const model of names)
		same((await client.messages.create({ model, messages, max_tokens: 60, temperature: 0 })).content[0].text, told[model], model);
});

await test('ollama', async () => {
	const client = new Ollama({ host: url });
	for (const model of names) {
		const r = await client.chat({ model, messages, options: { num_predict: 60, temperature: 0 } });
		same(r.message.content, told[model], model);
	}
});

await test('ai', async () => {
	const provider = createOpenAICompatible({ name: 'jitserve', baseURL: url + '/v1' });
	for (const model of names)
		same((await generateText({ model: provider(model), messages, maxOutputTokens: 60, temperature: 0, maxRetries: 0 })).text, told[model], model);
});

await test('langchain', async () => {
	for (const model of names) {
		const chat = new ChatOpenAI({ model, apiKey: 'none', maxTokens: 60, temperature: 0, maxRetries: 0, configuration: { baseURL: url + '/v1' } });
		same((await chat.invoke(content)).content, told[model], model);
	}
});

finish();
