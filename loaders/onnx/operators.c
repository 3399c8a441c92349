/* loaders/onnx/operators.c - the table of operators. */
#include <string.h>

#include "loaders/onnx/operators.h"

static const struct operator_row rows[] = {
#define OPERATOR(name, rule, user, min, max, attributes) { "", #name, attributes, rule, min, max, user },
#define OPERATOR_OF(domain, name, rule, user, min, max, attributes) { domain, #name, attributes, rule, min, max, user },
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
