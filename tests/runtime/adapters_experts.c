/* tests/runtime/adapters_experts.c - adapters of the matrices of experts: part of t_adapters.
 *
 * The witness is a model whose file has W + scale * B A in the place of experts' matrices, summed here. Beside it, the
 * same adapter as a folder of PEFT and as a GGUF file, every width of passes, devices and batches have the same bits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/floats.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_logits.h"
#include "loaders/files/gguf_write.h"
#include "loaders/files/safetensors.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/support/shared.h"
#include "train/file.h"

enum { LAYERS = 2, EXPERTS = 5, HIDDEN = 64, FFN = 32, RANK = 3, LOW = 2, VOCAB = 353, PROMPT = 19, TENSORS = 100 };
enum { GATE, DOWN, UP, KINDS };
static const float SCALE = 2; /* alpha 6 of rank 3, and alpha 4 of rank 2 */
static const char *const hf[KINDS] = { "w1", "w2", "w3" }, *const gguf[KINDS] = { "gate", "down", "up" };

static char folder[64];

static const char *inside(char out[400], const char *name)
{
	snprintf(out, 400, "%s/%s", folder, name);
	return out;
}

static unsigned rows_of(unsigned kind) { return kind == DOWN ? HIDDEN : FFN; }
static unsigned columns_of(unsigned kind) { return kind == DOWN ? FFN : HIDDEN; }

/* The rank of a pair: expert 3 has none for w2, and expert 1 a lower one for all. */
static unsigned rank_of(unsigned kind, unsigned expert)
{
	return kind == DOWN && expert == 3 ? 0 : expert == 1 ? LOW : RANK;
}

/* Element i of A, or of B, [rows][rank of the pair]. */
static float number(unsigned layer, unsigned kind, unsigned expert, bool b, unsigned i)
{
	uint64_t z = (((layer * 3ull + kind) * 8 + expert) * 2 + b) * 100000 + i;

	z = (z + 1) * 0x9E3779B97F4A7C15;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	return (float)((double)(z >> 40) * 0x1p-24 - 0.5) * (b ? 0.3f : 0.4f);
}

/* ---- files */

struct entries {
	struct train_entry e[TENSORS];
	char name[TENSORS][160];
	unsigned n;
};

static float *add(struct entries *all, const char *name, unsigned rows, unsigned columns)
{
	float *values = calloc((size_t)rows * columns, sizeof *values);

	assert_non_null(values);
	snprintf(all->name[all->n], sizeof all->name[0], "%s", name);
	all->e[all->n] = (struct train_entry){ all->name[all->n], { 2, { rows, columns } }, values };
	all->n++;
	return values;
}

static void write_all(struct entries *all, const char *path)
{
	struct error err = { 0 };

	if (!train_write_safetensors(path, all->e, all->n, &err))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < all->n; i++)
		free((float *)(uintptr_t)all->e[i].values);
	free(all);
}

static void copy(const char *from, const char *to)
{
	char line[1800];

	snprintf(line, sizeof line, "cp '%s' '%s'", from, to);
	assert_int_equal(system(line), 0);
}

/* W + scale * B A in the place of an expert's matrix; other tensors are left alone. */
static void merge(const char *name, float *w)
{
	unsigned layer, expert, which;

	if (sscanf(name, "model.layers.%u.block_sparse_moe.experts.%u.w%u", &layer, &expert, &which) != 3)
		return;
	const unsigned kind = which - 1, rank = rank_of(kind, expert), columns = columns_of(kind);
	for (unsigned r = 0; r < rows_of(kind); r++)
		for (unsigned c = 0; c < columns; c++) {
			double sum = 0;
			for (unsigned j = 0; j < rank; j++)
				sum += (double)number(layer, kind, expert, true, r * rank + j) *
				       (double)number(layer, kind, expert, false, j * columns + c);
			w[r * columns + c] = (float)((double)w[r * columns + c] + (double)SCALE * sum);
		}
}

/* The model in float32, and the one that the adapter is summed into. */
static void write_models(const char *base)
{
	struct file f = { 0 };
	struct safetensors s;
	struct error err = { 0 };
	char path[1200], to[400];

	snprintf(path, sizeof path, "%s/model.safetensors", base);
	if (!file_open(&f, path, &err) || !safetensors_open(&s, &f, false, &err))
		fail_msg("%s", err.text);
	for (int merged = 0; merged < 2; merged++) {
		struct entries *all = calloc(1, sizeof *all);
		char name[160];
		for (uint32_t i = 0; i < s.n_tensors; i++) {
			const struct safetensors_tensor *t = &s.tensor[i];
			uint8_t *raw = malloc(t->bytes);
			snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
			float *w = add(all, name, (unsigned)t->dim[0], (unsigned)t->dim[1]);
			all->e[all->n - 1].shape.rank = t->rank;
			assert_true(raw && file_read(&f, t->offset, t->bytes, raw, &err));
			floats_read(w, raw, t->type, t->dim[0] * t->dim[1]);
			free(raw);
			if (merged)
				merge(name, w);
		}
		inside(to, merged ? "merged" : "plain");
		assert_true(train_folder_open(to, &err));
		inside(to, merged ? "merged/model.safetensors" : "plain/model.safetensors");
		write_all(all, to);
		snprintf(path, sizeof path, "%s/config.json", base);
		copy(path, inside(to, merged ? "merged/config.json" : "plain/config.json"));
	}
	safetensors_free(&s);
	file_close(&f);
}

/* alpha: of expert 4's w3 in layer 1 */
static void write_peft(const char *name, const char *alpha)
{
	struct entries *all = calloc(1, sizeof *all);
	struct error err = { 0 };
	char path[400], tensor[160];

	for (unsigned i = 0; i < LAYERS * KINDS * EXPERTS; i++) {
		const unsigned layer = i / (KINDS * EXPERTS), kind = i / EXPERTS % KINDS, e = i % EXPERTS,
			       rank = rank_of(kind, e);
		for (int b = 0; rank && b < 2; b++) {
			snprintf(tensor, sizeof tensor,
			         "base_model.model.model.layers.%u.block_sparse_moe.experts.%u.%s.lora_%c.weight",
			         layer, e, hf[kind], "AB"[b]);
			float *x = add(all, tensor, b ? rows_of(kind) : rank, b ? rank : columns_of(kind));
			for (unsigned k = 0; k < rank * (b ? rows_of(kind) : columns_of(kind)); k++)
				x[k] = number(layer, kind, e, b, k);
		}
	}
	assert_true(train_folder_open(inside(path, name), &err));
	snprintf(tensor, sizeof tensor, "%s/adapter_model.safetensors", name);
	write_all(all, inside(path, tensor));
	snprintf(tensor, sizeof tensor, "%s/adapter_config.json", name);
	FILE *f = fopen(inside(path, tensor), "w");
	assert_non_null(f);
	fprintf(f,
	        "{\"peft_type\":\"LORA\",\"r\":%d,\"lora_alpha\":6,\"target_modules\":[\"w1\",\"w2\",\"w3\"],"
	        "\"rank_pattern\":{\"experts.1.w[123]\":%d},\"alpha_pattern\":{\"experts.1.w[123]\":4,"
	        "\"layers.1.block_sparse_moe.experts.4.w3\":%s}}",
	        RANK, LOW, alpha);
	assert_int_equal(fclose(f), 0);
}

static void put_number(FILE *f, float x) { assert_int_equal(fwrite(&x, sizeof x, 1, f), 1); }

/* The tensors of one kind, all experts' one behind the other: what a pair lacks is 0. */
static void put_experts(FILE *f, unsigned layer, unsigned kind, bool b)
{
	for (unsigned e = 0; e < EXPERTS; e++) {
		const unsigned rank = rank_of(kind, e), n = b ? rows_of(kind) : RANK, m = b ? RANK : columns_of(kind);
		for (unsigned r = 0; r < n; r++)
			for (unsigned c = 0; c < m; c++) {
				const bool is_there = (b ? c : r) < rank;
				put_number(f, is_there ? number(layer, kind, e, b, r * (b ? rank : m) + c) : 0);
			}
	}
}

/* experts: as many as the tensors say */
static void write_gguf(const char *name, unsigned experts)
{
	struct gguf_out o;
	char path[400], tensor[80];
	FILE *f = fopen(inside(path, name), "wb");

	assert_non_null(f);
	gguf_put_begin(&o, f, 32);
	gguf_put_string(&o, "general.type", "adapter");
	gguf_put_string(&o, "general.architecture", "llama");
	gguf_put_string(&o, "adapter.type", "lora");
	gguf_put_f32(&o, "adapter.lora.alpha", 6);
	for (unsigned i = 0; i < LAYERS * KINDS * 2; i++) {
		const unsigned kind = i / 2 % KINDS;
		const bool b = i % 2;
		const uint64_t ne[] = { b ? RANK : columns_of(kind), b ? rows_of(kind) : RANK, experts };
		snprintf(tensor, sizeof tensor, "blk.%u.ffn_%s_exps.weight.lora_%c", i / (2 * KINDS), gguf[kind],
		         "ab"[b]);
		gguf_put_tensor(&o, (struct gguf_str){ tensor, strlen(tensor) }, DTYPE_F32, 3, ne);
	}
	assert_true(gguf_put_end(&o));
	for (unsigned i = 0; i < LAYERS * KINDS * 2; i++)
		put_experts(f, i / (2 * KINDS), i / 2 % KINDS, i % 2);
	assert_int_equal(fclose(f), 0);
}

/* ---- what sessions say */

static const int32_t *prompt(void)
{
	static int32_t ids[PROMPT];

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * i * 31 + 7 * i + 3) % VOCAB;
	return ids;
}

/* The logits behind the prompt, and behind one more token. */
struct said {
	float logits[2][VOCAB];
};

static void tell(jit_session *s, struct said *out)
{
	feed(s, prompt(), PROMPT);
	memcpy(out->logits[0], jit_session_logits(s, NULL), sizeof out->logits[0]);
	assert_int_equal(jit_session_feed(s, &(int32_t){ 77 }, 1, NULL), JIT_OK);
	memcpy(out->logits[1], jit_session_logits(s, NULL), sizeof out->logits[1]);
}

static struct said said_by(const char *model, const char *adapter, const char *device, bool floats,
                           const struct way *way, float scale)
{
	char path[400];
	jit_model *m = open_model(model, device, floats);
	jit_adapter *a = adapter ? open_adapter(m, inside(path, adapter)) : NULL;
	jit_session *s = open_session(m, way);
	struct said out;

	if (a)
		use(s, &a, &scale, 1);
	tell(s, &out);
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
	return out;
}

static double distance(const struct said *x, const struct said *y)
{
	double far = 0, greatest = 0;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < VOCAB; i++) {
			far = fmax(far, fabs((double)x->logits[k][i] - (double)y->logits[k][i]));
			greatest = fmax(greatest, fabs((double)y->logits[k][i]));
		}
	return far / greatest;
}

static const struct way usual = { .threads = 1 };

static void test_merged(void **unused)
{
	char plain[400], merged[400];
	(void)unused;

	if (!*folder)
		return;
	inside(plain, "plain");
	inside(merged, "merged");
	const struct said without = said_by(plain, NULL, "cpu", true, &usual, 1),
			  want = said_by(merged, NULL, "cpu", true, &usual, 1),
			  peft = said_by(plain, "peft", "cpu", true, &usual, 1),
			  of_gguf = said_by(plain, "adapter.gguf", "cpu", true, &usual, 1),
			  off = said_by(plain, "peft", "cpu", true, &usual, 0);
	printf("# experts: %.1e from the model they are summed into, which is %.1e from the model itself\n",
	       distance(&peft, &want), distance(&without, &want));
	assert_true(distance(&peft, &want) < 1e-5);
	assert_true(distance(&without, &want) > 1e-2);
	assert_memory_equal(&peft, &of_gguf, sizeof peft);
	assert_memory_equal(&off, &without, sizeof off);
}

static void test_ways(void **unused)
{
	static const struct way ways[] = {
		{ .threads = 1, .batch = 1 }, { .threads = 3, .batch = 7 }, { .threads = 2 }
	};
	static const char *const devices[] = { "ref", "sim:sm90", "sim:gfx1101" };
	char base[1024];
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	const struct said want = said_by(base, "peft", "cpu", false, &usual, 0.75f);
	for (unsigned i = 0; i < 3; i++) {
		const struct said got = said_by(base, "peft", "cpu", false, &ways[i], 0.75f);
		assert_memory_equal(&got, &want, sizeof got);
	}
	for (unsigned i = 0; i < 3 && !test_quick(); i++) {
		const struct said got = said_by(base, "peft", devices[i], false, &usual, 0.75f);
		if (memcmp(&got, &want, sizeof got) != 0)
			fail_msg("%s gives other bits", devices[i]);
	}
}

/* Three sessions in one pass: with the adapter at two scales, and without. */
static void test_batch(void **unused)
{
	static const float scales[] = { 1, 0, 0.5f };
	jit_session *s[3], *ready[3];
	struct said want[3];
	char base[1024], path[400];
	jit_error err = { 0 };
	size_t n;
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	jit_model *m = open_model(base, "cpu", false);
	jit_adapter *a = open_adapter(m, inside(path, "peft"));
	jit_batch *b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 64, .threads = 2), &err);
	if (!b)
		fail_msg("%s", err.message);
	for (int i = 0; i < 3; i++) {
		s[i] = open_session(m, &usual);
		use(s[i], &a, &scales[i], 1);
		tell(s[i], &want[i]);
		jit_session_close(s[i]);
		s[i] = jit_batch_session(b, NULL, &err);
		if (!s[i])
			fail_msg("%s", err.message);
		use(s[i], &a, &scales[i], 1);
		assert_int_equal(jit_session_submit(s[i], prompt(), PROMPT, NULL, &err), JIT_OK);
	}
	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, 3, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n; i++) {
			unsigned which = 0;
			while (s[which] != ready[i])
				which++;
			assert_memory_equal(jit_session_logits(ready[i], &err), want[which].logits[0],
			                    sizeof want[which].logits[0]);
		}
	}
	for (int i = 0; i < 3; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
	jit_adapter_close(a);
	jit_model_close(m);
}

static void test_refused(void **unused)
{
	char base[1024], path[400];
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	jit_model *m = open_model(base, "cpu", false);
	static const struct {
		const char *name, *says;
	} bad[] = { { "scales", "experts of a layer with several scales are not done" },
		    { "few.gguf", "is of 4 experts, expected 5" } };
	write_peft("scales", "5");
	write_gguf("few.gguf", EXPERTS - 1);
	for (int i = 0; i < 2; i++) {
		jit_error err = { 0 };
		assert_null(jit_adapter_open(m, inside(path, bad[i].name), &err));
		if (!strstr(err.message, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.message, bad[i].says);
	}
	jit_model_close(m);
}

static int make_files(void **unused)
{
	char base[1024];
	(void)unused;

	if (!shared_path(base, "golden/mixtral-a"))
		return 0;
	strcpy(folder, "/tmp/t_adapters-experts-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	write_models(base);
	write_peft("peft", "6");
	write_gguf("adapter.gguf", EXPERTS);
	return 0;
}

static int remove_files(void **unused)
{
	char line[120];
	(void)unused;

	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	return *folder ? system(line) : 0;
}

int run_experts(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("experts", tests, make_files, remove_files);
}
