//! States from Vagrant, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::Clock;
use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::{
    control::{Control, Parts},
    events::EventLog,
    inventory::{self, Demo, MachineState, VagrantSettings},
    plane::Answer,
    state::Balancers,
    store::NoStore,
    testing::MemoryPlane,
    vagrant::Vagrant,
};
use tokio::time::{Instant, sleep};

/// A Vagrant that answers what it is told to, after a while.
#[derive(Clone, Debug, Default)]
struct TestVagrant(Arc<Mutex<Script>>);

#[derive(Debug)]
struct Script {
    output: Result<String, String>,
    takes: Duration,
    begun: usize,
    at_once: usize,
    most_at_once: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self { output: Err(String::new()), takes: Duration::ZERO, begun: 0, at_once: 0, most_at_once: 0 }
    }
}

/// One question; it ends with its answer or when it is given up.
struct Question(TestVagrant);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().at_once -= 1;
    }
}

impl Vagrant for TestVagrant {
    fn status(&self, _: &VagrantSettings) -> Answer<Result<String, String>> {
        let (output, takes) = {
            let mut script = self.0.lock().unwrap();
            script.begun += 1;
            script.at_once += 1;
            script.most_at_once = script.most_at_once.max(script.at_once);
            (script.output.clone(), script.takes)
        };
        let question = Question(self.clone());
        Box::pin(async move {
            sleep(takes).await;
            drop(question);
            output
        })
    }
}

impl TestVagrant {
    fn set(&self, output: Result<&str, &str>, takes: u64) {
        let mut script = self.0.lock().unwrap();
        script.output = output.map(str::to_owned).map_err(str::to_owned);
        script.takes = Duration::from_secs(takes);
    }
}

const RUNS: &str = "1,node-c2-1,state,running\n";
const STOPPED: &str = "1,node-c2-1,state,poweroff\n";

fn service(vagrant: &TestVagrant) -> Control {
    let text = Demo { clusters: 2, workers: 1, loopback: true }.inventory().unwrap();
    let text = format!("{text}vagrant: {{ directory: x, refresh: 15s }}\n");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let events = EventLog::new(Arc::clone(&clock));
    let plane = MemoryPlane::new(Arc::new(events.clone()), Arc::clone(&clock));
    let parts = Parts {
        inventory: inventory::read(&text, Path::new("inv.yaml")).unwrap(),
        file: "inv.yaml".into(),
        balancers: Balancers::default(),
        plane: Arc::new(plane),
        store: Arc::new(NoStore),
        events,
    };
    let control = Control::new(parts, clock);
    let (following, vagrant) = (control.clone(), vagrant.clone());
    tokio::spawn(async move { following.follow_vagrant(&vagrant).await });
    control
}

fn state(control: &Control, id: &str) -> MachineState {
    control.machine(id).unwrap().state
}

#[tokio::test(start_paused = true)]
async fn a_slow_vagrant_keeps_nobody_waiting() {
    let vagrant = TestVagrant::default();
    vagrant.set(Ok(RUNS), 0);
    let control = service(&vagrant);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(state(&control, "n-c2-1"), MachineState::Running, "CL-26");
    assert_eq!(state(&control, "n-c1-1"), MachineState::Running, "CL-29 only in the file");
    vagrant.set(Ok(STOPPED), 20);
    sleep(Duration::from_secs(30)).await;
    let begun = Instant::now();
    assert_eq!(state(&control, "n-c2-1"), MachineState::Running, "CL-27 the previous state is served");
    assert_eq!(begun.elapsed(), Duration::ZERO, "CL-27 at once");
    sleep(Duration::from_secs(6)).await;
    assert_eq!(state(&control, "n-c2-1"), MachineState::Stopped, "CL-27");
    sleep(Duration::from_secs(300)).await;
    let script = vagrant.0.lock().unwrap();
    assert_eq!(script.most_at_once, 1, "CL-27 one question at a time");
    assert!(script.begun >= 9, "CL-27 {script:?}");
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_nothing_is_known() {
    let vagrant = TestVagrant::default();
    vagrant.set(Err("no such command"), 0);
    let control = service(&vagrant);
    for _ in 0..3 {
        for id in ["m-c1-1", "n-c1-1", "m-c2-1", "n-c2-1"] {
            assert_eq!(state(&control, id), MachineState::Unknown, "CL-99");
        }
        sleep(Duration::from_secs(100)).await;
    }
    vagrant.set(Ok(RUNS), 0);
    sleep(Duration::from_secs(16)).await;
    assert_eq!(state(&control, "n-c2-1"), MachineState::Running, "CL-99");
    vagrant.set(Err("broken"), 0);
    sleep(Duration::from_secs(50)).await;
    assert_eq!(state(&control, "n-c2-1"), MachineState::Running, "CL-12 the last answer counts for a while");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(state(&control, "n-c2-1"), MachineState::Unknown, "CL-28");
    // It is told when Vagrant is asked the next time.
    sleep(Duration::from_secs(15)).await;
    let events = control.events().after(0).0;
    assert!(
        events.iter().any(|event| event.message == "machine n-c2-1 is unknown, was running"),
        "CL-28 {events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_hangs_is_given_up() {
    let vagrant = TestVagrant::default();
    vagrant.set(Ok(RUNS), 1_000_000);
    let control = service(&vagrant);
    sleep(Duration::from_secs(59)).await;
    assert_eq!(vagrant.0.lock().unwrap().at_once, 1);
    vagrant.set(Ok(RUNS), 0);
    sleep(Duration::from_secs(20)).await;
    let script = vagrant.0.lock().unwrap();
    assert_eq!((script.at_once, script.most_at_once), (0, 1), "CL-28 it was ended after four refreshes");
    assert_eq!(state(&control, "n-c2-1"), MachineState::Running);
}
