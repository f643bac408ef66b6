/* Ranking what the two legs of a search found: rank_py.rank_legs in C, on bare arrays that its entry has checked.
 *
 * A few hundred candidates: what counts is that nothing is sorted twice, that the columns' cache lines are asked for
 * before they are needed, and that every loop over candidates runs in vector registers.
 */
#ifndef MEMXD_RANK_LEGS_H
#define MEMXD_RANK_LEGS_H

#include "rank_scope.h"

/* What the legs found; arrays may be NULL where rank_py says None. */
typedef struct {
    const int32_t *vector_rids;
    const double *vector_cosines, *vector_bm25, *vector_match;
    size_t a;
    const int32_t *keyword_rids;
    const double *keyword_cosines, *keyword_bm25, *keyword_match;
    size_t b;
} memxd_legs;

enum { MEMXD_BY_SCORES = 1, MEMXD_BY_RRF = 2, MEMXD_BY_COSINE = 3 };

typedef struct {
    int fusion, vector_asked, keyword_asked, normalise, dedup;
    int64_t rrf_k;
    double vector_weight, keyword_weight, now, rate, low, high, shifts[3], word_share, relevance[3];
    memxd_weights weights;
} memxd_rules;

/* Where the candidates go: each array has room for a + b. */
typedef struct {
    int32_t *rids, *vector_rank, *keyword_rank, *order, *folded_into, *kept;
    double *cosine, *bm25, *match, *rrf, *semantic, *recency, *frequency, *importance, *raw, *z, *score, *relevance;
    size_t n, kept_n;
    double best_cosine, best_relevance;
} memxd_ranked;

/* The slot of rid, or the free one where it belongs: a table of positions + 1. */
static inline int32_t *memxd_rid_slot(int32_t *slots, size_t mask, const int32_t *rids, int32_t rid)
{
    size_t slot = ((uint32_t)rid * UINT32_C(0x9E3779B1)) >> 7 & mask;
    while (slots[slot] && rids[slots[slot] - 1] != rid)
        slot = (slot + 1) & mask;
    return slots + slot;
}

/* Ask memory for all that n rows will be asked for, before anything waits for the first of them. */
static void memxd_ask(const memxd_columns *c, size_t columns_size, int dedup, const int32_t *rids, size_t n)
{
    const uint64_t *third = dedup == MEMXD_DEDUP_TAGS ? c->tag : c->fold;
    for (size_t i = 0; i < n; i++) {
        size_t rid = (uint32_t)rids[i];
        if (rid >= columns_size)
            return; /* the join will refuse it */
        __builtin_prefetch(c->cjk + rid);
        __builtin_prefetch(c->reference + rid);
        __builtin_prefetch(c->retrieval + rid);
        __builtin_prefetch(c->access + rid);
        __builtin_prefetch(c->importance + rid);
        if (dedup == MEMXD_DEDUP_OFF)
            continue;
        __builtin_prefetch(c->content + rid);
        __builtin_prefetch(third + rid);
    }
}

static inline size_t memxd_new_row(memxd_ranked *out, int32_t *slot, int32_t rid)
{
    out->rids[out->n] = rid;
    out->vector_rank[out->n] = 0;
    out->keyword_rank[out->n] = 0;
    *slot = (int32_t)++out->n;
    return out->n - 1;
}

/* Both legs' rows, each once, with what each leg says of it. slots: zeros, mask + 1 of them, more than a + b.
 * 0, or -1 when a rid lies outside of the columns. */
static int memxd_join(const memxd_legs *legs, size_t columns_size, int32_t *slots, size_t mask, memxd_ranked *out)
{
    for (size_t i = 0; i < legs->a; i++) {
        int32_t rid = legs->vector_rids[i], *slot;
        if ((size_t)(uint32_t)rid >= columns_size)
            return -1;
        slot = memxd_rid_slot(slots, mask, out->rids, rid);
        if (*slot)
            continue; /* it came before */
        size_t p = memxd_new_row(out, slot, rid);
        out->vector_rank[p] = (int32_t)(i + 1);
        out->cosine[p] = legs->vector_cosines[i];
        out->bm25[p] = legs->vector_bm25 ? legs->vector_bm25[i] : 0.0;
        out->match[p] = legs->vector_match ? legs->vector_match[i] : 0.0;
    }
    for (size_t i = 0; i < legs->b; i++) {
        int32_t rid = legs->keyword_rids[i], *slot;
        size_t p;
        if ((size_t)(uint32_t)rid >= columns_size)
            return -1;
        slot = memxd_rid_slot(slots, mask, out->rids, rid);
        if (*slot) {
            p = (size_t)(*slot - 1);
            if (out->keyword_rank[p])
                continue;
        } else {
            p = memxd_new_row(out, slot, rid);
            out->cosine[p] = legs->keyword_cosines ? legs->keyword_cosines[i] : NAN;
        }
        out->keyword_rank[p] = (int32_t)(i + 1);
        out->bm25[p] = legs->keyword_bm25[i];
        out->match[p] = legs->keyword_match[i];
    }
    return 0;
}

/* place = where the levelled cosine lies in the band, by_meaning = that as a factor (for n rows). */
MEMXD_CLONES static void memxd_places(const double *restrict levelled, size_t n, double low, double high,
                                      double *restrict place, double *restrict by_meaning)
{
    double per_width = 1.0 / (high - low);
    for (size_t i = 0; i < n; i++) {
        double x = (levelled[i] - low) * per_width;
        double cut = x > -1.0 ? x : -1.0;
        cut = cut < 2.0 ? cut : 2.0;
        cut = x == x ? cut : 0.0;
        double half = memxd_clamp(cut * 0.5 + 0.25, 0.0, 1.0);
        place[i] = cut;
        by_meaning[i] = levelled[i] == levelled[i] ? half : 0.0;
    }
}

/* Weighted mean of both legs' scores; semantic holds by_meaning on entry. */
MEMXD_CLONES static void memxd_by_scores(const double *restrict bm25, const double *restrict match, size_t n,
                                         const memxd_rules *r, double top, double best_match, double *restrict semantic)
{
    double v = r->vector_asked ? r->vector_weight : 0.0, w = r->keyword_asked ? r->keyword_weight : 0.0;
    double total = v + w, share = r->word_share, rest = 1.0 - r->word_share;
    double scale = top > 0.0 ? best_match / top : 1.0;
    v = total > 0.0 ? v / total : 0.0;
    w = total > 0.0 ? w / total : 0.0;
    for (size_t i = 0; i < n; i++)
        semantic[i] = v * semantic[i] + w * (share * match[i] + rest * (bm25[i] * scale));
}

MEMXD_CLONES static void memxd_relevances(const double *restrict place, const double *restrict match, size_t n,
                                          const double *restrict b, double *restrict relevance)
{
    double b0 = b[0], b1 = b[1], b2 = b[2];
    for (size_t i = 0; i < n; i++)
        relevance[i] = memxd_sigmoid((b0 + b1 * place[i]) + b2 * match[i]);
}

/* rrf, semantic, relevance, best_cosine, best_relevance of the joined rows; levelled and place have room for n. */
static void memxd_judge(const memxd_columns *c, const memxd_rules *r, double *levelled, double *place,
                        memxd_ranked *out)
{
    size_t n = out->n;
    double most = memxd_most_rrf((double)r->rrf_k, r->vector_weight, r->keyword_weight);
    for (size_t i = 0; i < n; i++) {
        uint8_t share = c->cjk[out->rids[i]];
        levelled[i] = out->cosine[i] - r->shifts[share < 2 ? share : 2];
    }
    memxd_rrf_all(out->vector_rank, out->keyword_rank, n, (double)r->rrf_k, r->vector_weight, r->keyword_weight,
                  out->rrf);
    memxd_places(levelled, n, r->low, r->high, place, out->semantic);
    if (r->fusion == MEMXD_BY_SCORES)
        memxd_by_scores(out->bm25, out->match, n, r, memxd_largest(out->bm25, n, 0.0),
                        memxd_largest(out->match, n, 0.0), out->semantic);
    for (size_t i = 0; i < n && r->fusion == MEMXD_BY_RRF; i++)
        out->semantic[i] = memxd_of_maximum(out->rrf[i], most);
    for (size_t i = 0; i < n && r->fusion == MEMXD_BY_COSINE; i++)
        out->semantic[i] = out->cosine[i] == out->cosine[i] ? out->cosine[i] : 0.0;
    memxd_relevances(r->vector_asked ? place : out->match, out->match, n, r->relevance, out->relevance);
    out->best_cosine = memxd_largest(r->fusion == MEMXD_BY_SCORES ? levelled : out->cosine, n, -1.0);
    out->best_relevance = memxd_largest(out->relevance, n, 0.0);
}

/* What a run needs besides its outputs and what folding needs: one block of memory, cut into arrays for up to both
 * candidates. */
typedef struct {
    memxd_entry *entries, *room;
    double *levelled, *place;
    int32_t *slots; /* [size] */
    uint32_t *starts; /* [size] */
    uint32_t *bucket;
    size_t size; /* a power of two >= 2 both */
    memxd_folding folding;
} memxd_space;

static int memxd_take_space(memxd_space *space, size_t both)
{
    if (memxd_take_folding(&space->folding, both))
        return -1;
    space->size = space->folding.size;
    space->entries = malloc(both * (2 * sizeof(memxd_entry) + 2 * sizeof(double) + sizeof(uint32_t))
                            + space->size * (sizeof(int32_t) + sizeof(uint32_t)));
    if (!space->entries) {
        free(space->folding.content);
        return -1;
    }
    space->room = space->entries + both;
    space->levelled = (double *)(space->room + both);
    space->place = space->levelled + both;
    space->slots = (int32_t *)(space->place + both);
    space->starts = (uint32_t *)(space->slots + space->size);
    space->bucket = space->starts + space->size;
    return 0;
}

/* 0; -1 when a rid lies outside of the columns, -2 without memory. */
static int memxd_rank_legs(const memxd_legs *legs, const memxd_columns *c, size_t columns_size, const memxd_rules *r,
                           memxd_ranked *out)
{
    memxd_space space;
    int wrong;
    if (memxd_take_space(&space, legs->a + legs->b))
        return -2;
    memxd_ask(c, columns_size, r->dedup, legs->vector_rids, legs->a);
    memxd_ask(c, columns_size, r->dedup, legs->keyword_rids, legs->b);
    memset(space.slots, 0, space.size * sizeof *space.slots);
    wrong = memxd_join(legs, columns_size, space.slots, space.size - 1, out);
    if (!wrong) {
        size_t n = out->n;
        memxd_judge(c, r, space.levelled, space.place, out);
        memxd_factors(c, out->rids, n, r->now, r->rate, out->recency, out->frequency, out->importance);
        memxd_combine(out->semantic, out->recency, out->frequency, out->importance, n, r->weights, out->raw);
        memxd_normalise(out->raw, n, memxd_measure(out->raw, n), out->z, out->score);
        if (!r->normalise)
            memcpy(out->score, out->raw, n * sizeof *out->score);
        memxd_order(out->raw, out->rids, n, n, n, space.entries, space.room, space.bucket, space.starts);
        for (size_t i = 0; i < n; i++)
            out->order[i] = (int32_t)memxd_entry_position(space.entries[i]);
        out->kept_n = memxd_fold_rows(c, r->dedup, out->rids, out->order, n, &space.folding, out->kept, out->folded_into);
    }
    free(space.entries);
    free(space.folding.content);
    return wrong;
}

#endif
