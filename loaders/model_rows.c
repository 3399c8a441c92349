/* loaders/model_rows.c - which row of a file a row of a packed matrix is: heads whose elements are in another order
 * there, or that alternate with those of another matrix. */
#include "loaders/model.h"

uint64_t model_source_row(const struct model_tensor *t, uint32_t head_dim, uint64_t r)
{
	if (!t->rope_dims && !t->head_rows)
		return r;
	uint64_t half = head_dim / 2, turned = t->rope_dims / 2, i = r % head_dim, head = r - i;
	bool second = i >= half;

	if (t->head_rows)
		head = head / head_dim * t->head_rows + t->head_first;
	if (!t->rope_dims)
		return head + i;

	i -= second ? half : 0;
	if (i >= turned) /* behind those that rotate: the first half's, then the second's */
		return head + 2 * turned + (second ? half - turned : 0) + i - turned;
	return head + (t->rope_pairs ? 2 * i + second : second ? turned + i : i);
}
