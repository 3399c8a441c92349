/* server/control/slot_actions.c - POST /slots/N: what a place held is saved, restored or erased, as llama.cpp's server
 * has it.
 *
 * Owns: which files a client may name: those in the folder of --slot-save, and none elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/request/request_fields.h"
#include "server/http/server.h"

enum { MAX_OF_NAME = 200 };

struct slot_reply {
	struct reply base;
	enum slot_action action;
	unsigned slot;
	char file[MAX_OF_NAME + 1];
	struct run_numbers numbers; /* prompt: tokens; generated: bytes of the file */
};

static void take(struct reply *r, const struct answer_event *item, const jit_logprob *top, const char *text)
{
	struct slot_reply *o = (struct slot_reply *)(void *)r;
	(void)top;
	(void)text;

	if (item->kind == EVENT_TOKEN)
		o->numbers = item->numbers;
}

static void end(struct reply *r)
{
	static const char *const tokens[] = { "", "n_saved", "n_restored", "n_erased" };
	static const char *const bytes[] = { "", "n_written", "n_read", NULL };
	static const char *const times[] = { "", "save_ms", "restore_ms", NULL };
	const struct slot_reply *o = (const struct slot_reply *)(const void *)r;
	json_t *j = json_object(), *t = json_object();

	json_put(j, "id_slot", json_integer(o->slot));
	if (o->file[0])
		json_put(j, "filename", json_string(o->file));
	json_put(j, tokens[o->action], json_integer((json_int_t)o->numbers.prompt));
	if (bytes[o->action])
		json_put(j, bytes[o->action], json_integer((json_int_t)o->numbers.generated));
	if (times[o->action])
		json_put(t, times[o->action], json_number(1e3 * o->numbers.prompt_seconds));
	json_put(j, "timings", t);
	bytes_take(&r->out, json_write(j));
}

static void fail(struct reply *r, const struct refusal *why) { bytes_take(&r->out, refusal_json(why)); }

static void close_reply(struct reply *r) { free(r); }

static const struct reply_kind slot_kind = { take, end, fail, close_reply };

/* ---- the request */

static bool read_slot(struct slot_reply *o, const char *text, unsigned slots, struct refusal *r)
{
	size_t n = strspn(text, "0123456789");

	if (n == 0 || n > 6 || text[n] || strtoul(text, NULL, 10) >= slots)
		return refuse(r, 400, "id_slot", "There is no slot \"%s\", expected 0 to %u.", text, slots - 1);
	o->slot = (unsigned)strtoul(text, NULL, 10);
	return true;
}

static bool read_action(struct slot_reply *o, const char *text, struct refusal *r)
{
	static const char *const words[] = { "save", "restore", "erase" };

	for (int i = 0; text && i < 3; i++)
		if (strcmp(text, words[i]) == 0) {
			o->action = (enum slot_action)(i + 1);
			return true;
		}
	return refuse(r, 400, "action", "action is %s, expected save, restore or erase", text ? text : "missing");
}

/* One name, of a file that is not hidden: nothing in it leads out of a folder. */
static bool is_plain_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 127 || strchr("/\\:", name[i]))
			return false;
	return n && n <= MAX_OF_NAME && name[0] != '.' && name[0] != ' ' && name[n - 1] != ' ' && name[n - 1] != '.';
}

static bool read_file_name(struct slot_reply *o, const json_t *body, struct refusal *r)
{
	const char *name = NULL;

	if (o->action == SLOT_ERASE)
		return true;
	if (!field_text(body, "filename", &name, r))
		return false;
	if (!name)
		return refuse(r, 400, "filename", "filename is missing");
	if (!is_plain_name(name))
		return refuse(
			r, 400, "filename",
			"filename is \"%.100s\", expected the name of a file, of at most %d bytes, without a path",
			name, MAX_OF_NAME);
	snprintf(o->file, sizeof o->file, "%s", name);
	return true;
}

static bool begin(struct exchange *x, const struct served *m, struct slot_reply *o)
{
	struct task *t = task_open(m);
	const char *folder = x->server->o.slot_folder;
	size_t n = strlen(folder) + sizeof o->file + 1;
	bool ok = t && (!o->file[0] || (t->file = malloc(n)));

	if (ok) {
		t->action = o->action;
		t->slot = (int)o->slot;
		t->files = x->server->o.slot_limits;
		if (t->file)
			snprintf(t->file, n, "%s/%s", folder, o->file);
		ok = generate(x, &o->base, m, &t, 1);
	} else {
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
		reply_close(&o->base);
	}
	task_release(t);
	return ok;
}

/* The body may be empty, as nothing of it is needed to erase. */
bool answer_slot_action(struct exchange *x)
{
	const char *name = exchange_argument(x, "model");
	struct slot_reply *o = calloc(1, sizeof *o);
	struct refusal *r = &x->refusal;
	json_t *body = x->body.n ? request_read(x->body.p, x->body.n, REQUEST_SLOT, r) : json_object();

	bool ok = o != NULL && body != NULL;
	if (!ok)
		refuse(r, 503, NULL, "There is no memory for this request.");
	if (ok && !x->server->o.slot_folder)
		ok = refuse(r, 501, NULL, "Slots are not saved here; --slot-save names a folder for that.");
	if (ok && name && !field_value(body, "model"))
		json_put(body, "model", json_text(name, strlen(name)));
	ok = ok && read_action(o, exchange_argument(x, "action"), r) && read_file_name(o, body, r);
	const struct served *m = ok ? exchange_model_of(x, body) : NULL;
	ok = m && read_slot(o, x->rest, batcher_parallel(m->batcher), r);
	if (ok)
		o->base.kind = &slot_kind;
	ok = ok && begin(x, m, o);
	if (!x->reply && o && !o->base.kind)
		free(o);
	json_decref(body);
	return ok;
}
