/* Ranking every row of a scope in one run: rank_py.rank_all in C, on bare arrays that its entry has checked.
 *
 * Rows are scored in blocks that stay in the first cache and are not stored: the sums for mean and deviation are taken
 * on the way, and of every chunk of rows only the largest score is kept. The m-th largest of those is a bound that at
 * least m rows reach, so the few chunks that reach it are scored again and sorted. No row order makes that slow. The
 * scores of a small scope are kept instead.
 */
#ifndef MEMXD_RANK_SCOPE_H
#define MEMXD_RANK_SCOPE_H

#include <stdlib.h>

#include "rank_loops.h"
#include "rank_select.h"

#define MEMXD_CHUNK 64 /* a chunk's most rows; small scopes take chunks of MEMXD_LANES */
#define MEMXD_SMALL 8192

enum { MEMXD_DEDUP_OFF = 1, MEMXD_DEDUP_TAGS = 3, MEMXD_DEDUP_ADAPTIVE = 4 };

/* The rows of both legs, by rid ascending: n of each. */
typedef struct {
    double *rrf, *semantic;
    int32_t *rids, *vector_rank, *keyword_rank;
    size_t n;
    void *block; /* what to free */
} memxd_fused;

/* Fuse two legs; 0, or -1 without memory. */
static int memxd_fuse_legs(const int32_t *a, size_t a_n, const int32_t *b, size_t b_n, double k, double a_weight,
                           double b_weight, memxd_fused *f)
{
    size_t both = a_n + b_n;
    double most = memxd_most_rrf(k, a_weight, b_weight);
    int64_t *keys = malloc(both * (4 * sizeof(int64_t) + 3 * sizeof(int32_t)) + 1);
    f->block = keys;
    f->n = 0;
    if (!keys)
        return -1;
    f->rrf = (double *)(keys + 2 * both);
    f->semantic = f->rrf + both;
    f->rids = (int32_t *)(f->semantic + both);
    f->vector_rank = f->rids + both;
    f->keyword_rank = f->vector_rank + both;
    f->n = both ? memxd_fuse(a, a_n, b, b_n, keys, k, a_weight, b_weight, f->rids, f->rrf, f->vector_rank,
                             f->keyword_rank) : 0;
    for (size_t i = 0; i < f->n; i++)
        f->semantic[i] = memxd_of_maximum(f->rrf[i], most);
    return 0;
}

/* What to rank: n rids strictly ascending, what is fused, and how. */
typedef struct {
    const int32_t *rids;
    size_t n;
    memxd_columns columns;
    memxd_fused fused;
    double now, rate;
    memxd_weights weights;
    size_t chunk;
    double *raw; /* [n], every row's score, of a small scope; NULL = the few that matter are scored again */
} memxd_scope;

/* The best depth rows, best first; the caller frees entries. */
typedef struct {
    memxd_entry *entries;
    int32_t *kept, *folded_into; /* [depth], within entries */
    size_t depth, kept_n;
    memxd_moments moments;
} memxd_best;

/* First position of an ascending list whose value is not below rid. */
static inline size_t memxd_lower_bound(const int32_t *list, size_t n, int32_t rid)
{
    size_t low = 0;
    while (n > 0) {
        size_t half = n / 2;
        int below = list[low + half] < rid;
        low = below ? low + half + 1 : low;
        n = below ? n - half - 1 : half;
    }
    return low;
}

/* Whether n rids ascend strictly from after the one given. */
MEMXD_CLONES static int memxd_ascending(const int32_t *restrict rids, size_t n, int32_t before)
{
    int wrong = rids[0] <= before;
    for (size_t i = 1; i < n; i++)
        wrong |= rids[i] <= rids[i - 1];
    return !wrong;
}

/* raw of count <= MEMXD_BLOCK rows from position at. */
static void memxd_score_rows(const memxd_scope *s, size_t at, size_t count, double *restrict raw)
{
    double meaning[MEMXD_BLOCK];
    memxd_gathered g;
    const memxd_columns *c = &s->columns;
    const memxd_fused *fused = &s->fused;
    const int32_t *rids = s->rids + at;
    int32_t first = rids[0], last = rids[count - 1];
    memset(meaning, 0, count * sizeof *meaning);
    for (size_t f = memxd_lower_bound(fused->rids, fused->n, first); f < fused->n && fused->rids[f] <= last; f++) {
        size_t i = memxd_lower_bound(rids, count, fused->rids[f]);
        if (rids[i] == fused->rids[f])
            meaning[i] = fused->semantic[f];
    }
    if ((size_t)(last - first) == count - 1) { /* no gap: the columns can be read as they lie */
        memxd_score_block(count, meaning, c->reference + first, c->retrieval + first, c->access + first,
                          c->importance + first, s->now, s->rate, s->weights, raw);
        return;
    }
    memxd_gather(c, rids, count, &g);
    memxd_score_block(count, meaning, g.reference, g.retrieval, g.access, g.importance, s->now, s->rate, s->weights,
                      raw);
}

/* Moments of a scope in which something is not finite: two more passes. */
static memxd_moments memxd_measure_again(const memxd_scope *s)
{
    memxd_moments none = {0.0, 0.0, 0.0, 0.0, 0.0};
    memxd_sums sums = {{{0.0}}};
    double raw[MEMXD_BLOCK], low = INFINITY, high = -INFINITY, l, h, shift = 0.0;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        memxd_score_rows(s, at, count, raw);
        memxd_range(raw, count, INFINITY, &l, &h);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if (low > high)
        return none;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        memxd_score_rows(s, at, count, raw);
        memxd_clamp_all(raw, count, low, high);
        shift = at ? shift : raw[0];
        memxd_add(&sums, raw, count, shift);
    }
    return memxd_of_sums(&sums, s->n, shift, low, high);
}

/* Score every row: moments, and the largest score of each chunk. 0, or -1 when rids are not as they must be. */
static int memxd_scan(const memxd_scope *s, size_t columns_size, double *maxima, memxd_moments *moments)
{
    memxd_sums sums = {{{0.0}}};
    double block[MEMXD_BLOCK], shift = 0.0;
    int32_t before = -1;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        double *raw = s->raw ? s->raw + at : block;
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        if (!memxd_ascending(s->rids + at, count, before))
            return -1;
        before = s->rids[at + count - 1];
        if ((size_t)before >= columns_size)
            return -1;
        memxd_score_rows(s, at, count, raw);
        shift = at ? shift : raw[0];
        for (size_t i = 0; i < count; i += s->chunk)
            *maxima++ = memxd_add(&sums, raw + i, count - i < s->chunk ? count - i : s->chunk, shift);
    }
    *moments = memxd_all_finite(&sums) ? memxd_of_sums(&sums, s->n, shift, -INFINITY, INFINITY) : memxd_measure_again(s);
    return 0;
}

/* The m-th largest of n values without NaN, 1 <= m <= n; heap has room for m. From the end, where the newest lie. */
static double memxd_nth_largest(const double *values, size_t n, double *heap, size_t m)
{
    size_t filled = 0;
    for (size_t i = n; i-- > 0;) {
        double v = values[i];
        size_t at = 0;
        if (filled < m) {
            for (at = filled++; at > 0 && v < heap[(at - 1) / 2]; at = (at - 1) / 2)
                heap[at] = heap[(at - 1) / 2];
        } else if (v > heap[0]) {
            for (size_t child = 1; child < m; child = 2 * at + 1) {
                child += child + 1 < m && heap[child + 1] < heap[child];
                if (!(heap[child] < v))
                    break;
                heap[at] = heap[child];
                at = child;
            }
        } else {
            continue;
        }
        heap[at] = v;
    }
    return heap[0];
}

/* Every row that may be among the best m: those above the bound, and the first m that equal it. */
static size_t memxd_collect(const memxd_scope *s, const double *maxima, double bound, size_t m, memxd_entry *entries)
{
    double block[MEMXD_CHUNK];
    size_t found = 0, equal = 0;
    int all = !(bound > -INFINITY);
    for (size_t at = 0; at < s->n; at += s->chunk) {
        double most = *maxima++;
        size_t count = s->n - at < s->chunk ? s->n - at : s->chunk;
        if (!all && (most < bound || (most == bound && equal >= m)))
            continue;
        const double *raw = s->raw ? s->raw + at : block;
        if (!s->raw)
            memxd_score_rows(s, at, count, block);
        for (size_t i = 0; i < count; i++) {
            if (!all && !(raw[i] > bound)) {
                if (raw[i] != bound || equal >= m)
                    continue;
                equal++;
            }
            entries[found++] = memxd_make_entry(raw[i], s->rids[at + i], (uint32_t)(at + i));
        }
    }
    return found;
}

/* Fold what repeats itself among the best; 0, or -1 without memory. */
static int memxd_fold_best(const memxd_scope *s, int mode, memxd_best *best)
{
    size_t m = best->depth, size = 4;
    const memxd_columns *c = &s->columns;
    const uint64_t *third_of = mode == MEMXD_DEDUP_TAGS ? c->tag : c->fold;
    while (size < 2 * m)
        size *= 2;
    int32_t *order = malloc(m * (sizeof *order + 2 * sizeof(uint64_t) + 1)
                            + (3 * size + 1) * sizeof(int32_t));
    if (!order)
        return -1;
    uint64_t *content = (uint64_t *)(order + m + (m & 1)), *third = content + m;
    int32_t *slots = (int32_t *)(third + m);
    uint8_t *kinds = (uint8_t *)(slots + 3 * size);
    memset(slots, 0, 3 * size * sizeof *slots);
    for (size_t i = 0; i < m; i++) {
        int32_t rid = s->rids[memxd_entry_position(best->entries[i])];
        order[i] = (int32_t)i;
        best->folded_into[i] = -1;
        if (mode == MEMXD_DEDUP_OFF)
            continue;
        content[i] = c->content[rid];
        third[i] = third_of[rid];
        kinds[i] = c->type[rid];
    }
    best->kept_n = memxd_dedup(order, m, NULL, mode == MEMXD_DEDUP_OFF ? NULL : content,
                               mode >= MEMXD_DEDUP_TAGS ? third : NULL, mode == MEMXD_DEDUP_TAGS ? kinds : NULL, NULL,
                               slots, size, best->kept, m, best->folded_into);
    free(order);
    return 0;
}

/* The best m rows into best; 0, or -1 without memory. */
static int memxd_take_best(const memxd_scope *s, const double *maxima, size_t m, memxd_best *best)
{
    size_t chunks = (s->n + s->chunk - 1) / s->chunk, room = s->n, found;
    double bound = -INFINITY;
    if (m < chunks) {
        double *heap = malloc(m * sizeof *heap);
        if (!heap)
            return -1;
        bound = memxd_nth_largest(maxima, chunks, heap, m);
        free(heap);
        if (bound > -INFINITY && s->chunk * (m - 1) + m < room)
            room = s->chunk * (m - 1) + m;
    }
    memxd_entry *entries = malloc(2 * room * sizeof *entries + 2 * m * sizeof(int32_t));
    if (!entries)
        return -1;
    found = memxd_collect(s, maxima, bound, m, entries);
    memxd_sort_entries(entries, entries + room, found);
    free(best->entries);
    best->entries = entries;
    best->kept = (int32_t *)(entries + 2 * room);
    best->folded_into = best->kept + m;
    best->depth = m;
    return 0;
}

/* 0; -1 for rids that are not as they must be, -2 without memory. best->entries is the caller's to free, always. */
static int memxd_rank_scope(memxd_scope *s, size_t columns_size, int mode, size_t k, size_t whole,
                            memxd_best *best)
{
    size_t depth = 2 * k > 64 ? 2 * k : 64;
    int wrong;
    s->chunk = s->n > MEMXD_SMALL ? MEMXD_CHUNK : MEMXD_LANES;
    size_t chunks = s->n / s->chunk + 1;
    double *maxima = malloc((chunks + (s->n > MEMXD_SMALL ? 0 : s->n)) * sizeof *maxima);
    if (!maxima)
        return -2;
    s->raw = s->n > MEMXD_SMALL ? NULL : maxima + chunks;
    wrong = memxd_scan(s, columns_size, maxima, &best->moments);
    depth = s->n <= whole || depth > s->n ? s->n : depth;
    while (!wrong) {
        if (memxd_take_best(s, maxima, depth, best) || memxd_fold_best(s, mode, best))
            wrong = -2;
        if (best->kept_n >= k || depth == s->n)
            break;
        depth = depth > s->n / 4 ? s->n : 4 * depth;
    }
    free(maxima);
    return wrong;
}

/* Where the arrays of the answer lie: row r of ids begins at ids + r * depth, alike for values. */
static void memxd_fill_best(const memxd_scope *s, const memxd_best *best, int normalise, int32_t *ids, double *values)
{
    const memxd_fused *fused = &s->fused;
    size_t m = best->depth;
    double *semantic = values + m, *recency = semantic + m, *frequency = recency + m, *importance = frequency + m;
    double *raw = importance + m, *z = raw + m, *score = z + m;
    for (size_t i = 0; i < m; i++) {
        int32_t rid = s->rids[memxd_entry_position(best->entries[i])];
        size_t f = memxd_lower_bound(fused->rids, fused->n, rid);
        int found = f < fused->n && fused->rids[f] == rid;
        ids[i] = rid;
        ids[m + i] = found ? fused->vector_rank[f] : 0;
        ids[2 * m + i] = found ? fused->keyword_rank[f] : 0;
        values[i] = found ? fused->rrf[f] : 0.0;
        semantic[i] = found ? fused->semantic[f] : 0.0;
    }
    memcpy(ids + 3 * m, best->folded_into, m * sizeof *ids);
    memxd_factors(&s->columns, ids, m, s->now, s->rate, recency, frequency, importance);
    memxd_combine(semantic, recency, frequency, importance, m, s->weights, raw);
    memxd_normalise(raw, m, best->moments, z, score);
    if (!normalise)
        memcpy(score, raw, m * sizeof *score);
}

#endif
