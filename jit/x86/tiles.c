/* jit/x86/tiles.c - which of the eight tile registers a kernel's products of matrices use, and how they are set up.
 *
 * Owns: the layout that ldtilecfg reads (Intel SDM, volume 1, chapter 18) and the roles of the registers. A tile's rows
 * and bytes a row are set once for a kernel, so a kernel has products of few shapes. Writes no instruction: emit.c
 * does.
 */
#include "jit/x86/select.h"

#include <string.h>

#include "jit/ir/ir.h"

enum { LINE = 64, PALETTE = 1, BYTES_AT = 16, ROWS_AT = 48 };

/* Second factors are alike in all shapes. With one shape alone, products alternate between two sets of the others: one
 * need not wait for the sums of the last to be stored. */
static const struct x86_tiles sets[LIR_TILE_SHAPES] = { { .sum = { 0, 1 }, .x = 2, .w = { 6, 7 } },
	                                                { .sum = { 3, 4 }, .x = 5, .w = { 6, 7 } } };

struct x86_tiles x86_tiles_of(const struct lir_tiles *t, int64_t imm, unsigned number)
{
	return sets[t->rows[1] ? t->rows[1] == lir_dots_rows(imm) : number % LIR_TILE_SHAPES];
}

static void shape(uint8_t config[LINE], unsigned tile, unsigned rows, unsigned bytes)
{
	config[BYTES_AT + 2 * tile] = (uint8_t)bytes;
	config[ROWS_AT + tile] = (uint8_t)rows;
}

static void write_config(struct lir *l)
{
	uint8_t config[LINE] = { PALETTE };
	uint32_t word[LINE / 4];

	for (unsigned s = 0; s < LIR_TILE_SHAPES; s++) {
		unsigned rows = l->tiles.rows[s] ? l->tiles.rows[s] : l->tiles.rows[0];
		for (unsigned half = 0; half < 2; half++) {
			shape(config, sets[s].sum[half], rows, LINE);
			shape(config, sets[s].w[half], IR_DOTS_STRIP / 4, LINE);
		}
		shape(config, sets[s].x, rows, IR_DOTS_STRIP);
	}
	memcpy(word, config, LINE);
	l->tiles.config = lir_pool(l, word);
}

static bool take(struct lir_tiles *t, unsigned rows)
{
	unsigned s = 0;

	while (s < LIR_TILE_SHAPES && t->rows[s] && t->rows[s] != rows)
		s++;
	if (s < LIR_TILE_SHAPES)
		t->rows[s] = (uint8_t)rows;
	return s < LIR_TILE_SHAPES;
}

bool x86_tiles_set_up(struct lir *l, struct error *err)
{
	for (size_t n = 0; n < l->n_ins; n++)
		if (l->ins[n].form == LIR_DOTS && !take(&l->tiles, lir_dots_rows(l->ins[n].imm)))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "the kernel multiplies matrices of %u rows beside others, expected at most %d "
			                 "numbers of rows",
			                 lir_dots_rows(l->ins[n].imm), LIR_TILE_SHAPES);
	if (l->tiles.rows[0])
		write_config(l);
	return true;
}
