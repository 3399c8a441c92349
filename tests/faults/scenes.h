/* tests/faults/scenes.h - the programs and modes that t_faults runs, and what each of them may do when a call fails. */
#ifndef TESTS_FAULTS_SCENES_H
#define TESTS_FAULTS_SCENES_H

#include <stdbool.h>

#include "tests/faults/ask.h"

/* What of the output is the same each time: all, all up to the timings, the number of lines and their ends, or that
 * there is some. */
enum said { EXACT, UP_TO_TIMINGS, LINES, ANYTHING };

struct scene {
	const char *command; /* %m: the story model; %t: a tiny one; %c: the cache, made as `cache` says; %k: a pack for
	                        the tiny one; %K, %G: keys of its kernels, %G for a card; %d: a folder; %a, %b: reports;
	                        %r: an answer of a server;
	                        %_: a space */
	enum said said;
	const char *cache;      /* "empty", or what of the kept ones is copied there */
	const char *file;       /* what it writes in %d; when it was there before, it is as it was or new, whole */
	const struct ask *asks; /* of a server: what it is asked before it stops */
	const char *told;       /* what it says instead of a part of its output that it could not have */
	int answer;             /* a status that says no, besides 0 and 1 */
	bool file_varies, long_one, longest; /* long_one: tried with fewer faults, and not in a quick run; longest: with
	                                        fewest, and in a full run alone */
	unsigned memory; /* so many allocations and mappings of it are refused in every run: that was not told once */
};

extern const struct scene scenes[];
extern const unsigned n_scenes;
/* What the server is asked whose answer %r is. */
extern const struct ask kept_answer;

#endif
