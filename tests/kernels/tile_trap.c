/* tests/kernels/tile_trap.c - tile instructions by SIGILL (tile_trap.h).
 *
 * Rule for editors: everything here runs in a signal handler; nothing may allocate, lock or use stdio.
 */
#include "tests/kernels/tile_trap.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };

struct tile_unit {
	bool ready;
	uint8_t rows[TILES];
	uint16_t bytes[TILES]; /* of a row */
	uint8_t data[TILES][ROWS][ROW_BYTES];
};
static _Thread_local struct tile_unit unit;
static _Atomic uint64_t count;

static void refuse(const char *why)
{
	ssize_t unused = write(2, "tile_trap: ", 11);
	unused = write(2, why, strlen(why));
	unused = write(2, "\n", 1);
	(void)unused;
	abort();
}

static void need(bool ok, const char *why)
{
	if (!ok)
		refuse(why);
}

/* ---- an instruction: a VEX prefix of three bytes, map 0F38 */

struct tile_ins {
	uint8_t pp, w, l, opcode, reg, rm, vvvv;
	bool memory, sib, indexed;
	uint64_t address, stride;
	unsigned length;
};

/* Register numbers as instructions count them. */
static uint64_t general(const ucontext_t *c, unsigned number)
{
	static const uint8_t where[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	return (uint64_t)c->uc_mcontext.gregs[where[number]];
}

static int32_t signed_32(const uint8_t *p)
{
	int32_t v;
	memcpy(&v, p, 4);
	return v;
}

/* The bytes behind the opcode. high: X and B of the prefix. */
static void decode_memory(struct tile_ins *i, const uint8_t *at, const ucontext_t *c, unsigned x, unsigned b)
{
	const uint8_t *p = at + i->length;
	unsigned mod = p[-1] >> 6;
	bool no_base = mod == 0 && i->rm == 5;

	if (i->rm == 4) {
		unsigned index = (p[0] >> 3 & 7) | x << 3, base = p[0] & 7;
		i->sib = true;
		i->indexed = index != 4;
		i->stride = i->indexed ? general(c, index) << (p[0] >> 6) : 0;
		need(mod || base != 5, "an address without a base, which nothing generates");
		i->address = general(c, base | b << 3);
		p++;
	} else if (!no_base) {
		i->address = general(c, i->rm | b << 3);
	}
	int64_t disp = mod == 1 ? (int8_t)p[0] : mod == 2 || no_base ? signed_32(p) : 0;
	p += mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
	i->length = (unsigned)(p - at);
	i->address += (uint64_t)disp + (no_base ? (uint64_t)(uintptr_t)p : 0);
}

static struct tile_ins decode(const uint8_t *at, const ucontext_t *c)
{
	struct tile_ins i = { .length = 5 };

	need(at[0] == 0xc4 && (at[1] & 0x1f) == 2, "an illegal instruction that is none of tiles");
	i.w = at[2] >> 7;
	i.vvvv = ~at[2] >> 3 & 15;
	i.l = at[2] >> 2 & 1;
	i.pp = at[2] & 3;
	i.opcode = at[3];
	i.reg = (at[4] >> 3 & 7) | (at[1] & 0x80 ? 0 : 8);
	i.rm = at[4] & 7;
	i.memory = at[4] >> 6 != 3;
	need(!i.w && !i.l, "W and L must be 0");
	if (i.memory)
		decode_memory(&i, at, c, !(at[1] & 0x40), !(at[1] & 0x20));
	else
		i.rm |= at[1] & 0x20 ? 0 : 8;
	return i;
}

/* ---- what they do */

static void load_config(const uint8_t config[64])
{
	memset(&unit, 0, sizeof unit);
	need(config[0] == 1 && config[1] == 0, "a palette that is not 1, or a row to start with");
	for (unsigned k = 2; k < 64; k++)
		need(!config[k] || (k >= 16 && k < 32) || (k >= 48 && k < 56), "bytes that must be zero are not");
	for (unsigned t = 0; t < TILES; t++) {
		memcpy(&unit.bytes[t], config + 16 + 2 * t, 2);
		unit.rows[t] = config[48 + t];
		need(unit.bytes[t] <= ROW_BYTES && unit.rows[t] <= ROWS && !unit.bytes[t] == !unit.rows[t],
		     "a tile of more than 16 rows of 64 bytes, or half a shape");
	}
	unit.ready = true;
}

static void check_tile(unsigned t)
{
	need(unit.ready, "a tile is used before ldtilecfg, or after tilerelease");
	need(t < TILES && unit.rows[t], "a tile that has no shape");
}

static void move_tile(const struct tile_ins *i, bool store)
{
	check_tile(i->reg);
	need(i->sib && i->indexed, "rows in memory without an index for their stride");
	if (!store)
		memset(unit.data[i->reg], 0, sizeof unit.data[i->reg]);
	for (unsigned r = 0; r < unit.rows[i->reg]; r++) {
		void *at = (void *)(uintptr_t)(i->address + r * i->stride);
		if (store)
			memcpy(at, unit.data[i->reg][r], unit.bytes[i->reg]);
		else
			memcpy(unit.data[i->reg][r], at, unit.bytes[i->reg]);
	}
}

static int32_t product(uint8_t a, uint8_t b, unsigned pp)
{
	/* F2 both signed, F3 the first, 66 the second, no prefix none */
	int x = pp & 2 ? (int8_t)a : a, y = pp & 1 ? (int8_t)b : b;
	return x * y;
}

static void dot(const struct tile_ins *i)
{
	unsigned d = i->reg, a = i->rm, b = i->vvvv;

	check_tile(d);
	check_tile(a);
	check_tile(b);
	need(d != a && d != b && a != b, "a product whose three tiles are not different");
	need(unit.rows[d] == unit.rows[a] && unit.bytes[d] == unit.bytes[b] && unit.bytes[a] == unit.rows[b] * 4 &&
	             unit.bytes[d] % 4 == 0,
	     "a product of tiles whose shapes do not fit");
	for (unsigned r = 0; r < unit.rows[d]; r++)
		for (unsigned n = 0; n < unit.bytes[d] / 4u; n++) {
			uint32_t sum;
			memcpy(&sum, &unit.data[d][r][n * 4], 4);
			for (unsigned k = 0; k < unit.bytes[a]; k++)
				sum += (uint32_t)product(unit.data[a][r][k], unit.data[b][k / 4][n * 4 + k % 4], i->pp);
			memcpy(&unit.data[d][r][n * 4], &sum, 4);
		}
}

enum { NP, P66, PF3, PF2 };

static void execute(const struct tile_ins *i)
{
	if (i->opcode == 0x49 && i->pp == NP && i->memory) {
		load_config((const uint8_t *)(uintptr_t)i->address);
	} else if (i->opcode == 0x49 && i->pp == NP) {
		need(i->reg == 0 && i->rm == 0, "tilerelease with registers");
		memset(&unit, 0, sizeof unit);
	} else if (i->opcode == 0x49 && i->pp == PF2 && !i->memory) {
		check_tile(i->reg);
		memset(unit.data[i->reg], 0, sizeof unit.data[i->reg]);
	} else if (i->opcode == 0x4b && (i->pp == PF2 || i->pp == PF3) && i->memory) {
		move_tile(i, i->pp == PF3);
	} else if (i->opcode == 0x5e && !i->memory) {
		dot(i);
	} else {
		refuse("a tile instruction that is not known here");
	}
}

static void on_illegal(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	struct tile_ins i = decode((const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP], c);

	(void)signal;
	(void)info;
	execute(&i);
	atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	c->uc_mcontext.gregs[REG_RIP] += i.length;
}

void tile_trap_install(void)
{
	struct sigaction action = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	need(sigaction(SIGILL, &action, NULL) == 0, "SIGILL cannot be handled");
}

uint64_t tile_trap_count(void) { return atomic_load(&count); }
