/* train/save.c - what was trained becomes files that other programs read. */
#include <stdlib.h>
#include <string.h>

#include "runtime/model/model.h"
#include "runtime/model/sized.h"
#include "train/save.h"

/* By a tensor that every model has. */
bool train_is_gguf(const jit_train *t) { return strncmp(t->m.spec.embed.name, "token_embd", 10) == 0; }

/* The family of a model, as the table of architectures has it. */
const struct arch_row *train_arch(const jit_train *t)
{
	const char *name = t->m.spec.arch_name;

	return train_is_gguf(t) ? arch_of_gguf(name, strlen(name)) : arch_of_hf(name);
}

uint64_t train_row_in_file(const jit_train *t, const struct net_tensor *x, bool pairs, uint64_t row)
{
	const uint32_t dim = t->m.spec.head_dim, rotating = t->m.spec.rope.dims;
	const struct model_tensor as = { .rope_dims = pairs || rotating != dim ? rotating : 0, .rope_pairs = pairs };

	return !x->by_file && (x->slot == SLOT_q || x->slot == SLOT_k) ? model_source_row(&as, dim, row) : row;
}

float *train_ordered(const jit_train *t, const struct net_tensor *x, bool pairs, struct error *err)
{
	float *out = malloc((x->n + 1) * sizeof *out);
	const uint64_t rows = x->shape.dim[0], cols = x->n / (rows ? rows : 1);

	if (!out) {
		error_set(err, ERROR_MEMORY, "there is no memory for %.100s", x->name);
		return NULL;
	}
	for (uint64_t r = 0; r < rows; r++)
		memcpy(out + (x->kind == LAYER_A ? r : train_row_in_file(t, x, pairs, r)) * cols, x->value + r * cols,
		       cols * sizeof *out);
	return out;
}

int jit_train_save(const jit_train *t, const char *path, int format, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(t, &e) || !NEEDED(path, &e))
		return model_report(err, &e);
	if (format < JIT_TRAIN_PEFT || format > JIT_TRAIN_WEIGHTS)
		error_set(&e, ERROR_ARGUMENT,
		          "format is %d, expected JIT_TRAIN_PEFT, JIT_TRAIN_GGUF or JIT_TRAIN_WEIGHTS", format);
	else if ((format == JIT_TRAIN_WEIGHTS) != (t->o.full != 0))
		error_set(&e, ERROR_ARGUMENT, "%s",
		          t->o.full ? "all weights were trained, and are saved as JIT_TRAIN_WEIGHTS"
		                    : "an adapter was trained, which is saved as JIT_TRAIN_PEFT or "
		                      "JIT_TRAIN_GGUF");
	else if (format == JIT_TRAIN_PEFT)
		train_save_peft(t, path, &e);
	else if (format == JIT_TRAIN_GGUF)
		train_save_gguf(t, path, &e);
	else
		train_save_weights(t, path, &e);
	return model_report(err, &e);
}

int jit_train_write_state(const jit_train *t, const char *path, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(t, &e) && NEEDED(path, &e))
		train_write_state(t, path, &e);
	return model_report(err, &e);
}

int jit_train_read_state(jit_train *t, const char *path, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(t, &e) && NEEDED(path, &e))
		train_read_state(t, path, &e);
	return model_report(err, &e);
}
