/* tests/programs/t_completion.c - the completions in the shells themselves, on a pseudo-terminal: words are typed, Tab
 * is pressed, and what the shell then calls is a function that prints its arguments. A shell that is not installed is
 * skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/pty.h"

static char dir[] = "/tmp/t_completion-XXXXXX";

/* typed: a command line with tabs; wanted: its arguments then. */
struct line {
	const char *typed, *wanted;
};

static const struct line lines[] = {
	{ "jitrun --device sim:gfx11\t0\t", "<--device><sim:gfx110" }, /* as far as all names of that kind agree */
	{ "jitrun --device sim:gfx1101\t", "<--device><sim:gfx1101>" },
	{ "jitrun --device=sim:gfx103\t6", "<--device=sim:gfx1036>" },
	{ "jitrun --isa=avx512am\t", "<--isa=avx512amx>" },
	{ "jitrun --kv-type q\t", "<--kv-type><q8_0>" },
	{ "jitrun --n-pr\t3", "<--n-predict" },
	{ "jitrun space\t", "<spaced folder" }, /* zsh takes the slash away again */
	{ "jitrun spaced\\ folder/a\t", "<spaced folder/a model.gguf>" },
	{ "jitrun 'spaced folder/a\t", "<spaced folder/a model.gguf>" },
	{ "jitrun x --file spaced\\ folder/a\t", "<x><--file><spaced folder/a model.gguf>" },
	{ "jitrun --file=spaced\\ folder/a\t", "<--file=spaced folder/a model.gguf>" },
	{ "jitrun inf\t", "<info>" },
	{ "jitwarm expl\t", "<explain>" },
	{ "jitwarm --target avx2v\t", "<--target><avx2vnni>" },
	{ "jitbench compa\t", "<compare>" },
	{ "jitquant --type iq4_x\t", "<--type><iq4_xs>" },
	{ "jitserve --kv-type q\t", "<--kv-type><q8_0>" },
	{ "jitserve --pooling=me\t", "<--pooling=mean>" },
	{ "jitserve --tls-ce\t spaced\\ folder/a\t", "<--tls-cert><spaced folder/a model.gguf>" },
};

static bool is_there(const char *shell)
{
	char command[64];

	snprintf(command, sizeof command, "command -v %s > /dev/null", shell);
	if (system(command) == 0) /* NOLINT */
		return true;
	printf("# skipped: %s is not installed\n", shell);
	return false;
}

/* Line by line, each answered by <arguments> and END. */
static void try_lines(const char *const argv[], const char *begin, const char *const skip)
{
	static const char *const ready = "READY.";
	struct pty t;

	if (!pty_start(&t, 200, (char *const *)(uintptr_t)argv)) {
		printf("# skipped: there are no pseudo-terminals here\n");
		return;
	}
	pty_type(&t, begin);
	size_t at = pty_must_see(&t, 0, ready);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (skip && strstr(lines[i].typed, skip))
			continue;
		pty_type(&t, lines[i].typed);
		pty_type(&t, "\r");
		size_t end = pty_must_see(&t, at, "<END>");
		char *found = strstr(t.text + at, lines[i].wanted);
		if (!found || found > t.text + end)
			fail_msg("%s: \"%s\" is not in: %.*s", argv[0], lines[i].wanted, (int)(end - at), t.text + at);
		at = end;
	}
	pty_type(&t, "exit\r");
	assert_true(WIFEXITED(pty_end(&t)));
}

static void test_bash(void **state)
{
	char begin[1000], here[512];
	const char *const argv[] = { "bash", "--norc", "--noprofile", "-i", NULL };
	(void)state;

	if (!is_there("bash"))
		skip();
	assert_non_null(getcwd(here, sizeof here));
	snprintf(begin, sizeof begin,
	         "PS1='$ '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; cd %s; for p in jitrun "
	         "jitwarm jitbench jitquant jitserve; do . \"%s/completion/$p\"; eval \"$p() { printf '<%%s>' "
	         "\\\"\\$@\\\"; echo "
	         "'<''END>'; }\"; done; echo READY''.\r",
	         dir, here);
	try_lines(argv, begin, NULL);
}

static void test_zsh(void **state)
{
	char begin[1000], here[512];
	const char *const argv[] = { "zsh", "-f", "-i", NULL };
	(void)state;

	if (!is_there("zsh"))
		skip();
	assert_non_null(getcwd(here, sizeof here));
	snprintf(begin, sizeof begin,
	         "unsetopt zle_bracketed_paste; unset zle_bracketed_paste; PS1='$ '; cd %s; fpath=(%s/completion "
	         "$fpath); "
	         "autoload -Uz compinit; compinit -u -D; for p in jitrun jitwarm jitbench jitquant jitserve; do eval "
	         "\"$p() { "
	         "printf "
	         "'<%%s>' \\\"\\$@\\\"; echo '<''END>'; }\"; done; echo READY''.\r",
	         dir, here);
	try_lines(argv, begin, NULL);
}

/* fish says itself what it would complete. */
static void test_fish(void **state)
{
	static const struct line requested[] = {
		{ "jitrun --device sim:gfx110", "sim:gfx1101" },
		{ "jitrun --device=sim:gfx1036", "--device=sim:gfx1036" },
		{ "jitrun --kv-type q", "q8_0" },
		{ "jitrun --n-pr", "--n-predict" },
		{ "jitrun -", "--temp" },
		{ "jitrun spaced\\ folder/a", "model.gguf" },
		{ "jitrun --file spa", "spaced" },
		{ "jitrun inf", "info" },
		{ "jitwarm expl", "explain" },
	};
	static char answer[1 << 16];
	char command[1000], here[512];
	(void)state;

	if (!is_there("fish"))
		skip();
	assert_non_null(getcwd(here, sizeof here));
	for (size_t i = 0; i < sizeof requested / sizeof *requested; i++) {
		snprintf(command, sizeof command,
		         "cd %s && HOME=%s fish --no-config -c \"for p in jitrun jitwarm; source "
		         "'%s/completion/'\\$p.fish; end; complete -C '%s'\"",
		         dir, dir, here, requested[i].typed);
		FILE *f = popen(command, "r"); /* NOLINT */
		size_t n = f ? fread(answer, 1, sizeof answer - 1, f) : 0;
		answer[n] = 0;
		assert_true(f && pclose(f) == 0);
		if (!strstr(answer, requested[i].wanted))
			fail_msg("fish: \"%s\" is not in what it offers for %s: %s", requested[i].wanted,
			         requested[i].typed, answer);
	}
}

static int leave(void **state)
{
	char command[100];
	(void)state;

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command); /* NOLINT */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bash), cmocka_unit_test(test_zsh),
		                            cmocka_unit_test(test_fish) };
	char command[200];

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		return 1;
	snprintf(command, sizeof command, "cd %s && mkdir 'spaced folder' && : > 'spaced folder/a model.gguf'", dir);
	if (system(command) != 0) /* NOLINT */
		return 1;
	return cmocka_run_group_tests(tests, NULL, leave);
}
