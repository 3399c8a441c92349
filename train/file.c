/* train/file.c - files that appear whole or not at all, and tensors as a file of safetensors. */
#include "train/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_write.h"
#include "jit/store/safefile.h"

static bool refuse(struct error *err, const char *path, const char *what)
{
	return error_set(err, ERROR_IO, "%.300s: %s: %s", path, what, strerror(errno));
}

bool train_file_open(struct train_file *t, const char *path, struct error *err)
{
	if (strlen(path) >= sizeof t->path)
		return error_set(err, ERROR_ARGUMENT, "%.100s...: the path is too long", path);
	if (!safefile_replaceable(AT_FDCWD, path))
		return error_set(err, ERROR_IO, "%.300s: is no regular file, so it is not replaced", path);
	snprintf(t->path, sizeof t->path, "%s", path);
	snprintf(t->written, sizeof t->written, "%s.new", path);
	t->f = safefile_stream(t->written);
	return t->f || refuse(err, t->written, "cannot be made");
}

/* The stream has no descriptor of its own for fstat. */
static bool sync_file(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool ok = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

bool train_file_close(struct train_file *t, bool ok, struct error *err)
{
	if (ok && (ferror(t->f) || fflush(t->f) != 0 || !sync_file(t->written)))
		ok = refuse(err, t->path, "cannot be written");
	if (fclose(t->f) != 0 && ok)
		ok = refuse(err, t->path, "cannot be written");
	if (ok && rename(t->written, t->path) != 0)
		ok = refuse(err, t->path, "cannot be written");
	if (!ok)
		unlink(t->written);
	return ok;
}

bool train_folder_open(const char *folder, struct error *err)
{
	struct stat s;

	if (mkdir(folder, 0777) == 0 || (errno == EEXIST && stat(folder, &s) == 0 && S_ISDIR(s.st_mode)))
		return true;
	return refuse(err, folder, "the folder cannot be made");
}

bool train_path(char out[4096], const char *folder, const char *name, struct error *err)
{
	if (snprintf(out, 4096, "%s/%s", folder, name) < 4096)
		return true;
	return error_set(err, ERROR_ARGUMENT, "%.100s...: the path is too long", folder);
}

/* ---- safetensors */

static char *header(const struct train_entry *e, uint32_t n, struct error *err)
{
	json_t *all = json_object();
	uint64_t at = 0;

	json_t *about = json_object();
	json_put(about, "format", json_string("pt"));
	json_put(all, "__metadata__", about);
	for (uint32_t i = 0; i < n; i++) {
		json_t *one = json_object(), *dims = json_array(), *offsets = json_array();
		const uint64_t bytes = shape_elements(&e[i].shape) * sizeof(float);
		for (unsigned d = 0; d < e[i].shape.rank; d++)
			json_add(dims, json_integer((json_int_t)e[i].shape.dim[d]));
		json_add(offsets, json_integer((json_int_t)at));
		json_add(offsets, json_integer((json_int_t)(at + bytes)));
		json_put(one, "dtype", json_string("F32"));
		json_put(one, "shape", dims);
		json_put(one, "data_offsets", offsets);
		json_put(all, e[i].name, one);
		at += bytes;
	}
	char *text = json_write(all);
	if (!text)
		error_set(err, ERROR_MEMORY, "there is no memory for the names of %u tensors", n);
	return text;
}

bool train_write_safetensors(const char *path, const struct train_entry *e, uint32_t n, struct error *err)
{
	char *text = header(e, n, err);
	struct train_file t;

	if (!text || !train_file_open(&t, path, err)) {
		free(text);
		return false;
	}
	const size_t size = strlen(text), padded = (size + 7) / 8 * 8;
	const uint64_t length = padded;
	fwrite(&length, sizeof length, 1, t.f);
	fprintf(t.f, "%-*s", (int)padded, text);
	for (uint32_t i = 0; i < n; i++)
		fwrite(e[i].values, sizeof(float), (size_t)shape_elements(&e[i].shape), t.f);
	free(text);
	return train_file_close(&t, true, err);
}
