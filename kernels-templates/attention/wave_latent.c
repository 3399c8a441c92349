/* kernels-templates/attention/wave_latent.c - values that are the keys' first dimensions, for groups of waves.
 *
 * Owns: numerics.h rule 9a of a chunk's o, as attention_latent.c does it for CPUs. Lanes are positions: a dimension's
 * sum goes across them, and the lane of the dimension keeps it. p is in registers from the beginning on, because o goes
 * where p lies.
 */
#include "kernels-templates/attention/attention_wave.h"

struct latent {
	ir_f p[MAX_ROWS][BLOCKS], o[MAX_ROWS]; /* o: variables: of 32 dimensions, one in each lane */
	ir_m seen[BLOCKS];
	ir_i lane; /* variable: the lane's dimension less that at hand */
};

static void add_dims(const struct spread *t, void *context, unsigned dims, ir_f k[][BLOCKS])
{
	struct ir *b = t->b;
	struct latent *l = context;
	ir_f zero = ir_fconst(b, 0.0f);

	for (unsigned d = 0; d < dims; d++) {
		ir_m own = ir_ieq(b, l->lane, ir_iconst(b, (int32_t)d));
		ir_f v[BLOCKS];
		for (unsigned i = 0; i < BLOCKS; i++)
			v[i] = ir_fsel(b, l->seen[i], k[d][i], zero);
		for (unsigned r = 0; r < t->tile; r++) {
			ir_f sum = ir_fmul(b, l->p[r][0], v[0]);
			for (unsigned i = 1; i < BLOCKS; i++)
				sum = ir_ffma(b, l->p[r][i], v[i], sum);
			sum = ir_fadd(b, math_lane_sum(b, &sum), zero);
			ir_set_f(b, l->o[r], ir_fsel(b, own, sum, l->o[r]));
		}
	}
	ir_set_i(b, l->lane, ir_isub(b, l->lane, ir_iconst(b, (int32_t)dims)));
}

void attention_wave_latent_chunk(const struct spread *t, ir_a keys, ir_s start)
{
	struct ir *b = t->b;
	struct latent l;
	struct key_walk w = { .take = add_dims, .context = &l };
	struct row row = attention_wave_find_row(t, ir_sconst(b, 0)); /* all see the same */
	ir_i end = ir_isplat(b, attention_wave_row_end(t, &row, start));
	ir_a out = ir_var_a(b, t->own);

	for (unsigned i = 0; i < BLOCKS; i++)
		l.seen[i] = ir_igt(b, end, ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(i * LANES))));
	l.lane = ir_var_i(b, ir_ilane(b));
	for (unsigned r = 0; r < t->tile; r++) {
		for (unsigned i = 0; i < BLOCKS; i++)
			l.p[r][i] = ir_fload(b, t->own, (int32_t)(r * t->slot + i * LANES * 4), 0);
		l.o[r] = ir_var_f(b, ir_fconst(b, 0.0f));
	}
	attention_wave_begin_walk(t, &w, keys);
	ir_loop(b, ir_sconst(b, t->vectors));
	ir_set_i(b, l.lane, ir_ilane(b));
	attention_wave_walk(t, &w, LANES);
	for (unsigned r = 0; r < t->tile; r++)
		ir_fstore(b, out, l.o[r], (int32_t)(r * t->slot), 0);
	ir_set_a(b, out, ir_aaddi(b, out, LANES * 4));
	ir_endloop(b);
}
