/* The loops of _rank.pyx that must run in vector registers: plain C that compilers vectorise by themselves.
 *
 * No fused multiply-add, no reordering: every width of register gives the bits of the Python twin, so that the widest
 * one a machine has can be chosen at run time (CLONES) without anybody seeing a difference but speed.
 */
#ifndef MEMXD_RANK_LOOPS_H
#define MEMXD_RANK_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
    && !defined(__SANITIZE_ADDRESS__)
#define MEMXD_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define MEMXD_CLONES
#endif

#define MEMXD_BLOCK 512
#define MEMXD_LANES 8

/* 2^x for x <= 0, relative error below 2e-16; exact for whole x; x below -1000 counts as -1000.
 * 2^x = 2^k * 2^f with k = x rounded to even: 2^f by a polynomial (Chebyshev nodes on -.5..+.5), 2^k by adding to the
 * exponent's bits. Adding 1.5 * 2^52 rounds and leaves k in the low bits of the sum. */
static inline double memxd_exp2(double x)
{
    const double magic = 6755399441055744.0;
    x = x > -1000.0 ? x : -1000.0;
    double shifted = x + magic;
    double f = x - (shifted - magic);
    double f2 = f * f, f4 = f2 * f2;
    /* Estrin's order: short chains, so that the units stay busy. */
    double p01 = 1.0 + 0.6931471805599453 * f;
    double p23 = 0.24022650695910097 + 0.0555041086648216 * f;
    double p45 = 0.009618129107606888 + 0.0013333558146416936 * f;
    double p67 = 0.0001540353044173605 + 1.525273382983612e-05 * f;
    double p89 = 1.321544258792169e-06 + 1.0178062445845774e-07 * f;
    double pab = 7.072585949269223e-09 + 4.4549605981865186e-10 * f;
    double p = (p01 + p23 * f2) + ((p45 + p67 * f2) + (p89 + pab * f2) * f4) * f4;
    uint64_t bits, k;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&k, &shifted, sizeof k);
    bits += k << 52;
    memcpy(&p, &bits, sizeof p);
    return p;
}

static inline double memxd_recency(double reference, double now, double half_life)
{
    double age = now - reference;
    age = age > 0.0 ? age : 0.0;
    return memxd_exp2(-(age / half_life));
}

/* Append first + i to rids for every i below n whose mask byte is not 0; answers how many. rids has room for n. */
static inline size_t memxd_compress(const uint8_t *restrict mask, size_t n, int32_t first, int32_t *restrict rids)
{
    size_t found = 0;
    if (!memchr(mask, 0, n)) { /* the usual case, without a chain from row to row */
        for (size_t i = 0; i < n; i++)
            rids[i] = first + (int32_t)i;
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        rids[found] = first + (int32_t)i;
        found += mask[i] != 0;
    }
    return found;
}

/* raw = ((s * semantic + r * recency) + f * frequency) + m * importance for n <= MEMXD_BLOCK rows; semantic may be
 * NULL (0 everywhere); table holds the frequency factor for counts up to last, which stands for all above. */
MEMXD_CLONES static void memxd_score_block(
    const int32_t *restrict rids, size_t n, const double *restrict semantic, const int64_t *restrict reference,
    const uint32_t *restrict retrieval, const uint32_t *restrict access, const float *restrict importance,
    const double *restrict table, uint32_t last, double now, double half_life, double s, double r, double f, double m,
    double *restrict raw)
{
    double meaning[MEMXD_BLOCK], since[MEMXD_BLOCK], often[MEMXD_BLOCK], weight[MEMXD_BLOCK];
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        meaning[i] = semantic ? semantic[rids[i]] : 0.0;
    for (size_t i = 0; i < n; i++) {
        uint32_t count = retrieval[rids[i]], other = access[rids[i]];
        count |= other & (0u - (uint32_t)(count == 0)); /* no branch: nobody could predict it */
        often[i] = table[count < last ? count : last];
    }
    for (size_t i = 0; i < n; i++) {
        since[i] = (double)reference[rids[i]];
        weight[i] = (double)importance[rids[i]];
    }
    for (size_t i = 0; i < n; i++)
        raw[i] = ((s * meaning[i] + r * memxd_recency(since[i], now, half_life)) + f * often[i]) + m * weight[i];
}

/* NaN compares false and so counts as low. */
static inline double memxd_clamp(double value, double low, double high)
{
    value = value > low ? value : low;
    return value < high ? value : high;
}

typedef double memxd_four __attribute__((vector_size(32)));
typedef int64_t memxd_four_masks __attribute__((vector_size(32)));

/* Smallest and largest finite value; low > high when there is none. In vector types, because compilers turn the
 * plain loop into branches. */
MEMXD_CLONES static void memxd_range(const double *restrict raw, size_t n, double infinity, double *low, double *high)
{
    memxd_four lows = {infinity, infinity, infinity, infinity}, highs = -lows, v;
    memxd_four_masks less, more;
    size_t base = 0;
    for (; base + 4 <= n; base += 4) {
        memcpy(&v, raw + base, sizeof v);
        v += v - v; /* an infinity becomes NaN, which is neither smaller nor larger */
        less = v < lows;
        more = v > highs;
        lows = (memxd_four)(((memxd_four_masks)v & less) | ((memxd_four_masks)lows & ~less));
        highs = (memxd_four)(((memxd_four_masks)v & more) | ((memxd_four_masks)highs & ~more));
    }
    *low = lows[0];
    *high = highs[0];
    for (int lane = 1; lane < 4; lane++) {
        *low = lows[lane] < *low ? lows[lane] : *low;
        *high = highs[lane] > *high ? highs[lane] : *high;
    }
    for (; base < n; base++) {
        double one = raw[base] + (raw[base] - raw[base]);
        *low = one < *low ? one : *low;
        *high = one > *high ? one : *high;
    }
}

/* Sum of (distance from low - mean) ^ power, power 1 or 2, in interleaved lanes. */
static inline double memxd_sum(const double *restrict raw, size_t n, double low, double high, double mean, int power)
{
    double lanes[MEMXD_LANES] = {0.0};
    size_t base = 0;
    for (; base + MEMXD_LANES <= n; base += MEMXD_LANES)
        for (int lane = 0; lane < MEMXD_LANES; lane++) {
            double d = memxd_clamp(raw[base + lane], low, high) - low - mean;
            lanes[lane] += power == 2 ? d * d : d;
        }
    for (int lane = 0; base + lane < n; lane++) {
        double d = memxd_clamp(raw[base + lane], low, high) - low - mean;
        lanes[lane] += power == 2 ? d * d : d;
    }
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

MEMXD_CLONES static double memxd_sum_distances(const double *raw, size_t n, double low, double high)
{
    return memxd_sum(raw, n, low, high, 0.0, 1);
}

MEMXD_CLONES static double memxd_sum_squares(const double *raw, size_t n, double low, double high, double mean)
{
    return memxd_sum(raw, n, low, high, mean, 2);
}

#endif
