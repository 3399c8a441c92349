/* jit/ptx/occupancy.c - how many warps a block has, and how many blocks a multiprocessor is to have at once, which is
 * what bounds the registers of a thread.
 *
 * Users' kernels (ir->beside) wait for memory and for long divisions, so that they want other warps to go on with; but
 * what they hold in registers must not be spilled. How many vectors live at once says which of both it is.
 */
#include "jit/ptx/ptx.h"

#include <stdlib.h>

struct life {
	size_t from, to; /* instructions; to 0: none uses it */
};

static unsigned registers_of(unsigned type)
{
	return type == IR_TYPE_f32 || type == IR_TYPE_i32 ? 1 : type == IR_TYPE_f64 || type == IR_TYPE_i64 ? 2 : 0;
}

static void find_lives(const struct ir *ir, struct life *life)
{
	for (size_t k = ir->n_ins; k-- > 0;)
		life[ir->ins[k].dst].from = k;
	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		life[i->a].to = life[i->b].to = life[i->c].to = k;
		if (ir->is_var[i->dst])
			life[i->dst].to = k;
	}
}

/* What is used in a loop and was there before lives to its end. */
static void extend_over_loop(const struct ir *ir, struct life *life, size_t begin, size_t end)
{
	for (size_t r = 1; r < ir->n_regs; r++)
		if (life[r].from < begin && life[r].to > begin && life[r].to < end)
			life[r].to = end;
}

static unsigned greatest_sum(const struct ir *ir, const struct life *life, int32_t *change)
{
	int32_t sum = 0, max = 0;

	for (size_t r = 1; r < ir->n_regs; r++)
		if (life[r].to > life[r].from && ir->ins[life[r].from].op != IR_const) {
			change[life[r].from] += (int32_t)registers_of(ir->type[r]);
			change[life[r].to] -= (int32_t)registers_of(ir->type[r]);
		}
	for (size_t k = 0; k < ir->n_ins; k++) {
		sum += change[k];
		max = sum > max ? sum : max;
	}
	return (unsigned)max;
}

/* Registers that vectors take at once, roughly: the driver's compiler orders instructions anew. */
static unsigned vectors_at_once(const struct ir *ir)
{
	struct life *life = calloc(ir->n_regs + 1, sizeof *life);
	int32_t *change = calloc(ir->n_ins + 1, sizeof *change);
	size_t begin[IR_MAX_DEPTH + 1];
	unsigned depth = 0, n = UINT32_MAX;

	if (life && change) {
		find_lives(ir, life);
		for (size_t k = 0; k < ir->n_ins; k++) {
			if (ir->ins[k].op == IR_loop)
				begin[depth++] = k;
			else if (ir->ins[k].op == IR_endloop)
				extend_over_loop(ir, life, begin[--depth], k);
		}
		n = greatest_sum(ir, life, change);
	}
	free(life);
	free(change);
	return n;
}

/* A multiprocessor has 65536 registers. */
static unsigned user_blocks(const struct ir *ir)
{
	enum { SMALL = 40, MIDDLE = 96, LARGE = 148 };
	const unsigned n = vectors_at_once(ir), warps = n <= SMALL ? 32 : n <= MIDDLE ? 16 : n <= LARGE ? 12 : 8;

	return warps / PTX_USER_WAVES;
}

/* Products of matrices that wait for their operands want company, and so do groups whose waves do not wait for each
 * other; other kernels want all registers, and so do products whose operands are copied ahead. */
unsigned ptx_blocks_at_once(const struct ir *ir)
{
	bool meets = false, multiplies = false, copies = false;

	if (ptx_block_waves(ir->beside, ir->shared_bytes + ir->local_bytes, ir->waves) < ir->waves)
		return user_blocks(ir);
	for (size_t k = 0; k < ir->n_ins; k++) {
		multiplies |= ptx_multiplies(&ir->ins[k]);
		meets |= ir->ins[k].op == IR_barrier;
		copies |= ir->ins[k].op == IR_copies;
	}
	return multiplies ? (copies ? 1 : 2) : ir->cooperative && !meets ? 2 : 1;
}
