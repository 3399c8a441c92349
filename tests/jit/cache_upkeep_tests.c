/* tests/jit/cache_upkeep_tests.c - looking after caches and packs: listing, verifying, removing, export, import, forged
 * code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "kernels-templates/templates.h"
#include "tests/support/ordered.h"
#include "tests/jit/stored.h"
#include "tests/jit/cache_care_check.h"

static bool any(const struct key *key, void *user) { return true; }

/* --- looking after it */

struct seen {
	unsigned n, troubled, last_source;
	struct ordered keys;
	uint64_t bytes;
};

static bool see(const struct cache_item *item, void *user)
{
	struct seen *s = user;

	s->n++;
	s->bytes += item->stored_bytes;
	if (item->source != s->last_source)
		s->keys.last[0] = 0;
	s->last_source = item->source;
	if (item->trouble) {
		s->troubled++;
		return true;
	}
	assert_true(item->readable);
	assert_int_equal(s->troubled, 0); /* those come last */
	ordered_next(&s->keys, &item->key);
	assert_int_equal(item->code_bytes, 40 + (item->key.rows - 1) % 7 * 1000);
	assert_true((item->last_use == 0) == (item->file[0] == 0));
	return true;
}

static void count_bad(const struct cache_item *item, void *user)
{
	assert_non_null(item->trouble);
	++*(unsigned *)user;
}

static void test_list_verify_remove(void **unused)
{
	char path[1024], pack[200], one[256], two[256];
	struct seen s = { 0 };
	unsigned told = 0, removed;
	uint64_t sound, bad, bytes, entries;

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(pack, sizeof pack, "%s/p.jkp", stored_dir);
	write_pack(pack, 0, 5);
	snprintf(path, sizeof path, "%s:%s", stored_dir, pack);
	struct cache *c = stored_open(path, 0);
	for (uint32_t n = 0; n < 20; n++)
		stored_store(c, n);
	assert_true(cache_each(c, see, &s, NULL));
	assert_int_equal(s.n, 25);
	assert_int_equal(s.troubled, 0);
	assert_true(cache_size(c, true, &bytes, &entries, NULL, NULL));
	assert_int_equal(entries, 20);
	assert_true(s.bytes > bytes);
	assert_true(cache_verify(c, true, count_bad, &told, &sound, &bad, NULL));
	assert_int_equal(sound, 25);
	assert_int_equal(bad + told, 0);

	/* damage, and one entry under another's name */
	stored_entry_path(3, one);
	flip_byte(one, 120);
	stored_entry_path(4, one);
	assert_int_equal(unlink(one), 0);
	stored_entry_path(5, two);
	assert_int_equal(rename(two, one), 0);
	stored_entry_path(6, one);
	stored_write_file(one, (const uint8_t *)"", 0);
	assert_true(cache_verify(c, false, count_bad, &told, &sound, &bad, NULL));
	assert_int_equal(sound, 21);
	assert_int_equal(bad, 3);
	assert_int_equal(told, 3);
	assert_true(cache_verify(c, true, NULL, NULL, &sound, &bad, NULL));
	assert_int_equal(bad, 3);
	assert_true(cache_verify(c, true, NULL, NULL, &sound, &bad, NULL));
	assert_int_equal(sound, 21);
	assert_int_equal(bad, 0);
	assert_int_equal(stored_files(".jko"), 16);

	struct key k = stored_key(7);
	assert_true(cache_remove(c, &k, &removed, NULL));
	assert_int_equal(removed, 1);
	assert_true(cache_remove(c, &k, &removed, NULL));
	assert_int_equal(removed, 0);
	assert_int_equal(stored_load(c, 7), 0);
	assert_int_equal(stored_load(c, 8), 1);
	cache_close(c);
}

/* What cannot be used goes first of all. */
static void test_collect(void **unused)
{
	struct cache *c = stored_open(stored_dir, 0);
	struct cache_gc gone;
	char path[256];

	for (uint32_t n = 0; n < 10; n++)
		stored_store(c, n);
	cache_close(c);
	stored_entry_path(2, path);
	flip_byte(path, 115);
	snprintf(path, sizeof path, "%s/x-1-2-3.tmp", stored_dir);
	stored_write_file(path, (const uint8_t *)"half", 4);
	stored_set_age(path, 100000);
	snprintf(path, sizeof path, "%s/notes.txt", stored_dir);
	stored_write_file(path, (const uint8_t *)"mine", 4);
	c = stored_open(stored_dir, 0);
	assert_true(cache_gc(c, UINT64_MAX, &gone, NULL));
	assert_int_equal(gone.removed, 1);
	assert_int_equal(gone.entries, 9);
	assert_int_equal(gone.bytes, size_of(c));
	assert_int_equal(stored_files(".tmp"), 0);
	assert_true(cache_gc(c, 0, &gone, NULL));
	assert_int_equal(gone.removed, 9);
	assert_int_equal(gone.bytes, 0);
	assert_int_equal(stored_files(".txt"), 1);
	cache_close(c);
}

static bool even_rows(const struct key *key, void *user) { return key->rows % 2 == 0; }

static void test_export_and_import(void **unused)
{
	static uint8_t a[1 << 20], b[1 << 20];
	char one[200], two[200], other[200], path[1024];
	uint64_t n;
	struct error err = { 0 };

	struct cache *c = stored_open(stored_dir, 0);
	for (uint32_t i = 0; i < 40; i++)
		stored_store(c, i);
	snprintf(one, sizeof one, "%s/one.jkp", stored_dir);
	snprintf(two, sizeof two, "%s/two.jkp", stored_dir);
	snprintf(other, sizeof other, "%s/other", stored_dir);
	assert_true(cache_export(c, one, any, NULL, &n, &err));
	assert_int_equal(n, 40);
	cache_close(c);

	/* into another cache and out again: the same bytes */
	c = stored_open(other, 0);
	assert_true(cache_import(c, one, NULL, &n, &err));
	assert_int_equal(n, 40);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(stored_load(c, i), 1);
	assert_true(cache_export(c, two, any, NULL, &n, &err));
	size_t bytes = stored_read_file(one, a, sizeof a);
	assert_int_equal(stored_read_file(two, b, sizeof b), bytes);
	assert_memory_equal(a, b, bytes);
	cache_close(c);

	/* what several sources have is there once; keep chooses; without it, this program's code alone */
	snprintf(path, sizeof path, "%s:%s:%s", stored_dir, one, other);
	c = stored_open(path, 0);
	assert_true(cache_export(c, two, even_rows, NULL, &n, &err));
	assert_int_equal(n, 20);
	assert_true(cache_export(c, two, NULL, NULL, &n, &err));
	assert_int_equal(n, 0);
	struct key mine = stored_key(3);
	struct object o = stored_object(3);
	mine.codegen = key_codegen_x86;
	cache_store(c, &mine, &o, NULL);
	object_free(&o);
	assert_true(cache_export(c, two, NULL, NULL, &n, &err));
	assert_int_equal(n, 1);
	cache_close(c);

	c = stored_open(one, 0);
	assert_false(cache_import(c, two, NULL, &n, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	cache_close(c);
}

/* ---- packs whose code is not what is made for their keys */

enum { FORGED = 6 };

static void make_real(struct pack_item item[FORGED])
{
	struct error err = { 0 };

	for (int i = 0; i < FORGED; i++) {
		char text[64];
		snprintf(text, sizeof text, "norm.k%d.q8out.%s", 256 * (i + 1), i & 1 ? "avx512" : "avx2");
		assert_true(key_parse(&item[i].key, text));
		if (!compile_key(&item[i].object, &item[i].key, template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
	}
}

/* Imports the items as a pack into an empty directory. Returns how many entries that has then. */
static unsigned import_items(const struct pack_item *item, compile_build_fn build, struct error *err)
{
	static int number;
	char pack[200], other[200];
	struct cache_leftovers left;
	uint64_t n, bytes, entries;

	*err = (struct error){ 0 };
	snprintf(pack, sizeof pack, "%s/%d.jkp", stored_dir, number);
	snprintf(other, sizeof other, "%s/%d", stored_dir, number++);
	assert_true(pack_write(pack, item, FORGED, NULL));
	struct cache *c = stored_open(other, 0);
	bool good = cache_import(c, pack, build ? &(struct cache_maker){ .build = build } : NULL, &n, err);
	assert_int_equal(good, err->code == ERROR_NONE);
	assert_true(cache_size(c, true, &bytes, &entries, &left, NULL));
	assert_int_equal(entries, n);
	cache_close(c);
	return (unsigned)entries;
}

static void test_forged_packs(void **unused)
{
	struct pack_item item[FORGED];
	struct error err;
	char text[KEY_TEXT_MAX];

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	make_real(item);
	assert_int_equal(import_items(item, template_build, &err), FORGED);
	for (int i = 0; i < FORGED; i++) {
		struct object *o = &item[i].object, was = *o;
		key_text(&item[i].key, text, sizeof text);
		uint32_t *const fields[] = { &o->frame_bytes, &o->shared_bytes, &o->pool_offset };
		for (int f = 0; f < 4; f++) {
			if (f < 3)
				*fields[f] ^= 4;
			else
				o->code[i * 5] ^= 1;
			assert_int_equal(import_items(item, template_build, &err), 0);
			assert_int_equal(err.code, ERROR_FORMAT);
			assert_non_null(strstr(err.text, text));
			assert_int_equal(import_items(item, NULL, &err), FORGED);
			if (f < 3)
				*fields[f] ^= 4;
			else
				o->code[i * 5] ^= 1;
		}
		assert_memory_equal(o, &was, sizeof was);
	}
	/* what this version cannot make: another version's, another kind's, none's */
	item[2].key.codegen++;
	assert_int_equal(import_items(item, template_build, &err), 0);
	assert_non_null(strstr(err.text, "another version of jitrun"));
	item[2].key.codegen--;
	item[2].key.kind = 77;
	assert_int_equal(import_items(item, template_build, &err), 0);
	item[2].key.target = 211;
	assert_int_equal(import_items(item, template_build, &err), 0);
	for (int i = 0; i < FORGED; i++)
		object_free(&item[i].object);
}

int cache_upkeep_tests(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_list_verify_remove),
		T(test_collect),
		T(test_export_and_import),
		T(test_forged_packs),
	};

	return cmocka_run_group_tests_name("cache_upkeep_tests", tests, stored_make_base, stored_remove_base);
}
