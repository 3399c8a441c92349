/* runtime/session_file.c - a session's tokens and KV cache as a file, and back.
 *
 * Owns: the layout of the file. Whoever changes it, or what goes into the KV cache (kernels-templates/numerics.h,
 * templates.h), raises STATE_VERSION. Numbers are little-endian:
 *
 *   0 magic (8)  8 STATE_VERSION  12 layout of weights and cache  16 jitrun's version (32)
 *   48 fingerprint of the model (8)  56 type of the cache  60 numerics  64 layers  68 heads of the cache  72 head_dim
 *   76 vocab  80 tokens  84 tokens in the cache  88 first chunk of layers with a window
 *   92 tokens before the state of layers that keep one (0: there is none)
 *   96 bytes of ids and cache (8)  104 their checksum (8)  112 the model's description (136)
 *   248 checksum of the bytes before (8)
 *
 * Behind it the tokens' ids, 4 bytes each, an even number of them, the pieces of the cache (session_kv.h), and the
 * state. Each number must be what this session would write, or is checked before it is used: contents can be wrong, but
 * never reach beyond the session's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/record.h"
#include "jit/store/safefile.h"
#include "kernels-templates/numerics.h"
#include "runtime/fingerprint.h"
#include "runtime/session_kv.h"
#include "runtime/session_state.h"
#include "runtime/sized.h"

enum { STATE_VERSION = 1, HEADER = 256, ABOUT_MOST = 136 };
enum {
	AT_VERSION = 8,
	AT_LAYOUT = 12,
	AT_LIBRARY = 16,
	AT_MODEL = 48,
	AT_KV = 56,
	AT_NUMERICS = 60,
	AT_LAYERS = 64,
	AT_HEADS = 68,
	AT_DIM = 72,
	AT_VOCAB = 76,
	AT_LENGTH = 80,
	AT_COMPUTED = 84,
	AT_FIRST = 88,
	AT_STATE = 92,
	AT_BYTES = 96,
	AT_SUM = 104,
	AT_ABOUT = 112,
	AT_HEADER_SUM = HEADER - 8
};
static const char magic[8] = "jitr\nkv";

static bool put_header(uint8_t p[HEADER], jit_session *s, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;
	uint64_t model;

	if (!model_fingerprint(s->model, s->engine->pool, &model, err))
		return false;
	memset(p, 0, HEADER);
	memcpy(p, magic, sizeof magic);
	record_put32(p + AT_VERSION, STATE_VERSION);
	record_put32(p + AT_LAYOUT, weight_layout_of(s->model->target));
	memcpy(p + AT_LIBRARY, JITRUN_VERSION, sizeof JITRUN_VERSION);
	record_put64(p + AT_MODEL, rope_checksum(&s->engine->rope, model));
	record_put32(p + AT_KV, s->memory.kv.type);
	record_put32(p + AT_NUMERICS, (uint32_t)s->model->f32_activations | (uint32_t)s->model->bounded << 1);
	record_put32(p + AT_LAYERS, spec->layers);
	record_put32(p + AT_HEADS, spec->kv_heads);
	record_put32(p + AT_DIM, spec->latent.rank ? model_cache_dim(spec, 0) : spec->head_dim);
	record_put32(p + AT_VOCAB, spec->vocab);
	snprintf((char *)p + AT_ABOUT, ABOUT_MOST, "%.*s", ABOUT_MOST - 1, s->model->description);
	return true;
}

/* What the ids take, an even number of them. */
static size_t ids_bytes(size_t n) { return (n + n % 2) * 4; }

static uint64_t body_bytes(const jit_session *s, size_t length, size_t computed, uint32_t first, uint32_t state)
{
	return ids_bytes(length) + kv_pieces_bytes(&s->memory.kv, &s->model->file.spec, computed, first) +
	       (state ? s->memory.states.bytes : 0);
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
	struct kv_piece *piece;
	uint64_t n_pieces;
	uint8_t *copied;
	struct safefile_part *part;
	int n_parts;
	uint8_t *state; /* of layers that keep one; NULL: none goes with the file */
	uint32_t state_position;
};

static void add_part(struct saving *v, const uint8_t *bytes, size_t n)
{
	struct safefile_part *last = v->n_parts ? &v->part[v->n_parts - 1] : NULL;

	if (last && (const uint8_t *)last->bytes + last->n == bytes)
		last->n += n;
	else
		v->part[v->n_parts++] = (struct safefile_part){ bytes, n };
}

static bool add_pieces(struct saving *v, struct error *err)
{
	const jit_session *s = v->session;
	const struct session_memory *m = &s->memory;
	struct device *d = m->device;
	uint32_t last = kv_chunks(s->computed) - 1, used = (uint32_t)(s->computed - (size_t)last * NUMERICS_CHUNK);
	uint8_t *copy = v->copied;

	for (uint64_t i = 0; i < v->n_pieces; i++) {
		const struct kv_piece *p = &v->piece[i];
		if (p->chunk < last && d->facts.host_reaches) {
			add_part(v, p->at, p->bytes);
			continue;
		}
		if (!d->read(d, copy, p->at, p->bytes, err))
			return false;
		if (p->chunk == last)
			kv_piece_clean(m, &s->model->file.spec, p->layer, copy, used);
		add_part(v, copy, p->bytes);
		copy += p->bytes;
	}
	return true;
}

/* The last state that the session can go on from. */
static bool add_state(struct saving *v, struct error *err)
{
	const jit_session *s = v->session;
	const struct session_states *t = &s->memory.states;
	int state = t->bytes ? states_find(t, computed_again(s->length, s->computed)) : -1;

	v->state_position = (uint32_t)states_position(t, state);
	if (!v->state_position)
		return true;
	if (!(v->state = malloc(t->bytes)))
		return error_set(err, ERROR_MEMORY, "no memory to save a state of %llu bytes",
		                 (unsigned long long)t->bytes);
	v->part[v->n_parts++] = (struct safefile_part){ v->state, t->bytes };
	return s->model->device->read(s->model->device, v->state, t->base + (uint64_t)state * t->bytes, t->bytes, err);
}

static bool make_parts(struct saving *v, struct error *err)
{
	jit_session *s = v->session;
	const struct model_spec *spec = &s->model->file.spec;
	uint64_t copies;

	if (!put_header(v->header, s, err) ||
	    !(v->piece = kv_pieces(&s->memory, spec, s->computed, s->memory.window_first, err)))
		return false;
	v->n_pieces = kv_pieces_count(spec, s->computed, s->memory.window_first);
	copies = s->model->device->facts.host_reaches && v->n_pieces > spec->layers ? spec->layers : v->n_pieces;
	v->ids = calloc(1, ids_bytes(s->length) + 4);
	v->copied = malloc(copies * kv_piece_most(&s->memory.kv, spec) + 1);
	v->part = malloc((v->n_pieces + 3) * sizeof *v->part);
	if (!v->ids || !v->copied || !v->part)
		return error_set(err, ERROR_MEMORY, "no memory to save a session of %zu tokens", s->length);
	memcpy(v->ids, s->ids, s->length * sizeof *v->ids);
	v->part[v->n_parts++] = (struct safefile_part){ v->header, HEADER };
	v->part[v->n_parts++] = (struct safefile_part){ v->ids, ids_bytes(s->length) };
	return (s->computed == 0 || add_pieces(v, err)) && add_state(v, err);
}

static void finish_header(struct saving *v)
{
	const jit_session *s = v->session;
	uint8_t *p = v->header;
	uint64_t sum = STATE_VERSION, bytes = 0;

	for (int i = 1; i < v->n_parts; i++)
		bytes += v->part[i].n;
	/* In steps of a piece, as it is read. */
	sum = record_checksum(v->ids, ids_bytes(s->length), sum);
	size_t part = 2, at = 0;
	for (uint64_t i = 0; s->computed && i < v->n_pieces; i++) {
		sum = record_checksum((const uint8_t *)v->part[part].bytes + at, v->piece[i].bytes, sum);
		at += v->piece[i].bytes;
		if (at == v->part[part].n) {
			part++;
			at = 0;
		}
	}
	if (v->state)
		sum = record_checksum(v->state, s->memory.states.bytes, sum);
	record_put32(p + AT_STATE, v->state_position);
	record_put32(p + AT_LENGTH, (uint32_t)s->length);
	record_put32(p + AT_COMPUTED, (uint32_t)s->computed);
	record_put32(p + AT_FIRST, s->memory.window_first);
	record_put64(p + AT_BYTES, bytes);
	record_put64(p + AT_SUM, sum);
	record_put64(p + AT_HEADER_SUM, record_checksum(p, AT_HEADER_SUM, STATE_VERSION));
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
	free(v.state);
	free(v.ids);
	free(v.piece);
	return model_report(err, &e);
}

/* ---- restoring */

struct restoring {
	jit_session *session;
	const char *path;
	int fd;
	uint64_t size, at, sum;
	uint32_t length, computed, first, state;
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

static const char *kv_name(uint32_t type) { return type < DTYPE_COUNT ? dtype_table[type].name : "an unknown type"; }

/* Text of the file, which may be any bytes. */
static const char *text_at(const uint8_t *p, unsigned most, char out[ABOUT_MOST + 1])
{
	memcpy(out, p, most);
	out[most] = 0;
	return out;
}

/* What the file was written by and for; own: what this session would write. */
static bool check_same(const struct restoring *r, const uint8_t *p, const uint8_t *own, struct error *err)
{
	static const char *const numerics[] = { "int8 activations, exact", "f32 activations, exact",
		                                "int8 activations, bounded", "f32 activations, bounded" };
	char theirs[ABOUT_MOST + 1], ours[ABOUT_MOST + 1];

	if (memcmp(p + AT_LIBRARY, own + AT_LIBRARY, AT_MODEL - AT_LIBRARY) != 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s was saved by jitrun %s, and this is %s", r->path,
		                 text_at(p + AT_LIBRARY, AT_MODEL - AT_LIBRARY, theirs), JITRUN_VERSION);
	if (memcmp(p + AT_ABOUT, own + AT_ABOUT, ABOUT_MOST) != 0)
		return error_set(err, ERROR_ARGUMENT, "%s was saved with the model \"%s\", and this is \"%s\"", r->path,
		                 text_at(p + AT_ABOUT, ABOUT_MOST, theirs), text_at(own + AT_ABOUT, ABOUT_MOST, ours));
	if (record_get32(p + AT_LAYOUT) != record_get32(own + AT_LAYOUT))
		return error_set(err, ERROR_ARGUMENT,
		                 "%s was saved on another kind of device, whose KV cache has another layout", r->path);
	if (record_get64(p + AT_MODEL) != record_get64(own + AT_MODEL))
		return error_set(err, ERROR_ARGUMENT,
		                 "%s was saved with another model of this kind: its weights or numbers are others",
		                 r->path);
	if (record_get32(p + AT_NUMERICS) != record_get32(own + AT_NUMERICS))
		return error_set(err, ERROR_ARGUMENT, "%s was saved with other numerics: %s, and this is %s", r->path,
		                 numerics[record_get32(p + AT_NUMERICS) & 3],
		                 numerics[record_get32(own + AT_NUMERICS) & 3]);
	if (record_get32(p + AT_KV) != record_get32(own + AT_KV))
		return error_set(err, ERROR_ARGUMENT, "%s has a KV cache of %s, and this session's is %s", r->path,
		                 kv_name(record_get32(p + AT_KV)), kv_name(r->session->memory.kv.type));
	return memcmp(p + AT_LAYERS, own + AT_LAYERS, AT_LENGTH - AT_LAYERS) == 0 ||
	       damaged(r, "its sizes are not the model's", err);
}

/* How much there is, and whether the session has room for it. */
static bool check_sizes(struct restoring *r, const uint8_t *p, struct error *err)
{
	const jit_session *s = r->session;

	r->length = record_get32(p + AT_LENGTH);
	r->computed = record_get32(p + AT_COMPUTED);
	r->first = record_get32(p + AT_FIRST);
	r->state = record_get32(p + AT_STATE);
	if (r->computed > r->length || r->first > kv_chunks(r->computed) ||
	    r->state > (s->memory.states.bytes ? computed_again(r->length, r->computed) : 0) ||
	    !session_memory_serves(&s->model->file.spec, r->computed ? r->computed - 1 : 0, r->first))
		return damaged(r, "its numbers contradict each other", err);
	if (r->computed > s->context || r->length > (uint64_t)s->context + 1)
		return error_set(err, ERROR_ARGUMENT, "%s holds %u tokens, and the context of this session %u", r->path,
		                 r->length, s->context);
	uint64_t bytes = body_bytes(s, r->length, r->computed, r->first, r->state);
	if (record_get64(p + AT_BYTES) != bytes)
		return damaged(r, "its numbers contradict each other", err);
	if (r->size != HEADER + bytes)
		return error_set(err, ERROR_FORMAT, "%s: has %llu bytes, expected %llu; the file is damaged", r->path,
		                 (unsigned long long)r->size, (unsigned long long)(HEADER + bytes));
	return true;
}

static bool read_header(struct restoring *r, uint8_t p[HEADER], struct error *err)
{
	uint8_t own[HEADER];

	if (r->size < HEADER)
		return damaged(r, "it is shorter than its header", err);
	if (!read_on(r, p, HEADER, err))
		return false;
	if (memcmp(p, magic, sizeof magic) != 0)
		return error_set(err, ERROR_FORMAT, "%s: is no saved session of jitrun", r->path);
	if (record_get32(p + AT_VERSION) != STATE_VERSION)
		return error_set(err, ERROR_UNSUPPORTED, "%s: has version %u of the format, expected %d", r->path,
		                 record_get32(p + AT_VERSION), STATE_VERSION);
	if (record_get64(p + AT_HEADER_SUM) != record_checksum(p, AT_HEADER_SUM, STATE_VERSION))
		return damaged(r, "the checksum of its header is wrong", err);
	return put_header(own, r->session, err) && check_same(r, p, own, err) && check_sizes(r, p, err);
}

/* Into the session's list, behind the tokens that it has, which are none. */
static bool read_ids(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	uint8_t *bytes = malloc(ids_bytes(r->length) + 1);
	bool ok = bytes ? read_on(r, bytes, ids_bytes(r->length), err)
	                : error_set(err, ERROR_MEMORY, "no memory for %u tokens", r->length);

	if (ok)
		r->sum = record_checksum(bytes, ids_bytes(r->length), STATE_VERSION);
	for (uint32_t i = 0; ok && i < r->length; i++) {
		uint32_t id = record_get32(bytes + 4 * (size_t)i);
		s->ids[i] = (int32_t)id;
		ok = id < s->model->file.spec.vocab || damaged(r, "a token is not in the vocabulary", err);
	}
	free(bytes);
	return ok;
}

static bool read_pieces(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	struct session_memory *m = &s->memory;
	const struct model_spec *spec = &s->model->file.spec;
	struct device *d = m->device;
	size_t most = kv_piece_most(&m->kv, spec);
	uint64_t pieces = kv_pieces_count(spec, r->computed, r->first);
	struct kv_piece *piece = kv_pieces(m, spec, r->computed, r->first, err);
	uint8_t *copy = malloc(most);
	bool ok = (piece && copy) || error_set(err, ERROR_MEMORY, "no memory for %zu bytes of a KV cache", most);

	for (uint64_t i = 0; ok && i < pieces; i++) {
		bool in_place = d->facts.host_reaches && piece[i].at;
		size_t n = piece[i].bytes;
		ok = read_on(r, in_place ? piece[i].at : copy, n, err);
		if (!ok)
			break;
		r->sum = record_checksum(in_place ? piece[i].at : copy, n, r->sum);
		if (!in_place && piece[i].at)
			ok = d->upload(d, piece[i].at, copy, n, err);
	}
	free(piece);
	free(copy);
	return ok;
}

static bool read_state(struct restoring *r, struct error *err)
{
	struct session_memory *m = &r->session->memory;
	size_t n = m->states.bytes;

	if (!r->state)
		return true;
	uint8_t *bytes = malloc(n);
	if (!bytes)
		return error_set(err, ERROR_MEMORY, "no memory for a state of %zu bytes", n);
	bool ok = read_on(r, bytes, n, err);
	if (ok) {
		r->sum = record_checksum(bytes, n, r->sum);
		ok = m->device->upload(m->device, states_take(&m->states, r->state), bytes, n, err);
	}
	free(bytes);
	return ok;
}

static bool restore(struct restoring *r, struct error *err)
{
	jit_session *s = r->session;
	uint8_t header[HEADER];

	if ((s->member && !batch_member_ready(s, 1, err)) || !read_header(r, header, err) || !read_ids(r, err) ||
	    (s->member && !batch_member_ready(s, r->computed, err)))
		return false;
	session_memory_begin_window(&s->memory, &s->model->file.spec, r->computed, r->first);
	if (read_pieces(r, err) && read_state(r, err) &&
	    (r->sum == record_get64(header + AT_SUM) || damaged(r, "the checksum of its contents is wrong", err))) {
		s->length = r->length;
		s->computed = computed_again(r->length, r->computed);
		return true;
	}
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
