/* tests/jit/tune_check.c - see tune_check.h. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/store/tune.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"
#include "tests/jit/tune_check.h"

struct key example_key(uint32_t rows, uint32_t schedule)
{
	struct key k;
	assert_true(key_parse(&k, "matmul.q8_0.aq8_0.1024x512.c1.b1.avx2"));
	k.rows = rows;
	k.schedule = schedule;
	return k;
}

char *new_dir(char out[64])
{
	strcpy(out, "/tmp/jitrun-test-XXXXXX");
	assert_non_null(mkdtemp(out));
	return out;
}

char *file_in(const char *dir, char out[512])
{
	DIR *d = opendir(dir);
	struct dirent *e;

	assert_non_null(d);
	out[0] = 0;
	while ((e = readdir(d)))
		if (strncmp(e->d_name, "tuned-", 6) == 0)
			snprintf(out, 512, "%s/%s", dir, e->d_name);
	closedir(d);
	return out;
}

void remove_dir(const char *dir)
{
	char path[512];
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
			unlink(path);
		}
	closedir(d);
	rmdir(dir);
}

size_t read_all(const char *path, char *out, size_t capacity)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t n = fread(out, 1, capacity, f);
	fclose(f);
	return n;
}

void write_all(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
	chmod(path, 0600);
}

struct tune *open_tuning(const char *dir)
{
	struct error err = { 0 };
	struct tune *t = tune_open(dir, &err);
	assert_non_null(t);
	return t;
}

void decode(const char *dir, int mode, struct told *out)
{
	static const int32_t prompt[] = { 0, 5, 9, 300 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = dir, .tune = mode), &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = 2, .speculate = JIT_SPECULATE_OFF), &err);
	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, prompt, 4, &err), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		assert_int_equal(jit_session_next(s, &out->ids[i], &err), JIT_OK);
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	memcpy(out->logits, logits, sizeof out->logits);
	jit_session_close(s);
	jit_model_close(m);
}
