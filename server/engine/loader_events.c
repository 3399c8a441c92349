/* server/engine/loader_events.c - what the loader does, in the words of llama.cpp's server, to those who listen. */
#include "base/json_write.h"
#include "runtime/host/system.h"
#include "server/engine/loader_parts.h"
#include "server/engine/model_events.h"

enum { OFTEN_MS = 200 };

void loader_tell(const struct served *m, const struct model_slot *p, bool failed)
{
	json_t *data;

	if (!model_events_heard())
		return;
	if (p->state == MODEL_LOADING) {
		model_events_tell_data(m->name, "model_status", json_pack("{s:s}", "status", "loading"));
		return;
	}
	if (p->state == MODEL_LOADED)
		data = json_pack("{s:s, s:{s:o}}", "status", "loaded", "info", "meta",
		                 model_meta_json(&p->info, p->context));
	else
		data = json_pack("{s:s, s:i}", "status", "unloaded", "exit_code", (int)failed);
	model_events_tell_data(m->name, "status_change", data);
}

static void tell_progress(const struct served *m, uint64_t done, uint64_t all)
{
	static const char stage[] = "text_model";

	model_events_tell_data(m->name, "status_change",
	                       json_pack("{s:s, s:{s:[s], s:s, s:f}}", "status", "loading", "progress", "stages", stage,
	                                 "current", stage, "value", all ? (double)done / (double)all : 0));
}

bool loader_progress(struct loader *l, const struct served *m, uint64_t done, uint64_t all)
{
	struct model_slot *p = loader_slot(l, m);
	const double now = system_seconds();

	pthread_mutex_lock(&l->lock);
	const bool goes_on = !p->given_up;
	const bool tells = goes_on && (done >= all || now - p->told >= OFTEN_MS / 1e3);
	if (tells)
		p->told = now;
	pthread_mutex_unlock(&l->lock);
	if (tells && model_events_heard())
		tell_progress(m, done, all);
	return goes_on;
}
