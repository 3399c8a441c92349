/* tests/fake_kfd/cards.c - the cards that the environment describes, and what is to go wrong with them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_kfd/fake.h"

struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define MIB (1024ull * 1024)

/* As the driver's table of sizes has them: KiB of vector registers it saves for a CU. */
static const struct {
	const char *name;
	uint32_t version, vgpr_kib, device_id;
	bool apu;
} known[] = { { "gfx1030", 100300, 256, 0x73bf, false }, { "gfx1031", 100301, 256, 0x73df, false },
	      { "gfx1032", 100302, 256, 0x73ff, false }, { "gfx1034", 100304, 256, 0x743f, false },
	      { "gfx1036", 100306, 256, 0x164e, true },  { "gfx1100", 110000, 384, 0x744c, false },
	      { "gfx1101", 110001, 384, 0x747e, false }, { "gfx1102", 110002, 256, 0x7480, false },
	      { "gfx1103", 110003, 256, 0x15bf, true },  { "gfx1150", 110500, 256, 0x150e, true },
	      { "gfx1151", 110501, 384, 0x1586, true },  { "gfx1200", 120000, 384, 0x7590, false },
	      { "gfx1201", 120001, 384, 0x7550, false } };

static _Noreturn void wrong(const char *variable, const char *word)
{
	fprintf(stderr, "fake kfd: %s: \"%s\" is not understood\n", variable, word);
	abort();
}

static uint64_t aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* What a wave's state needs when a queue is taken off the card: the driver asks for exactly so much. */
static void save_sizes(struct card *c)
{
	uint64_t waves = c->cus * 32ull, control = aligned(40 + waves * 12 + 8, PAGE);

	if (c->version / 10000 == 10 && control > 0x7000)
		control = 0x7000;
	c->control_size = control;
	c->save_size = control + aligned(c->cus * (c->vgpr * 1024ull + 0x4000 + 0x10000 + 0x1000), PAGE);
	c->other_save_size = control + aligned(c->cus * ((640 - c->vgpr) * 1024ull + 0x15000), PAGE);
	c->save_total = aligned(c->save_size + aligned(waves * 32, 64), PAGE);
}

static void setting(struct card *c, const char *word)
{
	char name[16];
	unsigned long long n;

	if (!strcmp(word, "bar=small")) {
		c->bar = 256 * MIB;
		return;
	}
	if (!strcmp(word, "bar=large"))
		return;
	if (sscanf(word, "%15[a-z]=%llu", name, &n) != 2)
		wrong("FAKE_KFD", word);
	if (!strcmp(name, "vram"))
		c->vram = n * MIB;
	else if (!strcmp(name, "used"))
		c->others = n * MIB;
	else if (!strcmp(name, "gtt"))
		c->gtt = n * MIB;
	else if (!strcmp(name, "cus"))
		c->cus = (uint32_t)n;
	else if (!strcmp(name, "vgpr"))
		c->vgpr = (uint32_t)n;
	else if (!strcmp(name, "kfd"))
		fake.minor = (unsigned)n;
	else
		wrong("FAKE_KFD", word);
}

static void read_card(char *text)
{
	struct card *c = &fake.card[fake.n_cards];
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	size_t i = 0;

	while (word && i < sizeof known / sizeof *known && strcmp(known[i].name, word))
		i++;
	if (!word || i == sizeof known / sizeof *known || fake.n_cards == CARDS_MAX)
		wrong("FAKE_KFD", word ? word : "");
	*c = (struct card){ .version = known[i].version,
		            .vgpr = known[i].vgpr_kib,
		            .device_id = known[i].device_id,
		            .apu = known[i].apu,
		            .gpu_id = 0x5a10 + 0x111 * fake.n_cards,
		            .render = FIRST_RENDER + fake.n_cards,
		            .cus = 2,
		            .vram = known[i].apu ? 512 * MIB : 8192 * MIB,
		            .gtt = 16384 * MIB,
		            .next_handle = 1,
		            .memory = -1 };
	snprintf(c->target, sizeof c->target, "%s", word);
	while ((word = strtok_r(NULL, " ", &rest)))
		setting(c, word);
	if (!c->bar)
		c->bar = c->vram;
	save_sizes(c);
	fake.n_cards++;
}

static int error_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} errors[] = { { "ENOMEM", ENOMEM }, { "EINVAL", EINVAL }, { "EFAULT", EFAULT }, { "EBUSY", EBUSY },
		       { "ENODEV", ENODEV }, { "EPERM", EPERM },   { "EACCES", EACCES }, { "ENOSPC", ENOSPC },
		       { "ESRCH", ESRCH },   { "EIO", EIO },       { "ETIME", ETIME },   { "EINTR", EINTR },
		       { "EAGAIN", EAGAIN }, { "ENOTTY", ENOTTY }, { "EBADF", EBADF },   { "ENOENT", ENOENT },
		       { "ENXIO", ENXIO } };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strncmp(errors[i].name, name, strlen(errors[i].name)))
			return errors[i].number;
	wrong("FAKE_KFD_INJECT", name);
}

static void read_injection(const char *word)
{
	struct inject *i = &fake.inject;
	char name[16], error[16];
	unsigned long long n, m = 0;

	if (!strcmp(word, "denied"))
		i->denied = true;
	else if (sscanf(word, "fail=%31[A-Za-z_-]#%llu:%15s", i->fail_name, &n, error) == 3 ||
	         sscanf(word, "fail=%llu:%15s", &n, error) == 2) {
		i->fail_at = (unsigned)n;
		i->fail_errno = error_number(error);
		i->fail_on = strchr(error, '+') != NULL;
	} else if (sscanf(word, "unplug=call%llu", &n) == 1)
		i->unplug_call = (unsigned)n;
	else if (sscanf(word, "%15[a-z]=%llu:%llu", name, &n, &m) < 2)
		wrong("FAKE_KFD_INJECT", word);
	else if (!strcmp(name, "wedge")) {
		i->wedge = n;
		i->wedge_after = m;
	} else if (!strcmp(name, "fault"))
		i->fault = n;
	else if (!strcmp(name, "reset"))
		i->reset = n;
	else if (!strcmp(name, "unplug"))
		i->unplug = n;
	else if (!strcmp(name, "lost"))
		i->lost = n;
	else if (!strcmp(name, "wrong"))
		i->wrong = n;
	else if (!strcmp(name, "slow"))
		i->slow_ms = (unsigned)n;
	else if (!strcmp(name, "destroy"))
		i->destroy_ms = (unsigned)n;
	else
		wrong("FAKE_KFD_INJECT", word);
}

bool cards_read(void)
{
	const char *cards = getenv("FAKE_KFD"), *inject = getenv("FAKE_KFD_INJECT");
	char text[1024], *rest = NULL;

	if (!cards)
		return false;
	fake.minor = 14;
	snprintf(text, sizeof text, "%s", cards);
	for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		read_card(one);
	fake.inject.destroy_ms = 10000;
	snprintf(text, sizeof text, "%s", inject ? inject : "");
	rest = NULL;
	for (char *one = strtok_r(text, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
		read_injection(one);
	return true;
}

struct card *card_by_id(uint32_t gpu_id)
{
	for (unsigned i = 0; i < fake.n_cards; i++)
		if (fake.card[i].gpu_id == gpu_id)
			return &fake.card[i];
	return NULL;
}

/* Workgroups of eight waves that live at once: bounded by 16 waves a SIMD, by its file of vector registers and by LDS.
 */
unsigned card_resident(const struct card *c, uint32_t vgprs, uint32_t lds)
{
	bool large = c->version == 110000 || c->version == 110001 || c->version == 110501 || c->version >= 120000;
	uint32_t granule = large ? 24 : 16, file = large ? 1536 : 1024;
	uint32_t waves = file / ((vgprs + granule - 1) / granule * granule);

	waves = waves > 16 ? 16 : waves;
	unsigned groups = waves * 2 / 8, by_lds = lds ? 65536 / ((lds + 511) / 512 * 512) : groups;
	return c->cus * (groups < by_lds ? groups : by_lds);
}
