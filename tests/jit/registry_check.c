/* tests/jit/registry_check.c - see registry_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdatomic.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "tests/jit/registry_check.h"

_Atomic unsigned builds, inside, max_inside, callers;
_Atomic bool fail_builds;
_Atomic unsigned hold_until_callers; /* a build_counted goes on once so many threads have begun to ask */
_Atomic unsigned hold_until_builds;  /* a build_counted goes on once so many have begun, or after a long time */

bool build_counted(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	unsigned now = ++inside, max = max_inside;

	while (now > max && !atomic_compare_exchange_weak(&max_inside, &max, now))
		;
	builds++;
	while (callers < hold_until_callers)
		usleep(100);
	for (int i = 0; i < 200000 && builds < hold_until_builds; i++)
		usleep(100);
	inside--;
	if (fail_builds)
		return error_set(err, ERROR_UNSUPPORTED, "rows %u cannot be done today", key->rows);
	ir_fstore1(ir, ir_aload(ir, ir_arg(ir), 0), ir_fconst(ir, (float)key->rows), 0);
	return true;
}

struct key make_key(uint32_t n)
{
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = KEY_NORM;
	k.target = TARGET_AVX2;
	k.rows = n + 1;
	k.codegen = key_codegen_x86;
	return k;
}

bool is_native(void) { return target_native(NULL) != NULL; }

struct registry *open_registry(struct cache *cache)
{
	const struct registry_options opt = { .build = build_counted, .cache = cache };
	struct registry *r = registry_open(&opt, NULL);

	assert_non_null(r);
	builds = inside = max_inside = callers = hold_until_callers = hold_until_builds = 0;
	fail_builds = false;
	return r;
}

struct registry_counters count_code(struct registry *r)
{
	struct registry_counters n;

	registry_count(r, &n);
	return n;
}

bool does_its_work(const struct kernel *k)
{
	float out = -1;
	const uint64_t arg[1] = { (uint64_t)(uintptr_t)&out };

	if (!k->run)
		return !is_native();
	k->run(arg, 0, 1);
	return out == (float)k->key.rows;
}

char registry_dir[24] = "/tmp/t_registry-XXXXXX";
