use super::*;

const TIMEOUT: Nanos = Nanos::from_millis(1_000);

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A pool of this number of connections, after operations that took these times.
fn pool(connections: u64, took_ms: impl IntoIterator<Item = u64>) -> ConnectionQueue<u64> {
    let mut pool = ConnectionQueue::new(connections);
    took_ms.into_iter().for_each(|t| pool.note(ms(t), true));
    pool
}

fn fill(pool: &mut ConnectionQueue<u64>, intended_ms: impl IntoIterator<Item = u64>) {
    let intended = intended_ms.into_iter();
    intended.for_each(|t| pool.push(ms(t) + TIMEOUT, t));
}

#[test]
fn first_come_first_served_while_all_can_be() {
    let mut pool = pool(4, [300; 20]);
    fill(&mut pool, [0, 10, 20]);
    let order: Vec<_> = std::iter::from_fn(|| pool.take(ms(600))).collect();
    assert_eq!(order, [0, 10, 20]);
}

#[test]
fn hopeless_operation_is_skipped_until_its_timeout() {
    let mut pool = pool(4, [300; 20]);
    fill(&mut pool, 0..1_000);
    // At 1 s the first has nothing left, the one of 300 ms has just what it needs.
    let first = pool.take(ms(1_000)).expect("one has a chance");
    assert!((300..320).contains(&first), "{first}");
    assert_eq!(pool.next_deadline(), ms(1_000));
    let over: Vec<_> = std::iter::from_fn(|| pool.expire(ms(1_010))).collect();
    assert_eq!(over, (0..=10).collect::<Vec<_>>());
    assert_eq!(pool.next_deadline(), ms(1_011));
    let left: Vec<_> = std::iter::from_fn(|| pool.abandon()).collect();
    assert_eq!(left.len(), 1_000 - 1 - 11, "none is lost");
}

#[test]
fn rare_slow_requests_do_not_drop_waiting_operations() {
    let times = |n: u64| (0..n).map(|k| if k % 10 == 0 { 900 } else { 1 });
    let mut short = pool(4, times(100));
    fill(&mut short, [0, 1]);
    assert_eq!(short.take(ms(500)), Some(0), "nine of ten take 1 ms");
    let mut long = pool(4, times(100));
    fill(&mut long, 0..500);
    let first = long.take(ms(500)).expect("one has a chance");
    assert!(first >= 400, "{first}: the line is too long for all of them");
}

#[test]
fn before_anything_is_known_all_that_has_time_left_may_go() {
    let mut pool = pool(1, []);
    fill(&mut pool, 0..10);
    assert_eq!(pool.take(ms(1_004)), Some(5));
}

#[test]
fn a_repeated_operation_goes_first() {
    let mut pool = pool(1, []);
    fill(&mut pool, [5, 6, 1]);
    assert_eq!(pool.take(ms(10)), Some(1));
}

#[test]
fn each_operation_ends_at_its_own_deadline() {
    let mut pool = pool(1, []);
    pool.push(ms(5_000), 1);
    pool.push(ms(100), 2);
    pool.push(ms(100), 3);
    assert_eq!(pool.first(), Some(&2));
    assert_eq!(pool.next_deadline(), ms(100));
    let over: Vec<_> = std::iter::from_fn(|| pool.expire(ms(100))).collect();
    assert_eq!(over, [2, 3]);
    assert_eq!(pool.next_deadline(), ms(5_000));
}
