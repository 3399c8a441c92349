/* tests/support/seeing_folder.h - folders of reference models that see, with a tokenizer of single bytes and a chat
 * template, which the references lack. */
#ifndef SEEING_FOLDER_H
#define SEEING_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/shared.h"

/* Of a template that writes MARK for a picture. */
#define SEEING_TEMPLATE(mark) \
	"{% for m in messages %}{{ m.role + ':' }}{% if m.content is string %}{{ m.content }}{% else %}" \
	"{% for p in m.content %}{% if p.type == 'image' %}{{ '" mark "' }}{% else %}{{ p.text }}{% endif %}" \
	"{% endfor %}{% endif %}{{ '|' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"

/* The references' image token; 3 + b stands for byte b. */
enum { SEEING_TOKEN = 331 };

/* The character that stands for a byte in such a vocabulary. */
static inline void seeing_character(char out[4], unsigned byte)
{
	unsigned code = byte, others = 0;

	for (unsigned b = 0; b <= byte; b++) {
		const bool plain = (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
		if (b == byte)
			code = plain ? b : 256 + others;
		others += !plain;
	}
	if (code < 128)
		snprintf(out, 4, "%c", (char)code);
	else
		snprintf(out, 4, "%c%c", (char)(0xc0 | code >> 6), (char)(0x80 | (code & 63)));
}

static inline void seeing_write(const char *folder, const char *file, json_t *o)
{
	char path[1100];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	if (json_dump_file(o, path, 0) != 0)
		abort();
	json_decref(o);
}

/* Makes the folder, mkdtemp()'s pattern, of ../shared/golden-more/NAME. mark: the text of its image token; tmpl: NULL:
 * it has none. False: the model is not there. */
static inline bool seeing_folder(char *folder, const char *name, const char *mark, const char *tmpl)
{
	static const char *const files[] = { "config.json", "preprocessor_config.json", "model.safetensors" };
	char relative[200], path[1024], to[1100], real[4096];

	snprintf(relative, sizeof relative, "golden-more/%s", name);
	if (!shared_path(path, relative) || !realpath(path, real) || !mkdtemp(folder))
		return false;
	for (unsigned i = 0; i < 3; i++) {
		char from[4200];
		snprintf(from, sizeof from, "%s/%s", real, files[i]);
		snprintf(to, sizeof to, "%s/%s", folder, files[i]);
		if (symlink(from, to) != 0)
			abort();
	}
	json_t *vocab = json_object();
	for (unsigned b = 0; b < 256; b++) {
		char c[4];
		seeing_character(c, b);
		json_object_set_new(vocab, c, json_integer(3 + b));
	}
	json_t *level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0,
	                          "use_regex", 1);
	json_t *image = json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)SEEING_TOKEN, "content",
	                          mark, "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
	seeing_write(folder, "tokenizer.json",
	             json_pack("{s:s, s:n, s:O, s:n, s:o, s:[o], s:{s:s, s:o, s:[]}}", "version", "1.0", "normalizer",
	                       "pre_tokenizer", level, "post_processor", "decoder", level, "added_tokens", image,
	                       "model", "type", "BPE", "vocab", vocab, "merges"));
	if (tmpl)
		seeing_write(folder, "tokenizer_config.json", json_pack("{s:s}", "chat_template", tmpl));
	return true;
}

static inline void seeing_remove(const char *folder)
{
	static const char *const files[] = { "config.json", "preprocessor_config.json", "model.safetensors",
		                             "tokenizer.json", "tokenizer_config.json" };
	char path[1100];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* A picture of the references, malloc'ed. */
static inline uint8_t *seeing_picture(const char *name, unsigned number, size_t *n)
{
	char relative[200], path[1024];

	snprintf(relative, sizeof relative, "golden-more/%s/image%u.png", name, number);
	const char *found = shared_path(path, relative);
	FILE *f = found ? fopen(found, "rb") : NULL;
	uint8_t *bytes = malloc(1 << 20);
	*n = f && bytes ? fread(bytes, 1, 1 << 20, f) : 0;
	if (f)
		fclose(f);
	return bytes;
}

#endif
