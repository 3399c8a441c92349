/* jit/ir/each.h - a walk over the rows of an operation of ops.def.
 *
 * IR_EACH(M, x, (row, type), ...) expands M(x, row, type) for each. x goes along as it is; in parentheses it may be
 * several things, which IR_EACH_BARE x takes apart.
 */
#ifndef JIT_IR_EACH_H
#define JIT_IR_EACH_H

#define IR_EACH(M, x, ...) IR_EACH_COUNT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(M, x, __VA_ARGS__)
#define IR_EACH_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) IR_EACH_##n
#define IR_EACH_1(M, x, a) IR_EACH_ROW(M, x, IR_EACH_BARE a)
#define IR_EACH_2(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_1(M, x, __VA_ARGS__)
#define IR_EACH_3(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_2(M, x, __VA_ARGS__)
#define IR_EACH_4(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_3(M, x, __VA_ARGS__)
#define IR_EACH_5(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_4(M, x, __VA_ARGS__)
#define IR_EACH_6(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_5(M, x, __VA_ARGS__)
#define IR_EACH_7(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_6(M, x, __VA_ARGS__)
#define IR_EACH_8(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_7(M, x, __VA_ARGS__)
#define IR_EACH_9(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_8(M, x, __VA_ARGS__)
#define IR_EACH_10(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_9(M, x, __VA_ARGS__)
#define IR_EACH_11(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_10(M, x, __VA_ARGS__)
#define IR_EACH_12(M, x, a, ...) IR_EACH_1(M, x, a) IR_EACH_11(M, x, __VA_ARGS__)
#define IR_EACH_BARE(...) __VA_ARGS__
#define IR_EACH_ROW(M, x, ...) M(x, __VA_ARGS__)

#endif
