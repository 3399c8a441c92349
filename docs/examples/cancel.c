/* docs/examples/cancel.c - a computation ended from another thread, after which the session goes on.  ./a.out MODEL */
#include <jitrun.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *cancel(void *session)
{
	jit_session_cancel(session);
	return NULL;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	pthread_t thread;
	int32_t id;

	if (argc < 2)
		return fprintf(stderr, "usage: %s MODEL\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 128), &err) : NULL;
	if (!s || jit_session_feed_text(s, "Once upon", 9, 0, &err) != JIT_OK)
		return fprintf(stderr, "%s\n", err.message), 1;
	size_t length = jit_session_length(s);
	if (pthread_create(&thread, NULL, cancel, s) != 0)
		return fprintf(stderr, "there is no thread to be had\n"), 1;
	pthread_join(thread, NULL); /* a program with more to do would not wait */
	int status = jit_session_feed_text(s, " a time", 7, 0, &err);
	printf("%s\n", status == JIT_ERROR_CANCELLED ? "cancelled" : "not cancelled");
	printf("%s\n", jit_session_length(s) == length ? "the session is where it was" : "the session went on");
	status = jit_session_feed_text(s, " a time", 7, 0, &err);
	for (int i = 0; i < 8 && status == JIT_OK; i++) {
		size_t n;
		status = jit_session_next(s, &id, &err);
		const char *text = status == JIT_OK ? jit_session_text(s, id, &n, &err) : NULL;
		if (text)
			fwrite(text, 1, n, stdout);
	}
	putchar('\n');
	jit_session_close(s);
	jit_model_close(m);
	return status != JIT_OK;
}
