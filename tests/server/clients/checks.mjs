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

export function finish() {
	console.log(`${passed} passed, ${failed} failed`);
	process.exit(failed || !passed ? 1 : 0);
}
