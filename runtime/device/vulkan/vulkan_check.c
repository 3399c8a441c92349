/* runtime/device/vulkan/vulkan_check.c - compares a driver's arithmetic with the CPU's when a device is opened.
 *
 * One kernel does every operation of a list on numbers of all sizes, denormals, zeros, infinities and a NaN; the
 * interpreter does the same. Where an operation differs for which there is another way (launch.h), that is chosen and
 * looked at in turn; where any other differs, the device is refused. NaNs are compared as NaNs. A driver that leaves
 * long loops is known from then on, and kernels count what their loops do there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build_numbers.h"
#include "runtime/device/vulkan/vulkan.h"

enum { NO_CHOICE = SPIRV_CHOICES };

/* Operations as users know them; a product and a sum behind it must not become one operation. */
static const struct operation {
	uint16_t row;
	uint8_t choice;
	const char *name;
} operations[] = {
	{ IR_fadd, NO_CHOICE, "a sum of floats" },
	{ IR_fsub, NO_CHOICE, "a difference of floats" },
	{ IR_fmul, NO_CHOICE, "a product of floats" },
	{ IR_ffma, SPIRV_FUSED, "a product and a sum of floats rounded once" },
	{ IR_fdiv, SPIRV_DIVIDES, "a quotient of floats" },
	{ IR_fsqrt, SPIRV_HAS_ROOT, "a square root of floats" },
	{ IR_fmin, NO_CHOICE, "the lesser of two floats" },
	{ IR_fround, NO_CHOICE, "rounding to whole numbers" },
	{ IR_ffloor, NO_CHOICE, "rounding downwards" },
	{ IR_ftrunc, NO_CHOICE, "rounding towards zero" },
	{ IR_i2f, NO_CHOICE, "an integer as a float" },
	{ IR_u2f, NO_CHOICE, "an integer without sign as a float" },
	{ IR_f2i_cut, NO_CHOICE, "a float as an integer" },
	{ IR_fhalf, NO_CHOICE, "a half as a float" },
	{ IR_dot4, NO_CHOICE, "a dot product of bytes" },
	{ IR_dot4u, NO_CHOICE, "a dot product of bytes without and with sign" },
	{ IR_dadd, NO_CHOICE, "a sum of doubles" },
	{ IR_dmul, NO_CHOICE, "a product of doubles" },
	{ IR_ddiv, NO_CHOICE, "a quotient of doubles" },
	{ IR_dsqrt, NO_CHOICE, "a square root of doubles" },
	{ IR_dfma, SPIRV_FUSED64, "a product and a sum of doubles rounded once" },
	{ IR_f2d, NO_CHOICE, "a float as a double" },
	{ IR_d2f, NO_CHOICE, "a double as a float" },
	{ IR_l2d, NO_CHOICE, "an integer of 64 bits as a double" },
	{ IR_lmul, NO_CHOICE, "a product of integers of 64 bits" },
	{ IR_fstore_h, NO_CHOICE, "a float as a half" },
	{ IR_NO_ROW, NO_CHOICE, "a product and a sum of floats rounded twice" },
	{ IR_loop, SPIRV_LOOPS, "a long loop" },
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* Of each of three operands: so many floats, then as many doubles; results of an operation take a share each. */
enum { NUMBERS = 1024, FLOATS = NUMBERS * 4, DOUBLES = NUMBERS * 8, OPERAND = FLOATS + DOUBLES, OPERANDS = 3 };
struct checked {
	uint8_t in[OPERANDS * OPERAND], out[OPERATIONS * DOUBLES];
	uint64_t arg[3];
	uint32_t cut; /* what the kernel says of its loops: nothing that it reads */
};
/* Of the last unit's loop, more than SPIRV_ITERATIONS even where a body is written several times. */
enum { LONG_LOOP = 300000 };

/* ---- numbers */

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Signs, exponents and bits at random: half of them near 1, some without exponent, some special. */
static uint64_t any_number(uint64_t *state, unsigned exponent_bits, unsigned bits)
{
	const uint64_t r = next(state), mantissa = r & ((UINT64_C(1) << bits) - 1),
		       all = (UINT64_C(1) << exponent_bits) - 1, sign = next(state) & 1;
	uint64_t exponent = next(state) & all, how = next(state) % 16, m = mantissa;

	if (how < 8)
		exponent = all / 2 - 20 + exponent % 40;
	else if (how == 8)
		exponent = 0;
	else if (how == 9)
		exponent = next(state) % 2 ? 0 : all, m = 0;
	else if (how == 10)
		m = next(state) % 2 ? 0 : (UINT64_C(1) << bits) - 1;
	if (exponent == all && m)
		m = UINT64_C(1) << (bits - 1); /* one NaN, a quiet one */
	return sign << (exponent_bits + bits) | exponent << bits | m;
}

static void fill(struct checked *c)
{
	uint64_t state = 1;

	memset(c, 0, sizeof *c);
	for (unsigned o = 0; o < OPERANDS; o++)
		for (unsigned k = 0; k < NUMBERS; k++) {
			const uint32_t f = (uint32_t)any_number(&state, 8, 23);
			const uint64_t d = any_number(&state, 11, 52);
			memcpy(c->in + o * OPERAND + k * 4, &f, 4);
			memcpy(c->in + o * OPERAND + FLOATS + k * 8, &d, 8);
		}
}

/* ---- the kernel: a unit is a vector of each operand */

struct operands {
	ir_f f[OPERANDS];
	ir_i i[OPERANDS];
	ir_d d[OPERANDS];
	ir_l l[OPERANDS];
	ir_s iterations; /* of the last unit; of the others none */
};

static uint16_t operand(const struct operands *o, unsigned type, unsigned k)
{
	return type == IR_TYPE_f32   ? o->f[k].r
	       : type == IR_TYPE_i32 ? o->i[k].r
	       : type == IR_TYPE_f64 ? o->d[k].r
	       : type == IR_TYPE_i64 ? o->l[k].r
	                             : 0;
}

static void store(struct ir *b, unsigned type, uint16_t r, ir_a at)
{
	if (type == IR_TYPE_f32)
		ir_fstore(b, at, (ir_f){ r }, 0, 0);
	else if (type == IR_TYPE_i32)
		ir_fstore(b, at, ir_fbits(b, (ir_i){ r }), 0, 0);
	else if (type == IR_TYPE_f64)
		ir_dstore(b, at, (ir_d){ r }, 0, 0);
	else
		ir_lstore(b, at, (ir_l){ r }, 0, 0);
}

static void build_operation(struct ir *b, const struct operation *op, const struct operands *o, ir_a at)
{
	const struct ir_facts *f = &ir_facts[op->row];

	if (op->row == IR_loop) {
		ir_i n = ir_var_i(b, o->i[0]);
		ir_loop(b, o->iterations);
		ir_set_i(b, n, ir_iadd(b, ir_imul(b, n, ir_iconst(b, 5)), ir_iconst(b, 1)));
		ir_endloop(b);
		store(b, IR_TYPE_i32, n.r, at);
	} else if (op->row == IR_NO_ROW) {
		ir_fstore(b, at, ir_fadd(b, ir_fmul(b, o->f[0], o->f[1]), o->f[2]), 0, 0);
	} else if (op->row == IR_fstore_h) {
		ir_fstore_h(b, at, o->f[0], 0, 0);
	} else {
		/* no byte of its second operand is -128 */
		const uint16_t second =
			op->row == IR_dot4 ? ir_ior(b, o->i[1], ir_iconst(b, 0x01010101)).r : operand(o, f->b, 1);
		store(b, f->dst,
		      ir_emit(b, (enum ir_op)op->row, 0, operand(o, f->a, 0), second, operand(o, f->c, 2), 0), at);
	}
}

static void build(struct ir *b, const struct target *t)
{
	struct operands o;

	ir_init(b, t->lanes);
	b->waves = t->waves;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s first = ir_begin(b), unit = ir_sadd(b, first, ir_loop(b, ir_ssub(b, ir_end(b), first))),
	     word = ir_smuli(b, unit, 4 * t->lanes);
	ir_a floats = ir_aadd(b, in, word), doubles = ir_aadd(b, floats, word), to = ir_aadd(b, out, word);
	for (int32_t k = 0; k < OPERANDS; k++) {
		o.f[k] = ir_fload(b, floats, k * OPERAND, 0);
		o.i[k] = ir_ibits(b, o.f[k]);
		o.d[k] = ir_dload(b, doubles, k * OPERAND + FLOATS, 0);
		o.l[k] = ir_lbits(b, o.d[k]);
	}
	to = ir_aadd(b, to, word); /* shares are of doubles */
	o.iterations = ir_ssel(b, ir_seq(b, unit, ir_sconst(b, NUMBERS / t->lanes - 1)), ir_sload64(b, arg, 16),
	                       ir_sconst(b, 0));
	for (unsigned k = 0; k < OPERATIONS; k++)
		build_operation(b, &operations[k], &o, ir_aaddi(b, to, (int64_t)k * DOUBLES));
	ir_endloop(b);
}

/* ---- comparison */

static bool same_number(uint64_t a, uint64_t b, unsigned type)
{
	const uint64_t infinite = type == IR_TYPE_f64 ? UINT64_C(0x7ff) << 52 : UINT64_C(0xff) << 23,
		       size = type == IR_TYPE_f64 ? INT64_MAX : INT32_MAX;

	return a == b ||
	       ((type == IR_TYPE_f32 || type == IR_TYPE_f64) && (a & size) > infinite && (b & size) > infinite);
}

static unsigned type_of(const struct operation *op)
{
	return op->row == IR_NO_ROW ? IR_TYPE_f32
	       : op->row == IR_fstore_h || op->row == IR_loop
	               ? IR_TYPE_i32
	               : ir_facts[op->row].dst;
}

/* The number at which an operation differs; NUMBERS: none. A vector's results lie at the share's beginning. */
static unsigned first_difference(const struct checked *want, const struct checked *got, unsigned op, unsigned lanes,
                                 uint64_t bits[2])
{
	const unsigned type = type_of(&operations[op]), size = type == IR_TYPE_f64 || type == IR_TYPE_i64 ? 8 : 4;

	for (unsigned k = 0; k < NUMBERS; k++) {
		const size_t at = (size_t)op * DOUBLES + (size_t)(k / lanes) * lanes * 8 + k % lanes * size;
		bits[0] = bits[1] = 0;
		memcpy(&bits[0], got->out + at, size);
		memcpy(&bits[1], want->out + at, size);
		if (!same_number(bits[0], bits[1], type))
			return k;
	}
	return NUMBERS;
}

/* What was chosen changes, or the device is refused. *again: something was chosen. */
static bool judge(struct vulkan *d, const struct checked *want, const struct checked *got, bool *again,
                  struct error *err)
{
	*again = false;
	for (unsigned k = 0; k < OPERATIONS; k++) {
		const struct operation *op = &operations[k];
		uint64_t bits[2];
		const unsigned at = first_difference(want, got, k, d->is.target->lanes, bits);
		if (at == NUMBERS || (op->choice == SPIRV_LOOPS && !d->choice[op->choice]))
			continue;
		if (op->choice == NO_CHOICE || !d->choice[op->choice])
			return error_set(err, ERROR_DEVICE,
			                 "%s cannot be used: its driver computes %s differently: 0x%llx, expected "
			                 "0x%llx (number %u)",
			                 d->is.name, op->name, (unsigned long long)bits[0], (unsigned long long)bits[1],
			                 at);
		d->choice[op->choice] = false;
		*again = true;
	}
	return true;
}

/* ---- running */

static void set_arguments(struct checked *c, uint64_t address)
{
	c->arg[0] = address + offsetof(struct checked, in);
	c->arg[1] = address + offsetof(struct checked, out);
	c->arg[2] = LONG_LOOP;
}

static int dispatch(struct vulkan *d, uint64_t pipeline, uint64_t address)
{
	const struct vulkan_commands_info info = { .type = VULKAN_COMMANDS_INFO, .pool = d->pool, .count = 1 };
	struct spirv_launch l = { .arg = address + offsetof(struct checked, arg),
		                  .cut = address + offsetof(struct checked, cut) };
	const struct vulkan_memory_barrier barrier = {
		.type = VULKAN_MEMORY_BARRIER, .from = VULKAN_SHADER_WRITE, .to = VULKAN_HOST_READ
	};
	const uint32_t groups = vulkan_share(d, false, 0, NUMBERS / d->is.target->lanes, &l);
	void *commands = NULL;
	int result = d->api.allocate_commands(d->logical, &info, &commands);

	if (!result)
		result = d->api.begin(commands, &(struct vulkan_begin_info){ .type = VULKAN_BEGIN_INFO });
	if (!result) {
		d->api.bind_pipeline(commands, 1, pipeline);
		d->api.push(commands, d->layout, VULKAN_STAGE_COMPUTE, 0, sizeof l, &l);
		d->api.dispatch(commands, groups, 1, 1);
		d->api.barrier(commands, VULKAN_AT_COMPUTE, VULKAN_AT_HOST, 0, 1, &barrier, 0, NULL, 0, NULL);
		result = d->api.end(commands);
	}
	if (!result)
		result = vulkan_run_commands(d, commands, d->fence);
	if (commands && vulkan_idle(d, 0))
		d->api.free_commands(d->logical, d->pool, 1, &commands);
	return result;
}

static bool compute(struct vulkan *d, const struct object *o, struct vulkan_region *r, struct checked *got,
                    struct error *err)
{
	uint64_t pipeline;

	if (!vulkan_make_pipeline(d, o, &pipeline, err))
		return false;
	fill(got);
	set_arguments(got, r->address);
	memcpy(r->mapped, got, sizeof *got);
	const int result = dispatch(d, pipeline, r->address);
	memcpy(got, r->mapped, sizeof *got);
	if (vulkan_idle(d, 0))
		d->api.destroy_pipeline(d->logical, pipeline, NULL);
	return !result || vulkan_failed(d, result, "the comparison of its arithmetic", err);
}

static bool compare(struct vulkan *d, const struct object *o, const struct checked *want, struct checked *got,
                    struct error *err)
{
	struct vulkan_region *r = vulkan_map_region(d, sizeof *got, "the comparison of arithmetic", err);
	bool ok = r != NULL, again = true;

	while (ok && again)
		ok = compute(d, o, r, got, err) && judge(d, want, got, &again, err);
	vulkan_free_region(d, r);
	return ok;
}

bool vulkan_check(struct vulkan *d, struct error *err)
{
	struct checked *want = malloc(sizeof *want), *got = malloc(sizeof *got);
	struct object o = { 0 };
	struct ir ir;
	bool ok = want && got;

	for (unsigned k = 0; k < SPIRV_CHOICES; k++)
		d->choice[k] = true;
	build(&ir, d->is.target);
	if (!ok) {
		error_set(err, ERROR_MEMORY, "no memory to compare a device's arithmetic");
	} else {
		fill(want);
		set_arguments(want, (uint64_t)(uintptr_t)want);
		ok = compile_ir(&o, &ir, d->is.target, NULL, NULL, err);
		if (ok) {
			ir_interp(&ir, want->arg, 0, NUMBERS / d->is.target->lanes);
			ok = compare(d, &o, want, got, err);
		}
	}
	object_free(&o);
	ir_free(&ir);
	free(want);
	free(got);
	return ok;
}
