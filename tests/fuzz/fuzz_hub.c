/* tests/fuzz/fuzz_hub.c - arbitrary bytes as the hub's list of a model's files, and as the name of a model: no path
 * that is taken leads out of a folder, and nothing is chosen that is not listed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/choose.h"
#include "tests/fuzz/fuzz.h"

static void must(bool held)
{
	if (!held)
		abort();
}

/* Not by path_trouble, which is what is tried. */
static bool leads_out(const char *path)
{
	size_t n = strlen(path);

	return *path == '/' || !*path || path[n - 1] == '/' || strcmp(path, "..") == 0 ||
	       strncmp(path, "../", 3) == 0 || strstr(path, "/../") || strstr(path, "//") ||
	       (n > 2 && strcmp(path + n - 3, "/..") == 0);
}

static void choose(struct listing *l, const struct reference *r)
{
	const struct listing_file *model;
	struct error err = { 0 };
	bool ok = choose_files(l, r, true, &model, &err), found = !model;

	must(ok || err.text[0]);
	for (size_t i = 0; i < l->n; i++) {
		found |= model == &l->file[i] && l->file[i].chosen;
		l->file[i].chosen = false;
	}
	must(!ok || found);
}

void fuzz_hub(const uint8_t *p, size_t n)
{
	struct reference r = { .revision = "main" }, quant = { .revision = "main", .quant = "Q8_0" };
	struct listing l = { 0 };
	struct error err = { 0 };
	char text[600];

	bool ok = listing_read(&l, p, n, &err);
	must(ok || err.text[0]);
	for (size_t i = 0; i < l.n; i++)
		must(!leads_out(l.file[i].path) && l.file[i].size <= PULL_SIZE_MAX &&
		     (!*l.file[i].etag || etag_is_safe(l.file[i].etag)));
	if (ok && l.n < 2000) {
		choose(&l, &r);
		choose(&l, &quant);
	}
	listing_free(&l);
	snprintf(text, sizeof text, "%.*s", n < sizeof text ? (int)n : (int)sizeof text - 1, (const char *)p);
	err = (struct error){ 0 };
	if (!reference_read(&r, text, "http://127.0.0.1:1", &err))
		must(err.text[0]);
	else
		must(!strchr(r.owner, '/') && !strchr(r.name, '/') && strcmp(r.owner, "..") != 0 &&
		     strcmp(r.name, "..") != 0 && !leads_out(r.revision) && (!*r.file || !leads_out(r.file)));
}

void fuzz_hub_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const texts[] = {
		"{\"sha\":\"0123456789abcdef0123456789abcdef01234567\",\"siblings\":[{\"rfilename\":\"a/m-Q8_0.gguf\","
		"\"size\":5,\"lfs\":{\"size\":5,\"sha256\":"
		"\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}},{\"rfilename\":\"mmproj-F16."
		"gguf\"},"
		"{\"rfilename\":\"README.md\",\"blobId\":\"0123456789abcdef0123456789abcdef01234567\",\"size\":0}]}",
		"{\"siblings\":[{\"rfilename\":\"config.json\"},{\"rfilename\":\"model-00002-of-00002.safetensors\"}]}",
		"{\"siblings\":[{\"rfilename\":\"m-00001-of-99999.gguf\"}]}",
		"{\"siblings\":[{\"rfilename\":\"../x\"}]}",
		"https://huggingface.co/o/n/blob/main/a%2Fb.gguf?x",
		"hf.co/o/n:Q4_K_M@refs/pr/1",
		"http://127.0.0.1:1/o/n",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		take(user, (const uint8_t *)texts[i], strlen(texts[i]));
}
