/* Makes calls that write below one directory fail while a control file says so: loaded into a daemon by LD_PRELOAD.
 *
 * TORTURE_FAULT_ROOT    the directory (absolute, resolved) whose files are meant.
 * TORTURE_FAULT_CONTROL a file of one struct control below, mapped shared; the harness writes it while the daemon runs.
 *
 * Only files whose path lies below the root, and holds `part` (empty = every one; with $ at its end: ends with it), are touched. `after` calls that fit
 * go through first, then `count` of them fail (-1 = all) with `error`. The calls: write, pwrite, writev, fsync,
 * fdatasync, ftruncate, fallocate, open with O_CREAT or for writing, rename, mkdir, link. What is written through a
 * mapping is made room for by ftruncate or fallocate, so a full disk shows there. Test material, never installed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, SIZE = 4, CREATE = 8, RENAME = 16 };

struct control {
  atomic_int on;        /* 0 = everything goes through */
  int32_t error;        /* errno of a failing call */
  int32_t calls;        /* which kinds, by the bits above */
  atomic_int after;     /* so many that fit go through first */
  atomic_int count;     /* so many fail then; -1 = all */
  atomic_int failed;    /* how many failed so far */
  char part[104];       /* what the path must hold */
};

static struct control *control;
static char root[512];

__attribute__((constructor)) static void begin(void) {
  const char *where = getenv("TORTURE_FAULT_ROOT"), *file = getenv("TORTURE_FAULT_CONTROL");
  if (!where || !file) return;
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int handle = real(file, O_RDWR | O_CLOEXEC);
  if (handle < 0) return;
  void *map = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
  close(handle);
  if (map == MAP_FAILED) return;
  snprintf(root, sizeof root, "%s/", where);
  control = map;
}

static int fits(const char *path) {
  size_t part = strlen(control->part), all = strlen(path);
  if (!part || control->part[part - 1] != '$') return strstr(path, control->part) != NULL;
  return all >= part - 1 && !strncmp(path + all - (part - 1), control->part, part - 1);
}

static int hit(int kind, const char *path) {
  if (!atomic_load(&control->on) || !(control->calls & kind)) return 0;
  if (strncmp(path, root, strlen(root)) || !fits(path)) return 0;
  if (atomic_load(&control->after) > 0 && atomic_fetch_sub(&control->after, 1) > 0) return 0;
  int left = atomic_load(&control->count);
  if (left == 0) return 0;
  if (left > 0 && atomic_fetch_sub(&control->count, 1) <= 0) return 0;
  atomic_fetch_add(&control->failed, 1);
  errno = control->error;
  return 1;
}

static int by_path(int kind, int folder, const char *path) {
  char full[1024];
  if (!control || !atomic_load(&control->on) || !path) return 0;
  if (path[0] == '/') return hit(kind, path);
  char link[64], base[512];
  snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
  ssize_t size = readlink(link, base, sizeof base - 1);
  if (size < 0) return 0;
  base[size] = 0;
  snprintf(full, sizeof full, "%s/%s", base, path);
  return hit(kind, full);
}

static int by_handle(int kind, int handle) {
  if (!control || !atomic_load(&control->on) || !(control->calls & kind)) return 0;
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return hit(kind, path);
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int handle, const void *data, size_t size) {
  REAL(write);
  return by_handle(WRITE, handle) ? -1 : real(handle, data, size);
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  return by_handle(WRITE, handle) ? -1 : real(handle, data, size, at);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  return by_handle(WRITE, handle) ? -1 : real(handle, data, size, at);
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
  REAL(writev);
  return by_handle(WRITE, handle) ? -1 : real(handle, parts, count);
}

int fsync(int handle) {
  REAL(fsync);
  return by_handle(SYNC, handle) ? -1 : real(handle);
}

int fdatasync(int handle) {
  REAL(fdatasync);
  return by_handle(SYNC, handle) ? -1 : real(handle);
}

int ftruncate(int handle, off_t size) {
  REAL(ftruncate);
  return by_handle(SIZE, handle) ? -1 : real(handle, size);
}

int ftruncate64(int handle, off64_t size) {
  REAL(ftruncate64);
  return by_handle(SIZE, handle) ? -1 : real(handle, size);
}

int fallocate(int handle, int mode, off_t at, off_t size) {
  REAL(fallocate);
  return by_handle(SIZE, handle) ? -1 : real(handle, mode, at, size);
}

int fallocate64(int handle, int mode, off64_t at, off64_t size) {
  REAL(fallocate64);
  return by_handle(SIZE, handle) ? -1 : real(handle, mode, at, size);
}

int posix_fallocate(int handle, off_t at, off_t size) {
  REAL(posix_fallocate);
  return by_handle(SIZE, handle) ? errno : real(handle, at, size);
}

int posix_fallocate64(int handle, off64_t at, off64_t size) {
  REAL(posix_fallocate64);
  return by_handle(SIZE, handle) ? errno : real(handle, at, size);
}

#define MODE(flags, mode) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }

int open(const char *path, int flags, ...) {
  MODE(flags, mode)
  REAL(open);
  return (flags & O_CREAT) && by_path(CREATE, AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  MODE(flags, mode)
  REAL(open64);
  return (flags & O_CREAT) && by_path(CREATE, AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  MODE(flags, mode)
  REAL(openat);
  return (flags & O_CREAT) && by_path(CREATE, folder, path) ? -1 : real(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
  MODE(flags, mode)
  REAL(openat64);
  return (flags & O_CREAT) && by_path(CREATE, folder, path) ? -1 : real(folder, path, flags, mode);
}

FILE *fopen64(const char *path, const char *how) {
  REAL(fopen64);
  return how[0] != 'r' && by_path(CREATE, AT_FDCWD, path) ? NULL : real(path, how);
}

FILE *fopen(const char *path, const char *how) {
  REAL(fopen);
  return how[0] != 'r' && by_path(CREATE, AT_FDCWD, path) ? NULL : real(path, how);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return by_path(RENAME, AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int one, const char *from, int two, const char *to) {
  REAL(renameat);
  return by_path(RENAME, two, to) ? -1 : real(one, from, two, to);
}

int link(const char *from, const char *to) {
  REAL(link);
  return by_path(CREATE, AT_FDCWD, to) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return by_path(CREATE, AT_FDCWD, path) ? -1 : real(path, mode);
}
