/* tests/runtime/t_gguf_forms.c - GGUF files in forms of which no reference lies there, made from those that do: they
 * compute the same, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/gguf.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

static const struct remade_run run = { "cpu", 16 };

struct source {
	struct gguf g;
	uint8_t *file;
	char path[1024];
};

static bool open_source(struct source *s, const char *name)
{
	char relative[80];
	struct error err = { 0 };
	size_t n;

	snprintf(relative, sizeof relative, "%s%s/model-bf16.gguf", strchr(name, '/') ? "" : "golden/", name);
	if (!shared_path(s->path, relative))
		return false;
	s->file = file_bytes(s->path, &n);
	assert_true(gguf_parse(&s->g, s->file, n, s->path, false, &err));
	return true;
}

static void close_source(struct source *s)
{
	gguf_free(&s->g);
	free(s->file);
}

static bool starts_with(const struct gguf_str *s, const char *word)
{
	return s->n >= strlen(word) && memcmp(s->p, word, strlen(word)) == 0;
}

/* The file's keys, those of an architecture under another one's name. */
static void put_keys(struct gguf_writer *w, const struct source *s, const char *was, const char *is)
{
	gguf_writer_start(w, 3, 32);
	gguf_write_string(w, "general.architecture", is);
	for (uint64_t i = 0; i < s->g.n_kv; i++) {
		const struct gguf_kv *kv = &s->g.kv[i];
		char key[200];
		if (starts_with(&kv->key, "general.architecture"))
			continue;
		if (starts_with(&kv->key, was))
			snprintf(key, sizeof key, "%s%.*s", is, (int)(kv->key.n - strlen(was)),
			         kv->key.p + strlen(was));
		else
			snprintf(key, sizeof key, "%.*s", (int)kv->key.n, kv->key.p);
		const uint64_t n = strlen(key);
		const uint8_t *rest = (const uint8_t *)kv->key.p + kv->key.n; /* its type, and its value */
		bytes_put(&w->kv, &n, sizeof n);
		bytes_put(&w->kv, key, n);
		bytes_put(&w->kv, rest, (size_t)(kv->data + kv->bytes - rest));
		w->n_kv++;
	}
}

static void put_tensor(struct gguf_writer *w, const struct source *s, const struct gguf_tensor *t)
{
	char name[100];

	snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
	gguf_write_tensor(w, name, t->type, t->n_dims, t->ne, s->file + t->offset, t->bytes);
}

static void finish(struct gguf_writer *w, const char *name)
{
	size_t n;
	uint8_t *p = gguf_writer_finish(w, &n);

	gguf_writer_free(w);
	remade_file(name, p, n);
	free(p);
}

/* Queries, keys, values and the gate in one tensor, by heads of keys, as safetensors have them. */
static void test_one_input(void **state)
{
	struct source s;
	struct original o;
	struct gguf_writer w;
	char made[300], name[100], hf[100];
	unsigned changed = 0;
	(void)state;

	if (!open_source(&s, "qwen3next-a") || !original_open(&o, "qwen3next-a"))
		skip();
	put_keys(&w, &s, "qwen3next", "qwen3next");
	for (uint64_t i = 0; i < s.g.n_tensors; i++) {
		const struct gguf_tensor *t = &s.g.tensor[i];
		unsigned layer;
		snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
		bool delta = sscanf(name, "blk.%u.", &layer) == 1;
		if (delta && strstr(name, "attn_gate.weight"))
			continue;
		if (!delta || !strstr(name, "attn_qkv.weight")) {
			put_tensor(&w, &s, t);
			continue;
		}
		snprintf(hf, sizeof hf, "model.layers.%u.linear_attn.in_proj_qkvz.weight", layer);
		struct slice all = original_slice(json_object_get(o.header, hf), o.data);
		snprintf(name, sizeof name, "blk.%u.ssm_in.weight", layer);
		gguf_write_tensor(&w, name, DTYPE_BF16, 2, (const uint64_t[]){ all.dim[1], all.dim[0] }, all.p,
		                  all.bytes);
		changed++;
	}
	finish(&w, "one.gguf");
	original_close(&o);
	assert_true(changed > 0);
	remade_compare(s.path, run, remade_path(made, "one.gguf"), run, 0);
	close_source(&s);
}

/* Mistral Large 3 is a deepseek2 whose queries are scaled by position. */
static void test_scaled_queries(void **state)
{
	struct source s;
	char path[1024], made[2][300];
	(void)state;

	if (!open_source(&s, "mistral4-a") || !shared_path(path, "golden/mistral4-a"))
		skip();
	for (int scaled = 0; scaled < 2; scaled++) {
		struct gguf_writer w;
		put_keys(&w, &s, "mistral4", "deepseek2");
		gguf_write_u32(&w, "deepseek2.expert_gating_func", 1);
		if (scaled) {
			gguf_write_f32(&w, "deepseek2.attention.temperature_scale", 0.1f);
			gguf_write_u32(&w, "deepseek2.attention.temperature_length", 8);
		}
		for (uint64_t i = 0; i < s.g.n_tensors; i++)
			put_tensor(&w, &s, &s.g.tensor[i]);
		finish(&w, scaled ? "scaled.gguf" : "plain.gguf");
	}
	remade_compare(s.path, run, remade_path(made[0], "plain.gguf"), run, 0);
	/* The same keys mean the same to the family that always has them. */
	struct gguf_writer w;
	put_keys(&w, &s, "mistral4", "mistral4");
	gguf_write_f32(&w, "mistral4.attention.temperature_scale", 0.1f);
	gguf_write_u32(&w, "mistral4.attention.temperature_length", 8);
	for (uint64_t i = 0; i < s.g.n_tensors; i++)
		put_tensor(&w, &s, &s.g.tensor[i]);
	finish(&w, "other.gguf");
	close_source(&s);
	remade_compare(remade_path(made[0], "scaled.gguf"), run, remade_path(made[1], "other.gguf"), run, 0);
	assert_true(remade_differ(remade_path(made[0], "plain.gguf"), remade_path(made[1], "scaled.gguf")));
}

/* Laguna's kinds of layers as a list; without one, three of four layers have a window and rotate otherwise. */
static void test_listed_windows(void **state)
{
	static const bool none[4];
	struct source s;
	struct gguf_writer w;
	char path[1024], made[300];
	(void)state;

	if (!open_source(&s, "golden-next/laguna-a") || !shared_path(path, "golden-next/laguna-a"))
		skip();
	put_keys(&w, &s, "laguna", "laguna");
	gguf_write_array(&w, "laguna.attention.sliding_window_pattern", GGUF_BOOL, 4, none, sizeof none);
	for (uint64_t i = 0; i < s.g.n_tensors; i++)
		put_tensor(&w, &s, &s.g.tensor[i]);
	finish(&w, "listed.gguf");
	remade_compare(path, run, remade_path(made, "listed.gguf"), run, 0);
	assert_true(remade_differ(s.path, remade_path(made, "listed.gguf")));
	close_source(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_input), cmocka_unit_test(test_scaled_queries),
		                            cmocka_unit_test(test_listed_windows) };
	return cmocka_run_group_tests(tests, remade_start, remade_end);
}
