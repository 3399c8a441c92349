/* tests/runtime/adapters_once.c - adapters of the matrices that a model has once, its embedding and its output: part of
 * t_adapters.
 *
 * The witness is a model whose file has W + scale * B A in their place, summed here in double precision.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_logits.h"
#include "loaders/files/safetensors.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

enum { HIDDEN = 64, VOCAB = 300, RANK = 6, PROMPT = 23, STEPS = 3 };

static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 2,
	.hidden = HIDDEN,
	.ffn = 96,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 32,
	.vocab = VOCAB,
	.type = DTYPE_F32
};

static const struct lora_module modules[] = {
	{ "model.embed_tokens", HIDDEN, VOCAB },
	{ "lm_head", VOCAB, HIDDEN },
	{ "model.layers.1.self_attn.q_proj", 64, HIDDEN },
	{ "model.embed_tokens.weight", VOCAB, HIDDEN },
	{ "lm_head.weight", VOCAB, HIDDEN }
};
enum { MODULES = sizeof modules / sizeof *modules };

static char folder[64];

static const char *inside(const char *name)
{
	static char path[3][120];
	static unsigned round;

	round = (round + 1) % 3;
	snprintf(path[round], sizeof path[round], "%s/%s", folder, name);
	return path[round];
}

static void make_folder(const char *name)
{
	char line[200];

	snprintf(line, sizeof line, "mkdir -p '%s'", inside(name));
	assert_int_equal(system(line), 0);
}

/* Which of them: bits of modules. The scale is alpha / rank = 2. */
static void write_adapter(const char *name, unsigned which)
{
	struct lora_module chosen[MODULES];
	char config[200];
	size_t n = 0;

	make_folder(name);
	for (unsigned i = 0; i < MODULES; i++)
		if (which >> i & 1)
			chosen[n++] = modules[i];
	snprintf(config, sizeof config, ", \"lora_alpha\": 12, \"modules_to_save\": [%s%s%s]",
	         which & 8 ? "\"embed_tokens\"" : "", (which & 24) == 24 ? ", " : "", which & 16 ? "\"lm_head\"" : "");
	lora_folder(inside(name), &(struct lora_written){ chosen, n, RANK, 0.3f, which, config, NULL });
}

/* ---- the witness */

struct tensors {
	uint8_t *bytes;
	size_t n;
	struct safetensors st;
};

static void read_tensors(struct tensors *t, const char *path)
{
	struct error err = { 0 };

	t->bytes = file_bytes(path, &t->n);
	if (!safetensors_parse(&t->st, t->bytes, t->n, "tensors", false, &err))
		fail_msg("%s", err.text);
}

static void forget(struct tensors *t)
{
	safetensors_free(&t->st);
	free(t->bytes);
}

/* NULL: there is none of that name. */
static float *tensor_of(const struct tensors *t, const char *name)
{
	for (uint32_t i = 0; i < t->st.n_tensors; i++)
		if (t->st.tensor[i].name.n == strlen(name) && memcmp(t->st.tensor[i].name.p, name, strlen(name)) == 0)
			return (float *)(void *)(t->bytes + t->st.tensor[i].offset);
	return NULL;
}

/* of: rows of a pair's B; at: columns of its A. Where a pair is an embedding's, the matrix lies transposed to it. */
static void merge(const struct tensors *model, const char *name, const struct tensors *adapter, const char *module,
                  const char *end, double scale)
{
	char a_name[200], b_name[200];
	const bool embeds = strcmp(end, ".weight") != 0;

	snprintf(a_name, sizeof a_name, "base_model.model.%s.lora_%sA%s", module, embeds ? "embedding_" : "",
	         embeds ? "" : end);
	snprintf(b_name, sizeof b_name, "base_model.model.%s.lora_%sB%s", module, embeds ? "embedding_" : "",
	         embeds ? "" : end);
	const float *a = tensor_of(adapter, a_name), *b = tensor_of(adapter, b_name);
	float *w = tensor_of(model, name);
	if (!a || !b)
		return;
	assert_non_null(w);
	for (unsigned r = 0; r < (embeds ? VOCAB : strcmp(module, "lm_head") == 0 ? VOCAB : 64u); r++)
		for (unsigned c = 0; c < HIDDEN; c++) {
			double sum = 0;
			for (unsigned j = 0; j < RANK; j++)
				sum += embeds ? (double)a[j * VOCAB + r] * (double)b[c * RANK + j]
				              : (double)b[r * RANK + j] * (double)a[j * HIDDEN + c];
			w[r * HIDDEN + c] = (float)((double)w[r * HIDDEN + c] + scale * sum);
		}
}

static void replace(const struct tensors *model, const char *name, const struct tensors *adapter)
{
	char whole[200];

	snprintf(whole, sizeof whole, "base_model.model.%s", name);
	const float *from = tensor_of(adapter, whole);
	if (from)
		memcpy(tensor_of(model, name), from, VOCAB * HIDDEN * sizeof(float));
}

/* A model whose output matrix is its own, whatever the first one has. */
static void write_merged(bool tied, double scale)
{
	struct tiny_model apart = shape;
	struct tensors from, to, adapter;
	char *config = tiny_config(&apart);

	make_folder("merged");
	tiny_write_hf(inside("merged"), &apart);
	read_tensors(&from, inside("model/model.safetensors"));
	read_tensors(&to, inside("merged/model.safetensors"));
	read_tensors(&adapter, inside("adapter/adapter_model.safetensors"));
	for (uint32_t i = 0; i < to.st.n_tensors; i++) {
		char name[200];
		snprintf(name, sizeof name, "%.*s", (int)to.st.tensor[i].name.n, to.st.tensor[i].name.p);
		const float *same =
			tensor_of(&from,
		                  tied && strcmp(name, "lm_head.weight") == 0 ? "model.embed_tokens.weight" : name);
		assert_non_null(same);
		memcpy(to.bytes + to.st.tensor[i].offset, same, to.st.tensor[i].bytes);
	}
	merge(&to, "model.embed_tokens.weight", &adapter, "model.embed_tokens", "", scale);
	merge(&to, "lm_head.weight", &adapter, "lm_head", ".weight", scale);
	merge(&to, "model.layers.1.self_attn.q_proj.weight", &adapter, "model.layers.1.self_attn.q_proj", ".weight",
	      scale);
	replace(&to, "model.embed_tokens.weight", &adapter);
	replace(&to, "lm_head.weight", &adapter);
	lora_put(inside("merged"), "model.safetensors", (const char *)to.bytes, to.n);
	forget(&from);
	forget(&to);
	forget(&adapter);
	free(config);
}

/* ---- sessions */

static int32_t ids[PROMPT];

struct told {
	float prompt[PROMPT][VOCAB], step[STEPS][VOCAB];
};

static void tell(jit_session *s, struct told *out)
{
	jit_error err = { 0 };

	assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
	if (jit_session_feed_logits(s, ids, PROMPT, &out->prompt[0][0], PROMPT * VOCAB, &err) != JIT_OK)
		fail_msg("%s", err.message);
	for (int i = 0; i < STEPS; i++) {
		const int32_t id = (ids[i] + 5) % VOCAB;
		assert_int_equal(jit_session_feed(s, &id, 1, &err), JIT_OK);
		const float *row = jit_session_logits(s, &err);
		assert_non_null(row);
		memcpy(out->step[i], row, sizeof out->step[i]);
	}
}

static double distance(const float *a, const float *b, size_t n)
{
	double max = 0;

	for (size_t i = 0; i < n; i++)
		max = fmax(max, fabs((double)a[i] - (double)b[i]));
	return max;
}

static jit_model *open_made(const char *name, const char *device) { return open_model(inside(name), device, true); }

static struct told *told_with(jit_model *m, const char *adapter, float scale, const struct way *way)
{
	struct told *out = malloc(sizeof *out);
	jit_adapter *a = adapter ? open_adapter(m, inside(adapter)) : NULL;
	jit_session *s = open_session(m, way);

	assert_non_null(out);
	if (a)
		use(s, &a, &scale, 1);
	tell(s, out);
	jit_session_close(s);
	jit_adapter_close(a);
	return out;
}

static void begin(bool tied)
{
	struct tiny_model t = shape;

	strcpy(folder, "/tmp/t_adapters-XXXXXX");
	assert_non_null(mkdtemp(folder));
	make_folder("model");
	t.tied = tied;
	tiny_write_hf(inside("model"), &t);
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * 89 + 11) % VOCAB;
}

static void end(void)
{
	char line[100];

	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
}

/* Each of them and all together, beside the merged model; and the same bits whatever the passes are. */
static void test_merged(void **unused)
{
	/* which of modules: pairs; whole ones, and both side by side */
	static const unsigned some[] = { 1, 2, 4, 7, 8, 16, 3, 8 + 2, 16 + 1 + 4, 8 + 16 + 4 };
	static const struct way whole = { .threads = 2, .batch = 64 }, small = { .threads = 1, .batch = 5 };

	for (unsigned tied = 0; tied < 2; tied++) {
		begin(tied);
		for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
			const unsigned which = some[i];
			const float scale = which < 8 ? 0.5f : 1;
			if (test_quick() && i != (tied ? 4 : 9) && i != (tied ? 6 : 3))
				continue;
			write_adapter("adapter", which);
			write_merged(tied, (double)scale * 2);
			jit_model *m = open_made("model", "cpu"), *merged = open_made("merged", "cpu");
			struct told *bare = told_with(m, NULL, 0, &whole), *want = told_with(merged, NULL, 0, &whole),
				    *got = told_with(m, "adapter", scale, &whole),
				    *again = told_with(m, "adapter", scale, &small);
			const size_t n = sizeof *want / sizeof(float);
			const double off = distance(&got->prompt[0][0], &want->prompt[0][0], n),
				     moved = distance(&bare->prompt[0][0], &want->prompt[0][0], n);
			if (!(off < 1e-4 * moved) || !(moved > 0.1))
				fail_msg("tied %u, modules %x: %g from the merged model, which is %g from the model's "
				         "own",
				         tied, which, off, moved);
			assert_memory_equal(got, again, sizeof *got);
			free(bare);
			free(want);
			free(got);
			free(again);
			jit_model_close(m);
			jit_model_close(merged);
		}
		end();
	}
}

/* ---- devices and batches */

static void test_everywhere(void **unused)
{
	static const char *const devices[] = { "ref", "sim:sm90", "sim:gfx1101" };
	const struct way way = { .threads = 1, .batch = 16 };

	begin(false);
	for (unsigned i = test_quick() ? 3 : 0; i < 6; i++) { /* t_adapters has pairs on all devices, too */
		if (!test_mine(i))
			continue;
		write_adapter("adapter", i < 3 ? 7 : 8 + 16 + 4);
		jit_model *m = open_made("model", "cpu");
		struct told *want = told_with(m, "adapter", 1, &way);
		jit_model_close(m);
		m = open_made("model", devices[i % 3]);
		struct told *got = told_with(m, "adapter", 1, &way);
		if (memcmp(got, want, sizeof *got) != 0)
			fail_msg("%s differs from the CPU", devices[i % 3]);
		free(got);
		free(want);
		jit_model_close(m);
	}
	end();
}

enum { MEMBERS = 6 };

static void step_all(jit_batch *b, jit_session **s, float (*got)[STEPS + 1][VOCAB])
{
	unsigned steps[MEMBERS] = { 0 };
	jit_session *ready[MEMBERS];
	jit_error err = { 0 };
	size_t n;

	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, MEMBERS, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n; i++) {
			unsigned which = 0;
			while (s[which] != ready[i])
				which++;
			memcpy(got[which][steps[which]], jit_session_logits(ready[i], &err), sizeof got[0][0]);
			const int32_t id = (ids[steps[which]] + 5) % VOCAB;
			if (steps[which]++ < STEPS)
				assert_int_equal(jit_session_submit(ready[i], &id, 1, NULL, &err), JIT_OK);
		}
	}
}

/* Members with pairs of the embedding, of the output and of both, with these whole, and with nothing, in the same
 * passes. */
static void test_members(void **unused)
{
	static const char *const names[] = { "one", "two", "three", "four", "five" };
	static const unsigned which[] = { 1, 2, 7, 8 + 4, 16 };
	static const struct way way = { .threads = 2, .batch = 64 };
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.threads = 2, .tokens = 64, .context = 256, .speculate = JIT_SPECULATE_OFF);
	static float got[MEMBERS][STEPS + 1][VOCAB];
	jit_adapter *a[MEMBERS - 1];
	jit_session *s[MEMBERS];

	begin(true);
	jit_model *m = open_made("model", "cpu"), *bare = open_made("model", "cpu");
	for (int i = 0; i < MEMBERS - 1; i++) {
		write_adapter(names[i], which[i]);
		a[i] = open_adapter(m, inside(names[i]));
	}
	jit_batch *b = jit_batch_open(m, &o, NULL);
	assert_non_null(b);
	for (int i = 0; i < MEMBERS; i++) {
		assert_non_null(s[i] = jit_batch_session(b, NULL, NULL));
		if (i < MEMBERS - 1)
			use(s[i], &a[i], NULL, 1);
		assert_int_equal(jit_session_submit(s[i], ids, PROMPT - (size_t)i, NULL, NULL), JIT_OK);
	}
	step_all(b, s, got);
	for (int i = 0; i < MEMBERS; i++) {
		jit_session *alone = open_session(i < MEMBERS - 1 ? m : bare, &way);
		if (i < MEMBERS - 1)
			use(alone, &a[i], NULL, 1);
		feed(alone, ids, PROMPT - (size_t)i);
		for (int k = 0;; k++) {
			const float *row = jit_session_logits(alone, NULL);
			if (memcmp(row, got[i][k], sizeof got[i][k]) != 0)
				fail_msg("member %d, step %d: other bits than alone", i, k);
			if (k == STEPS)
				break;
			const int32_t id = (ids[k] + 5) % VOCAB;
			assert_int_equal(jit_session_feed(alone, &id, 1, NULL), JIT_OK);
		}
		jit_session_close(alone);
		jit_session_close(s[i]);
	}
	jit_batch_close(b);
	for (int i = 0; i < MEMBERS - 1; i++)
		jit_adapter_close(a[i]);
	jit_model_close(m);
	jit_model_close(bare);
	end();
}

static void test_scales(void **unused)
{
	const struct way way = { .threads = 1 };
	jit_error err = { 0 };
	jit_adapter *a[2];

	begin(false);
	jit_model *m = open_made("model", "cpu");
	write_adapter("one", 8 + 4);
	write_adapter("two", 8 + 16);
	a[0] = open_adapter(m, inside("one"));
	a[1] = open_adapter(m, inside("two"));
	jit_session *s = open_session(m, &way);
	assert_int_equal(jit_session_set_adapters(s, a, (const float[]){ 0.5f }, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "adapter 0 has whole modules (modules_to_save), and its scale is 0.5"));
	assert_int_equal(jit_session_set_adapters(s, a, NULL, 2, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "adapter 1 has a whole module (modules_to_save) that another one has"));
	use(s, a, (const float[]){ 1, 0 }, 2);
	jit_session_close(s);
	jit_adapter_close(a[0]);
	jit_adapter_close(a[1]);
	jit_model_close(m);
	end();
}

int run_once(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_merged), cmocka_unit_test(test_everywhere),
		                            cmocka_unit_test(test_members), cmocka_unit_test(test_scales) };

	return cmocka_run_group_tests_name("the embedding and the output", tests, NULL, NULL);
}
