/* docs/example.c - a whole program on the library:  cc example.c $(pkg-config --cflags --libs jitrun) && ./a.out
 * model.gguf "Once upon a time" */
#include <jitrun.h>
#include <stdio.h>
#include <string.h>

static int fail(const jit_error *e)
{
	fprintf(stderr, "%s\n", e->message);
	return 1;
}

static int write_text(const char *text, size_t n, jit_error *e)
{
	if (fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0)
		return JIT_OK;
	snprintf(e->message, sizeof e->message, "the text could not be written");
	return JIT_ERROR_IO;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	const char *prompt = argc > 2 ? argv[2] : "Once upon a time";

	if (argc < 2)
		return fprintf(stderr, "usage: %s MODEL [PROMPT]\n", argv[0]), 2;
	jit_model *model = jit_model_open(argv[1], NULL, &err);
	if (!model)
		return fail(&err);
	jit_sampling sampling = JIT_SAMPLING(.temperature = 0.8f, .top_p = 0.9f, .repeat_penalty = 1.1f, .seed = 1);
	jit_session_options options = JIT_SESSION_OPTIONS(.context = 512, .sampling = &sampling);
	jit_session *session = jit_session_open(model, &options, &err);
	int status = session ? jit_session_feed_text(session, prompt, strlen(prompt), 0, &err) : err.code;

	for (int i = 0; i < 64 && status == JIT_OK; i++) {
		int32_t id;
		size_t n;
		status = jit_session_next(session, &id, &err);
		if (status != JIT_OK || jit_model_is_end(model, id))
			break;
		const char *text = jit_session_text(session, id, &n, &err);
		status = text ? write_text(text, n, &err) : err.code;
	}
	if (status == JIT_OK)
		status = write_text("\n", 1, &err);
	else
		putchar('\n');
	jit_session_close(session);
	jit_model_close(model);
	return status == JIT_OK ? 0 : fail(&err);
}
