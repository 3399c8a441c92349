/* runtime/device/amd/amd_predict.c - how long an op will take on a card, roughly. See amd.h.
 *
 * Only for cutting launches that would be long, and for noticing those that never end: so it errs on the long side.
 * bench/predict.h knows better, and takes its time.
 */
#include "kernels-templates/signature.h"
#include "runtime/device/amd/amd.h"

static const struct {
	double bandwidth, clock;       /* where the driver tells none: of the least card */
	double bandwidth_share, share; /* of what the card could do, that is surely reached */
	double shared_share;           /* of the machine's memory, that an APU gets of what it could */
	double seconds;                /* of the shortest op */
	uint32_t position;             /* of a pass: contexts that are longer are rare */
} assumed = { .bandwidth = 20e9,
	      .clock = 1.5e9,
	      .bandwidth_share = 0.5,
	      .share = 0.25,
	      .shared_share = 0.5,
	      .seconds = 5e-6,
	      .position = 16384 };

enum { LANES_A_UNIT = 64, MIN_BITS_A_WEIGHT = 4, HEADS_A_GROUP = 4 };

double amd_predict(const struct amd_card *card, const struct plan *p, size_t op)
{
	const struct plan_op *l = &p->op[op];
	const struct key *key = &p->kernel[l->kernel].key;
	uint64_t units = (uint64_t)(l->end - l->begin), columns = kernel_columns(key, l->arg, p->tokens);
	const struct template_reads reads = template_reads(key, units, assumed.position, columns);
	double bytes = (double)template_traffic(key, units, assumed.position, columns) + l->moves,
	       products = (double)columns * ((double)reads.weights * 8 / MIN_BITS_A_WEIGHT +
	                                     (double)reads.cache * HEADS_A_GROUP) +
	                  l->operations,
	       bandwidth = card->bandwidth ? (double)card->bandwidth : assumed.bandwidth,
	       clock = card->clock_mhz ? card->clock_mhz * 1e6 : assumed.clock;

	bandwidth *= assumed.bandwidth_share * (card->integrated ? assumed.shared_share : 1);
	return bytes / bandwidth + products / (card->units * LANES_A_UNIT * clock * assumed.share) + assumed.seconds;
}
