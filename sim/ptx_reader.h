/* sim/ptx_reader.h - what the files that read PTX text share: the state, words, names of registers. */
#ifndef SIM_PTX_READER_H
#define SIM_PTX_READER_H

#include "sim/ptx_text.h"

enum { PREFIXES = 32, NAMES = 128, LABELS = 1024, WORD = 64 };

struct label {
	char name[PTX_NAME];
	size_t step;
	bool bound;
};

struct reader {
	struct ptx_text *t;
	const char *at;
	uint32_t line;
	unsigned capability, target;
	char word[WORD]; /* the token; a sign of punctuation is a word of one character */
	bool is_number;
	int64_t number;
	size_t function; /* whose body is read */
	struct {
		char name[8];
		char letter; /* p, h, w, q */
		uint32_t first, count;
	} prefix[PREFIXES];
	unsigned n_prefixes;
	struct name {
		char name[PTX_NAME];
		char letter;
		bool is_param; /* a variable of parameter space */
		uint32_t reg;
	} * name; /* registers with names of their own */
	unsigned n_names;
	struct label *label; /* of the function */
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
/* .reg .b32 %r<12>; .reg .b32 %a, %b; .param .b32 x; */
bool ptx_read_registers(struct reader *r);
/* A register of that name in this function. */
bool ptx_name_register(struct reader *r, const char *name, char letter, bool is_param, uint32_t *reg);
/* The letter of a type as .b32 or .u32; 0: none. */
char ptx_letter_of(const char *type);
/* The register of that name and its letter; 0: none. */
char ptx_find_register(const struct reader *r, const char *name, uint32_t *number);
/* The same of a variable of parameter space. */
char ptx_find_param(const struct reader *r, const char *name, uint32_t *number);
/* Registers are numbered from 0 in their function; constants and special ones from here on, until all are known. */
enum { CONSTANTS_AT = 1u << 30, SPECIALS_AT = 1u << 29 };
bool ptx_constant(struct reader *r, uint64_t value, uint32_t *number);

/* ptx_read.c */
bool ptx_read_label(struct reader *r, const char *name, bool binds, int64_t *number);
/* A register of that width or a constant. */
bool ptx_read_value(struct reader *r, char letter, bool constants, uint32_t *out);
/* The instructions of a function up to the end of its body. */
bool ptx_read_body(struct reader *r);

/* ptx_functions.c */
bool ptx_read_function(struct reader *r);
/* The function of that name, which must have been declared; -1: none. */
int64_t ptx_find_function(const struct ptx_text *t, const char *name);
/* Behind "call". */
bool ptx_read_call(struct reader *r, struct ptx_step *s);
/* NAME: .branchtargets L0, L1; behind the colon. */
bool ptx_read_targets(struct reader *r, const char *name);
/* Behind "brx.idx". */
bool ptx_read_switch(struct reader *r, struct ptx_step *s);
/* Numbers all registers, and resolves the calls. */
bool ptx_number_registers(struct reader *r);

#endif
