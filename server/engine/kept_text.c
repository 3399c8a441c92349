/* server/engine/kept_text.c - see kept_text.h. */
#include "server/engine/kept_text.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/session/session_pictures.h"

bool kept_text_take(struct kept_text *out, const jit_session *s, size_t n)
{
	*out = (struct kept_text){ .ids = malloc((n + 1) * sizeof *out->ids), .n = n };
	if (!out->ids || !session_pictures_take(s, n, &out->shown, &out->n_shown)) {
		free(out->ids);
		*out = (struct kept_text){ 0 };
		return false;
	}
	memcpy(out->ids, jit_session_ids(s), n * sizeof *out->ids);
	return true;
}

void kept_text_free(struct kept_text *t)
{
	while (t->n_shown)
		picture_release(t->shown[--t->n_shown].of);
	free(t->shown);
	free(t->ids);
	*t = (struct kept_text){ 0 };
}

int kept_text_submit(const struct kept_text *t, jit_session *s, jit_error *err)
{
	size_t reused;

	return session_submit_pictures(s, t->ids, t->n, t->shown, t->n_shown, &reused, err);
}

void kept_text_forget(const struct kept_text *t, jit_batch *batch)
{
	int32_t *keys = malloc((t->n + 1) * sizeof *keys);

	if (!keys)
		return;
	memcpy(keys, t->ids, t->n * sizeof *keys);
	session_pictures_name(t->shown, t->n_shown, keys);
	jit_batch_forget(batch, keys, t->n);
	free(keys);
}
