/* tests/fuzz/fuzz_adapter.c - arbitrary bytes as an adapter's files, for a small model: what is opened is read within
 * its memory, and what is refused is so with a sentence. The first byte says which files the rest is: g one of GGUF; s
 * two bytes with the length of adapter_config.json, that, and the tensors as safetensors. G and S are the same for a
 * model whose output matrix is its embedding.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/adapter/adapter.h"
#include "loaders/model/model_load.h"
#include "tests/fuzz/fuzz.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"

enum { HIDDEN = 4, FFN = 6, VOCAB = 5, RANK = 2 };

static struct model model[2]; /* of its own output matrix; tied */
static uint8_t *bytes_of[2];
static char *config_of[2];

static void close_models(void)
{
	for (int i = 0; i < 2; i++) {
		model_close(&model[i]);
		free(bytes_of[i]);
		free(config_of[i]);
	}
}

static void open_models(void)
{
	for (int i = 0; i < 2; i++) {
		struct tiny_model t = tiny_min;
		size_t n;
		t.tied = i;
		bytes_of[i] = tiny_safetensors(&t, &n);
		config_of[i] = tiny_config(&t);
		if (!bytes_of[i] || !config_of[i] ||
		    !model_open_memory(&model[i], bytes_of[i], n, config_of[i], strlen(config_of[i]), 0, NULL))
			abort();
	}
	if (atexit(close_models))
		abort();
}

static void read_whole(const struct adapter_file *f, const struct adapter_part *p)
{
	float *all = malloc(p->rows * p->cols * sizeof *all);
	struct error err = { 0 };

	if (!all || p->pair >= f->n_whole)
		abort();
	if (!adapter_read_whole(f, p, 0, p->rows, all, &err) && !err.text[0])
		abort();
	free(all);
}

static void read_part(const struct adapter_file *f, const struct adapter_part *p)
{
	if (!p->rank) {
		read_whole(f, p);
		return;
	}
	const struct adapter_pair *pair = &f->pair[p->pair];
	float *a = malloc(p->rank * p->cols * sizeof *a), *b = malloc(p->rank * p->rows * sizeof *b),
	      *row = malloc(p->rows * sizeof *row);
	struct error err = { 0 };

	if (!a || !b || !row || p->rank < 1 || p->rank > ADAPTER_MAX_RANK || p->pair >= f->n_pairs)
		abort();
	bool ok = adapter_read(f, p, a, b, &err);
	ok = ok && (!pair->magnitude.name || adapter_read_magnitude(f, p, row, &err)) &&
	     (!pair->bias.name || adapter_read_bias(f, p, row, &err)) &&
	     (!pair->own_bias.name || adapter_read_own_bias(f, p, row, &err));
	if (!ok && !err.text[0])
		abort();
	free(a);
	free(b);
	free(row);
}

static void open_one(const char *path, const struct model *m, bool merges)
{
	struct adapter_file f;
	struct error err = { 0 };

	if (!(merges ? adapter_open_to_merge : adapter_open)(&f, path, m, &err)) {
		if (!err.code || !err.text[0])
			abort();
		return;
	}
	for (size_t i = 0; i < f.n_parts; i++)
		read_part(&f, &f.part[i]);
	adapter_close(&f);
}

void fuzz_adapter(const uint8_t *p, size_t n)
{
	const char kind = n ? (char)p[0] : 'g';
	const char *path;
	uint16_t length = 0;

	if (!bytes_of[0])
		open_models();
	p += n > 0;
	n -= n > 0;
	if (kind == 's' || kind == 'S') {
		if (n < sizeof length)
			return;
		memcpy(&length, p, sizeof length);
		p += sizeof length;
		n -= sizeof length;
		const size_t config = length < n ? length : n;
		fuzz_file(0, "adapter_config.json", p, config);
		path = fuzz_file(1, "adapter_model.safetensors", p + config, n - config);
	} else {
		path = fuzz_file(1, "adapter.gguf", p, n);
	}
	for (int merges = 0; merges < 2; merges++)
		open_one(path, &model[kind == 'G' || kind == 'S'], merges);
	unlink(path);
}

/* ---- seeds */

struct made {
	const char *name;
	unsigned rows, cols; /* cols 0: it is a row */
};

static void give_peft(char kind, const char *config, const struct made *t, unsigned count,
                      void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	uint8_t all[4096] = { 0 };
	const uint16_t n_config = (uint16_t)strlen(config);
	char *const header = (char *)all + 3 + n_config + 8;
	unsigned data = 0, n = (unsigned)sprintf(header, "{");

	all[0] = (uint8_t)kind;
	memcpy(all + 1, &n_config, sizeof n_config);
	memcpy(all + 3, config, n_config);
	for (unsigned i = 0; i < count; i++) {
		const unsigned elements = t[i].rows * (t[i].cols ? t[i].cols : 1);
		char shape[40];
		snprintf(shape, sizeof shape, t[i].cols ? "%u,%u" : "%u", t[i].rows, t[i].cols);
		n += (unsigned)sprintf(header + n,
		                       "%s\"base_model.model.%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":["
		                       "%u,%u]}",
		                       i ? "," : "", t[i].name, i % 2 ? "F16" : "F32", shape, data,
		                       data + elements * (i % 2 ? 2 : 4));
		data += elements * (i % 2 ? 2 : 4);
	}
	n += (unsigned)sprintf(header + n, "}");
	const uint64_t length = n;
	memcpy(all + 3 + n_config, &length, sizeof length);
	take(user, all, 3 + n_config + 8 + (size_t)n + data);
}

static void give_gguf(char kind, void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const struct made tensor[] = {
		{ "blk.0.attn_q.weight.lora_a", RANK, HIDDEN }, { "blk.0.attn_q.weight.lora_b", HIDDEN, RANK },
		{ "blk.0.ffn_down.weight.lora_a", RANK, FFN },  { "blk.0.ffn_down.weight.lora_b", HIDDEN, RANK },
		{ "token_embd.weight.lora_a", VOCAB, RANK },    { "token_embd.weight.lora_b", HIDDEN, RANK },
		{ "output_norm.weight.lora_a", 1, 1 }
	};
	static const uint8_t data[4 * FFN * RANK];
	static const int32_t ids[] = { 1, 2 };
	struct gguf_writer w;
	size_t n;

	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.type", "adapter");
	gguf_write_string(&w, "general.architecture", "llama");
	gguf_write_string(&w, "adapter.type", "lora");
	gguf_write_f32(&w, "adapter.lora.alpha", 4);
	gguf_write_array(&w, "adapter.alora.invocation_tokens", GGUF_I32, 2, ids, sizeof ids);
	for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++)
		gguf_write_tensor(&w, tensor[i].name, DTYPE_F32, 2,
		                  (const uint64_t[]){ tensor[i].cols, tensor[i].rows }, data,
		                  tensor[i].cols * tensor[i].rows * sizeof(float));
	uint8_t *file = gguf_writer_finish(&w, &n), *all = malloc(n + 1);
	if (!file || !all)
		abort();
	all[0] = (uint8_t)kind;
	memcpy(all + 1, file, n);
	take(user, all, n + 1);
	free(all);
	free(file);
	gguf_writer_free(&w);
}

void fuzz_adapter_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
#define Q "model.layers.0.self_attn.q_proj"
#define D "model.layers.0.mlp.down_proj"
	static const struct made
		plain[] = { { Q ".lora_A.weight", RANK, HIDDEN },      { Q ".lora_B.weight", HIDDEN, RANK },
		            { D ".lora_A.default.weight", RANK, FFN }, { D ".lora_B.default.weight", HIDDEN, RANK },
		            { D ".lora_B.bias", HIDDEN, 0 },           { Q ".lora_B.bias", HIDDEN, 0 } },
		dora[] = { { Q ".lora_A.weight", RANK, HIDDEN },
		           { Q ".lora_B.weight", HIDDEN, RANK },
		           { Q ".lora_magnitude_vector", HIDDEN, 0 } },
		outside[] = { { "model.embed_tokens.lora_embedding_A", RANK, VOCAB },
		              { "model.embed_tokens.lora_embedding_B", HIDDEN, RANK },
		              { "lm_head.lora_A.weight", RANK, HIDDEN },
		              { "lm_head.lora_B.weight", VOCAB, RANK } },
		whole[] = { { "model.embed_tokens.weight", VOCAB, HIDDEN },
		            { "lm_head.weight", VOCAB, HIDDEN },
		            { "lm_head.base_layer.weight", VOCAB, HIDDEN } };
	for (int tied = 0; tied < 2; tied++) {
		const char s = tied ? 'S' : 's';
		give_gguf(tied ? 'G' : 'g', take, user);
		give_peft(s,
		          "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4,\"lora_bias\":true,\"use_rslora\":true,"
		          "\"alora_invocation_tokens\":[1,2],\"target_modules\":[\"q_proj\",\"down_proj\"]}",
		          plain, 6, take, user);
		give_peft(s,
		          "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4,\"alpha_pattern\":{\"q.*|[kv]_proj\":1},"
		          "\"layers_to_transform\":[0]}",
		          plain, 4, take, user);
		give_peft(s, "{\"peft_type\":\"LORA\",\"r\":2,\"use_dora\":true}", dora, 3, take, user);
		give_peft(s, "{\"peft_type\":\"LORA\",\"r\":2,\"rank_pattern\":{\"lm_head\":2}}", outside, 4, take,
		          user);
		give_peft(s, "{\"peft_type\":\"LORA\",\"r\":2,\"modules_to_save\":[\"embed_tokens\",\"lm_head\"]}",
		          whole, 3, take, user);
	}
}
