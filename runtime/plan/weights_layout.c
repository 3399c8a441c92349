/* runtime/plan/weights_layout.c - a number for the way a model's weights lie packed, so that what was packed once is
 * never read another way.
 *
 * Owns: what goes into the number: the place, size and name of every matrix and vector, and what packing makes of the
 * same bytes in each format. So it changes when the code that packs does, without anybody having to remember it. Other
 * changes to what is stored raise CONTAINER_VERSION.
 */
#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/plan/weights.h"

/* Widths that all formats have, and that are and are not multiples of what the layouts group. */
static const uint64_t width[] = { 256, 768 };
enum { WIDTHS = sizeof width / sizeof *width, WIDEST = 768 };

static void put(uint64_t *sum, const void *bytes, size_t n) { *sum = record_checksum(bytes, n, *sum); }

static void put_number(uint64_t *sum, uint64_t v)
{
	uint8_t bytes[8];

	record_put64(bytes, v);
	put(sum, bytes, sizeof bytes);
}

/* Bytes without a pattern, but for the highest bit: then no number is NaN or negative in any format. */
static void fill(uint8_t *p, size_t n)
{
	uint32_t state = 12345;

	for (size_t i = 0; i < n; i++) {
		state = state * 1664525 + 1013904223;
		p[i] = (uint8_t)(state >> 24 & 0x3f);
	}
}

bool weights_format_id(enum dtype t, enum weight_layout layout, uint64_t *id, struct error *err)
{
	const size_t row_bytes = (size_t)dtype_row_bytes(t, WIDEST);
	uint8_t *rows = malloc(32 * row_bytes), *packed = malloc(weight_block_bytes(t, layout, WIDEST));
	const void *row[32];
	bool ok = (rows && packed) || error_set(err, ERROR_MEMORY, "no memory to look at the layout of weights");

	*id = 0;
	if (ok)
		fill(rows, 32 * row_bytes);
	for (int w = 0; ok && w < WIDTHS; w++) {
		size_t bytes = (size_t)weight_block_bytes(t, layout, width[w]);
		for (int r = 0; r < 32; r++) /* the last one is missing in one of them */
			row[r] = w == 0 && r == 31 ? NULL : rows + (size_t)r * row_bytes;
		memset(packed, 0, bytes);
		weight_pack_block(t, layout, packed, row, width[w]);
		put(id, packed, bytes);
	}
	free(rows);
	free(packed);
	return ok;
}

static void put_tensor(uint64_t *sum, const struct model_tensor *t, uint64_t at)
{
	put(sum, t->name, strlen(t->name));
	put_number(sum, t->type);
	put_number(sum, t->rows);
	put_number(sum, t->cols);
	put_number(sum, t->rope_dims);
	put_number(sum, t->rope_pairs);
	put_number(sum, t->plus_one);
	if (t->head_rows || t->minus_exp) {
		put_number(sum, t->head_rows);
		put_number(sum, t->head_first);
		put_number(sum, t->minus_exp);
	}
	for (unsigned i = 0; t->by_key && i < 3; i++) {
		put_number(sum, t->section[i].rows);
		put_number(sum, t->section[i].first);
	}
	if (t->rope_head || t->heads || t->own_file_rows) {
		const uint32_t more[] = { t->rope_head,
			                  t->rope_skip,
			                  t->heads,
			                  t->own_rows,
			                  t->own_file_rows,
			                  t->own_first,
			                  t->transposed + 2u * t->own_apart };
		for (size_t i = 0; i < sizeof more / sizeof *more; i++)
			put_number(sum, more[i]);
	}
	put_number(sum, at);
	if (t->times != 0)
		put(sum, &t->times, sizeof t->times);
	if (t->by_channel)
		put_number(sum, t->by_channel);
	if (t->each_times)
		put(sum, t->each_times, t->cols * sizeof *t->each_times);
	if (t->experts)
		put_number(sum, t->experts);
}

static bool put_matrices(uint64_t *sum, const struct weights_entry *e, size_t n, enum weight_layout layout,
                         struct error *err)
{
	bool used[DTYPE_COUNT] = { false };
	uint64_t id;

	for (size_t i = 0; i < n; i++) {
		put_tensor(sum, e[i].tensor, e[i].at);
		put_number(sum, e[i].stride);
		used[e[i].tensor->type] = true;
	}
	for (int t = 0; t < DTYPE_COUNT; t++) {
		if (!used[t])
			continue;
		if (!weights_format_id((enum dtype)t, layout, &id, err))
			return false;
		put_number(sum, id);
	}
	return true;
}

static void put_vectors(uint64_t *sum, const struct model_spec *s)
{
	const struct model_tensor *const outside[] = {
#define X(name) &s->name,
		WEIGHTS_VECTORS_EACH(X)
#undef X
	};

	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		if (outside[i]->bytes)
			put_tensor(sum, outside[i], 0);
	if (weights_bias_count(s)) {
		put_number(sum, weights_bias_reach(s));
		put(sum, &s->alibi, sizeof s->alibi);
		put_number(sum, s->buckets);
	}
	for (uint32_t i = 0; i < s->layers; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++)
			if (s->layer[i].vector[v].bytes)
				put_tensor(sum, &s->layer[i].vector[v], numerics_pad(s->layer[i].vector[v].cols));
}

bool weights_layout(const struct model_spec *s, enum weight_layout layout, struct weights_layout *out,
                    struct error *err)
{
	struct weights w = { 0 };
	struct weights_entry *e = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);
	bool ok = weights_allocate(&w, s, err) &&
	          (e || error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", s->layers));

	*out = (struct weights_layout){ 0 };
	if (ok) {
		size_t n = weights_list(e, s, &w);
		ok = weights_check_types(e, n, err);
		out->matrix_bytes = ok ? weights_lay(e, n, layout) : 0;
		if (ok)
			weights_point(&w, s, e, n, NULL);
		out->token_bytes = w.token_bytes;
		out->vector_bytes = weights_point_vectors(&w, s, NULL) * sizeof(float);
		ok = ok && put_matrices(&out->id, e, n, layout, err);
		put_vectors(&out->id, s);
	}
	free(e);
	weights_close(&w);
	return ok;
}
