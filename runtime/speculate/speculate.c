#include "runtime/speculate/speculate_parts.h"

#include <string.h>

enum { PASSAGE = 8 }; /* tokens that agree make a passage that is being copied */
enum { LOST = 64 };   /* so many tokens later it no longer is */
enum { RULED = 16 };  /* what rules say is believed like a copy that agreed in so many tokens */
#define SAVINGS 8.0   /* the most that is kept of what was saved, in plain passes */

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

bool speculate_hit(struct speculate *s, uint64_t position, int32_t id)
{
	struct speculate_window *w = &s->window;
	uint64_t row = position - w->first;

	if (!w->tokens || row == 0 || row > w->drafts)
		return false;
	bool right = w->ids[row] == id;
	speculate_learn(s, w->class[row], right);
	if (right)
		w->right++;
	else
		w->drafts = 0, w->wrong = true;
	if (!right || row >= w->tokens)
		return false;
	s->accepted[s->width]++;
	s->ask.accepted += w->source == SPECULATE_MODEL;
	s->balance += s->seconds[0];
	if (s->balance > SAVINGS * s->seconds[0])
		s->balance = SAVINGS * s->seconds[0];
	return true;
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

	if (!w->tokens || w->source != SPECULATE_COPY || !(w->right || w->wrong))
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
	w->source = same < guessed ? SPECULATE_RULES : SPECULATE_COPY;
	if (w->source == SPECULATE_COPY)
		return;
	memcpy(w->ids + 1, ruled, guessed * sizeof *ruled);
	memset(w->ids + 1 + guessed, 0, (SPECULATE_MAX - 1 - guessed) * sizeof *ruled);
	w->drafts = guessed;
	w->from = (struct draft_match){ .length = RULED };
}

/* What the last asking gave is known when its drafts were all compared. */
static void end_asking(struct speculate *s)
{
	const struct speculate_window *w = &s->window;
	uint32_t tokens = w->right + 1 < w->tokens ? w->right + 1 : w->tokens;

	if (s->ask.now)
		ask_over(&s->ask, w->right >= w->drafts ? tokens : 0);
}

/* Drafts that cost nothing, once for each text. */
void speculate_refresh(struct speculate *s, uint32_t length)
{
	struct speculate_window *w = &s->window;

	if (s->fresh == length)
		return;
	s->fresh = length;
	note_passage(s);
	end_asking(s);
	draft_extend(&s->draft, length);
	find_drafts(s, length);
	for (uint32_t i = 0; i < w->drafts; i++)
		w->class[1 + i] = (uint8_t)speculate_class(w->from.length + i);
}

/* ---- the next window */

const struct speculate_window *speculate_next(struct speculate *s, uint32_t length, uint32_t room)
{
	return speculate_next_beside(s, length, room, NULL);
}

const struct speculate_window *speculate_next_beside(struct speculate *s, uint32_t length, uint32_t room,
                                                     struct speculate_company *others)
{
	struct speculate_window *w = &s->window;
	double ignored;

	s->before = w->tokens > 1 ? s->width : 0;
	speculate_refresh(s, length);
	s->width = w->drafts ? speculate_choose(s, room, others, &ignored) : 0;
	if (others)
		others->tokens += speculate_expected(s, s->width);
	w->first = length - 1;
	w->tokens = speculate_tokens[s->width];
	w->right = 0;
	w->wrong = false;
	w->drafts = s->width ? speculate_drafts(s, s->width) : w->drafts ? 1 : 0;
	w->ids[0] = s->draft.ids[length - 1];
	s->passes[s->width]++;
	s->drafted[s->width] += w->tokens > 1 ? w->drafts : 0;
	s->ask.used += w->tokens > 1 && w->source == SPECULATE_MODEL ? w->drafts : 0;
	return w;
}

void speculate_drop(struct speculate *s)
{
	end_asking(s);
	s->window.tokens = s->fresh = 0;
}

void speculate_rewind(struct speculate *s, uint32_t n)
{
	if (s->mode != SPECULATE_OFF)
		draft_rewind(&s->draft, n);
	speculate_drop(s);
	if (s->copied_to > n)
		s->copied_to = 0;
}
