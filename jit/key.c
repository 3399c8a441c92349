/* jit/key.c - a key as text and back, its hash, its equality.
 *
 * Owns: the tokens of the text form. Never interprets a key: what a field means for a kernel is the template's. A new
 * field of struct key needs a token here (key_text and read_token), or two different keys would share one text; and a
 * row in named_fields, or nobody is told that it differs.
 */
#include "jit/key.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/dtype.h"
#include "jit/target.h"

static const char *const kind_text[KEY_KIND_COUNT] = { NULL,
#define X(id, text) text,
	                                               KEY_KINDS(X)
#undef X
};

static const char *const act_text[KEY_ACT_COUNT] = { "",
#define X(id, text) text,
	                                             KEY_ACTS(X)
#undef X
};

static const struct {
	uint32_t bit;
	const char *text;
} flag_text[] = {
	{ KEY_ADDED, "added" },       { KEY_BIAS, "bias" },           { KEY_RESIDUAL, "resid" },
	{ KEY_PAIR, "pair" },         { KEY_QUANTISED_OUT, "q8out" }, { KEY_QK_NORM, "qknorm" },
	{ KEY_WINDOW, "win" },        { KEY_BIAS2, "bias2" },         { KEY_GATED, "gated" },
	{ KEY_WIDE, "wide" },         { KEY_UNSIGNED, "uns" },        { KEY_MMA, "mma" },
	{ KEY_CAP, "cap" },           { KEY_NORM_LAST, "last" },      { KEY_CENTRED, "mean" },
	{ KEY_TILED, "tiled" },       { KEY_SHARE_EPS, "shareeps" },  { KEY_EXPERTS, "experts" },
	{ KEY_SIGMOID, "logistic" },  { KEY_NORMED, "normed" },       { KEY_OF_ALL, "ofall" },
	{ KEY_SORTED, "sorted" },     { KEY_LATENT, "latent" },       { KEY_BY_HEAD, "byhead" },
	{ KEY_VALUE_NORM, "vnorm" },  { KEY_SINKS, "sinks" },         { KEY_ROTATES, "rotates" },
	{ KEY_SCALED, "scaled" },     { KEY_NORM_IN, "normin" },      { KEY_AWAITED, "awaited" },
	{ KEY_GREATEST, "greatest" }, { KEY_BOTH, "both" },
};
enum { FLAG_COUNT = sizeof flag_text / sizeof flag_text[0] };

/* Whether row i names a flag of such keys: the first one has its bit in matmuls, where another row has it elsewhere. */
static bool is_flag_of(int i, unsigned k) { return flag_text[i].bit != KEY_ADDED || (i == 0) == (k == KEY_MATMUL); }

/* The fields written as a letter and a number; a schedule's is hexadecimal, as it has a digit for each of its own
 * fields. */
static const struct {
	char letter;
	uint8_t size, offset;
} number_fields[] = {
#define FIELD(letter, name) \
	{ \
		letter, sizeof((struct key *)0)->name, offsetof(struct key, name) \
	}
	FIELD('c', tile_n), FIELD('b', row_blocks), FIELD('d', head_dim),
	FIELD('h', heads),  FIELD('g', kv_heads),   FIELD('s', schedule),
#undef FIELD
};
enum { NUMBER_COUNT = sizeof number_fields / sizeof number_fields[0], SCHEDULE = 's' };

static uint32_t number_get(const struct key *k, int i)
{
	const uint8_t *at = (const uint8_t *)k + number_fields[i].offset;
	uint32_t v = *at;

	if (number_fields[i].size == sizeof v)
		memcpy(&v, at, sizeof v);
	return v;
}

static bool number_set(struct key *k, int i, uint32_t v)
{
	uint8_t *at = (uint8_t *)k + number_fields[i].offset;

	if (number_fields[i].size == sizeof v)
		memcpy(at, &v, sizeof v);
	else if (v > UINT8_MAX)
		return false;
	else
		*at = (uint8_t)v;
	return true;
}

uint64_t key_codegen(unsigned target)
{
	const struct backend *b = target < TARGET_COUNT ? target_table[target].backend : NULL;

	return b ? *b->codegen : 0;
}

const char *key_act_name(unsigned act) { return act < KEY_ACT_COUNT ? act_text[act] : "?"; }

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

uint64_t key_hash(const struct key *k)
{
	uint64_t w[sizeof *k / 8];

	memcpy(w, k, sizeof w);
	/* three chains side by side: a lookup waits for this */
	uint64_t a = mix(mix(0x243f6a8885a308d3u, w[0]), w[3]), b = mix(mix(0x13198a2e03707344u, w[1]), w[4]),
		 c = mix(mix(0xa4093822299f31d0u, w[2]), w[5]);
	return mix(mix(a, b), c);
}

bool key_equal(const struct key *a, const struct key *b) { return memcmp(a, b, sizeof *a) == 0; }

/* A text being written; a full buffer cuts. */
struct key_writer {
	char *out;
	size_t cap, at;
};

static void write_token(struct key_writer *w, const char *prefix, const char *text)
{
	const char *part[3] = { w->at ? "." : "", prefix, text };

	for (int i = 0; i < 3; i++)
		for (const char *s = part[i]; *s && w->at + 1 < w->cap; s++)
			w->out[w->at++] = *s;
}

static void write_flags(struct key_writer *w, uint32_t flags, uint8_t kind)
{
	for (int i = 0; i < FLAG_COUNT; i++)
		if (flags & flag_text[i].bit && is_flag_of(i, kind))
			write_token(w, "", flag_text[i].text);
}

static void write_dtype(struct key_writer *w, const char *prefix, uint8_t type)
{
	char low[16] = "?";

	if (!type)
		return;
	if (type <= DTYPE_COUNT) {
		const char *name = dtype_table[key_dtype(type)].name;
		size_t n = strlen(name);
		assert(n < sizeof low);
		for (size_t i = 0; i <= n; i++)
			low[i] = (char)tolower((unsigned char)name[i]);
	}
	write_token(w, prefix, low);
}

/* ---- users' kernels */

enum { USER_FROM = offsetof(struct key, rows) };
_Static_assert(USER_FROM + KEY_USER_BYTES == offsetof(struct key, flags), "an identity fills the fields of shapes");

void key_user_id(uint8_t out[KEY_USER_BYTES], const uint8_t *hash)
{
	const uint32_t language = (uint32_t)key_codegen_language;

	memcpy(out, hash, KEY_USER_BYTES - sizeof language);
	for (size_t i = 0; i < sizeof language; i++)
		out[KEY_USER_BYTES - sizeof language + i] = (uint8_t)(language >> 8 * i);
}

void key_user(struct key *out, const uint8_t id[KEY_USER_BYTES], unsigned target)
{
	*out = (struct key){ .kind = KEY_USER, .target = (uint8_t)target, .codegen = key_codegen(target) };
	memcpy((uint8_t *)out + USER_FROM, id, KEY_USER_BYTES);
}

bool key_same_user(const struct key *a, const struct key *b)
{
	return a->kind == KEY_USER && b->kind == KEY_USER &&
	       memcmp((const uint8_t *)a + USER_FROM, (const uint8_t *)b + USER_FROM, KEY_USER_BYTES) == 0;
}

static void write_user(struct key_writer *w, const struct key *k)
{
	char digits[2 * KEY_USER_BYTES + 1];

	for (int i = 0; i < KEY_USER_BYTES; i++)
		snprintf(digits + 2 * i, 3, "%02x", ((const uint8_t *)k)[USER_FROM + i]);
	write_token(w, "", digits);
}

/* Whether the identity of a user's kernel is in this field. */
static bool is_of_user(int i)
{
	return number_fields[i].offset >= USER_FROM && number_fields[i].offset < USER_FROM + KEY_USER_BYTES;
}

static bool read_user(struct key *k, const char *digits)
{
	if (strlen(digits) != 2 * KEY_USER_BYTES || strspn(digits, "0123456789abcdef") != 2 * KEY_USER_BYTES)
		return false;
	for (int i = 0; i < KEY_USER_BYTES; i++) {
		const char two[3] = { digits[2 * i], digits[2 * i + 1], 0 };
		((uint8_t *)k)[USER_FROM + i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return true;
}

static void write_shape(struct key_writer *w, uint32_t rows, uint32_t k)
{
	char number[32];

	if (rows && k)
		snprintf(number, sizeof number, "%ux%u", rows, k);
	else if (rows || k)
		snprintf(number, sizeof number, "%c%u", rows ? 'r' : 'k', rows ? rows : k);
	else
		return;
	write_token(w, "", number);
}

char *key_text(const struct key *k, char *out, size_t cap)
{
	struct key_writer w = { out, cap, 0 };

	assert(cap > 0);
	write_token(&w, "", k->kind > KEY_NONE && k->kind < KEY_KIND_COUNT ? kind_text[k->kind] : "?");
	write_dtype(&w, "", k->weight);
	write_dtype(&w, "a", k->activation);
	write_dtype(&w, "kv", k->kv);
	if (k->kind == KEY_USER)
		write_user(&w, k);
	else
		write_shape(&w, k->rows, k->k);
	for (int i = 0; i < NUMBER_COUNT; i++) {
		uint32_t v = k->kind == KEY_USER && is_of_user(i) ? 0 : number_get(k, i);
		char number[16];
		snprintf(number, sizeof number, number_fields[i].letter == SCHEDULE ? "%c%x" : "%c%u",
		         number_fields[i].letter, v);
		if (v)
			write_token(&w, "", number);
	}
	if (k->act)
		write_token(&w, "", key_act_name(k->act));
	write_flags(&w, k->flags, k->kind);
	if (k->numerics != NUMERICS_EXACT)
		write_token(&w, "", k->numerics == NUMERICS_BOUNDED ? "bounded" : "?");
	if (k->target)
		write_token(&w, "", k->target < TARGET_COUNT ? target_table[k->target].name : "?");
	out[w.at] = 0;
	return out;
}

/* --- what tells two keys apart */

enum field_form {
	FORM_NUMBER,
	FORM_DIGITS,
	FORM_KIND,
	FORM_TARGET,
	FORM_DTYPE,
	FORM_ACT,
	FORM_FLAGS,
	FORM_NUMERICS,
	FORM_HASH
};

/* Every field, by name; what it weighs in a distance is how much else usually differs with it. */
static const struct {
	const char *name;
	uint8_t form, size, offset;
	uint16_t weight;
} named_fields[] = {
#define FIELD(text, form, member, weight) \
	{ \
		text, form, sizeof((struct key *)0)->member, offsetof(struct key, member), weight \
	}
	FIELD("kind", FORM_KIND, kind, 10000),
	FIELD("code generator", FORM_HASH, codegen, 1),
	FIELD("target", FORM_TARGET, target, 64),
	FIELD("weight type", FORM_DTYPE, weight, 64),
	FIELD("activation type", FORM_DTYPE, activation, 32),
	FIELD("KV type", FORM_DTYPE, kv, 32),
	FIELD("rows", FORM_NUMBER, rows, 64),
	FIELD("k", FORM_NUMBER, k, 64),
	FIELD("tile_n", FORM_NUMBER, tile_n, 2),
	FIELD("blocks of rows", FORM_NUMBER, row_blocks, 4),
	FIELD("head size", FORM_NUMBER, head_dim, 64),
	FIELD("heads", FORM_NUMBER, heads, 64),
	FIELD("KV heads", FORM_NUMBER, kv_heads, 64),
	FIELD("schedule", FORM_DIGITS, schedule, 1),
	FIELD("activation function", FORM_ACT, act, 16),
	FIELD("flags", FORM_FLAGS, flags, 16),
	FIELD("numerics", FORM_NUMERICS, numerics, 32),
#undef FIELD
};
enum { NAMED_COUNT = sizeof named_fields / sizeof named_fields[0] };

static uint64_t field_get(const struct key *k, int i)
{
	const uint8_t *at = (const uint8_t *)k + named_fields[i].offset;
	uint64_t v8;
	uint32_t v4;

	switch (named_fields[i].size) {
	case 1: return *at;
	case sizeof v4: memcpy(&v4, at, sizeof v4); return v4;
	default: memcpy(&v8, at, sizeof v8); return v8;
	}
}

unsigned key_distance(const struct key *a, const struct key *b)
{
	unsigned sum = 0;

	for (int i = 0; i < NAMED_COUNT; i++)
		if (field_get(a, i) != field_get(b, i))
			sum += named_fields[i].weight;
	return sum;
}

const struct key *key_nearest(const struct key *want, const struct key *list, size_t n)
{
	const struct key *best = NULL;
	unsigned min = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned d = key_distance(want, &list[i]);
		if (!best || d < min) {
			best = &list[i];
			min = d;
		}
	}
	return best;
}

/* kind: of the key that has the value. */
static void field_text(int i, uint8_t kind, uint64_t v, char *out, size_t cap)
{
	struct key_writer w = { out, cap, 0 };

	switch (v || named_fields[i].form == FORM_NUMERICS || named_fields[i].form <= FORM_DIGITS
	                ? named_fields[i].form
	                : FORM_KIND) {
	case FORM_KIND: write_token(&w, "", v > KEY_NONE && v < KEY_KIND_COUNT ? kind_text[v] : "none"); break;
	case FORM_TARGET: write_token(&w, "", v < TARGET_COUNT ? target_table[v].name : "?"); break;
	case FORM_DTYPE: write_dtype(&w, "", (uint8_t)v); break;
	case FORM_ACT: write_token(&w, "", key_act_name((unsigned)v)); break;
	case FORM_FLAGS: write_flags(&w, (uint32_t)v, kind); break;
	case FORM_NUMERICS: write_token(&w, "", v == NUMERICS_EXACT ? "exact" : "bounded"); break;
	default:
		w.at = (size_t)snprintf(out, cap,
		                        named_fields[i].form == FORM_HASH     ? "%016llx"
		                        : named_fields[i].form == FORM_DIGITS ? "%llx"
		                                                              : "%llu",
		                        (unsigned long long)v);
	}
	out[w.at] = 0;
}

char *key_differences(const struct key *want, const struct key *have, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = 0;
	for (int i = 0; i < NAMED_COUNT; i++) {
		char w[96], h[96];
		uint64_t vw = field_get(want, i), vh = field_get(have, i);
		if (vw == vh)
			continue;
		field_text(i, want->kind, vw, w, sizeof w);
		field_text(i, have->kind, vh, h, sizeof h);
		int n = snprintf(out + at, cap - at, "%s%s is %s, not %s", at ? ", " : "", named_fields[i].name, h, w);
		at = n < 0 || at + (size_t)n >= cap ? cap - 1 : at + (size_t)n;
	}
	return out;
}

/* --- reading */

/* Decimal digits that fit 32 bits; *end after the last. */
static bool read_number(const char *s, uint32_t *v, const char **end)
{
	uint64_t n = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if ((n = n * 10 + (uint64_t)(*p - '0')) > UINT32_MAX)
			return false;
	*v = (uint32_t)n;
	*end = p;
	return p > s;
}

/* Hexadecimal digits that fit 32 bits. */
static bool read_digits(const char *s, uint32_t *v, const char **end)
{
	size_t n = strspn(s, "0123456789abcdef");

	if (n < 1 || n > 8)
		return false;
	*v = (uint32_t)strtoul(s, NULL, 16);
	*end = s + n;
	return true;
}

static uint8_t read_dtype(const char *s)
{
	for (int i = 0; i < DTYPE_COUNT; i++)
		if (strcasecmp(dtype_table[i].name, s) == 0)
			return key_type((enum dtype)i);
	return 0;
}

static bool read_numbered(struct key *k, const char *t)
{
	uint32_t v, v2;
	const char *end;

	if (read_number(t, &v, &end)) {
		if (*end != 'x' || !read_number(end + 1, &v2, &end) || *end)
			return false;
		k->rows = v;
		k->k = v2;
		return true;
	}
	if (!*t || !(*t == SCHEDULE ? read_digits : read_number)(t + 1, &v, &end) || *end)
		return false;
	if (*t == 'r' || *t == 'k') {
		*(*t == 'r' ? &k->rows : &k->k) = v;
		return true;
	}
	for (int i = 0; i < NUMBER_COUNT; i++)
		if (*t == number_fields[i].letter)
			return number_set(k, i, v);
	return false;
}

/* One token after the kind. */
static bool read_token(struct key *k, const char *t)
{
	uint8_t type;
	const struct target *target;

	if (k->kind == KEY_USER && read_user(k, t))
		return true;
	for (int i = 0; i < FLAG_COUNT; i++)
		if (is_flag_of(i, k->kind) && strcmp(t, flag_text[i].text) == 0) {
			k->flags |= flag_text[i].bit;
			return true;
		}
	for (int i = ACT_NONE + 1; i < KEY_ACT_COUNT; i++)
		if (strcmp(t, act_text[i]) == 0) {
			k->act = (uint8_t)i;
			return true;
		}
	if ((type = read_dtype(t)))
		k->weight = type;
	else if (t[0] == 'a' && (type = read_dtype(t + 1)))
		k->activation = type;
	else if (t[0] == 'k' && t[1] == 'v' && (type = read_dtype(t + 2)))
		k->kv = type;
	else if ((target = target_find(t)))
		k->target = (uint8_t)target->id;
	else if (strcmp(t, "bounded") == 0)
		k->numerics = NUMERICS_BOUNDED;
	else
		return read_numbered(k, t);
	return true;
}

bool key_parse(struct key *k, const char *text)
{
	char copy[KEY_TEXT_MAX], again[KEY_TEXT_MAX];
	size_t n = strlen(text);

	memset(k, 0, sizeof *k);
	if (n >= sizeof copy)
		return false;
	memcpy(copy, text, n + 1);
	for (char *t = copy, *next; t; t = next) {
		if ((next = strchr(t, '.')))
			*next++ = 0;
		if (t != copy) {
			if (!read_token(k, t))
				return false;
			continue;
		}
		for (int i = KEY_NONE + 1; i < KEY_KIND_COUNT; i++)
			if (strcmp(t, kind_text[i]) == 0)
				k->kind = (uint8_t)i;
		if (!k->kind)
			return false;
	}
	k->codegen = key_codegen(k->target);
	/* order, repeats, zeros and spelling: a text is taken when it is the one this key writes */
	return strcmp(key_text(k, again, sizeof again), text) == 0;
}
