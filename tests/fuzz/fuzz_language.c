/* tests/fuzz/fuzz_language.c - arbitrary bytes as a file of kernels: parsed, bound, and built as IR that verifies. */
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "jit/target.h"
#include "language/jk.h"
#include "tests/fuzz/fuzz.h"

/* target: NULL for what the interpreter runs. */
static void build(const struct jk_kernel *k, const struct target *target, unsigned lanes, bool check)
{
	struct error err = { 0 };
	struct ir ir;

	if (!(target ? jk_build(&ir, k, target, check, &err) : jk_build_lanes(&ir, k, lanes, 1, check, &err))) {
		if (!err.text[0])
			abort();
		return;
	}
	if (!ir_verify(&ir, &err))
		abort();
	ir_free(&ir);
}

static void print(const uint8_t *p, size_t n, const struct jk_messages *m)
{
	static char text[1 << 20];
	FILE *out = fmemopen(text, sizeof text, "w");

	if (!m->n || !out)
		abort();
	jk_print_messages("fuzz.jk", (const char *)p, n, m, out);
	fclose(out);
}

static void bind(struct jk_file *f, const uint8_t *p, size_t n)
{
	const struct jk_constant *first = jk_constant(f, 0);
	const struct jk_value value = { first ? first->name : "", "40" };
	struct jk_messages m;
	struct jk_kernel *k = jk_bind(f, jk_kernel_name(f, 0), &value, first && !first->has_value, &m);
	char sentence[400];

	if (!k) {
		print(p, n, &m);
		return;
	}
	for (size_t i = 0; i < jk_uses(k); i++)
		if (!jk_use(k, i)->line)
			abort();
	for (size_t i = 0; i < jk_locals(k); i++)
		if (!jk_local(k, i)->line)
			abort();
	jk_fault_text(k, (const uint64_t[]){ 1, 1, 7, 0 }, sentence, sizeof sentence);
	build(k, NULL, 8, false);
	build(k, NULL, 32, true);
	build(k, target_find("avx2"), 8, false);
	build(k, target_find("sm90"), 32, false);
	jk_kernel_close(k);
}

void fuzz_language(const uint8_t *p, size_t n)
{
	struct jk_messages m;
	struct jk_file *f = jk_parse("fuzz.jk", (const char *)p, n, &m);

	if (!f) {
		print(p, n, &m);
		return;
	}
	if (m.n)
		abort();
	bind(f, p, n);
	jk_file_close(f);
}

void fuzz_language_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const texts[] = {
		"const i64 n; kernel k(f32 a, in f32 x[n], inout f32 y[n]) over (i in n) { y[i] = fma(a, x[i], y[i]); "
		"}",
		"const i32 n = 9; tune b in {32, 64}; kernel k(in i8 x[n][4], out bf16 o[n][4], in u16 w[n]) over (j "
		"in n, i in 1..4) "
		"block(b) { i32 s = 0; for (k in 0..n step 2) unroll(3) { if (x[k][i] > 3 && s < 9 || k == 1) break; s "
		"+= x[k][i] << 2; } "
		"while (s % 7 != 1) at most 20 { s -= i; } o[j][i] = f32(s) * 0.5 + select(i > 2, 1.0, f32(w[s])); }",
		"fn f32 g(in f32 t[30], f32 a) { f32 b = 1; for (k in 0..i32(a)) { b *= a + t[k]; } return b < 3 ? b : "
		"-b; }"
		"kernel k(in f32 x[30], out f64 o[30], inout u32 h[8]) over (i in 30) { f64 v[5]; v[2] = f64(g(x, "
		"x[i])); "
		"o[i] = sqrt(v[i32(x[3])]) + 1; atomic_add(h[u32(i) & 7], philox(1, 2, 3, 4, 5, u32(i), 2)); }",
		"const i32 n = 70; kernel k(in f32 x[4][n], out f32 o[4][n], out i32 p[n]) over (r in 4) { f32 m = "
		"max(j in 0..n: "
		"x[r][j]); tile f32 t[n]; each (j in 0..n) { t[j] = exp(x[r][j] - m); } sync; f32 s = sum(j in 0..n: "
		"t[j]); "
		"scan exclusive sum (j in 0..n - r) o[r][j] = t[n - 1 - j] / s; if (any(j in 0..r: j > 2) || r == 1) { "
		"scatter_distinct(p[r], clz(r)); } }",
		"kernel k(out u64 o[6]) over (i in 6) { u64 s = splitmix64(u64(i), 3); o[i] = rotl(s, 7) ^ ~s >> 3 | "
		"bits_u64(f64(i)); }",
	};

	for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
		take(user, (const uint8_t *)texts[k], strlen(texts[k]));
}
