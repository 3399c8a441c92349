#include "programs/common/model_names.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/common/model_facts.h"
#include "programs/common/options.h"

/* How well a name fits: the least wins. */
enum {
	FIT_WHOLE,      /* as it is listed */
	FIT_SPELLING,   /* but for large letters, the ending of a file, a registry's name or the tag "latest" */
	FIT_REPOSITORY, /* a repository, and perhaps the type of its weights */
	FIT_TAG,        /* another tag than "latest", where none is asked for */
	FIT_SHORT,      /* without its owner */
	FIT_SHORTER,    /* without both, or without "-GGUF" */
	FIT_OLD,        /* what is added for a revision that is not the newest */
	FIT_NOT = 99
};

enum { NAME_LENGTH_MAX = 400, SHOWN_MAX = 8 };

/* ---- texts */

static bool begins(const char *s, const char *with) { return strncasecmp(s, with, strlen(with)) == 0; }

/* Without an address in front of it. */
static const char *without_address(const char *s)
{
	static const char *const front[] = { "https://", "http://",     "huggingface.co/",     "hf.co/",
		                             "hf:",      "ollama.com/", "registry.ollama.ai/", "library/" };

	for (size_t i = 0; i < sizeof front / sizeof *front; i++)
		if (strlen(s) > strlen(front[i]) && begins(s, front[i]))
			s += strlen(front[i]);
	return s;
}

/* What stands before a name that several stores have, and may stand before any. */
static const char *store_of(const char *source)
{
	return strcmp(source, "Hugging Face") == 0 ? "huggingface:"
	       : strcmp(source, "LM Studio") == 0  ? "lmstudio:"
	       : strcmp(source, "llama.cpp") == 0  ? "llama.cpp:"
	                                           : "ollama:";
}

static const char *without_store(const char *name, const char *source)
{
	const char *store = store_of(source);

	return begins(name, store) && name[strlen(store)] ? name + strlen(store) : name;
}

static const char *last_part(const char *s, size_t n)
{
	const char *slash = memrchr(s, '/', n);

	return slash ? slash + 1 : s;
}

size_t model_name_stem(const char *s)
{
	static const char *const ends[] = { ".gguf", ".safetensors", ".jkm" };
	size_t n = strlen(s), m = strlen("-00001-of-00003");
	unsigned part, of;
	int used = 0;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && strcasecmp(s + n - strlen(ends[i]), ends[i]) == 0)
			n -= strlen(ends[i]);
	if (n > m && sscanf(s + n - m, "-%5u-of-%5u%n", &part, &of, &used) == 2 && used == (int)m)
		n -= m;
	return n;
}

/* Whether a file's name holds such a type of weights, as a word: "Q4_K" is no part of "Q4_K_M". */
static bool has_type(const char *file, size_t n, const char *type)
{
	size_t m = strlen(type);

	for (size_t i = 0; m && i + m <= n; i++) {
		char after = i + m < n ? file[i + m] : 0;
		if (strncasecmp(file + i, type, m) == 0 && (i == 0 || !isalnum((unsigned char)file[i - 1])) &&
		    !isalnum((unsigned char)after) && after != '_')
			return true;
	}
	return false;
}

/* A word in its parts: "owner/name", and "q4_k_m" behind the colon or NULL. */
struct word {
	const char *text, *tag; /* text: without an address */
	size_t n;               /* of text without the tag */
};

static struct word read_word(const char *whole)
{
	struct word w = { .text = without_address(whole) };
	const char *colon = strrchr(w.text, ':');

	w.tag = colon && colon[1] && !strchr(colon, '/') ? colon + 1 : NULL;
	w.n = w.tag ? (size_t)(colon - w.text) : strlen(w.text);
	return w;
}

/* ---- how well one fits */

static bool is_text(const struct word *w, const char *s, size_t n)
{
	return w->n == n && strncasecmp(w->text, s, n) == 0;
}

static bool is_whole(const struct word *w, const char *s, size_t n)
{
	return strlen(w->text) == n && strncasecmp(w->text, s, n) == 0;
}

static int fit_ollama(const struct word *w, const char *name)
{
	const char *model = without_address(name), *colon = strrchr(model, ':');

	if (!colon)
		return FIT_NOT;
	const char *brief = last_part(model, (size_t)(colon - model));
	bool exact = w->tag ? strcasecmp(w->tag, colon + 1) == 0 : strcmp(colon + 1, "latest") == 0;

	if (w->tag && !exact)
		return FIT_NOT;
	if (is_text(w, model, (size_t)(colon - model)))
		return exact ? FIT_SPELLING : FIT_TAG;
	if (is_text(w, brief, (size_t)(colon - brief)))
		return exact ? FIT_SHORT : FIT_SHORTER;
	return FIT_NOT;
}

/* A repository that a word names, with or without the owner. */
static int fit_repository(const struct word *w, const char *repository, size_t n)
{
	static const char usual[] = "-GGUF";
	const char *brief = last_part(repository, n);
	size_t m = n - (size_t)(brief - repository), less = m > 5 && begins(brief + m - 5, usual) ? m - 5 : m;

	return is_text(w, repository, n) ? FIT_REPOSITORY
	       : is_text(w, brief, m)    ? FIT_SHORT
	       : is_text(w, brief, less) ? FIT_SHORTER
	                                 : FIT_NOT;
}

/* llama.cpp's older cache has OWNER_REPOSITORY_FILE. */
static int fit_flat(const struct word *w, const char *name, size_t n)
{
	if (!memchr(w->text, '/', w->n) || n <= w->n)
		return FIT_NOT;
	for (size_t i = 0; i < w->n; i++)
		if (tolower((unsigned char)(w->text[i] == '/' ? '_' : w->text[i])) != tolower((unsigned char)name[i]))
			return FIT_NOT;
	bool typed = !w->tag || strcmp(w->tag, "latest") == 0 || has_type(name + w->n, n - w->n, w->tag);
	return name[w->n] == '_' && typed ? FIT_REPOSITORY : FIT_NOT;
}

/* Of "OWNER/NAME/FILE" and "OWNER/NAME", the first two; of "FOLDER/FILE", the folder. 0: there is none. */
static size_t repository_of(const char *name, bool is_file)
{
	const char *slash = strchr(name, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;

	return second ? (size_t)(second - name) : !slash ? 0 : is_file ? (size_t)(slash - name) : strlen(name);
}

static int fit_file(const struct word *w, const char *name)
{
	size_t n = model_name_stem(name), all = strlen(name), r = repository_of(name, n < all);
	const char *file = last_part(name, all);

	if (is_whole(w, name, all) || is_whole(w, name, n))
		return FIT_SPELLING;
	bool typed = !w->tag || (r < n && (has_type(name + r, n - r, w->tag) || strcmp(w->tag, "latest") == 0));
	int fit = r && typed ? fit_repository(w, name, r) : FIT_NOT;
	if (fit != FIT_NOT)
		return fit;
	if (file != name && (is_whole(w, file, strlen(file)) || is_whole(w, file, model_name_stem(file))))
		return FIT_SHORT;
	return r ? FIT_NOT : fit_flat(w, name, n);
}

/* "OWNER/NAME@REVISION/FILE" without the revision. NULL: it has none. */
static const char *without_revision(const char *name, char out[NAME_LENGTH_MAX])
{
	const char *at = strchr(name, '@'), *slash = at ? strchr(at, '/') : NULL;

	if (!at)
		return NULL;
	snprintf(out, NAME_LENGTH_MAX, "%.*s%s", (int)(at - name), name, slash ? slash : "");
	return out;
}

static int fit(const char *whole, const struct found_model *p)
{
	char quoted[NAME_LENGTH_MAX], plain[NAME_LENGTH_MAX];
	const char *name = without_store(p->name, p->source);
	const struct word w = read_word(without_store(whole, p->source));

	if (strcmp(whole, p->name) == 0 ||
	    strcmp(whole, error_quote(quoted, sizeof quoted, p->name, strlen(p->name))) == 0)
		return FIT_WHOLE;
	if (strcmp(p->source, "ollama") == 0)
		return fit_ollama(&w, name);
	int best = fit_file(&w, name);
	if (best == FIT_NOT && without_revision(name, plain))
		best = fit_file(&w, plain);
	return best == FIT_NOT || !p->old_revision ? best : best + FIT_OLD;
}

/* ---- those that fit best */

struct fitting {
	const struct found_model **choice;
	size_t n;
	int fit;
};

/* What a repository has besides its model: projectors of pictures, and links that lead nowhere. */
static bool is_no_model(const struct found_model *p)
{
	struct error ignored = { 0 };
	struct model_facts f;

	return p->path && (access(p->path, R_OK) != 0 ||
	                   (model_facts_read(&f, p->path, &ignored) && strcmp(f.architecture, "clip") == 0));
}

static bool is_same_file(const struct found_model *a, const struct found_model *b)
{
	struct stat x, y;

	return a->path && b->path && stat(a->path, &x) == 0 && stat(b->path, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void leave_out_others(struct fitting *f)
{
	size_t n = 0, usable = 0;

	for (size_t i = 0; i < f->n; i++)
		usable += !is_no_model(f->choice[i]);
	for (size_t i = 0; i < f->n; i++) {
		bool twice = (usable && is_no_model(f->choice[i]));
		for (size_t k = 0; k < n && !twice; k++)
			twice = is_same_file(f->choice[i], f->choice[k]);
		if (!twice)
			f->choice[n++] = f->choice[i];
	}
	f->n = n;
}

/* False: no memory. */
static bool find_fitting(struct fitting *f, const struct model_search *s, const char *whole)
{
	f->fit = FIT_NOT;
	f->choice = calloc(s->n + 1, sizeof *f->choice);
	if (!f->choice)
		return false;
	for (size_t i = 0; i < s->n; i++) {
		int one = fit(whole, &s->found[i]);
		if (one < f->fit) {
			f->fit = one;
			f->n = 0;
		}
		if (one == f->fit && one != FIT_NOT)
			f->choice[f->n++] = &s->found[i];
	}
	if (f->n > 1)
		leave_out_others(f);
	return true;
}

/* ---- what is said where none is found, or several are */

static void say_choices(const char *word, const struct fitting *f, struct error *err)
{
	char list[400] = "";
	size_t at = 0, shown = 0;

	for (; shown < f->n && shown < SHOWN_MAX; shown++) {
		char one[200];
		error_quote(one, sizeof one, f->choice[shown]->name, strlen(f->choice[shown]->name));
		if (at + strlen(one) + 40 > sizeof list)
			break;
		at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", one);
	}
	if (shown < f->n)
		snprintf(list + at, sizeof list - at, " and %zu more", f->n - shown);
	error_set(err, ERROR_ARGUMENT, "\"%.60s\" names %zu models; give one of them: %s", word, f->n, list);
}

/* 0: it is not near. */
static unsigned distance_to(const char *word, const char *name, size_t n)
{
	char part[NAME_LENGTH_MAX];
	unsigned d = options_distance(word, strlen(word), name, n);

	snprintf(part, sizeof part, "%.*s", (int)n, name);
	return d ? d : strlen(word) >= 3 && strcasestr(part, word) ? 3 : 0;
}

/* The least distance of a word, whole and without its tag, to a name and the parts that people use. 0: none is near. */
static unsigned distance_to_name(const char *word, const char *plain, const char *listed)
{
	const char *name = without_address(listed), *brief = last_part(name, strlen(name));
	size_t r = repository_of(name, model_name_stem(name) < strlen(name));
	const char *from[] = { name, name, name, brief, brief, name, last_part(name, r) };
	const size_t n[] = { strlen(name),
		             strcspn(name, ":"),
		             model_name_stem(name),
		             strcspn(brief, ":"),
		             model_name_stem(brief),
		             r,
		             r - (size_t)(last_part(name, r) - name) };
	unsigned min = 0;

	for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
		unsigned d = n[k] ? distance_to(k ? plain : word, from[k], n[k]) : 0;
		if (d && (!min || 2 * d + !!k < min))
			min = 2 * d + !!k;
	}
	return min;
}

/* NULL: none is near. */
static const char *find_near(const struct model_search *s, const struct word *w)
{
	char plain[NAME_LENGTH_MAX];
	const char *best = NULL;
	unsigned min = 0;

	snprintf(plain, sizeof plain, "%.*s", (int)w->n, w->text);
	for (size_t i = 0; i < s->n; i++) {
		unsigned d = distance_to_name(w->text, plain, s->found[i].name);
		if (d && (!best || d < min)) {
			best = s->found[i].name;
			min = d;
		}
	}
	return best;
}

static bool say_unknown(struct model_named *out, const char *word, const struct model_search *s, struct error *err)
{
	const struct word w = read_word(word);
	const char *near = find_near(s, &w);

	out->near = near ? strdup(near) : NULL;
	return error_set(err, ERROR_IO,
	                 "%.150s: there is no such file, and no model of that name on this machine%s%.150s%s", word,
	                 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* ---- the word */

static bool is_there(const char *word)
{
	struct stat st;

	return stat(word, &st) == 0;
}

bool model_is_path(const char *word)
{
	return !*word || *word == '/' || *word == '.' || strlen(word) >= NAME_LENGTH_MAX || is_there(word);
}

/* Where no model is called so: it ends as files do, or begins with a folder that is there. */
static bool looks_like_path(const char *word)
{
	const char *slash = strchr(word, '/');
	char folder[NAME_LENGTH_MAX];

	if (strstr(word, "://"))
		return false;
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - word) : 0, word);
	return model_name_stem(word) < strlen(word) || (slash && !strchr(word, ':') && is_there(folder));
}

static bool take(struct model_named *out, const char *word, const struct fitting *f, struct error *err)
{
	const struct found_model *p = f->choice[0];

	if (f->n > 1) {
		say_choices(word, f, err);
		return false;
	}
	if (!p->path || p->trouble)
		return error_set(err, ERROR_UNSUPPORTED, "%.150s: %s", p->name,
		                 p->trouble ? p->trouble : "it has no file");
	out->path = strdup(p->path);
	out->name = strdup(p->name);
	out->manifest = p->manifest ? strdup(p->manifest) : NULL;
	return (out->path && out->name && (out->manifest || !p->manifest)) ||
	       error_set(err, ERROR_MEMORY, "no memory for the name of a model");
}

static bool take_path(struct model_named *out, const char *word, struct error *err)
{
	out->path = strdup(word);
	return out->path || error_set(err, ERROR_MEMORY, "no memory for the name of a model");
}

bool model_named(struct model_named *out, const char *word, struct error *err)
{
	struct model_search s = { 0 };
	struct fitting f = { 0 };
	bool ok;

	*out = (struct model_named){ 0 };
	if (model_is_path(word))
		return take_path(out, word, err);
	if (!model_search_all(&s, err))
		ok = false;
	else if (!find_fitting(&f, &s, word))
		ok = error_set(err, ERROR_MEMORY, "no memory for a list of %zu models", s.n);
	else if (f.n)
		ok = take(out, word, &f, err);
	else
		ok = looks_like_path(word) ? take_path(out, word, err) : say_unknown(out, word, &s, err);
	free(f.choice);
	model_search_free(&s);
	return ok;
}

size_t model_name_among(const char *word, const struct found_model *p, size_t n)
{
	const struct model_search s = { .found = (struct found_model *)(uintptr_t)p, .n = n };
	struct fitting f = { 0 };
	const bool one = strlen(word) < NAME_LENGTH_MAX && find_fitting(&f, &s, word) && f.n == 1;
	const size_t which = one ? (size_t)(f.choice[0] - p) : n;

	free(f.choice);
	return which;
}

void model_named_free(struct model_named *m)
{
	free(m->path);
	free(m->name);
	free(m->manifest);
	free(m->near);
	*m = (struct model_named){ 0 };
}

bool model_path(const char **word, struct error *err)
{
	struct model_named m;
	bool ok = model_named(&m, *word, err);

	if (ok) {
		*word = m.path; /* for as long as the program runs */
		m.path = NULL;
	}
	model_named_free(&m);
	return ok;
}

/* ---- names that several have */

static bool rename_found(struct found_model *p, bool later)
{
	char *name = NULL;

	if (later)
		name = strdup(p->path);
	else if (asprintf(&name, "%s%s", store_of(p->source), p->name) < 0)
		name = NULL;
	if (!name)
		return false;
	free(p->name);
	p->name = name;
	return true;
}

bool model_names_unique(struct found_model *p, size_t n)
{
	bool ok = true, several = n > 1 && strcmp(p[0].source, p[n - 1].source) != 0;

	for (size_t i = n; i-- > 0 && ok;) {
		bool later = i && strcmp(p[i].source, p[i - 1].source) == 0 && p[i].path;
		if (later || several)
			ok = rename_found(&p[i], later);
	}
	return ok;
}
