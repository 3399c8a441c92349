/* programs/jitrun/jitrun_words.c - what stands on jitrun's command line without dashes: the model, "run" as ollama has
 * it, and ollama's other commands, which are answered. And backslashes, for --escape. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/jitrun/jitrun_parts.h"

/* A word of ollama's or llama.cpp's in the place of the model; a file of that name is a model all the same. */
static const struct {
	const char *word, *answer;
} refused[] = {
	{ "push", "jitrun uploads nothing" },
	{ "serve", "jitserve MODEL answers over HTTP" },
	{ "server", "jitserve MODEL answers over HTTP" },
	{ "stop", "a jitserve ends with Ctrl-C or SIGTERM" },
	{ "cp", "jitrun keeps no models: they are files, which cp copies" },
	{ "create", "jitrun makes no models" },
	{ "chat", "jitrun MODEL talks, and jitrun MODEL --prompt TEXT continues a text" },
	{ "show", "jitrun info MODEL describes a model" },
	{ "ls", "jitrun list names the models" },
	{ "bench", "jitbench MODEL measures its speed" },
	{ "embed", "jitserve MODEL answers /v1/embeddings" },
	{ "quantize", "jitquant IN.gguf OUT.gguf --type TYPE makes a model smaller" },
	{ "signin", "jitrun needs no account" },
	{ "help", "jitrun --help" },
	{ "version", "jitrun --version" },
};

static int usage(const char *format, const char *a, const char *b)
{
	char text[700];

	snprintf(text, sizeof text, format, a, b);
	return jitrun_usage(text);
}

/* A file, or a folder that holds a model: one of the same name as a word is common where there are sources. */
static bool is_file(const char *name)
{
	struct stat about;
	char config[1000];

	if (stat(name, &about) != 0)
		return false;
	if (!S_ISDIR(about.st_mode))
		return true;
	snprintf(config, sizeof config, "%.900s/config.json", name);
	return access(config, F_OK) == 0;
}

/* "run MODEL" is MODEL, and a text behind it is a message to it. */
static int take_run(const char *const *word, int n)
{
	if (n == 0 && !opt.model)
		return jitrun_usage("run what? Give a model: jitrun run MODEL");
	if (n == 3 || (n == 2 && opt.model))
		return usage("unexpected argument \"%.300s\"%s", word[n - 1], "");
	if (!opt.model) {
		opt.model = *word++;
		n--;
	}
	if (n && opt.prompt)
		return usage("two prompts: \"%.100s\" and that of --prompt%s", word[0], "");
	if (n) {
		opt.prompt = word[0];
		opt.single_turn = true;
	}
	return 0;
}

int jitrun_take_words(const char *const *word, int n)
{
	if (n && strcmp(word[0], "run") == 0 && !is_file("run"))
		return take_run(word + 1, n - 1);
	for (size_t i = 0; n && i < sizeof refused / sizeof *refused; i++)
		if (strcmp(word[0], refused[i].word) == 0 && !is_file(word[0]))
			return usage("%s: %s", word[0], refused[i].answer);
	if (n && opt.model)
		return usage("two models: %.300s and that of --model, %.300s", word[0], opt.model);
	if (n > 1)
		return usage("unexpected argument \"%.300s\"%s", word[1],
		             opt.prompt || is_file(word[1]) ? "" : "; a prompt is given with --prompt TEXT");
	opt.model = n ? word[0] : opt.model;
	return 0;
}

/* ---- escapes */

static int hex(char c) { return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10; }

/* The character that a backslash and what follows stand for, and how long that is; 0: they stand for themselves. A zero
 * byte would end the text. */
static size_t escaped(const char *at, char *out)
{
	static const char letters[] = "ntr\"'\\", characters[] = "\n\t\r\"'\\";
	const char *found = at[0] == '\\' && at[1] ? strchr(letters, at[1]) : NULL;

	if (found) {
		*out = characters[found - letters];
		return 2;
	}
	if (at[0] != '\\' || at[1] != 'x' || !isxdigit((unsigned char)at[2]) || !isxdigit((unsigned char)at[3]))
		return 0;
	*out = (char)(16 * hex(at[2]) + hex(at[3]));
	return *out ? 4 : 0;
}

static bool unescape(const char **text)
{
	const char *from = *text;
	char *out = from ? malloc(strlen(from) + 1) : NULL, *to = out;

	if (!from)
		return true;
	if (!out)
		return false;
	while (*from) {
		size_t n = escaped(from, to);
		if (!n)
			*to = *from;
		from += n ? n : 1;
		to++;
	}
	*to = 0;
	*text = out; /* for as long as the program runs */
	return true;
}

int jitrun_unescape(void)
{
	bool ok = !opt.escape || (unescape(&opt.prompt) && unescape(&opt.system));

	for (int i = 0; ok && opt.escape && i < opt.stop.n; i++)
		ok = unescape(&opt.stop.value[i]);
	return ok ? 0 : jitrun_fail(&(jit_error){ .message = "no memory for the prompt" });
}
