/* tests/jit/t_branches.c - ifs, breaks and masks: the interpreter against plain C, and every backend against it.
 *
 * x86 runs here, between pages that nobody may touch; cards are simulated, where memory that is not theirs traps. What
 * a mask leaves out lies there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "jit/compile.h"
#include "jit/store/execmem.h"
#include "jit/target.h"
#include "tests/jit/branch_kernels.h"
#include "tests/jit/ptx_call.h"
#include "tests/jit/rdna_call.h"
#include "tests/support/shared.h"

enum { WAVES = 8, PAGE = 4096, IN = BRANCH_WILD, OUT = 2 * BRANCH_WILD, ARENA = 4 * BRANCH_WILD };

/* What is read, and BRANCH_STORED bytes of what is written, in the midst of memory that nobody may touch. */
static uint8_t *arena;
static struct ptx_card *card[2]; /* sm80, sm90 */

static int open_all(void **state)
{
	struct error err = { 0 };

	arena = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED || mprotect(arena + IN, PAGE, PROT_READ | PROT_WRITE) ||
	    mprotect(arena + OUT, BRANCH_STORED, PROT_READ | PROT_WRITE))
		return -1;
	for (unsigned k = 0; k < 2; k++)
		if (!(card[k] = ptx_card_open(k ? 90 : 80, &err)))
			return -1;
	return 0;
}

static int close_all(void **state)
{
	for (unsigned k = 0; k < 2; k++)
		ptx_card_close(card[k]);
	return munmap(arena, ARENA);
}

/* --- one kernel on one target. t NULL: the interpreter. Results are in b->out, and nothing else of b has changed. */

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

struct made {
	const struct target *t;
	const struct ir *ir;
	struct object object;
	void *code; /* of x86, where this machine can run it */
};

static bool is_x86(const struct target *t) { return t && t->backend == &backend_x86; }

static void make(struct made *m, const struct target *t, const struct ir *ir)
{
	const struct compile_options options = { .verify_passes = true };
	const struct target_cpu cpu = target_this_cpu();
	struct error err = { 0 };

	*m = (struct made){ .t = t, .ir = ir };
	if (!ir_verify(ir, &err) || (t && !compile_ir(&m->object, ir, t, &options, NULL, &err)))
		fail_msg("%s: %s", t ? t->name : "the interpreter", err.text);
	if (is_x86(t) && target_runs(&cpu, t, NULL))
		m->code = execmem_map(m->object.code, m->object.code_bytes, &err);
}

static void drop(struct made *m)
{
	if (m->code)
		execmem_unmap(m->code, m->object.code_bytes);
	if (m->t)
		object_free(&m->object);
}

static void run_here(const struct made *m, struct random_ir_buffers *b, int64_t begin)
{
	const uint64_t arg[4] = { (uintptr_t)(arena + IN), (uintptr_t)(arena + OUT), (uintptr_t)b->pointer, b->arg[3] };
	kernel_fn fn;

	memcpy(arena + IN, b->in, PAGE);
	memcpy(arena + OUT, b->out, BRANCH_STORED);
	b->pointer[0] = arg[0];
	b->pointer[7] = arg[0] + PAGE;
	memcpy(&fn, &m->code, sizeof fn);
	if (m->code)
		fn(arg, begin, begin + 1);
	else
		ir_interp(m->ir, arg, begin, begin + 1);
	assert_memory_equal(b->in, arena + IN, PAGE);
	memcpy(b->out, arena + OUT, BRANCH_STORED);
}

static bool run_rdna(const struct made *m, struct random_ir_buffers *b, int64_t begin, struct error *err)
{
	enum rdna_gen gen = 0;

	while (strcmp(rdna_call_targets[gen], m->t->name) != 0)
		gen++;
	const struct rdna_call c = {
		.object = &m->object,
		.gen = gen,
		.waves = m->ir->cooperative ? m->ir->waves : 1,
		.arg = b->arg,
		.n_args = 4,
		.begin = begin,
		.end = begin + 1,
		.memory = { { b->in, sizeof b->in, false },
		            { b->out, sizeof b->out, true },
		            { b->pointer, sizeof b->pointer, false } }
	};
	return rdna_call(&c, &(struct sim_options){ .memory = SIM_MEMORY_RANDOM, .seed = 3, .perturb = 77 }, err);
}

/* False: this machine cannot. */
static bool run(const struct made *m, struct random_ir_buffers *b, int64_t begin)
{
	struct error err = { 0 };
	bool ok = true;

	if (is_x86(m->t) && !m->code)
		return false;
	if (!m->t || m->code)
		run_here(m, b, begin);
	else if (m->t->backend == &backend_rdna)
		ok = run_rdna(m, b, begin, &err);
	else
		ok = ptx_call(card[m->t->name[2] == '9'], &m->object, m->ir->cooperative ? m->ir->waves : 1, b, begin,
		              begin + 1, &err);
	if (!ok) {
		ir_print(m->ir, stderr);
		fail_msg("%s: %s", m->t->name, err.text);
	}
	return true;
}

/* The interpreter, and a target of each kind of code. */
static void each_target(void (*fn)(const struct target *t, unsigned lanes, unsigned waves))
{
	fn(NULL, 8, 1);
	fn(NULL, 16, 1);
	fn(NULL, 32, 1);
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		const struct target *t = &target_table[id];
		if (t->backend == &backend_x86)
			fn(t, t->lanes, 1);
	}
	for (enum rdna_gen gen = 0; gen < RDNA_GEN_COUNT; gen++)
		fn(target_find(rdna_call_targets[gen]), 32, WAVES);
	fn(target_find("sm80"), 32, WAVES);
	fn(target_find("sm90"), 32, WAVES);
}

static void begin_ir(struct ir *b, unsigned lanes, unsigned waves)
{
	ir_init(b, lanes);
	b->waves = waves;
}

static void compare(const struct made *m, const uint8_t *out, const void *expected, size_t bytes, const char *what)
{
	const uint8_t *want = expected;

	for (size_t k = 0; k < bytes; k++)
		if (out[k] != want[k]) {
			ir_print(m->ir, stderr);
			fail_msg("%s, %s: byte %zu is %02x, expected %02x", m->t ? m->t->name : "the interpreter", what,
			         k, out[k], want[k]);
		}
}

/* --- ifs and breaks */

static void check_branches(const struct target *t, unsigned lanes, unsigned waves)
{
	const int step = t && !is_x86(t) ? 17 : 1;
	uint32_t want[BRANCH_VECTORS * 32];
	char what[80];
	struct made m;
	struct ir b;

	begin_ir(&b, lanes, waves);
	branch_build(&b);
	make(&m, t, &b);
	for (int k = 0; k < 6 * 5 * 5 * 5; k += step) {
		const int64_t in[BRANCH_NUMBERS] = { k % 6 - 1, k / 6 % 5, k / 30 % 5 - 1, k / 150 - 1 };
		struct random_ir_buffers *x = random_ir_buffers_new(1);
		memcpy(x->in, in, sizeof in);
		branch_expect(in, lanes, want);
		snprintf(what, sizeof what, "%d %d %d %d", (int)in[0], (int)in[1], (int)in[2], (int)in[3]);
		if (run(&m, x, 0))
			compare(&m, x->out, want, BRANCH_VECTORS * lanes * 4, what);
		free(x);
	}
	drop(&m);
	ir_free(&b);
}

static void test_branches(void **state) { each_target(check_branches); }

static void check_waves(const struct target *t, unsigned lanes, unsigned waves)
{
	uint32_t want[WAVES * 32];
	struct random_ir_buffers *x = random_ir_buffers_new(5);
	struct made m;
	struct ir b;

	begin_ir(&b, lanes, waves);
	branch_build_waves(&b);
	make(&m, t, &b);
	branch_expect_waves((const uint32_t *)(const void *)x->in, waves, lanes, want);
	if (run(&m, x, 0))
		compare(&m, x->out, want, (size_t)waves * lanes * 4, "waves");
	drop(&m);
	ir_free(&b);
	free(x);
}

static void check_awaits(const struct target *t, unsigned lanes, unsigned waves)
{
	struct made m;
	struct ir b;

	begin_ir(&b, lanes, waves);
	branch_build_awaits(&b);
	make(&m, t, &b);
	for (int64_t begin = 0; begin < 2; begin++) {
		struct random_ir_buffers *x = random_ir_buffers_new(6), *want = random_ir_buffers_new(6);
		branch_expect_awaits(want->in, lanes, begin, want->out);
		if (run(&m, x, begin))
			compare(&m, x->out, want->out, sizeof x->out, begin ? "awaits" : "no awaits");
		free(x);
		free(want);
	}
	drop(&m);
	ir_free(&b);
}

static size_t find(const struct object *o, const char *what)
{
	const size_t n = strlen(what);

	for (size_t at = 0; at + n <= o->code_bytes; at++)
		if (memcmp(o->code + at, what, n) == 0)
			return at;
	fail_msg("there is no %s", what);
	return 0;
}

/* What was asked for before an if is looked at before it: a part that looks may not be run. */
static void test_await_before_if(void **state)
{
	static const char *const targets[] = { "sm80", "sm90" };

	for (unsigned k = 0; k < 2; k++) {
		struct made m;
		struct ir b;
		begin_ir(&b, 32, WAVES);
		ir_a arg = ir_arg(&b), in = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		ir_f f = ir_fawait(&b, in, 0, 0);
		ir_if(&b, ir_seq(&b, ir_begin(&b), ir_sconst(&b, 1)));
		ir_fstore(&b, out, f, 0, 0);
		ir_endif(&b);
		ir_fstore(&b, out, f, 128, 0);
		make(&m, target_find(targets[k]), &b);
		assert_true(find(&m.object, "vote.sync.any") < find(&m.object, "bra.uni"));
		drop(&m);
		ir_free(&b);
	}
}

static void check_changed_mask(const struct target *t, unsigned lanes, unsigned waves)
{
	struct random_ir_buffers *x = random_ir_buffers_new(7), *want = random_ir_buffers_new(7);
	struct made m;
	struct ir b;

	begin_ir(&b, lanes, waves);
	branch_build_changed_mask(&b);
	make(&m, t, &b);
	branch_expect_changed_mask(want->in, lanes, want->out);
	if (run(&m, x, 0))
		compare(&m, x->out, want->out, sizeof x->out, "a mask that changes");
	drop(&m);
	ir_free(&b);
	free(x);
	free(want);
}

static void test_changed_mask(void **state) { each_target(check_changed_mask); }

static void test_awaits(void **state) { each_target(check_awaits); }

static void test_waves(void **state) { each_target(check_waves); }

/* --- masks */

struct masked {
	const struct target *t;
	unsigned lanes;
};

static void check_masked(void *user, enum ir_op op, enum branch_mask which, unsigned n)
{
	static const int64_t some[] = { 0, 1, 4, 7, 0x5a, 0x0ff00f51 };
	const struct masked *how = user;
	char what[80];
	struct made m;
	struct ir b;

	begin_ir(&b, how->lanes, 1);
	branch_build_masked(&b, op, which, n);
	make(&m, how->t, &b);
	for (unsigned k = 0; k < sizeof some / sizeof *some; k++) {
		const int64_t t = which == BRANCH_BETWEEN ? some[k] : some[k] % how->lanes;
		struct random_ir_buffers *x = random_ir_buffers_new(k), *want = random_ir_buffers_new(k);
		for (unsigned at = 1; at < sizeof x->in; at += 2) { /* halves that are no NaN */
			x->in[at] &= 0xbf;
			want->in[at] &= 0xbf;
		}
		snprintf(what, sizeof what, "%s, mask %u, %u lanes, %d", ir_facts[op].name, (unsigned)which, n, (int)t);
		if (run(&m, x, t)) {
			want->pointer[7] = want->arg[0] + (x->pointer[7] - x->pointer[0]);
			branch_expect_masked(want, op, which, n, how->lanes, t, want->out);
			compare(&m, x->out, want->out, sizeof x->out, what);
		}
		free(x);
		free(want);
	}
	drop(&m);
	ir_free(&b);
}

static void check_masks(const struct target *t, unsigned lanes, unsigned waves)
{
	struct masked m = { t, lanes };

	(void)waves;
	branch_each_masked(lanes, check_masked, &m);
}

static void test_masks(void **state) { each_target(check_masks); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branches),     cmocka_unit_test(test_waves),
		cmocka_unit_test(test_awaits),       cmocka_unit_test(test_await_before_if),
		cmocka_unit_test(test_changed_mask), cmocka_unit_test(test_masks),
	};

	return cmocka_run_group_tests_name("t_branches", tests, open_all, close_all);
}
