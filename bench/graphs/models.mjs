// Writes ONNX files of models in real sizes, with weights made by chance, as PyTorch exports them (opset 17).
//
//   bench/graphs/models.mjs [--hollow] FOLDER [NAME...]    resnet18 mobilenet vit bert minilm gru unet
//
// --hollow: weights are left out; compare.py makes them by chance where the files are used.
// bert-texts and minilm-texts, made where they are named, take texts of any number and length with a mask, and give the
// mean over each: for bench/texts_compare.mjs.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// ---- the form of protobuf: a field is its number, its kind and its bytes

function varint(n) {
	const out = [];
	let x = BigInt.asUintN(64, BigInt(n));
	for (; x > 127n; x >>= 7n)
		out.push(Number(x & 127n) | 128);
	return Buffer.from([...out, Number(x)]);
}
const whole = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, b) => Buffer.concat([varint((field << 3) | 2), varint(b.length), b]);
const text = (field, s) => bytes(field, Buffer.from(s));
const message = (field, parts) => bytes(field, Buffer.concat(parts));
function real(field, x) {
	const b = Buffer.alloc(4);
	b.writeFloatLE(x);
	return Buffer.concat([varint((field << 3) | 5), b]);
}

const FLOAT = 1, INT64 = 7, hollow = process.argv[2] === "--hollow";

function attribute(name, value) {
	const list = Array.isArray(value);
	if (typeof value === "string")
		return message(5, [text(1, name), text(4, value), whole(20, 3)]);
	if (typeof value === "object" && !list)
		return message(5, [text(1, name), real(2, value.real), whole(20, 1)]);
	return message(5, [text(1, name), ...(list ? value.map((v) => whole(8, v)) : [whole(3, value)]),
		whole(20, list ? 7 : 2)]);
}

let state = 1;
function chance() {
	state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
	return state / 2 ** 31 - 1;
}

class Graph {
	constructor(name) {
		this.name = name;
		this.nodes = [];
		this.initializers = [];
		this.inputs = [];
		this.count = 0;
	}
	value(type, dims) {
		const size = (d) => (typeof d === "string" ? text(2, d) : whole(1, d));
		const shape = message(2, dims.map((d) => message(1, [size(d)])));
		return message(2, [message(1, [whole(1, type), shape])]);
	}
	input(name, type, dims) {
		this.inputs.push(message(11, [text(1, name), this.value(type, dims)]));
		return name;
	}
	tensor(type, dims, raw) {
		const name = `w${this.count++}`;
		this.initializers.push(message(5, [...dims.map((d) => whole(1, d)), whole(2, type), text(8, name),
			bytes(9, raw)]));
		return name;
	}
	// Numbers around `middle`, as large as a layer of `fan` inputs likes them.
	weight(dims, fan = 1, middle = 0) {
		if (hollow)
			return this.hollow(dims, Math.sqrt(3 / fan), middle);
		const data = new Float32Array(dims.reduce((a, b) => a * b, 1));
		const size = Math.sqrt(3 / fan);
		for (let i = 0; i < data.length; i++)
			data[i] = middle + chance() * size;
		return this.tensor(FLOAT, dims, Buffer.from(data.buffer));
	}
	hollow(dims, size, middle) {
		const name = `w${this.count++}`;
		this.initializers.push(message(5, [...dims.map((d) => whole(1, d)), whole(2, FLOAT), text(8, name),
			text(12, `${size} ${middle}`)]));
		return name;
	}
	wholes(...list) {
		return this.tensor(INT64, [list.length], Buffer.from(new BigInt64Array(list.map(BigInt)).buffer));
	}
	scalar(x) {
		return this.tensor(FLOAT, [], Buffer.from(new Float32Array([x]).buffer));
	}
	node(op, inputs, attributes = {}, outputs = 1) {
		const out = Array.from({ length: outputs }, () => `v${this.count++}`);
		this.nodes.push(message(1, [...inputs.map((i) => text(1, i)), ...out.map((o) => text(2, o)),
			text(3, `n${this.nodes.length}`), text(4, op),
			...Object.entries(attributes).map(([k, v]) => attribute(k, v))]));
		return outputs === 1 ? out[0] : out;
	}
	write(folder, output, dims) {
		const graph = message(7, [...this.nodes, text(2, this.name), ...this.initializers, ...this.inputs,
			message(12, [text(1, output), this.value(FLOAT, dims)])]);
		const model = Buffer.concat([whole(1, 8), graph, message(8, [text(1, ""), whole(2, 17)])]);
		writeFileSync(join(folder, `${this.name}.onnx`), model);
	}
}

// ---- layers

function conv(g, x, from, to, size, { stride = 1, groups = 1, pad = size >> 1 } = {}) {
	const fan = (from / groups) * size * size;
	return g.node("Conv", [x, g.weight([to, from / groups, size, size], fan), g.weight([to], fan)],
		{ kernel_shape: [size, size], strides: [stride, stride], pads: [pad, pad, pad, pad], group: groups,
			dilations: [1, 1] });
}
const relu = (g, x) => g.node("Relu", [x]);
function linear(g, x, from, to) {
	return g.node("Add", [g.weight([to], from), g.node("MatMul", [x, g.weight([from, to], from)])]);
}
function norm(g, x, n) {
	return g.node("LayerNormalization", [x, g.weight([n], 100, 1), g.weight([n], 100)],
		{ axis: -1, epsilon: { real: 1e-5 } });
}
function gelu(g, x) {
	const e = g.node("Erf", [g.node("Div", [x, g.scalar(Math.SQRT2)])]);
	return g.node("Mul", [g.node("Mul", [x, g.node("Add", [e, g.scalar(1)])]), g.scalar(0.5)]);
}
// hidden: what is added to scores, or nothing. 0 in a shape is the input's size.
function attention(g, x, n, width, heads, hidden) {
	const each = width / heads, batch = hidden ? 0 : 1;
	const split = (name, axes) => g.node("Transpose",
		[g.node("Reshape", [linear(g, x, width, width), g.wholes(batch, n, heads, each)])], { perm: axes });
	const q = split("q", [0, 2, 1, 3]), k = split("k", [0, 2, 3, 1]), v = split("v", [0, 2, 1, 3]);
	let scores = g.node("Div", [g.node("MatMul", [q, k]), g.scalar(Math.sqrt(each))]);
	if (hidden)
		scores = g.node("Add", [scores, hidden]);
	const mixed = g.node("MatMul", [g.node("Softmax", [scores], { axis: -1 }), v]);
	const turned = g.node("Transpose", [mixed], { perm: [0, 2, 1, 3] });
	return linear(g, g.node("Reshape", [turned, g.wholes(batch, n, width)]), width, width);
}

// ---- models

function resnet18(folder) {
	const g = new Graph("resnet18");
	let x = relu(g, conv(g, g.input("x", FLOAT, [1, 3, 224, 224]), 3, 64, 7, { stride: 2 }));
	x = g.node("MaxPool", [x], { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] });
	let from = 64;
	for (const to of [64, 128, 256, 512])
		for (let block = 0; block < 2; block++) {
			const stride = block === 0 && to > 64 ? 2 : 1;
			const y = conv(g, relu(g, conv(g, x, from, to, 3, { stride })), to, to, 3);
			x = relu(g, g.node("Add", [y, stride > 1 ? conv(g, x, from, to, 1, { stride }) : x]));
			from = to;
		}
	x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], { axis: 1 });
	x = g.node("Gemm", [x, g.weight([1000, 512], 512), g.weight([1000], 512)], { transB: 1 });
	g.write(folder, x, [1, 1000]);
}

// MobileNet v2.
function mobilenet(folder) {
	const g = new Graph("mobilenet");
	const clip = (x) => g.node("Clip", [x, g.scalar(0), g.scalar(6)]);
	let x = clip(conv(g, g.input("x", FLOAT, [1, 3, 224, 224]), 3, 32, 3, { stride: 2 })), from = 32;
	for (const [grow, to, times, first] of [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2],
		[6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]])
		for (let i = 0; i < times; i++) {
			const inner = from * grow, stride = i ? 1 : first;
			let y = grow > 1 ? clip(conv(g, x, from, inner, 1)) : x;
			y = conv(g, clip(conv(g, y, inner, inner, 3, { stride, groups: inner })), inner, to, 1);
			x = stride === 1 && from === to ? g.node("Add", [x, y]) : y;
			from = to;
		}
	x = clip(conv(g, x, from, 1280, 1));
	x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], { axis: 1 });
	x = g.node("Gemm", [x, g.weight([1000, 1280], 1280), g.weight([1000], 1280)], { transB: 1 });
	g.write(folder, x, [1, 1000]);
}

function vit(folder) {
	const g = new Graph("vit"), n = 197, width = 768;
	let x = conv(g, g.input("x", FLOAT, [1, 3, 224, 224]), 3, width, 16, { stride: 16, pad: 0 });
	x = g.node("Transpose", [g.node("Reshape", [x, g.wholes(1, width, 196)])], { perm: [0, 2, 1] });
	x = g.node("Concat", [g.weight([1, 1, width]), x], { axis: 1 });
	x = g.node("Add", [x, g.weight([1, n, width], 1000)]);
	for (let i = 0; i < 12; i++) {
		x = g.node("Add", [x, attention(g, norm(g, x, width), n, width, 12)]);
		x = g.node("Add", [x, linear(g, gelu(g, linear(g, norm(g, x, width), width, 3072)), 3072, width)]);
	}
	x = g.node("Gather", [norm(g, x, width), g.tensor(INT64, [], Buffer.alloc(8))], { axis: 1 });
	x = g.node("Gemm", [x, g.weight([1000, width], width), g.weight([1000], width)], { transB: 1 });
	g.write(folder, x, [1, 1000]);
}

function bert(folder, name = "bert", width = 768, layers = 12, n = 128) {
	const g = new Graph(name);
	let x = g.node("Gather", [g.weight([30522, width]), g.input("ids", INT64, [1, n])], { axis: 0 });
	x = norm(g, g.node("Add", [x, g.weight([1, n, width])]), width);
	for (let i = 0; i < layers; i++) {
		x = norm(g, g.node("Add", [x, attention(g, x, n, width, 12)]), width);
		const inner = gelu(g, linear(g, x, width, 4 * width));
		x = norm(g, g.node("Add", [x, linear(g, inner, 4 * width, width)]), width);
	}
	g.write(folder, x, [1, n, width]);
}

function texts(folder, name, width, layers) {
	const g = new Graph(name), sizes = ["batch", "n"];
	const ids = g.input("ids", INT64, sizes), mask = g.input("mask", INT64, sizes);
	const n = g.node("Slice", [g.node("Shape", [ids]), g.wholes(1), g.wholes(2)]);
	const positions = g.node("Slice", [g.weight([512, width]), g.wholes(0), n, g.wholes(0)]);
	const one = g.node("Cast", [mask], { to: FLOAT });
	const hidden = g.node("Mul", [g.node("Sub", [g.scalar(1), g.node("Unsqueeze", [one, g.wholes(1, 2)])]),
		g.scalar(-3.4028234e38)]);
	let x = g.node("Add", [g.node("Gather", [g.weight([30522, width]), ids], { axis: 0 }), positions]);
	x = norm(g, x, width);
	for (let i = 0; i < layers; i++) {
		x = norm(g, g.node("Add", [x, attention(g, x, 0, width, 12, hidden)]), width);
		const inner = gelu(g, linear(g, x, width, 4 * width));
		x = norm(g, g.node("Add", [x, linear(g, inner, 4 * width, width)]), width);
	}
	const column = g.node("Unsqueeze", [one, g.wholes(2)]);
	const sum = g.node("ReduceSum", [g.node("Mul", [x, column]), g.wholes(1)], { keepdims: 0 });
	x = g.node("Div", [sum, g.node("ReduceSum", [column, g.wholes(1)], { keepdims: 0 })]);
	g.write(folder, x, ["batch", width]);
}

// Two layers of 512, 64 steps.
function gru(folder) {
	const g = new Graph("gru"), n = 64, width = 512;
	let x = g.input("x", FLOAT, [n, 1, width]);
	for (let i = 0; i < 2; i++) {
		[x] = g.node("GRU", [x, g.weight([1, 3 * width, width], width), g.weight([1, 3 * width, width], width),
			g.weight([1, 6 * width], width)], { hidden_size: width, linear_before_reset: 1 }, 2);
		x = g.node("Squeeze", [x, g.wholes(1)]);
	}
	g.write(folder, x, [n, 1, width]);
}

function unet(folder) {
	const g = new Graph("unet"), sizes = [32, 64, 128, 256];
	const twice = (x, from, to) => relu(g, conv(g, relu(g, conv(g, x, from, to, 3)), to, to, 3));
	const kept = [];
	let x = g.input("x", FLOAT, [1, 3, 256, 256]), from = 3;
	for (const to of sizes) {
		if (from > 3)
			x = g.node("MaxPool", [x], { kernel_shape: [2, 2], strides: [2, 2] });
		kept.push((x = twice(x, from, to)));
		from = to;
	}
	for (let i = sizes.length - 1; i-- > 0;) {
		const to = sizes[i];
		x = g.node("ConvTranspose", [x, g.weight([from, to, 2, 2], from), g.weight([to], from)],
			{ kernel_shape: [2, 2], strides: [2, 2] });
		x = twice(g.node("Concat", [x, kept[i]], { axis: 1 }), 2 * to, to);
		from = to;
	}
	g.write(folder, conv(g, x, from, 2, 1), [1, 2, 256, 256]);
}

const models = { resnet18, mobilenet, vit, bert, minilm: (folder) => bert(folder, "minilm", 384, 6), gru, unet };
const more = { "bert-texts": (folder) => texts(folder, "bert-texts", 768, 12),
	"minilm-texts": (folder) => texts(folder, "minilm-texts", 384, 6) };
const [folder, ...names] = process.argv.slice(hollow ? 3 : 2);
mkdirSync(folder, { recursive: true });
for (const name of names.length ? names : Object.keys(models))
	(models[name] ?? more[name])(folder);
