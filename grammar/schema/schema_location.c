/* grammar/schema/schema_location.c - where schema objects stand in the text, by JSON pointers and by URIs. */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/schema_parts.h"

enum { URI_MAX = 4096, DEPTH_MAX = 1000 };

static bool keep_base(struct schema_reader *r, const char *uri, char **kept)
{
	void *all = r->base;

	if (!effort_array(&all, &r->base_room, r->n_bases + 1, sizeof *r->base))
		return schema_no_memory(r);
	r->base = all;
	if (!(*kept = strdup(uri)))
		return schema_no_memory(r);
	r->base[r->n_bases++] = *kept;
	return true;
}

static size_t scheme_of(const char *uri)
{
	size_t n = strcspn(uri, ":/?#");

	return uri[n] == ':' ? n + 1 : 0;
}

/* RFC 3986, 5.2, without dots in the middle of a path. */
static bool join_uri(const char *base, const char *ref, char out[URI_MAX])
{
	size_t scheme = scheme_of(base), end = strcspn(base, "#"), n;
	bool authority = strncmp(base + scheme, "//", 2) == 0;
	size_t path = authority ? scheme + 2 + strcspn(base + scheme + 2, "/?#") : scheme;

	if (scheme_of(ref))
		return snprintf(out, URI_MAX, "%s", ref) < URI_MAX;
	if (ref[0] == '#' || !ref[0])
		n = end;
	else if (strncmp(ref, "//", 2) == 0)
		n = scheme;
	else if (ref[0] == '/')
		n = path;
	else
		for (n = strcspn(base, "?#"); n > path && base[n - 1] != '/'; n--)
			;
	while (strncmp(ref, "./", 2) == 0)
		ref += 2;
	while (strncmp(ref, "../", 3) == 0) {
		ref += 3;
		while (n > path + 1 && base[--n - 1] != '/')
			;
	}
	bool slash = n == path && authority && ref[0] != '/' && ref[0] != '#' && ref[0];
	return snprintf(out, URI_MAX, "%.*s%s%s", (int)n, base, slash ? "/" : "", ref) < URI_MAX;
}

struct walk {
	char pointer[URI_MAX];
	size_t n;
};

/* Where the walk is: the URI there, and the document. */
struct scope_of_schema {
	char *base;
	uint32_t document;
};

static bool walk(struct schema_reader *r, struct walk *w, const json_t *json, struct scope_of_schema in,
                 unsigned depth);

/* A document begins at json. */
static bool enter_document(struct schema_reader *r, const json_t *json, struct scope_of_schema *in)
{
	const char *how = json_string_value(json_object_get(json, SCHEMA_DOCUMENT)),
		   *draft = json_string_value(json_object_get(json, "$schema"));
	struct document_of_schema made = {
		.alone = r->n_documents == 0 || strcmp(how, "first") != 0, .outer = in->document, .base = in->base
	};
	void *all = r->document;

	made.old = draft ? strstr(draft, "draft-03") || strstr(draft, "draft-04") || strstr(draft, "draft-06") ||
	                           strstr(draft, "draft-07")
	                 : r->n_documents && r->document[in->document].old;
	if (!effort_array(&all, &r->document_room, r->n_documents + 1, sizeof *r->document))
		return schema_no_memory(r);
	r->document = all;
	in->document = (uint32_t)r->n_documents;
	r->document[r->n_documents++] = made;
	return keep_base(r, "", &in->base);
}

/* "~" and "/" have escapes in pointers. False: the pointer is too long. */
static bool descend(struct walk *w, const char *key)
{
	if (w->n + 2 * strlen(key) + 2 > sizeof w->pointer)
		return false;
	w->pointer[w->n++] = '/';
	for (; *key; key++) {
		w->pointer[w->n++] = *key == '~' || *key == '/' ? '~' : *key;
		if (*key == '~' || *key == '/')
			w->pointer[w->n++] = *key == '~' ? '0' : '1';
	}
	w->pointer[w->n] = 0;
	return true;
}

static bool walk_object(struct schema_reader *r, struct walk *w, const json_t *json, struct scope_of_schema in,
                        unsigned depth)
{
	const json_t *id = json_object_get(json, "$id") ? json_object_get(json, "$id") : json_object_get(json, "id");
	const char *text = json_string_value(id), *key;
	char uri[URI_MAX];
	size_t n = w->n;
	json_t *value;
	void *all = r->location;

	if (json_is_string(json_object_get(json, SCHEMA_DOCUMENT)) && depth && !enter_document(r, json, &in))
		return false;
	/* In old drafts a $ref hides what stands beside it. */
	if (text && text[0] != '#' && !(r->document[in.document].old && json_object_get(json, "$ref"))) {
		if (!join_uri(in.base, text, uri))
			return schema_fail(r, "a URI that is too long");
		uri[strcspn(uri, "#")] = 0;
		if (!keep_base(r, uri, &in.base))
			return false;
	}
	if (!effort_array(&all, &r->location_room, r->n_locations + 1, sizeof *r->location))
		return schema_no_memory(r);
	r->location = all;
	struct schema_location *p = &r->location[r->n_locations];
	*p = (struct schema_location){ json, in.base, strdup(w->pointer), SCHEMA_NONE, in.document };
	r->n_locations++;
	if (!p->pointer)
		return schema_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		if (strcmp(key, "enum") == 0 || strcmp(key, "const") == 0)
			continue;
		if (!descend(w, key))
			return schema_fail(r, "names that are too long, or objects that are too deep");
		if (!walk(r, w, value, in, depth + 1))
			return false;
		w->pointer[w->n = n] = 0;
	}
	return true;
}

static bool walk(struct schema_reader *r, struct walk *w, const json_t *json, struct scope_of_schema in, unsigned depth)
{
	size_t i, n = w->n;
	json_t *value;
	char index[24];

	if (depth > DEPTH_MAX)
		return schema_fail(r, "objects that are too deep");
	if (!effort_take(5 + w->n / 8))
		return false;
	if (json_is_object(json))
		return walk_object(r, w, json, in, depth);
	json_array_foreach(json, i, value)
	{
		snprintf(index, sizeof index, "%zu", i);
		if (!descend(w, index))
			return schema_fail(r, "names that are too long, or objects that are too deep");
		if (!walk(r, w, value, in, depth + 1))
			return false;
		w->pointer[w->n = n] = 0;
	}
	return true;
}

static int by_json(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct schema_location *)a)->json,
		  y = (uintptr_t)((const struct schema_location *)b)->json;

	return x < y ? -1 : x > y;
}

bool schema_find_locations(struct schema_reader *r)
{
	struct walk w = { .n = 0 };
	struct scope_of_schema in = { 0 };

	if (!enter_document(r, r->root, &in) || !walk(r, &w, r->root, in, 0))
		return false;
	if (r->n_locations)
		qsort(r->location, r->n_locations, sizeof *r->location, by_json);
	return true;
}

struct schema_location *schema_location(const struct schema_reader *r, const json_t *json)
{
	const struct schema_location key = { .json = json };

	return r->n_locations ? bsearch(&key, r->location, r->n_locations, sizeof key, by_json) : NULL;
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

/* A part of a pointer, which ends at a slash, with its escapes undone. Returns where it ends. */
static const char *part_of(const char *at, char out[URI_MAX])
{
	size_t n = 0;

	for (; *at && *at != '/' && n + 1 < URI_MAX; at++) {
		char c = *at;
		if (c == '%' && strspn(at + 1, "0123456789abcdefABCDEF") >= 2) {
			c = (char)(16 * hex(at[1]) + hex(at[2]));
			at += 2;
		}
		if (c == '~' && (at[1] == '0' || at[1] == '1'))
			c = *++at == '0' ? '~' : '/';
		out[n++] = c;
	}
	out[n] = 0;
	return at;
}

static const json_t *follow(const json_t *json, const char *pointer)
{
	char part[URI_MAX];

	while (json && *pointer == '/') {
		pointer = part_of(pointer + 1, part);
		json = json_is_array(json) ? json_array_get(json, strtoul(part, NULL, 10))
		                           : json_object_get(json, part);
	}
	return *pointer ? NULL : json;
}

static bool has_anchor(const json_t *json, const char *name)
{
	const char *anchor = json_string_value(json_object_get(json, "$anchor")),
		   *dynamic = json_string_value(json_object_get(json, "$dynamicAnchor")),
		   *id = json_string_value(json_object_get(json, "$id")),
		   *old = json_string_value(json_object_get(json, "id"));

	return (anchor && strcmp(anchor, name) == 0) || (dynamic && strcmp(dynamic, name) == 0) ||
	       (id && id[0] == '#' && strcmp(id + 1, name) == 0) ||
	       (old && old[0] == '#' && strcmp(old + 1, name) == 0);
}

/* The object that a part of a document, by its URI without fragment, begins with: no other with this base is outside of
 * it. */
static const struct schema_location *part_named(struct schema_reader *r, uint32_t document, const char *uri)
{
	const struct schema_location *best = r->named;

	if (best && best->document == document && strcmp(best->base, uri) == 0)
		return best;
	best = NULL;
	effort_take(2 * r->n_locations);
	for (size_t i = 0; i < r->n_locations; i++)
		if (r->location[i].document == document && strcmp(r->location[i].base, uri) == 0 &&
		    (!best || strlen(r->location[i].pointer) < strlen(best->pointer)))
			best = &r->location[i];
	return r->named = best;
}

/* Where a reference leads in one document; NULL with the reason. */
static const json_t *resolve_in(struct schema_reader *r, uint32_t document, const char *base, const char *ref,
                                const char **why)
{
	char uri[URI_MAX];

	*why = "a URI that is too long";
	if (!join_uri(base, ref, uri))
		return NULL;
	char *hash = strchr(uri, '#'), none[] = "";
	char *fragment = hash ? hash + 1 : none;
	if (hash)
		*hash = 0;
	const struct schema_location *part = part_named(r, document, uri);
	*why = part ? "a reference to what is not there" : "a reference to another document, which is not read";
	if (!part || !*fragment || *fragment == '/')
		return part ? follow(part->json, fragment) : NULL;
	effort_take(4 * r->n_locations);
	for (size_t i = 0; i < r->n_locations; i++)
		if (r->location[i].document == document && strcmp(r->location[i].base, uri) == 0 &&
		    has_anchor(r->location[i].json, fragment))
			return r->location[i].json;
	return NULL;
}

bool schema_resolve(struct schema_reader *r, const struct schema_location *from, const char *ref, const json_t **to)
{
	const struct document_of_schema *d = &r->document[from->document];
	const char *why, *ignored;

	for (*to = resolve_in(r, from->document, from->base, ref, &why); !*to && !d->alone;) {
		*to = resolve_in(r, d->outer, d->base, ref, &ignored);
		d = &r->document[d->outer];
	}
	return *to || schema_fail(r, why);
}
