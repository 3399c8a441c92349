/* tests/fuzz/fuzz_gguf.c - arbitrary bytes as a GGUF file: what parses must be whole, what opens as a model must be
 * readable. */
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "tests/fuzz/fuzz.h"

static volatile uint64_t sink;

static void touch(const uint8_t *p, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += p[i];
	sink += sum;
}

static void read_keys(const struct gguf *g)
{
	char key[200];

	for (uint64_t i = 0; i < g->n_kv; i++) {
		const struct gguf_kv *kv = &g->kv[i];
		struct error err = { 0 };
		struct gguf_str s, *list;
		uint64_t u;
		double d;
		bool found, flag;
		touch(kv->data, kv->bytes);
		if (kv->key.n >= sizeof key || memchr(kv->key.p, 0, kv->key.n))
			continue;
		memcpy(key, kv->key.p, kv->key.n);
		key[kv->key.n] = 0;
		if (gguf_find(g, key) != kv)
			abort();
		gguf_u64(g, key, &u, &found, &err);
		gguf_f64(g, key, &d, &found, &err);
		gguf_bool(g, key, &flag, &found, &err);
		gguf_string(g, key, &s, &found, &err);
		if (gguf_strings(g, key, &list, &u, &found, &err))
			for (uint64_t k = 0; k < u; k++)
				touch((const uint8_t *)list[k].p, list[k].n);
		free(list);
		bool number = kv->type == GGUF_ARRAY && kv->item != GGUF_STRING && kv->item != GGUF_ARRAY;
		for (uint64_t k = 0; number && k < kv->count; k++)
			sink += (uint64_t)gguf_item_int(kv, k) + (gguf_item_float(kv, k) > 0);
	}
}

static void check_tensors(const struct gguf *g, const uint8_t *p, bool header_only)
{
	for (uint64_t i = 0; i < g->n_tensors; i++) {
		const struct gguf_tensor *t = &g->tensor[i];
		if (t->offset % g->alignment || t->offset + t->bytes < t->offset)
			abort();
		if (!header_only)
			touch(p + t->offset, t->bytes);
	}
}

static void touch_tensor(const struct model *m, const struct model_tensor *t)
{
	uint8_t *p = malloc(t->bytes + 1);

	if (t->bytes != t->rows * t->row_bytes || !p || !model_read(m, t, 0, t->bytes, p, NULL))
		abort();
	touch(p, t->bytes);
	free(p);
}

static void read_model(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	struct model m;
	char line[200];

	if (!model_open_memory(&m, p, n, NULL, 0, 0, &err)) {
		if (!err.text[0])
			abort();
		return;
	}
	touch_tensor(&m, &m.spec.embed);
	touch_tensor(&m, &m.spec.lm_head);
	for (uint32_t i = 0; i < m.spec.layers; i++)
		for (int k = 0; k < TENSOR_SLOTS; k++)
			touch_tensor(&m, (const struct model_tensor *)&m.spec.layer[i] + k);
	model_describe(&m, line, sizeof line);
	model_close(&m);
}

void fuzz_gguf(const uint8_t *p, size_t n)
{
	for (int header_only = 0; header_only < 2; header_only++) {
		struct error err = { 0 };
		struct gguf g;
		if (gguf_parse(&g, p, n, "fuzz", header_only, &err)) {
			read_keys(&g);
			check_tensors(&g, p, header_only);
			gguf_free(&g);
		} else if (!err.text[0])
			abort();
	}
	read_model(p, n);
}
