/* tests/train/t_train.c - training beside two witnesses: losses that a program in float64 found, whose gradients it had
 * compared with central differences, and runs of PyTorch with its gradients in float64.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "include/jitrun_train.h"
#include "loaders/files/safetensors.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/save.h"

/* ---- runs on a model of 260 000 parameters, from the generator's first values */

struct run {
	const char *name;
	jit_train_options o;
	unsigned last; /* targets that count: the last so many; 0: all */
	double norm;   /* of the gradients at step 1 */
	double loss[12];
	unsigned n;
	double after_20;
};

static const struct run runs[] = {
	{ .name = "rank 8",
	  .o = { .rank = 8, .alpha = 16 },
	  .norm = 9.55430348,
	  .n = 11,
	  .loss = { 10.0153594, 9.2697338, 8.5533097, 7.8923820, 7.3186631, 6.8481886, 6.4673690, 6.1565478, 5.9004974,
	            5.6870852, 5.5067940 },
	  .after_20 = 4.4739650 },
	{ .name = "rslora",
	  .o = { .rank = 8, .alpha = 16, .rslora = 1 },
	  .norm = 27.0236511,
	  .n = 11,
	  .loss = { 10.0153594, 8.1355069, 6.8856009, 6.1403019, 5.6605274, 5.3267506, 5.0807747, 4.8911945, 4.7331839,
	            4.5836180, 4.4265733 } },
	{ .name = "q and v",
	  .o = { .rank = 4, .alpha = 8, .targets = "q_proj,v_proj" },
	  .norm = 4.29110912,
	  .n = 11,
	  .loss = { 10.0153594, 9.9220238, 9.8192437, 9.7054015, 9.5800160, 9.4428175, 9.2935913, 9.1321842, 8.9586882,
	            8.7737346, 8.5787658 } },
	{ .name = "the last 64 targets",
	  .o = { .rank = 8, .alpha = 16 },
	  .last = 64,
	  .norm = 10.4321606,
	  .n = 11,
	  .loss = { 10.0369014, 9.1769485, 8.3773154, 7.6546063, 7.0335187, 6.5360671, 6.1497526, 5.8425639, 5.5920804,
	            5.3806112, 5.1949631 } },
	{ .name = "DoRA",
	  .o = { .rank = 8, .alpha = 16, .dora = 1 },
	  .norm = 9.87186477,
	  .n = 11,
	  .loss = { 10.0153594, 9.2060808, 8.4428976, 7.7557437, 7.1772986, 6.7141480, 6.3439857, 6.0448540, 5.8001926,
	            5.5970735, 5.4257245 } },
	{ .name = "all weights",
	  .o = { .full = 1, .weight_decay = 0.01f },
	  .norm = 24.842714,
	  .n = 11,
	  .loss = { 10.0153594, 6.4592034, 5.3520433, 4.7957731, 4.4175812, 4.0916432, 3.7614142, 3.4140261, 3.0549958,
	            2.6712730, 2.2653835 } },
};

static bool close_to(double x, double expected, double max) { return fabs(x - expected) <= max * fabs(expected); }

static json_t *read_json(const char *path)
{
	json_error_t e;
	json_t *j = json_load_file(path, 0, &e);

	if (!j)
		fail_msg("%s: %s", path, e.text);
	return j;
}

/* [1] and the first 128 of the text that the model tells, backwards. */
static unsigned read_backwards(int32_t ids[129])
{
	char path[1024];
	json_t *j = read_json(shared_path(path, "data/stories260K/golden_greedy_numpy.json")), *greedy;

	greedy = json_object_get(j, "greedy_ids");
	assert_true(json_array_size(greedy) >= 128);
	ids[0] = 1;
	for (unsigned i = 0; i < 128; i++)
		ids[1 + i] = (int32_t)json_integer_value(json_array_get(greedy, 127 - i));
	json_decref(j);
	return 129;
}

jit_train *train_open(const char *model, jit_train_options o)
{
	jit_error e = { 0 };

	o.size = sizeof o;
	o.model = model;
	jit_train *t = jit_train_open(&o, &e);
	if (!t)
		fail_msg("%s", e.message);
	return t;
}

jit_train_report train_step(jit_train *t)
{
	jit_train_report r = JIT_TRAIN_REPORT();
	jit_error e = { 0 };

	if (jit_train_step(t, &r, &e) != JIT_OK)
		fail_msg("%s", e.message);
	return r;
}

void train_feed(jit_train *t, const int32_t *ids, const uint8_t *counts, size_t n)
{
	jit_error e = { 0 };

	if (jit_train_feed(t, ids, counts, NULL, n, &e) != JIT_OK)
		fail_msg("%s", e.message);
}

static void learn(const char *model, const struct run *run)
{
	jit_train_options o = run->o;
	const unsigned steps = run->after_20 != 0 && !test_quick() ? 20 : test_quick() ? 3 : run->n - 1;
	int32_t ids[129];
	uint8_t counts[129] = { 0 };
	double worst = 0;

	o.rate = 1e-3f;
	o.context = 129;
	jit_train *t = train_open(model, o);
	const unsigned n = read_backwards(ids);
	for (unsigned i = 0; i < n; i++)
		counts[i] = !run->last || i >= n - run->last;
	for (unsigned s = 0; s <= steps; s++) {
		train_feed(t, ids, counts, n);
		const jit_train_report r = train_step(t);
		const double expected = s < run->n ? run->loss[s] : s == 20 ? run->after_20 : r.loss;
		worst = fmax(worst, fabs(r.loss - expected) / expected);
		if (s == 0 && !close_to(r.norm, run->norm, 2e-5))
			fail_msg("%s: the gradients' norm is %.9g, expected %.9g", run->name, r.norm, run->norm);
		if (!close_to(r.loss, expected, 2e-5))
			fail_msg("%s: the loss of step %u is %.8g, expected %.8g", run->name, s, r.loss, expected);
	}
	printf("# %s: %u losses, at most %.1e from float64\n", run->name, steps + 1, worst);
	jit_train_close(t);
}

static void test_known_losses(void **state)
{
	char model[1024];
	(void)state;

	if (!shared_path(model, "data/stories260K/hf/model.safetensors"))
		return;
	for (unsigned i = 0; i < sizeof runs / sizeof *runs; i++)
		learn(model, &runs[i]);
}

/* The tale model on its own tales, backwards, a row of another length in each step, gradients clipped. */
static unsigned read_tale(const json_t *tale, int32_t *ids)
{
	const json_t *prompt = json_object_get(tale, "prompt"), *greedy = json_object_get(tale, "greedy");
	unsigned n = 0;

	ids[n++] = 0;
	for (size_t i = json_array_size(greedy); i-- > 0;)
		ids[n++] = (int32_t)json_integer_value(json_array_get(greedy, i));
	for (size_t i = json_array_size(prompt); i-- > 1;)
		ids[n++] = (int32_t)json_integer_value(json_array_get(prompt, i));
	return n;
}

static void test_tale(void **state)
{
	static const double losses[] = { 8.9406732, 6.8517637, 6.8951513, 5.5598400, 9.9017977, 9.6614463,
		                         6.4693864, 3.8520621, 3.9942514, 3.5096591, 7.6774009, 8.1357136 };
	static const unsigned lengths[] = { 69, 72, 70, 78, 96, 364 };
	const unsigned steps = test_quick() ? 3 : 12;
	char model[1024], path[1024];
	int32_t ids[400];
	double worst = 0;
	(void)state;

	if (!shared_path(model, "models/tale-qwen3"))
		return;
	json_t *all = read_json(shared_path(path, "models/tale-qwen3/expected.json")),
	       *tales = json_object_get(all, "runs");
	jit_train *t =
		train_open(model,
	                   (jit_train_options){ .rank = 16, .alpha = 32, .clip = 1, .rate = 1e-3f, .context = 364 });
	for (unsigned s = 0; s <= steps; s++) {
		const unsigned which = s % 6, n = read_tale(json_array_get(tales, which), ids);
		const double expected = s < 12 ? losses[s] : 4.8533144;
		assert_int_equal(n, lengths[which]);
		train_feed(t, ids, NULL, n);
		const jit_train_report r = train_step(t);
		worst = fmax(worst, fabs(r.loss - expected) / expected);
		if (s == 0 && !close_to(r.norm, 2.92694549, 2e-5))
			fail_msg("the tale model: the gradients' norm is %.9g, expected 2.92694549", r.norm);
		if (!close_to(r.loss, expected, 2e-5))
			fail_msg("the tale model: the loss of step %u is %.8g, expected %.8g", s, r.loss, expected);
	}
	printf("# the tale model: %u losses, at most %.1e from float64\n", steps + 1, worst);
	jit_train_close(t);
	json_decref(all);
}

/* ---- runs of PyTorch */

/* far: how far gradients may be. transformers computes the delta rule in float32, in its float64 runs, too. */
static const struct {
	const char *name, *base;
	double far;
} torch_runs[] = {
	{ "train-llama-lora-a", "golden/llama-a", 1e-5 },     { "train-llama-full-a", "golden/llama-a", 1e-5 },
	{ "train-gemma3-full-a", "golden/gemma3-a", 1e-5 },   { "train-tale-lora-a", "models/tale-llama", 1e-5 },
	{ "train-mixtral-full-a", "golden/mixtral-a", 1e-5 }, { "train-qwen35-lora-a", "golden/qwen35-a", 5e-5 }
};

struct tensors {
	struct safetensors index;
	uint8_t *bytes;
};

static void open_tensors(struct tensors *t, const char *path)
{
	struct error err = { 0 };
	size_t n;

	t->bytes = file_bytes(path, &n);
	if (!safetensors_parse(&t->index, t->bytes, n, path, false, &err))
		fail_msg("%s", err.text);
}

static void close_tensors(struct tensors *t)
{
	safetensors_free(&t->index);
	free(t->bytes);
}

/* A name as peft has it in memory: "base_model.model.X.lora_A.default.weight"; of a text's part alone. */
static void torch_name(const char *name, char out[512])
{
	const char *adapter = strstr(name, ".lora_"), *text = strstr(name, "language_model."),
		   *moe = strstr(name, ".block_sparse_moe.gate.");

	if (adapter && text)
		snprintf(out, 512, "base_model.model.%.*s%.*s.lora_%c.default.weight", (int)(text - name), name,
		         (int)(adapter - text - 15), text + 15, adapter[6]);
	else if (adapter)
		snprintf(out, 512, "base_model.model.%.*s.lora_%c.default.weight", (int)(adapter - name), name,
		         adapter[6]);
	else if (moe)
		snprintf(out, 512, "%.*s.mlp.gate.weight", (int)(moe - name), name);
	else
		snprintf(out, 512, "%s", name);
}

/* All experts' matrices of Mixtral, which transformers has in two tensors: rows of w1, then of w3, and w2. */
static const float *experts_named(const struct tensors *t, const char *name, uint64_t elements, const char *moe)
{
	static float own[5 * 32 * 64];
	const int which = moe[strlen(".block_sparse_moe.experts.0.w")] - '0';
	const uint64_t one = elements / 5;
	char wanted[512];

	assert_true(elements == sizeof own / sizeof *own);
	snprintf(wanted, sizeof wanted, "%.*s.mlp.experts.%s_proj", (int)(moe - name), name,
	         which == 2 ? "down" : "gate_up");
	for (uint32_t i = 0; i < t->index.n_tensors; i++) {
		const struct safetensors_tensor *x = &t->index.tensor[i];
		if (x->name.n != strlen(wanted) || memcmp(x->name.p, wanted, x->name.n) != 0)
			continue;
		for (unsigned e = 0; e < 5; e++)
			memcpy(own + e * one,
			       t->bytes + x->offset +
			               (which == 2 ? e * one : e * 2 * one + (which == 3 ? one : 0)) * sizeof *own,
			       one * sizeof *own);
		return own;
	}
	return NULL;
}

/* NULL: the file has none of that name. */
static const float *tensor_named(const struct tensors *t, const char *name, uint64_t elements)
{
	const char *moe = strstr(name, ".block_sparse_moe.experts.0.w");
	char wanted[512];

	if (moe)
		return experts_named(t, name, elements, moe);
	torch_name(name, wanted);
	for (uint32_t i = 0; i < t->index.n_tensors; i++) {
		const struct safetensors_tensor *x = &t->index.tensor[i];
		if (x->name.n != strlen(wanted) || memcmp(x->name.p, wanted, x->name.n) != 0)
			continue;
		assert_int_equal(x->bytes, elements * sizeof(float));
		return (const float *)(const void *)(t->bytes + x->offset);
	}
	return NULL;
}

/* The norm of the difference, over that of what is expected. */
static double distance(const float *x, const float *expected, uint64_t n)
{
	double far = 0, all = 0;

	for (uint64_t i = 0; i < n; i++) {
		float e;
		memcpy(&e, expected + i, sizeof e);
		far += ((double)x[i] - (double)e) * ((double)x[i] - (double)e);
		all += (double)e * (double)e;
	}
	return far > 0 ? sqrt(far / (all > 0 ? all : 1)) : 0;
}

enum torch_file { INITIAL, GRADIENTS, FINAL };

/* Sets, or compares, what is trained; returns the greatest distance. */
static double with_file(jit_train *t, const char *run, enum torch_file which)
{
	static const char *const names[] = { "initial", "gradients", "final" };
	char relative[256], path[1024];
	struct tensors file;
	double worst = 0;
	size_t found = 0;

	snprintf(relative, sizeof relative, "golden-more/%s/%s.safetensors", run, names[which]);
	if (!shared_path(path, relative))
		return 0;
	open_tensors(&file, path);
	for (size_t i = 0; i < jit_train_tensors(t); i++) {
		jit_train_tensor x = JIT_TRAIN_TENSOR();
		jit_error e = { 0 };
		assert_int_equal(jit_train_get_tensor(t, i, &x, &e), JIT_OK);
		const float *y = tensor_named(&file, x.name, x.elements);
		if (!y)
			continue;
		found++;
		/* Rows that rotate are in the kernels' order. */
		const struct net_tensor *of = &t->net->tensor[i];
		const uint64_t rows = of->shape.dim[0], cols = x.elements / rows;
		float *own = malloc(x.elements * sizeof *own);
		for (uint64_t r = 0; r < rows; r++)
			memcpy(own + r * cols,
			       y + (of->kind == LAYER_A ? r : train_row_in_file(t, of, false, r)) * cols,
			       cols * sizeof *own);
		if (which == INITIAL)
			assert_int_equal(jit_train_set_tensor(t, i, own, x.elements, &e), JIT_OK);
		else
			worst = fmax(worst, distance(which == FINAL ? x.values : x.gradients, own, x.elements));
		free(own);
	}
	assert_true(found > 0 && (which != INITIAL || found == jit_train_tensors(t)));
	close_tensors(&file);
	return worst;
}

static double number_at(json_t *j, const char *kind, const char *name, size_t i)
{
	return json_number_value(json_array_get(json_object_get(json_object_get(j, kind), name), i));
}

static void feed_rows(jit_train *t, json_t *j, unsigned s)
{
	json_t *rows = json_object_get(j, "rows");
	const size_t batch = (size_t)json_integer_value(json_object_get(j, "batch")), all = json_array_size(rows);

	for (size_t i = 0; i < batch; i++) {
		json_t *row = json_array_get(rows, (s * batch + i) % all);
		int32_t ids[512];
		for (size_t k = 0; k < json_array_size(row); k++)
			ids[k] = (int32_t)json_integer_value(json_array_get(row, k));
		train_feed(t, ids, NULL, json_array_size(row));
	}
}

/* transformers rounds the frequencies of rotations after each operation, in its float64 runs, too; jitrun rounds them
 * once. An adapter on other angles is another one, so the comparison has theirs. */
static void round_as_torch(struct net *n, enum model_rotation which, const struct model_rope *r)
{
	float *frequency = n->rope.inv_freq[which];
	const bool known = r->scaling == ROPE_NONE || r->scaling == ROPE_LINEAR;
	const uint32_t half = n->m->spec.head_dim / 2;

	for (uint32_t i = 0; frequency && known && i < r->dims / 2; i++) {
		frequency[i] = 1.0f / (float)pow(r->theta, (double)((float)(2 * i) / (float)r->dims));
		if (r->scaling == ROPE_LINEAR)
			frequency[i] /= (float)r->factor;
	}
	if (frequency)
		rope_rows(n->angle[which], n->angle[which] + (size_t)n->o.tokens * half, frequency, half,
		          n->rope.rotated[which], n->rope.factor[which], 0, n->o.tokens);
}

static jit_train *open_torch_run(const char *base, json_t *j)
{
	json_t *lora = json_object_get(j, "lora");
	const bool full = !json_is_object(lora);
	char model[1024];
	jit_train_options o = { .full = full,
		                .rank = (int)json_integer_value(json_object_get(lora, "r")),
		                .alpha = (float)json_number_value(json_object_get(lora, "lora_alpha")),
		                .rate = full ? 5e-4f : 2e-3f,
		                .weight_decay = 0.01f,
		                .context = (int)json_integer_value(json_object_get(j, "length")) };
	json_t *modules = json_object_get(lora, "target_modules");
	char targets[256] = "";

	for (size_t i = 0; i < json_array_size(modules); i++)
		snprintf(targets + strlen(targets), sizeof targets - strlen(targets), "%s,",
		         json_string_value(json_array_get(modules, i)));
	o.targets = *targets ? targets : NULL;
	jit_train *t = train_open(shared_path(model, base), o);
	round_as_torch(t->net, ROTATION_MAIN, &t->m.spec.rope);
	round_as_torch(t->net, ROTATION_WINDOW, &t->m.spec.window_rope);
	return t;
}

static void learn_as_torch(const char *name, const char *base, double max)
{
	char relative[256], path[1024];
	double worst = 0, torch = 0;

	snprintf(relative, sizeof relative, "golden-more/%s/expected.json", name);
	if (!shared_path(path, relative))
		return;
	json_t *j = read_json(path);
	const unsigned all = (unsigned)json_integer_value(json_object_get(j, "steps")), steps = test_quick() ? 2 : all;
	jit_train *t = open_torch_run(base, j);
	const bool full = !json_is_object(json_object_get(j, "lora"));
	if (!full)
		with_file(t, name, INITIAL);
	for (unsigned s = 0; s < steps; s++) {
		feed_rows(t, j, s);
		const jit_train_report r = train_step(t);
		const double exact = number_at(j, "float64", "loss", s), theirs = number_at(j, "float32", "loss", s);
		worst = fmax(worst, fabs(r.loss - exact) / exact);
		torch = fmax(torch, fabs(theirs - exact) / exact);
		if (s == 0) {
			const double far = with_file(t, name, GRADIENTS);
			printf("# %s: loss %.1e and gradients %.1e from float64 at step 1\n", name, worst, far);
			assert_true(worst < 1e-5 && far < max);
			assert_true(close_to(r.norm, number_at(j, "float64", "gradient_norm", 0), max));
		}
	}
	printf("# %s: %u losses, at most %.1e from float64, PyTorch's float32 %.1e\n", name, steps, worst, torch);
	if (steps == all && !full)
		printf("# %s: adapters %.1e from float32's at the end\n", name, with_file(t, name, FINAL));
	assert_true(worst <= fmax(torch, 1e-6) * 2);
	jit_train_close(t);
	json_decref(j);
}

static void test_torch(void **state)
{
	(void)state;

	for (unsigned i = 0; i < sizeof torch_runs / sizeof *torch_runs; i++)
		if (!test_quick() || i < 4) /* the others' loops have many kernels */
			learn_as_torch(torch_runs[i].name, torch_runs[i].base, torch_runs[i].far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_losses), cmocka_unit_test(test_tale),
		cmocka_unit_test(test_torch),        cmocka_unit_test(test_setups),
		cmocka_unit_test(test_packed),       cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_state),        cmocka_unit_test(test_saved),
		cmocka_unit_test(test_gguf_order),   cmocka_unit_test(test_gguf_fused),
		cmocka_unit_test(test_whole_model),  cmocka_unit_test(test_unchanged),
		cmocka_unit_test(test_gpt2),         cmocka_unit_test(test_new),
		cmocka_unit_test(test_formats),      cmocka_unit_test(test_served),
		cmocka_unit_test(test_texts),        cmocka_unit_test(test_conversations),
		cmocka_unit_test(test_order),        cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_chunks),       cmocka_unit_test(test_differences)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
