/* One BM25 question over flat posting lists: what _bm25.pyx calls without the GIL. bm25_py.py documents the arithmetic
 * and is the oracle; here is how to look at little of it.
 *
 * MaxScore (Turtle and Flood 1995) by windows of documents, as Lucene's MaxScoreBulkScorer: in each window the terms
 * whose bounds together cannot reach the k-th best score so far only complete the others' documents. Sums in a window are
 * float32 approximations that are never too small by more than `margin`; what might be among the best is scored again
 * exactly, in float64 and in the order of the terms. So approximations decide what is looked at, never what is answered.
 */
#ifndef MEMXD_BM25_H
#define MEMXD_BM25_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bm25_loops.h"

#define BM25_BITS 12
#define BM25_WINDOW (1 << BM25_BITS)
#define BM25_LOOKUP 40 /* a document looked up in a list costs about as much as so many postings read */
#define BM25_SEEDS 1024 /* postings read for a floor to begin with; not more than BM25_WINDOW */

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
    int64_t from, to;      /* what belongs to the scope (or may) */
    int64_t df, known_df; /* as of known_deaths, -1 = not known */
    int32_t known_deaths;
} bm25_list;

typedef struct {
    const bm25_list *list;
    int64_t term, cursor, from, to; /* in the window */
    int64_t at;                     /* where the present document stands, -1 = it does not */
    float weight, bound;
} bm25_lane;

typedef struct { float ratio; int32_t lane; } bm25_turn;

typedef struct {
    float sums[BM25_WINDOW]; /* zero between windows */
    float parts[BM25_WINDOW];
    float values[BM25_WINDOW + 1]; /* the last place is written to and never counts */
    int32_t docs[BM25_WINDOW + 1];
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
    double floor; /* known from the start: k documents reach this and the margin; -1 = nothing known */
    bm25_lane *lanes; bm25_turn *turns;
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

/* Where a document's hint stands among the window's sums. */
static inline uint32_t bm25_place(int32_t doc) { return (uint32_t)doc * 2654435761u >> (32 - BM25_BITS); }

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

/* Score and word match of one document by looking it up in every list; 0.0 when no term is there. */
static double bm25_value(const bm25_search *s, int64_t number, int32_t doc, double *match) {
    const double length = (double)s->segments[number].lengths[doc];
    double sum = 0.0, said = 0.0;
    for (int64_t t = 0; t < s->terms; t++) {
        const bm25_list *list = &s->lists[number * s->terms + t];
        const int64_t at = list->size ? bm25_in_list(list, doc) : -1;
        if (at < 0) continue;
        sum += bm25_part(s, bm25_frequency(list, at), length, t);
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

/* ---- windows ---- */

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

/* Whether a document may still be among the best once the other lists are asked too; notes where it stands there. */
static inline int bm25_complete(bm25_search *s, int32_t doc, float value, int64_t others) {
    const double least = bm25_least(s);
    for (int64_t i = others - 1; i >= 0; i--) {
        bm25_lane *lane = &s->lanes[s->others[i]];
        if ((double)value + (double)s->reach[i] < least) return 0;
        lane->at = bm25_position(lane->list->docs, lane->from, lane->to, doc);
        if (lane->at >= 0) {
            float share;
            bm25_shares_portable(&lane->list->packed[lane->at], &share, 1, (float)s->fixed, (float)s->slope, lane->weight);
            value += share;
        }
    }
    return (double)value >= least;
}

static void bm25_score_exactly(bm25_search *s, const bm25_segment *segment, int32_t doc, int64_t lanes) {
    const double length = (double)segment->lengths[doc];
    double sum = 0.0, said = 0.0;
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = &s->lanes[i];
        const int64_t at = lane->at == -2 ? bm25_position(lane->list->docs, lane->from, lane->to, doc) : lane->at;
        if (at < 0) continue;
        sum += bm25_part(s, bm25_frequency(lane->list, at), length, lane->term);
        said += s->said[lane->term];
    }
    bm25_offer(s, sum, segment->rids[doc], bm25_share_said(s, said));
}

/* Judge the window's documents whose sums are large enough: scratch.docs and scratch.values, n of them. */
static void bm25_survivors(bm25_search *s, const bm25_segment *segment, int64_t n, int64_t lanes, int64_t others) {
    bm25_scratch *scratch = s->scratch;
    const int known = s->kept == s->k || s->floor > 0.0;
    const int late = known && s->m * 2 >= s->rows; /* most are selected: ask only for those that matter */
    int64_t kept = 0;
    for (int64_t i = 0; i < n && !late; i++) {
        const int32_t doc = scratch->docs[i];
        if (!bm25_own(s, segment, doc) || !bm25_selected(s, segment->rids[doc])) continue;
        scratch->docs[kept] = doc;
        scratch->values[kept++] = scratch->values[i];
    }
    if (late) kept = n;
    else if (!known && s->k - s->kept < kept) bm25_front(scratch->values, scratch->docs, kept, s->k - s->kept);
    for (int64_t j = 0; j < lanes; j++) s->lanes[j].at = -2; /* not looked for yet */
    for (int64_t i = 0; i < kept; i++) {
        const int32_t doc = scratch->docs[i];
        if (!bm25_complete(s, doc, scratch->values[i], others)) continue;
        if (late && !(bm25_own(s, segment, doc) && bm25_selected(s, segment->rids[doc]))) continue;
        bm25_score_exactly(s, segment, doc, lanes);
    }
}

/* Sums of the lanes that decide, and the documents whose sum is above `least`, into scratch; how many. */
static int64_t bm25_gather(bm25_search *s, int64_t lanes, int32_t base, int64_t decide, int64_t postings, float least) {
    bm25_scratch *scratch = s->scratch;
    const float fixed = (float)s->fixed, slope = (float)s->slope;
    int64_t found = 0;
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = &s->lanes[i];
        if (lane->at == -1) continue;
        const int64_t n = lane->to - lane->from;
        const int32_t *docs = lane->list->docs + lane->from;
        bm25_shares(lane->list->packed + lane->from, scratch->parts, n, fixed, slope, lane->weight);
        if (decide == 1) {
            for (int64_t j = 0; j < n; j++) {
                scratch->docs[found] = docs[j];
                scratch->values[found] = scratch->parts[j];
                found += scratch->parts[j] > least;
            }
            return found;
        }
        for (int64_t j = 0; j < n; j++) scratch->sums[docs[j] - base] += scratch->parts[j];
    }
    if (postings * 4 >= BM25_WINDOW) {
        found = bm25_above(scratch->sums, BM25_WINDOW, least, base, scratch->docs, scratch->values);
        memset(scratch->sums, 0, sizeof scratch->sums);
        return found;
    }
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = &s->lanes[i];
        if (lane->at == -1) continue;
        for (int64_t j = lane->from; j < lane->to; j++) {
            const int32_t doc = lane->list->docs[j];
            const float value = scratch->sums[doc - base];
            scratch->sums[doc - base] = 0.0f;
            if (value > least) scratch->docs[found] = doc, scratch->values[found++] = value;
        }
    }
    return found;
}

/* Complete many documents at once: read the last of the other lists whole, where that is cheaper than to look each of the
 * n documents up in it. How many of them are left; `others` becomes the number of lists that were not read. */
static int64_t bm25_narrow(bm25_search *s, int32_t base, int64_t n, int64_t *others) {
    bm25_scratch *scratch = s->scratch;
    const float fixed = (float)s->fixed, slope = (float)s->slope;
    int64_t at = *others;
    int dirty = 0;
    for (; at > 0; at--) {
        const bm25_lane *lane = &s->lanes[s->others[at - 1]];
        const int64_t size = lane->to - lane->from;
        const int32_t *docs = lane->list->docs + lane->from;
        if (n * BM25_LOOKUP < size + BM25_LOOKUP * 8) break;
        if (!dirty)
            for (int64_t i = 0; i < n; i++) scratch->sums[scratch->docs[i] - base] = scratch->values[i];
        dirty = 1;
        bm25_shares(lane->list->packed + lane->from, scratch->parts, size, fixed, slope, lane->weight);
        for (int64_t i = 0; i < size; i++) scratch->sums[docs[i] - base] += scratch->parts[i];
        const double enough = bm25_least(s) - (at > 1 ? (double)s->reach[at - 2] : 0.0);
        int64_t kept = 0;
        for (int64_t i = 0; i < n; i++) {
            const int32_t doc = scratch->docs[i];
            const float value = scratch->sums[doc - base];
            scratch->docs[kept] = doc, scratch->values[kept] = value;
            kept += (double)value >= enough;
        }
        n = kept;
    }
    if (dirty) memset(scratch->sums, 0, sizeof scratch->sums);
    *others = at;
    return n;
}

static void bm25_window(bm25_search *s, const bm25_segment *segment, int32_t base, int64_t lanes) {
    const double least = bm25_least(s);
    int64_t others = 0, decide = 0, postings = 0, window = base >> BM25_BITS;
    float reach = 0.0f;
    for (int64_t i = 0; i < lanes; i++) {
        bm25_lane *lane = &s->lanes[i];
        const bm25_list *list = lane->list;
        if (list->starts) {
            lane->from = list->starts[window] > list->from ? list->starts[window] : list->from;
            lane->to = list->starts[window + 1] < list->to ? list->starts[window + 1] : list->to;
            lane->bound = lane->weight * list->bounds[window];
        } else {
            lane->from = lane->cursor;
            lane->to = lane->cursor = bm25_gallop(list->docs, lane->cursor, list->to, base + BM25_WINDOW);
        }
    }
    for (int64_t i = 0; i < lanes; i++) {
        bm25_lane *lane = &s->lanes[s->turns[i].lane];
        lane->at = -1;
        if (lane->to <= lane->from) continue;
        if ((double)reach + (double)lane->bound < least) {
            reach += lane->bound;
            s->reach[others] = reach;
            s->others[others++] = s->turns[i].lane;
        } else {
            lane->at = 0;
            decide++;
            postings += lane->to - lane->from;
        }
    }
    if (!decide) return;
    const double enough = least - (double)reach;
    int64_t n = bm25_gather(s, lanes, base, decide, postings, enough > 0.0 ? (float)(enough * 0.9999999) : 0.0f);
    if (n && others) n = bm25_narrow(s, base, n, &others);
    if (n) bm25_survivors(s, segment, n, lanes, others);
}

static int bm25_by_ratio(const void *left, const void *right) {
    const bm25_turn *a = (const bm25_turn *)left, *b = (const bm25_turn *)right;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
}

/* A floor before the first window: k documents that the most telling short lists make likely, scored exactly. The
 * sums by which they are picked share places (two documents may meet in one), so they are hints, not scores. */
static void bm25_seed(bm25_search *s, int64_t number, int64_t lanes) {
    const bm25_segment *segment = &s->segments[number];
    bm25_scratch *scratch = s->scratch;
    const float fixed = (float)s->fixed, slope = (float)s->slope;
    int64_t found = 0, first = lanes, postings = 0;
    for (; first > 0; first--) {
        const bm25_lane *lane = &s->lanes[s->turns[first - 1].lane];
        const int64_t n = lane->list->to - lane->list->from;
        if (postings + n > BM25_SEEDS) break;
        postings += n;
        bm25_shares(lane->list->packed + lane->list->from, scratch->parts, n, fixed, slope, lane->weight);
        for (int64_t j = 0; j < n; j++) scratch->sums[bm25_place(lane->list->docs[lane->list->from + j])] += scratch->parts[j];
    }
    for (int64_t i = first; i < lanes; i++) {
        const bm25_list *list = s->lanes[s->turns[i].lane].list;
        for (int64_t j = list->from; j < list->to; j++) {
            const int32_t doc = list->docs[j];
            const uint32_t place = bm25_place(doc);
            scratch->docs[found] = doc;
            scratch->values[found] = scratch->sums[place];
            found += scratch->sums[place] > 0.0f && bm25_own(s, segment, doc) && bm25_selected(s, segment->rids[doc]);
            scratch->sums[place] = 0.0f;
        }
    }
    if (found < s->k) return;
    bm25_front(scratch->values, scratch->docs, found, s->k);
    for (int64_t i = 0; i < s->k; i++) {
        double match;
        const double score = bm25_value(s, number, scratch->docs[i], &match);
        bm25_offer(s, score, segment->rids[scratch->docs[i]], match);
    }
    s->floor = s->score[0] - s->margin;
    s->kept = 0;
}

static void bm25_segment_best(bm25_search *s, int64_t number) {
    const bm25_segment *segment = &s->segments[number];
    int64_t lanes = 0;
    for (int64_t t = 0; t < s->terms; t++) {
        const bm25_list *list = &s->lists[number * s->terms + t];
        if (!list->df) continue;
        bm25_lane *lane = &s->lanes[lanes];
        lane->list = list, lane->term = t, lane->cursor = list->from;
        lane->weight = (float)(s->impact[t] * (s->k1 + 1.0));
        lane->bound = lane->weight * list->bound;
        s->turns[lanes].ratio = lane->bound / (float)(list->to - list->from);
        s->turns[lanes].lane = (int32_t)lanes;
        lanes++;
    }
    if (!lanes) return;
    qsort(s->turns, (size_t)lanes, sizeof *s->turns, bm25_by_ratio);
    if (!s->kept && s->floor < 0.0 && segment->high - segment->low > BM25_WINDOW) bm25_seed(s, number, lanes);
    for (int64_t base = segment->low & ~(BM25_WINDOW - 1); base < segment->high; base += BM25_WINDOW)
        bm25_window(s, segment, (int32_t)base, lanes);
}

/* Whether a row's living document of the scope is there. */
static inline int bm25_there(const bm25_search *s, int32_t number, int32_t doc, int32_t rid) {
    if (number < 0 || number >= s->segment_count) return 0;
    const bm25_segment *segment = &s->segments[number];
    return doc >= 0 && doc < segment->size && segment->rids[doc] == rid && bm25_own(s, segment, doc);
}

static void bm25_places(bm25_search *s) {
    for (int64_t i = 0; i < s->m; i++) {
        const int32_t number = s->places[i], doc = s->places[s->m + i];
        double match, score;
        if (!bm25_there(s, number, doc, s->rids[i])) continue;
        score = bm25_value(s, number, doc, &match);
        if (score > 0.0) bm25_offer(s, score, s->rids[i], match);
    }
}

static int bm25_run(bm25_search *s) {
    s->floor = -1.0;
    if (bm25_statistics(s)) return 1;
    if (s->k && s->places) bm25_places(s);
    else if (s->k && s->segment_count) {
        int64_t largest = 0; /* first: what it finds, or seeds, spares work in the others */
        for (int64_t i = 1; i < s->segment_count; i++)
            if (s->segments[i].high - s->segments[i].low > s->segments[largest].high - s->segments[largest].low) largest = i;
        bm25_segment_best(s, largest);
        for (int64_t i = 0; i < s->segment_count; i++)
            if (i != largest) bm25_segment_best(s, i);
    }
    bm25_sort(s);
    for (int64_t i = 0; i < s->also_count; i++) {
        const int32_t number = s->also_places[i], doc = s->also_places[s->also_count + i];
        if (bm25_there(s, number, doc, s->also[i]) && bm25_selected(s, s->also[i]))
            s->also_score[i] = bm25_value(s, number, doc, &s->also_match[i]);
    }
    return 0;
}

#endif
