/* programs/jitrun/jitrun_cache.c - --prompt-cache: the beginning of a prompt that an earlier run has computed.
 *
 * Owns: what of the file is used, and when it is written. A file that cannot be used ends the run, so that none is lost
 * that belongs to another model.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"

/* The file is written beside its place and renamed. */
bool jitrun_cache_check(struct error *err)
{
	struct stat st;
	const char *why = NULL;

	if (!opt.prompt_cache)
		return true;
	if (stat(opt.prompt_cache, &st) == 0 && !S_ISREG(st.st_mode))
		why = "is no regular file, and so no saved session";
	else if (!opt.prompt_cache_ro && !output_can_replace(opt.prompt_cache))
		return error_set(err, ERROR_IO, "%.400s: cannot be written: %s", opt.prompt_cache, strerror(errno));
	return !why || error_set(err, ERROR_ARGUMENT, "%.400s: %s", opt.prompt_cache, why);
}

bool jitrun_cache_begin(struct run *r, jit_error *err)
{
	if (!opt.prompt_cache || (access(opt.prompt_cache, F_OK) != 0 && errno == ENOENT))
		return true;
	return jit_session_restore(r->session, opt.prompt_cache, err) == JIT_OK;
}

/* The last token is always computed: its logits are wanted. */
bool jitrun_cache_use(struct run *r, const struct prompt *p, size_t *same, jit_error *err)
{
	const int32_t *have = jit_session_ids(r->session);
	size_t n = jit_session_length(r->session);

	for (*same = 0; *same < n && *same < p->n_ids && have[*same] == p->ids[*same];)
		++*same;
	r->cache_is_old = *same < p->n_ids;
	*same -= *same == p->n_ids;
	if (n && !opt.quiet)
		fprintf(stderr, "prompt cache: %zu of %zu tokens are there\n", *same, p->n_ids);
	return jit_session_rewind(r->session, *same, err) == JIT_OK;
}

bool jitrun_cache_end(struct run *r, bool whole, jit_error *err)
{
	if (!opt.prompt_cache || opt.prompt_cache_ro || whole != opt.prompt_cache_all || (!whole && !r->cache_is_old))
		return true;
	return jit_session_save(r->session, opt.prompt_cache, err) == JIT_OK;
}
