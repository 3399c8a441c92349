#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "loaders/files/gguf_write.h"
#include "tests/support/rank_model.h"
#include "tests/support/shared.h"

static uint64_t bytes_of(const struct rank_tensor *t)
{
	const uint64_t rows = t->n_dims > 1 ? t->ne[1] : 1;

	return dtype_row_bytes(t->type, t->ne[0]) * rows;
}

static void put_data(const struct gguf_out *o, const void *p, uint64_t n)
{
	static const uint8_t zeros[64];

	assert_int_equal(fwrite(p, 1, n, o->f), n);
	fwrite(zeros, 1, gguf_put_padding(o, n), o->f);
}

static void put_keys(struct gguf_out *o, const struct gguf *from, const struct rank_model *m)
{
	static const char *const sizes[] = { "qwen3.dense_2_feat_in", "qwen3.dense_2_feat_out", "qwen3.dense_3_feat_in",
		                             "qwen3.dense_3_feat_out" };
	uint64_t labels = 0;

	for (uint64_t i = 0; i < from->n_kv; i++)
		gguf_put_copy(o, &from->kv[i]);
	gguf_put_u32(o, "qwen3.pooling_type", (uint32_t)m->pooling);
	for (int i = 0; i < 4; i++)
		if (m->sizes[i])
			gguf_put_u32(o, sizes[i], m->sizes[i]);
	while (labels < 4 && m->labels[labels])
		labels++;
	if (labels)
		gguf_put_array(o, "qwen3.classifier.output_labels", GGUF_STRING, labels);
	for (uint64_t i = 0; i < labels; i++)
		gguf_put_text(o, m->labels[i], strlen(m->labels[i]));
	if (m->template_text)
		gguf_put_string(o, "tokenizer.chat_template.rerank", m->template_text);
}

void rank_model_write(const char *path, const struct rank_model *m)
{
	char source[1024];
	size_t n;
	uint8_t *file = file_bytes(source_path(source, "models/tale-q8_0.gguf"), &n);
	struct gguf from;
	struct gguf_out o;
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_true(gguf_parse(&from, file, n, source, false, NULL));
	gguf_put_begin(&o, f, from.alignment);
	put_keys(&o, &from, m);
	for (uint64_t i = 0; i < from.n_tensors; i++) {
		const struct gguf_tensor *t = &from.tensor[i];
		gguf_put_tensor(&o, t->name, t->type, t->n_dims, t->ne);
	}
	for (int i = 0; i < 4 && m->tensor[i].name; i++) {
		const struct rank_tensor *t = &m->tensor[i];
		gguf_put_tensor(&o, (struct gguf_str){ t->name, strlen(t->name) }, t->type, t->n_dims, t->ne);
	}
	gguf_put_end(&o);
	for (uint64_t i = 0; i < from.n_tensors; i++)
		put_data(&o, file + from.tensor[i].offset, from.tensor[i].bytes);
	for (int i = 0; i < 4 && m->tensor[i].name; i++)
		put_data(&o, m->tensor[i].data, bytes_of(&m->tensor[i]));
	assert_int_equal(fclose(f), 0);
	gguf_free(&from);
	free(file);
}
