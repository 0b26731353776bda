/*
 * Writes down what a process changes in one folder tree and what of it is synced, so that a loss of power can be played afterwards (power-loss.ts).
 * Loaded into a server by LD_PRELOAD. Environment: POWER_LOSS_ROOT is the tree, POWER_LOSS_LOG the file that is appended to, POWER_LOSS_GRAVES a
 * folder on the same file system, which keeps what loses its name.
 *
 * Lines are fields between tabs. Changes of names have numbers, in the order in which they happen:
 *   create N INODE PATH | link N PATH | mkdir N PATH | unlink N PATH GRAVE | rename N FROM TO GRAVE-or-dash
 *   sync INODE BYTES           the file's content up to there is durable
 *   syncdir N PATH             the folder's changes up to number N are durable
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *graves;
static size_t root_bytes;
static int log_file = -1;
static unsigned long changes;

static int (*real_open)(const char *, int, ...);
static FILE *(*real_fopen)(const char *, const char *);
static int (*real_link)(const char *, const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_mkdir)(const char *, mode_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void start(void) {
  real_open = dlsym(RTLD_NEXT, "open64");
  real_fopen = dlsym(RTLD_NEXT, "fopen64");
  real_link = dlsym(RTLD_NEXT, "link");
  real_rename = dlsym(RTLD_NEXT, "rename");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_mkdir = dlsym(RTLD_NEXT, "mkdir");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  root = getenv("POWER_LOSS_ROOT");
  graves = getenv("POWER_LOSS_GRAVES");
  const char *path = getenv("POWER_LOSS_LOG");
  if (!root || !graves || !path) return;
  root_bytes = strlen(root);
  log_file = real_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int watched(const char *path) {
  return log_file >= 0 && strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == 0);
}

static int exists(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0;
}

static void note(const char *format, ...) {
  char line[3 * PATH_BYTES];
  va_list values;
  va_start(values, format);
  int bytes = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  if (bytes <= 0 || (size_t)bytes >= sizeof line || write(log_file, line, bytes) != bytes) abort();
}

/* Keeps what `path` names under a number, before the name goes. */
static void bury(const char *path, unsigned long number, char *grave) {
  snprintf(grave, PATH_BYTES, "%s/%lu", graves, number);
  if (real_link(path, grave) != 0) abort();
}

static void note_created(const char *path) {
  struct stat found;
  if (lstat(path, &found) == 0) note("create\t%lu\t%lu\t%s\n", ++changes, (unsigned long)found.st_ino, path);
}

static int open_noted(const char *path, int flags, mode_t mode) {
  if (!(flags & O_CREAT) || !watched(path)) return real_open(path, flags, mode);
  pthread_mutex_lock(&order);
  int is_new = !exists(path);
  int file = real_open(path, flags, mode);
  if (file >= 0 && is_new) note_created(path);
  pthread_mutex_unlock(&order);
  return file;
}

int open(const char *path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(values, mode_t) : 0;
  va_end(values);
  return open_noted(path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

FILE *fopen(const char *path, const char *mode) {
  if (mode[0] == 'r' || !watched(path)) return real_fopen(path, mode);
  pthread_mutex_lock(&order);
  int is_new = !exists(path);
  FILE *file = real_fopen(path, mode);
  if (file && is_new) note_created(path);
  pthread_mutex_unlock(&order);
  return file;
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

int link(const char *from, const char *to) {
  if (!watched(to)) return real_link(from, to);
  pthread_mutex_lock(&order);
  if (!exists(to)) note("link\t%lu\t%s\n", ++changes, to);
  int result = real_link(from, to);
  pthread_mutex_unlock(&order);
  return result;
}

int rename(const char *from, const char *to) {
  if (!watched(to)) return real_rename(from, to);
  char grave[PATH_BYTES] = "-";
  pthread_mutex_lock(&order);
  if (exists(from)) {
    changes++;
    if (exists(to)) bury(to, changes, grave);
    note("rename\t%lu\t%s\t%s\t%s\n", changes, from, to, grave);
  }
  int result = real_rename(from, to);
  pthread_mutex_unlock(&order);
  return result;
}

int unlink(const char *path) {
  if (!watched(path)) return real_unlink(path);
  char grave[PATH_BYTES];
  pthread_mutex_lock(&order);
  if (exists(path)) {
    bury(path, ++changes, grave);
    note("unlink\t%lu\t%s\t%s\n", changes, path, grave);
  }
  int result = real_unlink(path);
  pthread_mutex_unlock(&order);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  if (!watched(path)) return real_mkdir(path, mode);
  pthread_mutex_lock(&order);
  if (!exists(path)) note("mkdir\t%lu\t%s\n", ++changes, path);
  int result = real_mkdir(path, mode);
  pthread_mutex_unlock(&order);
  return result;
}

/* What a sync makes durable is what was there when it began; it counts once it has succeeded. */
static int sync_noted(int file, int (*real_sync)(int)) {
  struct stat found;
  char link_path[64], path[PATH_BYTES];
  snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", file);
  ssize_t bytes = log_file < 0 || fstat(file, &found) != 0 ? -1 : readlink(link_path, path, sizeof path - 1);
  if (bytes < 0) return real_sync(file);
  path[bytes] = 0;
  pthread_mutex_lock(&order);
  unsigned long number = changes;
  pthread_mutex_unlock(&order);
  int result = real_sync(file);
  if (result != 0 || !watched(path)) return result;
  pthread_mutex_lock(&order);
  if (S_ISDIR(found.st_mode)) note("syncdir\t%lu\t%s\n", number, path);
  else note("sync\t%lu\t%lld\n", (unsigned long)found.st_ino, (long long)found.st_size);
  pthread_mutex_unlock(&order);
  return result;
}

int fsync(int file) { return sync_noted(file, real_fsync); }

int fdatasync(int file) { return sync_noted(file, real_fdatasync); }
