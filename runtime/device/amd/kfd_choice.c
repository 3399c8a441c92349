/* runtime/device/amd/kfd_choice.c - by which way cards are used: AMD's library libhsakmt, or calls of the driver alone.
 * See kfd.h.
 *
 * The library is taken where it is installed and right. What it gets wrong goes by calls of the driver:
 *
 * - All, where the machine has several cards: memory of the host is the first card's to it, and others may not reach
 *   it. All, where the driver has a GPU in one node with the processor's cores: the library then takes its memory for
 *   the processor's own.
 * - Queues, on targets whose vector registers the installed version does not know: it then makes the save area too
 *   small, which newer drivers refuse, and older ones overrun when they take the queue off the card. Version 5.2.3,
 *   Debian 12's, knows none of the large ones. No version knows gfx1151's.
 * - Waiting, as the library does not tell an unplugged card from other errors; and the registers that flush what the
 *   host has written, for which it has no name of its own.
 *
 * Its version is in no file that it comes with: the functions that came with a version tell it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/amd/kfd.h"

/* Since when the library knows the size of a target's registers, by a function that came then or soon after. */
static const struct {
	uint32_t gfx_version;
	const char *function;                                   /* NULL: no version knows it */
} large_registers[] = { { 110000, "hsaKmtExportDMABufHandle" }, /* 5.5; the function is of 5.6 */
	                { 110001, "hsaKmtExportDMABufHandle" },
	                { 110501, NULL },
	                { 120000, "hsaKmtPcSamplingStart" }, /* 6.2 */
	                { 120001, "hsaKmtPcSamplingStart" } };

bool kfd_hsakmt_knows(const struct amd_card *card)
{
	for (size_t i = 0; i < sizeof large_registers / sizeof *large_registers; i++)
		if (card->gfx_version == large_registers[i].gfx_version)
			return large_registers[i].function && kfd_hsakmt_has(large_registers[i].function);
	return true;
}

static size_t count_cards(void)
{
	struct amd_topology *t = malloc(sizeof *t);
	struct error err = { 0 };
	size_t n = t && amd_topology_read(t, &err) ? t->n : 0;

	free(t);
	return n;
}

static bool is_right(const struct amd_card *card, char why[KFD_WHY])
{
	const char *wrong = card->with_cores     ? "the driver has the card in one node with the processor's cores"
	                    : count_cards() != 1 ? "it is used where there is one card alone"
	                                         : NULL;

	if (!wrong)
		return kfd_hsakmt_load(why);
	strcpy(why, wrong);
	return false;
}

const struct kfd_thunk *kfd_choose(const struct amd_card *card, struct error *err)
{
	const char *wanted = getenv("JITRUN_AMD_THUNK");
	bool any = !wanted || !*wanted;
	char why[KFD_WHY] = "";

	if (!any && strcmp(wanted, kfd_by_ioctls.name) == 0)
		return &kfd_by_ioctls;
	if (!any && strcmp(wanted, kfd_by_hsakmt.name) != 0) {
		error_set(err, ERROR_ARGUMENT, "JITRUN_AMD_THUNK is \"%.32s\", expected ioctl or hsakmt", wanted);
		return NULL;
	}
	if (is_right(card, why))
		return &kfd_by_hsakmt;
	if (any)
		return &kfd_by_ioctls;
	error_set(err, ERROR_DEVICE, "libhsakmt cannot be used with %s: %s", card->name, why);
	return NULL;
}
