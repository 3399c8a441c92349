/* tests/runtime/order_random_tests.c - random graphs for the pass that orders ops. The witness computes which rows a
 * unit touches by formulas of its own, runs the units of each stage in random order, and compares what every row came
 * to hold with a run from the first op to the last; then it looks for stages that could be one. */
#include <stdlib.h>

#include "tests/runtime/made_plan.h"

enum { RANDOM_OPS = 24, ROWS = 12 };

/* The rows that a unit reads, and the one that it writes. */
struct touch {
	unsigned read[3], reads, write;
};

static unsigned row_at(uint64_t address) { return (unsigned)((address - BASE) / ROW); }

static struct touch touch_of(const struct made *m, size_t op, unsigned unit)
{
	const uint64_t *a = m->op[op].arg;
	const struct key *k = &m->kernel[op].key;
	struct touch t;

	if (k->kind == KEY_GATE) {
		t = (struct touch){ { row_at(a[GATE_X]), row_at(a[GATE_GATE]) }, 2, row_at(a[GATE_OUT]) };
	} else {
		t = (struct touch){ { row_at(a[SCALE_IN]) }, 1, row_at(a[SCALE_OUT]) };
		if (k->flags & KEY_RESIDUAL)
			t.read[t.reads++] = t.write;
	}
	for (unsigned i = 0; i < t.reads; i++)
		t.read[i] += unit;
	t.write += unit;
	return t;
}

static void run_unit(const struct made *m, size_t op, unsigned unit, uint64_t row[])
{
	const struct touch t = touch_of(m, op, unit);
	uint64_t v = op * 1000 + unit + 1;

	for (unsigned i = 0; i < t.reads; i++)
		v = (v ^ row[t.read[i]]) * 0x9e3779b97f4a7c15u + (v >> 29);
	row[t.write] = v;
}

static bool touch_same(const struct made *m, size_t a, size_t b)
{
	for (unsigned i = 0; i < m->op[a].end; i++)
		for (unsigned j = 0; j < m->op[b].end; j++) {
			const struct touch x = touch_of(m, a, i), y = touch_of(m, b, j);
			bool same = x.write == y.write;
			for (unsigned r = 0; r < x.reads; r++)
				same = same || x.read[r] == y.write;
			for (unsigned r = 0; r < y.reads; r++)
				same = same || y.read[r] == x.write;
			if (same)
				return true;
		}
	return false;
}

static void draw(struct made *m)
{
	const unsigned n = 1 + (unsigned)rand() % RANDOM_OPS;

	begin(m);
	for (unsigned i = 0; i < n; i++) {
		const unsigned rows = 1 + (unsigned)rand() % 3, max = ROWS - rows + 1;
		const unsigned x = (unsigned)rand() % max, y = (unsigned)rand() % max, out = (unsigned)rand() % max;
		/* units of one op may not touch each other's: in place, or apart */
		const bool apart = out >= x + rows || x >= out + rows, apart2 = out >= y + rows || y >= out + rows;
		if (rand() % 2 && apart2)
			gate(m, apart ? x : out, y, out, rows);
		else
			scale(m, apart ? x : out, out, rows);
		if (m->kernel[i].key.kind == KEY_SCALE && rand() % 3 == 0)
			m->kernel[i].key.flags = KEY_RESIDUAL;
	}
	end_plan(m, 0);
}

/* The units of each stage in any order. */
static void run_stages(const struct made *m, uint64_t row[])
{
	for (size_t s = 0; s < m->plan.n_stages; s++) {
		struct {
			size_t op;
			unsigned unit;
		} todo[OPS * 4];
		unsigned n = 0;
		for (size_t i = m->stage[s]; i < m->stage[s + 1]; i++)
			for (unsigned u = 0; u < m->op[i].end; u++) {
				todo[n].op = i;
				todo[n++].unit = u;
			}
		while (n) {
			const unsigned i = (unsigned)rand() % n;
			run_unit(m, todo[i].op, todo[i].unit, row);
			todo[i] = todo[--n];
		}
	}
}

static void test_random(void **state)
{
	enum { GRAPHS = 3000, ORDERS = 4 };
	unsigned stages = 0, ops = 0;
	(void)state;

	srand(3);
	for (unsigned g = 0; g < GRAPHS; g++) {
		uint64_t want[ROWS], got[ROWS];
		struct made m;
		draw(&m);
		for (unsigned r = 0; r < ROWS; r++)
			want[r] = r;
		for (size_t i = 0; i < m.plan.n_ops; i++)
			for (unsigned u = 0; u < m.op[i].end; u++)
				run_unit(&m, i, u, want);
		for (unsigned n = 0; n < ORDERS; n++) {
			for (unsigned r = 0; r < ROWS; r++)
				got[r] = r;
			run_stages(&m, got);
			assert_memory_equal(got, want, sizeof want);
		}
		/* a barrier is in front of an op that touches what one of the stage before does */
		for (size_t s = 1; s < m.plan.n_stages; s++) {
			bool needed = false;
			for (size_t i = m.stage[s - 1]; i < m.stage[s]; i++)
				needed = needed || touch_same(&m, i, m.stage[s]);
			assert_true(needed);
		}
		stages += (unsigned)m.plan.n_stages;
		ops += (unsigned)m.plan.n_ops;
	}
	assert_true(stages > GRAPHS && stages < ops); /* neither all together nor all apart */
}

int order_random_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
