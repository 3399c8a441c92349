/* tests/jit/every_target.c - see every_target.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/store/execmem.h"
#include "jit/target.h"
#include "tests/jit/every_target.h"
#include "tests/jit/ptx_call.h"
#include "tests/jit/rdna_call.h"

enum { SEED = 1, WAVES = 8 };
typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

static struct ptx_card *card[2]; /* sm80, sm90 */

void every_target_open(void)
{
	struct error err = { 0 };

	for (unsigned k = 0; k < 2; k++)
		if (!(card[k] = ptx_card_open(k ? 90 : 80, &err)))
			fail_msg("%s", err.text);
}

void every_target_close(void)
{
	for (unsigned k = 0; k < 2; k++)
		ptx_card_close(card[k]);
}

struct trial {
	const struct target *target;
	const struct ir *ir;
	const void *in;
	size_t in_bytes;
	int64_t end;
	enum every_nans nans;
	const char *what;
};

static struct random_ir_buffers *buffers_of(const struct trial *t)
{
	struct random_ir_buffers *b = random_ir_buffers_new(SEED);

	memcpy(b->in, t->in, t->in_bytes);
	return b;
}

static bool is_nan(uint64_t bits, bool wide)
{
	return wide ? (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000) : (bits & INT32_MAX) > 0x7f800000;
}

static void compare(const struct trial *t, const struct random_ir_buffers *want, const struct random_ir_buffers *got)
{
	const size_t step = t->nans == EVERY_NANS_OF_8 ? 8 : 4;

	for (size_t k = 0; k < sizeof want->out; k += step) {
		uint64_t w = 0, g = 0;
		memcpy(&w, want->out + k, step);
		memcpy(&g, got->out + k, step);
		if (w == g || (t->nans != EVERY_EXACT && is_nan(w, step == 8) && is_nan(g, step == 8)))
			continue;
		if (getenv("JITRUN_SHOW"))
			ir_print(t->ir, stderr);
		fail_msg("%s, %s: byte %zu of the output begins %0*llx, the interpreter says %0*llx", t->target->name,
		         t->what, k, (int)step * 2, (unsigned long long)g, (int)step * 2, (unsigned long long)w);
	}
	assert_memory_equal(want->in, got->in, sizeof want->in);
}

static bool run_x86(const struct trial *t, const struct object *o, struct random_ir_buffers *b, struct error *err)
{
	void *code = execmem_map(o->code, o->code_bytes, err);
	kernel_fn fn;

	if (!code)
		return false;
	memcpy(&fn, &code, sizeof fn);
	fn(b->arg, 0, t->end);
	execmem_unmap(code, o->code_bytes);
	return true;
}

static bool run_rdna(const struct trial *t, const struct object *o, struct random_ir_buffers *b, struct error *err)
{
	enum rdna_gen gen = 0;

	while (strcmp(rdna_call_targets[gen], t->target->name) != 0)
		gen++;
	const struct rdna_call c = {
		.object = o,
		.gen = gen,
		.waves = 1,
		.arg = b->arg,
		.n_args = 4,
		.end = t->end,
		.memory = { { b->in, sizeof b->in, false },
		            { b->out, sizeof b->out, true },
		            { b->pointer, sizeof b->pointer, false } }
	};
	return rdna_call(&c, &(struct sim_options){ .memory = SIM_MEMORY_RANDOM, .seed = 3, .perturb = 77 }, err);
}

static bool run(const struct trial *t, const struct object *o, struct random_ir_buffers *b, struct error *err)
{
	return t->target->backend == &backend_x86 ? run_x86(t, o, b, err)
	       : t->target->backend == &backend_rdna
	               ? run_rdna(t, o, b, err)
	               : ptx_call(card[t->target->name[2] == '9'], o, 1, b, 0, t->end, err);
}

static void check(const struct trial *t, const struct compile_options *options)
{
	const bool is_x86 = t->target->backend == &backend_x86;
	const struct target_cpu cpu = target_this_cpu();
	struct error err = { 0 };
	struct object o;

	if (!compile_ir(&o, t->ir, t->target, options, NULL, &err))
		fail_msg("%s, %s: %s", t->target->name, t->what, err.text);
	if (!is_x86 || target_runs(&cpu, t->target, NULL)) {
		struct random_ir_buffers *want = buffers_of(t), *got = buffers_of(t);
		ir_interp(t->ir, want->arg, 0, t->end);
		if (!run(t, &o, got, &err))
			fail_msg("%s, %s: %s", t->target->name, t->what, err.text);
		compare(t, want, got);
		free(want);
		free(got);
	}
	object_free(&o);
}

/* x86, and one card of each kind. */
static bool is_one_of_kind(const struct target *t)
{
	bool is = t->backend == &backend_x86 || t->id == TARGET_SM80 || t->id == TARGET_SM90;

	for (enum rdna_gen gen = 0; gen < RDNA_GEN_COUNT; gen++)
		is |= strcmp(rdna_call_targets[gen], t->name) == 0;
	return is && (!getenv("JITRUN_ONLY") || strstr(t->name, getenv("JITRUN_ONLY")));
}

static void begin_ir(struct ir *b, const struct target *t)
{
	ir_init(b, t->lanes);
	b->waves = t->backend == &backend_x86 ? 1 : WAVES;
}

void every_target_check(void (*build)(struct ir *b, const void *user), const void *user, const void *in,
                        size_t in_bytes, int64_t end, enum every_nans nans, const char *what)
{
	static const struct compile_options all = { .verify_passes = true }, small = {
		.verify_passes = true, .max_vector_regs = 5, .max_gprs = 5, .max_mask_regs = 2, .seed = 9
	};

	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		struct trial t = { &target_table[id], NULL, in, in_bytes, end, nans, what };
		struct ir b;
		if (!is_one_of_kind(t.target))
			continue;
		begin_ir(&b, t.target);
		build(&b, user);
		t.ir = &b;
		check(&t, &all);
		if (t.target->backend == &backend_x86)
			check(&t, &small);
		ir_free(&b);
	}
}

void every_card_refuses(void (*build)(struct ir *b), const char *why)
{
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		struct trial t = { &target_table[id], NULL, "", 0, 1, EVERY_EXACT, why };
		struct random_ir_buffers *x;
		struct error err = { 0 };
		struct object o;
		struct ir b;
		if (!is_one_of_kind(t.target) || t.target->backend == &backend_x86)
			continue;
		if (t.target->backend == &backend_ptx && getenv("JITRUN_TEST_CUDA")) {
			printf("# skipped: a real card does not notice\n");
			continue;
		}
		begin_ir(&b, t.target);
		build(&b);
		t.ir = &b;
		x = buffers_of(&t);
		assert_true(compile_ir(&o, &b, t.target, NULL, NULL, &err));
		if (run(&t, &o, x, &err) || !strstr(err.text, why))
			fail_msg("%s says \"%s\", expected: %s", t.target->name, err.text, why);
		free(x);
		object_free(&o);
		ir_free(&b);
	}
}
