/* tests/mutate/mutate_pack.c - packs, entries of a cache directory and files of schedules: fields changed, then all
 * checksums made right again. */
#include "tests/mutate/mutate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "jit/key.h"
#include "jit/target.h"
#include "tests/jit/stored_sum.h"

/* The layouts of jit/store/record.h and jit/store/pack.h, written down once more. */
enum { LAYOUT = 4, RECORD = 96, IN_OFFSET = 48, IN_BODY = 56, IN_CODE = 60, IN_SUM = 88, HEADER = 64, MAX_OBJECTS = 6 };

struct entry {
	uint8_t record[RECORD];
	struct bytes body;
};

static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }
static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
static uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

static const char *const keys[MAX_OBJECTS] = {
	"embed.q8_0.4096x256.avx2",
	"matmul.q8_0.aq8_0.128x256.c1.b1.avx2",
	"norm.k256.q8out.avx2",
	"norm.k64.q8out.avx2",
	"quantise.avx2",
	"rope.d64.h4.qknorm.avx2"
};

static void make_entry(struct dice *d, struct entry *e, unsigned number)
{
	uint8_t code[3000];
	struct key key;
	size_t n = 100 + (size_t)dice_below(d, 2900);

	if (!key_parse(&key, keys[number]))
		abort();
	memset(e, 0, sizeof *e);
	for (size_t i = 0; i < n; i++)
		code[i] = (uint8_t)(dice_next(d) & 15);
	size_t room = ZSTD_compressBound(n);
	bytes_put(&e->body, NULL, room);
	e->body.n = ZSTD_compress(e->body.p, room, code, n, 1);
	memcpy(e->record, &key, sizeof key);
	put32(e->record + IN_CODE, (uint32_t)n);
	put32(e->record + IN_CODE + 4, (uint32_t)n - 16);
	put32(e->record + IN_CODE + 8, 64);
	e->record[80] = 12;
}

/* What follows from a body: where it lies, how long it is, the sum. A changed number that follows is written
 * afterwards, and the sum again. */
static void settle(struct entry *e, uint64_t offset)
{
	put64(e->record + IN_OFFSET, offset);
	put32(e->record + IN_BODY, (uint32_t)e->body.n);
}

static void seal_entry(struct entry *e)
{
	put64(e->record + IN_SUM, stored_sum(e->body.p, e->body.n, stored_sum(e->record, IN_SUM, LAYOUT)));
}

/* Any of the fields behind the key, or a field of the key itself. */
static void change_record(struct mutant *m, struct entry *e)
{
	static const struct {
		const char *name;
		uint8_t at, width;
	} field[] = {
		{ "offset", 48, 8 },
		{ "body", 56, 4 },
		{ "code", 60, 4 },
		{ "pool", 64, 4 },
		{ "frame", 68, 4 },
		{ "shared", 72, 4 },
		{ "zero", 76, 4 },
		{ "vector registers", 80, 2 },
		{ "scalar registers", 82, 2 },
		{ "mask registers", 84, 2 },
		{ "cooperative", 86, 2 },
		{ "kind", 0, 1 },
		{ "target", 1, 1 },
		{ "weight", 2, 1 },
		{ "activation", 3, 1 },
		{ "kv", 4, 1 },
		{ "numerics", 5, 1 },
		{ "row blocks", 6, 1 },
		{ "activation function", 7, 1 },
		{ "rows", 8, 4 },
		{ "k", 12, 4 },
		{ "columns", 16, 4 },
		{ "head size", 20, 4 },
		{ "heads", 24, 4 },
		{ "kv heads", 28, 4 },
		{ "flags", 32, 4 },
		{ "schedule", 36, 4 },
		{ "codegen", 40, 8 },
	};
	size_t i = (size_t)dice_below(&m->dice, sizeof field / sizeof *field);
	uint64_t v = 0;

	memcpy(&v, e->record + field[i].at, field[i].width);
	uint64_t to = dice_odd(&m->dice, v);
	memcpy(e->record + field[i].at, &to, field[i].width);
	mutant_say(m, "%s of %" PRIu64 " becomes %" PRIu64, field[i].name, v, to);
}

/* A frame whose header says another size than its content has: the largest, none, one more. */
static void lie_of_size(struct mutant *m, struct entry *e)
{
	static const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint64_t size = dice_odd(&m->dice, get32(e->record + IN_CODE));
	uint8_t head[13] = { 0 };

	memcpy(head, magic, 4);
	head[4] = 0xe0; /* a single segment, eight bytes of content size, no checksum */
	put64(head + 5, size);
	size_t old =
		e->body.n > 8
			? 5 + ((e->body.p[4] >> 5 & 1) ? 0u : 1u) +
				  (size_t)(e->body.p[4] >> 6 == 0 ? e->body.p[4] >> 5 & 1 : 1 << (e->body.p[4] >> 6))
			: 0;
	bytes_splice(&e->body, 0, old < e->body.n ? old : e->body.n, head, sizeof head);
	if (dice_one_in(&m->dice, 2))
		put32(e->record + IN_CODE, (uint32_t)size);
	mutant_say(m, "the frame says %" PRIu64 " bytes", size);
}

static void change_entry(struct mutant *m, struct entry *e)
{
	switch (dice_below(&m->dice, 6)) {
	case 0:
		mutant_say(m, "the body's bytes");
		mutate_bytes(&m->dice, &e->body);
		put32(e->record + IN_BODY, (uint32_t)e->body.n);
		break;
	case 1:
		lie_of_size(m, e);
		put32(e->record + IN_BODY, (uint32_t)e->body.n);
		break;
	case 2:
		mutant_say(m, "two frames");
		bytes_splice(&e->body, e->body.n, 0, e->body.p, e->body.n);
		put32(e->record + IN_BODY, (uint32_t)e->body.n);
		break;
	default: change_record(m, e); break;
	}
}

/* --- packs */

static void put_slots(uint8_t *slot, uint32_t slots, const struct entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct key key;
		memcpy(&key, e[i].record, sizeof key);
		uint32_t at = (uint32_t)key_hash(&key) & (slots - 1);
		while (get32(slot + 4 * (size_t)at))
			at = (at + 1) & (slots - 1);
		put32(slot + 4 * (size_t)at, (uint32_t)i + 1);
	}
}

static int by_name(const void *a, const void *b)
{
	char x[KEY_TEXT_MAX], y[KEY_TEXT_MAX];
	struct key k, l;

	memcpy(&k, ((const struct entry *)a)->record, sizeof k);
	memcpy(&l, ((const struct entry *)b)->record, sizeof l);
	return strcmp(key_text(&k, x, sizeof x), key_text(&l, y, sizeof y));
}

static void write_pack(struct mutant *m, struct bytes *out, struct entry *e, size_t n, bool change_index)
{
	uint32_t slots = 2;
	uint8_t header[HEADER] = "jitr\npk";

	while (slots < 2 * n)
		slots *= 2;
	uint8_t *slot = calloc(slots, 4);
	if (!slot)
		abort();
	put_slots(slot, slots, e, n);
	if (change_index) {
		uint32_t at = (uint32_t)dice_below(&m->dice, slots);
		put32(slot + 4 * (size_t)at, (uint32_t)dice_odd(&m->dice, get32(slot + 4 * (size_t)at)));
		mutant_say(m, "slot %u is %u", at, get32(slot + 4 * (size_t)at));
	}
	bytes_put(out, header, sizeof header);
	for (size_t i = 0; i < n; i++)
		bytes_put(out, e[i].record, RECORD);
	bytes_put(out, slot, 4 * (size_t)slots);
	for (size_t i = 0; i < n; i++)
		bytes_put(out, e[i].body.p, e[i].body.n);
	put32(out->p + 8, LAYOUT);
	put32(out->p + 12, RECORD);
	put32(out->p + 16, (uint32_t)n);
	put32(out->p + 20, slots);
	put64(out->p + 24, out->n);
	put64(out->p + 32, stored_sum(out->p + HEADER, n * RECORD + 4 * (size_t)slots, LAYOUT));
	free(slot);
}

static void change_header(struct mutant *m, struct bytes *b)
{
	static const struct {
		uint8_t at, width;
	} field[] = { { 8, 4 }, { 12, 4 }, { 16, 4 }, { 20, 4 }, { 24, 8 }, { 32, 8 }, { 40, 8 } };
	size_t i = (size_t)dice_below(&m->dice, sizeof field / sizeof *field);
	uint64_t v = 0;

	memcpy(&v, b->p + field[i].at, field[i].width);
	v = dice_odd(&m->dice, v);
	memcpy(b->p + field[i].at, &v, field[i].width);
	mutant_say(m, "the header's bytes at %u are %" PRIu64, field[i].at, v);
}

void mutate_pack(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	struct entry e[MAX_OBJECTS];
	size_t n = 1 + (size_t)dice_below(&m->dice, MAX_OBJECTS), at = HEADER + n * RECORD;
	uint32_t slots = 2;
	bool header = false, index = false;

	for (unsigned i = 0; i < n; i++)
		make_entry(&m->dice, &e[i], i);
	qsort(e, n, sizeof *e, by_name);
	while (slots < 2 * n)
		slots *= 2;
	at += 4 * (size_t)slots;
	for (size_t i = 0; i < n; at += e[i++].body.n)
		settle(&e[i], at);
	for (unsigned i = 0; i < changes; i++)
		switch (dice_below(&m->dice, 8)) {
		case 0: header = true; break;
		case 1: index = true; break;
		case 2:
			mutant_say(m, "an object twice, or out of order");
			memcpy(e[dice_below(&m->dice, n)].record, e[dice_below(&m->dice, n)].record,
			       sizeof(struct key));
			break;
		default: change_entry(m, &e[dice_below(&m->dice, n)]); break;
		}
	snprintf(m->open, sizeof m->open, "kernels.jkp");
	struct bytes *out = mutant_add_file(m, m->open);
	for (size_t i = 0; i < n; i++)
		seal_entry(&e[i]);
	write_pack(m, out, e, n, index);
	if (header)
		change_header(m, out);
	put64(out->p + 56, stored_sum(out->p, 56, LAYOUT));
	if (changes && dice_one_in(&m->dice, 12)) {
		mutant_say(m, "bytes");
		mutate_bytes(&m->dice, out);
	}
	for (size_t i = 0; i < n; i++)
		bytes_forget(&e[i].body);
}

/* --- a directory */

void mutate_entry(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	unsigned n = 1 + (unsigned)dice_below(&m->dice, 3), changed = (unsigned)dice_below(&m->dice, n);
	uint8_t preface[16] = "jitr\nko";
	char name[40];

	put32(preface + 8, LAYOUT);
	put32(preface + 12, RECORD);
	for (unsigned i = 0; i < n; i++) {
		struct entry e;
		struct key key;
		make_entry(&m->dice, &e, i);
		settle(&e, sizeof preface + RECORD);
		memcpy(&key, e.record, sizeof key);
		for (unsigned k = 0; k < changes && i == changed; k++)
			change_entry(m, &e);
		/* a changed key lies under its own name as often as under the old one */
		if (dice_one_in(&m->dice, 2))
			memcpy(&key, e.record, sizeof key);
		seal_entry(&e);
		snprintf(name, sizeof name, "%016" PRIx64 ".jko", key_hash(&key));
		struct bytes *out = mutant_add_file(m, name);
		bytes_put(out, preface, sizeof preface);
		bytes_put(out, e.record, RECORD);
		bytes_put(out, e.body.p, e.body.n);
		if (changes && i == changed && dice_one_in(&m->dice, 8)) {
			mutant_say(m, "bytes");
			mutate_bytes(&m->dice, out);
		}
		bytes_forget(&e.body);
	}
}

/* --- schedules */

void mutate_tune(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	char processor[64], name[40], line[300];
	uint64_t hash = 0xcbf29ce484222325u;
	struct bytes *out;

	target_cpu_name(processor, sizeof processor);
	for (const char *p = processor; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	snprintf(name, sizeof name, "tuned-%016" PRIx64 ".txt", hash);
	out = mutant_add_file(m, name);
	snprintf(line, sizeof line, "jitrun schedules 2\nprocessor %s\ncodegen %016" PRIx64 "\n", processor,
	         key_codegen_x86);
	bytes_put(out, line, strlen(line));
	size_t head = out->n;
	for (unsigned i = 0; i < 4; i++) {
		static const char *const odd[] = { "nan", "inf",   "-1",    "0", "1e400", "99.999",
			                           "100", "0x1p1", "1.5.5", "",  "1e-400" };
		snprintf(line, sizeof line, "matmul.q8_0.aq8_0.%ux512.c1.b1.s%x.avx2 %s %u\n", 32 * (i + 1), i + 1,
		         changes && dice_one_in(&m->dice, 4) ? odd[dice_below(&m->dice, 11)] : "1.083",
		         changes && dice_one_in(&m->dice, 4) ? (unsigned)dice_odd(&m->dice, 7) : 7);
		bytes_put(out, line, strlen(line));
	}
	for (unsigned i = 0; i < changes; i++) {
		struct bytes body = { 0 };
		bool all = dice_one_in(&m->dice, 6);
		bytes_put(&body, out->p + (all ? 0 : head), out->n - (all ? 0 : head));
		mutate_bytes(&m->dice, &body);
		bytes_resize(out, all ? 0 : head);
		bytes_put(out, body.p, body.n);
		mutant_say(m, "a line");
		bytes_forget(&body);
		if (all)
			break;
	}
}
