/* Which postings of one list may belong to a document among the best, by what the other lists can add to it: many documents
 * at once, without reading these lists. Compiled for several processors; which runs decides nothing. Part of
 * bm25_turns.h.
 */
#ifndef MEMXD_BM25_SIEVE_H
#define MEMXD_BM25_SIEVE_H

#include "bm25_loops.h"
#ifdef BM25_X86
#include <immintrin.h>
#endif

/* Another list: its frequencies by document, or else a filter (bm25_list) and the most that it adds. */
typedef struct {
    const uint8_t *dense, *filter;
    int32_t wrap;
    float weight, bound;
} bm25_test;

/* The postings of a list, and what they are held against. A document whose share is below `need` is not tested. */
typedef struct {
    const int32_t *docs;
    const uint32_t *packed;
    float fixed, slope, weight, need, least, open; /* open: what lists can add that cannot be asked */
    const bm25_test *tests;
    int64_t count;
} bm25_piece;

/* Documents, their shares and what their lengths make of a frequency: tf / (tf + norm). */
typedef int64_t (*bm25_sieve_fn)(const bm25_piece *piece, int64_t n, int32_t *docs, float *values, float *norms);

static inline float bm25_saturated(float tf, float norm) { return tf > 0.0f ? tf / (tf + norm) : 0.0f; }

/* Postings from..n-1, those found before them in place. */
static inline int64_t bm25_sieve_from(const bm25_piece *piece, int64_t from, int64_t n, int64_t found, int32_t *docs,
                                      float *values, float *norms) {
    for (int64_t i = from; i < n; i++) {
        const int32_t doc = piece->docs[i];
        float tf = (float)(int32_t)(piece->packed[i] >> 16);
        tf = tf >= (float)BM25_LARGE ? 1e30f : tf;
        const float norm = piece->fixed + piece->slope * (float)(int32_t)(piece->packed[i] & 0xffffu);
        const float value = piece->weight * (tf / (tf + norm));
        if (value < piece->need) continue;
        float most = value;
        for (int64_t t = 0; t < piece->count; t++) {
            const bm25_test *test = &piece->tests[t];
            if (test->dense) {
                const float times = test->dense[doc] < 255 ? (float)test->dense[doc] : 1e30f;
                most += test->weight * bm25_saturated(times, norm);
            } else {
                const int32_t bit = doc & test->wrap;
                if (test->filter[bit >> 3] >> (bit & 7) & 1) most += test->bound;
            }
        }
        docs[found] = doc, values[found] = value, norms[found] = norm;
        found += most >= piece->least;
    }
    return found;
}

static int64_t bm25_sieve_portable(const bm25_piece *piece, int64_t n, int32_t *docs, float *values, float *norms) {
    return bm25_sieve_from(piece, 0, n, 0, docs, values, norms);
}

#ifdef BM25_X86
__attribute__((target("avx2"))) static inline __m256 bm25_saturated_avx2(__m256i frequency, __m256 norm, int large) {
    __m256 tf = _mm256_cvtepi32_ps(frequency);
    tf = _mm256_blendv_ps(tf, _mm256_set1_ps(1e30f), _mm256_cmp_ps(tf, _mm256_set1_ps((float)large), _CMP_GE_OQ));
    return _mm256_div_ps(tf, _mm256_add_ps(tf, norm));
}

__attribute__((target("avx2"))) static inline __m256 bm25_test_avx2(const bm25_test *test, __m256i doc, __m256 norm) {
    if (test->dense) { /* three bytes beyond the last document may be read */
        const __m256i times = _mm256_and_si256(_mm256_i32gather_epi32((const int *)test->dense, doc, 1), _mm256_set1_epi32(255));
        const __m256 share = _mm256_mul_ps(_mm256_set1_ps(test->weight), bm25_saturated_avx2(times, norm, 255));
        return _mm256_and_ps(share, _mm256_castsi256_ps(_mm256_cmpgt_epi32(times, _mm256_setzero_si256())));
    }
    const __m256i word = _mm256_srli_epi32(_mm256_and_si256(doc, _mm256_set1_epi32(test->wrap)), 5);
    const __m256i bits = _mm256_i32gather_epi32((const int *)test->filter, word, 4);
    const __m256i set = _mm256_sllv_epi32(bits, _mm256_andnot_si256(doc, _mm256_set1_epi32(31)));
    return _mm256_and_ps(_mm256_set1_ps(test->bound), _mm256_castsi256_ps(_mm256_srai_epi32(set, 31)));
}

__attribute__((target("avx2"))) static int64_t bm25_sieve_avx2(const bm25_piece *piece, int64_t n, int32_t *docs,
                                                               float *values, float *norms) {
    int64_t found = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i doc = _mm256_loadu_si256((const __m256i *)(piece->docs + i));
        const __m256i packed = _mm256_loadu_si256((const __m256i *)(piece->packed + i));
        const __m256 length = _mm256_cvtepi32_ps(_mm256_and_si256(packed, _mm256_set1_epi32(0xffff)));
        const __m256 norm = _mm256_add_ps(_mm256_set1_ps(piece->fixed), _mm256_mul_ps(_mm256_set1_ps(piece->slope), length));
        const __m256 value = _mm256_mul_ps(_mm256_set1_ps(piece->weight),
                                           bm25_saturated_avx2(_mm256_srli_epi32(packed, 16), norm, (int)BM25_LARGE));
        const __m256 enough = _mm256_cmp_ps(value, _mm256_set1_ps(piece->need), _CMP_GE_OQ);
        __m256 most = value;
        float some[16];
        if (!_mm256_movemask_ps(enough)) continue;
        for (int64_t t = 0; t < piece->count; t++) most = _mm256_add_ps(most, bm25_test_avx2(&piece->tests[t], doc, norm));
        const __m256 keep = _mm256_and_ps(enough, _mm256_cmp_ps(most, _mm256_set1_ps(piece->least), _CMP_GE_OQ));
        int mask = _mm256_movemask_ps(keep);
        if (!mask) continue;
        _mm256_storeu_ps(some, value);
        _mm256_storeu_ps(some + 8, norm);
        for (; mask; mask &= mask - 1) {
            const int at = __builtin_ctz((unsigned)mask);
            docs[found] = piece->docs[i + at], values[found] = some[at], norms[found++] = some[8 + at];
        }
    }
    return bm25_sieve_from(piece, i, n, found, docs, values, norms);
}
#endif

static bm25_sieve_fn bm25_sieve = bm25_sieve_portable;

/* Chosen once, at import. */
static void bm25_pick_sieve(void) {
#ifdef BM25_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) bm25_sieve = bm25_sieve_avx2;
#endif
}

#endif
