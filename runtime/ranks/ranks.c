/* runtime/ranks/ranks.c - opening and closing, commands and their replies. See ranks.h. */
#include "runtime/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/system.h"

struct ranks *ranks_open(const char *carrier, struct error *err)
{
	struct ranks *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for ranks");
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	r->carrier = carrier_open(carrier, err);
	if (r->carrier)
		return r;
	ranks_close(r);
	return NULL;
}

void ranks_close(struct ranks *r)
{
	if (!r)
		return;
	if (r->carrier && r->carrier->rank == 0)
		ranks_tell(r, &(struct ranks_command){ .what = RANKS_END }, NULL, NULL);
	carrier_close(r->carrier);
	pthread_mutex_destroy(&r->lock);
	free(r->memory);
	free(r);
}

void ranks_begin(struct ranks *r) { pthread_mutex_lock(&r->lock); }
void ranks_end(struct ranks *r) { pthread_mutex_unlock(&r->lock); }

bool ranks_tell(struct ranks *r, const struct ranks_command *c, void *behind, struct error *err)
{
	struct ranks_command copy = *c;

	return carrier_broadcast(r->carrier, 0, &copy, sizeof copy, err) &&
	       (!behind || carrier_broadcast(r->carrier, 0, behind, (size_t)c->bytes, err));
}

bool ranks_replies(struct ranks *r, struct error *err)
{
	for (unsigned i = 1; i < r->carrier->size; i++) {
		struct error e;
		if (!carrier_receive(r->carrier, i, &e, sizeof e, err))
			return false;
		if (e.code)
			error_set(err, e.code, "rank %u: %.480s", i, e.text);
	}
	return !err || err->code == ERROR_NONE;
}

bool ranks_reply(struct ranks *r, const struct error *e, struct error *err)
{
	return carrier_send(r->carrier, 0, e, sizeof *e, err);
}

/* ---- which rank has what */

static int describe_layers(const struct ranks *r, int n, char *to, size_t room)
{
	for (unsigned i = 0; i < r->carrier->size && n < (int)room; i++)
		n += snprintf(to + n, room - (size_t)n, "%s rank %u layers %u to %u%s", i ? "," : "", i,
		              r->range[i].first, r->range[i].end - 1, i ? "" : " and both ends");
	return n;
}

static int describe_shares(const struct ranks *r, int n, char *to, size_t room)
{
	enum { ALL = 100 };

	for (unsigned i = 0; i < r->carrier->size && n < (int)room; i++)
		n += snprintf(to + n, room - (size_t)n, "%s rank %u %llu %% of each matrix%s", i ? "," : "", i,
		              (unsigned long long)((
				      cut_share_begin(&r->shares, i + 1, ALL) - cut_share_begin(&r->shares, i, ALL))),
		              i ? "" : " and the embeddings");
	return n;
}

static void describe(struct ranks *r)
{
	const unsigned size = r->carrier->size;
	const size_t room = sizeof r->about;
	int n = snprintf(r->about, room, "%u ranks by %.*s, %s:", size, (int)strcspn(r->carrier->driver->name, ":"),
	                 r->carrier->driver->name, r->by_rows ? "rows" : "pipeline");

	n = r->by_rows ? describe_shares(r, n, r->about, room) : describe_layers(r, n, r->about, room);
	/* A launcher may have bound each rank to cores of its own. */
	const int cores = r->carrier->own ? system_default_threads() : (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (r->carrier->here > (unsigned)cores && n < (int)room)
		snprintf(r->about + n, room - (size_t)n, "; %u ranks share the %d core%s here", r->carrier->here, cores,
		         cores == 1 ? "" : "s");
}

bool ranks_split(struct ranks *r, const struct model_spec *s, const char *split, struct error *err)
{
	if (!split_rows(r->carrier->size, split, &r->by_rows, &r->shares, err))
		return false;
	r->shares.own = r->carrier->rank;
	if (r->by_rows && s->encodes)
		return error_set(err, ERROR_UNSUPPORTED, "split %.64s: not yet of models that encode texts", split);
	if (!r->by_rows && !split_layers(s, r->carrier->size, split, r->range, err))
		return false;
	describe(r);
	return true;
}

bool ranks_meet(struct ranks *r, struct error *err)
{
	uint8_t all[CARRIER_RANKS_MAX] = { 0 };
	size_t begin[CARRIER_RANKS_MAX + 1];

	for (unsigned i = 0; i <= r->carrier->size; i++)
		begin[i] = i;
	return carrier_gather_begin(r->carrier, all, begin, err) && carrier_gather_wait(r->carrier, err);
}
