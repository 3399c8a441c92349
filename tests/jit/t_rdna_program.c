/* tests/jit/t_rdna_program.c - the driver and linked programs, run in the simulator with functions assembled by hand:
 * shares, barriers, LDS, launches of some of the commands, on every generation, in every memory mode, with races
 * watched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "encoders/rdna.h"
#include "jit/rdna/lir.h"
#include "jit/rdna/program.h"
#include "sim/sim.h"
#include "tests/jit/rdna_mutant_tests.h"
#include "tests/jit/rdna_program_bench.h"
#include "tests/support/shared.h"

static void test_programs(void **unused)
{
	static const struct {
		unsigned units;
		uint32_t workgroups;
	} size[] = { { 1, 8 }, { 5, 3 }, { 64, 8 }, { 133, 13 }, { 160, 1 }, { 97, 24 } };
	(void)unused;

	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(program_targets[t]);
		for (unsigned i = 0; i < 3 * sizeof size / sizeof *size; i++) {
			if (!test_mine(t + i + i / 3))
				continue;
			struct sim_counters c = { 0 };
			struct sim_options o = { .memory = (enum sim_memory_mode)(i % 3),
				                 .seed = 100 * t + i,
				                 .races = true,
				                 .counters = &c };
			struct error err;
			uint32_t groups = size[i / 3].workgroups, before = b->sync.arrivals;
			build_program(b, size[i / 3].units, groups, i);
			if (!launch_program(b, 0, STEPS * FUNCTIONS, groups, &o, &err))
				fail_msg("%s, %u units, %u workgroups, seed %u: %s", program_targets[t],
				         size[i / 3].units, groups, i, err.text);
			assert_true(is_right(b));
			assert_true(b->sync.arrivals - before ==
			            (STEPS - 1) * groups); /* none behind the last command */
			assert_int_equal(c.by_class[SIM_CLASS_ATOMIC], (STEPS - 1) * groups);
		}
		close_bench(b);
	}
}

/* Each target has registers of its own to start with. */
static void test_targets(void **unused)
{
	(void)unused;
	for (int t = 0; t < TARGET_COUNT; t++) {
		if (target_table[t].backend != &backend_rdna)
			continue;
		struct bench *b = open_bench(target_table[t].name);
		struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .races = true };
		struct error err;
		build_program(b, 20, 3, (unsigned)t);
		if (!launch_program(b, 0, STEPS * FUNCTIONS, 3, &o, &err))
			fail_msg("%s: %s", target_table[t].name, err.text);
		assert_true(is_right(b));
		close_bench(b);
	}
}

/* The same by more launches: a step, a command; and none of the commands. */
static void test_launches(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(program_targets[t]);
		for (uint32_t n = 1; n <= FUNCTIONS; n += FUNCTIONS - 1) {
			struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .seed = n, .races = true };
			struct error err;
			build_program(b, 75, 8, t);
			for (uint32_t i = 0; i < STEPS * FUNCTIONS; i += n)
				if (!launch_program(b, i, i + n, 8, &o, &err) || !launch_program(b, i, i, 8, &o, &err))
					fail_msg("%s, commands %u to %u: %s", program_targets[t], i, i + n, err.text);
			assert_true(is_right(b));
		}
		close_bench(b);
	}
}

/* A function whose lane 0 stores begin and end at 16 times the wave's number. */
static struct object reporter(enum rdna_gen gen)
{
	struct rdna r;

	rdna_init(&r, gen);
	rdna_put(&r, &(struct rdna_ins){
			     .op = RDNA_S_LOAD_B64, .d = { rdna_sn(IN, 2) }, .s = { rdna_sn(RDNA_ABI_ARG, 2) } });
	for (unsigned i = 0; i < 4; i++)
		rdna_put1(&r, RDNA_V_MOV_B32, rdna_v(i), rdna_s(RDNA_ABI_BEGIN + i));
	rdna_put2(&r, RDNA_V_LSHLREV_B32, rdna_v(4), rdna_imm(4), rdna_s(RDNA_ABI_WAVE));
	put_wait(&r, false);
	rdna_put1(&r, RDNA_S_MOV_B32, rdna_s(RDNA_EXEC_LO), rdna_imm(1));
	rdna_put(&r,
	         &(struct rdna_ins){
			 .op = RDNA_GLOBAL_STORE_B128, .s = { rdna_v(4), rdna_vn(0, 4) }, .saddr = rdna_sn(IN, 2) });
	rdna_put1(&r, RDNA_S_MOV_B32, rdna_s(RDNA_EXEC_LO), rdna_imm(-1));
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
		static struct rdna_program_sync sync;
		struct object f = reporter(rdna_gen_of(program_targets[t]));
		const struct object *list[] = { &f };
		const struct rdna_program_args args = {
			.commands = (uintptr_t)&command, .end = 1, .sync = (uintptr_t)&sync, .workgroups = 1, .polls = 1
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
		if (!rdna_program_make(&bytes, &size, target_find(program_targets[t]), list, 1, &command.function,
		                       &err) ||
		    !(b.dev = sim_open(program_targets[t], &err)) || !(b.object = sim_load(b.dev, bytes, size, &err)))
			fail_msg("%s", err.text);
		map_memory(&b, got, sizeof got, true);
		map_memory(&b, &arg, sizeof arg, false);
		map_memory(&b, &command, sizeof command, false);
		if (!sim_dispatch(b.dev, sim_find(b.object, RDNA_PROGRAM_KERNEL), &args, sizeof args,
		                  (const uint32_t[]){ 1, 1, 1 }, (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err))
			fail_msg("%s: %s", program_targets[t], err.text);
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
	for (unsigned t = 0; t < (test_small_share() ? 1 : TARGETS); t++) {
		struct bench *b = open_bench(program_targets[t]);
		unsigned raced = 0, wrong = 0;
		for (unsigned seed = 0; seed < 8; seed++) {
			struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .seed = seed, .races = true };
			struct error err;
			build_program(b, 120, 8, seed);
			b->command[FUNCTIONS - 1].flags &= ~(uint32_t)RDNA_COMMAND_BARRIER;
			raced += !launch_program(b, 0, STEPS * FUNCTIONS, 8, &o, &err);
			build_program(b, 120, 8, seed);
			for (int i = 0; i < STEPS * FUNCTIONS; i++)
				b->command[i].flags &= ~(uint32_t)RDNA_COMMAND_WORKGROUP_BARRIER;
			wrong += !launch_program(b, 0, STEPS * FUNCTIONS, 8, &o, &err) || !is_right(b);
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
		                          .sync = (uintptr_t)&b->sync,
		                          .workgroups = 8,
		                          .polls = BENCH_POLLS };
	struct error err = { 0 };
	(void)unused;

	build_program(b, 64, 8, 1);
	assert_false(sim_dispatch(b->dev, sim_find(b->object, RDNA_PROGRAM_KERNEL), &args, sizeof args,
	                          (const uint32_t[]){ 7, 1, 1 }, (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err));
	assert_non_null(strstr(err.text, "cannot complete"));
	assert_int_equal(b->sync.arrivals, 7);
	close_bench(b);
}

/* A barrier that cannot complete: the launch ends all the same, and the first workgroup that gives up says where. The
 * commands from `first` on, with one workgroup fewer than the arguments say, or with one that gets no place. */
static void give_up(struct bench *b, uint32_t first, uint32_t groups, uint32_t polls, const struct sim_options *o)
{
	const struct rdna_program_args args = {
		.commands = (uintptr_t)b->command,
		.first = first,
		.end = STEPS * FUNCTIONS,
		.sync = (uintptr_t)&b->sync,
		.workgroups = 8,
		.polls = polls,
		.arrivals = b->sync.arrivals
	};
	struct error err = { 0 };

	if (!sim_dispatch(b->dev, sim_find(b->object, RDNA_PROGRAM_KERNEL), &args, sizeof args,
	                  (const uint32_t[]){ groups, 1, 1 }, (const uint32_t[]){ 32 * WAVES, 1, 1 }, o, &err))
		fail_msg("%s", err.text);
	assert_int_equal(b->sync.left, STEPS * FUNCTIONS - first - FUNCTIONS);
	assert_true(b->sync.workgroup < groups);
	assert_in_range(b->sync.missing, 1, 7);
	b->sync = (struct rdna_program_sync){ 0 };
}

static void test_gives_up(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(program_targets[t]);
		for (unsigned i = 0; i < 6; i++) {
			struct sim_counters c = { 0 };
			struct sim_options o = { .memory = (enum sim_memory_mode)(i % 3),
				                 .seed = i,
				                 .resident = i < 3 ? 0 : 7,
				                 .counters = &c };
			struct error err;
			uint32_t polls = 1 + 40 * i;
			build_program(b, 50, 8, i);
			give_up(b, FUNCTIONS * i, i < 3 ? 7 : 8, i ? polls : 0, &o);
			/* Who has given up arrives at no other barrier: one arrival each, and one word of it. */
			assert_in_range(c.by_class[SIM_CLASS_ATOMIC], 2, 2 * 8);
			build_program(b, 50, 8, i);
			if (!launch_program(b, 0, STEPS * FUNCTIONS, 8, &(struct sim_options){ .seed = i }, &err))
				fail_msg("%s", err.text);
			assert_true(is_right(b) && !b->sync.left);
		}
		close_bench(b);
	}
}

/* The counter goes on from launch to launch, beyond 32 bits too. */
static void test_counter_wraps(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++) {
		struct bench *b = open_bench(program_targets[t]);
		b->sync.arrivals = -(uint32_t)(STEPS * 3);
		for (unsigned i = 0; i < 2; i++) {
			struct sim_options o = { .memory = SIM_MEMORY_RANDOM, .seed = i, .races = true };
			struct error err;
			build_program(b, 30, 5, i);
			if (!launch_program(b, 0, STEPS * FUNCTIONS, 5, &o, &err))
				fail_msg("%s", err.text);
			assert_true(is_right(b));
		}
		assert_int_equal(b->sync.arrivals, 2 * (STEPS - 1) * 5 - STEPS * 3);
		close_bench(b);
	}
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
	static struct rdna_program_sync sync;
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
	map_memory(&b, got, sizeof got, true);
	map_memory(&b, &arg, sizeof arg, false);
	map_memory(&b, command, sizeof command, false);
	map_memory(&b, &sync, sizeof sync, true);
	for (uint32_t n = room - 1; n <= room + 1; n++) {
		const struct rdna_program_args args = {
			.commands = (uintptr_t)command,
			.end = 2,
			.sync = (uintptr_t)&sync,
			.workgroups = n,
			.polls = BENCH_POLLS
		};
		const struct sim_options o = { .seed = n, .resident = room, .stall_limit = 300000 };
		command[0] = command[1] = (struct rdna_command){
			.function = offset, .arg = (uintptr_t)&arg, .rest = 1, .flags = RDNA_COMMAND_BARRIER
		};
		sync.arrivals = 0;
		bool ok = sim_dispatch(b.dev, k, &args, sizeof args, (const uint32_t[]){ n, 1, 1 },
		                       (const uint32_t[]){ 32 * WAVES, 1, 1 }, &o, &err);
		if (ok != (n <= room))
			fail_msg("%s: %u workgroups where %u are resident: %s", target, n, room,
			         ok ? "all met" : err.text);
		assert_int_equal(sync.arrivals, n < room ? n : room);
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
		check_room(program_targets[t], 40, 0, 4);
		check_room(program_targets[t], 100, 0, target_find(program_targets[t])->vector_file == 1024 ? 2 : 3);
		check_room(program_targets[t], 250, 0, 1);
		check_room(program_targets[t], 40, 30000, 2);
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
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_wide_units),
		cmocka_unit_test(test_missing_barriers),
		cmocka_unit_test(test_all_are_waited_for),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_counter_wraps),
		cmocka_unit_test(test_driver_mutants),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_too_many_for_a_barrier),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests_name("rdna_program", tests, NULL, NULL);
}
