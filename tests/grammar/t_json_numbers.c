/* tests/grammar/t_json_numbers.c - numbers by JSON Schemas whose bounds, multiples and values are of any size, from
 * 1e-320 to 1e308: what a model writes by one is right, and no arithmetic overflows on the way, which the build with
 * sanitizers sees. `t_json_numbers SEED` draws other schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/grammar/writing.h"
#include "tests/support/shared.h"

static uint64_t seed = 0x2545f4914f6cdd1du;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

/* ---- the witness: digits by weight, without doubles, which round what has more than 15 of them */

enum { WEIGHTS = 800, ONES = 400 /* the digit that weighs 1 */ };

struct plain {
	bool negative;
	char digit[WEIGHTS];
	unsigned n; /* digits that are written */
};

/* False: it is no number. */
static bool read_plain(struct plain *p, const char *text)
{
	char number[100];

	text += strspn(text, " \n");
	snprintf(number, sizeof number, "%.*s", (int)strspn(text, "0123456789+-.eE"), text);
	const char *at = number, *end, *power = strpbrk(at, "eE"), *point = strchr(at, '.');
	*p = (struct plain){ .negative = *at == '-' };
	at += p->negative;
	end = power ? power : at + strspn(at, "0123456789.");
	const char *whole_end = point ? point : end;
	long weight = (long)(whole_end - at) - 1 + (power ? strtol(power + 1, NULL, 10) : 0);
	if (at == end || *at < '0' || *at > '9')
		return false;
	for (; at < end; at++) {
		if (*at == '.')
			continue;
		assert_true(ONES - weight >= 0 && ONES - weight < WEIGHTS);
		p->n += p->n || *at != '0';
		p->digit[ONES - weight--] = (char)(*at - '0');
	}
	return true;
}

static int compare_plain(const struct plain *a, const struct plain *b)
{
	static const char zeros[WEIGHTS];
	const int size = memcmp(a->digit, b->digit, WEIGHTS);
	const bool minus_a = a->negative && memcmp(a->digit, zeros, WEIGHTS) != 0,
		   minus_b = b->negative && memcmp(b->digit, zeros, WEIGHTS) != 0;

	return minus_a != minus_b ? (minus_a ? -1 : 1) : minus_a ? -size : size;
}

/* The divisor's digits are a whole number of some weight: nothing lighter is left over, and what is above divides. */
static bool is_multiple_plain(const struct plain *x, const struct plain *of)
{
	unsigned __int128 divisor = 0, rest = 0;
	size_t last = WEIGHTS - 1;

	while (last && !of->digit[last])
		last--;
	for (size_t i = 0; i <= last; i++)
		divisor = 10 * divisor + (unsigned char)of->digit[i];
	for (size_t i = 0; i < WEIGHTS; i++) {
		if (i <= last)
			rest = (10 * rest + (unsigned char)x->digit[i]) % divisor;
		else if (x->digit[i])
			return false;
	}
	return rest == 0;
}

static bool holds(const struct plain *x, const char *key, const char *value)
{
	struct plain v;

	assert_true(read_plain(&v, value));
	const int c = compare_plain(x, &v);
	if (strcmp(key, "multipleOf") == 0)
		return is_multiple_plain(x, &v);
	return strcmp(key, "minimum") == 0            ? c >= 0
	       : strcmp(key, "maximum") == 0          ? c <= 0
	       : strcmp(key, "exclusiveMinimum") == 0 ? c > 0
	                                              : c < 0;
}

/* Each "KEY":NUMBER of the schema holds; what stands in others is for the other judge. */
static void check_text(const char *schema, const char *text)
{
	static const char *const keys[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		                            "multipleOf" };
	struct plain x;
	char find[40];

	if (strpbrk(schema, "[") || strstr(schema, "not") || !read_plain(&x, text))
		return;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(find, sizeof find, "\"%s\":", keys[i]);
		for (const char *at = schema; (at = strstr(at, find)); at++)
			if (!holds(&x, keys[i], at + strlen(find)))
				fail_msg("by %s: %s, against %s", schema, text, keys[i]);
	}
}

/* Whether the grammar ended it: what an answer may cost is limited, and a sentence says that it was too much. */
static bool check(const char *schema)
{
	struct counts c = { 0 };
	struct plain x = { .n = 0 };

	writing_try(schema, 0, 1, &c);
	if (c.stuck || c.limited + c.refused + c.ended + c.longer != 1)
		fail_msg("by %s: %u stuck, %u limited", schema, c.stuck, c.limited);
	if (!c.ended)
		return c.limited;
	check_text(schema, c.last);
	if (c.wrong && read_plain(&x, c.last) && x.n <= 15)
		fail_msg("by %s: %s", schema, c.last);
	return false;
}

/* Where ten to the power of the places of a multiple is too large for a word of 128 bits, and near it. */
static void test_fine_multiples(void **state)
{
	static const char *const digits[] = {
		"1", "2", "3", "5", "8", "1.25", "9.99", "2.8823037615171", "3.0517578125"
	};
	static const char *const with[] = { "", ",\"minimum\":0", ",\"minimum\":1e-30,\"maximum\":2",
		                            ",\"maximum\":-1e300", ",\"exclusiveMinimum\":0,\"maximum\":1e-200" };
	static const int powers[] = { -1,   -10,  -17,  -18,  -19, -36, -37, -38, -39, -40, -60, -100,
		                      -128, -200, -300, -307, 17,  21,  38,  39,  127, 128, 300 };
	char schema[200];
	(void)state;

	for (size_t p = 0; p < sizeof powers / sizeof *powers; p++)
		for (size_t k = 0; k < sizeof digits / sizeof *digits; k++) {
			const size_t w = test_quick() ? (p + k) % 5 : 0;
			if (test_quick() && (2 * p + k) % 14)
				continue;
			for (size_t i = w; i < (test_quick() ? w + 1 : 5); i++) {
				snprintf(schema, sizeof schema, "{\"type\":\"number\",\"multipleOf\":%se%d%s}",
				         digits[k], powers[p], with[i]);
				assert_false(check(schema));
			}
		}
	assert_false(check("{\"multipleOf\":1e-300,\"allOf\":[{\"multipleOf\":3e-301},{\"multipleOf\":7}]}"));
}

static void add_number(char *to, size_t room)
{
	const int power = draw(3) ? (int)draw(30) - 15 : (int)draw(615) - 307;
	const unsigned digits = 1 + (draw(3) ? draw(3) : draw(15));
	size_t n = 0;

	n += (size_t)snprintf(to, room, "%s%u%s", draw(4) ? "" : "-", 1 + draw(9), digits > 1 ? "." : "");
	for (unsigned i = 1; i < digits; i++)
		n += (size_t)snprintf(to + n, room - n, "%u", draw(10));
	snprintf(to + n, room - n, "e%d", power);
}

/* Each keyword once: `had` has those that are there. */
static size_t add_part(char *to, size_t room, unsigned *had)
{
	static const char *const names[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		                             "multipleOf" };
	enum { NAMES = sizeof names / sizeof *names };
	char number[60];
	const uint32_t which = draw(NAMES + 2);

	if (*had >> which & 1)
		return 0;
	*had |= 1u << which;
	add_number(number, sizeof number);
	if (which < NAMES)
		return (size_t)snprintf(to, room, ",\"%s\":%s", names[which],
		                        number + (which == NAMES - 1 && number[0] == '-'));
	return (size_t)snprintf(to, room, which == NAMES ? ",\"not\":{\"minimum\":%s}" : ",\"enum\":[1,%s,0,-2.5e-7]",
	                        number);
}

static void test_drawn(void **state)
{
	const unsigned schemas = test_quick() ? 16 : test_full() ? 20000 : 800;
	unsigned limited = 0;
	char schema[1000];
	(void)state;

	for (unsigned i = 0; i < schemas; i++) {
		size_t n = (size_t)snprintf(schema, sizeof schema, "{\"type\":\"%s\"", draw(4) ? "number" : "integer");
		unsigned had = 0, first = 0, second = 0;
		for (unsigned k = draw(3); k < 3; k++)
			n += add_part(schema + n, sizeof schema - n, &had);
		if (draw(4) == 0) {
			n += (size_t)snprintf(schema + n, sizeof schema - n, ",\"anyOf\":[{\"type\":\"number\"");
			n += add_part(schema + n, sizeof schema - n, &first);
			n += (size_t)snprintf(schema + n, sizeof schema - n, "},{\"type\":\"number\"");
			n += add_part(schema + n, sizeof schema - n, &second);
			n += (size_t)snprintf(schema + n, sizeof schema - n, "}]");
		}
		snprintf(schema + n, sizeof schema - n, "}");
		limited += check(schema);
	}
	printf("# %u of %u schemas take too much work\n", limited, schemas);
	assert_true(limited * 100 <= schemas);
}

/* Integers that no double and no 64 bits hold: the only value that each schema leaves, digit for digit. */
static void test_large_integers(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"const\":12345678901234567890}", "12345678901234567890" },
		{ "{\"enum\":[-98765432109876543210123]}", "-98765432109876543210123" },
		{ "{\"const\":9223372036854775807}", "9223372036854775807" },
		{ "{\"const\":-9223372036854775809}", "-9223372036854775809" },
		{ "{\"const\":{\"a\":[12345678901234567891]}}", "{\"a\":[12345678901234567891]}" },
		{ "{\"type\":\"integer\",\"minimum\":18446744073709551617,\"maximum\":18446744073709551617}",
		  "18446744073709551617" },
		{ "{\"type\":\"integer\",\"exclusiveMinimum\":9223372036854775808,"
		  "\"exclusiveMaximum\":9223372036854775810}",
		  "9223372036854775809" },
		{ "{\"enum\":[12345678901234567890,7],\"not\":{\"const\":7}}", "12345678901234567890" },
		{ "{\"type\":\"array\",\"const\":[1],\"maxItems\":99999999999999999999}", "[1]" },
		{ "{\"properties\":{\"minimum\":{\"const\":\"a\",\"maxLength\":99999999999999999999}},"
		  "\"required\":[\"minimum\"],\"additionalProperties\":false,\"type\":\"object\"}",
		  "{\"minimum\":\"a\"}" },
	};
	char said[100];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct counts c = { 0 };
		size_t n = 0;
		writing_try(rows[i][0], 0, 1, &c);
		for (const char *p = c.last; *p; p++)
			if (!strchr(" \n\t", *p))
				said[n++] = *p;
		said[n] = 0;
		struct plain is, want;
		const bool same =
			strcmp(said, rows[i][1]) == 0 ||
			(read_plain(&is, said) && read_plain(&want, rows[i][1]) && compare_plain(&is, &want) == 0);
		if (c.ended != 1 || !same)
			fail_msg("by %s: %s, expected %s", rows[i][0], c.ended ? c.last : "nothing", rows[i][1]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fine_multiples), cmocka_unit_test(test_drawn),
		                            cmocka_unit_test(test_large_integers) };

	if (argc > 1)
		seed ^= strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15u;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
