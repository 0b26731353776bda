/*
 * Keeps a copy of one folder tree that holds only what the processes of an engine have synced: what a disk holds when the power goes (durable-copy.ts).
 * Loaded by LD_PRELOAD. Environment: DURABLE_ROOT is the tree, DURABLE_COPY its copy on the same file system, DURABLE_LOCK a file for the lock.
 *
 * A sync of a file copies its content of before the sync; a sync of a folder removes from the copy what has lost its name.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define BUFFER_BYTES 262144

static const char *root, *copy, *lock_path;
static size_t root_bytes;
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

/* Of its own: PostgreSQL writes the titles of its processes over the environment that it was started with. */
static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? strdup(value) : NULL;
}

__attribute__((constructor)) static void start(void) {
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  root = setting("DURABLE_ROOT");
  copy = setting("DURABLE_COPY");
  lock_path = setting("DURABLE_LOCK");
  if (root) root_bytes = strlen(root);
}

static void join_path(char *to, const char *first, const char *second) {
  if (snprintf(to, PATH_BYTES, "%s%s", first, second) >= PATH_BYTES) abort();
}

static void make_folders_of(const char *path) {
  char folder[PATH_BYTES];
  join_path(folder, path, "");
  for (char *at = folder + strlen(copy) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = 0;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) abort();
  }
}

static void copy_content(const char *from, const char *to) {
  static char buffer[BUFFER_BYTES];
  int source = open(from, O_RDONLY | O_CLOEXEC), target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (source < 0 || target < 0) abort();
  ssize_t bytes;
  while ((bytes = read(source, buffer, sizeof buffer)) > 0)
    if (write(target, buffer, bytes) != bytes) abort();
  if (bytes < 0) abort();
  close(source);
  close(target);
}

static int sync_file(int file, const char *path, int (*real_sync)(int)) {
  char kept[PATH_BYTES], next[PATH_BYTES];
  join_path(kept, copy, path + root_bytes);
  join_path(next, lock_path, ".next");
  copy_content(path, next);
  int result = real_sync(file);
  if (result != 0) return result;
  make_folders_of(kept);
  if (rename(next, kept) != 0) abort();
  return 0;
}

static int sync_folder(int file, const char *path, int (*real_sync)(int)) {
  char kept[PATH_BYTES];
  join_path(kept, copy, path + root_bytes);
  DIR *folder = opendir(kept);
  int result = real_sync(file);
  if (result == 0 && folder)
    for (struct dirent *entry; (entry = readdir(folder));) {
      char name[NAME_MAX + 2], gone[PATH_BYTES], here[PATH_BYTES];
      struct stat found;
      snprintf(name, sizeof name, "/%s", entry->d_name);
      join_path(here, path, name);
      join_path(gone, kept, name);
      if (entry->d_type == DT_REG && lstat(here, &found) != 0 && unlink(gone) != 0) abort();
    }
  if (folder) closedir(folder);
  return result;
}

static int sync_kept(int file, int (*real_sync)(int)) {
  struct stat found, named;
  char link_path[64], path[PATH_BYTES];
  snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", file);
  ssize_t bytes = !root || !copy || !lock_path || fstat(file, &found) != 0 ? -1 : readlink(link_path, path, sizeof path - 1);
  if (bytes < 0) return real_sync(file);
  path[bytes] = 0;
  int is_inside = strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == 0);
  /* What has lost its name is nowhere after a loss of power. */
  if (!is_inside || lstat(path, &named) != 0 || named.st_ino != found.st_ino) return real_sync(file);
  int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) abort();
  int result = S_ISDIR(found.st_mode) ? sync_folder(file, path, real_sync) : sync_file(file, path, real_sync);
  int error = errno;
  close(lock);
  errno = error;
  return result;
}

int fsync(int file) { return sync_kept(file, real_fsync); }

int fdatasync(int file) { return sync_kept(file, real_fdatasync); }
