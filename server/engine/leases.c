/* server/engine/leases.c - requests that hold a model, or wait for one; and those that say how long it stays. */
#include <stdint.h>
#include <stdio.h>

#include "runtime/host/system.h"
#include "server/engine/loader_parts.h"

void lease_unlink(struct loader *l, struct lease *e)
{
	struct lease **at = &l->first;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	if (!*at)
		l->last = at;
}

void lease_hold(struct loader *l, struct model_slot *p)
{
	p->held++;
	p->used = ++l->clock;
}

static void let_go(struct loader *l, struct model_slot *p, bool peeked)
{
	p->held--;
	if (!peeked) {
		p->used = ++l->clock;
		p->idle = system_seconds();
	}
	pthread_cond_signal(&l->changed);
}

bool lease_take(struct lease *e, struct loader *l, struct served *m)
{
	struct model_slot *p = loader_slot(l, m);

	if (e->state == LEASE_HELD)
		return true;
	e->loader = l;
	e->model = m;
	pthread_mutex_lock(&l->lock);
	bool there = p->state == MODEL_LOADED && !p->leaving;
	if (there && e->peeks)
		p->held++;
	else if (there)
		lease_hold(l, p);
	pthread_mutex_unlock(&l->lock);
	e->state = there ? LEASE_HELD : LEASE_WANTED;
	return there;
}

bool lease_await(struct lease *e, struct refusal *r)
{
	struct loader *l = e->loader;

	e->state = LEASE_NONE;
	if (!(e->stream = stream_open(1, SIZE_MAX, false)))
		return refuse(r, 503, NULL, "There is no memory for this request.");
	pthread_mutex_lock(&l->lock);
	bool open = l->started && !l->ends;
	if (open) {
		e->state = LEASE_AWAITED;
		e->next = NULL;
		*l->last = e;
		l->last = &e->next;
		pthread_cond_signal(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return open || refuse(r, 503, NULL, "The server is stopping.");
}

enum lease_state lease_settle(struct lease *e)
{
	pthread_mutex_lock(&e->loader->lock);
	enum lease_state state = (enum lease_state)e->state;
	pthread_mutex_unlock(&e->loader->lock);
	return state;
}

void lease_end(struct lease *e)
{
	struct loader *l = e->loader;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	if (e->state == LEASE_AWAITED)
		lease_unlink(l, e);
	if (e->state == LEASE_HELD)
		let_go(l, loader_slot(l, e->model), e->peeks);
	e->state = LEASE_NONE;
	pthread_mutex_unlock(&l->lock);
	if (e->stream) {
		stream_leave(e->stream);
		stream_release(e->stream);
	}
	*e = (struct lease){ 0 };
}

/* ---- by request */

void loader_keep(struct loader *l, struct served *m, double seconds)
{
	if (l->o.stays)
		return;
	pthread_mutex_lock(&l->lock);
	loader_slot(l, m)->keep = seconds;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

bool loader_stays(const struct loader *l) { return l->o.stays; }

bool loader_unload(struct loader *l, struct served *m, bool gives_up)
{
	struct model_slot *p = loader_slot(l, m);

	if (l->o.stays)
		return false;
	pthread_mutex_lock(&l->lock);
	bool there = p->state == MODEL_LOADED && !p->away;
	bool opens = gives_up && p->state == MODEL_LOADING && !p->given_up;
	p->given_up |= opens;
	if (there) {
		p->away = p->leaving = true;
		p->moves = false; /* it is opened when it is asked for */
		pthread_cond_signal(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return there || opens;
}

bool loader_move(struct loader *l, struct served *m, const char *why)
{
	struct model_slot *p = loader_slot(l, m);

	pthread_mutex_lock(&l->lock);
	const bool first = !m->lost[0];
	if (first) {
		snprintf(m->lost, sizeof m->lost, "%s", why);
		p->moves = p->leaving = p->state != MODEL_LOADING; /* one that is being opened is told */
		pthread_cond_signal(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return first;
}

bool loader_forget(struct loader *l, struct served *m)
{
	struct model_slot *p = loader_slot(l, m);
	bool wanted = false;

	pthread_mutex_lock(&l->lock);
	for (const struct lease *e = l->first; e; e = e->next)
		wanted |= e->model == m;
	const bool forgets = p->state == MODEL_AWAY && !p->held && !wanted;
	if (forgets)
		*p = (struct model_slot){ 0 };
	pthread_mutex_unlock(&l->lock);
	return forgets;
}
