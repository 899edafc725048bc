// The floor of a closed loop over io_uring: one send and one receive per request, submitted
// together with the wait for completions. `multishot` keeps one receive armed per connection
// instead, with a ring of provided buffers.
//   closed_uring PORT CONNECTIONS SECONDS [multishot]
#include "bare.h"
#include <liburing.h>

enum { BUFFERS = 256, BUFFER = 4096, SENT = 1u << 31 };
static struct io_uring ring;
static char (*buffers)[BUFFER];
static int multishot;

static struct io_uring_sqe *sqe(void) {
  struct io_uring_sqe *s = io_uring_get_sqe(&ring);
  if (!s) {
    io_uring_submit(&ring);
    s = io_uring_get_sqe(&ring);
  }
  return s;
}

static void arm_receive(int i) {
  struct io_uring_sqe *s = sqe();
  if (multishot) {
    io_uring_prep_recv_multishot(s, i, NULL, 0, 0);
    s->flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
  } else {
    io_uring_prep_recv(s, i, buffers[i], BUFFER, 0);
    s->flags = IOSQE_FIXED_FILE;
  }
  s->user_data = i;
}

static void send_request(int i) {
  struct io_uring_sqe *s = sqe();
  io_uring_prep_send(s, i, REQUEST, REQUEST_LEN, 0);
  s->flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
  s->user_data = SENT;
}

static struct io_uring_buf_ring *provide_buffers(void) {
  struct io_uring_buf_ring *r;
  if (posix_memalign((void **)&r, 4096, BUFFERS * sizeof(struct io_uring_buf))) die("memory");
  struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)r, .ring_entries = BUFFERS, .bgid = 0};
  if (io_uring_register_buf_ring(&ring, &reg, 0)) die("buffer ring");
  io_uring_buf_ring_init(r);
  for (int i = 0; i < BUFFERS; i++)
    io_uring_buf_ring_add(r, buffers[i], BUFFER, i, io_uring_buf_ring_mask(BUFFERS), i);
  io_uring_buf_ring_advance(r, BUFFERS);
  return r;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: closed_uring PORT CONNECTIONS SECONDS [multishot]\n");
    return 2;
  }
  int port = atoi(argv[1]), n = atoi(argv[2]);
  multishot = argc > 4 && !strcmp(argv[4], "multishot");
  ssize_t want = response_len(port), *got = calloc(n, sizeof *got);
  int *fd = calloc(n, sizeof *fd);
  long requests = 0;
  buffers = calloc(n > BUFFERS ? n : BUFFERS, BUFFER);
  struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                       IORING_SETUP_CQSIZE, .cq_entries = 4 * n + 8192};
  if ((errno = -io_uring_queue_init_params(1024, &ring, &p))) die("io_uring_setup");
  for (int i = 0; i < n; i++) fd[i] = dial(port);
  if (io_uring_register_files(&ring, fd, n)) die("register files");
  struct io_uring_buf_ring *pool = multishot ? provide_buffers() : NULL;
  int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9), now;
  for (int i = 0; i < n; i++) {
    send_request(i);
    arm_receive(i);
  }
  while ((now = now_ns()) < end) {
    io_uring_submit_and_wait(&ring, 1);
    struct io_uring_cqe *c;
    unsigned head, seen = 0, returned = 0;
    io_uring_for_each_cqe(&ring, head, c) {
      seen++;
      if (c->user_data == SENT) { errno = -c->res; die("send"); }
      int i = c->user_data;
      if (c->flags & IORING_CQE_F_BUFFER) {
        int id = c->flags >> IORING_CQE_BUFFER_SHIFT;
        int mask = io_uring_buf_ring_mask(BUFFERS);
        io_uring_buf_ring_add(pool, buffers[id], BUFFER, id, mask, returned++);
      }
      if (c->res <= 0 && c->res != -ENOBUFS) { errno = -c->res; die("receive"); }
      if (c->res > 0 && (got[i] += c->res) >= want) {
        got[i] = 0;
        requests++;
        send_request(i);
      }
      if (!multishot || !(c->flags & IORING_CQE_F_MORE)) arm_receive(i);
    }
    if (returned) io_uring_buf_ring_advance(pool, returned);
    io_uring_cq_advance(&ring, seen);
  }
  print_common(requests, (now - start) / 1e9);
  printf("}\n");
}
