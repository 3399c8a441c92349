/* loaders/files/safetensors.c - reads the header of a safetensors file. See safetensors.h.
 *
 * The header is copied and scanned twice in place: once to check and count, once to fill an array of exactly that
 * count. So what is allocated is in proportion to text that was really there (at most about one and a half times the
 * header).
 */
#include "loaders/files/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/file_kind.h"
#include "base/json_scan.h"

struct parser {
	struct safetensors *s;
	struct file *file;
	struct json_scan json;
	uint64_t header; /* its length */
	uint64_t count, escaped_bytes;
	bool fill;     /* the second scan */
	bool metadata; /* __metadata__ was seen */
	struct error *err;
};

struct entry {
	struct json_scan_text name;
	enum dtype type;
	uint32_t rank;
	uint64_t dim[SAFETENSORS_MAX_RANK];
	uint64_t begin, end;
	bool has_type, has_shape, has_offsets;
};

#define FORMAT_ERROR(p, ...) error_set((p)->err, ERROR_FORMAT, __VA_ARGS__)

static bool bad_json(struct parser *p)
{
	return FORMAT_ERROR(p, "%s: the header is not valid at byte %" PRIu64 ": %s", p->s->path, 8 + p->json.at,
	                    p->json.problem ? p->json.problem : "unknown structure");
}

static bool dtype_of(const struct json_scan_text *text, enum dtype *out)
{
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (dtype_table[t].block == 1 && json_scan_is(text, dtype_table[t].name)) {
			*out = (enum dtype)t;
			return true;
		}
	return false;
}

static const char *quoted(char *out, unsigned cap, const struct json_scan_text *t)
{
	return error_quote(out, cap, t->p, t->n);
}

static bool read_shape(struct parser *p, struct entry *e)
{
	char name[100];

	e->rank = 0;
	for (bool more = json_scan_open(&p->json, '[', ']'); more; more = json_scan_more(&p->json, ']')) {
		if (e->rank == SAFETENSORS_MAX_RANK)
			return FORMAT_ERROR(p, "%s: tensor %s has more than %d dimensions", p->s->path,
			                    quoted(name, sizeof name, &e->name), SAFETENSORS_MAX_RANK);
		if (!json_scan_u64(&p->json, &e->dim[e->rank++]))
			return bad_json(p);
	}
	return !p->json.problem || bad_json(p);
}

static bool read_offsets(struct parser *p, struct entry *e)
{
	struct json_scan *j = &p->json;

	if (json_scan_take(j, '[') && json_scan_u64(j, &e->begin) && json_scan_peek(j) != ',')
		json_scan_fail(j, "expected two data_offsets");
	if (json_scan_more(j, ']') && json_scan_u64(j, &e->end) && json_scan_peek(j) == ',')
		json_scan_fail(j, "expected two data_offsets");
	return json_scan_take(j, ']') || bad_json(p);
}

static bool once(struct parser *p, const struct entry *e, bool *seen, const char *field)
{
	char name[100];

	if (*seen)
		return FORMAT_ERROR(p, "%s: tensor %s has %s more than once", p->s->path,
		                    quoted(name, sizeof name, &e->name), field);
	return *seen = true;
}

static bool read_field(struct parser *p, struct entry *e)
{
	struct json_scan_text field, text;
	char name[100], type[40];

	if (!json_scan_member(&p->json, &field))
		return bad_json(p);
	if (json_scan_is(&field, "dtype")) {
		if (!once(p, e, &e->has_type, "dtype"))
			return false;
		if (!json_scan_string(&p->json, &text))
			return bad_json(p);
		return dtype_of(&text, &e->type) ||
		       FORMAT_ERROR(p, "%s: tensor %s has dtype %s, which is no known type", p->s->path,
		                    quoted(name, sizeof name, &e->name), quoted(type, sizeof type, &text));
	}
	if (json_scan_is(&field, "shape"))
		return once(p, e, &e->has_shape, "shape") && read_shape(p, e);
	if (json_scan_is(&field, "data_offsets"))
		return once(p, e, &e->has_offsets, "data_offsets") && read_offsets(p, e);
	return json_scan_skip(&p->json) || bad_json(p);
}

static bool check_entry(struct parser *p, const struct entry *e)
{
	char name[100];
	uint64_t bytes = dtype_table[e->type].bytes;
	bool empty = false;

	quoted(name, sizeof name, &e->name);
	if (!e->has_type || !e->has_shape || !e->has_offsets)
		return FORMAT_ERROR(p, "%s: tensor %s has no %s", p->s->path, name,
		                    !e->has_type    ? "dtype"
		                    : !e->has_shape ? "shape"
		                                    : "data_offsets");
	for (uint32_t d = 0; d < e->rank; d++) {
		empty |= e->dim[d] == 0;
		/* a dimension of 0 must not hide that the others overflow */
		if (__builtin_mul_overflow(bytes, e->dim[d] ? e->dim[d] : 1, &bytes) || bytes > INT64_MAX)
			return FORMAT_ERROR(p, "%s: the shape of tensor %s has more than 2^63 bytes", p->s->path, name);
	}
	if (empty)
		bytes = 0;
	if (e->end < e->begin)
		return FORMAT_ERROR(p, "%s: tensor %s ends at offset %" PRIu64 ", before it begins at %" PRIu64,
		                    p->s->path, name, e->end, e->begin);
	if (e->end - e->begin != bytes)
		return FORMAT_ERROR(p,
		                    "%s: tensor %s spans %" PRIu64 " bytes, but its shape and dtype %s take %" PRIu64,
		                    p->s->path, name, e->end - e->begin, dtype_table[e->type].name, bytes);
	if (e->end > INT64_MAX - p->s->data_start)
		return FORMAT_ERROR(p, "%s: tensor %s ends at offset %" PRIu64 ", beyond 2^63", p->s->path, name,
		                    e->end);
	return true;
}

static void keep(struct parser *p, const struct entry *e)
{
	struct safetensors_tensor *t = &p->s->tensor[p->count];

	t->name = (struct name_ref){ e->name.p, e->name.n };
	if (e->name.escaped) {
		char *at = p->s->strings + p->escaped_bytes;
		t->name = (struct name_ref){ at, json_scan_unescape(&e->name, at) };
	}
	t->type = e->type;
	t->rank = e->rank;
	for (uint32_t d = 0; d < SAFETENSORS_MAX_RANK; d++)
		t->dim[d] = d < e->rank ? e->dim[d] : 1;
	t->offset = p->s->data_start + e->begin;
	t->bytes = e->end - e->begin;
}

static bool read_tensor(struct parser *p, const struct json_scan_text *name)
{
	struct entry e = { .name = *name };

	for (bool more = json_scan_open(&p->json, '{', '}'); more; more = json_scan_more(&p->json, '}'))
		if (!read_field(p, &e))
			return false;
	if (p->json.problem)
		return bad_json(p);
	if (!check_entry(p, &e))
		return false;
	if (p->fill)
		keep(p, &e);
	p->count++;
	p->escaped_bytes += name->escaped ? name->n : 0;
	return true;
}

static bool read_metadata(struct parser *p)
{
	struct json_scan_text text;

	if (p->metadata)
		return FORMAT_ERROR(p, "%s: the header has __metadata__ more than once", p->s->path);
	p->metadata = true;
	for (bool more = json_scan_open(&p->json, '{', '}'); more; more = json_scan_more(&p->json, '}'))
		if (!json_scan_member(&p->json, &text) || !json_scan_string(&p->json, &text))
			return bad_json(p);
	return !p->json.problem || bad_json(p);
}

static bool scan(struct parser *p, bool fill)
{
	struct json_scan_text name;

	p->json = json_scan_of(p->file->base + 8, p->header);
	p->fill = fill;
	p->count = p->escaped_bytes = 0;
	p->metadata = false;
	for (bool more = json_scan_open(&p->json, '{', '}'); more; more = json_scan_more(&p->json, '}')) {
		if (!json_scan_member(&p->json, &name))
			return bad_json(p);
		if (!(json_scan_is(&name, "__metadata__") ? read_metadata(p) : read_tensor(p, &name)))
			return false;
	}
	return json_scan_finish(&p->json) || bad_json(p);
}

static bool read_length(struct parser *p)
{
	const struct safetensors *s = p->s;

	if (s->size < 8)
		return FORMAT_ERROR(p, "%s: has %" PRIu64 " bytes, too few for a safetensors header", s->path, s->size);
	if (!file_reach(p->file, 8, p->err))
		return false;
	memcpy(&p->header, p->file->base, 8);
	if (p->header > SAFETENSORS_MAX_HEADER)
		return FORMAT_ERROR(p, "%s: the header's length is %" PRIu64 ", expected at most %d", s->path,
		                    p->header, SAFETENSORS_MAX_HEADER);
	if (p->header > s->size - 8)
		return FORMAT_ERROR(p, "%s: the header's length is %" PRIu64 ", but only %" PRIu64 " bytes follow",
		                    s->path, p->header, s->size - 8);
	p->s->data_start = 8 + p->header;
	return file_reach(p->file, p->s->data_start, p->err);
}

static int by_offset(const void *a, const void *b, void *context)
{
	const struct safetensors_tensor *t = context, *x = &t[*(const uint32_t *)a], *y = &t[*(const uint32_t *)b];

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool no_memory(struct parser *p)
{
	return error_set(p->err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " tensors", p->s->path, p->count);
}

/* The tensors, sorted, must follow each other without overlap or gap and end with the file. */
static bool check_tiling(struct parser *p, bool header_only)
{
	const struct safetensors *s = p->s;
	uint64_t expected = s->data_start;
	char name[100];
	bool ok = true;
	uint32_t *order = malloc(s->n_tensors ? s->n_tensors * sizeof *order : 1);

	if (!order)
		return no_memory(p);
	for (uint32_t i = 0; i < s->n_tensors; i++)
		order[i] = i;
	qsort_r(order, s->n_tensors, sizeof *order, by_offset, s->tensor);
	for (uint32_t i = 0; i < s->n_tensors && ok; i++) {
		const struct safetensors_tensor *t = &s->tensor[order[i]];
		if (t->offset != expected)
			ok = FORMAT_ERROR(p,
			                  "%s: tensor %s begins at offset %" PRIu64 ", expected %" PRIu64
			                  ": tensors must neither overlap nor leave gaps",
			                  s->path, error_quote(name, sizeof name, t->name.p, t->name.n),
			                  t->offset - s->data_start, expected - s->data_start);
		expected = t->offset + t->bytes;
	}
	free(order);
	if (ok && !header_only && expected != s->size)
		ok = FORMAT_ERROR(p, "%s: the tensors end at byte %" PRIu64 ", but the file has %" PRIu64 " bytes",
		                  s->path, expected, s->size);
	return ok;
}

static struct name_ref tensor_name(const void *owner, uint32_t i)
{
	return ((const struct safetensors *)owner)->tensor[i].name;
}

static bool check_names(struct parser *p)
{
	struct names names;
	char name[100];

	if (!names_build(&names, p->s, p->s->n_tensors, tensor_name))
		return no_memory(p);
	uint32_t twice = names_duplicate(&names);
	names_free(&names);
	if (twice == NAMES_NONE)
		return true;
	struct name_ref n = p->s->tensor[twice].name;
	return FORMAT_ERROR(p, "%s: tensor %s occurs more than once", p->s->path,
	                    error_quote(name, sizeof name, n.p, n.n));
}

static bool index_tensors(struct parser *p)
{
	struct safetensors *s = p->s;

	if (p->count > UINT32_MAX / 2)
		return FORMAT_ERROR(p, "%s: has %" PRIu64 " tensors, too many", s->path, p->count);
	s->tensor = calloc(p->count ? p->count : 1, sizeof *s->tensor);
	s->strings = malloc(p->escaped_bytes + 1);
	if (!s->tensor || !s->strings)
		return no_memory(p);
	s->n_tensors = (uint32_t)p->count;
	return scan(p, true);
}

static bool parse(struct safetensors *s, struct file *f, const char *path, bool header_only, struct error *err)
{
	struct parser p = { .s = s, .file = f, .err = err };

	*s = (struct safetensors){ .size = f->size, .path = path };
	if (read_length(&p) && scan(&p, false) && index_tensors(&p) && check_tiling(&p, header_only) &&
	    check_names(&p)) {
		file_trim(f, s->data_start);
		return true;
	}
	safetensors_free(s);
	if (p.header > SAFETENSORS_MAX_HEADER || f->have <= 8 || f->base[8] != '{')
		file_say_kind(f, err);
	return false;
}

bool safetensors_open(struct safetensors *s, struct file *f, bool header_only, struct error *err)
{
	struct error why = { 0 };
	bool ok = parse(s, f, f->label, header_only, &why);

	if (file_verdict(f, ok, &why, err))
		return true;
	if (ok)
		safetensors_free(s);
	return false;
}

bool safetensors_parse(struct safetensors *s, const uint8_t *base, uint64_t n, const char *path, bool header_only,
                       struct error *err)
{
	struct file f;

	file_memory(&f, base, n, path);
	return parse(s, &f, path, header_only, err);
}

void safetensors_free(struct safetensors *s)
{
	free(s->tensor);
	free(s->strings);
	memset(s, 0, sizeof *s);
}
