/* tests/pull/hostile_tests.c - what can be wrong with a hub, with the way to it and with the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/pull/pull_check.h"

/* What an earlier run left is not right. */
void test_damaged(void **state)
{
	static const char *const left[] = { "head -c 5000 /dev/zero", "head -c 200000 /dev/zero",
		                            "head -c 300000 /dev/zero", "printf ''" };
	char etag[65];

	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		clear();
		SET(gguf);
		fake_hub_etag(&gguf[5], etag);
		shell("mkdir -p %s/cache/models--o--n/blobs && %s >%s/cache/models--o--n/blobs/%s.incomplete", root,
		      left[i], root, etag);
		assert_int_equal(pull("o/n"), 0);
		assert_true(holds(&gguf[5]));
	}
	clear(); /* a link in its place is not followed */
	fake_hub_etag(&gguf[5], etag);
	shell("mkdir -p %s/cache/models--o--n/blobs && ln -s ../../../victim %s/cache/models--o--n/blobs/%s.incomplete",
	      root, root, etag);
	assert_int_equal(pull("o/n"), 1);
	assert_true(nothing_else());
	clear(); /* nor one among the folders of a snapshot */
	static const struct fake_file deep[] = { { "d/m.gguf", big, 50, true } };
	SET(deep);
	shell("mkdir -p %s/cache/" SNAPSHOT " && ln -s /tmp %s/cache/" SNAPSHOT "d", root, root);
	assert_int_equal(pull("o/n"), 1);
	assert_int_equal(access("/tmp/m.gguf", F_OK), -1);
	clear();
	assert_int_equal(pull("o/n"), 0);
	assert_true(holds(&deep[0]));
}

void test_statuses(void **state)
{
	static const int passing[] = { 429, 500, 502, 503, 408 };
	struct timespec a, b;

	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		for (int of_bytes = 0; of_bytes < 2; of_bytes++) {
			clear();
			SET(gguf);
			hub.status = passing[i];
			hub.status_times = 2;
			hub.status_of_bytes = of_bytes;
			assert_int_equal(pull("o/n"), 0);
			assert_non_null(strstr(err, "trying again"));
			assert_true(holds(&gguf[5]));
		}
	clear();
	SET(gguf);
	hub.status = 503;
	hub.status_times = 100;
	assert_int_equal(pull("o/n --tries 3"), 1);
	assert_int_equal(100 - hub.status_times, 3);
	hub.status = 429;
	hub.status_times = 1;
	hub.retry_after = "1";
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(pull("o/n"), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec >= 1);
	hub.status_times = 1;
	hub.retry_after = "86400";
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "86400 s"));
}

void test_final_statuses(void **state)
{
	static const struct {
		int status;
		const char *code, *says;
	} final[] = { { 404, "RepoNotFound", "there are: near/one, near/two" },
		      { 401, "RepoNotFound", "near/one" },
		      { 404, "RevisionNotFound", "no revision" },
		      { 403, "GatedRepo", "accept its terms" },
		      { 401, NULL, "HF_TOKEN" },
		      { 403, NULL, "HF_TOKEN" },
		      { 418, NULL, "status 418" } };

	clear();
	SET(gguf);
	for (size_t i = 0; i < sizeof final / sizeof *final; i++) {
		hub.status = final[i].status;
		hub.error_code = final[i].code;
		hub.status_times = 1;
		assert_int_equal(pull("o/n"), 1);
		if (!strstr(err, final[i].says))
			fail_msg("%d: %s", final[i].status, err);
	}
	assert_null(strstr(err, "../x"));
}

#define LIST(files) "{\"sha\":\"" FAKE_COMMIT "\",\"siblings\":[" files "]}"
#define ONE(name, more) LIST("{\"rfilename\":\"" name "\"" more "}")
static const char *const listings[] = {
	ONE("../x.gguf", ""),
	ONE("/tmp/x.gguf", ""),
	ONE("a/../../x.gguf", ""),
	ONE("a//x.gguf", ""),
	ONE("./x.gguf", ""),
	ONE("a/x.gguf/", ""),
	ONE("a\\\\x.gguf", ""),
	ONE("a\\u0000.gguf", ""),
	ONE("a\\u001b[2Jx.gguf", ""),
	ONE("a\\n.gguf", ""),
	ONE("\\u202eggug.gguf", ""),
	ONE("", ""),
	ONE("x.gguf", ",\"size\":-1"),
	ONE("x.gguf", ",\"size\":1e30"),
	ONE("x.gguf", ",\"size\":9223372036854775807"),
	ONE("x.gguf", ",\"size\":18446744073709551616"),
	ONE("x.gguf", ",\"size\":\"12\""),
	ONE("x.gguf", ",\"size\":1.5"),
	ONE("x.gguf", ",\"lfs\":{\"size\":5,\"sha256\":\"../../../../x\"}"),
	ONE("x.gguf", ",\"lfs\":{\"size\":5,\"sha256\":\"ABC\"}"),
	ONE("x.gguf", ",\"size\":5,\"blobId\":\"../x\""),
	LIST("{}"),
	LIST("{\"rfilename\":7}"),
	LIST("7"),
	LIST(""),
	LIST("{\"rfilename\":\"m-00001-of-00002.gguf\"}"),
	LIST("{\"rfilename\":\"m-00002-of-00002.safetensors\"},{\"rfilename\":\"config.json\"}"),
	LIST("{\"rfilename\":\"m.safetensors\"}"),
	"{\"sha\":\"../../x\",\"siblings\":[{\"rfilename\":\"x.gguf\"}]}",
	"{\"sha\":\"" FAKE_COMMIT "\"}",
	"{\"sha\":\"" FAKE_COMMIT "\",\"siblings\":{}}",
	"[]",
	"{",
	"",
	"null",
	"<html>",
	"\xff\xfe",
};

/* Nothing that the hub says leads out of the cache or is believed. */
void test_hostile_listing(void **state)
{
	for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
		clear();
		SET(gguf);
		hub.listing = listings[i];
		int status = pull("o/n --tries 1");
		if (status != 1 || *out || strncmp(err, "jitpull: ", 9) != 0 ||
		    strchr(err, '\n') != err + strlen(err) - 1)
			fail_msg("%s: status %d, %s", listings[i], status, err);
		for (const char *at = err; *at; at++)
			assert_true((unsigned char)*at >= ' ' || *at == '\n');
		assert_false(is_there("models--o--n/refs/main"));
		assert_true(nothing_else());
	}
}

void test_endless(void **state)
{
	clear();
	SET(gguf);
	hub.endless_list = true;
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "longer than 32 MiB"));
	SET(gguf);
	hub.endless_head = true;
	assert_int_equal(pull("o/n"), 1);
	assert_non_null(strstr(err, "begins with too much"));
	hub.endless_head = false;
	char *deep = malloc(400000), *at = deep;
	for (int i = 0; i < 200000; i++)
		*at++ = '[';
	*at = 0;
	hub.listing = deep;
	assert_int_equal(pull("o/n"), 1);
	free(deep);
}

void test_hostile_bytes(void **state)
{
	static const struct {
		bool *wrong;
		const char *says;
	} cases[] = { { &hub.wrong_hash, "thrown away" },      { &hub.wrong_length, "are missing" },
		      { &hub.too_long, "sends more" },         { &hub.other_etag, "another file" },
		      { &hub.loop, "redirects more than 10" }, { &hub.other_range, "another part" } };
	char etag[65];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		clear();
		SET(gguf);
		fake_hub_etag(&gguf[5], etag);
		*cases[i].wrong = true;
		hub.cut = 1000;
		hub.cut_times = cases[i].wrong == &hub.other_range;
		int status = pull("o/n --no-mmproj");
		if (status != 1 || !strstr(err, cases[i].says) || *out)
			fail_msg("%s: status %d, %s", cases[i].says, status, err);
		assert_false(is_there(SNAPSHOT "m-Q4_K_M.gguf") || is_there("models--o--n/refs/main"));
		assert_true(nothing_else());
		SET(gguf);
		assert_int_equal(pull("o/n --no-mmproj"), 0);
		assert_true(holds(&gguf[5]));
	}
}
