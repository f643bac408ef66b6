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
#if __GNUC__ >= 12
#define MEMXD_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MEMXD_CLONES __attribute__((target_clones("avx2", "default")))
#endif
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

/* (double)v for any v, in operations that every vector unit has: both halves of v become mantissas of known powers of
 * two, what was added is taken off again, and only the last addition rounds. */
static inline double memxd_double(int64_t v)
{
    uint64_t low = ((uint64_t)v & UINT64_C(0xFFFFFFFF)) | UINT64_C(0x4330000000000000); /* 2^52 + low */
    uint64_t high = ((uint64_t)v >> 32) ^ UINT64_C(0x4530000080000000); /* 2^84 + 2^63 + high * 2^32 */
    double l, h;
    memcpy(&l, &low, sizeof l);
    memcpy(&h, &high, sizeof h);
    return (h - 19342822341709703277445120.0) + l; /* 2^84 + 2^63 + 2^52 */
}

/* rate = 1 / half-life: a division for each row would cost as much as the power. */
static inline double memxd_recency(int64_t reference, double now, double rate)
{
    double age = now - memxd_double(reference);
    age = age > 0.0 ? age : 0.0;
    return memxd_exp2(-(age * rate));
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

/* recency, frequency and importance of n <= MEMXD_BLOCK rows whose features lie side by side. */
MEMXD_CLONES static void memxd_factors_block(
    size_t n, const int64_t *restrict reference, const uint32_t *restrict retrieval, const uint32_t *restrict access,
    const float *restrict importance, double now, double rate, double *restrict recency, double *restrict frequency,
    double *restrict weight)
{
    int32_t counts[MEMXD_BLOCK];
    for (size_t i = 0; i < n; i++) {
        uint32_t count = retrieval[i] ? retrieval[i] : access[i];
        counts[i] = (int32_t)(count < MEMXD_SATURATED ? count : MEMXD_SATURATED);
    }
    for (size_t i = 0; i < n; i++)
        frequency[i] = memxd_frequencies[counts[i]];
    for (size_t i = 0; i < n; i++) {
        recency[i] = memxd_recency(reference[i], now, rate);
        weight[i] = (double)importance[i];
    }
}

/* What ranking reads of each row, by rid. */
typedef struct {
    const int64_t *reference;
    const uint32_t *retrieval, *access;
    const float *importance;
    const uint8_t *type, *cjk;
    const uint64_t *content, *fold, *tag;
} memxd_columns;

/* The features of rows that lie apart, brought side by side. */
typedef struct {
    int64_t reference[MEMXD_BLOCK];
    uint32_t retrieval[MEMXD_BLOCK], access[MEMXD_BLOCK];
    float importance[MEMXD_BLOCK];
} memxd_gathered;

static inline void memxd_gather(const memxd_columns *c, const int32_t *restrict rids, size_t n,
                                memxd_gathered *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out->reference[i] = c->reference[rids[i]];
        out->retrieval[i] = c->retrieval[rids[i]];
        out->access[i] = c->access[rids[i]];
        out->importance[i] = c->importance[rids[i]];
    }
}

static void memxd_factors(const memxd_columns *c, const int32_t *rids, size_t n, double now, double rate,
                          double *recency, double *frequency, double *weight)
{
    memxd_gathered g;
    for (size_t at = 0; at < n; at += MEMXD_BLOCK) {
        size_t count = n - at < MEMXD_BLOCK ? n - at : MEMXD_BLOCK;
        memxd_gather(c, rids + at, count, &g);
        memxd_factors_block(count, g.reference, g.retrieval, g.access, g.importance, now, rate, recency + at,
                            frequency + at, weight + at);
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

MEMXD_CLONES static void memxd_combine(const double *restrict semantic, const double *restrict recency,
                          const double *restrict frequency, const double *restrict importance, size_t n,
                          memxd_weights w, double *restrict raw)
{
    for (size_t i = 0; i < n; i++)
        raw[i] = memxd_weighted(w, semantic[i], recency[i], frequency[i], importance[i]);
}

/* raw of n <= MEMXD_BLOCK rows whose features lie side by side. */
static void memxd_score_block(
    size_t n, const double *restrict semantic, const int64_t *restrict reference, const uint32_t *restrict retrieval,
    const uint32_t *restrict access, const float *restrict importance, double now, double rate, memxd_weights w,
    double *restrict raw)
{
    double since[MEMXD_BLOCK], often[MEMXD_BLOCK], weight[MEMXD_BLOCK];
    memxd_factors_block(n, reference, retrieval, access, importance, now, rate, since, often, weight);
    memxd_combine(semantic, since, often, weight, n, w, raw);
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

/* In every lane the larger one; NaN in v does not count. */
static inline void memxd_raise(memxd_four *most, memxd_four v)
{
    memxd_four_masks more = v > *most;
    *most = (memxd_four)(((memxd_four_masks)v & more) | ((memxd_four_masks)*most & ~more));
}

/* The largest of n values and least; NaN does not count. */
MEMXD_CLONES static double memxd_largest(const double *values, size_t n, double least)
{
    memxd_four most = {least, least, least, least}, v;
    size_t base = 0;
    for (; base + 4 <= n; base += 4) {
        memcpy(&v, values + base, sizeof v);
        memxd_raise(&most, v);
    }
    for (int lane = 0; lane < 4; lane++)
        least = most[lane] > least ? most[lane] : least;
    for (; base < n; base++)
        least = values[base] > least ? values[base] : least;
    return least;
}

/* Sums of the distances from a shift and of their squares in interleaved lanes (Chan, Golub, LeVeque 1983), and the
 * largest value but for NaN. Lanes 0..3 and 4..7 are a vector each, because compilers keep arrays of lanes in memory. */
typedef struct {
    memxd_four one[2], two[2];
} memxd_sums;

/* Add n values and answer the largest but for NaN, -infinity when there is none; all calls but the last bring a
 * multiple of MEMXD_LANES. */
MEMXD_CLONES static double memxd_add(memxd_sums *sums, const double *raw, size_t n, double shift)
{
    memxd_four one_a = sums->one[0], one_b = sums->one[1], two_a = sums->two[0], two_b = sums->two[1], a, b;
    memxd_four most_a = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, most_b = most_a;
    double most = -INFINITY;
    size_t base = 0;
    for (; base + MEMXD_LANES <= n; base += MEMXD_LANES) {
        memcpy(&a, raw + base, sizeof a);
        memcpy(&b, raw + base + 4, sizeof b);
        memxd_raise(&most_a, a);
        memxd_raise(&most_b, b);
        a -= shift;
        b -= shift;
        one_a += a;
        one_b += b;
        two_a += a * a;
        two_b += b * b;
    }
    sums->one[0] = one_a;
    sums->one[1] = one_b;
    sums->two[0] = two_a;
    sums->two[1] = two_b;
    memxd_raise(&most_a, most_b);
    for (int lane = 0; lane < 4; lane++)
        most = most_a[lane] > most ? most_a[lane] : most;
    for (int lane = 0; base + lane < n; lane++) {
        double d = raw[base + lane] - shift;
        most = raw[base + lane] > most ? raw[base + lane] : most;
        sums->one[lane / 4][lane % 4] += d;
        sums->two[lane / 4][lane % 4] += d * d;
    }
    return most;
}

static inline double memxd_fold(const memxd_four *lanes)
{
    memxd_four a = lanes[0], b = lanes[1];
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((b[0] + b[1]) + (b[2] + b[3]));
}

/* A value of the set, mean and deviation (0 = no spread) of the distances from it, smallest and largest finite value
 * (infinities where all are finite: nothing is to be cut then). */
typedef struct {
    double shift, mean, deviation, low, high;
} memxd_moments;

/* Whether every value that was added was finite (or their squares are beyond float64, which ends alike). */
static inline int memxd_all_finite(const memxd_sums *sums)
{
    return fabs(memxd_fold(sums->two)) < INFINITY;
}

static memxd_moments memxd_of_sums(const memxd_sums *sums, size_t n, double shift, double low, double high)
{
    double mean = memxd_fold(sums->one) / (double)n;
    double variance = memxd_fold(sums->two) / (double)n - mean * mean;
    double deviation = variance > 0.0 && variance < INFINITY ? sqrt(variance) : 0.0;
    memxd_moments m = {shift, mean, deviation, low, high};
    return m;
}

/* Bring n values to what they count as: NaN the smallest finite value, infinities the smallest or largest one. */
MEMXD_CLONES static void memxd_clamp_all(double *raw, size_t n, double low, double high)
{
    for (size_t i = 0; i < n; i++)
        raw[i] = memxd_clamp(raw[i], low, high);
}

static memxd_moments memxd_measure(const double *raw, size_t n)
{
    memxd_moments none = {0.0, 0.0, 0.0, 0.0, 0.0};
    memxd_sums sums = {{{0.0}}}, again = {{{0.0}}};
    double low, high, shift, part[MEMXD_BLOCK];
    if (n == 0)
        return none;
    memxd_add(&sums, raw, n, raw[0]);
    if (memxd_all_finite(&sums))
        return memxd_of_sums(&sums, n, raw[0], -INFINITY, INFINITY);
    memxd_range(raw, n, INFINITY, &low, &high);
    if (low > high)
        return none;
    shift = memxd_clamp(raw[0], low, high);
    for (size_t first = 0; first < n; first += MEMXD_BLOCK) {
        size_t block = n - first < MEMXD_BLOCK ? n - first : MEMXD_BLOCK;
        memcpy(part, raw + first, block * sizeof *part);
        memxd_clamp_all(part, block, low, high);
        memxd_add(&again, part, block, shift);
    }
    return memxd_of_sums(&again, n, shift, low, high);
}

/* 1 / (1 + e^-x). */
static inline double memxd_sigmoid(double x)
{
    double e = memxd_exp2(-(fabs(x) * 1.4426950408889634));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

/* z-scores and sigmoids of n values in the light of m. */
MEMXD_CLONES static void memxd_normalise(const double *restrict raw, size_t n, memxd_moments m, double *restrict z,
                                         double *restrict score)
{
    double low = m.low, high = m.high, shift = m.shift, mean = m.mean, deviation = m.deviation;
    if (deviation > 0.0)
        for (size_t i = 0; i < n; i++)
            z[i] = (memxd_clamp(raw[i], low, high) - shift - mean) / deviation;
    else
        memset(z, 0, n * sizeof *z);
    for (size_t i = 0; i < n; i++)
        score[i] = memxd_sigmoid(z[i]);
}

#endif
