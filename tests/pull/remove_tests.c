/* tests/pull/remove_tests.c - jitrun rm, and models that are fetched where one is given. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/pull/pull_check.h"

/* Runs jitrun with the cache of the test; its exit status. */
static int run(const char *arguments)
{
	int status = shell("env -i PATH=\"$PATH\" HOME=%s HF_HUB_CACHE=%s/cache HF_ENDPOINT=http://127.0.0.1:%d "
	                   "ASAN_OPTIONS=\"$ASAN_OPTIONS\" timeout 60 ./jitrun %s >%s/out 2>%s/err </dev/null",
	                   root, root, hub.port, arguments, root, root);

	read_into(out, "out");
	read_into(err, "err");
	if (getenv("T_PULL_SHOW"))
		fprintf(stderr, "%s: %d %s%s", arguments, status, out, err);
	return status;
}

static int blobs(void) { return shell("exit $(ls %s/cache/models--o--n/blobs | wc -l)", root); }

#define OTHER "models--o--n/snapshots/fedcba9876543210fedcba9876543210fedcba98"

void test_remove(void **state)
{
	clear();
	SET(gguf);
	assert_int_equal(pull("o/n --no-mmproj"), 0);
	assert_int_equal(pull("o/n:Q8_0 --no-mmproj"), 0);
	assert_int_equal(blobs(), 4);
	/* Another revision has one of the files, too, and a link that leads out of the cache. */
	shell("mkdir %s/cache/" OTHER " && cp -P %s/cache/" SNAPSHOT "m-Q8_0-00002-of-00003.gguf %s/cache/" OTHER
	      " && echo >%s/victim && ln -s ../../../../victim %s/cache/" OTHER "/out.gguf",
	      root, root, root, root, root);
	assert_int_equal(run("rm o/n"), 2);
	assert_int_equal(run("rm o/n --dry-run"), 0);
	assert_int_equal(run("rm"), 2);
	assert_int_equal(run("rm o/n:Q3_K -y"), 1);
	assert_int_equal(run("rm o/m -y"), 1);
	assert_int_equal(run("rm o/n@1234 -y"), 1);
	assert_int_equal(blobs(), 4);
	assert_int_equal(run("rm o/n:Q8_0@main -y"), 0);
	assert_non_null(strstr(out, "m-Q8_0-00002-of-00003.gguf"));
	assert_int_equal(blobs(), 2);
	assert_true(holds(&gguf[5]) && !is_there(SNAPSHOT "m-Q8_0-00001-of-00003.gguf"));
	assert_true(is_there(OTHER "/m-Q8_0-00002-of-00003.gguf"));
	assert_int_equal(run("rm o/n@fedcba9876543210fedcba9876543210fedcba98 -y"), 0);
	assert_int_equal(blobs(), 1);
	assert_false(is_there(OTHER));
	assert_int_equal(shell("test -f %s/victim && rm %s/victim", root, root), 0);
	assert_int_equal(run("rm o/n/m-Q4_K_M.gguf -y"), 0);
	assert_false(is_there("models--o--n") || is_there(".locks/models--o--n"));
	assert_true(is_there(".locks"));
	assert_int_equal(pull("o/n"), 0);
	assert_int_equal(run("rm hf.co/o/n -y"), 0);
	assert_false(is_there("models--o--n"));
}

/* What is on its way, and what is another program's. */
void test_remove_refused(void **state)
{
	char path[400], etag[65];

	clear();
	SET(gguf);
	assert_int_equal(pull("o/n"), 0);
	fake_hub_etag(&gguf[5], etag);
	snprintf(path, sizeof path, "%s/cache/.locks/models--o--n/%s.lock", root, etag);
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(run("rm o/n -y"), 1);
	assert_non_null(strstr(err, "just now"));
	close(fd);
	assert_true(holds(&gguf[5]) && holds(&gguf[1]));
	shell("mkdir -p %s/.ollama/models/manifests/registry.ollama.ai/library/x %s/.ollama/models/blobs "
	      "%s/.lmstudio/models/a/b && cp \"$srcdir\"/models/tale-q8_0.gguf %s/.lmstudio/models/a/b/c.gguf && "
	      "h=$(printf x | sha256sum | cut -c1-64) && cp \"$srcdir\"/models/tale-q8_0.gguf "
	      "%s/.ollama/models/blobs/sha256-$h && printf '{\"layers\":[{\"mediaType\":\""
	      "application/vnd.ollama.image.model\",\"digest\":\"sha256:%%s\"}]}' $h "
	      ">%s/.ollama/models/manifests/registry.ollama.ai/library/x/latest",
	      root, root, root, root, root, root);
	assert_int_equal(run("rm x -y"), 1);
	assert_non_null(strstr(err, "ollama rm x:latest removes it"));
	assert_int_equal(run("rm a/b -y"), 1);
	assert_non_null(strstr(err, "LM Studio"));
	snprintf(path, sizeof path, "rm %s/.lmstudio/models/a/b/c.gguf -y", root);
	assert_int_equal(run(path), 1);
	assert_int_equal(shell("test -f %s/.lmstudio/models/a/b/c.gguf && test -f %s/.ollama/models/blobs/sha256-*",
	                       root, root),
	                 0);
	shell("rm -rf %s/.ollama %s/.lmstudio", root, root);
}

/* A model that runs, from the hub to its text. */
void test_run(void **state)
{
	const char *top = getenv("srcdir");
	char path[400];

	snprintf(path, sizeof path, "%s/models/tale-q8_0.gguf", top ? top : ".");
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size_t n = (size_t)ftell(f);
	char *bytes = malloc(n);
	rewind(f);
	assert_int_equal(fread(bytes, 1, n, f), n);
	fclose(f);
	const struct fake_file files[] = { { "tale-Q8_0.gguf", bytes, n, true } };
	clear();
	SET(files);
	assert_int_equal(run("-hf o/n:Q8_0 -p Once -n 2 -q --no-cache"), 0);
	assert_true(strlen(out) > 2);
	hub.status = 503;
	hub.status_times = 100;
	assert_int_equal(run("-hf o/n -p Once -n 2 -q --no-cache"), 0); /* what is here will do */
	hub.n_seen = 0;
	assert_int_equal(run("--offline -hf o/n -p Once -n 2 -q --no-cache"), 0);
	assert_int_equal(hub.n_seen, 0);
	assert_int_equal(run("o/n:Q8_0 -p Once -n 2 -q --no-cache"), 0);
	assert_int_equal(run("info o/n"), 0);
	assert_int_equal(run("--offline -hf o/m -p Once"), 1);
	assert_int_equal(run("pull o/n --dry-run --tries 1"), 1);
	fake_hub_set(files, 1);
	assert_int_equal(run("pull o/n --dry-run"), 0);
	fake_hub_set(files, 0);
	shell("rm -rf %s/.cache", root);
	free(bytes);
}
