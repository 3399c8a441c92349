/* sim/ptx_words.c - words of PTX text, and the registers it declares (PTX ISA manual, chapters 4 and 5). */
#include "sim/ptx_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char *const specials[SPECIALS] = { "%tid.x", "%ctaid.x", "%nctaid.x", "%ntid.x", "%ctaid.y", "%nctaid.y" };

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

void ptx_next(struct reader *r)
{
	size_t n = 0;

	ptx_skip(r);
	r->is_number = isdigit((unsigned char)r->at[0]) || (r->at[0] == '-' && isdigit((unsigned char)r->at[1]));
	if (r->is_number || is_word(*r->at)) {
		while (n + 1 < WORD && (is_word(r->at[n]) || (n == 0 && r->at[0] == '-')))
			n++;
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

static char letter_of(const char *type)
{
	static const struct {
		const char *type;
		char letter;
	} types[] = { { ".pred", 'p' }, { ".b16", 'h' }, { ".b32", 'w' }, { ".b64", 'q' } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].type, type) == 0)
			return types[i].letter;
	return 0;
}

uint64_t ptx_mask_of(char letter)
{
	return letter == 'p' ? 1 : letter == 'h' ? 0xffff : letter == 'w' ? UINT32_MAX : UINT64_MAX;
}

bool ptx_read_registers(struct reader *r)
{
	int64_t n = 0;

	ptx_next(r);
	char letter = letter_of(r->word), name[PTX_NAME];
	if (!letter || r->n_prefixes == PREFIXES)
		return ptx_wrong(r, "registers of another type");
	ptx_next(r);
	if (!ptx_take_name(r, name) || strlen(name) >= sizeof r->prefix->name || !ptx_take(r, "<") ||
	    !ptx_take_number(r, &n) || n < 1 || n > 1 << 20 || !ptx_take(r, ">"))
		return ptx_wrong(r, "a declaration of registers is wrong");
	strcpy(r->prefix[r->n_prefixes].name, name);
	r->prefix[r->n_prefixes].letter = letter;
	r->prefix[r->n_prefixes].first = r->t->n_registers;
	r->prefix[r->n_prefixes++].count = (uint32_t)n;
	r->t->n_registers += (uint32_t)n;
	return ptx_take(r, ";");
}

char ptx_find_register(const struct reader *r, const char *name, uint32_t *number)
{
	size_t prefix = strcspn(name, "0123456789");
	char *end;
	unsigned long n = strtoul(name + prefix, &end, 10);

	for (unsigned i = 0; i < SPECIALS; i++)
		if (strcmp(name, specials[i]) == 0) {
			*number = r->t->special[i];
			return 'w';
		}
	for (unsigned i = 0; i < r->n_prefixes && name[prefix] && !*end; i++)
		if (strlen(r->prefix[i].name) == prefix && memcmp(r->prefix[i].name, name, prefix) == 0 &&
		    n < r->prefix[i].count) {
			*number = r->prefix[i].first + (uint32_t)n;
			return r->prefix[i].letter;
		}
	return 0;
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
