/* sim/ptx_read.c - reads PTX text (PTX ISA manual, chapters 4, 5, 9 to 11) as far as sim/ptx.def goes.
 *
 * Owns: directives, declarations, and what an operand may be; words are ptx_words.c's. Whatever it does not know it
 * refuses, with the line.
 */
#include "sim/ptx_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const struct row {
	const char *text;
	uint8_t length, operation;
	const char *operands;
} table[] = {
#define PTX(text, operation, operands) { text, sizeof text - 1, PTX_DO_##operation, operands },
#include "sim/ptx.def"
#undef PTX
};

/* --- operands */

static bool read_address(struct reader *r, struct ptx_step *s)
{
	if (!ptx_take(r, "["))
		return false;
	if (ptx_find_register(r, r->word, &s->s[0]) != 'q')
		return ptx_wrong(r, "an address in a register of 64 bits was expected");
	ptx_next(r);
	if (ptx_is(r, "+"))
		ptx_next(r);
	if (r->is_number && !ptx_take_number(r, &s->disp))
		return false;
	return (s->disp >= INT32_MIN && s->disp <= INT32_MAX && ptx_take(r, "]")) ||
	       ptx_wrong(r, "an address is wrong");
}

/* Behind another one. */
static bool read_second(struct reader *r, struct ptx_step *s, unsigned *sources)
{
	struct ptx_step second = { 0 };

	if (!read_address(r, &second))
		return false;
	s->s[(*sources)++] = second.s[0];
	s->second = second.disp;
	return true;
}

/* A variable of parameter space is a register of its width, but for what an entry is given. */
static bool read_param(struct reader *r, struct ptx_step *s, char letter, bool stores)
{
	const struct ptx_function *f = &r->t->function[r->function];
	int64_t zero = 0;

	if (!ptx_take(r, "["))
		return false;
	char found = ptx_find_param(r, r->word, stores ? &s->d[0] : &s->s[0]);
	if (found) {
		s->operation = PTX_DO_MOVE;
	} else {
		for (s->disp = 0; s->disp < f->n_params; s->disp++)
			if (ptx_is(r, f->param[s->disp].name))
				break;
		if (s->disp == f->n_params || stores)
			return ptx_wrong(r, "there is no such parameter");
		found = f->param[s->disp].bytes == 8 ? 'q' : 'w';
	}
	if (found != letter)
		return ptx_wrong(r, "a parameter of another width");
	ptx_next(r);
	if (ptx_is(r, "+")) {
		ptx_next(r);
		if (!ptx_take_number(r, &zero) || zero)
			return ptx_wrong(r, "a part of a parameter, which is not simulated");
	}
	return ptx_take(r, "]");
}

bool ptx_read_label(struct reader *r, const char *name, bool binds, int64_t *number)
{
	unsigned i = 0;

	while (i < r->n_labels && strcmp(r->label[i].name, name) != 0)
		i++;
	if (i == LABELS || strlen(name) >= PTX_NAME)
		return ptx_wrong(r, "too many labels, or too long a name");
	if (i == r->n_labels) {
		r->n_labels++;
		strcpy(r->label[i].name, name);
		r->label[i].bound = false;
	}
	if (binds) {
		if (r->label[i].bound)
			return ptx_wrong(r, "the label is there twice");
		r->label[i].bound = true;
		r->label[i].step = r->t->n_steps;
	}
	*number = i;
	return true;
}

bool ptx_read_value(struct reader *r, char letter, bool constants, uint32_t *out)
{
	if (r->is_number && constants) {
		uint64_t value = (uint64_t)r->number & ptx_mask_of(letter == 'i' ? 'q' : letter);
		ptx_next(r);
		return ptx_constant(r, value, out);
	}
	if (constants && *r->shared && ptx_is(r, r->shared) && letter == 'q') {
		ptx_next(r);
		return ptx_constant(r, 0, out);
	}
	char found = ptx_find_register(r, r->word, out);
	if (!found || (found != letter && !(letter == 'x' && (found == 'w' || found == 'q'))))
		return ptx_wrong(r, "a register of another width, or none");
	ptx_next(r);
	return true;
}

static bool read_vector(struct reader *r, uint32_t *out, unsigned n, char letter)
{
	if (!ptx_take(r, "{"))
		return false;
	for (unsigned i = 0; i < n; i++)
		if ((i && !ptx_take(r, ",")) || !ptx_read_value(r, letter, false, &out[i]))
			return false;
	return ptx_take(r, "}");
}

static bool read_sources(struct reader *r, struct ptx_step *s, unsigned n, unsigned *sources)
{
	uint32_t *out = s->s + *sources;

	*sources += n;
	return read_vector(r, out, n, 'w');
}

static bool read_operand(struct reader *r, struct ptx_step *s, char letter, unsigned at, bool stores, unsigned *sources)
{
	int64_t n = 0;

	switch (letter) {
	case 'a': *sources = 1; return read_address(r, s);
	case 'b': return read_second(r, s, sources);
	case 'm': return read_param(r, s, 'w', at == 0);
	case 'n': return read_param(r, s, 'q', at == 0);
	case '0':
		return ptx_take_number(r, &n) && (!n || ptx_wrong(r, "another barrier than 0, which is not simulated"));
	case '*':
		return ptx_take_number(r, &n) &&
		       ((uint32_t)n == UINT32_MAX || ptx_wrong(r, "only some lanes, which is not simulated"));
	case 'H': return read_vector(r, s->d, 2, 'h');
	case 'T': return read_vector(r, s->d, 2, 'w');
	case 'F': return read_vector(r, s->d, 4, 'w');
	case 't': return read_sources(r, s, 2, sources);
	case 'f': return read_sources(r, s, 4, sources);
	case 'l': {
		char name[PTX_NAME];
		return ptx_take_name(r, name) && ptx_read_label(r, name, false, &s->disp);
	}
	default: break;
	}
	if (at == 0 && letter != 'i' && !stores)
		return ptx_read_value(r, letter, false, &s->d[0]);
	return ptx_read_value(r, letter, true, &s->s[(*sources)++]);
}

/* Whether the operands of this row are what the text has from here on. */
static bool read_operands(struct reader *r, struct ptx_step *s, const struct row *row)
{
	bool stores = *row->operands == 'a';
	unsigned sources = 0;

	for (unsigned i = 0; row->operands[i]; i++)
		if ((i && !ptx_take(r, ",")) || !read_operand(r, s, row->operands[i], i, stores, &sources))
			return false;
	s->mask = *row->operands ? ptx_mask_of(*row->operands) : 0;
	if (strchr("TFx", *row->operands))
		s->mask = UINT32_MAX;
	if (strpbrk(row->operands, "Tt"))
		s->n = 2;
	if (strpbrk(row->operands, "Ff"))
		s->n = 4;
	return true;
}

static enum ptx_order_of order_of(const char *mnemonic)
{
	return strstr(mnemonic, ".acq_rel.")   ? PTX_ACQUIRE_RELEASE
	       : strstr(mnemonic, ".acquire.") ? PTX_ACQUIRE
	       : strstr(mnemonic, ".release.") ? PTX_RELEASE
	       : strstr(mnemonic, ".relaxed.") || strncmp(mnemonic, "red.", 4) == 0 ||
	                       strncmp(mnemonic, "atom.", 5) == 0
	               ? PTX_RELAXED
	               : PTX_WEAK;
}

enum { ROWS = sizeof table / sizeof *table };

/* The first row of a mnemonic from here on; ROWS: none. */
static size_t find_row(const char *mnemonic, size_t from)
{
	const size_t length = strlen(mnemonic);

	for (; from < ROWS; from++)
		if (table[from].length == length && *table[from].text == *mnemonic &&
		    memcmp(table[from].text, mnemonic, length) == 0)
			break;
	return from;
}

/* Where a mnemonic has several rows, the first one whose operands fit. */
static bool read_by_table(struct reader *r, struct ptx_step *s, const char *mnemonic)
{
	struct reader start;
	struct error first = { 0 };
	const struct ptx_step empty = *s;
	size_t i = find_row(mnemonic, 0);

	if (i == ROWS)
		return ptx_wrong(r, "an instruction that is not simulated");
	for (size_t next; i < ROWS; i = next) {
		struct error err = { 0 };
		struct error *keep = r->err;
		next = find_row(mnemonic, i + 1);
		if (next < ROWS)
			start = *r;
		r->err = &err;
		s->operation = table[i].operation;
		s->shared = strstr(mnemonic, ".shared.") != NULL;
		s->order = (uint8_t)order_of(mnemonic);
		s->is_of_all = strstr(mnemonic, ".sys") != NULL;
		r->t->has_cards |= s->is_of_all;
		bool ok = read_operands(r, s, &table[i]);
		r->err = keep;
		if (ok)
			return true;
		*s = empty;
		if (next < ROWS)
			*r = start;
		error_set(&first, err.code, "%s", err.text);
	}
	return error_set(r->err, first.code, "%s", first.text);
}

static bool read_guard(struct reader *r, struct ptx_step *s)
{
	ptx_next(r);
	s->guard_is_not = ptx_is(r, "!");
	if (s->guard_is_not)
		ptx_next(r);
	if (ptx_find_register(r, r->word, &s->guard) != 'p')
		return ptx_wrong(r, "a predicate was expected");
	ptx_next(r);
	return true;
}

static bool add_step(struct reader *r, const struct ptx_step *s)
{
	struct ptx_text *t = r->t;

	if (!array_grow((void **)&t->step, &t->steps_capacity, t->n_steps + 1, sizeof *t->step))
		return error_set(r->err, ERROR_MEMORY, "no memory for the instructions of a kernel");
	t->step[t->n_steps++] = *s;
	return true;
}

static bool read_step(struct reader *r)
{
	struct ptx_step s = { .n = 1, .guard = PTX_NO_REGISTER, .line = r->line };
	char mnemonic[WORD];

	memset(s.d, 0xff, sizeof s.d);
	memset(s.s, 0xff, sizeof s.s);
	if (ptx_is(r, "@") && !read_guard(r, &s))
		return false;
	strcpy(mnemonic, r->word);
	if (strncmp(mnemonic, "griddepcontrol", 14) == 0 && r->target < 90)
		return ptx_wrong(r, "an instruction that the target has not");
	ptx_next(r);
	bool calls = strcmp(mnemonic, "call") == 0 || strcmp(mnemonic, "call.uni") == 0,
	     jumps = strcmp(mnemonic, "brx.idx") == 0 || strcmp(mnemonic, "brx.idx.uni") == 0;
	if (!(calls   ? ptx_read_call(r, &s)
	      : jumps ? ptx_read_switch(r, &s)
	              : read_by_table(r, &s, mnemonic)) ||
	    !ptx_take(r, ";"))
		return false;
	return add_step(r, &s);
}

static bool read_labelled(struct reader *r)
{
	char name[PTX_NAME];
	int64_t number;

	if (!ptx_take_name(r, name))
		return false;
	ptx_next(r);
	return ptx_is(r, ".branchtargets") ? ptx_read_targets(r, name) : ptx_read_label(r, name, true, &number);
}

/* What braces declare ends with them. */
static bool read_scope(struct reader *r, unsigned depth)
{
	const unsigned n_names = r->n_names, n_prefixes = r->n_prefixes;

	while (!ptx_is(r, "}")) {
		bool ok;
		if (!*r->word)
			return ptx_wrong(r, "the text ends within a kernel");
		ptx_skip(r);
		if (ptx_is(r, ".reg") || ptx_is(r, ".param")) {
			ok = ptx_read_registers(r);
		} else if (ptx_is(r, "{")) {
			ptx_next(r);
			ok = depth ? read_scope(r, depth - 1) : ptx_wrong(r, "too many braces in one another");
		} else {
			ok = *r->at == ':' ? read_labelled(r) : read_step(r);
		}
		if (!ok)
			return false;
	}
	r->n_names = n_names;
	r->n_prefixes = n_prefixes;
	ptx_next(r);
	return true;
}

static bool bind_labels(struct reader *r, size_t first)
{
	struct ptx_text *t = r->t;

	for (size_t i = first; i < t->n_steps; i++) {
		struct ptx_step *s = &t->step[i];
		struct ptx_list *l = s->operation == PTX_DO_SWITCH ? &t->list[s->disp] : NULL;
		int64_t *label = l ? l->to : &s->disp;
		for (size_t k = 0; k < (l ? l->n : s->operation == PTX_DO_BRANCH); k++) {
			if (!r->label[label[k]].bound) {
				r->line = s->line;
				return ptx_wrong(r, "a label that is nowhere");
			}
			label[k] = (int64_t)r->label[label[k]].step;
		}
	}
	return true;
}

bool ptx_read_body(struct reader *r)
{
	const size_t first = r->t->n_steps;
	struct ptx_step end = { .operation = PTX_DO_END, .n = 1, .guard = PTX_NO_REGISTER };

	r->n_labels = 0;
	if (!ptx_take(r, "{") || !read_scope(r, PTX_DEPTH))
		return false;
	memset(end.d, 0xff, sizeof end.d);
	memset(end.s, 0xff, sizeof end.s);
	end.line = r->line;
	return add_step(r, &end) && bind_labels(r, first);
}

/* --- the module */

/* .extern .shared .align 128 .b8 memory[]; */
static bool read_shared(struct reader *r)
{
	int64_t align = 0;

	ptx_next(r);
	return ptx_take(r, ".shared") && ptx_take(r, ".align") && ptx_take_number(r, &align) && ptx_take(r, ".b8") &&
	       ptx_take_name(r, r->shared) && ptx_take(r, "[") && ptx_take(r, "]") && ptx_take(r, ";");
}

static bool read_target(struct reader *r)
{
	ptx_next(r);
	if (strncmp(r->word, "sm_", 3) != 0)
		return ptx_wrong(r, "a target was expected");
	r->target = (unsigned)atoi(r->word + 3);
	if (r->target > r->capability)
		return ptx_wrong(r, "the text is for later cards");
	ptx_next(r);
	return true;
}

static bool read_module(struct reader *r)
{
	ptx_next(r);
	while (*r->word) {
		bool ok;
		if (ptx_is(r, ".version") || ptx_is(r, ".address_size")) {
			ptx_next(r);
			ptx_next(r);
			ok = true;
		} else if (ptx_is(r, ".target")) {
			ok = read_target(r);
		} else if (ptx_is(r, ".extern")) {
			ok = read_shared(r);
		} else {
			ok = ptx_read_function(r);
		}
		if (!ok)
			return false;
	}
	return (r->target && ptx_text_entry(r->t, NULL)) || ptx_wrong(r, "the text has no target, or no kernel");
}

struct ptx_text *ptx_text_read(const char *text, unsigned capability, struct error *err)
{
	struct reader *r = calloc(1, sizeof *r);
	struct ptx_text *t = calloc(1, sizeof *t);
	struct label *label = calloc(LABELS, sizeof *label);
	struct name *name = calloc(NAMES, sizeof *name);
	bool ok = r && t && label && name && (t->text = strdup(text));

	if (ok) {
		*r = (struct reader){ .t = t,
			              .at = t->text,
			              .line = 1,
			              .capability = capability,
			              .label = label,
			              .name = name,
			              .err = err };
		ok = read_module(r) && ptx_number_registers(r);
	} else {
		error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
	}
	free(label);
	free(name);
	free(r);
	if (ok)
		return t;
	ptx_text_free(t);
	return NULL;
}

void ptx_text_free(struct ptx_text *t)
{
	if (!t)
		return;
	free(t->text);
	free(t->function);
	free(t->step);
	free(t->call);
	for (size_t i = 0; i < t->n_lists; i++)
		free(t->list[i].to);
	free(t->list);
	free(t->constant);
	free(t);
}

const struct ptx_function *ptx_text_entry(const struct ptx_text *t, const char *name)
{
	for (size_t i = 0; i < t->n_functions; i++)
		if (t->function[i].is_entry && (!name || strcmp(t->function[i].name, name) == 0))
			return &t->function[i];
	return NULL;
}

bool ptx_text_has(const struct ptx_text *t, const char *entry) { return ptx_text_entry(t, entry) != NULL; }

bool ptx_text_is_for_cards(const struct ptx_text *t) { return t->has_cards; }

size_t ptx_text_params(const struct ptx_text *t, const char *entry, unsigned bytes[], size_t max)
{
	const struct ptx_function *f = ptx_text_entry(t, entry);

	for (unsigned i = 0; f && i < f->n_params && i < max; i++)
		bytes[i] = f->param[i].bytes;
	return f ? f->n_params : 0;
}

char *ptx_text_line(const struct ptx_text *t, uint32_t n, char *out, size_t size)
{
	const char *at = t->text;

	for (uint32_t i = 1; i < n && *at; i++) {
		at += strcspn(at, "\n");
		at += *at != 0;
	}
	at += strspn(at, " \t");
	snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
	return out;
}
