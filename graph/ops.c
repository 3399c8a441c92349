/* graph/ops.c - the tables of operations and attributes. */
#include <string.h>
#include <strings.h>

#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels-templates/formats/weight_format.h"

const struct tensor_op_row tensor_ops[TENSOR_OPS] = {
#define MANY TENSOR_MANY
#define OP(name, min, max, results, kind, attributes) { #name, min, max, results, KIND_##kind, attributes },
#include "graph/ops.def"
#undef OP
#undef MANY
};

const struct attribute_row tensor_attributes[TENSOR_ATTRIBUTES] = {
#define ATTRIBUTE(name, kind) { #name, ATTRIBUTE_##kind },
#include "graph/attributes.def"
#undef ATTRIBUTE
};

const char *tensor_word(enum tensor_attribute a, int64_t number)
{
	static const char *const modes[SCATTER_MODES] = { "set", "add", "mul", "min", "max" };

	if (number < 0)
		return NULL;
	if (a == ATTRIBUTE_mode)
		return number < SCATTER_MODES ? modes[number] : NULL;
	return number < DTYPE_COUNT && weight_format_find((enum dtype)number) ? dtype_table[number].name : NULL;
}

int64_t tensor_word_find(enum tensor_attribute a, const char *word)
{
	for (int64_t i = 0; i < DTYPE_COUNT; i++)
		if (tensor_word(a, i) && strcasecmp(tensor_word(a, i), word) == 0)
			return i;
	return -1;
}

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
