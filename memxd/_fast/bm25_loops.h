/* Loops over many values, compiled for several processors: no result depends on which runs. Part of bm25.h: what postings
 * add (bm25_shares), and which sums are large enough (bm25_above). bm25_pick chooses once, at import.
 */
#ifndef MEMXD_BM25_LOOPS_H
#define MEMXD_BM25_LOOPS_H

#include <stdint.h>

#define BM25_LARGE 65535u /* a packed frequency that stands for itself or more: the exact one is in `more` */

typedef void (*bm25_shares_fn)(const uint32_t *packed, float *out, int64_t n, float fixed, float slope, float weight);
typedef int64_t (*bm25_above_fn)(const float *sums, int64_t n, float least, int32_t first, int32_t *docs, float *values);

#define BM25_LOOPS(NAME, TARGET)                                                                                        \
    TARGET static void bm25_shares_##NAME(const uint32_t *packed, float *out, int64_t n, float fixed, float slope,      \
                                          float weight) {                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                               \
            const float length = (float)(int32_t)(packed[i] & 0xffffu);                                                 \
            float tf = (float)(int32_t)(packed[i] >> 16);                                                               \
            tf = tf >= (float)BM25_LARGE ? 1e30f : tf;                                                                  \
            out[i] = weight * (tf / (tf + (fixed + slope * length)));                                                   \
        }                                                                                                               \
    }                                                                                                                   \
    TARGET static int64_t bm25_above_##NAME(const float *sums, int64_t n, float least, int32_t first, int32_t *docs,    \
                                            float *values) {                                                            \
        int64_t found = 0;                                                                                              \
        for (int64_t i = 0; i < n; i += 32) {                                                                           \
            int32_t any = 0;                                                                                            \
            for (int64_t j = 0; j < 32; j++) any |= sums[i + j] > least;                                                \
            for (int64_t j = 0; any && j < 32; j++) {                                                                   \
                docs[found] = first + (int32_t)(i + j);                                                                 \
                values[found] = sums[i + j];                                                                            \
                found += sums[i + j] > least;                                                                           \
            }                                                                                                           \
        }                                                                                                               \
        return found;                                                                                                   \
    }

BM25_LOOPS(portable, )
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#define BM25_X86 1
BM25_LOOPS(avx2, __attribute__((target("avx2"))))
#endif

static bm25_shares_fn bm25_shares = bm25_shares_portable;
static bm25_above_fn bm25_above = bm25_above_portable;

/* Chosen once, at import. */
static void bm25_pick(void) {
#ifdef BM25_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) bm25_shares = bm25_shares_avx2, bm25_above = bm25_above_avx2;
#endif
}

#endif
