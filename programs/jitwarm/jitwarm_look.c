/* programs/jitwarm/jitwarm_look.c - jitwarm show prints a kernel. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfile.h"
#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/engine/report.h"

/* ---- show */

struct shown {
	struct key key;
	char text[KEY_TEXT_MAX];
	struct object fresh, stored;
	struct compile_stats stats;
	char *ir, *listing;
	size_t ir_bytes, listing_bytes;
	bool kept;
	char path[4096];
	enum record_answer answer;
	struct error why; /* of the cache, which need not be there */
	double gain;      /* of its schedule, where this machine was tuned; 0: not known */
	json_t *drivers;  /* what drivers made of it: by whom, how large, where */
};

static bool make_shown(struct shown *s, struct error *err)
{
	struct memfile ir, listing;
	bool open = memfile_open(&ir);
	bool ok = memfile_open(&listing) && open;
	struct compile_options o = { .dump_ir = ir.out, .dump_asm = listing.out };

	ok = ok && compile_key(&s->fresh, &s->key, template_build, &o, &s->stats, err);
	s->ir = memfile_take(&ir, &s->ir_bytes);
	s->listing = memfile_take(&listing, &s->listing_bytes);
	return ok && s->ir && s->listing ? true : error_set(err, ERROR_MEMORY, "no memory for a listing");
}

static bool note_driver(const struct cache_item *i, void *user)
{
	struct shown *s = user;
	struct driver_code by;
	struct key text = i->key;
	char name[DRIVER_CODE_TEXT_MAX];

	text.codegen = s->key.codegen;
	if (i->readable && driver_code_is(&i->key, &by) && key_equal(&text, &s->key))
		json_array_append_new(s->drivers,
		                      json_pack("{s:s, s:I, s:o}", "driver", driver_code_text(by, name), "code_bytes",
		                                (json_int_t)i->code_bytes, "path", output_string(i->path)));
	return true;
}

/* No cache is no reason not to show what would be made. */
static void look_up(struct shown *s)
{
	struct cache *c = warm_open_cache(true, &s->why);
	unsigned source;

	s->answer = c ? cache_load(c, &s->key, &s->stored, &source, &s->why) : RECORD_FAILED;
	if (s->answer == RECORD_FOUND) {
		struct cache_source from;
		cache_source_get(c, source, &from);
		snprintf(s->path, sizeof s->path, "%s", from.path);
		s->kept = true;
	}
	if (c)
		cache_each(c, note_driver, s, &s->why);
	cache_close(c);
	s->gain = warm_tuned_gain(&s->key);
}

/* Every line a comment to an assembler. */
static void print_comments(const char *text)
{
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");
		printf("# %.*s\n", (int)n, at);
		at += n + (at[n] == '\n');
	}
}

static void print_shown(const struct shown *s, bool same)
{
	const struct object *o = &s->fresh;
	char name[TEMPLATE_SCHEDULE_NAME], path[4096];
	json_t *d;
	size_t i;

	printf("# %s\n# %s", s->text, template_schedule_name(&s->key, name, sizeof name));
	if (s->gain > 0)
		printf("; measured here: %.2f times as fast as the default", s->gain);
	printf("\n# %" PRIu32 " bytes, %" PRIu32 " of them constants; frame %" PRIu32 " bytes", o->code_bytes,
	       o->code_bytes - o->pool_offset, o->frame_bytes);
	if (o->shared_bytes)
		printf(", shared %" PRIu32 " bytes", o->shared_bytes);
	printf("\n# registers: %u vector, %u scalar, %u mask; %" PRIu32 " spills, %" PRIu32 " in inner loops\n",
	       o->vector_regs, o->scalar_regs, o->mask_regs, s->stats.spills, s->stats.spills_in_inner_loops);
	printf("# %" PRIu32 " IR instructions, %" PRIu32 " machine instructions\n", s->stats.ir_instructions,
	       s->stats.machine_instructions);
	if (s->kept)
		printf("# in the cache, %s: %s\n", error_quote(path, sizeof path, s->path, strlen(s->path)),
		       same ? "the same code" : "NOT the same code");
	else if (s->answer == RECORD_FAILED)
		printf("# whether it is in the cache is not known: %s\n", s->why.text);
	else
		printf("# %s\n", s->answer == RECORD_DAMAGED ? "in the cache, but damaged" : "not in the cache");
	json_array_foreach(s->drivers, i, d)
		printf("# a driver's code of it (%s), %lld bytes, is in the cache\n",
	               json_string_value(json_object_get(d, "driver")),
	               (long long)json_integer_value(json_object_get(d, "code_bytes")));
	printf("#\n");
	print_comments(s->ir);
	fwrite(s->listing, 1, s->listing_bytes, stdout);
}

static void print_shown_json(const struct shown *s, bool same)
{
	const struct object *o = &s->fresh;
	json_t *j = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:{s:i, s:i, s:i}, s:I, s:I, s:I, s:I, s:o, s:b, s:s%, s:s%}", "key",
		s->text, "code_bytes", (json_int_t)o->code_bytes, "constant_bytes",
		(json_int_t)(o->code_bytes - o->pool_offset), "frame_bytes", (json_int_t)o->frame_bytes, "shared_bytes",
		(json_int_t)o->shared_bytes, "registers", "vector", o->vector_regs, "scalar", o->scalar_regs, "mask",
		o->mask_regs, "spills", (json_int_t)s->stats.spills, "spills_in_inner_loops",
		(json_int_t)s->stats.spills_in_inner_loops, "ir_instructions", (json_int_t)s->stats.ir_instructions,
		"machine_instructions", (json_int_t)s->stats.machine_instructions, "path",
		s->kept ? output_string(s->path) : json_null(), "same", same, "ir", s->ir, s->ir_bytes, "listing",
		s->listing, s->listing_bytes);
	report_schedule(j, &s->key);
	if (json_array_size(s->drivers))
		json_object_set(j, "drivers", s->drivers);
	if (s->gain > 0)
		json_object_set_new(j, "tuned_gain", output_real(s->gain));
	json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

int warm_show(void)
{
	struct error e = { 0 };
	struct shown s = { .kept = false, .drivers = NULL };

	if (!key_parse(&s.key, warm.operand[0]) || !s.key.target) {
		fprintf(stderr,
		        "jitwarm: \"%.180s\" is not the key of a kernel, such as norm.k1024.q8out.avx2; 'jitwarm list' "
		        "and 'jitwarm explain' print keys\nTry 'jitwarm --help'.\n",
		        warm.operand[0]);
		return WARM_USAGE;
	}
	s.drivers = json_array();
	key_text(&s.key, s.text, sizeof s.text);
	bool ok = make_shown(&s, &e), same = false;
	if (ok) {
		look_up(&s);
		same = s.kept && record_same(&s.fresh, &s.stored);
		(warm.json ? print_shown_json : print_shown)(&s, same);
	}
	object_free(&s.fresh);
	object_free(&s.stored);
	free(s.ir);
	free(s.listing);
	json_decref(s.drivers);
	return !ok ? warm_fail(&e) : (s.kept && !same) || s.answer == RECORD_DAMAGED ? WARM_NO : WARM_DONE;
}
