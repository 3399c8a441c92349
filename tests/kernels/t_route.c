/* tests/kernels/t_route.c - the choice of experts, the order of their columns and the sums of their results, against
 * plain loops, bit for bit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

enum { COLUMNS = 9 };

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static uint64_t state = 77;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 40) % n;
}

/* ---- the choice */

/* The sum over 32 lanes as rule 6 has it. */
static float lane_sum(const float part[32])
{
	float v[32], w[32];

	memcpy(v, part, sizeof v);
	for (unsigned stride = 16; stride; stride /= 2) {
		for (unsigned l = 0; l < 32; l++)
			w[l] = v[l] + v[l ^ stride];
		memcpy(v, w, sizeof v);
	}
	return v[0];
}

static float logistic(float x) { return 1.0f / (1.0f + plain_exp(-x)); }

/* Whether a comes before b. */
static bool before(float a, float b) { return a > b || (!isnan(a) && isnan(b)); }

/* The best of so many that are not taken. */
static int32_t plain_best(const float *choice, uint32_t first, uint32_t n, const bool *taken)
{
	int32_t best = -1;

	for (uint32_t e = first; e < first + n; e++)
		if (!taken[e] && (best < 0 || before(choice[e], choice[best])))
			best = (int32_t)e;
	return best;
}

/* Experts of groups that are not chosen are taken. */
static void plain_groups(const struct key *k, const float *choice, bool *taken)
{
	const uint32_t size = k->rows / k->kv_heads;
	bool none[ROUTE_EXPERTS_MAX] = { false }, kept[ROUTE_MAX] = { false };
	float score[ROUTE_MAX];

	for (uint32_t g = 0; g < k->kv_heads; g++) {
		int32_t best = plain_best(choice, g * size, size, none);
		score[g] = choice[best];
		none[best] = true;
		if (k->flags & KEY_SIGMOID)
			score[g] = choice[best] + choice[plain_best(choice, g * size, size, none)];
		none[best] = false;
	}
	for (uint32_t i = 0; i < k->k; i++)
		kept[plain_best(score, 0, k->kv_heads, kept)] = true;
	for (uint32_t e = 0; e < k->rows; e++)
		taken[e] = !kept[e / size];
}

static void plain_choose(const struct key *k, const float *choice, int32_t *chosen)
{
	bool taken[ROUTE_EXPERTS_MAX] = { false };

	if (k->kv_heads)
		plain_groups(k, choice, taken);
	for (uint32_t s = 0; s < k->heads; s++) {
		chosen[s] = plain_best(choice, 0, k->rows, taken);
		taken[chosen[s]] = true;
	}
}

/* Shares among the experts that are left and near the choice. */
static void plain_near(const struct key *k, const float *logits, float near, const int32_t *chosen, float *share)
{
	bool taken[ROUTE_EXPERTS_MAX] = { false };

	for (uint32_t s = 0; s < k->heads; s++) {
		const float m = logits[chosen[s]];
		float part[32] = { 0 };
		for (uint32_t e = 0; e < k->rows; e++) {
			const float size = fabsf(logits[e]), by = size > m ? size : m, far = (m - logits[e]) / by;
			const float one = taken[e] || near <= far ? 0.0f : plain_exp(logits[e] - m);
			part[e % 32] = part[e % 32] + one;
		}
		share[s] = 1.0f / lane_sum(part);
		taken[chosen[s]] = true;
	}
}

static void plain_route(const struct key *k, const float *logits, const float *bias, const float *times, float scale,
                        int32_t *chosen, float *share)
{
	float choice[ROUTE_EXPERTS_MAX], part[32] = { 0 }, all[32] = { 0 };
	bool sigmoid = k->flags & KEY_SIGMOID;

	memset(chosen, 0, ROUTE_MAX * 4);
	memset(share, 0, ROUTE_MAX * 4);
	float greatest = -INFINITY, sums[32] = { 0 };
	for (uint32_t e = 0; e < k->rows; e++)
		greatest = logits[e] > greatest ? logits[e] : greatest;
	for (uint32_t e = 0; e < k->rows; e++)
		sums[e % 32] = sums[e % 32] + plain_exp(logits[e] - greatest);
	for (uint32_t e = 0; e < k->rows; e++) {
		choice[e] = sigmoid ? logistic(logits[e]) : logits[e];
		if (!sigmoid && k->flags & KEY_BIAS)
			choice[e] = plain_exp(logits[e] - greatest) / lane_sum(sums);
		choice[e] = k->flags & KEY_BIAS ? choice[e] + bias[e] : choice[e];
	}
	plain_choose(k, choice, chosen);
	if (k->flags & KEY_GREATEST) {
		plain_near(k, logits, scale, chosen, share);
		return;
	}
	float max = logits[chosen[0]];
	for (uint32_t s = 1; s < k->heads; s++) /* with a bias the first choice need not have the greatest logit */
		max = logits[chosen[s]] > max ? logits[chosen[s]] : max;
	for (uint32_t s = 0; s < k->heads; s++)
		part[s] = sigmoid ? logistic(logits[chosen[s]]) : plain_exp(logits[chosen[s]] - max);
	for (uint32_t e = 0; e < k->rows; e++)
		all[e % 32] = all[e % 32] + plain_exp(logits[e] - max);
	float beside = k->flags & KEY_SHARE_EPS ? 1e-6f : 1e-20f;
	float sum = sigmoid ? lane_sum(part) + beside : lane_sum(k->flags & KEY_OF_ALL ? all : part);
	for (uint32_t s = 0; s < k->heads; s++) {
		share[s] = !sigmoid || k->flags & KEY_NORMED ? part[s] / sum : part[s];
		share[s] = share[s] * scale;
		share[s] = k->flags & KEY_SCALED ? share[s] * times[chosen[s]] : share[s];
	}
}

/* Coarse, so that there are ties. */
static float draw_logit(void)
{
	float x = (float)(int)draw(41) - 20.0f;

	return draw(4) ? x / 4 : draw(2) ? 0.0f : -0.0f;
}

static void check_route(const struct kernel_way *way, const struct key *key, const float *logits, const float *bias,
                        bool shares)
{
	float scale = 1.5f, share[ROUTE_MAX];
	int32_t chosen[ROUTE_MAX], *got = kernel_buffer(COLUMNS * ROUTE_MAX * 4, 0x55);
	float *got_shares = kernel_buffer(COLUMNS * ROUTE_MAX * 4, 0x55);
	/* other numbers than the bias: each token's logits stand for experts' factors, too */
	uint64_t arg[ROUTE_ARGS] = { address(logits), address(got),   address(got_shares), 0,
		                     address(bias),   address(logits) };
	char text[KEY_TEXT_MAX];
	struct kernel k;

	memcpy(&arg[ROUTE_SCALE], &scale, 4);
	kernel_open(&k, way, key);
	kernel_run(&k, arg, 4, COLUMNS);
	kernel_run(&k, arg, 0, 4);
	kernel_close(&k);
	for (unsigned c = 0; c < COLUMNS; c++) {
		plain_route(key, logits + c * numerics_pad(key->rows), bias, logits, scale, chosen, share);
		if (memcmp(chosen, got + c * ROUTE_MAX, sizeof chosen) != 0)
			fail_msg("%s, %s, column %u: another choice", way->name, key_text(key, text, sizeof text), c);
		if (shares && memcmp(share, got_shares + c * ROUTE_MAX, sizeof share) != 0)
			fail_msg("%s, %s, column %u: other shares: %a, expected %a", way->name,
			         key_text(key, text, sizeof text), c, (double)got_shares[c * ROUTE_MAX],
			         (double)share[0]);
	}
	free(got);
	free(got_shares);
}

static const struct {
	uint32_t experts, slots, groups, chosen;
} sizes[] = { { 1, 1, 0, 0 },    { 5, 2, 0, 0 },   { 8, 8, 0, 0 },   { 32, 4, 0, 0 },
	      { 33, 9, 0, 0 },   { 64, 6, 0, 0 },  { 128, 8, 0, 0 }, { 256, 32, 0, 0 },
	      { 513, 10, 0, 0 }, { 8, 2, 4, 2 },   { 6, 3, 1, 1 },   { 64, 6, 8, 3 },
	      { 256, 8, 8, 4 },  { 96, 9, 32, 3 }, { 70, 20, 2, 1 }, { 513, 7, 27, 26 } };
static const uint32_t modes[] = {
	0,
	KEY_OF_ALL,
	KEY_SIGMOID,
	KEY_SIGMOID | KEY_NORMED,
	KEY_SIGMOID | KEY_NORMED | KEY_BIAS,
	KEY_SIGMOID | KEY_NORMED | KEY_SHARE_EPS,
	KEY_SCALED,
	KEY_BIAS,
	KEY_BIAS | KEY_OF_ALL,
	KEY_GREATEST,
	KEY_SIGMOID | KEY_NORMED | KEY_BIAS | KEY_SCALED
};

static void test_route(void **unused)
{
	const struct kernel_way *way;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
			struct key key = { .kind = KEY_ROUTE,
				           .rows = sizes[i].experts,
				           .heads = sizes[i].slots,
				           .kv_heads = sizes[i].groups,
				           .k = sizes[i].chosen,
				           .flags = modes[m] };
			if (key.kv_heads && (key.flags & (KEY_SCALED | KEY_GREATEST) ||
			                     (key.flags & KEY_BIAS && !(key.flags & KEY_SIGMOID))))
				continue;
			uint64_t kp = numerics_pad(key.rows);
			float *logits = kernel_buffer(COLUMNS * kp * 4, 0), *bias = kernel_buffer(kp * 4, 0);
			unsigned ways = kernel_ways_and_cards(&way, (int)(i + m));
			for (unsigned c = 0; c < COLUMNS; c++)
				for (uint32_t e = 0; e < key.rows; e++)
					logits[c * kp + e] = c % 2 ? draw_logit() : kernel_random(&state);
			for (uint32_t e = 0; e < key.rows; e++)
				bias[e] = draw_logit() / 64;
			for (unsigned w = 0; w < ways && (!test_quick() || (i + m) % 3 == 0); w++)
				check_route(&way[w], &key, logits, bias, true);
			free(logits);
			free(bias);
		}
}

/* Whatever the logits are, there is a choice of experts that differ. */
static void test_odd_logits(void **unused)
{
	const struct kernel_way *way;
	const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, -3e38f, 1e-45f, -1e-45f };
	struct key key = { .kind = KEY_ROUTE, .rows = 40, .heads = 40 - 8 }, grouped = key;
	uint64_t kp = numerics_pad(key.rows);
	float *logits = kernel_buffer(COLUMNS * kp * 4, 0);
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (uint64_t i = 0; i < COLUMNS * kp; i++)
		logits[i] = i % kp < key.rows ? odd[draw(i < kp ? 1 : sizeof odd / sizeof *odd)] : 0;
	/* a sigmoid is not defined of NaN */
	float *numbers = kernel_buffer(COLUMNS * kp * 4, 0);
	for (uint64_t i = 0; i < COLUMNS * kp; i++)
		numbers[i] = isnan(logits[i]) ? -3e38f : logits[i];
	grouped.heads = 7;
	grouped.kv_heads = 10;
	grouped.k = 3;
	for (unsigned w = 0; w < ways; w++) {
		check_route(&way[w], &key, logits, logits, false);
		check_route(&way[w], &grouped, grouped.flags ? numbers : logits, logits, false);
		grouped.flags ^= KEY_SIGMOID;
	}
	free(numbers);
	free(logits);
}

/* ---- the order, copies and sums */

enum { EXPERTS = 11, SLOTS = 3, TOKENS = 13, K = 100, KP = 128 };

struct pass {
	int32_t *chosen, *picks, *want_picks;
	struct route_group *group;
	float *x, *copies, *y, *shares, *out, *want;
	int8_t *q, *copied_q;
	struct activation_block *s, *copied_s;
};

static void open_pass(struct pass *p)
{
	const uint64_t slots = TOKENS * SLOTS;

	*p = (struct pass){
		.chosen = kernel_buffer(TOKENS * ROUTE_MAX * 4, 0),
		.picks = kernel_buffer(TOKENS * ROUTE_MAX * 4, 0x55),
		.want_picks = kernel_buffer(TOKENS * ROUTE_MAX * 4, 0x55),
		.group = kernel_buffer((EXPERTS + 1) * sizeof *p->group, 0x55),
		.x = kernel_buffer(TOKENS * KP * 4, 0),
		.copies = kernel_buffer(slots * KP * 4, 0),
		.y = kernel_buffer(slots * KP * 4, 0),
		.shares = kernel_buffer(TOKENS * ROUTE_MAX * 4, 0),
		.out = kernel_buffer(TOKENS * KP * 4, 0),
		.want = kernel_buffer(TOKENS * KP * 4, 0),
		.q = kernel_buffer(TOKENS * KP, 0),
		.copied_q = kernel_buffer(slots * KP, 0),
		.s = kernel_buffer(TOKENS * KP / 2, 0),
		.copied_s = kernel_buffer(slots * KP / 2, 0)
	};
	for (unsigned t = 0; t < TOKENS; t++)
		for (unsigned i = 0, first = draw(EXPERTS); i < SLOTS; i++) {
			p->chosen[t * ROUTE_MAX + i] = (int32_t)((first + i * 2) % EXPERTS / 2 * 2);
			p->shares[t * ROUTE_MAX + i] = kernel_random(&state);
		}
	for (unsigned i = 0; i < TOKENS * KP; i++) {
		p->x[i] = kernel_random(&state);
		p->out[i] = kernel_random(&state);
		p->q[i] = (int8_t)draw(255);
	}
	for (unsigned i = 0; i < slots * KP; i++)
		p->y[i] = kernel_random(&state);
	for (unsigned i = 0; i < TOKENS * KP / 32; i++)
		p->s[i] = (struct activation_block){ (float)i, 0.5f, { (int32_t)draw(99), 7 } };
}

static void close_pass(struct pass *p)
{
	void *all[] = { p->chosen, p->picks, p->want_picks, p->group, p->x,        p->copies, p->y,
		        p->shares, p->out,   p->want,       p->q,     p->copied_q, p->s,      p->copied_s };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void run_one(const struct kernel_way *way, const struct key *key, const uint64_t *arg, int64_t units)
{
	struct kernel k;

	kernel_open(&k, way, key);
	kernel_run(&k, arg, units / 3, units);
	kernel_run(&k, arg, 0, units / 3);
	kernel_close(&k);
}

static void check_order(const struct kernel_way *way, struct pass *p)
{
	struct key key = { .kind = KEY_DISPATCH, .rows = EXPERTS, .heads = SLOTS };
	uint64_t arg[DISPATCH_ARGS] = { address(p->chosen), TOKENS, address(p->picks), address(p->group), EXPERTS };
	unsigned g = 0;
	int32_t next = 0;

	memset(p->picks, 0x55, TOKENS * ROUTE_MAX * 4);
	memset(p->group, 0x55, (EXPERTS + 1) * sizeof *p->group);
	run_one(way, &key, arg, 1);
	for (int32_t e = 0; e < EXPERTS; e++) {
		struct route_group want = { e, next, 0, 0 };
		for (unsigned t = 0; t < TOKENS; t++)
			for (unsigned i = 0; i < SLOTS; i++)
				if (p->chosen[t * ROUTE_MAX + i] == e) {
					p->want_picks[t * ROUTE_MAX + i] = next++;
					want.columns++;
				}
		if (want.columns)
			assert_memory_equal(&p->group[g++], &want, sizeof want);
	}
	assert_true(g < EXPERTS);
	for (; g < EXPERTS; g++)
		assert_int_equal(p->group[g].columns, 0);
	assert_memory_equal(p->picks, p->want_picks, TOKENS * ROUTE_MAX * 4);
}

static void check_copies(const struct kernel_way *way, struct pass *p)
{
	struct key floats = { .kind = KEY_SCATTER, .k = K, .heads = SLOTS, .activation = key_type(DTYPE_F32) };
	struct key int8 = floats;
	uint64_t arg[SCATTER_ARGS] = { address(p->x), 0, address(p->picks), address(p->copies), 0 };

	run_one(way, &floats, arg, TOKENS);
	int8.activation = key_type(DTYPE_Q8_0);
	arg[SCATTER_X] = address(p->q);
	arg[SCATTER_XS] = address(p->s);
	arg[SCATTER_OUT] = address(p->copied_q);
	arg[SCATTER_OUTS] = address(p->copied_s);
	run_one(way, &int8, arg, TOKENS);
	for (unsigned t = 0; t < TOKENS; t++)
		for (unsigned i = 0; i < SLOTS; i++) {
			int32_t at = p->picks[t * ROUTE_MAX + i];
			assert_memory_equal(p->copies + at * KP, p->x + t * KP, KP * 4);
			assert_memory_equal(p->copied_q + at * KP, p->q + t * KP, KP);
			assert_memory_equal(p->copied_s + at * (KP / 32), p->s + t * (KP / 32), KP / 2);
		}
}

static void check_sums(const struct kernel_way *way, struct pass *p, uint32_t flags, uint32_t slots)
{
	struct key key = { .kind = KEY_COMBINE, .k = K, .heads = slots, .flags = flags };
	float *out = kernel_buffer(TOKENS * KP * 4, 0);
	uint64_t arg[COMBINE_ARGS] = { address(p->y), address(p->shares), address(p->picks), address(out) };

	memcpy(out, p->out, TOKENS * KP * 4);
	for (unsigned t = 0; t < TOKENS; t++)
		for (unsigned k = 0; k < KP; k++) {
			float sum = 0;
			for (unsigned i = 0; i < slots; i++) {
				int32_t at =
					flags & KEY_SORTED ? p->picks[t * ROUTE_MAX + i] : (int32_t)(t * slots + i);
				float share = p->shares[t * ROUTE_MAX + i], y = p->y[at * KP + (int32_t)k];
				share = flags & KEY_SIGMOID ? logistic(share) : share;
				sum = i ? fmaf(share, y, sum) : share * y;
			}
			p->want[t * KP + k] = flags & KEY_RESIDUAL ? p->out[t * KP + k] + sum : sum;
		}
	run_one(way, &key, arg, TOKENS * KP / 32);
	assert_memory_equal(out, p->want, TOKENS * KP * 4);
	free(out);
}

static void test_pass(void **unused)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned w = 0; w < ways; w++) {
		struct pass p;
		open_pass(&p);
		check_order(&way[w], &p);
		check_copies(&way[w], &p);
		check_sums(&way[w], &p, 0, SLOTS);
		check_sums(&way[w], &p, KEY_RESIDUAL, 1);
		check_sums(&way[w], &p, KEY_SORTED | KEY_RESIDUAL, SLOTS);
		check_sums(&way[w], &p, KEY_SIGMOID | KEY_RESIDUAL, 1);
		close_pass(&p);
	}
}

static void test_refusals(void **unused)
{
	static const struct key wrong[] = {
		{ .kind = KEY_ROUTE, .rows = 8 },
		{ .kind = KEY_ROUTE, .heads = 1 },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 9 },
		{ .kind = KEY_ROUTE, .rows = 64, .heads = 33 },
		{ .kind = KEY_ROUTE, .rows = 1025, .heads = 8 },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .flags = KEY_SIGMOID | KEY_OF_ALL },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .flags = KEY_SIGMOID | KEY_SHARE_EPS },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .kv_heads = 4, .k = 2, .flags = KEY_BIAS },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .flags = KEY_NORMED },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .flags = KEY_GREATEST | KEY_OF_ALL },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .kv_heads = 4, .k = 2, .flags = KEY_GREATEST },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .flags = KEY_RESIDUAL },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .k = 1 },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .kv_heads = 4 },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .kv_heads = 4, .k = 5 },
		{ .kind = KEY_ROUTE, .rows = 9, .heads = 2, .kv_heads = 4, .k = 2 },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 2, .kv_heads = 8, .k = 2, .flags = KEY_SIGMOID },
		{ .kind = KEY_ROUTE, .rows = 8, .heads = 5, .kv_heads = 4, .k = 2 },
		{ .kind = KEY_ROUTE, .rows = 99, .heads = 2, .kv_heads = 33, .k = 2 },
		{ .kind = KEY_DISPATCH, .rows = 8 },
		{ .kind = KEY_DISPATCH, .rows = 8, .heads = 2, .flags = KEY_SORTED },
		{ .kind = KEY_SCATTER, .k = 8, .heads = 2 },
		{ .kind = KEY_SCATTER, .heads = 2, .activation = DTYPE_F32 + 1 },
		{ .kind = KEY_COMBINE, .k = 8 },
		{ .kind = KEY_COMBINE, .heads = 2 },
		{ .kind = KEY_COMBINE, .k = 8, .heads = 2, .flags = KEY_BIAS },
	};

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
		kernel_refused(&wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_route), cmocka_unit_test(test_odd_logits),
		                            cmocka_unit_test(test_pass), cmocka_unit_test(test_refusals) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
