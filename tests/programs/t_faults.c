/* tests/programs/t_faults.c - every program and mode while a call of it fails: an allocation, a file's, a thread's. It
 * gives all that it gives without (a cache that cannot be written is no reason not to), or ends with the status of a
 * failure and one sentence; never a signal, never less with status 0, nothing stored is lost or damaged.
 * JITRUN_TEST_QUICK: few calls of each kind; JITRUN_TEST_FULL: every one of them, or as many of each kind as FULL_MOST
 * says, evenly spread: it takes half an hour or so.
 * JITRUN_TEST_FAULTS_SCENE: this one alone; JITRUN_TEST_FAULTS_CALLS: so many of each kind.
 */
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

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

/* ---- the kinds of faults */

static const struct way {
	enum fault_call call;
	int error;
	bool later;
} ways[] = {
	{ FAULT_MALLOC, ENOMEM, false }, { FAULT_MALLOC, ENOMEM, true },    { FAULT_MMAP, ENOMEM, false },
	{ FAULT_MMAP, ENOMEM, true },    { FAULT_MPROTECT, EACCES, false }, { FAULT_MPROTECT, ENOMEM, true },
	{ FAULT_MADVISE, EINVAL, true }, { FAULT_OPEN, EMFILE, false },     { FAULT_OPEN, EACCES, false },
	{ FAULT_OPEN, EMFILE, true },    { FAULT_READ, EIO, false },        { FAULT_READ, EINTR, false },
	{ FAULT_READ, 0, false },        { FAULT_READ, 0, true },           { FAULT_READ, EIO, true },
	{ FAULT_WRITE, ENOSPC, false },  { FAULT_WRITE, EINTR, false },     { FAULT_WRITE, 0, false },
	{ FAULT_WRITE, ENOSPC, true },   { FAULT_SYNC, EIO, false },        { FAULT_RENAME, ENOSPC, false },
	{ FAULT_RENAME, EACCES, true },  { FAULT_CLOSE, EIO, false },       { FAULT_STAT, EIO, false },
	{ FAULT_STAT, EACCES, true },    { FAULT_SEEK, EIO, false },        { FAULT_TRUNCATE, ENOSPC, true },
	{ FAULT_UNLINK, EACCES, true },  { FAULT_MKDIR, ENOSPC, false },    { FAULT_LIST, EIO, false },
	{ FAULT_LOCK, ENOLCK, true },    { FAULT_LOCK, EINTR, false },      { FAULT_MEMFD, EMFILE, false },
	{ FAULT_THREAD, EAGAIN, false }, { FAULT_THREAD, EAGAIN, true },
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- what is run */

/* What of the output is the same each time: all, all up to the timings, the number of lines and their ends, or that
 * there is some. */
enum said { EXACT, UP_TO_TIMINGS, LINES, ANYTHING };

struct scene {
	const char *command; /* %m: the story model; %t: a tiny one; %c: the cache, made as `cache` says; %k: a pack for
	                        the tiny one; %K, %G: keys of its kernels, %G for a card; %d: a folder; %a, %b: reports;
	                        %_: a space */
	enum said said;
	const char *cache; /* "empty", or what of the kept ones is copied there */
	const char *file;  /* what it writes in %d; when it was there before, it is as it was or new, whole */
	const char *told;  /* what it says instead of a part of its output that it could not have */
	int answer;        /* a status that says no, besides 0 and 1 */
	bool file_varies, long_one, longest; /* long_one: tried with fewer faults, and not in a quick run; longest: with
	                                        fewest, and in a full run alone */
	unsigned memory; /* so many allocations and mappings of it are refused in every run: that was not told once */
};

#define RUN_TINY "jitrun %t --prompt-ids 1,2,3 -n 4 --print-ids -q --tune off --batch 4 --speculate off "
static const struct scene scenes[] = {
	{ .command = "jitrun %m --prompt Once -n 4 -q --no-cache -t 1 --tune off" },
	{ .command = "jitrun %m --file %d/prompt -n 3 --json --no-cache -t 1 --tune off",
	  .said = UP_TO_TIMINGS,
	  .memory = 10 },
	{ .command = "jitrun %m --file - -n 3 --echo -q --no-cache -t 3 --speculate 4" },
	{ .command = "jitrun %m --perplexity %d/text -c 8 -q --no-cache -t 1" },
	{ .command = RUN_TINY "--no-cache -t 1" },
	{ .command = RUN_TINY "--no-cache -t 3" },
	{ .command = RUN_TINY "--no-cache -t 1 --device ref" },
	{ .command = RUN_TINY "--no-cache -t 1 --device sim:gfx1100 --units 1" },
	{ .command = "jitrun %t --prompt-ids 1,2,3 -n 4 --report --json -q -t 1 --tune off --no-cache",
	  .said = UP_TO_TIMINGS,
	  .memory = 10 },
	{ .command = "jitrun %t --prompt-ids 1,2,3 -n 2 --report --print-ids -t 1 --tune off --no-cache" },
	{ .command = RUN_TINY "--no-cache -t 1 --trace %d/made", .file = "made", .file_varies = true },
	{ .command = RUN_TINY "--no-cache -t 1 --dump-ir %d/made", .file = "made" },
	{ .command = RUN_TINY "--no-cache -t 1 --dump-asm %d/made", .file = "made" },
	{ .command = RUN_TINY "--no-cache -t 1 --jitdump %d" },
	{ .command = RUN_TINY "--no-cache -t 1 --gdb" },
	{ .command = RUN_TINY "--no-cache -t 1 --perf-map" },
	{ .command = RUN_TINY "-t 1 --cache %c", .cache = "empty" },
	{ .command = RUN_TINY "-t 1 --cache %c", .cache = "warm" },
	{ .command = RUN_TINY "-t 3 --cache %c", .cache = "some" },
	{ .command = "jitrun %t --prompt-ids 1,2,3 -n 40 --print-ids -q -t 1 --cache %c", .cache = "empty" },
	{ .command = RUN_TINY "-t 1 --sealed --cache %k" },
	{ .command = RUN_TINY "-t 1 --sealed --cache %c", .cache = "warm" },
	{ .command = "jitrun %t --target gfx1100 --dump-objects %d/objects -q" },
	{ .command = "jitwarm %t --kv-type f16 --batch 4 --out %c -q", .cache = "empty" },
	{ .command = "jitwarm %t --kv-type f16 --batch 4 --out %c -q", .cache = "some" },
	{ .command = "jitwarm %t --kv-type f16 --batch 4 --out %d/made.jkp -q", .file = "made.jkp" },
	{ .command = "jitwarm --shape tiny --kv-type f16 --batch 4 --out %d/made.jkp",
	  .said = ANYTHING,
	  .file = "made.jkp" },
	{ .command = "jitwarm list %c", .cache = "warm", .told = "unreadable" },
	{ .command = "jitwarm list %k --json", .told = "unreadable" },
	{ .command = "jitwarm show %K --cache %c", .cache = "some", .told = "is not known", .answer = 3, .memory = 24 },
	{ .command = "jitwarm show %G --cache %c", .cache = "card", .told = "is not known", .answer = 3, .memory = 10 },
	{ .command = "jitwarm show %K --json --cache %c", .said = ANYTHING, .cache = "warm", .answer = 3 },
	{ .command = "jitwarm verify %c", .cache = "warm", .answer = 3 },
	{ .command = "jitwarm verify %c --remove", .cache = "warm", .answer = 3, .long_one = true },
	{ .command = "jitwarm verify %c --remove", .cache = "few", .answer = 3, .memory = 28 },
	{ .command = "jitwarm verify %c --remove", .cache = "card", .answer = 3, .memory = 28 },
	{ .command = "jitwarm verify %k", .answer = 3 },
	{ .command = "jitwarm explain %t --kv-type f16 --batch 4 --cache %c", .cache = "warm", .answer = 3 },
	{ .command = "jitwarm export %d/made.jkp --cache %c", .cache = "warm", .said = ANYTHING, .file = "made.jkp" },
	{ .command = "jitwarm import %k --cache %c", .cache = "some", .said = ANYTHING },
	{ .command = "jitwarm gc %c", .cache = "warm" },
	{ .command = "jitbench --shape tiny -p 4 -n 2 -r 1 --no-start --force -t 1 --no-cache -o json",
	  .said = LINES,
	  .long_one = true },
	{ .command = "jitbench --shape tiny --write %d/made.gguf -p 0 -n 1 -r 1 --no-start --force -t 1 --no-cache",
	  .said = LINES,
	  .file = "made.gguf",
	  .long_one = true },
	{ .command = "jitbench --shape tiny --kernels -r 1 --force -t 1", .said = LINES, .long_one = true },
	{ .command = "jitwarm tune %t --seconds 1 --cache %c", .said = ANYTHING, .cache = "empty", .long_one = true },
	{ .command = "docs/example %m Once" },
	{ .command = "jitrun %s --prompt-ids 1,2,3 -n 3 --print-ids -q --no-cache -t 1 --tune off" },
	{ .command = "jitbench suite tiny-64x64x128%_bf16%_matrix%_64x64%_c1 -r 1 --force -t 1",
	  .said = LINES,
	  .long_one = true },
	{ .command = "jitbench suite tiny-64x64x128%_bf16%_matrix%_64x64%_c1 -r 1 --force -t 2 -o json",
	  .said = LINES,
	  .long_one = true },
	{ .command = "jitbench compare %a %b", .memory = 12 },
	{ .command = "jitbench compare %a %b -o json", .memory = 12 },
	{ .command = "jitbench --shape tiny -p 0 -n 0 -r 1 --force -t 1 --cache %c -o json",
	  .said = LINES,
	  .cache = "empty",
	  .long_one = true },
	{ .command = "jitbench %m -p 0 -n 0 -r 1 --force -t 1 --no-cache -o csv", .said = LINES, .long_one = true },
	{ .command = "jitbench --shape tiny --predict --device sim:gfx1100", .long_one = true },
	{ .command = "jitbench --shape tiny --kernels --device sim:gfx1100 -r 1 --force -t 1",
	  .said = LINES,
	  .long_one = true },
	{ .command = "jitrun --devices" },
	{ .command = "jitbench passes --shape tiny -r 1 -t 1", .said = LINES, .longest = true },
	{ .command = "jitbench schedules --shape tiny -r 1 -t 1", .said = LINES, .longest = true },
};
enum {
	SCENES = sizeof scenes / sizeof *scenes,
	ARGUMENTS = 32,
	FULL_MOST = 200,
	FULL_MOST_LONG = 40,
	FULL_MOST_LONGEST = 4
};

static char base[64], kept_key[256];
static char safetensors[1024];

static void path_in(char out[1200], const char *name) { snprintf(out, 1200, "%s/%s", base, name); }

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
	static const char *const program = "jitrun jitwarm jitbench";
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
			                      : *p == 'c' ? "cache"
			                      : *p == 'k' ? "kept.jkp"
			                                  : "made");
	}
	out[n] = 0;
}

struct command {
	char text[1024], word[ARGUMENTS][1200];
	const char *argv[ARGUMENTS + 1];
};

static void split(struct command *c, const char *command)
{
	int n = 0;

	snprintf(c->text, sizeof c->text, "%s", command);
	for (char *at = c->text, *word; (word = strtok_r(at, " ", &at)) && n < ARGUMENTS; n++) {
		expand(c->word[n], word);
		c->argv[n] = c->word[n];
	}
	c->argv[n] = NULL;
}

/* ---- before and after a run */

static void remove_all_in(const char *path)
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

static void prepare(const struct scene *s)
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

static bool same_bytes(const char *a, const char *b)
{
	size_t n, m;
	uint8_t *p = file_bytes(a, &n), *q = file_bytes(b, &m);
	bool same = n == m && memcmp(p, q, n) == 0;

	free(p);
	free(q);
	return same;
}

/* Every entry that was there is there, byte for byte. */
static const char *lost_of_cache(const struct scene *s)
{
	static char file[2400];
	char cache[1200], kept[1200];
	const char *lost = NULL;

	path_in(cache, "cache");
	path_in(kept, s->cache);
	DIR *d = strcmp(s->cache, "empty") ? opendir(kept) : NULL;
	for (struct dirent *e; d && !lost && (e = readdir(d));) {
		char before[2400];
		if (!strstr(e->d_name, ".jko"))
			continue;
		snprintf(before, sizeof before, "%s/%s", kept, e->d_name);
		snprintf(file, sizeof file, "%s/%s", cache, e->d_name);
		if (access(file, F_OK) || !same_bytes(before, file))
			lost = file;
	}
	if (d)
		closedir(d);
	return lost;
}

/* ---- judging */

struct expected {
	struct outcome o;
	char *file;
	size_t n_file;
};

static size_t lines_in(const struct outcome *o)
{
	size_t lines = 0;

	for (size_t i = 0; i < o->n_out; i++)
		lines += o->out[i] == '\n';
	return lines;
}

static bool same_output(const struct scene *s, const struct outcome *a, const struct outcome *b)
{
	size_t n = a->n_out, m = b->n_out;
	const char *cut;

	if (s->said == ANYTHING)
		return (n > 0) == (m > 0);
	if (s->said == LINES)
		return lines_in(a) == lines_in(b) && m && b->out[m - 1] == '\n';
	if (s->said == UP_TO_TIMINGS) {
		if (!m || b->out[m - 1] != '\n')
			return false;
		n = (cut = strstr(a->out, "\"timings\"")) ? (size_t)(cut - a->out) : n;
		m = (cut = strstr(b->out, "\"timings\"")) ? (size_t)(cut - b->out) : m;
	}
	return n == m && memcmp(a->out, b->out, n) == 0;
}

/* One sentence of who says it, the last of what it says; the example says what the library told it. */
static bool is_sentence(const struct scene *s, const struct outcome *o)
{
	const char *last = NULL;
	unsigned sentences = 0;

	if (o->n_err < 24 || o->err[o->n_err - 1] != '\n' || strcmp(o->err + o->n_err - 4, ": .\n") == 0)
		return false;
	for (const char *line = o->err; *line; line = strchr(line, '\n') + 1) {
		last = line;
		sentences += strncmp(line, "jitrun: ", 8) == 0 || strncmp(line, "jitwarm: ", 9) == 0 ||
		             strncmp(line, "jitbench: ", 10) == 0;
	}
	return strncmp(s->command, "docs/", 5) == 0 ||
	       (sentences == 1 && strncmp(last, "jit", 3) == 0 && o->err[o->n_err - 2] == '.');
}

static const char *judge_file(const struct scene *s, const struct expected *e, const struct outcome *o)
{
	char path[2400];
	size_t n = 0;
	const char *wrong = NULL;

	snprintf(path, sizeof path, "%s/made/%s", base, s->file);
	if (access(path, F_OK))
		return o->status == 0 ? "the file is not there" : NULL;
	if (o->status && !strstr(s->file, ".jkp"))
		return NULL;
	char *p = (char *)file_bytes(path, &n);
	if (s->file_varies ? n == 0 : n != e->n_file || memcmp(p, e->file, n))
		wrong = "the file is not what it should be";
	free(p);
	return wrong;
}

/* NULL: as it should be. */
static const char *judge(const struct scene *s, const struct expected *e, const struct outcome *o)
{
	const char *wrong = NULL;

	if (o->hung)
		return "it hangs";
	if (o->signal)
		return "it ended by a signal";
	if (o->child_signal &&
	    !strstr(s->command, "--predict")) /* which asks a shell for llvm-mca: that may die as it likes */
		return "a process that it made ended by a signal";
	if (o->status == 0 && e->o.status == 0)
		wrong = same_output(s, &e->o, o) || (s->told && strstr(o->out, s->told))
		                ? NULL
		                : "status 0, but other output than without the fault";
	else if (s->answer && o->status == s->answer)
		wrong = o->n_out ? NULL : "an answer that is empty";
	else if (o->status != 1)
		wrong = "another status than 0 and 1";
	else if (!is_sentence(s, o))
		wrong = "it failed without one sentence";
	if (!wrong && s->file)
		wrong = judge_file(s, e, o);
	if (!wrong && s->cache && !strstr(s->command, "gc"))
		wrong = lost_of_cache(s);
	return wrong;
}

/* What was stored beside what was there before is good, too. */
static const char *verify_cache(void)
{
	char cache[1200];
	struct outcome o;

	path_in(cache, "cache");
	const char *const argv[] = { "./jitwarm", "verify", cache, "-q", NULL };
	fault_run(argv, NULL, NULL, &o);
	bool good = o.status == 0 && o.signal == 0;
	fault_free(&o);
	return good ? NULL : "jitwarm verify finds the cache damaged";
}

/* perf looks for it there, and nowhere else. */
static void remove_map(const struct outcome *o)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)o->pid);
	unlink(path);
}

/* Temporary files go, whatever happens, but where files cannot be removed; folders, where they can be listed as
 * well. */
static const char *left_behind(const struct fault *f)
{
	bool unlisted = f->later || f->call == FAULT_OPEN || f->call == FAULT_LIST || f->call == FAULT_STAT ||
	                f->call == FAULT_MALLOC;
	const char *wrong = NULL;
	DIR *d = opendir(base);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strncmp(e->d_name, "jitbench-", 9) == 0 || strncmp(e->d_name, ".jitbench-", 10) == 0) {
			char path[1500];
			path_in(path, e->d_name);
			remove_all_in(path);
			if ((unlink(path) == 0 || (rmdir(path) == 0 && !unlisted)) && f->call != FAULT_UNLINK)
				wrong = "it left a temporary file behind";
		}
	closedir(d);
	return wrong;
}

static unsigned runs, failures;

static void try_one(const struct scene *s, const struct command *c, const struct expected *e, const struct fault *f,
                    bool verify)
{
	struct outcome o;
	char input[1200];

	prepare(s);
	path_in(input, "made/prompt");
	fault_run(c->argv, strstr(s->command, "--file -") ? input : NULL, f, &o);
	remove_map(&o);
	runs++;
	const char *wrong = judge(s, e, &o);
	const char *left = left_behind(f);
	wrong = wrong ? wrong : left;
	if (!wrong && s->cache && verify)
		wrong = verify_cache();
	if (wrong) {
		failures++;
		print_error("%s\n  %s %u fails with %s%s: %s (status %d, signal %d, %zu bytes of output, said: %s)\n",
		            s->command, fault_names[f->call], f->at, f->error ? strerror(f->error) : "half done",
		            f->later ? ", all later ones too" : "", wrong, o.status, o.signal, o.n_out, o.err);
	}
	fault_free(&o);
}

static bool expect(const struct scene *s, const struct command *c, struct expected *e)
{
	char path[2400];

	prepare(s);
	snprintf(path, sizeof path, "%s/made/prompt", base);
	fault_run(c->argv, strstr(s->command, "--file -") ? path : NULL, &(struct fault){ .call = FAULT_CALLS }, &e->o);
	remove_map(&e->o);
	if (e->o.status || e->o.signal || e->o.hung) {
		print_error("%s\n  without any fault: status %d, signal %d, said: %s\n", s->command, e->o.status,
		            e->o.signal, e->o.err);
		return false;
	}
	snprintf(path, sizeof path, "%s/made/%s", base, s->file ? s->file : "");
	e->file = s->file ? (char *)file_bytes(path, &e->n_file) : NULL;
	return true;
}

/* Which of n calls fail: all, or some that lie elsewhere for each scene and way. */
static void sweep(unsigned scene, const struct command *c, const struct expected *e)
{
	unsigned most = !test_full()             ? 1
	                : scenes[scene].longest  ? FULL_MOST_LONGEST
	                : scenes[scene].long_one ? FULL_MOST_LONG
	                                         : FULL_MOST;
	const char *asked = getenv("JITRUN_TEST_FAULTS_CALLS");

	if (asked)
		most = (unsigned)atoi(asked);
	for (unsigned w = 0; w < WAYS; w++) {
		unsigned n = e->o.count[ways[w].call], tries = most && most < n ? most : n;
		unsigned memory = ways[w].call <= FAULT_MMAP ? scenes[scene].memory : 0;
		if (!test_full() && !asked && memory)
			tries = memory < n ? memory : n;
		else if (!test_full() && !asked && (w + scene) % (scenes[scene].long_one ? 17 : test_quick() ? 8 : 6))
			continue;
		for (unsigned i = 0; i < tries; i++) {
			unsigned shift = (scene * 7919u + w * 104729u) % 1009u;
			unsigned at =
				tries == n ? i
					   : (unsigned)(((uint64_t)i * 1009 + shift) * n / ((uint64_t)tries * 1009));
			struct fault f = { ways[w].call, at + 1, ways[w].error, ways[w].later };
			try_one(&scenes[scene], c, e, &f, test_full() || i == 0);
		}
	}
}

static void every_scene_fails_well(void **unused)
{
	const char *only = getenv("JITRUN_TEST_FAULTS_SCENE");
	char model[1024];

	for (unsigned i = 0; i < SCENES; i++) {
		const struct scene *s = &scenes[i];
		struct command c;
		struct expected e = { 0 };
		if ((only ? (unsigned)atoi(only) != i
		          : ((s->long_one && test_quick()) || s->longest) && !test_full()) ||
		    (strstr(s->command, "%s") && !safetensors[0] &&
		     !(shared_path(model, "golden/qwen3-gqa2-bf16") && strcpy(safetensors, model))))
			continue;
		unsigned before = failures, runs_before = runs;
		split(&c, s->command);
		if (expect(s, &c, &e))
			sweep(i, &c, &e);
		else
			failures++;
		print_message("%2u %s: %u runs, %u failures;", i, s->command, runs - runs_before, failures - before);
		for (int k = 0; k < FAULT_CALLS; k++)
			if (e.o.count[k])
				print_message(" %s %u", fault_names[k], e.o.count[k]);
		print_message("\n");
		free(e.file);
		fault_free(&e.o);
	}
	print_message("%u runs with a fault\n", runs);
	assert_int_equal(failures, 0);
}

#define ROW(test, us, share) "{\"test\": \"" test "\", \"microseconds\": " us ", \"share\": " share ", \"noisy\": \"\"}"
#define REPORT(rows) \
	"{\"suite\": \"jitrun kernels 1\", \"version\": \"1\", \"target\": \"avx2\", \"threads\": 2, \"rows\": [" rows \
	"]}\n"
static const char report_a[] = REPORT(ROW("x attention 2x32/2 c1 @512", "2.5", "0.5") ", " ROW(
	"x bf16 matrix 64x64 c1", "0.125", "0.75") ", {\"test\": \"y\", \"noisy\": \"its limit\"}");
static const char report_b[] =
	REPORT(ROW("x bf16 matrix 64x64 c1", "0.0625", "0.875") ", " ROW("x attention 2x32/2 c1 @512", "2.75", "0.5"));

static int make_models(void **unused)
{
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
	shell("./jitwarm '%s/tiny.gguf' --kv-type f16 --batch 4 --out '%s/kept.jkp' -q && ./jitwarm '%s/tiny.gguf' "
	      "--kv-type f16 --batch 4 --out '%s/warm' -q",
	      base, base, base, base);
	shell("./jitwarm '%s/tiny.gguf' --target gfx1100 --kv-type f16 --batch 1 --out '%s/cards' -q", base, base);
	shell("cd '%s' && cp $(ls warm/*.jko | sed -n '1~60p') few && cp $(ls cards/*.jko | sed -n '1~26p') card && rm "
	      "-r cards",
	      base);
	shell("cd '%s' && cp warm/*[0-7].jko some && cp warm/CACHEDIR.TAG some 2>/dev/null; true", base);
	char name[1200];
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
	setenv("PATH", "/nonexistent", 1); /* so that no disassembler has a say in predictions */
	return 0;
}

static int remove_models(void **unused)
{
	remove_all_in(base);
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_scene_fails_well) };

	setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef SANITIZED
	printf("# skipped: a sanitizer's own calls would fail\n");
	return 77;
#endif
	if (!fault_begin())
		return 77;
	return cmocka_run_group_tests(tests, make_models, remove_models);
}
