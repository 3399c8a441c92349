/* tests/loaders/t_gguf.c - the GGUF container: every value type, every rule, truncation at every byte, every field
 * falsified. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/gguf.h"
#include "loaders/files/file.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/support/guarded.h"
#include "tests/support/shared.h"

static const uint64_t shape[] = { 32, 3 };
static const uint8_t zeros[4096];

/* One key of every type and three tensors. */
static void write_sample(struct gguf_writer *w, uint32_t version, uint32_t alignment)
{
	static const char *const words[] = { "one", "", "three" };
	const uint8_t u8 = 250, flag = 2;
	const int8_t i8 = -5;
	const uint16_t u16 = 65000;
	const int16_t i16 = -300;
	const int32_t i32 = -70000, items[] = { 1, -2, 3 };
	const uint64_t u64 = UINT64_MAX;
	const int64_t i64 = INT64_MIN;
	const double f64 = 0.1;

	gguf_writer_start(w, version, alignment);
	gguf_write_scalar(w, "u8", GGUF_U8, &u8);
	gguf_write_scalar(w, "i8", GGUF_I8, &i8);
	gguf_write_scalar(w, "u16", GGUF_U16, &u16);
	gguf_write_scalar(w, "i16", GGUF_I16, &i16);
	gguf_write_u32(w, "u32", 4000000000u);
	gguf_write_scalar(w, "i32", GGUF_I32, &i32);
	gguf_write_f32(w, "f32", 1.5f);
	gguf_write_scalar(w, "bool", GGUF_BOOL, &flag);
	gguf_write_string(w, "string", "text");
	gguf_write_scalar(w, "u64", GGUF_U64, &u64);
	gguf_write_scalar(w, "i64", GGUF_I64, &i64);
	gguf_write_scalar(w, "f64", GGUF_F64, &f64);
	gguf_write_strings(w, "strings", words, 3);
	gguf_write_array(w, "ints", GGUF_I32, 3, items, sizeof items);
	gguf_write_array(w, "none", GGUF_U64, 0, NULL, 0);
	gguf_write_nested(w, "nested", 3, 2, 5);
	gguf_write_tensor(w, "a", DTYPE_F32, 2, shape, zeros, 32 * 3 * 4);
	gguf_write_tensor(w, "b", DTYPE_Q8_0, 1, shape, zeros, 34);
	gguf_write_tensor(w, "c", DTYPE_BF16, 2, shape, zeros, 32 * 3 * 2);
}

static void check_integers(const struct gguf *g)
{
	static const struct {
		const char *key;
		int64_t value;
		bool ok;
	} want[] = {
		{ "u8", 250, true },    { "i8", -5, false },         { "u16", 65000, true },
		{ "i16", -300, false }, { "u32", 4000000000, true }, { "i32", -70000, false },
		{ "u64", -1, true },    { "i64", INT64_MIN, false }, { "f32", 0, false },
		{ "bool", 0, false },   { "string", 0, false },      { "ints", 0, false },
	};

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct error err = { 0 };
		uint64_t v = 0;
		bool found;
		assert_int_equal(gguf_u64(g, want[i].key, &v, &found, &err), want[i].ok);
		assert_true(found);
		if (want[i].ok)
			assert_int_equal(v, (uint64_t)want[i].value);
		else
			assert_non_null(strstr(err.text, want[i].key));
	}
}

static void check_others(const struct gguf *g)
{
	struct error err = { 0 };
	struct gguf_str s, *list;
	uint64_t n;
	double d;
	bool found, flag;

	assert_true(gguf_f64(g, "f32", &d, &found, &err) && found && d == 1.5);
	assert_true(gguf_f64(g, "f64", &d, &found, &err) && found && d == 0.1);
	assert_true(gguf_bool(g, "bool", &flag, &found, &err) && found && flag);
	assert_true(gguf_string(g, "string", &s, &found, &err) && found && s.n == 4 && memcmp(s.p, "text", 4) == 0);
	assert_true(gguf_strings(g, "strings", &list, &n, &found, &err) && found && n == 3);
	assert_true(list[0].n == 3 && memcmp(list[0].p, "one", 3) == 0 && list[1].n == 0 && list[2].n == 5 &&
	            memcmp(list[2].p, "three", 5) == 0);
	free(list);
	const struct gguf_kv *ints = gguf_find(g, "ints");
	assert_true(ints && ints->count == 3 && gguf_item_int(ints, 1) == -2 && gguf_item_float(ints, 2) == 3.0);
	const struct gguf_kv *nested = gguf_find(g, "nested");
	assert_true(nested && nested->type == GGUF_ARRAY && nested->item == GGUF_ARRAY && nested->count == 1);
	assert_true(gguf_f64(g, "absent", &d, &found, &err) && !found);
	assert_false(gguf_f64(g, "u8", &d, &found, &err));
	assert_non_null(strstr(err.text, "key u8 has type U8, expected F32 or F64"));
	err.code = ERROR_NONE;
	assert_false(gguf_strings(g, "ints", &list, &n, &found, &err));
	assert_null(list);
}

static void check_tensors(const struct gguf *g)
{
	const struct gguf_tensor *a = gguf_find_tensor(g, "a"), *b = gguf_find_tensor(g, "b"),
				 *c = gguf_find_tensor(g, "c");

	assert_true(a && b && c && !gguf_find_tensor(g, "d"));
	assert_true(a->type == DTYPE_F32 && a->n_dims == 2 && a->ne[0] == 32 && a->ne[1] == 3 && a->ne[2] == 1 &&
	            a->bytes == 384);
	assert_true(b->type == DTYPE_Q8_0 && b->bytes == 34 && c->type == DTYPE_BF16 && c->bytes == 192);
	assert_int_equal(a->offset, g->data_start);
	assert_int_equal(g->data_start % g->alignment, 0);
	assert_true(c->offset + c->bytes <= g->size);
}

static void test_reads_every_type(void **state)
{
	static const struct {
		uint32_t version, alignment;
	} form[] = { { 2, 32 }, { 3, 32 }, { 3, 1 }, { 3, 8 }, { 3, 64 }, { 3, 4096 } };

	for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
		struct gguf_writer w;
		struct error err = { 0 };
		struct gguf g;
		size_t n;
		write_sample(&w, form[i].version, form[i].alignment);
		uint8_t *p = gguf_writer_finish(&w, &n);
		if (!gguf_parse(&g, p, n, "sample", false, &err))
			fail_msg("%s", err.text);
		assert_int_equal(g.version, form[i].version);
		assert_int_equal(g.alignment, form[i].alignment);
		check_integers(&g);
		check_others(&g);
		check_tensors(&g);
		gguf_free(&g);
		free(p);
		gguf_writer_free(&w);
	}
}

static void expect(const uint8_t *p, size_t n, bool header_only, const char *part)
{
	struct error err = { 0 };
	struct gguf g;
	bool ok = gguf_parse(&g, p, n, "sample", header_only, &err);

	if (ok)
		gguf_free(&g);
	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("expected \"%s\", got \"%s\"", part ? part : "ok", ok ? "ok" : err.text);
}

static void test_refuses_truncation_at_every_byte(void **state)
{
	struct guarded guard = guarded_open(8192);
	struct gguf_writer w;
	struct gguf whole;
	size_t n;

	write_sample(&w, 3, 32);
	uint8_t *p = gguf_writer_finish(&w, &n);
	assert_true(gguf_parse(&whole, p, n, "sample", false, NULL));
	uint64_t header = (uint64_t)(whole.tensor[2].name.p - (const char *)p) + 1 + 4 + 2 * 8 + 4 + 8;
	for (size_t cut = 0; cut <= n; cut++) {
		const uint8_t *q = guarded_copy(&guard, p, cut);
		struct gguf g;
		bool full = gguf_parse(&g, q, cut, "sample", false, NULL);
		assert_int_equal(full, cut == n);
		if (full)
			gguf_free(&g);
		bool head = gguf_parse(&g, q, cut, "sample", true, NULL);
		assert_int_equal(head, cut >= header);
		if (head)
			gguf_free(&g);
	}
	gguf_free(&whole);
	free(p);
	gguf_writer_free(&w);
	guarded_close(&guard);
}

/* A field that is the value of a key may be anything; one that holds the file together may not. */
static bool structural(const struct gguf_field *f)
{
	return strchr(f->what, ' ') || strcmp(f->what, "version") == 0 || strcmp(f->what, "rank") == 0 ||
	       strcmp(f->what, "dimension") == 0;
}

static void test_survives_every_field_falsified(void **state)
{
	static const uint64_t bad[] = {
		0,
		1,
		1ull << 31,
		UINT32_MAX,
		1ull << 32,
		1ull << 62,
		1ull << 63,
		(1ull << 63) - 1,
		UINT64_MAX,
		UINT64_MAX - 7,
		UINT64_MAX / 8 + 2
	};
	struct guarded guard = guarded_open(8192);
	struct gguf_writer w;
	size_t n, refused = 0;

	write_sample(&w, 3, 32);
	uint8_t *p = gguf_writer_finish(&w, &n);
	for (size_t i = 0; i < w.n_fields; i++)
		for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
			const struct gguf_field *f = &w.field[i];
			struct error err = { 0 };
			struct gguf g;
			uint8_t *q = (uint8_t *)(uintptr_t)guarded_copy(&guard, p, n);
			memcpy(q + f->at, &bad[k], f->bytes);
			bool huge = f->bytes == 4 ? (uint32_t)bad[k] >= 1u << 31 : bad[k] >= 1u << 31;
			for (int header_only = 0; header_only < 2; header_only++) {
				bool ok = gguf_parse(&g, q, n, "sample", header_only, &err);
				if (ok)
					gguf_free(&g);
				else
					assert_true(err.text[0]);
				if (ok && huge && structural(f) && !header_only)
					fail_msg("%s at %zu: %" PRIu64 " was accepted", f->what, f->at, bad[k]);
				refused += !ok;
				err = (struct error){ 0 };
			}
		}
	assert_true(refused > w.n_fields);
	free(p);
	gguf_writer_free(&w);
	guarded_close(&guard);
}

static void test_survives_every_byte_changed(void **state)
{
	static const uint8_t mask[] = { 0x01, 0x80, 0xff, 0x20 };
	struct guarded guard = guarded_open(8192);
	struct gguf_writer w;
	struct gguf g;
	size_t n, refused = 0;

	write_sample(&w, 3, 8);
	uint8_t *p = gguf_writer_finish(&w, &n);
	for (size_t at = 0; at < n; at++)
		for (size_t k = 0; k < sizeof mask; k++) {
			uint8_t *q = (uint8_t *)(uintptr_t)guarded_copy(&guard, p, n);
			q[at] ^= mask[k];
			if (gguf_parse(&g, q, n, "sample", false, NULL))
				gguf_free(&g);
			else
				refused++;
		}
	assert_true(refused > n / 4);
	free(p);
	gguf_writer_free(&w);
	guarded_close(&guard);
}

typedef void write_fn(struct gguf_writer *w);

static void same_key(struct gguf_writer *w)
{
	gguf_write_u32(w, "k", 1);
	gguf_write_u32(w, "j", 1);
	gguf_write_u32(w, "k", 2);
}
static void empty_key(struct gguf_writer *w) { gguf_write_u32(w, "", 1); }
static void deep(struct gguf_writer *w) { gguf_write_nested(w, "k", 9, 1, 1); }
static void deepest(struct gguf_writer *w) { gguf_write_nested(w, "k", 8, 1, 1); }
static void hollow(struct gguf_writer *w) { gguf_write_nested(w, "k", 3, 1000, 0); }
static void long_key(struct gguf_writer *w)
{
	char k[66000];
	memset(k, 'k', sizeof k);
	k[65999] = 0;
	gguf_write_u32(w, k, 1);
}
static void same_tensor(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 1, shape, zeros, 128);
	gguf_write_tensor(w, "t", DTYPE_F32, 1, shape, zeros, 128);
}
static void overlap(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 1, shape, zeros, 32);
	gguf_write_tensor(w, "u", DTYPE_F32, 1, shape, zeros, 128);
}
static void empty_name(struct gguf_writer *w) { gguf_write_tensor(w, "", DTYPE_F32, 1, shape, zeros, 128); }
static void name_of(struct gguf_writer *w, int n)
{
	char k[80] = { 0 };
	memset(k, 't', (size_t)n);
	gguf_write_tensor(w, k, DTYPE_F32, 1, shape, zeros, 128);
}
static void name_64(struct gguf_writer *w) { name_of(w, 64); }
static void name_65(struct gguf_writer *w) { name_of(w, 65); }
static void part_block(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_Q8_0, 1, (const uint64_t[]){ 33 }, zeros, 68);
}
static void no_rows(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 2, (const uint64_t[]){ 32, 0 }, NULL, 0);
}
static void zero_hides(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 3, (const uint64_t[]){ 1ull << 40, 1ull << 40, 0 }, NULL, 0);
}
static void wraps_to_zero(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 2, (const uint64_t[]){ 1ull << 32, 1ull << 32 }, zeros, 64);
}
static void bytes_wrap(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 1, (const uint64_t[]){ 1ull << 62 }, zeros, 64);
}
static void removed_type(struct gguf_writer *w) { gguf_write_tensor(w, "t", DTYPE_U8, 1, shape, zeros, 32); }
static void five_dims(struct gguf_writer *w)
{
	gguf_write_tensor(w, "t", DTYPE_F32, 5, (const uint64_t[]){ 1, 1, 1, 1, 1 }, zeros, 4);
}
static void nothing(struct gguf_writer *w) {}

static void test_rules(void **state)
{
	static const struct {
		write_fn *write;
		uint32_t version, alignment;
		const char *error;
	} rule[] = {
		{ nothing, 3, 32, NULL },
		{ nothing, 1, 32, "GGUF version is 1" },
		{ nothing, 4, 32, "GGUF version is 4" },
		{ nothing, 0x03000000, 32, "big-endian" },
		{ nothing, 3, 0, "general.alignment is 0" },
		{ nothing, 3, 24, "general.alignment is 24" },
		{ nothing, 3, 1u << 31, "general.alignment is 2147483648" },
		{ same_key, 3, 32, "key k occurs more than once" },
		{ empty_key, 3, 32, "empty name" },
		{ long_key, 3, 32, "length 65999, expected at most 65535" },
		{ deep, 3, 32, "nests arrays more than 8 deep" },
		{ deepest, 3, 32, NULL },
		{ hollow, 3, 32, NULL },
		{ same_tensor, 3, 32, "tensor t occurs more than once" },
		{ overlap, 3, 32, "inside tensor t" },
		{ empty_name, 3, 32, "empty name" },
		{ name_64, 3, 32, NULL },
		{ name_65, 3, 32, "length 65, expected at most 64" },
		{ part_block, 3, 32, "has 33 elements, expected a multiple of 32 for type Q8_0" },
		{ no_rows, 3, 32, NULL },
		{ zero_hides, 3, 32, "more than 2^63 elements" },
		{ wraps_to_zero, 3, 32, "more than 2^63 elements" },
		{ bytes_wrap, 3, 32, "more than 2^64 bytes" },
		{ removed_type, 3, 32, "no known type" },
		{ five_dims, 3, 32, "5 dimensions" },
	};

	for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
		struct gguf_writer w;
		size_t n;
		gguf_writer_start(&w, rule[i].version, rule[i].alignment);
		w.alignment =
			w.alignment && !(w.alignment & (w.alignment - 1)) && w.alignment < 8192 ? w.alignment : 32;
		rule[i].write(&w);
		uint8_t *p = gguf_writer_finish(&w, &n);
		expect(p, n, false, rule[i].error);
		free(p);
		gguf_writer_free(&w);
	}
}

/* Many tensors whose names share a long beginning, in the order that is worst for a naive sort. */
static void test_many_tensors(void **state)
{
	enum { COUNT = 100000 };
	struct gguf_writer w;
	struct gguf g;
	char name[64];
	size_t n;

	gguf_writer_start(&w, 3, 32);
	for (int i = COUNT; i-- > 0;) {
		snprintf(name, sizeof name, "a.rather.long.common.beginning.of.a.name.%08d", i);
		gguf_write_tensor(&w, name, DTYPE_F32, 1, (const uint64_t[]){ 0 }, NULL, 0);
	}
	uint8_t *p = gguf_writer_finish(&w, &n);
	assert_true(gguf_parse(&g, p, n, "many", false, NULL));
	for (int i = 0; i < COUNT; i += 999) {
		snprintf(name, sizeof name, "a.rather.long.common.beginning.of.a.name.%08d", i);
		const struct gguf_tensor *t = gguf_find_tensor(&g, name);
		assert_true(t && t - g.tensor == COUNT - 1 - i);
	}
	struct gguf moved = g; /* a parsed file may be copied */
	assert_non_null(gguf_find_tensor(&moved, name));
	gguf_free(&g);
	free(p);
	gguf_writer_free(&w);
}

/* Counts whose index would be larger than twice the file are refused, however short the names. */
static void test_index_is_bounded_by_the_file(void **state)
{
	enum { COUNT = 5000 };
	const uint8_t one = 1;
	char name[8];
	size_t n;

	for (int padding = 0; padding < 2; padding++) {
		struct gguf_writer w;
		gguf_writer_start(&w, 3, 32);
		for (int i = 0; i < COUNT; i++) {
			snprintf(name, sizeof name, "%x", i);
			gguf_write_scalar(&w, name, GGUF_U8, &one);
		}
		if (padding)
			gguf_write_tensor(&w, "t", DTYPE_I8, 1, (const uint64_t[]){ 1 << 17 }, NULL, 1 << 17);
		uint8_t *p = gguf_writer_finish(&w, &n);
		assert_int_equal(2 * n >= COUNT * sizeof(struct gguf_kv), padding);
		expect(p, n, false, padding ? NULL : "the number of keys is 5000");
		free(p);
		gguf_writer_free(&w);
	}
}

static void handcrafted(const char *folder, const char *name, bool accept)
{
	/* cases whose name does not begin with DATA hold no data */
	bool header_only = strncmp(name, "DATA", 4) != 0;
	struct error err = { 0 };
	struct file f;
	struct gguf g;
	char path[1200];

	snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
	if (!file_open(&f, path, &err))
		fail_msg("%s", err.text);
	bool ok = gguf_open(&g, &f, header_only, &err);
	if (ok != accept)
		fail_msg("%s: expected %s: %s", name, accept ? "ok" : "an error", err.text);
	if (ok)
		gguf_free(&g);
	file_close(&f);
}

static void test_handcrafted_files(void **state)
{
	char folder[1024], path[1100], line[300], name[100], answer[100];
	unsigned cases = 0;

	if (!shared_path(folder, "data/malformed/llama.cpp-handcrafted"))
		skip();
	snprintf(path, sizeof path, "%s/EXPECT.tsv", folder);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%99s %*s expected=%99s", name, answer) == 2) {
			/* this one lacks a byte of the padding behind the last tensor; not all writers pad there, and
			 * every tensor is whole */
			bool padding_only = strcmp(name, "DATA_NOT_ENOUGH_DATA") == 0;
			handcrafted(folder, name, padding_only || strcmp(answer, "accept") == 0);
			cases++;
		}
	fclose(f);
	assert_true(cases >= 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_every_type),
		cmocka_unit_test(test_refuses_truncation_at_every_byte),
		cmocka_unit_test(test_survives_every_field_falsified),
		cmocka_unit_test(test_survives_every_byte_changed),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_many_tensors),
		cmocka_unit_test(test_index_is_bounded_by_the_file),
		cmocka_unit_test(test_handcrafted_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
