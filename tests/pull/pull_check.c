#include "tests/pull/pull_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char root[64] = "/tmp/t_pull.XXXXXX", big[BIG], out[SAID], err[SAID];
const char *vars = "";

const struct fake_file gguf[GGUF_FILES] = {
	{ "README.md", "readme", 6, false },
	{ "mmproj-F16.gguf", big, 1000, true },
	{ "m-BF16.gguf", big, 900, true },
	{ "m-F16.gguf", big, 800, true },
	{ "m-IQ2_XS.gguf", big, 700, true },
	{ "m-Q4_K_M.gguf", big, BIG, true },
	{ "m-Q8_0-00001-of-00003.gguf", big, 300, true },
	{ "m-Q8_0-00002-of-00003.gguf", big, 301, true },
	{ "m-Q8_0-00003-of-00003.gguf", big, 302, true },
	{ "notes.txt", "notes", 5, false },
};

void read_into(char *to, const char *name)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(to, 1, SAID - 1, f) : 0;
	to[n] = 0;
	if (f)
		fclose(f);
}

int shell(const char *format, ...)
{
	char line[4000];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	int status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

int pull(const char *arguments)
{
	int status =
		shell("env -i PATH=\"$PATH\" HOME=%s HF_ENDPOINT=http://127.0.0.1:%d ASAN_OPTIONS=\"$ASAN_OPTIONS\" "
	              "%s timeout 60 ./jitpull --retry-wait 1 --cache %s/cache %s >%s/out 2>%s/err",
	              root, hub.port, vars, root, arguments, root, root);

	read_into(out, "out");
	read_into(err, "err");
	if (getenv("T_PULL_SHOW"))
		fprintf(stderr, "%s: %d %s%s", arguments, status, out, err);
	return status;
}

void clear(void)
{
	shell("rm -rf %s/cache", root);
	vars = "";
}

bool is_there(const char *below)
{
	char path[400];

	snprintf(path, sizeof path, "%s/cache/%s", root, below);
	return access(path, F_OK) == 0;
}

/* Whether a file of the snapshot has these bytes, and is a link to the blob of that name. */
bool holds(const struct fake_file *f)
{
	char path[400], etag[65], want[200], link[200];
	static char bytes[BIG + 1];

	snprintf(path, sizeof path, "%s/cache/" SNAPSHOT "%s", root, f->path);
	fake_hub_etag(f, etag);
	snprintf(want, sizeof want, "../../%sblobs/%s", strchr(f->path, '/') ? "../" : "", etag);
	ssize_t n = readlink(path, link, sizeof link - 1);
	link[n > 0 ? n : 0] = 0;
	FILE *in = fopen(path, "rb");
	size_t got = in ? fread(bytes, 1, sizeof bytes, in) : 0;
	if (in)
		fclose(in);
	return strcmp(link, want) == 0 && got == f->n && memcmp(bytes, f->bytes, got) == 0;
}

/* Nothing but the cache was made. */
bool nothing_else(void) { return shell("test \"$(ls -A %s | grep -vx -e cache -e out -e err)\" = ''", root) == 0; }
