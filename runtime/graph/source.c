/* runtime/graph/source.c - the frame of a group's kernel: its arrays, its indices, its texts. */
#include "runtime/graph/source.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "graph/users.h"
#include "runtime/graph/arena.h"

/* ---- texts */

static const char *keep(struct source *s, char *text)
{
	if (!text || !array_grow((void **)&s->kept, &s->kept_room, s->n_kept + 1, sizeof *s->kept)) {
		free(text);
		s->lost = true;
		return "0";
	}
	s->kept[s->n_kept++] = text;
	return text;
}

const char *source_text(struct source *s, const char *format, ...)
{
	char *text = NULL;
	va_list list;

	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		text = NULL;
	va_end(list);
	return keep(s, text);
}

void source_line(struct source *s, const char *format, ...)
{
	char *text = NULL;
	va_list list;

	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		text = NULL;
	va_end(list);
	bytes_text(&s->body, "\t");
	bytes_text(&s->body, text ? text : "");
	bytes_text(&s->body, "\n");
	s->lost = s->lost || !text;
	free(text);
}

const char *source_local(struct source *s, const char *type, const char *x)
{
	if (s->inlines || (*x == 't' && strspn(x + 1, "0123456789") == strlen(x + 1)))
		return x;
	const char *name = source_text(s, "t%u", s->names++);
	source_line(s, "%s %s = %s;", type, name, x);
	return name;
}

void source_forget(struct source *s) { s->n_seen = 0; }

void source_free(struct source *s)
{
	for (size_t i = 0; i < s->n_kept; i++)
		free(s->kept[i]);
	free(s->kept);
	free(s->seen);
	for (unsigned i = 0; i < s->n_prepared; i++)
		free(s->prepared[i].text);
	bytes_free(&s->text);
	bytes_free(&s->head);
	bytes_free(&s->body);
	*s = (struct source){ 0 };
}

/* ---- positions */

void position_dims(struct source *s, const struct shape *shape, struct position *at)
{
	uint64_t stride[TENSOR_MAX_RANK];

	if (at->has_dims)
		return;
	shape_strides(shape, stride);
	at->has_dims = true;
	for (unsigned d = 0; d < shape->rank; d++) {
		const bool is_first = shape_part(shape, 0, d) == 1;
		if (shape->dim[d] == 1) {
			at->dim[d] = "0";
			continue;
		}
		const char *x = stride[d] == 1 ? at->flat : source_text(s, "(%s / %" PRIu64 ")", at->flat, stride[d]);
		if (!is_first)
			x = source_text(s, "(%s %% %" PRIu64 ")", x, shape->dim[d]);
		at->dim[d] = is_first && stride[d] == 1 ? x : source_local(s, "i32", x);
	}
}

const char *position_flat(struct source *s, const struct shape *shape, struct position *at)
{
	uint64_t stride[TENSOR_MAX_RANK];
	const char *sum = NULL;

	if (at->flat)
		return at->flat;
	shape_strides(shape, stride);
	for (unsigned d = 0; d < shape->rank; d++) {
		if (shape->dim[d] == 1 || strcmp(at->dim[d], "0") == 0)
			continue;
		const char *x = stride[d] == 1 ? at->dim[d] : source_text(s, "%s * %" PRIu64, at->dim[d], stride[d]);
		sum = sum ? source_text(s, "%s + %s", sum, x) : x;
	}
	at->flat = sum ? source_text(s, "(%s)", sum) : "0";
	return at->flat;
}

/* ---- arrays */

const char *source_type(int type) { return type == JIT_TYPE_BOOL ? "u8" : tensor_type_name(type); }

static const char *array_of(struct source *s, tensor_value v, bool pairs)
{
	const tensor_value root = partition_root(s->p, s->g, v);
	unsigned i = 0;

	/* The same bytes in another type are another array. */
	while (i < s->reads && (partition_root(s->p, s->g, s->read[i]) != root || s->pairs[i] != pairs ||
	                        s->g->value[s->read[i]].type != s->g->value[v].type))
		i++;
	if (i == SOURCE_ARRAYS_MAX) {
		s->lost = true;
		return "a0";
	}
	if (i == s->reads) {
		s->pairs[i] = pairs;
		s->read[s->reads++] = v;
	}
	return source_text(s, "a%u", i);
}

const char *source_array(struct source *s, tensor_value v) { return array_of(s, v, false); }

const char *source_array_pairs(struct source *s, tensor_value v) { return array_of(s, v, true); }

const char *source_array_behind(struct source *s, tensor_value v, uint64_t elements)
{
	const struct tensor_node *n = tensor_node_of(s->g, partition_root(s->p, s->g, v));
	const char *name;

	/* Behind a part is the next one, which may be written while this one is read. */
	if (!n || n->op == OP_constant || s->p->part_of[partition_root(s->p, s->g, v)] ||
	    elements * tensor_type_bytes(s->g->value[v].type) > ARENA_BEHIND)
		return NULL;
	name = source_array(s, v);
	for (unsigned i = 0; i < s->reads; i++)
		if (s->read[i] == v && s->behind[i] < elements)
			s->behind[i] = elements;
	return name;
}

const char *source_stored(struct source *s, int type, const char *x)
{
	return type == JIT_TYPE_BOOL ? source_text(s, "select(%s, 1, 0)", x) : x;
}

/* ---- the kernel */

static void put_array(struct source *s, tensor_value v, uint64_t behind, const char *access, const char *name)
{
	const struct tensor_value_info *i = &s->g->value[v];

	bytes_print(&s->text, "%s %s %s[%" PRIu64 "]", access, source_type(i->type), name,
	            shape_elements(&i->shape) + behind);
}

static void put_kernel(struct source *s, const struct tensor_node *n)
{
	source_put_remainders(s);
	bytes_text(&s->text, "kernel ");
	bytes_text(&s->text, tensor_ops[n->op].name);
	bytes_text(&s->text, "_(");
	for (unsigned i = 0; i < s->reads; i++) {
		char name[16];
		snprintf(name, sizeof name, "a%u", i);
		if (s->pairs[i])
			bytes_print(&s->text, "in u64 %s[%" PRIu64 "]", name,
			            shape_elements(&s->g->value[s->read[i]].shape) / 2);
		else
			put_array(s, s->read[i], s->behind[i], "in", name);
		bytes_text(&s->text, ", ");
	}
	for (unsigned i = 0; i < s->n_prepared; i++)
		bytes_print(&s->text, "in %s p%u[%" PRIu64 "], ", source_type(s->g->value[s->prepared[i].from].type), i,
		            s->prepared[i].elements);
	if (s->out)
		bytes_print(&s->text, "%s %s o%s", s->access, source_type(s->g->value[n->first].type), s->out);
	else
		put_array(s, n->first, 0, s->access, "o");
	bytes_text(&s->text, ") over (");
	bytes_add(&s->text, s->head.p, s->head.n);
	bytes_text(&s->text, ") {\n");
	bytes_add(&s->text, s->body.p, s->body.n);
	bytes_add(&s->text, "}\n", 3);
}

/* A user's kernel as it is. */
static bool write_users(struct source *s, const struct tensor_node *n, struct error *err)
{
	struct jk_file *file;
	struct jk_kernel *k = users_bind(n, &file, err);
	const char *source = attribute_text(n, ATTRIBUTE_source);
	uint32_t operands = 0, results = 0;

	if (!k)
		return false;
	s->is_users = true;
	s->is_whole = tensor_node_whole(n, ATTRIBUTE_whole, 0, 0) != 0;
	s->kernel = attribute_text(n, ATTRIBUTE_kernel);
	s->constants = attribute_text(n, ATTRIBUTE_constants);
	for (size_t i = 0; i < jk_parameters(k) && !s->lost; i++) {
		if (s->reads == SOURCE_ARRAYS_MAX)
			s->lost = true;
		else
			s->read[s->reads++] =
				jk_parameter(k, i)->access == JK_IN ? n->operand[operands++] : n->first + results++;
	}
	bytes_add(&s->text, source, strlen(source) + 1);
	jk_kernel_close(k);
	jk_file_close(file);
	return (!s->lost && !s->text.lost) ||
	       error_set(err, ERROR_UNSUPPORTED, "a kernel of more than %d arrays", SOURCE_ARRAYS_MAX);
}

bool source_write(struct source *s, const struct tensor_graph *g, const struct partition *p, const struct group *group,
                  unsigned lanes, bool keeps_rows, struct error *err)
{
	static void (*const writers[])(struct source * s, const struct tensor_node *n) = {
		[KIND_REDUCE] = source_reduce,
		[KIND_REDUCE_BOOL] = source_reduce,
		[KIND_ARG] = source_arg,
		[KIND_SCAN] = source_scan,
		[KIND_DOT] = source_dot,
		[KIND_CONV] = source_conv,
		[KIND_WINDOW] = source_window,
		[KIND_SCATTER_ND] = source_scatter,
		[KIND_SCATTER_ALONG] = source_scatter
	};
	const struct tensor_node *n = &g->node[group->node], *first = &g->node[group->product];

	*s = (struct source){ .g = g,
		              .p = p,
		              .lanes = lanes,
		              .keeps_rows = keeps_rows,
		              .end = n,
		              .product = first->first,
		              .access = "out" };
	if (n->op == OP_kernel)
		return write_users(s, n, err);
	if (shape_elements(&g->value[n->first].shape) > INT32_MAX)
		return error_set(err, ERROR_UNSUPPORTED, "%s has 2^31 elements or more", tensor_ops[n->op].name);
	for (uint32_t i = 0; i < n->operands; i++)
		if (shape_elements(&g->value[n->operand[i]].shape) > INT32_MAX)
			return error_set(err, ERROR_UNSUPPORTED, "an operand of %s has 2^31 elements or more",
			                 tensor_ops[n->op].name);
	if (group->rows)
		source_rows(s, n, group->rows);
	else if (group->scores)
		source_attention(s, first, group);
	else if (partition_is_element(g, first))
		source_elements(s, first);
	else
		writers[tensor_ops[first->op].kind](s, first);
	put_kernel(s, n);
	if (!s->lost && !s->text.lost && !s->head.lost && !s->body.lost)
		return true;
	return error_set(err, ERROR_MEMORY, "there is no memory for the kernel of %s", tensor_ops[n->op].name);
}

const char *source_element_at(struct source *s, tensor_value v, const char *flat)
{
	return source_element(s, v, (struct position){ .flat = flat });
}

uint64_t source_divisor(uint64_t n, uint64_t max)
{
	while (max > 1 && n % max)
		max--;
	return max;
}
