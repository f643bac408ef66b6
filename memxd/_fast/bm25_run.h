/* One BM25 question over flat posting lists: what _bm25.pyx calls without the GIL. bm25_py.py is the oracle; here is how to
 * look at little of the lists.
 *
 * MaxScore (Turtle and Flood 1995): lists that together cannot reach the k-th best score so far only complete the
 * others' documents. Questions of a few words go through the lists in turn (bm25_turns.h); where it costs less, as for
 * questions of many, all lists are added up at once, by windows of documents, as Lucene's MaxScoreBulkScorer. Windows
 * grow: while little is known nearly everything in them is scored. Sums are float32 approximations within `margin` of the exact
 * score; k of them raise the floor. What is above it waits, and what is above it in the end is scored again exactly, in
 * float64 and in the order of the terms. So approximations decide what is looked at, never what is answered.
 */
#ifndef MEMXD_BM25_RUN_H
#define MEMXD_BM25_RUN_H

#include "bm25_turns.h"

/* ---- windows ---- */

/* What a document gets once the other lists are asked too, or -1 as soon as it cannot be among the best. */
static inline float bm25_complete(const bm25_search *s, const bm25_segment *segment, int32_t doc, float value,
                                  int64_t others) {
    const float fixed = (float)s->fixed, slope = (float)s->slope;
    const double least = bm25_least(s);
    for (int64_t i = others - 1; i >= 0; i--) {
        const bm25_lane *lane = &s->lanes[s->others[i]];
        const bm25_list *list = lane->list;
        if ((double)value + (double)s->reach[i] < least) return -1.0f;
        if (list->dense && list->dense[doc] < 255) {
            const float tf = (float)list->dense[doc];
            if (tf > 0.0f) value += lane->weight * (tf / (tf + (fixed + slope * (float)segment->lengths[doc])));
            continue;
        }
        if (list->filter && !bm25_possible(list, doc)) continue;
        const int64_t at = bm25_position(list->docs, lane->from, lane->to, doc);
        float share = 0.0f;
        if (at >= 0) bm25_shares_portable(&list->packed[at], &share, 1, fixed, slope, lane->weight);
        value += share;
    }
    return (double)value >= least ? value : -1.0f;
}

/* Judge the window's documents whose sums are large enough: scratch.docs and scratch.values, n of them. */
static void bm25_survivors(bm25_search *s, int64_t number, int64_t n, int64_t others) {
    const bm25_segment *segment = &s->segments[number];
    bm25_scratch *scratch = s->scratch;
    const int known = s->kept == s->k || s->floor > 0.0;
    const int late = known && s->m * 2 >= s->rows; /* most are selected: ask only for those that matter */
    int64_t kept = 0;
    for (int64_t i = 0; i < n && late; i++) {
        __builtin_prefetch(&segment->lengths[scratch->docs[i]]);
        __builtin_prefetch(&segment->rids[scratch->docs[i]]);
    }
    for (int64_t i = 0; i < n && !late; i++) {
        const int32_t doc = scratch->docs[i];
        if (!bm25_own(s, segment, doc) || !bm25_selected(s, segment->rids[doc])) continue;
        scratch->docs[kept] = doc;
        scratch->values[kept++] = scratch->values[i];
    }
    if (late) kept = n;
    else if (!known && s->k - s->near_count < kept) bm25_front(scratch->values, scratch->docs, kept, s->k - s->near_count);
    for (int64_t i = 0; i < kept; i++) {
        const int32_t doc = scratch->docs[i];
        const float value = bm25_complete(s, segment, doc, scratch->values[i], others);
        if (value < 0.0f) continue;
        if (late && !(bm25_own(s, segment, doc) && bm25_selected(s, segment->rids[doc]))) continue;
        bm25_candidate(s, number, doc, value);
    }
}

/* Sums of the lanes that decide, and the documents whose sum is above `least`, into scratch; how many. */
static int64_t bm25_gather(bm25_search *s, int64_t lanes, int32_t base, int64_t size, int64_t decide, int64_t postings,
                           float least) {
    bm25_scratch *scratch = s->scratch;
    const float fixed = (float)s->fixed, slope = (float)s->slope;
    const int wide = decide > 1 && postings * 4 >= size; /* all sums are looked at, and zeroed */
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
    if (wide) {
        found = bm25_above(scratch->sums, (size + 31) & ~31, least, base, scratch->docs, scratch->values);
        memset(scratch->sums, 0, (size_t)size * sizeof *scratch->sums);
        return found;
    }
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = &s->lanes[i];
        if (lane->at == -1) continue;
        for (int64_t j = lane->from; j < lane->to; j++) {
            const int32_t doc = lane->list->docs[j];
            const float value = scratch->sums[doc - base];
            scratch->sums[doc - base] = 0.0f;
            scratch->docs[found] = doc, scratch->values[found] = value;
            found += value > least;
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
    for (; at > 0 && n > 0; at--) {
        const bm25_lane *lane = &s->lanes[s->others[at - 1]];
        const int64_t size = lane->to - lane->from;
        const int32_t *docs = lane->list->docs + lane->from;
        const double enough = bm25_least(s) - (at > 1 ? (double)s->reach[at - 2] : 0.0);
        int64_t kept = 0;
        if (n * (lane->list->dense || lane->list->filter ? BM25_DENSE : BM25_LOOKUP) < size + BM25_LOOKUP * 8) break;
        bm25_shares(lane->list->packed + lane->from, scratch->parts, size, fixed, slope, lane->weight);
        for (int64_t i = 0; i < size; i++) scratch->sums[docs[i] - base] = scratch->parts[i];
        for (int64_t i = 0; i < n; i++) {
            const int32_t doc = scratch->docs[i];
            const float value = scratch->values[i] + scratch->sums[doc - base];
            scratch->docs[kept] = doc, scratch->values[kept] = value;
            kept += (double)value >= enough;
        }
        for (int64_t i = 0; i < size; i++) scratch->sums[docs[i] - base] = 0.0f;
        n = kept;
    }
    *others = at;
    return n;
}

/* Ask for what the next window reads of a list: each window reads a little of many lists, which no processor foresees. */
static inline void bm25_ahead(const bm25_lane *lane, int64_t end) {
    int64_t n = lane->to - lane->from < BM25_AHEAD ? lane->to - lane->from : BM25_AHEAD;
    n = n < 16 ? 16 : n;
    n = lane->to + n < end ? n : end - lane->to;
    for (int64_t i = 0; i < n; i += 16) {
        __builtin_prefetch(lane->list->docs + lane->to + i);
        __builtin_prefetch(lane->list->packed + lane->to + i);
    }
}

static void bm25_window(bm25_search *s, int64_t number, int32_t base, int32_t end, int64_t lanes) {
    const double least = bm25_least(s);
    int64_t others = 0, decide = 0, postings = 0;
    const int64_t block = base >> BM25_BITS, after = ((int64_t)end + BM25_BLOCK - 1) >> BM25_BITS;
    float reach = 0.0f;
    for (int64_t i = 0; i < lanes; i++) {
        bm25_lane *lane = &s->lanes[i];
        const bm25_list *list = lane->list;
        lane->from = lane->cursor;
        if (list->starts) {
            float bound = list->bounds[block];
            for (int64_t b = block + 1; b < after; b++) bound = list->bounds[b] > bound ? list->bounds[b] : bound;
            lane->bound = lane->weight * bound;
        }
        if (list->starts && !(end & (BM25_BLOCK - 1))) {
            const int64_t to = list->starts[after] < list->to ? list->starts[after] : list->to;
            lane->to = lane->cursor = to > lane->from ? to : lane->from;
        } else {
            lane->to = lane->cursor = bm25_gallop(list->docs, lane->cursor, list->to, end);
        }
        bm25_ahead(lane, list->to);
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
    int64_t n = bm25_gather(s, lanes, base, end - base, decide, postings, enough > 0.0 ? (float)(enough * 0.9999999) : 0.0f);
    if (n && others) n = bm25_narrow(s, base, n, &others);
    if (n) bm25_survivors(s, number, n, others);
}

static int bm25_by_ratio(const void *left, const void *right) {
    const bm25_turn *a = (const bm25_turn *)left, *b = (const bm25_turn *)right;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
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
        lanes++;
    }
    if (!lanes || (!s->large && bm25_in_turn(s, number, lanes))) return;
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_list *list = s->lanes[i].list;
        s->turns[i].ratio = s->lanes[i].bound / (float)(list->to - list->from);
        s->turns[i].lane = (int32_t)i;
    }
    qsort(s->turns, (size_t)lanes, sizeof *s->turns, bm25_by_ratio);
    int64_t size = s->floor > 0.0 ? BM25_WINDOW : BM25_FIRST;
    for (int64_t base = segment->low, end; base < segment->high; base = end) {
        end = (base + size) & ~(size - 1);
        end = end < segment->high ? end : segment->high;
        bm25_window(s, number, (int32_t)base, (int32_t)end, lanes);
        size = 4 * size < BM25_WINDOW ? 4 * size : BM25_WINDOW;
    }
    bm25_settle(s, number);
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
    s->floor = -1.0, s->near_count = s->waiting = s->settled = 0, s->large = 0;
    for (int64_t i = 0; i < s->segment_count * s->terms; i++) s->large |= s->lists[i].size && s->lists[i].more_count;
    if (bm25_statistics(s)) return 1;
    if (s->k && s->places) bm25_places(s);
    else if (s->k && s->segment_count) {
        int64_t largest = 0; /* first: what it finds spares work in the others */
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
