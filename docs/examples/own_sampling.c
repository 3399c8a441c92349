/* docs/examples/own_sampling.c - tokens that the program chooses itself.  ./a.out MODEL PROMPT
 *
 * Here: the likeliest token that is not among the last eight. What is chosen is fed like a prompt. */
#include <jitrun.h>
#include <stdio.h>
#include <string.h>

static int is_recent(jit_session *s, int32_t id)
{
	const int32_t *ids = jit_session_ids(s);
	size_t n = jit_session_length(s);

	for (size_t i = n > 8 ? n - 8 : 0; i < n; i++)
		if (ids[i] == id)
			return 1;
	return 0;
}

static int32_t choose(jit_session *s, const float *logits, int vocab)
{
	int32_t best = -1;

	for (int32_t id = 0; id < vocab; id++)
		if ((best < 0 || logits[id] > logits[best]) && !is_recent(s, id))
			best = id;
	return best;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	if (argc < 3)
		return fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 128), &err) : NULL;
	int status = s ? jit_session_feed_text(s, argv[2], strlen(argv[2]), 0, &err) : err.code;
	if (status == JIT_OK)
		status = jit_model_get_info(m, &info, &err);
	for (int i = 0; i < 24 && status == JIT_OK; i++) {
		const float *logits = jit_session_logits(s, &err);
		int32_t id = logits ? choose(s, logits, info.vocab) : -1;
		size_t n;
		if (id < 0 || jit_model_is_end(m, id))
			break;
		const char *text = jit_session_text(s, id, &n, &err);
		if (text)
			fwrite(text, 1, n, stdout);
		status = text ? jit_session_feed(s, &id, 1, &err) : err.code;
	}
	putchar('\n');
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	jit_session_close(s);
	jit_model_close(m);
	return err.code != JIT_OK;
}
