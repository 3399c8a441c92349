/* tests/train/train_bits.c - the same bits everywhere: places, interruptions, texts in one row; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/shared.h"
#include "tests/train/train_tests.h"

bool train_same(const jit_train *a, const jit_train *b)
{
	bool same = jit_train_tensors(a) == jit_train_tensors(b);

	for (size_t i = 0; same && i < jit_train_tensors(a); i++) {
		jit_train_tensor x = JIT_TRAIN_TENSOR(), y = JIT_TRAIN_TENSOR();
		assert_int_equal(jit_train_get_tensor(a, i, &x, NULL), JIT_OK);
		assert_int_equal(jit_train_get_tensor(b, i, &y, NULL), JIT_OK);
		assert_string_equal(x.name, y.name);
		same = x.elements == y.elements && x.rows == y.rows && x.cols == y.cols &&
		       memcmp(x.values, y.values, x.elements * sizeof *x.values) == 0;
	}
	return same;
}

/* Rows of different lengths, the second without its first half. */
static void feed_two(jit_train *t, unsigned s)
{
	int32_t ids[24];
	uint8_t counts[24];

	for (unsigned i = 0; i < 24; i++) {
		ids[i] = (int32_t)((s * 31 + i * i * 7 + i) % 300);
		counts[i] = i > 8;
	}
	train_feed(t, ids, NULL, 17);
	train_feed(t, ids, counts, 24);
}

static jit_train *trained(const char *model, jit_train_options o, unsigned steps)
{
	o.context = 24;
	o.rate = 1e-2f;
	jit_train *t = train_open(model, o);
	for (unsigned s = 0; s < steps; s++) {
		feed_two(t, s);
		train_step(t);
	}
	return t;
}

static const jit_train_options usual = {
	.rank = 4,
	.dropout = 0.1f,
	.clip = 0.5f,
	.warmup = 1,
	.steps = 4,
	.schedule = JIT_TRAIN_COSINE,
	.weight_decay = 0.1f,
	.threads = 1
};

void test_setups(void **state)
{
	static const struct {
		const char *device, *isa;
		int threads;
		bool slow;
	} setups[] = { { "cpu", NULL, 2, false },     { "cpu", NULL, 3, false },       { "cpu", NULL, 7, false },
		       { "cpu", "avx2", 1, false },   { "cpu", "avx512", 2, false },   { "ref", NULL, 1, false },
		       { "sim:sm90", NULL, 1, true }, { "sim:gfx1101", NULL, 1, true } };
	char model[1024];
	(void)state;

	if (!shared_path(model, "golden/llama-a"))
		return;
	for (int full = 0; full < 2; full++) {
		jit_train_options o = usual;
		const unsigned steps = test_quick() ? 2 : 4;
		o.full = full;
		o.dora = !full;
		jit_train *t = trained(model, o, steps), *none = trained(model, o, 0);
		assert_false(train_same(t, none));
		jit_train_close(none);
		for (unsigned i = 0; i < sizeof setups / sizeof *setups; i++) {
			if ((setups[i].slow || full) && test_quick())
				continue;
			o.device = setups[i].device;
			o.isa = setups[i].isa;
			o.threads = setups[i].threads;
			jit_error e = { 0 };
			o.size = sizeof o;
			o.model = model;
			jit_train *can = setups[i].isa ? jit_train_open(&o, &e) : NULL;
			if (setups[i].isa && !can) { /* this CPU has no such instructions */
				printf("# %s\n", e.message);
				continue;
			}
			jit_train_close(can);
			jit_train *other = trained(model, o, steps);
			if (!train_same(t, other))
				fail_msg("%s %s with %d threads gives other bits", o.device, o.isa ? o.isa : "",
				         o.threads);
			jit_train_close(other);
		}
		/* Each layer computed once, by two graphs. */
		o = usual;
		o.full = full;
		o.dora = !full;
		o.keep_activations = 1;
		jit_train *kept = trained(model, o, steps);
		assert_true(train_same(t, kept));
		jit_train_close(kept);
		jit_train_close(t);
	}
}

static double loss_of(jit_train *t)
{
	jit_train_report r = JIT_TRAIN_REPORT();
	jit_error e = { 0 };

	if (jit_train_evaluate(t, &r, &e) != JIT_OK)
		fail_msg("%s", e.message);
	return r.loss * (double)r.counted;
}

/* Two texts in a row have the losses that they have apart, and the second one's position begins at 0. */
static void packed_as_apart(const char *model)
{
	int32_t ids[24], texts[24];
	jit_train *t = trained(model, usual, 1);

	for (int i = 0; i < 24; i++) {
		ids[i] = (i * 37 + 5) % 300;
		texts[i] = i < 10 ? 4 : i < 15 ? -2 : 4;
	}
	train_feed(t, ids, NULL, 10);
	const double first = loss_of(t);
	train_feed(t, ids + 10, NULL, 5);
	const double second = loss_of(t);
	train_feed(t, ids + 15, NULL, 9);
	const double third = loss_of(t);
	assert_int_equal(jit_train_feed(t, ids, NULL, texts, 24, NULL), JIT_OK);
	const double together = loss_of(t);
	assert_true(fabs(together - (first + second + third)) < 1e-6 * together);
	train_feed(t, ids, NULL, 24);
	assert_true(fabs(loss_of(t) - together) > 1e-3 * together); /* as one text they see each other */
	jit_train_close(t);
}

void test_packed(void **state)
{
	static const char *const models[] = { "golden/gemma3-a", "golden-next/mamba2-a", "golden-next/mamba-a" };
	(void)state;

	for (unsigned i = 0; i < sizeof models / sizeof *models; i++) {
		char model[1024];
		if (!shared_path(model, models[i]))
			return;
		if (!test_quick() || i != 2)
			packed_as_apart(model);
	}
}

static void refused(int status, const jit_error *e, int expected, const char *says)
{
	if (status != expected || !strstr(e->message, says))
		fail_msg("status %d, \"%s\"; expected %d and \"%s\"", status, e->message, expected, says);
}

static void targets_refused(jit_train_options o, const char *targets, const char *says)
{
	jit_error e = { 0 };

	o.targets = targets;
	assert_null(jit_train_open(&o, &e));
	refused((int)e.code, &e, JIT_ERROR_ARGUMENT, says);
}

void test_refusals(void **state)
{
	jit_train_options o = usual;
	jit_error e = { 0 };
	char model[1024], other[1024];
	int32_t ids[25] = { 0 };
	(void)state;

	if (!shared_path(model, "golden/llama-a") || !shared_path(other, "golden/deepseekv3-a"))
		return;
	jit_cancel *cancel = jit_cancel_open(NULL);
	o.size = sizeof o;
	o.model = other;
	assert_null(jit_train_open(&o, &e));
	refused((int)e.code, &e, JIT_ERROR_UNSUPPORTED, "it has latent attention");
	o.model = "/dev/null/none";
	assert_null(jit_train_open(&o, &(jit_error){ 0 }));
	o.model = model;
	targets_refused(o, "q_proj, gate", "targets: gate");
	targets_refused(o, "in_proj_qkv", "the model has none of these matrices"); /* which the delta rule has */
	o.targets = NULL;
	o.cancel = cancel;
	jit_train *t = trained(model, o, 1), *same = trained(model, o, 2);
	refused(jit_train_feed(t, ids, NULL, NULL, 25, &e), &e, JIT_ERROR_ARGUMENT, "25 tokens, expected 2 to 24");
	refused(jit_train_feed(t, ids, NULL, NULL, 1, &e), &e, JIT_ERROR_ARGUMENT, "1 tokens, expected 2 to 24");
	ids[3] = 389;
	refused(jit_train_feed(t, ids, NULL, NULL, 4, &e), &e, JIT_ERROR_ARGUMENT, "token 3 of a row is 389");
	refused(jit_train_step(t, NULL, &e), &e, JIT_ERROR_ARGUMENT, "none was fed");
	train_feed(t, ids, (const uint8_t[]){ 1, 0, 0 }, 3);
	refused(jit_train_step(t, NULL, &e), &e, JIT_ERROR_ARGUMENT, "no token of the rows counts");
	jit_train_forget(t);
	/* A step that is cancelled, or whose loss is no number, changes nothing. */
	feed_two(t, 1);
	jit_cancel_set(cancel, 1);
	assert_int_equal(jit_train_step(t, NULL, &e), JIT_ERROR_CANCELLED);
	jit_cancel_set(cancel, 0);
	jit_train_tensor x = JIT_TRAIN_TENSOR();
	assert_int_equal(jit_train_get_tensor(t, 1, &x, &e), JIT_OK);
	float *kept = malloc(x.elements * sizeof *kept), *bad = malloc(x.elements * sizeof *bad);
	memcpy(kept, x.values, x.elements * sizeof *kept);
	for (size_t i = 0; i < x.elements; i++)
		bad[i] = NAN;
	assert_int_equal(jit_train_set_tensor(t, 1, bad, x.elements, &e), JIT_OK);
	refused(jit_train_step(t, NULL, &e), &e, JIT_ERROR_ARGUMENT, "not a finite number");
	refused(jit_train_set_tensor(t, 1, kept, 3, &e), &e, JIT_ERROR_ARGUMENT, "3 values, expected");
	refused(jit_train_get_tensor(t, 999, &x, &e), &e, JIT_ERROR_ARGUMENT, "tensor 999");
	assert_int_equal(jit_train_set_tensor(t, 1, kept, x.elements, &e), JIT_OK);
	train_step(t);
	assert_true(train_same(t, same));
	free(kept);
	free(bad);
	jit_train_close(t);
	jit_train_close(same);
	jit_cancel_close(cancel);
}

/* A copy with a changed byte, or cut there. */
static void damage(const char *path, uint8_t *bytes, size_t n, size_t at, bool changed)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	bytes[at] ^= changed ? 0x10 : 0;
	assert_int_equal(fwrite(bytes, 1, changed ? n : at, f), changed ? n : at);
	bytes[at] ^= changed ? 0x10 : 0;
	assert_int_equal(fclose(f), 0);
}

/* What was left in the middle goes on with the same bits; a file that is not this one's is refused. */
void test_state(void **state)
{
	char model[1024], path[] = "/tmp/t_train.XXXXXX";
	jit_error e = { 0 };
	size_t n;
	(void)state;

	if (!shared_path(model, "golden/llama-a"))
		return;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	jit_train *whole = trained(model, usual, 4), *part = trained(model, usual, 2);
	assert_int_equal(jit_train_write_state(part, path, &e), JIT_OK);
	jit_train_close(part);
	part = trained(model, usual, 0);
	assert_int_equal(jit_train_read_state(part, path, &e), JIT_OK);
	for (unsigned s = 2; s < 4; s++) {
		feed_two(part, s);
		assert_int_equal(train_step(part).step, s + 1);
	}
	assert_true(train_same(whole, part));

	uint8_t *bytes = file_bytes(path, &n);
	for (unsigned i = 0; i < (test_quick() ? 60u : 500u); i++) {
		const size_t known[] = { 3, 20, 30, n / 2, n - 1 },
			     drawn = (size_t)(i * UINT64_C(0x9E3779B97F4A7C15) >> 20) % n,
			     at = i < 5 ? known[i] : drawn;
		damage(path, bytes, n, at, i % 3 != 2);
		e = (jit_error){ 0 };
		assert_int_equal(jit_train_read_state(part, path, &e), JIT_ERROR_FORMAT);
		assert_true(e.message[0] && train_same(whole, part));
	}
	free(bytes);
	assert_int_equal(jit_train_write_state(part, path, &e), JIT_OK);
	jit_train_options o = usual;
	o.seed = 1;
	jit_train *other = trained(model, o, 0);
	refused(jit_train_read_state(other, path, &e), &e, JIT_ERROR_FORMAT, "of another training");
	refused(jit_train_write_state(other, "/dev/full/state", &e), &e, JIT_ERROR_IO, "cannot be made");
	refused(jit_train_read_state(other, "/dev/null/state", &e), &e, JIT_ERROR_IO, "/dev/null/state");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(jit_train_write_state(other, path, &e), &e, JIT_ERROR_IO, "no regular file, so it is not replaced");
	unlink(path);
	jit_train_close(whole);
	jit_train_close(part);
	jit_train_close(other);
}
