/* tests/mutate/mutate.h - files that are nearly right: a well-formed file is built as a structure, the structure is
 * changed, and then written out.
 *
 * Owns: the source of random numbers, the mutators, and the models of the formats behind them, which share nothing with
 * the readers they test: lengths, offsets and checksums fit unless it is they that were changed, so the changed field
 * is reached. A mutant is decided by its kind and its seed; the first seeds change nothing.
 */
#ifndef TESTS_MUTATE_MUTATE_H
#define TESTS_MUTATE_MUTATE_H

#include "tests/loaders/gguf_writer.h"

/* --- random numbers */

struct dice {
	uint64_t state;
};
uint64_t dice_next(struct dice *d);
/* 0 to n - 1. */
uint64_t dice_below(struct dice *d, uint64_t n);
/* Once in n times. */
bool dice_one_in(struct dice *d, uint64_t n);
/* A number that programs get wrong: near 0, a power of two or v itself. */
uint64_t dice_odd(struct dice *d, uint64_t v);

/* --- mutants */

enum { MUTANT_FILES = 8, MUTANT_WHOLE = 8 /* seeds below this one give well-formed files */ };
struct mutant_file {
	char name[160];
	struct bytes b;
};
struct mutant {
	struct dice dice;
	bool whole; /* nothing is to be changed */
	struct mutant_file file[MUTANT_FILES];
	unsigned files;
	char open[160]; /* the name to open; "": the directory that the files lie in */
	char what[400]; /* what was changed, for the report of a failure */
};

enum mutant_kind {
	MUTANT_GGUF,
	MUTANT_SPLIT,
	MUTANT_SAFETENSORS,
	MUTANT_INDEX,
	MUTANT_CONFIG,
	MUTANT_TOKENIZER,
	MUTANT_VOCABULARY,
	MUTANT_PACK,
	MUTANT_ENTRY,
	MUTANT_TUNE,
	MUTANT_KINDS
};
extern const char *const mutant_kind_name[MUTANT_KINDS];

void mutant_make(struct mutant *m, enum mutant_kind kind, uint64_t seed);
void mutant_free(struct mutant *m);
/* Files go into a directory that is there. */
void mutant_write(const struct mutant *m, const char *dir);

/* --- for the mutators */

struct bytes *mutant_add_file(struct mutant *m, const char *name);
void mutant_say(struct mutant *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How many changes this mutant gets: mostly one. */
unsigned mutant_changes(struct mutant *m);
/* Damage without regard for structure: bits, bytes, numbers, pieces taken out, doubled or moved. */
void mutate_bytes(struct dice *d, struct bytes *b);
/* Cuts b to n bytes, or lengthens it with zeros. */
void bytes_resize(struct bytes *b, size_t n);
/* Replaces `old` bytes at `at`. */
void bytes_splice(struct bytes *b, size_t at, size_t old, const void *p, size_t n);

void mutate_gguf(struct mutant *m);
void mutate_split(struct mutant *m);
void mutate_vocabulary(struct mutant *m);
void mutate_safetensors(struct mutant *m);
void mutate_index(struct mutant *m);
void mutate_config(struct mutant *m);
void mutate_tokenizer(struct mutant *m);
void mutate_pack(struct mutant *m);
void mutate_entry(struct mutant *m);
void mutate_tune(struct mutant *m);

#endif
