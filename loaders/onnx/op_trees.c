/* loaders/onnx/op_trees.c - ensembles of decision trees. All trees of a row go down one level in an iteration that is
 * drawn, as many times as the deepest tree has levels.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF, MODES };
enum { MAX_LEVELS = 256, MAX_TREES = 1 << 20 };

/* Nodes of all trees, leaves behind the others. Children are positions of nodes. */
struct forest {
	uint64_t nodes, trees, targets, set; /* set: the most numbers that a node's set has */
	int64_t *feature, *yes, *no, *mode, *track, *root;
	double *split, *weight, *member; /* weight: [nodes,targets], member: [nodes,set] */
	unsigned levels;
	bool tracks; /* some node sends NaN to its first child */
	int type;    /* of splits and weights */
};

static bool make_forest(struct op *o, struct forest *f)
{
	const uint64_t n = f->nodes;

	if (f->targets < 1 || f->targets > 1 << 16 || n > 1 << 24 || n * f->targets > 1 << 26 || f->trees < 1 ||
	    f->trees > MAX_TREES) {
		op_refuse(o, "%" PRIu64 " nodes of %" PRIu64 " trees for %" PRIu64 " targets", n, f->trees, f->targets);
		return false;
	}
	f->feature = calloc(n + 1, sizeof *f->feature);
	f->yes = calloc(n + 1, sizeof *f->yes);
	f->no = calloc(n + 1, sizeof *f->no);
	f->mode = calloc(n + 1, sizeof *f->mode);
	f->track = calloc(n + 1, sizeof *f->track);
	f->root = calloc(f->trees, sizeof *f->root);
	f->split = calloc(n + 1, sizeof *f->split);
	f->weight = calloc(n * f->targets + 1, sizeof *f->weight);
	if (!f->feature || !f->yes || !f->no || !f->mode || !f->track || !f->root || !f->split || !f->weight)
		op_refuse(o, "there is no memory for %" PRIu64 " nodes", n);
	return !op_failed(o);
}

static void free_forest(struct forest *f)
{
	free(f->feature);
	free(f->yes);
	free(f->no);
	free(f->mode);
	free(f->track);
	free(f->root);
	free(f->split);
	free(f->weight);
	free(f->member);
}

/* How many levels the trees have. Nodes that are their own children, in whatever distance, have no end. */
static bool measure(struct op *o, struct forest *f)
{
	uint8_t *at = calloc(f->nodes + 1, 1), *next = calloc(f->nodes + 1, 1);
	bool goes_on = true;

	if (!at || !next)
		op_refuse(o, "there is no memory for %" PRIu64 " nodes", f->nodes);
	for (uint64_t i = 0; i < f->trees && !op_failed(o); i++)
		at[f->root[i]] = 1;
	while (goes_on && !op_failed(o)) {
		goes_on = false;
		memset(next, 0, f->nodes);
		for (uint64_t i = 0; i < f->nodes; i++)
			if (at[i] && f->mode[i] != LEAF) {
				next[f->yes[i]] = next[f->no[i]] = 1;
				goes_on = true;
			}
		memcpy(at, next, f->nodes);
		if (goes_on && ++f->levels > MAX_LEVELS)
			op_refuse(o, "a tree has more than %d levels, or no end", MAX_LEVELS);
	}
	free(at);
	free(next);
	return !op_failed(o);
}

/* Whether all children exist, and features are those of x. */
static bool check_forest(struct op *o, const struct forest *f, uint64_t features)
{
	for (uint64_t i = 0; i < f->nodes && !op_failed(o); i++) {
		if (f->yes[i] < 0 || f->no[i] < 0 || (uint64_t)f->yes[i] >= f->nodes || (uint64_t)f->no[i] >= f->nodes)
			op_refuse(o, "node %" PRIu64 " has a child that is not there", i);
		else if (f->mode[i] != LEAF && (f->feature[i] < 0 || (uint64_t)f->feature[i] >= features))
			op_refuse(o, "node %" PRIu64 " asks for feature %" PRId64 " of %" PRIu64, i, f->feature[i],
			          features);
	}
	for (uint64_t i = 0; i < f->trees && !op_failed(o); i++)
		if (f->root[i] < 0 || (uint64_t)f->root[i] >= f->nodes)
			op_refuse(o, "the root of tree %" PRIu64 " is not there", i);
	return !op_failed(o);
}

/* ---- the graph */

static tensor_value reals(struct op *o, const double *x, uint64_t rows, uint64_t columns, int type)
{
	return draw_dims(&o->d, op_constant_reals(o, x, rows * columns, type), 2, (const uint64_t[]){ rows, columns });
}

static bool has_mode(const struct forest *f, int64_t mode)
{
	for (uint64_t i = 0; i < f->nodes; i++)
		if (f->mode[i] == mode)
			return true;
	return false;
}

/* Whether a row goes to the first child, by each node's own comparison. */
static tensor_value compares(struct op *o, const struct forest *f, tensor_value node, tensor_value x,
                             tensor_value split)
{
	static const enum tensor_op op[] = { OP_le, OP_lt, OP_ge, OP_gt, OP_eq, OP_ne };
	struct draw *d = &o->d;
	const tensor_value mode = draw_take(d, op_constant_ints(o, f->mode, f->nodes), node, 0);
	tensor_value yes = 0;

	for (int m = LEQ; m <= MEMBER; m++) {
		if (!has_mode(f, m))
			continue;
		tensor_value here;
		if (m == MEMBER) {
			const tensor_value set = draw_take(d, reals(o, f->member, f->nodes, f->set, f->type), node, 0);
			here = draw_reduce(d, OP_reduce_any, draw_binary(d, OP_eq, draw_expand(d, x, 2), set), 4,
			                   false);
		} else {
			here = draw_binary(d, op[m], x, split);
		}
		yes = yes ? draw_select(d, draw_with(d, OP_eq, mode, m), here, yes) : here;
	}
	if (f->tracks) {
		const tensor_value track = draw_take(d, op_constant_ints(o, f->track, f->nodes), node, 0);
		yes = draw_binary(d, OP_or, yes,
		                  draw_binary(d, OP_and, draw_is_nan(d, x), draw_with(d, OP_ne, track, 0)));
	}
	return yes;
}

/* The leaf of each tree for each row of x, [rows,features]: [rows,trees]. */
static tensor_value find_leaves(struct op *o, const struct forest *f, tensor_value x)
{
	struct draw *d = &o->d;
	const struct shape s = { .rank = 2, .dim = { draw_dim(d, x, 0), f->trees } };
	const tensor_value feature = op_constant_ints(o, f->feature, f->nodes),
			   split = op_constant_reals(o, f->split, f->nodes, f->type),
			   yes = op_constant_ints(o, f->yes, f->nodes), no = op_constant_ints(o, f->no, f->nodes);
	tensor_value node = draw_broadcast(d, op_constant_ints(o, f->root, f->trees), &s);

	for (unsigned i = 0; i < f->levels && !op_failed(o); i++) {
		const tensor_value seen = draw_with_mode(
			d, OP_take_along, (const tensor_value[]){ x, draw_take(d, feature, node, 0) }, 1, -1);
		const tensor_value goes = compares(o, f, node, seen, draw_take(d, split, node, 0));
		node = draw_select(d, goes, draw_take(d, yes, node, 0), draw_take(d, no, node, 0));
	}
	return node;
}

enum { SUM, AVERAGE, MIN, GREATEST };

static int aggregate_of(struct op *o)
{
	static const char *const words[] = { "SUM", "AVERAGE", "MIN", "MAX" };
	const struct onnx_attribute *a = op_attribute(o, "aggregate_function");

	for (int i = 0; i < 4; i++)
		if (a && a->type == 2 ? a->i == (i == 0   ? 1
		                                 : i == 1 ? 0
		                                          : i)
		                      : op_is(o, "aggregate_function", "SUM", words[i]))
			return i;
	op_refuse(o, "attribute aggregate_function is none of SUM, AVERAGE, MIN and MAX");
	return SUM;
}

static void draw_forest(struct op *o, struct forest *f)
{
	struct draw *d = &o->d;
	const int by = aggregate_of(o), type = draw_type(d, o->in[0]) == JIT_TYPE_F64 ? JIT_TYPE_F64 : JIT_TYPE_F32;
	const tensor_value x = draw_convert(d, o->in[0], type);

	if (draw_rank(d, x) != 2)
		op_refuse(o, "input 1 has %u dimensions, expected rows of features", draw_rank(d, x));
	else if (by >= MIN && f->targets > 1)
		op_refuse(o, "attribute aggregate_function is MIN or MAX with %" PRIu64 " targets, expected one",
		          f->targets);
	f->type = type;
	if (op_failed(o) || !check_forest(o, f, draw_dim(d, x, 1)) || !measure(o, f))
		return;
	const tensor_value weights =
		draw_take(d, reals(o, f->weight, f->nodes, f->targets, type), find_leaves(o, f, x), 0);
	tensor_value y = draw_reduce(d,
	                             by == MIN        ? OP_reduce_min
	                             : by == GREATEST ? OP_reduce_max
	                                              : OP_reduce_sum,
	                             weights, 2, false);
	if (by == AVERAGE)
		y = draw_with(d, OP_div, y, (double)f->trees);
	const struct onnx_attribute *base = op_attribute(o, "base_values");
	if (base && base->n_floats != f->targets && base->n_floats)
		op_refuse(o, "attribute base_values has %zu numbers, expected %" PRIu64, base->n_floats, f->targets);
	for (uint64_t i = 0; base && base->n_floats && !op_failed(o) && i < f->targets; i++)
		f->weight[i] = (double)base->floats[i];
	if (base && base->n_floats)
		y = draw_binary(d, OP_add, y, op_constant_reals(o, f->weight, f->targets, type));
	o->out[0] = y;
}

/* ---- TreeEnsemble of ai.onnx.ml 5: leaves have positions of their own */

static const struct onnx_attribute *ints_of(struct op *o, const char *name, size_t n)
{
	const struct onnx_attribute *a = op_attribute(o, name);

	if (!a)
		op_refuse(o, "there is no attribute %s", name);
	else if (n && a->n_ints != n)
		op_refuse(o, "attribute %s has %zu numbers, expected %zu", name, a->n_ints, n);
	return a;
}

static bool tensor_of(struct op *o, const char *name, uint64_t n, struct tensor *t)
{
	const struct onnx_attribute *a = op_attribute(o, name);

	if (!a || !a->t || !onnx_tensor_of(a->t, name, NULL, t, o->err)) {
		op_refuse(o, "there is no tensor %s", name);
		return false;
	}
	if (!n || shape_elements(&t->shape) == n)
		return true;
	op_refuse(o, "attribute %s has %" PRIu64 " numbers, expected %" PRIu64, name, shape_elements(&t->shape), n);
	tensor_free(t);
	return false;
}

static bool read_reals(struct op *o, const char *name, uint64_t n, double *out)
{
	struct tensor t;

	if (!tensor_of(o, name, n, &t))
		return false;
	for (uint64_t i = 0; i < n; i++)
		out[i] = number_of(&t, i);
	tensor_free(&t);
	return true;
}

/* Sets of numbers, each ended by a NaN, in the order of the nodes that have one. */
static bool read_sets(struct op *o, struct forest *f, uint64_t inner)
{
	struct tensor t;
	uint64_t n = 0, longest = 0, at = 0;

	if (!has_mode(f, MEMBER))
		return true;
	if (!tensor_of(o, "membership_values", 0, &t))
		return false;
	const uint64_t all = shape_elements(&t.shape);
	for (uint64_t i = 0; i < all; i++) {
		n = isnan(number_of(&t, i)) ? 0 : n + 1;
		longest = n > longest ? n : longest;
	}
	f->set = longest ? longest : 1;
	f->member = f->set <= (1 << 26) / f->nodes ? calloc(f->nodes * f->set, sizeof *f->member) : NULL;
	if (!f->member)
		op_refuse(o, "there is no memory for sets of %" PRIu64 " numbers", f->set);
	for (uint64_t i = 0; f->member && i < f->nodes * f->set; i++)
		f->member[i] = (double)NAN;
	for (uint64_t i = 0; f->member && i < inner; i++) {
		if (f->mode[i] != MEMBER)
			continue;
		for (uint64_t k = 0; at < all && !isnan(number_of(&t, at)); k++)
			f->member[i * f->set + k] = number_of(&t, at++);
		at++;
	}
	tensor_free(&t);
	return !op_failed(o);
}

/* Children are leaves where the attribute says so; these stand behind the inner nodes. */
static bool read_children(struct op *o, const char *positions, const char *leaves, int64_t *out, uint64_t inner)
{
	const struct onnx_attribute *at = ints_of(o, positions, inner), *leaf = ints_of(o, leaves, inner);

	for (uint64_t i = 0; !op_failed(o) && i < inner; i++) {
		if (at->ints[i] < 0 || at->ints[i] > 1 << 24)
			op_refuse(o, "attribute %s has the number %" PRId64, positions, at->ints[i]);
		else
			out[i] = at->ints[i] + (leaf->ints[i] ? (int64_t)inner : 0);
	}
	return !op_failed(o);
}

static bool read_ensemble(struct op *o, struct forest *f)
{
	const struct onnx_attribute *roots = ints_of(o, "tree_roots", 0), *targets = ints_of(o, "leaf_targetids", 0),
				    *features = ints_of(o, "nodes_featureids", 0),
				    *track = op_attribute(o, "nodes_missing_value_tracks_true");
	struct tensor modes, weights;

	if (op_failed(o))
		return false;
	const uint64_t inner = features->n_ints, leaves = targets->n_ints;
	f->nodes = inner + leaves;
	f->trees = roots->n_ints;
	f->targets = (uint64_t)op_int(o, "n_targets", 1);
	if (!make_forest(o, f) || !read_reals(o, "nodes_splits", inner, f->split) ||
	    !read_children(o, "nodes_truenodeids", "nodes_trueleafs", f->yes, inner) ||
	    !read_children(o, "nodes_falsenodeids", "nodes_falseleafs", f->no, inner) ||
	    !tensor_of(o, "nodes_modes", inner, &modes))
		return false;
	for (uint64_t i = 0; i < inner; i++) {
		f->feature[i] = features->ints[i];
		f->mode[i] = tensor_get(&modes, i).i;
		f->track[i] = track && track->n_ints == inner && track->ints[i];
		f->tracks |= f->track[i] != 0;
		if ((modes.type != JIT_TYPE_U8 || f->mode[i] > MEMBER) && !op_failed(o))
			op_refuse(o, "attribute nodes_modes has the number %" PRId64, f->mode[i]);
	}
	tensor_free(&modes);
	memcpy(f->root, roots->ints, f->trees * sizeof *f->root);
	if (op_failed(o) || !tensor_of(o, "leaf_weights", leaves, &weights))
		return false;
	for (uint64_t i = 0; i < leaves && !op_failed(o); i++) {
		const uint64_t at = inner + i;
		f->mode[at] = LEAF;
		f->yes[at] = f->no[at] = (int64_t)at;
		if (targets->ints[i] < 0 || (uint64_t)targets->ints[i] >= f->targets)
			op_refuse(o, "attribute leaf_targetids has the number %" PRId64, targets->ints[i]);
		else
			f->weight[at * f->targets + (uint64_t)targets->ints[i]] = number_of(&weights, i);
	}
	tensor_free(&weights);
	return !op_failed(o) && read_sets(o, f, inner);
}

void op_tree_ensemble(struct op *o)
{
	struct forest f = { 0 };

	if (op_int(o, "post_transform", 0) != 0)
		op_refuse(o, "attribute post_transform is %" PRId64 ", expected 0", op_int(o, "post_transform", 0));
	else if (read_ensemble(o, &f))
		draw_forest(o, &f);
	free_forest(&f);
}

/* ---- TreeEnsembleRegressor: nodes by the numbers of their tree and in it */

struct position {
	int64_t tree, node, at;
};

static int by_numbers(const void *x, const void *y)
{
	const struct position *a = x, *b = y;

	return a->tree != b->tree ? (a->tree > b->tree) - (a->tree < b->tree)
	                          : (a->node > b->node) - (a->node < b->node);
}

/* -1: err */
static int64_t position_of(struct op *o, const struct position *p, uint64_t n, int64_t tree, int64_t node)
{
	const struct position key = { tree, node, 0 }, *found = bsearch(&key, p, n, sizeof *p, by_numbers);

	if (!found && !op_failed(o))
		op_refuse(o, "tree %" PRId64 " has no node %" PRId64, tree, node);
	return found ? found->at : -1;
}

static int64_t mode_of(struct op *o, const struct onnx_attribute *a, uint64_t i)
{
	static const char *const words[MODES] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
		                                  "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF" };

	for (int m = 0; m < MODES; m++)
		if (m != MEMBER && a->strings[i].len == strlen(words[m]) &&
		    memcmp(a->strings[i].data, words[m], a->strings[i].len) == 0)
			return m;
	op_refuse(o, "attribute nodes_modes has an unknown word for node %" PRIu64, i);
	return LEAF;
}

/* Nodes that are nobody's child are roots. */
static void find_roots(struct op *o, struct forest *f)
{
	uint8_t *child = calloc(f->nodes + 1, 1);
	uint64_t n = 0;

	if (!child)
		op_refuse(o, "there is no memory for %" PRIu64 " nodes", f->nodes);
	for (uint64_t i = 0; child && i < f->nodes; i++)
		if (f->mode[i] != LEAF)
			child[f->yes[i]] = child[f->no[i]] = 1;
	for (uint64_t i = 0; child && i < f->nodes; i++)
		if (!child[i] && n++ < f->trees)
			f->root[n - 1] = (int64_t)i;
	if (n != f->trees && !op_failed(o))
		op_refuse(o, "%" PRIu64 " nodes have no parent, and there are %" PRIu64 " trees", n, f->trees);
	free(child);
}

static bool read_nodes(struct op *o, struct forest *f, struct position *p)
{
	const size_t n = (size_t)f->nodes;
	const struct onnx_attribute *tree = ints_of(o, "nodes_treeids", n), *node = ints_of(o, "nodes_nodeids", n),
				    *feature = ints_of(o, "nodes_featureids", n),
				    *yes = ints_of(o, "nodes_truenodeids", n),
				    *no = ints_of(o, "nodes_falsenodeids", n), *mode = op_attribute(o, "nodes_modes"),
				    *split = op_attribute(o, "nodes_values"),
				    *track = op_attribute(o, "nodes_missing_value_tracks_true");

	if (!mode || mode->n_strings != n || !split || split->n_floats != n)
		op_refuse(o, "attributes nodes_modes and nodes_values are expected to have %zu elements", n);
	for (uint64_t i = 0; i < n && !op_failed(o); i++) {
		p[i] = (struct position){ tree->ints[i], node->ints[i], (int64_t)i };
		f->feature[i] = feature->ints[i];
		f->split[i] = (double)split->floats[i];
		f->mode[i] = mode_of(o, mode, i);
		f->track[i] = track && track->n_ints == n && track->ints[i];
		f->tracks |= f->track[i] != 0;
	}
	if (op_failed(o))
		return false;
	qsort(p, n, sizeof *p, by_numbers);
	f->trees = 0;
	for (uint64_t i = 0; i < n; i++) {
		f->trees += i == 0 || p[i].tree != p[i - 1].tree;
		if (i && by_numbers(&p[i], &p[i - 1]) == 0)
			op_refuse(o, "tree %" PRId64 " has two nodes %" PRId64, p[i].tree, p[i].node);
	}
	for (uint64_t i = 0; i < n && !op_failed(o); i++) {
		const bool leaf = f->mode[i] == LEAF;
		f->yes[i] = leaf ? (int64_t)i : position_of(o, p, n, tree->ints[i], yes->ints[i]);
		f->no[i] = leaf ? (int64_t)i : position_of(o, p, n, tree->ints[i], no->ints[i]);
	}
	if (!op_failed(o))
		find_roots(o, f);
	return !op_failed(o);
}

static bool read_targets(struct op *o, struct forest *f, const struct position *p)
{
	const struct onnx_attribute *w = op_attribute(o, "target_weights");
	const size_t n = w ? w->n_floats : 0;
	const struct onnx_attribute *tree = ints_of(o, "target_treeids", n), *node = ints_of(o, "target_nodeids", n),
				    *target = ints_of(o, "target_ids", n);

	for (size_t i = 0; i < n && !op_failed(o); i++) {
		const int64_t at = position_of(o, p, f->nodes, tree->ints[i], node->ints[i]);
		if (target->ints[i] < 0 || (uint64_t)target->ints[i] >= f->targets)
			op_refuse(o, "attribute target_ids has the number %" PRId64, target->ints[i]);
		else if (at >= 0)
			f->weight[(uint64_t)at * f->targets + (uint64_t)target->ints[i]] += (double)w->floats[i];
	}
	return !op_failed(o);
}

void op_tree_regressor(struct op *o)
{
	const struct onnx_attribute *nodes = ints_of(o, "nodes_nodeids", 0);
	struct forest f = { .nodes = nodes ? nodes->n_ints : 0, .targets = (uint64_t)op_int(o, "n_targets", 1) };
	struct position *p = calloc(f.nodes + 1, sizeof *p);

	f.trees = f.nodes < MAX_TREES ? f.nodes : MAX_TREES; /* at most, until they are counted */
	if (!p)
		op_refuse(o, "there is no memory for %" PRIu64 " nodes", f.nodes);
	if (!op_failed(o) && make_forest(o, &f) && read_nodes(o, &f, p) && read_targets(o, &f, p)) {
		draw_forest(o, &f);
		o->out[0] = op_post_transform(o, o->out[0]);
	}
	free(p);
	free_forest(&f);
}
