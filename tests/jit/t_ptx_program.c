/* tests/jit/t_ptx_program.c - programs of PTX: random lists of commands over kernels of all kinds, run by the simulator
 * in many orders, against the interpreter command by command; what a launch does to the counters and to the memory it
 * empties; and that a barrier which is not waited for, or not arrived at, is noticed.
 *
 * Commands read and write rows of floats in one pool. Which of them need a barrier between them is found here, and
 * each gets no more than it needs: so a block that went ahead too early would show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"
#include "jit/target.h"
#include "sim/ptx.h"
#include "tests/support/shared.h"

enum {
	LANES = 32,
	WAVES = 8,
	ROW = 4 * LANES, /* bytes of a wave's */
	UNIT = WAVES * ROW,
	BUFFERS = 6,
	UNITS = 12, /* of a buffer */
	ROWS = UNITS * WAVES,
	COMMANDS = 40,
	BLOCKS = 7,
	EMPTIED = 6000
};
enum kernel { ADD, ROUND, NEIGHBOURS, COUNT, KERNELS };

struct memory {
	_Alignas(64) uint8_t buffer[BUFFERS][UNITS * UNIT];
	uint32_t empty[EMPTIED];
	struct ptx_command command[COMMANDS];
	_Alignas(PTX_SYNC_BYTES) uint32_t sync[COMMANDS][PTX_SYNC_BYTES / 4];
};

/* Rows from..to - 1 of a buffer. */
struct touch {
	unsigned buffer;
	int64_t from, to;
};
struct list {
	struct touch reads[COMMANDS][2], writes[COMMANDS];
	bool arrives[COMMANDS];
	unsigned waits[COMMANDS]; /* for the barrier behind this command, plus 1 */
	unsigned n, blocks;
};

static struct ir kernel[KERNELS];

static unsigned below(uint64_t *seed, unsigned n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(*seed >> 33) % n;
}

/* --- kernels */

static void begin_ir(struct ir *b)
{
	ir_init(b, LANES);
	b->waves = WAVES;
}

static ir_a unit_at(struct ir *b, ir_a from, ir_s unit, int64_t bytes)
{
	ir_s offset = ir_smuli(b, unit, bytes);
	return ir_aadd(b, from, offset);
}

static ir_s each_unit(struct ir *b)
{
	ir_s begin = ir_begin(b), end = ir_end(b), index = ir_loop(b, ir_ssub(b, end, begin));
	return ir_sadd(b, begin, index);
}

/* Units of a wave's own: a row of X times a number, and one of Y. Slots: X, Y, OUT, the number. */
static void build_add(struct ir *b)
{
	ir_a arg = ir_arg(b), x = ir_aload(b, arg, 0), y = ir_aload(b, arg, 8), out = ir_aload(b, arg, 16);
	ir_s unit = each_unit(b);
	ir_f a = ir_fload(b, unit_at(b, x, unit, ROW), 0, 0), c = ir_fload(b, unit_at(b, y, unit, ROW), 0, 0);

	ir_fstore(b, unit_at(b, out, unit, ROW), ir_ffma(b, a, ir_fbcast(b, arg, 24), c), 0, 0);
	ir_endloop(b);
}

/* A row turned around through the wave's own bytes; the last slot has what is added. */
static void build_round(struct ir *b)
{
	ir_a arg = ir_arg(b), x = ir_aload(b, arg, 0), out = ir_aload(b, arg, 16), own = ir_local(b, 2 * ROW);
	ir_s unit = each_unit(b);

	ir_fstore(b, own, ir_fload(b, unit_at(b, x, unit, ROW), 0, 0), 0, 0);
	ir_i back = ir_ishl(b, ir_isub(b, ir_iconst(b, LANES - 1), ir_ilane(b)), 2);
	ir_f reversed = ir_fbits(b, ir_igather(b, own, back, 0));
	ir_fstore(b, unit_at(b, out, unit, ROW),
	          ir_fadd(b, reversed, ir_i2f(b, ir_ibcast(b, arg, 8 * PTX_COMMAND_SLOTS - 4))), 0, 0);
	ir_endloop(b);
}

/* A unit is a row for each wave of the group: its own and the next one's, with own bytes beside those shared. */
static void build_neighbours(struct ir *b)
{
	ir_a arg = ir_arg(b), x = ir_aload(b, arg, 0), out = ir_aload(b, arg, 16);
	ir_a own = ir_local(b, ROW), all = ir_shared(b, UNIT);
	ir_s wave = ir_wave(b), next = ir_sandi(b, ir_saddi(b, wave, 1), WAVES - 1);
	ir_a mine = unit_at(b, all, wave, ROW), theirs = unit_at(b, all, next, ROW);
	ir_s unit = each_unit(b);
	ir_a from = unit_at(b, unit_at(b, x, unit, UNIT), wave, ROW);
	ir_a to = unit_at(b, unit_at(b, out, unit, UNIT), wave, ROW);
	ir_f v = ir_fload(b, from, 0, 0);

	ir_fstore(b, own, ir_fneg(b, v), 0, 0);
	ir_fstore(b, mine, v, 0, 0);
	ir_barrier(b);
	ir_f sum = ir_fadd(b, ir_fmul(b, ir_fload(b, theirs, 0, 0), ir_fconst(b, 0.5f)), ir_fbcast(b, own, 12));
	ir_fstore(b, to, sum, 0, 0);
	ir_barrier(b);
	ir_endloop(b);
}

/* Each unit's number and the share's bounds, with a 64-bit slot and a 32-bit one. */
static void build_count(struct ir *b)
{
	ir_a arg = ir_arg(b), out = ir_aload(b, arg, 16);
	ir_s wide = ir_sload64(b, arg, 32), narrow = ir_sload32(b, arg, 44), unit = each_unit(b);
	ir_s value = ir_sadd(b, ir_sadd(b, unit, wide), ir_sadd(b, narrow, ir_sadd(b, ir_part(b), ir_parts(b))));

	ir_fstore(b, unit_at(b, out, unit, ROW), ir_i2f(b, ir_iadd(b, ir_isplat(b, value), ir_ilane(b))), 0, 0);
	ir_endloop(b);
}

static int make_kernels(void **state)
{
	static void (*const build[])(struct ir * b) = { build_add, build_round, build_neighbours, build_count };
	struct error err = { 0 };

	for (unsigned k = 0; k < KERNELS; k++) {
		begin_ir(&kernel[k]);
		build[k](&kernel[k]);
		if (!ir_verify(&kernel[k], &err))
			fail_msg("kernel %u: %s", k, err.text);
	}
	return 0;
}

static int free_kernels(void **state)
{
	for (unsigned k = 0; k < KERNELS; k++)
		ir_free(&kernel[k]);
	return 0;
}

/* --- lists of commands */

static bool overlap(const struct touch *a, const struct touch *b)
{
	return a->buffer == b->buffer && a->from < b->to && b->from < a->to;
}

static bool conflict(const struct list *l, unsigned j, unsigned c)
{
	bool is = overlap(&l->writes[j], &l->writes[c]);

	for (unsigned k = 0; k < 2; k++)
		is |= overlap(&l->writes[j], &l->reads[c][k]) || overlap(&l->reads[j][k], &l->writes[c]);
	return is;
}

/* A wait where a command before c is in its way, for the first barrier behind the last of these, which is made where
 * there is none. */
static void find_wait(struct list *l, unsigned c, uint64_t *seed)
{
	unsigned last = c, at;

	while (last > 0 && !conflict(l, last - 1, c))
		last--;
	if (!last)
		return;
	for (at = last - 1; at < c && !l->arrives[at]; at++)
		;
	if (at == c)
		at = last - 1 + below(seed, c - last + 1);
	l->arrives[at] = true;
	l->waits[c] = at + 1;
}

static void distribute(const struct list *l, struct ptx_command *c, uint64_t *seed)
{
	const int64_t units = 1 + below(seed, c->function == NEIGHBOURS ? UNITS : ROWS);
	const uint32_t max = c->function == NEIGHBOURS ? UNITS : ROWS;

	c->begin = below(seed, max - (unsigned)units + 1);
	c->blocks = 1 + below(seed, l->blocks);
	c->first = below(seed, l->blocks);
	uint32_t shares = c->function == NEIGHBOURS ? c->blocks : c->blocks * WAVES;
	c->per = (uint32_t)units / shares;
	c->rest = (uint32_t)units % shares;
}

static struct touch rows_of(const struct ptx_command *c, unsigned buffer)
{
	const uint32_t shares = c->function == NEIGHBOURS ? c->blocks : c->blocks * WAVES,
		       rows = c->function == NEIGHBOURS ? WAVES : 1;

	return (struct touch){ buffer, c->begin * rows, (c->begin + (int64_t)c->per * shares + c->rest) * rows };
}

static const struct touch nothing = { .buffer = BUFFERS };

/* The commands point into m. */
static void make_list(struct list *l, struct memory *m, uint64_t seed)
{
	uint64_t s = seed;

	*l = (struct list){ .n = 1 + below(&s, COMMANDS), .blocks = 1 + below(&s, BLOCKS) };
	memset(m->command, 0, sizeof m->command);
	for (unsigned i = 0; i < l->n; i++) {
		struct ptx_command *c = &m->command[i];
		unsigned x = below(&s, BUFFERS), y = below(&s, BUFFERS), out = below(&s, BUFFERS);
		float by = (float)(1 + below(&s, 100)) / 64;
		c->function = below(&s, KERNELS);
		distribute(l, c, &s);
		c->arg[0] = (uint64_t)(uintptr_t)m->buffer[x];
		c->arg[1] = (uint64_t)(uintptr_t)m->buffer[y];
		c->arg[2] = (uint64_t)(uintptr_t)m->buffer[out];
		c->arg[3] = f32_bits(by);
		c->arg[4] = (uint64_t)-5 - i;
		c->arg[5] = (uint64_t)i << 33;
		c->arg[PTX_COMMAND_SLOTS - 1] = (uint64_t)(seed % 77) << 32;
		l->reads[i][0] = c->function == COUNT ? nothing : rows_of(c, x);
		l->reads[i][1] = c->function == ADD ? rows_of(c, y) : nothing;
		l->writes[i] = rows_of(c, out);
		l->arrives[i] = below(&s, 9) == 0;
	}
	for (unsigned i = 0; i < l->n; i++)
		find_wait(l, i, &s);
}

/* Barriers get their numbers when all are known. */
static void number_barriers(const struct list *l, struct ptx_command *c)
{
	uint32_t number[COMMANDS], n = 0;

	for (unsigned i = 0; i < l->n; i++) {
		number[i] = l->arrives[i] ? ++n : 0;
		c[i].arrives = number[i];
		c[i].waits = l->waits[i] ? number[l->waits[i] - 1] : 0;
	}
}

/* --- runs */

static void fill(struct memory *m, uint64_t seed)
{
	for (unsigned b = 0; b < BUFFERS; b++)
		for (unsigned k = 0; k < UNITS * UNIT / 4; k++) {
			float v = (float)(int)below(&seed, 4096) / 256 - 8;
			memcpy(m->buffer[b] + (size_t)4 * k, &v, 4);
		}
	for (unsigned k = 0; k < EMPTIED; k++)
		m->empty[k] = k;
}

static struct ptx_text *read_program(struct object *o, unsigned capability)
{
	const struct ir *list[KERNELS];
	struct error err = { 0 };

	for (unsigned k = 0; k < KERNELS; k++)
		list[k] = &kernel[k];
	if (!ptx_program(o, list, KERNELS, target_find(capability == 90 ? "sm90" : "sm80"), &err))
		fail_msg("%s", err.text);
	char *text = strndup((const char *)o->code, o->code_bytes);
	struct ptx_text *t = ptx_text_read(text, capability, &err);
	if (!t)
		fail_msg("%s", err.text);
	free(text);
	return t;
}

static bool launch(const struct ptx_text *t, const struct object *o, struct memory *m, const struct list *l,
                   const struct ptx_program_launch *p, uint64_t seed, struct error *err)
{
	struct ptx_memory *there = ptx_memory_open();
	struct ptx_program_launch all = *p;
	void *params[] = { &all.commands, &all.n, &all.sync, &all.arrivals, &all.empty, &all.empty_bytes };
	struct ptx_run run = { .entry = PTX_PROGRAM_ENTRY,
		               .blocks = l->blocks,
		               .threads = WAVES * LANES,
		               .shared_bytes = ptx_shared_bytes(o, WAVES),
		               .params = params,
		               .cooperative = true,
		               .seed = seed };

	assert_true(there && ptx_memory_add(there, m, sizeof *m));
	bool ok = ptx_text_run(t, there, &run, err);
	ptx_memory_close(there);
	return ok;
}

static struct ptx_program_launch launch_of(const struct list *l, struct memory *m, uint32_t arrivals, uint64_t words)
{
	for (unsigned k = 0; k < COMMANDS; k++)
		m->sync[k][0] = arrivals;
	return (struct ptx_program_launch){
		.commands = (uint64_t)(uintptr_t)m->command,
		.n = l->n,
		.sync = (uint64_t)(uintptr_t)m->sync,
		.arrivals = arrivals,
		.empty = (uint64_t)(uintptr_t)(m->empty + 8),
		.empty_bytes = 4 * words
	};
}

static void interpret(const struct list *l, const struct memory *m)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct ptx_command *c = &m->command[i];
		const uint32_t shares = c->function == NEIGHBOURS ? c->blocks : c->blocks * WAVES;
		ir_interp(&kernel[c->function], c->arg, c->begin, c->begin + (int64_t)c->per * shares + c->rest);
	}
}

static void check_counters(const struct list *l, const struct memory *m, uint32_t arrivals)
{
	for (unsigned i = 0; i < l->n; i++)
		if (m->command[i].arrives)
			assert_int_equal(m->sync[m->command[i].arrives - 1][0], arrivals);
}

/* Two launches one behind the other, with the counters as they are. */
static void run_list(const struct ptx_text *t, const struct object *o, struct memory *want, struct memory *got,
                     uint64_t seed)
{
	struct error err = { 0 };
	struct list l;
	uint32_t arrivals = (uint32_t) - (int32_t)(seed % 9);
	uint64_t words = seed % 3 ? 4 * (seed * 37 % (EMPTIED / 4 - 4)) : 0;

	fill(want, seed);
	fill(got, seed);
	make_list(&l, want, seed);
	make_list(&l, got, seed);
	number_barriers(&l, got->command);
	struct ptx_program_launch p = launch_of(&l, got, arrivals, words);
	for (unsigned round = 0; round < 2; round++, p.arrivals += l.blocks) {
		interpret(&l, want);
		if (!launch(t, o, got, &l, &p, seed + round, &err))
			fail_msg("list %u: %s", (unsigned)seed, err.text);
		if (memcmp(got->buffer, want->buffer, sizeof got->buffer) != 0)
			fail_msg("list %u, launch %u: other results", (unsigned)seed, round);
		check_counters(&l, got, p.arrivals + l.blocks);
	}
	for (unsigned k = 0; k < EMPTIED; k++)
		assert_int_equal(got->empty[k], k >= 8 && k - 8 < words ? IR_EMPTY : k);
}

static void test_lists(void **state)
{
	struct memory *want = aligned_alloc(PTX_SYNC_BYTES, sizeof *want),
		      *got = aligned_alloc(PTX_SYNC_BYTES, sizeof *got);

	for (unsigned c = 0; c < 2; c++) {
		struct object o;
		struct ptx_text *t = read_program(&o, c ? 90 : 80);
		for (unsigned seed = 0; seed < (test_quick() ? 30 : 200); seed++)
			if (test_mine(seed))
				run_list(t, &o, want, got, seed);
		ptx_text_free(t);
		object_free(&o);
	}
	free(want);
	free(got);
}

/* --- what is wrong shows */

enum fault { NO_WAIT, NO_ARRIVAL };
/* The barrier that lacks a wait or all arrivals now; 0: the list has none to take away. */
static uint32_t inject(const struct list *l, struct ptx_command *c, enum fault fault, uint64_t seed)
{
	for (unsigned k = 0, i = (unsigned)seed % l->n; k < l->n; k++, i = (i + 1) % l->n) {
		uint32_t *field = fault == NO_WAIT ? &c[i].waits : &c[i].arrives, barrier = *field;
		bool awaited = fault == NO_WAIT;
		for (unsigned j = 0; j < l->n; j++)
			awaited |= c[j].waits == barrier;
		if (barrier && awaited) {
			*field = 0;
			return barrier;
		}
	}
	return 0;
}

/* Whether a block reads this barrier's counter. One that has waited for a later barrier does not: it knows that all
 * blocks have come that far, and with it that they have passed this one. */
static bool is_polled(const struct list *l, const struct ptx_command *c, uint32_t barrier)
{
	for (unsigned block = 0; block < l->blocks; block++) {
		uint32_t seen = 0;
		for (unsigned i = 0; i < l->n && seen < barrier; i++) {
			bool here = (block + l->blocks - c[i].first) % l->blocks < c[i].blocks;
			seen = here && c[i].waits > seen ? c[i].waits : seen;
		}
		if (seen == barrier)
			return true;
	}
	return false;
}

struct found {
	unsigned lists, trapped, differ, polled;
};

/* A missing arrival traps if and only if a block polls its counter. Where none does, the order of the commands is what
 * it was: the results are the same, and the counter alone shows it, which the launch leaves as it found it. */
static void check_arrival(const struct list *l, const struct memory *m, uint32_t missing, bool trapped, bool differ,
                          struct found *f)
{
	const bool polled = is_polled(l, m->command, missing);

	f->polled += polled;
	if (trapped != polled || differ)
		fail_msg("barrier %u of %u commands is %s: trapped %d, other results %d", missing, l->n,
		         polled ? "polled" : "not polled", trapped, differ);
	if (!trapped) {
		assert_int_equal(m->sync[missing - 1][0], 0);
		check_counters(l, m, l->blocks);
	}
}

static void run_faulty(const struct ptx_text *t, const struct object *o, struct memory *want, struct memory *m,
                       enum fault fault, struct found *f)
{
	for (unsigned seed = 0; seed < (test_quick() ? 60 : 300); seed++) {
		struct error err = { 0 };
		struct list l;
		fill(want, seed);
		fill(m, seed);
		make_list(&l, want, seed);
		make_list(&l, m, seed);
		number_barriers(&l, m->command);
		struct ptx_program_launch p = launch_of(&l, m, 0, 0);
		const uint32_t barrier = inject(&l, m->command, fault, seed);
		if (!barrier)
			continue;
		interpret(&l, want);
		const bool trapped = !launch(t, o, m, &l, &p, seed, &err);
		const bool differ = !trapped && memcmp(m->buffer, want->buffer, sizeof m->buffer) != 0;
		f->lists++;
		f->trapped += trapped;
		f->differ += differ;
		if (fault == NO_ARRIVAL)
			check_arrival(&l, m, barrier, trapped, differ, f);
	}
}

static void test_faults(void **state)
{
	struct memory *want = aligned_alloc(PTX_SYNC_BYTES, sizeof *want),
		      *m = aligned_alloc(PTX_SYNC_BYTES, sizeof *m);
	struct object o;
	struct ptx_text *t = read_program(&o, 90);

	for (enum fault fault = NO_WAIT; fault <= NO_ARRIVAL; fault++) {
		struct found f = { 0 };
		run_faulty(t, &o, want, m, fault, &f);
		printf("# %s: %u lists, %u trapped, %u had other results\n",
		       fault == NO_WAIT ? "a wait left out" : "no arrival", f.lists, f.trapped, f.differ);
		assert_true(f.lists > 20);
		if (fault == NO_WAIT)
			assert_true(f.trapped + f.differ > f.lists / 8);
		else
			assert_true(f.polled > f.lists / 2 && (test_quick() || f.polled < f.lists));
	}
	ptx_text_free(t);
	object_free(&o);
	free(m);
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lists), cmocka_unit_test(test_faults) };

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, make_kernels, free_kernels);
}
