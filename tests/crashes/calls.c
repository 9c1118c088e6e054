/* Counts the calls with which a run changes files below a folder, and lets one of them go wrong.

   Preloaded into every process of a run. The state lies in a file that all of them map: its path
   stands in EQFORGE_CRASHES, and `crashes_begin` maps it in a process that was forked. With a log,
   each call that succeeded is written down with its data, for `replay.py`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, KILL_ALL, KILL_SELF, KILL_HALF_WAY, FAIL };

struct state {
    atomic_long calls;   /* how many there were */
    atomic_long hit;     /* the number of the one that went wrong, 0 for none */
    long target;         /* which one goes wrong, from 1 */
    long how;            /* what happens to it */
    long error;          /* the errno of FAIL */
    long group;          /* the process group of the run */
    char what[PATH_MAX]; /* name and path of the call that went wrong */
    char root[PATH_MAX]; /* only calls on files below it count */
    char log[PATH_MAX];  /* where calls are written down; empty for nowhere */
};

static struct state *state;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int real_open(const char *path, int flags, mode_t mode) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    return real(path, flags, mode);
}

static ssize_t real_write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return real(fd, data, size);
}

void crashes_begin(void) {
    const char *path = getenv("EQFORGE_CRASHES");
    int saved = errno, fd = path ? real_open(path, O_RDWR | O_CLOEXEC, 0) : -1;
    state = NULL;
    if (fd >= 0) {
        void *found = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (found != MAP_FAILED) state = found;
        close(fd);
    }
    errno = saved;
}

__attribute__((constructor)) static void begin(void) { crashes_begin(); }

/* Writes the path of a name, relative to an open folder, or of a descriptor if there is no name;
   tells whether it is the root or below it. */
static int locate(int fd, const char *name, char *path) {
    size_t root = state ? strlen(state->root) : 0;
    int saved = errno;
    if (!root) return 0;
    if (name && name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
    } else {
        char link[64];
        snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, path, PATH_MAX - 1);
        errno = saved;
        if (size < 0) return 0;
        path[size] = 0;
        if (name) {
            strncat(path, "/", PATH_MAX - 1 - strlen(path));
            strncat(path, name, PATH_MAX - 1 - strlen(path));
        }
    }
    return !strncmp(path, state->root, root) && (path[root] == '/' || !path[root]) &&
           !strstr(path, " (deleted)");
}

static void end_all(void) {
    kill(-(pid_t)state->group, SIGKILL);
    for (;;) pause();
}

/* Counts a call; returns whether it is to fail. */
static int meet(const char *call, const char *path, int fd, const void *data, size_t size) {
    long number = atomic_fetch_add(&state->calls, 1) + 1;
    if (number != state->target) return 0;
    snprintf(state->what, PATH_MAX, "%s %s", call, path + strlen(state->root));
    atomic_store(&state->hit, number);
    switch (state->how) {
    case KILL_HALF_WAY:
        if (data && size > 1) (void)!real_write(fd, data, size / 2);
        /* fall through */
    case KILL_ALL:
        end_all();
        break;
    case KILL_SELF:
        kill(getpid(), SIGKILL);
        for (;;) pause();
    case FAIL: errno = (int)state->error; return 1;
    }
    return 0;
}

/* Writes down a call that succeeded, all of it at once: processes and threads share the log. */
static void note(const char *call, const char *path, const char *other, long at, const void *data,
                 size_t size) {
    int saved = errno;
    if (state->log[0]) {
        char *line = malloc(2 * PATH_MAX + 128 + size);
        int length = sprintf(line, "%s\t%s\t%s\t%ld\t%zu\n", call, path, other, at, size);
        if (size) memcpy(line + length, data, size);
        int fd = real_open(state->log, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
        (void)!real_write(fd, line, length + size);
        close(fd);
        free(line);
    }
    errno = saved;
}

static int changes(int flags) {
    return (flags & (O_CREAT | O_TRUNC)) && !(flags & __O_TMPFILE & ~O_DIRECTORY);
}

static int open_any(const char *call, int folder, const char *name, int flags, mode_t mode) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64");
    char path[PATH_MAX];
    int counts = changes(flags) && locate(folder, name, path);
    if (counts && meet(call, path, -1, NULL, 0)) return -1;
    int found = real(folder, name, flags, mode);
    if (counts && found >= 0) note(flags & O_TRUNC ? "truncate" : "create", path, "", 0, NULL, 0);
    return found;
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
    }

int open(const char *name, int flags, ...) {
    MODE_OF(flags) return open_any("open", AT_FDCWD, name, flags, mode);
}
int open64(const char *name, int flags, ...) {
    MODE_OF(flags) return open_any("open", AT_FDCWD, name, flags, mode);
}
int openat(int folder, const char *name, int flags, ...) {
    MODE_OF(flags) return open_any("open", folder, name, flags, mode);
}
int openat64(int folder, const char *name, int flags, ...) {
    MODE_OF(flags) return open_any("open", folder, name, flags, mode);
}

static long place_of(int fd) {
    int saved = errno;
    struct stat found;
    long at = fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &found) ? found.st_size
                                                                  : lseek(fd, 0, SEEK_CUR);
    errno = saved;
    return at;
}

ssize_t write(int fd, const void *data, size_t size) {
    char path[PATH_MAX];
    int counts = locate(fd, NULL, path);
    if (counts && meet("write", path, fd, data, size)) return -1;
    long at = counts ? place_of(fd) : 0;
    ssize_t done = real_write(fd, data, size);
    if (counts && done > 0) note("write", path, "", at, data, done);
    return done;
}

#define WRITES_AT(name, offset) \
    ssize_t name(int fd, const void *data, size_t size, offset at) { \
        REAL(name); \
        char path[PATH_MAX]; \
        int counts = locate(fd, NULL, path); \
        if (counts && meet(#name, path, -1, NULL, 0)) return -1; \
        ssize_t done = real(fd, data, size, at); \
        if (counts && done > 0) note("write", path, "", at, data, done); \
        return done; \
    }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

/* What the log has no line for is refused: whoever asks falls back on plain writes. */
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    (void)to, (void)from, (void)at, (void)size;
    errno = EINVAL;
    return -1;
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    (void)from, (void)a, (void)to, (void)b, (void)size, (void)flags;
    errno = EXDEV;
    return -1;
}

#define OF_DESCRIPTOR(name) \
    int name(int fd) { \
        REAL(name); \
        char path[PATH_MAX]; \
        int counts = locate(fd, NULL, path); \
        if (counts && meet(#name, path, -1, NULL, 0)) return -1; \
        int done = real(fd); \
        if (counts && !done) note("fsync", path, "", 0, NULL, 0); \
        return done; \
    }
OF_DESCRIPTOR(fsync)
OF_DESCRIPTOR(fdatasync)

#define CUTS(name, offset) \
    int name(int fd, offset size) { \
        REAL(name); \
        char path[PATH_MAX]; \
        int counts = locate(fd, NULL, path); \
        if (counts && meet("ftruncate", path, -1, NULL, 0)) return -1; \
        int done = real(fd, size); \
        if (counts && !done) note("cut", path, "", size, NULL, 0); \
        return done; \
    }
CUTS(ftruncate, off_t)
CUTS(ftruncate64, off64_t)

static int rename_any(int from, const char *old, int to, const char *new) {
    static int (*real)(int, const char *, int, const char *);
    if (!real) real = (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
    char source[PATH_MAX], target[PATH_MAX];
    int counts = locate(to, new, target);
    if (counts && meet("rename", target, -1, NULL, 0)) return -1;
    int done = real(from, old, to, new);
    if (counts && !done && locate(from, old, source)) note("rename", source, target, 0, NULL, 0);
    return done;
}
int rename(const char *old, const char *new) { return rename_any(AT_FDCWD, old, AT_FDCWD, new); }
int renameat(int from, const char *old, int to, const char *new) {
    return rename_any(from, old, to, new);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    REAL(renameat2);
    char source[PATH_MAX], target[PATH_MAX];
    int counts = locate(to, new, target);
    if (counts && meet("rename", target, -1, NULL, 0)) return -1;
    int done = real(from, old, to, new, flags);
    if (counts && !done && locate(from, old, source))
        note(flags & RENAME_EXCHANGE ? "exchange" : "rename", source, target, 0, NULL, 0);
    return done;
}

#define OF_NAME(name, call, line) \
    int name(const char *place) { \
        REAL(name); \
        char path[PATH_MAX]; \
        int counts = locate(AT_FDCWD, place, path); \
        if (counts && meet(call, path, -1, NULL, 0)) return -1; \
        int done = real(place); \
        if (counts && !done) note(line, path, "", 0, NULL, 0); \
        return done; \
    }
OF_NAME(unlink, "unlink", "remove")
OF_NAME(rmdir, "rmdir", "remove")

int unlinkat(int folder, const char *place, int flags) {
    REAL(unlinkat);
    char path[PATH_MAX];
    int counts = locate(folder, place, path);
    if (counts && meet(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path, -1, NULL, 0)) return -1;
    int done = real(folder, place, flags);
    if (counts && !done) note("remove", path, "", 0, NULL, 0);
    return done;
}

static int mkdir_any(int folder, const char *place, mode_t mode) {
    static int (*real)(int, const char *, mode_t);
    if (!real) real = (int (*)(int, const char *, mode_t))dlsym(RTLD_NEXT, "mkdirat");
    char path[PATH_MAX];
    int counts = locate(folder, place, path);
    if (counts && meet("mkdir", path, -1, NULL, 0)) return -1;
    int done = real(folder, place, mode);
    if (counts && !done) note("mkdir", path, "", 0, NULL, 0);
    return done;
}
int mkdir(const char *place, mode_t mode) { return mkdir_any(AT_FDCWD, place, mode); }
int mkdirat(int folder, const char *place, mode_t mode) { return mkdir_any(folder, place, mode); }

int link(const char *old, const char *new) {
    REAL(link);
    char source[PATH_MAX], target[PATH_MAX];
    int counts = locate(AT_FDCWD, new, target);
    if (counts && meet("link", target, -1, NULL, 0)) return -1;
    int done = real(old, new);
    if (counts && !done && locate(AT_FDCWD, old, source)) note("link", source, target, 0, NULL, 0);
    return done;
}
