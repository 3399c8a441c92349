#include "programs/common/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "programs/common/output.h"

enum { BAR_MAX = 30, LINE = 200 };
static const double first_after = 0.2, between = 0.1, guess_after = 1;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(struct progress *p, const char *what, const char *unit, bool wanted)
{
	*p = (struct progress){
		.what = what, .unit = unit, .begun = seconds(), .wanted = wanted && isatty(STDERR_FILENO) != 0
	};
}

/* "loading 1.2 of 2.4 GB", "prompt 512 of 1606 tokens". */
static int write_amount(const struct progress *p, uint64_t done, uint64_t total, char *out, size_t size)
{
	const char *unit = total >= 1000000000 ? "GB" : "MB";
	double scale = total >= 1000000000 ? 1e9 : 1e6;

	return p->unit ? snprintf(out, size, "%s %llu of %llu %s ", p->what, (unsigned long long)done,
	                          (unsigned long long)total, p->unit)
	               : snprintf(out, size, "%s %.1f of %.1f %s ", p->what, (double)done / scale,
	                          (double)total / scale, unit);
}

static void write_left(double left, char *out, size_t size)
{
	if (left >= 100)
		snprintf(out, size, " %.0f min left", left / 60);
	else
		snprintf(out, size, " %.0f s left", left);
}

void progress_show(struct progress *p, uint64_t done, uint64_t total)
{
	char line[LINE], left[40] = "";
	double now = p->wanted ? seconds() : 0, part = total ? (double)done / (double)total : 1, gone = now - p->begun,
	       came = done > p->from ? (double)(done - p->from) : 0;
	int n, bar;

	if (!p->wanted || now - p->begun < first_after || now - p->shown < between)
		return;
	p->shown = now;
	n = write_amount(p, done, total, line, sizeof line);
	if (p->rate && gone > 0)
		n += snprintf(line + n, sizeof line - (size_t)n, "at %.1f MB/s ", came / gone / 1e6);
	if (gone > guess_after && came > 0)
		write_left(gone * (double)(total - done) / came, left, sizeof left);
	bar = output_columns(stderr) - n - 16; /* of which the time takes most */
	bar = bar > BAR_MAX ? BAR_MAX : bar;
	if (bar > 4) {
		line[n++] = '[';
		for (int i = 0; i < bar; i++)
			line[n++] = i < (int)(part * bar) ? '#' : '.';
		line[n++] = ']';
	}
	n += snprintf(line + n, sizeof line - (size_t)n, "%s", left);
	fprintf(stderr, "\r%s%*s", line, p->width > n ? p->width - n : 0, "");
	fflush(stderr);
	p->width = n;
}

void progress_end(struct progress *p)
{
	if (p->width)
		fprintf(stderr, "\r%*s\r", p->width, "");
	p->width = 0;
}
