/* runtime/graph/loop_rounds.c - see loop_rounds.h. */
#include "runtime/graph/loop_rounds.h"

enum { ROUNDS_MAX = 64 /* of one run */ };

static bool is_stacked(const struct looping *l, uint32_t output) { return output >= l->of.carried; }

/* ---- opening */

/* Whether an output of the body can be made elsewhere than in its memory. */
static bool moves(const struct executable *x, tensor_value root)
{
	const struct tensor_node *n = tensor_node_of(&x->g, root);
	bool ok = n && n->op != OP_constant && x->p.home[root] == HOME_STORED && !x->p.part_of[root];

	for (tensor_value v = 1; ok && v < x->g.values; v++)
		ok = x->p.part_of[v] != root;
	for (uint32_t i = 0; ok && i < x->p.groups; i++) {
		const struct source *s = &x->step[i].source;
		for (unsigned k = 0; ok && k < s->reads; k++)
			ok = !s->behind[k] || partition_root(&x->p, &x->g, s->read[k]) != root;
	}
	return ok;
}

/* At whose location output i is: the first slice of the same value, else the first that is carried. */
static uint32_t same_as(const struct looping *l, uint32_t i)
{
	const uint32_t outputs = l->of.body.outputs;

	for (uint32_t k = l->of.carried; k < outputs; k++)
		if (l->rounds.root[k] == l->rounds.root[i])
			return k;
	for (uint32_t k = 0; k < i; k++)
		if (l->rounds.root[k] == l->rounds.root[i])
			return k;
	return i;
}

static bool find_locations(struct looping *l)
{
	struct rounds *r = &l->rounds;
	const struct executable *x = l->body;
	bool ok = compute_host_runs(x->compute) && executable_is_one_list(x);

	for (uint32_t i = 0; ok && i < x->g.outputs; i++) {
		r->root[i] = partition_root(&x->p, &x->g, x->g.output[i]);
		ok = moves(x, r->root[i]) && looping_bytes(l, l->of.body.output[i]) > 0;
	}
	for (uint32_t i = 0; ok && i < x->g.outputs; i++) {
		const uint32_t same = same_as(l, i);
		if (is_stacked(l, i))
			ok = same == i; /* a slice is in one result alone */
		else
			r->same[i] = same;
	}
	return ok;
}

static bool open_spare(struct looping *l, struct error *err)
{
	struct rounds *r = &l->rounds;
	uint64_t bytes = 0;
	jit_error e = { 0 };

	for (uint32_t i = 0; i < l->of.carried; i++) {
		r->spare_at[i] = bytes;
		if (r->same[i] == i)
			bytes += (looping_bytes(l, l->of.body.output[i]) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	}
	r->spare = bytes ? jit_buffer_open(l->around->compute, bytes, &e) : NULL;
	return r->spare || !bytes || error_set(err, ERROR_MEMORY, "%s", e.message);
}

bool loop_rounds_open(struct looping *l, struct error *err)
{
	struct rounds *r = &l->rounds;

	if (l->of.length < 2 || !find_locations(l))
		return true;
	r->n = l->of.length < ROUNDS_MAX ? (uint32_t)l->of.length : ROUNDS_MAX;
	if (!open_spare(l, err))
		return false;
	r->list = executable_list_rounds(l->body, &r->n, err);
	return r->list != NULL;
}

void loop_rounds_close(struct looping *l)
{
	launch_list_close(l->rounds.list);
	jit_buffer_close(l->rounds.spare);
}

/* ---- iterations */

/* Where an iteration makes an output. */
static struct location made_at(const struct looping *l, uint32_t output, uint64_t iteration)
{
	struct location p = looping_location(l->around, l->n->first + output);

	if (is_stacked(l, output))
		p.at += loop_index(&l->of, iteration) * looping_bytes(l, l->of.body.output[output]);
	else if ((l->of.length - 1 - iteration) % 2)
		p = (struct location){ l->rounds.spare, l->rounds.spare_at[output] };
	return p;
}

static struct location read_at(const struct looping *l, uint32_t operand, uint64_t iteration)
{
	struct location p;

	if (operand < l->of.carried && iteration)
		return made_at(l, l->rounds.same[operand], iteration - 1);
	p = looping_location(l->around, l->n->operand[operand]);
	if (operand >= l->of.carried && operand < l->of.carried + l->of.stacked)
		p.at += loop_index(&l->of, iteration) * looping_bytes(l, l->of.body.input[l->input[operand]]);
	return p;
}

static bool bind_round(struct looping *l, uint64_t iteration, struct error *err)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < l->n->operands; i++) {
		const bool own = i < l->of.carried + l->of.stacked;
		const struct location p = read_at(l, i, iteration);
		if (l->input[i] != LOOP_CONSTANT && (own || !iteration))
			ok = executable_bind(l->body, l->input[i], p.buffer, p.at, err);
	}
	for (uint32_t i = 0; ok && i < l->of.body.outputs; i++) {
		const struct location p = made_at(l, i, iteration);
		if (is_stacked(l, i) || l->rounds.same[i] == i)
			ok = executable_bind_value(l->body, l->rounds.root[i], p.buffer, p.at, err);
	}
	return ok;
}

/* Whether a run has other memory than the one before. Remembers where all is now. */
static bool has_moved(struct looping *l)
{
	const uint32_t operands = l->n->operands;
	bool moved = false;

	for (uint32_t i = 0; i < operands + l->n->results; i++) {
		struct location *seen = &l->rounds.seen[i];
		const struct location p =
			looping_location(l->around, i < operands ? l->n->operand[i] : l->n->first + i - operands);
		moved = moved || p.buffer != seen->buffer || p.at != seen->at;
		*seen = p;
	}
	return moved;
}

/* What is carried, and was made elsewhere. */
static bool keep_last(struct looping *l, struct error *err)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < l->of.carried; i++)
		if (l->rounds.same[i] != i)
			ok = looping_move(l, &l->mover[i], made_at(l, l->rounds.same[i], l->of.length - 1),
			                  looping_location(l->around, l->n->first + i),
			                  looping_bytes(l, l->of.body.output[i]), err);
	return ok;
}

bool loop_rounds_run(struct looping *l, struct error *err)
{
	const struct rounds *r = &l->rounds;
	const bool binds = has_moved(l) || l->of.length > r->n;
	bool ok = true;

	for (uint64_t iteration = 0; ok && iteration < l->of.length;) {
		uint32_t n = 0;
		for (; ok && n < r->n && iteration < l->of.length; n++, iteration++)
			ok = !binds || (bind_round(l, iteration, err) && launch_list_set_round(r->list, n, err));
		ok = ok && launch_list_run(r->list, n, err);
	}
	if (!ok)
		l->rounds.seen[0].buffer = NULL; /* perhaps not all are bound */
	return ok && keep_last(l, err);
}
