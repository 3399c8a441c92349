/* tests/runtime/t_plan_room.c - memory and signatures agree: in every plan of every model, all that the signature of an
 * op says it touches (kernels-templates/signature.h) lies in one buffer, table, page or state of the session, with the
 * sizes that runtime/plan reserves. The pass stands at the end of its context, where records and pages are most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <string.h>

#include "kernels-templates/signature.h"
#include "tests/runtime/plan_areas.h"
#include "tests/support/shared.h"

/* What runs bind: the tables of pages, and the states before and behind. */
enum { AREA_PAGES = AREA_COUNT, AREA_WINDOW_PAGES, AREA_BEFORE, AREA_BEHIND, AREA_ALL };

struct room {
	struct plan_areas *a;
	const struct plan *p;
	const struct plan_cache *kv;
	const char *way;
};

static uint64_t checked;

static const void *bound(unsigned area) { return (const void *)(uintptr_t)((uint64_t)area << AREA_BITS); }

/* The last tokens of a full context. */
static void bind(struct plan *p)
{
	struct plan_sequence s[3];

	for (unsigned i = 0; i < 3; i++)
		s[i] = (struct plan_sequence){ .position = AREA_CONTEXT - p->tokens,
			                       .pages = bound(AREA_PAGES),
			                       .window_pages = bound(AREA_WINDOW_PAGES),
			                       .before = bound(AREA_BEFORE),
			                       .behind = (uint8_t *)(uintptr_t)bound(AREA_BEHIND) };
	plan_set_sequences(p, s);
}

static uint64_t bytes_of_area(const struct room *r, uint64_t area)
{
	switch (area) {
	case AREA_PAGES:
	case AREA_WINDOW_PAGES: return (AREA_CONTEXT / NUMERICS_CHUNK + 1) * 8;
	case AREA_BEFORE:
	case AREA_BEHIND: return plan_state_bytes(&r->a->model.spec);
	default: return plan_areas_bytes(r->a, (enum area)area, r->p->tokens);
	}
}

/* Bytes from the beginning of an area to where what lies at the offset ends. */
static uint64_t room_at(const struct room *r, uint64_t area, uint64_t offset)
{
	return area == AREA_VALUES ? offset + plan_areas_room(r->a, offset) : bytes_of_area(r, area);
}

/* Behind the last byte that the unit touches, of whichever row or matrix data choose. */
static uint64_t end_of_unit(const struct room *r, const struct kernel_use *use)
{
	const struct model_spec *s = &r->a->model.spec;
	uint64_t end = 0;

	for (unsigned i = 0; i < KERNEL_SPANS && use->span[i].bytes; i++) {
		const struct kernel_span *p = &use->span[i];
		const uint64_t chosen = use->layout == KERNEL_STACK ? s->experts
		                                                    : (uint64_t)r->p->tokens * s->experts_used,
			       n = p->count                    ? p->count
		                   : use->access & KERNEL_SOME ? chosen
		                                               : 0,
			       last = n ? p->at + (n - 1) * p->stride + p->bytes : 0;
		end = last > end ? last : end;
	}
	return end;
}

static void check_unit(const struct room *r, size_t op, unsigned slot, int64_t unit)
{
	const struct plan_op *l = &r->p->op[op];
	const struct key *key = &r->p->kernel[l->kernel].key;
	const struct kernel_use use = kernel_unit(key, l->arg, slot, unit);
	const uint64_t end = end_of_unit(r, &use), at = l->arg[slot];
	uint64_t area = at >> AREA_BITS, offset = at & (((uint64_t)1 << AREA_BITS) - 1), room;
	char text[KEY_TEXT_MAX];

	if (!end)
		return;
	if (use.layout == KERNEL_PAGES) {
		const uint64_t table = l->arg[kernel_slot(key, KERNEL_TABLE)] >> AREA_BITS;
		room = table == AREA_PAGES ? r->kv->page_bytes : r->kv->window_page_bytes;
		area = table;
	} else {
		room = room_at(r, area, offset);
	}
	checked++;
	if (area == AREA_NONE || area >= AREA_ALL || offset + end > room)
		fail_msg("%s, %s, %u tokens: op %zu, %s, unit %" PRId64 ": %s ends %" PRIu64 " bytes into %s, which "
		         "has %" PRIu64,
		         r->a->target->name, r->way, r->p->tokens, op, key_text(key, text, sizeof text), unit,
		         kernel_arg(key, slot)->name, offset + end,
		         area < AREA_COUNT ? plan_areas_name((enum area)area) : "what runs bind", room);
}

/* Units whose bytes lie last, of any layout: of the last column, the last head, and some between. */
static void check_op(const struct room *r, size_t op)
{
	const struct plan_op *l = &r->p->op[op];
	const int64_t n = l->end - l->begin;

	for (uint32_t slot = 0; slot < l->n_args; slot++)
		for (int64_t i = 0; i < 9 && i < n; i++)
			check_unit(r, op, slot, n <= 9 ? l->begin + i : l->begin + (n - 1) * i / 8);
}

static void check_plan(struct room *r, unsigned way, uint32_t tokens)
{
	struct error err = { 0 };
	struct plan_cache kv;
	struct plan p;

	if (!plan_areas_build(r->a, &p, way, tokens, &r->way, &kv, &err))
		fail_msg("%s", err.text);
	if (!r->way)
		return;
	r->p = &p;
	r->kv = &kv;
	bind(&p);
	for (size_t op = 0; op < p.n_ops; op++)
		check_op(r, op);
	plan_free(&p);
}

static void check_model(const char *path)
{
	struct error err = { 0 };
	struct plan_areas a = { 0 };
	struct room r = { .a = &a };

	if (!plan_areas_open(&a, path, &err))
		fail_msg("%s", err.text);
	a.apart = true;
	for (unsigned t = 0; t < AREA_TARGETS; t++) {
		if (!plan_areas_for(&a, target_find(area_targets[t]), &err))
			fail_msg("%s", err.text);
		for (unsigned w = 0; w < AREA_WIDTHS; w++)
			for (unsigned way = 0; way < AREA_WAYS; way++)
				if (!test_small_share() || (t + w + way) % 4 == 0) /* all pairs of two of them */
					check_plan(&r, way, area_widths[w]);
	}
	plan_areas_close(&a);
}

static void test_own_model(void **state)
{
	char path[1024];

	check_model(source_path(path, "models/tale-q8_0.gguf"));
	assert_true(checked > 10000);
}

static void test_families(void **state)
{
	char path[1024], model[2048];
	unsigned n = 0;

	if (!shared_path(path, "golden"))
		skip();
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));) {
		if (!strchr(d->d_name, '-') || (test_quick() && !test_mine_of_halves(n++)))
			continue;
		snprintf(model, sizeof model, "%s/%s", path, d->d_name);
		check_model(model);
	}
	closedir(dir);
	printf("# %" PRIu64 " arguments of units were looked at\n", checked);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_own_model), cmocka_unit_test(test_families) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
