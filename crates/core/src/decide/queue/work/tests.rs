use super::{
    super::{limiter::ItemExponential, policy::requeue},
    *,
};
use crate::error::{Category, Error};

type Queue = WorkQueue<&'static str>;

const T0: Tick = Tick::from_secs(100);

fn at(secs: u64) -> Tick {
    T0 + secs_of(secs)
}

const fn secs_of(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn queue() -> Queue {
    WorkQueue::new(4, ItemExponential::new(secs_of(5), secs_of(300)))
}

fn work(key: &'static str, waited: u64) -> Taken<&'static str> {
    Taken::Work { key, task: None, waited: secs_of(waited) }
}

#[test]
fn keys_come_in_the_order_of_their_first_addition() {
    let mut q = queue();
    assert_eq!(q.add("b", at(0)), Added::Accepted);
    assert_eq!(q.add("a", at(1)), Added::Accepted);
    assert_eq!(q.add("b", at(2)), Added::Already);
    assert_eq!((q.depth(), q.known(), q.counters().adds), (2, 2, 2));
    assert_eq!(q.get(at(3)), work("b", 3));
    assert_eq!(q.get(at(3)), work("a", 2));
    assert_eq!(q.get(at(3)), Taken::Idle(None));
    assert_eq!((q.depth(), q.known()), (0, 2));
    assert_eq!(q.done(&"b", at(4)), secs_of(1));
    assert_eq!(q.done(&"a", at(9)), secs_of(6));
    assert_eq!(q.known(), 0);
}

#[test]
fn additions_during_a_run_make_one_further_run() {
    let mut q = queue();
    q.add("a", at(0));
    assert_eq!(q.get(at(0)), work("a", 0));
    assert_eq!(q.add("a", at(1)), Added::Accepted);
    assert_eq!(q.add("a", at(2)), Added::Already);
    assert_eq!(q.get(at(3)), Taken::Idle(None), "never with two workers");
    assert_eq!((q.depth(), q.counters().adds), (1, 2));
    q.done(&"a", at(4));
    assert_eq!(q.get(at(5)), work("a", 4));
    q.done(&"a", at(6));
    assert_eq!((q.get(at(6)), q.known()), (Taken::Idle(None), 0));
}

#[test]
fn what_was_not_taken_cannot_be_given_back() {
    let mut q = queue();
    assert_eq!(q.done(&"a", at(5)), Duration::ZERO);
    q.add("a", at(0));
    assert_eq!(q.done(&"a", at(5)), Duration::ZERO);
    assert_eq!(q.get(at(5)), work("a", 5));
    assert_eq!(q.get(at(5)), Taken::Idle(None), "it stood in line once only");
}

#[test]
fn a_delayed_key_comes_due_and_only_an_earlier_time_replaces_it() {
    let mut q = queue();
    assert_eq!(q.add_after("a", secs_of(10), at(0)), Added::Accepted);
    assert_eq!(q.add_after("a", secs_of(20), at(0)), Added::Already, "later");
    assert_eq!(q.add_after("a", secs_of(10), at(0)), Added::Already, "the same");
    assert_eq!(q.add_after("a", secs_of(7), at(1)), Added::Accepted, "earlier");
    assert_eq!((q.next_wakeup(), q.depth(), q.known()), (Some(at(8)), 0, 1));
    assert_eq!(q.get(at(7)), Taken::Idle(Some(at(8))));
    assert_eq!(q.get(at(9)), work("a", 1), "it has waited for a worker since it came due");
    q.done(&"a", at(9));
    assert_eq!((q.get(at(30)), q.next_wakeup()), (Taken::Idle(None), None), "once, not twice");
    assert_eq!(q.counters(), Counters { adds: 1, retries: 4, refused: 0 });
}

#[test]
fn no_delay_means_now_and_a_plain_addition_cancels_nothing() {
    let mut q = queue();
    assert_eq!(q.add_after("a", Duration::ZERO, at(0)), Added::Accepted);
    assert_eq!(q.counters(), Counters { adds: 1, retries: 1, refused: 0 });
    q.add_after("a", secs_of(10), at(0));
    assert_eq!(q.get(at(0)), work("a", 0));
    q.done(&"a", at(1));
    assert_eq!(q.known(), 1, "still delayed");
    assert_eq!(q.get(at(10)), work("a", 0), "the delayed one comes all the same");
}

#[test]
fn keys_that_come_due_together_keep_their_order() {
    let mut q = queue();
    q.add_after("b", secs_of(2), at(0));
    q.add_after("c", secs_of(1), at(0));
    q.add_after("a", secs_of(1), at(1));
    let order: Vec<_> = (0..3).map(|_| q.get(at(2))).collect();
    assert_eq!(order, [work("c", 1), work("b", 0), work("a", 0)]);
}

#[test]
fn a_delayed_key_that_comes_due_during_a_run_waits_for_its_end() {
    let mut q = queue();
    q.add("a", at(0));
    q.get(at(0));
    q.add_after("a", secs_of(1), at(0));
    assert_eq!(q.get(at(2)), Taken::Idle(None));
    assert_eq!(q.depth(), 1);
    q.done(&"a", at(3));
    assert_eq!(q.get(at(3)), work("a", 2));
}

#[test]
fn shutting_down_hands_out_what_is_ready_and_drops_what_is_delayed() {
    let mut q = queue();
    q.add("a", at(0));
    q.add("b", at(0));
    q.get(at(0));
    q.add("a", at(0));
    q.add_after("c", secs_of(1), at(0));
    q.shutdown();
    let before = q.counters();
    assert_eq!(q.add("d", at(1)), Added::Closed);
    assert_eq!(q.add_after("d", secs_of(1), at(1)), Added::Closed);
    assert_eq!(q.add_rate_limited("d", at(1)), Added::Closed);
    assert_eq!((q.counters(), q.failures(&"d")), (before, 0));
    assert_eq!((q.next_wakeup(), q.known()), (None, 2));
    assert_eq!(q.get(at(5)), work("b", 5));
    assert_eq!(q.get(at(5)), Taken::Closed);
    q.done(&"a", at(5));
    assert_eq!(q.get(at(5)), work("a", 5), "what was added during the run before the end");
    q.done(&"a", at(6));
    assert_eq!((q.get(at(6)), q.known()), (Taken::Closed, 1));
}

#[test]
fn a_full_queue_refuses_new_keys_counts_them_and_asks_for_another_look() {
    let mut q = queue();
    for key in ["a", "b", "c"] {
        q.add(key, at(0));
    }
    q.add_after("d", secs_of(10), at(0));
    assert!(!q.take_overflow());
    assert_eq!(q.add("e", at(0)), Added::Full, "L12-103");
    assert_eq!(q.add_after("e", secs_of(1), at(0)), Added::Full, "L12-103");
    assert_eq!(q.add_after("e", Duration::ZERO, at(0)), Added::Full, "L12-103");
    assert_eq!((q.known(), q.counters().refused), (4, 3));
    assert_eq!(q.add("d", at(0)), Added::Accepted, "a known key always finds room");
    assert_eq!(q.add_after("a", secs_of(3), at(0)), Added::Accepted, "a known key always finds room");
    assert!(!q.take_overflow(), "not while there is no room");
    q.get(at(0));
    q.get(at(0));
    q.done(&"b", at(1));
    assert!(q.take_overflow(), "now there is");
    assert!(!q.take_overflow(), "said once");
}

#[test]
fn the_memory_of_failures_is_bounded_too() {
    let mut q = WorkQueue::new(2, ItemExponential::new(secs_of(5), secs_of(300)));
    for (turn, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let now = at(1_000 * turn as u64);
        assert_eq!(q.add_rate_limited(key, now), Added::Accepted);
        assert_eq!(q.get(now + secs_of(5)), work(key, 0));
        q.done(&key, now + secs_of(5));
    }
    let remembered = ["a", "b", "c", "d", "e"].map(|key| q.failures(&key));
    assert_eq!(remembered, [0, 0, 0, 0, 1], "L12-104 keys that the queue does not know are forgotten first");
}

#[test]
fn the_outcome_of_the_work_brings_the_key_back() {
    let mut q = queue();
    let mut now = at(0);
    let mut fail = |q: &mut Queue, category| {
        q.add("a", now);
        assert!(matches!(q.get(now), Taken::Work { .. }));
        let took = q.finish(&"a", requeue(Err(&Error::new(category, "x"))), now + secs_of(1));
        assert_eq!(took, secs_of(1));
        now = now + secs_of(1);
        let wait = q.next_wakeup().map(|due| due.since(now).as_secs());
        if let Some(due) = q.next_wakeup() {
            now = due;
        }
        (wait, q.failures(&"a"))
    };
    let throttled = Category::Throttled { retry_after: Some(secs_of(42)) };
    assert_eq!(fail(&mut q, throttled), (Some(42), 0), "FW-252");
    assert_eq!(fail(&mut q, Category::Temporary), (Some(5), 1), "FW-251");
    assert_eq!(fail(&mut q, Category::Temporary), (Some(10), 2), "FW-254");
    assert_eq!(fail(&mut q, throttled), (Some(42), 2), "FW-253");
    assert_eq!(fail(&mut q, Category::Permanent), (Some(60), 2));
    let further: Vec<_> = (0..6).map(|_| fail(&mut q, Category::Temporary).0.unwrap()).collect();
    assert_eq!(further, [20, 40, 80, 160, 300, 300], "FW-254");
    assert_eq!(fail(&mut q, Category::UserInput), (Some(1_800), 0), "the count is cleared");
    assert_eq!(fail(&mut q, Category::Temporary), (Some(5), 1));
    let end = q.next_wakeup().unwrap();
    assert!(matches!(q.get(end), Taken::Work { .. }));
    let retries = q.counters().retries;
    q.finish(&"a", requeue(Ok(())), end);
    assert_eq!((q.next_wakeup(), q.failures(&"a"), q.known()), (None, 0, 0), "FW-250");
    assert_eq!(q.counters().retries, retries, "FW-250");
}

#[test]
fn work_that_got_further_begins_its_back_off_anew() {
    let mut queue = queue();
    let mut waits = Vec::new();
    let mut now = Tick::from_secs(100);
    for after in [
        Requeue::RateLimited,
        Requeue::RateLimited,
        Requeue::RateLimited,
        Requeue::Anew,
        Requeue::RateLimited,
    ] {
        queue.add("a", now);
        assert!(matches!(queue.get(now), Taken::Work { .. }));
        queue.finish(&"a", after, now);
        let due = queue.next_wakeup().expect("it comes back");
        waits.push(due.since(now).as_secs());
        now = due;
        while let Taken::Work { key, .. } = queue.get(now) {
            queue.done(&key, now);
        }
    }
    assert_eq!(waits, [5, 10, 20, 5, 10], "L12-834");
}

#[test]
fn what_failed_is_revived_when_its_time_has_come() {
    let mut queue = queue();
    let now = Tick::from_secs(100);
    for key in ["a", "b", "c"] {
        queue.add(key, now);
        queue.get(now);
    }
    for _ in 0..5 {
        queue.finish(&"a", Requeue::RateLimited, now);
    }
    queue.finish(&"b", Requeue::Exactly(Duration::from_secs(60)), now);
    queue.finish(&"c", Requeue::RateLimited, now);
    let soon = Duration::from_millis(300);
    let revived = ["a", "b", "c", "d"].map(|key| queue.revive(&key, soon, now));
    assert_eq!(revived, [true, false, true, false], "L12-835 only what failed");
    assert_eq!(queue.next_wakeup(), Some(now + soon));
    assert_eq!((queue.failures(&"a"), queue.failures(&"c")), (0, 0), "L12-836 the next failure is the first");
    let ready = |queue: &mut WorkQueue<_>, now| {
        let mut keys = Vec::new();
        while let Taken::Work { key, .. } = queue.get(now) {
            queue.done(&key, now);
            keys.push(key);
        }
        keys
    };
    assert_eq!(ready(&mut queue, now + soon), ["a", "c"]);
    assert_eq!(ready(&mut queue, now + Duration::from_secs(60)), ["b"], "a wait that was asked for is kept");
}

#[test]
fn the_newest_task_wins_and_a_failed_one_is_handed_on() {
    let mut q: WorkQueue<&str, u8> = WorkQueue::new(4, ItemExponential::new(secs_of(5), secs_of(300)));
    let task = |taken| match taken {
        Taken::Work { task, .. } => task,
        other => panic!("{other:?}"),
    };
    assert_eq!(q.assign("a", 1, at(0)), Ok(None));
    assert_eq!(q.assign("a", 2, at(0)), Ok(Some(1)));
    assert_eq!(task(q.get(at(0))), Some(2), "one run, of the newest");
    assert_eq!(q.tasks(&"a").collect::<Vec<_>>(), [&2]);
    assert_eq!(q.assign("a", 3, at(1)), Ok(None));
    assert_eq!(q.get(at(1)), Taken::Idle(None), "never with two workers");
    q.finish(&"a", Requeue::RateLimited, at(2));
    assert_eq!(task(q.get(at(2))), Some(3), "a newer one is not replaced by one that failed");
    q.finish(&"a", Requeue::RateLimited, at(2));
    assert_eq!(task(q.get(at(100))), Some(3), "it is tried again");
    assert_eq!(q.withdraw(&"a"), None, "nothing waits");
    q.finish(&"a", Requeue::RateLimited, at(100));
    assert_eq!(task(q.get(at(500))), None, "what was withdrawn is not tried again");
    assert_eq!(q.assign("a", 4, at(500)), Ok(None));
    q.finish(&"a", Requeue::Forget, at(500));
    assert_eq!((q.withdraw(&"a"), task(q.get(at(500)))), (Some(4), None));
    q.finish(&"a", Requeue::Forget, at(501));
    assert_eq!((q.known(), q.tasks(&"a").count()), (0, 0));
    q.close();
    assert_eq!(q.assign("a", 5, at(502)), Err(5));
}
