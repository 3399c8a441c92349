// Runs ONNX files beside ONNX Runtime (npm: onnxruntime-node), in turns, and says how many times as fast jitrun is.
//
//   npm i --prefix FOLDER --ignore-scripts onnxruntime-node
//   bench/graphs/compare.mjs --modules FOLDER/node_modules --worker build/bench/graph_worker [options] FILE.onnx...
//
// --threads N    of each (2)
// --rounds N     turns of each (7), of
// --ms N         milliseconds at least (200)
// --sizes TEXT   of the dimensions that files name: "batch=1 n=128" ("")
// --isa NAME     of jitrun's code
// --report FILE  write the executable's report there
// --cpu          compare processor time, where other work shares the machine
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values: options, positionals: files } = parseArgs({
	allowPositionals: true,
	options: {
		modules: { type: "string" }, worker: { type: "string", default: "build/bench/graph_worker" },
		threads: { type: "string", default: "2" }, rounds: { type: "string", default: "7" },
		ms: { type: "string", default: "200" }, sizes: { type: "string", default: "" }, isa: { type: "string" },
		report: { type: "string" }, cpu: { type: "boolean", default: false },
	},
});
const ort = createRequire(resolve(options.modules ?? "node_modules", "x.js"))("onnxruntime-node");
const threads = Number(options.threads);
const sizes = Object.fromEntries(options.sizes.split(" ").filter(Boolean).map((s) => s.split("=")));

const arrays = {
	float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array,
	int8: Int8Array, bool: Uint8Array,
};

// The same numbers in each run: floats between -1 and 1, integers below 100.
function fill(type, n, seed) {
	const data = new arrays[type](n);
	let state = BigInt(seed + 1);
	for (let i = 0; i < n; i++) {
		state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
		const x = Number(state >> 33n) / 2 ** 31;
		if (type === "bool")
			data[i] = 1;
		else
			data[i] = type === "int64" ? BigInt(Math.floor(x * 100)) : type.startsWith("float") ? x * 2 - 1
				: Math.floor(x * 100);
	}
	return data;
}

function feeds(session) {
	return session.inputMetadata.map((m, i) => {
		const dims = m.shape.map((d) => (typeof d === "number" ? d : Number(sizes[d] ?? NaN)));
		if (dims.some(Number.isNaN))
			throw new Error(`input ${m.name} is ${m.shape}: give --sizes`);
		return new ort.Tensor(m.type, fill(m.type, dims.reduce((a, b) => a * b, 1), i), dims);
	});
}

class Worker {
	constructor(file, folder) {
		const args = [file, folder, options.threads, options.sizes];
		this.process = spawn(options.worker, options.isa ? [...args, options.isa] : args,
			{ stdio: ["pipe", "pipe", "inherit"] });
		this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
	}
	async answer() {
		const { value, done } = await this.lines.next();
		if (done || !value.startsWith("ok"))
			throw new Error(value ?? "the worker ended");
		return value.split(" ").slice(1).map(Number);
	}
	ask(line) {
		this.process.stdin.write(line + "\n");
		return this.answer();
	}
}

const cpuTime = () => { const u = process.cpuUsage(); return (u.user + u.system) * 1000; };
const wallTime = () => Number(process.hrtime.bigint());

async function turn(session, input, ms) {
	const wall = wallTime(), cpu = cpuTime();
	let runs = 0;
	do {
		await session.run(input);
		runs++;
	} while (wallTime() - wall < ms * 1e6);
	return [runs, wallTime() - wall, cpuTime() - cpu];
}

// The greatest difference, beside the greatest number.
function difference(outputs, names, folder) {
	let worst = 0;
	names.forEach((name, k) => {
		const mine = outputs[name], bytes = readFileSync(join(folder, `out${k}`));
		const { buffer, byteOffset, length } = bytes;
		const other = new arrays[mine.type](buffer.slice(byteOffset, byteOffset + length));
		let apart = 0, most = 0;
		for (let i = 0; i < mine.data.length; i++) {
			const d = Math.abs(Number(mine.data[i]) - Number(other[i]));
			apart = d > apart || Number.isNaN(d) ? d : apart;
			most = Math.max(most, Math.abs(Number(mine.data[i])));
		}
		worst = Math.max(worst, apart / (most || 1));
	});
	return worst;
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function compare(file) {
	const folder = mkdtempSync(join(tmpdir(), "graphs-"));
	try {
		const clock = options.cpu ? cpuTime : wallTime, begin = clock();
		const session = await ort.InferenceSession.create(file,
			{ intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: "sequential" });
		const opened = clock() - begin;
		const tensors = feeds(session);
		tensors.forEach((t, i) => writeFileSync(join(folder, `in${i}`), new Uint8Array(t.data.buffer)));
		const input = Object.fromEntries(tensors.map((t, i) => [session.inputNames[i], t]));
		const outputs = await session.run(input);
		const worker = new Worker(file, folder);
		const [read, open, first] = (await worker.answer()).slice(options.cpu ? 3 : 0);
		const apart = difference(outputs, session.outputNames, folder);
		const theirs = [], ours = [];
		for (let i = 0; i < Number(options.rounds); i++) {
			const at = options.cpu ? 2 : 1;
			const a = await turn(session, input, Number(options.ms)), b = await worker.ask(options.ms);
			theirs.push(a[at] / a[0]);
			ours.push(b[at] / b[0]);
		}
		if (options.report)
			await worker.ask("report " + options.report);
		worker.process.stdin.end();
		const ratios = theirs.map((t, i) => t / ours[i]), ratio = median(ratios);
		console.log([file.split("/").slice(-2).join("/"), (median(theirs) / 1e6).toFixed(3),
			(median(ours) / 1e6).toFixed(3),
			`${ratio.toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
			(opened / 1e6).toFixed(1),
			(read / 1e6).toFixed(1), (open / 1e6).toFixed(1), (first / 1e6).toFixed(2),
			apart.toExponential(1)].join(" | "));
		return ratio;
	} finally {
		rmSync(folder, { recursive: true });
	}
}

console.log(`${options.cpu ? "processor" : "wall"} time, ${threads} threads; ratio: ONNX Runtime's time by jitrun's`);
console.log("model | ONNX Runtime, ms | jitrun, ms | ratio (least to most) | its opening | ours: reading | " +
	"compiling | first run | difference");
const ratios = [];
for (const file of files) {
	try {
		ratios.push(await compare(file));
	} catch (e) {
		console.log(`${file}: ${e.message}`);
	}
}
if (ratios.length) {
	const mean = Math.exp(ratios.reduce((a, r) => a + Math.log(r), 0) / ratios.length);
	const list = [mean, Math.min(...ratios), Math.max(...ratios)].map((r) => r.toFixed(2));
	console.log(`geometric mean ${list[0]}, least ${list[1]}, most ${list[2]}`);
}
