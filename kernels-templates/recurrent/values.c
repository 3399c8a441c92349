/* kernels-templates/recurrent/values.c - the values of a unit. See values.h. */
#include "kernels-templates/recurrent/values.h"

enum { BLOCK = 32, SHORT = 16 };

static int32_t part_bytes(const struct ir *b, unsigned part) { return (int32_t)(part * b->lanes * 4); }

/* How many lanes of a short block's part are real; 0: all of them, and -1: none. */
static int real_lanes(const struct ir *b, unsigned part)
{
	int n = SHORT - (int)(part * b->lanes);

	return n <= 0 ? -1 : n >= (int)b->lanes ? 0 : n;
}

struct values values_of_unit(struct ir *b, ir_s unit, uint32_t size)
{
	const uint32_t blocks = template_value_blocks(size);
	struct values v = { .size = size, .head = ir_sdivi(b, unit, blocks) };

	if (size % BLOCK)
		v.block = ir_ssub(b, unit, ir_smuli(b, v.head, blocks));
	return v;
}

ir_s values_offset(struct ir *b, const struct values *v, ir_s unit)
{
	if (v->size % BLOCK == 0)
		return ir_sshli(b, unit, 7);
	return ir_sadd(b, ir_smuli(b, v->head, (int64_t)v->size * 4), ir_sshli(b, v->block, 7));
}

/* 1: the unit is a whole block, 0: it is the short one. */
static ir_s is_whole(struct ir *b, const struct values *v)
{
	return ir_smin(b, ir_ssub(b, ir_sconst(b, v->size / BLOCK), v->block), ir_sconst(b, 1));
}

static ir_f load_short(struct ir *b, ir_a at, unsigned part)
{
	int n = real_lanes(b, part);

	return n < 0 ? ir_fconst(b, 0.0f) : ir_fload(b, at, part_bytes(b, part), (unsigned)n);
}

static void store_short(struct ir *b, ir_a at, ir_f x, unsigned part)
{
	int n = real_lanes(b, part);

	if (n >= 0)
		ir_fstore(b, at, x, part_bytes(b, part), (unsigned)n);
}

void values_load(struct ir *b, const struct values *v, ir_a at, ir_f out[MATH_MAX_PARTS])
{
	const unsigned parts = math_parts(b);

	if (v->size % BLOCK == 0 || v->size < BLOCK) {
		for (unsigned i = 0; i < parts; i++)
			out[i] = v->size < BLOCK ? load_short(b, at, i) : ir_fload(b, at, part_bytes(b, i), 0);
		return;
	}
	ir_s whole = is_whole(b, v);
	for (unsigned i = 0; i < parts; i++)
		out[i] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, whole);
	for (unsigned i = 0; i < parts; i++)
		ir_set_f(b, out[i], ir_fload(b, at, part_bytes(b, i), 0));
	ir_endloop(b);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), whole));
	for (unsigned i = 0; i < parts; i++)
		ir_set_f(b, out[i], load_short(b, at, i));
	ir_endloop(b);
}

void values_store(struct ir *b, const struct values *v, ir_a at, const ir_f in[MATH_MAX_PARTS])
{
	const unsigned parts = math_parts(b);

	if (v->size % BLOCK == 0 || v->size < BLOCK) {
		for (unsigned i = 0; i < parts; i++)
			if (v->size < BLOCK)
				store_short(b, at, in[i], i);
			else
				ir_fstore(b, at, in[i], part_bytes(b, i), 0);
		return;
	}
	ir_s whole = is_whole(b, v);
	ir_loop(b, whole);
	for (unsigned i = 0; i < parts; i++)
		ir_fstore(b, at, in[i], part_bytes(b, i), 0);
	ir_endloop(b);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), whole));
	for (unsigned i = 0; i < parts; i++)
		store_short(b, at, in[i], i);
	ir_endloop(b);
}
