/* tests/kernels/t_signature.c - the table of what kernels read and write (kernels-templates/signature.h), held against
 * kernels that run: see signature_trial.h. Then that such a trial notices when the table lies, for each slot and lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "tests/kernels/signature_trial.h"
#include "tests/support/shared.h"

static const char *kind_name(enum key_kind kind)
{
	static const char *const name[KEY_KIND_COUNT] = {
#define X(id, text) [KEY_##id] = text,
		KEY_KINDS(X)
#undef X
	};
	return name[kind];
}

/* A kind of kernel that models' plans have: programs are made of others, and users' kernels of their own source. */
static bool is_kind(int kind) { return kind != KEY_PROGRAM && kind != KEY_USER; }

/* These have the most ways of laying out what they read. */
static bool is_manifold(int kind) { return kind == KEY_MATMUL || kind == KEY_ATTENTION; }

/* ---- the table is right */

static void try_kind(enum key_kind kind, unsigned wanted)
{
	unsigned judged = 0, drawn = 0;
	char text[512];

	while (judged < wanted && drawn++ < 60 * wanted) {
		struct trial t;
		trial_draw_launch(&t, kind);
		const enum trial_end end = trial_run(&t, NULL, text);
		if (end == TRIAL_FAILED)
			fail_msg("%s", text);
		judged += end == TRIAL_PASSED;
	}
	if (judged < wanted)
		fail_msg("%s: only %u of %u launches were judged", kind_name(kind), judged, wanted);
}

static void test_kinds(void **state)
{
	const unsigned times = test_full() ? 60 : test_quick() ? 1 : 6;

	for (int kind = KEY_NONE + 1; kind < KEY_KIND_COUNT; kind++)
		if (is_kind(kind) && (!test_quick() || test_mine((unsigned)kind)))
			try_kind((enum key_kind)kind, (is_manifold(kind) ? 400 : 60) * times);
}

/* ---- a wrong table is noticed */

/* Where data choose among the bytes, more may be said to be touched than is. Nothing comes of the last entry of a table
 * of pages, nor of the last row of a matrix that nobody picks. */
static bool is_lie(struct kernel_use use, enum trial_lie lie)
{
	const bool some = use.access & KERNEL_SOME;

	switch (lie) {
	case LIE_SHORT: return !some || (use.layout != KERNEL_TABLE && use.layout != KERNEL_PICKED);
	case LIE_LONG: return !some;
	case LIE_READ: return !some && !(use.access & KERNEL_READ);
	case LIE_WRITTEN: return !some && !(use.access & KERNEL_WRITE);
	default: return true;
	}
}

/* Lies about a launch's slot that the trial has caught, as bits; *told: those that there were. */
static unsigned lies_caught(const struct trial *t, unsigned slot, unsigned already, unsigned *told)
{
	const struct kernel_use use = kernel_use(&t->key, slot);
	unsigned caught = 0;
	char text[512];

	for (enum trial_lie lie = LIE_NONE + 1; lie < LIE_COUNT; lie++) {
		const struct trial_lies lies = { lie, slot };
		if (already >> lie & 1 || !is_lie(use, lie))
			continue;
		*told |= 1u << lie;
		if (trial_run(t, &lies, text) == TRIAL_FAILED)
			caught |= 1u << lie;
	}
	return caught;
}

static void lie_about_slot(enum key_kind kind, unsigned slot)
{
	enum { MAX = 4000, ENOUGH = 400 };
	unsigned caught = 0, told = 0, tried = 0;
	char text[512];

	/* Rare launches are needed to catch some lies: between 1 and 46 s pass until all are drawn. These are early,
	 * and do not depend on the slots that other processes have. */
	if (test_quick())
		trial_seed(1u << 16 | (unsigned)kind << 8 | slot);
	for (unsigned i = 0; i < MAX && tried < ENOUGH && (!told || caught != told); i++) {
		struct trial t;
		trial_draw_launch(&t, kind);
		if (slot >= template_args(&t.key) || !(kernel_use(&t.key, slot).access & KERNEL_UPDATE) ||
		    trial_run(&t, NULL, text) != TRIAL_PASSED)
			continue;
		caught |= lies_caught(&t, slot, caught, &told);
		tried++;
	}
	if (caught != told)
		fail_msg("%s, slot %u: of lies %x about it, only %x are caught", kind_name(kind), slot, told, caught);
}

static void test_lies(void **state)
{
	unsigned round = 0;

	for (int kind = KEY_NONE + 1; kind < KEY_KIND_COUNT; kind++) {
		const struct key key = { .kind = (uint8_t)kind };
		for (unsigned slot = 0; is_kind(kind) && slot < template_args(&key); slot++)
			if (!test_quick() || test_mine(round++))
				lie_about_slot((enum key_kind)kind, slot);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinds), cmocka_unit_test(test_lies) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
