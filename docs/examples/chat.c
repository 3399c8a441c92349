/* docs/examples/chat.c - a conversation: each line of standard input is answered.  ./a.out MODEL [TEMPLATE]
 *
 * Each turn the whole conversation is rendered by the model's chat template, or by TEMPLATE. What the session has
 * already is not fed again. */
#include <jitrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 1 << 16 };
static char messages[MAX];

/* A message at the end of the JSON array. False: there is no room. */
static int add_message(const char *role, const char *text)
{
	size_t n = strlen(messages) - 1; /* without the bracket at the end */
	n += (size_t)snprintf(messages + n, MAX - n, "%s{\"role\":\"%s\",\"content\":\"", n > 1 ? "," : "", role);

	for (; *text && n + 16 < MAX; text++)
		if ((unsigned char)*text < 32)
			n += (size_t)snprintf(messages + n, MAX - n, "\\u%04x", (unsigned)*text);
		else
			n += (size_t)snprintf(messages + n, MAX - n, *text == '"' || *text == '\\' ? "\\%c" : "%c",
			                      *text);
	snprintf(messages + n, MAX - n, "\"}]");
	return *text == 0;
}

/* Takes back what differs from the conversation, and feeds the rest of it. */
static int feed(jit_session *s, const jit_chat *c, jit_error *err)
{
	const int32_t *have = jit_session_ids(s);
	size_t same = 0;

	while (same < jit_session_length(s) && same + 1 < c->n_ids && have[same] == c->ids[same])
		same++;
	if (jit_session_rewind(s, same, err) != JIT_OK)
		return err->code;
	return jit_session_feed(s, c->ids + same, c->n_ids - same, err);
}

static int answer(jit_model *m, jit_session *s, const char *template_text, jit_error *err)
{
	jit_chat_options options = JIT_CHAT_OPTIONS(.messages = messages, .template_text = template_text);
	jit_chat chat = JIT_CHAT();
	char text[4096] = "";
	int status = jit_chat_render(m, &options, &chat, err);

	if (status == JIT_OK)
		status = feed(s, &chat, err);
	jit_chat_free(&chat);
	for (int i = 0; i < 64 && status == JIT_OK; i++) {
		int32_t id;
		size_t n;
		status = jit_session_next(s, &id, err);
		if (status != JIT_OK || jit_model_is_end(m, id))
			break;
		const char *piece = jit_session_text(s, id, &n, err);
		if (!piece)
			return err->code;
		fwrite(piece, 1, n, stdout);
		fflush(stdout);
		if (strlen(text) + n < sizeof text)
			strncat(text, piece, n);
	}
	putchar('\n');
	if (status == JIT_OK && !add_message("assistant", text)) {
		snprintf(err->message, sizeof err->message, "the conversation is too long");
		return JIT_ERROR_MEMORY;
	}
	return status;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	char line[4096];

	if (argc < 2)
		return fprintf(stderr, "usage: %s MODEL [TEMPLATE]\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	jit_sampling sampling = JIT_SAMPLING();
	int status = m ? jit_model_sampling_defaults(m, &sampling, &err) : err.code;
	sampling.seed = 1;
	jit_session *s =
		status == JIT_OK
			? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 512, .sampling = &sampling), &err)
			: NULL;
	strcpy(messages, "[]");
	status = s ? JIT_OK : err.code;
	while (status == JIT_OK && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (add_message("user", line))
			status = answer(m, s, argc > 2 ? argv[2] : NULL, &err);
	}
	if (status != JIT_OK)
		fprintf(stderr, "%s\n", err.message);
	jit_session_close(s);
	jit_model_close(m);
	return status != JIT_OK;
}
