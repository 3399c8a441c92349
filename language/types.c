/* language/types.c - how an expression gets its type.
 *
 * Rule: nothing converts by itself. A number in the text has the type of what stands beside it or of what it is given
 * to; where neither says one, that is a message.
 */
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "language/tree.h"

static const char *const type_names[] = { "bool",     "f32",    "f64", "i32", "u32", "i64", "u64",
	                                  "f16",      "bf16",   "i8",  "u8",  "i16", "u16", "a whole number",
	                                  "a number", "nothing" };
static const uint8_t type_sizes[] = { 1, 4, 8, 4, 4, 8, 8, 2, 2, 1, 1, 2, 2 };

const char *jk_type_text(unsigned type) { return type_names[type]; }
const char *jk_type_name(enum jk_type type) { return type_names[type]; }
unsigned jk_type_bytes(enum jk_type type) { return type_sizes[type]; }

unsigned jk_type_widened(unsigned element)
{
	switch (element) {
	case JK_F16:
	case JK_BF16: return JK_F32;
	case JK_I8:
	case JK_I16: return JK_I32;
	case JK_U8:
	case JK_U16: return JK_U32;
	default: return element;
	}
}

const char *jk_operation_text(unsigned op)
{
	static const char *const text[] = {
		"",  "+",  "-",  "*",  "/",  "%",  "&", "|", "^", "<<",  ">>",  "<",   "<=",
		">", ">=", "==", "!=", "&&", "||", "-", "!", "~", "min", "max", "any", "all"
	};
	return text[op];
}

static const struct {
	const char *name, *operands;
	char result;
} builtins[] = {
#define BUILTIN(name, operands, result) { #name, operands, result },
#include "language/builtins.def"
#undef BUILTIN
};

int jk_builtin_find(const char *text, size_t length)
{
	for (int k = 0; k < BUILTINS; k++)
		if (strlen(builtins[k].name) == length && memcmp(builtins[k].name, text, length) == 0)
			return k;
	return -1;
}
const char *jk_builtin_name(unsigned b) { return builtins[b].name; }
unsigned jk_builtin_operands(unsigned b) { return (unsigned)strlen(builtins[b].operands); }

/* --- numbers */

static locale_t plain;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static bool real_value(const char *text, uint32_t length, unsigned type, uint64_t *bits)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char copy[512];
	double d;

	pthread_once(&once, make_plain);
	if (length >= sizeof copy || !plain)
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	if (type == JK_F32) {
		const float f = strtof_l(copy, NULL, plain);
		uint32_t u;
		memcpy(&u, &f, 4);
		*bits = u;
		return f - f == 0;
	}
	d = strtod_l(copy, NULL, plain);
	memcpy(bits, &d, 8);
	return d - d == 0;
}

bool jk_number_value(const char *text, uint32_t length, unsigned type, bool negative, uint64_t *bits)
{
	const bool hex = length > 1 && (text[1] == 'x' || text[1] == 'X');
	const uint64_t base = hex ? 16 : 10;
	uint64_t v = 0, max;

	if (type_is_float(type))
		return real_value(text, length, type, bits);
	for (uint32_t k = hex ? 2 : 0; k < length; k++) {
		const char c = text[k];
		const uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	max = type == JK_U64 ? UINT64_MAX : type == JK_U32 ? UINT32_MAX : type == JK_I64 ? INT64_MAX : INT32_MAX;
	if (v > max + (negative && !type_is_unsigned(type)))
		return false;
	*bits = v;
	return true;
}

/* --- what a message says of an expression: " (index i)", or nothing */

static const char *described(const struct node *n, char out[80])
{
	out[0] = 0;
	if (n->kind == NODE_NAME)
		snprintf(out, 80, " (%s%.50s)", n->symbol->kind == SYMBOL_INDEX ? "index " : "", n->symbol->name->text);
	else if (n->kind == NODE_ELEMENT)
		snprintf(out, 80, " (element of %.50s)", n->symbol->name->text);
	else if (n->kind == NODE_CALL)
		snprintf(out, 80, " (what %.50s returns)", n->symbol->name->text);
	return out;
}

static bool is_literal(const struct node *n) { return n->type == TYPE_WHOLE || n->type == TYPE_REAL; }

static bool wrong(struct node *n)
{
	n->type = TYPE_WRONG;
	return false;
}

static bool give_number(struct jk_messages *m, struct node *n, unsigned type, bool negative, const char *what)
{
	uint64_t bits;

	if (type == JK_BOOL) {
		jk_message_add(m, n->at, "%s: expected bool, found a number; write true, false or a comparison", what);
		return wrong(n);
	}
	if (n->type == TYPE_REAL && !type_is_float(type)) {
		jk_message_add(m, n->at,
		               "%s: expected %s, found a number with a fraction or an exponent; write a whole number",
		               what, jk_type_text(type));
		return wrong(n);
	}
	if (!jk_number_value(n->text, n->length, type, negative, &bits)) {
		jk_message_add(m, n->at, "%s: %.*s does not fit %s; write a smaller number or take another type", what,
		               n->length > 40 ? 40 : (int)n->length, n->text, jk_type_text(type));
		return wrong(n);
	}
	n->bits = bits;
	n->typed = true;
	n->type = (uint8_t)type;
	return true;
}

bool jk_type_give(struct jk_messages *m, struct node *n, unsigned type, const char *what)
{
	bool ok = true;

	if (!is_literal(n) || type >= TYPE_WHOLE)
		return true;
	switch (n->kind) {
	case NODE_NUMBER: return give_number(m, n, type, false, what);
	case NODE_UNARY:
		ok = n->op == OP_NEG && n->a->kind == NODE_NUMBER
		             ? give_number(m, n->a, type, true, what)
		             : jk_type_give(m, n->a, type, what);
		if (ok && n->op == OP_FLIP && !type_is_int(type)) {
			jk_message_add(m, n->at, "%s: expected an integer, found %s", what, jk_type_text(type));
			ok = false;
		}
		break;
	case NODE_BINARY:
		ok = jk_type_give(m, n->a, type, what) && jk_type_give(m, n->b, type, what);
		if (ok && n->op >= OP_REM && n->op <= OP_SHR && !type_is_int(type)) {
			jk_message_add(m, n->at, "%s: %s takes integers, found %s", what, jk_operation_text(n->op),
			               jk_type_text(type));
			ok = false;
		}
		break;
	case NODE_SELECT: ok = jk_type_give(m, n->b, type, what) && jk_type_give(m, n->c, type, what); break;
	case NODE_BUILTIN:
		for (struct node *a = n->a; a && ok; a = a->next)
			ok = jk_type_give(m, a, type, what);
		if (ok && builtins[n->op].result == 'f' && !type_is_float(type)) {
			jk_message_add(m, n->at, "%s: %s gives f32 or f64, expected %s; write a cast", what,
			               builtins[n->op].name, jk_type_text(type));
			ok = false;
		}
		break;
	default: break;
	}
	n->type = ok ? (uint8_t)type : TYPE_WRONG;
	return ok;
}

bool jk_type_expect(struct jk_messages *m, struct node *n, unsigned type, const char *what)
{
	char of[80];

	if (n->type == TYPE_WRONG || type == TYPE_WRONG)
		return false;
	if (is_literal(n) && type < TYPE_WHOLE)
		return jk_type_give(m, n, type, what);
	if (n->type == type)
		return true;
	if (type == JK_BOOL)
		jk_message_add(m, n->at, "%s: expected bool, found %s%s; write a comparison, such as != 0", what,
		               jk_type_text(n->type), described(n, of));
	else
		jk_message_add(m, n->at, "%s: expected %s, found %s%s; write %s(...) around it", what,
		               jk_type_text(type), jk_type_text(n->type), described(n, of), jk_type_text(type));
	return wrong(n);
}

/* Gives two operands one type. False: a message, or one of them is wrong already. */
static bool unite(struct jk_messages *m, struct node *a, struct node *b, const char *what)
{
	char of[80];

	if (a->type == TYPE_WRONG || b->type == TYPE_WRONG)
		return false;
	if (is_literal(a) && is_literal(b)) {
		if (a->type != b->type)
			a->type = b->type = TYPE_REAL;
		return true;
	}
	if (is_literal(a))
		return jk_type_give(m, a, b->type, what);
	if (is_literal(b))
		return jk_type_give(m, b, a->type, what);
	if (a->type == b->type)
		return true;
	jk_message_add(m, b->at, "%s: expected %s, found %s%s; write %s(...) around it", what, jk_type_text(a->type),
	               jk_type_text(b->type), described(b, of), jk_type_text(a->type));
	return false;
}

/* A literal becomes REAL when it is united with one; its parts follow when a type is given. */
static bool settle(struct jk_messages *m, struct node *a, struct node *b, const char *what)
{
	if (a->type == TYPE_REAL) {
		jk_message_add(m, a->at, "%s: no type is given to these numbers; write f32(...) or f64(...) around one",
		               what);
		return false;
	}
	return a->type != TYPE_WHOLE || (jk_type_give(m, a, JK_I32, what) && jk_type_give(m, b, JK_I32, what));
}

void jk_type_unary(struct jk_messages *m, struct node *n)
{
	const unsigned t = n->a->type;

	n->type = (uint8_t)t;
	if (t == TYPE_WRONG)
		return;
	if (n->op == OP_NOT) {
		if (!jk_type_expect(m, n->a, JK_BOOL, "operand of !"))
			wrong(n);
		n->type = n->type == TYPE_WRONG ? TYPE_WRONG : JK_BOOL;
	} else if (t == JK_BOOL || (n->op == OP_FLIP && (type_is_float(t) || t == TYPE_REAL))) {
		jk_message_add(m, n->at, "operand of %s: expected %s, found %s; write %s", jk_operation_text(n->op),
		               n->op == OP_FLIP ? "an integer" : "a number", jk_type_text(t),
		               n->op == OP_FLIP ? "a cast" : "!");
		wrong(n);
	}
}

static void type_shift(struct jk_messages *m, struct node *n, const char *what)
{
	if (!unite(m, n->a, n->b, what)) {
		wrong(n);
		return;
	}
	n->type = n->a->type;
	if (n->type == JK_BOOL || type_is_float(n->type) || n->type == TYPE_REAL) {
		jk_message_add(m, n->at, "%s: expected integers, found %s; write a cast", what, jk_type_text(n->type));
		wrong(n);
	}
}

void jk_type_binary(struct jk_messages *m, struct node *n)
{
	char what[40];
	const bool compares = n->op >= OP_LT && n->op <= OP_NE;

	snprintf(what, sizeof what, "operands of %s", jk_operation_text(n->op));
	if (n->op == OP_SHL || n->op == OP_SHR) {
		type_shift(m, n, what);
		return;
	}
	if (n->op == OP_BOTH || n->op == OP_EITHER) {
		const bool a = jk_type_expect(m, n->a, JK_BOOL, what), b = jk_type_expect(m, n->b, JK_BOOL, what);
		n->type = a && b ? JK_BOOL : TYPE_WRONG;
		return;
	}
	if (!unite(m, n->a, n->b, what) || (compares && !settle(m, n->a, n->b, what))) {
		wrong(n);
		return;
	}
	const unsigned t = n->a->type;
	const bool logic = n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR;
	n->type = compares ? JK_BOOL : (uint8_t)t;
	if (t == JK_BOOL && !logic && n->op != OP_EQ && n->op != OP_NE) {
		jk_message_add(m, n->at, "%s: expected numbers, found bool; write select(condition, 1, 0)", what);
		wrong(n);
	} else if ((logic || n->op == OP_REM) && (type_is_float(t) || t == TYPE_REAL)) {
		jk_message_add(m, n->at, "%s: expected integers, found %s; write a cast", what, jk_type_text(t));
		wrong(n);
	}
}

void jk_type_select(struct jk_messages *m, struct node *n)
{
	const bool a = jk_type_expect(m, n->a, JK_BOOL, "condition of ?"), b = unite(m, n->b, n->c, "values of ? :");

	n->type = a && b ? n->b->type : TYPE_WRONG;
}

void jk_type_cast(struct jk_messages *m, struct node *n)
{
	if (!type_is_value(n->type)) {
		jk_message_add(m, n->at,
		               "%s is a type of elements of arrays alone; write %s(...), a store converts by itself",
		               jk_type_text(n->type), jk_type_text(jk_type_widened(n->type)));
		wrong(n);
	} else if (n->a->type == TYPE_WRONG ||
	           (is_literal(n->a) && !jk_type_give(m, n->a, n->type, "operand of a cast"))) {
		wrong(n);
	}
}

/* The type that one operand must have; TYPE_WRONG: that of those with the same letter. */
static unsigned fixed_type(char letter)
{
	switch (letter) {
	case 'b': return JK_BOOL;
	case 'w': return JK_U32;
	case 'q': return JK_U64;
	case 's': return JK_F32;
	case 'd': return JK_F64;
	default: return TYPE_WRONG;
	}
}

static bool suits(char letter, unsigned t)
{
	switch (letter) {
	case 'n': return t != JK_BOOL;
	case 'f': return type_is_float(t) || t == TYPE_REAL || t == TYPE_WHOLE;
	case 'i': return type_is_int(t) || t == TYPE_WHOLE;
	default: return true;
	}
}

void jk_type_builtin(struct jk_messages *m, struct node *n)
{
	const char *operands = builtins[n->op].operands;
	struct node *first = NULL; /* the operand whose type the others follow: a literal only among literals */
	char what[40];
	bool ok = true;
	size_t k = 0;

	snprintf(what, sizeof what, "operand of %s", builtins[n->op].name);
	for (struct node *a = n->a; a; a = a->next, k++)
		if (fixed_type(operands[k]) == TYPE_WRONG && operands[k] != 'k' &&
		    (!first || (is_literal(first) && (!is_literal(a) || a->type == TYPE_REAL))))
			first = a;
	k = 0;
	for (struct node *a = n->a; a; a = a->next, k++) {
		const char letter = operands[k];
		if (letter == 'k') {
			if (a->kind != NODE_NUMBER || a->type != TYPE_WHOLE || a->length != 1 || a->text[0] > '3') {
				jk_message_add(m, a->at, "%s: expected 0, 1, 2 or 3, which of the four words", what);
				ok = false;
			} else {
				jk_type_give(m, a, JK_I32, what);
			}
		} else if (fixed_type(letter) != TYPE_WRONG) {
			ok &= jk_type_expect(m, a, fixed_type(letter), what);
		} else if (a->type == TYPE_WRONG || !suits(letter, a->type)) {
			if (a->type != TYPE_WRONG)
				jk_message_add(m, a->at, "%s: expected %s, found %s; write a cast", what,
				               letter == 'f'   ? "f32 or f64"
				               : letter == 'i' ? "an integer"
				                               : "a number",
				               jk_type_text(a->type));
			ok = false;
		} else if (a != first) {
			ok &= is_literal(first) || jk_type_expect(m, a, first->type, what);
		}
	}
	const unsigned result = fixed_type(builtins[n->op].result);
	n->type = !ok ? TYPE_WRONG : result != TYPE_WRONG ? (uint8_t)result : first->type;
}
