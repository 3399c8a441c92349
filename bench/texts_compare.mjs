// Texts that models embed in a second, beside llama.cpp's server and ONNX Runtime, in turns.
//
//   npm i --prefix FOLDER --ignore-scripts onnxruntime-node
//   bench/texts_compare.mjs --files FOLDER [--modules FOLDER/node_modules] [--llama llama-server] [options]
//
// Models with weights by chance (bench/make_encoder.py, bench/graphs/models.mjs) are made in --files once. jitserve and
// llama.cpp's server read the same GGUF file and are sent the same texts. ONNX Runtime has its own file of the same
// shape, and pads the texts of a batch; it is compared with the library, without a server.
//
// --build FOLDER   where jitserve and bench/texts are (build)
// --shapes LIST    of base,minilm (both)
// --types LIST     of F32,F16,BF16,Q8_0, of the GGUF files (F32,F16,Q8_0); ONNX Runtime's is F32
// --lengths LIST   of tokens, or LEAST-MOST, each with ":texts" at once (16:32,128:32,8-128:32,128:1)
// --threads N      of each (2)
// --rounds N       turns of each (5), of
// --ms N           milliseconds at least (1000)
// --llama-args T   more options of llama.cpp's server ("-np 32 -c 16384 -b 4096 -ub 4096")
// A line has the ratio of wall times and that of processor times: median, least and most of the rounds.
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
	options: {
		files: { type: "string" }, modules: { type: "string" }, llama: { type: "string" },
		build: { type: "string", default: "build" }, shapes: { type: "string", default: "base,minilm" },
		types: { type: "string", default: "F32,F16,Q8_0" },
		lengths: { type: "string", default: "16:32,128:32,8-128:32,128:1" },
		threads: { type: "string", default: "2" }, rounds: { type: "string", default: "5" },
		ms: { type: "string", default: "1000" },
		"llama-args": { type: "string", default: "-np 32 -c 16384 -b 4096 -ub 4096" },
	},
});
if (!options.files) {
	console.error("usage: texts_compare.mjs --files FOLDER [--modules FOLDER] [--llama PROGRAM]");
	process.exit(2);
}
const here = import.meta.dirname ?? dirname(new URL(import.meta.url).pathname);
const threads = Number(options.threads), rounds = Number(options.rounds), ms = Number(options.ms);
mkdirSync(options.files, { recursive: true });

function made(name, program, args) {
	const path = join(options.files, name);
	if (!existsSync(path))
		execFileSync(program, args(path), { stdio: "inherit" });
	return path;
}

// { texts, least, most } of "8-128:32".
function lengths(word) {
	const [, least, most, texts] = /^(\d+)(?:-(\d+))?(?::(\d+))?$/.exec(word).map(Number);
	return { word, least, most: most || least, texts: texts || 32 };
}

// As bench/texts spreads them.
const lengthOf = (l, i) => l.least + Math.floor(((i * 37) % l.texts) * (l.most - l.least) / Math.max(l.texts - 1, 1));
const idOf = (i, k) => 999 + ((i * 512 + k) * 7919) % 29500;

const now = () => performance.now() * 1e6;

// ---- those that are measured: turn() gives [runs, wall, processor time], in nanoseconds

class Library {
	constructor(file) {
		this.process = spawn(resolve(options.build, "bench/texts"), ["--worker", file, options.threads],
			{ stdio: ["pipe", "pipe", "inherit"] });
		this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
	}
	async turn(l, time = ms) {
		this.process.stdin.write(`${l.texts} ${l.least} ${l.most} ${time}\n`);
		const { value, done } = await this.lines.next();
		if (done || !value.startsWith("ok"))
			throw new Error(value ?? "bench/texts ended");
		return value.split(" ").slice(1).map(Number);
	}
	close() {
		this.process.stdin.end();
	}
}

function freePort() {
	return new Promise((done) => {
		const s = createServer().listen(0, "127.0.0.1", () => {
			const { port } = s.address();
			s.close(() => done(port));
		});
	});
}

class Server {
	static async open(program, args) {
		const s = new Server(), port = await freePort();
		s.url = `http://127.0.0.1:${port}`;
		s.process = spawn(resolve(program), args(port), { stdio: "ignore" });
		for (let i = 0; ; i++) {
			const answer = await fetch(s.url + "/health").catch(() => null);
			if (answer?.ok)
				return s;
			if (i > 600 || s.process.exitCode !== null)
				throw new Error(`${program} does not answer`);
			await new Promise((done) => setTimeout(done, 100));
		}
	}
	// utime and stime of /proc, in hundredths of a second.
	processor() {
		const fields = readFileSync(`/proc/${this.process.pid}/stat`, "latin1").split(") ")[1].split(" ");
		return (Number(fields[11]) + Number(fields[12])) * 1e7;
	}
	async turn(l, time = ms) {
		// Two tokens are the model's own.
		const words = (i) => Array.from({ length: Math.max(lengthOf(l, i) - 2, 1) },
			(_, k) => `w${idOf(i, k)}`);
		const input = Array.from({ length: l.texts }, (_, i) => words(i).join(" "));
		const body = JSON.stringify({ input, model: "x", encoding_format: "base64" });
		const wall = now(), cpu = this.processor();
		let runs = 0;
		do {
			const answer = await fetch(this.url + "/v1/embeddings",
				{ method: "POST", headers: { "content-type": "application/json" }, body });
			const reply = await answer.json();
			if (reply.data?.length !== l.texts)
				throw new Error(JSON.stringify(reply).slice(0, 300));
			this.tokens = reply.usage.prompt_tokens;
			runs++;
		} while (now() - wall < time * 1e6);
		return [runs, now() - wall, this.processor() - cpu];
	}
	close() {
		this.process.kill();
	}
}

class Onnx {
	static async open(file) {
		const o = new Onnx();
		o.ort = createRequire(resolve(options.modules, "x.js"))("onnxruntime-node");
		o.session = await o.ort.InferenceSession.create(file, { intraOpNumThreads: threads,
			interOpNumThreads: 1, executionMode: "sequential", graphOptimizationLevel: "all" });
		return o;
	}
	async turn(l, time = ms) {
		const n = Math.max(...Array.from({ length: l.texts }, (_, i) => lengthOf(l, i)));
		const ids = new BigInt64Array(l.texts * n), mask = new BigInt64Array(l.texts * n);
		for (let i = 0; i < l.texts; i++)
			for (let k = 0; k < lengthOf(l, i); k++) {
				ids[i * n + k] = BigInt(idOf(i, k));
				mask[i * n + k] = 1n;
			}
		const feeds = { ids: new this.ort.Tensor("int64", ids, [l.texts, n]),
			mask: new this.ort.Tensor("int64", mask, [l.texts, n]) };
		const cpuTime = () => { const u = process.cpuUsage(); return (u.user + u.system) * 1000; };
		const wall = now(), cpu = cpuTime();
		let runs = 0;
		do {
			await this.session.run(feeds);
			runs++;
		} while (now() - wall < time * 1e6);
		return [runs, now() - wall, cpuTime() - cpu];
	}
	close() {}
}

// ---- in turns

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const spread = (list) => [median(list), Math.min(...list), Math.max(...list)].map((x) => x.toFixed(2)).join(" ");

async function compare(name, ours, theirs, l) {
	const wall = [], cpu = [], rate = [[], []];
	await ours.turn(l, 1);
	await theirs.turn(l, 1);
	if (ours.tokens !== theirs.tokens)
		throw new Error(`${name}: ${ours.tokens} tokens beside ${theirs.tokens}`);
	for (let i = 0; i < rounds; i++) {
		const a = await ours.turn(l), b = await theirs.turn(l);
		wall.push((b[1] / b[0]) / (a[1] / a[0]));
		cpu.push((b[2] / b[0]) / (a[2] / a[0]));
		[a, b].forEach((t, k) => rate[k].push(l.texts * t[0] / (t[2] / 1e9)));
	}
	console.log([name, l.word, median(rate[0]).toFixed(1), median(rate[1]).toFixed(1), spread(wall), spread(cpu)]
		.join(" | "));
}

async function pair(name, open) {
	const opened = [];
	try {
		for (const one of open)
			opened.push(await one());
		for (const word of options.lengths.split(","))
			await compare(name, ...opened, lengths(word));
	} catch (e) {
		console.log(`${name}: ${e.message}`);
	} finally {
		opened.forEach((o) => o.close());
	}
}

console.log(`${threads} threads; texts for each second of processor time, and how many times as fast jitrun is, by ` +
	"wall and by processor time: median, least, most");
console.log("beside | tokens:texts | jitrun | other | wall | processor");
for (const shape of options.shapes.split(",")) {
	const gguf = (type) => made(`${shape}-${type}.gguf`, "python3",
		(path) => [join(here, "make_encoder.py"), shape, path, type]);
	if (options.modules) {
		const onnx = shape === "base" ? "bert-texts" : "minilm-texts";
		const file = made(onnx + ".onnx", "node", () => [join(here, "graphs/models.mjs"), options.files, onnx]);
		await pair(`ONNX Runtime, ${shape} F32`, [() => new Library(gguf("F32")), () => Onnx.open(file)]);
	}
	for (const type of options.llama ? options.types.split(",") : []) {
		const file = gguf(type);
		await pair(`llama.cpp, ${shape} ${type}`, [
			() => Server.open(join(options.build, "jitserve"),
				(port) => [file, "--port", port, "--threads", options.threads]),
			() => Server.open(options.llama, (port) => ["-m", file, "--port", port, "-t", options.threads,
				"-tb", options.threads, "--embeddings", "--pooling", "mean",
				...options["llama-args"].split(" ")]),
		]);
	}
}
