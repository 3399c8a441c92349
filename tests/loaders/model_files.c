/* tests/loaders/model_files.c - see model_files.h. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_files.h"

char model_dir[300]; /* fresh for each test */

int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(model_dir, sizeof model_dir, "%s/jitrun-model-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(model_dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }

int remove_dir(void **state) { return nftw(model_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

const char *in_dir(const char *name)
{
	static char path[2][700];
	static int which;

	snprintf(path[which ^= 1], sizeof path[0], "%s/%s", model_dir, name);
	return path[which];
}

void expect_open(const char *path, unsigned flags, const char *part)
{
	struct error err = { 0 };
	struct model m;
	bool ok = model_open(&m, path, flags, &err);

	if (ok != (part == NULL) || (!ok && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", path, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
	else
		assert_true(!m.file && !m.tokenizer && !m.spec.layer);
}

void write_gguf(const char *name)
{
	size_t n;
	uint8_t *p = tiny_gguf(&tiny_min, DTYPE_F32, &n, NULL);

	tiny_write(model_dir, name, p, n);
	free(p);
}
