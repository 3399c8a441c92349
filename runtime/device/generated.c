/* runtime/device/generated.c - see generated.h. */
#include "runtime/device/generated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/safefile.h"

/* A sealed run has nothing but its cache. */
static bool open_sealed(struct cache **out, const struct generated_options *o, struct error *err)
{
	const struct cache_options co = { .read_only = true, .first = o->first };
	char dir[4096];

	if (!o->device->facts.keeps_code)
		return error_set(err, ERROR_ARGUMENT,
		                 "sealed: the device \"%.32s\" makes its kernels itself; only the devices cpu and cuda "
		                 "can run sealed",
		                 o->device->facts.name);
	if (o->dumps)
		return error_set(err, ERROR_ARGUMENT, "sealed: no kernel is generated that could be dumped");
	const char *requested = co.first ? NULL : cache_default_path(dir, sizeof dir) ? dir : NULL;
	if (o->cache_dir)
		requested = *o->cache_dir ? o->cache_dir : NULL;
	if (!requested && !co.first)
		return error_set(
			err, ERROR_ARGUMENT, "sealed: there is no cache to take kernels from%s",
			o->cache_dir ? ""
				     : ": neither JITRUN_CACHE is set, nor is XDG_CACHE_HOME or HOME an absolute path");
	return (*out = cache_open(requested, &co, err)) != NULL;
}

/* A cache nobody asked for that is not to be had is no reason to refuse to run; one that is dangerous is. */
static bool open_usual(struct cache **out, const struct generated_options *o, struct error *err)
{
	struct cache_options co = { .limit_bytes = o->cache_limit, .first = o->first };
	const char *requested = o->cache_dir ? o->cache_dir : getenv("JITRUN_CACHE"), *sources = o->cache_dir;
	struct error why = { 0 };
	char usual[4096];

	if (o->device->facts.interprets)
		return true;
	if (!sources)
		sources = cache_default_path(usual, sizeof usual) ? usual : "";
	if (*sources && (*out = cache_open(sources, &co, &why)))
		return true;
	if (*sources && ((requested && *requested) || why.code == ERROR_ARGUMENT))
		return error_set(err, why.code, "%s", why.text);
	return !co.first || (*out = cache_open(NULL, &co, err)) != NULL;
}

bool generated_cache(struct cache **out, const struct generated_options *o, struct error *err)
{
	return o->sealed ? open_sealed(out, o, err) : open_usual(out, o, err);
}

bool generated_dump(FILE **out, const char *path, struct error *err)
{
	if (!path)
		return true;
	*out = strcmp(path, "-") == 0 ? stdout : safefile_stream(path);
	return *out ? true : error_set(err, ERROR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

bool generated_dump_written(FILE *f, const char *what, struct error *err)
{
	if (!f)
		return true;
	bool failed = ferror(f) != 0;
	errno = 0;
	failed = fflush(f) != 0 || failed;
	return !failed || error_set(err, ERROR_IO, "the dump of %s could not be written whole%s%s", what,
	                            errno ? ": " : "", errno ? strerror(errno) : "");
}
