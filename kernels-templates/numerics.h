/* kernels-templates/numerics.h - the numerics contract: which float operations, in which order, make a result.
 *
 * Owns: the constants and rules that every template, every backend and the plain C loops of the tests obey, so that the
 * same prompt gives the same logits, bit for bit, for every thread count, number of tokens in a pass, cut of the prompt
 * and state of the cache, on every device. Changing anything here changes results: it is a new contract, not an
 * optimisation.
 *
 *  1. f32, IEEE, round to nearest even, denormals kept. No contraction but fma written as such.
 *  2. Padding: the inner dimension K counts as numerics_pad(K), a multiple of 32; the extra elements are +0 in weights
 *     and activations.
 *  3. Float dot of a row: K (padded) is cut into numerics_spans(K) equal spans; a span into segments of 256 (the last
 *     may be shorter); a segment is ONE ascending chain acc = fma(w, x, acc) from +0; segment sums are added in order
 *     to the span total, which starts at +0 (total = total + acc); span totals combine in a balanced binary tree
 *     ((t0+t1)+(t2+t3))+((t4+t5)+(t6+t7)).
 *  4. Activations as int8: blocks of 32; d = amax / 127 (IEEE division); q = round-to-nearest-even(x / d, cut to
 *     -127..127) (IEEE division; only a denormal d needs the cut), all 0 when d == 0. With each block go the exact sums
 *     of its first and second 16 q, and d_sum = d * (float)(sum of all 32).
 *     Quantised dot: a sub-block is the 32 weights that meet a block of activations, or 16 of them where the format
 *     gives 16 a scale of their own (Q2_K, Q3_K, Q6_K, IQ2_XS, IQ2_S, IQ1_M, NVFP4; the lower k first). A weight of a
 *     sub-block is dw * q, or dw * q + mw, q a whole number (its offset taken off), so that per sub-block isum = exact
 *     integer sum of q times the activations' quants (below 2^24: the conversion is exact), acc = fma(dw * dx,
 *     (float)isum, acc), and, with a
 *     minimum, acc = fma(mw, sx, acc), where sx is d_sum of the block, or d * (float)(sum of these 16) when it is 16.
 *     Sub-blocks ascending; one chain per span from +0 (no segments); spans combine as in 3.
 *     dw: d of Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, TQ1_0, TQ2_0, Q1_0, Q2_0; d * (float)scale (exact) of Q2_K, Q3_K,
 *     Q4_K, Q5_K, Q6_K, IQ4_XS; 2^(e - 128) of MXFP4 and half the scale of NVFP4, whose q are doubled; with n = 2 *
 *     scale + 1, d * n (exact) of IQ3_S and IQ1_S, d * n / 4 of IQ3_XXS, d * n / 8 of IQ2_XXS, IQ2_XS, IQ2_S and IQ1_M,
 *     whose q are eightfold. q are signed levels of IQ2 and IQ3, and digits + 1 of IQ1_S. dw: d of MLX4, MLX8
 * and AWQ4, too. mw: m of Q4_1, Q5_1, MLX4 and MLX8; -(d * (float)zero) (exact) of AWQ4;
 *     -(dmin * (float)minimum) (exact) of Q2_K, Q4_K, Q5_K; -dw +- dw / 8 (exact) of IQ1_S. All f16 and bf16 widened.
 *     With f32 activations a quantised weight is the float dw * (float)q, or fma(dw, (float)q, mw) (the products are
 *     exact: one rounding), and rule 3 holds. FP8 weights are always met by f32 activations: a weight is the f32
 * nearest to scale * number.
 *  5. Epilogue of a row, in this order: + bias; then act(first) * second (first: of the first of two matrices, or the
 *     destination), or act(value), or destination + value. silu(g) = g / (1 + exp(-g)); gelu(g) = g / (1 + exp(-z)), z
 *     = (g * fma(g * g, NUMERICS_GELU_CUBE, 1)) * NUMERICS_GELU_SLOPE; relu2(g) = max(g, +0) squared. IEEE division.
 *     Of swiglu_oai, act(first) * second is (x / (1 + exp(-(x * NUMERICS_SWIGLU_SLOPE)))) * (y + 1), x = min(first,
 *     NUMERICS_SWIGLU_MOST), y = second cut to +-NUMERICS_SWIGLU_MOST; act(value) is its first factor.
 *  6. Cross-lane sums (norms, softmax): 32 partial sums, element i into partial i mod 32 in ascending order, by fma for
 *     sums of squares (partial = fma(x, x, partial)) and by add otherwise, from +0; then partial[l] += partial[l ^ 16],
 *     ^ 8, ^ 4, ^ 2, ^ 1 (all lanes at once).
 *  7. RMS norm: ss as in 6; r = 1 / sqrt(ss / n + eps) (IEEE, n the true length); y = (x * r) * weight. Where a norm
 *     stands behind a layer, the stream becomes stream + y. A norm that subtracts the mean: m = (the sum of x, by add
 *     as in 6) / n, c = x - m, ss is that of c, and y = (c * r) * weight.
 *  8. Rotation of pair (a, b) = (x[i], x[i + dims/2]): a' = fma(a, cos, -(b * sin)), b' = fma(b, cos, a * sin),
 *     products rounded once. Queries are then multiplied by the attention scale, which is 1/sqrt(head_dim) (computed in
 *     double, rounded to f32) unless the model says another. Dimensions that do not rotate are pairs with cos 1 and sin
 *     0, behind the pairs that do; a layer that does not rotate has nothing else. A norm of heads stands before the
 *     rotation; where it stands behind, r of rule 7 is still that of x, and the rotated numbers are (x * r) * weight. A
 * model that scales queries by position has that factor in the queries' cos and sin.
 *  9. Attention: positions are cut into chunks of NUMERICS_CHUNK at absolute positions. Per chunk and head: s_j = one
 *     ascending chain fma(k, q, acc) over the dimensions from +0, bounded as in rule 11 where the model says so; m =
 * max over the chunk's visible positions; p_j = exp(s_j - m); l = cross-lane sum (rule 6) of p over the chunk, element
 * j in partial j mod 32, invisible positions count as +0; o_d = one ascending chain fma(p_j, v_jd, acc) over visible j
 * from +0. Running state M = -inf, L = 0, O = 0; each chunk with a visible position merges in order: M' = max(M, m), a
 * = exp(M - M'), b = exp(m - M'), L = fma(L, a, l * b), O = fma(O, a, o * b). Result O / L. Where heads have sinks, M =
 * the head's sink and L = 1 in the beginning: one more term of the softmax, without a value. A cache of int8 (Q8_0)
 * holds, per position and head, keys after rotation and values in blocks of 32 along the dimensions, the last one
 * shorter: d = amax / 127 and q as in rule 4. A key or value then is the float d * (float)q (one rounding), and all
 * else is the same.
 *     9a. Latent attention: of each position the cache holds one row for all heads: a latent vector behind its norm
 *     (rule 7), then the key's dimensions that rotate (rule 8; pair i is i and i + half of these). A query's dimensions
 *     that do not rotate are (x * c) * scale, c being the cosine of the last pair of the tables (1, but for factors by
 *     position), its others are rotated and scaled as ever. The former, times the head's matrix (rules 3 and 4 with the
 *     head's k), are the query's part for the latent vector. Scores, m, p and l are those of 9. The values are the
 *     latent vector: o_d is the cross-lane sum (rule 6, by fma) of p_j * row_jd over the chunk, element j in partial j
 *     mod 32, invisible positions counting as nothing, and then plus +0. M, L and O go on as in 9. Results, times a
 *     matrix of the head, are attention's. A cache of int8 holds the row in blocks of 32 dimensions, as keys.
 * 10. exp(x): 0 when x < -87; else x is cut to 88 at most, n = round-to-nearest-even(x * log2 e), r = fma(n, -ln2_hi,
 *     x), r = fma(n, -ln2_lo, r), a Horner chain of fma with NUMERICS_EXP_C*, times 2^n (built in the exponent bits).
 *     exp(0) == 1 exactly.
 * 11. Scales of embeddings, of what layers add to the stream, and of logits: x * s, and stream + x * s (the product
 *     rounded first). A bound c of logits: c * (1 - 2 / (1 + exp(t + t))), t = x / c.
 *     Where a cache holds normed values, they are v * r, r of rule 7 over their head.
 *     What layers get of a token's own, n numbers each: y = ((x * r) * weight + e * s) * NUMERICS_HALF_ROOT, each
 *     operation rounded. x is a product of the embedding that nobody has divided by the root of the hidden size, so
 * that r is that of rule 7 with eps times the hidden size; e is of the token's row, s the root of n. A layer multiplies
 *     them by what rule 5's act makes of the stream, and ends with the stream times a number.
 * 12. cos/sin tables are made by runtime/ from its own double-precision code, never libm, rounded once to f32.
 * 16. Convolution over time: y = w_0 * x_0 (rounded), then one ascending chain y = fma(w_j, x_j, y), x_0 the oldest of
 *     the inputs and the last one the present; inputs before the first token are +0. Between two gates b and c, the
 * input is b * x, and the result y * c. Behind it an activation function of rule 5. sigmoid(g) = 1 / (1 + exp(-g)); a
 *     gated result is x * act(g). A convolution's bias is added to the sum, before its activation function.
 * 17. Gated delta rule, token by token, S of the start +0: e = exp(decay * softplus(a + dt)), beta = sigmoid(b); r = 1
 * / sqrt(ss + NUMERICS_LENGTH_EPS), ss as in 6, of key and query; k_i = key_i * r, q_i = query_i * (r * scale); for
 *     each value d: t_i = S_id * e (rounded), h = one ascending chain fma(t_i, k_i, h) from +0, c = (v_d - h) * beta,
 *     S_id = fma(k_i, c, t_i), o_d = one ascending chain fma(S_id, q_i, o) from +0. softplus(x) = max(x, 0) + l * s,
 *     where u = exp(-|x|), s = u / (2 + u), z = s * s, and l is a Horner chain of fma in z with 2/13, 2/11 ... 2/3, 2.
 *
 * 18. Selective scan, token by token, S of the start +0: d = min(max(softplus(dt + bias), floor), ceiling), e =
 * exp(decay * d); for each value v: t = v * d, S_i = fma(B_i, t, S_i * e) (the product rounded), o = one ascending
 * chain fma(S_i, C_i, o) from +0, and the result is fma(skip, v, o). It is gated by rule 16's sigmoid times its own
 * input (silu), then normed as in 7, each group of heads by itself where the model has several.
 *
 * 14. Experts: each token is multiplied by some of them, chosen by the logits of a router, which are f32. The choice is
 * by the logits, descending, equal ones by ascending number (NaN counts as least); where the router is a sigmoid, by 1
 * / (1 + exp(-logit)), to which a bias may be added for the choice alone. Where experts are in groups, equally many one
 * after the other, only those of the best groups can be chosen; a group counts as its best expert does, or with a
 * sigmoid as the sum of its best two, and equal ones go by ascending number. Shares of the chosen, m being the greatest
 * logit: exp(l - m), divided by the cross-lane sum (rule 6) of the chosen ones, slot i in partial i, or of all experts;
 * of a sigmoid its own value, or that divided by (cross-lane sum of the chosen + 1e-20; + 1e-6 of LFM 2). Then times
 * the model's scale, and times the expert's own number where there is one. The result of a token: p = share0 * y0,
 * p = fma(share_i, y_i, p) in the order of the choice; it is
 * added to the stream as rule 5 or 11 has it. A shared expert's result is one more such sum, of one share, its gate 1 /
 * (1 + exp(-g)), added afterwards; without a gate it is added as any matrix's.
 * Experts beside a feed-forward layer: the results of both go through norms of their own, and the experts' is added to
 * the layer's; the sum goes on behind another norm as rule 7 has it. The router reads the stream behind rule 7, whose
 * weights are w * (1 / sqrt(n)), the root computed in double and rounded.
 *
 * The rules so far are the EXACT class. A user may choose the other one:
 * 13. BOUNDED: where a target has products of matrices, matmuls of F16 and BF16 weights take the tokens of a prompt's
 *     pass that fill tiles of 16 with activations rounded to the weights' type, to nearest even (f16: cut to
 *     NUMERICS_F16_MOST first). Each span of rule 3 is one chain of matrix products of 16 k's each, ascending, from +0:
 *     products are exact, their sum with what came before is the card's, no worse than additions one by one with an
 *     error of one unit in the last place of f32. Spans combine and epilogues follow as in 3 and 5. Every other kernel,
 *     weight type and token stays EXACT; which tokens fill tiles depends on the pass, so that results depend on how a
 *     prompt is cut, and are the same again for the same cuts. Passes that give the logits of all their tokens are
 *     EXACT: draft tokens change nothing here either. A dot of K terms that is finite, of activations within the type's
 *     range, differs from the EXACT one by at most (u + (K + 16) * 2^-22) * sum |w * x| + 2^-24 * sum |w|, where u is
 *     2^-11 for F16 and 2^-8 for BF16.
 *     13a. Where a target multiplies pairs of BF16 instead (CPUs with AVX512_BF16), all products by dense BF16 matrices
 *     but those by head are so, of all tokens of all passes: results depend on tokens alone, and are the same on all
 *     CPUs that compute so. Those on which it would be no faster do not (runtime/host/pairs.h), and are EXACT.
 * Activations are rounded to BF16, to nearest even. Spans, segments and what follows are those of rule 3; a segment is
 * one chain over its pairs of k's from +0, ascending, and of a pair the odd k comes first: acc = fma(w, x, acc).
 * Weights, activations and acc below the normal numbers count as zero, and a sum that is below them, once rounded to 24
 * bits, becomes zero. To the bound above that adds 2^-126 * (sum |x| + sum |w| + K).
 */
#ifndef KERNELS_NUMERICS_H
#define KERNELS_NUMERICS_H

#include <stdint.h>

enum { NUMERICS_BLOCK = 32, NUMERICS_SEGMENT = 256, NUMERICS_CHUNK = 128, NUMERICS_MAX_SPANS = 8 };
#define NUMERICS_F16_MOST 65504.0f

static inline uint64_t numerics_pad(uint64_t k) { return (k + 31) & ~(uint64_t)31; }

/* Depends on K alone: the largest power of two up to 8 that leaves spans of whole blocks, 256 elements or more each. */
static inline unsigned numerics_spans(uint64_t k)
{
	uint64_t p = numerics_pad(k);
	unsigned s = NUMERICS_MAX_SPANS;
	while (s > 1 && (p % (s * 32u) != 0 || p / s < NUMERICS_SEGMENT))
		s /= 2;
	return s;
}

/* exp on r in [-ln2/2, ln2/2]: 1 + r + r^2 * (C2 + r*(C3 + r*(C4 + r*(C5 + r*C6)))), evaluated as
 * p = C6; p = fma(p,r,C5); p = fma(p,r,C4); p = fma(p,r,C3); p = fma(p,r,C2); p = fma(p,r,1); p = fma(p,r,1). Fitted
 * for the least relative error with the two leading ones held, then adjusted for rounding: within 0.9 units in the last
 * place everywhere. */
#define NUMERICS_EXP_LOG2E 1.44269504088896341f
#define NUMERICS_EXP_LN2_HI 0.693145751953125f
#define NUMERICS_EXP_LN2_LO 1.428606765330187045e-06f
#define NUMERICS_EXP_C2 0.49999994f
#define NUMERICS_EXP_C3 0.166665152f
#define NUMERICS_EXP_C4 0.0416684188f
#define NUMERICS_EXP_C5 0.00836933777f
#define NUMERICS_EXP_C6 0.00138145394f

/* 0.044715 and sqrt(8 / pi), of rule 5's gelu. */
#define NUMERICS_GELU_CUBE 0.044715f
#define NUMERICS_GELU_SLOPE 1.5957691216057308f

/* Of rule 5's swiglu_oai. */
#define NUMERICS_SWIGLU_MOST 7.0f
#define NUMERICS_SWIGLU_SLOPE 1.702f

/* Of rule 17. */
#define NUMERICS_LENGTH_EPS 1e-6f
/* sqrt(1 / 2), of rule 11. */
#define NUMERICS_HALF_ROOT 0.70710678118654752f

#endif
