/* programs/jitserve/jitserve_made.c - --presets-dir: models that clients make of others, as presets in a folder.
 *
 * Owns: the files NAME.preset of that folder, each of which names its model by path and says the rest as the model's
 * own preset would (preset.h), so that jitrun runs it as well. A file appears and goes in one step. What a client says
 * is never a path.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loaders/files/file.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "programs/jitserve/jitserve.h"
#include "programs/common/preset.h"
#include "runtime/session/chat.h"

static const char ending[] = ".preset", unfinished[] = ".unfinished-";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows, and of the folder */
static struct made {
	char *file, *path; /* the preset; the model that it names */
} made[SERVE_MAX_MODELS];
static struct models *models;

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

static size_t number_of(const struct served *m) { return (size_t)(m - models->list); }

/* ---- files */

/* A name may hold "/", which a file's cannot; names have no "%" of their own. */
static char *file_of(const char *name)
{
	char *path = malloc(strlen(serve.presets_dir) + 3 * strlen(name) + sizeof ending + 1), *to;

	if (!path)
		return NULL;
	to = path + sprintf(path, "%s/", serve.presets_dir);
	for (const char *c = name; *c; c++) {
		if (*c == '/')
			to = stpcpy(to, "%2F");
		else
			*to++ = *c;
	}
	strcpy(to, ending);
	return path;
}

/* Of a file in the folder; false: it is none of these. */
static bool name_of(char name[200], const char *file)
{
	const size_t n = strlen(file);
	size_t out = 0;

	if (file[0] == '.' || n < sizeof ending || strcmp(file + n + 1 - sizeof ending, ending) != 0)
		return false;
	for (size_t i = 0; i < n + 1 - sizeof ending && out < 199; i++) {
		const bool slash = strncmp(file + i, "%2F", 3) == 0;
		name[out++] = slash ? '/' : file[i];
		i += slash ? 2 : 0;
	}
	name[out] = 0;
	return out < 199;
}

static bool refuse_file(struct refusal *r, const char *what)
{
	return refuse(r, 503, NULL, "The folder of --presets-dir: %s: %s", what, strerror(errno));
}

/* What the folder holds by name is on the disk, too. */
static bool sync_folder(void)
{
	const int fd = open(serve.presets_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const bool ok = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A file of no model yet; *name: malloc'ed, to be given its own or unlinked. */
static bool write_file(char **name, const char *text, struct refusal *r)
{
	const size_t n = strlen(text);

	*name = malloc(strlen(serve.presets_dir) + sizeof unfinished + 16);
	if (!*name)
		return no_memory(r);
	sprintf(*name, "%s/%sXXXXXX", serve.presets_dir, unfinished);
	const int fd = mkstemp(*name);
	if (fd < 0) {
		refuse_file(r, "no file can be made");
		free(*name);
		*name = NULL;
		return false;
	}
	size_t done = 0;
	ssize_t more = 0;
	while (done < n && ((more = write(fd, text + done, n - done)) > 0 || (more < 0 && errno == EINTR)))
		done += more > 0 ? (size_t)more : 0;
	bool ok = (done == n && fchmod(fd, 0644) == 0 && fsync(fd) == 0) || refuse_file(r, "a file cannot be written");
	close(fd);
	return ok;
}

/* ---- what a model is made of */

/* Settings have the names that ollama's clients know. */
static void other_name(char out[PRESET_NAME], const char *key)
{
	static const struct {
		const char *own, *other;
	} names[] = { { "context", "num_ctx" }, { "n-predict", "num_predict" } };

	preset_name(out, key);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(out, names[i].own) == 0)
			snprintf(out, PRESET_NAME, "%s", names[i].other);
	const struct sampling_row *field = sampling_by_option(out);
	if (field)
		snprintf(out, PRESET_NAME, "%s", field->request);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

static const char *const words[] = { "system", "template", "messages", "license" };

/* Names of a preset that are no settings, in whatever letters: some of them are paths there. */
static bool is_word(const char *key)
{
	static const char *const others[] = { "model", "parent", "from", "adapter", "lora", "message" };
	char name[PRESET_NAME];

	preset_name(name, key);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i], name) == 0)
			return true;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return false;
}

/* What is kept with a model, as members of a preset in JSON. NULL: refused. */
static json_t *kept_with(const struct served *m, struct refusal *r)
{
	struct preset p = { 0 };
	struct error e = { 0 };
	json_t *o = json_object();

	if (!serve_preset_read(m, number_of(m), &p, &e)) {
		refusal_hide_paths(e.text, NULL);
		refuse(r, e.code == ERROR_MEMORY ? 503 : 400, "from", "from: %s", e.text);
	}
	if (p.system)
		json_put(o, "system", json_text(p.system, strlen(p.system)));
	if (p.template)
		json_put(o, "template", json_text(p.template, strlen(p.template)));
	if (p.messages)
		json_put(o, "messages", json_incref(p.messages));
	for (unsigned i = 0; i < p.n_set; i++) {
		char name[PRESET_NAME];
		other_name(name, p.set[i].name);
		if (strcmp(name, "stop") == 0 && !json_object_get(o, name))
			json_put(o, name, json_array());
		if (strcmp(name, "stop") == 0)
			json_add(json_object_get(o, name), json_string(p.set[i].value));
		else
			json_put(o, name, json_string(p.set[i].value));
	}
	preset_free(&p);
	if (!r->status)
		return o;
	json_decref(o);
	return NULL;
}

/* The object of a file; NULL: it is not there any more, or no object. */
static json_t *read_object(const char *file)
{
	struct file f = { 0 };
	struct error ignored = { 0 };
	json_t *o = NULL;

	if (file && file_open(&f, file, &ignored) && file_text(&f, PRESET_BYTES, &ignored))
		o = json_read(f.base, f.size, PRESET_BYTES, file, &ignored);
	file_close(&f);
	if (o && json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* Settings are tried one by one, so that a sentence names its own. */
static bool check_settings(const json_t *parameters, struct refusal *r)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)parameters, key, v)
	{
		struct preset one = { .path = strdup("parameters") };
		struct error e = { 0 };
		const bool ok = one.path && !is_word(key)
		                        ? preset_say(&one, key, v, &e) && serve_preset_check(&one, &e)
		                        : error_set(&e, one.path ? ERROR_FORMAT : ERROR_MEMORY,
		                                    "parameters: \"%.40s\" is nothing that a parameter can say", key);
		if (!ok)
			refuse(r, e.code == ERROR_MEMORY ? 503 : 400, "parameters", "%s", e.text);
		preset_free(&one);
		if (!ok)
			return false;
	}
	return true;
}

/* What is said takes the place of what is kept. */
static bool say(json_t *o, const json_t *said, struct refusal *r)
{
	const json_t *parameters = json_object_get(said, "parameters");
	const char *key;
	json_t *v;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if ((v = json_object_get(said, words[i])))
			json_put(o, words[i], json_incref(v));
	if (!check_settings(parameters, r))
		return false;
	json_object_foreach((json_t *)(uintptr_t)parameters, key, v)
	{
		char name[PRESET_NAME];
		other_name(name, key);
		if (!json_is_null(v))
			json_put(o, name, json_incref(v));
	}
	return true;
}

/* The text of the preset, malloc'ed. NULL: refused. */
static char *text_of(const struct served *from, const json_t *said, struct refusal *r)
{
	char *path = realpath(from->path, NULL);
	json_t *kept = !path ? NULL : from->made ? read_object(made[number_of(from)].file) : kept_with(from, r);
	json_t *o = json_object();
	char *text = NULL;

	if (!path || (from->made && !kept))
		refuse(r, 404, "from", "model '%.200s' is not there any more", from->name);
	json_put(o, "model", path ? json_text(path, strlen(path)) : json_null());
	json_put(o, "parent", json_text(from->name, strlen(from->name)));
	json_object_update_missing(o, kept);
	if (!r->status && say(o, said, r)) {
		text = json_spell(o, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
		if (!text || json_lacks())
			no_memory(r);
		else if (strlen(text) > PRESET_BYTES)
			refuse(r, 400, NULL, "What is said of the model takes %zu bytes, expected at most %d",
			       strlen(text), PRESET_BYTES);
	}
	json_decref(o);
	json_decref(kept);
	free(path);
	if (!r->status)
		return text;
	free(text);
	return NULL;
}

/* As it will be read when the model is opened. */
static bool check_file(const char *file, const json_t *said, struct refusal *r)
{
	struct preset p = { 0 };
	struct error e = { 0 };
	const bool read = preset_read(&p, file, &e) && serve_preset_check(&p, &e);
	const bool ok = read && (!json_object_get(said, "template") || chat_can_use(NULL, NULL, p.template, &e));

	preset_free(&p);
	refusal_hide_paths(e.text, NULL);
	return ok || refuse(r, e.code == ERROR_MEMORY ? 503 : 400, read ? "template" : NULL, "%s", e.text);
}

/* ---- what clients ask */

/* An entry for the file, which is there from now on. *file and path are taken over where that is so. */
static bool put_file(char *written, char **file, char *path, const char *name, struct served *old, struct refusal *r)
{
	struct served *m = models_entry(models, path, name, (long)time(NULL));

	if (!m)
		return refuse(r, 503, NULL, "There are %d models already, or were until just now", SERVE_MAX_MODELS);
	if (rename(written, *file)) {
		m->path = "";
		return refuse_file(r, "a file cannot be given its name");
	}
	if (!sync_folder())
		refuse_file(r, "it cannot be written"); /* what there is by now stays */
	struct made *own = &made[number_of(m)];
	free(own->file);
	free(own->path);
	*own = (struct made){ *file, path };
	*file = NULL;
	serve_preset_from(number_of(m), NULL, own->file);
	models_show(models, m, old);
	return r->status == 0;
}

static bool make_file(const char *name, struct served *from, const json_t *said, struct served *old, struct refusal *r)
{
	char *text = text_of(from, said, r), *written = NULL, *file = text ? file_of(name) : NULL,
	     *path = text ? strdup(from->path) : NULL;
	bool ok = text && ((file && path) || no_memory(r)) && write_file(&written, text, r) &&
	          check_file(written, said, r);

	ok = ok && put_file(written, &file, path, name, old, r);
	if (written && file)
		unlink(written);
	if (file)
		free(path);
	free(file);
	free(written);
	free(text);
	return ok;
}

static bool make(struct models *all, const char *name, struct served *from, const json_t *said, struct refusal *r)
{
	pthread_mutex_lock(&lock);
	struct served *old = models_named(all, name);
	const bool ok = !from->gone ? !old || old->made ? make_file(name, from, said, old, r)
	                                                : refuse(r, 400, "model",
	                                                         "model '%.200s' is one that the server was started "
	                                                         "with, and cannot be replaced",
	                                                         name)
	                            : refuse(r, 404, "from", "model '%.200s' not found", from->name);
	pthread_mutex_unlock(&lock);
	return ok;
}

static bool remove_made(struct models *all, struct served *m, struct refusal *r)
{
	pthread_mutex_lock(&lock);
	bool ok = !m->gone || refuse(r, 404, "model", "model '%.200s' not found", m->name);
	if (ok) { /* before its file: a request that opens it finds it gone, and not a file missing */
		models_lock();
		models_take_away(all, m);
		models_unlock();
	}
	if (ok && unlink(made[number_of(m)].file) && errno != ENOENT) {
		ok = refuse_file(r, "a file cannot be deleted");
		models_show(all, m, NULL);
	}
	if (ok)
		sync_folder();
	pthread_mutex_unlock(&lock);
	return ok;
}

static json_t *told(const struct served *m)
{
	pthread_mutex_lock(&lock);
	json_t *o = m->gone ? NULL : read_object(made[number_of(m)].file);
	pthread_mutex_unlock(&lock);
	json_t *all = o ? json_object() : NULL, *parameters = o ? json_object() : NULL, *v;
	const char *key;

	json_object_foreach(o, key, v)
	{
		if (!is_word(key))
			json_put(parameters, key, json_incref(v));
		else if (strcmp(key, "model") != 0) /* no path of this machine is told */
			json_put(all, key, json_incref(v));
	}
	if (o)
		json_put(all, "parameters", parameters);
	json_decref(o);
	return all;
}

static const struct model_maker maker = { make, remove_made, told };

/* ---- the start */

/* Those that cannot be served are told, and stay. */
static bool take_file(const char *file, const char *name, struct error *err)
{
	struct preset p = { 0 };
	struct model_named named = { .path = strdup(file) };
	struct stat st;
	bool ok = (named.path || error_set(err, ERROR_MEMORY, "no memory")) && preset_open(&p, &named, err) &&
	          serve_preset_check(&p, err);

	if (ok && stat(named.path, &st))
		ok = error_set(err, ERROR_IO, "%s: its model %s: %s", file, named.path, strerror(errno));
	if (ok && models_named(models, name))
		ok = error_set(err, ERROR_ARGUMENT, "%s: another model is called %s", file, name);
	if (ok && stat(file, &st))
		ok = error_set(err, ERROR_IO, "%s: %s", file, strerror(errno));
	struct served *m = ok ? models_entry(models, named.path, name, (long)st.st_mtime) : NULL;
	if (ok && !m)
		ok = error_set(err, ERROR_ARGUMENT, "%s: there are %d models already", file, SERVE_MAX_MODELS);
	if (ok) {
		struct made *own = &made[number_of(m)];
		*own = (struct made){ strdup(file), named.path };
		named.path = NULL;
		serve_preset_from(number_of(m), NULL, own->file);
		models_show(models, m, NULL);
	}
	preset_free(&p);
	model_named_free(&named);
	return ok;
}

static int is_ours(const struct dirent *d)
{
	char name[200];

	return strncmp(d->d_name, unfinished, sizeof unfinished - 1) == 0 || name_of(name, d->d_name);
}

static void take_entry(const char *entry)
{
	struct error e = { 0 };
	char name[200], *file = malloc(strlen(serve.presets_dir) + strlen(entry) + 2);

	if (!file)
		return;
	sprintf(file, "%s/%s", serve.presets_dir, entry);
	if (!name_of(name, entry))
		unlink(file); /* a server ended while it wrote */
	else if (!take_file(file, name, &e))
		fprintf(stderr, "jitserve: %s\n", e.text);
	free(file);
}

bool serve_made_open(struct models *all, struct error *err)
{
	struct dirent **list = NULL;

	models = all;
	if (!serve.presets_dir)
		return true;
	if (!serve_is_folder("--presets-dir", serve.presets_dir, true, err))
		return false;
	const int n = scandir(serve.presets_dir, &list, is_ours, alphasort);
	if (n < 0)
		return error_set(err, ERROR_IO, "--presets-dir is %s: %s", serve.presets_dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		take_entry(list[i]->d_name);
		free(list[i]);
	}
	free(list);
	all->by_name = true;
	all->maker = &maker;
	return true;
}
