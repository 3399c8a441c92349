/* sim/ptx_words.c - words of PTX text, and the registers it declares (PTX ISA manual, chapters 4 and 5). */
#include "sim/ptx_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char *const specials[PTX_SPECIALS] = {
	[PTX_TID_X] = "%tid.x",   [PTX_CTAID_X] = "%ctaid.x", [PTX_NCTAID_X] = "%nctaid.x",
	[PTX_NTID_X] = "%ntid.x", [PTX_CTAID_Y] = "%ctaid.y", [PTX_NCTAID_Y] = "%nctaid.y",
	[PTX_LANEID] = "%laneid", [PTX_CTAID_Z] = "%ctaid.z"
};

bool ptx_wrong(struct reader *r, const char *what)
{
	char text[160];

	return error_set(r->err, ERROR_FORMAT, "PTX, line %u, \"%s\": %s, at \"%s\"", r->line,
	                 ptx_text_line(r->t, r->line, text, sizeof text), what, r->word);
}

/* --- words */

void ptx_skip(struct reader *r)
{
	for (;;) {
		if (*r->at == '\n')
			r->line++;
		if (isspace((unsigned char)*r->at)) {
			r->at++;
		} else if (r->at[0] == '/' && r->at[1] == '/') {
			r->at += strcspn(r->at, "\n");
		} else {
			return;
		}
	}
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '%' || c == '$'; }

/* How many characters of a word are there: one, "::" between two others, or none. */
static size_t part_of_word(const char *at)
{
	return is_word(*at) ? 1 : at[0] == ':' && at[1] == ':' && is_word(at[2]) ? 2 : 0;
}

void ptx_next(struct reader *r)
{
	size_t n = 0;

	ptx_skip(r);
	r->is_number = isdigit((unsigned char)r->at[0]) || (r->at[0] == '-' && isdigit((unsigned char)r->at[1]));
	if (r->is_number || is_word(*r->at)) {
		for (size_t more; n + 2 < WORD; n += more)
			if (!(more = n == 0 && r->at[0] == '-' ? 1 : part_of_word(r->at + n)))
				break;
	} else {
		n = *r->at != 0;
	}
	memcpy(r->word, r->at, n);
	r->word[n] = 0;
	r->at += n;
	if (r->is_number) {
		char *end;
		r->number = strtoll(r->word, &end, 0);
		r->is_number = *end == 0;
	}
}

bool ptx_is(const struct reader *r, const char *word) { return strcmp(r->word, word) == 0; }

bool ptx_take(struct reader *r, const char *word)
{
	if (!ptx_is(r, word))
		return ptx_wrong(r, "another word was expected");
	ptx_next(r);
	return true;
}

bool ptx_take_number(struct reader *r, int64_t *n)
{
	if (!r->is_number)
		return ptx_wrong(r, "a number was expected");
	*n = r->number;
	ptx_next(r);
	return true;
}

bool ptx_take_name(struct reader *r, char out[PTX_NAME])
{
	if (!is_word(*r->word) || r->is_number || strlen(r->word) >= PTX_NAME)
		return ptx_wrong(r, "a name was expected");
	strcpy(out, r->word);
	ptx_next(r);
	return true;
}

/* --- registers */

char ptx_letter_of(const char *type)
{
	static const struct {
		const char *type;
		char letter;
	} types[] = { { ".pred", 'p' }, { ".b16", 'h' }, { ".u16", 'h' }, { ".s16", 'h' },
		      { ".b32", 'w' },  { ".u32", 'w' }, { ".s32", 'w' }, { ".f32", 'w' },
		      { ".b64", 'q' },  { ".u64", 'q' }, { ".s64", 'q' } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].type, type) == 0)
			return types[i].letter;
	return 0;
}

uint64_t ptx_mask_of(char letter)
{
	return letter == 'p' ? 1 : letter == 'h' ? 0xffff : letter == 'w' ? UINT32_MAX : UINT64_MAX;
}

static bool add_registers(struct reader *r, int64_t n, uint32_t *first)
{
	struct ptx_function *f = &r->t->function[r->function];

	if (n < 1 || n > 1 << 20 || f->n_registers + n > 1 << 20)
		return ptx_wrong(r, "that many registers are impossible, or not simulated");
	*first = f->n_registers;
	f->n_registers += (uint32_t)n;
	return true;
}

bool ptx_name_register(struct reader *r, const char *name, char letter, bool is_param, uint32_t *reg)
{
	struct name *to = &r->name[r->n_names];

	if (r->n_names == NAMES || strlen(name) >= sizeof to->name)
		return ptx_wrong(r, "too many names, or too long a one");
	if (!add_registers(r, 1, reg))
		return false;
	strcpy(to->name, name);
	to->letter = letter;
	to->is_param = is_param;
	to->reg = *reg;
	r->n_names++;
	return true;
}

/* %r<12>: registers %r0 to %r11. */
static bool read_range(struct reader *r, const char *name, char letter)
{
	int64_t n = 0;

	if (r->n_prefixes == PREFIXES || strlen(name) >= sizeof r->prefix->name || !ptx_take(r, "<") ||
	    !ptx_take_number(r, &n) || !ptx_take(r, ">"))
		return ptx_wrong(r, "a declaration of registers is wrong");
	if (!add_registers(r, n, &r->prefix[r->n_prefixes].first))
		return false;
	strcpy(r->prefix[r->n_prefixes].name, name);
	r->prefix[r->n_prefixes].letter = letter;
	r->prefix[r->n_prefixes++].count = (uint32_t)n;
	return true;
}

bool ptx_read_registers(struct reader *r)
{
	const bool is_param = ptx_is(r, ".param");

	ptx_next(r);
	char letter = ptx_letter_of(r->word), name[PTX_NAME];
	if (!letter || (is_param && letter != 'w' && letter != 'q'))
		return ptx_wrong(r, "registers of another type");
	do {
		uint32_t reg;
		ptx_next(r);
		if (!ptx_take_name(r, name))
			return false;
		if (ptx_is(r, "<") && !is_param ? !read_range(r, name, letter)
		                                : !ptx_name_register(r, name, letter, is_param, &reg))
			return false;
	} while (ptx_is(r, ","));
	return ptx_take(r, ";");
}

static char find_name(const struct reader *r, const char *name, bool is_param, uint32_t *number)
{
	for (unsigned i = r->n_names; i-- > 0;)
		if (r->name[i].is_param == is_param && strcmp(r->name[i].name, name) == 0) {
			*number = r->name[i].reg;
			return r->name[i].letter;
		}
	return 0;
}

char ptx_find_param(const struct reader *r, const char *name, uint32_t *number)
{
	return find_name(r, name, true, number);
}

char ptx_find_register(const struct reader *r, const char *name, uint32_t *number)
{
	size_t prefix = strcspn(name, "0123456789");
	char *end;
	unsigned long n = strtoul(name + prefix, &end, 10);

	for (unsigned i = r->n_prefixes; i-- > 0 && name[prefix] && !*end;)
		if (strlen(r->prefix[i].name) == prefix && memcmp(r->prefix[i].name, name, prefix) == 0 &&
		    n < r->prefix[i].count) {
			*number = r->prefix[i].first + (uint32_t)n;
			return r->prefix[i].letter;
		}
	for (unsigned i = 0; i < PTX_SPECIALS; i++)
		if (strcmp(name, specials[i]) == 0) {
			*number = SPECIALS_AT + i;
			return 'w';
		}
	return find_name(r, name, false, number);
}

bool ptx_constant(struct reader *r, uint64_t value, uint32_t *number)
{
	struct ptx_text *t = r->t;

	for (uint32_t i = 0; i < t->n_constants; i++)
		if (t->constant[i] == value) {
			*number = CONSTANTS_AT + i;
			return true;
		}
	if (!array_grow((void **)&t->constant, &t->constants_capacity, t->n_constants + 1, sizeof *t->constant))
		return error_set(r->err, ERROR_MEMORY, "no memory for the constants of a kernel");
	t->constant[t->n_constants] = value;
	*number = CONSTANTS_AT + t->n_constants++;
	return true;
}
