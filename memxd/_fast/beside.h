/* A few threads that do single pieces of work beside the one that has them: plain C, so neither beginning nor ending
 * one takes the interpreter's lock. Work is taken over only when a thread waits for some, and whoever wants the result
 * takes work back that nobody has begun: nothing ever waits for a thread that the system does not run.
 *
 * Where there are no POSIX threads, nothing is taken over. Callers see to it that start, post and stop do not overlap
 * (they hold the interpreter's lock); finish may run anywhere.
 */
#ifndef MEMXD_BESIDE_H
#define MEMXD_BESIDE_H

#include <stddef.h>

typedef struct memxd_task {
    void (*run)(void *);
    void *state;
    int stage; /* 0 = waits for a thread, 1 = runs, 2 = done */
    struct memxd_task *next;
} memxd_task;

#if (defined(__unix__) || defined(__APPLE__)) && (defined(__GNUC__) || defined(__clang__))
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMXD_SPINS 400 /* looks at a task before its thread is waited for: some ten microseconds */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t come, ended;
    pthread_t *threads;
    int count;   /* threads that were started */
    int waiting; /* of them, those that wait for work; each task in the list will take one of them */
    int queued, stopping;
    pid_t process; /* threads do not survive a fork */
    memxd_task *first;
} memxd_helpers;

static inline void memxd_rest(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void *memxd_help(void *of) {
    memxd_helpers *h = (memxd_helpers *)of;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        memxd_task *task = h->first;
        if (task) {
            h->first = task->next;
            h->queued--;
            __atomic_store_n(&task->stage, 1, __ATOMIC_RELAXED);
            pthread_mutex_unlock(&h->lock);
            task->run(task->state);
            pthread_mutex_lock(&h->lock);
            __atomic_store_n(&task->stage, 2, __ATOMIC_RELEASE);
            pthread_cond_broadcast(&h->ended);
        } else if (h->stopping) {
            break;
        } else {
            h->waiting++;
            pthread_cond_wait(&h->come, &h->lock);
            h->waiting--;
        }
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* Begin with so many threads, or with fewer where the system refuses; NULL = out of memory. */
static memxd_helpers *memxd_helpers_start(int threads) {
    memxd_helpers *h = (memxd_helpers *)calloc(1, sizeof *h);
    sigset_t all, before;
    if (!h) return NULL;
    h->threads = (pthread_t *)calloc((size_t)threads, sizeof *h->threads);
    if (!h->threads) {
        free(h);
        return NULL;
    }
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->come, NULL);
    pthread_cond_init(&h->ended, NULL);
    h->process = getpid();
    sigfillset(&all); /* signals are for the threads that can run their handlers */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (h->count < threads && pthread_create(&h->threads[h->count], NULL, memxd_help, h) == 0) h->count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return h;
}

/* 1 = a thread will run the task, which has to stay where it is until it is finished; 0 = nobody is free. */
static int memxd_post(memxd_helpers *h, memxd_task *task) {
    int taken = 0;
    if (h->process != getpid()) return 0;
    pthread_mutex_lock(&h->lock);
    if (!h->stopping && h->waiting > h->queued) {
        task->stage = 0;
        task->next = h->first;
        h->first = task;
        h->queued++;
        taken = 1;
    }
    pthread_mutex_unlock(&h->lock);
    if (taken) pthread_cond_signal(&h->come);
    return taken;
}

static inline int memxd_done(memxd_task *task) { return __atomic_load_n(&task->stage, __ATOMIC_ACQUIRE) == 2; }

/* Returns when a posted task is done: runs it when no thread has begun to. With `drop` it is not worth running. */
static void memxd_finish_task(memxd_helpers *h, memxd_task *task, int drop) {
    memxd_task **place;
    if (memxd_done(task) || h->process != getpid()) return; /* in a fork's child the task will never be done */
    pthread_mutex_lock(&h->lock);
    for (place = &h->first; *place && *place != task; place = &(*place)->next) {}
    if (*place) {
        *place = task->next;
        h->queued--;
        pthread_mutex_unlock(&h->lock);
        if (!drop) task->run(task->state);
        __atomic_store_n(&task->stage, 2, __ATOMIC_RELEASE);
        return;
    }
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < MEMXD_SPINS; i++) {
        if (memxd_done(task)) return;
        memxd_rest();
    }
    pthread_mutex_lock(&h->lock);
    while (!memxd_done(task)) pthread_cond_wait(&h->ended, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* No more work is taken over; returns when every thread has ended. */
static void memxd_helpers_stop(memxd_helpers *h) {
    if (h->process != getpid()) return;
    pthread_mutex_lock(&h->lock);
    h->stopping = 1;
    pthread_cond_broadcast(&h->come);
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < h->count; i++) pthread_join(h->threads[i], NULL);
    h->count = 0;
}

/* After stop, and when no task is left. */
static void memxd_helpers_free(memxd_helpers *h) {
    if (h->process == getpid()) {
        pthread_mutex_destroy(&h->lock);
        pthread_cond_destroy(&h->come);
        pthread_cond_destroy(&h->ended);
    }
    free(h->threads);
    free(h);
}

#else
typedef struct { int none; } memxd_helpers;
static memxd_helpers *memxd_helpers_start(int threads) { (void)threads; return NULL; }
static int memxd_post(memxd_helpers *h, memxd_task *task) { (void)h, (void)task; return 0; }
static int memxd_done(memxd_task *task) { return task->stage == 2; }
static void memxd_finish_task(memxd_helpers *h, memxd_task *task, int drop) { (void)h, (void)task, (void)drop; }
static void memxd_helpers_stop(memxd_helpers *h) { (void)h; }
static void memxd_helpers_free(memxd_helpers *h) { (void)h; }
#endif

#endif
