/* jit/ptx/text.c - the writer of PTX text: instructions by a table, with operands of the kinds it names.
 *
 * Owns: how an operand is spelled, and that nothing is written which ptx.def does not have or the target lacks. Knows
 * nothing of the IR. What goes wrong is kept, and asked for once, at the end.
 */
#include "jit/ptx/ptx.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const struct {
	const char *text, *operands;
	unsigned min;
} table[PTX_OP_COUNT] = {
#define PTX(id, text, operands, min) [PTX_##id] = { text, operands, min },
#include "jit/ptx/ptx.def"
#undef PTX
};

/* How registers of a class are called. */
static const char prefix[PTX_CLASSES] = { [PTX_B32] = 'r', [PTX_B64] = 'd', [PTX_PRED] = 'p', [PTX_B16] = 'h' };

void ptx_init(struct ptx_writer *w, unsigned capability)
{
	*w = (struct ptx_writer){ .capability = capability, .guard = ptx_imm(0) };
	w->to = &w->body;
}

void ptx_free(struct ptx_writer *w)
{
	free(w->entry.text);
	free(w->body.text);
	*w = (struct ptx_writer){ 0 };
}

void ptx_format(struct ptx_writer *w, struct ptx_buffer *to, const char *format, ...)
{
	char line[160];
	va_list list;

	va_start(list, format);
	size_t n = (size_t)vsnprintf(line, sizeof line, format, list);
	va_end(list);
	if (n >= sizeof line || w->no_memory) {
		w->wrong = n >= sizeof line ? "a line is too long" : w->wrong;
		return;
	}
	if (!array_grow((void **)&to->text, &to->capacity, to->n + n + 1, 1)) {
		w->no_memory = true;
		return;
	}
	memcpy(to->text + to->n, line, n + 1);
	to->n += n;
}

static void put_register(struct ptx_writer *w, unsigned class, uint32_t number)
{
	ptx_format(w, w->to, "%%%c%" PRIu32, prefix[class], number);
}

static void put_tuple(struct ptx_writer *w, const struct ptx_operand *o)
{
	for (unsigned k = 0; k < o->n; k++) {
		ptx_format(w, w->to, k ? ", " : "{");
		put_register(w, o->class, o->reg[k]);
	}
	ptx_format(w, w->to, "}");
}

static bool is_register(const struct ptx_operand *o, enum ptx_class class)
{
	return o->kind == PTX_REGISTER && o->class == class;
}

static bool is_tuple(const struct ptx_operand *o, enum ptx_class class, unsigned n)
{
	return o->kind == PTX_TUPLE && o->class == class && o->n == n;
}

/* Whether an operand is what its letter in the table says. */
static bool fits(const struct ptx_operand *o, char letter)
{
	switch (letter) {
	case 'v': return is_register(o, PTX_B32);
	case 'w': return is_register(o, PTX_B32) || o->kind == PTX_CONSTANT;
	case 'd': return is_register(o, PTX_B64);
	case 'e': return is_register(o, PTX_B64) || o->kind == PTX_CONSTANT;
	case 'h': return is_register(o, PTX_B16);
	case 'p': return is_register(o, PTX_PRED);
	case 'i': return o->kind == PTX_CONSTANT;
	case 'n':
	case 's': return o->kind == PTX_NAME;
	case 'l': return o->kind == PTX_LABEL;
	case 'm': return o->kind == PTX_MEMORY && o->class == PTX_B64 && o->value >= INT32_MIN && o->value <= INT32_MAX;
	case '2': return is_tuple(o, PTX_B32, 2);
	case '4': return is_tuple(o, PTX_B32, 4);
	case 'H': return is_tuple(o, PTX_B16, 2);
	default: return false;
	}
}

static void put_operand(struct ptx_writer *w, const struct ptx_operand *o, char letter)
{
	switch (o->kind) {
	case PTX_REGISTER: put_register(w, o->class, o->reg[0]); break;
	case PTX_CONSTANT: ptx_format(w, w->to, "%" PRId64, o->value); break;
	case PTX_NAME: ptx_format(w, w->to, letter == 'n' ? "[%s]" : "%s", o->name); break;
	case PTX_LABEL: ptx_format(w, w->to, "L%" PRId64, o->value); break;
	case PTX_TUPLE: put_tuple(w, o); break;
	case PTX_MEMORY:
		ptx_format(w, w->to, "[");
		put_register(w, o->class, o->reg[0]);
		if (o->value)
			ptx_format(w, w->to, "+%" PRId64, o->value); /* "+-8": the grammar has no minus here */
		ptx_format(w, w->to, "]");
		break;
	default: break;
	}
}

void ptx_put(struct ptx_writer *w, enum ptx_op op, const struct ptx_operand *operand, unsigned n)
{
	const char *letters = table[op].operands;
	bool fit = strlen(letters) == n && table[op].min <= w->capability;

	for (unsigned k = 0; fit && k < n; k++)
		fit = fits(&operand[k], letters[k]);
	if (!fit) {
		w->wrong = w->wrong ? w->wrong : table[op].text;
		return;
	}
	ptx_format(w, w->to, "\t");
	if (w->guard.kind == PTX_REGISTER)
		ptx_format(w, w->to, "@%%p%" PRIu32 " ", w->guard.reg[0]);
	ptx_format(w, w->to, "%s", table[op].text);
	for (unsigned k = 0; k < n; k++) {
		ptx_format(w, w->to, k ? ", " : " ");
		put_operand(w, &operand[k], letters[k]);
	}
	ptx_format(w, w->to, ";\n");
	w->guard = ptx_imm(0);
	w->instructions++;
}

void ptx_label(struct ptx_writer *w, uint32_t label) { ptx_format(w, w->to, "L%" PRIu32 ":\n", label); }
