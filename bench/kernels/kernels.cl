/* bench/kernels/kernels.cl - the examples in OpenCL, one work item for an instance, for opencl.c. Arguments are the
 * arrays in the order of the example's parameters, then its constants.
 */
kernel void mandelbrot(global int *o, int width, int height)
{
	const int i = get_global_id(0), j = get_global_id(1);
	const float dx = 3.0f / (float)width, dy = 2.0f / (float)height;
	const float c_re = -2.0f + (float)i * dx, c_im = -1.0f + (float)j * dy;
	float re = c_re, im = c_im;
	int count = 0;

	for (int k = 0; k < 256; k++) {
		if (re * re + im * im > 4.0f)
			break;
		const float new_re = re * re - im * im, new_im = 2.0f * re * im;
		re = c_re + new_re;
		im = c_im + new_im;
		count++;
	}
	o[j * width + i] = count;
}

float grad(global const int *perm, int x, int y, int z, float dx, float dy, float dz)
{
	const int h = perm[perm[perm[x] + y] + z] & 15;
	const float u = h < 8 || h == 12 || h == 13 ? dx : dy;
	const float v = h < 4 || h == 12 || h == 13 ? dy : dz;

	return ((h & 1) != 0 ? -u : u) + ((h & 2) != 0 ? -v : v);
}

float weight(float t)
{
	const float t3 = t * t * t, t4 = t3 * t;

	return 6 * t4 * t - 15 * t4 + 10 * t3;
}

float lerp_of(float t, float low, float high) { return (1 - t) * low + t * high; }

float noise_at(global const int *perm, float x, float y, float z)
{
	const float fx = floor(x), fy = floor(y), fz = floor(z);
	const float dx = x - fx, dy = y - fy, dz = z - fz;
	const int jx = (int)fx & 255, jy = (int)fy & 255, jz = (int)fz & 255;
	const float w000 = grad(perm, jx, jy, jz, dx, dy, dz);
	const float w100 = grad(perm, jx + 1, jy, jz, dx - 1, dy, dz);
	const float w010 = grad(perm, jx, jy + 1, jz, dx, dy - 1, dz);
	const float w110 = grad(perm, jx + 1, jy + 1, jz, dx - 1, dy - 1, dz);
	const float w001 = grad(perm, jx, jy, jz + 1, dx, dy, dz - 1);
	const float w101 = grad(perm, jx + 1, jy, jz + 1, dx - 1, dy, dz - 1);
	const float w011 = grad(perm, jx, jy + 1, jz + 1, dx, dy - 1, dz - 1);
	const float w111 = grad(perm, jx + 1, jy + 1, jz + 1, dx - 1, dy - 1, dz - 1);
	const float wx = weight(dx), wy = weight(dy), wz = weight(dz);

	return lerp_of(wz, lerp_of(wy, lerp_of(wx, w000, w100), lerp_of(wx, w010, w110)),
	               lerp_of(wy, lerp_of(wx, w001, w101), lerp_of(wx, w011, w111)));
}

kernel void noise(global const int *perm, global float *o, int width, int height)
{
	const int i = get_global_id(0), j = get_global_id(1);
	const float x = -10.0f + (float)i * (20.0f / (float)width), y = -10.0f + (float)j * (20.0f / (float)height);
	float lambda = 1, o1 = 1, sum = 0;

	for (int k = 0; k < 8; k++) {
		sum += fabs(o1 * noise_at(perm, lambda * x, lambda * y, lambda * 0.6f));
		lambda *= 1.99f;
		o1 *= 0.6f;
	}
	o[j * width + i] = sum * 0.5f;
}

kernel void stencil(global const float *all, global const float *vsq, global float *o, int n)
{
	const int p = n * n, i = (get_global_id(2) + 4) * p + (get_global_id(1) + 4) * n + get_global_id(0) + 4;
	global const float *a = all + i;
	const float div = 0.5f * a[0] - 0.25f * (a[1] + a[-1] + a[n] + a[-n] + a[p] + a[-p]) +
	                  0.125f * (a[2] + a[-2] + a[2 * n] + a[-2 * n] + a[2 * p] + a[-2 * p]) +
	                  -0.0625f * (a[3] + a[-3] + a[3 * n] + a[-3 * n] + a[3 * p] + a[-3 * p]);

	o[i] = 2 * a[0] - o[i] + vsq[i] * div;
}

float cnd(float x)
{
	const float l = fabs(x), k = 1.0f / (1.0f + 0.2316419f * l);
	const float k2 = k * k, k3 = k2 * k, k4 = k2 * k2, k5 = k3 * k2;
	float w = 0.31938153f * k - 0.356563782f * k2 + 1.781477937f * k3 - 1.821255978f * k4 + 1.330274429f * k5;

	w *= 0.39894228040f * exp(-l * l * 0.5f);
	return x > 0 ? 1 - w : w;
}

kernel void black_scholes(global const float *s, global const float *x, global const float *t, global const float *r,
                          global const float *v, global float *o, int n)
{
	const int i = get_global_id(0);
	const float root = sqrt(t[i]);
	const float d1 = (log(s[i] / x[i]) + (r[i] + v[i] * v[i] * 0.5f) * t[i]) / (v[i] * root);

	o[i] = s[i] * cnd(d1) - x[i] * exp(-r[i] * t[i]) * cnd(d1 - v[i] * root);
}

kernel void binomial(global const float *s, global const float *x, global const float *t, global const float *r,
                     global const float *v, global float *o, int n)
{
	const int i = get_global_id(0);
	float value[64];
	const float dt = t[i] / 64, up = exp(v[i] * sqrt(dt)), down = 1 / up, interest = exp(r[i] * dt);
	const float chance = (interest - down) / (up - down);

	for (int j = 0; j < 64; j++)
		value[j] = max(0.0f, x[i] - s[i] * pow(up, (float)(2 * j - 64)));
	for (int j = 1; j < 64; j++)
		for (int k = 0; k < 64 - j; k++)
			value[k] = ((1 - chance) * value[k] + chance * value[k + 1]) / interest;
	o[i] = value[0];
}

kernel void saxpy(float a, global const float *x, global float *y, int n)
{
	const int i = get_global_id(0);

	y[i] = fma(a, x[i], y[i]);
}

kernel void silu(global const float *x, global float *y, int n)
{
	const int i = get_global_id(0);

	y[i] = x[i] / (1 + exp(-x[i]));
}

kernel void matmul(global const float *a, global const float *b, global float *c, int m, int n, int k)
{
	const int x = get_global_id(0), y = get_global_id(1);
	float s = 0;

	for (int p = 0; p < k; p++)
		s = fma(a[y * k + p], b[p * n + x], s);
	c[y * n + x] = s;
}

kernel void histogram(global const uint *x, global uint *bins, int n)
{
	atomic_add(&bins[x[get_global_id(0)] >> 24], 1);
}
