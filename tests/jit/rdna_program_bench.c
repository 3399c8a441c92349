/* tests/jit/rdna_program_bench.c - programs of hand-written RDNA functions, built and launched in the simulator. */
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
#include "tests/jit/rdna_program_bench.h"

/* ---- functions: argument slots are input, output and the number of units; a unit is 32 words, and reads the words of
 * unit n-1-u */

static void scalar(struct rdna *r, enum rdna_op op, unsigned d, struct rdna_operand a, struct rdna_operand b)
{
	rdna_put2(r, op, rdna_s(d), a, b);
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

void put_wait(struct rdna *r, bool loads)
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
	put_wait(r, false);
	if (r->gen < RDNA_GFX12) {
		rdna_put0(r, RDNA_S_BARRIER);
		return;
	}
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_BARRIER_SIGNAL, .s = { rdna_imm(-1) } });
	rdna_put_imm(r, RDNA_S_BARRIER_WAIT, 0xffff);
}

void put_lds(struct rdna *r, enum rdna_op op, unsigned v, unsigned address)
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
	put_wait(r, false);
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
	put_lds(r, RDNA_DS_STORE_B32, 2, 5);
	barrier(r);
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(4), rdna_imm(128), rdna_v(5));
	rdna_put2(r, RDNA_V_AND_B32, rdna_v(4), rdna_imm(1023), rdna_v(4));
	put_lds(r, RDNA_DS_LOAD_B32, 2, 4);
	barrier(r);
}

/* A word from the lane at the other end, by LDS. */
static void swap_sides(struct rdna *r)
{
	put_lds(r, RDNA_DS_STORE_B32, 2, 5);
	rdna_put2(r, RDNA_V_XOR_B32, rdna_v(4), rdna_imm(124), rdna_v(5));
	put_wait(r, false);
	put_lds(r, RDNA_DS_LOAD_B32, 2, 4);
	put_wait(r, false);
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
		put_wait(&r, false);
		rdna_put2(&r, RDNA_V_ADD_NC_U32, rdna_v(2), rdna_s(T + 1), rdna_v(0));
	} else {
		global(&r, RDNA_GLOBAL_LOAD_B32, 2, 1, IN);
		put_wait(&r, true);
	}
	if (f == VECTOR)
		rdna_put2(&r, RDNA_V_ADD_NC_U32, rdna_v(2), rdna_imm(1), rdna_v(2));
	if (f == SHARED)
		pass_on(&r);
	if (f == LOCAL)
		swap_sides(&r);
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

void map_memory(struct bench *b, void *p, size_t size, bool writable)
{
	struct error err = { 0 };
	if (!sim_map(b->dev, p, size, "test", writable, &err))
		fail_msg("%s", err.text);
}

static uint32_t *words(struct bench *b)
{
	uint32_t *p = calloc(WORDS, sizeof *p);
	assert_non_null(p);
	map_memory(b, p, WORDS * sizeof *p, true);
	return p;
}

struct bench *open_bench(const char *target)
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
	assert_int_equal(k->rsrc3 >> 4, rdna_gen_of(target) == RDNA_GFX10_3 ? 0 : b->offset[0] / 128);
	assert_int_equal(k->kernarg_size, sizeof(struct rdna_program_args));
	b->bytes = bytes;
	b->size = size;
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
	map_memory(b, b->arg, sizeof b->arg, false);
	map_memory(b, b->command, sizeof b->command, false);
	map_memory(b, &b->sync, sizeof b->sync, true);
	return b;
}

void reload_bench(struct bench *b, const uint8_t *bytes, size_t size)
{
	struct error err = { 0 };

	sim_unload(b->object);
	if (!(b->object = sim_load(b->dev, bytes, size, &err)))
		fail_msg("%s", err.text);
}

void close_bench(struct bench *b)
{
	sim_unload(b->object);
	sim_close(b->dev);
	free(b->bytes);
	free(b->input);
	for (int s = 0; s < STEPS; s++)
		for (int i = 0; i < FUNCTIONS; i++) {
			free(b->data[s][i]);
			free(b->want[s][i]);
		}
	free(b);
}

void build_program(struct bench *b, unsigned units, uint32_t workgroups, unsigned seed)
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
				.first = (seed * 5 + s * 3 + k) % workgroups,
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

bool launch_program(struct bench *b, uint32_t first, uint32_t end, uint32_t workgroups, const struct sim_options *o,
                    struct error *err)
{
	const struct rdna_program_args args = {
		.commands = (uintptr_t)b->command,
		.first = first,
		.end = end,
		.sync = (uintptr_t)&b->sync,
		.workgroups = workgroups,
		.polls = BENCH_POLLS,
		.arrivals = b->sync.arrivals
	};
	const uint32_t groups[3] = { workgroups, 1, 1 }, size[3] = { 32 * WAVES, 1, 1 };

	*err = (struct error){ 0 };
	return sim_dispatch(b->dev, sim_find(b->object, RDNA_PROGRAM_KERNEL), &args, sizeof args, groups, size, o, err);
}

bool is_right(const struct bench *b)
{
	for (int s = 0; s < STEPS; s++)
		for (int f = 0; f < FUNCTIONS; f++)
			if (memcmp(b->data[s][f], b->want[s][f], WORDS * sizeof(uint32_t)) != 0)
				return false;
	return true;
}
