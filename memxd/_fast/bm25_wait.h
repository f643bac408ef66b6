/* What a document must reach to matter (the floor), and those that may and wait for their exact score. Part of bm25_run.h,
 * for both of its ways.
 */
#ifndef MEMXD_BM25_WAIT_H
#define MEMXD_BM25_WAIT_H

#include "bm25.h"

/* What an approximation must reach to matter; below 0 while nothing is known. */
static inline double bm25_least(const bm25_search *s) {
    const double least = s->kept < s->k ? -1.0 : s->score[0] - s->margin;
    return least > s->floor ? least : s->floor;
}

/* Bring the n largest values to the front, and perhaps some more: by 256 steps up to the largest, not sorted. */
static void bm25_front(float *values, int32_t *docs, int64_t size, int64_t n) {
    int32_t counts[257] = {0};
    float most = 0.0f;
    int64_t at = 256, front = 0;
    for (int64_t i = 0; i < size; i++) most = values[i] > most ? values[i] : most;
    const float scale = 256.0f / most;
    for (int64_t i = 0; i < size; i++) counts[(int32_t)(values[i] * scale)]++;
    for (int64_t above = counts[at]; above < n && at > 0; above += counts[at]) at--;
    for (int64_t i = 0; i < size; i++) {
        const float value = values[i];
        const int32_t doc = docs[i];
        const int64_t go = (int32_t)(value * scale) >= at;
        values[i] = values[front], docs[i] = docs[front];
        values[front] = value, docs[front] = doc;
        if (!go) values[front] = values[i], docs[front] = docs[i], values[i] = value, docs[i] = doc;
        front += go;
    }
}

/* Score what waits and may still be among the best. */
static void bm25_settle(bm25_search *s, int64_t number) {
    const bm25_scratch *scratch = s->scratch;
    for (int64_t i = 0; i < s->waiting; i++) {
        const int32_t doc = scratch->waiting_docs[i];
        double match;
        if ((double)scratch->waiting_values[i] < bm25_least(s)) continue;
        const double score = bm25_value(s, number, doc, &match);
        bm25_offer(s, score, s->segments[number].rids[doc], match);
    }
    s->settled += s->waiting;
    s->waiting = 0;
}

/* Raise the floor: one more selected document of about this score. */
static void bm25_approach(bm25_search *s, float value) {
    float *heap = s->nearly;
    int64_t at = 0;
    if (s->near_count < s->k) {
        for (at = s->near_count++; at && value < heap[(at - 1) / 2]; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    } else {
        if (!(value > heap[0])) return;
        while (2 * at + 1 < s->k) {
            int64_t child = 2 * at + 1;
            if (child + 1 < s->k && heap[child + 1] < heap[child]) child++;
            if (value <= heap[child]) break;
            heap[at] = heap[child];
            at = child;
        }
    }
    heap[at] = value;
    if (s->near_count == s->k && (double)heap[0] - 2.0 * s->margin > s->floor) s->floor = (double)heap[0] - 2.0 * s->margin;
}

/* A document that may be among the best. Its exact score waits until the floor is high; unless its approximation may be
 * too large, so that the floor must not trust it. */
static inline void bm25_candidate(bm25_search *s, int64_t number, int32_t doc, float value) {
    bm25_scratch *scratch = s->scratch;
    if (s->waiting == BM25_WAITING) bm25_settle(s, number);
    scratch->waiting_docs[s->waiting] = doc;
    scratch->waiting_values[s->waiting++] = value;
    if (!s->large && s->segments[number].lengths[doc] < (int32_t)BM25_LARGE) bm25_approach(s, value);
}

#endif
