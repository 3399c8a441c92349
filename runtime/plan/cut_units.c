/* runtime/plan/cut_units.c - see cut_units.h. */
#include "runtime/plan/cut_units.h"

#include <stdlib.h>

#include "kernels-templates/signature.h"

/* Where a matrix lies, and the table of what adapters add to it; 0: they add nothing. */
struct cut_matrix {
	uint64_t at, added;
	const struct model_tensor *tensor;
};

void cut_units_add(struct cut_units_list *l, int64_t begin, int64_t end)
{
	if (begin >= end)
		return;
	if (l->n && l->run[l->n - 1].end == begin) {
		l->run[l->n - 1].end = end;
		return;
	}
	if (l->n == l->room) {
		const size_t room = l->room ? 2 * l->room : 32;
		struct cut_run *more = realloc(l->run, room * sizeof *more);
		if (!more) {
			l->failed = true;
			return;
		}
		l->run = more;
		l->room = room;
	}
	l->run[l->n++] = (struct cut_run){ begin, end };
}

/* ---- matrices */

bool cut_units_open(struct cut_units_of_plan *u, const struct plan *p, const struct model_spec *s, struct weights *w,
                    const struct cut_shares *shares, uint64_t choices)
{
	const size_t max = (size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE;
	struct weights_entry *e = calloc(max, sizeof *e);

	*u = (struct cut_units_of_plan){ .plan = p, .shares = shares, .spec = s, .choices = choices };
	u->matrix = calloc(max, sizeof *u->matrix);
	const bool ok = e && u->matrix;
	const size_t n = ok ? weights_list(e, s, w) : 0;
	for (size_t i = 0; i < n; i++)
		if (e[i].matrix != &w->embed)
			u->matrix[u->n++] = (struct cut_matrix){
				(uintptr_t)e[i].matrix->packed,
				e[i].matrix->site ? (uintptr_t)e[i].matrix->site->up : 0, e[i].tensor
			};
	free(e);
	return ok;
}

void cut_units_close(struct cut_units_of_plan *u) { free(u->matrix); }

/* The tensor that lies there; NULL: none begins there. */
static const struct model_tensor *find(const struct cut_units_of_plan *u, uint64_t at)
{
	size_t i = 0;

	while (i < u->n && u->matrix[i].at != at)
		i++;
	return i < u->n ? u->matrix[i].tensor : NULL;
}

static void add_between(struct cut_units_list *l, const struct plan_op *op, int64_t begin, int64_t end)
{
	cut_units_add(l, begin < op->begin ? op->begin : begin, end > op->end ? op->end : end);
}

/* The same range of each `period` units: heads of each token, blocks of each expert. */
static void add_each(struct cut_units_list *l, const struct plan_op *op, int64_t period, int64_t first, int64_t end)
{
	for (int64_t at = op->begin / period * period; at < op->end; at += period)
		add_between(l, op, at + first, at + end);
}

static enum cut_units_kind of_matrix(const struct cut_units_of_plan *u, const struct plan_op *op, const struct key *key,
                                     struct cut_units_list *list)
{
	const struct model_tensor *t = find(u, op->arg[MATMUL_W]);
	const int64_t each = key->row_blocks > 1 ? key->row_blocks : 1, blocks = ((int64_t)key->rows + 31) / 32;

	if (!t)
		return CUT_UNITS_NONE;
	for (unsigned r = 0; r < u->shares->ranks; r++) {
		const struct cut_blocks b = cut_share_blocks(u->shares, u->spec, t, r);
		list[r].n = 0;
		if (key->flags & KEY_EXPERTS)
			add_each(&list[r], op, blocks, (int64_t)b.first, (int64_t)b.end);
		else
			add_between(&list[r], op, (int64_t)b.first / each, ((int64_t)b.end + each - 1) / each);
	}
	return CUT_UNITS_GIVEN;
}

/* What is added to the rows of a matrix that a rank computes; of a token's embedding, what the one that has it can. */
static enum cut_units_kind of_added(const struct cut_units_of_plan *u, const struct plan_op *op, const struct key *key,
                                    struct cut_units_list *list)
{
	const int64_t blocks = ((int64_t)key->rows + 31) / 32;
	size_t i = 0;

	while (i < u->n && u->matrix[i].added != op->arg[ADAPT_UP_TABLE])
		i++;
	if (i == u->n)
		return CUT_UNITS_BY_INPUT;
	for (unsigned r = 0; r < u->shares->ranks; r++) {
		const struct cut_blocks b = cut_share_blocks(u->shares, u->spec, u->matrix[i].tensor, r);
		list[r].n = 0;
		add_each(&list[r], op, blocks, (int64_t)b.first, (int64_t)b.end);
	}
	return CUT_UNITS_GIVEN;
}

/* ---- other kinds */

static enum cut_units_kind of_heads(const struct cut_units_of_plan *u, const struct plan_op *op, const struct key *key,
                                    struct cut_units_list *list)
{
	if (key->kind == KEY_ATTENTION && (key->rows || key->row_blocks))
		return CUT_UNITS_NONE;
	if (key->flags & KEY_LATENT)
		return key->kind == KEY_KV_STORE ? CUT_UNITS_ALL : CUT_UNITS_BY_INPUT;
	for (unsigned r = 0; r < u->shares->ranks; r++) {
		list[r].n = 0;
		add_each(&list[r], op, key->kv_heads, (int64_t)cut_share_begin(u->shares, r, key->kv_heads),
		         (int64_t)cut_share_begin(u->shares, r + 1, key->kv_heads));
	}
	return CUT_UNITS_GIVEN;
}

static enum cut_units_kind of_first(const struct cut_units_of_plan *u, const struct plan_op *op,
                                    struct cut_units_list *list)
{
	for (unsigned r = 0; r < u->shares->ranks; r++)
		list[r].n = 0;
	cut_units_add(&list[0], op->begin, op->end);
	return CUT_UNITS_GIVEN;
}

enum cut_units_kind cut_units_by(const struct cut_units_of_plan *u, const struct plan_op *op,
                                 struct cut_units_list *list)
{
	const struct key *key = &u->plan->kernel[op->kernel].key;

	switch (key->kind) {
	case KEY_MATMUL: return of_matrix(u, op, key, list);
	case KEY_ATTENTION:
	case KEY_KV_STORE: return of_heads(u, op, key, list);
	case KEY_EMBED: return of_first(u, op, list);
	case KEY_ADAPT_UP: return of_added(u, op, key, list);
	case KEY_MERGE: return CUT_UNITS_NONE;
	case KEY_CONV:
	case KEY_DELTA:
	case KEY_SCAN:
	case KEY_CHANNEL: return CUT_UNITS_ALL;
	default: return CUT_UNITS_BY_INPUT;
	}
}
