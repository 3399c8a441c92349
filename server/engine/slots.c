/* server/engine/slots.c - places of answers, and what each place held last. */
#include "server/engine/slots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/host/system.h"
#include "server/engine/slot_files.h"

enum { NO_ROOM = 507 }; /* HTTP's status for what cannot be stored */

struct slot {
	unsigned busy; /* answers that are there: several may ask for the same place */
	struct kept_text text;
	struct noted_adapters adapters; /* that they were computed with */
};

struct slots {
	struct served_adapters *adapters;
	struct slot *slot;
	unsigned n;
};

struct slots *slots_open(unsigned n, struct served_adapters *adapters)
{
	struct slots *s = calloc(1, sizeof *s);

	if (s)
		s->slot = calloc(n, sizeof *s->slot);
	if (s && s->slot) {
		s->n = n;
		s->adapters = adapters;
		return s;
	}
	free(s);
	return NULL;
}

void slots_close(struct slots *s)
{
	for (unsigned i = 0; s && i < s->n; i++)
		kept_text_free(&s->slot[i].text);
	if (s)
		free(s->slot);
	free(s);
}

void slots_enter(struct slots *s, struct choice *c)
{
	unsigned i = 0;

	if (c->task->slot >= 0 && c->number == c->task->first)
		i = (unsigned)c->task->slot;
	else
		while (i + 1 < s->n && s->slot[i].busy)
			i++;
	s->slot[i].busy++;
	c->numbers.slot = i;
	c->placed = true;
}

/* Takes the text over. */
static void put(struct slot *at, struct kept_text *text, const struct used_adapters *with)
{
	at->adapters = used_adapters_note(with);
	kept_text_free(&at->text);
	at->text = *text;
	*text = (struct kept_text){ 0 };
}

void slots_leave(struct slots *s, struct choice *c)
{
	struct slot *at = &s->slot[c->numbers.slot];

	if (!c->placed)
		return;
	at->busy--;
	if (c->kept.ids)
		put(at, &c->kept, &c->task->adapters);
	c->placed = false;
}

/* ---- saved, restored, erased */

static void done(struct choice *c, size_t tokens, double since)
{
	struct answer_event r = { .kind = EVENT_TOKEN, .choice = c->number, .id = -1 };
	struct stat st = { 0 };
	char why[200];

	if (c->task->file && stat(c->task->file, &st)) {
		snprintf(why, sizeof why, "The file of the slot is there, and its size cannot be told: %s.",
		         strerror(errno));
		choice_fail(c, 500, why);
		return;
	}
	r.numbers.prompt = tokens;
	r.numbers.prompt_seconds = system_seconds() - since;
	r.numbers.generated = (uint64_t)st.st_size;
	stream_put(c->task->stream, &r, NULL, NULL);
	choice_end(c, END_LENGTH);
}

/* The slot's adapters, not those of the request. */
static bool take_adapters(const struct slots *s, const struct slot *at, struct choice *c)
{
	used_adapters_drop(&c->task->adapters);
	if (!at->adapters.n || served_adapters_find(s->adapters, &at->adapters, &c->task->adapters))
		return true;
	choice_fail(c, 400, "The slot was computed with an adapter that has been unloaded since.");
	return false;
}

/* Where such adapters began, a file does not say. */
static bool may_keep(struct choice *c)
{
	if (!used_adapters_begin(&c->task->adapters))
		return true;
	choice_fail(c, 400, "Slots whose adapter begins at its invocation tokens are not saved or restored.");
	return false;
}

static void begin_saving(const struct slots *s, const struct slot *at, struct choice *c, jit_batch *batch)
{
	jit_error err = { 0 };
	char why[SLOT_FILES_WHY];

	if (at->text.n == 0) {
		choice_fail(c, 400, "The slot holds nothing that could be saved.");
		return;
	}
	/* what can be known before anything is computed */
	if (!slot_files_fit(c->task->file, 0, &c->task->files, why)) {
		choice_fail(c, NO_ROOM, why);
		return;
	}
	if (!take_adapters(s, at, c) || !may_keep(c))
		return;
	c->session = jit_batch_session(batch, NULL, &err);
	if (!c->session || !used_adapters_set(&c->task->adapters, c->session, at->text.ids, at->text.n, &err) ||
	    kept_text_submit(&at->text, c->session, &err) != JIT_OK)
		choice_fail(c, choice_status(err.code), err.message);
}

void slots_save(struct choice *c)
{
	double since = system_seconds();
	jit_error err = { 0 };
	char why[SLOT_FILES_WHY], *beside = slot_files_beside(c->task->file);

	/* What is wrong with the tokens is told by their logits. */
	if (!beside)
		choice_fail(c, 503, "There is no memory for this request.");
	else if (!jit_session_logits(c->session, &err))
		choice_fail(c, choice_status(err.code), err.message);
	else if (jit_session_save(c->session, beside, &err) != JIT_OK)
		choice_fail(c, 500, err.message);
	else if (!slot_files_put(beside, c->task->file, &c->task->files, why))
		choice_fail(c, NO_ROOM, why);
	else
		done(c, jit_session_length(c->session), since);
	free(beside);
}

/* What the batch remembers of a session that is closed is there for sessions that begin with its tokens. */
static void restore(struct slot *at, struct choice *c, jit_batch *batch)
{
	double since = system_seconds();
	jit_error err = { 0 };

	if (!may_keep(c))
		return;
	c->session = jit_batch_session(batch, NULL, &err);
	if (!c->session || !used_adapters_set(&c->task->adapters, c->session, NULL, 0, &err) ||
	    jit_session_restore(c->session, c->task->file, &err) != JIT_OK) {
		const bool memory = err.code == JIT_ERROR_MEMORY;
		choice_refuse(c, memory ? 503 : 400, memory ? "" : "filename", err.message);
		return;
	}
	size_t n = jit_session_length(c->session);
	struct kept_text text;
	if (!kept_text_take(&text, c->session, n)) {
		choice_fail(c, 503, "There is no memory for this request.");
		return;
	}
	put(at, &text, &c->task->adapters);
	done(c, n, since);
}

static void erase(struct slot *at, struct choice *c, jit_batch *batch)
{
	double since = system_seconds();
	size_t n = at->text.n;

	if (n)
		kept_text_forget(&at->text, batch);
	put(at, &(struct kept_text){ 0 }, &(struct used_adapters){ 0 });
	done(c, n, since);
}

void slots_act(struct slots *s, struct choice *c, jit_batch *batch)
{
	struct slot *at = &s->slot[c->task->slot];

	c->begun = system_seconds();
	if (c->task->action == SLOT_SAVE)
		begin_saving(s, at, c, batch);
	else if (c->task->action == SLOT_RESTORE)
		restore(at, c, batch);
	else
		erase(at, c, batch);
}
