/* tests/runtime/t_pages.c - pages of the KV cache: who holds them, what is given back, what sessions share and what
 * they must not. A plain list of what everybody did is the witness of the pool; sessions alone are that of results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/session/session.h"
#include "tests/runtime/batch_sound.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

/* ---- the pool */

enum { PAGE_BYTES = 100 << 10, ROOM = 40, HOLDS_MAX = 200, WORDS = 2 };

struct hold {
	struct kv_page *page;
	enum kv_hold how;
};
struct pool {
	struct kv_pages pages;
	struct hold hold[HOLDS_MAX];
	size_t n;
	uint64_t random;
};

static unsigned draw(struct pool *p, size_t max)
{
	p->random = p->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((p->random >> 33) % (max + 1));
}

static void fill_ids(int32_t *ids, unsigned word)
{
	for (int i = 0; i < NUMERICS_CHUNK; i++)
		ids[i] = (int32_t)word;
	ids[NUMERICS_CHUNK - 1] = -1;
}

static void check_counts(const struct pool *p)
{
	size_t held = 0, remembered = 0, shared = 0;

	for (size_t i = 0; i < p->n; i++) {
		size_t holders = 0, remembering = 0, earlier = 0;
		for (size_t k = 0; k < p->n; k++)
			if (p->hold[k].page == p->hold[i].page) {
				holders++;
				remembering += p->hold[k].how == KV_REMEMBERS;
				earlier += k < i;
			}
		assert_int_equal(p->hold[i].page->holders, holders);
		assert_int_equal(p->hold[i].page->remembering, remembering);
		held += !earlier;
		remembered += !earlier && remembering == holders;
		shared += !earlier && holders > 1;
	}
	assert_int_equal(p->pages.held, held);
	assert_int_equal(p->pages.remembered, remembered);
	assert_int_equal(p->pages.shared, shared);
	assert_int_equal(p->pages.used, held * PAGE_BYTES);
	assert_int_equal(kv_pages_available(&p->pages, 0), (ROOM - held + remembered) * PAGE_BYTES);
}

/* What is found are the tokens that were asked for, behind the page that was asked for; what is published is found. */
static void check_found(struct pool *p, const struct kv_page *parent, unsigned word)
{
	int32_t ids[NUMERICS_CHUNK];
	uint64_t before = parent ? parent->number : 0;

	fill_ids(ids, word);
	const struct kv_page *found = kv_pages_find(&p->pages, before, ids);
	if (found)
		assert_true(found->number && found->parent == before && memcmp(found->ids, ids, sizeof ids) == 0);
	for (size_t i = 0; i < p->n; i++) {
		const struct kv_page *page = p->hold[i].page;
		if (page->number && page->parent == before && memcmp(page->ids, ids, sizeof ids) == 0)
			assert_ptr_equal(found, page);
	}
}

static void publish(struct pool *p, struct kv_page *page, const struct kv_page *parent, unsigned word)
{
	int32_t ids[NUMERICS_CHUNK];
	uint64_t before = parent ? parent->number : 0;

	fill_ids(ids, word);
	if (page->number || (parent && !parent->number))
		return;
	struct kv_page *like = kv_pages_find(&p->pages, before, ids);
	assert_ptr_equal(kv_pages_publish(&p->pages, page, before, ids), like ? like : page);
	assert_true(like || page->number);
}

static void act(struct pool *p)
{
	struct error err = { 0 };
	size_t i = draw(p, p->n ? p->n - 1 : 0);
	struct hold *h = &p->hold[i];

	switch (p->n && p->n < HOLDS_MAX ? draw(p, 7) : p->n ? 7 : 0) {
	case 0:
	case 1: {
		bool room = p->pages.held < ROOM;
		struct kv_page *page = kv_pages_take(&p->pages, &err);
		assert_true(room == (page != NULL) && err.code == ERROR_NONE);
		if (page) {
			memset(page->at, (int)p->n, PAGE_BYTES);
			p->hold[p->n++] = (struct hold){ page, KV_USES };
		}
		break;
	}
	case 2:
	case 3:
		p->hold[p->n++] = (struct hold){ h->page, draw(p, 1) ? KV_USES : KV_REMEMBERS };
		kv_pages_hold(&p->pages, h->page, p->hold[p->n - 1].how);
		break;
	case 4: publish(p, h->page, draw(p, 2) ? p->hold[draw(p, p->n - 1)].page : NULL, draw(p, WORDS)); break;
	case 5: kv_pages_hide(&p->pages, h->page); break;
	default: kv_pages_drop(&p->pages, h->page, h->how); *h = p->hold[--p->n];
	}
}

static void holders_are_counted(void **state)
{
	struct error err = { 0 };
	struct device *d = device_open("cpu", NULL, &err);
	struct pool p = { .random = 17 };

	assert_non_null(d);
	kv_pages_open(&p.pages, d, PAGE_BYTES, ROOM * PAGE_BYTES);
	for (int i = 0; i < (test_quick() ? 2000 : 20000); i++) {
		act(&p);
		check_counts(&p);
		check_found(&p, p.n && draw(&p, 1) ? p.hold[draw(&p, p.n - 1)].page : NULL, draw(&p, WORDS));
	}
	while (p.n) {
		kv_pages_drop(&p.pages, p.hold[p.n - 1].page, p.hold[p.n - 1].how);
		p.n--;
	}
	check_counts(&p);
	assert_int_equal(p.pages.slabs, 0); /* all of it was given back */
	assert_int_equal(p.pages.published, 0);
	kv_pages_close(&p.pages);
	device_close(d);
}

/* ---- sessions */

enum { CONTEXT = 600, PAGE = NUMERICS_CHUNK, MANY = 64 };

static uint64_t page_bytes(void)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1), &err);

	assert_non_null(b);
	uint64_t bytes = b->pages.page_bytes;
	jit_batch_close(b);
	return bytes;
}

static jit_batch *open_batch(size_t pages)
{
	jit_error err = { 0 };
	jit_batch *b =
		jit_batch_open(model,
	                       &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 2, .speculate = JIT_SPECULATE_OFF,
	                                          .kv_bytes = pages * page_bytes()),
	                       &err);

	if (!b)
		fail_msg("%s", err.message);
	return b;
}

/* Tokens that are the same in all texts up to `same`, and then this one's own. */
static void write_text(int32_t *ids, size_t n, size_t same, unsigned own)
{
	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)((5 + i * 7 + (i >= same ? 3 * own + i * own : 0)) % (size_t)vocab);
}

static jit_session *submit(jit_batch *b, size_t n, size_t same, unsigned own)
{
	int32_t ids[CONTEXT];
	jit_error err = { 0 };
	jit_session *s = jit_batch_session(b, NULL, &err);

	assert_non_null(s);
	write_text(ids, n, same, own);
	must(jit_session_submit(s, ids, n, NULL, &err), &err);
	return s;
}

static void require_sound(const jit_batch *b)
{
	struct error err = { 0 };

	if (!batch_memory_sound(b, &err))
		fail_msg("%s", err.text);
}

static void step_until_done(jit_batch *b)
{
	jit_session *ready[MANY];
	jit_error err = { 0 };
	size_t n;

	for (unsigned i = 0; jit_batch_pending(b); i++) {
		must(jit_batch_step(b, ready, MANY, &n, &err), &err);
		require_sound(b);
		assert_true(i < 10000);
	}
}

/* Its logits are those of a session alone. */
static void check_alone(jit_session *s)
{
	jit_error err = { 0 };
	jit_session *alone = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 2), &err);

	assert_non_null(alone);
	must(jit_session_feed(alone, jit_session_ids(s), jit_session_length(s), &err), &err);
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	assert_memory_equal(logits, jit_session_logits(alone, &err), (size_t)vocab * sizeof *logits);
	jit_session_close(alone);
}

/* Whether they all come at once or one after the other: each has one page of its own, and two that all have. Were they
 * not shared, 64 sessions took 192 pages, and there is room for 80. */
static void a_beginning_is_held_once(void **state)
{
	enum { SAME = 2 * PAGE + 9, LONG = SAME + 20 };

	for (int at_once = 0; at_once < 2; at_once++) {
		jit_batch *b = open_batch(80);
		jit_session *s[MANY];
		jit_batch_stats stats = JIT_BATCH_STATS();
		jit_error err = { 0 };
		for (unsigned i = 0; i < MANY; i++) {
			s[i] = submit(b, LONG, SAME, i);
			if (!at_once)
				step_until_done(b);
		}
		step_until_done(b);
		must(jit_batch_get_stats(b, &stats, &err), &err);
		assert_int_equal(b->pages.held, 2 + MANY);
		assert_int_equal(stats.pages_used, 2 + MANY);
		assert_int_equal(stats.pages_shared, 2);
		assert_int_equal(stats.set_back, 0);
		assert_true(stats.reused_tokens >= (MANY - 1) * 2 * PAGE); /* and computed once */
		for (unsigned i = 0; i < MANY; i += 9)
			check_alone(s[i]);
		for (unsigned i = 0; i < MANY; i++)
			jit_session_close(s[i]);
		require_sound(b);
		jit_batch_close(b);
	}
}

/* Memory is what sessions hold, whatever their context is. */
static void memory_follows_what_is_held(void **state)
{
	jit_batch *b = open_batch(100);
	jit_session *s = submit(b, PAGE - 1, 0, 1), *ready;
	jit_error err = { 0 };
	int32_t id;
	size_t n;

	for (size_t i = 0; i < 2 * PAGE; i++) {
		step_until_done(b);
		size_t computed = jit_session_length(s);
		assert_int_equal(b->pages.used, (computed + PAGE - 1) / PAGE * b->pages.page_bytes);
		size_t taken = 0; /* from the system, where small pages come in pieces of a MiB */
		for (size_t k = 0; k < b->pages.slabs; k++)
			taken += b->pages.slab[k]->bytes;
		assert_in_range(taken, b->pages.used, b->pages.used + (1 << 20));
		must(jit_session_next(s, &id, &err), &err);
	}
	step_until_done(b);
	must(jit_session_rewind(s, 5, &err), &err);
	must(jit_session_submit(s, &id, 1, NULL, &err), &err);
	must(jit_batch_step(b, &ready, 1, &n, &err), &err);
	require_sound(b);
	assert_true(b->pages.held <= 2);
	check_alone(s);
	jit_session_close(s);
	jit_batch_close(b);
}

/* One that was ready, and whose memory another one took before its next token was chosen, is ready once more. */
static void who_was_ready_begins_again(void **state)
{
	jit_batch *b = open_batch(4);
	jit_session *grows = submit(b, PAGE, 0, 1), *waits;
	jit_error err = { 0 };
	int32_t id;

	step_until_done(b);
	waits = submit(b, 2 * PAGE + 44, 0, 2);
	step_until_done(b);
	assert_false(session_begins_again(waits));
	must(jit_session_next(grows, &id, &err), &err);
	step_until_done(b);
	assert_int_equal(jit_batch_pending(b), 0);
	assert_true(session_begins_again(waits));
	assert_int_equal(jit_batch_pending(b), 1);
	step_until_done(b);
	assert_false(session_begins_again(waits));
	check_alone(waits);
	jit_session_close(waits);
	jit_session_close(grows);
	jit_batch_close(b);
}

/* What is set back loses the pages that are wanted, and no others. */
static void who_is_set_back_keeps_what_has_room(void **state)
{
	jit_batch *b = open_batch(4);
	jit_session *grows = submit(b, PAGE, 0, 1), *rests;
	jit_batch_stats stats = JIT_BATCH_STATS();
	jit_error err = { 0 };
	int32_t id = 3;

	step_until_done(b);
	rests = submit(b, 2 * PAGE + 44, 0, 2);
	step_until_done(b);
	assert_int_equal(b->pages.held, 4);
	must(jit_session_next(grows, &id, &err), &err);
	step_until_done(b);
	must(jit_batch_get_stats(b, &stats, &err), &err);
	assert_int_equal(stats.set_back, 1);
	assert_int_equal(stats.pages_kept, 2);
	check_alone(grows);
	jit_session_close(grows);
	must(jit_session_submit(rests, &id, 1, NULL, &err), &err);
	step_until_done(b);
	uint64_t before = stats.reused_tokens;
	must(jit_batch_get_stats(b, &stats, &err), &err);
	assert_int_equal(stats.reused_tokens - before, 2 * PAGE);
	check_alone(rests);
	jit_session_close(rests);
	jit_batch_close(b);
}

/* Who goes back and says something else writes its pages anew: sessions with the old text do not get them. */
static void what_is_written_again_is_not_found(void **state)
{
	jit_batch *b = open_batch(20);
	jit_session *s = submit(b, 2 * PAGE + 30, 2 * PAGE + 30, 0), *same;
	int32_t ids[CONTEXT];
	jit_error err = { 0 };

	step_until_done(b);
	must(jit_session_rewind(s, PAGE / 2, &err), &err);
	write_text(ids, 2 * PAGE, 0, 4);
	must(jit_session_submit(s, ids, 2 * PAGE, NULL, &err), &err);
	step_until_done(b);
	same = submit(b, 2 * PAGE + 30, 2 * PAGE + 30, 0);
	step_until_done(b);
	check_alone(same);
	check_alone(s);
	jit_session_close(s);
	jit_session_close(same);
	jit_batch_close(b);
}

/* A second writer of a page is refused before anything is written. */
static void a_page_has_one_writer(void **state)
{
	jit_batch *b = open_batch(20);
	jit_session *s = submit(b, PAGE + 40, PAGE, 1), *other = submit(b, PAGE + 40, PAGE, 2), *ready;
	jit_error err = { 0 };
	struct error unsound = { 0 };
	int32_t id;
	size_t n;

	step_until_done(b);
	struct kv_page **entry = &other->member->pages.page[1], *own = *entry;
	assert_ptr_equal(other->member->pages.page[0], s->member->pages.page[0]);
	assert_ptr_not_equal(own, s->member->pages.page[1]);
	must(jit_session_next(other, &id, &err), &err);

	session_memory_set_page(&other->memory, 1, s->member->pages.page[1]->at);
	assert_false(batch_memory_sound(b, &unsound));
	assert_int_equal(jit_batch_step(b, &ready, 1, &n, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "page 1 of the KV cache is not this session's alone"));
	session_memory_set_page(&other->memory, 1, own->at);
	*entry = s->member->pages.page[1];
	assert_false(batch_pages_writable(other->member, PAGE + 40, 1, &(struct error){ 0 }));
	assert_false(batch_memory_sound(b, &(struct error){ 0 }));
	*entry = own;
	kv_pages_hold(&b->pages, own, KV_USES); /* somebody has it who wrote himself down nowhere */
	assert_false(batch_pages_writable(other->member, PAGE + 40, 1, &(struct error){ 0 }));
	assert_false(batch_memory_sound(b, &(struct error){ 0 }));
	kv_pages_drop(&b->pages, own, KV_USES);
	step_until_done(b);
	check_alone(other);
	check_alone(s);
	jit_session_close(s);
	jit_session_close(other);
	jit_batch_close(b);
}

/* In place of the usual model. */
static bool open_other(const char *name, const char *device)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	if (!shared_path(path, name))
		return false;
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = ""), &err);
	if (!model)
		fail_msg("%s", err.message);
	must(jit_model_get_info(model, &info, &err), &err);
	vocab = info.vocab;
	return true;
}

/* Memory is full of a text whose states another one goes on from: what is remembered makes room all the same. */
static void a_beginning_never_stands_in_the_way(void **state)
{
	jit_model *usual = model;
	int usual_vocab = vocab;
	jit_error err = { 0 };

	if (!open_other("golden/lfm2-a", "cpu"))
		skip();
	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .tokens = 32, .threads = 1), &err);
	assert_non_null(b);
	uint64_t bytes = batch_bytes(b, 4 * PAGE);
	jit_batch_close(b);
	b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .tokens = 32, .threads = 1, .kv_bytes = bytes),
	                   &err);
	assert_non_null(b);
	jit_session *s = submit(b, 4 * PAGE, 4 * PAGE, 0);
	step_until_done(b);
	jit_session_close(s);
	assert_int_equal(b->pages.used, bytes);
	s = submit(b, 90, 80, 1);
	assert_true(s->computed > 0);
	step_until_done(b);
	check_alone(s);
	jit_session_close(s);
	jit_batch_close(b);
	jit_model_close(model);
	model = usual;
	vocab = usual_vocab;
}

/* On a card, which the host does not reach: tables are uploaded, pages are copied by way of the host. */
static void cards_share_pages_too(void **state)
{
	jit_model *usual = model;
	int usual_vocab = vocab;

	if (!open_other("golden/qwen3-gqa2-bf16", "sim:gfx1100"))
		skip();
	jit_batch *b = open_batch(8);
	jit_session *s = submit(b, PAGE + 9, PAGE + 5, 1), *other;
	step_until_done(b);
	other = submit(b, PAGE + 9, PAGE + 5, 2);
	step_until_done(b);
	assert_int_equal(b->pages.held, 3);
	assert_int_equal(b->pages.shared, 1);
	check_alone(other);
	jit_session_close(s);
	jit_session_close(other);
	jit_batch_close(b);
	jit_model_close(model);
	model = usual;
	vocab = usual_vocab;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holders_are_counted),         cmocka_unit_test(a_beginning_is_held_once),
		cmocka_unit_test(memory_follows_what_is_held), cmocka_unit_test(who_is_set_back_keeps_what_has_room),
		cmocka_unit_test(who_was_ready_begins_again),  cmocka_unit_test(what_is_written_again_is_not_found),
		cmocka_unit_test(a_page_has_one_writer),       cmocka_unit_test(a_beginning_never_stands_in_the_way),
		cmocka_unit_test(cards_share_pages_too)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
