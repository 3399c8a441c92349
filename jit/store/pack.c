/* jit/store/pack.c - pack files: the layout of jit/store/pack.h written and read. Every number in a file is hostile
 * until checked. */
#include "jit/store/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/store/container.h"
#include "jit/store/record.h"
#include "jit/store/safefile.h"

enum {
	HEADER_BYTES = 64,
	CHECKED_HEADER = HEADER_BYTES - 8,
	AT_VERSION = 8,
	AT_RECORD_BYTES = 12,
	AT_RECORDS = 16,
	AT_SLOTS = 20,
	AT_BYTES = 24,
	AT_INDEX_SUM = 32,
	AT_ZERO = 40,
	AT_SUM = 56,
	MAX_RECORDS = 1 << 24,
};
static const char pack_magic[8] = "jitr\npk";

/* --- writing */

struct named {
	const struct pack_item *item;
	char text[KEY_TEXT_MAX];
};

static int named_order(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order ? order : memcmp(&x->item->key, &y->item->key, sizeof x->item->key);
}

/* Sorts, and drops what is there twice. *n becomes the number left. */
static struct named *in_order(const struct pack_item *item, size_t *n, struct error *err)
{
	struct named *list = malloc((*n + 1) * sizeof *list);
	size_t kept = 0;

	if (!list) {
		error_set(err, ERROR_MEMORY, "no memory for a pack of %zu objects", *n);
		return NULL;
	}
	for (size_t i = 0; i < *n; i++) {
		list[i].item = &item[i];
		key_text(&item[i].key, list[i].text, sizeof list[i].text);
	}
	qsort(list, *n, sizeof *list, named_order);
	for (size_t i = 0; i < *n; i++) {
		if (kept && key_equal(&list[kept - 1].item->key, &list[i].item->key)) {
			if (record_same(&list[kept - 1].item->object, &list[i].item->object))
				continue;
			error_set(err, ERROR_ARGUMENT, "two different objects have the key %s", list[i].text);
			free(list);
			return NULL;
		}
		list[kept++] = list[i];
	}
	*n = kept;
	return list;
}

static uint32_t slots_for(size_t records)
{
	uint32_t slots = 2;

	while (slots < 2 * records)
		slots *= 2;
	return slots;
}

static void fill_slots(uint8_t *slot, uint32_t slots, const uint8_t *record, size_t n)
{
	memset(slot, 0, 4 * (size_t)slots);
	for (size_t i = 0; i < n; i++) {
		struct key key;
		memcpy(&key, record + i * RECORD_BYTES, sizeof key);
		uint32_t at = (uint32_t)key_hash(&key) & (slots - 1);
		while (record_get32(slot + 4 * (size_t)at))
			at = (at + 1) & (slots - 1);
		record_put32(slot + 4 * (size_t)at, (uint32_t)i + 1);
	}
}

static void put_header(uint8_t *p, size_t records, uint32_t slots, uint64_t bytes)
{
	memset(p, 0, HEADER_BYTES);
	memcpy(p, pack_magic, sizeof pack_magic);
	record_put32(p + AT_VERSION, RECORD_VERSION);
	record_put32(p + AT_RECORD_BYTES, RECORD_BYTES);
	record_put32(p + AT_RECORDS, (uint32_t)records);
	record_put32(p + AT_SLOTS, slots);
	record_put64(p + AT_BYTES, bytes);
	record_put64(p + AT_INDEX_SUM,
	             record_checksum(p + HEADER_BYTES, records * RECORD_BYTES + 4 * (size_t)slots, RECORD_VERSION));
	record_put64(p + AT_SUM, record_checksum(p, CHECKED_HEADER, RECORD_VERSION));
}

/* Bodies, one behind the other, while their records are filled. */
static bool append(uint8_t **p, size_t *room, size_t *at, size_t record, const struct pack_item *item,
                   struct error *err)
{
	uint8_t bytes[RECORD_BYTES], *body = record_pack(bytes, &item->key, &item->object, *at, err);

	if (!body)
		return false;
	size_t n = record_get32(bytes + RECORD_AT_BODY);
	if (*at + n > *room) {
		uint8_t *wider = realloc(*p, *room = 2 * (*at + n));
		if (!wider) {
			free(body);
			return error_set(err, ERROR_MEMORY, "no memory for a pack of more than %zu bytes", *at);
		}
		*p = wider;
	}
	memcpy(*p + record, bytes, RECORD_BYTES);
	memcpy(*p + *at, body, n);
	*at += n;
	free(body);
	return true;
}

uint8_t *pack_bytes(const struct pack_item *item, size_t n, size_t *bytes, struct error *err)
{
	if (n > MAX_RECORDS) {
		error_set(err, ERROR_ARGUMENT, "a pack of %zu objects, expected at most %d", n, MAX_RECORDS);
		return NULL;
	}
	struct named *list = in_order(item, &n, err);
	uint32_t slots = slots_for(n);
	size_t at = HEADER_BYTES + n * RECORD_BYTES + 4 * (size_t)slots, room = at + n * 2048;
	uint8_t *p = list ? malloc(room) : NULL;

	if (list && !p)
		error_set(err, ERROR_MEMORY, "no memory for a pack of %zu objects", n);
	bool good = p != NULL;
	for (size_t i = 0; good && i < n; i++)
		good = append(&p, &room, &at, HEADER_BYTES + i * RECORD_BYTES, list[i].item, err);
	free(list);
	if (!good) {
		free(p);
		return NULL;
	}
	fill_slots(p + HEADER_BYTES + n * RECORD_BYTES, slots, p + HEADER_BYTES, n);
	put_header(p, n, slots, at);
	*bytes = at;
	return p;
}

bool pack_write(const char *path, const struct pack_item *item, size_t n, struct error *err)
{
	const char *name;
	char quoted[256];
	size_t bytes;
	int dir = safefile_directory(path, "the pack file", &name, quoted, err);

	if (dir < 0)
		return false;
	uint8_t *p = pack_bytes(item, n, &bytes, err);
	bool good = p != NULL;
	if (good) {
		safefile_sweep(dir, name);
		enum safefile_step step = safefile_replace(dir, name, 0644, &(struct safefile_part){ p, bytes }, 1);
		good = !step || safefile_failed(step, "the pack file", quoted, err);
	}
	free(p);
	close(dir);
	return good;
}

/* --- opening */

struct pack {
	int fd; /* -1: in memory */
	const uint8_t *memory;
	uint64_t base; /* where it begins in the file */
	uint64_t bytes;
	uint8_t *owned; /* records and slots read from the file */
	const uint8_t *record, *slot;
	uint32_t records, slots;
	char name[256];
};

static bool header_failed(const struct pack *p, const char *field, uint64_t value, uint64_t expected, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "the pack file %s is damaged: its %s is %llu, expected %llu", p->name,
	                 field, (unsigned long long)value, (unsigned long long)expected);
}

static bool read_header(struct pack *p, const uint8_t *h, struct error *err)
{
	p->records = record_get32(h + AT_RECORDS);
	p->slots = record_get32(h + AT_SLOTS);
	if (memcmp(h, pack_magic, sizeof pack_magic))
		return error_set(err, ERROR_FORMAT, "%s is no pack file: it begins with other bytes", p->name);
	if (record_get32(h + AT_VERSION) != RECORD_VERSION)
		return error_set(
			err, ERROR_FORMAT,
			"the pack file %s has version %u, expected %d: it was made by another version of jitrun",
			p->name, record_get32(h + AT_VERSION), RECORD_VERSION);
	if (record_get64(h + AT_SUM) != record_checksum(h, CHECKED_HEADER, RECORD_VERSION))
		return error_set(err, ERROR_FORMAT,
		                 "the pack file %s is damaged: the checksum of its header does not fit", p->name);
	if (record_get32(h + AT_RECORD_BYTES) != RECORD_BYTES)
		return header_failed(p, "size of a record", record_get32(h + AT_RECORD_BYTES), RECORD_BYTES, err);
	if (record_get64(h + AT_BYTES) != p->bytes)
		return header_failed(p, "size", p->bytes, record_get64(h + AT_BYTES), err);
	if (p->records > MAX_RECORDS || p->slots != slots_for(p->records))
		return header_failed(p, "number of slots", p->slots,
		                     p->records > MAX_RECORDS ? 0 : slots_for(p->records), err);
	if (HEADER_BYTES + (uint64_t)p->records * RECORD_BYTES + 4 * (uint64_t)p->slots > p->bytes)
		return header_failed(p, "number of objects", p->records, (p->bytes - HEADER_BYTES) / (RECORD_BYTES + 8),
		                     err);
	return true;
}

/* False: errno, 0 when fewer bytes are there. */
static bool read_bytes(const struct pack *p, void *out, size_t n, uint64_t at)
{
	errno = 0;
	if (at > p->bytes || n > p->bytes - at)
		return false;
	if (p->fd >= 0)
		return safefile_read(p->fd, out, n, (off_t)(p->base + at));
	memcpy(out, p->memory + at, n);
	return true;
}

static bool read_index(struct pack *p, struct error *err)
{
	uint8_t header[HEADER_BYTES];

	if (!read_bytes(p, header, sizeof header, 0))
		return errno ? error_set(err, ERROR_IO, "cannot read the header of the pack file %s: %s", p->name,
		                         strerror(errno))
		             : error_set(err, ERROR_FORMAT,
		                         "the pack file %s is damaged: it has %llu bytes, expected at least %d",
		                         p->name, (unsigned long long)p->bytes, HEADER_BYTES);
	if (!read_header(p, header, err))
		return false;
	size_t bytes = (size_t)p->records * RECORD_BYTES + 4 * (size_t)p->slots;
	if (!(p->owned = malloc(bytes)))
		return error_set(err, ERROR_MEMORY, "no memory for the %zu bytes of the index of the pack file %s",
		                 bytes, p->name);
	if (!read_bytes(p, p->owned, bytes, HEADER_BYTES))
		return error_set(err, ERROR_IO, "cannot read the index of the pack file %s: %s", p->name,
		                 errno ? strerror(errno) : "it became shorter");
	if (record_get64(header + AT_INDEX_SUM) != record_checksum(p->owned, bytes, RECORD_VERSION))
		return error_set(err, ERROR_FORMAT,
		                 "the pack file %s is damaged: the checksum of its index does not fit", p->name);
	p->record = p->owned;
	p->slot = p->owned + (size_t)p->records * RECORD_BYTES;
	return true;
}

static struct pack *pack_new(const char *name, struct error *err)
{
	struct pack *p = calloc(1, sizeof *p);

	if (!p) {
		error_set(err, ERROR_MEMORY, "no memory for a pack file");
		return NULL;
	}
	p->fd = -1;
	error_quote(p->name, sizeof p->name, name, strlen(name));
	return p;
}

/* A packed model's kernels are a pack within it. */
static bool locate(struct pack *p, const char *path, uint64_t size, struct error *err)
{
	p->bytes = size;
	if (!container_is_fd(p->fd))
		return true;
	struct container *c = container_open_fd(p->fd, path, err);
	const struct container_section *s = c ? container_find(c, CONTAINER_KERNELS, 0) : NULL;
	bool good = s || (c && error_set(err, ERROR_FORMAT, "the packed model %s holds no kernels", p->name));
	if (s) {
		p->base = s->offset;
		p->bytes = s->bytes;
	}
	container_close(c);
	return good;
}

struct pack *pack_open(const char *path, struct error *err)
{
	struct pack *p = pack_new(path, err);
	struct stat st;

	if (!p)
		return NULL;
	/* non-blocking: a pipe in its place would wait for a writer */
	p->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool good = p->fd >= 0 && fstat(p->fd, &st) == 0;
	if (!good)
		error_set(err, ERROR_IO, "cannot open the pack file %s: %s", p->name, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		good = error_set(err, ERROR_FORMAT, "%s is no pack file: it is no regular file", p->name);
	else
		good = safefile_trusted(&st, "the pack file", p->name, err);
	good = good && locate(p, path, (uint64_t)st.st_size, err) && read_index(p, err);
	if (!good) {
		pack_close(p);
		return NULL;
	}
	return p;
}

struct pack *pack_open_memory(const void *bytes, size_t n, const char *name, struct error *err)
{
	struct pack *p = pack_new(name, err);

	if (!p)
		return NULL;
	p->memory = bytes;
	p->bytes = n;
	if (!read_index(p, err)) {
		pack_close(p);
		return NULL;
	}
	return p;
}

void pack_close(struct pack *p)
{
	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p->owned);
	free(p);
}

/* --- reading */

size_t pack_count(const struct pack *p) { return p->records; }

static const uint8_t *record_at(const struct pack *p, size_t i) { return p->record + i * RECORD_BYTES; }

bool pack_get(const struct pack *p, size_t i, struct pack_entry *out)
{
	struct record r;
	bool good = record_read(&r, record_at(p, i));

	*out = (struct pack_entry){ .key = r.key, .object = r.object, .stored_bytes = RECORD_BYTES + r.body_bytes };
	return good;
}

/* errno says why. */
static void read_failed(const struct pack *p, const struct record *r, struct error *err)
{
	char text[KEY_TEXT_MAX];
	int why = errno;

	error_set(err, why == ENOMEM ? ERROR_MEMORY : ERROR_IO,
	          "the code of %s cannot be read from the pack file %s: %s", key_text(&r->key, text, sizeof text),
	          p->name, strerror(why));
}

enum record_answer pack_read(const struct pack *p, size_t i, struct object *out, struct error *err)
{
	const uint8_t *record = record_at(p, i);
	struct record r;

	if (!record_read(&r, record) || r.offset > p->bytes || r.body_bytes > p->bytes - r.offset)
		return RECORD_DAMAGED;
	uint8_t *body = malloc(r.body_bytes + 1);
	enum record_answer answer =
		!body                                         ? RECORD_FAILED
		: read_bytes(p, body, r.body_bytes, r.offset) ? record_unpack(out, record, body)
		: errno                                       ? RECORD_FAILED
							      : RECORD_DAMAGED;
	if (answer == RECORD_FAILED)
		read_failed(p, &r, err);
	free(body);
	return answer;
}

enum record_answer pack_find(const struct pack *p, const struct key *key, struct object *out, struct error *err)
{
	uint32_t at = (uint32_t)key_hash(key) & (p->slots - 1);

	for (uint32_t tries = 0; tries < p->slots; tries++, at = (at + 1) & (p->slots - 1)) {
		uint32_t number = record_get32(p->slot + 4 * (size_t)at);
		if (number == 0)
			return RECORD_ABSENT;
		if (number > p->records)
			return RECORD_DAMAGED;
		if (memcmp(record_at(p, number - 1), key, sizeof *key) == 0)
			return pack_read(p, number - 1, out, err);
	}
	return RECORD_ABSENT;
}

void pack_each(const struct pack *p, bool (*visit)(const struct pack_entry *, void *), void *user)
{
	struct pack_entry e;

	for (size_t i = 0; i < p->records; i++) {
		pack_get(p, i, &e);
		if (!visit(&e, user))
			return;
	}
}

/* --- everything */

static bool verify_slots(const struct pack *p, struct error *err)
{
	uint8_t *expected = malloc(4 * (size_t)p->slots);

	if (!expected)
		return error_set(err, ERROR_MEMORY, "no memory to check %u slots of the pack file %s", p->slots,
		                 p->name);
	fill_slots(expected, p->slots, p->record, p->records);
	bool good = memcmp(expected, p->slot, 4 * (size_t)p->slots) == 0;
	free(expected);
	return good || error_set(err, ERROR_FORMAT, "the pack file %s is damaged: its slots do not lead to its objects",
	                         p->name);
}

bool pack_verify(const struct pack *p, struct error *err)
{
	char text[KEY_TEXT_MAX], before[KEY_TEXT_MAX] = "";
	uint64_t at = HEADER_BYTES + (uint64_t)p->records * RECORD_BYTES + 4 * (uint64_t)p->slots;

	for (size_t i = 0; i < p->records; i++) {
		struct object object;
		struct record r;
		record_read(&r, record_at(p, i));
		key_text(&r.key, text, sizeof text);
		int order = strcmp(before, text);
		if (i && (order > 0 || (order == 0 && memcmp(record_at(p, i - 1), &r.key, sizeof r.key) >= 0)))
			return error_set(err, ERROR_FORMAT, "the pack file %s is damaged: %s comes after %s", p->name,
			                 text, before);
		if (r.offset != at)
			return error_set(err, ERROR_FORMAT,
			                 "the pack file %s is damaged: the code of %s is at %llu, expected %llu",
			                 p->name, text, (unsigned long long)r.offset, (unsigned long long)at);
		enum record_answer answer = pack_read(p, i, &object, err);
		if (answer != RECORD_FOUND)
			return answer == RECORD_FAILED
			               ? false
			               : error_set(err, ERROR_FORMAT,
			                           "the pack file %s is damaged: the code of %s does not fit its "
			                           "checksum or its size",
			                           p->name, text);
		object_free(&object);
		at += r.body_bytes;
		memcpy(before, text, sizeof before);
	}
	if (at != p->bytes)
		return error_set(err, ERROR_FORMAT,
		                 "the pack file %s is damaged: its last code ends at %llu of %llu bytes", p->name,
		                 (unsigned long long)at, (unsigned long long)p->bytes);
	return verify_slots(p, err);
}
