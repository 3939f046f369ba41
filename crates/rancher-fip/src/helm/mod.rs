//! Charts in downstream clusters: what a release is like, what has to be done about it, and who does it.
//!
//! ```text
//!   release Secrets ──► read_release ──► decide ──► HelmDecision ──► Helm (the binary, or the stand-in)
//! ```
//!
//! The state of a release is read from its Secrets, never by starting Helm, and the [decision](decide()) is a pure function
//! of that state and the configuration. Only what has to be done goes to a [`Helm`]: the [binary](BinaryHelm) in
//! production, a stand-in that writes the same Secrets in simulations.

mod binary;
mod chart;
mod child;
mod command;
mod decide;
mod error;
mod leash;
mod release;
mod repository;
mod scratch;
#[cfg(any(test, feature = "testing"))]
pub mod stand_in;
mod values;
mod version;

use cloudberth_core::provider::Boxed;

pub use binary::{BinaryHelm, HelmSettings};
pub use chart::{ChartRef, Source};
pub use decide::{HelmAction, HelmDecision, decide};
pub use error::{HelmError, HelmFailure};
pub use leash::Leash;
pub use release::{BadRecord, ReleaseRecord, ReleaseState, ReleaseStatus, read_release};

/// Whatever carries out what was decided about a chart.
///
/// # Guarantees that every implementation gives
/// - One call is one attempt. It ends by itself within the time-out it was set up with and a short margin, and earlier if
///   the [`Leash`] says so: then what it began has been told to stop, and is dead when the call returns.
/// - A call that is dropped leaves nothing running.
/// - Kubeconfig, values and passwords appear in no argument, log or error (law 10).
pub trait Helm: Send + Sync {
    /// The version that a chart's source has for what the configuration says, which may be a range or nothing. It reads
    /// the source and writes nothing anywhere.
    fn resolve<'a>(&'a self, chart: &'a ChartRef, leash: &'a Leash) -> Boxed<'a, Result<String, HelmError>>;

    /// Does this to the release of `chart` in the cluster of `kubeconfig`.
    ///
    /// It is refused without a claim to begin under, and goes on while the leash allows.
    fn run<'a>(
        &'a self,
        kubeconfig: &'a [u8],
        chart: &'a ChartRef,
        action: &'a HelmAction,
        leash: &'a Leash,
    ) -> Boxed<'a, Result<(), HelmError>>;

    /// Whether Helm can be started at all, with its version for people. The error says what to set.
    fn check(&self) -> Boxed<'_, Result<String, HelmError>>;
}
