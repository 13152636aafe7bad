/*
 * Loaded into a process by LD_PRELOAD: writes down what the process does to the files of one directory.
 *
 * HAPAX_POWER_DIR is the directory (an absolute path without symbolic links), HAPAX_POWER_LOG the log,
 * which must be elsewhere. The log is read by log.rs, which says how it is laid out.
 *
 * Order. One lock, over all threads and processes that share the log, is held from before a call is
 * performed until after it is in the log. So the log has the calls in the order in which they happened,
 * and a call has returned only if it is in the log. Two things follow that the judge relies on:
 *   - what is in the log before a sync was written before the sync began, so the sync made it durable;
 *   - an acknowledgement is itself a write to a file of the directory, made after the call it
 *     acknowledges had returned: if it is in the log, so is every sync that was waited for, before it.
 *
 * A call that changes a file in a way the log has no word for is logged as UNKNOWN, which the reader of
 * the log refuses. Shared memory (names that end in -shm) is not durable and is left out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    OPENED = 1,
    CREATED = 2,
    WRITTEN = 3,
    TRUNCATED = 4,
    SYNCED = 5,
    DIRECTORY_SYNCED = 6,
    UNLINKED = 7,
    UNKNOWN = 8
};

enum role { NOBODYS = 0, FILE_OF_OURS = 1, DIRECTORY = 2 };

#define FDS_MAX 4096
static unsigned char roles[FDS_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t begun = PTHREAD_ONCE_INIT;
static int log_fd = -1;
static const char *dir;
static size_t dir_len;

static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

static void begin(void) {
    real_openat = dlsym(RTLD_NEXT, "openat");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    const char *log_path = getenv("HAPAX_POWER_LOG");
    dir = getenv("HAPAX_POWER_DIR");
    if (dir == NULL || log_path == NULL) {
        abort();
    }
    dir_len = strlen(dir);
    log_fd = real_openat(AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) {
        abort();
    }
}

/* The open log is one for each process, so its lock keeps processes apart; the mutex, threads. */
static void lock(void) {
    pthread_once(&begun, begin);
    pthread_mutex_lock(&mutex);
    while (flock(log_fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            abort();
        }
    }
}

static void unlock(void) {
    int kept = errno;
    flock(log_fd, LOCK_UN);
    pthread_mutex_unlock(&mutex);
    errno = kept;
}

static void put(const void *bytes, size_t len) {
    const char *at = bytes;
    while (len > 0) {
        ssize_t done = real_write(log_fd, at, len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            abort();
        }
        at += done;
        len -= (size_t)done;
    }
}

static void note(enum kind kind, uint64_t inode, uint64_t number, const void *bytes, size_t len) {
    int kept = errno;
    unsigned char head[25];
    uint64_t size = len;
    head[0] = (unsigned char)kind;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &number, 8);
    memcpy(head + 17, &size, 8);
    put(head, sizeof head);
    put(bytes, len);
    errno = kept;
}

static enum role role_of(int fd) {
    return fd >= 0 && fd < FDS_MAX ? roles[fd] : NOBODYS;
}

static uint64_t inode_of(int fd) {
    struct stat found;
    if (fstat(fd, &found) != 0) {
        abort();
    }
    return found.st_ino;
}

/* The name of a file in the directory, "" for the directory itself, NULL for what is none of ours. */
static const char *name_of(const char *path) {
    if (strncmp(path, dir, dir_len) != 0) {
        return NULL;
    }
    const char *rest = path + dir_len;
    if (*rest == '\0') {
        return rest;
    }
    if (*rest != '/') {
        return NULL;
    }
    size_t len = strlen(++rest);
    return len >= 4 && strcmp(rest + len - 4, "-shm") == 0 ? NULL : rest;
}

static void unknown(const char *call) {
    note(UNKNOWN, 0, 0, call, strlen(call));
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    pthread_once(&begun, begin);
    const char *name = name_of(path);
    if (name == NULL) {
        return real_openat(at, path, flags, mode);
    }
    lock();
    struct stat found;
    int was_there = fstatat(at, path, &found, AT_SYMLINK_NOFOLLOW) == 0;
    int fd = real_openat(at, path, flags, mode);
    if (fd >= FDS_MAX) {
        abort();
    }
    if (fd >= 0 && *name == '\0') {
        roles[fd] = DIRECTORY;
    } else if (fd >= 0) {
        roles[fd] = FILE_OF_OURS;
        note(was_there ? OPENED : CREATED, inode_of(fd), 0, name, strlen(name));
        if (was_there && (flags & O_TRUNC) != 0) {
            note(TRUNCATED, inode_of(fd), 0, NULL, 0);
        }
    }
    unlock();
    return fd;
}

#define MODE_OF(flags, mode)                                                                           \
    mode_t mode = 0;                                                                                   \
    if (((flags) & O_CREAT) != 0) {                                                                    \
        va_list rest;                                                                                  \
        va_start(rest, flags);                                                                         \
        mode = va_arg(rest, mode_t);                                                                   \
        va_end(rest);                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_at(at, path, flags, mode);
}

int close(int fd) {
    if (role_of(fd) == NOBODYS) {
        pthread_once(&begun, begin);
        return real_close(fd);
    }
    lock();
    roles[fd] = NOBODYS;
    int done = real_close(fd);
    unlock();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t len) {
    if (role_of(fd) == NOBODYS) {
        pthread_once(&begun, begin);
        return real_write(fd, bytes, len);
    }
    lock();
    ssize_t done = real_write(fd, bytes, len);
    if (done > 0) {
        off_t end = lseek(fd, 0, SEEK_CUR);
        note(WRITTEN, inode_of(fd), (uint64_t)(end - done), bytes, (size_t)done);
    }
    unlock();
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    if (role_of(fd) == NOBODYS) {
        pthread_once(&begun, begin);
        return real_pwrite(fd, bytes, len, offset);
    }
    lock();
    ssize_t done = real_pwrite(fd, bytes, len, offset);
    if (done > 0) {
        note(WRITTEN, inode_of(fd), (uint64_t)offset, bytes, (size_t)done);
    }
    unlock();
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t offset) {
    return pwrite(fd, bytes, len, offset);
}

int ftruncate(int fd, off_t length) {
    if (role_of(fd) == NOBODYS) {
        pthread_once(&begun, begin);
        return real_ftruncate(fd, length);
    }
    lock();
    int done = real_ftruncate(fd, length);
    if (done == 0) {
        note(TRUNCATED, inode_of(fd), (uint64_t)length, NULL, 0);
    }
    unlock();
    return done;
}

int ftruncate64(int fd, off64_t length) {
    return ftruncate(fd, length);
}

/* A disk takes its time to sync, and others go on meanwhile: that is how commits come to share one. */
#define SYNC_US 300

static int synced(int fd, int (*perform)(int)) {
    usleep(SYNC_US);
    lock();
    int done = perform(fd);
    if (done == 0 && role_of(fd) == DIRECTORY) {
        note(DIRECTORY_SYNCED, 0, 0, NULL, 0);
    } else if (done == 0) {
        note(SYNCED, inode_of(fd), 0, NULL, 0);
    }
    unlock();
    return done;
}

int fsync(int fd) {
    pthread_once(&begun, begin);
    return role_of(fd) == NOBODYS ? real_fsync(fd) : synced(fd, real_fsync);
}

int fdatasync(int fd) {
    pthread_once(&begun, begin);
    return role_of(fd) == NOBODYS ? real_fdatasync(fd) : synced(fd, real_fdatasync);
}

int unlink(const char *path) {
    pthread_once(&begun, begin);
    const char *name = name_of(path);
    if (name == NULL) {
        return real_unlink(path);
    }
    lock();
    int done = real_unlink(path);
    if (done == 0) {
        note(UNLINKED, 0, 0, name, strlen(name));
    }
    unlock();
    return done;
}

/* What nobody does today. Should somebody begin to, the log says so, and its reader refuses it. */

#define REFUSE(is_ours, call, type, ...)                                                               \
    static type (*real)();                                                                             \
    pthread_once(&begun, begin);                                                                       \
    if (real == NULL) {                                                                                \
        real = dlsym(RTLD_NEXT, call);                                                                 \
    }                                                                                                  \
    if (is_ours) {                                                                                     \
        lock();                                                                                        \
        unknown(call);                                                                                 \
        unlock();                                                                                      \
    }                                                                                                  \
    return real(__VA_ARGS__);

static int is_file(int fd) {
    return role_of(fd) == FILE_OF_OURS;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REFUSE(is_file(fd), "writev", ssize_t, fd, parts, count)
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    REFUSE(is_file(fd), "pwritev", ssize_t, fd, parts, count, offset)
}

int fallocate(int fd, int mode, off_t offset, off_t len) {
    REFUSE(is_file(fd), "fallocate", int, fd, mode, offset, len)
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len) {
    REFUSE(is_file(fd), "fallocate64", int, fd, mode, offset, len)
}

int posix_fallocate(int fd, off_t offset, off_t len) {
    REFUSE(is_file(fd), "posix_fallocate", int, fd, offset, len)
}

int posix_fallocate64(int fd, off64_t offset, off64_t len) {
    REFUSE(is_file(fd), "posix_fallocate64", int, fd, offset, len)
}

int truncate(const char *path, off_t length) {
    pthread_once(&begun, begin);
    REFUSE(name_of(path) != NULL, "truncate", int, path, length)
}

int truncate64(const char *path, off64_t length) {
    pthread_once(&begun, begin);
    REFUSE(name_of(path) != NULL, "truncate64", int, path, length)
}

int rename(const char *from, const char *to) {
    pthread_once(&begun, begin);
    REFUSE(name_of(from) != NULL || name_of(to) != NULL, "rename", int, from, to)
}

int link(const char *from, const char *to) {
    pthread_once(&begun, begin);
    REFUSE(name_of(from) != NULL || name_of(to) != NULL, "link", int, from, to)
}

int mkdir(const char *path, mode_t mode) {
    pthread_once(&begun, begin);
    REFUSE(name_of(path) != NULL, "mkdir", int, path, mode)
}

static int is_mapped_to_write(int fd, int protection, int flags) {
    return is_file(fd) && (protection & PROT_WRITE) != 0 && (flags & MAP_SHARED) != 0;
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset) {
    REFUSE(is_mapped_to_write(fd, protection, flags), "mmap", void *, at, len, protection, flags, fd,
           offset)
}

void *mmap64(void *at, size_t len, int protection, int flags, int fd, off64_t offset) {
    REFUSE(is_mapped_to_write(fd, protection, flags), "mmap64", void *, at, len, protection, flags, fd,
           offset)
}
