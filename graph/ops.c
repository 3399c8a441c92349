/* graph/ops.c - the tables of operations and attributes. */
#include <string.h>

#include "graph/graph.h"

const struct tensor_op_row tensor_ops[TENSOR_OPS] = {
#define MANY TENSOR_MANY
#define OP(name, least, most, results, kind, attributes) { #name, least, most, results, KIND_##kind, attributes },
#include "graph/ops.def"
#undef OP
#undef MANY
};

const struct attribute_row tensor_attributes[TENSOR_ATTRIBUTES] = {
#define ATTRIBUTE(name, kind) { #name, ATTRIBUTE_##kind },
#include "graph/attributes.def"
#undef ATTRIBUTE
};

const char *const scatter_mode_names[SCATTER_MODES] = { "set", "add", "mul", "min", "max" };

enum tensor_op tensor_op_find(const char *name, size_t n)
{
	int op = 0;

	while (op < TENSOR_OPS && (strlen(tensor_ops[op].name) != n || memcmp(tensor_ops[op].name, name, n) != 0))
		op++;
	return (enum tensor_op)op;
}

enum tensor_attribute tensor_attribute_find(const char *name, size_t n)
{
	int i = 0;

	while (i < TENSOR_ATTRIBUTES &&
	       (strlen(tensor_attributes[i].name) != n || memcmp(tensor_attributes[i].name, name, n) != 0))
		i++;
	return (enum tensor_attribute)i;
}
