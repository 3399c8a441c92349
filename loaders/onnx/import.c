/* loaders/onnx/import.c - importing a file: inputs, nodes in their order, subgraphs and functions, outputs. */
#include "loaders/onnx/operators.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const char *s) { return s ? s : ""; }
static bool is_onnx(const char *domain) { return !domain[0] || strcmp(domain, "ai.onnx") == 0; }

/* ---- one node */

static bool lists(const char *list, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = list; *p; p += *p == ' ') {
		const size_t length = strcspn(p, " ");
		if (length == n && memcmp(p, name, n) == 0)
			return true;
		p += length;
	}
	return false;
}

static int64_t opset_of(const struct scope *s)
{
	for (; s; s = s->outer)
		if (s->function)
			for (size_t i = 0; i < s->function->n_opset; i++)
				if (is_onnx(text_of(s->function->opset[i]->domain)))
					return s->function->opset[i]->version;
	return 0;
}

static bool check_node(struct op *o)
{
	const struct operator_row *row = o->row;

	if (o->inputs < row->min || o->inputs > row->max) {
		op_refuse(o, "there are %u inputs, expected %u to %u", o->inputs, row->min, row->max);
		return false;
	}
	for (unsigned i = 0; i < row->min; i++)
		if (!o->in[i]) {
			op_refuse(o, "input %u is left out", i + 1);
			return false;
		}
	for (size_t i = 0; i < o->node->n_attribute; i++)
		if (!lists(row->attributes, text_of(o->node->attribute[i]->name))) {
			op_refuse(o, "there is an attribute %s, which is not known",
			          text_of(o->node->attribute[i]->name));
			return false;
		}
	return true;
}

static const struct onnx_function *function_of(const struct op *o)
{
	const struct onnx_model *m = o->im->file->model;

	for (size_t i = 0; i < m->n_function; i++)
		if (strcmp(text_of(m->function[i]->name), text_of(o->node->op)) == 0 &&
		    strcmp(text_of(m->function[i]->domain), text_of(o->node->domain)) == 0 &&
		    strcmp(text_of(m->function[i]->overload), text_of(o->node->overload)) == 0)
			return m->function[i];
	return NULL;
}

static bool call_function(struct op *o, const struct onnx_function *f)
{
	struct scope s = { 0 };

	if (o->inputs > f->n_input || o->outputs > f->n_output) {
		op_refuse(o, "the function has %zu inputs and %zu outputs, and the call %u and %u", f->n_input,
		          f->n_output, o->inputs, o->outputs);
		return false;
	}
	bool ok = ++o->im->depth <= IMPORT_MAX_DEPTH ||
	          error_set(o->err, ERROR_FORMAT, "functions and graphs lie in each other more than %d times",
	                    IMPORT_MAX_DEPTH);
	ok = ok && import_scope_of_function(&s, o, f, o->err);
	for (uint32_t i = 0; ok && i < o->inputs; i++)
		if (o->in[i])
			import_scope_set(&s, text_of(f->input[i]), o->in[i], o->narrow_in[i]);
	ok = ok && import_body(&s, f->node, f->n_node, o->err);
	for (uint32_t i = 0; ok && i < o->outputs; i++)
		if (op_wants(o, i)) {
			o->out[i] = import_scope_find(&s, text_of(f->output[i]), &o->narrow_out[i], o->err);
			ok = o->out[i] != 0;
		}
	if (s.im)
		import_scope_free(&s);
	o->im->depth--;
	return ok;
}

/* Rows that move elements keep their type; those that make a type of another say so. */
static void run_row(struct op *o)
{
	op_rule *const rule = o->row->rule;

	rule(o);
	if (rule == op_cast || rule == op_cast_like || rule == op_quantize || rule == op_dequantize ||
	    rule == op_constant)
		return;
	for (uint32_t i = 0; i < o->outputs && o->inputs && o->narrow_in[0]; i++)
		if (draw_type(&o->d, o->out[i]) == draw_type(&o->d, o->in[0]))
			o->narrow_out[i] = o->narrow_in[0];
}

static void run_rule(struct op *o)
{
	const char *domain = text_of(o->node->domain);
	const struct onnx_function *f = function_of(o);

	o->row = operator_find(is_onnx(domain) ? "" : domain, text_of(o->node->op));
	if (f)
		call_function(o, f);
	else if (!o->row && is_onnx(domain))
		op_refuse(o, "the operator is not imported");
	else if (!o->row)
		op_refuse(o, "the operator of %s is not imported", domain);
	else if (check_node(o))
		run_row(o);
	for (uint32_t i = 0; !op_failed(o) && i < o->outputs; i++)
		if (op_wants(o, i) && !o->out[i])
			op_refuse(o, "output %u is not imported", i + 1);
}

static bool bind_outputs(struct op *o)
{
	for (uint32_t i = 0; i < o->outputs; i++)
		if (op_wants(o, i)) {
			import_scope_set(o->scope, o->node->output[i], o->out[i], o->narrow_out[i]);
			if (!o->im->g->value[o->out[i]].name && !o->scope->function && !o->scope->outer &&
			    !tensor_graph_name_value(o->im->g, o->out[i], o->node->output[i], o->err))
				return false;
		}
	return true;
}

static bool find_inputs(struct op *o)
{
	for (uint32_t i = 0; i < o->inputs; i++)
		if (o->node->input[i] && o->node->input[i][0] &&
		    !(o->in[i] = import_scope_find(o->scope, o->node->input[i], &o->narrow_in[i], o->err)))
			return false;
	return true;
}

/* Inputs at the end that are left out are none; nor are those that a call has left out. */
static void trim_inputs(struct op *o)
{
	while (o->inputs && !text_of(o->node->input[o->inputs - 1])[0])
		o->inputs--;
}

/* Adds which node it was to what went wrong. One in a branch or a function stands in the sentence of the outer one. */
static bool name_node(const struct scope *s, const struct onnx_node *n, const struct error *own, struct error *err)
{
	const char *name = text_of(n->name);

	if (s->outer || s->function)
		return error_set(err, own->code, "%s: %s", text_of(n->op), own->text);
	return error_set(err, own->code, "%s: node %s%s%s%s: %s", s->im->file->name, name, name[0] ? " (" : "",
	                 text_of(n->op), name[0] ? ")" : "", own->text);
}

static bool import_node(struct scope *s, const struct onnx_node *n, struct error *err)
{
	struct error own = { 0 };
	struct op o = { .d = { s->im->g, &own },
		        .im = s->im,
		        .scope = s,
		        .node = n,
		        .opset = opset_of(s),
		        .inputs = (uint32_t)n->n_input,
		        .outputs = (uint32_t)n->n_output,
		        .err = &own };

	if (!o.opset)
		o.opset = s->im->file->about.opset;
	if (n->n_input > IMPORT_MAX_NODES || n->n_output > IMPORT_MAX_NODES || ++s->im->nodes > IMPORT_MAX_NODES)
		return error_set(err, ERROR_UNSUPPORTED, "%s: more than %d nodes, inputs or outputs are to be drawn",
		                 s->im->file->name, IMPORT_MAX_NODES);
	trim_inputs(&o);
	o.in = calloc(n->n_input + 1, sizeof *o.in);
	o.out = calloc(n->n_output + 1, sizeof *o.out);
	o.narrow_in = calloc(n->n_input + 1, sizeof *o.narrow_in);
	o.narrow_out = calloc(n->n_output + 1, sizeof *o.narrow_out);
	if (!o.in || !o.out || !o.narrow_in || !o.narrow_out)
		error_set(&own, ERROR_MEMORY, "there is no memory");
	else if (find_inputs(&o))
		run_rule(&o);
	if (!op_failed(&o))
		bind_outputs(&o);
	free(o.in);
	free(o.out);
	free(o.narrow_in);
	free(o.narrow_out);
	return !op_failed(&o) || name_node(s, n, &own, err);
}

bool import_body(struct scope *s, struct onnx_node *const *node, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (!import_node(s, node[i], err))
			return false;
	return true;
}

bool import_subgraph(struct op *o, const struct onnx_graph *g, const tensor_value *in, uint32_t n_in, tensor_value *out,
                     uint32_t n_out)
{
	struct scope s = { 0 };

	if (g->n_input != n_in || g->n_output != n_out || g->n_sparse_initializer) {
		op_refuse(o, "its graph has %zu inputs and %zu outputs, expected %u and %u", g->n_input, g->n_output,
		          n_in, n_out);
		return false;
	}
	bool ok = ++o->im->depth <= IMPORT_MAX_DEPTH ||
	          error_set(o->err, ERROR_FORMAT, "functions and graphs lie in each other more than %d times",
	                    IMPORT_MAX_DEPTH);
	ok = ok && import_scope_of_graph(&s, o->im, o->scope, g, o->err);
	for (uint32_t i = 0; ok && i < n_in; i++)
		import_scope_set(&s, text_of(g->input[i]->name), in[i], 0);
	ok = ok && import_body(&s, g->node, g->n_node, o->err);
	for (uint32_t i = 0; ok && i < n_out; i++) {
		out[i] = import_scope_find(&s, text_of(g->output[i]->name), NULL, o->err);
		ok = out[i] != 0;
	}
	if (s.im)
		import_scope_free(&s);
	o->im->depth--;
	return ok;
}

/* ---- inputs and outputs of the file */

static const struct onnx_bind *bind_of(const struct onnx_sizes *z, const char *name)
{
	for (size_t i = 0; z && i < z->binds; i++)
		if (strcmp(z->bind[i].input, name) == 0)
			return &z->bind[i];
	return NULL;
}

static bool size_of(const struct import *im, const struct onnx_slot *s, unsigned i, uint64_t *out, struct error *err)
{
	const struct onnx_dim *d = &s->dim[i];

	*out = d->size;
	if (d->is_fixed)
		return true;
	for (size_t k = 0; d->name && im->sizes && k < im->sizes->sizes; k++)
		if (strcmp(im->sizes->size[k].name, d->name) == 0) {
			*out = im->sizes->size[k].value;
			return true;
		}
	return error_set(err, ERROR_ARGUMENT, "%s: dimension %u of the input %s has no size%s%s", im->file->name, i,
	                 s->name, d->name ? ": expected one for " : "", d->name ? d->name : "");
}

/* The shape that is bound must be one that the file allows. */
static bool shape_of(const struct import *im, const struct onnx_slot *s, const struct shape *bound, struct shape *out,
                     struct error *err)
{
	char a[SHAPE_TEXT_MAX];

	if (!bound && !s->has_shape)
		return error_set(err, ERROR_ARGUMENT, "%s: the input %s has no shape: expected one for it",
		                 im->file->name, s->name);
	*out = bound ? *bound : (struct shape){ .rank = s->rank };
	if (bound && s->has_shape && bound->rank != s->rank)
		return error_set(err, ERROR_ARGUMENT, "%s: the input %s is given as %s, expected %u dimensions",
		                 im->file->name, s->name, shape_text(s->type, bound, a), s->rank);
	for (unsigned i = 0; i < out->rank; i++)
		if (!bound && !size_of(im, s, i, &out->dim[i], err))
			return false;
		else if (bound && s->has_shape && s->dim[i].is_fixed && s->dim[i].size != bound->dim[i])
			return error_set(err, ERROR_ARGUMENT,
			                 "%s: the input %s is given as %s, expected dimension %u to be %" PRIu64,
			                 im->file->name, s->name, shape_text(s->type, bound, a), i, s->dim[i].size);
	return true;
}

static bool import_input(struct import *im, struct scope *scope, const struct onnx_slot *s, struct error *err)
{
	const struct onnx_bind *b = bind_of(im->sizes, s->name);
	struct shape shape;
	tensor_value v;

	if (s->type < 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: the input %s has elements that graphs do not have, or is no array",
		                 im->file->name, s->name);
	if (b && b->value && b->value->type != s->type)
		return error_set(err, ERROR_ARGUMENT, "%s: the input %s is given as %s, expected %s", im->file->name,
		                 s->name, tensor_type_name(b->value->type), tensor_type_name(s->type));
	if (!shape_of(im, s, b ? b->value ? &b->value->shape : b->shape : NULL, &shape, err))
		return false;
	v = b && b->value ? tensor_graph_constant(im->g, b->value, err)
	                  : tensor_graph_input(im->g, s->name, s->type, &shape, err);
	return v && (import_scope_set(scope, s->name, v, onnx_narrow_bits(s->elements) ? (uint8_t)s->elements : 0) ||
	             error_set(err, ERROR_FORMAT, "%s: the input %s is no name of the graph", im->file->name, s->name));
}

/* A file of other domains' operators alone need not say which set of ONNX's own it has. */
static bool check_opset(const struct onnx_file *f, struct error *err)
{
	const struct onnx_graph *g = f->model->graph;
	const int64_t v = f->about.opset;
	bool needed = v != 0;

	for (size_t i = 0; i < g->n_node && !needed; i++)
		needed = is_onnx(text_of(g->node[i]->domain));
	return !needed || (v >= 1 && v <= 28) ||
	       error_set(err, ERROR_UNSUPPORTED, "%s: the operator set is %" PRId64 ", expected 1 to 28", f->name, v);
}

static bool import_graph(struct import *im, struct scope *s, struct error *err)
{
	const struct onnx_graph *g = im->file->model->graph;
	const struct onnx_about *a = &im->file->about;

	if (!check_opset(im->file, err) || !import_scope_of_graph(s, im, NULL, g, err))
		return false;
	for (uint32_t i = 0; i < a->inputs; i++)
		if (!import_input(im, s, &a->input[i], err))
			return false;
	if (!import_body(s, g->node, g->n_node, err))
		return false;
	for (uint32_t i = 0; i < a->outputs; i++) {
		const tensor_value v = import_scope_find(s, a->output[i].name, NULL, err);
		if (!v || !tensor_graph_output(im->g, a->output[i].name, v, err))
			return false;
	}
	return true;
}

bool onnx_import(struct onnx_file *f, const struct onnx_sizes *sizes, struct tensor_graph *g, struct onnx_refusal *why,
                 struct error *err)
{
	struct import im = { .file = f, .g = g, .sizes = sizes, .why = why, .known.work = IMPORT_MAX_WORK };
	struct scope s = { 0 };

	tensor_graph_init(g);
	if (why)
		why->input = NULL;
	const bool ok = import_graph(&im, &s, err);
	if (s.im)
		import_scope_free(&s);
	import_forget(&im);
	if (!ok)
		tensor_graph_free(g);
	return ok;
}
