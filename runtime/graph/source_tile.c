/* runtime/graph/source_tile.c - see source_tile.h. */
#include "runtime/graph/source_tile.h"

#include <inttypes.h>
#include <string.h>

static int wide_of(const struct source *s, const struct tile *t)
{
	return tensor_wide_type(s->g->value[t->n->first].type);
}

/* ---- shapes */

enum {
	ROWS_MAX = 14,
	VECTORS_MAX = 8,
	CHAINS = 8, /* that keep a core's multipliers busy */
	AT_WORK = 1 /* registers beside sums and columns: an element of a row */
};

/* Cycles of the multipliers that a row of tiles takes for an element of the depth, in hundredths. */
static uint64_t cycles(uint64_t rows, unsigned j)
{
	const uint64_t products = rows * j < CHAINS ? CHAINS : rows * j;

	return rows ? products * 100 + rows * 30 + j * 100 : 0;
}

uint64_t tile_choose(struct tile *t, uint64_t vectors, int wide)
{
	const unsigned wides = tensor_type_bytes(wide) == 8 ? 2 : 1, sums = (t->lanes >= 16 ? 28u : 12u) / wides,
		       registers = (t->lanes >= 16 ? 32u : 16u) / wides - AT_WORK;
	uint64_t min = UINT64_MAX;

	t->apart = 1;
	t->step = t->lanes;
	for (unsigned j = 1; j <= VECTORS_MAX && j <= sums && (j == 1 || j <= vectors); j++)
		for (unsigned r = 1; r <= ROWS_MAX && r * j <= sums && r * j + j <= registers && r <= t->rows; r++) {
			const uint64_t cost =
				(vectors + j - 1) / j * (t->rows / r * cycles(r, j) + cycles(t->rows % r, j));
			if (cost < min) {
				min = cost;
				t->r = r;
				t->j = j;
			}
		}
	return min;
}

void tile_choose_on_card(struct tile *t, int wide)
{
	enum { LANES = 32, ROWS = 16, COLUMNS = 4, SUMS_MIN = 4, WARPS = 2048 /* that keep a large card busy */ };

	t->lanes = LANES;
	t->r = tensor_type_bytes(wide) == 8 ? ROWS / 4 : ROWS;
	t->j = COLUMNS;
	while (t->r > t->rows)
		t->r /= 2;
	while (t->j > 1 && (uint64_t)(t->j / 2) * LANES >= t->columns)
		t->j /= 2;
	while (t->r * t->j > SUMS_MIN && t->batches * tile_row_blocks(t) * tile_column_blocks(t) < WARPS) {
		if (t->r > 2)
			t->r /= 2;
		else
			t->j /= 2;
	}
	t->apart = t->j;
	t->step = 1;
	if (t->j == COLUMNS && t->columns <= (COLUMNS - 1) * LANES) { /* neighbours would not be loaded at once */
		t->j--;
		t->apart = 1;
		t->step = LANES;
	}
}

/* ---- the kernel */

static const char *plus(struct source *s, const char *a, const char *b)
{
	return !a || strcmp(a, "0") == 0 ? b : strcmp(b, "0") == 0 ? a : source_text(s, "%s + %s", a, b);
}

static const char *element(struct source *s, const struct tile_side *side, const char *base, uint64_t number)
{
	const uint64_t more = number * side->step;

	return source_text(s, "%s[%s + %" PRIu64 "]", side->array, plus(s, base, side->depth), more);
}

/* What an element of the depth adds to the sums. */
static void products(struct source *s, const struct tile *t, uint64_t rows, const char *x, const char *y)
{
	const int wide = wide_of(s, t);
	const char *type = tensor_type_name(wide);

	for (unsigned j = 0; j < t->j; j++)
		source_line(s, "%s y%u = %s;", type, j,
		            element(s, &t->column, source_text(s, "%s + n * %u", y, t->apart), j));
	for (uint64_t r = 0; r < rows; r++) {
		source_line(s, "%s x%" PRIu64 " = %s;", type, r, element(s, &t->row, x, r));
		for (unsigned j = 0; j < t->j; j++)
			source_line(s,
			            tensor_is_float(wide) ? "s%" PRIu64 "_%u = fma(x%" PRIu64 ", y%u, s%" PRIu64 "_%u);"
			                                  : "s%" PRIu64 "_%u = x%" PRIu64 " * y%u + s%" PRIu64 "_%u;",
			            r, j, r, j, r, j);
	}
}

static void store(struct source *s, const struct tile *t, uint64_t rows, const char *block)
{
	const char *at[VECTORS_MAX];

	for (unsigned j = 0; j < t->j; j++)
		at[j] = t->subscript(s, t, j);
	for (uint64_t r = 0; r < rows; r++) {
		const char *row = source_local(s, "i32", source_text(s, "%s * %u + %" PRIu64, block, t->r, r));
		for (unsigned j = 0; j < t->j; j++) {
			const char *sum = source_text(s, "s%" PRIu64 "_%u", r, j), *subscripts;
			if (s->end != t->n)
				sum = source_finished(s, sum, t->position(s, t, row, j));
			subscripts = t->transposed ? source_text(s, "%s[%s]", at[j], row)
			                           : source_text(s, "[%s]%s", row, at[j]);
			source_line(s, "scatter_distinct(o[%s]%s, %s);", t->batch, subscripts, sum);
		}
	}
}

static const char *subscript_in_line(struct source *s, const struct tile *t, unsigned j)
{
	return source_text(s, "[p * %" PRIu64 " + n * %u + %u]", tile_width(t), t->apart, j * t->step);
}

void tile_in_line(struct source *s, struct tile *t)
{
	t->indices = source_text(s, "b in %" PRIu64 ", p in %" PRIu64, t->batches, tile_column_blocks(t));
	t->batch = "b";
	t->subscript = subscript_in_line;
}

/* Tiles of so many rows; block: which, as a text. */
static void tiles(struct source *s, const struct tile *t, uint64_t rows, const char *block)
{
	const int wide = wide_of(s, t);
	const char *zero = source_number(s, wide, 0);

	source_forget(s);
	for (uint64_t r = 0; r < rows; r++)
		for (unsigned j = 0; j < t->j; j++)
			source_line(s, "%s s%" PRIu64 "_%u = %s;", tensor_type_name(wide), r, j, zero);
	const char *m = source_local(s, "i32", block);
	const char *x = source_local(s, "i32", plus(s, t->row.base, source_text(s, "%s * %" PRIu64, m, t->row.block))),
		   *y = source_local(s, "i32", t->column.base);
	for (unsigned i = 0; i < t->loops; i++)
		source_line(s, "%s {", t->loop[i]);
	products(s, t, rows, x, y);
	for (unsigned i = 0; i < t->loops; i++)
		source_line(s, "}");
	source_forget(s);
	store(s, t, rows, m);
	source_forget(s);
}

void tile_write(struct source *s, const struct tile *t)
{
	const uint64_t full = t->rows / t->r, rest = t->rows % t->r;

	bytes_print(&s->head, "%s, m in %" PRIu64 ", n in %u", t->indices, tile_row_blocks(t), t->lanes);
	if (!rest) {
		tiles(s, t, t->r, "m");
		return;
	}
	source_line(s, "if (m < %" PRIu64 ") {", full);
	tiles(s, t, t->r, source_text(s, "min(m, %" PRIu64 ")", full - 1));
	source_line(s, "} else {");
	tiles(s, t, rest, source_text(s, "%" PRIu64, full));
	source_line(s, "}");
}
