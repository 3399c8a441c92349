/* tests/runtime/ranks_auto.c - --split auto: the choice changes once as messages become slower, follows what it says
 * that it predicts, and leaves the bits as they are; and a carrier whose messages arrive later delivers the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/model/model.h"
#include "runtime/ranks/choose.h"
#include "tests/runtime/ranks_tests.h"
#include "tests/support/shared.h"

enum { TEXT = 9 };

/* Of given numbers; nothing is measured. */
void test_ranks_choose(void **state)
{
	char path[1024];
	jit_model *m = must_open(tale(path), NULL, NULL);
	const struct model_spec *s = &m->file.spec;
	struct ranks_machine machine = { .read = 10e9, .bits = 100e9 };
	struct ranks_choice c;
	struct error err = { 0 };
	unsigned changes = 0;
	bool before = true;

	for (machine.delay = 1e-8; machine.delay < 0.1; machine.delay *= 1.5) {
		assert_true(ranks_choose(s, m->target, DTYPE_F16, 2, &machine, &c, &err));
		assert_true(c.rows > 0 && c.layers > 0 && c.by_rows == (c.rows < c.layers));
		changes += c.by_rows != before;
		before = c.by_rows;
	}
	assert_int_equal(changes, 1);
	assert_false(before);
	/* Few bits a second turn it over, too: by rows more is sent. */
	machine.delay = 1e-8;
	machine.bits = 1e7;
	assert_true(ranks_choose(s, m->target, DTYPE_F16, 2, &machine, &c, &err));
	assert_false(c.by_rows);
	assert_non_null(
		strstr(c.why, "auto: 0 us a message, 0.01 Gbit/s, weights read at 10.0 GB/s; predicted for a token: "));
	/* There are 6 layers. */
	assert_true(ranks_choose(s, m->target, DTYPE_F16, 7, &machine, &c, &err));
	assert_true(c.by_rows);
	assert_non_null(strstr(c.why, "the other split is not possible: ranks: 7 are too many"));
	jit_model_close(m);
}

static void tell(jit_model *m, size_t vocab, float *out)
{
	static const int32_t ids[TEXT] = { 1, 5, 9, 200, 3, 77, 42, 8, 300 };
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	jit_error err = { 0 };

	must(jit_session_feed(s, ids, TEXT - 2, &err), &err);
	for (int i = TEXT - 2; i < TEXT; i++) {
		must(jit_session_feed(s, ids + i, 1, &err), &err);
		const float *logits = jit_session_logits(s, &err);
		assert_non_null(logits);
		memcpy(out, logits, vocab * sizeof *out);
		out += vocab;
	}
	jit_session_close(s);
}

/* delay: microseconds that a message takes at least. */
static void check_choice(const char *about, double delay)
{
	const char *rows = strstr(about, "predicted for a token: "), *found = strstr(about, "auto: ");
	double by_rows, by_layers, us;

	assert_non_null(found);
	assert_int_equal(sscanf(found, "auto: %lf us", &us), 1);
	assert_true(us >= delay);

	assert_non_null(rows);
	assert_int_equal(sscanf(rows, "predicted for a token: %lf ms by rows, %lf ms by layers", &by_rows, &by_layers),
	                 2);
	/* Numbers are rounded there. */
	if (by_rows < by_layers * 0.99 || by_layers < by_rows * 0.99)
		assert_non_null(strstr(about, by_rows < by_layers ? ", rows: " : ", pipeline: "));
}

void test_ranks_auto(void **state)
{
	static const struct {
		const char *ranks, *split, *says;
		double delay;
	} all[] = { { "fork:2", "auto", "auto: ", 0 },
		    { "fork:3", "auto", "auto: ", 0 },
		    { "delay:30000:fork:2", "auto", "pipeline: ", 30000 },
		    { "delay:300:fork:3", "rows:1,2,1", "by delay, rows: ", 0 },
		    { "delay:300:fork:2", "pipeline", "by delay, pipeline: ", 0 } };
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m = must_open(tale(path), NULL, NULL);

	must(jit_model_get_info(m, &info, &err), &err);
	const size_t vocab = (size_t)info.vocab;
	float *want = malloc(2 * vocab * sizeof *want), *got = malloc(2 * vocab * sizeof *got);
	assert_true(want && got);
	tell(m, vocab, want);
	jit_model_close(m);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		m = must_open(path, all[i].ranks, all[i].split);
		must(jit_model_get_info(m, &info, &err), &err);
		if (!strstr(info.ranks, all[i].says))
			fail_msg("\"%s\" does not say \"%s\"", info.ranks, all[i].says);
		if (strcmp(all[i].split, "auto") == 0)
			check_choice(info.ranks, all[i].delay);
		tell(m, vocab, got);
		if (memcmp(got, want, 2 * vocab * sizeof *got) != 0)
			fail_msg("%s, %s: other logits", all[i].ranks, all[i].split);
		jit_model_close(m);
	}
	free(want);
	free(got);
}
