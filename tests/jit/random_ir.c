/* tests/jit/random_ir.c - the generator behind random_ir.h.
 *
 * Owns: a pool of the values in scope with what is known of each, and one function per family of ops. It never
 * evaluates a kernel. An op of ops.def that needs no care is emitted from its row's kinds alone; an op with a
 * precondition needs a case in random_special().
 */
#include "tests/jit/random_ir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "tests/jit/random_ir_parts.h"

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

unsigned random_below(struct generator *g, unsigned n) { return (unsigned)(random_next(&g->state) >> 32) % n; }

void random_keep(struct generator *g, struct value v)
{
	if (v.r && g->n < POOL_MAX)
		g->pool[g->n++] = v;
}

struct value *random_pick(struct generator *g, uint8_t kind, bool tame, bool var)
{
	const size_t from = random_below(g, 2) && g->n > 24 ? g->n - 24 : 0;
	size_t at = from + random_below(g, (unsigned)(g->n - from));

	for (size_t tries = 0; tries < g->n; tries++, at = at + 1 < g->n ? at + 1 : 0)
		if (g->pool[at].kind == kind && (g->pool[at].tame || !tame) && (g->pool[at].var || !var))
			return &g->pool[at];
	assert(var); /* random_begin leaves a value of each kind that is always in scope */
	return NULL;
}

static ir_f any_f(struct generator *g) { return (ir_f){ random_pick(g, IR_TYPE_f32, false, false)->r }; }
ir_f random_tame_f(struct generator *g) { return (ir_f){ random_pick(g, IR_TYPE_f32, true, false)->r }; }
ir_i random_any_i(struct generator *g) { return (ir_i){ random_pick(g, IR_TYPE_i32, false, false)->r }; }
ir_m random_any_m(struct generator *g) { return (ir_m){ random_pick(g, IR_TYPE_m, false, false)->r }; }
static ir_c any_c(struct generator *g) { return (ir_c){ random_pick(g, IR_TYPE_c, false, false)->r }; }
ir_s random_any_s(struct generator *g) { return (ir_s){ random_pick(g, IR_TYPE_s, false, false)->r }; }
static ir_s tame_s(struct generator *g) { return (ir_s){ random_pick(g, IR_TYPE_s, true, false)->r }; }

/* A result: into a variable now and then, else into the pool. Only tame floats and scalars go into variables. */
static void result(struct generator *g, uint8_t kind, uint16_t r, bool tame)
{
	const struct value *var =
		tame && kind != IR_TYPE_a && random_below(g, 4) == 0 ? random_pick(g, kind, true, true) : NULL;

	if (var)
		ir_set(g->ir, var->r, r);
	else
		random_keep(g, (struct value){ .r = r, .kind = kind, .tame = tame });
}

void random_result_f(struct generator *g, ir_f v)
{
	if (random_below(g, 3) == 0)
		result(g, IR_TYPE_f32, v.r, false);
	else
		result(g, IR_TYPE_f32, ir_fmin(g->ir, ir_fmax(g->ir, v, g->low), g->high).r, true);
}
void random_result_d(struct generator *g, ir_d v)
{
	if (random_below(g, 3) == 0)
		result(g, IR_TYPE_f64, v.r, false);
	else
		result(g, IR_TYPE_f64,
		       ir_dmin(g->ir, ir_dmax(g->ir, v, ir_dconst(g->ir, -0x1p20)), ir_dconst(g->ir, 0x1p20)).r, true);
}
void random_result_i(struct generator *g, ir_i v) { result(g, IR_TYPE_i32, v.r, true); }
void random_result_s(struct generator *g, ir_s v)
{
	if (random_below(g, 3) == 0)
		result(g, IR_TYPE_s, v.r, false);
	else
		result(g, IR_TYPE_s, ir_sandi(g->ir, v, 0x7fffffff >> random_below(g, 31)).r, true);
}

/* Values in scope go with the block, or the part of an if, that they were made in. */
static void enter(struct generator *g) { g->mark[g->depth++] = g->n; }

static void leave_block(struct generator *g)
{
	if (g->ir->blocks.kind[g->depth - 1] == IR_IN_LOOP)
		ir_endloop(g->ir);
	else
		ir_endif(g->ir);
	g->n = g->mark[--g->depth];
}

static void enter_loop(struct generator *g)
{
	ir_s count = random_below(g, 2) ? ir_sandi(g->ir, random_any_s(g), 3)
	                                : ir_sconst(g->ir, (int64_t)random_below(g, 5) - 1);

	enter(g);
	random_keep(g, (struct value){ .r = ir_loop(g->ir, count).r, .kind = IR_TYPE_s, .tame = true });
}

static void random_branch(struct generator *g, enum ir_op op)
{
	const struct ir_blocks *open = &g->ir->blocks;
	const bool room = g->depth < MAX_DEPTH && g->n <= POOL_MAX - 64;

	if (op == IR_loop && room && open->loops < MAX_LOOPS) {
		enter_loop(g);
	} else if (op == IR_if && room) {
		ir_if(g->ir, any_c(g));
		enter(g);
	} else if (op == IR_else && g->depth && open->kind[g->depth - 1] == IR_IN_IF) {
		ir_else(g->ir);
		g->n = g->mark[g->depth - 1];
	} else if (op == IR_break && open->loops) {
		ir_break(g->ir, any_c(g));
	} else if ((op == IR_endloop || op == IR_endif) && g->depth) {
		leave_block(g);
	}
}

void random_where(struct generator *g)
{
	if (random_below(g, 3) == 0)
		ir_where(g->ir, random_any_m(g));
}

/* A write of a variable, or a new one. */
static void random_move(struct generator *g, enum ir_op op)
{
	const uint8_t kind = ir_facts[op].dst;
	const struct value *from = random_pick(g, kind, true, false),
			   *var = random_below(g, 3) ? random_pick(g, kind, true, true) : NULL;
	const uint16_t r = var ? var->r : ir_new_var(g->ir, kind);

	ir_emit(g->ir, op, r, from->r, 0, 0, 0);
	if (!var)
		random_keep(g, (struct value){ .r = r, .kind = kind, .tame = true, .var = true });
}

static void random_scalar(struct generator *g, enum ir_op op)
{
	struct ir *b = g->ir;
	const int64_t wide = (int64_t)random_next(&g->state), narrow = (int32_t)wide;

	switch (op) {
	case IR_sconst: result(g, IR_TYPE_s, ir_sconst(b, wide).r, false); break;
	case IR_saddi: random_result_s(g, ir_saddi(b, tame_s(g), random_below(g, 2) ? narrow : wide >> 2)); break;
	case IR_smuli: random_result_s(g, ir_smuli(b, tame_s(g), narrow)); break;
	case IR_sshli: random_result_s(g, ir_sshli(b, tame_s(g), random_below(g, 64))); break;
	case IR_sshri: random_result_s(g, ir_sshri(b, random_any_s(g), random_below(g, 64))); break;
	case IR_sandi: result(g, IR_TYPE_s, ir_sandi(b, random_any_s(g), narrow & 0x7fffffff).r, true); break;
	case IR_sdivi:
		result(g, IR_TYPE_s,
		       ir_sdivi(b, ir_sandi(b, random_any_s(g), 0x7fffffff), 1 + (0x7ffffffe >> random_below(g, 31))).r,
		       true);
		break;
	case IR_smin:
	case IR_smax:
		random_result_s(g, (ir_s){ ir_emit(b, op, 0, random_any_s(g).r, random_any_s(g).r, 0, 0) });
		break;
	case IR_ssel: {
		const ir_c condition = any_c(g);
		random_result_s(g, ir_ssel(b, condition, random_any_s(g), random_any_s(g)));
		break;
	}
	default: random_result_s(g, (ir_s){ ir_emit(b, op, 0, tame_s(g).r, tame_s(g).r, 0, 0) }); break;
	}
}

/* Operations whose kind says more than their row: memory, addresses, loops, moves, scalars. */
static bool random_structure(struct generator *g, enum ir_op op)
{
	if (ir_facts[op].effects & IR_BRANCHES) {
		random_branch(g, op);
		return true;
	}
	if (ir_facts[op].effects & IR_INDEXED) {
		random_indexed(g, op);
		return true;
	}
	switch (ir_facts[op].op) {
	case IR_load:
	case IR_load_strided:
	case IR_bcast:
	case IR_await:
	case IR_uload: random_load(g, op); return true;
	case IR_gather:
	case IR_await_at: random_gather(g, op); return true;
	case IR_give:
	case IR_store:
	case IR_store_strided:
	case IR_store_first: random_store(g, op); return true;
	case IR_prefetch:
	case IR_prefetch2:
		(op == IR_prefetch ? ir_prefetch : ir_prefetch2)(
			g->ir, (ir_a){ random_pick(g, IR_TYPE_a, false, false)->r }, (int32_t)random_next(&g->state));
		return true;
	case IR_local:
	case IR_shared: random_local(g, op); return true;
	default: break;
	}
	if (ir_facts[op].dst == IR_TYPE_a)
		random_address(g, op);
	else if (ir_facts[op].op == IR_mov)
		random_move(g, op);
	else if (ir_facts[op].dst == IR_TYPE_s && ir_facts[op].a != IR_TYPE_m)
		random_scalar(g, op);
	else
		return false;
	return true;
}

static void random_pointer(struct generator *g)
{
	const int32_t k = (int32_t)random_below(g, RANDOM_IR_POINTERS);

	random_keep(g, (struct value){ ir_aload(g->ir, ir_aload(g->ir, ir_arg(g->ir), 16), 8 * k).r, IR_TYPE_a, true,
	                               false, REGION_IN, RANDOM_IR_IN_BYTES, 64 * k, 64 * k });
}

static const float constants[] = { 0.0f, -0.0f, 1.0f, -1.5f, 0x1p-149f, -0x1p-130f, 65504.0f, 0.1f, __builtin_inff() };
static float random_constant(struct generator *g)
{
	return constants[random_below(g, sizeof constants / sizeof *constants)];
}

/* The same of lanes of 64 bits. */
static bool random_wide(struct generator *g, enum ir_op op)
{
	struct ir *b = g->ir;

	switch (op) {
	case IR_dxor:
		random_result_d(g, ir_dxor(b, (ir_d){ random_pick(g, IR_TYPE_f64, false, false)->r },
		                           INT64_C(1) << random_below(g, b->lanes == 8    ? 3
		                                                         : b->lanes == 16 ? 4
		                                                                          : 5)));
		return true;
	case IR_dconst: random_result_d(g, ir_dconst(b, random_constant(g))); return true;
	case IR_lconst:
		result(g, IR_TYPE_i64, ir_lconst(b, (int64_t)random_next(&g->state) >> random_below(g, 64)).r, true);
		return true;
	case IR_lbits: /* of no NaN */
		result(g, IR_TYPE_i64, ir_lbits(b, (ir_d){ random_pick(g, IR_TYPE_f64, true, false)->r }).r, true);
		return true;
	case IR_lshl:
	case IR_lshr:
	case IR_lsar:
		result(g, IR_TYPE_i64,
		       ir_emit(b, op, 0, random_pick(g, IR_TYPE_i64, false, false)->r, 0, 0, random_below(g, 64)),
		       true);
		return true;
	default: return random_structure(g, op);
	}
}

/* Operations with preconditions, memory and structure. False: the row's kinds are all there is to it. */
static bool random_special(struct generator *g, enum ir_op op)
{
	struct ir *b = g->ir;

	switch (op) {
	case IR_fconst: random_result_f(g, ir_fconst(b, random_constant(g))); return true;
	case IR_f2i:
		random_result_i(g, ir_f2i(b, random_below(g, 2) ? random_tame_f(g)
		                                                : ir_fmul(b, random_tame_f(g), ir_fconst(b, 1024.0f))));
		return true;
	case IR_ibits: random_result_i(g, ir_ibits(b, random_tame_f(g))); return true;
	case IR_dot4:
		random_result_i(g, ir_dot4(b, random_any_i(g), ir_ior(b, random_any_i(g), ir_iconst(b, 0x01010101)),
		                           random_any_i(g)));
		return true;
	case IR_dot2b:
		random_result_i(g, ir_dot2b(b, ir_iand(b, random_any_i(g), ir_iconst(b, 0x7f7f7f7f)), random_any_i(g)));
		return true;
	case IR_ilut16:
		random_result_i(g, ir_ilut16(b, ir_iand(b, random_any_i(g), ir_iconst(b, 0x0f0f0f0f)),
		                             random_below(g, LANES_TABLES)));
		return true;
	case IR_iconst:
		random_result_i(g, ir_iconst(b, (int32_t)random_next(&g->state) >> random_below(g, 32)));
		return true;
	case IR_ishl:
	case IR_ishr:
	case IR_isar:
	case IR_irotl:
		random_result_i(g, (ir_i){ ir_emit(b, op, 0, random_any_i(g).r, 0, 0, random_below(g, 32)) });
		return true;
	case IR_ishlv:
	case IR_ishrv: /* counts of 32 and more are defined, but small ones say more */
		random_result_i(g, (ir_i){ ir_emit(b, op, 0, random_any_i(g).r,
		                                   random_below(g, 2) ? random_any_i(g).r
		                                                      : ir_iand(b, random_any_i(g), ir_iconst(b, 63)).r,
		                                   0, 0) });
		return true;
	case IR_fxor:
		random_result_f(g, ir_fxor(b, any_f(g),
		                           (int64_t)(g->ir->lanes >> 1) >> random_below(g, g->ir->lanes == 8    ? 3
		                                                                           : g->ir->lanes == 16 ? 4
		                                                                                                : 5)));
		return true;
	case IR_fhalf: random_result_f(g, ir_fhalf(b, random_any_i(g), random_below(g, 2))); return true;
	case IR_aload: random_pointer(g); return true;
	case IR_begin:
	case IR_end:
	case IR_wave: random_result_s(g, (ir_s){ ir_emit(b, op, 0, 0, 0, 0, 0) }); return true;
	case IR_arg: return true; /* aload uses it; the slots' addresses are no one's data */
	default: return random_wide(g, op);
	}
}

static uint16_t operand(struct generator *g, uint8_t kind)
{
	return kind == IR_TYPE__ ? 0 : random_pick(g, kind, false, false)->r;
}

/* One that every target has. */
static enum ir_op any_op(struct generator *g)
{
	enum ir_op op;

	do
		op = random_below(g, IR_ROWS);
	while (!ir_is_row(op) || ir_facts[op].needs);
	return op;
}

static void random_instruction(struct generator *g)
{
	const enum ir_op op = any_op(g);
	const struct ir_facts *facts = &ir_facts[op];
	uint16_t a, b, c, r;

	if (random_special(g, op))
		return;
	a = operand(g, facts->a);
	b = operand(g, facts->b);
	c = operand(g, facts->c);
	r = ir_emit(g->ir, op, 0, a, b, c, 0);
	if (facts->dst == IR_TYPE_f32)
		random_result_f(g, (ir_f){ r });
	else if (facts->dst == IR_TYPE_f64)
		random_result_d(g, (ir_d){ r });
	else
		result(g, facts->dst, r, true);
}

/* The first values of each kind; they stay in scope to the end. */
static void random_begin(struct generator *g)
{
	struct ir *b = g->ir;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0);
	ir_f f;
	ir_i i;

	g->out = ir_aload(b, arg, 8);
	g->low = ir_fconst(b, -0x1p20f);
	g->high = ir_fconst(b, 0x1p20f);
	random_keep(g, (struct value){ in.r, IR_TYPE_a, true, false, REGION_IN, RANDOM_IR_IN_BYTES, 0, 0 });
	random_keep(g, (struct value){ g->out.r, IR_TYPE_a, true, false, REGION_OUT, RANDOM_IR_OUT_BYTES, 0, 0 });
	f = ir_fmin(b, ir_fmax(b, ir_fload(b, in, 0, 0), g->low), g->high);
	i = ir_iload(b, in, 2048);
	random_keep(g, (struct value){ .r = f.r, .kind = IR_TYPE_f32, .tame = true });
	random_keep(g, (struct value){ .r = i.r, .kind = IR_TYPE_i32, .tame = true });
	ir_d d = ir_dmul(b, ir_i2d(b, i), ir_dconst(b, 0x1p-12));
	ir_l l = ir_lload(b, in, 1024, 0);
	random_keep(g, (struct value){ .r = d.r, .kind = IR_TYPE_f64, .tame = true });
	random_keep(g, (struct value){ .r = l.r, .kind = IR_TYPE_i64, .tame = true });
	random_keep(g, (struct value){ .r = ir_var_d(b, d).r, .kind = IR_TYPE_f64, .tame = true, .var = true });
	random_keep(g, (struct value){ .r = ir_var_l(b, l).r, .kind = IR_TYPE_i64, .tame = true, .var = true });
	ir_m some = ir_igt(b, i, ir_ilane(b));
	ir_c holds = ir_slt(b, ir_sconst(b, 0), ir_begin(b));
	random_keep(g, (struct value){ .r = some.r, .kind = IR_TYPE_m, .tame = true });
	random_keep(g, (struct value){ .r = holds.r, .kind = IR_TYPE_c, .tame = true });
	random_keep(g, (struct value){ .r = ir_var_m(b, some).r, .kind = IR_TYPE_m, .tame = true, .var = true });
	random_keep(g, (struct value){ .r = ir_var_c(b, holds).r, .kind = IR_TYPE_c, .tame = true, .var = true });
	random_keep(g,
	            (struct value){
			    .r = ir_sandi(b, ir_sload64(b, arg, 24), 0x7fffffff).r, .kind = IR_TYPE_s, .tame = true });
	random_keep(g, (struct value){ .r = ir_var_f(b, f).r, .kind = IR_TYPE_f32, .tame = true, .var = true });
	random_keep(g, (struct value){ .r = ir_var_i(b, i).r, .kind = IR_TYPE_i32, .tame = true, .var = true });
	random_keep(g, (struct value){ .r = ir_var_s(b, ir_begin(b)).r, .kind = IR_TYPE_s, .tame = true, .var = true });
}

/* Makes values visible: every variable, and as many others as fit the front of the output. */
static void random_end(struct generator *g)
{
	struct ir *b = g->ir;
	const int32_t vector = (int32_t)b->lanes * 4;
	int32_t at = 0;

	while (g->depth)
		leave_block(g);
	for (size_t k = 0; k < g->n && at + 2 * vector <= RANDOM_IR_OUT_BYTES / 2; k++) {
		const struct value v = g->pool[k];
		ir_f seen = { v.r };

		if (v.kind == IR_TYPE_a || ((v.kind == IR_TYPE_f32 || v.kind == IR_TYPE_f64) && !v.tame) ||
		    (!v.var && random_below(g, 3) == 0))
			continue;
		if (v.kind == IR_TYPE_f64 || v.kind == IR_TYPE_i64) {
			ir_lstore(b, g->out, v.kind == IR_TYPE_i64 ? (ir_l){ v.r } : ir_lbits(b, (ir_d){ v.r }), at, 0);
			at += 2 * vector;
			continue;
		}
		if (v.kind == IR_TYPE_i32)
			seen = ir_fbits(b, (ir_i){ v.r });
		else if (v.kind == IR_TYPE_m)
			seen = ir_fbits(b, ir_isel(b, (ir_m){ v.r }, ir_ilane(b), ir_iconst(b, -1)));
		else if (v.kind == IR_TYPE_c)
			seen = ir_fbits(b, ir_isplat(b, ir_ssel(b, (ir_c){ v.r }, ir_sconst(b, 1), ir_sconst(b, 0))));
		else if (v.kind == IR_TYPE_s)
			seen = ir_fbits(b, ir_ixor(b, ir_isplat(b, ir_sshri(b, (ir_s){ v.r }, 32)),
			                           ir_isplat(b, (ir_s){ v.r })));
		ir_fstore(b, g->out, seen, at, 0);
		at += vector;
	}
}

void random_ir(struct ir *ir, unsigned lanes, uint64_t seed, unsigned size)
{
	struct generator *g = calloc(1, sizeof *g);

	assert(g);
	ir_init(ir, lanes);
	g->ir = ir;
	g->state = seed;
	random_begin(g);
	for (size_t until = ir->n_ins + size; ir->n_ins < until && !ir->error;)
		random_instruction(g);
	random_end(g);
	free(g);
}

void random_ir_fill(struct random_ir_buffers *b, uint64_t seed)
{
	uint64_t state = ~seed;

	memset(b, 0, sizeof *b);
	for (size_t at = 0; at < sizeof b->in; at += 8) {
		uint64_t word = random_next(&state);

		if (at < 1024) { /* floats of everyday size */
			const float pair[2] = { (float)(int32_t)word * 0x1p-28f,
				                (float)(int32_t)(word >> 32) * 0x1p-34f };

			memcpy(&word, pair, 8);
		} else if (at < 1536) { /* halves without the largest exponents */
			word &= ~(uint64_t)0x4000400040004000u;
		}
		memcpy(b->in + at, &word, 8);
	}
	for (size_t at = 0; at < sizeof b->out; at += 8)
		memcpy(b->out + at, &(uint64_t){ random_next(&state) }, 8);
	for (size_t k = 0; k < RANDOM_IR_POINTERS; k++)
		b->pointer[k] = (uint64_t)(uintptr_t)(b->in + 64 * k);
	b->arg[0] = (uint64_t)(uintptr_t)b->in;
	b->arg[1] = (uint64_t)(uintptr_t)b->out;
	b->arg[2] = (uint64_t)(uintptr_t)b->pointer;
	b->arg[3] = random_next(&state);
}

struct random_ir_buffers *random_ir_buffers_new(uint64_t seed)
{
	struct random_ir_buffers *b = aligned_alloc(64, sizeof *b);

	assert(b);
	random_ir_fill(b, seed);
	return b;
}
