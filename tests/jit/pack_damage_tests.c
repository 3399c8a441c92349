/* tests/jit/pack_damage_tests.c - packs that are damaged, forged, cut or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "tests/jit/stored.h"
#include "tests/jit/pack_check.h"

/* --- damage */

enum { SMALL = 3 };

/* Opens damaged bytes: refused with a sentence, or every key gives its object or a counted miss. True: the damage was
 * seen. */
static bool seen_as_damage(const uint8_t *bytes, size_t n)
{
	struct error err = { 0 }, why = { 0 };
	struct pack *p = pack_open_memory(bytes, n, "memory", &err);
	bool seen = false;

	if (!p)
		return err.text[0] != 0;
	for (size_t i = 0; i < SMALL; i++) {
		struct object got;
		enum record_answer answer = pack_find(p, &pack_items[i].key, &got, NULL);
		if (answer == RECORD_FOUND) {
			assert_true(stored_same(&got, &pack_items[i].object));
			object_free(&got);
		} else {
			seen = true;
		}
	}
	assert_true(pack_verify(p, &why) || why.text[0]);
	seen = seen || why.text[0];
	pack_close(p);
	return seen;
}

static void test_flipped_bits_and_cuts(void **unused)
{
	size_t n;

	make_items(SMALL);
	uint8_t *p = bytes_of(SMALL, &n);
	size_t bodies = HEADER + SMALL * RECORD + 4 * get32(p + AT_SLOTS);
	assert_false(seen_as_damage(p, n));
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			p[i] ^= (uint8_t)(1 << bit);
			if (!seen_as_damage(p, n))
				fail_msg("bit %d of byte %zu", bit, i);
			if (i < bodies) /* before anything is looked up */
				assert_null(pack_open_memory(p, n, "memory", NULL));
			p[i] ^= (uint8_t)(1 << bit);
		}
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *shorter = malloc(cut ? cut : 1); /* of its own size, for tools that watch the ends */
		memcpy(shorter, p, cut);
		struct error err = { 0 };
		assert_null(pack_open_memory(shorter, cut, "memory", &err));
		assert_int_equal(err.code, ERROR_FORMAT);
		assert_non_null(strstr(err.text, "memory"));
		free(shorter);
	}
	uint8_t *longer = malloc(n + 1);
	memcpy(longer, p, n);
	longer[n] = 0;
	assert_null(pack_open_memory(longer, n + 1, "memory", NULL));
	free(longer);
	free(p);
	free_items(SMALL);
}

enum { R = HEADER };
static const struct {
	size_t at;
	uint32_t value;
} lies[] = {
	{ AT_VERSION, 0 },
	{ AT_VERSION, VERSION - 1 },
	{ AT_VERSION, VERSION + 1 },
	{ AT_RECORD_BYTES, 0 },
	{ AT_RECORD_BYTES, 95 },
	{ AT_RECORDS, 0 },
	{ AT_RECORDS, 1 },
	{ AT_RECORDS, 4 },
	{ AT_RECORDS, 5 },
	{ AT_RECORDS, 1 << 24 },
	{ AT_RECORDS, UINT32_MAX },
	{ AT_SLOTS, 0 },
	{ AT_SLOTS, 4 },
	{ AT_SLOTS, 7 },
	{ AT_SLOTS, 16 },
	{ AT_SLOTS, UINT32_MAX },
	{ AT_BYTES, 0 },
	{ AT_BYTES, UINT32_MAX },
	{ AT_BYTES + 4, UINT32_MAX },
	{ R + 8, 77 },
	{ R + IN_OFFSET, 0 },
	{ R + IN_OFFSET, UINT32_MAX },
	{ R + IN_OFFSET + 4, UINT32_MAX },
	{ R + IN_BODY, 0 },
	{ R + IN_BODY, 1 },
	{ R + IN_BODY, UINT32_MAX },
	{ R + IN_CODE, 0 },
	{ R + IN_CODE, 39 },
	{ R + IN_CODE, 41 },
	{ R + IN_CODE, (16 << 20) + 1 },
	{ R + IN_CODE, UINT32_MAX },
	{ R + IN_POOL, 41 },
	{ R + IN_POOL, UINT32_MAX },
	{ R + IN_ZERO, 1 },
};

/* Files whose checksums fit and whose numbers lie. */
static void test_forged_numbers(void **unused)
{
	enum { SLOT = HEADER + SMALL * RECORD };
	size_t n;

	make_items(SMALL);
	uint8_t *good = bytes_of(SMALL, &n), *bad = malloc(n);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		memcpy(bad, good, n);
		memcpy(bad + lies[i].at, &lies[i].value, 4);
		seal(bad, n, SMALL);
		if (!seen_as_damage(bad, n))
			fail_msg("%u at %zu", lies[i].value, lies[i].at);
	}
	/* slots that lead nowhere, to each other's objects, or never end */
	const uint32_t numbers[] = { 0, 1, 2, 3, SMALL + 1, UINT32_MAX };
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		memcpy(bad, good, n);
		for (size_t k = 0; k < 8; k++)
			memcpy(bad + SLOT + 4 * k, &numbers[i], 4);
		seal(bad, n, SMALL);
		assert_true(seen_as_damage(bad, n));
	}
	/* in another order */
	memcpy(bad + HEADER, good + HEADER + RECORD, RECORD);
	memcpy(bad + HEADER + RECORD, good + HEADER, RECORD);
	memcpy(bad + HEADER + 2 * RECORD, good + HEADER + 2 * RECORD, n - HEADER - 2 * RECORD);
	seal(bad, n, SMALL);
	assert_true(seen_as_damage(bad, n));
	free(bad);
	free(good);
	free_items(SMALL);
}

/* A pack that is cut or overwritten while it is open gives misses. */
static void test_cut_while_open(void **unused)
{
	static uint8_t junk[100000];
	struct object got;
	char path[256];

	make_items(MAX);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_true(pack_write(path, pack_items, MAX, NULL));
	struct pack *p = pack_open(path, NULL);
	assert_non_null(p);
	assert_int_equal(truncate(path, 8000), 0);
	assert_int_equal(pack_find(p, &pack_items[MAX - 1].key, &got, NULL), RECORD_DAMAGED);
	stored_write_file(path, junk, sizeof junk);
	for (size_t i = 0; i < MAX; i++)
		assert_int_equal(pack_find(p, &pack_items[i].key, &got, NULL), RECORD_DAMAGED);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(pack_find(p, &pack_items[0].key, &got, NULL), RECORD_DAMAGED);
	pack_close(p);

	/* one that is replaced stays what it was */
	assert_true(pack_write(path, pack_items, MAX, NULL));
	p = pack_open(path, NULL);
	assert_true(pack_write(path, pack_items, 1, NULL));
	check_found(p, MAX);
	pack_close(p);
	free_items(MAX);
}

/* --- files that are refused */

static void refused(const char *path, enum error_code code, const char *words)
{
	struct error err = { 0 };

	assert_null(pack_open(path, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.text, path) || !strstr(err.text, words))
		fail_msg("\"%s\" names neither %s nor \"%s\"", err.text, path, words);
}

static void test_refused_files(void **unused)
{
	char path[256];

	make_items(1);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	refused(stored_dir, ERROR_FORMAT, "regular");
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	refused(path, ERROR_IO, "No such file");
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(path, ERROR_FORMAT, "regular");
	unlink(path);
	stored_write_file(path, (const uint8_t *)"", 0);
	refused(path, ERROR_FORMAT, "0 bytes");
	stored_write_file(
		path, (const uint8_t *)"GGUF is something else altogether, but it has more bytes than a header", 70);
	refused(path, ERROR_FORMAT, "no pack file");
	assert_true(pack_write(path, pack_items, 1, NULL));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0600, 0600);
	assert_int_equal(st.st_mode & 0022, 0);
	static const mode_t bad[] = { 0620, 0602, 0666, 0777 };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(chmod(path, bad[i]), 0);
		refused(path, ERROR_ARGUMENT, "mode");
	}
	assert_int_equal(chmod(path, 0444), 0);
	struct pack *p = pack_open(path, NULL);
	assert_non_null(p);
	pack_close(p);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, STORED_OTHER_USER, 0), 0);
		refused(path, ERROR_ARGUMENT, "belongs to user 65534");
	}
	free_items(1);
}

static void test_paths_that_cannot_be_written(void **unused)
{
	struct error err = { 0 };
	char path[600];

	make_items(1);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/nowhere/p.jkp", stored_dir);
	assert_false(pack_write(path, pack_items, 1, &err));
	assert_int_equal(err.code, ERROR_IO);
	assert_non_null(strstr(err.text, path));
	snprintf(path, sizeof path, "%s/", stored_dir);
	assert_false(pack_write(path, pack_items, 1, NULL));
	snprintf(path, sizeof path, "%s/%0300d", stored_dir, 1);
	assert_false(pack_write(path, pack_items, 1, NULL));
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(pack_write(path, pack_items, 1, NULL));
	assert_int_equal(stored_files(".tmp"), 0);
	free_items(1);
}

static int full_disk_steps(void *user)
{
	const struct rlimit room = { 200, 200 };
	struct error err = { 0 };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &room))
		return 1;
	return pack_write(user, pack_items, MAX, &err) || !strstr(err.text, "File too large") ? 2 : 0;
}

/* No room: the old pack stays, and nothing is left behind. */
static void test_full_disk(void **unused)
{
	char path[256];

	make_items(MAX);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_true(pack_write(path, pack_items, 1, NULL));
	assert_int_equal(stored_in_child(full_disk_steps, path, false), 0);
	struct pack *p = pack_open(path, NULL);
	assert_non_null(p);
	assert_int_equal(pack_count(p), 1);
	check_found(p, 1);
	pack_close(p);
	assert_int_equal(stored_files(".tmp"), 0);
	free_items(MAX);
}

int pack_damage_tests(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_flipped_bits_and_cuts),
		T(test_forged_numbers),
		T(test_cut_while_open),
		T(test_refused_files),
		T(test_paths_that_cannot_be_written),
		T(test_full_disk),
	};

	return cmocka_run_group_tests_name("pack_damage_tests", tests, stored_make_base, stored_remove_base);
}
