/* tests/runtime/experts_files.h - a small mixture of experts, models that an adapter of its experts is summed into, and
 * the adapter's files, for adapters_experts.c; behind cmocka.h. */
#ifndef TESTS_EXPERTS_FILES_H
#define TESTS_EXPERTS_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/floats.h"
#include "loaders/files/gguf_write.h"
#include "loaders/files/safetensors.h"
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

/* The same pairs as those of parameters, gate and up together with a rank for each; crossed: as peft before 0.19.1
 * saves them. */
struct parameters {
	const char *name, *version; /* NULL: it does not say */
	bool crossed, gates_alone;
	unsigned rank; /* of down_proj, as the configuration says */
};

/* One parameter's; b: its second tensor, [long][ranks][experts]; else [experts][ranks][long]. */
static void add_parameter(struct entries *all, const struct parameters *w, unsigned layer, bool down, bool b)
{
	const unsigned rank = down ? RANK : 2 * RANK, out = down ? HIDDEN : 2 * FFN, in = down ? FFN : HIDDEN,
		       wide = b != w->crossed ? out : in;
	char name[160];

	snprintf(name, sizeof name, "base_model.model.model.layers.%u.mlp.experts%s.lora_%c.weight", layer,
	         down || w->gates_alone ? "" : ".base_layer", "AB"[b]);
	float *x = b ? add(all, name, wide, EXPERTS * rank) : add(all, name, EXPERTS * rank, wide);
	for (unsigned e = 0; e < EXPERTS; e++)
		for (unsigned j = 0; j < rank; j++)
			for (unsigned i = 0; i < wide; i++) {
				const bool up = !down && j >= RANK, outputs = b != w->crossed;
				const unsigned kind = down ? DOWN
				                      : up ? UP
				                           : GATE,
					       own = rank_of(kind, e), k = j % RANK, row = up ? i - FFN : i;
				const bool there = k < own && (!outputs || down || up == (i >= FFN));
				const float one = !there    ? 0
				                  : outputs ? number(layer, kind, e, true, row * own + k)
				                            : number(layer, kind, e, false, k * in + i);
				x[b ? (i * rank + j) * EXPERTS + e : (e * rank + j) * wide + i] = one;
			}
}

static const char *write_parameters(const struct parameters *w)
{
	struct entries *all = calloc(1, sizeof *all);
	struct error err = { 0 };
	char path[400], tensor[160];

	for (unsigned i = 0; i < LAYERS * 4; i++)
		if (i % 4 < 2 || !w->gates_alone)
			add_parameter(all, w, i / 4, i % 4 >= 2, i % 2);
	assert_true(train_folder_open(inside(path, w->name), &err));
	snprintf(tensor, sizeof tensor, "%s/adapter_model.safetensors", w->name);
	write_all(all, inside(path, tensor));
	snprintf(tensor, sizeof tensor, "%s/adapter_config.json", w->name);
	FILE *f = fopen(inside(path, tensor), "w");
	assert_non_null(f);
	fprintf(f,
	        "{\"peft_type\":\"LORA\",\"r\":%d,\"lora_alpha\":6,\"target_modules\":[],\"target_parameters\":["
	        "%s\"mlp.experts.gate_up_proj\"],\"rank_pattern\":{\".*\\\\.gate_up_proj\":%d},\"alpha_pattern\":{"
	        "\".*\\\\.gate_up_proj\":12}%s%s%s}",
	        w->rank, w->gates_alone ? "" : "\"experts.down_proj\",", 2 * RANK,
	        w->version ? ",\"peft_version\":\"" : "", w->version ? w->version : "", w->version ? "\"" : "");
	assert_int_equal(fclose(f), 0);
	return w->name;
}

#endif
