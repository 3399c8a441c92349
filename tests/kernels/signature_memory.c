/* tests/kernels/signature_memory.c - the arguments of a trial's launch: how much memory each needs by its row, and
 * numbers in it that the kernel can compute with. See signature_trial.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/plain_quants.h"
#include "tests/kernels/signature_state.h"

enum { SLACK = 256, WEIGHTS_SLACK = 512, NOWHERE_AT = 0x5e0 };

static uint64_t random_state = 12345;

void trial_seed(uint64_t seed) { random_state = 12345 + seed * 0x9e3779b97f4a7c15u; }

uint32_t trial_draw(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return n ? (uint32_t)(random_state >> 33) % n : 0;
}

uint64_t trial_count(const struct state *s, struct kernel_use use, const struct kernel_span *span)
{
	if (span->count)
		return span->count;
	return !(use.access & KERNEL_SOME) ? 0 : use.layout == KERNEL_STACK ? s->t->matrices : s->t->rows;
}

/* Behind the last byte that any unit may touch. */
static uint64_t bytes_of(const struct state *s, unsigned slot)
{
	uint64_t end = 0;

	for (int64_t u = 0; u < s->t->units; u++) {
		const struct kernel_use use = kernel_unit(&s->t->key, s->arg, slot, u);
		for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
			const struct kernel_span *p = &use.span[i];
			const uint64_t n = trial_count(s, use, p),
				       last = n ? p->at + (n - 1) * p->stride + p->bytes : 0;
			end = last > end ? last : end;
		}
	}
	return end;
}

/* ---- memory and what lies in it */

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static unsigned make_area(struct state *s, const char *name, uint64_t bytes, unsigned slack)
{
	struct area *a = &s->area[s->areas];

	*a = (struct area){ .bytes = bytes, .room = bytes + slack, .name = name };
	a->memory = must(aligned_alloc(64, (a->room + 2 * TRIAL_GUARD + 63) & ~63ull));
	a->at = a->memory + TRIAL_GUARD;
	a->begun = must(malloc(a->room));
	a->result = must(malloc(a->room));
	a->says = must(calloc(a->room, 1));
	a->did = must(calloc(a->room, 1));
	for (uint64_t i = 0; i < a->room; i++)
		a->begun[i] = (uint8_t)trial_draw(256);
	return s->areas++;
}

void trial_free(struct state *s)
{
	for (unsigned i = 0; i < s->areas; i++) {
		struct area *a = &s->area[i];
		free(a->memory);
		free(a->begun);
		free(a->result);
		free(a->says);
		free(a->did);
	}
}

static void put32(uint8_t *at, uint32_t v) { memcpy(at, &v, 4); }

static uint32_t random_float(void)
{
	const float f = ((float)trial_draw(1 << 20) - (1 << 19)) / (1 << 19);
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static void fill_floats(uint8_t *at, uint64_t bytes)
{
	for (uint64_t i = 0; i + 4 <= bytes; i += 4)
		put32(at + i, random_float());
}

/* Small numbers, as f16 and as bf16. */
static void fill_halves(uint8_t *at, uint64_t bytes)
{
	for (uint64_t i = 0; i + 2 <= bytes; i += 2) {
		at[i] = (uint8_t)trial_draw(256);
		at[i + 1] = (uint8_t)(0x38 + trial_draw(7) + 128 * trial_draw(2));
	}
}

static void fill_blocks(uint8_t *at, uint64_t bytes)
{
	for (uint64_t i = 0; i + 16 <= bytes; i += 16) {
		put32(at + i, random_float() & 0x7fffffff);
		put32(at + i + 4, random_float());
		put32(at + i + 8, trial_draw(4000) - 2000);
		put32(at + i + 12, trial_draw(4000) - 2000);
	}
}

/* Whole blocks of 32 rows; two matrices alternate in the same memory. */
static void fill_weights(uint8_t *at, uint64_t bytes, const struct key *k)
{
	const enum dtype type = key_dtype(k->weight);
	const enum weight_layout layout = weight_layout_of(&target_table[k->target]);
	const uint64_t row_bytes = dtype_row_bytes(type, k->k), block = weight_block_bytes(type, layout, k->k);
	uint8_t *rows = must(malloc(32 * row_bytes + 1));
	const void *row[32];

	for (uint64_t i = 0; i + block <= bytes; i += block) {
		if (dtype_table[type].block > 1)
			plain_random_rows(rows, type, 32, k->k, trial_draw);
		else if (type == DTYPE_F32)
			fill_floats(rows, 32 * row_bytes);
		else
			fill_halves(rows, 32 * row_bytes);
		for (unsigned r = 0; r < 32; r++)
			row[r] = rows + r * row_bytes;
		weight_pack_block(type, layout, at + i, row, k->k);
	}
	free(rows);
}

static void fill_cached(uint8_t *at, uint64_t bytes, const struct key *k)
{
	if (k->kv == key_type(DTYPE_F16))
		fill_halves(at, bytes);
	else /* of int8, any bytes are quants, and these words are scales */
		fill_floats(at, bytes);
}

/* Numbers of rows or matrices, each below `chosen`; a permutation where each is to be met once. */
static void fill_numbers(uint8_t *at, uint64_t bytes, uint64_t below)
{
	for (uint64_t i = 0; i + 4 <= bytes; i += 4)
		put32(at + i, trial_draw((uint32_t)below));
}

static void fill_positions(uint8_t *at, uint64_t tokens, uint64_t heads)
{
	const uint32_t round = trial_draw((uint32_t)(tokens * heads));

	for (uint64_t i = 0; i < tokens * heads; i++)
		put32(at + i / heads * ROUTE_MAX * 4 + i % heads * 4,
		      (uint32_t)((tokens * heads - 1 - i + round) % (tokens * heads)));
}

/* Groups of random sizes, which have all columns together; empty ones behind them. */
static void fill_groups(uint8_t *at, const struct trial *t)
{
	struct route_group g = { 0 };

	for (uint64_t i = 0; i < t->groups; i++) {
		const uint64_t left = t->rows - (uint64_t)g.first - (uint64_t)g.columns;
		g = (struct route_group){ (int32_t)trial_draw((uint32_t)t->matrices), g.first + g.columns,
			                  (int32_t)(i + 1 == t->groups ? left : trial_draw((uint32_t)left + 1)), 0 };
		memcpy(at + i * sizeof g, &g, sizeof g);
	}
}

/* Three adapters: one of all ranks that there may be, and two that may stand together. Some tiles have none. */
static void fill_adapters(uint8_t *at, unsigned slot, const struct trial *t)
{
	static const int32_t member[][2] = { { 0, 0 }, { 1, 2 }, { 2, 0 } };
	const uint32_t ranks = t->key.kind == KEY_ADAPT_DOWN ? t->key.rows : t->key.k;
	uint64_t first = 0;

	for (uint64_t i = 0; slot == ADAPT_TILES && i < t->groups; i++) {
		const uint64_t left = t->columns - first, max = left < ADAPT_TILE ? left : ADAPT_TILE,
			       n = i ? trial_draw((uint32_t)max + 1) : max;
		const uint32_t set = trial_draw(8); /* that with all ranks most often */
		const struct adapt_tile tile = { (int32_t)first, (int32_t)n, (int32_t)(set < 4 ? set : 1), 0 };
		memcpy(at + i * sizeof tile, &tile, sizeof tile);
		first += n;
	}
	for (unsigned i = 0; slot == ADAPT_SET && i < 4; i++) {
		struct adapt_set set = { .n = i == 2 ? 2 : i > 0 };
		for (int j = 0; j < set.n; j++) {
			set.of[j].adapter = member[i - 1][j];
			set.of[j].scale = 0.5f;
		}
		memcpy(at + i * sizeof set, &set, sizeof set);
	}
	for (unsigned i = 0; slot == ADAPT_FACTS && i < 3; i++) {
		const struct adapt_fact fact = { .rank = (int32_t)(i ? ranks / 8 * 4 : ranks),
			                         .scale = 2,
			                         .type = (int32_t)(trial_draw(2) * trial_draw(ADAPT_TYPES)),
			                         .extras = t->key.flags & KEY_SCALED ? (int32_t)(3 - i) : 0 };
		memcpy(at + i * sizeof fact, &fact, sizeof fact);
	}
}

static void fill_routes(struct state *s, unsigned slot, uint8_t *at, uint64_t bytes)
{
	const struct trial *t = s->t;
	const struct key *k = &t->key;

	if (k->kind == KEY_MATMUL && k->tile_n > 1)
		fill_groups(at, t);
	else if (k->kind == KEY_MATMUL)
		fill_numbers(at, bytes, t->matrices);
	else if (k->kind == KEY_DISPATCH)
		fill_numbers(at, bytes, k->rows);
	else if ((k->kind == KEY_SCATTER && slot == SCATTER_POSITIONS) ||
	         (k->kind == KEY_COMBINE && slot == COMBINE_POSITIONS))
		fill_positions(at, t->columns, k->heads);
	else
		fill_floats(at, bytes);
}

static void fill(struct state *s, unsigned slot, struct kernel_use use, uint8_t *at, uint64_t bytes)
{
	const struct key *k = &s->t->key;

	if ((k->kind == KEY_ADAPT_DOWN || k->kind == KEY_ADAPT_UP) && use.type != KERNEL_F32) {
		fill_adapters(at, slot, s->t);
		return;
	}
	switch ((enum kernel_type)use.type) {
	case KERNEL_HALF: fill_halves(at, bytes); break;
	case KERNEL_BLOCK: fill_blocks(at, bytes); break;
	case KERNEL_WEIGHT: fill_weights(at, bytes, k); break;
	case KERNEL_INT8:
		for (uint64_t i = 0; i < bytes; i++)
			at[i] = (uint8_t)(trial_draw(255) - 127);
		break;
	case KERNEL_GROUP: fill_routes(s, slot, at, bytes); break;
	case KERNEL_I32:
		if (use.layout == KERNEL_ROUTES)
			fill_routes(s, slot, at, bytes);
		else
			fill_numbers(at, bytes, k->rows);
		break;
	default: fill_floats(at, bytes); break;
	}
}

/* ---- the launch's slots */

static uint64_t float_value(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static uint64_t value_of(const struct trial *t, unsigned slot, struct kernel_use use)
{
	switch ((enum kernel_layout)use.layout) {
	case KERNEL_COLUMNS: return t->columns;
	case KERNEL_TILES: return t->tiles;
	case KERNEL_POSITION: return t->position;
	default: break;
	}
	if (t->key.kind == KEY_ATTENTION && slot == ATTENTION_REACH)
		return numerics_pad(t->columns) + 128;
	if (use.type == KERNEL_F32)
		return float_value(t->key.kind == KEY_SCAN && slot == SCAN_CEILING ? 4 : 0.03125f);
	return t->key.kind == KEY_DISPATCH ? t->groups : t->window;
}

static void make_pages(struct state *s, uint64_t bytes)
{
	s->first_page = s->areas;
	s->pages = (s->t->position + (s->t->columns ? s->t->columns : 1) - 1) / NUMERICS_CHUNK + 1;
	for (uint64_t i = 0; i < s->pages; i++) {
		unsigned page = make_area(s, "the cache", bytes, SLACK);
		fill_cached(s->area[page].begun, bytes, &s->t->key);
	}
}

/* Where each head's keys, then its values, lie in a page. */
static uint64_t offset_in_page(struct state *s)
{
	uint64_t bytes = 64;

	for (unsigned i = 0; i < s->args; i++) {
		const struct kernel_use use = kernel_use(&s->t->key, i);
		if (use.layout != KERNEL_PAGES || !use.access)
			continue;
		s->arg[i] = bytes;
		bytes += bytes_of(s, i) + 192;
	}
	return bytes;
}

static void fill_table(struct state *s, struct area *a)
{
	for (uint64_t i = 0; (i + 1) * 8 <= a->bytes; i++) {
		const uint64_t page = i < s->pages ? (uint64_t)(uintptr_t)s->area[s->first_page + i].at : NOWHERE_AT;
		memcpy(a->begun + i * 8, &page, 8);
	}
}

static void make_slot(struct state *s, unsigned slot)
{
	const struct trial *t = s->t;
	const struct kernel_use use = kernel_use(&t->key, slot);

	if (!(use.access & KERNEL_UPDATE) || use.layout == KERNEL_PAGES)
		return;
	uint64_t bytes = bytes_of(s, slot);
	if (t->key.kind == KEY_MATMUL && slot == MATMUL_W2) { /* the same stream */
		s->arg[slot] = s->arg[MATMUL_W] +
		               weight_block_bytes(key_dtype(t->key.weight), weight_layout_of(t->target), t->key.k);
		return;
	}
	if (t->key.kind == KEY_MATMUL && slot == MATMUL_W && t->key.flags & KEY_PAIR)
		bytes += weight_block_bytes(key_dtype(t->key.weight), weight_layout_of(t->target), t->key.k);
	struct area *a = &s->area[make_area(s, kernel_arg(&t->key, slot)->name, bytes,
	                                    use.type == KERNEL_WEIGHT ? WEIGHTS_SLACK : SLACK)];
	s->arg[slot] = (uint64_t)(uintptr_t)a->at;
	if (use.layout == KERNEL_TABLE)
		fill_table(s, a);
	else
		fill(s, slot, use, a->begun, bytes);
}

void trial_make_launch(struct state *s)
{
	const struct trial *t = s->t;

	s->args = template_args(&t->key);
	for (unsigned i = 0; i < s->args; i++) {
		const struct kernel_use use = kernel_use(&t->key, i);
		s->arg[i] = use.access & KERNEL_VALUE ? value_of(t, i, use) : NOWHERE_AT;
	}
	if (kernel_slot(&t->key, KERNEL_PAGES) < s->args)
		make_pages(s, offset_in_page(s));
	for (unsigned i = 0; i < s->args; i++)
		make_slot(s, i);
}
