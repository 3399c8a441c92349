#include "tests/grammar/large_vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 24 };

static struct {
	char text[LONGEST];
	uint8_t n;
} token[LARGE_TOKENS];
static uint32_t n_tokens;
static uint32_t slot[1 << 19]; /* a hash table of tokens: their numbers and one more */

static uint64_t seed = 1;
static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void add(const char *text, size_t n)
{
	uint32_t h = 2166136261u;

	if (n == 0 || n > LONGEST || n_tokens == LARGE_TOKENS)
		return;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * 16777619u;
	for (h %= 1 << 19; slot[h]; h = (h + 1) % (1 << 19))
		if (token[slot[h] - 1].n == n && memcmp(token[slot[h] - 1].text, text, n) == 0)
			return;
	memcpy(token[n_tokens].text, text, n);
	token[n_tokens].n = (uint8_t)n;
	slot[h] = ++n_tokens;
}

static void add_numbers(void)
{
	char text[8];

	for (unsigned digits = 1, values = 10; digits <= 3; digits++, values *= 10)
		for (unsigned v = 0; v < values; v++)
			add(text, (size_t)snprintf(text, sizeof text, "%0*u", (int)digits, v));
}

static void add_spaces(void)
{
	char text[LONGEST];

	for (unsigned lines = 0; lines <= 3; lines++)
		for (unsigned blanks = 0; blanks <= 20; blanks++) {
			memset(text, '\n', lines);
			memset(text + lines, ' ', blanks);
			add(text, lines + blanks);
			memset(text + lines, '\t', blanks);
			add(text, lines + blanks);
		}
	add("\r\n", 2);
}

/* A few pieces, one behind another. */
static void add_joined(const char *const *piece, size_t n, unsigned max, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[4 * LONGEST] = "";
		for (unsigned k = 1 + draw(max); k && strlen(text) < LONGEST; k--)
			strcat(text, piece[draw((uint32_t)n)]);
		add(text, strlen(text));
	}
}

static void add_words(unsigned count)
{
	static const char *const parts[] = {
		"a",   "e",  "i", "o", "u", "er", "in", "on", "th",  "st",  "re", "an", "en", "le",  "ing", "ion",
		"ate", "n",  "t", "s", "r", "l",  "d",  "m",  "c",   "p",   "b",  "g",  "f",  "h",   "k",   "y",
		"v",   "qu", "x", "z", "w", "j",  "ou", "ea", "str", "pre", "al", "ic", "ve", "ness"
	};

	while (count--) {
		char text[4 * LONGEST] = "";
		const unsigned kind = draw(8);
		if (kind < 3)
			strcat(text, kind == 2 ? "_" : " ");
		const size_t first = strlen(text);
		for (unsigned k = 1 + draw(5); k && strlen(text) < LONGEST; k--)
			strcat(text, parts[draw(sizeof parts / sizeof *parts)]);
		if (draw(4) == 0)
			text[first] = (char)(text[first] - 'a' + 'A');
		add(text, strlen(text));
	}
}

static void add_scripts(unsigned count)
{
	static const struct {
		uint32_t from, n;
	} scripts[] = { { 0xc0, 0x180 },    { 0x391, 0x40 },    { 0x410, 0x50 },   { 0x5d0, 0x1a },
		        { 0x621, 0x2a },    { 0x905, 0x50 },    { 0xe01, 0x3a },   { 0x3041, 0xa0 },
		        { 0x4e00, 0x5000 }, { 0xac00, 0x2b00 }, { 0x1f300, 0x300 } };

	while (count--) {
		char text[LONGEST + 4];
		size_t n = 0;
		const unsigned k = draw(sizeof scripts / sizeof *scripts);
		if (draw(4) == 0)
			text[n++] = ' ';
		for (unsigned length = 1 + draw(4); length && n < LONGEST - 4; length--) {
			const uint32_t c = scripts[k].from + draw(scripts[k].n);
			const unsigned bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
			for (unsigned b = 0; b < bytes; b++) {
				const uint32_t six = c >> 6 * (bytes - 1 - b);
				text[n++] = (char)(b ? 0x80 | (six & 0x3f)
				                     : (bytes == 2   ? 0xc0
				                        : bytes == 3 ? 0xe0
				                                     : 0xf0) |
				                                   six);
			}
		}
		if (draw(10) == 0) /* a half of the last one */
			n--;
		add(text, n);
	}
}

static void make(void)
{
	static const char *const signs[] = { "\"", "{", "}", "[", "]", ":", ",", " ", "\n", "\\", "/", "-", ".", "_",
		                             "(",  ")", "<", ">", "=", "+", "*", "'", "!",  "?",  "#", "0", "1", "$" };

	for (unsigned b = 0; b < 256; b++)
		add(&(const char){ (char)b }, 1);
	add_numbers();
	add_spaces();
	add_joined((const char *const[]){ "true", "false", "null", "\"", ",", ":", " ", "}", "]", "\\n", "\\u00",
	                                  "e-" },
	           12, 4, 3000);
	add_joined(signs, sizeof signs / sizeof *signs, 4, 8000);
	for (unsigned i = 0; i < 2000; i++)
		add((const char[]){ (char)draw(256), (char)draw(256) }, 2);
	add_scripts(45000);
	while (n_tokens < LARGE_TOKENS)
		add_words(1000);
}

const char *large_token(uint32_t id, size_t *n)
{
	*n = token[id].n;
	return token[id].text;
}

static const char *piece(void *user, uint32_t id, size_t *n)
{
	(void)user;
	return large_token(id, n);
}

const struct vocabulary *large_vocabulary(void)
{
	static struct vocabulary *v;
	struct error err = { 0 };

	if (!v) {
		make();
		v = vocabulary_open(LARGE_TOKENS, piece, NULL, &err);
	}
	return v;
}
