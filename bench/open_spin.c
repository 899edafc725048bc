// Open loop that never sleeps.
#define SPIN_NS INT64_C(1000000000000)
#include "open_loop.h"
