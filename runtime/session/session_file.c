/* runtime/session/session_file.c - a session's tokens and KV cache as a file, and back.
 *
 * Owns: the layout of the file. An editor who changes it, or what goes into the KV cache (kernels-templates/numerics.h,
 * docs/kernel-templates.md), raises STATE_VERSION. Numbers are little-endian:
 *
 *   0 magic (8)  8 STATE_VERSION  12 layout of weights and cache  16 jitrun's version (32)
 *   48 fingerprint of the model (8)  56 type of the cache  60 numerics  64 layers  68 heads of the cache  72 head_dim
 *   76 vocab  80 tokens  84 tokens in the cache  88 first chunk of layers with a window
 *   92 states of layers that keep them; of version 1: tokens before the only one (0: there is none)
 *   96 bytes of ids and cache (8)  104 their checksum (8)  112 the model's description (136)
 *   248 checksum of the bytes before (8)
 *
 * Behind it the tokens' ids, 4 bytes each, an even number of them, the pieces of the cache (session_kv.h), and the
 * states: first how many tokens are before each, ascending, 8 bytes each (not in version 1). A model without states has
 * files of version 1, which is read as ever. Version 3 is 2 with pictures behind it (session_file_pictures.c). Each
 * number must be what the session would write, or is checked before it is used: contents can be wrong, but never reach
 * beyond the session's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/record.h"
#include "jit/store/safefile.h"
#include "kernels-templates/numerics.h"
#include "runtime/session/session_file.h"
#include "runtime/session/session_kv.h"
#include "runtime/session/session_ranks.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* What the ids take, an even number of them. */
static size_t ids_bytes(size_t n) { return (n + n % 2) * 4; }

static uint64_t body_bytes(const jit_session *s, size_t length, size_t computed, uint32_t first, uint64_t state_bytes)
{
	return ids_bytes(length) + kv_extents_bytes(&s->memory.kv, &s->model->file.spec, computed, first) + state_bytes;
}

/* So many tokens are computed when a session is restored: logits are not kept, so the last one's are made again. */
static size_t computed_again(size_t length, size_t computed)
{
	return computed && computed == length ? computed - 1 : computed;
}

/* ---- saving */

/* The parts of the file: header, ids, and the cache in as few as can be. `copied` holds what does not lie in the
 * process as it should be in the file: the last chunk's pieces, or all. */
struct saving {
	jit_session *session;
	uint8_t header[HEADER];
	int32_t *ids;
	struct kv_extent *extent;
	uint64_t n_extents;
	uint8_t *copied;
	struct safefile_part *part;
	int n_parts;
	uint32_t n_states;
	uint8_t *states; /* how many tokens are before each, and then they; NULL: none goes with the file */
	struct saved_pictures pictures;
};

static void add_part(struct saving *v, const uint8_t *bytes, size_t n)
{
	struct safefile_part *last = v->n_parts ? &v->part[v->n_parts - 1] : NULL;

	if (last && (const uint8_t *)last->bytes + last->n == bytes)
		last->n += n;
	else
		v->part[v->n_parts++] = (struct safefile_part){ bytes, n };
}

static bool add_extents(struct saving *v, struct error *err)
{
	const jit_session *s = v->session;
	const struct session_memory *m = &s->memory;
	struct device *d = m->device;
	uint32_t last = kv_chunks(s->computed) - 1, used = (uint32_t)(s->computed - (size_t)last * NUMERICS_CHUNK);
	uint8_t *copy = v->copied;

	for (uint64_t i = 0; i < v->n_extents; i++) {
		const struct kv_extent *p = &v->extent[i];
		if (p->chunk < last && d->facts.host_reaches) {
			add_part(v, p->at, p->bytes);
			continue;
		}
		if (!d->read(d, copy, p->at, p->bytes, err))
			return false;
		if (p->chunk == last)
			kv_extent_clean(m, &s->model->file.spec, p->layer, copy, used);
		add_part(v, copy, p->bytes);
		copy += p->bytes;
	}
	return true;
}

/* The last state that the session can go on from, and earlier ones, for sessions that continue from less of the text.
 */
static bool add_states(struct saving *v, struct error *err)
{
	const jit_session *s = v->session;
	const struct session_states *t = &s->memory.states;
	struct device *d = s->model->device;
	int state[STATES_MAX];

	v->n_states = states_apart(t, computed_again(s->length, s->computed), state);
	if (!v->n_states)
		return true;
	const uint64_t table = 8 * (uint64_t)v->n_states, all = table + v->n_states * t->bytes;
	if (!(v->states = malloc(all)))
		return error_set(err, ERROR_MEMORY, "no memory to save states of %llu bytes", (unsigned long long)all);
	v->part[v->n_parts++] = (struct safefile_part){ v->states, all };
	for (uint32_t i = 0; i < v->n_states; i++) {
		record_put64(v->states + 8 * i, states_position(t, state[i]));
		if (!d->read(d, v->states + table + i * t->bytes, t->base + (uint64_t)state[i] * t->bytes, t->bytes,
		             err))
			return false;
	}
	return true;
}

static bool make_parts(struct saving *v, struct error *err)
{
	jit_session *s = v->session;
	const struct model_spec *spec = &s->model->file.spec;
	uint64_t copies;

	if (!session_file_header(v->header, s, err) || !session_file_list_pictures(&v->pictures, s, err) ||
	    !(v->extent = kv_extents(&s->memory, spec, s->computed, s->memory.window_first, err)))
		return false;
	v->n_extents = kv_extents_count(spec, s->computed, s->memory.window_first);
	if (!session_gather(&s->memory, s->model, v->extent, v->n_extents, err))
		return false;
	copies = s->model->device->facts.host_reaches && v->n_extents > spec->layers ? spec->layers : v->n_extents;
	v->ids = calloc(1, ids_bytes(s->length) + 4);
	v->copied = malloc(copies * kv_extent_max(&s->memory.kv, spec) + 1);
	v->part = malloc((v->n_extents + 4 + v->pictures.n) * sizeof *v->part);
	if (!v->ids || !v->copied || !v->part)
		return error_set(err, ERROR_MEMORY, "no memory to save a session of %zu tokens", s->length);
	memcpy(v->ids, s->ids, s->length * sizeof *v->ids);
	v->part[v->n_parts++] = (struct safefile_part){ v->header, HEADER };
	v->part[v->n_parts++] = (struct safefile_part){ v->ids, ids_bytes(s->length) };
	return (s->computed == 0 || add_extents(v, err)) && add_states(v, err);
}

static void finish_header(struct saving *v)
{
	const jit_session *s = v->session;
	uint8_t *p = v->header;
	const uint32_t version = record_get32(p + AT_VERSION);
	uint64_t sum = version, bytes = 0;

	/* In steps of a piece, as it is read. */
	sum = record_checksum(v->ids, ids_bytes(s->length), sum);
	size_t part = 2, at = 0;
	for (uint64_t i = 0; s->computed && i < v->n_extents; i++) {
		sum = record_checksum((const uint8_t *)v->part[part].bytes + at, v->extent[i].bytes, sum);
		at += v->extent[i].bytes;
		if (at == v->part[part].n) {
			part++;
			at = 0;
		}
	}
	for (uint32_t i = 0; i < v->n_states; i++)
		sum = record_checksum(v->states + 8 * i, 8, sum);
	for (uint32_t i = 0; i < v->n_states; i++)
		sum = record_checksum(v->states + 8 * v->n_states + i * s->memory.states.bytes, s->memory.states.bytes,
		                      sum);
	session_file_add_pictures(&v->pictures, v->part, &v->n_parts, &sum);
	for (int i = 1; i < v->n_parts; i++)
		bytes += v->part[i].n;
	record_put32(p + AT_STATE, v->n_states);
	record_put32(p + AT_LENGTH, (uint32_t)s->length);
	record_put32(p + AT_COMPUTED, (uint32_t)s->computed);
	record_put32(p + AT_FIRST, s->memory.window_first);
	record_put64(p + AT_BYTES, bytes);
	record_put64(p + AT_SUM, sum);
	record_put64(p + AT_HEADER_SUM, record_checksum(p, AT_HEADER_SUM, version));
}

/* The directory of a path, opened, and the name in it. -1: errno. */
static int open_directory(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, why = errno;

	*name = slash ? slash + 1 : path;
	free(dir);
	errno = why;
	return fd;
}

static bool write_parts(const struct saving *v, const char *path, struct error *err)
{
	const char *name;
	int dir = open_directory(path, &name);

	if (dir < 0)
		return error_set(err, ERROR_IO, "%s: its directory cannot be opened: %s", path, strerror(errno));
	if (!safefile_replaceable(dir, name)) {
		close(dir);
		return error_set(err, ERROR_IO, "%s: is no regular file, so it is not replaced", path);
	}
	safefile_sweep(dir, name);
	enum safefile_step failed = safefile_replace(dir, name, 0600, v->part, v->n_parts);
	int why = errno;
	close(dir);
	errno = why;
	return failed == SAFEFILE_DONE || safefile_failed(failed, "the session file", path, err);
}

int jit_session_save(jit_session *s, const char *path, jit_error *err)
{
	struct saving v = { .session = s };
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED(path, &e))
		return model_report(err, &e);
	if (!*path || path[strlen(path) - 1] == '/')
		error_set(&e, ERROR_ARGUMENT, "the session's file has no name");
	else if (make_parts(&v, &e)) {
		finish_header(&v);
		write_parts(&v, path, &e);
	}
	free(v.part);
	free(v.copied);
	free(v.states);
	free(v.ids);
	free(v.extent);
	session_file_forget_pictures(&v.pictures);
	return model_report(err, &e);
}

/* ---- restoring */

struct restoring {
	jit_session *session;
	const char *path;
	int fd;
	uint64_t size, at, sum;
	uint32_t length, computed, first, version, n_states;
	uint64_t state[STATES_MAX]; /* tokens before each */
	uint64_t picture_bytes;     /* behind the states */
};

static bool damaged(const struct restoring *r, const char *what, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "%s: %s; the file is damaged", r->path, what);
}

/* n bytes further on. */
static bool read_on(struct restoring *r, void *out, size_t n, struct error *err)
{
	if (!safefile_read(r->fd, out, n, (off_t)r->at))
		return error_set(err, ERROR_IO, "%s: cannot be read at byte %llu: %s", r->path,
		                 (unsigned long long)r->at, errno ? strerror(errno) : "it ends there");
	r->at += n;
	return true;
}

/* How much there is, and whether the session has room for it. */
static bool check_sizes(struct restoring *r, const uint8_t *p, struct error *err)
{
	const jit_session *s = r->session;

	r->length = record_get32(p + AT_LENGTH);
	r->computed = record_get32(p + AT_COMPUTED);
	r->first = record_get32(p + AT_FIRST);
	r->n_states = record_get32(p + AT_STATE);
	if (r->version == VERSION_OF_ONE_STATE) {
		r->state[0] = r->n_states;
		r->n_states = r->n_states > 0;
	}
	if (r->computed > r->length || r->first > kv_chunks(r->computed) || r->n_states > s->memory.states.slots ||
	    !session_memory_serves(&s->model->file.spec, r->computed ? r->computed - 1 : 0, r->first))
		return damaged(r, "its numbers contradict each other", err);
	if (r->computed > s->context || r->length > (uint64_t)s->context + 1)
		return error_set(err, ERROR_ARGUMENT, "%s holds %u tokens, and the context of this session %u", r->path,
		                 r->length, s->context);
	const uint64_t table = r->version == VERSION_OF_ONE_STATE ? 0 : 8;
	uint64_t bytes =
		body_bytes(s, r->length, r->computed, r->first, r->n_states * (table + s->memory.states.bytes));
	const uint64_t all = record_get64(p + AT_BYTES);
	r->picture_bytes = r->version == VERSION_OF_PICTURES && all > bytes ? all - bytes : 0;
	if (all != bytes + r->picture_bytes || (r->version == VERSION_OF_PICTURES && !r->picture_bytes))
		return damaged(r, "its numbers contradict each other", err);
	if (all > r->size || r->size != HEADER + all)
		return error_set(err, ERROR_FORMAT, "%s: has %llu bytes, expected %llu; the file is damaged", r->path,
		                 (unsigned long long)r->size, (unsigned long long)(HEADER + all));
	return true;
}

static bool read_header(struct restoring *r, uint8_t p[HEADER], struct error *err)
{
	uint8_t own[HEADER];

	if (r->size < HEADER)
		return damaged(r, "it is shorter than its header", err);
	if (!read_on(r, p, HEADER, err) || !session_file_header(own, r->session, err))
		return false;
	if (memcmp(p, own, AT_VERSION) != 0)
		return error_set(err, ERROR_FORMAT, "%s: is no saved session of jitrun", r->path);
	r->version = record_get32(p + AT_VERSION);
	if (r->version < VERSION_OF_ONE_STATE || r->version > VERSION_OF_PICTURES)
		return error_set(err, ERROR_UNSUPPORTED, "%s: has version %u of the format, expected %d to %d", r->path,
		                 r->version, VERSION_OF_ONE_STATE, VERSION_OF_PICTURES);
	if (record_get64(p + AT_HEADER_SUM) != record_checksum(p, AT_HEADER_SUM, r->version))
		return damaged(r, "the checksum of its header is wrong", err);
	return session_file_is_ours(r->path, p, own, err) && check_sizes(r, p, err);
}

/* Into the session's list, behind the tokens that it has, which are none. */
static bool read_ids(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	uint8_t *bytes = malloc(ids_bytes(r->length) + 1);
	bool ok = bytes ? read_on(r, bytes, ids_bytes(r->length), err)
	                : error_set(err, ERROR_MEMORY, "no memory for %u tokens", r->length);

	if (ok)
		r->sum = record_checksum(bytes, ids_bytes(r->length), r->version);
	for (uint32_t i = 0; ok && i < r->length; i++) {
		uint32_t id = record_get32(bytes + 4 * (size_t)i);
		s->ids[i] = (int32_t)id;
		ok = id < s->model->file.spec.vocab || damaged(r, "a token is not in the vocabulary", err);
	}
	free(bytes);
	return ok;
}

static bool read_extents(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	struct session_memory *m = &s->memory;
	const struct model_spec *spec = &s->model->file.spec;
	struct device *d = m->device;
	size_t max = kv_extent_max(&m->kv, spec);
	uint64_t extents = kv_extents_count(spec, r->computed, r->first);
	struct kv_extent *extent = kv_extents(m, spec, r->computed, r->first, err);
	uint8_t *copy = malloc(max);
	bool ok = (extent && copy) || error_set(err, ERROR_MEMORY, "no memory for %zu bytes of a KV cache", max);

	for (uint64_t i = 0; ok && i < extents; i++) {
		bool in_place = d->facts.host_reaches && extent[i].at;
		size_t n = extent[i].bytes;
		ok = read_on(r, in_place ? extent[i].at : copy, n, err);
		if (!ok)
			break;
		r->sum = record_checksum(in_place ? extent[i].at : copy, n, r->sum);
		if (!in_place && extent[i].at)
			ok = d->upload(d, extent[i].at, copy, n, err);
	}
	free(extent);
	free(copy);
	return ok;
}

/* To the ranks that keep it. */
static bool give_extents(const struct restoring *r, struct error *err)
{
	const jit_session *s = r->session;
	const struct model_spec *spec = &s->model->file.spec;
	struct kv_extent *extent = kv_extents(&s->memory, spec, r->computed, r->first, err);
	const bool ok =
		extent &&
		session_give_out(&s->memory, s->model, extent, kv_extents_count(spec, r->computed, r->first), err);

	free(extent);
	return ok;
}

/* How many tokens are before each state: ascending, and no more than are computed. */
static bool read_positions(struct restoring *r, struct error *err)
{
	uint8_t bytes[8];

	for (uint32_t i = 0; i < r->n_states; i++) {
		if (r->version != VERSION_OF_ONE_STATE) {
			if (!read_on(r, bytes, sizeof bytes, err))
				return false;
			r->sum = record_checksum(bytes, sizeof bytes, r->sum);
			r->state[i] = record_get64(bytes);
		}
		if (r->state[i] <= (i ? r->state[i - 1] : 0) || r->state[i] > computed_again(r->length, r->computed))
			return damaged(r, "its numbers contradict each other", err);
	}
	return true;
}

static bool read_states(struct restoring *r, struct error *err)
{
	struct session_memory *m = &r->session->memory;
	const size_t n = m->states.bytes;
	uint8_t *bytes = r->n_states ? malloc(n) : NULL;
	bool ok = bytes || !r->n_states || error_set(err, ERROR_MEMORY, "no memory for a state of %zu bytes", n);

	ok = ok && read_positions(r, err);
	for (uint32_t i = 0; ok && i < r->n_states; i++) {
		ok = read_on(r, bytes, n, err);
		if (!ok)
			break;
		r->sum = record_checksum(bytes, n, r->sum);
		ok = m->device->upload(m->device, states_take(&m->states, r->state[i]), bytes, n, err);
	}
	free(bytes);
	return ok;
}

static bool read_pictures(struct restoring *r, struct error *err)
{
	const struct pictures_location location = { r->path, r->fd, r->at, r->picture_bytes, r->length };

	return !r->picture_bytes || session_file_read_pictures(r->session, &location, &r->sum, err);
}

static bool restore(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	uint8_t header[HEADER];

	if ((s->member && !batch_member_ready(s, 1, err)) || !read_header(r, header, err) || !read_ids(r, err) ||
	    (s->member && !batch_member_ready(s, r->computed, err)))
		return false;
	session_memory_begin_window(&s->memory, &s->model->file.spec, r->computed, r->first);
	if (read_extents(r, err) && read_states(r, err) && read_pictures(r, err) &&
	    (r->sum == record_get64(header + AT_SUM) || damaged(r, "the checksum of its contents is wrong", err)) &&
	    give_extents(r, err)) {
		s->length = r->length;
		s->computed = computed_again(r->length, r->computed);
		return true;
	}
	session_pictures_rewind(s, 0);
	states_forget(&s->memory.states, 0);
	session_memory_begin_window(&s->memory, &s->model->file.spec, 0, 0);
	return false;
}

int jit_session_restore(jit_session *s, const char *path, jit_error *err)
{
	struct restoring r = { .session = s, .path = path, .fd = -1 };
	struct error e = { 0 };
	struct stat st;

	if (!NEEDED(s, &e) || !NEEDED(path, &e))
		return model_report(err, &e);
	if (s->length)
		error_set(&e, ERROR_ARGUMENT, "the session has %zu tokens; only one that has none can be restored",
		          s->length);
	else if (!*path)
		error_set(&e, ERROR_ARGUMENT, "the session's file has no name");
	else if ((r.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0 || fstat(r.fd, &st) != 0)
		error_set(&e, ERROR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		error_set(&e, ERROR_FORMAT, "%s: is no regular file, and so no saved session", path);
	else {
		r.size = (uint64_t)st.st_size;
		restore(&r, &e);
	}
	if (r.fd >= 0)
		close(r.fd);
	return model_report(err, &e);
}
