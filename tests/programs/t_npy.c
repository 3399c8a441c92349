/* tests/programs/t_npy.c - .npy files: headers as numpy writes them are read, what is written is what numpy writes, and
 * each thing that is wrong has a sentence. tests/fuzz has arbitrary bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/npy.h"

/* numpy.save() of numpy.zeros((3, 4), numpy.float32), as numpy 1.24 writes it: 128 bytes before the elements. */
static const char of_numpy[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
			       "                                                          \n";

static size_t file_of(uint8_t *out, const char *dict, unsigned version, size_t behind)
{
	const size_t n = strlen(dict), head = version == 1 ? 10 : 12;

	memset(out, 0, 2048);
	memcpy(out, "\x93NUMPY", 6);
	out[6] = (uint8_t)version;
	out[8] = (uint8_t)n;
	out[9] = (uint8_t)(n >> 8);
	memcpy(out + head, dict, n);
	return head + n + behind;
}

static void test_numpys_own(void **state)
{
	struct npy a;
	struct error err = { 0 };
	char *text = NULL, shape[NPY_SHAPE_MAX];
	size_t size;

	assert_int_equal(sizeof of_numpy - 1, 128);
	if (!npy_read_header(&a, "a.npy", (const uint8_t *)of_numpy, sizeof of_numpy - 1, &err))
		fail_msg("%s", err.text);
	assert_string_equal(a.type, "f4");
	assert_int_equal(a.dims, 2);
	assert_int_equal(a.extent[0], 3);
	assert_int_equal(a.extent[1], 4);
	assert_int_equal(a.elements, 12);
	assert_int_equal(a.bytes, 48);
	assert_int_equal(a.data, 128);
	assert_string_equal(npy_shape(&a, shape), "(3, 4)");
	FILE *out = open_memstream(&text, &size);
	assert_true(npy_write_header(&a, out));
	fclose(out);
	assert_int_equal(size, 128);
	assert_memory_equal(text, of_numpy, 128);
	free(text);
}

static void test_shapes_and_types(void **state)
{
	static const struct {
		const char *dict, *type, *shape;
		uint64_t bytes;
	} good[] = {
		{ "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "b1", "()", 1 },
		{ "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", "u1", "(5,)", 5 },
		{ "{\"shape\": (2,0,3), \"descr\": \"<i8\", \"fortran_order\": False}", "i8", "(2, 0, 3)", 0 },
		{ "{'descr':'<f2','fortran_order':False,'shape':(1L,2L)}", "f2", "(1, 2)", 4 },
	};

	for (unsigned version = 1; version <= 3; version++)
		for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
			uint8_t file[2048];
			char shape[NPY_SHAPE_MAX];
			struct npy a;
			struct error err = { 0 };
			if (!npy_read_header(&a, "a.npy", file, file_of(file, good[i].dict, version, 0), &err))
				fail_msg("%s: %s", good[i].dict, err.text);
			assert_string_equal(a.type, good[i].type);
			assert_string_equal(npy_shape(&a, shape), good[i].shape);
			assert_int_equal(a.bytes, good[i].bytes);
		}
}

static void test_wrong(void **state)
{
	static const struct {
		const char *dict, *says;
	} bad[] = {
		{ "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "'>f4' are big-endian" },
		{ "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "elements '<c8', expected" },
		{ "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "elements '|O', expected" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structures" },
		{ "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "Fortran's order" },
		{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "neither True nor False" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", "no tuple" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "no tuple" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "no number of elements" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
		  "no number of elements" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "more elements" },
		{ "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }", "more elements" },
		{ "{'descr': '<f4', 'fortran_order': False, }", "lacks" },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "twice" },
		{ "{'descr': '<f4', 'other': 1, 'fortran_order': False, 'shape': (1,), }", "a key other than" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "goes on behind" },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "no comma" },
		{ "{'descr': '<f4", "ends within a string" },
		{ "['descr']", "is no dict" },
		{ "", "is no dict" },
	};
	uint8_t file[2048];
	struct npy a;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = { 0 };
		assert_false(npy_read_header(&a, "a.npy", file, file_of(file, bad[i].dict, 1, 8), &err));
		if (strncmp(err.text, "a.npy: ", 7) != 0 || !strstr(err.text, bad[i].says))
			fail_msg("%s: \"%s\", expected \"%s\"", bad[i].dict, err.text, bad[i].says);
	}
	/* cut anywhere, and of other versions */
	for (size_t n = 0; n < 128; n++) {
		struct error err = { 0 };
		assert_false(npy_read_header(&a, "a.npy", (const uint8_t *)of_numpy, n, &err));
		assert_true(err.text[0] != 0);
	}
	for (unsigned version = 0; version < 256; version += 4) {
		struct error err = { 0 };
		file_of(file, "{}", 1, 8);
		file[6] = (uint8_t)version;
		assert_false(npy_read_header(&a, "a.npy", file, 20, &err));
		assert_non_null(strstr(err.text, "version"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numpys_own),
		cmocka_unit_test(test_shapes_and_types),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
