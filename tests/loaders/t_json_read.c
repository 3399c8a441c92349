/* tests/loaders/t_json_read.c - the JSON files of a model, judged by Python's json module: tests/golden/json_python.txt
 * holds texts and what Python 3.11 makes of them. Published files of many families must all read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <ftw.h>
#include <inttypes.h>
#include <locale.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/json_scan.h"
#include "tests/support/guarded.h"
#include "tests/support/shared.h"

enum { ANY_SIZE = 1 << 30 };

/* ---- a value written as the golden file writes it */

struct text {
	char *p;
	size_t n, cap;
};

static void add(struct text *t, const char *p, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		t->cap = 2 * (t->n + n + 1);
		t->p = realloc(t->p, t->cap);
		assert_non_null(t->p);
	}
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = 0;
}

static void add_word(struct text *t, const char *word) { add(t, word, strlen(word)); }

static void add_hex(struct text *t, const char *p, size_t n)
{
	char two[3];

	for (size_t i = 0; i < n; i++) {
		snprintf(two, sizeof two, "%02x", (unsigned char)p[i]);
		add_word(t, two);
	}
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void write_value(struct text *t, json_t *v);

static void write_object(struct text *t, json_t *object)
{
	size_t n = 0;
	const char *name;
	json_t *v;
	const char **names = malloc((json_object_size(object) + 1) * sizeof *names);

	assert_non_null(names);
	json_object_foreach(object, name, v) names[n++] = name;
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		add_word(t, i ? "," : "{");
		add_hex(t, names[i], strlen(names[i]));
		add_word(t, ":");
		write_value(t, json_object_get(object, names[i]));
	}
	add_word(t, n ? "}" : "{}");
	free(names);
}

static void write_value(struct text *t, json_t *v)
{
	char word[40];

	if (json_not_finite(v)) {
		add_word(t, !strcmp(json_not_finite(v), "NaN")        ? "rnan"
		            : !strcmp(json_not_finite(v), "Infinity") ? "rinf"
		                                                      : "r-inf");
	} else if (json_is_object(v)) {
		write_object(t, v);
	} else if (json_is_array(v)) {
		add_word(t, "[");
		for (size_t i = 0; i < json_array_size(v); i++) {
			if (i)
				add_word(t, ",");
			write_value(t, json_array_get(v, i));
		}
		add_word(t, "]");
	} else if (json_is_string(v)) {
		add_word(t, "s");
		add_hex(t, json_string_value(v), json_string_length(v));
	} else if (json_is_number(v)) {
		double x = json_number_value(v);
		uint64_t bits;
		memcpy(&bits, &x, sizeof bits);
		if (json_is_integer(v))
			snprintf(word, sizeof word, "i%" JSON_INTEGER_FORMAT, json_integer_value(v));
		else
			snprintf(word, sizeof word, "r%016" PRIx64, bits);
		add_word(t, word);
	} else {
		add_word(t, json_is_true(v) ? "t" : json_is_false(v) ? "f" : "n");
	}
}

/* ---- Python's verdicts */

static size_t from_hex(char *line)
{
	size_t n = 0;

	for (char *p = line; p[0] && p[1] && p[0] != '-'; p += 2, n++) {
		char two[3] = { p[0], p[1], 0 };
		line[n] = (char)strtoul(two, NULL, 16);
	}
	return n;
}

static void check_row(struct guarded *guard, char *hex, const char *want, unsigned row)
{
	struct error err = { 0 };
	struct text got = { 0 };
	size_t n = from_hex(hex);
	const char *text = (const char *)guarded_copy(guard, hex, n);
	json_t *v = json_read(text, n, ANY_SIZE, "row", &err);

	if (v)
		write_value(&got, v);
	else
		add_word(&got, "!");
	if (strcmp(got.p, want))
		fail_msg("row %u: %.*s: %s, Python has %s (%s)", row, (int)n, text, got.p, want, err.text);
	assert_true(v || (err.code == ERROR_FORMAT && strstr(err.text, "row: is not valid JSON in line ")));
	json_decref(v);
	free(got.p);
}

static void test_reads_as_python(void **state)
{
	struct guarded guard = guarded_open(16384);
	FILE *f = source_open("tests/golden/json_python.txt");
	static char line[32768];
	unsigned rows = 0;

	while (fgets(line, sizeof line, f)) {
		char *space = strchr(line, ' ');
		if (line[0] == '#')
			continue;
		assert_non_null(space);
		*space = 0;
		space[1 + strcspn(space + 1, "\n")] = 0;
		check_row(&guard, line, space + 1, ++rows);
	}
	fclose(f);
	assert_true(rows > 600);
	guarded_close(&guard);
}

/* ---- bounds of ours, and what messages say */

static void check_refused(const char *text, size_t n, uint64_t max, const char *says)
{
	struct error err = { 0 };

	assert_null(json_read(text, n, max, "some.json", &err));
	if (!strstr(err.text, says))
		fail_msg("says: %s", err.text);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "some.json: is not valid JSON in line 1, byte 1: expected a value" },
		{ "{\n \"a\": 1,\n \"b\" 2}", "in line 3, byte 6: expected ':'" },
		{ "{\n\"a\": [1, 2\n", "in line 3, byte 1: expected ',' or ']'" },
		{ "\xef\xbb\xbf{}", "byte 1: it begins with a byte order mark" },
		{ "{\"a\\u0000b\": 1}", "a NUL in a member's name, which is not supported" },
		{ "{\"a\": tru}", "in line 1, byte 7: expected a value" },
		{ "[1] x", "in line 1, byte 5: expected nothing more" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_refused(rows[i].text, strlen(rows[i].text), ANY_SIZE, rows[i].says);
	check_refused("[1]", 3, 2, "some.json: has 3 bytes, expected at most 2");
}

static void test_depth(void **state)
{
	char text[2 * (JSON_MAX_DEPTH + 1)];

	for (unsigned depth = JSON_MAX_DEPTH - 1; depth <= JSON_MAX_DEPTH + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		struct error err = { 0 };
		json_t *v = json_read(text, 2 * depth, ANY_SIZE, "deep", &err);
		assert_int_equal(v != NULL, depth <= JSON_MAX_DEPTH);
		assert_true(v || strstr(err.text, "nested too deep"));
		json_decref(v);
	}
}

/* A small file must not make a tree of any size. */
static void test_many_values(void **state)
{
	if (test_quick())
		skip();
	size_t n = 2 * ((size_t)JSON_MAX_VALUES + 1);
	char *text = malloc(n);
	assert_non_null(text);
	for (size_t i = 0; i < n; i += 2)
		memcpy(text + i, i ? ",1" : "[1", 2);
	check_refused(text, n, n, "more than 8388608 values");
	free(text);
}

/* What jansson has. */
static size_t jansson_bytes;

static void *counted_malloc(size_t n)
{
	size_t *p = malloc(n + 16);

	assert_non_null(p);
	*p = n;
	jansson_bytes += n;
	return (char *)p + 16;
}

static void counted_free(void *at)
{
	size_t *p = at ? (void *)((char *)at - 16) : NULL;

	jansson_bytes -= p ? *p : 0;
	free(p);
}

/* A body of little text may not become a tree of much memory: what jansson takes for each kind of value is counted. */
static void test_memory(void **state)
{
	static const char *const parts[] = {
		"{}", "[]", "0", "\"\"", "\"0123456789\"", "{\"a\":null}", "[[[]]]", "1.5"
	};
	enum { PARTS = 1000 };
	char text[PARTS * 16 + 4];
	(void)state;

	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		size_t n = 1, used = 0;
		text[0] = '[';
		for (unsigned i = 0; i < PARTS; i++)
			n += (size_t)sprintf(text + n, "%s%s", i ? "," : "", parts[k]);
		strcpy(text + n++, "]");
		json_set_alloc_funcs(counted_malloc, counted_free);
		jansson_bytes = 0;
		json_t *v = json_read_within(text, n, 1 << 20, "small", NULL);
		used = jansson_bytes;
		assert_non_null(v);
		assert_true(used > PARTS);
		json_decref(v);
		assert_int_equal(jansson_bytes, 0);
		json_set_alloc_funcs(malloc, free);
		v = json_read_within(text, n, 3 * used, "small", NULL);
		assert_non_null(v);
		json_decref(v);
		struct error err = { 0 };
		assert_null(json_read_within(text, n, used / 2, "the body", &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "the body: its values take more than 0 MiB of memory"));
	}
	json_t *v = json_read_within("[18446744073709551616]", 22, 1 << 20, "row", NULL);
	assert_non_null(v);
	json_decref(v);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *text, *kind;
		bool is_text;
	} rows[] = {
		{ "{}", "an object", false },
		{ "[]", "an array", false },
		{ "\"\"", "a string", true },
		{ "\"NaN\"", "a string", true },
		{ "1", "an integer", false },
		{ "1e3", "a number", false },
		{ "1e30", "a number", false },
		{ "NaN", "NaN", false },
		{ "1e999", "Infinity", false },
		{ "-1e999", "-Infinity", false },
		{ "null", "null", false },
		{ "\"\\ud800\"", "a string with half a surrogate pair", false },
		{ "\"x\\udfffy\"", "a string with half a surrogate pair", false },
		{ "\"\\ud7ff\\ue000\\ud83d\\ude00\"", "a string", true },
	};

	assert_string_equal(json_kind(NULL), "absent");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *v = json_read(rows[i].text, strlen(rows[i].text), ANY_SIZE, "row", NULL);
		assert_string_equal(json_kind(v), rows[i].kind);
		assert_int_equal(json_is_text(v), rows[i].is_text);
		json_decref(v);
	}
}

/* Digits are kept where a schema compares values, and nowhere else; what is written has them again. */
static void test_digits(void **state)
{
	static const char *const same[] = {
		"{\"const\":12345678901234567890}",
		"{\"a\":[1,{\"enum\":[\"x\",-99999999999999999999,2.5,{\"y\":100000000000000000000}]}],\"b\":{}}",
		"{\"minimum\":9223372036854775808,\"maximum\":18446744073709551616,\"exclusiveMinimum\":-"
		"9223372036854775809,"
		"\"exclusiveMaximum\":1000000000000000000000}",
		"{\"properties\":{\"minimum\":{\"maxLength\":99999999999999999999}},\"\\u0001\":true}",
	};
	const char *other = "{\"const\":1e30,\"seed\":12345678901234567890}";
	json_t *v;
	(void)state;

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		v = json_read_digits(same[i], strlen(same[i]), ANY_SIZE, "row", NULL);
		char *text = json_spell(v, JSON_COMPACT);
		assert_string_equal(text, same[i]);
		free(text);
		json_decref(v);
		v = json_read(same[i], strlen(same[i]), ANY_SIZE, "row", NULL);
		assert_null(json_digits(json_object_get(v, i == 0 ? "const" : "minimum")));
		json_decref(v);
	}
	v = json_read_digits(other, strlen(other), ANY_SIZE, "row", NULL);
	assert_true(json_is_real(json_object_get(v, "const")) && json_is_real(json_object_get(v, "seed")));
	json_decref(v);
	v = json_read_digits(same[0], strlen(same[0]), ANY_SIZE, "row", NULL);
	const json_t *one = json_object_get(v, "const");
	assert_string_equal(json_digits(one), "12345678901234567890");
	assert_string_equal(json_kind(one), "an integer");
	assert_false(json_is_text(one));
	assert_null(json_not_finite(one));
	json_decref(v);
}

/* Where numbers are written with a comma, those of a file still have a point. */
static void test_locale(void **state)
{
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "pl_PL.UTF-8" };
	size_t i = 0;

	while (i < sizeof names / sizeof *names && !setlocale(LC_NUMERIC, names[i]))
		i++;
	json_t *v = json_read("1.5", 3, 3, "point", NULL);
	setlocale(LC_NUMERIC, "C");
	assert_true(json_real_value(v) == 1.5);
	json_decref(v);
	if (i == sizeof names / sizeof *names)
		printf("# no locale with a decimal comma is installed; its case was not tried\n");
}

/* ---- published files */

static unsigned files_read;

static int read_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	size_t n, length = strlen(path);

	if (kind != FTW_F || length < 5 || strcmp(path + length - 5, ".json") ||
	    (test_quick() && st->st_size > 1 << 20))
		return 0;
	struct error err = { 0 };
	uint8_t *text = file_bytes(path, &n);
	json_t *v = json_read(text, n, ANY_SIZE, path, &err);
	/* one published file lacks a comma; Python refuses it too */
	bool broken = strstr(path, "Qwen1.5-moe-8x0.5B-Chat/generation_config.json");
	if (!v != broken)
		fail_msg("%s", v ? path : err.text);
	json_decref(v);
	free(text);
	files_read++;
	return 0;
}

static void test_published_files(void **state)
{
	static const char *const dirs[] = { "data/configs", "data/tokenizers", "models" };
	char path[1024];

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (shared_path(path, dirs[i]))
			assert_int_equal(nftw(path, read_one, 16, FTW_PHYS), 0);
	printf("# %u published files read\n", files_read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_as_python), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_depth),           cmocka_unit_test(test_many_values),
		cmocka_unit_test(test_memory),          cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_digits),          cmocka_unit_test(test_locale),
		cmocka_unit_test(test_published_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
