#include "tests/grammar/bombs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct text {
	char *p;
	size_t n, room;
} t;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	char part[4096];
	va_list args;

	va_start(args, format);
	const int n = vsnprintf(part, sizeof part, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof part)
		abort();
	if (t.n + (size_t)n + 1 > t.room) {
		t.room = 2 * (t.n + (size_t)n + 1);
		if (!(t.p = realloc(t.p, t.room)))
			abort();
	}
	memcpy(t.p + t.n, part, (size_t)n + 1);
	t.n += (size_t)n;
}

static void add_times(const char *what, unsigned n, const char *between)
{
	for (unsigned i = 0; i < n; i++)
		add("%s%s", i ? between : "", what);
}

/* ---- schemas */

static void distances(void)
{
	add("{\"type\":\"string\",\"allOf\":[{\"pattern\":\"a.{8}$\"},{\"pattern\":\"b.{8}$\"}]}");
}

static void distances_of_names(void)
{
	add("{\"type\":\"object\",\"minProperties\":1,\"propertyNames\":{\"allOf\":[{\"pattern\":\"a.{8}$\"},{"
	    "\"pattern\":"
	    "\"b.{8}$\"}]},\"additionalProperties\":{\"type\":\"null\"}}");
}

static void squares(unsigned n, const char *type)
{
	add("{%s\"allOf\":[", type);
	for (unsigned i = 0; i < n; i++) {
		add("%s{\"anyOf\":[", i ? "," : "");
		for (unsigned k = 0; k < n; k++)
			add("%s{\"pattern\":\"^.*%c.{%u}$\"}", k ? "," : "", 'a' + (int)i, k);
		add("]}");
	}
	add("]}");
}
static void square_5(void) { squares(5, "\"type\":\"string\","); }
static void square_10(void) { squares(10, ""); }

static void lengths(void)
{
	add("{\"type\":\"string\",\"minLength\":100000,\"maxLength\":100003,\"pattern\":\"^(abc|abd|ab)*$\",\"not\":{"
	    "\"pattern\":\"(ab){7}\"}}");
}

static void many_properties(unsigned n, const char *rest, bool required)
{
	add("{\"type\":\"object\",\"properties\":{");
	for (unsigned i = 0; i < n; i++)
		add("%s\"property_%05u\":{\"type\":\"integer\",\"minimum\":%u}", i ? "," : "", i * 7919 % n, i);
	add("}%s", rest);
	if (required)
		add(",\"required\":[");
	for (unsigned i = 0; i < n && required; i++)
		add("%s\"property_%05u\"", i ? "," : "", i);
	add("%s}", required ? "]" : "");
}
/* Of each few states are made, but all its places are kept. */
static void patterns_of_values(void)
{
	add("{\"type\":\"object\",\"properties\":{");
	for (unsigned i = 0; i < 5000; i++)
		add("%s\"p%u\":{\"type\":\"string\",\"pattern\":\"^\\\\w{1,%u}@\\\\w+$\"}", i ? "," : "", i,
		    320 + i % 50);
	add("}}");
}

static void properties(void) { many_properties(20000, "", false); }
static void closed_properties(void) { many_properties(20000, ",\"additionalProperties\":false", false); }
static void required_properties(void) { many_properties(20000, ",\"additionalProperties\":false", true); }
static void counted_properties(void) { many_properties(20000, ",\"maxProperties\":20000", true); }

static void deep(unsigned n, const char *open, const char *close)
{
	add_times(open, n, "");
	add("true");
	add_times(close, n, "");
}
static void deep_objects(void) { deep(60, "{\"required\":[\"a\"],\"properties\":{\"a\":", "}}"); }
static void deep_not(void) { deep(120, "{\"not\":", "}"); }
static void deep_choices(void) { deep(60, "{\"type\":\"string\",\"anyOf\":[{\"minLength\":3},", "]}"); }

static void texts(void)
{
	add("{\"enum\":[");
	for (unsigned i = 0; i < 100000; i++)
		add("%s\"%08x text\"", i ? "," : "", i * 2654435761u);
	add("]}");
}

static void numbers(void)
{
	add("{\"enum\":[");
	for (unsigned i = 0; i < 100000; i++)
		add("%s%u", i ? "," : "", i * 2654435761u);
	add("]}");
}

static void objects(void)
{
	add("{\"enum\":[");
	for (unsigned i = 0; i < 500; i++)
		add("%s{\"k%u\":[%u]}", i ? "," : "", i, i);
	add("]}");
}

static void differing(void)
{
	add("{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":4000,\"items\":{\"enum\":[");
	for (unsigned i = 0; i < 4000; i++)
		add("%s\"%x\"", i ? "," : "", i * 2654435761u);
	add("]}}");
}

static void numbers_of_all(void)
{
	add("{\"type\":\"integer\",\"allOf\":[");
	for (unsigned i = 0; i < 200; i++)
		add("%s{\"not\":{\"multipleOf\":%u}}", i ? "," : "", 2 * i + 3);
	add("],\"multipleOf\":99999999977,\"minimum\":10000000000}");
}

static void references(void)
{
	add("{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
	for (unsigned i = 0; i < 120; i++)
		add("%s\"d%u\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%u\"},{\"$ref\":\"#/$defs/"
		    "d%u\"},{\"type\":\"array\",\"minItems\":1,"
		    "\"items\":{\"$ref\":\"#/$defs/d%u\"}}]}",
		    i ? "," : "", i, (i * 7 + 1) % 120, (i * 11 + 3) % 120, (i * 13 + 5) % 120);
	add("}}");
}

static void circle(void) { add("{\"allOf\":[{\"$ref\":\"#\"},{\"not\":{\"$ref\":\"#\"}}]}"); }

static void wide_references(void)
{
	add("{\"$defs\":{\"a\":{}},\"properties\":{");
	for (unsigned i = 0; i < 12000; i++)
		add("%s\"p%u\":{\"$ref\":\"#/$defs/a\"}", i ? "," : "", i);
	add("}}");
}

static void contained(void)
{
	add("{\"type\":\"array\",\"minItems\":1000000,\"allOf\":[{\"contains\":{\"multipleOf\":3},\"minContains\":"
	    "100000},{"
	    "\"contains\":{\"multipleOf\":5},\"maxContains\":200000},{\"contains\":{\"multipleOf\":7},\"minContains\":"
	    "99999}]}");
}

static void patterns_of_names(void)
{
	add("{\"type\":\"object\",\"minProperties\":3,\"additionalProperties\":false,\"patternProperties\":{");
	for (unsigned i = 0; i < 60; i++)
		add("%s\"^.*%c.{%u}$\":{\"type\":\"null\"}", i ? "," : "", 'a' + (int)(i % 26), i % 14);
	add("}}");
}

static void looking_ahead(void)
{
	add("{\"type\":\"string\",\"pattern\":\"^");
	for (unsigned i = 0; i < 14; i++)
		add("(?=.*%c.{%u})", 'a' + (int)i, i + 3);
	add("(?!.*(aa|bb).{9}c)[a-z]*$\"}");
}

static void nothing_is_right(void)
{
	add("{\"type\":\"object\",\"required\":[\"x\"],\"properties\":{\"x\":false,");
	for (unsigned i = 0; i < 2000; i++)
		add("%s\"p%u\":{\"pattern\":\"a.{%u}$\"}", i ? "," : "", i, i % 9);
	add("}}");
}

/* Many places at once after each byte, in any order. */
static void long_choices(void)
{
	add("{\"not\":{\"allOf\":[{\"pattern\":\"^(");
	for (unsigned i = 0; i < 12; i++)
		add("[ab]+|.{%u}|(.*|\\\\p{L})|(.{60}|x*)|", 3 + i);
	add("z)?\"},{\"pattern\":\"((x*|.{3})|(.*|.{60}|.{20}|\\\\p{L})|(.{60})*)$\"}]}}");
}

static void far_choices(void) { add("{\"pattern\":\".{8}.*x*((((a|(([ab]+|(b|\\\\p{L}))|x*))|(.{60}|\\\\s)))?| )\"}"); }

static void conditions(void)
{
	add("{\"type\":\"object\",\"allOf\":[");
	for (unsigned i = 0; i < 100; i++)
		add("%s{\"if\":{\"properties\":{\"k%u\":{\"const\":1}},\"required\":[\"k%u\"]},\"then\":{\"required\":["
		    "\"k%u\"]},"
		    "\"else\":{\"minProperties\":%u}}",
		    i ? "," : "", i, i, (i + 1) % 100, i % 5);
	add("]}");
}

/* ---- expressions */

static void far_letter(void) { add(".*a.{16}b.{16}"); }
static void repetitions(void) { add("((a{0,9}b?){0,9}c?){0,40}"); }
static void many_repetitions(void) { add("(([a-z]{1,19}){1,19}){1,99}"); }
static void letters(void) { add("(\\p{Lu}{1,4}\\p{N}?){1,9}"); }
static void ahead(void) { add("((?=.*a.{9})(?=.*b.{7})(?!.*c.{8}d).)*"); }

/* ---- rules */

static void ways(void) { add("root ::= x*\nx ::= y y? y?\ny ::= z+\nz ::= \"a\" | \"a\" z | \"ab\"? z \"c\"\n"); }

static void optional(void)
{
	add("root ::= ");
	add_times("[a-z]?", 4000, " ");
	add("\n");
}

static void many_rules(void)
{
	add("root ::= r0\n");
	for (unsigned i = 0; i < 3000; i++)
		add("r%u ::= r%u? r%u? \"x\" r%u?\n", i, (i + 1) % 3000 > i ? (i + 1) % 3000 : 2999, 2999u,
		    (i * 17) % 3000);
}

static void counted(void) { add("root ::= ([a-z]{0,20} \" \"?){0,200}\n"); }
static void nested_counts(void) { add("root ::= ((\"a\"{1,20}){1,20}){1,100}\n"); }

static void tokens(void)
{
	add("root ::= (");
	for (unsigned i = 0; i < 5000; i++)
		add("%s!<[%u]>", i ? " | " : "", i);
	add(")*\n");
}

static void stacks(void)
{
	add("root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"a\" s s | [a-z] t | \"\"\nt ::= \"a\" t t? | [a-z] s? "
	    "t?\n");
}

/* ---- Lark's */

static void twins(const char *what)
{
	add("start: A0 A0\n");
	for (unsigned i = 0; i < 60; i++)
		add("A%u: A%u A%u\n", i, i + 1, i + 1);
	add("A60: %s\n", what);
}
static void twins_of_letters(void) { twins("/\\w/"); }
static void twins_of_nothing(void) { twins("/[^\\s\\S]/"); }
static void twins_of_lazy(void) { twins("/a*?b/"); }

static void no_times(void)
{
	add("start: A0\n");
	for (unsigned i = 0; i < 45; i++)
		add("A%u: (A%u A%u)~0\n", i, i + 1, i + 1);
	add("A45: \"a\"\n");
}

static void empty_texts(void)
{
	add("start: \"a\"\n");
	for (unsigned i = 0; i < 15; i++)
		add("A%u: A%u A%u\n", i, i + 1, i + 1);
	add("A15: /()/\n");
	for (unsigned i = 0; i < 7000; i++)
		add("B%u: A0\n", i);
}

static void templates(void) { add("start: t{a, b}\nt{x, y}: t{y, x} | t{t{x, y}, t{y, x}} | x\na: \"a\"\nb: \"b\"\n"); }

static void left(void)
{
	add("start: r0\n");
	for (unsigned i = 0; i < 4000; i++)
		add("r%u: r%u \"a\" | r%u? r%u \"b\" | \"c\"\n", i, i, (i + 1) % 4000, (i * 7 + 3) % 4000);
}

static void words(void)
{
	add("start: /");
	add_times("(\\w|[^\\W\\d])?", 4000, "");
	add("/i\n");
}

static void repeated(void) { add("start: /"), add_times("(a|b.{9})*?c.*?", 30, ""), add("d/s\n"); }

static void ambiguous(void)
{
	add("start: start start start? | t start? t | /[a-z]/\nt: start t? | start t start | ");
	add("\"x\"i\n%%ignore /[a-z ]/\n");
}

static const struct {
	const char *name;
	enum grammar_kind kind;
	void (*make)(void);
} all[] = {
	{ "two distances", GRAMMAR_SCHEMA, distances },
	{ "two distances in names", GRAMMAR_SCHEMA, distances_of_names },
	{ "25 patterns", GRAMMAR_SCHEMA, square_5 },
	{ "100 patterns", GRAMMAR_SCHEMA, square_10 },
	{ "lengths", GRAMMAR_SCHEMA, lengths },
	{ "20 000 properties", GRAMMAR_SCHEMA, properties },
	{ "20 000 and no others", GRAMMAR_SCHEMA, closed_properties },
	{ "20 000, all required", GRAMMAR_SCHEMA, required_properties },
	{ "20 000 counted", GRAMMAR_SCHEMA, counted_properties },
	{ "deep objects", GRAMMAR_SCHEMA, deep_objects },
	{ "deep not", GRAMMAR_SCHEMA, deep_not },
	{ "deep choices", GRAMMAR_SCHEMA, deep_choices },
	{ "100 000 texts", GRAMMAR_SCHEMA, texts },
	{ "100 000 numbers", GRAMMAR_SCHEMA, numbers },
	{ "500 objects", GRAMMAR_SCHEMA, objects },
	{ "4000 that differ", GRAMMAR_SCHEMA, differing },
	{ "200 divisors", GRAMMAR_SCHEMA, numbers_of_all },
	{ "references", GRAMMAR_SCHEMA, references },
	{ "a circle", GRAMMAR_SCHEMA, circle },
	{ "12 000 references", GRAMMAR_SCHEMA, wide_references },
	{ "contained", GRAMMAR_SCHEMA, contained },
	{ "patterns of names", GRAMMAR_SCHEMA, patterns_of_names },
	{ "5000 patterns of values", GRAMMAR_SCHEMA, patterns_of_values },
	{ "looking ahead", GRAMMAR_SCHEMA, looking_ahead },
	{ "nothing is right", GRAMMAR_SCHEMA, nothing_is_right },
	{ "conditions", GRAMMAR_SCHEMA, conditions },
	{ "long choices", GRAMMAR_SCHEMA, long_choices },
	{ "far choices", GRAMMAR_SCHEMA, far_choices },
	{ "a far letter", GRAMMAR_REGEX, far_letter },
	{ "repetitions", GRAMMAR_REGEX, repetitions },
	{ "many repetitions", GRAMMAR_REGEX, many_repetitions },
	{ "letters", GRAMMAR_REGEX, letters },
	{ "ahead", GRAMMAR_REGEX, ahead },
	{ "ways", GRAMMAR_GBNF, ways },
	{ "4000 optional", GRAMMAR_GBNF, optional },
	{ "3000 rules", GRAMMAR_GBNF, many_rules },
	{ "counted", GRAMMAR_GBNF, counted },
	{ "nested counts", GRAMMAR_GBNF, nested_counts },
	{ "5000 tokens", GRAMMAR_GBNF, tokens },
	{ "stacks", GRAMMAR_GBNF, stacks },
	{ "twins of letters", GRAMMAR_LARK, twins_of_letters },
	{ "twins of few", GRAMMAR_LARK, twins_of_lazy },
	{ "twins of nothing", GRAMMAR_LARK, twins_of_nothing },
	{ "no times", GRAMMAR_LARK, no_times },
	{ "empty texts", GRAMMAR_LARK, empty_texts },
	{ "templates", GRAMMAR_LARK, templates },
	{ "4000 left rules", GRAMMAR_LARK, left },
	{ "words", GRAMMAR_LARK, words },
	{ "few", GRAMMAR_LARK, repeated },
	{ "ambiguous", GRAMMAR_LARK, ambiguous },
};

struct bomb bomb_make(size_t i)
{
	if (i >= sizeof all / sizeof *all)
		return (struct bomb){ .name = NULL };
	t = (struct text){ 0 };
	all[i].make();
	return (struct bomb){ all[i].name, all[i].kind, t.p };
}
