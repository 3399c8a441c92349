/* tests/loaders/hf_to_gguf.c - converts a safetensors model to GGUF: hf_to_gguf MODEL OUT.gguf f32|f16|bf16|q8_0
 * [TOKENIZER.gguf]. The tokenizer is copied from another GGUF file; without one, there is none in what is written.
 *
 * A tool for tests and comparisons: it reads through the loaders, so what it writes is what they understood.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/loaders/model_to_gguf.h"

static bool write_file(const char *path, const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(p, 1, n, f) == n;

	return f && fclose(f) == 0 && ok;
}

static bool copy_tokenizer(struct gguf_writer *w, const char *path, struct error *err)
{
	struct file f = { 0 };
	struct gguf g = { 0 };
	bool ok = file_open(&f, path, err) && gguf_open(&g, &f, true, err);

	for (uint64_t i = 0; ok && i < g.n_kv; i++) {
		const struct gguf_kv *kv = &g.kv[i];
		if (kv->key.n < 10 || memcmp(kv->key.p, "tokenizer.", 10) != 0)
			continue;
		const uint8_t *from = (const uint8_t *)kv->key.p - 8; /* as it stands in the file, its length first */
		bytes_put(&w->kv, from, (size_t)(kv->data + kv->bytes - from));
		w->n_kv++;
	}
	gguf_free(&g);
	file_close(&f);
	return ok;
}

int main(int argc, char **argv)
{
	static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0 };
	enum dtype type = DTYPE_COUNT;
	struct error err = { 0 };
	struct gguf_writer w = { 0 };
	struct model m;
	size_t n;

	for (size_t i = 0; argc >= 4 && i < sizeof types / sizeof *types; i++)
		if (strcasecmp(argv[3], dtype_table[types[i]].name) == 0)
			type = types[i];
	if (type == DTYPE_COUNT || argc > 5) {
		fprintf(stderr, "usage: hf_to_gguf MODEL OUT.gguf f32|f16|bf16|q8_0 [TOKENIZER.gguf]\n");
		return 2;
	}
	if (!model_open(&m, argv[1], MODEL_NO_TOKENIZER, &err) || !model_to_gguf(&w, &m, type, &err) ||
	    (argc == 5 && !copy_tokenizer(&w, argv[4], &err))) {
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
