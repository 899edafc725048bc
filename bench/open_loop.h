// The floor of an open loop: intended times on an absolute schedule, the oldest arrival first, spin
// for the last SPIN_NS before each. Response times count from the intended time.
#include "bare.h"
#include <math.h>

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static double us_at(const int64_t *sorted, long n, double q) {
  return n ? sorted[(long)(q * (n - 1))] / 1e3 : 0;
}

// Uniform in (0, 1], splitmix64.
static double uniform(uint64_t *s) {
  uint64_t z = (*s += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((z ^ (z >> 31)) >> 11) * 0x1p-53 + 0x1p-53;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: %s PORT CONNECTIONS RATE SECONDS [poisson [SEED]]\n", argv[0]);
    return 2;
  }
  static char b[65536];
  int port = atoi(argv[1]), conns = atoi(argv[2]), ep = epoll_create1(0), idle_n = 0;
  double rate = atof(argv[3]), length_s = atof(argv[4]);
  int poisson = argc > 5 && !strcmp(argv[5], "poisson");
  uint64_t seed = argc > 6 ? strtoull(argv[6], NULL, 10) : 1;
  long room = (long)(rate * length_s * 1.5) + 1000, all = 0, sent = 0, done = 0;
  int64_t *due = calloc(room, 8), *late = calloc(room, 8), *took = calloc(room, 8);
  long *op = calloc(conns, sizeof *op);
  ssize_t want = response_len(port), *got = calloc(conns, sizeof *got);
  int *fd = calloc(conns, sizeof *fd), *idle = calloc(conns, sizeof *idle);
  struct epoll_event e[256];
  for (int i = 0; i < conns; i++) {
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
    fd[idle[idle_n++] = i] = dial(port);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &in);
  }
  for (double t = 0; all < room; all++) {
    t = poisson ? t - log(uniform(&seed)) / rate : all / rate;
    if (t >= length_s) break;
    due[all] = (int64_t)(t * 1e9);
    late[all] = took[all] = 1;
  }
  prctl(PR_SET_TIMERSLACK, 1UL);
  int64_t start = now_ns() + 1000000, last = start + (int64_t)((length_s + 1) * 1e9), now;
  for (long i = 0; i < all; i++) due[i] += start;
  while (done < all && (now = now_ns()) < last) {
    while (sent < all && idle_n && due[sent] <= now) {
      int i = idle[--idle_n];
      op[i] = sent;
      if (write(fd[i], REQUEST, REQUEST_LEN) != REQUEST_LEN) die("write");
      late[sent] = now - due[sent];
      sent++;
      now = now_ns();
    }
    int64_t wait = (sent == all || !idle_n ? 100000000 : due[sent] - now) - SPIN_NS;
    if (wait < 0) wait = 0;
    struct timespec t = {wait / 1000000000, wait % 1000000000};
    int ready = epoll_pwait2(ep, e, 256, &t, NULL);
    if (ready > 0) now = now_ns();
    for (int k = 0; k < ready; k++) {
      int i = e[k].data.u32;
      ssize_t r = read(fd[i], b, sizeof b);
      if (r <= 0) die("read");
      if ((got[i] += r) < want) continue;
      got[i] = 0;
      took[done++] = now - due[op[i]];
      idle[idle_n++] = i;
    }
  }
  double span = sent > 1 ? (due[sent - 1] + late[sent - 1] - due[0] - late[0]) / 1e9 : 0;
  print_common(done, (now_ns() - start) / 1e9);
  qsort(late, sent, 8, by_value);
  qsort(took, done, 8, by_value);
  printf(",\"asked\":%ld,\"rate_per_s\":%.3f,\"deviation_p50_us\":%.3f,\"deviation_p99_us\":%.3f,"
         "\"response_p50_us\":%.3f,\"response_p90_us\":%.3f,\"response_p99_us\":%.3f}\n",
         all, span > 0 ? (sent - 1) / span : 0, us_at(late, sent, .5), us_at(late, sent, .99),
         us_at(took, done, .5), us_at(took, done, .9), us_at(took, done, .99));
}
