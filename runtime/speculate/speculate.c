#include "runtime/speculate/speculate.h"

#include <math.h>
#include <string.h>

/* Matrices are multiplied in tiles of tokens, and one token more than a tile may cost as much as a tile more: 4, 8 and
 * 16, not one more than each. */
const uint32_t speculate_tokens[SPECULATE_WIDTHS] = { 1, 4, 8, 16 };

/* Agreement lengths with like chances, and what is believed of them before anything was seen: BELIEF drafts' worth.
 * Below DRAFT_SHORTEST are copies taken up again. */
static const struct {
	uint32_t from;
	double right;
} classes[SPECULATE_CLASSES] = { { 0, 0.2 },   { 1, 0.35 }, { 2, 0.2 },           { 3, 0.35 }, { 4, 0.5 },
	                         { 5, 0.6 },   { 6, 0.65 }, { 7, 0.7 },           { 9, 0.75 }, { 12, 0.8 },
	                         { 16, 0.85 }, { 24, 0.9 }, { DRAFT_REACH, 0.92 } };

#define BELIEF 4.0
#define MEMORY (1.0 - 1.0 / 48) /* counts fade with each draft of their class */
#define EARLY 6                 /* passes in a plain mean; later ones move it by this part */
#define OUTLIER 1.5 /* a longer pass counts as this many times what it may take: somebody took the core away */
#define HOPE 0.6    /* of what its tokens take one by one: the most that a width not measured is taken for */
#define STALE \
	(1.0 - 1.0 / 256) /* with each pass, times of other widths are believed less: sooner or later they are \
	                     measured again */
#define MARGIN 1.05       /* gain that is worth a change */
#define GRACE 1.0         /* plain passes' worth of time to begin with */
#define SAVINGS 8.0       /* the most that is kept of what was saved, in plain passes */
#define INCOME 0.005      /* of each plain pass */
enum { PASSAGE = 8 };     /* tokens that agree make a passage that is being copied */
enum { LOST = 64 };       /* so many tokens later it no longer is */
enum { RULED = 16 };      /* what rules say is believed like a copy that agreed in so many tokens */

/* Before a width was measured: a pass in times of a plain one, when no prompt pass says more. */
static const double draft_ratio[SPECULATE_WIDTHS] = { 1, 1.2, 1.5, 2.2 };

static unsigned class_of(uint32_t agreed)
{
	unsigned c = 0;

	while (c + 1 < SPECULATE_CLASSES && agreed >= classes[c + 1].from)
		c++;
	return c;
}

unsigned speculate_width(int tokens)
{
	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++)
		if (tokens == (int)speculate_tokens[w])
			return w;
	return 0;
}

bool speculate_open(struct speculate *s, const int32_t *ids, uint32_t context)
{
	return s->mode == SPECULATE_OFF || draft_open(&s->draft, ids, context);
}

void speculate_close(struct speculate *s)
{
	if (s->mode != SPECULATE_OFF)
		draft_close(&s->draft);
}

/* ---- what became of the drafts */

static void learn(struct speculate *s, uint32_t agreed, bool right)
{
	unsigned c = class_of(agreed);

	s->right[c] = s->right[c] * MEMORY + right;
	s->wrong[c] = s->wrong[c] * MEMORY + !right;
}

bool speculate_hit(struct speculate *s, uint64_t position, int32_t id)
{
	struct speculate_window *w = &s->window;
	uint64_t row = position - w->first;

	if (!w->tokens || row == 0 || row > w->drafts)
		return false;
	bool right = w->ids[row] == id;
	learn(s, w->from.length + (uint32_t)row - 1, right);
	if (right)
		w->right++;
	else
		w->drafts = 0, w->wrong = true;
	if (!right || row >= w->tokens)
		return false;
	s->accepted[s->width]++;
	s->balance += s->seconds[0];
	if (s->balance > SAVINGS * s->seconds[0])
		s->balance = SAVINGS * s->seconds[0];
	return true;
}

/* ---- what a pass takes */

/* Of widths not measured: by the passes of the prompt, but not so high that drafts that always come true would not be
 * tried; once a narrower width is known, no dearer in proportion. */
static void estimate(struct speculate *s)
{
	double plain = s->seconds[0], by_token = INFINITY;

	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++) {
		double drafts = speculate_tokens[w] - 1;
		if (s->measured[w]) {
			by_token = s->seconds[w] > plain ? (s->seconds[w] - plain) / drafts : 0;
			continue;
		}
		double t = fmax(draft_ratio[w] * plain, 0.5 * plain + speculate_tokens[w] * s->prompt_token);
		s->seconds[w] = fmin(fmin(t, HOPE * speculate_tokens[w] * plain), plain + drafts * by_token);
	}
}

void speculate_took(struct speculate *s, double seconds)
{
	double *mean = &s->seconds[s->width], plain = s->seconds[0], max = OUTLIER * speculate_tokens[s->width] * plain;
	uint32_t seen = s->measured[s->width]++;

	if (s->width == 0 && seen == 0)
		s->balance = GRACE * (*mean = plain = max = seconds);
	if (s->measured[0] && seconds > max)
		seconds = max;
	if (s->width)
		s->balance -= seconds - plain;
	else if (s->balance < GRACE * plain)
		s->balance += INCOME * plain;
	if (seen == 0)
		*mean = seconds < *mean ? seconds : *mean; /* the first touches new memory */
	else if (seen < EARLY)
		*mean += (seconds - *mean) / seen;
	else
		*mean += ((seconds < OUTLIER * *mean ? seconds : OUTLIER * *mean) - *mean) / EARLY;
	for (unsigned w = 0; w < SPECULATE_WIDTHS; w++)
		s->trust[w] = w == s->width ? 1 : s->trust[w] * STALE;
	estimate(s);
}

void speculate_again(struct speculate *s, double seconds)
{
	unsigned w = s->before;
	double max = OUTLIER * fmax(speculate_tokens[w] * s->seconds[0], s->seconds[w]);
	uint32_t seen = s->measured[w] < EARLY ? s->measured[w] : EARLY;

	s->before = 0;
	if (!w || !seen)
		return;
	seconds = seconds < max ? seconds : max;
	s->balance -= seconds;
	s->again[w] += (seconds - s->again[w]) / seen;
}

void speculate_prompt_took(struct speculate *s, uint32_t tokens, double seconds)
{
	double each = seconds / tokens;

	if (tokens > SPECULATE_MAX && (s->prompt_token == 0 || each < s->prompt_token))
		s->prompt_token = each;
}

/* ---- the next pass */

static uint32_t drafts_of(const struct speculate *s, unsigned width)
{
	uint32_t max = speculate_tokens[width] - 1;

	return max < s->window.drafts ? max : s->window.drafts;
}

/* How many tokens a pass of that width should give, of all drafts that there are. An agreement grows with each draft
 * that comes true, so the chance of each further draft is that of a longer agreement. */
static double expected_tokens(const struct speculate *s, unsigned width)
{
	double all = 1, tokens = 1;
	uint32_t drafts = drafts_of(s, width);

	for (uint32_t n = 0; n < drafts; n++) {
		unsigned c = class_of(s->window.from.length + n);
		all *= (s->right[c] + BELIEF * classes[c].right) / (s->right[c] + s->wrong[c] + BELIEF);
		tokens += all;
	}
	return tokens;
}

/* The width that makes the most tokens in a second. */
static unsigned best_width(const struct speculate *s, uint32_t room)
{
	double plain = s->seconds[0] * s->trust[0], max = MARGIN / plain, again = 0;
	unsigned best = 0;

	if (s->balance <= 0)
		return 0;
	for (unsigned w = 1; w < SPECULATE_WIDTHS && speculate_tokens[w] <= room; w++) {
		again = s->measured[w] ? s->again[w] : again; /* of a width not measured: as of a narrower one */
		double t = s->measured[w] ? s->seconds[w] * s->trust[w] : s->seconds[w],
		       rate = expected_tokens(s, w) / ((t > plain ? t : plain) + again);
		if (rate > max) {
			max = rate;
			best = w;
		}
	}
	return best;
}

/* Of all sequences in the pass together. */
static unsigned best_width_beside(const struct speculate *s, uint32_t room, const struct speculate_company *others)
{
	double max = MARGIN * (others->tokens + 1) / others->seconds[0];
	unsigned best = 0;

	for (unsigned w = 1; w < SPECULATE_WIDTHS && speculate_tokens[w] <= room; w++) {
		double tokens = others->tokens + expected_tokens(s, w),
		       rate = tokens / fmax(others->seconds[w], others->seconds[0]);
		if (rate > max) {
			max = rate;
			best = w;
		}
	}
	return best;
}

/* What lies between the passage and where the window took it up again: the copy said something else there. False: that
 * is elsewhere, or far away. */
static bool note_change(struct speculate *s)
{
	const struct speculate_window *w = &s->window;
	uint32_t length = (uint32_t)w->first + 1, same = w->from.length;

	if (!s->copied_to || w->from.next < s->copied_from || length < s->copied_to)
		return false;
	uint32_t was = w->from.next - s->copied_from, is = length - s->copied_to, max = was < is ? was : is;
	if (same > max)
		same = max;
	if (was - same > DRAFT_CHANGE_MAX || is - same > DRAFT_CHANGE_MAX)
		return false;
	draft_note_change(&s->draft, s->copied_from, was - same, s->copied_to, is - same);
	return true;
}

/* What became of the window says whether a passage is being copied; what is copied in between, a name that is always
 * the same, is too short to be one, unless it lies where the passage would go on. */
static void note_passage(struct speculate *s)
{
	const struct speculate_window *w = &s->window;
	uint32_t seen = w->from.length + w->right;

	if (!w->tokens || w->ruled || !(w->right || w->wrong))
		return;
	uint32_t made = w->from.made + w->right;
	struct draft_standing now = draft_standing(&s->draft, w->from, made);
	if (w->wrong && now.change)
		draft_doubt_change(&s->draft, now.change, now.next);
	if (!w->right || (!w->from.made && !note_change(s) && seen < PASSAGE))
		return;
	s->copied_to = (uint32_t)w->first + 1 - w->from.made + now.made;
	s->copied_from = now.next;
	s->copied = seen - (made - now.made);
}

/* Where the passage goes on, with its changes, or would without what came since. False: there is none, or it is long
 * ago. */
static bool resume(const struct speculate *s, uint32_t length, struct draft_match *from)
{
	uint32_t since = length - s->copied_to, expected = s->copied_from + since;

	if (!s->copied_to || length < s->copied_to || since > LOST || expected >= length)
		return false;
	if (draft_follows(&s->draft, s->copied_from, s->copied_to))
		*from = (struct draft_match){ s->copied + since, s->copied_from, since };
	else
		*from = draft_resume(&s->draft, expected);
	return true;
}

/* From the place that agrees in more tokens; from the passage's rather than from another. */
static bool find_copy(struct speculate *s, uint32_t length)
{
	struct draft_match *from = &s->window.from, again;

	*from = draft_find(&s->draft);
	bool resumed = resume(s, length, &again) && again.length >= from->length;
	if (resumed)
		*from = again;
	return resumed || from->length;
}

/* A copy as far as the rules allow it; what they say themselves, unless the copy says that and more. Fills the window's
 * ids and drafts. */
static void find_drafts(struct speculate *s, uint32_t length)
{
	struct speculate_window *w = &s->window;
	const struct speculate_rules *r = s->rules;
	int32_t ruled[SPECULATE_MAX];
	uint32_t same = 0, guessed = r ? r->guess(r->user, ruled, SPECULATE_MAX - 1) : 0;

	w->drafts = find_copy(s, length) ? SPECULATE_MAX - 1 : 0;
	draft_copy(&s->draft, w->from, w->ids + 1, w->drafts);
	if (r && w->drafts)
		w->drafts = r->fit(r->user, w->ids + 1, w->drafts);
	while (same < guessed && same < w->drafts && w->ids[1 + same] == ruled[same])
		same++;
	w->ruled = same < guessed;
	if (!w->ruled)
		return;
	memcpy(w->ids + 1, ruled, guessed * sizeof *ruled);
	memset(w->ids + 1 + guessed, 0, (SPECULATE_MAX - 1 - guessed) * sizeof *ruled);
	w->drafts = guessed;
	w->from = (struct draft_match){ .length = RULED };
}

static unsigned choose_width(const struct speculate *s, uint32_t room, const struct speculate_company *others)
{
	if (s->mode == SPECULATE_FIXED)
		return speculate_tokens[s->fixed] <= room ? s->fixed : 0;
	if (others)
		return others->seconds[0] > 0 ? best_width_beside(s, room, others) : 0;
	return s->measured[0] ? best_width(s, room) : 0;
}

const struct speculate_window *speculate_next(struct speculate *s, uint32_t length, uint32_t room)
{
	return speculate_next_beside(s, length, room, NULL);
}

const struct speculate_window *speculate_next_beside(struct speculate *s, uint32_t length, uint32_t room,
                                                     struct speculate_company *others)
{
	struct speculate_window *w = &s->window;

	note_passage(s);
	draft_extend(&s->draft, length);
	s->before = s->window.tokens > 1 ? s->width : 0;
	find_drafts(s, length);
	s->width = w->drafts ? choose_width(s, room, others) : 0;
	if (others)
		others->tokens += expected_tokens(s, s->width);
	w->first = length - 1;
	w->tokens = speculate_tokens[s->width];
	w->right = 0;
	w->wrong = false;
	w->drafts = s->width ? drafts_of(s, s->width) : w->drafts ? 1 : 0;
	w->ids[0] = s->draft.ids[length - 1];
	s->passes[s->width]++;
	s->drafted[s->width] += w->tokens > 1 ? w->drafts : 0;
	return w;
}

void speculate_drop(struct speculate *s) { s->window.tokens = 0; }

void speculate_rewind(struct speculate *s, uint32_t n)
{
	if (s->mode != SPECULATE_OFF)
		draft_rewind(&s->draft, n);
	speculate_drop(s);
	if (s->copied_to > n)
		s->copied_to = 0;
}
