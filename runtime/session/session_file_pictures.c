/* runtime/session/session_file_pictures.c - pictures in a saved session: the features of each, because tokens may be
 * computed again, and where they stand.
 *
 * Owns: what a file of VERSION_OF_PICTURES has behind its states. First how many runs of tokens and how many pictures
 * there are, 4 bytes each. Of each run: its first token, how many it has, the first feature, and which picture, 4 bytes
 * each. Of each picture: how many features (8), their width, levels, rows and columns (4 each), and the key (8). Then
 * the features of one picture after the other, as floats.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "jit/store/safefile.h"
#include "runtime/session/session_file.h"
#include "runtime/session/session_state.h"

enum { COUNTS = 8, RUN = 16, PICTURE = 32 };

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_MEMORY, "no memory for the pictures of a saved session");
}

static size_t values_bytes(const struct image_features *p) { return p->levels * p->tokens * p->width * sizeof(float); }

/* ---- saving */

static uint32_t number_of(struct saved_pictures *v, struct image_features *of)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->of[i] == of)
			return i;
	v->of[v->n] = of;
	return v->n++;
}

bool session_file_list_pictures(struct saved_pictures *v, const jit_session *s, struct error *err)
{
	const size_t runs = s->pictures.n;

	*v = (struct saved_pictures){ 0 };
	if (!runs)
		return true;
	v->of = calloc(runs, sizeof(struct image_features *));
	v->table = calloc(1, COUNTS + runs * (RUN + PICTURE));
	if (!v->of || !v->table)
		return no_memory(err);
	for (size_t i = 0; i < runs; i++) {
		const struct session_picture *p = &s->pictures.list[i];
		uint8_t *to = v->table + COUNTS + i * RUN;
		record_put32(to, (uint32_t)p->first);
		record_put32(to + 4, p->n);
		record_put32(to + 8, p->at);
		record_put32(to + 12, number_of(v, p->of));
	}
	for (uint32_t i = 0; i < v->n; i++) {
		const struct image_features *p = v->of[i];
		uint8_t *to = v->table + COUNTS + runs * RUN + (size_t)i * PICTURE;
		record_put64(to, p->tokens);
		record_put32(to + 8, p->width);
		record_put32(to + 12, p->levels);
		record_put32(to + 16, p->rows);
		record_put32(to + 20, p->columns);
		record_put64(to + 24, p->key);
	}
	record_put32(v->table, (uint32_t)runs);
	record_put32(v->table + 4, v->n);
	v->table_bytes = COUNTS + runs * RUN + (size_t)v->n * PICTURE;
	return true;
}

void session_file_add_pictures(const struct saved_pictures *v, struct safefile_part *part, int *parts, uint64_t *sum)
{
	if (!v->n)
		return;
	part[(*parts)++] = (struct safefile_part){ v->table, v->table_bytes };
	*sum = record_checksum(v->table, v->table_bytes, *sum);
	for (uint32_t i = 0; i < v->n; i++) {
		part[(*parts)++] = (struct safefile_part){ v->of[i]->values, values_bytes(v->of[i]) };
		*sum = record_checksum(v->of[i]->values, values_bytes(v->of[i]), *sum);
	}
}

void session_file_forget_pictures(struct saved_pictures *v)
{
	free(v->table);
	free(v->of);
}

/* ---- restoring */

struct reading {
	const struct pictures_location *location;
	uint64_t at, left, *sum;
	uint32_t runs, pictures;
	uint8_t *table; /* of the runs, and then of the pictures */
	struct image_features **of;
};

static bool damaged(const struct reading *r, struct error *err)
{
	return error_set(err, ERROR_FORMAT,
	                 "%s: the numbers of its pictures contradict each other; the file is damaged",
	                 r->location->path);
}

static bool take(struct reading *r, void *out, uint64_t n, struct error *err)
{
	if (n > r->left)
		return damaged(r, err);
	if (!safefile_read(r->location->fd, out, n, (off_t)r->at))
		return error_set(err, ERROR_IO, "%s: cannot be read at byte %llu: %s", r->location->path,
		                 (unsigned long long)r->at, errno ? strerror(errno) : "it ends there");
	r->at += n;
	r->left -= n;
	return true;
}

static bool read_table(struct reading *r, struct error *err)
{
	uint8_t counts[COUNTS];

	if (!take(r, counts, COUNTS, err))
		return false;
	r->runs = record_get32(counts);
	r->pictures = record_get32(counts + 4);
	const uint64_t n = (uint64_t)r->runs * RUN + (uint64_t)r->pictures * PICTURE;
	if (n > r->left || !r->runs || !r->pictures || r->pictures > r->runs)
		return damaged(r, err);
	r->of = calloc(r->pictures, sizeof(struct image_features *));
	r->table = malloc(COUNTS + n);
	if (!r->of || !r->table)
		return no_memory(err);
	memcpy(r->table, counts, COUNTS);
	if (!take(r, r->table + COUNTS, n, err))
		return false;
	*r->sum = record_checksum(r->table, COUNTS + n, *r->sum);
	return true;
}

/* Rows and columns are those of a tile. */
static bool read_picture(struct reading *r, const jit_session *s, uint32_t i, struct error *err)
{
	const uint8_t *p = r->table + COUNTS + (size_t)r->runs * RUN + (size_t)i * PICTURE;
	struct image_features f = { .tokens = record_get64(p),
		                    .width = record_get32(p + 8),
		                    .levels = record_get32(p + 12),
		                    .rows = record_get32(p + 16),
		                    .columns = record_get32(p + 20),
		                    .key = record_get64(p + 24) };
	const uint64_t each = (uint64_t)f.width * sizeof(float), tile = (uint64_t)f.rows * f.columns;

	if (!f.width || !f.levels || !f.tokens || !tile || tile > f.tokens || f.tokens > r->left / each ||
	    f.levels > r->left / (each * f.tokens) || (s->model->file.spec.rope.sections[0] && tile != f.tokens))
		return damaged(r, err);
	const size_t n = values_bytes(&f);
	if (!(f.values = malloc(n)))
		return no_memory(err);
	if (!take(r, f.values, n, err)) {
		free(f.values);
		return false;
	}
	*r->sum = record_checksum(f.values, n, *r->sum);
	r->of[i] = picture_open(&f, err);
	return r->of[i] != NULL;
}

static bool put_run(struct reading *r, jit_session *s, uint32_t i, uint64_t *end, struct error *err)
{
	const uint8_t *p = r->table + COUNTS + (size_t)i * RUN;
	const uint32_t first = record_get32(p), n = record_get32(p + 4), which = record_get32(p + 12);

	if (first < *end || !n || (uint64_t)first + n > r->location->length || which >= r->pictures)
		return damaged(r, err);
	*end = (uint64_t)first + n;
	return session_pictures_put(s, &(struct session_picture){ first, n, record_get32(p + 8), r->of[which] }, err);
}

bool session_file_read_pictures(jit_session *s, const struct pictures_location *location, uint64_t *sum,
                                struct error *err)
{
	struct reading r = { .location = location, .at = location->at, .left = location->bytes, .sum = sum };
	uint64_t end = 0;
	bool ok = read_table(&r, err);

	for (uint32_t i = 0; ok && i < r.pictures; i++)
		ok = read_picture(&r, s, i, err);
	ok = ok && (!r.left || damaged(&r, err));
	for (uint32_t i = 0; ok && i < r.runs; i++)
		ok = put_run(&r, s, i, &end, err);
	for (uint32_t i = 0; r.of && i < r.pictures; i++)
		picture_release(r.of[i]);
	free(r.of);
	free(r.table);
	if (!ok)
		session_pictures_rewind(s, 0);
	return ok;
}
