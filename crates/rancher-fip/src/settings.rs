//! Every delay of the program. They are settings, so that tests can be short.

use std::time::Duration;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

macro_rules! delays {
    ($($(#[doc = $about:literal])* $name:ident = $default:expr, $flag:literal;)*) => {
        /// Every delay of the program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Delays {
            $($(#[doc = $about])* pub $name: Duration,)*
        }

        impl Default for Delays {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        /// The flag of each delay and what it is, in the order of the help.
        pub const DELAY_FLAGS: &[(&str, &str)] = &[$(($flag, concat!($($about),*)),)*];

        impl Delays {
            /// The delay that a flag sets.
            pub fn by_flag(&mut self, flag: &str) -> Option<&mut Duration> {
                match flag {
                    $($flag => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

delays! {
    /// How often everything is looked at although nothing seems to have changed.
    resync = seconds(600), "resync-period";
    /// How long after a change of a quota its cluster is worked on: quotas that settle together cost one restart.
    settle = seconds(2), "settle-delay";
    /// How often the `ConfigMap` and the CA are read.
    config_poll = seconds(30), "config-poll-period";
    /// How often the versions of the floating-IP kinds are asked for.
    discovery_poll = seconds(60), "discovery-period";
    /// The wait after something that is not there yet, or wrong in itself.
    soon = seconds(60), "retry-soon";
    /// The wait after a cluster that does not answer.
    unreachable = seconds(120), "retry-unreachable";
    /// The wait after something that a person has to correct.
    slow = seconds(600), "retry-slow";
    /// The first wait after any other failure; it doubles.
    backoff_first = seconds(5), "backoff-first";
    /// The longest wait after repeated failures.
    backoff_longest = seconds(600), "backoff-longest";
    /// How long a downstream cluster may take to answer a request.
    downstream_timeout = seconds(10), "downstream-timeout";
    /// How long the management cluster may take to answer a request.
    local_timeout = seconds(30), "local-timeout";
    /// How long one Helm operation may wait for the chart's objects.
    helm_timeout = seconds(600), "helm-timeout";
    /// After this long a pending operation of Helm that is not ours counts as abandoned.
    helm_stale = seconds(900), "helm-stale-after";
    /// How long work under way may take to end after the program was told to stop.
    grace = seconds(25), "shutdown-grace";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_has_a_flag_that_sets_it() {
        let mut delays = Delays::default();
        for (flag, about) in DELAY_FLAGS {
            assert!(about.trim().ends_with('.'), "{flag}");
            *delays.by_flag(flag).unwrap() = seconds(7);
        }
        let all = format!("{delays:?}");
        assert_eq!(all.matches(": 7s").count(), DELAY_FLAGS.len(), "{all}");
        assert_eq!(delays.by_flag("nope"), None);
    }
}
