/* tests/mutate/gguf_image.c - GGUF files as lists of keys and tensors, built and written. */
#include "tests/mutate/mutate.h"
#include "tests/mutate/gguf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t width_of[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/* --- building */

struct item *image_add(struct item *list, size_t *n, size_t max, const char *name)
{
	if (*n == max)
		abort();
	struct item *i = &list[(*n)++];
	memset(i, 0, sizeof *i);
	snprintf(i->name, sizeof i->name, "%s", name);
	i->name_bytes = strlen(i->name);
	i->name_length = i->name_bytes;
	return i;
}

struct item *add_key(struct image *g, const char *name, uint32_t type, const void *value, size_t n)
{
	struct item *k = image_add(g->key, &g->keys, MAX_KEYS, name);

	k->type = type;
	bytes_put(&k->value, value, n);
	return k;
}

void add_u32(struct image *g, const char *name, uint32_t v) { add_key(g, name, U32, &v, 4); }
static void add_f32(struct image *g, const char *name, float v) { add_key(g, name, F32, &v, 4); }

void put_text(struct bytes *b, const void *p, uint64_t n)
{
	bytes_put(b, &n, 8);
	bytes_put(b, p, n);
}

void add_text(struct image *g, const char *name, const char *v)
{
	put_text(&add_key(g, name, STRING, NULL, 0)->value, v, strlen(v));
}

static struct item *add_array(struct image *g, const char *name, uint32_t element, uint64_t count)
{
	struct item *k = add_key(g, name, ARRAY, NULL, 0);

	k->element = element;
	k->count = count;
	return k;
}

static void add_tensor(struct image *g, const char *name, uint32_t type, uint64_t cols, uint64_t rows)
{
	struct item *t = image_add(g->tensor, &g->tensors, MAX_TENSORS, name);
	uint64_t blocks = cols / 32 * (rows ? rows : 1), elements = cols * (rows ? rows : 1);

	t->type = type;
	t->n_dims = rows ? 2 : 1;
	t->dim[0] = cols;
	t->dim[1] = rows ? rows : 1;
	for (uint64_t i = 0; type == 0 && i < elements; i++) {
		float f = (float)((int)dice_below(g->dice, 128) - 64) / 64;
		bytes_put(&t->value, &f, 4);
	}
	for (uint64_t i = 0; type != 0 && i < blocks; i++) { /* Q8_0 and Q4_0: a scale of 2^-7, then quants */
		uint8_t block[34] = { 0x00, 0x20 };
		for (size_t k = 2; k < sizeof block; k++)
			block[k] = (uint8_t)dice_next(g->dice);
		bytes_put(&t->value, block, type == 8 ? 34 : 18);
	}
}

enum { HIDDEN = 32, HEAD = 16, VOCAB = 280 };

static void add_list_of_tokens(struct image *g, bool parts)
{
	static const char *const word[2][VOCAB - 259] = {
		{ "aa", "ab", "he", "in", "lo", "low", "er", "12", "[X]", "<|b|>", "zz",
		  "qq", "q1", "q2", "q3", "q4", "q5",  "q6", "q7", "q8",  "q9" },
		{ "\xe2\x96\x81t",
		  "he",
		  "\xe2\x96\x81the",
		  "in",
		  "\xe2\x96\x81",
		  "t",
		  "h",
		  "e",
		  "\xc3\xa9",
		  "ab",
		  "b",
		  "aa",
		  "a",
		  "lo",
		  "low",
		  "er",
		  "12",
		  "[X]",
		  "<|b|>",
		  "zz",
		  "q" },
	};
	struct item *tokens = add_array(g, "tokenizer.ggml.tokens", STRING, VOCAB),
		    *types = add_array(g, "tokenizer.ggml.token_type", I32, VOCAB);
	char text[32];

	for (uint32_t i = 0; i < VOCAB; i++) {
		uint32_t byte = i - 3, type = i == 0 ? 2 : i < 3 ? 3 : i < 259 && parts ? 6 : 1;
		if (i < 3) {
			snprintf(text, sizeof text, "%s", i == 0 ? "<unk>" : i == 1 ? "<s>" : "</s>");
		} else if (i >= 259) {
			snprintf(text, sizeof text, "%s", word[parts][i - 259]);
		} else if (parts) {
			snprintf(text, sizeof text, "<0x%02X>", byte);
		} else {
			uint32_t c = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174 ? byte
			             : byte <= 32  ? 256 + byte
			             : byte <= 160 ? 162 + byte
			                           : 323;
			if (c < 128)
				snprintf(text, sizeof text, "%c", (int)c);
			else
				snprintf(text, sizeof text, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
		}
		put_text(&tokens->value, text, strlen(text));
		bytes_put(&types->value, &type, 4);
	}
}

static void add_vocabulary(struct image *g)
{
	static const char *const merge[] = { "h e", "i n", "a b", "a a", "l o", "lo w", "e r", "1 2" };
	bool parts = dice_one_in(g->dice, 2);

	add_text(g, "tokenizer.ggml.model", parts ? "llama" : "gpt2");
	if (!parts)
		add_text(g, "tokenizer.ggml.pre", "llama-bpe");
	add_list_of_tokens(g, parts);
	if (parts) {
		struct item *scores = add_array(g, "tokenizer.ggml.scores", F32, VOCAB);
		for (int i = 0; i < VOCAB; i++) {
			float f = i < 259 ? 0 : (float)-i;
			bytes_put(&scores->value, &f, 4);
		}
	} else {
		struct item *merges = add_array(g, "tokenizer.ggml.merges", STRING, sizeof merge / sizeof *merge);
		for (size_t i = 0; i < sizeof merge / sizeof *merge; i++)
			put_text(&merges->value, merge[i], strlen(merge[i]));
	}
	add_u32(g, "tokenizer.ggml.bos_token_id", 1);
	add_u32(g, "tokenizer.ggml.eos_token_id", 2);
	add_key(g, "tokenizer.ggml.add_bos_token", BOOL, "\1", 1);
}

static void add_layer(struct image *g, unsigned layer, const char *arch, uint32_t type)
{
	static const struct {
		const char *name;
		uint64_t cols, rows;
	} list[] = {
		{ "attn_norm", HIDDEN, 0 },          { "attn_q", HIDDEN, 2 * HEAD },
		{ "attn_k", HIDDEN, HEAD },          { "attn_v", HIDDEN, HEAD },
		{ "attn_output", 2 * HEAD, HIDDEN }, { "ffn_norm", HIDDEN, 0 },
		{ "ffn_gate", HIDDEN, 64 },          { "ffn_up", HIDDEN, 64 },
		{ "ffn_down", 64, HIDDEN },
	};
	char name[96];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "blk.%u.%s.weight", layer, list[i].name);
		add_tensor(g, name, list[i].rows ? type : 0, list[i].cols, list[i].rows);
	}
	for (int i = 0; i < 2 && strcmp(arch, "qwen3") == 0; i++) {
		snprintf(name, sizeof name, "blk.%u.attn_%c_norm.weight", layer, "qk"[i]);
		add_tensor(g, name, 0, HEAD, 0);
	}
	for (int i = 0; i < 3 && strcmp(arch, "qwen2") == 0; i++) {
		snprintf(name, sizeof name, "blk.%u.attn_%c.bias", layer, "qkv"[i]);
		add_tensor(g, name, 0, i ? HEAD : 2 * HEAD, 0);
	}
}

void image_build(struct image *g, struct dice *d)
{
	static const char *const archs[] = { "llama", "qwen2", "qwen3" };
	static const uint32_t types[] = { 0, 8, 2 };
	const char *arch = archs[dice_below(d, 3)];
	uint32_t type = types[dice_below(d, 3)], layers = 1 + (uint32_t)dice_below(d, 2);
	char name[96];

	memset(g, 0, sizeof *g);
	g->dice = d;
	g->version = 2 + (uint32_t)dice_below(d, 2);
	g->alignment = dice_one_in(d, 3) ? 64 : 32;
	add_text(g, "general.architecture", arch);
	if (g->alignment != 32)
		add_u32(g, "general.alignment", g->alignment);
	add_text(g, "general.name", "a mutant");
	const struct {
		const char *name;
		uint32_t value;
	} sizes[] = { { "block_count", layers },        { "context_length", 64 },
		      { "embedding_length", HIDDEN },   { "feed_forward_length", 64 },
		      { "attention.head_count", 2 },    { "attention.head_count_kv", 1 },
		      { "attention.key_length", HEAD }, { "attention.value_length", HEAD },
		      { "rope.dimension_count", HEAD }, { "vocab_size", VOCAB } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		snprintf(name, sizeof name, "%s.%s", arch, sizes[i].name);
		add_u32(g, name, sizes[i].value);
	}
	snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", arch);
	add_f32(g, name, 1e-5f);
	snprintf(name, sizeof name, "%s.rope.freq_base", arch);
	add_f32(g, name, 10000);
	add_vocabulary(g);
	add_tensor(g, "token_embd.weight", type, HIDDEN, VOCAB);
	if (dice_one_in(d, 2))
		add_tensor(g, "output.weight", type, HIDDEN, VOCAB);
	add_tensor(g, "output_norm.weight", 0, HIDDEN, 0);
	for (unsigned i = 0; i < layers; i++)
		add_layer(g, i, arch, type);
}

void image_free(struct image *g)
{
	for (size_t i = 0; i < g->keys; i++)
		bytes_forget(&g->key[i].value);
	for (size_t i = 0; i < g->tensors; i++)
		bytes_forget(&g->tensor[i].value);
	g->keys = g->tensors = 0;
}

/* --- writing */

static void put_name(struct bytes *b, const struct item *i)
{
	bytes_put(b, &i->name_length, 8);
	bytes_put(b, i->name, i->name_bytes);
}

static size_t aligned(size_t n, size_t a) { return a && a <= 4096 ? (n + a - 1) / a * a : n; }

void lay_out(struct image *g)
{
	uint64_t at = 0;

	for (size_t i = 0; i < g->tensors && !g->keep_offsets; i++) {
		g->tensor[i].offset = at;
		at = aligned(at + g->tensor[i].value.n, g->alignment);
	}
}

void image_write(struct image *g, struct bytes *out)
{
	uint64_t tensors = g->tensors + g->n_tensors_stated, keys = g->keys + g->n_keys_stated;

	lay_out(g);
	bytes_put(out, "GGUF", 4);
	bytes_put(out, &g->version, 4);
	bytes_put(out, &tensors, 8);
	bytes_put(out, &keys, 8);
	for (size_t i = 0; i < g->keys; i++) {
		const struct item *k = &g->key[i];
		put_name(out, k);
		bytes_put(out, &k->type, 4);
		if (k->type == ARRAY) {
			bytes_put(out, &k->element, 4);
			bytes_put(out, &k->count, 8);
		}
		bytes_put(out, k->value.p, k->value.n);
	}
	for (size_t i = 0; i < g->tensors; i++) {
		const struct item *t = &g->tensor[i];
		put_name(out, t);
		bytes_put(out, &t->n_dims, 4);
		bytes_put(out, t->dim, 8 * (t->n_dims <= 6 ? t->n_dims : 6));
		bytes_put(out, &t->type, 4);
		bytes_put(out, &t->offset, 8);
	}
	bytes_resize(out, aligned(out->n, g->alignment));
	for (size_t i = 0; i < g->tensors; i++) {
		bytes_put(out, g->tensor[i].value.p, g->tensor[i].value.n);
		bytes_resize(out, aligned(out->n, g->alignment));
	}
}
