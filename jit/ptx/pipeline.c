/* jit/ptx/pipeline.c - the PTX pipeline: IR -> one look -> text.
 *
 * Owns: the order of it, the entry and its shares, loops, ifs and barriers, and the module around it all. What a row of
 * ops.def becomes is math.c's, memory.c's and matrix.c's.
 */
#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

typedef struct ptx_operand op;

/* --- loops, ifs and barriers */

static bool loads_shared(const struct ptx_emitter *e, const struct ir_ins *i)
{
	return ir_does(i->op, IR_READS) && ir_facts_of(i)->dst != IR_TYPE_a && e->scan.reg[i->a].shared;
}

/* What the iteration before stored and loaded: the body of the loop that has begun is looked through. */
static void note_accesses(struct ptx_emitter *e)
{
	unsigned depth = 1;

	for (size_t k = e->at + 1; k < e->ir->n_ins && depth; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		depth += i->op == IR_loop;
		depth -= i->op == IR_endloop;
		if (ir_does(i->op, IR_WRITES))
			e->stored[e->scan.reg[i->a].shared] = true;
		e->loaded |= loads_shared(e, i);
	}
}

static bool loop(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	op never = ptx_new(w, PTX_PRED), count = ptx_reg(e, i->a);

	if (e->ir->is_var[i->a]) { /* the body may write the variable; the count is read once */
		count = ptx_new(w, PTX_B64);
		PTX_PUT(w, MOV_B64, count, ptx_reg(e, i->a));
	}
	e->loop[e->depth].count = count;
	e->loop[e->depth].index = ptx_reg(e, i->dst);
	e->loop[e->depth].head = ptx_to(w->labels++);
	e->loop[e->depth].end = ptx_to(w->labels++);
	PTX_PUT(w, MOV_B64, e->loop[e->depth].index, ptx_imm(0));
	PTX_PUT(w, GE_S64, never, e->loop[e->depth].index, count);
	w->guard = never;
	PTX_PUT(w, BRA, e->loop[e->depth].end);
	ptx_label(w, (uint32_t)e->loop[e->depth].head.value);
	memcpy(e->loop[e->depth].stored, e->stored, sizeof e->stored);
	e->loop[e->depth].loaded = e->loaded;
	e->depth++;
	note_accesses(e);
	ptx_new_run(e);
	return true;
}

/* Where ways meet, something was stored, or loaded, that was on one of them. */
static void join_accesses(bool stored[2], bool *loaded, const bool other[2], bool other_loaded)
{
	for (unsigned k = 0; k < 2; k++)
		stored[k] |= other[k];
	*loaded |= other_loaded;
}

static bool end_loop(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op again = ptx_new(w, PTX_PRED);

	e->depth--;
	PTX_PUT(w, ADD_S64, e->loop[e->depth].index, e->loop[e->depth].index, ptx_imm(1));
	PTX_PUT(w, LT_S64, again, e->loop[e->depth].index, e->loop[e->depth].count);
	w->guard = again;
	PTX_PUT(w, BRA, e->loop[e->depth].head);
	ptx_label(w, (uint32_t)e->loop[e->depth].end.value);
	/* it may have had no iteration, or was left by a break */
	join_accesses(e->stored, &e->loaded, e->loop[e->depth].stored, e->loop[e->depth].loaded);
	ptx_new_run(e);
	return true;
}

static bool leave_loop(struct ptx_emitter *e, const struct ir_ins *i)
{
	const unsigned d = e->depth - 1;

	e->w.guard = ptx_reg(e, i->a);
	PTX_PUT(&e->w, BRA, e->loop[d].end);
	join_accesses(e->loop[d].stored, &e->loop[d].loaded, e->stored, e->loaded);
	ptx_new_run(e);
	return true;
}

static bool begin_if(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	const unsigned d = e->branches++;
	op skips = ptx_new(w, PTX_PRED);

	e->branch[d].end = ptx_to(w->labels++);
	memcpy(e->branch[d].stored, e->stored, sizeof e->stored);
	e->branch[d].loaded = e->loaded;
	PTX_PUT(w, NOT_PRED, skips, ptx_reg(e, i->a));
	w->guard = skips;
	PTX_PUT(w, BRA, e->branch[d].end);
	ptx_new_run(e);
	return true;
}

static bool second_part(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	const unsigned d = e->branches - 1;
	const op end = ptx_to(w->labels++);
	const bool stored[2] = { e->stored[0], e->stored[1] }, loaded = e->loaded;

	PTX_PUT(w, BRA, end);
	ptx_label(w, (uint32_t)e->branch[d].end.value);
	e->branch[d].end = end;
	memcpy(e->stored, e->branch[d].stored, sizeof e->stored);
	e->loaded = e->branch[d].loaded;
	memcpy(e->branch[d].stored, stored, sizeof stored);
	e->branch[d].loaded = loaded;
	ptx_new_run(e);
	return true;
}

static bool end_if(struct ptx_emitter *e)
{
	const unsigned d = --e->branches;

	ptx_label(&e->w, (uint32_t)e->branch[d].end.value);
	join_accesses(e->stored, &e->loaded, e->branch[d].stored, e->branch[d].loaded);
	ptx_new_run(e);
	return true;
}

static bool shape(struct ptx_emitter *e, const struct ir_ins *i)
{
	switch (i->op) {
	case IR_loop: return loop(e, i);
	case IR_endloop: return end_loop(e);
	case IR_break: return leave_loop(e, i);
	case IR_if: return begin_if(e, i);
	case IR_else: return second_part(e);
	case IR_endif: return end_if(e);
	case IR_barrier_all: /* which orders all memory among those that meet */
	case IR_barrier:
		PTX_PUT(&e->w, BAR_SYNC, ptx_imm(0));
		e->stored[0] = e->stored[1] = e->loaded = false;
		return true;
	default: return false;
	}
}

/* --- the entry */

op ptx_special(struct ptx_writer *w, const char *name)
{
	op o = ptx_new(w, PTX_B32);

	PTX_PUT(w, MOV_U32_SPECIAL, o, ptx_name(name));
	return o;
}

op ptx_share(struct ptx_emitter *e, op number, op per, op rest)
{
	struct ptx_writer *w = &e->w;
	op more = ptx_new(w, PTX_B32), units = ptx_new(w, PTX_B64), offset = ptx_new(w, PTX_B64),
	   wide = ptx_new(w, PTX_B64), one = ptx_new(w, PTX_PRED), none = ptx_new(w, PTX_PRED);

	PTX_PUT(w, MUL_WIDE_U32, offset, number, per);
	PTX_PUT(w, MIN_U32, more, number, rest);
	PTX_PUT(w, CVT_U64_U32, wide, more);
	PTX_PUT(w, ADD_S64, offset, offset, wide);
	PTX_PUT(w, ADD_S64, e->begin, e->begin, offset);
	PTX_PUT(w, CVT_U64_U32, units, per);
	PTX_PUT(w, ADD_S64, e->end, e->begin, units);
	PTX_PUT(w, LT_U32, one, number, rest);
	w->guard = one;
	PTX_PUT(w, ADD_S64, e->end, e->end, ptx_imm(1));
	PTX_PUT(w, GE_S64, none, e->begin, e->end);
	return none;
}

static bool has_parts(const struct ir *ir)
{
	for (size_t k = 0; k < ir->n_ins; k++)
		if (ir->ins[k].op == IR_part)
			return true;
	return false;
}

/* This wave's share, or this block's (struct ptx_launch). Who has none is done. */
static void find_share(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	const bool parts = has_parts(e->ir);
	op number = ptx_special(w, parts ? "%ctaid.y" : "%ctaid.x"), per = ptx_new(w, PTX_B32),
	   rest = ptx_new(w, PTX_B32);

	if (!e->ir->cooperative) {
		op block = number,
		   blocks = e->ir->beside ? ptx_imm(ptx_block_waves(true, e->ir->shared_bytes + e->ir->local_bytes,
		                                                    e->ir->waves))
		                          : ptx_special(w, parts ? "%nctaid.y" : "%nctaid.x");
		number = ptx_new(w, PTX_B32);
		if (e->ir->beside)
			PTX_PUT(w, MAD_U32, number, block, blocks, e->wave);
		else
			PTX_PUT(w, MAD_U32, number, e->wave, blocks, block);
	}
	PTX_PUT(w, LD_PARAM_U32, per, ptx_name("per"));
	PTX_PUT(w, LD_PARAM_U32, rest, ptx_name("rest"));
	PTX_PUT(w, LD_PARAM_U64, e->begin, ptx_name("begin"));
	w->guard = ptx_share(e, number, per, rest);
	PTX_PUT0(w, RET);
}

static op has_not(struct ptx_emitter *e, op order, enum ptx_order bit)
{
	op is = ptx_new(&e->w, PTX_B32), none = ptx_new(&e->w, PTX_PRED);

	PTX_PUT(&e->w, AND_B32, is, order, ptx_imm(bit));
	PTX_PUT(&e->w, LT_U32, none, is, ptx_imm(1));
	return none;
}

/* The next launch may begin, and what those before this one stored is there to read behind the wait (enum ptx_order).
 * Both say nothing where launches do not overlap. */
static void overlap(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op order = ptx_imm(0), first;

	if (w->capability >= 90) {
		order = ptx_new(w, PTX_B32);
		PTX_PUT(w, LD_PARAM_U32, order, ptx_name("order"));
		w->guard = has_not(e, order, PTX_NEXT_LATER);
		PTX_PUT0(w, LAUNCH_DEPENDENTS);
	}
	ptx_load_slots(e);
	ptx_ask_ahead(e);
	if (w->capability < 90)
		return;
	first = ptx_new(w, PTX_PRED);
	e->waits_last = has_not(e, order, PTX_WAIT_FIRST);
	PTX_PUT(w, NOT_PRED, first, e->waits_last);
	w->guard = first;
	PTX_PUT0(w, GRID_WAIT);
	PTX_PUT0(w, LAUNCH_DEPENDENTS);
}

static void leave(struct ptx_emitter *e)
{
	if (e->w.capability < 90)
		return;
	e->w.guard = e->waits_last;
	PTX_PUT0(&e->w, GRID_WAIT);
}

void ptx_memory_at(struct ptx_emitter *e, uint32_t offset)
{
	struct ptx_writer *w = &e->w;

	if (!e->ir->local_bytes && !e->ir->shared_bytes)
		return;
	PTX_PUT(w, MOV_U64_SPECIAL, e->shared, ptx_name("memory"));
	if (offset)
		PTX_PUT(w, ADD_S64, e->shared, e->shared, ptx_imm(offset));
	PTX_PUT(w, MUL_WIDE_U32, e->locals, e->wave, ptx_imm(e->ir->local_bytes));
	PTX_PUT(w, ADD_S64, e->locals, e->locals, e->shared);
	PTX_PUT(w, ADD_S64, e->locals, e->locals, ptx_imm((e->ir->shared_bytes + 63) & ~63u));
}

/* Those of the op that this block has. */
static void find_arguments(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op number = ptx_special(w, "%ctaid.z"), next = ptx_new(w, PTX_B32), offset = ptx_new(w, PTX_B64);

	PTX_PUT(w, LD_PARAM_U32, next, ptx_name("next"));
	PTX_PUT(w, MUL_WIDE_U32, offset, number, next);
	PTX_PUT(w, LD_PARAM_U64, e->arg, ptx_name("arg"));
	PTX_PUT(w, ADD_S64, e->arg, e->arg, offset);
}

static void enter(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op thread;

	w->to = &w->entry;
	thread = ptx_special(w, "%tid.x");
	PTX_PUT(w, AND_B32, e->lane, thread, ptx_imm(31));
	PTX_PUT(w, SHR_U32, e->wave, thread, ptx_imm(5));
	/* lane 0's, so that it is known to be the same for all */
	PTX_PUT(w, SHFL_IDX, e->wave, e->wave, ptx_imm(0), ptx_imm(31), ptx_imm(0xffffffff));
	find_arguments(e);
	find_share(e);
	ptx_memory_at(e, 0);
	overlap(e);
	w->to = &w->body;
}

/* --- the module */

void ptx_begin_module(struct ptx_writer *w, struct ptx_buffer *to, bool memory)
{
	ptx_format(w, to, ".version %s\n.target sm_%u\n.address_size 64\n", w->capability < 90 ? "7.4" : "8.0",
	           w->capability);
	if (memory)
		ptx_format(w, to, ".extern .shared .align 128 .b8 memory[];\n");
}

static void append(struct ptx_writer *w, struct ptx_buffer *to, const struct ptx_buffer *from)
{
	if (!from->n || w->no_memory)
		return;
	if (!array_grow((void **)&to->text, &to->capacity, to->n + from->n + 1, 1)) {
		w->no_memory = true;
		return;
	}
	memcpy(to->text + to->n, from->text, from->n);
	to->n += from->n;
}

void ptx_put_body(struct ptx_writer *w, struct ptx_buffer *to)
{
	static const char *const class[PTX_CLASSES] = {
		[PTX_B32] = ".b32 %r", [PTX_B64] = ".b64 %d", [PTX_PRED] = ".pred %p", [PTX_B16] = ".b16 %h"
	};

	ptx_format(w, to, "{\n");
	for (unsigned k = 0; k < PTX_CLASSES; k++)
		if (w->registers[k])
			ptx_format(w, to, "\t.reg %s<%" PRIu32 ">;\n", class[k], w -> registers[k]);
	append(w, to, &w->entry);
	append(w, to, &w->body);
	ptx_format(w, to, "\tret;\n}\n");
}

bool ptx_written(const struct ptx_writer *w, struct error *err)
{
	if (w->wrong)
		return error_set(err, ERROR_UNSUPPORTED, "PTX for sm_%u is not written: %s", w->capability, w->wrong);
	return !w->no_memory || error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
}

void ptx_take_text(struct object *out, const struct ptx_buffer *text)
{
	out->code = (uint8_t *)text->text;
	out->code_bytes = out->pool_offset = (uint32_t)text->n;
}

static bool make_module(struct object *out, struct ptx_emitter *e, struct error *err)
{
	struct ptx_buffer text = { 0 };
	struct ptx_writer *w = &e->w;

	ptx_begin_module(w, &text, e->ir->local_bytes || e->ir->shared_bytes);
	ptx_format(w, &text,
	           ".visible .entry " PTX_ENTRY "(.param .u64 arg, .param .s64 begin, .param .u32 per, "
	           ".param .u32 rest, .param .u32 order, .param .u32 next)\n");
	ptx_format(w, &text, ".maxntid %u, 1, 1\n.minnctapersm %u\n",
	           ptx_block_waves(e->ir->beside, e->ir->shared_bytes + e->ir->local_bytes, e->ir->waves) * 32,
	           ptx_blocks_at_once(e->ir));
	ptx_put_body(w, &text);
	out->frame_bytes = e->ir->local_bytes;
	out->shared_bytes = e->ir->shared_bytes;
	out->cooperative = e->ir->cooperative;
	if (!ptx_written(w, err)) {
		free(text.text);
		return false;
	}
	ptx_take_text(out, &text);
	return true;
}

bool ptx_rows(struct ptx_emitter *e, struct error *err)
{
	for (e->at = 0; e->at < e->ir->n_ins; e->at++) {
		const struct ir_ins *i = &e->ir->ins[e->at];
		bool elsewhere = e->scan.leader[e->at] && !e->scan.words[e->at],
		     folded = ir_row(i) == IR_aaddi && e->scan.reg[i->dst].root != i->dst && !e->scan.reg[i->dst].whole;
		if (e->scan.dead[e->at] || elsewhere || folded)
			continue;
		ptx_await_before(e, i);
		if (!shape(e, i) && !ptx_copy_row(e, i) && !ptx_memory(e, i) && !ptx_scalar(e, i) &&
		    !ptx_matrix(e, i) && !ptx_math(e, i))
			return error_set(err, ERROR_UNSUPPORTED, "the operation %s has no PTX", ir_facts_of(i)->name);
	}
	return true;
}

unsigned ptx_capability(const struct target *t) { return (unsigned)atoi(t->name + strlen("sm")); }

static void give_registers(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;

	memcpy(w->registers, e->scan.numbers, sizeof w->registers);
	e->lane = ptx_new(w, PTX_B32);
	e->wave = ptx_new(w, PTX_B32);
	e->arg = ptx_new(w, PTX_B64);
	e->begin = ptx_new(w, PTX_B64);
	e->end = ptx_new(w, PTX_B64);
	e->shared = ptx_new(w, PTX_B64);
	e->locals = ptx_new(w, PTX_B64);
}

struct ptx_emitter *ptx_open(const struct ir *ir, const struct target *t, bool join, bool shared_arg, struct error *err)
{
	struct ptx_emitter *e = calloc(1, sizeof *e);

	if (e)
		e->tile = calloc((size_t)ir->n_regs + 1, sizeof *e->tile);
	if (!e || !e->tile) {
		free(e);
		error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
		return NULL;
	}
	e->ir = ir;
	e->cards = t->cards;
	ptx_init(&e->w, ptx_capability(t));
	if (!ptx_scan(&e->scan, ir, join, shared_arg, err)) {
		ptx_close(e);
		return NULL;
	}
	give_registers(e);
	return e;
}

void ptx_close(struct ptx_emitter *e)
{
	ptx_scan_free(&e->scan);
	ptx_free(&e->w);
	free(e->tile);
	free(e);
}

/* The rows again, where a user's arrays do not lie at multiples of 16 bytes: no load or store is joined. */
static bool unaligned(struct ptx_emitter *e, op label, struct error *err)
{
	PTX_PUT0(&e->w, RET);
	ptx_label(&e->w, (uint32_t)label.value);
	memset(e->scan.leader, 0, e->ir->n_ins * sizeof *e->scan.leader);
	memset(e->scan.words, 0, e->ir->n_ins * sizeof *e->scan.words);
	e->stored[0] = e->stored[1] = e->loaded = false;
	ptx_new_run(e);
	if (!ptx_rows(e, err))
		return false;
	leave(e);
	return true;
}

static bool compile(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	struct ptx_emitter *e = ptx_open(j->ir, j->target, !(j->options->skip & COMPILE_SKIP_JOINS), false, err);

	if (!e)
		return false;
	enter(e);
	op label;
	const bool apart = j->ir->beside && ptx_leave_unaligned(e, &label);
	bool ok = ptx_rows(e, err);
	if (ok) {
		leave(e);
		ok = (!apart || unaligned(e, label, err)) && make_module(out, e, err);
	}
	if (ok && stats)
		*stats = (struct compile_stats){ .ir_instructions = (uint32_t)j->ir->n_ins,
			                         .machine_instructions = e->w.instructions };
	if (ok && j->options->dump_asm)
		fprintf(j->options->dump_asm, "// %s\n%.*s", j->title, (int)out->code_bytes, (const char *)out->code);
	ptx_close(e);
	return ok;
}

const struct backend backend_ptx = {
	.name = "ptx",
	.codegen = &key_codegen_ptx,
	.simulated = true,
	.compile = compile,
	.program = ptx_program,
	.skippable = COMPILE_SKIP_JOINS
};
