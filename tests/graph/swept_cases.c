/* tests/graph/swept_cases.c - see swept_cases.h. */
#include "tests/graph/swept_cases.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* T stands for a type, N for a size, and M for another one. Keys of sort are whole, so that many are equal. */
static const struct {
	const char *types, *text;
} shapes[] = {
	{ "f32 f64 f16 bf16",
	  "input x T[3,N]\ninput z f32[3,N]\nk = round x\na, b, c = sort k x z axis=1\noutput a\noutput "
	  "b\noutput c\nd, e = sort k z axis=1 descending=1\noutput d\noutput e\n" },
	{ "i8 u8 i16 u16 i32 u32 i64 u64 bool",
	  "input x T[N,3]\ninput z i64[N,3]\na, b = sort x z axis=0\noutput a\noutput b\n"
	  "d, e = sort x z axis=0 descending=1\noutput d\noutput e\n" },
	{ "f32 i64",
	  "input x T[2,N,3]\ni = iota type=i32 shape=[2,N,3] axis=1\na, b = sort x i axis=1\noutput a\noutput b\n" },
	{ "f32 f64 f16 i8 u16 i64 bool", "input x T[N,3,2]\ninput i i64[M,2]\na = gather_nd x i\noutput a\ninput k "
	                                 "u8[M,1]\nb = gather_nd x k\noutput b\n" },
	{ "f32 u8 bf16",
	  "input x T[3,N,2]\ninput i i32[3,M,1]\na = gather_nd x i batch=1\noutput a\nb = neg a\n"
	  "c = reduce_sum b axes=[0]\noutput c\ninput k i16[3,0]\nd = gather_nd x k batch=1\noutput d\n" },
	{ "f32 f64 f16 bf16 i8 u8 i16 i32 u64",
	  "input x T[N]\ninput i i32[M,1]\ninput u T[M]\na = scatter_nd x i u mode=add\noutput a\n"
	  "b = scatter_nd x i u mode=mul\noutput b\nc = scatter_nd x i u mode=min\noutput c\n"
	  "d = scatter_nd x i u mode=max\noutput d\n" },
	/* Iterations of one run, and more than one has: constants that are laid out once, two carried values that are
	 * one, and slices that are what is carried. */
	{ "f32 f64 f16 f32",
	  "input c T[1,3]\ninput d T[1,3]\ninput x T[N,1,3]\nw = constant T[3,3] 1 2 -1 0 0.5 -2 1 1 0.25\n"
	  "s, t, y = scan c d x w carried=2 stacked=1 body=\"input c T[1,3]\\ninput d T[1,3]\\ninput x T[1,3]\\n"
	  "input w T[3,3]\\np = dot c w left=[1] right=[1]\\nq = add p x\\nr = tanh q\\nu = sub d r\\nv = sin u\\n"
	  "output r\\noutput v\\noutput r\\n\"\nz = add s t\noutput s\noutput t\noutput y\noutput z\n" },
	{ "f32 f64 f32",
	  "input c T[5]\ninput d T[5]\ninput w T[5,5]\nk = scan c w carried=1 length=N reverse=1 "
	  "body=\"input c T[5]\\ninput w T[5,5]\\np = dot c w left=[0] right=[0]\\nq = tanh p\\noutput q\\n\"\n"
	  "a, b = scan k d w carried=2 length=1N body=\"input c T[5]\\ninput d T[5]\\ninput w T[5,5]\\n"
	  "p = dot d w left=[0] right=[1]\\nq = add p c\\nr = sin q\\noutput r\\noutput r\\n\"\n"
	  "output k\noutput a\noutput b\n" },
	{ "f32 f16 i8 i64 bool", "input x T[N]\ninput i i64[M,1]\ninput u T[M]\na = scatter_nd x i u\noutput a\n" },
	{ "f32 bf16 u32", "input x T[5,3,N]\ninput i i8[M,2]\ninput u T[M,N]\na = scatter_nd x i u mode=add\noutput a\n"
	                  "input k i64[2,0]\ninput v T[2,5,3,N]\nb = scatter_nd x k v mode=add\noutput b\n" },
	{ "f32 f64 f16 i16 u8",
	  "input x T[3,N,2]\ninput i i32[2,M,2]\ninput u T[2,M,2]\na = scatter_along x i u axis=1 mode=add\noutput a\n"
	  "b = scatter_along x i u axis=1 mode=max\noutput b\nc = scatter_along x i u axis=1\noutput c\n" },
	{ "f32 i32",
	  "input x T[2,N]\ninput i u16[2,M]\ninput u T[2,M]\na = scatter_along x i u axis=1 mode=mul\noutput a\n"
	  "input k i64[1,N]\ninput v T[1,N]\nb = scatter_along x k v axis=0 mode=add\noutput b\n" },
	{ "f32 f64 f16 bf16", "input x T[3,N]\ninput z T[3,N]\na = rem x z\noutput a\nb = mul a a\nc = rem b x\nd = "
	                      "reduce_max c axes=[1]\noutput d\n" },
};

/* Every pair of numbers that a remainder may go wrong at. */
static void put_remainders(void (*each)(const char *text, unsigned number), unsigned *number)
{
	static const char *const numbers[][3] = {
		{ "f32",
		  "0 -0 inf -inf nan 1e-45 -3e-45 1.17549421e-38 1.17549435e-38 2.5e-38 1 -1 3 0.1 7.5 -7.5 16777215 "
		  "1e10 "
		  "3.4028234e38 -1e38",
		  "20" },
		{ "f64",
		  "0 -0 inf -inf nan 4.9406564584124654e-324 1.5e-323 2.2250738585072009e-308 2.2250738585072014e-308 "
		  "3e-308 1 "
		  "-1 3 0.1 7.5 -7.5 9007199254740991 1e100 1.7976931348623157e308 -1e308",
		  "20" }
	};

	for (int i = 0; i < 2; i++) {
		char text[1000];
		const char *t = numbers[i][0];
		snprintf(text, sizeof text,
		         "input z %s[20]\nx = constant %s[20] %s\na = broadcast x shape=[20,20] axes=[0]\n"
		         "b = broadcast x shape=[20,20] axes=[1]\nw = broadcast z shape=[20,20] axes=[1]\nn = add w a\n"
		         "k = reverse n axes=[]\nm = sub k w\ny = rem a b\nv = rem n b\noutput y\noutput v\noutput m\n",
		         t, t, numbers[i][1]);
		each(text, (*number)++);
	}
}

/* Products with so many elements that a lane of a card has all the sums it may have: parts of tiles on both sides, an
 * operand in each order, lines that begin anywhere, few columns, and f64; and rows and attention, whose tiles a Radeon
 * card's workgroup has memory for or not. Numbers 2 and 3 are quick runs' cards. */
static void put_tiles(void (*each)(const char *text, unsigned number), bool quick)
{
	static const char *const texts[] = {
		"input x f32[1061,3]\ninput w f32[4100,3]\ninput b f32[4100]\ny = dot x w left=[1] right=[1]\n"
		"bb = broadcast b shape=[1061,4100] axes=[1]\nz = add y bb\noutput z\n",
		"input q f64[8,8]\ninput k f64[256,8]\ns = dot q k left=[1] right=[1]\nm = reduce_max s axes=[1]\n"
		"a = broadcast m shape=[8,256] axes=[0]\nd = sub s a\ne = exp d\nt = reduce_sum e axes=[1]\n"
		"b = broadcast t shape=[8,256] axes=[0]\np = div e b\no = dot p k left=[1] right=[0]\noutput o\n",
		"input x f32[17,300]\nm = reduce_max x axes=[1]\na = broadcast m shape=[17,300] axes=[0]\nd = sub x a\n"
		"e = exp d\ns = reduce_sum e axes=[1]\nb = broadcast s shape=[17,300] axes=[0]\np = div e b\noutput "
		"p\n",
		"input x f32[17,2500]\nm = reduce_max x axes=[1]\na = broadcast m shape=[17,2500] axes=[0]\n"
		"d = sub x a\ne = exp d\nh = tanh e\ns = reduce_sum e axes=[1]\nr = reduce_sum h axes=[1]\nt = mul s "
		"r\n"
		"b = broadcast t shape=[17,2500] axes=[0]\ng = add e h\np = div g b\ni = sub e a\nj = reduce_sum e "
		"axes=[1]\n"
		"k = broadcast j shape=[17,2500] axes=[0]\nl = div e k\noutput p\noutput l\n",
		"input x f32[9,1829,11]\ninput w f32[9,11,72]\n"
		"y = dot x w left=[2] right=[1] left_batch=[0] right_batch=[0]\noutput y\n",
		"input x f32[3,533]\ninput w f32[3,4099]\ny = dot x w left=[0] right=[0]\noutput y\n",
		"input x f32[533,5]\ninput w f32[5,4100]\ny = dot x w left=[1] right=[0]\nz = neg y\noutput z\n",
		"input x f32[20011,3]\ninput w f32[3,40]\ny = dot x w left=[1] right=[0]\noutput y\n",
		"input x f64[9,515,2]\ninput w f64[9,2,300]\n"
		"y = dot x w left=[2] right=[1] left_batch=[0] right_batch=[0]\noutput y\n"
	};

	for (unsigned i = 0; i < (quick ? 5 : sizeof texts / sizeof *texts); i++)
		each(texts[i], 3 - i % 2);
}

static void put_case(void (*each)(const char *text, unsigned number), unsigned number, const char *shape,
                     const char *type, size_t length, unsigned n)
{
	char text[1500];
	size_t at = 0;

	for (const char *p = shape; *p; p++)
		if (*p == 'T')
			at += (size_t)snprintf(text + at, sizeof text - at, "%.*s", (int)length, type);
		else if (*p == 'N')
			at += (size_t)snprintf(text + at, sizeof text - at, "%u", n);
		else if (*p == 'M')
			at += (size_t)snprintf(text + at, sizeof text - at, "%u", n * 2 % 37);
		else
			text[at++] = *p;
	text[at] = 0;
	each(text, number);
}

void swept_cases(void (*each)(const char *text, unsigned number), bool quick)
{
	static const unsigned sizes[] = { 0, 1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 67 };
	enum { SIZES = sizeof sizes / sizeof *sizes };
	unsigned number = 0;

	put_remainders(each, &number);
	put_tiles(each, quick);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (const char *type = shapes[i].types; *type; type += strspn(type, " ")) {
			const size_t length = strcspn(type, " ");
			for (unsigned k = 0; k < SIZES; k++)
				if (!quick || k == (number + i) % SIZES)
					put_case(each, number + k, shapes[i].text, type, length, sizes[k]);
			type += length;
			number++;
		}
}
