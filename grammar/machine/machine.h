/* grammar/machine/machine.h - what a text may look like, as a machine that takes bytes.
 *
 * Owns: the face that all grammars show to those who choose tokens. A machine's states are numbers, and nothing is ever
 * forgotten of one: a caller that kept a state can go back to it, and several texts may be walked side by side. A state
 * is the top of a stack: `top` says what can follow without looking below, so that what was found out for one top holds
 * wherever it stands on the stack.
 *
 * One thread at a time, for walking makes states.
 */
#ifndef GRAMMAR_MACHINE_H
#define GRAMMAR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "grammar/machine/easy.h"
#include "grammar/machine/effort.h"

enum { MACHINE_DEAD = 0 };
/* Where machine_step() leads when a byte goes below a top that stands alone (machine_alone). */
enum { MACHINE_BELOW = UINT32_MAX };

struct machine;
struct machine_kind {
	uint32_t (*step)(struct machine *m, uint32_t state, uint8_t byte);
	bool (*ends)(struct machine *m, uint32_t state);
	uint32_t (*top)(const struct machine *m, uint32_t state);
	uint32_t (*alone)(struct machine *m, uint32_t top);
	uint32_t (*easy)(struct machine *m, uint32_t state, enum easy class);
	size_t (*bytes)(const struct machine *m);
	void (*close)(struct machine *m);
	/* Whether what a byte leads to that goes below the top depends on more than the state alone that it goes from.
	 * NULL: it never does. */
	bool (*many)(const struct machine *m, uint32_t state);
};
/* What rules about whole tokens know of them. */
struct machine_tokens {
	void *user;
	uint32_t n_ids;
	/* The token that a text is, control tokens too; UINT32_MAX: it is none, or several. */
	uint32_t (*named)(void *user, const char *text, size_t n);
	/* Whether it can be part of an answer: its text is whole characters, and it ends none. */
	bool (*takes)(void *user, uint32_t id);
};
/* Of a machine with such rules, in which a token can be a step by itself. */
struct machine_whole {
	uint32_t (*step)(struct machine *m, uint32_t state, uint32_t id);
	/* The state of all texts that are in one of two. */
	uint32_t (*both)(struct machine *m, uint32_t a, uint32_t b);
	/* The i-th test of tokens here: of one id, or with *without of all others. False: there are fewer. */
	bool (*test)(struct machine *m, uint32_t state, size_t i, uint32_t *id, bool *without);
};
struct machine {
	const struct machine_kind *kind;
	const struct machine_whole *whole; /* NULL: no rule is about tokens */
	uint32_t start;
	bool failed;       /* no memory, or more states than may be: every step since leads to MACHINE_DEAD */
	bool limited;      /* a schema's machine failed for its size alone: memory was there */
	struct effort own; /* for a thread that has no account (effort.h) */
	/* Whether any text at all may follow here, and control tokens too. NULL: nowhere. */
	bool (*is_free)(const struct machine *m, uint32_t state);
};

/* For those who make machines and walk them: on a thread without an account the machine gets one of its own. */
typedef struct machine *machine_maker(const void *source, struct error *err);
struct machine *machine_make(machine_maker *make, const void *source, struct error *err);
static inline struct effort *machine_begin(struct machine *m)
{
	return effort_begin(effort_of_thread ? effort_of_thread : &m->own);
}

/* Why no text goes on where a call begins by the machine of a schema: its size, memory, or `other`, a
 * fault of the grammar. */
void machine_refuse(const struct machine *m, const char *other, struct error *err);

/* Texts that are JSON, with white space between its parts, and right by a schema (schema.h). */
struct machine *machine_of_schema(const char *text, size_t n, bool formats, struct error *err);
/* Of these texts those that are for a model to write: numbers, characters and white space as json_spelling.h has them.
 * Formats are held; members come in the order in which schemas name them, and objects of "properties" that do not say
 * have no others. */
enum { WRITE_ADDITIONAL = 0x100 /* they may */, WRITE_IN_ANY_ORDER = 0x200 };
struct machine *machine_to_write_schema(const char *text, size_t n, unsigned how, struct error *err);
/* The texts of a regular expression (regex.h). */
struct machine *machine_of_regex(const char *text, size_t n, struct error *err);

/* The texts of a grammar of rules (gbnf.h). tokens: borrowed for this call; NULL: rules about them are refused. */
struct machine *machine_of_gbnf(const char *text, size_t n, const struct machine_tokens *tokens, struct error *err);
/* The same of a grammar as Lark writes them (lark.h). */
struct machine *machine_of_lark(const char *text, size_t n, struct error *err);

/* Where a byte leads; MACHINE_DEAD: no text goes on like this. */
static inline uint32_t machine_step(struct machine *m, uint32_t state, uint8_t byte)
{
	return m->kind->step(m, state, byte);
}
/* Whether the text may end here. */
static inline bool machine_ends(struct machine *m, uint32_t state) { return m->kind->ends(m, state); }
static inline uint32_t machine_top(const struct machine *m, uint32_t state) { return m->kind->top(m, state); }
/* The state of a top with an unknown stack below it. */
static inline uint32_t machine_alone(struct machine *m, uint32_t top) { return m->kind->alone(m, top); }
static inline bool machine_many(const struct machine *m, uint32_t state)
{
	return m->kind->many && m->kind->many(m, state);
}
/* So many characters of a class can follow, whichever they are, and after each of them this holds for one less. 0:
 * nothing is said. */
static inline uint32_t machine_easy(struct machine *m, uint32_t state, enum easy class)
{
	return m->kind->easy(m, state, class);
}
/* Memory in use, more or less. */
static inline size_t machine_bytes(const struct machine *m) { return m->kind->bytes(m); }
static inline void machine_close(struct machine *m)
{
	if (m)
		m->kind->close(m);
}

#endif
