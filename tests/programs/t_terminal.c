/* tests/programs/t_terminal.c - nothing that comes out of a file can give orders to a terminal: text on a terminal,
 * sentences about hostile files, and the rule of both.
 *
 * The jitrun program writes to a pipe and to a pseudo-terminal; what differs is what must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"

enum { MAX = 8192 };
#define SHOWN "\xef\xbf\xbd"
static char dir[] = "/tmp/t_terminal-XXXXXX";

/* Tokens are single bytes, so that characters fall apart into several: ESC, CR, BS, DEL, U+009B, U+202E among them. */
static const struct tiny_model bytes_model = {
	.arch = "llama",
	.layers = 1,
	.hidden = 4,
	.ffn = 6,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 2,
	.vocab = 12,
	.type = DTYPE_F32,
	.tied = true
};
static const char tokenizer[] =
	"{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{\"<0x1B>"
	"\":0,\"<0xC2>\":1,\"<0x9B>\":2,\"a\":3,\"<0x0A>\":4,\"<0x0D>\":5,"
	"\"<0x08>\":6,\"<0x7F>\":7,\"<0xE2>\":8,\"<0x80>\":9,\"<0xAE>\":10,\"<0x09>\":11}}}";

static size_t read_all(int fd, char *out)
{
	size_t n = 0;
	ssize_t got;

	while (n < MAX &&
	       (got = read(fd, out + n, MAX - n)) > 0) /* a terminal whose other side is closed gives an error */
		n += (size_t)got;
	return n;
}

/* What jitrun says on a terminal, which passes bytes on as they are, or in a pipe. */
static size_t output_of(bool terminal, char *out)
{
	int ends[2];

	if (terminal) {
		struct termios raw;
		ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
		if (ends[0] < 0 || grantpt(ends[0]) || unlockpt(ends[0]))
			return 0;
		ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
		if (ends[1] < 0)
			return 0;
		tcgetattr(ends[1], &raw);
		cfmakeraw(&raw);
		tcsetattr(ends[1], TCSANOW, &raw);
	} else {
		assert_int_equal(pipe(ends), 0);
	}
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execl("./jitrun", "jitrun", dir, "--prompt-ids", "3,0,1,2,5,3", "--echo", "-n", "300", "-c", "400",
		      "--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "4", "--ignore-eos",
		      "--quiet", "--no-cache", "-t", "1", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	size_t n = read_all(ends[0], out);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ends[0]);
	return n;
}

/* The rule once more, on whole characters: C0 but newline and tab, DEL, U+0080 to U+009F. */
static size_t as_shown(const char *p, size_t n, char *out)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		bool c1 = c == 0xc2 && i + 1 < n && (unsigned char)p[i + 1] < 0xa0;
		if (c1 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\t')) {
			memcpy(out + at, SHOWN, 3);
			at += 3;
			i += c1;
		} else {
			out[at++] = p[i];
		}
	}
	return at;
}

static void test_program(void **state)
{
	static char plain[MAX + 1], shown[MAX + 1], want[3 * MAX];
	(void)state;

	size_t n = output_of(false, plain), m = output_of(true, shown);
	plain[n] = 0;
	assert_non_null(strstr(plain, "\x1b"));
	assert_non_null(strstr(plain, "\xc2\x9b"));
	assert_non_null(strstr(plain, "\r"));
	assert_non_null(strstr(plain, "\t"));
	if (m == 0) {
		printf("# skipped: there are no pseudo-terminals here\n");
		return;
	}
	assert_int_equal(m, as_shown(plain, n, want));
	assert_memory_equal(shown, want, m);
}

/* Every character up to U+FFFF and some beyond, against the tables of what is a control and what turns the
 * direction. */
static void test_characters(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < 0x11000; c++) {
		unsigned char p[4];
		unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		uint32_t code = 0;
		for (unsigned i = n; i-- > 1;)
			p[i] = (unsigned char)(0x80 | ((c >> 6 * (n - 1 - i)) & 0x3f));
		p[0] = (unsigned char)(n == 1 ? c : (0xf00u >> n & 0xff) | c >> 6 * (n - 1));
		bool surrogate = c >= 0xd800 && c < 0xe000;
		assert_int_equal(text_char(p, 4, &code), surrogate ? 0 : n);
		assert_int_equal(text_char(p, n - 1, &code), 0);
		if (surrogate)
			continue;
		assert_int_equal(code, c);
		bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
		bool rounds = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
		              (c >= 0x2066 && c <= 0x2069);
		assert_int_equal(text_is_control(c), control);
		assert_int_equal(text_misleads(c), control || rounds || c == 0x2028 || c == 0x2029);
		/* and in a sentence */
		struct error err = { 0 };
		char name[8] = "";
		memcpy(name, p, n);
		if (c)
			error_set(&err, ERROR_IO, "<%s>", name);
		if (c && (control || rounds || c == 0x2028 || c == 0x2029)) {
			char want[40] = "<";
			for (unsigned i = 0; i < n; i++)
				snprintf(want + 1 + 4 * i, 8, "\\x%02x>", p[i]);
			assert_string_equal(err.text, want);
		} else if (c) {
			assert_int_equal(strlen(err.text), n + 2);
			assert_memory_equal(err.text + 1, p, n);
		}
	}
	static const char *const none[] = {
		"\x80",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80",
		"\xff",
		"\xc2\x41",
		"\xe2\x82\x41"
	};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		uint32_t code;
		assert_int_equal(text_char(none[i], strlen(none[i]), &code), 0);
	}
}

/* A sentence that is longer than its room ends in dots, and inside no character and no escape. */
static void test_long_sentences(void **state)
{
	static char name[2000];
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (size_t n = 480; n < 520; n++) {
			static const char *const unit[] = { "x", "\xf0\x9f\xa6\x99", "\x1b" };
			struct error err = { 0 };
			name[0] = 0;
			for (size_t k = 0; k < n; k++)
				name[k] = 'y';
			strcpy(name + n, "");
			for (int k = 0; k < 30; k++)
				strcat(name, unit[kind]);
			error_set(&err, ERROR_IO, "%s", name);
			size_t length = strlen(err.text);
			assert_true(length < sizeof err.text);
			for (size_t i = 0; i < length;) {
				uint32_t code;
				unsigned k = text_char(err.text + i, length - i, &code);
				assert_true(k > 0);
				i += k;
			}
			if (n > 505)
				assert_string_equal(err.text + length - 3, "...");
		}
}

/* What a hostile file says of itself is repeated without effect. */
static void test_messages(void **state)
{
	static const char *const arch[] = { "\\u001b[31m", "\\u009b31m", "\\u202etxet", "a\\u2028b", "\\u2066x" };
	jit_error err;
	(void)state;

	for (size_t i = 0; i < sizeof arch / sizeof *arch; i++) {
		struct tiny_model t = bytes_model;
		char *config;
		t.arch = arch[i];
		config = tiny_config(&t);
		tiny_write(dir, "config.json", config, strlen(config));
		free(config);
		err = (jit_error){ 0 };
		assert_null(jit_model_open(dir, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err));
		assert_non_null(strstr(err.message, "\\x"));
		for (size_t at = 0, n = strlen(err.message); at < n;) {
			uint32_t code = 0x1b;
			unsigned k = text_char(err.message + at, n - at, &code);
			if (!k || text_misleads(code))
				fail_msg("U+%04X in \"%s\"", code, err.message);
			at += k;
		}
	}
}

static int leave(void **state)
{
	static const char *const names[] = { "config.json", "model.safetensors", "tokenizer.json" };
	char path[100];
	(void)state;
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_program), cmocka_unit_test(test_characters),
		                            cmocka_unit_test(test_long_sentences), cmocka_unit_test(test_messages) };

	if (!mkdtemp(dir))
		return 1;
	tiny_write_hf(dir, &bytes_model);
	tiny_write(dir, "tokenizer.json", tokenizer, sizeof tokenizer - 1);
	return cmocka_run_group_tests(tests, NULL, leave);
}
