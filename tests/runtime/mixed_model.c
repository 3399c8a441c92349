/* tests/runtime/mixed_model.c - see mixed_model.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "programs/synth/synth.h"
#include "programs/synth/synth_blocks.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/mixed_model.h"

/* Inputs of 256 are the least that all formats can have; the heads are small, so that passes are quick. */
enum { HIDDEN = 256, FFN = 256, HEADS = 8, KV_HEADS = 2, HEAD_DIM = 32, CONTEXT = 512 };

struct mixed_types mixed_pair(enum dtype one, enum dtype other)
{
	return (struct mixed_types){ { { one, other, one, other, one, other, one },
		                       { other, one, one, one, other, one, other } } };
}

/* Other numbers for every tensor of a format. */
static void put_random(struct gguf_writer *w, const char *name, enum dtype type, uint64_t rows, uint64_t k)
{
	uint64_t blocks = rows * k / dtype_table[type].block, size = dtype_table[type].bytes, skip = w->n_tensors;
	uint64_t row = dtype_row_bytes(type, k), head = dtype_table[type].row;
	uint8_t *p = malloc((blocks + skip) * size), *out = malloc(rows * row);

	assert_true(p && out);
	synth_fill(type, p, blocks + skip);
	for (uint64_t i = 0; type == DTYPE_MXFP4 && i < blocks + skip; i++)
		p[i * size] = 120; /* the exponent of a block's scale, 2^-7 */
	for (uint64_t r = 0; r < rows; r++) {
		synth_row_head(type, out + r * row);
		memcpy(out + r * row + head, p + skip * size + r * (row - head), row - head);
	}
	gguf_write_tensor(w, name, type, 2, (const uint64_t[]){ k, rows }, out, rows * row);
	free(p);
	free(out);
}

static void put_ones(struct gguf_writer *w, const char *name)
{
	float one[HIDDEN];

	for (int i = 0; i < HIDDEN; i++)
		one[i] = 1;
	gguf_write_tensor(w, name, DTYPE_F32, 1, (const uint64_t[]){ HIDDEN }, one, sizeof one);
}

static void put_sizes(struct gguf_writer *w)
{
	gguf_write_string(w, "general.architecture", "llama");
	gguf_write_u32(w, "llama.vocab_size", MIXED_VOCAB);
	gguf_write_u32(w, "llama.context_length", CONTEXT);
	gguf_write_u32(w, "llama.embedding_length", HIDDEN);
	gguf_write_u32(w, "llama.block_count", MIXED_LAYERS);
	gguf_write_u32(w, "llama.feed_forward_length", FFN);
	gguf_write_u32(w, "llama.attention.head_count", HEADS);
	gguf_write_u32(w, "llama.attention.head_count_kv", KV_HEADS);
	gguf_write_u32(w, "llama.attention.key_length", HEAD_DIM);
	gguf_write_u32(w, "llama.attention.value_length", HEAD_DIM);
	gguf_write_u32(w, "llama.rope.dimension_count", HEAD_DIM);
	gguf_write_f32(w, "llama.rope.freq_base", 10000);
	gguf_write_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

static void put_layer(struct gguf_writer *w, unsigned layer, const enum dtype type[MIXED_MATRICES])
{
	static const struct {
		const char *name;
		uint64_t rows, k;
	} list[MIXED_MATRICES] = { [MIXED_Q] = { "attn_q", HEADS * HEAD_DIM, HIDDEN },
		                   [MIXED_K] = { "attn_k", KV_HEADS * HEAD_DIM, HIDDEN },
		                   [MIXED_V] = { "attn_v", KV_HEADS * HEAD_DIM, HIDDEN },
		                   [MIXED_O] = { "attn_output", HIDDEN, HEADS * HEAD_DIM },
		                   [MIXED_GATE] = { "ffn_gate", FFN, HIDDEN },
		                   [MIXED_UP] = { "ffn_up", FFN, HIDDEN },
		                   [MIXED_DOWN] = { "ffn_down", HIDDEN, FFN } };
	char name[64];

	for (int i = 0; i < MIXED_MATRICES; i++) {
		snprintf(name, sizeof name, "blk.%u.%s.weight", layer, list[i].name);
		put_random(w, name, type[i], list[i].rows, list[i].k);
	}
	snprintf(name, sizeof name, "blk.%u.attn_norm.weight", layer);
	put_ones(w, name);
	snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", layer);
	put_ones(w, name);
}

int mixed_model(char path[64], const struct mixed_types *types)
{
	struct error err = { 0 };
	struct gguf_writer w;
	size_t n;

	gguf_writer_start(&w, 3, 32);
	put_sizes(&w);
	put_random(&w, "token_embd.weight", DTYPE_Q8_0, MIXED_VOCAB, HIDDEN);
	put_ones(&w, "output_norm.weight");
	for (unsigned i = 0; i < MIXED_LAYERS; i++)
		put_layer(&w, i, types->layer[i]);
	uint8_t *file = gguf_writer_finish(&w, &n);
	gguf_writer_free(&w);
	int fd = synth_temporary(path, 64, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write(fd, file, n), n);
	free(file);
	return fd;
}
