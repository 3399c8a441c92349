/* loaders/adapter/adapter_config.h - what an adapter_config.json says; private to loaders/adapter/. */
#ifndef LOADERS_ADAPTER_CONFIG_H
#define LOADERS_ADAPTER_CONFIG_H

#include "base/json_read.h"
#include "loaders/adapter/adapter.h"

struct adapter_config {
	const char *label;
	json_t *root;
	double r, alpha;
	bool rslora, dora, biases, own_biases, ties;
	bool merges; /* adapter_file.merges */
};

/* Every field is known, or has a value that turns nothing on. False: err. */
bool adapter_config_read(struct adapter_config *c, const struct file *text, bool merges, struct error *err);
void adapter_config_close(struct adapter_config *c);
bool adapter_config_invocation(const struct adapter_config *c, struct adapter_file *f, struct error *err);
/* Whether the modules that are meant to be whole are there. False: err. */
bool adapter_config_whole(const struct adapter_config *c, struct adapter_file *f, struct error *err);
/* adapter_parameters.c: which pairs are of parameters, before anything asks for a pair's path; and such a pair's rank.
 * False: err. */
bool adapter_config_parameters(const struct adapter_config *c, struct adapter_file *f, struct error *err);
bool adapter_config_parameter(const struct adapter_config *c, struct adapter_pair *p, double r, struct error *err);
/* That the module is one that the configuration names, of that rank; and its scale. False: err. */
bool adapter_config_pair(const struct adapter_config *c, struct adapter_pair *p, struct error *err);

/* adapter_names.c: whether an expression names all of a path, or its end behind a dot. It has characters, '.', classes,
 * groups, '|', '*', '+', '?', '^', '$', \d, \w and marks behind backslashes. *bad: it has something else, or takes too
 * many steps. */
bool adapter_names(const char *expression, const char *path, bool *bad);

#endif
