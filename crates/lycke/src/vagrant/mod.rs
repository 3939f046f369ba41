//! Live states of machines from Vagrant.
//!
//! Asking takes seconds, so it is done in the background, one question at a time. What is older than four refreshes says
//! nothing any more: the states are unknown then, and nothing is concluded from them.

mod command;

use std::{collections::BTreeMap, fmt, time::Duration};

use cloudberth_core::Tick;
pub use command::VagrantCommand;

use crate::{
    inventory::{MachineState, VagrantSettings},
    plane::Answer,
};

/// So many refreshes make an answer too old, and a question too long.
const PATIENCE: u32 = 4;

/// Asks Vagrant for the states of its machines.
pub trait Vagrant: fmt::Debug + Send + Sync {
    /// What `vagrant status --machine-readable` prints, or why it did not. A question that is dropped is ended.
    fn status(&self, settings: &VagrantSettings) -> Answer<Result<String, String>>;
}

/// How long a question may take.
pub(crate) fn time_limit(settings: &VagrantSettings) -> Duration {
    settings.refresh.saturating_mul(PATIENCE)
}

/// The states in an answer, by the names of machines. An answer without any is no answer.
pub(crate) fn read_answer(output: &str) -> Result<BTreeMap<String, MachineState>, String> {
    let states: BTreeMap<_, _> = output.lines().filter_map(read_line).collect();
    if states.is_empty() { Err("its output names no machine with a state".to_owned()) } else { Ok(states) }
}

/// A line is time, machine, kind and data, with commas between.
fn read_line(line: &str) -> Option<(String, MachineState)> {
    let mut parts = line.trim_end().split(',');
    let (_, name, kind, data) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if kind != "state" || name.is_empty() {
        return None;
    }
    let state = match data {
        "running" => MachineState::Running,
        "poweroff" | "aborted" => MachineState::Stopped,
        "saved" | "paused" => MachineState::Suspended,
        "not_created" => MachineState::Gone,
        _ => MachineState::Unknown,
    };
    Some((name.to_owned(), state))
}

/// The latest answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VagrantStates(Option<(Tick, BTreeMap<String, MachineState>)>);

impl VagrantStates {
    pub(crate) fn answered(&mut self, now: Tick, states: BTreeMap<String, MachineState>) {
        self.0 = Some((now, states));
    }

    /// How old the answer is; none if there never was one.
    pub(crate) fn age(&self, now: Tick) -> Option<Duration> {
        self.0.as_ref().map(|(at, _)| now.since(*at))
    }

    /// The state of a machine whose state in the file is `of_file`.
    pub(crate) fn state(
        &self,
        settings: &VagrantSettings,
        name: &str,
        of_file: MachineState,
        now: Tick,
    ) -> MachineState {
        match &self.0 {
            Some((at, states)) if now.since(*at) <= time_limit(settings) => {
                states.get(name).copied().unwrap_or(of_file)
            }
            _ => MachineState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
1700000000,node-c2-1,metadata,provider,virtualbox
1700000000,node-c2-1,state,running
1700000000,node-c2-1,state-human-short,running
1700000000,a,state,poweroff
1700000000,b,state,saved\r
1700000000,c,state,aborted
1700000000,d,state,not_created
1700000000,e,state,paused
1700000000,f,state,gurumeditation
1700000000,,ui,info,Current machine states:
nonsense
";

    #[test]
    fn states_are_read_from_the_lines_that_have_them() {
        use MachineState::{Gone, Running, Stopped, Suspended, Unknown};
        let states = read_answer(OUTPUT).unwrap();
        let want = [
            ("a", Stopped),
            ("b", Suspended),
            ("c", Stopped),
            ("d", Gone),
            ("e", Suspended),
            ("f", Unknown),
            ("node-c2-1", Running),
        ];
        assert_eq!(states, want.map(|(name, state)| (name.to_owned(), state)).into(), "CL-26");
        assert!(read_answer("").is_err() && read_answer("1,x,metadata,y\n").is_err(), "CL-12");
    }

    #[test]
    fn an_answer_counts_until_it_is_too_old() {
        let settings = VagrantSettings { directory: "x".into(), refresh: Duration::from_secs(15) };
        let mut states = VagrantStates::default();
        let state = |states: &VagrantStates, name, now| {
            states.state(&settings, name, MachineState::Stopped, Tick::from_secs(now))
        };
        assert_eq!(state(&states, "node-c2-1", 1_000), MachineState::Unknown, "CL-99 it never answered");
        assert_eq!(states.age(Tick::from_secs(1_000)), None);
        states.answered(Tick::from_secs(1_000), read_answer(OUTPUT).unwrap());
        let table = [
            ("CL-27 the last answer", "node-c2-1", 1_059, MachineState::Running),
            ("CL-28 just not too old", "node-c2-1", 1_060, MachineState::Running),
            ("CL-28 too old", "node-c2-1", 1_061, MachineState::Unknown),
            ("CL-29 only in the file", "elsewhere", 1_000, MachineState::Stopped),
        ];
        for (case, name, now, want) in table {
            assert_eq!(state(&states, name, now), want, "{case}");
        }
    }
}
