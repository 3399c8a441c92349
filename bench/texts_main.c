/* bench/texts_main.c - how many texts of given lengths a model embeds in a second, many at once and one by one.
 *
 * build/bench/texts MODEL [THREADS [DEVICE]]: texts a second and tokens a second, many at once, and texts a second one
 * by one. bench/make_encoder.py writes models of usual shapes with weights by chance.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_texts.h"
#include "runtime/host/system.h"

enum { TEXTS = 32, TOKENS_MOST = 512, ROUNDS = 5 };
static const double enough = 2; /* seconds of all rounds */

static int32_t ids[TEXTS][TOKENS_MOST];

/* Seconds for all texts, the least of some rounds; < 0: it failed. */
static double time_of(jit_session *s, const jit_embedding_text *texts, size_t at_once, float *out, size_t width,
                      jit_error *err)
{
	double least = -1;
	const double begun = system_seconds();

	for (int r = 0; r < ROUNDS && (r == 0 || system_seconds() - begun < enough); r++) {
		const double start = system_seconds();
		for (size_t i = 0; i < TEXTS; i += at_once)
			if (jit_session_embed_texts(s, texts + i, at_once, NULL, out, at_once * width, err) != JIT_OK)
				return -1;
		const double took = system_seconds() - start;
		least = least < 0 || took < least ? took : least;
	}
	return least;
}

/* tokens: of each text; 0: of all lengths up to 128. */
static bool measure(jit_session *s, const jit_model_info *info, size_t tokens, jit_error *err)
{
	jit_embedding_text texts[TEXTS];
	const size_t width = (size_t)info->embedding;
	float *out = calloc(TEXTS, width * sizeof *out);
	size_t all = 0;

	for (size_t i = 0; i < TEXTS; i++) {
		const size_t n = tokens ? tokens : 1 + i * 37 % 128;
		texts[i] = (jit_embedding_text){ .ids = ids[i], .n = n };
		all += n;
	}
	const double together = out ? time_of(s, texts, TEXTS, out, width, err) : -1,
		     alone = together > 0 ? time_of(s, texts, 1, out, width, err) : -1;
	free(out);
	if (alone <= 0)
		return false;
	char name[24] = "1 to 128";
	if (tokens)
		snprintf(name, sizeof name, "%zu", tokens);
	printf("%-10s  %10.1f  %10.0f  %10.1f\n", name, TEXTS / together, (double)all / together, TEXTS / alone);
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	static const size_t lengths[] = { 16, 64, 128, 256, 512, 0 };
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	if (argc < 2) {
		fprintf(stderr, "usage: texts MODEL [THREADS [DEVICE]]\n");
		return 2;
	}
	jit_model *m = jit_model_open(argv[1], &JIT_MODEL_OPTIONS(.device = argc > 3 ? argv[3] : NULL), &err);
	jit_session *s =
		m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = argc > 2 ? atoi(argv[2]) : 0), &err) : NULL;
	bool ok = s && jit_model_get_info(m, &info, &err) == JIT_OK;

	for (size_t i = 0; ok && i < (size_t)TEXTS * TOKENS_MOST; i++)
		ids[i / TOKENS_MOST][i % TOKENS_MOST] = (int32_t)(i * 7919 % (size_t)info.vocab);
	printf("%-10s  %10s  %10s  %10s\n", "tokens", "texts/s", "tokens/s", "alone/s");
	for (size_t i = 0; ok && i < sizeof lengths / sizeof *lengths; i++)
		ok = measure(s, &info, lengths[i], &err);
	if (!ok)
		fprintf(stderr, "texts: %s\n", err.message);
	jit_session_close(s);
	jit_model_close(m);
	return !ok;
}
