/* What one BM25 question consists of: its structs, looking documents up in posting lists, the statistics of a scope, the
 * exact score of one document, and the heap of the k best. bm25_py.py documents the arithmetic and is the oracle. Part of
 * bm25_run.h, which answers the question by looking at little.
 */
#ifndef MEMXD_BM25_H
#define MEMXD_BM25_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bm25_loops.h"
#include "bm25_sieve.h"

#define BM25_BITS 12
#define BM25_BLOCK (1 << BM25_BITS) /* documents that share a bound */
#define BM25_WINDOW (4 * BM25_BLOCK) /* documents looked at together, at most */
#define BM25_FIRST (BM25_BLOCK / 4)  /* and at first, while nothing is known: most of these are scored */
#define BM25_LOOKUP 40 /* a document looked up in a list costs about as much as so many postings read */
#define BM25_DENSE 6  /* the same of a dense list */
#define BM25_AHEAD 256  /* postings of a list's next window that are asked for early */
#define BM25_WAITING 1024 /* documents that wait for their exact score */

/* One segment as one search sees it. died[doc]: 0 = living, n = the n-th to die; later deaths than `deaths` are not seen. */
typedef struct {
    const int32_t *rids, *lengths, *died, *dead;
    const int32_t *scopes; /* by document; NULL = the scope's documents are low..high-1 */
    int64_t size;
    int32_t deaths, low, high;
} bm25_segment;

typedef struct {
    const int32_t *docs;
    const uint32_t *packed; /* frequency << 16 | length, both capped at 65535 */
    const int32_t *more;    /* pairs (position, frequency) */
    int64_t size, more_count;
    const int32_t *starts; /* by window: first position; NULL for short lists */
    const float *bounds;   /* by window: no document's share of the weight is larger */
    float bound;           /* the same for all */
    const uint8_t *dense;  /* by document: its frequency, 0 = not in the list, 255 = look it up; NULL for short lists */
    const uint8_t *filter; /* bits by document modulo a power of two: 0 = not in the list; NULL = none, or dense */
    int32_t wrap;          /* that power less one */
    int64_t from, to;      /* what belongs to the scope (or may) */
    int64_t df, known_df; /* as of known_deaths, -1 = not known */
    int32_t known_deaths;
} bm25_list;

typedef struct {
    const bm25_list *list;
    int64_t term, cursor, from, to; /* in the window */
    int64_t at;                     /* where the present document stands, -1 = it does not */
    float weight, bound, rest;      /* rest: what all lanes behind it can add, in the order of turns */
} bm25_lane;

typedef struct { float ratio; int32_t lane; } bm25_turn;

typedef struct {
    float sums[BM25_WINDOW]; /* zero between windows */
    float parts[BM25_WINDOW];
    float values[BM25_WINDOW + 1]; /* the last place is written to and never counts */
    int32_t docs[BM25_WINDOW + 1];
    float waiting_values[BM25_WAITING];
    int32_t waiting_docs[BM25_WAITING];
} bm25_scratch;

typedef struct {
    const bm25_segment *segments;
    bm25_list *lists; /* [segment][term], size 0 = none */
    int64_t segment_count, terms;
    const double *weights, *priors;
    double prior_rows, average, k1, fixed, slope;
    int32_t scope; int64_t rows;
    const int32_t *rids; int64_t m; /* the selection */
    const uint8_t *mask; int64_t mask_size; /* the selection by rid; NULL = look it up */
    const int32_t *places; /* segments, then documents, of the selection: score these alone; NULL = read the lists */
    const int32_t *also, *also_places;
    int64_t also_count, k, kept;
    int32_t *best; /* with score and match: a heap whose root is the worst, in the end best first */
    double *score, *match, *also_score, *also_match, *idf; int64_t *df;
    double *impact, *said; /* by term: idf x weight; how much it says */
    double said_total, margin;
    double floor;  /* k documents reach this and the margin; -1 = nothing known */
    float *nearly; /* a heap of the k best approximations so far, the worst first */
    int64_t near_count, waiting, settled; /* settled: how often waiting ones were scored */
    int large; /* some frequency is larger than it is packed: approximations may be too large */
    bm25_lane *lanes; bm25_turn *turns; bm25_test *tests;
    int32_t *others; /* lanes of the window that only complete */
    float *reach;    /* with others: sum of the bounds up to each */
    bm25_scratch *scratch;
} bm25_search;

/* ---- looking things up ---- */

/* First position in [low, high) whose value is >= wanted, or high. */
static inline int64_t bm25_find(const int32_t *values, int64_t low, int64_t high, int32_t wanted) {
    int64_t n = high - low;
    if (n <= 0) return high;
    while (n > 1) {
        const int64_t half = n / 2;
        low += values[low + half - 1] < wanted ? half : 0;
        n -= half;
    }
    return low + (values[low] < wanted);
}

/* The same by doubling steps from low, for what is probably near. */
static inline int64_t bm25_gallop(const int32_t *values, int64_t low, int64_t high, int32_t wanted) {
    int64_t step = 1;
    if (low >= high || values[low] >= wanted) return low;
    while (low + step < high && values[low + step] < wanted) {
        low += step;
        step *= 2;
    }
    return bm25_find(values, low + 1, low + step < high ? low + step : high, wanted);
}

static inline int64_t bm25_position(const int32_t *values, int64_t low, int64_t high, int32_t wanted) {
    const int64_t at = bm25_find(values, low, high, wanted);
    return at < high && values[at] == wanted ? at : -1;
}

/* Where a document stands in a list, -1 = it does not. */
static inline int64_t bm25_in_list(const bm25_list *list, int32_t doc) {
    int64_t from = list->from, to = list->to;
    if (list->starts) {
        const int64_t window = doc >> BM25_BITS;
        if (list->starts[window] > from) from = list->starts[window];
        if (list->starts[window + 1] < to) to = list->starts[window + 1];
    }
    return bm25_position(list->docs, from, to, doc);
}

/* Whether the list's filter leaves the document possible. */
static inline int bm25_possible(const bm25_list *list, int32_t doc) {
    const int32_t bit = doc & list->wrap;
    return list->filter[bit >> 3] >> (bit & 7) & 1;
}

static inline double bm25_frequency(const bm25_list *list, int64_t at) {
    const uint32_t tf = list->packed[at] >> 16;
    if (tf == BM25_LARGE)
        for (int64_t i = 0; i < list->more_count; i++)
            if (list->more[2 * i] == at) return (double)list->more[2 * i + 1];
    return (double)tf;
}

static inline int bm25_living(const bm25_segment *segment, int32_t doc) {
    return !segment->deaths || (uint32_t)segment->died[doc] - 1u >= (uint32_t)segment->deaths;
}

static inline int bm25_own(const bm25_search *s, const bm25_segment *segment, int32_t doc) {
    if (!bm25_living(segment, doc)) return 0;
    return segment->scopes ? segment->scopes[doc] == s->scope : doc >= segment->low && doc < segment->high;
}

static inline int bm25_selected(const bm25_search *s, int32_t rid) {
    if (s->mask) return rid < s->mask_size && s->mask[rid] != 0;
    return bm25_position(s->rids, 0, s->m, rid) >= 0;
}

/* ---- statistics ---- */

/* How many dead documents number first..last-1 of the segment stand in the list. */
static int64_t bm25_dead_in(const bm25_list *list, const bm25_segment *segment, int32_t first, int32_t last) {
    int64_t count = 0;
    for (int32_t i = first; i < last; i++) count += bm25_position(list->docs, list->from, list->to, segment->dead[i]) >= 0;
    return count;
}

static int64_t bm25_count(const bm25_search *s, const bm25_list *list, const bm25_segment *segment) {
    const int64_t n = list->to - list->from;
    int64_t count = 0;
    if (!segment->scopes) {
        const int32_t known = list->known_df < 0 ? 0 : list->known_deaths;
        const int64_t start = list->known_df < 0 ? n : list->known_df;
        const int64_t behind = known < segment->deaths ? segment->deaths - known : known - segment->deaths;
        if (behind * 16 <= n)
            return known <= segment->deaths ? start - bm25_dead_in(list, segment, known, segment->deaths)
                                            : start + bm25_dead_in(list, segment, segment->deaths, known);
    }
    for (int64_t i = list->from; i < list->to; i++) count += bm25_own(s, segment, list->docs[i]);
    return count;
}

/* df, idf and what each term says; the ranges of the lists that belong to the scope. Not 0 = fewer rows than df. */
static int bm25_statistics(bm25_search *s) {
    double weights = 0.0;
    for (int64_t t = 0; t < s->terms; t++) {
        int64_t df = 0;
        for (int64_t i = 0; i < s->segment_count; i++) {
            bm25_list *list = &s->lists[i * s->terms + t];
            const bm25_segment *segment = &s->segments[i];
            list->from = 0, list->to = list->size;
            if (list->size && !segment->scopes) {
                if (segment->low > 0) list->from = bm25_find(list->docs, 0, list->size, segment->low);
                if (segment->high < segment->size) list->to = bm25_find(list->docs, list->from, list->size, segment->high);
            }
            list->df = bm25_count(s, list, segment);
            df += list->df;
        }
        if (df > s->rows) return 1;
        s->df[t] = df;
        s->idf[t] = df ? log(1.0 + ((double)(s->rows - df) + 0.5) / ((double)df + 0.5)) : 0.0;
        s->impact[t] = s->idf[t] * s->weights[t];
        weights += s->impact[t] * (s->k1 + 1.0);
        const double held = (double)df + s->priors[t];
        s->said[t] = s->weights[t] * log1p((((double)s->rows + s->prior_rows) - held + 0.5) / (held + 0.5));
        s->said_total += s->said[t];
    }
    s->margin = weights * (double)(s->terms + 16) * 2.4e-7;
    return 0;
}

static inline double bm25_part(const bm25_search *s, double tf, double length, int64_t term) {
    return tf * (s->k1 + 1.0) / (tf + (s->fixed + s->slope * length)) * s->impact[term];
}

static inline double bm25_share_said(const bm25_search *s, double said) {
    if (!(s->said_total > 0.0)) return 0.0;
    said = said / s->said_total;
    return said < 1.0 ? said : 1.0;
}

/* How often a list's term stands in a document, 0.0 = never. */
static inline double bm25_tf(const bm25_list *list, int32_t doc) {
    if (!list->size) return 0.0;
    if (list->dense && list->dense[doc] < 255) return (double)list->dense[doc];
    if (list->filter && !bm25_possible(list, doc)) return 0.0;
    const int64_t at = bm25_in_list(list, doc);
    return at < 0 ? 0.0 : bm25_frequency(list, at);
}

/* Score and word match of one document by looking it up in every list; 0.0 when no term is there. */
static double bm25_value(const bm25_search *s, int64_t number, int32_t doc, double *match) {
    const double length = (double)s->segments[number].lengths[doc];
    double sum = 0.0, said = 0.0;
    for (int64_t t = 0; t < s->terms; t++) {
        const double tf = bm25_tf(&s->lists[number * s->terms + t], doc);
        if (tf == 0.0) continue;
        sum += bm25_part(s, tf, length, t);
        said += s->said[t];
    }
    *match = bm25_share_said(s, said);
    return sum;
}

/* ---- the k best ---- */

static inline int bm25_worse(double score, int32_t rid, double other, int32_t other_rid) {
    return score < other || (score == other && rid > other_rid);
}

static void bm25_set(bm25_search *s, int64_t at, double score, int32_t rid, double match) {
    s->score[at] = score, s->best[at] = rid, s->match[at] = match;
}

static void bm25_sink(bm25_search *s, int64_t at, int64_t size, double score, int32_t rid, double match) {
    while (2 * at + 1 < size) {
        int64_t child = 2 * at + 1;
        if (child + 1 < size && bm25_worse(s->score[child + 1], s->best[child + 1], s->score[child], s->best[child])) child++;
        if (!bm25_worse(s->score[child], s->best[child], score, rid)) break;
        bm25_set(s, at, s->score[child], s->best[child], s->match[child]);
        at = child;
    }
    bm25_set(s, at, score, rid, match);
}

static void bm25_offer(bm25_search *s, double score, int32_t rid, double match) {
    if (s->kept < s->k) {
        int64_t at = s->kept++;
        while (at && bm25_worse(score, rid, s->score[(at - 1) / 2], s->best[(at - 1) / 2])) {
            const int64_t up = (at - 1) / 2;
            bm25_set(s, at, s->score[up], s->best[up], s->match[up]);
            at = up;
        }
        bm25_set(s, at, score, rid, match);
    } else if (bm25_worse(s->score[0], s->best[0], score, rid)) {
        bm25_sink(s, 0, s->kept, score, rid, match);
    }
}

static void bm25_sort(bm25_search *s) {
    for (int64_t i = s->kept - 1; i > 0; i--) {
        const double score = s->score[i], match = s->match[i];
        const int32_t rid = s->best[i];
        bm25_set(s, i, s->score[0], s->best[0], s->match[0]);
        bm25_sink(s, 0, i, score, rid, match);
    }
}

#endif
