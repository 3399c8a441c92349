/* server/engine/sight.c - the pictures of a served model. See sight.h. */
#include "server/engine/sight.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "include/jitrun_graph.h"
#include "runtime/device/device.h"
#include "runtime/host/system.h"
#include "runtime/kernels/compute.h"
#include "server/engine/batcher.h"
#include "server/engine/choice.h"

/* Bytes of pixels that wait to be encoded, and of one pixel. */
#define WAITING_MAX ((uint64_t)1 << 30)
enum { PIXEL = 3 };

struct kept {
	jit_image *image;
	uint64_t used;
};
struct waiting {
	struct waiting *next;
	struct task *task;
};

/* The thread that computes, for the one that has the queue: it holds no lock that others need, since beside passes on
 * all cores it may be without a core for a long time. */
struct eye {
	pthread_mutex_t lock; /* of the two threads alone */
	pthread_cond_t changed;
	jit_image *image; /* to be encoded; NULL: nothing is */
	struct error *err;
	bool ok, ends, started;
	pthread_t thread;
};

/* NICE: beside a pass on all cores, a thread of this niceness has a quarter of a core. With 10 it has a tenth: answers
 * are a little faster then, and a picture takes twice as long. */
enum { NICE = 5, POLL_NS = 50000000 };

struct sight {
	struct sight_options o;
	struct batcher *batcher;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct waiting *first, **last;
	unsigned n_waiting;
	bool ends;
	struct kept *kept;
	size_t n_kept, room;
	uint64_t clock, pixels;
	struct sight_numbers numbers;
	pthread_t thread;
	bool started, dead; /* dead: the device computes no more; the thread's own */
	struct eye eye;
};

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- features that are kept: under the lock */

static void drop(struct sight *s, size_t i)
{
	s->numbers.kept_bytes -= image_bytes(s->kept[i].image);
	image_release(s->kept[i].image);
	s->kept[i] = s->kept[--s->n_kept];
}

static void drop_oldest(struct sight *s)
{
	size_t oldest = 0;

	for (size_t i = 1; i < s->n_kept; i++)
		if (s->kept[i].used < s->kept[oldest].used)
			oldest = i;
	drop(s, oldest);
}

/* The same picture with features, held. NULL: there is none. */
static jit_image *find(struct sight *s, const jit_image *like)
{
	for (size_t i = 0; i < s->n_kept; i++)
		if (memcmp(s->kept[i].image->digest, like->digest, IMAGE_DIGEST) == 0) {
			s->kept[i].used = ++s->clock;
			s->numbers.reused++;
			return image_hold(s->kept[i].image);
		}
	return NULL;
}

static void keep(struct sight *s, const jit_image *image, double seconds)
{
	const uint64_t bytes = image_bytes(image);

	s->numbers.encoded++;
	s->numbers.seconds += seconds;
	if (bytes > s->o.cache_bytes || !array_grow((void **)&s->kept, &s->room, s->n_kept + 1, sizeof *s->kept))
		return;
	while (s->n_kept && s->numbers.kept_bytes > s->o.cache_bytes - bytes)
		drop_oldest(s);
	s->kept[s->n_kept++] = (struct kept){ image_hold(image), ++s->clock };
	s->numbers.kept_bytes += bytes;
}

/* ---- pictures of requests */

jit_image *sight_read(struct sight *s, const void *bytes, size_t n, const char *name, struct refusal *r)
{
	const struct picture_limits limits = { 0, s->o.pixels };
	struct error err = { 0 };
	jit_image *read = seer_read(s->o.encoder, bytes, n, name, &limits, &err), *known;

	if (!read) {
		refuse(r, err.code == ERROR_MEMORY ? 503 : 400, "messages", "%s", err.text);
		return NULL;
	}
	pthread_mutex_lock(&s->lock);
	known = find(s, read);
	pthread_mutex_unlock(&s->lock);
	if (!known)
		return read;
	image_release(read);
	return known;
}

bool sight_count(struct sight *s, uint64_t pixels, struct refusal *r)
{
	pthread_mutex_lock(&s->lock);
	const bool ok = (s->pixels + pixels) * PIXEL <= WAITING_MAX || s->pixels == 0;
	s->pixels += ok ? pixels : 0;
	pthread_mutex_unlock(&s->lock);
	return ok || refuse(r, 429, NULL, "Too many pictures are waiting; try again soon.");
}

void sight_forget(struct sight *s, uint64_t pixels)
{
	pthread_mutex_lock(&s->lock);
	s->pixels -= pixels;
	pthread_mutex_unlock(&s->lock);
}

/* ---- the thread that computes */

static void *encode(void *user)
{
	struct sight *s = user;
	struct eye *e = &s->eye;

	system_thread_began();
	system_thread_set_niceness(NICE);
	pthread_mutex_lock(&e->lock);
	while (!e->ends) {
		if (!e->image) {
			pthread_cond_wait(&e->changed, &e->lock);
			continue;
		}
		pthread_mutex_unlock(&e->lock);
		e->ok = s->o.encode(e->image, e->err);
		pthread_mutex_lock(&e->lock);
		e->image = NULL;
		pthread_cond_broadcast(&e->changed);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* Until something happens, or it is time to look who has gone. */
static void wait_a_moment(struct eye *e)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += POLL_NS;
	t.tv_sec += t.tv_nsec / 1000000000L;
	t.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&e->changed, &e->lock, &t);
}

/* False with err->code ERROR_CANCELLED: nobody waits for the answer any more. */
static bool have_encoded(struct sight *s, jit_image *image, const struct answer_stream *stream, struct error *err)
{
	struct eye *e = &s->eye;
	struct jit_cancel *stop = &s->o.compute->cancel.own; /* which the encoder looks at between its ops */

	pthread_mutex_lock(&e->lock);
	e->image = image;
	e->err = err;
	pthread_cond_broadcast(&e->changed);
	while (e->image) {
		wait_a_moment(e);
		if (stream_is_cancelled(stream))
			atomic_store(&stop->requested, 1);
	}
	pthread_mutex_unlock(&e->lock);
	atomic_store(&stop->requested, 0);
	return e->ok;
}

static bool open_eye(struct sight *s)
{
	struct eye *e = &s->eye;

	compute_set_niceness(s->o.compute, NICE);
	e->started = pthread_create(&e->thread, NULL, encode, s) == 0;
	return e->started;
}

static void close_eye(struct eye *e)
{
	pthread_mutex_lock(&e->lock);
	e->ends = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	if (e->started)
		pthread_join(e->thread, NULL);
}

/* ---- the thread that has the queue */

static void fail(struct task *t, const struct refusal *r)
{
	struct choice *list = NULL, **end;

	if (!choices_open(t, &list, &end))
		return;
	for (struct choice *c = list; c; c = c->next)
		choice_fail(c, r->status, r->message);
	choices_close(list);
}

/* One picture, or the same one that was encoded meanwhile. */
static bool see(struct sight *s, jit_image **image, const struct answer_stream *stream, struct error *err)
{
	pthread_mutex_lock(&s->lock);
	jit_image *known = atomic_load(&(*image)->encoded) ? NULL : find(s, *image);
	pthread_mutex_unlock(&s->lock);
	if (known) {
		image_release(*image);
		*image = known;
	}
	if (atomic_load(&(*image)->encoded))
		return true;
	const double begun = system_seconds();
	if (!have_encoded(s, *image, stream, err))
		return false;
	pthread_mutex_lock(&s->lock);
	keep(s, *image, system_seconds() - begun);
	pthread_mutex_unlock(&s->lock);
	return true;
}

/* Whatever failed: whether the device computes no more. */
static void check_device(struct sight *s)
{
	struct device *d = s->o.compute->device;
	struct error why = { 0 };

	if (s->dead || !d->alive || d->alive(d, &why))
		return;
	s->dead = true;
	if (s->o.device_failed)
		s->o.device_failed(s->o.user, why.text);
}

static void see_all(struct sight *s, struct task *t)
{
	struct refusal r = { 0 };
	struct error err = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < t->shown.images && !stream_is_cancelled(t->stream); i++)
		ok = see(s, &t->shown.image[i], t->stream, &err);
	if (!ok && err.code != ERROR_CANCELLED) {
		refuse(&r, err.code == ERROR_MEMORY || err.code == ERROR_DEVICE ? 503 : 500, NULL, "%s", err.text);
		fail(t, &r);
		check_device(s);
	} else if (!batcher_take(s->batcher, t, &r)) { /* which ends it where its client has gone */
		fail(t, &r);
	}
}

static void *run(void *user)
{
	struct sight *s = user;

	system_thread_began();
	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct waiting *w = s->first;
		if (!w && s->ends)
			break;
		if (!w) {
			pthread_cond_wait(&s->more, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		see_all(s, w->task);
		pthread_mutex_lock(&s->lock);
		s->first = w->next;
		if (!s->first)
			s->last = &s->first;
		s->n_waiting--;
		pthread_mutex_unlock(&s->lock);
		task_release(w->task);
		free(w);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

bool sight_take(struct sight *s, struct task *t, struct refusal *r)
{
	bool ready = true, full = false;

	for (size_t i = 0; i < t->shown.images; i++)
		ready = ready && atomic_load(&t->shown.image[i]->encoded);
	if (ready)
		return batcher_take(s->batcher, t, r);
	struct waiting *w = calloc(1, sizeof *w);
	if (!w)
		return no_memory(r);
	task_hold(t);
	w->task = t;
	pthread_mutex_lock(&s->lock);
	full = s->n_waiting >= s->o.queue;
	if (!full) {
		*s->last = w;
		s->last = &w->next;
		s->n_waiting++;
		pthread_cond_signal(&s->more);
	}
	pthread_mutex_unlock(&s->lock);
	if (!full)
		return true;
	task_release(t);
	free(w);
	return refuse(r, 429, NULL, "Too many requests are waiting; try again soon.");
}

/* ---- opening and closing */

struct sight *sight_open(const struct sight_options *o)
{
	struct sight *s = calloc(1, sizeof *s);

	if (!s) {
		jit_image_encoder_close(o->encoder);
		jit_compute_close(o->compute);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	pthread_mutex_init(&s->eye.lock, NULL);
	pthread_cond_init(&s->eye.changed, NULL);
	s->o = *o;
	if (!s->o.encode)
		s->o.encode = image_encode;
	s->last = &s->first;
	return s;
}

bool sight_start(struct sight *s, struct batcher *b)
{
	s->batcher = b;
	s->started = open_eye(s) && pthread_create(&s->thread, NULL, run, s) == 0;
	return s->started;
}

void sight_close(struct sight *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	close_eye(&s->eye);
	while (s->n_kept)
		drop(s, s->n_kept - 1);
	free(s->kept);
	jit_image_encoder_close(s->o.encoder);
	jit_compute_close(s->o.compute);
	pthread_cond_destroy(&s->more);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->eye.changed);
	pthread_mutex_destroy(&s->eye.lock);
	free(s);
}

const struct sight_options *sight_told(const struct sight *s) { return &s->o; }

void sight_get_numbers(struct sight *s, struct sight_numbers *out)
{
	*out = (struct sight_numbers){ 0 };
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	*out = s->numbers;
	out->kept = s->n_kept;
	out->waiting = s->n_waiting;
	pthread_mutex_unlock(&s->lock);
}

void sight_numbers_add(struct sight_numbers *to, const struct sight_numbers *past)
{
	to->encoded += past->encoded;
	to->reused += past->reused;
	to->seconds += past->seconds;
}
