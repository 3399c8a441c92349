/* loaders/onnx/op_control.c - branches and loops: what is known while the graph is drawn decides them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

static const struct onnx_graph *graph_of(struct op *o, const char *name)
{
	const struct onnx_attribute *a = op_attribute(o, name);

	if (!a || !a->g)
		op_refuse(o, "there is no graph %s", name);
	return a ? a->g : NULL;
}

/* A condition that is not known chooses between the results of both branches: they change nothing else. */
static void choose(struct op *o, const struct onnx_graph *yes, const struct onnx_graph *no)
{
	tensor_value *x = calloc(o->outputs + 1, sizeof *x), *y = calloc(o->outputs + 1, sizeof *y);
	const tensor_value condition = draw_dims(&o->d, o->in[0], 0, NULL);

	if (!x || !y)
		op_refuse(o, "there is no memory");
	else if (import_subgraph(o, yes, NULL, 0, x, o->outputs) && import_subgraph(o, no, NULL, 0, y, o->outputs))
		for (uint32_t i = 0; i < o->outputs; i++) {
			const struct shape a = draw_shape(&o->d, x[i]), b = draw_shape(&o->d, y[i]);
			if (!shape_equal(&a, &b) || draw_type(&o->d, x[i]) != draw_type(&o->d, y[i])) {
				op_known(o, 0);
				op_refuse(o, "its branches give output %u other shapes, and the condition is not known",
				          i + 1);
				break;
			}
			o->out[i] = draw_select(&o->d, condition, x[i], y[i]);
		}
	free(x);
	free(y);
}

void op_if(struct op *o)
{
	const struct onnx_graph *yes = graph_of(o, "then_branch"), *no = graph_of(o, "else_branch");

	if (op_failed(o))
		return;
	if (!import_is_known(o->im, o->in[0])) {
		choose(o, yes, no);
		return;
	}
	const struct tensor *t = op_known(o, 0);
	if (!t || shape_elements(&t->shape) != 1)
		op_refuse(o, "the condition is no number");
	else
		import_subgraph(o, number_of(t, 0) != 0 ? yes : no, NULL, 0, o->out, o->outputs);
}

/* ---- loops: a few iterations are drawn one behind the other, more of them as a loop, where they are alike */

/* What each round gives, put beside each other along a new first axis (or `axis`). */
struct pile {
	tensor_value *v;
	size_t n, room;
};

static bool pile_add(struct op *o, struct pile *p, tensor_value v)
{
	if (p->n == p->room) {
		const size_t room = p->room ? 2 * p->room : 16;
		tensor_value *more = realloc(p->v, room * sizeof *more);
		if (!more) {
			op_refuse(o, "there is no memory");
			return false;
		}
		p->v = more;
		p->room = room;
	}
	p->v[p->n++] = v;
	return v != 0;
}

static tensor_value pile_join(struct op *o, struct pile *p, unsigned axis, bool backwards)
{
	if (p->n == 0) {
		op_refuse(o, "it runs no time, and its results have no shape");
		return 0;
	}
	for (size_t i = 0; i < p->n; i++)
		p->v[i] = draw_expand(&o->d, p->v[i], axis);
	for (size_t i = 0; backwards && i < p->n / 2; i++) {
		const tensor_value other = p->v[i];
		p->v[i] = p->v[p->n - 1 - i];
		p->v[p->n - 1 - i] = other;
	}
	return draw_concatenate(&o->d, p->v, (unsigned)p->n, axis);
}

static bool is_true(struct op *o, tensor_value v, bool *out)
{
	struct error err = { 0 };
	const struct tensor *t = v ? import_known(o->im, v, &err) : NULL;

	if (!t || shape_elements(&t->shape) != 1) {
		op_refuse(o, "its condition must be known when the graph is drawn, and %s",
		          err.text[0] ? err.text : "is no number");
		return false;
	}
	*out = number_of(t, 0) != 0;
	return true;
}

enum { MAX_ROUNDS = 1 << 14, DRAWN_ROUNDS = 8 };
struct loop {
	const struct onnx_graph *body;
	uint32_t carried, scans;
	tensor_value *in, *out; /* of a round */
	struct pile *pile;
};

static bool start(struct op *o, struct loop *l, uint32_t in, uint32_t out)
{
	l->in = calloc(in + (size_t)1, sizeof *l->in);
	l->out = calloc(out + (size_t)1, sizeof *l->out);
	l->pile = calloc(l->scans + (size_t)1, sizeof *l->pile);
	if (!l->in || !l->out || !l->pile)
		op_refuse(o, "there is no memory");
	return !op_failed(o);
}

static void finish(struct loop *l)
{
	for (uint32_t i = 0; l->pile && i < l->scans; i++)
		free(l->pile[i].v);
	free(l->pile);
	free(l->in);
	free(l->out);
}

/* One round of a Loop: iteration, condition, carried values; it gives a condition, carried values, scans. */
static bool loop_round(struct op *o, struct loop *l, int64_t i, bool *goes_on)
{
	l->in[0] = op_constant_shaped(o, &i, &(struct shape){ 0 });
	l->in[1] = draw_scalar(&o->d, 1, JIT_TYPE_BOOL);
	if (!import_subgraph(o, l->body, l->in, 2 + l->carried, l->out, 1 + l->carried + l->scans) ||
	    !is_true(o, l->out[0], goes_on))
		return false;
	for (uint32_t k = 0; k < l->carried; k++)
		l->in[2 + k] = l->out[1 + k];
	for (uint32_t k = 0; k < l->scans; k++)
		if (!pile_add(o, &l->pile[k], l->out[1 + l->carried + k]))
			return false;
	return true;
}

/* The body as often as it runs. */
static void draw_rounds(struct op *o, struct loop *l, int64_t rounds)
{
	bool goes_on = true;

	if (rounds > MAX_ROUNDS && !op_in(o, 1)) {
		op_refuse(o, "it runs %" PRId64 " times, and iterations differ: expected at most %d", rounds,
		          MAX_ROUNDS);
		return;
	}
	if ((!op_in(o, 1) || is_true(o, o->in[1], &goes_on)) &&
	    start(o, l, 2 + l->carried, 1 + l->carried + l->scans)) {
		for (uint32_t k = 0; k < l->carried; k++)
			l->in[2 + k] = o->in[2 + k];
		for (int64_t i = 0; i < rounds && goes_on; i++)
			if (!loop_round(o, l, i, &goes_on))
				break;
	}
	for (uint32_t k = 0; k < o->outputs && !op_failed(o); k++)
		o->out[k] = k < l->carried ? l->in[2 + k] : pile_join(o, &l->pile[k - l->carried], 0, false);
	finish(l);
}

void op_loop(struct op *o)
{
	struct loop l = { .body = graph_of(o, "body"), .carried = o->inputs > 2 ? o->inputs - 2 : 0 };
	const int64_t rounds = op_in(o, 0) ? op_known_int(o, 0, 0) : INT64_MAX;
	const bool begins = !op_in(o, 1) || (import_is_known(o->im, o->in[1]) && number_of(op_known(o, 1), 0) != 0);

	if (op_failed(o) || o->outputs < l.carried) {
		op_refuse(o, "it carries %u values and gives %u", l.carried, o->outputs);
		return;
	}
	l.scans = o->outputs - l.carried;
	const struct iteration x = { .body = l.body,
		                     .carried = o->in + 2,
		                     .n_carried = l.carried,
		                     .n_results = l.scans,
		                     .length = (uint64_t)rounds,
		                     .counts = true };
	if (!op_in(o, 0) || rounds <= DRAWN_ROUNDS || !begins || !op_iterate(o, &x, o->out))
		draw_rounds(o, &l, rounds);
}

/* ---- scan */

struct scan {
	struct loop l;
	const tensor_value *in; /* carried ones, then scanned ones */
	uint32_t inputs;        /* scanned ones */
	int64_t *in_axis, *out_axis, *in_back, *out_back;
	uint64_t rounds;
};

static int64_t *ints(struct op *o, const char *name, uint32_t n)
{
	int64_t *x = calloc(n + (size_t)1, sizeof *x);
	unsigned given;

	if (!x)
		op_refuse(o, "there is no memory");
	else if (op_ints(o, name, x, n, &given) && given != n)
		op_refuse(o, "attribute %s has %u numbers, expected %u", name, given, n);
	return x;
}

static bool scan_round(struct op *o, struct scan *s, uint64_t i)
{
	struct loop *l = &s->l;

	for (uint32_t k = 0; k < s->inputs; k++) {
		const tensor_value x = s->in[l->carried + k];
		const unsigned axis = op_axis(o, s->in_axis[k], draw_rank(&o->d, x));
		const uint64_t at = s->in_back[k] ? s->rounds - 1 - i : i;
		if (op_failed(o))
			return false;
		l->in[l->carried + k] = draw_squeeze(&o->d, draw_slice(&o->d, x, axis, at, at + 1, 1), axis);
	}
	if (!import_subgraph(o, l->body, l->in, l->carried + s->inputs, l->out, l->carried + l->scans))
		return false;
	for (uint32_t k = 0; k < l->carried; k++)
		l->in[k] = l->out[k];
	for (uint32_t k = 0; k < l->scans; k++)
		if (!pile_add(o, &l->pile[k], l->out[l->carried + k]))
			return false;
	return true;
}

static bool scan_lengths(struct op *o, struct scan *s)
{
	for (uint32_t k = 0; k < s->inputs; k++) {
		const tensor_value x = s->in[s->l.carried + k];
		const unsigned axis = op_axis(o, s->in_axis[k], draw_rank(&o->d, x));
		if (op_failed(o))
			return false;
		if (k && draw_dim(&o->d, x, axis) != s->rounds)
			op_refuse(o, "its inputs are of different lengths");
		s->rounds = draw_dim(&o->d, x, axis);
	}
	return !op_failed(o);
}

/* Dimension `from` becomes dimension `to`, and the others keep their order. */
static tensor_value move_axis(struct op *o, tensor_value x, unsigned from, unsigned to)
{
	const unsigned rank = draw_rank(&o->d, x);
	unsigned axes[TENSOR_MAX_RANK];

	for (unsigned i = 0, next = 0; i < rank; i++) {
		next += next == from;
		axes[i] = i == to ? from : next++;
	}
	return from == to ? x : draw_transpose(&o->d, x, axes);
}

/* One loop of the graph for all; false: it cannot be one. */
static bool iterate_scan(struct op *o, struct scan *s, tensor_value *out)
{
	tensor_value stacked[TENSOR_MAX_OPERANDS];
	const struct iteration x = {
		.body = s->l.body,
		.carried = s->in,
		.stacked = stacked,
		.n_carried = s->l.carried,
		.n_stacked = s->inputs,
		.n_results = s->l.scans,
		.length = s->rounds
	};

	if (s->rounds <= DRAWN_ROUNDS || s->inputs > TENSOR_MAX_OPERANDS)
		return false;
	for (uint32_t k = 0; k < s->inputs; k++) {
		const tensor_value v = s->in[s->l.carried + k];
		stacked[k] = move_axis(o, v, op_axis(o, s->in_axis[k], draw_rank(&o->d, v)), 0);
		if (s->in_back[k])
			stacked[k] = draw_reverse(&o->d, stacked[k], 0);
	}
	if (op_failed(o) || !op_iterate(o, &x, out))
		return false;
	for (uint32_t i = 0; i < s->l.scans && !op_failed(o); i++) {
		tensor_value *v = &out[s->l.carried + i];
		if (s->out_back[i])
			*v = draw_reverse(&o->d, *v, 0);
		*v = move_axis(o, *v, 0, op_axis(o, s->out_axis[i], draw_rank(&o->d, *v)));
	}
	return true;
}

/* The whole loop; out: carried values, then piles. */
static void run_scan(struct op *o, struct scan *s, tensor_value *out)
{
	s->l.in = s->l.out = NULL;
	s->l.pile = NULL;
	if (!scan_lengths(o, s) || iterate_scan(o, s, out))
		return;
	if (start(o, &s->l, s->l.carried + s->inputs, s->l.carried + s->l.scans)) {
		memcpy(s->l.in, s->in, s->l.carried * sizeof *s->in);
		for (uint64_t i = 0; i < s->rounds; i++)
			if (!scan_round(o, s, i))
				break;
	}
	for (uint32_t k = 0; k < s->l.carried && !op_failed(o); k++)
		out[k] = s->l.in[k];
	for (uint32_t i = 0; i < s->l.scans && !op_failed(o); i++) {
		struct pile *p = &s->l.pile[i];
		const unsigned rank = p->n ? draw_rank(&o->d, p->v[0]) + 1 : 1;
		out[s->l.carried + i] = pile_join(o, p, op_axis(o, s->out_axis[i], rank), s->out_back[i] != 0);
	}
	finish(&s->l);
}

/* The form of opset 8: the first input has lengths, and all others have a batch in front, each of which is a loop. */
static void scan_batches(struct op *o, struct scan *s)
{
	const uint32_t n = o->inputs - 1;
	const uint64_t batches = draw_dim(&o->d, o->in[1], 0);
	tensor_value *in = calloc(n + (size_t)1, sizeof *in), *out = calloc(o->outputs + (size_t)1, sizeof *out);
	struct pile *pile = calloc(o->outputs + (size_t)1, sizeof *pile);

	if (!in || !out || !pile)
		op_refuse(o, "there is no memory");
	for (uint32_t k = 0; k < n && !op_failed(o); k++)
		if (draw_rank(&o->d, o->in[1 + k]) == 0 || draw_dim(&o->d, o->in[1 + k], 0) != batches)
			op_refuse(o, "input %u is expected to be a batch of %" PRIu64, k + 2, batches);
	for (uint64_t b = 0; b < batches && !op_failed(o); b++) {
		for (uint32_t k = 0; k < n; k++)
			in[k] = draw_squeeze(&o->d, draw_slice(&o->d, o->in[1 + k], 0, b, b + 1, 1), 0);
		s->in = in;
		run_scan(o, s, out);
		for (uint32_t k = 0; k < o->outputs && !op_failed(o); k++)
			pile_add(o, &pile[k], out[k]);
	}
	for (uint32_t k = 0; k < o->outputs; k++) {
		if (!op_failed(o))
			o->out[k] = pile_join(o, &pile[k], 0, false);
		if (pile)
			free(pile[k].v);
	}
	free(pile);
	free(in);
	free(out);
}

void op_scan(struct op *o)
{
	const bool old = o->opset < 9;
	const uint32_t inputs = o->inputs - (old ? 1 : 0);
	struct scan s = { .l.body = graph_of(o, "body"), .in = o->in };
	const int64_t n = op_int(o, "num_scan_inputs", 0);

	if (n < 1 || n > inputs || o->outputs < inputs - (uint32_t)n)
		op_refuse(o, "attribute num_scan_inputs is %" PRId64, n);
	else if (old && o->in[0])
		op_refuse(o, "input 1, sequence_lens, is not imported");
	if (op_failed(o))
		return;
	s.inputs = (uint32_t)n;
	s.l.carried = inputs - s.inputs;
	s.l.scans = o->outputs - s.l.carried;
	s.in_axis = ints(o, "scan_input_axes", s.inputs);
	s.in_back = ints(o, old ? "directions" : "scan_input_directions", s.inputs);
	s.out_axis = ints(o, "scan_output_axes", s.l.scans);
	s.out_back = ints(o, "scan_output_directions", s.l.scans);
	if (old && !op_failed(o))
		scan_batches(o, &s);
	else if (!op_failed(o))
		run_scan(o, &s, o->out);
	free(s.in_axis);
	free(s.in_back);
	free(s.out_axis);
	free(s.out_back);
}

/* ---- optional values: arrays alone, which are there or are left out */

void op_optional_get(struct op *o) { o->out[0] = o->in[0]; }

void op_optional_has(struct op *o) { o->out[0] = draw_scalar(&o->d, op_in(o, 0) != 0, JIT_TYPE_BOOL); }
