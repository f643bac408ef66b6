/* What is worked out once for a posting list and kept with it: that it is one (bm25_check), what its documents can add
 * at most (bm25_bounds), and what spares searching it: the frequencies of a long one by document (bm25_densify), the
 * filter of another (bm25_fill). bm25_run.h explains what for; called by _bm25.pyx.
 */
#ifndef MEMXD_BM25_LISTS_H
#define MEMXD_BM25_LISTS_H

#include "bm25.h"

/* Upper bounds for these parameters and every larger slope; starts and bounds NULL = only the bound of all. */
static float bm25_bounds(const int32_t *docs, const uint32_t *packed, int64_t size, float fixed, float slope, int64_t windows,
                         int32_t *starts, float *bounds) {
    float parts[256], most = 0.0f;
    int64_t window = 0;
    if (starts) starts[0] = 0, memset(bounds, 0, (size_t)windows * sizeof *bounds);
    for (int64_t i = 0; i < size; i += 256) {
        const int64_t n = size - i < 256 ? size - i : 256;
        bm25_shares(packed + i, parts, n, fixed, slope, 1.000002f);
        for (int64_t j = 0; j < n; j++) {
            if (starts) {
                while (window < docs[i + j] >> BM25_BITS) starts[++window] = (int32_t)(i + j);
                if (parts[j] > bounds[window]) bounds[window] = parts[j];
            }
            if (parts[j] > most) most = parts[j];
        }
    }
    if (starts)
        while (window < windows) starts[++window] = (int32_t)size;
    return most;
}

/* A list by document: its frequency, 255 = that or more. `dense` is zero at first. */
static void bm25_densify(const int32_t *docs, const uint32_t *packed, int64_t size, uint8_t *dense) {
    for (int64_t i = 0; i < size; i++) dense[docs[i]] = (uint8_t)(packed[i] >> 16 < 255 ? packed[i] >> 16 : 255);
}

/* Bits of a list's documents modulo wrap + 1. `filter` is zero at first. */
static void bm25_fill(const int32_t *docs, int64_t size, int32_t wrap, uint8_t *filter) {
    for (int64_t i = 0; i < size; i++) filter[(docs[i] & wrap) >> 3] |= (uint8_t)(1 << (docs[i] & 7));
}

/* 0 = documents ascend within 0..limit-1, every frequency is >= 1, `more` names exactly the large ones in order. */
static int bm25_check(const int32_t *docs, const uint32_t *packed, int64_t size, const int32_t *more, int64_t more_count,
                      int64_t limit) {
    int32_t bad = 0;
    int64_t large = 0;
    if (!size) return more_count != 0;
    for (int64_t i = 1; i < size; i++) bad |= docs[i] <= docs[i - 1];
    for (int64_t i = 0; i < size; i++) {
        bad |= packed[i] < 0x10000u;
        large += packed[i] >> 16 == BM25_LARGE;
    }
    if (bad || docs[0] < 0 || docs[size - 1] >= limit || large != more_count) return 1;
    for (int64_t i = 0; i < more_count; i++) {
        const int32_t at = more[2 * i];
        if (at < 0 || at >= size || packed[at] >> 16 != BM25_LARGE || more[2 * i + 1] < (int32_t)BM25_LARGE) return 1;
        if (i && at <= more[2 * i - 2]) return 1;
    }
    return 0;
}

#endif
