/* tests/loaders/t_safetensors.c - the safetensors container: its rules, truncation at every byte, every byte of a
 * header changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/file.h"
#include "loaders/files/safetensors.h"
#include "tests/support/guarded.h"
#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"

#define F(dtype, shape, begin, end) \
	"{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static void expect(const char *header, size_t header_bytes, size_t data, bool header_only, const char *part)
{
	struct error err = { 0 };
	struct safetensors s;
	size_t n;
	uint8_t *p = st_from_text(header, header_bytes, data, &n);
	bool ok = safetensors_parse(&s, p, n, "sample", header_only, &err);

	if (ok)
		safetensors_free(&s);
	free(p);
	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("%.200s: expected \"%s\", got \"%s\"", header, part ? part : "ok", ok ? "ok" : err.text);
}

static const struct {
	const char *header;
	size_t data;
	const char *error;
} rules[] = {
	{ "{}", 0, NULL },
	{ "  {} \n", 0, NULL },
	{ "{}", 1, "the tensors end at byte 10, but the file has 11 bytes" },
	{ "{\"a\":" F("F32", "2,3", "0", "24") "}", 24, NULL },
	{ "{\"a\":" F("F32", "2,3", "0", "24") "}", 23, "but the file has" },
	{ "{\"a\":" F("F32", "", "0", "4") "}", 4, NULL },
	{ "{\"a\":" F("F32", "0,5", "0", "0") "}", 0, NULL },
	{ "{\"b\":" F("U8", "4", "4", "8") ",\"a\":" F("I64", "0", "4", "4") ",\"c\":" F("BF16", "2", "0", "4") "}", 8,
	  NULL },
	{ "{\"a\":" F("F8_E4M3", "3", "0", "3") ",\"b\":" F("F32", "1", "3", "7") "}", 7, NULL },
	{ "{\"a\":" F("F33", "1", "0", "4") "}", 4, "dtype F33, which is no known type" },
	{ "{\"a\":" F("Q8_0", "32", "0", "34") "}", 34, "dtype Q8_0, which is no known type" },
	{ "{\"a\":" F("F32", "1", "4", "0") "}", 4, "before it begins" },
	{ "{\"a\":" F("F32", "1", "0", "8") "}", 8, "spans 8 bytes, but its shape and dtype F32 take 4" },
	{ "{\"a\":" F("F32", "4294967296,4294967296", "0", "0") "}", 0, "more than 2^63 bytes" },
	{ "{\"a\":" F("F32", "0,4294967296,4294967296", "0", "0") "}", 0, "more than 2^63 bytes" },
	{ "{\"a\":" F("F32", "2305843009213693952", "0", "8") "}", 8, "more than 2^63 bytes" },
	{ "{\"a\":" F("F32", "18446744073709551616", "0", "8") "}", 8, "does not fit 64 bits" },
	{ "{\"a\":" F("F32", "-1", "0", "8") "}", 8, "expected a non-negative integer" },
	{ "{\"a\":" F("F32", "1.0", "0", "4") "}", 4, "without fraction" },
	{ "{\"a\":" F("F32", "1e0", "0", "4") "}", 4, "without fraction" },
	{ "{\"a\":" F("F32", "01", "0", "4") "}", 4, "begins with 0" },
	{ "{\"a\":" F("F32", "\"1\"", "0", "4") "}", 4, "expected a non-negative integer" },
	{ "{\"a\":" F("U8", "1,1,1,1,1,1,1,1", "0", "1") "}", 1, NULL },
	{ "{\"a\":" F("U8", "1,1,1,1,1,1,1,1,1", "0", "1") "}", 1, "more than 8 dimensions" },
	{ "{\"a\":" F("U8", "4", "0", "4") ",\"b\":" F("U8", "4", "2", "6") "}", 6, "neither overlap nor leave gaps" },
	{ "{\"a\":" F("U8", "4", "0", "4") ",\"b\":" F("U8", "4", "5", "9") "}", 9, "neither overlap nor leave gaps" },
	{ "{\"a\":" F("U8", "4", "1", "5") "}", 5, "neither overlap nor leave gaps" },
	{ "{\"a\":" F("U8", "1", "0", "1") ",\"a\":" F("U8", "1", "1", "2") "}", 2, "tensor a occurs more than once" },
	{ "{\"a\":" F("U8", "1", "0", "1") ",\"\\u0061\":" F("U8", "1", "1", "2") "}", 2,
	  "tensor a occurs more than once" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 0, "tensor a has no data_offsets" },
	{ "{\"a\":{}}", 0, "has no dtype" },
	{ "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
	  "dtype more than once" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "expected" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "expected two data_offsets" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"note\":[{\"x\":[null,true,-1.5e3]}]}"
	  "}",
	  1, NULL },
	{ "{\"__metadata__\":{\"a\":\"b\"}}", 0, NULL },
	{ "{\"__metadata__\":{\"a\":1}}", 0, "expected a string" },
	{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "more than once" },
	{ "[]", 0, "expected an object" },
	{ "", 0, "expected an object" },
	{ "{\"a\":1}", 0, "expected an object" },
	{ "{} {}", 0, "expected nothing more" },
	{ "{,}", 0, "expected a string" },
};

static void test_rules(void **state)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		expect(rules[i].header, strlen(rules[i].header), rules[i].data, false, rules[i].error);
	expect("{}\0\0", 4, 0, false, "expected nothing more");
	expect("{\"a\":" F("F32", "1000000", "0", "4000000") "}",
	       strlen("{\"a\":" F("F32", "1000000", "0", "4000000") "}"), 0, true, NULL);
}

static void test_header_length(void **state)
{
	static const struct {
		uint64_t length;
		const char *error;
	} bad[] = {
		{ 0, "expected an object" },
		{ 3, "but only 2 bytes follow" },
		{ 100000000, "but only 2 bytes follow" },
		{ 100000001, "expected at most 100000000" },
		{ 1ull << 63, "expected at most" },
		{ UINT64_MAX, "expected at most" },
		{ UINT64_MAX - 7, "expected at most" },
	};
	uint8_t file[10] = { 2, 0, 0, 0, 0, 0, 0, 0, '{', '}' };
	struct safetensors s;

	assert_true(safetensors_parse(&s, file, sizeof file, "sample", false, NULL));
	safetensors_free(&s);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = { 0 };
		memcpy(file, &bad[i].length, 8);
		assert_false(safetensors_parse(&s, file, sizeof file, "sample", false, &err));
		assert_non_null(strstr(err.text, bad[i].error));
	}
}

static uint8_t *sample(size_t *n)
{
	struct st_writer w;
	const float values[6] = { 1, 2, 3, 4, 5, 6 };

	st_writer_start(&w);
	st_write_tensor(&w, "first", DTYPE_F32, 2, (const uint64_t[]){ 2, 3 }, values, sizeof values);
	st_write_tensor(&w, "se\\u0063ond\\n", DTYPE_F16, 1, (const uint64_t[]){ 3 }, NULL, 6);
	st_write_tensor(&w, "scalar", DTYPE_U8, 0, NULL, NULL, 1);
	return st_writer_finish(&w, 1, n);
}

static void test_reads(void **state)
{
	struct safetensors s;
	float last;
	size_t n;
	uint8_t *p = sample(&n);

	assert_true(safetensors_parse(&s, p, n, "sample", false, NULL));
	assert_int_equal(s.n_tensors, 3);
	const struct safetensors_tensor *t = s.tensor;
	assert_true(t[0].type == DTYPE_F32 && t[0].rank == 2 && t[0].dim[0] == 2 && t[0].dim[1] == 3 &&
	            t[0].dim[2] == 1 && t[0].bytes == 24);
	assert_true(t[1].type == DTYPE_F16 && t[1].rank == 1 && t[1].name.n == 7 &&
	            memcmp(t[1].name.p, "second\n", 7) == 0);
	assert_true(t[2].rank == 0 && t[2].bytes == 1 && t[2].offset + 1 == n);
	memcpy(&last, p + t[0].offset + 20, sizeof last);
	assert_true(last == 6);
	safetensors_free(&s);
	free(p);
}

static void test_refuses_truncation_at_every_byte(void **state)
{
	struct guarded guard = guarded_open(4096);
	struct safetensors s;
	size_t n;
	uint8_t *p = sample(&n);

	for (size_t cut = 0; cut <= n; cut++) {
		const uint8_t *q = guarded_copy(&guard, p, cut);
		assert_int_equal(safetensors_parse(&s, q, cut, "sample", false, NULL), cut == n);
		if (cut == n)
			safetensors_free(&s);
		bool head = safetensors_parse(&s, q, cut, "sample", true, NULL);
		assert_int_equal(head, cut >= n - 31);
		if (head)
			safetensors_free(&s);
	}
	free(p);
	guarded_close(&guard);
}

static void test_survives_every_byte_changed(void **state)
{
	struct guarded guard = guarded_open(4096);
	struct safetensors s;
	size_t n, refused = 0, tried = 0;
	uint8_t *p = sample(&n);

	for (size_t at = 0; at < n - 31; at++)
		for (unsigned value = 0; value < 256; value++, tried++) {
			uint8_t *q = (uint8_t *)(uintptr_t)guarded_copy(&guard, p, n);
			q[at] = (uint8_t)value;
			struct error err = { 0 };
			if (safetensors_parse(&s, q, n, "sample", false, &err)) {
				for (uint32_t i = 0; i < s.n_tensors; i++)
					assert_true(s.tensor[i].offset + s.tensor[i].bytes <= n);
				safetensors_free(&s);
			} else {
				assert_true(err.text[0]);
				refused++;
			}
		}
	assert_true(refused > tried / 2);
	free(p);
	guarded_close(&guard);
}

static void test_many_tensors(void **state)
{
	enum { COUNT = 100000 };
	struct st_writer w;
	struct safetensors s;
	char name[64];
	size_t n;

	st_writer_start(&w);
	for (int i = COUNT; i-- > 0;) {
		snprintf(name, sizeof name, "a.rather.long.common.beginning.of.a.name.%08d", i);
		st_write_tensor(&w, name, DTYPE_U8, 1, (const uint64_t[]){ (uint64_t)i % 2 }, NULL, (size_t)i % 2);
	}
	uint8_t *p = st_writer_finish(&w, 8, &n);
	assert_true(safetensors_parse(&s, p, n, "many", false, NULL));
	assert_int_equal(s.n_tensors, COUNT);
	safetensors_free(&s);
	free(p);
}

static void test_depth(void **state)
{
	enum { N = 200000 };
	char *deep = malloc(N + 10);

	memcpy(deep, "{\"a\":{\"x\":", 10);
	memset(deep + 10, '[', N);
	expect(deep, N + 10, 0, false, "nested too deep");
	memset(deep, '[', N);
	expect(deep, N, 0, false, "expected an object");
	free(deep);
}

static void run_case(const char *folder, const char *name, const char *answer)
{
	struct error err = { 0 };
	struct safetensors s;
	struct file f;
	char path[1200];

	snprintf(path, sizeof path, "%s/%s%s", folder, name, strstr(name, ".safetensors") ? "" : ".safetensors");
	bool ok = file_open(&f, path, &err) && safetensors_open(&s, &f, false, &err);
	if (strcmp(answer, "either") != 0 && ok != (strcmp(answer, "accept") == 0))
		fail_msg("%s: expected %s: %s", name, answer, err.text);
	assert_true(ok || err.text[0]);
	if (ok)
		safetensors_free(&s);
	file_close(&f);
}

static void test_malformed_files(void **state)
{
	static const char *const folders[] = { "data/malformed/safetensors/from-reports",
		                               "data/malformed/safetensors/hf-unit-tests" };
	char folder[1024], path[1100], line[300], name[100], a[100], b[100];
	unsigned cases = 0;

	for (int i = 0; i < 2; i++) {
		if (!shared_path(folder, folders[i]))
			skip();
		snprintf(path, sizeof path, "%s/EXPECT.tsv", folder);
		FILE *f = fopen(path, "r");
		assert_non_null(f);
		while (fgets(line, sizeof line, f)) {
			if (sscanf(line, "%99s %99s %99s", name, a, b) < 2)
				continue;
			/* name, answer, size, why - or name, size, answer */
			const char *answer = a[0] >= '0' && a[0] <= '9' ? b : a;
			run_case(folder, name, strncmp(answer, "reject", 6) == 0 ? "reject" : answer);
			cases++;
		}
		fclose(f);
	}
	assert_true(cases >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_header_length),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses_truncation_at_every_byte),
		cmocka_unit_test(test_survives_every_byte_changed),
		cmocka_unit_test(test_many_tensors),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_malformed_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
