/* tests/runtime/ranks_bytes.c - the bytes that ranks exchange are those that a calculation on paper says, and those
 * that were foretold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/model/model.h"
#include "runtime/ranks/forecast.h"
#include "runtime/ranks/ranks.h"
#include "tests/runtime/ranks_tests.h"

static uint64_t exchanged, exchanges, received;
static const struct carrier_driver *counted;

static bool count_gather(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	exchanged += begin[c->size];
	exchanges++;
	return counted->gather_begin(c, all, begin, err);
}

static bool count_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	received += n;
	return counted->receive(c, from, bytes, n, err);
}

/* What is told before anything is loaded is what was exchanged, and what ranks have makes up the model. */
static void check_forecast(const jit_model *m, const char *split, uint64_t bytes, uint64_t logits)
{
	const struct model_spec *s = &m->file.spec;
	struct ranks_forecast f;
	struct error err = { 0 };

	assert_true(ranks_forecast(s, m->target, DTYPE_F16, 256, 2, split, &f, &err));
	assert_true(f.by_rows && f.ranks == 2);
	assert_int_equal(f.exchanged, bytes);
	assert_int_equal(f.logits, logits);
	assert_int_equal(f.exchanges, 4ull * s->layers + 1);
	assert_int_equal(f.token[0] + f.token[1], m->weights.token_bytes);
	assert_true(f.weights[0] >= f.token[0] && f.weights[1] == f.token[1]);
	assert_int_equal(f.kv[0] + f.kv[1], 2ull * s->layers * plan_cache_bytes(DTYPE_F16, s, 0));
	assert_true(ranks_forecast(s, m->target, DTYPE_F16, 256, 3, "pipeline:1,2,3", &f, &err));
	assert_true(!f.by_rows && f.range[1].first == 1 && f.range[2].end == 6);
	assert_int_equal(f.exchanges, 3);
	assert_int_equal(f.exchanged, 3 * s->hidden * sizeof(float));
	assert_int_equal(f.kv[2], 3ull * 2 * plan_cache_bytes(DTYPE_F16, s, 0));
	assert_false(ranks_forecast(s, m->target, DTYPE_F16, 256, 3, "pipeline:1,2", &f, &err));
}

/* The table of a paper calculation: weights of 60 GB/s, 160 exchanges of 80 us, 3 MB at 1 Gbit/s. */
void test_ranks_seconds(void **state)
{
	struct ranks_forecast f = { .ranks = 2, .by_rows = true, .exchanges = 160, .exchanged = 3000000 };
	const struct ranks_machine m = { .read = 60e9, .bits = 1e9, .delay = 80e-6 };
	struct error err = { 0 };
	unsigned n;

	f.token[0] = f.token[1] = 4166666666;
	assert_true(fabs(1 / ranks_token_seconds(&f, &m) - 10.6) < 0.05);
	f.by_rows = false;
	f.exchanges = 2;
	f.exchanged = 2 * 20480;
	assert_true(fabs(1 / ranks_token_seconds(&f, &m) - 7.2) < 0.05);
	assert_true(fabs(1 / ranks_filled_seconds(&f, &m) - 14.4) < 0.1);
	assert_true(ranks_count("mpi:64", &n, &err) && n == 64);
	assert_false(ranks_count("mpi", &n, &err) || ranks_count("fork:65", &n, &err) ||
	             ranks_count("fork:2x", &n, &err));
}

/* Of a token by rows: attention's result and what the last matrix reads as int8 blocks with their scales, 1.5 bytes a
 * number; the stream twice in each layer as floats; of the embedding, which rank 0 has, its norm as blocks and what the
 * other rank adds to; and the logits that rank 0 has not made. */
void test_ranks_bytes(void **state)
{
	static const char *const split[] = { "rows", "rows:1,2" };
	jit_error err = { 0 };
	char path[1024];

	for (int i = 0; i < 2; i++) {
		jit_model *m = must_open(tale(path), "fork:2", split[i]);
		const struct model_spec *s = &m->file.spec;
		const uint64_t layer = (uint64_t)s->heads * s->head_dim * 3 / 2 + s->ffn * 3 / 2 + 8ull * s->hidden;
		const struct cut_blocks o = cut_share_blocks(&m->ranks->shares, s, &s->layer[0].o, 1);
		const uint64_t embedding = s->hidden * 3 / 2 + (o.end - o.first) * 128;
		const struct cut_blocks last = cut_share_blocks(&m->ranks->shares, s, &s->embed, 1);
		jit_session *one = must_session(m, JIT_SPECULATE_OFF);
		struct carrier_driver counting = *m->ranks->carrier->driver;

		assert_true(s->tied && s->hidden % 32 == 0 && s->ffn % 32 == 0 && s->head_dim % 32 == 0);
		counted = m->ranks->carrier->driver;
		counting.gather_begin = count_gather;
		counting.receive = count_receive;
		m->ranks->carrier->driver = &counting;
		for (int32_t id = 1; id < 4; id++) { /* the last of a piece has logits */
			exchanged = exchanges = received = 0;
			must(jit_session_feed(one, &id, 1, &err), &err);
			assert_int_equal(exchanged, s->layers * layer + embedding);
			assert_int_equal(exchanges, 4ull * s->layers + 1);
			assert_int_equal(received, (last.end - last.first) * 32 * sizeof(float));
		}
		m->ranks->carrier->driver = counted;
		check_forecast(m, split[i], s->layers * layer + embedding, received);
		jit_session_close(one);
		jit_model_close(m);
	}
}
