/* programs/jitrun/doctor_rungs.c - jitrun doctor --report: the rungs below kernels of models, a layer, and tokens for a
 * minute. See doctor_report.h.
 *
 * Rungs 2 to 6 run small kernels of the kernel language. What they must give is known from plain loops here, or from
 * the same kernel on the CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/common/output.h"
#include "programs/jitrun/doctor_report.h"
#include "runtime/device/amd/amd_end.h"
#include "runtime/host/system.h"
#include "include/jitrun_kernel.h"

/* ---- kernels on a device */

struct array {
	void *p;
	uint64_t bytes;
};
enum { ARRAYS_MAX = 4 };

jit_compute *rung_compute(const char *device, jit_error *e)
{
	return jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = device, .cache_dir = ""), e);
}

jit_kernel *rung_kernel(jit_compute *c, const char *source, const char *constants, jit_error *e)
{
	return jit_kernel_open(c, &JIT_KERNEL_OPTIONS(.source = source, .path = "trial", .constants = constants), e);
}

/* Of memory of the caller's; the first parameter is a scalar where `scalar` is not NULL. */
static bool run_kernel(jit_kernel *k, const int64_t *scalar, const struct array *a, size_t n, jit_error *e)
{
	jit_launch *l = jit_launch_open(k, e);
	const size_t skip = scalar ? 1 : 0;
	bool ok = l && (!scalar || jit_launch_set_integer(l, 0, *scalar, e) == JIT_OK);

	for (size_t i = 0; ok && i < n; i++)
		ok = jit_launch_set_memory(l, i + skip, a[i].p, a[i].bytes, e) == JIT_OK;
	ok = ok && jit_launch_run(l, e) == JIT_OK;
	jit_launch_close(l);
	return ok;
}

/* ---- 1 and 2 */

bool rung_end(struct report *r)
{
	const size_t n = strcspn(r->device, ":");
	struct error err = { 0 };
	jit_error e = { 0 };
	jit_compute *c;

	if (r->units && !amd_run_end(r->device[n] ? r->device + n + 1 : "", &err))
		return report_stop(r, "a program that only ends ran", &err);
	if (!(c = rung_compute(r->device, &e)))
		return report_stop_public(r, "the device was opened", &e);
	jit_compute_close(c);
	rung_tried(r, 1, 0);
	return true;
}

static bool store_once(jit_kernel *k, uint32_t value, uint64_t *wrong, jit_error *e)
{
	uint32_t y = ~value;

	if (!run_kernel(k, &(int64_t){ value }, &(struct array){ &y, sizeof y }, 1, e))
		return false;
	*wrong += y != value;
	return true;
}

bool rung_store(struct report *r)
{
	static const char source[] = "kernel store(u32 v, out u32 y[1]) over (i in 1) { y[i] = v; }";
	const uint64_t tries = report_is_quick() ? 3 : 100;
	jit_error e = { 0 };
	uint64_t wrong = 0;
	jit_compute *c = rung_compute(r->device, &e);
	jit_kernel *k = c ? rung_kernel(c, source, NULL, &e) : NULL;
	bool ok = k != NULL;

	for (uint64_t i = 0; ok && i < tries; i++)
		ok = store_once(k, (uint32_t)(i * 0x9e3779b9u + 1), &wrong, &e);
	jit_kernel_close(k);
	jit_compute_close(c);
	if (!ok)
		return report_stop_public(r, "a kernel stored a word", &e);
	rung_tried(r, tries, wrong);
	return report_memory(r);
}

/* ---- 3 */

enum { ROWS = 64, WIDTH = 256 };

bool rung_workgroup(struct report *r)
{
	static const char source[] =
		"const i64 rows = 64; const i64 width = 256;\n"
		"kernel turn(in u32 x[rows][width], out u32 y[rows][width]) over (r in rows) {\n"
		"	tile u32 t[width];\n"
		"	each (j in 0..width) { t[j] = x[r][j] + u32(r); }\n"
		"	sync;\n"
		"	each (j in 0..width) { y[r][j] = t[width - 1 - j] * 3 + u32(j); }\n"
		"}\n";
	static uint32_t x[ROWS][WIDTH], y[ROWS][WIDTH];
	const uint64_t tries = report_is_quick() ? 2 : 50;
	const struct array arrays[] = { { x, sizeof x }, { y, sizeof y } };
	jit_error e = { 0 };
	uint64_t wrong = 0;
	jit_compute *c = rung_compute(r->device, &e);
	jit_kernel *k = c ? rung_kernel(c, source, NULL, &e) : NULL;
	bool ok = k != NULL;

	for (uint64_t i = 0; ok && i < tries; i++) {
		bool same = true;
		for (uint32_t j = 0; j < ROWS * WIDTH; j++)
			x[j / WIDTH][j % WIDTH] = j * 2654435761u + (uint32_t)i;
		memset(y, 0, sizeof y);
		ok = run_kernel(k, NULL, arrays, 2, &e);
		for (uint32_t j = 0; ok && j < ROWS * WIDTH; j++)
			same &= y[j / WIDTH][j % WIDTH] ==
			        (x[j / WIDTH][WIDTH - 1 - j % WIDTH] + j / WIDTH) * 3 + j % WIDTH;
		wrong += ok && !same;
	}
	jit_kernel_close(k);
	jit_compute_close(c);
	if (!ok)
		return report_stop_public(r, "workgroups used memory of their own", &e);
	rung_tried(r, tries, wrong);
	return true;
}

/* ---- 4 */

/* x, y and z are floats, d, e and f doubles, i, j and k integers without sign, all of the same bits. */
static const struct operation {
	const char *name, *value;
	char type; /* of the value: u32, f32 or f64 */
} operations[] = {
	{ "f32 sum", "x + y", 'f' },
	{ "f32 product", "x * y", 'f' },
	{ "f32 product and sum rounded twice", "x * y + z", 'f' },
	{ "f32 fma", "fma(x, y, z)", 'f' },
	{ "f32 quotient", "x / y", 'f' },
	{ "f32 root", "sqrt(x)", 'f' },
	{ "f32 min", "min(x, y)", 'f' },
	{ "f32 max", "max(x, y)", 'f' },
	{ "f32 round", "round(x)", 'f' },
	{ "f32 floor", "floor(x)", 'f' },
	{ "f32 ceil", "ceil(x)", 'f' },
	{ "f32 trunc", "trunc(x)", 'f' },
	{ "f32 exp", "exp(x)", 'f' },
	{ "f32 log", "log(x)", 'f' },
	{ "f32 to i32", "u32(i32(x))", 'u' },
	{ "f32 to u32", "u32(x)", 'u' },
	{ "i32 to f32", "f32(i32(i))", 'f' },
	{ "u32 to f32", "f32(i)", 'f' },
	{ "f32 compared", "x < y ? i : j", 'u' },
	{ "f64 sum", "d + e", 'd' },
	{ "f64 product", "d * e", 'd' },
	{ "f64 fma", "fma(d, e, f)", 'd' },
	{ "f64 quotient", "d / e", 'd' },
	{ "f64 root", "sqrt(d)", 'd' },
	{ "f32 to f64", "f64(x)", 'd' },
	{ "f64 to f32", "f32(d)", 'f' },
	{ "integer product", "i * j", 'u' },
	{ "high half of a product", "mulhi(i, j)", 'u' },
	{ "integer quotient", "i / j", 'u' },
	{ "remainder", "i % j", 'u' },
	{ "shifts", "(i << (j & 31)) ^ (k >> (j & 31))", 'u' },
	{ "rotation", "rotl(i, j)", 'u' },
	{ "bits set", "popcount(i)", 'u' },
	{ "leading zeros", "clz(i)", 'u' },
	{ "random numbers", "philox(i, j, k, i, j, k, 2)", 'u' },
};
enum { OPERATIONS = sizeof operations / sizeof *operations, NUMBERS = 4096 };

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Doubles whose upper halves are floats of all sizes: near 1, denormals, zeros, infinities, one NaN, and any. */
static uint64_t number(uint64_t *state)
{
	const uint64_t mantissa = (UINT64_C(1) << 52) - 1;
	const uint64_t bits = next(state), how = next(state) % 8, sign = bits & UINT64_C(1) << 63;

	return how < 3    ? sign | (UINT64_C(1023) - 4 + bits % 9) << 52 | (bits >> 12 & mantissa)
	       : how == 3 ? sign | (bits & mantissa)
	       : how == 4 ? sign
	       : how == 5 ? sign | UINT64_C(0x7ff) << 52
	       : how == 6 ? UINT64_C(0x7ff8) << 48
	                  : bits;
}

static uint64_t in[3][NUMBERS], out[2][NUMBERS];

static bool run_operation(const char *device, const struct operation *op, uint64_t *result, jit_error *e)
{
	char source[1200];
	const struct array a[] = {
		{ in[0], sizeof in[0] }, { in[1], sizeof in[1] }, { in[2], sizeof in[2] }, { result, sizeof out[0] }
	};
	jit_compute *c = rung_compute(device, e);

	snprintf(source, sizeof source,
	         "const i64 n = %d;\n"
	         "kernel operation(in u64 p[n], in u64 q[n], in u64 r[n], out u64 o[n]) over (at in n) {\n"
	         "	f64 d = bits_f64(p[at]); f64 e = bits_f64(q[at]); f64 f = bits_f64(r[at]);\n"
	         "	u32 i = u32(p[at] >> 32); u32 j = u32(q[at] >> 32); u32 k = u32(r[at] >> 32);\n"
	         "	f32 x = bits_f32(i); f32 y = bits_f32(j); f32 z = bits_f32(k);\n"
	         "	o[at] = %s%s%s;\n"
	         "}\n",
	         NUMBERS,
	         op->type == 'f'   ? "u64(bits_u32("
	         : op->type == 'd' ? "bits_u64("
	                           : "u64(",
	         op->value, op->type == 'f' ? "))" : ")");
	jit_kernel *k = c ? rung_kernel(c, source, NULL, e) : NULL;
	bool ok = k && run_kernel(k, NULL, a, 4, e);
	jit_kernel_close(k);
	jit_compute_close(c);
	return ok;
}

static void note_difference(struct report *r, json_t *list, const struct operation *op)
{
	size_t i = 0;

	while (out[0][i] == out[1][i])
		i++;
	if (!json_array_size(list))
		report_line("differs", "%s: number %zu gives 0x%llx, expected 0x%llx", op->name, i,
		            (unsigned long long)out[0][i], (unsigned long long)out[1][i]);
	json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "operation", op->name, "number", (json_int_t)i,
	                                      "found", (json_int_t)out[0][i], "expected", (json_int_t)out[1][i]));
	rung_tried(r, 0, 1);
}

bool rung_instructions(struct report *r)
{
	const size_t step = report_is_quick() ? 6 : 1;
	json_t *differ = json_array();
	jit_error e = { 0 };
	uint64_t state = 1, tries = 0;
	bool ok = true;

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < NUMBERS; i++)
			in[k][i] = number(&state);
	json_object_set_new(r->object, "instructions", differ);
	for (size_t i = 0; ok && i < OPERATIONS; i += step, tries++) {
		memset(out, 0, sizeof out);
		ok = run_operation(r->device, &operations[i], out[0], &e) &&
		     run_operation("cpu", &operations[i], out[1], &e);
		if (ok && memcmp(out[0], out[1], sizeof out[0]) != 0)
			note_difference(r, differ, &operations[i]);
	}
	rung_tried(r, tries, 0);
	return ok || report_stop_public(r, "operations were compared", &e);
}

/* ---- 8 and 10 */

bool rung_layer(struct report *r)
{
	return report_logits(
		r, "layer", "arch=qwen3,hidden=256,layers=1,heads=4,kv_heads=2,head_dim=64,ffn=512,vocab=1024", "q8_0");
}

enum { VOCAB = 1024, PROMPT = 24, TOKENS = 32 };

/* FNV-1a of the logits of a prompt and tokens behind it, each the likeliest. */
static bool sum_text(jit_session *s, uint64_t *sum, jit_error *e)
{
	int32_t ids[PROMPT], id = 0;

	*sum = UINT64_C(0xcbf29ce484222325);
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * 53 + 7) % VOCAB;
	if (jit_session_rewind(s, 0, e) != JIT_OK || jit_session_feed(s, ids, PROMPT, e) != JIT_OK)
		return false;
	for (int t = report_is_quick() ? TOKENS - 2 : 0;; t++) {
		const float *row = jit_session_logits(s, e);
		if (!row)
			return false;
		for (size_t i = 0; i < VOCAB; i++) {
			uint32_t bits;
			memcpy(&bits, &row[i], sizeof bits);
			*sum = (*sum ^ bits) * UINT64_C(0x100000001b3);
			id = row[i] > row[id] ? (int32_t)i : id;
		}
		if (t == TOKENS)
			return true;
		if (jit_session_feed(s, &id, 1, e) != JIT_OK)
			return false;
	}
}

static bool sum_texts(const char *device, double seconds, uint64_t first, uint64_t *tries, uint64_t *wrong,
                      uint64_t *sum, jit_error *e)
{
	static const char shape[] = "arch=llama,hidden=512,layers=4,heads=8,kv_heads=2,head_dim=64,ffn=1024,vocab=1024";
	struct trial_model m;
	bool ok = trial_open(&m, shape, "q4_k_m", device, NULL, e);
	jit_session *s = ok ? trial_session(&m, JIT_KV_F16, e) : NULL;
	const double until = system_seconds() + seconds;

	ok = s != NULL;
	do {
		ok = ok && sum_text(s, sum, e);
		*tries += ok;
		*wrong += ok && first && *sum != first;
	} while (ok && system_seconds() < until);
	jit_session_close(s);
	trial_close(&m);
	return ok;
}

bool rung_tokens(struct report *r)
{
	uint64_t expected = 0, found = 0, tries = 0, wrong = 0, ignored = 0;
	jit_error e = { 0 };
	bool ok = sum_texts("cpu", 0, 0, &ignored, &ignored, &expected, &e) &&
	          sum_texts(r->device, report_is_quick() ? 0.2 : 60, expected, &tries, &wrong, &found, &e);

	json_object_set_new(r->object, "texts",
	                    json_pack("{s:b, s:I, s:I, s:i}", "done", ok, "tries", (json_int_t)tries, "wrong",
	                              (json_int_t)wrong, "tokens_each", TOKENS));
	if (!ok)
		return report_stop_public(r, "texts were computed one after another", &e);
	rung_tried(r, tries, wrong);
	report_line("texts", "%llu of %d tokens each, %llu of them with other bits than the CPU's",
	            (unsigned long long)tries, TOKENS, (unsigned long long)wrong);
	return report_speed(r);
}
