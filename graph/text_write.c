/* graph/text_write.c - a graph written as text. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "graph/users.h"

void graph_text_number(char out[40], int type, union number x)
{
	switch (tensor_wide_type(type)) {
	case JIT_TYPE_F32:
		if (isnan(x.f))
			strcpy(out, "nan");
		else
			snprintf(out, 40, "%.9g", (double)x.f);
		break;
	case JIT_TYPE_F64:
		if (isnan(x.d))
			strcpy(out, "nan");
		else
			snprintf(out, 40, "%.17g", x.d);
		break;
	case JIT_TYPE_I32:
	case JIT_TYPE_I64: snprintf(out, 40, "%" PRId64, x.i); break;
	default: snprintf(out, 40, "%" PRIu64, x.u); break;
	}
}

/* Whether it can stand in the text, and means this value there: none behind it has the same. */
static bool is_usable(const struct tensor_graph *g, tensor_value v)
{
	const char *name = g->value[v].name;

	if (!name || !(isalpha((unsigned char)*name) || *name == '_') || strlen(name) > 100)
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.')
			return false;
	/* v and digits are what others are called. */
	return !(name[0] == 'v' && isdigit((unsigned char)name[1])) && tensor_graph_find(g, name) == v;
}

static void put_value(const struct tensor_graph *g, FILE *out, tensor_value v)
{
	if (is_usable(g, v))
		fputs(g->value[v].name, out);
	else
		fprintf(out, "v%u", v);
}

static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		if (*text == '\n' || *text == '\t')
			fputs(*text == '\n' ? "\\n" : "\\t", out);
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', out);
}

static void put_attribute(FILE *out, const struct attribute *a)
{
	const struct attribute_row *row = &tensor_attributes[a->name];

	fprintf(out, " %s=", row->name);
	if (row->kind == ATTRIBUTE_TYPE)
		fputs(tensor_type_name((int)a->whole[0]), out);
	else if (row->kind == ATTRIBUTE_WORD)
		fputs(tensor_word(a->name, a->whole[0]), out);
	else if (row->kind == ATTRIBUTE_TEXT)
		put_text(out, (const char *)a->whole);
	else if (row->kind == ATTRIBUTE_WHOLE)
		fprintf(out, "%" PRId64, a->whole[0]);
	else if (row->kind == ATTRIBUTE_REAL)
		fprintf(out, "%.17g", a->real);
	for (uint32_t i = 0; row->kind == ATTRIBUTE_WHOLES && i < a->n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "[", a->whole[i]);
	if (row->kind == ATTRIBUTE_WHOLES)
		fputs(a->n ? "]" : "[]", out);
}

static void put_constant(FILE *out, const struct tensor *t, uint64_t max)
{
	const uint64_t n = shape_elements(&t->shape);
	char text[SHAPE_TEXT_MAX], number[40];

	fprintf(out, " %s", shape_text(t->type, &t->shape, text));
	for (uint64_t i = 0; i < n && (!max || i < max); i++) {
		graph_text_number(number, t->type, tensor_get(t, i));
		fprintf(out, " %s", number);
	}
	if (max && n > max)
		fputs(" ...", out);
}

void graph_text_write(const struct tensor_graph *g, FILE *out, uint64_t constants_max)
{
	char text[SHAPE_TEXT_MAX];

	fprintf(out, "graph %s\n", g->name ? g->name : "main");
	for (uint32_t i = 0; i < g->inputs; i++) {
		const struct tensor_value_info *v = &g->value[g->input[i]];
		fputs("input ", out);
		put_value(g, out, g->input[i]);
		fprintf(out, " %s\n", shape_text(v->type, &v->shape, text));
	}
	for (uint32_t i = 0; i < g->nodes; i++) {
		const struct tensor_node *n = &g->node[i];
		for (uint32_t k = 0; k < n->results; k++) {
			fputs(k ? ", " : "", out);
			put_value(g, out, n->first + k);
		}
		fprintf(out, " = %s", tensor_ops[n->op].name);
		for (uint32_t k = 0; k < n->operands; k++) {
			fputc(' ', out);
			put_value(g, out, n->operand[k]);
		}
		for (uint32_t k = 0; k < n->attributes; k++)
			put_attribute(out, &n->attribute[k]);
		if (n->op == OP_constant)
			put_constant(out, n->constant, constants_max);
		const struct tensor_value_info *v = &g->value[n->first];
		if (n->op != OP_constant)
			fprintf(out, " # %s", shape_text(v->type, &v->shape, text));
		fputc('\n', out);
	}
	for (uint32_t i = 0; i < g->outputs; i++) {
		fprintf(out, "output ");
		put_value(g, out, g->output[i]);
		fprintf(out, " as %s\n", g->output_name[i]);
	}
}
