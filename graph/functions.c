/* graph/functions.c - functions of numbers, interpreted. */
#include "graph/functions.h"

#include <string.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_functions_narrow.h"

enum { LANES = 8 };

static ir_f narrow(struct ir *b, enum tensor_op op, ir_f x, ir_f y)
{
	switch (op) {
	case OP_exp: return ir_fn_exp_f32(b, x);
	case OP_log: return ir_fn_log_f32(b, x);
	case OP_sin: return ir_fn_sin_f32(b, x);
	case OP_cos: return ir_fn_cos_f32(b, x);
	case OP_tanh: return ir_fn_tanh_f32(b, x);
	case OP_erf: return ir_fn_erf_f32(b, x);
	default: return ir_fn_pow_f32(b, x, y);
	}
}

static ir_d wide(struct ir *b, enum tensor_op op, ir_d x, ir_d y)
{
	switch (op) {
	case OP_exp: return ir_fn_exp_f64(b, x);
	case OP_log: return ir_fn_log_f64(b, x);
	case OP_sin: return ir_fn_sin_f64(b, x);
	case OP_cos: return ir_fn_cos_f64(b, x);
	case OP_tanh: return ir_fn_tanh_f64(b, x);
	case OP_erf: return ir_fn_erf_f64(b, x);
	default: return ir_fn_pow_f64(b, x, y);
	}
}

static void build(struct ir *b, enum tensor_op op, bool is_wide)
{
	const ir_a arg = ir_arg(b), x = ir_aload(b, arg, 0), y = ir_aload(b, arg, 8), out = ir_aload(b, arg, 16);

	if (is_wide)
		ir_dstore(b, out, wide(b, op, ir_dload(b, x, 0, 0), ir_dload(b, y, 0, 0)), 0, 0);
	else
		ir_fstore(b, out, narrow(b, op, ir_fload(b, x, 0, 0), ir_fload(b, y, 0, 0)), 0, 0);
}

bool function_apply(enum tensor_op op, int type, const union number *x, const union number *y, union number *out,
                    uint64_t n, struct error *err)
{
	const size_t size = tensor_type_bytes(type);
	uint8_t of_x[8 * LANES], of_y[8 * LANES], result[8 * LANES];
	const uint64_t arg[] = { (uintptr_t)of_x, (uintptr_t)of_y, (uintptr_t)result };
	struct interp_program *p;
	struct ir ir;
	bool ok = true;

	ir_init(&ir, LANES);
	build(&ir, op, type == JIT_TYPE_F64);
	p = ir_verify(&ir, err) ? interp_compile(&ir) : NULL;
	memset(of_x, 0, sizeof of_x);
	memset(of_y, 0, sizeof of_y);
	for (uint64_t i = 0; p && ok && i < n; i += LANES) {
		const uint64_t lanes = n - i < LANES ? n - i : LANES;
		for (uint64_t k = 0; k < lanes; k++) {
			memcpy(of_x + k * size, &x[i + k], size);
			memcpy(of_y + k * size, y ? &y[i + k] : &x[i + k], size);
		}
		ok = interp_run(p, NULL, arg, 0, 1) == INTERP_DONE;
		for (uint64_t k = 0; k < lanes; k++)
			memcpy(&out[i + k], result + k * size, size);
	}
	if (!p || !ok)
		error_set(err, ERROR_MEMORY, "there is no memory to compute %s", tensor_ops[op].name);
	interp_free(p);
	ir_free(&ir);
	return p && ok;
}
