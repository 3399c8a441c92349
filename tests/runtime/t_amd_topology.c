/* tests/runtime/t_amd_topology.c - what is read of AMD cards in a folder that looks like Linux's /sys and /dev: cards
 * that can be used, each reason why one cannot, and text that is cut, changed or wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/device/amd/amd_topology.h"
#include "runtime/device/amd/kfd_abi.h"

static char root[] = "/tmp/t_amd_topology.XXXXXX";

/* A Radeon RX 7800 XT as Linux 6.8 tells of it. */
static const char usual[] =
	"cpu_cores_count 0\nsimd_count 120\nmem_banks_count 1\nmax_waves_per_simd 16\n"
	"lds_size_in_kb 64\nwave_front_size 32\nsimd_per_cu 2\ngfx_target_version 110001\n"
	"vendor_id 4098\ndevice_id 29822\nlocation_id 768\ndomain 0\ndrm_render_minor 128\n"
	"max_engine_clk_fcompute 2565\nlocal_mem_size 0\nunique_id 11664919165563797841\nnum_xcc 1\n"
	"max_engine_clk_ccompute 4500\n";
static const char bank[] = "heap_type 1\nsize_in_bytes 17163091968\nflags 0\nwidth 256\nmem_clk_max 1219\n";

static void put(const char *name, const char *text, size_t n)
{
	char path[700];

	snprintf(path, sizeof path, "%s%s", root, name);
	for (char *p = path + sizeof root; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

static void put_node(unsigned node, const char *file, const char *text)
{
	char name[200];

	snprintf(name, sizeof name, KFD_TOPOLOGY_PATH "/nodes/%u/%s", node, file);
	put_text(name, text);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s, (void)type, (void)f;
	return remove(path);
}

static void clear(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(root, 0700), 0);
}

static void machine(const char *properties)
{
	clear();
	put_text(KFD_TOPOLOGY_PATH "/generation_id", "2\n");
	put_text("/dev/kfd", "");
	put_text("/dev/dri/renderD128", "");
	put_node(0, "gpu_id", "0\n");
	put_node(0, "properties", "cpu_cores_count 16\nsimd_count 0\n");
	put_node(1, "gpu_id", "51143\n");
	put_node(1, "properties", properties);
	put_node(1, "mem_banks/0/properties", bank);
	put_text("/sys/class/drm/renderD128/device/revision", "0xc8\n");
	put_text("/usr/share/libdrm/amdgpu.ids", "# names\n1.0.0\n747E,\tC0,\tAMD Other\n747E,\tC8,\tAMD Radeon "
	                                         "RX 7800 XT\n747E,\tFF,\tAMD Radeon RX 7700 XT\n");
}

static struct amd_topology read_all(void)
{
	struct amd_topology t;
	struct error err = { 0 };

	if (!amd_topology_read_below(&t, root, &err))
		fail_msg("%s", err.text);
	return t;
}

static void a_card_is_read(void **state)
{
	(void)state;
	machine(usual);
	const struct amd_topology t = read_all();
	const struct amd_card *c = &t.card[0];

	assert_int_equal(t.n, 1);
	assert_string_equal(c->why_not.text, "");
	assert_int_equal(c->node, 1);
	assert_int_equal(c->gpu_id, 51143);
	assert_string_equal(c->target->name, "gfx1101");
	assert_string_equal(c->name, "Radeon RX 7800 XT");
	assert_string_equal(c->pci, "0000:03:00.0");
	assert_int_equal(c->render_minor, 128);
	assert_int_equal(c->units, 60);
	assert_int_equal(c->lds_bytes, 65536);
	assert_int_equal(c->clock_mhz, 2565);
	assert_true(c->unique_id == UINT64_C(11664919165563797841));
	assert_false(c->integrated);
	assert_true(c->vram_bytes == UINT64_C(17163091968) && c->visible_bytes == c->vram_bytes);
	assert_int_equal(c->bandwidth / 1000000000, 624); /* its data sheet says so */
	assert_int_equal(c->cwsr_bytes, 0);
}

/* Every target's version is its name. */
static void targets_have_their_versions(void **state)
{
	static const struct {
		unsigned version;
		const char *name;
	} known[] = { { 100300, "gfx1030" }, { 100306, "gfx1036" }, { 110000, "gfx1100" }, { 110003, "gfx1103" },
		      { 110500, "gfx1150" }, { 110501, "gfx1151" }, { 120000, "gfx1200" }, { 120001, "gfx1201" } };
	char text[sizeof usual + 32];

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		snprintf(text, sizeof text, "gfx_target_version %u\n%s", known[i].version, usual);
		machine(text);
		const struct amd_topology t = read_all();
		assert_string_equal(t.card[0].target->name, known[i].name);
		bool inside = strchr("365", known[i].name[6]) != NULL || known[i].version / 100 == 1105;
		assert_int_equal(t.card[0].integrated, inside);
		assert_int_equal(t.card[0].bandwidth == 0, inside);
	}
}

static char *changed(const char *from, const char *to)
{
	static char text[sizeof usual + 200];
	const char *at = strstr(usual, from);

	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - usual), usual, to, at + strlen(from));
	return text;
}

static void each_reason_is_named(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} wrong[] = { { "110001", "90010", "no code for gfx90a" },
		      { "110001", "0", "Linux 5.19" },
		      { "110001", "-1", "gfx_target_version is \"-1\"" },
		      { "110001", "1e5", "gfx_target_version is \"1e5\"" },
		      { "110001", "", "gfx_target_version is \"\"" },
		      { "simd_count 120", "simd_count 99999999999999999999999", "simd_count is" },
		      { "simd_count 120", "simd_count 0", "0 compute units" },
		      { "simd_per_cu 2", "simd_per_cu 4", "of 4 SIMDs" },
		      { "lds_size_in_kb 64", "lds_size_in_kb 128", "131072 bytes of LDS" },
		      { "max_waves_per_simd 16", "max_waves_per_simd 20", "with 20 waves" },
		      { "drm_render_minor 128", "drm_render_minor 129", "/dev/dri/renderD129 cannot be opened" },
		      { "unique_id 1", "unique_id \033[2J", "unique_id is \"\\x1b[2J" } };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		machine(changed(wrong[i].from, wrong[i].to));
		struct error err = { 0 };
		const struct amd_topology t = read_all();
		assert_int_equal(t.n, 1);
		if (!strstr(t.card[0].why_not.text, wrong[i].says))
			fail_msg("%s -> %s: %s", wrong[i].from, wrong[i].to, t.card[0].why_not.text);
		assert_null(amd_topology_find(&t, "", &err));
		assert_non_null(strstr(err.text, wrong[i].says));
	}
	machine(usual);
	char path[600];
	snprintf(path, sizeof path, "%s/dev/kfd", root);
	unlink(path);
	assert_non_null(strstr(read_all().card[0].why_not.text, "/dev/kfd cannot be opened: No such file"));
}

static void no_driver_is_a_sentence(void **state)
{
	struct amd_topology t;
	struct error err = { 0 };

	(void)state;
	clear();
	assert_false(amd_topology_read_below(&t, root, &err));
	assert_non_null(strstr(err.text, "load the kernel module amdgpu"));
	put_text(KFD_TOPOLOGY_PATH "/generation_id", "two\n");
	err = (struct error){ 0 };
	assert_false(amd_topology_read_below(&t, root, &err));
	assert_non_null(strstr(err.text, "generation_id cannot be read"));
	put_text(KFD_TOPOLOGY_PATH "/generation_id", "2\n");
	assert_true(amd_topology_read_below(&t, root, &err));
	assert_int_equal(t.n, 0);
}

static void small_bars_hide_memory(void **state)
{
	(void)state;
	machine(usual);
	put_node(1, "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 268435456\nwidth 256\nmem_clk_max 1219\n");
	put_node(1, "mem_banks/1/properties", "heap_type 2\nsize_in_bytes 16894656512\nwidth 256\nmem_clk_max 1219\n");
	put_node(1, "mem_banks/2/properties", "heap_type 0\nsize_in_bytes 999\nwidth 64\nmem_clk_max 3200\n");
	const struct amd_topology t = read_all();
	assert_true(t.card[0].vram_bytes == UINT64_C(17163091968));
	assert_int_equal(t.card[0].visible_bytes, 0);
	assert_int_equal(t.card[0].bandwidth / 1000000000, 624);
}

static void cards_are_found_by_number_and_target(void **state)
{
	struct error err = { 0 };

	(void)state;
	machine(changed("110001", "90010"));
	put_node(2, "gpu_id", "7\n");
	put_node(2, "properties", changed("110001", "100300"));
	put_node(3, "gpu_id", "8\n");
	put_node(3, "properties", usual);
	const struct amd_topology t = read_all();
	assert_int_equal(t.n, 3);
	assert_ptr_equal(amd_topology_find(&t, "", &err), &t.card[1]);
	assert_ptr_equal(amd_topology_find(&t, "2", &err), &t.card[2]);
	assert_ptr_equal(amd_topology_find(&t, "gfx1101", &err), &t.card[2]);
	assert_null(amd_topology_find(&t, "0", &err));
	assert_non_null(strstr(err.text, "no code for gfx90a"));
	for (const char *const *w = (const char *const[]){ "3", "gfx1200", "-1", "99999999999999999999", NULL }; *w;
	     w++) {
		err = (struct error){ 0 };
		assert_null(amd_topology_find(&t, *w, &err));
		assert_non_null(strstr(err.text, "there is no AMD card"));
	}
}

/* Whatever the files hold, cards are well formed: those without a reason have all that is needed. */
static void any_text_is_survived(void **state)
{
	uint32_t seed = 12345;
	unsigned usable = 0;
	char text[sizeof usual];

	(void)state;
	machine(usual);
	for (unsigned i = 0; i < (getenv("JITRUN_TEST_QUICK") ? 300 : 3000); i++) {
		size_t n = sizeof usual - 1;
		memcpy(text, usual, sizeof text);
		for (unsigned k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525 + 1013904223;
			size_t at = (seed >> 8) % n;
			if (seed >> 30 == 0)
				n = at + 1;
			else
				text[at] = (char)(seed >> 24);
		}
		put(KFD_TOPOLOGY_PATH "/nodes/1/properties", text, n);
		const struct amd_topology t = read_all();
		assert_int_equal(t.n, 1);
		const struct amd_card *c = &t.card[0];
		usable += c->why_not.code == ERROR_NONE;
		assert_true(c->why_not.code || (c->target && c->units && c->lds_bytes == 65536 && *c->name));
	}
	assert_true(usable > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_is_read),         cmocka_unit_test(targets_have_their_versions),
		cmocka_unit_test(each_reason_is_named),   cmocka_unit_test(no_driver_is_a_sentence),
		cmocka_unit_test(small_bars_hide_memory), cmocka_unit_test(cards_are_found_by_number_and_target),
		cmocka_unit_test(any_text_is_survived)
	};

	if (!mkdtemp(root))
		return 99;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return failed;
}
