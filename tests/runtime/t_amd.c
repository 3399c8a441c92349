/* tests/runtime/t_amd.c - what of the device amd needs neither a card nor a driver: the sizes of a queue's areas, the
 * kernels that copy, code objects that are damaged, turns between processes, names. t_amd_faked runs models. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/rdna/copy.h"
#include "runtime/device/amd/amd.h"
#include "runtime/host/cancel.h"
#include "sim/sim.h"
#include "tests/support/shared.h"

/* ---- a queue's areas */

/* The first was seen on an RX 7800 XT; the others are worked out by hand from the driver's rule. */
static void test_queue_sizes(void **state)
{
	static const struct {
		uint32_t version, units;
		uint64_t ctl_stack, cwsr;
	} known[] = { { 110001, 60, 0x6000, 0x1b72000 }, { 100300, 72, 0x7000, 0x17ef000 },
		      { 100300, 80, 0x7000, 0x1a97000 }, { 110000, 96, 0xa000, 0x2bea000 },
		      { 110002, 32, 0x4000, 0xaa4000 },  { 100306, 2, 0x1000, 0xab000 },
		      { 120001, 64, 0x7000, 0x1d47000 } };
	(void)state;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct amd_queue_sizes s =
			amd_queue_sizes(known[i].version, known[i].units, amd_vgpr_bytes(known[i].version));
		assert_int_equal(s.ctl_stack, known[i].ctl_stack);
		assert_int_equal(s.cwsr, known[i].cwsr);
		assert_true(s.save_area >= s.cwsr + known[i].units * 1024u);
		assert_int_equal(s.save_area % 4096, 0);
	}
}

/* ---- copies */

enum { ROOM = 40000, GUARD = 0xa5 };

static void copy(struct sim_device *sim, const struct sim_kernel *k, uint8_t *to, const uint8_t *from, uint32_t n,
                 uint32_t groups)
{
	const struct rdna_copy_args a = { (uintptr_t)to, (uintptr_t)from, n, groups * RDNA_COPY_ITEMS };
	struct error err = { 0 };

	if (!sim_dispatch(sim, k, &a, sizeof a, (uint32_t[3]){ groups, 1, 1 }, (uint32_t[3]){ RDNA_COPY_ITEMS, 1, 1 },
	                  &(struct sim_options){ .memory = SIM_MEMORY_RANDOM, .seed = n, .races = true }, &err))
		fail_msg("%s: %u: %s", sim_target(sim), n, err.text);
}

static void check_copies(struct sim_device *sim, const struct sim_kernel *k, uint8_t *from, uint8_t *to, uint32_t part)
{
	static const uint32_t sizes[] = { 1, 15, 255, 256, 257, 511, 1000, 2300 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (uint32_t groups = 1; groups <= 4; groups += 3) {
			uint32_t at = part == 1 ? (uint32_t)i : 16, bytes = sizes[i] * part;
			for (uint32_t b = 0; b < ROOM; b++)
				from[b] = (uint8_t)(b * 7 + b / 251 + i);
			memset(to, GUARD, ROOM);
			copy(sim, k, to + at, from + 32, sizes[i], groups);
			assert_memory_equal(to + at, from + 32, bytes);
			for (uint32_t b = 0; b < ROOM; b++)
				if ((b < at || b >= at + bytes) && to[b] != GUARD)
					fail_msg("%s: %u pieces of %u bytes: byte %u was written", sim_target(sim),
					         sizes[i], part, b);
		}
}

static void test_copies(void **state)
{
	uint8_t *from = aligned_alloc(64, ROOM), *to = aligned_alloc(64, ROOM), *elf;
	size_t size;
	(void)state;

	for (int t = TARGET_GFX1030; t <= TARGET_GFX1201; t += test_quick() ? 3 : 1) {
		struct error err = { 0 };
		struct sim_device *sim = sim_open(target_table[t].name, &err);
		assert_non_null(sim);
		assert_true(rdna_copy_make(&elf, &size, &target_table[t], &err));
		struct sim_object *o = sim_load(sim, elf, size, &err);
		if (!o)
			fail_msg("%s: %s", target_table[t].name, err.text);
		assert_true(sim_map(sim, from, ROOM, "from", false, &err) && sim_map(sim, to, ROOM, "to", true, &err));
		check_copies(sim, sim_find(o, RDNA_COPY_VECTORS), from, to, 16);
		check_copies(sim, sim_find(o, RDNA_COPY_BYTES), from, to, 1);
		sim_unload(o);
		sim_close(sim);
		free(elf);
	}
	free(from);
	free(to);
}

/* ---- code objects */

/* What the simulator's reader says of the object, ours says too; of one that is cut, or has a byte changed, anything
 * but an address outside of it. */
static void test_code(void **state)
{
	const char *const names[] = { RDNA_COPY_VECTORS, RDNA_COPY_BYTES };
	struct amd_code code = { .buffer = { .address = (void *)(uintptr_t)0x10000000, .bytes = 1 << 20 } };
	struct error err = { 0 };
	uint8_t *elf;
	size_t size;
	(void)state;

	assert_true(rdna_copy_make(&elf, &size, target_find("gfx1101"), &err));
	struct sim_device *sim = sim_open("gfx1101", &err);
	struct sim_object *o = sim_load(sim, elf, size, &err);
	for (int i = 0; i < 2; i++) {
		struct amd_kernel k;
		const struct sim_kernel *truth = sim_find(o, names[i]);
		assert_true(amd_code_find(&code, elf, size, names[i], &k, &err));
		assert_int_equal(k.vgprs, truth->vgprs);
		assert_int_equal(k.lds, truth->lds_size);
		assert_int_equal(k.kernarg_bytes, truth->kernarg_size);
		assert_true(k.descriptor > 0x10000000 && k.descriptor % 64 == 0 &&
		            k.descriptor < 0x10000000 + size + 4096);
		for (size_t n = 0; n < size; n++) {
			uint8_t *cut = malloc(n + 1); /* so that a sanitizer sees who reads on */
			memcpy(cut, elf, n);
			struct error why = { 0 };
			if (n < 64)
				assert_false(amd_code_find(&code, cut, n, names[i], &k, &why));
			else
				amd_code_find(&code, cut, n, names[i], &k, &why);
			free(cut);
			elf[n] ^= 0xff;
			amd_code_find(&code, elf, size, names[i], &k, &why);
			elf[n] ^= 0xff;
		}
	}
	struct amd_kernel k;
	assert_false(amd_code_find(&code, elf, size, "copy", &k, &err));
	assert_non_null(strstr(err.text, "\"copy\""));
	sim_unload(o);
	sim_close(sim);
	free(elf);
}

/* ---- turns */

static struct amd player[2];
static _Atomic int inside, rounds[2];
static _Atomic int together, starved;

static void *play(void *user)
{
	int me = *(int *)user, seen = 0;
	struct error err = { 0 };

	for (int i = 0; i < 20; i++) {
		int before = rounds[!me];
		if (!amd_lock_take(&player[me], NULL, &err))
			return (void *)1;
		together += inside++ != 0;
		usleep(2000);
		inside--;
		rounds[me]++;
		amd_lock_give(&player[me]);
		seen = rounds[!me] == before && rounds[!me] > 0 && rounds[!me] < 20 ? seen + 1 : 0;
		starved += seen > 8;
	}
	return NULL;
}

static void remove_locks(void)
{
	static const char *const paths[] = { "/run/lock/jitrun-amd-%llx.lock", "/run/lock/jitrun-amd-%llx.turn",
		                             "/tmp/jitrun-amd-%llx.lock", "/tmp/jitrun-amd-%llx.turn" };
	char path[96];

	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, paths[i], (unsigned long long)player[0].card.unique_id);
		unlink(path);
	}
}

/* Two that launch without a pause between are never inside together, and nobody stands outside for long. */
static void test_alternating(void **state)
{
	int number[2] = { 0, 1 };
	struct error err = { 0 };
	pthread_t thread[2];
	void *failed;
	(void)state;

	for (int i = 0; i < 2; i++) {
		player[i].card.unique_id = 0x7e57000000000000 + (uint64_t)getpid();
		assert_true(amd_lock_open(&player[i], &err));
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, play, &number[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
		amd_lock_close(&player[i]);
	}
	assert_int_equal(together, 0);
	assert_int_equal(starved, 0);
	remove_locks();
}

/* Who waits for another process can be told to stop, and leaves the turn to the next. */
static void test_cancelled_wait(void **state)
{
	struct cancel cancel = { .own = { 1 } };
	struct error err = { 0 };
	(void)state;

	for (int i = 0; i < 2; i++) {
		player[i].card.unique_id = 0x7e57000000000000 + (uint64_t)getpid();
		assert_true(amd_lock_open(&player[i], &err));
	}
	assert_true(amd_lock_take(&player[0], &cancel, &err)); /* nobody is waited for */
	assert_false(amd_lock_take(&player[1], &cancel, &err));
	assert_int_equal(err.code, ERROR_CANCELLED);
	amd_lock_give(&player[0]);
	err = (struct error){ 0 };
	assert_true(amd_lock_take(&player[0], NULL, &err));
	amd_lock_give(&player[0]);
	for (int i = 0; i < 2; i++)
		amd_lock_close(&player[i]);
	remove_locks();
}

/* ---- names */

static void refuse(const char *name, const char *isa, const char *word)
{
	struct error err = { 0 };
	struct device *d = device_open(name, isa, &err);

	if (d || !strstr(err.text, word))
		fail_msg("\"%s\": \"%s\", expected \"%s\"", name, err.text, word);
}

static void test_names(void **state)
{
	(void)state;
	refuse("amdgpu", NULL, "\"amdgpu\" is unknown; known: cpu, ref, sim:..., amd");
	refuse("amd:", NULL, "is unknown");
	refuse("amd", "avx2", "the device amd has its card's instruction set");
	refuse("cpu:1", NULL, "\"cpu:1\" is unknown");
	refuse("amd:31", NULL, ""); /* with or without cards */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_queue_sizes),    cmocka_unit_test(test_copies),
		                            cmocka_unit_test(test_code),           cmocka_unit_test(test_alternating),
		                            cmocka_unit_test(test_cancelled_wait), cmocka_unit_test(test_names) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
