/* tests/programs/quant_files.c - what tests of jitquant read, and a look at what it wrote.
 *
 *   quant_files DIR            writes into a folder:
 *     odd.gguf                   a model that runs, in F32, whose rows are no multiple of 256
 *     experts.gguf               one tensor with four matrices, keys of every type, and an alignment of 64
 *     flat.gguf                  the same four as tensors of their own
 *     experts.imatrix, flat.imatrix, flat.dat   their importances, the last in the older form
 *   quant_files --same A B     status 0 when B has every key of A, with the same value and in the same order, but for
 *                              those that say what types the file has
 *   quant_files --near SOURCE A B   for each tensor of SOURCE, which is F32: status 0 when A and B have it in the same
 *                              type, and A is off by no more than B, by the sum of squares, and 1 % of that
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"
#include "tests/quantise/imatrix_files.h"
#include "tests/runtime/tiny_model.h"

enum { COLUMNS = 256, ROWS = 8, EXPERTS = 4 };
static const char *const flat_name[EXPERTS] = { "blk.0.ffn_down.weight", "blk.1.ffn_down.weight",
	                                        "blk.2.ffn_down.weight", "blk.3.ffn_down.weight" };

static void odd(const char *dir)
{
	const struct tiny_model t = {
		.arch = "llama",
		.layers = 2,
		.hidden = 96,
		.ffn = 160,
		.heads = 3,
		.kv_heads = 1,
		.head_dim = 32,
		.vocab = 320,
		.type = DTYPE_F32
	};
	struct error err = { 0 };
	size_t n;
	uint8_t *p = tiny_gguf(&t, DTYPE_F32, &n, &err);

	if (!p) {
		fprintf(stderr, "quant_files: %s\n", err.text);
		exit(1);
	}
	tiny_write(dir, "odd.gguf", p, n);
	free(p);
}

static float next(void)
{
	static uint32_t seed = 1;

	seed = seed * 1664525 + 1013904223;
	return (float)((int32_t)(seed >> 16) - 32768) / 65536;
}

static void put_keys(struct gguf_writer *w)
{
	static const uint64_t value = 0x4045000000000000;
	static const int32_t numbers[] = { 1, -2, 3 };
	char key[8];

	gguf_write_string(w, "general.architecture", "llama");
	gguf_write_u32(w, "general.file_type", 0);
	gguf_write_u32(w, "split.count", 1);
	for (int t = 0; t < GGUF_TYPE_COUNT; t++) {
		snprintf(key, sizeof key, "k%d", t);
		if (t != GGUF_STRING && t != GGUF_ARRAY)
			gguf_write_scalar(w, key, (enum gguf_type)t, &value);
	}
	gguf_write_strings(w, "words", (const char *const[]){ "a", "", "three" }, 3);
	gguf_write_array(w, "numbers", GGUF_I32, 3, numbers, sizeof numbers);
	gguf_write_nested(w, "nested", 4, 2, 3);
}

static void finish(struct gguf_writer *w, const char *dir, const char *name)
{
	size_t n;
	uint8_t *p = gguf_writer_finish(w, &n);

	tiny_write(dir, name, p, n);
	gguf_writer_free(w);
	free(p);
}

static void models(const char *dir, const float *x)
{
	const uint64_t ne[] = { COLUMNS, ROWS, EXPERTS };
	const size_t one = COLUMNS * ROWS * sizeof *x;
	struct gguf_writer w;

	gguf_writer_start(&w, 3, 64);
	put_keys(&w);
	gguf_write_tensor(&w, "blk.0.ffn_norm.weight", DTYPE_F32, 1, (const uint64_t[]){ 3 }, x, 12);
	gguf_write_tensor(&w, "blk.0.ffn_down_exps.weight", DTYPE_F32, 3, ne, x, EXPERTS * one);
	finish(&w, dir, "experts.gguf");
	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.architecture", "llama");
	for (int e = 0; e < EXPERTS; e++)
		gguf_write_tensor(&w, flat_name[e], DTYPE_F32, 2, ne, x + e * COLUMNS * ROWS, one);
	finish(&w, dir, "flat.gguf");
}

/* The third expert was never asked. */
static void importances(const char *dir, const float *sums)
{
	static const float calls[EXPERTS] = { 5, 5, 0, 5 };
	struct imatrix_part whole = { "blk.0.ffn_down_exps.weight", COLUMNS, EXPERTS, sums, calls }, flat[EXPERTS];
	unsigned parts = 0;
	size_t n;

	for (int e = 0; e < EXPERTS; e++)
		if (calls[e] > 0)
			flat[parts++] = (struct imatrix_part){ flat_name[e], COLUMNS, 1, sums + e * COLUMNS, calls };
	uint8_t *p = imatrix_gguf(&whole, 1, 2, &n);
	tiny_write(dir, "experts.imatrix", p, n);
	free(p);
	p = imatrix_gguf(flat, parts, 2, &n);
	tiny_write(dir, "flat.imatrix", p, n);
	free(p);
	p = imatrix_old(flat, parts, 2, &n);
	tiny_write(dir, "flat.dat", p, n);
	free(p);
}

/* ---- looking */

static void open_file(struct file *f, struct gguf *g, const char *path)
{
	struct error err = { 0 };

	if (!file_open(f, path, &err) || !gguf_open(g, f, false, &err)) {
		fprintf(stderr, "quant_files: %s\n", err.text);
		exit(1);
	}
}

static bool is_of_types(const struct gguf_kv *kv)
{
	return (kv->key.n == 17 && memcmp(kv->key.p, "general.file_type", 17) == 0) ||
	       (kv->key.n == 28 && memcmp(kv->key.p, "general.quantization_version", 28) == 0) ||
	       (kv->key.n > 6 && memcmp(kv->key.p, "split.", 6) == 0);
}

static bool same_key(const struct gguf_kv *a, const struct gguf_kv *b)
{
	return a->key.n == b->key.n && memcmp(a->key.p, b->key.p, a->key.n) == 0 && a->type == b->type &&
	       a->item == b->item && a->count == b->count && a->bytes == b->bytes &&
	       memcmp(a->data, b->data, a->bytes) == 0;
}

static int same(const char *a, const char *b)
{
	struct file fa = { 0 }, fb = { 0 };
	struct gguf ga = { 0 }, gb = { 0 };
	uint64_t at = 0;
	bool ok = true;

	open_file(&fa, &ga, a);
	open_file(&fb, &gb, b);
	for (uint64_t i = 0; i < ga.n_kv && ok; i++)
		if (!is_of_types(&ga.kv[i]))
			ok = at < gb.n_kv && same_key(&ga.kv[i], &gb.kv[at++]);
	ok = ok && ga.alignment == gb.alignment && ga.n_tensors == gb.n_tensors && !gguf_find(&gb, "split.count") &&
	     gguf_find(&gb, "general.file_type") && gguf_find(&gb, "general.quantization_version");
	gguf_free(&ga);
	gguf_free(&gb);
	file_close(&fa);
	file_close(&fb);
	return !ok;
}

static float weight(const struct gguf_tensor *t, const uint8_t *row, uint32_t k)
{
	uint16_t half;
	float x;

	if (t->type == DTYPE_F32) {
		memcpy(&x, row + 4 * k, 4);
		return x;
	}
	if (t->type == DTYPE_F16) {
		memcpy(&half, row + 2 * k, 2);
		return plain_f16_to_f32(half);
	}
	struct plain_quant w = plain_quant(t->type, row, k);
	return w.scale * (float)w.q + (w.has_minimum ? w.minimum : 0);
}

static uint8_t *bytes_of(const struct file *f, const struct gguf_tensor *t)
{
	uint8_t *p = malloc(t->bytes);
	struct error err = { 0 };

	if (!p || !file_read(f, t->offset, t->bytes, p, &err)) {
		fprintf(stderr, "quant_files: %s\n", err.text);
		exit(1);
	}
	return p;
}

/* The sum of the squares by which a tensor is off. */
static double off(const float *x, const struct file *f, const struct gguf_tensor *t)
{
	uint8_t *bytes = bytes_of(f, t);
	uint64_t columns = t->ne[0], rows = t->ne[1], stride = dtype_row_bytes(t->type, columns);
	double sum = 0;

	for (uint64_t r = 0; r < rows; r++)
		for (uint32_t k = 0; k < columns; k++) {
			double d = (double)weight(t, bytes + r * stride, k) - x[r * columns + k];
			sum += d * d;
		}
	free(bytes);
	return sum;
}

static int near(const char *source, const char *ours, const char *theirs)
{
	struct file f[3] = { { 0 } };
	struct gguf g[3] = { { 0 } };
	const char *const path[] = { source, ours, theirs };
	double sum[3] = { 0 };
	int wrong = 0;

	for (int i = 0; i < 3; i++)
		open_file(&f[i], &g[i], path[i]);
	for (uint64_t i = 0; i < g[0].n_tensors; i++) {
		char name[80];
		snprintf(name, sizeof name, "%.*s", (int)g[0].tensor[i].name.n, g[0].tensor[i].name.p);
		const struct gguf_tensor *a = gguf_find_tensor(&g[1], name), *b = gguf_find_tensor(&g[2], name);
		bool alike = a && b && a->type == b->type;
		if (alike && a->type != DTYPE_F32) {
			float *x = (float *)bytes_of(&f[0], &g[0].tensor[i]);
			sum[1] = off(x, &f[1], a);
			sum[2] = off(x, &f[2], b);
			free(x);
		}
		if (alike && sum[1] <= 1.01 * sum[2])
			continue;
		printf("%s: %s and %s, off by %g and %g\n", name, a ? dtype_table[a->type].name : "nothing",
		       b ? dtype_table[b->type].name : "nothing", sum[1], sum[2]);
		wrong++;
	}
	for (int i = 0; i < 3; i++) {
		gguf_free(&g[i]);
		file_close(&f[i]);
	}
	return wrong != 0;
}

int main(int argc, char **argv)
{
	static float x[COLUMNS * ROWS * EXPERTS], sums[COLUMNS * EXPERTS];

	if (argc == 5)
		return near(argv[2], argv[3], argv[4]);
	if (argc == 4)
		return same(argv[2], argv[3]);
	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof x / sizeof *x; i++)
		x[i] = next() * next();
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		sums[i] = next() * next() * next() * next() + 0.001f;
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		sums[i] = sums[i] < 0 ? -sums[i] : sums[i];
	odd(argv[1]);
	models(argv[1], x);
	importances(argv[1], sums);
	return 0;
}
