//! The figures, as a table for people and for the reference page.

use std::fmt;
use std::time::Duration;

use super::Setting;

/// Some Services, all created at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) services: usize,
    /// From the first request for a Service until the last has its address.
    pub(crate) took: Duration,
    /// Calls to the cloud, until all was at rest.
    pub(crate) calls: usize,
    pub(crate) mutations: usize,
}

/// What came out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) setting: Setting,
    pub(crate) first: Round,
    pub(crate) many: Round,
}

impl Setting {
    /// What nobody can go below: the load balancer is built, and its parts are made one after another, because the cloud
    /// takes one change of a load balancer at a time. One more each for itself, the pool, the listener and the monitor.
    fn floor(self) -> Duration {
        let calls = u32::try_from(self.nodes + 4).unwrap_or(u32::MAX);
        self.build + self.latency * calls
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { nodes, latency, build, .. } = self.setting;
        let floor = self.setting.floor();
        writeln!(
            f,
            "| Services at once | all have addresses after | of what the cloud takes for one | calls | of them writes |"
        )?;
        writeln!(f, "|---|---|---|---|---|")?;
        for round in [self.first, self.many] {
            let Round { services, took, calls, mutations } = round;
            let share = took.as_secs_f64() / floor.as_secs_f64();
            writeln!(
                f,
                "| {services} | {:.2} s | {share:.1} × | {calls} | {mutations} |",
                took.as_secs_f64()
            )?;
        }
        writeln!(
            f,
            "\n{nodes} nodes, one port; a call takes {} ms, building a load balancer {} ms: nobody is faster than {:.2} s",
            latency.as_millis(),
            build.as_millis(),
            floor.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_as_a_share_of_what_the_cloud_takes() {
        let round = |services, millis| Round {
            services,
            took: Duration::from_millis(millis),
            calls: 22,
            mutations: 14,
        };
        let setting = Setting {
            nodes: 10,
            services: 50,
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
        };
        let text = Report { setting, first: round(1, 1_920), many: round(50, 6_400) }.to_string();
        assert!(text.contains("| 1 | 1.92 s | 1.5 × | 22 | 14 |"), "{text}");
        assert!(text.contains("| 50 | 6.40 s | 5.0 × |") && text.contains("faster than 1.28 s"), "{text}");
    }
}
