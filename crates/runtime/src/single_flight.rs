//! One answer for everybody who asks the same question.
//!
//! Whoever asks gets the newest answer if it serves, or waits for the question that is under way. Only if neither
//! serves is it asked again, so the number of questions follows from time, never from the number of askers (law 7).

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use cloudberth_core::{Clock, time::Tick};
use futures_util::future::{BoxFuture, FutureExt, Shared};

use crate::lock;

/// An answer, and when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed<T> {
    /// The answer.
    pub answer: T,
    /// When the question was asked: nothing that happened later need show.
    pub begun: Tick,
    /// When the answer was there.
    pub ended: Tick,
    number: u64,
}

impl<T> AsRef<T> for Landed<T> {
    fn as_ref(&self) -> &T {
        &self.answer
    }
}

type Flight<T> = Shared<BoxFuture<'static, Arc<Landed<T>>>>;

struct State<T> {
    newest: Option<Arc<Landed<T>>>,
    flight: Option<Flight<T>>,
    begun: u64,
    /// Answers to questions up to this one are not kept.
    forgotten: u64,
}

/// A question that is never under way twice.
pub struct SingleFlight<T> {
    clock: Arc<dyn Clock>,
    state: Mutex<State<T>>,
}

impl<T: Send + Sync + 'static> SingleFlight<T> {
    /// A question that nobody has asked yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { newest: None, flight: None, begun: 0, forgotten: 0 };
        Self { clock, state: Mutex::new(state) }
    }

    /// An answer that `serves`, or else the answer to a question that was asked after this call.
    ///
    /// `ask` asks the question at the given time. It goes on while anybody waits for it, and must not panic. `landed` is
    /// called once for each answer that becomes the newest.
    pub async fn get<F: Future<Output = T> + Send + 'static>(
        &self,
        serves: impl Fn(&Landed<T>) -> bool,
        ask: impl Fn(Tick) -> F,
        landed: impl Fn(&Arc<Landed<T>>),
    ) -> Arc<Landed<T>> {
        loop {
            let (flight, is_own) = {
                let mut state = lock(&self.state);
                if let Some(newest) = state.newest.as_ref().filter(|newest| serves(newest)) {
                    return Arc::clone(newest);
                }
                let is_own = state.flight.is_none();
                state.begun += u64::from(is_own);
                let number = state.begun;
                let flight = state.flight.get_or_insert_with(|| {
                    let (begun, clock) = (self.clock.now(), Arc::clone(&self.clock));
                    let answer = ask(begun);
                    let flight = async move {
                        Arc::new(Landed { answer: answer.await, begun, ended: clock.now(), number })
                    };
                    flight.boxed().shared()
                });
                (flight.clone(), is_own)
            };
            let answer = self.land(flight.await, &landed);
            if is_own || serves(&answer) {
                return answer;
            }
        }
    }

    /// The newest answer, however old.
    pub fn newest(&self) -> Option<Arc<Landed<T>>> {
        lock(&self.state).newest.clone()
    }

    /// Forgets what is known and what is under way: only questions that are asked from now on count.
    pub fn forget(&self) {
        let mut state = lock(&self.state);
        (state.newest, state.flight, state.forgotten) = (None, None, state.begun);
    }

    /// How often the question was asked.
    pub fn begun(&self) -> u64 {
        lock(&self.state).begun
    }

    /// Of those who waited, the first keeps the answer for all.
    fn land(&self, answer: Arc<Landed<T>>, landed: impl Fn(&Arc<Landed<T>>)) -> Arc<Landed<T>> {
        let is_new = {
            let mut state = lock(&self.state);
            let newest = state.newest.as_ref().map_or(state.forgotten, |newest| newest.number);
            let is_new = answer.number > newest;
            if is_new {
                state.newest = Some(Arc::clone(&answer));
                state.flight = None;
            }
            is_new
        };
        if is_new {
            landed(&answer);
        }
        answer
    }
}

impl<T> fmt::Debug for SingleFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("begun", &lock(&self.state).begun).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use jiff::Timestamp;

    use super::*;

    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Tick {
            Tick(self.0.elapsed())
        }

        fn wall(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    fn flights() -> SingleFlight<Tick> {
        SingleFlight::new(Arc::new(Paused(tokio::time::Instant::now())))
    }

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Asks for an answer that was begun at `not_before` or later, with a question that takes two seconds.
    async fn ask(flights: &SingleFlight<Tick>, not_before: Tick, heard: &Mutex<Vec<Tick>>) -> Tick {
        let question = |now| async move {
            tokio::time::sleep(secs(2)).await;
            now
        };
        let landed = |answer: &Arc<Landed<Tick>>| lock(heard).push(answer.answer);
        flights.get(|answer| answer.begun >= not_before, question, landed).await.answer
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_who_asks_at_once_shares_one_question() {
        let (flights, heard) = (flights(), Mutex::default());
        let answers = join_all((0..100).map(|_| ask(&flights, Tick::ZERO, &heard))).await;
        assert_eq!((answers, flights.begun()), (vec![Tick::ZERO; 100], 1));
        ask(&flights, Tick::ZERO, &heard).await;
        assert_eq!((flights.begun(), lock(&heard).len()), (1, 1), "and it lands once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_was_asked_too_early_is_awaited_and_asked_again_once() {
        let (flights, heard) = (flights(), Mutex::default());
        let late = async |_: u8| {
            tokio::time::sleep(secs(1)).await;
            ask(&flights, Tick::from_secs(1), &heard).await
        };
        let (first, late) = tokio::join!(ask(&flights, Tick::ZERO, &heard), join_all([late(0), late(1)]));
        assert_eq!((first, late), (Tick::ZERO, vec![Tick::from_secs(2); 2]));
        assert_eq!(flights.begun(), 2);
        ask(&flights, Tick::from_secs(100), &heard).await;
        assert_eq!(flights.begun(), 3, "a question of now is as young as can be");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_goes_on_when_whoever_asked_first_stops_waiting() {
        let (flights, heard) = (flights(), Mutex::default());
        let gives_up = tokio::time::timeout(secs(1), ask(&flights, Tick::ZERO, &heard));
        let (gave_up, answer) = tokio::join!(gives_up, ask(&flights, Tick::ZERO, &heard));
        assert_eq!((gave_up.is_err(), answer, flights.begun()), (true, Tick::ZERO, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_forgotten_does_not_come_back_with_a_late_answer() {
        let (flights, heard) = (flights(), Mutex::default());
        let forget = async {
            tokio::time::sleep(secs(1)).await;
            flights.forget();
            ask(&flights, Tick::ZERO, &heard).await
        };
        let (_, after) = tokio::join!(ask(&flights, Tick::ZERO, &heard), forget);
        assert_eq!((after, flights.begun()), (Tick::from_secs(1), 2));
        assert_eq!(*lock(&heard), [Tick::from_secs(1)]);
    }
}
