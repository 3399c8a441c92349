/* jit/rdna/flow.c - the walk over loops and ifs of an allocated kernel: see machine.h.
 *
 * Rule for editors: the last walk over an instruction sees its final state, and every way to it has been joined by
 * then. */
#include "jit/rdna/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>


uint32_t *rdna_machine_loops(const struct rdna_lir *l)
{
	uint32_t *blocks = calloc(l->n_ins + 1, sizeof *blocks),
		 open = UINT32_MAX; /* a block that is open names the one around it */
	for (uint32_t at = 0; blocks && at < l->n_ins; at++) {
		unsigned op = l->ins[at].op;
		bool opens = op == RDNA_LIR_LOOP || op == RDNA_LIR_IF,
		     closes = op == RDNA_LIR_ENDLOOP || op == RDNA_LIR_ENDIF;
		uint32_t block = open;
		if (op < RDNA_LIR_LOOP || (!opens && !closes && op != RDNA_LIR_ELSE))
			continue;
		if (!opens) {
			assert(block != UINT32_MAX);
			open = blocks[block];
			blocks[block] = at;
			blocks[at] = op == RDNA_LIR_ENDLOOP ? block : 0;
		}
		if (!closes) {
			blocks[at] = open;
			open = at;
		}
	}
	assert(open == UINT32_MAX);
	return blocks;
}

/* A walk under way. A loop in a loop is often entered as it was the last time: then what came of it does, too. */
struct flow_run {
	const struct rdna_flow *f;
	struct memory **last; /* by LOOP; NULL until there is one in another */
	struct memory *all;
	unsigned depth; /* loops open */
	uint8_t *exit;  /* the state on the ways that leave the innermost of them by a break, if any does */
	bool leaves;
};
/* The state in front of a loop when it was last entered, and the one behind its ENDLOOP. */
struct memory {
	struct memory *older;
	uint8_t state[];
};

static bool walk(struct flow_run *r, void *state, size_t from, size_t to);

static bool runs_once(const struct rdna_lir_ins *loop)
{
	return loop->s[0].kind == RDNA_LIR_CONST && (int32_t)loop->s[0].value > 0;
}

/* state: in front of the LOOP, then behind its ENDLOOP. A loop that may run no time at all lets what comes in go out,
 * too, and breaks let out what they find. */
static bool settle_loop(struct flow_run *r, uint8_t *state, size_t at, size_t end)
{
	const struct rdna_flow *f = r->f;
	uint8_t *in = malloc(5 * f->size), *head = in + f->size, *s = head + f->size, *around = r->exit;
	bool ok = in != NULL, restart = ok, left = r->leaves;
	if (ok)
		memcpy(in, state, f->size);
	r->exit = s + f->size;
	r->depth++;
	while (ok) {
		if (restart) {
			memcpy(state, in, f->size);
			f->step(f->user, state, at);
			memcpy(head, state, f->size);
		}
		memcpy(s, head, f->size);
		r->leaves = false;
		ok = walk(r, s, at + 1, end);
		f->step(f->user, s, end);
		restart = f->again && f->again(f->user, state, s, at);
		if (!restart && !f->join(f->user, head, s))
			break;
	}
	r->depth--;
	if (ok && runs_once(&f->l->ins[at]))
		memcpy(state, s, f->size);
	else if (ok)
		f->join(f->user, state, s);
	if (ok && r->leaves)
		f->join(f->user, state, r->exit);
	r->exit = around;
	r->leaves = left;
	free(in);
	return ok;
}

static bool walk_loop(struct flow_run *r, uint8_t *state, size_t at, size_t end)
{
	const struct rdna_flow *f = r->f;
	size_t size = f->size;
	if (!r->depth)
		return settle_loop(r, state, at, end);
	if (!r->last && !(r->last = calloc(f->l->n_ins + 1, sizeof *r->last)))
		return false;
	if (f->alike)
		f->alike(f->user, state);
	struct memory *last = r->last[at];
	if (last && memcmp(last->state, state, size) == 0) {
		memcpy(state, last->state + size, size);
		return true;
	}
	if (!last) {
		if (!(last = r->last[at] = malloc(sizeof *last + 2 * size)))
			return false;
		last->older = r->all;
		r->all = last;
	}
	memcpy(last->state, state, size);
	bool ok = settle_loop(r, state, at, end);
	memcpy(last->state + size, state, size);
	return ok;
}

/* state: in front of the IF, then behind its ENDIF. */
static bool walk_if(struct flow_run *r, uint8_t *state, size_t at, size_t *end)
{
	const struct rdna_flow *f = r->f;
	uint8_t *other = malloc(f->size); /* on the way that is not walked just now */
	size_t part_end = f->loops[at];
	f->step(f->user, state, at);
	if (other)
		memcpy(other, state, f->size);
	bool ok = other && walk(r, state, at + 1, part_end);
	*end = part_end;
	if (ok && f->l->ins[part_end].op == RDNA_LIR_ELSE) {
		uint8_t *first = malloc(f->size);
		if (first)
			memcpy(first, state, f->size);
		memcpy(state, other, f->size);
		f->step(f->user, state, part_end);
		*end = f->loops[part_end];
		ok = first && walk(r, state, part_end + 1, *end);
		free(other);
		other = first;
	}
	if (ok) {
		f->join(f->user, state, other);
		f->step(f->user, state, *end);
	}
	free(other);
	return ok;
}

/* state goes on where the break does not. */
static void walk_break(struct flow_run *r, const uint8_t *state)
{
	const struct rdna_flow *f = r->f;
	uint8_t *leaving = r->exit + f->size;
	memcpy(r->leaves ? leaving : r->exit, state, f->size);
	if (r->leaves)
		f->join(f->user, r->exit, leaving);
	r->leaves = true;
}

static inline size_t next_of(const struct rdna_flow *f, size_t at) { return f->next ? f->next[at] : at; }

static bool walk(struct flow_run *r, void *state, size_t from, size_t to)
{
	const struct rdna_flow *f = r->f;
	for (size_t at = next_of(f, from); at < to; at = next_of(f, at + 1)) {
		size_t end = f->loops[at];
		if (end <= at) {
			f->step(f->user, state, at);
			if (f->l->ins[at].op == RDNA_LIR_BREAK)
				walk_break(r, state);
			continue;
		}
		if (f->l->ins[at].op == RDNA_LIR_LOOP ? !walk_loop(r, state, at, end) : !walk_if(r, state, at, &end))
			return false;
		at = end;
	}
	return true;
}

bool rdna_flow_run(const struct rdna_flow *f, void *state, struct error *err)
{
	struct flow_run r = { .f = f };
	bool ok = walk(&r, state, 0, f->l->n_ins);
	for (struct memory *older; r.all; r.all = older) {
		older = r.all->older;
		free(r.all);
	}
	free(r.last);
	return ok || error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", f->l->n_ins);
}
