/* Test kernels of the simulator, compiled by clang: arithmetic, LDS, barriers. Workgroups of 64 work items, 16 x 16 for
 * matmul. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define ITEM() __builtin_amdgcn_workitem_id_x()
#define GROUP() __builtin_amdgcn_workgroup_id_x()
#define INDEX() (GROUP() * 64u + ITEM())
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup")
#define SYNC() (FENCE(__ATOMIC_RELEASE), __builtin_amdgcn_s_barrier(), FENCE(__ATOMIC_ACQUIRE))
#define K1 __attribute__((reqd_work_group_size(64, 1, 1))) kernel void

K1 vadd(global float *a, global const float *b, global const float *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) a[i] = b[i] + c[i];
}
K1 vdiv(global float *a, global const float *b, global const float *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) a[i] = b[i] / c[i];
}
K1 vsqrt(global float *a, global const float *b, global const float *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) a[i] = __builtin_sqrtf(b[i]);
}
K1 vfma(global float *a, global const float *b, global const float *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) a[i] = __builtin_fmaf(b[i], c[i], a[i]);
}
K1 vhalf(global float *a, global half *h, global const float *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) { half x = (half)c[i]; h[i] = x; a[i] = (float)x; }
}
K1 vddiv(global double *a, global const double *b, global const double *c, unsigned n)
{
	unsigned i = INDEX();
	if (i < n) a[i] = b[i] / c[i];
}
K1 reduce(global float *out, global const float *b, global const float *unused, unsigned n)
{
	local float t[64];
	unsigned l = ITEM();
	float s = 0;
	for (unsigned i = l; i < n; i += 64) s += b[GROUP() * n + i];
	t[l] = s;
	SYNC();
	for (unsigned k = 32; k; k >>= 1) {
		if (l < k) t[l] += t[l + k];
		SYNC();
	}
	if (l == 0) out[GROUP()] = t[0];
}
__attribute__((reqd_work_group_size(16, 16, 1)))
kernel void matmul(global float *c, global const float *a, global const float *b, unsigned n)
{
	local float ta[16][16], tb[16][16];
	unsigned x = ITEM(), y = __builtin_amdgcn_workitem_id_y();
	unsigned col = GROUP() * 16 + x, row = __builtin_amdgcn_workgroup_id_y() * 16 + y;
	float s = 0;
	for (unsigned k = 0; k < n; k += 16) {
		ta[y][x] = a[row * n + k + x];
		tb[y][x] = b[(k + y) * n + col];
		SYNC();
		for (unsigned i = 0; i < 16; i++) s = __builtin_fmaf(ta[y][i], tb[i][x], s);
		SYNC();
	}
	c[row * n + col] = s;
}
K1 mixed(global uint *a, global const int *b, global const int *c, unsigned n)
{
	unsigned i = INDEX();
	if (i >= n) return;
	int x = b[i], y = c[i] | 1;
	uint r = (uint)(y == -1 ? 0 : x / y);
	r ^= (uint)x % (uint)y;
	r += (uint)((long)x * y >> 32);
	r ^= __builtin_popcount(x);
	r += __builtin_clz(x | 1);
	ulong z = (ulong)(uint)x << 32 | (uint)y;
	r ^= (uint)(z * z >> 13);
	r += x > y ? x : y;
	r ^= (uint)(int)((float)x * 0.001f);
	for (int k = 0; k < (y & 7); k++) r = r * 1664525u + 1013904223u;
	a[i] = r;
}
