/* jit/ptx/pipeline.c - the PTX pipeline: IR -> one look -> text.
 *
 * Owns: the order of it, the entry and its shares, loops and barriers, and the module around it all. What a row of
 * ops.def becomes is math.c's, memory.c's and matrix.c's.
 */
#include "jit/ptx/ptx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct ptx_operand op;

/* --- loops and barriers */

static bool loads_shared(const struct ptx_emitter *e, const struct ir_ins *i)
{
	const uint8_t dst = ir_facts[i->op].dst;

	return dst != IR_KIND__ && dst != IR_KIND_A && ir_facts[i->op].a == IR_KIND_A && e->scan.reg[i->a].shared;
}

/* What the turn before stored and loaded: the body of the loop that has begun is looked through. */
static void note_accesses(struct ptx_emitter *e)
{
	unsigned depth = 1;

	for (size_t k = e->at + 1; k < e->ir->n_ins && depth; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		depth += i->op == IR_loop;
		depth -= i->op == IR_endloop;
		if (ptx_stores(i))
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
	for (unsigned k = 0; k < 2; k++) /* it may have had no turn */
		e->stored[k] |= e->loop[e->depth].stored[k];
	e->loaded |= e->loop[e->depth].loaded;
	ptx_new_run(e);
	return true;
}

static bool shape(struct ptx_emitter *e, const struct ir_ins *i)
{
	switch (i->op) {
	case IR_loop: return loop(e, i);
	case IR_endloop: return end_loop(e);
	case IR_barrier:
		PTX_PUT(&e->w, BAR_SYNC, ptx_imm(0));
		e->stored[0] = e->stored[1] = e->loaded = false;
		return true;
	default: return false;
	}
}

/* --- the entry */

static op special(struct ptx_emitter *e, const char *name)
{
	op o = ptx_new(&e->w, PTX_B32);

	PTX_PUT(&e->w, MOV_U32_SPECIAL, o, ptx_name(name));
	return o;
}

/* This wave's share, or this block's (struct ptx_launch). Who has none is done. */
static void find_share(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op share = special(e, "%ctaid.x"), blocks = special(e, "%nctaid.x"), per = ptx_new(w, PTX_B32),
	   rest = ptx_new(w, PTX_B32), more = ptx_new(w, PTX_B32), units = ptx_new(w, PTX_B64),
	   offset = ptx_new(w, PTX_B64), wide = ptx_new(w, PTX_B64), one = ptx_new(w, PTX_PRED),
	   none = ptx_new(w, PTX_PRED), number = share;

	if (!e->ir->cooperative) {
		number = ptx_new(w, PTX_B32);
		PTX_PUT(w, MAD_U32, number, e->wave, blocks, share);
	}
	PTX_PUT(w, LD_PARAM_U32, per, ptx_name("per"));
	PTX_PUT(w, LD_PARAM_U32, rest, ptx_name("rest"));
	PTX_PUT(w, LD_PARAM_U64, e->begin, ptx_name("begin"));
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
	w->guard = none;
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
	op order, first;

	if (w->capability < 90) {
		ptx_early(e);
		return;
	}
	order = ptx_new(w, PTX_B32);
	first = ptx_new(w, PTX_PRED);
	PTX_PUT(w, LD_PARAM_U32, order, ptx_name("order"));
	w->guard = has_not(e, order, PTX_NEXT_LATER);
	PTX_PUT0(w, LAUNCH_DEPENDENTS);
	ptx_early(e);
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

static void enter(struct ptx_emitter *e)
{
	struct ptx_writer *w = &e->w;
	op thread;

	w->to = &w->entry;
	thread = special(e, "%tid.x");
	e->lane = ptx_new(w, PTX_B32);
	e->wave = ptx_new(w, PTX_B32);
	e->arg = ptx_new(w, PTX_B64);
	e->begin = ptx_new(w, PTX_B64);
	e->end = ptx_new(w, PTX_B64);
	e->shared = ptx_new(w, PTX_B64);
	e->locals = ptx_new(w, PTX_B64);
	PTX_PUT(w, AND_B32, e->lane, thread, ptx_imm(31));
	PTX_PUT(w, SHR_U32, e->wave, thread, ptx_imm(5));
	/* lane 0's, so that it is known to be the same for all */
	PTX_PUT(w, SHFL_IDX, e->wave, e->wave, ptx_imm(0), ptx_imm(31), ptx_imm(0xffffffff));
	PTX_PUT(w, LD_PARAM_U64, e->arg, ptx_name("arg"));
	find_share(e);
	if (e->ir->local_bytes || e->ir->shared_bytes) {
		PTX_PUT(w, MOV_U64_SPECIAL, e->shared, ptx_name("memory"));
		PTX_PUT(w, MUL_WIDE_U32, e->locals, e->wave, ptx_imm(e->ir->local_bytes));
		PTX_PUT(w, ADD_S64, e->locals, e->locals, e->shared);
		PTX_PUT(w, ADD_S64, e->locals, e->locals, ptx_imm((e->ir->shared_bytes + 63) & ~63u));
	}
	overlap(e);
	w->to = &w->body;
}

/* --- the module */

/* Of a multiprocessor, which shares its registers among them. Products of matrices wait for their operands, so they
 * want company; other kernels want all registers. */
static unsigned blocks_at_once(const struct ir *ir)
{
	for (size_t k = 0; k < ir->n_ins; k++)
		if (ir->ins[k].op >= IR_tdot_i8 && ir->ins[k].op <= IR_tdot_bf16)
			return 2;
	return 1;
}

static void begin_module(struct ptx_writer *w, struct ptx_buffer *to, const struct ptx_emitter *e)
{
	static const char *const class[PTX_CLASSES] = {
		[PTX_B32] = ".b32 %r", [PTX_B64] = ".b64 %d", [PTX_PRED] = ".pred %p", [PTX_B16] = ".b16 %h"
	};

	ptx_format(w, to, ".version %s\n.target sm_%u\n.address_size 64\n", w->capability < 90 ? "7.4" : "8.0",
	           w->capability);
	if (e->ir->local_bytes || e->ir->shared_bytes)
		ptx_format(w, to, ".extern .shared .align 128 .b8 memory[];\n");
	ptx_format(w, to,
	           ".visible .entry " PTX_ENTRY "(.param .u64 arg, .param .s64 begin, .param .u32 per, "
	           ".param .u32 rest, .param .u32 order)\n");
	ptx_format(w, to, ".maxntid %u, 1, 1\n.minnctapersm %u\n{\n", e->ir->waves * 32, blocks_at_once(e->ir));
	for (unsigned k = 0; k < PTX_CLASSES; k++)
		if (w->registers[k])
			ptx_format(w, to, "\t.reg %s<%" PRIu32 ">;\n", class[k], w -> registers[k]);
}

static void append(struct ptx_buffer *to, const struct ptx_buffer *from)
{
	if (from->n)
		memcpy(to->text + to->n, from->text, from->n);
	to->n += from->n;
}

/* Takes the text. */
static bool make_module(struct object *out, struct ptx_emitter *e)
{
	static const char end[] = "\tret;\n}\n";
	struct ptx_buffer head = { 0 };
	struct ptx_writer *w = &e->w;

	begin_module(w, &head, e);
	char *whole = w->no_memory ? NULL : realloc(head.text, head.n + w->entry.n + w->body.n + sizeof end);
	if (!whole) {
		free(head.text);
		return false;
	}
	head.text = whole;
	append(&head, &w->entry);
	append(&head, &w->body);
	append(&head, &(struct ptx_buffer){ .text = (char *)(uintptr_t)end, .n = sizeof end - 1 });
	out->code = (uint8_t *)head.text;
	out->code_bytes = out->pool_offset = (uint32_t)head.n;
	out->frame_bytes = e->ir->local_bytes;
	out->shared_bytes = e->ir->shared_bytes;
	out->cooperative = e->ir->cooperative;
	return true;
}

static bool emit(struct ptx_emitter *e, struct error *err)
{
	enter(e);
	for (e->at = 0; e->at < e->ir->n_ins; e->at++) {
		const struct ir_ins *i = &e->ir->ins[e->at];
		bool elsewhere = e->scan.leader[e->at] && !e->scan.words[e->at],
		     folded = i->op == IR_aaddi && e->scan.reg[i->dst].root != i->dst && !e->scan.reg[i->dst].whole;
		if (e->scan.dead[e->at] || elsewhere || folded)
			continue;
		ptx_await_before(e, i);
		if (!shape(e, i) && !ptx_memory(e, i) && !ptx_scalar(e, i) && !ptx_matrix(e, i) && !ptx_math(e, i))
			return error_set(err, ERROR_UNSUPPORTED, "the operation %s has no PTX", ir_facts[i->op].name);
	}
	leave(e);
	return !e->w.wrong ||
	       error_set(err, ERROR_UNSUPPORTED, "PTX for sm_%u is not written: %s", e->w.capability, e->w.wrong);
}

static bool compile(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	struct ptx_emitter *e = calloc(1, sizeof *e);

	if (e)
		e->tile = calloc((size_t)j->ir->n_regs + 1, sizeof *e->tile);
	if (!e || !e->tile) {
		free(e);
		return error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
	}
	e->ir = j->ir;
	ptx_init(&e->w, (unsigned)atoi(j->target->name + strlen("sm")));
	bool ok = ptx_scan(&e->scan, j->ir, !(j->options->skip & COMPILE_SKIP_JOINS), err);
	if (ok) {
		memcpy(e->w.registers, e->scan.numbers, sizeof e->w.registers);
		ok = emit(e, err) &&
		     (make_module(out, e) || error_set(err, ERROR_MEMORY, "no memory for the text of a kernel"));
	}
	if (ok && stats)
		*stats = (struct compile_stats){ .ir_instructions = (uint32_t)j->ir->n_ins,
			                         .machine_instructions = e->w.instructions };
	if (ok && j->options->dump_asm)
		fprintf(j->options->dump_asm, "// %s\n%.*s", j->title, (int)out->code_bytes, (const char *)out->code);
	ptx_scan_free(&e->scan);
	ptx_free(&e->w);
	free(e->tile);
	free(e);
	return ok;
}

const struct backend backend_ptx = {
	.name = "ptx", .codegen = &key_codegen_ptx, .compile = compile, .skippable = COMPILE_SKIP_JOINS
};
