/* docs/examples/save_restore.c - a prompt computed once and used by later processes.  ./a.out MODEL FILE [PROMPT]
 *
 * With a prompt: it is computed and saved to FILE. Without one: FILE is restored, and the model goes on from there. The
 * text is the same, bit for bit, as if the prompt had been computed here. */
#include <jitrun.h>
#include <stdio.h>
#include <string.h>

static int save(jit_session *s, const char *path, const char *prompt, jit_error *err)
{
	int status = jit_session_feed_text(s, prompt, strlen(prompt), 0, err);

	if (status == JIT_OK)
		status = jit_session_save(s, path, err);
	if (status == JIT_OK)
		printf("saved %zu tokens\n", jit_session_length(s));
	return status;
}

static int go_on(jit_model *m, jit_session *s, const char *path, jit_error *err)
{
	int status = jit_session_restore(s, path, err);

	if (status == JIT_OK)
		printf("restored %zu tokens\n", jit_session_length(s));
	for (int i = 0; i < 24 && status == JIT_OK; i++) {
		int32_t id;
		size_t n;
		if ((status = jit_session_next(s, &id, err)) != JIT_OK || jit_model_is_end(m, id))
			break;
		const char *text = jit_session_text(s, id, &n, err);
		if (text)
			fwrite(text, 1, n, stdout);
		status = text ? JIT_OK : err->code;
	}
	putchar('\n');
	return status;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };

	if (argc < 3)
		return fprintf(stderr, "usage: %s MODEL FILE [PROMPT]\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 256), &err) : NULL;
	if (s && argc > 3)
		save(s, argv[2], argv[3], &err);
	else if (s)
		go_on(m, s, argv[2], &err);
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	jit_session_close(s);
	jit_model_close(m);
	return err.code != JIT_OK;
}
