#include "tests/faults/site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/faults/run.h"
#include "tests/support/shared.h"

char base[64], safetensors[1024];
static char kept_key[256];

void path_in(char out[1200], const char *name) { snprintf(out, 1200, "%s/%s", base, name); }

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof command, format, ap);
	va_end(ap);
	if (system(command))
		fail_msg("%s", command);
}

static void expand(char out[1200], const char *word)
{
	static const char *const program = "jitrun jitwarm jitbench jitquant jitserve";
	char model[1024];
	size_t n = 0;

	if (strchr(word, '%') == NULL) {
		bool ours = strlen(word) > 5 && strstr(program, word);
		snprintf(out, 1200,
		         strcmp(word, "docs/example")         ? ours ? "./%s" : "%s"
		         : access("docs/.libs/example", X_OK) ? "%s"
		                                              : "docs/.libs/example",
		         word);
		return;
	}
	for (const char *p = word; *p; p++) {
		if (*p != '%') {
			out[n++] = *p;
			continue;
		}
		p++;
		if (*p == 'm')
			n += (size_t)snprintf(out + n, 1200 - n, "%s", source_path(model, "models/tale-q8_0.gguf"));
		else if (*p == 'K')
			n += (size_t)snprintf(out + n, 1200 - n, "%s", kept_key);
		else if (*p == 'G')
			n += (size_t)snprintf(out + n, 1200 - n, "matmul.q8_0.aq8_0.128x256.c4.b1.gfx1100");
		else if (*p == '_')
			out[n++] = ' ';
		else if (*p == 'a' || *p == 'b')
			n += (size_t)snprintf(out + n, 1200 - n, "%s/%c.json", base, *p);
		else if (*p == 's')
			n += (size_t)snprintf(out + n, 1200 - n, "%s", safetensors);
		else
			n += (size_t)snprintf(out + n, 1200 - n, "%s/%s", base,
			                      *p == 't'   ? "tiny.gguf"
			                      : *p == 'f' ? "floats.gguf"
			                      : *p == 'i' ? "floats.imatrix"
			                      : *p == 'c' ? "cache"
			                      : *p == 'k' ? "kept.jkp"
			                      : *p == 'r' ? "answer.json"
			                                  : "made");
	}
	out[n] = 0;
}

void split(struct command *c, const char *command)
{
	int n = 0;

	snprintf(c->text, sizeof c->text, "%s", command);
	for (char *at = c->text, *word; (word = strtok_r(at, " ", &at)) && n < ARGUMENTS; n++) {
		expand(c->word[n], word);
		c->argv[n] = c->word[n];
	}
	c->argv[n] = NULL;
}

void remove_all_in(const char *path)
{
	DIR *d = opendir(path);

	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.'))
			continue;
		char file[2048];
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		if (unlink(file) && errno == EISDIR) {
			remove_all_in(file);
			rmdir(file);
		}
	}
	if (d)
		closedir(d);
}

static void write_file(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(p, 1, n, f) != n || fclose(f))
		fail_msg("%s cannot be written", path);
}

/* Each file of a folder: the name in both, and whether fn says yes to all. */
static void copy_all(const char *from, const char *to)
{
	DIR *d = opendir(from);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char a[2048], b[2048];
		size_t n;
		if (e->d_name[0] == '.')
			continue;
		snprintf(a, sizeof a, "%s/%s", from, e->d_name);
		snprintf(b, sizeof b, "%s/%s", to, e->d_name);
		uint8_t *bytes = file_bytes(a, &n);
		write_file(b, bytes, n);
		chmod(b, 0600);
		free(bytes);
	}
	closedir(d);
}

static const char old_text[] = "what was there before";

bool is_as_before(const char *p, size_t n) { return n == sizeof old_text && memcmp(p, old_text, n) == 0; }

void prepare(const struct scene *s)
{
	char made[1200], cache[1200], kept[1200], path[2400];

	path_in(made, "made");
	remove_all_in(made);
	snprintf(path, sizeof path, "%s/prompt", made);
	write_file(path, "Once upon", 9);
	snprintf(path, sizeof path, "%s/text", made);
	write_file(path, "Once upon a time there was a cat who sat on a mat.", 50);
	if (s->file && !strstr(s->file, ".jkp")) {
		snprintf(path, sizeof path, "%s/%s", made, s->file);
		write_file(path, old_text, sizeof old_text);
	}
	if (!s->cache)
		return;
	path_in(cache, "cache");
	remove_all_in(cache);
	path_in(kept, s->cache);
	if (strcmp(s->cache, "empty"))
		copy_all(kept, cache);
}

#define ROW(test, us, share) "{\"test\": \"" test "\", \"microseconds\": " us ", \"share\": " share ", \"noisy\": \"\"}"
#define REPORT(rows) \
	"{\"suite\": \"jitrun kernels 1\", \"version\": \"1\", \"target\": \"avx2\", \"threads\": 2, \"rows\": [" rows \
	"]}\n"
static const char report_a[] = REPORT(ROW("x attention 2x32/2 c1 @512", "2.5", "0.5") ", " ROW(
	"x bf16 matrix 64x64 c1", "0.125", "0.75") ", {\"test\": \"y\", \"noisy\": \"its limit\"}");
static const char report_b[] =
	REPORT(ROW("x bf16 matrix 64x64 c1", "0.0625", "0.875") ", " ROW("x attention 2x32/2 c1 @512", "2.75", "0.5"));

/* An answer and what it is made again with. */
static void keep_answer(void)
{
	struct command c;
	struct outcome o;
	char path[1200], text[4000];

	if (access("jitserve", X_OK))
		return;
	split(&c, "jitserve %m --no-cache -t 1 --context 128 --parallel 2 --speculate off -q");
	fault_run(c.argv, &(struct given){ .asks = &kept_answer }, NULL, &o);
	const char *line = strchr(o.out, '\n'), *body = strchr(kept_answer.request[0], '\n');
	if (o.status || !line || strncmp(o.out, "v=", 2) != 0)
		fail_msg("jitserve: status %d, %s, %s", o.status, o.out, o.err);
	int n = snprintf(text, sizeof text, "{\"path\":\"%.*s\",\"request\":%s,\"replay\":\"%.*s\",\"answer\":%s}",
	                 (int)(body - kept_answer.request[0]), kept_answer.request[0], body + 1, (int)(line - o.out),
	                 o.out, line + 1);
	path_in(path, "answer.json");
	write_file(path, text, (size_t)n);
	fault_free(&o);
}

int make_models(void **unused)
{
	char name[1200];

	/* in memory where that is to be had: thousands of files are written */
	snprintf(base, sizeof base, "%s/t_faults-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(base))
		return -1;
	setenv("XDG_CACHE_HOME", base, 1);
	setenv("TMPDIR", base, 1);
	setenv("LD_LIBRARY_PATH", ".libs", 1);
	setenv("JITRUN_BENCH_BYTES", "4194304", 1);
	unsetenv("JITRUN_CACHE");
	shell("cd '%s' && mkdir made cache warm some few card cards", base);
	shell("./jitbench --shape tiny --write '%s/tiny.gguf' -p 0 -n 1 -r 1 --no-start --force --no-cache > /dev/null "
	      "2>&1; test -s '%s/tiny.gguf'",
	      base, base);
	shell("./jitbench --shape tiny --weights bf16 --write '%s/floats.gguf' -p 0 -n 1 -r 1 --no-start --force "
	      "--no-cache > /dev/null 2>&1; test -s '%s/floats.gguf'",
	      base, base);
	shell("./jitwarm '%s/tiny.gguf' --kv-type f16 --batch 4 --out '%s/kept.jkp' -q && ./jitwarm '%s/tiny.gguf' "
	      "--kv-type f16 --batch 4 --out '%s/warm' -q",
	      base, base, base, base);
	shell("./jitrun '%s/floats.gguf' --perplexity '%s' -c 8 -q --no-cache --imatrix-out '%s/floats.imatrix' > "
	      "/dev/null",
	      base, source_path(name, "LICENSE"), base);
	shell("./jitwarm '%s/tiny.gguf' --target gfx1100 --kv-type f16 --batch 1 --out '%s/cards' -q", base, base);
	shell("cd '%s' && cp $(ls warm/*.jko | sed -n '1~60p') few && cp $(ls cards/*.jko | sed -n '1~26p') card && rm "
	      "-r cards",
	      base);
	shell("cd '%s' && cp warm/*[0-7].jko some && cp warm/CACHEDIR.TAG some 2>/dev/null; true", base);
	path_in(name, "a.json");
	write_file(name, report_a, sizeof report_a - 1);
	path_in(name, "b.json");
	write_file(name, report_b, sizeof report_b - 1);
	path_in(name, "key");
	shell("./jitwarm list '%s/kept.jkp' | grep -o 'matmul[^ ]*' | head -1 > '%s'", base, name);
	size_t n;
	char *key = (char *)file_bytes(name, &n);
	snprintf(kept_key, sizeof kept_key, "%.*s", n ? (int)n - 1 : 0, key);
	free(key);
	keep_answer();
	setenv("PATH", "/nonexistent", 1); /* so that no disassembler has a say in predictions */
	return 0;
}

int remove_models(void **unused)
{
	remove_all_in(base);
	return rmdir(base);
}
