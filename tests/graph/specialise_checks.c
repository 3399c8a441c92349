/* tests/graph/specialise_checks.c - see specialise_checks.h. */
#include "tests/graph/specialise_checks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "include/jitrun_graph.h"

static const char text[] = "size n\nsize m\ninput x f32[n,m]\ninput w f32[m,5]\nd = dot x w left=[1] right=[0]\n"
			   "y = tanh d\ns = reduce_sum y axes=[0]\noutput y\noutput s\n";

static jit_specialiser *open_text(jit_compute *c, const char *sizes)
{
	jit_error err = { 0 };
	jit_specialiser *s = jit_specialiser_open(c, &JIT_GRAPH_OPTIONS(.source = text, .sizes = sizes), &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static jit_executable *get(jit_specialiser *s, const char *sizes)
{
	jit_error err = { 0 };
	jit_executable *x = jit_specialiser_get(s, sizes, &err);

	if (!x)
		fail_msg("%s: %s", sizes, err.message);
	return x;
}

/* Runs it beside the interpreter of the graph in these sizes, bit for bit. */
static void run(jit_executable *x, unsigned n, unsigned m)
{
	static float in[2][64 * 64], out[2][64 * 5], plain[2][64 * 5];
	char sizes[40];
	jit_error err = { 0 };

	for (unsigned i = 0; i < 64 * 64; i++) {
		in[0][i] = (float)((int)(i * 37 % 101) - 50) / 64;
		in[1][i] = (float)((int)(i * 61 % 89) - 44) / 64;
	}
	snprintf(sizes, sizeof sizes, "n=%u m=%u", n, m);
	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.source = text, .sizes = sizes), &err);
	assert_non_null(g);
	const void *const from[] = { in[0], in[1] };
	assert_int_equal(jit_graph_interpret(g, from, 2, (void *[]){ plain[0], plain[1] }, 2, &err), JIT_OK);
	if (jit_executable_run(x, from, 2, (void *[]){ out[0], out[1] }, 2, &err) != JIT_OK)
		fail_msg("%s: %s", sizes, err.message);
	assert_memory_equal(out[0], plain[0], n * 5 * sizeof(float));
	assert_memory_equal(out[1], plain[1], 5 * sizeof(float));
	jit_graph_close(g);
}

static jit_specialisation report(jit_specialiser *s, size_t number)
{
	jit_specialisation r = JIT_SPECIALISATION();
	jit_error err = { 0 };

	if (jit_specialiser_report(s, number, &r, &err) != JIT_OK)
		fail_msg("%s", err.message);
	return r;
}

static void check_sizes(jit_compute *c)
{
	jit_specialiser *s = open_text(c, NULL), *fixed = open_text(c, "m=7");
	jit_executable *x = get(s, "n=9 m=7"), *y = get(s, "n=1 m=7");

	run(x, 9, 7);
	run(y, 1, 7);
	run(x, 9, 7);
	assert_ptr_equal(get(s, "m=7 n=9"), x);
	assert_ptr_not_equal(x, y);
	run(get(fixed, "n=9"), 9, 7);
	assert_int_equal(jit_specialiser_count(s), 2);
	jit_specialisation r = report(s, 0);
	assert_string_equal(r.sizes, "m=7 n=9");
	assert_int_equal(r.state, JIT_SPECIALISED);
	assert_int_equal(r.ahead, 0);
	assert_int_equal(r.uses, 2);
	assert_true(r.kernels > 0 && r.generated > 0 && r.took_ns > 0 && r.on_host == 0);
	assert_true(report(s, 1).began_ns >= r.began_ns + r.took_ns);
	assert_int_equal(report(s, 1).uses, 1);
	/* The same shapes have the same code. */
	r = report(fixed, 0);
	assert_string_equal(r.sizes, "n=9");
	assert_int_equal(r.generated, 0);
	jit_specialiser_close(fixed);
	jit_specialiser_close(s);
}

enum { THREADS = 3, SETS = 6 };
struct asking {
	jit_specialiser *s;
	jit_executable *found[SETS];
	unsigned first;
};

static void *ask(void *user)
{
	struct asking *a = user;

	for (unsigned i = 0; i < SETS; i++) {
		char sizes[40];
		const unsigned k = (a->first + i) % SETS;
		snprintf(sizes, sizeof sizes, "n=%u m=%u", 2 + 3 * k, 11 + k);
		a->found[k] = jit_specialiser_get(a->s, sizes, NULL);
	}
	return NULL;
}

static void check_sizes_ahead(jit_compute *c)
{
	jit_specialiser *s = open_text(c, NULL);
	struct asking a[THREADS];
	pthread_t thread[THREADS];
	jit_error err = { 0 };
	unsigned ahead = 0;

	for (unsigned k = 0; k < SETS; k++) {
		char sizes[40];
		snprintf(sizes, sizeof sizes, "m=%u n=%u", 11 + k, 2 + 3 * k);
		assert_int_equal(jit_specialiser_ahead(s, sizes, &err), JIT_OK);
		assert_int_equal(jit_specialiser_ahead(s, sizes, &err), JIT_OK);
	}
	assert_int_equal(jit_specialiser_count(s), SETS);
	for (unsigned i = 0; i < THREADS; i++) {
		a[i] = (struct asking){ .s = s, .first = SETS - 1 - i };
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned k = 0; k < SETS; k++) {
		const jit_specialisation r = report(s, k);
		for (unsigned i = 0; i < THREADS; i++)
			assert_ptr_equal(a[i].found[k], a[0].found[k]);
		assert_int_equal(r.state, JIT_SPECIALISED);
		assert_int_equal(r.uses, THREADS);
		ahead += r.ahead != 0;
		run(a[0].found[k], 2 + 3 * k, 11 + k);
	}
	assert_int_equal(jit_specialiser_count(s), SETS);
	assert_true(ahead <= SETS);
	/* One that nobody asks for is made all the same. */
	assert_int_equal(jit_specialiser_ahead(s, "n=40 m=3", &err), JIT_OK);
	while (report(s, SETS).state == JIT_SPECIALISING)
		;
	assert_int_equal(report(s, SETS).ahead, 1);
	assert_int_equal(report(s, SETS).uses, 0);
	run(get(s, "n=40 m=3"), 40, 3);
	assert_int_equal(report(s, SETS).uses, 1);
	assert_int_equal(report(s, SETS).waited_ns, 0);
	/* Closed with work in the queue. */
	for (unsigned k = 0; k < SETS; k++) {
		char sizes[40];
		snprintf(sizes, sizeof sizes, "n=%u m=50", k + 20);
		assert_int_equal(jit_specialiser_ahead(s, sizes, &err), JIT_OK);
	}
	jit_specialiser_close(s);
}

static void refused(int status, const jit_error *err, const char *why)
{
	if (status == JIT_OK || !strstr(err->message, why))
		fail_msg("%d: \"%s\", expected: \"%s\"", status, err->message, why);
}

static void check_sizes_refused(jit_compute *c)
{
	jit_specialiser *s = open_text(c, "m=4");
	jit_specialisation r = JIT_SPECIALISATION();
	jit_error err = { 0 };

	assert_null(jit_specialiser_get(s, "k=4", &err));
	refused(err.code, &err, "size n has no value");
	assert_int_equal(report(s, 0).state, JIT_SPECIALISE_FAILED);
	assert_null(jit_specialiser_get(s, "n=4 m=5", &err));
	refused(err.code, &err, "sizes: m has two values");
	assert_null(jit_specialiser_get(s, "n", &err));
	refused(err.code, &err, "expected name=number");
	/* The thread's failure is said when it is asked for. */
	assert_int_equal(jit_specialiser_ahead(s, "", &err), JIT_OK);
	while (report(s, 2).state == JIT_SPECIALISING)
		;
	assert_int_equal(report(s, 2).state, JIT_SPECIALISE_FAILED);
	assert_null(jit_specialiser_get(s, "", &err));
	refused(err.code, &err, "size n has no value");
	refused(jit_specialiser_report(s, 3, &r, &err), &err, "set of sizes 3 of a specialiser that has fewer");
	run(get(s, "n=3"), 3, 4);
	jit_specialiser_close(s);
	assert_null(jit_specialiser_open(c, &JIT_GRAPH_OPTIONS(), &err));
	refused(err.code, &err, "neither source nor path");
	assert_null(jit_specialiser_open(c, &JIT_GRAPH_OPTIONS(.path = "/nowhere/at/all"), &err));
	refused(err.code, &err, "/nowhere/at/all");
}

void test_changing_sizes(void **state)
{
	jit_error err = { 0 };
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.threads = 2, .cache_dir = ""), &err);
	(void)state;

	assert_non_null(c);
	check_sizes(c);
	check_sizes_ahead(c);
	check_sizes_refused(c);
	jit_compute_close(c);
}
