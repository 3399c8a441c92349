/* tests/jit/t_pack.c - pack files: what comes back, the same bytes always, damage of every byte and at every length,
 * files that must be refused.
 *
 * The layout constants below are written down a second time on purpose: a change of layout that forgets the version
 * fails here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "tests/support/ordered.h"
#include "tests/jit/stored.h"

enum {
	VERSION = 4,
	HEADER = 64,
	RECORD = 96,
	AT_VERSION = 8,
	AT_RECORD_BYTES = 12,
	AT_RECORDS = 16,
	AT_SLOTS = 20,
	AT_BYTES = 24,
	AT_INDEX_SUM = 32,
	AT_ZERO = 40,
	AT_SUM = 56,
	IN_OFFSET = 48,
	IN_BODY = 56,
	IN_CODE = 60,
	IN_POOL = 64,
	IN_ZERO = 76,
	IN_SUM = 88,
	MOST = 64
};

static struct pack_item item[MOST];

static void make_items(size_t n)
{
	for (uint32_t i = 0; i < n; i++)
		item[i] = (struct pack_item){ stored_key(i), stored_object(i) };
}

static void free_items(size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_free(&item[i].object);
}

static uint8_t *bytes_of(size_t n, size_t *bytes)
{
	struct error err = { 0 };
	uint8_t *p = pack_bytes(item, n, bytes, &err);

	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static uint64_t get64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

/* Makes every checksum of a forged pack fit; those of bodies only where they lie within the file. */
static void seal(uint8_t *p, size_t n, size_t records)
{
	size_t slots = get32(p + AT_SLOTS) > 1024 ? 0 : get32(p + AT_SLOTS);
	uint64_t h;

	for (size_t i = 0; i < records; i++) {
		uint8_t *r = p + HEADER + i * RECORD;
		uint64_t at = get64(r + IN_OFFSET), bytes = get32(r + IN_BODY);
		if (at > n || bytes > n - at)
			continue;
		h = stored_sum(p + at, bytes, stored_sum(r, IN_SUM, VERSION));
		memcpy(r + IN_SUM, &h, 8);
	}
	h = stored_sum(p + HEADER, records * RECORD + 4 * slots, VERSION);
	memcpy(p + AT_INDEX_SUM, &h, 8);
	h = stored_sum(p, AT_SUM, VERSION);
	memcpy(p + AT_SUM, &h, 8);
}

/* --- ordinary life */

static void check_found(const struct pack *p, size_t n)
{
	struct object got;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pack_find(p, &item[i].key, &got, NULL), RECORD_FOUND);
		assert_true(stored_same(&got, &item[i].object));
		object_free(&got);
	}
	for (uint32_t i = (uint32_t)n; i < n + 200; i++) {
		struct key k = stored_key(i);
		assert_int_equal(pack_find(p, &k, &got, NULL), RECORD_ABSENT);
	}
}

static void test_written_and_read(void **unused)
{
	static const size_t counts[] = { 0, 1, 2, 3, 7, MOST };
	struct error err = { 0 };
	char path[256];

	make_items(MOST);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		snprintf(path, sizeof path, "%s/%zu.jkp", stored_dir, i);
		if (!pack_write(path, item, counts[i], &err))
			fail_msg("%s", err.text);
		struct pack *p = pack_open(path, &err);
		if (!p || !pack_verify(p, &err))
			fail_msg("%s", err.text);
		assert_int_equal(pack_count(p), counts[i]);
		check_found(p, counts[i]);
		pack_close(p);
	}
	assert_int_equal(stored_files(".tmp"), 0);
	pack_close(NULL);
	free_items(MOST);
}

struct seen {
	struct ordered keys;
	size_t stop;
};

static bool see(const struct pack_entry *e, void *user)
{
	struct seen *s = user;

	ordered_next(&s->keys, &e->key);
	assert_null(e->object.code);
	assert_true(e->stored_bytes > RECORD);
	return s->keys.n != s->stop;
}

static void test_in_order_of_text(void **unused)
{
	size_t n;
	struct seen all = { 0 }, some = { .stop = 5 };

	make_items(MOST);
	uint8_t *bytes = bytes_of(MOST, &n);
	struct pack *p = pack_open_memory(bytes, n, "memory", NULL);
	assert_non_null(p);
	pack_each(p, see, &all);
	assert_int_equal(all.keys.n, MOST);
	pack_each(p, see, &some);
	assert_int_equal(some.keys.n, 5);
	pack_close(p);
	free(bytes);
	free_items(MOST);
}

/* The layout as jit/store/pack.h tells it, read by other code. */
static void test_layout(void **unused)
{
	size_t n, at = HEADER + 3 * RECORD + 8 * 4;

	make_items(3);
	uint8_t *p = bytes_of(3, &n);
	assert_memory_equal(p, "jitr\npk", 8);
	assert_int_equal(get32(p + AT_VERSION), VERSION);
	assert_int_equal(get32(p + AT_RECORD_BYTES), RECORD);
	assert_int_equal(get32(p + AT_RECORDS), 3);
	assert_int_equal(get32(p + AT_SLOTS), 8);
	assert_int_equal(get64(p + AT_BYTES), n);
	assert_int_equal(get64(p + AT_ZERO) | get64(p + AT_ZERO + 8), 0);
	for (uint32_t i = 0; i < 3; i++) {
		const uint8_t *r = p + HEADER + i * RECORD;
		struct key k = stored_key(i);
		assert_memory_equal(r, &k, sizeof k);
		assert_int_equal(get64(r + IN_OFFSET), at);
		assert_int_equal(get32(r + IN_CODE), 40 + i * 1000);
		assert_int_equal(get32(r + IN_POOL), 30);
		assert_int_equal(get32(r + IN_POOL + 4), 64 + i);
		assert_int_equal(get32(r + IN_POOL + 8), 3 * i);
		assert_int_equal(get32(r + IN_ZERO), 0);
		assert_int_equal(get64(r + IN_ZERO + 4), (uint64_t)(i + 1) | (uint64_t)(i + 2) << 16 |
		                                                 (uint64_t)(i + 3) << 32 | (uint64_t)(i & 1) << 48);
		at += get32(r + IN_BODY);
	}
	assert_int_equal(at, n);
	uint8_t *again = malloc(n);
	assert_non_null(again);
	memcpy(again, p, n);
	seal(again, n, 3);
	assert_memory_equal(p, again, n);
	free(again);
	free(p);
	free_items(3);
}

/* --- the same bytes */

static void test_same_bytes_in_any_order_place_and_time(void **unused)
{
	static uint8_t a[1 << 20], b[1 << 20];
	char one[256], two[300];
	size_t n, m;

	make_items(MOST);
	uint8_t *forward = bytes_of(MOST, &n);
	for (size_t i = 0; i < MOST / 2; i++) {
		struct pack_item swapped = item[i];
		item[i] = item[MOST - 1 - i];
		item[MOST - 1 - i] = swapped;
	}
	uint8_t *backward = bytes_of(MOST, &m);
	assert_int_equal(n, m);
	assert_memory_equal(forward, backward, n);

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(one, sizeof one, "%s/one.jkp", stored_dir);
	snprintf(two, sizeof two, "%s/elsewhere/another-name", stored_dir);
	*strrchr(two, '/') = 0;
	assert_int_equal(mkdir(two, 0700), 0);
	two[strlen(two)] = '/';
	assert_true(pack_write(one, item, MOST, NULL));
	assert_true(pack_write(two, item, MOST, NULL));
	assert_int_equal(stored_read_file(one, a, sizeof a), n);
	assert_int_equal(stored_read_file(two, b, sizeof b), n);
	assert_memory_equal(a, forward, n);
	assert_memory_equal(b, forward, n);
	free(forward);
	free(backward);
	free_items(MOST);
}

static void test_one_key_twice(void **unused)
{
	struct error err = { 0 };
	size_t n, m;

	make_items(4);
	uint8_t *once = bytes_of(3, &n);
	object_free(&item[3].object);
	item[3] = (struct pack_item){ stored_key(1), stored_object(1) };
	uint8_t *twice = bytes_of(4, &m);
	assert_int_equal(n, m);
	assert_memory_equal(once, twice, n);
	free(once);
	free(twice);
	item[3].object.code[5] ^= 1;
	assert_null(pack_bytes(item, 4, &n, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	assert_non_null(strstr(err.text, "matmul.2x256.avx2"));
	item[3].object.code[5] ^= 1;
	item[3].object.cooperative ^= 1;
	assert_null(pack_bytes(item, 4, &n, NULL));

	/* one text, two code generators: two objects */
	item[3].key.codegen++;
	uint8_t *both = bytes_of(4, &n);
	struct pack *p = pack_open_memory(both, n, "memory", NULL);
	assert_non_null(p);
	assert_true(pack_verify(p, NULL));
	check_found(p, 3);
	assert_int_equal(pack_count(p), 4);
	pack_close(p);
	free(both);

	struct object good = item[3].object;
	item[3].object.code_bytes = 0;
	assert_null(pack_bytes(item, 4, &n, NULL));
	item[3].object = good;
	free_items(4);
}

/* --- damage */

enum { FEW = 3 };

/* Opens damaged bytes: refused with a sentence, or every key gives its object or a counted miss. True: the damage was
 * seen. */
static bool seen_as_damage(const uint8_t *bytes, size_t n)
{
	struct error err = { 0 }, why = { 0 };
	struct pack *p = pack_open_memory(bytes, n, "memory", &err);
	bool seen = false;

	if (!p)
		return err.text[0] != 0;
	for (size_t i = 0; i < FEW; i++) {
		struct object got;
		enum record_answer answer = pack_find(p, &item[i].key, &got, NULL);
		if (answer == RECORD_FOUND) {
			assert_true(stored_same(&got, &item[i].object));
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

	make_items(FEW);
	uint8_t *p = bytes_of(FEW, &n);
	size_t bodies = HEADER + FEW * RECORD + 4 * get32(p + AT_SLOTS);
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
	free_items(FEW);
}

/* Files whose checksums fit and whose numbers lie. */
static void test_forged_numbers(void **unused)
{
	enum { R = HEADER, SLOT = HEADER + FEW * RECORD };
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
	size_t n;

	make_items(FEW);
	uint8_t *good = bytes_of(FEW, &n), *bad = malloc(n);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		memcpy(bad, good, n);
		memcpy(bad + lies[i].at, &lies[i].value, 4);
		seal(bad, n, FEW);
		if (!seen_as_damage(bad, n))
			fail_msg("%u at %zu", lies[i].value, lies[i].at);
	}
	/* slots that lead nowhere, to each other's objects, or never end */
	const uint32_t numbers[] = { 0, 1, 2, 3, FEW + 1, UINT32_MAX };
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		memcpy(bad, good, n);
		for (size_t k = 0; k < 8; k++)
			memcpy(bad + SLOT + 4 * k, &numbers[i], 4);
		seal(bad, n, FEW);
		assert_true(seen_as_damage(bad, n));
	}
	/* in another order */
	memcpy(bad + HEADER, good + HEADER + RECORD, RECORD);
	memcpy(bad + HEADER + RECORD, good + HEADER, RECORD);
	memcpy(bad + HEADER + 2 * RECORD, good + HEADER + 2 * RECORD, n - HEADER - 2 * RECORD);
	seal(bad, n, FEW);
	assert_true(seen_as_damage(bad, n));
	free(bad);
	free(good);
	free_items(FEW);
}

/* A pack that is cut or overwritten while it is open gives misses. */
static void test_cut_while_open(void **unused)
{
	static uint8_t junk[100000];
	struct object got;
	char path[256];

	make_items(MOST);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_true(pack_write(path, item, MOST, NULL));
	struct pack *p = pack_open(path, NULL);
	assert_non_null(p);
	assert_int_equal(truncate(path, 8000), 0);
	assert_int_equal(pack_find(p, &item[MOST - 1].key, &got, NULL), RECORD_DAMAGED);
	stored_write_file(path, junk, sizeof junk);
	for (size_t i = 0; i < MOST; i++)
		assert_int_equal(pack_find(p, &item[i].key, &got, NULL), RECORD_DAMAGED);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(pack_find(p, &item[0].key, &got, NULL), RECORD_DAMAGED);
	pack_close(p);

	/* one that is replaced stays what it was */
	assert_true(pack_write(path, item, MOST, NULL));
	p = pack_open(path, NULL);
	assert_true(pack_write(path, item, 1, NULL));
	check_found(p, MOST);
	pack_close(p);
	free_items(MOST);
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
	assert_true(pack_write(path, item, 1, NULL));
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

static void test_places_that_cannot_be_written(void **unused)
{
	struct error err = { 0 };
	char path[600];

	make_items(1);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/nowhere/p.jkp", stored_dir);
	assert_false(pack_write(path, item, 1, &err));
	assert_int_equal(err.code, ERROR_IO);
	assert_non_null(strstr(err.text, path));
	snprintf(path, sizeof path, "%s/", stored_dir);
	assert_false(pack_write(path, item, 1, NULL));
	snprintf(path, sizeof path, "%s/%0300d", stored_dir, 1);
	assert_false(pack_write(path, item, 1, NULL));
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(pack_write(path, item, 1, NULL));
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
	return pack_write(user, item, MOST, &err) || !strstr(err.text, "File too large") ? 2 : 0;
}

/* No room: the old pack stays, and nothing is left behind. */
static void test_full_disk(void **unused)
{
	char path[256];

	make_items(MOST);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/p.jkp", stored_dir);
	assert_true(pack_write(path, item, 1, NULL));
	assert_int_equal(stored_in_child(full_disk_steps, path, false), 0);
	struct pack *p = pack_open(path, NULL);
	assert_non_null(p);
	assert_int_equal(pack_count(p), 1);
	check_found(p, 1);
	pack_close(p);
	assert_int_equal(stored_files(".tmp"), 0);
	free_items(MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_written_and_read), T(test_in_order_of_text),
		T(test_layout),           T(test_same_bytes_in_any_order_place_and_time),
		T(test_one_key_twice),    T(test_flipped_bits_and_cuts),
		T(test_forged_numbers),   T(test_cut_while_open),
		T(test_refused_files),    T(test_places_that_cannot_be_written),
		T(test_full_disk),
	};
	return cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);
}
