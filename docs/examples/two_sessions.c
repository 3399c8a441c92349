/* docs/examples/two_sessions.c - two sessions on one model, each in its own thread.  ./a.out MODEL PROMPT PROMPT
 *
 * The weights are in memory once. A session belongs to one thread at a time, and has a KV cache of its own. */
#include <jitrun.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct job {
	jit_model *model;
	const char *prompt;
	char text[4096];
	jit_error err;
};

static void *run(void *user)
{
	struct job *j = user;
	jit_session *s = jit_session_open(j->model, &JIT_SESSION_OPTIONS(.context = 128, .threads = 1), &j->err);
	int status = s ? jit_session_feed_text(s, j->prompt, strlen(j->prompt), 0, &j->err) : j->err.code;

	for (int i = 0; i < 24 && status == JIT_OK; i++) {
		int32_t id;
		size_t n;
		status = jit_session_next(s, &id, &j->err);
		const char *text = status == JIT_OK ? jit_session_text(s, id, &n, &j->err) : NULL;
		if (text && strlen(j->text) + n < sizeof j->text)
			strncat(j->text, text, n);
	}
	jit_session_close(s);
	return NULL;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	struct job job[2] = { { 0 }, { 0 } };
	pthread_t thread[2];

	if (argc < 4)
		return fprintf(stderr, "usage: %s MODEL PROMPT PROMPT\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	if (!m)
		return fprintf(stderr, "%s\n", err.message), 1;
	for (int i = 0; i < 2; i++) {
		job[i].model = m;
		job[i].prompt = argv[2 + i];
		if (pthread_create(&thread[i], NULL, run, &job[i]) != 0)
			return fprintf(stderr, "there is no thread to be had\n"), 1;
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		printf("%s%s\n", job[i].prompt, job[i].err.code ? job[i].err.message : job[i].text);
	}
	jit_model_close(m);
	return job[0].err.code || job[1].err.code;
}
