/* runtime/device/cuda/cuda_inputs.c - what a pass takes from the host's memory, and what it leaves there. See
 * cuda_pass.h.
 *
 * A kernel would read ids and angles over the bus, so they go to the card with the arguments. Logits one card writes to
 * the host's memory itself. Several cards would all have to, so they write them to their own memory, and the first one
 * copies them to the host.
 */
#include <string.h>

#include "kernels-templates/signature.h"
#include "runtime/device/cuda/cuda_pass.h"

/* What a token has of an input at most: an id, or an angle for each two dimensions of its widest heads. */
static size_t input_width(const struct plan *p)
{
	size_t max = 0;

	for (size_t i = 0; i < p->n_kernels; i++)
		max = p->kernel[i].key.head_dim > max ? p->kernel[i].key.head_dim : max;
	return 64 + 2 * max;
}

/* The same of one argument: rows of what adapters have for a token, or of a picture's features, are wider. */
static size_t width_of(const struct plan *p, const struct plan_op *l, uint32_t slot, size_t usual)
{
	const struct key *k = &p->kernel[l->kernel].key;

	if (k->kind == KEY_ADAPT_UP && slot == ADAPT_IN)
		return numerics_pad(k->k) * sizeof(float);
	if ((k->kind == KEY_ADAPT_UP || k->kind == KEY_ADAPT_DOWN) && slot == ADAPT_SET) /* one more than sequences */
		return 2 * sizeof(struct adapt_set);
	if (k->kind == KEY_SCALE && (slot == SCALE_IN || (slot == SCALE_BY && k->flags & KEY_PAIR)))
		return (size_t)(l->end - l->begin) * 32 * sizeof(float) / p->tokens;
	return usual;
}

/* The input at p, whose tokens have so many bytes; made where there is none. NULL: what is there is not memory that the
 * host shares, or there are too many. */
static const struct cuda_input *input_at(const struct cuda_stream *s, struct cuda_plan *c, const void *p, size_t width)
{
	size_t bytes = cuda_shared_bytes(cuda_card_of(s), p), max = c->plan->tokens * width;
	unsigned i = 0;

	while (i < c->n_inputs && c->input[i].from != p)
		i++;
	if (!bytes || i == CUDA_INPUTS)
		return NULL;
	if (i == c->n_inputs)
		c->input[c->n_inputs++] = (struct cuda_input){ .from = p };
	bytes = bytes < max ? bytes : max;
	if (c->input[i].bytes < bytes)
		c->input[i].bytes = bytes;
	return &c->input[i];
}

void cuda_find_inputs(const struct cuda_stream *s, struct cuda_plan *c)
{
	const struct plan *p = c->plan;
	const size_t width = input_width(p);

	for (size_t i = 0; i < cut_last_section(p); i++)
		for (uint32_t k = 0; k < p->op[i].n_args; k++)
			input_at(s, c, (const void *)(uintptr_t)p->op[i].arg[k], width_of(p, &p->op[i], k, width));
	c->inputs = c->bytes;
	for (unsigned i = 0; i < c->n_inputs; i++) {
		c->input[i].at = c->bytes;
		c->bytes += (c->input[i].bytes + 63) / 64 * 64;
	}
}

/* ---- what goes to the host */

/* Whether these bytes are among the results of ops before: another op then goes on from them. */
static bool is_output(const struct cuda_plan *c, uint64_t address, size_t bytes)
{
	const uint64_t end = address + bytes;

	for (unsigned i = 0; i < c->n_outputs && address < end;) {
		const uint64_t within = address - (uint64_t)(uintptr_t)c->output[i].to;
		const bool here = within < c->output[i].bytes;
		address += here ? c->output[i].bytes - within : 0;
		i = here ? 0 : i + 1;
	}
	return address >= end;
}

static bool add_output(const struct cuda_stream *s, struct cuda_plan *c, uint64_t address, size_t bytes,
                       struct error *err)
{
	void *to = (void *)(uintptr_t)address;

	if (!cuda_shared_bytes(cuda_card_of(s), to) || is_output(c, address, bytes))
		return true;
	if (c->n_outputs == CUDA_OUTPUTS)
		return error_set(err, ERROR_UNSUPPORTED, "a pass has more than %d results for the host", CUDA_OUTPUTS);
	c->output[c->n_outputs++] = (struct cuda_output){ to, c->outputs_bytes, bytes };
	c->outputs_bytes += (bytes + 63) / 64 * 64;
	return true;
}

bool cuda_find_outputs(const struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct device *d = s->stream.device;
	const struct plan *p = c->plan;

	for (size_t i = cut_last_section(p); cuda_card_of(s)->cards > 1 && i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		for (uint32_t slot = 0; slot < l->n_args; slot++) {
			const struct kernel_extent e = cut_written(p, l, slot);
			if (e.begin < e.end && !add_output(s, c, l->arg[slot] + e.begin, e.end - e.begin, err))
				return false;
		}
	}
	return !c->n_outputs || (c->outputs = d->alloc(d, c->outputs_bytes, DEVICE_BUFFERS, err)) != NULL;
}

/* ---- arguments */

/* Where the cards have what an op of the last section leaves at that address. */
static uint64_t output_address(const struct cuda_plan *c, uint64_t address)
{
	for (unsigned i = 0; i < c->n_outputs; i++)
		if (address - (uint64_t)(uintptr_t)c->output[i].to < c->output[i].bytes)
			return (uint64_t)(uintptr_t)c->outputs + c->output[i].at +
			       (address - (uint64_t)(uintptr_t)c->output[i].to);
	return address;
}

static uint64_t input_address(const struct cuda_plan *c, uint64_t address)
{
	for (unsigned i = 0; i < c->n_inputs; i++)
		if (address == (uint64_t)(uintptr_t)c->input[i].from)
			return (uint64_t)(uintptr_t)c->on_cards + c->input[i].at;
	return address;
}

void cuda_set_args(const struct cuda_stream *s, struct cuda_plan *c)
{
	const struct cuda *d = cuda_card_of(s);
	const struct plan *p = c->plan;

	for (unsigned card = 0; card < d->cards; card++) {
		struct cuda_side *side = &c->side[card];
		side->args = (uint64_t *)(void *)((uint8_t *)c->args + card * c->bytes);
		side->on_card = cuda_on_card(d, card, (uint64_t)(uintptr_t)c->on_cards);
		for (size_t i = 0; i < p->n_ops; i++)
			for (uint32_t k = 0; k < p->op[i].n_args; k++) {
				const uint64_t *slot = &p->op[i].arg[k];
				side->args[slot - p->args] = cuda_on_card(
					d, card,
					i < cut_last_section(p) ? input_address(c, *slot) : output_address(c, *slot));
			}
	}
}

void cuda_take_inputs(struct cuda_plan *c)
{
	for (unsigned card = 0; card < CUDA_CARDS_MAX && c->side[card].args; card++)
		for (unsigned i = 0; i < c->n_inputs; i++)
			memcpy((uint8_t *)c->side[card].args + c->input[i].at, c->input[i].from, c->input[i].bytes);
}
