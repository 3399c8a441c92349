/* tests/vision/saved_tests.c - sessions with pictures in files, with draft tokens, and with tokens taken out: as
 * sessions that were fed the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/jitrun_batch.h"
#include "jit/store/safefile.h"
#include "runtime/session/session.h"
#include "runtime/session/session_file.h"
#include "runtime/session/session_state.h"
#include "tests/support/seeing_folder.h"
#include "tests/vision/tower_tests.h"

static const struct {
	const char *name, *mark, *tmpl;
} models[] = {
	{ "see-qwen3vl-a", "<|image_pad|>", SEEING_TEMPLATE("<|image_pad|>") }, /* three-part positions, deepstack */
	{ "see-smolvlm-a", "<image>", SEEING_TEMPLATE("<image>") },             /* tiles */
	{ "see-gemma3-a", "<image_soft_token>",
	  SEEING_TEMPLATE("<start_of_image>") }, /* pictures that see themselves whole */
};
enum { MODELS = sizeof models / sizeof *models };

static const char path[] = "/tmp/t_tower.saved";

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static bool open_model(struct seeing *s, unsigned i)
{
	return seeing_open(s, models[i].name, models[i].mark, models[i].tmpl);
}

static jit_prompt *prompt_of(const struct seeing *s)
{
	jit_image *image[] = { seeing_image(s, 0), seeing_image(s, 1) };
	jit_prompt *p = seeing_chat(s, seeing_two, NULL, image, 2);

	jit_image_close(image[0]);
	jit_image_close(image[1]);
	return p;
}

static void say(jit_session *x, jit_session *y, unsigned n)
{
	jit_error err = { 0 };

	for (unsigned i = 0; i < n; i++) {
		int32_t a, b;
		must(jit_session_next(x, &a, &err), &err);
		must(jit_session_next(y, &b, &err), &err);
		assert_int_equal(a, b);
	}
}

static uint8_t *read_file(const char *name, size_t *n)
{
	FILE *f = fopen(name, "rb");
	struct stat st;

	assert_true(f && fstat(fileno(f), &st) == 0);
	*n = (size_t)st.st_size;
	uint8_t *bytes = malloc(*n);
	assert_true(bytes && fread(bytes, 1, *n, f) == *n);
	fclose(f);
	return bytes;
}

/* ---- saved and restored */

static void restore(jit_session *x, const jit_session *like)
{
	jit_error err = { 0 };

	must(jit_session_restore(x, path, &err), &err);
	assert_int_equal(jit_session_length(x), jit_session_length(like));
	assert_memory_equal(jit_session_ids(x), jit_session_ids(like), jit_session_length(x) * sizeof(int32_t));
}

/* In a batch, where another session finds the pictures by their pixels. */
static void restore_together(const struct seeing *s, const jit_prompt *p, jit_session *alone)
{
	jit_error err = { 0 };
	jit_batch *b =
		jit_batch_open(s->model, &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32), &err);
	jit_session *x = jit_batch_session(b, NULL, &err), *ready[2];
	size_t n, reused;

	assert_non_null(x);
	restore(x, alone);
	while (jit_batch_pending(b))
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
	seeing_same(s, x, alone);
	jit_session_close(x);
	x = jit_batch_session(b, NULL, &err);
	must(jit_session_feed_prompt(x, p, &reused, &err), &err);
	jit_prompt_ids(p, &n);
	assert_int_equal(reused, n - 1);
	while (jit_batch_pending(b))
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
	jit_session *fresh = seeing_session(s);
	must(jit_session_feed_prompt(fresh, p, NULL, &err), &err);
	seeing_same(s, x, fresh);
	jit_session_close(fresh);
	jit_session_close(x);
	jit_batch_close(b);
}

/* What was opened before the encoder takes none. */
static void restore_blind(const struct seeing *s)
{
	jit_error err = { 0 };
	jit_model *blind = jit_model_open(s->folder, NULL, &err);
	jit_session *x =
		jit_session_open(blind, &JIT_SESSION_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32), &err);

	assert_non_null(x);
	assert_int_equal(jit_session_restore(x, path, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "before its model could take pictures"));
	assert_int_equal(jit_session_length(x), 0);
	jit_session_close(x);
	jit_model_close(blind);
}

static void save_and_restore(unsigned which)
{
	struct seeing s;
	jit_error err = { 0 };
	size_t n, n_again, reused;

	if (!open_model(&s, which))
		return;
	jit_session *x = seeing_session(&s), *y = seeing_session(&s), *same = seeing_session(&s),
		    *z = seeing_session(&s);
	jit_prompt *p = prompt_of(&s), *again = prompt_of(&s);
	must(jit_session_feed_prompt(x, p, NULL, &err), &err);
	must(jit_session_feed_prompt(same, p, NULL, &err), &err);
	say(x, same, 5);
	must(jit_session_save(x, path, &err), &err);
	uint8_t *bytes = read_file(path, &n), *bytes_again;
	restore(y, x);
	restore_together(&s, p, x);
	restore_blind(&s);
	seeing_same(&s, x, y);
	say(x, y, 8);
	/* the same file comes of it, and what it has is known by its pixels */
	restore(z, same);
	must(jit_session_save(z, path, &err), &err);
	bytes_again = read_file(path, &n_again);
	assert_int_equal(n, n_again);
	assert_memory_equal(bytes, bytes_again, n);
	must(jit_session_feed_prompt(y, again, &reused, &err), &err);
	jit_prompt_ids(p, &n);
	assert_int_equal(reused, n - 1);
	free(bytes);
	free(bytes_again);
	jit_prompt_close(p);
	jit_prompt_close(again);
	jit_session_close(x);
	jit_session_close(y);
	jit_session_close(same);
	jit_session_close(z);
	seeing_close(&s);
	unlink(path);
}

void test_image_saved(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MODELS; i++)
		save_and_restore(i);
}

/* ---- damage behind checksums that fit */

static void try_location(jit_session *x, const struct pictures_location *location)
{
	struct error err = { 0 };
	uint64_t sum = 1;

	if (session_file_read_pictures(x, location, &sum, &err))
		assert_true(x->pictures.n > 0 && x->pictures.n <= 2);
	else
		assert_true(err.text[0] && x->pictures.n == 0);
	session_pictures_rewind(x, 0);
}

static void write_byte(int fd, uint64_t at, uint8_t byte) { assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1); }

void test_image_damaged(void **state)
{
	struct seeing s;
	jit_error err = { 0 };
	struct error e = { 0 };
	struct saved_pictures v;
	struct safefile_part part[4];
	int parts = 0;
	uint64_t sum = 1, read = 1;
	(void)state;

	if (!open_model(&s, 0))
		return;
	jit_session *x = seeing_session(&s), *y = seeing_session(&s);
	jit_prompt *p = prompt_of(&s);
	must(jit_session_feed_prompt(x, p, NULL, &err), &err);
	assert_true(session_file_list_pictures(&v, x, &e));
	session_file_add_pictures(&v, part, &parts, &sum);
	assert_int_equal(parts, 3);
	struct pictures_location location = { path, open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), 5, 0,
		                              (uint32_t)jit_session_length(x) };
	write_byte(location.fd, 4, 0);
	for (int i = 0; i < parts; location.bytes += part[i++].n)
		assert_int_equal(pwrite(location.fd, part[i].bytes, part[i].n, (off_t)(location.at + location.bytes)),
		                 part[i].n);
	assert_true(session_file_read_pictures(y, &location, &read, &e));
	assert_true(read == sum && y->pictures.n == 2);
	session_pictures_rewind(y, 0);
	for (size_t i = 0; i < v.table_bytes; i++)
		for (unsigned change = 0; change < 4; change++) {
			static const uint8_t with[] = { 1, 0x10, 0x80, 0xff };
			write_byte(location.fd, location.at + i, v.table[i] ^ with[change]);
			try_location(y, &location);
			write_byte(location.fd, location.at + i, v.table[i]);
		}
	const uint64_t whole = location.bytes;
	for (location.bytes = 0; location.bytes < whole;
	     location.bytes += 1 + (location.bytes > v.table_bytes) * (whole / 50))
		assert_false(session_file_read_pictures(y, &location, &read, &(struct error){ 0 }));
	location.bytes = whole + 1;
	assert_false(session_file_read_pictures(y, &location, &read, &(struct error){ 0 }));
	location.bytes = whole;
	location.length = 40; /* the pictures are behind the text's end */
	assert_false(session_file_read_pictures(y, &location, &read, &(struct error){ 0 }));
	close(location.fd);
	unlink(path);
	session_file_forget_pictures(&v);
	jit_prompt_close(p);
	jit_session_close(x);
	jit_session_close(y);
	seeing_close(&s);
}

/* ---- taken out */

static void cut_first(const struct seeing *s, const jit_prompt *p, jit_session *x, jit_batch *b)
{
	jit_error err = { 0 };
	jit_session *wanted = seeing_session(s), *ready[1];
	size_t n, n_ids;
	const int32_t *ids = jit_prompt_ids(p, &n_ids);

	must(jit_session_feed_prompt(x, p, NULL, &err), &err);
	while (b && jit_batch_pending(b))
		must(jit_batch_step(b, ready, 1, &n, &err), &err);
	const struct session_picture *of = x->pictures.list;
	size_t runs = x->pictures.n, half = runs / 2; /* the first picture's */
	const size_t keep = of[0].first, end = of[half - 1].first + of[half - 1].n;
	assert_int_equal(session_shift(x, keep + 1, 2, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "a part of a picture"));
	assert_int_equal(session_shift(x, keep - 1, 2, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_length(x), n_ids);
	must(session_shift(x, keep, end - keep, &err), &err);
	assert_int_equal(x->pictures.n, runs - half);
	while (b && jit_batch_pending(b))
		must(jit_batch_step(b, ready, 1, &n, &err), &err);
	/* by hand */
	struct session_picture *rest = calloc(runs, sizeof *rest);
	for (size_t i = 0; i < x->pictures.n; i++) {
		rest[i] = x->pictures.list[i];
		rest[i].first -= keep;
	}
	must(jit_session_feed(wanted, ids, keep, &err), &err);
	must(session_append_pictures(wanted, ids + end, n_ids - end, rest, x->pictures.n, &err), &err);
	free(rest);
	seeing_same(s, x, wanted);
	if (!b)
		say(x, wanted, 6);
	jit_session_close(wanted);
}

void test_image_cut(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MODELS; i++) {
		struct seeing s;
		jit_error err = { 0 };
		if (!open_model(&s, i))
			continue;
		jit_prompt *p = prompt_of(&s);
		jit_session *x = seeing_session(&s);
		jit_batch *b = jit_batch_open(
			s.model, &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32), &err);
		jit_session *member = jit_batch_session(b, NULL, &err);
		assert_non_null(member);
		cut_first(&s, p, x, NULL);
		cut_first(&s, p, member, b);
		jit_session_close(member);
		jit_batch_close(b);
		jit_session_close(x);
		jit_prompt_close(p);
		seeing_close(&s);
	}
}

/* ---- draft tokens */

/* A text that ends with a picture, whose last token is computed again in a fork: no drafts go with it. */
static void ends_with_picture(const struct seeing *s)
{
	const jit_session_options o =
		JIT_SESSION_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32, .speculate = 8);
	jit_error err = { 0 };
	jit_image *image = seeing_image(s, 0);
	jit_session *x = jit_session_open(s->model, &o, &err), *plain = seeing_session(s);

	assert_non_null(x);
	must(jit_session_feed_text(x, "user:", 5, 0, &err), &err);
	must(jit_session_feed_image(x, image, &err), &err);
	must(jit_session_feed_text(plain, "user:", 5, 0, &err), &err);
	must(jit_session_feed_image(plain, image, &err), &err);
	jit_session *fork = jit_session_fork(x, &o, &err);
	assert_non_null(fork);
	seeing_same(s, fork, plain);
	jit_session_close(fork);
	jit_session_close(x);
	jit_session_close(plain);
	jit_image_close(image);
}

void test_image_drafts(void **state)
{
	uint64_t drafted = 0;
	bool any = false;
	(void)state;

	for (unsigned i = 0; i < MODELS; i++) {
		struct seeing s;
		jit_error err = { 0 };
		jit_session_stats stats = JIT_SESSION_STATS();
		if (!open_model(&s, i))
			continue;
		jit_prompt *p = prompt_of(&s);
		jit_session *x[2];
		for (int k = 0; k < 2; k++) {
			x[k] = jit_session_open(s.model,
			                        &JIT_SESSION_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32,
			                                             .speculate = k ? 8 : JIT_SPECULATE_OFF),
			                        &err);
			assert_non_null(x[k]);
			must(jit_session_feed_prompt(x[k], p, NULL, &err), &err);
		}
		say(x[0], x[1], 60);
		must(jit_session_get_stats(x[1], &stats, &err), &err);
		drafted += stats.drafted;
		any = true;
		ends_with_picture(&s);
		jit_session_close(x[0]);
		jit_session_close(x[1]);
		jit_prompt_close(p);
		seeing_close(&s);
	}
	assert_true(!any || drafted > 0);
}
