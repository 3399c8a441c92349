// checks.mjs - what the scripts of the clients have in common: named checks, and the exit status at the end.
let failed = 0;
let passed = 0;

export function must(value, what) {
	if (!value)
		throw new Error(what);
}

export function same(got, wanted, what) {
	must(JSON.stringify(got) === JSON.stringify(wanted), `${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

export async function test(name, body) {
	try {
		await body();
		passed++;
	} catch (e) {
		failed++;
		console.log(`FAIL: ${name}: ${e?.status ?? ''} ${e?.stack ?? e}`);
	}
}

// The request must be refused with this status, and its message must have the words.
export async function refused(status, words, ask) {
	let answer;
	try {
		answer = await ask();
	} catch (e) {
		must(e.status === status, `status ${e.status}, expected ${status}: ${e.message}`);
		must(e.message.includes(words), `"${e.message}" has no "${words}"`);
		return;
	}
	throw new Error('was not refused: ' + JSON.stringify(answer));
}

// A fetch that remembers which answers had a status of 400 and above.
export function counting() {
	const refused = [];
	const counted = async (...given) => {
		const answer = await fetch(...given);
		if (answer.status >= 400)
			refused.push(`${answer.status} ${answer.url}: ${await answer.clone().text()}`);
		return answer;
	};
	return { refused, fetch: counted };
}

// While the one place of a slow server and the one in its queue are taken: until a second after it is asked.
export async function occupied(url, body) {
	const control = new AbortController();
	const long = JSON.stringify({ prompt: 'The', max_tokens: 1000, ignore_eos: true });
	const taken = [1, 2].map(() => fetch(url + '/v1/completions', { method: 'POST', body: long, signal: control.signal }).catch(() => {}));
	const number = async (name) => {
		const text = await (await fetch(url + '/metrics')).text();
		return Number(text.match(new RegExp(`^${name}\\{.*\\} (\\S+)$`, 'm'))[1]);
	};
	const waits = async () => await number('llamacpp:requests_processing') < 1 || await number('llamacpp:requests_deferred') < 1;
	for (const end = Date.now() + 20000; await waits(); )
		must(Date.now() < end, 'the queue is not full');
	setTimeout(() => control.abort(), 1000);
	await body();
	await Promise.all(taken);
}

export function finish() {
	console.log(`${passed} passed, ${failed} failed`);
	process.exit(failed || !passed ? 1 : 0);
}
