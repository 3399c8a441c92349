/* server/ollama/ollama_time.c - times and durations as Go's libraries write them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_read.h"
#include "server/ollama/ollama_time.h"

void ollama_time(char out[OLLAMA_TIME], int64_t seconds, long nanoseconds)
{
	const time_t t = (time_t)seconds;
	struct tm day;

	if (!gmtime_r(&t, &day) || day.tm_year > 9999 - 1900 || day.tm_year < -1900) {
		snprintf(out, OLLAMA_TIME, "0001-01-01T00:00:00Z");
		return;
	}
	const size_t n = strftime(out, OLLAMA_TIME, "%Y-%m-%dT%H:%M:%S", &day);
	snprintf(out + n, OLLAMA_TIME - n, ".%06ldZ", nanoseconds / 1000);
}

void ollama_now(char out[OLLAMA_TIME])
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	ollama_time(out, t.tv_sec, t.tv_nsec);
}

json_t *ollama_nanoseconds(double seconds)
{
	const double n = seconds * 1e9;

	return json_integer(n > 0 && n < 0x1p63 ? (json_int_t)n : 0);
}

/* Digits with one point at most: strtod() knows more. */
static const char *number_at(const char *p, double *out)
{
	const size_t whole = strspn(p, "0123456789"),
		     part = p[whole] == '.' ? 1 + strspn(p + whole + 1, "0123456789") : 0;

	if (whole + (part ? part - 1 : 0) == 0 || whole + part > 40)
		return NULL;
	char text[48];
	snprintf(text, sizeof text, "%.*s", (int)(whole + part), p);
	*out = strtod(text, NULL);
	return p + whole + part;
}

/* What time.ParseDuration() of Go takes, and a number without a unit, which is of seconds. */
static bool parse(const char *p, double *seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "\xc2\xb5s", 1e-6 }, { "\xce\xbcs", 1e-6 },
		      { "ms", 1e-3 }, { "s", 1 },     { "m", 60 },           { "h", 3600 } };
	const bool minus = *p == '-';
	double sum = 0, n;

	p += *p == '-' || *p == '+';
	const char *end = number_at(p, &n);
	if (end && !*end) {
		*seconds = minus ? -n : n;
		return true;
	}
	if (!*p)
		return false;
	while (*p) {
		size_t u = 0;
		if (!(p = number_at(p, &n)))
			return false;
		while (u < sizeof units / sizeof *units && strncmp(p, units[u].name, strlen(units[u].name)) != 0)
			u++;
		if (u == sizeof units / sizeof *units)
			return false;
		sum += n * units[u].seconds;
		p += strlen(units[u].name);
	}
	*seconds = minus ? -sum : sum;
	return true;
}

bool ollama_duration(const json_t *v, const char *name, double *seconds, struct refusal *r)
{
	const char *text = json_string_value(v);

	if (json_is_number(v) && !json_not_finite(v)) {
		*seconds = json_number_value(v);
		return true;
	}
	if (text && strlen(text) == json_string_length(v) && parse(text, seconds))
		return true;
	return refuse(r, 400, name,
	              text ? "%s is \"%.60s\", expected seconds or a duration such as \"5m\""
	                   : "%s is %s, expected seconds or a duration such as \"5m\"",
	              name, text ? text : json_kind(v));
}
