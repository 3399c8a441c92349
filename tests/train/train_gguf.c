/* tests/train/train_gguf.c - adapters as GGUF files have them, and of models in GGUF files: part of t_train. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/train.h"

static void compare_gguf(const char *ours, const char *theirs)
{
	struct gguf a, b;
	struct error err = { 0 };
	size_t n, m;
	uint8_t *x = file_bytes(ours, &n), *y = file_bytes(theirs, &m);
	double alpha = 0, expected = 0;
	bool found;

	assert_true(gguf_parse(&a, x, n, ours, false, &err) && gguf_parse(&b, y, m, theirs, false, &err));
	assert_int_equal(a.n_tensors, b.n_tensors);
	for (uint64_t i = 0; i < a.n_tensors; i++) {
		char name[256];
		snprintf(name, sizeof name, "%.*s", (int)a.tensor[i].name.n, a.tensor[i].name.p);
		const struct gguf_tensor *t = gguf_find_tensor(&b, name);
		if (!t)
			fail_msg("%s is not in %s", name, theirs);
		assert_int_equal(t->type, a.tensor[i].type);
		assert_memory_equal(t->ne, a.tensor[i].ne, sizeof t->ne);
		if (memcmp(x + a.tensor[i].offset, y + t->offset, t->bytes) != 0)
			fail_msg("%s has other values than in %s", name, theirs);
	}
	assert_true(gguf_f64(&a, "adapter.lora.alpha", &alpha, &found, &err) && found);
	assert_true(gguf_f64(&b, "adapter.lora.alpha", &expected, &found, &err) && found);
	assert_true(alpha == expected);
	gguf_free(&a);
	gguf_free(&b);
	free(x);
	free(y);
}

/* A model as GGUF whose matrices share tensors, as those of safetensors do, is trained to the same adapter, by the same
 * names. alone: PEFT has no form of it that a GGUF file's order of rows leads to. */
void test_gguf_fused(void **state)
{
	static const struct {
		const char *model, *has;
		bool alone;
	} cases[] = { { "golden/phi3-a", "self_attn.qkv_proj.lora_B.weight", false },
		      { "golden/glm4-a", NULL, true },
		      { "golden/nemotronh-a", "mixer.in_proj.lora_B.weight", false } };
	char model[1024], path[1024], first[1024], second[1024], relative[200];
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		const jit_train_options o = { .rank = 3, .alpha = 4 };
		size_t n, m;
		if (!shared_path(model, cases[i].model))
			return;
		jit_train *t = train_step_of(model, o);
		snprintf(relative, sizeof relative, "%s/model-bf16.gguf", cases[i].model);
		jit_train *g = train_step_of(shared_path(model, relative), o);
		train_save_as(t, train_in_folder(path, "ours.gguf"), JIT_TRAIN_GGUF);
		train_save_as(g, train_in_folder(path, "of.gguf"), JIT_TRAIN_GGUF);
		compare_gguf(train_in_folder(first, "ours.gguf"), train_in_folder(second, "of.gguf"));
		if (!cases[i].alone) {
			train_save_as(t, train_in_folder(path, "ours"), JIT_TRAIN_PEFT);
			train_save_as(g, train_in_folder(path, "of"), JIT_TRAIN_PEFT);
			uint8_t *x = file_bytes(train_in_folder(first, "ours/adapter_model.safetensors"), &n),
				*y = file_bytes(train_in_folder(second, "of/adapter_model.safetensors"), &m);
			assert_int_equal(n, m);
			assert_memory_equal(x, y, n);
			assert_non_null(memmem(x, n, cases[i].has, strlen(cases[i].has)));
			free(x);
			free(y);
		}
		jit_train_close(t);
		jit_train_close(g);
	}
}

/* peft's adapters become what llama.cpp's converter makes of them; and a model as GGUF, whose queries and keys have
 * another order, is trained to the same adapter. */
void test_gguf_order(void **state)
{
	static const struct {
		const char *model, *adapter;
		int rank;
		float alpha;
	} cases[] = { { "golden/llama-a", "golden-more/lora-llama-a", 8, 16 } };
	char model[1024], path[1024], theirs[1024], relative[200];
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		const jit_train_options o = { .rank = cases[i].rank, .alpha = cases[i].alpha };
		size_t n, m;
		snprintf(relative, sizeof relative, "%s/adapter_model.safetensors", cases[i].adapter);
		if (!shared_path(model, cases[i].model) || !shared_path(theirs, relative))
			return;
		jit_train *t = train_step_of(model, o);
		train_save_as(t, train_in_folder(path, "ours.gguf"), JIT_TRAIN_GGUF);
		train_save_as(t, train_in_folder(path, "ours"), JIT_TRAIN_PEFT);
		snprintf(relative, sizeof relative, "%s/model-bf16.gguf", cases[i].model);
		jit_train *g = train_step_of(shared_path(model, relative), o);
		train_save_as(g, train_in_folder(path, "of.gguf"), JIT_TRAIN_GGUF);
		train_save_as(g, train_in_folder(path, "of"), JIT_TRAIN_PEFT);
		char first[1024], second[1024];
		compare_gguf(train_in_folder(first, "ours.gguf"), train_in_folder(second, "of.gguf"));
		uint8_t *x = file_bytes(train_in_folder(first, "ours/adapter_model.safetensors"), &n),
			*y = file_bytes(train_in_folder(second, "of/adapter_model.safetensors"), &m);
		assert_int_equal(n, m);
		assert_memory_equal(x, y, n);
		free(x);
		free(y);
		struct error err = { 0 };
		if (!train_load_peft(t, theirs, &err))
			fail_msg("%s", err.text);
		train_save_as(t, train_in_folder(path, "ours.gguf"), JIT_TRAIN_GGUF);
		snprintf(relative, sizeof relative, "%s/adapter-f32.gguf", cases[i].adapter);
		compare_gguf(path, shared_path(theirs, relative));
		jit_train_close(t);
		jit_train_close(g);
		t = train_step_of(shared_path(model, cases[i].model), (jit_train_options){ .rank = 3 });
		assert_false(train_load_peft(t, shared_path(theirs, cases[i].adapter), &err));
		assert_non_null(strstr(err.text, "has another shape"));
		jit_train_close(t);
		t = train_step_of(model, (jit_train_options){ .rank = 8, .targets = "q_proj" });
		err = (struct error){ 0 };
		assert_false(train_load_peft(t, theirs, &err));
		assert_non_null(strstr(err.text, "has 28 tensors, and 4 are trained"));
		jit_train_close(t);
	}
	train_remove_folder();
}
