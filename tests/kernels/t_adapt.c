/* tests/kernels/t_adapt.c - the kernels of adapters against plain loops, bit for bit, on every target: random sets of
 * adapters of all types and ranks, tiles of all widths, and one kernel for all of them (numerics.h rule 19). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/kernels/kernel_run.h"
#include "tests/support/shared.h"

enum { ADAPTERS = 5, SETS = 4, COLUMNS = 21, RANKS = 48 };

/* What a launch works on: the tables as kernels see them, and the numbers as floats. */
struct world {
	unsigned k, rows;
	struct adapt_tile *tile;
	struct adapt_set *set;
	struct adapt_fact *fact;
	uint64_t *down, *up;
	unsigned tiles;
	uint8_t *memory; /* of all matrices */
	size_t used;
	float *a[ADAPTERS], *b[ADAPTERS], *extra[ADAPTERS], *x, *narrow, *out, *want_narrow, *want;
	bool scaled; /* the second kernel makes factors, too */
};

static uint64_t seed = 1;
static uint64_t at(const void *p) { return (uint64_t)(uintptr_t)p; }
static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}
static unsigned pad(unsigned n) { return (n + 31) / 32 * 32; }

/* As the type holds it, and the number that this is. */
static float put(uint8_t *to, int type, size_t i, float x)
{
	const uint16_t half = type == ADAPT_F16 ? number_to_half(x) : number_to_bf16(x);

	if (type == ADAPT_F32) {
		memcpy(to + 4 * i, &x, 4);
		return x;
	}
	memcpy(to + 2 * i, &half, 2);
	return type == ADAPT_F16 ? number_from_half(half) : number_from_bf16(half);
}

/* Adapter n has nothing for this matrix where its rank is 0. */
static void make_adapter(struct world *w, unsigned n)
{
	static const int ranks[ADAPTERS] = { 4, 16, 0, 8, 12 },
			 extras[ADAPTERS] = { ADAPT_BIAS, 0, 0, ADAPT_DORA | ADAPT_BIAS, ADAPT_DORA };
	const int rank = ranks[n], type = (int)(n % ADAPT_TYPES);
	const unsigned kp = pad(w->k), rp = pad(w->rows);
	const size_t na = (size_t)rank * kp, nb = (size_t)rank * rp, ne = (size_t)ADAPT_EXTRAS * rp;

	w->fact[n] = (struct adapt_fact){
		.rank = rank, .scale = kernel_random(&seed), .type = type, .extras = w->scaled ? extras[n] : 0
	};
	uint8_t *const first = w->memory + w->used, *const second = first + na * 4;

	w->used += (na + nb + ne) * 4;
	w->down[n] = rank ? at(first) : 0;
	w->up[n] = rank ? at(second) : 0;
	w->a[n] = calloc(na + 1, 4);
	w->b[n] = calloc(nb + 1, 4);
	for (int j = 0; j < rank; j++) {
		for (unsigned i = 0; i < w->k; i++)
			w->a[n][(size_t)j * kp + i] = put(first, type, (size_t)j * kp + i, kernel_random(&seed));
		for (unsigned r = 0; r < w->rows; r++)
			w->b[n][(size_t)j * rp + r] =
				put(second, type, (r / 32 * (size_t)rank + (size_t)j) * 32 + r % 32,
			            kernel_random(&seed));
	}
	w->extra[n] = calloc(ne, 4);
	for (size_t i = 0; i < ne; i++) /* [which][row]: norms are of positive numbers */
		w->extra[n][i] = fabsf(kernel_random(&seed)) + (i / rp == ADAPT_NORM ? 99 : 0);
	for (size_t r = 0; r < rp; r++)
		for (size_t e = 0; e < ADAPT_EXTRAS && rank; e++)
			put(second + nb * (type == ADAPT_F32 ? 4 : 2), ADAPT_F32,
			    (r / 32 * ADAPT_EXTRAS + e) * 32 + r % 32, w->extra[n][e * rp + r]);
}

static void make_sets(struct world *w)
{
	static const int members[SETS][4] = { { -1 }, { 1, -1 }, { 0, 2, 4, -1 }, { 4, 3, 1, -1 } };

	for (int s = 0; s < SETS; s++)
		for (int i = 0; members[s][i] >= 0; i++) {
			w->set[s].of[i].adapter = members[s][i];
			w->set[s].of[i].scale = kernel_random(&seed);
			w->set[s].n = i + 1;
		}
	for (unsigned first = 0; first < COLUMNS;) {
		const unsigned left = COLUMNS - first, n = 1 + below(left < ADAPT_TILE ? left : ADAPT_TILE);
		w->tile[w->tiles++] = (struct adapt_tile){ (int32_t)first, (int32_t)n, (int32_t)below(SETS), 0 };
		first += n;
	}
}

static struct world make_world(unsigned k, unsigned rows, bool scaled)
{
	struct world w = { .k = k, .rows = rows, .scaled = scaled };

	w.tile = kernel_buffer(COLUMNS * sizeof *w.tile, 0);
	w.set = kernel_buffer(ADAPT_SETS * sizeof *w.set, 0);
	w.fact = kernel_buffer(ADAPTERS_MOST * sizeof *w.fact, 0);
	w.down = kernel_buffer(ADAPTERS_MOST * 8, 0);
	w.up = kernel_buffer(ADAPTERS_MOST * 8, 0);
	w.memory =
		kernel_buffer((RANKS * (size_t)(pad(k) + pad(rows)) + (size_t)ADAPTERS * ADAPT_EXTRAS * pad(rows)) * 4,
	                      0);
	for (unsigned n = 0; n < ADAPTERS; n++)
		make_adapter(&w, n);
	make_sets(&w);
	w.x = kernel_buffer((size_t)COLUMNS * pad(k) * 4, 0);
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < k; i++)
			w.x[c * pad(k) + i] = kernel_random(&seed);
	w.narrow = kernel_buffer((size_t)COLUMNS * pad(RANKS) * 4, 0);
	w.out = kernel_buffer((size_t)COLUMNS * pad(rows) * 8, 0);
	w.want_narrow = kernel_buffer((size_t)COLUMNS * pad(RANKS) * 4, 0);
	w.want = kernel_buffer((size_t)COLUMNS * pad(rows) * 8, 0);
	return w;
}

static void free_world(struct world *w)
{
	void *all[] = { w->tile,   w->set, w->fact,        w->down, w->up,    w->x,
		        w->narrow, w->out, w->want_narrow, w->want, w->memory };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	for (unsigned n = 0; n < ADAPTERS; n++) {
		free(w->a[n]);
		free(w->b[n]);
		free(w->extra[n]);
	}
}

/* ---- the rule, in plain C */

static float lane_sum(const float *w, const float *x, unsigned n)
{
	float part[32] = { 0 };

	for (unsigned i = 0; i < n; i++)
		part[i % 32] = fmaf(w[i], x[i], part[i % 32]);
	for (unsigned by = 16; by; by /= 2) {
		float sum[32];
		for (unsigned l = 0; l < 32; l++)
			sum[l] = part[l] + part[l ^ by];
		memcpy(part, sum, sizeof part);
	}
	return part[0];
}

static void plain_adapter(const struct world *w, int n, float user, unsigned row, const float *t, int *j, float *sum,
                          float *factor)
{
	const struct adapt_fact *f = &w->fact[n];
	const unsigned rp = pad(w->rows);
	const float *e = w->extra[n];
	float own = f->extras & ADAPT_DORA ? -0.0f : *sum;

	for (int r = 0; r < f->rank; r++)
		own = fmaf(w->b[n][(size_t)r * rp + row], t[(*j)++], own);
	if (f->extras & ADAPT_BIAS)
		own = fmaf(e[ADAPT_BIASES * rp + row], user * f->scale, own);
	if (f->extras & ADAPT_DORA) {
		const float norm = fmaf(user, e[ADAPT_NORM_SQUARE * rp + row], e[ADAPT_NORM_BY * rp + row]);
		const float by = e[ADAPT_MAGNITUDE * rp + row] / sqrtf(fmaf(user, norm, e[ADAPT_NORM * rp + row]));
		*factor = *factor + (by - 1);
		own = fmaf(own, by, *sum);
	}
	*sum = own;
}

static void plain_column(struct world *w, unsigned c, const struct adapt_set *s)
{
	const unsigned kp = pad(w->k), rp = pad(w->rows);
	float *t = w->want_narrow + c * pad(RANKS);
	int j = 0;

	for (int i = 0; i < s->n; i++) {
		const struct adapt_fact *f = &w->fact[s->of[i].adapter];
		const float scale = s->of[i].scale * f->scale;
		for (int r = 0; r < f->rank; r++)
			t[j++] = lane_sum(w->a[s->of[i].adapter] + (size_t)r * kp, w->x + c * kp, kp) * scale;
	}
	for (unsigned row = 0; row < rp; row++) {
		float sum = -0.0f, factor = 1;
		j = 0;
		for (int i = 0; i < s->n; i++)
			plain_adapter(w, s->of[i].adapter, s->of[i].scale, row, t, &j, &sum, &factor);
		if (w->scaled) {
			w->want[(c * rp / 32 + row / 32) * 64 + row % 32] = factor;
			w->want[(c * rp / 32 + row / 32) * 64 + 32 + row % 32] = sum;
		} else {
			w->want[c * rp + row] = sum;
		}
	}
}

static void plain(struct world *w)
{
	for (unsigned i = 0; i < w->tiles; i++)
		for (int c = 0; c < w->tile[i].columns; c++)
			plain_column(w, (unsigned)(w->tile[i].first + c), &w->set[w->tile[i].set]);
}

/* ---- kernels */

static void run(const struct kernel_way *way, const struct world *w, bool up)
{
	const struct key key = { .kind = up ? KEY_ADAPT_UP : KEY_ADAPT_DOWN,
		                 .k = up ? RANKS : w->k,
		                 .rows = up ? w->rows : RANKS,
		                 .flags = up && w->scaled ? KEY_SCALED : 0 };
	const int64_t units = (int64_t)w->tiles * (up ? pad(w->rows) / 32 : ADAPT_PARTS), middle = units / 3;
	const uint64_t arg[ADAPT_ARGS] = {
		[ADAPT_IN] = at(up ? w->narrow : w->x),
		[ADAPT_OUT] = at(up ? w->out : w->narrow),
		[ADAPT_TILES] = at(w->tile),
		[ADAPT_SET] = at(w->set),
		[ADAPT_FACTS] = at(w->fact),
		[ADAPT_TABLE] = at(up ? w->up : w->down),
		[ADAPT_COLUMNS] = COLUMNS
	};
	struct kernel k;

	kernel_open(&k, way, &key);
	kernel_run(&k, arg, middle, units);
	kernel_run(&k, arg, 0, middle);
	kernel_close(&k);
}

static void check(const struct kernel_way *way, unsigned k, unsigned rows, bool scaled)
{
	struct world w = make_world(k, rows, scaled);

	plain(&w);
	run(way, &w, false);
	if (memcmp(w.narrow, w.want_narrow, (size_t)COLUMNS * pad(RANKS) * 4) != 0)
		fail_msg("%s: the products of %u numbers by the first matrices differ", way->name, k);
	run(way, &w, true);
	if (memcmp(w.out, w.want, (size_t)COLUMNS * pad(rows) * (scaled ? 8 : 4)) != 0)
		fail_msg("%s: what is added to %u rows differs%s", way->name, rows, scaled ? ", with factors" : "");
	free_world(&w);
}

static void test_plain_loops(void **unused)
{
	static const unsigned sizes[][2] = { { 32, 32 }, { 1, 1 }, { 70, 45 }, { 256, 96 }, { 33, 64 } };
	const struct kernel_way *way;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (unsigned n = kernel_ways_and_cards(&way, (int)i); n-- > 0;)
			check(&way[n], sizes[i][0], sizes[i][1], (i + n) % 2);
}

/* ---- of experts: each slot of a token has the matrices of another one */

enum { EXPERTS = 3, SLOTS = 2, TOKENS = 11, EXPERT_RANK = 8 };

struct slots {
	unsigned k, rows;
	struct adapt_tile *tile;
	struct adapt_set *set;
	struct adapt_fact *fact;
	uint64_t *table[2];
	float *matrix[2]; /* A: [expert][rank][kp]; B: [expert][row block][rank][32] */
	float *x, *narrow, *out;
	int32_t *chosen, *position;
};

static float *drawn(size_t n)
{
	float *x = kernel_buffer(n * 4, 0);

	for (size_t i = 0; i < n; i++)
		x[i] = kernel_random(&seed);
	return x;
}

static struct slots make_slots(unsigned k, unsigned rows, bool by_slots)
{
	const unsigned kp = pad(k), rp = pad(rows), columns = TOKENS * SLOTS;
	struct slots w = { .k = k, .rows = rows };

	w.tile = kernel_buffer(2 * sizeof *w.tile, 0);
	w.set = kernel_buffer(ADAPT_SETS * sizeof *w.set, 0);
	w.fact = kernel_buffer(ADAPTERS_MOST * sizeof *w.fact, 0);
	w.tile[0] = (struct adapt_tile){ 0, 5, 1, 0 };
	w.tile[1] = (struct adapt_tile){ 5, 6, 2, 0 };
	w.set[1].n = 1; /* the second set has it, too, at another scale; both have nothing before or behind it */
	w.set[1].of[0].adapter = w.set[2].of[0].adapter = 4;
	w.set[1].of[0].scale = 0.5f;
	w.set[2].n = 1;
	w.set[2].of[0].scale = -2;
	w.fact[4] = (struct adapt_fact){ .rank = EXPERT_RANK, .scale = 1.5f, .type = ADAPT_F32 };
	w.matrix[0] = drawn((size_t)EXPERTS * EXPERT_RANK * kp);
	w.matrix[1] = drawn((size_t)EXPERTS * EXPERT_RANK * rp);
	for (unsigned e = 0; e < EXPERTS * EXPERT_RANK; e++)
		memset(w.matrix[0] + (size_t)e * kp + k, 0, (kp - k) * sizeof(float));
	for (int i = 0; i < 2; i++) {
		w.table[i] = kernel_buffer(ADAPTERS_MOST * 8, 0);
		w.table[i][0] = w.table[i][4] = at(w.matrix[i]);
	}
	w.x = drawn((size_t)(by_slots ? columns : TOKENS) * kp);
	w.narrow = kernel_buffer((size_t)columns * pad(RANKS) * 4, 0);
	w.out = kernel_buffer((size_t)columns * rp * 4, 0);
	w.chosen = kernel_buffer((size_t)TOKENS * ROUTE_MAX * 4, 0);
	w.position = kernel_buffer((size_t)TOKENS * ROUTE_MAX * 4, 0);
	for (unsigned t = 0; t < TOKENS; t++)
		for (unsigned s = 0; s < SLOTS; s++) {
			w.chosen[t * ROUTE_MAX + s] = (int32_t)((t * 2 + s) % EXPERTS);
			w.position[t * ROUTE_MAX + s] = (int32_t)((t * SLOTS + s) * 7 % columns);
		}
	return w;
}

static void free_slots(struct slots *w)
{
	void *all[] = { w->tile,      w->set, w->fact,   w->table[0], w->table[1], w->matrix[0],
		        w->matrix[1], w->x,   w->narrow, w->out,      w->chosen,   w->position };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void run_slots(const struct kernel_way *way, const struct slots *w, bool up, bool sorted, bool by_slots)
{
	const struct key key = { .kind = up ? KEY_ADAPT_UP : KEY_ADAPT_DOWN,
		                 .k = up ? RANKS : w->k,
		                 .rows = up ? w->rows : RANKS,
		                 .heads = SLOTS,
		                 .kv_heads = up || by_slots ? 1 : SLOTS,
		                 .flags = KEY_EXPERTS | (sorted ? KEY_SORTED : 0) };
	const int64_t units = 2 * (int64_t)(up ? pad(w->rows) / 32 : ADAPT_PARTS);
	const uint64_t arg[ADAPT_ARGS] = {
		[ADAPT_IN] = at(up ? w->narrow : w->x),
		[ADAPT_OUT] = at(up ? w->out : w->narrow),
		[ADAPT_TILES] = at(w->tile),
		[ADAPT_SET] = at(w->set),
		[ADAPT_FACTS] = at(w->fact),
		[ADAPT_TABLE] = at(w->table[up]),
		[ADAPT_COLUMNS] = TOKENS * SLOTS,
		[ADAPT_CHOSEN] = at(w->chosen),
		[ADAPT_POSITIONS] = sorted ? at(w->position) : 0
	};
	struct kernel k;

	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 1, units);
	kernel_run(&k, arg, 0, 1);
	kernel_close(&k);
}

static void check_slots(const struct kernel_way *way, unsigned k, unsigned rows, bool sorted, bool by_slots)
{
	struct slots w = make_slots(k, rows, by_slots);
	const unsigned kp = pad(k), rp = pad(rows);

	run_slots(way, &w, false, sorted, by_slots);
	run_slots(way, &w, true, sorted, by_slots);
	for (unsigned i = 0; i < TOKENS * SLOTS; i++) {
		const unsigned t = i / SLOTS, s = i % SLOTS;
		const unsigned column = sorted ? (unsigned)w.position[t * ROUTE_MAX + s] : i,
			       e = (unsigned)w.chosen[t * ROUTE_MAX + s];
		const float *x = w.x + (size_t)(by_slots ? column : t) * kp,
			    *a = w.matrix[0] + (size_t)e * EXPERT_RANK * kp,
			    *b = w.matrix[1] + (size_t)e * EXPERT_RANK * rp;
		const float scale = (t < 5 ? 0.5f : -2.0f) * 1.5f;
		float narrow[EXPERT_RANK];
		for (unsigned j = 0; j < EXPERT_RANK; j++) {
			narrow[j] = lane_sum(a + (size_t)j * kp, x, kp) * scale;
			if (memcmp(&narrow[j], &w.narrow[column * pad(RANKS) + j], 4) != 0)
				fail_msg("%s: product %u of slot %u of token %u differs", way->name, j, s, t);
		}
		for (unsigned r = 0; r < rp; r++) {
			float sum = -0.0f;
			for (unsigned j = 0; j < EXPERT_RANK; j++)
				sum = fmaf(b[(r / 32 * EXPERT_RANK + j) * 32 + r % 32], narrow[j], sum);
			if (memcmp(&sum, &w.out[(size_t)column * rp + r], 4) != 0)
				fail_msg("%s: row %u of slot %u of token %u differs", way->name, r, s, t);
		}
	}
	free_slots(&w);
}

static void test_experts(void **unused)
{
	const struct kernel_way *way;

	for (unsigned i = 0; i < 4; i++)
		for (unsigned n = kernel_ways_and_cards(&way, (int)i); n-- > 0;)
			check_slots(&way[n], i % 2 ? 70 : 64, i % 2 ? 33 : 96, i % 2, i / 2);
}

static void test_refusals(void **unused)
{
	const struct key keys[] = {
		{ .kind = KEY_ADAPT_DOWN, .k = 8, .rows = 6 },
		{ .kind = KEY_ADAPT_DOWN, .rows = 8 },
		{ .kind = KEY_ADAPT_DOWN, .k = 8, .rows = 8, .flags = KEY_SCALED },
		{ .kind = KEY_ADAPT_DOWN, .k = 8, .rows = 8, .flags = KEY_EXPERTS },
		{ .kind = KEY_ADAPT_DOWN, .k = 8, .rows = 8, .heads = 2, .flags = KEY_SORTED },
		{ .kind = KEY_ADAPT_UP, .k = 6, .rows = 8 },
		{ .kind = KEY_ADAPT_UP, .k = 8 },
		{ .kind = KEY_ADAPT_UP, .k = 8, .rows = 8, .flags = KEY_BIAS }
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		kernel_refused(&keys[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_plain_loops), cmocka_unit_test(test_experts),
		                            cmocka_unit_test(test_refusals) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
