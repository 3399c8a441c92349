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
	uint8_t operation;
	const char *operands;
} table[] = {
#define PTX(text, operation, operands) { text, PTX_DO_##operation, operands },
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

static bool read_param(struct reader *r, struct ptx_step *s)
{
	if (!ptx_take(r, "["))
		return false;
	for (s->disp = 0; s->disp < r->t->n_params; s->disp++)
		if (ptx_is(r, r->t->param[s->disp].name))
			break;
	if (s->disp == r->t->n_params)
		return ptx_wrong(r, "there is no such parameter");
	ptx_next(r);
	return ptx_take(r, "]");
}

static bool read_label(struct reader *r, const char *name, bool binds, int64_t *number)
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

/* A register of that width or a constant. */
static bool read_value(struct reader *r, char letter, bool constants, uint32_t *out)
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
		if ((i && !ptx_take(r, ",")) || !read_value(r, letter, false, &out[i]))
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
	switch (letter) {
	case 'a': *sources = 1; return read_address(r, s);
	case 'n': return read_param(r, s);
	case 'H': return read_vector(r, s->d, 2, 'h');
	case 'T': return read_vector(r, s->d, 2, 'w');
	case 'F': return read_vector(r, s->d, 4, 'w');
	case 't': return read_sources(r, s, 2, sources);
	case 'f': return read_sources(r, s, 4, sources);
	case 'l': {
		char name[PTX_NAME];
		return ptx_take_name(r, name) && read_label(r, name, false, &s->disp);
	}
	default: break;
	}
	if (at == 0 && letter != 'i' && !stores)
		return read_value(r, letter, false, &s->d[0]);
	return read_value(r, letter, true, &s->s[(*sources)++]);
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
	if (strchr(row->operands, 'T') || strchr(row->operands, 't'))
		s->n = 2;
	if (strchr(row->operands, 'F'))
		s->n = 4;
	return true;
}

/* Where a mnemonic has several rows, the first one whose operands fit. */
static bool read_by_table(struct reader *r, struct ptx_step *s, const char *mnemonic)
{
	const struct reader start = *r;
	struct error first = { 0 };
	bool known = false;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct error err = { 0 };
		if (strcmp(table[i].text, mnemonic) != 0)
			continue;
		known = true;
		struct error *keep = r->err;
		const struct ptx_step empty = *s;
		*r = start;
		r->err = &err;
		s->operation = table[i].operation;
		s->shared = strstr(mnemonic, ".shared.") != NULL;
		bool ok = read_operands(r, s, &table[i]);
		r->err = keep;
		if (ok)
			return true;
		*s = empty;
		error_set(&first, err.code, "%s", err.text);
	}
	return known ? error_set(r->err, first.code, "%s", first.text)
	             : ptx_wrong(r, "an instruction that is not simulated");
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

static bool read_step(struct reader *r)
{
	struct ptx_text *t = r->t;
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
	if (!read_by_table(r, &s, mnemonic) || !ptx_take(r, ";"))
		return false;
	if (!array_grow((void **)&t->step, &t->steps_capacity, t->n_steps + 1, sizeof *t->step))
		return error_set(r->err, ERROR_MEMORY, "no memory for the instructions of a kernel");
	t->step[t->n_steps++] = s;
	return true;
}

/* --- the module */

static bool read_params(struct reader *r)
{
	if (!ptx_take(r, "("))
		return false;
	while (!ptx_is(r, ")")) {
		if (r->t->n_params == PTX_PARAMS || (r->t->n_params && !ptx_take(r, ",")) || !ptx_take(r, ".param"))
			return ptx_wrong(r, "the parameters are wrong");
		bool wide = ptx_is(r, ".u64") || ptx_is(r, ".s64") || ptx_is(r, ".b64");
		if (!wide && !ptx_is(r, ".u32") && !ptx_is(r, ".s32") && !ptx_is(r, ".b32"))
			return ptx_wrong(r, "a parameter of another type");
		ptx_next(r);
		r->t->param[r->t->n_params].bytes = wide ? 8 : 4;
		if (!ptx_take_name(r, r->t->param[r->t->n_params++].name))
			return false;
	}
	return ptx_take(r, ")");
}

static bool read_limits(struct reader *r)
{
	int64_t n = 0, one = 0;

	while (!ptx_is(r, "{")) {
		bool threads = ptx_is(r, ".maxntid");
		if (!threads && !ptx_is(r, ".minnctapersm") && !ptx_is(r, ".maxnreg"))
			return ptx_wrong(r, "a directive that is not known");
		ptx_next(r);
		if (!ptx_take_number(r, &n) ||
		    (threads && (!ptx_take(r, ",") || !ptx_take_number(r, &one) || one != 1 || !ptx_take(r, ",") ||
		                 !ptx_take_number(r, &one) || one != 1)))
			return ptx_wrong(r, "a limit is wrong");
		if (threads)
			r->t->threads = (unsigned)n;
	}
	return ptx_take(r, "{");
}

static bool read_body(struct reader *r)
{
	while (!ptx_is(r, "}")) {
		int64_t number;
		if (!*r->word)
			return ptx_wrong(r, "the text ends within a kernel");
		if (ptx_is(r, ".reg")) {
			if (!ptx_read_registers(r))
				return false;
			continue;
		}
		ptx_skip(r);
		if (*r->at == ':') {
			if (!read_label(r, r->word, true, &number))
				return false;
			ptx_next(r);
			ptx_next(r);
			continue;
		}
		if (!read_step(r))
			return false;
	}
	ptx_next(r);
	return true;
}

static bool read_entry(struct reader *r)
{
	if (*r->t->entry)
		return ptx_wrong(r, "a second kernel");
	ptx_next(r);
	return ptx_take(r, ".entry") && ptx_take_name(r, r->t->entry) && read_params(r) && read_limits(r) &&
	       read_body(r);
}

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
			ok = ptx_is(r, ".visible") ? read_entry(r) : ptx_wrong(r, "a directive that is not known");
		}
		if (!ok)
			return false;
	}
	return (r->target && *r->t->entry) || ptx_wrong(r, "the text has no target, or no kernel");
}

static void place(uint32_t *number, const struct ptx_text *t)
{
	if (*number != PTX_NO_REGISTER && *number >= CONSTANTS_AT)
		*number = t->first_constant + (*number - CONSTANTS_AT);
}

/* Constants behind all registers; labels where they are. */
static bool finish(struct reader *r)
{
	struct ptx_text *t = r->t;

	t->first_constant = t->n_registers;
	t->n_registers += t->n_constants;
	for (size_t i = 0; i < t->n_steps; i++) {
		struct ptx_step *s = &t->step[i];
		for (unsigned k = 0; k < PTX_SOURCES; k++)
			place(&s->s[k], t);
		if (s->operation != PTX_DO_BRANCH)
			continue;
		if (!r->label[s->disp].bound) {
			r->line = s->line;
			return ptx_wrong(r, "a label that is nowhere");
		}
		s->disp = (int64_t)r->label[s->disp].step;
	}
	return true;
}

struct ptx_text *ptx_text_read(const char *text, unsigned capability, struct error *err)
{
	struct reader *r = calloc(1, sizeof *r);
	struct ptx_text *t = calloc(1, sizeof *t);
	bool ok = r && t && (t->text = strdup(text));

	if (ok) {
		*r = (struct reader){ .t = t, .at = t->text, .line = 1, .capability = capability, .err = err };
		for (unsigned i = 0; i < SPECIALS; i++)
			t->special[i] = t->n_registers++;
		ok = read_module(r) && finish(r);
	} else {
		error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
	}
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
	free(t->step);
	free(t->constant);
	free(t);
}

bool ptx_text_has(const struct ptx_text *t, const char *entry) { return strcmp(t->entry, entry) == 0; }

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
