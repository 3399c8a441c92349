/* sim/ptx_run.c - runs the steps of a warp: who takes part, branches, calls. See sim/ptx.h. */
#include <stdio.h>
#include <string.h>

#include "sim/ptx_warp.h"

bool ptx_trap(const struct ptx_block *b, const struct ptx_warp *w, int lane, const char *why)
{
	const struct ptx_step *s = &b->t->step[w->at < b->t->n_steps ? w->at : b->t->n_steps - 1];
	char text[120], where[32] = "";

	if (lane >= 0)
		snprintf(where, sizeof where, ", lane %d", lane);
	return error_set(b->err, ERROR_DEVICE,
	                 "the simulated kernel trapped in block %u, warp %u%s, line %u, \"%s\": %s", b->number,
	                 w->number, where, s->line, ptx_text_line(b->t, s->line, text, sizeof text), why);
}

/* --- a step */

static void define(struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	for (unsigned k = 0; k < 4; k++)
		if (s->d[k] != PTX_NO_REGISTER)
			w->defined[s->d[k]] |= mask;
}

static bool are_defined(const struct ptx_block *b, const struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	for (unsigned k = 0; k < PTX_SOURCES; k++)
		if (s->s[k] != PTX_NO_REGISTER && (w->defined[s->s[k]] & mask) != mask)
			return ptx_trap(b, w, __builtin_ctz(mask & ~w->defined[s->s[k]]),
			                "a register is read that nothing wrote");
	return true;
}

static bool branch(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	if (mask && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes take the branch");
	if (mask && b->together && (size_t)s->disp <= w->at)
		ptx_poll_branch(b, w);
	w->at = mask ? (size_t)s->disp : w->at + 1;
	return true;
}

/* All lanes by the same number. */
static bool branch_by_number(const struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s)
{
	const struct ptx_list *l = &b->t->list[s->disp];
	const uint64_t *number = w->reg + (size_t)s->s[0] * PTX_LANES;

	if (!are_defined(b, w, s, UINT32_MAX))
		return false;
	for (unsigned i = 1; i < PTX_LANES; i++)
		if (number[i] != number[0])
			return ptx_trap(b, w, (int)i, "lanes branch to different places");
	if (number[0] >= l->n)
		return ptx_trap(b, w, 0, "the number is beyond the list of labels");
	w->at = (size_t)l->to[number[0]];
	return true;
}

static void copy_register(struct ptx_warp *w, uint32_t to, uint32_t from)
{
	memcpy(w->reg + (size_t)to * PTX_LANES, w->reg + (size_t)from * PTX_LANES, PTX_LANES * sizeof *w->reg);
	w->defined[to] = w->defined[from];
}

/* Nothing is known of the function's registers but of its parameters. */
static void call(const struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s)
{
	const struct ptx_call *c = &b->t->call[s->disp];
	const struct ptx_function *f = &b->t->function[c->function];

	memset(w->defined + f->base, 0, f->n_registers * sizeof *w->defined);
	for (unsigned i = 0; i < c->n_args; i++)
		copy_register(w, f->param[i].reg, c->arg[i]);
	w->back[w->depth++] = w->at;
	w->at = f->first;
}

static void go_back(const struct ptx_block *b, struct ptx_warp *w)
{
	const size_t from = w->depth ? w->back[--w->depth] : 0;
	const struct ptx_call *c = &b->t->call[b->t->step[from].disp];
	const struct ptx_function *f = &b->t->function[c->function];

	for (unsigned i = 0; i < c->n_results; i++)
		copy_register(w, c->result[i], f->result[i].reg);
	w->at = from + 1;
}

static bool control(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	if (s->operation == PTX_DO_BRANCH)
		return branch(b, w, s, mask);
	if (mask && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes do this");
	if (!mask) {
		w->at++;
		return true;
	}
	switch (s->operation) {
	case PTX_DO_SWITCH: return branch_by_number(b, w, s);
	case PTX_DO_CALL: call(b, w, s); return true;
	case PTX_DO_RETURN:
		if (w->depth) {
			go_back(b, w);
			return true;
		}
		w->state = PTX_ENDED;
		break;
	case PTX_DO_EXIT: w->state = PTX_ENDED; break;
	case PTX_DO_TRAP: return ptx_trap(b, w, -1, "the kernel stops by itself");
	case PTX_DO_END: return ptx_trap(b, w, -1, "it runs beyond the function's end");
	case PTX_DO_BARRIER: w->state = PTX_AT_BARRIER; break;
	case PTX_DO_WAIT_LAST: w->waited = true; break;
	case PTX_DO_COPIES_GROUP: w->copies.group++; break;
	case PTX_DO_COPIES_WAIT: ptx_copies_wait(b, w, w->reg[(size_t)s->s[0] * PTX_LANES]); break;
	default: break;
	}
	w->met += s->operation == PTX_DO_BARRIER || s->operation == PTX_DO_MEET;
	w->poll.disturbed = true;
	w->at++;
	return true;
}

static bool is_control(unsigned operation) { return operation >= PTX_DO_BRANCH; }
static bool is_product(unsigned operation) { return operation >= PTX_DO_MMA_S8 && operation <= PTX_DO_MMA_BF16; }
static bool is_across(unsigned operation)
{
	return (operation >= PTX_DO_BUTTERFLY && operation <= PTX_DO_ALL) || is_product(operation) ||
	       operation == PTX_DO_LOAD_MATRIX;
}

static bool is_ahead(unsigned operation) { return operation == PTX_DO_PREFETCH || operation == PTX_DO_PREFETCH_LINE; }
static bool is_nothing(unsigned operation) { return operation == PTX_DO_FENCE || operation == PTX_DO_NAP; }

static void load_param(const struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	uint64_t value = 0;

	memcpy(&value, b->run->params[b->card * b->entry->n_params + (size_t)s->disp], b->entry->param[s->disp].bytes);
	for (unsigned l = 0; l < PTX_LANES; l++)
		if (mask >> l & 1)
			w->reg[(size_t)s->d[0] * PTX_LANES + l] = value & s->mask;
}

/* The lanes that carry a step out. False: trapped. */
static bool guard(const struct ptx_block *b, const struct ptx_warp *w, const struct ptx_step *s, uint32_t *mask)
{
	uint32_t is = 0;

	*mask = UINT32_MAX;
	if (s->guard == PTX_NO_REGISTER)
		return true;
	if (w->defined[s->guard] != UINT32_MAX)
		return ptx_trap(b, w, -1, "the predicate is one that nothing wrote");
	for (unsigned l = 0; l < PTX_LANES; l++)
		is |= (uint32_t)(w->reg[(size_t)s->guard * PTX_LANES + l] & 1) << l;
	*mask = s->guard_is_not ? ~is : is;
	return true;
}

static bool step(struct ptx_block *b, struct ptx_warp *w)
{
	const struct ptx_step *s = &b->t->step[w->at];
	uint32_t mask;

	if (!guard(b, w, s, &mask))
		return false;
	b->run->instructions++;
	if (is_control(s->operation))
		return control(b, w, s, mask);
	if (is_across(s->operation) && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes do this");
	if (mask) {
		if (!are_defined(b, w, s, mask))
			return false;
		if (s->operation == PTX_DO_PARAM)
			load_param(b, w, s, mask);
		else if (is_product(s->operation))
			ptx_multiply(w, s, b->run->sums);
		else if (s->operation == PTX_DO_COPY          ? !ptx_copy(b, w, s, mask)
		         : is_ahead(s->operation)             ? !ptx_prefetch(b, w, s, mask)
		         : s->operation == PTX_DO_LOAD_MATRIX ? !ptx_load_matrix(b, w, s)
		         : ptx_is_access(s->operation)        ? !ptx_access(b, w, s, mask)
		                                              : !is_nothing(s->operation) && !ptx_compute(w, s, mask))
			return b->err->code ? false : ptx_trap(b, w, -1, "the simulator does not do this");
		if (s->operation == PTX_DO_FENCE && b->together && (b->run->cards < 2 || s->is_of_all))
			ptx_order_fence(b->together->order, b->number * b->n_warps + w->number, mask);
		define(w, s, mask);
	}
	w->at++;
	return true;
}

bool ptx_run_slice(struct ptx_block *b, struct ptx_warp *w, uint64_t *slice)
{
	for (; *slice && w->state == PTX_RUNS; --*slice)
		if (!step(b, w))
			return false;
	return true;
}
