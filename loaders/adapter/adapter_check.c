/* loaders/adapter/adapter_check.c - that an adapter's tensors are of sizes that agree with each other and with the
 * model's (adapter.h). */
#include "loaders/adapter/adapter.h"

#include <inttypes.h>

uint64_t adapter_rank_of(const struct adapter_file *f, const struct adapter_pair *p)
{
	return f->is_gguf && p->embeds ? p->a.cols : p->a.rows;
}

/* Every pair is whole, and of sizes that agree. */
bool adapter_check_pairs(const struct adapter_file *f, struct error *err)
{
	if (f->n_pairs == 0 && f->n_whole == 0)
		return error_set(err, ERROR_FORMAT, "%s: the adapter has no tensors", f->weights.label);
	for (size_t i = 0; i < f->n_pairs; i++) {
		const struct adapter_pair *p = &f->pair[i];
		if (p->own_bias.name && p->magnitude.name)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s: biases of modules with magnitudes (DoRA) are not done",
			                 f->weights.label, p->own_bias.name);
		if (p->own_bias.name && !p->a.name && !p->b.name)
			continue;
		if (!p->a.name || !p->b.name)
			return error_set(err, ERROR_FORMAT, "%s: tensor %s has no partner, expected both of %s",
			                 f->weights.label, p->a.name ? p->a.name : p->b.name, p->path);
		const uint64_t rank = adapter_rank_of(f, p);
		if (rank != p->b.cols)
			return error_set(err, ERROR_FORMAT,
			                 "%s: the rank of %s is %" PRIu64 ", but that of %s is %" PRIu64,
			                 f->weights.label, p->a.name, rank, p->b.name, p->b.cols);
		if (rank < 1 || (rank > ADAPTER_MAX_RANK && !p->parameter))
			return error_set(err, ERROR_UNSUPPORTED, "%s: the rank of %s is %" PRIu64 ", expected 1 to %d",
			                 f->weights.label, p->a.name, rank, ADAPTER_MAX_RANK);
	}
	return true;
}

/* An embedding's tensors have tokens where others have inputs; in GGUF files its A lies transposed. */
bool adapter_check_embedding(const struct adapter_file *f, const struct adapter_part *p, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->pair];
	const uint64_t tokens = f->is_gguf ? pair->a.rows : pair->a.cols;

	if (tokens != p->rows)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s is of %" PRIu64 " tokens, and the model has %" PRIu64, f->weights.label,
		                 pair->a.name, tokens, p->rows);
	return pair->b.rows == p->cols ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64 ", the width of the embedding",
	                 f->weights.label, pair->b.name, pair->b.rows, p->cols);
}

bool adapter_check_part(const struct adapter_file *f, const struct adapter_part *p, struct error *err)
{
	const struct adapter_tensor *a = &f->pair[p->pair].a, *b = &f->pair[p->pair].b;
	const struct adapter_tensor *const each[] = { &f->pair[p->pair].magnitude, &f->pair[p->pair].bias,
		                                      &f->pair[p->pair].own_bias };

	if (a->experts != p->experts || b->experts != p->experts)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s is of %" PRIu32 " experts, expected %" PRIu32 ", as the model's %s",
		                 f->weights.label, a->experts != p->experts ? a->name : b->name,
		                 a->experts != p->experts ? a->experts : b->experts, p->experts, p->location.name);
	for (int i = 0; i < 3; i++)
		if (each[i]->name && (each[i]->rows != 1 || each[i]->cols != p->location.all_rows))
			return error_set(err, ERROR_FORMAT,
			                 "%s: tensor %s has %" PRIu64 " numbers, expected %" PRIu64
			                 ", as the model's %s has rows",
			                 f->weights.label, each[i]->name, each[i]->rows * each[i]->cols,
			                 p->location.all_rows, p->location.name);
	if (!a->name) /* a bias alone */
		return true;
	if (f->pair[p->pair].parameter && a->rows != f->pair[p->pair].rank)
		return error_set(err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu32,
		                 f->weights.label, a->name, a->rows, f->pair[p->pair].rank);
	if (a->cols != p->cols)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " columns, expected %" PRIu64 ", as the model's %s has",
		                 f->weights.label, a->name, a->cols, p->cols, p->location.name);
	if (b->rows != p->location.all_rows)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64 ", as the model's %s has",
		                 f->weights.label, b->name, b->rows, p->location.all_rows, p->location.name);
	return true;
}
