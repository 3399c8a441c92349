/* tests/loaders/hf_to_gguf.c - converts a safetensors model to GGUF without its tokenizer: hf_to_gguf MODEL OUT.gguf
 * f32|f16|bf16|q8_0
 *
 * A tool for tests and comparisons: it reads through the loaders, so what it writes is what they understood.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "tests/loaders/model_to_gguf.h"

static bool write_file(const char *path, const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(p, 1, n, f) == n;

	return f && fclose(f) == 0 && ok;
}

int main(int argc, char **argv)
{
	static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0 };
	enum dtype type = DTYPE_COUNT;
	struct error err = { 0 };
	struct gguf_writer w = { 0 };
	struct model m;
	size_t n;

	for (size_t i = 0; argc == 4 && i < sizeof types / sizeof *types; i++)
		if (strcasecmp(argv[3], dtype_table[types[i]].name) == 0)
			type = types[i];
	if (type == DTYPE_COUNT) {
		fprintf(stderr, "usage: hf_to_gguf MODEL OUT.gguf f32|f16|bf16|q8_0\n");
		return 2;
	}
	if (!model_open(&m, argv[1], MODEL_NO_TOKENIZER, &err) || !model_to_gguf(&w, &m, type, &err)) {
		fprintf(stderr, "hf_to_gguf: %s\n", err.text);
		return 1;
	}
	uint8_t *p = gguf_writer_finish(&w, &n);
	bool ok = write_file(argv[2], p, n);
	if (!ok)
		fprintf(stderr, "hf_to_gguf: %s: cannot be written\n", argv[2]);
	free(p);
	gguf_writer_free(&w);
	model_close(&m);
	return ok ? 0 : 1;
}
