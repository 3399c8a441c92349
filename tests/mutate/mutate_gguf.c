/* tests/mutate/mutate_gguf.c - GGUF files as lists of keys and tensors: changed there, then written with what else
 * follows from it. */
#include "tests/mutate/mutate.h"
#include "tests/mutate/gguf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- changes */

static void copy_item(struct item *list, size_t *n, size_t max, size_t i)
{
	if (*n == max)
		return;
	struct item *to = &list[(*n)++];
	*to = list[i];
	to->value = (struct bytes){ 0 };
	bytes_put(&to->value, list[i].value.p, list[i].value.n);
}

static void remove_item(struct item *list, size_t *n, size_t i)
{
	bytes_forget(&list[i].value);
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
	case 1: copy_item(g->key, &g->keys, MAX_KEYS, i); break;
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

	if (g->keys == MAX_KEYS || g->key[0].value.n < 8)
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
	case 1: copy_item(g->tensor, &g->tensors, MAX_TENSORS, i); break;
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

	image_build(&g, &m->dice);
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
		bytes_forget(&longer);
		return;
	}
	text = (char *)(uintptr_t)odd[dice_below(d, sizeof odd / sizeof *odd)];
	struct bytes other = { 0 };
	put_text(&other, text, strlen(text));
	bytes_splice(&k->value, at, 8 + n, other.p, other.n);
	bytes_forget(&other);
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

	image_build(&g, &m->dice);
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

/* Distributes the tensors to parts, round robin; the keys are all in the first. */
static void distribute(struct image part[PARTS], struct image *whole)
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
			struct item *to = image_add(p->tensor, &p->tensors, MAX_TENSORS, "");
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
	image_build(g, &m->dice);
	distribute(part, g);
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
