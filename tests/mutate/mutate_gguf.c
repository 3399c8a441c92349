/* tests/mutate/mutate_gguf.c - GGUF files as lists of keys and tensors: changed there, then written with what else
 * follows from it. */
#include "tests/mutate/mutate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The format's numbers, written down once more. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
static const uint8_t width_of[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
enum { MOST_KEYS = 64, MOST_TENSORS = 64 };

struct item {
	char name[96];
	size_t name_bytes; /* as it is written; the length that is stated is another matter */
	uint64_t name_length;
	uint32_t type, element; /* of a key; of a tensor type alone */
	uint64_t count;         /* of an array, as stated */
	struct bytes value; /* of a key: as it is written, an array's from its first element; of a tensor its data */
	uint32_t n_dims;
	uint64_t dim[6], offset;
};

struct image {
	uint32_t version, alignment;
	uint64_t n_keys_stated, n_tensors_stated; /* added to what is there */
	struct item key[MOST_KEYS], tensor[MOST_TENSORS];
	size_t keys, tensors;
	bool keep_offsets; /* as they were changed; else they follow from the order */
	struct dice *dice;
};

/* --- building */

static struct item *add(struct item *list, size_t *n, size_t most, const char *name)
{
	if (*n == most)
		abort();
	struct item *i = &list[(*n)++];
	memset(i, 0, sizeof *i);
	snprintf(i->name, sizeof i->name, "%s", name);
	i->name_bytes = strlen(i->name);
	i->name_length = i->name_bytes;
	return i;
}

static struct item *add_key(struct image *g, const char *name, uint32_t type, const void *value, size_t n)
{
	struct item *k = add(g->key, &g->keys, MOST_KEYS, name);

	k->type = type;
	bytes_put(&k->value, value, n);
	return k;
}

static void add_u32(struct image *g, const char *name, uint32_t v) { add_key(g, name, U32, &v, 4); }
static void add_f32(struct image *g, const char *name, float v) { add_key(g, name, F32, &v, 4); }

static void put_text(struct bytes *b, const void *p, uint64_t n)
{
	bytes_put(b, &n, 8);
	bytes_put(b, p, n);
}

static void add_text(struct image *g, const char *name, const char *v)
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
	struct item *t = add(g->tensor, &g->tensors, MOST_TENSORS, name);
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

static void add_list_of_tokens(struct image *g, bool pieces)
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
		uint32_t byte = i - 3, type = i == 0 ? 2 : i < 3 ? 3 : i < 259 && pieces ? 6 : 1;
		if (i < 3) {
			snprintf(text, sizeof text, "%s", i == 0 ? "<unk>" : i == 1 ? "<s>" : "</s>");
		} else if (i >= 259) {
			snprintf(text, sizeof text, "%s", word[pieces][i - 259]);
		} else if (pieces) {
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
	bool pieces = dice_one_in(g->dice, 2);

	add_text(g, "tokenizer.ggml.model", pieces ? "llama" : "gpt2");
	if (!pieces)
		add_text(g, "tokenizer.ggml.pre", "llama-bpe");
	add_list_of_tokens(g, pieces);
	if (pieces) {
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

static void build(struct image *g, struct dice *d)
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

static void image_free(struct image *g)
{
	for (size_t i = 0; i < g->keys; i++)
		bytes_free(&g->key[i].value);
	for (size_t i = 0; i < g->tensors; i++)
		bytes_free(&g->tensor[i].value);
	g->keys = g->tensors = 0;
}

/* --- writing */

static void put_name(struct bytes *b, const struct item *i)
{
	bytes_put(b, &i->name_length, 8);
	bytes_put(b, i->name, i->name_bytes);
}

static size_t aligned(size_t n, size_t a) { return a && a <= 4096 ? (n + a - 1) / a * a : n; }

static void lay_out(struct image *g)
{
	uint64_t at = 0;

	for (size_t i = 0; i < g->tensors && !g->keep_offsets; i++) {
		g->tensor[i].offset = at;
		at = aligned(at + g->tensor[i].value.n, g->alignment);
	}
}

static void image_write(struct image *g, struct bytes *out)
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

/* --- changes */

static void copy_item(struct item *list, size_t *n, size_t most, size_t i)
{
	if (*n == most)
		return;
	struct item *to = &list[(*n)++];
	*to = list[i];
	to->value = (struct bytes){ 0 };
	bytes_put(&to->value, list[i].value.p, list[i].value.n);
}

static void remove_item(struct item *list, size_t *n, size_t i)
{
	bytes_free(&list[i].value);
	memmove(&list[i], &list[i + 1], (--*n - i) * sizeof *list);
}

static void swap_items(struct item *a, struct item *b)
{
	struct item t = *a;

	*a = *b;
	*b = t;
}

static void change_name(struct dice *d, struct item *i)
{
	switch (dice_below(d, 5)) {
	case 0: i->name_length = dice_odd(d, i->name_length); break;
	case 1: i->name_bytes = i->name_length = dice_below(d, i->name_bytes + 1); break;
	case 2: i->name[dice_below(d, i->name_bytes ? i->name_bytes : 1)] = (char)dice_next(d); break;
	case 3: i->name[dice_below(d, i->name_bytes ? i->name_bytes : 1)] ^= 0x20; break;
	default:
		i->name_bytes = i->name_length = sizeof i->name;
		memset(i->name, 'x', sizeof i->name);
		break;
	}
}

/* A number written as another type, which may or may not hold it; or a text. */
static void retype(struct dice *d, struct item *k)
{
	uint64_t old = 0, v;
	double f;

	memcpy(&old, k->value.p, k->value.n < 8 ? k->value.n : 8);
	v = dice_one_in(d, 3) ? old : dice_odd(d, old);
	k->type = (uint32_t)dice_below(d, TYPES);
	k->value.n = 0;
	if (k->type == STRING) {
		put_text(&k->value, "12", 2);
	} else if (k->type == ARRAY) {
		k->element = (uint32_t)dice_below(d, TYPES);
		k->count = dice_below(d, 4);
		for (uint64_t i = 0; i < k->count; i++)
			bytes_put(&k->value, width_of[k->element] ? (const void *)&v : NULL,
			          width_of[k->element] ? width_of[k->element] : 12);
	} else if (k->type == F64 || k->type == F32) {
		static const double odd[] = { 0, -1, 1e-45, 1e300, -1e300, 0x1p31, 0x1p63, 0.5 };
		f = dice_one_in(d, 4)   ? 0.0 / (double)(v & 0)
		    : dice_one_in(d, 4) ? (double)v
		                        : odd[dice_below(d, sizeof odd / sizeof *odd)];
		float narrow = f > 3e38 ? 3e38f : f < -3e38 ? -3e38f : (float)f;
		bytes_put(&k->value, k->type == F64 ? (const void *)&f : (const void *)&narrow, width_of[k->type]);
	} else {
		bytes_put(&k->value, &v, width_of[k->type]);
	}
}

static void change_value(struct dice *d, struct item *k)
{
	unsigned width = k->type == ARRAY  ? k->element < TYPES ? width_of[k->element] : 0
	                 : k->type < TYPES ? width_of[k->type]
	                                   : 0;
	uint64_t v = 0;

	if (width && k->value.n >= width && !dice_one_in(d, 4)) {
		size_t at = (size_t)dice_below(d, k->value.n / width) * width;
		memcpy(&v, k->value.p + at, width);
		v = dice_odd(d, v);
		memcpy(k->value.p + at, &v, width);
	} else {
		mutate_bytes(d, &k->value);
	}
}

static void change_key(struct mutant *m, struct image *g)
{
	struct dice *d = &m->dice;
	size_t i = (size_t)dice_below(d, g->keys);
	struct item *k = &g->key[i];
	unsigned way = (unsigned)dice_below(d, 12);

	mutant_say(m, "key %.50s (%u)", k->name, way);
	switch (way) {
	case 0: remove_item(g->key, &g->keys, i); break;
	case 1: copy_item(g->key, &g->keys, MOST_KEYS, i); break;
	case 2: swap_items(k, &g->key[dice_below(d, g->keys)]); break;
	case 3: change_name(d, k); break;
	case 4: k->type = (uint32_t)(dice_one_in(d, 4) ? dice_odd(d, k->type) : dice_below(d, TYPES + 2)); break;
	case 5: k->element = (uint32_t)(dice_one_in(d, 4) ? dice_odd(d, k->element) : dice_below(d, TYPES + 2)); break;
	case 6: k->count = dice_odd(d, k->count); break;
	case 7:
	case 8:
		if (k->type != ARRAY && k->type != STRING)
			retype(d, k);
		else
			change_value(d, k);
		break;
	default: change_value(d, k); break;
	}
}

/* A key that a reader may know, and another value than the one that means nothing. */
static void add_odd_key(struct mutant *m, struct image *g)
{
	static const char *const known[] = {
		"rope.scaling.type",
		"rope.scaling.factor",
		"rope.scaling.original_context_length",
		"rope.scale_linear",
		"rope.scaling.attn_factor",
		"rope.scaling.yarn_beta_fast",
		"attention.sliding_window",
		"expert_count",
		"expert_used_count",
		"attn_logit_softcapping",
		"final_logit_softcapping",
		"attention.max_alibi_bias",
		"rope.dimension_sections",
		"logit_scale",
		"attention.causal",
		"pooling_type",
		"tensor_data_layout",
		"leading_dense_block_count",
		"nextn_predict_layers"
	};
	static const char *const scaling[] = { "linear", "yarn", "longrope", "none", "" };
	char name[96];
	struct item *k;

	if (g->keys == MOST_KEYS || g->key[0].value.n < 8)
		return;
	snprintf(name, sizeof name, "%.*s.%s", (int)(g->key[0].value.n - 8 < 20 ? g->key[0].value.n - 8 : 20),
	         (const char *)g->key[0].value.p + 8, known[dice_below(&m->dice, sizeof known / sizeof *known)]);
	mutant_say(m, "new key %.50s", name);
	if (strstr(name, "scaling.type")) {
		add_text(g, name, scaling[dice_below(&m->dice, 5)]);
		return;
	}
	k = add_key(g, name, U32, "\0\0\0", 4);
	retype(&m->dice, k);
}

static void change_tensor(struct mutant *m, struct image *g)
{
	struct dice *d = &m->dice;
	size_t i = (size_t)dice_below(d, g->tensors);
	struct item *t = &g->tensor[i];
	unsigned way = (unsigned)dice_below(d, 13);
	uint64_t *dim = &t->dim[dice_below(d, t->n_dims < 4 ? t->n_dims : 4)];

	mutant_say(m, "tensor %.50s (%u)", t->name, way);
	switch (way) {
	case 0: remove_item(g->tensor, &g->tensors, i); break;
	case 1: copy_item(g->tensor, &g->tensors, MOST_TENSORS, i); break;
	case 2: swap_items(t, &g->tensor[dice_below(d, g->tensors)]); break;
	case 3: change_name(d, t); break;
	case 4: t->n_dims = (uint32_t)(dice_one_in(d, 2) ? dice_below(d, 6) : dice_odd(d, t->n_dims)); break;
	case 5: *dim = dice_odd(d, *dim); break;
	case 6:
		t->dim[0] ^= t->dim[1];
		t->dim[1] ^= t->dim[0];
		t->dim[0] ^= t->dim[1];
		break;
	case 7: t->type = (uint32_t)(dice_one_in(d, 4) ? dice_odd(d, t->type) : dice_below(d, 44)); break;
	case 8: bytes_resize(&t->value, (size_t)dice_below(d, 2 * t->value.n)); break;
	case 9:
		t->n_dims = 4;
		t->dim[2] = 1 + dice_below(d, 2);
		t->dim[3] = 1;
		break;
	case 10:
		for (size_t k = 0; k + 4 <= t->value.n; k += 4) {
			uint32_t nan = 0x7fc00000;
			memcpy(t->value.p + k, &nan, 4);
		}
		break;
	default:
		lay_out(g);
		g->keep_offsets = true;
		t->offset = dice_one_in(d, 2)   ? dice_odd(d, t->offset)
		            : dice_one_in(d, 2) ? t->offset + g->alignment
		                                : g->tensor[dice_below(d, g->tensors)].offset;
		break;
	}
}

static void change_head(struct mutant *m, struct image *g)
{
	unsigned way = (unsigned)dice_below(&m->dice, 5);

	mutant_say(m, "head (%u)", way);
	switch (way) {
	case 0: g->version = (uint32_t)dice_odd(&m->dice, g->version); break;
	case 1: g->n_keys_stated = dice_odd(&m->dice, g->keys) - g->keys; break;
	case 2: g->n_tensors_stated = dice_odd(&m->dice, g->tensors) - g->tensors; break;
	case 3: g->alignment = (uint32_t)dice_odd(&m->dice, 32); break;
	default: add_u32(g, "general.alignment", (uint32_t)dice_odd(&m->dice, 32)); break;
	}
}

static void change(struct mutant *m, struct image *g)
{
	switch (dice_below(&m->dice, 8)) {
	case 0: change_head(m, g); break;
	case 1: add_odd_key(m, g); break;
	case 2:
	case 3:
	case 4:
		if (g->tensors)
			change_tensor(m, g);
		break;
	default:
		if (g->keys)
			change_key(m, g);
		break;
	}
}

static void damage(struct mutant *m, struct bytes *b)
{
	if (dice_one_in(&m->dice, 12)) {
		mutant_say(m, "bytes");
		mutate_bytes(&m->dice, b);
	}
}

void mutate_gguf(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	struct image g;

	build(&g, &m->dice);
	for (unsigned i = 0; i < changes; i++)
		change(m, &g);
	snprintf(m->open, sizeof m->open, "model.gguf");
	image_write(&g, mutant_add_file(m, m->open));
	image_free(&g);
	if (changes)
		damage(m, &m->file[0].b);
}

/* --- vocabularies */

static struct item *find_key(struct image *g, const char *name)
{
	for (size_t i = 0; i < g->keys; i++)
		if (strcmp(g->key[i].name, name) == 0)
			return &g->key[i];
	return NULL;
}

/* An array's texts anew, with one of them another: empty, long, no UTF-8, another's, without its space. */
static void change_one_text(struct dice *d, struct item *k)
{
	static const char *const odd[] = { "",           " ",        "  ",           "a",      "a a",
		                           "x y z",      "\xff\xfe", "\xed\xa0\x80", "<0x41>", "<0xZZ>",
		                           "<|im_end|>", "\x1b[31m", "the  end" };
	uint64_t which = dice_below(d, k->count), n = 0, at = 0;
	char *text = NULL;

	for (uint64_t i = 0; i <= which; i++, at += 8 + n) {
		if (at + 8 > k->value.n)
			return;
		memcpy(&n, k->value.p + at, 8);
		if (i == which)
			break;
	}
	if (n > k->value.n - at - 8)
		return;
	if (dice_one_in(d, 6)) {
		size_t length = (size_t)dice_below(d, 40000);
		struct bytes longer = { 0 };
		put_text(&longer, NULL, length);
		memset(longer.p + 8, 'a', length);
		bytes_splice(&k->value, at, 8 + n, longer.p, longer.n);
		bytes_free(&longer);
		return;
	}
	text = (char *)(uintptr_t)odd[dice_below(d, sizeof odd / sizeof *odd)];
	struct bytes other = { 0 };
	put_text(&other, text, strlen(text));
	bytes_splice(&k->value, at, 8 + n, other.p, other.n);
	bytes_free(&other);
}

static void change_vocabulary(struct mutant *m, struct image *g)
{
	static const char *const name[] = {
		"tokenizer.ggml.tokens",       "tokenizer.ggml.tokens",       "tokenizer.ggml.merges",
		"tokenizer.ggml.merges",       "tokenizer.ggml.token_type",   "tokenizer.ggml.scores",
		"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_bos_token",
		"tokenizer.ggml.model",        "tokenizer.ggml.pre"
	};
	static const char *const fresh[] = {
		"tokenizer.ggml.unknown_token_id",     "tokenizer.ggml.eot_token_id",
		"tokenizer.ggml.add_space_prefix",     "tokenizer.ggml.remove_extra_whitespaces",
		"tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.eog_token_ids",
		"tokenizer.ggml.add_eos_token",        "tokenizer.ggml.padding_token_id"
	};
	struct item *k = find_key(g, name[dice_below(&m->dice, sizeof name / sizeof *name)]);

	if (dice_one_in(&m->dice, 6)) {
		const char *which = fresh[dice_below(&m->dice, sizeof fresh / sizeof *fresh)];
		mutant_say(m, "new key %s", which);
		retype(&m->dice, add_key(g, which, U32, "\0\0\0", 4));
		return;
	}
	if (!k)
		return;
	mutant_say(m, "vocabulary %.50s", k->name);
	if (k->type == ARRAY && k->element == STRING && !dice_one_in(&m->dice, 4))
		change_one_text(&m->dice, k);
	else if (k->type == ARRAY && dice_one_in(&m->dice, 3))
		k->count = dice_odd(&m->dice, k->count);
	else if (k->type != ARRAY && k->type != STRING && dice_one_in(&m->dice, 2))
		retype(&m->dice, k);
	else
		change_value(&m->dice, k);
}

void mutate_vocabulary(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	struct image g;

	build(&g, &m->dice);
	for (unsigned i = 0; i < changes; i++)
		change_vocabulary(m, &g);
	snprintf(m->open, sizeof m->open, "model.gguf");
	image_write(&g, mutant_add_file(m, m->open));
	image_free(&g);
}

/* --- split files */

enum { PARTS = 3 };

static void add_split(struct image *g, uint16_t no, uint16_t count, uint32_t tensors)
{
	add_key(g, "split.no", U16, &no, 2);
	add_key(g, "split.count", U16, &count, 2);
	add_key(g, "split.tensors.count", I32, &tensors, 4);
}

/* Deals the tensors to parts, by turns; the keys are all in the first. */
static void deal(struct image part[PARTS], struct image *whole)
{
	uint32_t tensors = (uint32_t)whole->tensors;

	for (size_t i = 0; i < PARTS; i++) {
		memset(&part[i], 0, sizeof part[i]);
		part[i].version = whole->version;
		part[i].alignment = whole->alignment;
		part[i].dice = whole->dice;
		if (i && whole->alignment != 32)
			add_u32(&part[i], "general.alignment", whole->alignment);
	}
	memcpy(part[0].key, whole->key, sizeof part[0].key);
	part[0].keys = whole->keys;
	for (size_t i = 0; i < whole->tensors; i++) {
		struct image *p = &part[i % PARTS];
		p->tensor[p->tensors++] = whole->tensor[i];
	}
	for (uint16_t i = 0; i < PARTS; i++)
		add_split(&part[i], i, PARTS, tensors);
}

static void change_split(struct mutant *m, struct image part[PARTS])
{
	struct image *p = &part[dice_below(&m->dice, PARTS)], *q = &part[dice_below(&m->dice, PARTS)];
	static const char *const name[] = { "split.no", "split.count", "split.tensors.count" };
	struct item *k = find_key(p, name[dice_below(&m->dice, 3)]);

	switch (dice_below(&m->dice, 4)) {
	case 0:
		mutant_say(m, "a part of its own");
		change(m, p);
		break;
	case 1:
		if (p != q && q->tensors) {
			mutant_say(m, "a tensor twice");
			struct item *t = &q->tensor[dice_below(&m->dice, q->tensors)];
			struct item *to = add(p->tensor, &p->tensors, MOST_TENSORS, "");
			*to = *t;
			to->value = (struct bytes){ 0 };
			bytes_put(&to->value, t->value.p, t->value.n);
		}
		break;
	default:
		if (k) {
			mutant_say(m, "%s", k->name);
			if (dice_one_in(&m->dice, 2))
				change_value(&m->dice, k);
			else
				retype(&m->dice, k);
		}
		break;
	}
}

static void change_files(struct mutant *m)
{
	unsigned which = (unsigned)dice_below(&m->dice, PARTS), other = (unsigned)dice_below(&m->dice, PARTS);
	struct bytes kept = m->file[which].b;

	switch (dice_below(&m->dice, 4)) {
	case 0:
		mutant_say(m, "part %u is missing", which);
		snprintf(m->file[which].name, sizeof m->file[which].name, "gone");
		break;
	case 1:
		mutant_say(m, "parts %u and %u have each other's names", which, other);
		m->file[which].b = m->file[other].b;
		m->file[other].b = kept;
		break;
	case 2:
		mutant_say(m, "part %u is opened", which);
		snprintf(m->open, sizeof m->open, "%s", m->file[which].name);
		break;
	default:
		mutant_say(m, "part %u has other bytes", which);
		mutate_bytes(&m->dice, &m->file[which].b);
		break;
	}
}

void mutate_split(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	struct image *g = malloc((1 + PARTS) * sizeof *g), *part = g + 1;
	char name[64];

	if (!g)
		abort();
	build(g, &m->dice);
	deal(part, g);
	bool files = changes && dice_one_in(&m->dice, 3);
	for (unsigned i = 0; i < changes && !files; i++)
		change_split(m, part);
	for (unsigned i = 0; i < PARTS; i++) {
		snprintf(name, sizeof name, "model-%05u-of-%05u.gguf", i + 1, PARTS);
		image_write(&part[i], mutant_add_file(m, name));
		image_free(&part[i]);
	}
	snprintf(m->open, sizeof m->open, "%s", m->file[0].name);
	if (files)
		change_files(m);
	free(g);
}
