/* tests/language/random_program.c - kernels by chance. */
#include "tests/language/random_program.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum type { F32, I32, U32, I64, F64, TYPES };
static const char *const names[TYPES] = { "f32", "i32", "u32", "i64", "f64" };
static const char letters[TYPES] = { 'f', 'i', 'u', 'l', 'd' };

struct writer {
	char *text;
	size_t size, n;
	uint64_t state;
	unsigned variables[TYPES]; /* in scope: f0, f1 ... */
	unsigned indices, loops, budget;
};

static unsigned chance(struct writer *w, unsigned n)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return (unsigned)(w->state >> 20) % n;
}

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	const int n = vsnprintf(w->text + w->n, w->size - w->n, format, ap);
	va_end(ap);
	w->n += n > 0 && (size_t)n < w->size - w->n ? (size_t)n : 0;
}

static void expression(struct writer *w, enum type t, unsigned depth);

static void leaf(struct writer *w, enum type t)
{
	const unsigned k = chance(w, 4);

	if (k == 0 && t == I32)
		put(w, "i");
	else if (k == 0 && t == F32)
		put(w, "x[i]");
	else if (k == 0 && t == U32)
		put(w, "w[(i * %u + %u) %% n]", chance(w, 5), chance(w, 9));
	else if (k == 1 && t == I32 && w->indices)
		put(w, "k%u", chance(w, w->indices));
	else if (k <= 2 && w->variables[t])
		put(w, "%c%u", letters[t], chance(w, w->variables[t]));
	else if (t == F32 || t == F64)
		put(w, "%s(%u.%u)", names[t], chance(w, 7), chance(w, 10));
	else
		put(w, "%s(%u)", names[t], chance(w, 4) ? chance(w, 20) : 0x7fffff00 + chance(w, 255));
}

static void condition(struct writer *w, unsigned depth)
{
	static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
	const enum type t = (enum type)chance(w, TYPES);

	if (depth && chance(w, 3) == 0) {
		put(w, "(");
		condition(w, depth - 1);
		put(w, chance(w, 2) ? " && " : " || ");
		condition(w, depth - 1);
		put(w, ")");
		return;
	}
	put(w, "%s(", chance(w, 6) ? "" : "!");
	expression(w, t, depth ? depth - 1 : 0);
	put(w, " %s ", ops[chance(w, 6)]);
	expression(w, t, depth ? depth - 1 : 0);
	put(w, ")");
}

static void two(struct writer *w, enum type t, unsigned depth, const char *before, const char *between)
{
	put(w, "%s", before);
	expression(w, t, depth);
	put(w, "%s", between);
	expression(w, t, depth);
	put(w, ")");
}

static void expression(struct writer *w, enum type t, unsigned depth)
{
	static const char *const of_floats[] = { " + ", " - ", " * ", " / " };
	static const char *const of_ints[] = { " + ", " - ", " * ", " & ", " | ", " ^ ", " << ", " >> ", " / ", " % " };
	const bool is_float = t == F32 || t == F64;

	if (!depth || w->budget == 0) {
		leaf(w, t);
		return;
	}
	w->budget--;
	switch (chance(w, 9)) {
	case 0: leaf(w, t); break;
	case 1: {
		const enum type from = (enum type)chance(w, TYPES);
		put(w, "%s(", names[t]);
		expression(w, from, depth - 1);
		put(w, ")");
		break;
	}
	case 2:
		put(w, "(");
		condition(w, depth - 1);
		two(w, t, depth - 1, " ? ", " : ");
		break;
	case 3: two(w, t, depth - 1, chance(w, 2) ? "min(" : "max(", ", "); break;
	case 4:
		put(w, is_float       ? (chance(w, 2) ? "sqrt(abs(" : "floor((")
		       : chance(w, 2) ? "abs(("
		       : t == I64     ? "-(("
		                      : "popcount((");
		expression(w, t, depth - 1);
		put(w, "))");
		break;
	case 5:
		if (is_float) {
			put(w, "fma(");
			expression(w, t, depth - 1);
			two(w, t, depth - 1, ", ", ", ");
		} else if (t == I32) {
			put(w, "w2[");
			expression(w, I32, depth - 1);
			put(w, "]"); /* anywhere: 0 where there is nothing */
		} else {
			leaf(w, t);
		}
		break;
	default: two(w, t, depth - 1, "(", is_float ? of_floats[chance(w, 4)] : of_ints[chance(w, 10)]); break;
	}
}

static void statements(struct writer *w, unsigned depth, unsigned n);

static void declare(struct writer *w)
{
	const enum type t = (enum type)chance(w, TYPES);

	put(w, "%s %c%u = ", names[t], letters[t], w->variables[t]);
	expression(w, t, 3);
	put(w, ";\n");
	w->variables[t]++;
}

static void assign(struct writer *w)
{
	static const char *const ops[] = { "=", "=", "+=", "-=", "*=" };
	const enum type t = (enum type)chance(w, TYPES);

	if (!w->variables[t])
		return;
	put(w, "%c%u %s ", letters[t], chance(w, w->variables[t]), ops[chance(w, 5)]);
	expression(w, t, 3);
	put(w, ";\n");
}

static void block(struct writer *w, unsigned depth)
{
	unsigned variables[TYPES];

	memcpy(variables, w->variables, sizeof variables);
	put(w, "{\n");
	statements(w, depth, 1 + chance(w, 3));
	put(w, "}\n");
	memcpy(w->variables, variables, sizeof variables);
}

static void loop(struct writer *w, unsigned depth)
{
	const unsigned k = w->indices;

	switch (chance(w, 3)) {
	case 0:
		put(w, "for (k%u in 0..%u%s)%s ", k, chance(w, 7), chance(w, 3) ? "" : " step 2",
		    chance(w, 3) ? "" : " unroll(3)");
		w->indices++;
		break;
	case 1:
		put(w, "for (k%u in i32(%u)..", k, chance(w, 3));
		expression(w, I32, 1);
		put(w, " %% 6) ");
		w->indices++;
		break;
	default:
		put(w, "while (");
		condition(w, 2);
		put(w, ") at most %u ", chance(w, 6));
		break;
	}
	w->loops++;
	block(w, depth - 1);
	w->loops--;
	w->indices = k;
}

static void statements(struct writer *w, unsigned depth, unsigned n)
{
	while (n--)
		switch (chance(w, depth ? 8 : 4)) {
		case 0: declare(w); break;
		case 4:
		case 5:
			put(w, "if (");
			condition(w, 2);
			put(w, ") ");
			block(w, depth - 1);
			if (chance(w, 2)) {
				put(w, "else ");
				block(w, depth - 1);
			}
			break;
		case 6: loop(w, depth); break;
		case 7:
			if (w->loops) {
				put(w, "if (");
				condition(w, 1);
				put(w, ") { break; }\n");
				break;
			}
			/* fallthrough */
		default: assign(w); break;
		}
}

void random_program(char *text, size_t size, uint64_t seed)
{
	struct writer w = {
		.text = text, .size = size, .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 12345, .budget = 300
	};

	put(&w, "const i32 n;\nkernel random(in f32 x[n], in u32 w[n], in i32 w2[n], out f32 of[n], out i32 oi[n], "
	        "out u32 ou[n], out i64 ol[n], out f64 od[n]) over (i in n) {\n");
	for (enum type t = F32; t < TYPES; t++) {
		put(&w, "%s %c0 = ", names[t], letters[t]);
		expression(&w, t, 2);
		put(&w, ";\n");
		w.variables[t] = 1;
	}
	statements(&w, 3, 8);
	put(&w, "of[i] = f0;\noi[i] = i0;\nou[i] = u0;\nol[i] = l0;\nod[i] = d0;\n}\n");
}
