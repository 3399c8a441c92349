/* bench/card_bandwidth.h - how fast an NVIDIA card's memory can be read, measured when asked.
 *
 * Owns: the measurement that shares of a card's bandwidth refer to: a kernel that reads and adds, written by hand, so
 * that it is none of those that are judged. It takes its time by the card's clock, and its sum shows that all was read.
 * Of cards that compute together the first one is measured, and stands for the others.
 */
#ifndef BENCH_CARD_BANDWIDTH_H
#define BENCH_CARD_BANDWIDTH_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/device.h"

struct card_bandwidth;

/* Fills memory of the card's, well beyond its cache where `bytes` is 0, and finds how many blocks read it fastest. The
 * device is a cuda one, and stays open. NULL: err. */
struct card_bandwidth *card_bandwidth_open(struct device *device, size_t bytes, struct error *err);
void card_bandwidth_close(struct card_bandwidth *b); /* NULL is fine */
/* Of each multiprocessor. */
unsigned card_bandwidth_blocks(const struct card_bandwidth *b);
unsigned card_bandwidth_cards(const struct card_bandwidth *b);
/* Bytes per second now: the best of `times` readings. 0: err. */
double card_bandwidth_sample(struct card_bandwidth *b, int times, struct error *err);

#endif
