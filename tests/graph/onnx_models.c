/* tests/graph/onnx_models.c - reading .npz files: a zip archive, whose directory stands at its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "programs/common/npy.h"
#include "tests/graph/onnx_models.h"
#include "tests/support/shared.h"

static uint32_t number(const uint8_t *p, unsigned bytes)
{
	uint32_t n = 0;

	while (bytes--)
		n = n << 8 | p[bytes];
	return n;
}

static int type_of(const char *type)
{
	static const struct {
		const char *name;
		int type;
	} types[] = { { "f4", JIT_TYPE_F32 }, { "f8", JIT_TYPE_F64 }, { "i8", JIT_TYPE_I64 } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(type, types[i].name) == 0)
			return types[i].type;
	fail_msg("an array of type %s", type);
	return -1;
}

static void read_array(const uint8_t *p, size_t n, struct tensor *out)
{
	struct error err = { 0 };
	struct npy a;

	if (!npy_read_header(&a, "array", p, n, &err))
		fail_msg("%s", err.text);
	struct shape s = { .rank = a.dims };
	for (unsigned i = 0; i < a.dims; i++)
		s.dim[i] = a.extent[i];
	assert_true(tensor_make(out, type_of(a.type), &s, &err));
	assert_int_equal(tensor_bytes(out), a.bytes);
	memcpy(out->data, p + a.data, (size_t)a.bytes);
}

bool npz_read(const char *path, const char *name, struct tensor *out)
{
	size_t n;
	uint8_t *p = file_bytes(path, &n);
	char wanted[40];
	bool found = false;

	snprintf(wanted, sizeof wanted, "%s.npy", name);
	assert_true(n > 22);
	size_t end = n - 22; /* of the directory: 22 bytes and no comment */
	assert_int_equal(number(p + end, 4), 0x06054b50);
	for (size_t at = number(p + end + 16, 4); at < end && !found;) {
		const uint32_t length = number(p + at + 28, 2), offset = number(p + at + 42, 4);
		assert_int_equal(number(p + at, 4), 0x02014b50);
		if (length == strlen(wanted) && memcmp(p + at + 46, wanted, length) == 0) {
			const size_t data = offset + 30 + number(p + offset + 26, 2) + number(p + offset + 28, 2);
			assert_int_equal(number(p + at + 10, 2), 0); /* not compressed */
			read_array(p + data, number(p + at + 24, 4), out);
			found = true;
		}
		at += 46 + length + number(p + at + 30, 2) + number(p + at + 32, 2);
	}
	free(p);
	return found;
}
