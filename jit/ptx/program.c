/* jit/ptx/program.c - the text of a program: each kernel as a function, and the entry that walks over commands.
 *
 * Owns: how a block gets at its commands, which of them it has a share of, and how blocks meet. See program.h.
 *
 * Commands are copied to shared memory some iterations before they are needed, by each warp for itself, so no command's
 * words are waited for and no registers keep them while a function runs. A function asks the card for the first of its
 * weights, then waits for the barrier, if it must, and then for the block's other warps, which may still be using the
 * shared memory of the function before.
 */
#include "jit/ptx/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

enum {
	AHEAD = 3,        /* commands on their way to shared memory, */
	RING = AHEAD + 1, /* beside the one that is done: a power of two */
	RING_BYTES = RING * (int)sizeof(struct ptx_command)
};
#define AT(field) ((int64_t)offsetof(struct ptx_command, field))

static uint32_t rings_bytes(const struct target *t) { return t->waves * RING_BYTES; }

/* --- a kernel as a function */

/* %tid.x apart. */
static void find_lane(struct ptx_writer *w, op thread, op lane, op wave)
{
	PTX_PUT(w, AND_B32, lane, thread, ptx_imm(31));
	PTX_PUT(w, SHR_U32, wave, thread, ptx_imm(5));
	/* lane 0's, so that it is known to be the same for all */
	PTX_PUT(w, SHFL_IDX, wave, wave, ptx_imm(0), ptx_imm(31), ptx_imm(0xffffffff));
}

/* Arguments are read where it is known which: from the command. */
static bool reads_command(const struct ptx_emitter *e, struct error *err)
{
	const struct ir *ir = e->ir;

	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		const bool loads = i->op == IR_uload || (i->op == IR_bcast && ir_types[i->type].bytes == 4);
		int64_t at = loads ? i->imm : 0;
		if (!i->a || e->scan.dead[k] || ir_facts_of(i)->a != IR_TYPE_a)
			continue;
		uint16_t root = ptx_root(&e->scan, i->a, &at);
		const bool arg = !ir->is_var[root] && ir->ins[e->scan.reg[root].def].op == IR_arg,
			   wide = i->op == IR_uload && i->type != IR_TYPE_u32;
		if (!arg || (ir_row(i) == IR_aaddi && e->scan.reg[i->dst].root == root))
			continue;
		if (!loads || at < 0 || at % (wide ? 8 : 4) || at + (wide ? 8 : 4) > PTX_COMMAND_SLOTS * 8)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "operation %zu, %s, reads arguments in a way that a command does not have", k,
			                 ir_facts_of(i)->name);
	}
	return true;
}

/* Warp 0 sees that all have arrived, and the block's barrier tells the others. */
static void wait_for_blocks(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op waits = ptx_new(w, PTX_B32), goal = ptx_new(w, PTX_B32), value = ptx_new(w, PTX_B32),
	   left = ptx_new(w, PTX_B32), zero = ptx_new(w, PTX_B32), sync = ptx_new(w, PTX_B64),
	   offset = ptx_new(w, PTX_B64), none = ptx_new(w, PTX_PRED), first = ptx_new(w, PTX_PRED),
	   other = ptx_new(w, PTX_PRED), again = ptx_new(w, PTX_PRED), poll = ptx_to(w->labels++),
	   met = ptx_to(w->labels++);

	PTX_PUT(w, LD_PARAM_U32, waits, ptx_name("waits"));
	PTX_PUT(w, LT_U32, none, waits, ptx_imm(1));
	w->guard = none;
	PTX_PUT(w, BRA, met);
	PTX_PUT(w, LT_U32, first, e->wave, ptx_imm(1));
	PTX_PUT(w, NOT_PRED, other, first);
	w->guard = other;
	PTX_PUT(w, BRA, met);
	PTX_PUT(w, LD_PARAM_U64, sync, ptx_name("sync"));
	PTX_PUT(w, LD_PARAM_U32, goal, ptx_name("goal"));
	PTX_PUT(w, MUL_WIDE_U32, offset, waits, ptx_imm(PTX_SYNC_BYTES));
	PTX_PUT(w, ADD_S64, sync, sync, offset);
	PTX_PUT(w, MOV_B32, zero, ptx_imm(0));
	ptx_label(w, (uint32_t)poll.value);
	PTX_PUT_OP(w, e->cards > 1 ? PTX_LD_ACQUIRE_SYSTEM : PTX_LD_ACQUIRE, value, ptx_at(sync, -PTX_SYNC_BYTES));
	PTX_PUT(w, SUB_S32, left, goal, value);
	PTX_PUT(w, SHFL_IDX, left, left, ptx_imm(0), ptx_imm(31), ptx_imm(0xffffffff));
	PTX_PUT(w, GT_S32, again, left, zero);
	w->guard = again;
	PTX_PUT(w, BRA, poll);
	ptx_label(w, (uint32_t)met.value);
	PTX_PUT(w, BAR_SYNC, ptx_imm(0));
}

static void enter(struct ptx_emitter *e, const struct target *t)
{
	struct ptx_writer *w = &e->w;
	op number = ptx_new(w, PTX_B32), per = ptx_new(w, PTX_B32), rest = ptx_new(w, PTX_B32), none,
	   behind = ptx_to(w->labels++);

	w->to = &w->entry;
	find_lane(w, ptx_special(w, "%tid.x"), e->lane, e->wave);
	PTX_PUT(w, LD_PARAM_U64, e->arg, ptx_name("command"));
	PTX_PUT(w, LD_PARAM_U32, number, ptx_name("share"));
	if (!e->ir->cooperative) {
		op share = number, blocks = ptx_new(w, PTX_B32);
		number = ptx_new(w, PTX_B32);
		PTX_PUT(w, LD_SHARED_B32, blocks, ptx_at(e->arg, AT(blocks)));
		PTX_PUT(w, MAD_U32, number, e->wave, blocks, share);
	}
	PTX_PUT(w, LD_SHARED_B64, e->begin, ptx_at(e->arg, AT(begin)));
	PTX_PUT(w, LD_SHARED_B32, per, ptx_at(e->arg, AT(per)));
	PTX_PUT(w, LD_SHARED_B32, rest, ptx_at(e->arg, AT(rest)));
	none = ptx_share(e, number, per, rest);
	ptx_memory_at(e, rings_bytes(t));
	ptx_load_slots(e);
	w->guard = none; /* who has no units must come to the block's barrier, too */
	PTX_PUT(w, BRA, behind);
	ptx_ask_ahead(e);
	ptx_label(w, (uint32_t)behind.value);
	wait_for_blocks(e);
	w->guard = none;
	PTX_PUT0(w, RET);
	w->to = &w->body;
}

static bool put_function(struct ptx_buffer *to, unsigned number, const struct ir *ir, const struct target *t,
                         struct error *err)
{
	struct ptx_emitter *e = ptx_open(ir, t, !ir->beside, true, err);

	if (!e)
		return false;
	enter(e, t);
	bool ok = reads_command(e, err) && ptx_rows(e, err);
	if (ok) {
		ptx_format(&e->w, to, ".func kernel_%u(.param .b64 command, .param .b32 share, ", number);
		ptx_format(&e->w, to, ".param .b32 waits, .param .b64 sync, .param .b32 goal)\n");
		ptx_put_body(&e->w, to);
		ok = ptx_written(&e->w, err);
	}
	ptx_close(e);
	return ok;
}

/* --- the entry */

struct program {
	struct ptx_writer w;
	struct ptx_buffer text;
	unsigned n, cards;
	/* the same for all lanes, but `copies`: what this lane copies of a command, and to where */
	op lane, wave, thread, block, blocks, ring, copies, from, iteration, iterations, seen, command;
	op function, share, waits, arrives, sync, goal;
	op next;
};

static op parameter(struct ptx_writer *w, const char *name, bool wide)
{
	op o = ptx_new(w, wide ? PTX_B64 : PTX_B32);

	if (wide)
		PTX_PUT(w, LD_PARAM_U64, o, ptx_name(name));
	else
		PTX_PUT(w, LD_PARAM_U32, o, ptx_name(name));
	return o;
}

static op wide_product(struct ptx_writer *w, op a, int64_t by)
{
	op o = ptx_new(w, PTX_B64);

	PTX_PUT(w, MUL_WIDE_U32, o, a, ptx_imm(by));
	return o;
}

static op sum(struct ptx_writer *w, op a, op b)
{
	op o = ptx_new(w, PTX_B64);

	PTX_PUT(w, ADD_S64, o, a, b);
	return o;
}

static op less(struct ptx_writer *w, op a, op b)
{
	op p = ptx_new(w, PTX_PRED);

	PTX_PUT(w, LT_U32, p, a, b);
	return p;
}

static op not(struct ptx_writer * w, op a)
{
	op p = ptx_new(w, PTX_PRED);

	PTX_PUT(w, NOT_PRED, p, a);
	return p;
}

static void branch(struct ptx_writer *w, op when, op to)
{
	w->guard = when;
	PTX_PUT(w, BRA, to);
}

/* Sends command `number` on its way to its slot in the ring, if there is one; a group of copies, empty or not. */
static void copy_command(struct program *p, op number)
{
	struct ptx_writer *w = &p->w;
	op slot = ptx_new(w, PTX_B32), there = less(w, number, p->iterations), from, to;

	PTX_PUT(w, AND_B32, slot, number, ptx_imm(AHEAD));
	to = sum(w, p->copies, wide_product(w, slot, sizeof(struct ptx_command)));
	from = sum(w, p->from, wide_product(w, number, sizeof(struct ptx_command)));
	w->guard = there;
	PTX_PUT(w, COPY_LATER, ptx_at(to, 0), ptx_at(from, 0), ptx_imm(8));
	PTX_PUT0(w, COPIES_GROUP);
}

static void begin(struct program *p)
{
	struct ptx_writer *w = &p->w;
	op memory = ptx_new(w, PTX_B64), lanes, at = ptx_new(w, PTX_B32), all;

	p->thread = ptx_special(w, "%tid.x");
	p->block = ptx_special(w, "%ctaid.x");
	all = p->blocks = ptx_special(w, "%nctaid.x");
	p->lane = ptx_new(w, PTX_B32);
	p->wave = ptx_new(w, PTX_B32);
	find_lane(w, p->thread, p->lane, p->wave);
	PTX_PUT(w, MOV_U64_SPECIAL, memory, ptx_name("memory"));
	p->ring = sum(w, memory, wide_product(w, p->wave, RING_BYTES));
	lanes = wide_product(w, p->lane, 8);
	p->copies = sum(w, p->ring, lanes);
	p->from = sum(w, parameter(w, "commands", true), lanes);
	p->iterations = parameter(w, "n", false);
	p->sync = parameter(w, "sync", true);
	p->goal = ptx_new(w, PTX_B32);
	if (p->cards > 1) {
		all = ptx_new(w, PTX_B32);
		PTX_PUT(w, MUL_S32, all, p->blocks, ptx_imm(p->cards));
	}
	PTX_PUT(w, ADD_S32, p->goal, parameter(w, "arrivals", false), all);
	for (unsigned k = 0; k < AHEAD; k++) {
		op number = k ? ptx_new(w, PTX_B32) : at;
		PTX_PUT(w, MOV_B32, number, ptx_imm(k));
		copy_command(p, number);
	}
}

/* 16 bytes a thread in an iteration, all blocks side by side. */
static void empty_region(struct program *p)
{
	struct ptx_writer *w = &p->w;
	op number = ptx_new(w, PTX_B32), word = ptx_new(w, PTX_B32), begin = ptx_new(w, PTX_B64), end, at, step,
	   more = ptx_new(w, PTX_PRED), mine = ptx_new(w, PTX_PRED), again = ptx_to(w->labels++),
	   done = ptx_to(w->labels++), threads = ptx_special(w, "%ntid.x"), all = ptx_new(w, PTX_B32);
	op words = { .kind = PTX_TUPLE, .class = PTX_B32, .n = 4 };

	PTX_PUT(w, MAD_U32, number, p->block, threads, p->thread);
	PTX_PUT(w, MUL_S32, all, p->blocks, threads);
	step = wide_product(w, all, 16);
	PTX_PUT(w, LD_PARAM_U64, begin, ptx_name("empty"));
	at = sum(w, begin, wide_product(w, number, 16));
	end = sum(w, begin, parameter(w, "empty_bytes", true));
	PTX_PUT(w, MOV_B32, word, ptx_imm(IR_EMPTY));
	for (unsigned k = 0; k < 4; k++)
		words.reg[k] = word.reg[0];
	ptx_label(w, (uint32_t)again.value);
	PTX_PUT(w, GE_S64, more, begin, end);
	branch(w, more, done);
	PTX_PUT(w, LT_S64, mine, at, end);
	w->guard = mine;
	PTX_PUT(w, ST_GLOBAL_V4, ptx_at(at, 0), words);
	PTX_PUT(w, ADD_S64, at, at, step);
	PTX_PUT(w, ADD_S64, begin, begin, step);
	PTX_PUT(w, BRA, again);
	ptx_label(w, (uint32_t)done.value);
}

/* The iteration's command, when its words are there. Blocks without a share go on behind the calls. */
static void take_command(struct program *p, op skip)
{
	struct ptx_writer *w = &p->w;
	op ahead = ptx_new(w, PTX_B32), slot = ptx_new(w, PTX_B32), unused = ptx_new(w, PTX_B32),
	   first = ptx_new(w, PTX_B32), blocks = ptx_new(w, PTX_B32), new = ptx_new(w, PTX_PRED),
	   zero = ptx_new(w, PTX_B32), before;

	PTX_PUT(w, BAR_WARP_SYNC, ptx_imm(0xffffffff)); /* the slot it goes to has been read */
	PTX_PUT(w, ADD_S32, ahead, p->iteration, ptx_imm(AHEAD));
	copy_command(p, ahead);
	PTX_PUT(w, COPIES_WAIT, ptx_imm(AHEAD));
	PTX_PUT(w, BAR_WARP_SYNC, ptx_imm(0xffffffff));
	PTX_PUT(w, AND_B32, slot, p->iteration, ptx_imm(AHEAD));
	p->command = sum(w, p->ring, wide_product(w, slot, sizeof(struct ptx_command)));
	p->function = ptx_new(w, PTX_B32);
	p->share = ptx_new(w, PTX_B32);
	op four = { .kind = PTX_TUPLE,
		    .class = PTX_B32,
		    .n = 4,
		    .reg = { p->function.reg[0], unused.reg[0], first.reg[0], blocks.reg[0] } };
	PTX_PUT(w, LD_SHARED_V4, four, ptx_at(p->command, AT(function)));
	PTX_PUT(w, LD_SHARED_B32, p->arrives, ptx_at(p->command, AT(arrives)));
	PTX_PUT(w, SUB_S32, p->share, p->block, first);
	before = less(w, p->block, first);
	w->guard = before;
	PTX_PUT(w, ADD_S32, p->share, p->share, p->blocks);
	branch(w, not(w, less(w, p->share, blocks)), skip);
	p->waits = ptx_new(w, PTX_B32);
	PTX_PUT(w, LD_SHARED_B32, p->waits, ptx_at(p->command, AT(waits)));
	PTX_PUT(w, GT_S32, new, p->waits, p->seen);
	PTX_PUT(w, MAX_S32, p->seen, p->seen, p->waits);
	PTX_PUT(w, MOV_B32, zero, ptx_imm(0));
	PTX_PUT(w, SELP_B32, p->waits, p->waits, zero, new);
}

/* Calls one of the functions from..to - 1, by halves. */
static void call(struct program *p, unsigned from, unsigned to, op done)
{
	struct ptx_writer *w = &p->w;
	unsigned middle = from + (to - from) / 2;
	op lower;

	if (to - from > 1) {
		lower = ptx_to(w->labels++);
		branch(w, less(w, p->function, ptx_imm(middle)), lower);
		call(p, middle, to, done);
		ptx_label(w, (uint32_t)lower.value);
		call(p, from, middle, done);
		return;
	}
	ptx_format(w, w->to, "\tcall.uni kernel_%u, (%%d%" PRIu32 ", %%r%" PRIu32, from, p->command.reg[0],
	           p->share.reg[0]);
	ptx_format(w, w->to, ", %%r%" PRIu32 ", %%d%" PRIu32 ", %%r%" PRIu32 ");\n", p->waits.reg[0], p->sync.reg[0],
	           p->goal.reg[0]);
	w->instructions++;
	PTX_PUT(w, BRA, done);
}

/* What this block's warps stored is there to see for who sees that it has arrived. */
static void arrive(struct program *p)
{
	struct ptx_writer *w = &p->w;
	op next = ptx_to(w->labels++);
	op counter;

	branch(w, less(w, p->arrives, ptx_imm(1)), next);
	PTX_PUT(w, BAR_SYNC, ptx_imm(0));
	counter = sum(w, p->sync, wide_product(w, p->arrives, PTX_SYNC_BYTES));
	w->guard = less(w, p->thread, ptx_imm(1));
	ptx_store(w, p->cards, p->cards > 1 ? PTX_RED_RELEASE_SYSTEM : PTX_RED_RELEASE,
	          ptx_at(counter, -PTX_SYNC_BYTES), ptx_imm(1));
	ptx_label(w, (uint32_t)next.value);
}

static void put_entry(struct program *p, const struct target *t)
{
	struct ptx_writer *w = &p->w;
	op again = ptx_to(w->labels++), skip = ptx_to(w->labels++);

	begin(p);
	empty_region(p);
	p->iteration = ptx_new(w, PTX_B32);
	p->seen = ptx_new(w, PTX_B32);
	p->arrives = ptx_new(w, PTX_B32);
	PTX_PUT(w, MOV_B32, p->iteration, ptx_imm(0));
	PTX_PUT(w, MOV_B32, p->seen, ptx_imm(0));
	ptx_label(w, (uint32_t)again.value);
	take_command(p, skip);
	call(p, 0, p->n, skip);
	ptx_label(w, (uint32_t)skip.value);
	arrive(p);
	PTX_PUT(w, ADD_S32, p->iteration, p->iteration, ptx_imm(1));
	branch(w, less(w, p->iteration, p->iterations), again);
	ptx_format(w, &p->text,
	           ".visible .entry " PTX_PROGRAM_ENTRY "(.param .u64 commands, .param .u32 n, .param .u64 sync, "
	           ".param .u32 arrivals, ");
	ptx_format(w, &p->text, ".param .u64 empty, .param .u64 empty_bytes)\n.maxntid %u, 1, 1\n.minnctapersm 1\n",
	           t->waves * 32);
	ptx_put_body(w, &p->text);
}

/* --- the module */

static uint32_t shared_bytes(const struct ir *ir, const struct target *t)
{
	return ((ir->shared_bytes + 63) & ~63u) + t->waves * ir->local_bytes;
}

bool ptx_program(struct object *out, const struct ir *const kernels[], size_t n, const struct target *t,
                 struct error *err)
{
	struct program p = { .n = (unsigned)n, .cards = t->cards };
	uint32_t max = 0;
	bool ok = true;

	*out = (struct object){ 0 };
	ptx_init(&p.w, ptx_capability(t));
	ptx_begin_module(&p.w, &p.text, true);
	for (size_t k = 0; ok && k < n; k++) {
		ok = ir_verify(kernels[k], err) && put_function(&p.text, (unsigned)k, kernels[k], t, err);
		max = shared_bytes(kernels[k], t) > max ? shared_bytes(kernels[k], t) : max;
	}
	if (ok) {
		put_entry(&p, t);
		ok = ptx_written(&p.w, err);
	}
	if (ok) {
		ptx_take_text(out, &p.text);
		out->shared_bytes = rings_bytes(t) + max;
		out->cooperative = true;
	} else {
		free(p.text.text);
	}
	ptx_free(&p.w);
	return ok;
}
