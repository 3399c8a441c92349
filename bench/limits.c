/* bench/limits.c - see limits.h. */
#include "bench/limits.h"

#include <stdio.h>
#include <string.h>

#include "bench/card_bandwidth.h"
#include "bench/throughput.h"
#include "programs/jitrun/bandwidth.h"
#include "runtime/model/model.h"

enum { READINGS = 3, PEAK_READINGS = 6, COLUMNS = 80 };

static bool open_host(struct limits *l, jit_model *m, int threads, jit_error *err)
{
	l->bandwidth = bandwidth_open(threads);
	l->peak = peak_open(threads);
	l->peak_kind = peak_of(m->target->name, test_operands(m));
	if (l->bandwidth && l->peak)
		return true;
	*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory to measure the machine with" };
	return false;
}

bool limits_open(struct limits *l, jit_model *m, int threads, jit_error *err)
{
	const struct device_facts *f = &m->device->facts;
	struct error e = { 0 };

	*l = (struct limits){ 0 };
	if (f->host_runs)
		return open_host(l, m, threads, err);
	if (f->clock == DEVICE_CLOCK_SIMULATOR)
		snprintf(l->none, sizeof l->none, "the card is simulated, and has no limits to compare with");
	else if (f->clock != DEVICE_CLOCK_CARD)
		snprintf(l->none, sizeof l->none, "the limits of such cards are not measured");
	else if (!(l->card = card_bandwidth_open(m->device, 0, &e)))
		snprintf(l->none, sizeof l->none, "%s", e.text);
	return true;
}

void limits_close(struct limits *l)
{
	card_bandwidth_close(l->card);
	peak_close(l->peak);
	bandwidth_close(l->bandwidth);
}

bool limits_have(const struct limits *l, enum limit_kind k) { return l->bandwidth || (l->card && k == LIMIT_MEMORY); }

const char *limits_name(const struct limits *l, enum limit_kind k)
{
	return !limits_have(l, k) ? "" : k == LIMIT_MEMORY ? "read bandwidth" : peak_name(l->peak_kind);
}

double limits_read(const struct limits *l, enum limit_kind k, jit_error *err)
{
	struct error e = { 0 };

	if (!limits_have(l, k))
		return 0;
	if (!l->card)
		return k == LIMIT_MEMORY ? bandwidth_sample(l->bandwidth, READINGS)
		                         : peak_sample(l->peak, l->peak_kind, PEAK_READINGS);
	double rate = card_bandwidth_sample(l->card, READINGS, &e);
	if (rate <= 0)
		model_report(err, &e);
	return rate > 0 ? rate : -1;
}

/* Every peak this CPU has, once: readers of a share may want to know of the others. */
static void print_host(const struct limits *l, double bandwidth)
{
	char text[160];
	int at = printf("\nread bandwidth %.1f GB/s (%s)", bandwidth / 1e9, bandwidth_pattern(l->bandwidth)) - 1;

	for (int k = 0; k < PEAK_COUNT; k++) {
		if (!peak_possible((enum peak_kind)k))
			continue;
		int n = snprintf(text, sizeof text, "%s %.0f Gop/s", peak_name((enum peak_kind)k),
		                 peak_sample(l->peak, (enum peak_kind)k, PEAK_READINGS) / 1e9);
		bool fits = at + 2 + n < COLUMNS;
		at = (fits ? at : 0) + 2 + n;
		printf(";%s%s", fits ? " " : "\n  ", text);
	}
	putchar('\n');
}

bool limits_print(const struct limits *l, jit_error *err)
{
	double bandwidth = limits_read(l, LIMIT_MEMORY, err);

	if (bandwidth < 0)
		return false;
	if (l->bandwidth)
		print_host(l, bandwidth);
	else if (l->card)
		printf("\nread bandwidth %.1f GB/s (the memory of %u card%s, %u blocks a multiprocessor)\n",
		       bandwidth / 1e9, card_bandwidth_cards(l->card), card_bandwidth_cards(l->card) == 1 ? "" : "s",
		       card_bandwidth_blocks(l->card));
	else
		printf("\nno share of a limit: %s\n", l->none);
	return true;
}
