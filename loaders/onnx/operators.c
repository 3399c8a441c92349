/* loaders/onnx/operators.c - the table of operators. */
#include <string.h>

#include "loaders/onnx/operators.h"

static const struct operator_row rows[] = {
#define OPERATOR(name, rule, user, least, most, attributes) { "", #name, attributes, rule, least, most, user },
#define OPERATOR_OF(domain, name, rule, user, least, most, attributes) \
	{ domain, #name, attributes, rule, least, most, user },
#include "loaders/onnx/operators.def"
#undef OPERATOR
#undef OPERATOR_OF
};

const struct operator_row *operator_find(const char *domain, const char *name)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].domain, domain) == 0)
			return &rows[i];
	return NULL;
}
