#include "jit/program_key.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"

struct known {
	struct known *next;
	struct key program;
	size_t n;
	struct key kernel[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *all; /* under the lock; what is in it never changes */

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(struct key)); }

static uint64_t mix(uint64_t h, uint64_t v, uint64_t by)
{
	h = (h ^ v) * by;
	return h ^ h >> 29;
}

/* The code-generator id stands in the program's key itself. */
static void set_hash(struct key *out, const struct known *k)
{
	uint64_t a = 0x452821e638d01377u, b = 0xbe5466cf34e90c6cu;

	for (size_t i = 0; i < k->n; i++) {
		struct key key = k->kernel[i];
		uint64_t w[sizeof key / 8];
		key.codegen = 0;
		memcpy(w, &key, sizeof w);
		for (size_t j = 0; j < sizeof w / sizeof *w; j++) {
			a = mix(a, w[j], 0x9fb21c651e98df25u);
			b = mix(b, w[j] + a, 0xd6e8feb86659fd93u);
		}
	}
	out->rows = (uint32_t)a;
	out->k = (uint32_t)(a >> 32);
	out->heads = (uint32_t)b;
	out->kv_heads = (uint32_t)(b >> 32);
}

static struct known *find(const struct key *program)
{
	struct known *k = all;

	while (k && !key_equal(&k->program, program))
		k = k->next;
	return k;
}

static struct known *make(const struct key *kernel, size_t n, struct error *err)
{
	struct known *k = malloc(sizeof *k + n * sizeof *kernel);

	if (!k) {
		error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", n);
		return NULL;
	}
	memset(k, 0, sizeof *k);
	memcpy(k->kernel, kernel, n * sizeof *kernel);
	qsort(k->kernel, n, sizeof *kernel, by_bytes);
	for (size_t i = 0; i < n; i++)
		if (!k->n || !key_equal(&k->kernel[k->n - 1], &k->kernel[i]))
			k->kernel[k->n++] = k->kernel[i];
	k->program.kind = KEY_PROGRAM;
	k->program.target = kernel[0].target;
	k->program.head_dim = (uint32_t)k->n;
	k->program.codegen = kernel[0].codegen;
	set_hash(&k->program, k);
	return k;
}

bool program_key(struct key *out, const struct key *kernel, size_t n, struct error *err)
{
	if (!n || n > PROGRAM_KERNELS_MAX)
		return error_set(err, ERROR_UNSUPPORTED, "a program has 1 to %d kernels, not %zu", PROGRAM_KERNELS_MAX,
		                 n);
	struct known *k = make(kernel, n, err);
	if (!k)
		return false;
	*out = k->program;
	pthread_mutex_lock(&lock);
	const struct known *there = find(out);
	bool same = !there || (there->n == k->n && memcmp(there->kernel, k->kernel, k->n * sizeof *kernel) == 0);
	if (!there) {
		k->next = all;
		all = k;
	}
	pthread_mutex_unlock(&lock);
	if (there)
		free(k);
	return same || error_set(err, ERROR_UNSUPPORTED, "two lists of kernels have the same key");
}

const struct key *program_kernels(const struct key *program, size_t *n)
{
	pthread_mutex_lock(&lock);
	const struct known *k = find(program);
	pthread_mutex_unlock(&lock);
	*n = k ? k->n : 0;
	return k ? k->kernel : NULL;
}

size_t program_number(const struct key *list, size_t n, const struct key *kernel)
{
	const struct key *at = bsearch(kernel, list, n, sizeof *list, by_bytes);

	return at ? (size_t)(at - list) : n;
}

/* ---- what a text says of itself */

static const char mark[] = "// kernel ";
enum { LINE_LENGTH_MAX = sizeof mark + KEY_TEXT_MAX + 1 };

bool program_sign(struct object *o, const struct key *list, size_t n, struct error *err)
{
	char *text = malloc(n * LINE_LENGTH_MAX + o->code_bytes), name[KEY_TEXT_MAX];
	size_t at = 0;

	if (!text) {
		object_free(o);
		return error_set(err, ERROR_MEMORY, "no memory for the text of a program");
	}
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, LINE_LENGTH_MAX, "%s%s\n", mark,
		                       key_text(&list[i], name, sizeof name));
	memcpy(text + at, o->code, o->code_bytes);
	free(o->code);
	o->code = (uint8_t *)text;
	o->code_bytes += (uint32_t)at;
	o->pool_offset += (uint32_t)at;
	return true;
}

bool program_learn(const struct object *o, const struct key *program)
{
	struct key *list = malloc(PROGRAM_KERNELS_MAX * sizeof *list), made;
	const char *at = (const char *)o->code, *end = at + o->code_bytes, *line;
	char name[KEY_TEXT_MAX];
	size_t n = 0;

	while (list && n < PROGRAM_KERNELS_MAX && (size_t)(end - at) > sizeof mark &&
	       memcmp(at, mark, sizeof mark - 1) == 0 && (line = memchr(at, '\n', (size_t)(end - at)))) {
		at += sizeof mark - 1;
		if ((size_t)(line - at) >= sizeof name)
			break;
		memcpy(name, at, (size_t)(line - at));
		name[line - at] = 0;
		if (!key_parse(&list[n++], name))
			break;
		at = line + 1;
	}
	bool ok = n && program_key(&made, list, n, NULL) && key_equal(&made, program);
	free(list);
	return ok;
}
