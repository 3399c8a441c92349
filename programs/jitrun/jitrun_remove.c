/* programs/jitrun/jitrun_remove.c - jitrun rm: takes a model out of the cache that jitrun pull fills. Stores of other
 * programs are theirs to change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/model_names.h"
#include "programs/common/model_search.h"
#include "programs/common/output.h"
#include "pull/remove.h"

static struct {
	const char *name[1];
	bool yes, dry_run;
	struct option_about about;
} arg;

static const struct option_row rows[] = {
	{ .name = "yes", .letter = 'y', .kind = OPTION_FLAG, .help = "do not ask", .target = &arg.yes },
	{ .name = "dry-run", .kind = OPTION_FLAG, .help = "say what would be removed", .target = &arg.dry_run },
	OPTION_ABOUT(arg.about),
};

static struct option_program program = {
	.name = "jitrun rm",
	.usage = "NAME [-y]",
	.purpose = "remove a model that jitrun pull, or another program, put into Hugging Face's cache",
	.description =
		"NAME is as for jitrun pull, or as jitrun list prints it: OWNER/NAME is all of a model, :QUANT and a "
		"file's name are a part of it, and @REVISION is one revision. Files that another revision has, "
		"too, stay. Stores of ollama and LM Studio are changed by these alone.",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.operand = arg.name,
	.operand_name = "NAME",
	.max_operands = 1
};

static bool fill(char *out, size_t size, const char *from, size_t n)
{
	snprintf(out, size, "%.*s", (int)n, from);
	return n < size;
}

/* ROOT/models--OWNER--NAME/snapshots/COMMIT[/FILE] in its parts. False: it is no such path. */
static bool read_path(struct reference *r, char *root, size_t size, const char *path)
{
	static const char mark[] = "/models--", below[] = "/snapshots/";
	const char *repo = NULL, *dashes, *at = path;

	while ((at = strstr(at, mark)))
		repo = at++;
	const char *end = repo ? strstr(repo, below) : NULL;
	if (!end || !(dashes = strstr(repo + sizeof mark - 1, "--")) || dashes > end)
		return false;
	const char *owner = repo + sizeof mark - 1, *commit = end + sizeof below - 1;
	size_t n = strcspn(commit, "/");
	*r = (struct reference){ .has_revision = true };
	return fill(root, size, path, (size_t)(repo - path)) &&
	       fill(r->owner, sizeof r->owner, owner, (size_t)(dashes - owner)) &&
	       fill(r->name, sizeof r->name, dashes + 2, (size_t)(end - dashes - 2)) &&
	       fill(r->revision, sizeof r->revision, commit, n) &&
	       fill(r->file, sizeof r->file, commit + n + (commit[n] == '/'), strlen(commit + n + (commit[n] == '/')));
}

/* The program that owns where a model lies. */
static const char *source_of(const struct model_search *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->found[i].path && strcmp(s->found[i].path, path) == 0)
			return s->found[i].source;
	return "";
}

static bool refuse(const struct model_named *m, const char *source, struct error *err)
{
	if (strcmp(source, "ollama") == 0)
		return error_set(err, ERROR_ARGUMENT, "%.200s is in ollama's store; ollama rm %.200s removes it",
		                 m->name, m->name);
	if (strcmp(source, "LM Studio") == 0)
		return error_set(err, ERROR_ARGUMENT, "%.200s is LM Studio's, whose page My Models removes it",
		                 m->name);
	return error_set(err, ERROR_ARGUMENT, "%.300s is a file outside of the cache; rm removes it", m->path);
}

/* By the name that jitrun list prints, or a part of it. */
static bool find_listed(struct reference *r, char *root, size_t size, const char *word, struct error *err)
{
	struct model_named m = { 0 };
	struct model_search s = { 0 };
	bool ok = model_named(&m, word, err) && model_search_all(&s, err);
	const char *source = ok ? source_of(&s, m.path) : "";

	if (ok && !m.name && access(m.path, F_OK) != 0)
		ok = error_set(err, ERROR_ARGUMENT, "%.300s: there is no such model", word);
	else if (ok && (strcmp(source, "Hugging Face") != 0 || !read_path(r, root, size, m.path)))
		ok = refuse(&m, source, err);
	model_search_free(&s);
	model_named_free(&m);
	return ok;
}

static bool has_folder(const char *root, const struct reference *r)
{
	char path[5000];

	snprintf(path, sizeof path, "%s/models--%s--%s", root, r->owner, r->name);
	return access(path, F_OK) == 0;
}

static bool find(struct reference *r, char *root, size_t size, const char *word, struct error *err)
{
	struct error ignored = { 0 };
	char *usual = cache_root(NULL, &ignored);
	bool ok = usual && access(word, F_OK) != 0 && reference_read(r, word, getenv("HF_ENDPOINT"), &ignored) &&
	          has_folder(usual, r) && fill(root, size, usual, strlen(usual));

	free(usual);
	return ok || find_listed(r, root, size, word, err);
}

static void say(const struct removal *m, const struct hub_cache *c)
{
	char size[FACTS_SIZE], quoted[FACTS_QUOTED];

	for (size_t i = 0; i < m->n && !m->all; i++)
		if (m->file[i].goes)
			printf("%s\n", error_quote(quoted, sizeof quoted, m->file[i].path, strlen(m->file[i].path)));
	facts_size(size, m->bytes);
	printf("%zu file%s of %s, %s\n", m->goes, m->goes == 1 ? "" : "s",
	       error_quote(quoted, sizeof quoted, c->folder, strlen(c->folder)), size);
}

/* 0: yes. Otherwise the exit status. */
static int ask(void)
{
	char answer[20] = "";

	if (arg.yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return jitrun_usage("rm: there is no terminal to ask; -y says yes");
	printf("Remove? [y/N] ");
	fflush(stdout);
	if (!fgets(answer, sizeof answer, stdin) || (*answer != 'y' && *answer != 'Y'))
		return EXIT_NO;
	return 0;
}

int jitrun_remove(int argc, char **argv)
{
	struct reference r;
	struct hub_cache c = { .blobs = -1 };
	struct removal m = { 0 };
	struct error err = { 0 };
	char root[4096];
	int status = EXIT_USAGE;

	if (!options_parse(&program, argc, argv) || options_about(&program, &arg.about, jit_version(), &status))
		return status;
	if (!arg.name[0])
		return jitrun_usage("rm what? Give a name that 'jitrun list' prints");
	bool ok = find(&r, root, sizeof root, arg.name[0], &err) && hub_cache_open(&c, root, &r, false, &err) &&
	          removal_find(&m, &c, &r, &err);
	if (ok && m.n && !m.goes)
		ok = error_set(&err, ERROR_ARGUMENT, "nothing of %s/%s is called so", r.owner, r.name);
	status = 0;
	if (ok)
		say(&m, &c);
	if (ok && !arg.dry_run)
		status = ask();
	if (ok && !arg.dry_run && status == 0)
		ok = removal_do(&m, &c, &err);
	removal_free(&m);
	hub_cache_close(&c);
	return ok ? status : jitrun_fail_with(&err);
}
