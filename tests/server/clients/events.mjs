// tests/server/clients/events.mjs URL - /models/sse as a client reads it that knows the format of event streams and
// nothing of jitserve: events in the order in which a model leaves and comes, and two listeners that hear the same.
import assert from 'node:assert';

const url = process.argv[2];

// By the standard: lines by CR, LF or both, fields, events behind empty lines, comments left out.
async function* events(signal) {
	const answer = await fetch(`${url}/models/sse`, { signal });
	assert.equal(answer.status, 200);
	assert.match(answer.headers.get('content-type'), /^text\/event-stream/);
	let held = '', data = [], type = '';
	for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
		held += text;
		for (let found; (found = held.match(/\r\n|\n|\r(?!$)/)); ) {
			const line = held.slice(0, found.index);
			held = held.slice(found.index + found[0].length);
			if (line === '') {
				if (data.length)
					yield { type: type || 'message', data: JSON.parse(data.join('\n')) };
				data = [];
				type = '';
			} else if (line === ':' || line.startsWith(':')) {
				yield { type: 'comment' };
			} else {
				const [, name, value] = line.match(/^([^:]*):? ?(.*)$/s);
				if (name === 'data')
					data.push(value);
				else if (name === 'event')
					type = value;
			}
		}
	}
}

async function listen() {
	const stop = new AbortController(), heard = [], stream = events(stop.signal);
	assert.equal((await stream.next()).value.type, 'comment'); // who reads that is listening
	const reads = (async () => {
		try {
			for await (const event of stream)
				if (event.type !== 'comment')
					heard.push(event);
		} catch (e) {
			assert.equal(e.name, 'AbortError');
		}
	})();
	const until = async (test) => {
		for (let i = 0; i < 600 && !heard.some(test); i++)
			await new Promise((done) => setTimeout(done, 50));
		assert(heard.some(test), JSON.stringify(heard));
	};
	return { heard, until, end: async () => (stop.abort(), await reads) };
}

async function ask(path, body) {
	const answer = await fetch(`${url}${path}`, {
		method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body)
	});
	assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`);
	return answer.json();
}

const status = (name) => (event) => event.data.data?.status === name;
const model = (await (await fetch(`${url}/v1/models`)).json()).data[0].id;
const one = await listen(), two = await listen();
await ask('/models/unload', { model });
await one.until(status('unloaded'));
await ask('/models/load', { model });
await one.until(status('loaded'));
await two.until(status('loaded'));
const words = (l) => l.heard.map((e) => `${e.data.model} ${e.data.event} ${e.data.data?.status}`);
assert.deepEqual(words(one), words(two));
const order = one.heard.map((e) => e.data.data?.status);
assert(order.indexOf('unloaded') < order.indexOf('loading'), order);
assert(order.indexOf('loading') < order.lastIndexOf('loaded'), order);
assert(one.heard.every((e) => e.type === 'message' && e.data.model === model), JSON.stringify(one.heard));
assert(one.heard.find(status('loaded')).data.data.info.meta);
// One that leaves disturbs nobody.
await one.end();
await ask('/models/unload', { model });
await two.until((e) => two.heard.filter(status('unloaded')).length === 2);
await ask('/models/load', { model });
await two.end();
