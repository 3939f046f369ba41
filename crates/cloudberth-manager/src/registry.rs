//! The clouds that this build of the program knows.

use std::{path::Path, sync::Arc};

use cloudberth_core::{Clock, Dice, Error, provider::Provider};
use cloudberth_http::{Attempt, Observer};
use cloudberth_runtime::metrics::clouds::CloudMeter;

use crate::env::Env;

/// A cloud that can be chosen with `--cloud-provider`.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// Makes the provider. Tells everything that is wrong with its settings at once.
    pub open: fn(&Opening<'_>) -> Opened,
}

/// A provider, or everything that is wrong with its settings.
pub type Opened = Result<Arc<dyn Provider>, Vec<Error>>;

/// What a provider is made from.
#[derive(Clone)]
pub struct Opening<'a> {
    /// The environment variables.
    pub env: &'a Env,
    /// `--cloud-config`.
    pub config: Option<&'a Path>,
    /// The cluster's name.
    pub cluster_name: &'a str,
    /// Sees every call to the cloud.
    pub observer: Arc<dyn Observer>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub dice: Arc<Dice>,
}

impl std::fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").field("env", self.env).field("config", &self.config).finish_non_exhaustive()
    }
}

/// Counts the calls to one cloud.
#[derive(Debug)]
pub struct Counting(pub CloudMeter);

impl Observer for Counting {
    fn attempted(&self, attempt: Attempt) {
        self.0.attempted(attempt.operation, attempt.status, attempt.outcome, attempt.took);
    }

    fn waited(&self, _operation: &'static str, wait: std::time::Duration) {
        self.0.waited(wait);
    }
}
