/* tests/mutate/mutate.c - what the mutators share. See mutate.h. Failures of the system end the test program. */
#include "tests/mutate/mutate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/tiny_model.h"

uint64_t dice_next(struct dice *d)
{
	uint64_t v = d->state += 0x9e3779b97f4a7c15u;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

uint64_t dice_below(struct dice *d, uint64_t n) { return n ? dice_next(d) % n : 0; }

bool dice_one_in(struct dice *d, uint64_t n) { return dice_below(d, n) == 0; }

uint64_t dice_odd(struct dice *d, uint64_t v)
{
	static const uint64_t small[] = { 0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 1000 };

	switch (dice_below(d, 6)) {
	case 0: return small[dice_below(d, sizeof small / sizeof *small)];
	case 1: return ((uint64_t)1 << dice_below(d, 64)) - 1 + dice_below(d, 3);
	case 2: return v - 1 + 2 * dice_below(d, 2);
	case 3: return dice_one_in(d, 2) ? v * 2 : v / 2;
	case 4: return -(uint64_t)dice_below(d, 40);
	default: return dice_next(d) >> dice_below(d, 64);
	}
}

/* --- bytes */

void bytes_resize(struct bytes *b, size_t n)
{
	static const uint8_t zero[4096];

	while (b->n < n)
		bytes_put(b, zero, n - b->n < sizeof zero ? n - b->n : sizeof zero);
	b->n = n;
}

void bytes_splice(struct bytes *b, size_t at, size_t old, const void *p, size_t n)
{
	struct bytes out = { 0 };

	bytes_put(&out, b->p, at);
	bytes_put(&out, p, n);
	bytes_put(&out, b->p + at + old, b->n - at - old);
	bytes_forget(b);
	*b = out;
}

static void overwrite(struct dice *d, struct bytes *b, size_t width)
{
	if (b->n < width)
		return;
	size_t at = (size_t)dice_below(d, b->n - width + 1);
	uint64_t v = 0;
	memcpy(&v, b->p + at, width);
	v = dice_odd(d, v);
	memcpy(b->p + at, &v, width);
}

void mutate_bytes(struct dice *d, struct bytes *b)
{
	if (b->n == 0) {
		bytes_put(b, "{", 1);
		return;
	}
	size_t at = (size_t)dice_below(d, b->n), some = 1 + (size_t)dice_below(d, b->n - at < 64 ? b->n - at : 64);
	uint8_t copy[64];
	memcpy(copy, b->p + at, some);
	switch (dice_below(d, 9)) {
	case 0: b->p[at] ^= (uint8_t)(1 << dice_below(d, 8)); break;
	case 1: b->p[at] = (uint8_t)dice_next(d); break;
	case 2: overwrite(d, b, 2); break;
	case 3: overwrite(d, b, 4); break;
	case 4: overwrite(d, b, 8); break;
	case 5: bytes_splice(b, at, some, NULL, 0); break;
	case 6: bytes_splice(b, at, 0, copy, some); break;
	case 7: bytes_splice(b, (size_t)dice_below(d, b->n), 0, copy, some); break;
	default: bytes_resize(b, at); break;
	}
}

/* --- mutants */

const char *const mutant_kind_name[MUTANT_KINDS] = {
	[MUTANT_GGUF] = "gguf",
	[MUTANT_SPLIT] = "split",
	[MUTANT_SAFETENSORS] = "safetensors",
	[MUTANT_INDEX] = "index",
	[MUTANT_CONFIG] = "config",
	[MUTANT_TOKENIZER] = "tokenizer",
	[MUTANT_VOCABULARY] = "vocabulary",
	[MUTANT_PACK] = "pack",
	[MUTANT_ENTRY] = "entry",
	[MUTANT_TUNE] = "tune",
};

void mutant_make(struct mutant *m, enum mutant_kind kind, uint64_t seed)
{
	static void (*const mutate[MUTANT_KINDS])(struct mutant *) = {
		[MUTANT_GGUF] = mutate_gguf,
		[MUTANT_SPLIT] = mutate_split,
		[MUTANT_SAFETENSORS] = mutate_safetensors,
		[MUTANT_INDEX] = mutate_index,
		[MUTANT_CONFIG] = mutate_config,
		[MUTANT_TOKENIZER] = mutate_tokenizer,
		[MUTANT_VOCABULARY] = mutate_vocabulary,
		[MUTANT_PACK] = mutate_pack,
		[MUTANT_ENTRY] = mutate_entry,
		[MUTANT_TUNE] = mutate_tune,
	};

	memset(m, 0, sizeof *m);
	m->dice.state = seed;
	m->whole = seed < MUTANT_WHOLE;
	mutate[kind](m);
}

void mutant_free(struct mutant *m)
{
	for (unsigned i = 0; i < m->files; i++)
		bytes_forget(&m->file[i].b);
	m->files = 0;
}

void mutant_write(const struct mutant *m, const char *dir)
{
	for (unsigned i = 0; i < m->files; i++)
		tiny_write(dir, m->file[i].name, m->file[i].b.p, m->file[i].b.n);
}

struct bytes *mutant_add_file(struct mutant *m, const char *name)
{
	if (m->files == MUTANT_FILES)
		abort();
	struct mutant_file *f = &m->file[m->files++];
	snprintf(f->name, sizeof f->name, "%s", name);
	return &f->b;
}

void mutant_say(struct mutant *m, const char *format, ...)
{
	size_t at = strlen(m->what);
	va_list list;

	if (at)
		at += (size_t)snprintf(m->what + at, sizeof m->what - at, "; ");
	if (at >= sizeof m->what)
		return;
	va_start(list, format);
	vsnprintf(m->what + at, sizeof m->what - at, format, list);
	va_end(list);
}

unsigned mutant_changes(struct mutant *m)
{
	if (m->whole)
		return 0;
	return dice_one_in(&m->dice, 3) ? 2 + (unsigned)dice_below(&m->dice, 3) : 1;
}
