/* The loops of _rank.pyx that compute: factors, their sum, z-score and sigmoid. Plain C that compilers vectorise by
 * themselves where it counts, on bare arrays whose lengths the entries have checked.
 *
 * No fused multiply-add, no reordering: every width of register gives the bits of the Python twin, so that the widest
 * one a machine has can be chosen at run time (MEMXD_CLONES) without anybody seeing a difference but speed.
 */
#ifndef MEMXD_RANK_LOOPS_H
#define MEMXD_RANK_LOOPS_H

#include <math.h>
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

/* The frequency factor by count: a table, because a logarithm a row would cost more than all the rest. */
#define MEMXD_SATURATED 22026 /* ln(MEMXD_SATURATED + 1) / 10 >= 1 */
static double memxd_frequencies[MEMXD_SATURATED + 1];

static void memxd_fill_frequencies(void)
{
    for (int count = 0; count <= MEMXD_SATURATED; count++) {
        double value = log((double)count + 1.0) / 10.0;
        memxd_frequencies[count] = value < 1.0 ? value : 1.0;
    }
}

static inline double memxd_frequency(uint32_t retrieval, uint32_t access)
{
    retrieval |= access & (0u - (uint32_t)(retrieval == 0)); /* no branch: nobody could predict it */
    return memxd_frequencies[retrieval < MEMXD_SATURATED ? retrieval : MEMXD_SATURATED];
}

static void memxd_factors(const int32_t *restrict rids, size_t n, const int64_t *restrict reference,
                          const uint32_t *restrict retrieval, const uint32_t *restrict access,
                          const float *restrict importance, double now, double half_life, double *restrict recency,
                          double *restrict frequency, double *restrict weight)
{
    for (size_t i = 0; i < n; i++) {
        recency[i] = memxd_recency((double)reference[rids[i]], now, half_life);
        frequency[i] = memxd_frequency(retrieval[rids[i]], access[rids[i]]);
        weight[i] = (double)importance[rids[i]];
    }
}

/* Weights of semantic, recency, frequency and importance. */
typedef struct {
    double s, r, f, m;
} memxd_weights;

static inline double memxd_weighted(memxd_weights w, double semantic, double recency, double frequency,
                                    double importance)
{
    return ((w.s * semantic + w.r * recency) + w.f * frequency) + w.m * importance;
}

static void memxd_combine(const double *restrict semantic, const double *restrict recency,
                          const double *restrict frequency, const double *restrict importance, size_t n,
                          memxd_weights w, double *restrict raw)
{
    for (size_t i = 0; i < n; i++)
        raw[i] = memxd_weighted(w, semantic[i], recency[i], frequency[i], importance[i]);
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

/* raw for n <= MEMXD_BLOCK rows; semantic may be NULL (0 everywhere). */
MEMXD_CLONES static void memxd_score_block(
    const int32_t *restrict rids, size_t n, const double *restrict semantic, const int64_t *restrict reference,
    const uint32_t *restrict retrieval, const uint32_t *restrict access, const float *restrict importance, double now,
    double half_life, memxd_weights w, double *restrict raw)
{
    double meaning[MEMXD_BLOCK], since[MEMXD_BLOCK], often[MEMXD_BLOCK], weight[MEMXD_BLOCK];
    for (size_t i = 0; i < n; i++) {
        meaning[i] = semantic ? semantic[rids[i]] : 0.0;
        often[i] = memxd_frequency(retrieval[rids[i]], access[rids[i]]);
    }
    for (size_t i = 0; i < n; i++) {
        since[i] = (double)reference[rids[i]];
        weight[i] = (double)importance[rids[i]];
    }
    for (size_t i = 0; i < n; i++)
        raw[i] = memxd_weighted(w, meaning[i], memxd_recency(since[i], now, half_life), often[i], weight[i]);
}

/* Block by block, so that what is gathered stays in the cache; answers how many rows the mask lets through. */
static size_t memxd_score_rows(
    const uint8_t *mask, size_t size, const double *semantic, const int64_t *reference, const uint32_t *retrieval,
    const uint32_t *access, const float *importance, double now, double half_life, memxd_weights w, int32_t *rids,
    double *raw)
{
    size_t n = 0;
    for (size_t first = 0; first < size; first += MEMXD_BLOCK) {
        size_t block = size - first < MEMXD_BLOCK ? size - first : MEMXD_BLOCK;
        size_t found = memxd_compress(mask + first, block, (int32_t)first, rids + n);
        memxd_score_block(rids + n, found, semantic, reference, retrieval, access, importance, now, half_life, w,
                          raw + n);
        n += found;
    }
    return n;
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

/* Smallest and largest finite value, mean and deviation of the distances from the smallest; deviation 0 = no spread. */
typedef struct {
    double low, high, mean, deviation;
} memxd_moments;

static memxd_moments memxd_measure(const double *raw, size_t n)
{
    memxd_moments m = {0.0, 0.0, 0.0, 0.0};
    if (n == 0)
        return m;
    memxd_range(raw, n, INFINITY, &m.low, &m.high);
    if (m.low >= m.high)
        return m; /* none is finite, or all are equal */
    m.mean = memxd_sum_distances(raw, n, m.low, m.high) / (double)n;
    m.deviation = sqrt(memxd_sum_squares(raw, n, m.low, m.high, m.mean) / (double)n);
    if (!(m.deviation > 0.0 && m.deviation < INFINITY))
        m.deviation = 0.0;
    return m;
}

static inline double memxd_z_score(double value, memxd_moments m)
{
    return m.deviation > 0.0 ? (memxd_clamp(value, m.low, m.high) - m.low - m.mean) / m.deviation : 0.0;
}

static inline double memxd_sigmoid(double z)
{
    if (z >= 0.0)
        return 1.0 / (1.0 + exp(-z));
    double e = exp(z);
    return e / (1.0 + e);
}

/* z-scores and sigmoids of n values in the light of m. */
static void memxd_normalise(const double *raw, size_t n, memxd_moments m, double *z, double *score)
{
    for (size_t i = 0; i < n; i++) {
        z[i] = memxd_z_score(raw[i], m);
        score[i] = memxd_sigmoid(z[i]);
    }
}

#endif
