/* tests/runtime/jina_checks.c - encoders of Jina's form, from folders and GGUF files, beside plain loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/jitrun_texts.h"
#include "tests/runtime/jina_model.h"

enum { TOKENS = 150 };

static void check(const char *path, const char *what, float *rows)
{
	static const size_t lengths[] = { 1, 7, TOKENS };
	jit_error err = { 0 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = 2), &err) : NULL;
	double *want = calloc((size_t)TOKENS * JINA_HIDDEN, sizeof *want);
	int32_t ids[TOKENS], types[TOKENS];

	if (!s)
		fail_msg("%s: %s", what, err.message);
	for (size_t i = 0; i < TOKENS; i++) {
		ids[i] = (int32_t)(i * i * 7 + 3) % JINA_VOCAB;
		types[i] = i > 4;
	}
	for (size_t k = 0; k < 3; k++) {
		const jit_embedding_text text = { ids, types, lengths[k] };
		const size_t n = lengths[k] * JINA_HIDDEN;
		double max = 0, worst = 0;
		if (jit_session_embed_texts(s, &text, 1, &JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE), rows, n,
		                            &err) != JIT_OK)
			fail_msg("%s: %s", what, err.message);
		jina_plain(ids, types, lengths[k], want);
		for (size_t i = 0; i < n; i++) {
			max = fmax(max, fabs(want[i]));
			worst = fmax(worst, fabs(want[i] - (double)rows[i]));
		}
		if (!(worst <= 1e-5 * max))
			fail_msg("%s, %zu tokens: it differs by %g of %g", what, lengths[k], worst, max);
	}
	free(want);
	jit_session_close(s);
	jit_model_close(m);
}

static void refuse(const char *dir, const char *feeds, const char *expected)
{
	jit_error err = { 0 };

	jina_write_folder(dir, feeds);
	assert_null(jit_model_open(dir, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err));
	if (!strstr(err.message, expected))
		fail_msg("%s\nexpected: %s", err.message, expected);
}

void jina_check(void **state)
{
	static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16 };
	const size_t n = (size_t)TOKENS * JINA_HIDDEN;
	float *of_folder = calloc(n, sizeof *of_folder), *rows = calloc(n, sizeof *rows);
	char dir[] = "/tmp/jitrun-jina-XXXXXX", path[64];
	(void)state;

	assert_non_null(mkdtemp(dir));
	jina_write_folder(dir, "geglu");
	check(dir, "a folder", of_folder);
	refuse(dir, "reglu", "feed_forward_type");
	refuse(dir, NULL, "feed_forward_type");
	snprintf(path, sizeof path, "%s/config.json", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/model.gguf", dir);
	for (size_t i = 0; i < 3; i++)
		for (int fused = 0; fused < 2; fused++) {
			char what[60];
			snprintf(what, sizeof what, "%s, %s", dtype_table[types[i]].name, fused ? "fused" : "apart");
			jina_write_gguf(path, types[i], fused);
			check(path, what, rows);
			if (types[i] == DTYPE_F32)
				assert_memory_equal(rows, of_folder, n * sizeof *rows);
		}
	unlink(path);
	rmdir(dir);
	free(of_folder);
	free(rows);
}
