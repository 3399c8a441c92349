/* jit/ptx/await.c - words that other blocks of a launch give while it runs.
 *
 * Owns: when they are looked at. A load that awaits is written where it stands; that its words have come is checked in
 * front of their first use, together with all words that were asked for beside them, and those are loaded again until
 * none is empty. So whatever stands between the load and its use hides what memory takes, and words that wait together
 * wait once. A use in a loop that the load is not in checks there, in every iteration; that says nothing about uses
 * behind the loop, which may have had no iteration. An if checks all, so nothing that was asked for before it is left
 * to its parts.
 */
#include "jit/ptx/ptx.h"
#include "jit/ir/lanes.h"

typedef struct ptx_operand op;


/* Vectors of 16 bytes a lane, whose four words the row at `at` and the three behind it load. */
static bool is_vector(const struct ptx_emitter *e)
{
	const struct ir_ins *i = &e->ir->ins[e->at];

	if (ir_row(i) != IR_fawait || ir_x_stride(i->imm) % 16 || e->at + 4 > e->ir->n_ins)
		return false;
	int64_t disp = ir_x_disp(i->imm);
	ptx_root(&e->scan, i->a, &disp);
	if (disp % 16)
		return false;
	for (unsigned k = 0; k < 4; k++)
		if (ir_row(&i[k]) != IR_fawait || i[k].a != i->a || ir_x_stride(i[k].imm) != ir_x_stride(i->imm) ||
		    ir_x_disp(i[k].imm) != ir_x_disp(i->imm) + 4 * (int)k || e->scan.dead[e->at + k] ||
		    e->ir->is_var[i[k].dst])
			return false;
	return true;
}

static op words_of(const struct ptx_emitter *e, const struct ptx_awaited *a)
{
	op d = { .kind = a->words == 4 ? PTX_TUPLE : PTX_REGISTER, .class = PTX_B32, .n = a->words };

	for (unsigned k = 0; k < a->words; k++)
		d.reg[k] = e->scan.reg[a->dst[k]].number;
	return d;
}

static void load(struct ptx_emitter *e, const struct ptx_awaited *a)
{
	static const enum ptx_op op_of[2][2] = { { PTX_LD_RELAXED, PTX_LD_RELAXED_V4 },
		                                 { PTX_LD_RELAXED_SYSTEM, PTX_LD_RELAXED_SYSTEM_V4 } };

	if (a->lanes < 32)
		e->w.guard = ptx_first_lanes(e, a->lanes);
	PTX_PUT_OP(&e->w, op_of[e->cards > 1][a->words == 4], words_of(e, a), a->from);
}

/* Until none of the words that were asked for at this depth is empty. */
static void check(struct ptx_emitter *e, unsigned depth)
{
	struct ptx_writer *w = &e->w;
	const op head = ptx_to(w->labels++), done = ptx_to(w->labels++);
	op some = { 0 }, any = ptx_new(w, PTX_PRED), none = ptx_new(w, PTX_PRED);

	ptx_label(w, (uint32_t)head.value);
	for (unsigned k = 0; k < e->n_awaited; k++)
		for (unsigned j = 0; j < e->awaited[k].words && e->awaited[k].depth == depth; j++) {
			op is = ptx_new(w, PTX_PRED), word = ptx_register(PTX_B32, words_of(e, &e->awaited[k]).reg[j]);
			PTX_PUT(w, EQ_B32, is, word, ptx_imm(IR_EMPTY));
			if (some.class == PTX_PRED) {
				op both = ptx_new(w, PTX_PRED);
				PTX_PUT(w, OR_PRED, both, some, is);
				is = both;
			}
			some = is;
		}
	PTX_PUT(w, VOTE_ANY, any, some, ptx_imm(0xffffffff));
	PTX_PUT(w, NOT_PRED, none, any);
	w->guard = none;
	PTX_PUT(w, BRA, done);
	for (unsigned k = 0; k < e->n_awaited; k++)
		if (e->awaited[k].depth == depth)
			load(e, &e->awaited[k]);
	PTX_PUT(w, BRA, head);
	ptx_label(w, (uint32_t)done.value);
}

/* Of those asked for at this depth or deeper. */
static void forget(struct ptx_emitter *e, unsigned depth)
{
	while (e->n_awaited && e->awaited[e->n_awaited - 1].depth >= depth)
		e->n_awaited--;
}

static bool is_used(const struct ptx_awaited *a, const struct ir_ins *i)
{
	bool is = i->op == IR_if;

	for (unsigned k = 0; k < a->words; k++)
		is |= a->dst[k] == i->a || a->dst[k] == i->b || a->dst[k] == i->c;
	return is;
}

void ptx_await_before(struct ptx_emitter *e, const struct ir_ins *i)
{
	for (unsigned k = 0; k < e->n_awaited && i->op == IR_endloop; k++)
		if (e->awaited[k].seen >= e->depth)
			e->awaited[k].seen = 0;
	if (i->op == IR_endloop || i->op == IR_else || i->op == IR_endif)
		forget(e, e->depth); /* of which nothing is used behind it */
	for (unsigned k = e->n_awaited; k-- > 0;) {
		const unsigned depth = e->awaited[k].depth;
		if (e->awaited[k].seen || !is_used(&e->awaited[k], i))
			continue;
		check(e, depth);
		if (depth == e->depth)
			forget(e, depth);
		for (unsigned j = 0; j < e->n_awaited; j++)
			if (e->awaited[j].depth == depth)
				e->awaited[j].seen = (uint8_t)e->depth;
		k = e->n_awaited; /* of other depths there may be more */
	}
}

bool ptx_await(struct ptx_emitter *e, const struct ir_ins *i)
{
	if (!ir_does(i->op, IR_AWAITS))
		return false;
	if (e->scan.reg[i->a].shared)
		e->w.wrong = "what is awaited lies in shared memory";
	if (e->at < e->awaited_to) /* the fourth of a vector's words, or one before it */
		return true;
	if (e->n_awaited == PTX_MEMO) {
		check(e, e->depth);
		forget(e, e->depth);
	}
	struct ptx_awaited a = { .words = is_vector(e) ? 4 : 1, .lanes = 32, .depth = (uint8_t)e->depth };
	for (unsigned k = 0; k < a.words; k++)
		a.dst[k] = i[k].dst;
	if (ir_row(i) == IR_fawait_at) {
		op wide = ptx_new(&e->w, PTX_B64), sum = ptx_new(&e->w, PTX_B64);
		int64_t disp = i->imm;
		uint16_t root = ptx_root(&e->scan, i->a, &disp);
		PTX_PUT(&e->w, CVT_U64_U32, wide, ptx_reg(e, i->b));
		PTX_PUT(&e->w, ADD_S64, sum, ptx_reg(e, root), wide);
		a.from = ptx_at(sum, disp);
	} else {
		a.lanes = (uint8_t)ir_x_lanes(i->imm, 32);
		a.from = ptx_address(e, i->a, ir_x_disp(i->imm), ir_x_stride(i->imm));
	}
	if (a.lanes < 32)
		PTX_PUT(&e->w, MOV_B32, ptx_reg(e, i->dst), ptx_imm(0));
	load(e, &a);
	e->awaited[e->n_awaited++] = a;
	e->awaited_to = e->at + a.words;
	if (e->ir->is_var[i->dst]) { /* it may be read anywhere */
		check(e, e->depth);
		forget(e, e->depth);
	}
	return true;
}
