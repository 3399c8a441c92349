/* tests/jit/t_rdna_program.c - the driver and linked programs, run in the simulator with functions assembled by hand:
 * shares, barriers, LDS, launches of some of the commands, on every generation, in every memory mode, with races
 * watched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "encoders/rdna.h"
#include "jit/rdna/lir.h"
#include "jit/rdna/program.h"
#include "sim/sim.h"

static const char *const targets[] = { "gfx1030", "gfx1101", "gfx1150", "gfx1200" };
enum { TARGETS = sizeof targets / sizeof *targets, WAVES = RDNA_PROGRAM_WAVES };

/* ---- functions: argument slots are input, output and the number of units; a unit is 32 words, and reads the words of
 * unit n-1-u */

enum { IN = 16, OUT = 18, UNITS = 20, U = 22, OTHER = 24, T = 26 };
enum function { VECTOR, SCALAR, SHARED, LOCAL, FUNCTIONS };

static void scalar(struct rdna *r, enum rdna_op op, unsigned d, struct rdna_operand a, struct rdna_operand b)
{
	rdna_put2(r, op, rdna_s(d), a, b);
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

static void wait(struct rdna *r, bool loads)
{
	if (r->gen < RDNA_GFX12) {
		rdna_put_imm(r, RDNA_S_WAITCNT, rdna_waitcnt(r->gen, loads ? 0 : -1, -1, 0));
		return;
	}
	if (loads)
		rdna_put_imm(r, RDNA_S_WAIT_LOADCNT, 0);
	rdna_put_imm(r, RDNA_S_WAIT_KMCNT, 0);
	rdna_put_imm(r, RDNA_S_WAIT_DSCNT, 0);
}

static void barrier(struct rdna *r)
{
	wait(r, false);
	if (r->gen < RDNA_GFX12) {
		rdna_put0(r, RDNA_S_BARRIER);
		return;
	}
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_BARRIER_SIGNAL, .s = { rdna_imm(-1) } });
	rdna_put_imm(r, RDNA_S_BARRIER_WAIT, 0xffff);
}

static void lds(struct rdna *r, enum rdna_op op, unsigned v, unsigned address)
{
	struct rdna_ins i = { .op = op, .s = { rdna_v(address) } };
	if (op == RDNA_DS_LOAD_B32)
		i.d[0] = rdna_v(v);
	else
		i.s[1] = rdna_v(v);
	rdna_put(r, &i);
}

static void global(struct rdna *r, enum rdna_op op, unsigned v, unsigned address, unsigned base)
{
	struct rdna_ins i = { .op = op, .s = { rdna_v(address) }, .saddr = rdna_sn(base, 2) };
	if (op == RDNA_GLOBAL_LOAD_B32)
		i.d[0] = rdna_v(v);
	else
		i.s[1] = rdna_v(v);
	rdna_put(r, &i);
}

/* v0 = 4 * lane */
static void enter(struct rdna *r)
{
	for (unsigned i = 0; i < 2; i++)
		rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_LOAD_B64,
		                                .d = { rdna_sn(IN + 2 * i, 2) },
		                                .s = { rdna_sn(RDNA_ABI_ARG, 2) },
		                                .offset = (int)(8 * i) });
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_LOAD_B32,
	                                .d = { rdna_s(UNITS) },
	                                .s = { rdna_sn(RDNA_ABI_ARG, 2) },
	                                .offset = 16 });
	rdna_put2(r, RDNA_V_MBCNT_LO_U32_B32, rdna_v(0), rdna_imm(-1), rdna_imm(0));
	rdna_put2(r, RDNA_V_LSHLREV_B32, rdna_v(0), rdna_imm(2), rdna_v(0));
	wait(r, false);
	scalar(r, RDNA_S_ADD_CO_U32, U, rdna_s(RDNA_ABI_BEGIN), rdna_imm(0));
}

static void reversed(struct rdna *r)
{
	scalar(r, RDNA_S_SUB_CO_U32, OTHER, rdna_s(UNITS), rdna_s(U));
	scalar(r, RDNA_S_SUB_CO_U32, OTHER, rdna_s(OTHER), rdna_imm(1));
	scalar(r, RDNA_S_LSHL_B32, OTHER, rdna_s(OTHER), rdna_imm(7));
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(1), rdna_s(OTHER), rdna_v(0));
}

/* v2 to unit U (times 8, plus the wave, when shared) */
static void leave(struct rdna *r, int loop, bool shared)
{
	scalar(r, RDNA_S_LSHL_B32, T, rdna_s(U), rdna_imm(shared ? 10 : 7));
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(3), rdna_s(T), rdna_v(shared ? 5 : 0));
	global(r, RDNA_GLOBAL_STORE_B32, 2, 3, OUT);
	scalar(r, RDNA_S_ADD_CO_U32, U, rdna_s(U), rdna_imm(1));
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_CMP_LT_I32, .s = { rdna_s(U), rdna_s(RDNA_ABI_END) } });
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, loop);
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_SETPC_B64, .s = { rdna_sn(RDNA_ABI_RETURN, 2) } });
}

/* v5 = 4 * lane + size * wave; the functions cut LDS differently, so that one may not begin while the other runs */
static void own_lds(struct rdna *r, unsigned log_size)
{
	scalar(r, RDNA_S_LSHL_B32, T, rdna_s(RDNA_ABI_WAVE), rdna_imm(log_size));
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(5), rdna_s(T), rdna_v(0));
}

/* A word from the next wave, by LDS. */
static void pass_on(struct rdna *r)
{
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(2), rdna_s(RDNA_ABI_WAVE), rdna_v(2));
	lds(r, RDNA_DS_STORE_B32, 2, 5);
	barrier(r);
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(4), rdna_imm(128), rdna_v(5));
	rdna_put2(r, RDNA_V_AND_B32, rdna_v(4), rdna_imm(1023), rdna_v(4));
	lds(r, RDNA_DS_LOAD_B32, 2, 4);
	barrier(r);
}

/* A word from the lane at the other end, by LDS. */
static void turn_round(struct rdna *r)
{
	lds(r, RDNA_DS_STORE_B32, 2, 5);
	rdna_put2(r, RDNA_V_XOR_B32, rdna_v(4), rdna_imm(124), rdna_v(5));
	wait(r, false);
	lds(r, RDNA_DS_LOAD_B32, 2, 4);
	wait(r, false);
}

static struct object assemble(enum function f, enum rdna_gen gen)
{
	struct rdna r;

	rdna_init(&r, gen);
	enter(&r);
	own_lds(&r, f == LOCAL ? 8 : 7);
	int loop = rdna_label(&r);
	rdna_bind(&r, loop);
	reversed(&r);
	if (f == SCALAR) {
		rdna_put(&r, &(struct rdna_ins){ .op = RDNA_S_LOAD_B32,
		                                 .d = { rdna_s(T + 1) },
		                                 .s = { rdna_sn(IN, 2) },
		                                 .saddr = rdna_s(OTHER) });
		wait(&r, false);
		rdna_put2(&r, RDNA_V_ADD_NC_U32, rdna_v(2), rdna_s(T + 1), rdna_v(0));
	} else {
		global(&r, RDNA_GLOBAL_LOAD_B32, 2, 1, IN);
		wait(&r, true);
	}
	if (f == VECTOR)
		rdna_put2(&r, RDNA_V_ADD_NC_U32, rdna_v(2), rdna_imm(1), rdna_v(2));
	if (f == SHARED)
		pass_on(&r);
	if (f == LOCAL)
		turn_round(&r);
	leave(&r, loop, f == SHARED);
	if (!rdna_finish(&r))
		fail_msg("function %d: %s", (int)f, r.error);
	struct object o = { .code = r.code,
		            .code_bytes = (uint32_t)r.size,
		            .vector_regs = 6,
		            .scalar_regs = 30,
		            .shared_bytes = f == SHARED ? 1024 : 0,
		            .frame_bytes = f == LOCAL ? 256 : 0,
		            .cooperative = f == SHARED };
	r.code = NULL;
	rdna_free(&r);
	return o;
}

/* What a function does to n units. */
static void expect(enum function f, const uint32_t *in, uint32_t *out, unsigned n)
{
	for (unsigned u = 0; u < n; u++)
		for (unsigned l = 0; l < 32; l++) {
			const uint32_t *from = in + (n - 1 - u) * 32;
			if (f == SHARED)
				for (unsigned w = 0; w < WAVES; w++)
					out[(u * WAVES + w) * 32 + l] = from[l] + (w + 1) % WAVES;
			else
				out[u * 32 + l] = f == SCALAR  ? from[0] + 4 * l
				                  : f == LOCAL ? from[31 - l]
				                               : from[l] + 1;
		}
}

/* ---- programs */

enum { MOST_UNITS = 160, STEPS = 9, WORDS = MOST_UNITS * 32 * WAVES };

struct bench {
	struct sim_device *dev;
	struct sim_object *object;
	uint64_t offset[FUNCTIONS];
	uint32_t *data[STEPS][FUNCTIONS], *want[STEPS][FUNCTIONS], *input; /* what each command of each step makes */
	uint64_t arg[STEPS][FUNCTIONS][3];
	struct rdna_command command[STEPS * FUNCTIONS];
	uint32_t arrivals;
};

static void map(struct bench *b, void *p, size_t size, bool writable)
{
	struct error err = { 0 };
	if (!sim_map(b->dev, p, size, "test", writable, &err))
		fail_msg("%s", err.text);
}

static uint32_t *words(struct bench *b)
{
	uint32_t *p = calloc(WORDS, sizeof *p);
	assert_non_null(p);
	map(b, p, WORDS * sizeof *p, true);
	return p;
}

static struct bench *open_bench(const char *target)
{
	struct bench *b = calloc(1, sizeof *b);
	struct object f[FUNCTIONS];
	const struct object *list[FUNCTIONS];
	struct error err = { 0 };
	uint8_t *bytes, *again = NULL;
	size_t size, size_again = 0;

	assert_non_null(b);
	for (int i = 0; i < FUNCTIONS; i++) {
		f[i] = assemble((enum function)i, rdna_gen_of(target));
		list[i] = &f[i];
	}
	bool ok = rdna_program_make(&bytes, &size, target_find(target), list, FUNCTIONS, b->offset, &err) &&
	          rdna_program_make(&again, &size_again, target_find(target), list, FUNCTIONS, b->offset, &err) &&
	          (b->dev = sim_open(target, &err)) && (b->object = sim_load(b->dev, bytes, size, &err));
	if (!ok)
		fail_msg("%s: %s", target, err.text);
	assert_true(size == size_again && memcmp(bytes, again, size) == 0);
	const struct sim_kernel *k = sim_find(b->object, RDNA_PROGRAM_KERNEL);
	assert_non_null(k);
	assert_int_equal(k->lds_size, WAVES * 256);
	assert_int_equal(k->kernarg_size, sizeof(struct rdna_program_args));
	free(bytes);
	free(again);
	for (int i = 0; i < FUNCTIONS; i++)
		object_free(&f[i]);
	b->input = words(b);
	for (int s = 0; s < STEPS; s++)
		for (int i = 0; i < FUNCTIONS; i++) {
			b->data[s][i] = words(b);
			b->want[s][i] = calloc(WORDS, sizeof(uint32_t));
			assert_non_null(b->want[s][i]);
		}
	map(b, b->arg, sizeof b->arg, false);
	map(b, b->command, sizeof b->command, false);
	map(b, &b->arrivals, sizeof b->arrivals, true);
	return b;
}

static void close_bench(struct bench *b)
{
	sim_unload(b->object);
	sim_close(b->dev);
	free(b->input);
	for (int s = 0; s < STEPS; s++)
		for (int i = 0; i < FUNCTIONS; i++) {
			free(b->data[s][i]);
			free(b->want[s][i]);
		}
	free(b);
}

/* Every step runs all functions on what some function of the step before made, in an order that the seed chooses; only
 * its last command has a barrier. */
static void build(struct bench *b, unsigned units, uint32_t workgroups, unsigned seed)
{
	const uint32_t *from = b->input, *want = b->input;

	for (unsigned i = 0; i < WORDS; i++)
		b->input[i] = i * 2654435761u + seed;
	for (unsigned s = 0; s < STEPS; s++) {
		for (unsigned k = 0; k < FUNCTIONS; k++) {
			unsigned f = (k * (seed & 1 ? 3 : 1) + seed + s) % FUNCTIONS,
				 shares = workgroups * (f == SHARED ? 1 : WAVES);
			memset(b->data[s][f], 0, WORDS * sizeof(uint32_t));
			memset(b->want[s][f], 0, WORDS * sizeof(uint32_t));
			expect((enum function)f, want, b->want[s][f], units);
			uint64_t *a = b->arg[s][f];
			a[0] = (uintptr_t)from;
			a[1] = (uintptr_t)b->data[s][f];
			a[2] = units;
			b->command[s * FUNCTIONS + k] = (struct rdna_command){
				.function = b->offset[f],
				.arg = (uintptr_t)a,
				.per = units / shares,
				.rest = units % shares,
				.flags = (f == SHARED ? RDNA_COMMAND_COOPERATIVE : 0) |
				         (f == SHARED || f == LOCAL ? RDNA_COMMAND_WORKGROUP_BARRIER : 0) |
				         (k == FUNCTIONS - 1 ? RDNA_COMMAND_BARRIER : 0)
			};
		}
		unsigned next = (seed / 4 + s) % FUNCTIONS;
		from = b->data[s][next];
		want = b->want[s][next];
	}
}

static bool launch(struct bench *b, uint32_t first, uint32_t end, uint32_t workgroups, const struct sim_options *o,
                   struct error *err)
{
	const struct rdna_program_args args = {
		.commands = (uintptr_t)b->command,
		.first = first,
		.end = end,
		.arrivals = (uintptr_t)&b->arrivals,
		.workgroups = workgroups
	};
	const uint32_t groups[3] = { workgroups, 1, 1 }, size[3] = { 32 * WAVES, 1, 1 };

	b->arrivals = 0;
	*err = (struct error){ 0 };
	return sim_dispatch(b->dev, sim_find(b->object, RDNA_PROGRAM_KERNEL), &args, sizeof args, groups, size, o, err);
}

static bool right(const struct bench *b)
{
	for (int s = 0; s < STEPS; s++)
		for (int f = 0; f < FUNCTIONS; f++)
			if (memcmp(b->data[s][f], b->want[s][f], WORDS * sizeof(uint32_t)) != 0)
				return false;
	return true;
}

/* ---- tests */

static void test_programs(void **unused)
{
	static const struct {
		unsigned units;
		uint32_t workgroups;
	} size[] = { { 1, 8 }, { 5, 3 }, { 64, 8 }, { 133, 13 }, { 160, 1 }, { 97, 24 } };
	(void)unused;

	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(targets[t]);
		for (unsigned i = 0; i < 3 * sizeof size / sizeof *size; i++) {
			struct sim_counters c = { 0 };
			struct sim_options o = { .memory = (enum sim_memory_mode)(i % 3),
				                 .seed = 100 * t + i,
				                 .races = true,
				                 .counters = &c };
			struct error err;
			uint32_t groups = size[i / 3].workgroups;
			build(b, size[i / 3].units, groups, i);
			if (!launch(b, 0, STEPS * FUNCTIONS, groups, &o, &err))
				fail_msg("%s, %u units, %u workgroups, seed %u: %s", targets[t], size[i / 3].units,
				         groups, i, err.text);
			assert_true(right(b));
			assert_int_equal(b->arrivals, (STEPS - 1) * groups); /* none behind the last command */
			assert_int_equal(c.by_class[SIM_CLASS_ATOMIC], (STEPS - 1) * groups);
		}
		close_bench(b);
	}
}

/* The same by more launches: a step, a command; and none of the commands. */
static void test_launches(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(targets[t]);
		for (uint32_t n = 1; n <= FUNCTIONS; n += FUNCTIONS - 1) {
			struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .seed = n, .races = true };
			struct error err;
			build(b, 75, 8, t);
			for (uint32_t i = 0; i < STEPS * FUNCTIONS; i += n)
				if (!launch(b, i, i + n, 8, &o, &err) || !launch(b, i, i, 8, &o, &err))
					fail_msg("%s, commands %u to %u: %s", targets[t], i, i + n, err.text);
			assert_true(right(b));
		}
		close_bench(b);
	}
}

/* A function that stores begin and end at 16 times the wave's number. */
static struct object reporter(enum rdna_gen gen)
{
	struct rdna r;

	rdna_init(&r, gen);
	rdna_put(&r, &(struct rdna_ins){
			     .op = RDNA_S_LOAD_B64, .d = { rdna_sn(IN, 2) }, .s = { rdna_sn(RDNA_ABI_ARG, 2) } });
	for (unsigned i = 0; i < 4; i++)
		rdna_put1(&r, RDNA_V_MOV_B32, rdna_v(i), rdna_s(RDNA_ABI_BEGIN + i));
	rdna_put2(&r, RDNA_V_LSHLREV_B32, rdna_v(4), rdna_imm(4), rdna_s(RDNA_ABI_WAVE));
	wait(&r, false);
	rdna_put(&r,
	         &(struct rdna_ins){
			 .op = RDNA_GLOBAL_STORE_B128, .s = { rdna_v(4), rdna_vn(0, 4) }, .saddr = rdna_sn(IN, 2) });
	rdna_put(&r, &(struct rdna_ins){ .op = RDNA_S_SETPC_B64, .s = { rdna_sn(RDNA_ABI_RETURN, 2) } });
	if (!rdna_finish(&r))
		fail_msg("%s", r.error);
	struct object o = { .code = r.code, .code_bytes = (uint32_t)r.size, .vector_regs = 5, .scalar_regs = 18 };
	r.code = NULL;
	rdna_free(&r);
	return o;
}

/* Numbers of units beyond 32 bits, below 0 too, reach the functions as they are. */
static void test_wide_units(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		static uint64_t arg;
		static int64_t got[WAVES][2];
		static struct rdna_command command;
		static uint32_t arrivals;
		struct object f = reporter(rdna_gen_of(targets[t]));
		const struct object *list[] = { &f };
		const struct rdna_program_args args = {
			.commands = (uintptr_t)&command, .end = 1, .arrivals = (uintptr_t)&arrivals, .workgroups = 1
		};
		struct sim_options o = { .memory = SIM_MEMORY_AT_WAIT };
		struct bench b = { 0 };
		struct error err = { 0 };
		uint8_t *bytes;
		size_t size;

		command = (struct rdna_command){
			.arg = (uintptr_t)&arg, .begin = -5000000000, .per = 4000000000u, .rest = 5
		};
		arg = (uintptr_t)got;
		if (!rdna_program_make(&bytes, &size, target_find(targets[t]), list, 1, &command.function, &err) ||
		    !(b.dev = sim_open(targets[t], &err)) || !(b.object = sim_load(b.dev, bytes, size, &err)))
			fail_msg("%s", err.text);
		map(&b, got, sizeof got, true);
		map(&b, &arg, sizeof arg, false);
		map(&b, &command, sizeof command, false);
		if (!sim_dispatch(b.dev, sim_find(b.object, RDNA_PROGRAM_KERNEL), &args, sizeof args,
		                  (const uint32_t[]){ 1, 1, 1 }, (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err))
			fail_msg("%s: %s", targets[t], err.text);
		for (int64_t w = 0; w < WAVES; w++) {
			assert_true(got[w][0] == command.begin + w * command.per + (w < 5 ? w : 5));
			assert_true(got[w][1] == got[w][0] + command.per + (w < 5));
		}
		sim_unload(b.object);
		sim_close(b.dev);
		free(bytes);
		object_free(&f);
	}
}

/* Without one of the barriers, or with one that does not wait for all, the simulator sees it. */
static void test_missing_barriers(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(targets[t]);
		unsigned raced = 0, wrong = 0;
		for (unsigned seed = 0; seed < 8; seed++) {
			struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .seed = seed, .races = true };
			struct error err;
			build(b, 120, 8, seed);
			b->command[FUNCTIONS - 1].flags &= ~(uint32_t)RDNA_COMMAND_BARRIER;
			raced += !launch(b, 0, STEPS * FUNCTIONS, 8, &o, &err);
			build(b, 120, 8, seed);
			for (int i = 0; i < STEPS * FUNCTIONS; i++)
				b->command[i].flags &= ~(uint32_t)RDNA_COMMAND_WORKGROUP_BARRIER;
			wrong += !launch(b, 0, STEPS * FUNCTIONS, 8, &o, &err) || !right(b);
		}
		assert_true(raced > 0);
		assert_true(wrong > 0);
		close_bench(b);
	}
}

/* Fewer workgroups in the launch than the arguments say: the barrier must not let them pass. */
static void test_all_are_waited_for(void **unused)
{
	struct bench *b = open_bench("gfx1101");
	struct sim_options o = { .stall_limit = 300000 };
	struct rdna_program_args args = { .commands = (uintptr_t)b->command,
		                          .end = STEPS * FUNCTIONS,
		                          .arrivals = (uintptr_t)&b->arrivals,
		                          .workgroups = 8 };
	struct error err = { 0 };
	(void)unused;

	build(b, 64, 8, 1);
	assert_false(sim_dispatch(b->dev, sim_find(b->object, RDNA_PROGRAM_KERNEL), &args, sizeof args,
	                          (const uint32_t[]){ 7, 1, 1 }, (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err));
	assert_non_null(strstr(err.text, "cannot complete"));
	assert_int_equal(b->arrivals, 7);
	close_bench(b);
}

/* How many workgroups of one compute unit are resident, for kernels of so many registers and bytes of LDS. */
static void test_room(void **unused)
{
	static const struct {
		const char *target;
		unsigned vgprs, lds, groups;
	} cases[] = {
		{ "gfx1030", 0, 0, 4 },
		{ "gfx1030", 64, 0, 4 },
		{ "gfx1030", 65, 0, 3 },
		{ "gfx1030", 128, 0, 2 },
		{ "gfx1030", 129, 0, 1 },
		{ "gfx1030", 256, 0, 1 },
		{ "gfx1100", 96, 0, 4 },
		{ "gfx1100", 97, 0, 3 },
		{ "gfx1100", 120, 0, 3 },
		{ "gfx1100", 121, 0, 2 },
		{ "gfx1100", 192, 0, 2 },
		{ "gfx1100", 193, 0, 1 },
		{ "gfx1102", 128, 0, 2 },
		{ "gfx1102", 129, 0, 1 },
		{ "gfx1201", 192, 0, 2 },
		{ "gfx1201", 193, 0, 1 },
		{ "gfx1201", 8, 1, 4 },
		{ "gfx1201", 8, 16 << 10, 4 },
		{ "gfx1201", 8, (16 << 10) + 1, 3 },
		{ "gfx1201", 8, 21 << 10, 3 },
		{ "gfx1201", 8, (21 << 10) + 1, 2 },
		{ "gfx1201", 8, (32 << 10) + 1, 1 },
		{ "gfx1201", 8, 64 << 10, 1 },
		{ "gfx1201", 193, 1024, 1 },
	};
	(void)unused;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned units = 1; units <= 60; units += 59)
			if (backend_rdna.resident(target_find(cases[i].target), units, cases[i].vgprs, cases[i].lds) !=
			    units * cases[i].groups)
				fail_msg("%s, %u registers, %u bytes: not %u workgroups on a unit", cases[i].target,
				         cases[i].vgprs, cases[i].lds, cases[i].groups);
}

/* As many workgroups as are resident meet at a barrier; with one more, which gets no place before another ends, nobody
 * gets through. */
static void check_room(const char *target, uint16_t vgprs, uint32_t lds, unsigned groups)
{
	static uint64_t arg;
	static int64_t got[WAVES][2];
	static struct rdna_command command[2];
	static uint32_t arrivals;
	struct object f = reporter(rdna_gen_of(target));
	const struct object *list[] = { &f };
	struct bench b = { 0 };
	struct error err = { 0 };
	uint64_t offset;
	uint8_t *bytes;
	size_t size;

	f.vector_regs = vgprs;
	f.shared_bytes = lds;
	arg = (uintptr_t)got;
	if (!rdna_program_make(&bytes, &size, target_find(target), list, 1, &offset, &err) ||
	    !(b.dev = sim_open(target, &err)) || !(b.object = sim_load(b.dev, bytes, size, &err)))
		fail_msg("%s", err.text);
	const struct sim_kernel *k = sim_find(b.object, RDNA_PROGRAM_KERNEL);
	unsigned room = backend_rdna.resident(target_find(target), 2, k->vgprs, k->lds_size);
	assert_int_equal(room, 2 * groups);
	map(&b, got, sizeof got, true);
	map(&b, &arg, sizeof arg, false);
	map(&b, command, sizeof command, false);
	map(&b, &arrivals, sizeof arrivals, true);
	for (uint32_t n = room - 1; n <= room + 1; n++) {
		const struct rdna_program_args args = {
			.commands = (uintptr_t)command, .end = 2, .arrivals = (uintptr_t)&arrivals, .workgroups = n
		};
		const struct sim_options o = { .seed = n, .resident = room, .stall_limit = 300000 };
		command[0] = command[1] = (struct rdna_command){
			.function = offset, .arg = (uintptr_t)&arg, .rest = 1, .flags = RDNA_COMMAND_BARRIER
		};
		arrivals = 0;
		bool ok = sim_dispatch(b.dev, k, &args, sizeof args, (const uint32_t[]){ n, 1, 1 },
		                       (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err);
		if (ok != (n <= room))
			fail_msg("%s: %u workgroups where %u are resident: %s", target, n, room,
			         ok ? "all met" : err.text);
		assert_int_equal(arrivals, n < room ? n : room);
	}
	assert_non_null(strstr(err.text, "a barrier or spin loop that cannot complete"));
	sim_unload(b.object);
	sim_close(b.dev);
	free(bytes);
	object_free(&f);
}

static void test_too_many_for_a_barrier(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		check_room(targets[t], 40, 0, 4);
		check_room(targets[t], 100, 0, target_find(targets[t])->vector_file == 1024 ? 2 : 3);
		check_room(targets[t], 250, 0, 1);
		check_room(targets[t], 40, 30000, 2);
	}
}

static void test_refusals(void **unused)
{
	struct object f = { .code = (uint8_t *)"", .vector_regs = 1, .shared_bytes = 70000 };
	const struct object *list[] = { &f };
	struct error err = { 0 };
	uint8_t *bytes;
	uint64_t offset;
	size_t size;
	(void)unused;

	assert_false(rdna_program_make(&bytes, &size, target_find("avx2"), list, 0, &offset, &err));
	assert_non_null(strstr(err.text, "avx2"));
	assert_null(bytes);
	err = (struct error){ 0 };
	assert_false(rdna_program_make(&bytes, &size, target_find("gfx1100"), list, 1, &offset, &err));
	assert_non_null(strstr(err.text, "70000"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_wide_units),
		cmocka_unit_test(test_missing_barriers),
		cmocka_unit_test(test_all_are_waited_for),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_too_many_for_a_barrier),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests_name("rdna_program", tests, NULL, NULL);
}
