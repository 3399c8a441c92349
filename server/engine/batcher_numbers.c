/* server/engine/batcher_numbers.c - what a batcher counts, and what its options come to. */
#include "server/engine/batcher.h"
#include "server/engine/choice.h"

void batcher_numbers_count(struct batcher_numbers *n, const struct choice *c)
{
	n->running--;
	n->ended += c->outcome == CHOICE_ENDED;
	n->failed += c->outcome == CHOICE_FAILED;
	n->cancelled += c->outcome == CHOICE_CANCELLED;
	n->dropped += c->outcome == CHOICE_DROPPED;
	n->prompt_tokens += c->numbers.prompt;
	n->reused_tokens += c->numbers.reused;
	n->generated_tokens += c->numbers.generated;
	n->drafted += c->numbers.drafted;
	n->accepted += c->numbers.accepted;
	n->draft_requests += c->numbers.draft_requests;
	n->draft_proposed += c->numbers.draft_proposed;
	n->draft_accepted += c->numbers.draft_accepted;
	n->draft_seconds += c->numbers.draft_seconds;
	n->prompt_seconds += c->numbers.prompt_seconds;
	n->decode_seconds += c->numbers.decode_seconds;
}

void batcher_numbers_add(struct batcher_numbers *to, const struct batcher_numbers *past)
{
	to->started += past->started;
	to->ended += past->ended;
	to->failed += past->failed;
	to->lost += past->lost;
	to->cancelled += past->cancelled;
	to->dropped += past->dropped;
	to->refused += past->refused;
	to->prompt_tokens += past->prompt_tokens;
	to->reused_tokens += past->reused_tokens;
	to->generated_tokens += past->generated_tokens;
	to->drafted += past->drafted;
	to->accepted += past->accepted;
	to->draft_requests += past->draft_requests;
	to->draft_proposed += past->draft_proposed;
	to->draft_accepted += past->draft_accepted;
	to->draft_seconds += past->draft_seconds;
	to->prompt_seconds += past->prompt_seconds;
	to->decode_seconds += past->decode_seconds;
	to->bits_checked += past->bits_checked;
	to->bits_wrong += past->bits_wrong;
	to->kernels_generated += past->kernels_generated;
	to->kernels_cached += past->kernels_cached;
	to->kernels_packed += past->kernels_packed;
	to->kernels_awaited += past->kernels_awaited;
	to->batch.passes += past->batch.passes;
	to->batch.tokens += past->batch.tokens;
	to->batch.set_back += past->batch.set_back;
	to->batch.seconds += past->batch.seconds;
	for (size_t i = 0; i < sizeof to->batch.width / sizeof *to->batch.width; i++)
		to->batch.width[i] += past->batch.width[i];
}
