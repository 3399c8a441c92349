/* tests/runtime/made_plan.h - plans made by hand, of ops on rows of 32 floats at addresses where nothing lies. */
#ifndef TESTS_RUNTIME_MADE_PLAN_H
#define TESTS_RUNTIME_MADE_PLAN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/plan/order.h"

enum { OPS = 64, BASE = 1 << 20, ROW = 128 /* bytes of 32 floats */ };

struct made {
	struct plan plan;
	struct plan_kernel kernel[OPS];
	struct plan_op op[OPS];
	uint64_t args[OPS * PLAN_ARGS_MAX];
	uint32_t stage[OPS + 1], section[OPS + 2];
	struct plan_changing changing[4 * OPS];
};

static inline void begin(struct made *m)
{
	memset(m, 0, sizeof *m);
	m->plan = (struct plan){ .tokens = 1,
		                 .kernel = m->kernel,
		                 .op = m->op,
		                 .args = m->args,
		                 .stage = m->stage,
		                 .section = m->section,
		                 .n_sections = 1,
		                 .changing = m->changing };
}

static inline uint64_t *add(struct made *m, struct key key, int64_t units)
{
	struct plan *p = &m->plan;
	const size_t i = p->n_ops++;

	assert_true(i < OPS);
	key.target = (uint8_t)target_find("avx2")->id;
	m->kernel[i].key = key;
	m->op[i] = (struct plan_op){ .kernel = (uint32_t)i,
		                     .n_args = template_args(&key),
		                     .end = units,
		                     .unit_cost = 1,
		                     .arg = m->args + i * PLAN_ARGS_MAX };
	return m->op[i].arg;
}

static inline void end_plan(struct made *m, uint64_t choices)
{
	m->section[m->plan.n_sections] = (uint32_t)m->plan.n_ops;
	plan_order(&m->plan, choices);
}

static inline uint64_t at(unsigned row) { return BASE + (uint64_t)row * ROW; }

/* OUT = IN times a number. */
static inline void scale(struct made *m, unsigned in, unsigned out, unsigned rows)
{
	uint64_t *a = add(m, (struct key){ .kind = KEY_SCALE }, rows);

	a[SCALE_IN] = at(in);
	a[SCALE_OUT] = at(out);
}

/* OUT = X times act(GATE). */
static inline void gate(struct made *m, unsigned x, unsigned by, unsigned out, unsigned rows)
{
	uint64_t *a = add(m, (struct key){ .kind = KEY_GATE, .act = ACT_SILU }, rows);

	a[GATE_X] = at(x);
	a[GATE_GATE] = at(by);
	a[GATE_OUT] = at(out);
}

/* How many tests failed. */
int order_random_tests(void);

#endif
