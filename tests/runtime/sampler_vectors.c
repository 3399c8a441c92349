#include "tests/runtime/sampler_vectors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

json_t *vector_file(const char *path)
{
	char command[1100];
	size_t n = 0, room = 1 << 20;
	char *text = malloc(room);

	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = popen(command, "r");
	assert_true(f && text);
	for (size_t got; (got = fread(text + n, 1, room - n, f)) > 0;)
		if ((n += got) == room)
			assert_non_null(text = realloc(text, room *= 2));
	json_t *o = pclose(f) == 0 ? json_loadb(text, n, 0, NULL) : NULL;
	free(text);
	return o;
}

static unsigned digit(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10; }

void vector_floats(const char *hex, float *out, int32_t n)
{
	assert_int_equal(strlen(hex), 8 * (size_t)n);
	for (int32_t i = 0; i < n; i++) {
		uint32_t u = 0;
		for (int d = 0; d < 8; d++)
			u = u << 4 | digit(hex[8 * i + d]);
		memcpy(out + i, &u, 4);
	}
}

float vector_number(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	assert_non_null(v);
	return json_is_string(v) ? -INFINITY : (float)json_number_value(v);
}

int32_t vector_integer(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	assert_true(json_is_integer(v));
	return (int32_t)json_integer_value(v);
}

static float kept_p(const struct vector_list *before, int32_t id)
{
	for (int32_t i = 0; before && i < before->n; i++)
		if (before->id[i] == id)
			return before->p[i];
	return 0;
}

void vector_stage(const json_t *stage, const float *input, int32_t n, const struct vector_list *before,
                  struct vector_list *out)
{
	const json_t *ids = json_object_get(stage, "ids"), *p = json_object_get(stage, "p");
	const char *logits = json_string_value(json_object_get(stage, "logits"));

	out->n = vector_integer(stage, "n");
	out->selected = vector_integer(stage, "selected");
	out->sorted = json_is_true(json_object_get(stage, "sorted"));
	out->all = json_is_string(ids);
	out->has_p = !json_is_integer(p) && (before || strcmp(json_string_value(p), "prev"));
	assert_true(out->n <= n && (out->all ? out->n == n : (size_t)out->n == json_array_size(ids)));
	for (int32_t i = 0; i < out->n; i++) {
		out->id[i] = out->all ? i : (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
		out->logit[i] = input[out->id[i]];
		out->p[i] = out->has_p ? kept_p(before, out->id[i]) : 0;
	}
	if (strcmp(logits, "in") != 0)
		vector_floats(logits, out->logit, out->n);
	if (out->has_p && strcmp(json_string_value(p), "prev") != 0)
		vector_floats(json_string_value(p), out->p, out->n);
}

void vector_take(struct candidates *c, const struct vector_list *list)
{
	c->n = list->n;
	c->sorted = list->sorted;
	c->has_p = list->has_p;
	c->changed = list->all ? 0 : c->room;
	for (int32_t i = 0; i < (list->all ? c->room : list->n); i++)
		c->id[i] = list->all ? i : list->id[i];
	memcpy(c->logit, list->logit, (size_t)list->n * sizeof *c->logit);
	memcpy(c->p, list->p, (size_t)list->n * sizeof *c->p);
}

void mt19937_seed(struct mt19937 *g, uint32_t seed)
{
	g->word[0] = seed;
	for (uint32_t i = 1; i < 624; i++)
		g->word[i] = 1812433253u * (g->word[i - 1] ^ g->word[i - 1] >> 30) + i;
	g->at = 624;
}

static uint32_t next_word(struct mt19937 *g)
{
	if (g->at == 624) {
		for (int i = 0; i < 624; i++) {
			uint32_t y = (g->word[i] & 0x80000000u) | (g->word[(i + 1) % 624] & 0x7fffffffu);
			g->word[i] = g->word[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
		}
		g->at = 0;
	}
	uint32_t y = g->word[g->at++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

double mt19937_float(struct mt19937 *g)
{
	float u = (float)next_word(g) / 4294967296.0f;

	return (double)(u < 1 ? u : nextafterf(1, 0));
}

double mt19937_double(struct mt19937 *g)
{
	double low = next_word(g), high = next_word(g), u = (low + high * 4294967296.0) / 18446744073709551616.0;

	return u < 1 ? u : nextafter(1, 0);
}

const char *vector_piece(void *user, int32_t id, size_t *n)
{
	static char piece[VECTOR_PIECE];
	(void)user;

	piece[0] = (char)0xff;
	piece[1] = (char)(1 + id / 250);
	piece[2] = (char)(1 + id % 250);
	*n = sizeof piece;
	return piece;
}
