/* tests/jit/random_ir_memory.c - random loads, stores, gathers and addresses. */
#include "jit/ir/lanes.h"
#include "jit/target.h"
#include "tests/jit/random_ir_parts.h"

/* What a kernel stores it may read back lane by lane, but not all lanes the same word: some targets have another cache
 * for that. */
enum access { ACCESS_LANES, ACCESS_UNIFORM, ACCESS_STORE, ACCESS_AWAIT, ACCESS_GIVE };

/* An address and a displacement such that n bytes from there lie inside the region, aligned to a power of two up to
 * 8. */
static ir_a address(struct generator *g, enum access access, int32_t n, int32_t align, int32_t *disp)
{
	for (;;) {
		const struct value *v = random_pick(g, IR_TYPE_a, false, false);
		const int32_t max = v->bytes - n - v->hi;

		if ((access == ACCESS_STORE && v->region == REGION_IN) ||
		    (access == ACCESS_AWAIT && v->region == REGION_LOCAL) ||
		    (access == ACCESS_GIVE && v->region != REGION_OUT) ||
		    (access == ACCESS_UNIFORM && v->region == REGION_OUT) || max < -v->lo)
			continue;
		*disp = (int32_t)random_below(g, (unsigned)(max + v->lo) / (unsigned)align + 1) * align -
		        v->lo / align * align;
		return (ir_a){ v->r };
	}
}

void random_load(struct generator *g, enum ir_op op)
{
	const int32_t W = (int32_t)g->ir->lanes;
	const bool scalar = op == IR_sload32 || op == IR_sload64;
	int32_t element = op == IR_fload_h || op == IR_fbcast_h || op == IR_iload_u16 ? 2
	                  : op == IR_iload_u8 || op == IR_iload_s8                    ? 1
	                  : op == IR_sload64 || ir_types[ir_facts[op].type].bytes == 8
	                          ? 8
	                          : 4;
	const bool counted = ir_facts[op].op == IR_load || (op == IR_fawait && random_below(g, 2));
	const unsigned n = counted ? random_below(g, (unsigned)W + 1) : 0;
	const bool uniform = ir_facts[op].op == IR_bcast || scalar;
	const int32_t lanes = uniform ? 1 : n ? (int32_t)n : W;
	const bool strided = op == IR_iload_s || op == IR_fawait;
	const int32_t stride = strided && !counted ? 4 * (1 + (int32_t)random_below(g, 10)) : element;
	int32_t disp;
	const enum access access = op == IR_fawait ? ACCESS_AWAIT : uniform ? ACCESS_UNIFORM : ACCESS_LANES;
	ir_a p = address(g, access, (lanes - 1) * stride + element, element, &disp);
	const uint16_t r = ir_emit(g->ir, op, 0, p.r, 0, 0,
	                           ir_facts[op].imm == IR_IMM_x ? ir_x(disp, n, strided ? (unsigned)stride : 0) : disp);

	if (ir_facts[op].effects & IR_MASKABLE)
		random_where(g);
	if (ir_facts[op].dst == IR_TYPE_f32)
		random_result_f(g, (ir_f){ r });
	else if (ir_facts[op].dst == IR_TYPE_i32)
		random_result_i(g, (ir_i){ r });
	else if (ir_facts[op].dst == IR_TYPE_f64)
		random_result_d(g, (ir_d){ r });
	else if (ir_facts[op].dst == IR_TYPE_i64)
		random_keep(g, (struct value){ .r = r, .kind = IR_TYPE_i64, .tame = true });
	else
		random_result_s(g, (ir_s){ r });
}

void random_store(struct generator *g, enum ir_op op)
{
	const int32_t W = (int32_t)g->ir->lanes,
		      element = op == IR_fstore_h || op == IR_fstore_hs || op == IR_istore_16 ? 2
	                        : op == IR_istore_8                                           ? 1
	                        : op == IR_dstore || op == IR_lstore                          ? 8
	                                                                                      : 4;
	const bool strided = op == IR_fstore_s || op == IR_fstore_hs, counted = ir_facts[op].imm == IR_IMM_x;
	const unsigned n = counted ? random_below(g, (unsigned)W + 1) : 0;
	const int32_t lanes = op == IR_fstore1 ? 1 : n ? (int32_t)n : W;
	const int32_t stride = strided ? element * (1 + (int32_t)random_below(g, 40)) : 0;
	int32_t disp;
	ir_a p = address(g, op == IR_fgive ? ACCESS_GIVE : ACCESS_STORE,
	                 strided ? (lanes - 1) * stride + element : lanes * element, element, &disp);
	uint16_t v;

	if (op == IR_istore_8) /* lanes in -128..127 */
		v = ir_isar(g->ir, random_any_i(g), 24).r;
	else if (op == IR_istore_16)
		v = random_any_i(g).r;
	else if (op == IR_dstore || op == IR_lstore)
		v = random_pick(g, ir_facts[op].b, true, false)->r;
	else
		v = random_tame_f(g).r;
	ir_emit(g->ir, op, 0, p.r, v, 0, ir_facts[op].imm == IR_IMM_x ? ir_x(disp, n, (unsigned)stride) : disp);
	if (ir_facts[op].effects & IR_MASKABLE)
		random_where(g);
}

void random_gather(struct generator *g, enum ir_op op)
{
	int32_t disp;
	ir_a p = address(g, op == IR_igather ? ACCESS_LANES : ACCESS_AWAIT, 256, 4, &disp);
	ir_i offset = ir_iand(g->ir, random_any_i(g), ir_iconst(g->ir, 0xfc));

	if (op == IR_igather) {
		const ir_i loaded = ir_igather(g->ir, p, offset, disp);
		random_where(g);
		random_result_i(g, loaded);
	} else
		random_result_f(g, ir_fawait_at(g->ir, p, offset, disp));
}

/* Elements of the first 32, which are as many as there are places that no two lanes of a scatter may have in common. */
void random_indexed(struct generator *g, enum ir_op op)
{
	const struct ir_facts *f = &ir_facts[op];
	const int32_t bytes = ir_types[f->type].bytes;
	int32_t disp;
	ir_a p = address(g, f->effects & IR_WRITES ? ACCESS_STORE : ACCESS_LANES, 32 * bytes, bytes, &disp);
	ir_i index = f->op == IR_scatter
	                     ? ir_ixor(g->ir, ir_ilane(g->ir), ir_iconst(g->ir, (int32_t)random_below(g, 32)))
	                     : ir_iand(g->ir, random_any_i(g), ir_iconst(g->ir, 31));
	const uint16_t v = f->c ? random_pick(g, f->c, false, false)->r : 0;
	const uint16_t r = ir_emit(g->ir, op, 0, p.r, index.r, v, disp);

	random_where(g);
	if (f->dst == IR_TYPE_i32)
		random_result_i(g, (ir_i){ r });
	else if (f->dst == IR_TYPE_i64)
		random_keep(g, (struct value){ .r = r, .kind = IR_TYPE_i64, .tame = true });
}

void random_address(struct generator *g, enum ir_op op)
{
	struct value v = *random_pick(g, IR_TYPE_a, false, false);
	const int32_t room = (v.bytes - v.hi) / 8;
	const struct value *var;

	v.var = false;
	if (op == IR_aaddi) {
		const int32_t by = ((int32_t)random_below(g, (unsigned)room + 1) -
		                    (v.lo ? (int32_t)random_below(g, (unsigned)v.lo / 8 + 1) : 0)) *
		                   8;

		v = (struct value){ ir_aaddi(g->ir, (ir_a){ v.r }, by).r,
			            IR_TYPE_a,
			            true,
			            false,
			            v.region,
			            v.bytes,
			            v.lo + by,
			            v.hi + by };
	} else if (op == IR_aadd) {
		const int32_t mask = (63 >> random_below(g, 6)) * 8;

		if (mask > room * 8)
			return;
		v.r = ir_aadd(g->ir, (ir_a){ v.r }, ir_sandi(g->ir, random_any_s(g), mask)).r;
		v.hi += mask;
	} else if (op == IR_amov) {
		/* into a variable whose range holds it, else into a new one with a range wider than this address, so
		 * that others fit later */
		var = random_pick(g, IR_TYPE_a, false, true);
		if (var && var->region == v.region && var->bytes == v.bytes && v.lo >= var->lo && v.hi <= var->hi &&
		    v.region != REGION_LOCAL) {
			ir_emit(g->ir, IR_amov, var->r, v.r, 0, 0, 0);
			return;
		}
		v.r = ir_var_a(g->ir, (ir_a){ v.r }).r;
		v.var = true;
		if (v.region != REGION_LOCAL) {
			v.lo = 0;
			v.hi = v.hi > 1024 ? v.hi : 1024;
		}
	}
	v.tame = true;
	random_keep(g, v);
}

void random_local(struct generator *g, enum ir_op op)
{
	const int32_t vector = (int32_t)g->ir->lanes * 4,
		      bytes = vector * (int32_t)(1 + random_below(g, 5)) + 4 * (int32_t)random_below(g, 16);
	ir_a p;

	if (g->depth || (op == IR_shared && g->ir->shared_bytes + ir_local_size(bytes) > TARGET_SHARED_BYTES))
		return;
	p = op == IR_shared ? ir_shared(g->ir, bytes) : ir_local(g->ir, bytes);
	for (int32_t at = 0; at < bytes; at += vector)
		ir_fstore(g->ir, p, random_tame_f(g), at, at + vector <= bytes ? 0 : (unsigned)(bytes - at) / 4);
	random_keep(g, (struct value){ p.r, IR_TYPE_a, true, false, REGION_LOCAL, bytes, 0, 0 });
}
