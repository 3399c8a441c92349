/* tests/server/t_fairness.c - whose answer goes on next and whose is parked: clients by key and by connection, with
 * every small number of answers that each has at work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdint.h>

#include "server/engine/choice.h"
#include "server/engine/fairness.h"
#include "server/engine/task.h"

enum { MAX = 8 };

/* Two clients: of one key, on two connections, or of two keys. */
static struct task tasks[2];
static struct choice choices[2 * MAX], waits[2];
static struct choice *running[2 * MAX];

static void begin(bool keys)
{
	for (unsigned i = 0; i < 2; i++) {
		tasks[i] = (struct task){ .client = { .key = keys ? i + 1 : 7, .line = keys ? 3 : i + 1 } };
		waits[i] = (struct choice){ .task = &tasks[i] };
	}
}

/* So many answers of each at work. */
static unsigned at_work(unsigned first, unsigned second)
{
	for (unsigned i = 0; i < first + second; i++) {
		choices[i] = (struct choice){ .task = &tasks[i >= first], .session = (jit_session *)(uintptr_t)16 };
		running[i] = &choices[i];
	}
	return first + second;
}

/* Who has fewer comes next; of equals the one that waits for longer. */
static void test_next(void **state)
{
	(void)state;
	for (int keys = 0; keys < 2; keys++)
		for (unsigned a = 0; a <= MAX; a++)
			for (unsigned b = 0; b <= MAX; b++)
				for (unsigned first = 0; first < 2; first++) {
					begin(keys);
					const unsigned n = at_work(a, b);
					struct choice *list = &waits[first], *other = &waits[!first];
					list->next = other;
					const bool fewer = first == 0 ? a > b : b > a; /* the other has */
					struct choice **next = fairness_next(&list, true, running, n);
					assert_non_null(next);
					assert_ptr_equal(*next, fewer ? other : list);
					assert_int_equal(fairness_before(list, other, running, n), !fewer);
				}
}

/* Who has two more than the one that waits gives up one of them, the last. */
static void test_victim(void **state)
{
	(void)state;
	for (int keys = 0; keys < 2; keys++)
		for (unsigned a = 0; a <= MAX; a++)
			for (unsigned b = 0; b <= MAX; b++) {
				begin(keys);
				const unsigned n = at_work(a, b);
				struct choice *victim = fairness_victim(&waits[1], running, n);
				assert_ptr_equal(victim, a > b + 1 ? &choices[a - 1] : NULL);
			}
}

static void test_same_client(void **state)
{
	static const struct {
		struct client a, b;
		bool same;
	} rows[] = { { { 1, 1 }, { 1, 1 }, true },  { { 1, 1 }, { 1, 2 }, true }, { { 1, 1 }, { 2, 1 }, false },
		     { { 0, 1 }, { 0, 2 }, false }, { { 0, 1 }, { 0, 1 }, true }, { { 0, 1 }, { 1, 1 }, false } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(fairness_same_client(&rows[i].a, &rows[i].b), rows[i].same);
		assert_int_equal(fairness_same_client(&rows[i].b, &rows[i].a), rows[i].same);
	}
}

/* What is parked is not at work, and the client with the fewest goes on first. */
static void test_parked(void **state)
{
	(void)state;
	for (int keys = 0; keys < 2; keys++) {
		begin(keys);
		const unsigned n = at_work(4, 3);
		assert_null(fairness_parked(running, n));
		choices[0].parked = choices[6].parked = true;
		assert_ptr_equal(fairness_parked(running, n), &choices[6]); /* 3 and 2 */
		choices[1].parked = true;
		assert_ptr_equal(fairness_parked(running, n), &choices[0]); /* 2 and 2: the one that came first */
		choices[2].parked = true;
		assert_ptr_equal(fairness_parked(running, n), &choices[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_next), cmocka_unit_test(test_victim),
		                            cmocka_unit_test(test_same_client), cmocka_unit_test(test_parked) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
