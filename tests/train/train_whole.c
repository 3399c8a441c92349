/* tests/train/train_whole.c - models whose weights are all trained: what is saved, and GPT-2 beside PyTorch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_format.h"
#include "loaders/files/safetensors.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/new.h"

/* A model that was written is read again, and has the same loss to the last bit. */
void test_whole_model(void **state)
{
	static const char *const models[] = { "golden/gemma3-a", "golden/qwen3-gqa2-bf16", "golden/cohere2-a" };
	const int32_t ids[] = { 9, 60, 3, 201, 44 };
	(void)state;

	for (unsigned i = 0; i < sizeof models / sizeof *models; i++) {
		char model[1024], path[1024];
		jit_train_report before = JIT_TRAIN_REPORT(), after = JIT_TRAIN_REPORT();
		jit_error e = { 0 };
		if (!shared_path(model, models[i]))
			return;
		jit_train *t = train_step_of(model, (jit_train_options){ .full = 1 });
		train_feed(t, ids, NULL, 5);
		assert_int_equal(jit_train_evaluate(t, &before, &e), JIT_OK);
		train_save_as(t, train_in_folder(path, "model"), JIT_TRAIN_WEIGHTS);
		jit_train *again = train_open(path, (jit_train_options){ .full = 1, .context = 8 });
		train_feed(again, ids, NULL, 5);
		assert_int_equal(jit_train_evaluate(again, &after, &e), JIT_OK);
		assert_true(before.loss == after.loss);
		assert_true(train_same(t, again));
		jit_train_close(t);
		jit_train_close(again);
		train_remove_folder();
	}
}

static void open_weights(struct safetensors *s, uint8_t **bytes, const char *path)
{
	struct error err = { 0 };
	size_t n;

	*bytes = file_bytes(path, &n);
	if (!safetensors_parse(s, *bytes, n, path, false, &err))
		fail_msg("%s", err.text);
}

static void compare_weights(const char *ours, const char *theirs)
{
	struct safetensors a, b;
	uint8_t *x, *y;
	uint32_t found = 0;

	open_weights(&a, &x, ours);
	open_weights(&b, &y, theirs);
	for (uint32_t i = 0; i < a.n_tensors; i++)
		for (uint32_t k = 0; k < b.n_tensors; k++) {
			const struct safetensors_tensor *s = &a.tensor[i], *t = &b.tensor[k];
			const uint64_t n = s->bytes / sizeof(float);
			float *wide;
			if (s->name.n != t->name.n || memcmp(s->name.p, t->name.p, s->name.n) != 0)
				continue;
			found++;
			assert_int_equal(s->type, DTYPE_F32);
			assert_int_equal(s->rank, t->rank);
			assert_memory_equal(s->dim, t->dim, s->rank * sizeof *s->dim);
			wide = malloc(n * sizeof *wide + 1);
			weight_format_find(t->type)->to_f32(wide, y + t->offset, n);
			if (memcmp(wide, x + s->offset, n * sizeof *wide) != 0)
				fail_msg("%s: %.*s has other numbers than %s", ours, (int)s->name.n, s->name.p, theirs);
			free(wide);
		}
	if (found != a.n_tensors || found != b.n_tensors)
		fail_msg("%s has %u tensors, %s %u, and %u are the same", ours, a.n_tensors, theirs, b.n_tensors,
		         found);
	safetensors_free(&a);
	safetensors_free(&b);
	free(x);
	free(y);
}

/* A model that was not trained is saved as it was: each tensor of the file, whose rows may be columns, several
 * matrices', or in another order than that of the kernels. */
void test_unchanged(void **state)
{
	static const char *const models[] = {
		"golden-next/gpt2-a",       "golden-next/gptneox-a",    "golden/phi3-a",     "golden/glm4-a",
		"golden/mixtral-a",         "golden-next/gptbigcode-a", "golden-next/opt-a", "golden-next/falcon-a",
		"golden-next/starcoder2-a", "golden-next/mamba2-a"
	};
	(void)state;

	for (unsigned i = 0; i < sizeof models / sizeof *models; i++) {
		char model[1024], weights[1100], path[1024];
		if (test_quick() && i > 2)
			break;
		if (!shared_path(model, models[i]))
			return;
		jit_train *t = train_open(model, (jit_train_options){ .full = 1, .context = 4 });
		train_save_as(t, train_in_folder(path, "same"), JIT_TRAIN_WEIGHTS);
		snprintf(weights, sizeof weights, "%s/model.safetensors", model);
		compare_weights(train_in_folder(path, "same/model.safetensors"), weights);
		jit_train_close(t);
		train_remove_folder();
	}
}

/* All weights of a GPT-2: embeddings of positions, norms with biases, matrices that lie column by column. The losses
 * are those of torch_gpt2.py. */
void test_gpt2(void **state)
{
	static const double losses[] = { 8.27755865, 6.26501938, 4.74740621, 3.60726697,
		                         2.67765558, 1.93054144, 1.38111562 };
	char model[1024];
	int32_t ids[24];
	double worst = 0;
	(void)state;

	if (!shared_path(model, "golden-next/gpt2-a"))
		return;
	for (int i = 0; i < 24; i++)
		ids[i] = (i * i * 13 + 5) % 300;
	jit_train *t =
		train_open(model,
	                   (jit_train_options){ .full = 1, .rate = 1e-3f, .weight_decay = 0.01f, .context = 24 });
	for (unsigned s = 0; s < sizeof losses / sizeof *losses; s++) {
		train_feed(t, ids, NULL, 24);
		const jit_train_report r = train_step(t);
		worst = fmax(worst, fabs(r.loss - losses[s]) / losses[s]);
		if (s == 0 && fabs(r.norm - 11.0287621) > 1e-5 * 11)
			fail_msg("GPT-2: the gradients' norm is %.9g, expected 11.0287621", r.norm);
		if (fabs(r.loss - losses[s]) > 1e-5 * losses[s])
			fail_msg("GPT-2: the loss of step %u is %.9g, expected %.9g", s, r.loss, losses[s]);
	}
	printf("# GPT-2: 7 losses, at most %.1e from float64\n", worst);
	jit_train_close(t);
	jit_error e = { 0 };
	jit_train_options o = { .size = sizeof o, .full = 1, .context = 257, .model = model };
	assert_null(jit_train_open(&o, &e));
	assert_string_equal(e.message, "context: 257 is more than the 256 positions that the model has embeddings for");
}

/* ---- models that are made */

static const struct safetensors_tensor *named(const struct safetensors *s, const struct name_ref *name)
{
	for (uint32_t i = 0; i < s->n_tensors; i++)
		if (s->tensor[i].name.n == name->n && memcmp(s->tensor[i].name.p, name->p, name->n) == 0)
			return &s->tensor[i];
	return NULL;
}

/* Matrices have the deviation that config.json says, norms are 1 (or 0, where files have them less 1), biases 0. */
static void check_numbers(const struct safetensors_tensor *t, const uint8_t *bytes, bool less_one)
{
	const uint64_t n = t->bytes / sizeof(float);
	const bool bias = memcmp(t->name.p + t->name.n - 5, ".bias", 5) == 0;
	double sum = 0, squares = 0;

	for (uint64_t i = 0; i < n; i++) {
		float x;
		memcpy(&x, bytes + t->offset + i * sizeof x, sizeof x);
		sum += (double)x;
		squares += (double)x * (double)x;
	}
	if (t->rank == 1)
		assert_true(sum == (bias || less_one ? 0 : (double)n) && squares == sum);
	else
		assert_true(fabs(sqrt(squares / (double)n) - 0.02) < 0.02 * 4 / sqrt((double)n) &&
		            fabs(sum / (double)n) < 0.02 * 5 / sqrt((double)n));
}

/* A model that is made from a published configuration has the tensors of its published file. */
void test_new(void **state)
{
	static const struct {
		const char *model;
		bool less_one;
	} models[] = { { "golden-next/gpt2-a", false },     { "golden/gemma3-a", true },
		       { "golden/llama-a", false },         { "golden/phi3-a", false },
		       { "golden-next/opt-a", false },      { "golden-next/gptneox-a", false },
		       { "golden/qwen3-gqa2-bf16", false }, { "golden/cohere2-a", false } };
	char model[1024], path[1024], file[1100];
	struct error err = { 0 };
	uint64_t weights;
	(void)state;

	for (unsigned i = 0; i < sizeof models / sizeof *models; i++) {
		struct safetensors made, published;
		uint8_t *x, *y;
		uint64_t all = 0;
		if (test_quick() && i > 2)
			break;
		if (!shared_path(model, models[i].model))
			return;
		if (!train_new(model, train_in_folder(path, "new"), 7, &weights, &err))
			fail_msg("%s: %s", models[i].model, err.text);
		snprintf(file, sizeof file, "%s/model.safetensors", model);
		open_weights(&published, &y, file);
		open_weights(&made, &x, train_in_folder(path, "new/model.safetensors"));
		assert_int_equal(made.n_tensors, published.n_tensors);
		for (uint32_t k = 0; k < made.n_tensors; k++) {
			const struct safetensors_tensor *t = &made.tensor[k], *u = named(&published, &t->name);
			assert_true(u && u->rank == t->rank && memcmp(t->dim, u->dim, t->rank * sizeof *t->dim) == 0);
			assert_int_equal(t->type, DTYPE_F32);
			check_numbers(t, x, models[i].less_one);
			all += t->bytes / sizeof(float);
		}
		assert_int_equal(all, weights);
		jit_train_close(train_step_of(train_in_folder(path, "new"), (jit_train_options){ .full = 1 }));
		safetensors_free(&made);
		safetensors_free(&published);
		free(x);
		free(y);
		train_remove_folder();
	}
	assert_false(
		train_new(shared_path(model, "golden/mixtral-a"), train_in_folder(path, "new"), 7, &weights, &err));
	assert_non_null(strstr(err.text, "it has experts"));
	err = (struct error){ 0 };
	assert_false(train_new(shared_path(model, "golden-next/mamba-a"), path, 7, &weights, &err));
	assert_non_null(strstr(err.text, "neither a matrix, a norm nor a bias"));
	train_remove_folder();
}
