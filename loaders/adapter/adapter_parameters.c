/* loaders/adapter/adapter_parameters.c - pairs of target_parameters: those of one parameter that holds the matrices of
 * all experts, as classes of transformers have it (adapter.h).
 *
 * PEFT puts a wrapper around the module for each of its parameters, so the path of a pair's tensors says the module
 * and, by ".base_layer", how many wrappers are around it: the first parameter of the class is the innermost one. A has
 * experts x ranks rows, expert by expert, and B so many columns, rank by rank. Up to version 0.19.0 of peft one of them
 * was as long as the outputs where the other is as long as the inputs, for parameters of experts x outputs x inputs;
 * since then it is so where a class does not say how its parameters lie. Sizes tell which, unless both are the same.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/adapter/adapter_config.h"

/* ---- which parameter a pair is of */

static const char wrapped[] = ".base_layer", field[] = "target_parameters";
/* In the order in which classes have them. */
static const char *const parameters[] = { "weight", "gate_up_proj", "up_proj", "down_proj" };
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

/* The path's length without its wrappers, and how many there are. */
static size_t module_length(const char *path, unsigned *depth)
{
	const size_t ends = sizeof wrapped - 1;
	size_t n = strlen(path);

	for (*depth = 0; n > ends && memcmp(path + n - ends, wrapped, ends) == 0; n -= ends)
		++*depth;
	return n;
}

/* Whether a path of n bytes is that name of m bytes, or ends in it behind a dot. */
static bool is_or_ends(const char *path, size_t n, const char *name, size_t m)
{
	return n >= m && memcmp(path + n - m, name, m) == 0 && (n == m || path[n - m - 1] == '.');
}

/* Which of `parameters` the entry's last word is; PARAMETERS: none. */
static unsigned parameter_of(const char *entry, size_t *module)
{
	const char *dot = strrchr(entry, '.');
	unsigned k = 0;

	*module = dot ? (size_t)(dot - entry) : 0;
	while (k < PARAMETERS && strcmp(dot ? dot + 1 : entry, parameters[k]) != 0)
		k++;
	return k;
}

/* The parameter of a module that an entry names, as a bit; 0: none. One without a module is of any module of experts.
 */
static unsigned named_by(const char *entry, const char *path, size_t n)
{
	static const char experts[] = "experts";
	size_t module;
	const unsigned k = parameter_of(entry, &module);
	const bool names = module ? is_or_ends(path, n, entry, module)
	                          : k == 0 || is_or_ends(path, n, experts, sizeof experts - 1);

	return names ? 1u << k : 0;
}

static unsigned named_of(const json_t *list, const char *path, size_t n)
{
	unsigned named = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		named |= named_by(json_string_value(json_array_get(list, i)), path, n);
	return named;
}

static unsigned count_of(unsigned named)
{
	unsigned n = 0;

	for (; named; named &= named - 1)
		n++;
	return n;
}

static bool has_pair(const struct adapter_file *f, const char *path, size_t n, unsigned depth)
{
	unsigned have;

	for (size_t i = 0; i < f->n_pairs; i++)
		if (module_length(f->pair[i].path, &have) == n && have == depth &&
		    memcmp(f->pair[i].path, path, n) == 0)
			return true;
	return false;
}

static bool find_parameter(struct adapter_file *f, const json_t *list, struct adapter_pair *p, struct error *err)
{
	unsigned depth, k = PARAMETERS;
	const size_t n = module_length(p->path, &depth);
	const unsigned named = named_of(list, p->path, n), count = count_of(named);

	for (unsigned d = 0; d < count; d++)
		if (depth >= count || !has_pair(f, p->path, n, d))
			return error_set(
				err, ERROR_FORMAT,
				"%s: target_parameters names %u parameters of %.*s, expected tensors of each of "
				"them and of no others",
				f->weights.label, count, (int)n, p->path);
	for (unsigned from_outside = 0; count && from_outside <= depth; from_outside++)
		do
			k--;
		while (!(named >> k & 1));
	p->parameter = k < PARAMETERS ? parameters[k] : NULL;
	return true;
}

/* A parameter that is called weight has its module's name, as a module has that is a matrix. */
static bool rename_pair(struct adapter_pair *p, struct error *err)
{
	unsigned depth;
	const size_t n = module_length(p->path, &depth), room = n + 32;
	char *path = malloc(room);

	if (!path)
		return error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
	const bool own = p->parameter == parameters[0];
	snprintf(path, room, "%.*s%s%s", (int)n, p->path, own ? "" : ".", own ? "" : p->parameter);
	free(p->path);
	p->path = path;
	return true;
}

/* "0.19.1" is 1901; with a mark of a version in the making behind it, *between is true. 0: it says nothing. */
static unsigned version_of(const struct adapter_config *c, bool *between)
{
	const char *text = json_string_value(json_object_get(c->root, "peft_version"));
	unsigned major = 0, minor = 0, patch = 0;
	int n = 0;

	*between = false;
	if (!text || sscanf(text, "%3u.%2u.%2u%n", &major, &minor, &patch, &n) != 3)
		return 0;
	*between = text[n] != 0;
	return major * 10000 + minor * 100 + patch;
}

/* Each is the name of a parameter of which there are tensors. */
static bool check_list(const struct adapter_config *c, const struct adapter_file *f, const json_t *list,
                       struct error *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		const char *entry = json_is_text(v) ? json_string_value(v) : json_kind(v);
		size_t module;
		unsigned depth;
		bool found = false;
		if (!json_is_text(v) || parameter_of(entry, &module) == PARAMETERS)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: target_parameters has %.100s, expected names that end in weight, "
			                 "gate_up_proj, up_proj or down_proj",
			                 c->label, entry);
		for (size_t k = 0; k < f->n_pairs && !found; k++) {
			const size_t n = module_length(f->pair[k].path, &depth);
			found = named_by(entry, f->pair[k].path, n);
		}
		if (!found)
			return error_set(err, ERROR_FORMAT,
			                 "%s: target_parameters has %.100s, of which there is no tensor", c->label,
			                 entry);
	}
	return true;
}

bool adapter_config_parameters(const struct adapter_config *c, struct adapter_file *f, struct error *err)
{
	const json_t *list = json_object_get(c->root, field);
	bool between;

	if (!check_list(c, f, list, err))
		return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (!find_parameter(f, list, &f->pair[i], err))
			return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (f->pair[i].parameter && !rename_pair(&f->pair[i], err))
			return false;
	/* The change came between two releases. */
	const unsigned version = version_of(c, &between);
	if (version && !(between && version >= 1800 && version <= 1901))
		f->saved = version >= 1901 ? ADAPTER_STRAIGHT : ADAPTER_CROSSED;
	return true;
}

bool adapter_config_parameter(const struct adapter_config *c, struct adapter_pair *p, double r, struct error *err)
{
	if (r != floor(r) || r > ADAPTER_MAX_RANK || r < 1)
		return error_set(err, ERROR_FORMAT, "%s: the rank of %s is %g, expected a whole number from 1 to %d",
		                 c->label, p->path, r, ADAPTER_MAX_RANK);
	p->rank = (uint32_t)r;
	return true;
}

/* ---- which way round its tensors are */

/* The pair of a parameter that a matrix of experts is in. NULL: there is none. */
static struct adapter_pair *pair_of(const struct adapter_file *f, const struct model *m, uint32_t layer,
                                    enum tensor_slot slot, struct model_location *at)
{
	for (int newer = 0; newer < 2; newer++) {
		struct adapter_pair *pair = NULL;
		if (model_parameter_location_of(m, layer, slot, newer, at))
			pair = adapter_find_pair(f, at->name, &(size_t){ 0 });
		if (pair && pair->parameter)
			return pair;
	}
	return NULL;
}

/* By sizes alone. ADAPTER_SQUARE: both fit. */
static enum adapter_direction fits(const struct adapter_pair *pair, const struct model_location *at)
{
	const uint64_t in = at->order.cols, out = at->all_rows;
	const bool straight = pair->a.cols == in && pair->b.rows == out,
		   crossed = pair->a.cols == out && pair->b.rows == in;

	return straight && crossed ? ADAPTER_SQUARE
	       : straight          ? ADAPTER_STRAIGHT
	       : crossed           ? ADAPTER_CROSSED
	                           : ADAPTER_UNKNOWN;
}

/* All of a file's are the same way round: what is not square tells it of what is. */
static bool find_direction(struct adapter_file *f, const struct model *m, struct error *err)
{
	static const enum tensor_slot slots[] = { SLOT_expert_up, SLOT_expert_down };
	const struct adapter_pair *first = NULL, *square = NULL;
	struct model_location at;
	bool by_columns = false;

	for (uint32_t i = 0; i < 2 * m->spec.layers; i++) {
		const struct adapter_pair *pair = pair_of(f, m, i / 2, slots[i % 2], &at);
		const enum adapter_direction way = pair ? fits(pair, &at) : ADAPTER_UNKNOWN;
		square = way == ADAPTER_SQUARE && !square ? pair : square;
		by_columns |= way == ADAPTER_SQUARE && at.by_columns;
		if (way != ADAPTER_STRAIGHT && way != ADAPTER_CROSSED)
			continue;
		if (first && way != f->direction)
			return error_set(err, ERROR_FORMAT,
			                 "%s: tensor %s has a column for each %s, but %s for each %s", f->weights.label,
			                 first->a.name, f->direction == ADAPTER_STRAIGHT ? "input" : "output",
			                 pair->a.name, way == ADAPTER_STRAIGHT ? "input" : "output");
		first = pair;
		f->direction = way;
	}
	if (!first && square)
		f->direction = by_columns ? ADAPTER_UNKNOWN : f->saved;
	return first || !square || f->direction != ADAPTER_UNKNOWN ||
	       error_set(
		       err, ERROR_UNSUPPORTED,
		       "%s: tensor %s is of %s, whose inputs are as many as its outputs, and peft_version does not say "
		       "which of them its columns are",
		       f->weights.label, square->a.name, square->path);
}

/* ---- parts */

static bool check_parameter(const struct adapter_file *f, const struct adapter_part *p, const struct adapter_pair *pair,
                            struct error *err)
{
	if (pair->magnitude.name || pair->bias.name || pair->own_bias.name)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s: %s of experts are not done", f->weights.label,
		                 pair->magnitude.name ? pair->magnitude.name
		                 : pair->bias.name    ? pair->bias.name
		                                      : pair->own_bias.name,
		                 pair->magnitude.name ? "magnitudes (DoRA)" : "biases");
	if (fits(pair, &p->location) == ADAPTER_UNKNOWN)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensors %s and %s are of %" PRIu64 " inputs and %" PRIu64
		                 " outputs, expected %" PRIu64 " and %" PRIu64 ", as the model's %s has",
		                 f->weights.label, pair->a.name, pair->b.name, pair->a.cols, pair->b.rows, p->cols,
		                 p->location.all_rows, p->location.name);
	return pair->a.rows == (uint64_t)pair->rank * p->experts ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu32 " for each of %" PRIu32 " experts",
	                 f->weights.label, pair->a.name, pair->a.rows, pair->rank, p->experts);
}

bool adapter_match_parameter(struct adapter_file *f, const struct model *m, uint32_t layer, enum tensor_slot slot,
                             size_t *room, bool *found, struct error *err)
{
	struct adapter_part p = { .layer = layer, .slot = slot, .experts = m->spec.experts };
	struct adapter_pair *pair = f->is_gguf ? NULL : pair_of(f, m, layer, slot, &p.location);

	*found = pair != NULL;
	if (!pair)
		return true;
	p.rows = p.location.order.rows;
	p.cols = p.location.order.cols;
	p.rank = pair->rank;
	p.pair = (uint32_t)(pair - f->pair);
	pair->used = true;
	return check_parameter(f, &p, pair, err) && (f->direction != ADAPTER_UNKNOWN || find_direction(f, m, err)) &&
	       adapter_append_part(f, &p, room, err);
}

bool adapter_read_parameter(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b,
                            struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->pair];
	const bool crossed = f->direction == ADAPTER_CROSSED;
	float *first = adapter_read_tensor(f, &pair->a, err),
	      *second = first ? adapter_read_tensor(f, &pair->b, err) : NULL;
	const uint64_t rank = p->rank, across = rank * p->experts, wide = pair->a.cols;

	for (uint64_t e = 0; second && e < p->experts; e++)
		for (uint64_t j = 0; j < rank; j++) {
			const float *row = first + (e * rank + j) * wide, *column = second + j * p->experts + e;
			for (uint64_t i = 0; i < p->cols; i++)
				a[(e * rank + j) * p->cols + i] = crossed ? column[i * across] : row[i];
			for (uint64_t r = 0; r < p->rows; r++) {
				const uint64_t at = p->location.first_row + r * p->location.row_step;
				b[(e * p->rows + r) * rank + j] = crossed ? row[at] : column[at * across];
			}
		}
	free(first);
	free(second);
	return second != NULL;
}
