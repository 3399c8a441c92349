/* tests/pull/t_pull.c - jitpull against a hub of this test's own: what it fetches and where that lies, what it tells
 * whom, and everything that can go wrong on the way. Nothing outside of this machine is asked. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/pull/pull_check.h"

static void test_fetches(void **state)
{
	char want[300], ref[64];

	clear();
	SET(gguf);
	assert_int_equal(pull("o/n"), 0);
	snprintf(want, sizeof want, "%s/cache/" SNAPSHOT "m-Q4_K_M.gguf\n", root);
	assert_string_equal(out, want);
	assert_true(holds(&gguf[5]) && holds(&gguf[1]));
	assert_false(is_there(SNAPSHOT "m-F16.gguf") || is_there(SNAPSHOT "README.md"));
	snprintf(want, sizeof want, "cache/models--o--n/refs/main");
	read_into(ref, want);
	assert_string_equal(ref, FAKE_COMMIT);
	assert_non_null(strstr(err, "2 files"));
	/* The witness knows nothing of our hashes. */
	assert_int_equal(shell("cd %s/cache/models--o--n/blobs && for f in *; do echo \"$f  $f\"; done | sha256sum -c "
	                       "--quiet",
	                       root),
	                 0);
	assert_int_equal(shell("HF_HUB_CACHE=%s/cache ./jitrun list | grep -q o/n/m-Q4_K_M.gguf", root), 0);
	hub.n_seen = 0;
	assert_int_equal(pull("o/n -q"), 0);
	assert_int_equal(fake_hub_count("GET", "resolve"), 0);
	assert_string_equal(err, "");
}

/* Names, and which files they mean. */
static void test_names(void **state)
{
	static const struct {
		const char *name, *file;
	} good[] = {
		{ "hf.co/o/n:F16", "m-F16.gguf" },
		{ "o/n:f16", "m-F16.gguf" },
		{ "o/n:BF16@main", "m-BF16.gguf" },
		{ "o/n@main:bf16", "m-BF16.gguf" },
		{ "https://huggingface.co/o/n", "m-Q4_K_M.gguf" },
		{ "https://huggingface.co/o/n/tree/main", "m-Q4_K_M.gguf" },
		{ "https://huggingface.co/o/n/blob/main/m-IQ2_XS.gguf?download=true", "m-IQ2_XS.gguf" },
		{ "HuggingFace.co/o/n:latest", "m-Q4_K_M.gguf" },
		{ "o/n:Q8_0", "m-Q8_0-00001-of-00003.gguf" },
		{ "o/n --file m-Q8_0-00002-of-00003.gguf", "m-Q8_0-00002-of-00003.gguf" },
		{ "o/n:m-IQ2_XS.gguf", "m-IQ2_XS.gguf" },
		{ "o/n@" FAKE_COMMIT, "m-Q4_K_M.gguf" },
	};
	static const char *const bad[] = {
		"n",          "o/",      "../n",         "o/n:",        "o/n@..",
		"o/n@a/../b", "-o/n",    "o--p/n",       "o/n:a/b",     "https://example.org/o/n",
		"/o/n",       "o/n:a:b", "datasets/o/n", "o/n/../../x", "o/n --file ../x",
		"o/n@/etc",   "o/n.",    "o/..",         "o/n:%41",     "'o/n\n'"
	};

	clear();
	SET(gguf);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(pull(good[i].name), 0);
		out[strcspn(out, "\n")] = 0;
		if (!strstr(out, good[i].file) || strcmp(strrchr(out, '/') + 1, good[i].file) != 0)
			fail_msg("%s: %s", good[i].name, out);
	}
	for (int i = 6; i < 9; i++)
		assert_true(holds(&gguf[i]));
	hub.n_seen = 0;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int status = pull(*bad[i] == '-' ? "-- -o/n" : bad[i]);
		if (status != 1 || *out || strchr(err, '\n') != err + strlen(err) - 1)
			fail_msg("%s: status %d, %s", bad[i], status, err);
	}
	assert_int_equal(hub.n_seen, 0);
	assert_int_equal(pull("o/n:Q3_K_S"), 1);
	assert_non_null(strstr(err, "m-F16.gguf"));
	assert_int_equal(pull("o/n --file m-q4.gguf"), 1);
	assert_non_null(strstr(err, "m-Q4_K_M.gguf"));
}

static void test_folder(void **state)
{
	static const struct fake_file files[] = {
		{ "config.json", "{}", 2, false },
		{ "consolidated.safetensors", big, 60, true },
		{ "model-00001-of-00002.safetensors", big, 50, true },
		{ "model-00002-of-00002.safetensors", big, 51, true },
		{ "model.safetensors.index.json", "{ }", 3, false },
		{ "pytorch_model.bin", big, 40, true },
		{ "tokenizer.json", "{  }", 4, true },
		{ "1_Pooling/config.json", "{   }", 5, false },
		{ "chat_template.jinja", "x", 1, false },
		{ "merges.txt", "", 0, false },
		{ "onnx/model.onnx", big, 30, true },
		{ "2_Dense/config.json", "{    }", 6, false },
		{ "2_Dense/model.safetensors", big, 20, true },
		{ "2_Dense/pytorch_model.bin", big, 21, true },
		{ "old/2_Dense/config.json", "[]", 2, false },
	};
	char want[300];

	clear();
	SET(files);
	assert_int_equal(pull("o/n"), 0);
	snprintf(want, sizeof want, "%s/cache/models--o--n/snapshots/" FAKE_COMMIT "\n", root);
	assert_string_equal(out, want);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		bool wanted = i != 1 && i != 5 && i != 10 && i < 13;
		assert_int_equal(holds(&files[i]), wanted);
	}
	vars = "HF_HUB_OFFLINE=1";
	hub.n_seen = 0;
	assert_int_equal(pull("o/n"), 0);
	assert_string_equal(out, want);
	assert_int_equal(hub.n_seen, 0);
	assert_int_equal(pull("o/m"), 1);
	assert_non_null(strstr(err, "offline"));
}

/* The hub alone is told who asks. */
static void test_token(void **state)
{
	clear();
	SET(gguf);
	vars = "HF_TOKEN=hf_secret";
	hub.need = "hf_secret";
	assert_int_equal(pull("o/n"), 0);
	int others = 0;
	for (int i = 0; i < hub.n_seen; i++) {
		assert_string_equal(hub.seen[i].bearer, hub.seen[i].by_other ? "" : "hf_secret");
		others += hub.seen[i].by_other;
	}
	assert_int_equal(others, 2);
	clear();
	SET(gguf);
	hub.need = "hf_secret";
	hub.error_code = "GatedRepo";
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "HF_TOKEN"));
	vars = "HF_TOKEN=hf_other";
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "see that HF_TOKEN is right"));
	vars = "HF_TOKEN='a b'";
	hub.n_seen = 0;
	assert_int_equal(pull("o/n"), 1);
	assert_int_equal(hub.n_seen, 0);
	shell("mkdir -p %s/.cache/huggingface && echo hf_secret >%s/.cache/huggingface/token", root, root);
	vars = "";
	assert_int_equal(pull("o/n"), 0);
	vars = "HF_HUB_DISABLE_IMPLICIT_TOKEN=1";
	assert_int_equal(pull("o/n"), 1);
	shell("rm -rf %s/.cache", root);
}

static void test_resumes(void **state)
{
	clear();
	SET(gguf);
	hub.cut = 70000;
	hub.cut_times = 2;
	assert_int_equal(pull("o/n"), 0);
	assert_true(holds(&gguf[5]));
	assert_int_equal(fake_hub_count("GET", "bytes/m-Q4_K_M"), 3);
	assert_string_equal(hub.seen[hub.n_seen - 1].range, "bytes=140000-");
	assert_string_equal(hub.seen[hub.n_seen - 1].if_range, "\"strong\"");

	clear(); /* over two runs, and the same from a server without ranges */
	for (int ranges = 1; ranges >= 0; ranges--) {
		clear();
		SET(gguf);
		hub.cut = 50000;
		hub.cut_times = -1;
		assert_int_equal(pull("o/n --tries 1 --no-mmproj"), 1);
		assert_non_null(strstr(err, "50000 of 200000 bytes"));
		hub.cut_times = 0;
		hub.no_ranges = !ranges;
		hub.n_seen = 0;
		assert_int_equal(pull("o/n --no-mmproj"), 0);
		assert_string_equal(hub.seen[hub.n_seen - 1].range, "bytes=50000-");
		assert_true(holds(&gguf[5]));
		assert_false(is_there(SNAPSHOT "mmproj-F16.gguf"));
	}
}

/* A hub that lists names alone: headers say the rest. */
static void test_bare_listing(void **state)
{
	static const struct fake_file files[] = { { "config.json", "{}", 2, false },
		                                  { "model.safetensors", big, 50, true } };

	clear();
	SET(gguf);
	hub.bare = true;
	assert_int_equal(pull("o/n"), 0);
	assert_true(holds(&gguf[5]) && holds(&gguf[1]));
	assert_int_equal(fake_hub_count("HEAD", "resolve"), 2);
	assert_int_equal(fake_hub_count("HEAD", "bytes"), 0);
	clear();
	SET(files);
	hub.bare = true;
	hub.listing = "{\"siblings\":[{\"rfilename\":\"config.json\"},{\"rfilename\":\"model.safetensors\"}]}";
	assert_int_equal(pull("o/n"), 0); /* and which commit it is */
	assert_true(holds(&files[0]) && holds(&files[1]));
}

static void test_disk(void **state)
{
	static const struct fake_file huge[] = { { "m.gguf", big, 0, true } };
	char listing[400];

	clear();
	SET(huge);
	snprintf(listing, sizeof listing,
	         "{\"sha\":\"" FAKE_COMMIT
	         "\",\"siblings\":[{\"rfilename\":\"m.gguf\",\"lfs\":{\"size\":17000000000000,"
	         "\"sha256\":\"%064d\"}}]}",
	         0);
	hub.listing = listing;
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "has room for"));
	assert_int_equal(fake_hub_count("GET", "resolve"), 0);
	clear();
	SET(gguf);
	int status =
		shell("ulimit -f 100; env -i HOME=%s HF_ENDPOINT=http://127.0.0.1:%d ./jitpull --no-mmproj --cache "
	              "%s/cache o/n >%s/out 2>%s/err",
	              root, hub.port, root, root, root);
	read_into(err, "err");
	assert_int_equal(status, 1);
	assert_non_null(strstr(err, "are kept"));
	hub.n_seen = 0;
	assert_int_equal(pull("o/n --no-mmproj"), 0);
	assert_true(*hub.seen[hub.n_seen - 1].range && holds(&gguf[5]));
}

/* LeakSanitizer may wait for ever for a process that is interrupted while it looks for leaks. */
#define CHECKS "ASAN_OPTIONS=detect_leaks=0 "

/* Several at once, and one that was here before us. */
static void test_together(void **state)
{
	char etag[65], path[300];

	clear();
	SET(gguf);
	hub.slow_ms = 2;
	assert_int_equal(
		shell("for i in 1 2 3; do (env -i HOME=%s HF_ENDPOINT=http://127.0.0.1:%d ./jitpull --cache "
	              "%s/cache o/n -q >%s/out.$i 2>&1; echo $? >>%s/out.$i) & done; wait; cat %s/out.? | grep -cx 0 "
	              "| grep -qx 3; s=$?; rm %s/out.?; exit $s",
	              root, hub.port, root, root, root, root, root),
		0);
	assert_int_equal(fake_hub_count("GET", "bytes/m-Q4_K_M"), 1);
	assert_true(holds(&gguf[5]));
	clear();
	SET(gguf);
	fake_hub_etag(&gguf[5], etag);
	shell("mkdir -p %s/cache/.locks/models--o--n", root);
	snprintf(path, sizeof path, "%s/cache/.locks/models--o--n/%s.lock", root, etag);
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	assert_int_equal(flock(fd, LOCK_EX), 0); /* as huggingface_hub holds it */
	assert_int_equal(shell("timeout -s INT 1 env -i " CHECKS
	                       "HOME=%s HF_ENDPOINT=http://127.0.0.1:%d ./jitpull --cache %s/cache "
	                       "o/n >%s/out 2>%s/err",
	                       root, hub.port, root, root, root),
	                 124);
	read_into(err, "err");
	assert_non_null(strstr(err, "another program fetches this file"));
	assert_non_null(strstr(err, "interrupted"));
	close(fd);
	assert_int_equal(pull("o/n"), 0);
}

static void test_interrupted(void **state)
{
	clear();
	SET(gguf);
	hub.slow_ms = 20;
	assert_int_equal(shell("timeout --preserve-status -s INT 1 env -i " CHECKS
	                       "HOME=%s HF_ENDPOINT=http://127.0.0.1:%d ./jitpull "
	                       "--no-mmproj --cache %s/cache o/n >%s/out 2>%s/err",
	                       root, hub.port, root, root, root),
	                 130);
	read_into(err, "err");
	assert_non_null(strstr(err, "goes on from here"));
	assert_false(is_there("models--o--n/refs/main"));
	hub.slow_ms = 0;
	hub.n_seen = 0;
	assert_int_equal(pull("o/n --no-mmproj"), 0);
	assert_true(*hub.seen[hub.n_seen - 1].range);
	assert_true(holds(&gguf[5]));
}

static void test_said(void **state)
{
	clear();
	SET(gguf);
	assert_int_equal(pull("o/n --dry-run"), 0);
	assert_non_null(strstr(err, "m-Q4_K_M.gguf"));
	assert_false(is_there("models--o--n"));
	assert_int_equal(pull("o/n --json"), 0);
	assert_string_equal(err, "");
	assert_int_equal(strncmp(out, "{\"status\":\"pulling manifest\"}\n", 30), 0);
	assert_non_null(strstr(out, "\"total\":200000,\"completed\":200000}"));
	assert_non_null(strstr(out, "\"digest\":\"sha256:"));
	assert_non_null(strstr(out, "{\"status\":\"success\",\"path\":\"/"));
	assert_int_equal(pull("o/n:Q9 --json"), 1);
	assert_non_null(strstr(out, "{\"error\":\"o/n: it has no"));
	assert_int_equal(pull("o/n --dry-run --json"), 0);
	assert_non_null(strstr(out, "\"here\":true"));
	hub.status = 503;
	hub.status_times = 100;
	assert_int_equal(pull("o/n --tries 1"), 1);
	assert_int_equal(pull("o/n --tries 1 --or-cached"), 0);
	assert_non_null(strstr(err, "what is in the cache is used"));
	hub.status = 403;
	assert_int_equal(pull("o/n --tries 1 --or-cached"), 1);
	assert_int_equal(pull(""), 2);
	assert_int_equal(pull("o/n p/q"), 2);
}

static int begin(void **state)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
	signal(SIGPIPE, SIG_IGN);
	fake_hub_start();
	return mkdtemp(root) ? 0 : -1;
}

/* A file at an address, to standard output. */
static void test_printed(void **state)
{
	static const struct fake_file files[] = {
		{ "a.txt", "picture", 7, false }, { "large", big, 3000, false }, { "b", big, 60, true }
	};
	static const struct {
		const char *more, *host, *path, *why;
	} rows[] = {
		{ "", "127.0.0.1", "o/n/resolve/main/b", "leads to another host, which is not followed" },
		{ "", "127.0.0.1", "o/n/resolve/main/none", "answers with status 404" },
		{ "--print-kib 2", "127.0.0.1", "o/n/resolve/main/large", "sends more bytes than are allowed" },
		{ "", "nowhere.invalid", "a.txt", "nowhere.invalid" },
	};
	char line[400];

	clear();
	SET(files);
	snprintf(line, sizeof line, "--print --quiet -- http://127.0.0.1:%d/o/n/resolve/main/a.txt", hub.port);
	assert_int_equal(pull(line), 0);
	assert_string_equal(out, "picture");
	assert_string_equal(err, "");
	snprintf(line, sizeof line, "--print --print-kib 3 http://127.0.0.1:%d/o/n/resolve/main/large", hub.port);
	assert_int_equal(pull(line), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(line, sizeof line, "--print %s http://%s:%d/%s", rows[i].more, rows[i].host, hub.port,
		         rows[i].path);
		assert_int_equal(pull(line), 1);
		if (!strstr(err, rows[i].why) || strchr(err, '\n') != err + strlen(err) - 1)
			fail_msg("%s: %s", line, err);
	}
	assert_int_equal(pull("--print file:///etc/passwd"), 1);
	assert_string_equal(out, "");
	assert_false(is_there("cache"));
}

static int end(void **state) { return shell("rm -rf %s", root); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fetches),       cmocka_unit_test(test_names),
		cmocka_unit_test(test_folder),        cmocka_unit_test(test_token),
		cmocka_unit_test(test_resumes),       cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_statuses),      cmocka_unit_test(test_final_statuses),
		cmocka_unit_test(test_endless),       cmocka_unit_test(test_hostile_listing),
		cmocka_unit_test(test_hostile_bytes), cmocka_unit_test(test_bare_listing),
		cmocka_unit_test(test_disk),          cmocka_unit_test(test_together),
		cmocka_unit_test(test_interrupted),   cmocka_unit_test(test_said),
		cmocka_unit_test(test_remove),        cmocka_unit_test(test_remove_refused),
		cmocka_unit_test(test_run),           cmocka_unit_test(test_printed),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
