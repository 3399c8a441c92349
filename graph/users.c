/* graph/users.c - users' kernels as operations. See users.h. */
#include "graph/users.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"
#include "graph/infer.h"
#include "graph/transform_rules.h"
#include "jit/ir/interp.h"
#include "jit/ir/ir.h"

_Static_assert((int)JK_F32 == (int)JIT_TYPE_F32 && (int)JK_BF16 == (int)JIT_TYPE_BF16 &&
                       (int)JK_U16 == (int)JIT_TYPE_U16,
               "types have the same numbers");
enum { CONSTANTS_MAX = 64, LANES = 8 };

/* ---- attributes */

const char *attribute_text(const struct tensor_node *n, enum tensor_attribute name)
{
	const struct attribute *a = tensor_node_attribute(n, name);

	return a ? (const char *)a->whole : NULL;
}

bool attribute_make_text(struct attribute *a, enum tensor_attribute name, const char *text, size_t n, struct error *err)
{
	const size_t wholes = n / sizeof(int64_t) + 1;

	*a = (struct attribute){ .name = name, .n = (uint32_t)wholes, .whole = calloc(wholes, sizeof(int64_t)) };
	if (!a->whole)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	memcpy(a->whole, text, n);
	return true;
}

/* ---- the kernel */

/* "n=1000 m=4", of a copy of the text. */
static bool read_constants(char *text, struct jk_value *value, size_t *n, struct error *err)
{
	*n = 0;
	for (char *save, *word = strtok_r(text, " ,\t\n", &save); word; word = strtok_r(NULL, " ,\t\n", &save)) {
		char *is = strchr(word, '=');
		if (!is || is == word || !is[1])
			return error_set(err, ERROR_ARGUMENT, "constants of kernel: \"%.64s\", expected name=value",
			                 word);
		if (*n == CONSTANTS_MAX)
			return error_set(err, ERROR_ARGUMENT, "constants of kernel: more than %d", CONSTANTS_MAX);
		*is = 0;
		value[(*n)++] = (struct jk_value){ word, is + 1 };
	}
	return true;
}

/* Those that the text leaves to tuning, which change no bit. */
static void add_tuned(const struct jk_file *f, struct jk_value *value, size_t *n, char number[][24])
{
	for (size_t i = 0; i < jk_constants(f) && *n < CONSTANTS_MAX; i++) {
		const struct jk_constant *c = jk_constant(f, i);
		bool given = !c->tuned || !c->choices;
		for (size_t k = 0; k < *n; k++)
			given = given || strcmp(value[k].name, c->name) == 0;
		if (given)
			continue;
		snprintf(number[*n], sizeof *number, "%" PRId64, c->choice[0]);
		value[*n] = (struct jk_value){ c->name, number[*n] };
		++*n;
	}
}

static bool say(const struct jk_messages *m, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "kernel:%u:%u: %.300s", m->message[0].line, m->message[0].column,
	                 m->message[0].text);
}

struct jk_kernel *users_bind(const struct tensor_node *n, struct jk_file **file, struct error *err)
{
	const char *source = attribute_text(n, ATTRIBUTE_source), *constants = attribute_text(n, ATTRIBUTE_constants);
	struct jk_messages *messages = calloc(1, sizeof *messages);
	struct jk_value value[CONSTANTS_MAX];
	char *text = strdup(constants ? constants : ""), number[CONSTANTS_MAX][24];
	struct jk_kernel *k = NULL;
	size_t values;

	*file = NULL;
	if (!messages || !text)
		error_set(err, ERROR_MEMORY, "there is no memory for a kernel");
	else if (!(*file = jk_parse("kernel", source, strlen(source), messages)))
		say(messages, err);
	else if (read_constants(text, value, &values, err)) {
		add_tuned(*file, value, &values, number);
		if (!(k = jk_bind(*file, attribute_text(n, ATTRIBUTE_kernel), value, values, messages)))
			say(messages, err);
	}
	if (!k) {
		jk_file_close(*file);
		*file = NULL;
	}
	free(messages);
	free(text);
	return k;
}

/* ---- types and shapes */

static struct shape shape_of(const struct jk_parameter *p)
{
	struct shape s = { .rank = p->dims };

	memcpy(s.dim, p->extent, p->dims * sizeof *s.dim);
	return s;
}

static bool infer_parameter(struct inference *x, const struct jk_parameter *p, uint32_t *operand)
{
	char found[SHAPE_TEXT_MAX], expected[SHAPE_TEXT_MAX];
	const struct shape s = shape_of(p);

	if (p->access == JK_SCALAR || p->access == JK_INOUT)
		return error_set(x->err, ERROR_ARGUMENT, "%s of the kernel is %s, expected arrays that are in or out",
		                 p->name, p->access == JK_SCALAR ? "a scalar" : "inout");
	if (p->access == JK_OUT) {
		x->out->type[x->out->results] = (int)p->type;
		x->out->shape[x->out->results++] = s;
		return true;
	}
	if (*operand < x->n->operands && (x->type[*operand] != (int)p->type || !shape_equal(x->shape[*operand], &s)))
		return error_set(x->err, ERROR_ARGUMENT, "operand %u of kernel is %s, expected %s for %s", *operand + 1,
		                 shape_text(x->type[*operand], x->shape[*operand], found),
		                 shape_text((int)p->type, &s, expected), p->name);
	++*operand;
	return true;
}

bool infer_kernel(struct inference *x)
{
	struct jk_file *file;
	struct jk_kernel *k = users_bind(x->n, &file, x->err);
	uint32_t operands = 0;
	bool ok = k != NULL;

	x->out->results = 0;
	for (size_t i = 0; ok && i < jk_parameters(k); i++)
		ok = infer_parameter(x, jk_parameter(k, i), &operands);
	if (ok && operands != x->n->operands)
		ok = error_set(x->err, ERROR_ARGUMENT, "kernel has %u operands, expected the %u arrays that it reads",
		               x->n->operands, operands);
	if (ok && !x->out->results)
		ok = error_set(x->err, ERROR_ARGUMENT, "the kernel writes no array");
	jk_kernel_close(k);
	jk_file_close(file);
	return ok;
}

/* ---- meaning */

static bool interpret(const struct jk_kernel *k, const uint64_t *arg, struct error *err)
{
	struct ir ir;
	bool ok = jk_build_lanes(&ir, k, LANES, 1, false, err);

	if (!ok)
		return false;
	struct interp_program *p = ir_verify(&ir, err) ? interp_compile(&ir) : NULL;
	const enum interp_end end = p ? interp_run(p, NULL, arg, 0, (int64_t)jk_units(k)) : INTERP_NO_MEMORY;
	if (end != INTERP_DONE)
		ok = error_set(err, end == INTERP_NO_MEMORY ? ERROR_MEMORY : ERROR_ARGUMENT,
		               end == INTERP_NO_MEMORY ? "there is no memory to run a kernel"
		                                       : "lanes of a kernel write the same element");
	interp_free(p);
	ir_free(&ir);
	return ok;
}

bool eval_kernel(struct evaluation *e)
{
	static const uint64_t nothing; /* where an array without elements is */
	struct jk_file *file;
	struct jk_kernel *k = users_bind(e->n, &file, e->err);
	uint64_t arg[JK_MAX_PARAMETERS] = { 0 };
	uint32_t operands = 0, results = 0;

	for (size_t i = 0; k && i < jk_parameters(k); i++) {
		const struct tensor *t = jk_parameter(k, i)->access == JK_IN ? e->in[operands++] : &e->out[results++];
		arg[i] = t->data ? (uintptr_t)t->data : (uintptr_t)&nothing;
	}
	const bool ok = k && interpret(k, arg, e->err);
	jk_kernel_close(k);
	jk_file_close(file);
	return ok;
}

/* ---- its gradient */

/* A node of the gradient's kernel: the first result. */
static tensor_value put_gradient(struct transform *t, const struct tensor_node *n, const char *gradient)
{
	tensor_value operand[TENSOR_MAX_OPERANDS];
	struct attribute a[3];
	uint32_t operands = 0, attributes = 0;

	for (uint32_t i = 0; i < n->operands; i++)
		operand[operands++] = operand_of(t, n, i);
	for (uint32_t i = 0; i < n->results; i++) {
		const struct tensor_value_info *r = &t->from->value[n->first + i];
		if (!tensor_is_float(r->type))
			continue;
		if (operands == TENSOR_MAX_OPERANDS)
			return transform_refuse(t, n, "of so many operands"), 0;
		operand[operands++] = t->d[n->first + i] ? t->d[n->first + i] : put_zeros(t, r->type, &r->shape);
	}
	for (uint32_t i = 0; i < n->attributes; i++)
		if (n->attribute[i].name == ATTRIBUTE_source || n->attribute[i].name == ATTRIBUTE_constants)
			a[attributes++] = n->attribute[i];
	if (!attribute_make_text(&a[attributes], ATTRIBUTE_kernel, gradient, strlen(gradient), t->err))
		return 0;
	const tensor_value v = put_node(t, OP_kernel, operand, operands, a, attributes + 1);
	free(a[attributes].whole);
	return v;
}

bool vjp_kernel(struct transform *t, const struct tensor_node *n)
{
	const char *gradient = attribute_text(n, ATTRIBUTE_gradient);
	char found[SHAPE_TEXT_MAX], expected[SHAPE_TEXT_MAX];

	if (!gradient)
		return transform_refuse(t, n, "without a gradient");
	tensor_value v = put_gradient(t, n, gradient);
	if (!v)
		return false;
	const tensor_value end = v + tensor_node_of(t->to, v)->results;
	for (uint32_t i = 0; i < n->operands; i++) {
		const struct tensor_value_info *x = info_of(t, n, i), *d = &t->to->value[v];
		if (!tensor_is_float(x->type))
			continue;
		if (v == end || d->type != x->type || !shape_equal(&d->shape, &x->shape))
			return error_set(t->err, ERROR_ARGUMENT,
			                 "the kernel %.64s gives %s for operand %u, expected %s", gradient,
			                 v == end ? "nothing" : shape_text(d->type, &d->shape, found), i + 1,
			                 shape_text(x->type, &x->shape, expected));
		if (vjp_wants(t, n, i) && !vjp_give(t, n, i, v))
			return false;
		v++;
	}
	return v == end ||
	       error_set(t->err, ERROR_ARGUMENT,
	                 "the kernel %.64s gives more than a gradient for each operand of floats", gradient);
}

/* ---- batches: a kernel has its own shapes, so it runs once for each set */

/* The set of an operand, without the new dimension. */
static tensor_value put_set(struct transform *t, const struct tensor_node *n, unsigned i, uint64_t set)
{
	const tensor_value x = operand_of(t, n, i);
	const struct shape *s = &info_of(t, n, i)->shape;
	int64_t start[TENSOR_MAX_RANK] = { (int64_t)set }, limit[TENSOR_MAX_RANK] = { (int64_t)set + 1 };

	if (!t->active[n->operand[i]])
		return x;
	for (unsigned d = 0; d < s->rank; d++)
		limit[d + 1] = (int64_t)s->dim[d];
	return graph_reshape(t->to, put_slice(t, x, start, limit, NULL), s, t->err);
}

static bool put_sets(struct transform *t, const struct tensor_node *n,
                     tensor_value of_set[TENSOR_MAX_RESULTS][TENSOR_MAX_OPERANDS])
{
	tensor_value operand[TENSOR_MAX_OPERANDS];

	for (uint64_t set = 0; set < t->size; set++) {
		for (uint32_t i = 0; i < n->operands; i++)
			if (!(operand[i] = put_set(t, n, i, set)))
				return false;
		const tensor_value v = put_again(t, n, operand);
		for (uint32_t k = 0; v && k < n->results; k++) {
			struct shape s = t->from->value[n->first + k].shape;
			if (s.rank == TENSOR_MAX_RANK)
				return transform_refuse(t, n, "of 8 dimensions");
			memmove(s.dim + 1, s.dim, s.rank * sizeof *s.dim);
			s.dim[0] = 1;
			s.rank++;
			of_set[k][set] = graph_reshape(t->to, v + k, &s, t->err);
		}
		if (!v)
			return false;
	}
	return true;
}

bool vmap_kernel(struct transform *t, const struct tensor_node *n)
{
	tensor_value of_set[TENSOR_MAX_RESULTS][TENSOR_MAX_OPERANDS];
	int64_t axis = 0;
	const struct attribute a = { ATTRIBUTE_axis, 1, &axis, 0 };

	if (t->size > TENSOR_MAX_OPERANDS)
		return transform_refuse(t, n, "in more than 64 sets");
	if (!put_sets(t, n, of_set))
		return false;
	for (uint32_t k = 0; k < n->results; k++) {
		struct shape s = t->from->value[n->first + k].shape;
		memmove(s.dim + 1, s.dim, (s.rank < TENSOR_MAX_RANK ? s.rank : 0) * sizeof *s.dim);
		s.dim[0] = 0;
		s.rank++;
		const tensor_value v = t->size ? put_node(t, OP_concatenate, of_set[k], (unsigned)t->size, &a, 1)
		                               : put_zeros(t, t->from->value[n->first + k].type, &s);
		if (!v)
			return false;
		t->is[n->first + k] = v;
	}
	return true;
}
