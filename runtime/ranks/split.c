/* runtime/ranks/split.c - see split.h. */
#include "runtime/ranks/split.h"

#include <stdlib.h>
#include <string.h>

static void add_tensor(struct split_bytes *b, const struct model_spec *s, const struct model_tensor *t)
{
	const uint64_t bytes = t->bytes;

	b->all += bytes;
	b->token += t->experts ? bytes / t->experts * s->experts_used : bytes;
}

struct split_bytes split_layer_bytes(const struct model_spec *s, uint32_t layer)
{
	struct split_bytes b = { 0, 0 };

	for (int i = 0; i < MATRIX_SLOTS; i++)
		add_tensor(&b, s, &s->layer[layer].matrix[i]);
	return b;
}

/* Of embeddings a token reads a row. */
struct split_bytes split_ends_bytes(const struct model_spec *s)
{
	const struct model_tensor *rows[] = { &s->embed, &s->input_embed, &s->pos_embed, &s->type_embed };
	const struct model_tensor *head = s->tied ? &s->embed : &s->lm_head;
	struct split_bytes b = { 0, 0 };

	add_tensor(&b, s, head);
	add_tensor(&b, s, &s->input_proj);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		b.all += rows[i] == head ? 0 : rows[i]->bytes;
	return b;
}

bool split_may_cut(const struct model_spec *s, uint32_t layer)
{
	for (uint32_t i = layer; i < s->layers; i++)
		if (model_sizes_of(s, i).kv_layer < layer)
			return false;
	return true;
}

/* ---- in proportion */

/* min[r][n]: of layers 0 .. n - 1 on ranks 0 .. r, the bytes of the rank that reads most, at best. */
struct proportion {
	uint64_t *before; /* bytes of the layers before */
	uint64_t *min;    /* [ranks][layers + 1] */
	uint32_t *from;   /* [ranks][layers + 1]: where the last rank's range then begins */
};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void fill(const struct proportion *p, const struct model_spec *s, unsigned ranks)
{
	const uint64_t ends = split_ends_bytes(s).token;
	const uint32_t row = s->layers + 1;

	for (uint32_t n = 0; n < row; n++) {
		p->min[n] = n ? p->before[n] + ends : UINT64_MAX;
		p->from[n] = 0;
	}
	for (unsigned r = 1; r < ranks; r++)
		for (uint32_t n = 0; n < row; n++) {
			uint64_t *best = &p->min[r * row + n];
			*best = UINT64_MAX;
			for (uint32_t at = r; at < n; at++) {
				const uint64_t larger_of =
					larger(p->min[(r - 1) * row + at], p->before[n] - p->before[at]);
				if (larger_of < *best && split_may_cut(s, at)) {
					*best = larger_of;
					p->from[r * row + n] = at;
				}
			}
		}
}

static bool in_proportion(const struct model_spec *s, unsigned ranks, struct split_range *range, struct error *err)
{
	const uint32_t row = s->layers + 1;
	struct proportion p = { .before = calloc(row, sizeof *p.before),
		                .min = calloc((size_t)ranks * row, sizeof *p.min),
		                .from = calloc((size_t)ranks * row, sizeof *p.from) };
	bool ok = (p.before && p.min && p.from) ||
	          error_set(err, ERROR_MEMORY, "no memory to split %u layers", s->layers);

	for (uint32_t i = 0; ok && i < s->layers; i++)
		p.before[i + 1] = p.before[i] + split_layer_bytes(s, i).token;
	if (ok)
		fill(&p, s, ranks);
	if (ok && p.min[(size_t)ranks * row - 1] == UINT64_MAX)
		ok = error_set(err, ERROR_ARGUMENT,
		               "ranks: %u are too many for a model of %u layers, of which each rank needs one and some "
		               "stay together",
		               ranks, s->layers);
	for (uint32_t r = ranks, end = s->layers; ok && r-- > 0; end = range[r].first)
		range[r] = (struct split_range){ p.from[r * row + end], end };
	free(p.before);
	free(p.min);
	free(p.from);
	return ok;
}

/* ---- given */

static bool given(const struct model_spec *s, unsigned ranks, const char *counts, struct split_range *range,
                  struct error *err)
{
	const char *at = counts;
	uint64_t sum = 0;
	unsigned n = 0;

	for (; *at && n < ranks; n++) {
		char *end;
		const unsigned long layers = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
		if (layers < 1 || layers > s->layers || (*end && *end != ','))
			return error_set(err, ERROR_ARGUMENT,
			                 "split: \"%.64s\" has no number of layers from 1 to %u for rank %u", counts,
			                 s->layers, n);
		range[n] = (struct split_range){ (uint32_t)sum, (uint32_t)(sum + layers) };
		sum += layers;
		at = *end ? end + 1 : end;
	}
	if (*at || n != ranks || sum != s->layers)
		return error_set(err, ERROR_ARGUMENT,
		                 "split: \"%.64s\" does not share out %u layers to %u ranks: expected as many numbers, "
		                 "with that sum",
		                 counts, s->layers, ranks);
	for (unsigned r = 1; r < ranks; r++)
		if (!split_may_cut(s, range[r].first))
			return error_set(err, ERROR_ARGUMENT,
			                 "split: rank %u cannot begin with layer %u: a layer from there on attends to "
			                 "what one before it keeps",
			                 r, range[r].first);
	return true;
}

/* ---- by rows */

enum { SHARE_MAX = 1000 };

bool split_rows(unsigned ranks, const char *split, bool *rows, struct cut_shares *shares, struct error *err)
{
	static const char name[] = "rows";
	const char *at = split ? split + sizeof name - 1 : NULL;
	uint64_t all = 0;
	unsigned n = 0;

	*shares = (struct cut_shares){ .ranks = ranks };
	*rows = split && strncmp(split, name, sizeof name - 1) == 0 && (*at == 0 || *at == ':');
	if (!*rows)
		return true;
	for (unsigned r = 0; *at == 0 && r < ranks; r++)
		shares->share[r] = 1;
	if (*at == 0)
		return true;
	for (at++; n < ranks; n++) {
		char *end = NULL;
		const unsigned long share = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : SHARE_MAX + 1;
		if (share > SHARE_MAX || (*end && *end != ','))
			return error_set(err, ERROR_ARGUMENT, "split: \"%.64s\" has no share from 0 to %d for rank %u",
			                 split, SHARE_MAX, n);
		shares->share[n] = (uint32_t)share;
		all += share;
		at = *end ? end + 1 : end;
	}
	return (!*at && all) ||
	       error_set(err, ERROR_ARGUMENT,
	                 "split: \"%.64s\" does not say the shares of %u ranks: expected as many "
	                 "numbers, not all of them 0",
	                 split, ranks);
}

bool split_layers(const struct model_spec *s, unsigned ranks, const char *split,
                  struct split_range range[CARRIER_RANKS_MAX], struct error *err)
{
	static const char name[] = "pipeline";
	const size_t n = sizeof name - 1;

	if (!split || strcmp(split, name) == 0)
		return in_proportion(s, ranks, range, err);
	if (strncmp(split, name, n) == 0 && split[n] == ':')
		return given(s, ranks, split + n + 1, range, err);
	if (strcmp(split, "auto") == 0) /* who opens a model has chosen by now */
		return error_set(err, ERROR_ARGUMENT,
		                 "split: auto measures the ranks, which are not there; expected pipeline or rows");
	return error_set(err, ERROR_ARGUMENT,
	                 "split: \"%.64s\" is not known; expected pipeline, pipeline:12,16 with the layers of each "
	                 "rank, rows, rows:1,7 with their shares, or auto",
	                 split);
}
