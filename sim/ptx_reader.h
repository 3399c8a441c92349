/* sim/ptx_reader.h - what the files that read PTX text share: the state, words, names of registers. */
#ifndef SIM_PTX_READER_H
#define SIM_PTX_READER_H

#include "sim/ptx_text.h"

enum { PREFIXES = 8, LABELS = 256, SPECIALS = 6, WORD = 64 };

struct reader {
	struct ptx_text *t;
	const char *at;
	uint32_t line;
	unsigned capability, target;
	char word[WORD]; /* the token; a sign of punctuation is a word of one character */
	bool is_number;
	int64_t number;
	struct {
		char name[8];
		char letter; /* p, h, w, q */
		uint32_t first, count;
	} prefix[PREFIXES];
	unsigned n_prefixes;
	struct {
		char name[PTX_NAME];
		size_t step;
		bool bound;
	} label[LABELS];
	unsigned n_labels;
	char shared[PTX_NAME]; /* what the shared memory is called */
	struct error *err;
};

/* ptx_words.c. False, where they give that: err is set. */
bool ptx_wrong(struct reader *r, const char *what);
void ptx_skip(struct reader *r);
/* A word, a number (with its sign), or a sign of punctuation; "" at the end. */
void ptx_next(struct reader *r);
bool ptx_is(const struct reader *r, const char *word);
bool ptx_take(struct reader *r, const char *word);
bool ptx_take_number(struct reader *r, int64_t *n);
bool ptx_take_name(struct reader *r, char out[PTX_NAME]);
uint64_t ptx_mask_of(char letter);
/* .reg .b32 %r<12>; */
bool ptx_read_registers(struct reader *r);
/* The register of that name and its letter; 0: none. */
char ptx_find_register(const struct reader *r, const char *name, uint32_t *number);
/* The register that a constant is: numbered from here on until all registers are known. */
enum { CONSTANTS_AT = 1u << 30 };
bool ptx_constant(struct reader *r, uint64_t value, uint32_t *number);

#endif
