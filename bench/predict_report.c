/* bench/predict_report.c - what jitrun doctor --report measured on a card, as constants of a prediction. See predict.h.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "bench/json_file.h"
#include "bench/predict.h"

enum { UNITS_MAX = 1024, MHZ_MAX = 10000, REPORT_MAX = 1 << 24 };
#define SECONDS_MAX 10.0
#define BANDWIDTH_MAX 1e14

/* A number above 0 and not above `max`. `optional`: it may lack, and *out stays. False: err. */
static bool number(const json_t *in, const char *name, double max, bool optional, double *out, const char *path,
                   struct error *err)
{
	const json_t *v = json_object_get(in, name);

	if (optional && (!v || json_is_null(v)))
		return true;
	if (!json_is_number(v))
		return error_set(err, ERROR_FORMAT,
		                 "%s: %s is %s, expected a number: is it a report of jitrun doctor --report that got "
		                 "to its end?",
		                 path, name, v ? "no number" : "not there");
	if (!(json_number_value(v) > 0 && json_number_value(v) <= max))
		return error_set(err, ERROR_FORMAT, "%s: %s is %g, expected a number above 0, at most %g", path, name,
		                 json_number_value(v), max);
	*out = json_number_value(v);
	return true;
}

/* What the card calls itself, as far as it can be printed. */
static void take_name(struct predict_measured *m, const char *name)
{
	size_t n = 0;

	for (; name && *name && n + 1 < sizeof m->name; name++)
		if (*name > ' ' - 1 && *name < 0x7f)
			m->name[n++] = *name;
	m->name[n] = 0;
}

static bool take_card(struct predict_measured *m, const json_t *card, const char *target, const char *path,
                      struct error *err)
{
	const char *of = json_string_value(json_object_get(card, "target"));
	double units = 0, mhz = 0;

	if (!of)
		return error_set(err, ERROR_FORMAT,
		                 "%s: card.target is not there, expected \"%s\": the report is of no "
		                 "card",
		                 path, target);
	if (strcmp(of, target) != 0)
		return error_set(err, ERROR_ARGUMENT, "%s is of a card of target \"%.32s\", and --device is sim:%s",
		                 path, of, target);
	if (!number(card, "units", UNITS_MAX, false, &units, path, err) ||
	    !number(card, "clock_mhz", MHZ_MAX, true, &mhz, path, err) ||
	    !number(card, "bandwidth", BANDWIDTH_MAX, true, &m->bandwidth, path, err))
		return false;
	m->units = (unsigned)units;
	m->clock = mhz * 1e6;
	take_name(m, json_string_value(json_object_get(card, "name")));
	return true;
}

bool predict_report_read(struct predict_measured *out, const char *path, const char *target, struct error *err)
{
	json_t *root = json_file_read(path, REPORT_MAX, err);

	*out = (struct predict_measured){ .units = 0 };
	if (!root)
		return false;
	if (!json_is_object(root)) {
		json_decref(root);
		return error_set(err, ERROR_FORMAT, "%s: it is no JSON object", path);
	}
	const json_t *passes = json_object_get(root, "large_model");
	bool ok = take_card(out, json_object_get(root, "card"), target, path, err) &&
	          number(root, "launch_seconds", SECONDS_MAX, false, &out->launch, path, err) &&
	          number(root, "barrier_seconds", SECONDS_MAX, false, &out->barrier, path, err) &&
	          (!passes ||
	           number(json_array_get(passes, 0), "bytes_per_second", BANDWIDTH_MAX, false, &out->read, path, err));
	json_decref(root);
	return ok;
}
