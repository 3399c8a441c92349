/* tests/graph/transform_cases.c - a graph for each operation. */
#include "tests/graph/transform_cases.h"

#define ONE(op) \
	{ \
		"size n\ninput x f64[n,3]\ny = " #op " x\noutput y\n", false, 0 \
	}
#define TWO(op) \
	{ \
		"size n\ninput x f64[n,3]\ninput z f64[n,3]\ny = " #op " x z\noutput y\n", false, 0 \
	}
/* p: above 0.25 */
#define POSITIVE \
	"size n\ninput x f64[n,3]\ninput z f64[n,3]\nh = constant f64[] 0.25\nhb = broadcast h shape=[n,3] axes=[]\n" \
	"xx = mul x x\np = add xx hb\n"
#define COMPARED(op) \
	{ \
		"size n\ninput x f64[n,3]\ninput z f64[n,3]\nc = " #op \
		" x z\nxz = mul x z\ny = select c xz z\noutput y\n", \
			false, 0 \
	}
#define WHOLE(op) \
	{ \
		"size n\ninput x f64[n,3]\ninput z f64[n,3]\ni = convert x type=i32\nk = convert z type=i32\nk = abs " \
		"k\n" \
		"j = " #op " i k\nf = convert j type=f64\ny = mul f x\noutput y\n", \
			false, 0 \
	}
/* Without an element it is infinite, and so are differences. */
#define MAX(op, axes) \
	{ \
		"size n\ninput x f64[3,n,2]\ny = " #op " x axes=" axes "\noutput y\n", false, 1 \
	}
#define REDUCED(op, axes) \
	{ \
		"size n\ninput x f64[3,n,2]\ny = " #op " x axes=" axes "\noutput y\n", false, 0 \
	}
#define SCANNED(op, more) \
	{ \
		"size n\ninput x f64[2,n,3]\ny = " #op " x axis=1" more "\noutput y\n", false, 0 \
	}

const struct transform_case transform_cases[] = {
	ONE(neg),
	ONE(abs),
	ONE(sign),
	ONE(exp),
	ONE(sin),
	ONE(cos),
	ONE(tanh),
	ONE(erf),
	ONE(logistic),
	ONE(floor),
	ONE(ceil),
	ONE(round),
	ONE(trunc),
	TWO(add),
	TWO(sub),
	TWO(mul),
	TWO(max),
	TWO(min),
	{ POSITIVE "y = log p\noutput y\n", false, 0 },
	{ POSITIVE "y = sqrt p\noutput y\n", false, 0 },
	{ POSITIVE "y = rsqrt p\noutput y\n", false, 0 },
	{ POSITIVE "y = pow p z\noutput y\n", false, 0 },
	{ POSITIVE "y = div z p\noutput y\n", false, 0 },
	{ POSITIVE "y = rem z p\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n,3]\ninput z f64[n,3]\ninput w f64[n,3]\ny = fma x z w\noutput y\n", false, 0 },
	COMPARED(eq),
	COMPARED(ne),
	COMPARED(lt),
	COMPARED(le),
	COMPARED(gt),
	COMPARED(ge),
	WHOLE(and),
	WHOLE(or),
	WHOLE(xor),
	WHOLE(shift_left),
	WHOLE(shift_right),
	{ "size n\ninput x f64[n,3]\ni = convert x type=i32\ni = not i\nf = convert i type=f64\ny = mul f x\noutput "
	  "y\n",
	  false, 0 },
	/* Through f32 differences see rounding. */
	{ "size n\ninput x f64[n,3]\na = convert x type=f32\ny = convert a type=f64\noutput y\n", true, 0 },
	{ "size n\ninput x f64[n,3]\ni = bitcast x type=i64\noutput i\n", true, 0 },
	{ "size n\ninput x f64[n,3]\ni = iota type=f64 shape=[n,3] axis=0\ny = mul x i\noutput y\noutput i\n", false,
	  0 },
	/* ---- moves */
	{ "size n\ninput x f64[n,1]\ny = broadcast x shape=[2,n,3] axes=[1,2]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[1,n]\ny = broadcast x shape=[5,2,n] axes=[0,2]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n,6]\ny = reshape x shape=[2,n,3]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,n,3]\ny = transpose x axes=[2,0,1]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[7,n]\ny = slice x start=[1,0] limit=[6,n] strides=[3,1]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[7,n]\ny = slice x start=[3,0] limit=[3,n]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,n]\ninput z f64[]\ny = pad x z low=[2,0] high=[-1,1] interior=[2,0]\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[3,n]\ninput z f64[]\ny = pad x z low=[-1,2] high=[0,3]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[3,n]\ninput z f64[3,2]\ny = concatenate x z x axis=1\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,n,3]\ny = reverse x axes=[0,1]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,5,3]\ninput i i64[n,2]\ny = take x i axis=1\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n]\ninput i i32[]\ny = take x i axis=0\noutput y\n", false, 0 },
	{ "size n\ninput x f64[4,n]\ninput i i64[6,n]\ny = take_along x i axis=0\noutput y\n", false, 0 },
	{ "size n\ninput x f64[4,5,n]\ninput i i64[3,2]\ny = gather_nd x i\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n,5,2]\ninput i i32[n,3,1]\ny = gather_nd x i batch=1\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,n,4]\ninput i u8[2,n,2,1]\ny = gather_nd x i batch=2\noutput y\n", false, 0 },
	{ "size n\ninput x f64[5,n]\ninput z f64[4,n]\ninput i i64[4,1]\ny = scatter_nd x i z mode=add\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[5,n]\ninput z f64[3,n]\ni = constant i64[3,1] 4 7 0\ny = scatter_nd x i z\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[5,n]\ninput z f64[4,n]\ninput i i64[4,1]\ny = scatter_nd x i z mode=set\noutput y\n",
	  true, 0 },
	{ "size n\ninput x f64[5,n]\ninput z f64[4,n]\ninput i i64[4,1]\ny = scatter_nd x i z mode=mul\noutput y\n",
	  true, 0 },
	{ "size n\ninput x f64[n,5]\ninput z f64[n,4]\ninput i i64[n,4]\n"
	  "y = scatter_along x i z axis=1 mode=add\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[5,2]\ninput z f64[3,2]\ni = constant i64[3,2] 4 1 9 2 0 3\n"
	  "y = scatter_along x i z axis=0\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[n,5]\ninput z f64[n,4]\ninput i i64[n,4]\n"
	  "y = scatter_along x i z axis=1 mode=max\noutput y\n",
	  true, 0 },
	/* ---- many */
	REDUCED(reduce_sum, "[1]"),
	REDUCED(reduce_sum, "[0,2]"),
	REDUCED(reduce_sum, "[]"),
	REDUCED(reduce_product, "[1]"),
	REDUCED(reduce_product, "[2,0]"),
	REDUCED(reduce_product, "[]"),
	MAX(reduce_max, "[1]"),
	MAX(reduce_max, "[0,1,2]"),
	MAX(reduce_min, "[0,2]"),
	SCANNED(cumsum, ""),
	SCANNED(cumsum, " reverse=1"),
	SCANNED(cumsum, " exclusive=1"),
	SCANNED(cumsum, " reverse=1 exclusive=1"),
	SCANNED(cumprod, ""),
	SCANNED(cumprod, " reverse=1"),
	SCANNED(cumprod, " exclusive=1"),
	SCANNED(cumprod, " reverse=1 exclusive=1"),
	{ "size n\ninput x f64[2,n]\nz = constant f64[] 0\nb = broadcast z shape=[2,n] axes=[]\nc = lt x b\n"
	  "a = reduce_any c axes=[1]\ne = reduce_all c axes=[0]\nas = convert a type=f64\nes = convert e type=f64\n"
	  "y = dot as x left=[0] right=[0]\nw = mul y es\noutput w\n",
	  false, 0 },
	{ "size n\ninput x f64[2,n]\na = argmax x axis=1\nb = argmin x axis=0 last=1\nf = convert a type=f64\n"
	  "y = dot f x left=[0] right=[0]\noutput y\noutput b\n",
	  false, 1 },
	{ "size n\ninput x f64[2,n]\ninput z f64[2,n]\na, b = sort x z axis=1\noutput a\noutput b\n", false, 0 },
	{ "size n\ninput x f64[n,3]\ni = iota type=i64 shape=[n,3] axis=0\na, b = sort x i axis=0 descending=1\n"
	  "f = convert b type=f64\ny = mul a f\noutput y\n",
	  false, 0 },
	/* Differences do not show that it is passed straight through: t_transform_rules does. */
	{ "size n\ninput x f64[n,3]\ninput s f64[n,3]\nss = mul s s\nh = constant f64[] 0.25\n"
	  "hb = broadcast h shape=[n,3] axes=[]\nsc = add ss hb\na = constant f64[] -3\nb = constant f64[] 2\n"
	  "ab = broadcast a shape=[n,3] axes=[]\nbb = broadcast b shape=[n,3] axes=[]\n"
	  "y = fake_quantise x sc ab bb\noutput y\n",
	  true, 0 },
	/* A batch of keys, and one that all sets share. */
	{ "size n\ninput x f64[n,3]\ninput k u32[4]\nb = random_bits k shape=[n,3]\nm = constant u32[] 7\n"
	  "mb = broadcast m shape=[n,3] axes=[]\nl = and b mb\nf = convert l type=f64\ny = mul f x\noutput y\n"
	  "output b\n",
	  true, 0 },
	/* ---- loops: what is carried, stacked and shared; to the end and from it; carried values that change places,
	 * and such as are no floats */
	{ "size n\ninput c f64[2]\ninput x f64[n,2]\ninput w f64[2,2]\n"
	  "e, y = scan c x w carried=1 stacked=1 body=\"input c f64[2]\\ninput x f64[2]\\ninput w f64[2,2]\\n"
	  "h = dot c w left=[0] right=[0]\\ns = add h x\\nt = tanh s\\nq = mul t x\\noutput t\\noutput q\\n\"\n"
	  "output e\noutput y\n",
	  false, 0 },
	{ "size n\ninput c f64[n]\ninput d f64[n]\ninput k i32[]\ninput x f64[3,n]\ninput z f64[3,n]\n"
	  "e, f, l, y, p = scan c d k x z carried=3 stacked=2 reverse=1 body=\"size n\\ninput c f64[n]\\n"
	  "input d f64[n]\\ninput k i32[]\\ninput x f64[n]\\ninput z f64[n]\\none = constant i32[] 1\\n"
	  "next = add k one\\nf = convert k type=f64\\nb = broadcast f shape=[n] axes=[]\\ncx = mul c x\\n"
	  "sz = sin z\\ns = fma sz d cx\\noutput d\\noutput s\\noutput next\\noutput c\\noutput b\\n\"\n"
	  "output e\noutput f\noutput y\noutput p\n",
	  false, 0 },
	{ "size n\ninput c f64[3]\ninput w f64[3]\n"
	  "e = scan c w carried=1 length=n body=\"input c f64[3]\\ninput w f64[3]\\ns = sin c\\nt = mul s w\\n"
	  "output t\\n\"\noutput e\n",
	  false, 0 },
	{ "size n\ninput x f64[3,n]\n"
	  "y = scan x stacked=1 body=\"size n\\ninput x f64[n]\\nz = constant f64[] 1\\n"
	  "e = scan z x carried=1 stacked=1 body=\\\"input c f64[]\\\\ninput x f64[]\\\\nh = sin x\\\\n"
	  "t = mul c h\\\\noutput t\\\\n\\\"\\noutput e\\n\"\noutput y\n",
	  false, 0 },
	/* ---- equations, of matrices that are far from singular */
	{ "size n\ninput x f64[2,n,n]\ninput b f64[2,n,3]\ni = iota type=i32 shape=[n,n] axis=0\n"
	  "j = iota type=i32 shape=[n,n] axis=1\nd = eq i j\nf = convert d type=f64\nk = constant f64[] 40\n"
	  "kb = broadcast k shape=[n,n] axes=[]\nm = mul f kb\nmb = broadcast m shape=[2,n,n] axes=[1,2]\n"
	  "a = add x mb\ny = solve a b\noutput y\n",
	  false, 0 },
	/* A user's kernel has no forward derivative; t_transform_rules has its gradient. */
	{ "size n\ninput x f64[n,3]\ninput i i32[n]\n"
	  "a, b = kernel x i constants=\"n=n\" source=\"const i64 n; const i64 m = 3;\\n"
	  "kernel cube(in f64 x[n][m], out f64 y[n][m], in i32 k[n], out i32 z[n][m]) over (i in n, j in m) { "
	  "y[i][j] = x[i][j] * x[i][j] * x[i][j]; z[i][j] = k[i] + i32(j); }\"\noutput a\noutput b\n",
	  true, 0 },
	/* ---- packed weights, whose scales are cut to what floats can have */
	{ "size n\ninput x f64[n,64]\ninput w u8[3,68]\nm = constant u8[] 63\nb = broadcast m shape=[3,68] axes=[]\n"
	  "c = and w b\nf = dequantise c format=Q8_0\nd = convert f type=f64\ny = dot x d left=[1] right=[1]\n"
	  "output y\n",
	  false, 0 },
	/* ---- products */
	{ "size n\ninput x f64[3,n]\ninput z f64[n,2]\ny = dot x z left=[1] right=[0]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n]\ny = dot x x left=[0] right=[0]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2]\ninput z f64[n]\ny = dot x z left=[] right=[]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,n,3,5]\ninput z f64[3,2,4,n]\n"
	  "y = dot x z left=[1] right=[3] left_batch=[2,0] right_batch=[0,1]\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[2,n,3]\ninput z f64[3,4,2]\ny = dot x z left=[0,2] right=[2,0]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[2,3,n]\ninput z f64[4,3,2]\ny = conv x z low=[1] high=[1]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[n,2,5]\ninput z f64[3,2,3]\n"
	  "y = conv x z strides=[2] low=[2] high=[3] dilation=[2] input_dilation=[3]\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[1,4,5,4]\ninput z f64[6,2,2,3]\n"
	  "y = conv x z strides=[2,1] low=[0,1] high=[-1,2] dilation=[1,2] groups=2\noutput y\n",
	  false, 0 },
	{ "size n\ninput x f64[2,n,4]\ninput z f64[n,1,2]\ny = conv x z groups=n strides=[3]\noutput y\n", false, 1 },
	{ "size n\ninput x f64[2,n,4]\ninput z f64[3,n,2]\ny = conv x z low=[-1]\noutput y\n", false, 0 },
	{ "size n\ninput x f64[1,2,n]\n"
	  "y = window_max x window=[3] strides=[2] low=[2] high=[1]\nz = slice y start=[0,0,0] limit=[1,2,1]\n"
	  "output z\n",
	  false, 1 },
	{ "size n\ninput x f64[2,n,6,5]\ny = window_max x window=[2,3] strides=[1,2] dilation=[2,1] high=[0,-1] "
	  "low=[0,1]\n"
	  "output y\n",
	  false, 0 },
	{ "size n\ninput x f64[2,2,n]\ny = window_sum x window=[3] strides=[2] low=[2] high=[1]\noutput y\n", false,
	  0 },
	{ "size n\ninput x f64[1,n,6,5]\n"
	  "y = window_sum x window=[2,3] strides=[3,2] dilation=[2,1] high=[0,-1] low=[0,1]\noutput y\n",
	  false, 0 },
	/* All of it is beside nothing, turned round. */
	{ "size n\ninput x f64[n,2]\ninput z f64[]\ns = slice x start=[0,0] limit=[0,2]\nr = reverse s axes=[0]\n"
	  "y = pad r z low=[2,0] high=[1,0]\noutput y\n",
	  false, 0 },
	/* Of an axis with one element, each operand has another position. */
	{ "size n\ninput x f64[2,n]\ns = slice x start=[1,0] limit=[2,n]\ny = concatenate s s s axis=0\noutput y\n",
	  false, 0 },
	/* A value that is used twice, an output twice, and an input that nothing uses. */
	{ "size n\ninput x f64[n,3]\ninput z f64[2]\ny = tanh x\nw = mul y x\nw = add w y\noutput w\noutput y\n"
	  "output w as again\n",
	  false, 0 },
	{ "size n\ninput x f64[n,3]\ninput z f64[2]\noutput z\noutput x\n", false, 0 },
};
const size_t n_transform_cases = sizeof transform_cases / sizeof *transform_cases;
