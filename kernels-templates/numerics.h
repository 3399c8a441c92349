/* kernels-templates/numerics.h - the numerics contract: which float operations, in which order, make a result.
 *
 * Owns: the constants and rules that every template, every backend and the plain C loops of the tests obey.
 * Promise: the same prompt gives the same logits, bit for bit. That holds for every device, thread count, number of
 * tokens in a pass, cut of the prompt and state of the cache.
 * Editors: a change here changes results. It is a new contract, not an optimisation.
 *
 * Rules 1 to 12, 14 and 16 to 19 are the EXACT class, which is the default. Rule 13 is the BOUNDED class, which a user
 * may choose instead. There is no rule 15.
 *
 * Notation: "chain" is a sequence of operations of which each takes the result of the one before. exp is that of
 * rule 10, and division and square root are IEEE operations, rounded once. "Rounded" marks a product that is not fused
 * with what follows.
 *
 *  1. Arithmetic. f32, IEEE, round to nearest even, denormals kept. Nothing is contracted: an fma is one only where the
 *     rules write fma.
 *
 *  2. Padding. The inner dimension K counts as numerics_pad(K), a multiple of 32. The extra elements are +0 in weights
 *     and in activations.
 *
 *  3. Float dot product of a row.
 *     - K (padded) is cut into numerics_spans(K) equal spans.
 *     - A span is cut into segments of 256; the last one may be shorter.
 *     - A segment is ONE ascending chain from +0: acc = fma(w, x, acc).
 *     - Segment sums are added in order to the span's total, which starts at +0: total = total + acc.
 *     - Span totals are added in a balanced binary tree: ((t0+t1)+(t2+t3))+((t4+t5)+(t6+t7)).
 *
 *  4. Quantised dot product of a row.
 *     Activations are blocks of 32 int8:
 *       d = amax / 127
 *       q = round-to-nearest-even(x / d), clamped to -127..127; all 0 when d == 0 (only a denormal d needs the clamp)
 *       sums: the exact sums of the first and of the second 16 q
 *       d_sum = d * (float)(sum of all 32 q)
 *     A sub-block is the 32 weights that meet one block of activations. Formats that give each 16 weights a scale have
 *     sub-blocks of 16, the lower k first: Q2_K, Q3_K, Q6_K, IQ2_XS, IQ2_S, IQ1_M, NVFP4.
 *     A weight is dw * q, or dw * q + mw. q is an integer, its offset already subtracted. For each sub-block:
 *       isum = the exact integer sum of weight q times activation q (below 2^24, so its conversion is exact)
 *       acc = fma(dw * dx, (float)isum, acc)
 *       with a minimum, then acc = fma(mw, sx, acc); sx is the block's d_sum, or d * (float)(sum of its 16 q)
 *     Sub-blocks ascend in one chain for each span, from +0, without segments. Spans are added as in rule 3.
 *     dw of each format (f16 and bf16 are widened; dx is d of the activations):
 *       d                  Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, TQ1_0, TQ2_0, Q1_0, Q2_0, MLX4, MLX8, AWQ4
 *       d * (float)scale   Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS (exact)
 *       d * (float)step    IQ4_KS, IQ5_KS, IQ2_KS (rounded; d is the row's)
 *       2^(e - 128)        MXFP4, whose q are doubled
 *       scale / 2          NVFP4, whose q are doubled
 *       d * n              IQ3_S and IQ1_S (exact), n = 2 * scale + 1
 *       d * n / 4          IQ3_XXS
 *       d * n / 8          IQ2_XXS, IQ2_XS, IQ2_S and IQ1_M, whose q are multiplied by 8
 *     q of IQ2 and IQ3 are signed levels; q of IQ1_S are digits + 1; q of IQ2_KS, IQ4_KS and IQ5_KS are levels of the
 *     list that the sub-block names.
 *     mw of each format:
 *       m                             Q4_1, Q5_1, MLX4, MLX8
 *       -(d * (float)zero)            AWQ4 (exact)
 *       -(dmin * (float)minimum)      Q2_K, Q4_K, Q5_K (exact)
 *       -dw +- dw / 8                 IQ1_S (exact)
 *     With f32 activations a quantised weight is the float dw * (float)q, or fma(dw, (float)q, mw), rounded once.
 *     Rule 3 then holds. FP8 weights are always multiplied by f32 activations; such a weight is the f32 nearest to
 *     scale * number.
 *
 *  5. Epilogue of a row, in this order: + bias; then one of
 *       act(first) * second     first: the result of the first of two matrices, or the destination
 *       act(value)
 *       destination + value
 *     The activation functions:
 *       silu(g)  = g / (1 + exp(-g))
 *       gelu(g)  = g / (1 + exp(-z)), z = (g * fma(g * g, NUMERICS_GELU_CUBE, 1)) * NUMERICS_GELU_SLOPE
 *       relu2(g) = max(g, +0) squared
 *       swiglu_oai: act(first) * second is (x / (1 + exp(-(x * NUMERICS_SWIGLU_SLOPE)))) * (y + 1), where
 *                   x = min(first, NUMERICS_SWIGLU_MAX) and y = second clamped to +-NUMERICS_SWIGLU_MAX;
 *                   act(value) is the first factor
 *       gelu_erf(g) = fma(-a, q, max(g, +0)), where a = |g|. q, the share of the normal distribution that lies beyond
 *                   a, is (t * p) * exp(-(a * (a * 0.5))); t = 1 / fma(a, NUMERICS_ERF_SLOPE, 1), and p is a Horner
 *                   chain of fma in t with NUMERICS_ERF_C7 .. NUMERICS_ERF_C0
 *       softplus(g) as in rule 17
 *       xielu(g): by four numbers p, n, b and e, with l = b * g rounded: fma(p * g, g, l) where g > 0, else
 *                   fma((exp(min(g, e)) - 1) - g, n, l)
 *
 *  6. Sums across lanes (norms, softmax). There are 32 partial sums from +0. Element i goes into partial i mod 32, in
 *     ascending order: by partial = fma(x, x, partial) for sums of squares, else by addition. Then, for all lanes at
 *     once, partial[l] += partial[l ^ 16], then ^ 8, ^ 4, ^ 2, ^ 1.
 *
 *  7. RMS norm. ss is the sum of squares of rule 6, n the true length.
 *       r = 1 / sqrt(ss / n + eps)
 *       y = (x * r) * weight
 *     Where a norm follows a layer, the stream becomes stream + y. A norm that subtracts the mean:
 *       m = (the sum of x, by addition, rule 6) / n;  c = x - m;  ss is that of c;  y = (c * r) * weight,
 *     or where the norm has biases y = fma(c * r, weight, bias)
 *
 *  8. Rotary embedding of the pair (a, b) = (x[i], x[i + dims/2]), the products b * sin and a * sin rounded:
 *       a' = fma(a, cos, -(b * sin))
 *       b' = fma(b, cos, a * sin)
 *     Queries are then multiplied by the attention scale: 1/sqrt(head_dim), computed in double and rounded to f32,
 *     unless the model has another. Dimensions that do not rotate are pairs with cos 1 and sin 0, after the pairs that
 *     do; a layer that does not rotate has only such pairs. A norm of heads comes before the rotation. Where a model
 *     has it after the rotation, r of rule 7 is still that of x, and the rotated numbers are (x * r) * weight. A model
 *     that scales queries by position has that factor in the queries' cos and sin.
 *
 *  9. Attention. Positions are cut into chunks of NUMERICS_CHUNK at absolute positions. For each chunk and head, with
 *     j over the chunk's positions:
 *       s_j = one ascending chain fma(k, q, acc) over the dimensions, from +0, bounded as in rule 11 where the model
 *             bounds scores
 *       m   = max of s_j over the visible positions
 *       p_j = exp(s_j - m)
 *       l   = sum of p across lanes (rule 6), element j in partial j mod 32, invisible positions counting as +0
 *       o_d = one ascending chain fma(p_j, v_jd, acc) over the visible j, from +0
 *     The running state is M = -inf, L = 0, O = 0. Each chunk that has a visible position is merged, in order:
 *       M' = max(M, m);  a = exp(M - M');  b = exp(m - M');  L = fma(L, a, l * b);  O = fma(O, a, o * b)
 *     The result is O / L. Where heads have sinks, the state begins with M = the head's sink and L = 1: one more term
 *     of the softmax, without a value.
 *     Of chunks of w positions (Llama 4), those from the last multiple of w up to the token's own are visible.
 *     Where a model encodes a text, all of the text's positions are visible, or with a window of w those that are w or
 *     less away. A model may add to each score a number that depends on the head and on j less the query's position:
 *     s_j + b, after the bound. Where a text is generated, b is (float)(j - p) times the head's number, the product
 *     rounded; p is the query's position, and that number is computed in double and rounded to f32.
 *     A cache of int8 (Q8_0) holds keys after rotation, and values. For each position and head they are blocks of 32
 *     along the dimensions, the last one shorter, with d = amax / 127 and q as in rule 4. A key or value is then the
 *     float d * (float)q, rounded once. All else is the same.
 *     9a. Latent attention. For each position the cache holds one row for all heads: a latent vector after its norm
 *     (rule 7), then the key's rotating dimensions (rule 8; pair i is i and i + half of these).
 *     - A query's dimensions that do not rotate are (x * c) * scale, where c is the cosine of the last pair of the
 *       tables (1, unless the model scales by position). Its others are rotated and scaled as in rule 8.
 *     - The dimensions that do not rotate, times the head's matrix (rules 3 and 4 with the head's k), are the query's
 *       part for the latent vector.
 *     - Scores, m, p and l are those of rule 9. The values are the latent vector: o_d is the sum across lanes (rule 6,
 *       by fma) of p_j * row_jd over the chunk, element j in partial j mod 32, invisible positions adding nothing; then
 *       +0 is added. M, L and O go on as in rule 9.
 *     - The results, times a matrix of the head, are those of attention.
 *     - A cache of int8 holds the row in blocks of 32 dimensions, as it holds keys.
 *
 * 10. exp(x) is 0 when x < -87. Else x is clamped to 88 at most, and
 *       n = round-to-nearest-even(x * log2 e);  r = fma(n, -ln2_hi, x);  r = fma(n, -ln2_lo, r)
 *       exp(x) = (a Horner chain of fma in r with NUMERICS_EXP_C*) * 2^n, the power built in the exponent bits
 *     exp(0) is exactly 1.
 *
 * 11. Scales and bounds.
 *     - Embeddings and logits: x * s. What a layer adds to the stream: stream + x * s, the product rounded.
 *     - A bound c of logits or scores: c * (1 - 2 / (1 + exp(t + t))), t = x / c.
 *     - Where a cache holds normed values, they are v * r, with r of rule 7 over their head.
 *     - Per-layer inputs of a token, n numbers for each layer: y = ((x * r) * weight + e * s) * NUMERICS_HALF_ROOT,
 *       each operation rounded. x is a product of the embedding that is not divided by the root of the hidden size, so
 *       r is that of rule 7 with eps times the hidden size. e is of the token's row, and s is the root of n. A layer
 *       multiplies them by act(stream) of rule 5, and ends with the stream times a number.
 *
 * 12. Tables of cos and sin are computed by runtime/ in double precision with its own code, never libm, and rounded to
 *     f32 once.
 *
 * 13. BOUNDED. On targets with matrix products, matmuls of F16 and BF16 weights use them for those tokens of a prompt's
 *     pass that fill tiles of 16.
 *     - Activations are rounded to the weights' type, to nearest even (f16: clamped to NUMERICS_F16_MAX first).
 *     - Each span of rule 3 is one chain of matrix products of 16 k's each, ascending, from +0. Products are exact.
 *       Their sum with the accumulator is the card's: no worse than additions one by one, each with an error of one
 *       unit in the last place of f32.
 *     - Spans are added as in rule 3, and epilogues follow as in rule 5.
 *     - Every other kernel, weight type and token stays EXACT. Passes that give the logits of all their tokens are
 *       EXACT, so that draft tokens change nothing.
 *     - Which tokens fill tiles depends on the pass. So results depend on how a prompt is cut, and the same cuts give
 *       the same results.
 *     - Error: a finite dot product of K terms, of activations within the type's range, differs from the EXACT one by
 *       at most (u + (K + 16) * 2^-22) * sum |w * x| + 2^-24 * sum |w|, where u is 2^-11 for F16 and 2^-8 for BF16.
 *     13a. Pairs of BF16 (CPUs with AVX512_BF16). All products by dense BF16 matrices, except those by head, are made
 *     of pairs, for all tokens of all passes. So results depend on the tokens only, and are the same on all CPUs that
 *     compute in pairs. CPUs on which pairs would not be faster do not (runtime/host/pairs.h), and are EXACT.
 *     - Activations are rounded to BF16, to nearest even. Spans, segments and what follows are those of rule 3.
 *     - A segment is one ascending chain over its pairs of k's, from +0. Of a pair the odd k comes first:
 *       acc = fma(w, x, acc).
 *     - Weights, activations and acc below the normal numbers count as zero. A sum that is below them, once rounded to
 *       24 bits, becomes zero.
 *     - The error bound above grows by 2^-126 * (sum |x| + sum |w| + K).
 *
 * 14. Mixture of experts. A router's f32 logits choose some experts for each token.
 *     - Choice: by logits, descending, equal ones by ascending number; NaN counts as least. Where the router is a
 *       sigmoid: by 1 / (1 + exp(-logit)), to which a bias may be added for the choice only. Where a softmax has such
 *       a bias: by exp(l - m) / s plus it, with m the greatest of all logits and s the sum across lanes over all.
 *     - Groups: where experts are in groups of equal size, consecutive ones, only experts of the best groups can be
 *       chosen. A group counts as its best expert does, or with a sigmoid as the sum of its best two. Equal groups go
 *       by ascending number.
 *     - Shares: with m the greatest logit, exp(l - m), divided by the sum across lanes (rule 6) of the chosen ones,
 *       slot i in partial i, or of all experts. With a sigmoid: its own value, or that divided by (sum across lanes of
 *       the chosen + 1e-20; LFM 2: + 1e-6). Then times the model's scale, and times the expert's own number where there
 *       is one.
 *       Or, where the model says how near (Phi 3.5 MoE): with l of the choice as m, 1 / (sum across lanes of exp(l - m)
 *       over the experts that no earlier choice took and for which (m - l) / max(|l|, m) is not as much as that).
 *       Llama 4's expert reads x * share, rounded, and its result counts whole (share 1).
 *     - Result of a token, in the order of the choice: p = share0 * y0, p = fma(share_i, y_i, p). It is added to the
 *       stream by rule 5 or 11.
 *     - A shared expert's result is one more such sum, of one share, its gate 1 / (1 + exp(-g)), added afterwards.
 *       Without a gate it is added as the result of any matrix is.
 *     - Experts parallel to a feed-forward layer: both results go through norms of their own, and that of the experts
 *       is added to the layer's. The sum goes through another norm, as in rule 7. The router reads the stream after
 *       rule 7 with the weights w * (1 / sqrt(n)), the root computed in double and rounded.
 *
 * 16. Convolution over time. y = w_0 * x_0 (rounded), then one ascending chain y = fma(w_j, x_j, y). x_0 is the oldest
 *     input and the last one the present input; inputs before the first token are +0.
 *     - Between two gates b and c, the input is b * x and the result y * c.
 *     - A convolution's bias is added to the sum; an activation function of rule 5 may follow.
 *     - sigmoid(g) = 1 / (1 + exp(-g)); a gated result is x * act(g).
 *
 * 17. Gated delta rule, token by token. The state S begins at +0.
 *       e = exp(decay * softplus(a + dt));  beta = sigmoid(b), or twice that (OLMo hybrid: sigmoid(b) + sigmoid(b))
 *       r = 1 / sqrt(ss + NUMERICS_LENGTH_EPS), of the key and of the query, ss as in rule 6
 *       k_i = key_i * r;  q_i = query_i * (r * scale)
 *     For each value d:
 *       t_i = S_id * e (rounded)
 *       h = one ascending chain fma(t_i, k_i, h) from +0
 *       c = (v_d - h) * beta
 *       S_id = fma(k_i, c, t_i)
 *       o_d = one ascending chain fma(S_id, q_i, o) from +0
 *     softplus(x) = max(x, 0) + l * s, where u = exp(-|x|), s = u / (2 + u), z = s * s, and l is a Horner chain of fma
 *     in z with 2/13, 2/11 ... 2/3, 2.
 *
 * 18. Selective scan, token by token. The state S begins at +0.
 *       d = min(max(softplus(dt + bias), floor), ceiling);  e = exp(decay * d)
 *     For each value v:
 *       t = v * d
 *       S_i = fma(B_i, t, S_i * e), the product S_i * e rounded
 *       o = one ascending chain fma(S_i, C_i, o) from +0
 *       the result is fma(skip, v, o)
 *     Where channels forget by numbers of their own (Mamba 1), d is softplus(dt + bias) of the channel, v its input,
 * and each row has its own e_i = exp(decay_i * d). The result is gated as in rule 16, with silu of rule 5. It is then
 * normed as in rule 7, each group of heads by itself where the model has several.
 *
 * 19. Low-rank adapters. To the product of a row, before rule 5's bias, d is added: value + d. A token's adapters are
 * in an order, each with ranks 1 to n. n counts as a multiple of 4; the extra elements of A and B are +0.
 *       s   = the user's scale * the adapter's own, one product; its own is alpha / n, or alpha / sqrt(n) where it says
 *             so, computed in double and rounded
 *       t_j = (the sum across lanes (rule 6) of A_ji * x_i, element i in partial i mod 32, by fma) * s
 *       d   = one ascending chain fma(B_rj, t_j, d) from -0, over the ranks of all adapters in their order
 *     x is f32, whatever the matrix itself is multiplied by. With experts, each slot of a token has the pairs of its
 * own expert. A token without adapters has d = -0, which changes
 *     nothing.
 *     Biases of B: behind an adapter's ranks, d = fma(bias_r, s, d).
 *     Magnitudes: an adapter with these has a chain c of its own from -0, biases with it. Its row's factor is
 *     g = m / sqrt(fma(u, fma(u, n2, n1), n0)), u the user's scale; n0 = the sum of w^2, n1 = 2 * own * the sum of w *
 * b and n2 = own^2 * the sum of b^2, w of the row of W and b of that of B A, in double and rounded. Then d = fma(c, g,
 * d), and f = f + (g - 1), from 1 on, over all adapters. What is left is fma(value, f, d).
 */
#ifndef KERNELS_NUMERICS_H
#define KERNELS_NUMERICS_H

#include <stdint.h>

enum { NUMERICS_BLOCK = 32, NUMERICS_SEGMENT = 256, NUMERICS_CHUNK = 128, NUMERICS_MAX_SPANS = 8 };
#define NUMERICS_F16_MAX 65504.0f

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

/* Of rule 5's gelu_erf: fitted for the least relative error of q up to a = 13, behind which it counts as 0. */
#define NUMERICS_ERF_SLOPE 0.3f
#define NUMERICS_ERF_C0 0.11962326f
#define NUMERICS_ERF_C1 0.120845526f
#define NUMERICS_ERF_C2 0.0993471537f
#define NUMERICS_ERF_C3 0.130416343f
#define NUMERICS_ERF_C4 -0.0571671305f
#define NUMERICS_ERF_C5 0.210118131f
#define NUMERICS_ERF_C6 -0.159378134f
#define NUMERICS_ERF_C7 0.0361948101f

/* Of rule 5's swiglu_oai. */
#define NUMERICS_SWIGLU_MAX 7.0f
#define NUMERICS_SWIGLU_SLOPE 1.702f

/* Of rule 17. */
#define NUMERICS_LENGTH_EPS 1e-6f
/* sqrt(1 / 2), of rule 11. */
#define NUMERICS_HALF_ROOT 0.70710678118654752f

#endif
